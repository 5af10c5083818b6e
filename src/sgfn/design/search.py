"""How candidates for a plate are found: all orders ranked where they can be listed, else a search that climbs.

The search edits the best orders of each row of the acquisition (see `sgfn.design.acquisition`), so that every row is
climbed and none starves. Whatever is proposed satisfies the constraints.
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Protocol, runtime_checkable

import torch
from jaxtyping import Float, Int
from torch import Tensor

from sgfn.config.checks import require, whole_number
from sgfn.config.tasks import LONGEST
from sgfn.design.edits import children
from sgfn.design.space import OrderSpace, row_keys
from sgfn.design.values import OrderValues, Predict, all_exact, by_blocks, exact_values

LARGEST_EXACT = 300_000
"""Orders at most that are all scored and ranked."""
MOST = 10**7
"""The largest size that a setting of a search may have."""

Rows = Callable[[Float[Tensor, "M N"]], Float[Tensor, "K N"]]
"""An acquisition with its random numbers fixed."""


@runtime_checkable
class Value(Protocol):
    """What orders are worth to each member of a proxy."""

    @property
    def cost(self) -> int:
        """Sequences that are scored for one order."""
        ...

    def __call__(self, orders: Int[Tensor, "N L"]) -> Float[Tensor, "M N"]:
        """Value of each order by each member."""
        ...


@dataclass(frozen=True, kw_only=True)
class SearchConfig:
    """How much a search may cost."""

    largest_exact: int = LARGEST_EXACT
    """Orders at most that are all scored and ranked."""
    scored: int = 150_000
    """Sequences at most that the proxy scores in a search; under noise each order takes several."""
    children: int = 2048
    """Edited orders of one step of the search."""
    elite: int = 512
    """Orders at least that are edited further, shared among the rows of the acquisition."""
    patience: int = 8
    """Steps without anything better in any row after which the search ends."""
    draws: int = 16
    """Outcomes of each order in a search under noise."""
    seconds: float = 40.0
    """Time after which no further step is begun."""
    reach: int = 0
    """Most edits between an order that a search proposes and a measured sequence; 0 for no limit."""

    def __post_init__(self) -> None:
        for name, least in (("largest_exact", 0), ("children", 1), ("elite", 1), ("patience", 1), ("draws", 1)):
            whole_number(f"search.{name}", getattr(self, name), least, MOST)
        whole_number("search.scored", self.scored, 1, 1000 * MOST)
        whole_number("search.reach", self.reach, 0, LONGEST)
        require(self.seconds >= 0.0, "search.seconds", "be a number that is not below 0", self.seconds)


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
    measured: bool = True
    """Whether a search began with measured sequences; else with random ones."""


def enumerable(space: OrderSpace, config: SearchConfig) -> bool:
    """Whether all orders are listed and ranked."""
    return space.size <= config.largest_exact


def rank_all(space: OrderSpace, predict: Predict, config: SearchConfig) -> Candidates:
    """Every order that is allowed, with its exact value where all outcomes can be listed too, else from draws."""
    start = time.perf_counter()
    if space.silent or not all_exact(space, config.largest_exact):
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
    """All orders that a search has scored, each once, with the edits to where their line of parents began."""

    tokens: list[Int[Tensor, "N L"]] = field(default_factory=list)
    values: list[Float[Tensor, "M N"]] = field(default_factory=list)
    edits: list[Int[Tensor, " N"]] = field(default_factory=list)
    seen: set[bytes] = field(default_factory=set)

    def score(self, value: Value, tokens: Int[Tensor, "N L"], edits: Int[Tensor, " N"]) -> None:
        """Score the orders that are new, and keep them."""
        fresh = []
        for place, key in enumerate(row_keys(tokens)):
            if key not in self.seen:
                self.seen.add(key)
                fresh.append(place)
        if fresh:
            self.tokens.append(tokens[fresh])
            self.edits.append(edits[fresh])
            self.values.append(value(tokens[fresh]))

    def gather(self) -> tuple[Int[Tensor, "N L"], Float[Tensor, "M N"], Int[Tensor, " N"]]:
        """Everything so far."""
        self.tokens, self.edits = [torch.cat(self.tokens)], [torch.cat(self.edits)]
        self.values = [torch.cat(self.values, 1)]
        return self.tokens[0], self.values[0], self.edits[0]


@dataclass(frozen=True, kw_only=True, eq=False)
class Start:
    """Orders to begin a search with, and how many edits each is away from where searching began."""

    tokens: Int[Tensor, "N L"]
    edits: Int[Tensor, " N"]
    measured: bool = True
    """Whether that was with measured sequences; else with random ones."""


def deserved_reach(length: int, correlation: float, *, varies: bool = False) -> int:
    """Edits that a proxy of a rank correlation rho (in cross-validation) can be trusted with, at least 2.

    Where all sequences have one length L that is rho max(L / 3, 8); rho^2 L / 4 where lengths vary: letters have no
    places of their own then, and a search that goes far finds errors of the proxy before it finds good sequences.

    >>> deserved_reach(12, 0.75), deserved_reach(60, 0.75), deserved_reach(30, 0.9, varies=True)
    (6, 15, 6)
    """
    rho = max(correlation, 0.0)
    return max(2, round(rho**2 * length / 4 if varies else rho * max(length / 3, 8)))


def grown_reach(reach: int, length: int, improved: Sequence[bool]) -> int:
    """Edits to go after plates of which each did or did not bring a new best score: twice as many, or half as many.

    Never fewer than at first nor more than there are letters. A proxy is trusted as far as it was right, as the region
    of Eriksson et al. (2019), Scalable global optimization via local Bayesian optimization, NeurIPS.

    >>> grown_reach(3, 50, [True, True]), grown_reach(3, 50, [True, False, False]), grown_reach(3, 8, [True] * 5)
    (12, 3, 8)
    """
    now = reach
    for better in improved:
        now = min(2 * now, length) if better else max(now // 2, reach)
    return now


def climb(
    space: OrderSpace, value: Value, rows: Rows, start: Start, generator: torch.Generator, config: SearchConfig
) -> tuple[Candidates, Int[Tensor, " N"]]:
    """Orders found by editing the best of each row, and their edits; all that were scored are given back."""
    began, archive = time.perf_counter(), Archive()
    reach, fits = config.reach, space.promising(start.tokens)
    archive.score(value, start.tokens[fits], start.edits[fits])
    measured = start.measured and bool(archive.tokens)
    if not reach or not archive.tokens:  # nothing measured is allowed: begin anywhere
        drawn = space.random(config.elite, generator)
        archive.score(value, drawn, torch.zeros(len(drawn), dtype=torch.int64))
    best, waited, steps = None, 0, 0
    limit = max(config.scored // value.cost, len(archive.seen) + config.children)
    while waited < config.patience and len(archive.seen) < limit and time.perf_counter() - began < config.seconds:
        tokens, values, edits = archive.gather()
        attraction = rows(values)
        top = attraction.max(1).values
        waited = 0 if best is None or bool((top > best + 1e-9).any()) else waited + 1
        best, steps = top, steps + 1
        parents = leading(attraction, config.elite)
        if reach:  # what lies at the limit has hardly any children within it
            nearer = (edits < reach).nonzero()[:, 0]
            parents = torch.cat([parents, nearer[leading(attraction[:, nearer], config.elite)]]).unique()
        born = children(tokens[parents], edits[parents], config.children, space.vocab, generator, varies=space.varies)
        kept = space.promising(born.tokens)
        kept &= born.edits <= reach if reach else kept
        archive.score(value, born.tokens[kept], born.edits[kept])
    tokens, values, edits = archive.gather()
    found = Candidates(
        tokens=tokens,
        values=values,
        how="search",
        scored=len(tokens) * value.cost,
        steps=steps,
        seconds=time.perf_counter() - began,
        note=f"{_searched(len(tokens), space, reach, measured)}: better ones may exist",
        measured=measured,
    )
    return found, edits


def _searched(tried: int, space: OrderSpace, reach: int, measured: bool) -> str:
    """What a search tried, of which orders, and how far from where it began."""
    rules = "" if space.automaton is None else " that satisfy the constraints"
    begun = "what was measured" if measured else "random ones, as nothing measured may be ordered"
    near = f", within {reach} edits of {begun}" if reach else ""
    pairs = 0 if space.avoided is None else int(space.avoided.sum())
    without = f", without {pairs} pairs of neighbouring letters that only failures have" if pairs else ""
    return f"{tried:,} of {space.size:.3g} orders{rules} were tried{near}{without}"


def leading(attraction: Float[Tensor, "K N"], count: int) -> Int[Tensor, " P"]:
    """Places of the best orders of each row, `count` in all or a little more, each once."""
    each = min(attraction.shape[1], max(4, -(-count // len(attraction))))
    return attraction.topk(each, 1).indices.flatten().unique()
