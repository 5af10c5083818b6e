"""The corpus of bad inputs: each gets one line on standard error, exit code 2, and leaves nothing behind."""

from collections import Counter
from pathlib import Path

import pytest
from benchmarks.soak.folders import Bases
from benchmarks.soak.forks import ForkServer
from benchmarks.soak.outcomes import contents
from benchmarks.soak.rows import Row, judge, lay_out
from corpus import ROWS

from sgfn.cli.commands import COMMANDS

QUICK = 3
"""Of so many rows `make test` runs one, `make faults` and `make soak` run all."""


def parameter(number: int) -> object:
    """A row by its number."""
    return pytest.param(ROWS[number], id=ROWS[number].name, marks=[pytest.mark.long] * (number % QUICK > 0))


@pytest.mark.parametrize("row", [parameter(number) for number in range(len(ROWS))])
def test_a_bad_input_gets_one_line(row: Row, server: ForkServer, bases: Bases, tmp_path: Path) -> None:
    if row.base:
        bases.lay(row.base, tmp_path)
    lay_out(tmp_path, row.files)
    before = contents(tmp_path)
    ended = server.run(row.words, tmp_path, **row.circumstances)
    assert judge(row, ended, before, tmp_path) == [], (ended.code, ended.out[-1000:], ended.err[-2000:])


def test_every_verb_has_its_rows() -> None:
    for rows in (ROWS, ROWS[::QUICK]):
        verbs = Counter(" ".join(row.words[: 1 + (row.words[0] == "design")]) for row in rows if row.words)
        assert len(rows) >= 300
        assert {verb: verbs[verb] for verb in COMMANDS if verbs[verb] < 10} == {}
    assert [name for name, count in Counter(row.name for row in ROWS).items() if count > 1] == []
