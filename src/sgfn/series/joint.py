r"""Sample paths of several series that keep together what came together: a Gaussian copula over series and steps.

An observed value has the normal score $z = \Phi^{-1}(F(y))$ under the law that was forecast. Over windows that began at
the same time, scores of two series are correlated; with the matrix R of these correlations and the correlation r of
neighbouring steps, scores of joint paths are

.. math:: z_t = r\,z_{t-1} + \sqrt{1 - r^2}\;L e_t, \qquad L L^\top = R,

and each series' path has its values at these scores. Paths that a network drew keep their own order in time; each takes
the place of the joint path that it is most like, so that no series' own law changes.

References: Schefzik, Thorarinsdottir and Gneiting (2013), Uncertainty quantification in complex simulation models using
ensemble copula coupling, Statistical Science 28:616; Clark et al. (2004), The Schaake shuffle, Journal of
Hydrometeorology 5:243.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float64, Shaped
from scipy.optimize import linear_sum_assignment

MOST_JOINT = 200
"""Most series whose paths are drawn jointly; of more, each is drawn by itself."""
LARGEST = 4.0
"""Bound of the scores that are compared."""
LEAST_EIGENVALUE = 1e-6


@dataclass(frozen=True, kw_only=True, eq=False)
class Dependence:
    """Correlations of the normal scores of several series at the same time."""

    names: tuple[str, ...]
    matrix: Float64[np.ndarray, "S S"]

    def factor(self, names: Sequence[str]) -> Float64[np.ndarray, "G G"]:
        """A factor L of the correlations of some series, one of which may be unknown: it depends on no other."""
        at = [self.names.index(name) if name in self.names else -1 for name in names]
        part = np.array([[self.matrix[i, j] if min(i, j) >= 0 else 0.0 for j in at] for i in at])
        np.fill_diagonal(part, 1.0)
        return factored(part)


def factored(matrix: Float64[np.ndarray, "S S"]) -> Float64[np.ndarray, "S S"]:
    """A square root of the nearest correlation matrix: eigenvalues below zero are left out, and the diagonal is one."""
    values, vectors = np.linalg.eigh((matrix + matrix.T) / 2)
    root = vectors * np.sqrt(np.maximum(values, LEAST_EIGENVALUE))
    return root / np.sqrt(np.square(root).sum(1, keepdims=True))


def dependence_of(
    scores: Float64[np.ndarray, "N H"], names: Sequence[str], starts: Shaped[np.ndarray, " N"], tie: float
) -> Dependence | None:
    r"""Correlations of series over windows that began at the same time, shrunk towards none; None where none did.

    With n values in common, whose neighbours have the correlation r, and S series, correlations are multiplied by
    $n' / (n' + S)$ with $n' = n (1 - r) / (1 + r)$, the number of independent values.
    """
    series = tuple(dict.fromkeys(names))
    times = {time: at for at, time in enumerate(dict.fromkeys(starts.tolist()))}
    if not 2 <= len(series) <= MOST_JOINT or len(times) == len(names):
        return None
    table = np.full((len(series), len(times), scores.shape[1]), np.nan)
    for row, name, start in zip(scores, names, starts.tolist(), strict=True):
        table[series.index(name), times[start]] = np.clip(row, -LARGEST, LARGEST)
    flat = table.reshape(len(series), -1)
    seen = (~np.isnan(flat)).astype(np.float64)
    filled = np.nan_to_num(flat)
    count = seen @ seen.T
    sizes = np.square(filled) @ seen.T  # of row i where row j was seen too
    found = np.divide(filled @ filled.T, np.sqrt(sizes * sizes.T), out=np.zeros_like(count), where=sizes * sizes.T > 0)
    alone = count * (1 - tie) / (1 + tie)
    matrix = found * alone / (alone + len(series))
    np.fill_diagonal(matrix, 1.0)
    return Dependence(names=series, matrix=matrix)


def joint_noise(
    factor: Float64[np.ndarray, "G G"], samples: int, horizon: int, rng: np.random.Generator
) -> Float64[np.ndarray, "G N H"]:
    """Standard normal numbers, correlated between the G series, independent between samples and steps."""
    return np.einsum("gk,knh->gnh", factor, rng.normal(size=(len(factor), samples, horizon)))


def matched(template: Float64[np.ndarray, "N H"], drawn: Float64[np.ndarray, "N H"]) -> Float64[np.ndarray, "N H"]:
    """Drawn paths in the order in which they are most like those of a template, by least squares in all.

    >>> matched(np.array([[2.0], [-1.0], [0.5]]), np.array([[-3.0], [0.0], [4.0]]))[:, 0].tolist()
    [4.0, -3.0, 0.0]
    """
    return drawn[linear_sum_assignment(-template @ drawn.T)[1]]
