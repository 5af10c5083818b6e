"""Checks of a task's parts that are not ours, before anything is trained on them."""

import torch

from sgfn.config.checks import is_ours
from sgfn.envs.checks import check_env, expect, refuse
from sgfn.landscapes.base import Landscape
from sgfn.landscapes.tasks import Task


def check_parts(task: Task, device: torch.device | str = "cpu") -> None:
    """Refuse an environment, noise or landscape of somebody else's that answers wrongly in random rollouts.

    Environments are asked on the CPU, where tables of them are made, landscapes on the device. Of ours nothing is
    asked, so that nothing gets slower.
    """
    if is_ours(task.env) and is_ours(task.env.noise) and is_ours(task.landscape):
        return
    objects = check_env(task.env).objects
    if not is_ours(task.landscape):
        _check_landscape(task, objects.to(device))


def _check_landscape(task: Task, objects: torch.Tensor) -> None:
    landscape, who = task.landscape, type(task.landscape).__name__
    for name in ("maximum", "mode_level"):
        if not isinstance(value := getattr(landscape, name, None), int | float):
            refuse(f"{who}.{name}", "be a number", repr(value))
    scores = expect(f"{who}.scores", landscape.scores(objects), "numbers", (objects.shape[0],), objects.device)
    plain = type(landscape).log_reward is Landscape.log_reward
    wrong = ~scores.isfinite() | (scores < 0 if plain else False)
    if bool(wrong.any()):
        text = task.env.decode(objects[wrong][:1].cpu())[0]
        refuse(f"{who}.scores", "be finite and 0 or above", f"{scores[wrong][0].item():g} for {text!r}")
    if plain:
        return
    worth = landscape.log_reward(objects, task.config.reward)
    worth = expect(f"{who}.log_reward", worth, "floating-point numbers", (objects.shape[0],), objects.device)
    if bool(worth.isnan().any()):
        refuse(f"{who}.log_reward", "be a number", f"nan for {task.env.decode(objects[worth.isnan()][:1].cpu())[0]!r}")
