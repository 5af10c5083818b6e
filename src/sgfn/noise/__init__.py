"""Noise: the law that links an intended action to the realised outcome."""

from sgfn.noise.kinds import (
    ByPosition,
    ConfusionMatrix,
    HiddenRate,
    Noise,
    Slip,
    UniformSlip,
    bayes_filter,
    beta_quadrature,
    read_confusion,
    read_rates,
    slip_kernel,
    slip_project,
    slip_row,
)
from sgfn.noise.registry import NOISES, NoiseEntry, make_noise, noise_words

__all__ = [
    "NOISES",
    "ByPosition",
    "ConfusionMatrix",
    "HiddenRate",
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
    "slip_row",
]
