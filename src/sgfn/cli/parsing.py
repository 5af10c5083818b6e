"""From words to a command's dataclass; whatever is wrong with them comes back as one line."""

import contextlib
import io
import re
from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from typing import Any, Literal, cast, get_args, get_origin, get_type_hints

import tyro

from sgfn.cli.names import names_panel, reaches
from sgfn.cli.tables import out
from sgfn.config import TrainConfig as TrainConfig
from sgfn.config.checks import one_of
from sgfn.config.names import hint
from sgfn.config.sequence_files import read_sequence
from sgfn.config.shell import quoted
from sgfn.config.tasks import ConstraintsConfig
from sgfn.learning.registry import check_name, choices

FLAT = ("config", "settings", "named", "nodes")
"""Components whose flags have no prefix."""
WANTED = {
    r"^(\S+): invalid literal for int\(\)": "must be a whole number",
    r"^(\S+): Exceeds the limit": "must be a whole number of fewer digits",
    r"^(\S+): could not convert string to float": "must be a number",
    r"^(\S+): no type matching \{None\}\|INT could": "must be a whole number, or None",
    r"^(\S+): no type matching \{None\}\|FLOAT could": "must be a number, or None",
    r"^(\S+): no type matching \{None\}\|FLOAT\|\{auto\} could": "must be a number, auto or None",
    r"^(\S+): no type matching \{None\}\|\{\[FLOAT": "must be numbers with blanks between them, or None",
    r"^(\S+): Could not find valid parse": "must be numbers with blanks between them",
}
"""How the parser speaks of a value that it cannot read, and how we do."""


class UsageError(Exception):
    """The command line itself is wrong."""


def parse_words(kind: type, command: str, words: list[str]) -> Any:
    """A command's dataclass from its flags."""
    caught = io.StringIO()
    try:
        with contextlib.redirect_stderr(caught):
            return tyro.cli(kind, prog=f"sgfn {command}", args=words)
    except SystemExit as stop:
        if stop.code in (0, None):
            if (panel := names_panel(kind)) is not None:
                out.print(panel)
            raise
        raise UsageError(one_line(caught.getvalue(), words)) from None


CONSTRAINTS = {f"--{part.name.replace('_', '-')}": part.name for part in fields(ConstraintsConfig)}
"""Short forms of the flags of constraints."""


def spelled_out(kind: type, words: list[str]) -> list[str]:
    """Words with the short flags of constraints in full, where a command has them; the parent read from its file.

    >>> spelled_out(TrainConfig, ["--gc", "0.4:0.6", "--max-run=4"])
    ['--constraints.gc', '0.4:0.6', '--constraints.max-run=4']
    """
    if not reaches(get_type_hints(kind).get("config", kind), "constraints.forbid"):
        return words
    found = []
    for word in words:
        name, joined, value = word.partition("=")
        short = name.replace("_", "-")
        found.append(f"--constraints.{short[2:]}{joined}{value}" if short in CONSTRAINTS else word)
    return _with_parent(found)


def _with_parent(words: list[str]) -> list[str]:
    """Words in which a file that holds the parent has given way to the sequence in it."""
    flag, found = "--constraints.parent", list(words)
    for place, word in enumerate(words):
        if word == flag and place + 1 < len(words):
            found[place + 1] = read_parent(words[place + 1])
        elif word.startswith(f"{flag}="):
            found[place] = f"{flag}={read_parent(word.removeprefix(f'{flag}='))}"
    return found


def read_parent(value: str) -> str:
    """The one sequence in a file (plain text or FASTA); a value that is no file is the sequence itself."""
    try:
        return read_sequence(value, "--parent")
    except ValueError as error:
        raise UsageError(str(error)) from None


def by_flags(text: str) -> str:
    """A message that begins with a field of the constraints, with their fields as their flags are called.

    >>> by_flags("constraints.max_run must be 3"), by_flags("config.json: constraints.gc is unknown")
    ('--max-run must be 3', 'config.json: constraints.gc is unknown')
    """
    if not text.startswith("constraints."):
        return text
    return re.sub(r"(?<![\w./-])constraints\.([a-z_]+)", lambda found: f"--{found[1].replace('_', '-')}", text)


def flag_value(words: list[str], name: str) -> str | None:
    """The value given to a flag, if any."""
    return next(iter(flag_values(words, f"--{name}")), None)


def flag_values(words: list[str], flag: str) -> list[str]:
    """The words given to a flag, up to the next flag; those of the last where it is given twice, as they count.

    >>> flag_values(["--alphas", ".1", "-.2", "--steps=3"], "--alphas"), flag_values(["--steps=3", "x"], "--steps")
    (['.1', '-.2'], ['3'])
    """
    for i, word in reversed([*enumerate(words)]):
        name, joined, value = word.partition("=")
        if name.replace("_", "-") != flag:  # --max_states is --max-states
            continue
        if not joined:
            rest = words[i + 1 :]
            end = next((at for at, one in enumerate(rest) if at and one.startswith("--")), len(rest))
            return rest[:end]
        return [value]
    return []


def flags_of(words: list[str]) -> frozenset[str]:
    """Names of the flags among words, as fields are named.

    >>> sorted(flags_of(["t.csv", "--no-minimise", "--noise.alpha=0", "--max-run", "-2"]))
    ['max_run', 'no_minimise', 'noise.alpha']
    """
    return frozenset(w[2:].partition("=")[0].replace("-", "_") for w in words if w.startswith("--"))


def fields_said(words: list[str], kind: type) -> frozenset[str]:
    """Names of the settings of a kind that words give, whatever their values.

    >>> sorted(fields_said(["--kl.flow", "tb", "--out", "a", "--no-deterministic"], TrainConfig))
    ['deterministic', 'kl.flow']
    """
    said = flags_of(words)
    names = (name.replace("-", "_") for name, _ in flag_types(kind))
    return frozenset(name for name in names if {name, negated(name)} & said)


def negated(name: str) -> str:
    """The name of the flag that says no to a field, of a component too: `--table.no-minimise`."""
    part, dot, field = name.rpartition(".")
    return f"{part}{dot}no_{field}"


def check_choices(kind: type, words: list[str]) -> None:
    """Names with a known set of values: suggest the nearest before the parser lists them all."""
    for name, allowed in literal_fields(kind):
        value = flag_value(words, name)
        if value is not None and not value.startswith("--"):  # a flag without its value is the parser's to tell
            one_of(f"--{name}", value, allowed)
    own = get_type_hints(kind)
    for name in (name for name in choices() if name not in own):  # a flag of its own may have other names
        value = flag_value(words, name)
        if value is not None and not value.startswith("--"):
            check_name(name, value, "--")


def check_numbers(kind: type, words: list[str]) -> None:
    """Refuse numbers with underscores: Python reads 1_0 as ten, and whoever writes it may have meant something else."""
    for name, type_hint in flag_types(kind):
        if {int, float} & {type_hint, *get_args(type_hint)}:
            flag = next((one for one in (f"--{name}", f"-{name}") if flag_values(words, one)), None)  # --n is -n
            values = [] if flag is None else flag_values(words, flag)
            for value in values if get_origin(type_hint) in (tuple, list) else values[:1]:
                if "_" in value and re.fullmatch(r"[+-]?[0-9._eE+-]+", value):
                    raise UsageError(f"{flag} must be a number without underscores, got {value[:80]!r}")


def check_channel(words: list[str]) -> None:
    """Refuse a preset of noise, which is of a kind, beside another kind."""
    preset, kind = flag_value(words, "noise.preset"), flag_value(words, "noise.kind")
    if preset not in (None, "None") and kind not in (None, "indel"):
        what = f"--noise.preset {preset} is of the kind indel, and --noise.kind is {kind}"
        raise UsageError(f"{what}: leave one of them out")


def flag_types(kind: type, prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Flags with the types of their values, those of nested components included."""
    for name, type_hint in get_type_hints(kind).items():
        if is_dataclass(type_hint):
            yield from flag_types(cast(type, type_hint), prefix if name in FLAT else f"{prefix}{name}.")
        else:
            yield prefix + name.replace("_", "-"), type_hint


def literal_fields(kind: type) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Flags with a fixed set of values, those of nested components included."""
    for name, type_hint in flag_types(kind):
        if get_origin(type_hint) is Literal:
            yield name, tuple(map(str, get_args(type_hint)))  # wells of a plate are numbers


def one_line(box: str, words: list[str]) -> str:
    """The parser's framed message, without frame, headings and help text."""
    text = re.sub(r"[\u2500-\u257f]", " ", re.sub(r"\x1b\[[0-9;]*m", "", box))
    text = " ".join(text.split())
    if "Unrecognized" in text and (told := foreign(text, words)):
        return told
    text = re.sub(
        r"^(Value error|Parsing error|Required options|Unrecognized options|Invalid \w+|Missing argument) (?=\S)",
        "",
        text,
    )
    text = re.sub(r"Error parsing [\w.]*: (?=\S)", "", text)
    text = re.sub(r" Perhaps you meant: (--[\w.-]+).*", r"; did you mean \1?", text)
    text = re.split(r" Argument helptext:| Similar arguments:| For full helptext| sgfn \w+ --help", text)[0].strip(" -")
    text = unread_value(text, words) or missing_value(text, words) or text
    return text or "the command line could not be read"


def foreign(text: str, words: list[str]) -> str:
    """What to say of unknown flags that other systems have: what they are called here; empty where none is known."""
    named = [(word.partition("=")[0], hint(word)) for word in words if word.partition("=")[0] in text]
    return "; ".join(dict.fromkeys(f"{flag} is unknown: {said}" for flag, said in named if said))


def unread_value(text: str, words: list[str]) -> str:
    """What to say of a value that is no number; empty where the message is about something else."""
    for pattern, wanted in WANTED.items():
        if found := re.match(pattern, text.removeprefix("Error parsing ")):
            flags = found[1].split("/")  # -n/--n
            given = next((values for flag in flags if (values := flag_values(words, flag))), [])
            listed = given if "blanks" in wanted else given[:1]
            return f"{flags[0]} {wanted}, got {' '.join(repr(value[:80]) for value in listed) or 'nothing'}"
    return ""


def missing_value(text: str, words: list[str]) -> str:
    """What to say of a flag or an argument without its value; empty where the message is about something else."""
    if not (found := re.match(r"Missing value for argument '(\S+)'\.", text)):
        return ""
    flag, values = found[1], flag_values(words, found[1])
    dashed = [word for word in words if word.startswith("-")]
    if flag.startswith("-"):
        way = f"; one that begins with - is given as {flag}={quoted(values[0])}" if values else ""
        return f"{flag} needs a value{way}"
    way = f"; a name that begins with - is given as {quoted(f'./{dashed[0]}')}" if dashed else ""
    return f"{flag.upper()} is missing{way}"
