"""Comparisons: what is in the table is what the runs say; failures, stops and additions leave what is done alone."""

import csv
import html
import json
import shutil
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from benchmarks.soak.forks import ForkServer
from matplotlib.image import imread
from small_runs import ANYWHERE, FLAGS, complaint, contents, same_runs, small
from stub_workers import SAMPLES, WRITE_PAGE, run

import sgfn
from sgfn.cli.commands import Compare, main, parse
from sgfn.compare import worker_process as compare_worker
from sgfn.compare.cells import CellState
from sgfn.compare.contestants import CONTESTANTS
from sgfn.compare.results import COLUMNS, FIGURES, write_results
from sgfn.config import TrainConfig
from sgfn.config.presets import PRESETS
from sgfn.landscapes.tasks import Task, make_task
from sgfn.runs.folder import Run

pytestmark = pytest.mark.usefixtures("pages")


def table(out: Path) -> list[dict[str, str]]:
    with (out / "results.csv").open() as file:
        return list(csv.DictReader(file))


def test_reasons_that_a_spreadsheet_would_run(tmp_path: Path) -> None:
    row = dict.fromkeys(COLUMNS) | {"task": "grid", "error": '=HYPERLINK("x"), said\nsomebody', "alpha": -0.5}
    write_results(tmp_path / "results.csv", [row])
    (found,) = table(tmp_path)
    assert found["error"] == '\'=HYPERLINK("x"), said\nsomebody'
    assert (found["alpha"], found["seed"], found["task"]) == ("-0.5", "", "grid")


def statuses(out: Path) -> dict[str, str]:
    return {f"{row['method']} {row['alpha']} {row['seed']}": row["status"] for row in table(out)}


def stamps(folder: Path) -> dict[Path, int]:
    return {path: path.stat().st_mtime_ns for path in folder.rglob("*") if path.is_file()}


# Real workers


def test_cells_are_ordinary_runs_and_a_failure_leaves_the_others_alone(
    tmp_path: Path, pages: list[dict[str, Any]]
) -> None:
    out, config = tmp_path / "c", small(steps=12)
    taken = out / "kl" / "alpha0.5" / "seed3"

    def take(_: list[CellState]) -> None:
        taken.mkdir(parents=True, exist_ok=True)
        (taken / "notes.txt").write_text("mine")

    options: dict[str, Any] = {"alphas": [0.5], "seeds": 1, "jobs": 2, "progress": take}
    found = run(out, ["tb", "kl"], config=config.with_(seed=3), **options)
    cell = out / "tb" / "alpha0.5" / "seed3"
    good, bad = table(out)
    assert list(good) == COLUMNS

    alone = config.with_(seed=3, noise__alpha=0.5)
    sgfn.train("grid", alone, tmp_path / "alone", device="cpu")
    result = sgfn.evaluate(tmp_path / "alone", samples=SAMPLES, device="cpu")
    assert same_runs(cell, tmp_path / "alone")
    assert (cell / "exact.json").read_bytes() == (tmp_path / "alone" / "exact.json").read_bytes()
    assert Run(path=cell).read_config() == ("grid", alone)
    assert good == {name: "" if value is None else str(value) for name, value in found.rows[0].items()}
    assert {key: found.rows[0][key] for key in FIGURES} == {key: result[key] for key in FIGURES}
    assert (good["status"], good["step"], good["trajectories"]) == ("done", "12", str(13 * 8))
    assert float(good["seconds"]) > 0

    assert found.failed == [found.rows[1]]
    assert (bad["method"], bad["status"], bad["tv"], bad["step"]) == ("kl", "failed", "", "0")
    assert bad["error"] == f"{taken} exists, is not empty and holds no run: give --out another name"
    assert (taken / "error.txt").read_text() == bad["error"] + "\n"

    first, second = pages[-1]["entries"]
    assert (first.label, first.noise, first.seed, first.error) == ("tb", "50% noise", 3, "")
    assert first.source.results == result
    assert (second.label, second.source, second.error) == ("kl", None, bad["error"])
    WRITE_PAGE(out / "report.html", **pages[-1])
    assert bad["error"] in html.unescape((out / "report.html").read_text())
    assert imread(out / "comparison.png")[..., :3].std() > 0.01


ORPHANED = f"""
import sys, time
sys.path.insert(0, {str(Path(__file__).parents[1] / "support")!r})
from pathlib import Path
from small_runs import small
from sgfn.compare import workers as crew
from sgfn.compare.cells import CellState, make_cell

cell = make_cell(Path.cwd(), "grid", small(steps=10**6, log__exact_every=0), "tb", 0.25, 0)
shared = crew.SharedSettings(jobs=1, device="cpu", accelerate="eager", samples={SAMPLES})
worker = crew.Worker(CellState(cell=cell), shared)
while not cell.run.rows() and worker.process.poll() is None:
    time.sleep(0.02)
worker.process.stdin.close()
print(worker.process.wait(60), cell.run.checkpoint.is_file(), (cell.path / "exact.json").exists())
worker.close()
"""


def test_a_worker_without_a_parent_stops_with_a_checkpoint(server: ForkServer, tmp_path: Path) -> None:
    ended = server.run(["-c", ORPHANED], tmp_path)
    assert (ended.code, ended.out, ended.err) == (0, "130 True False\n", "")


def test_work_goes_on_where_it_was_stopped(tmp_path: Path) -> None:
    """In this process: from a checkpoint, or from the start where there is none."""
    config, whole = small(), tmp_path / "whole"
    compare_worker.work("grid", config, whole, "cpu", "auto", SAMPLES)
    half = tmp_path / "half"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Run, "append", stopping(Run.append, 15))
        with pytest.raises(KeyboardInterrupt):
            compare_worker.work("grid", config, half, "cpu", "auto", SAMPLES)
    spent = json.loads((half / "seconds.json").read_text())["seconds"]
    assert [row["step"] for row in Run(path=half).rows()] == [5, 10, 15]
    assert not (half / "exact.json").exists()
    compare_worker.work("grid", config, half, "cpu", "auto", SAMPLES)
    assert same_runs(half, whole)
    assert (half / "exact.json").read_bytes() == (whole / "exact.json").read_bytes()
    assert json.loads((half / "seconds.json").read_text())["seconds"] > spent

    Run(path=half).checkpoint.unlink()  # killed before the first one
    compare_worker.work("grid", config, half, "cpu", "auto", SAMPLES)
    assert same_runs(half, whole)
    with pytest.raises(ValueError, match="holds another run: remove it"):
        compare_worker.work("grid", small(seed=1), half, "cpu", "auto", SAMPLES)


def stopping(append: Callable[[Run, dict[str, Any]], None], step: int) -> Callable[[Run, dict[str, Any]], None]:
    def append_and_stop(run: Run, row: dict[str, Any]) -> None:
        append(run, row)
        if row["step"] == step:
            signal.raise_signal(signal.SIGINT)

    return append_and_stop


# The parent


def test_every_way_to_fail_has_its_reason(stub: Path) -> None:
    found = run(stub, ["db", "subtb", "kl-entropy", "tb"], seeds=1, jobs=3)
    assert [row["error"] for row in found.rows] == [
        "killed by SIGKILL (out of memory?)",
        "ended with exit status 3",
        "the reason",
        "",
    ]
    assert [row["step"] for row in table(stub)] == ["5", "0", "0", "20"]
    assert (stub / "kl-entropy/alpha0.25/seed0/error.txt").read_text() == "the reason\n\nfirst line\nthe reason\n"
    again = run(stub, ["db", "subtb", "kl-entropy", "tb"], seeds=1)
    assert [row["status"] for row in again.rows] == ["done", "failed", "failed", "done"]
    assert not (stub / "db/alpha0.25/seed0/error.txt").exists()


def test_medians_and_quartiles_are_those_of_numpy(stub: Path) -> None:
    found = run(stub, ["tb", "published-db"], alphas=[0.1, 0.5], seeds=4, jobs=2)
    assert [(row["method"], row["alpha"], row["seeds"], row["done"]) for row in found.summary] == [
        *(("tb", 0.1, 4, 4), ("tb", 0.5, 4, 4), ("published-db", 0.1, 4, 4), ("published-db", 0.5, 4, 4))
    ]
    for row in found.summary:
        values = [row["alpha"] + (seed + 1) ** 2 / 100 for seed in range(4)]
        low, median, high = np.quantile(values, [0.25, 0.5, 0.75])
        assert row["tv"] == pytest.approx({"median": median, "low": low, "high": high, "ends": "quartiles"})
        assert row["tv"]["median"] != pytest.approx(np.mean(values))
        assert row["unique"] == {"median": 3.0, "low": 3.0, "high": 3.0, "ends": "quartiles"}
        assert row["kl"] is None


def test_what_is_done_is_kept_and_more_can_be_added(stub: Path) -> None:
    run(stub, ["tb"], seeds=1)
    before, bytes_before = stamps(stub / "tb"), contents(stub / "tb")
    grown = run(stub, ["tb", "published-tb"], alphas=[0.25, 0.5], seeds=2, jobs=2)
    assert len(grown.rows) == 8
    assert not grown.failed
    after = stamps(stub / "tb")
    assert {path: after[path] for path in before} == before
    assert bytes_before.items() <= contents(stub / "tb").items()
    narrow = run(stub, ["published-tb"], seeds=1)
    assert narrow.rows == grown.rows  # the others are still part of it
    assert [row["method"] for row in table(stub)] == ["tb"] * 4 + ["published-tb"] * 4


def test_a_cell_is_done_only_if_it_was_evaluated_at_its_last_step(stub: Path) -> None:
    run(stub, ["tb"], seeds=2)
    file = stub / "tb/alpha0.25/seed1/exact.json"
    file.write_text(json.dumps(json.loads(file.read_text()) | {"step": 10}))
    kept = (stub / "tb/alpha0.25/seed0/exact.json").stat().st_mtime_ns
    run(stub, ["tb"], seeds=2)
    assert json.loads(file.read_text())["step"] == 20
    assert (stub / "tb/alpha0.25/seed0/exact.json").stat().st_mtime_ns == kept


def test_a_stop_keeps_what_is_done_and_the_next_call_goes_on(stub: Path) -> None:
    asked = []

    def stop(states: list[CellState]) -> None:
        if not asked and any(state.status == "running" and state.step == 5 for state in states):
            asked.append(True)
            signal.raise_signal(signal.SIGTERM)

    with pytest.raises(KeyboardInterrupt, match=r"^stopped with 1 of 3 cells done; the same command goes on in "):
        run(stub, ["tb", "kl", "published-tb"], seeds=1, progress=stop)
    assert statuses(stub) == {"tb 0.25 0": "done", "kl 0.25 0": "stopped", "published-tb 0.25 0": "waiting"}
    assert [row["step"] for row in Run(path=stub / "kl/alpha0.25/seed0").rows()] == [5, 10]  # it was let finish
    assert (stub / "comparison.png").is_file()
    assert not run(stub, ["tb", "kl", "published-tb"], seeds=1).failed
    assert set(statuses(stub).values()) == {"done"}


def test_a_second_stop_acts_at_once(stub: Path) -> None:
    def stop(states: list[CellState]) -> None:
        if states[0].step == 5:
            signal.raise_signal(signal.SIGINT)
            signal.raise_signal(signal.SIGINT)

    with pytest.raises(KeyboardInterrupt, match=r"^stopped at once; the same command goes on in "):
        run(stub, ["kl"], seeds=1, progress=stop)
    assert [row["step"] for row in Run(path=stub / "kl/alpha0.25/seed0").rows()] == [5]  # it was not let finish
    with Run(path=stub).locked():  # and the folder is free again
        pass


def test_another_comparison_is_refused(stub: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run(stub, ["tb"], seeds=1)
    before = contents(stub)
    words = ["compare", "grid", *FLAGS, "--out", str(stub), "--samples", str(SAMPLES), "--methods", "tb"]
    line = complaint(capsys, [*words, "--optim.lr", "0.5", "--steps", "30"])
    assert line == f"{stub} was begun with other values of --steps, --optim.lr: give --out another name"
    assert complaint(capsys, [*words, "--samples", "7"]).endswith("other values of --samples: give --out another name")
    assert complaint(capsys, ["compare", "words", *words[2:]]).startswith(f"{stub} compares methods on grid, not on")
    with Run(path=stub).locked():
        assert complaint(capsys, words).startswith(f"another process is training in {stub}")
    assert contents(stub) == before


DAMAGE: dict[str, tuple[dict[str, Any], str]] = {
    "foreign": (
        {"cells": None},
        " was not written by sgfn: fields format, task, samples, config and cells are expected",
    ),
    "other format": ({"format": 99}, " has format 99, this version reads 1 to 2: use the sgfn that wrote it"),
    "too large": ({"config": {"beta": 10**400}}, ": config.beta must be a number, got 1000000"),
    "unknown field": ({"config": {"stepz": 1}}, ": config: field 'stepz' is unknown"),
    "no cells": ({"cells": 3}, ": "),
    "unknown method": ({"cells": [["tbb", 0.25, 0]]}, ": method 'tbb' is unknown"),
}


@pytest.mark.parametrize("name", DAMAGE)
def test_a_damaged_plan_is_named_in_one_line(name: str, stub: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run(stub, ["tb"], seeds=1)
    file, (changes, message) = stub / "compare.json", DAMAGE[name]
    data = json.loads(file.read_text()) | changes
    file.write_text(json.dumps({key: value for key, value in data.items() if value is not None}))
    before = contents(stub)
    words = ["compare", "grid", *FLAGS, "--out", str(stub), "--samples", str(SAMPLES), "--methods", "tb"]
    assert complaint(capsys, words).startswith(f"{file}{message}")
    assert contents(stub) == before


WRONG = {
    "method": (["--methods", "tb", "publishd-db"], "method 'publishd-db' is unknown: "),
    "all noise": (["--alphas", "0.1", "1"], "noise.alpha must lie in [0, 1), got 1.0"),
    "less than none": (["--alphas", "-0.1"], "noise.alpha must lie in [0, 1), got -0.1"),
    "not a number": (["--alphas", "x"], "--alphas must be numbers with blanks between them, or None, got 'x'"),
    "no seed": (["--seeds", "0"], "seeds must lie in [1, 100000], got 0"),
    "cells": (["--seeds", "60000"], "a comparison must have at most 100,000 cells, got 480,000: take fewer --seeds"),
    "last seed": (["--seed", str(2**31 - 1), "--seeds", "2"], "seed must lie in [0, 2.14748e+09], got 2147483648"),
    "no job": (["--jobs", "0"], "jobs must lie in [1, 4096], got 0"),
    "no sample": (["--samples", "0"], "samples must lie in [1, 1e+07], got 0"),
    "objective": (["--objective", "db"], "--objective is what --methods decides: leave it out"),
    "form": (["--form", "blind"], "--form is what --methods decides: leave it out"),
    "peer": (["--method", "ppo"], "--method is what --methods decides: leave it out"),
    "preset": (["--preset", "demoo"], "--preset 'demoo' is unknown"),
    "objective and thought": (["--thought.layers", "1", "--methods", "blind-tb"], "method 'blind-tb': thought.layers"),
    "noise by position": (["--noise.kind", "position", "--noise.file", "rates.csv", "--alphas", "0.1"], "noise.kind"),
    "thought and form": (
        ["--thought.layers", "1", "--methods", "tb", "published-db"],
        "method 'published-db': thought.",
    ),
    "a graph": (["--methods", "tb", "eflow"], "method 'eflow': objective 'eflow' needs a tree, and grid is a graph"),
    "no tokens": (["--net.encoder", "transformer"], "method 'kl': net.encoder 'transformer' reads sequences: use mlp"),
    "grid too large": (["--grid.side", "65", "--methods", "tb", "mh"], "method 'mh': chains on a grid need the law of"),
    "too many rates": (
        ["--grid.side", "32", "--noise.kind", "hidden"],
        "method 'mh': chains on a grid need the law of",
    ),
    "unread": (["--chain.floor", "0.5", "--methods", "tb", "mh"], "none of tb, mh reads --chain.floor: leave it out"),
    "no file": (["--offline.file", "nowhere.csv", "--offline.share", "0.5"], "offline.file "),
}


@pytest.mark.parametrize("name", WRONG)
def test_nothing_starts_if_something_is_wrong(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    words, message = WRONG[name]
    monkeypatch.chdir(tmp_path)
    assert complaint(capsys, ["compare", "grid", *FLAGS, *words]).startswith(message)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("method", ["mars", "a2c", "ppo", "sac"])
def test_a_refusal_names_the_method_once_and_both_ways_out(
    method: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["compare", "words", *ANYWHERE, "--net.encoder", "transformer", "--out", str(tmp_path / "c"), "--methods"]
    line = complaint(capsys, [*words, "tb", method])
    reads = "whole objects" if method == "mars" else "states one by one"
    assert line == f"method {method!r} reads {reads}: use --net.encoder mlp; or leave it out of --methods"
    assert list(tmp_path.iterdir()) == []


def test_a_refusal_names_every_method_that_has_to_go(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["compare", "grid", *ANYWHERE, "--net.encoder", "table", "--out", str(tmp_path / "c"), "--methods"]
    line = complaint(capsys, [*words, "tb", "ppo", "mars", "sac", "kl"])
    actors = "method 'ppo' reads states one by one: use --net.encoder mlp (and so for sac)"
    assert line == (
        f"{actors}; method 'mars' reads whole objects: use --net.encoder mlp; or leave ppo, mars, sac out of --methods"
    )
    assert list(tmp_path.iterdir()) == []


def test_every_noise_level_is_tried_on_the_task(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    levels: list[float] = []

    def make(name: str, config: TrainConfig) -> Task:
        levels.append(config.noise.alpha)
        if config.noise.alpha == 0.5:
            raise ValueError("not at this level")
        return make_task(name, config)

    monkeypatch.setattr(sys.modules["sgfn.compare.comparison"], "make_task", make)
    with pytest.raises(ValueError, match=r"^not at this level$"):
        run(tmp_path / "c", ["tb", "kl"], alphas=[0.1, 0.5], seeds=2)
    assert levels == [0.1, 0.5]  # once for each, however many cells there are
    assert list(tmp_path.iterdir()) == []


def test_a_folder_with_something_else_is_left_alone(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "notes.txt").write_text("mine")
    words = ["compare", "grid", *FLAGS, "--out"]
    assert "is not empty and holds no comparison" in complaint(capsys, [*words, str(tmp_path)])
    assert "is a file: give --out another name" in complaint(capsys, [*words, str(tmp_path / "notes.txt")])
    assert contents(tmp_path) == {"notes.txt": b"mine"}


# The command line


def test_flags_become_the_configuration() -> None:
    words = ["tfbind8", "--methods", "tb", "sac", "--alphas", ".1", ".3", "--preset", "demo", "--steps", "9"]
    args = parse(Compare, "compare", words)
    assert (args.methods, args.alphas, args.seeds, args.jobs) == (("tb", "sac"), (0.1, 0.3), 3, 1)
    assert args.config == PRESETS["demo"].with_(steps=9) != TrainConfig(steps=9)


def test_help_names_every_method(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["compare", "--help"])
    words = set(capsys.readouterr().out.replace(",", " ").replace(".", " ").split())
    assert set(CONTESTANTS) <= words


def test_output_as_text_and_as_json(stub: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["compare", "grid", *FLAGS, "--out", str(stub), "--samples", str(SAMPLES), "--seeds", "3"]
    assert main([*words, "--methods", "tb"]) == 0
    out, err = capsys.readouterr()
    assert "0.2900 [0.2600, 0.3400]" in out  # of 0.26, 0.29, 0.34
    assert max(map(len, out.splitlines()[:-2])) <= 80
    assert err.splitlines() == [
        f"tb, 25% noise, seed {seed}: TV {tv} after 160 environment calls ({seed + 1} of 3)"
        for seed, tv in enumerate(("0.2600", "0.2900", "0.3400"))
    ]
    assert main([*words, "--methods", "tb", "kl-entropy", "--json"]) == 2
    out, err = capsys.readouterr()
    data = json.loads(out)
    assert [(row["method"], row["done"], row["failed"]) for row in data["summary"]] == [
        ("tb", 3, 0),
        ("kl-entropy", 0, 3),
    ]
    assert len(data["cells"]) == 6
    assert all(Path(data[name]).is_file() for name in ("results", "figure", "page"))
    first, *_, last = err.splitlines()
    assert first == "3 of 6 cells were done before"
    assert last.startswith("sgfn: 3 of 6 cells failed: kl-entropy at 0.25, seed 0 and 2 more (the reason); each has")
    assert main([*words, "--methods", "kl-entropy"]) == 2
    assert "0 of 3" in capsys.readouterr().out


# What damage and failures leave behind


def test_a_failure_of_another_call_is_not_this_calls(stub: Path) -> None:
    assert len(run(stub, ["tb", "kl-entropy"], seeds=1).failed) == 1
    again = run(stub, ["tb"], seeds=1)
    assert again.failed == []
    assert [row["status"] for row in again.rows] == ["done", "failed"]  # and the table still tells


@pytest.mark.parametrize("damage", ["{", "[]", "\udcff"])
def test_a_damaged_file_costs_its_cell_and_no_other(damage: str, stub: Path) -> None:
    run(stub, ["tb"], seeds=2)
    cells = [stub / "tb" / "alpha0.25" / f"seed{seed}" for seed in range(2)]
    kept = stamps(cells[1])
    for name in ("exact.json", "seconds.json"):
        (cells[0] / name).write_bytes(damage.encode("utf-8", "surrogateescape"))
    found = run(stub, ["tb"], seeds=2)
    assert [row["status"] for row in found.rows] == ["done", "done"]
    assert json.loads((cells[0] / "exact.json").read_text())["step"] == 20  # evaluated again
    assert stamps(cells[1]) == kept


BROKEN = {
    "config.json": ("nonsense", "line 1: not valid JSON (Expecting value)"),
    "metrics.jsonl": ('nonsense\n{"step": 20}\n', "line 1: not valid JSON with a step"),
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_cell_that_cannot_be_read_fails_and_the_others_go_on(name: str, stub: Path) -> None:
    run(stub, ["tb"], seeds=2)
    cells = [stub / "tb" / "alpha0.25" / f"seed{seed}" for seed in range(3)]
    kept, (text, why) = stamps(cells[1]), BROKEN[name]
    (cells[0] / name).write_text(text)
    grown = run(stub, ["published-tb"], seeds=1)  # not about the broken one, which is shown nevertheless
    assert [row["status"] for row in grown.rows] == ["failed", "done", "done"]
    assert grown.failed == []
    found = run(stub, ["tb"], seeds=3)
    assert [row["status"] for row in found.rows] == ["failed", "done", "done", "done"]
    assert found.failed == found.rows[:1]
    error = f"{cells[0] / name}, {why}; remove {cells[0]} to train it again"
    assert (found.rows[0]["error"], found.rows[0]["step"]) == (error, 0)
    assert (cells[0] / "error.txt").read_text() == f"{error}\n"
    assert (cells[0] / name).read_text() == text  # nothing of it is written over
    assert stamps(cells[1]) == kept
    shutil.rmtree(cells[0])
    assert run(stub, ["tb"], seeds=3).failed == []


def test_a_cell_that_failed_before_it_began_can_be_tried_again(tmp_path: Path) -> None:
    cell = Run(path=tmp_path / "cell")
    cell.path.mkdir()
    for name in ("error.txt", ".lock", ".config.json.1a2b.json"):
        (cell.path / name).write_text("")
    cell.check(overwrite=False)
    (cell.path / "notes.txt").write_text("")
    with pytest.raises(ValueError, match="is not empty and holds no run"):
        cell.check(overwrite=False)


def test_an_error_of_the_parent_lets_workers_write_their_checkpoints(stub: Path) -> None:
    def broken(states: list[CellState]) -> None:
        if any(state.row for state in states):  # the first lines of metrics are there
            raise OSError("no space left")

    with pytest.raises(OSError, match="no space left"):
        run(stub, ["kl"], seeds=1, progress=broken)
    assert Run(path=stub / "kl" / "alpha0.25" / "seed0").rows()[-1]["step"] == 10  # what it writes when asked to stop
