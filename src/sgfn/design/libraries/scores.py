"""Scores of what comes out of a library: from a table of all outcomes, from a sum over pairs, or from any function."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from string import ascii_lowercase

import numpy as np
from jaxtyping import Float, Float64, Int

from sgfn.design.libraries.codons import RESIDUES, STOP
from sgfn.design.libraries.library import Laws, place_of

OUTCOMES = len(RESIDUES)
RESIDUE_COUNT = OUTCOMES - 1
MOST_SITES = 5
"""Sites up to which all 20^m outcomes are listed."""
MOST_CELLS = 2**25
"""Entries of all tables of members together, which bounds memory."""
DRAWS = 20_000
"""Outcomes that are drawn where they cannot be listed, for the values that are told."""
SEARCH_DRAWS = 256
"""Outcomes that are drawn for each step of a search; all libraries meet the same random numbers."""

Values = Float[np.ndarray, "M N"]
Predict = Callable[[Int[np.ndarray, "N m"]], Values]
"""Residues at the sites (0 to 19) to scores: the first row the expected score, the others scores under the draws of a
posterior, if there is one."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Outcomes:
    """Outcomes of a library: what each is worth to each member, and how probable it is."""

    values: Values
    """Where they are drawn the first row is the expected score, and members, if any, follow."""
    probability: Float64[np.ndarray, " N"]
    drawn: bool
    """Whether they are draws, not all that there are."""


class LibraryScore(ABC):
    """The expected score of a library, and the law of the scores of its clones."""

    sites: int
    stop: float
    """Score of a clone with a stop."""
    exact: bool
    """Whether expected scores are exact."""

    @abstractmethod
    def expected(self, laws: Float64[np.ndarray, "B m 21"]) -> Float64[np.ndarray, " B"]:
        """E[f] of libraries given by the laws at their sites."""

    @abstractmethod
    def outcomes(self, laws: Laws, seed: int = 0) -> Outcomes:
        """Outcomes of a library: all of them where they can be listed, else draws."""

    def given_one(self, laws: Laws, site: int) -> Float64[np.ndarray, " 21"]:
        """E[f | residue at one site], for each residue and stop."""
        return self.expected(_substituted(laws, [site])).reshape(OUTCOMES)

    def given_two(self, laws: Laws, first: int, second: int) -> Float64[np.ndarray, "21 21"]:
        """E[f | residues at two sites]."""
        return self.expected(_substituted(laws, [first, second])).reshape(OUTCOMES, OUTCOMES)


def _substituted(laws: Laws, sites: Sequence[int]) -> Float64[np.ndarray, "B m 21"]:
    """Laws in which the given sites are certain, for all their residues."""
    count = OUTCOMES ** len(sites)
    found = np.repeat(laws[None], count, 0)
    for place, site in enumerate(sites):
        residue = (np.arange(count) // OUTCOMES ** (len(sites) - 1 - place)) % OUTCOMES
        found[:, site] = np.eye(OUTCOMES)[residue]
    return found


class TableScore(LibraryScore):
    """Scores of all outcomes: everything is exact.

    >>> table = TableScore(np.arange(20.0), stop=-1.0)
    >>> float(table.expected(np.eye(21)[None, [3]])[0]), float(table.expected(np.eye(21)[None, [20]])[0])
    (3.0, -1.0)
    """

    exact = True

    def __init__(
        self,
        scores: Float[np.ndarray, "..."],
        *,
        stop: float,
        members: Float[np.ndarray, "M ..."] | None = None,
    ) -> None:
        self.sites, self.stop = scores.ndim, stop
        self.table = _with_stops(scores, stop)
        kept = scores[None] if members is None else members[: max(1, MOST_CELLS // self.table.size)]
        self.members = np.stack([_with_stops(one, stop) for one in kept])

    def expected(self, laws: Float64[np.ndarray, "B m 21"]) -> Float64[np.ndarray, " B"]:
        """Site by site, the first as a product of matrices."""
        found = laws[:, 0] @ self.table.reshape(OUTCOMES, -1)  # B 21^(m-1)
        for site in range(1, self.sites):
            found = (laws[:, site, None] @ found.reshape(len(laws), OUTCOMES, -1))[:, 0]
        return found[:, 0]

    def given_one(self, laws: Laws, site: int) -> Float64[np.ndarray, " 21"]:
        """The table, averaged over the other sites."""
        return self._averaged(laws, [site])

    def given_two(self, laws: Laws, first: int, second: int) -> Float64[np.ndarray, "21 21"]:
        """The table, averaged over the other sites."""
        return self._averaged(laws, [first, second])

    def _averaged(self, laws: Laws, kept: list[int]) -> Float64[np.ndarray, "..."]:
        found, axes = self.table, list(range(self.sites))
        for site in [site for site in range(self.sites) if site not in kept]:
            found = np.tensordot(found, laws[site], (axes.index(site), 0))
            axes.remove(site)
        return found.transpose([axes.index(site) for site in kept])

    def outcomes(self, laws: Laws, seed: int = 0) -> Outcomes:
        """All that have some probability."""
        where = [np.flatnonzero(law) for law in laws]
        values = self.members[np.ix_(np.arange(len(self.members)), *where)].reshape(len(self.members), -1)
        return Outcomes(values=values, probability=joint([law[law > 0] for law in laws]).ravel(), drawn=False)


def joint(laws: Sequence[Float64[np.ndarray, " _"]]) -> Float64[np.ndarray, "..."]:
    """Probabilities of all combinations of independent sites."""
    letters = ascii_lowercase[: len(laws)]
    return np.einsum(",".join(letters) + "->" + letters, *laws)


def _with_stops(scores: Float[np.ndarray, "..."], stop: float) -> Float64[np.ndarray, "..."]:
    found = np.full([OUTCOMES] * scores.ndim, stop, dtype=np.float64)
    found[tuple([slice(RESIDUE_COUNT)] * scores.ndim)] = scores
    return found


class DrawnScore(LibraryScore):
    """Scores by any function, at any number of sites: means over draws that all libraries share."""

    exact = False

    def __init__(self, predict: Predict, sites: int, *, stop: float, draws: int = SEARCH_DRAWS, seed: int = 0) -> None:
        self.predict, self.sites, self.stop = predict, sites, stop
        self.chance = np.random.default_rng(seed).random((draws, sites))

    def expected(self, laws: Float64[np.ndarray, "B m 21"]) -> Float64[np.ndarray, " B"]:
        """Means over the same random numbers for all libraries."""
        rows = np.stack([_outcomes_at(self.chance, one) for one in laws])  # B S m
        return self._scored(rows.reshape(-1, self.sites))[0].reshape(len(laws), -1).mean(1)

    def outcomes(self, laws: Laws, seed: int = 0) -> Outcomes:
        """Many draws, other ones than those of the search."""
        chance = np.random.default_rng([seed, 1]).random((DRAWS, self.sites))
        values = self._scored(_outcomes_at(chance, laws))
        return Outcomes(values=values, probability=np.full(DRAWS, 1.0 / DRAWS), drawn=True)

    def _scored(self, rows: Int[np.ndarray, "N m"]) -> Values:
        """Scores of outcomes, each different one asked for once."""
        different, place = np.unique(rows, axis=0, return_inverse=True)
        whole = ~(different == STOP).any(1)
        asked = self.predict(different[whole]) if whole.any() else np.zeros((1, 0))
        values = np.full((len(asked), len(different)), self.stop)
        values[:, whole] = asked
        return values[:, place.reshape(-1)]


def _outcomes_at(chance: Float64[np.ndarray, "N m"], laws: Laws) -> Int[np.ndarray, "N m"]:
    return np.stack([place_of(chance[:, site], law) for site, law in enumerate(laws)], 1)


@dataclass(eq=False)
class PairScore(LibraryScore):
    r"""A score that adds up over sites and pairs of them: expected scores are exact at any number of sites.

    .. math:: E[f] = P\,\Big(c + \sum_i a_i q_i + \sum_{i<j} q_i^T b_{ij} q_j\Big) + (1 - P)\,f_{stop}

    with q the law of the residue where no site is a stop, which has probability P.
    """

    single: Float64[np.ndarray, "m 20"]
    pair: Float64[np.ndarray, "m m 20 20"]
    """Only entries with i < j are read."""
    constant: float
    stop: float
    drawn: DrawnScore = field(init=False)
    exact = True

    def __post_init__(self) -> None:
        self.sites = len(self.single)
        self.drawn = DrawnScore(self.predict, self.sites, stop=self.stop)

    def predict(self, rows: Int[np.ndarray, "N m"]) -> Values:
        """Scores of residues at the sites."""
        return self.whole(np.eye(RESIDUE_COUNT)[rows])[None]

    def whole(self, laws: Float64[np.ndarray, "B m 20"]) -> Float64[np.ndarray, " B"]:
        """E[f] where no site is a stop."""
        found = self.constant + np.einsum("bik,ik->b", laws, self.single)
        for first in range(self.sites):
            for second in range(first + 1, self.sites):
                found = found + ((laws[:, first] @ self.pair[first, second]) * laws[:, second]).sum(1)
        return found

    def table(self) -> Float64[np.ndarray, "..."]:
        """Scores of all outcomes without a stop, one axis for each site."""
        found, each = np.full([RESIDUE_COUNT] * self.sites, self.constant), range(self.sites)
        for i in each:
            found += self.single[i].reshape([-1 if axis == i else 1 for axis in each])
            for j in range(i + 1, self.sites):
                found += self.pair[i, j].reshape([RESIDUE_COUNT if axis in (i, j) else 1 for axis in each])
        return found

    def expected(self, laws: Float64[np.ndarray, "B m 21"]) -> Float64[np.ndarray, " B"]:
        """The formula above."""
        kept = 1.0 - laws[..., STOP]  # B m
        whole = laws[..., :RESIDUE_COUNT] / np.maximum(kept, 1e-300)[..., None]
        chance = kept.prod(1)
        return chance * self.whole(whole) + (1.0 - chance) * self.stop

    def outcomes(self, laws: Laws, seed: int = 0) -> Outcomes:
        """Draws."""
        return self.drawn.outcomes(laws, seed)
