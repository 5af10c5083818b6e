"""The compiled backend: any environment, noise, network and objective, the loss and its gradient by `torch.compile`.

Rollouts are those of the general backend, by a GPU kernel where one fits; rewards are computed as the task computes
them. What lies between, scores, objective, gradients and optimiser, is compiled in three functions.
"""

import torch
from jaxtyping import Float, Int
from torch import Tensor

from sgfn.envs.trajectories import Episodes, Trajectories
from sgfn.learning import dynamics
from sgfn.learning.backend import Backend, Learned, LogRewards, Past, UnscoredBatch, stacked
from sgfn.learning.compilation import KEPT, MOST_KEPT, NotCompilableError, compiled
from sgfn.learning.general import BatchDraws, GeneralBackend, rewarded
from sgfn.learning.kept_letters import KeptLetters, make_letters
from sgfn.learning.replay import rebuild
from sgfn.learning.rollout import LogReward
from sgfn.learning.trajectory_scorer import TrajectoryScorer
from sgfn.noise.operators import Kernel
from sgfn.objectives.parts import explain


class CompiledBackend(Backend):
    """Scores and updates as the general backend does, in compiled functions of tensors whose shapes never change."""

    def __init__(self, general: GeneralBackend, *, rounded: bool = False) -> None:
        """`rounded` allows kernels for CPUs to round factors of the gradient's products to bfloat16."""
        super().__init__(general.setup)
        self.general, self.env, self.device = general, general.env, general.setup.device
        self.before = general.sequences
        if general.sequences is None:
            general.sequences = make_letters(self.env, general.nets, self.device, rounded=rounded)
        self.learns_noise = self.config.dynamics.mode == "batch"
        setup = general.setup
        self.optimisers = [setup.optimiser, *([setup.noise_optimiser] if self.learns_noise else [])]
        self.own = self.config.batch - (self.config.offline_batch if setup.offline is not None else 0)
        kept = KEPT if self.config.batch * self.env.horizon <= MOST_KEPT else {}
        self.log_reward = self._reward() or setup.task.log_reward
        self.losses = compiled(self._losses, self.device, **kept)
        self.losses_of_read = compiled(self._losses_of_read, self.device, **kept)
        self.past_losses = compiled(self._past_losses, self.device, **kept)
        self.past_noise_loss = compiled(self._past_noise_loss, self.device)
        self.apply = compiled(self._apply, self.device)
        self.apply_nets = compiled(self._apply_nets, self.device)
        self.apply_noise = compiled(self._apply_noise, self.device)

    def draw(self, generator: torch.Generator, temperature: float | Tensor) -> BatchDraws:
        """Random numbers of one batch of rollouts, as the general backend draws them."""
        return self.general.draw(generator, temperature)

    def begin(self, draws: BatchDraws) -> UnscoredBatch:
        """Roll out a batch."""
        parts = self.general.rolled(self.general.nets, draws)
        return UnscoredBatch(objects=self.general.objects(parts), rollouts=parts)

    def log_rewards(self, batch: UnscoredBatch) -> LogRewards:
        """Log-rewards of the objects of a batch, compiled where the task's may be."""
        return [self.log_reward(objects) for objects in batch.objects]

    def complete(
        self, batch: UnscoredBatch, log_rewards: LogRewards, beta: Float[Tensor, ""], rate: Float[Tensor, ""]
    ) -> tuple[Episodes, Learned]:
        """Update on a batch."""
        own, whole = rewarded(batch.rollouts, log_rewards)
        total, loss, nll, *parts = self._scored(beta, whole)
        parameters = [p for optimiser in self.optimisers for p in optimiser.parameters]
        self.apply(rate, *torch.autograd.grad(total, parameters, materialize_grads=True))
        found = parts[0].detach() if parts else None
        return own, Learned(loss=loss.detach(), noise_loss=nll.detach(), parts=found, pending=None)

    def _scored(self, beta: Float[Tensor, ""], batch: Trajectories) -> tuple[Tensor, ...]:
        """Losses of a batch, from representations that its rollout kept where it did."""
        rollouts = self.general.sequences
        read = rollouts.representations(batch) if isinstance(rollouts, KeptLetters) else None
        known = self.tensors(batch)
        return self.losses(beta, *known) if read is None else self.losses_of_read(beta, read, *known)

    def try_out(self, generator: torch.Generator, temperature: float | Tensor, beta: Float[Tensor, ""]) -> None:
        """Compile loss and rollouts by one batch that changes nothing; raises `NotCompilableError` where it fails."""
        copy = torch.Generator(generator.device)
        copy.set_state(generator.get_state())
        try:
            _, batch = self.general.collect(self.general.nets, self.draw(copy, temperature), self.log_reward)
            total, *_ = self._scored(beta, batch)
            torch.autograd.grad(total, self.optimisers[0].parameters, materialize_grads=True)
            self._try_past(batch, beta)
        except Exception as error:
            self.general.sequences = self.before
            first = next((line.strip() for line in str(error).splitlines() if line.strip()), type(error).__name__)
            raise NotCompilableError(f"the compiler refused this step ({first})") from error

    def _try_past(self, batch: Trajectories, beta: Float[Tensor, ""]) -> None:
        """Compile what learns from a replay buffer, by a batch of the sizes that it will have."""
        config, setup = self.config, self.setup

        def rows(size: int) -> Past:
            pick = torch.arange(size or config.batch, device=self.device) % len(batch.intended)
            return batch.intended[pick], batch.realised[pick], batch.log_reward[pick]

        if config.replay.updates:
            loss = self.past_losses(beta, *rows(config.replay.batch))
            torch.autograd.grad(loss, setup.optimiser.parameters, materialize_grads=True)
        if config.dynamics.mode == "replay":
            loss = self.past_noise_loss(*rows(config.dynamics.batch))
            torch.autograd.grad(loss, setup.noise_optimiser.parameters, materialize_grads=True)

    def relearn(self, past: Past, beta: Float[Tensor, ""], rate: Float[Tensor, ""]) -> None:
        """Update policy and flow on past trajectories."""
        loss, optimiser = self.past_losses(beta, *past), self.setup.optimiser
        self.apply_nets(rate, *torch.autograd.grad(loss, optimiser.parameters, materialize_grads=True))

    def refit_noise_model(self, past: Past, rate: Float[Tensor, ""]) -> Float[Tensor, ""]:
        """Update the noise model on past outcomes; returns its loss."""
        loss, optimiser = self.past_noise_loss(*past), self.setup.noise_optimiser
        self.apply_noise(rate, *torch.autograd.grad(loss, optimiser.parameters, materialize_grads=True))
        return loss.detach()

    # what is compiled

    def _reward(self) -> LogReward | None:
        """The task's reward compiled, on a GPU, where it may be and one call scores the whole batch; else None."""
        task = self.setup.task
        traceable = vars(type(task.landscape)).get("traceable", False)
        if self.device.type != "cuda" or self.setup.offline is not None or not traceable:
            return None
        return compiled(task.log_reward, self.device)

    def tensors(self, batch: Trajectories) -> tuple[Tensor, ...]:
        """Trajectories as tensors; states of sequences are left out, which compiled functions build again."""
        known = (batch.intended, batch.realised, batch.log_reward)
        return known if self._builds_states else (*known, batch.valid, batch.states)

    @property
    def _builds_states(self) -> bool:
        return bool(getattr(self.env, "writes_in_order", False))

    def _trajectories(
        self,
        intended: Int[Tensor, "B T"],
        realised: Int[Tensor, "B T"],
        log_reward: Float[Tensor, " B"],
        valid: Tensor | None = None,
        states: Tensor | None = None,
    ) -> Trajectories:
        if valid is None or states is None:
            return rebuild(self.env, intended, realised, log_reward)
        return Trajectories(intended=intended, realised=realised, log_reward=log_reward, valid=valid, states=states)

    def _losses(self, beta: Tensor, *known: Tensor) -> tuple[Tensor, ...]:
        """The sum of both losses, each of them, and what is logged."""
        return self._losses_of_read(beta, None, *known)

    def _losses_of_read(self, beta: Tensor, read: Tensor | None, *known: Tensor) -> tuple[Tensor, ...]:
        """The same, of states whose representations are given."""
        batch = self._trajectories(*known)
        with torch.set_grad_enabled(self.learns_noise):
            thoughts, kernel = self._noise(batch)
            nll = dynamics.negative_log_likelihood(kernel, batch, self.own)
        scorer = TrajectoryScorer(self.general.nets, thoughts, read)
        scores, raised = self.general.scored(scorer, batch, beta, kernel)
        found = explain(self.setup.objective, scores, raised)
        loss = found.loss.mean()
        parts = stacked(self.setup.parts(scores, batch, raised, found.parts))
        total = loss + nll if self.learns_noise else loss
        return (total, loss.detach(), nll.detach(), *([] if parts is None else [parts]))

    def _past_losses(self, beta: Tensor, *known: Tensor) -> Tensor:
        batch = self._trajectories(*known)
        with torch.no_grad():
            thoughts, kernel = self._noise(batch)
        scorer = TrajectoryScorer(self.general.nets, thoughts)
        return self.setup.objective(*self.general.scored(scorer, batch, beta, kernel)).mean()

    def _past_noise_loss(self, *known: Tensor) -> Tensor:
        batch = self._trajectories(*known)
        thoughts = self.general.thoughts(batch)
        thoughts = None if thoughts is None else thoughts[:, :-1]
        return dynamics.negative_log_likelihood(self.general.noise_model.along(batch.states[:, :-1], thoughts), batch)

    def _noise(self, batch: Trajectories) -> tuple[Tensor | None, Kernel]:
        """Thoughts of the histories, and P^ at the states before each step."""
        general, states = self.general, batch.states[:, :-1]
        if not general.learns_noise:
            return None, self.env.operator(states)
        thoughts = general.thoughts(batch)
        return thoughts, general.noise_model.along(states, None if thoughts is None else thoughts[:, :-1])

    def _apply(self, rate: Tensor, *gradients: Tensor) -> None:
        for optimiser in self.optimisers:
            count = len(optimiser.parameters)
            optimiser.apply(gradients[:count], rate)
            gradients = gradients[count:]

    def _apply_nets(self, rate: Tensor, *gradients: Tensor) -> None:
        self.setup.optimiser.apply(gradients, rate)

    def _apply_noise(self, rate: Tensor, *gradients: Tensor) -> None:
        self.setup.noise_optimiser.apply(gradients, rate)
