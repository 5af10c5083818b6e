"""Tables against the environment they are made of: every state, every question, the same answer."""

import pytest
import torch
from exact_tables import (
    DRIFT,
    ENVS,
    KINDS,
    MIXED,
    final_states,
    inner_states,
    log_of,
    look_up,
    no_reward,
    random_table,
)
from jaxtyping import TypeCheckError
from torch import Tensor
from torch.testing import assert_close

from sgfn.envs import GridEnv, SequenceEnv, TabulatedEnv, laws, tabulate, tabulated
from sgfn.envs.base import Env
from sgfn.learning.rollout import rollout
from sgfn.noise import ByPosition, HiddenRate, Noise, UniformSlip
from sgfn.noise.operators import Identity

ALL = ENVS | DRIFT | KINDS | MIXED
every_env = pytest.mark.parametrize("name", ALL)


@every_env
@pytest.mark.parametrize("alpha", [0.0, 0.25])
def test_tables_answer_as_their_environment(name: str, alpha: float) -> None:
    env, table = ALL[name](alpha), TabulatedEnv(ALL[name](alpha))
    raw = torch.cat([inner_states(env), final_states(env)])
    states = table.embed(raw)
    assert sorted(states[:, 0].tolist()) == list(range(env.num_states + env.num_objects))
    assert torch.equal(table.raw[states[:, 0]], raw)
    masks = ("done", "legal", "possible", "slippable", "parents", "support")
    for question in (*masks, "position", "encode", "objects", "kernel"):
        answer, wanted = getattr(table, question)(states), getattr(env, question)(raw)
        assert torch.equal(answer, wanted), question
        assert not torch.equal(getattr(table, question)(states.flip(0)), wanted) or bool((wanted == wanted[:1]).all())
    assert torch.equal(table.kernel(states, torch.float64), env.kernel(raw, torch.float64))
    sizes = ("actions", "outcomes", "horizon", "features", "num_states", "num_objects", "object_width")
    for name in (*sizes, "tree", "distance"):
        assert getattr(table, name) == getattr(env, name)


@every_env
def test_moves_and_their_inverse(name: str) -> None:
    env, table = ALL[name](0.25), TabulatedEnv(ALL[name](0.25))
    raw = torch.cat([inner_states(env), final_states(env)])
    states = table.embed(raw)
    for k in range(env.outcomes):
        outcome, possible = torch.full((raw.shape[0],), k), env.possible(raw)[:, k]
        reached = table.apply(states, outcome)
        assert torch.equal(reached[possible], table.embed(env.apply(raw, outcome))[possible])
        assert torch.equal(reached[~possible], states[~possible])
        child = env.parents(raw)[:, k] & (states[:, 0] != 0)
        back = table.parent(states, outcome)[child]
        assert torch.equal(back, table.embed(env.parent(raw, outcome))[child])
        assert not torch.equal(back, states[child]) or not child.any()


@every_env
def test_operators_are_the_environments(name: str) -> None:
    env, table = ALL[name](0.25), TabulatedEnv(ALL[name](0.25))
    raw = torch.cat([inner_states(env), final_states(env)])
    states, rates = table.embed(raw), torch.linspace(0.0, 1.0, raw.shape[0])
    for a in range(env.actions):
        action = torch.full((raw.shape[0],), a)
        assert_close(table.operator(states).row(action), env.operator(raw).row(action))
        assert torch.equal(table.operator(states, rate=rates).row(action), env.operator(raw, rate=rates).row(action))
    if name != "grid-1D-4":  # one move can slip to itself only
        assert not torch.allclose(table.operator(states).matrix(), ALL[name](0.7).operator(raw).matrix())


def test_numbers_and_raw_states_are_told_apart() -> None:
    """Raw states come in through `embed` alone; where a raw state is one integer too, there are no tables."""
    env = ENVS["fixed-L4-V2"](0.25)
    table, raw = TabulatedEnv(env), inner_states(ENVS["fixed-L4-V2"](0.25))
    assert torch.equal(table.embed(table.embed(raw)), table.embed(raw))
    with pytest.raises(ValueError, match=r"^states here are numbers, got a row of 4: `embed` raw states first$"):
        table.row(raw)
    for question in (table.done, table.legal, table.kernel, table.operator, table.encode, table.objects):
        with pytest.raises((ValueError, TypeCheckError)):  # the check of shapes comes first where it is switched on
            question(raw)
        question(table.embed(raw))
    short = SequenceEnv(length=1, alphabet="AB", noise=env.noise)
    assert tabulate(short, "cpu") is short


@every_env
def test_numbering_and_text_are_the_environments(name: str) -> None:
    env, table = ALL[name](0.25), TabulatedEnv(ALL[name](0.25))
    assert torch.equal(table.initial(3), table.embed(env.initial(3)))
    for level, raw in zip(table.levels(), env.levels(), strict=True):
        assert torch.equal(level, table.embed(raw))
        assert torch.equal(table.index(level), env.index(raw))
        assert not torch.equal(table.index(level), env.index(raw) + 1)
    objects = env.all_objects()
    assert torch.equal(table.all_objects(), objects)
    assert torch.equal(table.object_index(objects), torch.arange(env.num_objects))
    assert torch.equal(table.parse(table.decode(objects)), objects)
    raw = inner_states(env)
    for goal in objects[:: max(1, len(objects) // 5)]:
        goals = goal.expand(raw.shape[0], -1)
        assert torch.equal(table.toward(table.embed(raw), goals), env.toward(raw, goals))


@every_env
def test_rollouts_and_laws_are_the_same(name: str) -> None:
    env, table = ALL[name](0.4), TabulatedEnv(ALL[name](0.4))
    policies = {e: look_up(e, random_table(env, 0)) for e in (env, table)}
    one, two = (
        rollout(e, log_of(policies[e]), no_reward, batch=50, generator=torch.Generator().manual_seed(0))
        for e in (env, table)
    )
    assert torch.equal(table.embed(one.states), two.states)
    assert torch.equal(one.realised, two.realised)
    assert torch.equal(one.valid, two.valid)
    law = laws.law(env, policies[env])
    assert torch.equal(laws.law(table, policies[table]), law)
    assert not torch.equal(laws.law(TabulatedEnv(ALL[name](0.0)), look_up(table, random_table(env, 1))), law)


def test_large_spaces_stay_as_they_are(monkeypatch: pytest.MonkeyPatch) -> None:
    env = ENVS["fixed-L4-V2"](0.1)
    assert isinstance(tabulate(env, "cpu"), TabulatedEnv)
    monkeypatch.setattr(tabulated, "MAX_ENTRIES", 100)
    assert tabulate(env, "cpu") is env


@every_env
@pytest.mark.parametrize("alpha", [0.0, 0.25])
def test_the_law_of_a_policy_is_the_exact_one(name: str, alpha: float) -> None:
    env = ALL[name](alpha)
    table = TabulatedEnv(env)
    policy = random_table(env, seed=3)
    wanted = laws.law(env, look_up(env, policy))
    assert_close(table.law(policy), wanted)
    assert not torch.allclose(table.law(random_table(env, seed=4)), wanted)


def test_trainers_of_one_task_share_their_tables() -> None:
    env = ENVS[next(iter(ENVS))](0.25)
    first = tabulate(env, "cpu")
    assert tabulate(env, "cpu") is first
    assert tabulate(ENVS[next(iter(ENVS))](0.25), "cpu") is not first


class Uncounted(GridEnv):
    """A grid that does not count its steps."""

    position = Env.position


class Backwards(Noise):
    """A user's noise that has a kernel only, and reads no position: the first two actions may change places."""

    summary = "backwards"

    def check(self, slipping: int, positions: int) -> None:
        return

    def kernel(self, slippable: Tensor, dtype: torch.dtype, position: Tensor | None = None) -> Tensor:
        eye = torch.eye(slippable.shape[-1], dtype=dtype, device=slippable.device)
        swapped = torch.cat([eye[:, :2].flip(-1), eye[:, 2:]], -1)
        return torch.where(slippable[..., :2].all(-1)[..., None, None], 0.6 * eye + 0.4 * swapped, eye)


def test_noise_needs_no_position_where_the_environment_counts_none() -> None:
    """The law of tables is that of the environment; positions are asked for by nobody."""
    env = Uncounted(ndim=2, side=3, noise=Backwards())
    policy = random_table(env, 0)
    table = TabulatedEnv(env)
    assert_close(table.law(policy), laws.law(env, look_up(env, policy)))
    silent = laws.law(env, look_up(env, policy), noisy=False)
    assert not torch.allclose(table.law(policy), silent)  # and the noise shows


@pytest.mark.parametrize(
    ("noise", "free"),
    [
        (UniformSlip(alpha=0.0), True),
        (HiddenRate(mean=0.0, concentration=2.0), True),
        (UniformSlip(alpha=0.1), False),
        (ByPosition(alphas=(0.0, 0.1, 0.2)), False),
        (Backwards(), False),
    ],
    ids=lambda value: getattr(value, "summary", str(value)),
)
def test_tables_know_whether_there_is_noise(noise: Noise, free: bool) -> None:
    table = TabulatedEnv(SequenceEnv(length=3, alphabet="AB", noise=noise))
    assert table.noise_free == free
    assert isinstance(table.operator(table.initial(4)), Identity) == free
