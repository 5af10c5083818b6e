"""A channel from the lab: pairs of what was intended and what came out, read, fitted and written as a noise file."""

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pandas as pd
import torch
from jaxtyping import Int
from torch import Tensor

from sgfn.config.checks import one_of, shorten
from sgfn.config.files import nulls, write_json
from sgfn.config.tables import Table, spell
from sgfn.config.tasks import LONGEST
from sgfn.design.rounds import check_folder, writing
from sgfn.landscapes.measurements import guess_alphabet, resolve_alphabet, table_of
from sgfn.noise.fitting import INDELS, MODELS, ChannelModel, ModelFit, PairRows, RateInterval, fit_models, intervals
from sgfn.noise.indel import Indel
from sgfn.noise.indel_files import CHANNEL_FILE, FIT_FILE, few_words, write_indel

Pairs = Path | str | pd.DataFrame | Iterable[Sequence[Any]]
"""A table with columns intended, realised and, where there is one, count; or such rows."""
Choice = Literal["auto", "uniform", "letter", "position"]
COLUMNS = ("intended", "realised")
NOISE_FILE, PICTURE = CHANNEL_FILE, "channel.png"
MOST_PAIRS = 10**6
"""Pairs that are read at most, counts aside."""


@dataclass(frozen=True, kw_only=True)
class ChannelFit:
    """The channel that pairs show: its rates with intervals, and how well simpler and richer channels fit."""

    noise: Indel
    model: ChannelModel
    alphabet: str
    pairs: int
    letters: int
    """Letters that were intended."""
    level: float
    """Probability that an interval holds its rate."""
    rates: list[RateInterval]
    models: list[ModelFit]
    """All channels that were fitted; `noise` is of the chosen one."""

    @property
    def notice(self) -> str:
        """That it was fitted to too few letters to be relied on; else empty."""
        return few_words(self.pairs, self.letters)

    def to_frame(self) -> pd.DataFrame:
        """A row for each rate."""
        return pd.DataFrame([asdict(rate) for rate in self.rates])

    def to_json(self) -> dict[str, Any]:
        """Plain data; a channel under which some pair cannot happen has no likelihood."""
        facts = {name: getattr(self, name) for name in ("model", "alphabet", "pairs", "letters", "level")}
        told = ("model", "parameters", "log_likelihood", "bic", "rounds")
        models = [{name: getattr(fit, name) for name in told} | {"about": MODELS[fit.model]} for fit in self.models]
        facts |= {"notice": self.notice} if self.notice else {}
        return nulls(facts | {"rates": [asdict(rate) for rate in self.rates], "models": models})

    def save(self, file: Path | str) -> None:
        """Write the noise file that `--noise.kind indel --noise.file` reads."""
        write_indel(Path(file), self.noise, self.alphabet)

    def write(self, folder: Path, *, overwrite: bool = False, picture: Callable[[Path], object] | None = None) -> None:
        """Write noise file and all figures into a folder, together; `picture` writes the picture there."""
        check_folder(folder, overwrite=overwrite, known=FIT_FILE, what="a channel")
        with writing(folder, (NOISE_FILE, FIT_FILE, PICTURE)) as new:
            self.save(new / NOISE_FILE)
            write_json(new / FIT_FILE, self.to_json())
            if picture is not None:
                picture(new / PICTURE)


def fit_channel(pairs: Pairs, alphabet: str | None = None, *, model: Choice = "auto", level: float = 0.9) -> ChannelFit:
    """Fit rates of substitutions, deletions and insertions to pairs of intended and realised sequences.

    `pairs` is a table (a frame or the name of a file) with columns intended, realised and, if there is one, count, or
    rows of these. `auto` takes the channel with the lowest BIC among those that delete and insert: one rate of each
    kind, rates by letter with a confusion matrix, or rates by position (orders of one length).

    >>> fit = fit_channel([("ACGT", "ACGT", 96), ("ACGT", "AGT", 2), ("ACGT", "ACTT", 2)])
    >>> fit.model, fit.pairs, [(rate.kind, round(rate.rate, 4)) for rate in fit.rates[:3]]
    ('uniform', 100, [('substitution', 0.005), ('deletion', 0.005), ('insertion', 0.0)])
    """
    one_of("model", model, ("auto", *INDELS))
    letters, rows = read_pairs(pairs, alphabet)
    if model == "position" and not rows.one_length:
        raise ValueError("model 'position' needs intended sequences of one length, and these have several: use letter")
    fits = fit_models(rows)
    able = [fit for fit in fits if fit.model in INDELS]
    chosen = min(able, key=lambda fit: fit.bic) if model == "auto" else next(f for f in able if f.model == model)
    return ChannelFit(
        noise=chosen.noise,
        model=chosen.model,
        alphabet=letters,
        pairs=round(float(rows.counts.sum())),
        letters=round(rows.letters),
        level=level,
        rates=intervals(chosen, letters, level),
        models=fits,
    )


def read_pairs(pairs: Pairs, alphabet: str | None = None) -> tuple[str, PairRows]:
    """The letters, and the distinct pairs of a table with how often each was seen."""
    if not isinstance(pairs, Path | str | pd.DataFrame):
        pairs = _framed(pairs)
    table = table_of(pairs, "pairs", "pair of sequences")
    for column in COLUMNS:
        if column not in table.columns:
            raise table.header_problem(f"the header has no column {column!r}: it needs intended and realised")
    if len(table.frame) > MOST_PAIRS:
        fix = "write equal pairs once, with a count"
        raise table.problem(f"{len(table.frame):,} rows are more than {MOST_PAIRS:,}; {fix}")
    texts = [spell(table.frame[column]) for column in COLUMNS]
    if alphabet is None:
        _refuse_unread(table, texts)
    letters = resolve_alphabet(alphabet, "alphabet") if alphabet else guess_alphabet([*texts[0], *texts[1]])
    if len(letters) < 2:
        raise table.problem("sequences of one letter tell no channel: name the letters with --alphabet")
    cased = [[text if set(text) <= set(letters) else text.upper() for text in column] for column in texts]
    for row, (intended, realised) in enumerate(zip(*cased, strict=True)):
        _check(table, row, intended, realised, letters)
    counts = _counts(table)
    merged: dict[tuple[str, str], int] = {}
    for pair, count in zip(zip(*cased, strict=True), counts, strict=True):
        merged[pair] = merged.get(pair, 0) + count
    intended, realised = zip(*merged, strict=True)
    weights = torch.tensor(list(merged.values()), dtype=torch.float64)
    rows = {"orders": _coded(intended, letters), "found": _coded(realised, letters)}
    return letters, PairRows(**rows, counts=weights, vocab=len(letters))


def _framed(rows: Iterable[Sequence[Any]]) -> pd.DataFrame:
    listed = [list(row) for row in rows]
    widths = {len(row) for row in listed}
    if not listed or not widths <= {2, 3} or len(widths) > 1:
        raise ValueError("pairs must be rows (intended, realised) or (intended, realised, count), one at least")
    return pd.DataFrame(listed, columns=pd.Index([*COLUMNS, "count"][: widths.pop()]))


def _refuse_unread(table: Table, texts: list[list[str]]) -> None:
    """Raise where signs of aligners and sequencers would be taken for letters: gaps, N beside bases, U beside T."""
    used = set("".join(text for column in texts for text in column).upper())
    wrong = used & set("-.") or (used & {"N"} if used <= set("ACGTUN") else set())
    if wrong:
        sign = min(wrong)
        what = "gaps are no letters: write sequences without them" if sign in "-." else "an unread base is no letter"
        row, column = next(
            (row, name)
            for name, column in zip(COLUMNS, texts, strict=True)
            for row, text in enumerate(column)
            if sign in text.upper()
        )
        raise table.problem(
            f"holds {sign!r}, and {what}; leave such rows out, or name the letters with --alphabet", row, column
        )
    if {"T", "U"} <= used <= set("ACGTU"):
        raise table.header_problem("T and U are mixed: write both columns as DNA or both as RNA")


def _check(table: Table, row: int, intended: str, realised: str, letters: str) -> None:
    """Raise for a pair that the model cannot have made."""
    for column, text in zip(COLUMNS, (intended, realised), strict=True):
        if not text:
            raise table.problem("nothing is written here: leave the row out if it was not sequenced", row, column)
        if len(text) > LONGEST:
            raise table.problem(f"{len(text):,} letters, more than {LONGEST}: cut flanks that are fixed", row, column)
        if wrong := sorted(set(text) - set(letters)):
            what = f"{shorten(text)!r} holds {wrong[0]!r}, which is not among {letters}"
            raise table.problem(f"{what}; correct the row, or name the letters with --alphabet", row, column)
    if len(realised) > 2 * len(intended):
        what = f"{len(realised)} letters came out of {len(intended)}, more than twice as many"
        raise table.problem(f"{what}: leave out what was read wrongly", row, "realised")


def _counts(table: Table) -> list[int]:
    if "count" not in table.columns:
        return [1] * len(table.frame)
    found = []
    for row, text in enumerate(table.texts("count")):
        if not (text.isascii() and text.isdigit() and len(text) <= 9 and int(text)):
            raise table.problem(f"{shorten(text)!r} is no whole number from 1 to 999999999", row, "count")
        found.append(int(text))
    return found


def _coded(texts: Sequence[str], letters: str) -> Int[Tensor, "N L"]:
    """Rows of letters by their numbers, V behind them."""
    code = {letter: number for number, letter in enumerate(letters)}
    rows = np.full((len(texts), max(map(len, texts))), len(letters), dtype=np.int64)
    for number, text in enumerate(texts):
        rows[number, : len(text)] = [code[letter] for letter in text]
    return torch.from_numpy(rows)


def likelihood_words(fit: ModelFit) -> str:
    """The log-likelihood of a channel as text; that some pair cannot happen under it where there is none."""
    return f"{fit.log_likelihood:.1f}" if math.isfinite(fit.log_likelihood) else "impossible"
