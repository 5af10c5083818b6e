"""Rows of sgfn and its ablations on the development half, pooled from forecasts that `replay` kept.

What the laws say does not change with how they are pooled; so the rows of a new pool take seconds. They are those that
`python -m benchmarks.forecast_breadth` would measure, but for the CPU seconds, which they do not have.

    python -m benchmarks.forecast_breadth.pool
"""

import numpy as np
import torch

from benchmarks.common import rounded, write_results
from benchmarks.forecast_breadth.__main__ import kept, notes_of, results_file, scores
from benchmarks.forecast_breadth.methods import ARIMA
from benchmarks.forecast_breadth.panel import load
from benchmarks.forecast_breadth.replay import KEPT, Case, read_case
from benchmarks.forecast_breadth.spreads import inside_supports, learned, spread_law
from benchmarks.forecast_breadth.table import Row, breadth_table
from sgfn.config.presets import PRESETS
from sgfn.evaluation.metrics.forecast import LEVELS
from sgfn.series.calibration import RULE
from sgfn.series.quantile_laws import QuantileLaw
from sgfn.series.stack_plan import arima_left_out
from sgfn.series.stacked import NETWORK


def left_out(name: str) -> list[str]:
    """Laws that the default effort has no time for on a data set, though an earlier state kept them."""
    data, config = load(name), PRESETS["forecast"].series
    lengths = [len(one) - spare for one, spare in zip(data.panel.series, data.spare, strict=True)]
    laws = {ARIMA: False, "log AutoARIMA": True}
    return [law for law, log in laws.items() if arima_left_out(config, lengths, log=log)]


def rows_of(name: str) -> list[Row]:
    """Rows of the whole forecaster and of its ablations."""
    path, slow, data = KEPT / f"{name}-whole.npz", left_out(name), load(name)
    whole = read_case(path, slow)
    others = [law for law in whole.names if law != NETWORK]
    variants: dict[str, tuple[Case, bool]] = {
        "sgfn": (whole, False),
        "sgfn, without network": (read_case(path, [*slow, NETWORK]), False),
        "sgfn, equal weights": (whole, True),
    }
    if NETWORK in whole.names:
        variants["sgfn, network alone"] = (read_case(path, [*slow, *others]), False)
    laws = {
        method: inside_supports(case, spread_law(case, *learned(case, equal=equal), RULE))
        for method, (case, equal) in variants.items()
    }
    if ARIMA in whole.names:
        plain = whole.test.evidence.quantiles[whole.names.index(ARIMA)]
        laws |= {ARIMA: QuantileLaw(values=plain).quantile(LEVELS)} if np.isfinite(plain).all() else {}
    truth = whole.test.evidence.truth
    shape = {"windows": len(truth), "values": int((~np.isnan(truth)).sum())}
    return [{"data": name, "method": method} | shape | rounded(scores(data, law)) for method, law in laws.items()]


def main() -> None:
    """Replace the rows of all data sets that are kept."""
    torch.set_num_threads(1)
    out = results_file("development")
    fresh = [row for path in sorted(KEPT.glob("*-whole.npz")) for row in rows_of(path.stem.removesuffix("-whole"))]
    names = {row["data"] for row in fresh}
    ours = [row for row in kept(out) if row["data"] in names and row["method"].startswith(("sgfn", ARIMA))]
    rows = [row for row in kept(out) if row not in ours] + fresh
    rows.sort(key=lambda one: (one["data"], one["method"]))
    notes = notes_of("development", rows)
    write_results(out, "forecast_breadth.pool", torch.device("cpu"), rows, notes=notes)
    print(breadth_table(rows))


if __name__ == "__main__":
    main()
