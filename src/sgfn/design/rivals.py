"""Other ways to fill a plate, to play beside ours: each sees what was measured and fits the same kind of proxy.

AdaLead is described anew after its paper and is not the code of its authors; sep-CMA-ES likewise.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import torch
from jaxtyping import Float, Int
from torch import Tensor

from sgfn.design.edits import children, substituted
from sgfn.design.space import OrderSpace, row_keys

Mean = Callable[[Int[Tensor, "N L"]], Float[Tensor, " N"]]
"""Predicted scores of sequences."""


@dataclass(frozen=True, kw_only=True, eq=False)
class History:
    """What was measured so far, each sequence once."""

    tokens: Int[Tensor, "N L"]
    scores: Float[Tensor, " N"]


@runtime_checkable
class Player(Protocol):
    """Something that fills plates."""

    def propose(self, history: History, count: int, seed: int) -> Int[Tensor, "W L"]:
        """Orders of the next plate."""
        ...


def fill(
    ranked: Int[Tensor, "N L"], history: History, count: int, space: OrderSpace, generator: torch.Generator
) -> Int[Tensor, "W L"]:
    """The first rows that are new and allowed, filled up with random ones."""
    seen, kept = set(row_keys(history.tokens)), list[Int[Tensor, " L"]]()
    for block in (ranked, *(space.random(count, generator) for _ in range(20))):
        block = block[space.allowed(block)]
        for row, key in zip(block, row_keys(block), strict=True):
            if key not in seen and len(kept) < count:
                seen.add(key)
                kept.append(row)
        if len(kept) == count:
            break
    return torch.stack(kept)


@dataclass(frozen=True, kw_only=True, eq=False)
class RandomPlayer:
    """Random sequences that were not measured yet."""

    space: OrderSpace

    def propose(self, history: History, count: int, seed: int) -> Int[Tensor, "W L"]:
        """Orders of the next plate."""
        generator = torch.Generator().manual_seed(seed)
        return fill(history.tokens[:0], history, count, self.space, generator)


@dataclass(frozen=True, kw_only=True, eq=False)
class EvolutionPlayer:
    """A genetic algorithm on the measurements themselves, without a proxy: edited copies of the best tenth."""

    space: OrderSpace
    survivors: float = 0.1

    def propose(self, history: History, count: int, seed: int) -> Int[Tensor, "W L"]:
        """Orders of the next plate."""
        generator, kept = torch.Generator().manual_seed(seed), max(2, round(self.survivors * len(history.tokens)))
        parents = history.tokens[history.scores.argsort(descending=True)[:kept]]
        begun = torch.zeros(len(parents), dtype=torch.int64)
        born = children(parents, begun, 20 * count, self.space.vocab, generator, varies=self.space.varies).tokens
        return fill(born, history, count, self.space, generator)


@dataclass(frozen=True, kw_only=True, eq=False)
class ModelPlayer:
    """Ranks what a search of its own finds by the proxy's mean."""

    space: OrderSpace
    fit: Callable[[History, int], Mean]
    search: Callable[[OrderSpace, Mean, History, torch.Generator], Int[Tensor, "N L"]]

    def propose(self, history: History, count: int, seed: int) -> Int[Tensor, "W L"]:
        """Orders of the next plate."""
        generator = torch.Generator().manual_seed(seed)
        mean = self.fit(history, seed)
        found = self.search(self.space, mean, history, generator).unique(dim=0)
        found = found[self.space.allowed(found)]
        ranked = found[mean(found).argsort(descending=True)] if len(found) else found
        return fill(ranked, history, count, self.space, generator)


def genetic(
    space: OrderSpace,
    mean: Mean,
    history: History,
    generator: torch.Generator,
    generations: int = 20,
    population: int = 500,
) -> Int[Tensor, "N L"]:
    """All that a genetic algorithm visits on the proxy, from the best measured: the best fifth has children."""
    now = history.tokens[history.scores.argsort(descending=True)[:population]]
    visited = [now]
    for _ in range(generations):
        parents = now[mean(now).argsort(descending=True)[: max(2, population // 5)]]
        begun = torch.zeros(len(parents), dtype=torch.int64)
        born = children(parents, begun, population, space.vocab, generator, varies=space.varies).tokens
        now = torch.cat([parents, born[space.allowed(born)]]).unique(dim=0)
        visited.append(now)
    return torch.cat(visited)


def adalead(
    space: OrderSpace,
    mean: Mean,
    history: History,
    generator: torch.Generator,
    queries: int = 2000,
    threshold: float = 0.05,
    recombination: float = 0.2,
) -> Int[Tensor, "N L"]:
    """All that AdaLead visits: greedy walks of mutants that the proxy rates no worse than where they began.

    Roots are the measured sequences within `threshold` of the best; roots recombine, a letter from either with the
    given rate, and every letter mutates with rate 1/L. Reference: Sinai et al. (2020), AdaLead, arXiv:2010.02141.
    """
    best = history.scores.max()
    roots = history.tokens[history.scores >= best - threshold * best.abs()]
    visited, asked = [roots], 0
    while asked < queries:
        drawn = roots[torch.randint(len(roots), (64,), generator=generator)]
        other = roots[torch.randint(len(roots), (64,), generator=generator)]
        swap = torch.rand(drawn.shape, generator=generator) < recombination
        walkers = torch.where(swap & (drawn < space.vocab) & (other < space.vocab), other, drawn)
        level = mean(walkers)
        asked += len(walkers)
        while len(walkers) and asked < queries:
            born = substituted(walkers, space.vocab, generator)
            scores = mean(born)
            asked += len(born)
            visited.append(born)
            kept = (scores >= level) & space.allowed(born)
            walkers, level = born[kept], level[kept]
    return torch.cat(visited)


def cma_es(
    space: OrderSpace,
    mean: Mean,
    history: History,
    generator: torch.Generator,
    generations: int = 60,
    population: int = 64,
) -> Int[Tensor, "N L"]:
    """All that sep-CMA-ES visits: a normal law with a diagonal covariance over letters' weights, the largest wins.

    Reference: Ros and Hansen (2008), A simple modification in CMA-ES, PPSN; for sequences of one length, others keep
    that of the best measured.
    """
    best = history.tokens[history.scores.argmax()]
    size = int((best < space.vocab).sum())
    dim, half = size * space.vocab, population // 2
    weights = torch.log(torch.tensor(half + 0.5)) - torch.arange(1, half + 1).log()
    weights = weights / weights.sum()
    effective = 1 / weights.square().sum()
    c_sigma = (effective + 2) / (dim + effective + 5)
    c_c, c_1 = 4 / (dim + 4), 2 / ((dim + 1.3) ** 2 + effective) * (dim + 2) / 3
    c_mu = min(1 - c_1, 2 * (effective - 2 + 1 / effective) / ((dim + 2) ** 2 + effective) * (dim + 2) / 3)
    centre = torch.nn.functional.one_hot(best[:size], space.vocab).flatten().float()
    variance, path, path_sigma, sigma = torch.ones(dim), torch.zeros(dim), torch.zeros(dim), 0.5
    visited = []
    for _ in range(generations):
        noise = torch.randn(population, dim, generator=generator)
        points = centre + sigma * variance.sqrt() * noise
        letters = points.view(population, size, space.vocab).argmax(-1)
        rows = torch.cat([letters, torch.full((population, space.max_length - size), space.vocab)], 1)
        visited.append(rows)
        fits = space.allowed(rows)  # what breaks a constraint is ranked below all else
        ranked = torch.where(fits, mean(rows), -torch.inf).argsort(descending=True)[:half]
        step = (weights[:, None] * noise[ranked]).sum(0)
        centre = centre + sigma * variance.sqrt() * step
        path_sigma = (1 - c_sigma) * path_sigma + (c_sigma * (2 - c_sigma) * effective).sqrt() * step
        path = (1 - c_c) * path + (torch.tensor(c_c * (2 - c_c)) * effective).sqrt() * variance.sqrt() * step
        spread = (weights[:, None] * (variance.sqrt() * noise[ranked]).square()).sum(0)
        variance = ((1 - c_1 - c_mu) * variance + c_1 * path.square() + c_mu * spread).clamp(min=1e-8)
        sigma = float(sigma * torch.exp((c_sigma / 1.0) * (path_sigma.norm() / dim**0.5 - 1)).clamp(0.5, 2.0))
        sigma = min(max(sigma, 1e-3), 5.0)
    return torch.cat(visited)


SEARCHES: dict[str, Any] = {"genetic": genetic, "adalead": adalead, "cma-es": cma_es}
