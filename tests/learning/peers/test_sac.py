"""Soft actor-critic: the exact backup comes to rest at the known optimum, and the losses are stationary there."""

import pytest
import torch
from exact_tables import KINDS, TINY, inner_states
from small_runs import CPU, small, tiny_task
from soft_tables import Everything, everything, random_tables
from torch import Tensor
from torch.testing import assert_close

from sgfn.envs import Env, laws
from sgfn.evaluation import exact
from sgfn.learning.peers.actor_critic import soft_value
from sgfn.learning.peers.sac import SAC, actor_loss, critic_errors
from sgfn.nets.encoders import masked_log_softmax

CASES = TINY | {name: make for name, make in KINDS.items() if "hidden" not in name}


def backup(env: Env, q: Tensor, log_reward: Tensor, temperature: float) -> Tensor:
    """Q(s,a) = sum_k P(k|s,a) V(s') with the policy that is best for the old Q, by state number."""
    states, out = inner_states(env), torch.zeros_like(q)
    legal = env.legal(states)[env.index(states).argsort()]
    value = soft_value(masked_log_softmax(q / temperature, legal), q, temperature)
    for rows, k, target, finished in laws.children(env, states):
        number = env.index(states[rows])
        reached = (log_reward if finished else value)[target]
        out[number] += env.kernel(states[rows], torch.float64)[:, :, k] * reached[:, None]
    return out


def solved(env: Env, log_reward: Tensor, temperature: float) -> Tensor:
    q = torch.randn(env.num_states, env.actions, generator=torch.Generator().manual_seed(3), dtype=torch.float64)
    for _ in range(env.horizon):
        q = backup(env, q, log_reward, temperature)
    return q


@pytest.mark.parametrize("temperature", [0.1, 1.0])
@pytest.mark.parametrize("name", CASES)
def test_the_backup_comes_to_rest_at_the_known_optimum(name: str, temperature: float) -> None:
    env = CASES[name](0.25)
    log_reward = random_tables(env)[2]
    q = solved(env, log_reward, temperature)
    assert_close(backup(env, q, log_reward, temperature), q, atol=1e-13, rtol=0)
    states = inner_states(env)
    policy = masked_log_softmax(q[env.index(states)] / temperature, env.legal(states)).exp()
    wanted = laws.table_policy(env, exact.soft_policy(env, log_reward, temperature))(states)
    assert_close(policy, wanted, atol=1e-12, rtol=0)
    other = laws.table_policy(env, exact.soft_policy(env, log_reward, temperature + 0.5))(states)
    assert (policy - other).abs().max() > 1e-3


def gradients(all_: Everything, q: Tensor, logits: Tensor, temperature: float) -> tuple[Tensor, Tensor]:
    """Of both losses over every trajectory, each counted by its probability; tables in the place of networks."""
    q, logits, batch = q.clone().requires_grad_(), logits.clone().requires_grad_(), all_.batch
    done = all_.env.done(batch.states)
    rows = torch.where(done, 0, all_.env.index(batch.states))
    weight = torch.where(batch.valid, all_.chance(logits).detach()[:, None], 0.0)
    log_policy = all_.log_policy(logits)
    value = soft_value(log_policy.detach(), q.detach()[rows[:, :-1]], temperature)
    value = torch.where(done[:, 1:], batch.log_reward[:, None], torch.cat([value[:, 1:], value[:, :1]], 1))
    twins = torch.stack([q[rows[:, :-1]]] * 2)
    critic = (weight * critic_errors(twins, batch.intended, value)).sum()
    actor = actor_loss(log_policy, q[rows[:, :-1]], batch.valid, temperature)
    return torch.autograd.grad(critic, q)[0], torch.autograd.grad(actor, logits)[0]


@pytest.mark.parametrize("name", ["stop-L3-V2", "grid-2D-3", "confusion-stop-L3-V2"])
def test_both_losses_are_stationary_at_the_optimum_and_only_there(name: str) -> None:
    env, temperature = CASES[name](0.25), 0.8
    logits, _, log_reward = random_tables(env)
    all_, q = everything(env, log_reward), solved(env, log_reward, temperature)
    assert max(g.abs().max() for g in gradients(all_, q, q / temperature, temperature)) < 1e-12
    for found in (gradients(all_, q + logits, q / temperature, temperature), gradients(all_, q, logits, temperature)):
        assert min(g.abs().max() for g in found) > 1e-3


def test_losses_by_hand() -> None:
    q = torch.tensor([[[[1.0, 2.0]]], [[[3.0, 5.0]]]])  # two critics, one trajectory, one step, two actions
    found = critic_errors(q, torch.tensor([[1]]), torch.tensor([[4.0]]))
    assert found.tolist() == [[(4.0 + 1.0) / 2]]
    half = torch.tensor([[[0.5, 0.5]]]).log()
    valid = torch.tensor([[True]])
    assert float(actor_loss(half, q[0], valid, 2.0)) == pytest.approx(-(1.5 + 2 * 0.6931472), abs=1e-6)
    only = torch.tensor([[[1.0, 0.0]]]).log()  # the second action is illegal
    assert float(actor_loss(only, q[0], valid, 2.0)) == pytest.approx(-1.0)
    assert float(actor_loss(half, q[0], ~valid, 2.0)) == 0.0


def test_slow_critics_follow_by_their_share() -> None:
    learner = SAC(tiny_task(small(method="sac", rl__average=0.1)), CPU)
    start = [p.clone() for p in learner.slow.parameters()]
    assert all(torch.equal(a, b) for a, b in zip(start, learner.critics.parameters(), strict=True))
    learner.step()
    for before, now, fast in zip(start, learner.slow.parameters(), learner.critics.parameters(), strict=True):
        assert_close(now, 0.9 * before + 0.1 * fast)
        assert not torch.equal(now, before)
        assert not now.requires_grad
    assert not torch.equal(learner.critics.first.head.weight, learner.critics.second.head.weight)


def test_updates_draw_from_the_buffer(monkeypatch: pytest.MonkeyPatch) -> None:
    for drawn, updates in ((0, 1), (33, 3)):
        learner = SAC(
            tiny_task(small(method="sac", replay__batch=drawn, replay__capacity=20, rl__updates=updates)), CPU
        )
        sizes, sample = [], learner.buffer.sample
        monkeypatch.setattr(learner.buffer, "sample", lambda n, g, s=sample, z=sizes: z.append(n) or s(n, g))
        learner.step()
        assert sizes == [drawn or 8] * updates
        assert int(learner.buffer.added) == 8
        assert float(learner.critic_optimiser.state()["0.step"]) == updates
