"""What the tests of OpenVINO as a partner work on: the samples, and an operation that no operation set has."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import openvino as ov

import stepper
from stepper.element_types import F32
from stepper.ir.model import Graph as ModelGraph
from stepper.ir.model import Model
from tests.models import Graph

SAMPLES = Path(__file__).parents[2] / "sample_models"
NAMES = sorted(path.parent.name for path in SAMPLES.glob("*/model.xml"))
LONG_AGO = "specification_lstm"
"""In a dialect that OpenVINO does not read; its layers are computed all the same, but for an LSTMCell of 5 inputs."""


class Triple(ov.Op):
    """An operation that no operation set has."""

    def __init__(self, inputs: Any = None) -> None:
        super().__init__(self)
        if inputs is not None:
            self.set_arguments(inputs)
            self.constructor_validate_and_infer_types()

    def validate_and_infer_types(self) -> None:
        self.set_output_type(0, self.get_input_element_type(0), self.get_input_partial_shape(0))

    def clone_with_new_inputs(self, inputs: Any) -> Triple:
        return Triple(inputs)

    def evaluate(self, outputs: Any, inputs: Any) -> bool:
        outputs[0].shape = inputs[0].shape
        outputs[0].data[...] = inputs[0].data * 3
        return True

    def has_evaluate(self) -> bool:
        return True

    def visit_attributes(self, _visitor: Any) -> bool:
        return True


def sample(name: str) -> tuple[Model, dict[str | int, Any], dict[str, Any]]:
    folder = SAMPLES / name
    with np.load(folder / "inputs.npz") as inputs, np.load(folder / "expected.npz") as outputs:
        return stepper.read_model(folder / "model.xml"), dict(inputs), dict(outputs)


def some_values(graph: ModelGraph) -> list[np.ndarray]:
    """An array of twos for each Parameter."""
    ports = [parameter.outputs[0] for parameter in graph.parameters]
    return [np.full([abs(dim) for dim in port.dims], 2, (port.element_type or F32).dtype) for port in ports]


def sum_along_an_axis_that_is_a_list() -> Graph:
    """As the specification allows and OpenVINO's CPU plugin does not."""
    net = Graph()
    net.result(net.apply("CumSum", net.parameter("x", dims=(2,)), net.constant([0]), version="opset3", name="odd"))
    return net
