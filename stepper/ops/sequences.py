"""Recurrent sequences: LSTMSequence, GRUSequence, RNNSequence, which step the cells of `recurrent` over time.

Source: the sequences' pages (category Sequence processing). Y is zero after a sequence's length, and so are the last
states of a sequence of length 0.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, Final, Literal

import numpy as np

from stepper.element_types import Array
from stepper.errors import KernelError
from stepper.ops.operands import shape_text
from stepper.ops.recurrent import gru_cell, lstm_cell, rnn_cell, rounding_once
from stepper.ops.registry import attributes_of, kernel

Direction = Literal["forward", "reverse", "bidirectional"]
Step = Callable[..., tuple[Array, ...]]

_BACKWARD: Final[dict[str, tuple[bool, ...]]] = {
    "forward": (False,),
    "reverse": (True,),
    "bidirectional": (False, True),
}


@kernel("LSTMSequence", 5, without=("input_forget",))
@rounding_once
@attributes_of(lstm_cell)
def lstm_sequence(
    X: Array,
    H: Array,
    C: Array,
    sequence_lengths: Array,
    W: Array,
    R: Array,
    B: Array,
    *,
    direction: Direction = "forward",
    **attributes: Any,
) -> tuple[Array, Array, Array]:
    """Return all hidden states, the last hidden state and the last cell state of each direction."""
    cell = partial(lstm_cell, **attributes)
    Y, (last_hidden, last_cell) = _sequences(cell, X, (H, C), sequence_lengths, (W, R, B), direction)
    return Y, last_hidden, last_cell


def _of_one_state(cell: Callable[..., Array]) -> Callable[..., tuple[Array, Array]]:
    """Return the sequence over a cell whose one state is its output."""

    @rounding_once
    @attributes_of(cell)
    def sequence(
        X: Array,
        H: Array,
        sequence_lengths: Array,
        W: Array,
        R: Array,
        B: Array,
        *,
        direction: Direction = "forward",
        **attributes: Any,
    ) -> tuple[Array, Array]:
        """Return all hidden states and the last hidden state of each direction."""

        def step(*inputs: Array) -> tuple[Array, ...]:
            return (cell(*inputs, **attributes),)

        Y, (last,) = _sequences(step, X, (H,), sequence_lengths, (W, R, B), direction)
        return Y, last

    return sequence


gru_sequence = kernel("GRUSequence", 5)(_of_one_state(gru_cell))
rnn_sequence = kernel("RNNSequence", 5)(_of_one_state(rnn_cell))


def _sequences(
    step: Step,
    X: Array,
    states: tuple[Array, ...],
    sequence_lengths: Array,
    parameters: tuple[Array, ...],
    direction: str,
) -> tuple[Array, tuple[Array, ...]]:
    """Y and the last states, the directions side by side on axis 1."""
    backward = _BACKWARD[direction]
    lengths = _lengths(sequence_lengths, X, states, parameters, len(backward))
    ran = [
        _sequence(
            partial(_with_parameters, step, tuple(parameter[number] for parameter in parameters)),
            X,
            tuple(state[:, number].copy() for state in states),
            lengths,
            reverse,
        )
        for number, reverse in enumerate(backward)
    ]
    outputs, last = zip(*ran, strict=True)
    return np.stack(outputs, axis=1), tuple(np.stack(each, axis=1) for each in zip(*last, strict=True))


def _with_parameters(step: Step, parameters: tuple[Array, ...], x: Array, *states: Array) -> tuple[Array, ...]:
    return step(x, *states, *parameters)


def _sequence(
    step: Step, X: Array, states: tuple[Array, ...], lengths: Array, reverse: bool
) -> tuple[Array, tuple[Array, ...]]:
    """Return one direction: a step takes the sequences not ended, a reverse one from their ends backwards."""
    batch, time, _ = X.shape
    Y = np.zeros((batch, time, states[0].shape[1]), X.dtype)
    none_ends = bool((lengths == time).all())
    for t in range(int(lengths.max(initial=0))):
        active = slice(None) if none_ends else np.flatnonzero(t < lengths)
        position = (time if none_ends else lengths[active]) - 1 - t if reverse else t
        new_states = step(X[active, position], *(state[active] for state in states))
        Y[active, position] = new_states[0]
        for state, new in zip(states, new_states, strict=True):
            state[active] = new
    for state in states:
        state[lengths == 0] = 0
    return Y, states


def _lengths(
    sequence_lengths: Array, X: Array, states: tuple[Array, ...], parameters: tuple[Array, ...], directions: int
) -> Array:
    """Return the lengths as an array of int64, with the shapes that the cells will not see checked."""
    fits = X.ndim == 3 and all(state.ndim == 3 and state.shape[:2] == (X.shape[0], directions) for state in states)
    if not fits or any(parameter.ndim < 2 or parameter.shape[0] != directions for parameter in parameters):
        shapes = ", ".join(shape_text(x.shape) for x in (X, *states, *parameters))
        raise KernelError(f"inputs of shapes {shapes} do not fit a sequence of {directions} direction(s)")
    lengths = np.atleast_1d(np.asarray(sequence_lengths)).astype(np.int64)
    if lengths.shape != X.shape[:1]:
        raise KernelError(f"{shape_text(lengths.shape)} sequence lengths for a batch of {X.shape[0]}")
    if ((lengths < 0) | (lengths > X.shape[1])).any():
        raise KernelError(f"sequence lengths {lengths.tolist()} do not lie within 0 and the {X.shape[1]} time steps")
    return lengths
