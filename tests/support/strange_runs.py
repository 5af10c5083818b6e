"""Run folders by somebody else, which name code and files: fixtures and ways to change them."""

import itertools
import json
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from sgfn.config.files import read_json
from sgfn.runs import trust as trusting

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


@pytest.fixture
def strange_run(grid_run: Path) -> Path:
    """A run by somebody else, half trained and not evaluated."""
    rewrite(grid_run, steps=40)
    (grid_run / "exact.json").unlink(missing_ok=True)
    return grid_run


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
