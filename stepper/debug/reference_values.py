"""Values of another run at the places of the debugged one: the protocol of `debugger.reference`.

Whoever has such values (an archive, a recording, a second model: stepper.compare) fulfils `ReferenceValues` and is set
as `debugger.reference`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple, Protocol, runtime_checkable

from stepper.debug.scopes import frame_of
from stepper.engine.program import LoopPlan, Program
from stepper.errors import UsageError

if TYPE_CHECKING:
    from stepper.element_types import Array
    from stepper.engine.frames import Frame
    from stepper.ir.model import BodyRole, Layer


class PathStep(NamedTuple):
    """A step of a path: the loop or If, which of its bodies runs, and the iteration (None for a branch)."""

    layer: Layer
    role: BodyRole
    iteration: int | None


GraphPath = tuple[PathStep, ...]
"""Path from the model's own graph to a nested one, outer before inner; empty for the model's own graph."""


class ValuePlace(NamedTuple):
    """Place of a value of the debugged run: the path to its graph, the layer that computes it, its output.

    `frame` is our live state of that graph, for references that compute from our values.
    """

    path: GraphPath
    layer: Layer
    output: int
    frame: Frame | None = None


class ReferenceValues(Protocol):
    """Values of another run, at the places of ours."""

    @property
    def title(self) -> str:
        """Name in messages."""

    def value_at(self, place: ValuePlace) -> Array | None:
        """Return the value at this place; None where the other run has none. May raise StepperError."""


@runtime_checkable
class ReferenceNotes(Protocol):
    """Sentences on where the other run failed, such as by a crash; none if it did not."""

    @property
    def notes(self) -> Sequence[str]:
        """Return them in the order in which it failed."""


def path_of(stack: Sequence[Frame]) -> GraphPath:
    """Return the path to the graph that the innermost of these frames runs."""
    return tuple(step_of(frame) for frame in stack[1:])


def step_of(frame: Frame) -> PathStep:
    """Return the step from the graph around a frame into the frame."""
    activation = frame.active
    layer, plan = activation.operation.layer, activation.plan
    if isinstance(plan, LoopPlan):
        return PathStep(layer, "body", activation.iteration)
    return PathStep(layer, "then_body" if activation.operation.plans[0] is plan else "else_body", None)


def loop_steps(path: GraphPath) -> GraphPath:
    """Return the steps that are loops."""
    return tuple(step for step in path if step.iteration is not None)


class ReferencedValue:
    """A value of ours, of which a reference is asked at any moment."""

    def __init__(self, program: Program, slot: int) -> None:
        self.program = program
        layer_id, self.output = next(key for key, found in program.slots.items() if found == slot)
        self.layer = program.graph.by_id[layer_id]

    def value(self, stack: Sequence[Frame], reference: ReferenceValues) -> Array | None:
        """Return what it is in the reference now; None if that has none. Raise UsageError if our run is elsewhere."""
        depth = frame_of(stack, self.program)
        if depth is None:
            raise UsageError(f"{self.program.name} is not running")
        return reference.value_at(ValuePlace(path_of(stack[: depth + 1]), self.layer, self.output, stack[depth]))
