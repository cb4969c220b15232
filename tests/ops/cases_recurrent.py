"""Cases of the recurrent cells and sequences, recorded from the runtime."""

from __future__ import annotations

import numpy as np

from stepper.element_types import Array
from tests.ops.recording import Case

_random = np.random.default_rng(2)
INPUT, HIDDEN, BATCH, TIME = 3, 4, 2, 5


def f(*shape: int) -> Array:
    return _random.standard_normal(shape).astype(np.float32)


def cell(name: str, type: str, version: int, gates: int, states: int = 1, bias: int = 0, **attributes: str) -> Case:
    """A cell with random inputs: X, the states, W, R and B."""
    inputs = [f(BATCH, INPUT), *(f(BATCH, HIDDEN) for _ in range(states)), f(gates * HIDDEN, INPUT)]
    inputs += [f(gates * HIDDEN, HIDDEN), f((bias or gates) * HIDDEN)]
    constant = set(range(1 + states, 4 + states))
    attributes = {"hidden_size": str(HIDDEN), **attributes}
    return Case(name, type, version, inputs, attributes, outputs=states, constant=constant)


def sequence(name: str, type: str, gates: int, states: int = 1, bias: int = 0, **attributes: str) -> Case:
    """A sequence with random inputs; the second one of the batch ends early."""
    directions = 2 if attributes["direction"] == "bidirectional" else 1
    inputs = [f(BATCH, TIME, INPUT), *(f(BATCH, directions, HIDDEN) for _ in range(states))]
    inputs += [np.array([TIME, 3], np.int32), f(directions, gates * HIDDEN, INPUT)]
    inputs += [f(directions, gates * HIDDEN, HIDDEN), f(directions, (bias or gates) * HIDDEN)]
    constant = set(range(2 + states, 5 + states))
    attributes = {"hidden_size": str(HIDDEN), **attributes}
    return Case(name, type, 5, inputs, attributes, outputs=1 + states, constant=constant)


LSTM, GRU, RNN = {"gates": 4, "states": 2}, {"gates": 3}, {"gates": 1}
NAMES = {"LSTMSequence": "sigmoid,tanh,tanh", "GRUSequence": "sigmoid,tanh", "RNNSequence": "tanh"}
KINDS = {"LSTMSequence": LSTM, "GRUSequence": GRU, "RNNSequence": RNN}

CASES = [
    cell("lstm", "LSTMCell", 4, **LSTM),
    cell("lstm_activations", "LSTMCell", 4, **LSTM, activations="tanh,relu,sigmoid"),
    cell("lstm_clip", "LSTMCell", 4, **LSTM, clip="0.5"),
    cell("lstm_1", "LSTMCell", 1, **LSTM, weights_format="fico"),
    cell("lstm_1_other_format", "LSTMCell", 1, **LSTM, weights_format="ifco"),
    cell("gru", "GRUCell", 3, **GRU),
    cell("gru_activations", "GRUCell", 3, **GRU, activations="tanh,relu", clip="0.5"),
    cell("gru_linear_before_reset", "GRUCell", 3, **GRU, bias=4, linear_before_reset="true"),
    cell("rnn", "RNNCell", 3, **RNN),
    cell("rnn_relu_clip", "RNNCell", 3, **RNN, activations="relu", clip="0.5"),
    *(
        sequence(f"{type}_{direction}", type, **KINDS[type], direction=direction, activations=NAMES[type])
        for type in NAMES
        for direction in ("forward", "reverse", "bidirectional")
    ),
    sequence(
        "GRUSequence_linear_before_reset",
        "GRUSequence",
        **GRU,
        bias=4,
        direction="reverse",
        activations="sigmoid,tanh",
        linear_before_reset="true",
    ),
    sequence(
        "LSTMSequence_clip", "LSTMSequence", **LSTM, direction="forward", activations="tanh,tanh,relu", clip="0.4"
    ),
]
