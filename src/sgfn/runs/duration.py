"""How long a run will take on a CPU, by counting products, and what would be faster: said before it begins."""

from torch import nn

from sgfn.envs.sequence import SequenceEnv
from sgfn.learning.learner import Learner
from sgfn.learning.trainer import Trainer
from sgfn.nets.encoders import MLP, StateTable

RATE = 5e10
"""Operations per second on two cores, of networks whose products fill a step."""
PER_WEIGHT = 8
"""Operations for each weight and state of a batch: two in the rollout, two in the update and four in its gradient."""
LONG = 20.0
"""Minutes from which a run is said to take long."""


def long_on_cpu(learner: Learner) -> str:
    """That a run takes long on a CPU and what would be faster; empty where it does not, or where nobody can tell."""
    if not isinstance(learner, Trainer) or learner.device.type != "cpu" or learner.scores_in_table:
        return ""
    minutes = expected_minutes(learner, weights(learner.nets.encoder, learner))
    if minutes < LONG:
        return ""
    config, faster = learner.config, "fewer --steps, a smaller --batch or a GPU (--device cuda) would be faster"
    if config.net.encoder == "transformer":
        mlp = expected_minutes(learner, 256 * 256)
        if mlp < minutes:
            faster = f"an MLP (--net.encoder mlp --net.hidden 256) takes about {told(mlp)}; {faster}"
    return f"{config.steps:,} steps take about {told(minutes)} on a CPU: {faster}"


def expected_minutes(learner: Trainer, count: int) -> float:
    """Minutes for the steps that are left, by networks of so many weights."""
    config = learner.config
    states = config.batch * learner.env.horizon
    return (config.steps - learner.done) * PER_WEIGHT * count * states / RATE / 60.0


def weights(encoder: nn.Module, learner: Trainer) -> int:
    """Weights that take part in products; tables, and first layers of MLPs on sequences, are looked up instead."""
    matrices = [p.numel() for p in encoder.parameters() if p.ndim == 2 and not isinstance(encoder, StateTable)]
    summed = isinstance(encoder, MLP) and isinstance(learner.env, SequenceEnv)
    return sum(matrices[1:] if summed else matrices)


def told(minutes: float) -> str:
    """A duration in words.

    >>> told(12.3), told(95.0), told(3000.0)
    ('12 min', '1.6 h', '50 h')
    """
    if minutes < 60.0:
        return f"{max(1.0, minutes):.0f} min"
    return f"{minutes / 60.0:.1f} h" if minutes < 600.0 else f"{minutes / 60.0:.0f} h"
