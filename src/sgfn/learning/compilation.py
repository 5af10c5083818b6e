"""Compiling functions of a step with torch.compile."""

import itertools
import os
import shutil
import sys
import types
from collections.abc import Callable
from importlib.util import find_spec
from typing import Any

import torch
from torch.torch_version import TorchVersion


class NotCompilableError(ValueError):
    """A step could not be compiled; the message says why, in one line."""


NUMBERS = itertools.count()
OLDEST = "2.8"
"""Before that, torch.compile cannot be told to check nothing again."""
LEAN = {"size_asserts": False, "alignment_asserts": False, "max_pointwise_cat_inputs": 1}
"""Shapes never change, so that nothing need be asserted; and what is joined is copied, not looked up entry by entry."""
OPTIONS = {"cpu": {"cpp_wrapper": True}, "cuda": {"combo_kernels": True}}
"""On a CPU the calls between kernels are compiled too: interpreted, they take a tenth of a small step. On a GPU kernels
that do not wait for each other are joined: most take a microsecond, and launching one takes as long."""
KEPT = {"realize_reads_threshold": 2, "realize_opcount_threshold": 12}
"""For small batches: what several operations read is computed once, such as the gradient of a GELU; in large ones
reading it again from memory takes longer."""
MOST_KEPT = 65536
"""Most states of a batch for which that is done: a guess from one cell that was slower with it (Ehrlich, 4,096)."""


def compiled(function: Callable[..., Any], device: torch.device, **more: Any) -> Callable[..., Any]:
    """A function compiled for a device, for good at its first call: later ones must bring tensors of the same shapes.

    What the compiler assumed is not checked again, which would cost as much as the small operations that are saved.
    That is sound as long as each function has a cache of its own, and caches go by code: hence a copy of it. `more` are
    further options of the compiler.
    """

    def call(*args: Any) -> Any:
        return function(*args)

    code = call.__code__.replace(co_name=f"compiled_{next(NUMBERS)}")
    own = types.FunctionType(code, call.__globals__, code.co_name, None, call.__closure__)
    options: dict[str, Any] = {"guard_filter_fn": lambda guards: [False] * len(guards)}
    return torch.compile(own, fullgraph=True, dynamic=False, options=options | LEAN | OPTIONS[device.type] | more)


def compiler_missing(device: torch.device) -> str:
    """What must be installed before anything can be compiled for the device; empty where nothing is missing."""
    if TorchVersion(torch.__version__) < OLDEST:
        return f"torch {OLDEST}"
    if device.type == "cuda":
        return "" if find_spec("triton") is not None else "Triton"
    wanted = os.environ.get("CXX", "clang++" if sys.platform == "darwin" else "g++")  # as torch looks for it
    return "" if shutil.which(wanted) else f"a C++ compiler ({wanted})"
