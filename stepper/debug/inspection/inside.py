"""A frame of a loop or branch and the frame around it, as the parts of an inspection look at them."""

from __future__ import annotations

from msgspec import Struct

from stepper.debug.inspection.values import result_view, value_view
from stepper.debug.inspection.views import LevelView, ValueView
from stepper.engine.frames import Activation, Frame
from stepper.engine.machine import Machine
from stepper.engine.program import LoopPlan
from stepper.engine.rules import Rules
from stepper.ir.model import Body, Layer, Source


def body_of(frame: Frame) -> Body:
    """Return the body (of an If the side) that the frame of a loop or branch runs."""
    assert frame.activation is not None
    return next(body for body in frame.activation.operation.layer.bodies if body.graph is frame.program.graph)


class Inside(Struct, frozen=True):
    """The frame of a loop or branch with the frame around it, and what belongs to the two; `file` is the model's."""

    frame: Frame
    outer: Frame
    level: LevelView
    rules: Rules
    file: str
    activation: Activation
    layer: Layer
    body: Body

    @classmethod
    def of(cls, frame: Frame, outer: Frame, level: LevelView, machine: Machine) -> Inside:
        """Return what belongs to the frame of a loop or branch and the one around it."""
        assert frame.activation is not None
        activation, file = frame.activation, str(machine.compiled.model.path)
        return cls(frame, outer, level, machine.rules, file, activation, activation.operation.layer, body_of(frame))

    @property
    def plan(self) -> LoopPlan:
        """Return the loop's plan."""
        assert isinstance(self.activation.plan, LoopPlan)
        return self.activation.plan

    def inner(self, identity: int) -> ValueView:
        """Return the value of a Parameter or Result of the body, by id."""
        layer = self.body.graph.by_id[identity]
        return result_view(self.frame, layer) if layer.type == "Result" else value_view(self.frame, Source(identity, 0))

    def output(self, index: int | None) -> ValueView | None:
        """Return the value at an output of the outer layer; None for no output."""
        return None if index is None else value_view(self.outer, Source(self.layer.id, index))

    def name(self, slot: int | None) -> str | None:
        """Return the name of the Result in a slot."""
        if slot is None:
            return None
        program = self.frame.program
        return program.graph.results[program.results.index(slot)].name
