"""Normal scores of sample paths: drawn by the network, or by a chain of steps, and laid evenly over the levels."""

from collections.abc import Sequence

import numpy as np
import torch
from jaxtyping import Float64
from scipy.special import ndtri

from sgfn.series.bank import Cut
from sgfn.series.learner import ForecastLearner
from sgfn.series.windows import Windows

AT_ONCE = 500
"""Windows whose paths are drawn at once, which bounds memory."""


def network_scores(
    learner: ForecastLearner, windows: Windows, cuts: Sequence[Cut], samples: int, seed: int
) -> Float64[np.ndarray, "W N H"]:
    """Normal scores of paths that the network draws, each under the mean law of the steps that it visited."""
    parts = [
        _network_scores(learner, windows, cuts[start : start + AT_ONCE], samples, seed + start)
        for start in range(0, len(cuts), AT_ONCE)
    ]
    return np.concatenate(parts)


def _network_scores(
    learner: ForecastLearner, windows: Windows, cuts: Sequence[Cut], samples: int, seed: int
) -> Float64[np.ndarray, "W N H"]:
    """The same of a block of windows, with draws of its own."""
    drawn = learner.draw_paths(windows.inputs(torch.tensor(cuts)), samples, seed)
    mass = drawn.law.cpu() / drawn.law.cpu().sum(-1, keepdim=True)
    index = drawn.realised.cpu().transpose(1, 2)  # W H N
    share = torch.rand(index.shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    level = (mass.cumsum(-1) - mass).gather(-1, index) + mass.gather(-1, index) * share
    return np.moveaxis(ndtri(level.clamp(1e-9, 1 - 1e-9).numpy()), -1, 1)


def chained(noise: Float64[np.ndarray, "W N H"], tie: float) -> Float64[np.ndarray, "W N H"]:
    r"""Normal scores of paths in which neighbouring steps are correlated, $z_t = r z_{t-1} + \sqrt{1-r^2}\,e_t$."""
    scores = noise.copy()
    for step in range(1, noise.shape[-1]):
        scores[..., step] = tie * scores[..., step - 1] + np.sqrt(1 - tie**2) * scores[..., step]
    return scores


def evenly(scores: Float64[np.ndarray, "W N H"], rng: np.random.Generator) -> Float64[np.ndarray, "W N H"]:
    """Scores moved so that in each window and step one lies in each of N equal shares of the mass; order is kept."""
    rank = scores.argsort(1).argsort(1)
    level = (rank + rng.random(scores.shape)) / scores.shape[1]
    return ndtri(np.clip(level, 1e-9, 1 - 1e-9))
