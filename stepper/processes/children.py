"""Commands that start Python as a child process. No file of the working folder is a module for such a process.

    subprocess.run(python_command("import json; print(json.dumps(1))"))
    with environment_with({}): ...                       # multiprocessing starts Python itself

With `-c` and `-m`, Python searches the working folder for modules first, and a stranger's `json.py` may lie there.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Final

_SAFE: Final = "-P"
_SAFE_VARIABLE: Final = ("PYTHONSAFEPATH", "1")
"""Does for processes of multiprocessing what `-P` does for a command."""
_SET_PATH: Final = "import sys; sys.path[:] = sys.argv.pop(1).split('\\n'); "
_PACKAGES: Final = str(Path(__file__).parents[2])


def python_command(program: str, *arguments: str, folder: Path = Path()) -> list[str]:
    """Return the command that runs a program text with the module path of this process.

    `folder` is where the process will work. It is no part of the path unless stepper itself lies there.
    """
    folders = {os.path.realpath("."), os.path.realpath(folder)}
    path = [one for one in sys.path if one and "\n" not in one and os.path.realpath(one) not in folders]
    path += [] if _PACKAGES in path else [_PACKAGES]
    return [sys.executable, _SAFE, "-c", _SET_PATH + program, "\n".join(path), *arguments]


def script_command(script: Path) -> list[str]:
    """Return the command that runs a script. The folder of the script is no part of the module path."""
    return [sys.executable, _SAFE, str(script)]


@contextmanager
def environment_with(variables: Mapping[str, str]) -> Iterator[None]:
    """Set variables for the processes that begin in a block, which search the working folder for no module."""
    variables = dict([_SAFE_VARIABLE], **variables)
    before = {name: os.environ.get(name) for name in variables}
    os.environ.update(variables)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value
