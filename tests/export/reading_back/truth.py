"""What a run really did: every value of every iteration; its outputs are held against those of somebody else."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np

import stepper
from stepper.ir.model import Model
from tests.conformance.agreement import disagreement

Values = dict[tuple[int, int], np.ndarray]


@dataclass
class Activation:
    """One run of a loop: values of its iterations by (layer, output), what came in, inner loops' counts by iteration.

    `around` are the iterations of the loops around it. An inner loop is known by the ids from this loop's body on.
    """

    around: tuple[int, ...]
    outer: Values
    values: list[Values] = field(default_factory=list)
    inner: list[dict[tuple[int, ...], list[int]]] = field(default_factory=lambda: [{}])

    @property
    def count(self) -> int:
        return len(self.values)


@dataclass
class Run:
    """Activations by the path of their loop, in order; `error` is what ended the run early."""

    loops: dict[tuple[int, ...], list[Activation]] = field(default_factory=dict)
    error: str = ""


MOST = 2_000
"""Iterations of all loops that are kept; a test of larger ones would hold too much."""


def run(model: Model, inputs: dict[str | int, np.ndarray], rules: str = "spec") -> Run:
    """Step through a run, to its end or to where it fails. Raise ValueError for one that is too long."""
    kept = 0
    machine = stepper.Machine(stepper.compile_model(model, rules=rules), stepper.bind_inputs(model, inputs))
    found, open_ = Run(), {}
    try:
        for event in machine.run(stepper.Every.ITERATION):
            activation = event.frame.activation
            if activation is None:
                continue
            layer, kind = activation.operation.layer, event.kind.name
            path = _path(machine.stack, event.frame)
            if kind == "ENTERED" and layer.is_loop:
                around = tuple(_iterations(machine.stack[:-1]))
                made = Activation(around, _values(machine.stack[-2]))
                open_[path] = made
                found.loops.setdefault(path, []).append(made)
                _count(found, machine.stack, path, None)
            elif kind == "ITERATION" and layer.is_loop:
                kept += 1
                if kept > MOST:
                    raise ValueError(f"more than {MOST} iterations")
                open_[path].values.append(_values(event.frame))
                open_[path].inner.append({})
                _count(found, machine.stack, path, open_[path].count)
    except stepper.StepperError as error:
        found.error = str(error)
    return found


def _path(stack: Sequence, frame: object) -> tuple[int, ...]:
    ids = []
    for one in stack[1:]:
        ids.append(one.activation.operation.layer.id)
        if one is frame:
            return tuple(ids)
    return (*ids, frame.activation.operation.layer.id)


def _iterations(stack: Sequence) -> Iterator[int]:
    for frame in stack[1:]:
        if frame.activation.operation.layer.is_loop:
            yield frame.activation.iteration


def _count(found: Run, stack: Sequence, path: tuple[int, ...], count: int | None) -> None:
    """Note for the loops around how many iterations this one has now (None: it begins)."""
    for depth in range(1, len(path)):
        if path[:depth] in found.loops:
            counts = found.loops[path[:depth]][-1].inner[-1].setdefault(path[depth:], [])
            if count is None:
                counts.append(0)
            else:
                counts[-1] = count


def _values(frame: object) -> Values:
    return {key: np.asarray(frame.values[slot]) for key, slot in frame.program.slots.items()
            if frame.values[slot] is not None}  # fmt: skip


def outputs_differ(model: Model, inputs: dict[str | int, np.ndarray], expected: list[np.ndarray]) -> list[str]:
    """Where the outputs of a run are not those that somebody else has computed."""
    outputs = list(stepper.run(model, inputs).values())
    found = [disagreement(np.asarray(one), other) for one, other in zip(outputs, expected, strict=True)]
    return [f"output {index}: {words}" for index, words in enumerate(found) if words is not None]
