"""Windows: what they hold, against loops by hand, and that the future does not reach them."""

from dataclasses import fields, replace

import numpy as np
import pytest
import torch
from small_panels import HOUR, mixed_panel, panel, series, stamps_of
from torch.testing import assert_close

from sgfn.config.series import SeriesConfig
from sgfn.series.panel import Panel, Series
from sgfn.series.windows import Inputs, Windows, plan_for

CONFIG = SeriesConfig(horizon=4, context=6, season=3, cycles=4, lags="4,9", calendar=False)


def windows_of(one: Panel, config: SeriesConfig = CONFIG) -> Windows:
    return Windows(one, plan_for(one, config))


def changed_after(one: Panel, cut: int, seed: int) -> Panel:
    """Another future: values and past-only covariates from the cut on are drawn anew, some of them missing."""
    rng, parts = np.random.default_rng(seed), []
    for part in one.series:
        values, past = part.values.copy(), part.past.copy()
        values[cut:], past[cut:] = 1e3 * rng.normal(size=values[cut:].shape), 1e3 * rng.normal(size=past[cut:].shape)
        values[cut + 1 :: 3] = np.nan
        parts.append(replace(part, values=values, past=past))
    return replace(one, series=tuple(parts))


def differing(one: Inputs, other: Inputs) -> list[str]:
    names = [field.name for field in fields(Inputs)]
    return [name for name in names if not torch.equal(getattr(one, name), getattr(other, name))]


# No leakage


@pytest.mark.parametrize("irregular", [False, True])
@pytest.mark.parametrize("reference", ["season", "level", "last", "none"])
def test_the_future_does_not_reach_what_is_known(reference: str, irregular: bool) -> None:
    one = mixed_panel(irregular=irregular)
    plan = replace(plan_for(one, CONFIG), reference=reference)
    for cut in (1, 2, 7, 20, 37, 41):
        cuts = torch.tensor([[0, cut], [1, cut]])
        before = Windows(one, plan).inputs(cuts)
        for seed in range(3):
            assert differing(before, Windows(changed_after(one, cut, seed), plan).inputs(cuts)) == []
        assert differing(before, Windows(changed_after(one, max(0, cut - 1), 0), plan).inputs(cuts))  # it would show


def test_series_cut_short_give_the_same_windows() -> None:
    """A forecast at the end of a shorter series is that within the longer one: what follows is not there to be read."""
    one = mixed_panel()
    plan = plan_for(one, CONFIG)
    short = replace(one, series=tuple(part.until(30) for part in one.series))
    within, at_end = Windows(one, plan), Windows(short, plan)
    assert torch.equal(at_end.ends(), torch.tensor([[0, 30], [1, 30]]))
    assert differing(within.inputs(at_end.ends()), at_end.inputs(at_end.ends())) == []
    assert np.array_equal(within.stamps_at(at_end.ends()), at_end.stamps_at(at_end.ends()))


def test_targets_are_the_scaled_future_and_end_with_the_series() -> None:
    one = mixed_panel()
    windows = windows_of(one)
    cuts = torch.tensor([[0, 30], [1, 39], [1, 41]])
    inputs, targets = windows.inputs(cuts), windows.targets(cuts)
    back = inputs.in_units(targets)
    assert np.allclose(back[0].numpy(), one.series[0].values[30:34], equal_nan=True)
    assert np.allclose(back[1, :2].numpy(), one.series[1].values[39:41], equal_nan=True)
    assert targets[1, 2:].isnan().all()
    assert targets[2].isnan().all()  # and not the first values of the next series
    assert not np.allclose(back[0].numpy(), one.series[0].values[31:35], equal_nan=True)


# What windows hold


def test_rows_against_loops_by_hand() -> None:
    one = mixed_panel()
    plan = replace(plan_for(one, CONFIG), reference="level", scaling="deviation", absolute=False, spread=1.0)
    windows, cut = Windows(one, plan), 30
    inputs, part = windows.inputs(torch.tensor([[0, cut]])), one.series[0]
    scale = windows.scale(torch.tensor([[0, cut]]))
    unit, level = float(scale.unit[0]), float(scale.level[0])
    for j, offset in enumerate(range(-6, 4)):
        place, wanted = cut + offset, []
        wanted += [(part.known[place, 0] - plan.known_moments[0, 0]) / plan.known_moments[1, 0]]
        past = (part.past[place - 1] - plan.past_moments[0]) / plan.past_moments[1]
        past = past if offset <= 0 else np.full(2, np.nan)
        wanted += [*np.nan_to_num(past), *(~np.isnan(past)).astype(float)]
        for lag in (4, 9):
            then = windows.scale(torch.tensor([[0, cut - lag]]))
            old = (part.values[place - lag] - float(then.level[0])) / float(then.unit[0])
            wanted += [np.nan_to_num(old), float(not np.isnan(old))]
        wanted += [0.0]
        assert np.allclose(inputs.rows[0, j].numpy(), wanted, atol=1e-5), offset
    context = part.values[cut - 6 : cut]
    assert np.allclose(inputs.values[0].numpy(), np.nan_to_num((context - level) / unit), atol=1e-5)
    assert inputs.seen[0].tolist() == (~np.isnan(context)).tolist()


def test_before_a_series_begins_nothing_is_seen() -> None:
    windows = windows_of(mixed_panel())
    inputs = windows.inputs(torch.tensor([[1, 2]]))  # the rows before are the other series' own
    assert inputs.seen[0].tolist()[:4] == [False] * 4
    assert not inputs.values[0, :4].any()
    lagged = inputs.rows[0, :, 1 + 4 : 1 + 4 + 4]
    assert not lagged[:4].any()


def test_gaps_of_irregular_stamps_are_read() -> None:
    one = mixed_panel(irregular=True)
    plan = replace(plan_for(one, CONFIG), absolute=False)
    gaps = Windows(one, plan).inputs(torch.tensor([[0, 30]])).rows[0, :, -2:].numpy()
    minutes = np.diff(one.series[0].stamps[23:34]) / np.timedelta64(1, "m")
    typical = plan.gap / np.timedelta64(1, "m")
    assert np.allclose(gaps[:, 0], np.log2(minutes / typical), atol=1e-5)
    age = (one.series[0].stamps[24:34] - one.series[0].stamps[29]) / plan.gap
    assert np.allclose(gaps[:, 1], np.sign(age) * np.log1p(np.abs(age)), atol=1e-5)
    assert plan.season == CONFIG.season == 3  # asked for
    assert plan_for(one, replace(CONFIG, season=0)).season == 1
    assert plan_for(mixed_panel(), CONFIG).features == plan.features  # 2 of the gaps here, 2 of the level there


def test_level_and_unit_are_read_on_request() -> None:
    one = mixed_panel()
    plan = plan_for(one, CONFIG)
    with_, without = (
        Windows(one, replace(plan, absolute=flag)).inputs(torch.tensor([[0, 30]])) for flag in (True, False)
    )
    assert with_.rows.shape[-1] == without.rows.shape[-1] + 2 == plan.features
    assert_close(with_.rows[..., :-2], without.rows)
    assert len(with_.rows[0, :, -2:].unique(dim=0)) == 1


# Training windows


def test_every_window_with_values_before_and_within_is_learned_from() -> None:
    values = np.arange(20.0)
    values[12:16] = np.nan
    cuts = windows_of(panel(series(values))).cuts()
    assert cuts.tolist() == [[0, cut] for cut in range(6, 17) if cut != 12]


def test_a_series_without_a_window_is_refused_with_a_hint() -> None:
    with pytest.raises(ValueError, match=r"^no window to learn from: the longest series has 5 steps"):
        windows_of(panel(series(np.arange(5.0))))
    assert len(windows_of(panel(series(np.arange(6.0)))).cuts()) == 1


def test_known_covariates_must_reach_the_horizon() -> None:
    one = mixed_panel()
    short = replace(one, series=tuple(part.until(len(part)) for part in one.series))
    short = replace(short, series=tuple(_without_future(part, 2) for part in short.series))
    windows = windows_of(short)
    assert windows.inputs(torch.tensor([[0, 58]])).rows.isfinite().all()
    with pytest.raises(ValueError, match=r"^series 'a': \['known0'\] are known in advance, but their rows do"):
        windows.inputs(windows.ends())


def _without_future(one: Series, rows: int) -> Series:
    count = len(one)
    return replace(one, known=one.known[: count + rows], future=one.future[:rows])


def test_other_covariates_are_refused() -> None:
    plan = plan_for(mixed_panel(), CONFIG)
    with pytest.raises(ValueError, match=r"^the panel has covariates \[\], the forecaster was fitted with \['known0'"):
        Windows(panel(series(np.arange(30.0))), plan)


@pytest.mark.parametrize("count", [2, 8])
def test_folds_are_blocks_that_share_the_time(count: int) -> None:
    windows = windows_of(panel(series(np.random.default_rng(0).normal(size=400))))
    fold = torch.cat([windows.folds(torch.tensor([[0, cut]]), count)[:, 0] for cut in range(400)])
    assert sorted(fold.unique().tolist()) == list(range(count))
    shares = fold.bincount() / 400
    assert float(shares.min()) > 0.6 / count
    lengths = torch.unique_consecutive(fold, return_counts=True)[1]
    assert int(lengths[:-1].min()) >= 2 * 4


# Plans


@pytest.mark.parametrize(
    ("values", "wanted"),
    [
        (np.tile(np.arange(24.0) ** 2, 12), "season"),
        (np.cumsum(np.random.default_rng(1).normal(size=288)), "last"),
        (10 + np.random.default_rng(2).normal(size=288), "level"),
    ],
)
def test_the_reference_that_leaves_least_is_chosen(values: np.ndarray, wanted: str) -> None:
    noise = 0.01 * np.random.default_rng(3).normal(size=len(values))
    assert plan_for(panel(series(values + noise)), SeriesConfig(horizon=4, season=24)).reference == wanted


@pytest.mark.parametrize(("power", "wanted"), [(1.0, "size"), (0.0, "deviation")])
def test_the_scaling_under_which_windows_are_most_alike_is_chosen(power: float, wanted: str) -> None:
    rng = np.random.default_rng(4)
    level, spread = np.exp(np.linspace(0, 4, 600)), np.exp(2 * np.sin(np.arange(600) / 60))
    values = level * (1 + 0.1 * rng.normal(size=600)) if power else 1000 + spread * rng.normal(size=600)
    assert plan_for(panel(series(values)), SeriesConfig(horizon=4, season=1, context=48)).scaling == wanted


def test_lags_lie_around_whole_years_where_the_data_is_long_enough() -> None:
    day = np.timedelta64(1, "D").astype("timedelta64[ns]")

    def lags(years: float, horizon: int = 30) -> tuple[int, ...]:
        values = np.random.default_rng(0).normal(size=round(365.25 * years))
        empty = np.empty((len(values), 0))
        one = Series(name="a", stamps=stamps_of(len(values), step=day), values=values, known=empty, past=empty)
        return plan_for(panel(one, step=day), SeriesConfig(horizon=horizon)).lags

    assert lags(1.5) == ()
    assert lags(2.5) == (357, 364, 371)
    assert lags(4.0) == (357, 364, 371, 721, 728, 735)
    assert lags(4.0, horizon=360) == (364, 371, 721, 728, 735)


def test_spread_makes_targets_of_size_one() -> None:
    windows = windows_of(panel(series(1e6 * np.random.default_rng(5).normal(size=200))))
    assert float(windows.targets(windows.cuts()).abs().nanmean()) == pytest.approx(1.0, abs=0.05)
    assert windows.plan.gap == HOUR


# Outages


@pytest.mark.parametrize("reference", ["season", "level", "last"])
def test_after_an_outage_a_window_is_scaled_by_what_came_before_it(reference: str) -> None:
    """Whole seasons back, so that each step keeps its own reference; and as before where two values were seen."""
    values = 100.0 + np.tile([0.0, 5.0, -5.0], 20) + np.random.default_rng(0).normal(size=60)
    values[25:50] = np.nan  # twice the history of 12
    one = panel(series(values))
    windows = Windows(one, replace(plan_for(one, CONFIG), reference=reference))
    found = windows.scale(torch.tensor([[0, 25], [0, 40], [0, 46], [0, 51], [0, 52]]))
    whole = windows.scale(torch.tensor([[0, 25], [0, 34], [0, 34], [0, 36], [0, 52]]))
    assert torch.equal(found.unit, whole.unit)
    assert torch.equal(found.reference, whole.reference)
    assert bool(((found.reference - 100).abs() < 8).all())  # and not around nought
    if reference == "season":
        assert_close(found.reference[1], torch.tensor(values)[(40 + windows.offsets) % 3 + 21], atol=3.0, rtol=0.0)


def test_outages_do_not_show_what_follows() -> None:
    values = np.sin(np.arange(60.0))
    values[20:45] = np.nan
    one = panel(series(values))
    plan = plan_for(one, CONFIG)
    for cut in (30, 44, 46):
        cuts = torch.tensor([[0, cut]])
        assert differing(Windows(one, plan).inputs(cuts), Windows(changed_after(one, cut, 0), plan).inputs(cuts)) == []
    assert differing(Windows(one, plan).inputs(cuts), Windows(changed_after(one, 45, 0), plan).inputs(cuts))


def test_long_histories_are_scaled_in_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    """The same scales, whatever the block; a history is cut to what there is, seasons whole."""
    one = mixed_panel()
    plan = plan_for(one, CONFIG)
    whole, cuts = Windows(one, replace(plan, cycles=50)), Windows(one, plan).cuts()
    monkeypatch.setattr("sgfn.series.windows.HISTORIES", 100)
    monkeypatch.setattr("sgfn.series.windows.LONG_HISTORY", 100)
    cut = Windows(one, replace(plan, cycles=10**6))
    assert (whole.history, cut.history) == (150, 60)
    for name in ("reference", "level", "unit"):
        assert_close(getattr(cut.scale(cuts), name), getattr(whole.scale(cuts), name), equal_nan=True)


@pytest.mark.parametrize(("unit", "season"), [("ns", 1), ("us", 1), ("ms", 1), ("s", 86_400), ("m", 1440)])
def test_stamps_of_nanoseconds_have_no_season(unit: str, season: int) -> None:
    """A day has more of them than memory has room for."""
    step = np.timedelta64(1, unit).astype("timedelta64[ns]")
    one = replace(series(np.sin(np.arange(40.0))), stamps=stamps_of(40, step=step))
    assert plan_for(panel(one, step=step), SeriesConfig(horizon=4)).season == season
