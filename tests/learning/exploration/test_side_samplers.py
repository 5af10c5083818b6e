"""Samplers beside the policy: their balance against exact laws, whose rollouts they make, what they learn from."""

import math
from dataclasses import replace

import pytest
import torch
from torch import Tensor

from sgfn.config import TrainConfig
from sgfn.envs import laws
from sgfn.envs.base import Enumerable
from sgfn.landscapes.tasks import make_task
from sgfn.learning.exploration.side_sampler import SideSampler, SideWay, random_function
from sgfn.learning.exploration.teacher import LEAST
from sgfn.learning.exploration.thompson import Thompson
from sgfn.learning.methods import make_learner
from sgfn.learning.rollout import as_actor, rollout
from sgfn.learning.trainer import Trainer

CPU = torch.device("cpu")


def trainer(way: str, task: str = "words", **changes: object) -> tuple[Trainer, SideWay]:
    settings = {"batch": 16, "net__hidden": 8, "net__layers": 1, "steps": 3, "dynamics__mode": "known"}
    made = make_learner(make_task(task, TrainConfig().with_(**settings, exploration=way, **changes)), CPU)
    assert isinstance(made, Trainer)
    assert made.explorer is not None
    found = made.explorer.ways[way]
    assert isinstance(found, SideWay)
    return made, found


def policy_of(sampler: SideSampler, head: int):
    return lambda state: sampler.log_policies(sampler.env.embed(state))[..., head, :].detach().exp().double()


@pytest.mark.parametrize("alpha", [0.0, 0.3])
def test_a_head_balances_the_reward_that_it_induces(alpha: float) -> None:
    """On a tree, at log R = log p_h(x) and log Z = 0, every trajectory of anyone has the residual zero."""
    run, way = trainer("thompson", "words", noise__alpha=alpha)
    env, batch = run.task.env, rollout(run.env, run.actor(), run.task.log_reward, batch=40, generator=run.generator)
    assert isinstance(env, Enumerable)
    with torch.no_grad():
        for head in range(way.sampler.heads):
            law = laws.law(env, policy_of(way.sampler, head))
            log_reward = law.log()[env.object_index(env.objects(raw(run, batch.realised)))].float()
            residual = way.sampler.residual(batch, run.general, log_reward[:, None].expand(-1, way.sampler.heads))
            assert residual[:, head].abs().max() < 1e-4
            assert (residual[:, head] - 0.1).abs().min() > 0.05  # another reward is noticed


def raw(run: Trainer, realised: Tensor) -> Tensor:
    """The raw states that trajectories end in."""
    state = run.task.env.initial(len(realised))
    for outcome in realised.unbind(1):
        state = run.task.env.apply(state, outcome)
    return state


def test_parents_are_uniform_on_a_graph() -> None:
    """Up, right, stop: the first cell has one parent, the second two, the stopped one its own cell."""
    run, way = trainer("teacher", "grid", noise__alpha=0.0)
    batch = rollout(run.env, run.actor(), run.task.log_reward, batch=1, generator=run.generator)
    steps = torch.full((1, run.env.horizon), 2)
    steps[0, :2] = torch.tensor([0, 1])
    states = [run.env.initial(1)]
    for outcome in steps.unbind(1):
        states.append(run.env.apply(states[-1], outcome))
    valid = torch.arange(run.env.horizon)[None] < 3
    path = replace(batch, intended=steps, realised=steps, valid=valid, states=torch.stack(states, 1))
    with torch.no_grad():
        log_pf = sum(
            way.sampler.log_policies(state)[0, 0, step] for state, step in zip(states, (0, 1, 2), strict=False)
        )
        found = way.sampler.residual(path, run.general, torch.zeros(1, 1))
    assert found.item() == pytest.approx(float(log_pf) + math.log(2), abs=1e-5)


def test_heads_learn_the_target() -> None:
    """On a few words all heads come near the target, though each sees half of the trajectories."""
    run, way = trainer("thompson", "words", noise__alpha=0.2, thompson__heads=2, thompson__lr=0.01, explore=0.3)
    env = run.task.env
    assert isinstance(env, Enumerable)
    wanted = (run.task.beta * run.task.log_reward(env.all_objects())).double().softmax(0)
    before = [0.5 * float((laws.law(env, policy_of(way.sampler, h)) - wanted).abs().sum()) for h in range(2)]
    generator = torch.Generator().manual_seed(1)
    for _ in range(80):
        batch = rollout(run.env, run.actor(), run.task.log_reward, batch=64, generator=generator, explore=0.5)
        way.observe(batch, run.general, torch.tensor(run.task.beta))
    after = [0.5 * float((laws.law(env, policy_of(way.sampler, h)) - wanted).abs().sum()) for h in range(2)]
    assert max(after) < 0.6 * min(before)


def test_heads_begin_apart_and_learn_from_halves() -> None:
    run, way = trainer("thompson", thompson__prior=2.0)
    assert isinstance(way, Thompson)
    state = run.env.initial(1)
    first = way.sampler.log_policies(state)[0].exp()
    assert (first[0] - first[1]).abs().max() > 0.02
    same, _ = trainer("thompson", thompson__prior=0.0)
    batch = rollout(run.env, run.actor(), run.task.log_reward, batch=4000, generator=run.generator)
    halves = way.learns(batch)
    assert torch.equal(halves, way.learns(batch))  # a trajectory that comes again belongs to the same heads
    distinct = torch.unique(torch.cat([batch.realised, halves.long()], 1), dim=0)[:, run.env.horizon :].float()
    assert (distinct.mean(0) - 0.5).abs().max() < 0.1
    assert same.explorer is not None
    outputs = random_function(7, 64, 500)(torch.eye(7))
    assert outputs.mean().abs() < 0.1
    assert outputs.std().item() == pytest.approx(1.0, abs=0.1)


def test_rollouts_are_dealt_to_heads_and_policy() -> None:
    run, way = trainer("teacher", teacher__share=0.25)
    plain = as_actor(lambda state: run.nets.log_policy(state))
    with torch.no_grad():
        way.sampler.policy.bias[0] = 5.0
        state = run.env.initial(8)
        drawn = way.actor(plain).log_policy(0, state)
        own, taught = plain.log_policy(0, state), way.sampler.log_policies(state)[:, 0]
    assert torch.allclose(drawn[:2], taught[:2], atol=1e-5)
    assert torch.allclose(drawn[2:], own[2:], atol=1e-5)
    assert not torch.allclose(drawn[2:], taught[2:], atol=0.1)
    _, many = trainer("thompson", thompson__heads=3)
    assert many.head_of(torch.arange(7)).tolist() == [0, 1, 2, 0, 1, 2, 0]


@pytest.mark.parametrize("objective", ["tb", "kl", "db"])
def test_the_teacher_is_worth_the_error_of_the_policy(objective: str) -> None:
    run, way = trainer("teacher", objective=objective, teacher__boost=3.0, teacher__mix=0.5)
    batch = rollout(run.env, run.actor(), run.task.log_reward, batch=32, generator=run.generator)
    beta = torch.tensor(2.0)
    lack = run.general.shortfall(batch, beta)
    if objective == "tb":
        past = (batch.intended, batch.realised, batch.log_reward)
        assert torch.allclose(lack.square(), run.general.losses(past, beta), rtol=1e-3, atol=1e-5)
    weight = torch.where(lack > 0, 4.0, 1.0)
    wanted = (LEAST + weight * lack.square()).log() + 0.5 * 2.0 * batch.log_reward
    assert torch.allclose(way.targets(batch, run.general, beta)[:, 0], wanted, atol=1e-5)
    less = replace(batch, log_reward=batch.log_reward - 1.0)
    assert torch.allclose(run.general.shortfall(less, beta), lack - 2.0, atol=1e-4)


def test_replayed_batches_teach_too() -> None:
    run, way = trainer("thompson", replay__updates=3)
    seen = []
    way.observe, observe = (
        lambda batch, *more: (seen.append(len(batch.realised)), observe(batch, *more))[1],
        way.observe,
    )
    run.step()
    assert seen == [16] * 4  # one batch of rollouts, three of replay
