"""Operations that compute: element by element, along axes, matrix products, comparisons and recurrent cells.

Each function takes a scope, chooses operands among its values and offers the result to it; it does nothing where no
operand fits. Discontinuous operations stay away from half precision and from constants that a value can reach.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import openvino.opset1 as ops1
import openvino.opset4 as ops4
import openvino.opset8 as ops8
import openvino.opset13 as ops

from stepper.diagnosis.hunt.generator.adaptation import adapted, broadcasts_to, converted, limit, tamed
from stepper.diagnosis.hunt.generator.values import ARITHMETIC, DTYPES, FLOATS, INTEGERS, NUMBERS, GraphScope, Value

Operation = Callable[[GraphScope], None]

UNARY: tuple[tuple[Any, Sequence[str], Callable[[float], float]], ...] = (
    (ops.tanh, FLOATS, lambda bound: min(bound, 1.0)),
    (ops.sigmoid, FLOATS, lambda bound: 1.0),
    (ops.relu, FLOATS, lambda bound: bound),
    (ops.abs, NUMBERS, lambda bound: bound),
    (ops.negative, NUMBERS, lambda bound: bound),
)

BINARY: tuple[tuple[Any, Sequence[str], Callable[[float, float], float]], ...] = (
    (ops.add, ARITHMETIC, lambda a, b: a + b),
    (ops.subtract, NUMBERS, lambda a, b: a + b),
    (ops.multiply, ARITHMETIC, lambda a, b: a * b),
    (ops.maximum, ARITHMETIC, max),
    (ops.minimum, ARITHMETIC, max),
)


def unary(scope: GraphScope) -> None:
    """Tanh, Sigmoid, ReLU, Abs or Negative."""
    make, types, bound = scope.rng.choice(UNARY)
    if value := scope.pick(types):
        scope.keep(scope.derive(make(value.output), (value,), bound(value.bound)))


def scalar(scope: GraphScope, number: float, element_type: str) -> Any:
    """A scalar Constant's output."""
    return scope.constant_of(np.array(number, DTYPES[element_type])).output


def partner(scope: GraphScope, value: Value) -> Value:
    """A second operand whose shape goes with that of `value`: another value or a Constant."""
    fits = [
        v
        for v in scope.values
        if v is not value
        and v.element_type == value.element_type
        and (broadcasts_to(v.shape, value.shape) or broadcasts_to(value.shape, v.shape))
    ]
    if fits and scope.chance(0.65):
        return scope.rng.choice(fits)
    tail = scope.rng.randint(0, value.rank)
    shape = tuple(scope.rng.choice((size, size, 1)) for size in value.shape[tail:])
    return scope.constant(shape, value.element_type)


def binary(scope: GraphScope) -> None:
    """Add, Subtract, Multiply, Maximum or Minimum with numpy broadcasting."""
    make, types, bound = scope.rng.choice(BINARY)
    if (first := scope.pick(types)) is None:
        return
    second = partner(scope, first)
    if first.element_type == "u8":
        first, second = limit(scope, first, 12), limit(scope, second, 12)
    if scope.chance(0.5):
        first, second = second, first
    node = make(first.output, second.output)
    scope.keep(tamed(scope, scope.derive(node, (first, second), bound(first.bound, second.bound))))


def divide(scope: GraphScope) -> None:
    """Divide by something that stays away from zero."""
    if (value := scope.pick(FLOATS)) is None:
        return
    other = partner(scope, value)
    distant = ops.add(ops.abs(other.output), scalar(scope, 0.75, value.element_type))
    scope.keep(tamed(scope, scope.derive(ops.divide(value.output, distant), (value, other), value.bound / 0.75)))


def clamp(scope: GraphScope) -> None:
    """Clamp to a random interval around zero."""
    if value := scope.pick(NUMBERS):
        reach = float(scope.rng.randint(1, 4)) if value.element_type in INTEGERS else scope.rng.choice((0.5, 1.0, 1.75))
        node = ops.clamp(value.output, -reach / (1 if value.element_type in INTEGERS else 2), reach)
        scope.keep(scope.derive(node, (value,), min(value.bound, reach)))


def exponential(scope: GraphScope) -> None:
    """Exp of a value that Clamp keeps small."""
    if value := scope.pick(FLOATS):
        node = ops.exp(ops.clamp(value.output, -2.0, 1.25))
        scope.keep(scope.derive(node, (value,), 3.5))


def root(scope: GraphScope) -> None:
    """Sqrt of an absolute value, away from its vertical tangent."""
    if value := scope.pick(FLOATS):
        node = ops.sqrt(ops.add(ops.abs(value.output), scalar(scope, 0.0625, value.element_type)))
        scope.keep(scope.derive(node, (value,), (value.bound + 0.0625) ** 0.5))


def power(scope: GraphScope) -> None:
    """Power of a positive base with a constant exponent."""
    if value := scope.pick(FLOATS):
        base = limit(scope, value, 3.0)
        positive = ops.add(ops.abs(base.output), scalar(scope, 0.5, value.element_type))
        exponent = scope.rng.choice((0.5, 1.5, 2.0, -0.5))
        node = ops.power(positive, scalar(scope, exponent, value.element_type))
        bound = max((base.bound + 0.5) ** exponent, 0.5**exponent)
        scope.keep(tamed(scope, scope.derive(node, (value,), bound)))


def floor(scope: GraphScope) -> None:
    """Floor of a float that is shifted off whole numbers."""
    if value := scope.pick(FLOATS, lambda v: not v.coarse):
        shifted = ops.add(value.output, scalar(scope, 0.28418, value.element_type))
        scope.keep(scope.derive(ops.floor(shifted), (value,), value.bound + 1))


def softmax(scope: GraphScope) -> None:
    """Softmax along any axis, counted from either end; of a Parameter the runtime computes it in place and wrongly."""
    if value := scope.pick(FLOATS, lambda v: v.rank > 0 and (v.computed or scope.is_free(scope.freedom.in_place))):
        axis = scope.rng.randrange(value.rank)
        backwards = scope.chance(0.5)
        node = ops8.softmax(value.output, axis - value.rank) if backwards else ops1.softmax(value.output, axis)
        scope.keep(scope.derive(node, (value,), 1.0))


def cumulative_sum(scope: GraphScope) -> None:
    """CumSum in all its four modes."""
    if value := scope.pick(("f32", "i32"), lambda v: v.rank > 0):
        axis = scope.rng.randrange(value.rank)
        node = ops.cum_sum(value.output, ops.constant(np.array(axis)), scope.chance(0.4), scope.chance(0.4))
        bound = value.bound * value.shape[axis]
        scope.keep(tamed(scope, scope.derive(node, (value,), bound, computed=False)))


def reduction(scope: GraphScope) -> None:
    """ReduceSum, ReduceMax or ReduceMean over some of the axes."""
    make = scope.rng.choice((ops.reduce_sum, ops.reduce_max, ops.reduce_mean))
    types = FLOATS if make is ops.reduce_mean else NUMBERS
    if (value := scope.pick(types, lambda v: v.rank > 0)) is None:
        return
    axes = sorted(scope.rng.sample(range(value.rank), scope.rng.randint(1, value.rank)))
    count = int(np.prod([value.shape[axis] for axis in axes]))
    written = [axis - value.rank if scope.chance(0.3) else axis for axis in axes]
    node = make(value.output, ops.constant(np.array(written, np.int64)), scope.chance(0.5))
    bound = value.bound * (count if make is ops.reduce_sum else 1)
    scope.keep(tamed(scope, scope.derive(node, (value,), bound, computed=count > 1)))


def matrix_product(scope: GraphScope) -> None:
    """MatMul with a constant matrix, plain or transposed; or with one that is in use already, as tied weights are."""
    if (value := scope.pick(("f32", "f32", "f16"), lambda v: v.rank > 0)) is None:
        return
    inner, columns = value.shape[-1], scope.rng.randint(1, 4)
    transposed = scope.chance(0.5)
    tied: list[Value] = []
    if scope.is_free(scope.freedom.tied):
        tied = [one for one in scope.constants if one.rank == 2 and one.bound <= 1 and inner in one.shape]
        tied = [one for one in tied if one.element_type == value.element_type]
        columns = inner  # a square one can be read both ways
    if tied:
        weights = scope.rng.choice(tied)
        transposed = weights.shape[0] != inner or (weights.shape[1] == inner and transposed)
    else:
        weights = scope.constant((columns, inner) if transposed else (inner, columns), value.element_type, 1.0)
    node = ops.matmul(value.output, weights.output, False, transposed)
    scope.keep(tamed(scope, scope.derive(node, (value,), value.bound * inner)))
    if scope.is_free(scope.freedom.tied) and weights.shape == (inner, inner):  # the way back, as a decoder goes it
        node = ops.matmul(value.output, weights.output, False, not transposed)
        scope.keep(tamed(scope, scope.derive(node, (value,), value.bound * inner)))


def inner_product(scope: GraphScope) -> None:
    """MatMul of a value with its own transpose."""
    if value := scope.pick(("f32",), lambda v: v.rank >= 2):
        flip = scope.chance(0.5)
        node = ops.matmul(value.output, value.output, flip, not flip)
        bound = value.bound * value.bound * value.shape[-2 if flip else -1]
        scope.keep(tamed(scope, scope.derive(node, (value,), bound)))


def comparison(scope: GraphScope) -> None:
    """Greater, Less or Equal: whole numbers with each other, floats with constants off their grid."""
    value = scope.pick((*INTEGERS, "u8", "f32"), lambda v: not v.coarse)
    if value is None:
        return
    make = scope.rng.choice((ops.greater, ops.less, ops.equal))
    if value.element_type == "f32":
        make = ops.greater if make is ops.equal else make
        other = scope.constant_of(np.array(scope.rng.randint(-4, 4) / 8 + 0.02719, np.float32))
    else:
        other = partner(scope, value)
    scope.keep(scope.derive(make(value.output, other.output), (value, other), 1))


def logic(scope: GraphScope) -> None:
    """LogicalNot, or LogicalAnd with another boolean."""
    if (value := scope.pick(("boolean",))) is None:
        return
    if scope.chance(0.4):
        scope.keep(scope.derive(ops.logical_not(value.output), (value,), 1))
        return
    other = partner(scope, value)
    scope.keep(scope.derive(ops.logical_and(value.output, other.output), (value, other), 1))


def select(scope: GraphScope) -> None:
    """Select between a value and its partner."""
    if (value := scope.pick(ARITHMETIC)) is None:
        return
    shape = value.shape
    chooser = scope.pick(("boolean",), lambda v: broadcasts_to(v.shape, shape))
    chooser = chooser or scope.constant(shape, "boolean")
    other = partner(scope, value)
    if not broadcasts_to(other.shape, value.shape):
        value, other = other, value
    node = ops.select(chooser.output, value.output, other.output)
    scope.keep(scope.derive(node, (chooser, value, other), max(value.bound, other.bound)))


def conversion(scope: GraphScope) -> None:
    """Convert to another element type."""
    targets = ("f32", "f32", "i32", "i64", "u8", "boolean", "f16")
    if value := scope.pick(("f32", "i32", "i64", "u8", "boolean", "f16")):
        target = scope.rng.choice([t for t in targets if t != value.element_type])
        scope.keep(converted(scope, value, target))


def matrix(scope: GraphScope, shape: tuple[int, int]) -> Value:
    """An f32 value of this shape: one of the scope's, brought to that shape, or a Constant."""
    value = scope.pick(("f32",), lambda v: not v.coarse)
    return scope.constant(shape, "f32") if value is None else adapted(scope, value, "f32", shape)


def cell(scope: GraphScope, data: Value, states: Sequence[Value], kind: str) -> list[Value]:
    """The next states that an LSTMCell, GRUCell or RNNCell with constant weights gives."""
    hidden = states[0].shape[1]
    gates = {"LSTMCell": 4, "GRUCell": 3, "RNNCell": 1}[kind]
    weights = scope.constant((gates * hidden, data.shape[1]), "f32", 1.0).output
    recurrence = scope.constant((gates * hidden, hidden), "f32", 1.0).output
    state = states[0].output
    if kind == "LSTMCell":
        bias = scope.constant((gates * hidden,), "f32", 0.5).output
        node = ops4.lstm_cell(data.output, state, states[1].output, weights, recurrence, bias, hidden)
        bounds = [1.0, states[1].bound + 1]
    elif kind == "GRUCell":
        reset = scope.chance(0.4)
        bias = scope.constant(((gates + reset) * hidden,), "f32", 0.5).output
        node = ops.gru_cell(data.output, state, weights, recurrence, bias, hidden, linear_before_reset=reset)
        bounds = [max(1.0, states[0].bound)]
    else:
        bias = scope.constant((gates * hidden,), "f32", 0.5).output
        node = ops.rnn_cell(data.output, state, weights, recurrence, bias, hidden, ["tanh"], [], [])
        bounds = [1.0]
    parents = (data, *states)
    return [scope.keep(scope.derive(node, parents, bound, output=k)) for k, bound in enumerate(bounds)]


def recurrent_cell(scope: GraphScope) -> None:
    """A recurrent cell over values of the scope."""
    batch, features, hidden = scope.rng.randint(1, 2), scope.rng.randint(1, 3), scope.rng.randint(1, 3)
    kind = scope.rng.choice(("LSTMCell", "GRUCell", "RNNCell"))
    data = matrix(scope, (batch, features))
    states = [matrix(scope, (batch, hidden)) for _ in range(2 if kind == "LSTMCell" else 1)]
    cell(scope, data, states, kind)
    scope.features.add(kind)
