"""Kinds of proxy by name; `module:name` is a function `(sequences, scores, seed) -> predict` of somebody else's."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

from sgfn.config.checks import one_of
from sgfn.config.registry import Entry, Registry, refuse_arguments
from sgfn.landscapes.proxies import botorch_gp, ensemble, gp, pool, ridge, stacked
from sgfn.landscapes.proxies.base import FittedModel, ProxyModel, TrainingSet
from sgfn.landscapes.proxies.own import fit_own, restore_own


def always(data: TrainingSet) -> bool:
    """For every training set."""
    return True


@dataclass(frozen=True, kw_only=True)
class ProxyEntry(Entry):
    """A kind of proxy."""

    fit: Callable[[TrainingSet], FittedModel]
    restore: Callable[[Any, str], ProxyModel]
    """Makes the model again from its state and the alphabet."""
    suits: Callable[[TrainingSet], bool] = always
    """Whether `auto` tries it."""


def wrap(name: str, found: Any) -> ProxyEntry:
    """The entry of a function that is not ours."""
    wanted = "a function (sequences, scores, seed) -> predict"
    fit = refuse_arguments("proxy", name, found, wanted, "sequences", "scores", "seed")
    return ProxyEntry(name=name, fit=partial(fit_own, name, fit), restore=partial(restore_own, name, fit))


PROXIES: Registry[ProxyEntry] = Registry(
    "proxy",
    wrap,
    ProxyEntry(
        name="ensemble",
        about="networks that read letters by position",
        fit=ensemble.fit_letters,
        restore=ensemble.Ensemble.restore,
        suits=lambda data: not data.variable or data.tokens.shape[1] <= 12,  # else a position means little
    ),
    ProxyEntry(
        name="convolution",
        about="networks that read windows of letters, wherever they stand",
        fit=ensemble.fit_windows,
        restore=ensemble.Ensemble.restore,
        suits=lambda data: data.tokens.shape[1] >= 6,
    ),
    ProxyEntry(
        name="ridge",
        about="letters by position and pairs of letters, linear",
        fit=ridge.fit,
        restore=ridge.Ridge.restore,
    ),
    ProxyEntry(
        name="gp",
        about="Gaussian process over similar letters",
        fit=gp.fit,
        restore=gp.GaussianProcess.restore,
        suits=lambda data: data.tokens.shape[0] <= 2_000,
    ),
    ProxyEntry(
        name="botorch",
        about="BoTorch's Gaussian process over letters (extra sgfn[gp])",
        fit=botorch_gp.fit,
        restore=botorch_gp.BotorchProcess.restore,
        suits=lambda data: False,
    ),
    ProxyEntry(
        name="stacked",
        about="the ensemble and the ridge, weighed by their errors out of fold",
        fit=stacked.fit,
        restore=stacked.Stacked.restore,
        suits=lambda data: False,  # `auto` has both, and their pool
    ),
    ProxyEntry(
        name="pool",
        about="the mean of the kinds that predict about as well as the best",
        fit=pool.fit,
        restore=pool.Pool.restore,
        suits=lambda data: False,  # `auto` makes it of the kinds that it has fitted
    ),
)
AUTO, DESIGN = "auto", "design"
"""Names of choices among kinds: the least error out of fold; and `ensemble`, or as `auto` where it does not suit.
Plates of ensembles turn out better than those of whatever predicts best: members differ where nobody has looked."""


def check_kind(kind: str) -> None:
    """Raise, with the nearest name, unless it is a kind of proxy or a choice among them."""
    if ":" not in kind:
        one_of("proxy", kind, (DESIGN, AUTO, *PROXIES))


def kinds_for(kind: str, data: TrainingSet) -> list[str]:
    """Kinds that are fitted to a training set: the one named, or those that a choice tries."""
    if kind == DESIGN and PROXIES["ensemble"].suits(data):
        return ["ensemble"]
    return [entry.name for _, entry in PROXIES.items() if entry.suits(data)] if kind in (AUTO, DESIGN) else [kind]
