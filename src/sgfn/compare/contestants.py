"""Methods that `compare` knows by name: each a few changes of a configuration."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from sgfn.config import TrainConfig
from sgfn.config.checks import one_of
from sgfn.learning.methods import lean


def _flow(objective: str, form: str = "marginal") -> dict[str, Any]:
    return {"method": "gfn", "objective": objective, "form": form}


def _peer(method: str) -> dict[str, Any]:
    return _flow("tb") | {"method": method}


CONTESTANTS: dict[str, dict[str, Any]] = {
    "tb": _flow("tb"),
    "db": _flow("db"),
    "subtb": _flow("subtb"),
    "kl": _flow("kl"),
    "eflow": _flow("eflow"),
    "kl-entropy": _flow("kl-entropy"),
    "published-tb": _flow("tb", "published"),
    "published-db": _flow("db", "published"),
    "published-subtb": _flow("subtb", "published"),
    "blind-tb": _flow("tb", "blind"),
    "blind-db": _flow("db", "blind"),
    "blind-subtb": _flow("subtb", "blind"),
    "random": _peer("random"),
    "mh": _peer("mh"),
    "mars": _peer("mars"),
    "a2c": _peer("a2c"),
    "ppo": _peer("ppo"),
    "sac": _peer("sac"),
}
"""Name -> changes of the TrainConfig. Each sets the same fields, so that nothing of another method is left over."""

DEFAULT = ("kl", "tb", "published-db", "blind-db", "random", "mh", "ppo", "sac")
"""Ours, the published objective, one that ignores the noise, and peers."""

CHOSEN = ("method", "objective", "form")
"""What the name of a method decides; no flag of its own has a say."""


def contestant(config: TrainConfig, name: str) -> TrainConfig:
    """The configuration of a method by name; whatever else was configured is kept, if the method reads it.

    >>> contestant(TrainConfig(steps=7), "published-db").with_(form="marginal") == TrainConfig(steps=7, objective="db")
    True
    """
    one_of("method", name, CONTESTANTS)
    with refusing(name):
        return lean(config, CONTESTANTS[name]["method"]).with_(**CONTESTANTS[name])


@contextmanager
def refusing(name: str) -> Iterator[None]:
    """What a method refuses, with its name and the other way out."""
    try:
        yield
    except ValueError as error:
        who = f"method {name!r}"
        said = str(error) if str(error).startswith(who) else f"{who}: {error}"
        raise ValueError(f"{said}; or leave it out of --methods") from None
