"""A function on lists of strings run in several processes, for functions that keep a core busy."""

import multiprocessing
import os
import signal
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager


class ParallelFunction:
    """A function on a list of strings, called on one piece of the list in each of several processes.

    Processes start at the first call that needs them and end with `close`, with this object, or with their parent.
    """

    def __init__(self, function: Callable[[list[str]], list[float]], count: int) -> None:
        if count < 1:
            raise ValueError(f"workers must be 1 or more, got {count}")
        self.function, self.count = function, count
        self.pool: ProcessPoolExecutor | None = None

    def __call__(self, texts: list[str]) -> list[float]:
        """Answers of the function in the order of the strings."""
        if self.count == 1 or len(texts) < 2:
            return self.function(texts)
        pool = self._started()
        try:
            with _interrupts_held():
                promised = pool.map(self.function, cut(texts, self.count))
            pieces = list(promised)
        except BrokenProcessPool as error:
            self.close()
            fix = "guard the script with if __name__ == '__main__', or set workers to 1"
            raise ValueError(f"a worker process ended before its work was done: {fix}") from error
        return [value for piece in pieces for value in piece]

    def close(self) -> None:
        """End the processes and wait for them; a later call starts new ones."""
        if self.pool is not None:
            self.pool.shutdown(wait=True, cancel_futures=True)
            self.pool = None

    def _started(self) -> ProcessPoolExecutor:
        # Spawned, not forked: the parent may hold threads and a GPU.
        if self.pool is None:
            spawn = multiprocessing.get_context("spawn")
            self.pool = ProcessPoolExecutor(self.count, mp_context=spawn, initializer=_begin)
        return self.pool


def cut(texts: list[str], pieces: int) -> list[list[str]]:
    """Consecutive pieces of nearly equal size, none of them empty.

    >>> cut(["a", "b", "c", "d", "e"], 2)
    [['a', 'b', 'c'], ['d', 'e']]
    """
    size = -(-len(texts) // pieces)
    return [texts[start : start + size] for start in range(0, len(texts), size)]


@contextmanager
def _interrupts_held() -> Iterator[None]:
    """Hold back Ctrl-C while processes start, so that it never reaches them; this process gets it at the end."""
    if not hasattr(signal, "pthread_sigmask"):  # Windows
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _begin() -> None:
    """Set up a worker process: Ctrl-C is left to the parent, and the process ends when its parent does."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)  # the main thread waits for work that will never come
