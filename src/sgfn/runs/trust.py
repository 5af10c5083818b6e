"""What a folder may make its reader do: code and files that only its own words name are used where the reader asks.

A run of somebody else's names functions (`objective`, `callable.function`, ...) and files in its config.json. Reading
it imports and opens none of them, unless the reader names them again or trusts the folder; what was created or
registered in this process was named by whoever runs it.
"""

import shlex
from collections.abc import Iterable, Mapping
from operator import attrgetter
from pathlib import Path

from sgfn.config import TrainConfig
from sgfn.config.files import resolved
from sgfn.config.registry import Registry
from sgfn.landscapes.proxies import PROXIES
from sgfn.landscapes.tasks import TASKS
from sgfn.learning import registry
from sgfn.objectives import OBJECTIVES

Trust = bool | Mapping[str, str]
"""Everything (True), nothing (False), or what the reader names again: values by field, `{"objective": "mine:loss"}`."""
CODE = (*registry.choices(), "proxy.kind", "callable.function")
"""Fields of a configuration that may hold `module:name`."""
REGISTRIES: dict[str, Registry] = {"task": TASKS} | {
    field: registry.REGISTRIES.get(field, OBJECTIVES) for field in registry.choices()
}
REGISTRIES["proxy.kind"] = PROXIES
"""By the field that takes their names; what is built on an objective names another."""
CREATED: set[tuple[str, str]] = set()
"""Fields with the names that this process gave to runs which it created."""


def words_of(task: str, config: TrainConfig) -> dict[str, str | None]:
    """What a task and a configuration say in fields that can name code or files."""
    code = {"task": task} | {field: attrgetter(field)(config) for field in CODE}
    return code | {field: str(file) for field, file in config.files.items()}


def named_code(words: Mapping[str, str | None]) -> dict[str, str]:
    """Those of a folder's words, by field, that would be imported: `module:name`.

    >>> named_code(words_of("grid", TrainConfig(objective="mine:loss")))
    {'objective': 'mine:loss'}
    """
    return {field: name for field, name in words.items() if name and ":" in name and not field.endswith(".file")}


def named(task: str, config: TrainConfig) -> dict[str, str]:
    """Code and files that a task and a configuration name, by field."""
    words = words_of(task, config)
    return named_code(words) | {field: name for field, name in words.items() if name and field.endswith(".file")}


def again(names: Mapping[str, str]) -> str:
    """Flags that name code and files again, with a blank before each; empty where there are none.

    >>> again({"objective": "mine:loss"})
    ' --objective mine:loss'
    """
    return "".join(f" --{field} {shlex.quote(name)}" for field, name in names.items())


def remember(names: Mapping[str, str]) -> None:
    """Trust names from now on, in this process, which has given them to a run of its own."""
    CREATED.update(names.items())


def known_here(field: str, name: str) -> bool:
    """Whether this process has registered a name, or has given it to a run that it created."""
    if field == "task" and any(entry.found_as == name for _, entry in TASKS.items()):
        return True
    if field == "exploration" and "+" in name:
        return (field, name) in CREATED or all(known_here(field, part) for part in name.split("+"))
    return (field, name) in CREATED or (field in REGISTRIES and name in REGISTRIES[field])


# Refusals


def refuse_code(folder: Path, names: Mapping[str, str], trust: Trust) -> None:
    """Raise, in one line, where a folder names code that its reader has not named."""
    given = {} if isinstance(trust, bool) else trust
    unknown = {field: name for field, name in names.items() if given.get(field) != name}
    unknown = {field: name for field, name in unknown.items() if trust is not True and not known_here(field, name)}
    if unknown:
        what = ", ".join(f"{field} {name!r}" for field, name in unknown.items())
        raise ValueError(f"{folder} names code that would be run ({what}): {_way_out(unknown)}")


def refuse_files(folder: Path, files: Mapping[str, Path], trust: Trust) -> None:
    """Raise where a folder names files that it has no copies of, and that its reader has not named."""
    given = {} if isinstance(trust, bool) else {field: resolved(Path(name)) for field, name in trust.items()}
    unknown = {field: str(file) for field, file in files.items() if given.get(field) != resolved(file)}
    if unknown and trust is not True:
        what = ", ".join(f"{field} {name!r}" for field, name in unknown.items())
        raise ValueError(f"{folder} has no copy of a file that it names ({what}): {_way_out(unknown)}")


def refuse_other(folder: Path, words: Mapping[str, str | None], trust: Trust) -> None:
    """Raise where the reader names again what the folder does not name."""
    for field, name in ({} if isinstance(trust, bool) else trust).items():
        there = words.get(field)
        if there != name and not (there and field.endswith(".file") and resolved(Path(there)) == resolved(Path(name))):
            has = f"has {field} {there!r}" if there else f"names no {field}"
            fix = f"leave --{field} out, or name what it has"
            if not there:
                fix = f"--{field} names again what a run was made with, and changes nothing in it; leave it out"
            raise ValueError(f"{folder} {has}, not {name!r}: {fix}")


def refuse_links(folder: Path, names: Iterable[str], trust: Trust) -> None:
    """Raise where one of a folder's own files is a link that leads out of it."""
    home = resolved(folder)
    for path in [folder / name for name in names] if trust is not True else []:
        if not resolved(path).is_relative_to(home):
            fix = "put the file itself there, or add --trust (in Python trust=True)"
            raise ValueError(f"{path} is a link that leads out of {folder}: {fix}")


def own_copy(folder: Path, field: str, copy: str, trust: Trust) -> Path:
    """Where a folder's copy of a file lies; raises where that is not inside the folder."""
    if Path(copy).is_absolute() or ".." in Path(copy).parts:
        raise ValueError(f"{folder}: files.{field}.copy {copy!r} is not inside the folder: put the copy into its data/")
    refuse_links(folder, [copy], trust)
    return resolved(folder) / copy


def _way_out(names: Mapping[str, str]) -> str:
    it = "it" if len(names) == 1 else "them"
    return f"name {it} again with{again(names)}, or add --trust (in Python trust=True) if you trust the folder"
