r"""Several libraries: the pool nearest in KL to the target p* proportional to R^beta.

.. math:: KL(p\|p^*) = \sum_x p(x)\,\log\frac{p(x)}{p^*(x)}, \qquad p(x) = \sum_j w_j \prod_t M(a_{jt}, x_t)

The divergence depends on the codon of one site of one library only through its probability of each residue, which takes
few values in a menu: the divergence of every codon there is a sum of tabulated terms, so that each step of the descent
takes the best of all codons, exactly. Given the codons, it is convex in the shares.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float64, Int

from sgfn.config.checks import in_range, whole_number
from sgfn.design.libraries.codons import Menu
from sgfn.design.libraries.library import Library, make_library
from sgfn.design.libraries.scores import OUTCOMES, TableScore, joint

MINIMUM = 1e-3
"""Least reward, in shares of the range of scores: that of stops and of the lowest scores."""
SWEEPS = 30
MOST_LIBRARIES = 96
Target = Float64[np.ndarray, "..."]
"""Logarithm of p* for each outcome, one axis for each site."""
Chosen = Int[np.ndarray, "N m"]
"""Number of each library's codon at each site in the menu."""


@dataclass(frozen=True, kw_only=True, eq=False)
class FoundPool:
    """Libraries that are pooled, and how far their law is from the target."""

    libraries: tuple[Library, ...]
    weights: Float64[np.ndarray, " N"]
    kl: float
    """KL(pool || p*), in nats."""
    tv: float
    """Total variation to p*."""
    how: str
    starts: int = 1
    all_kl: tuple[float, ...] = ()
    """Where each start ended."""


def log_target(score: TableScore, beta: float, minimum: float = MINIMUM) -> Target:
    r"""$\log p^*$ with R = (f - low)/(high - low), at least `minimum`; stops have the least reward."""
    in_range("beta", beta, 0.0, 1000.0)
    low, high = float(score.table.min()), float(score.table.max())
    if high <= low:
        raise ValueError(f"every score is {high:g}: a target needs different ones")
    log_reward = beta * np.log(np.maximum((score.table - low) / (high - low), minimum))
    return log_reward - log_sum(log_reward)


def log_sum(values: Float64[np.ndarray, "..."]) -> float:
    """Logarithm of a sum of exponentials."""
    top = float(values.max())
    return top + float(np.log(np.exp(values - top).sum()))


def divergence(law: Float64[np.ndarray, "..."], target: Target) -> float:
    """KL(law || p*)."""
    here = law > 0
    return float((law[here] * (np.log(law[here]) - target[here])).sum())


def variation(law: Float64[np.ndarray, "..."], target: Target) -> float:
    """Total variation distance of a law and p*."""
    return float(np.abs(law - np.exp(target)).sum() / 2)


def pool(menu: Menu, chosen: Chosen, weights: Float64[np.ndarray, " N"]) -> Float64[np.ndarray, "..."]:
    """Law of pooled libraries."""
    return np.sum([weight * joint(list(menu.laws[row])) for row, weight in zip(chosen, weights, strict=True)], axis=0)


class Levels:
    """Different probabilities in a menu, and which of them each codon has for each residue."""

    def __init__(self, menu: Menu) -> None:
        self.values, place = np.unique(menu.laws.round(12), return_inverse=True)
        self.place = place.reshape(menu.laws.shape)  # A 21
        self.used = [np.unique(self.place[:, residue]) for residue in range(OUTCOMES)]


def codon_divergences(
    menu: Menu,
    levels: Levels,
    target: Target,
    rest: Float64[np.ndarray, "..."],
    share: float,
    row: Int[np.ndarray, " m"],
    site: int,
) -> Float64[np.ndarray, " A"]:
    """KL(pool || p*), up to a constant, for every codon at one site of one library; `rest` is the others' law."""
    others = (
        joint([menu.laws[place] for i, place in enumerate(row) if i != site]).ravel() if len(row) > 1 else np.ones(1)
    )
    here = others > 0
    fixed = np.moveaxis(rest, site, 0).reshape(OUTCOMES, -1)[:, here]
    aim = np.moveaxis(target, site, 0).reshape(OUTCOMES, -1)[:, here]
    own = share * others[here]
    terms = np.zeros((OUTCOMES, len(levels.values)))
    for residue in range(OUTCOMES):
        used = levels.used[residue]
        law = fixed[residue] + levels.values[used][:, None] * own  # U N
        terms[residue, used] = (law * (np.log(np.maximum(law, 1e-300)) - aim[residue])).sum(1)
    return terms[np.arange(OUTCOMES), levels.place].sum(1)


def descend(
    menu: Menu, levels: Levels, target: Target, chosen: Chosen, weights: Float64[np.ndarray, " N"]
) -> tuple[Chosen, Float64[np.ndarray, " N"], float]:
    """Codons one site of one library at a time, then shares, until the divergence stays."""
    chosen, weights = chosen.copy(), weights.copy()
    before = divergence(pool(menu, chosen, weights), target)
    for _ in range(SWEEPS):
        for number, row in enumerate(chosen):
            others = np.delete(np.arange(len(chosen)), number)
            rest = pool(menu, chosen[others], weights[others]) if len(others) else np.zeros(target.shape)
            for site in range(chosen.shape[1]):
                row[site] = codon_divergences(menu, levels, target, rest, weights[number], row, site).argmin()
        weights = best_weights(menu, target, chosen, weights)
        now = divergence(pool(menu, chosen, weights), target)
        if now >= before - 1e-7:
            return chosen, weights, now
        before = now
    return chosen, weights, before


def best_weights(
    menu: Menu, target: Target, chosen: Chosen, weights: Float64[np.ndarray, " N"], rounds: int = 20
) -> Float64[np.ndarray, " N"]:
    r"""Shares of least divergence: $w_j \leftarrow w_j \exp(-E_{q_j}[\log p/p^*])$, which never raises it."""
    laws = np.stack([joint(list(menu.laws[row])).ravel() for row in chosen])
    aim = target.ravel()
    for _ in range(rounds if len(chosen) > 1 else 0):
        law = weights @ laws
        excess = laws @ np.where(law > 0, np.log(np.maximum(law, 1e-300)) - aim, 0.0)
        weights = weights * np.exp(-(excess - excess.min()))
        weights = np.maximum(weights / weights.sum(), 1e-6)
        weights = weights / weights.sum()
    return weights


def choose_pool(
    score: TableScore,
    menu: Menu,
    count: int,
    beta: float,
    *,
    starts: int = 4,
    seed: int = 0,
    first: Sequence[Chosen] = (),
) -> FoundPool:
    """The nearest pool of so many libraries that is found from several starts, one library added after the other.

    `first`: libraries that starts begin with; then one begins with the broadest codon, and others where a draw from the
    target falls.
    """
    whole_number("libraries", count, 1, MOST_LIBRARIES)
    target, levels = log_target(score, beta), Levels(menu)
    generator = np.random.default_rng(seed)
    broad = np.full((1, score.sites), menu.entropies.argmax())
    begun = [*first, broad, *[np.zeros((0, score.sites), dtype=np.int64)] * (starts - len(first) - 1)]
    ends = [_grow(menu, levels, target, count, generator, given) for given in begun]
    chosen, weights, kl = min(ends, key=lambda end: end[2])
    return found_pool(menu, target, chosen, weights, "coordinate descent", [end[2] for end in ends], kl)


def found_pool(
    menu: Menu,
    target: Target,
    chosen: Chosen,
    weights: Float64[np.ndarray, " N"],
    how: str,
    ends: list[float],
    kl: float,
) -> FoundPool:
    """A pool by the numbers of its codons, the largest share first."""
    order = np.argsort(-weights, kind="stable")
    libraries = tuple(make_library([menu.codons[i] for i in chosen[j]], menu.supply) for j in order)
    law = pool(menu, chosen, weights)
    return FoundPool(
        libraries=libraries,
        weights=weights[order],
        kl=kl,
        tv=variation(law, target),
        how=how,
        starts=len(ends),
        all_kl=tuple(ends),
    )


def _grow(
    menu: Menu,
    levels: Levels,
    target: Target,
    count: int,
    generator: np.random.Generator,
    given: Int[np.ndarray, "G m"],
) -> tuple[Chosen, Float64[np.ndarray, " N"], float]:
    """Libraries added one by one where the target is least covered, all of them descending each time."""
    chosen = given[:count]
    weights = np.full(len(chosen), 1.0 / max(1, len(chosen)))
    kl = np.inf
    if len(chosen):
        chosen, weights, kl = descend(menu, levels, target, chosen, weights)
    certain = [
        int(np.flatnonzero(menu.laws[:, residue] == menu.laws[:, residue].max())[0]) for residue in range(OUTCOMES)
    ]
    while len(chosen) < count:
        law = pool(menu, chosen, weights) if len(chosen) else np.zeros(target.shape)
        missing = np.maximum(np.exp(target) - law, 0.0).ravel()
        outcome = np.unravel_index(generator.choice(missing.size, p=missing / missing.sum()), target.shape)
        added = np.array([[certain[int(residue)] for residue in outcome]])
        chosen = np.concatenate([chosen, added])
        share = 1.0 / len(chosen)
        weights = best_weights(menu, target, chosen, np.append(weights * (1.0 - share), share), rounds=100)
        chosen, weights, kl = descend(menu, levels, target, chosen, weights)
    return chosen, weights, kl
