"""Figures of a library: percentages of residues at each site, and the law of its clones' scores beside others."""

import numpy as np
from jaxtyping import Float64
from matplotlib.figure import Figure

from sgfn.design.libraries.codons import RESIDUES
from sgfn.design.libraries.designing import LibraryDesign
from sgfn.design.libraries.library import Library
from sgfn.reports.axes import add_legend, add_panel, name_axes, new_figure
from sgfn.reports.design_figures import SHADES
from sgfn.reports.looks import FLOOR, GREY, INK, MUTED, OURS, TARGET, WHITE

GROUPED = "GAVLIMFWPSTCYNQDEKRH*"
"""Residues in an order in which similar ones stand together."""
COLOURS = (OURS, TARGET, FLOOR, MUTED, GREY)
BEST = 4
"""Libraries whose scores are drawn."""


def residues_figure(library: Library, positions: tuple[int, ...]) -> Figure:
    """Percentages of residues at each site, codons beside them."""
    figure = new_figure(7.0, 0.9 + 0.42 * library.sites)
    axes = add_panel(figure)
    order = [RESIDUES.index(residue) for residue in GROUPED]
    shares = 100 * library.laws[:, order]
    axes.imshow(shares, cmap=SHADES, aspect="auto", vmin=0, vmax=max(50.0, float(shares.max())))
    axes.grid(visible=False)
    for site, residue in zip(*np.nonzero(shares >= 0.5), strict=True):
        dark = shares[site, residue] > 30
        axes.text(
            residue,
            site,
            f"{shares[site, residue]:.0f}",
            ha="center",
            va="center",
            fontsize=7,
            color=WHITE if dark else INK,
        )
    axes.set_xticks(range(len(GROUPED)), list(GROUPED))
    names = [f"{position}  {codon}" for position, codon in zip(positions, library.codons, strict=True)]
    axes.set_yticks(range(library.sites), names)
    name_axes(axes, "residue (* stop)", "")
    return figure


def scores_figure(design: LibraryDesign) -> Figure:
    """Share of clones above each score, on a logarithmic axis: the library beside those to compare with."""
    figure = new_figure(4.7, 3.3)
    axes = add_panel(figure)
    for number, (name, library) in enumerate(drawn_libraries(design)):
        scores, above = survival(design, library)
        axes.step(
            scores,
            above,
            where="post",
            color=COLOURS[number % len(COLOURS)],
            label=name,
            linewidth=2 - 0.6 * (number > 0),
        )
    clones, start = design.config.clones, axes.get_xlim()[0]
    axes.axhline(1.0 / clones, color=MUTED, linewidth=1, linestyle=(0, (5, 2)))
    axes.text(start, 1.0 / clones, f" one of {clones}", ha="left", va="top", fontsize=8, color=MUTED)
    axes.set_yscale("log")
    axes.set_ylim(0.01 / clones, 10.0)  # room for the legend
    axes.set_yticks([1e-3, 1e-2, 1e-1, 1.0], ["0.1 %", "1 %", "10 %", "100 %"])
    name_axes(axes, "score", "clones at or above" if design.sign > 0 else "clones at or below")
    add_legend(axes, columns=2)
    return figure


def drawn_libraries(design: LibraryDesign) -> list[tuple[str, Library]]:
    """The first library and those to compare with, by name."""
    first = "chosen" if len(design.libraries) == 1 else "library 1"
    beside = [(value.name, library) for value, library in zip(design.compared, design.compared_libraries, strict=True)]
    preferred = sorted(beside, key=lambda one: one[0] not in ("NNK", "NDT"))
    return [(first, design.libraries[0]), *preferred[: BEST - 1]]


def survival(design: LibraryDesign, library: Library) -> tuple[Float64[np.ndarray, " N"], Float64[np.ndarray, " N"]]:
    """Scores in ascending order of goodness, and the share of clones at least as good; by the expected score."""
    found = design.score.outcomes(library.laws, design.config.seed)
    order = np.argsort(-found.values[0], kind="stable")
    share = np.cumsum(found.probability[order])
    kept = np.unique(np.geomspace(1, len(order), 1000).astype(int) - 1)  # the best ones are all drawn
    return design.sign * found.values[0][order][kept], np.clip(share[kept], 1e-9, 1.0)
