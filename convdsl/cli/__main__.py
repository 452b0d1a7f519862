"""`python -m convdsl.cli`, where the command is not installed."""

import sys

from convdsl.cli import main

sys.exit(main())
