"""States that trajectories share are evaluated once: losses and gradients stay the same, and acting does."""

from typing import Any

import pytest
import torch
from small_runs import CPU, balance, collected, small, tiny_trainer
from torch import Tensor
from torch.testing import assert_close

from sgfn.landscapes.tasks import make_task
from sgfn.learning.forms import FORMS
from sgfn.learning.kernels.distinct_states import DistinctStateScorer, each_once, shares_distinct
from sgfn.learning.kernels.shared_states import SharedStateScorer
from sgfn.learning.trainer import Trainer
from sgfn.nets.heads import FlowNets


def grid(**changes: Any) -> Trainer:
    """A small run on a grid."""
    return Trainer(make_task("grid", small(**changes)), CPU)


@pytest.mark.parametrize("form", FORMS)
def test_distinct_states_give_the_same_loss_and_gradients(form: str) -> None:
    trainer = grid(form=form, noise__alpha=0.3)
    for _ in range(2):
        trainer.step()
    states, _, rollouts = collected(trainer, 8)
    assert isinstance(states, DistinctStateScorer)
    kernel = trainer.general.noise_kernel(rollouts.states[:, :-1])

    def gradients(scorer: FlowNets | SharedStateScorer, beta: float = 1.0) -> Tensor:
        loss = balance(trainer, scorer, rollouts, beta, kernel)
        found = torch.autograd.grad(loss, trainer.optimiser.parameters, materialize_grads=True)
        return torch.cat([g.flatten() for g in found])

    shared = gradients(states)
    assert_close(shared, gradients(trainer.nets), atol=1e-5, rtol=1e-4)
    assert not torch.allclose(shared, gradients(trainer.nets, beta=2.0), atol=1e-5, rtol=1e-4)


def test_acting_by_a_table_is_acting_by_the_network() -> None:
    trainer = grid(noise__alpha=0.3)
    state = torch.arange(trainer.env.num_states)[:, None]  # pyright: ignore[reportAttributeAccessIssue]
    for batch, few in ((1000, True), (1, False)):
        states = DistinctStateScorer(trainer.env, trainer.nets, batch)  # pyright: ignore[reportArgumentType]
        assert states.few == few
        with torch.no_grad():
            assert_close(states.log_policy(3, state), trainer.nets.log_policy(state))


@pytest.mark.parametrize("batch", [1, 8])
def test_no_sums_are_kept_that_no_update_reads(batch: int) -> None:
    trainer = grid(noise__alpha=0.3)
    states, _, _ = collected(trainer, batch)
    assert isinstance(states, DistinctStateScorer)
    assert states.actor.sums() == []


def test_each_state_is_evaluated_once_where_states_have_numbers() -> None:
    trainer, seen = grid(), []
    state = torch.tensor([[[3], [0], [3]], [[0], [0], [5]]])

    def function(some: Tensor) -> Tensor:
        seen.append(some.numel())
        return torch.cat([some, -some], -1).double()

    assert_close(each_once(function, trainer.env, state), torch.cat([state, -state], -1).double())
    each_once(function, trainer.task.env, state)
    assert seen == [3, 6]
    assert shares_distinct(trainer.env, trainer.nets, CPU)
    assert not shares_distinct(trainer.env, trainer.nets, torch.device("cuda"))
    assert not shares_distinct((tree := tiny_trainer()).env, tree.nets, CPU)
