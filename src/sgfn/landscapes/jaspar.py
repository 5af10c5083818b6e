"""JASPAR CORE: the count matrix of every transcription factor, by matrix id or by name.

Stored in data/jaspar: `matrices.tsv` has a line per matrix (id, factor, number of positions), in the order of ids;
`counts.bin` has their counts one below the other, a row of A C G T per position, as float32 in the byte planes of
`tfbind8_tables.encode`; `provenance.json` says where both come from and holds their checksums.

Reference: Rauluseviciute et al. (2024), JASPAR 2024: 20th anniversary of the open-access database of transcription
factor binding profiles, Nucleic Acids Research 52:D174 (data, CC BY 4.0).
"""

import difflib
import json
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
from jaxtyping import Float64

from sgfn.landscapes.tfbind8_tables import ALPHABET, decode, sha256

__all__ = ["DATA", "DEFAULT", "Profile", "find", "ids", "load", "names"]

DEFAULT = "CTCF"
DATA = Path(__file__).parent / "data" / "jaspar"


@dataclass(frozen=True, kw_only=True)
class Profile:
    """One count matrix: how often each base was seen at each position of the factor's binding sites."""

    id: str
    """Stable id with version, as in MA0139.2."""
    factor: str
    counts: Float64[np.ndarray, "w 4"]

    @property
    def base(self) -> str:
        """The id without its version."""
        return self.id.partition(".")[0]

    @property
    def version(self) -> int:
        """Number of the matrix' revision, counted from one."""
        return int(self.id.partition(".")[2])

    @property
    def consensus(self) -> str:
        """The commonest base at each position.

        >>> find("Arnt").consensus
        'CACGTG'
        """
        return "".join(ALPHABET[base] for base in self.counts.argmax(-1))


# Looking up


def find(name: str) -> Profile:
    """The matrix of an id (`MA0139.2`, or `MA0139` for the latest version) or of a factor (`CTCF`); case is ignored.

    Where several matrices share a name, one spelt exactly so wins, then the most revised, then the lowest id.

    >>> [find(name).id for name in ("ctcf", "ma0139", "JUN", "Jun")]
    ['MA0139.2', 'MA0139.2', 'MA0488.2', 'MA0489.3']
    """
    wanted, known = name.strip(), _catalogue(DATA)
    if wanted.upper() not in known:
        raise ValueError(_unknown(name, wanted.upper(), known))
    return min(known[wanted.upper()], key=lambda profile: (profile.factor != wanted, -profile.version, profile.id))


def names() -> list[str]:
    """Names of all factors, in alphabetical order."""
    return sorted({profile.factor for profile in load(DATA)}, key=lambda factor: (factor.upper(), factor))


def ids() -> list[str]:
    """Ids of all matrices, in order."""
    return [profile.id for profile in load(DATA)]


@cache
def _catalogue(folder: Path) -> dict[str, list[Profile]]:
    """Matrices by every name they have, in capitals: id, id without version, factor."""
    known: dict[str, list[Profile]] = {}
    for profile in load(folder):
        for key in (profile.id, profile.base, profile.factor.upper()):
            known.setdefault(key, []).append(profile)
    return known


def _unknown(name: str, wanted: str, known: dict[str, list[Profile]]) -> str:
    """Message for a name that is not stored, with one that is."""
    if latest := known.get(wanted.partition(".")[0]):
        return f"JASPAR matrix {name!r} is not stored, only the latest version of each: use {latest[0].id}"
    keys = difflib.get_close_matches(wanted, list(known), n=3, cutoff=0.5)
    nearest = [key if key == known[key][0].base else known[key][0].factor for key in keys]
    hint = f"nearest names: {', '.join(nearest)}" if nearest else f"names look like {DEFAULT} or MA0139"
    return f"unknown JASPAR factor or matrix {name!r}; {hint}"


# Reading


@cache
def load(folder: Path) -> tuple[Profile, ...]:
    """All matrices of a folder, after the checksums of both files are verified."""
    lines = _verified(folder / "matrices.tsv").decode("ascii").splitlines()
    entries = [(identity, factor, int(width)) for identity, factor, width in (line.split("\t") for line in lines)]
    counts = decode_counts(_verified(folder / "counts.bin"))
    blocks = np.split(counts, np.cumsum([width for *_, width in entries])[:-1])
    return tuple(
        Profile(id=identity, factor=factor, counts=block)
        for (identity, factor, _), block in zip(entries, blocks, strict=True)
    )


def decode_counts(blob: bytes) -> Float64[np.ndarray, "rows 4"]:
    """Counts of all matrices, one below the other; the array is read-only because it is shared."""
    counts = decode(blob).view(np.float32).reshape(-1, len(ALPHABET)).astype(np.float64)
    counts.setflags(write=False)
    return counts


def _verified(path: Path) -> bytes:
    """A file's bytes, after comparing their checksum with `provenance.json`."""
    try:
        content = path.read_bytes()
        record = json.loads((path.parent / "provenance.json").read_text(encoding="utf-8"))
        expected = record["sha256"][path.name]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise ValueError(f"{path}: the file or its checksum cannot be read ({error}); reinstall sgfn") from error
    if sha256(content) != expected:
        raise ValueError(f"{path}: checksum mismatch, the file is damaged; reinstall sgfn")
    return content
