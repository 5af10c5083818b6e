"""Measured sequences and their scores, read from a user's table.

Every problem is a ValueError of one line, `table.file FILE, line N, column 'C': what; fix`.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import Float64

from sgfn.config.checks import shorten
from sgfn.config.tasks import LONGEST, Duplicates, Scale

if TYPE_CHECKING:
    from sgfn.config.tables import Table

ALPHABETS = {"dna": "ACGT", "rna": "ACGU", "protein": "ACDEFGHIKLMNPQRSTVWY"}
MERGE: dict[Duplicates, Callable[[list[float]], float]] = {"mean": lambda s: math.fsum(s) / len(s), "max": max}
LARGEST = float(np.finfo(np.float32).max)
"""Training reads scores in float32: what is larger would become infinite there."""
MOST_LETTERS = 256
"""Letters of the largest alphabet."""


@dataclass(frozen=True, kw_only=True)
class Measurements:
    """Distinct sequences in the order of the file, one finite score each."""

    file: Path
    alphabet: str
    """The letters, in the order of their tokens."""
    sequences: list[str]
    scores: Float64[np.ndarray, " N"]

    @property
    def min_length(self) -> int:
        """Length of the shortest sequence."""
        return min(map(len, self.sequences))

    @property
    def max_length(self) -> int:
        """Length of the longest sequence."""
        return max(map(len, self.sequences))


def resolve_alphabet(text: str, field: str = "table.alphabet") -> str:
    """Letters of an alphabet given by name, in any case, or by the letters themselves.

    >>> resolve_alphabet("RNA"), resolve_alphabet("01")
    ('ACGU', '01')
    """
    if named := ALPHABETS.get(text.lower()):
        return named
    fix = f"give {', '.join(ALPHABETS)}, or two or more different letters"
    if len(text) < 2:
        raise ValueError(f"{field} {text!r} is too short; {fix}")
    if len(text) > MOST_LETTERS:
        raise ValueError(f"{field} {shorten(text)!r} has {len(text):,} letters, more than {MOST_LETTERS}; {fix}")
    for letter in text:
        if text.count(letter) > 1:
            raise ValueError(f"{field} {text!r} repeats {letter!r}; {fix}")
        if letter.isspace() or not letter.isprintable():
            raise ValueError(f"{field} {text!r} holds {letter!r}, which is no visible letter; {fix}")
    return text


def read_measurements(
    file: Path,
    alphabet: str,
    sequence_column: str = "sequence",
    score_column: str = "score",
    scale: Scale = "none",
    duplicates: Duplicates = "error",
) -> Measurements:
    r"""Read a table with a header (see `sgfn.config.tables`); further columns and empty lines are passed over.

    A sequence with lower-case letters is upper-cased where that makes it valid. `minmax` maps scores to
    $(s - \min s) / (\max s - \min s)$, after merging.
    """
    from sgfn.config.tables import read_table  # pandas is slow to import, and large

    letters = resolve_alphabet(alphabet)
    table = _Scores(
        table=read_table(file, "table.file", each="measured sequence"),
        letters=letters,
        columns=(sequence_column, score_column),
        signed=scale == "minmax",
        unique=duplicates == "error",
    )
    found = table.read()
    merge = MERGE.get(duplicates, max)  # under `error` each list holds one score
    scores = np.array([merge(values) for values in found.values()], dtype=np.float64)
    if scale == "minmax":
        scores = table.stretch(scores)
    return Measurements(file=file, alphabet=table.letters, sequences=list(found), scores=scores)


@dataclass(frozen=True, kw_only=True)
class _Scores:
    """One table and what is expected of it."""

    table: "Table"
    letters: str
    columns: tuple[str, str]
    """Names of the sequence's and of the score's column."""
    signed: bool
    """Whether scores below zero are welcome."""
    unique: bool
    """Whether a sequence may stand there only once."""

    def read(self) -> dict[str, list[float]]:
        """Scores of each sequence, in the order of the file."""
        found: dict[str, list[float]] = {}
        first: dict[str, int] = {}
        self.check_columns()
        sequences, scores = (self.table.texts(column) for column in self.columns)
        for row, (sequence_text, score_text) in enumerate(zip(sequences, scores, strict=True)):
            sequence, score = self.sequence(row, sequence_text), self.score(row, score_text)
            if self.unique and sequence in found:
                raise self.repeated(row, sequence, first[sequence], same=found[sequence] == [score])
            first.setdefault(sequence, row)
            found.setdefault(sequence, []).append(score)
        return found

    def check_columns(self) -> None:
        """Raise unless both columns are there."""
        for name, flag in zip(self.columns, ("sequence", "score"), strict=True):
            if name not in self.table.columns:
                raise self.table.header_problem(self.missing(name, f"--table.{flag}_column"), name)

    def missing(self, name: str, flag: str) -> str:
        """What to say of a column that is not there."""
        header = self.table.columns
        what = f"not in the header ({shorten(', '.join(header))})"
        folded = {column.lower(): column for column in header}
        near = get_close_matches(name.lower(), folded, n=1, cutoff=0.5)
        if near:
            return f"{what}; did you mean {shorten(folded[near[0]])!r}? Choose it with {flag}"
        return f"{what}; name the columns in the first line, or choose one with {flag}"

    def sequence(self, row: int, text: str) -> str:
        """Letters of the alphabet, as written or upper-cased."""
        if not text:
            raise self.table.problem("the sequence is empty; fill it in or remove the row", row, self.columns[0])
        if len(text) > LONGEST:
            what = f"{len(text):,} letters, more than the {LONGEST} that a sequence may have; shorten or remove the row"
            raise self.table.problem(what, row, self.columns[0])
        upper = text.upper() if text.isascii() else text  # beyond ASCII, upper case may be longer
        best = min((text, upper), key=lambda candidate: len(self.foreign(candidate)))
        if wrong := self.foreign(best):
            letters = ", ".join(map(repr, dict.fromkeys(text[i] for i in wrong)))
            what = f"{shorten(text)!r} holds {shorten(letters)}, not in the alphabet {self.letters}"
            raise self.table.problem(f"{what}; {self.other_alphabet(upper)}", row, self.columns[0])
        return best

    def foreign(self, text: str) -> list[int]:
        """Positions of letters outside the alphabet."""
        return [i for i, letter in enumerate(text) if letter not in self.letters]

    def other_alphabet(self, text: str) -> str:
        """The fix for foreign letters: a named alphabet, where one has them all."""
        fits = [name for name, letters in ALPHABETS.items() if set(text) <= set(letters)]
        return f"correct or remove the row, or set --table.alphabet {fits[0] if fits else 'to other letters'}"

    def score(self, row: int, text: str) -> float:
        """A finite number, not negative unless scores are to be scaled."""
        if wrong := self.wrong_score(text):
            raise self.table.problem(wrong, row, self.columns[1])
        return float(text)

    def wrong_score(self, text: str) -> str | None:
        """What is wrong with a score, and the fix."""
        if not text:
            return "the score is missing; fill it in or remove the row"
        value = _number(text)
        if value is None:
            return f"{shorten(text)!r} is not a number; write it like 0.25 or 2.5e-3, or remove the row"
        if not math.isfinite(value):
            return f"{shorten(text)!r} is not finite; write a finite number or remove the row"
        if abs(value) > LARGEST:
            return f"{shorten(text)!r} is beyond {LARGEST:.3g} in size; divide all scores by a constant"
        if value < 0 and not self.signed:
            return f"{shorten(text)!r} is negative; scale all scores to 0..1 with --table.scale minmax"
        return None

    def repeated(self, row: int, sequence: str, first: int, *, same: bool) -> ValueError:
        where = f"{self.table.unit} {self.table.lines[first]}"
        what = f"{shorten(sequence)!r} is on {where} already, with {'the same' if same else 'another'} score"
        fix = "remove one, or merge them with --table.duplicates mean"
        return self.table.problem(f"{what}; {fix}", row, self.columns[0])

    def stretch(self, scores: Float64[np.ndarray, " N"]) -> Float64[np.ndarray, " N"]:
        """To the range 0..1."""
        low, high = float(scores.min()), float(scores.max())
        if low == high:
            what = f"every score is {low:g}, which minmax cannot scale; choose another --table.score_column"
            raise self.table.problem(what + ", or --table.scale none" * (low >= 0), column=self.columns[1])
        return (scores - low) / (high - low)


def _number(text: str) -> float | None:
    """A number as a table writes it; Python's own 1_000 is not one."""
    try:
        return None if "_" in text else float(text)
    except ValueError:
        return None
