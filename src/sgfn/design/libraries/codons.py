"""Degenerate codons: letters of IUPAC or percentages, what a supplier makes of them, and their laws over residues."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache
from itertools import product

import numpy as np
from jaxtyping import Float64

from sgfn.config.checks import shorten
from sgfn.envs.constraints import IUPAC
from sgfn.landscapes.measurements import ALPHABETS

BASES = "ACGT"
RESIDUES = ALPHABETS["protein"] + "*"
"""Outcomes of a codon: twenty residues, and stop."""
STOP = RESIDUES.index("*")
LETTERS = {base: base for base in BASES} | IUPAC
"""Letters of IUPAC with the bases that they stand for."""
STANDARD = "FFLLSSSSYY**CC*WLLLLPPPPHHQQRRRRIIIMTTTTNNKKSSRRVVVVAAAADDEEGGGG"
"""Residues of the standard genetic code (NCBI table 1), for codons in the order of TCAG."""
NUCLEOTIDE = re.compile(r"[A-Z]|\[[^\]]*\]")
SHARE = re.compile(r"([ACGT])(\d+(?:\.\d+)?)")
NAMED = {
    "NNK": "NNK",
    "NNS": "NNS",
    "NNB": "NNB",
    "NDT": "NDT",
    "22c": "NDT*12+VHG*9+TGG*1",
}
"""Libraries that are used everywhere: the same codons at each site. 22c: three codons mixed so that every residue has
one codon but L and V, which have two (Kille et al. 2013, ACS Synthetic Biology 2)."""

Law = Float64[np.ndarray, " 21"]


@cache
def genetic_code() -> Float64[np.ndarray, "4 4 4 21"]:
    """One where three bases make a residue (or stop), else zero.

    >>> code = genetic_code()
    >>> "".join(RESIDUES[int(code[tuple(map(BASES.index, codon))].argmax())] for codon in ("ATG", "TGG", "TAA"))
    'MW*'
    """
    code = np.zeros((4, 4, 4, len(RESIDUES)))
    for codon, residue in zip(product("TCAG", repeat=3), STANDARD, strict=True):
        code[(*map(BASES.index, codon), RESIDUES.index(residue))] = 1.0
    return code


@cache
def codon_table() -> dict[str, str]:
    """The residue of each of the 64 codons."""
    names = map("".join, product("TCAG", repeat=3))
    return dict(zip(names, STANDARD, strict=True))


@dataclass(frozen=True, kw_only=True, eq=False)
class Supply:
    """What a supplier makes of a letter: proportions of A, C, G and T.

    A letter that is not `named` gives its bases in proportion to `rates`, and so does a mixture in percent, each of
    whose shares is multiplied by the base's rate.
    """

    rates: Float64[np.ndarray, " 4"] = field(default_factory=lambda: np.full(4, 0.25))
    named: Mapping[str, Float64[np.ndarray, " 4"]] = field(default_factory=dict)

    def law(self, nucleotide: str) -> Float64[np.ndarray, " 4"]:
        """Proportions of the bases where a letter, or a mixture such as [A40G60], is ordered."""
        if nucleotide in self.named:
            return self.named[nucleotide]
        shares = parse_shares(nucleotide) * self.rates
        return shares / shares.sum()

    def codon_law(self, codon: str) -> Law:
        """Law over residues and stop of what a codon gives, or several codons that are mixed (NDT*12+VHG*9+TGG*1).

        >>> law = Supply().codon_law("NNK")
        >>> [round(32 * law[RESIDUES.index(residue)]) for residue in "LAW*"]
        [3, 2, 1, 1]
        """
        parts = [_weighted(part, codon) for part in codon.split("+")]
        total = sum(weight for _, weight in parts)
        return np.sum([weight / total * self._one(part) for part, weight in parts], axis=0)

    def _one(self, codon: str) -> Law:
        first, second, third = map(self.law, nucleotides(codon))
        return np.einsum("a,b,c,abcr->r", first, second, third, genetic_code())


def _weighted(part: str, whole: str) -> tuple[str, float]:
    """A codon and its weight among those that are mixed."""
    codon, star, weight = part.partition("*")
    try:
        found = float(weight) if star else 1.0
    except ValueError:
        found = 0.0
    if not 0.0 < found < np.inf:
        raise ValueError(f"codon {shorten(whole)!r}: {part!r} has no weight above 0; write NDT*12+VHG*9+TGG*1")
    return codon, found


def nucleotides(codon: str) -> list[str]:
    """The three nucleotides of a codon: letters, or mixtures in percent.

    >>> nucleotides("NN[A50T50]")
    ['N', 'N', '[A50T50]']
    """
    found = NUCLEOTIDE.findall(codon)
    if "".join(found) != codon or len(found) != 3:
        what = f"codon {shorten(codon)!r} is no codon; write three letters of IUPAC, like NNK, or [A40G60] in percent"
        raise ValueError(what)
    for one in found:
        if one[0] != "[" and one not in LETTERS:
            known = "".join(LETTERS)
            raise ValueError(f"codon {shorten(codon)!r}: {one!r} is no letter of IUPAC; choose from {known}")
    return found


def parse_shares(nucleotide: str) -> Float64[np.ndarray, " 4"]:
    """Shares of the bases in a letter, or in a mixture in percent."""
    if nucleotide[0] != "[":
        if nucleotide not in LETTERS:
            raise ValueError(f"{nucleotide!r} is no letter of IUPAC; choose from {''.join(LETTERS)}")
        return np.array([float(base in LETTERS[nucleotide]) for base in BASES]) / len(LETTERS[nucleotide])
    inside = nucleotide[1:-1]
    shares = {base: float(number) for base, number in SHARE.findall(inside)}
    plain = "".join(base + number for base, number in SHARE.findall(inside)) == inside
    if not plain or len(shares) != len(SHARE.findall(inside)) or abs(sum(shares.values()) - 100.0) > 0.5:
        raise ValueError(f"mixture {shorten(nucleotide)!r} must be bases with percentages of sum 100, like [A40G60]")
    return np.array([shares.get(base, 0.0) for base in BASES]) / 100.0


def spell_shares(shares: Float64[np.ndarray, " 4"]) -> str:
    """A mixture as text, as a letter where it is one in equal shares.

    >>> spell_shares(np.array([0.4, 0, 0.6, 0])), spell_shares(np.array([0.5, 0, 0.5, 0]))
    ('[A40G60]', 'R')
    """
    for letter in LETTERS:
        if np.allclose(parse_shares(letter), shares, atol=1e-9):
            return letter
    return "[" + "".join(f"{base}{100 * share:.4g}" for base, share in zip(BASES, shares, strict=True) if share) + "]"


def degeneracy(codon: str) -> int:
    """Number of plain codons that a degenerate one holds.

    >>> degeneracy("NNK"), degeneracy("TGG")
    (32, 1)
    """
    return int(np.prod([np.count_nonzero(parse_shares(one)) for one in nucleotides(codon)]))


@dataclass(frozen=True, kw_only=True, eq=False)
class Menu:
    """Codons to choose from, of different laws over residues and stop."""

    codons: tuple[str, ...] = field(repr=False)
    laws: Float64[np.ndarray, "A 21"]
    supply: Supply = field(default_factory=Supply)

    @classmethod
    def of(cls, codons: Iterable[str], supply: Supply | None = None) -> "Menu":
        """The first codon of each law, those with fewer plain codons first.

        >>> len(Menu.of(all_codons()).codons)
        1482
        """
        supply = supply or Supply()
        ordered = sorted(dict.fromkeys(codons), key=lambda codon: (degeneracy(codon), codon))
        laws = np.array([supply.codon_law(codon) for codon in ordered])
        _, first = np.unique(laws.round(12), axis=0, return_index=True)
        first.sort()
        return cls(codons=tuple(ordered[i] for i in first), laws=laws[first], supply=supply)

    @property
    def entropies(self) -> Float64[np.ndarray, " A"]:
        """Entropy of each law, in nats."""
        return entropy(self.laws)


def all_codons() -> list[str]:
    """All 3,375 codons of three letters of IUPAC."""
    return ["".join(letters) for letters in product(LETTERS, repeat=3)]


@cache
def standard_menu() -> Menu:
    """All laws of codons of letters in equal shares: 1,482."""
    return Menu.of(all_codons())


def entropy(laws: Float64[np.ndarray, "*batch K"]) -> Float64[np.ndarray, "*batch"]:
    """Entropy of laws along the last axis, in nats."""
    return np.asarray(-(laws * np.log(np.where(laws > 0, laws, 1.0))).sum(-1))
