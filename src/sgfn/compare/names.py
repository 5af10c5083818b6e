"""Names that `compare` knows, made from the registries: an objective in a form, or a peer."""

from sgfn.learning.forms import FORMS
from sgfn.learning.registry import METHODS
from sgfn.objectives.registry import OBJECTIVES

DEFAULT = ("kl", "tb", "published-db", "blind-db", "random", "mh", "ppo", "sac")
"""What is compared by default: ours, the published objective, one that ignores the noise, and peers."""
PLAIN = "marginal"
"""The form that a name without a prefix stands for."""


def known() -> dict[str, dict[str, str]]:
    """Name -> changes of the TrainConfig. Each sets the same fields, so that nothing of another method is left over.

    NAME-on-BASE also sets what the objective is built on, which is as configured under the plain name.
    """
    plain = {name: flow_changes(name) for name, entry in OBJECTIVES.items() if PLAIN in entry.forms}
    formed = {
        f"{form}-{name}": flow_changes(name, form)
        for form in FORMS
        for name, entry in OBJECTIVES.items()
        if form != PLAIN and form in entry.forms
    }
    built = {
        f"{name}-on-{base}": changes | {entry.base[1].replace(".", "__"): base}
        for name, changes in (plain | formed).items()
        if (entry := OBJECTIVES[changes["objective"]]).base is not None
        for base in entry.compared
        if changes["form"] == PLAIN or OBJECTIVES[base].balance  # what has a form of its own has no other
    }
    return plain | formed | built | {name: peer_changes(name) for name, entry in METHODS.items() if entry.compared}


def flow_changes(objective: str, form: str = PLAIN) -> dict[str, str]:
    """The fields that make a flow network with an objective in a form."""
    return {"method": "gfn", "objective": objective, "form": form}


def peer_changes(method: str) -> dict[str, str]:
    """The fields that make another method."""
    return flow_changes("tb") | {"method": method}
