"""Which of several processes this is that torchrun has started together, known without importing torch."""

import os
from datetime import timedelta

NAMES = ("RANK", "WORLD_SIZE", "LOCAL_RANK")
PATIENCE = timedelta(seconds=5)
"""How long a process that fails looks for the others."""


def launch() -> tuple[int, int] | None:
    """Rank and number of processes; None where torchrun has not started this one, or has started it alone."""
    there = [os.environ.get(name, "") for name in NAMES]
    if not (os.environ.get("MASTER_ADDR") and all(value.isdecimal() for value in there)):
        return None
    rank, count = int(there[0]), int(there[1])
    return (rank, count) if count > 1 else None


def speaks() -> bool:
    """Whether this process tells of its progress and results: one of several does."""
    found = launch()
    return found is None or found[0] == 0


def first_to_fail() -> bool:
    """Whether no other process of those started together has told of an error before: one line is enough."""
    found = launch()
    if found is None:
        return True
    from torch.distributed import TCPStore  # pyright: ignore[reportPrivateImportUsage]

    try:
        address, port = os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"])
        store = TCPStore(address, port, is_master=False, timeout=PATIENCE, wait_for_workers=False)
        return store.add("sgfn/failed", 1) == 1
    except (RuntimeError, ValueError, KeyError, OSError):  # nobody is there any more
        return found[0] == 0
