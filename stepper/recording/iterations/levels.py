"""Levels and ports: the graphs of a compiled model, and the outputs of their layers that can be recorded."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, Final, NamedTuple

from msgspec import Struct

from stepper.engine.program import BranchPlan, CompiledModel, LoopPlan, Program
from stepper.ir.model import Layer
from stepper.recording.options import Amount, RecordingOptions

_SIDES: Final = {"then_body": " (then)", "else_body": " (else)"}


class RecordedPort(NamedTuple):
    """One output of a layer of a body, in its slot; `stored`: its values are recorded, not only their statistics.

    `position` is the index of its operation, -1 for a Parameter; `results` are the Results that it feeds;
    `computed_by` is the partner that computes it, in words.
    """

    id: int
    layer: Layer
    output: int
    slot: int
    stored: bool
    position: int
    results: tuple[Layer, ...]
    computed_by: str

    def row(self, level: int) -> tuple[Any, ...]:
        """Return the columns of the table ports."""
        layer = self.layer
        names = json.dumps(layer.outputs[self.output].names)
        results = json.dumps([(result.id, result.name) for result in self.results])
        where = (self.id, level, layer.id, layer.name, layer.type, self.output, self.position)
        return (*where, names, results, self.computed_by)


class GraphLevel(Struct, frozen=True):
    """One graph of the model. `path` names it, branches of an If included; `ports` are chosen to be recorded.

    `parent` is the level in which its loop or If is, `position` the index of that operation, `role` which of the bodies
    this is; None for the model's own graph.
    """

    id: int
    program: Program
    path: str
    layers: tuple[int, ...]
    ports: tuple[RecordedPort, ...]
    parent: int | None = None
    position: int | None = None
    role: str | None = None

    @property
    def row(self) -> tuple[Any, ...]:
        """The columns of the table levels."""
        layer = self.program.path[-1] if self.program.path else None
        what = (None, None) if layer is None else (layer.type, layer.name)
        return (self.id, self.path, json.dumps(self.layers), self.parent, self.position, *what, self.role)


def levels_of(compiled: CompiledModel, options: RecordingOptions) -> list[GraphLevel]:
    """Return the levels of a model, the same ones in the same order every time; the first is its own graph."""
    places = {
        id(plan.program): _Place(parent, position, plan)
        for parent, program in enumerate(compiled.programs)
        for position, operation in enumerate(program.operations)
        for plan in operation.plans
    }
    levels: list[GraphLevel] = []
    first = 1
    for number, program in enumerate(compiled.programs):
        layers = tuple(layer.id for layer in program.path)
        place = places.get(id(program))
        if place is None:
            levels.append(GraphLevel(number, program, program.name, layers, ()))
            continue
        ports = () if options.amount is Amount.NONE else tuple(_ports(program, place.plan, options, first))
        first += len(ports)
        role = next(body.role for body in program.path[-1].bodies if body.graph is program.graph)
        path = program.name + _SIDES.get(role, "")
        levels.append(GraphLevel(number, program, path, layers, ports, place.parent, place.position, role))
    return levels


class _Place(NamedTuple):
    """Where the operation of a body is: in which level, and which of its operations; and as what it is the body."""

    parent: int
    position: int
    plan: LoopPlan | BranchPlan


def _ports(
    program: Program, plan: LoopPlan | BranchPlan, options: RecordingOptions, first: int
) -> Iterator[RecordedPort]:
    stored = _stored_slots(plan, options.amount)
    results: dict[int, list[Layer]] = {}
    for layer, slot in zip(program.graph.results, program.results, strict=True):
        results.setdefault(slot, []).append(layer)
    number = first
    for layer, output, slot, position, by in _outputs(program):
        fed = tuple(results.get(slot, ()))
        if any(options.names(one.name) for one in (layer, *fed)):
            yield RecordedPort(number, layer, output, slot, stored is None or slot in stored, position, fed, by)
            number += 1


def _outputs(program: Program) -> Iterator[tuple[Layer, int, int, int, str]]:
    """Yield what each run of a body computes anew: no constants, and nothing that follows from them alone."""
    for layer, slot in zip(program.graph.parameters, program.parameters, strict=True):
        yield layer, 0, slot, -1, ""
    for position, operation in enumerate(program.operations):
        for output, slot in enumerate(operation.outputs):
            yield operation.layer, output, slot, position, operation.computed_by


def _stored_slots(plan: LoopPlan | BranchPlan, amount: Amount) -> set[int] | None:
    """Return the slots whose values are stored; None: all of them."""
    if amount is Amount.ALL:
        return None
    if amount is not Amount.CARRIED or not isinstance(plan, LoopPlan):
        return set()
    # As they leave an iteration: so they enter the next one.
    return {entry.result for entry in plan.merged} | {entry.result for entry in plan.concatenated}
