"""From the XML to the model: `read(path)`.

Steps: take plain layers, ports and edges from the bytes (plain.py) and parse the rest (xml.py); the net's own
graph, then every body on a work list (never by recursion, so that no depth of nesting can overflow); per graph its
layers, then its edges; ports, port maps and back edges (connections.py); at the end what only the whole can show
(checks.py).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from functools import lru_cache, partial
from pathlib import Path
from types import MappingProxyType
from typing import Final
from weakref import WeakValueDictionary

from msgspec import Struct

from stepper import operation_types
from stepper.collector import collector_off
from stepper.errors import ModelError
from stepper.ir import checks, lowering, xml
from stepper.ir.connections import read_body, read_edges, read_ports, sources_of
from stepper.ir.constants import check_constant, check_parameter
from stepper.ir.model import BODIES, NO_ATTRIBUTES, Body, BodyRole, Edge, Graph, Layer, Model, Port, new
from stepper.ir.plain import PlainLists
from stepper.ir.weights import Weights
from stepper.ir.xml import (
    FIRST_DRAFT_TAGS,
    NOT_AN_IR,
    READABLE_VERSIONS,
    Element,
    Faults,
    FilePlace,
    each,
    tolerated,
)

_LAYER_TAGS: Final = frozenset({"layer", FIRST_DRAFT_TAGS["layer"]})
_TENSORS: Final = frozenset({"Constant", "Parameter"})
_NO_PORTS: Final[tuple[Port, ...]] = ()
_NO_GRAPH: Final = Graph((), (), MappingProxyType({}), 0)
"""Body of a layer whose body is missing, where that fault is kept."""


def read(path: str | Path, name: str | None = None) -> Model:
    """Read an IR: `path` names the .xml, the .bin stands beside it under the same name (or is missing).

    `name` is what the model is called, where that is not what the file says.

    Raises ModelError with file, line, layer and what was expected, for everything that is wrong in the files.
    """
    model = _read(Path(path), name, None)
    assert isinstance(model.reopen, ModelFile)
    _alive[model.reopen] = model
    return model


def read_all_faults(path: str | Path) -> tuple[Model, tuple[ModelError, ...]]:
    """Return what can be read of an IR, and all that is wrong in it, in the order of the file.

    What has a fault (an entry of a port map, an edge, a port) is left out of the model, which may thus not be one that
    can be compiled. Raises ModelError where nothing can be read.
    """
    faults: list[ModelError] = []
    model = _read(Path(path), None, faults)
    lines = {id(fault): 0 if fault.place is None else fault.place.line for fault in faults}
    return model, tuple(sorted(faults, key=lambda fault: lines[id(fault)]))


def _read(path: Path, name: str | None, faults: Faults) -> Model:
    with collector_off():
        if path.suffix == ".bin":
            raise ModelError(f"{path}: is a .bin file; name the .xml beside it")
        plain = PlainLists()
        root = xml.parse(path, plain)
        place = FilePlace(path)
        version = _net_version(place, root)
        file = ModelFile.of(path, name)
        weights = _open_weights(path)
        reader = _GraphReader(place, plain, weights, faults)
        graph = reader.read(root)
        if not graph.layers:
            place.at(root).fail("the net has no layers", NOT_AN_IR)
        model = Model(path, root.get("name", "") if name is None else name, version, graph, weights, file)
        if reader.has_extensions:
            with tolerated(faults):
                model = lowering.lowered(model)
        checks.check(model, faults)
    return model


class ModelFile(Struct, frozen=True):
    """The files of a model as they were when it was read: size in bytes and time of change of each.

    Called, it is the model again: the one that is there already, else it is read. So a pool of processes that is sent a
    model with each task reads it once in each process. The last few models that came so are kept.
    """

    path: str
    xml: tuple[int, int]
    bin: tuple[int, int] | None
    name: str | None = None

    @classmethod
    def of(cls, path: Path, name: str | None = None) -> ModelFile:
        """Return the files as they are now, of a model that is called so."""
        xml = _stamp(path)
        assert xml is not None, "it has been read"
        return cls(str(path.absolute()), xml, _stamp(path.with_suffix(".bin")), name)

    def __call__(self) -> Model:
        """Return the model. ModelError where its files are no longer what they were."""
        model = _alive.get(self)
        if model is None:
            path = Path(self.path)
            if _stamp(path) is None:
                raise ModelError(f"{path}: is no longer there, and the model that was pickled is read from it")
            if ModelFile.of(path, self.name) != self:
                raise ModelError(f"{path}: has changed since the model was read that was pickled")
            model = read(path, self.name)
        _came.append(model)
        return model


_alive: Final[WeakValueDictionary[ModelFile, Model]] = WeakValueDictionary()
_came: Final[deque[Model]] = deque(maxlen=4)


def _stamp(path: Path) -> tuple[int, int] | None:
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_size, status.st_mtime_ns


def _net_version(place: FilePlace, root: Element) -> int:
    if root.tag != "net":
        place.at(root).fail(
            f"the root element is <{root.tag!s}>, expected <net>: this is not an OpenVINO IR", NOT_AN_IR
        )
    version = xml.integer(place, root, "version")
    if version not in READABLE_VERSIONS:
        expected = " or ".join(map(str, READABLE_VERSIONS))
        place.at(root).fail(f"the net's version is {version}, expected {expected}", NOT_AN_IR)
    return version


def _open_weights(path: Path) -> Weights | None:
    weights = path.with_suffix(".bin")
    return Weights(weights) if weights.exists() else None


_Host = tuple[int, Element, FilePlace]
"""A layer with bodies: its index in the graph, its element, and where it is."""


class _GraphReader:
    """Reads one graph and those nested in it: first the layers of all, from a work list; then the graphs are built,
    inner ones first."""

    def __init__(self, place: FilePlace, plain: PlainLists, weights: Weights | None, faults: Faults) -> None:
        self._place = place
        self._plain = plain
        self._weights = weights
        self._faults = faults
        self.has_extensions = False

    def read(self, root: Element) -> Graph:
        """Return the graph of `root` with all bodies in it."""
        waiting, opened = [root], []
        while waiting:
            element, hosts = waiting.pop(), list[_Host]()
            layers = self._layers(element, hosts, in_body=element is not root)
            opened.append((element, layers, hosts))
            for index, host, place in hosts:
                waiting += each(
                    self._faults, partial(_body, place, host), (tag for tag, _ in _body_tags(layers[index]))
                )
        graphs: dict[Element, Graph] = {}
        for element, layers, hosts in reversed(opened):
            for index, host, place in hosts:
                layers[index] = layers[index]._replace(bodies=self._bodies(place, host, layers[index], graphs))
            graphs[element] = self._graph(element, tuple(layers))
        return graphs[root]

    def _layers(self, element: Element, hosts: list[_Host], *, in_body: bool) -> list[Layer]:
        """Return the layers of one graph, those with bodies still without them; these are added to `hosts`."""
        parent = xml.child(element, "layers")
        if parent is None:
            return []
        layers = self._plain_layers(parent.text, in_body=in_body)
        for child in parent:
            if child.tag in _LAYER_TAGS:
                self._add(layers, child, hosts, in_body=in_body)
            layers += self._plain_layers(child.tail, in_body=in_body)
        return layers

    def _plain_layers(self, text: str | None, *, in_body: bool) -> list[Layer]:
        """Return the layers that a text stands for; they have no bodies, and their operations are known."""
        layers = self._plain.layers(text)
        for layer in layers:
            if layer.type in _TENSORS:
                place = new(FilePlace, (self._place.path, layer.line, (layer.id, layer.name, layer.type), None))
                self._check_tensor(place, layer, in_body=in_body)
        return layers

    def _add(self, layers: list[Layer], element: Element, hosts: list[_Host], *, in_body: bool) -> None:
        try:
            layer, place = self._layer(element, in_body=in_body)
        except ModelError as error:
            self._keep(error)
            return
        if layer.type in BODIES:
            hosts.append((len(layers), element, place))
        elif layer.definition is None:
            self.has_extensions = True
            if _body_tags(layer):
                hosts.append((len(layers), element, place))
        layers.append(layer)

    def _keep(self, fault: ModelError) -> None:
        """Go on after a fault where they are kept; `tolerated` takes too long for each layer."""
        if self._faults is None:
            raise fault
        self._faults.append(fault)

    def _bodies(
        self, place: FilePlace, host: Element, layer: Layer, graphs: Mapping[Element, Graph]
    ) -> tuple[Body, ...]:
        bodies = []
        for tag, port_map in _body_tags(layer):
            role: BodyRole = tag  # type: ignore[assignment]  # the table holds no others
            element = host.find(tag)
            graph = _NO_GRAPH if element is None else graphs[element]
            bodies.append(read_body(place, host, layer.inputs, role, port_map, graph, self._faults))
        return tuple(bodies)

    def _graph(self, element: Element, layers: tuple[Layer, ...]) -> Graph:
        edges_element = element.find("edges")
        edges: tuple[Edge, ...] = (
            () if edges_element is None else read_edges(self._place, edges_element, self._plain.edges, self._faults)
        )
        by_id = self._unique(layers)
        return Graph(layers, edges, sources_of(self._place, by_id, edges, self._faults), xml.line_of(element))

    def _unique(self, layers: tuple[Layer, ...]) -> dict[int, Layer]:
        by_id: dict[int, Layer] = {}
        for layer in layers:
            if (first := by_id.setdefault(layer.id, layer)) is not layer:
                message = f"the id {layer.id} is taken already by {first} on line {first.line}"
                with tolerated(self._faults):
                    FilePlace(self._place.path, layer.line, str(layer)).fail(message, "duplicate-layer-id")
        return by_id

    def _layer(self, element: Element, *, in_body: bool) -> tuple[Layer, FilePlace]:
        place = self._place
        identity = xml.integer(place, element, "id")
        name, written_type = element.get("name"), element.get("type")
        if name is None or written_type is None:
            place = place.at(element, f"layer {identity}")
            name, written_type = xml.text(place, element, "name"), xml.text(place, element, "type")
        type = operation_types.canonical_type(written_type)
        line = xml.line_of(element)
        place = new(FilePlace, (place.path, line, (identity, name, type)))
        version = element.get("version")
        if version is None:
            # Only the first draft shows operations without one.
            version = "opset5" if element.tag != "layer" else xml.text(place, element, "version")
        data, inputs, outputs = NO_ATTRIBUTES, _NO_PORTS, _NO_PORTS
        for child in element:
            match child.tag:
                case "data":
                    data = MappingProxyType(dict(child.items()))
                case "input":
                    inputs = read_ports(place, child, self._plain.ports, self._faults, is_output=False)
                case "output":
                    outputs = read_ports(place, child, self._plain.ports, self._faults, is_output=True)
        definition = _known_definition(type, version)
        if definition is None:
            with tolerated(self._faults):
                definition = _unusual_definition(place, type, version)
        parts = (identity, name, type, version, definition, data, inputs, outputs, (), line, None)
        layer: Layer = new(Layer, parts)
        if type in _TENSORS:
            self._check_tensor(place, layer, in_body=in_body)
        return layer, place

    def _check_tensor(self, place: FilePlace, layer: Layer, *, in_body: bool) -> None:
        try:
            if layer.type == "Constant":
                check_constant(place, layer, self._weights)
            else:
                check_parameter(place, layer, in_body=in_body)
        except ModelError as error:
            self._keep(error)


def _body_tags(layer: Layer) -> tuple[tuple[str, str], ...]:
    """Return the elements that hold the bodies of a layer, each with that of its port map."""
    found = lowering.find(layer.type) if layer.definition is None else None
    return BODIES.get(layer.type, ()) if found is None or not found.has_body else (("body", "port_map"),)


def _body(place: FilePlace, host: Element, tag: str) -> Element:
    found = host.find(tag)
    if found is None:
        place.fail(f"has no <{tag}>", "body-missing")
    return found


@lru_cache(maxsize=1024)
def _known_definition(type: str, version: str) -> int | None:
    """Return the opset of the definition meant."""
    opset = operation_types.opset_number(version)
    return None if opset is None else operation_types.definition(type, opset)


def _unusual_definition(place: FilePlace, type: str, version: str) -> int | None:
    """Return the definition of an extension's operation that has a known name, None for one that has not.

    An operation set newer than all that are known may have any operations; they are taken as an extension's.
    ModelError for what no operation set has.
    """
    opset = operation_types.opset_number(version)
    if opset is None:
        return operation_types.definition(type, 1 << 16) if type in operation_types.DEFINITIONS else None
    versions = operation_types.DEFINITIONS.get(type)
    if versions is None and opset > operation_types.NEWEST_OPSET:
        return None
    if versions is None:
        similar = operation_types.similar_types(type)
        hint = f"; did you mean {' or '.join(similar)}?" if similar else ""
        place.fail(f"no operation set has an operation of type '{type}'{hint}", "unknown-operation")
    return place.fail(f"{version} has no {type}; it begins with opset{versions[0]}", "unknown-operation")
