"""Every number that a flag takes, out of its range: rows made from the settings themselves."""

from collections.abc import Iterator
from dataclasses import is_dataclass
from types import NoneType
from typing import get_args, get_type_hints

from benchmarks.soak.rows import Row, row

from sgfn.cli.commands import COMMANDS
from sgfn.cli.parsing import FLAT

WRONG = {int: "-1000000000", float: "nan"}
"""A value that no number of a setting may have."""
SUBJECTS = {"tasks": ["grid"], "train": ["grid"], "sample": ["run"], "evaluate": ["run"], "forecast": ["births"], "order": ["run"]}


def numbers(kind: type, prefix: str = "") -> Iterator[tuple[str, type]]:
    """Flags of a command that take one number, and of which kind."""
    for name, hint in get_type_hints(kind).items():
        kinds = [one for one in (hint, *get_args(hint)) if isinstance(one, type) and one is not NoneType]
        part = next((one for one in kinds if is_dataclass(one)), None)
        if part is not None:
            yield from numbers(part, prefix if name in FLAT else f"{prefix}{name}.")
        elif (number := next((one for one in kinds if one in WRONG), None)) and get_args(hint) in ((), (number, NoneType)):
            yield prefix + name, number


def rows_of(verb: str) -> Iterator[Row]:
    """A row for each number of a verb, but for those that `tasks` has already; `compare` has those of `train`."""
    known = {name for name, _ in numbers(COMMANDS["tasks"][0])} if verb == "train" else set()
    base = {"base": "words" if verb == "order" else "grid"} if SUBJECTS[verb] == ["run"] else {}
    for name, kind in dict(numbers(COMMANDS[verb][0])).items():
        if name not in known:
            flag, value, piece = f"--{name.replace('_', '-')}", WRONG[kind], name.removeprefix("constraints.").partition("_")[0]
            yield row(f"{verb} {flag} {value}", [verb, *SUBJECTS[verb], f"{flag}={value}"], piece, **base)


ROWS = [made for verb in SUBJECTS for made in rows_of(verb)]
