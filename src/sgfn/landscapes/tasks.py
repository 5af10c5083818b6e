"""Tasks by name: the registry, what each of them reads, and how one is made."""

import re
from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from importlib.util import find_spec
from operator import attrgetter
from typing import Any

from sgfn.config import TrainConfig
from sgfn.config.checks import one_of
from sgfn.config.importing import find, importable_name
from sgfn.config.reads import Reads, above, given, leaves, reads
from sgfn.config.recording import Observed, plain
from sgfn.config.registry import Entry, Registry, called_as, of_kind, refuse_arguments
from sgfn.config.series import SeriesConfig
from sgfn.config.tasks import CallableConfig, TableConfig
from sgfn.envs import Env
from sgfn.landscapes import builders, tfbind8
from sgfn.landscapes.base import Landscape
from sgfn.landscapes.task import Task as Task
from sgfn.landscapes.task import assemble as assemble
from sgfn.landscapes.task import sequences as sequences

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


OBSERVED = Observed()
"""Settings that builders of others were seen to read."""
SECTIONS = ("grid", "motif", "bits", "ehrlich", "rna", "table", "proxy", "callable", "constraints")
_SCORED = reads("beta", "reward.minimum", "reward.norm")
_LETTERS = reads("constraints")
"""What every task of sequences reads."""
TASKS: Registry[TaskEntry] = Registry(
    "task",
    wrap,
    TaskEntry(name="tfbind8", build=builders.tfbind8_task, reads=(_SCORED, _LETTERS), variants=True),
    TaskEntry(name="grid", build=builders.grid_task, reads=(_SCORED, reads("grid"))),
    TaskEntry(name="words", build=builders.words_task, reads=(_SCORED, _LETTERS)),
    TaskEntry(name="gb1", build="sgfn.landscapes.complete_tasks:gb1", reads=(_SCORED, _LETTERS)),
    TaskEntry(name="mpsa", build="sgfn.landscapes.complete_tasks:mpsa", reads=(_SCORED, _LETTERS)),
    TaskEntry(
        name="motif",
        build=builders.motif_task,
        reads=(
            reads("beta", "reward.norm", "motif.length", "motif.score"),
            reads("motif.factor", plain=True),
            _LETTERS,
        ),
        variants=True,
    ),
    TaskEntry(name="bits", build=builders.bits_task, reads=(_SCORED, _LETTERS, reads("bits"))),
    TaskEntry(name="ehrlich", build=builders.ehrlich_task, reads=(_SCORED, _LETTERS, reads("ehrlich"))),
    TaskEntry(
        name="rna",
        build=builders.rna_task,
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
        build=builders.table_task,
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
        build=builders.callable_task,
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
OURS = frozenset(TASKS)
"""Names of the tasks that are part of sgfn."""


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
    if not isinstance(name, str) or not re.fullmatch(r"[\w.+-]+", name) or name.startswith((".", "-")):
        wanted = "be of letters, digits, _, +, - and ., and begin with none of the last two"
        raise ValueError(f"the name of a task must {wanted}, got {name!r}")
    kind, _, variant = name.partition("-")
    if name in OURS or (variant and kind in OURS and TASKS[kind].variants):
        raise ValueError(f"task {name!r} is one of sgfn: register yours under another name")
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
