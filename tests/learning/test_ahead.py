"""Batches scored by workers while training goes on: same numbers whatever the order of arrival, kept in checkpoints."""

import math
import random
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
import torch
from own_noise import Rotation
from small_runs import CPU, same_tensors, small
from test_seams import AfterA
from thread_workers import Gate
from torch import Tensor
from torch.testing import assert_close

from sgfn.envs import SequenceEnv, laws
from sgfn.envs.base import Env
from sgfn.envs.trajectories import Episodes
from sgfn.evaluation import exact
from sgfn.landscapes.function import FunctionLandscape, letters
from sgfn.landscapes.tasks import Task
from sgfn.learning.ahead import ScoredAhead, objects_of
from sgfn.learning.general import GeneralBackend
from sgfn.learning.kernels.fixed_length import FixedLengthBackend
from sgfn.learning.trainer import Trainer
from sgfn.noise import UniformSlip
from sgfn.objectives.scores import Scores


def count_a(texts: list[str]) -> list[float]:
    return [1.0 + text.count("A") for text in texts]


def slipping(stop: bool = False) -> SequenceEnv:
    return SequenceEnv(length=4, alphabet="ABC", noise=UniformSlip(alpha=0.3), stop=stop)


def own_objective(scores: Scores, batch: Episodes) -> Tensor:
    """Trajectory balance by somebody who writes it himself."""
    steps = torch.where(batch.valid, scores.log_pf + scores.log_dynamics - scores.log_pb, 0.0)
    return (scores.log_z + steps.sum(1) - batch.log_reward).abs()


def trainer(env: Env | None = None, *, workers: int = 2, objective: Any = None, **changes: Any) -> Trainer:
    env = slipping() if env is None else env
    scored = FunctionLandscape(count_a, letters("ABC"), None, math.inf, workers=workers)
    config = small(**{"steps": 50, "ahead": 2, "deterministic": True, **changes})
    return Trainer(
        Task(name="own", summary="", env=env, landscape=scored, beta=1.0, config=config), CPU, objective=objective
    )


def advance(trainer: Trainer, steps: int) -> dict[str, Tensor]:
    for _ in range(steps):
        trainer.step()
        trainer.done += 1
    return {name: value.clone() for name, value in trainer.state().items()}


def test_the_order_of_arrival_changes_nothing_where_that_is_asked_for(hired: Callable[..., Any]) -> None:
    states = []
    for seed in (1, 2):
        dice = random.Random(seed)
        hired(lambda request, dice=dice: time.sleep(dice.random() / 500))
        states.append(advance(trainer(workers=3), 12))
    assert same_tensors(*states)
    hired()
    assert not same_tensors(states[0], advance(trainer(workers=3, ahead=1), 12))  # and the lag does


@pytest.mark.parametrize("env", ["plain", "stop", "noise", "state"])
@pytest.mark.parametrize("objective", [None, own_objective])
def test_batches_are_those_of_a_run_that_waits_trained_on_later(
    hired: Callable[..., Any], env: str, objective: Any
) -> None:
    """While the policy stands still, the batches are the same; a lagging run has trained on all but the last two."""
    hired()
    envs: dict[str, Env] = {
        "plain": slipping(),
        "stop": slipping(stop=True),
        "noise": SequenceEnv(length=4, alphabet="ABC", noise=Rotation()),
        "state": AfterA(length=4, alphabet="ABC", noise=UniformSlip(alpha=0.5)),
    }
    still: dict[str, Any] = {"optim__lr": 0.0, "dynamics__lr": 0.0, "replay__updates": 1, "replay__capacity": 512}
    waiting, ahead = (trainer(envs[env], objective=objective, ahead=k, **still) for k in (0, 2))
    assert isinstance(waiting.backend, GeneralBackend | FixedLengthBackend)
    assert isinstance(ahead.backend, ScoredAhead)
    waiting.generator.manual_seed(3)
    draws: list[Any] = [waiting.backend.draw(waiting.generator, 1.0) for _ in range(5)]
    zero, one = torch.zeros(()), torch.ones(())
    wanted = [waiting.backend.learn(draw, one, zero)[0] for draw in draws[:3]]
    found = [ahead.backend.learn(some, one, zero)[0] for some in (draws[:3], [draws[3]], [draws[4]])]
    for old, new in zip(wanted, found, strict=True):
        assert torch.equal(old.realised, new.realised)
        assert torch.equal(old.intended, new.intended)
        assert_close(old.log_reward, new.log_reward)
    assert float(ahead.backend.lag[0]) == 0.0  # no update was counted


def test_an_update_on_a_batch_from_before_is_that_of_its_rollout(hired: Callable[..., Any]) -> None:
    """Without a lag, rolling out and learning in two halves gives the update of one."""
    hired()
    for stop in (False, True):
        whole, halves = (trainer(slipping(stop), ahead=0) for _ in range(2))
        draws = whole.backend.draw(whole.generator, 1.0)
        beta, rate = torch.tensor(2.0), torch.ones(())
        _, told = whole.backend.learn(draws, beta, rate)
        intended, realised = halves.backend.roll(draws)
        log_reward = halves.task.log_reward(objects_of(halves.env, realised))
        _, found = halves.backend.learn_from((intended, realised, log_reward), beta, rate)
        assert_close(found.loss, told.loss)
        assert_close(halves.optimiser.gradient, whole.optimiser.gradient, atol=1e-6, rtol=1e-4)
        other = (intended, realised, log_reward + 1.0)
        assert abs(float(halves.backend.learn_from(other, beta, rate)[1].loss - told.loss)) > 1e-3


def test_a_run_continues_with_the_batches_that_waited(hired: Callable[..., Any]) -> None:
    hired()
    straight, first, second = trainer(), trainer(), trainer()
    state = advance(first, 5)
    assert int((state["ahead.number"] >= 0).sum()) == 2
    advance(second, 3)
    second.load(state)
    assert same_tensors(advance(second, 6), advance(straight, 11))


def test_nothing_is_rolled_out_that_nobody_trains_on(hired: Callable[..., Any]) -> None:
    hired()
    one = trainer(steps=6)
    state = advance(one, 6)
    assert int((state["ahead.number"] >= 0).sum()) == 0
    assert one.read_meters()["lag"] == pytest.approx((0 + 1 + 2 + 2 + 2 + 2) / 6)


def test_batches_that_arrive_first_are_trained_on_first(hired: Callable[..., Any]) -> None:
    gate = Gate()
    gate.open = True
    hired(gate)
    one = trainer(slipping(), deterministic=False, workers=1, ahead=2)
    backend = one.backend
    assert isinstance(backend, ScoredAhead)
    one.step()
    places = [waiting.place for waiting in backend.queue]
    backend.queue.reverse()  # as if the younger had been asked for first: both have arrived
    assert backend._next().place == places[1]


def test_what_fails_keeps_the_batches(hired: Callable[..., Any]) -> None:
    """A step that raises leaves nothing behind that a state taken before it does not have."""
    gate = Gate()
    gate.open = True
    hired(gate)
    one, straight = trainer(workers=1), trainer(workers=1)
    before = advance(one, 4)
    one.task.landscape.known.clear()  # pyright: ignore[reportAttributeAccessIssue]
    gate.lost = 1000
    with pytest.raises(ValueError, match="a worker was killed"):
        advance(one, 4)
    gate.lost = 0
    again = trainer(workers=1)
    again.load(before)
    assert same_tensors(advance(again, 4), advance(straight, 8))


def test_a_lagging_run_learns_what_a_waiting_one_learns(hired: Callable[..., Any]) -> None:
    """Exact distances to the target after the same number of steps, and the untrained one far from both."""
    hired()
    found = {}
    for ahead in (0, 4):
        one = trainer(ahead=ahead, steps=300, batch=32, optim__lr=5e-3, optim__warmup=10, noise__alpha=0.3)
        target = exact.target(one.task.log_target(laws.check_size(one.task.env).all_objects()), 1.0)
        start = exact.total_variation(one.law(), target)
        advance(one, 300)
        found[ahead] = exact.total_variation(one.law(), target)
    assert max(found.values()) < start / 3
    assert abs(found[0] - found[4]) < 0.03


def test_a_replaced_landscape_without_workers_waits() -> None:
    one = trainer(workers=1)
    assert not isinstance(one.backend, ScoredAhead)
    assert replace(one.task).landscape.live() == {}
