"""`sgfn design channel` on the command line: parsing and printing only."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from rich.table import Table
from tyro.conf import Positional, arg

from sgfn.cli.streams import Output
from sgfn.cli.tables import out, print_json
from sgfn.config.shell import command

if TYPE_CHECKING:
    from sgfn.design.channel import ChannelFit

SHOWN = 40
"""Rates that are printed; all of them are in channel.json."""


@dataclass(frozen=True, kw_only=True)
class DesignChannel:
    """Fit error rates to sequenced pairs of what was intended and what came out: a noise file for the next round."""

    pairs: Annotated[Positional[Path], arg(metavar="PAIRS")]
    """Table with columns `intended`, `realised` and, if there is one, `count`."""
    out: Path = Path("channel")
    """Folder for the noise file, the figures and the picture."""
    alphabet: str | None = None
    """dna, rna, protein, or the letters themselves; by default the one that the pairs show."""
    model: Literal["auto", "uniform", "letter", "position"] = "auto"
    """Channel that is written: one rate of each kind, by letter, by position, or `auto`, by BIC."""
    level: float = 0.9
    """Probability that an interval holds its rate."""
    overwrite: bool = False
    """Replace a channel that is there."""
    json: bool = False
    """Print JSON."""


def run_channel(args: DesignChannel) -> None:
    """`sgfn design channel`."""
    from sgfn.config.checks import in_range
    from sgfn.design.channel import FIT_FILE, NOISE_FILE, fit_channel  # torch is slow to import
    from sgfn.design.rounds import check_folder

    in_range("level", args.level, 0.5, 0.999)
    check_folder(args.out, overwrite=args.overwrite, known=FIT_FILE, what="a channel")
    fit = fit_channel(args.pairs, args.alphabet, model=args.model, level=args.level)
    from sgfn.reports.channel_figure import write_channel_figure

    fit.write(args.out, overwrite=args.overwrite, picture=lambda path: write_channel_figure(path, fit))
    if fit.notice:
        Output(stderr=True).print(f"{args.pairs}: {fit.notice}", soft_wrap=True)
    if args.json:
        return print_json(fit.to_json() | {"folder": str(args.out), "noise_file": str(args.out / NOISE_FILE)})
    print_fit(fit)
    following = command("design", "propose", "data.csv") + f" --noise.kind indel --noise.file {args.out / NOISE_FILE}"
    out.print(f"noise file, figures and picture in {args.out}", soft_wrap=True)
    return out.print(f"next: {following}", soft_wrap=True)


def print_fit(fit: "ChannelFit") -> None:
    """Print rates with their intervals, and all channels that were fitted."""
    from sgfn.design.channel import MODELS, likelihood_words

    rates = Table("error", "of", "rate", f"{fit.level:.0%} interval", "events", box=None, header_style="bold")
    for rate in fit.rates[:SHOWN]:
        interval = f"{rate.low:.3g} to {rate.high:.3g}"
        rates.add_row(rate.kind, rate.of or "all", f"{rate.rate:.3g}", interval, f"{rate.events:.1f}")
    out.print(rates)
    if len(fit.rates) > SHOWN:
        out.print(f"... and {len(fit.rates) - SHOWN} more in channel.json")
    models = Table("channel", "what it is", "parameters", "log-likelihood", "BIC", box=None, header_style="bold")
    for one in fit.models:
        chosen = f"{one.model} *" if one.model == fit.model else one.model
        bic = f"{one.bic:.1f}" if one.bic < float("inf") else "-"
        models.add_row(chosen, MODELS[one.model], str(one.parameters), likelihood_words(one), bic)
    out.print(models)
    out.print(f"{fit.pairs:,} pairs, {fit.letters:,} letters of {fit.alphabet}; * is written", soft_wrap=True)
