"""LSTMCell, GRUCell and RNNCell in numpy, with their default activations: they have no reference kernels."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

Cell = Callable[[Any, list[np.ndarray]], list[np.ndarray]]


def sigmoid(x: np.ndarray) -> np.ndarray:
    """The logistic function."""
    value: np.ndarray = 1 / (1 + np.exp(-x))
    return value


def lstm_cell(node: Any, arguments: list[np.ndarray]) -> list[np.ndarray]:
    """LSTMCell with gates in the order forget, input, candidate, output."""
    data, hidden, memory, weights, recurrence, bias = (array.astype(np.float64) for array in arguments)
    forget, enter, candidate, leave = np.split(data @ weights.T + hidden @ recurrence.T + bias, 4, axis=1)
    following = sigmoid(forget) * memory + sigmoid(enter) * np.tanh(candidate)
    outputs = [sigmoid(leave) * np.tanh(following), following]
    return [output.astype(arguments[0].dtype) for output in outputs]


def gru_cell(node: Any, arguments: list[np.ndarray]) -> list[np.ndarray]:
    """GRUCell with gates in the order update, reset, hidden."""
    data, hidden, weights, recurrence, bias = (array.astype(np.float64) for array in arguments)
    size = hidden.shape[1]
    update_in, reset_in, hidden_in = np.split(data @ weights.T, 3, axis=1)
    update_by, reset_by, hidden_by = np.split(recurrence, 3, axis=0)
    update = sigmoid(update_in + hidden @ update_by.T + bias[:size])
    reset = sigmoid(reset_in + hidden @ reset_by.T + bias[size : 2 * size])
    offset = bias[2 * size : 3 * size]
    if node.get_attributes()["linear_before_reset"]:
        candidate = np.tanh(hidden_in + reset * (hidden @ hidden_by.T + bias[3 * size :]) + offset)
    else:
        candidate = np.tanh(hidden_in + (reset * hidden) @ hidden_by.T + offset)
    return [((1 - update) * candidate + update * hidden).astype(arguments[0].dtype)]


def rnn_cell(node: Any, arguments: list[np.ndarray]) -> list[np.ndarray]:
    """RNNCell."""
    data, hidden, weights, recurrence, bias = (array.astype(np.float64) for array in arguments)
    return [np.tanh(data @ weights.T + hidden @ recurrence.T + bias).astype(arguments[0].dtype)]


CELLS: dict[str, Cell] = {"LSTMCell": lstm_cell, "GRUCell": gru_cell, "RNNCell": rnn_cell}
"""The cell of each type."""
