"""Options of `stepper export` by their long names, as lists of figures and pages of documentation give them."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Mapping, Sequence

from stepper.cli.options.specs import OPTIONS_WITH_A_PATH
from stepper.cli.parser import command_parsers
from stepper.errors import UsageError
from stepper.files.allowed import ALLOWED, SettingsFile
from stepper.wording import none_of


def export_options() -> Mapping[str, argparse.Action]:
    """Return the options of export by their long names without dashes."""
    actions = command_parsers()["export"].actions
    return {name[2:]: action for action in actions for name in action.option_strings if name.startswith("--")}


def names_a_path(action: argparse.Action) -> bool:
    """True if the value of an option is the path of a file to be read, or may be one."""
    return action.dest in OPTIONS_WITH_A_PATH


def words_of(key: str, value: object, where: str, own: Sequence[str], source: SettingsFile) -> Iterator[str]:
    """Yield the words of one option that a file sets: `key` is its long name, and `own` are further keys of the file.

    Raise UsageError, beginning with `where`, for an option that the file may not set and for a value of a wrong kind.
    """
    options = export_options()
    if key not in ALLOWED[source]:
        why = f"--{key} is for the command line, a file cannot set it" if key in options else ""
        raise UsageError(f"{where}: {why or none_of(key, [*own, *ALLOWED[source]])}")
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
