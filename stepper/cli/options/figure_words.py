"""Options of `stepper export` by their long names, as lists of figures and pages of documentation give them."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from stepper.cli.options.protected import OPTIONS_WITH_A_PATH
from stepper.cli.parser import command_parsers
from stepper.errors import UsageError
from stepper.wording import none_of

NOT_LISTED: Final = ("check", "output", "help")
"""Options of export that a listed figure cannot have: where it goes is settled, and --check is for all."""


def export_options() -> Mapping[str, argparse.Action]:
    """Return the options of export by their long names without dashes."""
    actions = command_parsers()["export"].actions
    return {name[2:]: action for action in actions for name in action.option_strings if name.startswith("--")}


def names_a_path(action: argparse.Action) -> bool:
    """True if the value of an option is the path of a file to be read, or may be one."""
    return action.dest in OPTIONS_WITH_A_PATH


def words_of(key: str, value: object, where: str, own: Sequence[str], denied: Sequence[str]) -> Iterator[str]:
    """Yield the words of one option, `key` being its long name without dashes, and `own` other keys that there are.

    Raise UsageError, beginning with `where`, for an unknown key and for a value of a wrong kind.
    """
    options = export_options()
    if key not in options or key in denied:
        raise UsageError(f"{where}: {none_of(key, [*own, *(name for name in options if name not in denied)])}")
    if isinstance(value, bool):
        if options[key].nargs != 0:
            raise UsageError(f"{where}: {key} takes a value, not true or false")
        yield from (f"--{key}",) * value
        return
    values = value if isinstance(value, list) else [value]
    for one in values:
        if not isinstance(one, (str, int, float)) or isinstance(one, bool) or options[key].nargs == 0:
            raise UsageError(f"{where}: {key} = {value!r} is not a value of --{key}")
        yield f"--{key}={one}"
