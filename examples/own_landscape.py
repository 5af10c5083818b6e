"""A landscape of your own: DNA 6-mers scored by their share of G and C, 20 % noise, compared with the exact answer.

python examples/own_landscape.py
"""

import torch
from jaxtyping import Float, Int
from torch import Tensor

from sgfn.config import TrainConfig
from sgfn.envs import SequenceEnv
from sgfn.evaluation import exact
from sgfn.landscapes import Landscape
from sgfn.landscapes.tasks import Task
from sgfn.learning.trainer import Trainer
from sgfn.noise import UniformSlip


class GCContent(Landscape):
    """Share of G and C."""

    maximum, mode_level = 1.0, 1.0

    def scores(self, objects: Int[Tensor, "*batch O"]) -> Float[Tensor, "*batch"]:
        """C is token 1, G token 2."""
        return ((objects == 1) | (objects == 2)).float().mean(-1)


def main(config: TrainConfig) -> tuple[float, float]:
    """Train, then return the distance to the target and the best reachable one."""
    env = SequenceEnv(length=6, alphabet="ACGT", noise=UniformSlip(alpha=config.noise.alpha))
    task = Task(name="gc", summary="GC content", env=env, landscape=GCContent(), beta=4.0, config=config)
    trainer = Trainer(task, torch.device("cpu"))
    for _ in range(config.steps):
        trainer.step()
    objects = env.all_objects()
    known = exact.reference(env, task.landscape.scores(objects), task.log_reward(objects), task.beta)
    figures = exact.distances(trainer.law(), known)
    return figures["tv"], figures["tv_floor"]


if __name__ == "__main__":
    tv, floor = main(TrainConfig().with_(steps=1000, noise__alpha=0.2))
    print(f"TV to target {tv:.4f}, best reachable {floor:.4f}")
