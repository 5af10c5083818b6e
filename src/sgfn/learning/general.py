"""The general backend: any environment, noise, network and objective, by `rollout`, `score` and autograd."""

from dataclasses import dataclass, replace

import torch
from jaxtyping import Float, Int
from torch import Tensor

from sgfn.envs.tabulated import TabulatedEnv
from sgfn.envs.trajectories import Episodes, Trajectories, concatenate, first_of, tempered
from sgfn.learning import dynamics
from sgfn.learning.backend import Backend, Learned, LogRewards, Past, Setup, UnscoredBatch, stacked
from sgfn.learning.forms import form_entry
from sgfn.learning.kernels.distinct_states import DistinctStateScorer, shares_distinct
from sgfn.learning.kernels.mlp_actor import MLPActor, rollout_kernel
from sgfn.learning.kernels.sequence_actor import sequence_kernel
from sgfn.learning.kernels.shared_states import SharedStateScorer, share, shared_levels
from sgfn.learning.optimisation import step_together
from sgfn.learning.replay import rebuild
from sgfn.learning.rollout import (
    KernelOf,
    LogPolicy,
    LogReward,
    MakesRollouts,
    RolloutDraws,
    act,
    clocks,
    later,
    retrace,
    rollout_draws,
)
from sgfn.learning.scoring import Scorer, score, score_expected
from sgfn.learning.trajectory_scorer import CachedActor, TrajectoryScorer
from sgfn.nets.dynamics import FullNoiseModel
from sgfn.nets.encoders import MLP
from sgfn.nets.heads import FlowNets
from sgfn.noise.operators import DenseKernel, Kernel
from sgfn.objectives import reads_scores, scored_as
from sgfn.objectives.checks import CheckedObjective
from sgfn.objectives.parts import explain
from sgfn.objectives.scores import Scores

MAX_BATCH_UNSHARED = 4096
"""Largest batch for which a GPU is faster by reusing what its rollout computed; in larger ones it is less work to score
shared states once."""


@dataclass(frozen=True, kw_only=True)
class BatchDraws:
    """Random numbers of a batch: of its rollouts, and of its offline share."""

    rollout: RolloutDraws
    rows: Int[Tensor, " N"] | None
    """Which known objects the offline share is made of."""
    clock: Float[Tensor, "T 2 N W"] | None
    """Waiting times from which their steps and intentions are drawn."""


def rewarded(parts: list[Trajectories], log_rewards: LogRewards) -> tuple[Trajectories, Trajectories]:
    """The first part, and all parts as one batch, with their log-rewards."""
    own, *others = (replace(part, log_reward=found) for part, found in zip(parts, log_rewards, strict=True))
    return own, concatenate(own, *others) if others else own


class GeneralBackend(Backend):
    """Rollouts step by step, scores by one pass over all states, gradients by autograd."""

    extends = True

    def __init__(self, setup: Setup) -> None:
        super().__init__(setup)
        self.env, self.nets, self.noise_model = setup.env, setup.nets, setup.noise_model
        self.learns_noise = self.config.dynamics.mode != "known"
        self.kernel = rollout_kernel(self.env, self.nets.encoder, setup.device)
        self.sequences: MakesRollouts | None = None
        if self.kernel is None:
            self.sequences = sequence_kernel(self.env, self.nets, setup.device)
        self.form = form_entry(scored_as(self.config)).scoring
        self.reads_expected = reads_scores(self.config, "expected")

    # networks and noise at states

    def thoughts(self, batch: Trajectories) -> Float[Tensor, "B N W"] | None:
        """Encoding of the history before each state; None where the noise model has no memory."""
        return self.noise_model.thoughts(batch.intended, batch.realised)

    def noise_kernel(self, states: Int[Tensor, "*batch S"], thoughts: Float[Tensor, "B N W"] | None = None) -> Kernel:
        """P^ at any states, or at the first ones of whole trajectories [B N S]: the true kernel or the learned one; one
        with memory reads the thoughts of the trajectories."""
        if not self.learns_noise:
            return self.env.operator(states)
        if thoughts is not None:
            return self.noise_model.operator(states, thoughts[:, : states.shape[1]])
        if states.ndim < 3:
            return self.noise_model.operator(states)
        levels = self.levels(states.shape[0])
        if levels and isinstance(self.env, TabulatedEnv) and isinstance(self.noise_model, FullNoiseModel):
            return DenseKernel(share(self.noise_model.log_matrix, self.env, states, levels), log=True)
        return self.noise_model.along(states)

    def kernel_along(self, batch: Trajectories) -> KernelOf:
        """P^ as a function of the states of one batch, history included."""
        thoughts = self.thoughts(batch)
        return lambda states: self.noise_kernel(states, thoughts)

    def actor(self) -> CachedActor | MLPActor | LogPolicy:
        """The actor of a rollout at the present weights, with a cache or a memory where the policy has one."""
        whole = None if self.sequences is None else self.sequences.whole_rollout
        if self.nets.reads_along:
            return CachedActor(self.nets, self.noise_model, whole)
        encoder = self.nets.encoder
        if not isinstance(encoder, MLP):
            return self.nets.log_policy
        return MLPActor(self.env, encoder, self.nets.policy, whole=whole)

    def levels(self, batch: int) -> int:
        """Number of first levels whose states are scored once; with a rollout kernel, only for large batches."""
        unshared = self.kernel is not None and batch <= MAX_BATCH_UNSHARED
        return 0 if unshared else shared_levels(self.env, self.nets, batch)

    def state_scorer(self, batch: int) -> FlowNets | SharedStateScorer:
        """The networks at their present weights, with state sharing for a batch of that size where they allow it."""
        if isinstance(self.env, TabulatedEnv) and shares_distinct(self.env, self.nets, self.setup.device):
            return DistinctStateScorer(self.env, self.nets, batch)
        plain = isinstance(self.nets.encoder, MLP) and not self.nets.reads_along and self.sequences is None
        return SharedStateScorer(self.env, self.nets, self.levels(batch)) if plain else self.nets

    def scorer(self, states: FlowNets | SharedStateScorer, thoughts: Float[Tensor, "B N W"] | None) -> Scorer:
        """The scorer of a batch with given thoughts: of whole trajectories, unless one shares states."""
        return states if isinstance(states, SharedStateScorer) else TrajectoryScorer(self.nets, thoughts)

    # batches

    def draw(self, generator: torch.Generator, temperature: float | Tensor) -> BatchDraws:
        """Random numbers of the agent's own rollouts, then of the offline share."""
        known, offline = self._known, self.setup.offline
        count = self.config.batch - known + self.extra
        own = rollout_draws(self.env, count, generator, self.config.explore, temperature)
        rows = clock = None
        if offline is not None and known:
            rows = torch.randint(offline.shape[0], (known,), generator=generator, device=generator.device)
            clock = clocks((self.env.horizon, 2, known, own.clock.shape[-1]), generator)
        return BatchDraws(rollout=own, rows=rows, clock=clock)

    @property
    def _known(self) -> int:
        return self.config.offline_batch if self.setup.offline is not None else 0

    def collect(
        self, states: FlowNets | SharedStateScorer, draws: BatchDraws, log_reward: LogReward | None = None
    ) -> tuple[Trajectories, Trajectories]:
        """The agent's own trajectories, and the whole batch with its offline share; by default scored by the task."""
        parts, reward = self.rolled(states, draws), log_reward or self.setup.task.log_reward
        return rewarded(parts, [reward(objects) for objects in self.objects(parts)])

    def rolled(self, states: FlowNets | SharedStateScorer, draws: BatchDraws) -> list[Trajectories]:
        """The agent's own trajectories and those of the offline share, where there is one, without their rewards."""
        actor = states if isinstance(states, SharedStateScorer) else self.actor()
        if self.setup.behaviour is not None:
            actor = self.setup.behaviour(actor)
        own = act(self.env, actor, later, draws.rollout)
        if self.setup.offline is None or draws.rows is None or draws.clock is None:
            return [own]
        if isinstance(states, SharedStateScorer):
            states.forget()
        return [own, self.retraced(self.setup.offline[draws.rows], draws.clock, later)]

    def objects(self, parts: list[Trajectories]) -> list[Int[Tensor, "_ O"]]:
        """What the trajectories of each part end in."""
        return [self.env.objects(part.states[:, -1]) for part in parts]

    def retraced(
        self, goals: Int[Tensor, "N O"], clock: Float[Tensor, "T 2 N W"], log_reward: LogReward | None = None
    ) -> Trajectories:
        """Known objects as trajectories, with intentions from the posterior at the present weights."""
        actor, kernel = self.actor(), self.noise_kernel
        if isinstance(actor, CachedActor) and self.noise_model.thought is not None:
            kernel = actor.kernel
        return retrace(self.env, goals, actor, kernel, log_reward or self.setup.task.log_reward, clock)

    @torch.no_grad()
    def roll(self, draws: BatchDraws) -> tuple[Int[Tensor, "B T"], Int[Tensor, "B T"]]:
        """Intentions and outcomes of a batch that is not scored, the agent's own trajectories first."""
        parts = self.rolled(self.state_scorer(self.config.batch), draws)
        return torch.cat([part.intended for part in parts]), torch.cat([part.realised for part in parts])

    # updates

    def begin(self, draws: BatchDraws) -> UnscoredBatch:
        """Roll out a batch, and keep what the rollouts have computed for the update."""
        states = self.state_scorer(self.config.batch)
        parts = self.rolled(states, draws)
        return UnscoredBatch(objects=self.objects(parts), rollouts=(states, parts))

    def complete(
        self, batch: UnscoredBatch, log_rewards: LogRewards, beta: Float[Tensor, ""], rate: Float[Tensor, ""]
    ) -> tuple[Episodes, Learned]:
        """Update on a batch; in `batch` mode the noise model learns from the agent's own part."""
        states, parts = batch.rollouts
        own, whole = rewarded(parts, log_rewards)
        return own, self._learn(states, own, whole, beta, rate)

    def learn_from(self, past: Past, beta: Float[Tensor, ""], rate: Float[Tensor, ""]) -> tuple[Episodes, Learned]:
        """Update on a batch that was rolled out some time ago, by scores at the present weights."""
        batch = rebuild(self.env, *past)
        own = first_of(batch, self.config.batch - self._known)
        return own, self._learn(self.state_scorer(self.config.batch), own, batch, beta, rate)

    def _learn(
        self,
        states: FlowNets | SharedStateScorer,
        own: Trajectories,
        batch: Trajectories,
        beta: Float[Tensor, ""],
        rate: Float[Tensor, ""],
    ) -> Learned:
        """Update on a batch whose first part is the agent's own."""
        learn_noise = self.config.dynamics.mode == "batch"
        with torch.set_grad_enabled(learn_noise):
            thoughts = self.thoughts(batch)
            kernel = self.noise_kernel(batch.states[:, :-1], thoughts)
            nll = self.setup.weighed(dynamics.negative_log_likelihood(kernel, batch, len(own.valid)), own.valid)
        scores, raised = self.scored(self.scorer(states, thoughts), batch, beta, kernel)
        found = explain(self.setup.objective, scores, raised)
        loss = found.loss.mean()
        if learn_noise:
            step_together([(self.setup.optimiser, loss), (self.setup.noise_optimiser, nll)], rate)
        else:
            self.setup.optimiser.step(loss, rate)
        parts = stacked(self.setup.parts(scores, batch, raised, found.parts))
        return Learned(loss=loss.detach(), noise_loss=nll.detach(), parts=parts, pending=None)

    @torch.no_grad()
    def part_names(self, batch: Trajectories, beta: Float[Tensor, ""], *, finite: bool = False) -> tuple[str, ...]:
        """Names of what is logged of a batch beside its loss, found by scoring one; `finite` has its losses checked."""
        thoughts = self.thoughts(batch)
        kernel = self.noise_kernel(batch.states[:, :-1], thoughts)
        with torch.enable_grad():
            scores, raised = self.scored(self.scorer(self.nets, thoughts), batch, beta, kernel)
            found = explain(self.setup.objective, scores, raised)
        if finite and isinstance(self.setup.objective, CheckedObjective):
            self.setup.objective.refuse_unfinite(scores, raised, found.loss)
        return tuple(self.setup.parts(scores, batch, raised, found.parts))

    def relearn(self, past: Past, beta: Float[Tensor, ""], rate: Float[Tensor, ""]) -> None:
        """Update policy and flow on past trajectories."""
        self.setup.optimiser.step(self._loss_of(past, beta).mean(), rate)

    @torch.no_grad()
    def losses(self, past: Past, beta: Float[Tensor, ""]) -> Float[Tensor, " B"]:
        """The present loss of each past trajectory."""
        return self._loss_of(past, beta)

    def _loss_of(self, past: Past, beta: Float[Tensor, ""]) -> Float[Tensor, " B"]:
        return self.setup.objective(*self.scored_again(rebuild(self.env, *past), beta))

    def scored_again(self, batch: Trajectories, beta: Float[Tensor, ""]) -> tuple[Scores, Trajectories]:
        """Arguments of the objective for trajectories of any origin, at the present weights."""
        with torch.no_grad():
            thoughts = self.thoughts(batch)
            kernel = self.noise_kernel(batch.states[:, :-1], thoughts)
        scorer = self.scorer(self.state_scorer(batch.valid.shape[0]), thoughts)
        return self.scored(scorer, batch, beta, kernel)

    @torch.no_grad()
    def log_chance(self, batch: Trajectories) -> Float[Tensor, " B"]:
        r"""$\sum_t \log\bar P(k_t|s_t) - \log P_B(s_t|s_{t+1})$ of the policy through the noise, parents uniform.

        Its negative exponential has the mean $1 / P(x)$ over rollouts that end in x.
        """
        thoughts = self.thoughts(batch)
        kernel = self.noise_kernel(batch.states[:, :-1], thoughts)
        scorer = self.scorer(self.state_scorer(len(batch.valid)), thoughts)
        parents = self.env.parents(batch.states[:, 1:]).sum(-1).clamp(min=1).float()
        log_pf = score(scorer, batch, "marginal", kernel).log_pf
        return (log_pf + torch.where(batch.valid, parents.log(), 0.0)).sum(1)

    @torch.no_grad()
    def shortfall(self, batch: Trajectories, beta: Float[Tensor, ""]) -> Float[Tensor, " B"]:
        """Log-reward of each trajectory less what the networks give it: log Z and its steps, in the run's own form."""
        scores, raised = self.scored_again(batch, beta)
        return raised.log_reward - scores.log_z - (scores.log_pf + scores.log_dynamics - scores.log_pb).sum(1)

    def scored(
        self, scorer: Scorer, batch: Trajectories, beta: Float[Tensor, ""], kernel: Kernel
    ) -> tuple[Scores, Trajectories]:
        """Arguments of the objective: scores, and the batch at the current reward exponent."""
        raised = tempered(batch, beta)
        if self.reads_expected:
            reward = lambda x: beta * self.setup.task.log_reward(x)  # noqa: E731
            return score_expected(self.env, self.nets, batch, kernel, reward), raised
        return score(scorer, batch, self.form, kernel), raised

    def refit_noise_model(self, past: Past, rate: Float[Tensor, ""]) -> Float[Tensor, ""]:
        """Update the noise model on past outcomes; returns its loss."""
        return self.fit_noise_model(rebuild(self.env, *past), rate)

    def fit_noise_model(self, batch: Trajectories, rate: Float[Tensor, ""]) -> Float[Tensor, ""]:
        """Update the noise model by maximum likelihood on the outcomes of a batch; returns its loss."""
        thoughts = self.thoughts(batch)
        kernel = self.noise_model.operator(batch.states[:, :-1], None if thoughts is None else thoughts[:, :-1])
        nll = self.setup.weighed(dynamics.negative_log_likelihood(kernel, batch), batch.valid)
        self.setup.noise_optimiser.step(nll, rate)
        return nll.detach()
