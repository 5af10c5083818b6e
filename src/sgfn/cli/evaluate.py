"""`sgfn evaluate` on the command line: parsing and printing only."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Literal

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from tyro.conf import Positional, arg

import sgfn
from sgfn.cli.streams import Output
from sgfn.cli.tables import out, print_json, print_orders, print_result
from sgfn.cli.trust import Named, Trusting, trust_of


@dataclass(frozen=True, kw_only=True)
class Evaluate:
    """Compare a trained run with the exact answer; writes exact.json inside the run folder."""

    run: Annotated[Positional[Path], arg(metavar="RUN")]
    """Run folder."""
    samples: int = 2048
    """Samples drawn for top-100 and modes."""
    seed: int = 0
    """Seed of the draws."""
    device: Literal["auto", "cpu", "cuda"] = "auto"
    """Where to run."""
    max_states: int = 2_000_000
    """Largest space that is enumerated."""
    mode_distance: int = 2
    """A mode lies further than this from every better one: Hamming distance, or steps on a grid."""
    mode_level: float | None = None
    """Lowest score of a mode; by default the task's own."""
    json: bool = False
    """Print JSON."""
    named: Trusting = field(default_factory=Named)


def run_evaluate(args: Evaluate) -> None:
    """`sgfn evaluate`."""
    trust, err = trust_of(args.named), Output(stderr=True)
    given = ("samples", "seed", "device", "max_states", "mode_distance", "mode_level")
    options: dict[str, Any] = {name: getattr(args, name) for name in given}
    options["notice"] = lambda line: err.print(line, soft_wrap=True)
    with stage_bar(err, shown=err.is_terminal and not args.json) as progress:
        result = sgfn.evaluate(args.run, **options, trust=trust, progress=progress)
    if args.json:
        return print_json(dict(result))
    print_result(result)
    from sgfn.runs.advice import little_learned  # torch is slow to import

    known = result["tv"] is not None and result["bound_by_floor"]
    if known and (line := little_learned(result["tv"], result["tv_uniform"], result["tv_floor"])):
        out.print(line, soft_wrap=True)
    steps = sgfn.Run(path=args.run, trust=trust).read_config()[1].steps
    if result["step"] < steps:
        out.print(f"training is not finished: step {result['step']:,} of {steps:,}")
    return print_orders(result)


@contextmanager
def stage_bar(console: Console, *, shown: bool) -> Iterator[Callable[[str, int, int | None], None]]:
    """A bar of the stage that an evaluation is at; it moves to and fro where nobody can tell how long that takes."""
    columns = [TextColumn("[bold]{task.description}"), BarColumn(), TextColumn("{task.fields[parts]}")]
    columns += [TimeElapsedColumn(), TimeRemainingColumn()]
    with Progress(*columns, console=console, refresh_per_second=4, transient=True, disable=not shown) as bar:
        stages = {"reading the run": bar.add_task("reading the run", total=None, parts="")}

        def progress(name: str, done: int, total: int | None) -> None:
            if name not in stages:
                bar.remove_task(bar.task_ids[-1])
                stages[name] = bar.add_task(name, total=total, parts="")
            bar.update(stages[name], completed=done, parts="" if total is None else f"{done:,}/{total:,} states")

        yield progress
