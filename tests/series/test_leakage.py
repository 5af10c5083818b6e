"""From end to end: what is kept from training, and what comes after an origin, changes nothing before it."""

from typing import Any

import numpy as np
import torch
from small_panels import panel, series

from sgfn.series.forecaster import Forecaster

SPARE = 600
SMALL = {"net__hidden": 8, "net__layers": 1, "net__heads": 2, "batch": 8}


def fitted(values: np.ndarray, past: np.ndarray) -> Forecaster:
    settings: dict[str, Any] = {"horizon": 6, "context": 12, "bins": 8, "members": 2, "steps": 30, "spare": SPARE}
    made = Forecaster(laws="network", **settings)
    return Forecaster(made.config.with_(**SMALL)).fit(panel(series(values, past=past)))


def test_the_last_values_change_neither_plan_nor_weights_nor_the_first_forecast() -> None:
    rng = np.random.default_rng(0)
    values = 10 + 3 * np.sin(np.arange(1500) * np.pi / 12) + rng.normal(size=1500)
    past = rng.normal(size=(1500, 1))
    other, others = values.copy(), past.copy()
    other[-SPARE:], others[-SPARE:] = 1e4 * rng.normal(size=SPARE), 1e4 * rng.normal(size=(SPARE, 1))
    other[-SPARE::3] = np.nan
    one, two = fitted(values, past), fitted(other, others)
    first, second = one.fitted, two.fitted
    assert repr(first.data.plan) == repr(second.data.plan)
    assert torch.equal(first.data.bins.edges, second.data.bins.edges)
    assert torch.equal(first.data.bins.tails, second.data.bins.tails)
    mine, theirs = first.state(), second.state()
    assert [name for name in mine if not torch.equal(mine[name], theirs[name])] == []
    origins = [("a", 1500 - SPARE), ("a", 1500 - SPARE - 1)]
    assert np.array_equal(one.predict(origins=origins).paths, two.predict(origins=origins).paths)
    later = [("a", 1500 - SPARE + 2)]
    assert not np.allclose(one.predict(origins=later).paths, two.predict(origins=later).paths)  # it would show
