"""`sgfn forecast` on the command line: parsing and printing only."""

import re
from contextlib import nullcontext
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Annotated, Any, Literal, get_args

from rich.console import Console
from rich.progress import BarColumn, TaskID, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.progress import Progress as Bars
from tyro.conf import Fixed, Positional, Suppress, arg

from sgfn.cli.cluster_flags import ClusterFlags, OnCluster, cluster_options
from sgfn.cli.streams import Output
from sgfn.cli.tables import out, print_aligned, print_json
from sgfn.config import LogConfig, NetConfig, OptimConfig, TrainConfig
from sgfn.config.checks import one_of
from sgfn.config.forecast import ForecastSettings
from sgfn.config.presets import PRESETS
from sgfn.config.series import Dataset, SeriesConfig

RECIPE = PRESETS["forecast"]
EMBEDDED = get_args(Dataset)
FIELD = re.compile(
    rf"(?<![\w./])(?:--)?series\.({'|'.join(one.name.replace('_', '[-_]') for one in fields(SeriesConfig))})(?![\w.-])"
)
HEADS = {"wql": "WQL", "mase": "MASE", "mae": "MAE", "mse": "MSE", "coverage_80": "in 80 %", "width_80": "width"}


@dataclass(frozen=True, kw_only=True)
class Forecast:
    """Forecast time series by classical laws and a network in one: backtest, forecast.csv, pictures and a page.

    Basics: a file with a column of times and one of numbers needs nothing but its name.

      sgfn forecast sales.csv --horizon 30 --out runs/sales

      --horizon H          steps ahead, else by step  --effort quick|default|best  how much is spent
      --target-col a,b     what is forecast           --freq 30min|h|D|B|W|M|Q|Y   step of the stamps
      --time-col, --id-col found where not given      --season 12                  steps of a season
      --known promo,price  known in advance           --holidays US                public holidays of a country
      --windows 10         backtest windows           --levels 0.1 0.5 0.9         quantiles that are written
      --support count      where values can lie       --paths FILE                 sample paths

    All others have defaults that suit most series.
    """

    data: Annotated[Positional[str | None], arg(metavar="DATA")] = None
    """Table: CSV, TSV, Parquet or Excel (unique_id, ds, y, covariates), or embedded data: births, weather, glucose."""
    config: Annotated[SeriesConfig, arg(name="")] = field(default_factory=lambda: RECIPE.series)
    settings: Annotated[ForecastSettings, arg(name="")] = field(default_factory=ForecastSettings)
    out: Path | None = None
    """Run folder; by default runs/forecast-NAME."""
    resume: bool = False
    """Continue the run in the folder with its own configuration, then judge and write again."""
    overwrite: bool = False
    """Replace a run that is there."""
    device: Literal["auto", "cpu", "cuda"] = "auto"
    """Where to run."""
    json: bool = False
    """Print scores and files as JSON."""
    trust: bool = False
    """With --resume: run the code, and open the files, that the run names and this command does not name again."""
    nodes: ClusterFlags = field(default_factory=OnCluster)
    steps: int = RECIPE.steps
    """Training steps."""
    batch: int = RECIPE.batch
    """Windows that each step learns from."""
    seed: int = RECIPE.seed
    """Seed of training and of sample paths."""
    net: NetConfig = field(default_factory=lambda: RECIPE.net)
    optim: OptimConfig = field(default_factory=lambda: RECIPE.optim)
    log: LogConfig = field(default_factory=lambda: RECIPE.log)
    said: Suppress[Fixed[frozenset[str]]] = frozenset()


def run_forecast(args: Forecast) -> None:
    """`sgfn forecast`."""
    from sgfn.learning.unread import refuse_unread  # torch, matplotlib and pandas are slow to import
    from sgfn.reports.forecasts import Progress, forecast
    from sgfn.series.settings import Settings

    err = Output(stderr=True)
    config, settings = configured(args), Settings(**vars(args.settings))
    if not args.resume:
        shared = [name for name in args.said if name.startswith(("net.", "optim.", "log."))]  # others mean a forecast's
        refuse_unread("series", config, RECIPE, shared)
    refuse_tilt(args.settings)
    folder = args.out or Path("runs") / f"forecast-{name_of(config.series)}"
    board = Board(err, config.steps) if err.is_terminal and not args.json else None
    with board or nullcontext():
        bars = {} if board is None else {"training": board.training, "windows": board.windows}
        progress = Progress(notice=lambda line: err.print(line, soft_wrap=True), **bars)
        options: dict[str, Any] = {n: getattr(args, n) for n in ("resume", "overwrite", "device", "trust")}
        found = forecast(config, settings, folder, progress=progress, **options, **cluster_options(args.nodes))
    if args.json:
        print_json(found.summary())
        return
    if found.outcome.scores["methods"]:
        print_scores(found.outcome.scores)
        print_behind(found.outcome.scores)
    if "composition" in found.outcome.scores:
        from sgfn.reports.pages.forecast import composition_line

        out.print(composition_line(found.outcome.scores["composition"]), soft_wrap=True)
    for name, told in found.tilt.items():
        out.print(tilt_line(name, told), soft_wrap=True)
    horizon, count = found.outcome.scores["horizon"], len(found.outcome.names)
    out.print(
        f"{count:,} series, {horizon:,} step{'s' * (horizon != 1)} ahead: {folder / 'forecast.csv'}", soft_wrap=True
    )
    out.print(f"page with fan charts and calibration: {folder / 'report.html'}", soft_wrap=True)


def by_series_flags(text: str) -> str:
    """A message with the fields of series as `sgfn forecast` calls their flags.

    >>> by_series_flags("series.time_col is here; --series.horizon there; series.csv, line 3")
    '--time-col is here; --horizon there; series.csv, line 3'
    """
    return FIELD.sub(lambda found: f"--{found[1].replace('_', '-')}", text)


def refuse_tilt(settings: ForecastSettings) -> None:
    """Raise where scenarios are described and none are asked for."""
    default = ForecastSettings()
    names = [n for n in ("temperature", "tilt_objective", "tilt_steps") if getattr(settings, n) != getattr(default, n)]
    if names and not settings.tilt:
        flags = ", ".join(f"--{name.replace('_', '-')}" for name in names)
        does, it = ("does", "it") if len(names) == 1 else ("do", "them")
        raise ValueError(f"{flags} {does} nothing here: read with --tilt; leave {it} out")


def configured(args: Forecast) -> TrainConfig:
    """The recipe with what was chosen; data by its name or its file."""
    series = args.config
    if args.data is not None:
        if "." not in args.data and not Path(args.data).exists():
            one_of("DATA", args.data, EMBEDDED)
        given: dict[str, Any] = {"dataset": args.data} if args.data in EMBEDDED else {"file": Path(args.data)}
        if series.file is not None and given.get("file") != series.file:
            raise ValueError(f"DATA {args.data} and --file {series.file} name different data: give one of them")
        series = replace(series, **given)
    parts = {name: getattr(args, name) for name in ("steps", "batch", "seed", "net", "optim", "log")}
    return RECIPE.with_(series=series, **parts)


def name_of(series: SeriesConfig) -> str:
    """A short name of the data that is forecast."""
    return series.dataset if series.file is None else series.file.name.split(".")[0]


def print_scores(scores: dict[str, Any]) -> None:
    """Scores of the backtest, a row per method."""
    from sgfn.reports.pages.forecast import cell_text, score_text, small_text

    rows = []
    for method, values in scores["methods"].items():
        shown = {key: cell_text(scores, method, key, values[key]) if key == "wql" else "" for key in HEADS}
        rows.append((method, *[shown[key] or score_text(key, values[key]) for key in HEADS]))
    windows = f"{scores['windows']:,} window{'s' * (scores['windows'] != 1)}"
    print_aligned((windows, *HEADS.values()), rows)
    if scores["small"]:
        out.print(small_text(scores), soft_wrap=True)


def print_behind(scores: dict[str, Any]) -> None:
    """One line where another method has less WQL than ours in the backtest."""
    from sgfn.reports.pages.forecast import behind_line

    if line := behind_line(scores):
        out.print(line, soft_wrap=True)


def tilt_line(name: str, found: dict[str, float]) -> str:
    """How far the scenarios of a series can be trusted."""
    from sgfn.series.tilt_checks import collapse_line

    own, plain = (found[key] * found["samples"] for key in ("ess", "ess_forecast"))
    sizes = f"{found['samples']:,.0f} paths count as {own:,.0f} (the forecast's own, weighted: as {plain:,.0f})"
    check = f"tilted mean at most {found['apart']:.1f} standard errors from importance sampling"
    collapse = collapse_line(found)
    return f"scenarios of {name}: {sizes}; {check}" + (f"; {collapse}" if collapse else "")


class Board:
    """Progress bars: one of the training, and one of each method on the backtest's windows."""

    def __init__(self, console: Console, steps: int) -> None:
        self.console, self.steps = console, steps
        columns = [TextColumn("{task.description}"), BarColumn(), TextColumn("{task.completed:,}/{task.total:,}")]
        columns += [TimeElapsedColumn(), TimeRemainingColumn(), TextColumn("{task.fields[figures]}")]
        self.bars, self.shown = Bars(*columns, console=console, refresh_per_second=4), dict[str, TaskID]()

    def __enter__(self) -> "Board":
        self.bars.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.bars.stop()

    def training(self, step: int, row: dict[str, Any]) -> None:
        """How far training is, and the newest figures."""
        self.show("training", step, row.get("steps", self.steps), figures(row))

    def windows(self, method: str, done: int, total: int) -> None:
        """Number of windows that a method has forecast."""
        self.show(method, done, total, "")

    def show(self, name: str, done: int, total: int, text: str) -> None:
        """One bar, made when it is first spoken of."""
        if name not in self.shown:
            self.shown[name] = self.bars.add_task(name, total=total, figures="")
        self.bars.update(self.shown[name], completed=done, figures=text)


def figures(row: dict[str, Any]) -> str:
    """The figures beside the progress bar of training, as text."""
    held = f"held out {row['held_out']:.3f}  " if "held_out" in row else ""
    return f"loss {row['loss']:.3f}  {held}" if "loss" in row else ""
