"""Files that are damaged one way or another, and whether a command's answer on such a folder is right."""

import json
import os
import random
import shutil
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from benchmarks.soak.folders import Bases
from benchmarks.soak.forks import ForkServer
from benchmarks.soak.kills import COMPARE, JUDGED
from benchmarks.soak.outcomes import MARK, Content, contents, differences, relative, troubles

STRANGE: tuple[Any, ...] = (
    None,
    True,
    -1,
    0,
    1e308,
    float("nan"),
    10**400,
    "",
    "x",
    "stranger:f",
    [],
    [[]],
    {},
    {"a": 1},
)
"""Values that a field of JSON gets in the place of its own."""
STRANGER = (
    f"from pathlib import Path\nPath({MARK!r}).write_text('x')\n\n\ndef f(*args, **more):\n    return [1.0] * 9\n"
)


FORGED = ("stranger:f", "stranger:f", "os:system", "subprocess:call", "builtins:exec", "secret.csv", "../secret.csv")
"""What a field of JSON names that is none of the reader's business."""
SECRET = "swordfish"

# Damage


def flip(data: bytes, chance: random.Random) -> bytes:
    """One bit is another."""
    place = chance.randrange(len(data)) if data else 0
    return data[:place] + bytes([data[place] ^ 1 << chance.randrange(8)]) + data[place + 1 :] if data else b"\0"


def cut(data: bytes, chance: random.Random) -> bytes:
    """The end is missing."""
    return data[: chance.randrange(len(data))] if data else data


def empty(data: bytes, chance: random.Random) -> bytes:
    """Nothing is left."""
    return b""


def zeros(data: bytes, chance: random.Random) -> bytes:
    """A block was never written."""
    place = chance.randrange(len(data)) if data else 0
    size = min(chance.choice((1, 64, 4096)), len(data) - place)
    return data[:place] + bytes(size) + data[place + size :]


def doubled(data: bytes, chance: random.Random) -> bytes:
    """A piece stands there twice."""
    place = chance.randrange(len(data)) if data else 0
    return data[:place] + data[max(0, place - chance.choice((1, 20, 300))) :]


def retyped(data: bytes, chance: random.Random) -> bytes:
    """A value of JSON is of another type; other files get a bit flipped."""
    return changed_json(data, chance, lambda owner, key: owner.__setitem__(key, chance.choice(STRANGE)))


def dropped(data: bytes, chance: random.Random) -> bytes:
    """A value of JSON is gone; other files get a bit flipped."""
    return changed_json(data, chance, lambda owner, key: owner.__delitem__(key))


def changed_json(data: bytes, chance: random.Random, change: Callable[[Any, Any], object]) -> bytes:
    """JSON, or one line of JSON lines, with one value of it changed."""
    lines = data.splitlines()
    single = readable(data)
    at = 0 if single or not lines else chance.randrange(len(lines))
    text = data if single else lines[at] if lines else b""
    if not readable(text):
        return flip(data, chance)
    tree = json.loads(text)
    places = list(inner(tree))
    if not places:
        return json.dumps(chance.choice(STRANGE)).encode()
    change(*places[chance.randrange(len(places))])
    made = json.dumps(tree).encode()
    return made if single else b"\n".join([*lines[:at], made, *lines[at + 1 :]]) + b"\n"


def inner(tree: Any) -> Iterator[tuple[Any, Any]]:
    """Every list or object within a tree with each of its keys."""
    pairs = tree.items() if isinstance(tree, dict) else enumerate(tree) if isinstance(tree, list) else ()
    for key, value in list(pairs):
        yield tree, key
        yield from inner(value)


def readable(data: bytes) -> bool:
    """Whether bytes are one value of JSON."""
    try:
        json.loads(data)
    except (ValueError, RecursionError):
        return False
    return True


DAMAGE: dict[str, Callable[[bytes, random.Random], bytes]] = {
    "flip": flip,
    "cut": cut,
    "empty": empty,
    "zeros": zeros,
    "doubled": doubled,
    "retyped": retyped,
    "dropped": dropped,
}
ODD: dict[str, Callable[[Path], object]] = {
    "gone": lambda path: None,
    "folder": lambda path: path.mkdir(),
    "pipe": lambda path: os.mkfifo(path),
    "loop": lambda path: path.symlink_to(path.name),
    "forbidden": lambda path: (path.write_bytes(b""), path.chmod(0)),
}
"""What may lie where a file was."""


def corrupt(file: Path, chance: random.Random) -> str:
    """Damage a file; returns how."""
    how = chance.choice([*DAMAGE, *DAMAGE, *ODD])
    data = file.read_bytes()
    if how in DAMAGE:
        file.write_bytes(DAMAGE[how](data, chance))
    else:
        file.unlink()
        ODD[how](file)
    return how


def an_edit(before: bytes, after: Path) -> bool:
    """Whether a damaged file is still JSON, or lines of JSON: what a user may have written, and gets the answer to."""
    data = after.read_bytes() if after.is_file() and os.access(after, os.R_OK) else b""
    if data == before:
        return True
    lines = data.splitlines()
    return after.suffix in (".json", ".jsonl") and (readable(data) or (all(map(readable, lines)) and bool(lines)))


# Answers


@dataclass(frozen=True, kw_only=True)
class Question:
    """A command on a folder that may be damaged."""

    base: str
    command: str
    changes: bool = False
    """Whether the command writes files also where it then fails."""
    shows: tuple[str, ...] = ()
    """Files that it shows as they are: another content gives another picture, and rightly so."""


GRID = "train grid --resume --device cpu --out run"
LOGS = ("metrics.jsonl", "exact.json", "seconds.json")
QUESTIONS: dict[str, Question] = {
    "evaluate": Question(base="grid", command="evaluate run --samples 8 --json --device cpu"),
    "evaluate a table": Question(base="table", command="evaluate run --samples 8 --json --device cpu"),
    "sample": Question(base="grid", command="sample run -n 9 --out x.csv --device cpu"),
    "sample words": Question(base="words", command="sample run -n 9 --out x.csv --device cpu"),
    "sample a chain": Question(base="chain", command="sample run -n 9 --out x.csv --device cpu"),
    "order": Question(base="words", command="order run -n 4 --samples 8 --out x.csv --fasta x.fasta --device cpu"),
    "propose": Question(base="design", command="design propose run --measured new.csv --orders 4 --out next"),
    "report": Question(base="grid", command="report run --out x.html", shows=LOGS),
    "report a table": Question(base="table", command="report run --out x.png", shows=LOGS),
    "resume": Question(base="grid", command=GRID, changes=True, shows=LOGS),
    "train further": Question(base="grid", command=f"{GRID} --steps 30", changes=True, shows=LOGS),
    "resume a table": Question(
        base="table", command="train table --resume --device cpu --out run", changes=True, shows=LOGS
    ),
    "overwrite": Question(
        base="grid",
        command="train grid --grid.side 3 --steps 2 --batch 4 --net.hidden 4 --dynamics.hidden 4 --device cpu "
        "--overwrite --out run",
        changes=True,
    ),
    "evaluate a saved model": Question(
        base="saved", command="evaluate run --samples 8 --json --device cpu --reward scores:gc"
    ),
    "sample paths": Question(base="forecast", command="sample run -n 2 --out x.csv --device cpu"),
    "forecast again": Question(
        base="forecast", command=f"forecast --resume {JUDGED} --device cpu --out run", changes=True, shows=LOGS
    ),
    "compare": Question(base="compare", command=COMPARE, changes=True, shows=LOGS),
    "evaluate a cell": Question(
        base="compare", command="evaluate run/mh/alpha0.25/seed0 --samples 8 --json --device cpu"
    ),
}


@dataclass(frozen=True, kw_only=True)
class Answer:
    """What a command said and left."""

    code: int
    out: str
    said: str
    """All that it said, errors included."""
    files: dict[str, Content] = field(repr=False)


class Corruptions:
    """Questions asked on damaged folders, each beside the same question on the folder as it was."""

    def __init__(self, server: ForkServer, bases: Bases) -> None:
        self.server, self.bases = server, bases
        self.count = Counter[str]()
        self.right = cache(self._right)

    def _right(self, name: str) -> Answer:
        """The answer on the folder as it was."""
        folder = self.bases.scratch(f"right {name}")
        self.bases.lay(QUESTIONS[name].base, folder)
        found, answer = self.ask(name, folder)
        assert (found, answer.code) == ([], 0), (name, found, answer)
        shutil.rmtree(folder)
        return answer

    def ask(self, name: str, folder: Path) -> tuple[list[str], Answer]:
        """What is wrong with how a command ended, and its answer."""
        self.count[QUESTIONS[name].command.partition(" ")[0]] += 1
        (folder / "stranger.py").write_text(STRANGER)
        ended = self.server.run(QUESTIONS[name].command.split(), folder, limit=60)
        found = [f"{one}: {ended.err[-700:]}" for one in troubles(ended, folder)]
        out = ended.out.replace(str(folder.resolve()), "FOLDER")
        return found, Answer(code=ended.code, out=out, said=ended.out + ended.err, files=relative(folder))

    def files(self, name: str) -> list[str]:
        """The files of a question's folder, but for those that it was made from."""
        made = self.bases.folder(QUESTIONS[name].base)
        return [file for file in contents(made) if file.startswith("run")]

    def forged(self, name: str, folder: Path, chance: random.Random) -> tuple[str, list[str]]:
        """Let a field of a folder's JSON name a stranger's code or file, and ask; returns the same."""
        self.bases.lay(QUESTIONS[name].base, folder)
        (folder / "secret.csv").write_text(f"{SECRET}\n{SECRET}\n")
        trees = {file: json.loads((folder / file).read_text()) for file in self.files(name) if file.endswith(".json")}
        places = [(file, *place) for file, tree in trees.items() for place in inner(tree)]
        file, owner, key = chance.choice([(f, o, k) for f, o, k in places if isinstance(o[k], str | None)])
        owner[key] = chance.choice(FORGED)
        (folder / file).write_text(json.dumps(trees[file]))
        found, answer = self.ask(name, folder)
        return f"{key} is {owner[key]} in {file}", found + (["stranger's file"] if SECRET in answer.said else [])

    def corrupted(self, name: str, folder: Path, chance: random.Random) -> tuple[str, list[str]]:
        """Damage one file of a folder and ask; returns what was done, and what is wrong with the answer."""
        question, right = QUESTIONS[name], self.right(name)
        self.bases.lay(question.base, folder)
        file = chance.choice(self.files(name))
        whole = (folder / file).read_bytes()
        how = f"{corrupt(folder / file, chance)} of {file}"
        edit = an_edit(whole, folder / file) or Path(file).name in question.shows
        before = relative(folder)
        found, answer = self.ask(name, folder)
        after = answer.files
        found += [f"lost file: {n}" for n in before if n not in after and not question.changes]
        if answer.code == 2 and not question.changes:
            found += [f"changed: {n}" for n in differences(before, {n: after.get(n) for n in before})]
        if answer.code == 0 and not edit:
            wrong = [n for n in differences(right.files, after) if n != file]
            found += [f"wrong result: {n}" for n in wrong]
            found += ["wrong answer"] if answer.out != right.out else []
        return how, found
