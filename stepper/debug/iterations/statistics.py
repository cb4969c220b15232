"""Statistics of a body's operations over the last iterations, one number each: kept as the run goes by, and bounded.

At each stop the frames are looked at: an operation's slot holds what it gave now or one iteration before, so moving on
by iterations costs no replay. What was jumped over is filled in by an excursion, when whoever asks has time for it.
"""

from __future__ import annotations

import math
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from itertools import chain, pairwise
from typing import Final

import numpy as np
from msgspec import Struct

from stepper.debug.iterations.listed_values import LARGEST, LARGEST_AT_A_STOP, ListedValues
from stepper.debug.iterations.tiles import MOST_CELLS, CellsView, Tile, TileStore
from stepper.debug.overview.facts import Row
from stepper.debug.overview.rows import LoopRows, loop_rows
from stepper.debug.stop import iteration_of
from stepper.debug.timeline import Timeline
from stepper.debug.visits import PAUSED, Spot, before_iteration, excursion, walk
from stepper.element_types import Array
from stepper.engine.frames import Frame, Phase
from stepper.engine.program import LoopPlan, Program, Value
from stepper.errors import UsageError
from stepper.tensors.histories import KeptStatistic, ValueHistory
from stepper.tensors.known_values import KnownValues
from stepper.tensors.statistics import FITTING, OVER_ITERATIONS, quiet_number_of

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


class RowValues(Struct, frozen=True, eq=False):
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


class HistoryView(Struct, frozen=True, eq=False):
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
        self.tiles = TileStore(len(self.slots))
        self.operations = ListedValues(self.slots)
        self.ended: int | None = None
        self.held: list[Value] = [None] * len(self.slots)
        self.row = Tile.empty(1, len(self.slots))
        self.shapes: dict[tuple[int, ...], int] = {}

    def see(self, frame: Frame, statistic: str, reach: int) -> bool:
        """Take in what the frame holds, of operations so many before and behind the moment; True if any is new."""
        iteration = _iteration(frame)
        if iteration is None:
            return False
        self._see_rows(frame, iteration)
        self.see_operations(frame)
        if not (self.tiles.lacks(iteration) or (iteration and self.tiles.lacks(iteration - 1))):
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
        self.tiles.close(iteration)
        self.operations.take(frame.values, iteration, 0, len(self.slots))
        self.operations.close(iteration)
        for slot, known in self.values.items():
            known.see(iteration, frame.values[slot])
        self._see_entered(frame, iteration)

    def lacks(self, iteration: int, *, with_values: bool) -> bool:
        """True if the iteration was not seen when it was closed."""
        return self.tiles.lacks(iteration) or (with_values and self.operations.lacks(iteration))

    def see_operations(
        self, frame: Frame, most: int = LARGEST_AT_A_STOP, enough: Callable[[], bool] = lambda: False
    ) -> bool:
        """Take what this iteration has made, and what the one before left, of values of at most so many elements."""
        iteration = _iteration(frame)
        if iteration is None:
            return False
        count, values = len(self.slots), frame.values
        done = frame.pc if frame.phase is Phase.RUNNING else count
        is_new = self.operations.take(values, iteration, 0, done, most, enough)
        return (bool(iteration) and self.operations.take(values, iteration - 1, done, count, most, enough)) or is_new

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
        plan = None if frame.activation is None else frame.activation.plan
        for parameter, result in plan.carried if isinstance(plan, LoopPlan) else ():
            known = self.values.get(result)
            if known is not None and iteration:
                known.see(iteration - 1, frame.values[parameter])
            elif known is not None:
                known.enter(frame.values[parameter])

    def _take(self, values: list[Value], iteration: int, begin: int, end: int, statistic: str) -> bool:
        """Take the part not seen yet of an iteration's operations from `begin` up to but not `end`; True if any is."""
        missing = self.tiles.missing(iteration, begin, end)
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
        self.tiles.put(iteration, missing, self.row)
        return bool((shapes[missing] >= 0).any())

    def _shape(self, shape: tuple[int, ...]) -> int:
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
        self._wanted: dict[str, tuple[Program | None, tuple[int, ...]]] = {}

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

    def _wanted_of(self, program: Program) -> tuple[int, ...]:
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
        part = self._cells(run, first, last).window(first, last - first + 1)
        values = run.operations.view()
        return HistoryView(self.statistic, first, part.numbers, part.known, part.shapes, self._rows(run), values)

    def _rows(self, run: _ActivationStatistics) -> tuple[RowValues, ...]:
        slots = (None if place is None else run.rows.slots[place] for place in run.rows.taken)
        pairs = zip(run.rows.rows, slots, strict=True)
        return tuple(RowValues(row, None if slot is None else run.values[slot].view()) for row, slot in pairs)

    def cells(self, depth: int, first: int, last: int) -> CellsView:
        """Return what is known of these iterations of the run of the frame at this depth."""
        return self._cells(self._run(self._timeline.machine.stack[depth]), first, last)

    def _cells(self, run: _ActivationStatistics, first: int, last: int) -> CellsView:
        tiles, firsts = run.tiles.view(first, last), dict(run.tiles.firsts)
        return CellsView(run.program, self.statistic, tiles, firsts, run.ended, run.operations.view())

    def fill(self, depth: int, back: int, enough: Callable[[], bool]) -> bool:
        """Fetch the last `back` iterations of the loop at this depth where they are not known; whether any was not.

        Of the operations that are looked at values are fetched for the last ones alone.
        """
        present = self._present(depth)
        if present is None:
            return False
        is_near = back <= _NEAR
        return self.fill_between(depth, present - back, present - 1, enough, with_values=is_near)

    def fill_values(self, depth: int, enough: Callable[[], bool]) -> bool:
        """Read the large values of the present, for which nobody waits; whether any was not known."""
        stack = self._timeline.machine.stack
        return depth < len(stack) and self._run(stack[depth]).see_operations(stack[depth], LARGEST, enough)

    def fill_between(
        self, depth: int, first: int, last: int, enough: Callable[[], bool], *, with_values: bool = True
    ) -> bool:
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
            with excursion(self._timeline):
                self._fetch(run, depth, wanted[0], wanted[-1], enough)
        return bool(wanted)

    def _fetch(self, run: _ActivationStatistics, depth: int, first: int, last: int, enough: Callable[[], bool]) -> None:
        """Walk through these iterations; the run stays where the walk ended."""
        frame = self._timeline.machine.stack[depth]
        key, seen, is_left = _key(frame), first - 1, False

        def visit(now: Frame, _tick: int) -> bool:
            nonlocal seen, is_left
            reached = iteration_of(now)
            if reached is not None and _key(now) == key:
                run.see_closed(now, reached, self.statistic)
                seen = max(seen, reached)
                is_left = reached >= last or enough()
            return is_left or reached is None

        stopped = before_iteration(self._timeline, depth, first)
        spot = Spot(frame.program, len(frame.program.operations) - 1)
        stopped = stopped or walk(self._timeline, spot, visit, least_depth=depth + 1)
        if not is_left and stopped != PAUSED:
            run.ended = seen + 1

    def _present(self, depth: int) -> int | None:
        """Return the iteration of the loop at this depth; None where there is none."""
        stack = self._timeline.machine.stack
        return iteration_of(stack[depth]) if depth < len(stack) else None

    def _run(self, frame: Frame) -> _ActivationStatistics:
        key = _key(frame)
        run = self._runs.get(key)
        if run is None:
            plan = None if frame.activation is None else frame.activation.plan
            rows = LoopRows()
            if frame.activation is not None and isinstance(plan, LoopPlan):
                rows = loop_rows(frame.activation.operation.layer, plan, self._file)
            run = self._runs[key] = _ActivationStatistics(frame.program, rows)
            run.operations.want(self._wanted_of(frame.program))
        self._runs.move_to_end(key)
        while len(self._runs) > MOST_RUNS or (len(self._runs) > 1 and self._size() > MOST_CELLS):
            self._runs.popitem(last=False)
        return run

    def _size(self) -> int:
        return sum(run.tiles.cells for run in self._runs.values())


def _key(frame: Frame) -> tuple[int, int]:
    return id(frame.program), 0 if frame.activation is None else frame.activation.entered


def _iteration(frame: Frame) -> int | None:
    """Return the iteration of a loop's frame (None before the first); 0 for a graph that runs once."""
    if frame.activation is None or not isinstance(frame.activation.plan, LoopPlan):
        return 0
    return iteration_of(frame)
