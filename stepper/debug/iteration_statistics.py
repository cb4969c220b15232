"""What the operations of a body gave in the last iterations, one number each: kept as the run goes by, and bounded.

At each stop the frames are looked at: an operation's slot holds what it gave now or one iteration before, so moving on
by iterations costs no replay. What was jumped over is filled in by an excursion, when whoever asks has time for it.
"""

from __future__ import annotations

import math
from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Final

import numpy as np

from stepper.debug.excursions import Spot, before_iteration, excursion, walk
from stepper.debug.moments import iteration_of
from stepper.debug.timeline import Timeline
from stepper.element_types import Array
from stepper.engine.frames import Frame, Phase
from stepper.engine.program import LoopPlan, Program, Value
from stepper.errors import UsageError
from stepper.ir.model import Layer
from stepper.plain_values import storable

MOST_ITERATIONS: Final = 64
_AHEAD: Final = 8
"""Iterations after the present that are kept, too, where one has been there."""
MOST_POINTS: Final = 100_000
MOST_RUNS: Final = 32


# --- one number for a tensor ----------------------------------------------------------------------------------------


def _rms(numbers: Array) -> float:
    return math.sqrt(float(np.dot(numbers, numbers)) / numbers.size)


STATISTICS: Final[Mapping[str, Callable[[Array], float]]] = {
    "rms": _rms,
    "mean": lambda numbers: float(numbers.mean()),
    "min": lambda numbers: float(numbers.min()),
    "max": lambda numbers: float(numbers.max()),
    "peak": lambda numbers: float(np.abs(numbers).max()),
}
"""By name: root of the mean square, mean, least, largest, largest magnitude."""


def number_of(value: Value, statistic: str = "rms") -> float | None:
    """A tensor as one number: NaN where it has one, else infinite where it has one; a single element is itself.

    None for texts and empty tensors.
    """
    array = np.asarray(value)
    if array.dtype not in (np.float32, np.float64):
        array = storable(array)
        if array.dtype.kind not in "fiub":
            return None
        array = array.astype(np.float64)
    if array.size <= 1:
        return float(array.item()) if array.size else None
    numbers = array.reshape(-1)
    with np.errstate(all="ignore"):
        found = STATISTICS[statistic](numbers)
        # An extreme may be finite where others are not; their sum is not.
        if math.isfinite(found) and (statistic not in ("min", "max") or math.isfinite(float(numbers.sum()))):
            return found
        wide = numbers.astype(np.float64)
        if np.isnan(wide).any():
            return math.nan
        return math.inf if np.isinf(wide).any() else STATISTICS[statistic](wide)


# --- what is kept ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, eq=False)
class CarriedHistory:
    """What a carried Parameter was when each iteration began, as one number; `iterations` ascending, with gaps."""

    parameter: Layer = field(repr=False)
    iterations: Array
    numbers: Array


@dataclass(frozen=True, slots=True, eq=False)
class HistoryView:
    """The operations of one run of a graph over its last iterations.

    `numbers[k, index]` is the statistic of operation `index` in iteration `first + k`, where `known[k, index]`.
    """

    statistic: str
    first: int
    numbers: Array
    known: Array
    carried: tuple[CarriedHistory, ...]

    def of(self, index: int, last: int, most: int) -> list[float | None]:
        """An operation over the iterations up to and with `last`, at most so many; None where it is not known."""
        begin = max(last - most + 1, 0)
        found: list[float | None] = []
        for iteration in range(begin, last + 1):
            row = iteration - self.first
            known = 0 <= row < len(self.known) and bool(self.known[row, index])
            found.append(float(self.numbers[row, index]) if known else None)
        return found


class _Run:
    """One activation of a program: a row of numbers for each iteration, and the carried values of all."""

    def __init__(self, program: Program, carried: tuple[int, ...]) -> None:
        self.program = program
        self.rows: dict[int, tuple[Array, Array]] = {}
        self.carried: dict[int, dict[int, float]] = {slot: {} for slot in carried}
        self.slots = [operation.outputs[0] if operation.outputs else -1 for operation in program.operations]
        self.held: list[Value] = [None] * len(self.slots)
        self.numbers = np.zeros(len(self.slots))
        self.known = np.zeros(len(self.slots), bool)
        self.present = 0
        self.tried: set[tuple[int, bool]] = set()

    def see(self, frame: Frame, statistic: str) -> None:
        """Take in what the frame holds."""
        iteration = _iteration(frame)
        if iteration is None:
            return
        self._go_to(iteration)
        self.update(frame.values, statistic)
        done = frame.pc if frame.phase is Phase.RUNNING else len(self.slots)
        self.put(iteration, 0, done)
        if iteration > 0 and done < len(self.slots):
            self.put(iteration - 1, done, len(self.slots))
        self.see_carried(frame, iteration)

    def see_carried(self, frame: Frame, iteration: int) -> None:
        """Take in what was carried into the iteration."""
        for slot, points in self.carried.items():
            if iteration not in points and len(points) < MOST_POINTS:
                number = number_of(frame.values[slot])
                if number is not None:
                    points[iteration] = number

    def update(self, values: list[Value], statistic: str) -> None:
        """The number of each value; of those that are not the same object as before."""
        for index, slot in enumerate(self.slots):
            value = values[slot] if slot >= 0 else None
            if value is self.held[index]:
                continue
            number = None if value is None else number_of(value, statistic)
            self.held[index] = value
            self.known[index] = number is not None
            self.numbers[index] = 0.0 if number is None else number

    def put(self, iteration: int, begin: int, end: int) -> None:
        """Keep the present numbers of some operations as those of an iteration."""
        if not self.is_near(iteration):
            return
        if iteration not in self.rows:
            self.rows[iteration] = np.zeros(len(self.slots)), np.zeros(len(self.slots), bool)
        numbers, known = self.rows[iteration]
        numbers[begin:end] = self.numbers[begin:end]
        known[begin:end] = self.known[begin:end]

    def _go_to(self, iteration: int) -> None:
        """The run is in another iteration: those that are far from it go."""
        if iteration != self.present:
            self.present = iteration
            for known in [known for known in self.rows if not self.is_near(known)]:
                del self.rows[known]
                self.tried.discard((known, True))

    def is_near(self, iteration: int) -> bool:
        """Whether all operations of an iteration are kept, and not only what was carried into it."""
        return -_AHEAD <= self.present - iteration < MOST_ITERATIONS

    def is_wanted(self, iteration: int) -> bool:
        """Whether an iteration is to be fetched: what it lacks may be what it never has, such as an empty tensor."""
        return (iteration, self.is_near(iteration)) not in self.tried and self.lacks(iteration)

    def lacks(self, iteration: int) -> bool:
        """Whether something of an iteration that is over is not known."""
        if any(iteration not in points for points in self.carried.values()):
            return True
        row = self.rows.get(iteration)
        return self.is_near(iteration) and (row is None or not bool(row[1].all()))


class IterationStatistics:
    """The histories of a debugger's run; to be used where the run itself is used."""

    def __init__(self, timeline: Timeline, statistic: str = "rms") -> None:
        self._timeline = timeline
        self.statistic = statistic
        self._runs: OrderedDict[tuple[int, int], _Run] = OrderedDict()

    def choose(self, statistic: str) -> None:
        """Another number for each tensor; what was known is forgotten. UsageError for one that there is not."""
        if statistic not in STATISTICS:
            raise UsageError(f"there is no statistic '{statistic}'; there are {', '.join(STATISTICS)}")
        self.statistic = statistic
        self.forget()

    def forget(self) -> None:
        """The run takes another course."""
        self._runs.clear()

    def see(self) -> None:
        """Take in the present moment."""
        for frame in self._timeline.machine.stack:
            self._run(frame).see(frame, self.statistic)

    def view(self, depth: int) -> HistoryView:
        """What is known of the run of the frame at this depth."""
        run = self._run(self._timeline.machine.stack[depth])
        first, last = min(run.rows, default=0), max(run.rows, default=-1)
        numbers = np.zeros((last - first + 1, len(run.slots)))
        known = np.zeros(numbers.shape, bool)
        for iteration, (row, known_row) in run.rows.items():
            numbers[iteration - first], known[iteration - first] = row, known_row
        carried = tuple(_carried(run.program, slot, points) for slot, points in run.carried.items())
        return HistoryView(self.statistic, first, numbers, known, carried)

    def fill(self, depth: int, back: int, enough: Callable[[], bool]) -> bool:
        """Fetch the last `back` iterations of the loop at this depth where they are not known; whether any was not.

        One excursion, which ends early where `enough` says so, or a pause was asked for. The present stays.
        """
        machine = self._timeline.machine
        if depth >= len(machine.stack):
            return False
        frame = machine.stack[depth]
        present = iteration_of(frame)
        if present is None or not frame.program.operations:
            return False
        run, key = self._run(frame), _key(frame)
        wanted = [i for i in range(max(present - back, 0), present) if run.is_wanted(i)]
        if not wanted:
            return False
        with excursion(self._timeline):

            def visit(seen: Frame, _tick: int) -> bool:
                reached = iteration_of(seen)
                if reached is None or _key(seen) != key:
                    return True
                self._see_closed(run, seen, reached)
                run.tried.add((reached, run.is_near(reached)))
                return reached >= wanted[-1] or enough()

            if not before_iteration(self._timeline, depth, wanted[0]):
                spot = Spot(frame.program, len(frame.program.operations) - 1)
                walk(self._timeline, spot, visit, least_depth=depth + 1)
        return True

    def _see_closed(self, run: _Run, frame: Frame, reached: int) -> None:
        """All operations of the iteration have run, and their values are there."""
        if run.is_near(reached):
            run.update(frame.values, self.statistic)
            run.put(reached, 0, len(run.slots))
        run.see_carried(frame, reached)

    def _run(self, frame: Frame) -> _Run:
        key = _key(frame)
        run = self._runs.get(key)
        if run is None:
            plan = None if frame.activation is None else frame.activation.plan
            merged = tuple(entry.parameter for entry in plan.merged) if isinstance(plan, LoopPlan) else ()
            run = self._runs[key] = _Run(frame.program, merged)
            while len(self._runs) > MOST_RUNS:
                self._runs.popitem(last=False)
        self._runs.move_to_end(key)
        return run


def _key(frame: Frame) -> tuple[int, int]:
    return id(frame.program), 0 if frame.activation is None else frame.activation.entered


def _iteration(frame: Frame) -> int | None:
    """The iteration of a loop's frame (None before the first); 0 for a graph that runs once."""
    if frame.activation is None or not isinstance(frame.activation.plan, LoopPlan):
        return 0
    return iteration_of(frame)


def _carried(program: Program, slot: int, points: Mapping[int, float]) -> CarriedHistory:
    iterations = sorted(points)
    numbers = [points[iteration] for iteration in iterations]
    return CarriedHistory(program.parameter(slot), np.array(iterations, np.int64), np.array(numbers, np.float64))


def statistic_names() -> tuple[str, ...]:
    """The numbers that there are, in the order in which they are gone through."""
    return tuple(STATISTICS)
