"""A loop from its first iteration to the furthest that the run has reached, however many: in bins, so it is bounded.

A sweep walks through a stretch of iterations once, a little at a time, and keeps of each carried value, of each output,
of the condition and of each watch the numbers of a history in bins. When the bins are full, two become one.
"""

from __future__ import annotations

import math
from collections import OrderedDict
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any, ClassVar, Final

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from stepper import element_types
from stepper.debug.debugger import Debugger
from stepper.debug.iterations.loop_runs import loop_around
from stepper.debug.overview.facts import Row, RowKind
from stepper.debug.overview.rows import loop_rows
from stepper.debug.scopes import Names
from stepper.debug.stop import iteration_of
from stepper.debug.stop_scope import StopScope
from stepper.debug.visits import PAUSED, Spot, before_iteration, excursion, walk
from stepper.element_types import Array
from stepper.engine.frames import Frame, Snapshot
from stepper.engine.program import LoopPlan, Program
from stepper.errors import StepperError, UsageError
from stepper.query.address_syntax import Address
from stepper.query.expressions import Expression
from stepper.records import Brief
from stepper.tensors.histories import ValueHistory, numbers_of, numbers_of_all, summary

MOST_BINS: Final = 2**15
"""Iterations of a stretch that is looked at closely."""
MOST_NUMBERS: Final = 2**16
"""Numbers of one track that are kept; however many elements a value has, there are so many bins:"""
_LEAST_BINS: Final = 2**10
MOST_SWEEPS: Final = 8
_CELLS: Final = 512
"""More columns than a screen has."""
_SLICE: Final = 4096
"""Iterations after which numbers are put into bins."""
_ELEMENTS: Final = 2**20
"""Elements of values that wait for that."""
_KINDS: Final = {RowKind.BACK_EDGE: "carried", RowKind.SLICE: "slice"}


class Bins:
    """The numbers of consecutive iterations, of which every bin but the last stands for `step`.

    `numbers[statistic, bin, element]` hold where `counts`, of how many iterations a bin knows something, is not 0.
    """

    def __init__(self, most: int = MOST_NUMBERS) -> None:
        self.step, self.reached = 1, 0
        self.numbers: Array = np.zeros((1, 0, 1))
        self.counts: Array = np.zeros(0, np.int64)
        self._most_numbers = most
        self._has_form = False

    @property
    def most(self) -> int:
        """Return how many bins there may be."""
        each = self.numbers.shape[0] * self.numbers.shape[2]
        return max(self._most_numbers // int(each), min(self._most_numbers, _LEAST_BINS))

    def extend(self, values: Sequence[Any]) -> None:
        """Take the values of the next iterations, in order; None where one has none."""
        together = numbers_of_all(values)
        if together is not None:
            self._add(together, np.ones(len(values), np.int64))
            return
        for value in values:
            numbers = None if value is None else numbers_of(value)
            if numbers is None:
                self._add(np.zeros((len(self.numbers), 1, self.numbers.shape[2])), np.zeros(1, np.int64))
            else:
                self._add(numbers[:, None], np.ones(1, np.int64))

    def _add(self, fresh: Array, given: Array) -> None:
        if given.any() and not self._has_form:
            self._has_form = True
            self.numbers = np.zeros((len(fresh), len(self.counts), fresh.shape[2]), fresh.dtype)
        elif fresh.shape[::2] != self.numbers.shape[::2]:  # from now on the three numbers of all elements
            fresh = summary(fresh)
            self.numbers = self.numbers if self.numbers.shape[::2] == (3, 1) else summary(self.numbers)
        begin, self.reached = self.reached, self.reached + len(given)
        while -(-self.reached // self.step) > self.most:
            self.numbers, self.counts = _merged(self.numbers, self.counts, np.arange(len(self.counts)) // 2)
            self.step *= 2
        places = np.concatenate((np.arange(len(self.counts)), np.arange(begin, self.reached) // self.step))
        self.numbers, self.counts = _merged(
            np.concatenate((self.numbers, fresh), axis=1), np.concatenate((self.counts, given)), places
        )

    def history(self, first: int, value: Any, entered: Any) -> ValueHistory | None:
        """Return what is known as a history, the first bin at iteration `first`; None where nothing is.

        `value` is the last one, `entered` what came in.
        """
        known = self.counts > 0
        if value is None or not known.any():
            return None
        begins = first + np.flatnonzero(known).astype(np.int64) * self.step
        ends = np.minimum(begins + self.step, first + self.reached)
        came = None if entered is None else numbers_of(entered)
        form = self.numbers.shape[::2]
        if came is not None and came.shape != form:
            came = summary(came[:, None])[:, 0] if form == (3, 1) else None
        array = np.asarray(value)
        return ValueHistory(
            type=element_types.name_of(array.dtype),
            shape=array.shape,
            count=int(ends[-1]),
            is_whole=len(self.numbers) == 1,
            spans=np.stack([begins, ends], axis=1),
            numbers=self.numbers[:, known],
            entered=came,
        )


def _merged(numbers: Array, counts: Array, places: Array) -> tuple[Array, Array]:
    """Return for each of the ascending places NaN before Inf before the largest magnitude, and its count."""
    if not len(counts):
        return numbers, counts
    begins = np.flatnonzero(np.diff(places, prepend=-1))
    total = np.add.reduceat(counts, begins)
    if len(begins) == len(counts):
        return numbers, counts
    absent = (counts == 0)[None, :, None]
    high = np.maximum.reduceat(np.where(absent, np.array(0, numbers.dtype), numbers), begins, axis=1)
    low = np.minimum.reduceat(np.where(absent, np.array(0, numbers.dtype), numbers), begins, axis=1)
    return np.where(high >= -low, high, low), total  # a NaN is both


class TrackView(Brief, Struct, frozen=True, eq=False):
    """Values of one track over the iterations from `first` on. `kind`: carried, output, slice, condition, watch.

    A carried value is what each iteration handed on, an output its piece, a slice what it was given; a condition is 1
    where it ended the loop.
    `row` says what is carried or put out. `values` are in columns of `step` iterations, None where nothing is known.
    """

    unshown: ClassVar = ("row",)

    kind: str
    name: str
    row: Row | None
    first: int
    step: int
    values: ValueHistory | None

    @property
    def first_odd(self) -> int | None:
        """Return the first iteration with NaN or Inf."""
        values = self.values
        known = [] if values is None else [values.first_nan, values.first_infinite]
        return min((one for one in known if one is not None), default=None)

    def at(self, iteration: int) -> Array | None:
        """Return the numbers [statistic, element] of one iteration; None where they are not known by themselves."""
        if self.step > 1 or self.values is None:
            return None
        spans = self.values.spans
        place = int(np.searchsorted(spans[:, 0], iteration))
        if place >= len(spans) or spans[place, 0] != iteration:
            return None
        found: Array = self.values.numbers[:, place]
        return found


class SweepView(Struct, frozen=True, eq=False):
    """The tracks of all iterations from 0, and of a stretch closely where the bins of all are coarse.

    `reached`: how many iterations are known, from the first on. `complete`: that is as far as the run has come.
    """

    tracks: tuple[TrackView, ...]
    close: tuple[TrackView, ...]
    reached: int
    complete: bool


class WatchedRun(Struct, frozen=True, eq=False):
    """A watch over the iterations of one run of its loop; `is_whole`: as far as that has come."""

    values: ValueHistory | None
    is_whole: bool


# --- the walk -------------------------------------------------------------------------------------------------------


class _Track(Struct, frozen=True, eq=False):
    kind: str
    name: str
    row: Row | None
    read: Callable[[Frame], Any]
    enter: Callable[[Frame], Any] | None = None


class _TrackRecord:
    """One track of a sweep: its bins, and what is noted of the values on the way."""

    def __init__(self, track: _Track) -> None:
        self.track = track
        self.bins = Bins()
        self.nan: int | None = None
        self.infinite: int | None = None
        self.changes = 0
        self.value: Any = None
        self.entered: Any = None
        self.fresh: list[Any] = []

    def settle(self, begin: int) -> None:
        """Put into bins what was read; `begin` is the first iteration of the sweep."""
        fresh, self.fresh = self.fresh, []
        if not fresh:
            return
        at = begin + self.bins.reached
        if self.nan is None or self.infinite is None:
            self._note_odd(fresh, at)
        self.bins.extend(fresh)
        shapes = [np.shape(one) for one in (self.value, *fresh) if one is not None]
        self.changes += sum(before != after for before, after in pairwise(shapes))
        self.value = next((one for one in reversed(fresh) if one is not None), self.value)

    def _note_odd(self, fresh: Sequence[Any], at: int) -> None:
        together = numbers_of_all(fresh)
        if together is not None and bool(np.isfinite(together).all()):
            return
        for iteration, value in enumerate(fresh, at):
            numbers = None if value is None else numbers_of(value)
            if numbers is not None and self.nan is None and bool(np.isnan(numbers[0]).any()):
                self.nan = iteration
            if numbers is not None and self.infinite is None and bool(np.isinf(numbers[0]).any()):
                self.infinite = iteration

    def view(self, begin: int) -> TrackView:
        """As it stands."""
        track, bins = self.track, self.bins
        values = bins.history(begin, self.value, self.entered)
        if values is not None:
            noted = (self.nan, self.infinite, self.changes)
            values = replace(values, first_nan=noted[0], first_infinite=noted[1], shape_changes=noted[2])
        return TrackView(track.kind, track.name, track.row, begin, bins.step, values)


class _Sweep:
    """One way through the iterations [begin, end) of a run of a loop; `stand` is where it stands, to go on from."""

    def __init__(self, tracks: Sequence[_Track], begin: int, end: float) -> None:
        self.courses = [_TrackRecord(track) for track in tracks]
        self.begin, self.end = begin, end
        self.complete = False
        self.furthest = -1
        self.stand: Snapshot | None = None

    @property
    def next(self) -> int:
        """Return the iteration with which it goes on."""
        return self.begin + (self.courses[0].bins.reached if self.courses else 0)

    @property
    def waiting(self) -> int:
        """Iterations read that are in no bin yet."""
        return len(self.courses[0].fresh)

    def read(self, frame: Frame) -> None:
        """Take in an iteration that has just been closed; they come in order."""
        is_first = not self.begin and not self.next and not self.waiting
        size = 0
        for course in self.courses:
            if is_first and course.track.enter is not None:
                course.entered = course.track.enter(frame)
            value = course.track.read(frame)
            course.fresh.append(value)
            size += 0 if value is None else np.size(value)
        if self.waiting >= _SLICE or size * self.waiting >= _ELEMENTS:
            self.settle()

    def settle(self) -> None:
        """Put into bins what was read."""
        for course in self.courses:
            course.settle(self.begin)

    def views(self) -> tuple[TrackView, ...]:
        """As it stands."""
        return tuple(course.view(self.begin) for course in self.courses)


class Sweeps:
    """The sweeps of a debugger's run; to be used where the run itself is used."""

    def __init__(self, debugger: Debugger) -> None:
        self._debugger = debugger
        self._names = Names(debugger.machine.compiled)
        self._sweeps: OrderedDict[tuple[object, ...], _Sweep] = OrderedDict()

    def forget(self) -> None:
        """The run takes another course."""
        self._sweeps.clear()

    def view(self, depth: int, span: tuple[int, int]) -> SweepView:
        """Return what is known of the loop at this depth, and closely of the iterations of the span, its end not
        included.
        """
        parts = [self._sweep(depth, part, 0, math.inf) for part in self._parts(depth)]
        close = [self._sweep(depth, part, *span) for part in self._close_parts(depth, span)]
        return SweepView(
            tuple(view for sweep in parts for view in sweep.views()),
            tuple(view for sweep in close for view in sweep.views()),
            min((sweep.next for sweep in parts), default=0),
            all(self._is_done(sweep) for sweep in [*parts, *close]),
        )

    def fill(self, depth: int, span: tuple[int, int], enough: Callable[[], bool]) -> bool:
        """Walk on a little; whether there was anything to walk."""
        sweep = self._unfinished(depth, span)
        if sweep is None:
            return False
        with excursion(self._debugger.timeline):
            self._walk(sweep, depth, enough)
        return True

    def watched(self, depth: int, number: int) -> WatchedRun:
        """Return what is known of one watch over the iterations of the loop at this depth."""
        sweep = self._sweep(depth, number, 0, math.inf)
        (track,) = sweep.views()
        return WatchedRun(track.values, self._is_done(sweep) or not self._has_iterations(depth))

    def fill_watched(self, depth: int, number: int, enough: Callable[[], bool]) -> None:
        """Walk on a little, for this watch alone."""
        if self._has_iterations(depth):
            with excursion(self._debugger.timeline):
                self._walk(self._sweep(depth, number, 0, math.inf), depth, enough)

    def is_complete(self, depth: int, span: tuple[int, int]) -> bool:
        """True if there is nothing to walk."""
        return self._unfinished(depth, span) is None

    def _unfinished(self, depth: int, span: tuple[int, int]) -> _Sweep | None:
        if not self._has_iterations(depth):
            return None
        sweeps = [self._sweep(depth, part, *span) for part in self._close_parts(depth, span)]
        sweeps += [self._sweep(depth, part, 0, math.inf) for part in self._parts(depth)]
        return next((one for one in sweeps if not self._is_done(one)), None)

    def _has_iterations(self, depth: int) -> bool:
        stack = self._debugger.machine.stack
        return depth < len(stack) and iteration_of(stack[depth]) is not None and bool(stack[depth].program.operations)

    def _is_done(self, sweep: _Sweep) -> bool:
        return sweep.complete or not sweep.courses or sweep.furthest >= self._debugger.timeline.furthest

    def _walk(self, sweep: _Sweep, depth: int, enough: Callable[[], bool]) -> None:
        timeline = self._debugger.timeline
        frame = timeline.machine.stack[depth]
        until, is_left = timeline.furthest, False

        def visit(now: Frame, _tick: int) -> bool:
            nonlocal is_left
            reached = iteration_of(now)
            if reached is not None and reached >= sweep.next + sweep.waiting:
                sweep.read(now)
            is_left = enough()
            sweep.complete = reached is not None and reached + 1 >= sweep.end
            return is_left or sweep.complete

        stopped = ""
        if sweep.stand is None:
            stopped = before_iteration(timeline, depth, sweep.next)
        else:
            timeline.machine.restore(sweep.stand)
        spot = Spot(frame.program, len(frame.program.operations) - 1)
        if not stopped and timeline.machine.tick < until:
            stopped = walk(timeline, spot, visit, least_depth=depth + 1, until=until)
        sweep.settle()
        sweep.stand = timeline.machine.snapshot() if sweep.next > sweep.begin else None
        if not is_left and stopped != PAUSED:
            sweep.furthest = until
            sweep.complete = sweep.complete or len(timeline.machine.stack) <= depth or bool(stopped)

    # --- what is read --------------------------------------------------------------------------------------------

    def _parts(self, depth: int) -> list[int]:
        """0 for what the loop carries, and the numbers of the watches; each is swept by itself."""
        return [0, *(watch.number for watch in self._debugger.watches)]

    def _close_parts(self, depth: int, span: tuple[int, int]) -> list[int]:
        """Return those of which the bins are too coarse for the span."""
        if span[1] - span[0] > MOST_BINS:
            return []
        return [part for part in self._parts(depth) if self._is_coarse(depth, part, span)]

    def _is_coarse(self, depth: int, part: int, span: tuple[int, int]) -> bool:
        """True if a bin of any track is more of the span than a cell of a screen."""
        courses = self._sweep(depth, part, 0, math.inf).courses
        return any(one.bins.step > max((span[1] - span[0]) // _CELLS, 1) for one in courses)

    def _sweep(self, depth: int, part: int, begin: int, end: float) -> _Sweep:
        frame = self._debugger.machine.stack[depth]
        entered = 0 if frame.activation is None else frame.activation.entered
        key = id(frame.program), entered, part, begin, end
        sweep = self._sweeps.get(key)
        if sweep is None:
            tracks = self._carried(frame) if not part else self._watch(part, frame.program)
            sweep = self._sweeps[key] = _Sweep(tracks, begin, end)
            while len(self._sweeps) > MOST_SWEEPS + 3 * len(self._debugger.watches):
                self._sweeps.popitem(last=False)
        self._sweeps.move_to_end(key)
        return sweep

    def _carried(self, frame: Frame) -> list[_Track]:
        activation = frame.activation
        plan = None if activation is None else activation.plan
        if activation is None or not isinstance(plan, LoopPlan):
            return []
        known = loop_rows(activation.operation.layer, plan, str(self._debugger.machine.compiled.model.path))
        tracks, seen = [], set[int]()
        taken = [
            (row, known.slots[place]) for row, place in zip(known.rows, known.taken, strict=True) if place is not None
        ]
        for row, slot in sorted(taken, key=lambda one: one[0].appends):  # what only collects pieces is shown by these
            if slot in seen:
                continue
            seen.add(slot)
            parameter = next((one for one, result in plan.carried if result == slot), None)
            kind = "output" if row.appends else _KINDS.get(row.kind, "output")
            tracks.append(
                _Track(kind, row.inner.name, row, _reader(slot), None if parameter is None else _reader(parameter))
            )
        if plan.condition_result is not None:
            tracks.append(_Track("condition", "go on", None, _ending(plan.condition_result)))
        return tracks

    def _watch(self, number: int, program: Program) -> list[_Track]:
        watch = next(one for one in self._debugger.watches if one.number == number)
        scope = _HereScope(self._debugger.timeline, self._names)
        grown = self._debugger.watches.piece(watch, program)
        if grown is not None and grown.program is program:
            return [_Track("watch", watch.text, None, _reader(program.shown_slot(grown.slot)))]
        return [_Track("watch", watch.text, None, lambda _frame: _watched(scope, watch.expression))]


def _reader(slot: int) -> Callable[[Frame], Any]:
    return lambda frame: frame.values[slot]


def _ending(slot: int) -> Callable[[Frame], Any]:
    """True where the body's condition is false; read where it is computed, for the iteration may not be closed yet."""

    def read(frame: Frame) -> Any:
        value = frame.values[slot]
        return None if value is None else np.bool_(not np.asarray(value).all())

    return read


def _watched(scope: StopScope, expression: Expression) -> Any:
    """Return the value of a watch; None where it has none."""
    try:
        value = np.asarray(expression.evaluate(scope))
    except (StepperError, TypeError, ValueError):
        return None
    return value if value.dtype.names is None and value.dtype.kind in "biuf" else None


class _HereScope(StopScope):
    """Names as they are in an iteration that a sweep comes by: nothing is fetched from elsewhere."""

    def value(self, address: Address, /) -> object:
        """Return the value now."""
        target = self._target(address)
        if any(one is not None for one in target.iterations) and target.iterations[loop_around(target) - 1] is not None:
            raise UsageError(f"'{address}' is in another iteration")
        return super().value(address)

    def previous(self, address: Address, /) -> object:
        """Not on the way."""
        raise UsageError(f"'{address}': the iteration before is not kept")
