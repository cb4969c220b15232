"""A loop from its first iteration to the furthest that the run has reached, however many: in bins, so it is bounded.

A sweep walks through a stretch of iterations once, a little at a time, and keeps of each carried value, of the
condition and of each watch one number a bin: NaN before Inf before the largest magnitude. When the bins are full, two
become one.
"""

from __future__ import annotations

import math
from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import ClassVar, Final

import numpy as np
from msgspec import Struct, field

from stepper.debug.debugger import Debugger
from stepper.debug.scopes import Names
from stepper.debug.stop import iteration_of
from stepper.debug.stop_scope import StopScope
from stepper.debug.visits import PAUSED, Spot, before_iteration, excursion, walk
from stepper.element_types import Array
from stepper.engine.frames import Frame, Snapshot
from stepper.engine.program import LoopPlan
from stepper.errors import StepperError, UsageError
from stepper.ir.model import Layer
from stepper.query.address_syntax import Address
from stepper.query.expressions import Expression
from stepper.records import Brief
from stepper.tensors.statistics import number_of

MOST_BINS: Final = 2**15
MOST_SWEEPS: Final = 8
_SLICE: Final = 4096
"""Iterations after which numbers are put into bins."""


class Bins(Struct, eq=False):
    """Numbers of consecutive iterations, of which every bin but the last stands for `step`.

    `numbers` hold where `counts`, how many numbers a bin stands for, is not 0.
    """

    most: int = MOST_BINS
    step: int = 1
    reached: int = 0
    numbers: Array = field(default_factory=lambda: np.zeros(0))
    counts: Array = field(default_factory=lambda: np.zeros(0, np.int64))

    def extend(self, numbers: Sequence[float | None]) -> None:
        """The next iterations, in order; None where one has no number."""
        given = np.array([number is not None for number in numbers], np.int64)
        fresh = np.array([0.0 if number is None else number for number in numbers])
        begin, self.reached = self.reached, self.reached + len(numbers)
        while -(-self.reached // self.step) > self.most:
            self.numbers, self.counts = _merged(self.numbers, self.counts, np.arange(len(self.numbers)) // 2)
            self.step *= 2
        places = np.concatenate((np.arange(len(self.numbers)), np.arange(begin, self.reached) // self.step))
        self.numbers, self.counts = _merged(
            np.concatenate((self.numbers, fresh)), np.concatenate((self.counts, given)), places
        )

    def copy(self) -> Bins:
        """As they are now; `extend` makes new arrays."""
        return Bins(self.most, self.step, self.reached, self.numbers, self.counts)


def worst(numbers: Array, counts: Array, places: Array) -> tuple[Array, Array, Array]:
    """For each of the ascending places NaN before Inf before the largest magnitude; its count; and which places."""
    begins = np.flatnonzero(np.diff(places, prepend=-1))
    here = np.where(counts > 0, numbers, np.nan)
    high, low = np.fmax.reduceat(here, begins), np.fmin.reduceat(here, begins)
    spoilt = np.logical_or.reduceat(np.isnan(numbers) & (counts > 0), begins)
    found = np.where(spoilt, np.nan, np.where(high >= -low, high, low))
    total = np.add.reduceat(counts, begins)
    return np.where(total > 0, found, 0.0), total, places[begins]


def _merged(numbers: Array, counts: Array, places: Array) -> tuple[Array, Array]:
    if not len(numbers):
        return numbers, counts
    found, total, _ = worst(numbers, counts, places)
    return found, total


class TrackView(Brief, Struct, frozen=True, eq=False):
    """Values of one track over the iterations from `first` on. `kind`: carried, condition, watch.

    A condition is 1 where it ended the loop. `first_odd` is the first iteration with NaN or Inf.
    """

    unshown: ClassVar = ("parameter", "bins")

    kind: str
    name: str
    parameter: Layer | None
    first: int
    bins: Bins
    first_odd: int | None

    def spread_over(self, begin: int, end: int, cells: int) -> tuple[Array, Array]:
        """Return the iterations [begin, end) in so many cells: numbers, and how many iterations each cell knows."""
        numbers, counts = np.zeros(cells), np.zeros(cells, np.int64)
        bins, span = self.bins, max(end - begin, 1)
        low, high = max(begin - self.first, 0), min(end - self.first, bins.reached)
        if low >= high:
            return numbers, counts
        taken = np.arange(low // bins.step, -(-high // bins.step))
        at = np.maximum(taken * bins.step + self.first, begin) - begin
        found, total, places = worst(bins.numbers[taken], bins.counts[taken], at * cells // span)
        numbers[places], counts[places] = found, total
        if bins.step * cells > span:  # a bin is wider than a cell: it is shown in all of its cells
            inside = np.arange(cells) * span // cells + begin - self.first
            known = (inside >= 0) & (inside < bins.reached)
            source = np.clip(inside // bins.step, 0, len(bins.numbers) - 1)
            numbers, counts = np.where(known, bins.numbers[source], 0.0), np.where(known, bins.counts[source], 0)
        return numbers, counts

    def at(self, iteration: int) -> float | None:
        """Return the number of one iteration; None where it is not known by itself."""
        place = iteration - self.first
        bins = self.bins
        if bins.step > 1 or not 0 <= place < bins.reached or not bins.counts[place]:
            return None
        return float(bins.numbers[place])


class SweepView(Struct, frozen=True, eq=False):
    """The tracks of all iterations from 0, and of a stretch closely where the bins of all are coarse.

    `reached`: how many iterations are known, from the first on. `complete`: that is as far as the run has come.
    """

    tracks: tuple[TrackView, ...]
    close: tuple[TrackView, ...]
    reached: int
    complete: bool


# --- the walk -------------------------------------------------------------------------------------------------------


class _Track(Struct, frozen=True, eq=False):
    kind: str
    name: str
    parameter: Layer | None
    read: Callable[[Frame], float | None]


class _Sweep:
    """One way through the iterations [begin, end) of a run of a loop; `stand` is where it stands, to go on from."""

    def __init__(self, tracks: Sequence[_Track], begin: int, end: float) -> None:
        self.tracks = tracks
        self.begin, self.end = begin, end
        self.bins = [Bins() for _ in tracks]
        self.odd: list[int | None] = [None for _ in tracks]
        self.complete = False
        self.furthest = -1
        self.stand: Snapshot | None = None
        self._fresh: list[list[float | None]] = [[] for _ in tracks]

    @property
    def next(self) -> int:
        """Return the iteration with which it goes on."""
        return self.begin + (self.bins[0].reached if self.bins else 0)

    def read(self, frame: Frame) -> None:
        """Take in an iteration that has just been closed; they come in order."""
        for track, fresh in zip(self.tracks, self._fresh, strict=True):
            fresh.append(track.read(frame))
        if len(self._fresh[0]) >= _SLICE:
            self.settle()

    @property
    def waiting(self) -> int:
        """Iterations read that are in no bin yet."""
        return len(self._fresh[0])

    def settle(self) -> None:
        """Put into bins what was read."""
        for place, fresh in enumerate(self._fresh):
            if fresh and self.odd[place] is None:
                odd = (k for k, number in enumerate(fresh) if number is not None and not math.isfinite(number))
                first = next(odd, None)
                self.odd[place] = None if first is None else self.next_of(place) + first
            self.bins[place].extend(fresh)
            fresh.clear()

    def next_of(self, place: int) -> int:
        """Return the iteration with which a track's bins go on."""
        return self.begin + self.bins[place].reached

    def views(self) -> tuple[TrackView, ...]:
        """As it stands."""
        return tuple(
            TrackView(track.kind, track.name, track.parameter, self.begin, bins.copy(), odd)
            for track, bins, odd in zip(self.tracks, self.bins, self.odd, strict=True)
        )


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

    def is_complete(self, depth: int, span: tuple[int, int]) -> bool:
        """True if there is nothing to walk."""
        return self._unfinished(depth, span) is None

    def _unfinished(self, depth: int, span: tuple[int, int]) -> _Sweep | None:
        stack = self._debugger.machine.stack
        if depth >= len(stack) or iteration_of(stack[depth]) is None or not stack[depth].program.operations:
            return None
        sweeps = [self._sweep(depth, part, *span) for part in self._close_parts(depth, span)]
        sweeps += [self._sweep(depth, part, 0, math.inf) for part in self._parts(depth)]
        return next((one for one in sweeps if not self._is_done(one)), None)

    def _is_done(self, sweep: _Sweep) -> bool:
        return sweep.complete or not sweep.tracks or sweep.furthest >= self._debugger.timeline.furthest

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
        parts = self._parts(depth)
        return [part for part in parts if any(bins.step > 1 for bins in self._sweep(depth, part, 0, math.inf).bins)]

    def _sweep(self, depth: int, part: int, begin: int, end: float) -> _Sweep:
        frame = self._debugger.machine.stack[depth]
        entered = 0 if frame.activation is None else frame.activation.entered
        key = id(frame.program), entered, part, begin, end
        sweep = self._sweeps.get(key)
        if sweep is None:
            tracks = self._carried(frame) if not part else self._watch(part)
            sweep = self._sweeps[key] = _Sweep(tracks, begin, end)
            while len(self._sweeps) > MOST_SWEEPS + 2 * len(self._debugger.watches):
                self._sweeps.popitem(last=False)
        self._sweeps.move_to_end(key)
        return sweep

    def _carried(self, frame: Frame) -> list[_Track]:
        plan = None if frame.activation is None else frame.activation.plan
        if not isinstance(plan, LoopPlan):
            return []
        tracks = []
        for entry in plan.merged:
            layer = frame.program.parameter(entry.parameter)
            tracks.append(_Track("carried", layer.name, layer, _reader(entry.parameter)))
        if plan.condition_result is not None:
            tracks.append(_Track("condition", "go on", None, _ending(plan.condition_result)))
        return tracks

    def _watch(self, number: int) -> list[_Track]:
        watch = next(one for one in self._debugger.watches if one.number == number)
        scope = _HereScope(self._debugger.timeline, self._names)
        return [_Track("watch", watch.text, None, lambda _frame: _watched(scope, watch.expression))]


def _reader(slot: int) -> Callable[[Frame], float | None]:
    def read(frame: Frame) -> float | None:
        value = frame.values[slot]
        return None if value is None else number_of(value)

    return read


def _ending(slot: int) -> Callable[[Frame], float | None]:
    """1 where the body's condition is false; read where it is computed, for the iteration may not be closed yet."""

    def read(frame: Frame) -> float | None:
        value = frame.values[slot]
        return None if value is None else float(not np.asarray(value).all())

    return read


def _watched(scope: StopScope, expression: Expression) -> float | None:
    """Return a watch of which the value is one number, or one number for it."""
    try:
        value = expression.evaluate(scope)
        return number_of(value) if np.size(value) else None
    except (StepperError, TypeError, ValueError):
        return None


class _HereScope(StopScope):
    """Names as they are in an iteration that a sweep comes by: nothing is fetched from elsewhere."""

    def value(self, address: Address, /) -> object:
        """Return the value now."""
        if any(asked is not None for asked in self._target(address).iterations):
            raise UsageError(f"'{address}' is in another iteration")
        return super().value(address)

    def previous(self, address: Address, /) -> object:
        """Not on the way."""
        raise UsageError(f"'{address}': the iteration before is not kept")
