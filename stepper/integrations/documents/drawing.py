"""The drawing of a figure in a process of its own: whatever a model does there, the build of the pages goes on."""

from __future__ import annotations

import os
import signal
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from stepper.errors import StepperError
from stepper.processes.starting import python_command

_SECONDS: Final = 300.0
"""How long the drawing of a figure may take."""
_LONGEST: Final = 4000
"""Letters of a message."""
_PROGRAM: Final = "from stepper.cli import main; sys.exit(main())"


class FigureFailed(StepperError):
    """A figure of a document that could not be drawn; the message is that of `stepper export`."""


def draw(words: Sequence[str], folder: Path, target: Path, seconds: float = _SECONDS) -> None:
    """Carry out `stepper export WORDS -o TARGET` in a folder. Raise FigureFailed."""
    command = python_command(_PROGRAM, "export", *words, "-o", str(target), folder=folder)
    group: dict[str, Any] = {"process_group": 0} if os.name == "posix" else {}
    environment = {**os.environ, "PYTHONIOENCODING": "utf-8"}
    with tempfile.TemporaryFile() as messages:
        try:
            process = subprocess.Popen(
                command,
                cwd=folder,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=messages,
                stderr=messages,
                **group,
            )
        except (OSError, ValueError) as error:
            raise FigureFailed(f"{folder}: nothing can be drawn there: {error}") from None
        try:
            code = process.wait(seconds)
        except subprocess.TimeoutExpired:
            raise FigureFailed(f"the figure was not drawn within {seconds:g} s; one of less is drawn sooner") from None
        finally:
            _end(process)
        messages.seek(0)
        said = messages.read().decode("utf-8", "replace").strip()[-_LONGEST:]
    if code:
        raise FigureFailed(said.removeprefix("stepper: ") or f"stepper export ended with {code}")


def _end(process: subprocess.Popen[bytes]) -> None:
    """End the process and those that it started."""
    if process.poll() is None:
        if os.name == "posix":
            os.killpg(process.pid, signal.SIGKILL)
        process.kill()
        process.wait()
