"""Moments that can be held against now: an iteration, the iteration before, another branch, a reference."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, ClassVar, Final, NamedTuple

from stepper.element_types import Array, read_only
from stepper.engine.frames import Frame, Frames
from stepper.engine.program import Program, Value
from stepper.records import Brief, Record

if TYPE_CHECKING:
    from stepper.debug.reference_values import GraphPath
    from stepper.ir.model import BodyRole


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


def place_of_path(path: GraphPath) -> GraphPlace:
    """Return a path without the layers themselves."""
    return tuple(PlaceStep(step.layer.id, step.role, step.iteration) for step in path)


def place_of_stack(stack: Frames) -> GraphPlace:
    """Return the place of the graph that the innermost of these frames runs, at its present iteration."""
    from stepper.debug.reference_values import path_of  # the words for moments need none of a run

    return place_of_path(path_of(stack))


class Moment(Record):
    """A moment that is held against now.

    ITERATION: that of `place`, in the run of `branch`; `tick` is where it was pinned (None: its end). BRANCH: the same
    place in `branch`. BEFORE: the same place one iteration earlier. REFERENCE: the same place in the reference.
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


BEFORE: Final = Moment(MomentKind.BEFORE)
REFERENCE: Final = Moment(MomentKind.REFERENCE)

# --- Values of a moment in one graph, wherever they are: in the frame of a run, or asked of a reference --------------


class MomentValues(Brief):
    """Values of a moment in one graph, in the frame of a run; those of a reference are asked for.

    `iteration` is that of the moment, None outside of loops.
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
