"""Threads of the command line do not wait long on a core of their own, unless told otherwise."""

import os

import pytest

from sgfn.cli import main


@pytest.mark.parametrize(("given", "wanted"), [(None, "3000"), ("7", "7")])
def test_threads_that_wait_leave_their_core(given: str | None, wanted: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GOMP_SPINCOUNT", "to be taken back")
    monkeypatch.delenv("GOMP_SPINCOUNT")
    if given is not None:
        monkeypatch.setenv("GOMP_SPINCOUNT", given)
    assert main(["--version"]) == 0
    assert os.environ["GOMP_SPINCOUNT"] == wanted
