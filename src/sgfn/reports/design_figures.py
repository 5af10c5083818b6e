"""Figures of a round of design: best so far, predicted and measured, calibration, diversity, plate, outlook."""

from itertools import combinations
from math import erf, sqrt

import numpy as np
import pandas as pd
from jaxtyping import Float
from matplotlib.axes import Axes
from matplotlib.colors import LinearSegmentedColormap, Normalize
from matplotlib.figure import Figure

from sgfn.design.proposal import Outlook
from sgfn.landscapes.proxies import ProxyReport
from sgfn.landscapes.proxies.calibration import Z80
from sgfn.reports.axes import add_legend, add_panel, name_axes, new_figure, write_note
from sgfn.reports.looks import AXIS, FLOOR, GREY, INK, MUTED, OURS, TARGET
from sgfn.reports.proxy_figure import draw_proxy

SIZE = (4.7, 3.3)
LEVELS = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95)
"""Intervals whose coverage is looked at."""
SHADES = LinearSegmentedColormap.from_list("plate", ["#eef3fb", OURS])


def progress_figure(measured: pd.DataFrame, sign: float, *, log: bool = False) -> Figure:
    """Scores of each round, and the best so far; on an axis of logarithms where those are designed for."""
    figure = new_figure(*SIZE)
    axes = add_panel(figure)
    rounds = sorted(measured["round"].unique())
    generator = np.random.default_rng(0)
    shown = measured.groupby("round", group_keys=False)[["round", "score"]].apply(lambda part: part.tail(400))
    jitter = generator.uniform(-0.18, 0.18, len(shown))
    axes.plot(shown["round"] + jitter, shown.score, ".", color=OURS, alpha=0.35, markersize=4, label="measured")
    best = [sign * (sign * measured.score[measured["round"] <= number]).max() for number in rounds]
    axes.step([*rounds, rounds[-1] + 0.4], [*best, best[-1]], where="post", color=TARGET, label="best so far")
    axes.set_xticks(rounds, ["first table" if number == 0 else f"round {number}" for number in rounds])
    name_axes(axes, "", "score")
    axes.set_yscale("log" if log else "linear")
    add_legend(axes, columns=2)
    return figure


def told_rows(measured: pd.DataFrame) -> pd.DataFrame:
    """Measurements of which a prediction had been made."""
    return measured[measured.predicted.notna() & measured.predicted_sd.notna()]


def interval(told: pd.DataFrame, *, log: bool = False) -> Float[np.ndarray, "2 N"]:
    """How far the interval of 80 % reaches below and above what was predicted of each row.

    `log`: a law that is normal for logarithms, whose deviation s is told as e^m sinh(s) (`ScoreTransform`).
    """
    middle, sd = told.predicted.to_numpy(), told.predicted_sd.to_numpy()
    if not log:
        return Z80 * np.stack([sd, sd])
    away = Z80 * np.arcsinh(sd / middle)
    return middle * np.stack([-np.expm1(-away), np.expm1(away)])


def predicted_figure(measured: pd.DataFrame, *, log: bool = False) -> Figure:
    """What was predicted of orders against what was measured, with intervals of 80 %."""
    figure = new_figure(*SIZE)
    axes = add_panel(figure)
    told = told_rows(measured)
    name_axes(axes, "predicted score", "measured score")
    if told.empty:
        write_note(axes, "after the first plate is measured")
        return figure
    last = told["round"] == told["round"].max()
    for chosen, colour, label in ((~last, GREY, "earlier rounds"), (last, OURS, "last round")):
        part = told[chosen]
        if len(part):
            options = {"fmt": "o", "markersize": 3, "elinewidth": 0.6, "alpha": 0.7, "color": colour, "label": label}
            axes.errorbar(part.predicted, part.score, xerr=interval(part, log=log), **options)
    low, high = (f(f(told.predicted), f(told.score)) for f in (min, max))
    axes.plot([low, high], [low, high], color=MUTED, linewidth=1, linestyle=(0, (5, 2)))
    if log:
        axes.set(xscale="log", yscale="log")
    add_legend(axes, columns=2)
    return figure


def validation_figure(report: ProxyReport, *, log: bool = False) -> Figure:
    """What was predicted of measured sequences out of fold, against what was measured."""
    figure = new_figure(*SIZE)
    draw_proxy(add_panel(figure), report, log=log)
    return figure


def coverage(told: pd.DataFrame, *, log: bool = False) -> Float[np.ndarray, " Q"]:
    """Share of measurements inside central intervals of each level, normal around the prediction, or in logarithms."""
    score, middle, spread = (told[name].to_numpy() for name in ("score", "predicted", "predicted_sd"))
    away = np.log(score / middle) if log else score - middle
    inside = np.abs(away) / (np.arcsinh(spread / middle) if log else spread).clip(min=1e-12)
    share = np.array([erf(value / sqrt(2)) for value in inside])  # level of the smallest interval that holds it
    return np.array([(share <= level).mean() for level in LEVELS])


def calibration_figure(measured: pd.DataFrame, *, log: bool = False) -> Figure:
    """Coverage of intervals against their level."""
    figure = new_figure(*SIZE)
    axes = add_panel(figure)
    told = told_rows(measured)
    name_axes(axes, "interval says", "measurements inside")
    axes.plot([0, 1], [0, 1], color=MUTED, linewidth=1, linestyle=(0, (5, 2)))
    axes.set(xlim=(0, 1), ylim=(0, 1.02))
    if told.empty:
        write_note(axes, "after the first plate is measured")
        return figure
    axes.plot(LEVELS, coverage(told, log=log), "o-", color=OURS, markersize=4)
    return figure


def distances(orders: list[str]) -> list[int]:
    """Number of places at which each two orders differ, of two lengths the missing ones included."""
    width = max(map(len, orders))
    codes = np.array([[ord(letter) for letter in order.ljust(width, "\0")] for order in orders])
    return [int((codes[i] != codes[j]).sum()) for i, j in combinations(range(len(orders)), 2)]


def diversity_figure(orders: pd.DataFrame) -> Figure:
    """How far orders of a plate are from each other, and from what was measured."""
    figure = new_figure(*SIZE)
    axes = add_panel(figure)
    pairs = distances(orders.order.tolist())
    groups = [(pairs, "two orders of the plate", OURS)]
    if "distance" in orders:
        groups.append(([int(d) for d in orders.distance.dropna()], "order and nearest measured", TARGET))
    most = max((max(values) for values, *_ in groups if values), default=1)
    edges = [place - 0.5 for place in range(most + 2)]
    for values, label, colour in groups:
        if values:
            share = np.full(len(values), 1 / len(values))
            axes.hist(values, edges, weights=share, histtype="step", linewidth=1.6, color=colour, label=label)
    name_axes(axes, "differences", "share")
    add_legend(axes)
    return figure


def plate_figure(orders: pd.DataFrame, sign: float = 1.0) -> Figure:
    """Expected score of each well, on a map of the plate; the best are darkest, low ones where `sign` is -1."""
    rows, columns = (8, 12) if len(orders) <= 96 else (16, 24)
    figure = new_figure(9.4, 4.6 if rows == 8 else 6.6)
    axes = add_panel(figure)
    axes.grid(visible=False)
    values = np.full(rows * columns, np.nan)
    shown = orders.expected.to_numpy(dtype=float)[: rows * columns]
    values[: len(shown)] = shown
    finite = shown[np.isfinite(shown)]
    good = sign * finite
    norm = Normalize(good.min(), good.max()) if len(good) else Normalize(0, 1)
    _draw_wells(axes, values.reshape(rows, columns), norm, sign)
    axes.set(xlim=(-0.6, columns - 0.4), ylim=(rows - 0.4, -0.6), aspect="equal")
    axes.set_xticks(range(columns), [str(number) for number in range(1, columns + 1)])
    axes.set_yticks(range(rows), [chr(ord("A") + row) for row in range(rows)])
    axes.tick_params(length=0)
    axes.spines[["left", "bottom"]].set_visible(False)
    return figure


def _draw_wells(axes: Axes, values: Float[np.ndarray, "R C"], norm: Normalize, sign: float) -> None:
    """A disc for each well, its expected score inside where there is room; `norm` is of `sign` times the scores."""
    rows, columns = values.shape
    across, down = np.meshgrid(np.arange(columns), np.arange(rows))
    full = np.isfinite(values)
    size = 560 if rows == 8 else 140
    axes.scatter(across[~full], down[~full], s=size, facecolors="none", edgecolors=AXIS, linewidths=0.6)
    shades = [SHADES(float(norm(sign * value))) for value in values[full]]
    axes.scatter(across[full], down[full], s=size, c=shades, edgecolors=AXIS, linewidths=0.6)
    if rows == 8:
        for row, column in zip(*np.nonzero(full), strict=True):
            dark = float(norm(sign * values[row, column])) > 0.55
            colour = "#fdfdfd" if dark else INK
            text = well_text(float(values[row, column]))
            options = {"ha": "center", "va": "center", "fontsize": min(7, 28 / len(text)), "color": colour}
            axes.text(column, row, text, **options)


def well_text(value: float) -> str:
    """A score in few letters.

    >>> well_text(0.123), well_text(1234.5), well_text(-2.34e-5), well_text(1.2e7)
    ('0.12', '1234', '-2.3e-5', '1.2e7')
    """
    if 100 <= abs(value) < 99_999:
        return f"{value:.0f}"
    digits, _, power = f"{value:.2g}".partition("e")
    return f"{digits}e{int(power)}" if power else digits


def outlook_figure(outlook: Outlook) -> Figure:
    """Expected best score after each well, and what each further well adds."""
    figure = new_figure(*SIZE)
    axes = add_panel(figure)
    wells = range(1, len(outlook.expected_best) + 1)
    axes.axhline(outlook.believed, color=MUTED, linewidth=1, linestyle=(0, (5, 2)), label="best measured, by the proxy")
    axes.plot([0, *wells], [outlook.believed, *outlook.expected_best], color=OURS, label="expected best")
    name_axes(axes, "wells", "score")
    add_legend(axes)
    return figure


def marginal_figure(outlook: Outlook) -> Figure:
    """What the k-th well adds to the expected best."""
    figure = new_figure(*SIZE)
    axes = add_panel(figure)
    added = np.abs(np.array(outlook.marginal))
    wells = np.arange(1, len(added) + 1)
    axes.bar(wells, added, color=FLOOR, width=0.9)
    name_axes(axes, "k-th well", "added to the expected best")
    return figure
