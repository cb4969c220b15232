"""Parts of ONNX nodes that OpenVINO's converter ignores, by a table that tests.conformance.onnx_losses makes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import lru_cache
from importlib.resources import files

from msgspec import json

from stepper.openvino.onnx_file import OnnxFile, OnnxNode
from stepper.openvino.refusals import placed_text
from stepper.records import Record


class _Ignored(Record):
    """Parts of an operation that the converter ignores: attributes with their defaults, inputs with their places."""

    attributes: Mapping[str, int | str | tuple[str, ...] | None] = {}
    inputs: Mapping[str, int] = {}


class IgnoredPart(Record):
    """A part of a node that the converter ignores: an attribute with its value, or an input, and where the node is."""

    part: str
    node: str


_NOTHING = _Ignored()


@lru_cache(maxsize=1)
def _table() -> Mapping[str, _Ignored]:
    return json.decode((files("stepper.openvino") / "ignored.json").read_bytes(), type=dict[str, _Ignored])


def ignored_parts(file: OnnxFile) -> Iterator[IgnoredPart]:
    """Yield what the converter ignores of a file, where it is not what a node has without it."""
    for one in file.nodes():
        node, known = one.node, _table().get(one.node.type, _NOTHING) if not one.node.domain else _NOTHING
        parts = [f"input {name}" for name, place in known.inputs.items() if any(node.inputs[place : place + 1])]
        parts += filter(None, (_attribute(node, name, default) for name, default in known.attributes.items()))
        yield from (IgnoredPart(part, placed_text(one)) for part in parts)


def _attribute(node: OnnxNode, name: str, default: int | str | tuple[str, ...] | None) -> str:
    value = node.attributes.get(name, default)
    if name == "activations" and isinstance(value, tuple):
        half = len(value) // 2  # what the second direction has
        is_same = node.attributes.get("direction") != "bidirectional" or value[:half] == value[half:]
        return "" if is_same else f"the {name} of the second direction"
    return "" if value == default else f"{name}={value}"
