"""The comparison itself: our run, driven from loop to loop and iteration to iteration, beside a reference.

At each point that the two sides share, every value that was computed since is compared, in the order of execution.
Nothing is kept but the first and the worst of each place, so memory is bounded and cost grows with the run alone.
"""

from __future__ import annotations

import itertools
import sys
from collections.abc import Iterator, Mapping
from functools import partial
from operator import itemgetter
from typing import Any, Final

import numpy as np
from msgspec.structs import replace

from stepper.compare.files.causes import graph_paths
from stepper.compare.references.protocol import (
    BodyIterations,
    LoopOutcome,
    ReferenceBlock,
    ReferenceBody,
    ReferenceFailed,
    ReferenceFrame,
    ReferenceRun,
    SyncKind,
    SyncPoint,
    loop_key,
)
from stepper.compare.report import patterns
from stepper.compare.report.words import numbered
from stepper.compare.run.blocks import BlockRun, IterationBlock, finite_iterations
from stepper.compare.run.metrics import Distance, measure
from stepper.compare.run.nan_origins import NonFiniteOrigins
from stepper.compare.run.observations import (
    BranchMismatch,
    ErrorOrigin,
    LoopMismatch,
    LoopRecord,
    Observations,
    OutputComparison,
    OutputRecord,
    SideFailure,
    ValueMismatch,
)
from stepper.compare.run.origin_of_error import (
    TracedOrigin,
    departure,
    is_rounded_integer,
    trace_origin,
    unknown_inputs,
)
from stepper.compare.run.rounding import Rounded, behind_sums, inputs_of, left_by, measure_output, measure_whole, rounds
from stepper.debug.breakpoints.kinds.non_finite import holds_any
from stepper.debug.causes.cause import NonFiniteKind
from stepper.debug.reference_values import GraphPath, path_of, step_of
from stepper.engine.frames import Event, EventKind, Every, Frame, Phase
from stepper.engine.machine import Machine
from stepper.engine.program import LoopPlan, Operation, Program
from stepper.engine.run import output_names
from stepper.errors import InputError, SessionError, StepperError
from stepper.ir.model import Layer, Source
from stepper.processes.messages import ended_at_its_start
from stepper.tensors.closeness import agree_exactly, agreeing, rough_ratio
from stepper.tensors.tolerances import Tolerance, Tolerances

_MOST_FINDINGS: Final = 400
_MORE_ITERATIONS: Final = 1000
_MOST_WAITING: Final = 8
"""Points before loops and Ifs, and behind branches, at which what was computed is compared at the next point only."""

Place = tuple[Layer, int, int]
"""A layer, the index of its output, and its slot."""


class LockstepWalk:
    """One comparison. `run` it once; `observations` then has everything."""

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
        self._block: ReferenceBlock | None = None

    def run(self) -> Observations:
        """Drive our run to its end, or to where one of the sides stops."""
        self._drive()
        self._measure_the_worst()
        self.observations.non_finite = self._non_finite.in_order()
        self.observations.each_alone = self.reference.shares_inputs
        self.observations.notes = tuple(f"note: {note}" for note in self.machine.notes)
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
            tolerance = self.tolerances.of(None, other.dtype)
            distance = measure_whole(self._main, slot, ours, other, tolerance, sums, self._rounded)
            named = () if distance is None or not distance.differs else patterns.of_sequences(ours, other, tolerance)
            found.append(OutputComparison(name, distance, patterns=named))
        return found

    def _made_sure_outputs(self, theirs: Mapping[int, Any]) -> list[OutputComparison]:
        """Return our outputs beside the reference's; where these differ, those count that rest on nothing kept."""
        found = self.outputs_beside(theirs)
        if any(one.measure is not None and one.measure.differs for one in found):
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
        activation = inner.activation
        assert activation is not None
        point = SyncPoint(SyncKind.ENTERED, path_of(stack[:-1]), outer, activation.operation)
        found = self._compare(point, outer.pc)
        self._done.append(-1)
        chosen = None if found is None else found.branch
        if chosen is not None and not isinstance(activation.plan, LoopPlan) and chosen != activation.condition:
            self._add(BranchMismatch(point.path, activation.operation.layer, activation.condition, chosen))

    def _iterated(self, stack: list[Frame]) -> bool:
        frame = stack[-1]
        assert frame.activation is not None
        path = path_of(stack)
        point = SyncPoint(SyncKind.ITERATION, path, frame, frame.activation.operation)
        found = self._compare(point, len(frame.program.operations) + 1)
        self._done[-1] = -1
        if found is None and self.reference.knows_all_iterations:
            return self._may_run_on(path, frame)
        if found is not None:
            self._look_ahead(frame, found)
        return True

    def _may_run_on(self, path: GraphPath, frame: Frame) -> bool:
        """Return True if our loop may go on where the reference has ended."""
        assert frame.activation is not None
        first = self._alone.setdefault(id(frame), frame.activation.iteration)
        if frame.activation.iteration - first < _MORE_ITERATIONS + first:
            return True
        layer, count = frame.activation.operation.layer, frame.activation.iteration + 1
        found = self.reference.at(SyncPoint(SyncKind.LEFT, path, frame, frame.activation.operation))
        theirs = None if found is None else found.outcome
        self._loop_ended(path[:-1], layer, LoopOutcome(count, "", complete=False), theirs)
        self.observations.given_up = (
            f"{layer.type} '{layer.name}' does not end: it was stopped after {count} iterations"
        )
        return False

    def _left(self, frame: Frame) -> None:
        activation = frame.activation
        assert activation is not None
        path = (*path_of(self.machine.stack), step_of(frame))
        point = SyncPoint(SyncKind.LEFT, path, frame, activation.operation)
        is_loop = isinstance(activation.plan, LoopPlan)
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
        if ours and frame is not None and len(self._done) == len(stack):
            found = self._compare_quietly(frame, stack)
        unknown = () if operation is None or frame is None else unknown_inputs(frame, operation, found)
        path = path_of(stack) if stack else ()
        if path and frame is not None and frame.phase is Phase.BETWEEN:
            # It was about to begin the next iteration.
            path = (*path[:-1], path[-1]._replace(iteration=(path[-1].iteration or 0) + 1 if _begun(frame) else 0))
        self._add(SideFailure(path, None if operation is None else operation.layer, message, ours, unknown))

    def _compare_quietly(self, frame: Frame, stack: list[Frame]) -> ReferenceFrame | None:
        """Compare what our run computed before it stopped; the reference is asked as if the iteration had ended."""
        kind = SyncKind.ITERATION if len(stack) > 1 else SyncKind.ENTERED
        if kind is SyncKind.ENTERED:
            return None
        assert frame.activation is not None
        try:
            return self._compare(SyncPoint(kind, path_of(stack), frame, frame.activation.operation), frame.pc)
        except ReferenceFailed:
            return None

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
        if theirs is None:
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
                self._blocks.skip(ours.frame, len(many))
                self._count(path, ours, theirs, range(many[0], many[-1] + 1))
                continue
            for _ in many:
                for event in self._blocks.one(ours.frame):
                    self._follow(event)
        self._block = None
        return True

    def _agreeing(self, ours: IterationBlock, theirs: ReferenceBlock) -> Any:
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
                found[rows] &= agreeing(values, other, self.tolerances.of(layer, other.dtype))
        return found

    def _places_in(self, ours: BodyIterations, theirs: ReferenceBody) -> Iterator[tuple[int, Place]]:
        """Yield the places of a body of which the reference has values, each with the index of its operation."""
        for index, places in self._places_of(ours.frame):
            yield from ((index, place) for place in places if index >= 0 and theirs.knows(place[0]))

    def _count(self, path: GraphPath, ours: IterationBlock, theirs: ReferenceBlock, rows: range) -> None:
        """Count iterations in which all agrees: places in the order in which they first ran."""
        counted: list[tuple[tuple[int, ...], BodyIterations, Place, int]] = []
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
                        self._compare_value(point.path, point.frame, found, place)

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

    def _compare_value(self, path: GraphPath, frame: Frame, found: ReferenceFrame, place: Place) -> None:
        layer, output, slot = place
        ours = frame.values[slot]
        theirs = None if ours is None else found.value(layer, output)
        if theirs is None:
            return
        record = self._record(frame.program, path, place)
        record.compared += 1
        self.observations.compared += 1
        if agree_exactly(ours, theirs):
            return
        tolerance = self.tolerances.of(layer, np.asarray(theirs).dtype)
        is_first = record.first is None
        ratio = None if is_first and self.reference.is_exact else rough_ratio(ours, theirs, tolerance)
        if ratio is not None and (ratio <= 1 or not (is_first or rounds(layer))):
            if ratio > 1:
                record.propose(ratio, path, ours, theirs)
            return
        distance = self._measured(frame, found, place, ours, theirs, tolerance)
        if distance is not None and distance.differs and record.first is None:
            theirs, distance = self._made_sure(frame, found, place, theirs, distance)
        if distance is None:
            return
        if record.trace is None and self.reference.is_exact:
            record.trace = self._traced(path, frame, found, place, distance)
        if distance.differs:
            record.propose(distance.ratio, path, ours, theirs, distance)
            if record.first is None:
                self._differs_first(path, frame, found, place, record, distance)

    def _made_sure(
        self, frame: Frame, found: ReferenceFrame, place: Place, theirs: Any, distance: Distance
    ) -> tuple[Any, Distance | None]:
        """Return the reference's value that counts for a place that differs, and its distance."""
        layer, output, slot = place
        alone = self.reference.alone(frame, layer, output)
        if alone is None:
            return theirs, distance
        ours, tolerance = frame.values[slot], self.tolerances.of(layer, np.asarray(alone).dtype)
        return alone, self._measured(frame, found, place, ours, alone, tolerance)

    def _measured(
        self, frame: Frame, found: ReferenceFrame, place: Place, ours: Any, theirs: Any, tolerance: Tolerance
    ) -> Distance | None:
        """Return the distance of a place's value from the reference's, rounding taken into account."""
        layer, output, slot = place
        program = frame.program
        if layer.type == "Result":
            if id(program) not in self._sums:
                self._sums[id(program)] = behind_sums(program)
            return measure_whole(frame, slot, ours, theirs, tolerance, self._sums[id(program)], self._rounded)
        operation = _operation(program, slot)
        if operation is None:
            return measure(ours, theirs, tolerance)
        behind = None
        if not self.reference.shares_inputs:
            behind = partial(_left_by_unknown, frame, operation, output, found)
        return measure_output(operation, output, inputs_of(frame, operation), ours, theirs, tolerance, behind)

    def _traced(
        self, path: GraphPath, frame: Frame, found: ReferenceFrame, place: Place, distance: Distance
    ) -> ValueMismatch:
        """Return the first difference of a place, without its values; from inputs of the same bits it is made here."""
        layer, output, slot = place
        difference = ValueMismatch(path, layer, output, distance, None, found.value(layer, output))
        operation = _operation(frame.program, slot)
        if operation is not None:
            origin = trace_origin(frame, operation, output, found, difference, Tolerances(relative=0.0, absolute=0.0))
            difference = replace(difference, **origin._asdict())
        return replace(difference, theirs=None)

    def _record(self, program: Program, path: GraphPath, place: Place) -> OutputRecord:
        layer, output, slot = place
        key = (id(program), slot if layer.type != "Result" else -1 - slot)
        record = self.observations.records.get(key)
        if record is None:
            record = OutputRecord(layer, output, tuple(step.layer for step in path))
            self.observations.records[key] = record
            self.observations.graphs[id(program)] = id(program.graph)
        return record

    def _differs_first(
        self,
        path: GraphPath,
        frame: Frame,
        found: ReferenceFrame,
        place: Place,
        record: OutputRecord,
        distance: Distance,
    ) -> None:
        """The first difference of a place: where it comes from, and what the two values have to do with each other."""
        layer, output, slot = place
        ours, theirs = frame.values[slot], found.value(layer, output)
        difference = ValueMismatch(path, layer, output, distance, ours, theirs)
        named = patterns.of_values(
            ours, theirs, found.earlier(layer, output), self.tolerances.of(layer, np.asarray(theirs).dtype)
        )
        operation = _operation(frame.program, slot)
        if operation is not None:
            origin = trace_origin(frame, operation, output, found, difference, self.tolerances)
            if origin.origin is ErrorOrigin.HERE and not self.reference.is_exact and not distance.problem:
                origin = origin._replace(origin=departure(operation, ours) or ErrorOrigin.HERE)
        else:
            origin = TracedOrigin(ErrorOrigin.CARRIED if self._came_in(frame, slot) else ErrorOrigin.HERE, False, ())
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
                tolerance = self.tolerances.of(record.layer, np.asarray(theirs).dtype)
                distance = distance or measure(ours, theirs, tolerance) or record.first.measure
                record.worst = replace(record.first, path=path, measure=distance, ours=None, theirs=None, patterns=())
                record.candidate = None

    def _came_in(self, frame: Frame, slot: int) -> bool:
        """True if what feeds a Parameter differed already: a back edge's Result, or the value outside."""
        activation = frame.activation
        if activation is None:
            return False
        plan, outer = activation.plan, self.machine.stack[-2] if len(self.machine.stack) > 1 else None
        if isinstance(plan, LoopPlan):
            if activation.iteration > 0:
                for parameter, result in plan.carried:
                    if parameter == slot:
                        return self._has_differed(frame.program, result)
            fed = [(one.input, one.parameter) for one in plan.sliced]
            fed += [(one.input, one.parameter) for one in plan.merged]
            fed += [(one.input, one.parameter) for one in plan.invariant]
        else:
            fed = list(plan.inputs)
        sources = [activation.operation.inputs[index] for index, parameter in fed if parameter == slot]
        return outer is not None and any(self._has_differed(outer.program, source) for source in sources)

    def _has_differed(self, program: Program, slot: int) -> bool:
        record = self.observations.records.get((id(program), slot))
        return record is not None and record.differing > 0

    def _exchanged(self, frame: Frame, found: ReferenceFrame, difference: ValueMismatch) -> tuple[str, ...]:
        """Return that a Parameter has got what the reference has in another one."""
        if not patterns.is_telling(difference.ours):
            return ()
        for other in frame.program.graph.parameters:
            theirs = None if other is difference.layer else found.value(other, 0)
            if theirs is not None and theirs.shape == difference.ours.shape and self._agree(difference, theirs):
                return (f"is what the reference has in {numbered(other)} (crossed, exchanged)",)
        return ()

    def _look_ahead(self, frame: Frame, found: ReferenceFrame) -> None:
        """Note where what differed in the iteration before is what the reference has in this one."""
        assert frame.activation is not None
        kept = []
        for waiting, difference, record in self._ahead:
            if waiting is not frame or difference.path[-1].iteration == frame.activation.iteration:
                kept.append((waiting, difference, record))
                continue
            theirs = found.value(difference.layer, difference.output)
            if theirs is not None and patterns.is_telling(difference.ours) and self._agree(difference, theirs):
                index = self.observations.findings.index(difference)
                text = "is what the reference has one iteration later (shifted by one: one step ahead)"
                renewed = replace(difference, patterns=(text, *difference.patterns))
                self.observations.findings[index] = record.first = renewed
        self._ahead = kept

    def _agree(self, difference: ValueMismatch, theirs: Any) -> bool:
        tolerance = self.tolerances.of(difference.layer, np.asarray(theirs).dtype)
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
        """Compare the iterations of loops of which the reference knows no single run, only how many in all its runs."""
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


def _begun(frame: Frame) -> bool:
    return frame.activation is not None and frame.activation.iteration >= 0


def _operation(program: Program, slot: int) -> Operation | None:
    index = program.computed_at.get(slot)
    return None if index is None else program.operations[index]


def _left_by_unknown(frame: Frame, operation: Operation, output: int, found: ReferenceFrame) -> Any:
    return left_by(frame, operation, output, unknown_inputs(frame, operation, found))
