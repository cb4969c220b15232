"""`python -m stepper`: the same as the command `stepper`."""

import sys

from stepper.cli import main

sys.exit(main())
