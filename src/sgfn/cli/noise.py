"""`sgfn noise` on the command line: parsing and printing only."""

from dataclasses import dataclass
from typing import Annotated

from rich.table import Table
from tyro.conf import Positional, arg

from sgfn.cli.tables import out, print_json
from sgfn.config.checks import one_of
from sgfn.config.shell import command
from sgfn.noise.presets import CHANNELS, ChannelPreset, channel_preset, substitution_rows


@dataclass(frozen=True, kw_only=True)
class NoiseList:
    """List channels by name, with their error rates and sources, or tell all of one."""

    name: Annotated[Positional[str | None], arg(metavar="[NAME]")] = None
    """Channel to look at; none lists them all."""
    json: bool = False
    """Print JSON."""


def run_noise(args: NoiseList) -> None:
    """`sgfn noise`."""
    if args.name is None:
        return print_json([preset.to_json() for preset in CHANNELS.values()]) if args.json else print_channels()
    one_of("NAME", args.name, CHANNELS)
    preset = channel_preset(args.name)
    return print_json(preset.to_json()) if args.json else print_channel(preset)


def print_channels() -> None:
    """Print all channels, as a table of rates and, below it, a line about each."""
    table = Table("preset", "errors/kb", "substituted", "inserted", "deleted", box=None, header_style="bold")
    for preset in CHANNELS.values():
        name = f"{preset.name} (library)" if preset.residues else preset.name
        table.add_row(name, *rates_of(preset))
    out.print(table)
    for preset in CHANNELS.values():
        out.print(f"{preset.name}: {preset.about}", soft_wrap=True)
    out.print("rates are per base; use: --noise.preset NAME; source and all rates of one: sgfn noise NAME")
    out.print("a library is no channel of orders: sgfn design library chooses codons")


def rates_of(preset: ChannelPreset) -> list[str]:
    """Errors per kilobase, and rates of each kind; dashes for a mixture."""
    if preset.residues:
        return ["-"] * 4
    kinds = (preset.substitution, preset.insertion, preset.deletion)
    return [f"{preset.per_kilobase:.3g}", *(f"{rate:.3g}" for rate in kinds)]


def print_channel(preset: ChannelPreset) -> None:
    """Print one channel: rates, letters where they differ, source."""
    out.print(f"{preset.name}: {preset.about}", soft_wrap=True)
    if preset.residues:
        law = ", ".join(f"{letter} {share * 32:.0f}/32" for letter, share in sorted(preset.residues.items()))
        out.print(f"residues (* is stop): {law}", soft_wrap=True)
    else:
        names = ("errors per kb", "substituted", "inserted", "deleted")
        told = [f"{name} {rate}" for name, rate in zip(names, rates_of(preset), strict=True)]
        out.print(", ".join(told), soft_wrap=True)
    if preset.shares:
        table = Table("intended", *(f"to {letter}" for letter in "ACGT"), box=None, header_style="bold")
        for letter, row in substitution_rows(preset).items():
            table.add_row(letter, *(f"{row[other]:.4g}" if other in row else "-" for other in "ACGT"))
        out.print(table)
    out.print(f"source: {preset.source}" + (f"; {preset.note}" if preset.note else ""), soft_wrap=True)
    if not preset.residues:
        example = command("design", "propose", "data.csv") + f" --noise.preset {preset.name}"
        out.print(f"use: {example}", soft_wrap=True)
