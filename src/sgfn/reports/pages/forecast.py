"""The page of a forecast: scores beside the baselines, a fan chart per series, calibration."""

from pathlib import Path
from xml.etree.ElementTree import Element

import numpy as np
import pandas as pd
from jaxtyping import Float
from matplotlib import dates as mdates

from sgfn.config.files import write_text
from sgfn.reports.forecast_figure import (
    OUR_METHOD,
    calibration_of,
    date_texts,
    first_shown,
    last_windows,
    mirrored,
    unbroken,
)
from sgfn.reports.pages.charts import Frame, axes, mark, plain, style, swatch, ticks
from sgfn.reports.pages.document import shell
from sgfn.reports.pages.markup import serialise, tag
from sgfn.reports.pages.sections import Section, box
from sgfn.series.backtest import level_name
from sgfn.series.files import Outcome, Scenarios
from sgfn.series.frames import plural

SHOWN_SERIES = 24
COLUMNS = (
    ("wql", "WQL", "weighted quantile loss, the mean over the quantiles: lower is better"),
    ("mase", "MASE", "absolute error of the median over the mean change between values in the history"),
    ("mae", "MAE", "mean absolute error of the median"),
    ("mse", "MSE", "mean squared error of the mean"),
    ("coverage_80", "In 80 %", "share of values inside the 80 % interval; 80 % is best"),
    ("width_80", "Width", "mean width of the 80 % interval"),
)


def write_forecast_page(out: Path, title: str, lead: str, outcome: Outcome) -> Path:
    """One HTML file with everything inside."""
    parts = [_fans(outcome)]
    if outcome.scenarios is not None:
        parts.append(_scenarios(outcome, outcome.scenarios))
    if outcome.scores["methods"]:
        parts = [_scores(outcome), *parts, _calibration(outcome)]
    write_text(out, "<!DOCTYPE html>\n" + serialise(shell(title, [lead], parts)) + "\n")
    return out


# Scores


def _scores(outcome: Outcome) -> Section:
    methods: dict[str, dict[str, float | None]] = outcome.scores["methods"]
    head = tag("tr", tag("th", "method", scope="col"), [tag("th", name, scope="col") for _, name, _ in COLUMNS])
    best = {key: _best(key, {name: scores[key] for name, scores in methods.items()}) for key, *_ in COLUMNS}
    rows = [_row(at, name, scores, best) for at, (name, scores) in enumerate(methods.items())]
    table = tag("table", tag("thead", head), tag("tbody", rows), class_="figures scores")
    told = tag("dl", [[tag("dt", name), tag("dd", about)] for _, name, about in COLUMNS])
    about = (
        f"Every method forecast the same {plural(outcome.scores['windows'], 'window', 'windows')} of "
        f"{plural(outcome.scores['horizon'], 'step', 'steps')}, each from what came before it. The best value of a "
        "column is marked."
    )
    if outcome.scores.get("future_stamps") == "known":
        about += " Stamps are irregular: every method was told when the values of a window came, not what came."
    parts = [box(table, "Scores"), tag("details", tag("summary", "What the columns mean"), told)]
    return Section(key="scores", title="Backtest", about=about, parts=parts)


def _best(key: str, values: dict[str, float | None]) -> str:
    """Whose value is best; a width is good or bad only beside its coverage."""
    there = {name: value for name, value in values.items() if value is not None}
    if key == "width_80" or len(there) < 2:
        return ""
    off = {name: abs(value - 0.8) if key == "coverage_80" else value for name, value in there.items()}
    return min(off, key=lambda name: off[name])


def _row(at: int, name: str, scores: dict[str, float | None], best: dict[str, str]) -> Element:
    label = tag("th", swatch(at), tag("span", name, class_="label"), scope="row")
    cells = []
    for key, *_ in COLUMNS:
        text = score_text(key, scores[key])
        marked = tag("strong", text, tag("span", " (best)", class_="hidden")) if best[key] == name else text
        cells.append(tag("td", marked, class_="best" if best[key] == name else None))
    return tag("tr", label, cells)


def score_text(key: str, value: float | None) -> str:
    """A score to four digits, without exponents where it is large; a dash where there is none.

    >>> score_text("coverage_80", 0.8125), score_text("mse", 397812.4), score_text("wql", 0.023456)
    ('81.2%', '397,812', '0.02346')
    """
    if value is None:
        return "\N{EN DASH}"
    if key == "coverage_80":
        return f"{value:.1%}"
    return f"{value:,.0f}" if abs(value) >= 1e4 else f"{value:.4g}"


# Fan charts


def _fans(outcome: Outcome) -> Section:
    names = outcome.names[:SHOWN_SERIES]
    figures = [
        tag("figure", tag("figcaption", name), box(fan(name, outcome), f"Fan chart of {name}")) for name in names
    ]
    more = len(outcome.names) - len(names)
    about = (
        "The thin line is what was seen. Grey: what was forecast of the last windows, not knowing them. Blue: what is "
        "forecast. Lines are medians, bands lie between mirrored quantiles."
    ) + (f" The first {len(names)} of {len(outcome.names)} series; all of them are in forecast.csv." if more else "")
    return Section(key="forecast", title="Forecast", about=about, parts=[tag("div", figures, class_="fans")])


def fan(name: str, outcome: Outcome) -> Element:
    """One series as SVG."""
    seen = outcome.history[outcome.history["unique_id"] == name]
    ahead = outcome.forecast[outcome.forecast["unique_id"] == name]
    windows = last_windows(outcome.backtest, name)
    shown = seen[seen["ds"] >= first_shown(seen, ahead, windows)]
    frame = _frame(shown, [*windows, ahead])
    end = f"{ahead['q0.5'].iloc[-1]:.4g} on {ahead['ds'].iloc[-1]}"
    parts = [tag("title", f"{name}: forecast of {len(ahead)} steps"), *time_axes(frame)]
    parts += [_band(frame, rows, "then") for rows in windows]
    parts += [_band(frame, ahead, style(0))]
    parts.append(tag("path", d=_broken(frame, shown), class_="seen"))
    return _chart(frame, parts, f"Fan chart of {name}: the median forecast ends at {end}")


def _chart(frame: Frame, parts: list[Element], said: str) -> Element:
    view = f"0 0 {frame.width:g} {frame.height:g}"
    return tag("svg", parts, viewBox=view, role="img", aria_label=said, class_="chart wide")


def _frame(shown: pd.DataFrame, fans: list[pd.DataFrame]) -> Frame:
    columns = [rows[level_name(round(side, 6))] for rows in fans for low in mirrored(rows) for side in (low, 1 - low)]
    values = np.concatenate([shown["y"], *columns, *[rows["q0.5"] for rows in fans]]).astype(np.float64)
    low, high = float(np.nanmin(values)), float(np.nanmax(values))
    room = 0.04 * (high - low) or 1.0
    times = mdates.date2num(np.concatenate([shown["ds"], *[rows["ds"] for rows in fans]]))
    up = (low - room, high + room)
    left = 16 + 8.0 * max((len(text) for _, text in ticks(*up)), default=3)
    across = (float(times.min()), float(times.max()))
    return Frame(width=920.0, height=300.0, left=left, right=30.0, top=10.0, bottom=44.0, across=across, up=up)


def time_axes(frame: Frame) -> list[Element]:
    """Values up the side, times along the foot, and the year or day they share at its end."""
    base, end = frame.height - frame.bottom, frame.width - frame.right
    drawn = []
    for value, text in ticks(*frame.up):
        y = frame.y(value)
        drawn.append(tag("line", x1=frame.left, x2=end, y1=y, y2=y, class_="rule"))
        drawn.append(tag("text", text, x=frame.left - 8, y=y + 4, text_anchor="end"))
    places, texts, shared = time_ticks(*frame.across)
    for value, text in zip(places, texts, strict=True):
        x = frame.x(value)
        drawn.append(tag("line", x1=x, x2=x, y1=base, y2=base + 5, class_="axis"))
        drawn.append(tag("text", text, x=x, y=base + 20, text_anchor="middle"))
    drawn.append(tag("line", x1=frame.left, x2=end, y1=base, y2=base, class_="axis"))
    return [*drawn, tag("text", shared, x=end, y=base + 38, text_anchor="end", class_="name")]


def time_ticks(first: float, last: float) -> tuple[list[float], list[str], str]:
    """Round times between two days since 1970, how to write them, and what they share."""
    locator = mdates.AutoDateLocator(minticks=4, maxticks=8)
    low, high = mdates.num2date(first), mdates.num2date(last)
    places = [float(place) for place in locator.tick_values(low, high) if first <= place <= last]  # pyright: ignore
    formatter = date_texts(locator)
    texts = formatter.format_ticks(places)
    return places, texts, formatter.get_offset()


def _band(frame: Frame, rows: pd.DataFrame, kind: str) -> Element:
    """Bands between mirrored quantiles, and the median."""
    times = mdates.date2num(rows["ds"])
    parts = []
    for low in mirrored(rows):
        top = frame.path(times, rows[level_name(round(1 - low, 6))].to_numpy())
        back = frame.path(times[::-1], rows[level_name(low)].to_numpy()[::-1])
        parts.append(tag("path", d=f"M{top}L{back}Z", class_="band"))
    parts.append(tag("path", d=f"M{frame.path(times, rows['q0.5'].to_numpy())}", class_="curve"))
    return tag("g", parts, class_=kind)


def _broken(frame: Frame, shown: pd.DataFrame) -> str:
    """A line through what was seen, broken at gaps."""
    return "".join(f"M{frame.path(*piece)}" for piece in unbroken(shown))


# Scenarios


def _scenarios(outcome: Outcome, scenarios: Scenarios) -> Section:
    names = outcome.names[:SHOWN_SERIES]
    figures = [
        tag("figure", tag("figcaption", _trust(name, scenarios)), box(tilted_fan(name, outcome, scenarios), name))
        for name in names
    ]
    about = (
        f"Paths in proportion to p(path) exp(cost / {scenarios.temperature:g}), the cost {scenarios.cost}: what is "
        "likely and matters. All paths with their weights are in scenarios.csv."
    )
    keys = [tag("li", swatch(at), name) for at, name in enumerate(("forecast", "scenarios"))]
    parts = [tag("ul", keys, class_="key"), tag("div", figures, class_="fans")]
    return Section(key="scenarios", title="Scenarios", about=about, parts=parts)


def _trust(name: str, scenarios: Scenarios) -> str:
    found = scenarios.figures[name]
    return f"{name}: {found['samples']:,.0f} paths count as {found['ess'] * found['samples']:,.0f}"


def tilted_fan(name: str, outcome: Outcome, scenarios: Scenarios) -> Element:
    """One series as SVG: its forecast, and the scenarios over it."""
    seen = outcome.history[outcome.history["unique_id"] == name]
    ahead = outcome.forecast[outcome.forecast["unique_id"] == name]
    rows = scenarios.quantiles[scenarios.quantiles["unique_id"] == name]
    shown = seen[seen["ds"] >= first_shown(seen, ahead, [])]
    frame = _frame(shown, [ahead, rows])
    parts = [tag("title", f"{name}: scenarios beside the forecast"), *time_axes(frame)]
    parts += [_band(frame, ahead, style(0)), _band(frame, rows, style(1))]
    parts.append(tag("path", d=_broken(frame, shown), class_="seen"))
    ends = f"{rows['q0.5'].iloc[-1]:.4g}, that of the forecast at {ahead['q0.5'].iloc[-1]:.4g}"
    return _chart(frame, parts, f"Scenarios of {name}: the median ends at {ends}")


# Calibration


def _calibration(outcome: Outcome) -> Section:
    about = (
        "Share of values at or below each quantile of the backtest. On the diagonal a forecast keeps its word; a steep "
        "line has intervals that are too wide, a flat one intervals that are too narrow."
    )
    methods = list(dict.fromkeys(outcome.backtest["method"]))
    found = {name: calibration_of(outcome.backtest[outcome.backtest["method"] == name]) for name in methods}
    keys = [tag("li", swatch(at), name) for at, name in enumerate(methods)]
    parts = [tag("ul", keys, class_="key"), calibration_svg(found)]
    return Section(key="calibration", title="Calibration", about=about, parts=parts)


def calibration_svg(found: dict[str, tuple[np.ndarray, np.ndarray]]) -> Element:
    """Observed shares against levels."""
    unit = (0.0, 1.0)
    frame = Frame(width=420.0, height=400.0, left=58.0, right=16.0, top=10.0, bottom=52.0, across=unit, up=unit)
    ends = np.array([0.0, 1.0])
    parts = [axes(frame, "level of the quantile", "share of values at or below it")]
    parts.append([tag("path", d=f"M{frame.path(ends, ends)}", class_="axis")])
    parts.append([_shares(frame, at, *curve) for at, curve in enumerate(found.values())])
    levels, shares = found.get(OUR_METHOD, next(iter(found.values())))
    said = ", ".join(f"{share:.0%} at {level:.0%}" for level, share in zip(levels, shares, strict=True))
    label = f"Calibration: {said}"
    return tag("svg", parts, viewBox="0 0 420 400", role="img", aria_label=label, class_="chart square")


def _shares(frame: Frame, at: int, levels: Float[np.ndarray, " Q"], shares: Float[np.ndarray, " Q"]) -> Element:
    line = tag("path", d=f"M{frame.path(levels, shares)}", class_="curve")
    marks = [mark(at, frame.x(float(x)), frame.y(float(y))) for x, y in zip(levels, shares, strict=True)]
    title = tag("title", ", ".join(plain(float(share), 2) for share in shares))
    return tag("g", title, line, marks, class_=style(at))
