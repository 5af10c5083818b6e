"""A trained policy in memory: sample it, ask for its probabilities, evaluate it, save it and load it again."""

import json
import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from os import PathLike
from pathlib import Path
from typing import Any

import pandas as pd
import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from sgfn.config import TrainConfig
from sgfn.config.checks import in_range, whole_number
from sgfn.config.files import nulls, write_text
from sgfn.envs import Env, GridEnv, IndelEnv, SequenceEnv, laws, trajectories
from sgfn.envs.base import check_states, one_hot
from sgfn.envs.trajectories import finished, gathered
from sgfn.evaluation import exact
from sgfn.evaluation.likelihood import log_law
from sgfn.evaluation.measure import MODE_DISTANCE, ModeRule, check_count, check_limit, measure
from sgfn.evaluation.result import Evaluation
from sgfn.evaluation.stages import StageProgress, Stages
from sgfn.landscapes.tasks import Task, recorded
from sgfn.learning.execution import pick_device
from sgfn.learning.learner import Learner, NonFiniteError
from sgfn.learning.rollout import Actor, LogPolicy, as_actor, rollout
from sgfn.runs.copies import files_there, fitted_aside
from sgfn.runs.folder import Run
from sgfn.runs.parts import Parts, write_parts
from sgfn.runs.spelling import ORIGINS, spell_intended, texts
from sgfn.runs.train import absolute

BLOCK = 16384
"""Samples drawn at once where the policy is changed by a temperature."""
SCORED = 4096
"""Sequences whose probability is computed at once."""


@dataclass(frozen=True, kw_only=True)
class Samples:
    """Objects that came out, with their scores and what was intended."""

    sequences: list[str]
    """What came out, as text."""
    intended: list[str]
    """What was meant, as text; of environments that are no sequences, the numbers of the actions."""
    scores: Float[Tensor, " N"]
    """In the user's units: those of the table where there is one."""
    tokens: Int[Tensor, "N O"]
    """What came out, as integers; shorter sequences are filled up with the number after the last letter."""
    intentions: Int[Tensor, "N T"]
    """What was meant, step by step; -1 after the end."""
    origins: list[str] | None = None
    """`measured` or `predicted` for each score, where the landscape was made of measurements."""

    def __len__(self) -> int:
        return len(self.sequences)

    def to_frame(self) -> pd.DataFrame:
        """A table with the columns that `sgfn sample` writes."""
        told = {"sequence": self.sequences, "score": self.scores.numpy(), "intended": self.intended}
        return pd.DataFrame(told if self.origins is None else told | {"origin": self.origins})


class PolicyModule(nn.Module):
    """The policy as a torch module: states of the environment [*, S] to log-probabilities of intentions [*, A].

    It holds the model's own weights, so that training it trains the model.
    """

    def __init__(self, learner: Learner) -> None:
        super().__init__()
        self.networks = nn.ModuleDict({name: m for name, m in learner.modules().items() if name != "dynamics"})
        self._learner = [learner]  # in a list, as it is no part of the module

    def forward(self, states: Int[Tensor, "*batch S"]) -> Float[Tensor, "*batch A"]:
        """log pi(.|s) of raw states, minus infinity where an intention is illegal."""
        (learner,) = self._learner
        check_states(learner.task.env, states)
        return state_policy_of(learner)(learner.env.embed(states.to(learner.device)))


class Greedy:
    """Acts by the most probable intention of another actor."""

    def __init__(self, actor: Actor) -> None:
        self.actor = actor

    def log_policy(self, t: int, state: Int[Tensor, "B S"]) -> Float[Tensor, "B A"]:
        """Zero at the best intention, minus infinity elsewhere."""
        found = self.actor.log_policy(t, state)
        return one_hot(found.argmax(-1), found.shape[-1]).log()

    def observe(self, t: int, intended: Int[Tensor, " B"], realised: Int[Tensor, " B"]) -> None:
        """Pass what happened on to the policy that is changed."""
        self.actor.observe(t, intended, realised)


class Model:
    """A trained policy, its environment and its metrics; made by `sgfn.fit` and `sgfn.load`."""

    def __init__(self, learner: Learner, parts: Parts, rows: list[dict[str, Any]]) -> None:
        self.learner, self.parts, self.rows = learner, parts, rows
        for module in learner.modules().values():
            module.eval()

    @property
    def task(self) -> Task:
        """Environment, landscape and exponent."""
        return self.learner.task

    @property
    def env(self) -> Env:
        """The environment."""
        return self.task.env

    @property
    def config(self) -> TrainConfig:
        """The settings."""
        return self.learner.config

    @property
    def step(self) -> int:
        """Steps trained so far."""
        return self.learner.done

    @property
    def metrics(self) -> pd.DataFrame:
        """Logged figures, a row for each logged step."""
        return pd.DataFrame(self.rows)

    @property
    def actions(self) -> list[str]:
        """Names of the intentions, in the order of the columns of `policy`."""
        env = self.env
        if isinstance(env, SequenceEnv) and env.by_letter:
            return env.action_names
        if isinstance(env, GridEnv):
            return [*(f"+{i}" for i in range(env.ndim)), "stop"]
        return [str(i) for i in range(env.actions)]

    @cached_property
    def policy_module(self) -> PolicyModule:
        """The policy as a torch module of raw states."""
        return PolicyModule(self.learner)

    def __repr__(self) -> str:
        last = self.rows[-1] if self.rows else {}
        tv = f", TV {last['tv']:.3f}" if "tv" in last else ""
        return f"Model({self.task.name}, {self.env.noise_summary}, step {self.step:,} of {self.config.steps:,}{tv})"

    # what comes out

    def sample(self, n: int, temperature: float = 1.0, greedy: bool = False, *, seed: int | None = None) -> Samples:
        """Draw n objects from the policy in its noisy environment.

        A temperature above 1 flattens the policy, one below 1 sharpens it; `greedy` always intends what is most
        probable. The same seed gives the same samples on one device; without one, torch's global generator is asked.
        """
        check_count(self.learner, n, "n")
        seed = int(torch.randint(2**31 - 1, ())) if seed is None else seed
        drawn = gathered(list(self.stream(n, temperature, greedy, seed=seed)))
        return self._spelled(drawn.objects, drawn.scores, drawn.intended)

    def stream(
        self, n: int, temperature: float = 1.0, greedy: bool = False, *, seed: int = 0
    ) -> Iterator[trajectories.Samples]:
        """The draws of `sample` as integers, block by block, so that memory does not grow with n."""
        whole_number("n", n, 1)
        in_range("temperature", temperature, 1e-3, 1e3)
        whole_number("seed", seed, 0, 2**31 - 1)
        if not isinstance(greedy, bool):
            raise ValueError(f"greedy must be True or False, got {greedy!r}")
        if greedy and temperature != 1.0:
            raise ValueError("greedy intends what is most probable, at any temperature: leave temperature out")
        if temperature == 1.0 and not greedy:
            return self.learner.stream(n, seed)
        return self._roll(n, temperature, greedy, seed)

    def _roll(self, n: int, temperature: float, greedy: bool, seed: int) -> Iterator[trajectories.Samples]:
        """Rollouts of the changed policy."""
        generator = torch.Generator(self.learner.device).manual_seed(seed)
        for start in range(0, n, BLOCK):
            actor = actor_of(self.learner)  # one with a memory is not used twice
            batch = rollout(
                self.learner.env,
                Greedy(actor) if greedy else actor,
                self.task.landscape.scores,
                batch=min(BLOCK, n - start),
                generator=generator,
                temperature=temperature,
            )
            yield finished(self.learner.env, batch)

    def _spelled(
        self, objects: Int[Tensor, "N O"], scores: Float[Tensor, " N"], intended: Int[Tensor, "N T"]
    ) -> Samples:
        landscape = self.task.landscape
        known = landscape.measured(objects)
        return Samples(
            sequences=self.env.decode(objects),
            intended=texts(spell_intended(self.env, intended)),
            scores=landscape.told(objects, scores),
            tokens=objects,
            intentions=intended,
            origins=None if known is None else [ORIGINS[one] for one in known.tolist()],
        )

    # probabilities

    @torch.no_grad()
    def policy(self, prefixes: Sequence[str] | Int[Tensor, "N S"]) -> Float[Tensor, "N A"]:
        """Log-probabilities of the next intention after each prefix, one column for each of `actions`.

        Prefixes are strings ("" is the beginning; on a grid "0,2"), or states of the environment as a tensor.
        """
        return self.policy_module(states_of(self.env, prefixes)).cpu()

    @torch.no_grad()
    def log_prob(self, sequences: Sequence[str]) -> Float[Tensor, " N"]:
        """Log-probability that each sequence comes out, by the policy and the noise; exact.

        On a tree it is the product of the outcome laws along the one path; elsewhere it is read from `law`.
        """
        env, learner = self.env, self.learner
        objects, log_policy = env.parse(listed_texts("sequences", sequences)), learner.state_policy()
        if env.tree and log_policy is not None:
            blocks = objects.to(learner.device).split(SCORED)
            return torch.cat([log_law(learner.env, log_policy, block).cpu() for block in blocks])
        if laws.enumerable(env) and learner.has_law:
            return learner.law()[env.object_index(objects)].log()
        raise ValueError(
            f"log_prob needs one path to each sequence or a space of at most {laws.MAX_STATES:,} states, and "
            f"{self.task.name} has neither: count samples instead"
        )

    def law(self, *, target: bool = True, max_states: int = laws.MAX_STATES) -> pd.DataFrame:
        """The exact probability of every object, in a column `probability` beside `sequence`.

        With `target` also `score` and `target`, the law in proportion to the reward: every object is scored for it.
        """
        check_limit(max_states)
        env = laws.check_size(self.env, max_states)
        if not self.learner.has_law:
            raise ValueError(f"method {self.config.method!r} has no exact law on {self.task.name}: count samples")
        objects = env.all_objects()
        columns = {"sequence": env.decode(objects), "probability": self.learner.law().numpy()}
        if target:
            there = objects.to(self.learner.device)
            landscape = self.task.landscape
            columns["score"] = landscape.told(there, landscape.scores(there)).cpu().numpy()
            columns["target"] = exact.target(self.task.log_target(there).cpu(), self.learner.exponent).numpy()
        return pd.DataFrame(columns)

    def evaluate(
        self,
        *,
        samples: int = 2048,
        seed: int = 0,
        max_states: int = laws.MAX_STATES,
        mode_distance: int = MODE_DISTANCE,
        mode_level: float | None = None,
        progress: StageProgress | None = None,
    ) -> Evaluation:
        """The figures of `sgfn evaluate`: exact distances where all objects can be listed, and those of samples.

        To list them scores every one of them: where scores are dear, give a small `max_states`. A mode is a sample of a
        score as good as `mode_level`, in the user's units (by default the task's own), that lies further than
        `mode_distance` from better ones.
        `progress` is called with the name of a stage, how many of its parts are done, and of how many (or None).
        """
        modes = ModeRule(distance=mode_distance, level=mode_level)
        found = measure(self.learner, samples, seed, max_states, modes, Stages(progress))
        if found.tv is not None and math.isnan(found.tv):
            what = f"the networks of {self.task.name} give no probabilities: their weights are too large"
            raise NonFiniteError(what, "train the run again with a lower --optim.lr")
        return Evaluation(**nulls(dict(found)))

    # folders

    def save(self, path: Path | str, *, overwrite: bool = False) -> None:
        """Write a run folder, which `sgfn.load` and the command line read; code is named in it, never stored."""
        check_path(path)
        run, config = Run(path=Path(path)), absolute(self.config)
        parts = replace(self.parts, name=recorded(self.parts.name)) if self.parts.env is None else self.parts
        name = parts.name if self.task.name == self.parts.name else self.task.name
        if not overwrite and (run.path / "config.json").is_file():
            raise ValueError(f"{run.path} already holds a run: save(..., overwrite=True) replaces it")
        run.check(overwrite=overwrite)
        files = files_there(config)
        with (
            run.locked(),
            fitted_aside(self.task.landscape, files) as fitted,
            run.replacement(files | fitted, overwrite=overwrite) as new,
        ):
            new.create(name, config, fitted=fitted)
            write_parts(new.path, parts, self.env)
            write_text(new.metrics, "".join(json.dumps(row) + "\n" for row in self.rows))
            new.save(self.learner)


def check_path(path: object) -> None:
    """Raise unless a folder is given by its name."""
    if not isinstance(path, str | PathLike) or not str(path).strip():
        raise ValueError(f"path must be the name of a folder, got {path!r}")


def opened(run: Run, device: str) -> Model:
    """The model of a run folder with its networks alone, which is enough to draw from it and to evaluate it."""
    learner = run.load(pick_device(device))
    return Model(learner, Parts(name=learner.task.name), [])


def actor_of(learner: Learner) -> Actor:
    """The policy at work in a rollout, with or without a memory; raises where there is none."""
    try:
        return as_actor(learner.actor())
    except NotImplementedError:
        method = learner.config.method
        raise ValueError(f"method {method!r} has no policy to change: leave temperature and greedy out") from None


def state_policy_of(learner: Learner) -> LogPolicy:
    """The policy as a function of the state; raises where there is none."""
    log_policy = learner.state_policy()
    if log_policy is None:
        method = learner.config.method
        why = "remembers what happened before" if method == "gfn" else "has no policy"
        raise ValueError(f"method {method!r} {why}: it cannot be asked for a state's probabilities; draw samples")
    return log_policy


def listed_texts(name: str, given: Any) -> list[str]:
    """The texts of an argument that is a list of them; raises one line for anything else.

    >>> listed_texts("sequences", "ACGT")
    Traceback (most recent call last):
    ValueError: sequences must be a list of texts, got the text 'ACGT': write ['ACGT']
    """
    if isinstance(given, str):
        raise ValueError(f"{name} must be a list of texts, got the text {given!r}: write [{given!r}]")
    if not isinstance(given, Iterable):
        raise ValueError(f"{name} must be a list of texts, got {type(given).__name__}")
    texts = list(given)
    if wrong := [one for one in texts if not isinstance(one, str)]:
        raise ValueError(f"{name} must be texts, got {wrong[0]!r}")
    return texts


def states_of(env: Env, prefixes: Sequence[str] | Tensor) -> Int[Tensor, "N S"]:
    """Unfinished states from their texts, or as they are."""
    states = prefixes if isinstance(prefixes, Tensor) else _parsed(env, listed_texts("prefixes", prefixes))
    if states.ndim != 2 or states.shape[1] != env.width:
        raise ValueError(f"states must have the shape [N, {env.width}], got {list(states.shape)}")
    check_states(env, states)
    if bool((done := env.done(states)).any()):
        row = int(done.int().argmax())
        raise ValueError(f"entry {row + 1} ({prefixes[row]!r}) is finished: nothing can be intended after it")
    return states


def _parsed(env: Env, texts: list[str]) -> Int[Tensor, "N S"]:
    if isinstance(env, SequenceEnv):
        codes = [_prefix(env, number, text) for number, text in enumerate(texts, start=1)]
        letters = torch.tensor(codes, dtype=torch.int64).view(-1, env.length)
        if isinstance(env, IndelEnv):  # the prefix after as many cycles as it has letters
            return torch.cat([letters, env.written(letters)[:, None]], 1)
        return letters
    if isinstance(env, GridEnv):
        cells = env.parse(texts)
        return torch.cat([cells, torch.zeros_like(cells[:, :1])], -1)
    raise ValueError(f"{type(env).__name__} has no prefixes as text: give states as a tensor [N, {env.width}]")


def _prefix(env: SequenceEnv, number: int, text: str) -> list[int]:
    """The codes of one prefix, blanks behind."""
    wrong = sorted({letter for letter in text if letter not in env.alphabet})
    if wrong:
        raise ValueError(f"entry {number} ({text!r}): letters {wrong} are not in the alphabet {env.alphabet}")
    if len(text) > env.length:
        raise ValueError(f"entry {number} ({text!r}): {len(text)} letters, a sequence has at most {env.length}")
    return [env.alphabet.index(letter) for letter in text] + [env.blank] * (env.length - len(text))
