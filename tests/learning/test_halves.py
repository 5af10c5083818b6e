"""A reward that leaves the device is called between two captured halves of a step, which changes no number."""

from contextlib import nullcontext
from typing import Any

import pytest
import torch
from device_watch import RecordedGraph, Watch, recording
from small_runs import same_tensors
from torch.testing import assert_close

import sgfn
from sgfn.config import TrainConfig
from sgfn.landscapes.tasks import Task, make_task
from sgfn.learning import compiled as compiled_module
from sgfn.learning import execution, kept_letters
from sgfn.learning import letters as letters_module
from sgfn.learning import trainer as trainer_module
from sgfn.learning.compiled import CompiledBackend
from sgfn.learning.execution import HALVES, GraphedStep, HalvedStep, PlainStep, choose, stepper
from sgfn.learning.kernels import mlp_actor
from sgfn.learning.kernels.fixed_length import FixedLengthBackend
from sgfn.learning.trainer import Trainer

CPU = torch.device("cpu")
SMALL = {"net__hidden": 8, "dynamics__hidden": 8, "batch": 6, "explore": 0.1, "noise__alpha": 0.25}
SMALL |= {"callable__function": "test_halves:share_of_a", "optim__warmup": 0}
LONG: dict[str, Any] = {"callable__length": 13}
CASES: dict[str, dict[str, Any]] = {
    "in a table of states": {"callable__length": 3},
    "long": LONG,
    "detailed balance": LONG | {"objective": "db", "form": "published"},
    "heated": LONG | {"objective": "kl-entropy", "exploration": "entropy"},
    "transformer": {"callable__length": 5, "net__encoder": "transformer", "net__heads": 2},
    "variable length": {"callable__length": 4, "callable__min_length": 2},
    "replay": LONG | {"replay__updates": 1, "replay__capacity": 40, "dynamics__mode": "replay"},
    "offline": {"callable__length": 4, "offline__share": 0.5},
}


BY_BACKEND = {
    "own": ("in a table of states", "long", "heated", "replay"),
    "general": ("in a table of states", "detailed balance", "transformer", "variable length", "offline"),
    "compiled": ("long", "detailed balance", "transformer", "offline", "replay"),
}


def share_of_a(texts: list[str]) -> list[float]:
    """A reward in plain Python."""
    return [0.1 + text.count("A") / len(text) for text in texts]


def task_of(**changes: Any) -> Task:
    return make_task("callable", TrainConfig().with_(**SMALL | changes))


def trainer_of(way: str, device: torch.device = CPU, **changes: Any) -> Trainer:
    """A trainer by the backend that the task has uncompiled, by the general one, or by that of compiled steps."""
    offline = torch.randint(4, (9, 4), generator=torch.Generator().manual_seed(5))
    trainer = Trainer(task_of(**changes), device, offline if "offline__share" in changes else None)
    if way == "general":
        trainer.backend = trainer.general
    elif way == "compiled":
        trainer.compile()
        assert isinstance(trainer.backend, CompiledBackend)
    return trainer


@pytest.fixture
def as_on_a_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rollouts that do not look whether states have grown, which a CPU does."""
    monkeypatch.setattr(mlp_actor, "sums_prefixes", lambda _: False)


@pytest.fixture
def stand_ins(monkeypatch: pytest.MonkeyPatch) -> None:
    """Functions themselves in the place of compiled ones, and recorded operations in that of CUDA graphs."""
    for module, name in (
        (compiled_module, "compiled"),
        (trainer_module, "compiled"),
        (letters_module, "CompiledSteps"),
    ):
        monkeypatch.setattr(module, name, lambda function, *_, **__: function)
    for name in ("mlp_fits", "transformer_fits"):  # kernels of CPUs, which look at what they are given
        monkeypatch.setattr(kept_letters, name, lambda *_: False)
    monkeypatch.setattr(torch.cuda, "Stream", lambda: None)
    monkeypatch.setattr(torch.cuda, "CUDAGraph", RecordedGraph)
    monkeypatch.setattr(execution, "beside", lambda _: nullcontext())


def halved(trainer: Trainer, monkeypatch: pytest.MonkeyPatch) -> HalvedStep:
    monkeypatch.setattr(torch.cuda, "graph", lambda graph, **_: recording(trainer, graph))
    return HalvedStep(trainer)


@pytest.mark.usefixtures("stand_ins", "as_on_a_gpu")
@pytest.mark.parametrize(("way", "case"), [(way, case) for way, cases in BY_BACKEND.items() for case in cases])
def test_halves_make_the_same_steps_to_the_bit(way: str, case: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Replayed operations know nothing of Python: what a half took from there would be that of its capture."""
    plain, other = (trainer_of(way, **CASES[case]) for _ in range(2))
    assert (other.halves, other.capturable) == (True, False)
    steps = GraphedStep.WARMUP + 3
    advance = halved(other, monkeypatch)
    advance(steps)
    for _ in range(steps):
        plain.step()
    assert isinstance(advance.first, RecordedGraph)
    assert same_tensors(plain.state(), other.state())
    advance.log_rewards[0] = torch.zeros_like(advance.log_rewards[0])  # elsewhere than where the graph reads them
    advance(2)
    for _ in range(2):
        plain.step()
    assert not same_tensors(plain.state(), other.state())


@pytest.mark.usefixtures("as_on_a_gpu")
@pytest.mark.parametrize("case", CASES)
def test_neither_half_waits_for_the_device(case: str) -> None:
    trainer = trainer_of("general", **CASES[case])
    trainer.step()  # the first one sets the optimisers up
    with Watch():
        begun = trainer.begin_step()
    with Watch(), pytest.raises(AssertionError, match="waits for the device"):
        trainer.score_step(begun)
    found = trainer.score_step(begun)
    with Watch():
        trainer.complete_step(begun, found)


def test_the_function_is_asked_for_what_was_rolled_out() -> None:
    seen: list[list[str]] = []

    def reward(texts: list[str]) -> list[float]:
        seen.append(texts)
        return share_of_a(texts)

    model = sgfn.fit(sgfn.Sequences("AC", 12), reward=reward, steps=3, batch=5, progress=False)
    assert isinstance(model.learner, Trainer)
    assert isinstance(model.learner.backend, FixedLengthBackend)
    seen.clear()
    begun = model.learner.begin_step()
    assert seen == []
    found = model.learner.score_step(begun)
    assert len(seen) == 1
    assert [round(value, 5) for value in found[0].exp().tolist()] == [
        round(share_of_a([text])[0], 5) for text in texts_of(begun.batch.objects[0])
    ]


def texts_of(objects: torch.Tensor) -> list[str]:
    return ["".join("AC"[i] for i in row) for row in objects.tolist()]


REFUSED: dict[str, dict[str, Any]] = {
    "children are scored": {"objective": "eflow", "callable__length": 3},
    "a way to explore": {"exploration": "best", "replay__updates": 1, "callable__length": 3},
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_does_not_fit_is_run_as_before(case: str) -> None:
    trainer = Trainer(task_of(**REFUSED[case]), CPU)
    try:
        assert (trainer.halves, trainer.capturable) == (False, False)
    finally:
        trainer.close()


def test_on_a_cpu_nothing_is_captured() -> None:
    trainer = trainer_of("own", **LONG)
    assert choose(trainer) == ("eager", "")
    assert isinstance(stepper(trainer), PlainStep)
    with pytest.raises(ValueError, match="captures steps on a GPU"):
        stepper(trainer, "graph")


ON_GPU: dict[str, dict[str, Any]] = {
    name: CASES[name] for name in ("in a table of states", "long", "transformer", "variable length")
}


@pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU")
@pytest.mark.parametrize("case", ON_GPU)
def test_on_a_gpu_halves_are_captured(case: str) -> None:
    plain, other, quick = (trainer_of("own", torch.device("cuda"), **ON_GPU[case]) for _ in range(3))
    advance = {"eager": stepper(plain, "eager"), "graph": stepper(other), "compile": stepper(quick, "compile")}
    assert isinstance(advance["graph"], HalvedStep)
    assert isinstance(advance["compile"], HalvedStep)
    assert advance["graph"].notice == HALVES
    for step in advance.values():
        step(GraphedStep.WARMUP + 4)
    assert same_tensors(plain.state(), other.state())
    assert_close(quick.read_meters()["loss"], plain.read_meters()["loss"], rtol=2e-3, atol=1e-4)


def test_parts_of_ones_own_are_not_captured_unasked() -> None:
    """They may keep a state in Python, which a captured step would freeze."""
    trainer = Trainer(task_of(), CPU)
    assert trainer.halves
    trainer.objective = lambda scores, batch: (scores.log_pf.sum(1) - batch.log_reward).square()
    assert not trainer.halves
