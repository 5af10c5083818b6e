"""One library chosen: coordinate ascent over the codons of one site or of two sites at once, from many starts.

Of independent sites the entropies add up, so that "effective size at least S" and "P(no stop) at least p" are sums over
sites, and the best codon given all others is found among all of them at once:
E[f] is linear in the law of each site, and so is the law of the scores, of which E[best of n] is made.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Literal, get_args

import numpy as np
from jaxtyping import Bool, Float32, Float64, Int

from sgfn.config.checks import in_range, one_of, whole_number
from sgfn.design.libraries.codons import STOP, Menu, entropy
from sgfn.design.libraries.library import Laws, Library, make_library
from sgfn.design.libraries.scores import OUTCOMES, LibraryScore, TableScore, joint
from sgfn.design.libraries.values import best_of

GoalKind = Literal["mean", "best"]
BINS = 128
"""Levels at which the law of the scores is known in a search for the best of n clones."""
SLACK = 1e-9
MOST_CLONES = 1_000_000

Places = Int[np.ndarray, " m"]
"""Number of each site's codon in the menu."""
Rows = Float64[np.ndarray, "A 21"]


@dataclass(frozen=True, kw_only=True)
class Goal:
    """What a library is chosen for."""

    kind: GoalKind = "best"
    """`mean`: E[score] of a clone; `best`: E[best score of `clones`]."""
    clones: int = 96
    size: float = 1.0
    """Least effective size."""
    no_stop: float = 0.0
    """Least P(no stop)."""

    def __post_init__(self) -> None:
        one_of("goal", self.kind, get_args(GoalKind))
        whole_number("clones", self.clones, 1, MOST_CLONES)
        in_range("size", self.size, 1.0)
        in_range("no_stop", self.no_stop, 0.0, 1.0)

    def lack(self, rows: Rows) -> Float64[np.ndarray, "A 2"]:
        """Entropy and log P(no stop) of each row, which add up over sites."""
        return np.stack([entropy(rows), np.log(np.maximum(1.0 - rows[:, STOP], 1e-300))], 1)

    @property
    def least(self) -> Float64[np.ndarray, " 2"]:
        """What the sums must reach."""
        return np.array([np.log(self.size), np.log(max(self.no_stop, 1e-250))]) - SLACK


@dataclass(frozen=True, kw_only=True, eq=False)
class FoundLibrary:
    """A library that a search came to."""

    library: Library
    value: float
    """What the goal is worth."""
    how: str
    starts: int
    """Starts of the search."""
    hits: int
    """How many of them ended at this value."""
    others: tuple[tuple[float, Library], ...] = ()
    """Where the other starts ended, the best first."""


def goal_value(score: LibraryScore, laws: Laws, goal: Goal) -> float:
    """What a library is worth to a goal."""
    if goal.kind == "mean":
        return float(score.expected(laws[None])[0])
    return best_of(score.outcomes(laws), goal.clones)[0]


def feasible(laws: Laws, goal: Goal) -> bool:
    """Whether a library is large enough and has few enough stops."""
    return bool((goal.lack(laws).sum(0) >= goal.least).all())


def choose_row(
    score: LibraryScore, goal: Goal, laws: Laws, site: int, rows: Rows, sums: Float64[np.ndarray, "A 2"]
) -> int:
    """Number of the best row at a site given all other sites; where none is feasible, of the one that lacks least."""
    others = np.delete(laws, site, 0)
    lacking = np.maximum(goal.least - sums - goal.lack(others).sum(0), 0.0).sum(1)
    allowed = np.flatnonzero(lacking == 0.0)
    if not len(allowed):
        return int(lacking.argmin())
    return int(allowed[row_values(score, goal, laws, site, rows[allowed]).argmax()])


def row_values(score: LibraryScore, goal: Goal, laws: Laws, site: int, rows: Rows) -> Float64[np.ndarray, " A"]:
    """What the goal is worth with each row at a site; the best of n from levels of the score, in a search alone."""
    if goal.kind == "mean":
        return rows @ score.given_one(laws, site)
    if isinstance(score, TableScore):
        return _table_best(score, laws, site, rows, goal.clones)
    return _drawn_best(score, laws, site, rows, goal.clones)


def _table_best(score: TableScore, laws: Laws, site: int, rows: Rows, clones: int) -> Float64[np.ndarray, " A"]:
    """Mean over members of E[best of n] for each row, all outcomes listed."""
    where = [np.arange(OUTCOMES) if i == site else np.flatnonzero(law) for i, law in enumerate(laws)]
    values = score.members[np.ix_(np.arange(len(score.members)), *where)]
    values = np.moveaxis(values, site + 1, 1).reshape(len(values), OUTCOMES, -1)
    probability = (
        joint([law[law > 0] for i, law in enumerate(laws) if i != site]).ravel() if len(laws) > 1 else np.ones(1)
    )
    return _best_by_levels(values, probability, rows, clones)


def _drawn_best(score: LibraryScore, laws: Laws, site: int, rows: Rows, clones: int) -> Float64[np.ndarray, " A"]:
    """The same from draws of the other sites."""
    given = []
    for residue in range(OUTCOMES):
        changed = laws.copy()
        changed[site] = np.eye(OUTCOMES)[residue]
        given.append(score.outcomes(changed).values)
    members = np.stack(given, 1)  # M 21 N
    members = members[1:] if len(members) > 1 else members
    return _best_by_levels(members, np.full(members.shape[2], 1.0 / members.shape[2]), rows, clones)


def _best_by_levels(
    values: Float64[np.ndarray, "M 21 N"], probability: Float64[np.ndarray, " N"], rows: Rows, clones: int
) -> Float64[np.ndarray, " A"]:
    """E[max] = high - integral of F^n, with F at evenly spaced levels, for each row's mixture of the outcomes' laws."""
    low, high = float(values.min()), float(values.max())
    if high <= low:
        return np.full(len(rows), high)
    found, width = np.zeros(len(rows)), (high - low) / BINS
    residue = np.arange(OUTCOMES)[:, None] * BINS
    for member in values:
        place = np.minimum(((member - low) / width).astype(np.int64), BINS - 1) + residue
        weights = np.broadcast_to(probability, place.shape).ravel()
        mass = np.bincount(place.ravel(), weights, minlength=OUTCOMES * BINS).reshape(OUTCOMES, BINS)
        below = whole_power(np.minimum((rows @ mass.cumsum(1)).astype(np.float32), 1.0), clones)
        found += high - width * below[:, :-1].sum(1) - width / 2
    return found / len(values)


def whole_power(base: Float32[np.ndarray, "..."], exponent: int) -> Float32[np.ndarray, "..."]:
    """Power by squaring, several times as fast as numpy's.

    >>> float(whole_power(np.full(1, 0.5, dtype=np.float32), 6)[0])
    0.015625
    """
    found = np.ones_like(base)
    while exponent:
        if exponent & 1:
            found = found * base
        base, exponent = base * base, exponent >> 1
    return found


def coordinate_ascent(score: LibraryScore, menu: Menu, goal: Goal, start: Places) -> Places:
    """Codons after replacing the codon of one site at a time by the best one, until none is better."""
    places, sums = start.copy(), goal.lack(menu.laws)
    for _ in range(50):
        before = places.copy()
        for site in range(len(places)):
            places[site] = choose_row(score, goal, menu.laws[places], site, menu.laws, sums)
        if (places == before).all():
            break
    return places


def pair_ascent(score: LibraryScore, menu: Menu, goal: Goal, start: Places) -> Places:
    """Codons after replacing those of two sites at a time by the best pair of all, until none is better; for E[f]."""
    places, sums = start.copy(), goal.lack(menu.laws)
    for _ in range(50):
        before = places.copy()
        for first, second in combinations(range(len(places)), 2):
            laws = menu.laws[places]
            rest = goal.lack(np.delete(laws, [first, second], 0)).sum(0) if len(places) > 2 else np.zeros(2)
            allowed = _pairs_allowed(sums, goal.least - rest)
            if not allowed.any():
                places[first] = places[second] = int(sums[:, 0].argmax())
                continue
            values = np.where(allowed, menu.laws @ score.given_two(laws, first, second) @ menu.laws.T, -np.inf)
            best = int(values.argmax())
            if values.flat[best] > values[places[first], places[second]] + SLACK:
                places[first], places[second] = divmod(best, len(menu.codons))
        if (places == before).all():
            break
    return places


def _pairs_allowed(sums: Float64[np.ndarray, "A 2"], least: Float64[np.ndarray, " 2"]) -> Bool[np.ndarray, "A A"]:
    allowed = sums[:, None, 0] + sums[:, 0] >= least[0]
    return allowed if least[1] < -500 else allowed & (sums[:, None, 1] + sums[:, 1] >= least[1])


Ascent = Callable[[LibraryScore, Menu, Goal, Places], Places]
ASCENTS: dict[str, Ascent] = {"coordinate": coordinate_ascent, "pairs": pair_ascent}


def search(
    score: LibraryScore, menu: Menu, goal: Goal, how: str, starts: int = 32, seed: int = 0, first: Iterable[Places] = ()
) -> FoundLibrary:
    """The best library of many starts: those that are given first, then random ones, `starts` in all at least."""
    generator, given = np.random.default_rng(seed), list(first)
    drawn = [generator.integers(len(menu.codons), size=score.sites) for _ in range(starts - len(given))]
    ascend = ASCENTS["coordinate" if score.sites == 1 else how]
    ends: dict[tuple[int, ...], int] = {}
    for start in [*given, *drawn]:
        end = tuple(ascend(score, menu, goal, np.asarray(start)).tolist())
        ends[end] = ends.get(end, 0) + 1
    found = [
        (goal_value(score, menu.laws[list(end)], goal), end) for end in ends if feasible(menu.laws[list(end)], goal)
    ]
    if not found:
        raise ValueError(_impossible(menu, goal, score.sites))
    found.sort(reverse=True)
    libraries = [(value, make_library([menu.codons[i] for i in end], menu.supply)) for value, end in found]
    value, best = libraries[0]
    hits = sum(ends[end] for own, end in found if own >= value - SLACK)
    return FoundLibrary(
        library=best, value=value, how=how, starts=len(given) + len(drawn), hits=hits, others=tuple(libraries[1:])
    )


def _impossible(menu: Menu, goal: Goal, sites: int) -> str:
    largest = float(np.exp(sites * menu.entropies.max()))
    what = f"no library of {sites} sites was found with an effective size of {goal.size:g} or more"
    chance = f" and P(no stop) of {goal.no_stop:g} or more" if goal.no_stop else ""
    return f"{what}{chance}; the largest size is {largest:.4g}: lower --size or --no-stop"


def choose_library(
    score: LibraryScore, menu: Menu, goal: Goal, *, starts: int = 32, seed: int = 0, first: Iterable[Places] = ()
) -> FoundLibrary:
    """The best library that two sites at a time lead to; for the best of n clones, coordinate ascent from there.

    Libraries for the best of n are larger or smaller than asked for, whichever pays: they start with those of highest
    E[f] at sizes from the least on, each four times the last.
    """
    if goal.kind == "mean":
        return search(score, menu, goal, "pairs" if score.exact else "coordinate", starts, seed, first)
    begun = list(first)
    ceiling = float(np.exp(score.sites * menu.entropies.max()))
    size = goal.size
    while size <= ceiling and size <= 64 * max(goal.clones, goal.size):
        easier = replace(goal, kind="mean", size=size)
        try:
            found = search(score, menu, easier, "pairs" if score.exact else "coordinate", max(4, starts // 8), seed)
        except ValueError:
            break
        begun += [places_of(menu, found.library)]
        size *= 4.0
    return search(score, menu, goal, "coordinate", max(starts // 2, len(begun) + 4), seed, begun)


def places_of(menu: Menu, library: Library) -> Places:
    """Numbers of a library's codons in a menu."""
    number = {codon: place for place, codon in enumerate(menu.codons)}
    return np.array([number[codon] for codon in library.codons])
