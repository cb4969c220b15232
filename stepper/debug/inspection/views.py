"""Views of a stop, as plain frozen data. Arrays are read-only views of the run's own; nothing here changes later.

Made by inspect.py, put into lines by text.py. A view of one moment stays true when the run goes on.
"""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, NamedTuple

from msgspec import Struct

from stepper.debug.results import cell_text
from stepper.element_types import Array
from stepper.engine import transitions
from stepper.engine.frames import LoopRun
from stepper.engine.loops import ConcatenatedOutput, EndReason, OutputRole, Role, Scan, SliceWalk
from stepper.engine.program import LoopPlan
from stepper.engine.rules import Rules
from stepper.html_tables import html_table
from stepper.ir.model import Layer, Slicing
from stepper.records import OneLine

if TYPE_CHECKING:
    from stepper.debug.causes.cause import Verdict


class Origin(StrEnum):
    """Origin of a value."""

    CONSTANT = "constant"
    FOLDED = "computed once, from constants"
    PARAMETER = "parameter"
    OPERATION = "operation"
    NOTHING = "not connected"


class ValueView(OneLine, Struct, frozen=True, eq=False):
    """A value at a stop. `layer` and `output` compute it, `source` says that in words; `name` is what it is known by.

    `array` is None where there is no value now; `absent` then says why.
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


class OperationView(OneLine, Struct, frozen=True, eq=False):
    """An operation with its inputs and outputs; `index` is its place in the order of its graph.

    `computed_by` is the partner that computes it, in words; empty for a kernel of our own.
    """

    layer: Layer
    index: int
    inputs: tuple[ValueView, ...]
    outputs: tuple[ValueView, ...]
    computed_by: str = ""


class LevelView(OneLine, Struct, frozen=True, eq=False):
    """One frame of the stack. `kind` is model, TensorIterator, Loop or If; `count` is such as `17 of at most 24`:
    `total` are all iterations where that is known, `limit` is how many there may be at most, None without any. `word`
    is what an iteration is called: call, or iteration.

    `under_way` is the loop or If that runs in it, for every level but the innermost. `run` is that of the innermost
    loop at or around it, None outside of every loop.
    """

    depth: int
    kind: str
    name: str
    path: str
    iteration: int | None
    count: str
    phase: str
    under_way: Layer | None
    run: LoopRun | None = None
    total: int | None = None
    limit: int | None = None
    word: str = "iteration"


class ConditionLimit(NamedTuple):
    """After how many iterations a condition ends a loop at the latest, and by which comparison: `i < 24`."""

    iterations: int
    text: str


class TripView(OneLine, Struct, frozen=True):
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
    by_condition: ConditionLimit | None = None
    verdict: Verdict | None = None

    @property
    def limit(self) -> int | None:
        """At most so many iterations, whatever sets the limit."""
        known = [self.maximum, None if self.by_condition is None else self.by_condition.iterations]
        return min((limit for limit in known if limit is not None), default=None)


class ConditionView(OneLine, Struct, frozen=True, eq=False):
    """A Loop's condition, or that of an If: `value` is what counts now, `origin` where that comes from.

    `upcoming` is what the body's Result says already in an iteration that is not closed yet. `is_constant`: the body's
    is the same in every iteration.
    """

    value: bool
    origin: str
    upcoming: bool | None
    sentence: str
    is_constant: bool = False


class SliceView(OneLine, Struct, frozen=True):
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


class InputView(OneLine, Struct, frozen=True, eq=False):
    """An input of a port map. `input` is the index of the layer's input, None where nothing outside is connected.

    `why` names the rule for the present iteration. `slice` is that of a sliced input, None where it has none (left).
    """

    role: Role
    input: int | None
    line: int
    outer: ValueView | None
    inner: ValueView
    slicing: Slicing | None
    slice: SliceView | None
    why: str


class OutputView(OneLine, Struct, frozen=True, eq=False):
    """An output of a port map. `output` is the index of the layer's output, None where it leads to none."""

    role: OutputRole
    output: int | None
    line: int
    inner: ValueView
    outer: ValueView | None
    why: str


class BackEdgeView(OneLine, Struct, frozen=True, eq=False):
    """A back edge. `came_in` is what the Parameter got in this iteration, `goes_out` what the Result is now.

    `comes_next` is what the Parameter gets in the next iteration, None where that is not computed yet or there will be
    none. `change` is the largest difference of `goes_out` from `came_in`, None where they differ in shape. `marks` are
    those of unchanged, shape changed, type changed, NaN, Inf that hold. Without differences asked for there are neither
    `change` nor unchanged, NaN and Inf. `counts` is False for an edge that has no effect; `why` then says so.
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

    @property
    def collects_output(self) -> bool:
        """True if the edge only carries an output that grows: its Result is a Concat, and the dimension is open."""
        result, parameter = self.result.layer, self.parameter.layer
        if result is None or parameter is None or result.type != "Concat":
            return False
        if self.came_in is not None and self.goes_out is not None:
            return bool(self.came_in.shape != self.goes_out.shape)
        return bool(result.outputs) and -1 in result.outputs[0].dims


class ScanView(OneLine, Struct, frozen=True, eq=False):
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
    shape: tuple[int, ...] | None
    final_shape: tuple[int, ...] | None
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


class LoopView(OneLine, Struct, frozen=True, eq=False):
    """One run of a TensorIterator or Loop. `condition` is None for a TensorIterator."""

    level: LevelView
    layer: Layer
    trip: TripView
    condition: ConditionView | None
    inputs: tuple[InputView, ...]
    outputs: tuple[OutputView, ...]
    back_edges: tuple[BackEdgeView, ...]
    scans: tuple[ScanView, ...]

    @property
    def is_last_by_count(self) -> bool:
        """True if trip count or slices end the loop after the iteration that runs, whatever its condition says."""
        trip = self.trip
        return trip.ended is None and trip.maximum is not None and trip.executed + 1 >= trip.maximum

    @property
    def collected(self) -> set[int]:
        """The ids of the Parameters that only carry an output that grows."""
        edges = (edge for edge in self.back_edges if edge.collects_output)
        return {edge.parameter.layer.id for edge in edges if edge.parameter.layer is not None}


class BranchView(OneLine, Struct, frozen=True, eq=False):
    """One run of a side of an If; `side` is then_body or else_body."""

    level: LevelView
    layer: Layer
    condition: ConditionView
    side: str
    inputs: tuple[InputView, ...]
    outputs: tuple[OutputView, ...]


class StopView(OneLine, Struct, frozen=True, eq=False):
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
