"""Reading a run runs no code and opens no file that only the run names, unless its reader names them or trusts it."""

import json
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from small_runs import complaint, small, small_on
from strange_runs import CODE, COUNT, CPU, FILES, LIBRARY, MEASURED, Payload, measured, rewrite, words_of

import sgfn
from sgfn.cli.commands import main
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


def test_every_field_that_may_name_code_is_known() -> None:
    """A registry or a field that is new must be in the tables here."""
    assert set(trusting.CODE) | {"task"} == {*CODE} - {*LIBRARY}
    assert set(FILES) == set(sgfn.TrainConfig().with_(**{name.replace(".", "__"): Path("x") for name in FILES}).files)
    assert all(
        issubclass(type(entry), Entry) for registry in trusting.REGISTRIES.values() for _, entry in registry.items()
    )
