"""Rewrite ONNX files so that OpenVINO converts them; runs in the worker process.

The rewriting replaces features that the converter lacks. It inlines functions. It replaces Ifs by the branch that is
taken, if sizes and given values settle the condition. It lets a Scan carry the outer values that its body reads. The
converter takes an STFT only with all sizes fixed; the rewriting turns it into a convolution with the waves of its
window. The module also reports how other readers judge a file. It needs the package `onnx`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final

import numpy as np

from stepper.element_types import Array, Shape
from stepper.records import Record
from stepper.wording import counted

_LARGEST_WINDOW = 8192
"""Largest window of an STFT that becomes a convolution: the filters grow with its square."""


NOTHING: Final[Mapping[str, Any]] = MappingProxyType({})


class Replacements(Record):
    """Nodes that were replaced, as texts; none where nothing was written."""

    nodes: tuple[str, ...]


class OtherReader(Record):
    """The name of another reader of ONNX files, and its complaint about one; None: it takes it."""

    name: str
    complaint: str | None


def other_reader(path: str) -> OtherReader | None:
    """Ask onnxruntime, or else the checker of onnx, whether it takes a file; None where neither is installed."""
    read: Callable[[], object]
    try:
        import onnxruntime

        reader: Any = onnxruntime
        options = reader.SessionOptions()
        options.log_severity_level = 4
        name, read = "onnxruntime", lambda: reader.InferenceSession(path, options, ["CPUExecutionProvider"])
    except ImportError:
        try:
            import onnx
        except ImportError:
            return None
        checker: Any = onnx.checker
        name, read = "onnx", lambda: checker.check_model(path)
    try:
        read()
    except Exception as error:  # of classes of its own
        return OtherReader(name, str(error))
    return OtherReader(name, None)


def rewritten(
    source: str,
    target: str,
    shapes: Mapping[str, Shape] = NOTHING,
    values: Mapping[str, Array] = NOTHING,
    types: Collection[str] = (),
) -> Replacements:
    """Write the model with other operations in the place of those that OpenVINO lacks; nothing where it has none.

    Inputs have the `shapes` and small ones the `values` that are given, which may settle what an If takes. Operations
    of these `types` that ONNX defines by others become those.
    """
    try:
        import onnx

        model = onnx.load(source)
        for one in model.graph.input:
            if one.name in shapes:
                dims = one.type.tensor_type.shape.dim
                del dims[:]
                dims.extend(onnx.TensorShapeProto.Dimension(dim_value=size) for size in shapes[one.name])
        replaced = _inlined(model, types)
        for step in (_settled, _carried, _convolved):
            model = onnx.shape_inference.infer_shapes(model, data_prop=True)
            replaced += step(model, values)
        if replaced:
            onnx.save(model, target)
    except Exception:  # no package, or what it cannot read, infer or compute: then nothing is written
        return Replacements(())
    return Replacements(tuple(replaced))


def _inlined(model: Any, types: Collection[str]) -> list[str]:
    """Put the operations of functions in their place: of those in the file, and of these types that ONNX defines so."""
    from onnx import inliner

    replaced = []
    if model.functions:
        replaced.append(f"the operations of {counted(len(model.functions), 'function')} in their place")
        model.CopyFrom(inliner.inline_local_functions(model))
    before = Counter(node.op_type for node in model.graph.node)
    if types:
        model.CopyFrom(inliner.inline_selected_functions(model, [("", type) for type in types], False, True))
    after = Counter(node.op_type for node in model.graph.node)
    return replaced + [f"{type} as the operations that define it" for type in types if after[type] < before[type]]


def _convolved(model: Any, _values: Mapping[str, Array]) -> list[str]:
    facts, replaced, nodes = _TensorFacts(model.graph), [], []
    for node in model.graph.node:
        found = _by_convolution(node, facts) if node.op_type == "STFT" else None
        if found is not None:
            replaced.append(f"{_title(node)} as a convolution")
        nodes.extend([node] if found is None else found)
    _replace_nodes(model.graph, nodes)
    return replaced


def _title(node: Any) -> str:
    return f"{node.op_type} '{node.name or node.output[0]}'"


def _replace_nodes(graph: Any, nodes: Sequence[Any]) -> None:
    kept = [type(node).FromString(node.SerializeToString()) for node in nodes]
    del graph.node[:]
    graph.node.extend(kept)


# --- Ifs that sizes and given values settle ---------------------------------------------------------------------------

_MOST_ROUNDS = 30
"""Maximum number of rounds that settle Ifs in branches of Ifs."""
_MOST_ELEMENTS = 4096
"""Largest array that is computed here: sizes, and inputs of conditions."""


def _settled(model: Any, values: Mapping[str, Array]) -> list[str]:
    """Put the nodes of a branch in the place of each If of the model's own graph that always takes it."""
    import onnx

    replaced: list[str] = []
    for _ in range(_MOST_ROUNDS):
        known, nodes, is_changed = _known(model, values), [], False
        for node in model.graph.node:
            condition = known.get(node.input[0]) if node.op_type == "If" else None
            if condition is None or condition.size != 1:
                nodes.append(node)
                continue
            side = "then_branch" if condition.item() else "else_branch"
            nodes += _branch(
                node, next(one.g for one in node.attribute if one.name == side), len(replaced), model.graph
            )
            replaced.append(f"{_title(node)} as its {side}")
            is_changed = True
        if not is_changed:
            break
        _replace_nodes(model.graph, nodes)
        del model.graph.value_info[:]  # of ranks that the Ifs left open
        model.CopyFrom(onnx.shape_inference.infer_shapes(model, data_prop=True))
    return replaced


def _branch(node: Any, branch: Any, number: int, graph: Any) -> list[Any]:
    """Return the nodes of a branch, with names of their own where it gives them, and what gives the If's outputs."""
    from onnx import helper

    names = {one.name for one in branch.initializer} | {name for one in branch.node for name in one.output if name}
    ours = {name: f"{name}/{node.name or node.output[0]}.{number}" for name in names}
    for one in branch.initializer:
        graph.initializer.append(one)
        graph.initializer[-1].name = ours[one.name]
    found = [_renamed(one, ours) for one in branch.node]
    given = zip(branch.output, node.output, strict=False)
    return [
        *found,
        *(
            helper.make_node("Identity", [ours.get(one.name, one.name)], [name], name=name)
            for one, name in given
            if name
        ),
    ]


def _renamed(node: Any, names: Mapping[str, str]) -> Any:
    """Return a copy of a node in which values have other names, also in its graphs where these have none so called."""
    copy = type(node).FromString(node.SerializeToString())
    for side in (copy.input, copy.output):
        side[:] = [names.get(name, name) for name in side]
    for attribute in copy.attribute:
        if attribute.HasField("g"):
            _rename_outer(attribute.g, names)
    return copy


def _rename_outer(graph: Any, names: Mapping[str, str]) -> None:
    own = {one.name for side in (graph.input, graph.initializer) for one in side}
    own |= {name for node in graph.node for name in node.output}
    left = {name: other for name, other in names.items() if name not in own}
    _replace_nodes(graph, [_renamed(node, left) for node in graph.node])
    for one in graph.output:
        one.name = left.get(one.name, one.name)


def _known(model: Any, values: Mapping[str, Array]) -> dict[str, Array]:
    """Return the small values of the model's own graph that are known before a run, by name."""
    facts = _TensorFacts(model.graph)
    known = {name: array for name, array in facts.constants.items() if array.size <= _MOST_ELEMENTS}
    known |= {one.name: values[one.name] for one in model.graph.input if one.name in values}
    for node in model.graph.node:
        if node.op_type in ("Shape", "Size"):
            sizes = facts.declared(node.input[0])
            begin, end = (next((one.i for one in node.attribute if one.name == name), at) for name, at in _ENDS)
            part = [None] if sizes is None else sizes[begin:end]
            if None not in part:
                found = np.array(part, np.int64)
                known[node.output[0]] = found if node.op_type == "Shape" else found.prod()
        elif node.op_type != "Constant" and all(name in known for name in node.input if name):
            known |= _computed(node, known, model.opset_import)
    return known


_ENDS = (("start", 0), ("end", None))


def _computed(node: Any, known: Mapping[str, Array], opsets: Any) -> dict[str, Array]:
    """Return the outputs of a node whose inputs are known; nothing where they are drawn, large, or not computed."""
    from onnx import helper
    from onnx.reference import ReferenceEvaluator

    if node.op_type.startswith(("Random", "Bernoulli", "Multinomial")) or any(
        one.HasField("g") for one in node.attribute
    ):
        return {}
    names = [name for name in dict.fromkeys(node.input) if name]
    graph = helper.make_graph(
        [node], "known", [helper.make_empty_tensor_value_info(name) for name in names],
        [helper.make_empty_tensor_value_info(name) for name in node.output if name],
    )  # fmt: skip
    try:
        found = ReferenceEvaluator(helper.make_model(graph, opset_imports=opsets)).run(
            None, {n: known[n] for n in names}
        )
    except Exception:  # what it does not compute is not known
        return {}
    given = zip((name for name in node.output if name), found, strict=True)
    return {name: np.asarray(one) for name, one in given if np.size(one) <= _MOST_ELEMENTS}


# --- Scans whose bodies read values from outside ----------------------------------------------------------------------


def _carried(model: Any, _values: Mapping[str, Array]) -> list[str]:
    """Let each Scan of the model's own graph carry, as states that never change, what its body reads from outside.

    OpenVINO takes initializers from outside alone.
    """
    from onnx import helper

    facts, replaced = _TensorFacts(model.graph), []
    for node in [one for one in model.graph.node if one.op_type == "Scan"]:
        body = next(one.g for one in node.attribute if one.name == "body")
        slices = next(one.i for one in node.attribute if one.name == "num_scan_inputs")
        read = [name for name in _read_outside(body) if name not in facts.constants and facts.element_type(name)]
        for name in read:
            states = len(node.input) - slices
            inner = f"{name}/{node.name or node.output[0]}"
            _rename_outer(body, {name: inner})
            kind, sizes = facts.element_type(name), facts.declared(name)
            body.input.insert(states, helper.make_tensor_value_info(inner, kind, sizes))
            body.output.insert(states, helper.make_tensor_value_info(f"{inner}/same", kind, sizes))
            body.node.append(helper.make_node("Identity", [inner], [f"{inner}/same"], name=f"{inner}/same"))
            node.input.insert(states, name)
            node.output.insert(states, f"{inner}/last")
        if read:
            replaced.append(f"{_title(node)} with {', '.join(read)} as states")
    return replaced


def _read_outside(graph: Any) -> list[str]:
    """Return the names that a graph, or one in it, reads and does not give."""
    own = {one.name for side in (graph.input, graph.initializer) for one in side}
    own |= {name for node in graph.node for name in node.output}
    read = [name for node in graph.node for name in node.input]
    read += [
        name for node in graph.node for one in node.attribute if one.HasField("g") for name in _read_outside(one.g)
    ]
    return [name for name in dict.fromkeys([*read, *(one.name for one in graph.output)]) if name and name not in own]


# --- an STFT as a convolution -----------------------------------------------------------------------------------------


class _TensorFacts:
    """Facts of the tensors of a graph: constants, element types and sizes, as far as the file tells them."""

    def __init__(self, graph: Any) -> None:
        self.constants = dict(_constants(graph))
        declared = (*graph.input, *graph.output, *graph.value_info)
        self._types = {one.name: one.type.tensor_type for one in declared}

    def element_type(self, name: str) -> int | None:
        """Return ONNX's number of the element type."""
        return self._types[name].elem_type if name in self._types else None

    def declared(self, name: str) -> list[int | None] | None:
        """Return the sizes, None for one that is open; None where not even their number is known."""
        if name in self.constants:
            return list(self.constants[name].shape)
        if name not in self._types or not self._types[name].HasField("shape"):
            return None
        return [size.dim_value if size.HasField("dim_value") else None for size in self._types[name].shape.dim]

    def sizes(self, name: str) -> list[int] | None:
        """Return the sizes, 0 for one that is open; None where not even their number is known."""
        found = self.declared(name)
        return None if found is None else [size or 0 for size in found]


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
