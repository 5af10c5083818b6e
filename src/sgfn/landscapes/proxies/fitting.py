"""Fitting a proxy to measured sequences, and choosing its kind by cross-validation."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from jaxtyping import Float64
from torch import Tensor

from sgfn.config.checks import in_range, whole_number
from sgfn.landscapes.proxies.base import TRUST, Candidate, FittedModel, ProxyReport, TrainingSet
from sgfn.landscapes.proxies.calibration import calibrate, coverage, rank_correlation
from sgfn.landscapes.proxies.pool import pool_of
from sgfn.landscapes.proxies.proxy import Proxy, token_rows
from sgfn.landscapes.proxies.registry import AUTO, PROXIES, check_kind, kinds_for
from sgfn.landscapes.replicates import merge_replicates

FEWEST = 4
"""Distinct sequences at least."""


@dataclass(frozen=True, kw_only=True)
class Units:
    """How standard units become the user's: score = shift + scale * target."""

    shift: float
    scale: float


def fit_proxy(
    sequences: Sequence[str],
    scores: Float64[np.ndarray, " N"],
    *,
    alphabet: str,
    sd: Float64[np.ndarray, " N"] | None = None,
    weights: Float64[np.ndarray, " N"] | None = None,
    kind: str = AUTO,
    seed: int = 0,
    folds: int = 5,
    max_length: int | None = None,
    device: str = "cpu",
) -> Proxy:
    """Mean and uncertainty for every sequence up to a length, fitted to measured ones.

    Replicates are averaged. `auto` tries each kind that suits the data, and the mean of the better ones, and takes what
    has the smallest squared error out of fold; `design` is an ensemble where positions mean something, else as `auto`.
    On another device than the host ensembles of letters are only trained there; the proxy is on the host all the same.
    """
    scores = checked_rows(sequences, scores, sd, weights)
    merged = merge_replicates(sequences, scores, sd, weights)
    data, units = training_set(merged.sequences, merged.scores, merged.sd, merged.weights, alphabet, max_length)
    data = replace(data, fold=fold_numbers(len(merged.sequences), folds, seed), seed=seed, device=device)
    check_kind(kind)
    with torch.no_grad():
        models = {name: PROXIES[name].fit(data) for name in kinds_for(kind, data)}
        if len(models) > 1:
            models["pool"] = pool_of(models, data)
    tried = [(assess(name, fitted, data, units), fitted) for name, fitted in models.items()]
    tried.sort(key=lambda one: one[0].rmse)
    (best, fitted) = tried[0]
    fit = calibrate(data.targets - fitted.mean, fitted.sd, data.noise)
    report = ProxyReport(
        kind=best.kind,
        rows=len(sequences),
        sequences=merged.sequences,
        measured=merged.scores,
        predicted=(units.shift + units.scale * fitted.mean).numpy(),
        sd=(units.scale * fit.sd(fitted.sd)).numpy(),
        folds=data.folds,
        candidates=[one for one, _ in tried],
    )
    return Proxy(
        model=fitted.model,
        kind=best.kind,
        alphabet=alphabet,
        max_length=data.tokens.shape[1],
        shift=units.shift,
        scale=units.scale,
        calibration=fit,
        report=report,
    )


def checked_rows(
    sequences: Sequence[str],
    scores: Float64[np.ndarray, " N"],
    sd: Float64[np.ndarray, " N"] | None,
    weights: Float64[np.ndarray, " N"] | None,
) -> Float64[np.ndarray, " N"]:
    """The scores, after every array was found to fit the sequences and to be finite."""
    for name, values in (("scores", scores), ("sd", sd), ("weights", weights)):
        if values is None:
            continue
        if len(values) != len(sequences):
            raise ValueError(f"{name} must have one number for each of {len(sequences)} sequences, got {len(values)}")
        if not np.isfinite(values).all() or (name != "scores" and (values < 0).any()):
            raise ValueError(f"{name} must be finite{'' if name == 'scores' else ' and 0 or above'}")
    if len(set(sequences)) < FEWEST:
        raise ValueError(f"a proxy needs at least {FEWEST} different sequences, got {len(set(sequences))}")
    return np.asarray(scores, dtype=np.float64)


def training_set(
    sequences: list[str],
    scores: Float64[np.ndarray, " N"],
    sd: Float64[np.ndarray, " N"] | None,
    weights: Float64[np.ndarray, " N"],
    alphabet: str,
    max_length: int | None,
) -> tuple[TrainingSet, Units]:
    """Rows in standard units; all of fold 0."""
    longest = max(map(len, sequences))
    length = longest if max_length is None else max_length
    whole_number("max_length", length, longest)
    units = standard_units(scores, sd, weights)
    noise = torch.zeros(len(scores), dtype=torch.float64) if sd is None else torch.from_numpy(sd / units.scale)
    data = TrainingSet(
        tokens=token_rows(sequences, alphabet, length),
        targets=torch.from_numpy((scores - units.shift) / units.scale),
        noise=noise,
        weights=torch.from_numpy(weights / weights.mean()),
        fold=torch.zeros(len(scores), dtype=torch.int64),
        alphabet=alphabet,
        seed=0,
    )
    return data, units


def standard_units(
    scores: Float64[np.ndarray, " N"], sd: Float64[np.ndarray, " N"] | None, weights: Float64[np.ndarray, " N"]
) -> Units:
    """Mean and standard deviation of the scores, in which noisy rows count less."""
    noise = 0.0 if sd is None else sd**2
    reliable = weights / np.maximum(TRUST * scores.var() + noise, 1e-300)
    reliable = reliable / reliable.sum()
    shift = float(reliable @ scores)
    return Units(shift=shift, scale=float(np.sqrt(reliable @ (scores - shift) ** 2)) or 1.0)


def fold_numbers(rows: int, folds: int, seed: int) -> Tensor:
    """A fold for each row, at random and as equal in size as can be."""
    in_range("folds", folds, 2, 100)
    order = torch.randperm(rows, generator=torch.Generator().manual_seed(seed))
    return (torch.arange(rows) % min(folds, rows))[order.argsort()]


def assess(kind: str, fitted: FittedModel, data: TrainingSet, units: Units) -> Candidate:
    """Figures of one kind's predictions out of fold."""
    error = data.targets - fitted.mean
    return Candidate(
        kind=kind,
        spearman=rank_correlation(fitted.mean.numpy(), data.targets.numpy()),
        rmse=float(error.square().mean().sqrt()) * units.scale,
        coverage=coverage(error, fitted.sd, data.noise, data.fold),
    )
