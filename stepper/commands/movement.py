"""Commands that move in time."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from stepper.commands.moments import PINNED
from stepper.commands.registry import command
from stepper.commands.session import Answer, Session, count, number, required
from stepper.commands.stop_answers import moved
from stepper.debug.breakpoints.checks import closed
from stepper.debug.breakpoints.targets import BreakpointPlace, places
from stepper.debug.debugger import Debugger
from stepper.debug.stop import Reason, Stop, iteration_of
from stepper.debug.timeline import Timeline
from stepper.debug.visits import PAUSED, Spot, before_iteration, excursion, walk
from stepper.engine.frames import Frame
from stepper.errors import Paused, UsageError
from stepper.query.address_syntax import IterationRange


@command("next", "n", syntax="[N]", help="the next operation here, a nested loop or branch as one", moves=True)
def _next(session: Session, text: str) -> Answer:
    return moved(session, session.debugger.next(count(text)))


@command("step", "s", syntax="[N]", help="the next operation, into nested bodies too", moves=True)
def _step(session: Session, text: str) -> Answer:
    return moved(session, session.debugger.step(count(text)))


@command("finish", "f", help="after the last iteration of this loop; from there, or in a branch, out of it", moves=True)
def _finish(session: Session, _text: str) -> Answer:
    return moved(session, session.debugger.finish())


@command("iter", syntax="N|+N|-N|first|last", help="the same place in another iteration of this loop", moves=True)
def _iter(session: Session, text: str) -> Answer:
    debugger = session.debugger
    if text in ("first", "last"):
        return moved(session, debugger.goto_iteration(0 if text == "first" else -1))
    wanted = number(required(text, "the iteration"), "an iteration: N, +N, -N, first or last")
    if text[0] == "+":
        return moved(session, debugger.next_iteration(wanted))
    if text[0] == "-":
        return moved(session, debugger.previous_iteration(-wanted))
    return moved(session, debugger.goto_iteration(wanted))


@command("continue", "c", syntax="[N]", help="on to the next stop (the N-th), or to the end", moves=True)
def _continue(session: Session, text: str) -> Answer:
    return _to_stops(session, text, session.debugger.continue_)


@command("until", syntax="EXPR", help="on to where the expression holds, or to the next stop", moves=True)
def _until(session: Session, text: str) -> Answer:
    return moved(session, session.debugger.until(required(text, "an expression")))


@command(
    "run-to", syntax="TARGET", help="on to an operation, an iteration or an output, or to the next stop", moves=True
)
def _run_to(session: Session, text: str) -> Answer:
    return moved(session, session.debugger.run_to(required(text, "what to run to")))


@command("first", help="the start of the run")
def _first(session: Session, _text: str) -> Answer:
    return moved(session, session.debugger.first())


@command("last", help="the end of the run, whatever would stop on the way")
def _last(session: Session, _text: str) -> Answer:
    return moved(session, session.debugger.last())


@command("reverse-next", "rn", syntax="[N]", help="next, backward", moves=True)
def _reverse_next(session: Session, text: str) -> Answer:
    return moved(session, session.debugger.reverse_next(count(text)))


@command("reverse-step", "rs", syntax="[N]", help="step, backward", moves=True)
def _reverse_step(session: Session, text: str) -> Answer:
    return moved(session, session.debugger.reverse_step(count(text)))


@command("reverse-finish", "rf", help="before the first iteration of this loop or branch", moves=True)
def _reverse_finish(session: Session, _text: str) -> Answer:
    return moved(session, session.debugger.reverse_finish())


@command("reverse-continue", "rc", syntax="[N]", help="back to the stop before, or to the start", moves=True)
def _reverse_continue(session: Session, text: str) -> Answer:
    return _to_stops(session, text, session.debugger.reverse_continue)


def _to_stops(session: Session, text: str, move: Callable[[], Stop]) -> Answer:
    stop = move()
    for _ in range(count(text) - 1):
        if stop.reason is not Reason.BREAK:
            break
        stop = move()
    return moved(session, stop)


@command("to-anomaly", help="on to where NaN or Inf is made or a carried shape changes, or the next stop", moves=True)
def _to_anomaly(session: Session, _text: str) -> Answer:
    return _among_anomalies(session, session.debugger.continue_)


@command("reverse-to-anomaly", help="the same, backward", moves=True)
def _reverse_to_anomaly(session: Session, _text: str) -> Answer:
    return _among_anomalies(session, session.debugger.reverse_continue)


def _among_anomalies(session: Session, move: Callable[[], Stop]) -> Answer:
    with session.debugger.breakpoints.anomalies():
        return moved(session, move())


@command("goto", syntax="N|tick N|ADDR|'MARK", help="iteration N of this loop; a tick; after an operation; a mark")
def _goto(session: Session, text: str) -> Answer:
    debugger = session.debugger
    required(text, "where to go")
    if text == f"'{PINNED}":
        return moved(session, debugger.goto_pinned())
    if text.startswith("'"):
        return moved(session, debugger.goto_tick(session.marked(text[1:])))
    if text.split()[0] == "tick":
        return moved(session, debugger.goto_tick(number(text[len("tick") :].strip(), "a tick")))
    if text.removeprefix("-").isdecimal():
        return moved(session, debugger.goto_iteration(number(text)))
    return moved(session, go_to(debugger, text))


Wanted = dict[int, int | IterationRange]
"""The iterations to be in, by the depth of the loop's frame."""


def go_to(debugger: Debugger, text: str) -> Stop:
    """Go to after the operation that the address names. UsageError where the run never gets there."""
    machine = debugger.machine
    found = places(text, machine.compiled, machine.program)
    if len(found) > 1:
        raise UsageError(f"'{text}' names {len(found)} places; say which one")
    (place,) = found
    tick = _tick_of(debugger.timeline, place, _wanted(machine.stack, place))
    if tick is None:
        raise UsageError(f"the run never comes to '{text}'" + ("" if place.iterations else " in this iteration"))
    return debugger.goto_tick(tick)


def _wanted(stack: Sequence[Frame], place: BreakpointPlace) -> Wanted:
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
            if all(_is_in(iteration_of(frames[depth]), asked) for depth, asked in wanted.items()):
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
        return ""
    asked = wanted[outermost]
    return before_iteration(timeline, outermost, asked if isinstance(asked, int) else asked.start or 0)


def _is_in(iteration: int | None, asked: int | IterationRange) -> bool:
    if iteration is None:
        return False
    if isinstance(asked, int):
        return iteration == asked
    return (asked.start or 0) <= iteration and (asked.stop is None or iteration < asked.stop)
