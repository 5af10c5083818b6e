"""What `a2c`, `ppo` and `sac` must all do: learn the known optimum, resume bit for bit, refuse what they cannot use."""

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from sgfn import exact
from sgfn.cli import main
from sgfn.files import read_json
from sgfn.learner import Learner, NonFiniteError
from sgfn.methods import LEARNERS, make_learner
from sgfn.peers.a2c import A2C
from sgfn.peers.actor_critic import METERS, entropy, soft_value, step_mean, step_sum
from sgfn.peers.ppo import PPO
from sgfn.peers.sac import SAC
from sgfn.runs import Run
from sgfn.tasks import Task, make_task
from small_runs import CPU, FLAGS, complaint, same_runs, same_tensors, small, tiny_task

METHODS = {"a2c": A2C, "ppo": PPO, "sac": SAC}
every_method = pytest.mark.parametrize("method", METHODS)
every_task = pytest.mark.parametrize("task", ["tiny", "tiny-stop", "grid"])
RAMP: dict[str, Any] = {"noise__alpha": 0.3, "beta": 3.0, "reward__ramp": 5.0, "replay__capacity": 30}


def task_of(name: str, **changes: Any) -> Task:
    config = small(**changes)
    return tiny_task(config, "AB", stop=True) if name == "tiny-stop" else (
        tiny_task(config) if name == "tiny" else make_task(name, config)
    )


def build(method: str, name: str = "tiny", **changes: Any) -> Learner:
    return make_learner(task_of(name, method=method, **changes), CPU)


def saved(learner: Learner) -> dict[str, Tensor]:
    return {name: value.clone() for name, value in learner.state().items()}


def advance(learner: Learner, steps: int) -> dict[str, Tensor]:
    for _ in range(steps):
        learner.step()
        learner.done += 1
    return saved(learner)


# Learning


def optimum(task: Task) -> Tensor:
    """Law of the known optimum."""
    log_reward = task.beta * task.log_reward(task.env.all_objects()).double()
    policy = exact.soft_policy(task.env, log_reward, task.config.rl.temperature)
    return exact.law(task.env, exact.table_policy(task.env, policy))


LESSON: dict[str, Any] = {"steps": 300, "batch": 64, "optim__lr": 5e-3, "net__hidden": 32, "beta": 3.0}
LESSON |= {"noise__alpha": 0.25, "optim__warmup": 10, "rl__average": 0.1}


@pytest.mark.parametrize("task", ["tiny", "grid"])
@every_method
def test_the_known_optimum_is_learned(method: str, task: str) -> None:
    learner = build(method, task, **LESSON)
    wanted = optimum(learner.task)
    before = exact.total_variation(learner.law(), wanted)
    advance(learner, 300)
    after = exact.total_variation(learner.law(), wanted)
    print(method, task, before, after)
    assert after < 0.04
    assert before > 0.15


@every_method
def test_at_a_low_temperature_the_reward_is_nearly_the_best(method: str) -> None:
    learner = build(method, **LESSON | {"rl__temperature": 0.05})
    task = learner.task
    log_reward = task.log_reward(task.env.all_objects()).double()
    best = exact.law(task.env, exact.table_policy(task.env, exact.soft_policy(task.env, log_reward, 0.0)))
    before, top = float(learner.law() @ log_reward), float(best @ log_reward)
    advance(learner, 300)
    print(method, before, float(learner.law() @ log_reward), float(optimum(task) @ log_reward), top)
    assert top - 0.05 < float(learner.law() @ log_reward) < top + 1e-6
    assert before < top - 0.5
