"""Recurrent cells: LSTMCell, GRUCell, RNNCell.

Source: the cells' pages (category Sequence processing). W, R and B stack the gates: f, i, c, o of an LSTM, z, r, h of
a GRU; B is the sum of both biases. `activations`, `activations_alpha`, `activations_beta` and `clip` are attributes.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache, partial, wraps
from typing import Any, Final, TypeVar

import numpy as np

from stepper.element_types import Array
from stepper.errors import KernelError
from stepper.ops.operands import shape_text
from stepper.ops.precision import ONES, narrowed, widened
from stepper.ops.products import matrix_product
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


def relu(x: Array) -> Array:
    """Return max(x, 0)."""
    return np.maximum(x, 0)


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
    _check_cell_state(C, H)
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
    """Ct = f · C + i · g(c), Ht = o · h(Ct); one tensor in place of W and R is [W | R], followed by B.

    LSTMCell-1 has peepholes P (gates i, o, f) and coupled gates f = 1 - i where given. Its gates are in the order f, i,
    c, o whatever `weights_format` says: so the page has it, and the reader writes that attribute into files that never
    had it.
    """
    if R.ndim == 1 and B is None:
        return lstm_step(_of_merged_weights(X, H, W, 4, hidden_size), H, C, None, R, P, **attributes)
    return lstm_step(_input_product(X, H, W, R, 4, hidden_size), H, C, R, B, P, **attributes)


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
    return gru_step(_input_product(X, H, W, R, 3, hidden_size), H, R, B, **attributes)


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
    """Return f(X Wᵀ + H Rᵀ + B); one tensor in place of W and R is [W | R], followed by B."""
    if R.ndim == 1 and B is None:
        return rnn_step(_of_merged_weights(X, H, W, 1, hidden_size), H, None, R, **attributes)
    return rnn_step(_input_product(X, H, W, R, 1, hidden_size), H, R, B, **attributes)


def _input_product(X: Array, H: Array, W: Array, R: Array, gates: int, hidden_size: int) -> Array:
    check_shapes(X, H, W, R, gates, hidden_size)
    product: Array = matrix_product(X, W.T)
    return product


def _of_merged_weights(X: Array, H: Array, WR: Array, gates: int, hidden_size: int) -> Array:
    """Return X Wᵀ + H Rᵀ for all gates, the weights being [W | R]."""
    if X.ndim != 2 or WR.ndim != 2:
        raise KernelError(f"X of shape {shape_text(X.shape)} and [W | R] of {shape_text(WR.shape)}: both have rank 2")
    inputs = X.shape[1]
    check_shapes(X, H, WR[:, :inputs], WR[:, inputs:], gates, hidden_size)
    product: Array = matrix_product(np.concatenate((X, H), axis=1), WR.T)
    return product


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


def _check_cell_state(C: Array, H: Array) -> None:
    if C.shape != H.shape:
        raise KernelError(f"a cell state of shape {shape_text(C.shape)} beside a hidden one of {shape_text(H.shape)}")


def _peepholes(P: Array | None, H: Array) -> list[Array]:
    """Return the three parts of P, or zeros."""
    n = H.shape[1]
    if P is None:
        return [np.zeros(n, H.dtype)] * 3
    if P.shape != (3 * n,):
        raise KernelError(f"peepholes of shape {shape_text(P.shape)} do not fit a hidden state of {n}")
    return np.split(P, 3)
