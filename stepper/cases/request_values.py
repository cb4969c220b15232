"""Values of a request of OpenVINO: names, tensors, variables, and where in memory they are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from stepper.element_types import Array
from stepper.openvino.runtime import to_array

if TYPE_CHECKING:
    import openvino

_PLAIN: Final = frozenset({"f16", "f32", "f64", "i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64"})
"""Element types of which a tensor shows its numbers as they are."""


def names_of(ports: Any) -> list[str]:
    """Return the name of each port; of one without a name, or with one that another has, its position."""
    names = [port.any_name if port.names else str(index) for index, port in enumerate(ports)]
    return [name if names.index(name) == index else str(index) for index, name in enumerate(names)]


def tensors_of(request: openvino.InferRequest, given: Any) -> list[Any]:
    """Return the inputs that a call will see: what it is `given`, and what the request has already."""
    ports = request.model_inputs
    tensors = {
        key if isinstance(key, int) else _index_of(ports, key): tensor
        for key, tensor in (given.items() if isinstance(given, Mapping) else [(0, given)])
    }
    return [tensors[index] if index in tensors else request.get_input_tensor(index) for index in range(len(ports))]


def _index_of(ports: Any, key: Any) -> int:
    """Return the position of an input that is named, or given as a port."""
    return next(index for index, port in enumerate(ports) if key in (port, *port.names))


def memory_of(tensors: Sequence[Any]) -> tuple[int, ...]:
    """Return where tensors are in memory; texts have no one place."""
    return tuple(one.data.ctypes.data if one.element_type.get_type_name() in _PLAIN else 0 for one in tensors)


def outputs_of(request: openvino.InferRequest, names: list[str]) -> dict[str, Array]:
    """Return the outputs of a request, as they are now: numbers share its memory where they can."""
    return {
        name: tensor.data if tensor.element_type.get_type_name() in _PLAIN else to_array(tensor)
        for name, tensor in zip(names, output_tensors_of(request), strict=True)
    }


def output_tensors_of(request: openvino.InferRequest) -> list[Any]:
    """Return the outputs of a request, in order."""
    return [request.get_output_tensor(index) for index in range(len(request.model_outputs))]


def states_of(states: Sequence[Any]) -> dict[str, Array]:
    """Return copies of the variables of a request, by name."""
    return {state.name: to_array(state.state) for state in states}
