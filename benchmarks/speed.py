"""Speed of the training loop beside others, TFBind8, trajectory balance, in one run with turns interleaved.

    python -m benchmarks.speed contest --device cpu      updates/s, trajectories/s and memory by batch and width
    python -m benchmarks.speed race --device cpu         seconds to TV .20 without noise, compilation included
    python -m benchmarks.speed all --device cuda         all of it on a GPU, beside JAX where it can be imported
    python -m benchmarks.speed real --device cuda        long sequences, large alphabets, transformers: see speed_real

`tb` is without noise; `stochastic` has uniform slip .25 and a learned noise model, which of the others only our JAX
reference has. On a CPU torchgfn and gfnx are installed into environments of their own under benchmarks/.peers. Machines
drift: ratios are medians over rounds, each round a turn of every contestant. Sizes that the file has already are not
measured again.
"""

import argparse
import itertools
import math
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import torch

from benchmarks import speed_real
from benchmarks.common import RESULTS, device_here, positive, write_results
from benchmarks.speed_peers.environments import OURS, enter, present, python_of, table_file
from benchmarks.turns import Turns
from sgfn.config.files import read_json
from sgfn.learning.execution import replayed

BATCHES, WIDTHS, BURST = (16, 256, 4096), (256, 2048), replayed(8)
ROUNDS, SECONDS, GOAL, LIMIT = 5, 2.0, 0.20, 60.0
PUBLISHED_PER_SECOND = 31 * 32
"""Trajectories of the published loop, 16 own and 16 offline at 31 updates/s (2 cores, AMD EPYC)."""
GFNX_SHIPPED = {"16": 598, "256": 535, "4096": 430}
"""Updates/s of gfnx's own script on an H200 (no noise model, trajectory balance), by batch."""
OTHERS: dict[str, dict[str, Any]] = {
    "cpu": {"published_trajectories_per_second": PUBLISHED_PER_SECOND},
    "cuda": {"gfnx_shipped": GFNX_SHIPPED},
}
SMALL = {"batch": 16, "lr": 1e-3, "steps": 6000, "chunk": 100}
LARGER = {"batch": 64, "lr": 2e-3, "steps": 3000, "chunk": 50}
RACES: dict[str, list[dict[str, Any]]] = {
    "ours": [SMALL, LARGER],
    "uncompiled": [SMALL, LARGER],
    "jax": [SMALL, LARGER],
    "gfnx": [SMALL],
    "torchgfn": [{**SMALL, "chunk": 500}],
}
"""Settings tried by each; the best counts."""


def chunk_of(batch: int, hidden: int, device: str) -> int:
    """Updates between looks at the clock: about a tenth of a second's work; on a GPU whole bursts."""
    work = 6 * 8 * batch * (hidden**2 + 50 * hidden)
    if device == "cpu":
        return max(1, min(200, int(2e10 / work)))
    return max(2 * BURST, min(200, int(4e12 / work)) // BURST * BURST)


def tell(row: dict[str, Any]) -> None:
    """Print one line of the table."""
    head = f"{row['objective']:>10} {row['hidden']:>6} {row['batch']:>6} {row['who']:>10}"
    if "error" in row:
        print(f"{head}  {row['error']}", flush=True)
        return
    rate, paths = row["updates_per_second"], row["trajectories_per_second"]
    memory = row["device_memory_mib"] or row["memory_mib"]
    times, core, start = row["ours_is_times"] or math.nan, row["updates_per_core_second"], row["start_seconds"]
    figures = f"{rate:>11,.1f} {paths:>14,} {times:>9.2f} {core:>8,.1f} {memory:>7,.0f} {start:>7.1f}"
    print(f"{head} {figures}", flush=True)


def missing(args: argparse.Namespace, table: str, rows: list[dict[str, Any]]) -> list[Turns]:
    """Jobs for sizes without rows, with their contestants; those without a noise model are left out of `stochastic`."""
    names, found = present(args.device), []
    for hidden, batch, objective in itertools.product(args.widths, args.batches, ("tb", "stochastic")):
        job: dict[str, Any] = {"objective": objective, "batch": batch, "hidden": hidden}
        if not any(job.items() <= row.items() for row in rows):
            job |= {"device": args.device, "table": table, "chunk": chunk_of(batch, hidden, args.device)}
            found.append(Turns(job, names if objective == "tb" else [n for n in names if n in (*OURS, "jax")]))
    return found


def contests(args: argparse.Namespace, table: str) -> None:
    """Measure the sizes that the file does not have yet."""
    heads = ("hidden", 6), ("batch", 6), ("", 10), ("updates/s", 11), ("trajectories/s", 14), ("ours is x", 9)
    print(" " * 10, *(f"{name:>{width}}" for name, width in heads), "per core     MiB start s")
    out = args.out / f"speed_{args.device}.json"
    rows = read_json(out)["rows"] if out.is_file() else []
    jobs = missing(args, table, rows)
    if not jobs:
        print(f"{out} has all of these sizes already: give --out another folder to measure them anew")
    for name in {name for job in jobs for name in job.names}:
        python_of(name)  # installs what is missing before anybody starts
    at_once, began = args.at_once or 1, time.monotonic()
    for first in range(0, len(jobs), at_once):
        if args.minutes and time.monotonic() - began > 60.0 * args.minutes:
            print(f"{args.minutes} minutes are over: {len(jobs) - first} sizes are left, the same command goes on")
            break
        group = jobs[first : first + at_once]
        with ThreadPoolExecutor(1 if at_once == 1 else None) as pool:  # one job: one start after the other
            entries = [(job, name) for job in group for name in job.names]
            list(pool.map(lambda entry: entry[0].prepare(entry[1]), entries))
        for job in group:
            found = job.take(args.rounds or ROUNDS, args.seconds or SECONDS)
            for row in found:
                tell(row)
            rows += found
            write_results(out, "speed", torch.device(args.device), rows, **OTHERS[args.device])


def races(device: str, table: str, rounds: int) -> list[dict[str, Any]]:
    """Seconds of each contestant to TV .20, a process of its own each time."""
    rows = []
    for seed in range(rounds):
        for name in present(device):
            for setting in RACES[name]:
                job: Any = {**setting, "device": device, "table": table, "seed": seed}
                job["accelerate"] = OURS.get(name, "")
                contestant = enter(name)
                found = contestant.ask(do="race", job=job, goal=GOAL, limit=LIMIT)
                contestant.leave()
                rows.append({"who": name, "about": contestant.about, **setting, "seed": seed, **found})
                print({key: value for key, value in rows[-1].items() if key not in ("curve", "about")}, flush=True)
    return rows


def parse() -> argparse.Namespace:
    """Parse the flags of the command."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("part", choices=["all", "contest", "race", "real"])
    parser.add_argument("--device", type=device_here, default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--widths", nargs="+", type=int, default=WIDTHS, help="layers of these sizes")
    parser.add_argument("--batches", nargs="+", type=int, default=BATCHES, help="batches of these sizes")
    parser.add_argument("--rounds", type=positive, default=0, help=f"turns of each contestant, {ROUNDS} but for real")
    parser.add_argument("--seconds", type=float, default=0.0, help=f"of each turn, {SECONDS:.0f} but for real")
    parser.add_argument(
        "--at-once", type=positive, default=0, help="sizes whose contestants start together, for many cores"
    )
    parser.add_argument("--seeds", type=positive, default=5, help="races")
    parser.add_argument("--out", type=Path, default=RESULTS, help="folder of the results")
    speed_real.add_flags(parser)
    return parser.parse_args()


def main() -> None:
    """Run what is missing of the contest, or the races."""
    args = parse()
    if args.part == "real":
        speed_real.measure(args)
        return
    with tempfile.TemporaryDirectory() as folder:
        table = table_file(Path(folder))
        if args.part in ("all", "contest"):
            contests(args, table)
        if args.part in ("all", "race"):
            rows = races(args.device, table, args.seeds)
            out = args.out / f"race_{args.device}.json"
            write_results(out, "speed", torch.device(args.device), rows, goal=GOAL)


if __name__ == "__main__":
    main()
