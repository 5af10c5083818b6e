"""The page of a forecast: scores beside the baselines, a fan chart per series, scenarios, calibration."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sgfn.config.files import write_text
from sgfn.reports.forecast_figure import (
    LOOKS,
    OTHER,
    OUR_METHOD,
    calibration_chart,
    calibration_of,
    fan_chart,
    rows_of,
    scenario_chart,
    time_text,
)
from sgfn.reports.looks import Look
from sgfn.reports.numbers import DASH
from sgfn.reports.pages.parts import CaptionedDrawing, DrawingGroup, Section
from sgfn.reports.pages.rendering import render
from sgfn.reports.pages.svg import Drawing, drawing
from sgfn.series.files import Outcome, Scenarios
from sgfn.series.frames import plural

SHOWN_SERIES = 24
TOLD_FROM = 0.005
"""Share by which a method's WQL must be less than ours to be told: it is written as 1 % at least."""
COLUMNS = (
    ("wql", "WQL", "weighted quantile loss, the mean over the quantiles: lower is better"),
    ("mase", "MASE", "absolute error of the median over the mean change between values in the history"),
    ("mae", "MAE", "mean absolute error of the median"),
    ("mse", "MSE", "mean squared error of the mean"),
    ("coverage_80", "In 80 %", "share of values inside the 80 % interval; 80 % is best"),
    ("width_80", "Width", "mean width of the 80 % interval"),
)


def write_forecast_page(out: Path, title: str, lead: str, outcome: Outcome) -> Path:
    """Write one HTML file with everything inside."""
    sections = [_forecasts(outcome)]
    if outcome.scenarios is not None:
        sections.append(_scenarios(outcome, outcome.scenarios))
    if outcome.scores["methods"]:
        sections = [_scores(outcome), *sections, _calibration(outcome)]
    if "composition" in outcome.scores:
        sections.append(_composition(outcome))
    write_text(out, render("page.html.j2", title=title, lead=lead, note="", sections=sections))
    return out


# Scores


@dataclass(frozen=True, kw_only=True)
class ScoreCell:
    """A score as it is written, and whether it is the best of its column."""

    text: str
    best: bool


@dataclass(frozen=True, kw_only=True)
class ScoreRow:
    """Scores of one method."""

    method: str
    look: Look
    cells: list[ScoreCell]


@dataclass(frozen=True, kw_only=True)
class ScoreTable:
    """Scores of all methods; a column is a key, a name and what it means."""

    columns: tuple[tuple[str, str, str], ...]
    rows: list[ScoreRow]


def _scores(outcome: Outcome) -> Section:
    methods: dict[str, dict[str, float | None]] = outcome.scores["methods"]
    best = {key: _best(key, {name: scores[key] for name, scores in methods.items()}) for key, *_ in COLUMNS}
    rows = [
        ScoreRow(
            method=name,
            look=LOOKS.get(name, OTHER),
            cells=[
                ScoreCell(text=cell_text(outcome.scores, name, key, scores[key]), best=best[key] == name)
                for key, *_ in COLUMNS
            ],
        )
        for name, scores in methods.items()
    ]
    about = (
        f"Every method forecast the same {plural(outcome.scores['windows'], 'window', 'windows')} of "
        f"{plural(outcome.scores['horizon'], 'step', 'steps')}, each from what came before it. The best value of a "
        "column is marked."
    )
    if outcome.scores.get("small"):
        about += f" {small_text(outcome.scores)}"
    if behind := behind_line(outcome.scores):
        about += f" {behind[0].upper()}{behind[1:]}."
    if outcome.scores.get("future_stamps") == "known":
        about += " Stamps are irregular: every method was told when the values of a window came, not what came."
    content = ScoreTable(columns=COLUMNS, rows=rows)
    return Section(key="scores", title="Backtest", about=about, template="backtest", content=content)


def _best(key: str, values: dict[str, float | None]) -> str:
    """Whose value is best; a width is good or bad only beside its coverage."""
    there = {name: value for name, value in values.items() if value is not None}
    if key == "width_80" or len(there) < 2:
        return ""
    off = {name: abs(value - 0.8) if key == "coverage_80" else value for name, value in there.items()}
    return min(off, key=lambda name: off[name])


def score_text(key: str, value: float | None) -> str:
    """A score to four digits, without exponents where it is large; a dash where there is none.

    >>> score_text("coverage_80", 0.8125), score_text("mse", 397812.4), score_text("wql", 0.023456)
    ('81.2%', '397,812', '0.02346')
    """
    if value is None:
        return DASH
    if key == "coverage_80":
        return f"{value:.1%}"
    return f"{value:,.0f}" if abs(value) >= 1e4 else f"{value:.4g}"


def cell_text(scores: dict[str, Any], method: str, key: str, value: float | None) -> str:
    """A score, with its interval where the backtest is small."""
    found = scores.get("intervals", {}).get(method, {}).get(key) if scores.get("small") else None
    if found is None:
        return score_text(key, value)
    return f"{score_text(key, value)} [{score_text(key, found[0])}, {score_text(key, found[1])}]"


def small_text(scores: dict[str, Any]) -> str:
    """What to say of a backtest of few values."""
    return (
        f"A small backtest: {plural(scores['values'], 'value', 'values')}, too few to tell methods apart; brackets are "
        "90 % intervals of the scores."
    )


def behind_line(scores: dict[str, Any]) -> str:
    """Which method has the least WQL of the backtest, by how much, and what to do; empty where none is ahead of ours.

    >>> behind_line({"methods": {"sgfn": {"wql": 0.055}, "log MSTL": {"wql": 0.05}}, "windows": 6})[:59]
    'behind log MSTL in the backtest: its WQL of 0.05 is 9% less'
    """
    found = {name: row["wql"] for name, row in scores["methods"].items() if row["wql"] is not None}
    first = min(found, key=lambda name: found[name], default=OUR_METHOD)
    if first == OUR_METHOD or OUR_METHOD not in found or found[first] > (1 - TOLD_FROM) * found[OUR_METHOD]:
        return ""
    part = 1 - found[first] / found[OUR_METHOD]
    ahead = f"behind {first} in the backtest: its WQL of {score_text('wql', found[first])} is {part:.0%} less"
    luck = f"the best of {len(found):,} methods on {plural(scores['windows'], 'window', 'windows')} is partly luck"
    fix = f"where it stays ahead on more (--windows), --laws {first.replace(' ', '-')} forecasts by it alone"
    return f"{ahead}; {luck}; {fix}"


# What the forecast consists of


@dataclass(frozen=True, kw_only=True)
class LawTable:
    """Weights of laws as they are written, and laws that are left out with the reason."""

    weights: list[tuple[str, str]]
    left_out: list[tuple[str, str]]


def _composition(outcome: Outcome) -> Section:
    found = outcome.scores["composition"]
    series = plural(len(outcome.names), "series", "series")
    supports = ", ".join(f"{name} ({count:,} of {series})" for name, count in found["supports"].items())
    about = (
        "Quantiles are the weighted means of those of several laws. Weights were learned on "
        f"{plural(found['windows'], 'window', 'windows')} that no law had seen when it forecast them, and are "
        "shrunk towards ones by the loss of each law alone; the table has their mean over all series. The spread of "
        f"the first step was then multiplied by {found['spread'][0]:.2f}, that of the last by "
        f"{found['spread'][1]:.2f}, as values in those windows lay. Support of the values: {supports}."
    )
    weights = [(name, f"{weight:.0%}") for name, weight in found["weights"].items()]
    content = LawTable(weights=weights, left_out=list(found["left_out"].items()))
    return Section(
        key="composition",
        title="What the forecast consists of",
        about=about,
        template="composition",
        content=content,
    )


def composition_line(found: dict[str, Any]) -> str:
    """What a forecast consists of, in one line.

    >>> composition_line({"weights": {"AutoETS": 0.7, "MSTL": 0.3}, "supports": {"count": 2}, "windows": 9})
    'forecast: 70% AutoETS, 30% MSTL (weights from 9 windows); support count'
    """
    laws = ", ".join(f"{weight:.0%} {name}" for name, weight in found["weights"].items() if weight >= 0.005)
    seasons = f"; {found['seasons']}" if found.get("seasons") else ""
    support = ", ".join(found["supports"])
    return f"forecast: {laws} (weights from {found['windows']:,} windows); support {support}{seasons}"


# Charts over time


def _over_time(names: list[str], captions: list[str], draw: Callable[[str, str], Drawing], key: str) -> DrawingGroup:
    """A wide drawing for each series, below each other."""
    figures = [
        CaptionedDrawing(caption=caption, drawing=draw(name, f"{key}-{at}"))
        for at, (name, caption) in enumerate(zip(names, captions, strict=True))
    ]
    return DrawingGroup(heading="", layout="fans", size="wide", figures=figures)


def _forecasts(outcome: Outcome) -> Section:
    names = outcome.names[:SHOWN_SERIES]
    about = (
        "What was observed, what was forecast of the last windows without knowing them, and what is forecast of the "
        "future. Lines are medians, bands lie between mirrored quantiles."
    )
    about += " The thinnest lines are sample paths." if outcome.paths is not None else ""
    if len(outcome.names) > len(names):
        about += f" The first {len(names)} of {len(outcome.names)} series; all of them are in forecast.csv."

    def draw(name: str, key: str) -> Drawing:
        ahead = rows_of(outcome.forecast, name)
        end = f"{ahead['q0.5'].iloc[-1]:.4g} at {time_text(ahead['ds'].iloc[-1])}"
        said = f"Fan chart of {name}: the median forecast ends at {end}"
        return drawing(fan_chart(name, outcome, titled=False), key=key, said=said)

    content = [_over_time(names, names, draw, "fan")]
    return Section(key="forecast", title="Forecast", about=about, template="figures", content=content)


def _scenarios(outcome: Outcome, scenarios: Scenarios) -> Section:
    names = outcome.names[:SHOWN_SERIES]
    about = (
        f"Paths in proportion to p(path) exp(cost / {scenarios.temperature:g}), the cost {scenarios.cost}: what is "
        "likely and matters. All paths with their weights are in scenarios.csv."
    )

    def draw(name: str, key: str) -> Drawing:
        medians = [rows_of(table, name)["q0.5"].iloc[-1] for table in (scenarios.quantiles, outcome.forecast)]
        said = f"Scenarios of {name}: the median ends at {medians[0]:.4g}, that of the forecast at {medians[1]:.4g}"
        return drawing(scenario_chart(name, outcome, scenarios, titled=False), key=key, said=said)

    content = [_over_time(names, [effective_paths(name, scenarios) for name in names], draw, "scenario")]
    return Section(key="scenarios", title="Scenarios", about=about, template="figures", content=content)


def effective_paths(name: str, scenarios: Scenarios) -> str:
    """A series and how many independent paths its weighted scenarios are worth."""
    found = scenarios.figures[name]
    return f"{name}: {found['samples']:,.0f} paths count as {found['ess'] * found['samples']:,.0f}"


# Calibration


def _calibration(outcome: Outcome) -> Section:
    about = (
        "Share of values at or below each quantile of the backtest. On the diagonal as many values fall below a "
        "quantile as it says; a steep line has intervals that are too wide, a flat one intervals that are too narrow."
    )
    methods = list(dict.fromkeys(outcome.backtest["method"]))
    first = OUR_METHOD if OUR_METHOD in methods else methods[0]
    levels, shares = calibration_of(outcome.backtest[outcome.backtest["method"] == first])
    said = ", ".join(f"{share:.0%} at {level:.0%}" for level, share in zip(levels, shares, strict=True))
    figure = calibration_chart(outcome.backtest, titled=False)
    chart = CaptionedDrawing(caption="", drawing=drawing(figure, key="calibration", said=f"Calibration: {said}"))
    content = [DrawingGroup(heading="", layout="one", size="square", figures=[chart])]
    return Section(key="calibration", title="Calibration", about=about, template="figures", content=content)
