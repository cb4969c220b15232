"""Values of a body that may be another in each iteration, and those that cannot, as the file says."""

from __future__ import annotations

from typing import Final

from stepper.engine.roles import Roles
from stepper.ir.model import Graph, Layer, Source

SHAPING: Final = ("Squeeze", "Unsqueeze", "Reshape")
"""Operations that give their first input in another shape."""
_REMEMBERING: Final = frozenset({"RandomUniform", "Multinomial", "ReadValue"})
"""Operations that may give another value for the same inputs."""


def ancestors(graph: Graph, *values: Source | None) -> frozenset[int]:
    """Return the ids of all layers of a graph on which values depend, their own among them."""
    waiting = [one.layer for one in values if one is not None]
    seen = set(waiting)
    while waiting:
        for one in graph.sources.get(waiting.pop(), ()):
            if one is not None and one.layer not in seen:
                seen.add(one.layer)
                waiting.append(one.layer)
    return frozenset(seen)


def shaped_from(graph: Graph, source: Source | None) -> Source | None:
    """Return a value before it only changed its shape."""
    seen: set[int] = set()
    while source is not None and source.layer not in seen:
        seen.add(source.layer)
        layer = graph.by_id.get(source.layer)
        if layer is None or layer.type not in SHAPING or not graph.sources[layer.id]:
            return source
        source = graph.sources[layer.id][0]
    return source


def can_change(graph: Graph, roles: Roles, value: Source | None) -> bool:
    """Return True if a value of a body may be another one in the next iteration.

    It depends on a slice, the iteration number, a variable, a random number, or a carried value that changes.
    """
    sources = ancestors(graph, value)
    changing = {entry.parameter for entry in roles.sliced} | set(roles.current_iteration)
    for parameter, result in roles.merged_from.items():
        given = graph.sources.get(result, ())
        origin = shaped_from(graph, given[0] if given else None)
        if origin is None or origin.layer != parameter:
            changing.add(parameter)
    return bool(sources & changing) or any(_remembers(graph.by_id[one]) for one in sources if one in graph.by_id)


def decided_by(graph: Graph, roles: Roles, value: Source | None) -> frozenset[int] | None:
    """Return the carried Parameters whose values alone decide what a value is in this iteration and all later ones.

    None where something else has a say: a slice, the iteration number, a variable, a random number.
    """
    found: set[int] = set()
    waiting = [value]
    sources: frozenset[int] = frozenset()
    while waiting:
        sources |= ancestors(graph, waiting.pop())
        for parameter in sources & roles.merged_from.keys() - found:
            found.add(parameter)
            waiting += graph.sources.get(roles.merged_from[parameter], ())
    others = {entry.parameter for entry in roles.sliced} | set(roles.current_iteration)
    if sources & others or any(_remembers(graph.by_id[one]) for one in sources if one in graph.by_id):
        return None
    return frozenset(found)


def _remembers(layer: Layer) -> bool:
    if layer.type in _REMEMBERING:
        return True
    return any(_remembers(inner) for body in layer.bodies for inner in body.graph.layers)
