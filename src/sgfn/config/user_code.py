"""Errors of code that is not ours: on which line of it they arose, and how they are told in one line.

A user's function may raise anything, `sys.exit()` included: whatever it raises is an error of the user, never an end of
the program that looks like success.
"""

import os
import signal
import site
import sys
import sysconfig
import traceback
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache
from pathlib import Path
from textwrap import shorten
from types import ModuleType

from sgfn.config.processes import RemoteError

IN_COMMAND: ContextVar[bool] = ContextVar("IN_COMMAND", default=False)
"""Whether a command of ours runs, which has the process for itself."""
LONGEST = 400
"""Letters of an error's message that are told."""
OURS = str(Path(__file__).parents[1]) + os.sep
NAMED: set[str] = set()
"""Files of modules that were found by `module:name`, a user's code even where they are installed, and of the modules
that they brought with them."""


@cache
def libraries() -> tuple[str, ...]:
    """Folders of the standard library and of installed packages."""
    paths = [sysconfig.get_path(name) for name in ("stdlib", "platstdlib", "purelib", "platlib")]
    paths += [*site.getsitepackages(), site.getusersitepackages()]
    return tuple({path.rstrip(os.sep) + os.sep for path in paths})


def is_users(file: str) -> bool:
    """Whether a file of a traceback holds a user's code; code that was made at run time has no file."""
    if file.startswith("<") or file.startswith(OURS):
        return False
    return file in NAMED or not file.startswith(libraries())


def lines_of(error: BaseException) -> list[tuple[str, int]]:
    """File and line of each call that led to an error, the innermost last."""
    return [(frame.f_code.co_filename, line) for frame, line in traceback.walk_tb(error.__traceback__)]


def user_line(error: BaseException) -> str:
    """`FILE, line N` of the innermost call in a user's code that led to an error; empty where there is none."""
    if isinstance(error, RemoteError):
        return error.user_line
    found = [(file, line) for file, line in lines_of(error) if is_users(file)]
    if not found:
        return ""
    file, line = found[-1]
    here = os.path.relpath(file) if file.startswith(f"{Path.cwd()}{os.sep}") else file
    return f"{here}, line {line}"


def in_user_code(error: BaseException) -> str:
    """The same as a part of a sentence, with a blank before it."""
    line = user_line(error)
    return f" in {line}" if line else ""


def brief(error: BaseException) -> str:
    """Kind and message of an error in one line, cut where it gets long.

    >>> brief(SystemExit(0)), brief(KeyError())
    ('SystemExit: 0', 'KeyError')
    """
    try:
        said = str(error)
    except Exception:  # a class of the user's, whose text fails
        said = ""
    return shorten(f"{type(error).__name__}: {said}", LONGEST, placeholder=" ...").removesuffix(":")


def raised_by_user(error: BaseException) -> bool:
    """Whether an error came out of code that was found by name: raised there, or by ours when it was called wrongly."""
    files = [file for file, _ in lines_of(error) if is_users(file) or file.startswith(OURS)]
    if NAMED.isdisjoint(files) or isinstance(error, BrokenPipeError | MemoryError):
        return False  # the last two are of whoever reads the output, and of the machine
    said = isinstance(error, ValueError | OSError | KeyboardInterrupt | SystemExit)  # ours say what is wrong
    return is_users(files[-1]) or not said


def note_users(modules: Iterable[ModuleType | None]) -> None:
    """Take modules that are not installed for a user's code."""
    files = [getattr(module, "__file__", None) for module in modules]
    NAMED.update(file for file in files if file is not None and is_users(file))


@contextmanager
def user_errors(*, notes: bool = True) -> Iterator[None]:
    """Turn whatever a user's code raises in a command into a ValueError of one line, notes on the error with it.

    Ctrl-C is raised from here as long as this lasts, so that it is told from a KeyboardInterrupt that a user's code
    raises itself. Folders in which modules were found stay on the path so long.
    """
    try:
        with _own_interrupts(), _own_path():
            yield
    except BaseException as error:
        said = getattr(error, "__notes__", []) if notes else []
        if raised_by_user(error):
            raise ValueError("; ".join([f"{user_line(error)}: {brief(error)}", *said])) from error
        if said and isinstance(error, ValueError):
            raise ValueError("; ".join([str(error), *said])) from error
        raise


@contextmanager
def _own_path() -> Iterator[None]:
    before, token = list(sys.path), IN_COMMAND.set(True)
    try:
        yield
    finally:
        IN_COMMAND.reset(token)
        sys.path[:] = before


@contextmanager
def _own_interrupts() -> Iterator[None]:
    def interrupt(number: int, _: object) -> None:
        raise KeyboardInterrupt

    replaced = signal.getsignal(signal.SIGINT) is signal.default_int_handler
    try:
        if replaced:
            signal.signal(signal.SIGINT, interrupt)
    except ValueError:  # not the main thread
        replaced = False
    try:
        yield
    finally:
        if replaced:
            signal.signal(signal.SIGINT, signal.default_int_handler)
