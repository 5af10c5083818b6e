"""A task of your own, from landscape to evaluation: DNA 8-mers scored by their share of G and C.

python examples/own_task.py
"""

from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from jaxtyping import Float, Int
from torch import Tensor

import sgfn
from sgfn.landscapes import Landscape
from sgfn.landscapes.tasks import Task, sequences


class GCContent(Landscape):
    """Share of G and C."""

    maximum, mode_level = 1.0, 1.0

    def scores(self, objects: Int[Tensor, "*batch O"]) -> Float[Tensor, "*batch"]:
        """C is token 1, G token 2."""
        return ((objects == 1) | (objects == 2)).float().mean(-1)


def gc(name: str, config: sgfn.TrainConfig) -> Task:
    """DNA 8-mers by their share of G and C."""
    env = sequences(config, length=8, alphabet="ACGT")
    beta = 4.0 if config.beta is None else config.beta
    return Task(name=name, summary="GC content", env=env, landscape=GCContent(), beta=beta, config=config)


def main(config: sgfn.TrainConfig, folder: Path) -> Mapping[str, Any]:
    """Make the task known by its name, then use it like any other."""
    sgfn.register_task("gc", gc)
    sgfn.train("gc", config, folder)
    return sgfn.evaluate(folder)


if __name__ == "__main__":
    with TemporaryDirectory() as parent:
        figures = main(sgfn.TrainConfig().with_(steps=1000), Path(parent) / "run")
    print(f"TV to target {figures['tv']:.4f}, best reachable {figures['tv_floor']:.4f}")
