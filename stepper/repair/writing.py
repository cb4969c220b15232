"""The files of a repair: the patched IR, a function over openvino.Model, a test for pytest."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from copy import deepcopy
from pathlib import Path
from string import Template
from typing import Any, NamedTuple

import numpy as np
from lxml import etree

from stepper import element_types
from stepper.diagnosis.reduce.draft import DraftGraph, DraftModel, IRFiles, ir_files
from stepper.diagnosis.reduce.trials import ObservedKey, RunSettings, ValueLog, log_values
from stepper.element_types import Array
from stepper.engine.compiler import compile_model
from stepper.errors import ModelError
from stepper.ir.constants import constant_value
from stepper.ir.model import BODIES, Graph, Layer, Model, Port, Scope, Source
from stepper.ir.xml import Element, parse
from stepper.ops.registry import find, read_attribute
from stepper.repair.patch import ModelPatch

_ROLES = {role: None for bodies in BODIES.values() for role, _port_map in bodies}
_SCRIPT = Template('''"""Repair of a model, made by `stepper fix`: $what"""

import numpy as np  # noqa: F401
import openvino
from numpy import inf, nan  # noqa: F401
from openvino import opset13  # noqa: F401

from pathlib import Path


def repair(model: openvino.Model) -> openvino.Model:
    """Make the repair in the model and return the model."""
$body
    model.validate_nodes_and_infer_types()
    return model


if __name__ == "__main__":
    import sys

    source, target = map(Path, sys.argv[1:3])
    openvino.save_model(repair(openvino.Core().read_model(source)), target, compress_to_fp16=False)
''')

_TEST = Template('''"""The repaired model gives the outputs of the reference. Written by `stepper fix`: $what"""

from pathlib import Path

import numpy as np
import stepper

HERE = Path(__file__).parent


def test_fixed() -> None:
    inputs = dict(np.load(HERE / $inputs))
    expected = np.load(HERE / $expected)
    outputs = stepper.run(str(HERE / $model), inputs)
    for index, value in enumerate(outputs.values()):
        if f"out_{index}" in expected:
            np.testing.assert_allclose(value, expected[f"out_{index}"], rtol=$relative, atol=$absolute)
''')


class FixedFiles(NamedTuple):
    """The contents of the files beside a repaired model."""

    test: str
    inputs: dict[str, Array]
    expected: dict[str, Array]


def patched_ir(patch: ModelPatch, inputs: Sequence[Array], states: Mapping[str, Any] | None = None) -> IRFiles:
    """Return the files of an edited model. Ports have the types and shapes of a run where edits change them."""
    model = patch.model()
    log, _machine = log_values(compile_model(model), inputs, RunSettings(most_moves=2**40), states)
    draft = DraftModel.of(model, inputs)
    for scope, graph in draft.graphs():
        _declare(graph, scope, log)
    for scope, graph in draft.graphs():
        _declare_parameters(graph, scope, log)
    made = ir_files(draft)
    return IRFiles(_annotated(made.xml, patch.base.path), made.weights)


def _annotated(xml: bytes, original: Path) -> bytes:
    """Return the XML of an edited model with the runtime information of its file and other attributes of its layers."""
    try:
        old, new = parse(original), etree.fromstring(xml)
    except (ModelError, OSError):
        return xml  # it comes from no file
    _take_over(new, old)
    new.extend(deepcopy(one) for one in old if isinstance(one.tag, str) and new.find(one.tag) is None)
    etree.indent(new, space="\t")
    content: bytes = etree.tostring(new, xml_declaration=True, encoding="utf-8")
    return content


def _take_over(new: Element, old: Element) -> None:
    """Copy what a graph says of its layers and ports beside what they compute; edited layers have the same ids."""
    known = {layer.get("id"): layer for layer in old.iterfind("layers/layer")}
    for layer in new.iterfind("layers/layer"):
        before = known.get(layer.get("id"))
        if before is None or before.get("name") != layer.get("name"):
            continue
        for name, value in before.items():
            if layer.get(name) is None:
                layer.set(name, value)
        layer.extend(deepcopy(one) for one in before.iterfind("rt_info"))
        for side in ("input", "output"):
            ports, ports_before = layer.findall(f"{side}/port"), before.findall(f"{side}/port")
            if len(ports) == len(ports_before):
                for port, one in zip(ports, ports_before, strict=True):
                    port.extend(deepcopy(info) for info in one.iterfind("rt_info"))
        for role in _ROLES:
            body, body_before = layer.find(role), before.find(role)
            if body is not None and body_before is not None:
                _take_over(body, body_before)


def _declare(graph: DraftGraph, scope: Scope, log: ValueLog) -> None:
    for layer in graph.layers.values():
        for index, port in enumerate(layer.outputs):
            layer.outputs[index] = _declared(port, scope, layer.id, index, log)


def _declared(port: Port, scope: Scope, layer: int, index: int, log: ValueLog) -> Port:
    """Return a port that agrees with the values of the run; open dims stay open."""
    first = log.first.get(ObservedKey(scope, layer, index, is_last=False))
    last = log.last.get(ObservedKey(scope, layer, index, is_last=False))
    if first is None or last is None:
        return port
    fits = len(port.dims) == first.ndim
    if fits and all(dim in (-1, size) for dim, size in zip(port.dims, first.shape, strict=True)):
        return port._replace(element_type=element_types.of(first))
    dims = tuple(a if a == b else -1 for a, b in zip(first.shape, last.shape, strict=False))
    return port._replace(element_type=element_types.of(first), dims=dims)


def _declare_parameters(graph: DraftGraph, scope: Scope, log: ValueLog) -> None:
    """Let Parameters of bodies declare the shape that their port has."""
    for layer in graph.of_type("Parameter") if scope else ():
        port = layer.outputs[0]
        layer.attributes["shape"] = ",".join("?" if dim < 0 else str(dim) for dim in port.dims)
        if port.element_type is not None:
            layer.attributes["element_type"] = port.element_type.name


def test_files(
    model: Path, inputs: dict[str, Array], expected: dict[int, Array], what: str, tolerance: tuple[float, float]
) -> FixedFiles:
    """Return a test for pytest that runs the repaired model, and the arrays that it reads."""
    names = {"inputs": f"{model.stem}_inputs.npz", "expected": f"{model.stem}_expected.npz", "model": model.name}
    relative, absolute = tolerance
    text = _TEST.substitute(
        {name: repr(value) for name, value in names.items()},
        what=_one_line(what),
        relative=relative,
        absolute=absolute,
    )
    return FixedFiles(text, inputs, {f"out_{index}": np.asarray(value) for index, value in expected.items()})


def _one_line(text: str) -> str:
    """Return a text that may stand in a docstring."""
    return " ".join(text.replace('"', "'").replace("\\", "/").split())


# --- a function over openvino.Model -----------------------------------------------------------------------------------


def python_function(model: Model, patch: ModelPatch, what: str) -> str:
    """Return a Python file whose function makes the edits in an openvino.Model, found by names of layers.

    The function raises NotImplementedError for edits that need the patched IR, and for a name of several layers.
    """
    edited = patch.model()
    lines, shared = list[str](), set[str]()
    for (scope, path, old), (_scope, _path, new) in zip(model.scopes(), edited.scopes(), strict=True):
        shared |= {f"ops[{name!r}]" for name, count in old.same_names.items() if count > 1}
        if old is not new:
            lines += _graph_lines(scope, path, old, new, edited)
    if patch.needs_ir or any(key in line for key in shared for line in lines):
        what_not = "OpenVINO cannot make this edit" if patch.needs_ir else "several layers have one name"
        lines = [f'raise NotImplementedError("{what_not}: use the model of stepper fix -o")']
    return _SCRIPT.substitute(what=_one_line(what), body="\n".join(f"    {line}" for line in lines))


def _graph_lines(scope: Scope, path: Sequence[Layer], old: Graph, new: Graph, model: Model) -> Iterator[str]:
    yield "ops = {node.get_friendly_name(): node for node in model.get_ops()}"
    for layer, (_key, role) in zip(path, scope, strict=True):
        index = "" if layer.is_loop else int(role == "else_body")
        body = f"ops[{layer.name!r}].get_function({index})"
        yield f"ops = {{node.get_friendly_name(): node for node in {body}.get_ops()}}"
    names = {layer.id: layer.name if layer.id in old.by_id else f"+{layer.name}" for layer in new.layers}
    for layer in sorted(new.layers, key=lambda one: one.id in old.by_id):
        before = old.by_id.get(layer.id)
        if before is None:
            yield f"ops[{names[layer.id]!r}] = {_node(layer, new, names, model)}"
        elif before.type != layer.type or before.attributes != layer.attributes:
            yield f"new = {_node(layer, new, names, model)}"
            yield f"new.set_friendly_name({layer.name!r})"
            yield f"for old_output, new_output in zip(ops[{layer.name!r}].outputs(), new.outputs()):"
            yield "    old_output.replace(new_output)"
            yield f"ops[{layer.name!r}] = new"
    for layer in old.layers:
        for index, (read, source) in enumerate(zip(old.sources[layer.id], new.sources[layer.id], strict=False)):
            if source is not None and source != read:
                value = _output(source, names)
                yield f"ops[{layer.name!r}].input({index}).replace_source_output({value})"


def _output(source: Source, names: Mapping[int, str]) -> str:
    return f"ops[{names[source.layer]!r}].output({source.output})"


def _node(layer: Layer, graph: Graph, names: Mapping[int, str], model: Model) -> str:
    """Return an expression that makes a Constant, or a node of any other type with its attributes."""
    if layer.type == "Constant":
        value = np.asarray(constant_value(model, layer))
        type = f"openvino.Type.{element_types.of(value).name}"
        return f"opset13.constant(np.array({value.tolist()!r}).reshape({value.shape!r}), {type})"
    sources = ", ".join(_output(source, names) for source in graph.sources[layer.id] if source is not None)
    attributes = {name: _attribute(layer, name, text) for name, text in layer.attributes.items()}
    factory = f"openvino.utils.node_factory.NodeFactory({layer.version!r})"
    return f"{factory}.create({layer.type!r}, [{sources}], {attributes!r})"


def _attribute(layer: Layer, name: str, text: str) -> Any:
    """Return an attribute as Python has it: a truth, a number, a list, or the text."""
    kernel = None if layer.definition is None else find(layer.type, layer.definition)
    annotation = None if kernel is None else kernel.annotations.get(name.replace("-", "_"))
    value = text if annotation is None else read_attribute(name, text, annotation)
    return list(value) if isinstance(value, tuple) else value if isinstance(value, (bool, int, float)) else text
