"""The balance equations of the registry by name, for tests that go through all of them.

Those that look at one trajectory by itself: `vargrad` compares those of a batch, and has tests of its own.
"""

from collections.abc import Callable
from typing import Any

from sgfn.objectives import OBJECTIVES

BALANCE: dict[str, Callable[..., Any]] = {
    name: entry.loss for name, entry in OBJECTIVES.items() if entry.balance and entry.least_batch == 1
}
