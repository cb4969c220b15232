"""How every operation in every iteration differs from A, and of two courses what became of the model's outputs.

Two branches are both run beside the present from where they part to their ends, some iterations at a time. Beside a
reference, an iteration, or always the iteration before the present branch alone is. What was compared is kept for each
run of a loop as cells, of which two iterations become one where there are too many.
"""

from __future__ import annotations

import math
import time
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from types import MappingProxyType
from typing import Any, ClassVar, Final, NamedTuple

import numpy as np
from msgspec import field
from msgspec.structs import replace

from stepper.debug.branches.branches import Branches, edit_text
from stepper.debug.branches.differences import PlaceDifference, parting, state_difference
from stepper.debug.branches.edits import Edit, ValueEdit, same_by_tick
from stepper.debug.iterations.cell_store import Cell, next_cell
from stepper.debug.moments.moment import Moment, MomentKind, MomentValues
from stepper.debug.moments.run_pairs import EndedGraph, RunPairs, Values, values_beside
from stepper.debug.overview.facts import Row, RowKind
from stepper.debug.overview.rows import LoopRows, loop_rows
from stepper.debug.reference_values import ReferenceValues, ValuePlace
from stepper.debug.scopes import target_in
from stepper.debug.stop import iteration_of
from stepper.debug.timeline import Timeline
from stepper.debug.visits import Enough
from stepper.element_types import Array, Indices
from stepper.engine.frames import Frame, LoopRun, loop_run
from stepper.engine.loops import ConcatenatedOutput, LastValueOutput, truth
from stepper.engine.program import CompiledModel, LoopPlan, Operation, Program, Value
from stepper.engine.run import output_names
from stepper.ir.model import Layer
from stepper.records import Brief, Record
from stepper.tensors.difference import Change, Difference, difference
from stepper.tensors.histories import ValueHistory
from stepper.tensors.known_values import KnownValues
from stepper.tensors.tolerances import Tolerances

# ---------------------------------------------------------------------------------------------------------------------
# Changes of the outputs of a model between two courses of its run: row by row where a loop gives them in rows


MOST_ROWS: Final = 4_096
"""Rows that differ of which each is looked at."""


class RowChange(NamedTuple):
    """A row of an output that differs, by the iteration that gave it."""

    iteration: int
    difference: Difference


class OutputChange(Record):
    """An output of the model in A and now.

    Where a loop gives a piece of it in each iteration, `rows` is how many both have (`lengths`: in A, and now), and
    `changed` are the first of those that differ, of `different` in all, in the order of the iterations. `rows` is None
    of another output. `source` is the name of the value of the loop that it is, where a loop gives it.
    """

    name: str
    difference: Difference
    rows: int | None = None
    lengths: tuple[int, int] = (0, 0)
    different: int = 0
    changed: tuple[RowChange, ...] = ()
    source: str = ""

    @property
    def first(self) -> int | None:
        """Return the first iteration in which it differs."""
        return self.changed[0].iteration if self.changed else None

    def rows_that(self, change: Change) -> tuple[RowChange, ...]:
        """Return the rows with this kind of change."""
        return tuple(row for row in self.changed if row.difference.change is change)

    @property
    def within(self) -> tuple[RowChange, ...]:
        """Return the rows whose bits differ, but which stay within the tolerance."""
        return tuple(row for row in self.changed if row.difference.is_within)


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


def output_sources(main: Program) -> list[tuple[Layer, int]]:
    """Return the layer and the output of it that gives each output of a model."""
    return [(target.layer, target.output) for target in (target_in(main, slot) for slot in main.results)]


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
    changed = [RowChange(int(row), difference(left[row], right[row])) for row in differing[:MOST_ROWS]]
    found = tuple(row for row in changed if row.difference.change is not Change.SAME)
    many = len(found) + max(len(differing) - MOST_ROWS, 0)
    return OutputChange(name, whole, rows, lengths, many, found)


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
        """Return the name of the value inside of the loop: of what is carried that of the Parameter."""
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
    """Return how a loop joins an output; None of one of which an iteration gives no piece."""
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


MOST_CELLS: Final = 2**20
"""Cells of one run of a loop, of 12 bytes each."""
MOST_RUNS: Final = 64
"""Runs of loops of which cells are kept, the last ones."""
_MOST_ELEMENTS: Final = 2**16
"""Elements of a value of A that is kept for its picture."""
_MEMORY: Final = 2**26
"""Bytes of snapshots that each of the two courses may keep."""

SECONDS: Final = 60.0
"""For how long two courses are compared in all."""

UNKNOWN: Final = 0
CODES: Final = {
    Change.SAME: 1,
    Change.ADDED: 2,
    Change.NUMBER: 3,
    Change.TRUTH: 4,
    Change.SHAPE: 5,
    Change.MENDED: 6,
    Change.BROKEN: 7,
}
"""By change: what stands for it in the cells. The largest of several iterations stands for all of them."""
_BY_CODE: Final = {code: change for change, code in CODES.items()}


Followed = Mapping[int, Sequence[tuple[int, int, int]]]
"""By the `id` of a program outputs of its operations: (index of the operation, of its output, slot)."""
_MOST_KNOWN: Final = 256
"""Rows of cells that are remembered with the cells of a run."""


class SpreadCell(NamedTuple):
    """One operation in one iteration, or the worst of some: `relative` is its largest relative difference.

    `change` is None where it was not compared.
    """

    change: Change | None
    relative: float
    is_edited: bool


class SpreadCells(Brief, dict=True):
    """The operations of one run of a loop over its iterations, a row for each `step` of these.

    `changes` are CODES, `relative` and `edited` stand beside: arrays of shape [rows, operations], of each the worst of
    its outputs, behind these the `ports`, the outputs of those that have several, and last the condition of the
    loop as it came out or was set. `iterations` of them were compared, from 0 on. `theirs` are the values of the
    `rows` of the loop in A, where A runs as well: from the iteration `began` on, before which both are the same.
    `outer` are the iterations of the loops around the run.
    """

    unshown: ClassVar = ("program", "changes", "relative", "edited", "theirs", "rows", "ports")

    program: Program
    iterations: int
    step: int
    changes: Array
    relative: Array
    edited: Array
    theirs: tuple[ValueHistory | None, ...] = ()
    began: int = 0
    rows: tuple[Row, ...] = ()
    outer: Indices = ()
    ports: Mapping[tuple[int, int], int] = MappingProxyType({})

    def column(self, layer: int, output: int) -> int | None:
        """Return the column of one output of an operation, by the id of its layer; None where there is none."""
        index = self.program.indices.get(layer)
        return None if index is None else self.ports.get((index, output), index)

    def column_of(self, row: Row) -> int | None:
        """Return the column of a row of the loop; None where no operation gives it."""
        if row.kind is RowKind.CONDITION:
            return len(self.program.operations) + len(self.ports)
        return None if row.producer is None else self.column(row.producer.id, row.output)

    def value_in_a(self, row: Row, now: ValueHistory | None) -> ValueHistory | None:
        """Return the values of a row of the loop in A, with those of `now` as far as both are the same before."""
        place = next((k for k, one in enumerate(self.rows) if _key(one) == _key(row)), None)
        theirs = None if place is None else self.theirs[place]
        before = now.before(self.began) if now is not None and self.began else None
        return theirs if before is None else before if theirs is None else theirs.filled_up(before)

    def at(self, row: int, operation: int) -> SpreadCell:
        """Return one cell."""
        change = _BY_CODE.get(int(self.changes[row, operation]))
        return SpreadCell(change, float(self.relative[row, operation]), bool(self.edited[row, operation]))

    def has(self, change: Change) -> bool:
        """Return True if one of the cells is so."""
        return bool((self.changes == CODES[change]).any())

    def window(self, first: int, iterations: int, operations: Array) -> tuple[Array, Array]:
        """Return CODES and relative differences of these operations, arrays of shape [iterations, operations]."""
        changes = np.full((iterations, len(operations)), UNKNOWN, np.uint8)
        relative = np.zeros(changes.shape)
        asked = np.arange(first, first + iterations)
        known = (asked >= 0) & (asked < self.iterations)
        taken = np.ix_(asked[known] // self.step, operations)
        changes[known], relative[known] = self.changes[taken], self.relative[taken]
        return changes, relative

    @cached_property
    def _known(self) -> dict[object, Sequence[SpreadCell]]:
        return {}

    def worst_in(
        self, spans: Sequence[tuple[int, int]], operations: Sequence[int] | None = None
    ) -> Sequence[SpreadCell]:
        """Return the worst of some operations (None: of all) in each span of rows: from the first to before the last.

        What is beyond the last row was not compared. What was asked before is remembered: each key asks again.
        """
        key = tuple(spans), None if operations is None else tuple(operations)
        found = self._known.get(key)
        if found is None:
            if len(self._known) >= _MOST_KNOWN:
                self._known.clear()
            found = self._known[key] = self._worst_in(spans, operations)
        return found

    def _worst_in(self, spans: Sequence[tuple[int, int]], operations: Sequence[int] | None) -> list[SpreadCell]:
        kept, count = slice(None) if operations is None else list(operations), len(self.changes)
        bounds = np.minimum(np.array([(first, max(end, first + 1)) for first, end in spans], int).ravel(), count)

        def worst(array: Array) -> list[Any]:
            rows = array[:, kept].max(axis=1, initial=0)
            found: list[Any] = np.maximum.reduceat(np.append(rows, rows.dtype.type(0)), bounds)[::2].tolist()
            return found

        columns = (worst(self.changes), worst(self.relative), worst(self.edited)) if spans else ((), (), ())
        return [
            SpreadCell(_BY_CODE.get(code), relative, edited) for code, relative, edited in zip(*columns, strict=True)
        ]

    @property
    def touched(self) -> Array:
        """Return for each operation True if it differs in any iteration."""
        return np.asarray((self._of_operations > CODES[Change.SAME]).any(axis=0))

    @property
    def _of_operations(self) -> Array:
        return self.changes[:, : len(self.program.operations)]

    def next_different(self, iteration: int, operation: int, *, backward: bool = False) -> Cell | None:
        """Return the next cell in time, as (iteration, operation), in which an operation begins to differ."""
        differs = self._of_operations > CODES[Change.SAME]
        before = np.vstack([np.zeros((1, differs.shape[1]), bool), differs[:-1]])
        begins = [(row * self.step, marked) for row, marked in enumerate(differs & ~before)]
        return next_cell(begins[::-1] if backward else begins, Cell(iteration, operation), backward=backward)


class SpreadView(Brief):
    """Two courses of a run beside each other: `a` and `b` are the names of the branches; of a reference `a` is its
    title. Of another `kind` of A it is one course, each iteration beside A's. `runs` are the cells of the runs of all
    loops of two courses, the last ones.

    They part at the tick `parted` (None: they are the same), where `set_there` is what was set; `edits` are those of b
    in words, and `edited_iteration` that of the first. `cells` are those of the run of the loop that is looked at.
    `compared` counts iterations of all loops. `ends` are the errors with which they ended. `is_complete`: both were run
    to their ends, and `outputs` are known.
    """

    unshown: ClassVar = ("cells", "runs")

    a: str
    b: str
    parted: int | None
    set_there: PlaceDifference | None
    edits: tuple[str, ...]
    cells: SpreadCells | None
    outputs: tuple[OutputChange, ...]
    compared: int
    ends: tuple[str, str]
    is_complete: bool
    kind: MomentKind = MomentKind.BRANCH
    runs: tuple[SpreadCells, ...] = ()

    @property
    def is_reference(self) -> bool:
        """True if A is a reference."""
        return self.kind is MomentKind.REFERENCE

    @property
    def is_of_runs(self) -> bool:
        """True if two whole runs are beside each other, with outputs."""
        return self.kind in (MomentKind.BRANCH, MomentKind.REFERENCE)


class _CellsBuilder:
    """Cells of one run of a loop so far; rows are added in order."""

    def __init__(self, program: Program, same_before: int, rows: LoopRows | None, outer: Indices = ()) -> None:
        self.program, self._outer = program, outer
        self._began, self._rows = same_before, rows
        self._theirs = [] if rows is None else [KnownValues() for _ in rows.slots]
        self.ports = _ports_of(program)
        self.columns = len(program.operations) + len(self.ports) + 1  # the last: whether the loop goes on
        self._step, self.reached = 1, 0
        self._cells = np.zeros((3, 64, self.columns), np.float32)
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
        """Add the codes, relative differences and edits of an iteration, the next one or a later one."""
        self._view = None
        while (iteration // self._step + 1) * self.columns > MOST_CELLS and iteration // self._step > 1:
            merged = np.maximum(self._cells[:, 0::2], self._cells[:, 1::2])
            self._cells = np.concatenate((merged, np.zeros_like(merged)), axis=1)
            self._step *= 2
        row = iteration // self._step
        self._grow(row + 1)
        self._cells[:, row] = np.maximum(self._cells[:, row], cells)
        self.reached = iteration + 1

    def take(self, iteration: int, theirs: Values) -> None:
        """Take what A has of the loop's rows in an iteration."""
        for slot, known in zip(() if self._rows is None else self._rows.slots, self._theirs, strict=True):
            index = self.program.computed_at.get(slot)
            if index is not None:
                operation = self.program.operations[index]
                value = theirs(operation.layer, operation.outputs.index(slot))
                if value is not None and np.size(value) <= _MOST_ELEMENTS and known.see(iteration, value):
                    self._view = None

    def follow(self, places: Sequence[tuple[int, int, int]], file: str) -> bool:
        """Take values of more operations; True if there are such that were not taken so far."""
        if self._rows is None:
            return False
        known = len(self._rows.slots)
        self._rows.follow(self.program, places, file)
        more = len(self._rows.slots) - known
        self._theirs += [KnownValues() for _ in range(more)]
        self._view = None if more else self._view
        return more > 0

    def view(self) -> SpreadCells:
        """Return them as they are now; they do not change later."""
        if self._view is None:
            rows = -(-self.reached // self._step)
            changes, relative, edited = self._cells[:, :rows]
            rows_of_loop = () if self._rows is None else tuple(self._rows.rows)
            self._view = SpreadCells(
                self.program,
                self.reached,
                self._step,
                changes.astype(np.uint8),
                relative.copy(),
                edited.astype(bool),
                theirs=()
                if self._rows is None
                else tuple(None if k is None else self._theirs[k].view() for k in self._rows.taken),
                began=self._began,
                rows=rows_of_loop,
                outer=self._outer,
                ports=self.ports,
            )
        return self._view


def _ports_of(program: Program) -> dict[tuple[int, int], int]:
    """Return the columns behind those of the operations: of each output of those that have several."""
    several = [
        (index, output)
        for index, operation in enumerate(program.operations)
        if len(operation.outputs) > 1
        for output in range(len(operation.outputs))
    ]
    return {port: len(program.operations) + place for place, port in enumerate(several)}


class BesideIteration(Record):
    """An iteration, or always the one before, beside which each iteration of a run is; `find` returns its values."""

    moment: Moment
    find: Callable[[], MomentValues | None]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, BesideIteration) and self.moment == other.moment

    def __hash__(self) -> int:
        return hash(self.moment)


Other = str | ReferenceValues | BesideIteration
"""A branch by name, a reference, or an iteration."""


class Spread:
    """A branch of a run beside another one, a reference or an iteration, compared a little at a time with `go`.

    The present stays. After SECONDS in all it is left, for what was found to stand.
    """

    def __init__(self, branches: Branches, other: Other, b: str, tolerances: Tolerances) -> None:
        self._other = other
        self.a, self.b = (
            other if isinstance(other, str) else "" if isinstance(other, BesideIteration) else other.title,
            b,
        )
        self._kind = MomentKind.BRANCH if isinstance(other, str) else MomentKind.REFERENCE
        if isinstance(other, BesideIteration):
            self._kind = other.moment.kind
        self._pinned: MomentValues | None = None
        self._before: tuple[LoopRun | None, Sequence[Value]] = None, ()
        self._branches, self._tolerances = branches, tolerances
        here = branches.timeline(b).branch()
        there = _branch_of(other, b)
        self._sides = (branches.timeline(there).branch() if there != b else here, here)
        self._edits = tuple(dict(side.edits) for side in self._sides)
        self._parted = parting(*self._sides) if isinstance(other, str) else 0
        self._seconds = 0.0
        self._set_there: PlaceDifference | None = None
        self._cells: OrderedDict[LoopRun | None, _CellsBuilder] = OrderedDict()
        self._outputs: tuple[OutputChange, ...] = ()
        self._count = 0
        self._runs: RunPairs | None = None
        self._pairs: Iterator[tuple[EndedGraph | None, EndedGraph | None]] | None = None
        self._began: dict[LoopRun | None, int] = {}
        self._followed: Followed = {}
        self._is_behind = False
        self._again: Iterator[tuple[EndedGraph | None, EndedGraph | None]] | None = None
        self.is_complete = self._parted is None
        self._value_edits = [edit for edit in _all_edits(self._sides[1]) if isinstance(edit, ValueEdit)]

    def is_of(self, other: Other, b: str) -> bool:
        """True if this is of these two, with the edits that they have now."""
        if (other is not self._other and other != self._other) or b != self.b:
            return False
        names = [name for name in (_branch_of(other, b), b) if name in self._branches]
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
            if self.is_complete:
                for _, one in self._once_more():
                    self._take_again(one)
                    if enough() or self._seconds + time.monotonic() - started > SECONDS:
                        return True
                self._is_behind, self._again = False, None
                return False
            if self._pairs is None:
                self._begin()
            assert self._pairs is not None
            for pair in self._pairs:
                self._compare(*pair)
                if enough() or self._seconds + time.monotonic() - started > SECONDS:
                    return True
        finally:
            self._seconds += time.monotonic() - started
        self._finish()
        return self._is_behind

    @property
    def is_over(self) -> bool:
        """True if nothing more is compared, nor looked up in A."""
        return (self.is_complete and not self._is_behind) or self._seconds > SECONDS

    def follow(self, followed: Followed) -> None:
        """Take the values in A of these outputs of operations, too; of iterations that are compared already later."""
        if followed == self._followed or self._kind not in (MomentKind.BRANCH, MomentKind.REFERENCE):
            return
        self._followed = dict(followed)
        for builder in self._cells.values():
            if builder.follow(self._followed.get(id(builder.program), ()), self._file):
                self._is_behind, self._again = True, None

    def view(self, run: LoopRun | None) -> SpreadView:
        """Return what is known, with the cells of one run of a loop; None: of the model's own graph."""
        ends = ("", "") if self._runs is None else (self._runs.ends[0], self._runs.ends[1])
        builder = self._cells.get(run)
        edits = tuple(edit_text(edit) for edit in _all_edits(self._sides[1]))
        cells = None if builder is None else builder.view()
        is_of_runs = self._kind in (MomentKind.BRANCH, MomentKind.REFERENCE)
        runs = tuple(one.view() for at, one in self._cells.items() if at is not None and is_of_runs)
        return SpreadView(
            self.a,
            self.b,
            self._parted,
            self._set_there,
            edits,
            cells,
            self._outputs,
            self._count,
            ends,
            self.is_complete,
            self._kind,
            runs,
        )

    # --- the walk ------------------------------------------------------------------------------------------------

    def _begin(self) -> None:
        assert self._parted is not None
        if isinstance(self._other, BesideIteration) and self._kind is MomentKind.ITERATION:
            self._pinned = self._other.find()
        if not isinstance(self._other, str):
            side = self._sides[1]
            side.history.limit(_MEMORY)
            side.return_to(0)
            self._runs = RunPairs(None, side)
            self._pairs = iter(self._runs)
            return
        for side in self._sides:
            side.history.limit(_MEMORY)
            side.goto(self._parted)
        first, second = self._sides
        self._set_there = state_difference(first.machine, second.machine)
        stack = first.machine.stack
        for depth in range(1, len(stack) + 1):
            run = loop_run(stack[:depth]) if depth > 1 else None
            iteration = iteration_of(stack[depth - 1]) if depth > 1 else None
            if iteration is not None:
                self._began[run] = iteration
        self._runs = RunPairs(first, second)
        self._pairs = iter(self._runs)

    def _compare(self, a: EndedGraph | None, b: EndedGraph | None) -> None:
        if b is None:  # only A runs it
            return
        program = b.frame.program
        is_added = a is None and isinstance(self._other, str)
        theirs = _nothing if is_added else _values_of(a) if a is not None else self._theirs(b)
        if theirs is None:
            return
        builder = self._cells.get(b.run)
        if builder is None:
            rows = self._rows_of(b.frame) if self._kind in (MomentKind.BRANCH, MomentKind.REFERENCE) else None
            builder = self._cells[b.run] = _CellsBuilder(program, self._began.get(b.run, 0), rows, b.numbers[:-1])
            builder.follow(self._followed.get(id(program), ()), self._file)
            while len(self._cells) > MOST_RUNS:
                self._cells.popitem(last=False)
        iteration = b.numbers[-1] if b.numbers else 0
        cells = self._compared(theirs, b, builder)
        cells[0, -1] = _goes_on_otherwise(a, b, theirs)
        if is_added:
            cells[0] = CODES[Change.ADDED]
        builder.add(iteration, cells)
        builder.take(iteration, theirs)
        self._count += not is_added

    def _rows_of(self, frame: Frame) -> LoopRows | None:
        return loop_rows(frame.active.operation.layer, frame.loop, self._file) if frame.loop else None

    @property
    def _file(self) -> str:
        return str(self._sides[1].machine.compiled.model.path)

    def _once_more(self) -> Iterator[tuple[EndedGraph | None, EndedGraph | None]]:
        """Run A once more from where the two part, beside a reference the present branch, where it was left."""
        if self._again is None:
            side = self._sides[0 if isinstance(self._other, str) else 1]
            side.return_to(self._parted or 0)
            self._again = iter(RunPairs(None, side))
        return self._again

    def _take_again(self, one: EndedGraph | None) -> None:
        builder = None if one is None else self._cells.get(one.run)
        if builder is not None and one is not None and one.numbers:
            builder.take(one.numbers[-1], _values_of(one) if isinstance(self._other, str) else self._referenced(one))

    def _theirs(self, b: EndedGraph) -> Values | None:
        """Return what A has beside an iteration; None where it has nothing."""
        if not isinstance(self._other, BesideIteration):
            return self._referenced(b)
        if self._kind is MomentKind.BEFORE:
            (run, values), self._before = self._before, (b.run, tuple(b.frame.values))
            slots = b.frame.program.slots
            return (lambda layer, output: values[slots[layer.id, output]]) if run == b.run and values else None
        pinned = self._pinned
        if pinned is None or pinned.program is not b.frame.program:
            return None
        return lambda layer, output: pinned.held(layer.id, output)

    def _referenced(self, b: EndedGraph) -> Values:
        assert not isinstance(self._other, str | BesideIteration)
        return values_beside(self._other, b.stack)

    def _compared(self, theirs: Values, b: EndedGraph, builder: _CellsBuilder) -> Array:
        """Return the codes, relative differences and edits of all columns of an iteration."""
        operations, ports = b.frame.program.operations, builder.ports
        cells = np.zeros((3, builder.columns), np.float32)
        right = b.frame.values
        edits = [one for one in self._value_edits if one.program is b.frame.program and right[one.slot] is one.value]
        for index, operation in enumerate(operations):
            for output, slot in enumerate(operation.outputs):
                one, other = theirs(operation.layer, output), right[slot]
                if one is None or other is None:
                    continue
                found = difference(one, other, self._tolerances.of(operation.layer, other))
                columns = [index, ports.get((index, output), index)]
                cells[:2, columns] = np.maximum(cells[:2, columns], np.array([[CODES[found.change]], [weight(found)]]))
            for edit in edits:
                if edit.slot in operation.outputs:
                    port = index, operation.outputs.index(edit.slot)
                    cells[2, [index, ports.get(port, index)]] = 1
        return cells

    def _finish(self) -> None:
        machine = self._sides[1].machine
        if isinstance(self._other, str):
            self._outputs = output_changes(machine.compiled, self._sides[0].machine.outputs, machine.outputs)
        elif machine.outputs is not None and not isinstance(self._other, BesideIteration):
            theirs = [self._other.value_at(ValuePlace((), *one)) for one in output_sources(machine.compiled.main)]
            self._outputs = output_changes(machine.compiled, theirs, machine.outputs)
        self.is_complete = True


def _key(row: Row) -> tuple[object, ...]:
    return row.kind, row.inner.id, row.port


def _branch_of(other: Other, b: str) -> str:
    """Return the branch in which A is, where it is in one; else that of now."""
    if isinstance(other, BesideIteration):
        return other.moment.branch or b
    return other if isinstance(other, str) else b


def _goes_on_otherwise(a: EndedGraph | None, b: EndedGraph, theirs: Values) -> int:
    """Return the code of whether a loop goes on in one of two iterations alone: by conditions that may have been set.

    Where A is no run of a loop beside it, by the value of its condition there.
    """
    activation, program = b.frame.activation, b.frame.program
    slot = b.frame.loop.condition_result if b.frame.loop else None
    if activation is None or slot is None:
        return UNKNOWN
    if a is not None and a.frame.activation is not None:
        other: bool | None = a.frame.activation.condition
    else:
        index = program.computed_at.get(slot)
        operation = None if index is None else program.operations[index]
        value = None if operation is None else theirs(operation.layer, operation.outputs.index(slot))
        other = None if value is None else truth(value)
    if other is None:
        return UNKNOWN
    return CODES[Change.SAME if other is activation.condition else Change.TRUTH]


def _nothing(_layer: Layer, _output: int) -> None:
    """Return what A has of an iteration that it does not run."""


def _values_of(a: EndedGraph) -> Values:
    frame = a.frame
    return lambda layer, output: frame.values[frame.program.slots[layer.id, output]]


def weight(found: Difference) -> float:
    """Return a relative difference as a cell has it: infinite where more than a number differs.

    So it is where NaN or Inf comes or goes, a boolean is another, or the shape.
    """
    if found.relative is None or found.change in (Change.MENDED, Change.BROKEN, Change.SHAPE):
        return math.inf
    return found.relative if math.isfinite(found.relative) else math.inf


def _all_edits(timeline: Timeline) -> tuple[Edit, ...]:
    return tuple(edit for tick in sorted(timeline.edits) for edit in timeline.edits[tick])


# --- A moment beside now as frozen data: its values, and how far each operation of now is from it --------------------


class OperationDifference(Record, eq=False):
    """An operation in the moment and now: `number` is the statistic of its value in the moment.

    `difference` is None where one of the two has no value; of several outputs that of the one that differs most.
    """

    number: float | None
    difference: Difference | None


class MomentView(Brief):
    """A beside now. `title` is that of a reference, `iteration` that of A in the loop around the frame.

    `path` has the iterations of A and of now in all loops around the frame, outer before inner, where they are in
    different runs of the loop, or A is an iteration of one further out; else it is None.

    `values` are those of the frame that is looked at, `loop` those of the loop that runs in or around it. `operations`
    map the index of an operation to how it differs, `carried` the id of a Parameter to how what entered the iteration
    does; both as far as they were compared. `spread` is there beside another branch: where the two differ in all
    iterations of the loop. `problem` says why A has no values here; `is_elsewhere`: because it is
    in no iteration of where the run stands.
    """

    unshown: ClassVar = ("values", "loop", "spread")

    moment: Moment
    iteration: int | None = None
    path: tuple[Indices, Indices] | None = None
    title: str = ""
    values: MomentValues | None = None
    loop: MomentValues | None = None
    operations: Mapping[int, OperationDifference] = field(default_factory=dict)
    carried: Mapping[int, Difference] = field(default_factory=dict)
    spread: SpreadView | None = None
    problem: str = ""
    is_elsewhere: bool = False
    is_complete: bool = False

    @property
    def is_in_this_run(self) -> bool:
        """True if A is an iteration of the same run of the loop as now."""
        return self.iteration is not None and (self.path is None or self.path[0][:-1] == self.path[1][:-1])

    def difference(self, index: int) -> Difference | None:
        """Return how far an operation is from A; None where that is not known."""
        found = self.operations.get(index)
        return None if found is None else found.difference
