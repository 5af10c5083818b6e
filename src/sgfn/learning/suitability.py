"""Whether a task can be learned as configured: checked before anything is made for it."""

from sgfn.landscapes.tasks import Task
from sgfn.nets.encoders import sequence_of
from sgfn.nets.registry import ENCODERS
from sgfn.objectives import OBJECTIVES, scored_as


def check_task(task: Task) -> None:
    """Refuse an objective, a form or a network that the task's states do not suit."""
    config, env, objective = task.config, task.env, OBJECTIVES[task.config.objective]
    if objective.tree and not env.tree:
        raise ValueError(
            f"objective {objective.name!r} needs a tree, and {task.name} is a graph with joins: use tb or kl"
        )
    if ENCODERS[config.net.encoder].sequences and sequence_of(env) is None:
        raise ValueError(f"net.encoder {config.net.encoder!r} reads sequences: use mlp for {task.name}")
    if scored_as(config) == "blind" and not env.intends_outcomes:
        raise ValueError("form 'blind' takes outcomes for intentions, which are another set here: use marginal")
