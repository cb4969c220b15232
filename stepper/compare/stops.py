"""Comparison of a debugger's stops with a reference: `StopComparer`."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from enum import StrEnum
from pathlib import Path
from typing import Any, ClassVar, Final, NamedTuple

import numpy as np
from msgspec import field

from stepper.arguments import instance
from stepper.compare.rounding import inputs_of, measure_output, recomputed
from stepper.debug.branches.edits import RunCourse
from stepper.debug.debugger import Debugger
from stepper.debug.iterations.cell_store import Cell, next_cell
from stepper.debug.iterations.loop_runs import outer_now
from stepper.debug.iterations.reader import IterationReader
from stepper.debug.moments.run_pairs import Values, values_beside
from stepper.debug.reference_values import ReferenceValues
from stepper.debug.scopes import innermost_loop
from stepper.debug.stop import iteration_of
from stepper.debug.visits import Enough, never
from stepper.element_types import Array
from stepper.engine.frames import EventKind, Every, Frame, Frames, LoopRun, Phase, loop_run, place
from stepper.engine.machine import Machine
from stepper.engine.program import Program
from stepper.errors import StepperError, UsageError
from stepper.ir.lowering import without_loops
from stepper.ir.model import Layer
from stepper.records import Brief, Record
from stepper.tensors.difference import Distance, measure
from stepper.tensors.tolerances import Tolerance, Tolerances

# --- Differences of a frame's values from another run: how large, made here or carried in; the first of a run --------


class Standing(StrEnum):
    """Relation of a value to the other run's: same bits, within or above the tolerance, and where it comes from."""

    SAME = "same"
    WITHIN = "within"
    HERE = "made here"
    CARRIED = "carried in"
    ABOVE = "above"


class ValueDifference(Brief):
    """Difference of an operation's output that is furthest from the other's.

    `distance` is the largest absolute difference, `made_here` what is left of it when the operation runs on the other's
    inputs (None: these are not known). `measure` is None for the same bits.
    """

    unshown: ClassVar = ("layer",)

    index: int
    layer: Layer
    output: int
    standing: Standing
    distance: float
    made_here: float | None
    measure: Distance | None
    tolerance: Tolerance

    @property
    def is_born(self) -> bool:
        """True if the operation differs on the other's inputs, too."""
        return self.standing is Standing.HERE

    @property
    def is_above(self) -> bool:
        """True if the difference is outside of the tolerance."""
        return self.standing in (Standing.HERE, Standing.CARRIED, Standing.ABOVE)

    @property
    def allowed(self) -> float:
        """Largest difference within the tolerance, of the number that is furthest off."""
        theirs = None if self.measure is None else self.measure.theirs
        magnitude = abs(float(theirs)) if theirs is not None and np.asarray(theirs).dtype.kind in "fiub" else 0.0
        relative = self.tolerance.relative * (magnitude if math.isfinite(magnitude) else 0.0)
        return self.tolerance.absolute + relative

    @property
    def share_made_here(self) -> float | None:
        """Part of the difference that is made in the operation, 0 to 1; None where it is not known."""
        if self.made_here is None or not 0 < self.distance < math.inf or self.made_here > self.distance:
            return None
        return self.made_here / self.distance


def tolerances_for(reference: ReferenceValues) -> Tolerances:
    """Return the default tolerances: of runs with the same kernels, or with other ones."""
    return Tolerances(exact=bool(getattr(reference, "is_exact", False)))


def frame_differences(
    frame: Frame, theirs: Values, tolerances: Tolerances, *, origins: bool = True, latest_first: bool = False
) -> Iterator[ValueDifference]:
    """Yield the difference of each operation that has run in this iteration and that the other run has a value of.

    `origins`: run each once more on the other's inputs, for what it makes itself.
    """
    done = frame.pc if frame.phase is Phase.RUNNING else len(frame.program.operations)
    for index in reversed(range(done)) if latest_first else range(done):
        found = _operation_difference(frame, index, theirs, tolerances, origins=origins)
        if found is not None:
            yield found


def _operation_difference(
    frame: Frame, index: int, theirs: Values, tolerances: Tolerances, *, origins: bool
) -> ValueDifference | None:
    operation = frame.program.operations[index]
    worst: tuple[float, int, Distance | None, Any] | None = None
    for output, slot in enumerate(operation.outputs):
        ours, other = frame.values[slot], theirs(operation.layer, output)
        if ours is None or other is None:
            continue
        tolerance = tolerances.of(operation.layer, other)
        inputs = inputs_of(frame, operation)
        found = measure_output(operation, output, inputs, np.asarray(ours), np.asarray(other), tolerance)
        rank = -1.0 if found is None else found.ratio
        if worst is None or rank > worst[0]:
            worst = rank, output, found, other
    if worst is None:
        return None
    _, output, found, other = worst
    tolerance = tolerances.of(operation.layer, other)
    if found is None:
        return ValueDifference(index, operation.layer, output, Standing.SAME, 0.0, 0.0, None, tolerance)
    made = _made_here(frame, index, output, theirs, other, tolerances) if origins else None
    standing = Standing.WITHIN
    if found.differs:
        standing = Standing.ABOVE if made is None else Standing.HERE if made[1] else Standing.CARRIED
    distance = found.absolute
    return ValueDifference(
        index, operation.layer, output, standing, distance, None if made is None else made[0], found, tolerance
    )


def _made_here(
    frame: Frame, index: int, output: int, theirs: Values, other: Any, tolerances: Tolerances
) -> tuple[float, bool] | None:
    """Return how far our operation on the other's inputs is from the other's value, and True if above tolerance.

    None where the other side does not know an input that was computed or carried. Other inputs from outside, such as
    those of the model, are taken to be the same.
    """
    operation = frame.program.operations[index]
    results, inputs = recomputed(frame, operation, theirs, tolerances)
    carried = _carried_ids(frame) if inputs.unknown else frozenset()
    if any(layer.type != "Parameter" or layer.id in carried for layer in inputs.unknown):
        return None
    if not inputs.moved:
        results = [frame.values[slot] for slot in operation.outputs]
    if results is None or output >= len(results):
        return None
    tolerance = tolerances.of(operation.layer, other)
    left = measure_output(operation, output, inputs.values, np.asarray(results[output]), np.asarray(other), tolerance)
    return (0.0, False) if left is None else (left.absolute, left.differs)


def _carried_ids(frame: Frame) -> frozenset[int]:
    """Return the ids of the Parameters that back edges lead to."""
    merged = frame.loop.merged if frame.loop else ()
    return frozenset(frame.program.parameter(entry.parameter).id for entry in merged)


# --- what is carried ------------------------------------------------------------------------------------------------


class LargestDifference(NamedTuple):
    """Largest absolute difference of one or several values; `is_above` if any is outside of its tolerance."""

    distance: float
    is_above: bool


def carried_differences(
    stack: Frames, reference: ReferenceValues, tolerances: Tolerances
) -> dict[int, LargestDifference]:
    """Return the difference of each carried Parameter, by id, for the iteration of the innermost frame (a loop's)."""
    frame = stack[-1]
    if frame.loop is None:
        return {}
    theirs = values_beside(reference, stack)
    found = {}
    for entry in frame.loop.merged:
        layer = frame.program.parameter(entry.parameter)
        ours, other = frame.values[entry.parameter], theirs(layer, 0)
        if ours is None or other is None:
            continue
        distance = measure(np.asarray(ours), np.asarray(other), tolerances.of(layer, other))
        is_above = distance is not None and distance.differs
        found[layer.id] = LargestDifference(0.0 if distance is None else distance.absolute, is_above)
    return found


# --- the first ------------------------------------------------------------------------------------------------------


class FirstDifference(Record, eq=False):
    """First value of a run outside of its tolerance; `difference` is None where there is none.

    `place`, `iteration` and `run` are those of the innermost loop around it. `compared` is the number of values before
    it, `before` the largest difference among them. `complete` is False where the search was given up.
    """

    difference: ValueDifference | None
    place: str
    iteration: int | None
    compared: int
    before: float
    complete: bool
    tick: int = 0
    run: LoopRun | None = None


def first_difference(
    machine: Machine,
    reference: ReferenceValues,
    tolerances: Tolerances,
    enough: Enough = never,
    patience: float | None = None,
) -> FirstDifference:
    """Run a machine that stands at its beginning beside the reference up to the first value outside of its tolerance.

    The search is given up when `enough` is True, after `patience` seconds, and where our own run fails. Raises
    StepperError where the reference fails.
    """
    deadline = math.inf if patience is None else time.monotonic() + patience
    compared, before = 0, 0.0
    while not machine.finished:
        try:
            event = machine.advance(Every.ITERATION)
        except StepperError:
            return FirstDifference(None, place(machine.stack), None, compared, before, complete=False)
        stack = list(machine.stack)
        if event.kind is EventKind.ENTERED:
            stack = stack[:-1]
        elif event.kind is EventKind.FINISHED or (event.kind is EventKind.LEFT and not event.frame.loop):
            stack = [*stack, event.frame]
        elif event.kind is not EventKind.ITERATION:
            continue
        frame = stack[-1]
        for found in frame_differences(frame, values_beside(reference, stack), tolerances):
            if found.is_above:
                iteration = None if frame.activation is None else frame.activation.iteration
                run, tick = loop_run(stack), event.tick
                where = place(stack)
                return FirstDifference(found, where, iteration, compared, before, complete=True, tick=tick, run=run)
            compared += 1
            before = max(before, found.distance)
            if enough():
                return FirstDifference(None, place(stack), None, compared, before, complete=False)
        if time.monotonic() > deadline or enough():
            return FirstDifference(None, place(stack), None, compared, before, complete=False)
    return FirstDifference(None, "", None, compared, before, complete=True)


# --- Grid of differences from the reference: a cell for each operation and iteration of a body that was compared -----


NOT_COMPARED: Final = -1
SAME: Final = 0
WITHIN: Final = 1
ABOVE: Final = 2
"""Standings of a cell; NOT_COMPARED also where the reference has no value."""


class DifferenceGrid(Brief):
    """One execution of a graph beside the reference.

    `lines` map an iteration to the absolute differences of all operations and, in a second row, their standings;
    `worst` has the largest of each over all iterations: arrays of shape [2, operations].
    """

    unshown: ClassVar = ("program", "lines", "worst")

    program: Program
    lines: Mapping[int, Array]
    worst: Array

    def window(self, first: int, iterations: int, operations: Array) -> Array:
        """Return differences and standings of these operations, of shape [2, iterations, operations]."""
        unknown = _unknown(len(self.program.operations))
        lines = [self.lines.get(first + row, unknown)[:, operations] for row in range(iterations)]
        return np.stack(lines, 1) if lines else np.zeros((2, 0, len(operations)))

    def worst_of(self, operations: Sequence[int]) -> LargestDifference | None:
        """Return the largest over all known iterations; None where none of these operations was compared."""
        return _largest(self.worst[:, list(operations)])

    def at(self, cell: Cell) -> LargestDifference | None:
        """Return the difference of one cell; None where it was not compared."""
        line = self.lines.get(cell.iteration)
        return None if line is None else _largest(line[:, [cell.operation]])

    def next_above(self, after: Cell, *, backward: bool = False) -> Cell | None:
        """Return the next known cell in time that leaves its tolerance and did not one iteration before."""

        def begins(iteration: int) -> Array:
            before = self.lines.get(iteration - 1)
            above: Array = self.lines[iteration][1] == ABOVE
            return above if before is None else np.asarray(above & (before[1] != ABOVE))

        return next_cell(((at, begins(at)) for at in sorted(self.lines, reverse=backward)), after, backward=backward)


def _unknown(operations: int) -> Array:
    return np.array([[0.0], [NOT_COMPARED]]).repeat(operations, 1)


def _largest(line: Array) -> LargestDifference | None:
    if not line.size or line[1].max() == NOT_COMPARED:
        return None
    return LargestDifference(float(line[0].max()), bool(line[1].max() == ABOVE))


class DifferenceGridBuilder:
    """Collects the cells of one execution of a graph."""

    def __init__(self, program: Program) -> None:
        self._program = program
        self._lines: dict[int, Array] = {}
        self._worst = _unknown(len(program.operations))
        self._complete: set[int] = set()
        self._view: DifferenceGrid | None = None
        self.ended: int | None = None
        """Number of iterations of the loop, once it is known."""

    @property
    def count(self) -> int:
        """Number of iterations that are kept."""
        return len(self._lines)

    def lacking(self, first: int, last: int) -> list[int]:
        """Return those of these iterations, the last included, of which not all operations were compared."""
        end = last + 1 if self.ended is None else min(last + 1, self.ended)
        return [iteration for iteration in range(max(first, 0), end) if iteration not in self._complete]

    def put(self, iteration: int, found: Iterable[ValueDifference], *, closed: bool) -> None:
        """Add differences of an iteration; `closed`: all of its operations have run and were compared."""
        if iteration in self._complete:
            return
        known = self._lines.get(iteration)
        # Copies, so that a grid that was given out does not change.
        line = _unknown(len(self._program.operations)) if known is None else known.copy()
        self._worst = self._worst.copy()
        for one in found:
            standing = ABOVE if one.is_above else SAME if one.measure is None else WITHIN
            for table in (line, self._worst):
                table[:, one.index] = np.fmax(table[:, one.index], (one.distance, standing))
        self._lines[iteration] = line
        self._view = None
        if closed:
            self._complete.add(iteration)

    def view(self) -> DifferenceGrid:
        """Return the grid as it is now; it does not change later."""
        if self._view is None:
            self._view = DifferenceGrid(self._program, dict(self._lines), self._worst)
        return self._view


# ---------------------------------------------------------------------------------------------------------------------


_MOST_RUNS: Final = 16
_MOST_ITERATIONS: Final = 512
_CARRIED_BACK: Final = 64
"""Iterations before the present one whose carried values are compared."""

_PATIENCE: Final = 0.5
"""Seconds of one walk through iterations; a caller that has more calls again."""

_STEP_IN: Final = "step into a loop first, until its first iteration has begun"

_FIRST_PATIENCE: Final = 8.0
"""Seconds that `fill` looks for the first difference."""

RunKey = tuple[int, int]
"""One execution of a graph: `id()` of its program, and the tick at which it was entered."""


class StopComparison(Brief):
    """A frame of a stop beside the other run, which `title` names.

    `operations` map the index of an operation that has run to its difference; `carried` maps the id of a Parameter of
    the innermost loop, and an iteration of it, to the difference with which that iteration began. `first` is the first
    difference of the whole run, None while it is not known. `grid` has the operations of the innermost loop over its
    iterations, as far as they were compared. `is_whole`: all that ran was compared in time. `problem` is the message of
    an error that kept a caller from comparing.
    """

    unshown: ClassVar = ("grid",)

    title: str
    operations: Mapping[int, ValueDifference] = field(default_factory=dict)
    carried: Mapping[int, Mapping[int, LargestDifference]] = field(default_factory=dict)
    first: FirstDifference | None = None
    grid: DifferenceGrid | None = None
    problem: str = ""
    is_whole: bool = True

    @property
    def above(self) -> list[int]:
        """Indices of the operations outside of their tolerance."""
        return [index for index, one in self.operations.items() if one.is_above]


class _RunDifferences:
    """Known differences of one execution of a graph: what was carried into its iterations, and all operations."""

    def __init__(self, frame: Frame) -> None:
        self.carried: dict[int, dict[int, LargestDifference]] = {}
        self.grid = DifferenceGridBuilder(frame.program)

    def carried_by_parameter(self) -> dict[int, dict[int, LargestDifference]]:
        """Return the same with the Parameter first, then the iteration."""
        turned: dict[int, dict[int, LargestDifference]] = {}
        for iteration, found in self.carried.items():
            for parameter, one in found.items():
                turned.setdefault(parameter, {})[iteration] = one
        return turned


class StopComparer:
    """Compares the stops of a debugger, wherever it goes, with a reference.

    `reference` is what `stepper compare --with` takes: another model, a recorded run, an .npz, openvino, onnx or
    onnxruntime; it becomes `debugger.reference`, which is compared with if none is named. `tolerances` are those of the
    kind of reference if None.
    Raises UsageError for a reference that is none or not installed, InputError for one that is damaged.
    """

    def __init__(
        self,
        debugger: Debugger,
        reference: str | Path | None = None,
        *,
        tolerances: Tolerances | None = None,
    ) -> None:
        self._debugger = instance("debugger", debugger, Debugger)
        if reference is not None:
            set_reference(debugger, str(reference))
        self._tolerances = tolerances
        self._first: FirstDifference | None = None
        self._runs: dict[RunKey, _RunDifferences] = {}
        self._course: object = None

    @property
    def tolerances(self) -> Tolerances:
        """Tolerances for differences from the reference; to set others forgets what was found with these."""
        return self._tolerances or tolerances_for(self._reference())

    @tolerances.setter
    def tolerances(self, tolerances: Tolerances) -> None:
        self._tolerances = tolerances
        self._forget()

    def _forget(self) -> None:
        self._first = None
        self._runs.clear()

    def _renew(self) -> None:
        """Forget what was found where the run takes another course by now, or the reference is another one."""
        course = self._debugger.reference, RunCourse(self._debugger.timeline.edits)
        if course != self._course:
            self._course = course
            self._forget()

    def _reference(self) -> ReferenceValues:
        if self._debugger.reference is None:
            raise UsageError("there is no reference: name one with reference FILE, or --reference at the start")
        return self._debugger.reference

    # --- the present stop ----------------------------------------------------------------------------------------

    def compare(self, depth: int | None = None, *, patience: float | None = None) -> StopComparison:
        """Return the differences of the frame at this depth (0: the model's own graph), by default the innermost one.

        After `patience` seconds the operations that ran last are all that is compared, the others at a later call.
        Raises UsageError where there is no reference, and the errors of a reference that fails.
        """
        with self._debugger.working():
            self._renew()
            return self._beside_reference(self._debugger.machine.stack, depth, patience)

    def _beside_reference(self, stack: Frames, depth: int | None, patience: float | None) -> StopComparison:
        reference, tolerances = self._reference(), self.tolerances
        if not stack:
            return StopComparison(reference.title, first=self._first)
        depth = len(stack) - 1 if depth is None else depth
        frame, loop_depth = stack[depth], innermost_loop(stack[: depth + 1])
        differences = frame_differences(
            frame, values_beside(reference, stack[: depth + 1]), tolerances, latest_first=True
        )
        latest, is_whole = _in_time(differences, patience)
        operations = {one.index: one for one in reversed(latest)}
        around = self._run_of(stack[depth if loop_depth is None else loop_depth])
        if loop_depth is None or loop_depth == depth:
            is_closed = frame.phase is not Phase.RUNNING and is_whole
            around.grid.put(iteration_of(frame) or 0, operations.values(), closed=is_closed)
        if loop_depth is not None:
            iteration = iteration_of(stack[loop_depth])
            if iteration is not None and iteration not in around.carried and len(around.carried) < _MOST_ITERATIONS:
                around.carried[iteration] = carried_differences(stack[: loop_depth + 1], reference, tolerances)
        carried = {} if loop_depth is None else around.carried_by_parameter()
        return StopComparison(reference.title, operations, carried, self._first, around.grid.view(), is_whole=is_whole)

    def _run_of(self, frame: Frame) -> _RunDifferences:
        key = id(frame.program), frame.entered
        if key not in self._runs:
            while len(self._runs) >= _MOST_RUNS:
                del self._runs[next(iter(self._runs))]
            self._runs[key] = _RunDifferences(frame)
        return self._runs[key]

    # --- elsewhere in time ---------------------------------------------------------------------------------------

    def first_difference(self) -> FirstDifference:
        """Return where the run first leaves the tolerances of the reference; the present stays.

        The run is made once more from its beginning, without the edits of a branch, up to there.
        """
        with self._debugger.working():
            self._renew()
            if self._first is None or not self._first.complete:
                self._first = self._searched(never, None)
            return self._first

    def _searched(self, enough: Enough, patience: float | None) -> FirstDifference:
        ours = self._debugger.machine
        machine = Machine(
            ours.compiled, self._debugger.inputs, max_iterations=ours.max_iterations, states=ours.initial_states
        )
        return first_difference(machine, self._reference(), self.tolerances, enough, patience)

    def over_iterations(self, first: int = 0, last: int | None = None) -> DifferenceGrid:
        """Return the differences of all operations in these iterations of the innermost loop; the present stays.

        `last` is included, by default the present iteration. Raises UsageError outside of loops.
        """
        with self._debugger.working():
            self._renew()
            stack = self._debugger.machine.stack
            depth = innermost_loop(stack)
            present = None if depth is None else iteration_of(stack[depth])
            if depth is None or present is None:
                raise UsageError(f"the run is in no iteration here: {without_loops(self._debugger.model) or _STEP_IN}")
            run = self._run_of(stack[depth])
            while self._compare_iterations(run, depth, (first, present if last is None else last), never):
                pass
            return run.grid.view()

    def fill(self, depth: int | None, window: tuple[int, int] | None = None, enough: Enough | None = None) -> bool:
        """Compare for about a second what is not known yet; True if there is more to see than before.

        The first difference comes first, then what was carried into iterations of the loop whose frame is at this
        depth (None: of no loop), then all operations in the iterations of `window`, its last included. `enough` is
        asked all the time; it ends this when it is True.
        """
        self._renew()
        reference, enough = self._debugger.reference, enough or never
        if reference is None:
            return False
        if self._first is None:
            found = self._searched(enough, _FIRST_PATIENCE)
            if not enough():
                self._first = found
            return not enough()
        stack = self._debugger.machine.stack
        present = None if depth is None or depth >= len(stack) else iteration_of(stack[depth])
        if depth is None or present is None:
            return False
        run = self._run_of(stack[depth])
        return self._compare_carried(run, depth, present, enough) or (
            window is not None and self._compare_iterations(run, depth, window, enough)
        )

    def _compare_carried(self, run: _RunDifferences, depth: int, present: int, enough: Enough) -> bool:
        lacking = [one for one in range(max(present - _CARRIED_BACK, 0), present) if one not in run.carried]
        if not lacking or len(run.carried) >= _MOST_ITERATIONS:
            return False
        reference, tolerances, machine = self._reference(), self.tolerances, self._debugger.machine

        def see(_frame: Frame, reached: int) -> bool:
            if reached not in run.carried:
                run.carried[reached] = carried_differences(machine.stack[: depth + 1], reference, tolerances)
            return reached >= lacking[-1] or enough()

        return self._walk(depth, lacking[0], see)

    def _compare_iterations(self, run: _RunDifferences, depth: int, window: tuple[int, int], enough: Enough) -> bool:
        lacking = run.grid.lacking(*window)
        if not lacking or run.grid.count >= _MOST_ITERATIONS:
            return False
        reference, tolerances, machine = self._reference(), self.tolerances, self._debugger.machine

        def see(frame: Frame, reached: int) -> bool:
            theirs = values_beside(reference, machine.stack[: depth + 1])
            run.grid.put(reached, frame_differences(frame, theirs, tolerances, origins=False), closed=True)
            return reached >= lacking[-1] or enough()

        found = self._walk(depth, lacking[0], see)
        if not found and not enough():
            run.grid.ended = lacking[0]
        return found

    def _walk(self, depth: int, first: int, see: Callable[[Frame, int], bool]) -> bool:
        """Visit iterations of the loop at this depth from `first` on, each when all of it has run, until `see` says so.

        True if any was visited. It takes a limited time, but for the first of them.
        """
        timeline, deadline = self._debugger.timeline, time.monotonic() + _PATIENCE
        stack = timeline.machine.stack[: depth + 1]
        reader = IterationReader(stack[-1].program, outer_now(stack), begin=first)
        reader.visit(timeline, lambda frame: see(frame, reader.next - 1) or time.monotonic() > deadline)
        return reader.next > first


def _in_time(differences: Iterator[ValueDifference], patience: float | None) -> tuple[list[ValueDifference], bool]:
    """Take as many as there is patience for, True if that is all: OpenVINO compiles each operation once."""
    started, found = time.monotonic(), []
    for one in differences:
        found.append(one)
        if patience is not None and time.monotonic() - started > patience:
            return found, False
    return found, True


def set_reference(debugger: Debugger, text: str) -> str:
    """Open a reference for a debugger and return its title. UsageError or InputError for what is none."""
    from stepper.compare.references.opening import debug_reference  # half of stepper.compare, which few runs need

    reference = debug_reference(text, debugger.machine, debugger.inputs)
    debugger.reference = reference
    return reference.title
