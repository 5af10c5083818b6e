"""Metropolis-Hastings: its transition matrix against the target, its steps against the matrix, its state."""

from typing import Any

import pytest
import torch
from chain_tasks import SPACES, Numbered, advance, check_continues, enough, saved, task_of
from exact_tables import chi_square
from small_runs import CPU, same_tensors, small
from torch import Tensor
from torch.testing import assert_close

from sgfn.cli.tables import result_lines
from sgfn.envs import Env, SequenceEnv, laws
from sgfn.envs.checks import ROLLOUTS
from sgfn.evaluation import exact
from sgfn.evaluation.measure import measure
from sgfn.landscapes.base import beta_at
from sgfn.landscapes.tasks import make_task
from sgfn.learning.peers.mars import Mars
from sgfn.learning.peers.metropolis import (
    METERS,
    ChainStates,
    MetropolisHastings,
    log_proposal,
    log_ratio,
    transition_matrix,
)
from sgfn.noise import UniformSlip

every_space = pytest.mark.parametrize("name", SPACES)
ASYMMETRIC = ["confusion-L3-V3", "confusion-random-L3-V3", "confusion-stop-L3-V2", "stop-L3-V3", "grid-2D-4"]
"""Proposals that are more likely one way than back."""


def chain_on(env: Env, **changes: Any) -> MetropolisHastings:
    return MetropolisHastings(task_of(env, **changes), CPU)


def target_of(chain: MetropolisHastings) -> Tensor:
    return exact.target(chain.log_rewards, chain.task.beta)


def uncorrected(chain: MetropolisHastings) -> Tensor:
    """The chain that forgets how likely its proposals were: a wrong one, unless they are symmetric."""
    proposals, value = chain.proposals(), chain.task.beta * chain.log_rewards
    return transition_matrix(proposals, log_ratio(value - value[:, None], 0 * proposals, 0 * proposals))


# The transition matrix


@pytest.mark.parametrize("alpha", [0.0, 0.3, 0.7])
@every_space
def test_the_target_is_stationary_and_the_only_such_law(name: str, alpha: float) -> None:
    chain = chain_on(SPACES[name](alpha))
    target, matrix = target_of(chain), chain.transition_matrix()
    assert matrix.min() >= -1e-15
    assert_close(matrix.sum(1), torch.ones_like(target), atol=1e-12, rtol=0)
    assert_close(target @ matrix, target, atol=1e-10, rtol=0)
    flow = target[:, None] * matrix
    assert_close(flow, flow.T, atol=1e-12, rtol=0)  # detailed balance
    assert_close(torch.linalg.matrix_power(matrix, 2**14), target.expand_as(matrix), atol=1e-8, rtol=0)
    other = exact.target(chain.log_rewards, chain.task.beta + 0.5)
    assert not torch.allclose(other @ matrix, other, atol=1e-4, rtol=0)


@pytest.mark.parametrize("name", ASYMMETRIC)
def test_without_the_correction_it_is_not(name: str) -> None:
    chain = chain_on(SPACES[name](0.3))
    assert_close(target_of(chain) @ chain.transition_matrix(), target_of(chain), atol=1e-10, rtol=0)
    assert exact.total_variation(target_of(chain) @ uncorrected(chain), target_of(chain)) > 1e-3


def test_under_uniform_slip_letters_need_no_correction() -> None:
    for name in ("fixed-L3-V3", "fixed-L4-V2", "hidden-L3-V2"):
        chain = chain_on(SPACES[name](0.3))
        assert_close(chain.proposals(), chain.proposals().T, atol=1e-14, rtol=0)
        assert_close(chain.transition_matrix(), uncorrected(chain), atol=1e-13, rtol=0)


@pytest.mark.parametrize("alpha", [0.0, 0.3])
@every_space
def test_the_step_reads_the_proposals_of_the_matrix(name: str, alpha: float) -> None:
    """Row by row, by the functions that a step uses."""
    chain = chain_on(SPACES[name](alpha))
    objects = chain.env.all_objects()
    rows = [
        log_proposal(chain.log_edits(x.expand_as(objects)), chain.edits.log_outcomes(x.expand_as(objects), objects))
        for x in objects
    ]
    assert_close(torch.stack(rows).exp(), chain.proposals(), atol=1e-13, rtol=1e-12)
    assert not torch.allclose(torch.stack(rows).exp(), chain.edits.outcomes())


# The step


def stand(chain: MetropolisHastings, number: int) -> ChainStates:
    """All chains at one object."""
    objects = chain.env.all_objects()[number].expand(chain.config.batch, -1)
    return ChainStates(objects=objects, intended=chain.chains.intended, log_reward=chain.task.log_reward(objects))


@pytest.mark.parametrize(
    "name", [*ASYMMETRIC, "fixed-L3-V3", "position-L3-V2", "hidden-stop-L3-V2", "hidden-grid-2D-3"]
)
def test_simulated_steps_follow_the_matrix(name: str) -> None:
    chain = chain_on(SPACES[name](0.4), batch=20000)
    right, wrong = chain.transition_matrix(), uncorrected(chain)
    gap = (right - wrong).abs().sum(1) if name in ASYMMETRIC else target_of(chain)
    number = int(gap.argmax())
    before = stand(chain, number)
    after, moves = chain.advance(before, chain.beta, chain.generator)
    counts = chain.env.object_index(after.objects).bincount(minlength=chain.env.num_objects)[None]
    assert chi_square(*enough(counts, right[[number]])) > 1e-3
    if name in ASYMMETRIC:
        assert chi_square(*enough(counts, wrong[[number]])) < 1e-6
    assert torch.equal(after.log_reward, chain.task.log_reward(after.objects))
    assert torch.equal(after.objects[~moves.accepted], before.objects[~moves.accepted])
    assert torch.equal(after.intended[~moves.accepted], before.intended[~moves.accepted])
    assert_close(moves.gain[moves.accepted], (after.log_reward - before.log_reward)[moves.accepted])
    assert 0 < moves.accepted.sum() < 20000


@pytest.mark.parametrize("name", ["fixed-L3-V3", "stop-L3-V3", "grid-2D-4"])
def test_what_was_intended_gives_the_object_where_nothing_slips(name: str) -> None:
    chain = chain_on(SPACES[name](0.0), batch=50)
    advance(chain, 5)
    intended, state = chain.chains.intended, chain.env.initial(50)
    for t in range(chain.env.horizon):
        assert (chain.env.done(state) == (intended[:, t] < 0)).all()
        state = chain.env.apply(state, intended[:, t].clamp(min=0))
    assert torch.equal(chain.env.objects(state), chain.chains.objects)
    assert not torch.equal(intended, intended.roll(1, 0))


def test_the_exponent_follows_its_ramp() -> None:
    env = SPACES["fixed-L3-V3"](0.3)
    chain, flat = chain_on(env, reward__ramp=3.0), chain_on(env, beta=1.0)
    assert_close(chain.transition_matrix(), flat.transition_matrix())  # the ramp begins at one
    advance(chain, 3)
    assert float(chain.beta) == float(beta_at(torch.tensor(3.0), 2.0, 3.0)) == 1.5
    assert_close(chain.transition_matrix(), chain_on(env, beta=1.5).transition_matrix())
    assert not torch.allclose(chain.transition_matrix(), flat.transition_matrix())
    assert not chain.has_law
    assert flat.has_law


# The law


@pytest.mark.parametrize("name", ["fixed-L3-V3", "stop-L3-V3", "grid-2D-4", "hidden-L3-V2"])
def test_the_law_is_that_of_many_chains(name: str) -> None:
    env = SPACES[name](0.4)
    chain = chain_on(env, batch=20000)
    matrix, start = chain.transition_matrix(), laws.law(env, laws.uniform_policy(env))
    found = {}
    for steps in (0, 1, 3):
        advance(chain, steps - chain.done)
        found[steps] = chain.law()
        assert_close(found[steps], start @ torch.linalg.matrix_power(matrix, steps), atol=1e-12, rtol=0)
        counts = chain.env.object_index(chain.chains.objects).bincount(minlength=env.num_objects)[None]
        assert chi_square(*enough(counts, found[steps][None])) > 1e-3
    assert chi_square(*enough(counts, found[0][None])) < 1e-6
    chain.done = 1  # another past: it is followed anew
    assert_close(chain.law(), found[1])
    distances = [exact.total_variation(found[n], target_of(chain)) for n in (0, 1, 3)]
    assert distances == sorted(distances, reverse=True)


@pytest.mark.parametrize("method", [MetropolisHastings, Mars])
def test_nothing_but_the_chains_is_scored_before_the_law_is_asked_for(
    method: type[MetropolisHastings], monkeypatch: pytest.MonkeyPatch
) -> None:
    env, scored = SPACES["grid-2D-4"](0.3), []

    def scores(landscape: Numbered, objects: Tensor) -> Tensor:
        scored.append(objects.shape[0])
        return landscape.table[landscape.env.object_index(objects)]

    monkeypatch.setattr(Numbered, "scores", scores)
    chain = method(task_of(env), CPU)
    advance(chain, 2)
    assert scored == [ROLLOUTS, 8, 8, 8]  # the check of a landscape that is not ours comes first
    chain.transition_matrix()
    chain.transition_matrix()
    assert scored == [ROLLOUTS, 8, 8, 8, env.num_objects]


def test_a_law_that_would_take_longer_than_the_training_is_not_followed() -> None:
    for length, known in ((5, True), (6, False)):  # 1,024 and 4,096 strings
        env = SequenceEnv(length=length, alphabet="ACGT", noise=UniformSlip(alpha=0.3))
        assert chain_on(env).has_law == known


def test_large_spaces_have_no_law() -> None:
    chain = MetropolisHastings(make_task("words", small(method="mh")), CPU)
    assert (chain.has_law, chain.state_policy(), chain.trajectories) == (False, None, 8)
    assert set(chain.calibrated(4, 0).values()) == {None}
    assert chain_on(SPACES["fixed-L3-V3"](0.1)).has_law


# State


@pytest.mark.parametrize("name", ["fixed-L3-V3", "stop-L3-V3", "grid-2D-4", "hidden-L3-V2"])
def test_a_chain_continues_from_the_state_of_another(name: str) -> None:
    changes = {"chain__keep": 20, "reward__ramp": 5.0}
    check_continues(lambda: chain_on(SPACES[name](0.3), **changes))


PARTS = (
    "chains.objects",
    "chains.log_reward",
    "chains.intended",
    "kept",
    "self.generator",
    "self.index",
    "self.meters",
)


def test_no_part_of_the_state_is_superfluous() -> None:
    changes = {"reward__ramp": 5.0, "chain__keep": 70}
    first, other = (chain_on(SPACES["fixed-L3-V3"](0.3), **changes) for _ in range(2))
    untouched, state = saved(other), advance(first, 5)
    straight = advance(first, 1)
    for part in (None, *PARTS):
        left = {name for name in state if part and f"{name}.".startswith(f"{part}.")}
        assert bool(left) == (part is not None)
        other.load({n: (untouched if n in left else state)[n].clone() for n in state})
        assert same_tensors(advance(other, 1), straight) == (part is None), part


def test_a_state_that_does_not_fit_is_refused() -> None:
    env = SPACES["fixed-L3-V3"](0.3)
    state = saved(chain_on(env))
    for changes, part in (({"batch": 9}, "chains"), ({"chain__keep": 5}, "kept")):
        with pytest.raises(RuntimeError, match=f"the {part} differs"):
            chain_on(env, **changes).load_networks(state)
    with pytest.raises((RuntimeError, KeyError)):
        chain_on(env).load_networks({n: v for n, v in state.items() if n != "chains.objects"})
    chain_on(env, seed=4).load_networks(state)


# Samples


def rows(values: Tensor) -> list[tuple[int, ...]]:
    return sorted(tuple(row) for row in values.tolist())


def test_samples_are_the_newest_states() -> None:
    chain, seen = chain_on(SPACES["stop-L4-V2-min2"](0.3), chain__keep=20), []
    for _ in range(4):
        advance(chain, 1)
        seen += torch.cat([chain.chains.objects, chain.chains.intended], 1).tolist()
    drawn = chain.draw(20, seed=3)
    assert rows(torch.cat([drawn.objects, drawn.intended], 1)) == sorted(map(tuple, seen[-20:]))
    assert rows(drawn.objects) != sorted(tuple(row[:4]) for row in seen[:20])
    assert torch.equal(drawn.scores, chain.task.landscape.scores(drawn.objects))
    few = chain.draw(7, seed=3)
    assert torch.equal(few.objects, drawn.objects[:7])
    assert not torch.equal(few.objects, chain.draw(7, seed=4).objects)


@pytest.mark.parametrize("name", ["fixed-L3-V3", "grid-2D-4"])
def test_more_samples_come_from_copies_of_the_chains(name: str) -> None:
    chain = chain_on(SPACES[name](0.3), chain__keep=10)
    fresh = chain.draw(5, seed=0)  # nothing is kept yet
    assert fresh.objects.shape[0] == fresh.scores.shape[0] == 5
    before = advance(chain, 3)
    drawn = chain.draw(31, seed=0)
    assert same_tensors(saved(chain), before)
    assert drawn.objects.shape == (31, chain.env.object_width)
    assert drawn.intended.shape == (31, chain.env.horizon)
    assert torch.equal(drawn.scores, chain.task.landscape.scores(drawn.objects))
    kept = chain.kept.read(torch.arange(10))["objects"]
    assert rows(drawn.objects[:10]) == rows(kept)
    assert torch.equal(chain.draw(31, seed=0).objects, drawn.objects)
    assert not torch.equal(chain.draw(31, seed=1).objects, drawn.objects)


def test_samples_come_near_the_target() -> None:
    chain = chain_on(SPACES["confusion-L3-V3"](0.3), batch=500, chain__keep=10000)
    advance(chain, 60)
    drawn = chain.draw(10000, seed=0).objects
    share = chain.env.object_index(drawn).bincount(minlength=27) / 10000
    assert exact.total_variation(share.double(), target_of(chain)) < 0.05
    assert exact.total_variation(share.double(), laws.law(chain.task.env, laws.uniform_policy(chain.task.env))) > 0.2


def test_meters_tell_where_the_chains_stand() -> None:
    chain = chain_on(SPACES["stop-L3-V3"](0.3), batch=50)
    advance(chain, 1)
    meters = chain.read_meters()
    assert tuple(meters) == METERS
    assert meters["log_reward"] == pytest.approx(float(chain.chains.log_reward.mean()), rel=1e-5)
    assert meters["reward"] == pytest.approx(float(chain.chains.log_reward.exp().mean()), rel=1e-5)
    assert meters["length"] == pytest.approx(float((chain.chains.intended >= 0).sum(1).float().mean()))
    assert 0 < meters["acceptance"] < 1
    assert chain.trajectories == 100


def test_a_chain_may_come_nearer_than_any_policy() -> None:
    """It sees what the noise made before it accepts, so the floor is no bound, and no gap to it is told."""
    sharp = torch.tensor([1.0] + [0.01] * 15, dtype=torch.float64)
    task = task_of(SequenceEnv(length=4, alphabet="AB", noise=UniformSlip(alpha=0.6)), sharp)
    chain = MetropolisHastings(task, CPU)
    advance(chain, 200)
    figures = dict(measure(chain, 64))
    assert figures["tv"] < figures["tv_floor"] / 10
    told = [line[0] for line in result_lines(figures)]
    assert "TV to target" in told
    assert "gap to best reachable" not in told
    assert "gap to best reachable" in [line[0] for line in result_lines(figures | {"bound_by_floor": True})]
