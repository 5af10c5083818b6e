"""Hints for names that are not there: what the module made itself, and no file names."""

import re
from pathlib import Path

import pytest

from sgfn.config.importing import find

MODULE = """
from pathlib import PurePath
import math

LEVEL = 3

def affinity(texts):
    return texts
"""


@pytest.fixture(autouse=True)
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "hinted_scores.py").write_text(MODULE)
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("hinted_scores.py:affinity", "name the module without .py, as hinted_scores:affinity"),
        ("hinted_scores:afinity", "did you mean affinity?"),
        ("hinted_scores:path", "it has LEVEL, affinity"),
        ("hinted_scores:maths", "it has LEVEL, affinity"),
    ],
)
def test_hints(name: str, words: str) -> None:
    with pytest.raises(ValueError, match=re.escape(words) + "$"):
        find(name, "reward")
    assert find("hinted_scores:affinity", "reward")(["A"]) == ["A"]
