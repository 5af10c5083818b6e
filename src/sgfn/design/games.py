"""Many games of `play`, of several methods and seeds: in this process, or as jobs of a cluster."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from sgfn.config import TrainConfig, from_dict, to_dict
from sgfn.config.checks import refuse_twice
from sgfn.config.cluster import Needs, check_cluster_settings
from sgfn.config.cluster_jobs import Event, Job, Report, error_words, perform_all
from sgfn.config.shipping import Shipment, settled, shipment
from sgfn.design.game_files import GameFile, GameSettings, game_of
from sgfn.design.simulate import Game, play
from sgfn.landscapes.proxies.registry import check_kind
from sgfn.landscapes.tasks import Task, make_task, recorded
from sgfn.runs.copies import files_there, with_files
from sgfn.runs.loop import stoppable
from sgfn.runs.trust import named_code, words_of


@dataclass(frozen=True, kw_only=True)
class Games:
    """Games that were played, in the order in which they were asked for, and why others were not."""

    games: list[Game]
    failed: dict[str, str] = field(default_factory=dict)
    """Reason by the game's name."""

    @property
    def complaint(self) -> str:
        """Which games failed, and why, in one line."""
        told = "; ".join(f"{name} ({why})" for name, why in self.failed.items())
        return f"{len(self.failed)} of {len(self.failed) + len(self.games)} games failed: {told}"


def play_all(
    task: str,
    config: TrainConfig,
    methods: Sequence[str],
    seeds: Sequence[int],
    *,
    rounds: int = 4,
    orders: int = 96,
    start: int = 96,
    proxy: str = "design",
    told: Callable[[Game], None] = lambda _: None,
    out: Path | None = None,
    overwrite: bool = False,
    cluster: str | None = None,
    cluster_cpus: float = 1.0,
    cluster_gpus: float | None = None,
) -> Games:
    """Play a design of a task by its name with every method and seed; `told` is called with each game that is over.

    `out` is a JSON file that is written after each game. Games of the same settings that it has are not played again,
    so that the same call goes on with what is missing; `overwrite` begins anew.
    In this process the first error is raised. With `cluster` games are jobs of Ray: the task is made on the nodes, to
    which the files and the modules that it names travel, and a game that fails leaves the others alone.
    """
    check_cluster_settings(cluster, cluster_cpus, cluster_gpus)
    refuse_twice("--method", methods)
    check_kind(proxy)
    made, sizes = make_task(task, config), {"rounds": rounds, "orders": orders, "start": start, "proxy": proxy}
    settings = GameSettings(task=recorded(task), config=config, **sizes)
    file = None if out is None else GameFile(out, settings, overwrite=overwrite)
    asked = {f"{method}, seed {seed}": (method, seed) for method in methods for seed in seeds}
    games, failed = dict[str, Game](), dict[str, str]()
    if file is not None:
        games = {name: file.games[key] for name, key in asked.items() if key in file.games}
    shared = made if cluster is None else _travelling(recorded(task, elsewhere=True), config, methods)
    jobs = [
        Job(name=name, function=play_game, argument=_given({"method": method, "seed": seed, **sizes}))
        for name, (method, seed) in asked.items()
        if name not in games
    ]

    def take(event: Event) -> None:
        if event.value is not None:
            games[event.name] = game = game_of(event.value)
            if file is not None:
                file.add(game)
            told(game)
        elif event.ended:
            failed[event.name] = error_words(event.error)

    try:
        if cluster is None:
            perform_all(jobs, take, shared=shared)
        elif jobs:
            _perform_on(cluster, jobs, take, Needs(cpus=cluster_cpus, gpus=cluster_gpus or 0.0), shared)
    except KeyboardInterrupt:
        again = "" if out is None else f"; the same command goes on in {out}"
        raise KeyboardInterrupt(f"stopped after {len(games)} of {len(asked)} games{again}") from None
    return Games(games=[games[name] for name in asked if name in games], failed=failed)


def _perform_on(cluster: str, jobs: list[Job], take: Callable[[Event], None], needs: Needs, shared: Any) -> None:
    """Do jobs on a cluster; raises where somebody stopped them."""
    with stoppable() as stop:
        perform_all(jobs, take, cluster=cluster, needs=lambda _: needs, shared=shared, stop=lambda: stop.asked)
    if stop.asked:
        raise KeyboardInterrupt


def _given(argument: dict[str, Any]) -> Callable[[], dict[str, Any]]:
    return lambda: argument


def _travelling(task: str, config: TrainConfig, methods: Sequence[str]) -> dict[str, Any]:
    """A task with all that it names, as plain data for other machines."""
    names = [*named_code(words_of(task, config)).values(), *methods]
    found = shipment(files_there(config), names)
    return {"task": task, "config": to_dict(config), "files": dict(found.files), "sources": dict(found.sources)}


# On a node


def play_game(argument: dict[str, Any], shared: "Task | dict[str, Any]", report: Report) -> dict[str, Any]:
    """One game, as plain data."""
    task = _arrived(shared) if isinstance(shared, dict) else shared
    return play(task, argument["method"], **{name: v for name, v in argument.items() if name != "method"}).to_json()


MADE: list[tuple[dict[str, Any], Task]] = []
"""The task that this worker has made, with what it was made of."""


def _arrived(shared: dict[str, Any]) -> Task:
    """The task that travelled here, made once in each worker."""
    for known, made in MADE:
        if known["task"] == shared["task"] and known["config"] == shared["config"]:
            return made
    _, files = settled(Shipment(files=shared["files"], sources=shared["sources"]))
    made = make_task(shared["task"], with_files(from_dict(TrainConfig, shared["config"]), files))
    MADE[:] = [(shared, made)]
    return made
