"""Backend for append-only sequences of one length: scores and gradients from what a rollout has computed already.

The same numbers as the general way through `scoring` and autograd, in fewer operations: autograd sees only what lies
between the networks' outputs and the loss, `fixed_length_net` has the gradients of the networks.
"""

from collections.abc import Callable
from dataclasses import dataclass
from types import ModuleType
from typing import NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor

from sgfn.envs.tabulated import TabulatedEnv
from sgfn.envs.trajectories import Episodes, WholeEpisodes, tempered
from sgfn.learning.backend import Backend, Learned, LogRewards, Past, Setup, UnscoredBatch, stacked
from sgfn.learning.forms import form_entry
from sgfn.learning.kernels.fixed_length_net import CodedRows, ForwardPass, NoiseTable, RowNet
from sgfn.learning.kernels.fixed_length_rollout import (
    Drawn,
    KernelSequenceRollouts,
    SameDrawRollouts,
    SequenceBatch,
    SequenceRollouts,
)
from sgfn.learning.kernels.sequence_actor import ASSUMED_METHODS, plain_sequence
from sgfn.learning.kernels.sequence_noise import SequenceNoise
from sgfn.learning.scoring import kl_divergence
from sgfn.nets.dynamics import FullNoiseModel, TableNoiseModel
from sgfn.nets.encoders import MLP, sequence_of
from sgfn.nets.heads import FlowNets
from sgfn.objectives import reads_scores, scored_as
from sgfn.objectives.parts import explain
from sgfn.objectives.scores import Scores

ASSUMED_HERE = (*ASSUMED_METHODS, "levels", "index", "object_index", "all_objects")
"""Methods of `SequenceEnv` that this backend has put into its own formulas."""


def fits(setup: Setup) -> bool:
    """Whether this backend gives what the general one gives: sequences of one length as `SequenceEnv` writes them, an
    MLP that reads states alone, no backward policy, and one of our noise models, or the true kernel."""
    nets, config = setup.nets, setup.config
    if plain_sequence(setup.env, ASSUMED_HERE) is None:
        return False
    plain = type(nets) is FlowNets and type(nets.encoder) is MLP and not nets.reads_along and not nets.reads_final
    modelled = config.dynamics.mode == "known" or type(setup.noise_model) in (FullNoiseModel, TableNoiseModel)
    formed = form_entry(scored_as(config)).fixed_length
    return plain and modelled and formed and not reads_scores(config, "expected") and config.offline_batch == 0


class NoiseModelGradient(NamedTuple):
    """Forward pass of the noise model on a batch, and the gradient of its loss with respect to its outputs.

    A tuple, as `ForwardPass` and `CodedRows` are: compiled functions can return tuples.
    """

    forward_pass: ForwardPass
    output_gradient: Float[Tensor, "AK N"]
    """By row: of a network's states, or of a table."""
    rows: CodedRows | None
    """None: the rows of `SequenceRollouts.rows` for batches of this size."""
    last: Int[Tensor, " B"] | None
    realised: Int[Tensor, "T B"]


@dataclass(frozen=True, kw_only=True)
class Gradients:
    """Loss of a batch, negative log-likelihood under the noise model, and the gradients of both."""

    loss: Float[Tensor, ""]
    nll: Float[Tensor, ""]
    parts: Float[Tensor, " P"] | None
    """`Setup.parts` of the batch; None where there are none."""
    nets: list[Tensor]
    """Gradients of the loss with respect to `FixedLengthBackend.parameters`."""
    noise_model: NoiseModelGradient | None
    """Gradient of the noise model's outputs; None where it does not learn from this batch."""


class FixedLengthBackend(Backend):
    """Sequences of one length: rollouts that carry the first layer along, gradients of the MLP by hand."""

    extends = True

    def __init__(self, setup: Setup) -> None:
        super().__init__(setup)
        env, nets, model = sequence_of(setup.env), setup.nets, setup.noise_model
        assert env is not None
        assert isinstance(nets.encoder, MLP)
        self.env, self.task, self.nets = env, setup.task, nets
        self.marginal = scored_as(self.config) == "marginal"
        self.device, self.learned = setup.device, self.config.dynamics.mode != "known"
        self.compare = self.device.type == "cuda"  # see `picked`
        outcome = [] if nets.outcome is None else [nets.outcome]
        heads = [nets.policy, *outcome, *([nets.flow] if setup.reads_flow else [])]
        self.net = RowNet(nets.encoder, heads, setup.optimiser)
        self.model: RowNet | NoiseTable | None = None
        if isinstance(model, FullNoiseModel) and self.learned:
            self.model = RowNet(model.encoder, [model.outcome], setup.noise_optimiser)
        elif isinstance(model, TableNoiseModel) and self.learned:
            self.model = NoiseTable(model, setup.noise_optimiser)
        self.parameters = [*self.net.parameters, nets.log_z]  # those that the objective trains
        self.noise = SequenceNoise(env, self.device)
        self.position_offsets = torch.arange(env.length, device=self.device)[:, None] * env.vocab
        self.tokens = torch.arange(env.vocab, device=self.device)[:, None]
        free = self.noise.noise_free
        self.log_columns = None if free else self.noise.log_table.permute(1, 0, 2).flatten(1)  # A TK
        self.powers = env.vocab ** torch.arange(env.length - 1, -1, -1, device=self.device)[:, None]
        tabulated = isinstance(setup.env, TabulatedEnv) and not self.task.landscape.on_host
        self.rewards = self.task.log_reward(env.all_objects().to(self.device)) if tabulated else None
        rollouts = SameDrawRollouts if self.rewards is None else SequenceRollouts
        self.roller = rollouts(env, self.net, self.noise, self.device)
        self._zeros: dict[int, Tensor] = {}

    def use_rollout_kernel(self, kernel: ModuleType, env: TabulatedEnv) -> None:
        """Make all rollouts by a GPU kernel from now on."""
        self.roller = KernelSequenceRollouts(kernel, env, self.net, self.noise, self.config.batch)
        self.extends = False  # its rows are of batches of one size

    def draw(self, generator: torch.Generator, temperature: float | Tensor) -> Drawn:
        """Random numbers of a batch of rollouts; the rollouts themselves where a GPU kernel makes them."""
        return self.roller.draw(self.config.batch + self.extra, generator, self.config.explore, temperature)

    def begin(self, draws: Drawn) -> UnscoredBatch:
        """A batch of rollouts, with the forward pass over its states."""
        batch, found = self.roller.roll(draws)
        return UnscoredBatch(objects=[batch.realised.t()], rollouts=(batch, found))

    def log_rewards(self, batch: UnscoredBatch) -> LogRewards:
        """Log-rewards of the sequences of a batch, which are all the agent's own."""
        return [self.log_reward(batch.rollouts[0].realised)]

    def log_reward(self, realised: Int[Tensor, "T B"]) -> Float[Tensor, " B"]:
        """Log-reward of each sequence, from the table of all sequences or from the task's landscape."""
        if self.rewards is None:
            return self.task.log_reward(realised.t())
        return self.rewards.index_select(0, (realised * self.powers).sum(0))

    def complete(
        self, batch: UnscoredBatch, log_rewards: LogRewards, beta: Float[Tensor, ""], rate: Float[Tensor, ""]
    ) -> tuple[Episodes, Learned]:
        """Update policy and flow on a batch; the update of the noise model is left in `pending`."""
        sequences, found = batch.rollouts
        own = self.episodes(sequences, log_rewards[0])
        learn = self.config.dynamics.mode == "batch"
        return own, self._apply(self.gradients(sequences, found, own, beta, learn=learn), rate)

    def update_noise_model(self, pending: NoiseModelGradient, rate: Float[Tensor, ""]) -> None:
        """Update the noise model along the gradient that `learn` left in `pending`."""
        assert self.model is not None
        self.setup.noise_optimiser.apply(self.noise_model_gradients(pending), rate, self.model.parameters)

    def noise_model_gradients(self, pending: NoiseModelGradient) -> list[Tensor]:
        """Gradients of the noise model's weights, from those of its outputs."""
        assert self.model is not None
        rows = pending.rows or self.roller.rows(pending.realised.shape[1])
        return self.model.backward(rows, pending.forward_pass, pending.output_gradient, pending.last, pending.realised)

    def past_gradients(self, past: Past, beta: Float[Tensor, ""]) -> Gradients:
        """Loss and gradients of past trajectories."""
        return self._known_gradients(past, beta, learn=False, logged=False)[1]

    def _known_gradients(
        self, past: Past, beta: Float[Tensor, ""], *, learn: bool, logged: bool
    ) -> tuple[Episodes, Gradients]:
        intended, realised, log_reward = past
        batch = self.roller.from_sequences(intended, realised)
        found = self.net.forward_known(batch.rows, batch.last, batch.realised)
        own = self.episodes(batch, log_reward)
        return own, self.gradients(batch, found, own, beta, learn=learn, logged=logged)

    def roll(self, draws: Drawn) -> tuple[Int[Tensor, "B T"], Int[Tensor, "B T"]]:
        """Intentions and outcomes of a batch of rollouts that nobody has scored."""
        batch = self.roller.roll(draws)[0]
        return batch.intended.t(), batch.realised.t()

    def learn_from(self, past: Past, beta: Float[Tensor, ""], rate: Float[Tensor, ""]) -> tuple[Episodes, Learned]:
        """Update on a batch that was rolled out some time ago; the noise model's update is left in `pending`."""
        own, found = self._known_gradients(past, beta, learn=self.config.dynamics.mode == "batch", logged=True)
        return own, self._apply(found, rate)

    def _apply(self, found: Gradients, rate: Float[Tensor, ""]) -> Learned:
        self.setup.optimiser.apply(found.nets, rate, self.parameters)
        return Learned(loss=found.loss, noise_loss=found.nll, parts=found.parts, pending=found.noise_model)

    def prepare(self) -> None:
        """Make the rows and zeros for the batch sizes of the run, so that no step has to."""
        config = self.config
        for size in {config.batch, config.replay.batch or config.batch, config.dynamics.batch or config.batch}:
            self.roller.rows(size)
            self.zeros(size)

    def relearn(self, past: Past, beta: Float[Tensor, ""], rate: Float[Tensor, ""]) -> None:
        """Update policy and flow on past trajectories: balance holds off-policy."""
        self.setup.optimiser.apply(self.past_gradients(past, beta).nets, rate, self.parameters)

    def refit_noise_model(self, past: Past, rate: Float[Tensor, ""]) -> Float[Tensor, ""]:
        """Update the noise model on past outcomes; returns its loss."""
        assert self.model is not None
        nll, gradients = self.fit(past)
        self.setup.noise_optimiser.apply(gradients, rate, self.model.parameters)
        return nll

    def episodes(self, batch: SequenceBatch, log_reward: Float[Tensor, " B"]) -> Episodes:
        """The batch as trajectories without states."""
        valid = self.zeros(batch.realised.shape[1]) == 0
        meant, done = batch.intended.t(), batch.realised.t()
        return WholeEpisodes(intended=meant, realised=done, valid=valid, log_reward=log_reward)

    def gradients(
        self,
        batch: SequenceBatch,
        found: ForwardPass,
        episodes: Episodes,
        beta: Float[Tensor, ""],
        learn: bool,
        logged: bool = True,
    ) -> Gradients:
        """Loss and gradients of a batch at a reward exponent; with `learn` also that of the noise model's outputs.

        With `logged` also the parts of the loss.
        """
        model_pass = None if self.model is None else self.model.forward_known(batch.rows, batch.last, batch.realised)

        def losses(outputs: Tensor, log_z: Tensor, kernel: Tensor | None = None) -> tuple[Tensor, tuple[Tensor, ...]]:
            kernel = kernel if model_pass is None or kernel is not None else model_pass.outputs
            columns = self.columns(batch, kernel)
            scores = self.scores(batch, outputs, log_z, columns, kernel)
            raised = tempered(episodes, beta)
            told = explain(self.setup.objective, scores, raised)
            loss, nll = told.loss.mean(), self.nll(batch, columns)
            parts = stacked(self.setup.parts(scores, episodes, raised, told.parts)) if logged else None
            return loss + nll, (loss, nll, *([] if parts is None else [parts]))

        (log_z,) = self.setup.optimiser.current_values([self.nets.log_z])
        inputs = [found.outputs, log_z.detach()]
        pending = None
        if model_pass is not None and learn:
            slopes, (loss, nll, *figures) = output_gradients(losses, [*inputs, model_pass.outputs])
            rows = batch.rows if isinstance(batch.rows, CodedRows) else None
            pending = NoiseModelGradient(
                forward_pass=model_pass, output_gradient=slopes[2], rows=rows, last=batch.last, realised=batch.realised
            )
        else:
            slopes, (loss, nll, *figures) = output_gradients(losses, inputs)
        nets = [*self.net.backward(batch.rows, found, slopes[0], batch.last, batch.realised), slopes[1]]
        parts = figures[0] if figures else None
        return Gradients(loss=loss, nll=nll, parts=parts, nets=nets, noise_model=pending)

    def fit(self, past: Past) -> tuple[Float[Tensor, ""], list[Tensor]]:
        """Loss of the noise model on past outcomes, and the gradients of its weights."""
        assert self.model is not None
        batch = self.roller.from_sequences(past[0], past[1])
        model_pass = self.model.forward_known(batch.rows, batch.last, batch.realised)

        def loss(kernel: Tensor) -> tuple[Tensor, tuple[Tensor, ...]]:
            nll = self.nll(batch, self.columns(batch, kernel))
            return nll, (nll,)

        (slope,), (nll,) = output_gradients(loss, [model_pass.outputs])
        return nll, self.model.backward(batch.rows, model_pass, slope, batch.last, batch.realised)

    def columns(self, batch: SequenceBatch, kernel: Float[Tensor, "AK N"] | None) -> Float[Tensor, "A TB"]:
        """log P^(k|s,a) of the realised outcome k under every intention a."""
        if kernel is None:
            if self.log_columns is None:
                return torch.where(self.tokens == batch.realised.flatten(), 0.0, -torch.inf)
            return self.log_columns.index_select(1, (batch.realised + self.position_offsets).flatten())
        index = self._table_rows(batch, kernel) if isinstance(self.model, NoiseTable) else batch.index
        if index is None:
            return picked(self.log_kernel(kernel), batch.realised.flatten(), self.compare)
        place = torch.add(index, batch.realised.flatten(), alpha=kernel.shape[1])  # K N
        return visited(self.log_kernel(kernel).flatten(1), place)

    def _table_rows(self, batch: SequenceBatch, kernel: Float[Tensor, "AK R"]) -> Int[Tensor, " TB"]:
        """Row of a noise table for each visited state: its position, or the only one."""
        steps = torch.arange(batch.realised.shape[0], device=self.device).clamp(max=kernel.shape[1] - 1)
        return steps[:, None].expand(batch.realised.shape).flatten()

    def log_kernel(self, kernel: Float[Tensor, "AK N"]) -> Float[Tensor, "A K N"]:
        """Logarithms of the noise model's laws, from its outputs."""
        return torch.log_softmax(kernel.unflatten(0, (self.env.vocab, self.env.vocab)), 1)

    def nll(self, batch: SequenceBatch, columns: Float[Tensor, "A TB"]) -> Float[Tensor, ""]:
        """Negative log-likelihood of the outcomes given the intentions."""
        return -picked(columns, batch.intended.flatten(), self.compare).mean()

    def scores(
        self,
        batch: SequenceBatch,
        outputs: Float[Tensor, "O N"],
        log_z: Float[Tensor, ""],
        columns: Float[Tensor, "A TB"],
        kernel: Tensor | None,
    ) -> Scores:
        """Scores that the objective reads, equal to those of `scoring.score`."""
        vocab, steps, size = self.env.vocab, *batch.realised.shape
        logits, columns = torch.log_softmax(outputs[:vocab], 0), columns.detach()
        log_policy = visited(logits, batch.index)  # A TB
        log_pf, projection = self._forward(batch, outputs, log_policy, columns), None
        if self.nets.outcome is not None:
            projection = self._projection(batch, logits, outputs, kernel)
        return Scores(
            log_pf=log_pf.view(steps, size).t(),
            log_dynamics=self.zeros(size),
            log_pb=self.zeros(size),
            log_flow=self._log_flow(batch, outputs, log_z) if self.setup.reads_flow else None,
            log_z=log_z,
            projection=projection,
            **self._intentions(batch, log_policy, columns),
        )

    def _forward(
        self, batch: SequenceBatch, outputs: Tensor, log_policy: Tensor, columns: Tensor
    ) -> Float[Tensor, " TB"]:
        """log P_F of each outcome: of the outcome policy, of the policy read at the outcome (blind), or marginal."""
        if self.nets.outcome is not None:
            vocab = self.env.vocab
            log_policy = visited(torch.log_softmax(outputs[vocab : 2 * vocab], 0), batch.index)
        elif self.marginal and (self.learned or not self.noise.noise_free):
            return torch.logsumexp(log_policy + columns, 0)
        return picked(log_policy, batch.realised.flatten(), self.compare)

    def _projection(
        self, batch: SequenceBatch, logits: Tensor, outputs: Tensor, kernel: Tensor | None
    ) -> Float[Tensor, "B T"]:
        """KL(outcome policy || law of outcomes under the policy) at each visited state."""
        vocab = self.env.vocab
        log_outcome = torch.log_softmax(outputs[vocab : 2 * vocab], 0).detach()  # K N
        if kernel is not None:
            laws = self.log_kernel(kernel.detach())
            if isinstance(self.model, NoiseTable):
                laws = laws[..., batch.rows.depth.clamp(max=kernel.shape[1] - 1)]
            log_law = torch.logsumexp(logits[:, None] + laws, 0)
        elif self.noise.noise_free:
            log_law = logits
        else:
            log_kernel = self.noise.log_table[batch.rows.depth].permute(1, 2, 0)  # A K N
            log_law = torch.logsumexp(logits[:, None] + log_kernel, 0)
        found = visited(kl_divergence(log_outcome.t(), log_law.t())[None], batch.index)
        return found.view(batch.realised.shape).t()

    def _log_flow(self, batch: SequenceBatch, outputs: Tensor, log_z: Tensor) -> Float[Tensor, "B N"]:
        """log F of each state: log Z at the root, the network's output after it, zero at the final state."""
        steps, size = batch.realised.shape
        inner = visited(outputs[-1:], batch.index).view(steps, size)[1:].t()
        root = log_z.expand(size, 1)
        return torch.cat([root, inner, torch.zeros_like(root)], 1)

    def _intentions(self, batch: SequenceBatch, log_policy: Tensor, columns: Tensor) -> dict[str, Tensor]:
        """Log-policy and log-posterior of all intentions at each step; nothing where neither is read."""
        if not self.setup.reads_intentions:
            return {}
        joint = log_policy + columns
        posterior = joint - torch.logsumexp(joint, 0)
        shape = (self.env.vocab, *batch.realised.shape)
        return {
            "log_policy": log_policy.view(shape).permute(2, 1, 0),
            "log_intention": posterior.view(shape).permute(2, 1, 0),
        }

    def zeros(self, size: int) -> Float[Tensor, "B T"]:
        """A matrix of zeros for a batch of that size, allocated once."""
        if size not in self._zeros:
            self._zeros[size] = torch.zeros(size, self.env.length, device=self.device)
        return self._zeros[size]


def output_gradients(
    function: Callable[..., tuple[Tensor, tuple[Tensor, ...]]], inputs: list[Tensor]
) -> tuple[tuple[Tensor, ...], tuple[Tensor, ...]]:
    """Gradients of a function's first result with respect to its inputs, and its second; can be compiled."""
    if torch.compiler.is_compiling():
        return torch.func.grad(function, tuple(range(len(inputs))), has_aux=True)(*inputs)
    with torch.enable_grad():
        leaves = [value.detach().requires_grad_() for value in inputs]
        result, more = function(*leaves)
    gradients = torch.autograd.grad(result, leaves, materialize_grads=True)  # an objective may leave some outputs out
    return gradients, tuple(value.detach() for value in more)


def visited(table: Float[Tensor, "C N"], index: Int[Tensor, " M"] | None) -> Float[Tensor, "C M"]:
    """Columns of a table at an index, all where it is None; unlike indexing, `gather` does not sort in its backward."""
    return table if index is None else table.gather(1, index.expand(table.shape[0], -1))


def picked(table: Float[Tensor, "*A C N"], row: Int[Tensor, " N"], compare: bool = False) -> Float[Tensor, "*A N"]:
    """Entry `row` of each column; with `compare` by a mask instead of a look-up, whose gradient is faster on a GPU.

    >>> picked(torch.tensor([[1.0, 2.0], [3.0, 4.0]]), torch.tensor([1, 0]))
    tensor([3., 2.])
    """
    if compare:
        here = torch.arange(table.shape[-2], device=row.device)[:, None] == row
        return torch.where(here, table, 0.0).sum(-2)
    return table.gather(-2, row.expand(*table.shape[:-2], 1, -1)).squeeze(-2)
