"""`sgfn sample` on the command line: parsing and printing only."""

import json
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Literal

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from tyro.conf import Positional, arg

from sgfn.cli.streams import Output
from sgfn.cli.tables import out
from sgfn.cli.trust import Named, Trusting, trust_of


@dataclass(frozen=True, kw_only=True)
class Sample:
    """Draw objects from a trained run into a table: what is realised, its score, and what was intended."""

    run: Annotated[Positional[Path], arg(metavar="RUN")]
    """Run folder."""
    n: Annotated[int, arg(aliases=["-n"])] = 1000
    """How many."""
    out: Path | None = None
    """File, .csv, .csv.gz or .parquet; by default samples.csv in the run folder."""
    temperature: float = 1.0
    """Above 1 flattens the policy, below 1 sharpens it."""
    greedy: bool = False
    """Always intend what is most probable; noise alone decides what comes out."""
    seed: int = 0
    """Seed of the draws."""
    overwrite: bool = False
    """Replace a file that is there."""
    device: Literal["auto", "cpu", "cuda"] = "auto"
    """Where to run."""
    json: bool = False
    """Print JSON."""
    named: Trusting = field(default_factory=Named)


def run_sample(args: Sample) -> None:
    """`sgfn sample`."""
    from sgfn.runs.sampling import sample  # torch is slow to import

    file = args.out or args.run / "samples.csv"
    err = Output(stderr=True)
    with counting(err, args.n, shown=err.is_terminal and not args.json) as progress:
        options = {name: getattr(args, name) for name in ("temperature", "greedy", "seed", "device", "overwrite")}
        count = sample(args.run, args.n, file, **options, progress=progress, trust=trust_of(args.named))
    if args.json:
        sys.stdout.write(json.dumps({"samples": count, "file": str(file)}, indent=2) + "\n")
    else:
        out.print(f"{count:,} samples in {file}", soft_wrap=True)


@contextmanager
def counting(console: Console, total: int, *, shown: bool) -> Iterator[Callable[[int], None]]:
    """A bar, from the first block on that is not the last."""
    columns = [BarColumn(), TextColumn("{task.completed:,}/{task.total:,}"), TimeElapsedColumn(), TimeRemainingColumn()]
    with Progress(*columns, console=console, refresh_per_second=4, disable=not shown) as bar:

        def progress(done: int) -> None:
            if not bar.task_ids and done < total:
                bar.add_task("sampling", total=total)
            if bar.task_ids:
                bar.update(bar.task_ids[0], completed=done)

        yield progress
