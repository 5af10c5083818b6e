"""Trained runs, made once; each test gets a copy of its own."""

import gc
import itertools
import re
import shutil
import signal
from collections.abc import Generator, Iterator
from pathlib import Path

import pytest
import type_checks
from _pytest.doctest import DoctestModule

type_checks.install()  # before anything of ours is imported
gc.disable()  # until tests are collected: what is imported stays
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # begun in the background of a shell: commands would inherit it
    signal.signal(signal.SIGINT, signal.default_int_handler)
FOLDERS = itertools.count()


def pytest_runtest_setup() -> None:
    """Every test checks the types of what it calls."""
    type_checks.new_test()


def pytest_configure(config: pytest.Config) -> None:
    """Load shared fixtures where tests run: a process that only hands tests out to workers need not wait for torch."""
    hands_out = getattr(config.option, "numprocesses", None) and not hasattr(config, "workerinput")
    if not hands_out:
        from benchmarks.soak import quick_parser
        from hypothesis import settings

        quick_parser.install()
        settings.register_profile("tests", deadline=None, max_examples=60)  # others in every run
        settings.load_profile("tests")
        for name in ("forecast_runs", "fork_server", "ray_jobs", "strange_runs", "stub_workers", "thread_workers"):
            config.pluginmanager.import_plugin(name)


@pytest.hookimpl(wrapper=True)
def pytest_collect_file() -> Generator[None, list[pytest.Collector], list[pytest.Collector]]:
    """Look for examples in docstrings in the package alone: tests and their scripts have none, and scripts are slow."""
    return [found for found in (yield) if not isinstance(found, DoctestModule)]


SHARED = ("cluster", "server")
"""Fixtures that take seconds to begin: a cluster, and a process that commands are forked from."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Let tests that share such a fixture follow each other, so that of several workers one alone begins it."""
    items.sort(key=lambda item: [name not in getattr(item, "fixturenames", ()) for name in SHARED])


def pytest_collection_finish() -> None:
    """What is there when tests begin stays: the collector of garbage need not look through it, nor so often."""
    gc.freeze()
    gc.set_threshold(20_000, 20, 20)
    gc.enable()


PICTURES = ("picture", "page", "report", "logo", "figure", "benchmarks", "examples")
"""Parts of the names of tests that look at pictures."""


@pytest.fixture(autouse=True, scope="module")
def sketches(request: pytest.FixtureRequest) -> Iterator[None]:
    """Pictures that no test looks at are sketches."""
    if any(part in request.path.stem for part in PICTURES):
        yield
    else:
        yield from sketching()


@pytest.fixture
def sketched() -> Iterator[None]:
    """Sketches in one test of a module whose other tests look at pictures."""
    yield from sketching()


def sketching() -> Iterator[None]:
    """Leave out the layout and the ticks of pictures, which take as long as all else."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("matplotlib.layout_engine.ConstrainedLayoutEngine.execute", lambda self, figure: None)
        patch.setattr("matplotlib.axis.Axis.draw", lambda self, renderer: None)
        yield


@pytest.fixture(autouse=True, scope="session")
def no_cached_tables(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """What is in the user's cache is no concern of the tests."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SGFN_CACHE", str(tmp_path_factory.getbasetemp() / "no-tables"))
        yield


@pytest.fixture
def tmp_path(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of the test's own. Pytest's looks through all folders of tests before for a name that is free."""
    name = re.sub(r"\W", "_", request.node.name)[:30]
    folder = tmp_path_factory.getbasetemp() / f"{name}-{next(FOLDERS)}"
    folder.mkdir(mode=0o700)
    return folder


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
