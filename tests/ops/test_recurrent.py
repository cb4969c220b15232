"""What the runtime refuses or leaves out: hardsigmoid, merged weights, peepholes, half precision, faulty inputs."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from stepper.errors import KernelError
from stepper.ops import registry
from stepper.ops.recurrent import (
    activations_of_gates,
    gru_cell,
    gru_sequence,
    lstm_cell,
    lstm_sequence,
    rnn_cell,
    rnn_sequence,
)
from tests.tables import each_row

RANDOM = np.random.default_rng(0)
B, I, H, T = 3, 2, 4, 5  # noqa: E741 - batch, input, hidden, time


def f(*shape: int) -> np.ndarray:
    return RANDOM.standard_normal(shape).astype(np.float32)


X, HIDDEN, CELL = f(B, I), f(B, H), f(B, H)
W, R, BIAS, PEEPHOLES = f(4 * H, I), f(4 * H, H), f(4 * H), f(3 * H)
FUNCTIONS = {
    "sigmoid": lambda x: 1 / (1 + math.exp(-x)),
    "tanh": math.tanh,
    "relu": lambda x: max(x, 0.0),
    "hardsigmoid": lambda x: min(max(0.2 * x + 0.5, 0.0), 1.0),
}


def lstm_by_element(names: tuple[str, ...], clip: float, peepholes: np.ndarray, coupled: bool) -> np.ndarray:
    """(Ht, Ct), one number after the other."""
    f_, g, h = (FUNCTIONS[name] for name in names)
    result = np.zeros((2, B, H))
    for row in range(B):
        for unit in range(H):

            def preactivation(gate: int, row: int = row, unit: int = unit) -> float:
                at = gate * H + unit
                from_input = sum(float(X[row, k] * W[at, k]) for k in range(I))
                return from_input + sum(float(HIDDEN[row, k] * R[at, k]) for k in range(H)) + float(BIAS[at])

            def clipped(x: float) -> float:
                return min(max(x, -clip), clip)

            old = float(CELL[row, unit])
            p_i, p_o, p_f = (float(peepholes[gate * H + unit]) for gate in range(3))
            i = f_(clipped(preactivation(1) + p_i * old))
            forget = 1 - i if coupled else f_(clipped(preactivation(0) + p_f * old))
            new = forget * old + i * g(clipped(preactivation(2)))
            result[:, row, unit] = f_(clipped(preactivation(3) + p_o * new)) * h(new), new
    return result


@each_row("names", [("sigmoid", "tanh", "tanh"), ("hardsigmoid", "relu", "hardsigmoid")])
@each_row("clip", [0.0, 0.6])
@each_row(("peepholes", "coupled"), [(False, False), (True, False), (False, True), (True, True)])
def test_an_lstm_cell_computes_its_formula(names: tuple[str, ...], clip: float, peepholes: bool, coupled: bool) -> None:
    P = PEEPHOLES if peepholes else np.zeros(3 * H, np.float32)
    expected = lstm_by_element(names, clip or math.inf, P, coupled)
    result = lstm_cell(X, HIDDEN, CELL, W, R, BIAS, P, activations=names, clip=clip, input_forget=coupled)
    np.testing.assert_allclose(np.stack(result), expected, rtol=1e-4, atol=1e-5)


@each_row("peepholes", [None, PEEPHOLES])
def test_five_inputs_are_the_merged_weights_and_the_bias(peepholes: Any) -> None:
    merged = lstm_cell(X, HIDDEN, CELL, np.concatenate([W, R], axis=1), BIAS, None, peepholes)
    apart = lstm_cell(X, HIDDEN, CELL, W, R, BIAS, peepholes)
    np.testing.assert_allclose(np.stack(merged), np.stack(apart), rtol=1e-5, atol=1e-6)


def test_five_inputs_with_two_matrices_have_no_bias() -> None:
    without = lstm_cell(X, HIDDEN, CELL, W, R)
    np.testing.assert_array_equal(np.stack(without), np.stack(lstm_cell(X, HIDDEN, CELL, W, R, 0 * BIAS)))


def test_alpha_and_beta_shape_a_hard_sigmoid() -> None:
    (function, other) = activations_of_gates(("HardSigmoid", "tanh"), (0.5, 9.0), (0.25,), 2)
    np.testing.assert_allclose(function(np.array([-1.0, 0.5, 9.0])), [0.0, 0.5, 1.0])
    assert other is np.tanh


@each_row("names", [("sigmoid",), ("sigmoid", "swish"), ()])
def test_activations_that_a_cell_cannot_have_are_refused(names: tuple[str, ...]) -> None:
    with pytest.raises(KernelError, match="activation"):
        gru_cell(X, HIDDEN, f(3 * H, I), f(3 * H, H), f(3 * H), activations=names)


@each_row("linear_before_reset", [False, True])
def test_a_gru_cell_computes_its_formula(linear_before_reset: bool) -> None:
    w, r, b = f(3, H, I), f(3, H, H), f(4 if linear_before_reset else 3, H)
    sigmoid = np.vectorize(FUNCTIONS["sigmoid"])
    z = sigmoid(X @ w[0].T + HIDDEN @ r[0].T + b[0])
    reset = sigmoid(X @ w[1].T + HIDDEN @ r[1].T + b[1])
    inner = reset * (HIDDEN @ r[2].T + b[-1]) + b[2] if linear_before_reset else (reset * HIDDEN) @ r[2].T + b[2]
    expected = (1 - z) * np.tanh(X @ w[2].T + inner) + z * HIDDEN
    parameters = w.reshape(3 * H, I), r.reshape(3 * H, H), b.reshape(-1)
    result = gru_cell(X, HIDDEN, *parameters, linear_before_reset=linear_before_reset)
    np.testing.assert_allclose(result, expected, rtol=1e-4, atol=1e-6)


def test_half_precision_is_rounded_once() -> None:
    narrow = [x.astype(np.float16) for x in (X, HIDDEN, CELL, W, R, BIAS)]
    exact = lstm_cell(*(x.astype(np.float32) for x in narrow))
    for result, expected in zip(lstm_cell(*narrow), exact, strict=True):
        assert result.dtype == np.float16
        np.testing.assert_array_equal(result, expected.astype(np.float16))


def test_double_precision_stays() -> None:
    result = rnn_cell(*(x.astype(np.float64) for x in (X, HIDDEN, f(H, I), f(H, H), f(H))))
    assert result.dtype == np.float64


def test_an_empty_batch_gives_empty_states() -> None:
    hidden, cell = lstm_cell(X[:0], HIDDEN[:0], CELL[:0], W, R, BIAS)
    assert hidden.shape == cell.shape == (0, H)


def test_no_input_is_written_to() -> None:
    inputs = [x.copy() for x in (X, HIDDEN, CELL, W, R, BIAS)]
    lstm_cell(*inputs, activations=("relu", "relu", "relu"), clip=0.1)
    for before, after in zip((X, HIDDEN, CELL, W, R, BIAS), inputs, strict=True):
        np.testing.assert_array_equal(before, after)


def test_a_hidden_size_that_contradicts_the_shapes_is_refused() -> None:
    with pytest.raises(KernelError, match="hidden_size 5"):
        lstm_cell(X, HIDDEN, CELL, W, R, BIAS, hidden_size=5)


@each_row("version", [1, 4])
def test_the_registered_cells_take_five_inputs_and_more(version: int) -> None:
    kernel = registry.find("LSTMCell", version)
    assert kernel is not None
    assert kernel.accepted_inputs() == (5, 7 if version == 1 else 6)


LENGTHS = np.array([5, 0, 3], np.int64)


@each_row("direction", ["forward", "reverse", "bidirectional"])
def test_a_sequence_steps_its_cell_over_what_each_row_has(direction: Any) -> None:
    backward = {"forward": [False], "reverse": [True], "bidirectional": [False, True]}[direction]
    count = len(backward)
    x, h, c = f(B, T, I), f(B, count, H), f(B, count, H)
    w, r, b = f(count, 4 * H, I), f(count, 4 * H, H), f(count, 4 * H)
    Y, last_hidden, last_cell = lstm_sequence(x, h, c, LENGTHS, w, r, b, direction=direction)
    for number, reverse in enumerate(backward):
        for row, length in enumerate(LENGTHS):
            hidden, cell = h[row : row + 1, number], c[row : row + 1, number]
            expected = np.zeros((T, H), np.float32)
            for t in reversed(range(length)) if reverse else range(length):
                hidden, cell = lstm_cell(x[row : row + 1, t], hidden, cell, w[number], r[number], b[number])
                expected[t] = hidden
            np.testing.assert_allclose(Y[row, number], expected, rtol=1e-5, atol=1e-6)
            ended = (0 * hidden, 0 * cell) if length == 0 else (hidden, cell)
            np.testing.assert_allclose(last_hidden[row, number], ended[0][0], rtol=1e-5, atol=1e-6)
            np.testing.assert_allclose(last_cell[row, number], ended[1][0], rtol=1e-5, atol=1e-6)


@each_row(("sequence", "gates"), [(gru_sequence, 3), (rnn_sequence, 1)])
def test_a_sequence_of_half_precision_is_rounded_at_its_end(sequence: Any, gates: int) -> None:
    inputs = [f(B, T, I), f(B, 1, H), f(1, gates * H, I), f(1, gates * H, H), f(1, gates * H)]
    narrow = [x.astype(np.float16) for x in inputs]
    wide = [x.astype(np.float32) for x in narrow]
    lengths = np.full(B, T)
    exact = sequence(*wide[:2], lengths, *wide[2:])
    for result, expected in zip(sequence(*narrow[:2], lengths, *narrow[2:]), exact, strict=True):
        np.testing.assert_array_equal(result, expected.astype(np.float16))


@each_row("lengths", [[6, 1, 1], [-1, 1, 1], [1, 1]])
def test_lengths_that_the_sequence_does_not_have_are_refused(lengths: list[int]) -> None:
    with pytest.raises(KernelError, match="sequence lengths"):
        rnn_sequence(f(B, T, I), f(B, 1, H), np.array(lengths), f(1, H, I), f(1, H, H), f(1, H))
