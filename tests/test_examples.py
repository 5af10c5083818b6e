"""Every example's main is called, and the page that shows one shows what runs."""

import ast
from pathlib import Path

import numpy as np
import pytest
from examples import own_landscape, own_task, reward_of_errors

from sgfn.config import TrainConfig
from sgfn.landscapes.tasks import TASKS

DOCS = Path(__file__).parent.parent / "docs"


def test_own_landscape_learns() -> None:
    config = TrainConfig().with_(batch=64, net__hidden=64, noise__alpha=0.2, optim__lr=3e-3)
    tv, floor = own_landscape.main(config.with_(steps=200))
    untrained, _ = own_landscape.main(config.with_(steps=1))
    assert tv < floor + 0.1
    assert untrained > floor + 0.2


def test_own_task_is_trained_and_evaluated(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(TASKS, "entries", dict(TASKS.entries))  # so that it is gone afterwards
    config = TrainConfig().with_(batch=32, net__hidden=32, optim__lr=1e-2, log__exact_every=0)
    result = own_task.main(config.with_(steps=100), tmp_path / "run")
    untrained = own_task.main(config.with_(steps=1), tmp_path / "one")
    assert result["task"] == "examples.own_task:gc"  # where a later process finds it
    assert result["tv"] < 0.8 * untrained["tv"]
    assert result["tv_floor"] < result["tv"]


def test_the_page_shows_the_example_and_it_is_short() -> None:
    source = Path(own_task.__file__).read_text()
    assert f"```python\n{source}```" in (DOCS / "tasks.md").read_text()
    assert lines_of_code(source) < 30
    assert lines_of_code(source + "x = 1\n") == lines_of_code(source) + 1


def test_a_reward_of_errors_learns_its_temperature() -> None:
    """The page shows the table; widths follow T and hold anything but what they promise."""
    lines = reward_of_errors.main()
    assert "\n".join(lines) in (DOCS / "forecast.md").read_text()
    widths = [reward_of_errors.held(reward_of_errors.normal, heat)[0] for heat in (0.5, 1.0, 2.0)]
    assert widths[2] > 1.7 * widths[1] > 1.6 * widths[0]
    low, high = reward_of_errors.interval(np.diff(reward_of_errors.normal(reward_of_errors.GRID), prepend=0.0))
    assert high - low == pytest.approx(2 * 1.2816, abs=0.02)


def lines_of_code(source: str) -> int:
    """Lines that are neither empty nor part of a docstring."""
    said: set[int] = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and node.end_lineno is not None:
            said.update(range(node.lineno, node.end_lineno + 1))
    return sum(bool(line.strip()) and n not in said for n, line in enumerate(source.splitlines(), start=1))
