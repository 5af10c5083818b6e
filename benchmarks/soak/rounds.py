"""Rounds of the soak, each with a disturbance that chance picks: kills, full disks, damage, forgery, odd commands."""

import random
import shutil
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks.soak.corruption import QUESTIONS, Corruptions
from benchmarks.soak.folders import NET, SMALL, Bases
from benchmarks.soak.forks import ForkServer
from benchmarks.soak.kills import SCENARIOS, Kills, Scenario, resume
from benchmarks.soak.outcomes import contents, troubles
from benchmarks.soak.rows import NET as TINY_NET
from benchmarks.soak.rows import SHORT, TINY, Row, judge, lay_out

TROUBLES = {
    "tracebacks": ("traceback",),
    "wrong exit codes": ("wrong exit code",),
    "commands without an end": ("hang",),
    "wrong or missing lines": ("not one line", "does not say", "says more"),
    "lost files": ("lost file", "changed file", "changed:"),
    "files left over": ("left file",),
    "wrong results": ("wrong result", "wrong answer"),
    "strangers' code executed": ("stranger's code",),
    "strangers' files shown": ("stranger's file", "shows "),
}
"""Kinds of trouble that are counted, by how a finding begins."""
TASKS = """
grid --grid.side 3
words
table --table.file t.csv
table --table.file t.csv --noise.kind confusion --noise.file slips.csv
ehrlich --ehrlich.length 9
bits --bits.length 16
motif --motif.length 16
"""
WAYS = """
--objective tb
--objective db
--objective subtb
--objective kl
--objective kl-entropy
--objective db --form published
--form blind
--exploration entropy
--dynamics.mode known
--replay.updates 1 --replay.capacity 32
--thought.layers 1 --thought.width 4
--net.encoder transformer
--noise.kind hidden
"""
PEERS = ("mh", "random", "ppo", "a2c", "sac", "mars")
VERBS = {
    "tasks": "",
    "train": f"{TINY} {TINY_NET}",
    "sample": "",
    "order": "-n 4 --samples 8",
    "evaluate": "",
    "report": "",
    "compare": f"{TINY} --methods mh --seeds 1 --samples 8",
    "forecast": SHORT,
    "data": "",
}
"""Verbs with flags under which they end soon."""
SUBJECTS = "grid words table callable series run t.csv s.csv births fetch list six6 nowhere - -- . .."
FLAGS = """
steps batch seed beta explore temperature objective form method out preset accelerate resume overwrite device json
noise.alpha noise.kind noise.file table.file table.alphabet grid.side net.hidden net.encoder optim.lr log.every
offline.file offline.share callable.function callable.length reward.minimum samples n max-states html
fasta plate distance tradeoff forbid gc max-run pattern
methods alphas seeds jobs horizon windows levels season paths file tilt figures lags known wheel
"""
VALUES = "0 1 -1 2 0.5 1e400 nan inf x None true - . .. /dev/zero t.csv s.csv run scores:gc ' \" %s {} *"
STRANGE_VALUES = ("", "\x1b[31m", "\u202e", "a b", "$(touch x)", "9" * 30)


@dataclass(frozen=True, kw_only=True)
class Finding:
    """What is wrong, and the round in which it was found."""

    what: str
    trouble: str

    def __str__(self) -> str:
        return f"{self.what}: {self.trouble}"


@dataclass
class Tally:
    """What a soak has done and found."""

    commands: Counter[str] = field(default_factory=Counter)
    """By verb."""
    disturbances: Counter[str] = field(default_factory=Counter)
    """By kind."""
    found: list[Finding] = field(default_factory=list)

    def troubles(self) -> dict[str, int]:
        """Number of findings of each kind."""
        return {kind: sum(f.trouble.startswith(begins) for f in self.found) for kind, begins in TROUBLES.items()}

    def add(self, other: "Tally") -> None:
        """Put another one's counts to these."""
        self.commands += other.commands
        self.disturbances += other.disturbances
        self.found += other.found


class Rounds:
    """One worker of the soak: its own process to fork from, its own folders, its own chance."""

    def __init__(self, server: ForkServer, home: Path, seed: str) -> None:
        bases = Bases(server, home / "bases")
        self.server, self.home, self.bases, self.chance = server, home, bases, random.Random(seed)
        self.kills, self.corruptions = Kills(server, bases), Corruptions(server, bases)
        self.other = Counter[str]()
        self.tally = Tally()

    def play(self) -> None:
        """One round of some kind."""
        kind = self.chance.choice([*KINDS])
        with self.folder() as folder:
            what, found = KINDS[kind](self, folder)
        self.note(kind, what, found)

    def note(self, kind: str, what: str, found: list[str]) -> None:
        """Count a round and what was found in it."""
        self.tally.disturbances[kind] += 1
        self.tally.found += [Finding(what=f"{kind}, {what}", trouble=one) for one in found]
        self.tally.commands = self.kills.count + self.corruptions.count + self.other

    def folder(self) -> "_Folder":
        """A new folder, gone after the block."""
        return _Folder(self.home)

    # Kinds of rounds: what was done, and what is wrong

    def killed(self, folder: Path) -> tuple[str, list[str]]:
        """A command killed one to four times."""
        name, scenario = self.scenario()
        times = self.chance.choice((1, 1, 2, 4))
        moments = [self.kills.kill(scenario, self.chance, by_time=self.chance.random() < 0.5) for _ in range(times)]
        return f"{name}, {moments}", self.kills.disturbed(scenario, folder, moments)

    def scenario(self) -> tuple[str, Scenario]:
        """One that writes: of those by name, or the training of a random task in a random way."""
        if self.chance.random() < 0.5:
            name = self.chance.choice([*SCENARIOS])
            return name, SCENARIOS[name]
        task = self.chance.choice(TASKS.strip().splitlines())
        peer = self.chance.random() < 0.3
        way = (
            f"--method {self.chance.choice(PEERS)}"
            if peer
            else f"{self.chance.choice(WAYS.strip().splitlines())} {NET}"
        )
        made = Scenario(command=f"train {task} {way} {SMALL} --out run", again=resume)
        try:
            self.kills.undisturbed(made)
        except RuntimeError:  # a way that does not fit this task
            shutil.rmtree(self.bases.scratch("undisturbed"))
            return self.scenario()
        return made.command, made

    def full(self, folder: Path) -> tuple[str, list[str]]:
        """A command on a disk that has room for so much."""
        name, scenario = self.scenario()
        size = int(10 ** self.chance.uniform(0, 5)) - 1
        return f"{name}, {size} bytes", self.kills.disturbed(scenario, folder, [{"file_size": size}])

    def corrupted(self, folder: Path) -> tuple[str, list[str]]:
        """A command on a folder with a damaged file."""
        name = self.chance.choice([*QUESTIONS])
        how, found = self.corruptions.corrupted(name, folder, self.chance)
        return f"{name}, {how}", found

    def forged(self, folder: Path) -> tuple[str, list[str]]:
        """A command on a folder that names a stranger's code or file."""
        name = self.chance.choice([*QUESTIONS])
        how, found = self.corruptions.forged(name, folder, self.chance)
        return f"{name}, {how}", found

    def odd(self, folder: Path) -> tuple[str, list[str]]:
        """A command of random words."""
        self.bases.lay("grid", folder)
        chance, verb = self.chance, self.chance.choice([*VERBS])
        values, flags = [*VALUES.split(), *STRANGE_VALUES], FLAGS.split()
        subjects = [chance.choice(["", *SUBJECTS.split()]) for _ in range(chance.choice((0, 1, 1, 1, 2)))]
        given = [f"--{chance.choice(flags)}={chance.choice(values)}" for _ in range(chance.choice((0, 1, 1, 2)))]
        words = [verb, *subjects, *VERBS[verb].split(), *given]
        self.other[verb] += 1
        ended = self.server.run(words, folder, limit=60, memory=2**33)
        return repr(words), [f"{one}: {ended.err[-500:]}" for one in troubles(ended, folder)]

    def row(self, row: Row) -> None:
        """A row of the corpus."""
        with self.folder() as folder:
            if row.base:
                self.bases.lay(row.base, folder)
            lay_out(folder, row.files)
            before = contents(folder)
            ended = self.server.run(row.words, folder, **row.circumstances)
            found = judge(row, ended, before, folder)
        self.other[row.words[0] if row.words[0] in VERBS else "others"] += 1
        self.note("rows of the corpus", row.name, found)


class _Folder:
    """A context with a new folder below another."""

    def __init__(self, home: Path) -> None:
        self.path = Path(tempfile.mkdtemp(dir=home)) / "here"

    def __enter__(self) -> Path:
        self.path.mkdir()
        return self.path

    def __exit__(self, *_: object) -> None:
        for path in unwritable(self.path):
            path.chmod(0o700)
        shutil.rmtree(self.path.parent)


def unwritable(folder: Path) -> Iterator[Path]:
    """Folders below one that cannot be emptied as they are."""
    return (path for path in folder.rglob("*") if path.is_dir() and not path.is_symlink())


Round = Callable[[Rounds, Path], tuple[str, list[str]]]
KINDS: dict[str, Round] = {
    "kills": Rounds.killed,
    "full disks": Rounds.full,
    "corruptions": Rounds.corrupted,
    "forgeries": Rounds.forged,
    "odd commands": Rounds.odd,
}
