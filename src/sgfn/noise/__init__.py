"""Noise: the law that links an intended action to the realised outcome."""

from sgfn.noise.files import read_confusion, read_rates
from sgfn.noise.kinds import (
    ByPosition,
    ConfusionMatrix,
    HiddenRate,
    Mixtures,
    Noise,
    Slip,
    UniformSlip,
    bayes_filter,
    beta_quadrature,
    slip_kernel,
    slip_project,
)
from sgfn.noise.registry import NOISES, NoiseEntry, make_noise, noise_words

__all__ = [
    "NOISES",
    "ByPosition",
    "ConfusionMatrix",
    "HiddenRate",
    "Mixtures",
    "Noise",
    "NoiseEntry",
    "Slip",
    "UniformSlip",
    "bayes_filter",
    "beta_quadrature",
    "make_noise",
    "noise_words",
    "read_confusion",
    "read_rates",
    "slip_kernel",
    "slip_project",
]
