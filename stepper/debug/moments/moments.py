"""Two moments of a debugger's run side by side: `Moments` reads A at the places of now, and compares.

What is compared once is remembered by the values' identity, which never change, so a step costs one comparison.
"""

from __future__ import annotations

import weakref
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain
from operator import call, is_not
from typing import Any, Final, Generic, TypeVar

import numpy as np
from msgspec.structs import replace

from stepper.debug.branches.branches import Branches
from stepper.debug.moments.difference import Change, Difference, difference
from stepper.debug.moments.frames import FoundFrame, FrameFinder
from stepper.debug.moments.moment import GraphPlace, Moment, MomentKind, place_of_stack
from stepper.debug.moments.moment_values import MomentValues, ValueKey
from stepper.debug.moments.spread import BesideIteration, Other, Spread
from stepper.debug.moments.views import MomentView, OperationDifference
from stepper.debug.reference_values import ReferenceValues, ValuePlace, path_of
from stepper.debug.scopes import innermost_loop
from stepper.debug.timeline import Timeline
from stepper.engine.frames import Frame, LoopRun, loop_run
from stepper.engine.program import LoopPlan, Value
from stepper.errors import StepperError, UsageError
from stepper.ir.model import Layer
from stepper.tensors.statistics import number_of
from stepper.tensors.tolerances import Tolerances

_MOST_KNOWN: Final = 20_000
"""Comparisons that are remembered."""
_MOST_PLACES: Final = 2
"""Places of a reference whose values are kept."""
_ENDED: Final = "the run has ended"
_SOME: Final = 16
"""Comparisons between two looks at the clock."""

_RANKS: Final = tuple(Change)

Enough = Callable[[], bool]
Result = TypeVar("Result")


def never() -> bool:
    """Return False: what is asked for is wanted whole."""
    return False


class Moments:
    """The moments of a debugger's run that are held against now; to be used where the run itself is used."""

    def __init__(self, branches: Branches) -> None:
        self._branches = branches
        self._finders: dict[int, tuple[object, FrameFinder]] = {}
        self._differences = _Remembered[Difference]()
        self._numbers = _Remembered[float | None]()
        self._operations: _Beside[OperationDifference] | None = None
        self._carried: _Beside[Difference] | None = None
        self._spread: Spread | None = None
        self.tolerances: Tolerances | None = None
        self._given: OrderedDict[tuple[int, GraphPlace], dict[ValueKey, Any]] = OrderedDict()

    @property
    def _timeline(self) -> Timeline:
        """The course of the run that goes on."""
        return self._branches.timeline(self._branches.name)

    # --- values --------------------------------------------------------------------------------------------------

    def values(self, moment: Moment, stack: Sequence[Frame], enough: Enough = never) -> MomentValues | str | None:
        """Return the values of a moment for the graph of the innermost of these frames, or why there are none.

        None where `enough` ended the search. Of a reference only those that were asked for with `given`.
        """
        here = place_of_stack(stack)
        place = moment.seen_from(here)
        if place is None:
            return (
                "there is no iteration before"
                if moment.kind is MomentKind.BEFORE
                else "A is in a loop that does not run here"
            )
        iteration = next((step.iteration for step in reversed(place) if step.iteration is not None), None)
        program = stack[-1].program
        if moment.kind is MomentKind.REFERENCE:
            if self._timeline.reference is None:
                return "there is no reference: name one with reference FILE"
            return MomentValues(program, iteration, None, self._given_at(self._timeline.reference, here))
        found = self.frame(moment, place, enough)
        if found is None:
            return None
        if found.frame is None:
            return found.problem
        return MomentValues(program, iteration, found.frame)

    def frame(self, moment: Moment, place: GraphPlace, enough: Enough = never) -> FoundFrame | None:
        """Return the frame of a place in the branch of a moment; None where `enough` ended the search."""
        name = moment.branch or self._branches.name
        if name not in self._branches:
            return FoundFrame(None, 0, f"there is no branch '{name}' any more")
        timeline = self._branches.timeline(name)
        known = self._finders.get(id(timeline))
        if known is None or known[0] is not timeline:
            known = timeline, FrameFinder(timeline)
            self._finders[id(timeline)] = known
        return known[1].frame(place, enough)

    def _given_at(self, reference: ReferenceValues, here: GraphPlace) -> dict[ValueKey, Any]:
        key = id(reference), here
        found = self._given.setdefault(key, {})
        self._given.move_to_end(key)
        while len(self._given) > _MOST_PLACES:
            self._given.popitem(last=False)
        return found

    def value(self, moment: Moment, stack: Sequence[Frame], layer: int, output: int = 0) -> Value | None:
        """Return one value of a moment for the graph of the innermost frame; None where it has none. UsageError."""
        found = self.values(moment, stack)
        if isinstance(found, str):
            raise UsageError(found)
        assert found is not None, "nothing ends the search"
        if moment.kind is MomentKind.REFERENCE:
            self._ask_reference(found, stack, (layer, output))
        return found.held(layer, output)

    def _ask_reference(self, values: MomentValues, stack: Sequence[Frame], key: ValueKey) -> Value | None:
        given, reference = values.given, self._timeline.reference
        assert isinstance(given, dict) and reference is not None
        if key not in given:
            layer = stack[-1].program.graph.by_id[key[0]]
            given[key] = reference.value_at(ValuePlace(path_of(stack), layer, key[1], stack[-1]))
        return given[key]

    # --- comparing -----------------------------------------------------------------------------------------------

    def view(
        self, moment: Moment, depth: int | None = None, statistic: str = "rms", enough: Enough = never
    ) -> MomentView:
        """Return A beside now, for the frame at this depth (by default the innermost), as far as that was compared.

        `enough` ends it; another call goes on. The operations that ran last come first.
        """
        stack = self._timeline.machine.stack
        depth = len(stack) - 1 if depth is None else min(depth, len(stack) - 1)
        loop_depth = innermost_loop(stack[: depth + 1])
        spread = self.spread(moment)
        shown = (
            None if spread is None else spread.view(None if loop_depth is None else loop_run(stack[: loop_depth + 1]))
        )
        if not stack:
            return MomentView(moment, title=self._title(moment), spread=shown, problem=_ENDED, is_complete=True)
        try:
            return replace(self._view(moment, depth, loop_depth, statistic, enough), spread=shown)
        except StepperError as error:
            title = self._title(moment)
            return MomentView(moment, title=title, spread=shown, problem=str(error), is_complete=True)

    def view_of_run(self, moment: Moment | None, run: LoopRun | None) -> MomentView | None:
        """Return where a run of a loop differs from A, where A is another run of the model; else None."""
        found = None if moment is None or moment.kind is MomentKind.ITERATION else self.spread(moment)
        if moment is None or found is None or not (shown := found.view(run)).is_of_runs:
            return None
        return MomentView(moment, title=self._title(moment), spread=shown, is_complete=True)

    def spread(self, moment: Moment) -> Spread | None:
        """Return all iterations of now beside those of A, as far as `Spread.go` has come; None where there is no A.

        Beside an iteration each stands beside that one, beside the iteration before each beside the one before it.
        """
        here = self._branches.name
        other: Other | None = None
        if moment.kind is MomentKind.REFERENCE:
            other = self._timeline.reference
        elif moment.kind is not MomentKind.BRANCH:
            other = BesideIteration(moment, lambda: self._values_of_iteration(moment))
        elif moment.branch != here and moment.branch in self._branches:
            other = moment.branch
        if other is None:
            return None
        if self._spread is None or not self._spread.is_of(other, here):
            self._spread = Spread(self._branches, other, here, self.tolerances_for(moment))
        return self._spread

    def _values_of_iteration(self, moment: Moment) -> MomentValues | None:
        """Return the values of the loop's body in an iteration that is pinned, at its end."""
        last = max(at for at, step in enumerate(moment.place) if step.iteration is not None)
        found = self.frame(moment, moment.place[: last + 1])
        frame = None if found is None else found.frame
        return None if frame is None else MomentValues(frame.program, moment.iteration, frame)

    def tolerances_for(self, moment: Moment) -> Tolerances:
        """Return those that were asked for, else those of the same kernels, or of other kernels."""
        reference = self._timeline.reference
        is_exact = moment.kind is not MomentKind.REFERENCE or bool(getattr(reference, "is_exact", False))
        return Tolerances(exact=is_exact) if self.tolerances is None else self.tolerances

    def allow(self, tolerances: Tolerances) -> None:
        """Compare with these tolerances from now on."""
        self.tolerances = tolerances
        self._spread, self._differences = None, _Remembered[Difference]()
        self._operations = self._carried = None

    def _view(self, moment: Moment, depth: int, loop_depth: int | None, statistic: str, enough: Enough) -> MomentView:
        stack = self._timeline.machine.stack
        title = self._title(moment)
        values = self.values(moment, stack[: depth + 1], enough)
        if not isinstance(values, MomentValues):
            is_elsewhere = moment.seen_from(place_of_stack(stack[: depth + 1])) is None
            is_complete = values is not None
            return MomentView(
                moment, title=title, problem=values or "", is_elsewhere=is_elsewhere, is_complete=is_complete
            )
        around: MomentValues | None = values
        if loop_depth != depth:
            found = None if loop_depth is None else self.values(moment, stack[: loop_depth + 1], enough)
            around = found if isinstance(found, MomentValues) else None
        operations = self._operations
        if operations is None or not operations.is_of(moment, values, statistic):
            operations = self._operations = _Beside(moment, values, statistic)
        work = self._compare_operations(operations, stack[: depth + 1])
        carried = None
        if around is not None and loop_depth is not None:
            carried = self._carried
            if carried is None or not carried.is_of(moment, around, statistic):
                carried = self._carried = _Beside(moment, around, statistic)
            work = chain(self._compare_carried(carried, stack[: loop_depth + 1]), work)
        is_complete = not any(is_due and enough() for is_due in work)
        iteration = None if around is None else around.iteration
        known, entered = dict(operations.found), {} if carried is None else dict(carried.found)
        path = None if loop_depth is None else _paths(moment, place_of_stack(stack[: loop_depth + 1]))
        return MomentView(moment, iteration, path, title, values, around, known, entered, is_complete=is_complete)

    def _compare_carried(self, beside: _Beside[Difference], stack: Sequence[Frame]) -> Iterator[bool]:
        """Compare what entered the iteration of a loop; yield True where it is time to look at the clock."""
        frame, moment = stack[-1], beside.moment
        plan = None if frame.activation is None else frame.activation.plan
        merged = plan.merged if isinstance(plan, LoopPlan) else ()
        entered = [(frame.program.parameter(one.parameter), [_current(frame, one.parameter)]) for one in merged]
        layers = {layer.id: layer for layer, _now in entered}
        for key, now in beside.outdated((layer.id, now) for layer, now in entered):
            if moment.kind is MomentKind.REFERENCE:
                self._ask_reference(beside.values, stack, (key, 0))
            beside.put(key, now, self._pair(beside.values.held(key), now[0], layers[key], moment))
            yield True

    def _compare_operations(self, beside: _Beside[OperationDifference], stack: Sequence[Frame]) -> Iterator[bool]:
        """Compare what is not compared yet of a graph, the last one that has run first; yield as above."""
        frame, moment, a = stack[-1], beside.moment, beside.values
        asks = moment.kind is MomentKind.REFERENCE
        for count, (index, now) in enumerate(beside.outdated(_latest_first(frame))):
            operation = frame.program.operations[index]
            layer, outputs = operation.layer, range(len(operation.outputs))
            if asks:
                for output in outputs:
                    self._ask_reference(a, stack, (layer.id, output))
            theirs = [a.held(layer.id, output) for output in outputs]
            pairs = [self._pair(one, ours, layer, moment) for one, ours in zip(theirs, now, strict=True)]
            known = [pair for pair in pairs if pair is not None]
            found = None
            if theirs and theirs[0] is not None:
                piece = frame.program.joined_pieces.get(index)
                shown = theirs[0] if piece is None else a.held(piece.layer, piece.output)
                number = None if shown is None else self._number(shown, beside.statistic)
                found = OperationDifference(number, max(known, key=_rank, default=None))
            beside.put(index, now, found)
            yield asks or count % _SOME == _SOME - 1

    def _pair(self, a: Value | None, now: Value | None, layer: Layer, moment: Moment) -> Difference | None:
        if a is None or now is None:
            return None

        def compared() -> Difference:
            return difference(a, now, self.tolerances_for(moment).of(layer, np.asarray(now).dtype))

        return self._differences.of((a, now), (moment.kind is MomentKind.REFERENCE, layer.id), compared)

    def _number(self, a: Value, statistic: str) -> float | None:
        return self._numbers.of((a,), statistic, lambda: number_of(a, statistic))

    def _title(self, moment: Moment) -> str:
        reference = self._timeline.reference
        return reference.title if moment.kind is MomentKind.REFERENCE and reference is not None else ""


def _paths(moment: Moment, here: GraphPlace) -> tuple[tuple[int, ...], tuple[int, ...]] | None:
    """Return the iterations of a moment and of a loop in which the run stands, where one number does not tell them."""
    there = moment.seen_from(here)
    if there is None or moment.kind is not MomentKind.ITERATION:
        return None
    a, now = (tuple(step.iteration for step in place if step.iteration is not None) for place in (there, here))
    pinned = sum(step.iteration is not None for step in moment.place)
    return None if a[:-1] == now[:-1] and pinned >= len(now) else (a, now)


def _current(frame: Frame, slot: int) -> Value | None:
    return frame.values[slot] if frame.is_current(slot) else None


def _latest_first(frame: Frame) -> Iterator[tuple[int, list[Value | None]]]:
    """Yield the operations that have run, from the last one on, then those to come: the index, and what it gave."""
    operations, values, done = frame.program.operations, frame.values, frame.computed
    for index in reversed(range(done)):
        yield index, [None if slot < 0 else values[slot] for slot in operations[index].outputs]
    for index in range(done, len(operations)):
        yield index, [None] * len(operations[index].outputs)


def _rank(found: Difference) -> tuple[int, float]:
    return _RANKS.index(found.change), found.relative or 0.0


class _Beside(Generic[Result]):
    """Places of a frame beside those of A, as far as they are compared: a step compares only what it computed."""

    def __init__(self, moment: Moment, values: MomentValues, statistic: str) -> None:
        self.moment = moment
        self.values = values
        self.statistic = statistic
        self.found: dict[int, Result] = {}
        self._seen: dict[int, tuple[Callable[[], Value | None], ...]] = {}

    def is_of(self, moment: Moment, values: MomentValues, statistic: str) -> bool:
        """True if A has these values."""
        return self.moment == moment and self.values.are_of(values) and self.statistic == statistic

    def outdated(self, places: Iterable[tuple[int, list[Value | None]]]) -> list[tuple[int, list[Value | None]]]:
        """Forget the places that have other values since; return those that are not known, with what they have."""
        waiting: list[tuple[int, list[Value | None]]] = []
        for place, now in places:
            seen = self._seen.get(place)
            if seen is None or any(map(is_not, map(call, seen), now)):
                waiting.append((place, now))
                self._seen.pop(place, None)
                self.found.pop(place, None)
        return waiting

    def put(self, place: int, now: Sequence[Value | None], found: Result | None) -> None:
        """Keep what a place with these values was found to be; None where one of the two has none."""
        self._seen[place] = tuple(map(_holder, now))
        if found is not None:
            self.found[place] = found


class _Remembered(Generic[Result]):
    """Results about values, by their identity; they keep no array alive."""

    def __init__(self) -> None:
        self._known: OrderedDict[tuple[object, ...], tuple[tuple[Callable[[], Value | None], ...], Result]] = (
            OrderedDict()
        )

    def of(self, values: Sequence[Value], key: object, compute: Callable[[], Result]) -> Result:
        """Return the result for these very values, computed if it is not known."""
        whole = (*map(id, values), key)
        known = self._known.get(whole)
        if known is not None and all(held() is value for held, value in zip(known[0], values, strict=True)):
            return known[1]
        found = compute()
        self._known[whole] = tuple(map(_holder, values)), found
        while len(self._known) > _MOST_KNOWN:
            self._known.popitem(last=False)
        return found


def _holder(value: Value | None) -> Callable[[], Value | None]:
    return weakref.ref(value) if isinstance(value, np.ndarray) else lambda: value
