"""Colours and lines that all figures share, as files and on pages; needs no drawing library."""

from typing import NamedTuple

INK, MUTED, AXIS, RULE, GREY, WHITE = "#1f2933", "#566370", "#8b97a3", "#e3e7eb", "#d3d9de", "#ffffff"
"""Text and observed values, levels to compare with, axes and the past, grid lines, the target's area, and paper."""
PALETTE = ("#224eb1", "#b66411", "#3c8b6b", "#992b6f", "#2f9ed2", "#6b520a", "#540477", "#6a0108")
"""Colours of methods: apart for every kind of colour vision, and 3:1 or more against white."""
OURS, TARGET, FLOOR = PALETTE[:3]
LineStyle = str | tuple[float, tuple[float, ...]]
SOLID: LineStyle = "-"
DASHED: LineStyle = (0, (5, 2))
DOTTED: LineStyle = (0, (1.5, 1.5))
DASH_DOTTED: LineStyle = (0, (5, 2, 1.5, 2))
MARKERS = ("o", "s", "^", "D")
PICTURES = (".png", ".pdf", ".svg")
"""Formats of files that a figure is written to."""


class Look(NamedTuple):
    """How the line of one method is drawn."""

    colour: str
    line: LineStyle

    @property
    def marker(self) -> str:
        """Matplotlib's marker at the line's end, which tells neighbouring colours apart without colour."""
        return MARKERS[PALETTE.index(self.colour) % len(MARKERS)] if self.colour in PALETTE else MARKERS[-1]

    @property
    def dashes(self) -> str:
        """The line as an SVG `stroke-dasharray` for a width of 2; empty where it is solid."""
        return "" if isinstance(self.line, str) else " ".join(f"{2 * length:g}" for length in self.line[1])


def look_of(number: int) -> Look:
    """Look of the method with this number: a colour each, and other dashes once all colours are taken."""
    lines = (SOLID, DASHED, DOTTED)
    return Look(PALETTE[number % len(PALETTE)], lines[number // len(PALETTE) % len(lines)])
