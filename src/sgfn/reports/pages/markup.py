"""HTML and SVG as trees: what is put in as text comes out as text, whatever signs it holds."""

import re
from collections.abc import Iterable
from xml.etree.ElementTree import Element, tostring

CONTROLS = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ufffe\uffff]")


def tag(kind: str, /, *children: object, **attributes: object) -> Element:
    """An element with its children (lists are unfolded, None is left out) and attributes (class_, aria_label, viewBox).

    >>> serialise(tag("p", "a < b ", tag("b", "!"), None, class_="x", aria_label='"', hidden=None))
    '<p class="x" aria-label="&quot;">a &lt; b <b>!</b></p>'
    """
    element = Element(kind)
    for key, value in attributes.items():
        if value is not None:
            element.set(key.rstrip("_").replace("_", "-"), _text(value))
    _extend(element, children)
    return element


def serialise(root: Element) -> str:
    """The text of a tree; style and script elements are taken as they are."""
    return tostring(root, encoding="unicode", method="html")


def _extend(element: Element, children: Iterable[object]) -> None:
    for child in children:
        if isinstance(child, Element):
            element.append(child)
        elif isinstance(child, list):
            _extend(element, child)
        elif child is not None:
            _append_text(element, _text(child))


def _append_text(element: Element, text: str) -> None:
    if len(element):
        element[-1].tail = (element[-1].tail or "") + text
    else:
        element.text = (element.text or "") + text


def _text(value: object) -> str:
    """Numbers to a hundredth, which is finer than a pixel; signs that no page may hold become a replacement."""
    if isinstance(value, float):
        return f"{value:.2f}".rstrip("0").rstrip(".")
    text = str(value).encode("utf-8", "replace").decode("utf-8")  # a file's name may hold half a sign
    return CONTROLS.sub("\N{REPLACEMENT CHARACTER}", text)
