"""First layers of all prefixes by cumulative sums: those of the codes, values and gradients."""

import pytest
import torch
from torch.testing import assert_close

from sgfn.envs.sequence import SequenceEnv
from sgfn.nets.encoders import MLP
from sgfn.nets.prefixes import GrowingSums, coded_layer, encode_along, sums_prefixes
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


@pytest.mark.parametrize("stop", [False, True])
def test_sums_that_grow_are_the_first_layer(stop: bool) -> None:
    env = sequences(stop)
    states = env.unrolled(torch.randint(env.outcomes, (7, 5), generator=torch.Generator().manual_seed(1)))[0]
    layer = MLP(env.features, 6, 1, "gelu").double().linear[0]
    growing = GrowingSums(layer, env)
    for _ in range(2):  # a second rollout begins anew
        for t, state in enumerate(states.unbind(1)[: env.length]):
            assert_close(growing.at_step(t, state), layer(env.encode(state).double()))
        with torch.no_grad():
            layer.weight.mul_(0.5)


def test_states_that_did_not_grow_are_coded() -> None:
    env = sequences(False)
    states = env.unrolled(torch.randint(3, (7, 5), generator=torch.Generator().manual_seed(2)))[0]
    layer = MLP(env.features, 6, 1, "gelu").linear[0]
    growing = GrowingSums(layer, env)
    for t, at in ((0, 3), (1, 1), (0, 0), (1, 1), (2, 3), (3, 3)):  # steps, and the states asked for there
        assert_close(growing.at_step(t, states[:, at]), layer(env.encode(states[:, at])))
    growing.at_step(0, states[:, 0]), growing.at_step(1, states[:, 1])
    turned = states.flip(0)[:, 2]
    assert_close(growing.at_step(2, turned), layer(env.encode(turned)))
    assert not torch.allclose(growing.at_step(2, turned), layer(env.encode(states[:, 2])))  # and the test can fail


def test_codes_of_aligned_length_give_the_same_layer() -> None:
    env = sequences(True)
    states = env.unrolled(torch.randint(env.outcomes, (7, 5)))[0]
    layer = MLP(env.features, 6, 1, "gelu").linear[0]
    assert env.features % 8
    assert_close(coded_layer(layer, env, states), layer(env.encode(states)))
