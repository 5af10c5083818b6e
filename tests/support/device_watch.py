"""Operations that would wait for a device, refused; and graphs of operations that are recorded once and replayed."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any
from unittest import mock

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from sgfn.learning.learner import Learner

aten = torch.ops.aten
unseen = torch.autograd._unsafe_preserve_version_counter  # pyright: ignore[reportPrivateImportUsage]
ASKS = {
    aten._local_scalar_dense.default,
    aten.is_nonzero.default,
    aten.equal.default,
    aten.nonzero.default,
    aten.masked_select.default,
    aten.bincount.default,
    aten.repeat_interleave.Tensor,
    aten.unique_dim.default,
    aten._unique2.default,
    aten.lift_fresh.default,
}
"""What needs a value, or a size that depends on values, or (`torch.tensor`) copies from the host."""


class AsOnDevice(TorchDispatchMode):
    """A mode in which steps take the CPU for a device on which a look at values would wait."""

    def __enter__(self) -> Any:
        """Forbid steps to look."""
        self.places = ExitStack()
        for place in ("sgfn.envs.base", "sgfn.learning.kernels.distinct_states"):
            self.places.enter_context(mock.patch(f"{place}.free_to_look", return_value=False))
        return super().__enter__()

    def __exit__(self, *raised: Any) -> None:
        """Allow it again."""
        self.places.close()
        super().__exit__(*raised)


class Watch(AsOnDevice):
    """Raises when an operation would wait for the device; indexing by a mask is one."""

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        masked = func in (aten.index.Tensor, aten.index_put_.default) and any(
            index is not None and index.dtype == torch.bool for index in args[1]
        )
        if masked or func in ASKS:
            raise AssertionError(f"{func} waits for the device")
        return func(*args, **(kwargs or {}))


class RecordedGraph(Watch):
    """Stands in for a CUDA graph on a CPU: records operations, and repeats them on the same memory, not the Python code
    around them."""

    def __init__(self) -> None:
        super().__init__()
        self.calls: list[tuple[Any, Any, Any, Any]] = []

    def register_generator_state(self, generator: torch.Generator) -> None:
        """Nothing to do: a generator on the CPU goes on by itself."""

    def pool(self) -> None:
        """Memory is never reused here."""

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        found = super().__torch_dispatch__(func, types, args, kwargs)
        self.calls.append((func, args, kwargs or {}, found))
        return found

    @torch.no_grad()
    def replay(self) -> None:
        """Repeat what was recorded: results go to where the first ones are, unless they share memory with arguments.

        Autograd sees nothing of it, as with a graph on a GPU.
        """
        for func, args, kwargs, known in self.calls:
            given = [value for value in tree_leaves((args, kwargs)) if isinstance(value, Tensor)]
            made = [value for value in tree_leaves(known) if isinstance(value, Tensor)]
            with unseen((*given, *made)):
                found = func(*args, **kwargs)
                for old, new in zip(made, [v for v in tree_leaves(found) if isinstance(v, Tensor)], strict=True):
                    if _home(old) not in map(_home, given):
                        old.copy_(new)


def _home(value: Tensor) -> int:
    return value.untyped_storage().data_ptr()


@contextmanager
def recording(learner: Learner, graph: RecordedGraph) -> Iterator[None]:
    """Stands in for `torch.cuda.graph`: what is captured is not done, so that the learner is left as it was."""
    before = {name: value.clone() for name, value in learner.state().items()}
    with graph:
        yield
    with unseen(tuple(learner.state().values())):
        learner.load(before)
