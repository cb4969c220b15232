"""Files of commands: their lines, and the error that names file and line."""

from __future__ import annotations

from pathlib import Path

from stepper.errors import StepperError, UsageError
from stepper.near_names import reason_of


class ScriptError(StepperError):
    """A command of a file failed; the message names file and line, the exit code is that of the error."""

    def __init__(self, where: str, error: StepperError) -> None:
        super().__init__(f"{where}: {error}")
        self.exit_code, self.kind, self.place = error.exit_code, error.kind, error.place


def script_lines(name: str) -> list[tuple[int, str]]:
    """The lines of a file of commands with their numbers, empty ones left out. Raises UsageError."""
    try:
        content = Path(name).read_text(encoding="utf-8-sig")  # editors of Windows write a byte order mark
    except (OSError, ValueError) as error:
        reason = reason_of(Path(name), error) if isinstance(error, OSError) else "it is no text in UTF-8"
        raise UsageError(f"{name}: cannot be read: {reason}") from None
    return [(number, line) for number, line in enumerate(content.splitlines(), 1) if line.strip()]
