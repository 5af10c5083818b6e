"""A library: a degenerate codon for each site, the law of what comes out of it, and libraries read from text."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float64, Int

from sgfn.config.checks import shorten
from sgfn.design.libraries.codons import NAMED, STOP, Supply, entropy

Laws = Float64[np.ndarray, "m 21"]
"""Law of the residue at each site."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Library:
    """Codons that are ordered for the sites, and the law of residues (and stop) at each of them.

    >>> library = parse_library("NNK", 4)
    >>> round(library.no_stop, 3), round(library.size)
    (0.881, 128101)
    """

    codons: tuple[str, ...]
    laws: Laws
    name: str = ""

    @property
    def sites(self) -> int:
        """Number of sites."""
        return len(self.codons)

    @property
    def no_stop(self) -> float:
        """P(no site is a stop)."""
        return float(np.prod(1.0 - self.laws[:, STOP]))

    @property
    def size(self) -> float:
        """Effective size: exp of the entropy of what comes out, stops included."""
        return float(np.exp(entropy(self.laws).sum()))

    @property
    def text(self) -> str:
        """The codons with commas between them."""
        return ",".join(self.codons)

    def draw(self, count: int, generator: np.random.Generator) -> Int[np.ndarray, "N m"]:
        """Residues of so many clones, by their numbers in `RESIDUES`."""
        chance = generator.random((count, self.sites))
        return np.stack([place_of(chance[:, site], law) for site, law in enumerate(self.laws)], 1)


def place_of(chance: Float64[np.ndarray, " N"], law: Float64[np.ndarray, " K"]) -> Int[np.ndarray, " N"]:
    """Outcome of a law at each uniform number; one that has no probability never comes out."""
    possible = np.flatnonzero(law)
    above = np.cumsum(law[possible])[:-1]
    return possible[np.searchsorted(above, chance, side="right")]


def make_library(codons: Sequence[str], supply: Supply | None = None, name: str = "") -> Library:
    """The library of codons, one for each site."""
    supply = supply or Supply()
    laws = np.array([supply.codon_law(codon) for codon in codons])
    return Library(codons=tuple(codons), laws=laws, name=name)


def parse_library(text: str, sites: int, supply: Supply | None = None) -> Library:
    """A library from its name (NNK, 22c), from one codon for all sites, or from codons with commas between them."""
    words = [word.strip() for word in NAMED.get(text, text).upper().split(",")]
    if len(words) == 1:
        words *= sites
    if len(words) != sites:
        what = f"library {shorten(text)!r} has {len(words)} codons and there are {sites} sites"
        raise ValueError(f"{what}; give one codon for each, or one for all")
    try:
        return make_library(words, supply, text)
    except ValueError as error:
        raise ValueError(f"library {shorten(text)!r}: {error}") from None
