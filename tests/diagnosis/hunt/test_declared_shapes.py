"""The cases of known faults declare the shapes that flow: whoever reads a report does not stumble over others."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

import stepper
from stepper.diagnosis.hunt.faults import FAULTS
from stepper.diagnosis.hunt.hunting import CASES
from stepper.engine.compiler import compile_model
from stepper.engine.frames import EventKind, Every, Frame
from stepper.engine.inputs import bind_inputs
from stepper.engine.machine import Machine
from stepper.errors import ModelError
from stepper.ir.model import Model, PartialShape, parameter_shape
from tests.tables import each_row


def contradicted(model: Model, folder: Path) -> Iterator[str]:
    """Layers that declare another shape than a value of a run has."""
    with np.load(folder / "inputs.npz") as inputs:
        machine = Machine(compile_model(model), bind_inputs(model, dict(inputs)), max_iterations=50)
    while machine.stack:
        event = machine.advance(Every.OPERATION)
        frame: Frame = machine.stack[-1] if event.kind is EventKind.LEFT else event.frame
        program = frame.program
        if event.kind is EventKind.BEGUN:
            for parameter, slot in zip(program.graph.parameters, program.parameters, strict=True):
                value = frame.values[slot]
                if value is not None and not parameter_shape(parameter).accepts(value.shape):
                    yield f"{parameter}: {value.shape}"
        elif event.kind in (EventKind.OPERATION, EventKind.LEFT):
            operation = program.operations[frame.pc - 1]
            for port, slot in zip(operation.layer.outputs, operation.outputs, strict=True):
                value = frame.values[slot]
                # A port without dims may have any shape.
                if value is not None and port.dims and not PartialShape.of_dims(port.dims).accepts(value.shape):
                    yield f"{operation.layer}: {value.shape}, not {port.dims}"


REFUSED = "part-size-beside-the-stride"
"""The fault is that OpenVINO computes what it should refuse, as our engine does."""


@each_row("name", sorted(fault.id for fault in FAULTS if fault.id != REFUSED))
def test_a_case_declares_the_shapes_that_flow(name: str) -> None:
    folder = CASES / name
    assert list(contradicted(stepper.read_model(folder / "model.xml"), folder)) == []


def test_our_engine_refuses_the_case_that_openvino_should() -> None:
    model = stepper.read_model(CASES / REFUSED / "model.xml")
    with pytest.raises(ModelError, match="part_size is 1, but the stride is 2"):
        compile_model(model)
