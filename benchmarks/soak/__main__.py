"""Commands of sgfn under every kind of disturbance, for as long as you like: `make soak`.

    python -m benchmarks.soak --minutes 20 --seed 0

First the corpus of tests/faults, each row once; then random rounds for so many minutes: commands killed by SIGKILL,
SIGTERM or SIGINT at random moments and gone on with, commands on a full disk, on damaged and on forged folders, and
commands of random words. What comes out is compared with the same undisturbed, bit for bit. Prints counts, writes them
as JSON, and ends with 1 where anything was found. On a CPU, with two processes side by side. `--no-corpus` does the
rounds alone, and leaves the corpus in the file of counts as it was.
"""

import argparse
import json
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

import torch

from benchmarks.common import RESULTS, machine, positive
from benchmarks.soak.forks import ForkServer
from benchmarks.soak.rounds import Rounds, Tally
from benchmarks.soak.rows import Row, corpus
from sgfn.config.files import read_json, write_json

SHOWN = 40
"""Findings that are printed."""


def work(rows: list[Row], seconds: float, seed: str, tallies: list[tuple[Tally, Tally]], show: bool) -> None:
    """Run some rows of the corpus, then rounds for so many seconds."""
    with ForkServer() as server, tempfile.TemporaryDirectory(prefix="sgfn-soak-", ignore_cleanup_errors=True) as home:
        first = Rounds(server, Path(home) / "corpus", seed)
        first.home.mkdir()
        for row in rows:
            first.row(row)
        rounds, said = Rounds(server, Path(home) / "soak", seed), time.monotonic()
        until = said + seconds
        rounds.home.mkdir()
        while time.monotonic() < until:
            rounds.play()
            if show and time.monotonic() - said > 60:
                said = time.monotonic()
                print(f"{(until - said) / 60:.0f} min left: {line(rounds.tally)}", flush=True)
        tallies.append((first.tally, rounds.tally))


def line(tally: Tally) -> str:
    """Counts in one line."""
    found = {kind: count for kind, count in tally.troubles().items() if count}
    return f"{sum(tally.commands.values()):,} commands, {dict(tally.disturbances)}, found {found or 'nothing'}"


def result(tally: Tally, what: str, command: str) -> dict[str, Any]:
    """One row of the result: what was done, and what was found."""
    done = {"commands": sum(tally.commands.values()), "verbs": dict(sorted(tally.commands.items()))}
    return {
        "what": what,
        "command": command,
        **done,
        "disturbances": dict(sorted(tally.disturbances.items())),
        **tally.troubles(),
    }


def kept_corpus(file: Path) -> list[dict[str, Any]]:
    """What a file of counts says of the corpus; nothing where there is none."""
    rows = read_json(file)["rows"] if file.is_file() else []
    return [one for one in rows if one["what"] == "corpus"]


def main() -> int:
    """0, or 1 where something is not as it should be."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=positive, default=20, help="how long, beside the corpus")
    parser.add_argument("--no-corpus", action="store_true", help="random rounds alone")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--jobs", type=positive, default=2, help="processes side by side")
    parser.add_argument("--out", type=Path, default=RESULTS / "soak.json", help="counts as JSON")
    args = parser.parse_args()
    rows = [] if args.no_corpus else corpus()
    tallies: list[tuple[Tally, Tally]] = []
    threads = [
        threading.Thread(
            target=work, args=(rows[i :: args.jobs], 60 * args.minutes, f"{args.seed} {i}", tallies, i == 0)
        )
        for i in range(args.jobs)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if len(tallies) < args.jobs:
        print("a worker of the soak has failed, see above: nothing is written")
        return 1
    known, soaked = Tally(), Tally()
    for first, second in tallies:
        known.add(first)
        soaked.add(second)
    found = [str(one) for one in (*known.found, *soaked.found)]
    command = f"python -m benchmarks.soak --minutes {args.minutes} --seed {args.seed}{' --no-corpus' * args.no_corpus}"
    made = [result(known, "corpus", command), result(soaked, "soak", command)]
    if args.no_corpus:
        made[:1] = kept_corpus(args.out)
    for one in made:
        print(json.dumps(one, indent=2))
    for one in found[:SHOWN]:
        print(f"FOUND: {one}")
    facts = {"command": command, "machine": machine(torch.device("cpu")), "minutes": args.minutes, "seed": args.seed}
    write_json(args.out, facts | {"rows": made})
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
