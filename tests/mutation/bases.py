"""The sound models that are damaged: the samples, and texts for what they have not."""

from __future__ import annotations

import os
import struct
from collections.abc import Callable
from functools import cache, partial
from pathlib import Path

from tests.ir import tiny_models
from tests.ir.first_draft import first_draft
from tests.ir.texts import Blob, edges, layer, net, parameter, port, result
from tests.mutation.mutate import Files

MORE_MODELS = "STEPPER_MUTATION_MODELS"
"""The variable of the environment that names a folder with more models."""
SAMPLES = Path(__file__).parents[2] / "sample_models"
LARGEST_SAMPLE = 2**20

TEXTS: dict[str, Callable[[], tuple[str, bytes]]] = {
    "plain": tiny_models.plain,
    "loop": tiny_models.loop,
    "iterator": tiny_models.iterator,
    "branch": tiny_models.branch,
    "nested": lambda: tiny_models.nested(3),
    "first_draft": lambda: first_draft(trip_count=5, condition=True),
    "packed": lambda: packed(),
    "sizes": lambda: sizes(),
    "growing": lambda: growing(),
}


def packed() -> tuple[str, bytes]:
    """A constant of every packed element type and a string, each an output."""
    blob = Blob()
    text = b"\2\0\0\0" + b"\0\0\0\0" + b"\1\0\0\0" + b"\3\0\0\0" + b"abc"
    sizes = {"u1": 1, "u2": 1, "u3": 3, "u4": 2, "u6": 3, "i4": 2, "nf4": 2, "f4e2m1": 2, "f8e8m0": 4, "bf16": 8}
    layers = [blob.constant(i, type, type, (4,), bytes(size)) for i, (type, size) in enumerate(sizes.items())]
    layers.append(blob.constant(len(sizes), "string", "string", (2,), text))
    results = [result(100 + index, f"out{index}") for index in range(len(layers))]
    pairs = [f"{index}:0 {100 + index}:0" for index in range(len(layers))]
    return net([*layers, *results], edges(*pairs)), blob.content


def sizes() -> tuple[str, bytes]:
    """Operations whose output is as large as a constant says: damage to its bytes asks for very large tensors."""
    blob = Blob()

    def integers(id: int, *values: int) -> str:
        return blob.constant(id, f"c{id}", "i64", (len(values),), struct.pack(f"<{len(values)}q", *values))

    def operation(id: int, type: str, inputs: int, data: str = "", version: str = "opset1") -> str:
        return layer(id, type.lower(), type, data, [port(i) for i in range(inputs)], [port(inputs)], version=version)

    layers = [
        parameter(0, "x", "f32", (1, 2)),
        *(integers(1, 3, 2), operation(2, "Broadcast", 2, '<data mode="numpy"/>', "opset3")),
        *(integers(3, 2, 1), operation(4, "Tile", 2)),
        *(integers(5, 1, 1), integers(6, 0, 2), operation(7, "Pad", 3, '<data pad_mode="constant"/>')),
        *(integers(8, -1, 5, 1), operation(9, "Reshape", 2, '<data special_zero="true"/>')),
        *(blob.integer(13, "start", 0), blob.integer(14, "end", 9), blob.integer(15, "step", 2)),
        operation(16, "Range", 3, '<data output_type="f32"/>', "opset4"),
        *(integers(10, 0), blob.integer(17, "axis", 0), operation(18, "Gather", 3, "", "opset8")),
        *(blob.integer(19, "depth", 5), blob.floats(20, "on", 1), blob.floats(21, "off", 0)),
        operation(22, "OneHot", 4, '<data axis="-1"/>'),
        *(blob.integer(11, "rows", 9), blob.integer(12, "columns", 3)),
        operation(23, "Eye", 3, '<data output_type="f32"/>', "opset9"),
        *(result(30, "out"), result(31, "hot"), result(32, "eye"), result(33, "range")),
    ]
    pairs = ["0:0 2:0", "1:0 2:1", "2:2 4:0", "3:0 4:1", "4:2 7:0", "5:0 7:1", "6:0 7:2", "7:3 9:0", "8:0 9:1"]
    pairs += ["13:0 16:0", "14:0 16:1", "15:0 16:2", "9:2 18:0", "10:0 18:1", "17:0 18:2", "18:3 30:0"]
    pairs += ["8:0 22:0", "19:0 22:1", "20:0 22:2", "21:0 22:3", "22:4 31:0"]
    pairs += ["11:0 23:0", "12:0 23:1", "17:0 23:2", "23:3 32:0", "16:3 33:0"]
    return net(layers, edges(*pairs)), blob.content


def growing() -> tuple[str, bytes]:
    """A loop whose state doubles in each iteration."""
    text, weights = tiny_models.loop()
    concat = 'name="next" type="Concat" version="opset1">\n<data axis="0"/>'
    text = text.replace('name="next" type="Add" version="opset1">', concat)
    doubled = '<edge from-layer="0" from-port="0" to-layer="5" to-port="1"/>'
    text = text.replace('<edge from-layer="4" from-port="2" to-layer="5" to-port="1"/>', doubled)
    return text, weights


@cache
def bases() -> dict[str, Callable[[], Files]]:
    """What gives each of them, by name and in a fixed order; those of the folder in MORE_MODELS come last."""
    found: dict[str, Callable[[], Files]] = {}
    for path in sorted(SAMPLES.glob("*/model.xml")):
        if path.with_suffix(".bin").stat().st_size < LARGEST_SAMPLE:
            found[path.parent.name] = partial(_in_folder, path)
    for name, make in TEXTS.items():
        found[name] = partial(_of_text, make)
    folder = os.environ.get(MORE_MODELS)
    for path in sorted(Path(folder).rglob("*.xml")) if folder else ():
        if max(one.stat().st_size for one in (path, path.with_suffix(".bin")) if one.exists()) < LARGEST_SAMPLE:
            found[str(path.relative_to(folder or ""))] = partial(_in_folder, path)
    return found


def _in_folder(path: Path) -> Files:
    weights = path.with_suffix(".bin")
    return Files(path.read_bytes(), weights.read_bytes() if weights.exists() else b"")


def _of_text(make: Callable[[], tuple[str, bytes]]) -> Files:
    text, weights = make()
    return Files(text.encode(), weights)
