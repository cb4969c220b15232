"""`stepper completion SHELL`: the script with which a shell completes the command line."""

from __future__ import annotations

from argparse import Namespace

from argcomplete.shell_integration import shellcode


def execute(options: Namespace) -> int:
    """Print the script; 0."""
    print(shellcode(["stepper"], use_defaults=False, shell=options.shell))
    return 0
