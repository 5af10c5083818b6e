"""The order sheet of libraries: a row for each, with DNA, codons, percentages of residues and what to expect."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

from sgfn.config.csv_cells import csv_text
from sgfn.config.files import write_text
from sgfn.design.libraries.codons import RESIDUES

if TYPE_CHECKING:
    from sgfn.design.libraries.designing import LibraryDesign

FIGURES = ("expected", "expected_error", "no_stop", "size", "clones", "best", "best_error", "variants", "screened")


def percentages(law: Any) -> str:
    """Percentages of residues, the most probable first.

    >>> import numpy as np
    >>> percentages(np.eye(21)[0] / 2 + np.eye(21)[20] / 2)
    'A50 *50'
    """
    order = sorted(range(len(law)), key=lambda place: (-law[place], place))
    return " ".join(f"{RESIDUES[place]}{100 * law[place]:.3g}" for place in order if law[place] > 0)


def sheet_rows(design: "LibraryDesign") -> list[dict[str, Any]]:
    """A row for each library, by column."""
    rows = []
    for number, (library, value, share) in enumerate(
        zip(design.libraries, design.values, design.shares, strict=True), 1
    ):
        row: dict[str, Any] = {"library": number, "share": share, "dna": design.dna(library.codons)}
        for position, codon, law in zip(design.positions, library.codons, library.laws, strict=True):
            row |= {f"codon_{position}": codon, f"residues_{position}": percentages(law)}
        row |= {name: getattr(value, name) for name in FIGURES}
        rows.append(row | {"oversampling": value.oversampling, "exact": value.exact})
    return rows


def write_sheet(path: Path, design: "LibraryDesign") -> None:
    """Write the sheet as CSV; whole or absent, and safe in a spreadsheet."""
    rows = sheet_rows(design)
    cells = ([f"{cell:.6g}" if isinstance(cell, float) else cell for cell in row.values()] for row in rows)
    write_text(path, csv_text(list(rows[0]), cells))
