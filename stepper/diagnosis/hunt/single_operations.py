"""Loops around one operation: on every element type, a layer of a network, or with quantised values."""

from __future__ import annotations

import random
from collections.abc import Callable
from functools import partial
from typing import Any, Final

import numpy as np
import openvino as ov
import openvino.opset14 as opset14
from openvino.op import tensor_iterator

from stepper.diagnosis.hunt.random_loops import RandomLoop, give_names
from stepper.diagnosis.hunt.random_operations import FLOATING, GATES, ops, random_array, recurrent

ops14: Any = opset14
_ROWS: Final = 2
_INTEGERS: Final = ("i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64")
_ALL: Final = (*FLOATING, *_INTEGERS)

_Make = Callable[[Any, Any], Any]
"""A function of a slice x [2, width], and a state of the same shape."""


class _Weights:
    def __init__(self, seed: int, kind: str) -> None:
        self._numbers, self.dtype = np.random.default_rng(seed), np.float16 if kind == "f16" else np.float32

    def __call__(self, *shape: int) -> Any:
        return ops.constant(self._numbers.uniform(-1, 1, shape).astype(self.dtype))


def _convolution(rng: random.Random, weights: _Weights, width: int) -> _Make:
    """Of the rows as two channels of a line, or as one channel of a picture of two lines."""
    is_flat, kind = rng.random() < 0.6, rng.choice(("plain", "plain", "grouped", "backprop"))
    kernel, channels, inner = rng.randint(1, 3), rng.randint(1, 4), _ROWS if is_flat else 1
    shape, size, strides = [1, _ROWS, width], [kernel], [rng.randint(1, 2)]
    dilations, begin, end = [rng.randint(1, 2)], [rng.randint(0, 2)], [rng.randint(0, 2)]
    if not is_flat:
        shape, size, strides = [1, *shape], [min(kernel, 2), kernel], [1, *strides]
        dilations, begin, end = [1, *dilations], [0, *begin], [1, *end]
    convolve, leading, more = {
        "plain": (ops.convolution, [channels, inner], []),
        "grouped": (ops.group_convolution, [inner, channels, 1], []),
        "backprop": (ops.convolution_backprop_data, [inner, channels], [None]),  # no output shape
    }[kind]

    def make(x: Any, _state: Any) -> Any:
        return convolve(ops.reshape(x, shape, False), weights(*leading, *size), strides, *more, begin, end, dilations)

    return make


def _pooling(rng: random.Random, _weights: _Weights, width: int) -> _Make:
    kernel, stride, dilation = rng.randint(1, 3), rng.randint(1, 3), rng.randint(1, 2)
    pads = [[rng.randint(0, kernel // 2)] for _ in range(2)]
    rounding, kind = rng.choice(("floor", "ceil", "ceil_torch")), rng.choice(("max", "average", "average, no pads"))

    def make(x: Any, _state: Any) -> Any:
        data = ops.reshape(x, [1, _ROWS, width], False)
        if kind == "max":
            return ops14.max_pool(data, [stride], [dilation], *pads, [kernel], rounding).output(0)
        return ops14.avg_pool(data, [stride], *pads, [kernel], kind != "average", rounding)

    return make


def _recurrent(rng: random.Random, weights: _Weights, width: int) -> _Make:
    """A cell on the rows and the state, or a sequence of which the rows are the steps."""
    kind, is_cell = rng.choice(tuple(GATES)), rng.random() < 0.5
    direction, length = rng.choice(("forward", "reverse", "bidirectional")), rng.randint(1, _ROWS)
    options: dict[str, Any] = {"clip": rng.choice((0.0, 0.0, 0.7))}
    if kind == "gru":
        options["linear_before_reset"] = rng.random() < 0.5
    count = 2 if kind == "lstm" else 1

    def make(x: Any, state: Any) -> Any:
        if is_cell:
            given, leading = [x, state, ops.tanh(state)][: 1 + count], []
        else:
            options["direction"], leading = direction, [2 if direction == "bidirectional" else 1]
            states = [weights(1, *leading, width) for _ in range(count)]
            given = [ops.reshape(x, [1, _ROWS, width], False), *states, ops.constant(np.array([length], np.int32))]
        name = f"{kind}_{'cell' if is_cell else 'sequence'}"
        return recurrent(name, given, width, width, weights, *leading, **options).output(0)

    return make


_LAYERS: Final = {"convolution": _convolution, "pooling": _pooling, "recurrent": _recurrent}

_UNARY: Final[tuple[tuple[str, tuple[str, ...], float, float], ...]] = (
    ("acos asin atan atanh cos cosh sin sinh tan", FLOATING, -0.9, 0.9),
    ("asinh elu erf exp gelu hsigmoid hswish mish", FLOATING, -3.0, 3.0),
    ("sigmoid softplus softsign tanh ceiling floor swish", FLOATING, -3.0, 3.0),
    ("acosh log sqrt", FLOATING, 1.0, 4.0),
    ("abs negative relu sign round", _ALL, -5.0, 5.0),
)
"""Functions with the element types and the numbers that they take."""
_MORE_INPUTS: Final = {"elu": (0.7,), "gelu": ("erf",), "round": ("half_to_even",)}
_NAMES: Final = {
    "binary": "add subtract multiply divide maximum minimum mod floor_mod squared_difference",
    "compared": "equal not_equal greater greater_equal less less_equal",
    "reduced": "reduce_sum reduce_mean reduce_max reduce_min reduce_prod reduce_l1 reduce_l2",
}
_MOVED: Final[dict[str, Callable[[Any], Any]]] = {
    "transpose": lambda x: ops.transpose(x, [1, 0]),
    "concat": lambda x: ops.concat([x, x], -1),
    "gather": lambda x: ops.gather(x, [1, 0, 1], 1),
    "tile": lambda x: ops.tile(x, [1, 2]),
    "pad": lambda x: ops.pad(x, [0, 1], [1, 0], "edge"),
    "strided_slice": lambda x: ops.strided_slice(x, [0, 1], [2, 3], [1, 1], [1, 0], [1, 0]),
    "cum_sum": lambda x: ops.cum_sum(x, 1),
    "topk": lambda x: ops.topk(x, ops.constant(np.int64(2)), 1, "max", "value").output(0),
    "roll": lambda x: ops.roll(x, [1], [1]),
    "softmax": lambda x: ops.softmax(x, 1),
    "one_hot": lambda x: ops.one_hot(ops.abs(x), 6, np.float32(2), np.float32(-1), -1),
}


def build_operation(seed: int) -> RandomLoop:
    """A loop that applies one operation to slices of its input."""
    rng = random.Random(seed)
    around = partial(_around, seed, rng)
    family = rng.choice(("unary", "binary", "compared", "reduced", "moved", "power", "product", *_LAYERS))
    if draw := _LAYERS.get(family):
        kind, width = rng.choice(("f32", "f32", "f16")), rng.choice((3, 4, 7, 8))
        return around(draw(rng, _Weights(seed, kind), width), kind, (-2.0, 2.0), width)
    types: tuple[str, ...] = _ALL
    low, high, flag = -5.0, 5.0, rng.random() < 0.5
    make: _Make = ops.power
    if family == "unary":
        functions, types, low, high = rng.choices(_UNARY, [len(row[0].split()) for row in _UNARY])[0]
        name = rng.choice(functions.split())
        make = lambda x, _y: getattr(ops, name)(x, *_MORE_INPUTS.get(name, ()))  # noqa: E731
    elif family in _NAMES:
        name = rng.choice(_NAMES[family].split())
        make = getattr(ops, name) if family != "reduced" else lambda x, _y: getattr(ops, name)(x, 1, flag)
    elif family == "moved":
        name = rng.choice(tuple(_MOVED))
        types = (*types, "boolean") if name in ("transpose", "concat", "gather", "tile") else types
        make = lambda x, _y: _MOVED[name](x)  # noqa: E731
    elif family == "power":
        low, high, types = 1.0, 3.0, FLOATING
    else:
        types = FLOATING
        make = lambda x, y: ops.matmul(x, y, not flag, flag)  # noqa: E731
    return around(make, rng.choice(types), (low, high))


def build_quantised(seed: int) -> RandomLoop:
    """A loop whose state goes through a product with compressed weights, or through FakeQuantize."""
    rng = random.Random(seed)
    numbers = np.random.default_rng(seed)
    width = rng.choice((4, 8, 16, 32, 64))
    kind, form = rng.choice(("i8", "u8", "i4", "u4", "none")), rng.choice(("plain", "zero point", "grouped"))
    levels = rng.choice((256, 255, 16, 0))

    def quantised(value: Any, reach: float) -> Any:
        ends = [np.float32(end) for end in (-reach, reach, -reach, reach)]
        return ops.fake_quantize(value, *ends, levels) if levels else value

    def make(x: Any, _y: Any) -> Any:
        low, high = {"i8": (-127, 127), "u8": (0, 255), "i4": (-8, 7), "u4": (0, 15), "none": (-9, 9)}[kind]
        stored = numbers.integers(low, high + 1, (width, width))
        if kind == "none":
            weights = quantised(ops.constant((stored / 9).astype(np.float32)), 1.0)
        else:
            grouped, element = form == "grouped" and width >= 8, getattr(ov.Type, kind)
            shape = (width, 2, width // 2) if grouped else (width, width)
            weights = ops.convert(ops.constant(stored.reshape(shape), element), "f32")
            if form == "zero point":
                zero = ops.constant(np.full((width, 1), (low + high + 1) // 2), element)
                weights = ops.subtract(weights, ops.convert(zero, "f32"))
            scale = numbers.uniform(0.5, 1.5, (width, 2, 1) if grouped else (width, 1)) / (high * width**0.5)
            weights = ops.multiply(weights, scale.astype(np.float32))
            if grouped:
                weights = ops.reshape(weights, [width, width], False)
        return ops.tanh(ops.matmul(quantised(x, 3.0), weights, False, True))

    return _around(seed, rng, make, "f32", (-2.0, 2.0), width)


def _around(
    seed: int, rng: random.Random, make: _Make, kind: str, limits: tuple[float, float], width: int = 3
) -> RandomLoop:
    """The loop: it slices x, and concatenates what the operation gives for each slice, and for the state."""
    count, slice_shape = rng.randint(1, 4), [_ROWS, width]
    shapes = [_ROWS * count, width], slice_shape, slice_shape, slice_shape
    x, start, part, other = (ops.parameter(shape, getattr(ov.Type, kind)) for shape in shapes)
    result = ops.result(make(part, other))
    goes_on = ops.result((ops.logical_or if kind == "boolean" else ops.maximum)(part, other))
    node: Any = tensor_iterator()
    node.set_function(ov.Model([result, goes_on], [part, other], "body"))
    first, stride, end = (-1, -_ROWS, 0) if rng.random() < 0.3 else (0, _ROWS, -1)
    node.set_sliced_input(part, x.output(0), first, stride, _ROWS, end, 0)
    node.set_merged_input(other, start.output(0), goes_on.output(0))
    outputs = [node.get_iter_value(result.output(0), -1)]
    shape = result.get_output_partial_shape(0)
    if len(shape) and shape[0].is_static:
        size = shape[0].get_length()
        outputs.append(node.get_concatenated_slices(result.output(0), 0, size, size, -1, 0))
    node.validate_and_infer_types()
    model = ov.Model([ops.result(one) for one in outputs], [x, start], f"random_{seed}")
    give_names(model)
    low = 1 if kind.startswith("u") else limits[0]
    arrays = [random_array(rng, shape, kind, low, limits[1]) for shape in shapes[:2]]
    if kind in _INTEGERS:  # no division by zero
        arrays = [np.where(array == 0, array.dtype.type(1), array) for array in arrays]
    return RandomLoop(model, arrays)
