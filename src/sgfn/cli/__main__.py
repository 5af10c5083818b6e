"""`python -m sgfn.cli`."""

from sgfn.cli.commands import main

main()
