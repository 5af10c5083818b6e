"""Processes whose predictive law is known: the forecaster finds it, a reward of exp(-error) does not."""

import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from scipy import stats
from small_panels import panel, series
from torch import Tensor

from sgfn.config import TrainConfig
from sgfn.envs import ForecastEnv
from sgfn.landscapes.base import Landscape
from sgfn.landscapes.tasks import Task
from sgfn.learning.trainer import Trainer
from sgfn.noise import UniformSlip
from sgfn.series.forecaster import Forecaster
from sgfn.series.prediction import Forecast

LEVELS = np.array([0.05, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95])
PHI, FLIP, SPREAD = 0.8, 0.25, 0.4
LEARNED, CELLS = 5000, 16
"""Values that are learned from; parameters in which the law is read off them, one for each channel of the network."""
STANDARD = np.sqrt(LEVELS * (1 - LEVELS) * CELLS / LEARNED)
"""Standard error of the share below a quantile that is estimated from a cell's part of the values."""
ORIGINS = range(100, 5000, 50)


def fitted(values: np.ndarray, horizon: int) -> Forecaster:
    """A small network on values as they are, without calendar or season."""
    plain = {"season": 1, "calendar": False, "lags": "none", "reference": "none", "scaling": "none", "absolute": False}
    made = Forecaster(
        horizon=horizon, context=2, bins=32, members=1, folds=0, dropout=0.0, average=0.99, laws="network", **plain
    )
    small = {"net__hidden": CELLS, "net__layers": 1, "net__heads": 2, "optim__lr": 5e-3, "steps": 200, "batch": 128}
    return Forecaster(made.config.with_(**small)).fit(panel(series(values)))


def on_fresh(made: Forecaster, values: np.ndarray) -> Forecast:
    """Forecasts of values that were not learned from, without a look at how earlier ones fared."""
    learner = made.fitted
    learner.settings = replace(learner.settings, recall=0.0)
    return made.predict(panel(series(values, "fresh")), origins=[("fresh", cut) for cut in ORIGINS], samples=200)


def autoregression(seed: int) -> np.ndarray:
    rng, values = np.random.default_rng(seed), np.zeros(LEARNED)
    for t in range(1, len(values)):
        values[t] = PHI * values[t - 1] + rng.normal()
    return values


def flipping(seed: int) -> np.ndarray:
    rng = np.random.default_rng(seed)
    sign = np.cumprod(np.where(rng.random(LEARNED) < FLIP, -1, 1))
    return 2.0 * sign + SPREAD * rng.normal(size=LEARNED)


@pytest.fixture(scope="module")
def autoregressive() -> tuple[np.ndarray, Forecast]:
    r"""$y_t = \phi y_{t-1} + \varepsilon_t$, and forecasts of the steps after many origins in values drawn anew."""
    fresh = autoregression(10)
    return fresh, on_fresh(fitted(autoregression(0), 3), fresh)


@pytest.fixture(scope="module")
def bimodal() -> tuple[np.ndarray, Forecast]:
    """A sign that flips one time in four, seen with some noise: two modes, whatever came before."""
    fresh = flipping(11)
    return fresh, on_fresh(fitted(flipping(1), 2), fresh)


def within(below: np.ndarray, times: float = 2.0) -> bool:
    """Whether true shares below quantiles are as near their levels as standard errors allow, and unbiased."""
    unbiased = np.abs((below - LEVELS).mean((0, 1))) < times * STANDARD
    return bool(np.abs(below - LEVELS).mean() < times * STANDARD.mean() and unbiased.all())


def test_quantiles_of_an_autoregression(autoregressive: tuple[np.ndarray, Forecast]) -> None:
    """True probability below each forecast quantile against its level, at all steps and origins."""
    values, found = autoregressive
    steps, last = np.arange(1, 4), values[np.array(found.cuts) - 1]
    mean, deviation = last[:, None] * PHI**steps, np.sqrt((1 - PHI ** (2 * steps)) / (1 - PHI**2))
    quantiles = found.quantiles(LEVELS.tolist())
    assert within(stats.norm.cdf(quantiles, mean[..., None], deviation[:, None]))
    assert not within(stats.norm.cdf(quantiles, 0.0, 1 / np.sqrt(1 - PHI**2)))  # as if nothing were known
    assert not within(stats.norm.cdf(quantiles, mean[..., None], 1.0))  # as if uncertainty did not grow


def test_paths_of_an_autoregression_move_together(autoregressive: tuple[np.ndarray, Forecast]) -> None:
    """Neighbouring steps of a path are correlated as the process has them, which no set of quantiles says."""
    _, found = autoregressive
    away = found.paths - found.paths.mean(1, keepdims=True)
    drawn = np.mean([np.corrcoef(window.T)[0, 1] for window in away])
    wanted = PHI / math.sqrt(1 + PHI**2)
    error = (1 - wanted**2) * math.sqrt(CELLS / LEARNED)
    assert drawn == pytest.approx(wanted, abs=2 * error)
    shuffled = np.mean([np.corrcoef(np.random.default_rng(0).permuted(window, axis=0).T)[0, 1] for window in away])
    assert abs(shuffled - wanted) > 10 * error


def test_the_density_is_as_good_as_the_truth(autoregressive: tuple[np.ndarray, Forecast]) -> None:
    """Cross-entropy of drawn truths under the forecast, less the entropy of the truth.

    The true law over the same bins has lost what lies within them; of n values and p parameters p/2n more is lost in
    the mean, with a parameter for each channel and bin.
    """
    values, found = autoregressive
    mean = PHI * values[np.array(found.cuts) - 1]
    below = stats.norm.cdf(found.bins.edges.numpy() * found.unit.numpy()[:, None] - mean[:, None])
    law = torch.from_numpy(np.diff(below, prepend=0.0, append=1.0))[:, None].expand(-1, 3, -1)
    learned, best, blind = (
        gap(one, mean) for one in (found, replace(found, law=law), replace(found, law=law.mean(0).expand(law.shape)))
    )
    assert 0.0 < best < learned < best + CELLS * found.bins.count / (2 * LEARNED) < blind


def gap(found: Forecast, mean: np.ndarray) -> float:
    """Mean of log p(y) - log f(y) at the first step, over values y at even shares of the true law p."""
    scores = stats.norm.ppf((np.arange(200) + 0.5) / 200)
    density = [found.log_density(np.repeat((mean + z)[:, None], 3, axis=1))[:, 0] for z in scores]
    return float(np.mean(stats.norm.logpdf(scores)[:, None] - np.stack(density)))


def two_modes(last: np.ndarray, steps: int) -> tuple[np.ndarray, np.ndarray]:
    """Weight of staying on one's side after each step, and the side."""
    stay = (1 + (1 - 2 * FLIP) ** np.arange(1, steps + 1)) / 2
    return stay, np.sign(last)


def test_both_modes_are_found_with_their_weights(bimodal: tuple[np.ndarray, Forecast]) -> None:
    values, found = bimodal
    stay, side = two_modes(values[np.array(found.cuts) - 1], 2)
    positive = 1.0 - found.cdf(np.zeros((len(found), 2)))
    wanted = np.where(side[:, None] > 0, stay, 1 - stay)
    error = np.sqrt(stay * (1 - stay) * CELLS / LEARNED).mean()
    assert np.abs(positive - wanted).mean() < 2 * error
    assert np.abs(positive - wanted[::-1]).mean() > 4 * error
    middle = np.exp(found.log_density(np.zeros((len(found), 2))))
    modes = np.exp(found.log_density(np.full((len(found), 2), 2.0)))
    assert middle.mean() < 0.1 * modes.mean()
    truth = lambda x, w: w * stats.norm.cdf(x, 2, SPREAD) + (1 - w) * stats.norm.cdf(x, -2, SPREAD)  # noqa: E731
    below = truth(found.quantiles(LEVELS.tolist()), wanted[..., None])
    assert within(below)
    assert not within(truth(found.quantiles(LEVELS.tolist()), 0.5))


class NearTruth(Landscape):
    """Reward exp(-error/T) against a future drawn anew for each object: what balance on errors would train on."""

    maximum = mode_level = 1.0

    def __init__(self, centres: Tensor, law: Tensor, temperature: float) -> None:
        self.centres, self.law, self.temperature = centres, law, temperature
        self.generator = torch.Generator().manual_seed(0)

    def scores(self, objects: Tensor) -> Tensor:
        came = torch.multinomial(self.law, objects[..., 1].numel(), replacement=True, generator=self.generator)
        error = (self.centres[objects[..., 1]] - self.centres[came].view(objects.shape[:-1])).abs()
        return (-error / self.temperature).exp()


@pytest.mark.parametrize("temperature", [0.5, 2.0])
def test_a_reward_for_small_errors_forgets_the_modes(temperature: float) -> None:
    r"""Balance in logarithms fits $\exp(-E|k - y|/T)$: its width is the temperature, and the truth is elsewhere."""
    centres, law = torch.arange(-3.0, 4.0), torch.tensor([0.05, 0.4, 0.05, 0.0, 0.05, 0.4, 0.05])
    env = ForecastEnv(horizon=1, bins=7, noise=UniformSlip(alpha=0.0))
    config = TrainConfig().with_(steps=250, batch=64, explore=0.2, optim__lr=1e-2, reward__minimum=1e-30)
    config = config.with_(net__hidden=16, net__layers=1, dynamics__mode="known")
    task = Task(
        name="errors", summary="", env=env, landscape=NearTruth(centres, law, temperature), beta=1.0, config=config
    )
    trainer = Trainer(task, torch.device("cpu"))
    for _ in range(config.steps):
        trainer.step()
    found = trainer.law().float()
    expected = ((centres[:, None] - centres).abs() * law).sum(-1)
    wanted = torch.softmax(-expected / temperature, -1)
    assert float((found - wanted).abs().sum()) / 2 < 0.06
    assert float((found - law).abs().sum()) / 2 > 0.3  # the truth
    other = torch.softmax(-expected / (4 * temperature), -1)
    assert float((wanted - other).abs().sum()) / 2 > 0.05  # another temperature, another interval
