"""Looking into ONNX files that OpenVINO does not convert, and writing them so that it does; in the worker process.

`find_node` says where a node is: in which branch of which If. `rewritten` puts operations that the converter has in the
place of an STFT, which the converter takes only with all sizes fixed: a convolution with the waves of its window. Needs
the package `onnx`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

import numpy as np
from msgspec import Struct

from stepper.element_types import Array

_LARGEST_WINDOW: Final = 8192
"""Of an STFT that becomes a convolution: the filters grow with its square."""


class NodeScope(Struct, frozen=True, array_like=True):
    """A node that holds a graph, and the attribute in which it does: the `then_branch` of an If."""

    type: str
    name: str
    attribute: str


class NodeFacts(Struct, frozen=True):
    """A node of an ONNX file: the holders of its graph from the outside in, and the nearest If that it depends on.

    `open_inputs` are the inputs of the model of which the file leaves sizes open.
    """

    type: str
    name: str
    scopes: tuple[NodeScope, ...]
    decided_by: str | None
    open_inputs: tuple[str, ...]


class Replacements(Struct, frozen=True):
    """Nodes that were replaced, as texts; none where nothing was written."""

    nodes: tuple[str, ...]


def find_node(path: str, output: str) -> NodeFacts | None:
    """Return the node that has this name or an output of it; None where there is none, or no package to read the file.

    OpenVINO calls a node by its name, or by its first output.
    """
    try:
        import onnx

        model = onnx.load(path, load_external_data=False)
    except Exception:  # no package, or what the package cannot read: then there is nothing to be told
        return None
    for scopes, graphs, node in _nodes(model.graph):
        if output == node.name or output in node.output:
            open_inputs = tuple(one.name for one in model.graph.input if _has_open_size(one))
            return NodeFacts(node.op_type, node.name or output, scopes, _decided_by(graphs, node), open_inputs)
    return None


def _nodes(
    graph: Any, scopes: tuple[NodeScope, ...] = (), graphs: tuple[Any, ...] = ()
) -> Iterator[tuple[tuple[NodeScope, ...], tuple[Any, ...], Any]]:
    """Yield all nodes at every depth, with the holders and the graphs around each, from the outside in."""
    graphs = (*graphs, graph)
    for node in graph.node:
        yield scopes, graphs, node
        for attribute in node.attribute:
            if attribute.HasField("g"):
                holder = NodeScope(node.op_type, node.name, attribute.name)
                yield from _nodes(attribute.g, (*scopes, holder), graphs)


def _has_open_size(value: Any) -> bool:
    return any(not size.HasField("dim_value") or size.dim_value <= 0 for size in value.type.tensor_type.shape.dim)


def _decided_by(graphs: Sequence[Any], node: Any) -> str | None:
    """Return the name of the nearest If that a node gets its inputs from; None where there is none."""
    makers = {output: one for graph in graphs for one in graph.node for output in one.output}
    waiting, seen = list(node.input), set(node.input)
    for name in waiting:  # which grows: the nearest come first
        maker = makers.get(name)
        if maker is None:
            continue
        if maker.op_type == "If":
            return str(maker.name or name)
        waiting.extend(one for one in maker.input if one not in seen)
        seen.update(maker.input)
    return None


# --- writing a file anew ----------------------------------------------------------------------------------------------


def rewritten(source: str, target: str) -> Replacements:
    """Write the model with other operations in the place of those that OpenVINO lacks; nothing where it has none."""
    try:
        import onnx

        model = onnx.load(source)
    except Exception:  # as in find_node
        return Replacements(())
    if not any(node.op_type == "STFT" for node in model.graph.node):
        return Replacements(())
    facts = _TensorFacts(onnx.shape_inference.infer_shapes(model, data_prop=True).graph)
    replaced, nodes = [], []
    for node in model.graph.node:
        found = _by_convolution(node, facts) if node.op_type == "STFT" else None
        if found is not None:
            replaced.append(f"{node.op_type} '{node.name or node.output[0]}'")
        nodes.extend([node] if found is None else found)
    if replaced:
        del model.graph.node[:]
        model.graph.node.extend(nodes)
        onnx.save(model, target)
    return Replacements(tuple(replaced))


class _TensorFacts:
    """Facts of the tensors of a graph: constants, element types and sizes, as far as the file tells them."""

    def __init__(self, graph: Any) -> None:
        self.constants = dict(_constants(graph))
        declared = (*graph.input, *graph.output, *graph.value_info)
        self._types = {one.name: one.type.tensor_type for one in declared}

    def element_type(self, name: str) -> int | None:
        """Return ONNX's number of the element type."""
        return self._types[name].elem_type if name in self._types else None

    def sizes(self, name: str) -> list[int] | None:
        """Return the sizes, 0 for one that is open; None where not even their number is known."""
        if name in self.constants:
            return list(self.constants[name].shape)
        if name not in self._types or not self._types[name].HasField("shape"):
            return None
        return [size.dim_value for size in self._types[name].shape.dim]


def _constants(graph: Any) -> Iterator[tuple[str, Array]]:
    from onnx import numpy_helper

    for one in graph.initializer:
        yield one.name, numpy_helper.to_array(one)
    for node in graph.node:
        if node.op_type == "Constant" and node.attribute[0].name == "value":
            yield node.output[0], numpy_helper.to_array(node.attribute[0].t)


def _made(type: str, inputs: Sequence[str], output: str, **attributes: Any) -> Any:
    from onnx import helper

    return helper.make_node(type, inputs, [output], name=output, **attributes)


def _constant(name: str, array: Array) -> Any:
    from onnx import helper, numpy_helper

    return helper.make_node("Constant", [], [name], name=name, value=numpy_helper.from_array(array, name))


def _by_convolution(node: Any, facts: _TensorFacts) -> list[Any] | None:
    """Return an STFT as a convolution; None where step, window or length are computed, or the window is large.

    Filter 2k is the window times the cosine of frequency k, filter 2k + 1 minus its sine: the real and the imaginary
    part. The signal is [batch, length] or [batch, length, 1]; one with an imaginary part has no such form here.
    """
    from onnx import TensorProto

    signal, *rest = list(node.input) + [""] * (4 - len(node.input))
    step, window, length = (facts.constants.get(name) for name in rest)
    sizes = facts.sizes(signal)
    is_real = sizes is not None and (len(sizes) == 2 or (len(sizes) == 3 and sizes[2] == 1))
    if not is_real or facts.element_type(signal) != TensorProto.FLOAT or step is None:
        return None
    if any(name and array is None for name, array in zip(rest, (step, window, length), strict=True)):
        return None
    size = int(length) if length is not None else 0 if window is None else len(window)
    if not 0 < size <= _LARGEST_WINDOW or (window is not None and len(window) != size):
        return None
    is_onesided = next((one.i for one in node.attribute if one.name == "onesided"), 1)
    bins = size // 2 + 1 if is_onesided else size
    angles = 2 * np.pi * (np.outer(np.arange(bins), np.arange(size)) % size) / size
    weights = np.ones(size) if window is None else np.asarray(window, np.float64)
    filters = np.stack([np.cos(angles), -np.sin(angles)], axis=1) * weights
    name = node.output[0]
    return [
        _constant(f"{name}/filters", filters.reshape(2 * bins, 1, size).astype(np.float32)),
        _constant(f"{name}/row", np.array([0, 1, -1])),
        _constant(f"{name}/pairs", np.array([0, 0, bins, 2])),
        _made("Reshape", [signal, f"{name}/row"], f"{name}/signal"),
        _made("Conv", [f"{name}/signal", f"{name}/filters"], f"{name}/waves", strides=[int(step)], kernel_shape=[size]),
        _made("Transpose", [f"{name}/waves"], f"{name}/frames", perm=[0, 2, 1]),
        _made("Reshape", [f"{name}/frames", f"{name}/pairs"], name),
    ]
