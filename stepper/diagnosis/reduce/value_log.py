"""Values of a run by the places of the file: the first and the last value of every output."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any, Final

import numpy as np

from stepper.diagnosis.reduce.trials import ObservedKey, RunSettings
from stepper.element_types import Array
from stepper.engine.frames import EventKind, Every, Frame
from stepper.engine.machine import Machine
from stepper.engine.program import CompiledModel, Program
from stepper.errors import StepperError
from stepper.ir.model import Model

_LARGEST: Final = 2**26
"""Bytes of a value that is worth being a Constant."""


class ValueLog:
    """Keeps the first and the last value of each output."""

    def __init__(self, model: Model) -> None:
        self.scopes: dict[int, tuple[tuple[int, str], ...]] = {id(model.graph): ()}
        for _path, graph in model.graphs():  # outer before inner
            for layer in graph.layers:
                for body in layer.bodies:
                    self.scopes[id(body.graph)] = (*self.scopes[id(graph)], (layer.id, body.role))
        self.first: dict[ObservedKey, Array] = {}
        self.last: dict[ObservedKey, Array] = {}

    def take(self, frame: Frame) -> None:
        """Take note of what a frame holds: its Parameters, and what its operations gave in this iteration."""
        program = frame.program
        for (layer, output), slot in program.slots.items():
            if frame.is_current(slot) and program.graph.by_id[layer].type not in ("Constant", "Result"):
                self._note(program, layer, output, frame.values[slot])

    def _note(self, program: Program, layer: int, output: int, value: Any) -> None:
        if value is None or np.asarray(value).nbytes > _LARGEST:
            return
        key = ObservedKey(self.scopes[id(program.graph)], layer, output, is_last=False)
        self.last[key] = np.asarray(value)
        self.first.setdefault(key, self.last[key])


def log_values(
    compiled: CompiledModel, inputs: Sequence[Array], settings: RunSettings, states: Mapping[str, Any] | None = None
) -> tuple[ValueLog, Machine | None]:
    """Run a model and return the values of all operations; as far as the run comes where it fails.

    The machine is None if it could not begin.
    """
    log, frames, machine = ValueLog(compiled.model), list[Frame](), None
    with suppress(StepperError):
        machine = Machine(compiled, inputs, max_iterations=settings.max_iterations, states=states)
        frames = machine.stack
        while machine.stack and machine.tick < settings.most_moves:
            event = machine.advance(Every.ITERATION, until=settings.most_moves)
            if event.kind in (EventKind.ITERATION, EventKind.FINISHED) or not event.frame.loop:
                log.take(event.frame)
    for frame in frames:
        log.take(frame)
    return log, machine
