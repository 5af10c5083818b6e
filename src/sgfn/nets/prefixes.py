r"""MLPs on every prefix of a sequence at once: the first layer by cumulative sums instead of one code per prefix.

The code of a prefix is one-hot by position, and by length, so that the first layer of prefix t is that of the empty one
plus one row for each symbol written:

.. math:: z_t = z_\varnothing + \sum_{p<t} U_{p,x_p}, \qquad
          U_{p,x} = W_{p,x} - W_{p,\mathrm{blank}} + 1[x \text{ a letter}]\,(l_{p+1} - l_p)

with l the weights of the length. A sequence of L symbols of V takes L V H multiplications instead of L^2 V H; and since
lengths are part of U, gradients take no sums over the batch but those in U's.
"""

from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn.functional import linear, pad

from sgfn.envs.base import Env, one_hot
from sgfn.envs.sequence import SequenceEnv
from sgfn.nets.encoders import MLP

MOST_CODED = 256
"""Features up to which a GPU makes one product with the codes of all prefixes: by counting bytes, not measured."""
ALIGNED = 8
"""Rows of codes are padded to a multiple of so many entries: a GPU's products of others take twice as long."""


def sums_prefixes(env: Env) -> bool:
    """Whether states are prefixes of sequences, coded as `SequenceEnv` codes them."""
    if not (isinstance(env, SequenceEnv) and env.writes_in_order):
        return False
    return type(env).encode is SequenceEnv.encode and type(env).written is SequenceEnv.written


def encode_along(encoder: MLP, env: Env, states: Int[Tensor, "B N S"]) -> Float[Tensor, "B N H"]:
    """`encoder(env.encode(states))` of the first N states of trajectories."""
    if not (isinstance(env, SequenceEnv) and sums_prefixes(env)):
        return encoder(env.encode(states))
    first, *layers = encoder.linear
    coded = states.is_cuda and env.features <= MOST_CODED
    hidden = encoder.activation(coded_layer(first, env, states) if coded else first_layer(first, env, states))
    for layer in layers:
        hidden = encoder.activation(layer(hidden))
    return hidden if coded else hidden.transpose(0, 1)


def coded_layer(layer: nn.Linear, env: Env, states: Int[Tensor, "B N S"]) -> Float[Tensor, "B N H"]:
    """`layer(env.encode(states))`, with rows of aligned length."""
    spare = (0, -env.features % ALIGNED)
    return linear(pad(env.encode(states), spare), pad(layer.weight, spare), layer.bias)


def first_layer(layer: nn.Linear, env: SequenceEnv, states: Int[Tensor, "B N S"]) -> Float[Tensor, "N B H"]:
    """`layer(env.encode(states))` of the first N states of trajectories, by the equation above, states first."""
    symbols = states[:, -1, : states.shape[1] - 1]  # the last state has written what all before it have
    table, start = rows_by_symbol(layer, env)
    return summed_rows(symbols, table[: symbols.shape[1]], start)


def rows_by_symbol(layer: nn.Linear, env: SequenceEnv) -> tuple[Float[Tensor, "L V H"], Float[Tensor, " H"]]:
    """U of the equation above, and the layer at the empty prefix."""
    rows, start, split = layer.weight.t(), layer.bias, env.length * env.symbols
    table, lengths = rows[:split].unflatten(0, (env.length, env.symbols)), rows[split:]  # L V H, L+1 H
    if env.stop:
        start = start + table[:, env.blank].sum(0)
        table = table - table[:, env.blank, None]
    longer = lengths.diff(dim=0)[:, None].expand(-1, env.vocab, -1)
    return table + pad(longer, (0, 0, 0, env.symbols - env.vocab)), start + lengths[0]


def summed_rows(
    symbols: Int[Tensor, "B T"], table: Float[Tensor, "T V H"], start: Float[Tensor, " H"]
) -> Float[Tensor, "T+1 B H"]:
    """Sums of a start and of one row for each symbol, of none to all of them."""
    steps, vocab, _ = table.shape
    wide = vocab + 1 + (-vocab - 1) % 4
    first = pad(start[None, None], (0, 0, vocab, wide - vocab - 1, 0, steps))
    table = pad(table, (0, 0, 0, wide - vocab, 1, 0)) + first  # the start is a symbol of its own
    code = one_hot(pad(symbols, (1, 0), value=vocab).t(), wide).to(table.dtype)
    return SummedRows.apply(code, table)


class SummedRows(torch.autograd.Function):
    """Cumulative sums of the rows that codes pick.

    The gradient sums from the end, by a product with a triangle of ones: a compiler would put what comes before a
    cumulative sum into its loop, and that takes twenty times as long.
    """

    @staticmethod
    def forward(ctx: Any, code: Float[Tensor, "N B V"], table: Float[Tensor, "N V H"]) -> Float[Tensor, "N B H"]:
        """Sums over the first dimension."""
        ctx.save_for_backward(code)
        rows = code @ table
        return rows.cumsum(0) if rows.is_cuda else (_ones(rows).tril() @ rows.flatten(1)).view_as(rows)

    @staticmethod
    def backward(ctx: Any, *slopes: Float[Tensor, "N B H"]) -> tuple[None, Float[Tensor, "N V H"]]:
        """Rows get the sum of what comes at and after them."""
        (code,) = ctx.saved_tensors
        later = (_ones(slopes[0]).triu() @ slopes[0].flatten(1)).view_as(slopes[0])
        return None, code.transpose(1, 2) @ later


def _ones(rows: Float[Tensor, " N *rest"]) -> Float[Tensor, "N N"]:
    return torch.ones(rows.shape[0], rows.shape[0], dtype=rows.dtype, device=rows.device)


class GrowingSums:
    """A first layer at states of rollouts, which grow by a symbol a step: the last sums, and one row for each symbol.

    States that did not grow from those asked for last are coded. It compares them, for which a GPU would be waited for.
    """

    def __init__(self, layer: nn.Linear, env: SequenceEnv) -> None:
        self.layer, self.env, self.at = layer, env, -1
        self.state, self.sums = torch.empty(0), torch.empty(0)
        self.rows = torch.empty(0)

    @torch.no_grad()
    def at_step(self, t: int, state: Int[Tensor, "B S"]) -> Float[Tensor, "B H"]:
        """`layer(env.encode(state))` at step t of a rollout."""
        blank = bool((state[:, t:] == self.env.blank).all())
        if t == 0 and blank:
            self.rows, start = rows_by_symbol(self.layer, self.env)
            self.sums = start.expand(state.shape[0], -1)
        elif blank and 0 <= self.at == t - 1 and torch.equal(state[:, : t - 1], self.state[:, : t - 1]):
            self.sums = self.sums + self.rows[t - 1].index_select(0, state[:, t - 1])
        else:
            self.at = -2
            return self.layer(self.env.encode(state))
        self.at, self.state = t, state
        return self.sums
