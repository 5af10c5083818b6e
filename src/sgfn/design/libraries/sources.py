"""Where scores of a library's outcomes come from: a task, or a user's table through a proxy or as it is."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pandas as pd
import torch
from jaxtyping import Float64, Int

from sgfn.config import TrainConfig
from sgfn.design.designer import Designer, report_of
from sgfn.design.libraries.codons import RESIDUES
from sgfn.design.libraries.scores import (
    MOST_CELLS,
    MOST_SITES,
    RESIDUE_COUNT,
    DrawnScore,
    LibraryScore,
    PairScore,
    Predict,
    TableScore,
    Values,
)
from sgfn.design.libraries.template import Template
from sgfn.design.measured import Source
from sgfn.envs import SequenceEnv
from sgfn.landscapes.proxies.ridge import Ridge
from sgfn.landscapes.tasks import make_task

Unseen = Literal["proxy", "lowest"]
MOST_VARIED = 24
"""Sites at most."""
BLOCK = 65536
"""Outcomes that are scored at once."""


@dataclass(frozen=True, kw_only=True, eq=False)
class ScoreSource:
    """Scores of outcomes, higher is better, and what to tell of where they come from."""

    score: LibraryScore
    name: str
    sign: float = 1.0
    """-1 where the user's scores are better the lower they are: those of `score` are negated."""
    proxy: dict[str, Any] | None = None
    """What cross-validation says of the proxy."""
    notices: list[str] = field(default_factory=list)


def task_source(name: str, sites: int | None, stop: float | None) -> ScoreSource:
    """Scores of a task of proteins of one length."""
    task = make_task(name, TrainConfig().with_(noise__alpha=0.0))
    env = task.env
    if not isinstance(env, SequenceEnv) or env.stop or {*env.alphabet} != {*RESIDUES[:RESIDUE_COUNT]}:
        raise ValueError(
            f"task {name!r} is not one of proteins of one length: codons make residues; try gb1, or a table"
        )
    if sites is not None and sites != env.length:
        raise ValueError(f"{sites} positions are named and task {name!r} has {env.length} sites: name as many")
    letter = torch.tensor([env.alphabet.index(residue) for residue in RESIDUES[:RESIDUE_COUNT]])

    def predict(rows: Int[np.ndarray, "N m"]) -> Values:
        return task.landscape.scores(letter[torch.from_numpy(rows)]).double().numpy()[None]

    return ScoreSource(score=score_of(predict, env.length, 0.0 if stop is None else stop), name=name)


def table_source(
    table: Source, template: Template | None, stop: float | None, unseen: Unseen, settings: dict[str, Any]
) -> ScoreSource:
    """Scores by a proxy of a user's table, or of the table as it is with the worst score for what it does not hold."""
    chosen = {key: value for key, value in settings.items() if key != "alphabet"}
    designer, name = Designer("protein", **chosen).fit(table, flags=True), name_of(table)
    if settings.get("alphabet") != "protein":
        _refuse_dna(name, designer)
    length, sites = _lengths(name, designer, template)
    sign, scores = designer.sign, designer.measured.score.to_numpy(dtype=float)
    worst = float((sign * scores).min()) if stop is None else sign * stop
    parent = "" if template is None or length == sites else template.protein
    positions = range(1, sites + 1) if not parent or template is None else template.positions
    places = np.array(positions) - 1
    notices = [f"{name}: columns not read: {', '.join(designer.ignored[:8])}"] if designer.ignored else []
    notices += [f"{name}: {notice}" for notice in designer.notices]
    if unseen == "lowest":
        found = _whole_table(designer, parent, places, worst)
        return ScoreSource(score=found, name=name, sign=sign, notices=notices)
    proxy = designer.fitted()
    base = proxy.tokens([parent or RESIDUES[0] * sites])[0]

    def predict(rows: Int[np.ndarray, "N m"]) -> Values:
        tokens = base.repeat(len(rows), 1)
        tokens[:, places] = torch.from_numpy(rows)
        found = torch.cat([proxy.mean_tokens(tokens)[None], proxy.member_tokens(tokens)]).numpy()
        return sign * designer.transform.scores(found.ravel()).reshape(found.shape)

    score = None
    if designer.config.transform == "none" and isinstance(proxy.model, Ridge):
        score = ridge_score(proxy.model, base.numpy(), places, (proxy.shift, proxy.scale, worst))
    score = score or score_of(predict, sites, worst)
    return ScoreSource(score=score, name=name, sign=sign, proxy=report_of(proxy), notices=notices)


def _refuse_dna(table: str, designer: Designer) -> None:
    """Raise where all letters are those of DNA: residues A, C, G and T alone are rare, tables of genes are not."""
    used = {letter for text in designer.measured.sequence for letter in text}
    if used <= set("ACGT"):
        what = f"{table}: all letters are among A, C, G and T, and residues are expected"
        fix = "add --alphabet protein (in Python table={'alphabet': 'protein'}) if these are residues"
        raise ValueError(f"{what}: translate the genes, or {fix}")


def _lengths(table: str, designer: Designer, template: Template | None) -> tuple[int, int]:
    """Letters of the table's sequences, and number of sites."""
    lengths = sorted({*designer.measured.sequence.str.len()})
    if len(lengths) > 1:
        raise ValueError(f"{table}: sequences have {lengths[0]} to {lengths[-1]} letters; libraries need one length")
    (length,) = lengths
    if template is None:
        if length > MOST_VARIED:
            what = f"{table}: sequences have {length} letters, {MOST_VARIED} sites at most can be varied"
            raise ValueError(f"{what}; name the residues to vary with --template and --positions")
        return length, length
    sites, whole = len(template.positions), len(template.protein)
    if length not in (sites, whole):
        what = f"{table}: sequences have {length} letters; the template has {whole} residues and {sites} positions"
        raise ValueError(f"{what} are varied: give whole proteins, or the varied residues alone")
    return length, sites


def score_of(predict: Predict, sites: int, stop: float) -> LibraryScore:
    """Exact scores where all outcomes can be listed, else draws."""
    if sites > MOST_SITES:
        return DrawnScore(predict, sites, stop=stop)
    shape = [RESIDUE_COUNT] * sites
    most = max(1, MOST_CELLS // len(RESIDUES) ** sites)
    rows = np.stack(np.unravel_index(np.arange(RESIDUE_COUNT**sites), shape), 1)
    found = np.concatenate([predict(rows[i : i + BLOCK])[: most + 1] for i in range(0, len(rows), BLOCK)], 1)
    found = found.reshape(len(found), *shape)
    return TableScore(found[0], stop=stop, members=found[1:] if len(found) > 1 else None)


def _whole_table(designer: Designer, parent: str, places: Int[np.ndarray, " m"], worst: float) -> TableScore:
    """The measured scores, the mean of replicates, and the worst one where nothing was measured."""
    if len(places) > MOST_SITES:
        raise ValueError(f"--unseen lowest is for up to {MOST_SITES} sites, got {len(places)}: use --unseen proxy")
    found = np.full([RESIDUE_COUNT] * len(places), worst)
    means = (designer.sign * designer.measured.score).groupby(designer.measured.sequence).mean()
    for sequence, score in means.items():
        letters = str(sequence)
        inside = "".join(letters[place] for place in places)
        same = not parent or all(
            a == b for i, (a, b) in enumerate(zip(letters, parent, strict=True)) if i not in places
        )
        if same:
            found[tuple(RESIDUES.index(letter) for letter in inside)] = score
    return TableScore(found, stop=worst)


Units = tuple[float, float, float]
"""Shift and scale from a proxy's values to scores, and the score of a stop."""


def ridge_score(
    model: Ridge, base: Int[np.ndarray, " L"], places: Int[np.ndarray, " m"], units: Units
) -> LibraryScore | None:
    """Scores of a ridge proxy, a sum over pairs of sites: exact at any number of them; None where lengths vary."""
    if model.features.variable:
        return None
    if len(places) > MOST_SITES:
        return pair_score(model, base, places, units)
    most = max(1, MOST_CELLS // len(RESIDUES) ** len(places))
    tables = [
        pair_score(model, base, places, units, number).table() for number in range(len(model.weights[: most + 1]))
    ]
    return TableScore(tables[0], stop=units[2], members=np.stack(tables[1:]))


def pair_score(
    model: Ridge, base: Int[np.ndarray, " L"], places: Int[np.ndarray, " m"], units: Units, number: int = 0
) -> PairScore:
    """The mean of a ridge proxy, or a draw from its posterior by its number, as a sum over sites and pairs of them."""
    features, sites = model.features, len(places)
    length, letters = features.length, features.letters
    weights = model.weights[number].double().numpy()
    single = weights[: length * letters].reshape(length, letters) / length**0.5
    pair = np.zeros((length, length, letters, letters))
    if features.pairs:
        count, begin = sum(length - apart for apart in range(1, features.reach + 1)), length * letters
        for apart in range(1, features.reach + 1):
            end = begin + (length - apart) * letters**2
            block = (
                weights[begin:end].reshape(length - apart, letters, letters) * (features.pairs / max(1, count)) ** 0.5
            )
            pair[np.arange(length - apart), np.arange(apart, length)] = block
            begin = end
    constant = float(model.offset) - float(model.centre.double().numpy() @ weights)
    return _restricted(single, pair, constant, base, places, units, sites)


def _restricted(
    single: Float64[np.ndarray, "L V"],
    pair: Float64[np.ndarray, "L L V V"],
    constant: float,
    base: Int[np.ndarray, " L"],
    places: Int[np.ndarray, " m"],
    units: Units,
    sites: int,
) -> PairScore:
    """The sum with all other positions at the parent's letters, in the units of the scores."""
    shift, scale, stop = units
    both = pair + pair.transpose(1, 0, 3, 2)  # i < j alone is filled, so this names each pair from both sides
    fixed = [i for i in range(len(base)) if i not in places]
    own = single[places].copy()
    for i in fixed:
        own += both[places, i, :, base[i]]
        constant += single[i, base[i]]
        constant += sum(pair[i, j, base[i], base[j]] for j in fixed if j > i)
    kept = np.array([[both[places[i], places[j]] for j in range(sites)] for i in range(sites)])
    return PairScore(single=scale * own, pair=scale * kept, constant=shift + scale * constant, stop=stop)


def is_table(source: Source) -> bool:
    """Whether a source is a frame or a file; a task's name has no ending and no file of that name lies here."""
    if isinstance(source, pd.DataFrame):
        return True
    path = Path(source)
    return path.exists() or path.suffix != "" or "/" in str(source)


def name_of(source: Source) -> str:
    """What messages call a source."""
    return "table" if isinstance(source, pd.DataFrame) else str(source)
