"""Parts that all pages share: sections, and drawings with captions."""

from dataclasses import dataclass

from sgfn.reports.pages.entries import Group
from sgfn.reports.pages.svg import Drawing


@dataclass(frozen=True, kw_only=True)
class Section:
    """A part of the page with a name in the list of contents."""

    key: str
    """Its id on the page."""
    title: str
    about: str
    """A plain explanation below the title."""
    template: str
    """Name of the template, without its ending, that writes the content."""
    content: object


@dataclass(frozen=True, kw_only=True)
class CaptionedDrawing:
    """A drawing with a line of text above it."""

    caption: str
    drawing: Drawing


@dataclass(frozen=True, kw_only=True)
class DrawingGroup:
    """Drawings side by side or below each other, under a heading unless it is empty."""

    heading: str
    layout: str
    """Class of the element around them in page.css: pair, many, few, fans."""
    size: str
    """Class of each drawing in page.css: medium, small, wide, square."""
    figures: list[CaptionedDrawing]


def heading(group: Group, groups: list[Group]) -> str:
    """Name of a group where there are several, else nothing."""
    return group.name if len(groups) > 1 else ""
