"""Debuggers for the tests of looking: of graphs built in the test, of the engine's subjects, of the sample models."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import stepper
from stepper.debug.debugger import Debugger
from stepper.debug.stop import fingerprint
from stepper.debug.timeline import Timeline
from stepper.element_types import Array
from tests.engine.subjects import SUBJECTS
from tests.models import Graph

SAMPLES = Path(__file__).parents[2] / "sample_models"
SMALL_SAMPLES = (
    "reverse",
    "for_loop",
    "while_loop",
    "do_while_loop",
    "for_with_condition",
    "nested_loop",
    "growing_tensor",
    "onnx_moving_average",
    "specification_lstm",
)
ALL_RUNS = pytest.mark.parametrize("name", [*SUBJECTS, *SMALL_SAMPLES])


def opened(folder: Path, graph: Graph, *inputs: Any, **options: Any) -> Debugger:
    """A debugger of a graph on inputs by position."""
    return Debugger(graph.read(folder), dict(enumerate(inputs)), **options)


def sample(name: str, **options: Any) -> Debugger:
    """A debugger of a sample model on its inputs."""
    model = stepper.read_model(SAMPLES / name / "model.xml")
    return Debugger(model, dict(np.load(SAMPLES / name / "inputs.npz")), **options)


def run_named(name: str, folder: Path, **options: Any) -> Debugger:
    """A debugger of a subject or a sample model."""
    if name in SUBJECTS:
        return opened(folder, SUBJECTS[name].graph(), *SUBJECTS[name].inputs, **options)
    return sample(name, **options)


def stops(debugger: Debugger) -> Iterator[None]:
    """Every operation moment of the run, the start included, the end too."""
    yield
    while not debugger.machine.finished:
        debugger.step()
        yield


def state_of(timeline: Timeline) -> bytes:
    """All of the present, bit for bit."""
    return fingerprint(timeline.machine.snapshot())


def at_iteration(debugger: Debugger, iteration: int) -> None:
    """Into the first loop, to where it has closed the iteration."""
    while debugger.stop.iteration is None:
        debugger.step()
    while not debugger.stop.closed:
        debugger.next()
    if iteration != debugger.stop.iteration:
        debugger.goto_iteration(iteration)


def recorded(debugger: Debugger, loop: str, names: list[str]) -> list[dict[str, Array]]:
    """By a plain run of another machine: the Parameters and Results of a loop's body at the close of each iteration."""
    machine = Debugger(debugger.model, dict(enumerate(debugger.inputs)), debugger.machine.rules).machine
    found = []
    for event in machine.run(stepper.Every.ITERATION):
        activation = event.frame.activation
        if event.kind.name != "ITERATION" or activation is None or activation.operation.layer.name != loop:
            continue
        ids = {layer.name: layer.id for layer in event.frame.program.graph.layers}
        slots = {name: event.frame.program.slots[ids[name], 0] for name in names}
        found.append({name: np.array(event.frame.values[slot]) for name, slot in slots.items()})
    return found
