"""Checkpoints: named tensors in a safetensors file with a checksum; what is damaged or does not fit is named."""

import hashlib
from collections.abc import Mapping
from pathlib import Path

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import load_file, save
from torch import Tensor

from sgfn.learning.learner import Learner

CHECKSUM = "sha256"
"""Where the file's header has the checksum; checkpoints of 0.2.0 and before have none."""
DONE, GENERATOR, METERS = "self.done", "self.generator", "self.meters"
AGAIN = "the run must be trained again (--overwrite)"
State = Mapping[str, Tensor]


def save_file(state: dict[str, Tensor], path: Path) -> None:
    """Write tensors with their checksum.

    By bytes: safetensors itself would write to another temporary file, which nobody would sweep after a kill.
    """
    path.write_bytes(save(state, {CHECKSUM: checksum(state)}))


def read_file(path: Path) -> dict[str, Tensor]:
    """The tensors of a checkpoint; raises where it is damaged."""
    try:
        with safe_open(path, "pt") as file:
            known = (file.metadata() or {}).get(CHECKSUM)
        state = load_file(path)
    except (SafetensorError, OSError) as error:
        raise ValueError(f"{path} cannot be read ({error}): {AGAIN}") from None
    if known is not None and checksum(state) != known:
        raise ValueError(f"{path} is damaged, its checksum is not that of its tensors: {AGAIN}")
    return state


def tensor_shape(path: Path, name: str) -> tuple[int, ...] | None:
    """Shape of a tensor of a checkpoint; None where it is not there, or cannot be read."""
    try:
        with safe_open(path, "pt") as file:
            return tuple(file.get_slice(name).get_shape()) if name in file.keys() else None  # noqa: SIM118
    except (SafetensorError, OSError):
        return None


class NotFinite(ValueError):  # noqa: N818 -- says what is wrong
    """A tensor of a checkpoint holds NaN or infinite values."""


def checksum(state: State) -> str:
    """SHA-256 of names, types, shapes and values."""
    found = hashlib.sha256()
    for name in sorted(state):
        value = state[name]
        found.update(f"{name} {value.dtype} {list(value.shape)}\n".encode())
        found.update(value.contiguous().flatten().view(torch.uint8).numpy().data)
    return found.hexdigest()


def check_networks(learner: Learner, state: State) -> None:
    """Raise unless a checkpoint has the learner's networks and the number of steps done."""
    parts = learner.modules().keys()
    mine = {name: value for name, value in learner.state().items() if part(name) in parts or name == DONE}
    check_tensors({name: value for name, value in state.items() if part(name) in parts or name == DONE}, mine)


def check_learner(learner: Learner, state: State) -> None:
    """Raise unless a checkpoint has all that the learner's next step depends on, but for its memory."""
    parts = {"self", *learner.modules(), *learner.optimisers()}
    later = {f"{name}.{key}": v for name, one in learner.optimisers().items() for key, v in one.tensors().items()}
    mine = {name: value for name, value in learner.state().items() if part(name) in parts and name not in later}
    if GENERATOR in state:  # a random state has another size on another device
        mine[GENERATOR] = torch.empty(state[GENERATOR].shape, dtype=torch.uint8)
    if METERS in state and state[METERS].dim() == 1:  # another version, or objective, logs another number of figures
        mine[METERS] = torch.empty(state[METERS].shape)
    check_tensors({name: value for name, value in state.items() if part(name) in parts}, mine, later)


def check_tensors(found: State, wanted: State, optional: State | None = None) -> None:
    """Raise unless tensors are those that are wanted, of the same shapes and types, and finite.

    Those that are `optional` may be missing.
    """
    known = {**wanted, **(optional or {})}
    for name, like in known.items():
        if name in found:
            _check_tensor(name, found[name], like)
        elif name in wanted:
            raise ValueError(f"{name} is missing")
    for name in found:
        if name not in known:
            raise ValueError(f"{name} is unknown")


def _check_tensor(name: str, value: Tensor, like: Tensor) -> None:
    if value.shape != like.shape:
        raise ValueError(f"{name} has the shape {list(value.shape)}, not {list(like.shape)}")
    if value.dtype != like.dtype:
        raise ValueError(f"{name} has the type {_type(value)}, not {_type(like)}")
    if value.is_floating_point() and not bool(value.isfinite().all()):
        raise NotFinite(f"{name} holds {'NaN' if bool(value.isnan().any()) else 'infinite values'}")


def _type(value: Tensor) -> str:
    return str(value.dtype).removeprefix("torch.")


def part(name: str) -> str:
    """What stands before the first dot of a tensor's name.

    >>> part("nets.trunk.weight")
    'nets'
    """
    return name.partition(".")[0]
