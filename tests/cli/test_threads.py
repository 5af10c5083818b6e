"""Threads of the command line wait passively, unless told otherwise."""

import os

import pytest

from sgfn.cli import main


@pytest.mark.parametrize(("given", "wanted"), [(None, "PASSIVE"), ("ACTIVE", "ACTIVE")])
def test_threads_wait_without_a_core(given: str | None, wanted: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OMP_WAIT_POLICY", "to be taken back")
    monkeypatch.delenv("OMP_WAIT_POLICY")
    if given is not None:
        monkeypatch.setenv("OMP_WAIT_POLICY", given)
    assert main(["--version"]) == 0
    assert os.environ["OMP_WAIT_POLICY"] == wanted
