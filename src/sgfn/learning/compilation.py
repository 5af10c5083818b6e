"""Compiling functions of a step with torch.compile."""

import itertools
import os
import shlex
import shutil
import sys
import types
from collections.abc import Callable
from importlib.util import find_spec
from typing import Any

import torch
from torch import Tensor
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

    options: dict[str, Any] = {"guard_filter_fn": lambda guards: [False] * len(guards)}
    options |= options_for(device) | more
    return torch.compile(_with_own_code(function), fullgraph=True, dynamic=False, options=options)


def options_for(device: torch.device) -> dict[str, Any]:
    """Options of the compiler for a device."""
    return LEAN | OPTIONS[device.type] | ({"cpp.cxx": (None, compiler_itself())} if device.type == "cpu" else {})


def _with_own_code(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function behind code that no other has."""

    def call(*args: Any) -> Any:
        return function(*args)

    code = call.__code__.replace(co_name=f"compiled_{next(NUMBERS)}")
    return types.FunctionType(code, call.__globals__, code.co_name, None, call.__closure__)


class CompiledSteps:
    """A function of tensors to a tuple of tensors, without gradients, for many calls: compiled, then called directly.

    What torch.compile does before and behind compiled code takes a tenth of a millisecond a call, as long as a letter
    of a small network. At the first call it is seen which arguments the compiled code reads, and which of its results
    are returned; later calls leave the rest out. Where that cannot be told, calls are those of `compiled`.
    """

    def __init__(self, function: Callable[..., Any], device: torch.device, **more: Any) -> None:
        """`more` are further options of the compiler."""
        self.function, self.device, self.options = function, device, options_for(device) | more
        self.inner: Callable[..., Any] | None = None
        self.seen: tuple[tuple[Any, ...], tuple[Any, ...]] = (), ()
        self.whole = torch.compile(_with_own_code(function), backend=self._backend, fullgraph=True, dynamic=False)
        self.direct: Callable[..., tuple[Tensor, ...]] | None = None

    def __call__(self, *args: Tensor | None) -> tuple[Tensor, ...]:
        """What the function returns."""
        if self.direct is not None:
            return self.direct(*args)
        found = self.whole(*args)
        self.direct = self._shortened(args, found) or compiled(self.function, self.device, **self.options)
        return found

    def _backend(self, graph: Any, inputs: list[Any]) -> Callable[..., Any]:
        from torch._inductor.compile_fx import compile_fx  # slow to import

        inner = compile_fx(graph, inputs, config_patches=self.options)
        assert callable(inner)

        def watched(*given: Any) -> Any:
            found = inner(*given)
            self.inner, self.seen = inner, (given, tuple(found))
            return found

        return watched

    def _shortened(self, args: tuple[Any, ...], found: tuple[Any, ...]) -> Callable[..., tuple[Tensor, ...]] | None:
        """The compiled code with its constants; None where arguments or results cannot be told apart."""
        (given, results), inner = self.seen, self.inner
        self.seen = (), ()
        tensors = {id(arg): i for i, arg in enumerate(args) if arg is not None}
        homes = {id(result): i for i, result in enumerate(results)}
        told = all(isinstance(value, Tensor) for value in given) and all(id(value) in homes for value in found)
        if inner is None or not told or len(tensors) < sum(arg is not None for arg in args):
            return None
        constants, reads = list(given), [(i, tensors[id(v)]) for i, v in enumerate(given) if id(v) in tensors]
        picks = [homes[id(value)] for value in found]
        for i, _ in reads:
            constants[i] = None

        def direct(*args: Tensor | None) -> tuple[Tensor, ...]:
            now = constants.copy()
            for i, j in reads:
                now[i] = args[j]
            made = inner(*now)
            return tuple(made[i] for i in picks)

        return direct


def compiler_missing(device: torch.device) -> str:
    """What must be installed before anything can be compiled for the device; empty where nothing is missing."""
    if TorchVersion(torch.__version__) < OLDEST:
        return f"torch {OLDEST}"
    if device.type == "cuda":
        return "" if find_spec("triton") is not None else "Triton"
    missing = [word for word in (compiler_command()[0], compiler_itself()) if not shutil.which(word)]
    return f"a C++ compiler ({missing[0]})" if missing else ""


def compiler_command() -> list[str]:
    """Words of the C++ compiler's command: `CXX` as a shell reads it (ccache g++), else g++ (macOS: clang++)."""
    given = os.environ.get("CXX", "")
    try:
        return shlex.split(given) or ["clang++" if sys.platform == "darwin" else "g++"]
    except ValueError as error:
        raise ValueError(f"the environment variable CXX is {given!r}: {error}; close each quote") from None


def compiler_itself() -> str:
    """The last word of that command that names a program: torch takes one word, neither a wrapper nor flags."""
    words = compiler_command()
    return next((word for word in reversed(words) if not word.startswith("-") and shutil.which(word)), words[0])
