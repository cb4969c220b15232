"""Leaving out what a loop does not need: the runtime loses count where it removes unused inputs of a body itself."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from stepper.diagnosis.hunt.generator.adaptation import touched
from stepper.diagnosis.hunt.generator.outputs import BodyResults
from stepper.diagnosis.hunt.generator.port_maps import CarriedState
from stepper.diagnosis.hunt.generator.values import Value


def name_of(parameter: Value) -> str:
    """The unique name of a Parameter."""
    return str(parameter.output.get_node().get_name())


def roots_of(values: Iterable[Value]) -> set[str]:
    """The Parameters on whose elements the values depend."""
    return {root for value in values for root in value.roots}


def live_roots(chosen: BodyResults, more: list[Value]) -> set[str]:
    """The Parameters that matter for the outputs and `more`, in any number of iterations."""
    values = [output.value for output in chosen.outputs] + more
    while True:
        roots = roots_of(values)
        carried = [s.following for s in chosen.port_map.carried if s.following and name_of(s.parameter) in roots]
        if all(value in values for value in carried):
            return roots
        values += [value for value in carried if value not in values]


def reachable(results: Iterable[Any]) -> set[str]:
    """The names of the nodes from which a path leads to the Results."""
    found: set[str] = set()
    pending = list(results)
    while pending:
        node = pending.pop()
        if node.get_name() not in found:
            found.add(node.get_name())
            pending += [port.get_node() for port in node.input_values()]
    return found


def prune(chosen: BodyResults, more: list[Value], kept: list[Any]) -> None:
    """Drop dead inputs, states and Results, but not the Results `kept` nor what the values `more` need."""
    port_map = chosen.port_map
    if port_map.outer.is_free(port_map.outer.freedom.idle):
        port_map.note("idle inputs")
        return
    while idle := idle_parameters(chosen, more, kept):
        value = touched(port_map.body, idle[0])
        chosen.expose_alone(value, concatenate=not port_map.runs or port_map.outer.chance(0.5))
    roots = live_roots(chosen, more)
    port_map.sliced = [entry for entry in port_map.sliced if name_of(entry.parameter) in roots]
    port_map.invariant = [entry for entry in port_map.invariant if name_of(entry.parameter) in roots]
    port_map.carried = [state for state in port_map.carried if name_of(state.parameter) in roots]
    if port_map.iteration is not None and name_of(port_map.iteration) not in roots:
        port_map.iteration = None
    chosen.results = results_in_use(chosen, kept)


def idle_parameters(chosen: BodyResults, more: list[Value], kept: list[Any]) -> list[Value]:
    """Parameters to give an output of their own: used for their shape only, or the slices that count iterations."""
    port_map = chosen.port_map
    roots = live_roots(chosen, more)
    live = [state for state in port_map.carried if name_of(state.parameter) in roots]
    nodes = reachable(results_in_use(chosen, kept, live))
    idle = [p for p in port_map.parameters() if name_of(p) in nodes and name_of(p) not in roots]
    counting = [entry.parameter for entry in port_map.sliced]
    if port_map.kind == "TensorIterator" and not any(name_of(parameter) in roots for parameter in counting):
        idle += counting[:1]
    return idle


def results_in_use(chosen: BodyResults, kept: list[Any], live: list[CarriedState] | None = None) -> list[Any]:
    """The Results that an output, a back edge or `kept` needs."""
    states = chosen.port_map.carried if live is None else live
    used = [*kept, *(output.result for output in chosen.outputs), *(state.result for state in states)]
    return [result for result in chosen.results if any(result is other for other in used)]
