"""Two commands in one folder: one is held as it touches a file, the other runs, then the first goes on."""

import signal
from collections.abc import Iterable
from pathlib import Path

import pytest
from _pytest.mark import ParameterSet
from benchmarks.soak.forks import STOPPED
from benchmarks.soak.kills import JUDGED, SCENARIOS, Kills
from benchmarks.soak.outcomes import differences, leftovers, one_line, relative, troubles

SAMPLE = "sample run -n 99 --out run/more.csv --device cpu"
PAIRS: dict[str, tuple[str, str, str]] = {
    "train, train": ("train", SCENARIOS["train"].command, "run already holds a run"),
    "train, resume": ("train", "train table --resume --device cpu --out run", "another process is training"),
    "train, overwrite": ("train", f"{SCENARIOS['train'].command} --overwrite", "another process is training"),
    "resume, resume": ("train further", SCENARIOS["train further"].command, "another process is training"),
    "compare, compare": ("compare", SCENARIOS["compare"].command, "another process"),
    "forecast, resume": ("forecast", f"forecast --resume {JUDGED} --device cpu --out run", ""),
    "sample, sample": ("sample", SCENARIOS["sample"].command, ""),
    "evaluate, evaluate": ("evaluate", SCENARIOS["evaluate"].command, ""),
    "report, report": ("report", SCENARIOS["report"].command, ""),
}
"""By name: the scenario that is held, the command beside it, and what that one is told where it must not run."""
READERS: dict[str, tuple[str, str]] = {
    "train further, evaluate": ("train further", "evaluate run --samples 8 --device cpu"),
    "train further, sample": ("train further", SAMPLE),
    "train further, report": ("train further", "report run"),
    "sample, sample elsewhere": ("sample", SAMPLE),
    "sample, evaluate": ("sample", "evaluate run --samples 8 --device cpu"),
    "report, sample": ("report", SAMPLE),
    "evaluate, sample": ("evaluate", SAMPLE),
    "forecast again, sample": ("forecast again", SAMPLE),
}
"""By name: the scenario that is held, and a command beside it that need not wait."""


LONG = ("report, report", "forecast, resume", "report, sample", "forecast again, sample", "train further, report")
"""Pairs that `make test` leaves out."""


def marked(names: Iterable[str]) -> list[ParameterSet]:
    """Pairs as parameters."""
    return [pytest.param(name, marks=[pytest.mark.long] * (name in LONG)) for name in names]


def held(kills: Kills, name: str, folder: Path, share: float) -> int:
    """Begin a scenario and hold it at a share of its touches; returns its process."""
    scenario, alone = SCENARIOS[name], kills.undisturbed(SCENARIOS[name])
    kills.lay(scenario, folder)
    at = max(2, round(alone.touches * share))
    ended = kills.run(scenario.command, folder, signal=int(signal.SIGSTOP), at=at)
    assert ended.code == STOPPED, ended
    return ended.process


@pytest.mark.parametrize("name", marked(PAIRS))
def test_the_second_writer_waits_or_does_no_harm(name: str, kills: Kills, tmp_path: Path) -> None:
    first, command, says = PAIRS[name]
    process = held(kills, first, tmp_path, 0.6)
    second = kills.run(command, tmp_path)
    assert troubles(second, tmp_path) == [], second
    if says:
        assert second.code == 2
        assert says in one_line(second.err, talks=True)
    ended = kills.server.go_on(process)
    assert (ended.code, troubles(ended, tmp_path)) == (0, []), ended
    assert differences(relative(tmp_path), kills.undisturbed(SCENARIOS[first]).after) == []
    assert leftovers(tmp_path) == []


@pytest.mark.parametrize("name", marked(READERS))
def test_a_reader_beside_a_writer_gets_an_answer(name: str, kills: Kills, tmp_path: Path) -> None:
    first, command = READERS[name]
    process = held(kills, first, tmp_path, 0.5)
    second = kills.run(command, tmp_path)
    assert (second.code, troubles(second, tmp_path)) == (0, []), second
    ended = kills.server.go_on(process)
    assert (ended.code, troubles(ended, tmp_path)) == (0, []), ended
    made = {"run/more.csv", "run/exact.json", "run/report.png"}
    assert set(differences(relative(tmp_path), kills.undisturbed(SCENARIOS[first]).after)) <= made
    assert leftovers(tmp_path) == []
