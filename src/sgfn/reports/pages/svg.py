"""Matplotlib figures as SVG inside a page: its colours by day and by night, its font, no styles or ids of their own."""

import io
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any
from xml.etree.ElementTree import Element, SubElement, fromstring, tostring

import matplotlib as mpl
from markupsafe import Markup
from matplotlib.figure import Figure

from sgfn.reports.axes import any_sign, lay_out
from sgfn.reports.looks import AXIS, GREY, INK, MUTED, PALETTE, RULE, WHITE

OPTIONS: dict[Any, str] = {
    "svg.fonttype": "none",
    "svg.hashsalt": "sgfn",
}  # text stays text, and the same figure has the same ids
VARIABLES = {INK: "ink", MUTED: "muted", AXIS: "axis", RULE: "rule", GREY: "grey", WHITE: "page", "#000000": "ink"}
VARIABLES |= {colour: f"c{number}" for number, colour in enumerate(PALETTE)}
"""Names of page.css's variables, by the colour that they have on a light page."""
LEFT_OUT = {"metadata", "style"}
DECIMALS = re.compile(r"-?\d+\.\d+")
REFERENCE = re.compile(r"(?<=url\(#)[^)]+")
SERIES = re.compile(r"series-\d+")
"""Ids that become classes, so that a script can hide a method in all figures."""


def page_colour(colour: str) -> str:
    """The page's variable for a colour, which is another one in the dark; unknown colours and other values as they are.

    >>> page_colour("#1F2933"), page_colour("#123456")
    ('var(--ink)', '#123456')
    """
    return f"var(--{VARIABLES[colour.lower()]})" if colour.lower() in VARIABLES else colour


@dataclass(frozen=True, kw_only=True)
class Drawing:
    """The inside of an SVG element, its size in points, and one sentence for those who cannot see it."""

    said: str
    width: float
    height: float
    body: Markup


def drawing(figure: Figure, *, key: str, said: str, titles: Mapping[str, str] | None = None) -> Drawing:
    """A laid-out figure for a page; `key` sets its ids apart from those of other figures on the page.

    Artists whose gid is in `titles` get that text as a tooltip. Styles become attributes, which the page's content
    security policy lets through, and known colours become the page's variables, which follow its theme.
    """
    root = fromstring(_svg(lay_out(figure)))
    width, height = (float(size) for size in root.attrib["viewBox"].split()[2:])
    made = _Conversion(key, root, titles or {}).children(root)
    body = "".join(tostring(part, encoding="unicode", method="html") for part in made)
    return Drawing(said=said, width=width, height=height, body=Markup(body))  # matplotlib and ElementTree escaped it


def _svg(figure: Figure) -> str:
    buffer = io.StringIO()
    with mpl.rc_context(OPTIONS), any_sign():
        figure.savefig(buffer, format="svg", transparent=True, metadata={"Date": None, "Creator": None})
    return buffer.getvalue()


class _Conversion:
    """Rebuilds the elements of one figure for the page."""

    def __init__(self, key: str, root: Element, titles: Mapping[str, str]) -> None:
        attributes = [(_local(name), value) for node in root.iter() for name, value in node.attrib.items()]
        self.referenced = {value.removeprefix("#") for name, value in attributes if name == "href"}
        self.referenced |= {found for _, value in attributes for found in REFERENCE.findall(value)}
        self.key, self.titles = key, titles

    def children(self, node: Element) -> Iterator[Element]:
        """The converted children, without those that show nothing."""
        for child in node:
            if _local(child.tag) not in LEFT_OUT and (made := self.element(child)) is not None:
                yield made

    def element(self, node: Element) -> Element | None:
        """One element with its children; None for an empty group and for a shape with neither line nor area."""
        made = Element(_local(node.tag), self.attributes(node))
        if title := self.titles.get(node.attrib.get("id", "")):
            SubElement(made, "title").text = title
        made.extend(self.children(node))
        if made.tag == "text":
            made.text = (node.text or "").strip() or None
            made.attrib.setdefault("fill", "var(--ink)")
        elif made.tag == "tspan":
            made.text = node.text
        unseen = made.tag == "path" and made.get("fill") == "none" and "stroke" not in made.attrib
        return None if unseen or (made.tag in ("g", "defs") and not len(made)) else made

    def attributes(self, node: Element) -> dict[str, str]:
        """Attributes and styles in one, numbers to a hundredth of a point."""
        found: dict[str, str] = {}
        for name, value in (*node.attrib.items(), *_styles(node)):
            local = _local(name)
            if local == "id":
                found |= self.identity(value)
            elif local == "transform" and value.startswith("rotate(-0 "):
                continue
            elif local != "style" and not (local == "font-family" and _local(node.tag) == "text"):
                found[local] = f"#{self.key}-{value[1:]}" if local == "href" else self.value(value)
        return found

    def identity(self, name: str) -> dict[str, str]:
        """A new id for what is referred to, a class for a method's curve, nothing for the rest."""
        if name in self.referenced:
            return {"id": f"{self.key}-{name}"}
        return {"class": name} if SERIES.fullmatch(name) else {}

    def value(self, text: str) -> str:
        """An attribute's value: the page's colour, a reference within this figure, or short numbers."""
        if text.startswith("#"):
            return page_colour(text)
        if REFERENCE.search(text):
            return REFERENCE.sub(lambda found: f"{self.key}-{found[0]}", text)
        return " ".join(DECIMALS.sub(_short, text).split())


def _styles(node: Element) -> Iterator[tuple[str, str]]:
    """Name and value of each part of a style attribute."""
    for part in filter(None, node.attrib.get("style", "").split(";")):
        name, _, value = part.partition(":")
        yield name.strip(), value.strip()


def _local(name: str) -> str:
    return name.rpartition("}")[2]


def _short(found: re.Match[str]) -> str:
    return f"{float(found[0]):.2f}".rstrip("0").rstrip(".")
