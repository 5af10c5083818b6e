r"""MLPs on every prefix of a sequence at once: the first layer by cumulative sums instead of one code per prefix.

The code of a prefix is one-hot by position, so that the first layer of prefix t is that of the empty one plus one row
of the weights for each symbol written:

.. math:: z_t = z_\varnothing + \sum_{p<t} \big(W_{p,x_p} - W_{p,\mathrm{blank}}\big) + l_{n_t} - l_0

with l the weights of the length. A sequence of L symbols of V takes L V H multiplications instead of L^2 V H.
"""

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from sgfn.envs.base import Env, one_hot
from sgfn.envs.sequence import SequenceEnv
from sgfn.nets.encoders import MLP

MOST_CODED = 256
"""Features up to which a GPU makes one product with the codes of all prefixes: by counting bytes, not measured."""


def sums_prefixes(env: Env) -> bool:
    """Whether states are prefixes of sequences, coded as `SequenceEnv` codes them."""
    if not (isinstance(env, SequenceEnv) and env.writes_in_order):
        return False
    return type(env).encode is SequenceEnv.encode and type(env).written is SequenceEnv.written


def encode_along(encoder: MLP, env: Env, states: Int[Tensor, "B N S"]) -> Float[Tensor, "B N H"]:
    """`encoder(env.encode(states))` of the first N states of trajectories."""
    if not (isinstance(env, SequenceEnv) and sums_prefixes(env)):
        return encoder(env.encode(states))
    if states.is_cuda and env.features <= MOST_CODED:
        return encoder(env.encode(states))
    first, *layers = encoder.linear
    hidden = encoder.activation(first_layer(first, env, states))
    for layer in layers:
        hidden = encoder.activation(layer(hidden))
    return hidden


def first_layer(layer: nn.Linear, env: SequenceEnv, states: Int[Tensor, "B N S"]) -> Float[Tensor, "B N H"]:
    """`layer(env.encode(states))` of the first N states of trajectories, by the equation above."""
    steps, split = states.shape[1] - 1, env.length * env.symbols
    rows = layer.weight.t()  # F H
    table, lengths = rows[:split].unflatten(0, (env.length, env.symbols)), rows[split:]  # L V H, L+1 H
    symbols = states[:, -1, :steps]  # the last state has written what all before it have
    added = one_hot(symbols.t(), env.symbols).to(rows.dtype) @ table[:steps]  # N-1 B H
    start = layer.bias
    if env.stop:
        added, start = added - table[:steps, None, env.blank], start + table[:, env.blank].sum(0)
    sums = torch.cat([torch.zeros_like(added[:1]), added.cumsum(0)]) if steps else added.new_zeros(1, *added.shape[1:])
    sums, lengths = sums.transpose(0, 1), lengths + start  # one sum over the batch in the gradient, not two
    if not env.stop:
        return sums + lengths[: steps + 1]
    written = (symbols < env.vocab).long().cumsum(1)
    written = torch.cat([torch.zeros_like(states[:, 0, :1]), written], 1)  # B N
    return sums + one_hot(written, env.length + 1).to(rows.dtype) @ lengths
