"""Wiring of TensorIterator and Loop with named layers, on top of OpenVINO's Python API."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

import numpy as np
import openvino as ov
import openvino.opset13 as ops

Value: TypeAlias = ov.Node | ov.Output
ElementType = type[np.generic]


@dataclass
class Body:
    """A loop's body: what comes in by which Parameter, and which values go out as last values or concatenations."""

    carried: list[tuple[ov.Node, Value, Value]] = field(default_factory=list)  # Parameter, initial and next value
    sliced: list[tuple[ov.Node, Value]] = field(default_factory=list)
    invariant: list[tuple[ov.Node, Value]] = field(default_factory=list)
    last: list[Value] = field(default_factory=list)
    concatenated: list[Value] = field(default_factory=list)
    keep_going: ov.Node | None = None
    iteration: ov.Node | None = None

    def parameters(self) -> list[ov.Node]:
        """All Parameters of the body, the one for the current iteration first."""
        first = [] if self.iteration is None else [self.iteration]
        return first + [entry[0] for entry in [*self.carried, *self.sliced, *self.invariant]]

    def results(self) -> dict[str, ov.Node]:
        """One Result for each value that leaves the body, by the value's name, the condition's first."""
        first = [] if self.keep_going is None else [self.keep_going]
        values = {tensor_name(value): value for value in [*first, *(entry[2] for entry in self.carried)]}
        values |= {tensor_name(value): value for value in [*self.last, *self.concatenated]}
        return {name: result(value, f"{name}_result") for name, value in values.items()}


def parameter(name: str, shape: Sequence[int], element_type: ElementType = np.float32) -> ov.Node:
    """A Parameter; -1 in `shape` is a dimension that is known only when the model runs."""
    return ops.parameter(list(shape), element_type, name=name)


def constant(name: str, value: object, element_type: ElementType = np.float32) -> ov.Node:
    """A Const layer."""
    return ops.constant(np.array(value, element_type), name=name)


def row(value: Value, name: str) -> ov.Node:
    """The value with a new first axis, along which a concatenated output stacks the iterations."""
    node = ops.unsqueeze(value, constant("row_axis", 0, np.int64))
    node.set_friendly_name(name)
    return node


def result(value: Value, name: str) -> ov.Node:
    """A Result with a name of its own, which does not become one of the tensor's names."""
    tensor_name(value)
    node = ops.result(value)
    node.set_friendly_name(name)
    return node


def model(name: str, inputs: list[ov.Node], outputs: dict[str, Value]) -> ov.Model:
    """A model whose outputs have the given names, as tensors and as Result layers."""
    results = []
    for output_name, value in outputs.items():
        port(value).set_names({output_name})
        results.append(result(value, output_name))
    return ov.Model(results, inputs, name)


def loop(name: str, trip_count: Value, condition: Value, body: Body) -> list[ov.Output]:
    """A Loop-5; its outputs are the last values and then the concatenations along axis 0, in the order of `body`."""
    node = ops.loop(port(trip_count), port(condition))
    node.set_friendly_name(name)
    outputs = connect(node, body, axis=0, step=1, special_ports=True)
    node.validate_and_infer_types()
    return outputs


def tensor_iterator(name: str, body: Body, axis: int, step: int = 1) -> list[ov.Output]:
    """A TensorIterator-1 along `axis`, from the end if `step` is -1; its outputs are ordered as those of `loop`."""
    node = ops.tensor_iterator()
    node.set_friendly_name(name)
    return connect(node, body, axis, step, special_ports=False)


def connect(node: ov.Node, body: Body, axis: int, step: int, *, special_ports: bool) -> list[ov.Output]:
    """Give a loop its body, port map and back edges; return its outputs."""
    parameters, results = body.parameters(), body.results()
    node.set_function(ov.Model(list(results.values()), parameters, f"{node.get_friendly_name()}_body"))
    if special_ports:
        node.set_special_body_ports([-1 if body.iteration is None else 0, 0])
    start, end = (0, -1) if step > 0 else (-1, 0)
    for inner, initial, next_value in body.carried:
        node.set_merged_input(inner, port(initial), results[tensor_name(next_value)].output(0))
    for inner, value in body.sliced:
        node.set_sliced_input(inner, port(value), start, step, 1, end, axis)
    for inner, value in body.invariant:
        node.set_invariant_input(inner, port(value))
    last = [results[tensor_name(value)].output(0) for value in body.last]
    slices = [results[tensor_name(value)].output(0) for value in body.concatenated]
    outputs = [node.get_iter_value(value, -1) for value in last]
    return outputs + [node.get_concatenated_slices(value, start, step, 1, end, axis) for value in slices]


def port(value: Value) -> ov.Output:
    """The value as an output port."""
    return value.output(0) if isinstance(value, ov.Node) else value


def tensor_name(value: Value) -> str:
    """The name of the tensor, which is given its layer's name if it has none."""
    output = port(value)
    if not output.names:
        output.set_names({output.get_node().get_friendly_name()})
    return str(output.any_name)
