"""Contents of an ONNX file: nodes, names, and where weights lie; read without the package onnx, tensors unread.

The file is a stranger's: nothing is trusted but its bytes, and their number bounds the work.
"""

from __future__ import annotations

import mmap
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TypeAlias

from stepper.records import Record

_DEEPEST = 60
"""Graphs in graphs that are followed."""
_MOST_FIELDS = 5_000_000

TYPES = (
    *("undefined", "float", "uint8", "int8", "uint16", "int16", "int32", "int64", "string", "bool", "float16"),
    *("double", "uint32", "uint64", "complex64", "complex128", "bfloat16", "float8e4m3fn", "float8e4m3fnuz"),
    *("float8e5m2", "float8e5m2fnuz", "uint4", "int4", "float4e2m1", "float8e8m0", "uint2", "int2"),
)
"""Element types by their numbers in the file."""

Value: TypeAlias = "int | str | tuple[int, ...] | tuple[str, ...]"


class OnnxTensor(Record):
    """A tensor in the file; `location` names the file that has its bytes, where that is another one."""

    name: str
    type: int
    location: str = ""
    offset: int = 0
    length: int | None = None

    @property
    def type_name(self) -> str:
        """The element type as ONNX calls it."""
        return TYPES[self.type] if 0 <= self.type < len(TYPES) else f"type {self.type}"


class OnnxNode(Record):
    """A node, with the graphs in its attributes by their names, and the attributes that are numbers or texts."""

    type: str
    domain: str
    name: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    graphs: Mapping[str, OnnxGraph]
    attributes: Mapping[str, Value]
    tensors: tuple[OnnxTensor, ...]

    @property
    def title(self) -> str:
        """Return its name, or the name of its first output if it has none."""
        return self.name or next(iter(self.outputs), "")


class OnnxGraph(Record):
    """A graph: `inputs` are by name, True where the file leaves sizes open."""

    nodes: tuple[OnnxNode, ...]
    inputs: Mapping[str, bool]
    initializers: tuple[OnnxTensor, ...]


class NodeScope(Record):
    """A node that holds a graph, and the attribute in which it does: the `then_branch` of an If."""

    type: str
    name: str
    attribute: str


class PlacedNode(Record):
    """A node with the holders of its graph, and the graphs around it, from the outside inwards."""

    node: OnnxNode
    scopes: tuple[NodeScope, ...]
    graphs: tuple[OnnxGraph, ...]


class OnnxFile(Record):
    """The graph of a file, with those in its nodes."""

    graph: OnnxGraph

    def nodes(self) -> Iterator[PlacedNode]:
        """Yield the nodes at every depth."""
        return _placed(self.graph, (), ())


def _placed(graph: OnnxGraph, scopes: tuple[NodeScope, ...], graphs: tuple[OnnxGraph, ...]) -> Iterator[PlacedNode]:
    graphs = (*graphs, graph)
    for node in graph.nodes:
        yield PlacedNode(node, scopes, graphs)
        for attribute, inner in node.graphs.items():
            yield from _placed(inner, (*scopes, NodeScope(node.type, node.title, attribute)), graphs)


def read_onnx(path: Path) -> OnnxFile | None:
    """Return what stands in a file; None for one that is damaged, too large, or no ONNX file."""
    try:
        with path.open("rb") as file:
            return _MessageReader().model(memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)))
    except (OSError, ValueError, IndexError):
        return None


class _MessageReader:
    """Takes messages of protobuf apart. Raises ValueError or IndexError for what is none."""

    def __init__(self) -> None:
        self._left = _MOST_FIELDS

    def model(self, data: memoryview) -> OnnxFile:
        graph: OnnxGraph | None = None
        for number, value in self._fields(data):
            if number == 7:
                graph = self._graph(value, 0)
        if graph is None:
            raise ValueError("no graph")
        return OnnxFile(graph)

    def _graph(self, data: memoryview | int, depth: int) -> OnnxGraph:
        if depth > _DEEPEST:
            raise ValueError("too deep")
        nodes, inputs, tensors = [], {}, []
        for number, value in self._fields(data):
            match number:
                case 1:
                    nodes.append(self._node(value, depth))
                case 5:
                    tensors.append(self._tensor(value))
                case 11:
                    name, is_open = self._declared(value)
                    inputs[name] = is_open
        return OnnxGraph(tuple(nodes), inputs, tuple(tensors))

    def _node(self, data: memoryview | int, depth: int) -> OnnxNode:
        names: dict[int, list[str]] = {1: [], 2: [], 3: [""], 4: [""], 7: [""]}
        graphs: dict[str, OnnxGraph] = {}
        attributes: dict[str, Value] = {}
        tensors: list[OnnxTensor] = []
        for number, value in self._fields(data):
            if number in names:
                names[number].append(_text(value))
            elif number == 5:
                self._attribute(value, depth, graphs, attributes, tensors)
        return OnnxNode(
            names[4][-1],
            names[7][-1],
            names[3][-1],
            tuple(names[1]),
            tuple(names[2]),
            graphs,
            attributes,
            tuple(tensors),
        )

    def _attribute(
        self,
        data: memoryview | int,
        depth: int,
        graphs: dict[str, OnnxGraph],
        attributes: dict[str, Value],
        tensors: list[OnnxTensor],
    ) -> None:
        fields = list(self._fields(data))
        name = next((_text(value) for number, value in fields if number == 1), "")
        ints: list[int] = []
        texts: list[str] = []
        for number, value in fields:
            match number:
                case 3:
                    attributes[name] = _signed(_integer(value))
                case 4:
                    attributes[name] = _text(value)
                case 5:
                    tensors.append(self._tensor(value))
                case 6:
                    graphs[name] = self._graph(value, depth + 1)
                case 8:
                    ints += [_integer(value)] if isinstance(value, int) else self._packed(value)
                case 9:
                    texts.append(_text(value))
        if ints:
            attributes[name] = tuple(map(_signed, ints))
        if texts:
            attributes[name] = tuple(texts)

    def _tensor(self, data: memoryview | int) -> OnnxTensor:
        name, type, outside = "", 0, {}
        for number, value in self._fields(data):
            match number:
                case 2:
                    type = _integer(value)
                case 8:
                    name = _text(value)
                case 13:
                    parts = dict(self._fields(value))
                    outside[_text(parts.get(1, b""))] = _text(parts.get(2, b""))
        length = outside.get("length", "")
        return OnnxTensor(
            name,
            type,
            outside.get("location", ""),
            int(outside.get("offset") or 0),
            int(length) if length else None,
        )

    def _declared(self, data: memoryview | int) -> tuple[str, bool]:
        """Return the name of an input or output, and whether some of its sizes are open."""
        fields = dict(self._fields(data))
        tensor = dict(self._fields(dict(self._fields(fields.get(2, b""))).get(1, b"")))
        if 2 not in tensor:
            return _text(fields.get(1, b"")), True
        dims = [dict(self._fields(dim)) for number, dim in self._fields(tensor[2]) if number == 1]
        return _text(fields.get(1, b"")), any(_signed(_integer(dim.get(1, 0))) <= 0 for dim in dims)

    def _packed(self, data: memoryview) -> list[int]:
        found, at = [], 0
        while at < len(data):
            self._take()
            value, at = _varint(data, at)
            found.append(value)
        return found

    def _take(self) -> None:
        """Count what is read. Raise ValueError for more than any model has."""
        self._left -= 1
        if self._left < 0:
            raise ValueError("too many fields")

    def _fields(self, data: memoryview | bytes | int) -> Iterator[tuple[int, memoryview | int]]:
        """Yield the numbers of the fields of a message with their values: whole numbers, or bytes."""
        if isinstance(data, int):
            raise ValueError("no message")
        view = memoryview(data)
        at = 0
        while at < len(view):
            self._take()
            key, at = _varint(view, at)
            kind = key & 7
            if kind == 0:
                value, at = _varint(view, at)
                yield key >> 3, value
                continue
            if kind == 2:
                size, at = _varint(view, at)
            elif kind in (1, 5):
                size = 8 if kind == 1 else 4
            else:
                raise ValueError("no field")
            if at + size > len(view):
                raise ValueError("cut off")
            yield key >> 3, view[at : at + size]
            at += size


def _varint(data: memoryview, at: int) -> tuple[int, int]:
    value = shift = 0
    while shift < 64:
        byte = data[at]
        at += 1
        value |= (byte & 127) << shift
        if byte < 128:
            return value, at
        shift += 7
    raise ValueError("no number")


def _signed(value: int) -> int:
    return value - 2**64 if value >= 2**63 else value


def _integer(value: memoryview | bytes | int) -> int:
    if not isinstance(value, int):
        raise ValueError("no number")
    return value


def _text(value: memoryview | bytes | int) -> str:
    if isinstance(value, int):
        raise ValueError("no text")
    return bytes(value[:_LONGEST]).decode("utf-8", "replace")


_LONGEST = 4096
