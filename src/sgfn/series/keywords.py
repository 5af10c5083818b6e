"""Keywords of `Forecaster`: names near to wrong ones, and settings of flow networks that are not read on series."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import fields
from difflib import get_close_matches
from typing import Any

from sgfn.config import TrainConfig
from sgfn.config.series import SeriesConfig

FLAG = re.compile(r"(?<![\w-])--([a-z]+(?:-[a-z]+)*)")
OWN = ("steps", "batch", "seed")
"""Settings of the training that are given to `Forecaster` by their short names."""
NO_REWARD = (
    "flow objectives match a reward, and a forecast has none: it learns the law of what came by forward KL; "
    "a cost is rewarded by tilt(), with objective tb or kl"
)
REASONS = {
    "objective": NO_REWARD,
    "form": NO_REWARD,
    "subtb_lambda": NO_REWARD,
    "beta": NO_REWARD,
    "reward": NO_REWARD,
    "kl": NO_REWARD,
    "entropy": "the entropy ratio weighs states by their uncertainty, which would make the learned law another than "
    "that of the data",
    "thought": "the network reads all that happened before, and of a series nothing was intended: there is no hidden "
    "rate of noise to be found from both",
    "explore": "windows come from the data, not from the policy",
    "novelty": "windows come from the data, not from the policy",
    "thompson": "windows come from the data, not from the policy",
    "teacher": "windows come from the data, not from the policy",
    "exploration": "windows come from the data, not from the policy",
    "temperature": "windows come from the data, not from the policy; a tilt has a temperature of its own",
    "noise": "series have a measurement error instead: noise='known' or 'learned', with deviation",
    "replay": "windows come from the data, not from the policy",
    "offline": "windows come from the data: give it to fit()",
    "dynamics": "series have a measurement error instead: noise='known' or 'learned', with deviation",
}
"""Why a setting of flow networks is not read on series."""


def named_settings(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Keywords as fields of a training configuration; raises for wrong ones, and for those that series do not read.

    >>> named_settings({"horizon": 7, "steps": 100})
    {'series__horizon': 7, 'steps': 100}
    """
    series = {field.name for field in fields(SeriesConfig)}
    parts = {field.name for field in fields(TrainConfig)}
    for name in settings:
        if name in series or name in OWN:
            continue
        part = name.partition("__")[0]
        if part not in parts:
            raise ValueError(f"Forecaster has no setting {name!r}{nearest(name, [*series, *OWN])}")
        if part in REASONS:
            raise ValueError(f"Forecaster does not read {name}: {REASONS[part]}; leave it out")
    return {f"series__{name}" if name in series and name not in OWN else name: v for name, v in settings.items()}


def by_parameters(line: str) -> str:
    """A line about flags with the names that their settings have in Python.

    >>> by_parameters("choose others by --time-col, --id-col")
    'choose others by time_col, id_col'
    """
    return FLAG.sub(lambda found: found[1].replace("-", "_"), line)


def nearest(name: str, allowed: Iterable[str]) -> str:
    """The nearest setting as a question, else where they are listed."""
    components = ("net", "optim", "log")
    inner = [f"{part}__{f.name}" for part in components for f in fields(getattr(TrainConfig(), part))]
    by_end = [full for full in inner if full.partition("__")[2] == name and full.partition("__")[0] not in REASONS]
    close = [get_close_matches(name, list(allowed), n=1, cutoff=cutoff) for cutoff in (0.8, 0.6)]
    near = close[0] or by_end or close[1]
    return f"; did you mean {near[0]!r}?" if near else ": see the fields of SeriesConfig, and steps, batch and seed"
