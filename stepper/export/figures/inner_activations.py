"""Activations of Ifs and loops inside of an iteration: the sides that ran, with their values, and iteration counts.

They are known by the bodies that lead to them from that of the iteration.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

from msgspec import Struct, field

from stepper.debug.inspection.inspect import body_of
from stepper.engine.frames import Frame
from stepper.engine.program import Program
from stepper.export.figures.figure import InnerBody

V = TypeVar("V")


class BranchValues(Struct, frozen=True):
    """A side of an If at its end: references to its values, by slot."""

    program: Program
    frame_values: list[Any]


class InnerActivations(Struct):
    """`sides` are the sides that ran, `loops` how many iterations a loop did, while one iteration goes on."""

    sides: dict[tuple[InnerBody, ...], BranchValues] = field(default_factory=dict)
    loops: dict[tuple[InnerBody, ...], int] = field(default_factory=dict)

    def note(self, left: Frame, around: list[Frame]) -> None:
        """Note that a frame was left; `around` are the frames from the iteration's own to it, outer first."""
        if any(_body(frame).runs_often for frame in around):
            return  # inside of a loop, which runs it often
        inside = (*map(_body, around), _body(left))
        activation = left.activation
        assert activation is not None
        if inside[-1].runs_often:
            self.loops[inside] = activation.iteration + 1
        else:
            self.sides[inside] = BranchValues(left.program, list(left.values))


def _body(frame: Frame) -> InnerBody:
    """Return the body that a frame runs."""
    assert frame.activation is not None
    return InnerBody(frame.activation.operation.layer.id, body_of(frame).role)


def is_idle(inside: tuple[InnerBody, ...], ran: Mapping[tuple[InnerBody, ...], V]) -> bool:
    """True if a body is in a side that did not run, or is one; inside of a loop that is not known."""
    for depth, body in enumerate(inside, 1):
        if body.runs_often:
            return False
        if inside[:depth] not in ran:
            return True
    return False
