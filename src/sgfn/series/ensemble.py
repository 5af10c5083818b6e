"""Ensembles of networks whose mean law is one outcome policy, and the paths drawn from it."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Float, Float64, Int
from torch import Tensor

from sgfn.envs.base import Env
from sgfn.envs.forecast import ForecastEnv
from sgfn.learning.rollout import no_reward, rollout
from sgfn.nets.transformer import Cache
from sgfn.series.bins import Bins
from sgfn.series.data import forecast_env
from sgfn.series.network import SeriesNet, SeriesReader
from sgfn.series.windows import Inputs

MEMORY = 2**26
"""Most numbers in the key/value caches while paths are drawn."""


def log_mixture(log_laws: Sequence[Float[Tensor, "*batch K"]]) -> Float[Tensor, "*batch K"]:
    r"""Logarithm of the mean of several laws, $\log \frac1M \sum_m c_m(k|s)$."""
    return torch.logsumexp(torch.stack(list(log_laws)), 0) - math.log(len(log_laws))


class Ensemble:
    """An actor for rollouts that acts by the mean of its members' laws, and sums up the law of each step it visits.

    The mean of the visited laws over paths estimates a step's marginal law more smoothly than counting paths in each
    bin.
    """

    def __init__(self, env: Env, nets: Sequence[SeriesNet], inputs: Inputs) -> None:
        self.readers = [SeriesReader(env, net, inputs) for net in nets]
        self.caches: list[Cache] = []
        windows, horizon = inputs.reference.shape
        self.law = torch.zeros(windows, horizon, len(nets[0].centres) - 1, device=inputs.unit.device)
        self.count = torch.zeros(windows, 1, 1, device=inputs.unit.device)

    @torch.no_grad()
    def log_law(self, state: Int[Tensor, "*batch S"]) -> Float[Tensor, "*batch K"]:
        """log c(.|s) of any states, each computed by itself."""
        return log_mixture([reader.net.log_law(reader(state)) for reader in self.readers])

    def log_along(self, states: Int[Tensor, "B N S"]) -> Float[Tensor, "B N K"]:
        """log c(.|s) of the first N states of paths, in one pass."""
        return log_mixture([reader.net.log_law(reader.along(states)) for reader in self.readers])

    @torch.no_grad()
    def log_policy(self, t: int, state: Int[Tensor, "B S"]) -> Float[Tensor, "B K"]:
        """log c(.|s) at step t of the running rollouts, with cached keys and values."""
        if t == 0:
            begun = [reader.start(state) for reader in self.readers]
            self.caches, hidden = [cache for cache, _ in begun], [first for _, first in begun]
        else:
            hidden = [reader.step(state, cache, t) for reader, cache in zip(self.readers, self.caches, strict=True)]
        log_law = log_mixture([reader.net.log_law(rows) for reader, rows in zip(self.readers, hidden, strict=True)])
        window = self.readers[0].raw(state)[:, 0]
        self.law[:, t].index_add_(0, window, log_law.exp())
        if t == 0:
            self.count.index_add_(0, window, torch.ones_like(self.count[:1]).expand(len(window), 1, 1))
        return log_law

    def observe(self, t: int, intended: Int[Tensor, " B"], realised: Int[Tensor, " B"]) -> None:
        """Do nothing: the next state holds the outcome already."""

    @property
    def mean_law(self) -> Float64[Tensor, "W H K"]:
        """Mean of the laws visited so far, by window and step."""
        return (self.law / self.count.clamp(min=1)).double()


@dataclass(frozen=True, kw_only=True)
class DrawnPaths:
    """Paths of W windows as bins, N each, and the law of each step."""

    intended: Int[Tensor, "W N H"]
    """Bins before the measurement error."""
    realised: Int[Tensor, "W N H"]
    """Bins as measured."""
    law: Float64[Tensor, "W H K"]
    """Law of each step's bin before the measurement error."""


def draw_paths(
    nets: Sequence[SeriesNet], bins: Bins, inputs: Inputs, deviation: float, samples: int, generator: torch.Generator
) -> DrawnPaths:
    """Draw paths of windows by rollouts, in batches small enough to bound the memory of the caches."""
    core = nets[0].core
    rows = max(64, MEMORY // (len(nets) * 2 * len(core.blocks) * core.length * core.width))
    parts = []
    for some in torch.arange(len(inputs.unit), device=generator.device).split(rows):
        env, here = forecast_env(bins, inputs[some], deviation), inputs[some]
        actor, each = Ensemble(env, nets, here), max(1, rows // len(some))
        counts = [min(each, samples - start) for start in range(0, samples, each)]
        found = [_roll(env, actor, count, generator) for count in counts]
        parts.append((*(torch.cat(part, 1) for part in zip(*found, strict=True)), actor.mean_law))
    intended, realised, law = (torch.cat(part) for part in zip(*parts, strict=True))
    return DrawnPaths(intended=intended, realised=realised, law=law)


def _roll(
    env: ForecastEnv, actor: Ensemble, count: int, generator: torch.Generator
) -> tuple[Int[Tensor, "W N H"], Int[Tensor, "W N H"]]:
    """Draw `count` paths of each window; row i of a rollout belongs to window i modulo their number."""
    batch = rollout(env, actor, no_reward, batch=count * env.windows, generator=generator)
    by_window = (count, env.windows)
    return (
        batch.intended.unflatten(0, by_window).transpose(0, 1),
        batch.realised.unflatten(0, by_window).transpose(0, 1),
    )
