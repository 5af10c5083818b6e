"""The horizon of a forecast where none was asked for: by the step of the stamps, and by how much there is to read."""

from statistics import median_high

import numpy as np

from sgfn.config import TrainConfig
from sgfn.series.calendar import DAY, in_months, is_numbered, months_in, typical_gap
from sgfn.series.panel import Panel
from sgfn.series.plan import in_words

USUAL = ((1, 48), (7, 30), (28, 13), (80, 12), (300, 8))
"""Steps ahead of steps that are shorter than so many days: hours and minutes, days, weeks, months, quarters."""
YEARS_AHEAD = 6
NUMBERS_AHEAD = 30
"""Most steps ahead where steps are numbers without a calendar."""
PART = 5
"""At most one part in this many of the usual series is forecast, so that a backtest and weights have windows."""


def usual_horizon(gap: np.timedelta64) -> int:
    """Steps ahead that one expects of a time step.

    >>> [usual_horizon(np.timedelta64(*gap)) for gap in [(1, "h"), (1, "D"), (7, "D"), (30, "D"), (91, "D")]]
    [48, 30, 13, 12, 8]
    """
    if is_numbered(gap):
        return NUMBERS_AHEAD
    return next((steps for days, steps in USUAL if gap < days * DAY), YEARS_AHEAD)


def chosen_horizon(panel: Panel) -> int:
    """Steps ahead of a panel: the usual ones of its step, a fifth of the median series, or what is known in advance."""
    length = median_high([len(one) for one in panel.series])
    steps = min(usual_horizon(_gap(panel)), max(length // PART, 1))
    ahead = min(len(one.future) for one in panel.series) if panel.known_names else 0
    return min(steps, ahead) if ahead else steps


def with_horizon(config: TrainConfig, panel: Panel) -> TrainConfig:
    """The configuration with a horizon, which is chosen for the panel where none was given."""
    return config if config.series.horizon is not None else config.with_(series__horizon=chosen_horizon(panel))


def horizon_line(panel: Panel) -> str:
    """One line about a horizon that was chosen."""
    steps, gap = chosen_horizon(panel), _gap(panel)
    step = panel.step
    if is_numbered(gap):
        kind = "numbered steps"
    elif step is not None and in_months(step):
        kind = f"steps of {months_in(step)} month{'s' * (months_in(step) != 1)}"
    else:
        kind = f"steps of {in_words(gap)}"
    length = median_high([len(one) for one in panel.series])
    many = "values" if len(panel) == 1 else "values in the median series"
    told = f"{steps:,} step{'s' * (steps != 1)} ahead {'are' if steps != 1 else 'is'} forecast"
    return f"{told}, chosen for {kind} and {length:,} {many} (--horizon chooses others)"


def _gap(panel: Panel) -> np.timedelta64:
    return typical_gap(max(panel.series, key=len).stamps, panel.step)
