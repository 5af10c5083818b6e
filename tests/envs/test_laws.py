"""One law suite that every environment must pass: noise, moves, numbering, text."""

import re
from inspect import isabstract
from itertools import product

import pytest
import torch
from exact_tables import (
    DRIFT,
    ENVS,
    KINDS,
    MIXED,
    chi_square,
    errors,
    final_states,
    inner_states,
    kernel_by_hand,
    legal_by_hand,
    log_of,
    look_up,
    no_reward,
    random_table,
    reachable,
    rows_of,
)
from torch.testing import assert_close

from sgfn.config.checks import shorten
from sgfn.envs import ForecastEnv, GridEnv, SequenceEnv, TabulatedEnv, laws
from sgfn.envs.base import Enumerable
from sgfn.learning.rollout import clocks, draw, rollout
from sgfn.noise import ByPosition, ConfusionMatrix, HiddenRate, Mixtures, Noise, Slip, UniformSlip
from sgfn.noise.base import OperatorNoise

every_env = pytest.mark.parametrize("name", ENVS)
every_noise = pytest.mark.parametrize("name", [*ENVS, *KINDS])
every_alpha = pytest.mark.parametrize("alpha", [0.0, 0.25, 0.7])


def make(name: str, alpha: float = 0.25) -> Enumerable:
    return (ENVS | DRIFT | KINDS | MIXED)[name](alpha)


def slips(env: Enumerable) -> bool:
    """Whether noise can change anything: a single slippable action can only slip to itself."""
    return int(env.slippable(env.initial(1)).sum()) > 1


def children(env: Enumerable) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Every legal move of every inner state: the state, the outcome, the state reached."""
    states = inner_states(env)
    row, k = env.legal(states).nonzero().unbind(1)
    return states[row], k, env.apply(states[row], k)


# Noise


@every_alpha
@every_env
def test_kernel_equals_the_formula_in_every_state(name: str, alpha: float) -> None:
    env, states = make(name, alpha), inner_states(make(name, alpha))
    kernel = env.kernel(states, torch.float64)
    wanted = torch.stack([kernel_by_hand(env, state, alpha) for state in rows_of(states)])
    assert_close(kernel, wanted, atol=1e-15, rtol=0)
    assert_close(kernel.sum(-1), torch.ones_like(kernel[..., 0]), atol=1e-15, rtol=0)
    assert kernel.min() >= 0
    for a in range(env.actions):
        row = env.operator(states).row(torch.full((states.shape[0],), a))
        assert_close(row.double(), wanted[:, a], atol=1e-7, rtol=0)
    other = torch.stack([kernel_by_hand(env, state, alpha + 0.1) for state in rows_of(states)])
    assert ((kernel - other).abs().max() > 0.01) == slips(env)


def noisy_by_hand(name: str, state: tuple[int, ...], alpha: float) -> torch.Tensor:
    """The kernel of a state of KINDS that is not done, from the text of the rules."""
    env = make(name, alpha)
    grid, tokens = isinstance(env, GridEnv), 2 if "V2" in name or "grid" in name else 3
    steps = sum(state) if grid else sum(token < tokens for token in state)
    stops = "stop-" in name and (grid or steps >= env.min_length)
    size = tokens + stops
    strength = alpha / 2**steps if name.startswith("position") else alpha
    inner = torch.full((size, size), strength / size, dtype=torch.float64)
    inner += (1 - strength) * torch.eye(size, dtype=torch.float64)
    if "confusion" in name:
        inner = errors(size, alpha) if "position" not in name or steps == 0 else errors(size, alpha / 2, turn=1)
    if name == "confusion-stop-L3-V2" and not stops:  # the share of stop stays with the intention
        inner = errors(3, alpha)[:2, :2] + torch.diag(errors(3, alpha)[:2, 2])
    quiet = grid and any(c == env.side - 1 for c in state[:-1])
    wanted = torch.eye(env.actions, dtype=torch.float64)
    wanted[:size, :size] = wanted[:size, :size] if quiet else inner
    return wanted


@every_alpha
@pytest.mark.parametrize("name", KINDS)
def test_every_kind_of_noise_is_what_its_rules_say(name: str, alpha: float) -> None:
    env, states = make(name, alpha), inner_states(make(name, alpha))
    wanted = torch.stack([noisy_by_hand(name, state, alpha) for state in rows_of(states)])
    kernel = env.kernel(states, torch.float64)
    assert_close(kernel, wanted, atol=1e-15, rtol=0)
    for a in range(env.actions):
        row = env.operator(states).row(torch.full((states.shape[0],), a))
        assert_close(row.double(), wanted[:, a], atol=1e-7, rtol=0)
    assert (kernel - make(name, alpha + 0.1).kernel(states, torch.float64)).abs().max() > 0.01
    assert torch.equal(kernel[None, :, None], env.kernel(states[None, :, None], torch.float64))


@pytest.mark.parametrize("name", [name for name in KINDS if "hidden" in name])
def test_a_given_rate_is_a_uniform_slip(name: str) -> None:
    env, states = make(name, 0.25), inner_states(make(name, 0.25))
    rates = torch.linspace(0.0, 0.99, states.shape[0])
    kernel = env.kernel(states, torch.float32, rates)
    for i, rate in enumerate(rates.tolist()):
        assert_close(kernel[i].double(), noisy_by_hand(name, rows_of(states)[i], rate), atol=1e-6, rtol=0)
    for a in range(env.actions):
        action = torch.full((states.shape[0],), a)
        assert_close(env.operator(states, rate=rates).row(action), kernel[:, a], atol=1e-6, rtol=0)
    assert (env.kernel(states) - kernel).abs().max() > 0.05


@pytest.mark.parametrize("name", [*KINDS, *MIXED])
def test_rollouts_follow_the_exact_law_under_every_noise(name: str) -> None:
    env = make(name, 0.4)
    sharp = random_table(env, 0) ** 3  # a flat policy hides the noise
    policy = look_up(env, sharp / sharp.sum(-1, keepdim=True))
    batch = rollout(env, log_of(policy), no_reward, batch=20000, generator=torch.Generator().manual_seed(2))
    counts = env.object_index(env.objects(batch.states[:, -1])).bincount(minlength=env.num_objects)
    assert chi_square(counts, laws.law(env, policy)) > 1e-3
    assert chi_square(counts, laws.law(make(name, 0.2), policy)) < 1e-6
    if "hidden" in name and "grid" not in name:  # the rate belongs to the episode: drawn anew at each step it is plain
        slip, stop = UniformSlip(alpha=0.4, stop=env.noise.stop), env.noise.stop
        plain = SequenceEnv(length=3, alphabet="AB", noise=slip, stop=stop)
        assert chi_square(counts, laws.law(plain, policy)) < 1e-3


def test_the_suite_knows_every_noise() -> None:
    found = {type(build(0.1).noise) for build in [*KINDS.values(), *ENVS.values(), *MIXED.values()]}
    assert found == {UniformSlip, ConfusionMatrix, ByPosition, HiddenRate, Mixtures}
    known = [*OperatorNoise.__subclasses__(), *Slip.__subclasses__()]
    assert found == {cls for cls in known if cls.__module__ == "sgfn.noise.kinds" and not isabstract(cls)}


@pytest.mark.parametrize(
    ("noise", "message"),
    [
        (UniformSlip(alpha=0.1, stop=True), r"^noise\.stop is for sequences of variable length"),
        (UniformSlip(alpha=1.0), r"^the slip rate must lie in \[0, 1\), got 1\.0$"),
        (HiddenRate(mean=0.1, concentration=0.0), r"^the concentration of the slip rate must lie in \[0\.1, "),
        (ByPosition(alphas=(0.1, 0.2)), r"^noise by position has 2 rates, the task has 3 positions$"),
        (ByPosition(alphas=(0.1, 0.2, 1.0)), r"^noise by position: rate 3 must lie in \[0, 1\), got 1\.0$"),
        (ConfusionMatrix(matrix=errors(3, 0.1)), r"is for 3 actions, the task has 2 that can slip$"),
        (ConfusionMatrix(matrix=errors(2, 0.1).repeat(2, 1, 1)), r"^there are 2 confusion matrices, the task has 3 "),
        (ConfusionMatrix(matrix=errors(2, 0.1) * 0.9), r"must be probabilities that sum to one$"),
        (ConfusionMatrix(matrix=errors(2, -0.1)), r"must be probabilities that sum to one$"),
    ],
)
def test_noise_that_does_not_fit_is_refused(noise: Noise, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        SequenceEnv(length=3, alphabet="AB", noise=noise)
    assert SequenceEnv(length=3, alphabet="AB", noise=UniformSlip(alpha=0.1)).noise.alpha == 0.1


def test_kernel_is_the_matrix_written_by_hand() -> None:
    tree = make("stop-L4-V2-min2").kernel(torch.tensor([0, 2, 2, 2]), torch.float64)
    assert_close(tree, torch.tensor([[0.875, 0.125, 0], [0.125, 0.875, 0], [0, 0, 1]], dtype=torch.float64))
    env, quiet = make("grid-2D-4", 0.5), torch.eye(3, dtype=torch.float64)
    inside, border = env.kernel(torch.tensor([[2, 1, 0], [3, 1, 0]]), torch.float64)
    assert_close(inside, torch.tensor([[0.75, 0.25, 0], [0.25, 0.75, 0], [0, 0, 1]], dtype=torch.float64))
    assert torch.equal(border, quiet)
    assert not torch.equal(inside, quiet)


@every_alpha
@every_noise
def test_kernel_is_silent_where_done_and_keeps_to_legal_outcomes(name: str, alpha: float) -> None:
    env = make(name, alpha)
    done = env.kernel(final_states(env))
    assert torch.equal(done, torch.eye(env.actions).expand(done.shape))
    states = inner_states(env)
    legal = env.legal(states)
    leak = (env.kernel(states) > 0) & legal[..., None] & ~legal[..., None, :]  # legal intention, illegal outcome
    assert not leak.any()
    assert ((env.kernel(states) > 0) & ~torch.eye(env.actions, dtype=torch.bool)).any() == (slips(env) and alpha > 0)


@every_alpha
@every_noise
def test_simulated_steps_follow_the_kernel(name: str, alpha: float) -> None:
    env, n = make(name, alpha), 2000
    states = torch.stack([level[0] for level in env.levels()])
    row, action = (env.legal(states) & env.slippable(states)).nonzero().unbind(1)
    clock = clocks((row.shape[0] * n, env.actions), torch.Generator().manual_seed(1))
    laws = env.operator(states[row]).row(action)
    outcome = draw(laws.repeat_interleave(n, 0), clock).reshape(-1, n)
    counts = torch.stack([(outcome == k).sum(-1) for k in range(env.actions)], -1)
    if not slips(env) or alpha == 0:
        assert torch.equal(counts.argmax(-1), action)
        assert (counts.amax(-1) == n).all()
    else:
        assert chi_square(counts, env.kernel(states, torch.float64)[row, action]) > 1e-4
    if slips(env):
        assert chi_square(counts, make(name, alpha + 0.1).kernel(states, torch.float64)[row, action]) < 1e-4


# Moves


@every_env
def test_masks_admit_exactly_the_legal_moves(name: str) -> None:
    env, states = make(name), inner_states(make(name))
    wanted = [legal_by_hand(env, state) for state in rows_of(states)]
    assert env.legal(states).tolist() == wanted
    assert env.legal(states[:1]).tolist() != [[not entry for entry in wanted[0]]]
    assert env.legal(final_states(env)).all()


@every_env
def test_enumeration_is_the_reachable_set(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    env = make(name)
    steps, finals = reachable(env)
    listed = [set(rows_of(level)) for level in env.levels()]
    assert listed == steps
    assert set(rows_of(final_states(env))) == finals
    assert (sum(map(len, listed)), len(finals)) == (env.num_states, env.num_objects)
    assert sum(len(level) for level in env.levels()) == env.num_states  # none twice
    legal = env.legal
    monkeypatch.setattr(env, "legal", lambda states: legal(states) & (torch.arange(env.actions) > 0))
    assert listed != reachable(env)[0]  # a mask that forbids one move too many is noticed


@pytest.mark.parametrize(
    ("name", "states", "objects"),
    [
        ("fixed-L4-V2", 15, 16),
        ("fixed-L3-V3", 13, 27),
        ("fixed-L2-V4", 5, 16),
        ("stop-L3-V3", 13, 39),
        ("stop-L4-V2-min2", 15, 28),
        ("grid-1D-4", 4, 4),
        ("grid-2D-4", 16, 16),
        ("grid-3D-3", 27, 27),
        ("forecast-H3-K2", 7, 8),
        ("forecast-H2-K4", 5, 16),
    ],
)
def test_sizes_counted_by_hand(name: str, states: int, objects: int) -> None:
    env = make(name)
    assert (env.num_states, env.num_objects) == (states, objects)


@every_env
def test_apply_moves_inner_states_and_fixes_done_ones(name: str) -> None:
    env = make(name)
    state, outcome, reached = children(env)
    assert (reached != state).any(-1).all()
    assert torch.equal(env.apply(state, outcome), reached)  # deterministic, and the argument is left alone
    assert len({(*s, *r) for s, r in zip(rows_of(state), rows_of(reached), strict=True)}) == state.shape[0]
    finals = final_states(env)
    assert env.done(finals).all()
    assert not env.done(inner_states(env)).any()
    for k in range(env.actions):
        assert torch.equal(env.apply(finals, torch.full((finals.shape[0],), k)), finals)


@every_env
def test_batch_dimensions_do_not_matter(name: str) -> None:
    env = make(name)
    state, outcome, _ = children(env)
    lone = torch.stack([env.apply(s, k) for s, k in zip(state, outcome, strict=True)])
    assert torch.equal(env.apply(state, outcome), lone)
    assert torch.equal(env.apply(state[None, :, None], outcome[None, :, None])[0, :, 0], lone)
    assert not torch.equal(env.apply(state.flip(0), outcome), lone)


@every_env
def test_horizon_is_reached_and_never_exceeded(name: str) -> None:
    env = make(name, 0.7)
    steps, _ = reachable(env)
    assert len(steps) == env.horizon  # inner states exist after horizon - 1 steps, none after horizon
    batch = rollout(
        env,
        log_of(laws.uniform_policy(env)),
        no_reward,
        batch=300,
        generator=torch.Generator().manual_seed(0),
    )
    assert env.done(batch.states[:, -1]).all()
    assert batch.valid[:, -1].any()  # the last step is needed
    assert not env.done(batch.states[:, -2]).all()


@every_noise
def test_same_seed_same_rollout(name: str) -> None:
    env = make(name)

    def run(seed: int) -> torch.Tensor:
        generator = torch.Generator().manual_seed(seed)
        policy = log_of(laws.uniform_policy(env))
        return rollout(env, policy, no_reward, batch=64, generator=generator).states

    assert torch.equal(run(3), run(3))
    assert not torch.equal(run(3), run(4))


@every_env
def test_parents_invert_apply(name: str) -> None:
    env = make(name)
    ways = {(r, k): s for s, k, r in zip(*map(rows_of_any, children(env)), strict=True)}
    reached = torch.tensor(sorted({r for r, _ in ways}))
    mask = env.parents(reached)
    row, k = mask.nonzero().unbind(1)
    back = env.parent(reached[row], k)
    assert dict(zip(zip(rows_of(reached[row]), k.tolist(), strict=True), rows_of(back), strict=True)) == ways
    assert torch.equal(env.apply(back, k), reached[row])
    assert env.parents(env.initial(1)).all()
    assert (mask.sum(-1) == 1).all() == (env.tree or name == "grid-1D-4")
    if not env.tree and name != "grid-1D-4":
        assert not torch.equal(env.parent(reached[row], k.flip(0)), back)


def rows_of_any(values: torch.Tensor) -> list:
    return values.tolist() if values.dim() == 1 else rows_of(values)


@every_alpha
@pytest.mark.parametrize("name", [*ENVS, *DRIFT, *KINDS])
def test_support_equals_brute_force(name: str, alpha: float) -> None:
    env = make(name, alpha)
    wanted: dict[tuple[int, ...], set[tuple[int, int]]] = {}
    for s, k, r in zip(*map(rows_of_any, children(env)), strict=True):
        column = env.kernel(torch.tensor(s))[:, k]
        pairs = {(k, a) for a, legal in enumerate(legal_by_hand(env, s)) if legal and column[a] > 0}
        wanted.setdefault(r, set()).update(pairs)
    states = torch.tensor(sorted(wanted))
    found = [{(k, a) for k, a in mask.nonzero().tolist()} for mask in env.support(states)]
    assert found == [wanted[state] for state in rows_of(states)]
    noisy = env.support(states).sum() > make(name, 0.0).support(states).sum()
    assert bool(noisy) == (alpha > 0 and slips(env))


# Numbers and text


@every_env
def test_numbering_is_a_bijection(name: str) -> None:
    env = make(name)
    assert sorted(env.index(inner_states(env)).tolist()) == list(range(env.num_states))
    objects = env.all_objects()
    assert torch.equal(env.object_index(objects), torch.arange(env.num_objects))
    assert not torch.equal(env.object_index(objects.flip(0)), torch.arange(env.num_objects))
    assert torch.equal(env.objects(final_states(env)), objects)


@every_env
def test_codes_tell_all_states_apart(name: str) -> None:
    env = make(name)
    states = torch.cat([inner_states(env), final_states(env)])
    code = env.encode(states)
    assert code.shape == (states.shape[0], env.features)
    assert set(code.unique().tolist()) == {0.0, 1.0}
    assert len(code.unique(dim=0)) == states.shape[0]
    blurred = states.clone()
    blurred[:, int(isinstance(env, ForecastEnv))] = 0  # a lone window says nothing
    assert len(env.encode(blurred).unique(dim=0)) < states.shape[0]


@every_env
def test_text_round_trip(name: str) -> None:
    env = make(name)
    texts = env.decode(env.all_objects())
    assert len(set(texts)) == env.num_objects
    assert torch.equal(env.parse(texts), env.all_objects())
    assert not torch.equal(env.parse(texts[::-1]), env.all_objects())
    assert env.parse([]).shape == (0, env.object_width)


BAD = {
    "fixed-L4-V2": ["AB", "ABABA", "", "ABAC", "abab", "AB B", "AB?A"],
    "stop-L3-V3": ["", "ABAB", "D"],
    "stop-L4-V2-min2": ["A", "ABABA", "AD"],
    "grid-2D-4": ["", "1", "1,2,3", "4,0", "0,-1", "a,b", "1;2", "1.0,2", "1,", "1,²", "1," + "9" * 5000],
    "grid-1D-4": ["4", "x", "0,0"],
    "forecast-H3-K2": ["", "0", "0:", "0:1 1", "0:1 1 1 1", "0:1 1 2", "1:0 0 0", "0:1,1,1", "0:1 1 -1", ":1 1 1"],
}


@pytest.mark.parametrize(
    ("name", "text"),
    [pytest.param(name, text, id=f"{name}-{text[:5]}") for name, texts in BAD.items() for text in texts],
)
def test_bad_text_is_refused_by_number(name: str, text: str) -> None:
    env = make(name)
    good = env.decode(env.all_objects()[:1])
    assert env.parse(good).shape[0] == 1
    with pytest.raises(ValueError, match=rf"^entry 2 \({re.escape(repr(shorten(text)))}\): "):
        env.parse([*good, text, text])


# Known objects


@every_env
def test_toward_leads_to_the_goal_and_nowhere_else(name: str) -> None:
    env = make(name)
    for goal in env.all_objects():
        frontier, ends = env.initial(1), set()
        for _ in range(env.horizon):
            law = env.toward(frontier, goal.expand(frontier.shape[0], -1))
            assert_close(law.sum(-1), torch.ones(frontier.shape[0]))
            assert not (law > 0)[~env.legal(frontier)].any()
            row, k = (law > 0).nonzero().unbind(1)
            frontier = env.apply(frontier[row], k).unique(dim=0)
            done = env.done(frontier)
            ends |= set(rows_of(env.objects(frontier[done])))
            frontier = frontier[~done]
        assert ends == {tuple(goal.tolist())}
        assert not len(frontier)


@pytest.mark.parametrize(("name", "goal", "paths"), [("grid-2D-4", (2, 2), 6), ("grid-3D-3", (1, 2, 1), 12)])
def test_toward_takes_all_paths_alike(name: str, goal: tuple[int, ...], paths: int) -> None:
    env, chances = make(name), []
    for moves in set(product(range(len(goal)), repeat=sum(goal))):
        if [moves.count(axis) for axis in range(len(goal))] == list(goal):
            state, chance = env.initial(1), 1.0
            for move in moves:
                chance *= float(env.toward(state, torch.tensor([goal]))[0, move])
                state = env.apply(state, torch.tensor([move]))
            chances.append(chance)
    assert len(chances) == paths
    assert chances == pytest.approx([1 / paths] * paths)


def test_the_suite_knows_every_environment() -> None:
    """Tables, which are made of other environments, have a suite of their own: test_tabulated.py."""
    ours = {env for env in Enumerable.__subclasses__() if env.__module__.startswith("sgfn.")}
    assert {type(build(0.0)) for build in ENVS.values()} == ours - {TabulatedEnv}


@every_env
def test_states_are_told_from_what_is_none(name: str) -> None:
    env = make(name)
    assert bool(env.is_state(torch.cat([inner_states(env), final_states(env)])).all())
    if isinstance(env, SequenceEnv | GridEnv):
        assert not bool(env.is_state(torch.full((1, env.width), 99)).any())
        assert not bool(env.is_state(torch.full((1, env.width), -1)).any())
