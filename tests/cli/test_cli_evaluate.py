"""The bar of `sgfn evaluate`, which takes minutes on a million objects."""

import io
from pathlib import Path

import pytest
from rich.console import Console

import sgfn
from sgfn.cli.evaluate import stage_bar
from sgfn.learning.trainer import Trainer


def test_every_state_of_the_law_is_counted(words_run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Trainer, "block", 700)
    told: list[tuple[str, int, int | None]] = []
    sgfn.evaluate(words_run, samples=16, device="cpu", progress=lambda *stage: told.append(stage))
    names = list(dict.fromkeys(name for name, _, _ in told))
    assert names[0] == "16 samples"
    assert names[-4:] == ["best reachable law", "law of the policy", "modes", "orders"]
    counted = [(done, total) for name, done, total in told if name == "law of the policy"]
    states = sgfn.load(words_run).env.num_states  # pyright: ignore[reportAttributeAccessIssue]
    assert counted[0] == (0, states)
    assert counted[-1] == (states, states)
    assert len(counted) > states / 700


@pytest.mark.parametrize("terminal", [True, False])
def test_a_bar_where_somebody_looks(terminal: bool) -> None:
    console = Console(file=io.StringIO(), force_terminal=terminal, width=80)
    with stage_bar(console, shown=terminal) as progress:
        for stage in (("samples", 0, None), ("law of the policy", 0, 2000), ("law of the policy", 1000, 2000)):
            progress(*stage)
    assert isinstance(console.file, io.StringIO)
    assert ("1,000/2,000 states" in console.file.getvalue()) is terminal
