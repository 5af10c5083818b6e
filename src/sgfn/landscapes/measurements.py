"""Measured sequences and their scores, read from a user's table.

Every problem is a ValueError of one line, `table.file FILE, line N, column 'C': what; fix`.
"""

import math
import operator
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import Float64, Int64

from sgfn.config.checks import nearest, shorten
from sgfn.config.tasks import LONGEST, Duplicates, Scale, ScoreScale, TableConfig
from sgfn.landscapes.replicates import merge_replicates
from sgfn.landscapes.score_cells import with_commas, with_points, with_scores, without_score
from sgfn.landscapes.transforms import ScoreTransform

if TYPE_CHECKING:
    import pandas as pd

    from sgfn.config.tables import Table

ALPHABETS = {"dna": "ACGT", "rna": "ACGU", "protein": "ACDEFGHIKLMNPQRSTVWY"}
MERGE: dict[Duplicates, Callable[[list[float]], float]] = {"mean": lambda s: math.fsum(s) / len(s), "max": max}
LARGEST = float(np.finfo(np.float32).max)
"""Training reads scores in float32: what is larger would become infinite there."""
ERRORS = ("sd", "std", "stdev", "stddev", "sigma", "se", "sem", "error")
"""Names of columns, in any case, that look like errors of scores."""
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
    """In the user's units."""
    sd: Float64[np.ndarray, " N"] | None = None
    """Standard error of each score, from a column or from replicates; None where nothing tells it."""
    counts: Int64[np.ndarray, " N"] | None = None
    """Rows that each score was made of; None means one."""
    ignored: tuple[str, ...] = ()
    """Columns that were not read."""
    notice: str = ""
    """What to know of the table: columns with decimal commas, and rows without a score, which are left out."""
    transform: ScoreTransform = field(default_factory=ScoreTransform)
    """From scores to what is maximised, scaled to 0..1 where that was asked for."""

    @property
    def values(self) -> Float64[np.ndarray, " N"]:
        """What is maximised."""
        return self.transform.values(self.scores)

    @property
    def value_sd(self) -> Float64[np.ndarray, " N"] | None:
        """Standard deviation of `values`."""
        return self.transform.value_sd(self.scores, self.sd)

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
    if len(text) > 4 and (near := nearest(text, ALPHABETS)):
        raise ValueError(f"{field} {shorten(text)!r} is unknown, did you mean {near}; {fix}")
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


def guess_alphabet(sequences: Sequence[str]) -> str:
    """The first named alphabet that has all letters, in any case; else the letters themselves.

    >>> guess_alphabet(["acg", "T"]), guess_alphabet(["ab"]), guess_alphabet(["MKV"])
    ('ACGT', 'ab', 'ACDEFGHIKLMNPQRSTVWY')
    """
    found = set("".join(sequences))
    upper = {letter.upper() for letter in found}
    fits = [letters for letters in ALPHABETS.values() if upper <= set(letters)]
    return fits[0] if fits else "".join(sorted(found))


def read_measurements(
    source: "Path | str | pd.DataFrame | Table",
    alphabet: str | None = None,
    sequence_column: str = "sequence",
    score_column: str | Sequence[str] = "score",
    scale: Scale = "none",
    duplicates: Duplicates = "error",
    *,
    weights: Sequence[float] | None = None,
    sd_column: str | None = None,
    minimise: bool = False,
    transform: ScoreScale = "none",
    signed: bool = False,
    field_name: str = "table.file",
    flags: str = "--table.",
) -> Measurements:
    r"""Read a table with a header (see `sgfn.config.tables`), or take a frame or a table that was read; empty lines are
    passed over.

    A sequence with lower-case letters is upper-cased where that makes it valid; without an alphabet the first of dna,
    rna and protein that has all letters is taken. The score of a row is the weighted sum of its score columns.
    `minmax` maps scores to $(s - \min s) / (\max s - \min s)$, after merging. `signed` welcomes scores below zero, as
    `minimise`, `minmax` and a transform do. Rows whose score is empty or NA are left out, which `notice` tells.
    """
    columns = [score_column] if isinstance(score_column, str) else list(score_column)
    if len(weights := [1.0] * len(columns) if weights is None else list(weights)) != len(columns):
        raise ValueError(f"{len(weights)} weights for {len(columns)} score columns: give one for each")
    given, commas = with_points(table_of(source, field_name), [*columns, *([sd_column] if sd_column else [])])
    measured, unmeasured = with_scores(given, columns)
    table = _Scores(
        table=measured,
        letters=resolve_alphabet(alphabet) if alphabet is not None else "",
        columns=(sequence_column, *columns),
        weights=tuple(weights),
        sd_column=sd_column,
        signed=signed or minimise or scale == "minmax" or transform != "none" or len(columns) > 1,
        unique=duplicates == "error",
        flags=flags,
    ).with_letters()
    rows, sd = table.read()
    found: dict[str, list[float]] = {}
    for sequence, score in rows:
        found.setdefault(sequence, []).append(score)
    merge = MERGE.get(duplicates, max)  # under `error` each list holds one score
    scores = np.array([merge(values) for values in found.values()], dtype=np.float64)
    shape = ScoreTransform.of(scores, transform, minimise=minimise)
    averages = merge_replicates([sequence for sequence, _ in rows], np.array([score for _, score in rows]), sd)
    return Measurements(
        file=Path(source) if isinstance(source, Path | str) else Path("measurements"),
        alphabet=table.letters,
        sequences=list(found),
        scores=scores,
        sd=averages.sd,
        counts=averages.counts,
        ignored=table.ignored(),
        notice="; ".join(filter(None, (with_commas(commas), without_score(unmeasured, given.unit)))),
        transform=table.stretched(shape, scores) if scale == "minmax" else shape,
    )


def measurements_of(config: TableConfig) -> Measurements:
    """The measurements of a `table` task, read as its settings say."""
    assert config.file is not None
    return read_measurements(
        config.file,
        config.alphabet,
        sequence_column=config.sequence_column,
        score_column=config.score_column,
        sd_column=config.sd_column,
        scale=config.scale,
        duplicates=config.duplicates,
        minimise=config.minimise,
        transform=config.transform,
    )


def columns_not_read(file: Path, names: Sequence[str], sd_flag: str | None) -> str:
    """Words on columns that were not read; `sd_flag` would read one that looks like errors. Empty where all were read.

    >>> columns_not_read(Path("a.csv"), ["plate", "SD"], "--sd-column")
    "columns not read: plate, SD (--sd-column SD takes it for the scores' standard deviations)"
    """
    from sgfn.config.tables import FASTA, ending  # pandas is slow to import, and large

    titles = {"name"} if ending(file) in FASTA else set()
    if not (found := [name for name in names if name not in titles]):
        return ""
    errors = [name for name in found if name.lower() in ERRORS and sd_flag]
    hint = f" ({sd_flag} {errors[0]} takes it for the scores' standard deviations)" if errors else ""
    return f"columns not read: {', '.join(found[:8])}{', ...' * (len(found) > 8)}{hint}"


def table_of(
    source: "Path | str | pd.DataFrame | Table", field_name: str = "", each: str = "measured sequence"
) -> "Table":
    """The table of a file, or of a frame, whose rows count from 1 on; `each` is what a row stands for."""
    from sgfn.config.tables import Table, read_table  # pandas is slow to import, and large

    if isinstance(source, Table):
        return source
    if isinstance(source, Path | str):
        return read_table(Path(source), field_name, each=each)
    frame = source.reset_index(drop=True)
    frame = frame.set_axis([str(column) for column in frame.columns], axis=1)
    if not len(frame):
        raise ValueError(f"the frame of {each}s has no rows; add one row for each {each}")
    return Table(name="measurements", frame=frame, lines=np.arange(1, len(frame) + 1), unit="row")


@dataclass(frozen=True, kw_only=True)
class _Scores:
    """One table and what is expected of it."""

    table: "Table"
    letters: str
    columns: tuple[str, ...]
    """Names of the sequence's and of the scores' columns."""
    weights: tuple[float, ...] = (1.0,)
    """Of the scores' columns."""
    sd_column: str | None = None
    signed: bool
    """Whether scores below zero are welcome."""
    unique: bool
    """Whether a sequence may stand there only once."""
    flags: str = "--table."
    """How flags begin that messages advise; empty where parameters of Python are meant."""

    def named(self, setting: str) -> str:
        """A setting as a flag, or as a parameter of Python."""
        return f"{self.flags}{setting.replace('_', '-')}" if self.flags else f"{setting}="

    def with_letters(self) -> "_Scores":
        """The same with the alphabet that the sequences show, where none was given."""
        self.check_columns()
        if self.letters:
            return self
        return replace(self, letters=resolve_alphabet(guess_alphabet(self.table.texts(self.columns[0]))))

    def read(self) -> tuple[list[tuple[str, float]], Float64[np.ndarray, " R"] | None]:
        """Sequence and score of each row, and the standard deviations of rows where a column holds them."""
        first: dict[str, tuple[int, float]] = {}
        sequences, *scores = (self.table.texts(column) for column in self.columns)
        rows = []
        for row, (text, *numbers) in enumerate(zip(sequences, *scores, strict=True)):
            sequence, score = self.sequence(row, text), self.total(row, numbers)
            if self.unique and sequence in first:
                before, other = first[sequence]
                raise self.repeated(row, sequence, before, same=other == score)
            first.setdefault(sequence, (row, score))
            rows.append((sequence, score))
        return rows, None if self.sd_column is None else self.deviations(self.sd_column)

    def total(self, row: int, numbers: list[str]) -> float:
        """Weighted sum of a row's scores."""
        found = [self.score(row, text, column) for text, column in zip(numbers, self.columns[1:], strict=True)]
        return found[0] if self.weights == (1.0,) else math.fsum(map(operator.mul, self.weights, found))

    def deviations(self, column: str) -> Float64[np.ndarray, " R"]:
        """Standard deviations of rows: finite and zero or above."""
        found = []
        for row, text in enumerate(self.table.texts(column)):
            value = _number(text)
            if value is None or not 0 <= value <= LARGEST:
                what = f"{shorten(text)!r} is no standard deviation; write a number of 0 or above, or remove the row"
                raise self.table.problem(what, row, column)
            found.append(value)
        return np.array(found)

    def ignored(self) -> tuple[str, ...]:
        """Columns that were not read."""
        return tuple(name for name in self.table.columns if name not in (*self.columns, self.sd_column))

    def check_columns(self) -> None:
        """Raise unless all columns are there."""
        flags = ["sequence"] + ["score"] * (len(self.columns) - 1)
        wanted = [*zip(self.columns, flags, strict=True), *([(self.sd_column, "sd")] if self.sd_column else [])]
        for name, flag in wanted:
            if name not in self.table.columns:
                raise self.table.header_problem(self.missing(name, self.named(f"{flag}_column")), name)

    def missing(self, name: str, flag: str) -> str:
        """What to say of a column that is not there."""
        header = self.table.columns
        what = f"not in the header ({shorten(', '.join(header))})"
        near = nearest(name, header)
        if near:
            return f"{what}; did you mean {shorten(near)!r}? Choose it with {flag}"
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
        fix = f"correct or remove the row, or set {self.named('alphabet')}"
        if not fits:
            return f"{fix.removesuffix('=')} to other letters"
        return f"{fix} {fits[0]}" if self.flags else f"{fix}{fits[0]!r}"

    def score(self, row: int, text: str, column: str) -> float:
        """A finite number, not negative unless scores are to be scaled."""
        if wrong := self.wrong_score(text):
            raise self.table.problem(wrong, row, column)
        return float(text)

    def wrong_score(self, text: str) -> str | None:
        """What is wrong with a score, and the fix."""
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

    def stretched(self, shape: ScoreTransform, scores: Float64[np.ndarray, " N"]) -> ScoreTransform:
        """The transform whose values lie in the range 0..1."""
        values = shape.values(scores)
        low, high = float(values.min()), float(values.max())
        if low == high:
            what = f"every score is {low:g}, which minmax cannot scale; choose another --table.score-column"
            raise self.table.problem(what + ", or --table.scale none" * (low >= 0), column=self.columns[1])
        return replace(shape, low=low, span=high - low)


def _number(text: str) -> float | None:
    """A number as a table writes it; Python's own 1_000 is not one."""
    try:
        return None if "_" in text else float(text)
    except ValueError:
        return None
