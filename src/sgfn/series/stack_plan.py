"""Which windows of the training data the stack learns from, and whether a network is part of it."""

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

import numpy as np

from sgfn.config import TrainConfig
from sgfn.config.presets import PRESETS
from sgfn.config.series import Effort, SeriesConfig
from sgfn.series.bank import Cut
from sgfn.series.categories import SIGN
from sgfn.series.classical import FEWEST_REGRESSED, REGRESSION, has_statsforecast
from sgfn.series.panel import Panel

WINDOWS_IN_ALL: dict[Effort, int] = {"quick": 60, "default": 160, "best": 400}
"""Most windows of all series together on which weights are learned."""
WINDOWS_PER_SERIES: dict[Effort, int] = {"quick": 4, "default": 16, "best": 24}
SHORTEST = 4
"""Least number of values before a window."""
LEAST_WINDOWS = 300
"""Windows to learn from, below which a network is left out."""
ARIMA_WORK: dict[Effort, int] = {"quick": 0, "default": 200_000, "best": 5_000_000}
"""Most values of all series times 12 for which AutoARIMA is used: its time grows with them."""
LOG_ARIMA_PART = 4
"""The same of logarithms is used up to this part of that work."""
ARIMA_READS = 400
FEWEST_STEPS, MOST_STEPS = 120, 450
"""Training steps of the network at the default effort."""
WINDOWS_PER_STEP = 14
"""One step for this many windows to learn from, between those limits."""
USUAL_ROWS = 96
"""Rows of a window (context and horizon) up to which the most steps are made; of longer windows fewer are."""
REFRESH = 0.2
"""Share of the network's steps, at the end, that learn from the windows of the weights, too."""
FALLING_RATE = {"optim__lr": 3e-3, "optim__final": 0.1}
"""Learning rate of few steps: larger at first than the preset's, and a tenth at the end."""


def stack_span(length: int, horizon: int, windows: int, *, network: bool) -> int:
    """Steps at the end of a training part in which the windows of the stack lie.

    A network does not learn from them: then they are at most a fifth of the part, or one horizon.
    """
    room = max(length // 5, min(horizon, length // 3)) if network else length // 2
    return max(min(windows * horizon, room), 0)


def stack_cuts(length: int, horizon: int, windows: int, *, network: bool) -> list[int]:
    """Cuts of a series' windows, oldest first; in a short series they overlap, and reach past its end.

    >>> stack_cuts(100, 10, 4, network=False), stack_cuts(30, 10, 4, network=False), stack_cuts(9, 6, 4, network=False)
    ([60, 70, 80, 90], [15, 17, 18, 20], [5, 6, 7, 8])
    """
    span = stack_span(length, horizon, windows, network=network)
    last = length - horizon if span >= horizon else length - 1
    first = max(length - span, SHORTEST)
    if last < first:
        return []
    count = min(windows, last - first + 1)
    stride = horizon if (count - 1) * horizon <= last - first else max((last - first) / max(count - 1, 1), 1)
    return sorted({round(last - at * stride) for at in range(count) if last - at * stride >= first})


def chosen_series(count: int, windows: int) -> list[int]:
    """Series whose windows are read: all, or evenly spread ones where there are more than windows in all."""
    return sorted(set(np.linspace(0, count - 1, min(count, windows)).round().astype(int).tolist()))


def windows_of(lengths: Sequence[int], horizon: int, effort: Effort, *, network: bool) -> list[Cut]:
    """Windows of the stack, of series whose training parts have given lengths."""
    some = chosen_series(len(lengths), WINDOWS_IN_ALL[effort])
    each = min(max(WINDOWS_IN_ALL[effort] // len(some), 1), WINDOWS_PER_SERIES[effort])
    return [(at, cut) for at in some for cut in stack_cuts(lengths[at], horizon, each, network=network)]


def spans_of(lengths: Sequence[int], horizon: int, effort: Effort) -> tuple[int, ...]:
    """Steps at the end of each training part that a network does not learn from, because the stack reads them."""
    cuts = windows_of(lengths, horizon, effort, network=True)
    first: dict[int, int] = {}
    for number, cut in cuts:
        first[number] = min(cut, first.get(number, cut))
    return tuple(length - first.get(number, length) for number, length in enumerate(lengths))


# The network


def network_left_out(config: SeriesConfig, lengths: Sequence[int]) -> str:
    """Why the network is no part of a forecast of series with training parts of given lengths; empty where it is."""
    if "network" not in config.law_names:
        return "it was not asked for"
    if config.law_names == ("network",):
        return ""
    if config.laws == "auto" and config.effort == "quick":
        return "effort is quick"
    found = learned_windows(config, lengths)
    if config.laws == "auto" and found < LEAST_WINDOWS:
        return f"there are {found:,} windows to learn from, {LEAST_WINDOWS} are needed"
    return ""


def unused_covariates(panel: Panel, config: SeriesConfig) -> str:
    """One line about covariates that nothing reads, because the laws that would are left out."""
    kept = config.kept(len(panel))
    lengths = [len(one) - steps for one, steps in zip(panel.series, kept, strict=True)]
    why = network_left_out(config, lengths)
    regressed = REGRESSION in config.law_names and max(lengths) >= FEWEST_REGRESSED and has_statsforecast()
    unread = panel.past_names if regressed else (*panel.known_names, *panel.past_names)
    names = dict.fromkeys(name.partition(SIGN)[0] for name in unread)
    if not names or not why:
        return ""
    verb = "is" if len(names) == 1 else "are"
    which = "covariates of the past" if regressed else "covariates"
    hint = "; name those known in advance by --known" if regressed or not panel.known_names else ""
    return f"{', '.join(names)} {verb} not used: only the network reads {which}, and it is left out ({why}){hint}"


def learned_windows(config: SeriesConfig, lengths: Sequence[int]) -> int:
    """About how many windows a network has to learn from, in training parts of given lengths."""
    spans = spans_of(lengths, config.steps_ahead, config.effort)
    return sum(max(n - span - 2 * config.steps_ahead, 0) for n, span in zip(lengths, spans, strict=True))


def network_steps(config: SeriesConfig, lengths: Sequence[int]) -> int:
    """Training steps at the default effort: more of more windows, fewer where windows are long.

    >>> [network_steps(SeriesConfig(horizon=h), [n]) for h, n in [(12, 600), (30, 7_000), (48, 5_000)]]
    [120, 450, 131]
    """
    rows = config.steps_ahead + (config.context or max(2 * config.steps_ahead, 64))
    wanted = min(learned_windows(config, lengths) // WINDOWS_PER_STEP, MOST_STEPS)
    short = min(1.0, USUAL_ROWS / rows)
    return max(int(wanted * short**2), int(FEWEST_STEPS * short**0.5))


def held_back(config: SeriesConfig, lengths: Sequence[int]) -> tuple[int, ...]:
    """Steps at the end of each training part that the network does not learn from, for the weights of the stack."""
    if config.law_names == ("network",) or network_left_out(config, lengths):
        return (0,) * len(lengths)
    return spans_of(lengths, config.steps_ahead, config.effort)


def with_effort(config: TrainConfig, lengths: Sequence[int]) -> TrainConfig:
    """The configuration with the network's size by effort, wherever it is the preset's; one step where it is left out.

    `lengths` are those of the whole series; what is kept from training is taken off.
    """
    series, usual = config.series, PRESETS["forecast"]
    kept = series.kept(len(lengths))
    parts = [length - steps for length, steps in zip(lengths, kept, strict=True)]
    if series.law_names == ("network",):
        return config
    if network_left_out(series, parts):
        return config.with_(steps=1, series__members=1)
    sizes: dict[str, Any] = {"series__refresh": REFRESH}
    if series.effort != "best":
        late = REFRESH if series.refresh is None else min(series.refresh, REFRESH)
        steps = round(network_steps(series, parts) / (1 - late))
        sizes |= {"steps": steps, "series__members": 1} | FALLING_RATE
    mine, preset = asdict(config), asdict(usual)
    return config.with_(**{name: size for name, size in sizes.items() if _at(mine, name) == _at(preset, name)})


def _at(tree: dict[str, Any], name: str) -> Any:
    """A value of nested dictionaries, by the names on the way with `__` between them."""
    for part in name.split("__"):
        tree = tree[part]
    return tree


def arima_left_out(config: SeriesConfig, lengths: Sequence[int], *, log: bool = False) -> str:
    """Why AutoARIMA is no part of a forecast, or that of logarithms; empty where it is, or is asked for by its name."""
    work = 12 * sum(min(length, ARIMA_READS) for length in lengths) * (LOG_ARIMA_PART if log else 1)
    if config.laws not in ("auto", "classical") or work <= ARIMA_WORK[config.effort]:
        return ""
    more = "" if config.effort == "best" else "; --effort best takes it"
    return f"{len(lengths):,} series would take it too long{more}"
