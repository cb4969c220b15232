"""The text of tiny models, one element to a line so that a test can say on which line something stands."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np


class Blob:
    """The bytes of a .bin file while it is being put together."""

    def __init__(self) -> None:
        self.content = b""

    def constant(self, id: int, name: str, type: str, shape: Sequence[int], content: bytes) -> str:
        """A Const layer, of which the bytes go to the end of the file."""
        offset = len(self.content)
        self.content += content
        dims = ",".join(map(str, shape))
        data = f'<data element_type="{type}" shape="{dims}" offset="{offset}" size="{len(content)}"/>'
        return layer(id, name, "Const", data, outputs=[port(0, type.upper(), shape)])

    def floats(self, id: int, name: str, values: float | Sequence[float]) -> str:
        array = np.array(values, "<f4")
        return self.constant(id, name, "f32", array.shape, array.tobytes())

    def integer(self, id: int, name: str, value: int) -> str:
        return self.constant(id, name, "i64", (), np.array(value, "<i8").tobytes())

    def boolean(self, id: int, name: str, value: bool) -> str:
        return self.constant(id, name, "boolean", (), bytes([value]))


def port(id: int, precision: str = "FP32", dims: Sequence[int] = ()) -> str:
    lines = [f'<port id="{id}" precision="{precision}">', *(f"<dim>{dim}</dim>" for dim in dims), "</port>"]
    return "\n".join(lines)


def layer(
    id: int,
    name: str,
    type: str,
    data: str = "",
    inputs: Sequence[str] = (),
    outputs: Sequence[str] = (),
    parts: Sequence[str] = (),
    version: str = "opset1",
) -> str:
    """One layer; `parts` are its port maps, back edges and bodies."""
    lines = [f'<layer id="{id}" name="{name}" type="{type}" version="{version}">']
    lines += [data] if data else []
    lines += ["<input>", *inputs, "</input>"] if inputs else []
    lines += ["<output>", *outputs, "</output>"] if outputs else []
    return "\n".join([*lines, *parts, "</layer>"])


def parameter(id: int, name: str, type: str = "f32", shape: Sequence[int] = ()) -> str:
    dims = ",".join(map(str, shape))
    data = f'<data element_type="{type}" shape="{dims}"/>'
    return layer(id, name, "Parameter", data, outputs=[port(0, type.upper(), shape)])


def result(id: int, name: str, precision: str = "FP32", dims: Sequence[int] = ()) -> str:
    return layer(id, name, "Result", inputs=[port(0, precision, dims)])


def binary(id: int, name: str, type: str, dims: Sequence[int] = (), version: str = "opset1") -> str:
    """Add, Multiply, Less, ... of two f32 (Less: of whatever comes, a boolean)."""
    output = port(2, "BOOL" if type in ("Less", "Greater", "Equal") else "FP32", dims)
    inputs = [port(0, "FP32", dims), port(1, "FP32", dims)]
    return layer(id, name, type, inputs=inputs, outputs=[output], version=version)


def edges(*pairs: str) -> str:
    """Each as `from_layer:from_port to_layer:to_port`."""
    lines = ["<edges>"]
    for pair in pairs:
        (a, b), (c, d) = (end.split(":") for end in pair.split())
        lines.append(f'<edge from-layer="{a}" from-port="{b}" to-layer="{c}" to-port="{d}"/>')
    return "\n".join([*lines, "</edges>"])


def graph(tag: str, layers: Sequence[str], edges: str) -> str:
    """A body, or the inside of the net."""
    inside = ["<layers>", *layers, "</layers>", edges]
    return "\n".join([f"<{tag}>", *inside, f"</{tag}>"] if tag else inside)


def net(layers: Sequence[str], edges: str, version: int = 11) -> str:
    return f'<?xml version="1.0"?>\n<net name="tiny" version="{version}">\n{graph("", layers, edges)}\n</net>\n'


def write(folder: Path, text: str | bytes, weights: bytes | None = b"") -> Path:
    """The .xml and (unless None) the .bin in the folder; the path of the .xml."""
    path = folder / "model.xml"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    if weights is not None:
        path.with_suffix(".bin").write_bytes(weights)
    return path


def line_of(text: str, fragment: str, occurrence: int = 0) -> int:
    """The line (from 1) on which the fragment stands."""
    lines = [number for number, line in enumerate(text.splitlines(), 1) if fragment in line]
    return lines[occurrence]
