"""Lines that are typed where the cursor is in an iteration: the names in them mean what they are there."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Final

from stepper.commands.registry import command_called
from stepper.debug.iterations.named_values import address_in_iterations
from stepper.debug.overview.addresses import address_in_loop
from stepper.debug.scopes import Names
from stepper.errors import StepperError
from stepper.query.expression_syntax import with_addresses

if TYPE_CHECKING:
    from stepper.engine.program import CompiledModel, Program

_SHOWING: Final = ("print", "stats")
_GOING: Final = ("goto", "A")
_ITERATION: Final = re.compile(r"@?([0-9]{1,18})")


def in_iterations(
    line: str, compiled: CompiledModel, body: Program, iterations: Sequence[int], *, at_end: bool = False
) -> str:
    """Return a line that shows a value, with what its names mean in these iterations; any other as it is.

    Of one that goes to an iteration, or makes it A, by its number alone, that is one of this loop.
    `iterations` are those of the loop with this body and of those around it, from the outside inwards. `at_end`: what
    the loop carries is what the iteration hands on, else what entered it.
    """
    word, _, rest = line.partition(" ")
    meant = partial(address_in_iterations, compiled=compiled, body=body, iterations=iterations, at_end=at_end)
    try:
        name = command_called(word).name if rest.strip() else ""
        if name in _GOING and (asked := _ITERATION.fullmatch(rest.strip())):
            address = address_in_loop(body, iterations[:-1], int(asked[1]), compiled)
            return f"{word} {address}" if address else line
        if name not in _SHOWING:
            return line
        return f"{word} {with_addresses(Names(compiled).as_expression(rest.strip(), body), meant)}"
    except StepperError:  # the answer to the line will tell
        return line
