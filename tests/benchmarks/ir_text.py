"""Writes the small models of the benchmarks as IR: text and bytes, without the help of any runtime."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

_NAMES = {np.dtype(np.float32): "f32", np.dtype(np.int64): "i64", np.dtype(np.bool_): "boolean"}
_PRECISIONS = {"f32": "FP32", "i64": "I64", "boolean": "BOOL"}


@dataclass(frozen=True)
class Value:
    """An output of a layer, with type and shape as its port declares them."""

    layer: int
    port: int
    type: str
    shape: tuple[int, ...]

    def port_text(self, number: int) -> str:
        """The port of this number with the value's type and shape."""
        dims = "".join(f"\n\t\t\t\t\t<dim>{size}</dim>" for size in self.shape)
        return f'\n\t\t\t\t<port id="{number}" precision="{_PRECISIONS[self.type]}">{dims}\n\t\t\t\t</port>'


@dataclass
class Weights:
    """The .bin file: the bytes of all constants, those of the bodies too."""

    chunks: list[bytes] = field(default_factory=list)
    size: int = 0

    def place(self, chunk: bytes) -> int:
        """Append the bytes; their offset."""
        offset = self.size
        self.chunks.append(chunk)
        self.size += len(chunk)
        return offset


@dataclass
class GraphText:
    """Layers and edges of one graph, as text."""

    weights: Weights
    layers: list[str] = field(default_factory=list)
    edges: list[str] = field(default_factory=list)

    def layer(
        self,
        type: str,
        inputs: Sequence[Value] = (),
        outputs: Sequence[tuple[str, Sequence[int]]] = (),
        *,
        opset: int = 1,
        name: str = "",
        inside: str = "",
        **attributes: object,
    ) -> tuple[Value, ...]:
        """Add a layer whose outputs have these types and shapes; `inside` is what it has beside data and ports."""
        number = len(self.layers)
        for index, value in enumerate(inputs):
            ends = f'from-layer="{value.layer}" from-port="{value.port}" to-layer="{number}" to-port="{index}"'
            self.edges.append(f"\t\t<edge {ends} />")
        values = [Value(number, len(inputs) + index, type, tuple(shape)) for index, (type, shape) in enumerate(outputs)]
        data = "".join(f' {key}="{value}"' for key, value in attributes.items())
        parts = [f'\t\t<layer id="{number}" name="{name or f"{type}_{number}"}" type="{type}" version="opset{opset}">']
        parts += [f"\t\t\t<data{data} />"] if data else []
        parts += [_side("input", inputs, 0), _side("output", values, len(inputs)), inside, "\t\t</layer>"]
        self.layers.append("\n".join(part for part in parts if part))
        return tuple(values)

    def parameter(self, name: str, type: str, shape: Sequence[int]) -> Value:
        """A Parameter."""
        text = ",".join(map(str, shape))
        return self.layer("Parameter", (), [(type, shape)], name=name, shape=text, element_type=type)[0]

    def constant(self, value: Any) -> Value:
        """A Const layer."""
        array = np.asarray(value)
        type, text = _NAMES[array.dtype], ", ".join(map(str, array.shape))
        offset, size = self.weights.place(array.tobytes()), array.nbytes
        return self.layer("Const", (), [(type, array.shape)], element_type=type, shape=text, offset=offset, size=size)[
            0
        ]

    def apply(self, type: str, *inputs: Value, shape: Sequence[int], to: str = "f32", opset: int = 1) -> Value:
        """An operation without attributes that has one output."""
        return self.layer(type, inputs, [(to, shape)], opset=opset)[0]

    def result(self, value: Value, name: str = "") -> int:
        """A Result; its layer id."""
        self.layer("Result", [value], name=name)
        return len(self.layers) - 1

    def text(self) -> str:
        """What stands inside <net> or <body>."""
        layers, edges = "\n".join(self.layers), "\n".join(self.edges)
        return f"\t<layers>\n{layers}\n\t</layers>\n\t<edges>\n{edges}\n\t</edges>"

    def write(self, folder: Path, name: str) -> Path:
        """Write `name`.xml and `name`.bin; the path of the former."""
        path = folder / f"{name}.xml"
        path.write_text(f'<?xml version="1.0"?>\n<net name="{name}" version="11">\n{self.text()}\n</net>\n')
        path.with_suffix(".bin").write_bytes(b"".join(self.weights.chunks))
        return path


def _side(tag: str, values: Sequence[Value], first: int) -> str:
    if not values:
        return ""
    ports = "".join(value.port_text(first + index) for index, value in enumerate(values))
    return f"\t\t\t<{tag}>{ports}\n\t\t\t</{tag}>"


@dataclass
class PortMap:
    """The entries of a loop's port map in the order of its ports, and its back edges."""

    inputs: list[str] = field(default_factory=list)
    outputs: list[str] = field(default_factory=list)
    back_edges: list[str] = field(default_factory=list)

    def input(self, external: int, parameter: Value, axis: int | None = None) -> None:
        """Lead an outer input into the body, whole or (with an axis) one slice of length 1 for each iteration."""
        ends = f'external_port_id="{external}" internal_layer_id="{parameter.layer}"'
        self.inputs.append(f"<input {_slicing(axis)}{ends} />")

    def output(self, external: int, result: int, axis: int | None = None, purpose: str = "") -> None:
        """Lead a Result out of the body, the last value or (with an axis) all iterations joined."""
        marked = f'purpose="{purpose}" ' if purpose else ""
        ends = f'external_port_id="{external}" internal_layer_id="{result}"'
        self.outputs.append(f"<output {_slicing(axis)}{ends} {marked}/>")

    def carry(self, result: int, parameter: Value) -> None:
        """A back edge."""
        self.back_edges.append(f'<edge from-layer="{result}" to-layer="{parameter.layer}" />')

    def text(self, body: GraphText) -> str:
        """Port map, back edges and body of the layer."""
        parts = ["<port_map>", *self.inputs, *self.outputs, "</port_map>"]
        parts += ["<back_edges>", *self.back_edges, "</back_edges>"]
        return "\n".join([*parts, f"<body>\n{body.text()}\n</body>"])


def _slicing(axis: int | None) -> str:
    return "" if axis is None else f'axis="{axis}" start="0" end="-1" stride="1" part_size="1" '
