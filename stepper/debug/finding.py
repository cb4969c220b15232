"""Moments of the run, in the past or still to come: at an address, or where an expression holds.

`h_next` is after that operation, in this iteration; `h_next@7` in another one; a loop is its first iteration, `loop@7`
its seventh, and `loop:0` where it has been left.
"""

from __future__ import annotations

import sys
from collections import deque
from collections.abc import Sequence

from msgspec.structs import replace

from stepper.argument_checks import text, whole_number
from stepper.debug.breakpoints.breakpoint import BEGUN, body_of, closed
from stepper.debug.breakpoints.conditions import BreakpointPlace, among, destinations
from stepper.debug.causes.cause import NonFiniteKind, PlaceEvent
from stepper.debug.causes.cause_texts import title
from stepper.debug.inspection.views import Found, FoundMoment, Which
from stepper.debug.loop_runs import PAUSED, Spot, before_iteration, excursion, from_the_first, walk
from stepper.debug.moments.moment import is_before, order_at
from stepper.debug.scopes import Names, innermost_loop, is_body, iteration_now
from stepper.debug.stop import iteration_of
from stepper.debug.stop_scope import WalkScope
from stepper.debug.timeline import Timeline
from stepper.engine.frames import Frame, Frames, place
from stepper.engine.program import CompiledModel, Program
from stepper.errors import AddressCandidate, Paused, StepperError, UsageError
from stepper.ir.lowering import without_loops
from stepper.ir.model import Layer
from stepper.query.address_resolution import (
    AmbiguousAddress,
    Atlas,
    Target,
    address_of,
    as_asked,
    layer_address,
    levels_of,
    unique_name,
)
from stepper.query.address_syntax import Address, IterationRange, Iterations, parse_address
from stepper.query.expressions import Expression, parse

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


def tick_of_value(timeline: Timeline, address: Address | None) -> int | None:
    """Return where the run comes to a value in an iteration that the address names; the present stays.

    None without a number, and where the run has ended. Raise UsageError where the run never comes there.
    """
    if timeline.machine.finished or address is None or not isinstance(address.iterations, int):
        return None
    return tick_of_address(timeline, str(replace(address, index=())))


def place_from_the_first(timeline: Timeline, place: BreakpointPlace) -> BreakpointPlace:
    """Return a place with its iterations counted from the first one. Raise UsageError where there is none so early."""
    asked: list[Iterations | None] = [None] * len(place.program.path)
    for depth, iterations in place.iterations:
        asked[depth - 1] = iterations
    found = from_the_first(timeline, place.program, asked)
    return replace(place, iterations=tuple((at, one) for at, one in enumerate(found, 1) if one is not None))


def tick_of_iteration(timeline: Timeline, iteration: int) -> int:
    """Return the tick at which an iteration begins, outside of loops.

    The iteration belongs to the only loop that can be meant. The present stays. UsageError where there is no such
    iteration, AmbiguousAddress where there are several loops.
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


MOST_FOUND = 1000


def find(
    timeline: Timeline,
    expression: str | Expression,
    which: str | Which = Which.FIRST,
    *,
    limit: int | None = None,
    until: int | None = None,
) -> Found:
    """Return the moments where the expression holds.

    These are the first, next, previous or last moment, or all of them up to the limit. The future is computed as far as
    needed, at most up to tick `until`; the present stays. May be interrupted by a pause. `nan` and `inf` find the
    moments where a NaN or Inf first appears. Raise UsageError (ExpressionError for its text) for an expression that can
    hold nowhere.
    """
    which = _which(which)
    limit = MOST_FOUND if limit is None else whole_number("limit", limit, 1)
    if isinstance(expression, str) and expression.strip() in WORDS:
        return find_births(timeline, expression.strip(), which, limit, until)
    expression = expression if isinstance(expression, Expression) else parse(text("expression", expression))
    machine = timeline.machine
    present = machine.tick
    search = _MomentSearch(timeline, expression, which, limit)
    with excursion(timeline):
        stopped = _to_begin(timeline, search, which)
        last = present - 1 if which is Which.PREVIOUS else until
        search.after = present if which is Which.NEXT else -1
        if not stopped and (last is None or last >= machine.tick):
            stopped = walk(timeline, search.spot, search.visit, until=last)
        if not (stopped or search.finished or machine.finished) and which is not Which.PREVIOUS:
            stopped = f"tick {until} is reached"
    return Found(tuple(search.found), search.asked, search.more, stopped, search.failures, search.failure)


def _which(which: str | Which) -> Which:
    try:
        return Which(which)
    except ValueError:
        raise UsageError(f"'{which}' is none of {', '.join(Which)}") from None


def _to_begin(timeline: Timeline, search: _MomentSearch, which: Which) -> str:
    """Go to where the search begins; a little earlier where prev() needs the iteration before. PAUSED, else empty."""
    if which is not Which.NEXT:
        timeline.goto(0)
        return ""
    stack = timeline.machine.stack
    depth = len(search.spot.program.path)
    is_running = depth < len(stack) and stack[depth].program is search.spot.program
    if search.remembers and is_running and innermost_loop(stack[: depth + 1]) == depth:
        return before_iteration(timeline, depth, max(iteration_now(stack[: depth + 1]) - 1, 0))
    return ""


def ensure_no_reference(expression: Expression) -> None:
    """Raise UsageError for an expression that asks for the run that this one is compared with."""
    if expression.references:
        raise UsageError("there is no reference run here, so ref() cannot be asked for")


def ensure_any_iteration(targets: Sequence[Target]) -> None:
    """Raise UsageError if a name gives the iteration."""
    if any(asked is not None for target in targets for asked in target.iterations):
        raise UsageError(
            "every iteration is asked, and every run of an inner loop, so the names may not say which one; prev(x) is "
            "the one before"
        )


def ensure_together(target: Target, program: Program) -> None:
    """A value is there in the innermost graph where it belongs to that or to one around it. Raise UsageError."""
    path = target.program.path
    if program.path[: len(path)] != path or (len(program.path) == len(path) and target.program is not program):
        raise UsageError(f"'{target.named.name}' is in {target.program.name}, which never runs inside {program.name}")


class _MomentSearch:
    """Asks the expression at each moment."""

    def __init__(self, timeline: Timeline, expression: Expression, which: Which, limit: int) -> None:
        machine = timeline.machine
        self._stack_of, self._expression = machine, expression
        self._names, self._where = Names(machine.compiled), machine.program
        self._wanted = limit if which is Which.ALL else 1
        self._ends_at_first = which in (Which.FIRST, Which.NEXT)
        self._keeps_last = which in (Which.LAST, Which.PREVIOUS)
        self._scope = WalkScope(timeline, expression, lambda address: self._names.target(address, self._where))
        self.found: deque[FoundMoment] = deque(maxlen=self._wanted)
        self.after = -1
        self.asked = self.failures = 0
        self.failure = ""
        self.more = self.finished = False
        self.spot = self._spot()

    @property
    def remembers(self) -> bool:
        """True if values of the iteration before are needed."""
        return bool(self._expression.previous)

    # --- where ---------------------------------------------------------------------------------------------------

    def _spot(self) -> Spot:
        """Return where the last of the values that the expression names is computed."""
        ensure_no_reference(self._expression)
        targets = [self._names.target(address, self._where) for address in self._expression.addresses]
        ensure_any_iteration(targets)
        program = max((target.program for target in targets), key=lambda program: len(program.path), default=None)
        program = self._innermost() if program is None else program
        for target in targets:
            ensure_together(target, program)
        here = [target.program.computed_at.get(target.slot, -1) for target in targets if target.program is program]
        return Spot(program, max(here, default=-1))

    def _innermost(self) -> Program:
        stack = self._stack_of.stack
        depth = innermost_loop(stack)
        if depth is not None:
            return stack[depth].program
        programs = self._stack_of.compiled.programs
        bodies = [program for program in programs if is_body(program)]
        if len(bodies) != 1:
            raise UsageError("the expression names no value, and there is no loop here; enter the loop that is meant")
        return bodies[0]

    # --- moments -------------------------------------------------------------------------------------------------

    def visit(self, _frame: Frame, tick: int) -> bool:
        """Ask here; whether the search is over."""
        if tick > self.after:
            self.asked += 1
            if self._holds():
                if len(self.found) == self._wanted and not self._keeps_last:
                    self.more = self.finished = True
                    return True
                stack = self._stack_of.stack
                is_inside = innermost_loop(stack) is not None
                self.found.append(FoundMoment(tick, iteration_now(stack) if is_inside else None, place(stack)))
                self.finished = self._ends_at_first
        if self.remembers:
            self._scope.remember()
        return self.finished

    def _holds(self) -> bool:
        try:
            return self._expression.truth(self._scope)
        except StepperError as error:
            self.failures += 1
            self.failure = self.failure or str(error)
            return False


WORDS = tuple(str(kind) for kind in NonFiniteKind)
"""Expressions that ask for the origins of NaN or Inf instead of a condition."""


def find_births(timeline: Timeline, word: str, which: Which, limit: int, until: int | None) -> Found:
    """Return the moments at which an operation gives the first NaN (or Inf) of its own, where its inputs have none.

    The whole run is looked through, at most up to tick `until`; the present stays.
    """
    from stepper.debug.overview.runs import MOST_BIRTHS, BirthSearch  # the first picture needs none

    machine = timeline.machine
    present, search = machine.tick, BirthSearch(timeline)

    def is_wanted(tick: int) -> bool:
        return tick > present if which is Which.NEXT else tick < present if which is Which.PREVIOUS else True

    def ticks() -> list[int]:
        return [one.tick for one in search.found if one.cause.kind == word and is_wanted(one.tick)]

    def enough() -> bool:
        return which in (Which.FIRST, Which.NEXT) and bool(ticks())

    end = present if which is Which.PREVIOUS else sys.maxsize if until is None else until
    with excursion(timeline):
        search.look(end, None, enough)
        is_through = machine.finished or search.tick >= end or enough() or len(search.found) >= MOST_BIRTHS
        found = [one for one in search.found if one.cause.kind == word and is_wanted(one.tick)]
        count = len(found)
        is_last = which in (Which.LAST, Which.PREVIOUS)
        stopped = "" if is_through else PAUSED
        if is_last and len(search.found) >= MOST_BIRTHS and not machine.finished and machine.tick < end:
            stopped = f"{MOST_BIRTHS} origins were found"  # a later one was not looked for
        chosen = found[:limit] if which is Which.ALL else found[-1:] if is_last else found[:1]
        moments = []
        for one in chosen:
            timeline.goto(one.tick)
            told = f"{place(machine.stack)}: {title(one.cause, is_short=True)}"
            moments.append(FoundMoment(one.tick, one.cause.location.iteration, told))
    return Found(tuple(moments), count, count > len(chosen), stopped, 0, "")
