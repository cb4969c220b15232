"""A whole run in one call, and what comes out of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from stepper.element_types import Array
from stepper.engine.compiler import compile_model
from stepper.engine.events import Every
from stepper.engine.feeds import bind_inputs
from stepper.engine.frames import Activation
from stepper.engine.loops import EndReason
from stepper.engine.machine import Machine
from stepper.engine.rules import Note, Rules
from stepper.errors import UsageError
from stepper.ir.model import Model


@dataclass(frozen=True, slots=True)
class LoopSummary:
    """One execution of a loop: where, how many iterations it ran, and what ended it."""

    place: str
    iterations: int
    ended: EndReason


class Outputs(dict[str, Array]):
    """The model's outputs by name, in the order of its Results; with what there is to say about the run.

    `loops` has one entry for each execution of a loop, `notes` name where the other rule book would differ, `variables`
    are the values of ReadValue/Assign to be handed to the next inference.
    """

    loops: tuple[LoopSummary, ...]
    notes: tuple[Note, ...]
    variables: dict[str, Any]


def run(
    model: Model,
    inputs: Mapping[str | int, Any],
    rules: str | Rules = Rules.SPEC,
    max_iterations: int | None = None,
    variables: Mapping[str, Any] | None = None,
) -> Outputs:
    """Run the model once and return its outputs.

    `inputs` maps names, tensor names or positions to arrays; `rules` is "spec" or "openvino"; `max_iterations` ends the
    run with LimitReached where one loop wants more. Raises the errors of stepper.errors, each with one clear message.
    """
    try:
        chosen = Rules(rules)
    except ValueError:
        raise UsageError(f"there is no rule book '{rules}'; choose {' or '.join(Rules)}") from None
    compiled = compile_model(model, chosen)
    machine = Machine(
        compiled, bind_inputs(model, inputs), max_iterations=max_iterations, states=variables, keep_values=False
    )
    loops: list[LoopSummary] = []
    machine.on_loop_end = lambda place, activation: loops.append(summary(place, activation))
    for _event in machine.run(Every.END):
        pass
    return collect(machine, tuple(loops))


def collect(machine: Machine, loops: tuple[LoopSummary, ...] = ()) -> Outputs:
    """The outputs of a machine that has finished."""
    assert machine.outputs is not None, "the machine has finished"
    outputs = Outputs(zip(output_names(machine.compiled.model), machine.outputs, strict=True))
    outputs.loops = loops
    outputs.notes = tuple(machine.notes)
    outputs.variables = machine.states
    return outputs


def output_names(model: Model) -> list[str]:
    """A name for each of the model's outputs: its tensor's first name, else that of its Result, made unique."""
    names: list[str] = []
    for result in model.graph.results:
        source = model.graph.sources[result.id][0]
        assert source is not None, "the reader has seen to it"
        tensor_names = model.graph.by_id[source.layer].outputs[source.output].names
        candidates = [*tensor_names, result.name, *(f"{result.name}#{index}" for index in range(len(names) + 1))]
        names.append(next(name for name in candidates if name and name not in names))
    return names


def summary(place: str, activation: Activation) -> LoopSummary:
    """What there is to say about a loop that has ended."""
    assert activation.ended is not None, "a loop leaves for a reason"
    return LoopSummary(place, activation.iteration + 1, activation.ended)
