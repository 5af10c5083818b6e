"""What to say of a run that has learned little: its rewards on their floor, its law near the uniform policy's."""

import math
from typing import Any

from jaxtyping import Float
from torch import Tensor

from sgfn.config.digits import figure
from sgfn.envs import laws
from sgfn.evaluation import exact
from sgfn.landscapes.base import Landscape
from sgfn.landscapes.tasks import Task
from sgfn.landscapes.transforms import ScoreTransform
from sgfn.learning.learner import Learner
from sgfn.learning.trainer import Trainer
from sgfn.objectives.registry import NO_BASE

NEAR_FLOOR = 0.05
"""Nats above the lowest log-reward up to which a mean counts as on it."""
LITTLE = 0.1
"""Share of the way from the uniform policy to the best reachable law (or the target) that counts as little."""

NO_REWARD = (
    "the loss does not know the reward (--entropy.base none): its terms alone shape the policy, whatever is rewarded, "
    "and longer training brings its law no nearer to the target"
)
"""What is said of terms that stand alone, as an ablation."""


def advice(learner: Learner, row: dict[str, Any], known: Float[Tensor, " N"] | None = None) -> list[str]:
    """Lines for whoever trained a run, given its last line of metrics: each says what is wrong and what to do.

    `known` are the log-rewards of all objects before the exponent, where somebody has them: nothing is scored again.
    """
    found = [learner.task.landscape.trouble(), on_floor(learner.task, row.get("log_reward"))]
    alone = learner.config.objective == "kl-entropy" and learner.config.entropy.base == NO_BASE
    found.append(NO_REWARD if alone else near_uniform(learner, row.get("tv"), known))
    if isinstance(learner, Trainer):
        found.append(learner.aimed.missed() if learner.aimed is not None else "")
        found.append(no_distance(learner))
    return [line for line in found if line]


def on_floor(task: Task, log_reward: float | None) -> str:
    """That nearly no sample is rewarded, where the mean log-reward of batches sits on its floor; else empty."""
    reward = task.config.reward
    if log_reward is None or type(task.landscape).log_reward is not Landscape.log_reward:
        return ""
    if log_reward > math.log(reward.minimum / reward.norm) + NEAR_FLOOR:
        return ""
    shape = task.landscape.score_transform
    least = f"scores above --reward.minimum ({reward.minimum:g})"
    if shape != ScoreTransform():
        score = f"{figure(shape.score(reward.minimum))}"
        least = f"is better than a score of {score} (--reward.minimum {reward.minimum:g} of what is maximised)"
    return (
        f"the log-reward sits on its floor: hardly any sample {least}. "
        "Give known objects (--offline.file with --offline.share 0.25), explore more (--explore 0.1), repeat what was "
        "found (--replay.updates 4), or lower --reward.minimum if smaller scores should tell"
    )


def near_uniform(learner: Learner, tv: float | None, known: Float[Tensor, " N"] | None = None) -> str:
    """That the law is near that of the uniform policy, where it is known; else empty."""
    task, env = learner.task, learner.task.env
    if tv is None or not laws.enumerable(env):
        return ""
    if known is None:
        known = task.log_target(env.all_objects().to(learner.device)).cpu()
    wanted = exact.target(known, learner.exponent)
    return little_learned(tv, exact.total_variation(laws.law(env, laws.uniform_policy(env)), wanted), None)


def little_learned(tv: float, uniform: float, floor: float | None) -> str:
    """The words for a distance near the uniform policy's, on the scale to the best reachable one; else empty.

    >>> little_learned(0.39, 0.40, 0.1)[:54]
    'TV 0.390 is near that of a uniform policy (0.400): the'
    >>> little_learned(0.3, 0.4, 0.1), little_learned(0.005, 0.006, 0.0)
    ('', '')
    """
    if uniform < 0.02 or uniform - tv > LITTLE * (uniform - (floor or 0.0)):
        return ""
    return (
        f"TV {tv:.3f} is near that of a uniform policy ({uniform:.3f}): the run has learned little, or the noise "
        "allows little. Train longer (--steps), with larger batches (--batch) or replay (--replay.updates 4); where "
        "log Z holds training back at a high exponent, --objective vargrad needs none"
    )


def no_distance(learner: Trainer) -> str:
    """Why a run on a task that can be enumerated has no exact distance, where its policy remembers; else empty."""
    wanted = learner.config.log.exact_every > 0 and laws.enumerable(learner.task.env)
    return f"no TV to the target: {learner.why_no_law}" if wanted and not learner.has_law else ""
