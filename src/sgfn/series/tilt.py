r"""Scenarios in proportion to how much they matter: paths of a fitted forecast, tilted by a cost.

.. math:: q(\mathrm{path}) \propto p(\mathrm{path})\, e^{\mathrm{cost}(\mathrm{path}) / T}

A policy over bins that begins as the forecast itself is trained by trajectory balance (or `kl`) on the forecast
environment with this reward, the mean over places within the bins. Each drawn path then takes one of its places, in
proportion to exp(cost/T). Importance weights say how far the policy got: their effective sample size, and the tilted
mean against that of the forecast's own paths, weighted by exp(cost/T).

Reference: Hu et al. (2024), Amortizing intractable inference in large language models, ICLR.
"""

import copy
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import torch
from jaxtyping import Float, Float64, Int
from torch import Tensor, nn

from sgfn.config import NetConfig, RewardConfig, TrainConfig
from sgfn.config.checks import in_range
from sgfn.envs.base import Env
from sgfn.envs.forecast import ForecastEnv
from sgfn.envs.tabulated import tabulate
from sgfn.envs.trajectories import Trajectories
from sgfn.landscapes.paths import Paths
from sgfn.landscapes.tasks import Task
from sgfn.learning.learner import seeded
from sgfn.learning.rollout import Policy, rollout
from sgfn.learning.scoring import score
from sgfn.learning.trainer import Rest, Trainer
from sgfn.nets.encoders import Reader
from sgfn.nets.heads import DynamicsNet, FlowNets
from sgfn.nets.transformer import Cache
from sgfn.objectives import scored_as
from sgfn.series.data import cuts_of, forecast_env
from sgfn.series.ensemble import Drawn, Ensemble
from sgfn.series.forecaster import Forecaster
from sgfn.series.learner import ForecastLearner
from sgfn.series.network import SeriesReader
from sgfn.series.recall import laws
from sgfn.series.windows import Inputs, Windows

Cost = Callable[[Float64[np.ndarray, "N H"]], Any]
"""Paths, in units of the data, to one number each: the larger, the more the path matters."""
BLOCK = 512
"""Paths drawn at a time."""
PLACES = 16
"""Places within a bin at which the cost is asked for; the outermost lies 3.5 mean excesses beyond the last edge."""
WALKS = 512
"""Paths from which the law of the walk is taken."""


def places(count: int, horizon: int, seed: int) -> Float64[Tensor, "J H"]:
    """Shares of a bin's mass at which a path may lie: all of `count` even ones at each step, in orders of their own."""
    generator = torch.Generator().manual_seed(seed)
    order = torch.stack([torch.randperm(count, generator=generator) for _ in range(horizon)], 1)
    return (order + 0.5).double() / count


class TiltedPaths(Paths):
    r"""log R = log p(path) + log of the mean of $e^{(cost - level)/T}$ over places within the path's bins.

    p is the fitted forecast; the level makes the mean of R one, at first.
    """

    on_host = True

    def __init__(
        self, table: Float64[Tensor, "J H K"], law: Ensemble, env: ForecastEnv, cost: Cost, temperature: float
    ) -> None:
        super().__init__(table)
        self.law, self.env, self.cost, self.temperature = law, env, cost, temperature
        self.level = 0.0

    def paths(self, objects: Int[Tensor, "N O"]) -> Float64[Tensor, "J N H"]:
        """Each object at each of its places, in units of the data."""
        return self.table[:, torch.arange(self.env.horizon, device=objects.device), objects[:, 1:]]

    def cost_of(self, paths: Float64[Tensor, "J N H"]) -> Float64[Tensor, "J N"]:
        """The cost, checked."""
        rows = paths.flatten(0, 1).cpu().numpy()
        found = np.asarray(self.cost(rows), dtype=np.float64)
        if found.shape != (len(rows),):
            raise ValueError(f"the cost must give one number for each of {len(rows)} paths, got shape {found.shape}")
        if not np.isfinite(found).all():
            raise ValueError(f"the cost must be finite, got {found[~np.isfinite(found)][0]} for a path")
        return torch.from_numpy(found).to(paths.device).view(paths.shape[:-1])

    def log_tilt(self, cost: Float64[Tensor, "J N"]) -> Float64[Tensor, " N"]:
        """Logarithm of the mean of exp((cost - level)/T) over places."""
        return torch.logsumexp((cost - self.level) / self.temperature, 0) - math.log(len(cost))

    def levelled(self, drawn: Int[Tensor, "N O"]) -> None:
        """Choose the level by the forecast's own paths."""
        found = self.log_tilt(self.cost_of(self.paths(drawn)))
        self.level += self.temperature * float(torch.logsumexp(found, 0) - math.log(len(drawn)))

    def scores(self, objects: Int[Tensor, "*batch O"]) -> Float[Tensor, "*batch"]:
        """What the cost adds to the log-reward."""
        found = self.log_tilt(self.cost_of(self.paths(objects.flatten(0, -2))))
        return found.float().view(objects.shape[:-1])

    def log_reward(self, objects: Int[Tensor, "*batch O"], config: RewardConfig) -> Float[Tensor, "*batch"]:
        """The forecast's log-probability, raised by the cost."""
        return self.log_forecast(objects) + self.scores(objects)

    @torch.no_grad()
    def log_forecast(self, objects: Int[Tensor, "*batch O"]) -> Float[Tensor, "*batch"]:
        """log p(path): of the bins as measured."""
        paths = objects.flatten(0, -2)
        states = paths[:, None].expand(-1, self.env.horizon, -1)
        kernel = self.env.kernel(self.env.initial(1, objects.device))[0]
        log_law = (self.law.log_along(states).exp() @ kernel).clamp(min=1e-30).log()
        return log_law.gather(-1, paths[:, 1:, None])[..., 0].sum(-1).view(objects.shape[:-1])


class TiltReader(Reader):
    """A network that learns, beside the log-law of the forecast, which does not."""

    def __init__(self, env: Env, law: Ensemble, inputs: Inputs) -> None:
        super().__init__()
        self.env, self.law = env, law
        self.reader = SeriesReader(env, copy.deepcopy(law.readers[0].net).requires_grad_(True), inputs)
        self.width = self.reader.width + env.actions

    def forward(self, state: Int[Tensor, "*batch S"]) -> Float[Tensor, "*batch H"]:
        """Each state by itself."""
        return torch.cat([self.reader(state), self.law.log_law(state)], -1)

    def along(self, states: Int[Tensor, "B N S"]) -> Float[Tensor, "B N H"]:
        """The first N states of paths."""
        with torch.no_grad():
            log_law = self.law.log_along(states)
        return torch.cat([self.reader.along(states), log_law], -1)

    def start(self, state: Int[Tensor, "B S"]) -> tuple[Cache, Float[Tensor, "B H"]]:
        """A memory, and the root; the forecast keeps its own."""
        cache, hidden = self.reader.start(state)
        return cache, torch.cat([hidden, self.law.log_policy(0, state)], -1)

    def step(self, state: Int[Tensor, "B S"], cache: Cache, t: int) -> Float[Tensor, "B H"]:
        """State t of a path."""
        return torch.cat([self.reader.step(state, cache, t), self.law.log_policy(t, state)], -1)


class TiltNets(FlowNets):
    """Policy and flow that begin at the forecast: what heads over actions say is added to its log-law."""

    def __init__(self, env: Env, form: str, encoder: TiltReader) -> None:
        super().__init__(env, form, NetConfig(), encoder=encoder)
        for head in (self.policy, self.outcome):
            if head is not None:
                nn.init.zeros_(head.weight)

    def logits(self, head: nn.Module, hidden: Float[Tensor, "*batch H"]) -> Float[Tensor, "*batch A"]:
        """The log-law, and the head's correction."""
        return hidden[..., -self.env.actions :] + head(hidden)


class TiltTrainer(Trainer):
    """The trainer of flow networks, with networks that begin at the forecast."""

    def __init__(self, task: Task, device: torch.device, encoder: TiltReader) -> None:
        self.beginning = encoder
        super().__init__(task, device)

    def _networks(self) -> tuple[FlowNets, DynamicsNet]:
        with seeded(self.config.seed):
            nets = TiltNets(self.beginning.env, scored_as(self.config), self.beginning)
            model = DynamicsNet(self.env, self.config.dynamics)
        return nets.to(self.device), model.to(self.device)

    def _record(self, rest: Rest) -> None:
        """Without rewards above one: exp(cost/T) may be larger than any number, and nobody reads its mean."""
        super()._record(rest._replace(log_reward=rest.log_reward.clamp(max=0.0)))

    @torch.no_grad()
    def log_drawn(self, batch: Trajectories) -> Float[Tensor, " B"]:
        """Log-probability of the paths of a batch under the policy and the measurement error."""
        log_kernel = self.log_kernel(batch.states[:, :-1])
        return score(self.scorer(self.nets, None), batch, "marginal", log_kernel).log_pf.sum(1)


@dataclass(frozen=True, kw_only=True, eq=False)
class Tilted:
    """Scenarios of one window, and how far they can be trusted."""

    name: str
    cut: int
    stamps: np.ndarray  # H
    paths: Float64[np.ndarray, "N H"]
    """Drawn by the trained policy, in units of the data."""
    cost: Float64[np.ndarray, " N"]
    weight: Float64[np.ndarray, " N"]
    """Importance of each path, with mean one: all are one where the policy is perfect."""
    ess: float
    """Effective sample size of the policy's paths, as a share."""
    ess_forecast: float
    """The same of the forecast's own paths, weighted by exp(cost/T): what there is without training."""
    mean: Float64[np.ndarray, " H"]
    """Of the policy's paths, weighted."""
    mean_forecast: Float64[np.ndarray, " H"]
    """Of the forecast, without the tilt."""
    mean_checked: Float64[np.ndarray, " H"]
    """The tilted mean from the forecast's own paths, weighted."""
    error: Float64[np.ndarray, " H"]
    """Standard error of the difference between the two tilted means."""

    @property
    def summary(self) -> dict[str, float]:
        """Figures for a table: effective sample sizes, and the largest difference of means in standard errors."""
        away = np.abs(self.mean - self.mean_checked)
        apart = np.divide(away, self.error, out=np.zeros_like(away), where=self.error > 0)
        figures = {"ess": self.ess, "ess_forecast": self.ess_forecast, "mean_cost": float(self.cost.mean())}
        return figures | {"apart": float(apart.max()), "shift": float((self.mean - self.mean_forecast).mean())}


def tilt(
    forecaster: Forecaster,
    cost: Cost,
    *,
    temperature: float,
    origin: tuple[str, int] | None = None,
    objective: Literal["tb", "kl"] = "tb",
    steps: int = 300,
    batch: int = 64,
    samples: int = 1024,
    seed: int = 0,
) -> Tilted:
    """Train scenarios of one window (the end of the first series, or an origin) and check them."""
    in_range("temperature", temperature, 1e-9)
    in_range("samples", samples, 2)
    panel = forecaster.fitted.data.panel
    name, cut = origin if origin is not None else (panel.series[0].name, len(panel.series[0]))
    windows = Windows(panel, forecaster.fitted.data.plan)
    cuts = cuts_of(panel, [(name, cut)])
    trainer = tilt_trainer(forecaster, windows, cuts, cost, temperature, tilt_config(objective, steps, batch, seed))
    for _ in range(steps):
        trainer.step()
    trainer.read_meters()
    own = _draw(trainer, trainer.actor(), samples, seed, tilted=True)
    plain = _draw(trainer, trainer.beginning.law, samples, seed + 1, tilted=False)
    return Tilted(
        name=name,
        cut=cut,
        stamps=windows.stamps_at(cuts)[0],
        paths=own.values,
        cost=own.cost,
        weight=own.weight / own.weight.mean(),
        ess=own.ess,
        ess_forecast=plain.ess,
        mean=own.mean,
        mean_forecast=plain.untilted,
        mean_checked=plain.mean,
        error=np.sqrt(own.variance + plain.variance),
    )


def tilt_config(objective: Literal["tb", "kl"], steps: int, batch: int, seed: int) -> TrainConfig:
    """How a tilt is trained: on the policy's own paths, with the noise known."""
    return TrainConfig().with_(
        objective=objective,
        steps=steps,
        batch=batch,
        seed=seed,
        explore=0.0,
        dynamics__mode="known",
        optim__lr=1e-3,
        optim__warmup=20,
        optim__clip=1.0,
    )


def tilt_trainer(
    forecaster: Forecaster,
    windows: Windows,
    cuts: Int[Tensor, "1 2"],
    cost: Cost,
    temperature: float,
    config: TrainConfig,
) -> TiltTrainer:
    """A trainer whose policy is the forecast of one window, and whose reward is the tilted law."""
    learner = forecaster.fitted
    inputs = windows.inputs(cuts).to(learner.device)
    env = forecast_env(learner.data.bins, inputs, learner.deviation)
    members = [copy.deepcopy(net).requires_grad_(False) for net in learner.members]
    drawn = learner.draw_paths(inputs, WALKS, config.seed)
    table = bin_values(learner, windows, cuts, drawn).to(learner.device)
    landscape = TiltedPaths(table, Ensemble(env, members, inputs), env, cost, temperature)
    landscape.levelled(torch.nn.functional.pad(drawn.realised[0], (1, 0)))
    summary = f"{env.horizon} steps of a forecast, tilted"
    task = Task(name="tilt", summary=summary, env=env, landscape=landscape, beta=1.0, config=config)
    tables = tabulate(env, learner.device)  # as the trainer has it
    return TiltTrainer(task, learner.device, TiltReader(tables, Ensemble(tables, members, inputs), inputs))


def bin_values(
    learner: ForecastLearner, windows: Windows, cuts: Int[Tensor, "1 2"], drawn: Drawn
) -> Float64[Tensor, "J H K"]:
    """What each bin of a window is worth at each step and place: laid from the law of the walk onto the forecast's."""
    inputs, bins = windows.inputs(cuts), learner.data.bins
    walked, law = laws(learner, windows, cuts, drawn)  # 1 H K
    index = torch.arange(bins.count).expand(walked.shape)
    shares = places(PLACES, walked.shape[1], 0)[:, :, None].expand(-1, -1, bins.count)
    scaled = torch.cat([bins.carry(index, share[None], walked, law) for share in shares])
    return scaled * inputs.unit[0] + inputs.reference[0, :, None]


@dataclass(frozen=True, kw_only=True)
class _Weighed:
    """Paths with the logarithm of their importance."""

    values: Float64[np.ndarray, "N H"]
    cost: Float64[np.ndarray, " N"]
    weight: Float64[np.ndarray, " N"]
    untilted: Float64[np.ndarray, " H"]
    """Mean of the paths as they were drawn, over all places within their bins, without weights."""

    @property
    def count(self) -> float:
        r"""Effective number of paths, $(\sum w)^2 / \sum w^2$."""
        return float(self.weight.sum() ** 2 / (self.weight**2).sum())

    @property
    def ess(self) -> float:
        """The same as a share."""
        return self.count / len(self.weight)

    @property
    def mean(self) -> Float64[np.ndarray, " H"]:
        """Weighted."""
        return (self.weight[:, None] * self.values).sum(0) / self.weight.sum()

    @property
    def variance(self) -> Float64[np.ndarray, " H"]:
        """Of the weighted mean, by the delta method; where one path has most of the weight, that of a path."""
        if self.count < 2.0:
            return self.values.var(0)
        away = self.weight[:, None] * (self.values - self.mean)
        return (away**2).sum(0) / self.weight.sum() ** 2


def _draw(trainer: TiltTrainer, actor: Policy, samples: int, seed: int, *, tilted: bool) -> _Weighed:
    """Paths of the policy, or of the forecast, from within their bins, weighed against the tilted law."""
    landscape = trainer.task.landscape
    assert isinstance(landscape, TiltedPaths)
    generator, parts = torch.Generator(trainer.device).manual_seed(seed), []
    for start in range(0, samples, BLOCK):
        count = min(BLOCK, samples - start)
        batch = rollout(trainer.env, actor, trainer.task.log_reward, batch=count, generator=generator)
        objects = trainer.env.objects(batch.states[:, -1])
        log_drawn = trainer.log_drawn(batch) if tilted else landscape.log_forecast(objects)
        paths = landscape.paths(objects)
        cost = landscape.cost_of(paths)
        taken = torch.multinomial((cost.t() / landscape.temperature).softmax(-1), 1, generator=generator)[:, 0]
        each = torch.arange(count, device=taken.device)
        log_weight = landscape.log_forecast(objects) - log_drawn + landscape.log_tilt(cost)
        parts.append((paths[taken, each], cost[taken, each], log_weight, paths.mean(0)))
    values, cost, log_weight, centres = (torch.cat(part).cpu().numpy() for part in zip(*parts, strict=True))
    weight = np.exp(log_weight - log_weight.max())
    return _Weighed(values=values, cost=cost, weight=weight, untilted=centres.mean(0))
