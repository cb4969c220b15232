"""Whole iterations of a body without nested graphs, made in one go: the hot loop of a run.

Begin, operations and close are one call; and of those iterations that cannot be a loop's first or last, as many as the
caller allows. The frame is at every moment as it would be had each move been made by itself, also after an exception.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any, Protocol

from stepper.engine.frames import Activation, Frame, Phase
from stepper.engine.program import execute, execute_any
from stepper.engine.rules import Rules
from stepper.engine.transitions import begin_iteration, close_iteration, only_carries

# See transitions.py.
_BETWEEN, _RUNNING = Phase.BETWEEN, Phase.RUNNING


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


def iterate_on(  # noqa: C901  # one loop: calls would be felt
    frame: Frame,
    most: int,
    caller: Caller,
    watch: Callable[[Frame], bool] | None,
    taps: Sequence[tuple[Callable[[Any], object], int]] = (),
) -> bool:
    """Up to `most` iterations that are neither the first nor, by their number, the last; whether `watch` stopped it.

    After each, every function of `taps` gets the value of its slot.

    Ends earlier where the caller is to pause, and before the close of an iteration whose condition does not hold or is
    none, or which gives a piece of another shape: what that means is for `close_iteration` to say.
    """
    activation, values = frame.activation, frame.values
    assert activation is not None and activation.code is not None
    plan: Any = activation.plan
    code: Any = activation.code  # see Step for what is None where
    condition, carried = plan.condition_result, plan.carried
    shapes = [(scan.first_shape, scan.result) for scan in activation.scans]
    scans = [*((scan.append, scan.result) for scan in activation.scans), *taps]
    plain = only_carries(activation)
    first, running, between = activation.iteration + 1, _RUNNING, _BETWEEN
    end = frame.pc = len(code)
    cost = end + 2
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
