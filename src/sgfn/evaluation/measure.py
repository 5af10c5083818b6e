"""Figures of a trained policy against the exact answer."""

import inspect
import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from sgfn.config.checks import in_range, require, whole_number
from sgfn.envs import SequenceEnv, laws
from sgfn.envs.base import Enumerable
from sgfn.envs.tabulated import TabulatedEnv
from sgfn.envs.trajectories import Samples
from sgfn.evaluation import exact
from sgfn.evaluation.likelihood import log_law, mean_and_error
from sgfn.evaluation.metrics import samples as metrics
from sgfn.evaluation.orders import best_orders
from sgfn.evaluation.result import Evaluation
from sgfn.evaluation.stages import Stages
from sgfn.landscapes.offline import known_objects
from sgfn.landscapes.tasks import Task
from sgfn.learning.learner import Learner

MODE_DISTANCE = 2
MOST_SAMPLES, MOST_STEPS = 10**7, 2 * 10**8
"""Samples at most that are held in memory at once, and steps of all of them together."""
REFERENCE_RADIUS, REFERENCE_TOP, REFERENCE_WITHIN = 1, 0.01, 1
EXACT_KEYS = [
    "tv",
    "tv_floor",
    "tv_blind",
    "tv_uniform",
    "l1_mean",
    "js",
    "kl",
    "expected_reward",
    "target_expected_reward",
    "floor_expected_reward",
]


def reference(task: Task, max_states: int = laws.MAX_STATES, stages: Stages | None = None) -> exact.ReferenceLaws:
    """Compute a task's target, best reachable law, and the laws of the noise-ignoring and of the uniform policy.

    Scores are in the user's units; laws and distances are of the rewards.
    """
    stages, env = stages or Stages(), laws.check_size(task.env, max_states)
    stages.begin(f"scores of {env.num_objects:,} objects")
    objects = env.all_objects()
    scores, log_reward = task.landscape.scores(objects), task.log_target(objects)
    stages.begin("best reachable law")
    return exact.reference(env, task.landscape.told(objects, scores), log_reward, task.beta, max_states)


def exact_law(learner: Learner, stages: Stages) -> Float[Tensor, " N"]:
    """Exact law of a policy; the stage has as many parts as states are asked for probabilities."""
    env = learner.task.env
    assert isinstance(env, Enumerable)
    passes = 1 if isinstance(learner.env, TabulatedEnv) else len(env.noise.rates(env.horizon))
    stages.begin("law of the policy", passes * env.num_states)
    takes = bool(inspect.signature(learner.law).parameters)  # a learner of somebody's own may have none
    return learner.law(stages.advance) if takes else learner.law()


@dataclass(frozen=True, kw_only=True)
class ModeRule:
    """What counts as a mode of samples: a score as good as `level`, and more than `distance` away from better ones."""

    distance: int = MODE_DISTANCE
    level: float | None = None
    """In the user's units; where low scores are good the highest one of a mode. None is the landscape's own."""

    def __post_init__(self) -> None:
        whole_number("mode_distance", self.distance, 0, 10**6)
        if self.level is not None:
            in_range("mode_level", self.level, -1e300, 1e300)


def measure(
    learner: Learner,
    samples: int = 2048,
    seed: int = 0,
    max_states: int = laws.MAX_STATES,
    modes: ModeRule | None = None,
    stages: Stages | None = None,
) -> Evaluation:
    """All figures of a trained policy.

    Exact distances where the space is enumerable (else null, and `tv_absent` says why), then figures of samples, of the
    noise model and of orders.
    """
    task = replace(learner.task, beta=learner.exponent)
    check_count(learner, samples, "samples")
    check_limit(max_states)
    whole_number("seed", seed, 0, 2**31 - 1)
    stages = stages or Stages()
    stages.begin(f"{samples:,} samples")
    drawn = learner.draw(samples, seed)
    calibrated = learner.calibrated(min(samples, 2048), seed + 1)
    task.landscape.to(torch.device("cpu"))
    facts, shown = known_facts(task), task.landscape.told(drawn.objects, drawn.scores)
    result: dict[str, Any] = dict.fromkeys(EXACT_KEYS) | {
        key: facts[key] for key in (*EXACT_KEYS, "floor_kind") if key in facts
    }
    if laws.enumerable(task.env, max_states):
        known = reference(task, max_states, stages)
        law = exact_law(learner, stages) if learner.has_law else None
        result |= exact.distances(law, known) | {"floor_kind": known.floor_kind}
        result |= {"tv_absent": learner.why_no_law} if law is None else {}
        result["histogram"] = histogram(known, law, shown)
    else:
        result |= estimated_kl(learner, samples, seed) | {"histogram": sample_histogram(shown)}
        result["tv_absent"] = why_not_enumerated(task, max_states)
    stages.begin("modes")
    result |= sample_figures(task, drawn, max_states, modes)
    result |= calibrated | {"bound_by_floor": learner.bound_by_floor, "beta": task.beta}
    result["minimise"] = task.landscape.score_transform.minimise
    if (kernels := learner.kernels(min(samples, 2048), seed + 1)) is not None:
        result["kernel"] = named_letters(task) | kernels
    stages.begin("orders")
    result["orders"] = [vars(order) for order in best_orders(task.env, task.landscape, drawn, seed=seed)]
    task.landscape.to(learner.device)
    return Evaluation(task=task.name, step=learner.done, samples=samples, seed=seed, **result)


def why_not_enumerated(task: Task, max_states: int) -> str:
    """Why there are no exact distances on a task, in a few words."""
    if not isinstance(task.env, Enumerable):
        return "the environment does not list its states and objects"
    return f"{task.env.num_states + task.env.num_objects:,} states and objects are more than {max_states:,}"


def named_letters(task: Task) -> dict[str, list[str]]:
    """Names of intentions and of outcomes, for the picture of a kernel."""
    env = task.env
    letters = isinstance(env, SequenceEnv)
    names = {"intentions": env.action_names if letters else [], "outcomes": env.outcome_names if letters else []}
    counts = {"intentions": env.actions, "outcomes": env.outcomes}
    return {
        what: names[what] if len(names[what]) == count else [str(at) for at in range(count)]
        for what, count in counts.items()
    }


def check_count(learner: Learner, count: int, name: str) -> None:
    """Raise unless so many samples of a task, with what was intended at each step, fit into memory."""
    if not isinstance(count, int) or count >= 1:
        whole_number(name, count, 1, MOST_SAMPLES)
    require(count >= 1, name, "be at least 1", count)
    steps = learner.task.env.horizon
    fit = max(MOST_STEPS // steps, 1)
    require(count <= fit, name, f"be at most {fit:,} where objects have {steps:,} steps", f"{count:,}")


def check_limit(max_states: int) -> None:
    """Raise unless a limit of enumerated spaces makes sense."""
    whole_number("max_states", max_states, 0, 10**8)


def estimated_kl(learner: Learner, samples: int, seed: int) -> dict[str, Any]:
    """KL from the target to the policy's law, as a mean over exact samples of the target, with its standard error."""
    task = replace(learner.task, beta=learner.exponent)
    drawn = task.landscape.draw_target(samples, task.beta, torch.Generator().manual_seed(seed))
    log_policy = learner.state_policy()
    if drawn is None or not task.env.tree or log_policy is None or task.env.automaton is not None:
        return {}
    objects, log_target = drawn
    log_found = [log_law(learner.env, log_policy, o.to(learner.device)).cpu() for o in objects.split(4096)]
    kl, error = mean_and_error(log_target - torch.cat(log_found))
    return {"kl": kl, "kl_error": error, "kl_floor": known_facts(task).get("floor_kl")}


def sample_histogram(scores: Float[Tensor, " N"], bins: int = 40) -> dict[str, list[float]]:
    """Histogram of the scores of samples, for a space whose laws are not known."""
    low, high = float(scores.min()), float(scores.max())
    edges = torch.linspace(low, _above(low, high), bins + 1, dtype=torch.float64)
    counts = torch.bucketize(scores.double(), edges[1:-1], right=True).bincount(minlength=bins)
    return {"edges": edges.tolist(), "samples": (counts.double() / counts.sum()).tolist()}


def _above(low: float, high: float) -> float:
    """The highest score of a histogram, or a little above the lowest where there is but one score."""
    return high if high > low else low + 1e-6 * max(1.0, abs(low))


def histogram(
    known: exact.ReferenceLaws, law: Float[Tensor, " N"] | None, drawn: Float[Tensor, " S"], bins: int = 40
) -> dict[str, list[float]]:
    """Histogram of scores under the target, under the policy's exact law where it is known, and of samples."""
    low, high = float(known.scores.min()), float(known.scores.max())
    edges = torch.linspace(low, _above(low, high), bins + 1, dtype=torch.float64)
    row = torch.bucketize(known.scores, edges[1:-1], right=True)
    counts = torch.bucketize(drawn.double(), edges[1:-1], right=True).bincount(minlength=bins)
    laws = {"target": known.target} | ({} if law is None else {"law": law})
    shares = {name: torch.zeros(bins, dtype=torch.float64).index_add_(0, row, p) for name, p in laws.items()}
    shares["samples"] = counts.double() / counts.sum()
    return {"edges": edges.tolist()} | {name: share.tolist() for name, share in shares.items()}


def sample_figures(
    task: Task, drawn: Samples, max_states: int = laws.MAX_STATES, rule: ModeRule | None = None
) -> dict[str, Any]:
    """Top-100 scores, modes by two definitions, diversity and novelty of samples, with the thresholds used.

    What is best is decided by what is maximised; scores are told in the user's units.
    """
    rule, told = rule or ModeRule(), task.landscape.told
    objects, values = drawn.objects.numpy(), drawn.scores.numpy()
    distinct, ranked = metrics.unique_objects(objects, values)
    best = torch.from_numpy(distinct[:100])
    best_told = told(best, torch.from_numpy(ranked[:100])).numpy()
    top = metrics.top_k(distinct[:100], best_told, 100)
    level, level_words = _mode_level(task, rule)
    kind = "l1" if task.env.distance == "l1" else "hamming"
    modes = metrics.greedy_modes(objects, values, threshold=rule.distance, level=level, distance=kind)
    found, total = modes_reference(task, drawn.objects, max_states) or (None, None)
    scores = told(drawn.objects, drawn.scores).numpy()
    return {
        "sample_mean": float(scores.mean()),
        "top100_mean": top.mean,
        "top100_median": top.median,
        "top100_count": top.count,
        "modes_greedy": len(modes) if math.isfinite(level) else None,
        "modes_greedy_rule": level_words,
        "modes_reference": found,
        "modes_reference_total": total,
        "diversity": metrics.diversity(objects) if isinstance(task.env, SequenceEnv) else None,
        "novelty": _novelty(task, objects),
        "unique": len(distinct),
        "alphabet": task.env.alphabet if isinstance(task.env, SequenceEnv) else None,
        "designs": _listed(task, distinct[:100], best_told),
        "modes": _listed(task, objects[modes[:60]], scores[modes[:60]]),
    }


def _mode_level(task: Task, rule: ModeRule) -> tuple[float, str]:
    """Lowest value of a mode, of what is maximised, a rounding error below; and what counts as a mode in words."""
    shape, own = task.landscape.score_transform, task.landscape.mode_level
    level = own if rule.level is None else shape.value(rule.level)
    if not math.isfinite(level):
        return level, "not counted, as no level of the score is known"
    shown = shape.score(level) if rule.level is None else rule.level
    words = f"score {'<=' if shape.minimise else '>='} {shown:g}, {task.env.distance} distance > {rule.distance}"
    return level - 1e-6 * max(1.0, abs(level)), words


def _listed(task: Task, objects: Int[np.ndarray, "N O"], scores: Float[np.ndarray, " N"]) -> list[list[Any]]:
    """Pairs of an object as text and its score."""
    texts = task.env.decode(torch.from_numpy(objects)) if len(objects) else []
    return [[text, float(score)] for text, score in zip(texts, scores, strict=True)]


def _novelty(task: Task, objects: Int[np.ndarray, "N O"]) -> float | None:
    """Mean distance to the nearest object known beforehand; None where there are no such objects."""
    known = known_objects(task) if isinstance(task.env, SequenceEnv) else None
    return None if known is None else float(metrics.novelty(objects, known.numpy()).mean())


def modes_reference(task: Task, objects: Int[Tensor, "N O"], max_states: int) -> tuple[int, int] | None:
    """How many known modes the objects find, and how many there are; None where no modes are known.

    Known modes are the landscape's own set, else the maxima of a complete table of scores.
    """
    own = task.landscape.modes_known(objects)
    maxima = reference_maxima(task, max_states) if own is None else None
    if maxima is None or not len(maxima):  # a plain has no maxima
        return own
    within = REFERENCE_WITHIN if isinstance(task.env, SequenceEnv) else 0
    return metrics.reference_modes(objects.numpy(), maxima.numpy(), within=within), maxima.shape[0]


def reference_maxima(task: Task, max_states: int = laws.MAX_STATES) -> Int[Tensor, "M O"] | None:
    """Known maxima of a landscape, None where it is too large to enumerate.

    Local maxima in the top 1 % of a complete table of sequences, else every object with the highest score; of objects
    that satisfy the constraints, where there are some.
    """
    env = task.env
    if not laws.enumerable(env, max_states):
        return None
    objects = env.all_objects()
    scores = task.landscape.scores(objects)
    if (fits := env.admissible(objects)) is not None:
        scores = torch.where(fits, scores, scores.min())
    if isinstance(env, SequenceEnv) and env.num_objects == env.vocab**env.length:
        table = scores.double().numpy()
        maxima = torch.from_numpy(
            metrics.local_maxima(table, env.vocab, env.length, radius=REFERENCE_RADIUS, top=REFERENCE_TOP)
        )
        return maxima[scores[env.object_index(maxima)] > scores.min()]  # a plain of zeros has no maxima
    return objects[scores >= scores.max() - 1e-6]


def known_facts(task: Task) -> dict[str, Any]:
    """Facts that the landscape knows without enumeration, at the configured reward norm."""
    if task.env.noise_by_state or task.env.noise.changes_length or task.env.automaton is not None:
        return {}  # a landscape's own formulas know noise by position, and no constraints
    facts = task.landscape.facts(task.beta, task.env.noise)
    if "log_z" in facts:
        facts["log_z"] -= task.beta * math.log(task.config.reward.norm)
    return facts
