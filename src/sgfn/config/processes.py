"""Worker processes that answer requests, each by an object that is made in it, and a pool that hands requests out.

Nothing but the standard library is imported here: a worker holds what its own object needs, not torch as well.
"""

import multiprocessing
import os
import signal
import threading
import traceback
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from multiprocessing import resource_tracker
from multiprocessing.connection import Connection
from queue import SimpleQueue
from typing import Any, Protocol, runtime_checkable

Answer = Callable[[Any], Any]
"""What a worker makes of a request."""
Make = Callable[[], Answer]
"""Makes that, in the worker; it is pickled, so whatever it names must be found by import there."""


class WorkerLost(Exception):  # noqa: N818 -- says what happened
    """A worker ended before it had answered."""


class TookTooLong(Exception):  # noqa: N818
    """A worker had no answer within its time; it was ended."""


class RemoteError(Exception):
    """An error that was raised in a worker; a subclass has the name of its class there."""

    user_line = ""
    """`FILE, line N` of the innermost call in a user's code that led to it."""


@runtime_checkable
class Worker(Protocol):
    """Somebody who answers requests one after the other: a process here, or an actor of a cluster."""

    def start(self) -> None:
        """Be there for requests; waits as long as that takes, which may be long on a cluster."""
        ...

    def ask(self, request: Any, timeout: float | None) -> Any:
        """The answer; raises `WorkerLost`, `TookTooLong`, or the `RemoteError` that answering raised."""
        ...

    def close(self) -> None:
        """End the worker at once, whatever it does."""
        ...


Hire = Callable[[Make], Worker]
"""Makes a worker, given what is to be made in it."""
HIRE: ContextVar[Hire | None] = ContextVar("HIRE", default=None)
"""What hires workers where others than processes of this machine are wanted."""


@contextmanager
def hiring(hire: Hire | None) -> Iterator[None]:
    """Within this context workers are hired so."""
    token = HIRE.set(hire)
    try:
        yield
    finally:
        HIRE.reset(token)


Failure = tuple[str, str, str, str]
"""Class, message, line in a user's code, and traceback of an error."""


def failure_of(error: BaseException) -> Failure:
    """An error as text, which can be sent wherever its class may be unknown."""
    from sgfn.config.user_code import user_line

    try:
        said = str(error)
    except Exception:  # a class of the user's, whose text fails
        said = ""
    return type(error).__name__, said, user_line(error), "".join(traceback.format_exception(error))


def raise_failure(failure: Failure) -> None:
    """Raise an error that was sent as text, with its traceback as the cause."""
    kind, said, line, where = failure
    error = type(kind, (RemoteError,), {"user_line": line})(said)
    raise error from RemoteError(f"in a worker:\n{where}")


class ProcessWorker:
    """A process that ends with `close`, or with this process; after one that was lost another is started."""

    def __init__(self, make: Make) -> None:
        self.make, self.process, self.closed = make, None, False
        self.pipe: Connection | None = None

    def ask(self, request: Any, timeout: float | None) -> Any:
        """The answer to a request."""
        self.start()
        pipe = self.pipe
        assert pipe is not None
        try:
            pipe.send(request)
            if not pipe.poll(timeout):
                self._end()
                raise TookTooLong
            worked, answer = pipe.recv()
        except (EOFError, OSError) as error:
            code = self._end()
            raise WorkerLost(words_of_exit(code)) from error
        if not worked:
            raise_failure(answer)
        return answer

    def close(self) -> None:
        """Kill the process."""
        self.closed = True
        if (process := self.process) is not None:
            process.kill()
            process.join()

    def start(self) -> None:
        """Start a process where there is none, and wait until it is ready."""
        if self.closed:
            raise WorkerLost("the workers are closed")
        if self.pipe is None:
            spawn = multiprocessing.get_context("spawn")  # not forked: the parent may hold threads and a GPU
            self.pipe, theirs = spawn.Pipe()
            self.process = spawn.Process(target=serve, args=(theirs, self.make), daemon=True, name="sgfn-worker")
            resource_tracker.ensure_running()  # before: it would let interrupts through again
            with interrupts_held():
                self.process.start()
            theirs.close()
            with suppress(EOFError, OSError):  # the request that follows finds out
                self.pipe.recv()

    def _end(self) -> int | None:
        """End the process, so that the next request starts another one; returns its exit status."""
        process, pipe, self.process, self.pipe = self.process, self.pipe, None, None
        if process is None or pipe is None:
            return None
        pipe.close()
        process.join(1.0)  # one that has ended by itself tells how
        process.kill()
        process.join()
        return process.exitcode


def words_of_exit(code: int | None) -> str:
    """How a process ended, in words.

    >>> words_of_exit(-9), words_of_exit(1)
    ('was killed by SIGKILL (out of memory?)', 'ended with exit status 1')
    """
    if code is None or code >= 0:
        return f"ended with exit status {code}"
    hint = " (out of memory?)" if code == -signal.SIGKILL else ""
    return f"was killed by {signal.Signals(-code).name}{hint}"


def serve(pipe: Connection, make: Make) -> None:
    """Answer the requests of a parent until it ends; the body of a worker process."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is left to the parent
    threading.Thread(target=_end_with_parent, daemon=True).start()
    answer, failed = None, None
    try:
        answer = make()
    except BaseException as error:
        failed = failure_of(error)
    with suppress(EOFError, OSError):
        pipe.send(None)  # ready: from here on time counts
        while True:
            pipe.send(answered(answer, failed, pipe.recv()))


def answered(answer: Answer | None, failed: Failure | None, request: Any) -> tuple[bool, Any]:
    """Whether a request could be answered, and the answer, or why not; `failed` says why there is nobody to answer."""
    if answer is None:
        return False, failed
    try:
        return True, answer(request)
    except BaseException as error:  # a user's function may call sys.exit
        return False, failure_of(error)


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)  # the main thread waits for work that will never come


@contextmanager
def interrupts_held() -> Iterator[None]:
    """Hold back Ctrl-C while processes start, so that it never reaches them; this process gets it at the end."""
    if not hasattr(signal, "pthread_sigmask"):  # Windows
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


Job = Callable[[Answer], Any]
"""Work of a thread of the pool: it is given what asks the thread's own worker."""


class Pool:
    """Workers with a thread each, which do jobs in the order in which they come; a worker that is lost is replaced.

    A request whose worker is lost is repeated `retries` times. Nothing waits for the workers when this process ends.
    """

    def __init__(self, hire: Callable[[], Worker], count: int, *, retries: int = 2, timeout: float = 0.0) -> None:
        if count < 1:
            raise ValueError(f"workers must be 1 or more, got {count}")
        self.hire, self.count, self.retries, self.timeout = hire, count, retries, timeout or None
        self.queue: SimpleQueue[tuple[Future[Any], Job] | None] = SimpleQueue()
        self.workers: list[Worker] = []
        self.closed = False
        self.replaced, self.present = 0, 0  # workers that were lost, and that have started

    def submit(self, job: Job) -> Future[Any]:
        """The future result of a job."""
        if self.closed:
            raise RuntimeError("the workers are closed")
        future: Future[Any] = Future()
        self.queue.put((future, job))
        if len(self.workers) < self.count:
            self.workers.append(worker := self.hire())
            threading.Thread(target=self._work, args=(worker,), daemon=True, name="sgfn-pool").start()
        return future

    def close(self) -> None:
        """End the workers at once; jobs that are not done fail."""
        self.closed = True
        for worker in self.workers:
            worker.close()
            self.queue.put(None)

    def _work(self, worker: Worker) -> None:
        with suppress(Exception):  # the first request tries again, and tells
            worker.start()  # before a job is taken, which others could do meanwhile
            self.present += 1
        while (found := self.queue.get()) is not None:
            future, job = found
            if not future.set_running_or_notify_cancel():
                continue
            try:
                future.set_result(job(lambda request: self._ask(worker, request)))
            except BaseException as error:
                future.set_exception(error)
            del future, job, found  # a thread that waits keeps nothing

    def _ask(self, worker: Worker, request: Any) -> Any:
        for left in reversed(range(self.retries + 1)):
            try:
                return worker.ask(request, self.timeout)
            except WorkerLost:
                if not left or self.closed:
                    raise
                self.replaced += 1
        raise AssertionError


def cut(things: list[Any], pieces: int) -> list[list[Any]]:
    """Consecutive pieces of nearly equal size, none of them empty.

    >>> cut(["a", "b", "c", "d", "e"], 2)
    [['a', 'b', 'c'], ['d', 'e']]
    """
    size = -(-len(things) // pieces)
    return [things[start : start + size] for start in range(0, len(things), size)]


def itself(thing: Any) -> Any:
    """The thing itself, for workers that are sent what answers."""
    return thing
