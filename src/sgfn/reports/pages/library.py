"""The page of a library: codons, percentages of residues, scores of its clones, and what else could be ordered."""

from pathlib import Path

from sgfn.config.files import write_text
from sgfn.design.libraries.designing import LibraryDesign
from sgfn.design.libraries.values import LibraryValue
from sgfn.reports.library_figures import residues_figure, scores_figure
from sgfn.reports.pages.design import PlateTable
from sgfn.reports.pages.parts import CaptionedDrawing, DrawingGroup, Section
from sgfn.reports.pages.rendering import render
from sgfn.reports.pages.svg import drawing

MOST_DRAWN = 12
"""Libraries whose residues are drawn."""


def write_library_page(out: Path, design: LibraryDesign) -> Path:
    """Write one HTML file with everything inside."""
    count, first = len(design.libraries), design.values[0]
    what = f"Library {' '.join(first.codons)}" if count == 1 else f"{count} libraries"
    lead = f"From {design.source}: {what}, {design.config.clones} clones."
    note = "How they were found: " + "; ".join(f"{one.how} {one.value:.4g}" for one in design.searches) + "."
    sections = [_values(design), _scores(design), _residues(design), _orders(design)]
    write_text(
        out, render("page.html.j2", title="Library of degenerate codons", lead=lead, note=note, sections=sections)
    )
    return out


def _values(design: LibraryDesign) -> Section:
    best = f"Best of {design.config.clones}"
    heads = ["Library", "Share", "Codons", "Expect", "No stop", "Effective size", best, "Variants", "Clones for 95 %"]
    shares = [f"{share:.1%}" for share in design.shares]
    rows = [
        _row(f"library {number}", share, value)
        for number, (share, value) in enumerate(zip(shares, design.values, strict=True), 1)
    ]
    rows += [_row(value.name, "", value) for value in design.compared]
    about = "What to expect of the libraries, and of those that are often ordered."
    if design.pool is not None:
        about += (
            f" Pooled they expect {design.pool.expected:.4g}, the best of {design.config.clones} {design.pool.best:.4g}"
        )
        about += f"; {design.divergence:.3g} nats (KL) from the target."
    table = PlateTable(headings=heads, rows=rows)
    return Section(key="values", title="What to expect", about=about, template="plate", content=table)


def _row(name: str, share: str, value: LibraryValue) -> list[str]:
    codons = value.codons[:1] if len({*value.codons}) == 1 else value.codons
    figures = [f"{value.expected:.4g}", f"{value.no_stop:.1%}", f"{value.size:.4g}", f"{value.best:.4g}"]
    return [name, share, " ".join(codons), *figures, f"{value.variants:,.0f}", f"{value.screened:,.0f}"]


def _scores(design: LibraryDesign) -> Section:
    about = "Share of clones that are at least as good as a score; the dashed line is one clone of those measured."
    drawn = drawing(scores_figure(design), key="scores", said="Law of the scores of clones of each library")
    figures = [CaptionedDrawing(caption="Scores of clones", drawing=drawn)]
    content = [DrawingGroup(heading="", layout="pair", size="medium", figures=figures)]
    return Section(key="scores", title="Scores", about=about, template="figures", content=content)


def _residues(design: LibraryDesign) -> Section:
    figures = []
    for number, library in enumerate(design.libraries[:MOST_DRAWN], 1):
        said = f"Percentages of residues of library {number}: {library.text}"
        drawn = drawing(residues_figure(library, design.positions), key=f"residues-{number}", said=said)
        figures.append(
            CaptionedDrawing(caption=f"Library {number}, share {design.shares[number - 1]:.0%}", drawing=drawn)
        )
    content = [DrawingGroup(heading="", layout="fans", size="wide", figures=figures)]
    about = "Percentages of residues at each position."
    return Section(key="residues", title="Residues", about=about, template="figures", content=content)


def _orders(design: LibraryDesign) -> Section:
    rows = [
        [str(number), " ".join(library.codons), design.dna(library.codons) or "-"]
        for number, library in enumerate(design.libraries, 1)
    ]
    table = PlateTable(headings=["Library", "Codons", "DNA"], rows=rows)
    about = "As in the order sheet."
    return Section(key="orders", title="Orders", about=about, template="plate", content=table)
