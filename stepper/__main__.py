"""`python -m stepper`: the same as the command `stepper`."""

import os
import sys

# Python has put the working folder first, in which a stranger's files may be named like modules.
_folder = os.path.realpath(sys.path[0])
if _folder == os.getcwd() != os.path.dirname(os.path.dirname(os.path.realpath(__file__))):  # noqa: PTH109, PTH120
    del sys.path[0]

from stepper.cli import main  # noqa: E402

sys.exit(main())
