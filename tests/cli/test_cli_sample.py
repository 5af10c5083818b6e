"""The bar of `sgfn sample` is there for those who wait, and for nobody else."""

import io
from pathlib import Path

import pytest
from rich.console import Console

from sgfn.cli.commands import main
from sgfn.cli.sample import counting
from sgfn.learning import learner


def shown(total: int, *blocks: int, terminal: bool = True) -> str:
    console = Console(file=io.StringIO(), force_terminal=terminal, width=80)
    with counting(console, total, shown=terminal) as progress:
        for done in blocks:
            progress(done)
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def test_a_bar_from_the_second_block_on() -> None:
    assert "2,000/2,000" in shown(2000, 1000, 2000)
    assert "2,000" not in shown(2000, 2000)
    assert "2,000" not in shown(2000, 1000, 2000, terminal=False)


def test_nothing_but_the_result_where_nobody_looks(
    grid_run: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(learner, "SAMPLE_BLOCK", 8)
    out = grid_run / "s.csv"
    assert main(["sample", str(grid_run), "-n", "20", "--device", "cpu", "--out", str(out)]) == 0
    printed = capsys.readouterr()
    assert printed.out.replace("\n", "") == f"20 samples in {out}"
    assert printed.err.strip() == ""
