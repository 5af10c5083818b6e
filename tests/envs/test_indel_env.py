"""Synthesis in cycles as an environment: its graph, its law and its balance against enumeration, and training."""

from itertools import product

import pytest
import torch
from exact_tables import chi_square, log_of, look_up, no_reward, random_table
from indel_by_hand import cycle_by_hand
from torch import Tensor
from torch.testing import assert_close

from sgfn.config import TrainConfig
from sgfn.envs import IndelEnv, SequenceEnv, laws
from sgfn.evaluation import exact
from sgfn.evaluation.measure import reference
from sgfn.landscapes.read_out import ReadOut
from sgfn.landscapes.table import TableLandscape
from sgfn.landscapes.tasks import Task, make_task
from sgfn.learning.methods import build
from sgfn.learning.rollout import rollout
from sgfn.noise import Indel

KINDS = {
    "deletions": {"deletion": 0.2},
    "insertions": {"insertion": 0.3},
    "all": {"deletion": 0.2, "insertion": 0.1, "substitution": 0.1},
}
every = pytest.mark.parametrize(("kind", "spare"), [(kind, spare) for kind in KINDS for spare in (0, 1)])


def make(kind: str, spare: int, **more: object) -> IndelEnv:
    noise = Indel.uniform(2, **KINDS[kind], spare=spare)  # pyright: ignore[reportArgumentType]
    return IndelEnv(length=3, alphabet="AB", noise=noise, **more)  # pyright: ignore[reportArgumentType]


def edges(env: IndelEnv) -> dict[tuple[int, ...], set[tuple[int, tuple[int, ...]]]]:
    """Outcomes and states before them, by the state reached."""
    found: dict[tuple[int, ...], set[tuple[int, tuple[int, ...]]]] = {}
    for states in env.levels():
        row, k = env.possible(states).nonzero().unbind(1)
        for before, outcome, after in zip(
            states[row].tolist(), k.tolist(), env.apply(states[row], k).tolist(), strict=True
        ):
            found.setdefault(tuple(after), set()).add((outcome, tuple(before)))
    return found


@every
def test_states_and_parents_are_those_of_the_graph(kind: str, spare: int) -> None:
    env, listed = make(kind, spare), torch.cat(list(make(kind, spare).levels()))
    assert torch.equal(env.index(listed), torch.arange(env.num_states))
    assert torch.equal(env.object_index(env.all_objects()), torch.arange(env.num_objects))
    found = edges(env)
    inner = {state for state in found if state[-1] < env.horizon} | {tuple(env.initial(1)[0].tolist())}
    assert inner == set(map(tuple, listed.tolist()))
    assert len(found) - len(inner) + 1 == env.num_objects  # each object has one final state
    for state, before in found.items():
        row = torch.tensor([state])
        assert env.parents(row)[0].nonzero()[:, 0].tolist() == sorted(k for k, _ in before)
        for outcome, parent in before:
            assert env.parent(row, torch.tensor([outcome]))[0].tolist() == list(parent)
    assert max(len(before) for before in found.values()) == (3 if kind == "all" else 2)


@every
def test_the_kernel_keeps_to_what_is_possible(kind: str, spare: int) -> None:
    env = make(kind, spare)
    states = torch.cat(list(env.levels()))
    kernel = env.kernel(states, torch.float64)
    assert_close(kernel.sum(-1), torch.ones_like(kernel[..., 0]))
    meant = ((kernel > 0) & env.legal(states)[..., None]).any(1)
    assert not (meant & ~env.possible(states)).any()
    assert torch.equal(meant, env.possible(states))


def law_by_hand(env: IndelEnv, policy: Tensor) -> Tensor:
    """Probability of each object under a table of intentions, along every path of what cycles write."""
    found = torch.zeros(env.num_objects, dtype=torch.float64)
    waiting: list[tuple[tuple[int, ...], int, float]] = [((), 0, 1.0)]
    while waiting:
        text, cycle, chance = waiting.pop()
        if cycle == env.horizon:
            row = torch.tensor([[*text, *[2] * (3 - len(text))]])
            found[env.object_index(row)] += chance
        elif len(text) == 3:
            waiting.append((text, env.horizon, chance))
        else:
            number = int(env.index(torch.tensor([[*text, *[2] * (3 - len(text)), cycle]])))
            for letter in range(2):
                for part, p in cycle_by_hand(env.noise, cycle, letter).items():
                    if p:
                        waiting.append(((*text, *part)[:3], cycle + 1, chance * p * float(policy[number, letter])))
    return found


def pooled(values: Tensor) -> Tensor:
    """Values of whole objects, and together those of all that are too short, where there are some."""
    short = values[:-8].sum(0, keepdim=True)
    return torch.cat([short, values[-8:]]) if float(short.sum()) else values[-8:]


@every
def test_the_law_equals_enumeration_and_rollouts_follow_it(kind: str, spare: int) -> None:
    env = make(kind, spare)
    table = random_table(env, 0)
    found = laws.law(env, look_up(env, table))
    assert_close(found, law_by_hand(env, table), atol=1e-12, rtol=0)
    batch = rollout(env, log_of(look_up(env, table)), no_reward, batch=8000, generator=torch.Generator().manual_seed(0))
    counts = env.object_index(env.objects(batch.states[:, -1])).bincount(minlength=env.num_objects)
    assert chi_square(pooled(counts), pooled(found)) > 1e-3
    wrong = laws.law(env, look_up(env, random_table(env, 1)))
    assert chi_square(pooled(counts), pooled(wrong)) < 1e-6


def test_flows_balance_on_the_graph() -> None:
    """With the backward policy that a policy induces, every trajectory has the same balance: that of its object."""
    env = make("all", 1)
    policy = look_up(env, random_table(env, 3))
    passed, law = laws.reach(env, policy)
    steps = {}
    for states in env.levels():
        moved = laws.outcome_law(env, states, policy(states).double())
        for state, row in zip(states.tolist(), moved, strict=True):
            steps[tuple(state)] = row
    mass = {tuple(state): float(passed[n]) for n, state in enumerate(torch.cat(list(env.levels())).tolist())}
    for after, before in edges(env).items():
        inflow = sum(mass[state] * float(steps[state][k]) for k, state in before)
        final = after[-1] == env.horizon
        wanted = float(law[env.object_index(torch.tensor([after[:3]]))]) if final else mass[after]
        assert inflow == pytest.approx(wanted, abs=1e-12)


def tiny_task(noise: Indel, **settings: object) -> Task:
    env = IndelEnv(length=3, alphabet="AB", noise=noise)
    scores = TableLandscape(torch.tensor([1.0, 0.2, 0.5, 0.3, 0.9, 0.1, 0.4, 0.8]), vocab=2, mode_level=0.9)
    chosen = {"net__hidden": 32, "dynamics__mode": "known", "optim__lr": 5e-3, "log__exact_every": 0} | settings
    config = TrainConfig(steps=10, batch=64, explore=0.05).with_(**chosen)
    return Task(name="tiny", summary="", env=env, landscape=ReadOut(scores, env), beta=1.0, config=config)


@pytest.mark.slow
def test_a_flow_network_learns_to_write_again_what_was_skipped() -> None:
    task = tiny_task(Indel.uniform(2, deletion=0.1, spare=2), reward__minimum=0.01)
    learner = build(task, torch.device("cpu"), None)
    known = reference(task)
    before = exact.distances(learner.law(), known)
    for _ in range(250):
        learner.step()
    after = exact.distances(learner.law(), known)
    assert after["tv_floor"] <= after["tv"] < 0.35 * before["tv"]
    assert known.floor_kind.startswith("least total variation")
    assert known.blind is None  # nobody intends that nothing be written


@pytest.mark.parametrize("objective", ["db", "tb", "subtb", "kl", "vargrad"])
@pytest.mark.parametrize("dynamics", ["known", "batch"])
def test_every_balance_makes_steps(objective: str, dynamics: str) -> None:
    task = tiny_task(
        Indel.uniform(2, deletion=0.1, insertion=0.05, spare=1), dynamics__mode=dynamics, objective=objective
    )
    learner = build(task, torch.device("cpu"), None)
    for _ in range(3):
        learner.step()
    law = learner.law()
    assert float(law.sum()) == pytest.approx(1.0, abs=1e-5)


def test_what_is_too_short_scores_nothing_unless_a_flank_follows() -> None:
    scores = TableLandscape(torch.arange(1.0, 9.0), vocab=2, mode_level=7.0)
    rows = torch.tensor([[1, 1, 1], [1, 1, 2], [2, 2, 2]])
    for flank, wanted in (((), [8.0, 0.0, 0.0]), ((0, 1), [8.0, 7.0, 0.0]), ((1, 0, 1), [8.0, 8.0, 6.0])):
        env = IndelEnv(length=3, alphabet="AB", noise=Indel.uniform(2, deletion=0.1, flank=flank))
        found = ReadOut(scores, env)
        assert found.scores(rows).tolist() == wanted
        assert env.admissible(rows).tolist() == [score > 0 for score in wanted]
        assert (found.log_reward(rows, TrainConfig().reward) < -6).tolist() == [score == 0 for score in wanted]


def test_lengths_that_change_need_their_own_environment() -> None:
    noise = Indel.uniform(2, deletion=0.1)
    with pytest.raises(ValueError, match="lengths change"):
        SequenceEnv(length=3, alphabet="AB", noise=noise)
    config = TrainConfig().with_(noise__kind="indel", noise__deletion=0.1)
    assert isinstance(make_task("tfbind8", config).env, IndelEnv)
    for task, message in (("words", "writes sequences of one length"), ("grid", "needs letters")):
        with pytest.raises(ValueError, match=message):
            make_task(task, config)
    mlp = config.with_(net__encoder="transformer", net__heads=4)
    with pytest.raises(ValueError, match="reads sequences: use mlp"):
        build(make_task("tfbind8", mlp), torch.device("cpu"), None)


def test_known_objects_are_led_to_by_all_placements_alike() -> None:
    env, goal = make("deletions", 2), torch.tensor([[0, 1, 1]])
    chances: dict[tuple[int, ...], float] = {}
    waiting: list[tuple[Tensor, tuple[int, ...], float]] = [(env.initial(1), (), 1.0)]
    while waiting:
        state, path, chance = waiting.pop()
        if env.done(state):
            assert env.objects(state).tolist() == goal.tolist()
            chances[path] = chance
            continue
        for k, p in enumerate(env.toward(state, goal)[0].tolist()):
            if p:
                waiting.append((env.apply(state, torch.tensor([k])), (*path, k), chance * p))
    assert len(chances) == 10  # three letters in five cycles
    assert {round(chance, 6) for chance in chances.values()} == {0.1}


def test_products_of_names() -> None:
    env = make("all", 0)
    assert env.action_names == ["A", "B", "wait"]
    assert env.outcome_names == ["A", "B", "nothing", *("".join(pair) for pair in product("AB", repeat=2))]
    assert (len(env.action_names), len(env.outcome_names)) == (env.actions, env.outcomes)
