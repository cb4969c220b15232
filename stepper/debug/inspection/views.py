"""Views of a stop, and results of questions, as plain frozen data.

Arrays are read-only views of the run's own; nothing here changes later. Views are made in inspecting.py, put into lines
in text.py. A view of one moment stays true when the run continues.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import StrEnum
from typing import ClassVar, TypeAlias

import numpy as np

from stepper.debug.breakpoints.breakpoint import BreakDescription, BreakKind, Breakpoint
from stepper.debug.causes.cause import Enclosure, Verdict
from stepper.debug.causes.loop_ends import ConditionLimit, never_ends
from stepper.debug.stop import Mark, iteration_of
from stepper.element_types import Array, Indices, Shape, read_only
from stepper.engine import transitions
from stepper.engine.frames import Frame, Frames, LoopRun, Phase
from stepper.engine.loops import ConcatenatedOutput, EndReason, OutputRole, Role, Scan, SliceWalk
from stepper.engine.machine import Machine
from stepper.engine.program import CompiledModel, LoopPlan, Operation, Program
from stepper.engine.rules import Rules
from stepper.html_tables import html_table
from stepper.ir.model import Graph, Layer, Slicing, Source
from stepper.ops.operands import form_text
from stepper.query.address_resolution import Target, address_of
from stepper.records import Brief, OneLine, Record

Evaluated: TypeAlias = Array | float | int | bool | str | Indices
"""Result of an expression.

A tensor of rank 1 or more is a read-only array, a single number is a Python number, a type is its name, a shape is a
tuple.
"""


class Which(StrEnum):
    """Choice of moments: moments of the whole run, or counted from the present."""

    FIRST = "first"
    NEXT = "next"
    PREVIOUS = "previous"
    LAST = "last"
    ALL = "all"


class FoundMoment(Record):
    """Position of the run: `goto_tick(tick)` leads there. `iteration` is the innermost loop's, None outside."""

    tick: int
    iteration: int | None
    place: str


class Found(OneLine, eq=True):
    """Moments that were found. `asked` counts the moments at which the expression was evaluated.

    `more` says that there were more than the limit; `stopped` why the run did not get to its end: a pause, an error,
    the tick that was set; empty where it did, or was not asked to. `failures` counts the moments at which the
    expression had no value, `failure` is the first reason.
    """

    moments: tuple[FoundMoment, ...]
    asked: int
    more: bool
    stopped: str
    failures: int
    failure: str


def cell_text(array: Array) -> str:
    """Return type and shape of a tensor and some of its numbers, as a cell of a table shows them."""
    return f"{form_text(array)} {np.array2string(array.reshape(-1), threshold=8)}"


class Series(OneLine):
    """Hold values over iterations; `values[k]` is the value in iteration `iterations[k]`.

    Iterations in which nothing computed the value (the other side of an If ran) are left out. `step` is 1, or more if
    there were too many iterations to keep: every `step`-th of the `total` that had a value. `stopped` says why the run
    did not get through all iterations that were asked for: a pause, or an error; empty where it did. `in_branch`: the
    value is a value of an If, which may leave iterations out. `outer` are the loops around the loop of the iterations,
    from the outside inwards, each with the iteration in which this run is.
    """

    name: str
    iterations: Indices
    values: tuple[Array, ...]
    step: int
    stopped: str
    total: int
    in_branch: bool = False
    outer: tuple[Enclosure, ...] = ()

    def _repr_html_(self) -> str:
        """Return a table of the values, for notebooks."""
        pairs = zip(self.iterations, self.values, strict=True)
        rows = [(f"@{at}", cell_text(one)) for at, one in pairs]
        return html_table([*rows, *([("", self.stopped)] if self.stopped else [])], self.name)


class PreviousValue(OneLine):
    """A value now and one iteration before; `change` is the largest difference, None where shapes differ.

    `now` is None where it was not computed yet in the present iteration.
    """

    iteration: int
    now: Array | None
    before: Array
    change: float | None


class Origin(StrEnum):
    """Origin of a value."""

    CONSTANT = "constant"
    FOLDED = "computed once, from constants"
    PARAMETER = "parameter"
    OPERATION = "operation"
    NOTHING = "not connected"


class ValueView(OneLine):
    """Hold a value at a stop; `name` is its name.

    `layer` and `output` compute it, `source` says that in words. `array` is None where there is no value now; `absent`
    then says why.
    """

    name: str
    layer: Layer | None
    output: int
    origin: Origin
    source: str
    array: Array | None
    absent: str

    def _repr_html_(self) -> str:
        """Return the value with what computes it, for notebooks."""
        return html_table([self.cells])

    @property
    def cells(self) -> tuple[str, str, str]:
        """Return a row of a table: its name, what computes it, and its numbers or why there are none."""
        return self.name, self.source, self.absent if self.array is None else cell_text(self.array)


class OperationView(OneLine):
    """An operation with its inputs and outputs; `index` is its place in the order of its graph.

    `computed_by` is the partner that computes it, in words; empty for a kernel of our own.
    """

    layer: Layer
    index: int
    inputs: tuple[ValueView, ...]
    outputs: tuple[ValueView, ...]
    computed_by: str


class LevelView(OneLine):
    """Describe a frame of the stack.

    `kind` is model, TensorIterator, Loop or If; `count` is such as `17 of at most 24`. `word` is the word for an
    iteration: call, or iteration. `run` is the run of the innermost loop at or around the frame, None outside of every
    loop.
    """

    depth: int
    kind: str
    name: str
    path: str
    iteration: int | None
    count: str
    phase: str
    run: LoopRun | None
    word: str


class TripView(OneLine, eq=True):
    """How often a loop runs: `maximum` (None: unlimited), iterations `executed` so far, `total` where it is known.

    `origin` says where the maximum comes from; `sentence` why the loop ended, or what can still end it. `by_condition`
    is the limit that the condition sets, where it compares a counter; `verdict` what made it false where that ended
    the loop.
    """

    maximum: int | None
    executed: int
    total: int | None
    origin: str
    ended: EndReason | None
    sentence: str
    by_condition: ConditionLimit | None
    verdict: Verdict | None

    @property
    def limit(self) -> int | None:
        """At most so many iterations, whatever sets the limit."""
        known = [self.maximum, None if self.by_condition is None else self.by_condition.iterations]
        return min((limit for limit in known if limit is not None), default=None)


class ConditionView(OneLine):
    """Describe the condition of a Loop or an If.

    `value` is the value that counts now, `origin` its source. `upcoming` is the value that the body's Result has
    already in an iteration that is not closed yet. `is_constant`: the body's condition is the same in every iteration.
    """

    value: bool
    origin: str
    upcoming: bool | None
    sentence: str
    is_constant: bool = False


class SliceView(OneLine, eq=True):
    """The slice that an iteration gets of an input of `extent` elements along the axis."""

    iteration: int
    extent: int
    walk: SliceWalk

    @property
    def axis(self) -> int:
        """Return the axis along which the input is sliced."""
        return self.walk.axis

    @property
    def begin(self) -> int:
        """Return the first element of the slice."""
        return self.walk.range(self.iteration)[0]

    @property
    def end(self) -> int:
        """Return the element behind the last one of the slice."""
        return self.walk.range(self.iteration)[1]

    @property
    def count(self) -> int:
        """The number of slices in all."""
        return self.walk.count


class InputView(OneLine):
    """Describe an input of a port map.

    `input` is the index of the layer's input, None where nothing outside is connected. `why` names the rule for the
    present iteration. `slice` is the slice of a sliced input, None where it has none (left).
    """

    direction: ClassVar = "input"

    role: Role
    input: int | None
    line: int
    outer: ValueView | None
    inner: ValueView
    slicing: Slicing | None
    slice: SliceView | None
    why: str

    @property
    def port(self) -> int | None:
        """Return the index of the layer's input."""
        return self.input


class OutputView(OneLine):
    """An output of a port map. `output` is the index of the layer's output, None where it leads to none."""

    direction: ClassVar = "output"
    slicing: ClassVar = None
    slice: ClassVar = None

    role: OutputRole
    output: int | None
    line: int
    inner: ValueView
    outer: ValueView | None
    why: str

    @property
    def port(self) -> int | None:
        """Return the index of the layer's output."""
        return self.output


class BackEdgeView(OneLine):
    """Describe a back edge.

    `came_in` is the value that the Parameter got in this iteration, `goes_out` the present value of the Result.
    `comes_next` is the value that the Parameter gets in the next iteration, None where that is not computed yet or
    there will be none. `change` is the largest difference of `goes_out` from `came_in`, None where they differ in
    shape. `marks` are the marks that hold: unchanged, shape changed, type changed, NaN, Inf. Unless differences are
    asked for, there are neither `change` nor unchanged, NaN and Inf. `counts` is False for an edge that has no effect;
    `why` then says so.
    """

    result: ValueView
    parameter: ValueView
    line: int
    came_in: Array | None
    goes_out: Array | None
    comes_next: Array | None
    change: float | None
    marks: tuple[str, ...]
    counts: bool
    why: str


class ScanView(OneLine):
    """A concatenated output while it grows: `pieces` so far, `shape` now and, where that is known, `final_shape`.

    A final shape that only the file tells, with no piece to show it, is `declared`; unknown dimensions are negative.
    Nothing is concatenated before `concatenated()` is called.
    """

    output: int
    line: int
    result: str
    axis: int
    order: str
    pieces: int
    shape: Shape | None
    final_shape: Shape | None
    declared: bool
    why: str
    _scan: Scan
    _plan: LoopPlan
    _entry: ConcatenatedOutput
    _rules: Rules

    @property
    def slicing(self) -> Slicing:
        """Return how the pieces are joined."""
        return self._entry.slicing

    def piece(self, iteration: int) -> Array:
        """Return what one iteration gave. IndexError where there is no such piece."""
        return self._scan.piece(iteration)

    def concatenated(self) -> Array:
        """Return all pieces so far as one tensor, as the output would be if the loop ended now.

        Raise KernelError where the pieces cannot be joined.
        """
        joined: Array = transitions.concatenated_output(
            self._plan, self._entry, self._scan, self._rules, lambda _text: None
        )
        return joined


class LoopView(OneLine):
    """Describe a run of a TensorIterator or Loop. `condition` is None for a TensorIterator."""

    level: LevelView
    layer: Layer
    trip: TripView
    condition: ConditionView | None
    inputs: tuple[InputView, ...]
    outputs: tuple[OutputView, ...]
    back_edges: tuple[BackEdgeView, ...]
    scans: tuple[ScanView, ...]

    @property
    def ports(self) -> tuple[InputView | OutputView, ...]:
        """Return the port map."""
        return *self.inputs, *self.outputs


class BranchView(OneLine):
    """Describe a run of a side of an If; `side` is then_body or else_body."""

    level: LevelView
    layer: Layer
    condition: ConditionView
    side: str
    inputs: tuple[InputView, ...]
    outputs: tuple[OutputView, ...]

    @property
    def ports(self) -> tuple[InputView | OutputView, ...]:
        """Return the port map."""
        return *self.inputs, *self.outputs


class StopView(OneLine):
    """Everything that a stop shows; `levels` from the model's own graph inwards, empty at the end of the run.

    `done` was just executed, `next` comes next, both in the innermost frame. `loop` is the innermost loop, `branch` the
    innermost frame where that is a side of an If. `outputs` are the model's, at the end of the run.
    """

    tick: int
    place: str
    levels: tuple[LevelView, ...]
    done: OperationView | None
    next: OperationView | None
    loop: LoopView | None
    branch: BranchView | None
    outputs: tuple[Array, ...] | None

    def _repr_html_(self) -> str:
        """Return the frames, the operations with their values, and what the loop carries, for notebooks."""
        rows: list[tuple[str, ...]] = [(level.kind, level.name, level.count, level.phase) for level in self.levels]
        for word, one in (("done", self.done), ("next", self.next)):
            if one is not None:
                rows.append((word, f"{one.layer.type} '{one.layer.name}'"))
                rows += [("input", *value.cells) for value in one.inputs]
                rows += [("output", *value.cells) for value in one.outputs]
        for edge in () if self.loop is None else self.loop.back_edges:
            rows.append(("carried", *edge.parameter.cells))
        rows += [("output", str(index), cell_text(array)) for index, array in enumerate(self.outputs or ())]
        return html_table(rows, f"tick {self.tick}, {self.place}")


# --- values and operations of a frame -------------------------------------------------------------------------------


def value_view(frame: Frame, source: Source | None, name: str = "") -> ValueView:
    """Return the value of an output of a layer in this frame; known by the layer's name unless another is given."""
    if source is None:
        return ValueView(name, None, 0, Origin.NOTHING, "not connected", None, "not connected")
    program = frame.program
    layer = program.graph.by_id[source.layer]
    slot = program.slots.get((source.layer, source.output), -1)
    return ValueView(
        name=name or layer.name,
        layer=layer,
        output=source.output,
        origin=_origin_of(program, layer, slot),
        source=source_text(layer, source.output),
        array=frame.current(slot),
        absent=frame.why_absent(slot),
    )


def _origin_of(program: Program, layer: Layer, slot: int) -> Origin:
    if layer.type == "Constant":
        return Origin.CONSTANT
    if layer.type == "Parameter":
        return Origin.PARAMETER
    return Origin.OPERATION if slot in program.computed_at else Origin.FOLDED


def source_text(layer: Layer, output: int) -> str:
    """Return the layer that computes a value, in words: `LSTMCell 'cell', output 1`."""
    port = f", output {output}" if len(layer.outputs) > 1 else ""
    return f"{layer.type} '{layer.name}'{port}"


def result_view(frame: Frame, result: Layer) -> ValueView:
    """Return the value of a Result, known by the Result's name."""
    return value_view(frame, frame.program.graph.sources[result.id][0], result.name)


def input_view(frame: Frame, layer: Layer, index: int) -> ValueView:
    """Return the value at an input of a layer."""
    sources = frame.program.graph.sources[layer.id]
    return value_view(frame, sources[index] if index < len(sources) else None)


def operation_view(frame: Frame, index: int) -> OperationView:
    """Return the operation at this place in the order of the frame's graph."""
    operation: Operation = frame.program.operations[index]
    layer = operation.layer
    return OperationView(
        layer=layer,
        index=index,
        inputs=tuple(value_view(frame, source) for source in frame.program.graph.sources[layer.id]),
        outputs=tuple(
            value_view(
                frame, Source(layer.id, output), layer.name if len(layer.outputs) == 1 else f"{layer.name}:{output}"
            )
            for output in range(len(layer.outputs))
        ),
        computed_by=operation.computed_by,
    )


# --- frames ---------------------------------------------------------------------------------------------------------


class FrameView(Brief):
    """Describe a frame at one moment; `depth` 0 is the model's own graph.

    `last` is the index of the operation that was executed last in this iteration (-1: none yet). `running` is the index
    of the loop or If that is under way in it. `closed`: the iteration is over, or has not begun.
    """

    unshown: ClassVar = ("program", "_frame")

    depth: int
    program: Program
    iteration: int | None
    last: int
    running: int | None
    closed: bool
    _frame: Frame

    @property
    def graph(self) -> Graph:
        """Return the graph that runs in it."""
        return self.program.graph

    @property
    def layers(self) -> tuple[Layer, ...]:
        """Return the operations in the order of execution."""
        return self.program.layers

    @property
    def moment(self) -> int:
        """Return the operation at which the frame stands: the one under way, else the one executed last; -1: before
        all.
        """
        return self.last if self.running is None else self.running

    def operation(self, index: int) -> OperationView:
        """Return an operation with its inputs and outputs as they are now."""
        return operation_view(self._frame, index)

    def output(self, index: int, output: int = 0) -> ValueView:
        """Return what an operation gave in this iteration."""
        return value_view(self._frame, Source(self.program.operations[index].layer.id, output))

    def value(self, layer: int, output: int = 0) -> ValueView:
        """Return the value of a layer's output, by the layer's id: a Parameter, a Constant or an operation."""
        return value_view(self._frame, Source(layer, output))

    def held(self, index: int, output: int = 0) -> Array | None:
        """Return the value that is there: of this iteration, or of the one before if the operation has not run yet."""
        outputs = self.program.operations[index].outputs
        value = self._frame.values[outputs[output]] if output < len(outputs) else None
        return None if value is None else read_only(value)

    def kept(self, layer: int, output: int = 0) -> Array | None:
        """Return the same by a layer's id: what its output holds, of this iteration or still of the one before."""
        slot = self.program.slots.get((layer, output), -1)
        value = self._frame.values[slot] if slot >= 0 else None
        return None if value is None else read_only(value)

    def is_done(self, index: int) -> bool:
        """True if the operation has run in this iteration."""
        return index <= self.last

    def address(self, index: int, compiled: CompiledModel) -> str:
        """Return how the operation is written at the prompt, wherever the run stands."""
        layer = self.program.operations[index].layer
        text = self.address_of(layer, 0, compiled)
        return text.rsplit(":", 1)[0] if len(layer.outputs) > 1 else text

    def address_of(self, layer: Layer, output: int, compiled: CompiledModel) -> str:
        """Return how an output of a layer of this graph is written at the prompt, wherever the run stands."""
        slot = self.program.slots.get((layer.id, output), -1)
        return str(
            address_of(Target(self.program, layer, output, slot, layer, (None,) * len(self.program.path)), compiled)
        )


def frame_views(stack: Frames) -> tuple[FrameView, ...]:
    """Return all frames of a stack, from the model's own graph inwards."""
    return tuple(_frame_view(stack, depth) for depth in range(len(stack)))


def _frame_view(stack: Frames, depth: int) -> FrameView:
    frame = stack[depth].copy()
    running = frame.phase is Phase.RUNNING
    nested = depth < len(stack) - 1
    iteration = iteration_of(frame)
    began = frame.activation is None or iteration is not None or running
    last = frame.pc - 1 if running else (len(frame.program.operations) - 1 if began else -1)
    return FrameView(depth, frame.program, iteration, last, frame.pc if nested else None, not running, frame)


# --- breakpoints, progress ---------------------------------------------------------------------------------


MOST_PLACES = 50
"""Most places of a breakpoint that are listed one by one."""


class BreakView(Brief):
    """A breakpoint; `places` are the operations at which it sits, as (id of the program, index).

    Of one that waits for something about values wherever it happens there are none. `first_places` are the first of
    them with their programs, as a Check has them. `ignored` is how many moments of those that it is to ignore have gone
    by.
    """

    unshown: ClassVar = ("places", "first_places")

    number: int
    kind: BreakKind
    text: str
    sentence: str
    conditional: bool
    enabled: bool
    hits: int
    ignored: int
    description: BreakDescription
    places: frozenset[tuple[int, int]]
    first_places: tuple[tuple[Program, int], ...]

    def is_at(self, program: Program, index: int) -> bool:
        """True if it sits at this operation."""
        return (id(program), index) in self.places


def break_views(breakpoints: Iterable[Breakpoint]) -> tuple[BreakView, ...]:
    """Return all breakpoints of a run."""
    return tuple(_break_view(breakpoint) for breakpoint in breakpoints)


def _break_view(breakpoint: Breakpoint) -> BreakView:
    description = breakpoint.description
    checks = breakpoint.checks if description.kind is not BreakKind.WHEN else ()
    return BreakView(
        number=breakpoint.number,
        kind=description.kind,
        text=description.text,
        sentence=str(description),
        conditional=bool(description.condition or description.hit),
        enabled=description.enabled,
        hits=breakpoint.hits,
        ignored=breakpoint.counts[1].seen,
        description=description,
        places=frozenset((id(check.program), check.index) for check in checks),
        first_places=tuple((check.program, check.index) for check in checks[:MOST_PLACES]),
    )


class Glance(Record):
    """Place of a run while it runs: integers that were read one after another.

    The integers may belong to near moments. `loop` is the innermost loop, `endless` the outermost loop that nothing can
    end.
    """

    tick: int
    iterations: tuple[int | None, ...]
    loop: Layer | None
    endless: Layer | None

    @property
    def iteration(self) -> int | None:
        """Return the iteration of the innermost loop; None outside of loops."""
        return next((one for one in reversed(self.iterations) if one is not None), None)


def glance(machine: Machine) -> Glance:
    """Return how far a machine has come; may be asked from any thread while another one runs it, and never waits."""
    tick, stack = machine.tick, list(machine.stack)
    running = [frame.activation for frame in stack if frame.activation is not None]
    loops = [one for one in running if one.operation.layer.is_loop]
    endless = next((one.operation.layer for one in loops if never_ends(one)), None)
    loop = loops[-1].operation.layer if loops else None
    return Glance(tick, tuple(_iteration(frame) for frame in stack), loop, endless)


def _iteration(frame: Frame) -> int | None:
    return frame.active.iteration if frame.loop else None


# --- variables and marks --------------------------------------------------------------------------------------------


class MarkView(Record):
    """Describe a moment with a name; `is_here`: it is in the present branch, so one can go there."""

    name: str
    tick: int
    branch: str
    is_here: bool


def mark_views(marks: Mapping[str, Mark], here: str) -> tuple[MarkView, ...]:
    """Return all marks, in the order of time; `here` is the present branch."""
    sorted_marks = sorted(marks.items(), key=lambda item: (item[1].tick, item[0]))
    return tuple(MarkView(name, mark.tick, mark.branch, mark.branch == here) for name, mark in sorted_marks)
