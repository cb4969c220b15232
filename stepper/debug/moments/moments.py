"""Two moments of a debugger's run side by side: `Moments` reads A at the places of now, and compares."""

from __future__ import annotations

import math
import re
from collections import OrderedDict

from msgspec.structs import replace

from stepper.debug.branches import Branches
from stepper.debug.breakpoints.conditions import named_places
from stepper.debug.finding import place_from_the_first
from stepper.debug.loop_runs import Enough, excursion, never
from stepper.debug.moments.moment import (
    BEFORE,
    REFERENCE,
    GraphPlace,
    Moment,
    MomentKind,
    MomentValues,
    Order,
    PlaceStep,
    is_before,
    iterations_of,
    order_of,
    place_of_stack,
)
from stepper.debug.moments.spread import CODES, MomentView, Other, Spread
from stepper.debug.scopes import ValuePlace, innermost_loop, path_of
from stepper.debug.stop import iteration_of
from stepper.debug.timeline import ORIGINAL, RunCourse, Timeline
from stepper.element_types import Indices
from stepper.engine.frames import Event, EventKind, Every, Frame, Frames, Snapshot
from stepper.engine.program import Program, Value
from stepper.errors import Paused, StepperError, UsageError
from stepper.ir.lowering import without_loops
from stepper.ir.model import Layer
from stepper.query.address_resolution import Atlas
from stepper.records import Record
from stepper.tensors.difference import Difference, difference
from stepper.tensors.tolerances import Tolerances
from stepper.wording import counted

# --- Frames of any place of a run: the values that a graph had when its iteration was closed, of any branch ----------


_MOST_KEPT = 3
"""Frames of a branch that are kept; each holds the values of one iteration."""


class FoundFrame(Record, eq=False):
    """A frame as it was at the end of its iteration, at `tick`; or, without one, why there is none.

    `failed`: the run fails before the end of the iteration, by the error `problem`.
    """

    frame: Frame | None
    tick: int
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
        """Return the frame of a place; None if `enough` ended the search.

        Another call continues the search.
        """
        course = RunCourse(self._timeline.edits)
        kept = self._kept
        if course != self._course:
            kept.clear()
            self._stand, self._course = None, course
        found = kept.get(place)
        if found is None:
            found = self._searched(_Search(self._timeline, place), enough)
            if found is None:
                return None
            kept[place] = found
            while len(kept) > self._most:
                kept.popitem(last=False)
        kept.move_to_end(place)
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
    """Search forward for a place."""

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
        is_iteration = bool(self._place) and self._place[-1].iteration is not None
        end = EventKind.ITERATION if is_iteration else EventKind.LEFT if self._place else EventKind.FINISHED
        return event.kind is end and iterations_of(self._machine.stack) == self._iterations

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


_ENDED = "the run has ended"


class Moments:
    """Hold the moments that the present of a debugger's run is compared with.

    To be used where the run itself is used.
    """

    def __init__(self, branches: Branches) -> None:
        self._branches = branches
        self._finders: dict[int, tuple[object, FrameFinder]] = {}
        self._spread: Spread | None = None
        self.tolerances: Tolerances | None = None

    @property
    def _timeline(self) -> Timeline:
        """Return the timeline of the present branch."""
        return self._branches.timeline(self._branches.name)

    # --- values --------------------------------------------------------------------------------------------------

    def values(self, moment: Moment, stack: Frames, enough: Enough = never) -> MomentValues | str | None:
        """Return the values of a moment for the graph of the innermost of these frames, or why there are none.

        None where `enough` ended the search. Those of a reference are asked for one by one.
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
                return "there is no reference: name one with compare FILE"
            return MomentValues(program, iteration)
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

    def value(self, moment: Moment, stack: Frames, layer: int, output: int = 0) -> Value | None:
        """Return one value of a moment for the graph of the innermost frame; None where it has none.

        Raise UsageError, Paused.
        """
        found = self.values(moment, stack)
        if isinstance(found, str):
            raise UsageError(found)
        if found is None:
            raise Paused
        return self._value(moment, found, stack, layer, output)

    def _value(self, moment: Moment, values: MomentValues, stack: Frames, layer: int, output: int) -> Value | None:
        if moment.kind is not MomentKind.REFERENCE:
            return values.held(layer, output)
        reference, frame = self._timeline.reference, stack[-1]
        assert reference is not None
        return reference.value_at(ValuePlace(path_of(stack), frame.program.graph.by_id[layer], output, frame))

    # --- comparing -----------------------------------------------------------------------------------------------

    def view(
        self, moment: Moment, depth: int | None = None, enough: Enough = never, *, compares: bool = False
    ) -> MomentView:
        """Return the baseline beside now, for the frame at this depth (by default the innermost).

        `compares`: how the two differ. `enough` ends the search for the baseline; another call continues.
        """
        stack = self._timeline.machine.stack
        depth = len(stack) - 1 if depth is None else min(depth, len(stack) - 1)
        spread = self.spread(moment)
        shown = None if spread is None else spread.view()
        if not stack:
            return MomentView(moment, title=self._title(moment), spread=shown, problem=_ENDED, is_complete=True)
        try:
            return replace(self._view(moment, stack[: depth + 1], enough, compares=compares), spread=shown)
        except StepperError as error:
            title = self._title(moment)
            return MomentView(moment, title=title, spread=shown, problem=str(error), is_complete=True)

    def spread(self, moment: Moment) -> Spread | None:
        """Return now beside A in all iterations, as far as `Spread.go` has come; None where A is no other run."""
        here = self._branches.name
        other: Other | None = None
        if moment.kind is MomentKind.REFERENCE:
            other = self._timeline.reference
        elif moment.kind is MomentKind.BRANCH and moment.branch != here and moment.branch in self._branches:
            other = moment.branch
        if other is None:
            return None
        if self._spread is None or not self._spread.is_of(other, here):
            self._spread = Spread(self._branches, other, here, self.tolerances_for(moment))
        return self._spread

    def tolerances_for(self, moment: Moment) -> Tolerances:
        """Return those that were asked for, else those of the same kernels, or of other kernels."""
        reference = self._timeline.reference
        is_exact = moment.kind is not MomentKind.REFERENCE or bool(getattr(reference, "is_exact", False))
        return Tolerances(exact=is_exact) if self.tolerances is None else self.tolerances

    def allow(self, tolerances: Tolerances) -> None:
        """Compare with these tolerances from now on."""
        self.tolerances = tolerances
        self._spread = None

    def _view(self, moment: Moment, stack: Frames, enough: Enough, *, compares: bool) -> MomentView:
        title, loop_depth = self._title(moment), innermost_loop(stack)
        values = self.values(moment, stack, enough)
        if not isinstance(values, MomentValues):
            return MomentView(moment, title=title, problem=values or "", is_complete=values is not None)
        if loop_depth is None:
            found = MomentView(moment, None, None, title, values, is_complete=True)
            return replace(found, operations=self._operations(moment, values, stack)) if compares else found
        stack_of_loop = stack[: loop_depth + 1]
        known = self.values(moment, stack_of_loop, enough)
        around = known if isinstance(known, MomentValues) else None
        iteration, path = None if around is None else around.iteration, _paths(moment, place_of_stack(stack_of_loop))
        found = MomentView(moment, iteration, path, title, values, around, is_complete=True)
        if not compares:
            return found
        carried = {} if around is None else self._carried(moment, around, stack_of_loop)
        return replace(found, operations=self._operations(moment, values, stack), carried=carried)

    def _carried(self, moment: Moment, a: MomentValues, stack: Frames) -> dict[int, Difference]:
        """Compare what entered the iteration of a loop."""
        frame, found = stack[-1], dict[int, Difference]()
        for one in frame.loop.merged if frame.loop else ():
            layer = frame.program.parameter(one.parameter)
            now = frame.values[one.parameter] if frame.is_current(one.parameter) else None
            if pair := self._pair(moment, a, stack, layer, 0, now):
                found[layer.id] = pair
        return found

    def _operations(self, moment: Moment, a: MomentValues, stack: Frames) -> dict[int, Difference]:
        """Compare what has run of a graph: of an operation the output that differs most."""
        frame, found = stack[-1], dict[int, Difference]()
        for index, operation in enumerate(frame.program.operations[: frame.computed]):
            now = [None if slot < 0 else frame.values[slot] for slot in operation.outputs]
            pairs = [self._pair(moment, a, stack, operation.layer, place, one) for place, one in enumerate(now)]
            if known := [pair for pair in pairs if pair is not None]:
                found[index] = max(known, key=lambda one: (CODES[one.change], one.relative or 0.0))
        return found

    def _pair(
        self, moment: Moment, a: MomentValues, stack: Frames, layer: Layer, output: int, now: Value | None
    ) -> Difference | None:
        theirs = None if now is None else self._value(moment, a, stack, layer.id, output)
        if theirs is None or now is None:
            return None
        return difference(theirs, now, self.tolerances_for(moment).of(layer, now))

    def _title(self, moment: Moment) -> str:
        reference = self._timeline.reference
        return reference.title if moment.kind is MomentKind.REFERENCE and reference is not None else ""

    # --- what is meant by a text ------------------------------------------------------------------------------------

    def called(self, text: str, a: Moment | None = None) -> Moment | None:
        """Return the moment that a text means, None for `off`.

        `a` is the present baseline, for `+1` and `next`. A text is one of WORDS, or the name of a branch. It may be the
        number of an iteration of the loop that runs here, or how many iterations later than the baseline (+1, -2). It
        may also be an address with iterations. UsageError for a moment that does not exist.
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
                raise UsageError("there is no reference: name one with compare FILE, or --reference at the start")
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
            raise UsageError(f"the run is in branch {name} itself; set ADDR = EXPR makes another one to compare with")
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
                "iteration 0 has no previous one; A N takes iteration N as the baseline"
                if is_within
                else "outside of loops there is no previous iteration; A LOOP@N takes iteration N"
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
            raise UsageError(f"'{text}' is in no loop, so it has no other iteration: name a branch or a reference")
        return Moment(MomentKind.ITERATION, self._branches.name, tuple(steps))


def _paths(moment: Moment, here: GraphPlace) -> tuple[Indices, Indices] | None:
    """Return the iterations of a moment and of a loop in which the run stands, where one number does not tell them."""
    there = moment.seen_from(here)
    if there is None or moment.kind is not MomentKind.ITERATION:
        return None
    a, now = (tuple(step.iteration for step in place if step.iteration is not None) for place in (there, here))
    pinned = sum(step.iteration is not None for step in moment.place)
    return None if a[:-1] == now[:-1] and pinned >= len(now) else (a, now)


# ---------------------------------------------------------------------------------------------------------------------
# The moment A of a debugger: how it is named, what comes next in the round, and what becomes of it after an edit


OFF = "off"
HERE = "here"
_NEXT = "next"

WORDS = (OFF, HERE, _NEXT, str(MomentKind.BEFORE), str(MomentKind.REFERENCE))
"""Words for a baseline, besides an iteration, an address and the name of a branch."""


def _checked(moment: Moment) -> Moment:
    if (moment.iteration or 0) < 0:
        raise UsageError("there is no iteration before 0")
    return moment
