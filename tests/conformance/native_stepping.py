"""A second opinion on a model: every operation evaluated alone by its reference kernel, loops stepped in Python.

The rules of TensorIterator, Loop and If are written here once more, as the specification has them, so that a model on
which this and the compiled model disagree shows a fault of the plugin or of the generator and is not recorded.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import openvino as ov

from tests.conformance.recurrent_cells import CELLS
from tests.conformance.runtime import array_of, tensor_of

Arrays = list[np.ndarray]

FALLBACKS: dict[str, Any] = {
    "Maximum": np.maximum,
    "Minimum": np.minimum,
    "Multiply": np.multiply,
    "Greater": np.greater,
    "Less": np.less,
    "Equal": np.equal,
}
"""Operations whose reference kernels lack some element types."""


class NotSteppable(Exception):
    """The model leaves something undefined, or an operation has no reference kernel."""


@dataclass
class Stepper:
    """Steps models and remembers how many iterations each of their loops made."""

    iterations: dict[str, list[int]] = field(default_factory=dict)

    def run(self, graph: Any, arguments: Sequence[np.ndarray]) -> Arrays:
        """The graph's Results for these Parameters."""
        names = [parameter.get_name() for parameter in graph.get_parameters()]
        values = {(name, 0): array for name, array in zip(names, arguments, strict=True)}
        for node in graph.get_ordered_ops():
            if node.get_type_name() not in ("Parameter", "Result"):
                taken = [values[port.get_node().get_name(), port.get_index()] for port in node.input_values()]
                for place, array in enumerate(self.execute(node, taken)):
                    values[node.get_name(), place] = array
        sources = [result.input_value(0) for result in graph.get_results()]
        return [values[port.get_node().get_name(), port.get_index()] for port in sources]

    def execute(self, node: Any, arguments: Arrays) -> Arrays:
        """One node's outputs."""
        kind = node.get_type_name()
        if kind == "Constant":
            return [np.array(node.data)]
        if kind == "If":
            return self.branch(node, arguments)
        if kind in ("Loop", "TensorIterator"):
            return self.loop(node, arguments)
        return CELLS[kind](node, arguments) if kind in CELLS else evaluated(node, arguments)

    def branch(self, node: Any, arguments: Arrays) -> Arrays:
        """The outputs of the branch that the condition chooses."""
        chosen = 0 if bool(arguments[0].reshape(-1)[0]) else 1
        body = node.get_function(chosen)
        taken: Arrays = [np.zeros(0)] * len(body.get_parameters())
        for entry in node.get_input_descriptions(chosen):
            taken[entry.body_parameter_index] = arguments[entry.input_index]
        results = self.run(body, taken)
        outputs = node.get_output_descriptions(chosen)
        return [results[entry.body_value_index] for entry in sorted(outputs, key=lambda entry: entry.output_index)]

    def loop(self, node: Any, arguments: Arrays) -> Arrays:
        """The outputs of a TensorIterator or Loop."""
        states = [entry for entry in node.get_input_descriptions() if hasattr(entry, "body_value_index")]
        history: list[Arrays] = []
        carried = {state.body_parameter_index: arguments[state.input_index] for state in states}
        while goes_on(node, arguments, history):
            taken = body_arguments(node, arguments, carried, len(history))
            results = self.run(node.get_function(), taken)
            history.append(results)
            carried = {state.body_parameter_index: results[state.body_value_index] for state in states}
        self.iterations.setdefault(node.get_friendly_name(), []).append(len(history))
        return [loop_output(node, entry, arguments, history) for entry in outputs_in_order(node)]


def evaluated(node: Any, arguments: Arrays) -> Arrays:
    """One operation's outputs by its reference kernel."""
    declared = [port.get_element_type() for port in node.input_values()]
    taken = [tensor_of(array, element_type) for array, element_type in zip(arguments, declared, strict=True)]
    given = [ov.Tensor(port.get_element_type(), ov.Shape([0])) for port in node.outputs()]
    if node.evaluate(given, taken):
        return [array_of(tensor) for tensor in given]
    if node.get_type_name() in FALLBACKS:
        return [FALLBACKS[node.get_type_name()](*arguments)]
    if node.get_type_name() == "CumSum":
        return [cumulative_sum(node.get_attributes(), *arguments)]
    types = ", ".join(element_type.get_type_name() for element_type in declared)
    raise NotSteppable(f"{node.get_type_name()} of {types} has no reference kernel")


def cumulative_sum(attributes: dict[str, Any], array: np.ndarray, axis: np.ndarray) -> np.ndarray:
    """CumSum of whole numbers, for which there is no reference kernel."""
    turned = np.flip(array, int(axis)) if attributes["reverse"] else array
    total = np.cumsum(turned, int(axis), dtype=array.dtype) - (turned if attributes["exclusive"] else 0)
    return np.flip(total, int(axis)) if attributes["reverse"] else total


def goes_on(node: Any, arguments: Arrays, history: list[Arrays]) -> bool:
    """Whether another iteration follows."""
    if node.get_type_name() == "TensorIterator":
        return len(history) < slice_count(node, arguments)
    condition = history[-1][node.get_special_body_ports()[1]] if history else arguments[1]
    return len(history) != int(arguments[0].reshape(-1)[0]) and bool(condition.reshape(-1)[0])


def boundaries(entry: Any, extent: int) -> tuple[int, int]:
    """Where the first slice begins and the last one ends, as places between elements."""
    first, last = (place if place >= 0 else extent + 1 + place for place in (entry.start, entry.end))
    if not 0 <= min(first, last) < max(first, last) <= extent or (first < last) != (entry.stride > 0):
        raise NotSteppable(f"start {entry.start} and end {entry.end} do not cut an axis of {extent}")
    return first, last


def slice_count(node: Any, arguments: Arrays) -> int:
    """How many slices every sliced input of a TensorIterator gives."""
    counts = set()
    for entry in node.get_input_descriptions():
        if hasattr(entry, "axis"):
            first, last = boundaries(entry, arguments[entry.input_index].shape[entry.axis])
            count, rest = divmod(abs(last - first), abs(entry.stride))
            counts.add(count if not rest else -1)
    if len(counts) != 1 or -1 in counts:
        raise NotSteppable(f"slices of sliced inputs: {sorted(counts)}")
    return counts.pop()


def slice_of(entry: Any, array: np.ndarray, iteration: int) -> np.ndarray:
    """What a sliced input gives in one iteration."""
    first, last = boundaries(entry, array.shape[entry.axis])
    begin = first + iteration * entry.stride
    end = begin + entry.stride
    if not min(first, last) <= min(begin, end) < max(begin, end) <= max(first, last):
        raise NotSteppable(f"no slice {iteration} on an axis of {array.shape[entry.axis]}")
    return np.take(array, range(min(begin, end), max(begin, end)), entry.axis)


def body_arguments(node: Any, arguments: Arrays, carried: dict[int, np.ndarray], iteration: int) -> Arrays:
    """The values of the body's Parameters in one iteration."""
    parameters = node.get_function().get_parameters()
    taken: Arrays = [np.zeros(0)] * len(parameters)
    for entry in node.get_input_descriptions():
        place, array = entry.body_parameter_index, arguments[entry.input_index]
        taken[place] = slice_of(entry, array, iteration) if hasattr(entry, "axis") else carried.get(place, array)
    if node.get_type_name() == "Loop" and (place := node.get_special_body_ports()[0]) >= 0:
        parameter = parameters[place]
        taken[place] = np.full(parameter.get_output_shape(0), iteration, parameter.get_element_type().to_dtype())
    return taken


def outputs_in_order(node: Any) -> list[Any]:
    """The output entries in the order of the node's outputs."""
    return sorted(node.get_output_descriptions(), key=lambda entry: entry.output_index)


def loop_output(node: Any, entry: Any, arguments: Arrays, history: list[Arrays]) -> np.ndarray:
    """One output of a loop that has ended."""
    if not history:
        return untouched_output(node, entry, arguments)
    values: Arrays = [results[entry.body_value_index] for results in history]
    if not hasattr(entry, "axis"):
        return values[-1]
    parts = [part.reshape(part.shape or (1,)) for part in values]
    if any(part.shape[entry.axis] != entry.part_size for part in parts):
        raise NotSteppable("a part to concatenate has the wrong length")
    whole: np.ndarray = np.concatenate(parts[::-1] if entry.stride < 0 else parts, entry.axis)
    return whole


def untouched_output(node: Any, entry: Any, arguments: Arrays) -> np.ndarray:
    """One output of a loop that made no iteration: a state's initial value, or a concatenation of nothing."""
    if not hasattr(entry, "axis"):
        for state in node.get_input_descriptions():
            if getattr(state, "body_value_index", None) == entry.body_value_index:
                initial: np.ndarray = arguments[state.input_index]
                return initial
        raise NotSteppable("the last value of a loop without iterations is undefined")
    port = node.output(entry.output_index)
    shape = [size.get_length() if size.is_static else 0 for size in port.get_partial_shape()]
    shape[entry.axis] = 0
    nothing: np.ndarray = np.zeros(shape, port.get_element_type().to_dtype())
    return nothing
