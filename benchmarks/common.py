"""Shared parts of the studies: train many runs at once on one device, measure them exactly, write small JSON files."""

import argparse
import platform
import statistics
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor, as_completed
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from functools import cache, partial
from importlib import import_module
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import torch

from sgfn.config import TrainConfig
from sgfn.config.cluster import Needs, connect
from sgfn.config.cluster_jobs import Event, Job, Report, error_words, gpus_wanted, perform_all
from sgfn.config.files import read_json, write_json
from sgfn.evaluation import exact
from sgfn.evaluation.measure import reference
from sgfn.landscapes.tasks import Task, make_task
from sgfn.learning.execution import stepper
from sgfn.learning.learner import Learner
from sgfn.learning.methods import make_learner

RESULTS = Path(__file__).parent / "results"
Row = dict[str, Any]


def arguments(doc: str, default: str | None, *, cells: bool = False, **choices: list[str]) -> argparse.Namespace:
    """Parse the flags that every study has, those of a study of `cells`, and a study's own positional choices."""
    parser = argparse.ArgumentParser(description=doc, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name, allowed in choices.items():  # the first one is a must, those after it have their first choice by default
        first = name == next(iter(choices))
        parser.add_argument(name, choices=allowed, nargs=None if first else "?", default=None if first else allowed[0])
    parser.add_argument("--device", type=device_here, default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--out", type=Path, default=None if default is None else RESULTS / default)
    parser.add_argument("--seeds", type=positive, default=5)
    parser.add_argument("--steps", type=positive, default=None, help="fewer steps, to try the script out")
    if cells:
        add_cluster(parser)
    return parser.parse_args()


def add_cluster(parser: argparse.ArgumentParser) -> None:
    """Add the flag of all studies whose cells may be jobs of a cluster, see `each_cell`."""
    parser.add_argument("--cluster", default=None, help="cells as Ray jobs: local, auto or HOST:PORT")


def positive(text: str) -> int:
    """A whole number of at least 1, from a flag's text."""
    if not text.isdecimal() or int(text) == 0:
        raise argparse.ArgumentTypeError(f"must be a whole number of at least 1, got {text!r}")
    return int(text)


def device_here(text: str) -> str:
    """A device type that this machine has, from a flag's text."""
    if text not in ("cpu", "cuda") or (text == "cuda" and not torch.cuda.is_available()):
        raise argparse.ArgumentTypeError(f"must be cpu, or cuda where there is a GPU, got {text!r}")
    return text


def machine(device: torch.device) -> dict[str, str]:
    """Description of the machine that a result comes from."""
    name = (
        torch.cuda.get_device_name() if device.type == "cuda" else f"{torch.get_num_threads()} threads, {cpu_model()}"
    )
    return {"device": name, "torch": torch.__version__, "python": platform.python_version()}


def cpu_model() -> str:
    """Name of the processor, where the system gives it."""
    info = Path("/proc/cpuinfo")
    lines = info.read_text(encoding="utf-8").splitlines() if info.exists() else []
    return next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), "unknown CPU")


def tasks_for(task: str, configs: list[TrainConfig]) -> list[Task]:
    """One task per configuration; those that differ only in how they learn share environment and landscape."""
    shared: dict[Any, Task] = {}
    for config in configs:
        key = (config.noise, config.grid, config.bits, config.beta)
        if key not in shared:
            shared[key] = make_task(task, config)
    return [replace(shared[config.noise, config.grid, config.bits, config.beta], config=config) for config in configs]


Look = Callable[[int, list[Learner]], None]


def train_together(
    task: str,
    configs: list[TrainConfig],
    device: torch.device,
    look: Look | None = None,
    every: int = 64,
    prepare: Callable[[Task], Task] = lambda task: task,
    strict: bool = True,
) -> tuple[list[Learner], float]:
    """Train runs of equal length side by side, each on a stream of its own; returns them and the seconds in all.

    `look` is called with the number of steps done, at the start and after every so many; `prepare` may change a task;
    `strict` raises where a run has left the finite numbers.
    """
    learners = [make_learner(prepare(made), device) for made in tasks_for(task, configs)]
    steps = [stepper(learner) for learner in learners]
    cuda = device.type == "cuda"
    streams = [torch.cuda.Stream() if cuda else None for _ in learners]
    started = time.monotonic()
    for i in range(configs[0].steps):
        if i % every == 0:
            for learner in learners:
                learner.done = i
            if cuda:
                torch.cuda.synchronize()  # keeps the launch queue short
            if look:
                look(i, learners)
        for step, stream in zip(steps, streams, strict=True):
            with torch.cuda.stream(stream):
                step()
    if cuda:
        torch.cuda.synchronize()
    for learner in learners:
        learner.done = learner.config.steps
        if strict:
            learner.check_finite()
    return learners, time.monotonic() - started


@dataclass
class Measure:
    """Exact figures of trained runs; the laws that depend only on the task and the noise are computed once."""

    known: dict[Any, exact.ReferenceLaws] = field(default_factory=dict)

    def of(self, learner: Learner) -> exact.ReferenceLaws:
        """Reference laws of the learner's task."""
        task, config = learner.task, learner.config
        key = (task.name, config.noise, config.grid, config.reward, task.beta)
        if key not in self.known:
            task.landscape.to(torch.device("cpu"))
            self.known[key] = reference(task)
            task.landscape.to(learner.device)
        return self.known[key]

    def __call__(self, learner: Learner) -> dict[str, Any]:
        """Distances, expected scores and calibration of the noise model."""
        config = learner.config
        figures = exact.distances(learner.law() if learner.has_law else None, self.of(learner))
        figures |= learner.calibrated(1024, 1)
        described = {"alpha": config.noise.alpha, "form": config.form, "objective": config.objective}
        return {**described, "seed": config.seed, **rounded(figures)}


@cache
def measure() -> Measure:
    """The measure of this process, which all its cells share."""
    return Measure()


def each_cell(
    cells: Mapping[str, tuple[Any, ...]],
    function: Callable[..., Any],
    keep: Callable[[str, Any], None],
    cluster: str | None = None,
    *,
    jobs: int = 1,
    device: str = "cpu",
) -> None:
    """Call a function of a module with the arguments of each cell; `keep` gets name and result as each one ends.

    In this process one after the other; with `jobs` in so many processes of one thread; with `cluster` as jobs of Ray
    with a CPU each, and a GPU where the device is one. Nodes must have this repository where it lies here. In this
    process an error is raised at once. Elsewhere a cell that fails is told and costs no other; at the end the command
    fails, and those that the study keeps are not done again by the next.
    """
    failed: list[str] = []

    def take(event: Event) -> None:
        if event.value is not None:
            keep(event.name, event.value)
        elif event.lost or event.ended:
            print(f"{event.name}: {'lost, tried again' if event.lost else error_words(event.error)}", flush=True)
            failed.extend([event.name] * event.ended)

    found = importable(function)
    if cluster is None and jobs > 1:
        for event in _in_processes(cells, found, jobs):
            take(event)
    else:
        jobs_of = [Job(name=name, function=_called, argument=partial(_both, found, of)) for name, of in cells.items()]
        with _connected(cluster):
            perform_all(jobs_of, take, cluster=cluster, needs=partial(_needs, device))
    if failed:
        raise SystemExit(f"{len(failed)} of {len(cells)} cells failed, see above: {', '.join(failed[:3])}")


def _in_processes(cells: Mapping[str, tuple[Any, ...]], function: Callable[..., Any], jobs: int) -> Iterable[Event]:
    """Cells as they end, in processes of one thread each."""
    how = {"mp_context": get_context("spawn"), "initializer": torch.set_num_threads, "initargs": (1,)}
    with ProcessPoolExecutor(jobs, **how) as pool:
        asked = {pool.submit(function, *given): name for name, given in cells.items()}
        for done in as_completed(asked):
            error = done.exception()
            if isinstance(error, Exception):
                yield Event(name=asked[done], error=error, ended=True)
            else:
                yield Event(name=asked[done], value=done.result(), ended=True)


def importable(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function by the name that other processes import it by; what runs as `python -m` is `__main__` here alone."""
    spec = getattr(sys.modules["__main__"], "__spec__", None)
    if function.__module__ != "__main__" or spec is None:
        return function
    return getattr(import_module(spec.name), function.__name__)


@contextmanager
def _connected(cluster: str | None) -> Iterator[None]:
    """Connect to a cluster, if there is one; what is wrong with its address ends the command in one line."""
    with ExitStack() as until:
        if cluster is not None:
            try:
                until.enter_context(connect(cluster))
            except ValueError as error:
                raise SystemExit(str(error)) from None
        yield


def _needs(device: str, ray: Any) -> Needs:
    return Needs(gpus=gpus_wanted(ray, device, None))


def _both(function: Callable[..., Any], given: tuple[Any, ...]) -> tuple[Callable[..., Any], tuple[Any, ...]]:
    return function, given


def _called(argument: tuple[Callable[..., Any], tuple[Any, ...]], shared: object, report: Report) -> Any:
    """A cell as a job."""
    function, given = argument
    return function(*given)


def write_cells(
    args: argparse.Namespace,
    module: str,
    cells: Mapping[str, tuple[Any, ...]],
    function: Callable[..., list[Row]],
    told: Callable[[list[Row]], None] = lambda rows: print(*rows, sep="\n", flush=True),
    first: Iterable[Row] = (),
    jobs: int = 1,
    **more: Any,
) -> list[Row]:
    """Rows of all cells of a study, each of which gives some, in the order of the cells; written after each.

    `told` is called with the rows of a cell when they are there; `first` are rows that need no cell.
    """
    found, rows = dict[str, list[Row]](), list(first)

    def keep(name: str, new: list[Row]) -> None:
        found[name] = new
        told(new)
        rows[:] = [*first, *(row for name in cells if name in found for row in found[name])]
        write_results(args.out, module, torch.device(args.device), rows, **more)

    each_cell(cells, function, keep, args.cluster, jobs=jobs, device=args.device)
    return rows


def rows_of(out: Path) -> list[Row]:
    """Rows that a file of results has already."""
    return list(read_json(out)["rows"]) if out.is_file() else []


def rounded(figures: dict[str, Any]) -> dict[str, Any]:
    """Figures with seven digits behind the point."""
    return {name: round(value, 7) if isinstance(value, int | float) else value for name, value in figures.items()}


def command(module: str) -> str:
    """The command that a study was called with, without the path of its results."""
    words = sys.argv[1:]
    if "--out" in words:
        place = words.index("--out")
        words = words[:place] + words[place + 2 :]
    return " ".join(["python", "-m", f"benchmarks.{module}", *words])


def write_results(out: Path, module: str, device: torch.device, rows: list[dict[str, Any]], **more: Any) -> None:
    """Write a small JSON file with the rows, the command and the machine."""
    write_json(out, {"command": command(module), "machine": machine(device), **more, "rows": rows})
    print(f"{len(rows)} rows in {out}")


@cache
def read_results(name: str) -> dict[str, Any]:
    """A committed result with its rows, which the caller must not change."""
    return read_json(RESULTS / name)


def tell(rows: list[dict[str, Any]], methods: Iterable[tuple[str, str]], key: str) -> None:
    """Print the median and range of a figure for each (form, objective)."""
    for form, objective in methods:
        values = [row[key] for row in rows if (row["form"], row["objective"]) == (form, objective)]
        print(f"  {form} {objective}: median %.5f [%.5f, %.5f]" % spread(values), flush=True)


def spread(values: Iterable[float]) -> tuple[float, float, float]:
    """Median, lowest and highest value."""
    values = list(values)
    return statistics.median(values), min(values), max(values)
