"""What a model is made of beside its settings: environment, noise, reward, objective and encoder, and their JSON."""

import math
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from sgfn.config import TrainConfig
from sgfn.config.files import read_json, write_json
from sgfn.config.importing import function_label, importable_name
from sgfn.envs import Constraints, Env, GridEnv, SequenceEnv
from sgfn.landscapes.base import Landscape
from sgfn.landscapes.function import FunctionLandscape, load_function
from sgfn.landscapes.measurements import resolve_alphabet
from sgfn.landscapes.tasks import Task, make_task, sequences
from sgfn.noise import ByPosition, ConfusionMatrix, HiddenRate, Mixtures, Noise, UniformSlip
from sgfn.noise.indel import Indel
from sgfn.runs.spaces import Grid, Sequences, as_noise, noise_config, with_noise
from sgfn.runs.trust import named_code, remember

FILE = "library.json"
FORMAT = 1
NOISES: dict[str, type[Noise]] = {
    "uniform": UniformSlip,
    "hidden": HiddenRate,
    "position": ByPosition,
    "confusion": ConfusionMatrix,
    "mixtures": Mixtures,
    "indel": Indel,
}
Description = dict[str, Any]
Reward = Callable[[list[str]], Any] | Landscape | str
"""A function of a list of strings, a landscape, or the name `module:function` of such a function."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Parts:
    """Python objects that were given instead of settings; None where the settings say it all."""

    name: str
    """Of the task, or of the environment that was given."""
    env: Env | None = None
    noise: Noise | None = None
    reward: Any = None
    """A function of a list of strings, or a landscape."""
    objective: Any = None
    """A function; its label alone where it is not at hand, as only training needs it."""
    encoder: nn.Module | None = None

    @property
    def plain(self) -> bool:
        """Whether a name and settings describe the model completely."""
        return all(getattr(self, part.name) is None for part in fields(self) if part.name != "name")


# Objects to task


def make(parts: Parts, config: TrainConfig) -> Task:
    """The task that the parts and the settings describe."""
    base = _named(parts, config) if parts.env is None else None
    env = parts.env if base is None else base.env
    assert env is not None
    env = env if parts.noise is None else with_noise(env, parts.noise)
    if parts.reward is not None:
        return _rewarded(parts, config, env)
    if base is None:
        raise ValueError(f"{parts.name} has no reward: give reward=, a function from a list of strings to their scores")
    return Task(name=base.name, summary=base.summary, env=env, landscape=base.landscape, beta=base.beta, config=config)


def _rewarded(parts: Parts, config: TrainConfig, env: Env) -> Task:
    """A task with a reward of its own, whose exponent is 1 unless it is given."""
    landscape = as_landscape(parts.reward, env)
    what = function_label(parts.reward) if not isinstance(parts.reward, Landscape) else type(landscape).__name__
    name = parts.name if parts.env is not None else f"{parts.name}, own reward"
    beta = 1.0 if config.beta is None else config.beta
    return Task(name=name, summary=f"scored by {what}", env=env, landscape=landscape, beta=beta, config=config)


def _named(parts: Parts, config: TrainConfig) -> Task:
    """The task of a name; `callable` needs no function in its settings where a reward is given."""
    if parts.name == "series":
        raise ValueError("task 'series' is learned by sgfn.Forecaster, not by sgfn.fit")
    if parts.name != "callable" or parts.reward is None:
        return make_task(parts.name, config)
    chosen = config.callable
    alphabet = resolve_alphabet(chosen.alphabet, "callable.alphabet")
    env = sequences(config, length=chosen.length, alphabet=alphabet, min_length=chosen.min_length)
    return _rewarded(parts, config, env)


def as_landscape(reward: Any, env: Env) -> Landscape:
    """Scores of an environment's objects: by a function of their texts, or by a landscape as it is."""
    if isinstance(reward, Landscape):
        return reward
    if not callable(reward):
        kind = type(reward).__name__
        raise ValueError(f"reward must be a function from a list of strings to as many scores, got {kind}")
    return FunctionLandscape(reward, env.decode, None, math.inf)


# Objects to JSON


def write_parts(folder: Path, parts: Parts, env: Env) -> None:
    """Describe the parts in a run folder, unless there are none; code is named, never stored."""
    if parts.plain:
        return
    data: Description = {"format": FORMAT, "task": parts.name}
    data["env"] = None if parts.env is None else describe_env(parts.env)
    given = parts.env is not None or parts.noise is not None
    data["noise"] = describe_noise(env.noise) if given else None
    data["reward"] = None if parts.reward is None else _describe_function(parts.reward)
    objective = parts.objective
    data["objective"] = objective if objective is None or isinstance(objective, str) else function_label(objective)
    data["encoder"] = None if parts.encoder is None else _kind(parts.encoder)
    write_json(folder / FILE, data)
    remember(named_code(named_parts(folder)))


def describe_env(env: Env) -> Description:
    """What an environment can be made from again, or the facts by which one that is given is recognised."""
    if isinstance(env, SequenceEnv) and type(env) in (SequenceEnv, Sequences):
        least = env.min_length if env.stop else env.length
        facts = {"kind": "sequences", "alphabet": env.alphabet, "length": env.length, "min_length": least}
        return facts if env.constraints is None else facts | {"constraints": _listed(asdict(env.constraints))}
    if isinstance(env, GridEnv) and type(env) in (GridEnv, Grid):
        return {"kind": "grid", "ndim": env.ndim, "side": env.side}
    return {"kind": "own", "label": _kind(env)} | _facts(env)


def _listed(data: Description) -> Description:
    """The same data with lists in place of tuples, as JSON has them."""
    return {name: list(value) if isinstance(value, tuple) else value for name, value in data.items()}


def describe_noise(noise: Noise) -> Description:
    """A noise as data; one of a class of its own by its label."""
    kind = next((name for name, known in NOISES.items() if type(noise) is known), None)
    words = {} if noise_config(noise) is not None else {"words": noise.summary}
    if kind is None:
        return {"kind": "own", "label": _kind(noise)} | words
    values = {part.name: getattr(noise, part.name) for part in fields(NOISES[kind]) if part.init}  # pyright: ignore
    plain = {name: value.tolist() if isinstance(value, Tensor) else value for name, value in values.items()}
    return {"kind": kind} | plain | words


def _describe_function(function: Any) -> Description:
    if isinstance(function, Landscape):
        return {"name": None, "label": _kind(function)}
    try:
        return {"name": importable_name(function), "label": function_label(function)}
    except ValueError:  # a lambda, or a function of a notebook
        return {"name": None, "label": function_label(function)}


def _kind(thing: object) -> str:
    return f"{type(thing).__module__}:{type(thing).__qualname__}"


def _facts(env: Env) -> Description:
    return {name: int(getattr(env, name)) for name in ("actions", "horizon", "width", "features")}


# JSON to objects


def read_parts(
    folder: Path,
    *,
    env: Env | None = None,
    noise: Noise | None = None,
    reward: Any = None,
    encoder: nn.Module | None = None,
) -> Parts | None:
    """The parts of a saved model, those that were given in their place; None where there are none.

    What cannot be made again must be given, and the error names it.
    """
    if not (folder / FILE).is_file():
        return None
    data = _read(folder / FILE)
    with _naming_damage(folder / FILE):
        return Parts(
            name=str(data["task"]),
            env=_read_env(folder, data["env"], env),
            noise=_read_noise(folder, data["noise"], noise, env if data["env"] is not None else None),
            reward=_read_reward(folder, data["reward"], reward),
            objective=data["objective"],
            encoder=_read_encoder(folder, data["encoder"], encoder),
        )


def named_parts(folder: Path) -> dict[str, str | None]:
    """The task and the reward that a saved model names; nothing where there is none."""
    if not (folder / FILE).is_file():
        return {}
    data = _read(folder / FILE)
    with _naming_damage(folder / FILE):
        return {"task": str(data["task"]), "reward": None if data["reward"] is None else data["reward"]["name"]}


@contextmanager
def _naming_damage(file: Path) -> Iterator[None]:
    """Turn what fails on fields of another kind than ours into one line that names the file."""
    try:
        yield
    except (TypeError, KeyError, AttributeError, OverflowError, RuntimeError) as error:
        raise ValueError(f"{file} was not written by sgfn, or is damaged ({error}): save the model again") from None


@contextmanager
def naming_values(file: Path) -> Iterator[None]:
    """Errors of values that begin with the file in which they stand."""
    try:
        yield
    except ValueError as error:
        raise ValueError(f"{file}: {error}") from None


def words_of(folder: Path) -> dict[str, str]:
    """What a report says of the noise and the objective of a saved model, where the settings do not say it."""
    data = _read(folder / FILE) if (folder / FILE).is_file() else {}
    noise = (data.get("noise") or {}).get("words")
    found = {"noise": noise, "objective": data.get("objective")}
    return {name: str(words) for name, words in found.items() if words is not None}


def _read(file: Path) -> Description:
    data = read_json(file)
    wanted = {"format", "task", "env", "noise", "reward", "objective", "encoder"}
    if not isinstance(data, dict) or not wanted <= data.keys():
        raise ValueError(f"{file} was not written by sgfn: fields {', '.join(sorted(wanted))} are expected")
    if data["format"] != FORMAT:
        raise ValueError(f"{file} has format {data['format']}, this version reads {FORMAT}: use the sgfn that wrote it")
    for name in ("env", "noise", "reward"):
        if not isinstance(data[name], dict | None):
            raise ValueError(f"{file}: {name} must be an object or null, got {type(data[name]).__name__}")
    for name in ("objective", "encoder"):
        if not isinstance(data[name], str | None):
            raise ValueError(f"{file}: {name} must be a text or null, got {type(data[name]).__name__}")
    return data


def _ask(folder: Path, what: str, known: str, name: str) -> ValueError:
    again = f"give it again, sgfn.load({str(folder)!r}, {name}=...)"
    return ValueError(f"{folder} was trained with {what} that cannot be found by name ({known}): {again}")


def _read_env(folder: Path, data: Description | None, given: Env | None) -> Env | None:
    if data is None:
        return given
    if given is not None:
        return _recognised(folder, data, given)
    if data["kind"] == "own":
        raise _ask(folder, "an environment", data["label"], "env")
    made = {name: value for name, value in data.items() if name != "kind"}
    with naming_values(folder / FILE):
        if "constraints" in made:
            made["constraints"] = _read_constraints(made["constraints"])
        return Grid(**made) if data["kind"] == "grid" else Sequences(**made)


def _read_constraints(data: Description) -> Constraints:
    """Constraints from JSON, which has lists in place of tuples."""
    values: dict[str, Any] = {name: tuple(value) if isinstance(value, list) else value for name, value in data.items()}
    return Constraints(**values)


def _recognised(folder: Path, data: Description, given: Env) -> Env:
    """The environment that is given, if it has the facts of the one that was trained on."""
    found = describe_env(given)
    for name in {**data, **found}:
        if name != "label" and found.get(name) != (value := data.get(name)):
            was = f"was trained on an environment with {name} {value!r}"
            raise ValueError(f"{folder} {was}, the one given has {found.get(name)!r}")
    return given


def _read_noise(folder: Path, data: Description | None, given: Noise | None, env: Env | None) -> Noise | None:
    if data is None or given is not None:
        return given
    if env is not None and (data["kind"] == "own" or env.noise_by_state):
        return None  # the environment that is given has it
    if env is not None:
        _refuse_other_noise(folder, data, env.noise)
    if data["kind"] == "own":
        raise _ask(folder, "a noise", data["label"], "noise")
    with naming_values(folder / FILE):
        return described_noise(data)


def described_noise(data: Mapping[str, Any]) -> Noise:
    """A noise of ours from its description; raises for values of another type than theirs."""
    values = {name: value for name, value in data.items() if name not in ("kind", "words")}
    for name in {"matrix", "substitution", "deletion", "insertion", "inserted"} & values.keys():
        values[name] = torch.tensor(values[name], dtype=torch.float64)
    for name, kind in (("alphas", float), ("flank", int)):
        if name in values:
            values[name] = tuple(kind(value) for value in values[name])
    for name, value in values.items():
        wanted = bool if name == "stop" else (int, float, tuple, torch.Tensor)
        if not isinstance(value, wanted) or (name != "stop" and isinstance(value, bool)):
            raise TypeError(f"noise.{name} is {type(value).__name__}")
    return NOISES[data["kind"]](**values)


def _refuse_other_noise(folder: Path, data: Description, noise: Noise) -> None:
    """Raise where the environment that is given has a noise, and not the one of the training."""
    found, silent = describe_noise(noise), describe_noise(as_noise(None))
    if found not in (silent, data):
        why = f"was trained under another noise than {noise.summary} of the environment that is given"
        raise ValueError(f"{folder} {why}: give env= without noise to take the saved one, or noise= to change it")


def _read_reward(folder: Path, data: Description | None, given: Any) -> Any:
    if data is None or given is not None:
        return given
    if data["name"] is None:
        raise _ask(folder, "a reward", data["label"], "reward")
    return load_function(data["name"])


def _read_encoder(folder: Path, data: str | None, given: nn.Module | None) -> nn.Module | None:
    if data is not None and given is None:
        raise _ask(folder, "an encoder", data, "encoder")
    if given is not None:
        refuse_superfluous(folder, "encoder", data is not None)
    return given


def refuse_superfluous(folder: Path, name: str, trained: bool) -> None:
    """Raise for an object that the model was not trained with."""
    if not trained:
        raise ValueError(f"{folder} was trained without {name}= of its own: leave {name} out")
