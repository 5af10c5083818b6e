r"""Networks on append-only sequences of one length, row by row, with their gradients by hand.

The code of a state is that of its parent and one token more, so that the first layer is carried along:

.. math:: z(s') = z(s) + W_{t,k} + l_{t+1} - l_t

with W the weights of token k at position t and l those of the length. States of the first levels, which trajectories
share, are evaluated once (as in `shared_states`), and the gradient reuses what the forward pass computed, so that no
state is evaluated twice. On a GPU, which is fast at products and slow at many small operations, the first layer is a
product like the others (`CodedRows`). The numbers are those of `FlowNets` and `FullNoiseModel`; results stand
output first: [O, rows].
"""

from collections.abc import Sequence
from typing import NamedTuple

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor, nn

from sgfn.envs.sequence import SequenceEnv
from sgfn.learning.optimisation import Optimiser
from sgfn.nets.dynamics import TableNoiseModel
from sgfn.nets.encoders import MLP

MAX_CODE_ENTRIES = 4_000_000
"""Most entries (states x features) of the codes of the shared states."""
MIN_LEVEL_ROWS = 256
"""Approximate least number of rows of a shared level of `SpreadRows`."""


class StateRows:
    """Which states of a batch are evaluated: all of the first levels, then one for each later step and trajectory.

    A level is shared if it has no more states than the batch has trajectories.
    """

    def __init__(self, env: SequenceEnv, batch: int, device: torch.device) -> None:
        self.env, self.batch, self.length, self.vocab = env, batch, env.length, env.vocab
        most = MAX_CODE_ENTRIES // env.features
        fits = [env.vocab**t <= batch and env.offsets[t + 1] <= most for t in range(env.length)]
        self.levels = max(1, sum(fits))  # L
        self.shared = env.offsets[self.levels]  # M
        self.late = env.length - self.levels  # T - L
        states = [states for _, states in zip(range(self.levels), env.levels(), strict=False)]
        self.codes = env.encode(torch.cat(states)).to(device)  # M F
        sizes = torch.tensor([env.vocab**t for t in range(self.levels)] + [batch] * self.late)
        self.depth = torch.arange(env.length).repeat_interleave(sizes).to(device)  # of each row
        self.own = torch.arange(self.shared, self.shared + self.late * batch, device=device)  # rows of late states
        positions = torch.arange(self.late, device=device)[:, None]
        self.token_offsets = positions * env.vocab  # of a token that leads to a late state, among those that do

    def root(self) -> Int[Tensor, " B"]:
        """Number of the root state, once per trajectory."""
        return torch.zeros(self.batch, dtype=torch.int64, device=self.own.device)

    def child(self, state: Int[Tensor, " B"], token: Int[Tensor, " B"]) -> Int[Tensor, " B"]:
        """Number of the next state, level by level."""
        return torch.add(token + 1, state, alpha=self.vocab)

    def early(self, realised: Int[Tensor, "T B"]) -> list[Int[Tensor, " B"]]:
        """Numbers of the shared states that known sequences pass through."""
        states = [self.root()]
        for token in realised[: self.levels - 1].unbind():
            states.append(self.child(states[-1], token))
        return states

    def index(self, early: list[Int[Tensor, " B"]]) -> Int[Tensor, " TB"]:
        """The row of every visited state, steps first."""
        return torch.cat([*early, self.own])


class CodedRows(NamedTuple):
    """Codes and depths of states that are each evaluated from their code, equal ones too."""

    codes: Float[Tensor, "N F"]
    depth: Int[Tensor, " N"]


class SpreadRows:
    """Which states of a batch are evaluated on a GPU: all of the first levels, then those of each trajectory.

    A state that many trajectories pass through has several rows, and they share these copies evenly: otherwise their
    gradients would be added at one address, one after the other.
    """

    def __init__(self, env: SequenceEnv, levels: int, batch: int, device: torch.device) -> None:
        self.levels = levels
        copies = torch.tensor([max(1, MIN_LEVEL_ROWS // env.vocab**t) for t in range(levels)], dtype=torch.int64)
        sizes = torch.tensor([env.vocab**t for t in range(levels)], dtype=torch.int64)
        starts, shared = (copies * sizes).cumsum(0) - copies * sizes, int((copies * sizes).sum())
        offsets = torch.tensor(env.offsets[:levels], dtype=torch.int64)
        which = torch.arange(batch) % copies[:, None]  # copy of a level that a trajectory goes by
        self.shift = ((starts - offsets)[:, None] + which * sizes[:, None]).to(device)  # L B
        numbers = [torch.arange(env.vocab**t).add(env.offsets[t]).repeat(int(n)) for t, n in enumerate(copies)]
        self.numbers = torch.cat([torch.empty(0, dtype=torch.int64), *numbers]).to(device)  # of the shared states
        self.own = torch.arange(shared, shared + (env.length - levels) * batch, device=device)
        each = torch.cat([copies * sizes, torch.full((env.length - levels,), batch)])
        self.depth = torch.arange(env.length).repeat_interleave(each).to(device)

    def rows(
        self, codes: Float[Tensor, "R F"], states: Int[Tensor, "B N"]
    ) -> tuple[CodedRows, Int[Tensor, " TB"] | None]:
        """Rows to evaluate, and the row of every visited state, steps first; None where rows are these in order."""
        numbers = states[:, :-1].t()  # T B
        own = numbers[self.levels :].flatten()
        found = CodedRows(codes=codes.index_select(0, torch.cat([self.numbers, own])), depth=self.depth)
        if self.levels == 0:
            return found, None
        return found, torch.cat([(numbers[: self.levels] + self.shift).flatten(), self.own])


class ForwardPass(NamedTuple):
    """Each layer before and after its activation, and the outputs of a forward pass: what the gradient needs."""

    before: list[Float[Tensor, "N H"]]
    after: list[Float[Tensor, "N H"]]
    outputs: Float[Tensor, "O N"]


def joined(passes: Sequence[ForwardPass]) -> ForwardPass:
    """Forward passes over parts of the rows as one over all."""
    if len(passes) == 1:
        return passes[0]
    return ForwardPass(
        before=[torch.cat(rows) for rows in zip(*(p.before for p in passes), strict=True)],
        after=[torch.cat(rows) for rows in zip(*(p.after for p in passes), strict=True)],
        outputs=torch.cat([p.outputs for p in passes], 1),
    )


class RowNet:
    """Forward pass and gradients of an MLP with heads, on rows of states; its weights lie in an optimiser's buffer."""

    def __init__(self, encoder: MLP, heads: Sequence[nn.Linear], optimiser: Optimiser) -> None:
        self.layers, self.heads = [layer for layer in encoder.layers if isinstance(layer, nn.Linear)], list(heads)
        self.optimiser = optimiser
        self.outputs_first = not optimiser.values.is_cuda  # whether outputs are computed output first
        self.activation = encoder.activation
        self.activate, self.derive = ACTIVATIONS[type(encoder.activation)]
        self.parameters = [p for layer in [*self.layers, *self.heads] for p in (layer.weight, layer.bias)]

    def weights(self) -> list[tuple[Tensor, Tensor]]:
        """Weight and bias of every layer, then of every head."""
        values = self.optimiser.current_values(self.parameters)
        return list(zip(values[::2], values[1::2], strict=True))

    def forward_shared(self, rows: StateRows) -> ForwardPass:
        """The forward pass over every state of the shared levels."""
        return self.forward_from_first(F.linear(rows.codes, *self.weights()[0]))

    def token_increments(self, rows: StateRows) -> Float[Tensor, "K V H"]:
        """Increment of the first layer's sums by each token, at each step that leads to a late state."""
        table, first, last = self.weights()[0][0].t(), rows.levels - 1, rows.length - 1
        tokens = table[first * rows.vocab : last * rows.vocab].unflatten(0, (rows.late, rows.vocab))
        lengths = table[rows.length * rows.vocab :]
        return tokens + (lengths[rows.levels : rows.length] - lengths[first:last])[:, None]

    def forward_from_first(self, first: Float[Tensor, "N H"]) -> ForwardPass:
        """The forward pass from the sums of the first layer on."""
        before, after = [first], [self.activate(first)]
        for weight, bias in self.weights()[1 : len(self.layers)]:
            before.append(F.linear(after[-1], weight, bias))
            after.append(self.activate(before[-1]))
        return ForwardPass(before=before, after=after, outputs=self.head_outputs(after[-1]))

    def forward_from_sums(self, before: list[Float[Tensor, "N H"]]) -> ForwardPass:
        """The forward pass from known inputs of each activation."""
        after = [self.activate(sums) for sums in before]
        return ForwardPass(before=before, after=after, outputs=self.head_outputs(after[-1]))

    def head_outputs(self, hidden: Float[Tensor, "N H"]) -> Float[Tensor, "O N"]:
        """Outputs of all heads, from the last hidden layer."""
        weight, bias = self.stacked_heads()
        if self.outputs_first:
            return torch.addmm(bias[:, None], weight, hidden.t())
        return F.linear(hidden, weight, bias).t()  # on a GPU such a bias is no operation of its own

    def stacked_heads(self) -> tuple[Float[Tensor, "O H"], Float[Tensor, " O"]]:
        """Weights and biases of all heads as one layer."""
        heads = self.weights()[len(self.layers) :]
        if len(heads) == 1:
            return heads[0]
        return torch.cat([weight for weight, _ in heads]), torch.cat([bias for _, bias in heads])

    @torch.no_grad()
    def forward_known(
        self, rows: StateRows | CodedRows, last: Int[Tensor, " B"] | None, realised: Int[Tensor, "T B"]
    ) -> ForwardPass:
        """The forward pass over shared states and late states of known sequences; `last`: the last shared of each."""
        first = F.linear(rows.codes, *self.weights()[0])
        if isinstance(rows, CodedRows) or rows.late == 0 or last is None:
            return self.forward_from_first(first)
        index = realised[rows.levels - 1 : -1] + rows.token_offsets
        increments = self.token_increments(rows).flatten(0, 1)
        added = increments.index_select(0, index.flatten()).unflatten(0, index.shape)  # K B H
        late = first.index_select(0, last) + added.cumsum(0)
        return self.forward_from_first(torch.cat([first, late.flatten(0, 1)]))

    @torch.no_grad()
    def backward(
        self,
        rows: StateRows | CodedRows,
        found: ForwardPass,
        slope: Float[Tensor, "O N"],
        last: Int[Tensor, " B"] | None,
        realised: Int[Tensor, "T B"],
    ) -> list[Tensor]:
        """Gradients of all `parameters` from those of the outputs."""
        sizes = [head.out_features for head in self.heads]
        weights, biases = (slope @ found.after[-1]).split(sizes), slope.sum(1).split(sizes)
        gradients = [g for pair in zip(weights, biases, strict=True) for g in pair]
        slope, layers = slope.t() @ self.stacked_heads()[0], self.weights()
        for i in range(len(self.layers) - 1, 0, -1):
            slope = self.derive(slope, found.before[i], found.after[i])
            gradients = [(found.after[i - 1].t() @ slope).t(), slope.sum(0), *gradients]
            slope = slope @ layers[i][0]
        slope = self.derive(slope, found.before[0], found.after[0])
        return [*self._first(rows, slope, last, realised), *gradients]

    def _first(
        self,
        rows: StateRows | CodedRows,
        slope: Float[Tensor, "N H"],
        last: Int[Tensor, " B"] | None,
        realised: Int[Tensor, "T B"],
    ) -> tuple[Tensor, Tensor]:
        """Gradients of the first layer; that of a token is summed over all states whose prefix holds it."""
        if isinstance(rows, CodedRows) or rows.late == 0 or last is None:
            return (rows.codes.t() @ slope).t(), slope.sum(0)
        *late, behind = slope[rows.shared :].unflatten(0, (rows.late, rows.batch)).unbind()
        sums = [behind]
        for here in reversed(late):
            sums.append(sums[-1] + here)
        index = (realised[rows.levels - 1 : -1] + rows.token_offsets).flip(0).flatten()
        tokens = slope.new_zeros(rows.late * rows.vocab, slope.shape[1]).index_add_(0, index, torch.cat(sums))
        slope = slope[: rows.shared].index_add(0, last, sums[-1])
        table = rows.codes.t() @ slope  # F H
        first, end, lengths = rows.levels - 1, rows.length - 1, rows.length * rows.vocab
        table[first * rows.vocab : end * rows.vocab] += tokens
        step = tokens.unflatten(0, (rows.late, rows.vocab)).sum(1)
        table[lengths + rows.levels : lengths + rows.length] += step
        table[lengths + first : lengths + end] -= step
        return table.t(), slope.sum(0)


class NoiseTable:
    """A noise model that is a table, with the methods of a `RowNet`: its rows are those of the table."""

    def __init__(self, model: TableNoiseModel, optimiser: Optimiser) -> None:
        self.parameters, self.optimiser = [model.logits], optimiser

    def forward_known(
        self, rows: StateRows | CodedRows, last: Int[Tensor, " B"] | None, realised: Int[Tensor, "T B"]
    ) -> ForwardPass:
        """The logits of all rows as outputs; nothing of a batch is read."""
        (logits,) = self.optimiser.current_values(self.parameters)
        return ForwardPass(before=[], after=[], outputs=logits.detach().flatten(1).t())

    def backward(
        self,
        rows: StateRows | CodedRows,
        found: ForwardPass,
        slope: Float[Tensor, "AK R"],
        last: Int[Tensor, " B"] | None,
        realised: Int[Tensor, "T B"],
    ) -> list[Tensor]:
        """The gradient of the logits."""
        return [slope.t().reshape(self.parameters[0].shape)]


def _relu_slope(slope: Tensor, before: Tensor, after: Tensor) -> Tensor:
    return torch.ops.aten.threshold_backward(slope, after, 0)


def _gelu_slope(slope: Tensor, before: Tensor, after: Tensor) -> Tensor:
    return torch.ops.aten.gelu_backward(slope, before)


def _silu_slope(slope: Tensor, before: Tensor, after: Tensor) -> Tensor:
    return torch.ops.aten.silu_backward(slope, before)


ACTIVATIONS = {nn.ReLU: (torch.relu, _relu_slope), nn.GELU: (F.gelu, _gelu_slope), nn.SiLU: (F.silu, _silu_slope)}
"""Each activation and its gradient (from that of its output), by module class."""
