"""Small panels that the tests of forecasting share."""

import numpy as np

from sgfn.series.panel import Panel, Series

HOUR = np.timedelta64(1, "h").astype("timedelta64[ns]")


def stamps_of(count: int, start: str = "2024-01-01", step: np.timedelta64 = HOUR) -> np.ndarray:
    return np.datetime64(start, "ns") + np.arange(count) * step


def series(
    values: np.ndarray, name: str = "a", *, known: np.ndarray | None = None, past: np.ndarray | None = None
) -> Series:
    """Hourly values; covariates known in advance may run past them."""
    count = len(values)
    known = np.empty((count, 0)) if known is None else known
    stamps = stamps_of(len(known) if len(known) > count else count)
    return Series(
        name=name,
        stamps=stamps[:count],
        values=values.astype(np.float64),
        known=known,
        past=np.empty((count, 0)) if past is None else past,
        future=stamps[count:],
    )


def panel(*parts: Series, step: np.timedelta64 | None = HOUR) -> Panel:
    return Panel(
        series=parts,
        step=step,
        known_names=tuple(f"known{i}" for i in range(parts[0].known.shape[1])),
        past_names=tuple(f"past{i}" for i in range(parts[0].past.shape[1])),
    )


def mixed_panel(seed: int = 0, irregular: bool = False) -> Panel:
    """Two series of unequal length with gaps, covariates of both kinds, and a future of what is known."""
    rng, parts = np.random.default_rng(seed), []
    for name, count in (("a", 60), ("b", 41)):
        values = 20 + 3 * np.sin(np.arange(count) * np.pi / 12) + rng.normal(size=count)
        values[rng.integers(0, count - 1, size=5)] = np.nan
        past = rng.normal(size=(count, 2))
        past[3, 1] = np.nan
        parts.append(series(values, name, known=rng.normal(size=(count + 8, 1)), past=past))
    if irregular:
        parts = [jittered(part, rng) for part in parts]
    return panel(*parts, step=None if irregular else HOUR)


def jittered(one: Series, rng: np.random.Generator) -> Series:
    """The same values at uneven times."""
    total = len(one.stamps) + len(one.future)
    gaps = rng.integers(1, 90, size=total) * np.timedelta64(1, "m")
    stamps = one.stamps[0] + np.cumsum(gaps)
    count = len(one)
    return Series(
        name=one.name, stamps=stamps[:count], values=one.values, known=one.known, past=one.past, future=stamps[count:]
    )
