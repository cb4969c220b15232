"""Conversations as plain text: `(stepper) COMMAND`, and the answer. `python -m tests.debug.transcript` renews them."""

from __future__ import annotations

from pathlib import Path

from stepper.commands import Interpreter
from stepper.errors import StepperError
from tests.debug.debugged import sample

FOLDER = Path(__file__).parent / "transcripts"
PROMPT = "(stepper)"


def commands_in(text: str) -> list[str]:
    """The commands of a conversation."""
    return [line.removeprefix(PROMPT).strip() for line in text.splitlines() if line.startswith(PROMPT)]


def held(name: str, commands: list[str]) -> str:
    """The conversation with a sample model."""
    debugger = sample(name)
    interpreter = Interpreter(debugger)
    lines: list[str] = []
    debugger.breakpoints.sink = lines.append
    for command in commands:
        lines.append(f"{PROMPT} {command}".rstrip())
        try:
            lines += list(interpreter.execute(command).lines)
        except StepperError as error:
            lines += str(error).splitlines()
    return "".join(f"{line}\n" for line in lines)


if __name__ == "__main__":
    for path in sorted(FOLDER.glob("*.txt")):
        path.write_text(held(path.stem, commands_in(path.read_text(encoding="utf-8"))), encoding="utf-8")
