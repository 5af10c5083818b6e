"""Actors of a real Ray as workers: they score, and one that is killed, or takes too long, is replaced."""

import math
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import torch
from worker_body import behave

from sgfn.config import cluster_workers
from sgfn.config.cluster import Needs
from sgfn.config.cluster_workers import ClusterWorker, on_cluster
from sgfn.config.processes import Pool, RemoteError, TookTooLong, WorkerLost, itself
from sgfn.landscapes.function import FunctionLandscape, letters
from sgfn.runs.train import train

NEEDS = Needs(cpus=0.1)


@pytest.mark.slow
def test_actors_answer_fail_hang_die_and_are_replaced(cluster: Any) -> None:
    import ray

    worker = ClusterWorker(partial(itself, behave), ray=ray, needs=NEEDS)
    pool = Pool(lambda: worker, 1, retries=1)
    try:
        first = pool.submit(lambda ask: ask("pid")).result()
        assert pool.submit(lambda ask: ask("pid")).result() == first
        with pytest.raises(RemoteError, match="own words") as caught:
            pool.submit(lambda ask: ask("own words")).result()
        assert type(caught.value).__name__ == "RuntimeError"
        with pytest.raises(WorkerLost, match="was lost"):
            pool.submit(lambda ask: ask("exit")).result()
        assert pool.replaced == 1
        with pytest.raises(TookTooLong):
            worker.ask("sleep", 0.05)
        assert pool.submit(lambda ask: ask("pid")).result() != first
    finally:
        pool.close()


@pytest.mark.slow
def test_a_module_that_nodes_do_not_have_is_sent(
    cluster: Any,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The same scores as here, by a function whose file no worker can import."""
    (tmp_path / "unsent_scores.py").write_text(
        "BASE = 1.5\ndef score(texts):\n    return [BASE + t.count('A') for t in texts]\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    from unsent_scores import score  # pyright: ignore[reportMissingImports]

    (tmp_path / "unsent_scores.py").unlink()
    rows = torch.tensor([[0, 0], [0, 1], [1, 1]])
    with (
        on_cluster("auto", NEEDS),
        closing(FunctionLandscape(score, letters("AC"), None, math.inf, workers=2)) as found,
    ):
        assert found.scores_ahead
        assert found.scores(rows).tolist() == [3.5, 2.5, 1.5]


def test_a_cluster_that_nothing_runs_on_is_refused(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    from small_runs import small

    monkeypatch.setattr(cluster_workers, "connect", lambda address: pytest.fail("Ray is started for nothing"))
    with pytest.raises(ValueError, match=r"nothing to run on a cluster: --actors N and .* read --cluster") as told:
        train("grid", small(), tmp_path / "run", cluster="local")
    assert "\n" not in str(told.value)
    assert not (tmp_path / "run").exists()
    with pytest.raises(ValueError, match="are read with --cluster"):
        train("grid", small(), tmp_path / "run", cluster_cpus=0.5)
