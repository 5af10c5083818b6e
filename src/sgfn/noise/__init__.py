"""Noise: the law that links an intended action to the realised outcome."""

from sgfn.noise.kinds import (
    MAKERS,
    ByPosition,
    ConfusionMatrix,
    HiddenRate,
    Mixtures,
    Noise,
    Slip,
    UniformSlip,
    bayes_filter,
    beta_quadrature,
    make_noise,
    read_confusion,
    read_rates,
    slip_kernel,
    slip_project,
)

__all__ = [
    "MAKERS",
    "ByPosition",
    "ConfusionMatrix",
    "HiddenRate",
    "Mixtures",
    "Noise",
    "Slip",
    "UniformSlip",
    "bayes_filter",
    "beta_quadrature",
    "make_noise",
    "read_confusion",
    "read_rates",
    "slip_kernel",
    "slip_project",
]
