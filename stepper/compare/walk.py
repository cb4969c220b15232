"""The comparison itself: our run, driven from loop to loop and iteration to iteration, beside a reference.

At each point that the two sides share, every value that was computed since is compared, in the order of execution.
Nothing is kept but the first and the worst of each place, so memory is bounded and cost grows with the run alone.
"""

from __future__ import annotations

import itertools
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from operator import itemgetter
from typing import Any, NamedTuple

import numpy as np
from msgspec.structs import replace

from stepper.compare.file_differences import graph_paths
from stepper.compare.observations import (
    BranchMismatch,
    ErrorOrigin,
    LoopMismatch,
    LoopRecord,
    NonFiniteOrigins,
    Observations,
    OutputComparison,
    OutputRecord,
    SideFailure,
    ValueMismatch,
    is_telling,
    numbered,
    patterns_of_sequences,
    patterns_of_values,
)
from stepper.compare.references.openvino import BlockValues, IteratedValues
from stepper.compare.references.protocol import (
    BodyIterations,
    LoopOutcome,
    ReferenceFailed,
    ReferenceFrame,
    ReferenceRun,
    SyncKind,
    SyncPoint,
    endless_text,
    loop_key,
    most_alone,
)
from stepper.compare.rounding import (
    Rounded,
    TracedOrigin,
    behind_sums,
    departure,
    is_rounded_integer,
    left_by,
    measure_output,
    measure_whole,
    rounds,
    trace_origin,
    unknown_inputs,
)
from stepper.debug.breakpoints.kinds.non_finite import holds_any
from stepper.debug.causes.cause import NonFiniteKind
from stepper.debug.provenance.operation_at import inputs_of
from stepper.debug.scopes import GraphPath, path_of, step_of
from stepper.element_types import Array, Indices
from stepper.engine.frames import Activation, Event, EventKind, Every, Frame, Frames, Phase, RunObserver, Snapshot, Taps
from stepper.engine.loops import stack
from stepper.engine.machine import Machine
from stepper.engine.program import LoopPlan, Operation, OpKind, Program
from stepper.engine.rules import note_lines
from stepper.engine.run import output_names
from stepper.errors import InputError, KernelError, SessionError, StepperError
from stepper.ir.model import Layer, Source
from stepper.processes.process_messages import ended_at_its_start
from stepper.records import Record
from stepper.tensors.difference import Distance, agree_exactly, agreeing, measure, rough_ratio
from stepper.tensors.tolerances import Tolerances

# ---------------------------------------------------------------------------------------------------------------------
# Our run ahead of a comparison: a block of iterations of a loop without loops in it, with all of their values
#
# A reference that computes each iteration from our values may so compute many with one call. What agrees is then known
# of all at once; where anything does not, the run is put back, and those iterations are compared one by one.


_MOST_BYTES = 2**25
"""Of our values of a block."""

_MOST_ITERATIONS = 4096
_OF_AN_ARRAY = 128
"""Bytes that an array takes beside its numbers."""


class IterationBlock(Record):
    """Iterations of our run that were made: from `first` on, `count` of them.

    `bodies` are the values of the loop's own body, and of the branches of Ifs that were taken. `last` is the event with
    which the machine stands behind them.
    """

    frame: Frame
    first: int
    count: int
    bodies: Sequence[BodyIterations]
    last: Event


class BlockRun:
    """Runs blocks of iterations ahead, and back again."""

    def __init__(self, machine: Machine) -> None:
        self._machine = machine
        self._in_blocks: dict[int, bool] = {}
        """By program of a loop's body: whether its iterations are run in blocks."""
        self._alone_until = 0
        self._start: tuple[Snapshot, list[Frame]] | None = None

    def ahead(self) -> IterationBlock | None:
        """Run iterations of the innermost loop; None where that is not to be, and nothing was run."""
        machine = self._machine
        frame = machine.stack[-1]
        most = self._most(frame)
        if most < 1:
            return None
        self._start = machine.snapshot(), list(machine.stack)
        collector = _Collector(frame)
        with _observed(machine, collector):
            try:
                last = self.advance(frame, 1)
                room = _MOST_BYTES // max(1, collector.bytes)
                more = min(room, _MOST_ITERATIONS, most) - 1
                if last.kind is not EventKind.LEFT and more > 0:
                    last = self.advance(frame, more, collector)
            except StepperError:
                last = None
        block = None if last is None else collector.block(last)
        if block is None:
            if last is None and not collector.has_changed:
                self._alone_until = machine.tick + 1
            else:
                self.leave_alone(frame.program)
            self.back()
        return block

    def back(self) -> None:
        """Put the run back to where the block begins; frames stay the same objects."""
        assert self._start is not None, "it was ahead"
        snapshot, frames = self._start
        self._machine.restore(snapshot)
        for frame, copied in zip(frames, self._machine.stack, strict=True):
            for name in Frame.__slots__:
                setattr(frame, name, getattr(copied, name))
        self._machine.stack = list(frames)

    def one(self, frame: Frame) -> Iterator[Event]:
        """Run one iteration; yield its events up to the event of its end."""
        for event in self._events():
            yield event
            if event.kind is EventKind.ITERATION and event.frame is frame:
                return

    def leave_alone(self, program: Program) -> None:
        """Have iterations of a body looked at one by one from now on."""
        self._in_blocks[id(program)] = False

    def advance(self, frame: Frame, count: int, collector: _Collector | None = None) -> Event:
        """Run so many iterations, or as many as there are, or until what is collected cannot be a block."""
        if frame.program.straight:
            until = self._machine.tick + count * (len(frame.program.code) + 2)
            while (event := self._machine.advance(Every.LOOP, until=until)).kind is EventKind.PAUSED:
                pass
            return event
        for event in self._events():
            if event.frame is frame:
                count -= event.kind is EventKind.ITERATION
                if event.kind is EventKind.LEFT or not count or (collector is not None and collector.has_changed):
                    return event
        raise AssertionError("a run continues until its loop is left")

    def _events(self) -> Iterator[Event]:
        """Yield the events from now on, as they are made."""
        while True:
            event = self._machine.advance(Every.ITERATION)
            if event.kind is not EventKind.PAUSED:
                yield event

    def _most(self, frame: Frame) -> int:
        """Return how many iterations may be run, as far as their number is known; 0 for none."""
        if not frame.loop or frame.phase is not Phase.BETWEEN:
            return 0
        activation, program = frame.active, frame.program
        if self._machine.tick < self._alone_until or not self._in_blocks.setdefault(
            id(program), _has_no_loops(program)
        ):
            return 0
        ends = (activation.slice_count, activation.limit, self._machine.max_iterations)
        return min(end for end in ends if end is not None) - activation.iteration - 1


class _CollectedValues:
    """The values of a body's iterations, as they are collected."""

    def __init__(self, frame: Frame, steps: GraphPath, order: Indices, parameters: Sequence[int]) -> None:
        """`parameters` are those that change, `rows` the iterations of a branch; those of a loop's own body are all."""
        slots = [*parameters, *(slot for operation in frame.program.operations for slot in operation.outputs)]
        self.frame, self.steps, self.order = frame, steps, order
        self.rows: list[int] = []
        self.values: dict[int, list[Any]] = {slot: [] for slot in slots}

    @property
    def bytes(self) -> int:
        """The bytes of the values of an iteration, by the first one."""
        return sum(values[0].nbytes + _OF_AN_ARRAY for values in self.values.values() if values)

    def take(self, frame: Frame, row: int) -> bool:
        """Take the values of an iteration; False where one has another shape than before."""
        self.frame = frame
        self.rows.append(row)
        for slot, values in self.values.items():
            values.append(frame.values[slot])
        return all(values[-1].shape == values[0].shape for values in self.values.values())

    def iterations(self, rows: Array) -> BodyIterations | None:
        """Return them; None where values have changed their types or shapes."""
        found = {slot: _stacked(values) for slot, values in self.values.items()}
        known = {slot: value for slot, value in found.items() if value is not None}
        return BodyIterations(self.frame, self.steps, self.order, rows, known) if len(known) == len(found) else None


class _Collector(RunObserver):
    """Takes the values of a frame's iterations, and of the branches of Ifs in them."""

    def __init__(self, frame: Frame) -> None:
        plan = frame.loop
        assert plan is not None
        unchanging = {entry.parameter for entry in plan.invariant}.union(plan.unfed)
        changing = [slot for slot in frame.program.parameters if slot not in unchanging]
        self._own = _CollectedValues(frame, (), (), changing)
        self._frame, self._may_grow = frame, plan.may_grow
        self._branches: dict[int, _CollectedValues] = {}
        self._open: list[Frame] = []
        self.has_changed = False
        self._first = frame.active.iteration + 1

    @property
    def count(self) -> int:
        """Return the number of iterations whose values were all taken."""
        return min(map(len, self._own.values.values()), default=0)

    @property
    def bytes(self) -> int:
        """The bytes of the values of an iteration, by the first one."""
        return self._own.bytes + sum(branch.bytes for branch in self._branches.values())

    def iteration_closed(self, frame: Frame) -> None:
        """Take the values of an iteration."""
        if frame is self._frame and not self._own.take(frame, self.count):
            self.has_changed = True

    def entered(self, stack: Frames) -> None:
        """Note which values of a branch are of its iteration alone."""
        outer, frame = stack[-2:]
        around = self._branches[id(outer.program)] if self._open else self._own
        self._open.append(frame)
        if id(frame.program) not in self._branches:
            activation: Any = frame.activation
            inputs = activation.operation.inputs
            changing = [slot for index, slot in activation.plan.inputs if inputs[index] in around.values]
            order = (*around.order, outer.pc, len(self._branches))
            steps = tuple(map(step_of, self._open))
            self._branches[id(frame.program)] = _CollectedValues(frame, steps, order, changing)

    def branch_left(self, _stack: Frames, _activation: Activation) -> None:
        """Take the values of a branch."""
        frame = self._open.pop()
        if not self._branches[id(frame.program)].take(frame, self.count):
            self.has_changed = True

    def taps(self, frame: Frame) -> Taps | None:
        """Return how the values of the next ones are taken."""
        if frame is not self._frame:
            return None
        taken = self._bounded if self._may_grow else lambda values: values.append
        return Taps([(taken(values), slot) for slot, values in self._own.values.items()], sys.maxsize, lambda: None)

    def _bounded(self, values: list[Any]) -> Callable[[Any], None]:
        """Return how values are taken that must not grow: as many as there are of them would not fit into memory."""
        shape = values[0].shape

        def take(value: Any) -> None:
            if value.shape != shape:
                self.has_changed = True
                raise KernelError("its shape changes")
            values.append(value)

        return take

    def block(self, last: Event) -> IterationBlock | None:
        """Return the iterations; None where values have changed their types or shapes, or there are none."""
        count = self.count
        own = self._own.iterations(np.arange(count))
        if own is None or not own.stacked:
            return None
        branches = [one for one in self._branches.values() if one.values]
        found = [own, *(one.iterations(np.array(one.rows)) for one in branches)]
        bodies = [body for body in found if body is not None]
        return IterationBlock(self._frame, self._first, count, bodies, last) if len(bodies) == len(found) else None


def _stacked(values: list[Any]) -> Array | None:
    """Return values on a new first axis; None where they are not all of one type and shape."""
    kinds = {None if value is None else (value.shape, value.dtype) for value in values}
    return None if len(kinds) != 1 or None in kinds else stack(values)


def _has_no_loops(program: Program) -> bool:
    """Return True for a body whose operations, and those of the branches of its Ifs, are functions of their inputs."""
    return program.straight or all(
        operation.kind is OpKind.KERNEL
        or (operation.kind is OpKind.BRANCH and all(_has_no_loops(plan.program) for plan in operation.plans))
        for operation in program.operations
    )


@contextmanager
def _observed(machine: Machine, observer: RunObserver) -> Iterator[None]:
    before = machine.observers
    machine.observers = (*before, observer)
    try:
        yield
    finally:
        machine.observers = before


def finite_iterations(block: IterationBlock) -> Array:
    """Return for each iteration if all of its floating values are finite."""
    found = np.ones(block.count, np.bool_)
    for body in block.bodies:
        for value in body.stacked.values():
            if value.dtype.kind not in "iub":
                found[body.rows] &= np.isfinite(value).reshape(len(body.rows), -1).all(axis=1)
    return found


# ---------------------------------------------------------------------------------------------------------------------


_MOST_FINDINGS = 400
_MORE_ITERATIONS = 1000
_MOST_WAITING = 8
"""Points before loops and Ifs, and behind branches, at which what was computed is compared at the next point only."""

Place = tuple[Layer, int, int]
"""A layer, the index of its output, and its slot."""


class _Compared(NamedTuple):
    """A place of a frame of ours that the reference has, too; `found` is its side."""

    path: GraphPath
    frame: Frame
    found: ReferenceFrame
    layer: Layer
    output: int
    slot: int

    @property
    def ours(self) -> Any:
        """Our value."""
        return self.frame.values[self.slot]

    @property
    def theirs(self) -> Any:
        """The reference's value; None where it has none."""
        return self.found.value(self.layer, self.output)

    @property
    def operation(self) -> Operation | None:
        """The operation that computes it; None of a Parameter, and of a Result that takes one."""
        program = self.frame.program
        index = program.computed_at.get(self.slot)
        return None if index is None else program.operations[index]


class LockstepWalk:
    """Compare two runs in lockstep: `run` it once; `observations` then has everything."""

    def __init__(self, machine: Machine, reference: ReferenceRun, tolerances: Tolerances) -> None:
        self.machine, self.reference, self.tolerances = machine, reference, tolerances
        reference.agree_within(tolerances)
        self.observations = Observations()
        self._places: dict[int, list[tuple[int, list[Place]]]] = {}
        self._done: list[int] = [0]
        self._alone: dict[int, int] = {}
        self._ahead: list[tuple[Frame, ValueMismatch, OutputRecord]] = []
        self._sums: dict[int, frozenset[int]] = {}
        self._rounded: Rounded = {}
        self._main: Frame = machine.stack[0]
        self._non_finite = NonFiniteOrigins(machine.compiled)
        self._waiting: list[tuple[SyncPoint, ReferenceFrame, int, int]] = []
        self._blocks = BlockRun(machine)
        self._block: BlockValues | None = None

    def run(self) -> Observations:
        """Drive our run to its end, or to where one of the sides stops."""
        self._drive()
        self._measure_the_worst()
        self.observations.non_finite = self._non_finite.in_order()
        self.observations.each_alone = self.reference.shares_inputs
        self.observations.notes = tuple(f"note: {line}" for line in note_lines(self.machine.notes))
        return self.observations

    def look_at_outputs(self) -> Observations | None:
        """Run without a stop; return the observations if all outputs agree, or if the reference stopped with an error.

        Else return None; to look inside, a new walk must begin with the machine at its beginning again.
        """
        try:
            theirs = self.reference.outputs()
        except ReferenceFailed as failure:
            self._add(SideFailure((), None, str(failure), ours=False))
            return self.observations
        try:
            self.machine.advance(Every.END)
            self.observations.outputs += self._made_sure_outputs(theirs)
        except (StepperError, ReferenceFailed):
            return None
        return self.observations if self.observations.outputs_agree else None

    def _drive(self) -> None:
        try:
            while not self.machine.finished:
                if self.reference.shares_inputs and self._compare_block():
                    continue
                if not self._follow(self.machine.advance(Every.ITERATION)):
                    return
        except ReferenceFailed as failure:
            self._fail(str(failure), ours=False)
        except (InputError, SessionError):  # the reference's file is damaged
            raise
        except StepperError as error:
            if ended_at_its_start(error):  # there is nothing to compare with
                raise
            self._fail(str(error), ours=True)
        else:
            self._finish()

    def outputs_beside(self, theirs: Mapping[int, Any]) -> list[OutputComparison]:
        """Return our outputs beside others by position, after the run."""
        found, sums = [], behind_sums(self._main.program)
        names = zip(self._main.program.results, output_names(self.machine.compiled.model), strict=True)
        for position, ((slot, name), ours) in enumerate(zip(names, self.machine.outputs or (), strict=True)):
            other = theirs.get(position)
            if other is None:
                found.append(OutputComparison(name, None, theirs_known=False))
                continue
            tolerance = self.tolerances.of(None, other)
            distance = measure_whole(self._main, slot, ours, other, tolerance, sums, self._rounded)
            named = () if distance is None or not distance.differs else patterns_of_sequences(ours, other, tolerance)
            found.append(OutputComparison(name, distance, patterns=named))
        return found

    def _made_sure_outputs(self, theirs: Mapping[int, Any]) -> list[OutputComparison]:
        """Return our outputs beside the reference's; where these differ, those count that rest on nothing kept."""
        found = self.outputs_beside(theirs)
        if any(one.differs for one in found):
            anew = self.reference.outputs_anew()
            return found if anew is None else self.outputs_beside(anew)
        return found

    # --- points --------------------------------------------------------------------------------------------------

    def _follow(self, event: Event) -> bool:
        """Compare what an event shows; return False where there is no use in going on."""
        stack = self.machine.stack
        if event.kind is EventKind.ENTERED:
            self._entered(stack)
        elif event.kind is EventKind.ITERATION:
            return self._iterated(stack)
        elif event.kind is EventKind.LEFT:
            self._left(event.frame)
        elif event.kind is EventKind.FINISHED:
            self._compare(SyncPoint(SyncKind.FINISHED, (), event.frame), len(event.frame.program.operations) + 1)
        return not self.observations.given_up

    def _entered(self, stack: list[Frame]) -> None:
        outer, inner = stack[-2], stack[-1]
        activation = inner.active
        point = SyncPoint(SyncKind.ENTERED, path_of(stack[:-1]), outer, activation.operation)
        found = self._compare(point, outer.pc)
        self._done.append(-1)
        chosen = None if found is None else found.branch
        if chosen is not None and not inner.loop and chosen != activation.condition:
            self._add(BranchMismatch(point.path, activation.operation.layer, activation.condition, chosen))

    def _iterated(self, stack: list[Frame]) -> bool:
        frame = stack[-1]
        path = path_of(stack)
        point = SyncPoint(SyncKind.ITERATION, path, frame, frame.active.operation)
        found = self._compare(point, len(frame.program.operations) + 1)
        self._done[-1] = -1
        if found is None:
            return self._may_run_on(path, frame)
        self._look_ahead(frame, found)
        return True

    def _may_run_on(self, path: GraphPath, frame: Frame) -> bool:
        """Return True if our loop may go on where the reference has ended, or has no such loop."""
        first = self._alone.setdefault(id(frame), frame.active.iteration)
        most = _MORE_ITERATIONS + first if self.reference.has_loop(path, frame) else most_alone(self.machine)
        if frame.active.iteration - first < most:
            return True
        layer, count = frame.active.operation.layer, frame.active.iteration + 1
        found = self.reference.at(SyncPoint(SyncKind.LEFT, path, frame, frame.active.operation))
        theirs = None if found is None else found.outcome
        self._loop_ended(path[:-1], layer, LoopOutcome(count, "", complete=False), theirs)
        text = endless_text(layer, count)
        if theirs is None:
            self._add(SideFailure(path[:-1], layer, text, ours=True))
        self.observations.given_up = text
        return False

    def _left(self, frame: Frame) -> None:
        activation = frame.active
        path = (*path_of(self.machine.stack), step_of(frame))
        point = SyncPoint(SyncKind.LEFT, path, frame, activation.operation)
        is_loop = frame.loop
        if is_loop:
            self._compare_what_waits()
        # The values of a loop were compared after its last iteration; a branch has run just once.
        found = self.reference.at(point) if is_loop else self._compare(point, len(frame.program.operations))
        self._done.pop()
        self._ahead = [one for one in self._ahead if one[0] is not frame]
        self._alone.pop(id(frame), None)
        if is_loop:
            slices = None if activation.slice_count == sys.maxsize else activation.slice_count
            ours = LoopOutcome(activation.iteration + 1, str(activation.ended or ""), slices=slices)
            self._loop_ended(path[:-1], activation.operation.layer, ours, None if found is None else found.outcome)

    def _loop_ended(self, path: GraphPath, layer: Layer, ours: LoopOutcome, theirs: LoopOutcome | None) -> None:
        loops = tuple(step.layer for step in path)
        self.observations.loops.setdefault(id(layer), LoopRecord(loops, layer)).add(ours, theirs)
        if theirs is not None and theirs.iterations != ours.iterations:
            iteration = min(ours.iterations, theirs.iterations)
            self._add(LoopMismatch(path, layer, iteration, ours, theirs))

    def _fail(self, message: str, *, ours: bool) -> None:
        self._compare_what_waits()
        stack = self.machine.stack
        frame = stack[-1] if stack else None
        operation = found = None
        if ours and frame is not None and frame.pc < len(frame.program.operations):
            operation = frame.program.operations[frame.pc]
        if ours and frame is not None and len(self._done) == len(stack) > 1:
            # The reference is asked as if the iteration had ended.
            with suppress(ReferenceFailed):
                point = SyncPoint(SyncKind.ITERATION, path_of(stack), frame, frame.active.operation)
                found = self._compare(point, frame.pc)
        unknown = (
            ()
            if operation is None or frame is None
            else unknown_inputs(frame, operation, None if found is None else found.value)
        )
        path = path_of(stack) if stack else ()
        if path and frame is not None and frame.phase is Phase.BETWEEN:
            # It was about to begin the next iteration.
            begun = frame.activation is not None and frame.activation.iteration >= 0
            path = (*path[:-1], path[-1]._replace(iteration=(path[-1].iteration or 0) + 1 if begun else 0))
        self._add(SideFailure(path, None if operation is None else operation.layer, message, ours, unknown))

    # --- blocks of iterations ------------------------------------------------------------------------------------

    def _compare_block(self) -> bool:
        """Compare iterations of a loop together; False where that is not to be, and nothing was run."""
        waits = self.machine.stack[-1]
        if any(frame is waits for frame, _difference, _record in self._ahead):
            return False
        path, ours = path_of(self.machine.stack), self._blocks.ahead()
        if ours is None:
            return False
        self._compare_what_waits()
        theirs = self.reference.block(ours.first, ours.bodies)
        if not isinstance(theirs, BlockValues):
            self._blocks.leave_alone(ours.frame.program)
            self._blocks.back()
            return False
        agree = self._agreeing(ours, theirs)
        if agree.all():
            self._count(path, ours, theirs, range(ours.count))
            if ours.last.kind is EventKind.LEFT:
                self._left(ours.last.frame)
            return True
        self._blocks.back()
        self._block = theirs
        for is_clear, rows in itertools.groupby(range(ours.count), agree.__getitem__):
            many = list(rows)
            if is_clear:
                self._blocks.advance(ours.frame, len(many))
                self._count(path, ours, theirs, range(many[0], many[-1] + 1))
                continue
            for _ in many:
                for event in self._blocks.one(ours.frame):
                    self._follow(event)
        self._block = None
        return True

    def _agreeing(self, ours: IterationBlock, theirs: BlockValues) -> Any:
        """Return for each iteration of a block if there is nothing to be said of it."""
        found = np.ones(ours.count, np.bool_) if self._non_finite.is_complete else finite_iterations(ours)
        for our_body, their_body in zip(ours.bodies, theirs.bodies, strict=True):
            rows = our_body.rows
            for _index, (layer, output, slot) in self._places_in(our_body, their_body):
                values, other = our_body.of(slot), their_body.stacked(layer, output)
                if values is None:
                    continue
                if other is None:
                    found[rows] = False
                    break
                if layer.type == "Result" and other.size == values.size == len(rows):
                    other = other.reshape(values.shape)
                found[rows] &= agreeing(values, other, self.tolerances.of(layer, other))
        return found

    def _places_in(self, ours: BodyIterations, theirs: IteratedValues) -> Iterator[tuple[int, Place]]:
        """Yield the places of a body that have values in the reference.

        Each place comes with the index of its operation.
        """
        for index, places in self._places_of(ours.frame):
            yield from ((index, place) for place in places if index >= 0 and theirs.knows(place[0]))

    def _count(self, path: GraphPath, ours: IterationBlock, theirs: BlockValues, rows: range) -> None:
        """Count iterations in which all agrees: places in the order in which they first ran."""
        counted: list[tuple[Indices, BodyIterations, Place, int]] = []
        for our_body, their_body in zip(ours.bodies, theirs.bodies, strict=True):
            first, end = np.searchsorted(our_body.rows, (rows.start, rows.stop))
            if first < end:
                for index, place in self._places_in(our_body, their_body):
                    order = (int(our_body.rows[first]), *our_body.order, index)
                    counted.append((order, our_body, place, int(end - first)))
        for _order, body, place, count in sorted(counted, key=itemgetter(0)):
            self._record(body.frame.program, (*path, *body.steps), place).compared += count
            self.observations.compared += count

    # --- values --------------------------------------------------------------------------------------------------

    def _compare(self, point: SyncPoint, end: int) -> ReferenceFrame | None:
        """Compare what the frame has computed up to the operation `end`; return the reference's side."""
        found = self.reference.at(point) if self._block is None else self._block.at(point)
        first = self._done[-1]
        self._done[-1] = end
        frame = point.frame
        if end > max(first, 0):
            self._non_finite.look(
                (*self.machine.stack[: len(point.path)], frame), point.path, max(first, 0), end, found
            )
        if found is None:
            return None
        self._waiting.append((point, found, first, end))
        may_wait = self.reference.shares_inputs and point.kind in (SyncKind.ENTERED, SyncKind.LEFT)
        if not may_wait or len(self._waiting) > _MOST_WAITING:
            self._compare_what_waits()
        return found

    def _compare_what_waits(self) -> None:
        """Compare what a reference, which is another process, may have begun to compute since; in order."""
        while self._waiting:
            point, found, first, end = self._waiting.pop(0)
            for index, places in self._places_of(point.frame):
                if first <= index < end:
                    for place in places:
                        self._compare_value(_Compared(point.path, point.frame, found, *place))

    def _places_of(self, frame: Frame) -> list[tuple[int, list[Place]]]:
        """Return the places by index: Parameters at -1, outputs of each operation, then maybe the Results."""
        program = frame.program
        if id(program) not in self._places:
            parameters = zip(program.graph.parameters, program.parameters, strict=True)
            found: list[tuple[int, list[Place]]] = [(-1, [(layer, 0, slot) for layer, slot in parameters])]
            for index, operation in enumerate(program.operations):
                outputs = [(operation.layer, output, slot) for output, slot in enumerate(operation.outputs)]
                if self.reference.shares_inputs:  # it computes each for the comparison alone
                    outputs = [one for one in outputs if Source(one[0].id, one[1]) in program.graph.read_outputs]
                found.append((index, outputs))
            if (
                self.reference.shares_inputs
            ):  # what a body gives as a whole may be another than what its operations give
                results = zip(program.graph.results, program.results, strict=True)
                found.append((len(program.operations), [(layer, 0, slot) for layer, slot in results]))
            self._places[id(program)] = found
        return self._places[id(program)]

    def _compare_value(self, at: _Compared) -> None:
        ours, layer = at.ours, at.layer
        theirs = None if ours is None else at.theirs
        if theirs is None:
            return
        record = self._record(at.frame.program, at.path, at[3:])
        record.compared += 1
        self.observations.compared += 1
        if agree_exactly(ours, theirs):
            return
        is_first = record.first is None
        ratio = None
        if not (is_first and self.reference.is_exact):
            ratio = rough_ratio(ours, theirs, self.tolerances.of(layer, theirs))
        if ratio is not None and (ratio <= 1 or not (is_first or rounds(layer))):
            if ratio > 1:
                record.propose(ratio, at.path, ours, theirs)
            return
        distance = self._measured(at, theirs)
        if distance is not None and distance.differs and is_first:
            # The value that counts is the one that was computed by itself.
            alone = self.reference.alone(at.frame, layer, at.output)
            if alone is not None:
                theirs, distance = alone, self._measured(at, alone)
        if distance is not None:
            self._note(at, record, theirs, distance)

    def _note(self, at: _Compared, record: OutputRecord, theirs: Any, distance: Distance) -> None:
        if record.trace is None and self.reference.is_exact:
            record.trace = self._traced(at, distance)
        if distance.differs:
            is_first = record.first is None
            record.propose(distance.ratio, at.path, at.ours, theirs, distance)
            if is_first:
                self._differs_first(at, record, distance)

    def _measured(self, at: _Compared, theirs: Any) -> Distance | None:
        """Return the distance of our value from this one of the reference, rounding taken into account."""
        frame, operation, tolerance = at.frame, at.operation, self.tolerances.of(at.layer, theirs)
        if at.layer.type == "Result":
            key = id(frame.program)
            if key not in self._sums:
                self._sums[key] = behind_sums(frame.program)
            return measure_whole(frame, at.slot, at.ours, theirs, tolerance, self._sums[key], self._rounded)
        if operation is None:
            return measure(at.ours, theirs, tolerance)

        def left() -> Any:
            return left_by(frame, operation, at.output, unknown_inputs(frame, operation, at.found.value))

        behind = None if self.reference.shares_inputs else left
        return measure_output(operation, at.output, inputs_of(frame, operation), at.ours, theirs, tolerance, behind)

    def _traced(self, at: _Compared, distance: Distance) -> ValueMismatch:
        """Return the first difference of a place, without its values; from inputs of the same bits it is made here."""
        origin: Sequence[Any] = ()
        if at.operation is not None:
            exact = Tolerances(relative=0.0, absolute=0.0)
            origin = trace_origin(at.frame, at.operation, at.output, at.found.value, at.theirs, exact)
        return ValueMismatch(at.path, at.layer, at.output, distance, None, None, *origin)

    def _record(self, program: Program, path: GraphPath, place: Place) -> OutputRecord:
        layer, output, slot = place
        key = (id(program), slot if layer.type != "Result" else -1 - slot)
        record = self.observations.records.get(key)
        if record is None:
            record = OutputRecord(layer, output, tuple(step.layer for step in path))
            self.observations.records[key] = record
            self.observations.graphs[id(program)] = id(program.graph)
        return record

    def _differs_first(self, at: _Compared, record: OutputRecord, distance: Distance) -> None:
        """The first difference of a place: where it comes from, and what the two values have to do with each other."""
        frame, found, layer, operation = at.frame, at.found, at.layer, at.operation
        ours, theirs = at.ours, at.theirs
        difference = ValueMismatch(at.path, layer, at.output, distance, ours, theirs)
        named = patterns_of_values(ours, theirs, found.earlier(layer, at.output), self.tolerances.of(layer, theirs))
        if operation is not None:
            origin = trace_origin(frame, operation, at.output, found.value, theirs, self.tolerances)
            if origin.origin is ErrorOrigin.HERE and not self.reference.is_exact and not distance.problem:
                origin = origin._replace(origin=departure(operation, ours) or ErrorOrigin.HERE)
        else:
            came_in = self._came_in(frame, at.slot)
            origin = TracedOrigin(ErrorOrigin.CARRIED if came_in else ErrorOrigin.HERE, False, ())
            named = (*self._exchanged(frame, found, difference), *named)
        if layer.type == "Result" and is_rounded_integer(ours):
            origin = origin._replace(origin=ErrorOrigin.DEPARTURE)
        difference = replace(difference, **origin._asdict(), patterns=named)
        record.first = difference
        if self.observations.first_special is None and distance.ours_special:
            self.observations.first_special = difference
        if len(self.observations.findings) < _MOST_FINDINGS:
            self._ahead.append((frame, difference, record))
        self._add(difference)

    def _measure_the_worst(self) -> None:
        for record in self.observations.records.values():
            if record.candidate is not None and record.first is not None:
                _ratio, path, ours, theirs, distance = record.candidate
                tolerance = self.tolerances.of(record.layer, theirs)
                distance = distance or measure(ours, theirs, tolerance) or record.first.measure
                record.worst = replace(record.first, path=path, measure=distance, ours=None, theirs=None, patterns=())
                record.candidate = None

    def _came_in(self, frame: Frame, slot: int) -> bool:
        """True if what feeds a Parameter differed already: a back edge's Result, or the value outside."""
        activation = frame.activation
        if activation is None:
            return False
        plan, operation = activation.plan, activation.operation
        if isinstance(plan, LoopPlan):
            if activation.iteration > 0 and slot in (results := dict(plan.carried)):
                return self._has_differed(frame.program, results[slot])
            entries: Sequence[Any] = (*plan.sliced, *plan.merged, *plan.invariant)
            fed = [(one.input, one.parameter) for one in entries]
        else:
            fed = list(plan.inputs)
        sources = [operation.inputs[index] for index, parameter in fed if parameter == slot]
        # A branch has left the stack before it is compared, so what is around it is not found there.
        programs = self.machine.compiled.programs
        outer = [program for program in programs if any(one is operation for one in program.operations)]
        return any(self._has_differed(program, source) for program in outer for source in sources)

    def _has_differed(self, program: Program, slot: int) -> bool:
        record = self.observations.records.get((id(program), slot))
        return record is not None and record.differing > 0

    def _exchanged(self, frame: Frame, found: ReferenceFrame, difference: ValueMismatch) -> tuple[str, ...]:
        """Return that a Parameter has got what the reference has in another one."""
        if not is_telling(difference.ours):
            return ()
        for other in frame.program.graph.parameters:
            theirs = None if other is difference.layer else found.value(other, 0)
            if theirs is not None and theirs.shape == difference.ours.shape and self._agree(difference, theirs):
                return (f"equals the reference in {numbered(other)} (crossed, exchanged)",)
        return ()

    def _look_ahead(self, frame: Frame, found: ReferenceFrame) -> None:
        """Note where our last iteration's value equals the reference's value of this iteration."""
        kept = []
        for waiting, difference, record in self._ahead:
            if waiting is not frame or difference.path[-1].iteration == frame.active.iteration:
                kept.append((waiting, difference, record))
                continue
            theirs = found.value(difference.layer, difference.output)
            if theirs is not None and is_telling(difference.ours) and self._agree(difference, theirs):
                index = self.observations.findings.index(difference)
                text = "equals the reference one iteration later (shifted by one: one step ahead)"
                renewed = replace(difference, patterns=(text, *difference.patterns))
                self.observations.findings[index] = record.first = renewed
        self._ahead = kept

    def _agree(self, difference: ValueMismatch, theirs: Any) -> bool:
        tolerance = self.tolerances.of(difference.layer, theirs)
        distance = measure(difference.ours, theirs, tolerance)
        return distance is None or not distance.differs

    def _add(self, finding: ValueMismatch | LoopMismatch | BranchMismatch | SideFailure) -> None:
        if len(self.observations.findings) < _MOST_FINDINGS:
            self.observations.findings.append(finding)

    # --- the end -------------------------------------------------------------------------------------------------

    def _finish(self) -> None:
        """Compare what is known only when all has run: iterations of loops in loops, and the outputs."""
        self._compare_totals()
        for ours in self.machine.outputs or ():
            self.observations.nan_in_outputs |= holds_any(NonFiniteKind.NAN, ours)
        try:
            self.observations.outputs += self._made_sure_outputs(self.reference.outputs())
        except ReferenceFailed as failure:
            self._add(SideFailure((), None, str(failure), ours=False))

    def _compare_totals(self) -> None:
        """Compare iteration counts of loops whose single runs the reference does not know.

        For these loops the reference knows only the number of iterations in all their runs.
        """
        totals = self.reference.totals()
        paths = graph_paths(self.machine.compiled.model)
        for path, layer in ((path, layer) for path, graph in paths for layer in graph.layers if layer.is_loop):
            total, record = totals.get(loop_key(path, layer)), self.observations.loops.get(id(layer))
            if total is None or (record is None and not total):
                continue
            if record is None:
                record = LoopRecord(tuple(step.layer for step in path), layer)
                self.observations.loops[id(layer)] = record
            elif all(theirs is not None for _ours, theirs, _count in record.runs):
                continue  # each run was compared
            record.total = total
            if total != record.iterations:
                ours, theirs = (LoopOutcome(number, "in all its runs") for number in (record.iterations, total))
                self._add(LoopMismatch(path, layer, None, ours, theirs))
