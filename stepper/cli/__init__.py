"""The command line; `main` is the command `stepper`."""

from __future__ import annotations

from collections.abc import Sequence


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; its exit code. Without `arguments`, this process is the program, and these are in sys.argv."""
    from stepper.cli.presses import end_at_once  # nothing else is imported before Ctrl+C is quiet

    if arguments is None:
        end_at_once()
    from stepper.cli import cli_program

    return cli_program.main(arguments)
