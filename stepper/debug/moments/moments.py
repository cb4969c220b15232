"""Two moments of a debugger's run side by side: `Moments` reads A at the places of now, and compares.

What is compared once is remembered by the values' identity, which never change, so a step costs one comparison.
"""

from __future__ import annotations

import math
import re
import weakref
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from itertools import chain
from operator import call, is_not
from typing import Any, Final, Generic, TypeVar

import numpy as np
from msgspec.structs import replace

from stepper.debug.branches.branches import Branches
from stepper.debug.branches.edits import ORIGINAL, RunCourse
from stepper.debug.breakpoints.conditions import named_places
from stepper.debug.finding.goto import place_from_the_first
from stepper.debug.moments.moment import (
    BEFORE,
    REFERENCE,
    GraphPlace,
    Moment,
    MomentKind,
    MomentValues,
    PlaceStep,
    ValueKey,
    place_of_stack,
)
from stepper.debug.moments.run_pairs import Order, is_before, iterations_of, order_of
from stepper.debug.moments.spread import BesideIteration, MomentView, OperationDifference, Other, Spread
from stepper.debug.reference_values import ReferenceValues, ValuePlace, path_of
from stepper.debug.scopes import innermost_loop
from stepper.debug.stop import iteration_of
from stepper.debug.timeline import Timeline
from stepper.debug.visits import Enough, excursion, never
from stepper.element_types import Indices
from stepper.engine.frames import Event, EventKind, Every, Frame, Frames, LoopRun, Snapshot, loop_run
from stepper.engine.program import Program, Value
from stepper.errors import StepperError, UsageError
from stepper.ir.lowering import without_loops
from stepper.ir.model import Layer
from stepper.query.address_resolution import Atlas
from stepper.records import Record
from stepper.tensors.difference import Change, Difference, difference
from stepper.tensors.statistics import number_of
from stepper.tensors.tolerances import Tolerances
from stepper.wording import counted

# --- Frames of any place of a run: the values that a graph had when its iteration was closed, of any branch ----------


_MOST_KEPT: Final = 3
"""Frames of a branch that are kept; each holds the values of one iteration."""


class FoundFrame(Record, eq=False):
    """A frame as it was at the end of its iteration, at `tick`; or, without one, why there is none.

    `failed`: the run fails before the end of the iteration, by the error `problem`.
    """

    frame: Frame | None
    tick: int = 0
    problem: str = ""
    failed: bool = False


class FrameFinder:
    """Finds frames in one course of a run. What takes long is left off and gone on with; the present stays."""

    def __init__(self, timeline: Timeline, most: int = _MOST_KEPT) -> None:
        self._timeline, self._most = timeline, most
        self._kept: OrderedDict[GraphPlace, FoundFrame] = OrderedDict()
        self._stand: Snapshot | None = None
        self._course = RunCourse()

    def frame(self, place: GraphPlace, enough: Enough = never) -> FoundFrame | None:
        """Return the frame of a place; None where `enough` ended the search, which another call goes on with."""
        course = RunCourse(self._timeline.edits)
        if course != self._course:
            self._kept.clear()
            self._stand, self._course = None, course
        found = self._kept.get(place)
        if found is None:
            found = self._searched(_Search(self._timeline, place), enough)
            if found is None:
                return None
            self._kept[place] = found
            while len(self._kept) > self._most:
                self._kept.popitem(last=False)
        self._kept.move_to_end(place)
        return found

    def _searched(self, search: _Search, enough: Enough) -> FoundFrame | None:
        machine = self._timeline.machine
        with excursion(self._timeline):
            history, order = self._timeline.history, search.order
            begin = history.latest(lambda kept: is_before(kept, order)) or history.before(0)
            if self._stand is not None and self._stand.tick > begin.tick and is_before(self._stand, order):
                begin = self._stand
            machine.restore(begin)
            found = search.go(enough)
            self._stand = machine.snapshot()
        return found


class _Search:
    """One way forward to a place."""

    def __init__(self, timeline: Timeline, place: GraphPlace) -> None:
        self._timeline, self._machine = timeline, timeline.machine
        self._place = place
        self._iterations = tuple(step.iteration for step in place if step.iteration is not None)
        self._program, self.order = _program_at(self._machine.compiled.main, place)
        self._found: FoundFrame | None = None

    def go(self, enough: Enough) -> FoundFrame | None:
        """Go on to the end of the iteration; None where that was left off."""
        machine = self._machine
        try:
            event = self._timeline.forward(Every.ITERATION, lambda event: self._see(event) or enough())
        except StepperError as error:
            return self._found or self._failed(str(error))
        if self._found is None and event.kind is EventKind.FINISHED:  # nothing looks at this event on the way
            self._see(event)
            return self._found or FoundFrame(None, machine.tick, self._why_absent(event))
        return self._found

    def _see(self, event: Event) -> bool:
        """Take the frame, if this is the end of the iteration; True too where the run has gone past it."""
        stack, frame = self._machine.stack, event.frame
        if frame.program is self._program and self._is_end(event):
            self._found = FoundFrame(frame.copy(), event.tick)
            return True
        if stack and order_of(stack) > self.order:
            self._found = FoundFrame(None, event.tick, self._why_absent(event))
            return True
        return False

    def _is_end(self, event: Event) -> bool:
        if not self._place:
            return event.kind is EventKind.FINISHED
        stack = self._machine.stack
        if self._place[-1].iteration is not None:
            return event.kind is EventKind.ITERATION and iterations_of(stack) == self._iterations
        return event.kind is EventKind.LEFT and iterations_of(stack) == self._iterations

    def _failed(self, message: str) -> FoundFrame:
        """Return the frame in which the run failed, if it is the one; what it has computed is there."""
        stack = self._machine.stack
        for depth, frame in enumerate(stack):
            if frame.program is self._program and iterations_of(stack[: depth + 1]) == self._iterations:
                return FoundFrame(frame.copy(), self._machine.tick, message, failed=True)
        return FoundFrame(None, self._machine.tick, message, failed=True)

    def _why_absent(self, event: Event) -> str:
        program, activation = event.frame.program, event.frame.activation
        is_around = self._program.path[: len(program.path)] == program.path
        if event.kind is EventKind.LEFT and is_around and activation is not None:
            if event.frame.loop:
                return f"the loop runs {counted(activation.iteration + 1, 'iteration')} there"
            if program.path == self._program.path:
                return "the other side of the If runs there"
        return "the run does not come there"


def _program_at(main: Program, place: GraphPlace) -> tuple[Program, Order]:
    """Return the program of a place, and the order of the moment at which its iteration is closed."""
    program, found = main, list[float]()
    for step in place:
        index = program.indices[step.layer]
        plans = program.operations[index].plans
        program = plans[step.role == "else_body"].program if len(plans) > 1 else plans[0].program
        found += [index, 0 if step.iteration is None else step.iteration]
    return program, (*found, math.inf)


# ---------------------------------------------------------------------------------------------------------------------


_MOST_KNOWN: Final = 20_000
"""Comparisons that are remembered."""
_MOST_PLACES: Final = 2
"""Places of a reference whose values are kept."""
_ENDED: Final = "the run has ended"
_SOME: Final = 16
"""Comparisons between two looks at the clock."""

_RANKS: Final = tuple(Change)

Result = TypeVar("Result")


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

    def values(self, moment: Moment, stack: Frames, enough: Enough = never) -> MomentValues | str | None:
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

    def value(self, moment: Moment, stack: Frames, layer: int, output: int = 0) -> Value | None:
        """Return one value of a moment for the graph of the innermost frame; None where it has none. UsageError."""
        found = self.values(moment, stack)
        if isinstance(found, str):
            raise UsageError(found)
        assert found is not None, "nothing ends the search"
        if moment.kind is MomentKind.REFERENCE:
            self._ask_reference(found, stack, (layer, output))
        return found.held(layer, output)

    def _ask_reference(self, values: MomentValues, stack: Frames, key: ValueKey) -> Value | None:
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

    def _compare_carried(self, beside: _Beside[Difference], stack: Frames) -> Iterator[bool]:
        """Compare what entered the iteration of a loop; yield True where it is time to look at the clock."""
        frame, moment = stack[-1], beside.moment
        merged = frame.loop.merged if frame.loop else ()
        entered = [
            (
                frame.program.parameter(one.parameter),
                [frame.values[at] if frame.is_current(at := one.parameter) else None],
            )
            for one in merged
        ]
        layers = {layer.id: layer for layer, _now in entered}
        for key, now in beside.outdated((layer.id, now) for layer, now in entered):
            if moment.kind is MomentKind.REFERENCE:
                self._ask_reference(beside.values, stack, (key, 0))
            beside.put(key, now, self._pair(beside.values.held(key), now[0], layers[key], moment))
            yield True

    def _compare_operations(self, beside: _Beside[OperationDifference], stack: Frames) -> Iterator[bool]:
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
                statistic = beside.statistic
                number = (
                    None
                    if shown is None
                    else self._numbers.of((shown,), statistic, partial(number_of, shown, statistic))
                )
                found = OperationDifference(number, max(known, key=_rank, default=None))
            beside.put(index, now, found)
            yield asks or count % _SOME == _SOME - 1

    def _pair(self, a: Value | None, now: Value | None, layer: Layer, moment: Moment) -> Difference | None:
        if a is None or now is None:
            return None

        def compared() -> Difference:
            return difference(a, now, self.tolerances_for(moment).of(layer, now))

        return self._differences.of((a, now), (moment.kind is MomentKind.REFERENCE, layer.id), compared)

    def _title(self, moment: Moment) -> str:
        reference = self._timeline.reference
        return reference.title if moment.kind is MomentKind.REFERENCE and reference is not None else ""

    # --- what is meant by a text ------------------------------------------------------------------------------------

    def called(self, text: str, a: Moment | None = None) -> Moment | None:
        """Return the moment that a text means, None for `off`; `a` is A as it is, for `+1` and `next`.

        A text is one of WORDS, the name of a branch, the number of an iteration of the loop that runs here, how many
        iterations later than A (+1, -2), or an address with iterations. UsageError for one that there is not.
        """
        if text == OFF:
            return None
        if text == _NEXT:
            return self._next(a)
        if text in ("", HERE):
            return self.here()
        if text == MomentKind.BEFORE:
            return BEFORE
        if text == MomentKind.REFERENCE:
            if self._timeline.reference is None:
                raise UsageError("there is no reference: name one with reference FILE, or --reference at the start")
            return REFERENCE
        if text in self._branches:
            return self._of_branch(text)
        if re.fullmatch(r"[+-][0-9]{1,18}", text):
            return self._later(a, int(text))
        if re.fullmatch(r"@?[0-9]{1,18}", text):
            now = self.here()
            return _checked(now.moved(int(text.lstrip("@")) - (now.iteration or 0)))
        return self._at_address(text)

    def _of_branch(self, name: str) -> Moment:
        if name == self._branches.name:
            raise UsageError(f"now is branch {name} itself; set ADDR = EXPR makes another one to hold against it")
        return Moment(MomentKind.BRANCH, name)

    def here(self) -> Moment:
        """Return the iteration in which the run stands. UsageError outside of loops."""
        stack = self._timeline.machine.stack
        depth = innermost_loop(stack)
        if depth is None or iteration_of(stack[depth]) is None:
            way = "step into a loop first, until its first iteration has begun"
            raise UsageError(
                f"the run is in no iteration here: {without_loops(self._timeline.machine.compiled.model) or way}"
            )
        place = place_of_stack(stack[: depth + 1])
        return Moment(MomentKind.ITERATION, self._branches.name, place, self._timeline.machine.tick)

    def by_itself(self) -> Moment | None:
        """Return what A is as long as nothing was said: the reference, or the original beside a branch with edits."""
        if self._timeline.reference is not None:
            return REFERENCE
        has_edits = self._branches.name != ORIGINAL and bool(self._timeline.edits)
        return Moment(MomentKind.BRANCH, ORIGINAL) if has_edits else None

    def _next(self, a: Moment | None) -> Moment | None:
        """Go round: off, the iteration before, the original branch, the reference; what there is not is left out.

        UsageError where there is nothing beside off.
        """
        place = place_of_stack(self._timeline.machine.stack)
        around: list[Moment | None] = [None]
        if BEFORE.seen_from(place) is not None:
            around.append(BEFORE)
        if self._branches.name != ORIGINAL:
            around.append(Moment(MomentKind.BRANCH, ORIGINAL))
        if self._timeline.reference is not None:
            around.append(REFERENCE)
        if a is None and len(around) == 1:
            is_within = any(step.iteration is not None for step in place)
            raise UsageError(
                "iteration 0 has none before it; A N holds iteration N against it"
                if is_within
                else "outside of loops there is no iteration before; A LOOP@N holds iteration N"
            )
        return around[(around.index(a) + 1) % len(around)] if a in around else None

    def _later(self, a: Moment | None, by: int) -> Moment:
        if a is None or a.kind is MomentKind.BEFORE:
            return _checked(self.here().moved(by))
        if a.kind is not MomentKind.ITERATION:
            raise UsageError(f"A is no iteration that could be moved by {by:+}, but the {a.kind} {a.branch}".rstrip())
        return _checked(a.moved(by))

    def _at_address(self, text: str) -> Moment:
        machine = self._timeline.machine
        found = named_places(text, machine.compiled, machine.program)
        if len(found) > 1:
            raise UsageError(f"'{text}' names {len(found)} places; say which one")
        place = place_from_the_first(self._timeline, found[0])
        asked = dict(place.iterations)
        steps: list[PlaceStep] = []
        atlas = Atlas(machine.compiled)
        for depth in range(1, len(place.program.path) + 1):
            program = atlas.ancestor(place.program, depth)
            layer = program.path[-1]
            role = next(body.role for body in layer.bodies if body.graph is program.graph)
            if not layer.is_loop:
                steps.append(PlaceStep(layer.id, role, None))
                continue
            wanted = asked.get(depth)
            if wanted is None and depth < len(machine.stack) and machine.stack[depth].program is program:
                wanted = iteration_of(machine.stack[depth])
            if not isinstance(wanted, int):
                example = f"such as {layer.name}@3"
                raise UsageError(f"'{text}' is not one iteration of {layer.type} '{layer.name}': say which, {example}")
            steps.append(PlaceStep(layer.id, role, wanted))
        if not any(step.iteration is not None for step in steps):
            raise UsageError(f"'{text}' is in no loop, so it has no other iteration; a branch or a reference can be A")
        return Moment(MomentKind.ITERATION, self._branches.name, tuple(steps))


def _paths(moment: Moment, here: GraphPlace) -> tuple[Indices, Indices] | None:
    """Return the iterations of a moment and of a loop in which the run stands, where one number does not tell them."""
    there = moment.seen_from(here)
    if there is None or moment.kind is not MomentKind.ITERATION:
        return None
    a, now = (tuple(step.iteration for step in place if step.iteration is not None) for place in (there, here))
    pinned = sum(step.iteration is not None for step in moment.place)
    return None if a[:-1] == now[:-1] and pinned >= len(now) else (a, now)


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


# ---------------------------------------------------------------------------------------------------------------------
# The moment A of a debugger: how it is named, what comes next in the round, and what becomes of it after an edit


OFF: Final = "off"
HERE: Final = "here"
_NEXT: Final = "next"

WORDS: Final = (OFF, HERE, _NEXT, str(MomentKind.BEFORE), str(MomentKind.REFERENCE))
"""What A can be beside an iteration, an address and the name of a branch."""


def _checked(moment: Moment) -> Moment:
    if (moment.iteration or 0) < 0:
        raise UsageError("there is no iteration before 0")
    return moment
