"""`sgfn design` on the command line: parsing and printing only."""

import re
from dataclasses import dataclass, field, fields
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Literal

from rich.table import Table
from tyro.conf import Positional, Suppress, arg

from sgfn.cli.streams import Output
from sgfn.cli.tables import out, print_json
from sgfn.config import NoiseConfig
from sgfn.config.digits import figure
from sgfn.config.shell import command
from sgfn.config.tasks import ConstraintsConfig

NO_NOISE = NoiseConfig(alpha=0.0)
"""What is assumed of a synthesis of which nothing is said."""
SHOWN = 10
"""Orders that are printed; all of them are in orders.csv."""


@dataclass(frozen=True, kw_only=True)
class ProposeFlags:
    """Settings of a design; of a round that is continued those that are not given are carried on."""

    alphabet: str | None = None
    """dna, rna, protein, or the letters themselves; by default the one that a table shows."""
    sequence_column: str | None = None
    """Column of the sequences; by default `sequence`."""
    score_column: str | None = None
    """Column of the scores; by default `score`."""
    scores: str | None = None
    """Several columns of scores with weights, like `activity=1,toxicity=-0.5`: their sum is designed for."""
    sd_column: str | None = None
    """Column of the scores' standard deviations, where there is one."""
    weight_column: str | None = None
    """Column that says how much each row counts, where there is one."""
    transform: Literal["none", "log", "rank"] | None = None
    """Fit and maximise logarithms or ranks of the scores; what is told stays in their own units."""
    minimise: bool = False
    """Low scores are good."""
    acquisition: str | None = None
    """What makes an order attractive: ucb, mixed, thompson, tempered, members, greedy, or `module:function`; by default
    ucb where all orders can be ranked and tempered where they are searched for."""
    kappa: float | None = None
    """Standard deviations that `ucb` adds to the mean, and `mixed` at most; 3 by default."""
    proxy: str | None = None
    """Kind of the proxy: `design`, the default, is an ensemble of networks, or as `auto` where lengths vary beyond 12
    letters; `auto` chooses by cross-validation."""
    distance: int | None = None
    """Least number of differences between two orders of a plate."""
    repeat: bool = False
    """What was measured or ordered before may be ordered again."""
    sampler: str | None = None
    """A flow network that brings orders into a search: on, off, or auto (where --reach is 0)."""
    reach: int | None = None
    """Most edits between an order and a measured sequence, 0 for no limit; by default in a search by the proxy's rank
    correlation, and without a limit where all orders are ranked."""
    failures: Literal["avoid", "ignore"] | None = None
    """Avoid in a search neighbouring letters that only sequences with the lowest score have (the default), or not."""
    seed: int | None = None
    """Seed of everything random."""

    def given(self, said: frozenset[str]) -> dict[str, Any]:
        """Settings by name whose flags are among those that were given; None stands for the default."""
        from sgfn.design.settings import DesignConfig  # torch is slow to import

        default = {part.name: part.default for part in fields(DesignConfig)}
        names = [part.name for part in fields(self) if {part.name, f"no_{part.name}"} & said]
        values = {name: getattr(self, name) for name in names}
        return {name: default[name] if value is None else value for name, value in values.items()}


@dataclass(frozen=True, kw_only=True)
class DesignPropose:
    """Propose a plate of orders from a table of measurements, or the next one from a round's folder."""

    source: Annotated[Positional[Path], arg(metavar="TABLE|FOLDER")]
    """Table of sequences and scores, or the folder of the round before."""
    measured: Path | None = None
    """What came of the last plate, with a folder: a table with a column `order` (or of sequences) and scores."""
    orders: int | None = None
    """How many; by default 96, and with a folder as many as in the round before."""
    out: Path | None = None
    """Folder of this round; by default rounds/N."""
    overwrite: bool = False
    """Replace a round that is there."""
    json: bool = False
    """Print JSON."""
    trust: bool = False
    """Run the code that the folder names and this command does not name again: only if you trust whoever made it."""
    settings: Annotated[ProposeFlags, arg(name="")] = field(default_factory=ProposeFlags)
    noise: NoiseConfig = field(default_factory=lambda: NO_NOISE)
    constraints: ConstraintsConfig = field(default_factory=ConstraintsConfig)
    said: Suppress[frozenset[str]] = frozenset()
    """Names of the flags that were given, as `flags_of` tells them."""

    def given_of(self, part: str) -> dict[str, Any]:
        """Fields of `noise` or `constraints` whose flags were given."""
        names = {name.rpartition(".")[2].removeprefix("no_") for name in self.said if name.startswith(f"{part}.")}
        return {name: value for name, value in vars(getattr(self, part)).items() if name in names}


def run_propose(args: DesignPropose) -> None:
    """`sgfn design propose`."""
    from sgfn.design.rounds import check_folder  # torch is slow to import
    from sgfn.design.sessions import begin, carry_on, write_round
    from sgfn.runs.trust import again

    values = args.settings.given(args.said)
    if args.source.is_dir():
        noise, constraints = (args.given_of(part) for part in ("noise", "constraints"))
        session = carry_on(args.source, args.measured, values, noise, constraints, trust=args.trust)
    elif args.measured is not None:
        raise ValueError("--measured adds to a round: give the round's folder first, or put all rows into one table")
    else:
        session = begin(args.source, values, args.noise, args.constraints)
    folder = args.out or Path("rounds") / str(session.designer.round + 1)
    check_folder(folder, overwrite=args.overwrite)
    err = Output(stderr=True)
    for notice in session.notices:
        err.print(notice, soft_wrap=True)
    from sgfn.reports.pages.design import write_design_page

    proposal = session.designer.propose(session.orders if args.orders is None else args.orders)
    write_round(
        folder,
        session,
        proposal,
        overwrite=args.overwrite,
        page=lambda path: write_design_page(path, session.designer, proposal),
    )
    err.print(f"proposed in {proposal.seconds:.0f} s", soft_wrap=True)
    if args.json:
        return print_json(proposal.to_json() | {"folder": str(folder), "orders_file": str(folder / "orders.csv")})
    config = session.designer.config
    print_proposal(proposal, minimise=config.minimise, log=config.transform == "log")
    out.print(f"{len(proposal)} orders in {folder / 'orders.csv'}, page in {folder / 'page.html'}", soft_wrap=True)
    after = next_folder(folder, session.designer.round + 1)
    following = command("design", "propose", folder, measured="new.csv", out=after) + again(session.designer.code)
    return out.print(f"next, when they are measured: {following}", soft_wrap=True)


def next_folder(folder: Path, number: int) -> Path:
    """The folder of a round with a number, after that of another: its name is counted on, or is the number itself.

    >>> [next_folder(Path(name), 4).name for name in ("r1", "b09", "3", "plate")]
    ['r2', 'b10', '4', 'plate-4']
    """
    counted = re.fullmatch(r"(.*?)([0-9]{1,9})", folder.name, re.DOTALL)
    if counted is None:
        return folder.parent / f"{folder.name or 'round'}-{number}"
    count = number if not counted[1] else int(counted[2]) + 1
    return folder.with_name(f"{counted[1]}{count:0{len(counted[2])}d}")


def print_proposal(proposal: Any, *, minimise: bool = False, log: bool = False) -> None:
    """Print the best orders, and what the plate should bring; of logarithms the uncertainty is a factor."""
    kinds = {
        "well": str,
        "order": str,
        "expected": partial(figure, digits=3),
        "sd": partial(figure, digits=2),
        "intact": "{:.0%}".format,
    }
    kinds |= {"score": partial(figure, digits=3), "distance": "{:.0f}".format}
    heads = {
        "well": "well",
        "order": "order",
        "expected": "expect",
        "sd": "x or /" if log else "+-",
        "intact": "intact",
        "score": "if intact",
    }
    heads |= {"distance": "from nearest measured"}
    if bool((proposal.orders.intact == 1).all()):  # without noise both say what `expected` says
        heads = {name: head for name, head in heads.items() if name not in ("intact", "score")}
    best = proposal.orders.sort_values("expected", ascending=minimise, kind="stable").head(SHOWN)
    if len(best) < len(proposal):
        out.print(f"the {SHOWN} of {len(proposal)} orders with the best expected scores:", soft_wrap=True)
    if log:
        from sgfn.landscapes.transforms import deviation_factor  # numpy and torch are there when a plate is

        best = best.assign(sd=deviation_factor(best.expected.to_numpy(float), best.sd.to_numpy(float)))
    table = Table(box=None, header_style="bold")
    for name, head in heads.items():  # an order is folded where it is long, never cut
        widest = min(int(best.order.str.len().max()), 32)
        table.add_column(head, overflow="fold", min_width=widest if name == "order" else None)
    for _, row in best.iterrows():
        table.add_row(*(kinds[name](row[name]) for name in heads))
    out.print(table)
    look, facts = proposal.outlook, proposal.proxy
    out.print(proposal.note, soft_wrap=True)
    quality = f"rank correlation {facts['spearman']:.2f}, {facts['coverage']:.0%} in 80 % intervals"
    out.print(f"orders chosen by {proposal.chosen}, valued under {proposal.noise}", soft_wrap=True)
    out.print(f"proxy {proposal.proxy_told}: {quality} (cross-validation)", soft_wrap=True)
    out.print(proposal.told, soft_wrap=True)
    after = figure(look.expected_best[-1])
    out.print(
        f"true score of the best sequence known, by the proxy: {figure(look.believed)} now, {after} "
        f"after this plate (best measured {figure(look.best_so_far)}, luck included)",
        soft_wrap=True,
    )
