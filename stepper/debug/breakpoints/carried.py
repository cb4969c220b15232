"""Data breakpoints about loops and what they carry: how they end, and values that are stuck, repeat, grow or jump."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np

from stepper.debug.breakpoints.checks import Causes, Check, Test, closed, iteration_in, plan_of
from stepper.debug.breakpoints.iteration_window import IterationWindow
from stepper.debug.breakpoints.kinds import DataBreak
from stepper.debug.causes.cause import CauseKind, Grown, LoopEnds, Moved, Repeats, Stuck
from stepper.debug.causes.locations import brief_of, carried_of, change_of, file_of, location_of
from stepper.debug.timeline import Timeline
from stepper.engine.frames import Frame
from stepper.engine.loops import EndReason, MergedInput
from stepper.engine.program import LoopPlan, OpKind, Program, Value
from stepper.ir.sites import layer_site

LONGEST_PERIOD: Final = 64
"""Iterations after which a state that comes again is found."""

_SHORT: Final = 64
"""Bytes of a value that are kept as they are; more as their hash."""

_State = tuple[tuple[bytes, tuple[int, ...], Any], ...]

Made = tuple[list[Check], list[IterationWindow]]


def loop_checks(wanted: DataBreak, program: Program, timeline: Timeline) -> Made:
    """What a data breakpoint asks of one loop's body."""
    plan = plan_of(program, timeline.machine.compiled)
    if wanted.word in _ENDS:
        test = _ends(wanted.word, len(program.path), file_of(timeline.machine.compiled))
        return [Check(program, closed(program), test, at_entry=wanted.word is CauseKind.END)], []
    carried = [entry for entry in plan.merged if entry.result != entry.parameter]
    if not carried:
        return [], []
    maker = {CauseKind.STUCK: _stuck, CauseKind.PERIOD: _period, CauseKind.GROW: _grow, CauseKind.DIFF: _diff}[
        wanted.word
    ]
    test, windows = maker(wanted, plan, carried, timeline)
    return [Check(program, closed(program), test)], windows


# --- how a loop ends ------------------------------------------------------------------------------------------------


def _condition_turned(frame: Frame) -> bool:
    activation = frame.activation
    return activation is not None and not activation.condition and activation.iteration >= 0


def _limit_reached(frame: Frame) -> bool:
    reasons = (EndReason.TRIP_COUNT, EndReason.SLICES)
    return frame.activation is not None and frame.activation.ended in reasons and frame.activation.iteration >= 0


def _last_closed(frame: Frame) -> bool:
    activation = frame.activation
    return activation is not None and activation.ended is not None and activation.iteration >= 0


def _about_to_end(frame: Frame) -> bool:
    return frame.activation is not None and frame.activation.ended is not None


_ENDS: Final[dict[CauseKind, Callable[[Frame], bool]]] = {
    CauseKind.CONDITION: _condition_turned,
    CauseKind.LIMIT: _limit_reached,
    CauseKind.LAST: _last_closed,
    CauseKind.END: _about_to_end,
}


def _ends(word: CauseKind, depth: int, file: str) -> Test:
    holds = _ENDS[word]

    def test(stack: Sequence[Frame]) -> Causes | None:
        frame = stack[depth]
        if not holds(frame):
            return None
        activation = frame.activation
        assert activation is not None and activation.ended is not None
        layer = activation.operation.layer
        ends = LoopEnds(
            kind=word,
            location=location_of(stack[: depth + 1], file, layer),
            loop=layer_site(layer, file),
            ended=activation.ended,
            limit=activation.limit,
            executed=activation.iteration + 1,
            turned=not activation.condition and activation.iteration >= 0,
        )
        return (ends,)

    return test


# --- what a loop carries --------------------------------------------------------------------------------------------


def same(a: Value, b: Value) -> bool:
    """Whether two values are the same bit for bit (NaN is the same as itself)."""
    if a is b:
        return True
    if a.dtype != b.dtype or a.shape != b.shape:
        return False
    if a.dtype.kind in "TO":
        return bool(np.array_equal(a, b))
    a, b = np.ascontiguousarray(a).reshape(-1), np.ascontiguousarray(b).reshape(-1)
    if a.size and a[:1].tobytes() != b[:1].tobytes():
        return False
    return bool(np.array_equal(a.view(np.uint8), b.view(np.uint8)))


def _stuck(_wanted: DataBreak, plan: LoopPlan, carried: list[MergedInput], timeline: Timeline) -> tuple[Test, Any]:
    depth, file = len(plan.program.path), file_of(timeline.machine.compiled)

    def stuck(stack: Sequence[Frame]) -> frozenset[int]:
        values = stack[depth].values
        return frozenset(entry.parameter for entry in carried if same(values[entry.result], values[entry.parameter]))

    window = IterationWindow(timeline, plan.program, stuck)

    def test(stack: Sequence[Frame]) -> Causes | None:
        now = stuck(stack)
        if not now or iteration_in(stack[depth]) < 0:
            return None
        new = now - (window.past(stack) or frozenset())
        found = [
            Stuck(
                kind=CauseKind.STUCK,
                location=location_of(stack[: depth + 1], file, plan.program.parameter(entry.parameter)),
                carried=carried_of(plan.program, entry, file),
                value=brief_of(stack[depth].values[entry.result]),
            )
            for entry in carried
            if entry.parameter in new
        ]
        return tuple(found) or None

    return test, [window]


def _period(_wanted: DataBreak, plan: LoopPlan, carried: list[MergedInput], timeline: Timeline) -> tuple[Test, Any]:
    depth, file = len(plan.program.path), file_of(timeline.machine.compiled)
    results = sorted({entry.result for entry in carried})

    def state(stack: Sequence[Frame]) -> _State:
        values = stack[depth].values
        return _condensed([values[slot] for slot in results])

    window = IterationWindow(timeline, plan.program, state, LONGEST_PERIOD + 1)

    def period(stack: Sequence[Frame], now: _State, back: int) -> int | None:
        iteration = iteration_in(stack[depth])
        reach = range(1, min(LONGEST_PERIOD, iteration - back) + 1)
        return next((length for length in reach if window.past(stack, back + length) == now), None)

    def test(stack: Sequence[Frame]) -> Causes | None:
        frame = stack[depth]
        activation = frame.activation
        if activation is None or activation.iteration < 1 or activation.ended is not None:
            return None
        now = state(stack)
        if now not in window.records(stack):
            return None
        length = period(stack, now, 0)
        if length is None or period(stack, window.past(stack), 1) is not None:
            return None
        layer = activation.operation.layer
        repeats = Repeats(
            kind=CauseKind.PERIOD,
            location=location_of(stack[: depth + 1], file, layer),
            loop=layer_site(layer, file),
            iteration=activation.iteration,
            period=length,
            varies=bool(plan.sliced or plan.current_iteration) or _has_memory(plan.program),
            limit=activation.limit,
        )
        return (repeats,)

    return test, [window]


def _condensed(values: list[Value]) -> _State:
    return tuple((_bytes(value), value.shape, value.dtype) for value in values)


def _bytes(value: Value) -> bytes:
    content = repr(value.tolist()).encode() if value.dtype.kind in "TO" else value.tobytes()
    return content if len(content) <= _SHORT else hashlib.blake2b(content, digest_size=16).digest()


def _has_memory(program: Program) -> bool:
    """Whether an operation in it, at any depth, does not depend on its inputs alone."""
    for operation in program.operations:
        if operation.kind is OpKind.STATEFUL or any(_has_memory(plan.program) for plan in operation.plans):
            return True
    return False


# --- how far a carried value goes -----------------------------------------------------------------------------------


def magnitude(value: Value) -> float:
    """The largest absolute value of an element; NaN where one is NaN, and of texts."""
    if value.size == 1 and value.dtype.kind in "fiu":
        return abs(float(value.item()))
    if value.size == 0:
        return 0.0
    if value.dtype.kind in "TOUS" or value.dtype.names is not None:
        return float("nan")
    wide = value if value.dtype.kind == "f" else np.asarray(value).astype(np.float64)
    return float(np.abs(wide).max())


def distance(a: Value, b: Value) -> float:
    """The largest absolute difference of two elements; NaN where the shapes differ, and of texts."""
    if a.shape != b.shape or any(one.dtype.kind in "TOUS" or one.dtype.names is not None for one in (a, b)):
        return float("nan")
    return magnitude(np.subtract(np.asarray(a).astype(np.float64), np.asarray(b).astype(np.float64)))


def _grow(wanted: DataBreak, plan: LoopPlan, carried: list[MergedInput], timeline: Timeline) -> tuple[Test, Any]:
    depth, factor, file = len(plan.program.path), wanted.limit, file_of(timeline.machine.compiled)

    def outcome(stack: Sequence[Frame]) -> dict[int, float]:
        return {entry.parameter: magnitude(stack[depth].values[entry.result]) for entry in carried}

    window = IterationWindow(timeline, plan.program, outcome, keeps_first=True)

    def began_with(stack: Sequence[Frame], entry: MergedInput) -> float:
        """The magnitude of the initial value, or of the first result where that is 0."""
        activation = stack[depth].activation
        assert activation is not None
        outer = stack[depth - 1].values[activation.operation.inputs[entry.input]]
        initial = magnitude(outer)
        if initial == 0 and activation.iteration > 0:
            initial = window.at(stack, 0)[entry.parameter]
        return initial

    def test(stack: Sequence[Frame]) -> Causes | None:
        frame = stack[depth]
        if iteration_in(frame) < 0:
            return None
        found = []
        for entry in carried:
            now, start = magnitude(frame.values[entry.result]), began_with(stack, entry)
            if start > 0 and now > factor * start >= magnitude(frame.values[entry.parameter]):
                grown = Grown(
                    kind=CauseKind.GROW,
                    location=location_of(stack[: depth + 1], file, plan.program.parameter(entry.parameter)),
                    carried=carried_of(plan.program, entry, file),
                    address="",
                    factor=factor,
                    magnitude=now,
                    first=start,
                )
                found.append(grown)
        return tuple(found) or None

    return test, [window]


def _diff(wanted: DataBreak, plan: LoopPlan, carried: list[MergedInput], timeline: Timeline) -> tuple[Test, Any]:
    depth, limit, file = len(plan.program.path), wanted.limit, file_of(timeline.machine.compiled)

    def test(stack: Sequence[Frame]) -> Causes | None:
        frame = stack[depth]
        if iteration_in(frame) < 0:
            return None
        found = []
        for entry in carried:
            before, now = frame.values[entry.parameter], frame.values[entry.result]
            far = distance(now, before)
            if far > limit:
                moved = Moved(
                    kind=CauseKind.DIFF,
                    location=location_of(stack[: depth + 1], file, plan.program.parameter(entry.parameter)),
                    carried=carried_of(plan.program, entry, file),
                    address="",
                    distance=far,
                    limit=limit,
                    change=change_of(before, now),
                )
                found.append(moved)
        return tuple(found) or None

    return test, []
