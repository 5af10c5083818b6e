"""What first rollouts tell: shares worked out by hand, probabilities against exact laws, and whose effort they save."""

import math
import unittest.mock

import pytest
import torch
from torch import Tensor

from sgfn.config import TrainConfig
from sgfn.envs import GridEnv, laws
from sgfn.envs.base import Enumerable
from sgfn.landscapes.tasks import make_task
from sgfn.learning.exploration.first_rollouts import EVEN, KEPT, PEAKED, FirstRollouts, effective_share
from sgfn.learning.exploration.local import Local
from sgfn.learning.exploration.teacher import Teacher
from sgfn.learning.methods import make_learner
from sgfn.learning.rollout import rollout
from sgfn.learning.trainer import Trainer
from sgfn.noise import UniformSlip

CPU = torch.device("cpu")
FLAT, SHARP = 3.0, 60.0
"""Exponents at which TFBind8 hides nothing from random sequences, and nearly all."""


def trainer(way: str, task: str = "tfbind8", **changes: object) -> Trainer:
    settings = {"batch": 64, "net__hidden": 8, "net__layers": 1, "steps": 9, "replay__updates": 1, "replay__batch": 32}
    searched = {"local__count": 24, "archive__capacity": 50} if "local" in way else {}
    config = TrainConfig().with_(**settings, dynamics__mode="known", exploration=way, **searched, **changes)
    made = make_learner(make_task(task, config), CPU)
    assert isinstance(made, Trainer)
    return made


def first_of(run: Trainer) -> FirstRollouts:
    assert run.explorer is not None
    return run.explorer.first


def filled(log_reward: Tensor, log_weight: float, *, side: int = 16, beta: float = 1.0) -> FirstRollouts:
    """First rollouts, all equally likely, in a grid of side x side cells."""
    first = FirstRollouts(GridEnv(ndim=2, side=side, noise=UniformSlip(alpha=0.0)), beta, CPU)
    first.add(log_reward, torch.full((KEPT,), log_weight))
    return first


def at(first: FirstRollouts, best: float, beta: float = 1.0) -> float:
    """The effort, once it was found that the best reward so far is so high."""
    first.look(torch.tensor(best).log(), torch.tensor(beta))
    return float(first.effort)


def levels(high: int) -> Tensor:
    """Log-rewards, so many 1 and the others next to nothing."""
    return torch.where(torch.arange(KEPT) < high, 0.0, -50.0)


# the measure


def test_effective_shares_are_those_worked_out_by_hand() -> None:
    assert effective_share(torch.tensor([3.0, 1.0, 1.0, 1.0]).log()) == pytest.approx(36 / (4 * 12))
    assert effective_share(torch.full((7,), 5.0)) == pytest.approx(1.0)
    assert effective_share(torch.tensor([200.0, 0.0, 0.0, 0.0])) == pytest.approx(1 / 4)


def test_effort_follows_the_share_of_rollouts_that_matter() -> None:
    """With k rewards of 1 among n, and the best, which is 1 too, (k + 1) / (n + 1) of them count."""
    even = math.log(256)
    for high in (10, 50, 70, 80, 150):
        share = (high + 1) / (KEPT + 1)
        wanted = min(1.0, max(0.0, (EVEN - share) / (EVEN - PEAKED)))
        assert at(filled(levels(high), even), 1.0) == pytest.approx(wanted, abs=1e-4)
    two = torch.where(torch.arange(KEPT) < KEPT // 2, 0.0, math.log(2.0))
    value = 2.0 * torch.cat([two, torch.tensor([3.0]).log()])
    assert filled(two, even).worth(value) == pytest.approx((128 * 1 + 128 * 4 + 9) ** 2 / (257 * (128 + 128 * 16 + 81)))


def test_the_exponent_is_that_of_the_task_while_it_rises() -> None:
    rewards = torch.linspace(-1.0, 0.0, KEPT)
    assert at(filled(rewards, math.log(256)), 1.0, beta=1.0) == 0.0
    assert at(filled(rewards, math.log(256), beta=30.0), 1.0, beta=1.0) == 1.0
    assert at(filled(rewards, math.log(256)), 1.0, beta=30.0) == 1.0


def test_rewards_on_one_level_and_few_rollouts_tell_nothing() -> None:
    even = math.log(256)
    assert at(filled(torch.full((KEPT,), -7.0), even, beta=20.0), math.exp(-7.0)) == 1.0
    assert at(filled(torch.full((KEPT,), -7.0), even, beta=20.0), math.exp(-7.001)) == 0.0
    few = FirstRollouts(GridEnv(ndim=2, side=16, noise=UniformSlip(alpha=0.0)), 1.0, CPU)
    few.add(levels(200)[: KEPT - 1], torch.full((KEPT - 1,), even))
    assert at(few, 1.0) == 1.0
    few.add(torch.zeros(9), torch.full((9,), even))
    assert int(few.count) == KEPT
    assert at(few, 1.0) == 0.0


def test_effort_is_whole_again_once_something_much_better_turns_up() -> None:
    first = filled(levels(100), math.log(256))
    assert at(first, 1.0) == 0.0
    assert at(first, 3.0) == 0.0
    assert at(first, 100.0) == 1.0


def test_a_policy_in_one_corner_does_not_close_the_search() -> None:
    """Sixteen cells of a corner, all alike: rollouts and their rewards are even, but 16 of 1,024 cells are few."""
    corner = filled(levels(200), math.log(16), side=32)
    assert corner.evenness == pytest.approx(1.0)
    assert corner.reach == pytest.approx(16 / 1024)
    assert at(corner, 1.0) == 1.0
    assert at(filled(levels(200), math.log(16), side=4), 1.0) == 0.0  # where there is no more than that corner
    early = filled(levels(10), math.log(1024), side=32)
    early.add(levels(200), torch.full((KEPT,), math.log(16)))  # it has gone to a corner since
    assert at(early, 1.0) == 1.0


@pytest.mark.parametrize("alpha", [0.0, 0.3])
@pytest.mark.parametrize("task", ["words", "grid"])
def test_probabilities_of_trajectories_add_up_to_the_law(task: str, alpha: float) -> None:
    changes = {"grid__ndim": 2, "grid__side": 3} if task == "grid" else {}
    run = trainer("local", task, noise__alpha=alpha, **changes)
    env = run.task.env
    assert isinstance(env, Enumerable)
    batch = rollout(run.env, run.actor(), run.task.log_reward, batch=3000, generator=run.generator, explore=0.5)
    steps = torch.where(batch.valid, batch.realised, -1)
    once = [rows[0] for rows in [(steps == one).all(1).nonzero()[:, 0] for one in torch.unique(steps, dim=0)]]
    number = run.env.parents(batch.states[:, 1:]).sum(-1)  # of ways back, each equally likely
    chance = (run.general.log_chance(batch) - torch.where(batch.valid, number, 1).log().sum(1)).exp()
    ends = env.object_index(run.env.objects(batch.states[:, -1]))
    found = torch.zeros(env.num_objects).index_add_(0, ends[torch.stack(once)], chance[torch.stack(once)])
    law = laws.law(env, lambda state: run.nets.log_policy(run.env.embed(state)).detach().exp().double())
    reached = torch.zeros(env.num_objects, dtype=torch.bool).index_fill_(0, ends, True)
    assert reached.all() or task == "words"
    assert torch.allclose(found[reached].double(), law[reached], rtol=1e-4, atol=0.0)


# whose effort it saves


@pytest.mark.parametrize(("beta", "part"), [(FLAT, 0.0), (SHARP, 1.0)])
def test_local_search_and_replay_of_the_best_end_where_nothing_is_hidden(beta: float, part: float) -> None:
    run = trainer("local+best", beta=beta)
    assert run.explorer is not None
    way, best = run.explorer.ways["local"], run.explorer.ways["best"]
    assert isinstance(way, Local)
    for step in range(6):
        with unittest.mock.patch.object(way, "_edited", wraps=way._edited) as edited:
            run.step()
        whole = step < KEPT // run.config.batch - 1
        assert first_of(run).complete != whole
        ordered = sum(call.args[0] for call in edited.call_args_list)
        assert ordered == (18 if whole else 18 * part)  # a fourth of 24 is rebuilt
        assert best.share == run.config.archive.share * (1.0 if whole else part)
    assert run.buffer is not None
    assert int(run.buffer.added) == 6 * (64 + 24)  # rollouts in the place of orders


@pytest.mark.parametrize(("beta", "part"), [(FLAT, 0.0), (SHARP, 1.0)])
def test_the_teacher_rests_where_nothing_is_hidden(beta: float, part: float) -> None:
    run = trainer("teacher", beta=beta, teacher__hidden=8)
    assert run.explorer is not None
    way = run.explorer.ways["teacher"]
    assert isinstance(way, Teacher)
    rows = torch.arange(64)
    for _ in range(8):
        assert int((way.head_of(rows) == 0).sum()) == 32
        run.step()
    assert int((way.head_of(rows) == 0).sum()) == 32 * part  # after 8 x 32 rollouts of the policy itself
    before = {name: value.clone() for name, value in way.sampler.state_dict().items()}
    run.step()
    moved = any(not torch.equal(value, before[name]) for name, value in way.sampler.state_dict().items())
    assert moved == bool(part)


@pytest.mark.parametrize("alpha", [0.0, 0.25])
def test_effort_stays_whole_on_a_grid_whose_far_corners_were_not_seen(alpha: float) -> None:
    changes = {"grid__ndim": 2, "grid__side": 20, "grid__r0": 1e-3, "reward__minimum": 1e-6, "noise__alpha": alpha}
    run = trainer("local", "grid", **changes)
    for _ in range(6):
        run.step()
    assert first_of(run).complete
    assert float(first_of(run).effort) == 1.0


def test_rollouts_of_other_samplers_do_not_count() -> None:
    run = trainer("thompson", thompson__hidden=8)
    for _ in range(3):
        run.step()
    assert int(first_of(run).count) == 0


def test_a_loaded_run_remembers_that_nothing_is_hidden() -> None:
    whole, half, other, older = (trainer("local+best", seed=3) for _ in range(4))
    for _ in range(4):
        whole.step()
        half.step()
    state = {name: value.clone() for name, value in half.state().items()}
    assert float(state["first.effort"]) == 0.0
    other.load(state)
    older.load({name: value for name, value in state.items() if not name.startswith("first.")})
    assert int(first_of(older).count) == 0  # of a version that did not know it
    for run in (whole, other, older):
        run.step()
    mine, theirs, others = whole.state(), other.state(), older.state()
    assert all(torch.equal(mine[name], theirs[name]) for name in mine if name != "self.done")
    assert any(not torch.equal(mine[name], others[name]) for name in mine if not name.startswith("first."))
