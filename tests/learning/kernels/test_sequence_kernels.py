"""The GPU kernels for sequences and attention, in Triton's interpreter: the same numbers as plain PyTorch."""

import pytest
import torch
from twins import beside_its_twin

from sgfn.config import TrainConfig
from sgfn.envs.sequence import SequenceEnv
from sgfn.landscapes.tasks import make_task
from sgfn.learning.kernels.sequence_actor import plain_sequence, sequence_kernel
from sgfn.learning.trainer import Trainer
from sgfn.noise import UniformSlip


@pytest.mark.slow
def test_the_kernels_take_the_steps_of_plain_pytorch() -> None:
    found = beside_its_twin("sequence_kernels_beside_their_twins.py")
    assert len(found["rollouts"]) == 3
    for case, compared in found["rollouts"].items():
        assert compared["single"] == 1.0, case
        assert compared["half"] > 0.9, case  # rounding may decide a close race
        assert compared["other clock"] < 0.9, case
    for compared in found["attention"]:
        assert compared["value"] < 1e-5
        assert compared["gradient"] < 1e-4


class Wrapped(SequenceEnv):
    """Noise of its own."""

    def kernel(self, state: torch.Tensor, dtype: torch.dtype = torch.float32, rate: object = None) -> torch.Tensor:
        return super().kernel(state, dtype)


@pytest.mark.parametrize(("kind", "stop", "plain"), [
    (SequenceEnv, False, True), (SequenceEnv, True, False), (Wrapped, False, False),
])  # fmt: skip
def test_only_environments_as_they_are_written_go_to_the_kernels(
    kind: type[SequenceEnv], stop: bool, plain: bool
) -> None:
    env = kind(length=4, alphabet="AB", noise=UniformSlip(alpha=0.1), stop=stop)
    assert (plain_sequence(env) is not None) == plain


def test_there_is_no_kernel_on_a_cpu() -> None:
    trainer = Trainer(make_task("motif", TrainConfig().with_(batch=4, net__hidden=16)), torch.device("cpu"))
    assert sequence_kernel(trainer.env, trainer.nets, torch.device("cpu")) is None
