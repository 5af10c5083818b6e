"""A background thread for writing files while training goes on."""

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from types import TracebackType


class Background:
    """A thread that runs one task at a time; its error is raised when the next task is submitted, or at the end.

    >>> with Background() as background:
    ...     background.do(lambda: print("written"))
    written
    """

    def __init__(self) -> None:
        self.pool = ThreadPoolExecutor(1, "sgfn-background")
        self.pending: Future[None] | None = None

    def do(self, work: Callable[[], None]) -> None:
        """Start a task, after waiting for the one before."""
        self.wait()
        self.pending = self.pool.submit(work)

    def wait(self) -> None:
        """Wait until the present task is done; raises its error."""
        pending, self.pending = self.pending, None
        if pending is not None:
            pending.result()

    def __enter__(self) -> "Background":
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        """Finish the present task; its error is raised unless another is on its way."""
        self.pool.shutdown()
        if error is None:
            self.wait()
