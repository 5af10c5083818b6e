"""Runs whose rewards are scored by workers: continued after a crash, told of on the bar, closed at the end."""

from collections.abc import Iterator
from functools import partial
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console
from small_runs import same_runs, small_on
from thread_workers import Gate, ThreadWorker

import sgfn
from sgfn.config import TrainConfig
from sgfn.config.processes import hiring
from sgfn.runs.progress import TerminalBar, figures, training_bar


def count_a(texts: list[str]) -> list[float]:
    return [1.0 + text.count("A") for text in texts]


@pytest.fixture(autouse=True)
def gate() -> Iterator[Gate]:
    """Workers in threads of this process."""
    found = Gate()
    found.open = True
    with hiring(partial(ThreadWorker, before=found)):
        yield found


def settings(**changes: Any) -> TrainConfig:
    own = {"callable__function": f"{__name__}:count_a", "callable__length": 4, "callable__workers": 2}
    own |= {"steps": 12, "log__every": 1, "log__checkpoint_every": 4, "log__exact_every": 0, "deterministic": True}
    return small_on("callable", **{**own, **changes})


class CrashError(Exception):
    """The machine goes down."""


def test_a_run_that_crashed_has_the_numbers_of_one_that_did_not(tmp_path: Path) -> None:
    def crash(step: int, row: dict[str, Any]) -> None:
        if step == 7:
            raise CrashError

    sgfn.train("callable", settings(), tmp_path / "straight", device="cpu")
    with pytest.raises(CrashError):
        sgfn.train("callable", settings(), tmp_path / "crashed", device="cpu", progress=crash)
    assert not same_runs(tmp_path / "straight", tmp_path / "crashed")
    sgfn.train("callable", settings(), tmp_path / "crashed", device="cpu", resume=True)
    assert same_runs(tmp_path / "straight", tmp_path / "crashed")


def test_a_sequence_is_scored_once_in_a_run(tmp_path: Path, gate: Gate) -> None:
    run = sgfn.train("callable", settings(deterministic=False), tmp_path / "run", device="cpu")
    asked = [text for request in gate.asked for text in request]
    assert len(asked) == len(set(asked))
    assert run.rows()[-1]["lag"] <= 2


def test_the_bar_tells_of_scores_that_are_waited_for(tmp_path: Path) -> None:
    told: list[dict[str, Any]] = []
    sgfn.train(
        "callable", settings(), tmp_path / "run", device="cpu", progress=lambda step, row: told.append(dict(row))
    )
    live = [row["live"] for row in told if "live" in row]
    assert live
    assert live[0]["scores_per_second"] > 0
    assert "scores/s" in figures({"live": live[0]})
    assert figures({"live": {"waiting": 2.0}}) == "2 waiting"


def test_without_a_lag_workers_change_no_number(tmp_path: Path) -> None:
    """`ahead` 0 waits in each step: one process, or several, give the same run."""
    for workers in (2, 3):
        chosen = settings(callable__workers=workers, ahead=0)
        sgfn.train("callable", chosen.with_(deterministic=False), tmp_path / str(workers), device="cpu")
    assert same_runs(tmp_path / "2", tmp_path / "3")


@pytest.mark.parametrize("width", [60, 80, 120, 200])
def test_the_bar_shows_step_time_and_queue_in_any_terminal(width: int) -> None:
    screen = StringIO()
    console = Console(file=screen, force_terminal=True, width=width, color_system=None)
    with training_bar(console) as bar:
        shown = TerminalBar(bar, "callable", 5000)
        shown.line(1200, {"tv": 0.0123, "loss": 0.17, "reward": 1.781, "rate": 193.0})
        shown.line(1200, {"live": {"scores_per_second": 177.7, "waiting": 64.0}})
    lines = screen.getvalue().rsplit("callable", 1)[1]
    for part in ("1,200/5,000", "0:00:00", "-:--:--", "TV 0.012", "177.7", "scores/s,", "64"):
        assert part in lines
    assert "…" not in lines
