"""From the XML to the model: `read(path)`.

Steps: parse (xml.py); the net's own graph, then every body on a work list (never by recursion, so that no depth of
nesting can overflow); per graph its layers, then its edges; port maps and back edges (port_maps.py); at the end what
only the whole can show (checks.py).
"""

from __future__ import annotations

import gc
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from types import MappingProxyType
from typing import Final

from stepper import element_types, operation_types
from stepper.errors import ModelError
from stepper.ir import checks, xml
from stepper.ir.constants import check_constant, check_parameter
from stepper.ir.dialects import BODIES, FIRST_DRAFT_TAGS, READABLE_VERSIONS
from stepper.ir.edges import read_edges, sources_of
from stepper.ir.model import Body, BodyRole, Edge, Graph, Layer, Model, Port, new
from stepper.ir.port_maps import read_body
from stepper.ir.weights import Weights
from stepper.ir.xml import Element, Place

_EMPTY: Final[Mapping[str, str]] = MappingProxyType({})
_NO_PORTS: Final[tuple[Port, ...]] = ()


def read(path: str | Path) -> Model:
    """Read an IR: `path` names the .xml, the .bin stands beside it under the same name (or is missing).

    Raises ModelError with file, line, layer and what was expected, for everything that is wrong in the files.
    """
    path = Path(path)
    with _no_garbage_collection():
        if path.suffix == ".bin":
            raise ModelError(f"{path}: is a .bin file; name the .xml beside it")
        root = xml.parse(path)
        place = Place(path)
        version = _net_version(place, root)
        weights = _open_weights(path)
        graph = _GraphReader(place, weights).read(root)
        if not graph.layers:
            place.at(root).fail("the net has no layers")
        model = Model(path, root.get("name", ""), version, graph, weights)
        checks.check(model)
    return model


@contextmanager
def _no_garbage_collection() -> Iterator[None]:
    """Nothing that a reader makes is garbage: searching it again and again would double the time of a large model.

    At the end all of it goes to the oldest generation at once (which is what freeze and unfreeze do together, where
    nobody else has frozen anything), or the next allocation would search it after all.
    """
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            if gc.get_freeze_count() == 0:
                gc.freeze()
                gc.unfreeze()
            gc.enable()


def _net_version(place: Place, root: Element) -> int:
    if root.tag != "net":
        place.at(root).fail(f"the root element is <{root.tag!s}>, expected <net>: this is no OpenVINO IR")
    version = xml.integer(place, root, "version")
    if version not in READABLE_VERSIONS:
        place.at(root).fail(f"the net's version is {version}, expected {' or '.join(map(str, READABLE_VERSIONS))}")
    return version


def _open_weights(path: Path) -> Weights | None:
    weights = path.with_suffix(".bin")
    return Weights(weights) if weights.exists() else None


class _GraphReader:
    """Reads one graph and, from a work list, those nested in it; inner ones first when the parts are put together."""

    def __init__(self, place: Place, weights: Weights | None) -> None:
        self._place = place
        self._weights = weights

    def read(self, root: Element) -> Graph:
        """The graph of `root` with all bodies in it."""
        graphs: dict[Element, Graph] = {}
        for element in reversed([root, *root.iter("body", "then_body", "else_body")]):  # document order, so inner first
            graphs[element] = self._graph(element, graphs)
        return graphs[root]

    def _graph(self, element: Element, graphs: Mapping[Element, Graph]) -> Graph:
        layers_element = xml.child(element, "layers")
        layers: tuple[Layer, ...] = ()
        if layers_element is not None:
            tags = ("layer", FIRST_DRAFT_TAGS["layer"])
            layers = tuple(self._layer(child, graphs) for child in layers_element if child.tag in tags)
        edges_element = element.find("edges")
        edges: tuple[Edge, ...] = () if edges_element is None else read_edges(self._place, edges_element)
        by_id = self._unique(layers)
        return Graph(layers, edges, sources_of(self._place, by_id, edges), xml.line_of(element))

    def _unique(self, layers: tuple[Layer, ...]) -> dict[int, Layer]:
        by_id: dict[int, Layer] = {}
        for layer in layers:
            if (first := by_id.setdefault(layer.id, layer)) is not layer:
                message = f"the id {layer.id} is taken already by {first} on line {first.line}"
                Place(self._place.path, layer.line, str(layer)).fail(message)
        return by_id

    def _layer(self, element: Element, graphs: Mapping[Element, Graph]) -> Layer:
        place = self._place
        identity = xml.integer(place, element, "id")
        name, written_type = element.get("name"), element.get("type")
        if name is None or written_type is None:
            place = place.at(element, f"layer {identity}")
            name, written_type = xml.text(place, element, "name"), xml.text(place, element, "type")
        type = operation_types.canonical_type(written_type)
        line = xml.line_of(element)
        place = Place(place.path, line, f"layer {identity} '{name}' ({type})")
        version = element.get("version")
        if version is None:
            # Only the first draft shows operations without one.
            version = "opset5" if element.tag != "layer" else xml.text(place, element, "version")
        data, inputs, outputs = _EMPTY, _NO_PORTS, _NO_PORTS
        for child in element:
            match child.tag:
                case "data":
                    data = MappingProxyType(dict(child.items()))
                case "input":
                    inputs = _ports(place, child, is_output=False)
                case "output":
                    outputs = _ports(place, child, is_output=True)
        bodies = self._bodies(place, element, type, graphs) if type in BODIES else ()
        definition = _known_definition(type, version) or _unusual_definition(place, type, version)
        parts = (identity, name, type, version, definition, data, inputs, outputs, bodies, line, None)
        layer: Layer = new(Layer, parts)
        if type == "Constant":
            check_constant(place, layer, self._weights)
        elif type == "Parameter":
            check_parameter(place, layer, in_body=_is_in_body(element))
        return layer

    def _bodies(self, place: Place, element: Element, type: str, graphs: Mapping[Element, Graph]) -> tuple[Body, ...]:
        bodies = []
        for tag, port_map in BODIES[type]:
            child = element.find(tag)
            if child is None:
                place.fail(f"has no <{tag}>")
            role: BodyRole = tag  # type: ignore[assignment]  # the table holds no others
            bodies.append(read_body(place, element, role, port_map, graphs[child]))
        return tuple(bodies)


def _is_in_body(layer: Element) -> bool:
    layers = layer.getparent()
    return layers is not None and (owner := layers.getparent()) is not None and owner.tag != "net"


@lru_cache(maxsize=1024)
def _known_definition(type: str, version: str) -> int | None:
    """The opset of the definition meant."""
    opset = operation_types.opset_number(version)
    return None if opset is None else operation_types.definition(type, opset)


def _unusual_definition(place: Place, type: str, version: str) -> int | None:
    """The definition of an extension's operation that has a known name, None for one that has not.

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
        place.fail(f"no operation set has an operation of type '{type}'{hint}")
    return place.fail(f"{version} has no {type}; it begins with opset{versions[0]}")


def _ports(place: Place, side: Element, *, is_output: bool) -> tuple[Port, ...]:
    ports = []
    for element in side:
        if element.tag != "port":
            continue
        get = element.get
        identity, written = get("id", ""), get("precision")
        element_type = None if written is None else element_types.by_precision(written)
        if element_type is None:
            _check_precision(place, element, written, is_output=is_output)
        if not identity.isdecimal() or len(identity) > 9:
            xml.integer(place, element, "id")
            place.at(element).fail(f"the id of a port is '{identity}', expected a small non-negative integer")
        dims = _dims_in(xml.text_within(element))
        if dims is None or len(dims) != len(element):
            dims = _dims_one_by_one(place, element, identity)
        port_names = _split_names(names) if is_output and (names := get("names")) else ()
        ports.append(new(Port, (int(identity), element_type, dims, port_names, xml.line_of(element))))
    return tuple(ports)


@lru_cache(maxsize=4096)
def _dims_in(text: str) -> tuple[int, ...] | None:
    """The numbers in all the text of a port, None where it holds anything else; many ports are of one shape."""
    try:
        return _checked_dims(text.split())
    except (ValueError, OverflowError):
        return None


def _dims_one_by_one(place: Place, element: Element, identity: str) -> tuple[int, ...]:
    """The same of a port that has other elements besides its dimensions, or a wrong one."""
    try:
        return _checked_dims([dim.text for dim in element if dim.tag == "dim"])
    except (TypeError, ValueError, OverflowError) as error:
        return place.at(element).fail(f"a <dim> of port {identity} is {_DIM_FAULTS[type(error)]}")


_DIM_FAULTS: Final = {
    TypeError: "empty",
    ValueError: "no integer",
    OverflowError: "out of range, expected -1 or more",
}


def _check_precision(place: Place, element: Element, written: str | None, *, is_output: bool) -> None:
    """Raise ModelError unless a missing or unknown element type is allowed here."""
    if written is None and is_output:
        place.at(element).fail("an output port has no attribute 'precision', which is mandatory")
    if written is not None and written.lower() not in element_types.UNKNOWN_NAMES:
        place.at(element).fail(f"the precision '{written}' is no element type (FP32, I64, BOOL, ...)")


def _checked_dims(texts: Sequence[str | None]) -> tuple[int, ...]:
    """The numbers that the <dim> elements of a port hold; TypeError, ValueError or OverflowError for what is none."""
    dims = tuple([int(text) for text in texts])  # type: ignore[arg-type]  # TypeError for an empty element
    if dims and not (min(dims) >= -1 and max(dims) < 2**63):
        raise OverflowError
    return dims


def _split_names(text: str) -> tuple[str, ...]:
    """The tensor names of a port: separated by commas, a comma in a name escaped by a backslash."""
    if "\\" not in text:
        return tuple(text.split(",")) if text else ()
    parts = text.replace("\\,", "\0").split(",")
    return tuple(part.replace("\0", ",") for part in parts)
