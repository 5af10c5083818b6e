"""Measured sequences and their scores, read from a user's CSV or TSV file.

Every problem is a ValueError of one line, `FILE, line N, column 'C': what; fix`, N as an editor counts lines.
"""

import csv
import io
import math
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path

import numpy as np
from jaxtyping import Float64

from sgfn.config.tasks import Duplicates, Scale

ALPHABETS = {"dna": "ACGT", "rna": "ACGU", "protein": "ACDEFGHIKLMNPQRSTVWY"}
MERGE: dict[Duplicates, Callable[[list[float]], float]] = {"mean": lambda s: math.fsum(s) / len(s), "max": max}
LARGEST = float(np.finfo(np.float32).max)
"""Training reads scores in float32: what is larger would become infinite there."""
DELIMITERS = {",": "commas", "\t": "tabs", ";": "semicolons"}


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
    r"""Read a table with a header; further columns, empty lines and blanks around a field are passed over.

    Comma-separated, or tab-separated where the name ends in `.tsv`; UTF-8. A sequence with lower-case letters is
    upper-cased where that makes it valid. `minmax` maps scores to $(s - \min s) / (\max s - \min s)$, after merging.
    """
    table = _Table(
        file=file,
        letters=resolve_alphabet(alphabet),
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
class _Table:
    """One file and what is expected of it."""

    file: Path
    letters: str
    columns: tuple[str, str]
    """Names of the sequence's and of the score's column."""
    signed: bool
    """Whether scores below zero are welcome."""
    unique: bool
    """Whether a sequence may stand there only once."""

    def problem(self, what: str, line: int | None = None, column: str | None = None) -> ValueError:
        place = str(self.file) + (f", line {line}" if line else "") + (f", column {column!r}" if column else "")
        return ValueError(f"{place}: {what}")

    def read(self) -> dict[str, list[float]]:
        """Scores of each sequence, in the order of the file."""
        found: dict[str, list[float]] = {}
        first: dict[str, int] = {}
        for line, sequence_text, score_text in self.rows():
            sequence, score = self.sequence(line, sequence_text), self.score(line, score_text)
            if self.unique and sequence in found:
                raise self.repeated(line, sequence, first[sequence], same=found[sequence] == [score])
            first.setdefault(sequence, line)
            found.setdefault(sequence, []).append(score)
        if not found:
            raise self.problem("a header and no rows; add one row for each measured sequence")
        return found

    def rows(self) -> Iterator[tuple[int, str, str]]:
        """Line, sequence and score of each row below the header."""
        records = self.records()
        line, header = next(records, (0, []))
        if not header:
            raise self.problem("the file is empty; write a header and one row for each measured sequence")
        sequence_at, score_at = self.locate(line, header)
        for line, fields in records:
            if len(fields) != len(header):
                raise self.miscounted(line, len(fields), len(header))
            yield line, fields[sequence_at], fields[score_at]

    def records(self) -> Iterator[tuple[int, list[str]]]:
        """Each record that is not empty, with the line on which it begins: a quoted field may span several."""
        # newline="" leaves line ends as they are, so that \n, \r\n and \r all count as an editor counts them
        reader = csv.reader(io.StringIO(self.text(), newline=""), delimiter=self.delimiter, strict=True)
        line = 1
        try:
            for record in reader:
                fields = [field.strip() for field in record]
                if any(fields):
                    yield line, fields
                line = reader.line_num + 1
        except csv.Error as error:
            raise self.problem(f"not valid CSV ({error}); close each quote that is opened", line) from None

    @property
    def delimiter(self) -> str:
        return "\t" if self.file.suffix.lower() == ".tsv" else ","

    def text(self) -> str:
        """The whole file, less the mark of byte order that spreadsheets put at its beginning."""
        data = self.content()
        try:
            text, wrong = data.decode("utf-8-sig"), data.find(b"\0")
        except UnicodeDecodeError as error:
            text, wrong = "", error.start
        if wrong >= 0:
            line = len(re.findall(b"\r\n|\r|\n", data[:wrong])) + 1
            raise self.problem(f"byte 0x{data[wrong]:02x} is not UTF-8 text; save the table as CSV in UTF-8", line)
        return text

    def content(self) -> bytes:
        if self.file.is_dir():
            raise self.problem("a folder, not a file; name the file inside it")
        try:
            return self.file.read_bytes()
        except FileNotFoundError:
            raise self.problem("no such file; check --table.file") from None
        except OSError as error:
            raise self.problem(f"cannot be read ({error.strerror}); check the path and its permissions") from None

    def locate(self, line: int, header: list[str]) -> tuple[int, int]:
        """Where the two columns stand."""
        for name, flag in zip(self.columns, ("sequence", "score"), strict=True):
            if name not in header:
                raise self.problem(self.missing(name, header, f"--table.{flag}_column"), line, name)
            if header.count(name) > 1:
                raise self.problem(f"{header.count(name)} columns have this name; rename all but one", line, name)
        return header.index(self.columns[0]), header.index(self.columns[1])

    def missing(self, name: str, header: list[str], flag: str) -> str:
        """What to say of a column that is not there."""
        what = f"not in the header ({_short(', '.join(header))})"
        foreign = [mark for mark in DELIMITERS if mark != self.delimiter and mark in header[0]]
        if len(header) == 1 and foreign:
            rename = ", or let the file's name end in .tsv" if foreign[0] == "\t" else ""
            return f"{what}; separate fields by {DELIMITERS[self.delimiter]}, not {DELIMITERS[foreign[0]]}{rename}"
        folded = {column.lower(): column for column in header}
        near = get_close_matches(name.lower(), folded, n=1, cutoff=0.5)
        if near:
            return f"{what}; did you mean {_short(folded[near[0]])!r}? Choose it with {flag}"
        return f"{what}; name the columns in the first line, or choose one with {flag}"

    def miscounted(self, line: int, found: int, wanted: int) -> ValueError:
        count = f"{found} field{'s' * (found != 1)} where the header has {wanted}"
        if found < wanted:
            return self.problem(f"{count}; fill in what is missing", line)
        return self.problem(f"{count}; put a field that holds {DELIMITERS[self.delimiter]} in quotes", line)

    def sequence(self, line: int, text: str) -> str:
        """Letters of the alphabet, as written or upper-cased."""
        if not text:
            raise self.problem("the sequence is empty; fill it in or remove the row", line, self.columns[0])
        upper = text.upper() if text.isascii() else text  # beyond ASCII, upper case may be longer
        best = min((text, upper), key=lambda candidate: len(self.foreign(candidate)))
        if wrong := self.foreign(best):
            letters = ", ".join(map(repr, dict.fromkeys(text[i] for i in wrong)))
            what = f"{_short(text)!r} holds {_short(letters)}, not in the alphabet {self.letters}"
            raise self.problem(f"{what}; {self.other_alphabet(upper)}", line, self.columns[0])
        return best

    def foreign(self, text: str) -> list[int]:
        """Positions of letters outside the alphabet."""
        return [i for i, letter in enumerate(text) if letter not in self.letters]

    def other_alphabet(self, text: str) -> str:
        """The fix for foreign letters: a named alphabet, where one has them all."""
        fits = [name for name, letters in ALPHABETS.items() if set(text) <= set(letters)]
        return f"correct or remove the row, or set --table.alphabet {fits[0] if fits else 'to other letters'}"

    def score(self, line: int, text: str) -> float:
        """A finite number, not negative unless scores are to be scaled."""
        if wrong := self.wrong_score(text):
            raise self.problem(wrong, line, self.columns[1])
        return float(text)

    def wrong_score(self, text: str) -> str | None:
        """What is wrong with a score, and the fix."""
        if not text:
            return "the score is missing; fill it in or remove the row"
        value = _number(text)
        if value is None:
            return f"{_short(text)!r} is not a number; write it like 0.25 or 2.5e-3, or remove the row"
        if not math.isfinite(value):
            return f"{_short(text)!r} is not finite; write a finite number or remove the row"
        if abs(value) > LARGEST:
            return f"{_short(text)!r} is beyond {LARGEST:.3g} in size; divide all scores by a constant"
        if value < 0 and not self.signed:
            return f"{_short(text)!r} is negative; scale all scores to 0..1 with --table.scale minmax"
        return None

    def repeated(self, line: int, sequence: str, first: int, *, same: bool) -> ValueError:
        what = f"{_short(sequence)!r} is on line {first} already, with {'the same' if same else 'another'} score"
        return self.problem(f"{what}; remove one, or merge them with --table.duplicates mean", line, self.columns[0])

    def stretch(self, scores: Float64[np.ndarray, " N"]) -> Float64[np.ndarray, " N"]:
        """To the range 0..1."""
        low, high = float(scores.min()), float(scores.max())
        if low == high:
            what = f"every score is {low:g}, which minmax cannot scale; choose another --table.score_column"
            raise self.problem(what + ", or --table.scale none" * (low >= 0), column=self.columns[1])
        return (scores - low) / (high - low)


def _number(text: str) -> float | None:
    """A number as a table writes it; Python's own 1_000 is not one."""
    try:
        return None if "_" in text else float(text)
    except ValueError:
        return None


def _short(text: str, width: int = 40) -> str:
    """One line, cut where it gets long."""
    line = " ".join(text.split())
    return line if len(line) <= width else line[: width - 3] + "..."
