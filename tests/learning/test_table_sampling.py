"""Walks by look-ups follow the exact law, and nothing that has no chance ever happens."""

from collections.abc import Callable

import pytest
import torch
from exact_tables import KINDS, MIXED, chi_square
from small_runs import CPU, small, tiny_trainer
from torch import Tensor
from torch.testing import assert_close

from sgfn.envs import laws
from sgfn.envs.tabulated import TabulatedEnv, tabulate
from sgfn.landscapes.base import Landscape
from sgfn.landscapes.tasks import Task
from sgfn.learning import learner
from sgfn.learning.learner import Learner
from sgfn.learning.table_sampling import TableSampler
from sgfn.learning.trainer import Trainer


class Numbered(Landscape):
    """The number of an object is its score; remembers how many were asked for."""

    maximum, mode_level = 1e9, 1e9

    def __init__(self, number: Callable[[Tensor], Tensor]) -> None:
        self.number, self.asked = number, 0

    def scores(self, objects: Tensor) -> Tensor:
        self.asked += objects.shape[0]
        return self.number(objects).float() + 1.0


class HostNumbered(Numbered):
    """Scores that leave the device."""

    on_host = True


def trainer_on(name: str, alpha: float = 0.3, **changes: object) -> Trainer:
    env, config = (KINDS | MIXED)[name](alpha), small(**changes)
    return Trainer(
        Task(name=name, summary="", env=env, landscape=Numbered(env.object_index), beta=1.0, config=config), CPU
    )


def some_policy(env: TabulatedEnv, seed: int = 0) -> Tensor:
    """Random, zero where illegal and at some legal places."""
    states = torch.arange(env.num_states)[:, None]
    weight = torch.rand(env.num_states, env.actions, generator=torch.Generator().manual_seed(seed)) + 0.1
    weight = weight * env.legal(states)
    alone = (weight > 0).sum(-1, keepdim=True) < 2
    weight = torch.where((weight < 0.3) & ~alone, 0.0, weight)
    weight[weight.sum(-1) == 0, -1] = 1.0
    return weight / weight.sum(-1, keepdim=True)


@pytest.mark.parametrize("name", sorted(n for n in [*KINDS, *MIXED] if "hidden" not in n))
def test_every_number_leads_where_its_share_lies(name: str) -> None:
    """Midpoints of 4,096 equal parts: each entry gets its share of them, up to one part on either side."""
    env = tabulate((KINDS | MIXED)[name](0.3), "cpu")
    assert isinstance(env, TabulatedEnv)
    policy, parts = some_policy(env), 4096
    sampler = TableSampler(env, policy, Numbered(env.object_index), 8)
    states = torch.arange(env.num_states)
    joint = (policy[:, :, None].double() * env.kernel(states[:, None], torch.float64)).flatten(1)
    uniform = (torch.arange(parts, dtype=torch.float64) + 0.5) / parts
    place = sampler._search(states.repeat_interleave(parts), uniform.repeat(env.num_states))
    counts = torch.zeros(env.num_states * sampler.size, dtype=torch.int64).index_add_(0, place, torch.ones_like(place))
    share = counts.view(env.num_states, -1) / parts
    assert share[:, joint.shape[1] :].sum() == 0
    assert_close(share[:, : joint.shape[1]].double(), joint, atol=1.01 / parts, rtol=0)
    for end in (0.0, 1.0 - 2.0**-53):  # the lowest and the highest number there is
        place = sampler._search(states, torch.full((env.num_states,), end, dtype=torch.float64))
        assert (joint.gather(1, (place % sampler.size)[:, None]) > 0).all()
    wrong = (some_policy(env, seed=1)[:, :, None] * env.kernel_table[: env.num_states]).flatten(1).double()
    assert (share[:, : joint.shape[1]] - wrong).abs().max() > 0.02


@pytest.mark.parametrize("name", ["slip-stop-L3-V2", "hidden-L3-V2", "position-L3-V2", "confusion-L3-V3", *MIXED])
@pytest.mark.parametrize("most", [0, 100_000])
def test_both_ways_follow_the_exact_law(name: str, most: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(learner, "MOST_STATES", most)
    trainer = trainer_on(name, optim__lr=0.05, optim__warmup=0)
    for _ in range(20):
        trainer.step()
    drawn, env = trainer.draw(20000, seed=1), trainer.task.env
    number = env.object_index(drawn.objects)
    counts = number.bincount(minlength=env.num_objects)
    assert chi_square(counts, trainer.law()) > 1e-3
    assert chi_square(counts, laws.law(env, laws.uniform_policy(env))) < 1e-9
    assert torch.equal(drawn.scores, number + 1.0)
    first = drawn.intended[:, 0].bincount(minlength=env.actions)
    assert chi_square(first, trainer.policy(env.initial(1))[0]) > 1e-3


def test_a_graph_with_joins() -> None:
    trainer = trainer_on("position-grid-2D-3")
    env, drawn = trainer.task.env, trainer.draw(20000, seed=1)
    counts = env.object_index(drawn.objects).bincount(minlength=env.num_objects)
    assert chi_square(counts, trainer.law()) > 1e-3
    stop = drawn.intended == env.actions - 1
    assert (stop.sum(1) == 1).all()  # noise never acts on it, and nothing is meant after it
    assert ((drawn.intended >= 0).sum(1) == stop.int().argmax(1) + 1).all()


def test_the_first_samples_are_the_same_whatever_their_number(monkeypatch: pytest.MonkeyPatch) -> None:
    trainer = tiny_trainer(stop=True)
    many = trainer.draw(50, seed=0)
    for n in (1, 7, 49):
        assert torch.equal(trainer.draw(n, seed=0).intended, many.intended[:n])
    monkeypatch.setattr(learner, "SAMPLE_BLOCK", 16)
    many = trainer.draw(50, seed=0)
    for n in (7, 16, 20, 49):
        assert torch.equal(trainer.draw(n, seed=0).objects, many.objects[:n])
    blocks = list(trainer.stream(50, seed=0))
    assert [block.scores.shape[0] for block in blocks] == [16, 16, 16, 2]
    assert torch.equal(torch.cat([block.objects for block in blocks]), many.objects)
    assert not torch.equal(blocks[0].objects, blocks[1].objects)


def evaluated_rows(made: Learner, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many states each question to the policy had."""
    rows, log_policy = [], made.state_policy()
    assert log_policy is not None
    monkeypatch.setattr(made, "state_policy", lambda: lambda state: rows.append(state.shape[0]) or log_policy(state))
    return rows


def test_each_state_is_evaluated_once(monkeypatch: pytest.MonkeyPatch) -> None:
    trainer = tiny_trainer()
    rows = evaluated_rows(trainer, monkeypatch)
    trainer.draw(5000, seed=0)
    assert rows == [trainer.env.num_states]


def test_scores_from_the_host_are_asked_for_samples_only() -> None:
    for kind, wanted in ((Numbered, 27), (HostNumbered, 5)):
        trainer = tiny_trainer()
        landscape = kind(trainer.task.env.object_index)
        object.__setattr__(trainer.task, "landscape", landscape)
        drawn = trainer.draw(5, seed=0)
        assert landscape.asked == wanted
        assert torch.equal(drawn.scores, trainer.task.env.object_index(drawn.objects) + 1.0)
