"""Where the GPU kernel for whole rollouts serves; its numbers are compared in `test_interpreted_kernels`."""

import torch

from sgfn.config import TrainConfig
from sgfn.envs.tabulated import tabulate
from sgfn.landscapes.tasks import make_task
from sgfn.learning.kernels.mlp_actor import rollout_kernel
from sgfn.nets.encoders import MLP


def test_there_is_no_kernel_on_a_cpu() -> None:
    env = tabulate(make_task("tfbind8", TrainConfig()).env, "cpu")
    assert rollout_kernel(env, MLP(env.features, 8, 1, "relu"), torch.device("cpu")) is None
