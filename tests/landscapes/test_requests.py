"""Scores by workers: the same as without, each string asked for once, failures repeated, skipped or told."""

import math
import os
from collections.abc import Iterator
from contextlib import closing
from functools import partial
from pathlib import Path

import pytest
import torch
from thread_workers import Gate, ThreadWorker
from worker_body import behave

from sgfn.config.processes import Pool, ProcessWorker, RemoteError, TookTooLong, WorkerLost, hiring, itself
from sgfn.landscapes.function import FunctionLandscape, letters

ROWS = torch.tensor([[0, 0], [0, 1], [1, 0], [1, 1]])  # AA AC CA CC


def count_a(texts: list[str]) -> list[float]:
    return [float(text.count("A")) for text in texts]


def fails_on_ac(texts: list[str]) -> list[float]:
    if "AC" in texts:
        raise KeyError("AC")
    return count_a(texts)


def landscape(function=count_a, **options) -> FunctionLandscape:
    return FunctionLandscape(function, letters("AC"), None, math.inf, **{"workers": 2, **options})


@pytest.fixture
def gate() -> Iterator[Gate]:
    """Workers of this process, behind a gate."""
    found = Gate()
    with hiring(partial(ThreadWorker, before=found)):
        yield found
    found.release()


def test_scores_are_those_of_the_function_and_come_in_pieces(gate: Gate) -> None:
    gate.release()
    with closing(landscape()) as found:
        assert found.scores(ROWS[[0, 1, 1, 3]]).tolist() == [2, 1, 1, 0]
        assert sorted(map(sorted, gate.asked)) == [["AA", "AC"], ["CC"]]
        assert found.scores(ROWS).tolist() == [2, 1, 1, 0]
        assert gate.asked[2:] == [["CA"]]  # the others are known


def test_what_is_on_its_way_is_not_asked_for_again(gate: Gate) -> None:
    with closing(landscape()) as found:
        first, second = found.request(ROWS[:3]), found.request(ROWS[1:])
        assert not first.ready
        assert found.live()["waiting"] == 4
        gate.release()
        with found.taken(second):
            assert found.scores(ROWS[1:]).tolist() == [1, 1, 0]
        with found.taken(first):
            assert found.scores(ROWS[:3]).tolist() == [2, 1, 1]
        asked = [text for request in gate.asked for text in request]
        assert sorted(asked) == ["AA", "AC", "CA", "CC"]
        assert found.live()["waiting"] == 0
        assert found.live()["scores_per_second"] > 0


def test_a_small_cache_holds_no_request_up(gate: Gate) -> None:
    """What a request brings is read although the cache forgets it."""
    gate.release()
    with closing(landscape(cache=1)) as found:
        request = found.request(ROWS)
        with found.taken(request):
            assert found.scores(ROWS).tolist() == [2, 1, 1, 0]
        assert len(gate.asked) == 2
        assert len(found.known) == 1


def test_a_lost_worker_is_replaced_and_then_told(gate: Gate) -> None:
    gate.release()
    gate.lost = 2
    with closing(landscape(retries=2, workers=1)) as found:
        assert found.scores(ROWS[:1]).tolist() == [2]
        assert found.trouble().startswith("2 workers were lost and replaced")
        gate.lost = 3
        with pytest.raises(ValueError, match=r"a worker was killed by SIGKILL .* while it scored 'CC'"):
            found.scores(ROWS[3:])


def test_a_call_that_takes_too_long_is_told_repeated_or_skipped(gate: Gate) -> None:
    gate.release()
    gate.late = 1
    with (
        closing(landscape(timeout=5.0, workers=1)) as found,
        pytest.raises(ValueError, match="longer than 5 s") as told,
    ):
        found.scores(ROWS[:1])
    assert "\n" not in str(told.value)
    gate.late = 1
    with closing(landscape(timeout=5.0, workers=1, on_error="retry")) as found:
        assert found.scores(ROWS[:1]).tolist() == [2]
        assert found.repeated == 1
    gate.late = 2
    with closing(landscape(timeout=5.0, workers=1, on_error="skip", retries=1)) as found:
        assert found.scores(ROWS[:1]).tolist() == [0]
        assert (found.skipped, "AA" in found.known) == (1, False)


def test_errors_of_the_function_name_string_and_line(gate: Gate, tmp_path: Path) -> None:
    gate.release()
    with closing(landscape(fails_on_ac)) as found:
        found.attach(tmp_path, resumed=False)
        with pytest.raises(
            ValueError, match=r"fails_on_ac failed on 'AC' \(KeyError: 'AC'\) in .*test_requests.py, line"
        ):
            found.scores(ROWS)
        assert 'raise KeyError("AC")' in (tmp_path / "reward.log").read_text()
    with closing(landscape(fails_on_ac, on_error="skip", retries=0)) as found:
        request = found.request(ROWS)
        with found.taken(request):
            assert found.scores(ROWS).tolist() == [2, 0, 1, 0]
        calls = len(gate.asked)
        assert found.scores(ROWS[[0, 2, 3]]).tolist() == [2, 1, 0]
        assert len(gate.asked) == calls


def test_a_function_that_cannot_be_sent_is_refused_in_one_line() -> None:
    with closing(landscape(lambda texts: count_a(texts))) as found, pytest.raises(ValueError, match="set workers to 1"):
        found.scores(ROWS)
    with pytest.raises(ValueError, match="workers must be 1 or more, got 0"):
        landscape(workers=0)
    assert landscape(workers=1).remote is None


# real processes


@pytest.mark.slow
def test_a_process_answers_fails_hangs_dies_and_is_replaced() -> None:
    worker = ProcessWorker(partial(itself, behave))
    pool = Pool(lambda: worker, 1, retries=1)
    try:
        first = pool.submit(lambda ask: ask("pid")).result()
        assert first not in (os.getpid(), None)
        assert pool.submit(lambda ask: ask("pid")).result() == first
        with pytest.raises(RemoteError, match="own words") as caught:
            pool.submit(lambda ask: ask("own words")).result()
        assert type(caught.value).__name__ == "RuntimeError"
        assert "worker_body.py, line" in caught.value.user_line
        with pytest.raises(WorkerLost, match="SIGKILL"):
            pool.submit(lambda ask: ask("exit")).result()
        assert pool.replaced == 1
        with pytest.raises(TookTooLong):
            worker.ask("sleep", 0.05)
        last = pool.submit(lambda ask: ask("pid")).result()
        assert last != first
        hung = pool.submit(lambda ask: ask("sleep"))
    finally:
        pool.close()
    with pytest.raises(WorkerLost):
        hung.result(30)
    with pytest.raises(ProcessLookupError):
        os.kill(last, 0)
    with pytest.raises(ValueError, match="workers must be 1 or more, got 0"):
        Pool(lambda: worker, 0)
