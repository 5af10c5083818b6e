"""Expected flows: zero at the closed form, on every trajectory, and only there."""

from dataclasses import dataclass, replace

import pytest
import torch
from exact_tables import TINY, every_trajectory
from torch import Tensor
from torch.testing import assert_close

from sgfn.config import TrainConfig
from sgfn.envs import laws
from sgfn.envs.base import Enumerable
from sgfn.evaluation import exact
from sgfn.landscapes.tasks import make_task
from sgfn.learning.scoring import score_expected
from sgfn.learning.trainer import Trainer
from sgfn.nets.heads import Heads
from sgfn.objectives.expected_flow import expected_flow

TREES = [name for name in TINY if TINY[name](0.1).tree]


@dataclass(frozen=True, kw_only=True)
class Tables:
    """Flows and the expected-flow policy of a reward, looked up."""

    env: Enumerable
    flow: Tensor
    policy: laws.PolicyProbabilities
    log_z: Tensor
    reads_final: bool = False

    def heads(self, state: Tensor) -> Heads:
        done = self.env.done(state)
        flat = torch.where(done, 0, self.env.index(state)).flatten()
        states = torch.cat(list(self.env.levels()))
        order = states[self.env.index(states).argsort()]
        log_policy = self.policy(order)[flat].log().view(*state.shape[:-1], -1)
        log_flow = self.flow[flat].log().view(state.shape[:-1])
        return Heads(
            log_policy=torch.where(done[..., None], 0.0, log_policy), log_flow=torch.where(done, 123.0, log_flow)
        )


def expected_flows(env: Enumerable, reward: Tensor) -> tuple[Tensor, dict[int, Tensor]]:
    """F and pi by the recursion F(s) pi(a|s) = E_k F(s'), from the leaves up."""
    flow, policy = torch.zeros(env.num_states, dtype=torch.float64), {}
    for depth, states in reversed(list(enumerate(env.levels()))):
        after = torch.zeros(states.shape[0], env.actions, dtype=torch.float64)
        for rows, k, target, finished in laws.children(env, states):
            after[rows, k] = (reward if finished else flow)[target]
        weight = torch.einsum("nak,nk->na", env.kernel(states, torch.float64), after) * env.legal(states)
        flow[env.index(states)] = weight.sum(-1)
        policy[depth] = weight / weight.sum(-1, keepdim=True)
    return flow, policy


@pytest.mark.parametrize("alpha", [0.0, 0.1, 0.5, 0.9])
@pytest.mark.parametrize("name", TREES)
def test_vanishes_only_at_the_exact_solution(name: str, alpha: float) -> None:
    env = TINY[name](alpha)
    reward = torch.rand(env.num_objects, generator=torch.Generator().manual_seed(0), dtype=torch.float64) + 0.1
    flow, policy = expected_flows(env, reward)
    log_z = flow[env.index(env.initial(1))][0].log()
    scorer = Tables(env=env, flow=flow, policy=laws.table_policy(env, policy), log_z=log_z)
    batch = every_trajectory(env)
    kernel = env.operator(batch.states[:, :-1], torch.float64)

    def loss(tables: Tables, rewards: Tensor) -> Tensor:
        lookup = lambda objects: rewards[env.object_index(objects).clamp(0, env.num_objects - 1)].log()  # noqa: E731
        return expected_flow(score_expected(env, tables, batch, kernel, lookup), batch)

    assert loss(scorer, reward).max() < 1e-18
    assert loss(scorer, reward * 1.1).min() > 1e-9
    assert loss(replace(scorer, flow=flow * 1.1, log_z=log_z + 0.3), reward).min() > 1e-9
    if alpha != 0.5:
        other = TINY[name](0.5).operator(batch.states[:, :-1], torch.float64)
        lookup = lambda objects: reward[env.object_index(objects).clamp(0, env.num_objects - 1)].log()  # noqa: E731
        assert expected_flow(score_expected(env, scorer, batch, other, lookup), batch).max() > 1e-6


@pytest.mark.parametrize("alpha", [0.0, 0.25, 0.7])
def test_the_recursion_is_the_closed_form_under_uniform_slip(alpha: float) -> None:
    r"""Without a stop action: pi = (1 - alpha) c + alpha/V, with c the target conditional."""
    env = TINY["fixed-L3-V2"](alpha)
    reward = torch.rand(env.num_objects, generator=torch.Generator().manual_seed(1), dtype=torch.float64) + 0.1
    _, policy = expected_flows(env, reward)
    _, conditionals = exact.flows(env, reward)
    for depth, found in policy.items():
        assert_close(found, (1 - alpha) * conditionals[depth] + alpha / env.actions)
        if alpha:
            assert not torch.allclose(found, conditionals[depth])
    assert_close(laws.law(env, laws.table_policy(env, policy)), laws.law(env, exact.eflow_policy(env, conditionals)))


@pytest.mark.slow
def test_training_approaches_the_closed_form_and_a_graph_is_refused() -> None:
    config = TrainConfig().with_(
        objective="eflow", steps=150, batch=32, noise__alpha=0.5, dynamics__mode="known", optim__lr=5e-3, net__hidden=64
    )
    trainer = Trainer(make_task("words", config), torch.device("cpu"))
    env, task = trainer.task.env, trainer.task
    _, policy = expected_flows(env, exact.target(task.log_reward(env.all_objects()), task.beta))
    wanted = laws.law(env, laws.table_policy(env, policy))
    before = exact.total_variation(trainer.law(), wanted)
    for _ in range(config.steps):
        trainer.step()
    assert exact.total_variation(trainer.law(), wanted) < 0.5 * before
    with pytest.raises(ValueError, match=r"^objective 'eflow' needs a tree"):
        Trainer(make_task("grid", config), torch.device("cpu"))
