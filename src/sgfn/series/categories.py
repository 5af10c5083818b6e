"""Covariates of words: a column of indicators for each word, the same ones for later data."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd
from jaxtyping import Float64

from sgfn.series.panel import Panel

MOST_LEVELS = 50
"""Most different words of one column."""
SIGN = "="
"""Stands between a column and its word in the name of an indicator."""


@dataclass(frozen=True, kw_only=True)
class Indicators:
    """Indicators of a column of words, and their names."""

    rows: Float64[np.ndarray, "R C"]
    """One where a row has the word, nan in rows without any."""
    names: tuple[str, ...]


def indicators(column: str, text: pd.Series) -> Indicators:
    """A column per word, in the order of the alphabet.

    >>> indicators("weather", pd.Series(["sun", "rain", "sun"])).names
    ('weather=rain', 'weather=sun')
    """
    levels = sorted(set(text) - {""})
    rows = (text.to_numpy()[:, None] == np.array(levels, dtype=object)[None]).astype(np.float64)
    rows[(text == "").to_numpy()] = np.nan
    names = (f"{column}{SIGN}{level.replace(',', ';')}" for level in levels)  # lists of names have commas
    return Indicators(rows=rows, names=tuple(names))


def aligned(panel: Panel, known: Sequence[str], past: Sequence[str]) -> tuple[Panel, tuple[str, ...]]:
    """A panel with the indicators that a forecaster learned, and a line per column whose words it does not know.

    A word that later data lack gets zeros; one that was never learned has no indicator, so that its rows are zeros too.
    Columns that are no indicators must be the same: the panel is left as it is otherwise.
    """
    if (panel.known_names, panel.past_names) == (tuple(known), tuple(past)):
        return panel, ()
    roles = ((panel.known_names, tuple(known)), (panel.past_names, tuple(past)))
    if any(_plain(has) != _plain(wanted) or _columns(has) != _columns(wanted) for has, wanted in roles):
        return panel, ()
    series = tuple(
        replace(
            one,
            known=_taken(one.known, *roles[0]),
            past=_taken(one.past, *roles[1]),
        )
        for one in panel.series
    )
    found = replace(panel, series=series, known_names=tuple(known), past_names=tuple(past))
    return found, tuple(line for has, wanted in roles for line in _unknown(has, wanted))


def _plain(names: Sequence[str]) -> list[str]:
    return [name for name in names if SIGN not in name]


def _columns(names: Sequence[str]) -> set[str]:
    return {name.partition(SIGN)[0] for name in names if SIGN in name}


def _taken(rows: np.ndarray, has: Sequence[str], wanted: Sequence[str]) -> np.ndarray:
    """Columns in the wanted order; zeros for indicators that are not there."""
    at = {name: number for number, name in enumerate(has)}
    columns = [rows[:, at[name]] if name in at else np.zeros(len(rows)) for name in wanted]
    return np.stack(columns, axis=1) if columns else np.empty((len(rows), 0))


def _unknown(has: Sequence[str], wanted: Sequence[str]) -> list[str]:
    new: dict[str, list[str]] = {}
    for name in set(has) - set(wanted):
        column, _, level = name.partition(SIGN)
        new.setdefault(column, []).append(level)
    return [
        f"column {column!r}: {', '.join(map(repr, sorted(levels)[:5]))} were not among what was learned from; "
        "they count as none of the known words"
        for column, levels in sorted(new.items())
    ]
