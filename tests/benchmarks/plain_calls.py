"""The most used operations, each with inputs and the plainest numpy call that does the same with the same inputs.

What a tensor says (a shape, axes, bounds) the plain call reads from the tensor, as any implementation must.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from stepper.element_types import Array

Inputs = Callable[[int, int], Sequence[Array]]


@dataclass(frozen=True)
class Plain:
    """One operation: how its inputs are made for a number of rows and columns, and the plain call."""

    type: str
    version: int
    inputs: Inputs
    call: Callable[..., Any]
    attributes: dict[str, str] = field(default_factory=dict)


def reals(rows: int, columns: int) -> Array:
    return np.random.default_rng(rows).standard_normal((rows, columns)).astype(np.float32)


def one(rows: int, columns: int) -> tuple[Array]:
    return (reals(rows, columns),)


def two(rows: int, columns: int) -> tuple[Array, Array]:
    x = reals(rows, columns)
    return x, np.flip(x).copy()


def positive(rows: int, columns: int) -> tuple[Array, Array]:
    a, b = two(rows, columns)
    return np.absolute(a) + 1, np.absolute(b) + 1


def with_integers(*lists: Sequence[int] | int) -> Inputs:
    """A tensor of reals, and tensors of these integers (of rank 0 where it is a single one)."""
    return lambda rows, columns: (reals(rows, columns), *(np.array(values, np.int64) for values in lists))


def sliced(x: Array, start: Array, stop: Array, step: Array, axes: Array) -> Array:
    index = [slice(None)] * x.ndim
    for axis, first, last, by in zip(axes.tolist(), start.tolist(), stop.tolist(), step.tolist(), strict=True):
        index[axis] = slice(first, last, by)
    return x[tuple(index)]


def strided(x: Array, begin: Array, end: Array, strides: Array) -> Array:
    ranges = zip(begin.tolist(), end.tolist(), strides.tolist(), strict=True)
    return x[tuple([slice(first, last, by) for first, last, by in ranges])]


def chosen(rows: int, columns: int) -> tuple[Array, ...]:
    a, b = two(rows, columns)
    return a > b, a, b


def softmax(x: Array) -> Array:
    powers = np.exp(x - x.max(1, keepdims=True))
    return powers / powers.sum(1, keepdims=True)


def products(rows: int, columns: int) -> tuple[Array, Array]:
    return reals(rows, columns), reals(columns, 64)


def pieces(rows: int, columns: int) -> tuple[Array, Array]:
    return reals(rows, columns), np.arange(0, columns, 2)


def gathered(x: Array, indices: Array, axis: Array) -> Array:
    return x.take(indices, axis.item())


def scattered(x: Array, indices: Array, updates: Array, axis: Array) -> Array:
    result = x.copy()
    index: list[Any] = [slice(None)] * x.ndim
    index[axis.item()] = indices
    result[tuple(index)] = updates
    return result


def updates(rows: int, columns: int) -> tuple[Array, ...]:
    x, indices = pieces(rows, columns)
    return x, indices, -x[:, indices], np.array(1)


def top(x: Array, k: Array) -> tuple[Array, Array]:
    places = np.argsort(-x, 1, kind="stable")[:, : k.item()]
    return np.take_along_axis(x, places, 1), places.astype(np.int32)


def codes(rows: int, columns: int) -> tuple[Array, ...]:
    indices = np.arange(rows) % columns
    return indices, np.array(columns), np.float32(1), np.float32(0)


def one_hot(indices: Array, depth: Array, on: Array, off: Array) -> Array:
    return np.where(indices[:, np.newaxis] == np.arange(depth.item()), on, off)


def padded(x: Array, begin: Array, end: Array, value: Array) -> Array:
    return np.pad(x, list(zip(begin.tolist(), end.tolist(), strict=True)), constant_values=value.item())


def ends(rows: int, columns: int) -> tuple[Array, ...]:
    return np.array(0), np.array(rows * columns), np.array(1)


def lstm(rows: int, columns: int) -> tuple[Array, ...]:
    n = columns // 4
    return (
        reals(rows, columns),
        reals(rows, n),
        reals(rows, n),
        reals(4 * n, columns),
        reals(4 * n, n),
        reals(1, 4 * n)[0],
    )


def sigmoid(x: Array) -> Array:
    return 1 / (1 + np.exp(-x))


def lstm_step(x: Array, h: Array, c: Array, w: Array, r: Array, b: Array) -> tuple[Array, Array]:
    forget, input, candidate, output = np.split(x @ w.T + h @ r.T + b, 4, axis=1)
    cell = sigmoid(forget) * c + sigmoid(input) * np.tanh(candidate)
    return sigmoid(output) * np.tanh(cell), cell


PLAIN = (
    Plain("Add", 1, two, np.add),
    Plain("Subtract", 1, two, np.subtract),
    Plain("Multiply", 1, two, np.multiply),
    Plain("Divide", 1, positive, np.divide),
    Plain("Maximum", 1, two, np.maximum),
    Plain("Power", 1, positive, np.power),
    Plain("Mod", 1, positive, np.fmod),
    Plain("Sqrt", 1, lambda *shape: positive(*shape)[:1], np.sqrt),
    Plain("Exp", 1, one, np.exp),
    Plain("Tanh", 1, one, np.tanh),
    Plain("Round", 5, one, np.rint),
    Plain("Sigmoid", 1, one, sigmoid),
    Plain("Relu", 1, one, lambda x: np.maximum(x, 0)),
    Plain("Clamp", 1, one, lambda x: np.clip(x, 0.0, 6.0), {"min": "0", "max": "6"}),
    Plain("HSwish", 4, one, lambda x: x * np.clip(x + 3, 0, 6) / 6),
    Plain("Equal", 1, two, np.equal),
    Plain("Less", 1, two, np.less),
    Plain("LogicalNot", 1, lambda *shape: chosen(*shape)[:1], np.logical_not),
    Plain("Select", 1, chosen, np.where),
    Plain("Convert", 1, one, lambda x: x.astype(np.int32), {"destination_type": "i32"}),
    Plain("MatMul", 1, products, np.matmul),
    Plain("Softmax", 8, one, softmax, {"axis": "1"}),
    Plain("ReduceSum", 1, with_integers([1]), lambda x, axes: x.sum(tuple(axes.tolist()))),
    Plain("ReduceMean", 1, with_integers([1]), lambda x, axes: x.mean(tuple(axes.tolist()))),
    Plain("ReduceMax", 1, with_integers([1]), lambda x, axes: x.max(tuple(axes.tolist()))),
    Plain("Reshape", 1, with_integers([-1, 16]), lambda x, shape: x.reshape(shape.tolist())),
    Plain(
        "Squeeze",
        1,
        lambda *shape: (reals(*shape)[:, np.newaxis], np.array([1])),
        lambda x, axes: x.squeeze(tuple(axes.tolist())),
    ),
    Plain("Unsqueeze", 1, with_integers([0]), lambda x, axes: np.expand_dims(x, tuple(axes.tolist()))),
    Plain("Transpose", 1, with_integers([1, 0]), lambda x, order: x.transpose(order.tolist())),
    Plain("Concat", 1, two, lambda *parts: np.concatenate(parts, 1), {"axis": "1"}),
    Plain("Split", 1, with_integers(1), lambda x, axis: np.split(x, 4, axis.item()), {"num_splits": "4"}),
    Plain("Slice", 8, with_integers([8], [120], [2], [1]), sliced),
    Plain(
        "StridedSlice", 1, with_integers([0, 8], [1, 120], [1, 2]), strided, {"begin_mask": "0,0", "end_mask": "0,0"}
    ),
    Plain("Gather", 8, lambda *shape: (*pieces(*shape), np.array(1)), gathered),
    Plain("ScatterUpdate", 3, updates, scattered),
    Plain("ShapeOf", 3, one, lambda x: np.array(x.shape, np.int64), {"output_type": "i64"}),
    Plain(
        "Broadcast",
        3,
        lambda *shape: (reals(*shape)[:1], np.array(shape)),
        lambda x, shape: np.broadcast_to(x, shape.tolist()),
    ),
    Plain("Tile", 1, with_integers([2, 1]), lambda x, repeats: np.tile(x, repeats.tolist())),
    Plain(
        "Pad",
        12,
        lambda *shape: (reals(*shape), np.array([0, 4]), np.array([1, 4]), np.float32(0)),
        padded,
        {"pad_mode": "constant"},
    ),
    Plain("Range", 4, ends, lambda a, b, step: np.arange(a.item(), b.item(), step.item()), {"output_type": "i64"}),
    Plain(
        "TopK", 11, with_integers(5), top, {"axis": "1", "mode": "max", "sort": "value", "index_element_type": "i32"}
    ),
    Plain("OneHot", 1, codes, one_hot, {"axis": "1"}),
    Plain("CumSum", 3, with_integers(1), lambda x, axis: np.cumsum(x, axis.item())),
    Plain("LSTMCell", 4, lstm, lstm_step, {"hidden_size": "0"}),
)
