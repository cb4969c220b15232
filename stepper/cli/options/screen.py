"""The options of the terminal application that are about the session and the keys, and those of `stepper help`."""

from __future__ import annotations

import argparse


def add_session_and_keys(tui: argparse.ArgumentParser) -> None:
    """How the session is kept, and which keys there are."""
    tui.add_argument(
        "--session",
        metavar="FILE",
        help="keep the session there, and go on with it where it exists, on the inputs that it has; "
        "without this it is kept by model in the user's state folder",
    )
    tui.add_argument("--fresh", action="store_true", help="begin anew, without what was kept of the last session")
    tui.add_argument("--no-keep", action="store_true", help="neither put a session back nor keep this one")
    _add_keys(tui)


def add_help(command: argparse.ArgumentParser) -> None:
    """`stepper help [TOPIC]`."""
    command.description = (
        "Print how a command, an address, an expression, a breakpoint or an input is written; the keys of the "
        "application; or the schemas of all answers as JSON."
    )
    command.add_argument(
        "topic", metavar="TOPIC", nargs="*", help="such as addresses, run, keys, exit codes; without it, all topics"
    )
    _add_keys(command)
    command.add_argument("--json", action="store_true", help="as JSON on stdout")


def _add_keys(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "--keys",
        metavar="PRESET|FILE",
        help="default, vscode, vim, emacs, or a .toml file (by default keys.toml in the configuration folder)",
    )
