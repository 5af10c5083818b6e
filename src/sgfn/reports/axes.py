"""What every figure is built with: empty figures, framed axes, labels, legends, and files of pictures."""

import io
import math
import textwrap
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import matplotlib as mpl
from matplotlib import ticker
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.gridspec import SubplotSpec
from matplotlib.layout_engine import ConstrainedLayoutEngine

from sgfn.config.files import replacing
from sgfn.reports.looks import AXIS, INK, MUTED, PICTURES, RULE, WHITE
from sgfn.runs.table_files import kind_of

NICE = [1, 2, 2.5, 5, 10]
"""Distances between ticks, up to a power of ten."""
MOST_OF_A_PANEL = 0.7
"""The largest share of a panel's height that a legend is given."""


def new_figure(width: float, height: float) -> Figure:
    """An empty figure of this size in inches; places of axes and legends are found when it is laid out."""
    layout = ConstrainedLayoutEngine(w_pad=0.08, h_pad=0.08)
    figure = Figure(figsize=(width, height), dpi=130, layout=layout, facecolor=WHITE)
    FigureCanvasAgg(figure)
    return figure


def save(figure: Figure, path: Path) -> Path:
    """Write a figure as PNG, PDF or SVG, by the ending of the name, whole or not at all."""
    kind = kind_of(path, PICTURES, "pictures")
    undated = {".png": {}, ".pdf": {"CreationDate": None}, ".svg": {"Date": None}}
    drawn = io.BytesIO()  # a full disk is told by us, not by whatever a drawing library makes of it
    fix_places(figure)
    with any_sign():
        figure.savefig(drawn, dpi="figure", format=kind[1:], metadata=undated[kind])
    with replacing(path) as aside:
        aside.write_bytes(drawn.getbuffer())
    return path


@contextmanager
def any_sign() -> Iterator[None]:
    """Signs that the font lacks are drawn as boxes without a word: users name series and folders as they like."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Glyph .* missing from font", UserWarning)
        yield


def add_panel(
    figure: Figure, cell: SubplotSpec | None = None, *, above: Axes | None = None, level_with: Axes | None = None
) -> Axes:
    """Axes with two spines and horizontal grid lines; horizontal axis of those `above`, vertical of `level_with`."""
    where = () if cell is None else (cell,)
    axes = figure.add_subplot(*where, sharex=above, sharey=level_with)
    axes.spines[["top", "right"]].set_visible(False)
    axes.spines[["left", "bottom"]].set_color(AXIS)
    axes.tick_params(color=AXIS, labelcolor=INK, labelsize=9)
    axes.grid(axis="y", color=RULE, linewidth=0.8)
    axes.set_axisbelow(True)
    if above is not None:
        above.tick_params(labelbottom=False)
    return axes


def name_axes(axes: Axes, x: str, y: str) -> None:
    """Write the names of both axes."""
    axes.set_xlabel(x, color=INK, fontsize=10)
    axes.set_ylabel(y, color=INK, fontsize=10)


def write_title(axes: Axes, title: str) -> None:
    """Write a title at the left, wrapped, with dollar signs taken as text: folders and series are named by users."""
    axes.set_title(textwrap.fill(title, 48), loc="left", fontsize=11, color=INK, parse_math=False)


def write_note(axes: Axes, text: str) -> None:
    """Write a remark into the middle of empty axes."""
    axes.text(0.5, 0.5, text, ha="center", va="center", transform=axes.transAxes, color=MUTED, fontsize=10)


def count_axis(axes: Axes, last: float) -> None:
    """Horizontal axis of whole numbers from 0 to a little more than `last`, thousands written as k."""
    axes.set_xlim(0, 1.03 * max(last, 1))
    axes.xaxis.set_major_locator(ticker.MaxNLocator(5, integer=True, steps=NICE))
    axes.xaxis.set_major_formatter(ticker.EngFormatter(sep=""))


def plain_values(axes: Axes) -> None:
    """Write the values at the vertical axis with commas between thousands."""
    axes.yaxis.set_major_formatter(lambda value, _: f"{value:,.10g}".replace("-", "\N{MINUS SIGN}"))


def log_scale(axes: Axes, low: float, high: float) -> None:
    """Logarithmic vertical axis with plain numbers at its ticks, however few decades it spans."""
    axes.set_yscale("log")
    axes.set_ylim(low, high)
    decades = math.log10(high / low)
    subs = (1.0, 2.0, 5.0) if decades < 3 else (1.0,)
    axes.yaxis.set_major_locator(ticker.MaxNLocator(6, steps=NICE) if decades < 1 else ticker.LogLocator(subs=subs))
    axes.yaxis.set_major_formatter(ticker.StrMethodFormatter("{x:g}"))
    axes.yaxis.set_minor_locator(ticker.NullLocator())


def add_legend(axes: Axes, columns: int = 1) -> None:
    """Add a legend at the upper left, and keep ticks out of the room that `lay_out` will make for it."""
    low, high = axes.get_ylim()
    axes.set_yticks([tick for tick in axes.get_yticks() if low <= tick <= high])
    axes.set_ylim(low, high)
    options = {"frameon": False, "fontsize": 9, "labelcolor": INK, "borderaxespad": 0.1}
    axes.legend(loc="upper left", ncols=columns, columnspacing=0.5, handlelength=1.7, handletextpad=0.6, **options)


def fix_places(figure: Figure) -> None:
    """Find the places of all panels, once: a figure that keeps its engine, even "none", is drawn twice to be saved."""
    engine = figure.get_layout_engine()
    if engine is not None:
        with any_sign(), mpl.rc_context({"figure.autolayout": False, "figure.constrained_layout.use": False}):
            engine.execute(figure)
            figure.set_layout_engine(None)


def lay_out(figure: Figure) -> Figure:
    """Fix the places of all panels, then raise the upper end of each by the height of its legend."""
    fix_places(figure)
    for axes in figure.axes:
        if legend := axes.get_legend():
            share = legend.get_window_extent().height / axes.bbox.height + 0.02
            scale = axes.yaxis.get_transform()
            low, high = scale.transform(axes.get_ylim())
            raised = scale.inverted().transform([low + (high - low) / (1 - min(share, MOST_OF_A_PANEL))])
            axes.set_ylim(top=float(raised[0]))
    return figure


def ending(value: float) -> str:
    """An arrow and the value where a curve ends, to three digits.

    >>> ending(-0.25)
    '\N{RIGHTWARDS ARROW} \N{MINUS SIGN}0.250'
    """
    return f"\N{RIGHTWARDS ARROW} {value:#.3g}".replace("-", "\N{MINUS SIGN}")
