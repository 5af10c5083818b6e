"""`sgfn order` on the command line: parsing and printing only."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Literal

from tyro.conf import Positional, arg

from sgfn.cli.tables import out, print_aligned, print_json
from sgfn.cli.trust import Named, Trusting, trust_of
from sgfn.config.digits import figure
from sgfn.config.files import nulls
from sgfn.config.tasks import ConstraintsConfig

SHOWN = 10
"""Orders that are printed."""


@dataclass(frozen=True, kw_only=True)
class Order:
    """Choose what to order from a trained run: new, good and different sequences, with what to expect of each."""

    run: Annotated[Positional[Path], arg(metavar="RUN")]
    """Run folder."""
    n: Annotated[int, arg(aliases=["-n"])] = 96
    """How many."""
    out: Path | None = None
    """CSV of the plate; by default orders.csv in the run folder."""
    fasta: Path | None = None
    """The same orders as FASTA, where a file is named."""
    plate: Literal[96, 384] = 96
    """Wells of a plate."""
    repeat: bool = False
    """Order what was measured before too."""
    distance: int = 1
    """Least number of letters (edits, where lengths vary) in which two orders differ."""
    tradeoff: float = 0.0
    """Weight of being different beside a high expected score: 0 the best ones, 1 the most different ones."""
    reach: int | None = None
    """Most edits between an order and a measured sequence; 0 for no limit, by default in a search among a proxy's
    predictions as far as its rank correlation deserves."""
    samples: int = 256
    """Draws of what comes out of an order, where its expected score cannot be computed exactly."""
    seed: int = 0
    """Seed of the draws."""
    overwrite: bool = False
    """Replace files that are there."""
    device: Literal["auto", "cpu", "cuda"] = "auto"
    """Where to run."""
    json: bool = False
    """Print JSON."""
    constraints: ConstraintsConfig = field(default_factory=ConstraintsConfig)
    named: Trusting = field(default_factory=Named)


def run_order(args: Order) -> None:
    """`sgfn order`."""
    from sgfn.design.ordering import order  # torch is slow to import
    from sgfn.design.plate import plate_rows

    file = args.out or args.run / "orders.csv"
    given = (
        "fasta",
        "plate",
        "repeat",
        "distance",
        "tradeoff",
        "samples",
        "seed",
        "device",
        "overwrite",
        "reach",
        "constraints",
    )
    options: dict[str, Any] = {name: getattr(args, name) for name in given}
    sheet = order(args.run, args.n, file, **options, trust=trust_of(args.named))
    if args.json:
        told = {name: value for name, value in vars(sheet).items() if name != "values"}
        files = {"file": str(file), "fasta": None if args.fasta is None else str(args.fasta)}
        return print_json(nulls(told | files | {"orders": plate_rows(sheet.values, args.plate)}))
    rows = [
        (
            v.order,
            figure(v.expected),
            figure(spread, 2),
            f"{v.intact:.0%}",
            f"{v.violates:.1%}",
            figure(v.score),
            _near(v),
        )
        for v, spread in zip(sheet.values[:SHOWN], _deviations(sheet.values[:SHOWN], log=sheet.log), strict=True)
    ]
    print_aligned(
        ("order", "expect", "x or /" if sheet.log else "sd", "intact", "violates", "if intact", "nearest measured"),
        rows,
    )
    kind = "exact" if sheet.exact else f"means over {args.samples} draws"
    if sheet.predicted:
        kind = (
            "exact means" if sheet.exact else kind
        ) + f" of what a proxy predicts, whose uncertainty is {'a factor (x or /)' if sheet.log else 'sd'}"
    out.print(f"from {sheet.how}; expected scores under {sheet.noise} are {kind}", soft_wrap=True)
    if sheet.note:
        out.print(sheet.note, soft_wrap=True)
    if len(sheet.values) < args.n:
        few = f"only {len(sheet.values)} of {args.n} orders differ by {args.distance} at least"
        farther = "raise --reach, " if sheet.reach else ""
        out.print(f"{few}: lower --distance, {farther}or relax a constraint", soft_wrap=True)
    if sheet.distance is not None:
        out.print(f"least distance between two orders: {sheet.distance} ({sheet.metric})", soft_wrap=True)
    return out.print(f"{len(sheet.values)} orders in {file}", soft_wrap=True)


def _deviations(values: list[Any], *, log: bool) -> list[float]:
    """Standard deviations of orders, or the factors that those of logarithms are."""
    if not log:
        return [value.sd for value in values]
    import numpy as np

    from sgfn.landscapes.transforms import deviation_factor  # numpy and torch are there when orders are

    expected, sd = (np.array([getattr(value, name) for value in values]) for name in ("expected", "sd"))
    return deviation_factor(expected, sd).tolist()


def _near(value: Any) -> str:
    """How far the nearest measured sequence is."""
    return "-" if value.distance is None else str(value.distance)
