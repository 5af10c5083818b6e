"""Commands that are killed on their way, and gone on with: the result must be that of one left alone."""

import random
import shutil
import signal
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from benchmarks.soak.folders import COMMANDS, NET, SHORT, SMALL, Bases
from benchmarks.soak.forks import Ended, ForkServer
from benchmarks.soak.outcomes import Content, differences, leftovers, relative, troubles
from sgfn.config.staging import READY

CONFIG = "run/config.json"
SIGNALS = (signal.SIGKILL, signal.SIGKILL, signal.SIGTERM, signal.SIGINT, signal.SIGHUP)


@dataclass(frozen=True, kw_only=True)
class Scenario:
    """A command that writes, the folder that it finds, and how a user goes on after it was killed."""

    command: str
    base: str = ""
    """What lies in `run` before; see `folders.COMMANDS`."""
    before: str = ""
    """A command that is run first, so that there is something to lose."""
    again: Callable[[str, Path], str] = lambda command, _: command
    """The command to go on with."""
    still: str = ""
    """A command that must work at any moment, whatever became of this one."""
    worker: bool = False
    """Whether a worker of a comparison is killed instead."""
    later: tuple[str, ...] = ()
    """Files that a new run lacks which has its checkpoint and has just taken the place of an old one."""


def resume(command: str, folder: Path) -> str:
    """`--resume` where there is a run, else the same command again."""
    return f"{command} --resume" if (folder / "run" / "config.json").is_file() else command


def forecast_again(command: str, folder: Path) -> str:
    """The same for a forecast, which has no file to name any more."""
    if not (folder / "run" / "config.json").is_file():
        return command
    return f"forecast --resume {JUDGED} --device cpu --out run"


def propose_again(command: str, folder: Path) -> str:
    """The same command, which may replace a round that was finished before the kill."""
    out = folder / command.rpartition(" ")[2]
    whole = (out / "design.json").is_file() or (out / READY).is_dir()
    return f"{command} --overwrite" if whole else command


JUDGED = "--samples 16 --windows 2 --baselines seasonal-naive --figures 1"
TABLE = COMMANDS["table"][0]
FORECAST = f"forecast s.csv {SHORT} --out run"
COMPARE = f"compare table --table.file t.csv --methods tb mh --seeds 1 --samples 64 {SMALL} {NET} --out run"
FRESH = f"train grid --grid.side 3 --seed 1 {SMALL} {NET} --overwrite --out run"
EVALUATE = "evaluate run --samples 8 --device cpu"
PROPOSE = "design propose run --orders 2 --out other"

SCENARIOS: dict[str, Scenario] = {
    "train": Scenario(command=TABLE, again=resume),
    "train a chain": Scenario(command=f"train grid --grid.side 3 --method mh {SMALL} --out run", again=resume),
    "train from a buffer": Scenario(
        command=f"train words --objective kl --replay.updates 1 --replay.capacity 64 {SMALL} {NET} --out run",
        again=resume,
    ),
    "train further": Scenario(
        base="grid", command="train grid --resume --steps 40 --device cpu --out run", still=EVALUATE
    ),
    "train over an old run": Scenario(base="grid", command=FRESH, still=EVALUATE, later=("run/metrics.jsonl",)),
    "evaluate": Scenario(base="grid", command="evaluate run --samples 32 --device cpu", still="report run"),
    "sample": Scenario(
        base="words",
        before="sample run -n 9 --device cpu",
        command="sample run -n 999 --overwrite --device cpu",
    ),
    "sample packed": Scenario(base="grid", command="sample run -n 99 --out x.csv.gz --overwrite --device cpu"),
    "sample into parquet": Scenario(base="grid", command="sample run -n 99 --out x.parquet --overwrite --device cpu"),
    "sample paths": Scenario(base="forecast", command="sample run -n 9 --out x.csv --overwrite --device cpu"),
    "order": Scenario(
        base="words",
        before="order run -n 4 --samples 8 --device cpu",
        command="order run -n 9 --samples 8 --fasta run/orders.fasta --overwrite --device cpu",
    ),
    "propose": Scenario(command="design propose t.csv --orders 4 --proxy ridge --out run", again=propose_again),
    "propose the next plate": Scenario(
        base="design",
        command="design propose run --measured new.csv --orders 4 --out next",
        again=propose_again,
        still=PROPOSE,
    ),
    "propose over an old plate": Scenario(
        base="design",
        command="design propose t.csv --orders 5 --proxy ridge --seed 1 --overwrite --out run",
        still=PROPOSE,
    ),
    "report": Scenario(base="table", before="report run --html", command="report run --html"),
    "compare": Scenario(command=COMPARE),
    "compare, a worker": Scenario(command=COMPARE, worker=True),
    "compare more": Scenario(base="compare", command=COMPARE.replace("tb mh", "tb mh random")),
    "forecast": Scenario(command=FORECAST, again=forecast_again),
    "forecast again": Scenario(
        base="forecast", command=f"forecast --resume {JUDGED} --levels 0.1 0.5 0.9 --device cpu --out run"
    ),
    "forecast over an old one": Scenario(
        base="forecast", command=f"{FORECAST} --seed 1 --overwrite", later=("run/metrics.jsonl",)
    ),
}


@dataclass(frozen=True, kw_only=True)
class Undisturbed:
    """A scenario that nobody killed."""

    before: dict[str, Content]
    after: dict[str, Content]
    touches: int
    seconds: float


class Kills:
    """Scenarios tried in folders, each beside itself undisturbed."""

    def __init__(self, server: ForkServer, bases: Bases) -> None:
        self.server, self.bases = server, bases
        self.count = Counter[str]()
        self.undisturbed = cache(self._undisturbed)

    def run(self, command: str, folder: Path, **circumstances: Any) -> Ended:
        """A command in a folder, counted."""
        self.count[command.partition(" ")[0]] += 1
        return self.server.run(command.split(), folder, **circumstances)

    def lay(self, scenario: Scenario, folder: Path) -> dict[str, Content]:
        """Make what a scenario finds; returns its files."""
        self.bases.lay(scenario.base, folder)
        if scenario.before:
            self.run(scenario.before, folder)
        return relative(folder)

    def _undisturbed(self, scenario: Scenario) -> Undisturbed:
        folder = self.bases.scratch("undisturbed")
        folder.mkdir(parents=True)
        before = self.lay(scenario, folder)
        ended = self.run(scenario.command, folder, worker=scenario.worker)
        if ended.code != 0:
            raise RuntimeError(f"{scenario.command}: {ended.err}")
        after = relative(folder)
        shutil.rmtree(folder)
        return Undisturbed(before=before, after=after, touches=ended.touches, seconds=ended.seconds)

    def kill(self, scenario: Scenario, chance: random.Random, *, by_time: bool = False) -> dict[str, Any]:
        """A moment to be killed at, and by what: as a file is touched, or after any time."""
        alone = self.undisturbed(scenario)
        number = int(signal.SIGKILL if scenario.worker else chance.choice(SIGNALS))
        if by_time and not scenario.worker:
            return {"signal": number, "after": chance.uniform(0.0, alone.seconds)}
        return {"signal": number, "at": chance.randint(1, alone.touches)}

    def disturbed(self, scenario: Scenario, folder: Path, disturbances: list[dict[str, Any]]) -> list[str]:
        """Run a scenario, disturbed one way after the other, then undisturbed to its end; returns what is wrong."""
        self.lay(scenario, folder)
        command, found = scenario.command, list[str]()
        for how in disturbances:
            ended = self.run(command, folder, worker=scenario.worker, **how)
            found += self._after(ended, scenario, folder, how)
            command = scenario.again(scenario.command, folder)
        return found + self.gone_on(scenario, folder)

    def gone_on(self, scenario: Scenario, folder: Path) -> list[str]:
        """Bring a scenario to its end as a user would; returns what differs from one left alone."""
        ended = self.run(scenario.again(scenario.command, folder), folder, worker=scenario.worker)
        if ended.code != 0:
            return [*troubles(ended, folder), f"wrong result: does not go on: {ended.err[-700:]}"]
        found = [f"left file: {left}" for left in leftovers(folder)]
        wrong = differences(relative(folder), self.undisturbed(scenario).after)
        return found + [f"wrong result: {file}" for file in wrong]

    def _after(self, ended: Ended, scenario: Scenario, folder: Path, how: dict[str, Any]) -> list[str]:
        """What is wrong in a folder whose command was disturbed."""
        alone = self.undisturbed(scenario)
        found = [] if ended.code == -how.get("signal", 0) else troubles(ended, folder)
        begun = alone.before.get(CONFIG) != relative(folder).get(CONFIG)
        wanted = (alone.before.keys() & alone.after.keys()) - (set(scenario.later) if begun else set())
        found += [f"lost file: {name}" for name in sorted(wanted - relative(folder).keys())]
        if scenario.still:
            aside = folder.with_name(f"{folder.name} aside")
            shutil.copytree(folder, aside)
            if (said := self.run(scenario.still, aside)).code != 0:
                found.append(f"lost file: {scenario.still}: {said.err[-500:]}")
            shutil.rmtree(aside)
        return found
