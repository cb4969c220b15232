"""A whole run in one call, and what comes out of it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from msgspec import Struct, field

from stepper.element_types import Array
from stepper.engine.compilation.compiler import compile_model
from stepper.engine.events import Every, RunObserver
from stepper.engine.frames import Activation, Frame, place
from stepper.engine.inputs.binding import bind_inputs
from stepper.engine.inputs.variables import bind_states, states_of
from stepper.engine.loops import EndReason
from stepper.engine.machine import Machine
from stepper.engine.partners import Partner, computed_elsewhere, operations_elsewhere
from stepper.engine.program import CompiledModel, Operation
from stepper.engine.rules import Note, Rules
from stepper.ir.model import LayerSite, Model, layer_site
from stepper.ir.opening import ModelSource
from stepper.ops.operands import form_text


class LoopSummary(Struct):
    """Summary of all executions of one loop: how many, their iterations (`word`: iteration, or call), what ended it."""

    path: str
    id: int
    kind: str
    name: str
    line: int
    executions: int = 0
    iterations: int = 0
    fewest: int = 0
    most: int = 0
    ended: Counter[EndReason] = field(default_factory=Counter)
    word: str = "iteration"

    def add(self, activation: Activation) -> None:
        """Count one more execution."""
        assert activation.ended is not None, "a loop leaves for a reason"
        self.count(activation.iteration + 1, activation.ended)

    def count(self, iterations: int, ended: EndReason) -> None:
        """Count one more execution, of so many iterations."""
        self.fewest = iterations if self.executions == 0 else min(self.fewest, iterations)
        self.most = max(self.most, iterations)
        self.executions += 1
        self.iterations += iterations
        self.ended[ended] += 1


class LoopLog(RunObserver):
    """Collects the summaries of a run: an observer for a machine."""

    def __init__(self) -> None:
        self._by_operation: dict[int, LoopSummary] = {}

    def loop_left(self, stack: Sequence[Frame], activation: Activation) -> None:
        """Count one more execution."""
        operation = activation.operation
        summary = self._by_operation.get(id(operation))
        if summary is None:
            path, layer = place(stack, operation, iterations=False), operation.layer
            summary = LoopSummary(path, layer.id, layer.type, layer.name, layer.line, word=layer.iteration_word)
            self._by_operation[id(operation)] = summary
        summary.add(activation)

    def include(self, operation: Operation, earlier: LoopSummary) -> None:
        """Count executions of a loop that an earlier part of the run has seen."""
        summary = self._by_operation.setdefault(id(operation), earlier)
        if summary is not earlier:
            summary.fewest = min(summary.fewest, earlier.fewest)
            summary.most = max(summary.most, earlier.most)
            summary.executions += earlier.executions
            summary.iterations += earlier.iterations
            summary.ended += earlier.ended

    @property
    def summaries(self) -> tuple[LoopSummary, ...]:
        """One for each loop that was entered, in the order in which they first ended."""
        return tuple(self._by_operation.values())


class Outputs(dict[str, Array]):
    """The model's outputs by name, in the order of its Results; with what there is to say about the run.

    `loops` has one entry for each loop that was entered, `notes` name where the other rule book would differ,
    `states` are the variables (ReadValue, Assign) by name, to be handed to the next run. `computed_by` counts the
    operations of each type that a partner computes, by who that is; `elsewhere` names each of them.
    """

    loops: tuple[LoopSummary, ...]
    notes: tuple[Note, ...]
    states: dict[str, Any]
    computed_by: dict[str, Counter[str]]
    elsewhere: tuple[ComputedElsewhere, ...]

    def __repr__(self) -> str:
        values = (f"{name} {form_text(value)}" for name, value in self.items())
        return f"<Outputs: {', '.join(values) or 'none'}>"

    def _repr_html_(self) -> str:
        """Return a table of the outputs and one of the loops, for notebooks."""
        from stepper.html_tables import html_table  # the first picture goes without

        rows = [
            (name, form_text(value), np.array2string(value.reshape(-1), threshold=8)) for name, value in self.items()
        ]
        loops = [(one.path, f"{one.iterations:,} iterations", ", ".join(map(str, one.ended))) for one in self.loops]
        return html_table([*rows, *loops])


class ComputedElsewhere(Struct, frozen=True):
    """An operation that a partner computed: the graph that it is in, in words, and who it was."""

    path: str
    layer: LayerSite
    computed_by: str


def run(
    model: ModelSource,
    inputs: Mapping[str | int, Any],
    rules: str | Rules = Rules.SPEC,
    max_iterations: int | None = None,
    states: Mapping[str, Any] | None = None,
    partner: Partner | None = None,
) -> Outputs:
    """Run a model once and return its outputs.

    `model` is a Model, a CompiledModel (which has its rules and its partner), or the path of a model. `inputs` maps
    names, tensor names or positions to arrays; `rules` is "spec" or "openvino"; `max_iterations` ends the run with
    LimitReached where one loop wants more; `states` are variables of an earlier run, as its outputs' `states` has them;
    `partner` computes the operations that it claims. Raises the errors of stepper.errors, each with one clear message.
    """
    compiled = model if isinstance(model, CompiledModel) else compile_model(model, rules, partner)
    machine = Machine(
        compiled,
        bind_inputs(compiled.model, inputs),
        max_iterations=max_iterations,
        states=bind_states(compiled, states),
        keep_values=False,
    )
    log = LoopLog()
    machine.observers = (log,)
    for _event in machine.run(Every.END):
        pass
    return collect(machine, log)


def collect(machine: Machine, log: LoopLog) -> Outputs:
    """Return the outputs of a machine that has finished."""
    assert machine.outputs is not None, "the machine has finished"
    # The caller may write into the outputs; a view might be one of an input, a constant or a variable.
    arrays = [array.copy() for array in machine.outputs]
    outputs = Outputs(zip(output_names(machine.compiled.model), arrays, strict=True))
    outputs.loops = log.summaries
    outputs.notes = tuple(machine.notes)
    outputs.states = states_of(machine.compiled, machine.states)
    compiled = machine.compiled
    outputs.computed_by = computed_elsewhere(compiled) if compiled.engine else {}
    outputs.elsewhere = tuple(
        ComputedElsewhere(program.name, layer_site(op.layer, str(compiled.model.path)), op.computed_by)
        for program, op in (operations_elsewhere(compiled) if compiled.engine else ())
    )
    return outputs


def output_names(model: Model) -> list[str]:
    """Return a name for each of the model's outputs: its tensor's first name, else that of its Result, made unique."""
    names: list[str] = []
    for result in model.graph.results:
        source = model.graph.sources[result.id][0]
        assert source is not None, "the reader has seen to it"
        tensor_names = model.graph.by_id[source.layer].outputs[source.output].names
        candidates = [*tensor_names, result.name, *(f"{result.name}#{index}" for index in range(len(names) + 1))]
        names.append(next(name for name in candidates if name and name not in names))
    return names
