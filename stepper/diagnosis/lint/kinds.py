"""Kinds of layers: what most rules of layers look at is the same for thousands of layers, and is looked at once."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cached_property
from itertools import chain
from typing import Any, TypeAlias

from stepper.diagnosis.lint.subjects import PASSING, REAL, LayerSubject, known_chain
from stepper.ir.model import Graph, Layer, Model, Port, Source
from stepper.ir.weights import Weights

_Key: TypeAlias = tuple[Any, ...]
_Place: TypeAlias = tuple[tuple[Layer, ...], Graph, Layer]


class LayerKinds:
    """The layers of a model by their type, and those of a type by their kind.

    Layers of one kind have the same attributes and ports, all in a body or none, and read values of the same types and
    shapes, which operations of the same types make; where those are known whole numbers (axes, shapes, indices) also
    the same numbers. Constants of one kind have the same bytes. Names, lines and who reads them may differ.
    """

    def __init__(self, model: Model) -> None:
        self.model = model
        self._subjects: dict[int, LayerSubject] = {}

    @cached_property
    def _groups(self) -> Mapping[str, Mapping[_Key, list[_Place]]]:
        found: dict[str, dict[_Key, list[_Place]]] = {}
        for path, graph in self.model.graphs():
            constants = {one.id: _constant(one, self.model.weights) for one in graph.layers if one.type == "Constant"}
            values = _values(graph, constants)
            for layer in graph.layers:
                try:
                    key = (
                        bool(path),
                        *(constants[layer.id] if layer.type == "Constant" else _key(graph, layer, values)),
                    )
                except LookupError:  # of a broken file: like no other
                    key = (id(layer),)
                of_type = found.get(layer.type)
                if of_type is None:
                    of_type = found[layer.type] = {}
                alike = of_type.get(key)
                if alike is None:
                    of_type[key] = [(path, graph, layer)]
                else:
                    alike.append((path, graph, layer))
        return found

    def _of_types(self, types: Iterable[str]) -> Iterator[list[_Place]]:
        wanted = [self._groups[one] for one in types or self._groups if one in self._groups]
        return chain.from_iterable(groups.values() for groups in wanted)

    def subject(self, place: _Place) -> LayerSubject:
        """Return a layer with what is around it: one for each, as it keeps what it has found."""
        found = self._subjects.get(id(place[2]))
        if found is None:
            found = self._subjects[id(place[2])] = LayerSubject(self.model, *place)
        return found

    def subjects(self, types: Iterable[str]) -> Iterator[LayerSubject]:
        """Yield all layers of these types; of all types where none is named."""
        return map(self.subject, chain.from_iterable(self._of_types(types)))

    def kinds(self, types: Iterable[str]) -> Iterator[tuple[LayerSubject, Iterator[LayerSubject]]]:
        """Yield the first layer of each kind, and all of them."""
        for places in self._of_types(types):
            yield self.subject(places[0]), map(self.subject, places)


def reads(*types: str) -> Callable[[LayerSubject], bool]:
    """Return a test of a layer: whether it reads what an operation of one of these types makes."""

    def suspects(facts: LayerSubject) -> bool:
        return any(facts.graph.layer_of(source).type in types for source in facts.sources)

    return suspects


def _constant(layer: Layer, weights: Weights | None) -> _Key:
    """Return type, shape and bytes of a Constant; of a large one where the bytes are."""
    attributes = dict(layer.attributes)
    offset, size = attributes.pop("offset", ""), attributes.pop("size", "")
    if weights is not None and len(size) <= 2 and size.isdecimal() and offset.isdecimal() and len(offset) < 19:
        content: bytes | str = weights.raw(int(offset), int(size))
    else:
        content = offset
    return (content, size, attributes.get("element_type"), layer.version, *attributes.items(), *_ports(layer.outputs))


def _ports(ports: tuple[Port, ...]) -> list[Any]:
    """Return the declared types and shapes: of a type that is which it is, as there is one of each."""
    if len(ports) == 1:
        return [id(ports[0].element_type), ports[0].dims]
    return [part for port in ports for part in (id(port.element_type), port.dims)]


def _values(graph: Graph, constants: Mapping[int, _Key]) -> dict[int, _Key]:
    """Return what the kind of a reader has of a value, by its layer: of those that may be known.

    Of real numbers that is not what they are, as those are weights: each layer has its own.
    """
    found: dict[int, _Key] = {}
    for layer in graph.layers:
        if (key := constants.get(layer.id)) is not None:
            found[layer.id] = key[2:] if key[2] in REAL else key
        elif layer.type == "Parameter":
            found[layer.id] = (*layer.attributes.items(), *_ports(layer.outputs))
        elif layer.type in PASSING and known_chain(graph, Source(layer.id, 0)) is not None:
            found[layer.id] = (id(layer),)
    return found


def _key(graph: Graph, layer: Layer, values: Mapping[int, _Key]) -> _Key:
    """Return what a layer shares with those of its kind."""
    if layer.bodies:
        return (id(layer),)
    inputs, outputs = layer.inputs, layer.outputs
    parts: list[Any] = [layer.version, layer.definition, layer.opened_from, len(inputs), len(outputs)]
    parts += layer.attributes.items()
    parts += _ports(inputs)
    parts += _ports(outputs)
    for source in graph.sources[layer.id]:
        if source is None:
            parts.append(None)
        elif source.layer in values:
            parts.append(values[source.layer])
        else:
            maker = graph.by_id[source.layer]
            port = maker.outputs[source.output]
            parts += (maker.type, id(port.element_type), port.dims)
    return tuple(parts)
