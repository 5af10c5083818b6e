"""Progress of `sgfn compare`: a live table on a terminal, a line per cell elsewhere."""

import time
from collections import Counter
from statistics import median
from types import TracebackType

from rich.console import Console, Group
from rich.live import Live
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.table import Table
from rich.text import Text

from sgfn.compare.cells import CellState

EVERY = 0.25  # seconds between two drawings
ENDED = ("done", "failed")
NODES_SHOWN = 3
"""Nodes that a row of the table names."""


class LiveDisplay:
    """Shows a bar for all cells above a table of methods and noise levels; call it with the states of the cells."""

    def __init__(self, console: Console) -> None:
        self.console, self.shown, self.states = console, 0.0, list[CellState]()
        columns = [TextColumn("{task.description}"), BarColumn(), TextColumn("{task.percentage:.0f}%")]
        self.bar = Progress(*columns, TimeElapsedColumn(), TimeRemainingColumn(), console=console)
        self.task = self.bar.add_task("")
        self.live = Live(console=console, auto_refresh=False, transient=True)

    def __enter__(self) -> "LiveDisplay":
        self.live.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.show()
        self.live.stop()

    def __call__(self, states: list[CellState]) -> None:
        """Draw again if the last drawing is older than `EVERY`."""
        self.states = states
        if time.monotonic() - self.shown >= EVERY:
            self.show()

    def show(self) -> None:
        """Draw the table of cells anew."""
        if not self.states:
            return
        total = sum(state.cell.config.steps for state in self.states)
        done = sum(state.cell.config.steps if state.status in ENDED else state.step for state in self.states)
        self.bar.update(self.task, description=progress_text(self.states), total=total, completed=done)
        room = self.console.height - 4
        self.live.update(Group(self.bar, live_table(self.states, room)), refresh=True)
        self.shown = time.monotonic()


def progress_text(states: list[CellState]) -> str:
    """Numbers of cells that are done and that failed, in words."""
    failed = sum(state.status == "failed" for state in states)
    words = [f"{sum(state.status == 'done' for state in states)} of {len(states)} cells done"]
    words += [f"{failed} failed"] if failed else []
    if nodes := {state.node for state in states if state.status == "running" and state.node}:
        words.append(f"{len(nodes)} node{'s' * (len(nodes) != 1)} at work")
    return ", ".join(words)


def live_table(states: list[CellState], room: int) -> Table:
    """Table with a row per method and noise level; where they do not fit, only of those that run or have failed."""
    groups: dict[tuple[str, str], list[CellState]] = {}
    for state in states:
        groups.setdefault((state.cell.method, state.cell.noise), []).append(state)
    rows = list(groups.values())
    if len(rows) > room:
        rows = [group for group in rows if {state.status for state in group} & {"running", "failed"}][: max(room, 1)]
    table = Table(box=None, header_style="bold", pad_edge=False)
    table.add_column("method", no_wrap=True)
    for label in ("noise", "done", "running", "failed", "step", "TV", "mean reward", "trajectories/s", "left"):
        table.add_column(label, justify="right", no_wrap=True)
    clustered = any(state.node for state in states)
    if clustered:
        table.add_column("nodes", no_wrap=True)
    for group in rows:
        table.add_row(*_cells_of(group), *([nodes_of(group)] if clustered else []))
    return table


def _cells_of(group: list[CellState]) -> list[Text | str]:
    """Columns of a row of `live_table`."""
    cell, at_work = group[0].cell, [state for state in group if state.status == "running"]
    count = {status: sum(state.status == status for state in group) for status in ("done", "running", "failed")}
    steps = f"{max((state.step for state in at_work or group), default=0):,}/{cell.config.steps:,}"
    rate = sum((state.rate for state in at_work), start=0.0)
    return [
        Text(cell.method, style="bold" if at_work else ""),
        cell.noise.removesuffix(" noise"),
        f"{count['done']}/{len(group)}",
        str(count["running"] or ""),
        Text(str(count["failed"] or ""), style="red"),
        steps,
        newest(group, "tv"),
        newest(group, "reward"),
        f"{rate:,.0f}" if rate else "",
        _left(group, rate),
    ]


def nodes_of(group: list[CellState]) -> str:
    """Nodes that run cells of a group, each with their number where it runs several; the first few."""
    counts = Counter(state.node for state in group if state.status == "running" and state.node)
    names = [f"{name} x {count}" if count > 1 else name for name, count in sorted(counts.items())]
    more = [f"{len(names) - NODES_SHOWN} more"] if len(names) > NODES_SHOWN else []
    return ", ".join([*names[:NODES_SHOWN], *more])


def newest(group: list[CellState], key: str) -> str:
    """Median over seeds of the newest value of a figure."""
    known = [state.row[key] for state in group if key in state.row]
    return f"{median(known):.4f}" if known else ""


def _left(group: list[CellState], rate: float) -> str:
    """Time that the group still needs at its present speed, as h:mm:ss."""
    if not rate:
        return ""
    steps = sum(state.cell.config.steps - state.step for state in group if state.status not in ENDED)
    seconds = int(steps * group[0].cell.config.batch / rate)
    return f"{seconds // 3600}:{seconds // 60 % 60:02}:{seconds % 60:02}"


class Lines:
    """Prints a line for each cell that ends; call it with the states of all."""

    def __init__(self, console: Console) -> None:
        self.console = console
        self.told: set[str] | None = None

    def __call__(self, states: list[CellState]) -> None:
        """Print lines for the cells that have ended since the last call."""
        done = [state for state in states if state.status in ENDED]
        if self.told is None:
            self.told = {state.cell.name for state in done}
            if done:
                self._print(f"{len(done)} of {len(states)} cells were done before")
        for state in done:
            if state.cell.name not in self.told:
                self.told.add(state.cell.name)
                self._print(f"{cell_line(state)} ({len(self.told)} of {len(states)})")

    def _print(self, text: str) -> None:
        self.console.print(text, markup=False, soft_wrap=True)


def cell_line(state: CellState) -> str:
    """Result of a cell that has ended, in one line."""
    if state.status == "failed":
        return f"{state.cell.label}: failed: {state.error}"
    tv, score = state.results.get("tv"), state.results.get("sample_mean")
    figure = f"TV {tv:.4f}" if tv is not None else f"mean score {score or 0:.4f}"
    calls = f"{state.row.get('trajectories', 0):,} environment calls"
    lost = f", lost {state.losses} time{'s' * (state.losses != 1)} before" if state.losses else ""
    where = f" on {state.node}{lost}" if state.node else ""
    return f"{state.cell.label}: {figure} after {calls}" + (f", {state.seconds:.0f} s" if state.seconds else "") + where
