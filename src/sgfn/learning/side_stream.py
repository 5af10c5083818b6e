"""A second CUDA stream, for work that runs beside what is queued after it."""

from collections.abc import Callable
from typing import Any

import torch


class SideStream:
    """Runs one piece of work at a time beside the current stream, until `settle` makes that stream wait for it."""

    def __init__(self) -> None:
        self.stream = torch.cuda.Stream()
        self.kept: Any = None  # what the work reads: freed memory would be reused at once

    def do(self, work: Callable[[Any], None], given: Any) -> None:
        """Queue `work(given)` after what the current stream has queued so far."""
        self.settle()
        self.stream.wait_stream(torch.cuda.current_stream())
        self.kept = given
        with torch.cuda.stream(self.stream):
            work(given)

    def settle(self) -> None:
        """Make the current stream wait for the work."""
        if self.kept is not None:
            torch.cuda.current_stream().wait_stream(self.stream)
            self.kept = None
