"""Checkpoints: damaged, misshapen, not finite or of another time, they are refused by name, and old ones are read."""

from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from safetensors import safe_open
from safetensors.torch import load_file, save_file
from small_runs import CPU, complaint, contents, same_tensors
from torch import Tensor

import sgfn
from sgfn.runs.checkpoints import checksum, read_file
from sgfn.runs.folder import Run

WEIGHT = "nets.trunk.0.weight"


def edit(run: Path, change: Callable[[dict[str, Tensor]], dict[str, Tensor | None]], *, signed: bool = False) -> None:
    """Change tensors of a checkpoint, None removes one; with a checksum only where it is to be believed."""
    file = Run(path=run).checkpoint
    state = load_file(file)
    changed = {name: value for name, value in (state | change(state)).items() if value is not None}
    save_file(changed, file, {"sha256": checksum(changed)} if signed else None)


def first(state: dict[str, Tensor], kind: str = "nets.") -> str:
    return next(name for name in sorted(state) if name.startswith(kind) and state[name].ndim == 2)


def set_value(value: float) -> Callable[[dict[str, Tensor]], dict[str, Tensor | None]]:
    def change(state: dict[str, Tensor]) -> dict[str, Tensor | None]:
        name = first(state)
        wrong = state[name].clone()
        wrong[0, 0] = value
        return {name: wrong}

    return change


def cut(state: dict[str, Tensor]) -> dict[str, Tensor | None]:
    return {first(state): state[first(state)][:, :1].clone()}


EVERYBODY = {
    "no done": (lambda s: {"self.done": None}, "does not fit config.json (self.done is missing)"),
    "done below 0": (lambda s: {"self.done": torch.tensor(-5)}, "(self.done is -5, of 20 steps)"),
    "done too large": (lambda s: {"self.done": torch.tensor(21)}, "(self.done is 21, of 20 steps)"),
    "done a fraction": (lambda s: {"self.done": torch.tensor(2.5)}, "(self.done has the type float32, not int64)"),
    "done a list": (lambda s: {"self.done": torch.tensor([1, 2])}, "(self.done has the shape [2], not [])"),
    "no weight": (lambda s: {first(s): None}, " is missing)"),
    "weight cut": (cut, "has the shape ["),
    "weight double": (lambda s: {first(s): s[first(s)].double()}, "has the type float64, not float32)"),
    "one weight more": (lambda s: {"nets.more": torch.zeros(2)}, "(nets.more is unknown)"),
    "NaN": (set_value(float("nan")), " holds NaN: the run must be trained again (--overwrite)"),
    "infinite": (set_value(float("-inf")), " holds infinite values: the run must be trained again"),
}
TRAINING = {
    "no generator": (lambda s: {"self.generator": None}, "(self.generator is missing)"),
    "generator of floats": (lambda s: {"self.generator": torch.zeros(5056)}, "(self.generator has the type float32"),
    "generator cut": (lambda s: {"self.generator": s["self.generator"][:100].clone()}, "does not fit config.json ("),
    "no index": (lambda s: {"self.index": None}, "(self.index is missing)"),
    "index NaN": (lambda s: {"self.index": torch.tensor(torch.nan).double()}, "self.index holds NaN"),
    "a table of meters": (lambda s: {"self.meters": torch.zeros(1, 1)}, "(self.meters has the shape [1, 1]"),
    "cuda a number": (lambda s: {"self.cuda": torch.tensor(3)}, "(self.cuda has the type int64, not bool)"),
    "no cuda": (lambda s: {"self.cuda": None}, "(self.cuda is missing)"),
    "moment cut": (lambda s: {"optimiser.0.exp_avg": torch.zeros(1, 1)}, "(optimiser.0.exp_avg has the shape [1, 1]"),
    "moment unknown": (lambda s: {"optimiser.99.exp_avg": torch.zeros(1)}, "(optimiser.99.exp_avg is unknown)"),
    "moment NaN": (
        lambda s: {"optimiser.0.exp_avg": torch.full_like(s["optimiser.0.exp_avg"], torch.nan)},
        "optimiser.0.exp_avg holds NaN",
    ),
    "one part more": (lambda s: {"buffer.added": torch.zeros(())}, "(the buffer differs)"),
}


def commands(run: Path) -> list[list[str]]:
    device = ["--device", "cpu"]
    return [["train", "grid", "--resume", "--out", str(run), *device], ["evaluate", str(run), *device]]


CASES = [*((name, False) for name in [*EVERYBODY, *TRAINING]), ("no done", True), ("NaN", True), ("moment NaN", True)]


@pytest.mark.parametrize(("name", "signed"), CASES)
def test_tensors_that_do_not_fit_are_named(
    name: str, signed: bool, grid_run: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    change, message = (EVERYBODY | TRAINING)[name]
    edit(grid_run, change, signed=signed)
    before = contents(grid_run)
    for words in commands(grid_run)[: 2 if name in EVERYBODY else 1]:
        line = complaint(capsys, words)
        assert line.startswith(str(Run(path=grid_run).checkpoint))
        assert message in line
    with pytest.raises(ValueError, match=r"state\.safetensors"):
        sgfn.load(grid_run)
    assert contents(grid_run) == before


def test_the_same_tensors_unchanged_are_read(grid_run: Path) -> None:
    for signed in (True, False):  # without a checksum, as by earlier versions
        edit(grid_run, lambda state: {}, signed=signed)
        assert sgfn.load(grid_run).step == 20
        assert sgfn.train("grid", None, grid_run, resume=True, device="cpu").load(CPU).done == 20


def test_a_checkpoint_carries_its_checksum(grid_run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = Run(path=grid_run).checkpoint
    state = read_file(file)
    with safe_open(file, "pt") as opened:
        assert opened.metadata() == {"sha256": checksum(state)}
    content = bytearray(file.read_bytes())
    content[-3] ^= 1
    file.write_bytes(content)
    for words in commands(grid_run):
        line = complaint(capsys, words)
        assert line.startswith(f"{file} is damaged, its checksum is not that of its tensors: the run must be trained")


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=60)
@given(place=st.integers(0, 10**9), bit=st.integers(0, 7))
def test_no_flipped_bit_goes_unnoticed(place: int, bit: int, trained: Path, tmp_path: Path) -> None:
    """Whatever is flipped, the tensors are those that were written, or there is one line."""
    whole = Run(path=trained / "grid").checkpoint
    content = bytearray(whole.read_bytes())
    content[place % len(content)] ^= 1 << bit
    file = tmp_path / "state.safetensors"
    file.write_bytes(content)
    found, line = load_file(whole), f"{file} "
    try:
        found = read_file(file)
    except ValueError as error:
        line = str(error)
    assert same_tensors(found, load_file(whole))
    assert line.startswith(f"{file} ")
    assert "\n" not in line


def test_the_checksum_tells_names_shapes_and_types_apart() -> None:
    zeros = torch.zeros(2, 3)
    others = [{"b": zeros}, {"a": zeros.T.contiguous()}, {"a": zeros.int()}, {"a": zeros, "b": zeros[:0]}]
    assert len({checksum(state) for state in [{"a": zeros}, *others]}) == 5
    assert checksum({"a": zeros, "b": zeros.bool()}) == checksum({"b": zeros.bool(), "a": zeros.clone()})
