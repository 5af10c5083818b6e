"""Along trajectories: one pass, a cache and single states give the same laws, with thoughts and without."""

from typing import Any

import pytest
import torch
from exact_tables import ENVS, inner_states, no_reward
from flow_nets import flow_nets
from torch import Tensor
from torch.testing import assert_close

from sgfn.config import DynamicsConfig, NetConfig, ThoughtConfig
from sgfn.envs import TabulatedEnv
from sgfn.envs.base import Enumerable
from sgfn.envs.trajectories import Trajectories, concatenate
from sgfn.learning.kernels.shared_states import shared_levels
from sgfn.learning.rollout import clocks, retrace, rollout
from sgfn.learning.scoring import score
from sgfn.learning.trajectory_scorer import CachedActor, TrajectoryScorer
from sgfn.nets.dynamics import FullNoiseModel
from sgfn.nets.encoders import SequenceReader, make_encoder, sequence_of
from sgfn.nets.heads import FlowNets

SEQUENCES = [name for name in ENVS if not name.startswith(("grid", "forecast"))]
every_sequence = pytest.mark.parametrize("name", SEQUENCES)
either_env = pytest.mark.parametrize("tabulated", [False, True], ids=["plain", "tabulated"])
TRANSFORMER = NetConfig(encoder="transformer", hidden=12, layers=2, heads=3)
THOUGHT = ThoughtConfig(layers=2, width=8, heads=2)


def environment(name: str, tabulated: bool) -> Enumerable:
    env = ENVS[name](0.4)
    return TabulatedEnv(env) if tabulated else env


def networks(
    env: Enumerable, form: str, net: NetConfig, thought: ThoughtConfig | None = None
) -> tuple[FlowNets, FullNoiseModel]:
    """Networks with contrast in every weight, as after training."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        nets = flow_nets(env, form, net, thought.width if thought else 0)
        model = FullNoiseModel(env, DynamicsConfig(hidden=8), thought)
        with torch.no_grad():
            for parameter in [*nets.parameters(), *model.parameters()]:
                parameter.add_(0.3 * torch.randn_like(parameter))
    return nets, model


class Witness:
    """Notes what an actor says at each step."""

    def __init__(self, actor: CachedActor) -> None:
        self.actor, self.policies, self.kernels = actor, [], []

    def log_policy(self, t: int, state: Tensor) -> Tensor:
        self.policies.append(self.actor.log_policy(t, state))
        self.kernels.append(self.actor.kernel(state).log_matrix())
        return self.policies[-1]

    def observe(self, t: int, intended: Tensor, realised: Tensor) -> None:
        self.actor.observe(t, intended, realised)


def rolled_and_retraced(env: Enumerable, nets: FlowNets, model: FullNoiseModel) -> tuple[Trajectories, Tensor, Tensor]:
    """Own rollouts and retraced objects by one actor after the other, with its policies and kernels."""
    generator, actor = torch.Generator().manual_seed(0), CachedActor(nets, model)
    first, second = Witness(actor), Witness(actor)
    own = rollout(env, first, no_reward, batch=30, generator=generator, explore=0.2)
    goals = env.all_objects()
    clock = clocks((env.horizon, 2, len(goals), max(env.actions, env.outcomes)), generator)
    known = retrace(env, goals, second, actor.kernel, no_reward, clock)
    said = [torch.cat([torch.stack(a, 1), torch.stack(b, 1)]) for a, b in
            ((first.policies, second.policies), (first.kernels, second.kernels))]  # fmt: skip
    return concatenate(own, known), said[0], said[1]


@every_sequence
@either_env
def test_cache_full_pass_and_single_states_agree(name: str, tabulated: bool) -> None:
    env = environment(name, tabulated)
    nets, model = networks(env, "published", TRANSFORMER)
    batch, acted, _ = rolled_and_retraced(env, nets, model)
    valid, inner = batch.valid, batch.states[:, :-1]
    along = TrajectoryScorer(nets, None).heads(batch.states)
    assert_close(acted[valid], along.log_policy[:, :-1][valid], atol=1e-5, rtol=0)
    assert_close(acted[valid], nets.log_policy(inner)[valid], atol=1e-5, rtol=0)
    one_by_one, scored = nets.heads(batch.states), torch.cat([valid[:, :1], valid], 1)  # the finished state once
    assert along.log_joint_backward is not None
    assert one_by_one.log_joint_backward is not None
    assert_close(along.log_joint_backward[scored], one_by_one.log_joint_backward[scored], atol=1e-5, rtol=0)
    assert_close(along.log_flow[scored], one_by_one.log_flow[scored], atol=1e-5, rtol=0)
    others = batch.states.roll(1, 0)  # somebody else's trajectories
    assert not torch.allclose(
        TrajectoryScorer(nets, None).heads(others).log_flow[scored], along.log_flow[scored], atol=1e-3
    )


@every_sequence
@pytest.mark.parametrize("net", [TRANSFORMER, NetConfig(hidden=12, layers=1)], ids=["transformer", "mlp"])
def test_an_actor_thinks_what_the_full_pass_thinks(name: str, net: NetConfig) -> None:
    env = environment(name, tabulated=True)
    nets, model = networks(env, "outcome", net, THOUGHT)
    batch, acted, kernels = rolled_and_retraced(env, nets, model)
    thoughts, valid = model.thoughts(batch.intended, batch.realised), batch.valid
    assert thoughts is not None
    heads = TrajectoryScorer(nets, thoughts).heads(batch.states[:, :-1])
    assert_close(acted[valid], heads.log_policy[valid], atol=1e-5, rtol=0)
    full = model.log_matrix(batch.states[:, :-1], thoughts[:, :-1])
    assert_close(kernels[valid], full[valid], atol=1e-5, rtol=0)
    swapped = model.thoughts(batch.realised, batch.intended)
    other = TrajectoryScorer(nets, swapped).heads(batch.states[:, :-1])
    assert not torch.allclose(other.log_policy[valid], heads.log_policy[valid], atol=1e-3)  # history matters
    assert heads.log_outcome is not None
    assert_close(other.log_outcome, heads.log_outcome)  # but not to what should happen


@every_sequence
@pytest.mark.parametrize("form", ["marginal", "published"])
def test_padding_reaches_neither_scores_nor_gradients(name: str, form: str) -> None:
    """One pass reads padded rows, single states never do: scores and gradients agree all the same."""
    env = environment(name, tabulated=True)
    nets, model = networks(env, form, TRANSFORMER)
    batch = rolled_and_retraced(env, nets, model)[0]
    kernel = env.operator(batch.states[:, :-1])

    def gradients(scorer: Any, used: Trajectories) -> tuple[Tensor, Tensor]:
        nets.zero_grad(set_to_none=True)
        scores = score(scorer, used, form, kernel)
        total = scores.log_pf + scores.log_pb + scores.log_flow[:, :-1] * used.valid
        total.square().sum().backward()
        return total.detach(), torch.cat([p.grad.flatten() for p in nets.parameters() if p.grad is not None])

    found, wanted = gradients(TrajectoryScorer(nets, None), batch), gradients(nets, batch)
    assert_close(found[0], wanted[0], atol=1e-4, rtol=1e-4)
    assert_close(found[1], wanted[1], atol=1e-3, rtol=1e-3)
    assert (
        not torch.allclose(gradients(TrajectoryScorer(nets, None), unpadded(batch))[1], wanted[1], atol=1e-3)
        or name[0] == "f"
    )


def unpadded(batch: Trajectories) -> Trajectories:
    return Trajectories(**{**vars(batch), "valid": torch.ones_like(batch.valid)})


def test_the_encoders_read_what_they_can() -> None:
    sequence, grid = ENVS["stop-L3-V3"](0.1), ENVS["grid-2D-4"](0.1)
    assert sequence_of(TabulatedEnv(sequence)) is sequence
    assert sequence_of(TabulatedEnv(grid)) is sequence_of(grid) is None
    assert isinstance(make_encoder(sequence, TRANSFORMER), SequenceReader)
    with pytest.raises(ValueError, match=r"^net\.encoder 'transformer' reads sequences: use mlp$"):
        make_encoder(grid, TRANSFORMER)


def test_levels_are_not_shared_along_trajectories() -> None:
    env = environment("fixed-L2-V4", tabulated=True)
    assert shared_levels(env, networks(env, "marginal", NetConfig(hidden=8))[0], 100) == 2
    assert shared_levels(env, networks(env, "marginal", TRANSFORMER)[0], 100) == 0
    assert shared_levels(env, networks(env, "marginal", NetConfig(hidden=8), THOUGHT)[0], 100) == 0


def test_who_remembers_must_be_told_the_history() -> None:
    env = environment("fixed-L2-V4", tabulated=False)
    nets, model = networks(env, "marginal", NetConfig(hidden=8), THOUGHT)
    states = inner_states(env)
    with pytest.raises(ValueError, match="this policy remembers"):
        nets.log_policy(states)
    with pytest.raises(ValueError, match="this noise model remembers"):
        model.log_matrix(states)
    thought = torch.zeros(states.shape[0], THOUGHT.width)
    model.log_matrix(states, thought)
    nets.log_policy_of(nets.represent(states), states, thought)


def test_thoughts_learn_from_the_noise_model_alone() -> None:
    env = environment("fixed-L3-V3", tabulated=False)
    nets, model = networks(env, "marginal", NetConfig(hidden=8), THOUGHT)
    batch = rolled_and_retraced(env, nets, model)[0]
    thoughts = model.thoughts(batch.intended, batch.realised)
    assert thoughts is not None
    TrajectoryScorer(nets, thoughts).heads(batch.states[:, :-1]).log_policy.square().sum().backward()
    assert nets.join is not None
    assert nets.join.layer.weight.grad is not None
    assert all(p.grad is None for p in model.parameters())
    model.log_matrix(batch.states[:, :-1], thoughts[:, :-1]).square().sum().backward()
    assert model.thought is not None
    assert model.thought.begin.grad is not None
