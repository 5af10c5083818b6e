"""`python -m sgfn.cli`."""

import sys

from sgfn.cli.commands import main

if __name__ == "__main__":
    sys.exit(main())
