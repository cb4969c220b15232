"""A value that is looked at: which one, which part of it, and what is asked of it in the background."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from stepper.debug.debugger import Debugger
from stepper.debug.moments.moment import Moment
from stepper.element_types import Array
from stepper.engine.program import legend
from stepper.errors import StepperError, UsageError
from stepper.ops.operands import form_text
from stepper.query.address_syntax import parse_address
from stepper.records import Record
from stepper.tensors.difference import signed_differences
from stepper.tensors.histories import MOST_ELEMENTS
from stepper.tensors.planes import Plane, is_numeric, plane_of, readable
from stepper.tensors.statistics import Steps, finish
from stepper.tensors.surveys import CellStatistic, Survey, in_cells, next_where, previous_where, survey
from stepper.wording import counted
from stepper_tui.paint.rows import carried_name, layer_name, operation_names
from stepper_tui.state import State
from stepper_tui.worker.driver import Driver

if TYPE_CHECKING:
    from stepper.debug.inspection.views import FrameView, ValueView
    from stepper.engine.program import CompiledModel, Program
    from stepper.ir.model import Layer


class Subject(Record, eq=False):
    """A value of an operation: `place` counts its outputs, then its inputs. Without a program, outputs of the model.

    With a `layer` it is the output of that, such as a Parameter, and `operation` has no meaning.
    """

    program: Program | None
    operation: int
    place: int
    layer: Layer | None = None

    @property
    def key(self) -> tuple[int, int, int, int]:
        """Tells it from others."""
        if self.layer is not None:
            return id(self.program), -1, 0, self.layer.id
        return id(self.program), self.operation, self.place, -1


class ShownValue(Record, eq=False):
    """A subject at a moment. `array` is None where there is none; `is_old`: it is of the iteration before.

    `role` says what it is of its operation; `why` why there is none, or why it is old. `address` is how it is written
    at the prompt (empty for outputs of the model), `run` the place of its loop. `source` is the id of the layer that
    computes it, and which of its outputs it is.
    """

    name: str
    role: str
    array: Array | None
    why: str = ""
    is_old: bool = False
    address: str = ""
    iteration: int | None = None
    run: str = ""
    others: int = 1
    source: tuple[int, int] | None = None


def frame_of(state: State, program: Program | None) -> FrameView | None:
    """Return the frame in which a graph runs now."""
    return next((frame for frame in state.frames if frame.program is program), None)


def chosen(state: State, before: Subject | None, beside: int | None) -> Subject | None:
    """Return the value to show: the same as before, unless something else was selected meanwhile.

    `beside` is the operation that was selected already when the value was opened.
    """
    frame, cursor = state.frame, state.cursor
    if frame is None or cursor is None:
        ended = state.view is not None and state.view.outputs is not None
        if not ended or (before is not None and before.program is None):
            return before
        return Subject(None, 0, 0)
    if before is None or before.program is None:
        return Subject(frame.program, cursor, 0)
    own = None if before.layer is not None else before.operation
    if frame.program is before.program and state.selected not in (None, own, beside):
        return Subject(frame.program, cursor, 0)
    return before


def shown(state: State, subject: Subject, compiled: CompiledModel) -> ShownValue:
    """Return the present subject."""
    if subject.program is None:
        return _model_output(state, subject.place)
    frame = frame_of(state, subject.program)
    layer = subject.layer or subject.program.operations[subject.operation].layer
    if frame is None:
        where = subject.program.path[-1].name if subject.program.path else state.model
        return ShownValue(layer_name(layer), "", None, f"'{where}' does not run here")
    if subject.layer is not None:
        value = frame.value(subject.layer.id)
        return _held(frame, value, _source_name(frame, value), str(value.origin), 1, compiled)
    view = frame.operation(subject.operation)
    values = [*view.outputs, *view.inputs]
    place = subject.place if subject.place < len(values) else 0
    if not values:
        return ShownValue(layer_name(layer), "", None, "it has neither inputs nor outputs")
    return _shown(frame, subject, values[place], place, len(view.outputs), len(values), compiled)


def _shown(
    frame: FrameView, subject: Subject, value: ValueView, place: int, outputs: int, count: int, compiled: CompiledModel
) -> ShownValue:
    name = operation_names(frame.program)[subject.operation]
    if place < outputs:
        role = f"output {place}" if outputs > 1 else "output"
        by = frame.program.operations[subject.operation].computed_by
        role += f", {legend(by)}" if by else ""
        title = f"{name}:{place}"
    else:
        role = f"input {place - outputs} of {name}: {value.origin}"
        title = _source_name(frame, value)
    return _held(frame, value, title, role, count, compiled)


def _held(frame: FrameView, value: ValueView, title: str, role: str, count: int, compiled: CompiledModel) -> ShownValue:
    """Return a value as the frame has it now."""
    if value.layer is None:
        return ShownValue(title, role, None, "not connected", others=count)
    array, why, old = value.array, value.absent, False
    iteration = frame.iteration
    if array is None:
        kept = frame.kept(value.layer.id, value.output)
        if kept is not None and iteration is not None and iteration > 0:
            array, old, iteration = kept, True, iteration - 1
    address = frame.address_of(value.layer, value.output, compiled)
    run = f"{id(frame.program)}/{frame.depth}"
    source = value.layer.id, value.output
    return ShownValue(title, role, array, why, old, address, iteration, run, count, source)


def _source_name(frame: FrameView, value: ValueView) -> str:
    layer = value.layer
    if layer is None:
        return value.name
    index = next((at for at, other in enumerate(frame.layers) if other.id == layer.id), None)
    if index is not None:
        return f"{operation_names(frame.program)[index]}:{value.output}"
    return carried_name(layer) if layer.type == "Parameter" else layer_name(layer)


def _model_output(state: State, place: int) -> ShownValue:
    outputs = state.view.outputs if state.view is not None else None
    if not outputs:
        return ShownValue("output", "", None, "the run has not ended")
    place = min(place, len(outputs) - 1)
    return ShownValue(f"output {place}", "output of the model", outputs[place], others=len(outputs))


def is_same(one: Array | None, other: Array | None) -> bool:
    """True if two views are of the same elements in memory, so that nothing need be looked at again."""
    if one is None or other is None or one is other:
        return one is other
    same = one.__array_interface__["data"] == other.__array_interface__["data"]
    return same and one.shape == other.shape and one.strides == other.strides and one.dtype == other.dtype


class SteppedQuestion(Protocol):
    """Something to find out in steps: a frozen Struct."""

    def steps(self, debugger: Debugger, /) -> Steps[Any]:
        """Begin to look for it, in the worker; the generator returns the answer."""
        ...


class SurveyValue(Record, eq=False):
    """Statistics of a tensor, and a histogram of so many bins at most. The answer is a Survey."""

    array: Array
    bins: int

    def steps(self, _debugger: Debugger) -> Steps[Survey]:
        """Go through its elements."""
        return survey(self.array, self.bins)


class ValueBefore(Record):
    """The value at an address as it was one iteration before, or in an `iteration`. The answer is a tensor."""

    address: str
    iteration: int | None = None

    def steps(self, debugger: Debugger) -> Steps[Array]:
        """Go back to it."""
        yield
        if self.iteration is None:
            return debugger.previous_value(self.address, compared=False).before
        return np.asarray(debugger.value(replace(parse_address(self.address), iterations=self.iteration)))


class ValueInA(Record):
    """The value of a layer's output in A, for the frame at this depth. The answer is a tensor."""

    moment: Moment
    depth: int
    layer: int
    output: int

    def steps(self, debugger: Debugger) -> Steps[Array]:
        """Go there."""
        yield
        stack = debugger.machine.stack[: self.depth + 1]
        found = debugger.moments.value(self.moment, stack, self.layer, self.output)
        if found is None:
            raise UsageError("A has no value of it")
        return np.asarray(found)


class PlaneInCells(Record, eq=False):
    """A plane of a tensor, or of its difference from the value `before`, in cells between edges.

    The answer is an f64 tensor of shape (len(rows) - 1, len(columns) - 1): of each cell one number for its elements.
    """

    plane: Plane
    array: Array
    before: Array | None
    rows: Array
    columns: Array
    statistic: CellStatistic

    def steps(self, _debugger: Debugger | None = None) -> Steps[Array]:
        """Go through its elements."""
        return in_cells(self._block, self.rows, self.columns, self.statistic)

    def _block(self, rows: range, columns: range) -> Array:
        if self.before is None:
            return self.plane.block(self.array, rows, columns)
        return difference_of(self.plane, self.array, self.before, rows, columns)


class FindNonFinite(Record, eq=False):
    """The next NaN or infinity of a tensor from a flat index on, or the last one before it.

    The answer is a flat index; None where there is none.
    """

    array: Array
    start: int
    backward: bool

    def steps(self, _debugger: Debugger) -> Steps[int | None]:
        """Go through its elements."""
        return (previous_where if self.backward else next_where)(self.array, _is_non_finite, self.start)


def _is_non_finite(part: Array) -> Array:
    return ~np.isfinite(part)


def difference_of(plane: Plane, array: Array, before: Array, rows: range, columns: range) -> Array:
    """Return the differences of a part of a plane from the value before, as f64."""
    now, then = (readable(plane.block(one, rows, columns)) for one in (array, before))
    return signed_differences(now, then)


class Inquiry(Struct):
    """A question under way. `key` tells it from others of its kind: of one kind only the newest is wanted."""

    question: SteppedQuestion
    key: tuple[Any, ...]
    then: Callable[[Any], None] | None = None
    steps: Steps[Any] | None = None

    @property
    def topic(self) -> type[SteppedQuestion]:
        """The kind of question."""
        return type(self.question)


class InquiryOutcome(Record):
    """Result of an inquiry; `problem` in words where it could not. Neither, where it left off."""

    answer: Any = None
    problem: str = ""
    done: bool = False


class GoOn(Record):
    """Work on an inquiry until it is done, something presses, or nobody wants it: until `is_wanted` is false."""

    inquiry: Inquiry
    is_wanted: Callable[[], bool]

    def answer(self, debugger: Debugger) -> InquiryOutcome:
        """Return what was found so far."""
        inquiry = self.inquiry
        try:
            if inquiry.steps is None:
                inquiry.steps = inquiry.question.steps(debugger)
            while self.is_wanted():
                next(inquiry.steps)
        except StopIteration as end:
            return InquiryOutcome(end.value, done=True)
        except StepperError as error:
            inquiry.steps = None
            return InquiryOutcome(problem=str(error), done=True) if self.is_wanted() else InquiryOutcome()
        except Exception as error:  # anything else is a fault of ours, which must not be asked for again and again
            return InquiryOutcome(problem=repr(error), done=True)
        return InquiryOutcome()


class Inquiries:
    """Answers by topic. Lives in the application's thread; `news` is called when there is an answer."""

    def __init__(self, driver: Driver, news: Callable[[], None]) -> None:
        self._driver = driver
        self._news = news
        self._wanted: dict[type[SteppedQuestion], Inquiry] = {}
        self._answers: dict[type[SteppedQuestion], tuple[tuple[Any, ...], InquiryOutcome]] = {}
        self._under_way: Inquiry | None = None

    def find(self, question: SteppedQuestion, key: tuple[Any, ...]) -> InquiryOutcome:
        """Return the answer if it is known, else ask for it. Keys hold plain values: one key, one answer."""
        known = self._answers.get(type(question))
        if known is not None and known[0] == key:
            return known[1]
        wanted = self._wanted.get(type(question))
        if wanted is None or wanted.key != key:
            self._want(Inquiry(question, key))
        return InquiryOutcome()

    def once(self, question: SteppedQuestion, then: Callable[[Any], None]) -> None:
        """Find something out that nobody shows; `then` is called with it, unless one of its kind is asked before."""
        self._want(Inquiry(question, (), then))

    def _want(self, inquiry: Inquiry) -> None:
        self._wanted[inquiry.topic] = inquiry
        if self._under_way is not None and self._under_way.topic == inquiry.topic:
            self._driver.leave_off()
        self._go_on()

    def close(self) -> None:
        """Nothing is wanted any more."""
        self._wanted.clear()
        if self._under_way is not None:
            self._driver.leave_off()

    def _go_on(self) -> None:
        if self._under_way is None and self._wanted:
            inquiry = self._under_way = next(iter(self._wanted.values()))
            self._driver.ask(GoOn(inquiry, lambda: self._is_wanted(inquiry)), self._keep, gives_way=True)

    def _is_wanted(self, inquiry: Inquiry) -> bool:
        """Called in the worker."""
        return not self._driver.is_pressed and self._wanted.get(inquiry.topic) is inquiry

    def _keep(self, outcome: InquiryOutcome) -> None:
        inquiry, self._under_way = self._under_way, None
        is_wanted = inquiry is not None and self._wanted.get(inquiry.topic) is inquiry
        if inquiry is not None and is_wanted and outcome.done:
            del self._wanted[inquiry.topic]
            if inquiry.then is not None:
                inquiry.then(outcome.answer)
            else:
                self._answers[inquiry.topic] = inquiry.key, outcome
                self._news()
        self._go_on()


VIEWS = (("colours", False), ("numbers", False), ("colours", True))
"""Views that v goes through: the picture, and True for the difference from A, or from the iteration before."""
AT_ONCE = 20_000
"""Elements that are looked through while one waits; more of them are left to the worker."""
BINS = 36
_MOST_KEPT = 64 * 2**20
"""Bytes of a tensor for which the value of the iteration before is fetched without being asked for."""


class Inspected:
    """The value that is looked at. Whoever changes anything here has the panes painted."""

    def __init__(self, driver: Driver, inquiries: Inquiries) -> None:
        self._driver = driver
        self.inquiries = inquiries
        self.state = State()
        self.subject: Subject | None = None
        self._selected: int | None = None
        """The operation that was selected when the value was opened by its address, and still is."""
        self.shown = ShownValue("value", "", None, "nothing is selected")
        self.plane = plane_of(())
        self.cursor: tuple[int, ...] = ()
        self.axis = 0
        self.view, self.against = "colours", False
        self.digits = 4
        self.zoom = 0
        self._statistic: CellStatistic | None = None
        self.earlier: Array | None = None
        self._known: dict[tuple[int, int, int, int], tuple[Plane, tuple[int, ...]]] = {}
        self._content = self._moment = 0
        self._at: tuple[Any, ...] = ()
        self._survey: tuple[int, Survey] | None = None
        self._tiles: tuple[tuple[Any, ...], Array] | None = None

    # --- the moment ----------------------------------------------------------------------------------------------

    def take(self, state: State) -> None:
        """Another picture: the same value at its moment."""
        self.state = state
        if state.selected != self._selected:
            self._selected = None
        subject = chosen(state, self.subject, self._selected)
        if subject is not None:
            self._turn_to(subject)

    def open(self, subject: Subject) -> None:
        """Show this one, until something else is selected."""
        self._selected = self.state.selected
        self._turn_to(subject)

    def _turn_to(self, subject: Subject) -> None:
        """Show the present value; if it was shown before, as one left it."""
        anew = self.subject is None or subject.key != self.subject.key
        if anew and self.subject is not None:
            self._known[self.subject.key] = self.plane, self.cursor
        before = None if anew else self.shown.array
        self.subject, self.shown = subject, shown(self.state, subject, self._driver.compiled)
        array = self.shown.array
        at = (None if self.state.view is None else self.state.view.tick, self.state.course, subject.key)
        if at != self._at or not is_same(array, before):
            self._at = at
            self._moment += 1
        if anew or not is_same(array, before):
            self._content += 1
            self.earlier = before if before is not None and before.nbytes <= _MOST_KEPT else None
        if array is not None:
            self._fit(array.shape, self._known.get(subject.key) if anew else (self.plane, self.cursor))

    def _fit(self, shape: tuple[int, ...], known: tuple[Plane, tuple[int, ...]] | None) -> None:
        if known is None or len(known[0].shape) != len(shape):
            self.plane = plane_of(shape)
            self.cursor = (0,) * len(shape)
        else:
            self.plane = known[0].fitted(shape)
            self.cursor = tuple(max(0, min(at, size - 1)) for at, size in zip(known[1], shape, strict=True))
        self.axis = min(self.axis, max(len(shape) - 1, 0))

    def turn(self, by: int) -> None:
        """Another value of the same operation: its outputs, then its inputs."""
        subject = self.subject
        if subject is not None:
            self._turn_to(replace(subject, place=(subject.place + by) % self.shown.others))

    # --- the elements --------------------------------------------------------------------------------------------

    @property
    def array(self) -> Array | None:
        """The tensor; None where there is none, or it has no element."""
        array = self.shown.array
        return array if array is not None and array.size else None

    @property
    def place(self) -> tuple[int, int]:
        """Row and column of the cursor."""
        return self.plane.place(self.cursor) or (0, 0)

    def element(self) -> Array | None:
        """Return the element under the cursor, as an array of one element."""
        array = self.array
        if array is None:
            return None
        # A slice of one, not an item: items of packed types and texts forget their type.
        return array[tuple(slice(at, at + 1) for at in self.cursor)].reshape(1)

    @property
    def is_few(self) -> bool:
        """True if it has so few elements that each has its number in its cell."""
        return self.array is not None and self.array.size <= MOST_ELEMENTS

    def is_numeric(self) -> bool:
        """True if there are numbers, so that colours mean something."""
        return self.array is not None and is_numeric(self.array.dtype)

    def point_at(self, row: int, column: int) -> None:
        """Put the cursor on what stands there, or the nearest to it."""
        plane = self.plane
        row, column = max(0, min(row, plane.height - 1)), max(0, min(column, plane.width - 1))
        while column > 0 and not plane.is_there(row, column):
            column -= 1
        if plane.is_there(row, column):
            self.cursor = plane.element(row, column)

    def go_to(self, element: tuple[int, ...]) -> None:
        """Put the cursor on an element, wherever it is. UsageError where there is none such."""
        array = self.array
        if array is None:
            raise UsageError("there is no element here")
        if len(element) != array.ndim:
            raise UsageError(f"{array.ndim} indices are expected, not {len(element)}")
        for axis, (at, size) in enumerate(zip(element, array.shape, strict=True)):
            if not -size <= at < size:
                raise UsageError(f"axis {axis} has no index {at}; it has {counted(size, 'element')}")
        self.cursor = tuple(at % size for at, size in zip(element, array.shape, strict=True))
        self.plane = self.plane.through(self.cursor)

    def show_plane(self, plane: Plane) -> None:
        """Show other elements; the cursor stays where it is if it can."""
        self.plane = plane
        if plane.size and plane.place(self.cursor) is None:
            row, column = 0, 0
            mixed = tuple(
                at if axis in (plane.rows, plane.columns) else plane.index[axis] for axis, at in enumerate(self.cursor)
            )
            row, column = plane.place(mixed) or (0, 0)
            self.cursor = plane.element(row, column)

    # --- what is known of it ----------------------------------------------------------------------------------------

    def survey(self) -> Survey | None:
        """Statistics and histogram; None while they are being computed."""
        array = self.shown.array
        if array is None:
            return None
        if self._survey is not None and self._survey[0] == self._content:
            return self._survey[1]
        if array.size <= AT_ONCE:
            self._survey = self._content, finish(survey(array, min(BINS, 8 + 2 * math.isqrt(array.size))))
            return self._survey[1]
        found = self.inquiries.find(SurveyValue(array, BINS), (self._content,))
        return found.answer if found.done else None

    @property
    def is_beside_a(self) -> bool:
        """True if A is compared with now, so that it stands beside the value."""
        return self.state.a is not None

    @property
    def other_name(self) -> str:
        """The moment with which the value is compared: A, else the iteration before."""
        return "A" if self.is_beside_a else "the iteration before"

    def _in_a(self) -> InquiryOutcome:
        """Return the value in A, as an array."""
        a, array, source = self.state.a, self.shown.array, self.shown.source
        assert a is not None
        if a.problem:
            return InquiryOutcome(problem=a.problem, done=True)
        if array is None or source is None or self.subject is None:
            return InquiryOutcome(problem="A has no value of it", done=True)
        known = [one for one in (a.values, a.loop) if one is not None and one.program is self.subject.program]
        theirs = known[0].value(*source) if known else None
        if theirs is None:
            depth = next((one.depth for one in self.state.frames if one.program is self.subject.program), None)
            if depth is None:
                return InquiryOutcome(problem="A has no value of it", done=True)
            found = self.inquiries.find(ValueInA(a.moment, depth, *source), (self._moment, a.moment, *source))
            if not found.done or found.problem:
                return found
            theirs = found.answer
        if theirs.shape != array.shape or theirs.dtype != array.dtype:
            return InquiryOutcome(problem=f"in A it is {form_text(theirs)}", done=True)
        return InquiryOutcome(theirs, done=True)

    def before(self, *, wanted: bool = False) -> InquiryOutcome:
        """Return the value in A, or without A in the iteration before; a large one only if it is `wanted`.

        An array of the present shape.
        """
        if self.is_beside_a:
            return self._in_a()
        array, address = self.shown.array, self.shown.address
        if not address or array is None:
            return InquiryOutcome(problem="there is no iteration before", done=True)
        if self.shown.iteration is None:
            return InquiryOutcome(problem="it is in no loop", done=True)
        if self.shown.iteration == 0:
            return InquiryOutcome(problem="this is the first iteration", done=True)
        if array.nbytes > _MOST_KEPT and not (wanted or self.against):
            return InquiryOutcome(problem="= fetches it", done=True)

        # of a value that is still to come in this iteration, that of the iteration before is shown
        earlier = self.shown.iteration - 1 if self.shown.is_old else None
        found = self.inquiries.find(ValueBefore(address, earlier), (self._moment, earlier))
        if found.answer is not None and found.answer.shape != array.shape:
            return InquiryOutcome(problem=f"it had another shape, {list(found.answer.shape)}", done=True)
        return found

    # --- in few cells --------------------------------------------------------------------------------------------

    @property
    def statistic(self) -> CellStatistic:
        """The number for the elements of a cell: that was chosen, else of differences the largest, else the mean."""
        return self._statistic or (CellStatistic.LARGEST if self.against else CellStatistic.MEAN)

    def choose_statistic(self) -> None:
        """Show the next one."""
        known = list(CellStatistic)
        self._statistic = known[(known.index(self.statistic) + 1) % len(known)]

    def block(self, rows: range, columns: range) -> Array | None:
        """Return a part of the plane: the elements, or their differences (f64) from the iteration before."""
        array = self.array
        if array is None:
            return None
        if not self.against:
            return self.plane.block(array, rows, columns)
        before = self.before().answer
        return None if before is None else difference_of(self.plane, array, before, rows, columns)

    def tiles(self, rows: Array, columns: Array) -> Array | None:
        """The plane in cells between these edges, each one number for its elements; None while that is computed."""
        array, plane, statistic = self.array, self.plane, self.statistic
        before = self.before().answer if self.against else None
        if array is None or (self.against and before is None):
            return None
        question = PlaneInCells(plane, array, before, rows, columns, statistic)
        bounds = [int(one[at]) for one in (rows, columns) for at in (0, -1)]
        a = self.state.a
        moment = (self._moment, None if a is None else (a.moment, a.iteration)) if self.against else None
        key = (self._content, moment, plane, *bounds, len(rows), len(columns), statistic)
        if (bounds[1] - bounds[0]) * (bounds[3] - bounds[2]) <= AT_ONCE:
            if self._tiles is None or self._tiles[0] != key:
                self._tiles = key, finish(question.steps())
            return self._tiles[1]
        found = self.inquiries.find(question, key)
        return found.answer if found.done else None
