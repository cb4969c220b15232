"""Activations of Ifs and loops inside of an iteration: the sides that ran, with their values, and iteration counts.

They are known by what the ids of their boxes begin with: `5t.` is the then side of the If with id 5, `5t.7e.` the else
side of an If in there, `c9` the cluster of the loop with id 9.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

from msgspec import Struct, field

from stepper.debug.inspection.inside import body_of
from stepper.engine.frames import Frame
from stepper.engine.program import Program
from stepper.export.figures.builder import body_prefix

V = TypeVar("V")


class BranchValues(Struct, frozen=True):
    """A side of an If at its end: references to its values, by slot."""

    program: Program
    frame_values: list[Any]


class InnerActivations(Struct):
    """`sides` are the sides that ran, `loops` how many iterations a loop did, while one iteration goes on."""

    sides: dict[str, BranchValues] = field(default_factory=dict)
    loops: dict[str, int] = field(default_factory=dict)

    def note(self, left: Frame, around: list[Frame]) -> None:
        """Note that a frame was left; `around` are the frames from the iteration's own to it, outer first."""
        if any(_prefix_of(frame, "") == "" for frame in around):
            return  # inside of a loop, which runs it often
        prefix = ""
        for frame in around:
            prefix = _prefix_of(frame, prefix)
        activation = left.activation
        assert activation is not None
        layer = activation.operation.layer
        if layer.is_loop:
            self.loops[f"{prefix}c{layer.id}"] = activation.iteration + 1
        else:
            self.sides[_prefix_of(left, prefix)] = BranchValues(left.program, list(left.values))


def _prefix_of(frame: Frame, prefix: str) -> str:
    """Return the prefix of ids in the side of an If; empty for the body of a loop."""
    assert frame.activation is not None
    layer = frame.activation.operation.layer
    return "" if layer.is_loop else body_prefix(prefix, layer, body_of(frame))


def is_idle(prefix: str, ran: Mapping[str, V]) -> bool:
    """True if ids that begin so are in a side that did not run; inside of a loop that is not known."""
    begun = ""
    for part in prefix.split(".")[:-1]:
        begun += f"{part}."
        if part.isdigit():
            return False
        if begun not in ran:
            return True
    return False
