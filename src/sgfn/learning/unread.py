"""Settings that were given and that nothing reads: found from what each registry's entries say that they read."""

from collections.abc import Collection, Iterable, Iterator, Mapping
from operator import attrgetter
from typing import Any

from sgfn.config import TrainConfig
from sgfn.config.presets import PRESETS
from sgfn.config.reads import Reads, When, leaves, readers, reads, unread_fields
from sgfn.config.registry import Registry
from sgfn.envs import SequenceEnv
from sgfn.landscapes.tasks import TASKS, Task, is_known, make_task, task_entry
from sgfn.learning.exploration.registry import EXPLORATIONS
from sgfn.learning.registry import METHODS, check_names
from sgfn.nets.registry import ENCODERS
from sgfn.noise import NOISES
from sgfn.objectives import OBJECTIVES, objective_reads

ALWAYS = reads("method", "steps", "batch", "seed", "log.every", "log.checkpoint_every")
"""Settings that every run reads."""


def task_lines(config: TrainConfig, task: str | None = None) -> Iterator[Reads]:
    """What tasks and their noises read, each under the condition that it is chosen."""
    names = [*TASKS, *([task] if task is not None and task_entry(task).name not in TASKS else [])]
    for name in names:
        for line in task_entry(name).reading:
            yield line.also(When("task", (name,)))
    noisy = When("task", tuple(name for name in names if task_entry(name).noisy))
    yield reads("noise.kind", "offline.file").also(noisy)
    for name, entry in _chosen(NOISES, config.noise.kind):
        for line in entry.reads:
            yield line.also(When("noise.kind", (name,)), noisy)


def reading_lines(config: TrainConfig, task: str | None = None) -> Iterator[Reads]:
    """What everything that can be chosen reads, and what is chosen by `module:name`."""
    yield ALWAYS
    yield from task_lines(config, task)
    methods = dict(_chosen(METHODS, config.method))
    for name, entry in methods.items():
        only = (When("task", tuple(n for n in TASKS if not TASKS[n].noisy)),) if entry.forecasts else ()
        for line in entry.reads:
            yield line.also(When("method", (name,)), *only)
    learned = When("method", tuple(name for name, entry in methods.items() if entry.objective))
    for name, entry in _chosen(OBJECTIVES, config.objective):
        for line in objective_reads(entry, config):
            yield line.also(When("objective", (name,)), learned)
    for name, entry in _ways(config):
        for line in entry.reads:
            yield line.also(When("exploration", (name,)), When("method", ("gfn",)))
    encoded = When("method", tuple(name for name, entry in methods.items() if entry.encoder))
    for name, entry in _chosen(ENCODERS, config.net.encoder):
        for line in entry.reads:
            yield line.also(When("net.encoder", (name,)), encoded)


def _chosen(registry: Registry[Any], name: str) -> Iterator[tuple[str, Any]]:
    """All entries of a registry, and the chosen one where it is given by `module:name`."""
    yield from registry.items()
    if name not in registry:
        yield name, registry[name]


def _ways(config: TrainConfig) -> Iterator[tuple[str, Any]]:
    """All ways to explore, and the chosen ones where they are given by `module:name`."""
    yield from EXPLORATIONS.items()
    for name in config.explorations:
        if name not in EXPLORATIONS:
            yield name, EXPLORATIONS[name]


def facts_of(name: str, task: Task | None = None) -> dict[str, Any]:
    """Facts of a task beside its configuration, which conditions of `reads` ask for."""
    entry = task_entry(name)
    facts: dict[str, Any] = {"task": entry.name, "plain": name == entry.name}
    if task is not None and isinstance(task.env, SequenceEnv):
        facts["stop"] = task.env.stop
    return facts


def unread(task: str | Task | None, config: TrainConfig) -> list[str]:
    """Names of fields that a run of a task under a configuration does not read, whatever their values.

    >>> names = unread("grid", TrainConfig(method="ppo"))
    >>> "explore" in names, "rl.epochs" in names
    (True, False)
    """
    name, facts = _named(task)
    return unread_fields(list(reading_lines(config, name)), config, facts)


def _named(task: str | Task | None) -> tuple[str | None, dict[str, Any]]:
    """The name of a task that is known by it, and its facts; of one made by hand nothing is known."""
    if isinstance(task, Task):
        return (task.name, facts_of(task.name, task)) if is_known(task.name) else (None, {})
    return task, {} if task is None else facts_of(task)


def without_unread(config: TrainConfig, task: str | None = None) -> TrainConfig:
    """The configuration with every field that is not read at its default."""
    default = TrainConfig()
    changed = [name for name in unread(task, config) if _value(config, name) != _value(default, name)]
    return config.with_(**{name.replace(".", "__"): _value(default, name) for name in changed})


def given_fields(config: TrainConfig, baseline: TrainConfig | None, said: Collection[str] = ()) -> list[str]:
    """Names of fields that the user set: those that were said, and those that differ from `baseline`, or from every
    preset where it is None."""
    started = list(PRESETS.values()) if baseline is None else [baseline]
    differs = [name for name in leaves(config) if all(_value(config, name) != _value(one, name) for one in started)]
    return [name for name in leaves(config) if name in said or name in differs]


def refuse_unread(
    task: str | Task, config: TrainConfig, baseline: TrainConfig | None = None, said: Collection[str] = ()
) -> None:
    """Raise where a field was given that nothing reads, with one line that says what would read it.

    `baseline` is the preset that the configuration began with: its values were not given by the user. `said` are names
    of fields that were, whatever their values.
    """
    check_names(config)
    names = set(unread(task, config)) & set(given_fields(config, baseline, said))
    if names:
        name, facts = _named(task)
        lines = list(reading_lines(config, name))
        raise ValueError(unread_message([leaf for leaf in leaves(config) if leaf in names], lines, config, facts))


def refuse_unread_by_all(
    task: Task,
    config: TrainConfig,
    contestants: Mapping[str, TrainConfig],
    baseline: TrainConfig | None = None,
    said: Collection[str] = (),
) -> None:
    """`refuse_unread` for a comparison: at least one of its methods must read each field that was given."""
    ignored = [set(unread(task, _as(config, own))) for own in contestants.values()]
    names = set.intersection(*ignored) & set(given_fields(config, baseline, said))
    if not names:
        return
    facts, first = _named(task)[1], _as(config, next(iter(contestants.values())))
    lines = list(reading_lines(first, task.name))
    flags = [leaf for leaf in leaves(config) if leaf in names]
    one, *others = contestants
    who = f"none of {', '.join(contestants)} reads" if others else f"method {one!r} does not read"
    told = "; ".join(dict.fromkeys(reader_words(flag, lines, first, facts) for flag in flags))
    for word in ("method", "objective", "form"):  # names of methods decide these, flags do not
        told = told.replace(f"--{word} ", f"{word} ")
    given = ", ".join(f"--{flag}" for flag in flags)
    raise ValueError(f"{who} {given}: leave {_pronoun(flags)} out, or compare with {told}")


def _as(config: TrainConfig, own: TrainConfig) -> TrainConfig:
    """A configuration with the choices that a method's name makes."""
    return config.with_(method=own.method, objective=own.objective, form=own.form)


def refuse_unread_task(name: str | None, config: TrainConfig, said: Collection[str] = ()) -> None:
    """`refuse_unread` for showing one task, or all of them, without training."""
    check_names(config)
    if name is not None and not task_entry(name).declared:
        make_task(name, config)  # what its builder reads is known after that
    facts = {} if name is None else facts_of(name)
    lines = list(task_lines(config, name))
    names = set(unread_fields(lines, config, facts)) & set(given_fields(config, TrainConfig(), said))
    if names:
        raise ValueError(unread_message([leaf for leaf in leaves(config) if leaf in names], lines, config, facts))


def unread_message(names: list[str], lines: Iterable[Reads], config: TrainConfig, facts: Mapping[str, Any]) -> str:
    """One line that names flags that do nothing, and what would read them."""
    lines, parts = list(lines), dict[str, list[str]]()
    for name in names:
        parts.setdefault(reader_words(name, lines, config, facts), []).append(f"--{name.replace('_', '-')}")
    told = []
    for reader, flags in parts.items():
        do, are = ("does", "it is") if len(flags) == 1 else ("do", "they are")
        told.append(f"{', '.join(flags)} {do} nothing here: {are} read with {reader}")
    return f"{'; '.join(told)}; leave {_pronoun(names)} out"


def reader_words(name: str, lines: Iterable[Reads], config: TrainConfig, facts: Mapping[str, Any]) -> str:
    """What reads a field, in words."""
    return readers(lines, name, config, facts) or "sgfn train"


def _pronoun(names: list[str]) -> str:
    """`it` for one name, else `them`."""
    return "it" if len(names) == 1 else "them"


def _value(config: TrainConfig, name: str) -> Any:
    return attrgetter(name)(config)
