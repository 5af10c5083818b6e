"""How weights of the pool are learned: strengths and priors beside each other, on forecasts that `replay` kept.

WQL of each variant is divided by that of the present settings, and compared with the best single law of the pool's on
each case. The variant is also chosen without a data set (all its parts) and judged on it.

    python -m benchmarks.forecast_breadth.strengths
"""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any
from unittest.mock import patch

import numpy as np
import torch

from benchmarks.common import RESULTS, read_results, rounded, write_results
from benchmarks.forecast_breadth.pool import left_out
from benchmarks.forecast_breadth.replay import KEPT, Case, read_case
from benchmarks.forecast_breadth.spreads import judged, learned, spread_law
from benchmarks.forecast_breadth.table import CLASSICAL, NEAR, geometric_mean
from sgfn.series import stack
from sgfn.series.calibration import RULE
from sgfn.series.quantile_laws import QuantileLaw

OUT = RESULTS / "forecast_strengths.json"
NOW = "now"
EQUAL = "equal weights"
VARIANTS: dict[str, dict[str, Any]] = {
    NOW: {},
    "strength x 1/2": {"STRENGTH": 0.25},
    "strength x 2": {"STRENGTH": 1.0},
    "strength x 8": {"STRENGTH": 4.0},
    "groups and series, strengths x 2": {"GROUP_STRENGTH": 4.0, "SERIES_STRENGTH": 8.0},
    "seasonal naive begins at .1": {"PRIORS": stack.PRIORS | {"seasonal naive": 0.1}},
    "network begins at .3": {"PRIORS": stack.PRIORS | {"network": 0.3}},
    "equal weights count as no window": {"EVEN": 1e-9},
    "equal weights count as 8 windows": {"EVEN": 64.0},
    EQUAL: {},
}
"""Constants of the stack that each variant has instead."""


@contextmanager
def variant(name: str) -> Iterator[None]:
    """The stack with the constants of a variant."""
    with ExitStack() as changes:
        for constant, value in VARIANTS[name].items():
            changes.enter_context(patch.object(stack, constant, value))
        yield


def wql_of(case: Case, name: str) -> float:
    """WQL of a case's test windows by a variant."""
    with variant(name):
        return judged(case, spread_law(case, *learned(case, equal=name == EQUAL), RULE))[0]


def best_single(case: Case) -> float:
    """Least WQL of a classical law by itself, of those that fit all test windows."""
    laws = zip(case.names, case.test.evidence.quantiles, strict=True)
    single = [law for name, law in laws if name in (*CLASSICAL, "MSTL") and np.isfinite(law).all()]
    return min(judged(case, QuantileLaw(values=law))[0] for law in single)


def chosen_without(sets: list[str], loss: np.ndarray) -> np.ndarray:
    """For each case, the loss of the variant that is best on all other data sets."""
    names = np.array(sets)
    return np.array([loss[loss[:, names != one].mean(1).argmin(), at] for at, one in enumerate(sets)])


def main() -> None:
    """Judge all variants on all cases that are kept."""
    torch.set_num_threads(1)
    every = [read_case(path, left_out(path.stem.rsplit("-", 1)[0])) for path in sorted(KEPT.glob("*.npz"))]
    sets, floors = [case.name.rsplit("-", 1)[0] for case in every], np.array([best_single(case) for case in every])
    loss = np.log(np.array([[wql_of(case, name) for case in every] for name in VARIANTS]))
    rows = dict(zip(VARIANTS, loss, strict=True)) | {"chosen without the data set": chosen_without(sets, loss)}
    told = [
        {
            "variant": name,
            "cases": len(every),
            "wql": geometric_mean(np.exp(one - loss[0]).tolist()),
            "best_single": geometric_mean(np.exp(one - np.log(floors)).tolist()),
            "near": float((np.exp(one) <= NEAR * floors).mean()),
        }
        for name, one in rows.items()
    ]
    data = [case.name for case in every]
    write_results(OUT, "forecast_breadth.strengths", torch.device("cpu"), [rounded(row) for row in told], data=data)
    print(strengths_table())


def strengths_table() -> str:
    """The variants as a table in Markdown."""
    lines = ["| weights | WQL / now | WQL / best single law of each | within 1.10 x of it |", "|---|---|---|---|"]
    for row in read_results(OUT.name)["rows"] if OUT.is_file() else []:
        lines.append(f"| {row['variant']} | {row['wql']:.3f} | {row['best_single']:.3f} | {row['near']:.0%} |")
    return "\n".join(lines)


if __name__ == "__main__":
    main()
