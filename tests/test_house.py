"""The plan of the house: packages import only what stands before them, and help waits for nothing heavy."""

import ast
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import pytest

import sgfn
from sgfn.envs.base import Env

ROOT = Path(sgfn.__file__).parent
ORDER = ["config", "noise", "envs", "landscapes", "nets", "objectives", "learning", "evaluation", "runs", "series"]
ORDER += ["design", "reports", "compare", "cli"]
ABOVE = {"runs/sampling.py": {"sgfn.series.files", "sgfn.series.forecaster"}}
"""Modules of later packages that a file imports by name, when a run turns out to need them."""


def imported(source: str) -> Iterator[str]:
    """Every module that a file imports, inside functions too, and through `import_module` with a name."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "relative imports hide where they go"
            yield from (f"{node.module}.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.Call) and ast.unparse(node.func).endswith("import_module"):
            yield from (str(word.value) for word in node.args if isinstance(word, ast.Constant))


def upward(package: str, source: str) -> list[str]:
    """Imports of packages that stand after one, or of the root."""
    found = []
    for name in imported(source):
        home, _, rest = name.partition(".")
        if home == "sgfn":
            top = rest.partition(".")[0]
            later = top not in ORDER or ORDER.index(top) > ORDER.index(package)
            found += [name] if later and not (package == "cli" and top not in ORDER) else []
    return found


@pytest.mark.parametrize("file", sorted(str(f.relative_to(ROOT)) for f in ROOT.rglob("*.py") if f.parent != ROOT))
def test_imports_go_downward(file: str) -> None:
    assert set(upward(file.partition("/")[0], (ROOT / file).read_text())) == ABOVE.get(file, set())


def test_what_goes_upward_is_found() -> None:
    assert upward("config", "def f():\n    from sgfn.noise import kinds\n") == ["sgfn.noise.kinds"]
    assert upward("nets", "import sgfn") == ["sgfn"]
    assert upward("noise", "import_module('sgfn.cli')") == ["sgfn.cli"]
    assert upward("cli", "import sgfn\nfrom sgfn.config import checks") == []


def test_the_folder_shows_the_plan() -> None:
    entries = [path.name for path in ROOT.iterdir() if path.name != "__pycache__"]
    assert len(entries) <= 17
    assert {name for name in entries if (ROOT / name).is_dir()} <= set(ORDER)


def test_the_page_counts_what_is_there() -> None:
    text = (
        (ROOT.parents[1] / "docs" / "architecture.md").read_text(encoding="utf-8").partition("## Before and after")[2]
    )
    rows = {
        cells[1].strip(): cells[-2].strip() for cells in (line.split("|") for line in text.splitlines()) if cells[2:]
    }
    entries = [path for path in ROOT.iterdir() if path.name != "__pycache__"]
    packages = sum(path.is_dir() for path in entries)
    assert rows["entries at the root of the package"] == (
        f"{len(entries)} ({packages} packages, {len(entries) - packages} files)"
    )
    assert rows["abstract methods of an environment"] == str(len(Env.__abstractmethods__))
    for row in ("ways to roll out", "ways to score"):
        count, files = re.search(r"and (\d+) backends? of it", rows[row]), re.findall(r"`(\w+\.py)`", rows[row])
        assert count is not None
        assert len(files) == int(count[1])
        assert all(len(list((ROOT / "learning").rglob(file))) == 1 for file in files)


SCRIPT = """
import sys
import sgfn.cli
for words in ("--help", "train --help", "compare --help", "forecast --help", "train grid --form x"):
    try:
        sgfn.cli.main(words.split())
    except SystemExit:
        pass
heavy = ("torch", "pandas", "scipy", "matplotlib")
print("loaded:", *(name for name in heavy if name in sys.modules))
sgfn.train
print("then:", *(name for name in heavy if name in sys.modules))
print("compare is", type(sgfn.compare).__name__)
sgfn.cli.main(["compare", "gird"])
print("figures:", "matplotlib" in sys.modules, "compiler:", "torch._dynamo" in sys.modules)
"""


def test_help_imports_nothing_heavy() -> None:
    here = os.environ | {"PYTHONPATH": str(ROOT.parent)}
    done = subprocess.run([sys.executable, "-c", SCRIPT], capture_output=True, text=True, check=True, env=here)
    lines = done.stdout.splitlines()[-4:]
    assert lines[0].strip() == "loaded:"
    assert "torch" in lines[1]
    assert lines[2:] == ["compare is function", "figures: False compiler: False"]
    assert "sgfn: task 'gird' is unknown" in done.stderr
    assert "choose from marginal, published, blind" in done.stderr


def test_everything_public_is_there() -> None:
    assert set(sgfn.__all__) <= set(dir(sgfn))
    assert all(getattr(sgfn, name) is not None for name in sgfn.__all__)
    with pytest.raises(AttributeError, match=r"has no attribute 'trian'"):
        _ = sgfn.trian  # pyright: ignore[reportAttributeAccessIssue]
    import_module("sgfn.compare.comparison")
    assert callable(sgfn.compare)
