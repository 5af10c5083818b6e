"""Design played on a known landscape: what a method's plates bring, beside the best that could have been ordered."""

import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor

from sgfn.config.checks import shorten, whole_number
from sgfn.config.registry import called_as, imported
from sgfn.design.players import METHODS
from sgfn.design.playing import DesignPlayer
from sgfn.design.rivals import History
from sgfn.design.search import LARGEST_EXACT
from sgfn.design.space import OrderSpace, row_keys
from sgfn.design.values import all_exact, exact_values, sampled_channel
from sgfn.envs import SequenceEnv
from sgfn.landscapes.tasks import Task

LEADERS = 100
"""Best sequences measured whose mean score and differences are told."""
TRUTH_DRAWS = 256
"""Outcomes of each order from which its true value is estimated where it cannot be computed."""


@dataclass(frozen=True, kw_only=True)
class RoundResult:
    """What one plate brought, in the user's units."""

    round: int
    measured: int
    """Sequences measured so far, the first ones included."""
    best: float
    """Best score measured so far."""
    top: float
    """Mean of the 100 best scores measured so far, each sequence once."""
    diversity: float
    """Letters in which two of those 100 differ, on average."""
    mean: float
    """Mean score of what came out of this plate."""
    expected: float
    """Expected mean score of what this plate's orders give under the noise."""
    regret: float | None
    """How much less that is than of the best plate there is; None where it is not known."""
    seconds: float
    """CPU time of the proposal."""


@dataclass(frozen=True, kw_only=True)
class Game:
    """All rounds of one method with one seed."""

    task: str
    method: str
    proxy: str
    noise: str
    seed: int
    start: int
    orders: int
    rounds: list[RoundResult]

    def to_json(self) -> dict[str, Any]:
        """Plain data."""
        return asdict(self)


@dataclass(frozen=True, eq=False)
class Truth:
    """A landscape of sequences and its noise, which players see through measurements alone."""

    task: Task

    @property
    def env(self) -> SequenceEnv:
        """The environment of the task."""
        if not isinstance(self.task.env, SequenceEnv) or not self.task.env.by_letter:
            raise ValueError(f"design is for sequences, and {self.task.name} has none: choose another task")
        return self.task.env

    @cached_property
    def space(self) -> OrderSpace:
        """The sequences that may be ordered."""
        return OrderSpace.of(self.env)

    @property
    def sign(self) -> float:
        """-1 where low scores are good, else 1."""
        return -1.0 if self.task.landscape.score_transform.minimise else 1.0

    def scores(self, tokens: Int[Tensor, "N L"]) -> Float[Tensor, " N"]:
        """What players maximise: the scores of the landscape."""
        return self.task.landscape.scores(tokens)

    def merits(self, tokens: Int[Tensor, "N L"], scores: Float[Tensor, " N"] | None = None) -> Float[Tensor, " N"]:
        """Scores in the user's units, negative where low ones are good; what is told is `sign` times them."""
        landscape = self.task.landscape
        return self.sign * landscape.told(tokens, landscape.scores(tokens) if scores is None else scores)

    @cached_property
    def values(self) -> Float[Tensor, " N"] | None:
        """Exact expected merit of every order, where all can be listed."""
        shape = self.task.landscape.score_transform
        space = replace(self.space, failed=self.sign * shape.score(self.space.failed))
        if not all_exact(space, LARGEST_EXACT):
            return None
        table = self.merits(space.env.all_objects())[None]
        return table[0] if space.silent else exact_values(space, table)[0]

    @cached_property
    def best_batch(self) -> Float[Tensor, " N"] | None:
        """Expected merits of all orders that are allowed, best first."""
        if self.values is None:
            return None
        allowed = self.space.allowed(self.space.env.all_objects())
        return self.values[allowed].sort(descending=True).values

    def expected(self, orders: Int[Tensor, "N L"], seed: int = 0) -> Float[Tensor, " N"]:
        """Expected merit of orders, exact where it can be."""
        if self.values is not None:
            return self.values[self.space.env.object_index(orders)]
        if self.space.silent:
            return self.merits(orders)
        drawn = sampled_channel(self.space, TRUTH_DRAWS, seed).realise(orders)
        return self.merits(drawn.flatten(0, 1)).view(TRUTH_DRAWS, -1).mean(0)

    def realise(self, orders: Int[Tensor, "N L"], seed: int) -> Int[Tensor, "N L"]:
        """What comes out of orders, each with its own luck."""
        if self.space.silent:
            return orders
        return sampled_channel(self.space, len(orders), seed, even=False).realise_once(orders)


def play(
    task: Task,
    method: str,
    *,
    rounds: int = 4,
    orders: int = 96,
    start: int = 96,
    seed: int = 0,
    proxy: str = "design",
    first: History | None = None,
    device: str = "cpu",
) -> Game:
    """Play a design: random sequences are measured first, or those of `first`, then plates that the method fills.

    Of each order one outcome comes out, is sequenced and measured without error. Players of ours fit their proxies on
    the device.
    """
    truth = Truth(task)
    for name, value in (("rounds", rounds), ("orders", orders), ("start", start)):
        whole_number(name, value, 1)
    history = first_history(truth, start, seed) if first is None else first
    return Game(
        task=task.name,
        method=method,
        proxy=proxy,
        noise=task.env.noise_summary,
        seed=seed,
        start=len(history.tokens),
        orders=orders,
        rounds=list(_rounds(truth, method, rounds, orders, history, seed, proxy, device)),
    )


def _rounds(
    truth: Truth, method: str, rounds: int, orders: int, history: History, seed: int, proxy: str, device: str
) -> Iterator[RoundResult]:
    entry = METHODS[method]
    with called_as("method", method):
        player = imported(entry.make)(truth.space, proxy, **dict(entry.options))
        if not callable(getattr(player, "propose", None)):
            wanted = "a player with propose(history, count, seed)"
            raise ValueError(f"method {method!r}: makes a {type(player).__name__}, not {wanted}")
    if isinstance(player, DesignPlayer):
        player.device = device
    for number in range(1, rounds + 1):
        began = time.process_time()
        with called_as("method", method):
            chosen = checked_plate(method, player.propose(history, orders, 1000 * seed + number), truth.space, orders)
        seconds = time.process_time() - began
        outcomes = truth.realise(chosen, 1000 * seed + number)
        scores = truth.scores(outcomes)
        history = joined(history, outcomes, scores)
        best = leaders(history)
        merits = truth.merits(best.tokens, best.scores)
        expected = float(truth.expected(chosen).mean())
        bound = None if truth.best_batch is None else float(truth.best_batch[: len(chosen)].mean())
        yield RoundResult(
            round=number,
            measured=len(history.tokens),
            best=truth.sign * float(merits.max()),
            top=truth.sign * float(merits.mean()),
            diversity=mean_difference(best.tokens),
            mean=truth.sign * float(truth.merits(outcomes, scores).mean()),
            expected=truth.sign * expected,
            regret=None if bound is None else bound - expected,
            seconds=seconds,
        )


def checked_plate(method: str, found: Any, space: OrderSpace, count: int) -> Int[Tensor, "W L"]:
    """What a player has proposed, if it is a plate: 1 to `count` rows of whole numbers that the space holds."""
    wanted = f"a tensor of whole numbers [1 to {count}, {space.max_length}]"
    if not isinstance(found, Tensor) or found.dtype.is_floating_point or found.dtype.is_complex or found.ndim != 2:
        kind = f"{found.dtype} {list(found.shape)}" if isinstance(found, Tensor) else type(found).__name__
        raise ValueError(f"method {method!r}: proposes a {kind}, must be {wanted}")
    if not 1 <= len(found) <= count or found.shape[1] != space.max_length:
        raise ValueError(f"method {method!r}: proposes a plate of shape {list(found.shape)}, must be {wanted}")
    found = found.detach().long().cpu()
    letters = (found >= 0) & (found < space.vocab)
    inside = letters.cumprod(1).sum(1)
    ends = (letters | (found == space.vocab)).all(1) & (inside == letters.sum(1)) & (inside >= space.min_length)
    if not ends.all():
        row = int((~ends).nonzero()[0])
        least = f"{space.min_length} letters at least as 0 to {space.vocab - 1}, {space.vocab} behind the last"
        raise ValueError(f"method {method!r}: order {row + 1} is {shorten(str(found[row].tolist()))}, must be {least}")
    return found


def first_history(truth: Truth, start: int, seed: int) -> History:
    """Random sequences with their scores; a landscape that knows some of its sequences alone draws among those."""
    generator = torch.Generator().manual_seed(seed)
    known = truth.task.landscape.offline_objects()
    if known is not None:
        tokens = known[torch.randperm(len(known), generator=generator)[:start]].cpu()
    else:
        tokens = truth.space.random(start, generator).unique(dim=0)
    return History(tokens=tokens, scores=truth.scores(tokens))


def joined(history: History, tokens: Int[Tensor, "N L"], scores: Float[Tensor, " N"]) -> History:
    """What was measured before and now, each sequence once."""
    known, fresh = set(row_keys(history.tokens)), []
    for place, key in enumerate(row_keys(tokens)):
        if key not in known:
            known.add(key)
            fresh.append(place)
    return History(tokens=torch.cat([history.tokens, tokens[fresh]]), scores=torch.cat([history.scores, scores[fresh]]))


def leaders(history: History, count: int = LEADERS) -> History:
    """The best of what was measured."""
    best = history.scores.topk(min(count, len(history.scores))).indices
    return History(tokens=history.tokens[best], scores=history.scores[best])


def mean_difference(tokens: Int[Tensor, "N L"]) -> float:
    """Letters in which two rows differ, averaged over all pairs; 0 for one row.

    >>> mean_difference(torch.tensor([[0, 0], [0, 1], [1, 1]]))
    1.3333333333333333
    """
    pairs = len(tokens) * (len(tokens) - 1)
    return float((tokens[:, None] != tokens).sum()) / pairs if pairs else 0.0


def summary_of(games: list[Game]) -> list[dict[str, Any]]:
    """Means over seeds of each method's last round, with the standard error of the best score."""
    found = []
    for method in dict.fromkeys(game.method for game in games):
        last = [game.rounds[-1] for game in games if game.method == method]
        best = torch.tensor([one.best for one in last], dtype=torch.float64)
        seconds = [sum(one.seconds for one in game.rounds) for game in games if game.method == method]
        regrets = [one.regret for one in last if one.regret is not None]
        found.append(
            {
                "method": method,
                "seeds": len(last),
                "best": float(best.mean()),
                "best_error": float(best.std()) / len(best) ** 0.5 if len(best) > 1 else 0.0,
                "expected": sum(one.expected for one in last) / len(last),
                "regret": sum(regrets) / len(regrets) if regrets else None,
                "seconds": sum(seconds) / len(seconds),
            }
        )
    return found
