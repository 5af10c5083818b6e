"""The command line: parsing and printing only."""

from sgfn.cli.commands import main

__all__ = ["main"]
