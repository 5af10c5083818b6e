"""Parts of the page below the table: curves, scores, logos, modes, orders, runs."""

from dataclasses import dataclass
from xml.etree.ElementTree import Element

from sgfn.evaluation.seeds import rule
from sgfn.reports.pages.charts import curves, histograms, plain, share_key, shares_of, swatch, watched
from sgfn.reports.pages.entries import Entry, Group, Line, number
from sgfn.reports.pages.logo import alphabet_of, axis_end, coloured, glyphs, heights, logo
from sgfn.reports.pages.markup import tag
from sgfn.reports.pages.table import DASH, legend, repeated, score_text, summary_table

DESIGNS, MODES, ORDERS, UNFOLDED = 100, 24, 10, 2


@dataclass(frozen=True, kw_only=True)
class Section:
    """A part of the page with a name in the list of contents."""

    key: str
    title: str
    about: str
    parts: list[Element]

    def draw(self) -> Element:
        """Heading, a plain explanation, content."""
        return tag("section", tag("h2", self.title), tag("p", self.about, class_="about"), self.parts, id=self.key)


def sections(groups: list[Group], entries: list[Entry]) -> list[Section]:
    """All parts that have something to show."""
    found = [_summary(groups), _failures(entries), _learning(groups), _scores(groups), _logos(groups)]
    found += [_modes(groups), _orders(groups), _runs(groups)]
    return [section for section in found if section.parts]


def box(content: Element, name: str) -> Element:
    """Something wide, which scrolls in a box of its own; keys reach it."""
    return tag("div", content, class_="scroll", tabindex=0, role="region", aria_label=name)


def _summary(groups: list[Group]) -> Section:
    ends = rule(len(line.evaluated) for group in groups for line in group.lines)
    about = f"Medians over seeds; in small type beneath them: {ends}. " if ends else ""
    about += "Columns are explained below the table. "
    if any(len(group.lines) > 1 for group in groups):
        about += "The best value of each group is marked; press a column\N{RIGHT SINGLE QUOTATION MARK}s name to sort."
    parts = [box(summary_table(groups), "Summary table"), legend(groups)]
    return Section(key="summary", title="Summary", about=about, parts=parts)


def _failures(entries: list[Entry]) -> Section:
    lines = [
        tag("li", tag("strong", f"{e.label}, {e.noise}, seed {e.seed}"), ": ", tag("span", e.error))
        for e in entries
        if e.error
    ]
    parts = [tag("ul", lines, class_="failures")] if lines else []
    return Section(key="failed", title="Failed runs", about="Left out of all medians.", parts=parts)


def _learning(groups: list[Group]) -> Section:
    drawn = [(group, curves(group, column)) for group in groups for column in watched(group)]
    figures = [tag("figure", tag("figcaption", group.name), svg) for group, svg in drawn if svg is not None]
    distance = (
        "Total variation between the exact law of what comes out and the target, over trajectories drawn from the "
        "environment: lower is better. Best reachable is the law nearest to the target that the noise allows a policy."
    )
    sources = [source for group in groups for line in group.lines for source in line.evaluated]
    if not all(source.results.get("bound_by_floor", True) for source in sources):
        distance += " Chains look at what came out before they accept, and are not bound by it."
    reward = "Where the exact distance is not known: mean log-reward of the batches while training."
    kinds = {column for group in groups for column in watched(group)}
    about = " ".join(text for kind, text in (("tv", distance), ("log_reward", reward)) if kind in kinds)
    ends = rule(len(line.sources) for group in groups for line in group.lines)
    about += f" Lines are medians over seeds; bands: {ends}." if ends else ""
    parts = [_toggles(groups), tag("div", figures, class_="pair")] if figures else []
    return Section(key="curves", title="Learning curves", about=about, parts=parts)


def _toggles(groups: list[Group]) -> Element:
    """The legend of all charts; a press hides a label in each of them."""
    labels = {line.series: line.label for group in groups for line in group.lines if line.sources}
    buttons = [
        tag("button", swatch(series), label, type="button", aria_pressed="true", data_series=series)
        for series, label in sorted(labels.items())
    ]
    return tag("div", buttons, class_="legend", role="group", aria_label="Curves that are shown")


def _scores(groups: list[Group]) -> Section:
    parts = []
    for group in groups:
        figures = [tag("figure", tag("figcaption", line.label), svg) for line, svg in histograms(group)]
        if figures:
            parts += [_heading(group, groups), tag("div", figures, class_="many few" if len(figures) < 3 else "many")]
    about = f"How the scores of what comes out are distributed{', means over seeds' * repeated(groups)}. "
    if any("law" in shares_of(source) for group in groups for line in group.lines for source in line.evaluated):
        about += "The nearer the line keeps to the edge of the grey, the better."
        kinds = {"target": "target", "law": "exact law of the trained policy", "samples": "samples from it"}
        parts = [tag("ul", [tag("li", share_key(k), text) for k, text in kinds.items()], class_="key"), *parts]
    else:
        about += "These are samples; the target\N{RIGHT SINGLE QUOTATION MARK}s own distribution is not known here."
    return Section(
        key="scores", title="Scores of what comes out", about=about, parts=[p for p in parts if p is not None]
    )


def _heading(group: Group, groups: list[Group]) -> Element | None:
    return tag("h3", group.name) if len(groups) > 1 else None


def _alphabet(line: Line) -> str | None:
    return next((letters for source in line.evaluated if (letters := alphabet_of(source))), None)


def _logos(groups: list[Group]) -> Section:
    parts, used = [], set()
    for group in groups:
        texts = {line.label: [found.text for found in line.pooled("designs", DESIGNS)] for line in group.lines}
        drawn = [(line, letters) for line in group.lines if texts[line.label] and (letters := _alphabet(line))]
        bits = {line.label: heights(texts[line.label], letters) for line, letters in drawn}
        figures = []
        for line, letters in drawn:
            used.add(letters)
            end = axis_end(list(bits.values()), letters)  # one axis for all: heights are there to be compared
            title = f"Sequence logo of {line.label}, {group.name}"
            caption = tag("figcaption", line.label, tag("small", f" {len(texts[line.label])} designs"))
            figures.append(tag("figure", caption, box(logo(bits[line.label], letters, end, title), title)))
        if figures:
            parts += [_heading(group, groups), tag("div", figures, class_="logos")]
    about = (
        f"Letters at each position of the best distinct designs among all samples, at most {DESIGNS}. A column is as "
        "tall as the information it carries: log2 of the number of letters, less the entropy, in bits (at most 2 for "
        "DNA; mind where the axis ends). It is highest where a letter never varies, and nothing where all are equally "
        "frequent. Shorter sequences are aligned left, and a position that some of them lack is lowered accordingly. "
        "Not corrected for small samples."
    )
    shown = [part for part in [glyphs(used), *parts] if part is not None]
    return Section(key="logos", title="Top designs", about=about, parts=shown)


def _modes(groups: list[Group]) -> Section:
    parts = [_cards(line, group, groups) for group in groups for line in group.lines if line.pooled("modes", 1)]
    for part in parts[:UNFOLDED]:
        part.set("open", "")
    about = (
        f"Good samples that lie apart from each other, at most {MODES} of each row of the table, best first."
        + " Seeds are searched one by one and then put together, so modes of different seeds may be neighbours."
        * repeated(groups)
    )
    return Section(key="modes", title="Modes", about=about, parts=parts)


def _cards(line: Line, group: Group, groups: list[Group]) -> Element:
    letters, seeds = _alphabet(line), len(line.evaluated)
    found = line.pooled("modes", MODES)
    cards = []
    for one in found:
        often = tag("small", f"{one.seeds} of {seeds} seeds") if seeds > 1 else None
        cards.append(tag("li", tag("code", coloured(one.text, letters)), tag("span", score_text(one.score)), often))
    name = f"{line.label}, {group.name}" if len(groups) > 1 else line.label
    rule = str(line.evaluated[0].results.get("modes_greedy_rule", "")).replace(">=", "\N{GREATER-THAN OR EQUAL TO}")
    summary = tag("summary", swatch(line.series), name, tag("small", rule))
    return tag("details", summary, tag("ul", cards, class_="cards"), class_="line")


def _orders(groups: list[Group]) -> Section:
    parts = []
    for group in groups:
        table = _order_table(group)
        if table is not None:
            parts += [_heading(group, groups), box(table, f"What to order, {group.name}")]
    about = (
        "Sequences that the trained policies intended (or that were measured beforehand), best first. Expect: mean "
        "score of what is realised under the noise when the whole sequence is ordered at once."
    )
    return Section(key="orders", title="What to order", about=about, parts=[p for p in parts if p is not None])


def _order_table(group: Group) -> Element | None:
    """The best orders of all methods: what to expect depends on the noise, not on who proposes it."""
    found: dict[str, dict[str, float]] = {}
    makers: dict[str, dict[str, None]] = {}
    letters = next(filter(None, map(_alphabet, group.lines)), None)
    for line in group.lines:
        for source in line.evaluated:
            for order in source.results.get("orders") or []:
                found.setdefault(order["order"], order)
                makers.setdefault(order["order"], {})[line.label] = None
    if not found:
        return None
    ranked = sorted(found.values(), key=lambda order: (-(number(order["expected"]) or 0.0), str(order["order"])))
    rows = []
    for order in ranked[:ORDERS]:
        text = str(order["order"])
        row = [tag("th", tag("code", coloured(text, letters)), scope="row"), tag("td", _shown(order["expected"]))]
        row += [tag("td", _percent(order["intact"])), tag("td", _shown(order["score"]))]
        rows.append(tag("tr", row, tag("td", ", ".join(makers[text]), class_="text")))
    names = ("Order", "Expect", "Comes out intact", "Score if intact", "Proposed by")
    head = tag("tr", [tag("th", name, scope="col", class_="text" if name == names[-1] else None) for name in names])
    return tag("table", tag("thead", head), tag("tbody", rows), class_="figures")


def _shown(value: object) -> str:
    known = number(value)
    return DASH if known is None else score_text(known)


def _percent(value: object) -> str:
    """A probability to two digits."""
    known = number(value)
    if known is None:
        return DASH
    return "< 0.01%" if 0 < known < 1e-4 else f"{100 * known:.3g}%"


def _runs(groups: list[Group]) -> Section:
    rows = []
    for group in groups:
        for line in group.lines:
            rows += [_run(entry, line, group) for entry in line.entries]
    names = ("Method", "Group", "Seed", "Step", "Distance to target", "Folder")
    left = {"Method", "Group", "Folder"}
    head = tag("tr", [tag("th", name, scope="col", class_="text" if name in left else None) for name in names])
    table = tag("table", tag("thead", head), tag("tbody", rows), class_="figures")
    count = f"{len(rows)} run{'' if len(rows) == 1 else 's'}"
    parts = [tag("details", tag("summary", count), box(table, "Runs"))]
    return Section(key="runs", title="Runs", about="The run folders that this page was made of.", parts=parts)


def _run(entry: Entry, line: Line, group: Group) -> Element:
    source = entry.source
    cells = [tag("td", group.name, class_="text"), tag("td", str(entry.seed))]
    if source is None:
        cells += [tag("td", DASH), tag("td", DASH), tag("td", "failed" if entry.error else "not begun", class_="text")]
    else:
        tv = number(source.results.get("tv"))
        step = f"{source.rows[-1]['step']:,} of {source.config.steps:,}"
        folder = tag("td", tag("code", source.path.resolve().name), class_="text")
        cells += [tag("td", step), tag("td", DASH if tv is None else plain(tv, 4)), folder]
    return tag("tr", tag("th", swatch(line.series), entry.label, scope="row"), cells)
