"""Recurrent sequences: graphs that have one, and what it computes by its page's formulas, row by row, step by step."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from stepper.element_types import Array, of_dtype
from tests.models import Graph, Value

TIME, INPUT, HIDDEN = 5, 3, 4
GATES = {"LSTMSequence": 4, "GRUSequence": 3, "RNNSequence": 1}
ACTIVATIONS = {
    "LSTMSequence": ("sigmoid", "tanh", "tanh"),
    "GRUSequence": ("sigmoid", "tanh"),
    "RNNSequence": ("tanh",),
}
BACKWARDS = {"forward": (False,), "reverse": (True,), "bidirectional": (False, True)}
ALPHA, BETA = 0.3, 0.4


@dataclass(frozen=True)
class Recurrence:
    """A sequence operation of random inputs; `lengths` has one number for each row of the batch."""

    type: str
    direction: str = "forward"
    lengths: Sequence[int] = (TIME,)
    time: int = TIME
    dtype: Any = np.float32
    activations: tuple[str, ...] = ()
    clip: float = 0.0
    linear_before_reset: bool = False

    @property
    def states(self) -> int:
        return 2 if self.type == "LSTMSequence" else 1

    def inputs(self) -> list[Array]:
        """X, the states, the lengths, W, R, B."""
        random = np.random.default_rng(len(self.lengths))
        batch, directions, rows = len(self.lengths), len(BACKWARDS[self.direction]), GATES[self.type] * HIDDEN
        bias = rows + HIDDEN if self.linear_before_reset else rows
        shapes: list[tuple[int, ...]] = [(batch, self.time, INPUT), *[(batch, directions, HIDDEN)] * self.states]
        shapes += [(directions, rows, INPUT), (directions, rows, HIDDEN), (directions, bias)]
        values = [random.standard_normal(shape).astype(self.dtype) for shape in shapes]
        return [*values[:-3], np.array(self.lengths, np.int32), *values[-3:]]

    def attributes(self) -> Mapping[str, object]:
        written: dict[str, object] = {"hidden_size": HIDDEN, "direction": self.direction, "clip": self.clip}
        written["activations"] = ",".join(self.activations or ACTIVATIONS[self.type])
        written["activations_alpha"] = ",".join([str(ALPHA)] * 3)
        written["activations_beta"] = ",".join([str(BETA)] * 3)
        if self.type == "GRUSequence":
            written["linear_before_reset"] = str(self.linear_before_reset).lower()
        return written

    def outputs_in(self, net: Graph, inputs: Sequence[Value], name: str = "sequence") -> list[Value]:
        """The operation in a graph; the values of its outputs."""
        first, dims = (
            net.apply(
                self.type,
                *inputs,
                version="opset5",
                name=name,
                outputs=1 + self.states,
                dims=(),
                **self.attributes(),
            ),
            (-1, -1, -1),
        )
        others = [Value(first.layer, first.port + 1 + k, first.type, dims) for k in range(self.states)]
        return [Value(first.layer, first.port, first.type, (-1, -1, -1, -1)), *others]

    def graph(self, *, constant_weights: bool = True, dynamic: bool = False) -> Graph:
        """The operation alone between Parameters (W, R and B: Constants) and Results."""
        net, values = Graph(), self.inputs()
        free = len(values) - 3 if constant_weights else len(values)
        inputs = []
        for index, value in enumerate(values):
            dims = [-1] * value.ndim if dynamic else value.shape
            kind = of_dtype(value.dtype).name
            inputs.append(net.parameter(f"in{index}", kind, dims) if index < free else net.constant(value, value.dtype))
        for index, value in enumerate(self.outputs_in(net, inputs)):
            net.result(value, f"out{index}")
        return net

    def fed(self) -> dict[int, Array]:
        """The values of the Parameters of `graph()`."""
        return dict(enumerate(self.inputs()[:-3]))

    def expected(self) -> list[Array]:
        """Y and the last states in f64."""
        X, *states, lengths, W, R, B = (value.astype(np.float64) for value in self.inputs())
        Y = np.zeros((len(X), len(W), self.time, HIDDEN))
        lasts = [np.zeros(state.shape) for state in states]
        for row, length in enumerate(lengths.astype(int)):
            for number, backwards in enumerate(BACKWARDS[self.direction]):
                now = [state[row, number] for state in states]
                for t in reversed(range(length)) if backwards else range(length):
                    now = self._step(X[row, t], now, W[number], R[number], B[number])
                    Y[row, number, t] = now[0]
                for last, state in zip(lasts, now if length else [0.0] * len(states), strict=True):
                    last[row, number] = state
        return [Y, *lasts]

    def _step(self, x: Array, states: list[Array], W: Array, R: Array, B: Array) -> list[Array]:
        names = self.activations or ACTIVATIONS[self.type]
        functions = [partial(_activated, name, self.clip or np.inf) for name in names]
        step = {"LSTMSequence": _lstm, "GRUSequence": self._gru, "RNNSequence": _rnn}[self.type]
        gates = GATES[self.type]
        return step(functions, x, states, np.split(W, gates), np.split(R, gates), B.reshape(-1, HIDDEN))

    def _gru(self, functions: Any, x: Array, states: list[Array], W: Any, R: Any, B: Array) -> list[Array]:
        (f, g), (H,) = functions, states
        z, r = (f(W[k] @ x + R[k] @ H + B[k]) for k in (0, 1))
        recurrent = r * (R[2] @ H + B[3]) if self.linear_before_reset else R[2] @ (r * H)
        return [(1 - z) * g(W[2] @ x + recurrent + B[2]) + z * H]


def _lstm(functions: Any, x: Array, states: list[Array], W: Any, R: Any, B: Array) -> list[Array]:
    (f, g, h), (H, C) = functions, states
    forget, enter, candidate, leave = (W[k] @ x + R[k] @ H + B[k] for k in range(4))
    cell = f(forget) * C + f(enter) * g(candidate)
    unclipped: Callable[[Array], Array] = partial(_activated, h.args[0], np.inf)
    return [f(leave) * unclipped(cell), cell]


def _rnn(functions: Any, x: Array, states: list[Array], W: Any, R: Any, B: Array) -> list[Array]:
    (f,), (H,) = functions, states
    return [f(W[0] @ x + R[0] @ H + B[0])]


def _activated(name: str, clip: float, x: Array) -> Array:
    x = np.clip(x, -clip, clip)
    match name:
        case "sigmoid":
            return np.asarray(1 / (1 + np.exp(-x)))
        case "hardsigmoid":
            return np.clip(ALPHA * x + BETA, 0, 1)
        case "relu":
            return np.maximum(x, 0)
        case _:
            return np.asarray(np.tanh(x))
