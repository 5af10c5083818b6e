"""Classical laws in shards on a real Ray: the numbers of one process; and the whole forecast through the command."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from forecast_runs import FLAGS, write_csv
from forecast_tables import small_panel
from hypothesis import given
from hypothesis import strategies as st
from small_runs import complaint

from sgfn.cli.commands import main
from sgfn.series.bank import Bank, LawCall, run_here
from sgfn.series.cluster_laws import ClusterLaws, shards
from sgfn.series.supports import REAL

LAWS = ("Theta", "AutoETS", "seasonal naive")


def call(values: np.ndarray) -> LawCall:
    how: dict[str, Any] = {"horizon": 2, "seasons": [(), ()], "whole": False, "of_many": False}
    return LawCall(name="seasonal naive", values=values, cuts=[5, 9], **how)


@given(st.integers(1, 40), st.integers(1, 60))
def test_shards_hold_every_series_once_in_order(series: int, count: int) -> None:
    calls = [call(np.full(9, float(at))) for at in range(series)]
    found = shards(calls, count)
    assert [one for part in found for one in part] == calls
    assert len(found) == min(series, count)
    assert max(map(len, found)) - min(map(len, found)) <= 1


def test_windows_are_counted_as_they_come() -> None:
    told: list[int] = []
    found = run_here([call(np.arange(9.0)), call(np.arange(9.0) ** 2)], told.append)
    assert (told, [one.shape[:2] for one in found]) == ([2, 2], [(2, 2), (2, 2)])


@pytest.mark.slow
def test_laws_of_a_cluster_are_those_of_this_process(cluster: Any) -> None:
    panel = small_panel(("a", "b", "c"))
    cuts = [(number, len(one) - back) for number, one in enumerate(panel.series) for back in (0, 4)]
    there = Bank(panel, 4, [REAL] * 3, 0, ClusterLaws(cluster="auto"))
    here, told = Bank(panel, 4, [REAL] * 3), list[tuple[str, int, int]]()
    for name in LAWS:
        found = there.quantiles(name, cuts, lambda *now: told.append(now))
        assert np.array_equal(found, here.quantiles(name, cuts), equal_nan=True)
        assert told[-1] == (name, 6, 6)
    assert not np.array_equal(there.quantiles("AutoETS", cuts), there.quantiles("seasonal naive", cuts))


@pytest.mark.long
@pytest.mark.slow
def test_the_command_writes_the_same_tables(cluster: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["forecast", str(write_csv(tmp_path / "a.csv")), *FLAGS, "--laws", "AutoETS,network"]
    assert main([*words, "--out", str(tmp_path / "here")]) == 0
    assert main([*words, "--out", str(tmp_path / "there"), "--cluster", "auto"]) == 0
    for name in ("forecast.csv", "backtest.csv"):
        assert (tmp_path / "there" / name).read_bytes() == (tmp_path / "here" / name).read_bytes()
    line = complaint(capsys, [*words, "--out", str(tmp_path / "t"), "--cluster", "auto", "--cluster-gpus", "1"])
    assert "classical laws run on CPUs" in line
    assert not (tmp_path / "t").exists()
