"""Methods that `compare` knows by name, from the registries: an objective in a form, or a peer; `module:name` too."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from sgfn.compare.names import flow_changes, known, peer_changes
from sgfn.config import TrainConfig
from sgfn.config.checks import one_of
from sgfn.config.importing import find
from sgfn.config.registry import Style
from sgfn.learning.forms import FORMS
from sgfn.learning.learner import Learner
from sgfn.learning.methods import METHODS, MethodEntry, check_objective, without_unread
from sgfn.objectives import OBJECTIVES

BUILT_ON = "#6b520a"
"""Colour of an objective on another one than its usual one."""
ON_USUAL, ON_OTHER = (0, (5, 2, 1.5, 2, 1.5, 2)), (0, (9, 2, 1.5, 2))
"""Lines of an objective on its usual one and on another, where the colour is that of a form."""
CHOSEN = ("method", "objective", "form")
"""What the name of a method decides; no flag of its own has a say."""
CONTESTANTS = known()
"""Those that are ours."""


def changes_of(name: str) -> dict[str, str]:
    """What a name stands for; `module:name` is a learner or an objective of yours, `published-module:name` too."""
    if name in CONTESTANTS or ":" not in name:
        found = known()
        one_of("method", name, found)
        return found[name]
    form, dash, rest = name.partition("-")
    if dash and form in FORMS:
        return flow_changes(rest, form)
    return peer_changes(name) if _is_learner(find(name, "method")) else flow_changes(name)


def _is_learner(found: Any) -> bool:
    return isinstance(found, MethodEntry) or (isinstance(found, type) and issubclass(found, Learner))


def contestant(config: TrainConfig, name: str) -> TrainConfig:
    """The configuration of a method by name; whatever else was configured is kept, if the method reads it.

    >>> contestant(TrainConfig(steps=7), "published-db").with_(form="marginal") == TrainConfig(steps=7, objective="db")
    True
    """
    changes = changes_of(name)
    with refusing(name):
        own = without_unread(config.with_(**changes))
        if METHODS[own.method].objective:
            check_objective(own)
        return own


def style_of(name: str) -> Style:
    """How a method is drawn: colour by family, line by member."""
    changes = changes_of(name)
    if changes["method"] != "gfn":
        return METHODS[changes["method"]].drawn
    entry = OBJECTIVES[changes["objective"]]
    own, form = entry.drawn, FORMS[changes["form"]].style
    base = None if entry.base is None else changes.get(entry.base[1].replace(".", "__"))
    if form is not None:
        usual = own.line if entry.base is None else ON_USUAL
        return Style(colour=form.colour, line=usual if base is None else ON_OTHER)
    return own if base is None else Style(colour=BUILT_ON, line=OBJECTIVES[base].drawn.line)


def label_of(name: str) -> str:
    """What a method is called in figures and tables."""
    changes = changes_of(name)
    entry = METHODS[changes["method"]] if changes["method"] != "gfn" else OBJECTIVES[changes["objective"]]
    return entry.label or name


def refuse_all(refused: Mapping[str, str]) -> None:
    """Raise where methods refuse a task, in one line: each reason once, with its methods, and all that have to go.

    >>> refuse_all({name: f"method {name!r} reads states: use mlp" for name in ("a2c", "ppo")})
    Traceback (most recent call last):
    ValueError: method 'a2c' reads states: use mlp (and so for ppo); or leave a2c, ppo out of --methods
    """
    if not refused:
        return
    reasons: dict[str, list[str]] = {}
    for name, said in refused.items():
        reasons.setdefault(said.replace(repr(name), "{}"), []).append(name)
    told = []
    for first, *others in reasons.values():
        who, why = f"method {first!r}", refused[first]
        said = why if why.startswith(who) else f"{who}: {why}"
        told.append(f"{said} (and so for {', '.join(others)})" if others else said)
    names = "it" if len(refused) == 1 else ", ".join(refused)
    raise ValueError(f"{'; '.join(told)}; or leave {names} out of --methods")


@contextmanager
def refusing(name: str) -> Iterator[None]:
    """What a method refuses, with its name and the other way out."""
    try:
        yield
    except ValueError as error:
        said = str(error)
    else:
        return
    refuse_all({name: said})
