"""`sgfn design simulate` on the command line: parsing and printing only."""

from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Annotated, Any

from rich.table import Table
from tyro.conf import Fixed, Positional, Suppress, arg

from sgfn.cli.cluster_flags import ClusterFlags, OnCluster, cluster_options
from sgfn.cli.streams import Output
from sgfn.cli.tables import out, print_json
from sgfn.cli.task_flags import TaskFlags
from sgfn.config import NoiseConfig, TrainConfig
from sgfn.config.digits import figure


@dataclass(frozen=True, kw_only=True)
class DesignSimulate:
    """Play a design on a known landscape: what plates of each method bring, round after round."""

    task: Annotated[Positional[str], arg(metavar="TASK")]
    """Task of sequences, which `sgfn tasks` lists (gb1, mpsa, tfbind8, motif, ehrlich, table, callable), or yours."""
    method: tuple[str, ...] = ("default", "thompson", "greedy", "random")
    """Which: default, mixed, thompson, members, ucb, greedy, greedy-unaware and the like, adalead, genetic, evolution,
    cma-es, random, or `module:maker`, yours."""
    rounds: int = 4
    """Plates after the first measurements."""
    orders: int = 96
    """Orders of a plate."""
    start: int = 96
    """Random sequences that are measured first."""
    seeds: int = 3
    """How many seeds, from --seed on."""
    proxy: str = "design"
    """Kind of the proxy that all methods fit."""
    out: Path | None = None
    """JSON file for the results, written after each game; the same command again plays those that are missing."""
    overwrite: bool = False
    """Replace a file that is there, and begin anew."""
    json: bool = False
    """Print JSON."""
    seed: int = 0
    """The first seed."""
    nodes: ClusterFlags = field(default_factory=OnCluster)
    config: Annotated[TaskFlags, arg(name="")] = field(default_factory=lambda: TaskFlags(noise=NoiseConfig(alpha=0.0)))
    said: Suppress[Fixed[frozenset[str]]] = frozenset()


def run_simulate(args: DesignSimulate) -> None:
    """`sgfn design simulate`."""
    from sgfn.config.checks import in_range  # what follows is slow to import
    from sgfn.design.game_files import results_of
    from sgfn.design.games import play_all
    from sgfn.design.simulate import Game
    from sgfn.learning.unread import refuse_unread_task

    in_range("seeds", args.seeds, 1, 100_000)
    config = TrainConfig(**{part.name: getattr(args.config, part.name) for part in fields(TaskFlags)})
    refuse_unread_task(args.task, config, args.said)
    err = Output(stderr=True)

    def told(game: Game) -> None:
        last = game.rounds[-1]
        line = f"{game.method}, seed {game.seed}: best {figure(last.best)}, last plate {figure(last.expected)}"
        err.print(line, soft_wrap=True)

    sizes = {name: getattr(args, name) for name in ("rounds", "orders", "start", "proxy", "out", "overwrite")}
    seeds = range(args.seed, args.seed + args.seeds)
    found = play_all(args.task, config, args.method, seeds, **sizes, told=told, **cluster_options(args.nodes))
    result = results_of(found.games)
    if args.json:
        print_json(result)
    else:
        print_games(result["summary"])
    if found.failed:
        raise ValueError(found.complaint)


def print_games(summary: list[dict[str, Any]]) -> None:
    """Print means over seeds with standard errors, one row for each method."""
    table = Table(
        "method", "seeds", "best", "+-", "last plate expects", "regret", "CPU s", box=None, header_style="bold"
    )
    for row in summary:
        regret = "-" if row["regret"] is None else figure(row["regret"], 3)
        figures = (figure(row["best"]), figure(row["best_error"], 2), figure(row["expected"]), regret)
        table.add_row(row["method"], str(row["seeds"]), *figures, f"{row['seconds']:.3g}")
    out.print(table)
