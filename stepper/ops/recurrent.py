"""Recurrent cells and sequences, and CTC decoding and loss."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import lru_cache, partial, wraps
from typing import Any, Final, Literal, NamedTuple, TypeVar

import numpy as np

from stepper.element_types import I32, Array, ElementType
from stepper.errors import KernelError
from stepper.ops.elementwise import relu
from stepper.ops.matmul import matrix_product
from stepper.ops.operands import integers, shape_text, single_integer
from stepper.ops.precision import ONES, narrowed, widened
from stepper.ops.registry import attributes_of, kernel

LSTM_ACTIVATIONS = ("sigmoid", "tanh", "tanh")
GRU_ACTIVATIONS = ("sigmoid", "tanh")
RNN_ACTIVATIONS = ("tanh",)

C = TypeVar("C", bound=Callable[..., Any])
Activation = Callable[[Array], Array]


def sigmoid(x: Array) -> Array:
    """Return 1 / (1 + exp(-x))."""
    result = np.negative(x)
    np.exp(result, out=result)
    result += ONES[result.dtype.char]
    return np.reciprocal(result, out=result)


def hardsigmoid(x: Array, alpha: float = 0.2, beta: float = 0.5) -> Array:
    """Return alpha x + beta, held between 0 and 1."""
    return np.clip(alpha * x + beta, 0, 1)


_FUNCTIONS: Final[dict[str, Callable[..., Array]]] = {
    "sigmoid": sigmoid,
    "tanh": np.tanh,
    "relu": relu,
    "hardsigmoid": hardsigmoid,
}


@lru_cache(maxsize=256)
def activations_of_gates(
    names: tuple[str, ...], alpha: tuple[float, ...], beta: tuple[float, ...], gates: int
) -> tuple[Activation, ...]:
    """Return the function for each name; alpha and beta count for those that have parameters.

    Raises KernelError for an unknown name, or where there are fewer names than the cell has gates.
    """
    if len(names) < gates:
        raise KernelError(f"'activations' names {len(names)} functions, the cell needs {gates}")
    return tuple(_activation(name, alpha[at : at + 1], beta[at : at + 1]) for at, name in enumerate(names[:gates]))


def _activation(name: str, alpha: tuple[float, ...], beta: tuple[float, ...]) -> Activation:
    function = _FUNCTIONS.get(name.strip().lower())
    if function is None:
        raise KernelError(f"'{name}' is not an activation function of a cell, only {', '.join(_FUNCTIONS)} are")
    if function is not hardsigmoid:
        return function
    return partial(function, **dict(zip(("alpha",), alpha, strict=False)), **dict(zip(("beta",), beta, strict=False)))


def clip_in_place(x: Array, bound: float) -> None:
    """Hold `x` within [-bound, bound]; 0 means that nothing is clipped."""
    if bound > 0:
        np.maximum(x, -bound, out=x)
        np.minimum(x, bound, out=x)


def rounding_once(cell: C) -> C:
    """Return the cell so that tensors of a type narrower than f32 are computed in f32 and rounded at the end."""

    @wraps(cell)
    def computed(X: Array, *inputs: Array | None, **attributes: Any) -> Any:
        if X.dtype.itemsize >= 4:
            return cell(X, *inputs, **attributes)
        result = cell(widened(X), *(x if x is None else widened(x) for x in inputs), **attributes)
        if isinstance(result, tuple):
            return tuple(narrowed(output, X.dtype) for output in result)
        return narrowed(result, X.dtype)

    return computed  # type: ignore[return-value]


def lstm_step(
    from_input: Array,
    H: Array,
    C: Array,
    R: Array | None,
    B: Array | None = None,
    P: Array | None = None,
    *,
    activations: tuple[str, ...] = LSTM_ACTIVATIONS,
    activations_alpha: tuple[float, ...] = (),
    activations_beta: tuple[float, ...] = (),
    clip: float = 0.0,
    input_forget: bool = False,
) -> tuple[Array, Array]:
    """Return the hidden and the cell state after X Wᵀ, which is written over; without R it has H Rᵀ in it."""
    f, g, h = activations_of_gates(activations, activations_alpha, activations_beta, 3)
    gates = _with_recurrence(from_input, H, R, B, 4)
    if C.shape != H.shape:
        raise KernelError(f"a cell state of shape {shape_text(C.shape)} beside a hidden one of {shape_text(H.shape)}")
    if input_forget or (P is not None and P.any()):
        return _lstm_with_peepholes(C, gates, _peepholes(P, H), (f, g, h), clip, input_forget)
    clip_in_place(gates, clip)
    n = H.shape[1]
    forget_and_input = f(gates[:, : 2 * n])
    cell = forget_and_input[:, :n] * C
    cell += forget_and_input[:, n:] * g(gates[:, 2 * n : 3 * n])
    return f(gates[:, 3 * n :]) * h(cell), cell


@kernel("LSTMCell", 4, without=("P", "input_forget"))
@kernel("LSTMCell", 1)
@rounding_once
@attributes_of(lstm_step)
def lstm_cell(
    X: Array,
    H: Array,
    C: Array,
    W: Array,
    R: Array,
    B: Array | None = None,
    P: Array | None = None,
    *,
    hidden_size: int = 0,
    **attributes: Any,
) -> tuple[Array, Array]:
    """Return Ct = f · C + i · g(c), Ht = o · h(Ct); W may hold [W | R], followed by B.

    LSTMCell-1 has peepholes P (gates i, o, f) and coupled gates f = 1 - i if given. Its gates have the order f, i, c,
    o, whatever `weights_format` says: the specification requires this order, and the reader writes `weights_format`
    into files that never had it.
    """
    product, rest, bias = _products(X, H, W, R, B, 4, hidden_size)
    return lstm_step(product, H, C, rest, bias, P, **attributes)


def _lstm_with_peepholes(
    C: Array, gates: Array, peepholes: list[Array], functions: tuple[Activation, ...], clip: float, input_forget: bool
) -> tuple[Array, Array]:
    f, g, h = functions
    forget, input, candidate, output = np.split(gates, 4, axis=1)
    input_peephole, output_peephole, forget_peephole = peepholes

    def gate(preactivation: Array, peephole: Array, state: Array) -> Array:
        summed = preactivation + peephole * state
        clip_in_place(summed, clip)
        return f(summed)

    input = gate(input, input_peephole, C)
    forget = 1 - input if input_forget else gate(forget, forget_peephole, C)
    clip_in_place(candidate, clip)
    cell = forget * C + input * g(candidate)
    return gate(output, output_peephole, cell) * h(cell), cell


def gru_step(
    from_input: Array,
    H: Array,
    R: Array,
    B: Array | None = None,
    *,
    activations: tuple[str, ...] = GRU_ACTIVATIONS,
    activations_alpha: tuple[float, ...] = (),
    activations_beta: tuple[float, ...] = (),
    clip: float = 0.0,
    linear_before_reset: bool = False,
) -> Array:
    """Return the hidden state after X Wᵀ, which is written over."""
    f, g = activations_of_gates(activations, activations_alpha, activations_beta, 2)
    n = H.shape[1]
    if B is None:
        B = np.zeros((4 if linear_before_reset else 3) * n, from_input.dtype)
    elif B.shape != ((4 if linear_before_reset else 3) * n,):
        raise KernelError(f"a bias of shape {shape_text(B.shape)} does not fit a hidden state of {n}")
    from_input += B[: 3 * n]
    recurrent = matrix_product(H, (R if linear_before_reset else R[: 2 * n]).T)
    z_and_r = from_input[:, : 2 * n] + recurrent[:, : 2 * n]
    clip_in_place(z_and_r, clip)
    z_and_r = f(z_and_r)
    z, r = z_and_r[:, :n], z_and_r[:, n:]
    candidate = r * (recurrent[:, 2 * n :] + B[3 * n :]) if linear_before_reset else matrix_product(r * H, R[2 * n :].T)
    candidate += from_input[:, 2 * n :]
    clip_in_place(candidate, clip)
    result = (1 - z) * g(candidate)
    result += z * H
    return result


@kernel("GRUCell", 3)
@rounding_once
@attributes_of(gru_step)
def gru_cell(
    X: Array, H: Array, W: Array, R: Array, B: Array | None = None, *, hidden_size: int = 0, **attributes: Any
) -> Array:
    """Return (1 - z) · h~ + z · H; `linear_before_reset` multiplies by r after the recurrent product with bias."""
    check_shapes(X, H, W, R, 3, hidden_size)
    return gru_step(matrix_product(X, W.T), H, R, B, **attributes)


def rnn_step(
    from_input: Array,
    H: Array,
    R: Array | None,
    B: Array | None = None,
    *,
    activations: tuple[str, ...] = RNN_ACTIVATIONS,
    activations_alpha: tuple[float, ...] = (),
    activations_beta: tuple[float, ...] = (),
    clip: float = 0.0,
) -> Array:
    """Return the hidden state after X Wᵀ, which is written over; without R it has H Rᵀ in it."""
    (f,) = activations_of_gates(activations, activations_alpha, activations_beta, 1)
    preactivation = _with_recurrence(from_input, H, R, B, 1)
    clip_in_place(preactivation, clip)
    return f(preactivation)


@kernel("RNNCell", 3)
@rounding_once
@attributes_of(rnn_step)
def rnn_cell(
    X: Array, H: Array, W: Array, R: Array, B: Array | None = None, *, hidden_size: int = 0, **attributes: Any
) -> Array:
    """Return f(X Wᵀ + H Rᵀ + B); W may hold [W | R], followed by B."""
    product, rest, bias = _products(X, H, W, R, B, 1, hidden_size)
    return rnn_step(product, H, rest, bias, **attributes)


def _products(
    X: Array, H: Array, W: Array, R: Array, B: Array | None, gates: int, hidden_size: int
) -> tuple[Array, Array | None, Array | None]:
    """Return X Wᵀ, R and B; where W is [W | R] and R the bias: X Wᵀ + H Rᵀ, no R, and the bias."""
    if R.ndim != 1 or B is not None:
        check_shapes(X, H, W, R, gates, hidden_size)
        return matrix_product(X, W.T), R, B
    if X.ndim != 2 or W.ndim != 2:
        raise KernelError(f"X of shape {shape_text(X.shape)} and [W | R] of {shape_text(W.shape)}: both have rank 2")
    inputs = X.shape[1]
    check_shapes(X, H, W[:, :inputs], W[:, inputs:], gates, hidden_size)
    return matrix_product(np.concatenate((X, H), axis=1), W.T), None, R


def _with_recurrence(from_input: Array, H: Array, R: Array | None, B: Array | None, gates: int) -> Array:
    """Add H Rᵀ + B in place."""
    if R is not None:
        from_input += matrix_product(H, R.T)
    if B is not None:
        n = H.shape[1]
        if B.shape != (gates * n,):
            raise KernelError(f"a bias of shape {shape_text(B.shape)} does not fit a hidden state of {n}")
        from_input += B
    return from_input


def check_shapes(X: Array, H: Array, W: Array, R: Array, gates: int, hidden_size: int) -> None:
    """Raise KernelError where the inputs of a cell do not fit; a declared hidden size of 0 is none."""
    if X.ndim == 2 and H.ndim == 2:
        n: int = H.shape[1]
        fits = W.shape == (gates * n, X.shape[1]) and R.shape == (gates * n, n) and X.shape[0] == H.shape[0]
        if fits and hidden_size in (0, n):
            return
    shapes = ", ".join(f"{name} {shape_text(x.shape)}" for name, x in zip("XHWR", (X, H, W, R), strict=True))
    raise KernelError(f"inputs of shapes {shapes} do not fit a cell of {gates} gate(s) and hidden_size {hidden_size}")


def _peepholes(P: Array | None, H: Array) -> list[Array]:
    """Return the three parts of P, or zeros."""
    n = H.shape[1]
    if P is None:
        return [np.zeros(n, H.dtype)] * 3
    if P.shape != (3 * n,):
        raise KernelError(f"peepholes of shape {shape_text(P.shape)} do not fit a hidden state of {n}")
    return np.split(P, 3)


# Recurrent sequences: LSTMSequence, GRUSequence, RNNSequence, which step the cells of `recurrent` over time.
#
# Source: the sequences' pages (category Sequence processing). Y is zero after a sequence's length, and so are the last
# states of a sequence of length 0.

Direction = Literal["forward", "reverse", "bidirectional"]
_ELEMENTS_AT_ONCE = 2**22
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


# Connectionist temporal classification: the best path of class scores as a text, and the loss of a wanted one.
#
# Source: the pages CTCGreedyDecoder-1, CTCGreedyDecoderSeqLen-6 and CTCLoss-4.


@kernel("CTCGreedyDecoder", 1)
def ctc_greedy_decoder(data: Array, sequence_mask: Array, *, ctc_merge_repeated: bool = True) -> Array:
    """Return the best class of each time step of [time, batch, class] without blanks (the last class), -1 behind.

    A sequence ends at the first 0 of its mask.
    """
    if data.ndim != 3 or sequence_mask.shape != data.shape[:2]:
        shapes = f"{shape_text(data.shape)} and {shape_text(sequence_mask.shape)}"
        raise KernelError(f"data and sequence mask of shapes {shapes} do not fit: expected [T,N,C] and [T,N]")
    lengths = np.logical_and.accumulate(sequence_mask != 0, axis=0).sum(axis=0)
    classes = _decoded(np.swapaxes(data, 0, 1), lengths, data.shape[2] - 1, ctc_merge_repeated)[0]
    return classes.astype(data.dtype)[..., None, None]


@kernel("CTCGreedyDecoderSeqLen", 6)
def ctc_greedy_decoder_seq_len(
    data: Array,
    sequence_length: Array,
    blank_index: Any = None,
    *,
    merge_repeated: bool = True,
    classes_index_type: ElementType = I32,
    sequence_length_type: ElementType = I32,
) -> tuple[Array, Array]:
    """Return the best class of each time step of [batch, time, class] without blanks, -1 behind, and the lengths."""
    if data.ndim != 3 or sequence_length.shape != data.shape[:1]:
        shapes = f"{shape_text(data.shape)} and {shape_text(sequence_length.shape)}"
        raise KernelError(f"data and sequence lengths of shapes {shapes} do not fit: expected [N,T,C] and [N]")
    classes, lengths = _decoded(data, sequence_length, _blank(blank_index, data), merge_repeated)
    return classes.astype(classes_index_type.dtype), lengths.astype(sequence_length_type.dtype)


@kernel("CTCLoss", 4)
def ctc_loss(
    logits: Array,
    logit_length: Array,
    labels: Array,
    label_length: Array,
    blank_index: Any = None,
    *,
    preprocess_collapse_repeated: bool = False,
    ctc_merge_repeated: bool = False,
    unique: bool = False,
) -> Array:
    """Minus the logarithm of the probability that the scores [batch, time, class] give to all paths of the labels."""
    _check_loss(logits, logit_length, labels, label_length)
    blank = _blank(blank_index, logits)
    wanted = [
        _prepared(integers(row[: max(int(length), 0)]), preprocess_collapse_repeated, unique)
        for row, length in zip(labels, label_length, strict=True)
    ]
    if any(not 0 <= label < logits.shape[2] for row in wanted for label in row):
        raise KernelError(f"the labels must be classes 0..{logits.shape[2] - 1}")
    scores = widened(logits)
    scores = scores - scores.max(axis=2, keepdims=True)
    log_probability = scores - np.log(np.exp(scores).sum(axis=2, keepdims=True))
    loss = -_log_likelihood(log_probability, logit_length, wanted, blank, ctc_merge_repeated)
    return narrowed(loss, logits.dtype)


def _blank(blank_index: Any, data: Array) -> int:
    """Return the class of the blank, by default the last."""
    blank = data.shape[2] - 1 if blank_index is None else single_integer(blank_index, "the blank index")
    if not 0 <= blank < data.shape[2]:
        raise KernelError(f"the blank {blank} is not one of the {data.shape[2]} classes")
    return blank


def _decoded(data: Array, lengths: Array, blank: int, merge_repeated: bool) -> tuple[Array, Array]:
    """Return the classes [batch, time] of the best path, those that count first, -1 after them, and their number."""
    batches, steps, classes = data.shape
    best = data.argmax(axis=2) if classes else np.zeros((batches, steps), np.int64)
    counts = (best != blank) & (np.arange(steps) < lengths[:, None])
    if merge_repeated:
        counts[:, 1:] &= best[:, 1:] != best[:, :-1]
    decoded = np.full((batches, steps), -1, np.int64)
    row, step = np.nonzero(counts)
    decoded[row, counts.cumsum(axis=1)[row, step] - 1] = best[row, step]
    return decoded, counts.sum(axis=1)


def _check_loss(logits: Array, logit_length: Array, labels: Array, label_length: Array) -> None:
    shapes = [value.shape for value in (logits, logit_length, labels, label_length)]
    if logits.ndim != 3 or shapes[1:] != [shapes[0][:1], shapes[0][:2], shapes[0][:1]] or 0 in shapes[0][1:]:
        text = ", ".join(map(shape_text, shapes))
        raise KernelError(f"the shapes {text} do not fit: expected [N,T,C], [N], [N,T] and [N]")
    if (logit_length > logits.shape[1]).any() or (logit_length < 1).any():
        raise KernelError(f"the logit lengths must lie in 1..{logits.shape[1]}")


def _prepared(labels: list[int], collapse_repeated: bool, unique: bool) -> list[int]:
    """Return the labels of one batch with each run of one class made a single label, or each class only once."""
    if collapse_repeated:
        labels = [label for at, label in enumerate(labels) if at == 0 or label != labels[at - 1]]
    return list(dict.fromkeys(labels)) if unique else labels


def _log_likelihood(log_probability: Array, lengths: Array, wanted: list[list[int]], blank: int, merge: bool) -> Array:
    """Return the logarithm of the summed probability of all paths: forward recursion over blanks and labels in turn.

    A state is a label or the blank before or after one. With `merge` a path may stay on a label, and must pass a blank
    between two equal ones; without, each step on a label is one of its own.
    """
    batches, steps, _ = log_probability.shape
    states = np.full((batches, 2 * max(map(len, wanted), default=0) + 1), blank)
    for row, labels in zip(states, wanted, strict=True):
        row[1 : 2 * len(labels) : 2] = labels
    is_label = np.arange(states.shape[1]) % 2 == 1
    differs = np.ones_like(states, np.bool_)
    differs[:, 2:] = states[:, 2:] != states[:, :-2]
    may_stay, may_skip = (~is_label | merge, is_label & (differs if merge else True))
    emitted = np.take_along_axis(log_probability, states[:, None, :].repeat(steps, axis=1), axis=2)
    forward = np.where(np.arange(states.shape[1]) < 2, emitted[:, 0], -np.inf)
    for step in range(1, steps):
        stay = np.where(may_stay, forward, -np.inf)
        skip = np.where(may_skip, _later(forward, 2), -np.inf)
        reached = np.logaddexp(np.logaddexp(stay, _later(forward, 1)), skip) + emitted[:, step]
        forward = np.where((step < lengths)[:, None], reached, forward)
    last = np.array([2 * len(labels) for labels in wanted], np.int64)[:, None]
    before = np.where(last > 0, np.take_along_axis(forward, np.maximum(last - 1, 0), axis=1), -np.inf)
    total: Array = np.logaddexp(np.take_along_axis(forward, last, axis=1), before)[:, 0]
    return total


def _later(forward: Array, states: int) -> Array:
    """Return the values moved on by some states, -inf where none comes from."""
    return np.pad(forward, ((0, 0), (states, 0)), constant_values=-np.inf)[:, : forward.shape[1]]
