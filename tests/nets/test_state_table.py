"""A table with a row for each state as the encoder: exact, and no state learns from another."""

from pathlib import Path

import pytest
import torch

import sgfn
from sgfn.config import NetConfig, TrainConfig
from sgfn.envs.tabulated import tabulate
from sgfn.landscapes.tasks import make_task
from sgfn.learning.methods import make_learner
from sgfn.nets.encoders import StateTable
from sgfn.nets.heads import FlowNets


def counts(texts: list[str]) -> list[float]:
    return [0.1 + text.count("AC") for text in texts]


def fitted(steps: int) -> sgfn.Model:
    settings = {"net__hidden": 8, "optim__lr": 0.03, "log__exact_every": 0}
    env = sgfn.Sequences("AC", 4, noise=0.1)
    return sgfn.fit(env, reward=counts, encoder="table", steps=steps, batch=128, progress=False, **settings)


def test_a_table_comes_to_the_best_reachable_law_and_is_loaded_again(tmp_path: Path) -> None:
    model = fitted(150)
    found = model.evaluate()
    assert found.tv < found.tv_floor + 0.02 < 0.1
    assert fitted(5).evaluate().tv > 0.1  # and the test can fail
    model.save(tmp_path / "run")
    again = sgfn.load(tmp_path / "run", reward=counts)
    torch.testing.assert_close(again.policy(["", "A", "CC"]), model.policy(["", "A", "CC"]))


def test_a_state_learns_nothing_from_another() -> None:
    env = tabulate(make_task("words", TrainConfig()).env, "cpu")
    nets = FlowNets(env, NetConfig(encoder="table", hidden=4))
    assert isinstance(nets.encoder, StateTable)
    state = torch.tensor([[3], [5]])
    nets.log_policy(env.raw[state[:, 0]])[:, 0].sum().backward()  # raw states are answered for by their own rows
    grad = nets.encoder.rows.grad
    assert grad is not None
    assert grad.abs().sum(1).nonzero()[:, 0].tolist() == [3, 5]


@pytest.mark.parametrize("settings", [{"objective": "db", "form": "published"}, {"objective": "kl"}])
def test_a_table_on_a_graph_by_other_objectives(settings: dict[str, str]) -> None:
    config = TrainConfig().with_(net__encoder="table", net__hidden=8, batch=16, grid__side=3, **settings)
    learner = make_learner(make_task("grid", config), torch.device("cpu"))
    before = learner.nets.encoder.rows.detach().clone()
    learner.step()
    assert not torch.equal(learner.nets.encoder.rows, before)


def test_a_table_is_refused_where_states_cannot_be_listed() -> None:
    with pytest.raises(ValueError, match=r"net__encoder 'table' needs states that can be listed.*: use mlp$"):
        sgfn.fit(sgfn.Sequences("ACGT", 40), reward=counts, encoder="table", steps=1, progress=False)
