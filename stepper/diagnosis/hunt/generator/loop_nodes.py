"""One TensorIterator or Loop: port map, body and outputs put together as a node."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import openvino as ov
from openvino.op import loop, tensor_iterator

from stepper.diagnosis.hunt.generator.control import LoopControl, body_condition, plan
from stepper.diagnosis.hunt.generator.liveness import name_of, prune
from stepper.diagnosis.hunt.generator.outputs import BodyResults, choose_outputs
from stepper.diagnosis.hunt.generator.port_maps import (
    PortMapDraft,
    add_carried,
    add_growing,
    add_invariant,
    add_sliced,
    close,
)
from stepper.diagnosis.hunt.generator.scopes import body_scope
from stepper.diagnosis.hunt.generator.values import GraphScope, Value


def add_tensor_iterator(scope: GraphScope) -> list[Value]:
    """A TensorIterator inside `scope`; its outputs."""
    port_map = new_port_map(scope, "TensorIterator")
    for _ in range(scope.rng.choice((1, 1, 2) if scope.path else (1, 1, 2, 2, 3))):
        add_sliced(port_map)
    add_inputs(port_map)
    fill_body(port_map)
    chosen = BodyResults(port_map)
    choose_outputs(chosen)
    prune(chosen, [], chosen.unmapped)
    if foldable(port_map, ()):
        return []
    node: Any = tensor_iterator()
    node.set_function(body_model(port_map, chosen))
    return connected(node, port_map, chosen, ())


def add_loop(scope: GraphScope) -> list[Value]:
    """A Loop inside `scope`; its outputs."""
    port_map = new_port_map(scope, "Loop")
    port_map.runs = bool(scope.path) or not scope.chance(0.1)
    control = plan(port_map)
    for _ in range(scope.rng.choice((0, 1, 1) if scope.path else (0, 1, 1, 2, 2))):
        add_sliced(port_map)
    add_inputs(port_map)
    if port_map.runs and scope.chance(0.15):
        add_growing(port_map)
    fill_body(port_map)
    chosen = BodyResults(port_map)
    value = body_condition(port_map, control)
    result = condition_result(chosen, control, value)
    choose_outputs(chosen)
    prune(chosen, [value], [*chosen.unmapped, result])
    if foldable(port_map, (control.trip, control.condition)):
        return []
    return loop_node(port_map, chosen, control, result)


def loop_node(port_map: PortMapDraft, chosen: BodyResults, control: LoopControl, condition: Any) -> list[Value]:
    """The Loop over a finished body; its outputs."""
    body = body_model(port_map, chosen)
    names = [parameter.get_name() for parameter in body.get_parameters()]
    iteration = -1
    if counted := port_map.iteration:
        port_map.note(f"current_iteration {counted.element_type} {list(counted.shape)}")
        iteration = names.index(name_of(counted))
    node: Any = loop(control.trip.output, control.condition.output)
    node.set_function(body)
    node.set_special_body_ports([iteration, chosen.results.index(condition)])
    return connected(node, port_map, chosen, (control.trip, control.condition))


def foldable(port_map: PortMapDraft, control: tuple[Value, ...]) -> bool:
    """True if all inputs of a loop inside a body are constant, so that the runtime would fold it."""
    taken_in = [*control, *(entry.outer for entry in port_map.entries())]
    return bool(port_map.outer.path) and not any(value.rooted for value in taken_in)


def new_port_map(scope: GraphScope, kind: str) -> PortMapDraft:
    """The empty port map of a loop inside `scope`."""
    iterations = scope.rng.choice((1, 2, 2, 3, 3) if scope.path else (1, 2, 3, 3, 4, 4, 5, 6))
    return PortMapDraft(scope, body_scope(scope, kind), kind, iterations)


def add_inputs(port_map: PortMapDraft) -> None:
    """Invariant inputs and carried states."""
    rng, nested = port_map.outer.rng, bool(port_map.outer.path)
    for _ in range(rng.choice((0, 0, 1) if nested else (0, 1, 1, 2))):
        add_invariant(port_map)
    fewest = 0 if port_map.sliced and port_map.runs else 1
    for _ in range(max(fewest, rng.choice((0, 1, 1, 2) if nested else (0, 1, 1, 1, 2, 2)))):
        add_carried(port_map)


def fill_body(port_map: PortMapDraft) -> None:
    """Operations of the body, then what every back edge carries."""
    body, rng = port_map.body, port_map.outer.rng
    if not body.values:
        body.keep(body.constant((2,), "f32"))
    body.fill(body, rng.randint(2, 4) if port_map.outer.path else rng.randint(3, 8))
    close(port_map)


def condition_result(chosen: BodyResults, control: LoopControl, value: Value) -> Any:
    """The Result that the Loop reads as its condition, at times one that a back edge carries as well."""
    port_map, rng = chosen.port_map, chosen.port_map.outer.rng
    carried = [state.result for state in port_map.carried if state.following is value]
    result = carried[0] if carried and rng.random() < 0.5 else chosen.result(value)
    if control.stop not in ("never", "once") and port_map.runs and rng.random() < 0.1:
        chosen.expose_either_way(result, value)
        port_map.note("condition is an output")
    return result


def body_model(port_map: PortMapDraft, chosen: BodyResults) -> ov.Model:
    """The body with its Parameters and Results in random order.

    The one that counts iterations comes first where an unchanging input is constant: the runtime moves such constants
    into the body without renumbering the rest, and then counts into a wrong Parameter.
    """
    values = port_map.parameters()
    port_map.outer.rng.shuffle(values)
    port_map.outer.rng.shuffle(chosen.results)
    free = port_map.outer.is_free(port_map.outer.freedom.order)
    if not free and any(not entry.outer.rooted for entry in port_map.invariant):
        values.sort(key=lambda value: value is not port_map.iteration)
    return ov.Model(chosen.results, [value.output.get_node() for value in values], "body")


def connected(node: Any, port_map: PortMapDraft, chosen: BodyResults, control: tuple[Value, ...]) -> list[Value]:
    """The node's inputs and outputs, each group in random order; the outputs as values of the outer graph."""
    rng = port_map.outer.rng
    entries = port_map.entries()
    rng.shuffle(entries)
    for entry in entries:
        port_map.note(entry.feature)
        entry.connect(node)
    if len({id(entry.outer) for entry in entries}) < len(entries):
        port_map.note("one value feeds several inputs")
    if len({id(state.result) for state in port_map.carried}) < len(port_map.carried):
        port_map.note("one Result to two Parameters")
    rng.shuffle(chosen.outputs)
    for output in chosen.outputs:
        output.connect(node)
    node.validate_and_infer_types()
    outer = port_map.outer
    parents = [*control, *(entry.outer for entry in entries)]
    values = [outer.derive(node, parents, output.value.bound, output=k) for k, output in enumerate(chosen.outputs)]
    return [
        replace(value, coarse=value.coarse or output.value.coarse)
        for value, output in zip(values, chosen.outputs, strict=True)
    ]
