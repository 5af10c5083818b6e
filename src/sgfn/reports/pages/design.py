"""The page of a round of design: what was measured, what was predicted of it, what to order next and why."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from sgfn.config.digits import figure
from sgfn.config.files import write_text
from sgfn.design.designer import Designer
from sgfn.design.proposal import Proposal
from sgfn.landscapes.proxies.calibration import rank_correlation
from sgfn.landscapes.transforms import deviation_factor
from sgfn.reports.design_figures import (
    LEVELS,
    calibration_figure,
    coverage,
    distances,
    diversity_figure,
    marginal_figure,
    outlook_figure,
    plate_figure,
    predicted_figure,
    progress_figure,
    told_rows,
    validation_figure,
)
from sgfn.reports.pages.parts import CaptionedDrawing, DrawingGroup, Section
from sgfn.reports.pages.rendering import render
from sgfn.reports.pages.svg import Drawing, drawing
from sgfn.reports.proxy_figure import proxy_title

HEADINGS = {
    "well": "Well",
    "order": "Order",
    "expected": "Expect",
    "sd": "+-",
    "intact": "Comes out intact",
    "violates": "Breaks a constraint",
    "score": "Score if intact",
    "nearest": "Nearest measured",
    "distance": "Differences",
}
"""Columns of orders as the page calls them."""
SHARES = ("intact", "violates")


@dataclass(frozen=True, kw_only=True)
class PlateTable:
    """Orders as they are written: headings, and rows of texts with the well first."""

    headings: list[str]
    rows: list[list[str]]


def write_design_page(out: Path, designer: Designer, proposal: Proposal) -> Path:
    """Write one HTML file with everything inside."""
    best, score = designer.best
    goal = "lowest" if designer.config.minimise else "highest"
    lead = (
        f"{len(designer.measured):,} measurements; {goal} so far {figure(score)} ({best[:40]}); "
        f"{len(proposal)} orders for round {proposal.round}"
    )
    log = designer.config.transform == "log"
    sections = [_outlook(proposal), _plate(proposal, designer.sign), _progress(designer), _diversity(proposal)]
    sections += [_validation(proposal, log=log), _proxy(proposal), _orders(proposal, log=log)]
    values = {
        "title": f"Design, round {proposal.round}",
        "lead": lead,
        "note": (
            f"How orders were found: {proposal.note}. Chosen by {proposal.chosen}, valued under {proposal.noise}; "
            f"proxy {proposal.proxy_told}."
        ),
    }
    write_text(out, render("page.html.j2", **values, sections=sections))
    return out


def _pair(*figures: tuple[str, Drawing]) -> list[DrawingGroup]:
    made = [CaptionedDrawing(caption=caption, drawing=one) for caption, one in figures]
    return [DrawingGroup(heading="", layout="pair", size="medium", figures=made)]


def _outlook(proposal: Proposal) -> Section:
    outlook = proposal.outlook
    last, noisy = outlook.expected_best[-1], "" if (proposal.orders.intact == 1).all() else ", under the noise"
    about = (
        f"By the proxy the true score of the best sequence known is {figure(outlook.believed)} now and {figure(last)} "
        f"after all {len(proposal)} wells: means over its draws{noisy}. The best score measured so far is "
        f"{figure(outlook.best_so_far)}, luck included: do not compare it with these. The mean of the orders' expected "
        f"scores is {figure(outlook.mean)}. {proposal.told[:1].upper()}{proposal.told[1:]}."
    )
    said = f"Expected best rises from {figure(outlook.believed)} to {figure(last)}"
    rising = drawing(outlook_figure(outlook), key="outlook", said=said)
    added = drawing(marginal_figure(outlook), key="marginal", said="What each further well adds to the expected best")
    content = _pair(("Expected best after so many wells", rising), ("Marginal value of the k-th well", added))
    return Section(key="outlook", title="What it should bring", about=about, template="figures", content=content)


def _plate(proposal: Proposal, sign: float) -> Section:
    orders = proposal.orders
    low, high = orders.expected.min(), orders.expected.max()
    said = f"Plate map, expected scores from {figure(low, 3)} to {figure(high, 3)}"
    drawn = drawing(plate_figure(orders, sign), key="plate", said=said)
    about = f"Expected score of what comes out of each well; the {'highest' if sign > 0 else 'lowest'} are darkest."
    figures = [CaptionedDrawing(caption="Expected score by well", drawing=drawn)]
    content = [DrawingGroup(heading="", layout="fans", size="wide", figures=figures)]
    return Section(key="plate", title="Plate", about=about, template="figures", content=content)


def _orders(proposal: Proposal, *, log: bool) -> Section:
    about = "All wells, as in orders.csv" + (", where sd is in the units of the scores." if log else ".")
    table = plate_table(proposal.orders, log=log)
    return Section(key="orders", title="Orders", about=about, template="plate", content=table)


def plate_table(orders: pd.DataFrame, *, log: bool = False) -> PlateTable:
    """Orders with those columns that the page knows; of logarithms the uncertainty is a factor."""
    if log:
        orders = orders.assign(sd=deviation_factor(orders.expected.to_numpy(), orders.sd.to_numpy()))
    names = [name for name in HEADINGS if name in orders and not orders[name].isna().all()]
    rows = [[_cell(name, value) for name, value in zip(names, row, strict=True)] for row in orders[names].to_numpy()]
    headings = HEADINGS | {"sd": "times or divided by"} if log else HEADINGS
    return PlateTable(headings=[headings[name] for name in names], rows=rows)


def _cell(name: str, value: Any) -> str:
    if isinstance(value, str):
        return value
    if name in SHARES:
        return f"{value:.0%}"
    return f"{value:.0f}" if name == "distance" else f"{figure(value, 3)}"


def _progress(designer: Designer) -> Section:
    told, log = told_rows(designer.measured), designer.config.transform == "log"
    about = "Scores of each round, what had been predicted of the orders, and how often intervals held."
    if len(told):
        share = coverage(told, log=log)[LEVELS.index(0.8)]
        rank = rank_correlation(told.predicted.to_numpy(), told.score.to_numpy())
        about += f" Of {len(told)} orders measured, {share:.0%} lie in the 80 % interval; rank correlation {rank:.2f}."
    else:
        about = "Scores so far. What was predicted of the orders is shown here when the first plate is measured."
    best = f"best so far {figure(designer.best[1])}"
    shown = progress_figure(designer.measured, designer.sign, log=log)
    scores = drawing(shown, key="progress", said=f"Scores by round, {best}")
    pairs = drawing(
        predicted_figure(designer.measured, log=log), key="predicted", said="Predicted against measured scores"
    )
    inside = drawing(calibration_figure(designer.measured, log=log), key="calibration", said="Coverage of intervals")
    later = (("Predicted and measured, 80 % intervals", pairs), ("Calibration of orders", inside))
    content = _pair(("Best so far", scores), *(later if len(told) else ()))
    return Section(key="progress", title="So far", about=about, template="figures", content=content)


def _diversity(proposal: Proposal) -> Section:
    orders = proposal.orders
    pairs = distances(orders.order.tolist())
    mean = sum(pairs) / len(pairs) if pairs else 0.0
    about = f"Two orders of the plate differ in {mean:.1f} places on average."
    drawn = drawing(diversity_figure(orders), key="diversity", said=about)
    return Section(
        key="diversity", title="Diversity", about=about, template="figures", content=_pair(("Differences", drawn))
    )


def _proxy(proposal: Proposal) -> Section:
    about = "What cross-validation on all measurements says of the proxy."
    rows = [[name.replace("_", " "), _figure(value)] for name, value in proposal.proxy.items()]
    rows.append(["acquisition", proposal.chosen])
    table = PlateTable(headings=["", ""], rows=rows)
    return Section(key="proxy", title="Proxy", about=about, template="plate", content=table)


def _figure(value: Any) -> str:
    if isinstance(value, list):
        return ", ".join(map(str, value))
    return f"{figure(value, 3)}" if isinstance(value, float) else str(value)


def _validation(proposal: Proposal, *, log: bool) -> Section:
    report = proposal.validation
    about = "What was predicted of each measured sequence by a proxy that had not seen its fold."
    drawn = drawing(validation_figure(report, log=log), key="validation", said=proxy_title(report))
    return Section(
        key="validation",
        title="Predictions",
        about=about,
        template="figures",
        content=_pair((proxy_title(report), drawn)),
    )
