"""Moments to compare with now: an iteration, the one before, a branch, a reference; and graphs of two runs in pairs."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from enum import StrEnum
from typing import ClassVar, NamedTuple

from stepper.debug.scopes import GraphPath, ReferenceValues, ValuePlace, path_of
from stepper.debug.timeline import Timeline
from stepper.element_types import Array, Indices, read_only
from stepper.engine.frames import (
    Activation,
    Event,
    EventKind,
    Every,
    Frame,
    Frames,
    LoopEndObserver,
    LoopRun,
    Phase,
    Snapshot,
    loop_run,
)
from stepper.engine.machine import Machine
from stepper.engine.program import CompiledModel, Program, Value
from stepper.errors import StepperError
from stepper.ir.model import BodyRole, Layer
from stepper.query.address_resolution import Atlas
from stepper.records import Brief, Record


class MomentKind(StrEnum):
    """Kind of a baseline."""

    ITERATION = "iteration"
    BEFORE = "before"
    BRANCH = "branch"
    REFERENCE = "reference"


class PlaceStep(NamedTuple):
    """A step on the way to a graph that runs: loop or If by layer id, which body, the iteration (None: of an If)."""

    layer: int
    role: BodyRole
    iteration: int | None


GraphPlace = tuple[PlaceStep, ...]
"""The way to a graph that runs, outer before inner; empty for the model's own graph."""


def place_of_stack(stack: Frames) -> GraphPlace:
    """Return the place of the graph that the innermost of these frames runs, at its present iteration."""
    return tuple(PlaceStep(step.layer.id, step.role, step.iteration) for step in path_of(stack))


class Moment(Record):
    """A moment that the present is compared with.

    ITERATION: the iteration of `place`, in the run of `branch`; `tick` is where it was pinned (None: its end). BRANCH:
    the same place in `branch`. BEFORE: the same place one iteration earlier. REFERENCE: the same place in the
    reference.
    """

    kind: MomentKind
    branch: str = ""
    place: GraphPlace = ()
    tick: int | None = None

    @property
    def iteration(self) -> int | None:
        """Return the iteration that is pinned; None of another kind."""
        return next((step.iteration for step in reversed(self.place) if step.iteration is not None), None)

    def moved(self, by: int) -> Moment:
        """Return the moment so many iterations later, of the innermost loop; it must be an ITERATION."""
        place = list(self.place)
        at = next(index for index in reversed(range(len(place))) if place[index].iteration is not None)
        place[at] = place[at]._replace(iteration=(place[at].iteration or 0) + by)
        return Moment(self.kind, self.branch, tuple(place[: at + 1]))

    def seen_from(self, here: GraphPlace) -> GraphPlace | None:
        """Return the place that stands beside `here`; None where there is none.

        Of an iteration: `here` in the iterations that are pinned, as far as the two are on the same way.
        """
        if self.kind is MomentKind.BEFORE:
            at = next((index for index in reversed(range(len(here))) if here[index].iteration is not None), None)
            before = None if at is None else (here[at].iteration or 0) - 1
            if at is None or before is None or before < 0:
                return None
            return (*here[:at], here[at]._replace(iteration=before), *here[at + 1 :])
        if self.kind is not MomentKind.ITERATION:
            return here
        shared = 0
        for step, pinned in zip(here, self.place, strict=False):
            if (step.layer, step.role) != (pinned.layer, pinned.role):
                break
            shared += 1
        return (*self.place[:shared], *here[shared:]) if shared else None


BEFORE = Moment(MomentKind.BEFORE)
REFERENCE = Moment(MomentKind.REFERENCE)

# --- Values of a moment in one graph, wherever they are: in the frame of a run, or asked of a reference --------------


class MomentValues(Brief):
    """Hold values of a moment in one graph, in the frame of a run.

    Values of a reference are asked for. `iteration` is the iteration of the moment, None outside of loops.
    """

    unshown: ClassVar = ("program", "_frame")

    program: Program
    iteration: int | None
    _frame: Frame | None = None

    def held(self, layer: int, output: int = 0) -> Value | None:
        """Return the value of a layer's output, by the layer's id, itself; None where the moment has none."""
        if self._frame is None:
            return None
        slot = self.program.slots.get((layer, output), -1)
        return self._frame.values[slot] if self._frame.is_current(slot) else None

    def value(self, layer: int, output: int = 0) -> Array | None:
        """Return the same as an array that cannot be written to."""
        found = self.held(layer, output)
        return None if found is None else read_only(found)


Order = tuple[float, ...]
"""Where a run is, so that the earlier of two has the smaller one."""
Values = Callable[[Layer, int], "Array | None"]
"""Value of the other run for an output of a layer; None where it has none."""


class EndedGraph(Record, eq=False):
    """Describe a graph that has run: an iteration of a loop, a side of an If, or the model's own.

    The model's own graph has one frame. `stack` leads to its frame. Frames are live state: they stay so until their run
    continues.
    """

    stack: tuple[Frame, ...]

    @property
    def frame(self) -> Frame:
        """Return its frame."""
        return self.stack[-1]

    @property
    def numbers(self) -> Indices:
        """Return the iterations of the loops around, from the outermost inwards."""
        return iterations_of(self.stack)

    @property
    def run(self) -> LoopRun | None:
        """Return the run of its own loop; None of the model's own graph."""
        return loop_run(self.stack)

    @property
    def path(self) -> GraphPath:
        """Return the path to it."""
        return path_of(self.stack)


def ended_graphs(events: Iterable[Event], machine: Machine, *, sides: bool = False) -> Iterator[EndedGraph]:
    """Yield the graphs that a run ends: iterations of loops, `sides` of Ifs if these are wanted, the model's own last.

    Errors of the run are raised.
    """
    for event in events:
        if event.kind is EventKind.ITERATION:
            yield EndedGraph(tuple(machine.stack))
        elif event.kind is EventKind.FINISHED or (sides and event.kind is EventKind.LEFT and not event.frame.loop):
            yield EndedGraph((*machine.stack, event.frame))


class RunPairs:
    """The graphs of two runs from where they stand to their ends: (a, b), with None for one that only the other ends.

    Without `a` those of b alone. `ends` are the errors with which they ended, empty where a run came to its end;
    `counts` the iterations of each by the identity of the loop's program, where there are two.
    """

    def __init__(self, a: Timeline | None, b: Timeline) -> None:
        self._sides = (a, b)
        self.ends = ["", ""]
        self.counts: tuple[Counter[int], Counter[int]] = (Counter(), Counter())

    def __iter__(self) -> Iterator[tuple[EndedGraph | None, EndedGraph | None]]:
        left, right = self._ended(0), self._ended(1)
        one, other = next(left, None), next(right, None)
        while one is not None or other is not None:
            before = () if one is None else order_of(one.stack)
            after = () if other is None else order_of(other.stack)
            is_left = one is not None and (other is None or before <= after)
            is_right = other is not None and (one is None or after <= before)
            yield one if is_left else None, other if is_right else None
            one = next(left, None) if is_left else one
            other = next(right, None) if is_right else other

    def _ended(self, side: int) -> Iterator[EndedGraph]:
        timeline, counts = self._sides[side], self.counts[side]
        if timeline is None:
            return

        def ended(_stack: Frames, activation: Activation) -> None:
            counts[id(activation.plan.program)] += activation.iteration + 1

        timeline.machine.observers = () if self._sides[0] is None else (LoopEndObserver(ended),)
        try:
            yield from ended_graphs(timeline.events(Every.ITERATION), timeline.machine)
        except StepperError as error:
            self.ends[side] = str(error)


def values_beside(reference: ReferenceValues, stack: Frames) -> Values:
    """Return the reference's values for the innermost of these frames, at its present iteration."""
    path, frame = path_of(stack), stack[-1]
    return lambda layer, output: reference.value_at(ValuePlace(path, layer, output, frame))


def order_of(stack: Frames) -> Order:
    """Return where a run is, as numbers: an earlier moment has smaller ones."""
    found: list[float] = []
    for depth, frame in enumerate(stack):
        if frame.activation:
            found.append(frame.activation.iteration if frame.loop else 0)
        is_outer = depth < len(stack) - 1
        found.append(frame.pc if is_outer or frame.phase is Phase.RUNNING else math.inf)
    return tuple(found)


def order_at(compiled: CompiledModel, program: Program, iterations: Sequence[int | None]) -> Order:
    """Return the order of where a graph is entered in these iterations of the layers of its path; None: the first."""
    atlas, found = Atlas(compiled), list[float]()
    for depth, (layer, iteration) in enumerate(zip(program.path, iterations, strict=True)):
        found += [atlas.ancestor(program, depth).indices.get(layer.id, -1), iteration or 0]
    return tuple(found)


def is_before(moment: Snapshot, order: Order) -> bool:
    """True if a moment of a run that has not ended is before another one."""
    return bool(moment.frames) and order_of(moment.frames) < order


def iterations_of(stack: Frames) -> Indices:
    """Return the iterations of the loops of a stack, from the outermost inwards."""
    return tuple(frame.active.iteration for frame in stack if frame.loop)
