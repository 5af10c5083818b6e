"""Workers for tests: no process is started, and a test decides when and how a request is answered."""

import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import partial
from typing import Any

import pytest

from sgfn.config.processes import Make, TookTooLong, WorkerLost, answered, hiring, raise_failure


class ThreadWorker:
    """Answers in the thread of the pool that asks; `before` may wait, or raise in the place of an answer."""

    asked: list[Any]

    def __init__(self, make: Make, before: Callable[[Any], None] = lambda request: None) -> None:
        self.answer, self.before, self.asked = make(), before, []

    def start(self) -> None:
        return

    def ask(self, request: Any, timeout: float | None) -> Any:
        self.asked.append(request)
        self.before(request)
        worked, found = answered(self.answer, None, request)
        if not worked:
            raise_failure(found)
        return found

    def close(self) -> None:
        return


class Gate:
    """Holds requests back until a test lets those through that it names; counts what was asked."""

    def __init__(self) -> None:
        self.changed, self.open, self.asked = threading.Condition(), False, list[Any]()
        self.lost, self.late = 0, 0

    def __call__(self, request: Any) -> None:
        with self.changed:
            self.asked.append(request)
            if self.lost:
                self.lost -= 1
                raise WorkerLost("was killed by SIGKILL (out of memory?)")
            if self.late:
                self.late -= 1
                raise TookTooLong
            self.changed.wait_for(lambda: self.open, 60)

    def release(self) -> None:
        with self.changed:
            self.open = True
            self.changed.notify_all()


@pytest.fixture
def hired() -> Iterator[Callable[..., None]]:
    """A function that lets workers of this kind be hired from now on; tests choose what happens before each answer."""
    with ExitStack() as stack:

        def hire(before: Callable[[Any], None] = lambda request: None) -> None:
            stack.enter_context(hiring(partial(ThreadWorker, before=before)))

        yield hire
