"""The moment A of a debugger: how it is named, what comes next in the round, and what becomes of it after an edit."""

from __future__ import annotations

import re
from typing import Final, Protocol

from stepper.debug.branches.branches import Branches
from stepper.debug.branches.names import ORIGINAL
from stepper.debug.breakpoints.conditions import named_places
from stepper.debug.finding.goto import place_from_the_first
from stepper.debug.moments.moment import BEFORE, REFERENCE, GraphPlace, Moment, MomentKind, PlaceStep, place_of_stack
from stepper.debug.moments.moments import Moments
from stepper.debug.scopes import innermost_loop
from stepper.debug.stop import Stop, iteration_of
from stepper.debug.timeline import Timeline
from stepper.engine.machine import Machine
from stepper.errors import Paused, UsageError
from stepper.ir.lowering import without_loops
from stepper.query.atlas import Atlas

OFF: Final = "off"
HERE: Final = "here"
_NEXT: Final = "next"

WORDS: Final = (OFF, HERE, _NEXT, str(MomentKind.BEFORE), str(MomentKind.REFERENCE))
"""What A can be beside an iteration, an address and the name of a branch."""

_ABSENT: Final = {
    MomentKind.ITERATION: "A is in a loop that does not run here",
    MomentKind.BEFORE: "there is no iteration before this one",
}


class Traveller(Protocol):
    """A debugger, as far as it is known here: a run that goes anywhere in its branches, and has a moment A."""

    branches: Branches
    machine: Machine
    stop: Stop

    @property
    def timeline(self) -> Timeline:
        """Return the course of the run that goes on."""

    @property
    def moments(self) -> Moments:
        """Return what reads moments."""

    @property
    def pinned(self) -> Moment | None:
        """Return the moment A."""

    @pinned.setter
    def pinned(self, moment: Moment | None) -> None: ...

    def branch(self, name: str) -> Stop:
        """Go on in another branch."""
        ...

    def goto_tick(self, tick: int) -> Stop:
        """Go to a tick."""
        ...

    def goto_iteration(self, iteration: int) -> Stop:
        """Go to the same place in another iteration."""
        ...


def moment_called(debugger: Traveller, text: str, a: Moment | None = None) -> Moment | None:
    """Return the moment that a text means, None for `off`; `a` is A as it is, for `+1` and `next`.

    A text is one of WORDS, the name of a branch, the number of an iteration of the loop that runs here, how many
    iterations later than A (+1, -2), or an address with iterations. UsageError for one that there is not.
    """
    if text == OFF:
        return None
    if text == _NEXT:
        return _next(debugger, a)
    if text in ("", HERE):
        return here(debugger)
    if text == MomentKind.BEFORE:
        return BEFORE
    if text == MomentKind.REFERENCE:
        if debugger.timeline.reference is None:
            raise UsageError("there is no reference: name one with reference FILE, or --reference at the start")
        return REFERENCE
    if text in debugger.branches:
        return _of_branch(debugger, text)
    if re.fullmatch(r"[+-][0-9]{1,18}", text):
        return _later(debugger, a, int(text))
    if re.fullmatch(r"@?[0-9]{1,18}", text):
        now = here(debugger)
        return _checked(now.moved(int(text.lstrip("@")) - (now.iteration or 0)))
    return _at_address(debugger, text)


def _of_branch(debugger: Traveller, name: str) -> Moment:
    if name == debugger.branches.name:
        raise UsageError(f"now is branch {name} itself; set ADDR = EXPR makes another one to hold against it")
    return Moment(MomentKind.BRANCH, name)


def here(debugger: Traveller) -> Moment:
    """Return the iteration in which the run stands. UsageError outside of loops."""
    stack = debugger.machine.stack
    depth = innermost_loop(stack)
    if depth is None or iteration_of(stack[depth]) is None:
        way = "step into a loop first, until its first iteration has begun"
        raise UsageError(f"the run is in no iteration here: {without_loops(debugger.machine.compiled.model) or way}")
    place = place_of_stack(stack[: depth + 1])
    return Moment(MomentKind.ITERATION, debugger.branches.name, place, debugger.machine.tick)


def by_itself(debugger: Traveller) -> Moment | None:
    """Return what A is as long as nothing was said: the reference, or the original beside a branch with edits."""
    if debugger.timeline.reference is not None:
        return REFERENCE
    has_edits = debugger.branches.name != ORIGINAL and bool(debugger.timeline.edits)
    return Moment(MomentKind.BRANCH, ORIGINAL) if has_edits else None


def after_edit(a: Moment | None) -> Moment:
    """Return what A is once a value was changed: the original, unless it is a branch already."""
    return a if a is not None and a.kind is MomentKind.BRANCH else Moment(MomentKind.BRANCH, ORIGINAL)


def after_leaving(a: Moment | None, left: str, entered: str) -> Moment | None:
    """Return what A is where the run goes on in another branch: never the one that is entered."""
    if a is not None and a.kind is MomentKind.BRANCH and a.branch == entered:
        return Moment(MomentKind.BRANCH, left)
    return a


def swapped(debugger: Traveller) -> Stop:
    """Go to A, and make the moment where one was A. UsageError where A is no moment of this run."""
    a = debugger.pinned
    if a is None:
        raise UsageError("there is no moment A: mark A pins this one, A N an iteration, A NAME a branch")
    if a.kind is MomentKind.REFERENCE:
        raise UsageError("A is the reference, which is no moment of this run")
    stack, tick, left = debugger.machine.stack, debugger.machine.tick, debugger.branches.name
    if a.kind is MomentKind.BRANCH:
        place = place_of_stack(stack)
        debugger.branch(a.branch)
        debugger.goto_tick(tick)
        if place_of_stack(debugger.machine.stack) != place:
            _go_to_place(debugger, a, place)
        debugger.pinned = Moment(MomentKind.BRANCH, left)
        return debugger.stop
    now = here(debugger)
    beside = a.seen_from(place_of_stack(stack))
    if beside is None:
        raise UsageError(
            "A is in a loop that does not run here"
            if a.kind is MomentKind.ITERATION
            else "there is no iteration before this"
        )
    if a.branch not in ("", left):
        debugger.branch(a.branch)
    if a.tick is not None:
        debugger.goto_tick(a.tick)
    elif beside[:-1] == place_of_stack(stack)[:-1] and beside[-1].iteration is not None:
        debugger.goto_iteration(beside[-1].iteration)
    else:
        _go_to_place(debugger, a, beside)
    debugger.pinned = now
    return debugger.stop


def _go_to_place(debugger: Traveller, a: Moment, place: GraphPlace) -> None:
    found = debugger.moments.frame(a, place)
    if found is None:
        raise Paused
    if found.frame is None:
        raise UsageError(found.problem)
    debugger.goto_tick(found.tick)


def _next(debugger: Traveller, a: Moment | None) -> Moment | None:
    """Go round: off, the iteration before, the original branch, the reference; what there is not is left out.

    UsageError where there is nothing beside off.
    """
    place = place_of_stack(debugger.machine.stack)
    around: list[Moment | None] = [None]
    if BEFORE.seen_from(place) is not None:
        around.append(BEFORE)
    if debugger.branches.name != ORIGINAL:
        around.append(Moment(MomentKind.BRANCH, ORIGINAL))
    if debugger.timeline.reference is not None:
        around.append(REFERENCE)
    if a is None and len(around) == 1:
        is_within = any(step.iteration is not None for step in place)
        raise UsageError(
            "iteration 0 has none before it; A N holds iteration N against it"
            if is_within
            else "outside of loops there is no iteration before; A LOOP@N holds iteration N"
        )
    return around[(around.index(a) + 1) % len(around)] if a in around else None


def _later(debugger: Traveller, a: Moment | None, by: int) -> Moment:
    if a is None or a.kind is MomentKind.BEFORE:
        return _checked(here(debugger).moved(by))
    if a.kind is not MomentKind.ITERATION:
        raise UsageError(f"A is no iteration that could be moved by {by:+}, but the {a.kind} {a.branch}".rstrip())
    return _checked(a.moved(by))


def _checked(moment: Moment) -> Moment:
    if (moment.iteration or 0) < 0:
        raise UsageError("there is no iteration before 0")
    return moment


def _at_address(debugger: Traveller, text: str) -> Moment:
    machine = debugger.machine
    found = named_places(text, machine.compiled, machine.program)
    if len(found) > 1:
        raise UsageError(f"'{text}' names {len(found)} places; say which one")
    place = place_from_the_first(debugger.timeline, found[0])
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
    return Moment(MomentKind.ITERATION, debugger.branches.name, tuple(steps))
