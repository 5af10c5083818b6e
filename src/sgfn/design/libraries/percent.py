"""Libraries in percent: ascent over one nucleotide, or two of different sites, at a time."""

from itertools import combinations, product

import numpy as np
from jaxtyping import Float64

from sgfn.config.checks import whole_number
from sgfn.design.libraries.codons import Supply, genetic_code, nucleotides, parse_shares, spell_shares
from sgfn.design.libraries.library import Library, make_library
from sgfn.design.libraries.scores import LibraryScore
from sgfn.design.libraries.search import SLACK, FoundLibrary, Goal, choose_row, feasible, goal_value

SWEEPS = 20
Shares = Float64[np.ndarray, "m 3 4"]
"""Shares of the bases that are ordered for each nucleotide of each site."""


def share_grid(step: int) -> Float64[np.ndarray, "P 4"]:
    """All mixtures of four bases in multiples of a percentage.

    >>> len(share_grid(50)), len(share_grid(10))
    (10, 286)
    """
    whole_number("step", step, 1, 50)
    if 100 % step:
        raise ValueError(f"step must divide 100, got {step}: choose from 1, 2, 4, 5, 10, 20, 25, 50")
    count = 100 // step
    parts = [(a, c, g, count - a - c - g) for a, c, g in product(range(count + 1), repeat=3) if a + c + g <= count]
    return np.array(parts) / count


def improve_in_percent(
    score: LibraryScore, supply: Supply, goal: Goal, starts: list[Library], step: int = 10
) -> FoundLibrary:
    """The best library in percent that some libraries lead to."""
    grid = share_grid(step)
    found = []
    for start in starts:
        shares = np.array([[parse_shares(one) for one in nucleotides(codon)] for codon in start.codons])
        shares = _ascend(score, supply, goal, shares, grid)
        library = _library(shares, supply)
        if feasible(library.laws, goal):
            found.append((goal_value(score, library.laws, goal), library))
    if not found:
        raise ValueError("no start is a library that satisfies --size and --no-stop: lower them")
    found.sort(key=lambda one: -one[0])
    value, best = found[0]
    hits = sum(own >= value - SLACK for own, _ in found)
    return FoundLibrary(
        library=best,
        value=value,
        how=f"percent, steps of {step}",
        starts=len(starts),
        hits=hits,
        others=tuple(found[1:]),
    )


def _library(shares: Shares, supply: Supply) -> Library:
    return make_library(["".join(spell_shares(one) for one in site) for site in shares], supply)


def _ascend(
    score: LibraryScore, supply: Supply, goal: Goal, shares: Shares, grid: Float64[np.ndarray, "P 4"]
) -> Shares:
    """One nucleotide at a time, and for E[f] two of different sites, until nothing is better."""
    shares = shares.copy()
    options = np.concatenate([grid, np.unique(shares.reshape(-1, 4), axis=0)])  # a third each is on no grid
    best = _worth(score, supply, goal, shares)
    for _ in range(SWEEPS):
        for site, place in product(range(len(shares)), range(3)):
            rows = nucleotide_rows(shares, site, place, options, supply)
            laws = _laws(shares, supply)
            chosen = choose_row(score, goal, laws, site, rows, goal.lack(rows))
            shares = _if_better(score, supply, goal, shares, {(site, place): options[chosen]})
        if goal.kind == "mean" and score.exact:
            shares = _pairs(score, supply, goal, shares, options)
        now = _worth(score, supply, goal, shares)
        if now <= best + 1e-7:
            break
        best = now
    return shares


def _pairs(
    score: LibraryScore, supply: Supply, goal: Goal, shares: Shares, options: Float64[np.ndarray, "P 4"]
) -> Shares:
    """Two nucleotides of different sites at a time: E[f] is bilinear in them, and their entropies add up."""
    for first, second in combinations(range(len(shares)), 2):
        for one, two in product(range(3), repeat=2):
            laws = _laws(shares, supply)
            rows = [nucleotide_rows(shares, *where, options, supply) for where in ((first, one), (second, two))]
            rest = goal.lack(np.delete(laws, [first, second], 0)).sum(0) if len(shares) > 2 else np.zeros(2)
            sums = goal.lack(rows[0])[:, None] + goal.lack(rows[1])[None] + rest
            allowed = (sums >= goal.least).all(-1)
            if not allowed.any():
                continue
            values = np.where(allowed, rows[0] @ score.given_two(laws, first, second) @ rows[1].T, -np.inf)
            best = divmod(int(values.argmax()), len(options))
            changed = {(first, one): options[best[0]], (second, two): options[best[1]]}
            shares = _if_better(score, supply, goal, shares, changed)
    return shares


def _if_better(score: LibraryScore, supply: Supply, goal: Goal, shares: Shares, changed: dict) -> Shares:
    """The shares with changes where they are worth more, else as they are."""
    tried = shares.copy()
    for where, share in changed.items():
        tried[where] = share
    return tried if _worth(score, supply, goal, tried) > _worth(score, supply, goal, shares) else shares


def _worth(score: LibraryScore, supply: Supply, goal: Goal, shares: Shares) -> float:
    laws = _laws(shares, supply)
    return goal_value(score, laws, goal) if feasible(laws, goal) else -np.inf


def _made(shares: Float64[np.ndarray, "*batch 4"], supply: Supply) -> Float64[np.ndarray, "*batch 4"]:
    """Proportions that a supplier makes of shares; letters that have a row of their own keep it."""
    made = shares * supply.rates
    made = made / made.sum(-1, keepdims=True)
    for letter, law in supply.named.items():
        made[np.isclose(shares, parse_shares(letter), atol=1e-9).all(-1)] = law
    return made


def _laws(shares: Shares, supply: Supply) -> Float64[np.ndarray, "m 21"]:
    made = _made(shares, supply)
    return np.einsum("ma,mb,mc,abcr->mr", made[:, 0], made[:, 1], made[:, 2], genetic_code())


def nucleotide_rows(
    shares: Shares, site: int, place: int, options: Float64[np.ndarray, "P 4"], supply: Supply
) -> Float64[np.ndarray, "P 21"]:
    """Laws of a site with each mixture at one of its three nucleotides."""
    made = _made(shares[site], supply)
    first, second = (made[i] for i in range(3) if i != place)
    code = np.moveaxis(genetic_code(), place, 0)  # the chosen nucleotide, then the others
    return _made(options, supply) @ np.einsum("b,c,abcr->ar", first, second, code)
