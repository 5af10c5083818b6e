"""The backend for sequences of one length: the same losses, gradients and laws as the general one."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from exact_tables import chi_square
from small_runs import balance, small, tiny_task, tiny_trainer
from torch import Tensor
from torch.testing import assert_close

from sgfn.config import TrainConfig
from sgfn.envs import SequenceEnv, laws
from sgfn.envs.trajectories import Episodes, Trajectories
from sgfn.landscapes.tasks import make_task
from sgfn.learning.kernels.fixed_length import FixedLengthBackend
from sgfn.learning.kernels.fixed_length_net import RowNet, SpreadRows
from sgfn.learning.kernels.fixed_length_rollout import SequenceBatch
from sgfn.learning.trainer import Trainer
from sgfn.noise import ByPosition, ConfusionMatrix, HiddenRate, Noise, UniformSlip
from sgfn.objectives.detailed_balance import detailed_balance
from sgfn.objectives.scores import Scores

BETA = torch.tensor(1.7)
NOISES: dict[str, Noise] = {
    "none": UniformSlip(alpha=0.0),
    "uniform": UniformSlip(alpha=0.3),
    "position": ByPosition(alphas=(0.1, 0.6, 0.0, 0.4)),
    "hidden": HiddenRate(mean=0.4, concentration=2.0),
    "confusion": ConfusionMatrix(
        matrix=torch.tensor([[0.7, 0.1, 0.2], [0.0, 0.9, 0.1], [0.3, 0.3, 0.4]], dtype=torch.float64)
    ),
}
OBJECTIVES: dict[str, dict[str, Any]] = {
    "tb": {"objective": "tb"},
    "db": {"objective": "db"},
    "subtb": {"objective": "subtb"},
    "blind db": {"objective": "db", "form": "blind"},
    "blind tb": {"objective": "tb", "form": "blind"},
    "kl": {"objective": "kl"},
    "kl over db": {"objective": "kl", "kl__flow": "db"},
    "kl-entropy": {"objective": "kl-entropy", "entropy__weight_kl": 0.2},
    "kl-entropy over kl": {"objective": "kl-entropy", "entropy__base": "kl", "entropy__weight_kl": 0.2},
}


def trainer_on(noise: str, length: int = 4, **changes: Any) -> Trainer:
    """Three letters, and weights that are not near zero."""
    task = tiny_task(small(**changes), length=length)
    env = SequenceEnv(length=length, alphabet="ABC", noise=NOISES[noise])
    trainer = Trainer(replace(task, env=env), torch.device("cpu"))
    generator = torch.Generator().manual_seed(1)
    for module in trainer.modules().values():
        for parameter in module.parameters():
            parameter.data.add_(0.3 * torch.randn(parameter.shape, generator=generator))
    return trainer


def way_of(trainer: Trainer) -> FixedLengthBackend:
    assert isinstance(trainer.backend, FixedLengthBackend)
    assert trainer.backend is trainer.fixed_length
    return trainer.backend


def rolled(trainer: Trainer, batch: int, generator: torch.Generator, *options: Any) -> SequenceBatch:
    roller = way_of(trainer).roller
    return roller.roll(roller.draw(batch, generator, *options))[0]


def as_trajectories(trainer: Trainer, sequences: SequenceBatch) -> Trajectories:
    batch = way_of(trainer).episodes(sequences, way_of(trainer).log_reward(sequences.realised))
    states, valid = trainer.env.unrolled(batch.realised)
    assert torch.equal(valid, batch.valid)
    log_reward = trainer.task.log_reward(trainer.env.objects(states[:, -1]))
    assert_close(log_reward, batch.log_reward)
    return Trajectories(
        intended=batch.intended, realised=batch.realised, valid=valid, states=states, log_reward=log_reward
    )


def general(trainer: Trainer, batch: Trajectories) -> tuple[Tensor, Tensor, list[Tensor], list[Tensor]]:
    """Loss, noise loss and gradients by `scoring` and autograd."""
    from sgfn.learning.dynamics import negative_log_likelihood

    kernel = trainer.general.noise_kernel(batch.states[:, :-1])
    loss = balance(trainer, trainer.general.state_scorer(batch.valid.shape[0]), batch, BETA, kernel)
    nll = negative_log_likelihood(kernel, batch)
    nets = torch.autograd.grad(loss, way_of(trainer).parameters, retain_graph=True)
    model = torch.autograd.grad(nll, way_of(trainer).model.parameters) if nll.requires_grad else []
    return loss, nll, list(nets), list(model)


def as_on_a_gpu(way: FixedLengthBackend, sequences: SequenceBatch, levels: int) -> SequenceBatch:
    """The same sequences, in rows that are evaluated one by one but for those of some levels."""
    way.compare, way.net.outputs_first = True, False
    if isinstance(way.model, RowNet):
        way.model.outputs_first = False
    numbers = way.env.index(way.env.unrolled(sequences.realised.t())[0])
    codes = torch.cat([way.env.encode(level) for level in way.env.levels()])
    rows, index = SpreadRows(way.env, levels, numbers.shape[0], way.device).rows(codes, numbers)
    return replace(sequences, rows=rows, last=None, index=index)


def check_same(trainer: Trainer, batch: int, levels: int | None = None) -> None:
    way, generator = way_of(trainer), torch.Generator().manual_seed(2)
    sequences, said = way.roller.roll(way.roller.draw(batch, generator, explore=0.2))
    if levels is not None:
        sequences = as_on_a_gpu(way, sequences, levels)
        said = way.net.forward_known(sequences.rows, None, sequences.realised)
    known = as_trajectories(trainer, sequences)
    loss, nll, nets, model = general(trainer, known)
    learns = trainer.config.dynamics.mode == "batch"
    for now in (said, way.net.forward_known(sequences.rows, sequences.last, sequences.realised)):
        found = way.gradients(sequences, now, known, BETA, learns)
        assert_close(found.loss, loss.detach(), rtol=1e-4, atol=1e-5)
        assert_close(found.nll, nll.detach(), rtol=1e-4, atol=1e-5)
        assert (found.noise_model is not None) == learns
        taught = way.noise_model_gradients(found.noise_model) if found.noise_model else []
        for mine, theirs in zip([*found.nets, *taught], [*nets, *(model if learns else [])], strict=True):
            assert_close(mine, theirs, rtol=1e-3, atol=2e-5 * float(theirs.abs().max() + 1))
    if learns:
        fitted, gradients = way.fit((known.intended, known.realised, known.log_reward))
        assert_close(fitted, nll.detach(), rtol=1e-4, atol=1e-5)
        for mine, theirs in zip(gradients, model, strict=True):
            assert_close(mine, theirs, rtol=1e-3, atol=2e-5)
    wrong = way.gradients(sequences, said, known, BETA + 1, learns)
    assert not torch.allclose(wrong.loss, loss.detach(), rtol=1e-3)  # and the test can fail


@pytest.mark.parametrize("mode", ["batch", "known"])
@pytest.mark.parametrize("objective", OBJECTIVES)
def test_losses_and_gradients_are_those_of_the_general_backend(objective: str, mode: str) -> None:
    check_same(trainer_on("uniform", dynamics__mode=mode, **OBJECTIVES[objective]), 20)


@pytest.mark.parametrize("levels", [None, 0, 3])
@pytest.mark.parametrize("kind", ["shared", "positional"])
@pytest.mark.parametrize("objective", ["tb", "db", "kl", "kl-entropy"])
def test_noise_models_that_are_tables(objective: str, kind: str, levels: int | None) -> None:
    check_same(trainer_on("position", dynamics__model=kind, **OBJECTIVES[objective]), 20, levels)


@pytest.mark.parametrize("mode", ["batch", "known"])
def test_an_objective_of_ones_own_reads_all_scores(mode: str) -> None:
    """Flows and intentions too, which the configured objective does not need; one that is no loss is refused."""
    trainer, seen = trainer_on("uniform", dynamics__mode=mode), []

    def own(scores: Scores, batch: Episodes) -> Tensor:
        assert scores.log_intention is not None
        seen.append(scores)
        return detailed_balance(scores, batch) + scores.log_intention.exp().square().sum((1, 2))

    trainer.objective = own
    check_same(trainer, 20)
    assert all(scores.log_flow is not None for scores in seen)
    trainer.step()
    with pytest.raises(ValueError, match=r"must return a tensor of shape \[4\], one loss each, got"):
        trainer.objective = lambda scores, batch: detailed_balance(scores, batch).mean()


@pytest.mark.parametrize("levels", [0, 3])
@pytest.mark.parametrize("mode", ["batch", "known"])
@pytest.mark.parametrize("objective", OBJECTIVES)
def test_as_they_are_where_a_gpu_computes_them(objective: str, mode: str, levels: int) -> None:
    check_same(trainer_on("uniform", dynamics__mode=mode, **OBJECTIVES[objective]), 20, levels)


@pytest.mark.parametrize("mode", ["batch", "known"])
@pytest.mark.parametrize("noise", NOISES)
def test_under_every_noise(noise: str, mode: str) -> None:
    check_same(trainer_on(noise, dynamics__mode=mode), 20)


@pytest.mark.parametrize("batch", [1, 2, 3, 9, 26, 27, 200])
@pytest.mark.parametrize("length", [1, 2, 4])
def test_for_every_share_of_early_states(batch: int, length: int) -> None:
    check_same(trainer_on("uniform", length, objective="db" if length > 1 else "tb"), batch)


@pytest.mark.parametrize("activation", ["relu", "gelu", "silu"])
@pytest.mark.parametrize("layers", [1, 2, 3])
def test_for_every_network(activation: str, layers: int) -> None:
    check_same(trainer_on("uniform", net__activation=activation, net__layers=layers, dynamics__layers=layers), 20)


def count_of(env: SequenceEnv, sequences: SequenceBatch) -> Tensor:
    return torch.bincount(env.object_index(sequences.realised.t()), minlength=env.num_objects)


@pytest.mark.parametrize("batch", [50, 40000])
@pytest.mark.parametrize("noise", NOISES)
def test_rollouts_follow_the_exact_law(noise: str, batch: int) -> None:
    trainer = trainer_on(noise, length=3)
    env, generator = trainer.task.env, torch.Generator().manual_seed(3)
    assert isinstance(env, SequenceEnv)
    batches = [rolled(trainer, batch, generator) for _ in range(1 if batch > 50 else 400)]
    counts = torch.stack([count_of(env, sequences) for sequences in batches]).sum(0)
    assert chi_square(counts, trainer.law()) > 1e-3
    uniform = torch.full_like(trainer.law(), 1 / env.num_objects)
    assert chi_square(counts, uniform) < 1e-9


@pytest.mark.parametrize(("explore", "temperature"), [(0.3, 1.0), (0.0, 2.5), (0.2, 0.5)])
def test_rollouts_explore_as_told(explore: float, temperature: float) -> None:
    trainer = trainer_on("none", length=3)
    generator = torch.Generator().manual_seed(4)
    warmth = torch.tensor(temperature) if temperature > 2 else temperature
    sequences = rolled(trainer, 60000, generator, explore, warmth)

    def behaves(states: Tensor) -> Tensor:
        tempered_policy = torch.softmax(trainer.policy(states).log() / temperature, -1)
        return torch.lerp(tempered_policy, torch.full_like(tempered_policy, 1 / 3), explore)

    env = trainer.task.env
    assert isinstance(env, SequenceEnv)
    assert chi_square(count_of(env, sequences), laws.law(env, behaves)) > 1e-3
    assert chi_square(count_of(env, sequences), laws.law(env, trainer.policy)) < 1e-9


@pytest.mark.parametrize("noise", ["uniform", "position", "confusion", "hidden"])
def test_noise_acts_as_the_kernel_says(noise: str) -> None:
    """Outcomes given the position and the intention; after the first step a hidden rate shows in the state."""
    trainer = trainer_on(noise)
    sequences = rolled(trainer, 50000, torch.Generator().manual_seed(5))
    pairs = sequences.intended * 3 + sequences.realised
    counts = torch.stack([torch.bincount(row, minlength=9) for row in pairs]).view(4, 3, 3)
    known = slice(0, 1 if noise == "hidden" else 4)
    assert chi_square(counts[known], way_of(trainer).noise.table[known]) > 1e-3


def test_a_hidden_rate_is_the_same_along_an_episode() -> None:
    trainer = trainer_on("hidden")
    sequences = rolled(trainer, 20000, torch.Generator().manual_seed(6))
    slipped = (sequences.intended != sequences.realised).float()
    together = (slipped[0] * slipped[1]).mean() - slipped[0].mean() * slipped[1].mean()
    assert together > 0.02
    alone = trainer_on("uniform")
    sequences = rolled(alone, 20000, torch.Generator().manual_seed(6))
    slipped = (sequences.intended != sequences.realised).float()
    assert (slipped[0] * slipped[1]).mean() - slipped[0].mean() * slipped[1].mean() < 0.01


WAYS: dict[str, tuple[dict[str, Any], bool]] = {
    "as it is": ({}, True),
    "kl": ({"objective": "kl"}, True),
    "published": ({"form": "published"}, False),
    "eflow": ({"objective": "eflow"}, False),
    "transformer": ({"net__encoder": "transformer", "net__heads": 2}, False),
    "thought": ({"thought__layers": 1, "thought__width": 8}, False),
}


@pytest.mark.parametrize("case", WAYS)
def test_where_it_fits(case: str) -> None:
    changes, quick = WAYS[case]
    trainer = tiny_trainer(**changes)
    assert (trainer.fixed_length is not None) == isinstance(trainer.backend, FixedLengthBackend) == quick


@pytest.mark.parametrize(("task", "quick"), [("words", False), ("grid", False), ("motif", True), ("bits", True)])
def test_which_tasks_it_fits(task: str, quick: bool) -> None:
    config = small().with_(motif__length=20, bits__length=16, bits__modes=4)
    trainer = Trainer(make_task(task, config), torch.device("cpu"))
    assert (trainer.fixed_length is not None) == quick
    trainer.step()
    assert trainer.read_meters()["length"] == (16 / config.bits.k if task == "bits" else 20) or not quick


def test_offline_data_is_left_to_the_general_backend(tmp_path: Path) -> None:
    config = small(offline__share=0.5)
    trainer = Trainer(tiny_task(config), torch.device("cpu"), torch.tensor([[0, 1, 2]]))
    assert trainer.fixed_length is None
    assert trainer.backend is trainer.general
    trainer.step()


def test_long_sequences_need_no_table_of_states() -> None:
    """4^200 sequences: nothing is enumerated."""
    trainer = Trainer(make_task("motif", TrainConfig().with_(batch=3, motif__length=200)), torch.device("cpu"))
    assert way_of(trainer).rewards is None
    trainer.step()
    assert way_of(trainer).roller.rows(3).shared == 1
