"""What is seen of a comparison: the figure, the live table, a line for each cell."""

import json
from io import StringIO
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from rich.console import Console
from small_runs import small
from stub_workers import SAMPLES, run

from sgfn.compare.cells import CellState, make_cell
from sgfn.compare.contestants import CONTESTANTS
from sgfn.compare.figure import STYLES, comparison_figure, curve_of
from sgfn.compare.live import Lines, LiveDisplay, live_table


def states_of(out: Path, methods: list[str], seeds: int, **options: Any) -> list[CellState]:
    run(out, methods, seeds=seeds, **options)
    found = []
    for method in methods:
        for alpha in options.get("alphas", [0.25]):
            found += [CellState(cell=make_cell(out, "grid", small(), method, alpha, seed)) for seed in range(seeds)]
    for state in found:
        state.load_files(SAMPLES)
    return found


def test_the_figure_shows_quartiles_over_the_seeds_that_are_done(stub: Path) -> None:
    states = states_of(stub, ["tb", "db"], 4, alphas=[0.1, 0.5], jobs=2)
    assert [state.status for state in states] == ["done"] * 8 + ["failed"] * 8
    figure = comparison_figure(states)
    assert [axis.get_title("left") for axis in figure.axes] == ["10% noise", "50% noise"]
    assert {axis.get_ylabel() for axis in figure.axes} == {"total variation to the target"}
    for axis, alpha in zip(figure.axes, (0.1, 0.5), strict=True):
        tv = alpha + np.array([1, 4, 9, 16]) / 100
        lines = {str(line.get_gid()): np.asarray(line.get_xydata()).tolist() for line in axis.lines}
        assert lines["tb"] == [[160, pytest.approx(np.median(tv))]]
        assert lines["db"] == [[40, pytest.approx(4 * np.median(tv))]]  # as far as it came
        found = curve_of([s for s in states if (s.cell.method, s.cell.alpha) == ("tb", alpha)], "tv")
        assert found is not None
        assert found.x.tolist() == [160]
        assert [found.low[0], found.middle[0], found.high[0]] == pytest.approx(np.quantile(tv, [0.25, 0.5, 0.75]))
    (legend,) = figure.legends
    assert [text.get_text() for text in legend.get_texts()] == ["tb", "db", "best reachable"]


def test_the_figure_without_exact_distances(stub: Path) -> None:
    states = states_of(stub, ["tb"], 1)
    file = states[0].cell.run.metrics
    row = json.loads(file.read_text())
    row.pop("tv")
    file.write_text(json.dumps(row) + "\n")
    states[0].load_files(SAMPLES)
    (axis,) = comparison_figure(states).axes
    (line,) = axis.lines
    assert axis.get_ylabel() == "mean log-reward of a batch"
    assert np.asarray(line.get_xydata()).tolist() == [[160, row["log_reward"]]]
    assert comparison_figure([CellState(cell=states[0].cell)]).axes[0].texts[0].get_text() == "no metrics yet"


def test_a_method_without_a_law_brings_a_row_of_rewards(stub: Path) -> None:
    states = states_of(stub, ["tb", "published-db"], 1, alphas=[0.1, 0.5])
    for state in states[2:]:
        state.row.pop("tv")
    figure = comparison_figure(states)
    assert [axis.get_title("left") for axis in figure.axes] == ["10% noise", "50% noise"] * 2
    assert [axis.get_ylabel().split()[0] for axis in figure.axes] == ["total", "total", "mean", "mean"]
    assert figure.axes[1].get_ylim() == figure.axes[0].get_ylim() != figure.axes[2].get_ylim()


def test_every_method_has_a_look_of_its_own() -> None:
    assert set(STYLES) == set(CONTESTANTS)
    assert len(set(STYLES.values())) == len(STYLES)


def text_of(renderable: Any) -> list[str]:
    console = Console(file=StringIO(), width=120)
    console.print(renderable)
    return console.file.getvalue().splitlines()  # pyright: ignore


RATES = ("trajectories/s", "left")


def test_the_live_table(stub: Path) -> None:
    states = states_of(stub, ["tb", "db"], 2)
    states[0].status = "running"
    states[0].seen.extend([(10.0, 0), (12.0, 80)])
    states[0].row["step"] = 15
    head, first, second = (line.split() for line in text_of(live_table(states, room=9)))
    assert head == ["method", "noise", "done", "running", "failed", "step", "TV", "mean", "reward", *RATES]
    assert first == ["tb", "25%", "1/2", "1", "15/20", "0.2750", "0.5000", "40", "0:00:01"]
    assert second == ["db", "25%", "0/2", "2", "5/20", "1.1000", "0.5000"]
    states[0].status, states[1].status = "waiting", "done"
    assert [line.split()[0] for line in text_of(live_table(states, room=1))] == ["method", "db"]


def test_the_board_draws_on_a_terminal(stub: Path) -> None:
    screen = StringIO()
    with LiveDisplay(Console(file=screen, force_terminal=True, width=100, height=20)) as board:
        run(stub, ["tb", "subtb"], seeds=1, progress=board)
    assert "1 of 2 cells done, 1 failed" in screen.getvalue()


def test_lines_tell_each_cell_once(stub: Path) -> None:
    screen = StringIO()
    lines = Lines(Console(file=screen, width=40))
    run(stub, ["tb", "subtb"], seeds=1, progress=lines)
    assert screen.getvalue().splitlines() == [
        "tb, 25% noise, seed 0: TV 0.2600 after 160 environment calls (1 of 2)",
        "subtb, 25% noise, seed 0: failed: ended with exit status 3 (2 of 2)",
    ]
