"""The clipped loss: where it equals that of `a2c`, where its gradient vanishes, and where it comes to rest."""

import pytest
import torch
from exact_tables import TINY
from small_runs import CPU, small, tiny_task
from soft_tables import everything, random_tables
from torch.testing import assert_close

from sgfn.learning.peers.a2c import policy_loss
from sgfn.learning.peers.ppo import PPO, clipped_loss


@pytest.mark.parametrize("clip", [0.001, 0.2, 1.0])
@pytest.mark.parametrize("name", ["stop-L3-V2", "grid-2D-3"])
def test_at_ratio_one_the_gradient_is_that_of_a2c(name: str, clip: float) -> None:
    env = TINY[name](0.25)
    logits, _, log_reward = random_tables(env)
    all_, valid = everything(env, log_reward), everything(env, log_reward).batch.valid
    advantage = torch.randn(valid.shape, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    logits.requires_grad_()
    log_pi = all_.log_pi(logits)
    plain = torch.autograd.grad(policy_loss(log_pi, advantage, valid), logits, retain_graph=True)[0]
    found = torch.autograd.grad(clipped_loss(log_pi, log_pi.detach(), advantage, valid, clip, 1.0), logits)[0]
    assert_close(found, plain, atol=1e-14, rtol=0)
    log_pi = all_.log_pi(logits)
    moved = clipped_loss(log_pi, all_.log_pi(random_tables(env, 1)[0]), advantage, valid, clip, 1.0)
    assert not torch.allclose(torch.autograd.grad(moved, logits)[0], plain)


@pytest.mark.parametrize(
    ("ratio", "advantage", "stopped"),
    [
        (1.3, 1.0, True),  # already likelier than the clip allows
        (1.19, 1.0, False),
        (1.3, -1.0, False),  # likelier, though it was bad: may come back
        (0.7, -1.0, True),  # already rarer than the clip allows
        (0.81, -1.0, False),
        (0.7, 1.0, False),
    ],
)
def test_the_clip_stops_exactly_where_it_should(ratio: float, advantage: float, stopped: bool) -> None:
    log_pi = torch.tensor([[ratio, ratio]]).log().requires_grad_()
    valid = torch.tensor([[True, False]])
    loss = clipped_loss(log_pi, torch.zeros(1, 2), torch.full((1, 2), advantage), valid, 0.2, 0.0)
    loss.backward()
    assert log_pi.grad is not None
    assert log_pi.grad.tolist() == [[0.0 if stopped else pytest.approx(-ratio * advantage), 0.0]]
    assert float(loss.detach()) == pytest.approx(-advantage * (min(max(ratio, 0.8), 1.2) if stopped else ratio))


def test_passes_come_to_rest_at_the_soft_optimum() -> None:
    """One step, each action as often as it was intended: the gradient vanishes at softmax(Q/tau), and only there."""
    q, temperature = torch.tensor([0.1, -0.2, 0.3], dtype=torch.float64), 0.7
    log_old = torch.full((3, 1), 1 / 3, dtype=torch.float64).log()
    valid = torch.ones(3, 1, dtype=torch.bool)  # every action as often

    def gradient(logits: torch.Tensor, own: float) -> torch.Tensor:
        logits = logits.clone().requires_grad_()
        log_pi = torch.log_softmax(logits, 0)[:, None]
        advantage = q[:, None] - temperature * log_old
        return torch.autograd.grad(clipped_loss(log_pi, log_old, advantage, valid, 1.0, own), logits)[0]

    assert gradient(q / temperature, temperature).abs().max() < 1e-15
    assert gradient(q, temperature).abs().max() > 1e-3
    assert gradient(q / temperature, 0.0).abs().max() > 1e-3  # were the entropy that of the old policy, it would go on


@pytest.mark.parametrize("epochs", [1, 3])
def test_each_pass_is_an_update(epochs: int) -> None:
    learner = PPO(tiny_task(small(method="ppo", rl__epochs=epochs)), CPU)
    learner.step()
    learner.step()
    assert float(learner.optimiser.state()["0.step"]) == 2.0 * epochs
