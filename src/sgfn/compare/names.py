"""Names that `compare` knows, made from the registries: an objective in a form, or a peer."""

from sgfn.learning.forms import FORMS
from sgfn.learning.registry import METHODS
from sgfn.objectives.registry import OBJECTIVES

DEFAULT = ("kl", "tb", "published-db", "blind-db", "random", "mh", "ppo", "sac")
"""What is compared by default: ours, the published objective, one that ignores the noise, and peers."""
PLAIN = "marginal"
"""The form that a name without a prefix stands for."""


def known() -> dict[str, dict[str, str]]:
    """Name -> changes of the TrainConfig. Each sets the same fields, so that nothing of another method is left over."""
    plain = {name: flow_changes(name) for name, entry in OBJECTIVES.items() if PLAIN in entry.forms}
    formed = {
        f"{form}-{name}": flow_changes(name, form)
        for form in FORMS
        for name, entry in OBJECTIVES.items()
        if form != PLAIN and form in entry.forms
    }
    return plain | formed | {name: peer_changes(name) for name, entry in METHODS.items() if entry.compared}


def flow_changes(objective: str, form: str = PLAIN) -> dict[str, str]:
    """The fields that make a flow network with an objective in a form."""
    return {"method": "gfn", "objective": objective, "form": form}


def peer_changes(method: str) -> dict[str, str]:
    """The fields that make another method."""
    return flow_changes("tb") | {"method": method}
