"""Actors: batches by weights of a bounded age, the same target, and code of a user's own in them."""

import random
import time
from collections.abc import Callable
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from own_noise import Rotation
from small_runs import CPU, same_tensors, small
from torch import Tensor

import sgfn
from sgfn.config import TrainConfig
from sgfn.envs import SequenceEnv, laws
from sgfn.envs.trajectories import Episodes
from sgfn.evaluation import exact
from sgfn.landscapes.tasks import Task, make_task
from sgfn.landscapes.words import Words
from sgfn.learning.ahead import AheadBackend, Waiting
from sgfn.learning.samplers import SampledAhead
from sgfn.learning.trainer import Trainer
from sgfn.objectives.scores import Scores


def own_task(name: str, config: TrainConfig) -> Task:
    """A task of somebody's own: noise that reads the position."""
    env = SequenceEnv(length=3, alphabet="ACGT", noise=Rotation())
    return Task(name=name, summary="", env=env, landscape=Words(alphabet="ACGT"), beta=1.0, config=config)


def own_objective(scores: Scores, batch: Episodes) -> Tensor:
    steps = torch.where(batch.valid, scores.log_pf + scores.log_dynamics - scores.log_pb, 0.0)
    return (scores.log_z + steps.sum(1) - batch.log_reward).square()


def trainer(task: str = "grid", **changes: Any) -> Trainer:
    return Trainer(make_task(task, small(**{"steps": 200, "actors": 2, **changes})), CPU)


def advance(one: Trainer, steps: int) -> list[float]:
    """The lags of some steps."""
    lags = []
    for _ in range(steps):
        one.step()
        one.done += 1
        lags.append(float(one.backend.readings()["lag"]) if one.config.actors else 0.0)
    return lags


def test_no_batch_is_older_than_the_bound_and_the_order_changes_nothing_where_asked(hired: Callable[..., Any]) -> None:
    states = []
    for seed in (1, 2):
        dice = random.Random(seed)
        hired(lambda request, dice=dice: time.sleep(dice.random() / 200))
        loose = advance(trainer(actors=3, actors_lag=4), 30)
        assert max(loose) <= 4
        one = trainer(actors=3, actors_lag=4, deterministic=True)
        assert advance(one, 12) == [0, 1, 2, 3] + [4.0] * 8
        states.append({name: value.clone() for name, value in one.state().items()})
    assert same_tensors(*states)


@given(ages=st.lists(st.integers(0, 5), min_size=1, max_size=6), bound=st.integers(0, 8))
def test_a_batch_may_wait_only_where_all_can_still_be_in_time(ages: list[int], bound: int) -> None:
    """The oldest first is the best order, so what it cannot do nothing can."""
    backend = AheadBackend.__new__(SampledAhead)
    backend.index, backend.bound = torch.tensor(10.0), bound
    backend.queue = [Waiting(place=i, born=10 - age, request=None) for i, age in enumerate(sorted(ages, reverse=True))]
    for chosen in backend.queue:
        left = sorted(10 - waiting.born for waiting in backend.queue if waiting is not chosen)[::-1]
        wanted = all(age + 1 + i <= bound for i, age in enumerate(left))
        assert backend._in_time(chosen) == wanted


def test_actors_learn_what_one_process_learns(hired: Callable[..., Any]) -> None:
    hired()
    found = {}
    for actors in (0, 2):
        one = trainer(actors=actors, batch=32, net__hidden=32, optim__lr=5e-3, optim__warmup=10, noise__alpha=0.1)
        target = exact.target(one.task.log_target(laws.check_size(one.task.env).all_objects()), 1.0)
        start = exact.total_variation(one.law(), target)
        advance(one, 200)
        found[actors] = exact.total_variation(one.law(), target)
    assert max(found.values()) < start / 2
    assert abs(found[0] - found[2]) < 0.04


def test_task_noise_and_objective_of_ones_own_are_found_by_name(hired: Callable[..., Any]) -> None:
    hired()
    changes = {"objective": f"{__name__}:own_objective", "deterministic": True, "actors": 1, "actors_lag": 1}
    own, ours = (
        trainer(f"{__name__}:own_task", **{**changes, "objective": name}) for name in (changes["objective"], "tb")
    )
    advance(own, 4)
    advance(ours, 4)
    assert torch.allclose(own.optimiser.values, ours.optimiser.values, atol=1e-5)


def test_a_run_continues_with_new_batches(hired: Callable[..., Any]) -> None:
    hired()
    first, second = trainer(deterministic=True), trainer(deterministic=True)
    advance(first, 5)
    state = {name: value.clone() for name, value in first.state().items()}
    second.load(state)
    assert int(state["actors.issued"]) == 8
    assert advance(second, 5) == [0, 1, 2, 3, 3]  # asked for anew, by the weights of the checkpoint


@pytest.mark.parametrize(
    ("task", "changes", "message"),
    [
        ("grid", {"exploration": "novelty", "replay__updates": 1}, None),
        ("callable", {"callable__function": "shlex:split", "callable__workers": 2}, "actors score what they roll out"),
    ],
)
def test_what_actors_cannot_do_is_refused(
    hired: Callable[..., Any], task: str, changes: dict[str, Any], message: str | None
) -> None:
    hired()
    with pytest.raises(ValueError, match=message):
        trainer(task, **changes)


def test_steps_that_wait_for_actors_are_neither_compiled_nor_captured() -> None:
    with_actors, alone = (trainer("tfbind8", actors=count) for count in (2, 0))
    assert (with_actors.compilable, with_actors.capturable) == (False, False)
    assert (alone.compilable, alone.capturable) == (True, True)


def test_idle_actors_are_refused() -> None:
    with pytest.raises(ValueError, match="actors_lag 1 leaves some of 4 actors idle: raise it to 3 or more"):
        TrainConfig().with_(actors=4, actors_lag=1)


def test_an_encoder_or_a_noise_that_settings_cannot_name_is_refused() -> None:
    """Actors would roll out by another network, or under another noise."""
    own, small_net = torch.nn.Linear(32, 8), {"steps": 2, "batch": 4, "progress": False}
    for part, why in (
        ({"encoder": own}, "know none that is given as a module: name it as module:name"),
        ({"noise": Rotation()}, "settings alone, which cannot name this Rotation: leave actors out"),
    ):
        with pytest.raises(ValueError, match=why):
            sgfn.fit("words", **part, actors=2, **small_net)
