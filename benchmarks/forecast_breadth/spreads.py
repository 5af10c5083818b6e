"""How intervals are calibrated: rules of the spread beside each other, on forecasts that `replay` kept.

Weights are learned once per case; rules differ in how fast windows are forgotten, what is usual, and how much single
steps say. The rule is chosen without a data set (both its parts) and judged on it, so that nothing is tuned to what it
is judged by; beside it stand each rule on all of them, and a law that is right.

    python -m benchmarks.forecast_breadth.spreads
"""

from itertools import product
from typing import Any

import numpy as np
import torch
from jaxtyping import Float64

from benchmarks.common import RESULTS, read_results, rounded, write_results
from benchmarks.forecast_breadth.replay import Case, cases
from benchmarks.forecast_breadth.table import COVERED, ENOUGH, geometric_mean
from sgfn.evaluation.metrics import forecast as metrics
from sgfn.evaluation.metrics.forecast import LEVELS
from sgfn.series.calibration import RULE, SpreadRule, step_spreads
from sgfn.series.following import weights_over_time
from sgfn.series.laid_laws import laid_spread
from sgfn.series.path_scores import chained
from sgfn.series.quantile_laws import QuantileLaw
from sgfn.series.stack import Stack, scores_of

OUT = RESULTS / "forecast_spreads.json"
BEFORE = SpreadRule(half_life=1e9, usual=1.0, prior=1e9, local=6.0)
"""All windows alike, each step by itself with six windows of a law that is right."""
NONE = SpreadRule(half_life=1.0, usual=1.0, prior=1e9, local=1e9)
RULES = {"none": NONE, "before": BEFORE, "now": RULE} | {
    f"half-life {half:g}, usual {usual:g}, prior {prior:g}": SpreadRule(half_life=half, usual=usual, prior=prior)
    for half, usual, prior in product((1.0, 2.0, 4.0), (1.0, 1.1, 1.2), (1.0, 2.0))
}
SLACK = 0.002
"""A rule is chosen among those whose mean logarithm of WQL is at most this much above the least."""
DRAWS = 200
NORMAL_DECILE = 1.2815515655446004


def learned(case: Case, *, equal: bool = False) -> tuple[Stack, QuantileLaw]:
    """The stack of a case, with learned weights or equal ones, and the law of its test windows without spreads.

    As in a backtest, learned weights of a window know how windows came out that ended before it began.
    """
    span, test = _span(case), case.test
    held = case.held.held(span)
    stack = held.stack(case.names, equal=equal)
    if equal or not len(held):
        weights = np.stack([stack.weights_of(*one) for one in zip(test.series, test.groups, strict=True)], 1)
    else:
        weights = weights_over_time(stack, held, test.held(span), test.starts / span)
    return stack, stack.plain_law(test.evidence.quantiles, weights, case.supports)


def _span(case: Case) -> float:
    return float(np.median(case.test.over - case.test.starts))


def spread_law(case: Case, stack: Stack, law: QuantileLaw, rule: SpreadRule) -> QuantileLaw:
    """The law of test windows, each with the spread that windows before it suggest by a rule."""
    assert stack.scores is not None
    assert stack.ended is not None
    test, scores = case.test, scores_of(law, case.test.evidence.truth, case.supports)
    found = np.ones(law.values.shape[:2])
    for start in np.unique(test.starts):
        known = test.over <= start
        ended = np.concatenate([stack.ended, test.over[known] / _span(case)])
        found[test.starts == start] = step_spreads(np.concatenate([stack.scores, scores[known]]), ended, rule)
    return laid_spread(case.supports, law, found)


def inside_supports(case: Case, law: QuantileLaw) -> Float64[np.ndarray, "N H Q"]:
    """Quantiles of the test windows' law, laid into the supports."""
    quantiles = law.quantile(LEVELS)
    return np.stack([support.project(part) for support, part in zip(case.supports, quantiles, strict=True)])


def judged(case: Case, law: QuantileLaw) -> tuple[float, float]:
    """WQL and coverage of the 80 % interval of a law laid into the supports."""
    inside, truth = inside_supports(case, law), case.test.evidence.truth
    return metrics.wql(inside, truth, LEVELS), metrics.coverage(inside, truth, LEVELS)


def right_coverages(case: Case, tie: float, rng: np.random.Generator) -> Float64[np.ndarray, " K"]:
    """Coverages of as many values by a law that is right, whose steps are tied and whose windows are independent."""
    truth = case.test.evidence.truth
    noise = chained(rng.normal(size=(len(truth), DRAWS, truth.shape[1])), tie)
    held = np.abs(noise) < NORMAL_DECILE
    return np.array([held[:, draw][~np.isnan(truth)].mean() for draw in range(DRAWS)])


def figures(name: str, wql: np.ndarray, coverage: np.ndarray, values: np.ndarray) -> dict[str, Any]:
    """The row of a rule: geometric mean WQL relative to no spread, and how near coverages are to 80 %."""
    large = values >= ENOUGH
    fits = (coverage >= COVERED[0]) & (coverage <= COVERED[1])
    return {
        "rule": name,
        "cases": len(values),
        "wql": geometric_mean(wql.tolist()),
        "coverage": float(coverage.mean()),
        "apart": float(np.abs(coverage - 0.8).mean()),
        "covered": float(fits.mean()),
        "large_cases": int(large.sum()),
        "large_apart": float(np.abs(coverage - 0.8)[large].mean()),
        "large_covered": float(fits[large].mean()),
    }


def chosen_without(names: list[str], wql: np.ndarray, coverage: np.ndarray) -> list[int]:
    """For each case, the rule of least mean distance from 80 % on all other data sets, among those of good WQL."""
    sets, found = np.array([name.rsplit("-", 1)[0] for name in names]), []
    for one in sets:
        others = sets != one
        loss, apart = np.log(wql[:, others]).mean(1), np.abs(coverage[:, others] - 0.8).mean(1)
        found.append(int(np.argmin(np.where(loss <= loss.min() + SLACK, apart, np.inf))))
    return found


def main() -> None:
    """Judge all rules on all cases that are kept."""
    torch.set_num_threads(1)
    rng, every = np.random.default_rng(0), list(cases())
    found, right = np.empty((len(RULES), len(every), 2)), np.empty((len(every), DRAWS))
    for at, case in enumerate(every):
        stack, law = learned(case)
        for number, rule in enumerate(RULES.values()):
            found[number, at] = judged(case, spread_law(case, stack, law, rule))
        right[at] = right_coverages(case, stack.tie, rng)
    names = [case.name for case in every]
    values = np.array([int((~np.isnan(case.test.evidence.truth)).sum()) for case in every])
    wql, coverage = found[..., 0] / found[:1, :, 0], found[..., 1]
    rows = [figures(name, wql[at], coverage[at], values) for at, name in enumerate(RULES)]
    picked = chosen_without(names, wql, coverage), range(len(every))
    rows.insert(3, figures("chosen without the data set", wql[picked], coverage[picked], values))
    ideal = [figures("a law that is right", np.ones(len(every)), right[:, draw], values) for draw in range(DRAWS)]
    numbers = [key for key in ideal[0] if key not in ("rule", "wql")]
    rows.insert(4, {"rule": ideal[0]["rule"]} | {key: float(np.mean([row[key] for row in ideal])) for key in numbers})
    write_results(OUT, "forecast_breadth.spreads", torch.device("cpu"), [rounded(row) for row in rows], data=names)
    print(spreads_table())


def spreads_table() -> str:
    """The first rules as a table in Markdown."""
    lines = [
        "| rule | WQL / no spread | mean in 80 % | mean distance from 80 % | 72 to 88 % | both, 100 values or more |",
        "|---|---|---|---|---|---|",
    ]
    for row in read_results(OUT.name)["rows"][:5] if OUT.is_file() else []:
        score = f"{row['wql']:.3f}" if "wql" in row else ""
        cells = (score, f"{row['coverage']:.3f}", f"{row['apart']:.3f}", f"{row['covered']:.0%}")
        lines.append(f"| {row['rule']} | {' | '.join(cells)} | {row['large_apart']:.3f}, {row['large_covered']:.0%} |")
    return "\n".join(lines)


if __name__ == "__main__":
    main()
