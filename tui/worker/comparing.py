"""What a run is held against: nothing, the iteration before, or a reference. Lives in the worker."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final

from msgspec import Struct, field

from stepper.compare.run.moments import (
    CarriedDifference,
    FirstDifference,
    ValueDifference,
    Values,
    carried_differences,
    first_difference,
    frame_differences,
    tolerances_for,
    values_of,
)
from stepper.compare.run.tolerances import Tolerances
from stepper.debug.debugger import Debugger
from stepper.debug.stop import iteration_of
from stepper.debug.visits import Spot, before_iteration, excursion, walk
from stepper.engine.frames import Frame, Phase
from stepper.engine.machine import Machine
from stepper.errors import StepperError, UsageError
from tui.screens.compare.difference_cells import DifferenceCells, DifferenceStore

MODES: Final = ("off", "previous", "reference")
_MOST_RUNS: Final = 16
_MOST_ITERATIONS: Final = 512
_PATIENCE: Final = 0.5
_AT_A_KEY: Final = 0.2
"""Seconds for what stands beside a moment."""

Key = tuple[int, int]


class Comparison(Struct, frozen=True, eq=False):
    """The frame that is looked at beside the other run.

    `operations` by index; `carried` by id of the Parameter and iteration, of the loop around. `first` is None as long
    as it is not known. `cells` are all operations of the loop around over its iterations, beside a reference.
    `problem` says why nothing can be compared.
    """

    mode: str
    title: str
    operations: Mapping[int, ValueDifference] = field(default_factory=dict)
    carried: Mapping[int, Mapping[int, CarriedDifference]] = field(default_factory=dict)
    first: FirstDifference | None = None
    cells: DifferenceCells | None = None
    problem: str = ""

    @property
    def above(self) -> list[int]:
        """The operations outside of their tolerance."""
        return [index for index, one in self.operations.items() if one.is_above]


class Comparing:
    """Holds the run against another."""

    def __init__(self, debugger: Debugger) -> None:
        self._debugger = debugger
        self.mode = "off" if debugger.reference is None else "reference"
        self.tolerances: Tolerances | None = None
        self._first: FirstDifference | None = None
        self._carried: dict[Key, dict[int, dict[int, CarriedDifference]]] = {}
        self._cells: dict[Key, DifferenceStore] = {}
        self.window: tuple[int, int] | None = None
        """The iterations of which all cells are looked at, the last included."""
        self._loop_depth: int | None = None
        self._before: tuple[Key, int, dict[tuple[int, int], Any]] | None = None

    # --- choosing ------------------------------------------------------------------------------------------------

    def choose(self, mode: str) -> None:
        """What to compare with."""
        self.mode = mode

    def tolerate(self, tolerances: Tolerances) -> None:
        """Other tolerances; what was found with others is forgotten."""
        self.tolerances = tolerances
        self._first = None
        self._carried.clear()
        self._cells.clear()

    def forget(self) -> None:
        """The run takes another course, or the reference is another."""
        self._before = None
        self._first = None
        self._carried.clear()
        self._cells.clear()

    # --- what there is to see ------------------------------------------------------------------------------------

    def take(self, stack: Sequence[Frame], depth: int, loop_depth: int | None) -> Comparison | None:
        """The frame at this depth beside the other run; None where nothing is compared."""
        self._loop_depth = loop_depth
        if self.mode == "off":
            return None
        if not stack:
            return self._at_the_end()
        try:
            return self._taken(stack, depth, loop_depth)
        except StepperError as error:
            return Comparison(self.mode, "", problem=str(error))

    def _at_the_end(self) -> Comparison | None:
        """Where no operation is left, there is still the first difference."""
        reference = self._debugger.reference
        if self.mode != "reference" or reference is None:
            return None
        return Comparison(self.mode, reference.title, first=self._first)

    def _taken(self, stack: Sequence[Frame], depth: int, loop_depth: int | None) -> Comparison:
        frame = stack[depth]
        if self.mode == "previous":
            found = frame_differences(frame, self._values_before(depth), Tolerances(), origins=False)
            iteration = iteration_of(frame) or 0
            title = f"iteration {iteration - 1}" if iteration else "there is no iteration before"
            return Comparison(self.mode, title, {one.index: one for one in found})
        reference = self._debugger.reference
        if reference is None:
            raise UsageError("there is no reference: name one with reference FILE, or --reference at the start")
        tolerances = self.tolerances or tolerances_for(reference)
        theirs = values_of(reference, stack[: depth + 1])
        latest, is_whole = _in_time(frame_differences(frame, theirs, tolerances, latest_first=True))
        operations = {one.index: one for one in reversed(latest)}
        self._see(stack, loop_depth, tolerances)
        around = stack[depth if loop_depth is None else loop_depth]
        if around is frame:
            is_closed = frame.phase is not Phase.RUNNING and is_whole
            self._store(frame).put(iteration_of(frame) or 0, operations.values(), closed=is_closed)
        carried = self._by_parameter(stack, loop_depth)
        cells = self._store(around).view()
        return Comparison(self.mode, reference.title, operations, carried, self._first, cells)

    def _see(self, stack: Sequence[Frame], loop_depth: int | None, tolerances: Tolerances) -> None:
        """Keep what was carried into the present iteration."""
        reference = self._debugger.reference
        if loop_depth is None or reference is None:
            return
        iteration = iteration_of(stack[loop_depth])
        known = self._of_run(stack[loop_depth])
        if iteration is not None and iteration not in known and len(known) < _MOST_ITERATIONS:
            known[iteration] = carried_differences(stack[: loop_depth + 1], reference, tolerances)

    def _store(self, frame: Frame) -> DifferenceStore:
        if _key(frame) not in self._cells:
            while len(self._cells) >= _MOST_RUNS:
                del self._cells[next(iter(self._cells))]
            self._cells[_key(frame)] = DifferenceStore(frame.program)
        return self._cells[_key(frame)]

    def _of_run(self, frame: Frame) -> dict[int, dict[int, CarriedDifference]]:
        if _key(frame) not in self._carried:
            while len(self._carried) >= _MOST_RUNS:
                del self._carried[next(iter(self._carried))]
            self._carried[_key(frame)] = {}
        return self._carried[_key(frame)]

    def _by_parameter(self, stack: Sequence[Frame], loop_depth: int | None) -> dict[int, dict[int, CarriedDifference]]:
        turned: dict[int, dict[int, CarriedDifference]] = {}
        known = {} if loop_depth is None else self._of_run(stack[loop_depth])
        for iteration, found in known.items():
            for parameter, one in found.items():
                turned.setdefault(parameter, {})[iteration] = one
        return turned

    # --- elsewhere in time ---------------------------------------------------------------------------------------

    def _values_before(self, depth: int) -> Values:
        """What the frame held when the iteration before was closed."""
        frame = self._debugger.machine.stack[depth]
        iteration = iteration_of(frame)
        held: dict[tuple[int, int], Any] = {}
        if iteration:
            if self._before is None or self._before[:2] != (_key(frame), iteration):
                self._before = _key(frame), iteration, self._fetched(depth, iteration - 1)
            held = self._before[2]
        return lambda layer, output: held.get((layer.id, output))

    def _fetched(self, depth: int, iteration: int) -> dict[tuple[int, int], Any]:
        timeline = self._debugger.timeline
        frame = timeline.machine.stack[depth]
        key, found = _key(frame), {}

        def visit(seen: Frame, _tick: int) -> bool:
            if _key(seen) != key or iteration_of(seen) != iteration:
                return (iteration_of(seen) or 0) > iteration
            found.update({place: seen.values[slot] for place, slot in seen.program.slots.items()})
            return True

        with excursion(timeline):
            if not before_iteration(timeline, depth, iteration):
                walk(timeline, Spot(frame.program, len(frame.program.operations) - 1), visit, least_depth=depth + 1)
        return found

    def fill(self, enough: Callable[[], bool]) -> bool:
        """Find out, when there is time, where the runs part and what was carried; whether there is more to see."""
        reference = self._debugger.reference
        if self.mode != "reference" or reference is None:
            return False
        tolerances = self.tolerances or tolerances_for(reference)
        if self._first is None:
            machine = Machine(self._debugger.machine.compiled, self._debugger.inputs)
            found = first_difference(machine, reference, tolerances, enough)
            if not enough():
                self._first = found
            return not enough()
        return self._fill_loop(tolerances, enough)

    def _fill_loop(self, tolerances: Tolerances, enough: Callable[[], bool]) -> bool:
        """What was carried into the last iterations of the loop looked at; then all cells that are looked at."""
        machine, reference, depth = self._debugger.machine, self._debugger.reference, self._loop_depth
        present = iteration_of(machine.stack[depth]) if depth is not None and depth < len(machine.stack) else None
        if depth is None or present is None or reference is None:
            return False
        known, store = self._of_run(machine.stack[depth]), self._store(machine.stack[depth])

        def keep(seen: Sequence[Frame], reached: int) -> None:
            if reached not in known:
                known[reached] = carried_differences(seen, reference, tolerances)

        def compare(seen: Sequence[Frame], reached: int) -> None:
            found = frame_differences(seen[-1], values_of(reference, seen), tolerances, origins=False)
            store.put(reached, found, closed=True)

        lacking = [one for one in range(max(present - 64, 0), present) if one not in known]
        if lacking and len(known) < _MOST_ITERATIONS and self._walked(depth, lacking, enough, keep):
            return True
        lacking = store.lacking(*self.window) if self.window is not None else []
        if not lacking or store.count >= _MOST_ITERATIONS:
            return False
        found = self._walked(depth, lacking, enough, compare)
        if not found and not enough():
            store.ended = lacking[0]
        return found

    def _walked(
        self, depth: int, wanted: Sequence[int], enough: Callable[[], bool], see: Callable[[Sequence[Frame], int], Any]
    ) -> bool:
        """Show from the first to the last of these iterations of a loop when all of it has run; whether any was."""
        timeline = self._debugger.timeline
        machine = timeline.machine
        frame = machine.stack[depth]
        key, deadline, count = _key(frame), time.monotonic() + _PATIENCE, 0

        def visit(now: Frame, _tick: int) -> bool:
            nonlocal count
            reached = iteration_of(now)
            if reached is None or _key(now) != key:
                return True
            see(machine.stack[: depth + 1], reached)
            count += 1
            return reached >= wanted[-1] or enough() or time.monotonic() > deadline

        with excursion(timeline):
            if not before_iteration(timeline, depth, wanted[0]):
                walk(timeline, Spot(frame.program, len(frame.program.operations) - 1), visit, least_depth=depth + 1)
        return count > 0


def _in_time(differences: Iterator[ValueDifference]) -> tuple[list[ValueDifference], bool]:
    """As many of them as there is patience for at a key, and whether that is all: OpenVINO compiles each operation at
    first, and those that it has are quick from then on."""
    deadline, found = time.monotonic() + _AT_A_KEY, []
    for one in differences:
        found.append(one)
        if time.monotonic() > deadline:
            return found, False
    return found, True


def _key(frame: Frame) -> Key:
    return id(frame.program), 0 if frame.activation is None else frame.activation.entered


def set_reference(debugger: Debugger, text: str) -> str:
    """Open a reference for a debugger; its title. UsageError or InputError for what is none."""
    from stepper.compare.references.debugger import debug_reference  # half of stepper.compare, which few runs need

    reference = debug_reference(text, debugger.machine, debugger.inputs)
    debugger.reference = reference
    return reference.title
