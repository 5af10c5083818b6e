"""Standard streams as callers leave them: closed, full, read by nobody, or in an encoding that lacks letters."""

import contextlib
import io
import os
import re
import sys
import unicodedata
from collections.abc import Iterator
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

from rich.console import Console

LONGEST = 1200
"""Characters at most of a line on standard error; the middle of a longer one is left out."""


def open_streams() -> None:
    """Make standard streams usable: a closed one leads to the null device, and letters it cannot write are escaped.

    What is closed must be taken at once: the next file to be opened would get its number, and with it what is printed.
    """
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # gets the lowest number that is free, which is this one
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, mode, encoding="utf-8"))  # noqa: SIM115, PTH123 -- as long as we live
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def silence(stream: Any) -> None:
    """Let a stream that nobody reads lead to the null device, so that what is left in it raises nothing at the end."""
    with contextlib.suppress(OSError, ValueError, AttributeError):  # a stream of a test has no number
        target, null = stream.fileno(), os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, target)
        os.close(null)


@dataclass(frozen=True)
class _Aside:
    """Standard output while others' prints are led elsewhere: the stream, its number and a copy of what it led to."""

    stream: Any
    number: int | None
    """None where a stream has none, as those of tests."""
    kept: int | None

    def lead(self, target: int | None) -> None:
        """Let the stream's number lead to another file from now on."""
        with contextlib.suppress(OSError, ValueError):
            self.stream.flush()
        if self.number is not None and target is not None:
            os.dup2(target, self.number)


_ASIDE: ContextVar[_Aside | None] = ContextVar("_ASIDE", default=None)


@contextlib.contextmanager
def printed_aside() -> Iterator[None]:
    """Lead what others print on standard output to standard error while the block runs, worker processes included.

    So that standard output has the results alone, which `results` writes.
    """
    number = _number(sys.stdout)
    aside = _Aside(sys.stdout, number, None if number is None else os.dup(number))
    token = _ASIDE.set(aside)
    aside.lead(_number(sys.stderr))
    try:
        with contextlib.redirect_stdout(sys.stderr):
            yield
    finally:
        _ASIDE.reset(token)
        aside.lead(aside.kept)
        if aside.kept is not None:
            os.close(aside.kept)


@contextlib.contextmanager
def results() -> Iterator[Any]:
    """Standard output itself, also where others' prints are led elsewhere."""
    aside = _ASIDE.get()
    if aside is None:
        yield sys.stdout
        return
    aside.lead(aside.kept)
    try:
        yield aside.stream
        aside.stream.flush()
    finally:
        aside.lead(_number(sys.stderr))


def _number(stream: Any) -> int | None:
    try:
        return stream.fileno()
    except (OSError, ValueError, AttributeError):  # a stream of a test, or one that is closed
        return None


def visible(text: str) -> str:
    r"""Text whose control characters are written out, but for line ends: a name may not steer the terminal.

    >>> visible("a\x1b[2Jb\n")
    'a\\x1b[2Jb\n'
    """
    if text.isascii() and text.isprintable():
        return text
    return "".join(c if c == "\n" or unicodedata.category(c)[0] != "C" else ascii(c)[1:-1] for c in text)


def in_one_line(message: str) -> str:
    """A message without line ends and control characters, not too long; blanks within a line stay as they are."""
    line = visible(re.sub(r"\s*[\r\n]\s*", " ", message.strip()))
    head, tail = LONGEST * 2 // 3, LONGEST // 3
    return line if len(line) <= LONGEST else f"{line[:head]} ... {line[-tail:]}"


class Output(Console):
    """A console for plain text, which may hold brackets and names of other people."""

    def __init__(self, *, stderr: bool = False, **options: Any) -> None:
        super().__init__(stderr=stderr, highlight=False, markup=False, emoji=False, **options)

    def print(self, *objects: Any, **options: Any) -> None:
        """Print objects; control characters in text are written out.

        Results that cannot be written raise; notices that nobody can read are no reason to stop.
        """
        try:
            super().print(*(visible(one) if isinstance(one, str) else one for one in objects), **options)
        except OSError:
            if not self.stderr:
                raise
            self.on_broken_pipe()

    def on_broken_pipe(self) -> None:
        """Raise where results find no reader; say no more where notices do not."""
        if not self.stderr:
            raise BrokenPipeError
        self.quiet = True
        silence(sys.stderr)
