"""Work on a stream of its own, beside what a GPU is asked to do after it."""

from collections.abc import Callable
from typing import Any

import torch


class SideStream:
    """Does one thing at a time beside the current stream, until `settle` makes that stream wait for it."""

    def __init__(self) -> None:
        self.stream = torch.cuda.Stream()
        self.kept: Any = None  # what the work reads; memory that is let go is given to others at once

    def do(self, work: Callable[[Any], None], given: Any) -> None:
        """Begin some work on what is there now."""
        self.settle()
        self.stream.wait_stream(torch.cuda.current_stream())
        self.kept = given
        with torch.cuda.stream(self.stream):
            work(given)

    def settle(self) -> None:
        """What is asked of the current stream from here on comes after the work."""
        if self.kept is not None:
            torch.cuda.current_stream().wait_stream(self.stream)
            self.kept = None
