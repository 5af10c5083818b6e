"""Writing while training goes on."""

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from types import TracebackType


class Background:
    """A thread that does one thing after the other; an error is raised where the next thing is asked for, or the end.

    >>> with Background() as background:
    ...     background.do(lambda: print("written"))
    written
    """

    def __init__(self) -> None:
        self.pool = ThreadPoolExecutor(1, "sgfn-background")
        self.pending: Future[None] | None = None

    def do(self, work: Callable[[], None]) -> None:
        """Begin some work, after waiting for what was begun before."""
        self.wait()
        self.pending = self.pool.submit(work)

    def wait(self) -> None:
        """Until all is done."""
        pending, self.pending = self.pending, None
        if pending is not None:
            pending.result()

    def __enter__(self) -> "Background":
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        """What was begun is finished; of two errors the one that came first is raised."""
        self.pool.shutdown()
        if error is None:
            self.wait()
