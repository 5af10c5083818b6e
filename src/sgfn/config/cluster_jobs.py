"""Jobs on a cluster: some at a time, a bounded number of retries for those whose worker or node is lost, a clean stop.

A job is a function of a module and plain arguments. Whatever the function itself raises ends the job; a worker that is
killed, a node that goes and a result that is lost with it cost a retry.
"""

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from sgfn.config.cluster import Needs, connect

RETRIES = 2
"""How often a job is given out again after its worker or node was lost."""
PAUSE = 0.2
"""Seconds between looks at the jobs."""
PATIENCE = 60.0
"""Seconds that jobs have to end after they were asked to stop."""
LISTED = 2.0
"""Seconds for which a list of the cluster's nodes is taken to hold."""
AHEAD = 2
"""Jobs in the hands of the cluster for each that it can run at once."""
Report = Callable[[Any], bool]
"""Tells the driver plain data; returns whether the job shall stop."""


class LostError(RuntimeError):
    """A job's process was killed from outside: the job is tried again."""


@dataclass(frozen=True, kw_only=True)
class Job:
    """A function `(argument, shared, report) -> plain data` of a module, and what makes its argument when it is due."""

    name: str
    function: "JobFunction"
    argument: Callable[[], Any]


JobFunction = Callable[[Any, Any, Report], Any]


@dataclass(frozen=True, kw_only=True)
class Event:
    """What is known anew of a job: it runs on a node, it has reported, it was lost, or it has ended."""

    name: str
    node: str = ""
    report: Any = None
    value: Any = None
    error: Exception | None = None
    lost: bool = False
    """Whether it waits again, after its worker or node was lost."""
    ended: bool = False


def run_jobs(
    ray: Any,
    jobs: Sequence[Job],
    needs: Needs,
    *,
    shared: Any = None,
    stop: Callable[[], bool] = lambda: False,
    retries: int = RETRIES,
) -> Iterator[list[Event]]:
    """Run jobs on a cluster; gives what is new of them several times a second, until all have ended.

    `shared` is what all of them read: it travels to each node once.
    When `stop` says so, no more jobs are given out and those that run are asked to end by their next report. Whatever
    runs when the caller leaves is killed.
    """
    pool = _Pool(ray, jobs, needs, ray.put(shared), retries)
    try:
        while pool.running or (pool.waiting and not stop()):
            if stop():
                pool.ask_to_stop()
            else:
                pool.give_out()
            yield pool.events(PAUSE)
    finally:
        pool.close()


def perform_all(
    jobs: Sequence[Job],
    take: Callable[[Event], None],
    *,
    cluster: str | None = None,
    needs: Callable[[Any], Needs] = lambda ray: Needs(),
    shared: Any = None,
    stop: Callable[[], bool] = lambda: False,
) -> None:
    """Do jobs in this process, one after the other, or on a cluster; `take` is called with whatever is new of them.

    In this process an error of a job is raised at once; of a cluster's jobs it comes with the job's last event. `needs`
    says what a job takes of a node, once the cluster is known.
    """
    if cluster is not None:
        with connect(cluster) as ray:
            for events in run_jobs(ray, jobs, needs(ray), shared=shared, stop=stop):
                for event in events:
                    take(event)
        return
    for job in jobs:
        if stop():
            break
        value = job.function(job.argument(), shared, _teller(job.name, take, stop))
        if not stop() or value is not None:
            take(Event(name=job.name, value=value, ended=True))


def _teller(name: str, take: Callable[[Event], None], stop: Callable[[], bool]) -> Report:
    """A function that passes on the reports of a job in this process."""

    def report(data: Any) -> bool:
        take(Event(name=name, report=data))
        return stop()

    return report


def gpus_wanted(ray: Any, device: str, gpus: float | None) -> float:
    """GPUs of each job: as told, or one where they are asked for, or there and not refused."""
    if gpus is not None:
        return gpus
    there = ray.cluster_resources().get("GPU", 0) > 0
    return float(device == "cuda" or (device == "auto" and there))


def error_words(error: Exception | None) -> str:
    """Why a job ended without a result, in one line."""
    cause = getattr(error, "cause", error)  # Ray wraps what a job raises
    if isinstance(cause, LostError | ValueError):
        return str(cause)
    return f"{type(cause).__name__}: {next(iter(str(cause).splitlines()), '')}"


@dataclass
class _Pool:
    """Jobs that wait and that run, and the board through which running ones talk."""

    ray: Any
    jobs: Sequence[Job]
    needs: Needs
    shared: Any
    retries: int
    running: dict[Any, tuple[Job, int]] = field(default_factory=dict)
    """Job and number of its losses so far, by the reference of its result."""
    nodes: dict[str, str] = field(default_factory=dict)
    """Label of the node that each job was last seen on."""
    asked: float | None = None
    listed: float = float("-inf")
    heard: float = 0.0
    slots: int = 0
    labels: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.waiting: list[tuple[Job, int]] = [(job, 0) for job in reversed(self.jobs)]
        check_feasible(self.ray, self.needs)
        here = self.ray.get_runtime_context().get_node_id()
        fixed = self.ray.util.scheduling_strategies.NodeAffinitySchedulingStrategy(here, soft=False)
        self.board = self.ray.remote(num_cpus=0)(Board).options(scheduling_strategy=fixed).remote()
        how = {"num_cpus": self.needs.cpus, "num_gpus": self.needs.gpus, "max_retries": 0}
        self.remote = self.ray.remote(**how)(_perform)

    def give_out(self) -> None:
        """Hand jobs to the cluster, a few more than it can run at once."""
        self._list_nodes()
        most = AHEAD * max(1, self.slots)
        while self.waiting and len(self.running) < most:
            job, losses = self.waiting.pop()
            reference = self.remote.remote(job.function, job.argument(), self.shared, job.name, self.board)
            self.running[reference] = (job, losses)

    def _list_nodes(self) -> None:
        """Look from time to time what nodes there are."""
        if time.monotonic() > self.listed + LISTED:
            self.listed = time.monotonic()
            self.slots, self.labels = slots(self.ray, self.needs), node_labels(self.ray)

    def ask_to_stop(self) -> None:
        """Let jobs that run end by themselves, and after a while kill them; those that wait for a node end at once."""
        if self.asked is None:
            self.asked = time.monotonic()
            self.waiting.clear()
            self.ray.get(self.board.ask_to_stop.remote())
            self._cancel([ref for ref, (job, _) in self.running.items() if job.name not in self.nodes])
        elif time.monotonic() - self.asked > PATIENCE:
            self._cancel(list(self.running))

    def events(self, pause: float) -> list[Event]:
        """What is new, after a pause at most."""
        done = []
        if self.running:
            done, _ = self.ray.wait(list(self.running), num_returns=len(self.running), timeout=0)
            done = done or self.ray.wait(list(self.running), timeout=pause)[0]
        if not done and time.monotonic() < self.heard + pause:
            return []
        self.heard, found = time.monotonic(), []
        for name, node, report in self.ray.get(self.board.take.remote()):
            self.nodes[name] = str(self.labels.get(node, node[:6]))
            found.append(Event(name=name, node=self.nodes[name], report=report))
        return [*found, *(self._end(reference) for reference in done)]

    def _end(self, reference: Any) -> Event:
        job, losses = self.running.pop(reference)
        node = self.nodes.pop(job.name, "")
        try:
            return Event(name=job.name, node=node, value=self.ray.get(reference), ended=True)
        except self.ray.exceptions.TaskCancelledError as error:
            return Event(name=job.name, node=node, error=error, ended=True)
        except _losses(self.ray) as error:
            return self._lost(job, losses + 1, node, error)
        except Exception as error:  # of the job itself
            return Event(name=job.name, node=node, error=error, ended=True)

    def _lost(self, job: Job, losses: int, node: str, error: Exception) -> Event:
        """Give a job out again, unless it was lost too often or all shall stop."""
        if self.asked is None and losses <= self.retries:
            self.waiting.append((job, losses))
            return Event(name=job.name, node=node, lost=True)
        where = f" on {node}" if node else ""
        times = f", {losses} times in a row" if losses > 1 else ""
        return Event(name=job.name, node=node, error=LostError(f"{loss_words(error)}{where}{times}"), ended=True)

    def _cancel(self, references: list[Any]) -> None:
        for reference in references:
            with suppress(Exception):  # it ends anyway, or the cluster is gone
                self.ray.cancel(reference, force=True)

    def close(self) -> None:
        """Kill whatever still runs."""
        self._cancel(list(self.running))
        with suppress(Exception):
            self.ray.kill(self.board)


class Board:
    """Reports of jobs that run, and whether they shall stop; an actor beside the driver."""

    def __init__(self) -> None:
        self.reports: list[tuple[str, str, Any]] = []
        self.stopping = False

    def tell(self, name: str, node: str, report: Any) -> bool:
        """Keep a report until it is taken; returns whether the job shall stop."""
        self.reports.append((name, node, report))
        return self.stopping

    def take(self) -> list[tuple[str, str, Any]]:
        """All reports since the last call."""
        found, self.reports = self.reports, []
        return found

    def ask_to_stop(self) -> None:
        """Answer every report from now on that the job shall stop."""
        self.stopping = True


def _perform(function: JobFunction, argument: Any, shared: Any, name: str, board: Any) -> Any:
    """Do a job, on some node."""
    from sgfn.config.cluster import ray_module

    ray = ray_module()
    node = ray.get_runtime_context().get_node_id()

    def report(data: Any) -> bool:
        return bool(ray.get(board.tell.remote(name, node, data)))

    report(None)
    return function(argument, shared, report)


def _losses(ray: Any) -> tuple[type[Exception], ...]:
    """Errors that say nothing of a job, but that its worker, its node or its result has gone."""
    names = ("WorkerCrashedError", "NodeDiedError", "LocalRayletDiedError", "OutOfMemoryError", "ObjectLostError")
    known = [getattr(ray.exceptions, name) for name in names if hasattr(ray.exceptions, name)]
    return (LostError, *known)


def loss_words(error: Exception) -> str:
    """What was lost, in a few words."""
    if isinstance(error, LostError):
        return str(getattr(error, "cause", error))  # Ray wraps what a job raises
    known = {
        "WorkerCrashedError": "its worker was killed (out of memory?)",
        "OutOfMemoryError": "its worker was killed: the node was out of memory",
        "NodeDiedError": "its node was lost",
    }
    return known.get(type(error).__name__, "its result was lost with a node")


def check_feasible(ray: Any, needs: Needs) -> None:
    """Raise where no node could ever run a job: Ray would wait for one."""
    nodes = [node["Resources"] for node in ray.nodes() if node["Alive"]]
    if any(_fits(node, needs) for node in nodes):
        return
    most = max(((node.get("CPU", 0), node.get("GPU", 0)) for node in nodes), default=(0, 0))
    wanted = f"{needs.cpus:g} CPUs" + (f" and {needs.gpus:g} GPUs" if needs.gpus else "")
    has = f"the largest has {most[0]:g} CPUs and {most[1]:g} GPUs"
    raise ValueError(f"no node of the cluster has {wanted}, {has}: lower --cluster-cpus or --cluster-gpus")


def _fits(resources: dict[str, float], needs: Needs) -> bool:
    return resources.get("CPU", 0) >= needs.cpus and resources.get("GPU", 0) >= needs.gpus


def slots(ray: Any, needs: Needs) -> int:
    """How many jobs all living nodes together can run at once."""
    count = 0
    for node in (node["Resources"] for node in ray.nodes() if node["Alive"]):
        by_gpu = int(node.get("GPU", 0) / needs.gpus) if needs.gpus else None
        by_cpu = int(node.get("CPU", 0) / needs.cpus)
        count += by_cpu if by_gpu is None else min(by_cpu, by_gpu)
    return count


def node_labels(ray: Any) -> dict[str, str]:
    """Host name of each node by its id; where several share one, with the beginning of the id."""
    names = {node["NodeID"]: node["NodeManagerHostname"] for node in ray.nodes()}
    shared = list(names.values())
    return {key: name if shared.count(name) == 1 else f"{name}-{key[:4]}" for key, name in names.items()}
