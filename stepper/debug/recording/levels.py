"""What can be recorded of a compiled model: its graphs as levels, the outputs of their layers as ports."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

from stepper.debug.recording.choice import Amount, Choice
from stepper.engine.program import BranchPlan, CompiledModel, LoopPlan, Program
from stepper.ir.model import Layer


class Port(NamedTuple):
    """One output of a layer of a body, in its slot; `stored`: its values are recorded, not only their statistics."""

    id: int
    layer: Layer
    output: int
    slot: int
    stored: bool


@dataclass(frozen=True, slots=True)
class Level:
    """One graph of the model. `path` names it, branches of an If included; `ports` are chosen to be recorded."""

    id: int
    program: Program
    path: str
    layers: tuple[int, ...]
    ports: tuple[Port, ...]

    @property
    def layers_text(self) -> str:
        """The ids of the layers that lead here, as JSON."""
        return json.dumps(self.layers)


def levels_of(compiled: CompiledModel, choice: Choice) -> list[Level]:
    """The levels of a model, the same ones in the same order every time; the first is its own graph."""
    plans = {
        id(plan.program): (plan, index)
        for program in compiled.programs
        for operation in program.operations
        for index, plan in enumerate(operation.plans)
    }
    levels: list[Level] = []
    first = 1
    for number, program in enumerate(compiled.programs):
        plan, index = plans.get(id(program), (None, 0))
        ports: tuple[Port, ...] = ()
        if plan is not None and choice.amount is not Amount.NONE:
            ports = tuple(_ports(program, plan, choice, first))
        first += len(ports)
        branch = (" (then)", " (else)")[index] if isinstance(plan, BranchPlan) else ""
        path = program.name + branch
        levels.append(Level(number, program, path, tuple(layer.id for layer in program.path), ports))
    return levels


def _ports(program: Program, plan: LoopPlan | BranchPlan, choice: Choice, first: int) -> Iterator[Port]:
    stored = _stored_slots(plan, choice.amount)
    results: dict[int, list[str]] = {}
    for layer, slot in zip(program.graph.results, program.results, strict=True):
        results.setdefault(slot, []).append(layer.name)
    number = first
    for layer, output, slot in _outputs(program):
        if any(map(choice.names, (layer.name, *results.get(slot, ())))):
            yield Port(number, layer, output, slot, stored is None or slot in stored)
            number += 1


def _outputs(program: Program) -> Iterator[tuple[Layer, int, int]]:
    """What is computed anew in each run of a body; constants, and what follows from them alone, are the model's."""
    for layer, slot in zip(program.graph.parameters, program.parameters, strict=True):
        yield layer, 0, slot
    for operation in program.operations:
        for output, slot in enumerate(operation.outputs):
            yield operation.layer, output, slot


def _stored_slots(plan: LoopPlan | BranchPlan, amount: Amount) -> set[int] | None:
    """The slots whose values are stored; None: all of them."""
    if amount is Amount.ALL:
        return None
    if amount is not Amount.CARRIED or not isinstance(plan, LoopPlan):
        return set()
    # As they leave an iteration: so they enter the next one.
    return {entry.result for entry in plan.merged} | {entry.result for entry in plan.concatenated}
