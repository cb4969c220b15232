"""Comparison of a debugger's stops with a reference: `StopComparer`."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, Final

from msgspec import Struct, field

from stepper.arguments import instance
from stepper.compare.stops.differences import (
    CarriedDifference,
    FirstDifference,
    ValueDifference,
    carried_differences,
    first_difference,
    frame_differences,
    tolerances_for,
    values_of,
)
from stepper.compare.stops.grid import DifferenceGrid, DifferenceGridBuilder
from stepper.debug.debugger import Debugger
from stepper.debug.reference_values import ReferenceValues
from stepper.debug.scopes import innermost_loop
from stepper.debug.stop import iteration_of
from stepper.debug.visits import Spot, before_iteration, excursion, walk
from stepper.engine.frames import Frame, Phase
from stepper.engine.machine import Machine
from stepper.errors import UsageError
from stepper.ir.lowering import without_loops
from stepper.records import Brief
from stepper.tensors.tolerances import Tolerances

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


class StopComparison(Brief, Struct, frozen=True, eq=False):
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
    carried: Mapping[int, Mapping[int, CarriedDifference]] = field(default_factory=dict)
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
        self.carried: dict[int, dict[int, CarriedDifference]] = {}
        self.grid = DifferenceGridBuilder(frame.program)

    def carried_by_parameter(self) -> dict[int, dict[int, CarriedDifference]]:
        """Return the same with the Parameter first, then the iteration."""
        turned: dict[int, dict[int, CarriedDifference]] = {}
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
        self._course: tuple[Any, ...] = ()

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
        edits = self._debugger.timeline.edits
        course = (self._debugger.reference, *(one for tick in sorted(edits) for one in edits[tick]))
        if len(course) != len(self._course) or any(a is not b for a, b in zip(course, self._course, strict=True)):
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

    def _beside_reference(self, stack: Sequence[Frame], depth: int | None, patience: float | None) -> StopComparison:
        reference, tolerances = self._reference(), self.tolerances
        if not stack:
            return StopComparison(reference.title, first=self._first)
        depth = len(stack) - 1 if depth is None else depth
        frame, loop_depth = stack[depth], innermost_loop(stack[: depth + 1])
        differences = frame_differences(frame, values_of(reference, stack[: depth + 1]), tolerances, latest_first=True)
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
        key = _key(frame)
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
                self._first = self._searched(_never, None)
            return self._first

    def _searched(self, enough: Callable[[], bool], patience: float | None) -> FirstDifference:
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
            while self._compare_iterations(run, depth, (first, present if last is None else last), _never):
                pass
            return run.grid.view()

    def fill(
        self, depth: int | None, window: tuple[int, int] | None = None, enough: Callable[[], bool] | None = None
    ) -> bool:
        """Compare for about a second what is not known yet; True if there is more to see than before.

        The first difference comes first, then what was carried into iterations of the loop whose frame is at this
        depth (None: of no loop), then all operations in the iterations of `window`, its last included. `enough` is
        asked all the time; it ends this when it is True.
        """
        self._renew()
        enough = enough or _never
        reference = self._debugger.reference
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

    def _compare_carried(self, run: _RunDifferences, depth: int, present: int, enough: Callable[[], bool]) -> bool:
        lacking = [one for one in range(max(present - _CARRIED_BACK, 0), present) if one not in run.carried]
        if not lacking or len(run.carried) >= _MOST_ITERATIONS:
            return False
        reference, tolerances, machine = self._reference(), self.tolerances, self._debugger.machine

        def see(_frame: Frame, reached: int) -> bool:
            if reached not in run.carried:
                run.carried[reached] = carried_differences(machine.stack[: depth + 1], reference, tolerances)
            return reached >= lacking[-1] or enough()

        return self._walk(depth, lacking[0], see)

    def _compare_iterations(
        self, run: _RunDifferences, depth: int, window: tuple[int, int], enough: Callable[[], bool]
    ) -> bool:
        lacking = run.grid.lacking(*window)
        if not lacking or run.grid.count >= _MOST_ITERATIONS:
            return False
        reference, tolerances, machine = self._reference(), self.tolerances, self._debugger.machine

        def see(frame: Frame, reached: int) -> bool:
            theirs = values_of(reference, machine.stack[: depth + 1])
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
        timeline = self._debugger.timeline
        frame = timeline.machine.stack[depth]
        key, deadline, is_any = _key(frame), time.monotonic() + _PATIENCE, False

        def visit(now: Frame, _tick: int) -> bool:
            nonlocal is_any
            reached = iteration_of(now)
            if reached is None or _key(now) != key:
                return True
            is_any = True
            return see(now, reached) or (reached >= first and time.monotonic() > deadline)

        with excursion(timeline):
            if not before_iteration(timeline, depth, first):
                walk(timeline, Spot(frame.program, len(frame.program.operations) - 1), visit, least_depth=depth + 1)
        return is_any


def _in_time(differences: Iterator[ValueDifference], patience: float | None) -> tuple[list[ValueDifference], bool]:
    """Take as many as there is patience for, True if that is all: OpenVINO compiles each operation once."""
    started, found = time.monotonic(), []
    for one in differences:
        found.append(one)
        if patience is not None and time.monotonic() - started > patience:
            return found, False
    return found, True


def _never() -> bool:
    return False


def _key(frame: Frame) -> RunKey:
    return id(frame.program), 0 if frame.activation is None else frame.activation.entered


def set_reference(debugger: Debugger, text: str) -> str:
    """Open a reference for a debugger and return its title. UsageError or InputError for what is none."""
    from stepper.compare.references.debugger import debug_reference  # half of stepper.compare, which few runs need

    reference = debug_reference(text, debugger.machine, debugger.inputs)
    debugger.reference = reference
    return reference.title
