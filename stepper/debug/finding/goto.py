"""Going to a place by its address: which moment of the run that is, in the past or still to come.

`h_next` is after that operation, in this iteration; `h_next@7` in another one; a loop is its first iteration, `loop@7`
its seventh, and `loop:0` where it has been left.
"""

from __future__ import annotations

from msgspec.structs import replace

from stepper.debug.breakpoints.breakpoint import BEGUN, body_of, closed
from stepper.debug.breakpoints.conditions import BreakpointPlace, among, destinations
from stepper.debug.causes.cause import PlaceEvent
from stepper.debug.iterations.loop_runs import from_the_first
from stepper.debug.moments.run_pairs import is_before, order_at
from stepper.debug.stop import iteration_of
from stepper.debug.timeline import Timeline
from stepper.debug.visits import PAUSED, Spot, before_iteration, excursion, walk
from stepper.engine.frames import Frame, Frames
from stepper.engine.program import CompiledModel, Program
from stepper.errors import AddressCandidate, Paused, UsageError
from stepper.ir.lowering import without_loops
from stepper.ir.model import Layer
from stepper.query.address_resolution import (
    AmbiguousAddress,
    Atlas,
    address_of,
    as_asked,
    layer_address,
    levels_of,
    unique_name,
)
from stepper.query.address_syntax import Address, IterationRange, Iterations, parse_address

Wanted = dict[int, int | IterationRange]
"""The iterations to be in, by the depth of the loop's frame."""


def tick_of_address(timeline: Timeline, text: str) -> int:
    """Return the tick at which the run is at the place that the address names; the present stays.

    Raise UsageError where the run never gets there, and AmbiguousAddress where it names several places.
    """
    machine = timeline.machine
    found = destinations(text, machine.compiled, machine.program)
    if len(found) > 1:
        asked = parse_address(text)
        candidates = tuple(_candidate(place, asked, machine.compiled) for place in found)
        raise AmbiguousAddress(text, candidates, f"'{text}' names {len(found)} places")
    place = place_from_the_first(timeline, found[0])
    tick = _tick_of(timeline, place, _wanted(machine.stack, place))
    if tick is None:
        raise UsageError(f"the run never comes to '{text}'" + ("" if place.iterations else " in this iteration"))
    return tick


def place_from_the_first(timeline: Timeline, place: BreakpointPlace) -> BreakpointPlace:
    """Return a place with its iterations counted from the first one. Raise UsageError where there is none so early."""
    asked: list[Iterations | None] = [None] * len(place.program.path)
    for depth, iterations in place.iterations:
        asked[depth - 1] = iterations
    found = from_the_first(timeline, place.program, asked)
    return replace(place, iterations=tuple((at, one) for at, one in enumerate(found, 1) if one is not None))


def tick_of_iteration(timeline: Timeline, iteration: int) -> int:
    """Return the tick at which an iteration begins, outside of loops: that of the only loop that can be meant.

    The present stays. UsageError where there is no such iteration, AmbiguousAddress where there are several loops.
    """
    machine = timeline.machine
    around, loop = _only_loop(machine.compiled, machine.program, iteration)
    body = body_of(loop, machine.compiled)
    place = BreakpointPlace(body, BEGUN, PlaceEvent.BEGAN, loop, ((len(body.path), iteration),))
    tick = _tick_of(timeline, place, _wanted(machine.stack, place))
    if tick is None:
        raise UsageError(f"there is no iteration {iteration:,}: '{loop.name}' in {around.name} does not run it")
    return tick


def _only_loop(compiled: CompiledModel, where: Program, iteration: int) -> tuple[Program, Layer]:
    """Return the one loop of the graph where the run stands, else of the whole model, with the graph that it is in."""
    loops = [(where, layer) for layer in where.layers if layer.is_loop]
    loops = loops or [(program, layer) for program in compiled.programs for layer in program.layers if layer.is_loop]
    if len(loops) == 1:
        return loops[0]
    if not loops:
        raise UsageError(f"there is no iteration {iteration:,}: {without_loops(compiled.model)}")
    atlas = Atlas(compiled)
    addresses = [(Address(levels_of(program, atlas), unique_name(layer, program)), layer) for program, layer in loops]
    candidates = tuple(AddressCandidate(f"{address}@{iteration}", layer.type) for address, layer in addresses)
    raise AmbiguousAddress(str(iteration), candidates, f"several loops have an iteration {iteration:,}: name one")


def _candidate(place: BreakpointPlace, asked: Address, compiled: CompiledModel) -> AddressCandidate:
    target = place.target
    if target is not None:
        return AddressCandidate(str(as_asked(address_of(target, compiled), asked)), target.named.type)
    address = layer_address(place.layer, Atlas(compiled).holding(place.layer), compiled)
    return AddressCandidate(str(as_asked(address, asked)), place.layer.type)


def _wanted(stack: Frames, place: BreakpointPlace) -> Wanted:
    """Return the iterations that the address names; of the loops around it that run now, otherwise the present one."""
    wanted: Wanted = {}
    for depth, frame in enumerate(stack):
        if depth > len(place.program.path) or frame.program.path != place.program.path[:depth]:
            break
        iteration = iteration_of(frame)
        if iteration is not None:
            wanted[depth] = iteration
    return {**wanted, **dict(place.iterations)}


def _tick_of(timeline: Timeline, place: BreakpointPlace, wanted: Wanted) -> int | None:
    """Return the first tick at which the run is at the place in the iterations; the present stays."""
    machine = timeline.machine
    index = min(place.index, closed(place.program) - 1)
    found: int | None = None
    with excursion(timeline):

        def visit(frame: Frame, tick: int) -> bool:
            nonlocal found
            stack = machine.stack
            frames = [*stack[: len(place.program.path)], frame]
            now = [(iteration_of(frames[depth]), asked) for depth, asked in wanted.items()]
            if all(iteration is not None and among(iteration, asked) for iteration, asked in now):
                # An iteration is closed one move after its last operation.
                found = tick + place.index - index
            return found is not None

        stopped = _begin(timeline, place, wanted) or walk(timeline, Spot(place.program, index), visit)
    if stopped == PAUSED and found is None:
        raise Paused
    return found


def _begin(timeline: Timeline, place: BreakpointPlace, wanted: Wanted) -> str:
    """Go to a moment before the place: of the outermost loop that is wanted and runs here, before its iteration.

    PAUSED where it did not come there, else empty.
    """
    stack = timeline.machine.stack
    outermost = min(wanted, default=None)
    path = place.program.path
    if outermost is None or outermost >= len(stack) or stack[outermost].program.path != path[:outermost]:
        timeline.goto(0)
        first = [_first(wanted.get(depth, 0)) for depth in range(1, len(path) + 1)]
        order = order_at(timeline.machine.compiled, place.program, first)
        nearest = timeline.history.latest(lambda kept: is_before(kept, order))
        if nearest is not None:
            timeline.goto(nearest.tick)
        return ""
    return before_iteration(timeline, outermost, _first(wanted[outermost]))


def _first(asked: int | IterationRange) -> int:
    return asked if isinstance(asked, int) else asked.start or 0
