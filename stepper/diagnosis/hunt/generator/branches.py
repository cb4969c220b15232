"""An If inside a body: two branches that do different work and may ignore their inputs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import openvino as ov
import openvino.opset13 as ops
from openvino.op import if_op

from stepper.diagnosis.hunt.generator.adaptation import flattened_sum, reshaped, touched
from stepper.diagnosis.hunt.generator.liveness import name_of, reachable
from stepper.diagnosis.hunt.generator.scopes import BodyScope, body_scope
from stepper.diagnosis.hunt.generator.values import ALL_TYPES, DTYPES, INTEGERS, GraphScope, Value, random_shape

OUTPUT_TYPES = ("f32", "f32", "f32", "i32", "i64", "boolean")


def branch_condition(scope: GraphScope) -> Value | None:
    """A single boolean that the body has computed, or a whole number compared with a constant."""
    known = scope.pick(("boolean",), lambda v: v.size == 1 and v.rooted)
    if known is not None and scope.chance(0.6):
        return known if known.rank <= 1 else reshaped(scope, known, ())
    number = scope.pick(INTEGERS, lambda v: v.rooted and not v.coarse)
    if number is None:
        return None
    total = flattened_sum(scope, number)
    threshold = scope.constant_of(np.array(scope.rng.randint(0, 2), DTYPES[number.element_type]))
    compare = scope.rng.choice((ops.greater, ops.less_equal))
    return scope.derive(compare(total.output, threshold.output), (total,), 1)


def add_if(scope: GraphScope) -> list[Value]:
    """An If inside `scope`; its outputs, none where nothing can decide between the branches."""
    condition = branch_condition(scope)
    if condition is None:
        return []
    node: Any = if_op(condition.output)
    branches = (body_scope(scope, "If"), body_scope(scope, "If"))
    inputs = [value for value in (scope.pick(ALL_TYPES) for _ in range(scope.rng.randint(1, 3))) if value is not None]
    wiring = [(value, branch_parameters(branches, value)) for value in inputs]
    outputs = [(scope.rng.choice(OUTPUT_TYPES), random_shape(scope.rng, scope.rng.randint(0, 2))) for _ in range(2)]
    outputs = outputs[: scope.rng.randint(1, 2)]
    results = [branch_values(branch, outputs) for branch in branches]
    wiring = [(value, in_use(parameters, results)) for value, parameters in wiring]
    wiring = [(value, parameters) for value, parameters in wiring if any(parameters)]
    connect(node, wiring, results)
    scope.features.add("If")
    bounds = [max(then.bound, other.bound) for then, other in zip(*results, strict=True)]
    coarse = any(value.coarse for values in results for value in values)
    parents = (condition, *(value for value, _ in wiring))
    values = [scope.derive(node, parents, bound, output=k, computed=False) for k, bound in enumerate(bounds)]
    return [replace(value, computed=False, coarse=coarse) for value in values]


def in_use(parameters: Sequence[Value | None], results: Sequence[Sequence[Value]]) -> list[Value | None]:
    """The Parameter of each branch if the branch's results need it."""
    needed = [reachable(value.output.get_node() for value in values) for values in results]
    return [p if p is not None and name_of(p) in names else None for p, names in zip(parameters, needed, strict=True)]


def branch_parameters(branches: Sequence[BodyScope], value: Value) -> list[Value | None]:
    """The Parameter of each branch for an input of the If; one of the branches may ignore it."""
    ignoring = branches[0].rng.choice(branches) if branches[0].chance(0.2) else None
    if ignoring is not None:
        ignoring.features.add("branch ignores an input")
    return [None if branch is ignoring else branch.keep(branch.parameter_for(value)) for branch in branches]


def branch_values(branch: BodyScope, outputs: list[tuple[str, tuple[int, ...]]]) -> list[Value]:
    """Values that a branch computes for each output of the If."""
    parameters = list(branch.values)
    branch.fill(branch, branch.rng.randint(1, 3))
    for parameter in parameters:
        branch.keep(touched(branch, parameter))
    return [touched(branch, branch.obtain(element_type, shape)) for element_type, shape in outputs]


def connect(node: Any, wiring: Sequence[tuple[Value, list[Value | None]]], results: Sequence[list[Value]]) -> None:
    """Give the If its two branches, its inputs and its outputs."""
    models = []
    for branch, values in enumerate(results):
        parameters = [parameter.output.get_node() for _, of in wiring if (parameter := of[branch]) is not None]
        models.append(ov.Model([ops.result(value.output) for value in values], parameters, "branch"))
    node.set_then_body(models[0])
    node.set_else_body(models[1])
    for value, of in wiring:
        node.set_input(value.output, *(parameter and parameter.output.get_node() for parameter in of))
    for then, other in zip(models[0].results, models[1].results, strict=True):
        node.set_output(then, other)
    node.validate_and_infer_types()
