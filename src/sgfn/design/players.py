"""Methods of a simulated design by name, with their labels and styles; `module:name` is one of your own."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from sgfn.config.registry import DASHED, DOTTED, Entry, Registry, Style, refuse_arguments

Maker = Callable[..., Any]
"""From the space of orders (`space`), the kind of proxy (`proxy`) and other settings to a player."""


@dataclass(frozen=True, kw_only=True)
class MethodEntry(Entry):
    """A way to fill plates."""

    make: Maker | str
    """From (space, proxy) to a player; ours as `module:name`."""
    options: tuple[tuple[str, Any], ...] = ()
    """Further arguments of the maker."""


def wrap(name: str, found: Any) -> MethodEntry:
    """The entry of a maker that is not ours."""
    wanted = "a function (space, proxy) -> player with propose(history, count, seed)"
    return MethodEntry(name=name, make=refuse_arguments("method", name, found, wanted, "space", "proxy"))


def _ours(name: str, about: str, colour: str, **options: Any) -> MethodEntry:
    line = DASHED if options.get("aware") is False else DOTTED if options.get("kind") else "-"
    return MethodEntry(
        name=name,
        about=about,
        style=Style(colour=colour, line=line),
        make="sgfn.design.playing:designer",
        options=tuple(options.items()),
    )


def _rival(name: str, about: str, colour: str) -> MethodEntry:
    return MethodEntry(
        name=name,
        about=about,
        style=Style(colour=colour),
        make="sgfn.design.playing:rival",
        options=(("search", name),),
    )


METHODS: Registry[MethodEntry] = Registry(
    "method",
    wrap,
    _ours("default", "this package by default: an ensemble", "#b66411", kind="design"),
    _ours("cross-validated", "default on the proxy by cross-validation", "#7a3fa0", kind="auto"),
    _ours("pooled-mixed", "mixed on the proxy by cross-validation", "#7a3fa0", kind="auto", acquisition="mixed"),
    _ours("mixed", "this package: half of the wells each by thompson and ucb", "#7a3fa0", acquisition="mixed"),
    _ours("default-search", "default by search", "#540477", kind="design", largest_exact=0),
    _ours("default-flow", "default with a flow network in its search", "#c0392b", kind="design", sampler="on"),
    _ours("thompson", "this package: a draw of the proxy for each well", "#224eb1", acquisition="thompson"),
    _ours("members", "this package: the proxy's members in turn", "#2f9ed2", acquisition="members"),
    _ours("ucb", "this package: mean plus standard deviation", "#b66411", acquisition="ucb"),
    _ours("greedy", "this package: the mean alone", "#3c8b6b", acquisition="greedy"),
    _ours("thompson-unaware", "thompson that ignores the noise", "#224eb1", acquisition="thompson", aware=False),
    _ours("members-unaware", "members that ignore the noise", "#2f9ed2", acquisition="members", aware=False),
    _ours("greedy-unaware", "greedy that ignores the noise", "#3c8b6b", acquisition="greedy", aware=False),
    _ours("thompson-search", "thompson by search", "#540477", acquisition="thompson", largest_exact=0),
    _rival("adalead", "AdaLead, described anew, on the same kind of proxy", "#992b6f"),
    _rival("genetic", "a genetic algorithm on the same kind of proxy", "#6b520a"),
    _rival("cma-es", "sep-CMA-ES on the same kind of proxy", "#6a0108"),
    MethodEntry(
        name="evolution",
        about="a genetic algorithm on the measurements, without a proxy",
        style=Style(colour="#6b520a", line=DASHED),
        make="sgfn.design.playing:evolution_player",
    ),
    MethodEntry(
        name="random",
        about="random sequences",
        style=Style(colour="#566370"),
        make="sgfn.design.playing:random_player",
    ),
)
