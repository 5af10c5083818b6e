"""Samples in shards: each by its own seed, whoever draws it; what is there is kept, what is missing drawn again."""

import os
import signal
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from small_runs import complaint

from sgfn.cli.commands import main
from sgfn.config.cluster_jobs import Event
from sgfn.runs.loop import Stop
from sgfn.runs.sampling import sample
from sgfn.runs.shards import MOST_SHARDS, ShardPlan, _Taken, sample_shards


def plan(n: int, size: int, seed: int = 0) -> ShardPlan:
    return ShardPlan(n=n, shard_size=size, seed=seed, temperature=1.0, greedy=False, run="x")


@given(st.integers(1, 10**9), st.integers(10**4, 10**8))
def test_shards_have_all_samples(n: int, size: int) -> None:
    found = plan(n, size)
    assert (found.count - 1) * size + found.rows(found.count - 1) == n
    assert 1 <= found.rows(found.count - 1) <= size


@given(st.integers(0, 2**31 - 1))
def test_no_two_shards_have_one_seed(seed: int) -> None:
    found = plan(10**8, 10**3, seed)
    seeds = {found.shard_seed(shard) for shard in range(0, MOST_SHARDS, 97)}
    assert len(seeds) == -(-MOST_SHARDS // 97)
    assert all(0 <= one < 2**31 for one in seeds)


def test_a_shard_is_the_sample_of_its_seed(grid_run: Path, tmp_path: Path) -> None:
    found = sample_shards(grid_run, 25, tmp_path / "s", shard_size=10, device="cpu", seed=3)
    assert (found.files, found.drawn) == ([f"shard-0000{i}.parquet" for i in range(3)], 3)
    for i, rows in enumerate((10, 10, 5)):
        sample(grid_run, rows, tmp_path / f"{i}.parquet", seed=plan(25, 10, 3).shard_seed(i), device="cpu")
        one, other = (pd.read_parquet(file) for file in (tmp_path / "s" / found.files[i], tmp_path / f"{i}.parquet"))
        pd.testing.assert_frame_equal(one, other)
    assert not pd.read_parquet(tmp_path / "s" / found.files[0]).equals(pd.read_parquet(tmp_path / "s" / found.files[1]))


def test_the_same_call_draws_what_is_missing_or_damaged(grid_run: Path, tmp_path: Path) -> None:
    out = tmp_path / "s"
    found = sample_shards(grid_run, 40, out, shard_size=10, device="cpu")
    before = {name: (out / name).read_bytes() for name in found.files}
    (out / found.files[1]).unlink()
    (out / found.files[2]).write_bytes(before[found.files[2]][:50])
    (out / found.files[3]).write_bytes(b"")
    assert sample_shards(grid_run, 40, out, shard_size=10, device="cpu").drawn == 3
    assert {name: (out / name).read_bytes() for name in found.files} == before
    with pytest.raises(ValueError, match="was begun with other values of -n, --seed: give --out another name"):
        sample_shards(grid_run, 50, out, shard_size=10, seed=1, device="cpu")
    assert sample_shards(grid_run, 15, out, shard_size=10, device="cpu", overwrite=True).drawn == 2
    assert sorted(file.name for file in out.glob("*.parquet")) == found.files[:2]


def test_a_stop_keeps_whole_shards(grid_run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(done: int) -> None:
        if done >= 20:
            os.kill(os.getpid(), signal.SIGINT)

    with pytest.raises(KeyboardInterrupt, match=r"stopped with [123] of 4 shards; the same command goes on in"):
        sample_shards(grid_run, 40, tmp_path / "s", shard_size=10, device="cpu", progress=interrupt)
    there = len(list((tmp_path / "s").glob("*.parquet")))
    assert sample_shards(grid_run, 40, tmp_path / "s", shard_size=10, device="cpu").drawn == 4 - there


def test_what_comes_back_is_checked(tmp_path: Path) -> None:
    taken = _Taken(tmp_path, plan(10, 10), [0], lambda _: None)
    taken(Event(name="shard-00000.parquet", value=b"no table", ended=True))
    assert not list(tmp_path.iterdir())
    with pytest.raises(ValueError, match=r"1 shards failed \(shard-00000.parquet came back without its 10 rows\)"):
        taken.check(Stop())


def test_command(grid_run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["sample", str(grid_run), "--device", "cpu"]
    assert main([*words, "-n", "2e1", "--shards", "3", "--json"]) == 0
    assert '"drawn": 3' in capsys.readouterr().out
    assert sum(len(pd.read_parquet(file)) for file in (grid_run / "samples").glob("*.parquet")) == 20
    other = ["--out", str(tmp_path / "t")]
    assert "give one of them" in complaint(capsys, [*words, *other, "--shards", "2", "--shard-size", "9"])
    assert "--cluster-cpus and --cluster-gpus are read with --cluster" in complaint(
        capsys, [*words, *other, "--cluster-cpus", "2"]
    )
    assert "-n must be a whole number, got '1.5e0'" in complaint(capsys, [*words, *other, "-n", "1.5e0"])
    (full := tmp_path / "full").mkdir()
    (full / "thesis.tex").touch()
    assert "something else than shards" in complaint(capsys, [*words, "--shards", "2", "--out", str(full)])
    assert "at most 100,000" in complaint(capsys, [*words, *other, "-n", "1e9", "--shard-size", "10"])
    assert not (tmp_path / "t").exists()
    told = complaint(capsys, [*words, "-n", "20", "--shards", "5"])
    assert "was begun with other values of --shards: give --out another name" in told
    assert "of --shard-size: give" in complaint(capsys, [*words, "-n", "20", "--shard-size", "5"])
    assert "--shards must lie in [1, 20]" in complaint(capsys, [*words, *other, "-n", "20", "--shards", "21"])
    few = complaint(capsys, [*words, *other, "-n", "1e9", "--shards", "9"])
    assert "--shards must be at least 10 for 1,000,000,000 samples" in few
    assert "--shard-size must lie in" in complaint(capsys, [*words, *other, "--shard-size", "0"])


@pytest.mark.slow
def test_shards_of_a_cluster_are_those_of_this_process(cluster: Any, grid_run: Path, tmp_path: Path) -> None:
    here = sample_shards(grid_run, 50, tmp_path / "here", shard_size=20, device="cpu")
    sample_shards(grid_run, 50, tmp_path / "there", shard_size=20, device="cpu", cluster="auto", cluster_cpus=2.0)
    for name in here.files:
        assert (tmp_path / "there" / name).read_bytes() == (tmp_path / "here" / name).read_bytes()


def test_a_folder_that_was_left_before_its_plan_goes_on(grid_run: Path, tmp_path: Path) -> None:
    out = tmp_path / "shards"
    out.mkdir()
    (out / ".lock").touch()  # as a kill in the first instant leaves it
    assert sample_shards(grid_run, 6, out, shard_size=3).drawn == 2
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "mine.txt").touch()
    with pytest.raises(ValueError, match="holds something else"):
        sample_shards(grid_run, 6, tmp_path / "other", shard_size=3)
