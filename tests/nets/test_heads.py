"""Heads: masked laws everywhere, finite gradients for every form, and state sharing that changes nothing."""

from typing import get_args, get_type_hints

import pytest
import torch
from balances import BALANCE
from exact_tables import DRIFT, ENVS, final_states, inner_states, log_of
from flow_nets import flow_nets
from torch import Tensor
from torch.testing import assert_close

from sgfn.config import DynamicsConfig, NetConfig
from sgfn.envs import TabulatedEnv, laws
from sgfn.envs.base import Enumerable
from sgfn.envs.trajectories import Trajectories, concatenate
from sgfn.learning.forms import FORMS
from sgfn.learning.kernels.shared_states import SharedStateScorer, share, shared_levels
from sgfn.learning.rollout import clocks, retrace, rollout
from sgfn.learning.scoring import score
from sgfn.nets.dynamics import FullNoiseModel
from sgfn.nets.encoders import ACTIVATIONS, MLP, masked_log_softmax
from sgfn.nets.heads import FlowNets
from sgfn.noise.operators import DenseKernel, Kernel

every_env = pytest.mark.parametrize("name", ENVS)
every_form = pytest.mark.parametrize("form", FORMS)


def networks(env: Enumerable, form: str) -> tuple[FlowNets, FullNoiseModel]:
    """Networks with some contrast, as after training."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        nets = flow_nets(env, form, NetConfig(hidden=16, layers=1))
        model = FullNoiseModel(env, DynamicsConfig(hidden=16))
        with torch.no_grad():
            nets.policy.weight.normal_()
            if nets.backward is not None:
                nets.backward.weight.normal_()
            model.outcome.weight.normal_()
    return nets, model


def play(env: Enumerable, nets: FlowNets, model: FullNoiseModel) -> Trajectories:
    """Own rollouts, and known objects retraced with the learned kernel."""
    generator = torch.Generator().manual_seed(0)

    def reward(objects: Tensor) -> Tensor:
        return 0.1 * objects.sum(-1).float()

    own = rollout(env, nets.log_policy, reward, batch=60, generator=generator, explore=0.3)
    goals = env.all_objects()
    clock = clocks((env.horizon, 2, len(goals), max(env.actions, env.outcomes)), generator)
    return concatenate(own, retrace(env, goals, nets.log_policy, model.operator, reward, clock))


def gradients(nets: FlowNets, batch: Trajectories, form: str, objective: str, kernel: Kernel) -> Tensor:
    nets.zero_grad(set_to_none=True)
    BALANCE[objective](score(nets, batch, form, kernel), batch).mean().backward()
    return torch.cat([p.grad.flatten() for p in nets.parameters() if p.grad is not None])


# Masks


def test_masked_log_softmax_by_hand() -> None:
    logits = torch.tensor([[0.0, 1.0, 5.0]], dtype=torch.float64, requires_grad=True)
    mask = torch.tensor([[True, True, False]])
    found = masked_log_softmax(logits, mask)
    assert found[0, 2] == -torch.inf
    wanted = torch.tensor([[1.0, torch.e, 0.0]], dtype=torch.float64) / (1 + torch.e)
    assert_close(found.exp(), wanted)
    found[0, 0].backward()
    assert_close(logits.grad, torch.tensor([[1.0, 0.0, 0.0]], dtype=torch.float64) - wanted)
    assert not torch.allclose(masked_log_softmax(logits, torch.ones_like(mask)).exp(), wanted)


@every_form
@every_env
def test_every_head_is_a_law_on_its_mask(name: str, form: str) -> None:
    env = ENVS[name](0.3)
    nets, _ = networks(env, form)
    states = torch.cat([inner_states(env), final_states(env)])
    heads = nets.heads(states)
    laws = [(heads.log_policy, env.legal(states))]
    assert (heads.log_backward is None) == (env.tree or form == "published")
    assert (heads.log_joint_backward is None) == (form != "published")
    if heads.log_backward is not None:
        laws.append((heads.log_backward, env.parents(states)))
    if heads.log_joint_backward is not None:
        laws.append((heads.log_joint_backward.flatten(1), env.support(states).flatten(1)))
    for log_law, mask in laws:
        assert_close(torch.logsumexp(log_law, -1), torch.zeros(states.shape[0]), atol=1e-6, rtol=0)
        assert log_law[mask].isfinite().all()
        assert (log_law[~mask] == -torch.inf).all()
    assert heads.log_flow.isfinite().all()
    assert_close(nets.log_policy(states), heads.log_policy)
    assert not torch.allclose(heads.log_policy[0].exp(), heads.log_policy[1].exp(), atol=1e-3)  # it reads the state
    assert nets.reads_final == (form == "published" or not env.tree)


@every_env
def test_new_networks_start_near_uniform(name: str) -> None:
    env = ENVS[name](0.3)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        policy = FlowNets(env, NetConfig(hidden=64)).log_policy(inner_states(env)).exp()
    uniform = laws.uniform_policy(env)(inner_states(env)).float()
    assert (policy - uniform).abs().max() < 0.05
    trained = networks(env, "marginal")[0].log_policy(inner_states(env)).exp()
    assert (trained - uniform).abs().max() > 0.05


# Gradients


@pytest.mark.parametrize("objective", BALANCE)
@every_form
@pytest.mark.parametrize("alpha", [0.0, 0.4])
@pytest.mark.parametrize("name", ["fixed-L2-V4", "stop-L4-V2-min2", "grid-2D-4", "grid-1D-4", *DRIFT])
def test_loss_and_gradients_are_finite(name: str, alpha: float, form: str, objective: str) -> None:
    """Off-policy, padded, with known and learned kernels; a poisoned kernel shows that the check can fail."""
    env = (ENVS | DRIFT)[name](alpha)
    nets, model = networks(env, form)
    batch = play(env, nets, model)
    states = batch.states[:, :-1]
    for kernel in (env.operator(states), model.operator(states)):
        found = gradients(nets, batch, form, objective, kernel)
        assert found.isfinite().all()
        assert found.abs().max() > 1e-3
    flow_used = nets.flow.weight.grad is not None and bool(nets.flow.weight.grad.any())
    assert flow_used == (objective != "tb")
    poisoned = DenseKernel(torch.full_like(kernel.matrix(), torch.nan))
    assert gradients(nets, batch, form, objective, poisoned).isfinite().all() == (form == "blind")


@every_form
def test_the_dynamics_net_gets_no_gradient_from_balance(form: str) -> None:
    env = ENVS["grid-2D-4"](0.4)
    nets, model = networks(env, form)
    batch = play(env, nets, model)
    kernel = model.operator(batch.states[:, :-1])
    gradients(nets, batch, form, "tb", kernel)
    assert all(p.grad is None for p in model.parameters())
    kernel.log_matrix().logsumexp(-1).sum().backward()  # the graph is there, `score` left it alone
    assert all(p.grad is not None for p in model.parameters())


# Encoder


def test_activations_equal_the_config() -> None:
    assert set(ACTIVATIONS) == set(get_args(get_type_hints(NetConfig)["activation"]))


@pytest.mark.parametrize("activation", ACTIVATIONS)
def test_mlp_by_hand(activation: str) -> None:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        net = MLP(3, 5, 2, activation)
    features = torch.randn(4, 2, 3, generator=torch.Generator().manual_seed(0))
    wanted = features
    for weight, bias in ((layer.weight, layer.bias) for layer in net.layers):
        wanted = getattr(torch.nn.functional, activation)(wanted @ weight.T + bias)
    assert_close(net(features), wanted)
    assert not torch.allclose(net(features + 0.1), wanted)
    assert net.width == 5


# State sharing


@pytest.mark.parametrize("objective", BALANCE)
@pytest.mark.parametrize("form", ["marginal", "blind"])
@pytest.mark.parametrize("levels", [1, 2])
@pytest.mark.parametrize("name", ["fixed-L2-V4", "stop-L4-V2-min2"])
def test_shared_states_give_the_same_loss_and_gradients(name: str, levels: int, form: str, objective: str) -> None:
    env = TabulatedEnv(ENVS[name](0.4))
    nets, model = networks(env, form)
    batch = play(env, nets, model)
    inner = batch.states[:, :-1]
    log_kernel = share(model.log_matrix, env, inner, levels)
    assert_close(log_kernel[batch.valid], model.log_matrix(inner)[batch.valid])
    kernel = DenseKernel(log_kernel, log=True)
    scorer = SharedStateScorer(env, nets, levels)
    for t in range(env.horizon):
        valid, log_policy = batch.valid[:, t], scorer.log_policy(t, inner[:, t])
        assert not log_policy.requires_grad
        assert_close(log_policy[valid], nets.log_policy(inner[:, t])[valid].detach())
    plain = gradients(nets, batch, form, objective, kernel)
    nets.zero_grad(set_to_none=True)
    BALANCE[objective](score(scorer, batch, form, kernel), batch).mean().backward()
    found = torch.cat([p.grad.flatten() for p in nets.parameters() if p.grad is not None])
    assert_close(found, plain, atol=1e-5, rtol=1e-4)
    shorter = Trajectories(**{field: rows[:-5] for field, rows in vars(batch).items()})
    other = gradients(nets, shorter, form, objective, DenseKernel(log_kernel[:-5], log=True))
    assert not torch.allclose(other, plain, atol=1e-5, rtol=1e-4)


def test_levels_are_shared_while_they_are_no_larger_than_the_batch() -> None:
    env = TabulatedEnv(ENVS["fixed-L2-V4"](0.4))
    nets = networks(env, "marginal")[0]
    assert [shared_levels(env, nets, batch) for batch in (1, 3, 4, 100)] == [1, 1, 2, 2]
    assert shared_levels(env.env, nets, 100) == 0  # not numbered
    assert shared_levels(env, networks(env, "published")[0], 100) == 0  # reads final states
    grid = TabulatedEnv(ENVS["grid-2D-4"](0.4))
    assert shared_levels(grid, networks(grid, "marginal")[0], 100) == 0  # not a tree


@every_env
def test_a_rollout_by_a_net_is_the_rollout_by_its_law(name: str) -> None:
    env = ENVS[name](0.3)
    nets, _ = networks(env, "marginal")
    table = log_of(lambda states: nets.log_policy(states).detach().exp())

    def run(policy: object) -> Tensor:
        return rollout(
            env, policy, lambda x: torch.zeros(len(x)), batch=50, generator=torch.Generator().manual_seed(0)
        ).states

    assert torch.equal(run(nets.log_policy), run(table))
    assert not torch.equal(run(nets.log_policy), run(log_of(laws.uniform_policy(env))))
