"""The pretrained network: in the units of the data, from the past alone, near exact laws of processes."""

from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import ndtri

from sgfn.series import pretrained
from sgfn.series.classical import PRETRAINED, History, forecasts, left_out
from sgfn.series.pretrained import HORIZON, WEIGHTS, checked_weights, pretrained_net, pretrained_quantiles
from sgfn.series.quantile_laws import GRID
from sgfn.series.shown import CONTEXT, LONGEST_SEASON, show

MEDIAN = list(GRID).index(0.5)


def losses(quantiles: np.ndarray, truth: np.ndarray) -> float:
    """Mean quantile loss over the levels of the grid."""
    error = truth[..., None] - quantiles
    return float(np.maximum(GRID * error, (GRID - 1) * error).mean())


def test_a_random_walk_is_forecast_nearly_as_well_as_by_its_law() -> None:
    rng, count = np.random.default_rng(0), 1000
    values = 100 + rng.normal(size=(count, 112)).cumsum(1)
    history, truth = values[:, :100], values[:, 100:]
    exact = losses(history[:, -1:, None] + np.sqrt(np.arange(1, 13))[:, None] * ndtri(GRID), truth)
    assert losses(pretrained_quantiles(list(history), [1] * count, 12), truth) < 1.05 * exact
    shuffled = list(rng.permuted(history, axis=1))  # values in another order tell of another law
    assert losses(pretrained_quantiles(shuffled, [1] * count, 12), truth) > 1.5 * exact


def test_a_season_with_noise_is_forecast_nearly_as_well_as_by_its_law() -> None:
    rng, count = np.random.default_rng(1), 1000
    season = 5 * rng.normal(size=(count, 12))
    values = 50 + np.tile(season, 9) + rng.normal(size=(count, 108))
    history, truth = list(values[:, :96]), values[:, 96:]
    exact = losses(50 + season[..., None] + ndtri(GRID), truth)
    # who does not know the season has its mean of eight cycles: 1.06
    assert losses(pretrained_quantiles(history, [12] * count, 12), truth) < 1.1 * exact
    assert losses(pretrained_quantiles(history, [1] * count, 12), truth) > 2 * exact


@given(
    st.integers(8, 300),
    st.sampled_from([1, 2, 4, 7, 12, 24, 52]),
    st.floats(-3, 6),
    st.integers(0, 10**6),
    st.integers(1, 64),
)
def test_forecasts_are_in_the_units_of_the_data(count: int, season: int, power: float, seed: int, horizon: int) -> None:
    values = np.random.default_rng(seed).normal(size=count).cumsum() + 5
    found = pretrained_quantiles([values], [season], horizon)[0]
    assert found.shape == (horizon, len(GRID))
    assert np.isfinite(found).all()
    assert (np.diff(found, axis=1) >= 0).all()
    np.testing.assert_allclose(
        pretrained_quantiles([10**power * values], [season], horizon)[0],
        10**power * found,
        rtol=1e-4,
        atol=1e-4 * 10**power,
    )


def test_many_histories_are_forecast_as_each_by_itself() -> None:
    rng = np.random.default_rng(2)
    histories = [rng.normal(size=count).cumsum() for count in (8, 30, 224, 500)]
    together = pretrained_quantiles(histories, [1, 4, 12, 7], 20)
    for history, season, found in zip(histories, [1, 4, 12, 7], together, strict=True):
        np.testing.assert_allclose(pretrained_quantiles([history], [season], 20)[0], found, rtol=1e-4, atol=1e-4)
    older = np.concatenate([rng.normal(size=10), histories[2]])  # what lies before the context is not read
    np.testing.assert_allclose(pretrained_quantiles([older], [12], 20)[0], together[2], rtol=1e-4, atol=1e-4)
    assert np.abs(pretrained_quantiles([older[:-1]], [12], 20)[0] - together[2]).max() > 1e-2


def test_histories_are_read_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    """So that memory does not grow with their number: the largest table that the network is shown is one part's."""
    monkeypatch.setattr(pretrained, "AT_ONCE", 3)
    net, shown = pretrained_net(), []
    hook = net.register_forward_pre_hook(lambda _, given: shown.append(len(given[0])))
    try:
        histories = list(np.random.default_rng(5).normal(size=(7, 40)))
        found = pretrained_quantiles(histories, [1, 4, 7, 12, 1, 4, 7], 5)
    finally:
        hook.remove()
    assert shown == [3, 3, 1]
    np.testing.assert_allclose(found[5], pretrained_quantiles(histories[5:6], [4], 5)[0], rtol=1e-4, atol=1e-4)
    assert pretrained_quantiles([], [], 5).shape == (0, 5, len(GRID))


@pytest.mark.parametrize("power", [-300, -30, -19, 160, 300])
def test_units_may_be_immense_or_tiny(power: int) -> None:
    """Squares of such values are no numbers any more, or nothing."""
    values = np.random.default_rng(6).normal(size=60).cumsum() + 5
    scaled = pretrained_quantiles([10.0**power * values], [12], 12)[0] / 10.0**power
    np.testing.assert_allclose(scaled, pretrained_quantiles([values], [12], 12)[0], rtol=1e-4, atol=1e-4)


def test_damaged_weights_are_refused(tmp_path: Path) -> None:
    weights = tmp_path / WEIGHTS.name
    weights.write_bytes(WEIGHTS.read_bytes()[:-1])
    with pytest.raises(ValueError, match="cannot be read"):
        checked_weights(weights)
    weights.with_suffix(".json").write_bytes(WEIGHTS.with_suffix(".json").read_bytes())
    with pytest.raises(ValueError, match="checksum mismatch, the file is damaged; reinstall sgfn"):
        checked_weights(weights)
    weights.write_bytes(WEIGHTS.read_bytes())
    assert len(checked_weights(weights)) == len(WEIGHTS.read_bytes())


def test_seasonal_naive_is_what_forecasts_are_beside() -> None:
    values = np.arange(CONTEXT, dtype=float)[None]
    steps = torch.arange(30).expand(1, -1)
    shown = show(torch.from_numpy(values), torch.tensor([CONTEXT]), torch.tensor([12]), steps)
    expected = values[0, CONTEXT - 12 + np.arange(30) % 12]
    assert shown.base[0].tolist() == expected.tolist()
    assert shown.unit.tolist() == [12.0]
    ours = shown.base + shown.unit[:, None] * shown.anchors[..., 0]
    assert ours[0].tolist() == [
        CONTEXT + step for step in range(30)
    ]  # the first anchor goes on with the growth of a season


@pytest.mark.parametrize(
    ("history", "horizon", "why"),
    [
        (History(values=np.arange(7.0), seasons=()), 3, "the history is too short"),
        (History(values=np.arange(70.0), seasons=()), HORIZON + 1, f"it forecasts {HORIZON} steps at most"),
        (
            History(values=np.arange(2001.0), seasons=()),
            3,
            "it reads 224 values, too few of a history of more than 2,000",
        ),
        (History(values=np.arange(700.0), seasons=(168,)), 3, "a season of 168 steps is too long for it"),
        (History(values=np.arange(700.0), seasons=(24, 168)), 3, ""),
        (History(values=np.tile([0.0, 0.0, 3.0], 9), seasons=()), 3, "the series is intermittent"),
    ],
)
def test_what_it_does_not_forecast(history: History, horizon: int, why: str) -> None:
    assert left_out(PRETRAINED, history, horizon) == why


def test_as_a_law_it_reads_nothing_after_the_origin_and_gives_counts_of_counts() -> None:
    values = np.random.default_rng(3).poisson(9.0, 80).astype(float)
    found = forecasts(PRETRAINED, values, [60, 70], 8, [(), ()], whole=True)
    changed = np.concatenate([values[:60], 10 * values[60:]])
    again = forecasts(PRETRAINED, changed, [60, 70], 8, [(), ()], whole=True)
    np.testing.assert_array_equal(found[0], again[0])
    assert np.abs(found[1] - again[1]).max() > 1
    long = forecasts(PRETRAINED, values, [60], LONGEST_SEASON + 20, [()])
    assert np.isnan(long).all()
    assert found.min() >= 0


def test_of_logarithms_it_follows_growth() -> None:
    """Sales that double each year, with a season that grows along, and the law of logarithms beside that of values."""
    rng, time = np.random.default_rng(4), np.arange(84)
    values = np.exp(0.06 * time + 0.5 * np.sin(time * np.pi / 6) + rng.normal(0, 0.03, 84))
    plain, log = (forecasts(name, values, [72], 12, [(12,)])[0] for name in (PRETRAINED, "log pretrained"))
    assert losses(log, values[72:]) < 0.6 * losses(plain, values[72:])
    why = left_out("log pretrained", History(values=values - 2, seasons=(12,)), 12)
    assert why == "values are not all above zero"
