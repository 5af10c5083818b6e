"""Adaptive proposals: they learn which edits pay, and with the network held the target stays."""

from typing import Any

import pytest
import torch
from chain_tasks import SPACES, advance, check_continues, enough, saved, task_of
from exact_tables import chi_square
from small_runs import CPU, same_tensors, small
from torch import Tensor
from torch.testing import assert_close

from sgfn.envs import Env, GridEnv
from sgfn.evaluation import exact
from sgfn.landscapes.tasks import make_task
from sgfn.learning.peers.mars import Mars
from sgfn.learning.peers.metropolis import METERS, ChainStates, log_ratio, transition_matrix

every_space = pytest.mark.parametrize("name", SPACES)


def mars_on(env: Env, table: Tensor | None = None, **changes: Any) -> Mars:
    return Mars(task_of(env, table, **{"method": "mars"} | changes), CPU)


def opinionated(env: Env, **changes: Any) -> Mars:
    """Proposals far from uniform, as if much had been learned."""
    chain = mars_on(env, **changes)
    with torch.no_grad():
        chain.network.head.weight.mul_(200.0)
    return chain


def weights(chain: Mars) -> Tensor:
    return torch.cat([p.detach().flatten().clone() for p in chain.network.parameters()])


# The chain


@pytest.mark.parametrize("alpha", [0.0, 0.3])
@every_space
def test_with_the_network_held_the_target_is_stationary(name: str, alpha: float) -> None:
    chain = opinionated(SPACES[name](alpha))
    target, proposals = exact.target(chain.log_rewards, 2.0), chain.proposals()
    matrix, value = chain.transition_matrix(), 2.0 * chain.log_rewards
    assert_close(proposals.sum(1), torch.ones_like(target), atol=1e-12, rtol=0)
    assert_close(target @ matrix, target, atol=1e-10, rtol=0)
    wrong = transition_matrix(proposals, log_ratio(value - value[:, None], 0 * proposals, 0 * proposals))
    assert exact.total_variation(target @ wrong, target) > 1e-3
    assert not chain.has_law


@pytest.mark.parametrize("name", ["fixed-L3-V3", "stop-L3-V3", "grid-2D-4"])
def test_simulated_steps_follow_the_matrix(name: str) -> None:
    chain = opinionated(SPACES[name](0.3), batch=20000)
    objects = chain.env.all_objects()[5].expand(20000, -1)
    before = ChainStates(objects=objects, intended=chain.chains.intended, log_reward=chain.task.log_reward(objects))
    after, _ = chain.advance(before, chain.beta, chain.generator)
    counts = chain.env.object_index(after.objects).bincount(minlength=chain.env.num_objects)[None]
    assert chi_square(*enough(counts, chain.transition_matrix()[[5]])) > 1e-3
    assert chi_square(*enough(counts, mars_on(chain.task.env).transition_matrix()[[5]])) < 1e-6


@pytest.mark.parametrize("share", [0.001, 0.1, 1.0])
@every_space
def test_every_edit_keeps_its_share(name: str, share: float) -> None:
    chain = opinionated(SPACES[name](0.3), chain__floor=share)
    objects = chain.env.all_objects()
    with torch.no_grad():
        chance, uniform = chain.log_edits(objects).exp(), chain.edits.log_uniform(objects).exp()
    assert_close(chance.sum(-1), torch.ones(objects.shape[0], dtype=torch.float64), atol=1e-12, rtol=0)
    assert torch.equal(chance > 0, uniform > 0)
    assert (chance >= share * uniform * (1 - 1e-12)).all()
    assert torch.allclose(chance, uniform) == (share == 1.0)


# Learning


def helpful(env: Env) -> Tensor:
    """Twice the score for each letter A, or for each step along the first coordinate."""
    objects = env.all_objects()
    good = objects[:, 0] if isinstance(env, GridEnv) else (objects == 0).sum(-1)
    return 2.0 ** (good.double() - 3.0)


def aim(chain: Mars) -> float:
    """How much of the proposals goes to objects with a higher score, where there are some one edit away."""
    objects = chain.env.all_objects()
    rows, edit = chain.edits.legal(objects).nonzero().unbind(1)
    score = chain.task.landscape.scores
    better = score(chain.edits.goals(objects[rows], edit)) > score(objects[rows])
    with torch.no_grad():
        chance = chain.log_edits(objects).exp()[rows, edit] * better
    mass = torch.zeros(objects.shape[0], dtype=torch.float64).index_add_(0, rows, chance)
    return float(mass[mass > 0].mean())


LESSON: dict[str, Any] = {"batch": 32, "steps": 25, "optim__warmup": 3, "chain__learn": 0.03, "beta": 1.0}


@pytest.mark.parametrize("alpha", [0.0, 0.2])
@pytest.mark.parametrize("name", ["fixed-L3-V3", "stop-L3-V3", "grid-2D-4"])
def test_edits_that_help_are_learned(name: str, alpha: float) -> None:
    env = SPACES[name](alpha)
    chain, held = (mars_on(env, helpful(env), **LESSON | changes) for changes in ({}, {"chain__learn": 0.0}))
    start = aim(chain)
    assert aim(held) == start
    advance(chain, 25)
    advance(held, 3)
    assert aim(chain) > start + 0.2
    assert aim(held) == start


def test_nothing_is_learned_where_nothing_is_gained() -> None:
    env = SPACES["fixed-L3-V3"](0.3)
    chain = mars_on(env, torch.full((27,), 0.5, dtype=torch.float64))
    before = weights(chain)
    advance(chain, 4)
    assert torch.equal(weights(chain), before)
    assert chain.read_meters()["loss"] == 0.0
    assert int(chain.successes.added) == 0
    paid = mars_on(env, helpful(env))
    advance(paid, 4)
    assert not torch.equal(weights(paid), before)


def test_successes_are_the_accepted_edits_that_raised_the_reward() -> None:
    chain = mars_on(SPACES["stop-L4-V2-min2"](0.3), batch=200)
    after, moves = chain.advance(chain.chains, chain.beta, chain.generator)
    chain.learn(moves)
    raised = after.log_reward > chain.chains.log_reward
    held = chain.successes.read(torch.arange(int(chain.successes.added)))
    assert 0 < len(held["edit"]) < 200
    assert torch.equal(held["objects"], chain.chains.objects[raised])
    assert torch.equal(held["edit"][:, 0], moves.edit[raised])


def test_the_rate_fades() -> None:
    """At the end of the schedule a step changes the proposals a hundred times less."""
    env = SPACES["fixed-L3-V3"](0.2)
    moved = []
    for index in (0.0, 25.0):
        chain = mars_on(env, helpful(env), **LESSON | {"optim__warmup": 1})
        chain.index.fill_(index)
        before = weights(chain)
        advance(chain, 1)
        moved.append(float((weights(chain) - before).abs().max()))
    assert moved[0] == pytest.approx(100 * moved[1], rel=0.01)


# State and figures


@pytest.mark.parametrize("name", ["fixed-L3-V3", "stop-L3-V3", "grid-2D-4"])
def test_a_chain_continues_from_the_state_of_another(name: str) -> None:
    changes = {"chain__keep": 20, "chain__successes": 9}
    check_continues(lambda: mars_on(SPACES[name](0.3), **changes))


def test_no_part_of_the_state_is_superfluous() -> None:
    env = SPACES["fixed-L3-V3"](0.3)
    first, other = (mars_on(env, helpful(env)) for _ in range(2))
    untouched, state = saved(other), advance(first, 6)
    straight = advance(first, 3)
    for part in (None, "network", "optimiser", "successes", "chains", "kept", "self.index"):
        left = {name for name in state | untouched if part and f"{name}.".startswith(f"{part}.")}
        mixed = {n: v for n, v in state.items() if n not in left} | {n: v for n, v in untouched.items() if n in left}
        other.load({name: value.clone() for name, value in mixed.items()})
        assert same_tensors(advance(other, 3), straight) == (part is None), part


def test_meters_and_samples() -> None:
    chain = mars_on(SPACES["stop-L3-V3"](0.3))
    before = advance(chain, 3)
    assert tuple(chain.read_meters()) == ("loss", *METERS)
    chain.load(before)
    drawn = chain.draw(50, seed=0)
    assert same_tensors(saved(chain), before)
    assert torch.equal(drawn.scores, chain.task.landscape.scores(drawn.objects))


def test_a_transformer_is_refused() -> None:
    with pytest.raises(ValueError, match=r"^method 'mars' reads whole objects: use --net\.encoder mlp$"):
        Mars(make_task("words", small(method="mars", net__encoder="transformer")), CPU)
    Mars(make_task("words", small(method="mars")), CPU)
