"""Sections about what comes out: logos of the best designs, modes, and sequences to order."""

from dataclasses import dataclass

from sgfn.reports.looks import Look
from sgfn.reports.numbers import percent, score_text
from sgfn.reports.pages.entries import Group, Line
from sgfn.reports.pages.logo import ColouredLetters, Glyph, Logo, alphabet_of, axis_end, coloured, glyphs, heights, logo
from sgfn.reports.pages.parts import Section, heading
from sgfn.reports.pages.table import repeated
from sgfn.reports.sources import number

DESIGNS, MODES, ORDERS, UNFOLDED = 100, 24, 10, 2
"""Most designs of a logo, modes of a row, orders of a group; lists of modes that are open at first."""


def _alphabet(line: Line) -> str | None:
    return next((letters for source in line.evaluated if (letters := alphabet_of(source))), None)


# Logos


@dataclass(frozen=True, kw_only=True)
class CaptionedLogo:
    """A logo, its label, and the number of designs that it is made of."""

    label: str
    designs: int
    title: str
    logo: Logo


@dataclass(frozen=True, kw_only=True)
class LogoGroup:
    """Logos of one noise level, under a heading unless it is empty."""

    heading: str
    logos: list[CaptionedLogo]


@dataclass(frozen=True, kw_only=True)
class Logos:
    """All logos, and the outlines that they share."""

    glyphs: list[Glyph]
    groups: list[LogoGroup]


def logo_section(groups: list[Group]) -> Section | None:
    """Sequence logos of the best designs of each label; None where no objects are sequences."""
    found = [(group, logos) for group in groups if (logos := _logos(group))]
    if not found:
        return None
    used = {letters for group in groups for line in group.lines if (letters := _alphabet(line))}
    named = [LogoGroup(heading=heading(group, groups), logos=logos) for group, logos in found]
    about = (
        f"Letters at each position of the best distinct designs among all samples, at most {DESIGNS}. A column is as "
        "tall as the information it carries: log2 of the number of letters, less the entropy, in bits (at most 2 for "
        "DNA; mind where the axis ends). It is highest where a letter never varies, and nothing where all are equally "
        "frequent. Shorter sequences are aligned left, and a position that some of them lack is lowered accordingly. "
        "Not corrected for small samples."
    )
    content = Logos(glyphs=glyphs(used), groups=named)
    return Section(key="logos", title="Top designs", about=about, template="logos", content=content)


def _logos(group: Group) -> list[CaptionedLogo]:
    """Logos of a group, all with one axis, as their heights are there to be compared."""
    texts = {line.label: [found.text for found in line.pooled("designs", DESIGNS)] for line in group.lines}
    drawn = [(line, letters) for line in group.lines if texts[line.label] and (letters := _alphabet(line))]
    bits = {line.label: heights(texts[line.label], letters) for line, letters in drawn}
    logos = []
    for line, letters in drawn:
        title = f"Sequence logo of {line.label}, {group.name}"
        made = logo(bits[line.label], letters, axis_end(list(bits.values()), letters), title)
        logos.append(CaptionedLogo(label=line.label, designs=len(texts[line.label]), title=title, logo=made))
    return logos


# Modes


@dataclass(frozen=True, kw_only=True)
class Mode:
    """A good object that lies apart from others, its score, and which seeds found it (empty where there is one)."""

    letters: list[ColouredLetters]
    score: str
    seeds: str


@dataclass(frozen=True, kw_only=True)
class ModeList:
    """The modes of one label at one noise level, and the rule by which objects count as such."""

    name: str
    look: Look
    rule: str
    unfolded: bool
    modes: list[Mode]


def mode_section(groups: list[Group]) -> Section | None:
    """Modes of each row of the table; None where there are none."""
    rows = [(line, group) for group in groups for line in group.lines if line.pooled("modes", 1)]
    if not rows:
        return None
    about = (
        f"Good samples that lie apart from each other, at most {MODES} of each row of the table, best first."
        + " Seeds are searched one by one and then put together, so modes of different seeds may be neighbours."
        * repeated(groups)
    )
    content = [_mode_list(line, group, groups, at < UNFOLDED) for at, (line, group) in enumerate(rows)]
    return Section(key="modes", title="Modes", about=about, template="modes", content=content)


def _mode_list(line: Line, group: Group, groups: list[Group], unfolded: bool) -> ModeList:
    letters, seeds = _alphabet(line), len(line.evaluated)
    modes = [
        Mode(
            letters=coloured(one.text, letters),
            score=score_text(one.score),
            seeds=f"{one.seeds} of {seeds} seeds" if seeds > 1 else "",
        )
        for one in line.pooled("modes", MODES)
    ]
    name = f"{line.label}, {group.name}" if len(groups) > 1 else line.label
    rule = str(line.evaluated[0].results.get("modes_greedy_rule", "")).replace(">=", "\N{GREATER-THAN OR EQUAL TO}")
    rule = rule.replace("<=", "\N{LESS-THAN OR EQUAL TO}")
    return ModeList(name=name, look=line.look, rule=rule, unfolded=unfolded, modes=modes)


# Orders


@dataclass(frozen=True, kw_only=True)
class Order:
    """A sequence to order, what to expect of it, and which labels proposed it."""

    letters: list[ColouredLetters]
    expected: str
    intact: str
    score: str
    proposed_by: str


@dataclass(frozen=True, kw_only=True)
class OrderTable:
    """The best orders at one noise level."""

    heading: str
    group: str
    orders: list[Order]


def order_section(groups: list[Group]) -> Section | None:
    """What to order at each noise level; None where no run proposes anything."""
    tables = [
        OrderTable(heading=heading(group, groups), group=group.name, orders=orders)
        for group in groups
        if (orders := _orders(group))
    ]
    if not tables:
        return None
    about = (
        "New sequences, best first: of all where they can be ranked exactly, else of those that the trained policies "
        "made or intended. Expect: mean score of what comes out under the noise when the whole sequence is ordered."
    )
    return Section(key="orders", title="What to order", about=about, template="orders", content=tables)


def _orders(group: Group) -> list[Order]:
    """The best orders of all methods: what to expect depends on the noise, not on who proposes it."""
    found: dict[str, dict[str, float]] = {}
    makers: dict[str, dict[str, None]] = {}
    alphabet = next(filter(None, map(_alphabet, group.lines)), None)
    for line in group.lines:
        for source in line.evaluated:
            for order in source.results.get("orders") or []:
                found.setdefault(order["order"], order)
                makers.setdefault(order["order"], {})[line.label] = None
    sign = min((source.sign for line in group.lines for source in line.evaluated), default=1.0)
    ranked = sorted(found.values(), key=lambda one: (-sign * (number(one["expected"]) or 0.0), str(one["order"])))
    return [
        Order(
            letters=coloured(str(order["order"]), alphabet),
            expected=score_text(number(order["expected"])),
            intact=percent(number(order["intact"])),
            score=score_text(number(order["score"])),
            proposed_by=", ".join(makers[str(order["order"])]),
        )
        for order in ranked[:ORDERS]
    ]
