"""Runs of loops, from anywhere in the run: which run of a loop is meant, and the way into it.

Of a loop inside of another one there is a run in each iteration around it. Where nothing says which, it is the one
under way, else the last one that began before the present, else the first to come.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from msgspec.structs import replace

from stepper.debug.moments.run_pairs import Order, is_before, order_at, order_of
from stepper.debug.scopes import NotRunning, frame_of, loop_depth
from stepper.debug.stop import iteration_of
from stepper.debug.timeline import Timeline
from stepper.debug.visits import Spot, excursion, is_run, walk
from stepper.engine.frames import Event, EventKind, Every, Frame, Frames, Snapshot
from stepper.engine.machine import Machine
from stepper.engine.program import Program
from stepper.errors import Paused, UsageError
from stepper.query.address_resolution import Atlas, Target, address_of, resolve
from stepper.query.address_syntax import Address, IterationRange, Iterations, Name, NameKind, exact_name
from stepper.wording import counted

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
    """Raise NotRunning for a place of which an address names another run of its loop than the one that is under way.

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
