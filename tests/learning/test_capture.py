"""A step never asks the device for a value: that would stall it, and a CUDA graph could not hold it."""

from typing import Any

import pytest
import torch
from device_watch import Watch

from sgfn.config import TrainConfig
from sgfn.landscapes.tasks import make_task
from sgfn.learning.methods import METHODS, make_learner, without_unread

SMALL = {"batch": 4, "net__hidden": 8, "dynamics__hidden": 8}
HIDDEN = {"noise__kind": "hidden"}
INDEL = {"noise__kind": "indel", "noise__substitution": 0.05, "noise__deletion": 0.03, "noise__insertion": 0.02}
TRANSFORMER = {"net__encoder": "transformer", "net__heads": 2}
CASES: dict[str, tuple[str, dict[str, Any]]] = {
    "marginal tb": ("tfbind8", {}),
    "published db": ("tfbind8", {"objective": "db", "form": "published"}),
    "blind subtb": ("tfbind8", {"objective": "subtb", "form": "blind"}),
    "kl": ("tfbind8", {"objective": "kl"}),
    "eflow": ("tfbind8", {"objective": "eflow"}),
    "kl-entropy": ("tfbind8", {"objective": "kl-entropy", "exploration": "entropy", "entropy__weight_kl": 0.1}),
    "replay": ("tfbind8", {"replay__updates": 1, "dynamics__mode": "replay", "replay__capacity": 64}),
    "hidden rate": ("tfbind8", HIDDEN),
    "transformer": ("tfbind8", TRANSFORMER),
    "thought": ("tfbind8", {**HIDDEN, "thought__layers": 1}),
    "thought and transformer": ("tfbind8", {**HIDDEN, **TRANSFORMER, "thought__layers": 1}),
    "grid": ("grid", {}),
    "words": ("words", {}),
    "words, transformer": ("words", TRANSFORMER),
    "motif": ("motif", {}),
    "motif, best": ("motif", {"motif__score": "best"}),
    "bits": ("bits", {"bits__length": 16, "bits__modes": 4}),
    "ehrlich": ("ehrlich", {}),
    "indels": ("motif", {"motif__length": 16, **INDEL}),
    "indels, flank and constraints": (
        "motif",
        {"motif__length": 16, **INDEL, "noise__flank": "ACGTACGT", "constraints__max_run": 3},
    ),
    "constraints": ("motif", {**TRANSFORMER, "constraints__gc": "0.4:0.6", "constraints__forbid": "GAATTC"}),
    **{method: ("tfbind8", {"method": method, "replay__capacity": 64}) for method in METHODS if method != "forecast"},
    "mh on a grid": ("grid", {"method": "mh"}),
    "mh under a hidden rate": ("tfbind8", {"method": "mh", **HIDDEN}),
}


@pytest.mark.parametrize("case", CASES)
def test_a_step_never_waits_for_the_device(case: str) -> None:
    name, changes = CASES[case]
    config = TrainConfig().with_(**SMALL, **changes)
    learner = make_learner(make_task(name, without_unread(config, name)), torch.device("cpu"))
    learner.step()  # the first one sets the optimisers up
    with Watch():
        learner.step()


WAITERS: list[Any] = [
    lambda x: x.sum().item(),
    lambda x: x[x > 0],
    lambda x: bool(x.sum() > 0),
    lambda x: x + torch.tensor(1.0),
    torch.nonzero,
    torch.unique,
]


@pytest.mark.parametrize("ask", WAITERS)
def test_the_watch_sees_who_waits(ask: Any) -> None:
    with Watch(), pytest.raises(AssertionError, match="waits for the device"):
        ask(torch.ones(3))
    with Watch():
        torch.ones(3).where(torch.ones(3) > 0, 0.0)
