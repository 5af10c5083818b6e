"""Runs of a few steps and tasks of a few objects, shared by the tests of the user-facing half."""

from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file
from torch import Tensor

from sgfn.cli.commands import main
from sgfn.config import TrainConfig
from sgfn.envs import SequenceEnv
from sgfn.envs.trajectories import Trajectories
from sgfn.landscapes.table import TableLandscape
from sgfn.landscapes.tasks import Task
from sgfn.learning.kernels.shared_states import SharedStateScorer
from sgfn.learning.methods import unread, without_unread
from sgfn.learning.scoring import Scorer
from sgfn.learning.trainer import Trainer
from sgfn.nets.heads import FlowNets
from sgfn.noise import UniformSlip
from sgfn.noise.operators import Kernel
from sgfn.runs.folder import Run

CPU = torch.device("cpu")
ANYWHERE = ["--net.hidden", "16", "--dynamics.hidden", "8", "--batch", "8", "--steps", "20"]
ANYWHERE += ["--log.every", "5", "--log.exact-every", "10", "--log.checkpoint-every", "10", "--device", "cpu"]
FLAGS = [*ANYWHERE, "--grid.side", "3"]
SMALL = TrainConfig().with_(steps=20, batch=8, net__hidden=16, dynamics__hidden=8, grid__side=3)
SMALL = SMALL.with_(log__every=5, log__exact_every=10, log__checkpoint_every=10)


def small(method: str = "gfn", **changes: object) -> TrainConfig:
    """The configuration that the flags of a method spell, changed."""
    return without_unread(SMALL.with_(method=method)).with_(**changes)


def small_on(task: str, **changes: object) -> TrainConfig:
    """The same for flow networks on another task than the grid."""
    return without_unread(SMALL.with_(**changes), task)


def flags_of(method: str, task: str = "grid") -> list[str]:
    """FLAGS without those that a method does not read on a task."""
    pairs = zip(FLAGS[::2], FLAGS[1::2], strict=True)
    ignored = unread(task, SMALL.with_(method=method))
    return [word for pair in pairs if pair[0].lstrip("-").replace("-", "_") not in ignored for word in pair]


def tiny_task(config: TrainConfig, alphabet: str = "ABC", length: int = 3, stop: bool = False) -> Task:
    """All strings of a few letters, with scores between 0 and 1."""
    env = SequenceEnv(length=length, alphabet=alphabet, noise=UniformSlip(alpha=config.noise.alpha), stop=stop)
    count = (env.vocab + stop) ** length  # with blanks as one more letter where strings may be shorter
    table = torch.rand(count, generator=torch.Generator().manual_seed(5), dtype=torch.float64)
    landscape = TableLandscape(table, vocab=env.vocab + stop, mode_level=0.9)
    beta = 1.0 if config.beta is None else config.beta
    return Task(name="tiny", summary="", env=env, landscape=landscape, beta=beta, config=config)


def tiny_trainer(alphabet: str = "ABC", length: int = 3, stop: bool = False, **changes: object) -> Trainer:
    return Trainer(tiny_task(small(**changes), alphabet, length, stop), CPU)


def weights(trainer: Trainer, part: str = "nets") -> Tensor:
    """All weights of one part in a row."""
    return torch.cat([p.detach().flatten().clone() for p in trainer.modules()[part].parameters()])


def collected(trainer: Trainer, size: int = 8) -> tuple[FlowNets | SharedStateScorer, Trajectories, Trajectories]:
    """What scores states of a batch, the agent's own part of one batch of rollouts, and the whole of it."""
    states = trainer.general.state_scorer(size)
    own, batch = trainer.general.collect(states, trainer.general.draw(trainer.generator, trainer.temperature))
    return states, own, batch


def balance(trainer: Trainer, scorer: Scorer, batch: Trajectories, beta: float | Tensor, kernel: Kernel) -> Tensor:
    """The objective's mean over a batch, by the general backend."""
    return trainer.objective(*trainer.general.scored(scorer, batch, torch.as_tensor(beta), kernel)).mean()


def same_tensors(first: dict[str, Tensor], second: dict[str, Tensor]) -> bool:
    """Same names, same shapes, same bits."""
    return first.keys() == second.keys() and all(torch.equal(first[name], second[name]) for name in first)


def same_runs(first: Path, second: Path) -> bool:
    """Same checkpoint and same metrics, bit for bit."""
    one, two = Run(path=first), Run(path=second)
    same = one.metrics.read_bytes() == two.metrics.read_bytes()
    return same and same_tensors(load_file(one.checkpoint), load_file(two.checkpoint))


def contents(folder: Path) -> dict[str, bytes]:
    """Every file below a folder, but for the lock."""
    files = [p for p in sorted(folder.rglob("*")) if p.is_file() and p.name != ".lock"]
    return {str(p.relative_to(folder)): p.read_bytes() for p in files}


def complaint(capsys: pytest.CaptureFixture[str], words: list[str], code: int = 2) -> str:
    """Run a command that must fail, with one line on standard error and nothing else; returns the line."""
    capsys.readouterr()
    assert main(words) == code
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("sgfn: ")
    assert err.endswith("\n")
    assert err.count("\n") == 1
    return err.removeprefix("sgfn: ").rstrip("\n")
