"""Training runs that are killed at random moments and resumed: each must end bit for bit as one left alone.

    python -m benchmarks.soak --rounds 100 --seed 0

A round picks a recipe, starts `sgfn train` in a process of its own, ends it by SIGKILL or SIGTERM after a random time,
and resumes until it is done. Metrics and checkpoint are then compared with those of an undisturbed run of the recipe.
The first difference stops the soak, with exit code 1, and leaves both folders in place. On a CPU.
"""

import argparse
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

import torch

from benchmarks.common import positive
from sgfn.runs.folder import Run

SIZES = ["--net.hidden", "16", "--dynamics.hidden", "8", "--batch", "8", "--steps", "600"]
OFTEN = ["--log.every", "10", "--log.exact-every", "50", "--log.checkpoint-every", "20", "--device", "cpu"]
RECIPES = {
    "grid": ["grid", "--grid.side", "4"],
    "words from a buffer": ["words", "--objective", "kl", "--replay.updates", "1", "--replay.capacity", "64"],
    "table": ["table", "--table.file", "TABLE", "--offline.share", "0.25"],
    "chains": ["grid", "--grid.side", "4", "--method", "mh"],
}
TABLE = "sequence,score\nACG,1\nCAT,0.5\nTAG,0.2\nGGA,0.7\n"
UNREAD = {"chains": ("--net.hidden", "--dynamics.hidden")}
"""Flags that a method of a recipe does not read."""
MOMENTS = (0.3, 1.1)
"""Shares of an undisturbed run's time between which a kill falls: before the first there is no training yet."""


@dataclass(frozen=True, kw_only=True)
class Reference:
    """An undisturbed run, and how long it took."""

    path: Path
    seconds: float


@dataclass
class Count:
    """What a soak has done."""

    rounds: int = 0
    kills: int = 0
    terms: int = 0


def command(recipe: str, table: Path) -> list[str]:
    """`sgfn train` for a recipe, without --out."""
    pairs = [pair for pair in zip(SIZES[::2], SIZES[1::2], strict=True) if pair[0] not in UNREAD.get(recipe, ())]
    words = [str(table) if word == "TABLE" else word for word in RECIPES[recipe]]
    return [sys.executable, "-m", "sgfn", "train", *words, *(word for pair in pairs for word in pair), *OFTEN]


def next_command(recipe: str, table: Path, out: Path) -> list[str]:
    """How to go on in a folder: resume from a checkpoint, or begin again where there is none yet."""
    words, run = command(recipe, table), Run(path=out)
    if run.checkpoint.is_file():
        words = [*words, "--resume"]
    elif (out / "config.json").is_file():
        words = [*words, "--overwrite"]
    return [*words, "--out", str(out)]


def differences(first: Path, second: Path) -> list[str]:
    """What two runs do not share to the last bit: metrics, or tensors of the checkpoint by name."""
    one, two = Run(path=first), Run(path=second)
    found = [] if one.metrics.read_bytes() == two.metrics.read_bytes() else [one.metrics.name]
    mine, theirs = one.load_state(), two.load_state()
    names = sorted(mine.keys() | theirs.keys())
    return found + [n for n in names if n not in mine or n not in theirs or not torch.equal(mine[n], theirs[n])]


def started(words: list[str]) -> subprocess.Popen[bytes]:
    """A process with one thread, so that many of them do not wait for each other."""
    env = {**os.environ, "OMP_NUM_THREADS": "1"}
    return subprocess.Popen(words, env=env, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)


def finish(process: subprocess.Popen[bytes]) -> None:
    """Wait for a process that nobody disturbs; raises where it fails."""
    _, said = process.communicate()
    if process.returncode != 0:
        raise RuntimeError(f"ended with {process.returncode}: {said.decode(errors='replace')[-2000:]}")


def disturbed(recipe: str, table: Path, out: Path, reference: Reference, chance: random.Random, count: Count) -> None:
    """Train a recipe to its end, killing it on the way as chance has it."""
    while True:
        process = started(next_command(recipe, table, out))
        try:
            process.wait(reference.seconds * chance.uniform(*MOMENTS))
        except subprocess.TimeoutExpired:
            number = chance.choice([signal.SIGKILL, signal.SIGTERM])
            process.send_signal(number)
            process.communicate()
            count.kills += number == signal.SIGKILL
            count.terms += number == signal.SIGTERM
        else:
            return finish(process)


def soak(folder: Path, rounds: int, seed: int) -> list[str]:
    """Run so many rounds; returns what differs in the first that fails, or nothing."""
    chance, references, count = random.Random(seed), dict[str, Reference](), Count()
    table = folder / "table.csv"
    table.write_text(TABLE)
    for number in range(rounds):
        recipe = chance.choice(list(RECIPES))
        if recipe not in references:
            path, before = folder / "undisturbed" / recipe.replace(" ", "-"), time.monotonic()
            finish(started(next_command(recipe, table, path)))
            references[recipe] = Reference(path=path, seconds=time.monotonic() - before)
        out = folder / f"round{number}"
        disturbed(recipe, table, out, references[recipe], chance, count)
        if found := differences(out, references[recipe].path):
            print(f"round {number}, {recipe}: {out} differs from {references[recipe].path} in {', '.join(found)}")
            return found
        shutil.rmtree(out)
        count.rounds += 1
        print(f"round {number}, {recipe}: the same; so far {count.kills} SIGKILL, {count.terms} SIGTERM", flush=True)
    return []


def main() -> int:
    """0, or 1 where a run was not what it should be."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=positive, default=100)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, default=None, help="where runs lie; a new temporary folder by default")
    args = parser.parse_args()
    folder = args.out or Path(tempfile.mkdtemp(prefix="sgfn-soak-"))
    folder.mkdir(parents=True, exist_ok=True)
    found = soak(folder, args.rounds, args.seed)
    if not found and args.out is None:
        shutil.rmtree(folder)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
