"""The models of the benchmarks, and what a plain loop in numpy computes in their place."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from stepper.element_types import Array
from tests.benchmarks.ir_text import GraphText, PortMap, Value, Weights

ONE = (1,)
NEVER = np.array([-1], np.float32)  # |change| > -1 always holds: the condition is computed, and the trip count ends it
HALF = np.array([0.5], np.float32)


def newton_model(folder: Path, iterations: int, inner: int = 0, *, as_converted: bool = False) -> Path:
    """Newton's square root as a Loop-5: trip count, condition in the body, one carried scalar, one scan output.

    With `inner`, each iteration halves by a Loop of its own, which does so in that many steps. `as_converted`: the
    pieces are what OpenVINO's converter makes of a scan output of ONNX, an Identity and an axis more.
    """
    weights = Weights()
    body = GraphText(weights)
    number, guess = body.parameter("number", "f32", ONE), body.parameter("guess", "f32", ONE)
    quotient = body.apply("Divide", number, guess, shape=ONE)
    total = body.apply("Add", guess, quotient, shape=ONE)
    if inner:
        better = _nested_half(body, total, inner)
    else:
        better = body.apply("Multiply", total, body.constant(HALF), shape=ONE)
    same = body.apply("Identity", better, shape=ONE, opset=16) if as_converted else better
    piece = body.apply("Unsqueeze", same, body.constant(np.array([0])), shape=(1, 1)) if as_converted else same
    change = body.apply("Abs", body.apply("Subtract", better, guess, shape=ONE), shape=ONE)
    going = body.apply("Greater", change, body.constant(NEVER), shape=ONE, to="boolean")
    condition, root = body.result(going), body.result(better)
    joined = body.result(piece) if as_converted else root
    ports = PortMap()
    ports.output(-1, condition, purpose="execution_condition")
    ports.input(2, number)
    ports.input(3, guess)
    ports.carry(root, guess)
    ports.output(0, root)
    ports.output(1, joined, axis=0)

    graph = GraphText(weights)
    start = [graph.parameter("number", "f32", ONE), graph.parameter("guess", "f32", ONE)]
    control = [graph.constant(np.int64(iterations)), graph.constant(np.bool_(True))]
    outputs = [("f32", ONE), ("f32", (iterations, *ONE) if as_converted else (iterations,))]
    last, all_roots = graph.layer("Loop", [*control, *start], outputs, opset=5, name="newton", inside=ports.text(body))
    graph.result(last, "root")
    graph.result(all_roots, "roots")
    return graph.write(folder, f"newton_{iterations}_{inner}{'_converted' * as_converted}")


def _nested_half(body: GraphText, total: Value, steps: int) -> Value:
    """Half of `total`, as a Loop that multiplies by the root of a half so many times."""
    inner = GraphText(body.weights)
    value = inner.parameter("value", "f32", ONE)
    factor = inner.constant(np.array([0.5 ** (1 / steps)], np.float32))
    product = inner.result(inner.apply("Multiply", value, factor, shape=ONE))
    condition = inner.result(inner.constant(np.bool_(True)))
    ports = PortMap()
    ports.output(-1, condition, purpose="execution_condition")
    ports.input(2, value)
    ports.carry(product, value)
    ports.output(0, product)
    control = [body.constant(np.int64(steps)), body.constant(np.bool_(True))]
    return body.layer("Loop", [*control, total], [("f32", ONE)], opset=5, inside=ports.text(inner))[0]


def newton_by_hand(number: Array, guess: Array, iterations: int) -> tuple[Array, Array]:
    """The root and all roots on the way to it."""
    roots, iteration, going = [], 0, True
    while iteration < iterations and going:
        better = (guess + number / guess) * HALF
        going = bool(np.abs(better - guess) > NEVER)
        roots.append(better)
        guess = better
        iteration += 1
    return guess, np.concatenate(roots)


class LstmWeights:
    """Random weights of an LSTM; the gates are in the order forget, input, candidate, output."""

    def __init__(self, inputs: int, hidden: int) -> None:
        random = np.random.default_rng(0)

        def uniform(*shape: int) -> Array:
            return random.uniform(-0.1, 0.1, shape).astype(np.float32)

        self.inputs, self.hidden = inputs, hidden
        self.W, self.R, self.B = uniform(4 * hidden, inputs), uniform(4 * hidden, hidden), uniform(4 * hidden)


def lstm_model(folder: Path, weights: LstmWeights, iterations: int) -> Path:
    """A TensorIterator over [1, iterations, inputs]: a slice squeezed, an LSTMCell, its state unsqueezed and joined."""
    inputs, hidden, state = weights.inputs, weights.hidden, (1, weights.hidden)
    graph = GraphText(Weights())
    body = GraphText(graph.weights)
    piece, axis = body.parameter("piece", "f32", (1, 1, inputs)), body.constant(np.array([1], np.int64))
    H, C = body.parameter("H", "f32", state), body.parameter("C", "f32", state)
    X = body.apply("Squeeze", piece, axis, shape=(1, inputs))
    cell = [X, H, C, *(body.constant(value) for value in (weights.W, weights.R, weights.B))]
    next_H, next_C = body.layer("LSTMCell", cell, [("f32", state)] * 2, opset=4, hidden_size=hidden)
    row = body.apply("Unsqueeze", next_H, axis, shape=(1, 1, hidden))
    hidden_result, cell_result, row_result = body.result(next_H), body.result(next_C), body.result(row)
    ports = PortMap()
    ports.input(0, piece, axis=1)
    ports.input(1, H)
    ports.input(2, C)
    ports.carry(hidden_result, H)
    ports.carry(cell_result, C)
    ports.output(0, row_result, axis=1)
    ports.output(1, hidden_result)
    ports.output(2, cell_result)

    shapes = {"x": (1, iterations, inputs), "h": state, "c": state}
    given = [graph.parameter(name, "f32", shape) for name, shape in shapes.items()]
    outputs = [("f32", (1, iterations, hidden)), ("f32", state), ("f32", state)]
    values = graph.layer("TensorIterator", given, outputs, name="lstm", inside=ports.text(body))
    for name, value in zip(("rows", "last_h", "last_c"), values, strict=True):
        graph.result(value, name)
    return graph.write(folder, f"lstm_{iterations}")


def lstm_by_hand(weights: LstmWeights, x: Array, h: Array, c: Array) -> tuple[Array, Array, Array]:
    """The hidden states of all iterations, and both states after the last."""
    W, R, B, n = weights.W.T, weights.R.T, weights.B, weights.hidden
    rows = []
    for t in range(x.shape[1]):
        gates = x[:, t] @ W + h @ R + B
        forget, input, output = sigmoid(gates[:, :n]), sigmoid(gates[:, n : 2 * n]), sigmoid(gates[:, 3 * n :])
        c = forget * c + input * np.tanh(gates[:, 2 * n : 3 * n])
        h = output * np.tanh(c)
        rows.append(h[:, np.newaxis])
    return np.concatenate(rows, axis=1), h, c


def sigmoid(x: Array) -> Array:
    """1 / (1 + exp(-x))."""
    return 1 / (1 + np.exp(-x))
