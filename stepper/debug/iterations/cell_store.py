"""Operations of a body over its last iterations: one number each, and the values that somebody looks at; bounded.

At each stop the frames are looked at: an operation's slot holds what it gave now or one iteration before, so moving on
by iterations costs no replay. What was jumped over is filled in by an excursion, when whoever asks has time for it.
Numbers are kept in tiles of some iterations. Whoever looks gets tiles that no longer change, so they can be shown by
another thread while the run goes on.
"""

from __future__ import annotations

import math
from collections import OrderedDict
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain, pairwise
from typing import Final, NamedTuple

import numpy as np
from msgspec.structs import astuple, replace

from stepper.debug.iterations.loop_runs import outer_now
from stepper.debug.iterations.reader import IterationReader
from stepper.debug.overview.facts import ActivationFacts, LoopFacts, Overview, Row
from stepper.debug.overview.rows import LoopRows, loop_rows
from stepper.debug.stop import iteration_of
from stepper.debug.timeline import Timeline
from stepper.debug.visits import Enough, never
from stepper.element_types import Array, Indices, Shape
from stepper.engine.frames import Frame, Frames, Phase
from stepper.engine.program import Program, Value
from stepper.errors import UsageError
from stepper.records import Record
from stepper.tensors.histories import KeptStatistic, ValueHistory
from stepper.tensors.known_values import KnownValues
from stepper.tensors.statistics import FITTING, OVER_ITERATIONS, quiet_number_of

MOST_CELLS: Final = 2 * 2**20
"""Cells of one run that are kept, of 13 bytes each; the iterations that were seen longest ago go first."""
_LEAST_ITERATIONS: Final = 256
"""Iterations that are kept, however many operations there are."""


class Cell(NamedTuple):
    """Cell of the grid: one operation in one iteration; in the order of time."""

    iteration: int
    operation: int


def next_cell(marked: Iterable[tuple[int, Array]], after: Cell, *, backward: bool) -> Cell | None:
    """Return the next cell in time that is marked: of iterations in the order of the search, for each operation."""
    for iteration, is_marked in marked:
        cells = [Cell(iteration, int(index)) for index in np.flatnonzero(is_marked)]
        fitting = [cell for cell in cells if (cell < after if backward else cell > after)]
        if fitting:
            return fitting[-1] if backward else fitting[0]
    return None


class Tile(Record, eq=False):
    """Operations in some iterations: arrays of shape [iterations, operations].

    `numbers` hold where `known`. `shapes` are equal where the shapes of the values are; -1: not seen yet.
    """

    numbers: Array
    known: Array
    shapes: Array

    @staticmethod
    def empty(iterations: int, operations: int) -> Tile:
        """Nothing is known."""
        size = iterations, operations
        return Tile(np.zeros(size), np.zeros(size, bool), np.full(size, -1, np.int32))

    def put(self, row: int, columns: slice | Array, other: Tile, taken: slice | Array) -> None:
        """Take over operations of the one iteration of another tile."""
        for mine, theirs in zip(astuple(self), astuple(other), strict=True):
            mine[row, columns] = theirs[0, taken]


class CellStore:
    """The cells of one run of a graph with so many operations: a tile for each iteration, which never changes."""

    def __init__(self, operations: int, most_cells: int = MOST_CELLS) -> None:
        self.operations = operations
        self._most = max(most_cells // max(operations, 1), _LEAST_ITERATIONS)
        self._rows: OrderedDict[int, Tile] = OrderedDict()
        self._complete: set[int] = set()

    @property
    def cells(self) -> int:
        """Return how many are kept."""
        return len(self._rows) * self.operations

    def missing(self, iteration: int, begin: int, end: int) -> Array:
        """Which operations from `begin` up to but not `end` were not seen yet in an iteration: their indices."""
        row = self._rows.get(iteration)
        return np.arange(begin, end) if row is None else np.flatnonzero(row.shapes[0, begin:end] < 0) + begin

    def put(self, iteration: int, operations: Array, row: Tile) -> None:
        """These operations of an iteration, by index, of a row of all."""
        made = Tile.empty(1, self.operations)
        if iteration in self._rows:
            made.put(0, slice(None), self._rows[iteration], slice(None))
        made.put(0, operations, row, operations)
        self._rows[iteration] = made
        self._rows.move_to_end(iteration)
        while len(self._rows) > self._most:
            self._complete.discard(self._rows.popitem(last=False)[0])

    def close(self, iteration: int) -> None:
        """All operations of the iteration have run, and were seen."""
        self._complete.add(iteration)

    def lacks(self, iteration: int) -> bool:
        """True if the iteration was not seen when it was closed, with all its values there."""
        return iteration not in self._complete

    def window(self, first: int, iterations: int) -> Tile:
        """Return a part of it: arrays of shape [iterations, operations]."""
        found = Tile.empty(iterations, self.operations)
        for at in range(first, first + iterations):
            if at in self._rows:
                found.put(at - first, slice(None), self._rows[at], slice(None))
        return found


MOST_OPERATIONS: Final = 256
"""Operations of which values are kept, the ones that were wanted last."""
MOST_BYTES: Final = 2**17
"""Bytes of numbers that are kept of an operation, where they are for more than some hundred iterations."""
_MOST_READ: Final = 512
"""Iterations that are remembered to have been read; those of the longest ago are read again where they are wanted."""
LARGEST_AT_A_STOP: Final = 2**16
"""Elements of a value that is read while one waits for the next picture."""
LARGEST: Final = 2**22
"""Elements of a value that is read at all."""


class ListedValues:
    """Values of the wanted operations of one activation; `slots` are the first outputs, by operation."""

    def __init__(self, slots: Sequence[int]) -> None:
        self._slots = slots
        self._known: OrderedDict[int, KnownValues] = OrderedDict()
        self._wanted: Indices = ()
        self._read: OrderedDict[int, None] = OrderedDict()

    def want(self, operations: Sequence[int]) -> None:
        """Keep the values of these from now on, too."""
        wanted = tuple(operations)
        if wanted == self._wanted:
            return
        self._wanted = wanted
        if not self._known.keys() >= set(wanted):
            self._read.clear()
        for index in wanted:
            self._known.setdefault(index, KnownValues(MOST_BYTES))
            self._known.move_to_end(index)
        while len(self._known) > max(MOST_OPERATIONS, len(wanted)):
            self._known.popitem(last=False)

    def lacks(self, iteration: int) -> bool:
        """True if the wanted values were not read when the iteration was closed."""
        return bool(self._wanted) and iteration not in self._read

    def see(self, frame: Frame, iteration: int, most: int = LARGEST, enough: Enough = never) -> bool:
        """Read what this iteration has made, and what the one before left, of values of at most so many elements.

        `enough` ends it. True if any was not known.
        """
        done = frame.pc if frame.phase is Phase.RUNNING else len(self._slots)
        is_new = False
        for index in self._wanted:
            slot, made = self._slots[index], iteration - (index >= done)
            value = frame.values[slot] if slot >= 0 else None
            if value is None or made < 0 or self._known[index].knows(made) or np.size(value) > most:
                continue
            if enough():
                break
            is_new |= self._known[index].see(made, value)
        return is_new

    def close(self, iteration: int) -> None:
        """Remember that all operations of the iteration have run, and were read."""
        if self._wanted:
            self._read[iteration] = None
            while len(self._read) > _MOST_READ:
                self._read.popitem(last=False)

    def view(self) -> Mapping[int, ValueHistory]:
        """Return what is known of the wanted operations, by their index."""
        found = ((index, self._known[index].view()) for index in self._wanted)
        return {index: history for index, history in found if history is not None}


MOST_ITERATIONS: Final = 64
_AHEAD: Final = 8
"""Iterations after the present that a history has, too, where one has been there."""
_NEAR: Final = 16
"""Iterations before the present of which values are fetched for whoever lists operations."""
_REACH: Final = 500
"""Operations before and behind the moment that are seen while one waits."""
_PIECES: Final = 256
"""Of an output that grows all pieces are there: so many of the last ones are looked at."""
MOST_RUNS: Final = 32
MOST_SHAPES: Final = 2**16


# --- what is kept ---------------------------------------------------------------------------------------------------


_GROWTH: Final = 8.0
"""A carried value explodes where it has grown so many times in the last iterations."""


class RowValues(Record, eq=False):
    """A row of a loop, and what is known of its values around the present: column k is what iteration k made."""

    row: Row
    values: ValueHistory | None

    @property
    def explodes(self) -> bool:
        """True if the magnitude grew in each of the last iterations, and many times altogether."""
        values = self.values
        if values is None or values.count < 6:
            return False
        with np.errstate(all="ignore"):
            last = values.numbers[0 if values.is_whole else KeptStatistic.RMS, -6:].astype(np.float64)
            sizes = np.sqrt(np.square(last).mean(axis=1)).tolist()
        grew = len(sizes) == 6 and all(later > earlier for earlier, later in pairwise(sizes))
        return grew and math.isfinite(sizes[-1]) and sizes[-1] > _GROWTH * max(sizes[0], 1.0)

    @property
    def is_counter(self) -> bool:
        """True if the value only counts iterations."""
        values = self.values
        if values is None or values.elements != 1 or not values.is_whole:
            return False
        numbers = values.numbers[0, :, 0]
        return len(numbers) > 1 and bool(
            np.isfinite(numbers).all() and (np.diff(numbers) > 0).all() and (numbers == np.round(numbers)).all()
        )


class HistoryView(Record, eq=False):
    """The operations of one run of a graph over its last iterations; of a value that grows what each one adds.

    `numbers[k, index]` is the statistic of operation `index` in iteration `first + k`, where `known[k, index]`;
    `shapes[k, index]` is equal where its shape is, -1 where that was not seen. `rows` are those of a loop. `values` are
    the operations that somebody looks at, by index.
    """

    statistic: str
    first: int
    numbers: Array
    known: Array
    shapes: Array
    rows: tuple[RowValues, ...]
    values: Mapping[int, ValueHistory]

    def has_other_shape(self, index: int, iteration: int) -> bool:
        """Return True if an operation gives another shape in an iteration than in the one before."""
        row = iteration - self.first
        if not 0 < row < len(self.shapes):
            return False
        now, before = int(self.shapes[row, index]), int(self.shapes[row - 1, index])
        return now >= 0 and before >= 0 and now != before

    def of(self, index: int, last: int, most: int) -> list[float | None]:
        """Return an operation over the iterations up to and with `last`, at most so many; None if it is not known."""
        begin = max(last - most + 1, 0)
        found: list[float | None] = []
        for iteration in range(begin, last + 1):
            row = iteration - self.first
            known = 0 <= row < len(self.known) and bool(self.known[row, index])
            found.append(float(self.numbers[row, index]) if known else None)
        return found


class _ActivationStatistics:
    """One activation of a program: a number for each operation and iteration, and the values of a loop's rows.

    `ended` is the first iteration that there is not (the loop is over, or fails), where that was found out.
    """

    def __init__(self, program: Program, rows: LoopRows) -> None:
        self.program = program
        self.rows = rows
        self.values = {slot: KnownValues() for slot in rows.slots}
        self.slots = [program.shown_slot(one.outputs[0]) if one.outputs else -1 for one in program.operations]
        self.cells = CellStore(len(self.slots))
        self.operations = ListedValues(self.slots)
        self.ended: int | None = None
        self.held: list[Value] = [None] * len(self.slots)
        self.row = Tile.empty(1, len(self.slots))
        self.shapes: dict[Shape, int] = {}

    def see(self, frame: Frame, statistic: str, reach: int) -> bool:
        """Take in what the frame holds, of operations so many before and behind the moment; True if any is new."""
        iteration = _iteration(frame)
        if iteration is None:
            return False
        self._see_rows(frame, iteration)
        self.see_operations(frame)
        if not (self.cells.lacks(iteration) or (iteration and self.cells.lacks(iteration - 1))):
            return False  # all else that it can tell is known
        if frame.phase is not Phase.RUNNING:
            self.see_closed(frame, iteration, statistic)
            return False
        begin, end = max(frame.pc - reach, 0), min(frame.pc + reach, len(self.slots))
        is_new = self._take(frame.values, iteration, begin, frame.pc, statistic)
        return (iteration > 0 and self._take(frame.values, iteration - 1, frame.pc, end, statistic)) or is_new

    def see_closed(self, frame: Frame, iteration: int, statistic: str) -> None:
        """All operations of the iteration have run, and their values are there."""
        self._take(frame.values, iteration, 0, len(self.slots), statistic)
        self.cells.close(iteration)
        self.operations.see(frame, iteration)
        self.operations.close(iteration)
        for slot, known in self.values.items():
            known.see(iteration, frame.values[slot])
        self._see_entered(frame, iteration)

    def lacks(self, iteration: int, *, with_values: bool) -> bool:
        """True if the iteration was not seen when it was closed."""
        return self.cells.lacks(iteration) or (with_values and self.operations.lacks(iteration))

    def see_operations(self, frame: Frame, most: int = LARGEST_AT_A_STOP, enough: Enough = never) -> bool:
        """Take what this iteration has made, and what the one before left, of values of at most so many elements."""
        iteration = _iteration(frame)
        return iteration is not None and self.operations.see(frame, iteration, most, enough)

    def _see_rows(self, frame: Frame, iteration: int) -> None:
        """Take what this iteration has made of the rows, and what the one before left in the slots."""
        for slot, known in self.values.items():
            if frame.is_current(slot):
                known.see(iteration, frame.values[slot])
            elif iteration and frame.values[slot] is not None:
                known.see(iteration - 1, frame.values[slot])
        self._see_entered(frame, iteration)
        for scan in () if frame.activation is None else frame.activation.scans:
            for made in range(max(scan.length - _PIECES, 0), scan.length):
                self.values[scan.result].see(made, scan.piece(made))

    def _see_entered(self, frame: Frame, iteration: int) -> None:
        """Take what back edges carried into this iteration: the one before has made it."""
        for parameter, result in frame.loop.carried if frame.loop else ():
            known = self.values.get(result)
            if known is not None and iteration:
                known.see(iteration - 1, frame.values[parameter])
            elif known is not None:
                known.enter(frame.values[parameter])

    def _take(self, values: list[Value], iteration: int, begin: int, end: int, statistic: str) -> bool:
        """Take the part not seen yet of an iteration's operations from `begin` up to but not `end`; True if any is."""
        missing = self.cells.missing(iteration, begin, end)
        if not missing.size:
            return False
        numbers, known, shapes = self.row.numbers[0], self.row.known[0], self.row.shapes[0]
        held = self.held
        with np.errstate(all="ignore"):  # once for all operations: it takes longer than many a number
            for index in missing.tolist():
                slot = self.slots[index]
                value = values[slot] if slot >= 0 else None
                if value is held[index]:
                    continue
                number = None if value is None else quiet_number_of(value, statistic)
                held[index] = value
                known[index] = number is not None
                numbers[index] = 0.0 if number is None else number
                shapes[index] = -1 if value is None else self._shape(np.shape(value))
        self.cells.put(iteration, missing, self.row)
        return bool((shapes[missing] >= 0).any())

    def _shape(self, shape: Shape) -> int:
        """Return a number for a shape; beyond so many, one for all others."""
        if shape not in self.shapes and len(self.shapes) >= MOST_SHAPES:
            return MOST_SHAPES
        return self.shapes.setdefault(shape, len(self.shapes))


class IterationStatistics:
    """The histories of a debugger's run; to be used where the run itself is used."""

    def __init__(self, timeline: Timeline, statistic: str = FITTING) -> None:
        self._timeline = timeline
        self._file = str(timeline.machine.compiled.model.path)
        self.statistic = statistic
        self._runs: OrderedDict[tuple[int, int], _ActivationStatistics] = OrderedDict()
        self._wanted: dict[str, tuple[Program | None, Indices]] = {}

    def choose(self, statistic: str) -> None:
        """Another number for each tensor; what was known is forgotten. UsageError for one that there is not."""
        if statistic not in OVER_ITERATIONS:
            raise UsageError(f"there is no statistic '{statistic}'; there are {', '.join(OVER_ITERATIONS)}")
        self.statistic = statistic
        self.forget()

    def forget(self) -> None:
        """The run takes another course."""
        self._runs.clear()

    def want(self, who: str, program: Program | None, operations: Sequence[int]) -> None:
        """Keep the values of these operations of a graph, in place of those that the same one wanted before."""
        self._wanted[who] = program, tuple(operations)
        for run in self._runs.values():
            run.operations.want(self._wanted_of(run.program))

    def _wanted_of(self, program: Program) -> Indices:
        wanted = (operations for where, operations in self._wanted.values() if where is program)
        return tuple(dict.fromkeys(chain.from_iterable(wanted)))

    def see(self) -> None:
        """Take in the present moment; of a graph of very many operations those near it."""
        for frame in self._timeline.machine.stack:
            self._run(frame).see(frame, self.statistic, _REACH)

    def see_far(self) -> bool:
        """Take in the operations far from the moment, for which nobody waits; True if any was not known."""
        stack = self._timeline.machine.stack
        return any(self._run(frame).see(frame, self.statistic, len(frame.program.operations)) for frame in stack)

    def view(self, depth: int) -> HistoryView:
        """Return what is known of the iterations around the present one of the run of the frame at this depth."""
        frame = self._timeline.machine.stack[depth]
        run, present = self._run(frame), _iteration(frame) or 0
        first, last = max(present - MOST_ITERATIONS + 1, 0), present + _AHEAD
        part = run.cells.window(first, last - first + 1)
        values = run.operations.view()
        return HistoryView(self.statistic, first, part.numbers, part.known, part.shapes, self._rows(run), values)

    def _rows(self, run: _ActivationStatistics) -> tuple[RowValues, ...]:
        slots = (None if place is None else run.rows.slots[place] for place in run.rows.taken)
        pairs = zip(run.rows.rows, slots, strict=True)
        return tuple(RowValues(row, None if slot is None else run.values[slot].view()) for row, slot in pairs)

    def fill(self, depth: int, back: int, enough: Enough) -> bool:
        """Fetch the last `back` iterations of the loop at this depth where they are not known; whether any was not.

        Of the operations that are looked at values are fetched for the last ones alone.
        """
        present = self._present(depth)
        if present is None:
            return False
        is_near = back <= _NEAR
        return self.fill_between(depth, present - back, present - 1, enough, with_values=is_near)

    def fill_values(self, depth: int, enough: Enough) -> bool:
        """Read the large values of the present, for which nobody waits; whether any was not known."""
        stack = self._timeline.machine.stack
        return depth < len(stack) and self._run(stack[depth]).see_operations(stack[depth], LARGEST, enough)

    def fill_between(self, depth: int, first: int, last: int, enough: Enough, *, with_values: bool = True) -> bool:
        """Fetch these iterations of the loop at this depth, where they are not known; whether any was not.

        One excursion, which ends early where `enough` says so, or a pause was asked for. Iterations that are still to
        come are computed. The present stays.
        """
        machine = self._timeline.machine
        if self._present(depth) is None or not machine.stack[depth].program.operations:
            return False
        run = self._run(machine.stack[depth])
        end = last + 1 if run.ended is None else min(last + 1, run.ended)
        wanted = [iteration for iteration in range(max(first, 0), end) if run.lacks(iteration, with_values=with_values)]
        if wanted:
            self._fetch(run, machine.stack[: depth + 1], wanted[0], wanted[-1], enough)
        return bool(wanted)

    def _fetch(self, run: _ActivationStatistics, stack: Frames, first: int, last: int, enough: Enough) -> None:
        """Read these iterations of the run of the last frame of a stack."""

        def visit(frame: Frame) -> bool:
            run.see_closed(frame, _iteration(frame) or 0, self.statistic)
            return enough()

        reader = IterationReader(run.program, outer_now(stack), begin=first, end=last + 1)
        reader.visit(self._timeline, visit)
        run.ended = run.ended if reader.ended is None else reader.ended

    def _present(self, depth: int) -> int | None:
        """Return the iteration of the loop at this depth; None where there is none."""
        stack = self._timeline.machine.stack
        return iteration_of(stack[depth]) if depth < len(stack) else None

    def _run(self, frame: Frame) -> _ActivationStatistics:
        key = _key(frame)
        run = self._runs.get(key)
        if run is None:
            rows = loop_rows(frame.active.operation.layer, frame.loop, self._file) if frame.loop else LoopRows()
            run = self._runs[key] = _ActivationStatistics(frame.program, rows)
            run.operations.want(self._wanted_of(frame.program))
        self._runs.move_to_end(key)
        while len(self._runs) > MOST_RUNS or (len(self._runs) > 1 and self._size() > MOST_CELLS):
            self._runs.popitem(last=False)
        return run

    def _size(self) -> int:
        return sum(run.cells.cells for run in self._runs.values())


def _key(frame: Frame) -> tuple[int, int]:
    return id(frame.program), frame.entered


def _iteration(frame: Frame) -> int | None:
    """Return the iteration of a loop's frame (None before the first); 0 for a graph that runs once."""
    return iteration_of(frame) if frame.loop else 0


_Pair = tuple[ValueHistory | None, ValueHistory]


class WholeRuns:
    """Fills up histories around moments from the facts of the whole run; what was joined is kept."""

    def __init__(self) -> None:
        self._joined: dict[int, tuple[_Pair, ValueHistory]] = {}

    def filled_up(self, view: HistoryView, frame: Frame, known: Overview | None) -> HistoryView:
        """Return the histories of a loop's frame with all iterations of its run, as far as they are known."""
        found = None if known is None or not view.rows else _run_of(frame, known)
        if found is None:
            return view
        loop, run = found
        rows = []
        for index, (one, row, whole) in enumerate(zip(view.rows, loop.rows, run.values, strict=False)):
            is_same = (one.row.kind, one.row.inner, one.row.port) == (row.kind, row.inner, row.port)
            values = self._join(index, one.values, whole) if is_same and whole is not None else one.values
            rows.append(RowValues(one.row, values))
        return replace(view, rows=(*rows, *view.rows[len(rows) :]))

    def _join(self, index: int, near: ValueHistory | None, whole: ValueHistory) -> ValueHistory:
        kept = self._joined.get(index)
        if kept is None or kept[0][0] is not near or kept[0][1] is not whole:
            is_alike = near is not None and near.numbers.shape[::2] == whole.numbers.shape[::2]
            joined = near.filled_up(whole) if near is not None and is_alike else whole
            kept = self._joined[index] = (near, whole), joined
        return kept[1]


def _run_of(frame: Frame, known: Overview) -> tuple[LoopFacts, ActivationFacts] | None:
    """Return what is known of the run of a loop that a frame is in; None where it is in none that is kept."""
    activation = frame.activation
    if activation is None:
        return None
    layer = activation.operation.layer
    for loop in known.loops:
        if loop.layer.id == layer.id and loop.depth == len(frame.program.path) - 1:
            run = next((one for one in loop.activations if one.tick == activation.entered), None)
            if run is not None:
                return loop, run
    return None
