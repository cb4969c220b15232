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
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, NamedTuple

import numpy as np
import openvino as ov
import openvino.opset13 as ops
import openvino.opset14 as ops14
from openvino.op import if_op, loop, tensor_iterator

from stepper.diagnosis.hunt import random_operations
from stepper.diagnosis.hunt.random_operations import (
    ALL_TYPES,
    CAREFUL,
    INTEGERS,
    Freedom,
    GraphScope,
    Operation,
    Value,
    converted,
    flattened_sum,
    integers,
    random_shape,
    recurrent,
    reshaped,
    settled,
    tamed,
    touched,
)
from stepper.diagnosis.hunt.random_ports import (
    BodyScope,
    LoopControl,
    ModelScope,
    PortMapDraft,
    add_carried,
    add_growing,
    add_invariant,
    add_sliced,
    body_condition,
    body_scope,
    choose_outputs,
    close,
    name_of,
    plan,
    prune,
    reachable,
)

# One TensorIterator or Loop: port map, body and outputs put together as a node.


def add_tensor_iterator(scope: GraphScope) -> list[Value]:
    """A TensorIterator inside `scope`; its outputs."""
    port_map = new_port_map(scope, "TensorIterator")
    for _ in range(scope.rng.choice((1, 1, 2) if scope.path else (1, 1, 2, 2, 3))):
        add_sliced(port_map)
    add_inputs(port_map)
    fill_body(port_map)
    port_map.add_carried_results()
    choose_outputs(port_map)
    prune(port_map, [], port_map.unmapped)
    if foldable(port_map, ()):
        return []
    node: Any = tensor_iterator()
    node.set_function(body_model(port_map))
    return connected(node, port_map, ())


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
    port_map.add_carried_results()
    value = body_condition(port_map, control)
    result = condition_result(port_map, control, value)
    choose_outputs(port_map)
    prune(port_map, [value], [*port_map.unmapped, result])
    if foldable(port_map, (control.trip, control.condition)):
        return []
    return loop_node(port_map, control, result)


def loop_node(port_map: PortMapDraft, control: LoopControl, condition: Any) -> list[Value]:
    """The Loop over a finished body; its outputs."""
    body = body_model(port_map)
    names = [parameter.get_name() for parameter in body.get_parameters()]
    iteration = -1
    if counted := port_map.iteration:
        port_map.note(f"current_iteration {counted.element_type} {list(counted.shape)}")
        iteration = names.index(name_of(counted))
    node: Any = loop(control.trip.output, control.condition.output)
    node.set_function(body)
    node.set_special_body_ports([iteration, port_map.results.index(condition)])
    return connected(node, port_map, (control.trip, control.condition))


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
    rng, nested = port_map.rng, bool(port_map.outer.path)
    for _ in range(rng.choice((0, 0, 1) if nested else (0, 1, 1, 2))):
        add_invariant(port_map)
    fewest = 0 if port_map.sliced and port_map.runs else 1
    for _ in range(max(fewest, rng.choice((0, 1, 1, 2) if nested else (0, 1, 1, 1, 2, 2)))):
        add_carried(port_map)


def fill_body(port_map: PortMapDraft) -> None:
    """Operations of the body, then what every back edge carries."""
    body, rng = port_map.body, port_map.rng
    if not body.values:
        body.keep(body.constant((2,), "f32"))
    body.fill(body, rng.randint(2, 4) if port_map.outer.path else rng.randint(3, 8))
    close(port_map)


def condition_result(port_map: PortMapDraft, control: LoopControl, value: Value) -> Any:
    """The Result that the Loop reads as its condition, at times one that a back edge carries as well."""
    rng = port_map.rng
    carried = [state.result for state in port_map.carried if state.following is value]
    result = carried[0] if carried and rng.random() < 0.5 else port_map.result(value)
    if control.stop not in ("never", "once") and port_map.runs and rng.random() < 0.1:
        port_map.expose_either_way(result, value)
        port_map.note("condition is an output")
    return result


def body_model(port_map: PortMapDraft) -> ov.Model:
    """The body with its Parameters and Results in random order.

    The one that counts iterations comes first where an unchanging input is constant: the runtime moves such constants
    into the body without renumbering the rest, and then counts into a wrong Parameter.
    """
    values = port_map.parameters()
    port_map.rng.shuffle(values)
    port_map.rng.shuffle(port_map.results)
    free = port_map.outer.is_free(port_map.outer.freedom.order)
    if not free and any(not entry.outer.rooted for entry in port_map.invariant):
        values.sort(key=lambda value: value is not port_map.iteration)
    return ov.Model(port_map.results, [value.output.get_node() for value in values], "body")


def connected(node: Any, port_map: PortMapDraft, control: tuple[Value, ...]) -> list[Value]:
    """The node's inputs and outputs, each group in random order; the outputs as values of the outer graph."""
    rng = port_map.rng
    entries = port_map.entries()
    rng.shuffle(entries)
    for entry in entries:
        port_map.note(entry.feature)
        entry.connect(node)
    if len({id(entry.outer) for entry in entries}) < len(entries):
        port_map.note("one value feeds several inputs")
    if len({id(state.result) for state in port_map.carried}) < len(port_map.carried):
        port_map.note("one Result to two Parameters")
    rng.shuffle(port_map.outputs)
    for output in port_map.outputs:
        output.connect(node)
    node.validate_and_infer_types()
    outer = port_map.outer
    parents = [*control, *(entry.outer for entry in entries)]
    values = [outer.derive(node, output.value.bound, *parents, output=k) for k, output in enumerate(port_map.outputs)]
    return [
        replace(value, coarse=value.coarse or output.value.coarse)
        for value, output in zip(values, port_map.outputs, strict=True)
    ]


# An If inside a body: two branches that do different work and may ignore their inputs.

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
    threshold = scope.number(scope.rng.randint(0, 2), number)
    compare = scope.rng.choice((ops.greater, ops.less_equal))
    return scope.derive(compare(total.output, threshold.output), 1, total)


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
    values = [scope.derive(node, bound, *parents, output=k, computed=False) for k, bound in enumerate(bounds)]
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


# How a body is filled: operations in random order, branches and loops inside it.

Subgraph = Callable[[GraphScope], list[Value]]

DEEPEST = 3
"""Subgraph operations inside each other, at most."""

SUBGRAPH_CHANCE = (0.0, 0.09, 0.16)
"""How often a step in a body of this depth adds a subgraph operation."""

WEIGHTS: tuple[tuple[int, Operation], ...] = (
    (6, random_operations.unary),
    (9, random_operations.binary),
    (2, random_operations.divide),
    (2, random_operations.clamp),
    (1, random_operations.exponential),
    (1, random_operations.root),
    (2, random_operations.power),
    (1, random_operations.floor),
    (2, random_operations.softmax),
    (2, random_operations.cumulative_sum),
    (4, random_operations.reduction),
    (4, random_operations.matrix_product),
    (1, random_operations.inner_product),
    (3, random_operations.comparison),
    (2, random_operations.logic),
    (2, random_operations.select),
    (2, random_operations.conversion),
    (1, random_operations.recurrent_cell),
    (2, random_operations.concat),
    (2, random_operations.slice_range),
    (2, random_operations.strided_slice),
    (2, random_operations.transpose),
    (2, random_operations.reshape),
    (1, random_operations.squeeze),
    (1, random_operations.unsqueeze),
    (2, random_operations.gather),
    (2, random_operations.gather_computed),
    (2, random_operations.broadcast),
    (1, random_operations.shape_of),
    (1, random_operations.split),
    (1, random_operations.variadic_split),
)


def fill(scope: GraphScope, steps: int) -> None:
    """Add operations that offer about `steps` new values to the scope."""
    weights, operations = zip(*WEIGHTS, strict=True)
    for _ in range(steps):
        depth = len(scope.path)
        if depth < DEEPEST and scope.chance(SUBGRAPH_CHANCE[depth]):
            # An If or a loop inside a body; all its outputs go into one value of known shape.
            # The subgraph operations that may stand here: the runtime refuses a TensorIterator in a TensorIterator.
            allowed: list[Subgraph] = [add_if, add_loop]
            if "TensorIterator" not in scope.path:
                allowed.append(add_tensor_iterator)
            add = scope.rng.choice(allowed)
            if values := [settled(scope, value) for value in add(scope)]:
                scope.keep(joined(scope, values))
        else:
            scope.rng.choices(operations, weights)[0](scope)


def joined(scope: GraphScope, values: list[Value]) -> Value:
    """One of the values with the sums of the others added: the runtime mends loops whose outputs are unused badly."""
    total, *others = [tamed(scope, converted(scope, value, "f32")) for value in values]
    for other in others:
        addend = flattened_sum(scope, other)
        node = ops.add(total.output, addend.output)
        total = tamed(scope, scope.derive(node, total.bound + addend.bound, total, addend))
    return total


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


# Layers of networks with weights of their own: convolutions, pooling, recurrent cells and sequences.
#
# Each takes a slice x [2, width], and a state of the same shape, and is told in words.

ROWS: Final = 2


class DrawnLayer(NamedTuple):
    """A random layer: its function of slice and state, and what it is in words."""

    make: Callable[[Any, Any], Any]
    title: str


class _Weights:
    def __init__(self, seed: int, dtype: type[np.floating[Any]]) -> None:
        self._numbers, self.dtype = np.random.default_rng(seed), dtype

    def __call__(self, *shape: int) -> Any:
        return ops.constant(self._numbers.uniform(-1, 1, shape).astype(self.dtype))


def _convolution(rng: random.Random, weights: _Weights, width: int) -> DrawnLayer:
    """Of the rows as two channels of a line, or as one channel of a picture of two lines."""
    is_flat, kind = rng.random() < 0.6, rng.choice(("plain", "plain", "grouped", "backprop"))
    kernel, channels = rng.randint(1, 3), rng.randint(1, 4)
    stride, dilation, pads = rng.randint(1, 2), rng.randint(1, 2), (rng.randint(0, 2), rng.randint(0, 2))
    shape = (1, ROWS, width) if is_flat else (1, 1, ROWS, width)
    inner = ROWS if is_flat else 1
    size: tuple[int, ...]
    if is_flat:
        size, strides, dilations, begin, end = (kernel,), [stride], [dilation], [pads[0]], [pads[1]]
    else:
        size, strides, dilations = (min(kernel, 2), kernel), [1, stride], [1, dilation]
        begin, end = [0, pads[0]], [1, pads[1]]

    def make(x: Any, _state: Any) -> Any:
        data = ops.reshape(x, integers(*shape), False)
        if kind == "grouped":
            held = weights(inner, channels, 1, *size)
            return ops.group_convolution(data, held, strides, begin, end, dilations)
        if kind == "backprop":
            held = weights(inner, channels, *size)
            return ops.convolution_backprop_data(data, held, strides, None, begin, end, dilations)
        return ops.convolution(data, weights(channels, inner, *size), strides, begin, end, dilations)

    return DrawnLayer(make, f"{kind} convolution, kernel {size}, strides {strides}, dilations {dilations}")


def _pooling(rng: random.Random, _weights: _Weights, width: int) -> DrawnLayer:
    kernel, stride, dilation = rng.randint(1, 3), rng.randint(1, 3), rng.randint(1, 2)
    pads = (rng.randint(0, kernel // 2), rng.randint(0, kernel // 2))
    rounding, kind = rng.choice(("floor", "ceil", "ceil_torch")), rng.choice(("max", "average", "average, no pads"))

    def make(x: Any, _state: Any) -> Any:
        data = ops.reshape(x, integers(1, ROWS, width), False)
        if kind == "max":
            pooled = ops14.max_pool(data, [stride], [dilation], [pads[0]], [pads[1]], [kernel], rounding)
            return pooled.output(0)
        return ops14.avg_pool(data, [stride], [pads[0]], [pads[1]], [kernel], kind != "average", rounding)

    return DrawnLayer(make, f"{kind} pooling, kernel {kernel}, stride {stride}, pads {pads}, {rounding}")


_GATES: Final = {"lstm": 4, "gru": 3, "rnn": 1}


def _recurrent(rng: random.Random, weights: _Weights, width: int) -> DrawnLayer:
    """A cell on the rows and the state, or a sequence of which the rows are the steps."""
    kind, is_cell = rng.choice(tuple(_GATES)), rng.random() < 0.5
    direction = rng.choice(("forward", "reverse", "bidirectional"))
    linear, length, clip = rng.random() < 0.5, rng.randint(1, ROWS), rng.choice((0.0, 0.0, 0.7))
    gates = _GATES[kind]

    def make(x: Any, state: Any) -> Any:
        leading, given = tuple[int, ...](), [x, state, ops.tanh(state)][: 3 if kind == "lstm" else 2]
        tail: list[Any] = [width]
        if not is_cell:
            leading = (2 if direction == "bidirectional" else 1,)
            states = [weights(1, *leading, width) for _ in given[1:]]
            given = [
                ops.reshape(x, integers(1, ROWS, width), False),
                *states,
                ops.constant(np.array([length], np.int32)),
            ]
            tail.append(direction)
        biases = gates + (kind == "gru" and linear)
        held = [weights(*leading, gates * width, width) for _ in range(2)]
        return recurrent(
            f"{kind}_{'cell' if is_cell else 'sequence'}",
            *given,
            *held,
            weights(*leading, biases * width),
            *tail,
            clip=clip,
            **({"linear_before_reset": linear} if kind == "gru" else {}),
        ).output(0)

    title = f"{kind} cell" if is_cell else f"{kind} sequence, {direction}, {length} of {ROWS} steps"
    return DrawnLayer(make, f"{title}, clip {clip}")


_FAMILIES: Final[dict[str, Callable[[random.Random, _Weights, int], DrawnLayer]]] = {
    "convolution": _convolution,
    "pooling": _pooling,
    "recurrent": _recurrent,
}
LAYER_FAMILIES: Final = tuple(_FAMILIES)


# Loops around one operation: on every element type, or with quantised values.

FLOATS: Final = ("f32", "f16", "bf16", "f64")
WHOLE: Final = ("i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64")
ANY: Final = (*FLOATS, *WHOLE)

Made = Callable[[Any, Any], Any]

UNARY: Final[tuple[tuple[str, tuple[str, ...], float, float], ...]] = (
    *((name, FLOATS, -0.9, 0.9) for name in ("acos", "asin", "atan", "atanh", "cos", "cosh", "sin", "sinh", "tan")),
    *((name, FLOATS, -3.0, 3.0) for name in ("asinh", "elu", "erf", "exp", "gelu", "hsigmoid", "hswish", "mish")),
    *((name, FLOATS, -3.0, 3.0) for name in ("sigmoid", "softplus", "softsign", "tanh", "ceiling", "floor", "swish")),
    *((name, FLOATS, 1.0, 4.0) for name in ("acosh", "log", "sqrt")),
    *((name, ANY, -5.0, 5.0) for name in ("abs", "negative", "relu", "sign", "round")),
)
BINARY: Final = (
    "add",
    "subtract",
    "multiply",
    "divide",
    "maximum",
    "minimum",
    "mod",
    "floor_mod",
    "squared_difference",
)
COMPARED: Final = ("equal", "not_equal", "greater", "greater_equal", "less", "less_equal")
REDUCED: Final = ("reduce_sum", "reduce_mean", "reduce_max", "reduce_min", "reduce_prod", "reduce_l1", "reduce_l2")
MOVED: Final[dict[str, Callable[[Any], Any]]] = {
    "transpose": lambda x: ops.transpose(x, integers(1, 0)),
    "concat": lambda x: ops.concat([x, x], -1),
    "gather": lambda x: ops.gather(x, integers(1, 0, 1), ops.constant(1)),
    "tile": lambda x: ops.tile(x, integers(1, 2)),
    "pad": lambda x: ops.pad(x, integers(0, 1), integers(1, 0), "edge"),
    "strided_slice": lambda x: ops.strided_slice(x, integers(0, 1), integers(2, 3), integers(1, 1), [1, 0], [1, 0]),
    "cum_sum": lambda x: ops.cum_sum(x, ops.constant(1)),
    "topk": lambda x: ops.topk(x, ops.constant(np.int64(2)), 1, "max", "value").output(0),
    "roll": lambda x: ops.roll(x, integers(1), integers(1)),
    "softmax": lambda x: ops.softmax(x, 1),
    "one_hot": lambda x: ops.one_hot(ops.abs(x), ops.constant(6), ops.constant(2.0), ops.constant(-1.0), -1),
}


def build_operation(seed: int) -> RandomLoop:
    """A loop that applies one operation to slices of its input."""
    rng = random.Random(seed)
    family = rng.choice(("unary", "binary", "compared", "reduced", "moved", "power", "product", *LAYER_FAMILIES))
    if family in LAYER_FAMILIES:
        kind, width = rng.choice(("f32", "f32", "f16")), rng.choice((3, 4, 7, 8))
        layer = _FAMILIES[family](rng, _Weights(seed, np.float16 if kind == "f16" else np.float32), width)
        return _around(seed, rng, layer.make, kind, (-2.0, 2.0), layer.title, width)
    types: tuple[str, ...] = ANY
    low, high = -5.0, 5.0
    if family == "unary":
        name, types, low, high = rng.choice(UNARY)
        make = lambda x, _y: getattr(ops, name)(x, *(("half_to_even",) if name == "round" else ()))  # noqa: E731
        if name == "elu":
            make = lambda x, _y: ops.elu(x, 0.7)  # noqa: E731
        elif name == "gelu":
            make = lambda x, _y: ops.gelu(x, "erf")  # noqa: E731
    elif family in ("binary", "compared"):
        name = rng.choice(BINARY if family == "binary" else COMPARED)
        make = getattr(ops, name)
    elif family == "reduced":
        name, keep = rng.choice(REDUCED), rng.random() < 0.5
        make = lambda x, _y: getattr(ops, name)(x, integers(1), keep)  # noqa: E731
    elif family == "moved":
        name = rng.choice(tuple(MOVED))
        types = (*types, "boolean") if name in ("transpose", "concat", "gather", "tile") else types
        make = lambda x, _y: MOVED[name](x)  # noqa: E731
    elif family == "power":
        name, make, low, high, types = "power", ops.power, 1.0, 3.0, FLOATS
    else:
        name, types, turned = "matmul", FLOATS, rng.random() < 0.5
        make = lambda x, y: ops.matmul(x, y, not turned, turned)  # noqa: E731
    return _around(seed, rng, make, rng.choice(types), (low, high), f"{name}")


def build_quantised(seed: int) -> RandomLoop:
    """A loop whose state goes through a product with compressed weights, or through FakeQuantize."""
    rng = random.Random(seed)
    numbers = np.random.default_rng(seed)
    width = rng.choice((4, 8, 16, 32, 64))
    kind, form = rng.choice(("i8", "u8", "i4", "u4", "none")), rng.choice(("plain", "zero point", "grouped"))
    levels = rng.choice((256, 255, 16, 0))

    def quantised(value: Any, reach: float) -> Any:
        ends = [ops.constant(np.float32(end)) for end in (-reach, reach, -reach, reach)]
        return ops.fake_quantize(value, *ends, levels) if levels else value

    def make(x: Any, _y: Any) -> Any:
        lows = {"i8": (-127, 127), "u8": (0, 255), "i4": (-8, 7), "u4": (0, 15), "none": (-9, 9)}[kind]
        stored = numbers.integers(lows[0], lows[1] + 1, (width, width))
        if kind == "none":
            weights = quantised(ops.constant((stored / 9).astype(np.float32)), 1.0)
        else:
            grouped = form == "grouped" and width >= 8
            shape = (width, 2, width // 2) if grouped else (width, width)
            element = getattr(ov.Type, kind)
            node = ops.convert(ops.constant(stored.reshape(shape), element), "f32")
            if form == "zero point":
                zero = ops.constant(np.full((width, 1), (lows[0] + lows[1] + 1) // 2), element)
                node = ops.subtract(node, ops.convert(zero, "f32"))
            scale = numbers.uniform(0.5, 1.5, (width, 2, 1) if grouped else (width, 1)) / (lows[1] * width**0.5)
            weights = ops.multiply(node, ops.constant(scale.astype(np.float32)))
            if grouped:
                weights = ops.reshape(weights, integers(width, width), False)
        return ops.tanh(ops.matmul(quantised(x, 3.0), weights, False, True))

    title = f"{kind} weights, {form}, {levels} levels, width {width}"
    return _around(seed, rng, make, "f32", (-2.0, 2.0), title, width)


def _around(
    seed: int, rng: random.Random, make: Made, kind: str, limits: tuple[float, float], title: str, width: int = 3
) -> RandomLoop:
    """The loop: it slices x, and concatenates what the operation gives for each slice, and for the state."""
    element, count, rows = getattr(ov.Type, kind), rng.randint(1, 4), ROWS
    x = ops.parameter([rows * count, width], element)
    part, other = ops.parameter([rows, width], element), ops.parameter([rows, width], element)
    result = ops.result(make(part, other))
    goes_on = ops.result((ops.logical_or if kind == "boolean" else ops.maximum)(part, other))
    node: Any = tensor_iterator()
    node.set_function(ov.Model([result, goes_on], [part, other], "body"))
    ends = (-1, -rows, 0) if rng.random() < 0.3 else (0, rows, -1)
    node.set_sliced_input(part, x.output(0), ends[0], ends[1], rows, ends[2], 0)
    start = ops.parameter([rows, width], element)
    node.set_merged_input(other, start.output(0), goes_on.output(0))
    outputs = [node.get_iter_value(result.output(0), -1)]
    if result.get_output_partial_shape(0).rank.get_length() and result.get_output_partial_shape(0)[0].is_static:
        size = result.get_output_partial_shape(0)[0].get_length()
        outputs.append(node.get_concatenated_slices(result.output(0), 0, size, size, -1, 0))
    node.validate_and_infer_types()
    model = ov.Model([ops.result(one) for one in outputs], [x, start], f"random_{seed}")
    give_names(model)
    arrays = [_drawn(rng, kind, shape, limits) for shape in ((rows * count, width), (rows, width))]
    return RandomLoop(seed, model, arrays, f"{title}, {kind}", ("TensorIterator",))


def _drawn(rng: random.Random, kind: str, shape: tuple[int, int], limits: tuple[float, float]) -> np.ndarray:
    size = shape[0] * shape[1]
    if kind == "boolean":
        return np.array([rng.random() < 0.5 for _ in range(size)]).reshape(shape)
    if kind in FLOATS:
        drawn = np.array([rng.uniform(*limits) for _ in range(size)]).reshape(shape)
        if kind == "bf16":
            import ml_dtypes

            return drawn.astype(ml_dtypes.bfloat16)
        return drawn.astype({"f32": np.float32, "f16": np.float16, "f64": np.float64}[kind])
    lowest = 1 if kind.startswith("u") else int(limits[0])
    drawn = np.array([rng.choice([one for one in range(lowest, int(limits[1]) + 1) if one]) for _ in range(size)])
    name = kind.replace("u", "uint") if kind.startswith("u") else kind.replace("i", "int")
    return drawn.astype(name).reshape(shape)
