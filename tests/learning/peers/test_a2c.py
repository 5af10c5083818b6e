"""The advantage and its gradient, against the exact gradient over every trajectory."""

import pytest
import torch
from exact_tables import KINDS, TINY
from soft_tables import Everything, everything, random_tables
from torch import Tensor
from torch.testing import assert_close

from sgfn.learning.peers.a2c import policy_loss
from sgfn.learning.peers.actor_critic import soft_advantage

CASES = TINY | {name: make for name, make in KINDS.items() if "hidden" not in name}


def expected_gradient(all_: Everything, logits: Tensor, value: Tensor, temperature: float, trace: float) -> Tensor:
    """Gradient of `policy_loss`, each trajectory counted by its probability."""
    logits = logits.clone().requires_grad_()
    log_pi, valid = all_.log_pi(logits), all_.batch.valid
    advantage = soft_advantage(log_pi.detach(), all_.values(value), valid, temperature, trace)
    weight = all_.chance(logits).detach() * valid.shape[0]  # the loss is a mean over trajectories
    return torch.autograd.grad(policy_loss(log_pi, weight[:, None] * advantage, valid), logits)[0]


def exact_gradient(all_: Everything, logits: Tensor, temperature: float) -> Tensor:
    logits = logits.clone().requires_grad_()
    return torch.autograd.grad(-all_.worth(logits, temperature), logits)[0]


@pytest.mark.parametrize("temperature", [0.0, 1.0])
@pytest.mark.parametrize("name", CASES)
def test_the_mean_gradient_is_that_of_reward_plus_entropy(name: str, temperature: float) -> None:
    env = CASES[name](0.25)
    logits, value, log_reward = random_tables(env)
    all_ = everything(env, log_reward)
    assert float(all_.chance(logits).sum()) == pytest.approx(1.0, abs=1e-12)
    wanted = exact_gradient(all_, logits, temperature)
    assert_close(expected_gradient(all_, logits, value, temperature, 1.0), wanted, atol=1e-12, rtol=0)
    assert (wanted - exact_gradient(all_, logits, temperature + 0.5)).abs().max() > 1e-3
    biased = expected_gradient(all_, logits, value, temperature, 0.5)  # a wrong critic is believed in part
    assert (biased - wanted).abs().max() > 1e-3


@pytest.mark.parametrize("trace", [0.0, 0.7])
@pytest.mark.parametrize("name", ["stop-L3-V2", "grid-2D-3", "confusion-L3-V3"])
def test_with_the_true_value_every_trace_is_unbiased(name: str, trace: float) -> None:
    env = CASES[name](0.25)
    logits, value, log_reward = random_tables(env)
    all_ = everything(env, log_reward)
    true = true_values(all_, logits, 1.0)
    assert_close(expected_gradient(all_, logits, true, 1.0, trace), exact_gradient(all_, logits, 1.0))
    assert not torch.allclose(expected_gradient(all_, logits, value, 1.0, trace), exact_gradient(all_, logits, 1.0))


def true_values(all_: Everything, logits: Tensor, temperature: float) -> Tensor:
    """V of a policy: the mean of what is still earned, over the trajectories that pass through a state."""
    later = all_.log_pi(logits).flip(1).cumsum(1).flip(1)
    earned = all_.batch.log_reward[:, None] - temperature * later
    weight = torch.where(all_.batch.valid, all_.chance(logits)[:, None], 0.0)
    rows = torch.where(all_.batch.valid, all_.env.index(all_.batch.states[:, :-1]), 0).flatten()
    sums = torch.zeros(2, all_.env.num_states, dtype=torch.float64)
    sums[0].index_add_(0, rows, (weight * earned).flatten())
    sums[1].index_add_(0, rows, weight.flatten())
    return sums[0] / sums[1]


def test_advantages_by_hand() -> None:
    """Three steps, the second trajectory ends after two; delta = V' - V - tau log pi."""
    log_pi = torch.tensor([[-1.0, -2.0, -3.0], [-1.0, -1.0, -9.0]])
    value = torch.tensor([[1.0, 2.0, 4.0, 8.0], [0.0, 3.0, 5.0, 5.0]])
    valid = torch.tensor([[True, True, True], [True, True, False]])
    first, second, third = 1.0 + 0.5, 2.0 + 1.0, 4.0 + 1.5
    found = soft_advantage(log_pi, value, valid, temperature=0.5, trace=0.1)
    assert_close(found[0], torch.tensor([first + 0.1 * second + 0.01 * third, second + 0.1 * third, third]))
    assert_close(found[1], torch.tensor([3.5 + 0.1 * 2.5, 2.5, 0.0]))
    whole = soft_advantage(log_pi, value, valid, temperature=0.5, trace=1.0)
    assert_close(whole[0], 8.0 - value[0, :3] - 0.5 * torch.tensor([-6.0, -5.0, -3.0]))
    single = soft_advantage(log_pi, value, valid, temperature=0.5, trace=0.0)
    assert_close(single[0], torch.tensor([first, second, third]))


def test_the_loss_by_hand() -> None:
    log_pi = torch.tensor([[-1.0, -2.0], [-3.0, -5.0]], requires_grad=True)
    advantage = torch.tensor([[2.0, -1.0], [4.0, 7.0]], requires_grad=True)
    loss = policy_loss(log_pi, advantage, torch.tensor([[True, True], [True, False]]))
    assert float(loss.detach()) == pytest.approx(-(-2.0 + 2.0 - 12.0) / 2)
    loss.backward()
    assert log_pi.grad is not None
    assert log_pi.grad.tolist() == [[-1.0, 0.5], [-2.0, 0.0]]
    assert advantage.grad is None
