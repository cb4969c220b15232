"""Lines that are typed where the cursor is in an iteration: the names in them mean what they are there."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import partial
from types import MappingProxyType
from typing import Final

from stepper.commands.command_session import command_called
from stepper.commands.edit_commands import edit_with_meant
from stepper.debug.breakpoints.conditions import whole_value
from stepper.debug.moments.moments import WORDS
from stepper.debug.provenance.question import with_meant
from stepper.debug.scopes import Names
from stepper.debug.table.columns import LookedAt, Reading
from stepper.debug.table.columns import with_meant as table_with_meant
from stepper.errors import StepperError
from stepper.query.address_syntax import names_iteration, parse_address
from stepper.query.expression_syntax import with_addresses


def in_iterations(line: str, looked_at: LookedAt) -> str:
    """Return a line with its addresses written out for the iterations that are looked at.

    Of one that goes to an iteration, or makes it A, by its number alone, that is one of the loop looked at.
    """
    word, _, rest = line.partition(" ")
    rest = rest.strip()
    try:
        name = word if word == _SHEET else command_called(word).name
        return f"{word} {_READERS[name](rest, looked_at)}" if rest and name in _READERS else line
    except StepperError:  # the answer to the line will tell
        return line


def _expression(text: str, looked_at: LookedAt, reading: Reading = Reading.VALUE) -> str:
    text = Names(looked_at.compiled).as_expression(text, looked_at.body)
    return with_addresses(text, partial(looked_at.meant, reading=reading))


def _displayed(text: str, looked_at: LookedAt) -> str:
    form, text = text.split(maxsplit=1) if text.startswith("/") else ("", text)
    return f"{form} {_expression(text, looked_at, Reading.GENERAL)}".lstrip()


def _saved(text: str, looked_at: LookedAt) -> str:
    expression, *file = text.rsplit(maxsplit=1)
    return " ".join((_expression(expression, looked_at), *file)) if file else text


def _edit(text: str, looked_at: LookedAt) -> str:
    return edit_with_meant(text, partial(looked_at.meant, reading=Reading.EDITED), looked_at.meant)


def _question(text: str, looked_at: LookedAt) -> str:
    return with_meant(text, looked_at.compiled, looked_at.meant)


def _uses(text: str, looked_at: LookedAt) -> str:
    asked = parse_address(text)
    return str(looked_at.meant(asked)) if asked.index else text  # else it is who reads it, whenever


def _reached(text: str, looked_at: LookedAt) -> str:
    return _question(f"where {text}", looked_at).removeprefix("where ")


def _table(text: str, looked_at: LookedAt) -> str:
    return table_with_meant(text, partial(looked_at.meant, reading=Reading.COURSE))


def _place(text: str, looked_at: LookedAt, numbers: re.Pattern[str]) -> str:
    """Return where to go; `numbers` are iterations of the loop looked at."""
    if number := numbers.fullmatch(text):
        address = looked_at.iteration(int(number[0].removeprefix("@")))
        return text if address is None else str(address)
    asked = parse_address(whole_value(text, looked_at.compiled, looked_at.body))
    address = looked_at.meant(asked, Reading.PLACE)
    return text if address == asked else str(address)


def _moment(text: str, looked_at: LookedAt) -> str:
    return text if text in WORDS else _place(text, looked_at, _ONE_OF_LOOP)


def _ahead(text: str, looked_at: LookedAt) -> str:
    """Return a place to come to: the next time, unless an iteration is said."""
    is_said = text.startswith("@") or names_iteration(parse_address(text))
    return _place(text, looked_at, _ONE_OF_LOOP) if is_said else text


_SHEET = "sheet"
"""An action of the screen, for which the debugger has no command."""
_ANY_NUMBER = re.compile(r"@?-?[0-9]{1,18}")
_ONE_OF_LOOP = re.compile(r"@?[0-9]{1,18}|@-[0-9]{1,18}")
"""Without -2, which moves A."""

_READERS: Final[Mapping[str, Callable[[str, LookedAt], str]]] = MappingProxyType(
    {
        "print": _expression,
        "stats": _expression,
        "save": _saved,
        "watch": partial(_expression, reading=Reading.GENERAL),
        "display": _displayed,
        "set": _edit,
        "why": _question,
        "uses": _uses,
        "where": _reached,
        "goto": partial(_place, numbers=_ANY_NUMBER),
        "run-to": _ahead,
        "A": _moment,
        "diff": _moment,
        _SHEET: _table,
    }
)
"""Readers of the addresses behind a command, by its name; a breakpoint is of all iterations."""
