"""Addresses in the iterations that one looks at, wherever the run stands."""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum, auto

from msgspec.structs import replace

from stepper.debug.breakpoints.conditions import loop_body
from stepper.debug.iterations.loop_runs import (
    address_in_run,
    loop_around,
)
from stepper.debug.scopes import loop_depth
from stepper.element_types import Indices
from stepper.engine.machine import Machine
from stepper.engine.program import CompiledModel, LoopPlan, Program
from stepper.errors import StepperError
from stepper.ir.model import Layer
from stepper.query.address_resolution import Atlas, Target, from_main, layer_address, moment_address, resolve
from stepper.query.address_syntax import Address, Iterations
from stepper.records import Record


def loop_seen_from(machine: Machine, depth: int) -> Program | None:
    """Return the body of the loop that a frame in no loop is near: the last before the moment, else the first one.

    None where the frame's graph has none.
    """
    frame = machine.stack[depth] if depth < len(machine.stack) else None
    program = machine.compiled.main if frame is None else frame.program
    loops = {
        index: operation.plans[0].program
        for index, operation in enumerate(program.operations)
        if operation.plans and isinstance(operation.plans[0], LoopPlan)
    }
    now = len(program.operations) if frame is None else frame.pc
    found = max((index for index in loops if index < now), default=min(loops, default=None))
    return None if found is None else loops[found]


class Reading(Enum):
    """Kind of thing that a command takes an address for.

    VALUE: one in an iteration; COURSE: one over the iterations of a run; EDITED: one to be changed, where a Constant is
    the same in all iterations; PLACE: where to go, of a loop its iteration; GENERAL: one at any moment, unless the
    address says in which iteration.
    """

    VALUE = auto()
    COURSE = auto()
    EDITED = auto()
    PLACE = auto()
    GENERAL = auto()


class LookedAt(Record, eq=False):
    """Iterations that one looks at: of the loop with this body and of those around it, from the outside inwards."""

    compiled: CompiledModel
    body: Program
    iterations: Indices

    def meant(self, asked: Address, reading: Reading = Reading.VALUE) -> Address:
        """Return the address with the iterations looked at; as it is where it names nothing in these loops.

        Iterations that it names stay, and what is inside of these: `inner@0::h` is in the run of the inner loop in the
        iteration of the outer one that is looked at.
        """
        try:
            if reading is Reading.PLACE and (inside := loop_body(asked, self.compiled, self.body)) is not None:
                return self._loop(asked, inside)
            found = resolve(asked, self.compiled, self.body)
        except StepperError:  # the answer to the line will tell, or it is the name of a type or a pattern
            return asked
        return self._value(asked, found, reading)

    def iteration(self, number: int) -> Address | None:
        """Return the address of an iteration of this run of the loop (negative: from the last); None in no loop."""
        depth = loop_depth(self.body)
        if depth is None:
            return None
        path = self.body.path[:depth]
        return self._address_of_loop(path, self._known(path[:-1]), number)

    def _value(self, asked: Address, found: Target, reading: Reading) -> Address:
        loops = [place for place, one in enumerate(found.program.path) if one.is_loop]
        if not loops:
            return asked
        own, known = loops[-1], self._known(found.program.path)
        is_bare = all(one is None for one in found.iterations)
        if is_bare and _stays_bare(found, reading, is_outside=known[own] is None):
            return asked
        iterations = list(_filled(found.iterations, known))
        if reading is Reading.COURSE:
            iterations[own] = found.iterations[own]
        if tuple(iterations) == found.iterations:
            return asked
        full = moment_address(found, self.compiled)
        if reading is Reading.PLACE and found.named.type == "Result":  # where the iteration is closed
            full = from_main(layer_address(found.named, found.program, self.compiled))
        body = Atlas(self.compiled).ancestor(found.program, loop_around(found))
        return replace(address_in_run(full, body, iterations[:own], iterations[own]), index=asked.index)

    def _loop(self, asked: Address, inside: Program) -> Address:
        """Return the same of the address of a loop, or of an iteration of it."""
        named = resolve(replace(asked, iterations=None), self.compiled, self.body).iterations
        outer = _filled(named, self._known(inside.path[:-1]))
        return asked if outer == named else self._address_of_loop(inside.path, outer, asked.iterations)

    def _address_of_loop(
        self, path: Sequence[Layer], outer: Sequence[Iterations | None], own: Iterations | None
    ) -> Address:
        loop, atlas = path[-1], Atlas(self.compiled)
        full = from_main(layer_address(loop, atlas.holding(loop), self.compiled))
        return address_in_run(full, atlas.bodies(loop)[0], outer, own)

    def _known(self, path: Sequence[Layer]) -> tuple[int | None, ...]:
        """Return the iterations looked at of the layers of a path."""
        loops = (layer for layer in self.body.path if layer.is_loop)
        known = {id(layer): one for layer, one in zip(loops, self.iterations, strict=False)}
        return tuple(known.get(id(layer)) for layer in path)


def _stays_bare(found: Target, reading: Reading, *, is_outside: bool) -> bool:
    """True if an address without iterations stays so; `is_outside`: its loop is not one of those looked at."""
    if reading is Reading.GENERAL:
        return True
    is_constant = found.slot not in found.program.computed_at and found.layer.type != "Parameter"
    if is_constant and reading in (Reading.EDITED, Reading.PLACE):
        return True
    return is_outside and reading in (Reading.VALUE, Reading.EDITED)  # which iteration is for the user to say


def _filled(named: Sequence[Iterations | None], known: Sequence[int | None]) -> tuple[Iterations | None, ...]:
    """Return iterations that an address names, outside of the first of them those that are known."""
    first = next((place for place, one in enumerate(named) if one is not None), len(named))
    return (*known[:first], *named[first:])
