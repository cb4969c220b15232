"""Show how operations in all iterations differ from the baseline, and how outputs differ.

The outputs of the model are compared between two runs. Two branches both run beside the present from where they diverge
to their ends, some iterations at a time; beside a reference only the present branch runs. The results of the comparison
are kept for each run of a loop as cells. Two iterations become one cell if there are too many.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any, ClassVar, NamedTuple

import numpy as np
from msgspec import field
from msgspec.structs import replace

from stepper.debug.branch_differences import parting
from stepper.debug.branches import Branches
from stepper.debug.loop_runs import Enough
from stepper.debug.moments.moment import EndedGraph, Moment, MomentValues, RunPairs, Values, values_beside
from stepper.debug.scopes import ReferenceValues, ValuePlace, target_in
from stepper.debug.stop import iteration_of
from stepper.debug.timeline import ValueEdit, same_by_tick
from stepper.element_types import Array, Indices
from stepper.engine.frames import LoopRun, loop_run
from stepper.engine.loops import ConcatenatedOutput, LastValueOutput
from stepper.engine.program import CompiledModel, LoopPlan, Operation, Program, Value
from stepper.engine.run import output_names
from stepper.records import Brief, Record
from stepper.tensors.difference import Change, Difference, difference
from stepper.tensors.tolerances import Tolerances

# ---------------------------------------------------------------------------------------------------------------------
# Changes of the outputs of a model between two courses of its run: row by row where a loop gives them in rows


MOST_ROWS = 4_096
"""Most differing rows that are looked at one by one."""


class OutputChange(Record):
    """An output of the model in A and now.

    Where a loop gives a piece of it in each iteration, `rows` is how many both have (`lengths`: in A, and now), of
    which `different` differ, from the iteration `first` on. `rows` is None of another output. `source` is the name of
    the value of the loop that it is, where a loop gives it.
    """

    name: str
    difference: Difference
    rows: int | None = None
    lengths: tuple[int, int] = (0, 0)
    different: int = 0
    first: int | None = None
    source: str = ""


class _Pieces(NamedTuple):
    """Way in which a loop joins an output: along which axis, how many elements in each iteration, from the end on.

    `before` elements were there before the first iteration.
    """

    axis: int
    size: int
    is_backward: bool
    before: int = 0


def output_changes(
    compiled: CompiledModel, a: Sequence[Value | None] | None, b: Sequence[Value] | None
) -> tuple[OutputChange, ...]:
    """Return how the outputs of a model differ, as far as both sides have them."""
    if a is None or b is None:
        return ()
    names = output_names(compiled.model)
    found = []
    for index, (name, one, other) in enumerate(zip(names, a, b, strict=True)):
        if one is not None:
            given = _given(compiled, index)
            pieces = None if given is None else _pieces(given)
            change = output_change(name, np.asarray(one), np.asarray(other), pieces)
            found.append(change if given is None else replace(change, source=given.name))
    return tuple(found)


def output_change(name: str, a: Array, b: Array, pieces: _Pieces | None) -> OutputChange:
    """Return how one output differs."""
    whole = difference(a, b)
    if pieces is None or a.ndim != b.ndim or a.dtype != b.dtype or not a.ndim:
        return OutputChange(name, whole)
    left, right = _by_row(a, pieces), _by_row(b, pieces)
    lengths = len(left), len(right)
    rows = min(lengths)
    if left.shape[1:] != right.shape[1:]:
        return OutputChange(name, whole)
    differing = _differing(left[:rows], right[:rows])
    changed = [int(row) for row in differing[:MOST_ROWS] if difference(left[row], right[row]).change is not Change.SAME]
    many = len(changed) + max(len(differing) - MOST_ROWS, 0)
    return OutputChange(name, whole, rows, lengths, many, next(iter(changed), None))


def _by_row(array: Array, pieces: _Pieces) -> Array:
    """Return the elements of an output with a row for each iteration, in the order of these."""
    moved = np.moveaxis(array, pieces.axis, 0)
    if pieces.is_backward:
        moved = moved[::-1]
    moved = moved[pieces.before :]
    count, size = len(moved) // pieces.size, math.prod(moved.shape[1:]) * pieces.size
    return moved[: count * pieces.size].reshape(count, size)


def _differing(a: Array, b: Array) -> Array:
    if a.dtype.kind in "OTSU" or a.dtype.names is not None or not a.size:
        return np.arange(len(a))
    left, right = (np.ascontiguousarray(side).view(np.uint8).reshape(len(side), -1) for side in (a, b))
    return np.flatnonzero((left != right).any(axis=1))


class _LoopOutput(NamedTuple):
    """An output of a model that is one of a loop: the loop's operation and plan, and what it is there."""

    main: Program
    operation: Operation
    plan: LoopPlan
    entry: ConcatenatedOutput | LastValueOutput

    @property
    def name(self) -> str:
        """Return the value's name inside of the loop; the name of the Parameter for a carried value."""
        program = self.plan.program
        merged = self.entry.merged if isinstance(self.entry, LastValueOutput) else None
        if merged is not None:
            return program.parameter(merged).name
        return target_in(program, self.entry.result).layer.name


def _given(compiled: CompiledModel, index: int) -> _LoopOutput | None:
    """Return how a loop gives an output of the model; None where none does."""
    main = compiled.main
    slot = main.results[index]
    place = main.computed_at.get(slot)
    operation = None if place is None else main.operations[place]
    plan = operation.plans[0] if operation is not None and len(operation.plans) == 1 else None
    if operation is None or not isinstance(plan, LoopPlan):
        return None
    number = operation.outputs.index(slot)
    entries: list[ConcatenatedOutput | LastValueOutput] = [*plan.concatenated, *plan.last_values]
    entry = next((one for one in entries if one.output == number), None)
    return None if entry is None else _LoopOutput(main, operation, plan, entry)


def _pieces(given: _LoopOutput) -> _Pieces | None:
    """Return how a loop joins an output; None if an iteration gives no piece of the output."""
    if isinstance(given.entry, LastValueOutput):
        return _appended_pieces(given, given.entry)
    slicing = given.entry.slicing
    size = slicing.part_size or abs(slicing.stride) or 1
    return _Pieces(slicing.axis, size, slicing.stride < 0)


def _appended_pieces(given: _LoopOutput, entry: LastValueOutput) -> _Pieces | None:
    """Return how the body itself joins a piece to the value; None where it does not, or the file says no sizes."""
    program = given.plan.program
    carried = next((one for one in given.plan.merged if one.parameter == entry.merged), None)
    index = program.computed_at.get(entry.result, -1)
    piece = program.joined_pieces.get(index)
    if carried is None or piece is None:
        return None
    axis = str(program.operations[index].layer.attributes.get("axis", ""))
    came = target_in(given.main, given.operation.inputs[carried.input])
    added, begun = program.graph.by_id[piece.layer].outputs[piece.output].dims, came.layer.outputs[came.output].dims
    if not axis.isdecimal() or int(axis) >= min(len(added), len(begun)):
        return None
    size, before = added[int(axis)], begun[int(axis)]
    is_first = program.graph.sources[program.operations[index].layer.id][0] == piece
    return _Pieces(int(axis), size, is_first, before) if size > 0 and before >= 0 else None


# ---------------------------------------------------------------------------------------------------------------------


MOST_CELLS = 2**20
"""Cells of one run of a loop, of 2 bytes each."""
MOST_RUNS = 64
"""Runs of loops whose cells are kept: those around, the first that differs, and the last ones."""
_MEMORY = 2**26
"""Bytes of snapshots that each of the two courses may keep."""

SECONDS = 60.0
"""For how long two courses are compared in all."""

CODES = {change: code for code, change in enumerate(Change, 1)}
"""By change: what stands for it in the cells. The largest of several iterations stands for all of them."""
_BY_CODE = {code: change for change, code in CODES.items()}


_MOST_KNOWN = 256
"""Rows of cells that are remembered with the cells of a run."""


class SpreadCell(NamedTuple):
    """An operation in one iteration, or the worst of some; `change` None: it was not compared."""

    change: Change | None
    is_edited: bool


class SpreadCells(Brief, dict=True):
    """The operations of one run of a loop over its iterations, a row for each `step` of these.

    `changes` are CODES, and `edited` stands beside: arrays of shape [rows, operations], of each the worst of its
    outputs. `iterations` of them were compared, from 0 on. `outer` are the iterations of the loops around the run.
    """

    unshown: ClassVar = ("program", "changes", "edited")

    program: Program
    iterations: int
    step: int
    changes: Array
    edited: Array
    outer: Indices = ()

    @cached_property
    def _known(self) -> dict[object, Sequence[SpreadCell]]:
        return {}

    def worst_in(self, spans: Sequence[tuple[int, int]], operation: int) -> Sequence[SpreadCell]:
        """Return the worst of an operation in each span of rows: from the first to before the last.

        What is beyond the last row was not compared. What was asked before is remembered: each key asks again.
        """
        key = tuple(spans), operation
        found = self._known.get(key)
        if found is None:
            if len(self._known) >= _MOST_KNOWN:
                self._known.clear()
            found = self._known[key] = self._worst_in(spans, operation)
        return found

    def _worst_in(self, spans: Sequence[tuple[int, int]], operation: int) -> list[SpreadCell]:
        count = len(self.changes)
        bounds = np.minimum(np.array([(first, max(end, first + 1)) for first, end in spans], int).ravel(), count)

        def worst(array: Array) -> list[Any]:
            rows = array[:, operation]
            found: list[Any] = np.maximum.reduceat(np.append(rows, rows.dtype.type(0)), bounds)[::2].tolist()
            return found

        columns = (worst(self.changes), worst(self.edited)) if spans else ((), ())
        return [SpreadCell(_BY_CODE.get(code), edited) for code, edited in zip(*columns, strict=True)]

    @property
    def touched(self) -> Array:
        """Return for each operation True if it differs in any iteration."""
        return np.asarray(self._differs.any(axis=0))

    @property
    def first(self) -> tuple[int, int] | None:
        """The first iteration in which an operation differs, and the operation's index; None where none does."""
        row = int(np.argmax(self._differs.any(axis=1)))
        return (row * self.step, int(np.argmax(self._differs[row]))) if self._differs.any() else None

    @cached_property
    def _differs(self) -> Array:
        return np.asarray(self.changes > CODES[Change.SAME])


class SpreadView(Brief):
    """Two courses of a run beside each other: `a` and `b` are the names of the branches; of a reference `a` is its
    title. `runs` are the cells of the runs of all loops: the last ones, and the first that differs.

    They part at the tick `parted` (None: they are the same). `compared` counts iterations of all loops. `ends` are the
    errors with which they ended. `is_complete`: both were run to their ends, and `outputs` are known.
    """

    unshown: ClassVar = ("runs",)

    a: str
    b: str
    parted: int | None
    outputs: tuple[OutputChange, ...]
    compared: int
    ends: tuple[str, str]
    is_complete: bool
    is_reference: bool
    runs: tuple[SpreadCells, ...]

    @property
    def first(self) -> tuple[SpreadCells, int, int] | None:
        """The first iteration in which an operation differs, and that operation; None where none does."""
        return next(((cells, *found) for cells in self.runs if (found := cells.first) is not None), None)


class _CellsBuilder:
    """Cells of one run of a loop so far; rows are added in order."""

    def __init__(self, program: Program, same_before: int, outer: Indices = ()) -> None:
        self.program, self._outer = program, outer
        self.columns = len(program.operations)
        self._step, self.reached = 1, 0
        self._cells = np.zeros((2, 64, self.columns), np.uint8)
        self._view: SpreadCells | None = None
        if same_before:
            while -(-same_before // self._step) * self.columns > MOST_CELLS:
                self._step *= 2
            reached = -(-same_before // self._step)
            self._grow(reached)
            self._cells[0, :reached] = CODES[Change.SAME]
            self.reached = same_before

    def _grow(self, rows: int) -> None:
        while self._cells.shape[1] < rows:
            self._cells = np.concatenate((self._cells, np.zeros_like(self._cells)), axis=1)

    def add(self, iteration: int, cells: Array) -> None:
        """Add the codes and edits of an iteration, the next one or a later one."""
        self._view = None
        while (iteration // self._step + 1) * self.columns > MOST_CELLS and iteration // self._step > 1:
            merged = np.maximum(self._cells[:, 0::2], self._cells[:, 1::2])
            self._cells = np.concatenate((merged, np.zeros_like(merged)), axis=1)
            self._step *= 2
        row = iteration // self._step
        self._grow(row + 1)
        self._cells[:, row] = np.maximum(self._cells[:, row], cells)
        self.reached = iteration + 1

    def view(self) -> SpreadCells:
        """Return them as they are now; they do not change later."""
        if self._view is None:
            rows = -(-self.reached // self._step)
            changes, edited = self._cells[:, :rows]
            self._view = SpreadCells(
                self.program, self.reached, self._step, changes.copy(), edited.astype(bool), self._outer
            )
        return self._view


Other = str | ReferenceValues
"""A branch by name, or a reference."""


class Spread:
    """A branch of a run beside another one or a reference, compared a little at a time with `go`.

    The present stays. After SECONDS in all it is left, for what was found to stand.
    """

    def __init__(self, branches: Branches, other: Other, b: str, tolerances: Tolerances) -> None:
        self._other = other
        self.a, self.b = other if isinstance(other, str) else other.title, b
        self._branches, self._tolerances = branches, tolerances
        here = branches.timeline(b).branch()
        self._sides = (branches.timeline(other).branch() if isinstance(other, str) else here, here)
        self._edits = tuple(dict(side.edits) for side in self._sides)
        self._parted = parting(*self._sides) if isinstance(other, str) else 0
        self._seconds = 0.0
        self._cells: dict[LoopRun | None, _CellsBuilder] = {}
        self._first: LoopRun | None = None
        self._outputs: tuple[OutputChange, ...] = ()
        self._count = 0
        self._runs: RunPairs | None = None
        self._pairs: Iterator[tuple[EndedGraph | None, EndedGraph | None]] | None = None
        self._began: dict[LoopRun | None, int] = {}
        self.is_complete = self._parted is None
        self._value_edits = [
            edit for made in self._sides[1].edits.values() for edit in made if isinstance(edit, ValueEdit)
        ]

    def is_of(self, other: Other, b: str) -> bool:
        """True if this is of these two, with the edits that they have now."""
        if (other is not self._other and other != self._other) or b != self.b:
            return False
        names = [name for name in (other if isinstance(other, str) else b, b) if name in self._branches]
        if len(names) < len(self._edits):
            return False
        now = [self._branches.edits(name) for name in names]
        return all(same_by_tick(kept, known) for kept, known in zip(self._edits, now, strict=True))

    def go(self, enough: Enough) -> bool:
        """Go on until `enough` says so; True if there is more to compare. Raise Paused where a pause is heeded."""
        if self.is_over:
            return False
        started = time.monotonic()
        try:
            if self._pairs is None:
                self._begin()
            assert self._pairs is not None
            for pair in self._pairs:
                self._compare(*pair)
                if enough() or self._seconds + time.monotonic() - started > SECONDS:
                    return True
        finally:
            self._seconds += time.monotonic() - started
        machine = self._sides[1].machine
        if isinstance(self._other, str):
            self._outputs = output_changes(machine.compiled, self._sides[0].machine.outputs, machine.outputs)
        elif machine.outputs is not None:
            main = machine.compiled.main
            places = (target_in(main, slot) for slot in main.results)
            theirs = [self._other.value_at(ValuePlace((), one.layer, one.output)) for one in places]
            self._outputs = output_changes(machine.compiled, theirs, machine.outputs)
        self.is_complete = True
        return False

    @property
    def is_over(self) -> bool:
        """True if nothing more is compared."""
        return self.is_complete or self._seconds > SECONDS

    def view(self) -> SpreadView:
        """Return what is known."""
        ends = ("", "") if self._runs is None else (self._runs.ends[0], self._runs.ends[1])
        return SpreadView(
            self.a,
            self.b,
            self._parted,
            self._outputs,
            self._count,
            ends,
            self.is_complete,
            not isinstance(self._other, str),
            tuple(one.view() for run, one in self._cells.items() if run is not None),
        )

    # --- the walk ------------------------------------------------------------------------------------------------

    def _begin(self) -> None:
        assert self._parted is not None
        for side in self._sides:
            side.history.limit(_MEMORY)
            side.goto(self._parted)
        stack = self._sides[0].machine.stack
        for depth in range(1, len(stack) + 1):
            run = loop_run(stack[:depth]) if depth > 1 else None
            iteration = iteration_of(stack[depth - 1]) if depth > 1 else None
            if iteration is not None:
                self._began[run] = iteration
        a, b = self._sides
        self._runs = RunPairs(a if isinstance(self._other, str) else None, b)
        self._pairs = iter(self._runs)

    def _compare(self, a: EndedGraph | None, b: EndedGraph | None) -> None:
        if b is None:  # only A runs it
            return
        program = b.frame.program
        is_added = a is None and isinstance(self._other, str)
        if a is not None:
            theirs = _values_of(a)
        else:
            absent: Values = lambda _layer, _output: None  # noqa: E731
            theirs = absent if isinstance(self._other, str) else values_beside(self._other, b.stack)
        builder = self._cells.pop(b.run, None)
        if builder is None:
            builder = _CellsBuilder(program, self._began.get(b.run, 0), b.numbers[:-1])
        self._cells[b.run] = builder
        if len(self._cells) > MOST_RUNS:
            kept = {loop_run(b.stack[:depth]) for depth in range(1, len(b.stack) + 1)} | {self._first}
            old = next((run for run in self._cells if run not in kept), None)
            self._cells.pop(old, None)
        iteration = b.numbers[-1] if b.numbers else 0
        cells = self._compared(theirs, b)
        if is_added:
            cells[0] = CODES[Change.ADDED]
        if self._first is None and (cells[0] > CODES[Change.SAME]).any():
            self._first = b.run
        builder.add(iteration, cells)
        self._count += not is_added

    def _compared(self, theirs: Values, b: EndedGraph) -> Array:
        """Return the codes and edits of all operations in an iteration."""
        operations, right = b.frame.program.operations, b.frame.values
        cells = np.zeros((2, len(operations)), np.uint8)
        edited = {
            one.slot for one in self._value_edits if one.program is b.frame.program and right[one.slot] is one.value
        }
        for index, operation in enumerate(operations):
            for output, slot in enumerate(operation.outputs):
                one, other = theirs(operation.layer, output), right[slot]
                if one is None or other is None:
                    continue
                found = difference(one, other, self._tolerances.of(operation.layer, other))
                cells[0, index] = max(cells[0, index], CODES[Change.SAME if found.is_within else found.change])
            cells[1, index] = not edited.isdisjoint(operation.outputs)
        return cells


def _values_of(a: EndedGraph) -> Values:
    frame = a.frame
    return lambda layer, output: frame.values[frame.program.slots[layer.id, output]]


# --- A moment beside now as frozen data: its values, and how far each operation of now is from it --------------------


class MomentView(Brief):
    """Hold the baseline beside now.

    `title` is the title of a reference. `iteration` is the baseline's iteration in the loop around the frame. `path`
    has the iterations of the baseline and of now in all loops around the frame, outer before inner. It is None unless
    they are in different runs of the loop, or the baseline is an iteration of a loop further out.

    `values` are the values of the frame that is looked at, `loop` the values of the loop that runs in or around it.
    `operations` map the index of an operation to its difference; `carried` maps the id of a Parameter to the difference
    of the value that entered the iteration. Both are given only if asked for. `spread` is given beside another branch:
    where the two differ in all iterations of the loop. `problem` says why the baseline has no values here.
    """

    unshown: ClassVar = ("values", "loop", "spread")

    moment: Moment
    iteration: int | None = None
    path: tuple[Indices, Indices] | None = None
    title: str = ""
    values: MomentValues | None = None
    loop: MomentValues | None = None
    operations: Mapping[int, Difference] = field(default_factory=dict)
    carried: Mapping[int, Difference] = field(default_factory=dict)
    spread: SpreadView | None = None
    problem: str = ""
    is_complete: bool = False
