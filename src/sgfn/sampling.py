"""Sampling from a trained model, and what an order can be expected to give."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import torch
from jaxtyping import Float, Int
from torch import Tensor

from sgfn.checks import in_range
from sgfn.envs import Env, SequenceEnv
from sgfn.landscapes.base import Landscape
from sgfn.learner import Learner
from sgfn.rollout import clocks, draw
from sgfn.runs import Run
from sgfn.sample_files import WRITERS, writing
from sgfn.spelling import Letters, spell, spell_objects
from sgfn.table_files import kind_of
from sgfn.train import pick_device
from sgfn.trajectories import Samples

LARGEST_TABLE = 2_000_000
SHORTLIST = 64
"""Orders whose expectation is estimated from draws: those that score best if they come out intact."""


def as_orders(env: SequenceEnv, intended: Int[Tensor, "N T"]) -> Int[Tensor, "N O"]:
    """Intentions as sequences to order: from the first stop on there are blanks, as there are for padding.

    A stop that slipped into a token is followed by more intentions; an order ends at the stop all the same.
    """
    ended = ((intended < 0) | (intended >= env.vocab)).cummax(-1).values
    return torch.where(ended, env.blank, intended)


@torch.no_grad()
def expected_scores(
    env: SequenceEnv, landscape: Landscape, orders: Int[Tensor, "N O"], generator: torch.Generator, draws: int = 256
) -> Float[Tensor, " N"]:
    r"""Mean score of what comes out when a whole sequence is ordered at once, $E[R(x)\,|\,a_1 \dots a_L]$.

    Exact where the score table is small (the kernel acts on one position after the other), else a mean over draws.
    """
    if tabulable(env):
        return _exact_expectation(env, landscape)[env.object_index(orders)].float()
    total = torch.zeros(orders.shape[0])
    for start in range(0, draws, 16):  # a few at a time: fewer calls, and memory stays flat
        copies = min(16, draws - start)
        total += landscape.scores(_garble(env, orders.repeat(copies, 1), generator)).view(copies, -1).sum(0)
    return total / draws


def tabulable(env: SequenceEnv) -> bool:
    """Whether expectations come from a complete table of scores."""
    return not env.stop and env.num_objects <= LARGEST_TABLE


def _exact_expectation(env: SequenceEnv, landscape: Landscape) -> Float[Tensor, " N"]:
    scores = landscape.scores(env.all_objects()).double().reshape((env.vocab,) * env.length)
    roots = [states[:1] for states in env.levels()]  # noise may depend on the position, not on the tokens
    total = torch.zeros_like(scores)
    for rate, weight in env.noise.rates(env.horizon):
        table = scores
        for axis, root in enumerate(roots):
            kernel = env.kernel(root, torch.float64, rate)[0]
            table = torch.tensordot(kernel, table.movedim(axis, 0), 1).movedim(0, axis)
        total += weight * table
    return total.reshape(-1)


def _garble(env: SequenceEnv, orders: Int[Tensor, "N O"], generator: torch.Generator) -> Int[Tensor, "N O"]:
    state, rate = env.initial(orders.shape[0]), env.noise.draw_rates(orders.shape[0], generator)
    for t in range(env.horizon):
        action = orders[:, t].clamp(max=env.actions - 1)  # a blank is the stop action by its very code
        outcome = draw(env.kernel_row(state, action, rate), clocks((orders.shape[0], env.actions), generator))
        state = env.apply(state, outcome)
    return env.objects(state)


@dataclass(frozen=True, kw_only=True)
class Order:
    """A sequence to order, and what to expect of it."""

    order: str
    expected: float
    """Mean score of what is realised."""
    intact: float
    """Probability that it comes out as ordered."""
    score: float
    """Score if it does."""


def best_orders(env: Env, landscape: Landscape, samples: Samples, count: int = 10, seed: int = 0) -> list[Order]:
    """The distinct sequences the policy intended, best expectation first; empty where orders make no sense (a grid).

    What was measured beforehand stands for choice too.
    Where expectations must be drawn, only a shortlist is looked at, and with fewer draws where scores are dear.
    """
    if not isinstance(env, SequenceEnv):
        return []
    orders, known = as_orders(env, samples.intended), landscape.offline_objects()
    orders = (orders if known is None else torch.cat([orders, known.to(orders.device)])).unique(dim=0)
    lengths = env.written(orders)
    orders = orders[lengths >= (env.min_length if env.stop else env.length)]
    if not tabulable(env):
        orders = orders[landscape.scores(orders).argsort(descending=True, stable=True)[: max(count, SHORTLIST)]]
    generator, draws = torch.Generator().manual_seed(seed), 64 if landscape.on_host else 256
    expected = expected_scores(env, landscape, orders, generator, draws)
    best = expected.argsort(descending=True, stable=True)[:count]
    orders = orders[best]
    figures = (expected[best], _intact(env, orders), landscape.scores(orders))
    return [
        Order(order=text, expected=float(e), intact=float(i), score=float(s))
        for text, e, i, s in zip(env.decode(orders), *figures, strict=True)
    ]


def _intact(env: SequenceEnv, orders: Int[Tensor, "N O"]) -> Float[Tensor, " N"]:
    """Probability that every token comes out as ordered."""
    rates = env.noise.rates(env.horizon)
    return torch.stack([weight * _intact_at(env, orders, rate) for rate, weight in rates]).sum(0)


def _intact_at(env: SequenceEnv, orders: Int[Tensor, "N O"], rate: float | None) -> Float[Tensor, " N"]:
    chance, state = torch.ones(orders.shape[0], dtype=torch.float64), env.initial(orders.shape[0])
    for t in range(env.horizon):
        action = orders[:, t].clamp(max=env.actions - 1)
        here = env.kernel(state, torch.float64, rate)[torch.arange(orders.shape[0]), action, action]
        chance = torch.where(env.done(state), chance, chance * here)
        state = env.apply(state, action)
    return chance


Progress = Callable[[int], None]
"""Told how many samples are written, block by block."""


def sample(
    run: Path | str,
    n: int,
    out: Path | str,
    *,
    seed: int = 0,
    device: str = "auto",
    overwrite: bool = False,
    progress: Progress | None = None,
) -> int:
    """Draw n objects from a trained run into a CSV (or .csv.gz, or .parquet), block by block: memory stays flat.

    Columns: what was realised, its score, and what was intended. Of a forecast: n paths of each series, as unique_id,
    sample, ds, y.
    """
    out = Path(out)
    if n < 1:
        raise ValueError(f"-n must be at least 1, got {n}")
    in_range("seed", seed, 0, 2**31 - 1)
    if out.exists() and not overwrite:
        raise ValueError(f"{out} exists: add --overwrite to replace it, or give --out another name")
    if Run(path=Path(run)).read_config()[0] == "series":
        return sample_paths(Path(run), n, out, seed, device)
    kind_of(out, WRITERS)
    write_samples(Run(path=Path(run)).load(pick_device(device)), n, out, seed, progress)
    return n


def write_samples(learner: Learner, n: int, out: Path, seed: int, progress: Progress | None = None) -> None:
    """Draw from a learner into a file, whole or absent."""
    env, done = learner.task.env, 0
    with writing(out) as write:
        for block in learner.stream(n, seed):
            texts = spell_objects(env, block.objects.numpy())
            write(texts, block.scores.numpy(), _spell_intended(env, block.intended))
            done += block.scores.shape[0]
            if progress is not None:
                progress(done)


def _spell_intended(env: Env, intended: Int[Tensor, "N T"]) -> Letters:
    """Orders as text; on a grid, the numbers of the moves."""
    if isinstance(env, SequenceEnv):
        return spell_objects(env, (as_orders(env, intended) if env.stop else intended).numpy())
    return spell(intended.numpy(), [str(i) for i in range(env.actions)], " ")


def sample_paths(run: Path, n: int, out: Path, seed: int, device: str) -> int:
    """Draw n paths of each series that a forecast has learned, from its end on, into a CSV or Parquet file."""
    from sgfn import forecast_files  # the forecaster needs this package's other verbs
    from sgfn.series.forecaster import Forecaster

    kind_of(out, forecast_files.WRITERS)
    drawn = Forecaster.load(run, device=device).predict(samples=n, seed=seed)
    forecast_files.write_table(out, forecast_files.path_table(drawn))
    return n * len(drawn)
