"""A plate of orders for the next round, and what it should bring."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pandas as pd
import torch
from jaxtyping import Float, Int
from torch import Tensor

from sgfn.config.digits import figure
from sgfn.design.acquisition import Request, acquire, acquisition_told
from sgfn.design.batch import expected_best, take_turns
from sgfn.design.distances import edit_distances, nearest
from sgfn.design.sampler import Weights, draw_orders
from sgfn.design.search import (
    Candidates,
    Rows,
    SearchConfig,
    Start,
    climb,
    deserved_reach,
    enumerable,
    grown_reach,
    leading,
    rank_all,
)
from sgfn.design.settings import DesignConfig
from sgfn.design.space import OrderSpace, row_keys
from sgfn.design.values import OrderValues, Predict, read_by, sampled_channel
from sgfn.landscapes.proxies import ProxyReport
from sgfn.landscapes.proxies.honesty import HeldOut
from sgfn.noise import UniformSlip

DRAWS = 128
"""Draws of the proxy, and of what comes out of each order, that the outlook is the mean of."""
ROOTS = 200
"""Best measured sequences, or a tenth of them where that is more, that a search begins with."""
FACTS = ("round", "how", "note", "acquisition", "kappa", "noise", "asked", "scored", "seconds", "proxy")
"""What is kept of a proposal beside its table and its outlook."""
CONSIDERED = 1000
"""Best measured sequences among which the truly best is sought."""


@dataclass(frozen=True, kw_only=True)
class Outlook:
    """What a plate should bring, in the units of the scores."""

    best_so_far: float
    """The best score measured, luck included."""
    believed: float
    """Expected true score of the best sequence measured, by the proxy."""
    expected_best: list[float]
    """Expected true score of the best sequence after each well, all that was measured included."""
    mean: float
    """Mean of the column `expected` of the plate's orders."""

    @property
    def marginal(self) -> list[float]:
        """What each further well adds to the expected best."""
        before = [self.believed, *self.expected_best[:-1]]
        return [after - last for last, after in zip(before, self.expected_best, strict=True)]

    def to_json(self) -> dict[str, Any]:
        """Plain data."""
        return dict(vars(self))


@dataclass(frozen=True, kw_only=True, eq=False)
class Proposal:
    """Orders in the order of their wells, how they were found, and what they should bring."""

    round: int
    orders: pd.DataFrame
    """A row for each well; the first column is `order`."""
    how: str
    """`exact` where every order of the space was ranked, else `search`."""
    note: str
    """How far the search can be relied on, in a sentence."""
    acquisition: str
    """What made orders attractive: the name, and that which `auto` stood for."""
    kappa: float
    """Standard deviations that `ucb` adds to the mean, and `mixed` at most."""
    noise: str
    """The noise under which orders were valued, in words."""
    outlook: Outlook
    proxy: dict[str, Any]
    """What the proxy's cross-validation says."""
    validation: ProxyReport
    """Measured and predicted score of each sequence, its fold left out, in the units of the scores."""
    held_out: HeldOut
    """What cross-validation says of the sequences that the proxy ranks best."""
    beyond: float | None
    """The best score that the proxy predicts of a measured sequence, where an order is predicted to lie beyond it:
    of what is beyond half is told. None where none does."""
    asked: int
    """Orders that were wanted; there are fewer where no more are left."""
    scored: int
    """Sequences that the proxy was asked about."""
    seconds: float

    def __len__(self) -> int:
        return len(self.orders)

    def to_frame(self) -> pd.DataFrame:
        """The table of orders."""
        return self.orders

    @property
    def chosen(self) -> str:
        """By what orders were chosen, in words."""
        return acquisition_told(self.acquisition, self.kappa)

    @property
    def told(self) -> str:
        """How much of the expected scores to believe, in a sentence."""
        if self.beyond is None:
            return str(self.held_out)
        half = "of what is predicted beyond that, half is told"
        return f"{self.held_out}; its best prediction of a measured one is {figure(self.beyond)}: {half}"

    @property
    def proxy_told(self) -> str:
        """Kind of the proxy, what it is made of, and the setting by which it was taken."""
        kind, asked, kinds = self.proxy["kind"], self.proxy["asked"], self.proxy.get("kinds")
        parts = [*([f"of {', '.join(kinds)}"] if kinds else []), *([f"by --proxy {asked}"] if asked != kind else [])]
        return f"{kind} ({'; '.join(parts)})" if parts else kind

    def to_json(self) -> dict[str, Any]:
        """Plain data without the table."""
        facts = {name: getattr(self, name) for name in FACTS}
        told = {"held_out": vars(self.held_out), "beyond": self.beyond}
        return facts | told | {"orders": len(self.orders), "outlook": self.outlook.to_json()}


@dataclass(frozen=True, kw_only=True, eq=False)
class Choice:
    """Chosen orders with the members' values under the noise, and the sampler's weights for the next round."""

    tokens: Int[Tensor, "W L"]
    values: Float[Tensor, "M W"]
    found: Candidates
    weights: Weights | None


def choose(
    space: OrderSpace,
    predict: Predict,
    config: DesignConfig,
    count: int,
    known: Int[Tensor, "R L"],
    barred: Int[Tensor, "B L"],
    seed: int = 0,
    weights: Weights | None = None,
    correlation: float = 0.0,
    improved: Sequence[bool] = (),
) -> Choice:
    """The orders of a plate by the acquisition, none of them barred.

    `known` are orders to begin a search with, best first: those measured. `correlation` is the proxy's rank correlation
    in cross-validation and `improved` whether each plate so far brought a new best score, which decide how far from
    them a search goes where the settings do not.
    """
    reach, limit = config.reach, config.reach or 0
    if reach is None:
        deserved = deserved_reach(space.max_length, correlation, varies=space.varies)
        reach = grown_reach(deserved, space.max_length, improved)
    config = replace(config, search=replace(config.search, reach=reach))
    searched = not enumerable(space, config.search)
    request = Request(wells=count, seed=seed, kappa=config.kappa, searched=searched)

    def rows(values: Float[Tensor, "M N"]) -> Float[Tensor, "K N"]:
        return acquire(config.acquisition, values, request)

    found, weights = _candidates(space, predict, rows, config, known, seed, weights)
    if found.how == "exact" and limit:
        found = _within(found, known, limit, space.vocab)
    attraction = rows(found.values)
    refused = set(row_keys(barred))
    free = torch.tensor([key not in refused for key in row_keys(found.tokens)], dtype=torch.bool)
    blank = space.vocab if space.varies else None
    places = take_turns(attraction, count, free, found.tokens, config.distance, blank)
    if not len(places):
        raise ValueError("nothing is left to order: all orders that the settings allow were ordered or measured before")
    return Choice(tokens=found.tokens[places], values=found.values[:, places], found=found, weights=weights)


def _candidates(
    space: OrderSpace,
    predict: Predict,
    rows: Rows,
    config: DesignConfig,
    known: Int[Tensor, "R L"],
    seed: int,
    weights: Weights | None,
) -> tuple[Candidates, Weights | None]:
    """All orders where they can be ranked, else what a search finds, with a flow network's draws among its starts."""
    if enumerable(space, config.search):
        return rank_all(space, predict, config.search), weights
    generator = torch.Generator().manual_seed(seed)
    known = known[: max(ROOTS, len(known) // 10)]
    start = Start(tokens=known, edits=torch.zeros(len(known), dtype=torch.int64))
    found, edits = _climb_intact(space, predict, rows, start, generator, config.search)
    if space.silent and not _sampled(config):
        return found, weights
    leaders = leading(rows(found.values), 4 * config.search.elite)
    start = Start(tokens=found.tokens[leaders], edits=edits[leaders], measured=found.measured)
    if _sampled(config):
        elite = found.tokens[leading(rows(found.values), config.search.elite)]
        drawn, weights = draw_orders(space, predict, rows, elite, config.flow, seed, weights)
        start = _with_drawn(space, start, drawn, known, config.search)
    value = OrderValues(space, predict, config.search.draws)
    return climb(space, value, rows, start, generator, config.search)[0], weights


def _within(found: Candidates, known: Int[Tensor, "R L"], limit: int, blank: int) -> Candidates:
    """Those of all orders that are at most so many edits from something known; raises where none is."""
    if not len(known):
        told = f"{found.note}; nothing measured has a length that is allowed, so --reach limits nothing"
        return replace(found, note=told)
    metric = "edit" if bool((found.tokens == blank).any() | (known == blank).any()) else "hamming"
    apart = nearest(found.tokens, known, blank, metric)[1]
    kept = apart <= limit
    if not bool(kept.any()):
        raise ValueError(f"no order is within --reach {limit} of what was measured: give a larger one")
    near = f"all {int(kept.sum()):,} orders within {limit} edit{'s' * (limit != 1)} of what was measured were ranked"
    note = f"{near}: by this proxy none of them is better"
    return replace(found, tokens=found.tokens[kept], values=found.values[:, kept], note=note)


def _sampled(config: DesignConfig) -> bool:
    """Whether a flow network takes part: with `auto` where orders may be far from what was measured."""
    return config.flow.steps > 0 and (config.sampler == "on" or (config.sampler == "auto" and not config.search.reach))


def _with_drawn(
    space: OrderSpace, start: Start, drawn: Int[Tensor, "D L"], known: Int[Tensor, "R L"], config: SearchConfig
) -> Start:
    """The orders to start with, and those of a flow network's draws that are within reach of the best measured."""
    best = known[: config.elite]
    away = torch.stack([edit_distances(drawn, row[row < space.vocab], space.vocab) for row in best]).amin(0)
    kept = away <= config.reach if config.reach else away >= 0
    return replace(start, tokens=torch.cat([start.tokens, drawn[kept]]), edits=torch.cat([start.edits, away[kept]]))


def _climb_intact(
    space: OrderSpace, predict: Predict, rows: Rows, start: Start, generator: torch.Generator, config: SearchConfig
) -> tuple[Candidates, Int[Tensor, " N"]]:
    """A first search for what scores well if it comes out intact, which takes one call of the proxy for each order."""
    silent = replace(space, noise=UniformSlip(alpha=0.0))
    short = replace(config, scored=config.scored // 2, seconds=config.seconds / 2)
    return climb(silent, OrderValues(silent, predict), rows, start, generator, short)


def outlook_of(
    space: OrderSpace,
    predict: Predict,
    choice: Choice,
    known: Int[Tensor, "R W"],
    best: float,
    mean: float,
    score: Callable[[float], float] = float,
    seed: int = 0,
) -> Outlook:
    """What chosen orders should bring under the noise.

    `known` are measured sequences, the best first, `best` is the best score, `mean` that of the orders' expected
    scores; `score` leads from what is maximised to the units of the scores.
    """
    count, generator = len(choice.tokens), torch.Generator().manual_seed(seed)
    outcomes = choice.tokens.expand(DRAWS, count, -1)
    if not space.silent:
        seeds = torch.randint(2**31 - 1, (DRAWS,), generator=generator).tolist()
        drawn = [sampled_channel(space, count, one, even=False).realise_once(choice.tokens) for one in seeds]
        outcomes = torch.stack(drawn)
    rows, place = torch.unique(outcomes.reshape(DRAWS * count, -1), dim=0, return_inverse=True)
    scores = read_by(space, predict)(rows)[:, place].view(-1, DRAWS, count)
    rising = expected_best(predict(known[:CONSIDERED]), scores, seed)
    return Outlook(
        best_so_far=best,
        believed=score(float(rising[0])),
        expected_best=[score(float(value)) for value in rising[1:]],
        mean=mean,
    )
