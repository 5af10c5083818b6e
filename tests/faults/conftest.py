"""What all tests of faults share: folders to try commands on."""

import os

import pytest
from benchmarks.soak.folders import Bases
from benchmarks.soak.forks import ForkServer
from benchmarks.soak.kills import Kills


@pytest.fixture(scope="session")
def bases(server: ForkServer, tmp_path_factory: pytest.TempPathFactory) -> Bases:
    workers = "PYTEST_XDIST_WORKER" in os.environ  # all of one session share what they try commands on
    return Bases(server, (tmp_path_factory.getbasetemp().parent if workers else tmp_path_factory.mktemp("x")) / "bases")


@pytest.fixture(scope="session")
def kills(server: ForkServer, bases: Bases) -> Kills:
    return Kills(server, bases)
