"""Panels from the long format: a row per value with unique_id, ds and y; further columns are covariates.

`unique_id` may be absent when there is one series. Columns named in `known` are covariates known in advance, all others
are seen only in the past. Rows after a series' last value are its future: they carry what is known in advance.
"""

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pandas as pd
from jaxtyping import Float64, Int64, Shaped

from sgfn.config.series import SeriesConfig
from sgfn.series.calendar import common_step, grid
from sgfn.series.panel import Panel, Series
from sgfn.series.source import SeriesTable, open_table

__all__ = ["Columns", "Reading", "panel_of", "read_panel"]

ZERO = np.timedelta64(0, "ns")


@dataclass(frozen=True, kw_only=True)
class Columns:
    """What the columns of a table are called, and what they are."""

    id_col: str = "unique_id"
    """Name of the series; may be absent when there is one."""
    time_col: str = "ds"
    """Time stamp."""
    target_col: str = "y"
    """Value."""
    known: tuple[str, ...] = ()
    """Covariates known in advance."""
    ignore: tuple[str, ...] = ()
    """Columns that are no covariates."""

    def __post_init__(self) -> None:
        parts = {"id_col": self.id_col, "time_col": self.time_col, "target_col": self.target_col}
        roles = {"known": self.known, "ignore": self.ignore} | {part: (name,) for part, name in parts.items()}
        taken: dict[str, str] = {}
        for role, names in roles.items():
            for name in names:
                if name in taken:
                    raise ValueError(f"{role} and {taken[name]} both name the column {name!r}: each has one role")
                taken[name] = role


@dataclass(frozen=True, kw_only=True)
class Reading:
    """A panel, and what its reader should be told."""

    panel: Panel
    notices: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class _Rows:
    """Rows of one series in the order of time, before gaps are filled."""

    name: str
    stamps: Shaped[np.ndarray, " R"]
    values: Float64[np.ndarray, " R"]
    known: Float64[np.ndarray, "R C"]
    past: Float64[np.ndarray, "R P"]

    @property
    def length(self) -> int:
        """Rows up to the last value."""
        return int(np.flatnonzero(~np.isnan(self.values))[-1]) + 1

    def on_grid(self, step: np.timedelta64 | None) -> "_Rows":
        """With a row for each step; what is known in advance repeats the row before a gap."""
        if step is None:
            return self
        stamps = grid(self.stamps, step)
        at = np.searchsorted(stamps, self.stamps)
        last = np.searchsorted(self.stamps, stamps, side="right") - 1
        return _Rows(
            name=self.name,
            stamps=stamps,
            values=spread(self.values, at, len(stamps)),
            known=self.known[last],
            past=spread(self.past, at, len(stamps)),
        )

    def series(self) -> Series:
        """The rows as a series: those after the last value are the future."""
        n = self.length
        return Series(
            name=self.name,
            stamps=self.stamps[:n],
            values=self.values[:n],
            known=self.known,
            past=self.past[:n],
            future=self.stamps[n:],
        )


def spread(rows: Float64[np.ndarray, "R *rest"], at: Int64[np.ndarray, " R"], count: int) -> np.ndarray:
    """Rows put at their places among `count`, nan elsewhere."""
    wide = np.full((count, *rows.shape[1:]), np.nan)
    wide[at] = rows
    return wide


@contextmanager
def naming_file(config: SeriesConfig) -> Iterator[None]:
    """Errors of the data that begin with its file, where it was read from one."""
    try:
        yield
    except ValueError as error:
        if config.file is None or str(config.file) in str(error):
            raise
        raise ValueError(f"{config.file}: {error}") from None


def panel_of(
    source: Path | str | pd.DataFrame, columns: Columns | None = None, shortest: int = 2, told_at: int = 2
) -> Panel:
    """A panel out of a DataFrame or a file; what `read_panel` would tell is warned of, so many calls up."""
    reading = read_panel(source, columns or Columns(), shortest)
    for notice in reading.notices:
        warnings.warn(notice, UserWarning, stacklevel=told_at)
    return reading.panel


def read_panel(source: Path | str | pd.DataFrame, columns: Columns, shortest: int = 2) -> Reading:
    """A checked panel out of a DataFrame or a file; every series has `shortest` values or more."""
    return _Reader(table=open_table(source), columns=columns, shortest=shortest).read()


@dataclass(frozen=True, kw_only=True)
class _Reader:
    """One table and what is expected of it."""

    table: SeriesTable
    columns: Columns
    shortest: int
    notices: list[str] = field(default_factory=list)

    def read(self) -> Reading:
        """Check the columns, sort the rows of each series, fill the grid, check the series."""
        past_names = self.past_names()
        rows = self.rows(past_names)
        step = common_step([one.stamps for one in rows])
        filled = [one.on_grid(step) for one in rows]
        if added := sum(len(one.stamps) for one in filled) - sum(len(one.stamps) for one in rows):
            lacking = plural(added, "step has", "steps have")
            self.notices.append(f"{self.table.name}: {lacking} no row; their values count as missing")
        panel = Panel(
            series=tuple(one.series() for one in filled),
            step=step,
            known_names=self.columns.known,
            past_names=past_names,
        )
        return Reading(panel=panel, notices=tuple(self.notices))

    def past_names(self) -> tuple[str, ...]:
        """The covariates seen only in the past: every column that is nothing else."""
        names = self.columns
        if names.id_col in self.table.index or names.id_col != Columns.id_col:
            self.table.require(names.id_col, "id_col")
        self.table.require(names.time_col, "time_col")
        self.table.require(names.target_col, "target_col")
        for column in names.known:
            self.table.require(column, "known")
        for column in names.ignore:
            self.table.require(column, "ignore")
        taken = {names.id_col, names.time_col, names.target_col, *names.known, *names.ignore}
        return tuple(str(column) for column in self.table.frame.columns if column not in taken)

    def rows(self, past_names: tuple[str, ...]) -> list[_Rows]:
        """Rows of each series, series in the order of their first row."""
        times, values = self.table.stamps(self.columns.time_col), self.table.numbers(self.columns.target_col)
        if times.notice:
            self.notices.append(f"{self.table.name}, column {self.columns.time_col!r}: {times.notice}")
        stamps = times.stamps
        known, past = self.numbers(self.columns.known), self.numbers(past_names)
        self.check_known(known)
        code, names = self.series_of()
        as_given = np.argsort(code, kind="stable")
        if ((np.diff(code[as_given]) == 0) & (np.diff(stamps[as_given]) < ZERO)).any():
            self.notices.append(f"{self.table.name}: rows are not in the order of time; they were sorted")
        order = np.lexsort((stamps, code))
        self.check_twice(order, code, stamps, names)
        parts = np.split(order, np.cumsum(np.bincount(code))[:-1])
        for name, part in zip(names, parts, strict=True):
            self.check_values(name, values[part], int(part[0]))
        return [
            _Rows(name=name, stamps=stamps[part], values=values[part], known=known[part], past=past[part])
            for name, part in zip(names, parts, strict=True)
        ]

    def series_of(self) -> tuple[Int64[np.ndarray, " R"], list[str]]:
        """The number of each row's series, and the names of the series."""
        if self.columns.id_col not in self.table.frame.columns:
            return np.zeros(len(self.table.frame), dtype=np.int64), [self.columns.target_col]
        code, names = pd.factorize(self.table.labels(self.columns.id_col))
        return code.astype(np.int64), list(map(str, names))

    def numbers(self, columns: tuple[str, ...]) -> Float64[np.ndarray, "R C"]:
        """Several columns beside each other."""
        empty = np.empty((len(self.table.frame), 0))
        return np.concatenate([empty, *[self.table.numbers(column)[:, None] for column in columns]], axis=1)

    def check_known(self, known: Float64[np.ndarray, "R C"]) -> None:
        """Raise where a covariate that is known in advance is not."""
        if len(wrong := np.argwhere(np.isnan(known))):
            row, column = wrong[0].tolist()
            what = "empty, yet it is known in advance; fill it in, or leave it out of known"
            raise self.table.problem(what, row, self.columns.known[column])

    def check_twice(
        self, order: Int64[np.ndarray, " R"], code: Int64[np.ndarray, " R"], stamps: np.ndarray, names: list[str]
    ) -> None:
        """Raise where one series has two rows of one stamp."""
        same = (np.diff(code[order]) == 0) & (np.diff(stamps[order]) == ZERO)
        if not same.any():
            return
        first, again = order[np.flatnonzero(same)[0] :][:2].tolist()
        where = f"{self.table.unit} {self.table.lines[first]}"
        stamp = self.table.frame[self.columns.time_col].iloc[again]
        what = f"{stamp} of series {names[code[again]]!r} is on {where} already"
        alone = self.columns.id_col not in self.table.frame.columns
        near = self.table.nearest(self.columns.id_col) if alone else ""
        fix = f"name each series in a column {self.columns.id_col!r}" if alone else "remove one of them"
        fix += f", or choose {near!r} with --id-col (id_col in Python)" if near else ""
        raise self.table.problem(f"{what}; {fix}", again, self.columns.time_col)

    def check_values(self, name: str, values: Float64[np.ndarray, " R"], row: int) -> None:
        """Raise where a series, whose first row is told, has too few values, or only one."""
        seen, column = values[~np.isnan(values)], self.columns.target_col
        if len(seen) < self.shortest:
            has = f"series {name!r} has {plural(len(seen), 'value', 'values')}, {self.shortest} are needed"
            raise self.table.problem(f"{has}; add some or remove the series", row, column)
        if len(seen) > 1 and np.ptp(seen) == 0:
            what = f"series {name!r} is constant ({seen[0]:g}); remove it, it needs no forecast"
            raise self.table.problem(what, row, column)


def plural(count: int, one: str, many: str) -> str:
    """A count and its noun."""
    return f"{count:,} {one if count == 1 else many}"
