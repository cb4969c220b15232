"""Recurrent sequences: LSTMSequence, GRUSequence, RNNSequence, which step the cells of `recurrent` over time.

Source: the sequences' pages (category Sequence processing). Y is zero after a sequence's length, and so are the last
states of a sequence of length 0.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, Final, Literal, NamedTuple

import numpy as np

from stepper.element_types import Array
from stepper.errors import KernelError
from stepper.ops.operands import shape_text
from stepper.ops.products import matrix_product
from stepper.ops.recurrent import (
    check_shapes,
    gru_cell,
    gru_step,
    lstm_cell,
    lstm_step,
    rnn_cell,
    rnn_step,
    rounding_once,
)
from stepper.ops.registry import attributes_of, kernel

Direction = Literal["forward", "reverse", "bidirectional"]
_ELEMENTS_AT_ONCE: Final = 2**22
"""Elements of X Wᵀ that are computed at once: 16 MB of f32."""

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
    hidden_size: int = 0,
    **attributes: Any,
) -> tuple[Array, Array, Array]:
    """Return all hidden states, the last hidden state and the last cell state of each direction."""
    cell = Recurrence(partial(lstm_step, **attributes), 4, hidden_size)
    Y, (last_hidden, last_cell) = _sequences(cell, X, (H, C), sequence_lengths, (W, R, B), direction)
    return Y, last_hidden, last_cell


def _of_one_state(
    cell: Callable[..., Array], step: Callable[..., Array], gates: int
) -> Callable[..., tuple[Array, Array]]:
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
        hidden_size: int = 0,
        **attributes: Any,
    ) -> tuple[Array, Array]:
        """Return all hidden states and the last hidden state of each direction."""

        def stepped(*inputs: Array) -> tuple[Array, ...]:
            return (step(*inputs, **attributes),)

        recurrence = Recurrence(stepped, gates, hidden_size)
        Y, (last,) = _sequences(recurrence, X, (H,), sequence_lengths, (W, R, B), direction)
        return Y, last

    return sequence


gru_sequence = kernel("GRUSequence", 5)(_of_one_state(gru_cell, gru_step, 3))
rnn_sequence = kernel("RNNSequence", 5)(_of_one_state(rnn_cell, rnn_step, 1))


class Recurrence(NamedTuple):
    """The cell of a sequence: the states from X Wᵀ, the states, R and B; its number of gates; its declared size."""

    step: Callable[..., tuple[Array, ...]]
    gates: int
    hidden_size: int


def _sequences(
    cell: Recurrence,
    X: Array,
    states: tuple[Array, ...],
    sequence_lengths: Array,
    parameters: tuple[Array, Array, Array],
    direction: str,
) -> tuple[Array, tuple[Array, ...]]:
    """Y and the last states, the directions side by side on axis 1."""
    backward = _BACKWARD[direction]
    lengths = _lengths(sequence_lengths, X, states, parameters, len(backward))
    W, R, B = parameters
    ran = [
        _sequence(cell, X, tuple(state[:, at].copy() for state in states), lengths, (W[at], R[at], B[at]), reverse)
        for at, reverse in enumerate(backward)
    ]
    outputs, last = zip(*ran, strict=True)
    return np.stack(outputs, axis=1), tuple(np.stack(each, axis=1) for each in zip(*last, strict=True))


def _sequence(
    cell: Recurrence,
    X: Array,
    states: tuple[Array, ...],
    lengths: Array,
    parameters: tuple[Array, Array, Array],
    reverse: bool,
) -> tuple[Array, tuple[Array, ...]]:
    """Return one direction: a step takes the sequences not ended, a reverse one from their ends backwards."""
    batch, time, _ = X.shape
    W, R, B = parameters
    Y = np.zeros((batch, time, states[0].shape[1]), X.dtype)
    steps = int(lengths.max(initial=0))
    none_ends = bool((lengths == time).all())
    if steps:
        check_shapes(X[:, 0], states[0], W, R, cell.gates, cell.hidden_size)
    from_input = _input_products(X, W, lengths, steps, reverse)
    for t, product in zip(range(steps), from_input, strict=True):
        active = slice(None) if none_ends else np.flatnonzero(t < lengths)
        position = (time if none_ends else lengths[active]) - 1 - t if reverse else t
        new_states = cell.step(product[active], *(state[active] for state in states), R, B)
        Y[active, position] = new_states[0]
        for state, new in zip(states, new_states, strict=True):
            state[active] = new
    for state in states:
        state[lengths == 0] = 0
    return Y, states


def _input_products(X: Array, W: Array, lengths: Array, steps: int, reverse: bool) -> Iterator[Array]:
    """Yield X Wᵀ of each step, [batch, gates · n]; computed for many steps in one product."""
    batch, _time, size = X.shape
    rows, at_once = np.arange(batch), max(1, _ELEMENTS_AT_ONCE // max(1, batch * len(W)))
    for first in range(0, steps, at_once):
        times = np.arange(first, min(steps, first + at_once))
        taken = X[rows, np.maximum(lengths - 1 - times[:, None], 0)] if reverse else X[:, times].swapaxes(0, 1)
        yield from matrix_product(taken.reshape(-1, size), W.T).reshape(len(times), batch, -1)


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
