"""Parts of ONNX files that OpenVINO's converter ignores: `python -m tests.conformance.onnx_losses [--check]` tries.

Each attribute and each optional input of each operation in ONNX's own node tests is changed in turn. Where the outputs
of the conversion stay the same, and ONNX's reference evaluator or onnxruntime gives others, the converter ignores it.
Writes stepper/openvino/ignored.json.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import warnings
from collections import defaultdict
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from functools import cache
from multiprocessing import get_context
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np
import onnx
from onnx import AttributeProto, defs, helper, numpy_helper
from onnx.reference import ReferenceEvaluator

TABLE: Final = Path(__file__).parents[2] / "stepper" / "openvino" / "ignored.json"
_MOST_CASES: Final = 3
"""Of each operation and version."""
_ACTIVATIONS: Final = {"LSTM": 3, "GRU": 2, "RNN": 1}
_OTHER_INPUTS: Final = {"LSTM": {7: lambda given: np.full((given[1].shape[0], 3 * given[2].shape[2]), 0.5, np.float32)}}
"""Optional inputs that no test has, made from the others."""
_TEXTS: Final = {"direction": ("forward", "reverse", "bidirectional")}


class Part(NamedTuple):
    """A part of a node: of its "attributes" or its "inputs"."""

    kind: str
    name: str


def cases() -> Iterator[tuple[Any, list[Any]]]:
    """Yield models of one node of ONNX itself with their inputs, some for each operation and version."""
    from onnx.backend.test.case.node import collect_testcases

    counts: defaultdict[tuple[str, int], int] = defaultdict(int)
    for case in collect_testcases(None):
        node = case.model.graph.node
        if len(node) != 1 or node[0].domain or any(one.HasField("g") for one in node[0].attribute):
            continue
        key = (node[0].op_type, case.model.opset_import[0].version)
        counts[key] += 1
        if counts[key] <= _MOST_CASES or node[0].op_type in _ACTIVATIONS:
            inputs = [_array(one) for one in case.data_sets[0][0]]
            if all(isinstance(one, np.ndarray) for one in inputs):
                yield case.model, inputs


def _array(value: Any) -> Any:
    return numpy_helper.to_array(value) if isinstance(value, onnx.TensorProto) else value


def changes(
    model: Any, inputs: list[Any], seen: dict[tuple[str, str], list[Any]]
) -> Iterator[tuple[Part, Any, Any, Any]]:
    """Yield what is changed, its default (of an input its place), a model with the change, and its inputs."""
    node = model.graph.node[0]
    schema = defs.get_schema(node.op_type, model.opset_import[0].version)
    given = {one.name: helper.get_attribute_value(one) for one in node.attribute}
    for name, attribute in schema.attributes.items():
        default = helper.get_attribute_value(attribute.default_value) if attribute.default_value.name else None
        for value in _others(node, name, attribute.type.value, given.get(name, default), seen):
            changed = type(model).FromString(model.SerializeToString())
            kept = [one for one in node.attribute if one.name != name]
            del changed.graph.node[0].attribute[:]
            changed.graph.node[0].attribute.extend([*kept, helper.make_attribute(name, value)])
            yield Part("attributes", name), _plain(default), changed, inputs
    for place, made in _OTHER_INPUTS.get(node.op_type, {}).items():
        if len(node.input) <= place or not node.input[place]:
            changed = type(model).FromString(model.SerializeToString())
            names = [*changed.graph.node[0].input, *[""] * (place - len(node.input)), "other"]
            changed.graph.node[0].input[:] = names
            value = made(inputs)
            changed.graph.initializer.append(numpy_helper.from_array(value, "other"))
            yield Part("inputs", schema.inputs[place].name), place, changed, inputs


def _plain(value: Any) -> Any:
    if isinstance(value, list):
        return [_plain(one) for one in value]
    return value.decode() if isinstance(value, bytes) else value


def _others(node: Any, name: str, kind: int, now: Any, seen: dict[tuple[str, str], list[Any]]) -> list[Any]:
    if name == "activations" and node.op_type in _ACTIVATIONS:
        count = _ACTIVATIONS[node.op_type]
        usual = {"LSTM": ["Sigmoid", "Tanh", "Tanh"], "GRU": ["Sigmoid", "Tanh"], "RNN": ["Tanh"]}[node.op_type]
        two = any(one.name == "direction" and one.s == b"bidirectional" for one in node.attribute)
        return [usual + usual[: count - 1] + ["Relu"]] if two else [["Relu", *usual[1:]]]
    known = [one for one in seen[node.op_type, name] if one != now]
    match kind:
        case AttributeProto.INT:
            return [*known[:2], *([1 - now] if now in (0, 1) else [(now or 0) + 1])]
        case AttributeProto.FLOAT:
            return [(now or 0.0) + 0.5]
        case AttributeProto.STRING:
            return list(dict.fromkeys([*known, *_TEXTS.get(name, ())]))[:6]
    return known[:3]


def values_seen() -> dict[tuple[str, str], list[Any]]:
    """Return the values of attributes in all tests, by operation and attribute."""
    from onnx.backend.test.case.node import collect_testcases

    found: defaultdict[tuple[str, str], list[Any]] = defaultdict(list)
    for case in collect_testcases(None):
        for node in case.model.graph.node:
            for one in node.attribute:
                value = helper.get_attribute_value(one)
                if (
                    one.type not in (AttributeProto.GRAPH, AttributeProto.TENSOR)
                    and value not in found[node.op_type, one.name]
                ):
                    found[node.op_type, one.name].append(value)
    return found


def outputs_in_openvino(model: Any, inputs: list[Any], folder: Path) -> list[bytes] | None:
    """Return the bytes of what the converted model gives on the CPU; None where it is refused."""
    import openvino

    path = folder / "model.onnx"
    onnx.save(model, path)
    try:
        compiled = openvino.compile_model(path, "CPU", {"INFERENCE_PRECISION_HINT": "f32"})
        names = [one.name for one in model.graph.input]
        return [np.asarray(one).tobytes() for one in compiled(dict(zip(names, inputs, strict=True))).values()]
    except (RuntimeError, TypeError, ValueError):
        return None


def outputs(model: Any, inputs: list[Any]) -> list[Any] | None:
    """Return what the reference evaluator gives; None where it refuses the model."""
    names = [one.name for one in model.graph.input]
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return list(ReferenceEvaluator(model).run(None, dict(zip(names, inputs, strict=True))))
        except Exception:  # of many classes
            return None


def outputs_in_onnxruntime(model: Any, inputs: list[Any]) -> list[Any] | None:
    """Return what onnxruntime gives; None where it refuses the model."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    names = [one.name for one in model.graph.input]
    try:
        session = onnxruntime.InferenceSession(model.SerializeToString(), options, ["CPUExecutionProvider"])
        return list(session.run(None, dict(zip(names, inputs, strict=True))))
    except Exception:  # of classes of its own
        return None


def is_other(ask: Any, model: Any, inputs: list[Any], changed: Any, given: list[Any]) -> bool:
    """True if a reader of ONNX gives other outputs for the changed model."""
    usual = ask(model, inputs)
    found = None if usual is None else ask(changed, given)
    return usual is not None and found is not None and len(usual) == len(found) and differ(usual, found)


def differ(ours: list[Any], theirs: list[Any]) -> bool:
    """True if outputs have other shapes or other numbers."""
    for one, other in zip(ours, theirs, strict=True):
        if not isinstance(one, np.ndarray) or not isinstance(other, np.ndarray):
            return False
        if one.shape != other.shape or (
            one.dtype.kind in "fiub" and not np.allclose(one, other, 1e-4, 1e-5, equal_nan=True)
        ):
            return True
    return False


@cache
def _collected() -> tuple[list[tuple[Any, list[Any]]], dict[tuple[str, str], list[Any]]]:
    return list(cases()), values_seen()


def count() -> int:
    """Return the number of cases."""
    return len(_collected()[0])


def tried(number: int) -> tuple[str, dict[Part, Any], list[Part]]:
    """Return the operation of a case, what of it is ignored with its default, and what is read."""
    (model, inputs), seen = _collected()[0][number], _collected()[1]
    type, found, read = model.graph.node[0].op_type, dict[Part, Any](), list[Part]()
    with tempfile.TemporaryDirectory() as folder:
        usual = outputs_in_openvino(model, inputs, Path(folder))
        for part, default, changed, given in () if usual is None else changes(model, inputs, seen):
            if any(is_other(ask, model, inputs, changed, given) for ask in (outputs, outputs_in_onnxruntime)):
                converted = outputs_in_openvino(changed, given, Path(folder))
                is_known = default is not None or part.name == "activations"
                if converted == usual and is_known:  # else it cannot be told which value is the usual one
                    found[part] = default
                elif converted is not None:
                    read.append(part)
    return type, found, read


def losses() -> dict[str, dict[str, dict[str, Any]]]:
    """Return what is ignored: by operation the attributes with their defaults, and the inputs with their places.

    Cases are tried in a process of their own, since the converter crashes at some.
    """
    found: defaultdict[str, dict[Part, Any]] = defaultdict(dict)
    read: defaultdict[str, set[Part]] = defaultdict(set)
    number, pool = 0, ProcessPoolExecutor(1, get_context("spawn"))
    total = pool.submit(count).result()
    while number < total:
        try:
            type, ignored, heeded = pool.submit(tried, number).result()
            found[type] |= ignored
            read[type].update(heeded)
        except BrokenProcessPool:
            pool = ProcessPoolExecutor(1, get_context("spawn"))
        number += 1
    pool.shutdown()
    table: dict[str, dict[str, dict[str, Any]]] = {}
    for type, parts in found.items():
        for part, value in parts.items():
            if part not in read[type] or part.name == "activations":
                table.setdefault(type, {}).setdefault(part.kind, {})[part.name] = value
    return table


def main() -> int:
    """Write the table, or with --check compare it with the one that is kept."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true")
    text = json.dumps(losses(), indent=1, sort_keys=True) + "\n"
    if parser.parse_args().check:
        return int(text != TABLE.read_text(encoding="utf-8"))
    TABLE.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
