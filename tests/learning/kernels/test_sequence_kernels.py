"""Where the GPU kernels for sequences serve; their numbers are compared in `test_interpreted_kernels`."""

import pytest
import torch

from sgfn.config import TrainConfig
from sgfn.envs.sequence import SequenceEnv
from sgfn.landscapes.tasks import make_task
from sgfn.learning.kernels.sequence_actor import plain_sequence, sequence_kernel
from sgfn.learning.trainer import Trainer
from sgfn.noise import UniformSlip


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
