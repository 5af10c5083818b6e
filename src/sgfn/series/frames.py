"""Panels from the long format: a row per value with unique_id, ds and y; further columns are covariates.

`unique_id` may be absent when there is one series, and columns of other names are found where they are plain. Columns
named in `known` are covariates known in advance, all others are seen only in the past; words become indicators. Rows
after a series' last value are its future: they carry what is known in advance.
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
from sgfn.series.calendar import common_step, grid, in_months, months_in, numbered_stamps, numbers_of
from sgfn.series.categories import MOST_LEVELS, SIGN, Indicators, indicators
from sgfn.series.columns import NO_TIME, Columns, found_columns, with_joined_names, without_copies
from sgfn.series.keywords import by_parameters
from sgfn.series.panel import Panel, Series
from sgfn.series.plan import in_words
from sgfn.series.source import SeriesTable, open_table
from sgfn.series.times import Times, snapped, step_named

__all__ = ["Columns", "Reading", "panel_of", "read_panel"]

ZERO = np.timedelta64(0, "ns")
FEW_NAMES, NAMES_PART = 8, 0.25
"""Words that occur once, and share of the rows, from which on a column without times beside it names things."""
NIGHT = (0.5, 3.5)
"""Hours of the night in which clocks are put back."""


@dataclass(frozen=True, kw_only=True)
class Reading:
    """A panel, and what its reader should be told."""

    panel: Panel
    notices: tuple[str, ...]
    targets: tuple[str, ...] = ()
    """Names of the columns that are forecast."""


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


def spread(rows: Float64[np.ndarray, " R *rest"], at: Int64[np.ndarray, " R"], count: int) -> np.ndarray:
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
    for notice in map(by_parameters, reading.notices):
        warnings.warn(notice, UserWarning, stacklevel=told_at)
    return reading.panel


def read_panel(source: Path | str | pd.DataFrame, columns: Columns, shortest: int = 2) -> Reading:
    """A checked panel out of a DataFrame or a file; every series has `shortest` values or more."""
    table = open_table(source)
    found = found_columns(table, columns)
    table, columns = with_joined_names(table, found.columns)
    table, repeated = without_copies(table, columns)
    reader = _Reader(table=table, columns=columns, shortest=shortest)
    if found.notice:
        reader.tell(found.notice)
    if repeated:
        reader.tell(
            f"{plural(repeated, 'row is', 'rows are')} there twice, the same in every column; one of each is read"
        )
    return reader.read()


@dataclass(frozen=True, kw_only=True)
class _Covariates:
    """Numbers and indicators of some columns, and their names."""

    rows: Float64[np.ndarray, "R C"]
    names: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class _Reader:
    """One table and what is expected of it."""

    table: SeriesTable
    columns: Columns
    shortest: int
    notices: list[str] = field(default_factory=list)

    def read(self) -> Reading:
        """Check the columns, sort the rows of each series, fill the grid, check the series."""
        past_columns = self.past_columns()
        known, past = self.covariates(self.columns.known, ahead=True), self.covariates(past_columns)
        self.check_known(known)
        rows = self.rows(known, past)
        step = self.step(rows)
        filled = [one.on_grid(step) for one in rows]
        if added := sum(len(one.stamps) for one in filled) - sum(len(one.stamps) for one in rows):
            lacking = plural(added, "step has", "steps have")
            self.tell(f"{lacking} no row; their values count as missing")
        panel = Panel(
            series=tuple(one.series() for one in filled),
            step=step,
            known_names=known.names,
            past_names=past.names,
            targets=self.targets,
        )
        return Reading(panel=panel, notices=tuple(self.notices), targets=self.targets)

    def tell(self, line: str) -> None:
        """Keep a line for the user."""
        self.notices.append(f"{self.table.name}: {line}")

    # columns

    @property
    def targets(self) -> tuple[str, ...]:
        """Columns that are forecast; one that has a comma in its name is one."""
        whole = self.columns.target_col
        return (whole,) if whole in self.table.frame.columns else self.columns.targets

    def past_columns(self) -> tuple[str, ...]:
        """The covariates seen only in the past: every column that is nothing else."""
        names = self.columns
        if names.id_col in self.table.index or names.id_col != Columns.id_col:
            self.table.require(names.id_col, "id_col")
        if names.time_col != NO_TIME:
            self.table.require(names.time_col, "time_col")
        wanted = {"target_col": self.targets, "known": names.known, "ignore": names.ignore}
        for option, columns in wanted.items():
            for column in columns:
                self.table.require(column, option)
        taken = {names.id_col, names.time_col, *self.targets, *names.known, *names.ignore}
        return tuple(str(column) for column in self.table.frame.columns if column not in taken)

    def covariates(self, columns: tuple[str, ...], *, ahead: bool = False) -> _Covariates:
        """Several columns beside each other, words as indicators; those known `ahead` are empty where nothing is on."""
        parts, names = [np.empty((len(self.table.frame), 0))], list[str]()
        for column in columns:
            self.tell_of_commas(column)
            words = self.table.words(column)
            if words is None:
                parts.append(self.table.numbers(column)[:, None])
                names.append(column)
                continue
            found = self.indicators(column, words, ahead=ahead)
            if found is None:
                continue
            parts.append(np.nan_to_num(found.rows) if ahead else found.rows)
            names += found.names
        return _Covariates(rows=np.concatenate(parts, axis=1), names=tuple(names))

    def indicators(self, column: str, words: pd.Series, *, ahead: bool) -> Indicators | None:
        """Indicators of a column of words; None where it has too many, which is an error of one known in advance."""
        counts = words[words != ""].value_counts()
        count, names = len(counts), int((counts == 1).sum())
        if self.columns.time_col == NO_TIME and names >= max(FEW_NAMES, NAMES_PART * len(words)):
            what = f"{names:,} of {len(words):,} rows have words of their own here, and no column has times"
            fix = (
                "a table of sequences or names is no series; give times by --time-col (time_col in Python), leave the "
            )
            fix += "column out by --ignore, or learn sequences by `sgfn train table`"
            raise self.table.problem(f"{what}: {fix}", column=column)
        if count > MOST_LEVELS:
            row = int(np.flatnonzero(words != "")[0])
            many = f"{count:,} different words, and {MOST_LEVELS} are read as a covariate at most"
            if not ahead and not self.table.names_series(column):
                self.notices.append(f"{self.table.name}, column {column!r}: {many}; it is left out")
                return None
            what = f"{words.iloc[row][:40]!r} is not a number, and the column has {many}"
            raise self.table.problem(f"{what}; {self.table.way_out(column)}", row, column)
        told = f"{plural(count, 'word is', 'words are')} read as an indicator each"
        if ahead and (words == "").any():
            told += "; where the column is empty, none of them"
        self.notices.append(f"{self.table.name}, column {column!r}: {told}")
        return indicators(column, words)

    # rows

    def rows(self, known: _Covariates, past: _Covariates) -> list[_Rows]:
        """Rows of each series, series in the order of their first row, those of several targets side by side."""
        code, names = self.series_of()
        stamps = self.stamps(code)
        as_given = np.argsort(code, kind="stable")
        if ((np.diff(code[as_given]) == 0) & (np.diff(stamps[as_given]) < ZERO)).any():
            self.tell("rows are not in the order of time; they were sorted")
        order = np.lexsort((stamps, code))
        self.check_twice(order, code, stamps, names)
        for target in self.targets:
            self.tell_of_commas(target)
        values = {target: self.table.numbers(target, target=True) for target in self.targets}
        found, short = list[_Rows](), list[tuple[str, int, int, str]]()
        for name, part in zip(names, np.split(order, np.cumsum(np.bincount(code))[:-1]), strict=True):
            for target in self.targets:
                own, seen = self.name_of(name, target), int((~np.isnan(values[target][part])).sum())
                if seen < self.shortest:
                    short.append((own, seen, int(part[0]), target))
                    continue
                some = {"stamps": stamps[part], "values": values[target][part]}
                found.append(_Rows(name=own, **some, known=known.rows[part], past=past.rows[part]))
        self.check_short(short, rest=len(found))
        self.tell_of(found)
        return found

    def stamps(self, code: Int64[np.ndarray, " R"]) -> Shaped[np.ndarray, " R"]:
        """Stamps of each row: read, put to the beginning of steps that were named, or the rows' own numbers."""
        if self.columns.time_col == NO_TIME:
            found = Times(stamps=numbered_stamps(pd.Series(code).groupby(code).cumcount().to_numpy()))
        else:
            found = self.table.stamps(self.columns.time_col)
        if found.notice:
            self.notices.append(f"{self.table.name}, column {self.columns.time_col!r}: {found.notice}")
        if not self.columns.freq:
            return found.stamps
        if numbers_of(found.stamps) is not None:
            fix = "leave --freq (freq in Python) out, and tell of a season by --season"
            raise self.table.problem(f"freq {self.columns.freq!r} needs times, here are numbers of steps; {fix}")
        return snapped(found.stamps, self.columns.freq)

    def series_of(self) -> tuple[Int64[np.ndarray, " R"], list[str]]:
        """The number of each row's series, and the names of the series."""
        if not self.named:
            return np.zeros(len(self.table.frame), dtype=np.int64), [self.columns.target_col]
        code, names = pd.factorize(self.table.labels(self.columns.id_col))
        return code.astype(np.int64), list(map(str, names))

    @property
    def named(self) -> bool:
        """Whether a column names the series."""
        return self.columns.id_col in self.table.frame.columns

    def name_of(self, name: str, target: str) -> str:
        """Name of a series: the given one, the target, or both where there are several of each."""
        if len(self.targets) == 1:
            return name
        return f"{name} {target}" if self.named else target

    def step(self, rows: list[_Rows]) -> np.timedelta64 | None:
        """The common step: as it was named, or found from the stamps; different steps are refused by name."""
        if self.columns.freq:
            return step_named(self.columns.freq)
        step = common_step([one.stamps for one in rows])
        own = {} if step is not None else {one.name: common_step([one.stamps]) for one in rows if len(one.stamps) > 2}
        kinds: dict[str, str] = {}
        for name, found in own.items():
            if found is not None:
                kinds.setdefault(step_words(found), name)
        if len(kinds) < 2:
            return step
        some = "; ".join(f"series {name!r} has steps of {kind}" for kind, name in list(kinds.items())[:3])
        raise self.table.problem(f"{some}; forecast each kind from a file of its own, or bring all to one by --freq")

    # checks and notices

    def tell_of_commas(self, column: str) -> None:
        """Keep a line about a column of numbers with decimal commas."""
        if self.table.has_decimal_commas(column):
            self.notices.append(f"{self.table.name}, column {column!r}: commas are read as decimal commas")

    def tell_of(self, rows: list[_Rows]) -> None:
        """Keep lines about several targets, constant series, and series that end with empty values."""
        if len(self.targets) > 1:
            self.tell(f"targets {', '.join(self.targets)} are series of their own")
        constant = [one.name for one in rows if np.ptp(one.values[~np.isnan(one.values)]) == 0]
        if constant:
            self.tell(f"{some_series(constant)} constant; the forecast is the constant")
        open_ended = [one.name for one in rows if one.length < len(one.stamps)]
        if open_ended and not self.columns.known:
            told = "without values at the end; they are taken as the future, which is forecast"
            count = plural(sum(len(one.stamps) - one.length for one in rows), "row", "rows")
            self.tell(f"{count} of {some_series(open_ended, verb=False)} {told}")

    def check_known(self, known: _Covariates) -> None:
        """Raise where a covariate that is known in advance is not."""
        if len(wrong := np.argwhere(np.isnan(known.rows))):
            row, column = wrong[0].tolist()
            what = "empty, yet it is known in advance; fill it in, or leave it out of known"
            raise self.table.problem(what, row, known.names[column].partition(SIGN)[0])

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
        if self.columns.freq and stamp != self.table.frame[self.columns.time_col].iloc[first]:
            what = f"{stamp} of series {names[code[again]]!r} lies in one step of --freq with {where}"
        near = "" if self.named else self.table.nearest(self.columns.id_col)
        fix = "remove one of them"
        if not self.named:
            choose = f", or choose {near!r} with --id-col (id_col in Python)" if near else ""
            fix = f"name each series in a column {self.columns.id_col!r}{choose}, or {fix}"
        elif "+" not in self.columns.id_col:
            fix += f", or name series by several columns together (--id-col {self.columns.id_col},OTHER)"
        if in_the_night(stamps[order]) and in_the_night(stamps[[again]]):
            fix += "; where clocks went back, write offsets (02:00+02:00, then 02:00+01:00) or universal time"
        raise self.table.problem(f"{what}; {fix}", again, self.columns.time_col)

    def check_short(self, short: list[tuple[str, int, int, str]], rest: int) -> None:
        """Tell of series with too few values (name, values, first row and column of each); raise where none is left."""
        if not short:
            return
        name, seen, row, column = short[0]
        if not rest:
            has = f"series {name!r} has {plural(seen, 'value', 'values')}, {self.shortest} are needed"
            raise self.table.problem(f"{has}; add some or remove the series", row, column)
        has = "has" if len(short) == 1 else "have"
        names = some_series([one[0] for one in short], verb=False)
        left = "it is" if len(short) == 1 else "they are"
        self.tell(f"{names} {has} fewer than {self.shortest} values; {left} left out")


def in_the_night(stamps: Shaped[np.ndarray, " R"]) -> bool:
    """Whether stamps have times of day, and some lie in the hours of the night when clocks are put back.

    >>> [in_the_night(np.array([stamp], dtype="datetime64[ns]")) for stamp in ("2023-10-29T02:30", "2023-10-29")]
    [True, False]
    """
    hour = (stamps - stamps.astype("datetime64[D]")) / np.timedelta64(1, "h")
    return bool(((hour >= NIGHT[0]) & (hour < NIGHT[1])).any())


def some_series(names: list[str], *, verb: bool = True) -> str:
    """A few series by name, with the verb."""
    shown = ", ".join(map(repr, names[:3])) + (f" and {len(names) - 3} more" if len(names) > 3 else "")
    return f"series {shown}" + (" is" if verb and len(names) == 1 else " are" if verb else "")


def step_words(step: np.timedelta64) -> str:
    """A step as text, months by their number."""
    return plural(months_in(step), "month", "months") if in_months(step) else in_words(step)


def plural(count: int, one: str, many: str) -> str:
    """A count and its noun."""
    return f"{count:,} {one if count == 1 else many}"
