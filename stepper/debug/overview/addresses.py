"""The address of what an overview shows: an iteration of a run of a loop, or an operation in it."""

from __future__ import annotations

from collections.abc import Sequence

from stepper.engine.program import CompiledModel, Program
from stepper.ir.model import Layer
from stepper.query.address_resolution import MAIN, Target, moment_address
from stepper.query.address_syntax import Address, Level, Name, NameKind


def address_in_loop(
    program: Program,
    outer: Sequence[int],
    iteration: int,
    compiled: CompiledModel,
    layer: Layer | None = None,
    output: int = 0,
) -> str:
    """Return the address of an iteration of a loop's body, or of an output of a layer in it.

    It is empty for a body without operations.
    `outer` are the iterations of the loops around it, from the outside inwards.
    """
    if not program.operations:
        return ""
    named = program.operations[0].layer if layer is None else layer
    slot = program.slots.get((named.id, output), -1)
    place = moment_address(Target(program, named, output, slot, named, (None,) * len(program.path)), compiled)
    around_it, main = iter(outer), Level(Name(NameKind.PLAIN, MAIN))
    levels, known = [], iter(place.levels)
    if place.levels[0] == main:
        levels.append(next(known))
    for around in program.path:
        level = next(known)
        if around.type == "If":
            levels += [level, next(known)]
        else:
            levels.append(Level(level.name, None if around is program.path[-1] else next(around_it, None)))
    if layer is None:
        return str(Address(tuple(levels[:-1]) or (main,), levels[-1].name, None, iteration))
    return str(Address(tuple(levels), place.operation, place.port, iteration))
