"""What is told of chosen orders: the law itself, that it changes no plate, and the study of it."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from benchmarks.design_honest import SETTINGS, figures, library

from sgfn.design.designer import Designer
from sgfn.landscapes.proxies.honesty import SLOPES, HeldOut, ToldLaw
from sgfn.landscapes.transforms import ScoreTransform

AS_PREDICTED = ToldLaw(top=np.inf, centre=0.0, slope=0.0)


@pytest.fixture(scope="module")
def table() -> pd.DataFrame:
    generator = np.random.default_rng(0)
    texts = sorted({"".join(generator.choice(list("ACGT"), 7)) for _ in range(40)})
    return pd.DataFrame({"sequence": texts, "score": [text.count("G") ** 2 + generator.normal() for text in texts]})


def test_plates_stay_and_what_is_told_of_them_does_not(table: pd.DataFrame, monkeypatch: pytest.MonkeyPatch) -> None:
    made = Designer("dna", proxy="ridge").fit(table)
    proxy, told = made.fitted(), made.propose(12)
    law = ToldLaw.of(proxy)
    monkeypatch.setattr(ToldLaw, "of", lambda _: AS_PREDICTED)
    plain = Designer("dna", proxy="ridge").fit(table).propose(12)
    assert told.orders.order.tolist() == plain.orders.order.tolist()
    found = proxy.predict(told.orders.order.tolist())
    np.testing.assert_allclose(plain.orders.expected, found.mean)
    np.testing.assert_allclose(plain.orders.sd, found.sd)
    mean, sd = law(found.mean, found.sd)
    np.testing.assert_allclose(told.orders.expected, mean)
    np.testing.assert_allclose(told.orders.sd, sd)
    assert told.beyond == pytest.approx(law.top)
    assert told.orders.expected.max() < plain.orders.expected.max()
    assert told.outlook.expected_best[-1] < plain.outlook.expected_best[-1]
    assert told.orders.sd.nunique() > 6  # not one constant for all wells
    assert f"is {law.top:.4g}: of what is predicted beyond that, half is told" in told.told
    assert plain.beyond is None


def test_predictions_of_any_sequence_are_the_proxys_own(table: pd.DataFrame) -> None:
    made = Designer("dna", proxy="ridge", minimise=True).fit(table)
    texts = ["CCCCCCC", "ACGTACG", "GGGGGGG"]  # the first beyond all that was measured
    found, own = made.predict(texts), made.fitted().predict(texts)
    np.testing.assert_allclose(found.score, -own.mean)
    np.testing.assert_allclose(found.sd, own.sd)
    plate = made.propose(4)
    assert plate.beyond is not None
    assert f"its best prediction of a measured one is {plate.beyond:.4g}" in plate.told


def test_the_doubt_above_the_mean_is_that_of_held_out_errors(table: pd.DataFrame) -> None:
    made = Designer("dna", proxy="ridge").fit(table)
    proxy, generator = made.fitted(), np.random.default_rng(1)
    report, count = proxy.report, 4000
    predicted = generator.normal(size=count)
    for slope in (SLOPES[0], SLOPES[3], SLOPES[-1]):
        sd = np.sqrt(0.2**2 + (slope * predicted) ** 2)
        measured = predicted + sd * generator.normal(size=count)
        measured -= measured.mean()
        proxy.report = replace(report, predicted=predicted, measured=measured, sd=np.full(count, 0.2))
        assert abs(ToldLaw.of(proxy).slope - slope) <= 0.051


def test_held_out_sequences_that_rank_best(table: pd.DataFrame) -> None:
    report = Designer("dna", proxy="ridge").fit(table).fitted().report
    count = len(report.sequences) // 10
    best = np.argsort(-report.predicted)[:count]
    found = HeldOut.of(report, ScoreTransform(minimise=True))
    assert (found.count, found.predicted) == (count, pytest.approx(-report.predicted[best].mean()))
    assert f"the {count} that the proxy ranked best were predicted" in str(found)


def test_the_study_measures_what_it_says() -> None:
    wells = figures(np.array([1.0, 3.0]), np.array([1.0, 0.1]), np.array([2.0, 2.0]), base=1.0, unit=2.0)
    assert wells == {"mean": 0.5, "sd": 0.275, "inside": 0.5}
    for setting in SETTINGS.values():
        texts = library(setting, np.random.default_rng(0))
        assert len({*texts}) == setting.rows
        assert {len(text) for text in texts} <= {*range(setting.lengths[0], setting.lengths[1] + 1)}
        if setting.truth is not None:
            assert np.isfinite(setting.truth(texts)).all()
