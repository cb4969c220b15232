"""Questions of the value screen that take long: asked of the worker one after another, giving way to commands.

An inquiry is a generator that yields now and then. Whatever comes meanwhile goes first; the inquiry then goes on where
it left off. One that is not wanted any more (another tensor is shown) is forgotten.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from stepper.debug.debugger import Debugger
from stepper.debug.moments.moment import Moment
from stepper.element_types import Array
from stepper.errors import StepperError, UsageError
from stepper.query.address_syntax import parse_address
from stepper.records import Record
from stepper.tensors.changing_shapes import ShapedHistory, changing_shape
from stepper.tensors.difference import signed_differences
from stepper.tensors.histories import ValueHistory
from stepper.tensors.known_values import KnownValues
from stepper.tensors.planes import Plane, readable
from stepper.tensors.statistics import Steps
from stepper.tensors.surveys import CellStatistic, Survey, in_cells, next_where, previous_where, survey
from tui.worker.driver import Driver


class SteppedQuestion(Protocol):
    """Something to find out in steps: a frozen Struct."""

    def steps(self, debugger: Debugger, /) -> Steps[Any]:
        """Begin to look for it, in the worker; the answer is what the generator returns."""
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


class ElementSeries(Record):
    """An element over several iterations, as `ADDR@A:B[i,j]`, or all elements of a small value.

    The answer is a ValueHistory, where the value changes its shape a ShapedHistory; None without a number. With an
    `element` the text is of the whole value: of one that keeps its shape, the answer is about that element.
    """

    text: str
    element: tuple[int, ...] | None = None

    def steps(self, debugger: Debugger) -> Steps[ValueHistory | ShapedHistory | None]:
        """Run through the iterations, as often as that is paused."""
        while True:
            yield
            series = debugger.over_iterations(self.text)
            if series.stopped != "paused":
                break
        changing = changing_shape(series.iterations, series.values)
        if changing is not None:
            return changing
        known = KnownValues()
        for iteration, value in zip(series.iterations, series.values, strict=True):
            known.see(iteration, value if self.element is None else value[self.element])
        return known.view()


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


class PlaneOfA(PlaneInCells, eq=False):
    """The same of the value in A, which is asked for beside that of now."""


class PlaneOfDifference(PlaneInCells, eq=False):
    """The same of the difference from A, which is asked for beside both."""


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

    def find(self, question: SteppedQuestion, key: tuple[Any, ...], *, asks: bool = True) -> InquiryOutcome:
        """Return the answer if it is known, else it may ask for it. Keys hold plain values: one key, one answer."""
        known = self._answers.get(type(question))
        if known is not None and known[0] == key:
            return known[1]
        wanted = self._wanted.get(type(question))
        if asks and (wanted is None or wanted.key != key):
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

    def last(self, topic: type[SteppedQuestion]) -> Any:
        """Return the newest answer to a question of this kind; None if there was none."""
        known = self._answers.get(topic)
        return None if known is None else known[1].answer

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
