"""How a body is filled: operations in random order, branches and loops inside it."""

from __future__ import annotations

from collections.abc import Callable

import openvino.opset13 as ops

import stepper.diagnosis.hunt.generator.movements as move
import stepper.diagnosis.hunt.generator.operations as compute
from stepper.diagnosis.hunt.generator.adaptation import converted, flattened_sum, settled, tamed
from stepper.diagnosis.hunt.generator.branches import add_if
from stepper.diagnosis.hunt.generator.loop_nodes import add_loop, add_tensor_iterator
from stepper.diagnosis.hunt.generator.operations import Operation
from stepper.diagnosis.hunt.generator.values import GraphScope, Value

Subgraph = Callable[[GraphScope], list[Value]]

DEEPEST = 3
"""Subgraph operations inside each other, at most."""

SUBGRAPH_CHANCE = (0.0, 0.09, 0.16)
"""How often a step in a body of this depth adds a subgraph operation."""

WEIGHTS: tuple[tuple[int, Operation], ...] = (
    (6, compute.unary),
    (9, compute.binary),
    (2, compute.divide),
    (2, compute.clamp),
    (1, compute.exponential),
    (1, compute.root),
    (2, compute.power),
    (1, compute.floor),
    (2, compute.softmax),
    (2, compute.cumulative_sum),
    (4, compute.reduction),
    (4, compute.matrix_product),
    (1, compute.inner_product),
    (3, compute.comparison),
    (2, compute.logic),
    (2, compute.select),
    (2, compute.conversion),
    (1, compute.recurrent_cell),
    (2, move.concat),
    (2, move.slice_range),
    (2, move.strided_slice),
    (2, move.transpose),
    (2, move.reshape),
    (1, move.squeeze),
    (1, move.unsqueeze),
    (2, move.gather),
    (2, move.gather_computed),
    (2, move.broadcast),
    (1, move.shape_of),
    (1, move.split),
    (1, move.variadic_split),
)


def fill(scope: GraphScope, steps: int) -> None:
    """Add operations that offer about `steps` new values to the scope."""
    weights, operations = zip(*WEIGHTS, strict=True)
    for _ in range(steps):
        depth = len(scope.path)
        if depth < DEEPEST and scope.chance(SUBGRAPH_CHANCE[depth]):
            add_subgraph(scope)
        else:
            scope.rng.choices(operations, weights)[0](scope)


def subgraph_operations(scope: GraphScope) -> list[Subgraph]:
    """The subgraph operations that may stand here: the runtime refuses a TensorIterator in a TensorIterator."""
    allowed: list[Subgraph] = [add_if, add_loop]
    if "TensorIterator" not in scope.path:
        allowed.append(add_tensor_iterator)
    return allowed


def add_subgraph(scope: GraphScope) -> None:
    """An If or a loop inside a body; all its outputs go into one value of known shape."""
    add = scope.rng.choice(subgraph_operations(scope))
    if values := [settled(scope, value) for value in add(scope)]:
        scope.keep(joined(scope, values))


def joined(scope: GraphScope, values: list[Value]) -> Value:
    """One of the values with the sums of the others added: the runtime mends loops whose outputs are unused badly."""
    total, *others = [tamed(scope, converted(scope, value, "f32")) for value in values]
    for other in others:
        addend = flattened_sum(scope, other)
        node = ops.add(total.output, addend.output)
        total = tamed(scope, scope.derive(node, (total, addend), total.bound + addend.bound))
    return total
