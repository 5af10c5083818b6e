"""The balance equations of the registry by name, for tests that go through all of them."""

from collections.abc import Callable
from typing import Any

from sgfn.objectives import OBJECTIVES

BALANCE: dict[str, Callable[..., Any]] = {name: entry.loss for name, entry in OBJECTIVES.items() if entry.balance}
