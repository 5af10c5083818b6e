"""The command line: parsing and printing only."""

import contextlib
import os
import sys
from collections.abc import Callable
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Annotated, Any, Literal, get_args, get_type_hints

from tyro.conf import Fixed, Positional, Suppress, arg

import sgfn
from sgfn.cli.channel import DesignChannel, run_channel
from sgfn.cli.cluster_flags import ClusterFlags, OnCluster, cluster_options
from sgfn.cli.data import Data, run_data
from sgfn.cli.design import DesignPropose, run_propose
from sgfn.cli.evaluate import Evaluate, run_evaluate
from sgfn.cli.forecast import Forecast, by_series_flags, run_forecast
from sgfn.cli.interruptions import whole_interruptions
from sgfn.cli.library import DesignLibrary, run_library
from sgfn.cli.noise import NoiseList, run_noise
from sgfn.cli.order import Order, run_order
from sgfn.cli.parsing import (
    UsageError,
    by_flags,
    check_channel,
    check_choices,
    check_numbers,
    fields_said,
    flag_value,
    flags_of,
    parse_words,
    spelled_out,
)
from sgfn.cli.report import Report, run_report
from sgfn.cli.sample import Sample, run_sample
from sgfn.cli.simulate import DesignSimulate, run_simulate
from sgfn.cli.streams import Output, in_one_line, open_streams, printed_aside, silence
from sgfn.cli.tables import (
    out,
    print_catalogue,
    print_comparison,
    print_facts,
    print_json,
)
from sgfn.cli.task_flags import TaskFlags
from sgfn.compare.names import DEFAULT
from sgfn.config import Accelerate, Preset, TrainConfig
from sgfn.config.checks import one_of
from sgfn.config.launch import first_to_fail, speaks
from sgfn.config.presets import PRESETS
from sgfn.config.reading import check_named
from sgfn.config.shell import command
from sgfn.config.user_code import user_errors
from sgfn.runs.progress import figures, training_bar

Device = Literal["auto", "cpu", "cuda"]
Config = Annotated[TrainConfig, arg(name="")]
Said = Suppress[Fixed[frozenset[str]]]
"""Names of the settings that the command line gives."""


@dataclass(frozen=True, kw_only=True)
class Tasks:
    """List the tasks, or tell what is known of one at the given noise: size, maximum, best reachable TV."""

    name: Annotated[Positional[str | None], arg(metavar="[NAME]")] = None
    """Task to look at, or `module:builder`, yours; none lists them all."""
    config: Annotated[TaskFlags, arg(name="")] = field(default_factory=TaskFlags)
    said: Said = frozenset()
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
    """Recipe to start from: demo (CPU, minutes), table (CPU, where states can be listed),
    exact (GPU, to the floor), frugal (few trajectories); published-...:
    the budgets of Pan et al. (2023), to which the noise must be chosen."""
    resume: bool = False
    """Continue the run in the folder with its own configuration, to more --steps if you like."""
    overwrite: bool = False
    """Replace a run that is there."""
    device: Device = "auto"
    """Where to run."""
    accelerate: Accelerate = "auto"
    """How to run steps: `eager`, as they are; `compile`, which takes half a minute first (`compile-float32`: on a CPU
    no factor of a product is rounded); `graph`, captured on a GPU; `auto` picks by device and length of the run. The
    numbers are the same up to rounding."""
    json: bool = False
    """Print the last figures as JSON instead of a progress bar."""
    trust: bool = False
    """With --resume: run the code, and open the files, that the run names and this command does not name again."""
    nodes: ClusterFlags = field(default_factory=OnCluster)
    config: Config = field(default_factory=TrainConfig)
    said: Said = frozenset()
    named: Suppress[Fixed[TrainConfig | None]] = None
    """The flags alone, where `config` begins with that of a run."""


@dataclass(frozen=True, kw_only=True)
class Compare:
    """Compare methods on a task, over noise levels and seeds; the same command again continues, or adds to it."""

    task: Annotated[Positional[str], arg(metavar="TASK")]
    """Task name, which `sgfn tasks` lists; or `module:builder`, yours."""
    methods: tuple[str, ...] = DEFAULT
    """Which, of the names listed last. Or `module:objective`, yours."""
    alphas: tuple[float, ...] | None = None
    """Noise levels; by default the one of --noise.alpha."""
    seeds: int = 3
    """How many seeds, from --seed on."""
    jobs: int = 1
    """Runs at a time, each a process of its own; from two on with one thread each unless OMP_NUM_THREADS is set."""
    out: Path | None = None
    """Folder of the comparison; by default runs/compare-TASK."""
    preset: Preset = "none"
    """Recipe to start from: demo (CPU, minutes), table (CPU, where states can be listed),
    exact (GPU, to the floor), frugal (few trajectories); published-...:
    the budgets of Pan et al. (2023), to which the noise must be chosen."""
    samples: int = 2048
    """Samples drawn from each run for top-100 and modes."""
    device: Device = "auto"
    """Where to run."""
    accelerate: Accelerate = "auto"
    """How to run steps, as for `train`; a method that cannot be run so is run as it is."""
    json: bool = False
    """Print JSON."""
    trust: bool = False
    """In a folder that is there: import the methods that are code and are not named again, and follow links."""
    nodes: ClusterFlags = field(default_factory=OnCluster)
    config: Config = field(default_factory=TrainConfig)
    said: Said = frozenset()


err = Output(stderr=True)


def run_tasks(args: Tasks) -> None:
    """`sgfn tasks`."""
    config = TrainConfig(**{part.name: getattr(args.config, part.name) for part in fields(TaskFlags)})
    from sgfn.learning.unread import refuse_unread_task  # torch is slow to import

    refuse_unread_task(args.name, config, args.said)
    if args.name is None:
        listed = sgfn.catalogue(config, args.max_states)
        return print_json([dict(row) for row in listed]) if args.json else print_catalogue(listed)
    facts = sgfn.describe(args.name, config, args.max_states)
    return print_json(dict(facts)) if args.json else print_facts(facts)


def run_train(args: Train) -> None:
    """`sgfn train`."""
    folder, steps = folder_of(args), args.config.steps
    options: dict[str, Any] = {n: getattr(args, n) for n in ("resume", "overwrite", "device", "accelerate")}
    options |= cluster_options(args.nodes)
    options |= {"baseline": PRESETS[args.preset], "said": args.said, "trust": args.trust or named_again(args)}
    if not speaks():  # one of several processes that torchrun has started
        sgfn.train(args.task, args.config, folder, **options)
        return None
    if args.json:
        told: list[str] = []
        options["progress"] = lambda _, row: told.extend([row["notice"]] if "notice" in row else [])
        run = sgfn.train(args.task, args.config, folder, **options)
        notices = {"notices": told} if told else {}
        return print_json(last_row(run, steps) | notices | {"run": str(folder)})
    with training_bar(err, disable=not err.is_terminal) as bar:
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
    for words in filter(None, (trained_words(args.config), noise_words(args.task, args.config))):
        out.print(words, soft_wrap=True)
    return out.print(f"next: {next_command(run)}", soft_wrap=True)


def trained_words(config: TrainConfig) -> str:
    """What a flow network's loss was made of, where that is more than one term; else empty."""
    from sgfn.objectives.making import loss_words  # torch is slow to import

    words = loss_words(config) if config.method == "gfn" else ""
    return words if " + " in words or "; off" in words or config.objective == "kl-entropy" else ""


def noise_words(task: str, config: TrainConfig) -> str:
    """That a user's own scores were trained for under the default noise, where no other was asked for; else empty."""
    if task not in ("table", "callable") or config.noise != TrainConfig().noise:
        return ""
    return f"noise: uniform slip {config.noise.alpha:g}, the default; --noise.alpha 0 trains without noise"


def named_again(args: Train) -> dict[str, str]:
    """Code and files that a `train` command names, by field."""
    from sgfn.runs.train import absolute  # torch is slow to import
    from sgfn.runs.trust import named

    return named(args.task, absolute(args.named or args.config))


def next_command(run: "sgfn.Run") -> str:
    """The command to run next on a trained run, as text; it names again the code that the run names."""
    from sgfn.runs.trust import again

    if run.read_config()[0] == "series":
        return command("forecast", "--resume", "--windows", "0", out=run.path)
    return command("evaluate", run.path) + again(run.code())


def folder_of(args: Train) -> Path:
    """The run folder of a `train` command."""
    return args.out or Path("runs") / args.task.replace(":", "-")


def last_row(run: "sgfn.Run", steps: int) -> dict[str, Any]:
    """The newest figures; someone may have removed the metrics of a run that was done."""
    return run.last_row() or {"step": steps}


def run_compare(args: Compare) -> None:
    """`sgfn compare`."""
    from sgfn.compare.live import Lines, LiveDisplay

    given = ("methods", "alphas", "seeds", "jobs", "samples", "device", "accelerate", "trust")
    options: dict[str, Any] = {name: getattr(args, name) for name in given}
    options |= cluster_options(args.nodes) | {"baseline": PRESETS[args.preset], "said": args.said}
    board = LiveDisplay(err) if err.is_terminal else None
    from sgfn.runs.copies import files_there, large_copies

    folder = args.out or Path("runs") / f"compare-{args.task.replace(':', '-')}"
    check_named(files := files_there(args.config))
    if not folder.exists() and (line := large_copies(files, folder)):
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


COMMANDS: dict[str, tuple[type, Callable[[Any], None]]] = {
    "tasks": (Tasks, run_tasks),
    "train": (Train, run_train),
    "sample": (Sample, run_sample),
    "order": (Order, run_order),
    "evaluate": (Evaluate, run_evaluate),
    "report": (Report, run_report),
    "compare": (Compare, run_compare),
    "forecast": (Forecast, run_forecast),
    "design propose": (DesignPropose, run_propose),
    "design simulate": (DesignSimulate, run_simulate),
    "design library": (DesignLibrary, run_library),
    "design channel": (DesignChannel, run_channel),
    "noise": (NoiseList, run_noise),
    "data": (Data, run_data),
}


def usage(group: str = "") -> str:
    """What a bare `sgfn` prints, or `sgfn design --help` of the commands that begin with that word."""
    named = {name: kind for name, (kind, _) in COMMANDS.items() if name.startswith(group)}
    lines = [f"  sgfn {name:15} {(kind.__doc__ or '').splitlines()[0]}" for name, kind in named.items()]
    return "\n".join(
        [f"usage: sgfn {group}COMMAND ...", "", *lines, "", f"sgfn {group}COMMAND --help tells all flags.", ""]
    )


def parse(kind: type, command: str, words: list[str]) -> Any:
    """Flags to dataclass; whatever is wrong with them comes back as one line."""
    words = spelled_out(kind, aimed(words))
    check_choices(kind, words)
    check_numbers(kind, words)
    check_channel(words)
    default, preset = None, flag_value(words, "preset")
    if kind in (Train, Compare) and preset is not None:
        one_of("--preset", preset, get_args(Preset))
        default = PRESETS[preset]
    args = parse_words(with_default(kind, default), command, words)
    if kind is Train and default is None and args.resume and (folder_of(args) / "config.json").is_file():
        own = sgfn.Run(path=folder_of(args), trust=args.trust).read_config()[1]
        again = parse_words(with_default(kind, own), command, words)  # so that what is not said is as it was
        return replace(again, named=args.config)
    if kind in (Tasks, Train, Compare, Forecast, DesignSimulate):
        settings = kind if kind is Forecast else get_type_hints(kind)["config"]  # other flags may be called alike
        return replace(args, said=fields_said(words, settings))
    return replace(args, said=flags_of(words)) if kind is DesignPropose else args


def aimed(words: list[str]) -> list[str]:
    """Flags with `--beta auto` as `--aim auto`, which it is another name of.

    >>> aimed(["train", "--beta", "auto", "--beta=3"])
    ['train', '--aim', 'auto', '--beta=3']
    """
    following = [*words[1:], ""]
    named = {("--beta", "auto"): "--aim"} | {("--beta=auto", after): "--aim=auto" for after in following}
    return [named.get(pair, pair[0]) for pair in zip(words, following, strict=True)] if words else words


def with_default(kind: type, config: TrainConfig | None) -> type:
    """The command with another recipe as the default of its configuration flags."""
    if config is None:
        return kind
    fields = {"config": field(default_factory=lambda: config), "__annotations__": {"config": Config}}
    return dataclass(frozen=True, kw_only=True)(type(kind.__name__, (kind,), {"__doc__": kind.__doc__, **fields}))


def command_of(words: list[str]) -> tuple[str, list[str]]:
    """The command that words begin with, of one word or of two, and the words behind it."""
    first = words[0]
    if seconds := [name.split()[1] for name in COMMANDS if name.startswith(f"{first} ")]:
        if len(words) < 2:
            raise UsageError(f"`sgfn {first}` needs one of {', '.join(seconds)} behind it")
        one_of(f"{first} command", words[1], seconds)
        return f"{first} {words[1]}", words[2:]
    one_of("command", first, COMMANDS)
    return first, words[1:]


def act(words: list[str]) -> None:
    """Run one command line; returns the exit code."""
    if not words or words[0] in ("-h", "--help"):
        sys.stdout.write(usage())
    elif words[0] == "--version":
        sys.stdout.write(f"sgfn {sgfn.__version__}\n")
    elif words[1:2] in (["-h"], ["--help"]) and any(name.startswith(f"{words[0]} ") for name in COMMANDS):
        sys.stdout.write(usage(f"{words[0]} "))
    else:
        name, words = command_of(words)
        kind, action = COMMANDS[name]
        args = parse(kind, name, words)
        with user_errors(), printed_aside() if getattr(args, "json", False) else contextlib.nullcontext():
            if isinstance(args, Train) and args.task == "series":
                refuse_on_series(words)
            action(args)


def refuse_on_series(words: list[str]) -> None:
    """Raise for a flag of flow networks that was given for a time series, also where it has its default value."""
    from sgfn.series.keywords import REASONS

    for word in words:
        flag = word.partition("=")[0]
        if flag.startswith("--") and (part := flag[2:].replace("-", "_").partition(".")[0]) in REASONS:
            raise ValueError(f"task series does not read {flag}: {REASONS[part]}; leave it out")


def main(words: list[str] | None = None) -> int:
    """Entry point: 0, or 2 with one line for a user's error."""
    os.environ.setdefault("GOMP_SPINCOUNT", "3000")  # threads that wait long keep no core from another program
    open_streams()
    words = sys.argv[1:] if words is None else words
    try:
        with whole_interruptions():
            act(words)
        if sys.stdout is not None:  # a function of the user's may have taken it away
            sys.stdout.flush()  # a reader that has gone shows here, not when Python shuts down
    except KeyboardInterrupt as stop:
        return fail(str(stop) or "stopped")
    except MemoryError:
        return fail(out_of_memory(words))
    except (UsageError, ValueError) as error:
        return fail(by_series_flags(str(error)) if words[:1] == ["forecast"] else by_flags(str(error)))
    except BrokenPipeError:
        silence(sys.stdout)  # whoever read our output has gone: say nothing more
        return 0
    except OSError as error:
        gone = isinstance(error, FileNotFoundError)  # of no file: somebody has removed the folder we are in
        if error.filename is None and not gone:
            silence(sys.stdout)
        nameless = "the current folder" if gone else "standard output"
        return fail(f"{error.filename or nameless}: {error.strerror or error}")
    except RuntimeError as error:
        said = explained(error, words)
        if said is None:
            raise
        return fail(said)
    return 0


LESS = {
    "tasks": "--max-states, or take a smaller task",
    "train": "--batch, --net.hidden or --replay.capacity",
    "sample": "-n",
    "order": "-n or --samples",
    "evaluate": "--samples or --max-states",
    "compare": "--jobs, --batch, --net.hidden or --replay.capacity",
    "forecast": "--batch, --net.hidden, --context, --season or --samples",
}
"""What to lower where memory does not suffice."""


def out_of_memory(words: list[str]) -> str:
    """What to say where memory did not suffice."""
    less = LESS.get(words[0] if words else "")
    return "out of memory" + (f": lower {less}" if less else "")


def explained(error: RuntimeError, words: list[str]) -> str | None:
    """What to say of an error that only learning raises; None of any other."""
    from torch import OutOfMemoryError

    from sgfn.learning.learner import NonFiniteError

    if isinstance(error, OutOfMemoryError) or "DefaultCPUAllocator" in str(error):
        return out_of_memory(words)
    return str(error) if isinstance(error, NonFiniteError) else None


def fail(message: str, code: int = 2) -> int:
    """Print one line on standard error, unless a process that was started with this one has failed before."""
    if not first_to_fail():
        return code
    try:
        sys.stderr.write(f"sgfn: {in_one_line(message)}\n")
        sys.stderr.flush()
    except OSError:  # nobody reads it: the exit code must do
        silence(sys.stderr)
    return code


if __name__ == "__main__":
    sys.exit(main())
