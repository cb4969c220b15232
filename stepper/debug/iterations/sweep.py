"""A loop from its first iteration to the furthest that the run has reached, however many: in bins, so it is bounded.

A sweep reads a stretch of iterations once, a little at a time, and keeps of each carried value, of each output, of the
condition and of each watch a history in bins. When the bins are full, two become one.
"""

from __future__ import annotations

import math
from collections import OrderedDict
from collections.abc import Callable, Sequence
from itertools import groupby
from typing import Any, ClassVar, Final

import numpy as np
from msgspec.structs import replace

from stepper.debug.debugger import Debugger
from stepper.debug.iterations.loop_runs import loop_around, outer_now
from stepper.debug.iterations.reader import Batch, IterationReader
from stepper.debug.overview.facts import Row, RowKind
from stepper.debug.overview.rows import loop_rows
from stepper.debug.scopes import Names
from stepper.debug.stop import iteration_of
from stepper.debug.stop_scope import StopScope
from stepper.debug.timeline import Timeline
from stepper.debug.visits import Enough
from stepper.engine.frames import Frame
from stepper.engine.program import Program
from stepper.errors import StepperError, UsageError
from stepper.query.address_syntax import Address
from stepper.query.expressions import Expression
from stepper.records import Brief, Record
from stepper.tensors.histories import MOST_ELEMENTS, Capacity, HistoryRecorder, KeptStatistic, ValueHistory

MOST_BINS: Final = 2**15
"""Iterations of a stretch that is looked at closely."""
MOST_NUMBERS: Final = 2**16
"""Numbers of one track that are kept; however many elements a value has, there are so many bins:"""
_LEAST_BINS: Final = 2**10
MOST_SWEEPS: Final = 8
_CELLS: Final = 512
"""More columns than a screen has."""
_TOGETHER: Final = 2**10
"""Iterations, and values of 64 elements, after which a watch is put into bins."""
_KINDS: Final = {RowKind.BACK_EDGE: "carried", RowKind.SLICE: "slice"}


class TrackView(Brief):
    """Values of one track over iterations. `kind`: carried, output, slice, condition, watch.

    A carried value is what each iteration handed on, an output its piece, a slice what it was given; a condition is 1
    where it ended the loop.
    `row` says what is carried or put out. `values` are in columns of `step` iterations, None where nothing is known.
    """

    unshown: ClassVar = ("row",)

    kind: str
    name: str
    row: Row | None
    step: int
    values: ValueHistory | None


class SweepView(Record, eq=False):
    """The tracks of all iterations from 0, and of a stretch closely where the bins of all are coarse.

    `reached`: how many iterations are known, from the first on. `complete`: that is as far as the run has come.
    """

    tracks: tuple[TrackView, ...]
    close: tuple[TrackView, ...]
    reached: int
    complete: bool


class WatchedRun(Record, eq=False):
    """A watch over the iterations of one run of its loop; `is_whole`: as far as that has come."""

    values: ValueHistory | None
    is_whole: bool


# --- the walk -------------------------------------------------------------------------------------------------------


class _Track:
    """One track of a sweep: the values of a `slot`, or those of a watch, and what is known of them.

    `parameter` is the slot with what came in.
    """

    def __init__(self, kind: str, name: str, row: Row | None, slot: int | None, parameter: int | None = None) -> None:
        self.kind, self.name, self.row, self.slot, self.parameter = kind, name, row, slot, parameter
        self._entered: Any = None
        self._skipped = 0
        self._recorder: HistoryRecorder | None = None

    @property
    def step(self) -> int:
        """Return how many iterations are in a bin."""
        return 1 if self._recorder is None else self._recorder.step

    def enter(self, value: Any) -> None:
        """Take what came in, before any value."""
        self._entered = value

    def extend(self, values: Sequence[Any]) -> None:
        """Take the values of the next iterations, None where one has none."""
        for is_there, group in groupby(values, lambda value: value is not None):
            part = list(group)
            if self._recorder is None and is_there:
                size = max(np.size(part[0]), 1)
                each = size if size <= MOST_ELEMENTS else len(KeptStatistic) * MOST_ELEMENTS
                capacity = Capacity(0, max(MOST_NUMBERS // each, _LEAST_BINS))
                self._recorder = HistoryRecorder(capacity, self._entered)
                self._recorder.checksum = None
                if self._skipped:
                    self._recorder.skip(self._skipped)
            if self._recorder is None:
                self._skipped += len(part)
            elif is_there:
                for value in part:
                    self._recorder.append(np.bool_(not np.all(value)) if self.kind == "condition" else value)
                self._recorder.settle()
            else:
                self._recorder.skip(len(part))

    def view(self, first: int) -> TrackView:
        """Return it as it stands, of iterations from `first` on."""
        found = None if self._recorder is None else self._recorder.view()
        if found is not None and not len(found.spans):
            found = None
        if found is not None:
            shapes = tuple(replace(one, iteration=one.iteration + first) for one in found.shapes)
            found = replace(
                found,
                spans=found.spans + first,
                count=int(found.spans[-1, 1]) + first,
                shapes=shapes,
                first_nan=None if found.first_nan is None else found.first_nan + first,
                first_infinite=None if found.first_infinite is None else found.first_infinite + first,
                unchanged_since=None,
                counter=None,
                changes=None,
                growth=None,
            )
        return TrackView(self.kind, self.name, self.row, self.step, found)


class _Sweep:
    """Reads iterations of a run of a loop into tracks: slots, or what `watched` gives after each iteration."""

    def __init__(
        self, tracks: Sequence[_Track], reader: IterationReader, watched: Callable[[], Any] | None = None
    ) -> None:
        self.tracks, self.begin = tracks, reader.next
        self._reader, self._watched = reader, watched

    @property
    def next(self) -> int:
        """Return the iteration with which it goes on."""
        return self._reader.next

    def is_done(self, furthest: int) -> bool:
        """True if there is nothing to read up to a tick."""
        return self._reader.is_done or not self.tracks or self._reader.tick >= furthest

    def go(self, timeline: Timeline, enough: Enough) -> None:
        """Read on a little."""
        fresh: list[Any] = []

        def take(begin: int, batch: Batch) -> bool:
            entered = {slot: values[0] for slot, values in zip(self._reader.slots, batch, strict=True)}
            for track, values in zip(self.tracks, batch, strict=False):
                if not begin and track.parameter is not None:
                    track.enter(entered[track.parameter])
                track.extend(values)
            return enough()

        def visit(_frame: Frame) -> bool:
            assert self._watched is not None
            fresh.append(self._watched())
            if len(fresh) >= _TOGETHER or len(fresh) * np.size(fresh[-1]) >= MOST_ELEMENTS * _TOGETHER:
                settle()
            return enough()

        def settle() -> None:
            self.tracks[0].extend(fresh)
            fresh.clear()

        if self._watched is None:
            self._reader.read(timeline, take, timeline.furthest)
        else:
            self._reader.visit(timeline, visit, timeline.furthest)
            settle()

    def views(self) -> tuple[TrackView, ...]:
        """Return the tracks as they stand."""
        return tuple(track.view(self.begin) for track in self.tracks)


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
        whole, close = self._parts(depth, span)
        return SweepView(
            tuple(view for sweep in whole for view in sweep.views()),
            tuple(view for sweep in close for view in sweep.views()),
            min((sweep.next for sweep in whole), default=0),
            all(self._is_done(sweep) for sweep in [*whole, *close]),
        )

    def fill(self, depth: int, span: tuple[int, int], enough: Enough) -> bool:
        """Walk on a little; whether there was anything to walk."""
        sweep = self._unfinished(depth, span)
        if sweep is None:
            return False
        sweep.go(self._debugger.timeline, enough)
        return True

    def fill_watched(self, depth: int, number: int, enough: Enough) -> WatchedRun:
        """Walk on a little, for this watch alone; return what is known of it."""
        sweep = self._sweep(depth, number, 0, math.inf)
        if self._has_iterations(depth):
            sweep.go(self._debugger.timeline, enough)
        (track,) = sweep.views()
        return WatchedRun(track.values, self._is_done(sweep) or not self._has_iterations(depth))

    def is_complete(self, depth: int, span: tuple[int, int]) -> bool:
        """True if there is nothing to walk."""
        return self._unfinished(depth, span) is None

    def _unfinished(self, depth: int, span: tuple[int, int]) -> _Sweep | None:
        if not self._has_iterations(depth):
            return None
        whole, close = self._parts(depth, span)
        return next((one for one in [*close, *whole] if not self._is_done(one)), None)

    def _has_iterations(self, depth: int) -> bool:
        stack = self._debugger.machine.stack
        return depth < len(stack) and iteration_of(stack[depth]) is not None and bool(stack[depth].program.operations)

    def _is_done(self, sweep: _Sweep) -> bool:
        return sweep.is_done(self._debugger.timeline.furthest)

    # --- what is read --------------------------------------------------------------------------------------------

    def _parts(self, depth: int, span: tuple[int, int]) -> tuple[list[_Sweep], list[_Sweep]]:
        """Return the sweeps of what the loop carries (0) and of each watch, and those of the span.

        Close ones are there where a bin of any track is more of the span than a cell of a screen.
        """
        whole, close = [], []
        wide = span[1] - span[0]
        for part in (0, *(watch.number for watch in self._debugger.watches)):
            sweep = self._sweep(depth, part, 0, math.inf)
            whole.append(sweep)
            if wide <= MOST_BINS and any(track.step > max(wide // _CELLS, 1) for track in sweep.tracks):
                close.append(self._sweep(depth, part, *span))
        return whole, close

    def _sweep(self, depth: int, part: int, begin: int, end: float) -> _Sweep:
        stack = self._debugger.machine.stack
        frame = stack[depth]
        key = id(frame.program), frame.entered, part, begin, end
        sweep = self._sweeps.get(key)
        if sweep is None:
            tracks, watched = (self._carried(frame), None) if not part else self._watch(part, frame.program)
            slots = [track.slot for track in tracks if track.slot is not None]
            came = [] if begin else [track.parameter for track in tracks if track.parameter is not None]
            reader = IterationReader(
                frame.program, outer_now(stack[: depth + 1]), [*slots, *came], begin=begin, end=end
            )
            sweep = self._sweeps[key] = _Sweep(tracks, reader, watched)
            while len(self._sweeps) > MOST_SWEEPS + 3 * len(self._debugger.watches):
                self._sweeps.popitem(last=False)
        self._sweeps.move_to_end(key)
        return sweep

    def _carried(self, frame: Frame) -> list[_Track]:
        plan = frame.loop
        if plan is None:
            return []
        known = loop_rows(frame.active.operation.layer, plan, str(self._debugger.machine.compiled.model.path))
        tracks: dict[int, _Track] = {}
        parameters = {result: parameter for parameter, result in reversed(plan.carried)}
        taken = [
            (row, known.slots[place]) for row, place in zip(known.rows, known.taken, strict=True) if place is not None
        ]
        for row, slot in sorted(taken, key=lambda one: one[0].appends):  # what only collects pieces is shown by these
            kind = "output" if row.appends else _KINDS.get(row.kind, "output")
            tracks.setdefault(slot, _Track(kind, row.inner.name, row, slot, parameters.get(slot)))
        if plan.condition_result is not None:
            tracks[-1] = _Track("condition", "go on", None, plan.condition_result)
        return list(tracks.values())

    def _watch(self, number: int, program: Program) -> tuple[list[_Track], Callable[[], Any] | None]:
        watch = next(one for one in self._debugger.watches if one.number == number)
        grown = self._debugger.watches.piece(watch, program)
        if grown is not None and grown.program is program:
            return [_Track("watch", watch.text, None, program.shown_slot(grown.slot))], None
        scope = _HereScope(self._debugger.timeline, self._names)
        return [_Track("watch", watch.text, None, None)], lambda: _watched(scope, watch.expression)


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
