"""Curves and distributions as SVG."""

from dataclasses import dataclass
from xml.etree.ElementTree import Element

import numpy as np
from jaxtyping import Float
from matplotlib.ticker import MaxNLocator

from sgfn.reports.pages.entries import Curve, Group, Line, learning, number
from sgfn.reports.pages.markup import tag
from sgfn.reports.sources import Source

COLOURS, SHAPES, DASHES = 8, 4, 3
MARKS = ("M-4 0a4 4 0 1 0 8 0a4 4 0 1 0-8 0Z", "M-4-4h8v8h-8Z", "M0-5L5 4H-5Z", "M0-5.5L5.5 0L0 5.5L-5.5 0Z")
LEVELS = (("tv_floor", "best reachable"), ("tv_blind", "ignoring the noise"), ("tv_uniform", "uniform policy"))
BINS = 40
APART = 17.0
"""Labels of levels nearer than this share a line of text."""


@dataclass(frozen=True, kw_only=True)
class Frame:
    """Where the axes stand, and which values they span."""

    width: float
    height: float
    left: float
    right: float
    top: float
    bottom: float
    across: tuple[float, float]
    up: tuple[float, float]

    def x(self, value: float) -> float:
        """Place of a value from the left."""
        low, high = self.across
        return self.left + (value - low) / (high - low) * (self.width - self.left - self.right)

    def y(self, value: float) -> float:
        """Place of a value from the top."""
        low, high = self.up
        return self.height - self.bottom - (value - low) / (high - low) * (self.height - self.top - self.bottom)

    def path(self, x: Float[np.ndarray, " N"], y: Float[np.ndarray, " N"]) -> str:
        """Points joined by straight lines."""
        return "L".join(f"{self.x(a):.1f} {self.y(b):.1f}" for a, b in zip(x, y, strict=True))


def style(series: int) -> str:
    """Classes of a label: its own, its colour, and its dashes where colours have run out."""
    return f"s{series} c{series % COLOURS} d{series // COLOURS % DASHES}"


def mark(series: int, x: float = 0.0, y: float = 0.0) -> Element:
    """The label's sign, which tells it from others without colour."""
    return tag("path", d=MARKS[series % SHAPES], transform=f"translate({x:.1f} {y:.1f})", class_="mark")


def swatch(series: int) -> Element:
    """A piece of the label's line, for legends and tables."""
    line = tag("line", x1=0, x2=26, y1=7, y2=7, class_="curve")
    return tag(
        "svg", line, mark(series, 13.0, 7.0), width=26, height=14, class_=f"swatch {style(series)}", aria_hidden="true"
    )


# Learning curves


def watched(group: Group) -> list[str]:
    """What is drawn over time: the exact distance where it is known, and the reward where some label has none."""
    lines = [line for line in group.lines if line.sources]
    known = [any(number(row.get("tv")) is not None for s in line.sources for row in s.rows) for line in lines]
    return ["tv"] * any(known) + ["log_reward"] * (not all(known))


def curves(group: Group, column: str) -> Element | None:
    """All labels at one noise level over environment calls, with the levels that they are to be compared with."""
    drawn = [(line, curve) for line in group.lines if (curve := learning(line, column)) is not None]
    if not drawn:
        return None
    levels = _levels(group) if column == "tv" else []
    frame = _frame([curve for _, curve in drawn], [value for value, _ in levels], zero=column == "tv")
    label = "total variation to target" if column == "tv" else "mean log-reward of the batch"
    endings = "; ".join(f"{line.label} ends at {curve.middle[-1]:.3g}" for line, curve in drawn)
    said = f"{group.name}, {label} against environment calls: {endings}"
    parts = [axes(frame, "environment calls", label), _level_lines(frame, levels)]
    parts += [_series(frame, line, curve) for line, curve in drawn]
    box = f"0 0 {frame.width:g} {frame.height:g}"
    return tag("svg", parts, viewBox=box, role="img", aria_label=said, class_="chart")


def _frame(found: list[Curve], levels: list[float], zero: bool) -> Frame:
    low = min(float(curve.low.min()) for curve in found)
    high = max([float(curve.high.max()) for curve in found] + levels)
    low, room = (0.0, 0.1 * high) if zero else (low - 0.05 * (high - low), 0.05 * (high - low))
    high = max(high + room, low + 1e-3)
    across = (0.0, 1.03 * max(float(curve.x[-1]) for curve in found) or 1.0)
    left = 34 + 9.5 * max((len(text) for _, text in ticks(low, high)), default=3)
    return Frame(width=520.0, height=360.0, left=left, right=30.0, top=12.0, bottom=52.0, across=across, up=(low, high))


def _levels(group: Group) -> list[tuple[float, str]]:
    """Values worth a line, lowest first."""
    known = [(group.values(key), label) for key, label in LEVELS]
    return sorted((float(np.median(values)), label) for values, label in known if values)


def _level_lines(frame: Frame, levels: list[tuple[float, str]]) -> list[Element]:
    """Dashed lines; those near each other share one text. The uppermost has it at the right: curves start there."""
    lines, texts = [], []
    for value, label in levels:
        y = frame.y(value)
        lines.append(tag("line", x1=frame.left, x2=frame.width - frame.right, y1=y, y2=y, class_="level"))
        said = f"{label} {value:.3f}"
        if texts and texts[-1][0] - y < APART:
            texts[-1] = (y, f"{texts[-1][1]}, {said}")
        else:
            texts.append((y, said))
    drawn = []
    for y, said in texts:
        last = len(texts) > 1 and y == texts[-1][0]
        x, anchor = (frame.width - frame.right - 4, "end") if last else (frame.left + 8, "start")
        drawn.append(tag("text", said, x=x, y=y - 5, text_anchor=anchor, class_="halo"))
    return [*lines, *drawn]


def _series(frame: Frame, line: Line, curve: Curve) -> Element:
    parts = [tag("title", f"{line.label}: {curve.middle[-1]:.4g} after {curve.x[-1]:,.0f} calls, seeds: {curve.count}")]
    if curve.count > 1 and len(curve.x) > 1:
        there, back = frame.path(curve.x, curve.high), frame.path(curve.x[::-1], curve.low[::-1])
        parts.append(tag("path", d=f"M{there}L{back}Z", class_="band"))
    parts.append(tag("path", d=f"M{frame.path(curve.x, curve.middle)}", class_="curve"))
    parts.append(mark(line.series, frame.x(float(curve.x[-1])), frame.y(float(curve.middle[-1]))))
    return tag("g", parts, class_=style(line.series), data_label=line.label)


def axes(frame: Frame, x_label: str, y_label: str) -> list[Element]:
    """Ticks with numbers, thin lines across, and names."""
    base, end = frame.height - frame.bottom, frame.width - frame.right
    drawn = []
    for value, text in ticks(*frame.up):
        y = frame.y(value)
        drawn.append(tag("line", x1=frame.left, x2=end, y1=y, y2=y, class_="rule"))
        drawn.append(tag("text", text, x=frame.left - 8, y=y + 4, text_anchor="end"))
    for value, text in ticks(*frame.across, most=4):
        x = frame.x(value)
        drawn.append(tag("line", x1=x, x2=x, y1=base, y2=base + 5, class_="axis"))
        drawn.append(tag("text", text, x=x, y=base + 21, text_anchor="middle"))
    drawn.append(tag("line", x1=frame.left, x2=end, y1=base, y2=base, class_="axis"))
    middle = (frame.top + base) / 2
    turned = f"rotate(-90 16 {middle:.1f})"
    return [
        *drawn,
        tag("text", x_label, x=(frame.left + end) / 2, y=frame.height - 8, text_anchor="middle", class_="name"),
        tag("text", y_label, x=16.0, y=middle, text_anchor="middle", transform=turned, class_="name"),
    ]


def ticks(low: float, high: float, most: int = 5) -> list[tuple[float, str]]:
    """Round numbers between two ends, with as many decimals as their distance asks for.

    >>> [text for _, text in ticks(0.0, 20000.0)]
    ['0', '5,000', '10,000', '15,000', '20,000']
    """
    places = MaxNLocator(most, steps=[1, 2, 2.5, 5, 10]).tick_values(low, high)
    places = [float(p) for p in places if low - 1e-9 <= p <= high + 1e-9]
    if len(places) < 2:
        return [(p, plain(p)) for p in places]
    step = places[1] - places[0]
    decimals = next((d for d in range(12) if abs(round(step, d) - step) < 1e-6 * step), 12)
    return [(p, plain(p, decimals)) for p in places]


def plain(value: float, decimals: int = 2) -> str:
    """A number with a proper minus sign."""
    text = f"{value:,.{decimals}f}"
    return text.replace("-", "\N{MINUS SIGN}") if float(text.replace(",", "")) else text.removeprefix("-")


# Distributions of scores


def shares_of(source: Source) -> dict[str, list[float]]:
    """Edges of bins, and shares of scores between them: target, law and samples, as far as they are known."""
    return source.results.get("histogram") or {}


def distribution(line: Line, edges: Float[np.ndarray, " N"]) -> dict[str, Float[np.ndarray, " M"]]:
    """Shares of scores between shared edges, means over seeds."""
    found: dict[str, list[Float[np.ndarray, " M"]]] = {}
    for shares in map(shares_of, line.evaluated):
        for name in shares.keys() & {"target", "law", "samples"}:
            total = np.concatenate([[0.0], np.cumsum(shares[name])])
            found.setdefault(name, []).append(np.diff(np.interp(edges, shares["edges"], total)))
    return {name: np.mean(rows, axis=0) for name, rows in found.items()}


def shared_edges(group: Group) -> Float[np.ndarray, " N"] | None:
    """Edges of bins that span the scores of every run."""
    known = [edges for line in group.lines for s in line.evaluated if (edges := shares_of(s).get("edges"))]
    return np.linspace(min(e[0] for e in known), max(e[-1] for e in known), BINS + 1) if known else None


def histograms(group: Group) -> list[tuple[Line, Element]]:
    """One small picture per label, all on the same axes."""
    edges = shared_edges(group)
    if edges is None:
        return []
    known = [(line, shares) for line in group.lines if (shares := distribution(line, edges))]
    high = 1.05 * max(float(share.max()) for _, shares in known for share in shares.values())
    return [(line, _histogram(line, shares, edges, high)) for line, shares in known]


def share_key(name: str) -> Element:
    """What a distribution looks like, for the legend."""
    area = "M0 14V5H26V14" if name == "law" else "M0 14V5H26V14Z"
    return tag(
        "svg", tag("path", d=area, class_=f"{name}-share"), width=26, height=14, class_="swatch c0", aria_hidden="true"
    )


def _histogram(
    line: Line, shares: dict[str, Float[np.ndarray, " M"]], edges: Float[np.ndarray, " N"], high: float
) -> Element:
    across = (float(edges[0]), float(edges[-1]))
    frame = Frame(width=300.0, height=196.0, left=60.0, right=16.0, top=8.0, bottom=46.0, across=across, up=(0.0, high))
    middles = (edges[1:] + edges[:-1]) / 2
    means = {name: float((share * middles).sum() / max(share.sum(), 1e-12)) for name, share in shares.items()}
    said = f"Scores of {line.label}: " + ", ".join(f"mean of {name} {mean:.3f}" for name, mean in means.items())
    parts = [tag("title", said), axes(frame, "score", "share")]
    parts += [
        tag("path", d=_stairs(frame, edges, shares[name], closed=name != "law"), class_=f"{name}-share")
        for name in ("target", "samples", "law")
        if name in shares
    ]
    box = f"0 0 {frame.width:g} {frame.height:g}"
    return tag("svg", parts, viewBox=box, role="img", aria_label=said, class_=f"small {style(line.series)}")


def _stairs(frame: Frame, edges: Float[np.ndarray, " N"], share: Float[np.ndarray, " M"], closed: bool) -> str:
    x, y = np.repeat(edges, 2)[1:-1], np.repeat(share, 2)
    if not closed:
        return f"M{frame.path(x, y)}"
    ends = np.array([0.0])
    return f"M{frame.path(np.r_[x[:1], x, x[-1:]], np.r_[ends, y, ends])}Z"
