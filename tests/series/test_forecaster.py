"""`Forecaster(...).fit(data).predict()`: shapes, agreement of its parts, folders, errors."""

import warnings
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from small_panels import mixed_panel, panel, series

from sgfn.series.data import columns_of, to_long
from sgfn.series.forecaster import Forecaster, check_data
from sgfn.series.frames import read_panel
from sgfn.series.panel import Panel, Series
from sgfn.series.prediction import Forecast

SMALL: dict[str, Any] = {"net__hidden": 8, "net__layers": 1, "net__heads": 2, "batch": 8}


def forecaster(**settings: Any) -> Forecaster:
    made = Forecaster(
        **{"horizon": 4, "context": 6, "bins": 8, "members": 2, "folds": 2, "steps": 4, "laws": "network"} | settings
    )
    return Forecaster(made.config.with_(**SMALL))


@pytest.fixture(scope="module")
def fitted() -> Forecaster:
    return forecaster().fit(mixed_panel())


@pytest.fixture(scope="module")
def found(fitted: Forecaster) -> Forecast:
    return fitted.predict(samples=300)


def test_a_forecast_has_a_window_for_each_series(found: Forecast) -> None:
    assert found.names == ("a", "b")
    assert found.cuts == (60, 41)
    assert found.paths.shape == (2, 300, 4)
    assert found.quantiles().shape == (2, 4, 9)
    assert found.mean.shape == found.median.shape == (2, 4)
    assert found.stamps[0, 0] == np.datetime64("2024-01-03T12", "ns")
    assert np.isfinite(found.paths).all()


def test_paths_quantiles_and_cdf_are_of_one_law(found: Forecast) -> None:
    quantiles = found.quantiles([0.1, 0.5, 0.9])
    assert np.allclose(found.cdf(quantiles[..., 0]), 0.1)
    assert np.allclose(found.median, quantiles[..., 1])
    below = (found.paths <= quantiles[:, None, :, 1]).mean(1)
    assert np.abs(below - 0.5).max() < 0.15
    assert np.abs(found.paths.mean(1) - found.mean).max() < 0.5 * (quantiles[..., 2] - quantiles[..., 0]).max()
    assert (np.diff(found.quantiles(), axis=-1) > 0).all()
    shifted = found.cdf(quantiles[..., 1] + 1.0)
    assert (shifted > 0.5).all()


def test_log_density_is_the_derivative_of_the_cdf(found: Forecast) -> None:
    at, small = found.median + 0.013, 1e-6
    slope = (found.cdf(at + small) - found.cdf(at - small)) / (2 * small)
    assert np.allclose(np.exp(found.log_density(at)), slope, rtol=1e-3)
    missing = at.copy()
    missing[0, 0] = np.nan
    assert np.isnan(found.log_density(missing)[0, 0])
    assert np.isnan(found.cdf(missing)).sum() == 1


def test_the_frame_says_what_the_arrays_say(found: Forecast) -> None:
    frame = found.to_frame([0.1, 0.5])
    assert list(frame.columns) == ["unique_id", "ds", "cut", "mean", "q0.1", "q0.5"]
    assert len(frame) == 8
    assert np.allclose(frame["q0.5"].to_numpy().reshape(2, 4), found.median)
    assert frame["unique_id"].tolist() == ["a"] * 4 + ["b"] * 4


def test_levels_lie_between_zero_and_one(found: Forecast) -> None:
    with pytest.raises(ValueError, match=r"^levels of quantiles must lie between 0 and 1, got \[0\.5, 1\.0\]$"):
        found.quantiles([0.5, 1.0])


def test_a_seed_is_a_forecast(fitted: Forecaster, found: Forecast) -> None:
    assert np.array_equal(fitted.predict(samples=300).paths, found.paths)
    assert not np.array_equal(fitted.predict(samples=300, seed=1).paths, found.paths)


def test_origins_choose_windows_and_later_values_do_not_matter(fitted: Forecaster) -> None:
    one = mixed_panel()
    at = fitted.predict(one, origins=[("b", 30), ("a", 40)], samples=4)
    assert (at.names, at.cuts) == (("b", "a"), (30, 40))
    short = type(one)(
        series=tuple(part.until(30) for part in one.series),
        step=one.step,
        known_names=one.known_names,
        past_names=one.past_names,
    )
    assert np.allclose(fitted.predict(short, samples=4).quantiles()[1], at.quantiles()[0])
    assert not np.allclose(at.quantiles()[0], at.quantiles()[1])
    with pytest.raises(ValueError, match=r"^no series 'c' in the panel: there are a, b$"):
        fitted.predict(one, origins=[("c", 3)])
    with pytest.raises(ValueError, match=r"^series 'b' has 41 values: no origin after 42$"):
        fitted.predict(one, origins=[("b", 42)])


def test_a_saved_forecaster_says_the_same_wherever_it_lies(fitted: Forecaster, found: Forecast, tmp_path: Path) -> None:
    fitted.save(tmp_path / "run")
    (tmp_path / "run").rename(tmp_path / "moved")
    loaded = Forecaster.load(tmp_path / "moved")
    assert np.allclose(loaded.predict(samples=300).paths, found.paths)
    with pytest.raises(ValueError, match=r"already holds a run: save\(..., overwrite=True\) replaces it"):
        fitted.save(tmp_path / "moved")
    fitted.save(tmp_path / "moved", overwrite=True)
    other = Forecaster(fitted.config).fit(panel(series(np.arange(60.0) % 7)))
    other.save(tmp_path / "moved", overwrite=True)  # other data in the place of the old
    assert Forecaster.load(tmp_path / "moved").predict(samples=2).names == ("a",)


def test_data_that_changed_since_training_is_refused(fitted: Forecaster, tmp_path: Path) -> None:
    """Plan and bins are made of the file anew: of another one they would not be those the network learned with."""
    fitted.save(tmp_path / "run")
    copy = tmp_path / "run" / "data" / "data.csv"
    text = copy.read_text()
    copy.write_text(text + "\n")
    with pytest.raises(ValueError, match=r"data\.csv has changed since .*run was begun: put the old file back"):
        Forecaster.load(tmp_path / "run")
    copy.write_text(text)
    assert len(Forecaster.load(tmp_path / "run").predict(samples=2)) > 0


def test_a_panel_survives_the_long_format() -> None:
    one, config = mixed_panel(), Forecaster(known="known0").config.series
    back = read_panel(to_long(one), columns_of(config)).panel
    for part, other in zip(one.series, back.series, strict=True):
        assert np.array_equal(part.values, other.values, equal_nan=True)
        assert np.allclose(part.known, other.known)
        assert np.array_equal(part.past, other.past, equal_nan=True)
        assert np.array_equal(part.future, other.future)


def test_frames_and_files_are_read(tmp_path: Path) -> None:
    frame = pd.DataFrame({"ds": pd.date_range("2024-01-01", periods=60, freq="D"), "y": np.sin(np.arange(60.0))})
    frame.to_csv(tmp_path / "data.csv", index=False)
    by_frame, by_file = (forecaster().fit(one).predict(samples=4) for one in (frame, tmp_path / "data.csv"))
    assert np.allclose(by_frame.paths, by_file.paths)
    assert by_frame.stamps[0, 0] == np.datetime64("2024-03-01", "ns")


def test_notices_of_the_reader_are_warnings() -> None:
    frame = pd.DataFrame({"ds": pd.date_range("2024-01-01", periods=60, freq="D"), "y": np.sin(np.arange(60.0))})
    with pytest.warns(UserWarning, match="rows are not in the order of time; they were sorted"):
        made = forecaster().fit(frame.iloc[::-1])
    with pytest.warns(UserWarning, match="1 step has no row"):
        made.predict(frame.drop(index=30), samples=2)


@pytest.mark.parametrize(
    ("days", "every", "settings", "why"),
    [
        (600, 1, {}, "there are 1.6 years to learn from, 2 are needed"),
        (800, 7, {}, "steps are longer than a day"),
        (800, 1, {"calendar": False}, "the calendar is left out"),
    ],
)
def test_holidays_that_are_not_read_are_told_of(days: int, every: int, settings: dict[str, Any], why: str) -> None:
    stamps = pd.date_range("2020-01-01", periods=days, freq="D")[::every]
    frame = pd.DataFrame({"ds": stamps, "y": np.sin(np.arange(float(len(stamps))))})
    with pytest.warns(UserWarning, match=f"holidays US are not read: {why}"):
        made = forecaster(holidays="US", steps=1, **settings).fit(frame)
    assert "holiday_christmas_day_+0" not in made.fitted.data.plan.calendar_names


def test_holidays_of_two_years_are_read_in_silence() -> None:
    frame = pd.DataFrame({"ds": pd.date_range("2020-01-01", periods=800), "y": np.sin(np.arange(800.0))})
    assert "holiday_christmas_day_+0" in forecaster(holidays="US", steps=1).fit(frame).fitted.data.plan.calendar_names


def test_another_step_is_refused(fitted: Forecaster) -> None:
    """Fitted to hours: days and uneven stamps are not read as if they were hours."""
    day = np.timedelta64(1, "D")
    days = [replace(one, stamps=stamps, future=future) for one, stamps, future in spaced(mixed_panel(), day)]
    with pytest.raises(ValueError, match=r"fitted to steps of 1 hour, this data has steps of 1 day: give data with"):
        fitted.predict(replace(mixed_panel(), series=tuple(days), step=day.astype("timedelta64[ns]")))
    with pytest.raises(ValueError, match="this data has irregular stamps"):
        fitted.predict(mixed_panel(irregular=True))
    fitted.predict(mixed_panel(seed=1), samples=2)


def spaced(panel: Panel, step: np.timedelta64) -> list[tuple[Series, np.ndarray, np.ndarray]]:
    """Each series with stamps by another step."""
    found = []
    for one in panel.series:
        stamps = one.stamps[0] + np.arange(len(one) + len(one.future)) * step
        found.append((one, stamps[: len(one)], stamps[len(one) :]))
    return found


def test_fitting_needs_no_future() -> None:
    """Covariates known in advance: the future comes with the data that is forecast, not with what is learned."""
    rng, stamps = np.random.default_rng(0), pd.date_range("2024-01-01", periods=60)
    frame = pd.DataFrame({"ds": stamps, "y": rng.normal(size=60), "promo": rng.integers(0, 2, 60)})
    made = forecaster(known=["promo"]).fit(frame.iloc[:56])
    with pytest.raises(ValueError, match="their rows do not reach 4 steps past value 56"):
        made.predict()
    ahead = frame.assign(y=frame["y"].where(frame.index < 56))
    assert made.predict(ahead, samples=2).stamps[0].tolist() == stamps[56:].to_numpy().tolist()


def test_a_saved_forecaster_keeps_names_that_a_spreadsheet_would_run(tmp_path: Path) -> None:
    plain = mixed_panel()
    odd = replace(
        plain,
        series=tuple(replace(one, name=name) for one, name in zip(plain.series, ("=1+1", 'q"r, -s'), strict=True)),
        past_names=tuple(f"={name}" for name in plain.past_names),
    )
    made = forecaster().fit(odd)
    made.save(tmp_path / "run")
    text = (tmp_path / "run" / "data" / "data.csv").read_text()
    assert not [line for line in text.splitlines() if line.startswith("=")]
    again = Forecaster.load(tmp_path / "run")
    assert again.predict(samples=3).names == ("=1+1", 'q"r, -s')
    assert again.fitted.data.panel.past_names == odd.past_names
    assert np.allclose(again.predict(samples=3).paths, made.predict(samples=3).paths)


def test_what_data_may_be() -> None:
    frame = pd.DataFrame({"ds": pd.date_range("2024-01-01", periods=60), "y": np.sin(np.arange(60.0)), 3: 1.0})
    assert forecaster().read(frame).past_names == ("3",)
    assert len(forecaster().read("births").series[0]) == 7305
    for wrong in (frame["y"], frame["y"].to_numpy(), None):
        with pytest.raises(ValueError, match=r"^data must be a DataFrame, a file or a panel, got"):
            check_data(wrong)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [({"samples": 0}, r"samples must lie in \[1, 1e\+06\], got 0"), ({"seed": -1}, "seed must lie")],
)
def test_wrong_arguments_of_predict(fitted: Forecaster, wrong: dict[str, int], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        fitted.predict(**wrong)  # pyright: ignore[reportArgumentType]
    assert fitted.predict(samples=1).paths.shape[1] == 1


def test_paths_that_memory_would_not_hold(fitted: Forecaster, monkeypatch: pytest.MonkeyPatch) -> None:
    windows, _, horizon = fitted.predict(samples=1).paths.shape
    monkeypatch.setattr("sgfn.series.forecaster.MOST_DRAWN", 3 * windows * horizon)
    assert fitted.predict(samples=3).paths.shape[1] == 3
    with pytest.raises(ValueError, match=r"^4 paths of .* are more than \S+ values: draw at most 3$"):
        fitted.predict(samples=4)


def test_settings_are_those_of_the_configuration() -> None:
    made = Forecaster(horizon=12, steps=7, holidays="US")
    assert (made.config.series.horizon, made.config.steps, made.config.series.holidays) == (12, 7, "US")
    assert repr(made) == "Forecaster(steps=7, horizon=12, holidays='US')"
    with pytest.raises(ValueError, match=r"^Forecaster has no setting 'horizont'; did you mean 'horizon'\?$"):
        Forecaster(horizont=3)
    with pytest.raises(ValueError, match=r"^series\.horizon must lie in \[1, 4096\], got -1$"):
        Forecaster(horizon=-1)
    with pytest.raises(ValueError, match=r"^this forecaster has not learned anything yet: call fit\(data\) first$"):
        made.predict()


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ({"lr": 0.1}, r"no setting 'lr'; did you mean 'optim__lr'\?"),
        ({"epochs": 3}, r"no setting 'epochs': see the fields"),
        ({"rl__epochs": 3}, r"does not read rl__epochs: leave it out"),
        ({"objective": "tb"}, "does not read objective: flow objectives match a reward, and a forecast has none"),
        ({"entropy__gamma": 0.3}, "does not read entropy__gamma: the entropy ratio weighs states"),
        ({"thought__layers": 1}, "does not read thought__layers: the network reads all that happened before"),
    ],
)
def test_settings_that_are_not_read_are_refused_with_the_reason(setting: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Forecaster(**setting)


def test_levels_of_a_prediction(fitted: Forecaster) -> None:
    found = fitted.predict(samples=2, levels=(0.05, 0.5))
    assert found.quantiles().shape[-1] == 2
    assert np.array_equal(found.quantiles(), fitted.predict(samples=2).quantiles([0.05, 0.5]))
    assert [name for name in found.to_frame().columns if name.startswith("q")] == ["q0.05", "q0.5"]
    with pytest.raises(ValueError, match=r"^levels of quantiles must lie between 0 and 1, got \[0\.5, 1\.0\]$"):
        fitted.predict(levels=(0.5, 1.0))
    for wrong in (0.5, ["a"], "0.5"):
        with pytest.raises(ValueError, match=r"^levels of quantiles must be a list of numbers such as"):
            fitted.predict(levels=wrong)  # pyright: ignore[reportArgumentType]
    with pytest.raises(ValueError, match=r"^levels of quantiles must lie between 0 and 1, got \[\]$"):
        fitted.predict(levels=[])


def test_columns_may_be_given_as_lists(fitted: Forecaster, tmp_path: Path) -> None:
    made = Forecaster(target_col=["a", "b"], id_col=["store", "item"], known=["promo"])
    assert (made.config.series.target_col, made.config.series.id_col) == ("a,b", "store,item")
    fitted.save(tmp_path / "run")
    with pytest.raises(ValueError, match=r"already holds a run: save\(..., overwrite=True\) replaces it$"):
        fitted.save(tmp_path / "run")


def test_numbers_of_steps_words_and_constants(tmp_path: Path) -> None:
    """What people have, from the table to the forecast: steps come back as numbers, a constant stays one."""
    steps, rng = np.arange(60), np.random.default_rng(0)
    words = rng.choice(["sun", "rain, heavy"], size=60)
    part = {"ds": steps, "sky": words}
    frame = pd.concat(
        [
            pd.DataFrame({"unique_id": "a", "y": rng.normal(size=60), **part}),
            pd.DataFrame({"unique_id": "c", "y": 7.0, **part}),
        ]
    )
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        made = forecaster(steps=3).fit(frame)
    for words_told in ("numbers of steps", "2 words are read as an indicator each", "'c' is constant"):
        assert any(words_told in str(one.message) for one in told)
    found = made.predict(samples=3)
    table = found.to_frame()
    assert table["ds"].tolist()[:2] == [60, 61]
    assert (found.quantiles()[1] == 7.0).all()
    assert (found.paths[1] == 7.0).all()
    assert (found.mean[1] == 7.0).all()
    assert np.ptp(found.quantiles()[0]) > 0
    made.save(tmp_path / "run")
    again = Forecaster.load(tmp_path / "run").predict(samples=3)
    assert np.allclose(again.quantiles(), found.quantiles())
    assert again.to_frame()["ds"].equals(table["ds"])
    later = frame.assign(sky=["snow"] + ["sun"] * 119)
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        assert np.isfinite(made.predict(later, samples=2).paths).all()
    assert any("'snow' were not among what was learned from" in str(one.message) for one in told)


def test_a_measurement_error_widens_what_is_seen() -> None:
    values = np.random.default_rng(0).normal(size=200)
    frame = pd.DataFrame({"ds": pd.date_range("2024-01-01", periods=200, freq="h"), "y": values})
    made = forecaster(noise="known", deviation=0.8, reference="none", scaling="none", bins=24, steps=30).fit(frame)
    seen, clean = made.predict(samples=200), made.predict(samples=200, latent=True)
    width = lambda one: (one.quantiles([0.9]) - one.quantiles([0.1])).mean()  # noqa: E731
    assert width(seen) > 1.05 * width(clean)
    assert seen.paths.std() > clean.paths.std()
