"""Weights of a backtest's windows that know how earlier ones of them came out, as a forecaster who goes on would.

The weights of a window are learned from the stack's windows, and from those of the backtest that ended before it began,
so that a backtest judges what a forecast of the future does, which reads all of them.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float64

from sgfn.series.stack import Stack, learn_stack
from sgfn.series.weights import Evidence

MANY_VALUES, GROWN = 1_000, 1.25
"""Of more values than this, weights are learned again only when windows have grown by that factor: it takes long."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Held:
    """Windows that were forecast by all laws: what weights are learned from."""

    evidence: Evidence
    series: list[str]
    groups: list[str]
    ended: Float64[np.ndarray, " N"]
    """When each window ended, in horizons."""

    def __len__(self) -> int:
        return len(self.series)

    def joined(self, other: "Held", rows: Sequence[int]) -> "Held":
        """These windows, and some of others."""
        return Held(
            evidence=self.evidence.joined(other.evidence[np.asarray(rows)]),
            series=self.series + [other.series[row] for row in rows],
            groups=self.groups + [other.groups[row] for row in rows],
            ended=np.concatenate([self.ended, other.ended[rows]]),
        )

    def stack(self, names: tuple[str, ...], *, equal: bool = False) -> Stack:
        """Weights and spreads that are learned from these windows."""
        return learn_stack(names, self.evidence, self.series, self.groups, self.ended, equal=equal)


def weights_over_time(
    stack: Stack, held: Held, later: Held, starts: Float64[np.ndarray, " N"]
) -> Float64[np.ndarray, "M N"]:
    """Weights of later windows that begin at given times, each from what had ended by then.

    `stack` is what was learned from the windows that are `held`.
    """
    found, read = np.zeros((len(stack.names), len(later))), len(held)
    for start in np.unique(starts):
        known = np.flatnonzero(later.ended <= start).tolist()
        if _worthwhile(len(held) + len(known), read, later.evidence.truth.shape[1]):
            stack, read = held.joined(later, known).stack(stack.names), len(held) + len(known)
        for row in np.flatnonzero(starts == start).tolist():
            found[:, row] = stack.weights_of(later.series[row], later.groups[row])
    return found


def _worthwhile(windows: int, before: int, horizon: int) -> bool:
    """Whether weights should be learned again from so many windows, of which some were read before."""
    return windows > before and (windows * horizon <= MANY_VALUES or windows >= GROWN * before)
