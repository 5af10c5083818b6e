"""Reading a run runs no code and opens no file that only the run names, unless its reader names them or trusts it."""

import itertools
import json
import shutil
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from forecast_runs import small_config, write_csv
from small_runs import complaint, small, small_on

import sgfn
from sgfn.cli.commands import main
from sgfn.compare.comparison import PLAN
from sgfn.compare.worker_process import outcome
from sgfn.config import to_dict
from sgfn.config.files import read_json
from sgfn.config.registry import Entry
from sgfn.landscapes.proxies import fit_proxy
from sgfn.landscapes.proxies.files import write_proxy
from sgfn.landscapes.tasks import TASKS, register_task
from sgfn.learning.exploration.registry import EXPLORATIONS, WayEntry
from sgfn.objectives import OBJECTIVES
from sgfn.objectives.registry import ObjectiveEntry
from sgfn.objectives.trajectory_balance import trajectory_balance
from sgfn.reports.sources import read_source
from sgfn.runs import trust as trusting
from sgfn.runs.folder import Run
from sgfn.series.forecaster import Forecaster

COUNT = itertools.count()
CPU = ["--device", "cpu"]
PAYLOAD = """
from pathlib import Path
from sgfn.objectives.trajectory_balance import trajectory_balance as balance
Path({marker!r}).touch()
def f(texts, *more, **others):
    return balance(texts, *more) if more else [1.0 + text.count("A") for text in texts]
"""


@dataclass(frozen=True)
class Payload:
    """A module that leaves a mark when it is imported."""

    name: str
    mark: Path

    @property
    def ran(self) -> bool:
        """Whether it was imported since this was last asked."""
        there = self.mark.exists()
        self.mark.unlink(missing_ok=True)
        sys.modules.pop(self.name.partition(":")[0], None)
        return there


@pytest.fixture
def payload(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Payload:
    """In the current folder, beside the run."""
    name, mark = f"payload_{next(COUNT)}", tmp_path / "mark"
    (tmp_path / f"{name}.py").write_text(PAYLOAD.format(marker=str(mark)))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(trusting, "CREATED", set())  # nothing was named in this process
    return Payload(f"{name}:f", mark)


def rewrite(run: Path, name: str = "config.json", **changes: Any) -> None:
    """Change a JSON file of a run; `noise__kind` reaches into the configuration, `task` is its own field."""
    file = run / name
    data = read_json(file)
    for field, value in changes.items():
        part, _, rest = field.partition("__")
        if field in data:
            data[field] = value
        elif rest:
            data["config"][part][rest] = value
        else:
            data["config"][part] = value
    file.write_text(json.dumps(data))


def save_library(run: Path, **parts: Any) -> None:
    empty = {"format": 1, "task": "grid", "env": None, "noise": None, "reward": None, "objective": None}
    (run / "library.json").write_text(json.dumps(empty | {"encoder": None} | parts))


MEASURED = "sequence,score\n" + "".join(
    f"{a}{b}{c},{1 + (a + b + c).count('A')}\n" for a in "ACG" for b in "ACG" for c in "ACG"
)


def measured(run: Path, kind: str) -> None:
    """A run on a table that it has a copy of, with a proxy of a kind."""
    (run / "data").mkdir()
    (run / "data" / "t.csv").write_text(MEASURED)
    rewrite(run, task="table", table__file=str(run / "data" / "t.csv"), proxy__kind=kind)
    data = read_json(run / "config.json") | {"files": {"table.file": {"sha256": None, "copy": "data/t.csv"}}}
    (run / "config.json").write_text(json.dumps(data))


CODE: dict[str, Callable[[Path, str], None]] = {
    "task": lambda run, name: rewrite(run, task=name),
    "method": lambda run, name: rewrite(run, method=name),
    "objective": lambda run, name: rewrite(run, objective=name),
    "form": lambda run, name: rewrite(run, form=name),
    "noise.kind": lambda run, name: rewrite(run, noise__kind=name),
    "net.encoder": lambda run, name: rewrite(run, net__encoder=name),
    "exploration": lambda run, name: rewrite(run, exploration=name),
    "kl.flow": lambda run, name: rewrite(run, objective="kl", kl__flow=name),
    "entropy.base": lambda run, name: rewrite(run, objective="kl-entropy", entropy__base=name),
    "proxy.kind": measured,
    "callable.function": lambda run, name: rewrite(run, task="callable", callable__function=name, callable__length=2),
    "reward": lambda run, name: save_library(run, reward={"name": name, "label": name}),
    "task of a model": lambda run, name: save_library(run, task=name),
}
"""Each way in which a run folder names code."""
LIBRARY = ("reward", "task of a model")


def words_of(verb: str, run: Path) -> list[str]:
    if verb == "train":
        return ["train", str(read_json(run / "config.json")["task"]), "--resume", "--out", str(run), *CPU]
    more = {"evaluate": ["--samples", "16", *CPU], "sample": ["-n", "4", "--out", str(run.parent / "s.csv"), *CPU]}
    return [verb, str(run), *more.get(verb, [])]


def in_python(verb: str, run: Path, **trust: Any) -> None:
    if verb == "evaluate":
        sgfn.evaluate(run, samples=16, device="cpu", **trust)
    elif verb == "sample":
        sgfn.sample(run, 4, run.parent / f"{next(COUNT)}.csv", device="cpu", **trust)
    elif verb == "load":
        sgfn.load(run, **trust)
    elif verb == "Run":
        sgfn.Run(path=run, **trust).load(torch.device("cpu"))
    else:
        sgfn.train(read_json(run / "config.json")["task"], None, run, resume=True, device="cpu", **trust)


def attempt(verb: str, run: Path, **trust: Any) -> None:
    """What the payload returns may be refused, or may not work."""
    with suppress(Exception):
        in_python(verb, run, **trust)


@pytest.fixture
def strange_run(grid_run: Path) -> Path:
    """A run by somebody else, half trained and not evaluated."""
    rewrite(grid_run, steps=40)
    (grid_run / "exact.json").unlink(missing_ok=True)
    return grid_run


@pytest.mark.parametrize("field", CODE)
def test_no_verb_imports_what_only_the_run_names(
    field: str, payload: Payload, strange_run: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    CODE[field](strange_run, payload.name)
    flag = field.removesuffix(" of a model")
    trains = field not in (*LIBRARY, "task")  # the command names the task, and a saved model is not resumed
    again = f"name it again with --{flag} {payload.name}, or add --trust (in Python trust=True) if you trust the folder"
    for verb in ("evaluate", "sample", "report", *(["train"] * trains)):
        line = complaint(capsys, words_of(verb, strange_run))
        assert line == f"{strange_run} names code that would be run ({flag} '{payload.name}'): {again}"
    for verb in ("evaluate", "sample", "load", "Run", *(["train"] * trains)):
        with pytest.raises(ValueError, match="names code that would be run"):
            in_python(verb, strange_run)
    assert not payload.ran
    for trust in (True, {flag: payload.name}):
        attempt("load", strange_run, trust=trust)
        assert payload.ran  # and the test can fail


@pytest.mark.parametrize("verb", ["evaluate", "sample", "report", "train"])
def test_every_verb_runs_what_is_trusted_or_named_again(
    verb: str, payload: Payload, strange_run: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rewrite(strange_run, objective=payload.name)
    words = words_of(verb, strange_run)
    line = complaint(capsys, [*words, "--objective", "other:f"])
    if verb == "train":
        assert line.endswith("continues with its own configuration: with --resume leave --objective out")
    else:
        has = f"{strange_run} has objective '{payload.name}', not 'other:f'"
        assert line == f"{has}: leave --objective out, or name what it has"
    assert not payload.ran
    assert main([*words, "--objective", payload.name]) == 0
    assert payload.ran
    rewrite(strange_run, steps=60)
    (strange_run / "exact.json").unlink(missing_ok=True)
    (strange_run.parent / "s.csv").unlink(missing_ok=True)
    assert main([*words, "--trust"]) == 0
    assert payload.ran


@pytest.mark.parametrize("verb", ["evaluate", "sample", "Run", "train"])
def test_every_function_runs_what_is_trusted(verb: str, payload: Payload, strange_run: Path) -> None:
    rewrite(strange_run, objective=payload.name)
    in_python(verb, strange_run, trust=True)
    assert payload.ran
    rewrite(strange_run, steps=60)
    in_python(verb, strange_run, trust={"objective": payload.name})
    assert payload.ran


def test_several_names_are_listed_with_their_flags(
    payload: Payload, strange_run: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rewrite(strange_run, objective=payload.name, form="os:system", noise__kind="sgfn.compare.workers:subprocess.call")
    line = complaint(capsys, ["evaluate", str(strange_run), "--objective", payload.name])
    kind = "sgfn.compare.workers:subprocess.call"  # a module of ours holds others'
    assert f"(form 'os:system', noise.kind '{kind}')" in line
    assert f"name them again with --form os:system --noise.kind {kind}, or add --trust" in line


def test_ways_to_explore_that_are_joined(
    payload: Payload, strange_run: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """One that is ours, or known here, vouches for no other."""
    monkeypatch.setattr(EXPLORATIONS, "entries", dict(EXPLORATIONS.entries))
    EXPLORATIONS.add(WayEntry(name="mine:way"))
    for ways in (f"entropy+{payload.name}", f"{payload.name}+entropy", f"mine:way+{payload.name}"):
        rewrite(strange_run, exploration=ways)
        for verb in ("evaluate", "sample", "report", "train"):
            line = complaint(capsys, words_of(verb, strange_run))
            assert f"names code that would be run (exploration '{ways}'): name it again with --exploration" in line
        line = complaint(capsys, [*words_of("evaluate", strange_run), "--exploration", payload.name])
        assert f"has exploration '{ways}'" in line
    assert not payload.ran
    rewrite(strange_run, exploration="entropy+mine:way")
    assert main(words_of("evaluate", strange_run)) == 0


def test_a_saved_proxy_that_names_code(payload: Payload, strange_run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The file names the code, and the configuration does not."""
    measured(strange_run, "auto")
    rows = [line.split(",") for line in MEASURED.splitlines()[1:]]
    proxy = fit_proxy([row[0] for row in rows], np.array([float(row[1]) for row in rows]), alphabet="ACG", kind="ridge")
    proxy.kind = payload.name
    write_proxy(proxy, strange_run / "data" / "proxy.safetensors")
    rewrite(strange_run, proxy__file=str(strange_run / "data" / "proxy.safetensors"))
    data = read_json(strange_run / "config.json")
    data["files"]["proxy.file"] = {"sha256": None, "copy": "data/proxy.safetensors"}
    (strange_run / "config.json").write_text(json.dumps(data))
    for verb in ("evaluate", "sample", "report", "train"):
        line = complaint(capsys, words_of(verb, strange_run))
        assert f"names code that would be run ('{payload.name}')" in line
    with pytest.raises(ValueError, match="names code that would be run"):
        sgfn.load(strange_run)
    assert not payload.ran


def test_what_the_command_names_must_be_the_runs(
    payload: Payload, strange_run: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    line = complaint(capsys, ["evaluate", str(strange_run), "--callable.function", payload.name])
    fix = "--callable.function names again what a run was made with, and changes nothing in it; leave it out"
    assert line == f"{strange_run} names no callable.function, not '{payload.name}': {fix}"
    assert not payload.ran


# Reports


def test_a_report_of_an_evaluated_run_needs_no_trust(payload: Payload, strange_run: Path) -> None:
    """Every field at once: curves, titles and pages are drawn without the code."""
    sgfn.evaluate(strange_run, samples=16, device="cpu")
    rewrite(strange_run, task="callable", callable__function=payload.name, net__encoder=payload.name)
    rewrite(strange_run, noise__kind=payload.name, form=payload.name)
    rewrite(strange_run, objective=payload.name, kl__flow=payload.name, entropy__base=payload.name)
    assert main(["report", str(strange_run), "--html"]) == 0
    assert f"{payload.name} noise (alpha 0.25)" in (strange_run / "report.html").read_text()
    titles = {payload.name: f"{payload.name} {payload.name}", "kl": f"kl, {payload.name} flow"}
    titles["kl-entropy"] = f"kl-entropy on {payload.name} {payload.name}"
    for objective, title in titles.items():
        rewrite(strange_run, objective=objective)
        assert read_source(strange_run).objective == title
    assert not payload.ran


# What this process knows


def test_what_was_registered_here_is_trusted(
    payload: Payload, strange_run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(OBJECTIVES, "entries", dict(OBJECTIVES.entries))
    monkeypatch.setattr(TASKS, "entries", dict(TASKS.entries))
    OBJECTIVES.add(ObjectiveEntry(name="mine:balance", function=trajectory_balance))
    rewrite(strange_run, objective="mine:balance")
    assert sgfn.evaluate(strange_run, samples=16, device="cpu")["step"] == 20
    register_task("my-grid", small_grid)
    rewrite(strange_run, task="test_trust:small_grid")
    assert sgfn.evaluate(strange_run, samples=16, device="cpu")["step"] == 20
    TASKS.remove("my-grid")
    with pytest.raises(ValueError, match="names code"):
        sgfn.evaluate(strange_run, samples=16, device="cpu")


def small_grid(name: str, config: sgfn.TrainConfig) -> Any:
    return sgfn.make_task("grid", config)


def test_a_run_that_this_process_made_is_its_own(payload: Payload, tmp_path: Path) -> None:
    run = tmp_path / "mine"
    sgfn.train("grid", small(objective=payload.name), run, device="cpu")
    assert sgfn.evaluate(run, samples=16, device="cpu")["step"] == 20
    trusting.CREATED.clear()  # as in another process
    with pytest.raises(ValueError, match="names code"):
        sgfn.evaluate(run, samples=16, device="cpu")


def test_the_commands_that_are_printed_name_the_code(
    payload: Payload, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    words = ["train", "callable", "--callable.function", payload.name, "--callable.length", "3", "--out", "mine", *CPU]
    assert main([*words, "--steps", "2", "--batch", "4", "--objective", payload.name]) == 0
    told = capsys.readouterr().out.splitlines()[-1]
    assert told == f"next: sgfn evaluate mine --objective {payload.name} --callable.function {payload.name}"
    trusting.CREATED.clear()
    assert main(told.split()[2:]) == 0
    from sgfn.runs.train import Acceleration, _command

    task, run = "callable", Run(path=Path("mine"))
    flags = f"--objective {payload.name} --callable.function {payload.name}"
    assert _command(task, run, Acceleration("auto", insist=True)) == f"sgfn train callable --resume {flags} --out mine"
    assert main([*_command(task, run, Acceleration("auto", insist=True)).split()[1:], "--steps", "4", *CPU]) == 0
    with pytest.raises(ValueError, match="names code"):
        sgfn.train("callable", None, "mine", resume=True)  # pyright: ignore[reportArgumentType]


# Objects in the place of names


def test_objects_given_to_load_stand_for_the_code(payload: Payload, tmp_path: Path) -> None:
    run = tmp_path / "mine"
    config = small_on("callable", callable__function=payload.name, callable__length=3)
    sgfn.train("callable", config, run, device="cpu")
    payload.ran  # noqa: B018 -- forget it
    trusting.CREATED.clear()
    with pytest.raises(ValueError, match="names code"):
        sgfn.load(run)
    assert len(sgfn.load(run, reward=lambda texts: [1.0] * len(texts)).sample(4)) == 4
    rewrite(run, noise__kind=payload.name)
    with pytest.raises(ValueError, match=r"\(noise\.kind"):
        sgfn.load(run, reward=lambda texts: [1.0] * len(texts))
    assert len(sgfn.load(run, reward=lambda texts: [1.0] * len(texts), noise=0.1).sample(4)) == 4
    assert not payload.ran


# Files


OPENED: list[str] = []
WATCHING = [False]


def _watch(event: str, values: tuple[Any, ...]) -> None:
    if WATCHING[0] and event == "open":
        OPENED.append(str(values[0]))


sys.addaudithook(_watch)


@pytest.fixture
def opened() -> Iterator[list[str]]:
    """Names of all files that Python opens."""
    OPENED.clear()
    WATCHING[0] = True
    yield OPENED
    WATCHING[0] = False


SECRET = "root:x:0:0:of nobody's business\n"
FILES: dict[str, dict[str, Any]] = {
    "table.file": {"task": "table"},
    "noise.file": {"noise__kind": "position"},
    "proxy.file": {},
    "offline.file": {"offline__share": 0.25},
    "series.file": {"task": "series"},
}


@pytest.fixture
def secret(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A file of the reader's machine."""
    file = tmp_path_factory.mktemp("home") / "secret.csv"
    file.write_text(SECRET)
    return file


def with_file(run: Path, field: str, file: Path, copy: str | None, how: str) -> None:
    rewrite(run, **FILES[field], **{field.replace(".", "__"): str(file)})
    data = read_json(run / "config.json")
    data["files"] = {} if how == "no record" else {field: {"sha256": None, "copy": copy}}
    if how == "format 1":
        data |= {"format": 1, "files": {field: "ab"}}
    (run / "config.json").write_text(json.dumps(data))


WAYS = ("no record", "no copy", "format 1", "absolute", "above", "link", "linked folder")


@pytest.mark.parametrize(
    ("field", "how"), [("table.file", how) for how in WAYS] + [(f, "no record") for f in FILES][1:]
)
def test_no_file_outside_the_folder_is_opened(
    field: str, how: str, strange_run: Path, secret: Path, opened: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    copies = {"absolute": str(secret), "above": f"../../{secret.parent.name}/{secret.name}", "link": "data/t.csv"}
    copies["linked folder"] = f"data/{secret.name}"
    if how == "link":
        (strange_run / "data").mkdir()
        (strange_run / "data" / "t.csv").symlink_to(secret)
    if how == "linked folder":
        (strange_run / "data").symlink_to(secret.parent)
    with_file(strange_run, field, secret, copies.get(how), how)
    told = {"absolute": "is not inside the folder", "above": "is not inside the folder"}
    told |= {"link": "is a link that leads out of", "linked folder": "is a link that leads out of"}
    for verb in ("evaluate", "sample", "report", "train"):
        line = complaint(capsys, words_of(verb, strange_run))
        assert "nobody's business" not in line
        if field != "series.file" or verb in ("sample", "train"):  # a forecast is not evaluated
            assert told.get(how, f"has no copy of a file that it names ({field} '{secret}'): name it again") in line
    with pytest.raises(
        ValueError, match="forecast" if field == "series.file" else told.get(how, "has no copy of a file")
    ):
        sgfn.load(strange_run)
    assert str(secret) not in opened


@pytest.mark.parametrize("name", ["config.json", "metrics.jsonl", "exact.json", "library.json", "checkpoint", ".lock"])
def test_links_out_of_the_folder_are_not_followed(
    name: str, strange_run: Path, secret: Path, opened: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    train, place = words_of("train", strange_run), strange_run / name
    shutil.rmtree(place, ignore_errors=True)
    place.unlink(missing_ok=True)
    place.symlink_to(secret.parent if name == "checkpoint" else secret)
    replacing = [word.replace("--resume", "--overwrite") for word in train]
    for words in (train, replacing, *(words_of(verb, strange_run) for verb in ("evaluate", "sample", "report"))):
        line = complaint(capsys, words)
        assert "is a link that leads out of" in line
        assert "nobody's business" not in line
    with pytest.raises(ValueError, match="is a link that leads out of"):
        sgfn.load(strange_run)
    assert str(secret) not in opened
    assert secret.read_text() == SECRET


def test_a_link_may_be_trusted(strange_run: Path, tmp_path: Path) -> None:
    """Somebody may keep checkpoints on another disk."""
    (strange_run / "checkpoint").rename(tmp_path / "elsewhere")
    (strange_run / "checkpoint").symlink_to(tmp_path / "elsewhere")
    assert main(["evaluate", str(strange_run), *CPU]) == 2
    for words in (["evaluate", "--samples", "16", *CPU], ["report"], ["sample", "-n", "4", *CPU]):
        assert main([words[0], str(strange_run), *words[1:], "--trust"]) == 0
    assert main(["train", "grid", "--resume", "--trust", "--out", str(strange_run), *CPU]) == 0
    linked = tmp_path / "link"
    linked.symlink_to(strange_run)
    (strange_run / "checkpoint").unlink()
    (tmp_path / "elsewhere").rename(strange_run / "checkpoint")
    assert main(["evaluate", str(linked), "--samples", "16", *CPU]) == 0  # the folder itself was named


def test_a_file_named_again_is_read(
    strange_run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """As of a run of sgfn 0.1, which kept no copies."""
    monkeypatch.chdir(tmp_path)
    rates = tmp_path / "rates.csv"
    rates.write_text("alpha\n" + "0.1\n" * 5)
    with_file(strange_run, "noise.file", rates, None, "no copy")
    words = ["evaluate", str(strange_run), "--samples", "16", *CPU]
    assert f"name it again with --noise.file {rates}, or add --trust" in complaint(capsys, words)
    assert "has noise.file" in complaint(capsys, [*words, "--noise.file", "other.csv"])
    assert main([*words, "--noise.file", "rates.csv"]) == 0
    train = words_of("train", strange_run)
    assert "name it again with --noise.file" in complaint(capsys, train)
    assert main([*train, "--noise.file", "rates.csv"]) == 0


# Forecasts


@pytest.fixture(scope="module")
def forecast_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("forecast")
    sgfn.train("series", small_config(write_csv(folder / "sales.csv")), folder / "run", device="cpu")
    return folder / "run"


def test_a_forecast_imports_nothing(
    payload: Payload, forecast_run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = Path(shutil.copytree(forecast_run, tmp_path / "run"))
    resume = ["forecast", "--resume", "--windows", "0", "--baselines", "seasonal-naive", "--out", str(run), *CPU]
    for field in ("objective", "noise.kind", "method"):
        CODE[field](run, payload.name)
        for words in (resume, ["sample", str(run), "-n", "2", "--out", "paths.csv", *CPU]):
            assert "names code that would be run" in complaint(capsys, words)
        with pytest.raises(ValueError, match="names code that would be run"):
            Forecaster.load(run)
    assert not payload.ran
    assert main([*resume, "--trust"]) == 2  # it is no learner
    assert payload.ran


def test_a_forecast_reads_its_own_copy(
    forecast_run: Path, tmp_path: Path, secret: Path, opened: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    run = Path(shutil.copytree(forecast_run, tmp_path / "run"))
    resume = [
        "forecast",
        "--resume",
        "--windows",
        "0",
        "--baselines",
        "seasonal-naive",
        "--figures",
        "0",
        "--out",
        str(run),
        *CPU,
    ]
    assert main(["sample", str(run), "-n", "2", "--out", str(tmp_path / "p.csv"), *CPU]) == 0
    with_file(run, "series.file", secret, None, "no copy")
    line = complaint(capsys, resume)
    assert f"has no copy of a file that it names (--file '{secret}'): name it again with --file {secret}" in line
    assert str(secret) not in opened


# Comparisons


def test_a_comparison_imports_no_method_that_was_not_asked_for(
    payload: Payload, stub: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    config = small(steps=20)
    how = {"seeds": 1, "samples": 8, "device": "cpu"}
    sgfn.compare("grid", config, stub, methods=["tb"], **how)
    plan = read_json(stub / PLAN)
    for method in (payload.name, f"published-{payload.name}", "../../elsewhere:f"):
        (stub / PLAN).write_text(json.dumps(plan | {"cells": [*plan["cells"], [method, 0.25, 0]]}))
        with pytest.raises(
            ValueError, match=f"names code that would be run .methods '{method}'.: name it again with --m"
        ):
            sgfn.compare("grid", config, stub, methods=["tb"], **how)
        assert not payload.ran
    (stub / PLAN).write_text(json.dumps(plan | {"cells": [*plan["cells"], [payload.name, 0.25, 0]]}))
    sgfn.compare("grid", config, stub, methods=["tb"], **how, trust=True)
    assert payload.ran
    sgfn.compare("grid", config, stub, methods=["tb", payload.name], **how)
    assert payload.ran
    sgfn.compare("grid", config, stub, methods=["tb"], **how)  # this process asked for it


def test_a_worker_trusts_what_its_job_names(payload: Payload, tmp_path: Path) -> None:
    """Its parent was told so, also where the cell goes on; a part that only the cell's folder names is refused."""
    config, cell = small(objective=payload.name), tmp_path / "cell"
    sgfn.train("grid", config, cell, device="cpu")
    trusting.CREATED.clear()
    job = {"task": "grid", "config": to_dict(config), "path": str(cell), "samples": 16, "copies": {}}
    job |= {"device": "cpu", "accelerate": "auto"}
    assert outcome(job) == 0
    assert payload.ran
    save_library(cell, reward={"name": "os:system", "label": ""})
    assert "was saved by model.save" in str(outcome(job))
    assert not payload.ran


def test_a_comparison_follows_no_links(stub: Path, secret: Path, opened: list[str]) -> None:
    config, how = small(steps=20), {"seeds": 1, "samples": 8, "device": "cpu", "methods": ["tb"]}
    sgfn.compare("grid", config, stub, **how)
    cell = stub / "tb" / "alpha0.25" / "seed0"
    for name in ("metrics.jsonl", "exact.json", "error.txt", "seconds.json"):
        kept = (cell / name).read_bytes() if (cell / name).is_file() else None
        (cell / name).unlink(missing_ok=True)
        (cell / name).symlink_to(secret)
        found = sgfn.compare("grid", config, stub, **how)
        assert "is a link that leads out of" in found.rows[0]["error"]
        (cell / name).unlink()
        (cell / "error.txt").unlink(missing_ok=True)
        if kept is not None:
            (cell / name).write_bytes(kept)
    cell.rename(secret.parent / "cell")
    cell.symlink_to(secret.parent / "cell")
    with pytest.raises(ValueError, match="is a link that leads out of"):
        sgfn.compare("grid", config, stub, **how)
    assert str(secret) not in opened


def test_every_field_that_may_name_code_is_known() -> None:
    """A registry or a field that is new must be in the tables here."""
    assert set(trusting.CODE) | {"task"} == {*CODE} - {*LIBRARY}
    assert set(FILES) == set(sgfn.TrainConfig().with_(**{name.replace(".", "__"): Path("x") for name in FILES}).files)
    assert all(
        issubclass(type(entry), Entry) for registry in trusting.REGISTRIES.values() for _, entry in registry.items()
    )
