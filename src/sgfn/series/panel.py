"""Series and panels: observed values with their time stamps and covariates, checked when they are made."""

from dataclasses import dataclass, field

import numpy as np

from sgfn.series.calendar import one_step

NO_STAMPS = np.empty(0, dtype="datetime64[ns]")


@dataclass(frozen=True, kw_only=True)
class Series:
    """One observed series; covariates that are known in advance may extend F rows beyond the last value."""

    name: str
    stamps: np.ndarray  # N
    """Times of the values, datetime64[ns], strictly increasing."""
    values: np.ndarray  # N
    """Observed values, float64; nan where one is missing."""
    known: np.ndarray  # N+F C
    """Covariates known in advance, at the stamps and then at the future stamps."""
    past: np.ndarray  # N P
    """Covariates known only up to the present; nan where missing."""
    future: np.ndarray = field(default_factory=NO_STAMPS.copy)
    """Times of the rows of `known` beyond the last value."""

    def __post_init__(self) -> None:
        check_stamps(self.name, np.concatenate([self.stamps, self.future]))
        if len(self.stamps) == 0:
            raise ValueError(f"series {self.name!r}: no rows; give at least one observed value")
        for part, dimensions in {"values": 1, "known": 2, "past": 2}.items():
            check_array(self.name, part, getattr(self, part), dimensions)
        check_rows(self.name, "values", len(self.values), len(self.stamps))
        check_rows(self.name, "past", len(self.past), len(self.stamps))
        check_rows(self.name, "known", len(self.known), len(self.stamps) + len(self.future))
        if np.isinf(self.values).any() or np.isinf(self.past).any():
            raise ValueError(f"series {self.name!r}: infinite values; write nan where a value is missing")
        if not np.isfinite(self.known).all():
            raise ValueError(f"series {self.name!r}: covariates known in advance must be finite in every row")

    def __len__(self) -> int:
        return len(self.values)

    def until(self, cut: int) -> "Series":
        """The series as it was known after `cut` values, without later values and past-only covariates."""
        if not 1 <= cut <= len(self):
            raise ValueError(f"cut must lie in [1, {len(self)}] for series {self.name!r}, got {cut}")
        later = np.concatenate([self.stamps[cut:], self.future])
        return Series(
            name=self.name,
            stamps=self.stamps[:cut],
            values=self.values[:cut],
            known=self.known,
            past=self.past[:cut],
            future=later,
        )


@dataclass(frozen=True, kw_only=True)
class Panel:
    """Several series with the same covariates; `step` is their common step, None when stamps are irregular."""

    series: tuple[Series, ...]
    step: np.timedelta64 | None
    known_names: tuple[str, ...] = ()
    past_names: tuple[str, ...] = ()
    targets: tuple[str, ...] = ()
    """Names of the columns that are forecast, where the panel was read from a table."""

    def __post_init__(self) -> None:
        if not self.series:
            raise ValueError("a panel needs at least one series, got none")
        seen: set[str] = set()
        for one in self.series:
            if one.name in seen:
                raise ValueError(f"series {one.name!r} appears twice in the panel; names must differ")
            seen.add(one.name)
            check_rows(one.name, "columns of known", one.known.shape[1], len(self.known_names))
            check_rows(one.name, "columns of past", one.past.shape[1], len(self.past_names))
            check_step(one, self.step)

    def __len__(self) -> int:
        return len(self.series)

    def __getitem__(self, name: str) -> Series:
        """The series of a name."""
        for one in self.series:
            if one.name == name:
                return one
        raise KeyError(f"no series {name!r}; there are {', '.join(one.name for one in self.series[:8])}")


def check_rows(name: str, what: str, found: int, wanted: int) -> None:
    """Raise when a part of a series has another length than its stamps."""
    if found != wanted:
        raise ValueError(f"series {name!r}: {what} must number {wanted}, got {found}")


def check_array(name: str, what: str, array: np.ndarray, dimensions: int) -> None:
    """Raise unless an array is float64 and has the given number of dimensions."""
    if array.dtype != np.float64 or array.ndim != dimensions:
        raise ValueError(
            f"series {name!r}: {what} must be float64 with {dimensions} dimensions, got {array.dtype} with {array.ndim}"
        )


def check_stamps(name: str, stamps: np.ndarray) -> None:
    """Raise unless stamps are datetime64[ns], present and strictly increasing."""
    if stamps.dtype != np.dtype("datetime64[ns]"):
        raise ValueError(f"series {name!r}: stamps must be datetime64[ns], got {stamps.dtype}")
    if np.isnat(stamps).any():
        raise ValueError(f"series {name!r}: a stamp is missing (NaT)")
    late = np.flatnonzero(np.diff(stamps) <= np.timedelta64(0, "ns"))
    if len(late):
        raise ValueError(
            f"series {name!r}: stamps must strictly increase, but {stamps[late[0]]} is followed by "
            f"{stamps[late[0] + 1]}; sort them and drop duplicates"
        )


def check_step(series: Series, step: np.timedelta64 | None) -> None:
    """Raise when a regular panel holds a series with another step."""
    if step is None:
        return
    if np.isnat(step) or step.astype(np.int64) <= 0:
        raise ValueError(f"step must be positive, or None for irregular stamps, got {step}")
    stamps = np.concatenate([series.stamps, series.future])
    other = np.flatnonzero(~one_step(stamps, step))
    if len(other):
        raise ValueError(
            f"series {series.name!r}: {stamps[other[0]]} is followed by {stamps[other[0] + 1]}, which is not one "
            f"step of {step}; insert the missing rows with nan, or give step=None"
        )
