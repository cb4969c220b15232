"""Sentences on when a loop starts, what it goes on for, and how many iterations there are at most."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple

from stepper.debug.loop_limits import ConditionLimit
from stepper.engine.compiler import static_notes
from stepper.engine.loops import Control, ControlOrigin, NoEffect, RoleError, control, roles_of, without_effect
from stepper.export.equations import condition_text
from stepper.export.figures.drawn_graph import references_of
from stepper.ir.model import Graph, Layer, Model
from stepper.wording import counted, enumerated, excerpt

_LONGEST_NOTE: Final = 200
NO_LIMIT: Final = 2**63 - 1
"""The trip count that converters write where there is no limit."""


def loop_facts(model: Model, outer: Graph, layer: Layer, limit: ConditionLimit | None = None) -> tuple[str, ...]:
    """Return what begins and ends a loop of a graph, a line each, as far as the file says; of an If its condition.

    Then what its back edges do not, and where the rule books differ. `limit` is that of its condition.
    """
    if not layer.is_loop:
        found = control(model, outer, layer)
        if found.condition is None:
            return ()
        return (f"then runs if {_truth(found.condition, _expression(model, outer, found.condition))}, otherwise else",)
    lines = loop_course(model, outer, layer, limit)
    lines += [f"back edge {edge.name} has no effect: {edge.reason}" for edge in edges_without_effect(layer)]
    return (*lines, *rule_differences(outer, layer))


def loop_course(model: Model, outer: Graph, layer: Layer, limit: ConditionLimit | None = None) -> list[str]:
    """Return what begins and ends a loop of a graph, a line each; `limit` is that of its condition."""
    found = control(model, outer, layer)
    starts = _expression(model, outer, found.condition)
    lines = list(_course(layer, found, starts, _expression(model, layer.bodies[0].graph, found.goes_on)))
    if limit is not None:
        most = f"at most {counted(limit.iterations, 'iteration')}"
        if has_limit(found.trip_count):
            lines.append(f"{most} by its condition ({excerpt(limit.text)})")
        else:
            lines[-1] = f"no limit but its condition: {most} ({excerpt(limit.text)})"
    return lines


def rule_differences(outer: Graph, layer: Layer) -> tuple[str, ...]:
    """Return where the rule books differ on a loop of a graph, a line each."""
    return tuple(excerpt(note, _LONGEST_NOTE) for note in static_notes(layer, outer))


def differences_within(graph: Graph, layers: Iterable[Layer] | None = None) -> Iterator[str]:
    """Yield where the rule books differ on loops of a graph (among these layers) and of its bodies, by name."""
    for layer in graph.layers if layers is None else layers:
        if layer.is_loop:
            yield from (f"{layer.type} '{excerpt(layer.name)}': {note}" for note in rule_differences(graph, layer))
        for body in layer.bodies:
            yield from differences_within(body.graph)


def condition_effect(model: Model, outer: Graph, layer: Layer) -> str:
    """Return what the condition that a body computes means for its loop, in a few words."""
    condition = control(model, outer, layer).goes_on
    if condition is None or _is_always(condition):
        return "always true"
    return "false: ends after one" if condition.value is False else "runs on while true"


_REASONS: Final = {
    NoEffect.EARLIER: ("an earlier back edge", "to {} counts"),
    NoEffect.SLICED: ("{} is sliced,", "each iteration gets its slice"),
    NoEffect.NUMBER: ("{} is the", "iteration number"),
    NoEffect.NOT_FED: ("no input is led", "to {}"),
}


class EdgeWithoutEffect(NamedTuple):
    """A back edge without effect: its name, such as `h_result → x`, what it is led to, and the reason."""

    result: int
    parameter: int
    name: str
    target: str
    reason: NoEffect

    @property
    def told(self) -> tuple[str, ...]:
        """The reason in short lines, to stand at the edge."""
        return tuple(line.format(self.target) for line in _REASONS[self.reason])


def edges_without_effect(layer: Layer) -> tuple[EdgeWithoutEffect, ...]:
    """Return the back edges of a loop that have no effect."""
    body, names = layer.bodies[0], references_of(layer.bodies[0].graph)
    try:
        roles = roles_of(layer)
    except RoleError:
        return ()
    found = []
    for edge in body.back_edges:
        reason = without_effect(body, roles, edge)
        if reason is not None and edge.from_layer in names and edge.to_layer in names:
            name = f"{excerpt(names[edge.from_layer])} → {excerpt(names[edge.to_layer])}"
            target = excerpt(names[edge.to_layer])
            found.append(EdgeWithoutEffect(edge.from_layer, edge.to_layer, name, target, reason))
    return tuple(found)


def _expression(model: Model, graph: Graph, condition: ControlOrigin | None) -> str:
    return "" if condition is None else condition_text(model, graph, graph.by_id[condition.layer.id])


def _course(layer: Layer, found: Control, starts: str, goes_on: str) -> tuple[str, ...]:
    """Return what begins and ends a loop, a line each; its conditions as expressions, where they have one."""
    if layer.type == "TensorIterator":
        ports = found.slices_of
        if len(ports) > 1:
            return (f"as many iterations as inputs {enumerated([*map(str, ports)])} have slices",)
        return (
            f"as many iterations as input {ports[0]} has slices" if ports else "as many iterations as its outputs say",
        )
    is_exact = _is_always(found.condition) and _is_always(found.goes_on)
    limit = _limit(found.trip_count, "" if is_exact else "at most ")
    begin = _told(found.condition, starts, "starts always", "never starts", "starts if")
    end = _told(found.goes_on, goes_on, "no condition ends it", "ends after the first iteration", "goes on while")
    return begin, end, limit


def _told(condition: ControlOrigin | None, expression: str, always: str, never: str, where: str) -> str:
    """Return what a condition means: always true, always false, or computed."""
    if condition is None or _is_always(condition):
        return always
    return f"{never}: {_named(condition)}" if condition.value is False else f"{where} {_truth(condition, expression)}"


def _is_always(condition: ControlOrigin | None) -> bool:
    return condition is None or condition.value is True


def has_limit(trip_count: ControlOrigin | None) -> bool:
    """True if a trip count ends a loop: it is computed, or neither negative nor what converters write for no limit."""
    count = None if trip_count is None else trip_count.value
    return trip_count is not None and (not isinstance(count, int | float) or 0 <= count != NO_LIMIT)


def _limit(trip_count: ControlOrigin | None, most: str) -> str:
    if trip_count is None or not has_limit(trip_count):
        return "no limit on iterations"
    count = trip_count.value
    if not isinstance(count, int | float) or not math.isfinite(count):
        return f"{most}as many iterations as {_named(trip_count)} says"
    return f"{most}{counted(int(count), 'iteration')}"


def _truth(condition: ControlOrigin, expression: str) -> str:
    """Return what has to be true: `start ≠ 1 (start_is_not_one)`, or `ready (LogicalNot) is true`."""
    return f"{expression} ({excerpt(condition.layer.name)})" if expression else f"{_named(condition)} is true"


def _named(origin: ControlOrigin) -> str:
    """Return name and type, such as `keep_going (NotEqual)`."""
    output = "" if origin.output is None else f", output {origin.output}"
    value = "" if origin.value is None else f" = {str(origin.value).lower()}"
    return f"{excerpt(origin.layer.name)} ({origin.layer.type}{output}){value}"
