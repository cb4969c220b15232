"""Lines that are typed where the cursor is in an iteration: the names in them mean what they are there."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from stepper.errors import StepperError

if TYPE_CHECKING:
    from stepper.engine.program import CompiledModel, Program
    from stepper.query.address_syntax import Address

_SHOWING: Final = ("print", "stats")


def in_iteration_of_cursor(
    line: str, compiled: CompiledModel, where: Program, meant: Callable[[Address], Address]
) -> str:
    """Return a line that shows a value, with what its names mean at the cursor; any other as it is.

    `where` is the graph that the cursor is in.
    """
    from stepper.commands.registry import command_called  # loaded with the first line that is typed
    from stepper.debug.scopes import Names
    from stepper.query.expression_syntax import with_addresses

    word, _, rest = line.partition(" ")
    try:
        is_shown = rest.strip() and command_called(word).name in _SHOWING
        if not is_shown:
            return line
        return f"{word} {with_addresses(Names(compiled).as_expression(rest.strip(), where), meant)}"
    except StepperError:  # the answer to the line will tell
        return line
