"""Compare two branches of a run: where they differ first, and what differs from there on.

Both branches run again from where they diverge, on machines of their own. They run operation by operation up to the
first result that differs, then iteration by iteration. The iterations of the two are matched by their place in the
order of execution. A branch that ends a loop earlier is compared as far as both go.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from enum import StrEnum
from typing import Any

import numpy as np
from msgspec import Struct

from stepper.debug.inspection.inspecting import phase_text
from stepper.debug.moments.moment import RunPairs
from stepper.debug.scopes import is_body, target_in
from stepper.debug.timeline import Timeline, same_edits
from stepper.element_types import Indices, have_same_bits
from stepper.engine.frames import Activation, Every, Frame, Frames, Phase, place
from stepper.engine.machine import Machine
from stepper.engine.program import Operation, Value
from stepper.errors import StepperError, UsageError
from stepper.records import OneLine, Record
from stepper.tensors.difference import difference, largest_gap
from stepper.tensors.number_text import array_text, in_columns

_MOST_MOVES = 200_000
"""Operations of each branch that are looked at for the first one that differs."""
_ROOM = 60

Paused = Callable[[], bool]


class DifferenceKind(StrEnum):
    """Kind of a difference."""

    VALUE = "value"
    CONSTANT = "constant"
    TRIP_COUNT = "trip count"
    CONDITION = "condition"
    RESULT = "result"
    COURSE = "course"
    CARRIED = "carried"
    SCAN = "scan output"
    OUTPUT = "model output"
    ITERATIONS = "iterations"


class PlaceDifference(Record):
    """A place at which two branches differ: an edit, an operation's result, or the path of the run.

    `differing` elements of a tensor differ; `element` is the index of the first. `a` and `b` describe both sides.
    """

    what: DifferenceKind
    tick: int
    place: str
    iteration: int | None
    name: str
    type: str
    element: Indices
    a: str
    b: str
    differing: int = 1


class DifferenceRow(Record):
    """Difference over all of the rest of the run of one carried value, scan output, model output or loop.

    `different` of `compared` iterations differ, the first is at `first` (iterations from the outermost loop inwards).
    `largest` is the largest difference of two elements: NaN if one side alone has a NaN, None for booleans and where
    shapes or kinds differ. `became_true` and `became_false` count the booleans that changed from a to b (None for other
    values). For iterations of a loop and outputs of the model, `a` and `b` describe both sides.
    """

    what: DifferenceKind
    loop: str
    name: str
    different: int
    compared: int
    first: Indices
    largest: float | None
    a: str
    b: str
    became_true: int | None = None
    became_false: int | None = None


class BranchDifference(OneLine, eq=True):
    """Two branches by name. `parted` is the tick from which on they may differ, None where they are the same.

    `ends` says how each run ends, `stopped` why not all was compared.
    """

    a: str
    b: str
    parted: int | None
    place: str
    first: PlaceDifference | None
    computed: PlaceDifference | None
    rows: tuple[DifferenceRow, ...]
    ends: tuple[str, str]
    stopped: str


def compare_timelines(a: str, first: Timeline, b: str, second: Timeline, paused: Paused) -> BranchDifference:
    """Return what differs between two courses of a run, which are run for it. UsageError for one with itself."""
    if a == b:
        raise UsageError(f"'{a}' is one branch; a second one is expected")
    parted = parting(first, second)
    if parted is None:
        return BranchDifference(a, b, None, "", None, None, (), ("", ""), "")
    for timeline in (first, second):
        timeline.goto(parted)
    where = place(first.machine.stack) if first.machine.stack else "the end of the run"
    at_first = state_difference(first.machine, second.machine)
    walkers = (first.branch(), second.branch())
    computed, stopped = _first_result(*walkers, paused)
    rest = _Rest(first, second, paused)
    rows = () if stopped else tuple(rest.rows())
    return BranchDifference(a, b, parted, where, at_first, computed, rows, rest.ends, stopped or rest.stopped)


def parting(a: Timeline, b: Timeline) -> int | None:
    """Return the tick from which on two courses may differ; None where they do not."""
    edited = {*a.edits, *b.edits}
    differ = (tick for tick in edited if not same_edits(a.edits.get(tick, ()), b.edits.get(tick, ())))
    return min(differ, default=None)


# --- the moment at which they part ----------------------------------------------------------------------------------


def state_difference(a: Machine, b: Machine) -> PlaceDifference | None:
    """Return what was set at the moment at which two machines part."""
    if len(a.stack) != len(b.stack):
        return None
    for depth, (left, right) in enumerate(zip(a.stack, b.stack, strict=True)):
        where, program = place(a.stack[: depth + 1]), left.program
        for slot, (one, other) in enumerate(zip(left.values, right.values, strict=True)):
            if one is not None and other is not None and not have_same_bits(one, other):
                is_constant = target_in(program, slot).layer.type == "Constant"
                what = DifferenceKind.CONSTANT if is_constant else DifferenceKind.VALUE
                return _value_difference(what, a.tick, where, left, target_in(program, slot).named, one, other)
        found = _loop_difference(a.tick, where, left.activation, right.activation)
        if found is not None:
            return found
    return _constants_difference(a, b)


def _loop_difference(tick: int, where: str, a: Activation | None, b: Activation | None) -> PlaceDifference | None:
    if a is None or b is None:
        return None
    layer, iteration = a.operation.layer, a.iteration if a.iteration >= 0 else None
    if a.limit != b.limit:
        what = DifferenceKind.TRIP_COUNT
        left, right = ("unlimited" if one.limit is None else str(one.limit) for one in (a, b))
    elif (a.condition, a.decided) != (b.condition, b.decided):
        what = DifferenceKind.CONDITION
        left, right = (str(one.condition if one.decided is None else one.decided).lower() for one in (a, b))
        if left == right:
            left, right = ("what the body says" if one.decided is None else left for one in (a, b))
    else:
        return None
    return PlaceDifference(what, tick, where, iteration, layer.name, layer.type, (), left, right)


def _constants_difference(a: Machine, b: Machine) -> PlaceDifference | None:
    """Return the first constant that differs in a body that does not run at this moment."""
    for program in a.compiled.programs:
        left, right = (machine.constants.get(id(program)) for machine in (a, b))
        for slot in sorted({*(left.values if left else ()), *(right.values if right else ())}):
            one, other = (
                program.template[slot] if found is None else found.values.get(slot, program.template[slot])
                for found in (left, right)
            )
            if not have_same_bits(one, other):
                layer = target_in(program, slot).named
                return _value_difference(DifferenceKind.CONSTANT, a.tick, program.name, None, layer, one, other)
    return None


def _value_difference(
    what: DifferenceKind, tick: int, where: str, frame: Frame | None, layer: Any, a: Any, b: Any
) -> PlaceDifference:
    activation = None if frame is None else frame.activation
    iteration = None if activation is None or activation.iteration < 0 else activation.iteration
    a, b = np.asarray(a), np.asarray(b)
    element: Indices = ()
    left, right, count = array_text(a, _ROOM), array_text(b, _ROOM), 1
    if a.shape == b.shape and a.dtype == b.dtype and a.ndim and a.dtype.names is None:
        element = next(index for index in np.ndindex(a.shape) if not have_same_bits(a[index], b[index]))
        left, right, count = str(a[element]), str(b[element]), max(1, difference(a, b).different)
    return PlaceDifference(what, tick, where, iteration, layer.name, layer.type, element, left, right, count)


# --- the first result that differs ----------------------------------------------------------------------------------


def _first_result(a: Timeline, b: Timeline, paused: Paused) -> tuple[PlaceDifference | None, str]:
    """Return the first operation whose result differs, or where the two go different ways; and why it was not looked
    for.
    """
    for _ in range(_MOST_MOVES):
        if paused():
            return None, "paused"
        if a.machine.finished or b.machine.finished:
            break
        errors = [_moved(timeline) for timeline in (a, b)]
        if errors[0] or errors[1]:
            return None if errors[0] == errors[1] else _course(a, b, errors), ""
        if _position(a.machine.stack) != _position(b.machine.stack):
            return _course(a, b, errors), ""
        found = _result_difference(a.machine, b.machine)
        if found is not None:
            return found, ""
    return None, ""


def _moved(timeline: Timeline) -> str:
    """Return one operation on; the text of the error that this met."""
    try:
        timeline.forward(Every.OPERATION, lambda _event: True)
    except StepperError as error:
        return str(error)
    return ""


def _position(stack: Frames) -> list[tuple[Any, ...]]:
    return [
        (id(frame.program), frame.pc, frame.phase, None if frame.activation is None else frame.activation.iteration)
        for frame in stack
    ]


def _course(a: Timeline, b: Timeline, errors: Sequence[str]) -> PlaceDifference:
    left, right = (error or _where(side.machine.stack) for side, error in zip((a, b), errors, strict=True))
    return PlaceDifference(DifferenceKind.COURSE, a.machine.tick, left, None, "", "", (), left, right)


def _where(stack: Frames) -> str:
    return f"{place(list(stack))}, {phase_text(stack[-1])}" if stack else "the end of the run"


def _result_difference(a: Machine, b: Machine) -> PlaceDifference | None:
    if not a.stack:
        return None
    left, right = a.stack[-1], b.stack[-1]
    if left.phase is not Phase.RUNNING or not left.pc:
        return None
    done: Operation = left.program.operations[left.pc - 1]
    for slot in done.outputs:
        one, other = left.values[slot], right.values[slot]
        if one is not None and other is not None and not have_same_bits(one, other):
            return _value_difference(DifferenceKind.RESULT, a.tick, place(a.stack), left, done.layer, one, other)
    return None


# --- all that follows -----------------------------------------------------------------------------------------------


class _Tally(Struct):
    """Differences of one value of a loop, or an output of the model, so far."""

    what: DifferenceKind
    name: str
    different: int = 0
    compared: int = 0
    first: Indices = ()
    largest: float | None = 0.0
    became_true: int | None = None
    became_false: int | None = None

    def add(self, a: Value, b: Value, numbers: Indices) -> None:
        """Compare the value in one iteration more."""
        self.compared += 1
        if have_same_bits(a, b):
            return
        self.different += 1
        self.first = self.first or numbers
        gap = None
        if a.dtype == b.dtype == np.bool_ and a.shape == b.shape:
            found = difference(a, b)
            self.became_true = (self.became_true or 0) + (found.became_true or 0)
            self.became_false = (self.became_false or 0) + (found.became_false or 0)
        else:
            gap = largest_gap(a, b)
        before, self.largest = self.largest, None
        if gap is not None and before is not None:
            self.largest = math.nan if math.isnan(before) else max(gap, before)

    def row(self, loop: str, a: str = "", b: str = "") -> DifferenceRow:
        """Return what was found."""
        flips = self.became_true, self.became_false
        return DifferenceRow(
            self.what, loop, self.name, self.different, self.compared, self.first, self.largest, a, b, *flips
        )


class _Rest:
    """Both courses from where they part to their ends."""

    def __init__(self, a: Timeline, b: Timeline, paused: Paused) -> None:
        self._sides, self._paused = (a, b), paused
        self._pairs = RunPairs(a, b)
        self._tallies: dict[int, list[tuple[int, _Tally]]] = {}
        self.stopped = ""

    @property
    def ends(self) -> tuple[str, str]:
        """Return how each ended: empty where it came to its end."""
        return self._pairs.ends[0], self._pairs.ends[1]

    def rows(self) -> Iterator[DifferenceRow]:
        """Yield what differs: iterations of loops, what they carry and give, outputs of the model."""
        for a, b in self._pairs:
            if self._paused():
                self.stopped = "paused"
                break
            if a is not None and b is not None and a.frame.activation is not None:
                for slot, tally in self._tallies_of(a.frame.activation.plan):
                    tally.add(a.frame.values[slot], b.frame.values[slot], a.numbers)
        yield from self._loop_rows()
        yield from self._output_rows()

    def _tallies_of(self, plan: Any) -> list[tuple[int, _Tally]]:
        key = id(plan.program)
        if key not in self._tallies:
            named = [(DifferenceKind.CARRIED, entry.result, entry.parameter) for entry in plan.merged]
            named += [(DifferenceKind.SCAN, entry.result, entry.result) for entry in plan.concatenated]
            self._tallies[key] = [
                (slot, _Tally(what, target_in(plan.program, of).named.name)) for what, slot, of in named
            ]
        return self._tallies[key]

    def _loop_rows(self) -> Iterator[DifferenceRow]:
        for program in self._sides[0].machine.compiled.programs:
            if not is_body(program):
                continue
            loop = program.path[-1].name
            a, b = (counts[id(program)] for counts in self._pairs.counts)
            if a != b:
                yield DifferenceRow(DifferenceKind.ITERATIONS, loop, "", 1, 1, (), abs(float(a - b)), str(a), str(b))
            yield from (tally.row(loop) for _, tally in self._tallies.get(id(program), ()) if tally.different)

    def _output_rows(self) -> Iterator[DifferenceRow]:
        left, right = (timeline.machine.outputs for timeline in self._sides)
        if left is None or right is None:
            return
        results = self._sides[0].machine.compiled.main.graph.results
        for layer, one, other in zip(results, left, right, strict=True):
            tally = _Tally(DifferenceKind.OUTPUT, layer.name)
            tally.add(one, other, ())
            if tally.different:
                yield tally.row("", array_text(one, _ROOM), array_text(other, _ROOM))


# --- text and data --------------------------------------------------------------------------------------------------


def difference_lines(found: BranchDifference) -> list[str]:
    """Return the difference in lines: where the two part, what differs first, and a table."""
    if found.parted is None:
        return [f"{found.a} and {found.b} do not differ"]
    lines = [f"{found.a} and {found.b} diverge at tick {found.parted}, {found.place}"]
    lines += [_place_line(found, found.first, "set there")] if found.first is not None else []
    lines += [_place_line(found, found.computed, "first")] if found.computed is not None else []
    rows = [["", "loop", "name", "differs", found.a, found.b]]
    rows += [[str(row.what), row.loop, row.name, _extent(row), row.a, row.b] for row in found.rows]
    lines += in_columns(rows) if found.rows else []
    lines += [
        f"{name} ends with an error: {end}" for name, end in zip((found.a, found.b), found.ends, strict=True) if end
    ]
    if found.stopped:
        return [*lines, f"not compared to the end: {found.stopped}"]
    return lines if found.rows else [*lines, "nothing that loops carry or give differs, nor any output of the model"]


def _place_line(found: BranchDifference, one: PlaceDifference, word: str) -> str:
    if one.what is DifferenceKind.COURSE:
        return f"{word}: tick {one.tick}, {found.a} comes to {one.a}, {found.b} to {one.b}"
    element = f"[{','.join(map(str, one.element))}]" if one.element else ""
    name = f"{one.type} '{one.name}'{element}"
    what = {DifferenceKind.RESULT: "", DifferenceKind.VALUE: ""}.get(one.what, f"{one.what} of ")
    when = "" if one.tick == found.parted else f"tick {one.tick}, {one.place}, "
    return f"{word}: {when}{what}{name} is {one.a} in {found.a}, {one.b} in {found.b}"


def _extent(row: DifferenceRow) -> str:
    by = "" if row.largest is None else f"by at most {row.largest:.6g}"
    by = "by NaN on one side" if row.largest is not None and math.isnan(row.largest) else by
    counts = ((row.became_true, "became true"), (row.became_false, "became false"))
    flips = [f"{count:,} {words}" for count, words in counts if count]
    by = ", ".join(flips) or by
    if row.what in (DifferenceKind.CARRIED, DifferenceKind.SCAN):
        first = " > ".join(f"#{number}" for number in row.first)
        count = f"in {row.different:,} of {row.compared:,} iterations, first {first}"
        return f"{count}, {by or 'in shape or type'}"
    return by or "in shape or type"
