"""Ranks that share a batch: together they make the update of one process, seeds differ, one speaks."""

import json
import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from small_runs import complaint, small, tiny_task

from sgfn.config import TrainConfig
from sgfn.config.launch import first_to_fail, launch, speaks
from sgfn.landscapes.tasks import make_task
from sgfn.learning import parallel
from sgfn.learning.parallel import check_ranks, share_of
from sgfn.learning.samplers import mixed

SUPPORT = Path(__file__).parents[1] / "support"


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return found.getsockname()[1]


def ranks(words: list[str], count: int = 2) -> list[str]:
    """Outputs of processes started as torchrun starts them."""
    shared = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(free_port()), "WORLD_SIZE": str(count)}
    path = os.pathsep.join([str(Path(parallel.__file__).parents[2]), str(SUPPORT)])
    env = os.environ | shared | {"OMP_NUM_THREADS": "1", "PYTHONPATH": path}
    started = [
        subprocess.Popen(
            [sys.executable, *words], env=env | {"RANK": str(i), "LOCAL_RANK": str(i)}, stdout=-1, text=True
        )
        for i in range(count)
    ]
    outputs = [one.communicate(timeout=1200)[0] for one in started]
    assert [one.returncode for one in started] == [0] * count
    return outputs


TRAIN = ["train", "words", "--batch", "8", "--net.hidden", "8", "--dynamics.hidden", "8", "--log.every", "2"]
TRAIN += ["--log.exact-every", "0", "--log.checkpoint-every", "2", "--device", "cpu", "--json", "--steps", "4"]


@pytest.fixture(scope="module")
def ranked(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[list[str]]]:
    """The run of two ranks, and the lines that each has printed: of its gradients, then of the run."""
    run = tmp_path_factory.mktemp("ranked") / "run"
    outputs = ranks([str(SUPPORT / "rank_gradients.py"), *TRAIN, "--out", str(run)])
    return run, [output.splitlines() for output in outputs]


@pytest.mark.slow
def test_two_ranks_make_the_update_of_one_process(ranked: tuple[Path, list[list[str]]]) -> None:
    """Also where trajectories have several lengths, so that shares of a batch have unequal numbers of steps."""
    for lines in ranked[1]:
        for found in json.loads(lines[0]).values():
            for name in ("optimiser", "dynamics_optimiser"):
                assert found[name] < 1e-12
                assert found[f"{name} size"] > 1e-3
            assert found["one share"] > 1e-6  # and the test can fail
            assert found["weights"] == 0.0
            assert found["own batches"] > 0.0  # each rolled out its own


def test_settings_of_all_ranks_are_shared_out() -> None:
    config = TrainConfig().with_(batch=64, replay__batch=32, offline__share=0.25)
    own = share_of(config, 4)
    assert (own.batch, own.replay.batch, own.dynamics.batch, own.offline_batch) == (16, 8, 0, 4)
    with pytest.raises(ValueError, match="batch 64 is no multiple of the 3 ranks"):
        share_of(config, 3)
    with pytest.raises(ValueError, match=r"offline\.share makes 16 trajectories"):
        share_of(config.with_(replay__batch=0), 32)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"method": "ppo"}, "not 'ppo'"),
        ({"aim": 0.5}, "give --beta"),
        ({"exploration": "local"}, "keeps an archive"),
        ({"actors": 2}, "take one of them"),
    ],
)
def test_what_ranks_would_differ_by_is_refused(changes: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        check_ranks(make_task("grid", TrainConfig().with_(**changes)))
    check_ranks(tiny_task(small()))


def test_who_speaks(monkeypatch: pytest.MonkeyPatch) -> None:
    assert launch() is None
    assert speaks()
    assert first_to_fail()
    for name, value in {"RANK": "1", "WORLD_SIZE": "2", "LOCAL_RANK": "1", "MASTER_ADDR": "127.0.0.1"}.items():
        monkeypatch.setenv(name, value)
    assert launch() == (1, 2)
    assert not speaks()
    assert not first_to_fail()  # nobody answers: the first rank would speak
    monkeypatch.setenv("WORLD_SIZE", "1")
    assert launch() is None


def test_seeds_differ_by_rank_and_step() -> None:
    seeds = {mixed(0, rank, step) for rank in range(8) for step in range(100)}
    assert len(seeds) == 800
    assert all(0 <= seed < 2**63 for seed in seeds)
    torch.Generator().manual_seed(max(seeds))


@pytest.mark.slow
def test_a_run_of_two_ranks_is_continued_by_one(
    ranked: tuple[Path, list[list[str]]], capsys: pytest.CaptureFixture[str]
) -> None:
    from sgfn.cli import main

    (first, second), run = ranked[1], ["--out", str(ranked[0])]
    assert json.loads("".join(first[1:]))["step"] == 4
    assert second[1:] == []
    assert main(["train", "words", "--resume", "--steps", "6", "--device", "cpu", "--json", *run]) == 0
    rows = [json.loads(line) for line in (ranked[0] / "metrics.jsonl").read_text().splitlines()]
    assert [row["step"] for row in rows] == [2, 4, 6]
    assert [row["trajectories"] for row in rows] == [24, 40, 56]
    assert json.loads((ranked[0] / "config.json").read_text())["config"]["batch"] == 8
    complaint(capsys, ["train", "words", *run])
