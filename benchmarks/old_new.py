"""Old against new: studies of the package before its present layout, beside the same cells run again since.

Old figures are those of the files at one commit. New ones are what the committed files hold now, for the cells that
were made again, else what lies in a folder: the same studies, run again with fewer seeds, each in a file of its name.

    python -m benchmarks.subtb --device cpu --seeds 1 --out runs/again/subtb.json    (and others)
    python -m benchmarks.old_new --again runs/again

A committed file that holds what it held was not made again. A cell is worse (or better) where the median of the new
runs lies beyond all old seeds; of n seeds alike, one more does so on either side with probability 1 / (n + 1). Figures
without seeds are exact, and must agree to 1e-6.
"""

import argparse
import json
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import torch

from benchmarks.common import RESULTS, Row, read_results, spread, write_results
from sgfn.config.files import read_json

BEFORE = "d22a10e"
"""The last commit before the present layout."""


@dataclass(frozen=True, kw_only=True)
class Compared:
    """What is compared of a study: the figure that it is about, and the fields that tell its cells apart."""

    file: str
    figure: str
    cells: tuple[str, ...]
    higher_is_better: bool = False
    new_file: str = ""
    """The committed file that holds the runs since, if that is another one."""
    only: Callable[[Row], bool] = lambda row: True


STUDIES: dict[str, Compared] = {
    "objectives by noise level": Compared(
        file="tfbind8_quality.json",
        new_file="tfbind8_quality_recheck.json",
        figure="tv",
        cells=("form", "objective", "alpha"),
    ),
    "the same, compiled on a CPU": Compared(file="compiled_quality.json", figure="tv", cells=("objective", "alpha")),
    "preset exact": Compared(file="tfbind8_exact_tb.json", figure="tv", cells=("alpha",)),
    "preset exact, kl": Compared(file="tfbind8_exact_kl.json", figure="tv", cells=("alpha",)),
    "KL family": Compared(file="kl_family.json", figure="tv", cells=("method", "beta", "alpha")),
    "sub-trajectory balance": Compared(file="subtb.json", figure="tv", cells=("method", "alpha")),
    "confusion matrices": Compared(file="confusion.json", figure="tv_rows", cells=()),
    "soft optimum": Compared(file="soft_optimum.json", figure="tv", cells=("alpha", "temperature")),
    "draws of the best law": Compared(
        file="published_ceiling.json", figure="top100_mean", cells=("beta", "alpha"), higher_is_better=True
    ),
    "published budget, TFBind8": Compared(
        file="published_tfbind8.json",
        figure="tv",
        cells=("method", "beta", "alpha"),
        only=lambda row: row.get("tv") is not None,
    ),
    "published budget, TFBind8, chains": Compared(
        file="published_tfbind8.json",
        figure="top100_mean",
        cells=("method", "beta", "alpha"),
        higher_is_better=True,
        only=lambda row: row["method"] in ("mh", "mars"),
    ),
    "published budget, grid": Compared(
        file="published_grid.json", figure="l1_mean", cells=("grid.side", "method", "alpha")
    ),
    "published budget, bits": Compared(
        file="published_bits.json",
        figure="modes_discovered",
        cells=("bits.k", "beta", "method", "alpha"),
        higher_is_better=True,
    ),
    "motif of length 30": Compared(file="motif.json", figure="kl", cells=("beta", "objective")),
    "hidden rate, distance": Compared(
        file="thought.json",
        figure="tv",
        cells=("task", "objective", "explore", "method"),
        only=lambda row: row.get("tv") is not None,
    ),
    "hidden rate, noise model": Compared(
        file="thought.json",
        figure="dynamics_nll",
        cells=("task", "objective", "explore", "method"),
        only=lambda row: "dynamics_nll" in row,
    ),
}


def before(file: str, commit: str) -> list[Row]:
    """Rows of a file of results as they stood at a commit."""
    shown = subprocess.run(
        ["git", "show", f"{commit}:benchmarks/results/{file}"],
        cwd=RESULTS,
        capture_output=True,
        text=True,
        check=True,
    )
    return json.loads(shown.stdout)["rows"]


def by_cell(study: Compared, rows: list[Row]) -> dict[str, list[float]]:
    """Cell -> the figure of each of its runs."""
    cells: dict[str, list[float]] = {}
    for row in rows:
        if study.only(row):
            cells.setdefault(", ".join(f"{name} {row[name]}" for name in study.cells), []).append(row[study.figure])
    return cells


def verdict(old: list[float], new: list[float], higher_is_better: bool) -> str:
    """`within` the old range, or `better` or `worse` than all of it, `far` if by more than old values lie apart.

    >>> verdict([0.1, 0.2], [0.15], False), verdict([0.1, 0.2], [0.25], False), verdict([0.1, 0.2], [0.35], True)
    ('within', 'worse', 'far better')
    """
    sign = -1.0 if higher_is_better else 1.0
    low, high = sorted((sign * min(old), sign * max(old)))
    median, exact, width = sign * spread(new)[0], 1e-6, high - low
    if low - exact <= median <= high + exact:
        return "within"
    far = "far " if max(low - median, median - high) > max(width, exact) else ""
    return far + ("worse" if median > high else "better")


def compared(name: str, study: Compared, again: Path) -> list[Row]:
    """A row for each cell of a study that was run on both sides."""
    old = by_cell(study, before(study.file, BEFORE))
    sources = [RESULTS / (study.new_file or study.file), again / study.file]
    found = [(path, read_json(path)) for path in sources if path.is_file()]
    rows = []
    for cell, values in old.items():
        runs = [(path, source, by_cell(study, source["rows"]).get(cell)) for path, source in found]
        made = [(source, new) for path, source, new in runs if new and (new != values or path.parent != RESULTS)]
        if not made:
            continue
        source, new = made[0]
        told = verdict(values, new, study.higher_is_better)
        figures = {"old": spread(values), "new": spread(new), "old_runs": len(values), "new_runs": len(new)}
        by = {"old_cells": len(old), "command": source["command"], "device": source["machine"]["device"]}
        rows.append({"study": name, "figure": study.figure, "cell": cell, **figures, "verdict": told, **by})
    return rows


def old_new_table() -> str:
    """How many cells of each study lie where they lay, and each that is far beyond."""
    rows = read_results("old_new.json")["rows"]
    lines = [
        "| study | figure | cells run again | runs a cell, old and new | within the old runs | better | worse "
        "| largest change |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for study in dict.fromkeys(row["study"] for row in rows):
        mine = [row for row in rows if row["study"] == study]
        counts = [sum(row["verdict"].endswith(word) for row in mine) for word in ("within", "better", "worse")]
        most = max(mine, key=lambda row: abs(row["new"][0] - row["old"][0]))
        change = f"{most['old'][0]:.4f} to {most['new'][0]:.4f}" + (f" ({most['cell']})" if most["cell"] else "")
        runs = " and ".join(sorted({f"{row['old_runs']}, {row['new_runs']}" for row in mine}))
        head = f"| {study} | `{most['figure']}` | {len(mine)} of {most['old_cells']} | {runs} | "
        lines.append(head + " | ".join(map(str, counts)) + f" | {change} |")
    far = [row for row in rows if row["verdict"].startswith("far")]
    if far:
        lines += ["", "Beyond the old runs by more than these lie apart, medians [lowest, highest]:", ""]
        lines += ["| study | cell | old | new |", "|---|---|---|---|"]
        for row in far:
            old, new = ("{:.4f} [{:.4f}, {:.4f}]".format(*row[side]) for side in ("old", "new"))
            lines.append(f"| {row['study']} | {row['cell']} | {old} | {new}, {row['verdict'].removeprefix('far ')} |")
    return "\n".join(lines)


def main() -> None:
    """Compare all studies, and write and print what was found."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--again", type=Path, default=Path("runs/again"), help="results of studies that were run again")
    parser.add_argument("--out", type=Path, default=RESULTS / "old_new.json")
    args = parser.parse_args()
    rows = [row for name, study in STUDIES.items() for row in compared(name, study, args.again)]
    write_results(args.out, "old_new", torch.device("cpu"), rows, before=BEFORE)
    read_results.cache_clear()
    print(old_new_table())


if __name__ == "__main__":
    main()
