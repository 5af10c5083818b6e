"""Without noise no kernel is built, whatever a model is asked."""

from typing import Any

import numpy as np
import pytest
import torch
from small_panels import panel, series

import sgfn
from sgfn.config.presets import PRESETS
from sgfn.envs.base import Env
from sgfn.envs.tabulated import TabulatedEnv
from sgfn.learning.methods import make_learner
from sgfn.noise import ByPosition, HiddenRate, Noise, UniformSlip
from sgfn.noise.base import OperatorNoise
from sgfn.noise.operators import ConfusionKernel, Identity, Kernel, TableKernel, UniformSlipKernel
from sgfn.series.bins import Bins
from sgfn.series.learner import ForecastLearner
from sgfn.series.task import series_task

QUICK: dict[str, Any] = {"steps": 3, "batch": 8, "net__hidden": 16, "progress": False, "device": "cpu"}
BUILDERS: dict[type, str] = dict.fromkeys((Env, TabulatedEnv, OperatorNoise, Noise), "kernel")
BUILDERS[Bins] = "blur"
BUILDERS |= dict.fromkeys((Kernel, Identity, UniformSlipKernel, TableKernel, ConfusionKernel), "matrix")
FORECAST: dict[str, Any] = {"batch": 4, "steps": 2, "net__hidden": 8, "net__layers": 1, "net__heads": 2}
FORECAST |= {
    "series__laws": "network",
    "series__horizon": 2,
    "series__context": 6,
    "series__season": 1,
    "series__bins": 6,
    "series__members": 1,
}


class BuiltError(AssertionError):
    """A kernel was built."""


@pytest.fixture
def no_kernels(monkeypatch: pytest.MonkeyPatch) -> None:
    """Building the matrix of a known kernel raises; what networks say of noise is not concerned."""

    def built(*_: Any, **__: Any) -> None:
        raise BuiltError

    for owner, name in BUILDERS.items():
        monkeypatch.setattr(owner, name, built)


def ask_everything(model: sgfn.Model) -> None:
    """Samples, drawn by look-ups and by rollouts, figures and orders, the law, and probabilities of single objects."""
    samples = model.sample(20, seed=0)
    model.sample(20, seed=0, temperature=0.5)
    model.evaluate(samples=32)
    if model.learner.has_law:
        model.law()
        model.log_prob(samples.sequences[:3])


def count_a(texts: list[str]) -> list[float]:
    return [1.0 + text.count("A") for text in texts]


SETTINGS: dict[str, dict[str, Any]] = {
    "known": {"dynamics__mode": "known"},
    "learned": {},
    "replay": {"dynamics__mode": "replay"},
    "kl": {"objective": "kl", "dynamics__mode": "known"},
    "eflow": {"objective": "eflow", "dynamics__mode": "known"},
    "published": {"objective": "db", "form": "published", "dynamics__mode": "known"},
    "blind": {"form": "blind", "dynamics__mode": "known"},
    "transformer": {"net__encoder": "transformer", "dynamics__mode": "known", "net__heads": 2},
    **{method: {"method": method} for method in ("a2c", "ppo", "sac")},
}


@pytest.mark.usefixtures("no_kernels")
@pytest.mark.parametrize("stop", [False, True])
@pytest.mark.parametrize("name", SETTINGS)
def test_sequences_without_noise_build_no_kernel(name: str, stop: bool) -> None:
    task = sgfn.Sequences("AC", 3, noise=0.0, min_length=1 if stop else None)
    ask_everything(sgfn.fit(task, reward=count_a, **QUICK | SETTINGS[name]))


@pytest.mark.usefixtures("no_kernels")
@pytest.mark.parametrize("noise", [UniformSlip(alpha=0.0), HiddenRate(mean=0.0, concentration=3.0)])
def test_noises_of_rate_zero_build_no_kernel(noise: Noise) -> None:
    ask_everything(sgfn.fit(sgfn.Sequences("AC", 3, noise=noise), reward=count_a, **QUICK))


@pytest.mark.usefixtures("no_kernels")
@pytest.mark.parametrize("name", ["known", "published", "learned"])
def test_a_grid_without_noise_builds_no_kernel(name: str) -> None:
    ask_everything(sgfn.fit("grid", noise=0.0, grid__side=4, **QUICK | SETTINGS[name]))


@pytest.mark.usefixtures("no_kernels")
def test_a_forecast_without_noise_builds_no_kernel() -> None:
    """Training, marginal laws and drawn paths; with noise they do."""
    values = np.sin(np.arange(60) / 3)

    def forecast(**changes: Any) -> None:
        config = PRESETS["forecast"].with_(**FORECAST | changes)
        learner = make_learner(series_task(panel(series(values)), config), torch.device("cpu"))
        assert isinstance(learner, ForecastLearner)
        learner.step()
        inputs = learner.data.inputs_at_ends()
        learner.as_measured(learner.member_laws(inputs).mean(0), inputs)
        learner.draw_paths(inputs, samples=3, seed=0)
        learner.draw(4, seed=0)

    forecast()
    with pytest.raises(BuiltError):
        forecast(series__noise="known", series__deviation=0.3)


@pytest.mark.usefixtures("no_kernels")
@pytest.mark.parametrize("noise", [0.2, ByPosition(alphas=(0.0, 0.1, 0.2))])
def test_with_noise_one_is_built(noise: Noise | float) -> None:
    """So that the tests above can fail."""
    with pytest.raises(BuiltError):
        sgfn.fit(sgfn.Sequences("AC", 3, noise=noise), reward=count_a, **QUICK | SETTINGS["known"])


@pytest.mark.usefixtures("no_kernels")
def test_probabilities_of_strings_need_no_matrix_per_state_under_noise() -> None:
    """Slips answer by themselves: the law, single probabilities and expected flows of a large alphabet."""
    env = sgfn.Sequences("ACDEFGHIKLMNPQRSTVWYBJOUXZabcdefghijk", 6, noise=0.2)
    model = sgfn.fit(env, reward=count_a, **QUICK | SETTINGS["eflow"])
    found = model.log_prob(["ACDEFG", "AAAAAA"])
    assert bool(torch.isfinite(torch.as_tensor(found)).all())
