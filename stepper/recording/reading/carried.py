"""What a back edge brought: a Parameter's value in an iteration, where another one that was recorded is the same.

In iteration i it is what the Result was in iteration i - 1, in iteration 0 what the loop was entered with. Which Result
feeds which Parameter only the model says; where that is gone, nothing is known of it.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from stepper.engine.roles import roles_of
from stepper.errors import StepperError
from stepper.ir.constants import constant_value
from stepper.ir.model import Graph, Layer, Model
from stepper.query.addresses import Target
from stepper.recording.reading.catalogue import Catalogue
from stepper.recording.reading.columns import Column, summary_of
from stepper.recording.reading.moments import Recorded
from stepper.recording.reading.recording import Recording
from stepper.tensors.summaries import Summary


class CarriedValue(NamedTuple):
    """A value with where it was recorded, in words."""

    value: Any
    source: str


class CarriedIn:
    """The values of one Parameter as those of the Result that a back edge carries. Moments are asked for in order."""

    def __init__(self, recording: Recording, catalogue: Catalogue, target: Target) -> None:
        self._recording = recording
        self._result = ""
        self._column: Column | None = None
        self._initial: CarriedValue | None = None
        if target.layer.type == "Parameter" and target.program.path and target.program.path[-1].is_loop:
            try:
                self._find(recording.model(), catalogue, target)
            except StepperError:
                self._column = self._initial = None

    def _find(self, model: Model, catalogue: Catalogue, target: Target) -> None:
        ids = [layer.id for layer in target.program.path]
        path, body = next((path, graph) for path, graph in model.graphs() if [layer.id for layer in path] == ids)
        outer = next(graph for around, graph in model.graphs() if around == path[:-1] and path[-1] in graph.layers)
        roles = roles_of(path[-1])
        result = roles.merged_from.get(target.layer.id)
        if result is None:
            return
        source = body.sources[result][0]
        port = None if source is None else target.program.slots.get((source.layer, source.output))
        if source is not None and port is not None:
            self._column, self._result = Column(self._recording, port), body.by_id[result].name
        entry = next(entry for entry in roles.merged if entry.parameter == target.layer.id)
        if len(path) == 1 and entry.input is not None:
            self._initial = self._entered_with(model, catalogue, outer, path[-1], entry.input)

    def _entered_with(
        self, model: Model, catalogue: Catalogue, outer: Graph, loop: Layer, index: int
    ) -> CarriedValue | None:
        source = outer.sources[loop.id][index]
        layer = None if source is None else outer.by_id[source.layer]
        if layer is None:
            return None
        if layer.type == "Constant":
            return CarriedValue(constant_value(model, layer), f"Constant '{layer.name}'")
        if layer.type != "Parameter":
            return None
        position = outer.parameters.index(layer)
        return CarriedValue(self._recording.whole("inputs", position), f"input '{layer.name}'")

    def value(self, moment: Recorded, known: Summary) -> CarriedValue | None:
        """What the Parameter was at a moment of which the statistics are known; None where that was not recorded."""
        activation, iteration = moment.innermost
        if activation is None:
            return None
        if iteration == 0:
            found = self._initial
        else:
            before = self._moment(activation, iteration - 1)
            value = None if before is None or self._column is None else self._column.value(before)
            found = None if value is None else CarriedValue(value, f"{self._result}@{iteration - 1}")
        if found is None:
            return None
        value = np.asarray(found.value).astype(known.dtype)
        return CarriedValue(value, found.source) if _is_that(value, known) else None

    def _moment(self, activation: int, iteration: int) -> int | None:
        """The id of an iteration of a run of the body; None where it was not recorded."""
        query = "SELECT id, iteration, count FROM runs WHERE activation = ? AND iteration <= ? ORDER BY iteration DESC"
        for first, begin, count in self._recording.query(f"{query} LIMIT 1", (activation, iteration)):
            if iteration < begin + count:
                return int(first + iteration - begin)
        return None


def _is_that(value: Any, known: Summary) -> bool:
    """Whether a value has the statistics that were recorded."""
    found = summary_of(value)
    same = (found.dtype, found.shape, found.nan, found.inf) == (known.dtype, known.shape, known.nan, known.inf)
    return same and (found.min, found.max) == (known.min, known.max)
