"""`python -m convdsl` is the command, where that is not installed."""

import sys

from convdsl.cli import main

sys.exit(main())
