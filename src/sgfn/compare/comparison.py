"""`compare`: methods, noise levels and seeds on one task, side by side, with the same number of environment calls."""

import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, get_args

from sgfn.compare.cells import Cell, CellState, cell_path, make_cell
from sgfn.compare.contestants import CHOSEN, changes_of, contestant, refuse_all
from sgfn.compare.results import Rows, result_row, summarise, write_results
from sgfn.compare.workers import SharedSettings, run_cells
from sgfn.config import Accelerate, TrainConfig, differing, from_dict, to_dict
from sgfn.config.checks import in_range, one_of, quoted, refuse_twice, require, whole_number
from sgfn.config.cluster import check_cluster_settings
from sgfn.config.files import sweep, write_json
from sgfn.config.reading import check_named
from sgfn.evaluation.measure import MOST_SAMPLES
from sgfn.landscapes.offline import training_objects
from sgfn.landscapes.tasks import Task, make_task, recorded
from sgfn.learning.execution import pick_device
from sgfn.learning.methods import check_fit, check_names
from sgfn.learning.unread import refuse_unread_by_all
from sgfn.noise import NOISES
from sgfn.runs.copies import KeptFile, checksums, files_there, keeping, kept_paths, settle_copies, with_files
from sgfn.runs.folder import LOCK, Run, ours, read_files, read_ours, write_files
from sgfn.runs.formats import FORMAT
from sgfn.runs.train import Stop, absolute, stoppable
from sgfn.runs.trust import named_code, refuse_code, refuse_links, remember

PLAN, TABLE, FIGURE, PAGE = "compare.json", "results.csv", "comparison.png", "report.html"
MOST_CELLS = 100_000
REDRAW = 60.0  # seconds between two pictures of an unfinished comparison: they take as long as a small cell
Key = tuple[str, float, int]
"""Method, noise level and seed of a cell."""
Progress = Callable[[list[CellState]], None]
"""Called a few times a second with the state of each cell that was asked for."""


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """A folder with cells, one row for each, and what was drawn from them."""

    path: Path
    rows: Rows
    """One per cell, as in results.csv."""
    failed: Rows
    """Of the cells that this call was about, those that failed; others were there before."""

    @property
    def summary(self) -> Rows:
        """Medians over seeds with both ends, one row per method and noise level."""
        return summarise(self.rows)

    @property
    def complaint(self) -> str:
        """Which cells of this call failed, and why, in one line; those with the same reason together."""
        reasons: dict[str, list[str]] = {}
        for row in self.failed:
            noise = "" if row["alpha"] is None else f" at {row['alpha']:g}"
            reasons.setdefault(row["error"], []).append(f"{row['method']}{noise}, seed {row['seed']}")
        told = [f"{who[0]}{f' and {len(who) - 1} more' if who[1:] else ''} ({why})" for why, who in reasons.items()]
        count = f"{len(self.failed)} of {len(self.rows)} cells failed"
        return (
            f"{count}: {'; '.join(told)}; each has an error.txt in {self.path}, and the same command tries them again"
        )

    @property
    def files(self) -> dict[str, Path]:
        """Paths of the table, the figure and the page."""
        return {"results": self.path / TABLE, "figure": self.path / FIGURE, "page": self.path / PAGE}


def run_comparison(
    task: str,
    config: TrainConfig,
    out: Path,
    *,
    methods: Sequence[str],
    alphas: Sequence[float] | None,
    seeds: int,
    jobs: int,
    device: str,
    accelerate: str,
    samples: int,
    progress: Progress | None,
    baseline: TrainConfig | None,
    said: Collection[str],
    trust: bool,
    cluster: str | None,
    cluster_cpus: float,
    cluster_gpus: float | None,
) -> Comparison:
    """`sgfn.compare`, which has the defaults and says what it does."""
    task = recorded(task, elsewhere=True)
    nodes = {"cluster": cluster, "cpus": cluster_cpus, "gpus": cluster_gpus}
    shared = SharedSettings(jobs=jobs, device=device, accelerate=accelerate, samples=samples, **nodes)
    config = _checked(absolute(config), alphas, shared, baseline or TrainConfig())
    levels = [config.noise.alpha] if alphas is None else [alpha + 0.0 for alpha in alphas]
    keys = _keys(config, methods, levels, seeds)
    asked = _cells(out, task, config, keys)
    plan = Plan(task=task, config=_common(config), samples=samples, trust=trust)
    digests = _check_plan(plan, out, config, asked, alphas, baseline, said)
    with Run(path=out).locked(), stoppable(at_once=f"stopped at once; the same command goes on in {out}") as stop:
        sweep(out, (PLAN, TABLE, FIGURE, PAGE))
        plan = plan.extend(out, asked, digests)
        for cell in asked:
            remember(named_code({"methods": cell.method}))
        shared = replace(shared, copies=plan.read_files(out))
        states = _states(out, plan)
        wanted = [states[cell.path] for cell in asked]
        pictures = Pictures(out, list(states.values()))
        _run_missing(wanted, shared, stop, pictures, progress or (lambda _: None))
    if stop.asked and any(state.status != "done" for state in wanted):
        done = sum(state.status == "done" for state in wanted)
        raise KeyboardInterrupt(f"stopped with {done} of {len(wanted)} cells done; the same command goes on in {out}")
    failed = [result_row(state) for state in wanted if state.status == "failed"]
    return Comparison(path=out, rows=pictures.rows(), failed=failed)


def _keys(config: TrainConfig, methods: Sequence[str], levels: Sequence[float], seeds: int) -> list[Key]:
    """Method, noise level and seed of every cell that is asked for."""
    if isinstance(methods, str):
        raise ValueError(f"methods must be a list of names, got the text {methods!r}: write [{methods!r}]")
    in_range("seeds", seeds, 1, MOST_CELLS)
    refuse_twice("--methods", methods)
    refuse_twice("--alphas", levels)
    count = len(methods) * len(levels) * seeds
    require(count <= MOST_CELLS, "a comparison", f"have at most {MOST_CELLS:,} cells", f"{count:,}: take fewer --seeds")
    return [(method, alpha, config.seed + i) for method in methods for alpha in levels for i in range(seeds)]


def _check_plan(
    plan: "Plan",
    out: Path,
    config: TrainConfig,
    asked: list[Cell],
    alphas: Sequence[float] | None,
    baseline: TrainConfig | None,
    said: Collection[str],
) -> dict[str, str]:
    """Checksums of the files that cells will read, after all checks that need them; writes nothing."""
    there = plan.check(out)
    there.refuse_strangers(out, asked)
    check_named(files := there.read_files(out))
    digests = checksums(files)
    made = _check_fit(with_files(config, files), asked)
    _check_level(config.noise.kind, alphas)  # of a maker function it is known now
    names = dict.fromkeys([*(method for method, _, _ in there.keys), *(cell.method for cell in asked)])
    refuse_unread_by_all(made, config, {name: contestant(config, name) for name in names}, baseline, said)
    return digests


def _states(out: Path, plan: "Plan") -> dict[Path, CellState]:
    """Every cell of the plan by its folder, with what is there of it."""
    states = {cell.path: CellState(cell=cell) for cell in _cells(out, plan.task, plan.config, plan.keys)}
    for state in states.values():
        state.load_files(plan.samples)
    return states


def _run_missing(
    wanted: list[CellState], shared: SharedSettings, stop: Stop, pictures: "Pictures", watch: Progress
) -> None:
    """Run the cells that are not done, and draw what there is."""
    missing = [state for state in wanted if state.status != "done"]
    for state in missing:  # one that failed is tried again
        state.status, state.error = "waiting", ""
    watch(wanted)
    hooks = {"watch": lambda _: watch(wanted), "ended": lambda _: pictures.write(now=False)}
    _engine(shared)(missing, shared, stop=stop, **hooks)
    pictures.write(now=True)
    watch(wanted)


def _engine(shared: SharedSettings) -> Callable[..., None]:
    """What runs cells: processes of this machine, or a cluster."""
    if shared.cluster is None:
        return run_cells
    from sgfn.compare.ray_cells import run_cells_on_cluster

    return run_cells_on_cluster


def _checked(
    config: TrainConfig, alphas: Sequence[float] | None, shared: SharedSettings, started: TrainConfig
) -> TrainConfig:
    """Everything that can be wrong before the first cell starts."""
    in_range("jobs", shared.jobs, 1, 4096)
    in_range("samples", shared.samples, 1, MOST_SAMPLES)
    one_of("accelerate", shared.accelerate, get_args(Accelerate))
    if shared.cluster is None:
        pick_device(shared.device)
    check_cluster_settings(shared.cluster, shared.cpus, shared.gpus, shared.jobs)
    default = TrainConfig()
    for name in CHOSEN:
        if getattr(config, name) != getattr(default, name):
            raise ValueError(f"--{name} is what --methods decides: leave it out, and name the methods")
    check_names(config)
    if alphas is not None and config.noise.alpha != started.noise.alpha:
        raise ValueError("--alphas sets the noise levels: leave --noise.alpha out")
    _check_level(config.noise.kind, alphas)
    return config


def _check_level(kind: str, alphas: Sequence[float] | None) -> None:
    """Raise where levels are asked of a noise that has none."""
    if alphas is not None and not NOISES[kind].has_level:
        raise ValueError(f"noise.kind {kind!r} has no level that --alphas could set: leave it out")


def _cells(out: Path, task: str, config: TrainConfig, keys: Sequence[Key]) -> list[Cell]:
    if not keys:
        raise ValueError("nothing to compare: name at least one method and one noise level")
    return [make_cell(out, task, config, *key) for key in dict.fromkeys(keys)]


def _check_fit(config: TrainConfig, cells: list[Cell]) -> Task:
    """The task, once every method has been checked on it at every noise level, before anything is written."""
    tasks, refused = dict[float, Task](), dict[str, str]()
    for cell in {(cell.method, cell.alpha): cell for cell in cells}.values():
        if cell.alpha not in tasks:
            tasks[cell.alpha] = make_task(cell.task, config.with_(noise__alpha=cell.alpha))
        try:
            check_fit(replace(tasks[cell.alpha], config=cell.config))
        except ValueError as error:
            refused.setdefault(cell.method, str(error))
    refuse_all(refused)
    task = next(iter(tasks.values()))
    training_objects(task)
    return task


def _common(config: TrainConfig) -> TrainConfig:
    """The part of a configuration that all cells share."""
    default = TrainConfig()
    return config.with_(noise__alpha=default.noise.alpha, seed=default.seed)


@dataclass(frozen=True, kw_only=True)
class Plan:
    """compare.json: what a folder compares. Cells may be added, the rest stays."""

    task: str
    config: TrainConfig
    samples: int
    keys: list[Key] = field(default_factory=list)
    """Method, noise level and seed of each cell."""
    files: dict[str, KeptFile] = field(default_factory=dict)
    """The files that the configuration names, and their copies."""
    trust: bool = False
    """Whether code and links of a folder that is there are trusted."""

    def refuse_strangers(self, out: Path, asked: list[Cell]) -> None:
        """Raise where the folder has methods that are code and were not asked for, or where a cell lies elsewhere."""
        named = {cell.method for cell in asked}
        for method in dict.fromkeys(method for method, _, _ in self.keys if method not in named):
            refuse_code(out, named_code({"methods": method}), self.trust)
        paths = [*(cell_path(out, *key) for key in self.keys), *(cell.path for cell in asked)]
        refuse_links(out, (str(path.relative_to(out)) for path in paths), self.trust)

    def check(self, out: Path) -> "Plan":
        """The plan of a comparison that is there, or this one; refuse a folder with another one, or anything else."""
        if not ours(out, PLAN, (PLAN, TABLE, FIGURE, PAGE), "comparison"):
            return self
        there = replace(read_plan(out, self.trust), trust=self.trust)
        if there.task != self.task:
            raise ValueError(f"{out} compares methods on {there.task}, not on {self.task}: give --out another name")
        flags = differing(self.config, there.config) + (["--samples"] if there.samples != self.samples else [])
        if flags:
            raise ValueError(f"{out} was begun with other values of {', '.join(flags)}: give --out another name")
        return there

    def read_files(self, out: Path) -> dict[str, Path]:
        """The files to read: the comparison's own copies, or where there are none yet the originals."""
        return files_there(self.config) | kept_paths(out, self.config, self.files, self.trust)

    def extend(self, out: Path, cells: list[Cell], known: Mapping[str, str]) -> "Plan":
        """The folder's plan with more cells, written: methods as they came, noise levels and seeds in order.

        Files of which there are no copies yet are copied; `known` are the checksums that they had when they were read.
        """
        there = self.check(out)
        settle_copies(out, there.files)
        keys = list(dict.fromkeys([*there.keys, *((cell.method, cell.alpha, cell.seed) for cell in cells)]))
        methods = list(dict.fromkeys(method for method, _, _ in keys))
        keys.sort(key=lambda key: (methods.index(key[0]), *key[1:]))
        copied = {name: record for name, record in there.files.items() if record.copy is not None}
        missing = {name: file for name, file in there.read_files(out).items() if name not in copied}
        with keeping(out, missing, known) as kept:
            plan = replace(self, keys=keys, files=copied | kept)
            plain = {"format": FORMAT, "task": plan.task, "samples": plan.samples, "config": to_dict(plan.config)}
            write_json(out / PLAN, plain | write_files(plan.files) | {"cells": [list(key) for key in keys]})
        return plan


def read_plan(out: Path, trust: bool = False) -> Plan:
    """The plan of a folder, or one line on what is wrong with it."""
    refuse_links(out, (PLAN, LOCK), trust)

    def plan(data: dict[str, Any]) -> Plan:
        keys = [_key(cell) for cell in (data["cells"] if isinstance(data["cells"], list) else [data["cells"]])]
        for method, _, _ in keys:
            if ":" not in method:
                changes_of(method)  # raises where it is unknown; code is not imported here
        whole_number("samples", data["samples"], 1, MOST_SAMPLES)
        plain = {"task": str(data["task"]), "samples": data["samples"], "files": read_files(data)}
        return Plan(**plain, config=from_dict(TrainConfig, data["config"]), keys=keys)

    return read_ours(out / PLAN, plan, "task", "samples", "config", "cells")


def _key(cell: Any) -> Key:
    """Method, noise level and seed of a cell, out of JSON."""
    match cell:
        case [str(method), float() | int() as alpha, int(seed)]:
            TrainConfig().with_(noise__alpha=float(alpha), seed=int(seed))  # raises where one is out of range
            return method, float(alpha), int(seed)
    raise ValueError(f"each of cells must be a list of method, noise level and seed, got {quoted(cell)}")


class Pictures:
    """The files that tell what was found; the table follows every cell, the others at some distance."""

    def __init__(self, out: Path, states: list[CellState]) -> None:
        self.out, self.states, self.drawn = out, states, time.monotonic()

    def rows(self) -> Rows:
        """One row of results per cell."""
        return [result_row(state) for state in self.states]

    def write(self, *, now: bool) -> None:
        """Write the table, and from time to time the figure and the page."""
        write_results(self.out / TABLE, self.rows())
        if now or time.monotonic() - self.drawn > REDRAW:
            from sgfn.compare.figure import draw_comparison  # matplotlib is slow to import

            draw_comparison(self.out / FIGURE, self.states)
            self._write_page()
            self.drawn = time.monotonic()

    def _write_page(self) -> None:
        from sgfn.compare.figure import look_of_method
        from sgfn.reports.pages import Entry, write_page
        from sgfn.reports.sources import read_source

        entries = []
        for state in self.states:
            cell, source = state.cell, None
            if "log_reward" in state.row and state.status != "failed":
                source = replace(read_source(cell.path), results=state.results)
            about = {"noise": cell.noise, "seed": cell.seed, "error": state.error}
            entries.append(Entry(label=cell.method, source=source, look=look_of_method(cell.method), **about))
        write_page(self.out / PAGE, f"Methods compared on {self.states[0].cell.task}", entries, self._note())

    def _note(self) -> str:
        config = self.states[0].cell.config
        calls = f"{config.steps * config.batch:,} environment calls ({config.steps:,} steps of {config.batch:,})"
        more = "all but random draw one batch more, to guess log Z or to start critics or chains"
        return f"Every method has {calls}; {more}."
