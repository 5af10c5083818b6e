r"""The forecaster as a method: networks learn observed futures by forward KL, that is maximum likelihood.

.. math:: L = -\frac1H \sum_t \sum_k S(k|k_t)\,\log \sum_{k'} c(k'|s_t)\,M(k|k')

with c the outcome policy after the true bins $k_1, \dots, k_{t-1}$ (all steps in one pass), S the targets smoothed over
neighbouring bins (the identity by default) and M the measurement error (the identity by default). In half of the
windows the earlier bins of the forecast are hidden, so that the network also learns the marginal law of each step:
drawn paths, in which small errors add up, are mapped to these laws (`Bins.transport`). Balance with a reward such as
exp(-error) would not do: a policy cannot see the future, and what it fits then is a bell whose width is the reward's
temperature (docs/forecast.md).
"""

import math
from collections.abc import Iterator
from functools import partial

import torch
from jaxtyping import Bool, Float, Float64, Int
from torch import Tensor, nn

from sgfn.envs.trajectories import Samples
from sgfn.landscapes.tasks import Task
from sgfn.learning.learner import Learner, seeded
from sgfn.learning.optimisation import Optimiser, schedule
from sgfn.learning.rollout import LogPolicy
from sgfn.nets.transformer import Drop, dropout
from sgfn.series.bins import neighbour_kernel
from sgfn.series.data import SeriesData, paths_of
from sgfn.series.ensemble import DrawnPaths, Ensemble, draw_paths
from sgfn.series.network import SeriesNet
from sgfn.series.windows import Inputs, Windows

METERS = ("loss",)
BLOCK = 256
"""Number of windows whose marginal laws are computed at once."""
HELD_OUT_WINDOWS = 128
"""Most held-out windows by which a member's best weights are chosen."""
RATE_FACTOR, FALLS = 0.3, 3
"""Factor of a member's learning rate each time it stops improving, and how many times before it stops learning."""
DEVIATION_START = 0.5
"""Initial value of a learned measurement error, unless given, in mean sizes of a scaled value: on purpose too large."""
DEVIATION_WEIGHT = 0.05
"""Weight of the logarithm of a learned measurement error, so that of equally good errors the largest is learned."""
DEVIATION_RATE = 10.0
"""Learning rate of the measurement error, as a multiple of the networks'."""

ONE_THREAD_WIDTH = 128
"""Widest network that trains on one thread, where several would wait for each other longer than they work.

The result for a seed then does not depend on the number of cores.
"""

Batch = tuple[Inputs, Int[Tensor, "B H"], Bool[Tensor, "B H"]]
"""Inputs of windows, the bins observed in them (K where missing), and which steps count in the loss."""


class ForecastLearner(Learner):
    """Networks (members) that each learn from all training windows but for the part of the time they hold out.

    Each keeps the running mean of its weights that forecasts its held-out part best; a forecast is the mean of their
    laws.
    """

    def __init__(self, task: Task, device: torch.device) -> None:
        assert task.series is not None
        super().__init__(task, device, METERS)
        self.data: SeriesData = task.series
        self.settings, self.bins = self.config.series, task.series.bins.to(device)
        self.windows = Windows(self.data.training, self.data.plan, device)
        self.cuts = self.windows.cuts()
        self.turn = round((1 - (self.settings.refresh or 0.0)) * self.config.steps)
        self.refreshed = Windows(self.data.known, self.data.plan, device) if self.refreshes else self.windows
        self.refreshed_cuts = self.refreshed.cuts() if self.refreshes else self.cuts
        self.nets, self.average, self.best = (self._networks() for _ in range(3))
        self.before = self._networks() if self.refreshes else self.best
        self.steps = [self._optimiser(net) for net in self._each(self.nets)]
        self.scores = torch.full((self.settings.members,), torch.inf, device=device)
        self.losses = torch.zeros_like(self.scores)
        self.waited = torch.zeros_like(self.scores)  # evaluations since the best one
        self.falls = torch.zeros_like(self.scores)  # of the learning rate
        self.smoothed = neighbour_kernel(self.bins.count, self.settings.smooth).float().to(device)
        self.held_out = [self._held_out(member) for member in range(self.settings.members)]

    def _networks(self) -> nn.ModuleList:
        plan, settings = self.data.plan, self.settings
        deviation = None
        if settings.noise == "learned":
            deviation = settings.deviation or DEVIATION_START * float(
                self.windows.scale(self.cuts[:1024]).unit.nanmean()
            )
        with seeded(self.config.seed):
            return nn.ModuleList(
                SeriesNet(
                    self.config.net,
                    features=plan.features,
                    context=plan.context,
                    horizon=plan.horizon,
                    centres=self.data.bins.centres,
                    deviation=deviation,
                )
                for _ in range(settings.members)
            ).to(self.device)

    def _optimiser(self, net: SeriesNet) -> Optimiser:
        optim, error = self.config.optim, [p for p in [net.log_deviation] if p is not None]
        body = [p for name, p in net.named_parameters() if name != "log_deviation"]
        return Optimiser(
            [(body, optim.lr), (error, DEVIATION_RATE * optim.lr)][: 1 + len(error)], optim.clip, self.device
        )

    @staticmethod
    def _each(nets: nn.ModuleList) -> list[SeriesNet]:
        return [net for net in nets if isinstance(net, SeriesNet)]

    # learning

    @property
    def small(self) -> bool:
        """Whether networks are so narrow that training on one thread is fastest."""
        return self.config.net.hidden <= ONE_THREAD_WIDTH

    @property
    def refreshes(self) -> bool:
        """Whether the last steps learn from windows that the steps before them left to the weights of a pool."""
        return self.data.known is not self.data.training and 0 < self.turn < self.config.steps

    @property
    def late(self) -> bool:
        """Whether the next step is one of the last, which learn from all windows and hold nothing out."""
        return self.refreshes and self.done >= self.turn

    def step(self) -> None:
        """Train each member on one batch of windows, and at intervals evaluate all on their held-out windows."""
        if self.refreshes and self.done == self.turn:
            self._begin_refresh()
        rate = self._rate()
        for member, falls in enumerate(self.falls.tolist()):
            if falls < FALLS:
                self.losses[member] = self._learn(member, rate * RATE_FACTOR**falls)
        last = self.done + 1 in (self.config.steps, self.turn if self.refreshes else 0)
        if last or ((self.done + 1) % self.settings.check == 0 and not self.late):
            self._keep_best()
        self.record(self.losses.mean())
        self.index += 1.0

    def _rate(self) -> Tensor:
        """Factor of the learning rate: it falls until the turn, and again in the last steps."""
        optim = self.config.optim
        if not self.refreshes:
            return schedule(self.index, self.config.steps, optim)
        if not self.late:
            return schedule(self.index, self.turn, optim)
        return schedule(torch.sub(self.index, self.turn), self.config.steps - self.turn, optim)

    @torch.no_grad()
    def _begin_refresh(self) -> None:
        """Keep the members as they are for the weights of a pool, and go on from them with all windows."""
        self.before.load_state_dict(self.best.state_dict())
        self.nets.load_state_dict(self.best.state_dict())
        self.average.load_state_dict(self.best.state_dict())
        for member in self.steps:
            member.reset_first_moment()
        self.falls.zero_()
        self.waited.zero_()

    def _learn(self, member: int, rate: Tensor) -> Tensor:
        all_cuts = self.refreshed_cuts if self.late else self.cuts
        rows = torch.randint(len(all_cuts), (self.config.batch,), generator=self.generator, device=self.device)
        cuts = all_cuts[rows]
        inputs, bins, seen = self._batch(cuts)
        batch = inputs, bins, seen if self.late else seen & ~self.holds_out(member, cuts)
        net, drop = (
            self._each(self.nets)[member],
            partial(dropout, share=self.settings.dropout, generator=self.generator),
        )
        blind = torch.arange(len(rows), device=self.device) % 2 == 0  # the rows are drawn at random
        loss = self.loss(net, batch, blind, drop, self._hidden(len(rows)))
        if net.log_deviation is not None:
            loss = loss - DEVIATION_WEIGHT * net.log_deviation
        self.steps[member].step(loss, rate)
        self._update_average(self._each(self.average)[member], net)
        return loss.detach()

    def loss(
        self,
        net: SeriesNet,
        batch: Batch,
        blind: Bool[Tensor, " B"],
        drop: Drop | None = None,
        hide: Bool[Tensor, "B M"] | None = None,
    ) -> Float[Tensor, ""]:
        """Mean cross-entropy of the steps that count, given the true bins before each; without them where `blind`."""
        inputs, bins, counts = batch
        read = bins.masked_fill(blind[:, None], self.bins.count)
        log_law = self._measured(net, net.log_law(net(inputs, read, drop, hide)), inputs)
        came = bins.clamp(max=self.bins.count - 1)
        if self.settings.smooth > 0:
            losses = -(self.smoothed[came] * log_law).sum(-1)
        else:
            losses = -log_law.gather(-1, came[..., None])[..., 0]
        return (losses * counts).sum() / counts.sum().clamp(min=1)

    def _measured(self, net: SeriesNet, log_law: Float[Tensor, "B H K"], inputs: Inputs) -> Float[Tensor, "B H K"]:
        """Log-law of the measured bins, log of c M."""
        if self.settings.noise == "none":
            return log_law
        deviation = self.settings.deviation if net.log_deviation is None else net.log_deviation.double().exp()
        return self.bins.measured(log_law.exp(), deviation / inputs.unit).clamp(min=1e-30).log()

    def _batch(self, cuts: Int[Tensor, "B 2"]) -> Batch:
        windows = self.refreshed if self.late else self.windows
        targets = windows.targets(cuts)
        seen = ~targets.isnan()
        return windows.inputs(cuts), torch.where(seen, self.bins.index(targets), self.bins.count), seen

    def _hidden(self, batch: int) -> Bool[Tensor, "B M"] | None:
        if self.settings.hide == 0.0:
            return None
        shape = (batch, len(self.windows.offsets))
        return torch.rand(shape, generator=self.generator, device=self.device) < self.settings.hide

    @torch.no_grad()
    def _update_average(self, average: SeriesNet, net: SeriesNet) -> None:
        """Update the running mean of the weights; a plain mean in the first steps."""
        keep = min(self.settings.average, (self.done + 1) / (self.done + 10))
        for mean, now in zip(average.parameters(), net.parameters(), strict=True):
            mean.lerp_(now, 1.0 - keep)

    # held-out windows

    def holds_out(self, member: int, cuts: Int[Tensor, "B 2"]) -> Bool[Tensor, "B H"]:
        """Which steps of windows lie in the part of the time that a member does not learn from."""
        if self.settings.folds == 0:
            return torch.zeros(len(cuts), self.data.plan.horizon, dtype=torch.bool, device=self.device)
        return self.windows.folds(cuts, self.settings.folds) == member % self.settings.folds

    def _held_out(self, member: int) -> Batch | None:
        """A batch of windows, evenly spread, with steps that a member holds out; None where there are none."""
        held = torch.cat([self.holds_out(member, part).any(-1) for part in self.cuts.split(65536)])
        cuts = self.cuts[held]
        if not len(cuts):
            return None
        cuts = cuts[torch.linspace(0, len(cuts) - 1, min(HELD_OUT_WINDOWS, len(cuts))).round().long()]
        inputs, bins, seen = self._batch(cuts)
        counts = seen & self.holds_out(member, cuts)
        return (inputs, bins, counts) if bool(counts.any()) else None

    @torch.no_grad()
    def _keep_best(self) -> None:
        """Keep each member's running mean of weights where it forecasts the held-out windows better than any before.

        A member that has not improved for `patience` evaluations goes back to its best weights and learns more slowly.
        The last weights after the turn are kept as they are: they learned from those windows, whose score stays.
        """
        for member, batch in enumerate(self.held_out):
            if self.falls[member] >= FALLS:
                continue
            net, average, best = (self._each(nets)[member] for nets in (self.nets, self.average, self.best))
            score = -torch.inf if batch is None else self._score(average, batch)
            if math.isnan(score):
                self.raise_non_finite({}, self.done)
            if batch is None or self.late or score < self.scores[member]:
                best.load_state_dict(average.state_dict())
                self.scores[member], self.waited[member] = self.scores[member] if self.late else score, 0
            else:
                self.waited[member] += 1
            if self.waited[member] >= self.settings.patience:
                net.load_state_dict(best.state_dict())
                average.load_state_dict(best.state_dict())
                self.steps[member].reset_first_moment()
                self.falls[member], self.waited[member] = self.falls[member] + 1, 0

    @torch.no_grad()
    def _score(self, net: SeriesNet, batch: Batch) -> float:
        """Mean of the cross-entropies with and without the true bins before each step."""
        blind = torch.ones(len(batch[1]), dtype=torch.bool, device=self.device)
        return float(self.loss(net, batch, blind) + self.loss(net, batch, ~blind)) / 2

    def readings(self) -> dict[str, Tensor]:
        """Number of members that still learn, and the held-out cross-entropy of the weights that are kept."""
        found = self.scores[self.scores.isfinite()]
        return {"learning": (self.falls < FALLS).sum()} | ({"held_out": found.double().mean()} if len(found) else {})

    # forecasting

    @property
    def members(self) -> list[SeriesNet]:
        """The networks that forecast: each member's best weights."""
        return self._each(self.best)

    @property
    def deviation(self) -> float:
        """Measurement error in units of the data: 0 without one, the known one, or the mean of the learned ones."""
        if self.settings.noise != "learned":
            return self.settings.deviation if self.settings.noise == "known" else 0.0
        learned = [net.log_deviation.detach().exp() for net in self.members if net.log_deviation is not None]
        return float(torch.stack(learned).mean())

    @torch.no_grad()
    def member_laws(self, inputs: Inputs, *, before: bool = False) -> Float64[Tensor, "M W H K"]:
        """Marginal law of each step before the measurement error, by member.

        With `before`, by members as they were when nothing had been learned of the windows for a pool's weights.
        """
        parts, members = [], self._each(self.before) if before and self.done > self.turn else self.members
        for some in torch.arange(len(inputs.unit)).split(BLOCK):
            here = inputs[some].to(self.device)
            nothing = torch.full((len(some), self.data.plan.horizon), self.bins.count, device=self.device)
            found = [net.log_law(net(here, nothing)).double().exp() for net in members]
            parts.append(torch.stack(found).cpu())
        return torch.cat(parts, 1)

    def as_measured(self, law: Float64[Tensor, "W H K"], inputs: Inputs) -> Float64[Tensor, "W H K"]:
        """Law of the measured values, from the law of the values themselves."""
        return law if self.deviation == 0 else self.data.bins.measured(law, self.deviation / inputs.unit.cpu())

    def draw_paths(self, inputs: Inputs, samples: int, seed: int) -> DrawnPaths:
        """Draw paths of windows, as bins, with the law of each step."""
        generator = torch.Generator(self.device).manual_seed(seed)
        return draw_paths(self.members, self.bins, inputs.to(self.device), self.deviation, samples, generator)

    def stream(self, n: int, seed: int) -> Iterator[Samples]:
        """Draw paths after the end of each series, the series in turn, in one block."""
        inputs = self.data.inputs_at_ends()
        windows = len(inputs.unit)
        drawn = self.draw_paths(inputs, -(-n // windows), seed)
        window = torch.arange(windows, device=self.device)[:, None, None].expand(-1, drawn.realised.shape[1], 1)
        objects = torch.cat([window, drawn.realised], -1).transpose(0, 1).flatten(0, 1)[:n].cpu()
        intended = drawn.intended.transpose(0, 1).flatten(0, 1)[:n].cpu()
        yield Samples(objects=objects, scores=paths_of(self.data.bins, inputs).scores(objects), intended=intended)

    def state_policy(self) -> LogPolicy:
        """The outcome policy at any state of the task's own windows."""
        return Ensemble(self.env, self.members, self.data.inputs_at_ends().to(self.device)).log_law

    @property
    def capturable(self) -> bool:
        """False: a step depends on how well its members forecast, so it cannot be captured in a CUDA graph."""
        return False

    @property
    def has_law(self) -> bool:
        """False: a forecast has no target law to be compared with."""
        return False

    # checkpoints

    def modules(self) -> dict[str, nn.Module]:
        """Networks in training, running means of their weights, and the best of these, for checkpoints."""
        found: dict[str, nn.Module] = {"nets": self.nets, "average": self.average, "best": self.best}
        return found | ({"before": self.before} if self.refreshes else {})

    def load_networks(self, state: dict[str, Tensor]) -> None:
        """Load the weights, and the turn where it has passed: what was learned after it stays learned.

        Where it has not passed, the turn is that of the present number of steps, and no earlier than what is done.
        """
        super().load_networks(state)
        done, passed = int(state["self.done"]), int(state.get("refresh.turn", self.turn))
        if self.refreshes:
            self.turn = passed if done > passed else max(self.turn, done)

    def load(self, state: dict[str, Tensor]) -> None:
        """Continue from a saved state; one of an older version does not tell its turn."""
        super().load({f"refresh.{name}": value for name, value in self.memory().get("refresh", {}).items()} | state)

    def optimisers(self) -> dict[str, Optimiser]:
        """The optimiser of each member by name, for checkpoints."""
        return {f"optimiser{member}": optimiser for member, optimiser in enumerate(self.steps)}

    def memory(self) -> dict[str, dict[str, Tensor]]:
        """State of early stopping and of the learning rates (`judging`), and the turn, for checkpoints."""
        found = {"scores": self.scores, "losses": self.losses, "waited": self.waited, "falls": self.falls}
        return {"judging": found} | ({"refresh": {"turn": torch.tensor(self.turn)}} if self.refreshes else {})
