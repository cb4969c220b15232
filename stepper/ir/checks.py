"""Checks of a whole graph: inputs that nothing feeds, Results and bodies out of order, cycles."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from stepper.ir.model import Graph, Layer, Model, Source
from stepper.ir.xml import Faults, FilePlace, tolerated

_SOURCES: Final = frozenset({"Constant", "Parameter", "ReadValue"})
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


def _fail(model: Model, layer: Layer, where: str, message: str, rule: str) -> None:
    known = layer.id, layer.name, layer.type
    FilePlace(model.path, layer.line, f"{where}{layer}", known).fail(message, rule)


def _lacks_inputs(layer: Layer) -> bool:
    return not layer.inputs and layer.type not in _SOURCES and layer.definition is not None and not layer.bodies


def _check_inputs(model: Model, graph: Graph, layer: Layer, where: str) -> None:
    may_be_absent = layer.type == "Loop" and layer.bodies[0].first_draft
    if layer.type == "Result" and len(layer.inputs) != 1:
        _fail(model, layer, where, f"has {len(layer.inputs)} input ports, expected one", "malformed-result")
    if layer.type == "Result" and len(layer.outputs) > 1:
        _fail(model, layer, where, f"has {len(layer.outputs)} output ports, expected one", "malformed-result")
    if _lacks_inputs(layer):
        _fail(model, layer, where, "has no input ports, expected one or more", "input-without-edge")
    for port, source in zip(layer.inputs, graph.sources[layer.id], strict=False):  # of two with one id they may differ
        if source is None and not may_be_absent:
            _fail(model, layer, where, f"no edge reaches its input port {port.id}", "input-without-edge")
    if layer.type == "Loop" and len(layer.inputs) < 2 and not may_be_absent:
        message = "has no inputs for trip count and execution condition, which are mandatory"
        _fail(model, layer, where, message, "control-input-missing")
    if layer.type == "If" and not layer.inputs:
        _fail(model, layer, where, "has no input for its condition", "control-input-missing")


def _check_outputs(model: Model, layer: Layer, where: str, *, is_strict: bool) -> None:
    """A body must give every output that the layer has, and only those.

    Where faults are kept it may lack as many as it has entries that were left out, or that have the number of another:
    of these more is told than what they leave open.
    """
    for body in layer.bodies:
        given = {entry.output for entry in body.outputs} - {None}
        missing = set(range(len(layer.outputs))) - given
        if len(missing) > (0 if is_strict else body.unread_outputs + len(body.ignored)):
            ids = ", ".join(str(layer.outputs[index].id) for index in sorted(missing))
            text = f"the port map of its <{body.role}> gives nothing to output port {ids}"
            _fail(model, layer, where, text, "output-without-entry")
        if len(given) > len(layer.outputs):
            text = f"the port map of its <{body.role}> has {len(given)} outputs, the layer {len(layer.outputs)}"
            _fail(model, layer, where, text, "entry-without-output")


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
        _fail(model, graph.by_id[ring[0]], where, f"its value depends on itself: {names}", "cycle")


def _is_in_order(graph: Graph) -> bool:
    """Return True if each layer stands after its sources, as most files have it: then there is no cycle."""
    before: set[int] = set()
    for key, sources in graph.sources.items():
        for source in sources:
            if source is not None and source.layer not in before:
                return False
        before.add(key)
    return True


def _ring(sources: Mapping[int, tuple[Source | None, ...]], left: set[int]) -> list[int]:
    """Return a cycle among layers of which each has a producer that is left: walk back until one comes again."""
    key = min(left)
    walk: dict[int, None] = {}
    while key not in walk:
        walk[key] = None
        key = next(source.layer for source in sources[key] if source is not None and source.layer in left)
    keys = list(walk)
    return [*reversed(keys[keys.index(key) :]), keys[-1]]
