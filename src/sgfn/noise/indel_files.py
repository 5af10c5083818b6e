"""Tables of insertions, deletions and substitutions, by letter or by position: read and written.

By letter: a first column `intended` of letters, a column for each realised letter (the law of what is written; counts
will do) or one `substitution`, then `deletion` and `insertion`; a row `inserted` has the law of inserted letters. By
position: `position`, `substitution`, `deletion`, `insertion`. Rates that are not there are zero, inserted letters
uniform.
"""

import math
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import torch
from jaxtyping import Float64
from torch import Tensor

from sgfn.config.files import read_json, write_text
from sgfn.noise.files import FIELD, amounts, check_positions, match_labels, rate_column, read_laws
from sgfn.noise.indel import Indel, scaled, wrong_letters

if TYPE_CHECKING:
    from sgfn.config.tables import Table

KINDS = ("substitution", "deletion", "insertion")
CHANNEL_FILE, FIT_FILE = "channel.csv", "channel.json"
"""A fitted channel as a noise file, and beside it what it was fitted to."""
FEW_LETTERS = 1000
"""Intended letters below which a fit tells little: at one error in a hundred, ten errors are seen among so many."""
INSERTED = "inserted"
"""Label of the row of inserted letters."""


def read_indel(
    file: Path,
    alphabet: str,
    length: int | None = None,
    *,
    scale: float = 1.0,
    flank: tuple[int, ...] = (),
    spare: int = 2,
) -> Indel:
    """The noise in a table, with its rates multiplied by a number; `length` is the least number of positions."""
    from sgfn.config.tables import read_table  # pandas is slow to import, and large

    table = read_table(file, FIELD, each="letter or position")
    if not {*KINDS, "position"} & set(table.columns):
        raise table.header_problem(f"the header has none of the columns {', '.join(KINDS)}")
    made = _by_cycle(table, alphabet, length) if "position" in table.columns else _by_letter(table, alphabet)
    notices, made = [made.notice, _fitted_to_few(file)], scaled(replace(made, flank=flank, spare=spare), scale)
    object.__setattr__(made, "notice", "; ".join(filter(None, notices)))
    return made


def few_words(pairs: int, letters: int) -> str:
    """What to say of a channel that was fitted to few letters; empty of one that was not."""
    if letters >= FEW_LETTERS:
        return ""
    seen = f"{pairs:,} pair{'s' * (pairs != 1)} with {letters:,} intended letters"
    return f"fitted to {seen}, fewer than {FEW_LETTERS:,}: its rates are guesses, see their intervals; sequence more"


def _fitted_to_few(file: Path) -> str:
    """The same of a noise file that `design channel` wrote; of any other nothing is known."""
    beside = file.with_name(FIT_FILE)
    if file.name != CHANNEL_FILE or not beside.is_file():
        return ""
    try:
        facts = read_json(beside)
        told = few_words(int(facts["pairs"]), int(facts["letters"]))
    except (ValueError, TypeError, KeyError, OSError):  # somebody else's file of that name
        return ""
    return f"{file} was {told}" if told else ""


def write_indel(file: Path, noise: Indel, alphabet: str) -> None:
    """Write the table that `read_indel` reads; rates that differ by cycle must be those of all letters alike."""
    write_text(file, indel_text(noise, alphabet))


def indel_text(noise: Indel, alphabet: str) -> str:
    """The table of a noise as CSV."""
    law, lost, added = noise.tables()
    if noise.by_cycle:
        wrong = 1.0 - law.diagonal(dim1=-2, dim2=-1)[:, 0]
        rows = [[str(t + 1), *_spelled([wrong[t], lost[t, 0], added[t, 0]])] for t in range(len(lost))]
        return _lines([["position", *KINDS], *rows])
    rows = [[a, *_spelled([*law[0, n], lost[0, n], added[0, n]])] for n, a in enumerate(alphabet)]
    return _lines([["intended", *alphabet, *KINDS[1:]], *rows, [INSERTED, *_spelled([*noise.inserted]), "", ""]])


def _spelled(values: list[Tensor]) -> list[str]:
    return [f"{float(value):.10g}" for value in values]


def _lines(rows: list[list[str]]) -> str:
    return "".join(",".join(row) + "\n" for row in rows)


def _by_cycle(table: "Table", alphabet: str, length: int | None) -> Indel:
    check_positions(table)
    if wrong := [name for name in table.columns if name not in ("position", *KINDS)]:
        raise table.header_problem(f"rates by position have no other columns than {', '.join(KINDS)}", wrong[0])
    rates, vocab = _rates(table), len(alphabet)
    if length is not None and len(table.frame) < length:
        raise ValueError(f"{table.name} has {len(table.frame)} positions, the task has {length}: add rows")
    return Indel(
        substitution=wrong_letters(rates["substitution"], vocab),
        deletion=rates["deletion"][:, None].repeat(1, vocab),
        insertion=rates["insertion"][:, None].repeat(1, vocab),
        inserted=torch.full((vocab,), 1.0 / vocab, dtype=torch.float64),
    )


def _by_letter(table: "Table", alphabet: str) -> Indel:
    first, labels = table.columns[0], [*alphabet]
    extra = [row for row, text in enumerate(table.texts(first)) if text.lower() == INSERTED]
    own = _rows(table, [row for row in range(len(table.frame)) if row not in extra])
    letters = [name for name in table.columns[1:] if name not in KINDS]
    if letters and "substitution" in table.columns:
        raise table.header_problem("there are columns of letters too: leave this one out", "substitution")
    if len(extra) > 1:
        raise table.problem(f"there are {len(extra)} rows {INSERTED!r}: leave one", extra[1], first)
    order = torch.tensor(match_labels(own, "the first column", own.texts(first), labels))
    rates = {
        name: torch.zeros(len(labels), dtype=torch.float64).index_copy(0, order, values)
        for name, values in _rates(own).items()
    }
    law, notice = read_laws(own, labels, letters) if letters else (_own_kept(rates["substitution"]), "")
    made = Indel(
        substitution=law,
        deletion=rates["deletion"],
        insertion=rates["insertion"],
        inserted=_inserted(_rows(table, extra), letters, labels),
    )
    object.__setattr__(made, "notice", notice)
    return made


def _rows(table: "Table", kept: list[int]) -> "Table":
    return replace(table, frame=table.frame.iloc[kept].reset_index(drop=True), lines=table.lines[kept])


def _rates(table: "Table") -> dict[str, Float64[Tensor, " R"]]:
    """Rates of each kind, zero where there is no such column."""
    none = [0.0] * len(table.frame)
    found = {name: rate_column(table, name) if name in table.columns else none for name in KINDS}
    for row, (lost, added) in enumerate(zip(found["deletion"], found["insertion"], strict=True)):
        if lost + added >= 1.0:
            raise table.problem(f"deletion and insertion together are {lost + added:g}, they must stay below 1", row)
    return {name: torch.tensor(values, dtype=torch.float64) for name, values in found.items()}


def _own_kept(rate: Float64[Tensor, " V"]) -> Float64[Tensor, "V V"]:
    """The law of what is written for letters that each have their own rate of errors."""
    vocab = len(rate)
    return wrong_letters(rate, vocab)[torch.arange(vocab), torch.arange(vocab)]


def _inserted(table: "Table", letters: list[str], labels: list[str]) -> Float64[Tensor, " V"]:
    """The law of inserted letters, uniform where no row has it."""
    if not len(table.frame):
        return torch.full((len(labels),), 1.0 / len(labels), dtype=torch.float64)
    columns = match_labels(table, "the header", letters, labels)
    values = [amounts(table, name)[0] for name in letters]
    total = math.fsum(values)
    if not total > 0.0:
        raise table.problem(f"row {INSERTED!r} sums to {total:g}, it must be a law or counts", 0)
    return torch.zeros(len(labels), dtype=torch.float64).index_copy(
        0, torch.tensor(columns), torch.tensor(values, dtype=torch.float64) / total
    )
