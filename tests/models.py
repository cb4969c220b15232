"""Models put together operation by operation: ids, ports and edges count themselves (text: tests/ir/texts.py)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import stepper
from stepper.element_types import of_dtype
from stepper.ir.model import Model
from tests.ir import texts


@dataclass(frozen=True)
class Value:
    """An output of a layer (or a Result), with the type and shape that its port declares."""

    layer: int
    port: int
    type: str
    dims: tuple[int, ...]


@dataclass(frozen=True)
class Entry:
    """An entry of a port map: `outer` of an input alone; `cut` of a sliced or concatenated one; `back`: a back edge."""

    inner: Value
    outer: Value | None = None
    cut: Mapping[str, int] | None = None
    back: Value | None = None

    def text(self, tag: str, external: int, purpose: str = "") -> str:
        cut = "".join(f'{name}="{value}" ' for name, value in (self.cut or {}).items())
        marked = f'purpose="{purpose}" ' if purpose else ""
        return f'<{tag} {cut}{marked}external_port_id="{external}" internal_layer_id="{self.inner.layer}"/>'


def sliced(outer: Value, parameter: Value, axis: int = 0, **attributes: int) -> Entry:
    """Each iteration gets its slice; `attributes` are start, end, stride, part_size."""
    return Entry(parameter, outer, _cut(axis, attributes))


def carried(outer: Value, parameter: Value, result: Value) -> Entry:
    """The outer value is the initial one, the Result's what later iterations get."""
    return Entry(parameter, outer, back=result)


def invariant(outer: Value, parameter: Value) -> Entry:
    return Entry(parameter, outer)


def last(result: Value) -> Entry:
    return Entry(result)


def joined(result: Value, axis: int = 0, **attributes: int) -> Entry:
    """The Results of all iterations, concatenated."""
    return Entry(result, cut=_cut(axis, attributes))


def backwards(part: int = 1) -> dict[str, int]:
    """The attributes of an entry that walks from the end to the beginning."""
    return {"start": -1, "end": 0, "stride": -part}


def _cut(axis: int, attributes: Mapping[str, int]) -> dict[str, int]:
    cut = {"axis": axis, "start": 0, "end": -1, "stride": 1, **attributes}
    return {"part_size": abs(cut["stride"]), **cut}


@dataclass(frozen=True)
class Side:
    """A branch of an If: its graph, (outer value, Parameter) pairs, and the Results that it gives."""

    graph: Graph
    inputs: Sequence[tuple[Value, Value]]
    results: Sequence[Value]


class Graph:
    """A graph under construction; a body shares the bytes of the model."""

    def __init__(self, blob: texts.Blob | None = None) -> None:
        self.blob = blob or texts.Blob()
        self.layers: list[str] = []
        self.edges: list[str] = []

    def body(self) -> Graph:
        return Graph(self.blob)

    def parameter(self, name: str, type: str = "f32", dims: Sequence[int] = (), names: str = "") -> Value:
        """A Parameter; `names` are the tensor names of its port, separated by commas."""
        port = texts.port(0, type, dims)
        if names:
            port = port.replace(" precision=", f' names="{names}" precision=')
        data = f'<data element_type="{type}" shape="{",".join(map(str, dims))}"/>'
        return self._added(texts.layer(len(self.layers), name, "Parameter", data, outputs=[port]), type, dims)

    def constant(self, value: Any, type: Any = None, name: str = "constant") -> Value:
        array = np.asarray(value, type)
        if type is None and array.dtype == np.float64:
            array = array.astype(np.float32)
        written = of_dtype(array.dtype).name
        content, offset = array.tobytes(), len(self.blob.content)
        self.blob.content += content
        shape = ",".join(map(str, array.shape))
        data = f'<data element_type="{written}" shape="{shape}" offset="{offset}" size="{len(content)}"/>'
        port = texts.port(0, written, array.shape)
        return self._added(texts.layer(len(self.layers), name, "Const", data, outputs=[port]), written, array.shape)

    def apply(
        self,
        operation: str,
        *inputs: Value,
        type: str | None = None,
        dims: Sequence[int] | None = None,
        version: str = "opset1",
        name: str = "",
        outputs: int = 1,
        names: str = "",
        **attributes: object,
    ) -> Value:
        """An operation; type and shape are declared as those of its first input unless something else is said.

        Of several outputs the first is returned. `names` are the tensor names of that.
        """
        type = inputs[0].type if type is None else type
        dims = inputs[0].dims if dims is None else tuple(dims)
        data = "".join(f' {key}="{value}"' for key, value in attributes.items())
        ports = [texts.port(len(inputs) + index, type, dims) for index in range(outputs)]
        if names:
            ports[0] = ports[0].replace(" precision=", f' names="{names}" precision=')
        identity = len(self.layers)
        text = texts.layer(
            identity,
            name or operation.lower(),
            operation,
            f"<data{data}/>",
            self._connected(inputs),
            ports,
            (),
            version,
        )
        self.layers.append(text)
        return Value(identity, len(inputs), type, dims)

    def result(self, value: Value, name: str = "result") -> Value:
        identity = len(self.layers)
        self.edges.append(f"{value.layer}:{value.port} {identity}:0")
        self.layers.append(texts.result(identity, name, value.type, value.dims))
        return Value(identity, -1, value.type, value.dims)

    def tensor_iterator(self, name: str, body: Graph, inputs: Sequence[Entry], outputs: Sequence[Entry]) -> list[Value]:
        """A TensorIterator; the values of its outputs."""
        return self._seed("TensorIterator", name, body, [], inputs, outputs, [])

    def loop(
        self,
        name: str,
        body: Graph,
        trip_count: int | Value,
        condition: bool | Value,
        inputs: Sequence[Entry],
        outputs: Sequence[Entry],
        keep_going: Value | None = None,
        iteration: Value | None = None,
    ) -> list[Value]:
        """A Loop; the values of its outputs. Without `keep_going`, its body's condition is a true Constant."""
        control = [
            trip_count if isinstance(trip_count, Value) else self.constant(trip_count, np.int64, "trip_count"),
            condition if isinstance(condition, Value) else self.constant(condition, np.bool_, "condition"),
        ]
        keep_going = keep_going or body.result(body.constant(True, np.bool_, "true"), "true_result")
        special = [] if iteration is None else [Entry(iteration).text("input", -1, "current_iteration")]
        special.append(Entry(keep_going).text("output", -1, "execution_condition"))
        return self._seed("Loop", name, body, control, inputs, outputs, special)

    def branch(self, name: str, condition: Value, then: Side, otherwise: Side) -> list[Value]:
        """An If; the values of its outputs, declared as the then branch has them."""
        sources = list(dict.fromkeys([condition, *(outer for side in (then, otherwise) for outer, _ in side.inputs)]))
        parts = []
        for tag, side in (("then", then), ("else", otherwise)):
            parts.append(f"<{tag}_port_map>")
            parts += [Entry(parameter).text("input", sources.index(outer)) for outer, parameter in side.inputs]
            parts += [Entry(result).text("output", len(sources) + k) for k, result in enumerate(side.results)]
            parts += [f"</{tag}_port_map>", side.graph.text(f"{tag}_body")]
        return self._with_bodies(
            "If", name, sources, [(side.type, side.dims) for side in then.results], parts, "opset8"
        )

    def extension(
        self,
        type: str,
        name: str,
        body: Graph,
        sources: Sequence[Value],
        declared: Sequence[tuple[str, tuple[int, ...]]],
        attributes: Mapping[str, object],
    ) -> list[Value]:
        """An operation that no operation set has, with a body and no port map; the values of its outputs."""
        data = "".join(f' {key}="{value}"' for key, value in attributes.items())
        return self._with_bodies(type, name, sources, declared, [f"<data{data}/>", body.text("body")], "extension")

    def _seed(
        self,
        type: str,
        name: str,
        body: Graph,
        control: Sequence[Value],
        inputs: Sequence[Entry],
        outputs: Sequence[Entry],
        special: Sequence[str],
    ) -> list[Value]:
        sources = list(dict.fromkeys([*control, *(entry.outer for entry in inputs if entry.outer is not None)]))
        parts = ["<port_map>"]
        parts += [entry.text("input", sources.index(entry.outer)) for entry in inputs if entry.outer is not None]
        parts += [entry.text("output", len(sources) + index) for index, entry in enumerate(outputs)]
        parts += [*special, "</port_map>", "<back_edges>"]
        carried = [(entry.back.layer, entry.inner.layer) for entry in inputs if entry.back is not None]
        parts += [f'<edge from-layer="{begin}" to-layer="{end}"/>' for begin, end in carried]
        parts += ["</back_edges>", body.text("body")]
        declared = [(entry.inner.type, _outer_dims(entry)) for entry in outputs]
        return self._with_bodies(type, name, sources, declared, parts, "opset5" if type == "Loop" else "opset1")

    def _with_bodies(
        self,
        type: str,
        name: str,
        sources: Sequence[Value],
        declared: Sequence[tuple[str, tuple[int, ...]]],
        parts: Sequence[str],
        version: str,
    ) -> list[Value]:
        identity, first = len(self.layers), len(sources)
        ports = [texts.port(first + index, type, dims) for index, (type, dims) in enumerate(declared)]
        self.layers.append(texts.layer(identity, name, type, "", self._connected(sources), ports, parts, version))
        return [Value(identity, first + index, type, dims) for index, (type, dims) in enumerate(declared)]

    def _connected(self, inputs: Sequence[Value]) -> list[str]:
        """The input ports of the layer that comes next, each with its edge."""
        identity = len(self.layers)
        self.edges += [f"{value.layer}:{value.port} {identity}:{index}" for index, value in enumerate(inputs)]
        return [texts.port(index, value.type, value.dims) for index, value in enumerate(inputs)]

    def _added(self, text: str, type: str, dims: Sequence[int]) -> Value:
        self.layers.append(text)
        return Value(len(self.layers) - 1, 0, type, tuple(dims))

    def text(self, tag: str) -> str:
        return texts.graph(tag, self.layers, texts.edges(*self.edges))

    def write(self, folder: Path) -> Path:
        """The .xml and the .bin in the folder; the path of the former."""
        return texts.write(folder, texts.net(self.layers, texts.edges(*self.edges)), self.blob.content)

    def read(self, folder: Path) -> Model:
        return stepper.read_model(self.write(folder))


def _outer_dims(entry: Entry) -> tuple[int, ...]:
    if entry.cut is None:
        return entry.inner.dims
    dims = list(entry.inner.dims or (1,))
    if -len(dims) <= entry.cut["axis"] < len(dims):
        dims[entry.cut["axis"]] = -1
    return tuple(dims)
