"""How long a new process takes to begin, beside Python's own start: `python -m tests.benchmarks.startup [--json]`."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

from tests.benchmarks import models, timing

NOTHING, NUMPY = "python -c pass", 'python -c "import numpy"'

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
        'python -c "import stepper"': ["-c", "import stepper"],
        "stepper --help": ["-m", "stepper", "--help"],
        "stepper --version": ["-m", "stepper", "--version"],
        "read and run a model of one small loop": ["-c", _RUN, str(path)],
    }


def start(arguments: list[str]) -> str:
    """Run the interpreter with these arguments to its end; what it prints."""
    command = [sys.executable, *arguments]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def measure(folder: Path, rounds: int) -> list[dict[str, object]]:
    """The ratios to both bases."""
    candidates: dict[str, Callable[[], object]] = {
        name: lambda arguments=arguments: start(arguments) for name, arguments in commands(folder).items()
    }
    seconds = timing.side_by_side(candidates, rounds)
    title = "A new process"
    return [timing.report(title, seconds, NOTHING), timing.report(title, seconds, NUMPY)]


def main() -> None:
    """Measure and print."""
    as_json = timing.json_wanted(__doc__)
    with tempfile.TemporaryDirectory() as folder:
        reports = measure(Path(folder), rounds=15)
    timing.print_reports(reports, as_json=as_json)


if __name__ == "__main__":
    main()
