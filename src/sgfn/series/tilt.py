r"""Scenarios: paths of a fitted forecast, reweighted (tilted) towards those with a high cost.

.. math:: q(\mathrm{path}) \propto p(\mathrm{path})\, e^{\mathrm{cost}(\mathrm{path}) / T}

A policy over bins whose initial law is the forecast itself is trained by trajectory balance (or `kl`) on the forecast
environment with this reward, averaged over places within the bins. Each drawn path then takes one of its places, in
proportion to exp(cost/T). Importance weights tell how near the policy came: by their effective sample size, and by
comparing the tilted mean with that of the forecast's own paths, weighted by exp(cost/T).

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
from sgfn.config.checks import in_range, quoted, require
from sgfn.envs.base import Env
from sgfn.envs.forecast import ForecastEnv
from sgfn.envs.tabulated import tabulate
from sgfn.envs.trajectories import Trajectories
from sgfn.landscapes.paths import ForecastPaths
from sgfn.landscapes.tasks import Task
from sgfn.learning.forms import form_entry
from sgfn.learning.learner import seeded
from sgfn.learning.rollout import Policy, rollout
from sgfn.learning.scoring import score
from sgfn.learning.trainer import StepRemainder, Trainer
from sgfn.nets.dynamics import NoiseModel, make_noise_model
from sgfn.nets.encoders import Reader
from sgfn.nets.half import HeadOutputs
from sgfn.nets.heads import FlowNets
from sgfn.nets.transformer import Cache
from sgfn.objectives import scored_as
from sgfn.series.data import cuts_of, forecast_env
from sgfn.series.ensemble import DrawnPaths, Ensemble
from sgfn.series.forecaster import Forecaster
from sgfn.series.learner import ForecastLearner
from sgfn.series.network import SeriesReader
from sgfn.series.past_scores import laws
from sgfn.series.tilt_checks import Collapse, Diversity, check_network, diversity, suggested_temperature
from sgfn.series.windows import Inputs, Windows

Cost = Callable[[Float64[np.ndarray, "N H"]], Any]
"""A function from paths, in units of the data, to one number each; paths with larger numbers are drawn more often."""
BLOCK = 512
"""Number of paths drawn at once."""
PLACES = 16
"""Places within a bin at which the cost is computed; the outermost lies 3.5 mean excesses beyond the last edge."""
LAW_PATHS = 512
"""Number of paths from which the law of each step, as paths are drawn, is estimated."""


def within_bin_shares(count: int, horizon: int, seed: int) -> Float64[Tensor, "J H"]:
    """Shares of a bin's mass at which the J places of a path lie, step by step.

    At each step they are `count` evenly spaced shares in a random order.
    """
    generator = torch.Generator().manual_seed(seed)
    order = torch.stack([torch.randperm(count, generator=generator) for _ in range(horizon)], 1)
    return (order + 0.5).double() / count


def checked_costs(answer: Any, count: int, name: str) -> Float64[np.ndarray, " N"]:
    """What a cost function returned, as an array; raises unless it is one finite number for each path."""
    wanted = f"give one number for each of {count} paths"
    try:
        found = np.asarray(answer, dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        raise ValueError(f"{name} must {wanted}, got {quoted(answer)}") from None
    require(found.shape == (count,), name, wanted, f"shape {found.shape}")
    if len(wild := found[~np.isfinite(found)]):
        raise ValueError(f"{name} must be finite, got {wild[0]}")
    return found


class TiltedPaths(ForecastPaths):
    r"""Landscape with log R = log p(path) + log of the mean of $e^{(cost - level)/T}$ over places in the path's bins.

    p is the fitted forecast; `level` is chosen so that the mean of the second factor over forecast paths is one.
    """

    on_host = True

    def __init__(
        self, table: Float64[Tensor, "J H K"], law: Ensemble, env: ForecastEnv, cost: Cost, temperature: float
    ) -> None:
        super().__init__(table)
        self.law, self.env, self.cost, self.temperature = law, env, cost, temperature
        self.level = 0.0

    def paths(self, objects: Int[Tensor, "N O"]) -> Float64[Tensor, "J N H"]:
        """Values of each object at each of its places, in units of the data."""
        return self.table[:, torch.arange(self.env.horizon, device=objects.device), objects[:, 1:]]

    def cost_of(self, paths: Float64[Tensor, "J N H"]) -> Float64[Tensor, "J N"]:
        """Cost of each path; raises unless it is one finite number for each."""
        rows = paths.flatten(0, 1).cpu().numpy()
        found = checked_costs(self.cost(rows), len(rows), "the cost")
        return torch.from_numpy(found).to(paths.device).view(paths.shape[:-1])

    def log_tilt(self, cost: Float64[Tensor, "J N"]) -> Float64[Tensor, " N"]:
        """Logarithm of the mean of exp((cost - level)/T) over places."""
        return torch.logsumexp((cost - self.level) / self.temperature, 0) - math.log(len(cost))

    def set_level(self, drawn: Int[Tensor, "N O"]) -> None:
        """Set the level from paths drawn by the forecast, so that their mean of exp((cost - level)/T) is one."""
        found = self.log_tilt(self.cost_of(self.paths(drawn)))
        self.level += self.temperature * float(torch.logsumexp(found, 0) - math.log(len(drawn)))

    def scores(self, objects: Int[Tensor, "*batch O"]) -> Float[Tensor, "*batch"]:
        """Part of each object's log-reward that comes from the cost."""
        found = self.log_tilt(self.cost_of(self.paths(objects.flatten(0, -2))))
        return found.float().view(objects.shape[:-1])

    def log_reward(self, objects: Int[Tensor, "*batch O"], config: RewardConfig) -> Float[Tensor, "*batch"]:
        """Log-probability of each object under the forecast, plus the part from the cost."""
        return self.log_forecast(objects) + self.scores(objects)

    @torch.no_grad()
    def log_forecast(self, objects: Int[Tensor, "*batch O"]) -> Float[Tensor, "*batch"]:
        """log p(path) of the measured bins under the forecast."""
        paths = objects.flatten(0, -2)
        states = paths[:, None].expand(-1, self.env.horizon, -1)
        kernel = self.env.operator(self.env.initial(1, objects.device)[:, None])
        log_law = kernel.outcome_law(self.law.log_along(states))
        return log_law.gather(-1, paths[:, 1:, None])[..., 0].sum(-1).view(objects.shape[:-1])


class TiltReader(Reader):
    """Representations by a trainable network, joined with the log-law of the forecast, which is fixed."""

    def __init__(self, env: Env, law: Ensemble, inputs: Inputs) -> None:
        super().__init__()
        self.env, self.law = env, law
        self.reader = SeriesReader(env, copy.deepcopy(law.readers[0].net).requires_grad_(True), inputs)
        self.width = self.reader.width + env.actions

    def forward(self, state: Int[Tensor, "*batch S"]) -> Float[Tensor, "*batch H"]:
        """Representation and log-law of each state by itself."""
        return torch.cat([self.reader(state), self.law.log_law(state)], -1)

    def along(self, states: Int[Tensor, "B N S"]) -> Float[Tensor, "B N H"]:
        """Representations and log-laws of the first N states of paths."""
        with torch.no_grad():
            log_law = self.law.log_along(states)
        return torch.cat([self.reader.along(states), log_law], -1)

    def start(self, state: Int[Tensor, "B S"]) -> tuple[Cache, Float[Tensor, "B H"]]:
        """Cache and representation of initial states; the forecast keeps a cache of its own."""
        cache, hidden = self.reader.start(state)
        return cache, torch.cat([hidden, self.law.log_policy(0, state)], -1)

    def step(self, state: Int[Tensor, "B S"], cache: Cache, t: int) -> Float[Tensor, "B H"]:
        """Representation and log-law of state t of a path."""
        return torch.cat([self.reader.step(state, cache, t), self.law.log_policy(t, state)], -1)


class TiltNets(FlowNets):
    """Policy and flow networks whose heads over actions correct the log-law of the forecast, at first by zero."""

    def __init__(self, env: Env, form: str, encoder: TiltReader) -> None:
        heads = form_entry(form)
        super().__init__(
            env,
            NetConfig(),
            encoder=encoder,
            joint_backward=heads.joint_backward,
            outcome_policy=heads.outcome_policy,
        )
        for head in (self.policy, self.outcome):
            if head is not None:
                nn.init.zeros_(head.weight)

    def logits(self, head: nn.Module, hidden: Float[Tensor, "*batch H"] | HeadOutputs) -> Float[Tensor, "*batch A"]:
        """The log-law of the forecast plus the head's correction."""
        assert isinstance(hidden, Tensor)
        return hidden[..., -self.env.actions :] + head(hidden)


class TiltTrainer(Trainer):
    """The trainer of flow networks, with networks that start from the forecast."""

    def __init__(self, task: Task, device: torch.device, encoder: TiltReader) -> None:
        self.tilt_reader = encoder
        super().__init__(task, device)

    def _networks(self) -> tuple[FlowNets, NoiseModel]:
        with seeded(self.config.seed):
            nets = TiltNets(self.tilt_reader.env, scored_as(self.config), self.tilt_reader)
            model = make_noise_model(self.env, self.config.dynamics)
        return nets.to(self.device), model.to(self.device)

    def _record(self, rest: StepRemainder) -> None:
        """Record the meters with rewards capped at one: exp(cost/T) may overflow, and its mean is not shown."""
        super()._record(rest._replace(log_reward=rest.log_reward.clamp(max=0.0)))

    @torch.no_grad()
    def log_drawn(self, batch: Trajectories) -> Float[Tensor, " B"]:
        """Log-probability of the paths of a batch under the policy and the measurement error."""
        kernel = self.general.noise_kernel(batch.states[:, :-1])
        return score(self.general.scorer(self.nets, None), batch, "marginal", kernel).log_pf.sum(1)


@dataclass(frozen=True, kw_only=True, eq=False)
class Tilted:
    """Scenarios of one window, with figures that tell how far they can be trusted."""

    name: str
    cut: int
    stamps: np.ndarray  # H
    paths: Float64[np.ndarray, "N H"]
    """Paths drawn by the trained policy, in units of the data."""
    cost: Float64[np.ndarray, " N"]
    weight: Float64[np.ndarray, " N"]
    """Importance weight of each path, with mean one; all are one where the policy is perfect."""
    ess: float
    """Effective sample size of the policy's paths, as a share of their number."""
    ess_forecast: float
    """Effective sample size of the forecast's own paths weighted by exp(cost/T): what no training gives."""
    mean: Float64[np.ndarray, " H"]
    """Weighted mean of the policy's paths."""
    mean_forecast: Float64[np.ndarray, " H"]
    """Mean of the forecast, without the tilt."""
    mean_checked: Float64[np.ndarray, " H"]
    """Tilted mean from the forecast's own paths, weighted by exp(cost/T)."""
    error: Float64[np.ndarray, " H"]
    """Standard error of the difference between the two tilted means."""
    collapse: Collapse
    """Whether the draws are a few paths alone, and the temperature at which they would not be."""

    @property
    def summary(self) -> dict[str, float]:
        """Figures for a table: effective sample sizes, and the largest difference of means in standard errors."""
        away = np.abs(self.mean - self.mean_checked)
        apart = np.divide(away, self.error, out=np.zeros_like(away), where=self.error > 0)
        figures = {"ess": self.ess, "ess_forecast": self.ess_forecast, "mean_cost": float(self.cost.mean())}
        figures |= {"apart": float(apart.max()), "shift": float((self.mean - self.mean_forecast).mean())}
        return figures | self.collapse.figures


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
    """Train, draw and check scenarios of one window: the end of the first series, or an origin."""
    in_range("temperature", temperature, 1e-9)
    in_range("samples", samples, 2)
    check_network(forecaster.stacked.no_network)
    panel = forecaster.fitted.data.panel
    name, cut = origin if origin is not None else (panel.series[0].name, len(panel.series[0]))
    windows = Windows(panel, forecaster.fitted.data.plan)
    cuts = cuts_of(panel, [(name, cut)])
    trainer = tilt_trainer(forecaster, windows, cuts, cost, temperature, tilt_config(objective, steps, batch, seed))
    for _ in range(steps):
        trainer.step()
    trainer.read_meters()
    own = _draw(trainer, trainer.actor(), samples, seed, tilted=True)
    plain = _draw(trainer, trainer.tilt_reader.law, samples, seed + 1, tilted=False)
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
        collapse=Collapse(
            tilted=own.diversity,
            forecast=plain.diversity,
            suggested=suggested_temperature(plain.costs, temperature),
        ),
    )


def tilt_config(objective: Literal["tb", "kl"], steps: int, batch: int, seed: int) -> TrainConfig:
    """Training configuration of a tilt: on the policy's own paths, with the noise known."""
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
    """Trainer whose policy is at first the forecast of one window, and whose reward is the tilted law."""
    learner = forecaster.fitted
    inputs = windows.inputs(cuts).to(learner.device)
    env = forecast_env(learner.data.bins, inputs, learner.deviation)
    members = [copy.deepcopy(net).requires_grad_(False) for net in learner.members]
    drawn = learner.draw_paths(inputs, LAW_PATHS, config.seed)
    table = bin_values(learner, windows, cuts, drawn).to(learner.device)
    landscape = TiltedPaths(table, Ensemble(env, members, inputs), env, cost, temperature)
    landscape.set_level(torch.nn.functional.pad(drawn.realised[0], (1, 0)))
    summary = f"{env.horizon} steps of a forecast, tilted"
    task = Task(name="tilt", summary=summary, env=env, landscape=landscape, beta=1.0, config=config)
    tables = tabulate(env, learner.device)  # as the trainer has it
    return TiltTrainer(task, learner.device, TiltReader(tables, Ensemble(tables, members, inputs), inputs))


def bin_values(
    learner: ForecastLearner, windows: Windows, cuts: Int[Tensor, "1 2"], drawn: DrawnPaths
) -> Float64[Tensor, "J H K"]:
    """Value of each bin of a window at each step and place, in units of the data.

    Places are mapped from the law under which paths are drawn to the law that is forecast.
    """
    inputs, bins = windows.inputs(cuts), learner.data.bins
    drawn_law, law = laws(learner, windows, cuts, drawn)  # 1 H K
    index = torch.arange(bins.count).expand(drawn_law.shape)
    shares = within_bin_shares(PLACES, drawn_law.shape[1], 0)[:, :, None].expand(-1, -1, bins.count)
    scaled = torch.cat([bins.transport(index, share[None], drawn_law, law) for share in shares])
    return scaled * inputs.unit[0] + inputs.reference[0, :, None]


@dataclass(frozen=True, kw_only=True)
class _WeightedPaths:
    """Paths with their importance weights."""

    values: Float64[np.ndarray, "N H"]
    cost: Float64[np.ndarray, " N"]
    weight: Float64[np.ndarray, " N"]
    untilted: Float64[np.ndarray, " H"]
    """Mean of the paths as drawn, over all places within their bins, without weights."""
    diversity: Diversity
    """Different paths of bins among the draws, with their weights where they are drawn for the tilted law."""
    costs: Float64[np.ndarray, "J N"]
    """Cost of each path at each of its places."""

    @property
    def count(self) -> float:
        r"""Effective number of paths, $(\sum w)^2 / \sum w^2$."""
        return float(self.weight.sum() ** 2 / (self.weight**2).sum())

    @property
    def ess(self) -> float:
        """Effective number of paths as a share of their number."""
        return self.count / len(self.weight)

    @property
    def mean(self) -> Float64[np.ndarray, " H"]:
        """Weighted mean of the paths."""
        return (self.weight[:, None] * self.values).sum(0) / self.weight.sum()

    @property
    def variance(self) -> Float64[np.ndarray, " H"]:
        """Variance of the weighted mean, by the delta method.

        Where one path has most of the weight, the variance of a single path.
        """
        if self.count < 2.0:
            return self.values.var(0)
        away = self.weight[:, None] * (self.values - self.mean)
        return (away**2).sum(0) / self.weight.sum() ** 2


def _draw(trainer: TiltTrainer, actor: Policy, samples: int, seed: int, *, tilted: bool) -> _WeightedPaths:
    """Draw paths by the policy or the forecast, choose places within their bins, and weight them for the tilted law."""
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
        parts.append((paths[taken, each], cost[taken, each], log_weight, paths.mean(0), objects[:, 1:], cost.t()))
    values, cost, log_weight, centres, bins, costs = (
        torch.cat(part).cpu().numpy() for part in zip(*parts, strict=True)
    )
    weight = np.exp(log_weight - log_weight.max())
    drawn = {"values": values, "cost": cost, "weight": weight, "untilted": centres.mean(0)}
    some = diversity(bins, weight if tilted else np.ones_like(weight))
    return _WeightedPaths(**drawn, diversity=some, costs=costs.T)
