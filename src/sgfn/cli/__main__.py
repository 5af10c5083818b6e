"""`python -m sgfn.cli`."""

import sys

from sgfn.cli import main

sys.exit(main())
