"""How candidates for a plate are found: all orders ranked where they can be listed, else a search that climbs.

The search edits the best orders of each row of the acquisition (see `sgfn.design.acquisition`), so that every row is
climbed and none starves. Whatever is proposed satisfies the constraints.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass, field

import torch
from jaxtyping import Float, Int
from torch import Tensor

from sgfn.design.edits import children
from sgfn.design.space import OrderSpace, row_keys
from sgfn.design.values import BLOCK, OrderValues, Predict, by_blocks, exact_values

LARGEST_EXACT = 300_000
"""Orders at most that are all scored and ranked."""

Rows = Callable[[Float[Tensor, "M N"]], Float[Tensor, "K N"]]
"""An acquisition with its random numbers fixed."""


@dataclass(frozen=True, kw_only=True)
class SearchConfig:
    """How much a search may cost."""

    largest_exact: int = LARGEST_EXACT
    """Orders at most that are all scored and ranked."""
    scored: int = 150_000
    """Sequences at most that the proxy scores in a search; under noise each order takes several."""
    children: int = 2048
    """Edited orders of one step of the search."""
    elite: int = 256
    """Orders at least that are edited further, shared among the rows of the acquisition."""
    patience: int = 8
    """Steps without anything better in any row after which the search ends."""
    draws: int = 16
    """Outcomes of each order in a search under noise."""
    seconds: float = 40.0
    """Time after which no further step is begun."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Candidates:
    """Orders to choose from, with the value that each member of the proxy gives them under the noise."""

    tokens: Int[Tensor, "N L"]
    values: Float[Tensor, "M N"]
    how: str
    """`exact` where every order of the space was ranked, else `search`."""
    scored: int
    """Sequences that the proxy was asked about."""
    steps: int = 0
    seconds: float = 0.0
    note: str = ""
    """A sentence for whoever reads the result."""


def enumerable(space: OrderSpace, config: SearchConfig) -> bool:
    """Whether all orders are listed and ranked."""
    return space.size <= config.largest_exact


def rank_all(space: OrderSpace, predict: Predict, config: SearchConfig) -> Candidates:
    """Every order that is allowed, with its exact value where all outcomes can be listed too, else from draws."""
    start = time.perf_counter()
    if space.silent or space.env.stop or space.env.num_objects > config.largest_exact:
        tokens, value = space.everything(), OrderValues(space, predict, config.draws)
        values, scored = value(tokens), len(tokens) * value.cost
    else:
        everything = space.env.all_objects()
        allowed = space.allowed(everything)
        values = exact_values(space, by_blocks(predict, everything))[:, allowed]
        tokens, scored = everything[allowed], len(everything)
    note = f"all {len(tokens):,} orders were ranked: by this proxy none is better"
    seconds = time.perf_counter() - start
    return Candidates(tokens=tokens, values=values, how="exact", scored=scored, seconds=seconds, note=note)


@dataclass(eq=False)
class Archive:
    """All orders that a search has scored, each once."""

    tokens: list[Int[Tensor, "N L"]] = field(default_factory=list)
    values: list[Float[Tensor, "M N"]] = field(default_factory=list)
    seen: set[bytes] = field(default_factory=set)

    def unseen(self, tokens: Int[Tensor, "N L"]) -> Int[Tensor, "N L"]:
        """Distinct rows that were not scored yet, which now count as seen."""
        fresh = []
        for place, key in enumerate(row_keys(tokens)):
            if key not in self.seen:
                self.seen.add(key)
                fresh.append(place)
        return tokens[fresh]

    def add(self, tokens: Int[Tensor, "N L"], values: Float[Tensor, "M N"]) -> None:
        """Keep orders with their values."""
        self.tokens.append(tokens)
        self.values.append(values)

    def gather(self) -> tuple[Int[Tensor, "N L"], Float[Tensor, "M N"]]:
        """Everything so far."""
        self.tokens, self.values = [torch.cat(self.tokens)], [torch.cat(self.values, 1)]
        return self.tokens[0], self.values[0]


def climb(
    space: OrderSpace,
    predict: Predict,
    rows: Rows,
    start: Int[Tensor, "N L"],
    generator: torch.Generator,
    config: SearchConfig,
) -> Candidates:
    """Orders found by editing the best of each row, from those to start with; all that were scored are given back."""
    began, value, archive = time.perf_counter(), OrderValues(space, predict, config.draws), Archive()
    archive_new(archive, value, start[space.allowed(start)])
    archive_new(archive, value, space.random(config.elite, generator))
    if not archive.tokens:
        raise ValueError("no order satisfies the constraints among those tried: relax them, or give a parent sequence")
    best, waited, steps = None, 0, 0
    limit = max(config.scored // value.cost, len(archive.seen) + config.children)
    while waited < config.patience and len(archive.seen) < limit and time.perf_counter() - began < config.seconds:
        tokens, values = archive.gather()
        attraction = rows(values)
        top = attraction.max(1).values
        waited = 0 if best is None or bool((top > best + 1e-9).any()) else waited + 1
        best, steps = top, steps + 1
        parents = tokens[leading(attraction, config.elite)]
        born = children(parents, config.children, space.vocab, generator, varies=space.varies)
        archive_new(archive, value, born[space.allowed(born)])
    tokens, values = archive.gather()
    note = f"{len(tokens):,} of {space.size:.3g} orders were tried: better ones may exist"
    seconds = time.perf_counter() - began
    return Candidates(
        tokens=tokens,
        values=values,
        how="search",
        scored=len(tokens) * value.cost,
        steps=steps,
        seconds=seconds,
        note=note,
    )


def archive_new(archive: Archive, value: OrderValues, tokens: Int[Tensor, "N L"]) -> None:
    """Score the orders that are new to the archive, and keep them."""
    fresh = archive.unseen(tokens)
    if len(fresh):
        archive.add(fresh, value(fresh))


def leading(attraction: Float[Tensor, "K N"], count: int) -> Int[Tensor, " P"]:
    """Places of the best orders of each row, `count` in all or a little more, each once."""
    each = min(attraction.shape[1], max(2, -(-count // len(attraction))))
    return attraction.topk(each, 1).indices.flatten().unique()


def best_candidates(found: Candidates, attraction: Float[Tensor, "K N"], count: int) -> Int[Tensor, " P"]:
    """Places of enough leading orders to fill a plate from, whichever are taken."""
    each = min(attraction.shape[1], max(count, BLOCK // (8 * len(attraction))))
    return attraction.topk(each, 1).indices.flatten().unique()
