"""From the XML to the model: `read(path)`.

Steps: take plain layers, ports and edges from the bytes (plain.py) and parse the rest (xml.py); the net's own
graph, then every body on a work list (never by recursion, so that no depth of nesting can overflow); per graph its
layers, then its edges; ports, port maps and back edges (connections.py); at the end what only the whole can show
(checks.py).
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache, partial
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final, NoReturn, TypeAlias
from weakref import WeakKeyDictionary, WeakValueDictionary

from msgspec.structs import replace

from stepper import element_types, operation_types
from stepper.collector import collector_off
from stepper.element_types import Shape
from stepper.errors import ArgumentTypeError, ModelError
from stepper.ir import lowering, xml
from stepper.ir.constants import check_constant, check_parameter
from stepper.ir.model import (
    BODIES,
    NO_ATTRIBUTES,
    BackEdge,
    Body,
    BodyRole,
    Edge,
    Graph,
    IgnoredOutput,
    InputMapping,
    Layer,
    Model,
    OutputMapping,
    Port,
    PortSources,
    Slicing,
    Source,
    new,
)
from stepper.ir.weights import Weights
from stepper.ir.xml import (
    FIRST_DRAFT_ATTRIBUTES,
    FIRST_DRAFT_TAGS,
    NOT_AN_IR,
    READABLE_VERSIONS,
    Element,
    Faults,
    FilePlace,
    PlainLists,
    PlainPort,
    each,
    ports_at,
    split_names,
    tolerated,
)
from stepper.records import Record

# Connections of layers: ports, edges, and the port maps and back edges of TensorIterator, Loop and If.
#
# Ports and edges in plain form come from plain.py, all others from the tree; names may be those of the first draft.

UNKNOWN_OUTER_PORT = "unknown-outer-port"
UNKNOWN_BODY_LAYER = "unknown-body-layer"
_MALFORMED_PORT = "malformed-port"


def read_body(
    place: FilePlace,
    layer: Element,
    ports: Iterable[Port],
    role: BodyRole,
    port_map_tag: str,
    graph: Graph,
    faults: Faults = None,
) -> Body:
    """Return one body of the outer layer with its map, every entry checked against the body's Parameters and Results.

    `ports` are the inputs of the layer. Where `faults` are kept, entries and back edges that have one are left out.
    """
    port_map = layer.find(port_map_tag)
    entries: list[Element] = [] if port_map is None else [entry for entry in port_map if isinstance(entry.tag, str)]
    first_draft = _is_first_draft(layer, role, entries)
    input_ids = [port.id for port in ports]
    of_inputs, of_outputs = ([entry for entry in entries if entry.tag == tag] for tag in ("input", "output"))
    inputs = each(faults, lambda entry: _input(place, entry, graph, input_ids, first_draft=first_draft), of_inputs)
    read = each(faults, lambda entry: _output(place, entry, graph), of_outputs)
    outputs, ignored = _numbered(read)
    body = layer.find(role)
    return Body(
        role=role,
        graph=graph,
        inputs=tuple(inputs),
        outputs=tuple(outputs),
        back_edges=_back_edges(place, layer, graph, faults) if role == "body" else (),
        first_draft=first_draft,
        line=xml.line_of(layer if body is None else body),
        ignored=tuple(ignored),
        unread_inputs=len(of_inputs) - len(inputs),
        unread_outputs=len(of_outputs) - len(read),
    )


def _is_first_draft(layer: Element, role: BodyRole, entries: Iterable[Element]) -> bool:
    if layer.find(f"{role}/{FIRST_DRAFT_TAGS['layers']}") is not None or layer.tag == FIRST_DRAFT_TAGS["layer"]:
        return True
    marks = {"condition", *FIRST_DRAFT_ATTRIBUTES.values()}
    return any(marks & set(entry.attrib) for entry in (*entries, *layer.findall("back_edges/edge")))


def _input(place: FilePlace, entry: Element, graph: Graph, port_ids: list[int], *, first_draft: bool) -> InputMapping:
    return InputMapping(
        input=_external_input(place, entry, graph, port_ids, first_draft=first_draft),
        parameter=_internal(place, entry, graph, "Parameter").id,
        slicing=_slicing(place, entry),
        purpose=entry.get("purpose"),
        condition=entry.get("condition", "").lower() in ("true", "1"),
        line=xml.line_of(entry),
    )


def _external_input(
    place: FilePlace, entry: Element, graph: Graph, port_ids: list[int], *, first_draft: bool
) -> int | None:
    """Return the index of the layer's input: what external_port_id is (measured), in the first draft an id."""
    number = xml.integer(place, entry, "external_port_id")
    if number < 0:
        return None
    known = number in port_ids if first_draft else number < len(port_ids)
    if not known:
        fed = _internal(place, entry, graph, "Parameter").name
        place.at(entry).fail(
            f"external_port_id {number}, from which '{fed}' is fed, is not an input of this layer, which has "
            f"{len(port_ids)}",
            UNKNOWN_OUTER_PORT,
        )
    return port_ids.index(number) if first_draft else number


def _output(place: FilePlace, entry: Element, graph: Graph) -> OutputMapping:
    number = xml.integer(place, entry, "external_port_id")
    return OutputMapping(
        output=number if number >= 0 else None,
        result=_internal(place, entry, graph, "Result").id,
        slicing=_slicing(place, entry),
        purpose=entry.get("purpose"),
        line=xml.line_of(entry),
    )


def _slicing(place: FilePlace, entry: Element) -> Slicing | None:
    """Return the slicing of an entry, None for one without an axis (port_map); the rest has defaults."""
    axis, start, end, stride, part_size = (
        xml.optional_integer(place, entry, name) for name in ("axis", "start", "end", "stride", "part_size")
    )
    if axis is None:
        return None
    return Slicing(
        axis, 0 if start is None else start, -1 if end is None else end, 1 if stride is None else stride, part_size
    )


def _internal(place: FilePlace, entry: Element, graph: Graph, type: str) -> Layer:
    """Return the body's Parameter or Result that the entry maps to."""
    identity = xml.integer(place, entry, "internal_layer_id")
    layer = graph.by_id.get(identity)
    if layer is None:
        place.at(entry).fail(
            f"the body has no layer {identity}, to which this <{entry.tag!s}> of the port map leads", UNKNOWN_BODY_LAYER
        )
    if layer.type != type:
        place.at(entry).fail(
            f"this <{entry.tag!s}> of the port map leads to {layer}, expected a {type}", UNKNOWN_BODY_LAYER
        )
    return layer


def _numbered(outputs: list[OutputMapping]) -> tuple[list[OutputMapping], list[IgnoredOutput]]:
    """external_port_id in an output orders, it does not name: the k-th lowest is output k (TensorIterator-1, port_map).

    Of two entries with one number the first counts, the others come as a list of their own; the order of the file is
    kept.
    """
    first: dict[int, OutputMapping] = {}
    for entry in outputs:
        if entry.output is not None:
            first.setdefault(entry.output, entry)
    index = {number: k for k, number in enumerate(sorted(first))}
    numbered = [
        entry if entry.output is None else entry._replace(output=index[entry.output])
        for entry in outputs
        if entry.output is None or first[entry.output] is entry
    ]
    return numbered, [
        IgnoredOutput(entry.result, first[entry.output].result, entry.output, entry.line)
        for entry in outputs
        if entry.output is not None and first[entry.output] is not entry
    ]


def _back_edges(place: FilePlace, layer: Element, graph: Graph, faults: Faults) -> tuple[BackEdge, ...]:
    def back_edge(edge: Element) -> BackEdge:
        result = xml.integer(place, edge, "from-layer")
        parameter = xml.integer(place, edge, "to-layer")
        source = graph.by_id.get(result)
        if source is None or source.type != "Result":
            what = f"{source}" if source else f"the body has no layer {result}"
            if target := graph.by_id.get(parameter):
                what += f" (it leads to {target})"
            place.at(edge).fail(
                f"a back edge begins at a Result of the body, from-layer is {result}: {what}",
                "back-edge-from-no-result",
            )
        return BackEdge(result, parameter, xml.line_of(edge))

    return tuple(each(faults, back_edge, layer.findall("back_edges/edge")))


_DIM_FAULTS = {
    TypeError: "empty",
    ValueError: "no integer",
    OverflowError: "out of range, expected -1 or more",
}


def read_ports(
    place: FilePlace,
    side: Element,
    plain: Mapping[str, tuple[PlainPort, ...]],
    faults: Faults = None,
    *,
    is_output: bool,
) -> tuple[Port, ...]:
    """Return the ports of an `<input>` or `<output>`, which may be among the plain ones. ModelError for faults."""
    if listed := plain.get(mark := side.text or ""):
        return ports_at(listed, xml.line_before(side, mark))
    ports = [element for element in side if element.tag == "port"]
    return tuple(each(faults, lambda element: _port(place, element, is_output=is_output), ports))


def _port(place: FilePlace, element: Element, *, is_output: bool) -> Port:
    written, names = element.get("precision"), element.get("names") if is_output else None
    element_type = None if written is None else element_types.by_precision(written)
    if element_type is None:
        # Raise ModelError unless a missing or unknown element type is allowed here.
        if written is None and is_output:
            place.at(element).fail("an output port has no attribute 'precision', which is mandatory", _MALFORMED_PORT)
        if written is not None and written.lower() not in element_types.UNKNOWN_NAMES:
            place.at(element).fail(
                f"the precision '{written}' is not an element type (FP32, I64, BOOL, ...)", _MALFORMED_PORT
            )
    identity = xml.integer(place, element, "id")
    if not 0 <= identity < 10**9:
        place.at(element).fail(
            f"the id of a port is '{identity}', expected a small non-negative integer", _MALFORMED_PORT
        )
    port_names = split_names(names) if names else ()
    return Port(identity, element_type, _dims(place, element, identity), port_names, xml.line_of(element))


def _dims(place: FilePlace, element: Element, identity: int) -> Shape:
    texts = [dim.text for dim in element if dim.tag == "dim"]
    try:
        dims = tuple([int(text) for text in texts])  # type: ignore[arg-type]  # TypeError for an empty element
        if min(dims, default=0) < -1 or max(dims, default=0) >= 2**63:
            raise OverflowError
    except (TypeError, ValueError, OverflowError) as error:
        place.at(element).fail(f"a <dim> of port {identity} is {_DIM_FAULTS[type(error)]}", _MALFORMED_PORT)
    return dims


_ENDS = ("from-layer", "from-port", "to-layer", "to-port")


def read_edges(
    place: FilePlace, element: Element, plain: dict[str, Sequence[int]], faults: Faults = None
) -> tuple[Edge, ...]:
    """Return every `<edge>` as written, under the current names or the names of the first draft.

    If all edges are plain, their numbers are removed from `plain`: to free that many numbers takes long when they have
    left the cache.
    """
    if listed := plain.pop(mark := element.text or "", None):
        numbers = iter(listed)
        del listed
        lined = enumerate(zip(numbers, numbers, numbers, numbers, strict=True), xml.line_before(element, mark) + 1)
        return tuple(
            [
                new(Edge, (producer, output, consumer, input, line))
                for line, (producer, output, consumer, input) in lined
            ]
        )

    def written(edge: Element) -> Edge:
        get = edge.get
        ends: Any = get("from-layer"), get("from-port"), get("to-layer"), get("to-port")
        try:
            producer, output, consumer, input = map(int, ends)
        except (TypeError, ValueError):
            producer, output, consumer, input = (xml.integer(place, edge, name) for name in _ENDS)
        edge_: Edge = new(Edge, (producer, output, consumer, input, xml.line_of(edge)))
        return edge_

    return tuple(each(faults, written, element.iterchildren("edge")))


def sources_of(
    place: FilePlace, layers: Mapping[int, Layer], edges: Sequence[Edge], faults: Faults = None
) -> Mapping[int, PortSources]:
    """Return for each layer (by id) where each of its inputs comes from; None for one that no edge reaches.

    Raises ModelError for an edge from or to something that does not exist, and for two edges into one port.
    """
    inputs: dict[int, list[Source | None]] = {key: [None] * len(layer.inputs) for key, layer in layers.items()}
    rest, is_done = iter(edges), False
    while not is_done:  # again after each fault that is kept
        with tolerated(faults):
            _connect(place, layers, inputs, rest)
            is_done = True
    return MappingProxyType({key: tuple(found) for key, found in inputs.items()})


def _connect(
    place: FilePlace, layers: Mapping[int, Layer], inputs: dict[int, list[Source | None]], edges: Iterator[Edge]
) -> None:
    for edge in edges:
        from_layer, from_port, to_layer, to_port, _line = edge
        producer, consumer = layers.get(from_layer), layers.get(to_layer)
        if producer is None or consumer is None:
            missing = f"this graph has no layer {from_layer if producer is None else to_layer}"
            other = consumer if producer is None else producer
            _fail(place, edge, missing if other is None else f"{missing}; the other end of the edge is {other}")
        output, index = _index(producer.outputs, from_port), _index(consumer.inputs, to_port)
        if output is None:
            ports = _ids(producer.outputs)
            _fail(place, edge, f"{producer} has no output port {from_port}, only {ports}; the edge leads to {consumer}")
        if index is None:
            ports = _ids(consumer.inputs)
            _fail(place, edge, f"{consumer} has no input port {to_port}, only {ports}; the edge comes from {producer}")
        found = inputs[to_layer]
        if found[index] is not None:
            _fail(place, edge, f"a second edge into input port {to_port} of {consumer}")
        found[index] = new(Source, (from_layer, output))


def _fail(place: FilePlace, edge: Edge, message: str) -> NoReturn:
    where = f"edge {edge.from_layer}:{edge.from_port} -> {edge.to_layer}:{edge.to_port}"
    FilePlace(place.path, edge.line, where).fail(message, "malformed-edge")


def _index(ports: Sequence[Port], identity: int) -> int | None:
    for index, port in enumerate(ports):
        if port.id == identity:
            return index
    return None


def _ids(ports: Sequence[Port]) -> str:
    return ", ".join(str(port.id) for port in ports) or "none"


# Checks of a whole graph: inputs that nothing feeds, Results and bodies out of order, cycles.

_SOURCES = frozenset({"Constant", "Parameter", "ReadValue"})
"""Operations that may have no input."""


def check(model: Model, faults: Faults = None) -> None:
    """Raise ModelError for the first fault in any graph of the model; where they are kept, find those of each layer."""
    for path, graph in model.graphs():
        where = "".join(f"{layer} > " for layer in path)
        for layer in graph.layers:
            if layer.bodies or layer.type == "Result" or None in graph.sources[layer.id] or _lacks_inputs(layer):
                with tolerated(faults):
                    _check_inputs(model, graph, layer, where)
                with tolerated(faults):
                    _check_outputs(model, layer, where, is_strict=faults is None)
        with tolerated(faults):
            _check_cycles(model, graph, where)


def _refuse(model: Model, layer: Layer, where: str, message: str, rule: str) -> None:
    known = layer.id, layer.name, layer.type
    FilePlace(model.path, layer.line, f"{where}{layer}", known).fail(message, rule)


def _lacks_inputs(layer: Layer) -> bool:
    return not layer.inputs and layer.type not in _SOURCES and layer.definition is not None and not layer.bodies


def _check_inputs(model: Model, graph: Graph, layer: Layer, where: str) -> None:
    may_be_absent = layer.type == "Loop" and layer.bodies[0].first_draft
    if layer.type == "Result" and len(layer.inputs) != 1:
        _refuse(model, layer, where, f"has {len(layer.inputs)} input ports, expected one", "malformed-result")
    if layer.type == "Result" and len(layer.outputs) > 1:
        _refuse(model, layer, where, f"has {len(layer.outputs)} output ports, expected one", "malformed-result")
    if _lacks_inputs(layer):
        _refuse(model, layer, where, "has no input ports, expected one or more", "input-without-edge")
    for port, source in zip(layer.inputs, graph.sources[layer.id], strict=False):  # of two with one id they may differ
        if source is None and not may_be_absent:
            _refuse(model, layer, where, f"no edge reaches its input port {port.id}", "input-without-edge")
    if layer.type == "Loop" and len(layer.inputs) < 2 and not may_be_absent:
        message = "has no inputs for trip count and execution condition, which are mandatory"
        _refuse(model, layer, where, message, "control-input-missing")
    if layer.type == "If" and not layer.inputs:
        _refuse(model, layer, where, "has no input for its condition", "control-input-missing")


def _check_outputs(model: Model, layer: Layer, where: str, *, is_strict: bool) -> None:
    """Check that each body gives exactly the outputs of the layer.

    If faults are kept, a body may lack an output for each entry that was left out or that repeats another number. These
    entries have their own findings.
    """
    for body in layer.bodies:
        given = {entry.output for entry in body.outputs} - {None}
        missing = set(range(len(layer.outputs))) - given
        if len(missing) > (0 if is_strict else body.unread_outputs + len(body.ignored)):
            ids = ", ".join(str(layer.outputs[index].id) for index in sorted(missing))
            text = f"the port map of its <{body.role}> gives nothing to output port {ids}"
            _refuse(model, layer, where, text, "output-without-entry")
        if len(given) > len(layer.outputs):
            text = f"the port map of its <{body.role}> has {len(given)} outputs, the layer {len(layer.outputs)}"
            _refuse(model, layer, where, text, "entry-without-output")


def _check_cycles(model: Model, graph: Graph, where: str) -> None:
    """Peel off, layer by layer, what depends on nothing that is left; what cannot be peeled off is a cycle."""
    if _is_in_order(graph):
        return
    waiting = {key: sum(source is not None for source in sources) for key, sources in graph.sources.items()}
    consumers: dict[int, list[int]] = {key: [] for key in waiting}
    for key, sources in graph.sources.items():
        for source in sources:
            if source is not None:
                consumers[source.layer].append(key)
    ready = [key for key, count in waiting.items() if count == 0]
    while ready:
        for consumer in consumers[ready.pop()]:
            waiting[consumer] -= 1
            if waiting[consumer] == 0:
                ready.append(consumer)
    left = {key for key, count in waiting.items() if count}
    if left:
        ring = _ring(graph.sources, left)
        names = " -> ".join(f"{key} '{graph.by_id[key].name}'" for key in ring)
        _refuse(model, graph.by_id[ring[0]], where, f"its value depends on itself: {names}", "cycle")


def _is_in_order(graph: Graph) -> bool:
    """Return True if each layer stands after its sources, as most files have it: then there is no cycle."""
    before: set[int] = set()
    for key, sources in graph.sources.items():
        for source in sources:
            if source is not None and source.layer not in before:
                return False
        before.add(key)
    return True


def _ring(sources: Mapping[int, PortSources], left: set[int]) -> list[int]:
    """Return a cycle among layers with remaining producers: walk back until a layer repeats."""
    key = min(left)
    walk: dict[int, None] = {}
    while key not in walk:
        walk[key] = None
        key = next(source.layer for source in sources[key] if source is not None and source.layer in left)
    keys = list(walk)
    return [*reversed(keys[keys.index(key) :]), keys[-1]]


_LAYER_TAGS = frozenset({"layer", FIRST_DRAFT_TAGS["layer"]})
_TENSORS = frozenset({"Constant", "Parameter"})
_NO_PORTS: Final[tuple[Port, ...]] = ()
_NO_GRAPH = Graph((), (), MappingProxyType({}), 0)
"""Body of a layer whose body is missing, where that fault is kept."""


def read(path: str | Path, name: str | None = None) -> Model:
    """Read an IR: `path` names the .xml, the .bin stands beside it under the same name (or is missing).

    `name` replaces the name of the model in the file.

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
        check(model, faults)
    return model


class ModelFile(Record):
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
        again = "; convert the original model again" if version in range(1, min(READABLE_VERSIONS)) else ""
        place.at(root).fail(f"the net's version is {version}, expected {expected}{again}", NOT_AN_IR)
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
    """Return the tags of the elements that hold a layer's bodies, each with its port map's tag."""
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


# A model where one is expected: the model itself, or the path of one, of any format that can be opened.
#
# This package reads the .xml of an IR. For everything else there is an opener, which the public names of the package
# set; nothing here knows of a runtime.

ModelSource: TypeAlias = Model | str | Path | Any
"""A model, the path of one, or a live `openvino.Model`."""

_opener: list[Callable[[Any], Model]] = []


def set_opener(opener: Callable[[Any], Model]) -> None:
    """Set the opener of what is not an IR: files of other formats, and models of other libraries."""
    _opener[:] = [opener]


def opened(source: ModelSource) -> Model:
    """Return the model that is meant. ModelError for a file that cannot be read, ArgumentTypeError for no model."""
    if isinstance(source, Model):
        return source
    if isinstance(source, os.PathLike):
        source = os.fspath(source)
    if isinstance(source, str) and (not _opener or Path(source).suffix.lower() == ".xml"):
        return read(source)
    if not _opener or source is None:
        raise ArgumentTypeError(
            f"{type(source).__name__} is not a model: name a file, or give a stepper or OpenVINO model"
        )
    return _opener[0](source)


def open_sequences(model: ModelSource) -> Model:
    """Return the model with its recurrent sequences as loops; the model itself where it has none.

    Every LSTMSequence, GRUSequence and RNNSequence, at any depth, becomes the TensorIterator over its cell that it is,
    so that a run can stop in it. A loop has id, name and line of the sequence that it was; of the two of a
    bidirectional one NAME/forward has the id. A sequence that is not well-formed stays, for `compile_model` to say
    what is wrong with it.
    """
    model = opened(model)
    found = lowering.lowered(model, on_request=True)
    if found is model or model.reopen is None:
        return found
    return replace(found, reopen=_Opened(model.reopen))


class _Opened(Record):
    """A model with its sequences opened, to be had in another process (see `Model.reopen`)."""

    reopen: Callable[[], Model]

    def __call__(self) -> Model:
        model = self.reopen()
        if model not in _already:
            _already[model] = open_sequences(model)
        return _already[model]


_already: Final[WeakKeyDictionary[Model, Model]] = WeakKeyDictionary()
