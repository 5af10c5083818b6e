"""The compiled backend: the same numbers as the general one, with a user's own parts too, and refusals in one line."""

from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from torch import Tensor
from torch.testing import assert_close

from sgfn.config import TrainConfig
from sgfn.envs.sequence import SequenceEnv
from sgfn.landscapes.tasks import Task, make_task
from sgfn.learning import compiled as compiled_module
from sgfn.learning import kept_letters
from sgfn.learning import letters as letters_module
from sgfn.learning import trainer as trainer_module
from sgfn.learning.compilation import CompiledSteps, NotCompilableError
from sgfn.learning.compiled import CompiledBackend
from sgfn.learning.execution import choose, stepper
from sgfn.learning.kernels.cpu_transformer import KeptTransformer
from sgfn.learning.kernels.fixed_length import FixedLengthBackend
from sgfn.learning.letters import CompiledLetters, letters_fit
from sgfn.learning.rollout import act
from sgfn.learning.trainer import Trainer
from sgfn.noise import UniformSlip
from sgfn.objectives.scores import Scores

CPU = torch.device("cpu")
SMALL = {"net__hidden": 16, "net__layers": 1, "batch": 6, "explore": 0.1, "noise__alpha": 0.25}
TRANSFORMER = {"net__encoder": "transformer", "net__heads": 2, "net__layers": 2}
LONG = {"motif__length": 20}
WIDE = {"motif__length": 50, "batch": 64, "net__hidden": 128, "net__layers": 3}
CASES = {
    "mlp": ("motif", LONG),
    "noise model by state": ("motif", LONG | {"dynamics__model": "full"}),
    "transformer": ("motif", LONG | TRANSFORMER),
    "transformer by a kernel": ("motif", LONG | TRANSFORMER | {"net__heads": 1}),
    "published by a kernel": ("motif", LONG | TRANSFORMER | {"net__heads": 1, "form": "published", "objective": "db"}),
    "detailed balance": ("motif", LONG | TRANSFORMER | {"objective": "db"}),
    "subtb": ("motif", LONG | {"objective": "subtb"}),
    "kl": ("motif", LONG | {"objective": "kl"}),
    "kl-entropy": ("motif", LONG | {"objective": "kl-entropy"}),
    "published": ("motif", LONG | {"form": "published", "objective": "db"}),
    "known noise": ("motif", LONG | {"dynamics__mode": "known"}),
    "many letters": ("ehrlich", {"ehrlich__vocab": 20, "ehrlich__length": 15}),
    "replay": ("motif", LONG | {"replay__updates": 1, "replay__capacity": 40, "dynamics__mode": "replay"}),
    "variable length": ("words", {}),
    "graph": ("grid", {}),
}


def as_it_is(function: Callable[..., object], *_: object, **__: object) -> Callable[..., object]:
    """The function itself in place of a compiled one: what is compared is what would be compiled."""
    return function


@pytest.fixture
def uncompiled(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (compiled_module, trainer_module):
        monkeypatch.setattr(module, "compiled", as_it_is)
    monkeypatch.setattr(letters_module, "CompiledSteps", as_it_is)


def trained(task: Task, *, compiling: bool, steps: int = 3, objective: object = None) -> Trainer:
    trainer = Trainer(task, CPU)
    trainer.backend = trainer.general
    if objective is not None:
        trainer.objective = objective  # pyright: ignore[reportAttributeAccessIssue]
        trainer.backend = trainer.general
    if compiling:
        monkey = trainer.fixed_length
        trainer.fixed_length = None  # as where scores are computed
        trainer.compile()
        trainer.fixed_length = monkey
        assert isinstance(trainer.backend, CompiledBackend)
    for _ in range(steps):
        trainer.step()
    return trainer


def assert_same(first: Trainer, second: Trainer) -> None:
    for (name, one), two in zip(first.state().items(), second.state().values(), strict=True):
        if name != "self.generator":
            assert_close(one, two, rtol=2e-4, atol=2e-5, msg=lambda text, name=name: f"{name}: {text}")


@pytest.mark.usefixtures("uncompiled")
@pytest.mark.parametrize(("way", "rounded"), [("compile", True), ("compile-float32", False)])
def test_only_compile_rounds_products_of_the_gradient(way: str, rounded: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kept_letters, "rounds_fast", lambda: True)
    name, changes = CASES["transformer by a kernel"]
    trainer = Trainer(make_task(name, TrainConfig().with_(**SMALL | changes)), CPU)
    stepper(trainer, way)(1)
    made = trainer.general.sequences
    assert isinstance(made, kept_letters.TransformerLetters)
    assert isinstance(made.kept, KeptTransformer)
    assert made.kept.rounded == rounded


@pytest.mark.usefixtures("uncompiled")
@pytest.mark.parametrize("case", CASES)
def test_it_trains_as_the_general_backend_does(case: str) -> None:
    name, changes = CASES[case]
    task = make_task(name, TrainConfig().with_(**SMALL | changes))
    plain, quick = trained(task, compiling=False), trained(task, compiling=True)
    assert_same(plain, quick)
    moved = trained(task, compiling=True, steps=4)
    with pytest.raises(AssertionError):
        assert_same(plain, moved)


EAGER = {
    "uniform slips": {},
    "known noise": {"dynamics__mode": "known"},
    "no noise": {"noise__alpha": 0.0, "dynamics__mode": "known"},
    "nothing explored": {"explore": 0.0},
    "warm": {"temperature": 2.0},
    "warmed by the entropy": {"objective": "kl-entropy", "exploration": "entropy"},
    "hidden rate": {"noise__kind": "hidden"},
    "rates by position": {"noise__kind": "position"},
    "confusion": {"noise__kind": "confusion"},
}


@pytest.mark.usefixtures("uncompiled")
@pytest.mark.parametrize("case", EAGER)
def test_eager_steps_draw_the_numbers_of_compiled_ones(case: str, tmp_path: Path) -> None:
    """Where scores are in no table: the backend that is chosen for eager steps beside the one that is compiled."""
    changes = SMALL | LONG | EAGER[case]
    if case in ("rates by position", "confusion"):
        changes["noise__file"] = tmp_path / "noise.csv"
        changes.pop("noise__alpha")
        rates = "alpha\n" + "".join(f"{0.03 * (t % 9):.2f}\n" for t in range(20))
        matrix = ",A,C,G,T\nA,.7,.1,.1,.1\nC,0,.8,.2,0\nG,.3,0,.7,0\nT,0,0,.1,.9\n"
        changes["noise__file"].write_text(matrix if case == "confusion" else rates)
    task = make_task("motif", TrainConfig().with_(**changes))
    plain, quick = Trainer(task, CPU), Trainer(task, CPU)
    assert isinstance(plain.backend, FixedLengthBackend)
    quick.compile()
    assert isinstance(quick.backend, CompiledBackend)
    for _ in range(3):
        plain.step()
        quick.step()
    assert_same(plain, quick)
    plain.step()
    with pytest.raises(AssertionError):
        assert_same(plain, quick)


def own_objective(scores: Scores, batch: object) -> Tensor:
    """Absolute trajectory balance."""
    total = scores.log_z + scores.log_pf.sum(1)
    return (total - batch.log_reward).abs()  # pyright: ignore[reportAttributeAccessIssue]


class Sticky(SequenceEnv):
    """Noise that depends on the letter before."""

    def kernel(self, state: Tensor, dtype: torch.dtype = torch.float32, rate: object = None) -> Tensor:
        last = torch.nn.functional.one_hot(self.last(state), self.outcomes).to(dtype)
        eye = torch.eye(self.actions, dtype=dtype).expand(*state.shape[:-1], -1, -1)
        return 0.7 * eye + 0.3 * last[..., None, :]


@pytest.mark.usefixtures("uncompiled")
@pytest.mark.parametrize("encoder", [{}, TRANSFORMER])
def test_ones_own_objective_and_noise_pass_through_it(encoder: dict[str, object]) -> None:
    config = TrainConfig().with_(**SMALL | {"motif__length": 20} | encoder)
    task = make_task("motif", config)
    env = Sticky(length=20, alphabet="ACGT", noise=UniformSlip(alpha=0.25))
    task = Task(**{**vars(task), "env": env})
    plain, quick = (trained(task, compiling=c, objective=own_objective) for c in (False, True))
    assert_same(plain, quick)
    other = trained(make_task("motif", config), compiling=True, objective=own_objective)
    with pytest.raises(AssertionError):
        assert_same(other, quick)


@pytest.mark.usefixtures("uncompiled")
@pytest.mark.parametrize("task", ["motif", "words"])
def test_letters_are_those_of_the_plain_rollout(task: str) -> None:
    changes = LONG if task == "motif" else {}
    trainer = Trainer(make_task(task, TrainConfig().with_(**SMALL | TRANSFORMER | changes)), CPU)
    env = trainer.task.env
    assert isinstance(env, SequenceEnv)
    nets = trainer.nets
    if trainer.env is not env:
        pytest.skip("states are numbered") if not letters_fit(trainer.env, nets) else None
    for parameter in nets.policy.parameters():
        torch.nn.init.normal_(parameter, std=0.3, generator=torch.Generator().manual_seed(1))
    draws = trainer.general.draw(trainer.generator, 0.7).rollout
    plain = act(env, trainer.actor(), trainer.task.log_reward, draws)
    found = CompiledLetters(env, nets, CPU).whole_rollout(draws.clock, draws.explore, 0.7)
    for name in ("intended", "realised", "states", "valid"):
        assert_close(getattr(found, name), getattr(plain, name))
    other = CompiledLetters(env, nets, CPU).whole_rollout(draws.clock.flip(0), draws.explore, 0.7)
    assert other is not None
    assert not torch.equal(other.intended, plain.intended)
    made = CompiledLetters(env, nets, CPU)
    assert made.whole_rollout(draws.clock, draws.explore, 0.7) is not None
    assert made.whole_rollout(draws.clock[:, :, :-1], draws.explore, 0.7) is None  # code was compiled for another size


def refused(*_: object, **__: object) -> Callable[..., object]:
    def fail(*_: object) -> object:
        raise RuntimeError("Unsupported: a call of somebody's own\nand much more")

    return fail


def test_what_cannot_be_compiled_is_told_and_runs_without(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compiled_module, "compiled", refused)
    monkeypatch.setattr(letters_module, "CompiledSteps", refused)
    task = make_task("motif", TrainConfig().with_(**SMALL | LONG | TRANSFORMER | {"steps": 5000}))
    trainer = Trainer(task, CPU)
    before = trainer.state()["self.generator"].clone()
    with pytest.raises(NotCompilableError, match=r"refused this step \(Unsupported: a call of somebody's own\)"):
        trainer.compile()
    assert torch.equal(trainer.state()["self.generator"], before)
    with pytest.raises(ValueError, match="accelerate 'compile': the compiler refused"):
        stepper(trainer, "compile")
    chosen = stepper(trainer, "auto")
    chosen(1)
    assert "steps run without compiling" in chosen.notice


@pytest.mark.parametrize(("changes", "steps", "wanted"), [
    (TRANSFORMER, 2_000, "compile"),
    (TRANSFORMER, 1_999, "eager"),
    ({}, 10_000, "compile"),
    ({}, 9_999, "eager"),
    ({"net__hidden": 20}, 100_000, "eager"),
    (TRANSFORMER | WIDE, 500, "compile"),  # large steps are worth it sooner
    (TRANSFORMER | WIDE, 499, "eager"),
    (TRANSFORMER | WIDE | {"net__layers": 2}, 750, "compile"),
    (TRANSFORMER | WIDE | {"net__layers": 2}, 749, "eager"),
])  # fmt: skip
def test_auto_compiles_where_it_saves_time(
    changes: dict[str, object], steps: int, wanted: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sgfn.learning.execution.compiler_missing", lambda _: "")
    trainer = Trainer(make_task("motif", TrainConfig().with_(**SMALL | LONG | changes | {"steps": steps})), CPU)
    assert choose(trainer)[0] == wanted


@pytest.mark.parametrize(("letters", "wanted"), [(5, "compile"), (6, "eager")])
def test_mlps_on_large_alphabets_are_not_compiled_unasked(
    letters: int, wanted: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sgfn.learning.execution.compiler_missing", lambda _: "")
    size = {"bits__k": letters, "bits__length": 8 * letters, "bits__distance": "hamming"}  # k bits a letter
    trainer = Trainer(make_task("bits", TrainConfig().with_(**SMALL | size, steps=100_000)), CPU)
    assert choose(trainer)[0] == wanted
    assert choose(trainer, "compile")[0] == "compile"


def test_a_landscape_made_from_ours_is_not_compiled_unasked() -> None:
    landscape = make_task("motif", TrainConfig().with_(motif__length=20)).landscape
    own = type("Own", (type(landscape),), {})
    assert own.traceable
    assert "traceable" not in vars(own)


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of torch's own modules
def test_steps_are_called_directly_where_arguments_and_results_can_be_told(monkeypatch: pytest.MonkeyPatch) -> None:
    weight, rows, wrapped = torch.randn(3, 3), torch.randn(4, 3), []

    def code(weight: Tensor, second: Tensor, first: Tensor) -> list[Tensor]:
        return [first @ weight, second - first]

    def moved(first: Tensor, none: None, second: Tensor) -> tuple[Tensor, ...]:
        return second - first, first @ weight

    def fake(function: object, backend: Callable[..., Callable[..., list[Tensor]]], **_: object) -> object:
        inner = backend(None, [])  # graphs read constants too, and give results in an order of their own
        return lambda first, none, second: (wrapped.append(1), tuple(reversed(inner(weight, second, first))))[1]

    monkeypatch.setattr("torch._inductor.compile_fx.compile_fx", lambda *_, **__: code)
    monkeypatch.setattr(torch, "compile", fake)
    monkeypatch.setattr("sgfn.learning.compilation.compiled", as_it_is)
    steps = CompiledSteps(moved, CPU)
    for change in (0.0, 1.0, 2.0):
        assert_close(steps(rows + change, None, rows), moved(rows + change, None, rows))
        weight.mul_(1.5)  # in place, as optimisers do
    assert len(wrapped) == 1  # later calls were direct
    same = CompiledSteps(moved, CPU)
    same(rows, None, rows)
    assert same.direct is moved  # one tensor in two places tells nothing
