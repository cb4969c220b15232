"""Find the run of a loop that is meant, the way into it, and its values; visit other moments.

A loop inside of another loop has a run in each iteration around it. Where nothing says which run is meant, it is the
run under way. Else it is the last run that began before the present, else the first to come.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from time import perf_counter
from typing import Any
from weakref import proxy

from msgspec.structs import replace

from stepper.debug.moments.moment import Order, is_before, order_at, order_of
from stepper.debug.scopes import NotRunning, frame_of, is_body, loop_depth
from stepper.debug.stop import iteration_of
from stepper.debug.timeline import Timeline
from stepper.engine.frames import Event, EventKind, Every, Frame, Frames, Phase, RunObserver, Snapshot, Taps
from stepper.engine.machine import Machine
from stepper.engine.program import Program, Value
from stepper.errors import Paused, StepperError, UsageError
from stepper.query.address_resolution import Atlas, Target, address_of, resolve
from stepper.query.address_syntax import Address, IterationRange, Iterations, Name, NameKind, exact_name
from stepper.records import Record
from stepper.wording import counted

PAUSED = str(Paused())
"""Why a walk ended early, where it was asked to pause."""

Visit = Callable[[Frame, int], bool]
"""Action at a moment, given the frame and the moment's tick; True to go no further."""
Enough = Callable[[], bool]
"""Asked on the way: True to leave off."""


def never() -> bool:
    """Return False: what is asked for is wanted whole."""
    return False


@contextmanager
def excursion(timeline: Timeline) -> Iterator[None]:
    """Leave the present and come back to it; nobody watches meanwhile, and what was met counts as still to come."""
    machine = timeline.machine
    present, watcher, observers, furthest = machine.snapshot(), machine.watcher, machine.observers, timeline.furthest
    machine.watcher, machine.observers = None, ()
    try:
        yield
    finally:
        machine.watcher, machine.observers = watcher, observers
        machine.restore(present)
        timeline.furthest = furthest


class Spot(Record, eq=False):
    """A place of a program that a run comes by: after operation `index`; -1: when the inputs are there."""

    program: Program
    index: int

    @property
    def is_straight_body(self) -> bool:
        """True if this is in the body of a loop in which nothing is nested."""
        return self.program.straight and is_body(self.program)

    def tick_of(self, event: Event, frame: Frame) -> int | None:
        """Return the tick at which the run was here, if the event shows it.

        `frame` is the innermost frame now. A straight body has one event for each iteration, when it is closed, with
        all its values still there.
        """
        if self.is_straight_body:
            if event.kind is EventKind.ITERATION and event.frame.program is self.program:
                return event.tick - len(self.program.code) + self.index
            return None
        arrived = (EventKind.OPERATION, EventKind.LEFT)
        if self.index < 0:  # a loop that was entered has no inputs yet, nor an iteration
            arrived = (EventKind.BEGUN if is_body(self.program) else EventKind.ENTERED,) * 2
        here = frame.program is self.program and frame.pc == self.index + 1 and event.kind in arrived
        return event.tick if here else None

    def missed(self, frame: Frame, tick: int) -> int | None:
        """Return the tick at which the run was here in an iteration that it did not finish."""
        is_cut_short = self.is_straight_body and frame.program is self.program and frame.phase is Phase.RUNNING
        return tick - frame.pc + self.index + 1 if is_cut_short and frame.pc > self.index else None


def walk(timeline: Timeline, spot: Spot, visit: Visit, *, least_depth: int = 0, until: int | None = None) -> str:
    """Go on, visiting each moment at which the run comes by the spot, to the end of the run or where a visit says so.

    Ends too where the stack gets smaller than `least_depth`, and at tick `until`. Returns why it ended before its time:
    a pause, or the error of the run; else an empty text.
    """
    return _VisitingRun(timeline, spot, visit, least_depth).go(until)


class _VisitingRun:
    """Go through a run, past every moment of a spot."""

    def __init__(self, timeline: Timeline, spot: Spot, visit: Visit, least_depth: int) -> None:
        self.timeline, self.machine = timeline, timeline.machine
        self.spot, self.visit, self.least_depth = spot, visit, least_depth
        self.ended = self.machine.finished or len(self.machine.stack) < least_depth

    def go(self, until: int | None) -> str:
        """To the end; why that came too early."""
        if not self.ended and self.machine.tick == 0 and self.spot.index < 0 and self._is_inside():
            self.ended = self.visit(self.machine.stack[-1], 0)
        stopped = ""
        try:
            stopped = self._forward(until)
        except StepperError as error:
            stopped = str(error)
        if not (self.ended or self.machine.finished):
            missed = self.spot.missed(self.machine.stack[-1], self.machine.tick)
            if missed is not None:
                self.visit(self.machine.stack[-1], missed)
        return stopped

    def _forward(self, until: int | None) -> str:
        finest = Every.ITERATION if self.spot.is_straight_body else Every.OPERATION
        while not (self.ended or self.machine.finished):
            inside = self._is_inside()
            every = finest if inside else Every.LOOP
            event = self.timeline.forward(every, partial(self._seen, inside=inside), until)
            if event.kind is EventKind.PAUSED:
                return PAUSED
            if event.kind is EventKind.REACHED:
                break
        return ""

    def _is_inside(self) -> bool:
        return self.machine.stack[-1].program is self.spot.program

    def _seen(self, event: Event, *, inside: bool) -> bool:
        """Visit the moment, if this is one; whether to look up from here."""
        stack = self.machine.stack
        if len(stack) < self.least_depth:
            self.ended = True
        else:
            tick = self.spot.tick_of(event, stack[-1])
            self.ended = tick is not None and self.visit(event.frame if self.spot.is_straight_body else stack[-1], tick)
        return self.ended or self._is_inside() is not inside


def before_iteration(timeline: Timeline, depth: int, iteration: int) -> str:
    """Go to a moment shortly before the iteration begins, of the loop whose frame is at this depth (0 the outermost).

    Where the loop ends or fails before, that is the moment. Returns why it went no further: a pause, else empty.
    """
    machine = timeline.machine
    frame = machine.stack[depth]
    entered = frame.active.entered
    is_straight = depth == len(machine.stack) - 1 and frame.program.straight
    tick = _end_of(frame, iteration - 1, machine.tick) if is_straight else 0

    def fits(snapshot: Snapshot) -> bool:
        frames = snapshot.frames
        return len(frames) > depth and is_run(frames[depth], entered) and _has_still(frames[depth], iteration)

    try:
        if is_straight and tick <= machine.tick:
            timeline.goto(tick)
            return ""
        nearest = timeline.history.latest(fits)
        if nearest is not None and (nearest.tick > machine.tick or not _has_still(frame, iteration)):
            timeline.goto(nearest.tick)
        elif not _has_still(frame, iteration):
            timeline.goto(entered)
        return _on_to(timeline, tick, depth) if is_straight else ""
    except Paused:
        return PAUSED


def is_run(frame: Frame, entered: int) -> bool:
    """True if this is the frame of the run of a loop that was entered at a tick."""
    return frame.activation is not None and frame.activation.entered == entered


def _has_still(frame: Frame, iteration: int) -> bool:
    """True if the iteration has not begun."""
    now = iteration_of(frame)
    return now is None or now < iteration


def _on_to(timeline: Timeline, tick: int, depth: int) -> str:
    """Forward to a tick, or to where the loop is left."""
    machine = timeline.machine
    with suppress(StepperError):  # who walks on from here meets it again, and reports it
        event = timeline.forward(Every.LOOP, lambda _event: len(machine.stack) <= depth, until=tick)
        return PAUSED if event.kind is EventKind.PAUSED else ""
    return ""


def _end_of(frame: Frame, iteration: int, tick: int) -> int:
    """Return the tick at which an iteration of a straight frame, which is at `tick` now, will be (or was) closed."""
    closed = tick + len(frame.program.code) - frame.pc + 1 if frame.phase is Phase.RUNNING else tick
    return closed + (iteration - frame.active.iteration) * (len(frame.program.code) + 2)


Outer = tuple[int | None, ...]
"""For each layer of a body's path but its own the iteration that is meant, negative from the last; None: any."""


def loop_around(target: Target) -> int:
    """Return the depth of the frame of the innermost loop around a place. UsageError where there is none."""
    depth = loop_depth(target.program)
    if depth is None:
        raise UsageError(f"'{target.named.name}' is in no loop, so it has one value only")
    return depth


def outer_iterations(target: Target) -> Outer:
    """Return the iterations around the innermost loop that an address names. UsageError for several at a level."""
    found: list[int | None] = []
    for asked in target.iterations[: loop_around(target) - 1]:
        if isinstance(asked, IterationRange):
            raise UsageError("several iterations are asked for of the innermost loop only; name one of those around it")
        found.append(asked)
    return tuple(found)


def ensure_run_here(stack: Frames, target: Target) -> None:
    """Raise NotRunning for a place if an address names a run of its loop that is not under way.

    Such an address has to say an iteration of the loop as well: `outer@3::inner@-1::h`.
    """
    depth, outer = loop_around(target), outer_iterations(target)
    if depth < len(stack) and frame_of(stack, target.program) is not None and not _fits(stack[: depth + 1], outer):
        loop = target.program.path[depth - 1].name
        raise NotRunning(
            f"'{target.named.name}' is asked for in another run of '{loop}' than the one here: say in which iteration "
            "of it, @0 is the first, @-1 the last, @* all",
            target.program,
        )


def enter_run_of(timeline: Timeline, target: Target) -> int:
    """Go into the run of the innermost loop around a place that its address means; return the depth of its frame."""
    program = Atlas(timeline.machine.compiled).ancestor(target.program, loop_around(target))
    return enter_run(timeline, program, outer_iterations(target))


def enter_run(timeline: Timeline, program: Program, outer: Outer) -> int:
    """Go into a run of the loop with this body, in these iterations around it; return the depth of its frame.

    To where the loop was entered, unless the present is inside of that run. Belongs into an excursion. Raise Paused,
    UsageError where there is no such run, and the error of a run that fails before.
    """
    depth = len(program.path)
    outer = (*outer, *[None] * (depth - 1 - len(outer)))
    if _is_inside(timeline.machine.stack, program, outer):
        return depth
    key = id(program), outer
    tick = timeline.loop_entries.get(key)
    if tick is not None:
        timeline.goto(tick)
        return depth
    layers = program.path[:-1]
    is_said = all(one is not None for one, layer in zip(outer, layers, strict=True) if layer.is_loop)
    if is_said:
        _descend(timeline, program, outer)
        timeline.loop_entries[key] = timeline.machine.tick
    elif not _before_the_present(timeline, program, outer):
        _first_to_come(timeline, program, outer)
    return depth


def go_to_latest(timeline: Timeline, depth: int) -> None:
    """Go to the latest moment that is known of the run of the loop at this depth, if it is later. Raise Paused."""
    machine = timeline.machine
    entered = machine.stack[depth].entered

    def fits(snapshot: Snapshot) -> bool:
        return len(snapshot.frames) > depth and is_run(snapshot.frames[depth], entered)

    nearest = timeline.history.latest(fits)
    if nearest is not None and nearest.tick > machine.tick:
        timeline.goto(nearest.tick)


def address_in_run(
    address: Address, body: Program, outer: Sequence[Iterations | None], iteration: Iterations | None
) -> Address:
    """Return a full address (of address_of) with the iterations around a run of the loop of a body, and one of it."""
    around = {id(layer): one for layer, one in zip(body.path, outer, strict=False)}
    layers = iter(body.path)
    layer = next(layers, None)
    levels = []
    for level in address.levels:
        is_layer = layer is not None and level.name in (exact_name(layer.name), Name(NameKind.ID, str(layer.id)))
        if layer is not None and is_layer:
            levels.append(replace(level, iterations=around.get(id(layer))))
            layer = next(layers, None)
        else:  # a side of an If
            levels.append(level)
    return replace(address, levels=tuple(levels), iterations=iteration)


def outer_now(frames: Frames) -> Outer:
    """Return the iterations around the last of these frames."""
    return tuple(iteration_of(frame) for frame in frames[1:-1])


def iterations_in_all(timeline: Timeline, depth: int) -> int:
    """Return how many iterations the loop at this depth runs in the end; those to come are computed."""
    machine = timeline.machine
    frame = machine.stack[depth]
    last = frame.active.iteration + 1
    with excursion(timeline):
        go_to_latest(timeline, depth)
        latest = machine.stack[depth].activation
        last = max(last, 0 if latest is None else latest.iteration + 1)

        def visit(now: Frame, _tick: int) -> bool:
            nonlocal last
            one = machine.stack[depth].activation if depth < len(machine.stack) else now.activation
            assert one is not None
            last = max(last, one.iteration + 1)
            return False

        stopped = walk(timeline, Spot(frame.program, -1), visit, least_depth=depth + 1)
    if stopped:
        raise UsageError(f"how many iterations there are is not known: {stopped}")
    return last


def from_the_first(
    timeline: Timeline, program: Program, asked: Sequence[Iterations | None]
) -> tuple[Iterations | None, ...]:
    """Return the iterations asked for of the layers of a program's path, those counted from the last from the first.

    What is still to come is run, and forgotten; the present stays. Raise UsageError where no iteration is so early.
    """
    found = list(asked)
    atlas = Atlas(timeline.machine.compiled)
    for around, one in enumerate(asked):
        is_early = one is not None and min([one] if isinstance(one, int) else [one.start or 0, one.stop or 0]) < 0
        if one is None or not is_early:
            continue
        outer = tuple(outside if isinstance(outside, int) else None for outside in found[:around])
        with excursion(timeline):
            depth = enter_run(timeline, atlas.ancestor(program, around + 1), outer)
            count = iterations_in_all(timeline, depth)
        if isinstance(one, int) and one + count < 0:
            name = program.path[around].name
            raise UsageError(f"there is no iteration @{one}: '{name}' runs {counted(count, 'iteration')}")
        numbers = one.numbers(count) if not isinstance(one, int) else range(0)
        found[around] = one + count if isinstance(one, int) else IterationRange(numbers.start, numbers.stop)
    return tuple(found)


def address_from_the_first(timeline: Timeline, address: Address) -> Address:
    """Return an address of a value with no iteration that is counted from the last. Raise as `from_the_first` does."""
    if not any(
        isinstance(one, int) and one < 0 for one in (*(at.iterations for at in address.levels), address.iterations)
    ):
        return address
    machine = timeline.machine
    target = resolve(replace(address, index=()), machine.compiled, machine.program)
    asked = from_the_first(timeline, target.program, target.iterations)
    body = Atlas(machine.compiled).ancestor(target.program, loop_around(target))
    *outer, iteration = (one if isinstance(one, int) else None for one in asked[: len(body.path)])
    full = address_in_run(address_of(target, machine.compiled), body, tuple(outer), iteration)
    return replace(full, index=address.index)


def _is_inside(stack: Frames, program: Program, outer: Outer) -> bool:
    depth = len(program.path)
    return depth < len(stack) and stack[depth].program is program and _fits(stack[: depth + 1], outer)


def _fits(frames: Frames, outer: Outer) -> bool:
    """True if the frames around the last one are in these iterations, as far as they say."""
    return all(asked is None or asked == now for asked, now in zip(outer, outer_now(frames), strict=False))


def _enters(stack: Frames, program: Program, event: Event) -> bool:
    return event.kind is EventKind.ENTERED and len(stack) == len(program.path) + 1 and stack[-1].program is program


def _descend(timeline: Timeline, program: Program, outer: Outer) -> None:
    """Go from the start of the run, or a later snapshot before the place, into one frame after the other."""
    machine = timeline.machine
    compiled, found = machine.compiled, list[int | None]()
    timeline.goto(0)
    for around, layer in enumerate(program.path):
        body, asked = Atlas(compiled).ancestor(program, around + 1), outer[around - 1] if around else None
        if asked is not None and asked < 0:
            asked += iterations_in_all(timeline, around)
        found[-1:] = [asked, -1] if around else [-1]
        order = order_at(compiled, body, found)
        nearest = timeline.history.latest(partial(is_before, order=order))
        if nearest is not None and nearest.tick > machine.tick:
            timeline.goto(nearest.tick)
        event = timeline.forward(Every.LOOP, partial(_has_come, machine, order))
        if event.kind is EventKind.PAUSED:
            raise Paused
        if not _is_inside(machine.stack, body, tuple(found[:-1])):
            where = "" if asked is None else f" in iteration {asked} of '{program.path[around - 1].name}'"
            raise UsageError(f"{layer.type} '{layer.name}' does not run{where}")


def _has_come(machine: Machine, order: Order, _event: Event) -> bool:
    return order_of(machine.stack) >= order


def _before_the_present(timeline: Timeline, program: Program, outer: Outer) -> bool:
    """Go to where the last run before the present was entered; False if there is none."""
    machine = timeline.machine

    def fits(event: Event) -> bool:
        return _enters(machine.stack, program, event) and _fits(machine.stack, outer)

    return timeline.backward(Every.LOOP, fits)


def _first_to_come(timeline: Timeline, program: Program, outer: Outer) -> None:
    """Go on to where the next run is entered."""
    machine = timeline.machine
    layer = program.path[-1]
    if not machine.finished:
        event = timeline.forward(
            Every.LOOP, lambda event: _enters(machine.stack, program, event) and _fits(machine.stack, outer)
        )
        if event.kind is EventKind.PAUSED:
            raise Paused
        if event.kind is EventKind.ENTERED:
            return
    raise UsageError(f"{layer.type} '{layer.name}' does not run")


_MOST_WAITING = 1024
_BYTES_WAITING = 2**22
_SECONDS = 0.05
"""For how long iterations are read together, which are few at first: who takes them may have little time."""

Batch = Sequence[Sequence[Value]]
"""For each slot that is read its values in consecutive iterations; None where it has none."""
Take = Callable[[int, Batch], bool]
"""Function of a batch that begins at an iteration; True to go no further."""


_MOST_AT_ONCE = 1_000_000
"""Ticks that are computed at once of a graph that has one iteration."""


class IterationReader:
    """Reads the iterations [begin, end) of a run of the loop with this body, a little at a time.

    The present stays. `slots` are of the body's frame, or (`inner`) of a branch in it, whose operations do not run in
    each iteration. `next` is the iteration with which the reader continues. `ended` is the first iteration that there
    is not, if that was found out; `failure` is the message of an error of the run, which has ended it.
    """

    def __init__(
        self,
        body: Program,
        outer: Outer,
        slots: Sequence[int] = (),
        inner: Program | None = None,
        *,
        begin: int = 0,
        end: float = math.inf,
    ) -> None:
        self.body, self.outer, self.slots, self.inner = body, outer, tuple(slots), inner
        self.next, self.end = begin, end
        self.ended: int | None = None
        self.failure = ""
        self._stand: Snapshot | None = None
        self._tap: _Tap | None = None

    @property
    def tick(self) -> int:
        """Return the tick at which it stands; -1 before it has begun."""
        return -1 if self._stand is None else self._stand.tick

    @property
    def is_done(self) -> bool:
        """True if all that was asked for was read."""
        return self.ended is not None or self.next >= self.end

    def read(self, timeline: Timeline, take: Take, until: int | None = None) -> bool:
        """Read values on: to the end, a pause, tick `until`, or where `take` has had enough; False where paused."""
        if not self.body.path:
            return self._once(timeline, take)
        way = self._through_body if self.inner is None else self._through_branch
        return self._go(timeline, lambda: way(timeline, take, until))

    def _once(self, timeline: Timeline, take: Take) -> bool:
        """Read values of the model's own graph, or of a side of an If in it, which have one iteration."""
        taken = list[Value]()

        def seen(frame: Frame) -> bool:
            taken[:] = [frame.values[slot] if frame.is_current(slot) else None for slot in self.slots]
            return True

        if not self._seen_once(timeline, seen):
            return False
        take(0, [[value] for value in taken or [None] * len(self.slots)])
        return True

    def _seen_once(self, timeline: Timeline, seen: Callable[[Frame], bool]) -> bool:
        """Look at the graph when all of its operations have run, or as many as do; False where paused."""
        program = self.inner or self.body
        with excursion(timeline):
            most = max(timeline.furthest, _MOST_AT_ONCE)
            timeline.goto(0)
            spot = Spot(program, len(program.operations) - 1)
            reason = walk(timeline, spot, lambda frame, _tick: seen(frame), until=most)
            if timeline.machine.tick >= most and not timeline.machine.finished:  # a loop in it may never end
                seen(timeline.machine.stack[0])
            if reason not in ("", PAUSED) and program is timeline.machine.stack[0].program:
                seen(timeline.machine.stack[0])
        if reason != PAUSED:
            self.failure, self.next, self.ended = reason, 1, 1
        return reason != PAUSED

    def visit(self, timeline: Timeline, visit: Callable[[Frame], bool]) -> bool:
        """Call `visit` when all operations of an iteration have run, until it returns True.

        In all else `visit` works like `read`.
        """

        def seen(iteration: int, frame: Frame) -> bool:
            self.next = iteration + 1
            return visit(frame) or self.next >= self.end

        if not self.body.path:
            return self.is_done or self._seen_once(timeline, visit)
        return self._go(timeline, lambda: self._stopped(timeline, self._walk(timeline, self.body, seen)))

    def _go(self, timeline: Timeline, way: Callable[[], bool]) -> bool:
        """Go on from where it stands, by a way that returns True where it was paused; False in that case."""
        machine = timeline.machine
        if self.is_done:
            return True
        with excursion(timeline):
            if self._stand is None:
                depth = enter_run(timeline, self.body, self.outer)
                self.outer = outer_now(machine.stack[: depth + 1])
                if before_iteration(timeline, depth, self.next):
                    return False
            else:
                machine.restore(self._stand)
            is_paused = not self._has_left(machine) and way()
            self._stand = None if self.is_done else machine.snapshot()
        return not is_paused

    def _stopped(self, timeline: Timeline, reason: str) -> bool:
        """Note whether the loop has ended; `reason` is why it was left off before. True if it was paused."""
        if not self._has_left(timeline.machine) and reason not in ("", PAUSED):
            self.failure, self.ended = reason, self.next
        return reason == PAUSED

    def _has_left(self, machine: Machine) -> bool:
        """True if the loop has been left; then it has no further iterations."""
        has_left = machine.finished or len(machine.stack) <= len(self.body.path)
        if has_left:
            self.ended = self.next
        return has_left

    def _walk(
        self, timeline: Timeline, program: Program, visit: Callable[[int, Frame], bool], until: int | None = None
    ) -> str:
        """Visit the body, or a branch in it, in each iteration from the next one on; return why it ended early."""
        machine, depth = timeline.machine, len(self.body.path)

        def seen(frame: Frame, _tick: int) -> bool:
            iteration = iteration_of(frame if program is self.body else machine.stack[depth])
            return iteration is not None and iteration >= self.next and visit(iteration, frame)

        spot = Spot(program, len(program.operations) - 1)
        return walk(timeline, spot, seen, least_depth=depth + 1, until=until)

    def _through_body(self, timeline: Timeline, take: Take, until: int | None) -> bool:
        """Read the body's own values; True if it was paused."""
        machine, depth = timeline.machine, len(self.body.path)
        tap = self._tap = self._tap or _Tap(machine, self.body, self.slots, self.end)
        tap.begin(lambda begin, batch: self._take(begin, batch, take))
        is_bounded, is_edited = self.end < math.inf, bool(timeline.edits)
        every = Every.ITERATION if is_edited or (is_bounded and not self.body.straight) else Every.LOOP
        machine.observers = () if is_edited else (tap,)  # which is told before an edit at the close of an iteration

        def fits(event: Event) -> bool:
            if is_edited and event.kind is EventKind.ITERATION:
                tap.iteration_closed(event.frame)
            return tap.is_enough or len(machine.stack) <= depth

        frame = machine.stack[depth]
        if is_bounded and self.body.straight:
            last = frame.active.entered + int(self.end) * (len(self.body.code) + 2)
            until = last if until is None else min(last, until)
        reason = ""
        try:
            if timeline.forward(every, fits, until).kind is EventKind.PAUSED:
                reason = PAUSED
            tap.settle()
        except StepperError as error:
            tap.unfinished(machine.stack[depth] if len(machine.stack) > depth else None)
            reason = str(error)
        finally:
            if tap.is_enough:
                machine.request_pause(wanted=False)
        return self._stopped(timeline, "" if reason == PAUSED and tap.is_enough else reason)

    def _take(self, begin: int, batch: Batch, take: Take) -> bool:
        """Hand over what is new of a batch, and asked for."""
        count = len(batch[0])
        first, last = max(self.next, begin), int(min(begin + count, self.end))
        if first >= last:
            return last >= self.end
        self.next = last
        return take(first, [values[first - begin : last - begin] for values in batch]) or last >= self.end

    def _through_branch(self, timeline: Timeline, take: Take, until: int | None) -> bool:
        """Read values of a branch, which is not in each iteration; True if it was paused."""
        machine, inner = timeline.machine, self.inner
        assert inner is not None
        waiting: list[list[Value]] = [[] for _ in self.slots]

        def settle() -> bool:
            begin, batch = self.next, [values.copy() for values in waiting]
            for values in waiting:
                values.clear()
            return bool(batch[0]) and self._take(begin, batch, take)

        def put(iteration: int, frame: Frame | None) -> None:
            for values, slot in zip(waiting, self.slots, strict=True):
                values += [None] * (iteration - self.next - len(values))
                if frame is not None and len(values) == iteration - self.next:
                    values.append(frame.values[slot])

        def visit(iteration: int, frame: Frame) -> bool:
            put(iteration, frame)
            return (len(waiting[0]) >= _MOST_WAITING or iteration + 1 >= self.end) and settle()

        reason = self._walk(timeline, inner, visit, until)
        if machine.finished or len(machine.stack) <= len(self.body.path):
            put(_iterations_run(timeline, self), None)
        settle()
        return self._stopped(timeline, reason)


def _iterations_run(timeline: Timeline, reader: IterationReader) -> int:
    """Return how many iterations the run had that was read, which has ended just now."""
    machine, depth = timeline.machine, len(reader.body.path)
    found = reader.next
    present = machine.tick
    timeline.goto(present - 1)  # one move before a loop is left it stands after its last iteration
    if len(machine.stack) > depth and machine.stack[depth].program is reader.body:
        found = (iteration_of(machine.stack[depth]) or 0) + 1
    timeline.return_to(present)
    return found


class _Tap(RunObserver):
    """Takes values of a body's frame as each iteration is closed."""

    def __init__(self, machine: Machine, body: Program, slots: Sequence[int], end: float) -> None:
        self._machine: Machine = proxy(machine)
        self._body, self._slots, self._end = body, slots, end
        self._begin = 0
        self._waiting: list[list[Value]] = [[] for _ in slots]
        self._pairs = [(values.append, slot) for values, slot in zip(self._waiting, slots, strict=True)]
        self._most = self._fullest = 1

    def begin(self, take: Take) -> None:
        """Take values from now on, for another one."""
        self._take, self._begun, self.is_enough = take, perf_counter(), False

    def iteration_closed(self, frame: Frame) -> None:
        """Take the values of the iteration."""
        if frame.program is not self._body or not frame.loop:
            return
        activation = frame.active
        if not self._waiting[0]:
            self._begin = activation.iteration
            size = sum(_bytes(frame.values[slot]) for slot in self._slots)
            self._fullest = max(1, min(_MOST_WAITING, _BYTES_WAITING // (size + 1)))
        for append, slot in self._pairs:
            append(frame.values[slot])
        if len(self._waiting[0]) >= self._most or activation.iteration + 1 >= self._end:
            self.settle()

    def taps(self, frame: Frame) -> Taps | None:
        """Return what is taken from the iterations of a straight body."""
        if frame.program is not self._body:
            return None
        if not self._waiting[0]:
            self._begin = frame.active.iteration + 1
        return Taps(self._pairs, max(self._most - len(self._waiting[0]), 1), self._done)

    def _done(self) -> None:
        if len(self._waiting[0]) >= self._most:
            self.settle()

    def unfinished(self, frame: Frame | None) -> None:
        """Take what an iteration that failed has computed."""
        if frame is not None and frame.program is self._body and frame.phase is Phase.RUNNING:
            if not self._waiting[0]:
                self._begin = frame.active.iteration
            for values, slot in zip(self._waiting, self._slots, strict=True):
                values.append(frame.values[slot] if frame.is_current(slot) else None)
        self.settle()

    def settle(self) -> None:
        """Hand over what was taken."""
        if self._waiting[0]:
            batch = [values.copy() for values in self._waiting]
            for values in self._waiting:
                values.clear()
            took, self._begun = perf_counter() - self._begun, perf_counter()
            self._most = max(1, min(self._most // 2 if took > _SECONDS else 2 * self._most, self._fullest))
            self.is_enough |= self._take(self._begin, batch)
            if self.is_enough:
                self._machine.request_pause()


def _bytes(value: Any) -> int:
    return 0 if value is None else int(value.nbytes)
