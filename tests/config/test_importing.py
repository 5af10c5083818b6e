"""Installed packages go before the current folder, where a stranger's files may lie."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import sgfn
from sgfn.compare import workers
from sgfn.config.importing import find

NAMES = ("json", "numpy", "torch", "typing", "csv", "pandas", "matplotlib", "tyro", "RNA", "pyarrow", "holidays")
HIDES = "an installed module is called so too, and goes before colorsys.py here: rename that"


@pytest.fixture
def strange_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder, with files that are called as packages are and leave a mark when they are imported."""
    for name in NAMES:
        (tmp_path / f"{name}.py").write_text(f"open({str(tmp_path / 'mark')!r}, 'a').write('{name} ')\n")
    (tmp_path / "colorsys.py").write_text("rgb_to_hsv = None\n")
    monkeypatch.delitem(sys.modules, "colorsys", raising=False)  # of the standard library, and seldom imported
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_a_name_is_that_of_the_installed_package(strange_folder: Path) -> None:
    assert find("json:loads", "function") is json.loads
    assert callable(find("colorsys:rgb_to_hsv", "function"))
    with pytest.raises(ValueError, match=HIDES):
        find("colorsys:affinity", "function")
    (strange_folder / "only_here.py").write_text("value = 1\n")
    before = list(sys.path)
    assert find("only_here:value", "function") == 1
    assert sys.path == before


def test_a_module_of_the_current_folder_imports_the_installed_package(strange_folder: Path) -> None:
    (strange_folder / "also_here.py").write_text("from colorsys import rgb_to_hsv\n")
    assert callable(find("also_here:rgb_to_hsv", "function"))


@pytest.mark.slow
def test_python_m_sgfn_does_not_look_into_the_folder_first(strange_folder: Path, grid_run: Path) -> None:
    env = os.environ | {"PYTHONPATH": str(Path(sgfn.__file__).parents[1])}
    words = [sys.executable, "-m", "sgfn", "report", str(grid_run), "--html"]
    done = subprocess.run(words, env=env, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert not (strange_folder / "mark").exists()


def test_workers_look_into_the_folder_last(strange_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "path", ["", *sys.path])
    folders = workers.environment({})["PYTHONPATH"].split(os.pathsep)
    assert folders[-1] == str(strange_folder)
    assert folders.count(str(strange_folder)) == 1
    assert "" not in folders
