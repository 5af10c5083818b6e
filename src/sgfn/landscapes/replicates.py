"""Replicates: rows that measured the same sequence, averaged, with the standard error of the average."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float64, Int64


@dataclass(frozen=True, kw_only=True)
class Averages:
    """Distinct sequences in the order of their first row."""

    sequences: list[str]
    scores: Float64[np.ndarray, " N"]
    sd: Float64[np.ndarray, " N"] | None
    """Standard error of each score; None where nothing tells it."""
    weights: Float64[np.ndarray, " N"]
    counts: Int64[np.ndarray, " N"]
    """Rows that were averaged."""


def merge_replicates(
    sequences: Sequence[str],
    scores: Float64[np.ndarray, " R"],
    sd: Float64[np.ndarray, " R"] | None = None,
    weights: Float64[np.ndarray, " R"] | None = None,
) -> Averages:
    r"""Weighted mean of each sequence's rows, and its standard error.

    With standard deviations $\sigma_i$ of rows it is $\sqrt{\sum w_i^2\sigma_i^2} / \sum w_i$. Without them, the
    variance of a row is pooled over all sequences with replicates,
    $\sum_s \sum_i (y_i - \bar y_s)^2 / \sum_s (n_s - 1)$; without replicates nothing tells it.

    >>> found = merge_replicates(["A", "C", "A"], np.array([1.0, 5.0, 3.0]))
    >>> found.sequences, found.scores.tolist(), found.sd.round(6).tolist(), found.counts.tolist()
    (['A', 'C'], [2.0, 5.0], [1.0, 1.414214], [2, 1])
    """
    number: dict[str, int] = {}
    index = np.array([number.setdefault(text, len(number)) for text in sequences], dtype=np.int64)
    weight = np.ones(len(scores)) if weights is None else np.asarray(weights, dtype=np.float64)
    if weight.sum() <= 0:
        raise ValueError("weights must not all be 0")
    counts = np.bincount(index, minlength=len(number))
    total = np.bincount(index, weight, len(number))
    share = np.where(total[index] > 0, weight / np.where(total > 0, total, 1.0)[index], 1.0 / counts[index])
    mean = np.bincount(index, share * scores, len(number))
    variance = row_variance(scores - mean[index], counts) if sd is None else sd**2
    error = None if variance is None else np.sqrt(np.bincount(index, share**2 * variance, len(number)))
    mean_weight = np.maximum(total / counts, 1e-6 * total.max())
    return Averages(sequences=list(number), scores=mean, sd=error, weights=mean_weight, counts=counts)


def row_variance(
    deviations: Float64[np.ndarray, " R"], counts: Int64[np.ndarray, " N"]
) -> Float64[np.ndarray, ""] | None:
    """Variance of a single row, pooled over sequences with replicates; None where there are none."""
    spare = int((counts - 1).sum())
    return np.asarray((deviations**2).sum() / spare) if spare else None
