"""The soak itself: that it sees what is wrong, that the same seed does the same, and that each kind of round runs."""

from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from benchmarks.soak.folders import Bases
from benchmarks.soak.forks import HUNG, Ended, ForkServer
from benchmarks.soak.outcomes import MARK, differences, leftovers, one_line, relative, troubles
from benchmarks.soak.rounds import KINDS, TROUBLES, Finding, Rounds, Tally
from benchmarks.soak.rows import judge, row
from safetensors.torch import load_file, save_file


def ended(code: int = 0, err: str = "", out: str = "") -> Ended:
    return Ended(code=code, out=out, err=err, touches=0, memory=0, process=1, seconds=0.0)


@pytest.mark.parametrize("kind", KINDS)
def test_a_round_of_each_kind_finds_nothing(kind: str, server: ForkServer, tmp_path: Path) -> None:
    rounds = Rounds(server, tmp_path, "0")
    with rounds.folder() as folder:
        what, found = KINDS[kind](rounds, folder)
    rounds.note(kind, what, found)
    assert found == []
    assert rounds.tally.disturbances == {kind: 1}
    assert sum(rounds.tally.commands.values()) >= 1
    assert not folder.exists()


def test_the_smallest_difference_is_named(bases: Bases, tmp_path: Path) -> None:
    one, two = tmp_path / "one", tmp_path / "two"
    for folder in (one, two):
        bases.lay("table", folder)
    assert differences(relative(one), relative(two)) == []
    file = two / "run" / "checkpoint" / "state.safetensors"
    state = load_file(file)
    name = next(name for name, value in state.items() if value.dtype == torch.float32 and value.numel())
    state[name].view(-1)[0] += 1e-3
    save_file(state, file)
    (two / "run" / ".config.json.x").write_text("")
    assert differences(relative(one), relative(two)) == ["run/.config.json.x", "run/checkpoint/state.safetensors"]
    assert leftovers(two) == ["run/.config.json.x"]


BAD: dict[str, tuple[Ended, list[str]]] = {
    "well": (ended(), []),
    "refused": (ended(2, "sgfn: no such file\n"), []),
    "traceback": (ended(1, "Traceback (most recent call last):\n"), ["wrong exit code", "traceback"]),
    "killed": (ended(-11), ["wrong exit code"]),
    "hung": (ended(HUNG), ["hang"]),
    "silent": (ended(2), ["not one line"]),
    "two lines": (ended(2, "sgfn: a\nsgfn: b\n"), ["not one line"]),
    "control characters": (ended(2, "sgfn: \x1b[31m\n"), ["not one line"]),
    "Python": (ended(2, "sgfn: invalid literal for int() with base 10: 'x'\n"), ["not one line"]),
}


@pytest.mark.parametrize("name", BAD)
def test_trouble_is_seen(name: str, tmp_path: Path) -> None:
    end, found = BAD[name]
    assert troubles(end, tmp_path) == found
    (tmp_path / MARK).write_text("")
    assert troubles(end, tmp_path) == [*found, "stranger's code"]


def test_lines_before_the_one_line_are_allowed_where_a_verb_talks() -> None:
    assert one_line("one cell is done\nsgfn: 1 of 2 cells failed\n", talks=True) == "1 of 2 cells failed"
    with pytest.raises(AssertionError):
        one_line("one cell is done\nsgfn: 1 of 2 cells failed\n")


def lose(folder: Path) -> None:
    (folder / "a.csv").unlink()


def change(folder: Path) -> None:
    (folder / "a.csv").write_text("other")


def leave(folder: Path) -> None:
    (folder / ".a.csv.x").write_text("")


@pytest.mark.parametrize(
    ("harm", "found"),
    [(lose, "lost file: a.csv"), (change, "changed file: a.csv"), (leave, "left file: .a.csv.x"), (lambda _: None, "")],
)
def test_harm_is_seen(harm: Callable[[Path], None], found: str, tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("mine")
    harm(tmp_path)
    wanted = row("x", "train grid", "a.csv")
    assert judge(wanted, ended(2, "sgfn: a.csv: no\n"), {"a.csv": b"mine"}, tmp_path) == [found] * bool(found)
    assert "does not say 'a.csv'" in judge(wanted, ended(2, "sgfn: no\n"), {}, tmp_path)
    assert "wrong exit code" in judge(wanted, ended(0), {}, tmp_path)
    assert judge(
        row("x", "train grid", hides=("root:",)), ended(2, "sgfn: root:\n"), {"a.csv": b"", ".a.csv.x": b""}, tmp_path
    )


def test_every_finding_is_counted_once() -> None:
    tally = Tally(found=[Finding(what="x", trouble=f"{begins[0]} and more") for begins in TROUBLES.values()])
    assert tally.troubles() == dict.fromkeys(TROUBLES, 1)
    tally.add(Tally(found=[Finding(what="traceback", trouble="lost file: x")]))
    assert tally.troubles() == dict.fromkeys(TROUBLES, 1) | {"lost files": 2}
