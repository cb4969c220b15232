"""How long a new process takes to begin, beside Python's own start: `python -m tests.benchmarks.startup [--json]`."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from tests.benchmarks import models, timing

NOTHING, NUMPY = "python -c pass", 'python -c "import numpy"'
NUMPY_AND_LXML = 'python -c "import numpy, lxml.etree"'

_RUN = """
import sys, numpy, stepper
model = stepper.read_model(sys.argv[1])
one = numpy.ones(1, numpy.float32)
print(stepper.run(model, {"number": 2 * one, "guess": one})["root"].item())
"""


def commands(folder: Path) -> dict[str, list[str]]:
    """What is started, by name: arguments of the interpreter."""
    path = models.newton_model(folder, iterations=10)
    return {
        NOTHING: ["-c", "pass"],
        NUMPY: ["-c", "import numpy"],
        NUMPY_AND_LXML: ["-c", "import numpy, lxml.etree"],
        'python -c "import stepper"': ["-c", "import stepper"],
        "stepper --help": ["-m", "stepper", "--help"],
        "stepper --version": ["-m", "stepper", "--version"],
        "read and run a model of one small loop": ["-c", _RUN, str(path)],
        "stepper run of a model of one small loop": ["-m", "stepper", "run", str(path), "--input", "*=ones"],
    }


def start(arguments: list[str]) -> str:
    """Run the interpreter with these arguments to its end; what it prints."""
    command = [sys.executable, *arguments]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def measure(folder: Path, rounds: int) -> timing.Reports:
    """The ratios to each base."""
    candidates: dict[str, Callable[[], object]] = {
        name: lambda arguments=arguments: start(arguments) for name, arguments in commands(folder).items()
    }
    seconds = timing.side_by_side(candidates, rounds)
    title = "A new process"
    return [
        timing.report(title, seconds, NOTHING),
        *(timing.report(title, seconds, base) for base in (NUMPY, NUMPY_AND_LXML)),
    ]


def reports(folder: Path, *, quick: bool) -> timing.Reports:
    """Everything, measured."""
    return measure(folder, rounds=2 if quick else 15)


if __name__ == "__main__":
    timing.main(__doc__, reports)
