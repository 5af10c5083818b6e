"""Ways to explore: what each gives is a true trajectory of the noisy environment, and balances hold on all of it."""

import unittest.mock
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from exact_tables import KINDS, MIXED, PROPERTY, TINY, ExactScorer, chi_square, look_up, random_table
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from sgfn.config import TrainConfig
from sgfn.envs import GridEnv, SequenceEnv, laws
from sgfn.envs.base import Enumerable, Env
from sgfn.envs.trajectories import Trajectories
from sgfn.landscapes.tasks import make_task
from sgfn.learning.exploration.archive import ENOUGH, LEAST, REMEMBERED, Archive, first_of_each
from sgfn.learning.exploration.base import Way
from sgfn.learning.exploration.edits import consensus, edit_cells, edit_sequences
from sgfn.learning.exploration.entropy_state import EntropyState
from sgfn.learning.exploration.following import follow, order_sequences, orders_at_once, planned, toward
from sgfn.learning.exploration.local import RARELY, SPARED, Local
from sgfn.learning.exploration.registry import EXPLORATIONS
from sgfn.learning.general import GeneralBackend
from sgfn.learning.methods import check, make_learner
from sgfn.learning.rollout import as_actor, no_reward, rollout, rollout_draws
from sgfn.learning.scoring import score
from sgfn.learning.trainer import Trainer
from sgfn.noise import UniformSlip
from sgfn.objectives.trajectory_balance import trajectory_balance

CPU = torch.device("cpu")
WAYS = [name for name, entry in EXPLORATIONS.items() if entry.way]
ALL, TASKS = "local+best+novelty+entropy", ("words", "grid")
SMALL = {
    "batch": 16,
    "net__hidden": 8,
    "net__layers": 1,
    "steps": 3,
    "replay__updates": 1,
    "local__count": 40,
    "local__rounds": 2,
    "archive__capacity": 30,
}


def trainer(way: str, task: str = "words", **changes: object) -> Trainer:
    reads = {"local__count", "local__rounds"} if "local" not in way else set()
    reads |= {"archive__capacity"} if way not in ("local", "best", "local+best") else set()
    settings = {name: value for name, value in SMALL.items() if name not in reads} | {"exploration": way} | changes
    made = make_learner(make_task(task, TrainConfig().with_(**settings)), CPU)
    assert isinstance(made, Trainer)
    return made


def generator(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def rows(batch: Trajectories) -> list[tuple[tuple[int, ...], tuple[int, ...]]]:
    """Intentions and outcomes of the valid steps of each trajectory."""
    found = zip(batch.intended.tolist(), batch.realised.tolist(), batch.length.tolist(), strict=True)
    return [(tuple(a[:n]), tuple(k[:n])) for a, k, n in found]


# off-policy correctness: every trajectory that a way gives is one of those on which a solved balance vanishes


def collected(way: str, task: str, alpha: float) -> tuple[Trainer, list[Trajectories]]:
    """A few steps of a run, with all that a way made or picked."""
    run, seen = trainer(way, task, noise__alpha=alpha, dynamics__mode="known"), []
    assert run.explorer is not None
    assert run.buffer is not None
    observe = run.explorer._observe

    def watching(batch: Trajectories, backend: GeneralBackend, beta: Tensor) -> None:
        seen.append(batch)
        observe(batch, backend, beta)

    run.explorer._observe = watching  # pyright: ignore[reportAttributeAccessIssue]
    for _ in range(3):
        run.step()
    return run, seen


@pytest.mark.parametrize("alpha", [0.0, 0.3])
@pytest.mark.parametrize(("task", "changes"), [("words", {}), ("grid", {})])
@pytest.mark.parametrize("way", WAYS)
def test_a_solved_balance_vanishes_on_all_that_a_way_makes(
    way: str, task: str, changes: dict[str, object], alpha: float
) -> None:
    run, seen = collected(way, task, alpha)
    env = run.task.env
    assert isinstance(env, Enumerable)
    policy = look_up(env, random_table(env, 0))
    log_z = torch.tensor(0.7, dtype=torch.float64)
    scorer = ExactScorer(env=env, policy=policy, noisy=True, log_z=log_z, mass=laws.reach(env, policy))
    for batch in seen:
        raw = raw_states(env, batch)
        true = replace(batch, states=raw, log_reward=scorer.log_reward(raw[:, -1]))
        kernel = env.operator(raw[:, :-1], torch.float64)
        happened = kernel.log_prob(batch.intended, batch.realised)
        assert (happened[batch.valid] > -torch.inf).all()  # every outcome may come of what was intended
        scores = score(scorer, true, "marginal", kernel)
        assert trajectory_balance(scores, true).max() < 1e-18
        wrong = replace(true, log_reward=true.log_reward + 0.1)
        assert trajectory_balance(scores, wrong).min() > 1e-6


def raw_states(env: Env, batch: Trajectories) -> Tensor:
    """The raw states of a batch, by applying its outcomes once more."""
    state = env.initial(len(batch.realised))
    states = [state]
    for outcome in batch.realised.unbind(1):
        state = env.apply(state, outcome)
        states.append(state)
    return torch.stack(states, 1)


@pytest.mark.parametrize("name", ["fixed-L3-V2", "stop-L3-V2", "grid-2D-3", "drift-L2-V3"])
def test_orders_come_out_as_the_kernel_says(name: str) -> None:
    """Outcomes given intentions follow the kernel at every step, not what was wanted."""
    env = TINY[name](0.4)
    goals = env.all_objects()[torch.randint(env.num_objects, (4000,), generator=generator())]
    batch = follow(env, toward(env, goals), no_reward, rollout_draws(env, 4000, generator(1)))
    alive = batch.valid
    state, intended, realised = batch.states[:, :-1][alive], batch.intended[alive], batch.realised[alive]
    counts = torch.zeros(env.num_states, env.actions, env.outcomes)
    counts.index_put_((env.index(state), intended, realised), torch.ones(len(intended)), accumulate=True)
    states = torch.cat(list(env.levels()))
    law = torch.zeros(env.num_states, env.actions, env.outcomes, dtype=torch.float64)
    law[env.index(states)] = env.kernel(states, torch.float64)
    assert chi_square(counts, law) > 1e-4
    assert chi_square(counts, (law + 1 / env.outcomes) / 2) < 1e-9
    assert (batch.realised != batch.intended)[batch.valid].any()


def test_orders_at_once_have_the_law_of_orders_step_by_step() -> None:
    env = TINY["drift-L2-V3"](0.4)
    goals = env.all_objects()[torch.arange(9).repeat_interleave(2000)]
    at_once = order_sequences(env, goals, no_reward, generator())  # pyright: ignore[reportArgumentType]
    law = torch.zeros(9, 9, dtype=torch.float64)
    for goal in range(9):
        steps = [env.kernel(at_once.states[goal * 2000 : goal * 2000 + 1, t], torch.float64)[0] for t in range(2)]
        first, second = (steps[t][int(env.all_objects()[goal, t])] for t in range(2))
        law[goal] = (first[:, None] * second).flatten()
    counts = torch.zeros(9, 9)
    keys = (torch.arange(9).repeat_interleave(2000), env.object_index(at_once.realised))
    counts.index_put_(keys, torch.ones(len(goals)), accumulate=True)
    assert chi_square(counts, law) > 1e-4
    assert chi_square(counts, (law + 1 / 9) / 2) < 1e-9
    assert torch.equal(at_once.states[:, -1], at_once.realised)
    assert torch.equal(at_once.states, raw_states(env, at_once))
    assert not orders_at_once(TINY["stop-L3-V2"](0.1))
    assert not orders_at_once(MIXED["mixtures-5-of-3"](0.1))
    hidden = KINDS["hidden-L3-V2"](0.4)
    assert isinstance(hidden, SequenceEnv)
    assert orders_at_once(hidden)
    slipped = order_sequences(hidden, hidden.all_objects().repeat(300, 1), no_reward, generator())
    share = (slipped.realised != slipped.intended).float().mean(1)
    assert (share == 0).float().mean() > 0.8**3  # each order has its own rate: more are whole than by the mean rate


@pytest.mark.parametrize("name", MIXED)
def test_a_plan_is_aimed_at_where_intentions_are_another_set(name: str) -> None:
    env = MIXED[name](0.1)
    plan = torch.ones(2000, env.horizon, dtype=torch.int64)
    kept = torch.ones_like(plan, dtype=torch.bool)
    draws = rollout_draws(env, 2000, generator())
    aimed = follow(env, planned(plan, kept, env.outcomes), no_reward, draws)
    free = follow(env, planned(plan, ~kept, env.outcomes), no_reward, draws)
    assert (aimed.realised == 1).float().mean() > (free.realised == 1).float().mean() + 0.1


def test_the_policy_fills_the_gaps_of_a_plan() -> None:
    env = TINY["fixed-L3-V2"](0.0)
    policy = as_actor(lambda state: torch.tensor([-20.0, 0.0]).expand(*state.shape[:-1], 2).log_softmax(-1))
    plan, kept = torch.zeros(50, 3, dtype=torch.int64), torch.tensor([True, False, True]).expand(50, 3)
    batch = follow(env, planned(plan, kept, 2), no_reward, rollout_draws(env, 50, generator()), policy)
    assert (batch.realised == torch.tensor([0, 1, 0])).all()


# the archive


@PROPERTY
@given(capacity=st.integers(1, 6), seeds=st.lists(st.integers(0, 99), min_size=1, max_size=4))
def test_the_archive_keeps_what_a_sorted_list_would(capacity: int, seeds: list[int]) -> None:
    env = TINY["grid-2D-3"](0.2)
    archive, kept = Archive(env, capacity, CPU), []
    for seed in seeds:
        policy = look_up(env, random_table(env, seed))
        worth = lambda x: (x.sum(-1) // 2).float()  # noqa: E731
        batch = rollout(env, lambda s, p=policy: p(s).log().float(), worth, batch=7, generator=generator(seed))
        before = archive.news.item()
        archive.add(batch)
        least = min([worth for worth, _ in kept], default=-9.0) if len(kept) == capacity else -9.0
        ends = env.objects(batch.states[:, -1]).tolist()
        fresh = [x not in [list(y) for _, y in kept] for x in ends]
        share = sum(a and b >= least for a, b in zip(fresh, batch.log_reward.tolist(), strict=True)) / 7
        assert archive.news.item() == pytest.approx(before + (share - before) * 7 / REMEMBERED, abs=1e-6)
        new = list(zip(batch.log_reward.tolist(), map(tuple, env.objects(batch.states[:, -1]).tolist()), strict=True))
        both, kept = sorted(new + kept, key=lambda pair: -pair[0]), []
        for pair in both:
            if pair[1] not in [x for _, x in kept]:
                kept.append(pair)
        kept = kept[:capacity]
    size = archive.size
    assert archive.log_reward[:size].tolist() == [worth for worth, _ in kept]
    assert [tuple(x) for x in archive.objects[:size].tolist()] == [x for _, x in kept]
    rebuilt = env.initial(size)
    for outcome in archive.realised[:size].unbind(1):
        rebuilt = env.apply(rebuilt, outcome)
    assert torch.equal(env.objects(rebuilt), archive.objects[:size])  # each with a trajectory that ends in it


def test_rows_are_drawn_by_rank() -> None:
    archive = Archive(TINY["fixed-L3-V2"](0.0), 5, CPU)
    archive.log_reward[:3] = torch.tensor([3.0, 2.0, 1.0])
    drawn = archive.rows(torch.rand(20000, generator=generator(), dtype=torch.float64), 0.5)
    law = torch.exp(-torch.arange(3.0, dtype=torch.float64) / 1.5)
    assert chi_square(torch.bincount(drawn, minlength=3)[None], (law / law.sum())[None]) > 1e-4
    assert first_of_each(torch.tensor([1, 0, 1, 0, 2])).tolist() == [True, True, False, False, True]


# local search


@pytest.mark.parametrize("alpha", [0.0, 0.4])
def test_noise_spares_the_editor_orders_that_it_changes_anyway(alpha: float) -> None:
    run = trainer("local", "ehrlich", noise__alpha=alpha, local__count=500, local__rebuilt=0.0)
    assert run.explorer is not None
    way = run.explorer.ways["local"]
    assert isinstance(way, Local)
    objects, edited = run.task.env.initial(4000), run.task.env.initial(4000) + 1
    way.intact.fill_(0.25)
    spared = (way._spared(edited, objects, generator()) == objects).all(1).float().mean().item()
    assert spared == pytest.approx(0.0 if alpha == 0 else SPARED * 0.75, abs=0.03)
    way.intact.fill_(1.0)
    for _ in range(60):
        made = way.propose(run.general, generator(1))
    assert made is not None
    whole = (made.intended == made.realised).all(1).float().mean().item()  # what is measured is what comes out whole
    assert way.intact.item() == pytest.approx(whole, abs=0.03)
    assert (whole == 1.0) == (alpha == 0.0)


@pytest.mark.parametrize("alpha", [0.0, 0.3])
def test_orders_are_voted_on_where_noise_has_changed_what_came_out(alpha: float) -> None:
    """Outcomes of one order, each with errors of its own: the vote is the order, without noise nothing is voted on."""
    run = trainer("local", "ehrlich", noise__alpha=alpha, archive__capacity=200)
    assert run.explorer is not None
    way, env, count = run.explorer.ways["local"], run.task.env, 200
    assert isinstance(way, Local)
    assert isinstance(env, SequenceEnv)
    order = torch.arange(env.length) % env.vocab
    wrong = torch.rand(count, env.length, generator=generator()) < 0.25
    outcomes = torch.where(wrong, torch.randint(env.vocab, wrong.shape, generator=generator(1)), order)
    way.archive.objects[:] = outcomes
    way.archive.log_reward[:] = 0.0
    way.intact.fill_(0.0)
    way.worked[:] = torch.tensor([0.4, 0.15])  # a vote does better: 1 - (.15 + .1) / (.4 + .1) of the orders have one
    agreed, voted = way._agreed(outcomes, generator(2))
    changed = (agreed != outcomes).any(1)
    assert not (changed & ~voted).any()
    assert not alpha or (agreed[voted] == order).float().mean() > 0.97
    assert voted.float().mean().item() == pytest.approx(0.5 if alpha else 0.0, abs=0.1)
    assert (outcomes == order).float().mean() < 0.85  # a single outcome is not the order
    for intact, worked in (
        (1.0, [0.4, 0.0]),
        (0.0, [0.15, 0.4]),
    ):  # no errors, or a vote breaks things up
        way.intact.fill_(intact)
        way.worked[:] = torch.tensor(worked)
        assert way._agreed(outcomes, generator(3))[1].float().mean() <= 5 * RARELY * (1 - intact)


def test_votes_are_judged_by_what_comes_out_better() -> None:
    run = trainer("local", "ehrlich", noise__alpha=0.3)
    assert run.explorer is not None
    way = run.explorer.ways["local"]
    assert isinstance(way, Local)
    better, voted = torch.tensor([True, False, False, True]), torch.tensor([True, True, False, False])
    for _ in range(100):
        way._judge(better & voted, voted)
    assert way.worked.tolist() == pytest.approx([0.5, 0.0], abs=1e-3)
    way._judge(better, torch.zeros(4, dtype=torch.bool))
    assert way.worked.tolist() == pytest.approx([0.5, 0.05], abs=1e-3)  # nothing was voted on: nothing learned of votes


def test_a_search_that_finds_nothing_new_gives_way_to_rollouts() -> None:
    run = trainer("local+best", "words", noise__alpha=0.0)
    assert run.explorer is not None
    way, best, archive = run.explorer.ways["local"], run.explorer.ways["best"], run.explorer.archive
    assert isinstance(way, Local)
    run.step()
    for news, part in ((1.0, 1.0), (ENOUGH / 2, 0.5), (0.0, LEAST)):
        archive.news.fill_(news)
        with unittest.mock.patch.object(way, "_edited", wraps=way._edited) as edited:
            made = way.propose(run.general, generator())
        assert made is not None
        assert len(made.realised) == way.count
        assert edited.call_args.args[0] == pytest.approx(0.75 * way.count * part, abs=1)
        best.observe(made, run.general, torch.tensor(1.0))
        assert best.share == pytest.approx(run.config.archive.share * part)


# edits


@PROPERTY
@given(batch=st.integers(1, 5), count=st.integers(1, 8), voters=st.integers(1, 9), seed=st.integers(0, 1000))
def test_a_consensus_is_what_most_of_the_nearest_have(batch: int, count: int, voters: int, seed: int) -> None:
    known = torch.randint(3, (count, 4), generator=generator(seed))
    objects = torch.randint(3, (batch, 4), generator=generator(seed + 1))
    for mine, voted in zip(objects, consensus(objects, known, voters), strict=True):
        nearest = known[(mine == known).sum(-1).topk(min(voters, count)).indices]
        for place in range(4):
            votes = torch.bincount(nearest[:, place], minlength=3)
            assert votes[voted[place]] == votes.max()
            assert votes[mine[place]] < votes.max() or voted[place] == mine[place]


@PROPERTY
@given(stop=st.booleans(), least=st.integers(1, 3), seed=st.integers(0, 1000))
def test_edits_give_sequences_of_the_environment(stop: bool, least: int, seed: int) -> None:
    env = SequenceEnv(
        length=5, alphabet="ABC", noise=UniformSlip(alpha=0.0), stop=stop, min_length=least if stop else 1
    )
    pool = env.all_objects()[torch.randint(env.num_objects, (2, 64), generator=generator(seed))]
    edited = edit_sequences(env, pool[0], pool[1], generator(seed + 1))
    assert env.parse(env.decode(edited)).equal(edited)  # right lengths, no letter behind a blank
    assert not edited.equal(pool[0])


def test_each_kind_of_edit_happens() -> None:
    env = SequenceEnv(length=12, alphabet="ABCDEFGHIJKL", noise=UniformSlip(alpha=0.0))
    objects, others = torch.arange(12).repeat(3000, 1), torch.arange(12).flip(0).repeat(3000, 1)
    edited = edit_sequences(env, objects, others, generator())
    changed = (edited != objects).sum(1)
    assert (changed == 1).float().mean() > 0.1
    assert (changed > 4).any()
    assert ((edited == others) & (objects != others)).sum(1).max() > 4
    moved = (edited[:, 1:] == objects[:, :-1]).sum(1)
    assert moved.max() > 6  # a long stretch stands one place further


def test_edits_of_cells_stay_in_the_grid() -> None:
    env = GridEnv(ndim=3, side=5, noise=UniformSlip(alpha=0.0))
    cells = env.all_objects()
    edited = edit_cells(env, cells, cells.flip(0), generator())
    assert (edited >= 0).all()
    assert (edited < 5).all()
    near = ((edited - cells).abs().sum(1) == 1).float().mean()
    assert 0.2 < near < 0.8


# behaviour


def test_the_temperature_of_a_state_follows_entropy_and_visits() -> None:
    run = trainer("entropy-state", entropy__gamma=0.25)
    assert run.explorer is not None
    way = run.explorer.ways["entropy-state"]
    assert isinstance(way, EntropyState)
    state = run.env.initial(1)
    certain = torch.tensor([[0.0, -40.0, -40.0, -40.0, -40.0]])
    open_ = torch.zeros(1, 5).log_softmax(-1)
    way.visits.zero_()
    assert way.heat(certain, state).item() == pytest.approx(4.0, rel=1e-4)  # 1 / gamma
    high, low = 1.0, 0.1 / torch.tensor(5.0).log().item()
    ratio = high / (0.25 * high + 0.75 * low)
    assert way.heat(open_, state).item() == pytest.approx(4.0 / ratio, rel=1e-4)
    way.visits[way.bucket(state)] = 15.0
    assert way.heat(certain, state).item() == pytest.approx(4.0**0.25, rel=1e-4)  # after 15 visits the fourth root
    before = way.visits.sum()
    run.step()
    assert way.visits.sum() > before


def test_novelty_fades_where_one_has_been() -> None:
    run = trainer("novelty", "grid", novelty__lr=0.01)
    assert run.explorer is not None
    way = run.explorer.ways["novelty"]
    seen = run.env.initial(64)[:, None].expand(-1, run.env.horizon + 1, -1)
    batch = rollout(run.env, run.actor(), run.task.log_reward, batch=64, generator=generator())
    fresh = way.error(seen[:1, 0]).item()  # pyright: ignore[reportAttributeAccessIssue]
    for _ in range(60):
        way.observe(replace(batch, states=seen), run.general, torch.ones(()))
    far = run.env.embed(torch.tensor([[7, 7, 0]]))
    assert way.error(seen[:1, 0]).item() < 0.1 * fresh  # pyright: ignore[reportAttributeAccessIssue]
    assert way.error(far).item() > 3 * way.error(seen[:1, 0]).item()  # pyright: ignore[reportAttributeAccessIssue]
    drawn = way.actor(as_actor(lambda state: run.nets.log_policy(state))).log_policy(0, seen[:, 0])
    assert torch.allclose(drawn.exp().sum(-1), torch.ones(64), atol=1e-5)


def test_surprise_prefers_large_losses() -> None:
    run = trainer("surprise", surprise__candidates=16, surprise__share=1.0)
    for _ in range(3):
        run.step()
    assert run.explorer is not None
    assert run.buffer is not None
    beta = torch.tensor(1.0)
    picked = run.explorer.pick(400, run.buffer, run.general, beta, generator())
    plain = run.buffer.pick(torch.rand(400, generator=generator(), dtype=torch.float64))
    assert run.general.losses(picked, beta).mean() > run.general.losses(plain, beta).mean()


# runs


class Quiet(Way):
    """A way of one's own that does nothing."""


def test_a_way_of_ones_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "mine.py").write_text(
        "from sgfn.learning.exploration.base import Way\n"
        "class Again(Way):\n"
        "    share = 1.0\n"
        "    def pick(self, count, buffer, backend, beta, generator):\n"
        "        import torch\n"
        "        return buffer.pick(torch.zeros(count, dtype=torch.float64))\n"
        "def nothing(surroundings):\n"
        "    return 3\n"
    )
    monkeypatch.chdir(tmp_path)
    run = trainer("mine:Again")
    run.step()
    assert run.explorer is not None
    assert run.buffer is not None
    past = run.explorer.pick(4, run.buffer, run.general, torch.ones(()), generator())
    assert (past[1] == run.buffer.realised[0]).all()
    with pytest.raises(ValueError, match=r"^exploration 'mine:nothing': makes a int, not a Way"):
        trainer("mine:nothing")


@pytest.mark.parametrize(("task", "way"), [*(("words", way) for way in WAYS), *((task, ALL) for task in TASKS)])
def test_a_run_goes_on_as_it_was(task: str, way: str) -> None:
    """A run that is saved and loaded makes the same steps, whatever the ways keep; on a graph all keep it together."""
    whole, half, other = (trainer(way, task, seed=3) for _ in range(3))
    for _ in range(2):
        whole.step()
        half.step()
    half.done = 2
    other.load({name: value.clone() for name, value in half.state().items()})
    for run in (whole, other):
        run.step()
    mine, theirs = whole.state(), other.state()
    assert all(torch.equal(mine[name], theirs[name]) for name in mine if name != "self.done")


def test_calls_are_counted() -> None:
    calls = 0
    task = make_task("ehrlich", TrainConfig().with_(**SMALL, exploration="local+best"))
    scores = task.landscape.scores

    def counting(objects: Tensor) -> Tensor:
        nonlocal calls
        calls += objects.shape[0]
        return scores(objects)

    task.landscape.scores = counting
    run = make_learner(task, CPU)
    for _ in range(3):
        run.step()
        run.done += 1
    assert run.trajectories == calls == 4 * 16 + 3 * 2 * 40 + 1  # the first log Z takes a batch, the start is one


def test_a_search_from_one_feasible_start_climbs() -> None:
    changes = {"local__count": 400, "local__rounds": 4, "archive__capacity": 200, "ehrlich__length": 8}
    run = trainer("local+best", "ehrlich", **changes, ehrlich__vocab=6, noise__alpha=0.1)
    assert run.explorer is not None
    first = run.explorer.archive.log_reward[0].exp().item()
    for _ in range(8):
        run.step()
    assert run.explorer.archive.log_reward[0].exp().item() > max(2 * first, 0.5)
    found = run.explorer.archive
    again = run.task.log_reward(found.objects[: found.size])
    assert torch.allclose(again, found.log_reward[: found.size])


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"exploration": "locl"}, "exploration 'locl' is unknown: choose from constant"),
        ({"exploration": "local+bst", "replay__updates": 1}, "exploration 'bst' is unknown.*did you mean 'best'"),
        ({"exploration": "best"}, "exploration 'best' is learned from replayed batches: set --replay.updates to 1"),
        ({"exploration": "novelty+novelty"}, "exploration 'novelty.novelty' names novelty twice"),
        ({"novelty__weight": 2.0}, "--novelty.weight does nothing here: it is read with --exploration novelty"),
        ({"exploration": "novelty", "local__count": 3}, "--local.count does nothing here: .* --exploration local"),
    ],
)
def test_what_is_wrong_is_said(changes: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        check(make_task("grid", TrainConfig().with_(**changes)))


def test_joined_ways_read_what_each_reads() -> None:
    check(
        make_task("grid", TrainConfig().with_(exploration="novelty+entropy", novelty__weight=2.0, entropy__gamma=0.2))
    )
