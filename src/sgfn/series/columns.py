"""Roles of a table's columns: named by the user, by custom (unique_id, ds, y), or found by name and kind of content."""

import re
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd

from sgfn.series.calendar import numbers_of
from sgfn.series.source import ALIASES, SeriesTable, text_of
from sgfn.series.times import labelled_times, looks_like_dates, parse_times

NO_TIME = ""
"""Name of the time column where a table has none: its rows are steps."""
ROW_NUMBERS = ("", "unnamed: 0", "rownames")
"""Names of columns that only number the rows, as other programs write them."""
NUMBERED = re.compile(r"[ _-]?(id|code|nr|nbr|no|number|name)$")
"""Ends of names that do not tell what a column names: store_id, item_nbr."""
CLOCK_WORDS = {"ts", "time", "timestamp", "datetime", "date", "epoch", "unix", "unixtime"}
"""Words of which one tells that a column of numbers holds times."""
SEQUENCES = {"any": r"[ACGTU]{5,}|[acgtu]{5,}", "named": r"[A-Z]{5,}|[acgtu]{5,}"}
"""Words that are sequences, in a column of any name and in one that is named so."""


@dataclass(frozen=True, kw_only=True)
class Columns:
    """What the columns of a table are called, and what they are."""

    id_col: str = "unique_id"
    """Name of the series; may be absent when there is one. Several with commas between them name it together."""
    time_col: str = "ds"
    """Time stamp."""
    target_col: str = "y"
    """Value; several with commas between them are forecast as series of their own."""
    known: tuple[str, ...] = ()
    """Covariates known in advance."""
    ignore: tuple[str, ...] = ()
    """Columns that are no covariates."""
    freq: str = ""
    """Step of the stamps, such as D, 30min or M; found from the stamps where empty."""

    def __post_init__(self) -> None:
        parts = {"id_col": self.ids, "time_col": (self.time_col,), "target_col": self.targets}
        taken: dict[str, str] = {}
        for role, names in ({"known": self.known, "ignore": self.ignore} | parts).items():
            for name in names:
                if name in taken:
                    raise ValueError(f"{role} and {taken[name]} both name the column {name!r}: each has one role")
                taken[name] = role

    @property
    def targets(self) -> tuple[str, ...]:
        """Names of the columns that are forecast."""
        return _listed(self.target_col)

    @property
    def ids(self) -> tuple[str, ...]:
        """Names of the columns that name the series."""
        return _listed(self.id_col)


def _listed(text: str) -> tuple[str, ...]:
    """Names with commas between them."""
    return tuple(name.strip() for name in text.split(",") if name.strip()) or (text,)


@dataclass(frozen=True, kw_only=True)
class Found:
    """Roles of the columns of one table, and a line about those that were not named by the user."""

    columns: Columns
    notice: str = ""


def found_columns(table: SeriesTable, wanted: Columns) -> Found:
    """Columns of a table: those that are asked for, else those with customary names, else by name and content.

    Only names that the user left at their defaults are looked for. What cannot be told apart is left as it was, so that
    the reader asks for it by name.
    """
    taken = {*wanted.known, *wanted.ignore, wanted.id_col, *wanted.ids, wanted.time_col, *wanted.targets}
    free = [str(name) for name in table.frame.columns if name not in taken]
    there, found = {*map(str, table.frame.columns), *table.index}, dict[str, str]()
    searches = {
        "time_col": time_column,
        "id_col": lambda table, free: id_column(table, free, found.get("time_col", wanted.time_col)),
        "target_col": target_column,
    }
    for role, search in searches.items():
        default = getattr(Columns, role)
        if getattr(wanted, role) != default or default in there:
            continue
        if (name := search(table, free)) is not None:
            found[role] = name
            free = [other for other in free if other not in (name, *(_listed(name) if role == "id_col" else ()))]
    if found.get("time_col") == NO_TIME and (name := sequence_column(table, free)) is not None:
        what = f"column {name!r} holds sequences and no column holds times: sgfn design propose takes such measurements"
        raise table.problem(f"{what}; if rows are steps in their order, leave it out (--ignore {name})")
    rows = tuple(name for name in free if name.lower() in ROW_NUMBERS)
    columns = replace(wanted, **found, ignore=(*wanted.ignore, *rows))
    return Found(columns=columns, notice=told(found))


def sequence_column(table: SeriesTable, free: list[str]) -> str | None:
    """A column of sequences: words of five letters and more, of DNA or RNA, or of residues where it is named so."""
    for name in free:
        words = table.words(name)
        known = SEQUENCES["named" if name.lower() in ("sequence", "seq") else "any"]
        if words is not None and words.str.fullmatch(known).all():
            return name
    return None


def with_joined_names(table: SeriesTable, columns: Columns) -> tuple[SeriesTable, Columns]:
    """A table in which several columns that name the series together are one, with their words side by side."""
    if columns.id_col in table.frame.columns or len(columns.ids) < 2:
        return table, columns
    for name in columns.ids:
        table.require(name, "id_col")
    whole, parts = "+".join(columns.ids), [table.labels(name).tolist() for name in columns.ids]
    frame = table.frame.assign(**{whole: [" ".join(words) for words in zip(*parts, strict=True)]})
    return replace(table, frame=frame), replace(columns, id_col=whole, ignore=(*columns.ignore, *columns.ids))


def without_copies(table: SeriesTable, columns: Columns) -> tuple[SeriesTable, int]:
    """A table without rows that repeat another in every column, and how many there were.

    It stays as it is where times of a series would still be there twice: the rows then differ, and are told of.
    """
    frame = table.frame
    if columns.time_col not in frame.columns:
        return table, 0
    copies, keys = frame.duplicated(), [name for name in (columns.id_col, columns.time_col) if name in frame.columns]
    if not copies.any() or frame[~copies].duplicated(keys).any():
        return table, 0
    kept = np.flatnonzero(~copies.to_numpy())
    return replace(table, frame=frame.iloc[kept], lines=table.lines[kept]), int(copies.sum())


def told(found: dict[str, str]) -> str:
    """One line about columns that were found."""
    words = {"time_col": "times", "id_col": "names of series", "target_col": "values"}
    parts = [f"{words[role]} in {name!r}" for role, name in found.items() if name != NO_TIME]
    if found.get("time_col") == NO_TIME:
        parts.append("no column of times, so that rows are steps in their order")
    flags = ", ".join(f"--{role.replace('_', '-')}" for role in found if found[role] != NO_TIME)
    return (
        f"columns were found: {'; '.join(parts)}" + (f" (choose others by {flags})" if flags else "") if found else ""
    )


def time_column(table: SeriesTable, free: list[str]) -> str:
    """The column of times: one with a customary name, else the first of text or dates that are all times.

    Where none is, one whose text looks like dates: its reader says what is wrong with them.
    """
    named = customary(free, "ds")
    if fits := [name for name in named if holds_times(table, name)]:
        return fits[0]
    fits = [name for name in free if not is_number(table, name) and holds_times(table, name)]
    fits = fits or dated_numbers(table, free)
    dated = [name for name in free if not is_number(table, name) and looks_like_dates(text_of(table.frame[name]))]
    return next(iter((*fits, *named, *dated)), NO_TIME)


def id_column(table: SeriesTable, free: list[str], time_col: str) -> str | None:
    """The column that names series: a customary name that repeats itself, or the only words that part equal times.

    Several customary names together, with commas between them, where no single one parts equal times and all do.
    """
    frame = table.frame[~table.frame.duplicated()]
    if fits := [name for name in customary(free, "unique_id") if frame[name].duplicated().any()]:
        if time_col not in frame.columns:
            return fits[0]
        parting = [name for name in fits if not frame.duplicated([name, time_col]).any()]
        together = [name for name in free if name in fits]
        if not parting and not frame.duplicated([*together, time_col]).any():
            return ",".join(together)
        return (parting or fits)[0]
    if time_col not in frame.columns or not frame[time_col].duplicated().any():
        return None
    fits = [name for name in free if table.words(name) is not None and not frame.duplicated([name, time_col]).any()]
    return fits[0] if len(fits) == 1 else None


def target_column(table: SeriesTable, free: list[str]) -> str | None:
    """The column of values: one with a customary name, else the only one of numbers; None where several may be.

    A customary name, or no column of numbers alone, is enough for one that is mostly numbers: its reader names the
    cells that are none.
    """
    cells = [name for name in free if name.lower() not in ROW_NUMBERS]
    named = [name for name in customary(cells, "y") if table.mostly_numbers(name)]
    numbers = [name for name in cells if is_number(table, name)]
    numbers = numbers or [name for name in cells if table.mostly_numbers(name)]
    return (named or numbers)[0] if len(named) == 1 or len(numbers) == 1 else None


def customary(free: list[str], role: str) -> list[str]:
    """Columns with customary names of a role, in the order of custom."""
    folded = {name.lower().strip(): name for name in free}
    if role == "unique_id":
        folded = {NUMBERED.sub("", name): column for name, column in folded.items()} | folded
    return list(dict.fromkeys(folded[alias] for alias in (role, *ALIASES[role]) if alias in folded))


def dated_numbers(table: SeriesTable, free: list[str]) -> list[str]:
    """Columns of numbers that are dates or times since 1970, and have a word for time in their names (`event_time`)."""
    found = []
    for name in free:
        if CLOCK_WORDS & set(re.split(r"[^a-z]+", name.lower())) and holds_times(table, name):
            times = labelled_times(text_of(table.frame[name]))
            found += [name] if times is None or numbers_of(times.stamps) is None else []
    return found


def is_number(table: SeriesTable, column: str) -> bool:
    """Whether a column holds numbers alone."""
    cells = table.frame[column]
    if pd.api.types.is_datetime64_any_dtype(cells):
        return False
    if pd.api.types.is_numeric_dtype(cells):
        return True
    try:
        return bool((~np.isnan(table.numbers(column))).any())
    except ValueError:
        return False


def holds_times(table: SeriesTable, column: str) -> bool:
    """Whether every cell of a column is a time."""
    cells = table.frame[column]
    if pd.api.types.is_datetime64_any_dtype(cells):
        return not cells.isna().any()
    text = text_of(cells)
    labelled = labelled_times(text)
    return not (np.isnat(labelled.stamps).any() if labelled is not None else parse_times(text).isna().any())
