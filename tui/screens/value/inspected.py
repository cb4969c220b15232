"""The value that is inspected, a plane and an element of it, and the view; the panes are functions of this."""

from __future__ import annotations

import math
from enum import Enum, auto
from typing import Any, Final

import numpy as np
from msgspec.structs import replace

from stepper.debug.branches.edits import RunCourse
from stepper.element_types import Array
from stepper.errors import UsageError
from stepper.ops.operands import form_text
from stepper.tensors.histories import MOST_ELEMENTS
from stepper.tensors.planes import Plane, is_numeric, plane_of
from stepper.tensors.statistics import finish
from stepper.tensors.surveys import CellStatistic, Survey, survey
from stepper.wording import counted
from tui.screens.value.inquiries import (
    ElementSeries,
    Inquiries,
    InquiryOutcome,
    PlaneInCells,
    PlaneOfA,
    PlaneOfDifference,
    SurveyValue,
    ValueBefore,
    ValueInA,
    difference_of,
)
from tui.screens.value.selection import ShownValue, Subject, chosen, is_same, shown
from tui.state import State
from tui.worker.driver import Driver


class PictureSide(Enum):
    """Which of three pictures: the value now, that in A, the difference."""

    NOW = auto()
    A = auto()
    DIFFERENCE = auto()


VIEWS: Final = (("colours", False), ("numbers", False), ("numbers", True), ("bits", False))
"""Views that v goes through: the picture, and True for the difference from the iteration before."""
AT_ONCE: Final = 20_000
"""Elements that are looked through while one waits; more of them are left to the worker."""
BINS: Final = 36
_MOST_KEPT: Final = 64 * 2**20
"""Bytes of a tensor for which the value of the iteration before is fetched without being asked for."""
_MOST_WHOLE: Final = 2048
"""Elements up to which all of a value whose shape may change are fetched over the iterations."""
_SHORT: Final = 1.0
"""Seconds of a run of which iterations behind the moment are run through as well."""
_SPAN: Final = 48
"""Iterations over which an element is shown."""


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
        self._tiles: dict[PictureSide, tuple[tuple[Any, ...], Array]] = {}
        self._furthest: dict[tuple[str, RunCourse | None], int] = {}

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
        """Show a value as it is now; where it was shown before, as one left it."""
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
        self._note_furthest()
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

    def _note_furthest(self) -> None:
        """Iterations up to that which was reached are shown; later ones would have to be computed."""
        iteration = self.shown.iteration
        if iteration is not None:
            self._furthest[self._run] = max(self._furthest.get(self._run, 0), iteration)

    @property
    def _run(self) -> tuple[str, RunCourse | None]:
        return f"{self.state.loop_run}/{self.shown.run}", self.state.course

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
        """True if it has so few elements that each is seen over the iterations."""
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
        """True if A is held against now, so that it stands beside the value."""
        return self.state.a is not None

    @property
    def other_name(self) -> str:
        """The moment that the value is held against: A, else the iteration before."""
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
        """Return the value in A, or without A that of one iteration before; of a large one only where it is `wanted`.

        As an array of the shape of that of now.
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

    def over_iterations(self, *, asks: bool = True) -> InquiryOutcome:
        """Return the value over the last iterations, or of many elements that under the cursor: a Series.

        One that is not known is looked for only if it `asks`.
        """
        array, address, iteration = self.array, self.shown.address, self.shown.iteration
        if array is None or not address or iteration is None:
            return InquiryOutcome(problem="it is in no loop", done=True)
        furthest = self._furthest.get(self._run, iteration)
        furthest = max(furthest, self._seen_to_run() - 1)
        last = furthest if furthest < _SPAN else min(furthest, iteration + _SPAN // 4)
        begin = max(0, last - _SPAN + 1)
        is_whole = self.is_few or self._may_change_shape
        index = "" if is_whole else ",".join(map(str, self.cursor))
        text = f"{address}@{begin}:{last + 1}" + (f"[{index}]" if index else "")
        element = self.cursor if is_whole and not self.is_few else None

        key = (text, element, self.state.loop_run, self.state.course, self._content if self.state.is_edited else 0)
        return self.inquiries.find(ElementSeries(text, element), key, asks=asks)

    @property
    def _may_change_shape(self) -> bool:
        """True if the model leaves open how many elements it has, and they are not too many to look at all of them."""
        array, source, subject = self.array, self.shown.source, self.subject
        if array is None or source is None or subject is None or subject.program is None or array.size > _MOST_WHOLE:
            return False
        layer = subject.program.graph.by_id.get(source[0])
        return layer is not None and any(size < 0 for size in layer.outputs[source[1]].dims)

    def _seen_to_run(self) -> int:
        """Return how many iterations this run of the loop had in the run of the overview, if that was a short one."""
        state = self.state
        overview, here, program = state.overview, state.loop_run, state.loop_program
        is_short = overview is not None and overview.seconds <= _SHORT
        if overview is None or not is_short or here is None or program is None or state.is_edited:
            return 0
        layer, outer = program.path[-1], tuple(one for _, one in here.around if one is not None)
        sites = (one for one in overview.loops if (one.layer.id, one.layer.line) == (layer.id, layer.line))
        runs = (run.iterations for one in sites for run in one.activations if run.outer == outer)
        return next(runs, 0)

    # --- in few cells --------------------------------------------------------------------------------------------

    @property
    def statistic(self) -> CellStatistic:
        """The number for the elements of a cell: that was chosen, else of differences the largest, else the mean."""
        return self._statistic or (CellStatistic.LARGEST if self.against else CellStatistic.MEAN)

    def statistic_of(self, side: PictureSide | None) -> CellStatistic:
        """Return that of one of the three pictures: a mean of the difference would hide a single change."""
        is_of_difference = side is PictureSide.DIFFERENCE and self._statistic is None
        return CellStatistic.LARGEST if is_of_difference else self.statistic

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

    def tiles(self, rows: Array, columns: Array, side: PictureSide | None = None) -> Array | None:
        """The plane in cells between these edges, each one number for its elements; None while that is computed.

        Of the value now, of that in A, or of the difference; by default of what is shown.
        """
        side = side or (PictureSide.DIFFERENCE if self.against else PictureSide.NOW)
        array, plane, statistic = self.array, self.plane, self.statistic_of(side)
        before = None if side is PictureSide.NOW else self.before().answer
        if array is None or (side is not PictureSide.NOW and before is None):
            return None
        if side is PictureSide.A:
            question: PlaneInCells = PlaneOfA(plane, np.asarray(before), None, rows, columns, statistic)
        else:
            kind = PlaneInCells if side is PictureSide.NOW or not self.is_beside_a else PlaneOfDifference
            question = kind(plane, array, before, rows, columns, statistic)
        bounds = [int(one[at]) for one in (rows, columns) for at in (0, -1)]
        a = self.state.a
        moment = -1 if side is PictureSide.NOW else (self._moment, side, None if a is None else (a.moment, a.iteration))
        key = (self._content, moment, plane, *bounds, len(rows), len(columns), statistic)
        if (bounds[1] - bounds[0]) * (bounds[3] - bounds[2]) <= AT_ONCE:
            if side not in self._tiles or self._tiles[side][0] != key:
                self._tiles[side] = key, finish(question.steps())
            return self._tiles[side][1]
        found = self.inquiries.find(question, key)
        return found.answer if found.done else None
