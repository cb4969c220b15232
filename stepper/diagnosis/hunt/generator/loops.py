"""Models with one or two loops, built from a seed: the same seed gives the same model everywhere.

What varies from seed to seed:

- TensorIterator and Loop, one after the other, and inside each other and If, three levels deep at most;
- sliced inputs: any axis of ranks 1 to 4, strides of 1, 2 and 3 in both directions, slices left over at the end of the
  axis, more slices than iterations (Loop), one outer value feeding several Parameters, slices of computed values;
- invariant inputs, and states that back edges carry: free ones, running sums, counters, two states that change places
  through a computing operation, one Result carried to two Parameters, states of LSTMCell, GRUCell and RNNCell, and
  states that grow by a row in each iteration;
- outputs: last values and concatenations in both orders, along any axis, of scalars, several of one Result, Results
  that lead nowhere, the condition itself;
- trip count: Const or Parameter, i32 or i64, scalar or [1], exact, beyond the stop, -1, computed in an outer body, or
  measured by ShapeOf; no iteration at all, by trip count or by condition;
- condition: Const or Parameter, always true, false at once, by the current iteration, by a counter, by a running
  total, by flags from a sliced input, or carried;
- element types f32, f16, i32, i64, u8 and boolean; at times Parameters of dynamic shape.

Magnitudes stay bounded, and no comparison hangs on rounding. What the runtime is known to compute wrongly is left out:
Results that reach a Parameter's memory through operations in place, Softmax of a Parameter, TensorIterators whose
slices are unused, loops with an unused output beside a used one of the same Result, constant unchanging inputs in
front of the Parameter that counts iterations, undefined outputs of loops that do not run.
"""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import Any

import numpy as np
import openvino as ov
import openvino.opset13 as ops

from stepper.diagnosis.hunt.generator.bodies import fill
from stepper.diagnosis.hunt.generator.freedom import CAREFUL, Freedom
from stepper.diagnosis.hunt.generator.loop_nodes import add_loop, add_tensor_iterator
from stepper.diagnosis.hunt.generator.scopes import ModelScope
from stepper.diagnosis.hunt.generator.values import Value

SUBGRAPHS = ("TensorIterator", "Loop", "If")


@dataclass(frozen=True)
class RandomLoop:
    """A model with loops and the arrays to run it with, in the order of its Parameters."""

    seed: int
    model: ov.Model
    inputs: list[np.ndarray]
    description: str
    kinds: tuple[str, ...]


def build(seed: int, freedom: Freedom = CAREFUL) -> RandomLoop:
    """The model of this seed."""
    rng = random.Random(seed)
    scope = ModelScope(rng, set(), fill, freedom)
    outputs: list[Value] = []
    for _ in range(2 if rng.random() < 0.15 else 1):
        add = add_loop if rng.random() < 0.58 else add_tensor_iterator
        outputs += [scope.keep(value) for value in add(scope)]
    return random_model(seed, scope, outputs)


def random_model(seed: int, scope: ModelScope, outputs: list[Value]) -> RandomLoop:
    """The model around what was chosen, at times of dynamic shape."""
    rng = scope.rng
    model = assembled(scope, outputs, f"random_loop_{seed}")
    if rng.random() < 0.2:
        make_dynamic(scope, model)
    kinds = tuple(sorted(kinds_of(model)))
    description = f"{', '.join(kinds)}: {'; '.join(sorted(scope.features))}"
    return RandomLoop(seed, model, scope.arrays, description, kinds)


def assembled(scope: ModelScope, outputs: list[Value], name: str) -> ov.Model:
    """The model whose Results are the loops' outputs."""
    results = [ops.result(scope.finish(value).output) for value in outputs]
    parameters = [value.output.get_node() for value in scope.parameters]
    model = ov.Model(results, parameters, name)
    give_names(model)
    return model


def give_names(graph: Any, prefix: str = "") -> None:
    """Name nodes by type and place, in bodies too, and their tensors: names given by default count on for ever."""
    for place, node in enumerate(graph.get_ordered_ops()):
        rename(node, f"{node.get_type_name()}_{place}", set())
        for body in bodies(node):
            give_names(body, "body_")
    for place, parameter in enumerate(graph.get_parameters()):
        rename(parameter, f"{prefix}input_{place}", {f"{prefix}input_{place}"})
    for place, result in enumerate(graph.get_results()):
        rename(result, f"{prefix}output_{place}", {f"{prefix}output_{place}"})


def rename(node: Any, name: str, tensor_names: set[str]) -> None:
    """Name a node and what it gives out."""
    node.set_friendly_name(name)
    for port in node.outputs():
        port.get_tensor().set_names(tensor_names)


def bodies(node: Any) -> list[Any]:
    """The graphs inside a node."""
    if node.get_type_name() == "If":
        return [node.get_function(branch) for branch in (0, 1)]
    return [node.get_function()] if node.get_type_name() in SUBGRAPHS else []


def kinds_of(graph: Any, path: tuple[str, ...] = ()) -> set[str]:
    """The subgraph operations of a model, each with those around it."""
    found: set[str] = set()
    for node in graph.get_ordered_ops():
        for body in bodies(node):
            inner = (*path, node.get_type_name())
            found |= {" > ".join(inner)} | kinds_of(body, inner)
    return found


def make_dynamic(scope: ModelScope, model: ov.Model) -> None:
    """Leave some or all dimensions of some Parameters to the run, where the model allows that."""
    rng = scope.rng
    shapes = {}
    for place, value in enumerate(scope.parameters):
        if value.rank and value not in scope.exact and rng.random() < 0.6:
            everything = rng.random() < 0.4
            shapes[place] = ov.PartialShape([-1 if everything or rng.random() < 0.5 else size for size in value.shape])
    if not shapes:
        return
    before = {place: model.input(place).get_partial_shape() for place in shapes}
    try:
        model.reshape(shapes)
        scope.features.add("dynamic shapes")
    except RuntimeError:
        model.reshape(before)
