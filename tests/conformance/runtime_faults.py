"""Models on which OpenVINO's CPU plugin computes otherwise than the specification says, each for one reason."""

from __future__ import annotations

from typing import Any

import numpy as np
import openvino
from openvino import opset13 as op

from tests.conformance.runtime import cpu_flags

SIZE, HEADS = 8, 2
KEYS = 16 if "avx512f" in cpu_flags() else 8
"""From how many keys on the plugin's own kernel for attention is wrong: as many as a vector has numbers."""


def shared_square(*, in_a_loop: bool = False) -> openvino.Model:
    """x W and x W^T of one constant; in a loop the states, which become so from step to step."""
    weights = op.constant(np.random.default_rng(0).standard_normal((4, 4)).astype(np.float32), name="weights")
    x = op.parameter([2, 4], np.float32, name="x")
    states = [op.parameter([2, 4], np.float32, name=name) if in_a_loop else x for name in ("one", "other")]
    straight = op.matmul(states[0], weights, False, False, name="straight")
    turned = op.matmul(states[1], weights, False, True, name="turned")
    found = [straight, turned]
    if in_a_loop:
        body = openvino.Model([op.result(one) for one in (op.constant(True), *found)], states, "body")
        loop = _loop(3, body, "rounds")
        for state, following in zip(states, found, strict=True):
            loop.set_merged_input(state, x.output(0), following.output(0))
        found = [loop.get_iter_value(one.output(0), -1) for one in found]
    return openvino.Model([op.result(one, name=f"y{k}") for k, one in enumerate(found)], [x], "shared")


def unused_slices() -> openvino.Model:
    """A state that doubles with each row of x, which it does not look at."""
    x, start = op.parameter([5, 2], np.float32, name="x"), op.constant(np.ones((1, 2), np.float32))
    row, state = op.parameter([1, 2], np.float32, name="row"), op.parameter([1, 2], np.float32, name="state")
    doubled = op.multiply(state, op.constant(np.float32(2)), name="doubled")
    cell = op.tensor_iterator()
    cell.set_body(openvino.Model([op.result(doubled)], [row, state], "body"))
    cell.friendly_name = "cell"
    cell.set_sliced_input(row, x.output(0), 0, 1, 1, -1, 0)
    cell.set_merged_input(state, start.output(0), doubled.output(0))
    return openvino.Model([op.result(cell.get_iter_value(doubled.output(0), -1), name="y")], [x], "unused")


def no_iteration(*, handed_on: bool = False) -> openvino.Model:
    """A state that a loop of no iteration gives out: its body sets it to a constant, or to another input."""
    x, row = op.parameter([1, 2], np.float32, name="x"), op.parameter([1, 2], np.float32, name="row")
    trip, other = op.parameter([], np.int64, name="trip"), op.parameter([1, 2], np.float32, name="other")
    following = other if handed_on else op.constant(np.array([[7, 8]], np.float32))
    results = [op.result(op.constant(True)), op.result(following, name="following")]
    loop = _loop(trip, openvino.Model(results, [row, other] if handed_on else [row], "body"), "never")
    loop.set_merged_input(row, x.output(0), following.output(0))
    if handed_on:
        loop.set_invariant_input(other, op.constant(np.array([[5, 6]], np.float32)).output(0))
    return openvino.Model([op.result(loop.get_iter_value(following.output(0), -1), name="y")], [x, trip], "none")


def unread_output() -> openvino.Model:
    """A Result that feeds two outputs of a loop, of which nothing reads the second."""
    x, state = op.parameter([1, 2], np.float32, name="x"), op.parameter([1, 2], np.float32, name="state")
    doubled, given = op.add(state, state), op.multiply(state, op.constant(np.float32(3)), name="given")
    loop = _loop(3, openvino.Model([op.result(one) for one in (op.constant(True), doubled, given)], [state]), "rows")
    loop.set_merged_input(state, x.output(0), doubled.output(0))
    last, _unread = (loop.get_iter_value(given.output(0), -1) for _ in range(2))
    return openvino.Model([op.result(last, name="y")], [x], "unread")


def counter_behind() -> openvino.Model:
    """A state to which each iteration adds its number; the Parameter of a constant stands before that number's."""
    x, state = op.parameter([1], np.int64, name="x"), op.parameter([1], np.int64, name="state")
    step, number = op.parameter([1], np.int64, name="step"), op.parameter([1], np.int64, name="number")
    following = op.add(op.multiply(state, step), number, name="following")
    body = openvino.Model([op.result(op.constant(True)), op.result(following)], [state, step, number], "body")
    loop = _loop(3, body, "rounds", counter=2)
    loop.set_merged_input(state, x.output(0), following.output(0))
    loop.set_invariant_input(step, op.constant(np.array([2], np.int64)).output(0))
    return openvino.Model([op.result(loop.get_iter_value(following.output(0), -1), name="y")], [x], "counter")


def attention(steps: int) -> openvino.Model:
    """A decoder that looks at one key more in each step; the plugin's own kernel for it is wrong from KEYS on."""
    random, width = np.random.default_rng(3), HEADS * SIZE
    start = op.parameter([1, width], np.float32, name="x")
    nothing = [op.constant(np.zeros((HEADS, 0, SIZE), np.float32)) for _ in range(2)]
    x = op.parameter([1, width], np.float32, name="token")
    keys = op.parameter([HEADS, -1, SIZE], np.float32, name="keys")
    values = op.parameter([HEADS, -1, SIZE], np.float32, name="values")
    weights = op.constant(random.standard_normal((3 * width, width)).astype(np.float32) * np.float32(0.3))
    parts = op.reshape(op.matmul(x, weights, False, True), op.constant(np.array([3, HEADS, 1, SIZE])), False)
    split = op.split(parts, op.constant(0), 3)
    query, key, value = (op.squeeze(split.output(index), op.constant(0)) for index in range(3))
    all_keys, all_values = op.concat([keys, key], 1, name="all_keys"), op.concat([values, value], 1)
    scale = op.constant(np.full((1, 1, 1), np.sqrt(SIZE), np.float32))
    scores = op.divide(op.matmul(query, all_keys, False, True, name="scores"), scale)
    attended = op.matmul(op.softmax(scores, 2), all_values, False, False, name="attended")
    following = op.tanh(op.add(op.reshape(attended, op.constant(np.array([1, width])), False), x), name="following")
    results = [op.result(one) for one in (op.constant(True), following, all_keys, all_values)]
    loop = _loop(steps, openvino.Model(results, [x, keys, values], "body"), "decoder")
    for parameter, given, result in zip(
        (x, keys, values), (start, *nothing), (following, all_keys, all_values), strict=True
    ):
        loop.set_merged_input(parameter, given.output(0), result.output(0))
    last = loop.get_iter_value(following.output(0), -1)
    loop.get_iter_value(all_keys.output(0), -1)
    loop.get_iter_value(all_values.output(0), -1)
    return openvino.Model([op.result(last, name="last")], [start], "attention")


def compressed_weights() -> openvino.Model:
    """A product with weights of 8 bits and a scale for each row."""
    random = np.random.default_rng(1)
    x = op.parameter([4, 128], np.float32, name="x")
    stored = op.constant(random.integers(-127, 128, (64, 128)).astype(np.int8))
    scale = op.constant((random.uniform(0.5, 1.5, (64, 1)) / 127).astype(np.float32))
    weights = op.multiply(op.convert(stored, np.float32), scale)
    product = op.matmul(x, weights, False, True, name="product")
    return openvino.Model([op.result(op.tanh(product), name="y")], [x], "compressed")


def fake_quantised() -> openvino.Model:
    """Convolutions whose weights and activations are quantised to 8 bits."""
    random = np.random.default_rng(1)
    x = op.parameter([1, 3, 16, 16], np.float32, name="x")

    def quantised(value: Any, low: float, high: float, levels: int = 256) -> Any:
        ends = [op.constant(np.float32(end)) for end in (low, high, low, high)]
        return op.fake_quantize(value, *ends, levels)

    y = quantised(x, -3, 3)
    for channels, kernels in ((3, 16), (16, 16), (16, 8)):
        weights = op.constant((random.standard_normal((kernels, channels, 3, 3)) * 0.2).astype(np.float32))
        y = op.convolution(y, quantised(weights, -0.6, 0.6, 255), [1, 1], [1, 1], [1, 1], [1, 1])
        y = quantised(op.relu(y), 0, 6)
    return openvino.Model([op.result(y, name="y")], [x], "quantised")


def _loop(count: Any, body: openvino.Model, name: str, counter: int = -1) -> Any:
    loop = op.loop(op.constant(np.int64(count)) if isinstance(count, int) else count, op.constant(True))
    loop.set_function(body)
    loop.set_special_body_ports([counter, 0])
    loop.friendly_name = name
    return loop
