"""Templates filled in: every value is escaped, and the page may fetch nothing and run no script but its own."""

import base64
import hashlib
import re
from functools import cache
from importlib.resources import files

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from sgfn.config import VERSION
from sgfn.reports.pages.svg import page_colour

CONTROLS = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ufffe\uffff]")
"""Signs that HTML does not allow."""


@cache
def environment() -> Environment:
    """The templates of this package; escaping is on for all of them, and an unknown name is an error."""
    loader = PackageLoader("sgfn.reports.pages", "templates")
    made = Environment(
        loader=loader,
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    made.filters["page_colour"] = page_colour
    return made


def render(template: str, **values: object) -> str:
    """A template filled in, as text that UTF-8 can hold; signs that no page may hold become replacement signs."""
    style, script = asset("page.css"), asset("page.js")
    shared = {"style": style, "script": script, "policy": content_policy(style, script), "version": VERSION}
    text = environment().get_template(template).render(shared | values)
    text = text.encode("utf-8", "replace").decode("utf-8")  # a file's name may hold half a sign
    return CONTROLS.sub("\N{REPLACEMENT CHARACTER}", text)


@cache
def asset(name: str) -> Markup:
    """A style sheet or script of this package, to be inserted as it is."""
    return Markup(files("sgfn.reports.pages").joinpath(name).read_text(encoding="utf-8"))


def content_policy(style: str, script: str) -> str:
    """Content security policy under which nothing is fetched and no other style or script is heeded."""
    parts = ["default-src 'none'", f"style-src '{_digest(style)}'", f"script-src '{_digest(script)}'", "img-src data:"]
    return "; ".join([*parts, "base-uri 'none'", "form-action 'none'"])


def _digest(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
