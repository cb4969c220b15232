"""A model as its .xml and .bin say it, read with lxml alone: figures are held against it, not against the product."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from lxml import etree

NO_LIMIT = 2**63 - 1
DTYPES = {
    **{f"{letter}{bits}": np.dtype(f"{word}{bits}") for letter, word in (("i", "int"), ("u", "uint")) for bits in
       (8, 16, 32, 64)},
    **{f"f{bits}": np.dtype(f"float{bits}") for bits in (16, 32, 64)},
    "boolean": np.dtype(bool),
}  # fmt: skip
PRECISIONS = {
    "FP16": "f16",
    "FP32": "f32",
    "FP64": "f64",
    "BOOL": "boolean",
    "BF16": "bf16",
    "STRING": "string",
    "UNSPECIFIED": "?",
}


@dataclass(frozen=True)
class Cut:
    """How an entry of a port map slices or joins."""

    axis: int
    start: int
    end: int
    stride: int
    part: int

    def range(self, iteration: int, extent: int) -> tuple[int, int]:
        """The elements [begin, end) of an iteration, along an axis of that extent."""
        first = self.start if self.start >= 0 else extent + self.start + 1
        at = first + iteration * self.stride
        return (at, at + self.part) if self.stride > 0 else (at - self.part, at)

    def count(self, extent: int) -> int:
        first, last = (at if at >= 0 else extent + at + 1 for at in (self.start, self.end))
        return abs(last - first) // abs(self.stride)


@dataclass(frozen=True)
class Entry:
    """An entry of a port map: index of the layer's port (None: none), layer of the body."""

    port: int | None
    inner: int
    cut: Cut | None
    purpose: str


@dataclass
class Body:
    role: str
    graph: Graph
    inputs: list[Entry] = field(default_factory=list)
    outputs: list[Entry] = field(default_factory=list)
    back: list[tuple[int, int]] = field(default_factory=list)


@dataclass
class Layer:
    id: int
    name: str
    type: str
    data: dict[str, str]
    forms: list[tuple[str, tuple[int, ...]]]
    sources: list[tuple[int, int] | None]
    bodies: list[Body] = field(default_factory=list)

    @property
    def is_loop(self) -> bool:
        return self.type in ("Loop", "TensorIterator")

    @property
    def condition(self) -> int | None:
        """The Result that says whether a loop goes on."""
        return next((one.inner for one in self.bodies[0].outputs if one.purpose == "execution_condition"), None)

    def role(self, parameter: int) -> str:
        """The role of a Parameter of a loop's body, as the specification gives it."""
        body = self.bodies[0]
        entry = next((one for one in body.inputs if one.inner == parameter and one.port is not None), None)
        numbered = [one.inner for one in body.inputs if one.purpose == "current_iteration"]
        if not all(body.graph.layers[one].takes_a_number for one in numbered):
            return "cannot be played"  # the specification refuses the whole port map
        if parameter in numbered:
            return "current iteration"
        if entry is None:
            mapped = {one.inner for one in body.inputs if one.port is not None}
            free = [one for one in body.graph.layers.values() if one.type == "Parameter" and one.id not in mapped]
            single = len(free) == 1 and free[0].takes_a_number
            return "current iteration" if self.type == "Loop" and not numbered and single else "not connected"
        if entry.cut is not None:
            return "sliced"
        return "merged" if self.carried_from(parameter) is not None else "invariant"

    @property
    def takes_a_number(self) -> bool:
        """Whether a Parameter has a type and shape that the current iteration can have."""
        kind, dims = self.data.get("element_type", self.forms[0][0]), list(map(str, self.forms[0][1]))
        if "shape" in self.data:
            dims = [one for one in self.data["shape"].split(",") if one]
        return kind in ("i32", "i64", "?") and dims in ([], ["1"], ["?"], ["-1"], ["..."])

    def carried_from(self, parameter: int) -> int | None:
        """The Result whose back edge leads to a Parameter and counts."""
        body = self.bodies[0]
        entry = next((one for one in body.inputs if one.inner == parameter and one.port is not None), None)
        if entry is None or entry.cut is not None or entry.purpose == "current_iteration":
            return None
        return next((tail for tail, head in body.back if head == parameter), None)

    def idle_edges(self) -> list[tuple[int, int]]:
        """The back edges that carry nothing, as (Result, Parameter), where the body has both."""
        body = self.bodies[0]
        found = [(tail, head) for tail, head in body.back if {tail, head} <= set(body.graph.layers)]
        return [(tail, head) for tail, head in found if self.carried_from(head) != tail]

    def entry_of(self, parameter: int) -> Entry | None:
        return next((one for one in self.bodies[0].inputs if one.inner == parameter and one.port is not None), None)


@dataclass
class Graph:
    layers: dict[int, Layer]

    def of(self, *types: str) -> list[Layer]:
        return [layer for layer in self.layers.values() if layer.type in types]

    def source(self, layer: int, index: int = 0) -> Layer | None:
        found = self.layers[layer].sources[index] if index < len(self.layers[layer].sources) else None
        return None if found is None else self.layers[found[0]]

    def reader(self, layer: int, output: int) -> Layer | None:
        """A Result that reads an output, else the first layer that does."""
        found = [one for one in self.layers.values() if (layer, output) in one.sources]
        return next((one for one in found if one.type == "Result"), found[0] if found else None)

    def output_of(self, layer: int, index: int = 0) -> int | None:
        """The output of its source that an input reads, None where that has only one."""
        found = self.layers[layer].sources[index]
        return None if found is None or len(self.layers[found[0]].forms) < 2 else found[1]


@dataclass
class ModelFile:
    graph: Graph
    weights: bytes

    def constant(self, layer: Layer) -> np.ndarray | None:
        """The content of a Constant (None: of an element type that numpy does not have)."""
        dtype = DTYPES.get(layer.data.get("element_type", ""))
        if dtype is None or "offset" not in layer.data:
            return None
        shape = tuple(int(word) for word in layer.data.get("shape", "").split(",") if word.strip())
        begin, size = int(layer.data["offset"]), int(layer.data["size"])
        if size != dtype.itemsize * int(np.prod(shape)):
            return None
        if begin + size > len(self.weights):
            return None
        return np.frombuffer(self.weights[begin : begin + size], dtype).reshape(shape)

    def loops(self) -> Iterator[tuple[tuple[int, ...], Graph, Layer]]:
        """Every layer with bodies: ids of those around it and its own, the graph in which it stands, itself."""
        yield from _loops(self.graph, ())


def _loops(graph: Graph, around: tuple[int, ...]) -> Iterator[tuple[tuple[int, ...], Graph, Layer]]:
    for layer in graph.layers.values():
        if layer.bodies:
            yield (*around, layer.id), graph, layer
            for body in layer.bodies:
                yield from _loops(body.graph, (*around, layer.id))


def read(path: Path) -> ModelFile:
    root = etree.fromstring(path.read_bytes(), etree.XMLParser(huge_tree=True, resolve_entities=False))
    blob = path.with_suffix(".bin")
    return ModelFile(_graph(root), blob.read_bytes() if blob.exists() else b"")


def _graph(root: etree._Element) -> Graph:
    layers: dict[int, Layer] = {}
    inputs: dict[int, list[str]] = {}
    outputs: dict[int, list[str]] = {}
    for one in root.findall("layers/layer"):
        id = int(one.get("id", ""))
        inputs[id] = [str(port.get("id")) for port in one.findall("input/port")]
        ports = one.findall("output/port")
        outputs[id] = [str(port.get("id")) for port in ports]
        data = one.find("data")
        type = "Constant" if one.get("type") == "Const" else str(one.get("type"))
        layers[id] = Layer(
            id=id,
            name=str(one.get("name")),
            type=type,
            data={} if data is None else {str(key): str(value) for key, value in data.attrib.items()},
            forms=[_form(port) for port in ports],
            sources=[None] * len(inputs[id]),
        )
        for role in ("body", "then_body", "else_body"):
            inside = one.find(role)
            if inside is not None:
                prefix = role.removesuffix("body")
                layers[id].bodies.append(_body(one, inside, role, f"{prefix}port_map", inputs[id], outputs[id]))
    for edge in root.findall("edges/edge"):
        source, target = int(edge.get("from-layer", "")), int(edge.get("to-layer", ""))
        index = inputs[target].index(str(edge.get("to-port")))
        layers[target].sources[index] = (source, outputs[source].index(str(edge.get("from-port"))))
    return Graph(layers)


def _form(port: etree._Element) -> tuple[str, tuple[int, ...]]:
    word = str(port.get("precision", "?"))
    dims = tuple(int(dim.text) if str(dim.text).lstrip("-").isdigit() else -1 for dim in port.findall("dim"))
    return PRECISIONS.get(word, word.lower()), dims


def _body(
    layer: etree._Element, inside: etree._Element, role: str, port_map: str, inputs: list[str], outputs: list[str]
) -> Body:
    found = layer.find(port_map)
    entries = [] if found is None else [one for one in found if one.tag in ("input", "output")]
    external = [one.get("external_port_id", "-1") for one in entries if one.tag == "output"]
    if not set(external) - {"-1"} <= set(outputs):  # ids of no port count as places, in their order
        outputs = sorted(set(external) - {"-1"}, key=int)
    body = Body({"then_body": "then", "else_body": "else"}.get(role, "body"), _graph(inside))
    for entry in entries:
        is_input = entry.tag == "input"
        (body.inputs if is_input else body.outputs).append(_entry(entry, inputs if is_input else outputs))
    edges = layer.findall("back_edges/edge") if role == "body" else []
    body.back = list(dict.fromkeys((int(one.get("from-layer", "")), int(one.get("to-layer", ""))) for one in edges))
    return body


def _entry(entry: etree._Element, ports: list[str]) -> Entry:
    external = entry.get("external_port_id")
    cut = None
    if entry.get("axis") is not None:
        start, end, stride, part = (int(entry.get(name, usual)) for name, usual in
                                    (("start", "0"), ("end", "-1"), ("stride", "1"), ("part_size", "1")))  # fmt: skip
        cut = Cut(int(entry.get("axis", "")), start, end, stride, part)
    port = ports.index(external) if external in ports else None
    purpose = entry.get("purpose", "")
    known = purpose in ("current_iteration", "execution_condition")
    return Entry(port, int(entry.get("internal_layer_id", "")), cut, purpose if known else "")
