"""A flag that nothing reads is refused, in one line that says what would read it; one that is read is taken."""

from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any

import pytest
from exact_tables import PROPERTY
from hypothesis import given, settings
from hypothesis import strategies as st
from small_runs import complaint

import sgfn
from sgfn.config import TrainConfig
from sgfn.config.presets import PRESETS
from sgfn.landscapes.tasks import TASKS
from sgfn.learning.methods import METHODS
from sgfn.learning.unread import reading_lines, refuse_unread, unread, without_unread
from sgfn.noise import NOISES
from sgfn.objectives import OBJECTIVES

DNA, GRID = ["train", "tfbind8"], ["train", "grid"]
GIVEN = {
    "entropy of a balance": (DNA, ["--objective", "tb", "--entropy.gamma", ".2"], "--objective kl-entropy"),
    "weights of a kl": (DNA, ["--objective", "kl", "--entropy.weight-kl", ".1"], "--objective kl-entropy"),
    "a default": (DNA, ["--kl.flow", "tb"], "--objective kl"),
    "a default of a recipe": (GRID, ["--preset", "demo", "--method", "mh", "--net.layers", "2"], "--method mars"),
    "form of kl": (DNA, ["--objective", "kl", "--form", "published"], "--objective tb, vargrad, db, subtb"),
    "form of eflow": (DNA, ["--objective", "eflow", "--form", "blind"], "--objective tb, vargrad, db, subtb"),
    "flow of a balance": (DNA, ["--objective", "tb", "--kl.flow", "db"], "--objective kl"),
    "rounds": (DNA, ["--dynamics.rounds", "8"], "--dynamics.mode replay"),
    "rate of what is known": (
        DNA,
        ["--dynamics.mode", "known", "--dynamics.lr", ".1"],
        "--dynamics.mode batch or replay",
    ),
    "width of no thought": (DNA, ["--thought.width", "64"], "--thought.layers above 0"),
    "heads of an mlp": (DNA, ["--net.heads", "8"], "--net.encoder transformer"),
    "quantile per state": (
        DNA,
        ["--objective", "kl-entropy", "--entropy.variant", "per-state", "--entropy.quantile", ".7"],
        "--entropy.variant quantile",
    ),
    "rates of quantiles": (
        DNA,
        ["--exploration", "entropy", "--entropy.rate-high", "2"],
        "--entropy.variant exponential",
    ),
    "forecast": (["forecast", "births"], ["--net.encoder", "mlp"], "sac or gfn"),
    "forecast's log Z": (["forecast", "births"], ["--optim.log-z-factor", "2"], "--method gfn"),
    "forecast's columns": (["forecast", "births"], ["--time-col", "when"], "--file"),
    "table": (GRID, ["--table.file", "t.csv"], "task table"),
    "motif on bits": (["train", "bits"], ["--motif.length", "8"], "task motif"),
    "factor twice": (["train", "motif-CTCF"], ["--motif.factor", "FOS"], "a task name without a dash"),
    "decay of the lowest": (GRID, ["--table.decay", ".2"], "task table"),
    "target of a fold": (GRID, ["--rna.target", "rna2"], "task rna"),
    "lambda": (DNA, ["--subtb-lambda", ".5"], "--objective subtb"),
    "replayed": (DNA, ["--replay.batch", "8"], "--replay.updates above 0"),
    "kept": (DNA, ["--replay.capacity", "8"], "--replay.updates above 0"),
    "concentration": (DNA, ["--noise.concentration", "8"], "--noise.kind hidden"),
    "noise file": (DNA, ["--noise.file", "rates.csv"], "confusion or position"),
    "stop": (DNA, ["--noise.stop"], "this task has no stop action"),
    "rl": (DNA, ["--rl.epochs", "8"], "--method ppo"),
    "critic": (DNA, ["--method", "sac", "--rl.trace", ".5"], "--method a2c or ppo"),
    "chain": (DNA, ["--method", "mh", "--chain.floor", ".5"], "--method mars"),
    "activation": (DNA, ["--net.encoder", "transformer", "--net.activation", "relu"], "--net.encoder mlp"),
    "ramp": (DNA, ["--method", "random", "--reward.ramp", "8"], "--method gfn"),
    "clipped motif": (["train", "motif"], ["--reward.minimum", ".1"], "task tfbind8"),
    "series": (GRID, ["--series.horizon", "8"], "task series"),
    "two at once": (DNA, ["--kl.flow", "db", "--rl.epochs", "8"], "--kl.flow"),
    "tasks": (["tasks", "grid"], ["--bits.k", "2"], "task bits"),
    "tasks ramp": (["tasks", "grid"], ["--reward.ramp", "2"], "sgfn train"),
    "tasks, none": (["tasks"], ["--reward.ramp", "2"], "sgfn train"),
    "tasks concentration": (["tasks", "grid"], ["--noise.concentration", "2"], "--noise.kind hidden"),
    "compare": (
        ["compare", "tfbind8", "--methods", "tb", "mh"],
        ["--kl.flow", "db"],
        "objective kl",
    ),
    "tasks, a default": (["tasks", "grid"], ["--bits.k", "8"], "task bits"),
    "compare, a default": (["compare", "tfbind8", "--methods", "tb", "mh"], ["--kl.flow", "tb"], "objective kl"),
    "compare on another task": (["compare", "grid"], ["--bits.k", "2"], "task bits"),
}


@pytest.mark.parametrize("name", GIVEN)
def test_one_line_says_what_reads_it(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    words, flags, reader = GIVEN[name]
    line = complaint(capsys, [*words, *flags])
    flag = next(word for word in reversed(flags) if word.startswith("--"))
    assert flag.replace("-", "_").lstrip("_") in line.replace("-", "_")
    assert reader in line
    assert list(tmp_path.iterdir()) == []


TAKEN = [
    {"objective": "kl-entropy", "entropy__gamma": 0.2, "entropy__weight_kl": 0.1, "form": "published"},
    {"objective": "kl-entropy", "entropy__base": "kl", "kl__flow": "subtb", "subtb_lambda": 0.5},
    {"exploration": "entropy", "entropy__gamma": 0.2, "entropy__quantile": 0.8},
    {"objective": "subtb", "subtb_lambda": 0.5, "form": "blind"},
    {"objective": "kl", "kl__weight": 2.0},
    {"dynamics__mode": "replay", "dynamics__rounds": 8, "replay__capacity": 9},
    {"thought__layers": 1, "thought__width": 8, "net__encoder": "transformer", "net__activation": "relu"},
    {"method": "sac", "replay__batch": 8, "explore": 0.2, "rl__average": 0.1},
    {"noise__kind": "hidden", "noise__concentration": 8.0, "noise__alpha": 0.1},
]


@pytest.mark.parametrize("changes", TAKEN, ids=lambda changes: " ".join(changes))
def test_what_is_read_is_taken(changes: dict[str, Any]) -> None:
    config = TrainConfig().with_(**changes)
    refuse_unread("words", config, TrainConfig())
    assert without_unread(config) == config
    with pytest.raises(ValueError, match=r"^--chain\.floor does nothing here: "):
        refuse_unread("words", config.with_(chain__floor=0.5), TrainConfig())


def test_what_a_preset_left_is_not_the_users(tmp_path: Path) -> None:
    demo = PRESETS["demo"].with_(method="mh")
    refuse_unread("grid", demo, PRESETS["demo"])
    with pytest.raises(ValueError, match=r"^--net\.layers does nothing here"):
        refuse_unread("grid", demo.with_(net__layers=5), PRESETS["demo"])
    refuse_unread("grid", demo)  # from Python nobody knows which recipe it was, so any will do
    with pytest.raises(ValueError, match=r"^--net\.layers does nothing here"):
        sgfn.train("grid", demo.with_(net__layers=7), tmp_path / "run", device="cpu")
    with pytest.raises(ValueError, match=r"^--net\.layers does nothing here: .*; --optim\.lr does nothing"):
        refuse_unread("grid", demo, TrainConfig())


def leaves(config: Any, prefix: str = "") -> Iterator[str]:
    for part in fields(config):
        value = getattr(config, part.name)
        yield from leaves(value, f"{prefix}{part.name}.") if is_dataclass(value) else [prefix + part.name]


LEAVES = list(leaves(TrainConfig()))


@pytest.mark.parametrize("name", LEAVES)
def test_every_field_is_read_by_something(name: str) -> None:
    assert any(line.covers(name) for line in reading_lines(TrainConfig()))


def test_every_line_names_fields_that_are() -> None:
    for line in reading_lines(TrainConfig()):
        for name in line.names:
            assert any(leaf == name or leaf.startswith(f"{name}.") for leaf in LEAVES), name
    assert not any(line.covers("nett.heads") for line in reading_lines(TrainConfig()))


LEFT = ("net.encoder", "log.exact_every")  # a forecaster has its own network and no exact law
PLACES = {"published-tfbind8": "tfbind8", "published-grid": "grid", "published-bits": "bits", "forecast": "series"}


@pytest.mark.parametrize("name", PRESETS)
def test_every_preset_passes_for_its_own_use(name: str) -> None:
    config = PRESETS[name]
    refuse_unread(PLACES.get(name, "tfbind8"), config, config)
    left = [flag for flag in unread(PLACES.get(name, "tfbind8"), config) if flag not in LEFT]
    defaults = TrainConfig()
    assert [flag for flag in left if value(config, flag) != value(defaults, flag)] == []


def value(config: TrainConfig, name: str) -> Any:
    for part in name.split("."):
        config = getattr(config, part)
    return config


choices = st.fixed_dictionaries(
    {
        "method": st.sampled_from([name for name in METHODS if name != "forecast"]),
        "objective": st.sampled_from(list(OBJECTIVES)),
        "form": st.sampled_from(["marginal", "published"]),
        "exploration": st.sampled_from(["constant", "entropy"]),
        "entropy__variant": st.sampled_from(["quantile", "per-state", "exponential"]),
        "entropy__base": st.sampled_from(["tb", "kl"]),
        "kl__flow": st.sampled_from(["db", "subtb"]),
        "dynamics__mode": st.sampled_from(["batch", "replay", "known"]),
        "replay__updates": st.integers(0, 1),
        "replay__batch": st.integers(0, 9),
        "net__encoder": st.sampled_from(["mlp", "transformer"]),
        "net__heads": st.sampled_from([2, 4]),
        "noise__kind": st.sampled_from([name for name in NOISES if name in ("uniform", "hidden")]),
        "noise__concentration": st.sampled_from([4.0, 5.0]),
        "chain__floor": st.sampled_from([0.1, 0.2]),
        "rl__epochs": st.sampled_from([4, 5]),
    }
)


@settings(PROPERTY, max_examples=25)
@given(task=st.sampled_from(list(TASKS)), changes=choices)
def test_what_is_left_after_the_unread_is_taken_out_is_read(task: str, changes: dict[str, Any]) -> None:
    config = TrainConfig().with_(**changes)
    lean_one = without_unread(config, task)
    assert without_unread(lean_one, task) == lean_one
    refuse_unread(task, lean_one, TrainConfig())
    ignored = [name for name in unread(task, config) if value(config, name) != value(TrainConfig(), name)]
    if ignored:
        assert lean_one != config
        with pytest.raises(ValueError, match=f"^--{ignored[0]}.* nothing here: "):
            refuse_unread(task, config, TrainConfig())
    else:
        assert lean_one == config
