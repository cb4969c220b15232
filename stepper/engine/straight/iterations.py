"""Whole iterations of a body without nested graphs, made in one go: the hot loop of a run.

Begin, operations and close are one call; and of those iterations that cannot be a loop's first or last, as many as the
caller allows. The frame is at every moment as it would be had each move been made by itself, also after an exception.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple, Protocol

from stepper.engine.events import ValueWatch
from stepper.engine.frames import Activation, Frame, Phase
from stepper.engine.program import execute, execute_any
from stepper.engine.rules import Rules
from stepper.engine.straight.function import Moves, Stage
from stepper.engine.straight.pieces import Collected, collected_of, hand_over, pieces_of
from stepper.engine.transitions import begin_iteration, close_iteration, only_carries

# See transitions.py.
_BETWEEN, _RUNNING = Phase.BETWEEN, Phase.RUNNING
LEAST_CALLED: Final = 24
"""Iterations from which on the function of a body is called, where there is one."""


class Caller(Protocol):
    """Link through which another thread asks for a pause, and a watcher sees which moment it is."""

    pause_requested: bool
    tick: int


class WatcherRaised(Exception):
    """Exception raised by a watcher; not an error of the run."""

    def __init__(self, error: Exception) -> None:
        super().__init__(str(error))
        self.error = error


def moves_made(frame: Frame) -> int:
    """Return the moves since the loop was entered; of each iteration begin, operations, close."""
    assert frame.activation is not None
    each = len(frame.program.code) + 2
    return frame.activation.iteration * each + (1 + frame.pc if frame.phase is _RUNNING else each)


def iterate(frame: Frame, rules: Rules) -> None:
    """One iteration, whatever it brings."""
    assert frame.activation is not None
    # The first iteration shows the element types, and with them faster functions for some operations.
    code = frame.activation.code or frame.code
    begin_iteration(frame)
    steps = iter(code)
    try:
        execute(steps, frame.values)
    except BaseException:
        frame.pc = len(code) - operator.length_hint(steps) - 1
        raise
    frame.pc = len(code)
    close_iteration(frame, rules)


def iterations_within(activation: Activation, rules: Rules, limit: int | None) -> int:
    """Return the number of iterations that are neither the first nor, by their count, the last (nor beyond `limit`)."""
    plan: Any = activation.plan
    if activation.code is None or (rules is Rules.OPENVINO and plan.rigid):
        return 0
    ends = [count for count in (activation.limit, limit, activation.slice_count) if count is not None]
    return min(ends) - activation.iteration - 2


class Onlookers(NamedTuple):
    """Those who look on while iterations are made.

    `caller` may ask for a pause; `watch` is asked after each iteration whether to stop; each function of `taps` gets
    the value of its slot after each.
    """

    caller: Caller
    watch: Callable[[Frame], bool] | None = None
    taps: Sequence[tuple[Callable[[Any], object], int]] = ()


def iterate_on(frame: Frame, most: int, onlookers: Onlookers) -> bool:
    """Up to `most` iterations that are neither the first nor, by their number, the last; whether the watch stopped it.

    Ends earlier where the caller is to pause, and before the close of an iteration whose condition does not hold or is
    none, or which gives a piece of another shape: what that means is for `close_iteration` to say.
    """
    activation, forms = frame.activation, frame.program.forms
    assert activation is not None and activation.code is not None
    frame.pc = len(activation.code)
    # Code of another constant has other slots; and a call takes as long as a few iterations spare.
    if frame.code is not frame.program.code or most < LEAST_CALLED:
        walked = most
    else:
        plan: Any = activation.plan
        may_end = plan.condition_result is not None
        walked = min(most, max(forms.until_worth_it(), LEAST_CALLED - activation.iteration if may_end else 0))
    if walked > 0:
        begun = activation.iteration
        stopped = _walk(frame, walked, onlookers)
        forms.walked(activation.iteration - begun)
        if stopped or activation.iteration - begun < walked or frame.phase is not _BETWEEN:
            return stopped
    if not isinstance(onlookers.watch, ValueWatch):
        return most > walked and _call(frame, most - walked, onlookers)
    return most > walked and _call_until(frame, most - walked, onlookers, onlookers.watch)


def _call_until(frame: Frame, most: int, onlookers: Onlookers, watch: ValueWatch) -> bool:
    """As `_call`, asking the watch after those iterations only whose values say so."""
    activation, caller = frame.activation, onlookers.caller
    assert activation is not None
    last = activation.iteration + most
    while activation.iteration < last:
        begun = activation.iteration
        if not _call(frame, last - begun, onlookers):
            return False
        caller.tick += (activation.iteration - begun) * (frame.pc + 2)
        try:
            if watch.ask(frame):
                return True
        except Exception as error:
            raise WatcherRaised(error) from error
    return False


def _call(frame: Frame, most: int, onlookers: Onlookers) -> bool:
    """Make iterations by the function that was written of the body (see straight.py).

    True if the watch stopped them, or, a `ValueWatch`, is to be asked.
    """
    activation, program = frame.activation, frame.program
    assert activation is not None and activation.code is not None
    plan: Any = activation.plan
    watch = onlookers.watch
    looked_at = watch.slots if isinstance(watch, ValueWatch) else None
    watched = watch is not None and looked_at is None
    collected: Sequence[Collected] = ()
    if not watched and activation.scans:
        moved = (slot for _, slot in (*plan.carried, *onlookers.taps))
        collected = collected_of(frame, {*moved, *(looked_at or ()), plan.condition_result})
    pieces = pieces_of(frame, collected)
    handed = [*((piece.take, piece.slot) for piece in pieces), *onlookers.taps]
    casts, numbered = activation.casts, plan.current_iteration
    if not watched:
        read = program.slots_read
        read = read.union(looked_at or (), (slot for _, slot in handed))
        numbered = [one for one in numbered if one[0] in read]
    moves = Moves(
        carried=plan.carried,
        at_once=plan.passes_on,
        bounded=tuple(parameter for parameter, _ in plan.carried) if plan.may_grow else (),
        cast=tuple(slot for slot, _ in casts),
        sliced=tuple((taken.parameter, taken.walk.axis) for taken in activation.slices),
        numbered=tuple(slot for slot, _ in numbered),
        condition=plan.condition_result,
        shaped=tuple(piece.slot for piece in pieces),
        handed=tuple(slot for _, slot in handed),
        watched=watched,
        looked_at=looked_at,
        views=tuple(index for one in collected for index in one.views),
    )
    form = program.forms.form(moves)
    last = activation.iteration + most
    functions, shapes = [step[0] for step in activation.code], [piece.shape for piece in pieces]
    dtypes, numbers = [dtype for _, dtype in casts], [number for _, number in numbered]
    taking = [function for function, _ in handed]
    done, is_full = None, False
    try:
        while done is None and activation.iteration < last and not onlookers.caller.pause_requested:
            begun = activation.iteration
            slices = [
                (taken.source, taken.walk.first + begun * taken.walk.step, taken.walk.step, taken.walk.size)
                for taken in activation.slices
            ]
            until = min([last, *(begun + one.scan.room for one in collected)])
            try:
                done = form.call(
                    frame,
                    begun + 1,
                    until,
                    onlookers.caller,
                    frame.pc + 2,
                    shapes,
                    watch,
                    _BETWEEN,
                    functions,
                    dtypes,
                    slices,
                    numbers,
                    taking,
                )
            finally:
                is_full = True
                hand_over(collected)
                is_full = False
        frame.phase = _BETWEEN if done is not False else _RUNNING
    except BaseException as error:
        stage, index = form.stage_of(error) or (Stage.PIECES if is_full else Stage.BEGIN, 0)
        frame.phase = _BETWEEN if stage in (Stage.BEGIN, Stage.WATCH) else _RUNNING
        if stage is Stage.OPERATION:
            frame.pc = index
        elif stage is Stage.WATCH and isinstance(error, Exception):
            if looked_at is not None:
                return True  # the watch says itself what is wrong
            raise WatcherRaised(error) from error
        elif stage is Stage.CONDITION and isinstance(error, ValueError):
            return False
        raise
    finally:
        for slot, number in plan.current_iteration:
            frame.values[slot] = number(activation.iteration)
    return done is True


def _walk(frame: Frame, most: int, onlookers: Onlookers) -> bool:  # noqa: C901  # one loop: calls would be felt
    """Make iterations operation by operation."""
    activation, values = frame.activation, frame.values
    assert activation is not None and activation.code is not None
    caller, watch = onlookers.caller, onlookers.watch
    plan: Any = activation.plan
    code: Any = activation.code  # see Step for what is None where
    condition, carried, plain = plan.condition_result, plan.carried, only_carries(activation)
    shapes = [(scan.first_shape, scan.result) for scan in activation.scans]
    scans = [*((scan.append, scan.result) for scan in activation.scans), *onlookers.taps]
    end = frame.pc
    cost = end + 2
    first, running, between = activation.iteration + 1, _RUNNING, _BETWEEN
    for iteration in range(first, first + most):
        if caller.pause_requested:
            return False
        if plain:
            for parameter, result in carried:
                values[parameter] = values[result]
            activation.iteration = iteration
            frame.phase = running
        else:
            begin_iteration(frame)
            frame.pc = end
        try:
            for function, a, b, out in code:  # as `execute` does
                if b is not None:
                    values[out] = function(values[a], values[b])
                elif out is not None:
                    values[out] = function(values[a])
                else:
                    execute_any(function, a, values)
        except BaseException:
            frame.pc = code.index((function, a, b, out))
            raise
        try:
            if condition is not None and not values[condition]:
                return False
        except ValueError:
            return False
        for shape, slot in shapes:
            if values[slot].shape != shape:
                return False
        for append, slot in scans:
            append(values[slot])
        frame.phase = between
        if watch is not None:
            caller.tick += cost
            try:
                if watch(frame):
                    return True
            except Exception as error:
                raise WatcherRaised(error) from error
    return False
