"""A folder of somebody else's rounds runs no code that only it names, and opens no file beside it."""

import itertools
import json
import shutil
import sys
from contextlib import suppress
from dataclasses import dataclass, fields
from pathlib import Path

import pandas as pd
import pytest

from sgfn.cli import main
from sgfn.config import registry
from sgfn.design.designer import Designer
from sgfn.design.rounds import read_round_folder
from sgfn.design.settings import CODE, DesignConfig
from sgfn.runs import trust as trusting

COUNT = itertools.count()
PAYLOAD = """
from pathlib import Path
import sgfn.design.acquisition as ours
from sgfn.landscapes.proxies import PROXIES
Path({marker!r}).touch()
def acquisition(members, request):
    return ours.greedy(members, request)
proxy = PROXIES["ridge"]
"""
TEXTS = ["".join(letters) for letters in itertools.product("ACGT", repeat=3)][::2]
TABLE = pd.DataFrame({"sequence": TEXTS, "score": [text.count("A") + 0.1 * text.count("C") for text in TEXTS]})


@dataclass(frozen=True)
class Payload:
    """A module that leaves a mark when it is imported."""

    module: str
    mark: Path

    @property
    def ran(self) -> bool:
        """Whether it was imported since this was last asked."""
        there = self.mark.exists()
        self.mark.unlink(missing_ok=True)
        sys.modules.pop(self.module, None)
        return there


@pytest.fixture
def payload(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Payload:
    """In the current folder, beside the round."""
    name, mark = f"design_payload_{next(COUNT)}", tmp_path / "mark"
    (tmp_path / f"{name}.py").write_text(PAYLOAD.format(marker=str(mark)))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(trusting, "CREATED", set())  # nothing was named in this process
    return Payload(name, mark)


@pytest.fixture(scope="module")
def proposed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a first round."""
    folder = tmp_path_factory.mktemp("theirs") / "1"
    made = Designer("dna", proxy="ridge", acquisition="greedy").fit(TABLE)
    made.propose(2)
    made.save(folder)
    return folder


@pytest.fixture
def theirs(proposed: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(proposed, tmp_path / "theirs"))


def rewrite(folder: Path, **changes: object) -> None:
    """Change settings in a folder's design.json."""
    data = json.loads((folder / "design.json").read_text())
    data["settings"]["design"] |= changes
    (folder / "design.json").write_text(json.dumps(data))


@pytest.mark.parametrize("field", CODE)
def test_no_code_that_only_the_folder_names_is_imported(
    field: str, payload: Payload, theirs: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    name = f"{payload.module}:{field}"
    rewrite(theirs, **{field: name})
    words = ["design", "propose", "theirs", "--orders", "2", "--out"]
    assert main([*words, "no"]) == 2
    told = capsys.readouterr().err
    assert f"theirs names code that would be run ({field} '{name}'): name it again with --{field} {name}" in told
    assert "or add --trust" in told
    assert not Path("no").exists()
    with pytest.raises(ValueError, match="names code that would be run"):
        Designer.load(theirs)
    with pytest.raises(ValueError, match="names code that would be run"):
        read_round_folder(theirs, {field: "other:f"})
    other = next(other for other in CODE if other != field)
    with pytest.raises(ValueError, match="names code that would be run"):
        read_round_folder(theirs, replaced=[other])
    assert not payload.ran
    for number, flags in enumerate((["--trust"], [f"--{field}", name])):  # and the test can fail
        assert main([*words, str(number), *flags]) == 0
        assert payload.ran
        following = capsys.readouterr().out.splitlines()[-1]
        assert following.endswith(f"sgfn design propose {number} --measured new.csv --out 3 --{field} {name}")
        trusting.CREATED.clear()
    assert main([*words, "ours", f"--{field}", {"acquisition": "greedy", "proxy": "ridge"}[field]]) == 0
    assert not payload.ran  # what is replaced is not imported


def test_a_folder_that_this_process_wrote_is_its_own(payload: Payload, tmp_path: Path) -> None:
    made = Designer("dna", proxy="ridge", acquisition=f"{payload.module}:acquisition").fit(TABLE)
    made.save(tmp_path / "mine")
    assert Designer.load(tmp_path / "mine").config == made.config
    trusting.CREATED.clear()  # as in another process
    with pytest.raises(ValueError, match="names code"):
        Designer.load(tmp_path / "mine")


def test_every_setting_that_a_registry_resolves_is_on_the_list(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each text of the settings is code in turn: those that are looked for are those of CODE."""
    asked: list[str] = []

    def find(name: str, what: str) -> object:
        asked.append(name)
        raise ValueError("nobody's")

    monkeypatch.setattr(registry, "find", find)
    texts = [part.name for part in fields(DesignConfig) if not isinstance(part.default, bool | int | float)]
    assert {"sampler", "transform", "sd_column", *CODE} <= {*texts}
    for name in texts:
        named, table = f"nobody:{name}", TABLE.assign(weight=1.0, sd=0.1)
        column = {"sequence_column": "sequence", "score_column": "score", "sd_column": "sd", "weight_column": "weight"}
        with suppress(ValueError, TypeError):
            made = Designer(**({"alphabet": "dna", "proxy": "ridge", "acquisition": "greedy"} | {name: named}))
            made.fit(table.rename(columns={column[name]: named} if name in column else {})).propose(2)
    assert {name.partition(":")[2] for name in asked} == {*CODE}
