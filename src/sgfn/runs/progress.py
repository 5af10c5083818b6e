"""Progress of a training in a terminal or a notebook."""

import html
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Protocol, runtime_checkable

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.table import Column

PAUSE = 0.2
"""Seconds between two updates in a notebook."""
NARROW, WIDE = 100, 160
"""Letters of a terminal from which there is room for a bar, and for a long one."""


@runtime_checkable
class Display(Protocol):
    """Shows how training goes: a bar, lines, or nothing."""

    def line(self, step: int, row: dict[str, Any]) -> None:
        """The figures of a logged step; a row may hold a notice instead."""
        ...

    def pulse(self, step: int) -> None:
        """A step was made."""
        ...

    def notice(self, text: str) -> None:
        """Something that the user should know."""
        ...


def figures(row: dict[str, Any]) -> str:
    """The figures beside a bar.

    >>> figures({"tv": 0.1234, "loss": 2.0, "rate": 12345.6})
    'TV 0.123  loss 2.000  12,346 trajectories/s'
    >>> figures({"live": {"scores_per_second": 99.5, "waiting": 128}})
    '99.5 scores/s, 128 waiting'
    """
    named = [("tv", "TV"), ("loss", "loss"), ("reward", "mean reward")]
    parts = [f"{words} {row[name]:.3f}" for name, words in named if name in row]
    parts += [f"{row['rate']:,.0f} trajectories/s"] if "rate" in row else []
    if live := row.get("live"):
        rate = [f"{live['scores_per_second']:,.1f} scores/s"] if "scores_per_second" in live else []
        parts.append(", ".join([*rate, f"{live['waiting']:,.0f} waiting"]))
    return "  ".join(parts)


class TerminalBar:
    """A bar of rich on standard error."""

    def __init__(self, bar: Progress, name: str, steps: int) -> None:
        self.bar, self.figures = bar, {}
        self.task = bar.add_task(name, total=steps, figures="")

    def line(self, step: int, row: dict[str, Any]) -> None:
        """New figures."""
        if "notice" in row:
            return self.notice(row["notice"])
        self.figures |= row
        return self.bar.update(self.task, completed=step, figures=figures(self.figures))

    def pulse(self, step: int) -> None:
        """The bar moves."""
        self.bar.update(self.task, completed=step)

    def notice(self, text: str) -> None:
        """A line above the bar."""
        self.bar.console.print(text, soft_wrap=True)


class NotebookBar:
    """One output of a notebook cell that is replaced as training goes on; it stays readable in the saved file.

    Rich needs ipywidgets to replace an output; this needs IPython alone, which a notebook has.
    """

    def __init__(self, name: str, steps: int) -> None:
        from IPython.display import display  # pyright: ignore[reportMissingImports]

        self.name, self.steps, self.step, self.figures = name, steps, 0, {}
        self.notices: list[str] = []
        self.shown = 0.0
        self.handle: Any = display(self.bundle(), raw=True, display_id=True)

    def line(self, step: int, row: dict[str, Any]) -> None:
        """New figures."""
        if "notice" in row:
            return self.notice(row["notice"])
        self.figures |= row
        return self.pulse(step)

    def pulse(self, step: int) -> None:
        """The bar moves, a few times in a second."""
        self.step = step
        if time.monotonic() - self.shown > PAUSE:
            self.show()

    def notice(self, text: str) -> None:
        """A line below the bar."""
        self.notices.append(text)
        self.show()

    def show(self) -> None:
        """Replace the output."""
        self.shown = time.monotonic()
        self.handle.update(self.bundle(), raw=True)

    def bundle(self) -> dict[str, str]:
        """The output as text and as HTML."""
        text = "  ".join(filter(None, [self.name, f"{self.step:,}/{self.steps:,}", figures(self.figures)]))
        below = "".join(f"<div>{html.escape(line)}</div>" for line in self.notices)
        bar = f'<progress value="{self.step}" max="{self.steps}" style="width:16em"></progress>'
        page = f"<div>{bar} <code>{html.escape(text)}</code>{below}</div>"
        return {"text/plain": "\n".join([text, *self.notices]), "text/html": page}


class Listener:
    """Hands every logged row to a function of (step, row)."""

    def __init__(self, function: Callable[[int, dict[str, Any]], object]) -> None:
        self.function = function

    def line(self, step: int, row: dict[str, Any]) -> None:
        """Rows of figures alone."""
        if "step" in row:
            self.function(step, row)

    def pulse(self, step: int) -> None:
        """Nothing between rows."""

    def notice(self, text: str) -> None:
        """Not a row."""


def in_notebook() -> bool:
    """Whether the code runs in a kernel of Jupyter."""
    module = sys.modules.get("IPython")
    shell = module.get_ipython() if module is not None else None
    return shell is not None and hasattr(shell, "kernel")


def training_bar(console: Console, *, disable: bool = False) -> Progress:
    """A bar of steps and times with figures beside it, which have the room that is left, in several lines at need."""
    name, steps = TextColumn("[bold]{task.description}"), TextColumn("{task.completed:,}/{task.total:,}")
    bar = [BarColumn(40 if console.width >= WIDE else 12)] if console.width >= NARROW else []
    beside = TextColumn("{task.fields[figures]}", table_column=Column(ratio=1))
    columns = (name, *bar, steps, TimeElapsedColumn(), TimeRemainingColumn(), beside)
    return Progress(*columns, console=console, refresh_per_second=4, expand=True, disable=disable)


@contextmanager
def shown(progress: bool | Callable[[int, dict[str, Any]], object], name: str, steps: int) -> Iterator[Display | None]:
    """A display of a training: a bar, a function that is told, or None."""
    if callable(progress):
        yield Listener(progress)
    elif progress and in_notebook():
        bar = NotebookBar(name, steps)
        try:
            yield bar
        finally:
            bar.show()
    elif progress and (console := Console(stderr=True, highlight=False)).is_terminal:
        with training_bar(console) as bar:
            yield TerminalBar(bar, name, steps)
    else:
        yield None
