"""Commands in processes of their own that are forked from one which has imported everything: see `ForkServer`."""

from collections.abc import Iterator

import pytest
from benchmarks.soak.forks import ForkServer


@pytest.fixture(scope="session")
def server() -> Iterator[ForkServer]:
    with ForkServer() as process:
        yield process
