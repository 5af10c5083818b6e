"""Trained runs, made once; each test gets a copy of its own."""

import gc
import shutil
from pathlib import Path

import pytest
import type_checks

type_checks.install()  # before anything of ours is imported


def pytest_runtest_setup() -> None:
    """Every test checks the types of what it calls."""
    type_checks.new_test()


def pytest_configure(config: pytest.Config) -> None:
    """Load shared fixtures where tests run: a process that only hands tests out to workers need not wait for torch."""
    hands_out = getattr(config.option, "numprocesses", None) and not hasattr(config, "workerinput")
    if not hands_out:
        from benchmarks.soak import quick_parser

        quick_parser.install()
        for name in ("ray_jobs", "strange_runs", "stub_workers", "thread_workers"):
            config.pluginmanager.import_plugin(name)


def pytest_collection_finish() -> None:
    """What is there when tests begin stays: the collector of garbage need not look through it again and again."""
    gc.collect()
    gc.freeze()


@pytest.fixture(autouse=True)
def no_cached_tables(monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory) -> None:
    """What is in the user's cache is no concern of the tests."""
    monkeypatch.setenv("SGFN_CACHE", str(tmp_path_factory.getbasetemp() / "no-tables"))


@pytest.fixture(scope="session")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of each kind: on the grid, and on words."""
    from small_runs import small_on

    import sgfn

    folder = tmp_path_factory.mktemp("trained")
    for task in ("grid", "words"):
        sgfn.train(task, small_on(task), folder / task, device="cpu")
    return folder


@pytest.fixture
def grid_run(trained: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(trained / "grid", tmp_path / "grid"))


@pytest.fixture
def words_run(trained: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(trained / "words", tmp_path / "words"))
