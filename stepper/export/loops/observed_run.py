"""Facts of one run that figures of a model tell: loops that did no iteration, and sizes that the file leaves open."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

import numpy as np

from stepper.engine.frames import EventKind, Every
from stepper.engine.machine import Machine
from stepper.engine.program import Program
from stepper.errors import ExecutionError, LimitReached, UnsupportedOperation

_MOST_EVENTS: Final = 200_000
"""Events that are looked at; a run that is longer has shown nothing of what it had not entered by then."""
_MOST_VALUES: Final = 2_000_000
"""Values of which the sizes are looked at; a run that has more of them shows none."""

Sizes = Mapping[tuple[int, int, int], tuple[int, ...]]
"""Sizes of a value in a run, by id() of the graph, id of the layer and output; -1: not always the same."""


class LoopObservation(NamedTuple):
    """Facts of a run. `never_begun` are loops that did no iteration, by id() of the graph around them and their id.

    `sizes` are those of values of which the file leaves one open.
    """

    never_begun: frozenset[tuple[int, int]]
    sizes: Sizes


def observed_run(machine: Machine) -> LoopObservation:
    """Run a machine to its end, or to where it fails: what it showed before is true."""
    entered: set[tuple[int, int]] = set()
    begun: set[tuple[int, int]] = set()
    seen = _SeenSizes()
    try:
        for count, event in enumerate(machine.run(Every.ITERATION)):
            frame, activation = event.frame, event.frame.activation
            if count > _MOST_EVENTS:
                break
            if event.kind is not EventKind.ENTERED:
                seen.look(frame.program, frame.values)
            if activation is None or not activation.operation.layer.is_loop:
                continue
            if event.kind is EventKind.ENTERED:
                entered.add((id(machine.stack[-2].program.graph), activation.operation.layer.id))
            elif event.kind is EventKind.ITERATION:
                begun.add((id(machine.stack[-2].program.graph), activation.operation.layer.id))
    except (ExecutionError, LimitReached, UnsupportedOperation):
        for frame in machine.stack:
            seen.look(frame.program, frame.values)
    return LoopObservation(frozenset(entered - begun), seen.sizes)


class _SeenSizes:
    """Sizes of the values seen so far."""

    def __init__(self) -> None:
        self._found: dict[tuple[int, int, int], tuple[int, ...] | None] = {}
        self._open: dict[int, list[tuple[tuple[int, int, int], int]]] = {}
        self._count = 0

    @property
    def sizes(self) -> Sizes:
        """The sizes of all values of one rank; none where there were too many values."""
        if self._count > _MOST_VALUES:
            return {}
        return {key: sizes for key, sizes in self._found.items() if sizes is not None}

    def look(self, program: Program, values: Sequence[Any]) -> None:
        """Look at the values of a frame."""
        if self._count > _MOST_VALUES:
            return
        for key, slot in self._slots_of(program):
            value = values[slot]
            if value is None:
                continue
            self._count += 1
            shape = np.shape(value)
            known = self._found.setdefault(key, shape)
            if known is not None and known != shape:
                pairs = zip(known, shape, strict=True) if len(known) == len(shape) else None
                self._found[key] = None if pairs is None else tuple(a if a == b else -1 for a, b in pairs)

    def _slots_of(self, program: Program) -> list[tuple[tuple[int, int, int], int]]:
        """Return the slots of values of which the file leaves a size open."""
        if id(program) not in self._open:
            graph = program.graph
            self._open[id(program)] = [
                ((id(graph), layer, output), slot)
                for (layer, output), slot in program.slots.items()
                if any(min(port.dims, default=0) < 0 for port in graph.by_id[layer].outputs[output : output + 1])
            ]
        return self._open[id(program)]
