"""First layers of all prefixes by cumulative sums: those of the codes, values and gradients."""

import pytest
import torch
from torch.testing import assert_close

from sgfn.envs.sequence import SequenceEnv
from sgfn.nets.encoders import MLP
from sgfn.nets.prefixes import encode_along, sums_prefixes
from sgfn.noise import UniformSlip


def sequences(stop: bool, kind: type[SequenceEnv] = SequenceEnv) -> SequenceEnv:
    return kind(length=5, alphabet="ABC", noise=UniformSlip(alpha=0.1), stop=stop)


@pytest.mark.parametrize("stop", [False, True])
@pytest.mark.parametrize("seen", [1, 4, 6])
def test_sums_are_the_first_layer_of_the_codes(stop: bool, seen: int) -> None:
    env = sequences(stop)
    realised = torch.randint(env.outcomes, (7, 5), generator=torch.Generator().manual_seed(0))
    states = env.unrolled(realised)[0][:, :seen]
    encoder = MLP(env.features, 6, 2, "gelu").double()
    plain, quick = encoder(env.encode(states).double()), encode_along(encoder, env, states)
    assert_close(quick, plain)
    slopes = [torch.autograd.grad(out.square().sum(), list(encoder.parameters())) for out in (plain, quick)]
    assert_close(slopes[0], slopes[1])
    if seen > 1:
        assert not torch.allclose(encode_along(encoder, env, states.flip(0)), plain)  # and the test can fail


class Reversed(SequenceEnv):
    """Sequences with a code of their own."""

    def encode(self, state: torch.Tensor) -> torch.Tensor:
        return super().encode(state.flip(-1))


def test_a_code_of_ones_own_is_asked() -> None:
    env = sequences(False, Reversed)
    assert not sums_prefixes(env)
    states = env.unrolled(torch.tensor([[0, 1, 2, 0, 1]]))[0]
    encoder = MLP(env.features, 4, 1, "relu")
    assert_close(encode_along(encoder, env, states), encoder(env.encode(states)))
