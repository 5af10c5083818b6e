"""`sgfn sample` on the command line: parsing and printing only."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Literal

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from tyro.conf import Positional, arg

from sgfn.cli.cluster_flags import ClusterFlags, OnCluster, cluster_options
from sgfn.cli.numbers import WHOLE
from sgfn.cli.streams import Output
from sgfn.cli.tables import out, print_json
from sgfn.cli.trust import Named, Trusting, trust_of
from sgfn.config.cluster import check_cluster_settings


@dataclass(frozen=True, kw_only=True)
class Sample:
    """Draw objects from a trained run into a table: what is realised, its score, and what was intended."""

    run: Annotated[Positional[Path], arg(metavar="RUN")]
    """Run folder."""
    n: Annotated[int, arg(aliases=["-n"]), WHOLE] = 1000
    """How many, also as 1e9."""
    out: Path | None = None
    """File, .csv, .csv.gz or .parquet; by default samples.csv in the run folder. Of shards a folder, by default
    samples."""
    shards: int | None = None
    """Write a folder of so many Parquet files; the same command again draws those that are missing."""
    shard_size: Annotated[int | None, arg(metavar="INT")] = None
    """Write such a folder with so many samples in each file; with --cluster 1,000,000 by default."""
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
    nodes: ClusterFlags = field(default_factory=OnCluster)
    named: Trusting = field(default_factory=Named)


def run_sample(args: Sample) -> None:
    """`sgfn sample`."""
    if args.nodes.cluster is not None or args.shards is not None or args.shard_size is not None:
        return run_sample_shards(args)
    check_cluster_settings(**cluster_options(args.nodes))
    from sgfn.runs.sampling import sample  # torch is slow to import

    file = args.out or args.run / "samples.csv"
    err = Output(stderr=True)
    with counting(err, args.n, shown=err.is_terminal and not args.json) as progress:
        options = {name: getattr(args, name) for name in ("temperature", "greedy", "seed", "device", "overwrite")}
        count = sample(args.run, args.n, file, **options, progress=progress, trust=trust_of(args.named))
    if args.json:
        print_json({"samples": count, "file": str(file)})
    else:
        out.print(f"{count:,} samples in {file}", soft_wrap=True)
    return None


def run_sample_shards(args: Sample) -> None:
    """`sgfn sample` into a folder of shards."""
    from sgfn.runs.shards import SHARD, sample_shards  # torch is slow to import

    if args.shards is not None and args.shard_size is not None:
        raise ValueError("--shards and --shard-size say the same in two ways: give one of them")
    size: dict[str, int] = {"shard_size": SHARD if args.shard_size is None else args.shard_size}
    if args.shards is not None:
        size = {"shards": args.shards}
    err = Output(stderr=True)
    with counting(err, args.n, shown=err.is_terminal and not args.json) as progress:
        options = {name: getattr(args, name) for name in ("temperature", "greedy", "seed", "device", "overwrite")}
        options |= size | {"trust": trust_of(args.named), "progress": progress}
        found = sample_shards(
            args.run, args.n, args.out or args.run / "samples", **options, **cluster_options(args.nodes)
        )
    if args.json:
        told = {"samples": found.samples, "folder": str(found.path), "shards": found.files, "drawn": found.drawn}
        return print_json(told)
    there = f", {len(found.files) - found.drawn:,} of them were there" if found.drawn < len(found.files) else ""
    return out.print(f"{found.samples:,} samples in {len(found.files):,} shards in {found.path}{there}", soft_wrap=True)


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
