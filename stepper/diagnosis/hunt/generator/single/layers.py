"""Layers of networks with weights of their own: convolutions, pooling, recurrent cells and sequences.

Each takes a slice x [2, width], and a state of the same shape, and is told in words.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any, Final, NamedTuple

import numpy as np
import openvino.opset13 as ops
import openvino.opset14 as ops14

ROWS: Final = 2


class DrawnLayer(NamedTuple):
    """A random layer: its function of slice and state, and what it is in words."""

    make: Callable[[Any, Any], Any]
    title: str


def drawn_layer(family: str, seed: int, rng: random.Random, width: int, dtype: type[np.floating[Any]]) -> DrawnLayer:
    """Return a random layer of a family (`convolution`, `pooling`, `recurrent`) for slices of this width."""
    return _FAMILIES[family](rng, _Weights(seed, dtype), width)


class _Weights:
    def __init__(self, seed: int, dtype: type[np.floating[Any]]) -> None:
        self._numbers, self.dtype = np.random.default_rng(seed), dtype

    def __call__(self, *shape: int) -> Any:
        return ops.constant(self._numbers.uniform(-1, 1, shape).astype(self.dtype))


def _whole(*numbers: int) -> Any:
    return ops.constant(np.array(numbers, np.int64))


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
        data = ops.reshape(x, _whole(*shape), False)
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
        data = ops.reshape(x, _whole(1, ROWS, width), False)
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

    def held(*leading: int) -> tuple[Any, Any, Any]:
        biases = gates + 1 if kind == "gru" and linear else gates
        return (
            weights(*leading, gates * width, width),
            weights(*leading, gates * width, width),
            weights(*leading, biases * width),
        )

    def cell(x: Any, state: Any) -> Any:
        if kind == "lstm":
            return ops.lstm_cell(x, state, ops.tanh(state), *held(), width, clip=clip).output(0)
        if kind == "gru":
            return ops.gru_cell(x, state, *held(), width, clip=clip, linear_before_reset=linear)
        return ops.rnn_cell(x, state, *held(), width, ["tanh"], [], [], clip)

    def sequence(x: Any, _state: Any) -> Any:
        data = ops.reshape(x, _whole(1, ROWS, width), False)
        ways = 2 if direction == "bidirectional" else 1
        states = [weights(1, ways, width) for _ in range(2 if kind == "lstm" else 1)]
        lengths = ops.constant(np.array([length], np.int32))
        if kind == "lstm":
            node = ops.lstm_sequence(data, *states, lengths, *held(ways), width, direction, clip=clip)
        elif kind == "gru":
            node = ops.gru_sequence(
                data, *states, lengths, *held(ways), width, direction, clip=clip, linear_before_reset=linear
            )
        else:
            node = ops.rnn_sequence(data, *states, lengths, *held(ways), width, direction, ["tanh"], [], [], clip)
        return node.output(0)

    title = f"{kind} cell" if is_cell else f"{kind} sequence, {direction}, {length} of {ROWS} steps"
    return DrawnLayer(cell if is_cell else sequence, f"{title}, clip {clip}")


_FAMILIES: Final[dict[str, Callable[[random.Random, _Weights, int], DrawnLayer]]] = {
    "convolution": _convolution,
    "pooling": _pooling,
    "recurrent": _recurrent,
}
LAYER_FAMILIES: Final = tuple(_FAMILIES)
