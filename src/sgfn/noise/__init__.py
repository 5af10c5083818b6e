"""Noise: the law that links an intended action to the realised outcome."""

from typing import TYPE_CHECKING

from sgfn.config.lazy import lazy_attributes
from sgfn.noise.registry import NOISES, NoiseEntry, noise_words

if TYPE_CHECKING:
    from sgfn.noise.files import read_confusion, read_rates
    from sgfn.noise.indel import Indel
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
    from sgfn.noise.making import make_noise

__all__ = [
    "NOISES",
    "ByPosition",
    "ConfusionMatrix",
    "HiddenRate",
    "Indel",
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

_NEED_TORCH = {
    "sgfn.noise.files": ("read_confusion", "read_rates"),
    "sgfn.noise.kinds": (
        *("ByPosition", "ConfusionMatrix", "HiddenRate", "Mixtures", "Noise", "Slip", "UniformSlip"),
        *("bayes_filter", "beta_quadrature", "slip_kernel", "slip_project"),
    ),
    "sgfn.noise.indel": ("Indel",),
    "sgfn.noise.making": ("make_noise",),
}
__getattr__ = lazy_attributes(__name__, {name: home for home, names in _NEED_TORCH.items() for name in names})
