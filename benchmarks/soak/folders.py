"""Folders that commands of sgfn left, made once: what a user may have when something goes wrong."""

import fcntl
import os
import shutil
from datetime import date, timedelta
from pathlib import Path

from benchmarks.soak.forks import ForkServer

SMALL = "--batch 8 --steps 20 --log.every 5 --log.exact-every 10 --log.checkpoint-every 10 --device cpu"
NET = "--net.hidden 16 --dynamics.hidden 8"
TABLE = "sequence,score\nACG,1\nCAT,0.5\nTAG,0.2\nGGA,0.7\nTTT,0.1\nACC,0.4\n"
SLIPS = "intended,A,C,G,T\nA,0.7,0.1,0.1,0.1\nC,0.1,0.7,0.1,0.1\nG,0.1,0.1,0.7,0.1\nT,0.1,0.1,0.1,0.7\n"
SCORES = "def gc(texts):\n    return [t.count('G') + t.count('C') for t in texts]\n"
SERIES = "unique_id,ds,y\n" + "".join(
    f"{name},{date(2024, 1, 1) + timedelta(days=day)},{50 + 5 * (day % 7) + (3 * day * len(name)) % 4}\n"
    for name in ("a", "bb")
    for day in range(56)
)
SHORT = "--horizon 4 --steps 6 --batch 4 --members 1 --folds 0 --bins 8 --net.hidden 8 --net.layers 1 --net.heads 2"
SHORT += " --samples 16 --context 8 --log.every 2 --log.checkpoint-every 2 --windows 2 --figures 1"
SHORT += " --laws network --baselines seasonal-naive --device cpu"
SAVE = """
import scores, sgfn
space = sgfn.Sequences("ACGT", 3, noise=0.1)
sgfn.fit(space, reward=scores.gc, steps=10, batch=8, net__hidden=8, dynamics__hidden=8, progress=False).save("run")
"""
FLAT = "sequence,score\nACG,1\nCAT,1\n"
NEW = "sequence,score\nACA,0.9\nCCG,0.3\n"
FILES = {"t.csv": TABLE, "new.csv": NEW, "slips.csv": SLIPS, "scores.py": SCORES, "s.csv": SERIES, "flat.csv": FLAT}

COMMANDS: dict[str, list[str]] = {
    "grid": [f"train grid --grid.side 3 {SMALL} {NET} --out run", "evaluate run --samples 64 --device cpu"],
    "words": [f"train words {SMALL} {NET} --out run", "evaluate run --samples 64 --device cpu"],
    "chain": [f"train grid --grid.side 3 --method mh {SMALL} --out run", "evaluate run --samples 64 --device cpu"],
    "table": [
        f"train table --table.file t.csv --noise.kind confusion --noise.file slips.csv --offline.share 0.25 {SMALL} "
        f"{NET} --out run",
        "evaluate run --samples 64 --device cpu",
    ],
    "callable": [f"train callable --callable.function scores:gc --callable.length 3 {SMALL} {NET} --out run"],
    "forecast": [f"forecast s.csv {SHORT} --out run"],
    "compare": [
        f"compare table --table.file t.csv --methods tb mh --seeds 1 --samples 64 {SMALL} {NET} --out run",
    ],
    "saved": ["-c"],
    "design": ["design propose t.csv --orders 4 --proxy ridge --noise.alpha 0.1 --out run"],
    "constant": [f"train table --table.file flat.csv --table.unseen lowest {SMALL} {NET} --out run"],
}
"""By the name of a base: the commands that make its `run`."""


class Bases:
    """Folders as commands left them, each made when it is first asked for."""

    def __init__(self, server: ForkServer, home: Path) -> None:
        self.server, self.home = server, home

    def folder(self, name: str) -> Path:
        """Folder in which a base was made: `run` and the files that it was made from; without a name these alone."""
        folder = self.home / (name or "files")
        self.home.mkdir(parents=True, exist_ok=True)
        with (self.home / "lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)  # another process may use the same folders
            if not folder.exists():
                self._make(name, folder)
        return folder

    def scratch(self, name: str) -> Path:
        """A path beside the folders that no other process uses."""
        return self.home / f"{name} {os.getpid()}"

    def _make(self, name: str, folder: Path) -> None:
        folder.mkdir()
        for file, text in FILES.items():
            (folder / file).write_text(text)
        for command in COMMANDS[name] if name else ():
            words = ["-c", SAVE] if command == "-c" else command.split()
            ended = self.server.run(words, folder)
            if ended.code != 0:
                raise RuntimeError(f"{command}: {ended.err}")

    def lay(self, name: str, folder: Path) -> None:
        """Put a copy of a base's `run`, and of the files that it was made from, into a folder, as if made there."""
        made = self.folder(name)
        shutil.copytree(made, folder, dirs_exist_ok=True)
        for file in (folder / "run").rglob("*.json"):
            file.write_text(file.read_text().replace(str(made.resolve()), str(folder.resolve())))
