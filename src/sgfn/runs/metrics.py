"""Lines of metrics.jsonl: all of them, fewer of them for a picture, or the last; a killed writer may have cut that."""

import json
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from sgfn.config.files import replacing

Row = dict[str, Any]
Numbered = tuple[int, bytes]
"""A line with its number, from 1 on."""
BLOCK = LONGEST = 2**20
"""Bytes that are read at once, and bytes that a line may have."""
MANY_STEPS, LARGEST = 2**53, 1e300
"""What a step and a figure may be at most."""
FEW = 500
"""A picture is drawn from so many lines at least, where there are as many, and from no more than twice of them."""
RENAMED = {"entropy_high": "H_high", "entropy_low": "H_low", "entropy": "H_mean", "ratio": "r_gamma"}
"""Names that older run folders have for figures, and those of today."""
JUDGED = b'"tv"'
"""What only lines with an exact evaluation hold."""


def read_rows(file: Path) -> list[Row]:
    """All lines; one that was cut short by a crash can only be the last, and is left out."""
    return [row_at(file, *line) for line in whole_lines(file)]


def thinned_rows(file: Path) -> list[Row]:
    """Lines for a picture, spread evenly over the file: first and last, with and without an exact evaluation.

    Of the others only the ends are looked at, so that time and memory hardly grow with their number.
    """
    judged, plain, number = Thinning(), Thinning(), 1
    for lines in blocks(file):
        if b"\n".join(lines).count(b"}\n{") != len(lines) - 1:
            check_ends(file, number, lines)
        looks = [at for at, line in enumerate(lines) if JUDGED in line]
        judged.add(number, lines, looks)
        plain.add(number, lines, sorted({*range(len(lines))} - {*looks}) if looks else range(len(lines)))
        number += len(lines)
    return [row_at(file, *line) for line in sorted(judged.lines() | plain.lines())]


def check_ends(file: Path, number: int, lines: list[bytes]) -> None:
    """Raise where a line does not look like an object; the first has the number given."""
    for at, line in enumerate(lines, start=number):
        if not line.startswith(b"{") or not line.endswith((b"}", b"}\r")):
            row_at(file, at, line)


class Thinning:
    """Every n-th of the lines that came so far, n being such that there are neither few nor many; and the last."""

    def __init__(self) -> None:
        self.kept, self.every, self.count = list[Numbered](), 1, 0
        self.last: Numbered | None = None

    def add(self, number: int, lines: list[bytes], places: Sequence[int]) -> None:
        """Some more lines, those at some places of a list; the first of the list has the number given."""
        self.kept += [(number + at, lines[at]) for at in places[-self.count % self.every :: self.every]]
        self.count += len(places)
        self.last = (number + places[-1], lines[places[-1]]) if places else self.last
        while len(self.kept) > 2 * FEW:
            self.kept, self.every = self.kept[::2], 2 * self.every

    def lines(self) -> set[Numbered]:
        """Those that are kept."""
        return {*self.kept, *([] if self.last is None else [self.last])}


def last_row(file: Path) -> Row | None:
    """The last whole line, read from the end of the file; None where there is none."""
    if not file.is_file():
        return None
    with file.open("rb") as content:
        start = max(0, file.stat().st_size - 2 * LONGEST)
        content.seek(start)
        lines = content.read().split(b"\n")[1 if start else 0 :]
    *whole, rest = lines or [b""]
    if is_row(rest):
        return row_of(rest)
    try:
        return row_of(whole[-1]) if whole else None
    except ValueError as error:
        raise ValueError(f"{file}, last line: {error}") from None


def newest(lines: Iterable[bytes]) -> Row:
    """The newest value of each figure, from the last lines with and without an exact evaluation.

    What is no line of metrics is passed over: it was cut, and went on after a resume.
    """
    last: dict[bool, list[bytes]] = {True: [], False: []}
    for line in lines:
        last[JUDGED in line] = [*last[JUDGED in line][-1:], line]
    rows = [row_of(line) for found in last.values() for line in found if is_row(line)]
    return {name: value for row in sorted(rows, key=lambda row: row["step"]) for name, value in row.items()}


def rewind(file: Path, step: int) -> None:
    """Forget the lines after a step, and a last one that was cut short; a file without such lines is left alone."""
    if not file.is_file():
        return
    kept = sum(len(line) + 1 for line in lines_until(file, step))
    if kept != file.stat().st_size:
        with replacing(file) as aside, aside.open("wb") as copy:
            copy.writelines(line + b"\n" for line in lines_until(file, step))


def lines_until(file: Path, step: int) -> Iterator[bytes]:
    """Lines up to a step, each of them checked."""
    return (line for number, line in whole_lines(file) if row_at(file, number, line)["step"] <= step)


def whole_lines(file: Path) -> Iterator[Numbered]:
    """Lines that end, and the last one if it is whole without an end; nothing where there is no file."""
    return enumerate((line for lines in blocks(file) for line in lines), start=1)


def blocks(file: Path) -> Iterator[list[bytes]]:
    """The same lines as they are read, many at once."""
    if not file.is_file():
        return
    number, rest = 0, b""
    with file.open("rb") as content:
        while block := content.read(BLOCK):
            *lines, rest = (rest + block).split(b"\n")
            number += len(lines)
            if lines:
                yield lines
            if len(rest) > LONGEST:
                raise ValueError(f"{file}, line {number + 1}: longer than {LONGEST:,} bytes, which no line of ours is")
    if rest and is_row(rest):
        yield [rest]


def row_at(file: Path, number: int, line: bytes) -> Row:
    """The row of a line; an error names the file and the line."""
    try:
        return row_of(line)
    except ValueError as error:
        raise ValueError(f"{file}, line {number}: {error}") from None


def row_of(line: bytes) -> Row:
    """The row of a line: a step, and figures that are finite numbers, by their names of today."""
    try:
        row: Any = json.loads(line)
    except (ValueError, RecursionError):
        row = None
    if not isinstance(row, dict) or "step" not in row:
        raise ValueError("not valid JSON with a step")
    if type(row["step"]) is not int or not 0 <= row["step"] <= MANY_STEPS:
        raise ValueError(f"the step must be a whole number from 0 on, got {shown(row['step'])}")
    for name, value in row.items():
        if type(value) not in (int, float) or not -LARGEST <= value <= LARGEST:
            raise ValueError(f"{shown(name)} must be a finite number, got {shown(value)}")
    renamed = RENAMED if "ratio" in row else {}  # `entropy` alone is that of an actor and critic
    return {renamed.get(str(name), str(name)): value for name, value in row.items()}


def is_row(line: bytes) -> bool:
    """Whether a line is one of metrics."""
    try:
        row_of(line)
    except ValueError:
        return False
    return True


def shown(value: object) -> str:
    """The beginning of a value, as JSON has it."""
    return f"{json.dumps(value):.40}"
