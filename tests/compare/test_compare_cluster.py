"""Comparisons on a real Ray: cells equal those of the local engine, whatever happens to nodes; a clean stop."""

import os
import signal
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from ray_jobs import STORE
from small_runs import small

from sgfn.compare import compare, ray_cells
from sgfn.compare.cells import Cell, CellState
from sgfn.compare.comparison import Comparison
from sgfn.compare.live import cell_line, live_table, nodes_of, progress_text
from sgfn.compare.worker_process import work
from sgfn.config import TrainConfig
from sgfn.config.archives import pack_folder, unpack_folder
from sgfn.config.files import read_json

if find_spec("ray") is None:  # not imported here: it takes a second in each worker, and one runs these tests
    pytest.skip("Ray is not installed", allow_module_level=True)
FILES = ("config.json", "metrics.jsonl", "exact.json", "checkpoint/state.safetensors")


def run(out: Path, config: TrainConfig, **options: Any) -> Comparison:
    return compare("grid", config, out, methods=["tb"], device="cpu", samples=8, cluster="auto", **options)


@pytest.mark.slow
def test_cells_equal_those_of_the_local_engine_though_a_node_goes(cluster: Any, tmp_path: Path, pages: Any) -> None:
    doomed, nodes, lost = cluster.add_node(num_cpus=2, object_store_memory=STORE), set[str](), []

    def watch(states: list[CellState]) -> None:
        nodes.update(state.node for state in states if state.status == "running")
        if len(nodes - {""}) == 2 and not lost:
            lost.append(cluster.remove_node(doomed, allow_graceful=False))

    found = run(tmp_path / "there", small(), seeds=2, cluster_cpus=1.5, progress=watch)
    assert lost, "both nodes had cells"
    assert [row["status"] for row in found.rows] == ["done"] * 2
    for seed in range(2):
        path = tmp_path / "here" / str(seed)
        work("grid", small(objective="tb", seed=seed), path, "cpu", "auto", 8)
        cell = tmp_path / "there/tb/alpha0.25" / f"seed{seed}"
        for name in FILES:
            assert (cell / name).read_bytes() == (path / name).read_bytes(), (seed, name)
    assert not (cell / "error.txt").exists()


@pytest.mark.long
@pytest.mark.slow
def test_ctrl_c_brings_the_checkpoint_back_and_the_same_command_goes_on(
    cluster: Any, tmp_path: Path, pages: Any
) -> None:
    config, steps = small(steps=600, log__exact_every=0), list[int]()

    def interrupt(states: list[CellState]) -> None:
        if states[0].step and not steps:
            steps.append(states[0].step)
            os.kill(os.getpid(), signal.SIGINT)

    with pytest.raises(KeyboardInterrupt, match="stopped with 0 of 1 cells done; the same command goes on"):
        run(tmp_path / "out", config, seeds=1, progress=interrupt)
    cell = tmp_path / "out/tb/alpha0.25/seed0"
    assert (cell / "checkpoint/state.safetensors").is_file()
    assert not (cell / "error.txt").exists()
    before = (cell / "metrics.jsonl").read_bytes()
    assert [row["status"] for row in run(tmp_path / "out", config, seeds=1).rows] == ["done"]
    assert (cell / "metrics.jsonl").read_bytes().startswith(before[: before.rfind(b"\n{")])
    assert read_json(cell / "exact.json")["step"] == 600


@pytest.mark.long
@pytest.mark.slow
def test_what_a_cell_raises_fails_that_cell_alone_in_a_module_that_travels(
    cluster: Any, tmp_path: Path, pages: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The module lies in a folder that workers do not know: its source goes with the cells."""
    (tmp_path / "mine_alone.py").write_text(
        "def loss(scores, trajectories):\n"
        "    if 'sgfn-job-' in __file__:\n"
        "        raise RuntimeError('on a node')\n"
        "    return scores.log_pf.sum(-1) ** 2\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    options = {"device": "cpu", "samples": 8, "cluster": "auto", "seeds": 1}
    found = compare("grid", small(), tmp_path / "out", methods=["mine_alone:loss", "random"], **options)
    assert [row["status"] for row in found.rows] == ["failed", "done"]
    assert "on a node" in found.failed[0]["error"]


def state(seed: int, **fields: Any) -> CellState:
    cell = Cell(task="grid", method="tb", alpha=0.25, seed=seed, path=Path(f"tb/a/s{seed}"), config=small())
    return CellState(cell=cell, **fields)


def test_the_table_shows_nodes() -> None:
    states = [state(i, status="running", node=f"n{i // 2}") for i in range(8)]
    assert nodes_of(states) == "n0 x 2, n1 x 2, n2 x 2, 1 more"
    assert progress_text(states) == "0 of 8 cells done, 4 nodes at work"
    assert [str(column.header) for column in live_table(states, 9).columns][-1] == "nodes"
    assert "nodes" not in [str(column.header) for column in live_table([state(0)], 9).columns]
    done = state(0, status="done", node="n3", losses=1, results={"tv": 0.5})
    assert cell_line(done).endswith(" on n3, lost 1 time before")


def test_a_folder_that_came_back_takes_the_old_ones_place(tmp_path: Path) -> None:
    old, new = tmp_path / "seed0", tmp_path / "elsewhere"
    for folder, text in ((old, "old"), (new, "new")):
        (folder / "data").mkdir(parents=True)
        (folder / "data/a.csv").write_text(text)
    (old / "gone").touch()
    ray_cells.replace_folder(old, pack_folder(new))
    assert (old / "data/a.csv").read_text() == "new"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["elsewhere", "seed0"]
    assert not (old / "gone").exists()
    with pytest.raises(ValueError, match="not packed by sgfn"):
        ray_cells.replace_folder(old, b"nonsense" * 200)
    assert (old / "data/a.csv").read_text() == "new"
    unpack_folder(pack_folder(old), tmp_path / "third")
