"""Views of a session's variables and marks, as plain frozen data."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec import Struct

from stepper.debug.debugger import Debugger
from stepper.debug.iterations.slots import read_only
from stepper.engine.program import CompiledModel, Program
from stepper.ir.model import Layer


class VariableView(Struct, frozen=True, eq=False):
    """A variable of the model (ReadValue, Assign), or the state of a random operation, as it is now.

    `layers` are those that read it or assign to it. `value` is what the next inference would begin with; None before
    anything was read or assigned.
    """

    name: str
    layers: tuple[tuple[Program, Layer], ...]
    value: Any


class MarkView(Struct, frozen=True):
    """A moment with a name; `is_here`: it is of the branch that goes on, so that one can go there."""

    name: str
    tick: int
    branch: str
    is_here: bool


class Variables:
    """The variables of a model, in the order in which they stand in it; looked up once."""

    def __init__(self, compiled: CompiledModel) -> None:
        self._users: dict[str, list[tuple[Program, Layer]]] = {}
        for program in compiled.programs:
            for operation in program.operations:
                if operation.state_key:
                    self._users.setdefault(operation.state_key, []).append((program, operation.layer))

    def views(self, states: Mapping[str, Any]) -> tuple[VariableView, ...]:
        """Return all of them with what a machine has for them."""
        return tuple(VariableView(name, tuple(users), _shared(states.get(name))) for name, users in self._users.items())


def _shared(value: Any) -> Any:
    return value if value is None or not hasattr(value, "dtype") else read_only(value)


def mark_views(debugger: Debugger) -> tuple[MarkView, ...]:
    """Return all marks, in the order of time."""
    here = debugger.branches.name
    marks = sorted(debugger.marks.items(), key=lambda item: (item[1].tick, item[0]))
    return tuple(MarkView(name, mark.tick, mark.branch, mark.branch == here) for name, mark in marks)
