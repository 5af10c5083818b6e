"""Work that goes on beside training: in order, finished at the end, no error lost."""

import threading

import pytest

from sgfn.runs.background import Background


def fail() -> None:
    raise OSError("disk is full")


def test_work_goes_on_beside_the_caller_and_in_order() -> None:
    go, done = threading.Event(), []

    def wait() -> None:
        assert go.wait(30)
        done.append("first")

    with Background() as background:
        background.do(wait)
        assert done == []  # the caller is not held up
        go.set()
        background.do(lambda: done.append("second"))
        assert done[0] == "first"  # what was begun before is done before the next begins
    assert done == ["first", "second"]


def test_an_error_is_raised_by_the_next_call_and_once() -> None:
    with Background() as background:
        background.do(fail)
        with pytest.raises(OSError, match="full"):
            background.do(lambda: None)
        background.do(lambda: None)


def test_an_error_is_raised_at_the_end() -> None:
    with pytest.raises(OSError, match="full"), Background() as background:
        background.do(fail)


def test_of_two_errors_the_callers_is_raised_and_work_is_finished() -> None:
    go, done = threading.Event(), []

    def late() -> None:
        assert go.wait(30)
        done.append("written")
        fail()

    def both() -> None:
        with Background() as background:
            background.do(late)
            go.set()
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        both()
    assert done == ["written"]
