"""The command line; `main` is the command `stepper`."""

from stepper.cli.program import main as main
