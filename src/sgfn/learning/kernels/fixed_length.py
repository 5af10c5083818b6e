"""Scores and gradients on append-only sequences of one length, from what a rollout has left behind.

The same numbers as the general way through `scoring` and autograd, in fewer operations: autograd sees only what lies
between the networks' outputs and the loss, `nets.rows` knows the rest of the way.
"""

from collections.abc import Callable
from dataclasses import dataclass
from types import ModuleType
from typing import NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor

from sgfn.envs.sequence import SequenceEnv
from sgfn.envs.tabulated import TabulatedEnv
from sgfn.envs.trajectories import Episodes, tempered
from sgfn.learning.backend import Backend, Learned, Past, Setup
from sgfn.learning.kernels.channel import Channel
from sgfn.learning.kernels.fixed_length_net import CodedRows, ForwardPass, RowNet
from sgfn.learning.kernels.fixed_length_rollout import (
    KernelRollouts,
    KernelSequenceRollouts,
    SequenceBatch,
    SequenceDraws,
    SequenceRollouts,
)
from sgfn.learning.scoring import kl_divergence
from sgfn.nets.dynamics import FullNoiseModel
from sgfn.nets.encoders import MLP, sequence_of
from sgfn.nets.heads import FlowNets
from sgfn.objectives import reads_scores
from sgfn.objectives.scores import Scores

READ = (
    "kernel",
    "initial",
    "done",
    "legal",
    "possible",
    "slippable",
    "apply",
    "encode",
    "objects",
    "position",
    "levels",
)
"""Methods of `SequenceEnv` that this backend has put into its own formulas: a subclass that overrides one is another
environment."""


def fits(setup: Setup) -> bool:
    """Whether this backend gives what the general one gives: sequences of one length as `SequenceEnv` writes them, an
    MLP that reads states alone, no backward policy, and a noise model of the state, or the true kernel."""
    env, nets, config = sequence_of(setup.env), setup.nets, setup.config
    if env is None or env.stop or env.actions != env.outcomes:
        return False
    if any(getattr(type(env), name) is not getattr(SequenceEnv, name) for name in READ):
        return False
    plain = type(nets) is FlowNets and type(nets.encoder) is MLP and not nets.reads_along and not nets.reads_final
    modelled = config.dynamics.mode == "known" or type(setup.noise_model) is FullNoiseModel
    return plain and modelled and not reads_scores(config, "expected") and config.offline_batch == 0


class NoiseModelGradient(NamedTuple):
    """What a batch tells the noise model: what it said, and how its loss changes with that.

    A tuple, as `ForwardPass` and `CodedRows` are: compiled functions hand those on.
    """

    said: ForwardPass
    slope: Float[Tensor, "AK N"]
    rows: CodedRows | None
    """None stands for those of batches of this size."""
    last: Int[Tensor, " B"] | None
    realised: Int[Tensor, "T B"]


@dataclass(frozen=True, kw_only=True)
class Gradients:
    """The loss of a batch, the noise model's, and their gradients."""

    loss: Float[Tensor, ""]
    nll: Float[Tensor, ""]
    entropy: Float[Tensor, " N"] | None
    """`ENTROPY_METERS` of the batch, where a run watches them."""
    nets: list[Tensor]
    """With respect to `FixedLengthBackend.parameters`."""
    noise_model: NoiseModelGradient | None
    """For the noise model, where it was asked to learn."""


class FixedLengthBackend(Backend):
    """Sequences of one length: rollouts that carry the first layer along, gradients of the MLP by hand."""

    def __init__(self, setup: Setup) -> None:
        super().__init__(setup)
        env, nets, model = sequence_of(setup.env), setup.nets, setup.noise_model
        assert env is not None
        assert isinstance(nets.encoder, MLP)
        self.env, self.task, self.nets = env, setup.task, nets
        self.device, self.learned = setup.device, self.config.dynamics.mode != "known"
        self.compare = self.device.type == "cuda"  # see `picked`
        outcome = [] if nets.outcome is None else [nets.outcome]
        heads = [nets.policy, *outcome, *([nets.flow] if setup.reads_flow else [])]
        self.net = RowNet(nets.encoder, heads, setup.optimiser)
        self.model = None
        if isinstance(model, FullNoiseModel) and self.learned:
            self.model = RowNet(model.encoder, [model.outcome], setup.noise_optimiser)
        self.parameters = [*self.net.parameters, nets.log_z]  # what a balance teaches
        self.channel = Channel(env, self.device)
        self.roller = SequenceRollouts(env, self.net, self.channel, self.device)
        self.places = torch.arange(env.length, device=self.device)[:, None] * env.vocab
        self.log_columns = self.channel.log_table.permute(1, 0, 2).flatten(1)  # A TK
        self.powers = env.vocab ** torch.arange(env.length - 1, -1, -1, device=self.device)[:, None]
        tabulated = isinstance(setup.env, TabulatedEnv) and not self.task.landscape.on_host
        self.rewards = self.task.log_reward(env.all_objects().to(self.device)) if tabulated else None
        self._nothing: dict[int, Tensor] = {}

    def walk_by(self, kernel: ModuleType, env: TabulatedEnv) -> None:
        """Let a GPU kernel make all rollouts from now on."""
        self.roller = KernelSequenceRollouts(kernel, env, self.net, self.channel, self.config.batch)

    def draw(self, generator: torch.Generator, temperature: float | Tensor) -> SequenceDraws | KernelRollouts:
        """Random numbers of a batch of rollouts, or where a kernel makes them the rollouts."""
        return self.roller.draw(self.config.batch, generator, self.config.explore, temperature)

    def learn(
        self, draws: SequenceDraws | KernelRollouts, beta: Float[Tensor, ""], rate: Float[Tensor, ""]
    ) -> tuple[Episodes, Learned]:
        """A batch of rollouts and its update; where the noise model learns from batches, its update is left to do."""
        own, found = self.measure(draws, beta)
        self.setup.optimiser.apply(found.nets, rate, self.parameters)
        return own, Learned(loss=found.loss, noise_loss=found.nll, entropy=found.entropy, pending=found.noise_model)

    def update_noise_model(self, pending: NoiseModelGradient, rate: Float[Tensor, ""]) -> None:
        """One step along the gradient that a batch left."""
        assert self.model is not None
        self.setup.noise_optimiser.apply(self.noise_model_gradients(pending), rate, self.model.parameters)

    def noise_model_gradients(self, pending: NoiseModelGradient) -> list[Tensor]:
        """Gradients of the noise model's weights, from those of its outputs."""
        assert self.model is not None
        rows = pending.rows or self.roller.rows(pending.realised.shape[1])
        return self.model.backward(rows, pending.said, pending.slope, pending.last, pending.realised)

    def measure(self, draws: SequenceDraws | KernelRollouts, beta: Float[Tensor, ""]) -> tuple[Episodes, Gradients]:
        """A batch of rollouts, and what it tells the weights."""
        walk, found = self.roller.roll(draws)
        own = self.episodes(walk, self.log_reward(walk.realised))
        return own, self.gradients(walk, found, own, beta, learn=self.config.dynamics.mode == "batch")

    def remeasure(self, past: Past, beta: Float[Tensor, ""]) -> Gradients:
        """Loss and gradients of past trajectories."""
        intended, realised, log_reward = past
        walk = self.roller.walk(intended, realised)
        found, batch = self.net.forced(walk.rows, walk.last, walk.realised), self.episodes(walk, log_reward)
        return self.gradients(walk, found, batch, beta, learn=False)

    def prepare(self) -> None:
        """Make what is kept for the batch sizes of the run, so that nothing is made on the way."""
        for size in {self.config.batch, self.config.replay.batch or self.config.batch}:
            self.roller.rows(size)
            self.nothing(size)

    def relearn(self, past: Past, beta: Float[Tensor, ""], rate: Float[Tensor, ""]) -> None:
        """An update from past trajectories: balance holds off-policy."""
        self.setup.optimiser.apply(self.remeasure(past, beta).nets, rate, self.parameters)

    def refit_noise_model(self, past: Past, rate: Float[Tensor, ""]) -> Float[Tensor, ""]:
        """An update of the noise model from past outcomes."""
        assert self.model is not None
        nll, gradients = self.fit(past)
        self.setup.noise_optimiser.apply(gradients, rate, self.model.parameters)
        return nll

    def log_reward(self, realised: Int[Tensor, "T B"]) -> Float[Tensor, " B"]:
        """Looked up by number, or asked of the task."""
        if self.rewards is None:
            return self.task.log_reward(realised.t())
        return self.rewards.index_select(0, (realised * self.powers).sum(0))

    def episodes(self, walk: SequenceBatch, log_reward: Float[Tensor, " B"]) -> Episodes:
        """The batch as trajectories without states."""
        valid = self.nothing(walk.realised.shape[1]) == 0
        return Episodes(intended=walk.intended.t(), realised=walk.realised.t(), valid=valid, log_reward=log_reward)

    def gradients(
        self,
        walk: SequenceBatch,
        found: ForwardPass,
        batch: Episodes,
        beta: Float[Tensor, ""],
        learn: bool,
    ) -> Gradients:
        """Loss and gradients of a batch at a reward exponent; with `learn` a lesson for the noise model as well."""
        said = None if self.model is None else self.model.forced(walk.rows, walk.last, walk.realised)

        def losses(outputs: Tensor, log_z: Tensor, kernel: Tensor | None = None) -> tuple[Tensor, tuple[Tensor, ...]]:
            kernel = kernel if said is None or kernel is not None else said.outputs
            columns = self.columns(walk, kernel)
            scores = self.scores(walk, outputs, log_z, columns, kernel)
            loss, nll = self.setup.objective(scores, tempered(batch, beta)).mean(), self.nll(walk, columns)
            return loss + nll, (loss, nll, *self._figures(scores, batch))

        (log_z,) = self.setup.optimiser.present([self.nets.log_z])
        inputs = [found.outputs, log_z.detach()]
        pending = None
        if said is not None and learn:
            slopes, (loss, nll, *figures) = output_gradients(losses, [*inputs, said.outputs])
            rows = walk.rows if isinstance(walk.rows, CodedRows) else None
            pending = NoiseModelGradient(said=said, slope=slopes[2], rows=rows, last=walk.last, realised=walk.realised)
        else:
            slopes, (loss, nll, *figures) = output_gradients(losses, inputs)
        nets = [*self.net.backward(walk.rows, found, slopes[0], walk.last, walk.realised), slopes[1]]
        entropy = figures[0] if figures else None
        return Gradients(loss=loss, nll=nll, entropy=entropy, nets=nets, noise_model=pending)

    def _figures(self, scores: Scores, batch: Episodes) -> list[Tensor]:
        found = self.setup.entropy(scores, batch)
        return [] if found is None else [found]

    def fit(self, past: Past) -> tuple[Float[Tensor, ""], list[Tensor]]:
        """The noise model's loss and gradients on past outcomes, and nothing else."""
        assert self.model is not None
        walk = self.roller.walk(past[0], past[1])
        said = self.model.forced(walk.rows, walk.last, walk.realised)

        def loss(kernel: Tensor) -> tuple[Tensor, tuple[Tensor, ...]]:
            nll = self.nll(walk, self.columns(walk, kernel))
            return nll, (nll,)

        (slope,), (nll,) = output_gradients(loss, [said.outputs])
        return nll, self.model.backward(walk.rows, said, slope, walk.last, walk.realised)

    def columns(self, walk: SequenceBatch, kernel: Float[Tensor, "AK N"] | None) -> Float[Tensor, "A TB"]:
        """log P^ of what happened, under every intention."""
        if kernel is None:
            return self.log_columns.index_select(1, (walk.realised + self.places).flatten())
        if walk.index is None:
            return picked(self.log_kernel(kernel), walk.realised.flatten(), self.compare)
        place = torch.add(walk.index, walk.realised.flatten(), alpha=kernel.shape[1])  # K N
        return visited(self.log_kernel(kernel).flatten(1), place)

    def log_kernel(self, kernel: Float[Tensor, "AK N"]) -> Float[Tensor, "A K N"]:
        """Logarithms of the noise model's laws, from its outputs."""
        return torch.log_softmax(kernel.unflatten(0, (self.env.vocab, self.env.vocab)), 1)

    def nll(self, walk: SequenceBatch, columns: Float[Tensor, "A TB"]) -> Float[Tensor, ""]:
        """Negative log-likelihood of the outcomes given the intentions."""
        return -picked(columns, walk.intended.flatten(), self.compare).mean()

    def scores(
        self,
        walk: SequenceBatch,
        outputs: Float[Tensor, "O N"],
        log_z: Float[Tensor, ""],
        columns: Float[Tensor, "A TB"],
        kernel: Tensor | None,
    ) -> Scores:
        """What the objective reads, as `scoring` would tell it."""
        vocab, steps, batch = self.env.vocab, *walk.realised.shape
        logits, columns = torch.log_softmax(outputs[:vocab], 0), columns.detach()
        log_policy = visited(logits, walk.index)  # A TB
        log_pf, projection = self._forward(walk, outputs, log_policy, columns), None
        if self.nets.outcome is not None:
            projection = self._projection(walk, logits, outputs, kernel)
        return Scores(
            log_pf=log_pf.view(steps, batch).t(),
            log_dynamics=self.nothing(batch),
            log_pb=self.nothing(batch),
            log_flow=self._log_flow(walk, outputs, log_z) if self.setup.reads_flow else None,
            log_z=log_z,
            projection=projection,
            **self._intentions(walk, log_policy, columns),
        )

    def _forward(
        self, walk: SequenceBatch, outputs: Tensor, log_policy: Tensor, columns: Tensor
    ) -> Float[Tensor, " TB"]:
        """Of the outcome: under the outcome policy, the policy taken at its word, or with intentions summed out."""
        if self.nets.outcome is not None:
            vocab = self.env.vocab
            log_policy = visited(torch.log_softmax(outputs[vocab : 2 * vocab], 0), walk.index)
        elif self.nets.form == "marginal" and (self.learned or not self.channel.silent):
            return torch.logsumexp(log_policy + columns, 0)
        return picked(log_policy, walk.realised.flatten(), self.compare)

    def _projection(
        self, walk: SequenceBatch, logits: Tensor, outputs: Tensor, kernel: Tensor | None
    ) -> Float[Tensor, "B T"]:
        """KL from the outcome policy to the policy's law, row by row."""
        vocab = self.env.vocab
        log_outcome = torch.log_softmax(outputs[vocab : 2 * vocab], 0).detach()  # K N
        if kernel is None:
            log_kernel = self.channel.log_table[walk.rows.depth].permute(1, 2, 0)  # A K N
        else:
            log_kernel = self.log_kernel(kernel.detach())
        log_law = torch.logsumexp(logits[:, None] + log_kernel, 0)
        found = visited(kl_divergence(log_outcome.t(), log_law.t())[None], walk.index)
        return found.view(walk.realised.shape).t()

    def _log_flow(self, walk: SequenceBatch, outputs: Tensor, log_z: Tensor) -> Float[Tensor, "B N"]:
        """log Z at the root, then as the network says; the last state is final."""
        steps, batch = walk.realised.shape
        inner = visited(outputs[-1:], walk.index).view(steps, batch)[1:].t()
        root = log_z.expand(batch, 1)
        return torch.cat([root, inner, torch.zeros_like(root)], 1)

    def _intentions(self, walk: SequenceBatch, log_policy: Tensor, columns: Tensor) -> dict[str, Tensor]:
        """Policy and posterior over all intentions, where the objective or exploration reads them."""
        if not self.setup.reads_intentions:
            return {}
        joint = log_policy + columns
        posterior = joint - torch.logsumexp(joint, 0)
        shape = (self.env.vocab, *walk.realised.shape)
        return {
            "log_policy": log_policy.view(shape).permute(2, 1, 0),
            "log_intention": posterior.view(shape).permute(2, 1, 0),
        }

    def nothing(self, batch: int) -> Float[Tensor, "B T"]:
        """A matrix of zeros of the batch's size, made once."""
        if batch not in self._nothing:
            self._nothing[batch] = torch.zeros(batch, self.env.length, device=self.device)
        return self._nothing[batch]


def output_gradients(
    function: Callable[..., tuple[Tensor, tuple[Tensor, ...]]], inputs: list[Tensor]
) -> tuple[tuple[Tensor, ...], tuple[Tensor, ...]]:
    """Gradients of a function's first result at some inputs, and its second; in a way that a compiler can follow."""
    if torch.compiler.is_compiling():
        return torch.func.grad(function, tuple(range(len(inputs))), has_aux=True)(*inputs)
    with torch.enable_grad():
        leaves = [value.detach().requires_grad_() for value in inputs]
        result, more = function(*leaves)
    gradients = torch.autograd.grad(result, leaves, materialize_grads=True)  # an objective may leave some outputs out
    return gradients, tuple(value.detach() for value in more)


def visited(table: Float[Tensor, "C N"], index: Int[Tensor, " M"] | None) -> Float[Tensor, "C M"]:
    """Columns of a table, None for all; `gather` sends gradients back by adding, without sorting the index first."""
    return table if index is None else table.gather(1, index.expand(table.shape[0], -1))


def picked(table: Float[Tensor, "*A C N"], row: Int[Tensor, " N"], compare: bool = False) -> Float[Tensor, "*A N"]:
    """One entry of each column. A GPU is told to compare, not to look up: gradients then need not be added up.

    >>> picked(torch.tensor([[1.0, 2.0], [3.0, 4.0]]), torch.tensor([1, 0]))
    tensor([3., 2.])
    """
    if compare:
        here = torch.arange(table.shape[-2], device=row.device)[:, None] == row
        return torch.where(here, table, 0.0).sum(-2)
    return table.gather(-2, row.expand(*table.shape[:-2], 1, -1)).squeeze(-2)
