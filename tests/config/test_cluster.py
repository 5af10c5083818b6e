"""Jobs on a real Ray of several nodes: results, lost workers and nodes, a clean stop; nobody else imports Ray."""

import sys
import time
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from benchmarks.soak.forks import ForkServer
from ray_jobs import STORE, collect, killed_until, lost_itself, refuse, square, wait_deaf, wait_for

from sgfn.config import cluster_jobs
from sgfn.config.cluster import Needs, check_cluster_settings, checked_address, connect
from sgfn.config.cluster_jobs import Job, run_jobs

if find_spec("ray") is None:  # not imported here: it takes a second in each worker, and one runs these tests
    pytest.skip("Ray is not installed", allow_module_level=True)
NOTHING = Needs(cpus=0.5)


def job(name: str, function: Any, argument: Any) -> Job:
    return Job(name=name, function=function, argument=lambda: argument)


# Without Ray


@pytest.mark.slow
def test_ray_is_imported_only_where_a_cluster_is_asked_for(server: ForkServer, tmp_path: Path) -> None:
    """By no module of ours, all of which were imported there."""
    ended = server.run(
        ["-c", "import sys; print('ray' in sys.modules, 'sgfn.compare.ray_cells' in sys.modules)"], tmp_path
    )
    assert ended.out == "False True\n"


def test_without_ray_one_line_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    with (
        pytest.raises(ValueError, match=r"^--cluster needs ray; install it with pip install 'sgfn\[ray\]'") as told,
        connect("local"),
    ):
        raise AssertionError("connected")
    assert "\n" not in str(told.value)


@pytest.mark.parametrize("address", ["nowhere", "host:", ":6379", "host:99999", "host:port", ""])
def test_addresses_are_checked(address: str) -> None:
    with pytest.raises(ValueError, match="must be local, auto or the HOST:PORT"):
        checked_address(address)


def test_an_address_that_does_not_answer_is_told_at_once() -> None:
    with pytest.raises(ValueError, match=r"--cluster 127.0.0.1:1: nothing answers there \(Connection refused\)"):
        checked_address("127.0.0.1:1")


def test_settings_that_nothing_reads_are_refused() -> None:
    check_cluster_settings(None, 1.0, None, jobs=4)
    check_cluster_settings("auto", 2.0, 0.5)
    for bad in (
        (None, 2.0, None, 1),
        (None, 1.0, 1.0, 1),
        ("auto", 1.0, None, 2),
        ("auto", 0.0, None, 1),
        ("auto", 1.0, -1.0, 1),
    ):
        with pytest.raises(ValueError, match="--"):
            check_cluster_settings(*bad)


# With Ray


@pytest.mark.slow
def test_jobs_give_what_their_functions_return(cluster: Any) -> None:
    with connect("auto") as ray:  # the connection that is there
        jobs = [job(str(i), square, i) for i in range(30)] + [job("bad", refuse, "the reason")]
        found = collect(ray, jobs, NOTHING, shared=7)
    assert [found[str(i)][-1].value for i in range(30)] == [i * i + 7 for i in range(30)]
    assert isinstance(found["bad"][-1].error, ValueError)
    assert "the reason" in str(found["bad"][-1].error)
    assert all(events[-1].ended and sum(event.ended for event in events) == 1 for events in found.values())


@pytest.mark.slow
def test_a_worker_killed_for_memory_is_tried_again_and_then_told(cluster: Any, tmp_path: Path) -> None:
    folders = [tmp_path / name for name in ("once", "always")]
    for folder in folders:
        folder.mkdir()
    jobs = [job("once", killed_until, (str(folders[0]), 1)), job("always", killed_until, (str(folders[1]), 99))]
    jobs.append(job("inside", lost_itself, None))
    with connect("auto") as ray:
        found = collect(ray, jobs, NOTHING, retries=1)
    assert found["once"][-1].value == "after 1"
    assert sum(event.lost for event in found["once"]) == 1
    assert len(list(folders[1].iterdir())) == 2  # one retry, no more
    assert str(found["always"][-1].error).startswith("its worker was killed (out of memory?)")
    assert str(found["always"][-1].error).endswith(", 2 times in a row")
    assert str(found["inside"][-1].error).startswith("killed by SIGKILL (out of memory?) on ")


@pytest.mark.long
@pytest.mark.slow
def test_a_node_that_goes_costs_its_jobs_a_retry(cluster: Any, tmp_path: Path) -> None:
    doomed, go = cluster.add_node(num_cpus=2, object_store_memory=STORE), tmp_path / "go"
    jobs, seen, lost = [job(str(i), wait_for, str(go)) for i in range(4)], set[str](), 0
    with connect("auto") as ray:
        ended = {}
        for events in run_jobs(ray, jobs, Needs(cpus=1.0)):
            for event in events:
                seen |= {event.node}
                lost += event.lost
                ended |= {event.name: event.value} if event.ended else {}
            if doomed is not None and len(seen - {""}) == 2:
                cluster.remove_node(doomed, allow_graceful=False)
                doomed = None
                go.touch()
    assert ended == dict.fromkeys("0123", "done")
    assert lost >= 1


@pytest.mark.slow
def test_jobs_stop_when_asked_and_deaf_ones_are_killed(
    cluster: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cluster_jobs, "PATIENCE", 0.5)
    jobs = [job("kind", wait_for, str(tmp_path / "never")), job("deaf", wait_deaf, str(tmp_path / "pid"))]
    jobs += [job(f"waiting{i}", wait_for, str(tmp_path / "never")) for i in range(5)]
    ended, running = {}, set[str]()

    def stop() -> bool:
        return {"kind", "deaf"} <= running and (tmp_path / "pid").exists()

    with connect("auto") as ray:
        for events in run_jobs(ray, jobs, Needs(cpus=1.0), stop=stop):
            running |= {event.name for event in events if event.node}
            ended |= {event.name: event for event in events if event.ended}
    assert ended["kind"].value == "stopped"
    assert ended["deaf"].error is not None
    assert not any(event.value == "done" for event in ended.values())
    assert gone(int((tmp_path / "pid").read_text()))


@pytest.mark.slow
def test_whoever_leaves_leaves_nobody_behind(cluster: Any, tmp_path: Path) -> None:
    pid = tmp_path / "pid"
    with connect("auto") as ray:
        found = run_jobs(ray, [job("deaf", wait_deaf, str(pid))], NOTHING)
        while not (pid.exists() and pid.read_text()):
            next(found)
        found.close()  # as a KeyboardInterrupt does
    assert gone(int(pid.read_text()))


@pytest.mark.slow
def test_what_no_node_can_run_is_told(cluster: Any) -> None:
    with (
        connect("auto") as ray,
        pytest.raises(ValueError, match="no node of the cluster has 64 CPUs, the largest has 2"),
    ):
        collect(ray, [job("large", square, 1)], Needs(cpus=64.0))


def gone(pid: int) -> bool:
    """Whether a process ends soon."""
    for _ in range(200):
        try:
            state = Path(f"/proc/{pid}/stat").read_text()
        except (FileNotFoundError, ProcessLookupError):
            return True
        if state.rpartition(")")[2].split()[0] == "Z":
            return True
        time.sleep(0.05)
    return False
