"""`fit`: train in memory, without a folder; what cannot be said by settings may be given as Python objects."""

import re
import signal
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

import torch
from jaxtyping import Int
from torch import Tensor, nn

from sgfn.config import TrainConfig, to_dict
from sgfn.config.importing import function_label
from sgfn.config.registry import refuse_arguments
from sgfn.envs import Env
from sgfn.landscapes.base import Landscape
from sgfn.landscapes.function import load_function
from sgfn.landscapes.offline import training_objects
from sgfn.landscapes.tasks import Task
from sgfn.learning.execution import pick_device, stepper
from sgfn.learning.learner import Learner, NonFiniteError
from sgfn.learning.methods import build, check
from sgfn.learning.trainer import Trainer
from sgfn.noise import Noise
from sgfn.objectives.scores import Objective
from sgfn.runs.advice import on_floor
from sgfn.runs.duration import long_on_cpu
from sgfn.runs.loop import Memory, loop, stoppable
from sgfn.runs.model import Model
from sgfn.runs.parts import Parts, Reward, make
from sgfn.runs.progress import Display, shown
from sgfn.runs.spaces import as_noise, noise_config

ELSEWHERE = ("noise", "constraints", "grid", "motif", "bits", "ehrlich", "rna", "table", "callable", "series")
"""Components of the settings that make an environment, which has been made where one is given."""


def fit(
    task: str | Env,
    *,
    reward: Reward | None = None,
    noise: float | Noise | None = None,
    objective: str | Objective = "tb",
    encoder: str | nn.Module | None = None,
    steps: int = 5000,
    batch: int = 64,
    seed: int = 0,
    device: str = "auto",
    progress: bool | Callable[[int, dict[str, Any]], object] = True,
    **settings: Any,
) -> Model:
    """Train a policy and return it as a model; nothing is written.

    `task` is the name of a task or an environment, `reward` a function from a list of strings to as many scores, which
    replaces the task's own. `noise` is a rate or an object of `sgfn.noise`; by default that of the task or environment.
    `objective` is a name or a function (scores, trajectories) -> [B], `encoder` a name or a module from features [*, F]
    to [*, H], which is trained in place. `settings` are fields of TrainConfig: beta=3, net__hidden=64. `progress` shows
    a bar, False shows nothing, and a function is called with (step, row) at every logged step.

    Ctrl-C returns the model as far as it was trained.

    >>> import sgfn
    >>> model = sgfn.fit(sgfn.Sequences("AC", 3), reward=lambda texts: [1 + t.count("A") for t in texts], steps=5)
    >>> len(model.sample(10, seed=0).sequences)
    10
    """
    if not (isinstance(progress, bool) or callable(progress)):
        raise ValueError(f"progress must be True, False or a function of (step, row), got {progress!r}")
    with errors_by_argument():
        where = pick_device(device)
        parts = given_parts(task, reward, noise, objective, encoder)
        config = _settings(parts, noise, objective, encoder, settings | {"steps": steps, "batch": batch, "seed": seed})
        made = make(parts, config)
        check(made, _baseline(parts, noise, config), [name.replace("__", ".") for name in settings])
        learner = learner_of(parts, made, where, training_objects(made))
    return Model(learner, parts, _train(learner, progress, parts.objective is None and parts.encoder is None))


@contextmanager
def errors_by_argument() -> Iterator[None]:
    """Errors within this context that name flags of commands name the arguments of `fit` instead."""
    try:
        yield
    except ValueError as error:
        error.args = tuple(by_arguments(part) if isinstance(part, str) else part for part in error.args)
        raise


def by_arguments(text: str) -> str:
    """A message with settings, or flags of them, as the arguments of `fit` are called; other words stay as they are.

    >>> by_arguments("--net.hidden does nothing here: it is read with --log.exact-every above 0")
    'net__hidden does nothing here: it is read with log__exact_every above 0'
    >>> by_arguments("net.hidden must lie in [1, 65536], got 0"), by_arguments("config: field 'steppes' is unknown")
    ('net__hidden must lie in [1, 65536], got 0', "argument 'steppes' is unknown")
    >>> by_arguments("pip install --upgrade torch, see net.py")
    'pip install --upgrade torch, see net.py'
    """
    words = r"(?<![\w./-])(?:--[a-z][a-z0-9_]*(?:[.-][a-z0-9][a-z0-9_]*)*|[a-z]+\.[a-z_]+)"

    def argument(found: re.Match[str]) -> str:
        name = found[0].removeprefix("--").replace(".", "__").replace("-", "_")
        return name if name in _settings_by_name() else found[0]

    unknown = re.sub(r"config: field '([^']*)'", lambda one: f"argument '{one[1].replace('.', '__')}'", text)
    return re.sub(words, argument, unknown)


@cache
def _settings_by_name() -> frozenset[str]:
    """Arguments of `fit` that are settings, and the groups that some belong to."""
    found: set[str] = set()
    for name, value in to_dict(TrainConfig()).items():
        found |= {name, *(f"{name}__{part}" for part in value)} if isinstance(value, dict) else {name}
    return frozenset(found)


def given_parts(task: Any, reward: Any, noise: Any, objective: Any, encoder: Any) -> Parts:
    """The Python objects among the arguments."""
    if not isinstance(task, str | Env):
        raise ValueError(f"task must be a name or an environment such as sgfn.Sequences, got {type(task).__name__}")
    if not (isinstance(objective, str) or callable(objective)):
        raise ValueError(f"objective must be a name or a function, got {type(objective).__name__}")
    if not isinstance(objective, str):
        wanted = "a function (scores, trajectories) -> [B]"
        refuse_arguments("objective", function_label(objective), objective, wanted, "scores", "trajectories")
    if not (encoder is None or isinstance(encoder, str | nn.Module)):
        raise ValueError(f"encoder must be a name or a torch module, got {type(encoder).__name__}")
    env = None if isinstance(task, str) else task
    given = noise is not None and (env is not None or isinstance(noise, Noise))  # a named task reads a rate itself
    return Parts(
        name=task if isinstance(task, str) else type(task).__name__.lower(),
        env=env,
        noise=as_noise(noise) if given else None,
        reward=load_function(reward) if isinstance(reward, str) else reward,
        objective=None if isinstance(objective, str) else objective,
        encoder=encoder if isinstance(encoder, nn.Module) else None,
    )


def _settings(parts: Parts, noise: Any, objective: Any, encoder: Any, settings: dict[str, Any]) -> TrainConfig:
    """The arguments as a configuration; what would be ignored is refused."""
    refused = ELSEWHERE if parts.env is not None else ("noise",) if noise is not None else ()
    refused = (*refused, *(("net",) if parts.encoder is not None else ()))
    for name in settings:
        if (part := name.partition("__")[0]) in refused:
            why = {"noise": "give noise= alone", "net": "the encoder is given as a module"}
            raise ValueError(f"{name} would be ignored: {why.get(part, 'the environment is given')}, leave it out")
    changes = dict(settings)
    if isinstance(objective, str):
        changes["objective"] = objective
    if isinstance(encoder, str):
        changes["net__encoder"] = encoder
    if parts.reward is not None and not isinstance(parts.reward, Landscape):
        changes.setdefault("log__exact_every", 0)  # to score every object is for the user to ask
    config = TrainConfig().with_(**changes)
    return _noted(parts, config if noise is None else _rated(config, noise))


def _baseline(parts: Parts, noise: Any, config: TrainConfig) -> TrainConfig:
    """The settings as they are where none is given; a noise that came as a rate or an object is not a setting."""
    named = parts.env is not None or noise is not None
    return TrainConfig().with_(noise=config.noise) if named else TrainConfig()


def _rated(config: TrainConfig, noise: Any) -> TrainConfig:
    """The configuration with a noise that settings can name."""
    named = noise_config(as_noise(noise))
    return config if named is None else config.with_(noise=named)


def _noted(parts: Parts, config: TrainConfig) -> TrainConfig:
    """The configuration with the noise of an environment that was given."""
    return config if parts.env is None or parts.noise is not None else _rated(config, parts.env.noise)


def learner_of(parts: Parts, task: Task, device: torch.device, offline: Int[Tensor, "N O"] | None = None) -> Learner:
    """The task's method at work, with the objective and the encoder that were given."""
    given = parts.objective  # a text where a loaded model was trained with a function that is not at hand
    objective = None if given is None or isinstance(given, str) else given
    if task.config.actors and parts.noise is not None and noise_config(parts.noise) is None:
        kind = type(parts.noise).__name__
        raise ValueError(f"actors make the task by settings alone, which cannot name this {kind}: leave actors out")
    if objective is None and parts.encoder is None:
        return build(task, device, offline)
    if task.config.method != "gfn":
        what = "an encoder" if objective is None else "an objective"
        raise ValueError(f"method {task.config.method!r} takes no {what[3:]} of your own: use method gfn")
    return Trainer(task, device, offline, objective=objective, encoder=parts.encoder)


def _train(learner: Learner, progress: Any, plain: bool) -> list[dict[str, Any]]:
    """Train to the end, or until Ctrl-C; returns the rows of metrics."""
    memory, steps, name = Memory(), learner.config.steps, learner.task.name
    way = "auto" if plain else "eager"
    advance = stepper(learner, way, insist=False)  # functions of others may wait for a GPU
    at_once = "stopped at once: there is no model"
    with shown(progress, name, steps) as display, stoppable((signal.SIGINT,), at_once) as stop:
        told = (None, None) if display is None else (display.line, display.pulse)
        if display is not None and (text := long_on_cpu(learner, way)):
            display.notice(by_arguments(text))
        try:
            loop(memory, learner, advance, told[0], stop, told[1])
        except NonFiniteError as error:
            error.args = (error.in_python,)
            raise
        finally:
            learner.close()  # worker processes; a model that scores again starts new ones
        if stop.asked and learner.done < steps:
            _tell(display, f"stopped at step {learner.done:,} of {steps:,}: the model is what was trained so far")
    if display is None and memory.rows and (text := on_floor(learner.task, memory.rows[-1].get("log_reward"))):
        _tell(None, text)  # a display has shown it with whatever else there is to say
    return memory.rows


def _tell(display: Display | None, text: str) -> None:
    if display is None:
        warnings.warn(by_arguments(text), stacklevel=4)
    else:
        display.notice(by_arguments(text))
