"""Meaning of the names of values where one looks at iterations of a loop, which need not be those of the moment."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from stepper.debug.overview.addresses import address_in_loop
from stepper.debug.table.columns import made_by_iteration
from stepper.engine.program import CompiledModel, Program
from stepper.errors import StepperError
from stepper.query.address_resolution import resolve
from stepper.query.address_syntax import Address, parse_address


def address_in_iterations(
    asked: Address, *, compiled: CompiledModel, body: Program, iterations: Sequence[int], at_end: bool
) -> Address:
    """Return the address of a value of a loop, or of one around it, in these iterations; any other as it is.

    `iterations` are those of the loop with this body and of those around it, from the outside inwards. An address that
    names iterations of its loop means these, in that run of it. `at_end`: what the loop carries is what the iteration
    hands on, else what entered it.
    """
    if any(level.iterations is not None for level in asked.levels):
        return asked
    try:
        found = resolve(asked, compiled, body)
    except StepperError:  # the answer to the line will tell, or it is the name of a type
        return asked
    path, loops = found.program.path, sum(one.is_loop for one in found.program.path)
    is_inside = path[: len(body.path)] == body.path and loops == len(iterations) + 1 and asked.iterations is not None
    if is_inside:  # in the run of that loop in the iteration of the cursor
        iterations = (*iterations, 0)
    elif not loops or body.path[: len(path)] != path or loops > len(iterations):
        return asked
    if at_end and asked.iterations is None and found.program is body:
        found = made_by_iteration(found, compiled)
    *outer, iteration = iterations[:loops]
    if asked.iterations is not None and not outer:
        return asked
    text = address_in_loop(found.program, outer, iteration, compiled, found.layer, found.output)
    if not text:
        return asked
    address = parse_address(text)
    return address if asked.iterations is None else replace(address, iterations=asked.iterations)
