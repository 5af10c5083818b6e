"""Tasks by name: an environment, a landscape, and the exponent they are usually run with."""

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, fields, replace
from functools import partial
from importlib.util import find_spec
from operator import attrgetter
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor

from sgfn.config import TrainConfig
from sgfn.config.checks import one_of
from sgfn.config.importing import find, importable_name
from sgfn.config.reads import Reads, above, given, leaves, reads
from sgfn.config.recording import Observed, plain
from sgfn.config.registry import Entry, Registry, called_as, of_kind, refuse_arguments
from sgfn.config.series import SeriesConfig
from sgfn.config.tasks import CallableConfig, ConstraintsConfig, GridConfig, TableConfig, charge_range, gc_range
from sgfn.envs import Constraints, Env, GridEnv, IndelEnv, SequenceEnv
from sgfn.landscapes import tfbind8
from sgfn.landscapes.base import Landscape
from sgfn.landscapes.bits import Bits
from sgfn.landscapes.ehrlich import Ehrlich
from sgfn.landscapes.function import FunctionLandscape, letters, load_function
from sgfn.landscapes.hypergrid import DeceptiveHypergrid, Hypergrid
from sgfn.landscapes.measured import MeasuredLandscape, Rule
from sgfn.landscapes.measurements import Measurements, read_measurements, resolve_alphabet
from sgfn.landscapes.motif import Motif
from sgfn.landscapes.proxies import Proxy, fit_proxy
from sgfn.landscapes.proxies.files import read_proxy
from sgfn.landscapes.read_out import ReadOut
from sgfn.landscapes.rna import ALPHABET as RNA_LETTERS
from sgfn.landscapes.rna import Rna
from sgfn.landscapes.table import TableLandscape
from sgfn.landscapes.words import Words
from sgfn.noise import make_noise
from sgfn.noise.indel import Indel


@dataclass(frozen=True, kw_only=True)
class Task:
    """What to build and what it is worth."""

    name: str
    summary: str
    env: Env
    landscape: Landscape
    beta: float
    config: TrainConfig
    series: Any = None
    """What there is to learn from, where the objects are forecasts."""

    def log_reward(self, objects: Int[Tensor, "*batch O"]) -> Float[Tensor, "*batch"]:
        """log R before the exponent (mission M7); under constraints at most its floor where an object breaks one, so
        that noise which breaks them is learned from, with finite losses."""
        found, fits = self.landscape.log_reward(objects, self.config.reward), self.env.admissible(objects)
        if fits is None:
            return found
        floor = math.log(self.config.reward.minimum) - math.log(self.config.reward.norm)
        return torch.where(fits, found, found.clamp(max=floor))

    def log_target(self, objects: Int[Tensor, "*batch O"]) -> Float[Tensor, "*batch"]:
        """log R of the target law: as `log_reward`, and minus infinity where an object breaks a constraint."""
        found, fits = self.landscape.log_reward(objects, self.config.reward), self.env.admissible(objects)
        return found if fits is None else torch.where(fits, found, -torch.inf)


CORNERS = "peaks in the corners (Bengio et al. 2021)"


# Builders: the first line of each docstring is what the list of tasks says where one cannot be built yet


def _tfbind8(name: str, config: TrainConfig) -> Task:
    """DNA 8-mers, binding to a transcription factor (Barrera et al. 2016)"""
    table = name.partition("-")[2] or tfbind8.DEFAULT
    env = sequences(config, length=tfbind8.LENGTH, alphabet=tfbind8.ALPHABET)
    landscape = TableLandscape(torch.from_numpy(tfbind8.load_scores(table)), vocab=env.vocab, mode_level=0.9)
    return assemble(name, config, env, landscape, 3.0, f"DNA 8-mers, binding to {table.upper()} (Barrera et al. 2016)")


def _grid(name: str, config: TrainConfig) -> Task:
    """hypergrid, peaks in the corners (Bengio et al. 2021)"""
    ndim, side = config.grid.ndim, config.grid.side
    env = GridEnv(ndim=ndim, side=side, noise=make_noise(config.noise, None, ndim * (side - 1) + 1))
    r0, least = config.grid.r0, config.reward.minimum
    if r0 < least and config.grid != GridConfig(ndim=ndim, side=side):
        raise ValueError(f"grid.r0 {r0:g} lies below reward.minimum {least:g}, which would hide it: lower that one too")
    deceptive = config.grid.shape == "deceptive"
    landscape = DeceptiveHypergrid(side=side, r0=r0, r1=0.1) if deceptive else Hypergrid(side=side, r0=r0)
    where = "peaks in the corners, a lure in the middle (Kim et al. 2025)" if deceptive else CORNERS
    return assemble(name, config, env, landscape, 1.0, f"hypergrid, {ndim} coordinates of {side} cells, {where}")


def _words(name: str, config: TrainConfig) -> Task:
    """DNA strings of 1 to 7 letters near three hidden words: variable length"""
    env = sequences(config, length=7, alphabet="ACGT", min_length=1)
    summary = "DNA strings of 1 to 7 letters near three hidden words: variable length"
    return assemble(name, config, env, Words(alphabet=env.alphabet), 1.0, summary)


def _motif(name: str, config: TrainConfig) -> Task:
    """DNA that a transcription factor of JASPAR CORE binds, R = exp(score)"""
    chosen, factor = config.motif, name.partition("-")[2] or config.motif.factor
    with _naming("motif", chosen):
        landscape = Motif.named(factor, length=chosen.length, score=chosen.score)
    env = sequences(config, length=chosen.length, alphabet=tfbind8.ALPHABET)
    which = "mean" if chosen.score == "sum" else "best"
    summary = f"DNA of {chosen.length} letters, {which} PWM score of {landscape.name} (JASPAR 2024)"
    return assemble(name, config, env, landscape, 3.0, summary)


def _bits(name: str, config: TrainConfig) -> Task:
    """bit strings near hidden modes (Malkin et al. 2022)"""
    with _naming("bits", config.bits):
        landscape = Bits(**vars(config.bits))
    env = sequences(config, length=landscape.tokens, alphabet=landscape.alphabet)
    summary = (
        f"{landscape.length} bits, {landscape.k} at a time, near {len(landscape.modes)} modes (Malkin et al. 2022)"
    )
    return assemble(name, config, env, landscape, 3.0, summary)


def _ehrlich(name: str, config: TrainConfig) -> Task:
    """motifs with spacings and forbidden neighbours (Stanton et al. 2024)"""
    with _naming("ehrlich", config.ehrlich):
        landscape = Ehrlich(**vars(config.ehrlich))
    env = sequences(config, length=landscape.length, alphabet=landscape.alphabet)
    summary = (
        f"Ehrlich function, {len(landscape.motifs)} motifs of {landscape.motif_length} in {env.length} letters "
        "(Stanton et al. 2024)"
    )
    return assemble(name, config, env, landscape, 1.0, summary)


def _rna(name: str, config: TrainConfig) -> Task:
    """RNA that binds a target or folds stably, by ViennaRNA (Lorenz et al. 2011)"""
    with _naming("rna", config.rna):
        landscape = Rna(**vars(config.rna))
    env = sequences(config, length=landscape.length, alphabet=RNA_LETTERS)
    aim = f"binding to {config.rna.target}" if config.rna.mode == "bind" else "folding"
    return assemble(name, config, env, landscape, 3.0, f"RNA of {env.length} letters, {aim}, by ViennaRNA")


def _table(name: str, config: TrainConfig) -> Task:
    """your own measurements: a CSV of sequences and scores"""
    chosen = config.table
    if chosen.file is None:
        raise ValueError("task 'table' needs a CSV of sequences and scores: name it with --table.file")
    found = read_measurements(
        chosen.file,
        chosen.alphabet,
        sequence_column=chosen.sequence_column,
        score_column=chosen.score_column,
        sd_column=chosen.sd_column,
        scale=chosen.scale,
        duplicates=chosen.duplicates,
        minimise=chosen.minimise,
        transform=chosen.transform,
    )
    _check_sign(found, chosen)
    shortest, longest = found.min_length, found.max_length
    env = sequences(config, length=longest, alphabet=found.alphabet, min_length=shortest)
    rule, proxy = _unseen(found, config)
    landscape = MeasuredLandscape(found, length=longest, unseen=rule, decay=chosen.decay, proxy=proxy)
    _check_range(landscape, config)
    size = f"{shortest} to {longest}" if env.stop else str(longest)
    summary = f"{len(found.sequences):,} measured sequences of {size} letters in {chosen.file.name}"
    summary += f", others by {proxy.kind}" if proxy is not None else ""
    return assemble(name, config, env, landscape, 1.0, summary)


def _callable(name: str, config: TrainConfig) -> Task:
    """any Python function from strings to scores"""
    chosen = config.callable
    if chosen.function is None:
        raise ValueError("task 'callable' needs a function: name it with --callable.function module:function")
    with _naming("callable", chosen):
        function = load_function(chosen.function)
    alphabet = resolve_alphabet(chosen.alphabet, "callable.alphabet")
    env = sequences(config, length=chosen.length, alphabet=alphabet, min_length=chosen.min_length)
    known = math.inf if chosen.maximum is None else 0.9 * chosen.maximum
    level = known if chosen.mode_level is None else chosen.mode_level
    names = ("on_error", "retries", "keep_scores", "workers", "timeout")
    options: dict[str, Any] = {name: getattr(chosen, name) for name in names}
    options |= {"made_by": partial(find, chosen.function, "function")}
    decode = letters(alphabet)
    landscape = FunctionLandscape(function, decode, chosen.maximum, level, name=chosen.function, **options)
    return assemble(name, config, env, landscape, 1.0, f"strings scored by {chosen.function}")


Builder = Callable[[str, TrainConfig], Task]
_COLUMNS = ("time_col", "target_col", "id_col", "known", "ignore")
_CONDITIONAL = (*_COLUMNS, "dataset", "deviation", "holidays", "patience", "spare")
"""Settings of series that are read only together with another choice."""


@dataclass(frozen=True, kw_only=True)
class TaskEntry(Entry):
    """A task that can be chosen by name."""

    build: Builder | str
    """Makes the task from its name and a configuration; `module:function` is imported when it is needed."""
    variants: bool = False
    """Whether its name may go on: tfbind8-TABLE, motif-FACTOR."""
    needs: Callable[[TrainConfig], tuple[str, bool]] = lambda config: ("", True)
    """What must be there before it can be built, and whether it is."""
    noisy: bool = True
    """Whether the configured noise acts on it."""
    found_as: str | None = None
    """The name under which a later process finds it again; None where that is its own name."""
    declared: bool = True
    """Whether somebody wrote down what it reads; of a builder alone it is what it is seen to read when it is called."""
    lost: str = ""
    """Why no later process can find it, where that is so."""

    @property
    def builder(self) -> Builder:
        """What makes the task."""
        return find(self.build, "task") if isinstance(self.build, str) else self.build

    @property
    def reading(self) -> tuple[Reads, ...]:
        """The settings that it reads, as far as that is known."""
        seen = None if self.declared else OBSERVED.fields(self.name)
        return self.reads if seen is None else (reads("reward.minimum", "reward.norm", *sorted(seen)),)

    @property
    def line(self) -> str:
        """What it is, for the list of tasks where it cannot be built yet; by default the builder's first line."""
        return self.about or (self.builder.__doc__ or self.name).splitlines()[0]


def wrap(name: str, found: Any) -> TaskEntry:
    """The entry of a builder that is not ours; before it is called it may read any task's settings."""
    build = refuse_arguments("task", name, found, "a function (name, config) -> Task", "name", "config")
    anything = reads("beta", "reward.minimum", "reward.norm", *SECTIONS)
    return TaskEntry(name=name, build=build, reads=(anything,), declared=False)


PROXY_FROM = 20
"""Measured sequences from which on a proxy is fitted to them, unless another rule is asked for."""
OBSERVED = Observed()
"""Settings that builders of others were seen to read."""
SECTIONS = ("grid", "motif", "bits", "ehrlich", "rna", "table", "proxy", "callable", "constraints")
_SCORED = reads("beta", "reward.minimum", "reward.norm")
_LETTERS = reads("constraints")
"""What every task of sequences reads."""
TASKS: Registry[TaskEntry] = Registry(
    "task",
    wrap,
    TaskEntry(name="tfbind8", build=_tfbind8, reads=(_SCORED, _LETTERS), variants=True),
    TaskEntry(name="grid", build=_grid, reads=(_SCORED, reads("grid"))),
    TaskEntry(name="words", build=_words, reads=(_SCORED, _LETTERS)),
    TaskEntry(name="gb1", build="sgfn.landscapes.complete_tasks:gb1", reads=(_SCORED, _LETTERS)),
    TaskEntry(name="mpsa", build="sgfn.landscapes.complete_tasks:mpsa", reads=(_SCORED, _LETTERS)),
    TaskEntry(
        name="motif",
        build=_motif,
        reads=(
            reads("beta", "reward.norm", "motif.length", "motif.score"),
            reads("motif.factor", plain=True),
            _LETTERS,
        ),
        variants=True,
    ),
    TaskEntry(name="bits", build=_bits, reads=(_SCORED, _LETTERS, reads("bits"))),
    TaskEntry(name="ehrlich", build=_ehrlich, reads=(_SCORED, _LETTERS, reads("ehrlich"))),
    TaskEntry(
        name="rna",
        build=_rna,
        reads=(
            _SCORED,
            _LETTERS,
            reads("rna.mode", "rna.length", "rna.workers"),
            reads("rna.target", rna__mode="bind"),
            reads("ahead", "deterministic", workers=above("rna.workers", 1)),
        ),
        needs=lambda config: ("sgfn[rna]", find_spec("RNA") is not None),
    ),
    TaskEntry(
        name="table",
        build=_table,
        reads=(
            _SCORED,
            _LETTERS,
            reads(*(f"table.{part.name}" for part in fields(TableConfig) if part.name != "decay")),
            reads("table.decay", table__unseen=("auto", "nearest")),
            reads("proxy.file", table__unseen=("auto", "proxy")),
            reads(
                "proxy.kind",
                "proxy.folds",
                "proxy.seed",
                table__unseen=("auto", "proxy"),
                file=given("proxy.file", False),
            ),
        ),
        needs=lambda config: ("--table.file", config.table.file is not None),
    ),
    TaskEntry(
        name="callable",
        build=_callable,
        reads=(
            _SCORED,
            _LETTERS,
            reads(*(f"callable.{part.name}" for part in fields(CallableConfig) if part.name != "retries")),
            reads("callable.retries", callable__on_error=("retry", "skip")),
            reads("callable.retries", workers=above("callable.workers", 1)),
            reads("ahead", "deterministic", workers=above("callable.workers", 1)),
            reads("ahead", "deterministic", timeout=above("callable.timeout", 0)),
        ),
        needs=lambda config: ("--callable.function", config.callable.function is not None),
    ),
    TaskEntry(
        name="series",
        build="sgfn.series.task:make",
        about="forecasts of time series: embedded data, or your own CSV",
        noisy=False,
        reads=(
            reads(*(f"series.{part.name}" for part in fields(SeriesConfig) if part.name not in _CONDITIONAL)),
            reads("series.dataset", file=given("series.file", False)),
            reads(*(f"series.{name}" for name in _COLUMNS), file=given("series.file")),
            reads("series.deviation", series__noise=("known", "learned")),
            reads("series.holidays", series__calendar=True),
            reads("series.patience", folds=above("series.folds", 0)),
            reads("series.spare", spares=given("series.spares", False)),
        ),
    ),
)


def task_names() -> list[str]:
    """Every task that can be trained now; tables fetched into the cache included."""
    tables = [f"tfbind8-{name.lower()}" for name in tfbind8.available() if name != tfbind8.DEFAULT]
    return ["tfbind8", *tables, *[name for name in TASKS if name != "tfbind8"]]


def task_entry(name: str) -> TaskEntry:
    """The entry of a task by its name, `module:name` or tfbind8-TABLE; an unknown one gets the nearest suggested."""
    if not is_known(name):
        one_of("task", name, task_names())
    return TASKS[name] if name in TASKS or ":" in name else TASKS[name.partition("-")[0]]


def is_known(name: str) -> bool:
    """Whether a task can be made from a name alone, as far as can be told without importing anything."""
    kind, _, variant = name.partition("-")
    return name in TASKS or ":" in name or (kind in TASKS and TASKS[kind].variants and bool(variant.strip()))


def make_task(name: str, config: TrainConfig) -> Task:
    """Build a task; an unknown name gets the nearest one suggested."""
    entry = task_entry(name)
    builder = entry.builder

    def build(own: TrainConfig) -> Any:
        made = builder(name, own)
        if not (isinstance(made, Task) and isinstance(made.config, TrainConfig) and isinstance(made.beta, float | int)):
            return made
        kept = plain(made.config)
        for field in leaves(config):
            if attrgetter(field)(kept) != attrgetter(field)(config):
                attrgetter(field)(own)  # what the builder sets itself counts as read: the user did not give it
        return replace(made, config=kept)

    with called_as("task", name):
        found = builder(name, config) if entry.declared else OBSERVED.call(entry.name, build, config)
    found = of_kind("task", name, found, Task)
    kinds = {"env": Env, "landscape": Landscape, "beta": float | int, "config": TrainConfig}
    for part, kind in kinds.items():
        if not isinstance(value := getattr(found, part), kind):
            wanted = "number" if part == "beta" else getattr(kind, "__name__", "")
            raise ValueError(f"task {name!r}: makes a Task whose {part} is a {type(value).__name__}, not a {wanted}")
    return found


def register_task(name: str, builder: Builder, **facts: Any) -> TaskEntry:
    """Make a task known by a name; `facts` are those of a `TaskEntry` (what it reads, its label).

    Runs and comparisons record it as `module:builder`, so that workers and later processes find it again. A builder
    that is part of a script or a notebook can be trained and evaluated there, but not compared: see `recorded`.
    """
    if ":" in name or not name:
        raise ValueError(f"task {name!r}: a name to register may not be empty or hold a colon")
    found_as, lost = None, ""
    try:
        found_as = importable_name(builder)
    except ValueError as error:
        lost = str(error)
        if getattr(builder, "__module__", "") == "__main__" and "<" not in builder.__qualname__:
            found_as = f"__main__:{builder.__qualname__}"
    facts = {"declared": "reads" in facts} | facts
    entry = replace(wrap(name, builder), found_as=found_as, lost=lost, **facts)
    OBSERVED.forget(name)
    return TASKS.add(entry)


def recorded(name: str, *, elsewhere: bool = False) -> str:
    """The name of a task as files keep it: `module:builder` of one that was registered, else the name itself.

    With `elsewhere` another process must find it, and one that it could not find is refused.
    """
    entry = task_entry(name)
    if elsewhere and (entry.lost or name.startswith("__main__:")):
        why = entry.lost or "it is part of the script that runs: move it to a module of its own and import it"
        raise ValueError(f"task {name!r} is unknown to other processes: {why}")
    return name if entry.found_as is None else entry.found_as


def function_config(function: Callable[[list[str]], Any], **fields: Any) -> CallableConfig:
    """Settings of the `callable` task for a function at hand, which a later process must find again by its name.

    >>> import shlex
    >>> function_config(shlex.join, length=5).function
    'shlex:join'
    """
    return CallableConfig(function=importable_name(function), **fields)


# Parts that builders share


def sequences(config: TrainConfig, *, length: int, alphabet: str, min_length: int | None = None) -> SequenceEnv:
    """Sequences under the configured noise: of one length, or with a stop action from a least length on."""
    noise = make_noise(config.noise, alphabet, length)
    rules = make_constraints(config.constraints)
    if isinstance(noise, Indel):
        if min_length not in (None, length):
            raise ValueError(
                "noise.kind 'indel' writes sequences of one length step by step, and this task has several: choose "
                "another kind, or `sgfn design propose`, which orders whole sequences"
            )
        return IndelEnv(length=length, alphabet=alphabet, noise=noise, constraints=rules)
    if min_length is None or min_length == length:
        return SequenceEnv(length=length, alphabet=alphabet, noise=noise, constraints=rules)
    varies: dict[str, Any] = {"stop": True, "min_length": min_length}
    return SequenceEnv(length=length, alphabet=alphabet, noise=noise, constraints=rules, **varies)


def make_constraints(config: ConstraintsConfig) -> Constraints | None:
    """The configured constraints; None where there are none."""
    given = constraint_values(config)
    return Constraints(**given) if given else None


def constraint_values(config: ConstraintsConfig) -> dict[str, Any]:
    """The constraints that are given, by the names and in the types of `Constraints`."""
    given = {name: value for name, value in vars(config).items() if value is not None}
    if "forbid" in given:
        given["forbid"] = tuple(motif for motif in given["forbid"].replace(",", " ").split())
    if "gc" in given:
        given["gc"] = gc_range(given["gc"])
    if "charge" in given:
        given["charge"] = charge_range(given["charge"])
    return given


def assemble(name: str, config: TrainConfig, env: Env, landscape: Landscape, beta: float, summary: str) -> Task:
    """A task with the configured exponent, or else the one given."""
    beta = beta if config.beta is None else config.beta
    landscape = ReadOut(landscape, env) if isinstance(env, IndelEnv) else landscape
    return Task(name=name, summary=summary, env=env, landscape=landscape, beta=beta, config=config)


@contextmanager
def _naming(section: str, config: Any) -> Iterator[None]:
    """Errors that begin with a field's name get the section's before it, as the flag has."""
    try:
        yield
    except ValueError as error:
        known = {field.name for field in fields(config)}
        prefix = f"{section}." if str(error).partition(" ")[0] in known else ""
        raise ValueError(f"{prefix}{error}") from error.__cause__


def _unseen(found: Measurements, config: TrainConfig) -> tuple[Rule, Proxy | None]:
    """The rule for what was not measured, and the proxy where that is the rule: one that was kept, or a new one."""
    rule = config.table.unseen
    if rule == "auto":
        rule = "proxy" if len(found.sequences) >= PROXY_FROM else "nearest"
    if rule != "proxy":
        return rule, None
    if config.proxy.file is not None:
        return rule, read_proxy(config.proxy.file, found)
    options = {"kind": config.proxy.kind, "folds": config.proxy.folds, "seed": config.proxy.seed}
    return rule, fit_proxy(found.sequences, found.values, alphabet=found.alphabet, sd=found.value_sd, **options)


def _check_sign(found: Measurements, chosen: TableConfig) -> None:
    """Rewards are zero or above."""
    if (lowest := float(found.values.min())) < 0:
        which = "minimise" if chosen.minimise else f"transform {chosen.transform}"
        raise ValueError(
            f"table.{which} makes the values of {chosen.file} negative, down to {lowest:g}: "
            "add --table.scale minmax, which maps them to 0..1"
        )


def _check_range(landscape: MeasuredLandscape, config: TrainConfig) -> None:
    """Scores that are all clipped to the same reward teach nothing."""
    if landscape.highest <= float(torch.tensor(config.reward.minimum)):  # rounded as the scores are
        raise ValueError(
            f"{config.table.file}: no score is above --reward.minimum ({config.reward.minimum:g}), the highest is "
            f"{landscape.highest:g}; lower --reward.minimum, or scale with --table.scale minmax"
        )
