"""Embedded measurements of nearly all sequences of one length: GB1, four sites of a protein, and MPSA, splice sites.

Stored in data/NAME: `FILE.bin` has one integer for each sequence in alphabetical order, a count or the measurement
times 1e6, or `MISSING`, in the byte planes of `tfbind8_tables.encode`; `provenance.json` says where they come from.

References: Wu et al. (2016), Adaptation in protein fitness landscapes is facilitated by indirect paths, eLife 5:e16965
(GB1, CC BY 4.0). Wong et al. (2018), Quantitative activity profile and context dependence of all human 5' splice sites,
Molecular Cell 71:1012 (MPSA), as packaged by MAVE-NN (Tareen et al. 2022, Genome Biology 23:98, MIT).
"""

from functools import cache
from pathlib import Path
from typing import Literal

import numpy as np
from jaxtyping import Float64, Int32

from sgfn.config.files import read_json
from sgfn.config.reading import read_bytes
from sgfn.landscapes.measurements import ALPHABETS
from sgfn.landscapes.tfbind8_tables import decode, encode, sha256

DATA = Path(__file__).parent / "data"
UNIT = 1e-6
"""Size of one integer step."""
MISSING = -(2**31)
GB1_LETTERS, GB1_LENGTH = ALPHABETS["protein"], 4
MPSA_LETTERS, MPSA_LENGTH = ALPHABETS["rna"], 9


@cache
def gb1_fitness() -> Float64[np.ndarray, " 160000"]:
    """Fitness of each variant of V39, D40, G41 and V54 relative to the wild type; NaN where it was not measured.

    >>> fitness = gb1_fitness()
    >>> int(np.isfinite(fitness).sum()), round(float(np.nanmax(fitness)), 5)
    (149361, 8.76197)
    """
    return read_complete("gb1", "fitness", len(GB1_LETTERS) ** GB1_LENGTH)


@cache
def gb1_counts(which: Literal["input", "selected"]) -> Float64[np.ndarray, " 160000"]:
    """How often each variant was sequenced before (`input`) or after (`selected`) selection; NaN where never before.

    They tell how well each fitness is known: where they are small, it is mostly chance.

    >>> [int(np.nansum(gb1_counts(which))) for which in ("input", "selected")]
    [86959454, 45512983]
    """
    return read_complete("gb1", f"count_{which}", len(GB1_LETTERS) ** GB1_LENGTH, 1.0)


@cache
def mpsa_activity(replicate: int = 1) -> Float64[np.ndarray, " 262144"]:
    """log10 of the percentage of spliced transcripts for each RNA 9-mer, in one of two replicates; NaN where missing.

    >>> [int(np.isfinite(mpsa_activity(replicate)).sum()) for replicate in (1, 2)]
    [30483, 30697]
    """
    return read_complete("mpsa", f"replicate{replicate}", len(MPSA_LETTERS) ** MPSA_LENGTH)


def read_complete(name: str, file: str, count: int, unit: float = UNIT) -> Float64[np.ndarray, " N"]:
    """Measurements by the number of their sequence, after the file's checksum is verified; `unit` is one step."""
    path = DATA / name / f"{file}.bin"
    try:
        blob, expected = read_bytes(path, str(path)), read_json(path.with_name("provenance.json"))["sha256"][path.name]
    except (ValueError, KeyError, TypeError) as error:
        raise ValueError(f"{path}: the table or its checksum cannot be read ({error!r}); reinstall sgfn") from error
    if sha256(blob) != expected:
        raise ValueError(f"{path}: checksum mismatch, the file is damaged; reinstall sgfn")
    values = decode(blob)
    if values.shape != (count,):
        raise ValueError(f"{path}: {values.size} scores instead of {count}; reinstall sgfn")
    return np.where(values == MISSING, np.nan, values * unit)


def pack(sequences: list[str], values: Float64[np.ndarray, " N"], alphabet: str, unit: float = UNIT) -> bytes:
    """Measurements as `read_complete` reads them; every sequence may be there once at most."""
    length = len(sequences[0])
    code = {letter: i for i, letter in enumerate(alphabet)}
    table: Int32[np.ndarray, " S"] = np.full(len(alphabet) ** length, MISSING, dtype=np.int32)
    for sequence, value in zip(sequences, values.tolist(), strict=True):
        number = 0
        for letter in sequence:
            number = number * len(alphabet) + code[letter]
        if len(sequence) != length or table[number] != MISSING:
            raise ValueError(f"{sequence} is there twice, or has not {length} letters")
        table[number] = round(value / unit)
    return encode(table)
