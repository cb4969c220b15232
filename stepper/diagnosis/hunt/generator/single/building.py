"""Loops around one operation: on every element type, or with quantised values."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any, Final

import numpy as np
import openvino as ov
import openvino.opset13 as ops
from openvino.op import tensor_iterator

from stepper.diagnosis.hunt.generator.loops import RandomLoop, give_names
from stepper.diagnosis.hunt.generator.single.layers import LAYER_FAMILIES, ROWS, drawn_layer

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
    "transpose": lambda x: ops.transpose(x, _whole(1, 0)),
    "concat": lambda x: ops.concat([x, x], -1),
    "gather": lambda x: ops.gather(x, _whole(1, 0, 1), ops.constant(1)),
    "tile": lambda x: ops.tile(x, _whole(1, 2)),
    "pad": lambda x: ops.pad(x, _whole(0, 1), _whole(1, 0), "edge"),
    "strided_slice": lambda x: ops.strided_slice(x, _whole(0, 1), _whole(2, 3), _whole(1, 1), [1, 0], [1, 0]),
    "cum_sum": lambda x: ops.cum_sum(x, ops.constant(1)),
    "topk": lambda x: ops.topk(x, ops.constant(np.int64(2)), 1, "max", "value").output(0),
    "roll": lambda x: ops.roll(x, _whole(1), _whole(1)),
    "softmax": lambda x: ops.softmax(x, 1),
    "one_hot": lambda x: ops.one_hot(ops.abs(x), ops.constant(6), ops.constant(2.0), ops.constant(-1.0), -1),
}


def _whole(*numbers: int) -> Any:
    return ops.constant(np.array(numbers, np.int64))


def build_operation(seed: int) -> RandomLoop:
    """A loop that applies one operation to slices of its input."""
    rng = random.Random(seed)
    family = rng.choice(("unary", "binary", "compared", "reduced", "moved", "power", "product", *LAYER_FAMILIES))
    if family in LAYER_FAMILIES:
        kind, width = rng.choice(("f32", "f32", "f16")), rng.choice((3, 4, 7, 8))
        layer = drawn_layer(family, seed, rng, width, np.float16 if kind == "f16" else np.float32)
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
        make = lambda x, _y: getattr(ops, name)(x, _whole(1), keep)  # noqa: E731
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
                weights = ops.reshape(weights, _whole(width, width), False)
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
