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
from stepper.ops.precision import narrowed, widened
from stepper.ops.registry import kernel

LSTM_ACTIVATIONS = ("sigmoid", "tanh", "tanh")
GRU_ACTIVATIONS = ("sigmoid", "tanh")
RNN_ACTIVATIONS = ("tanh",)

C = TypeVar("C", bound=Callable[..., Any])
Activation = Callable[[Array], Array]


def sigmoid(x: Array) -> Array:
    """Return 1 / (1 + exp(-x))."""
    result = np.negative(x)
    np.exp(result, out=result)
    result += 1
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


@kernel("LSTMCell", 4, without=("P", "input_forget"))
@kernel("LSTMCell", 1)
@rounding_once
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
    activations: tuple[str, ...] = LSTM_ACTIVATIONS,
    activations_alpha: tuple[float, ...] = (),
    activations_beta: tuple[float, ...] = (),
    clip: float = 0.0,
    input_forget: bool = False,
) -> tuple[Array, Array]:
    """Ct = f · C + i · g(c), Ht = o · h(Ct); one tensor in place of W and R is [W | R], followed by B.

    LSTMCell-1 has peepholes P (gates i, o, f) and coupled gates f = 1 - i where given. Its gates are in the order f, i,
    c, o whatever `weights_format` says: so the page has it, and the reader writes that attribute into files that never
    had it.
    """
    f, g, h = activations_of_gates(activations, activations_alpha, activations_beta, 3)
    gates = _preactivations(X, H, W, R, B, 4, hidden_size)
    _check_cell_state(C, H)
    if input_forget or (P is not None and P.any()):
        return _lstm_with_peepholes(C, gates, _peepholes(P, H), (f, g, h), clip, input_forget)
    clip_in_place(gates, clip)
    n = H.shape[1]
    forget_and_input = f(gates[:, : 2 * n])
    cell = forget_and_input[:, :n] * C
    cell += forget_and_input[:, n:] * g(gates[:, 2 * n : 3 * n])
    return f(gates[:, 3 * n :]) * h(cell), cell


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


@kernel("GRUCell", 3)
@rounding_once
def gru_cell(
    X: Array,
    H: Array,
    W: Array,
    R: Array,
    B: Array | None = None,
    *,
    hidden_size: int = 0,
    activations: tuple[str, ...] = GRU_ACTIVATIONS,
    activations_alpha: tuple[float, ...] = (),
    activations_beta: tuple[float, ...] = (),
    clip: float = 0.0,
    linear_before_reset: bool = False,
) -> Array:
    """Return (1 - z) · h~ + z · H; `linear_before_reset` multiplies by r after the recurrent product with bias."""
    f, g = activations_of_gates(activations, activations_alpha, activations_beta, 2)
    n = _hidden_size(X, H, W, R, 3, hidden_size)
    if B is None:
        B = np.zeros((4 if linear_before_reset else 3) * n, X.dtype)
    elif B.shape != ((4 if linear_before_reset else 3) * n,):
        raise KernelError(f"a bias of shape {shape_text(B.shape)} does not fit a hidden state of {n}")
    from_input = np.matmul(X, W.T)
    from_input += B[: 3 * n]
    recurrent = np.matmul(H, (R if linear_before_reset else R[: 2 * n]).T)
    z_and_r = from_input[:, : 2 * n] + recurrent[:, : 2 * n]
    clip_in_place(z_and_r, clip)
    z_and_r = f(z_and_r)
    z, r = z_and_r[:, :n], z_and_r[:, n:]
    candidate = r * (recurrent[:, 2 * n :] + B[3 * n :]) if linear_before_reset else np.matmul(r * H, R[2 * n :].T)
    candidate += from_input[:, 2 * n :]
    clip_in_place(candidate, clip)
    result = (1 - z) * g(candidate)
    result += z * H
    return result


@kernel("RNNCell", 3)
@rounding_once
def rnn_cell(
    X: Array,
    H: Array,
    W: Array,
    R: Array,
    B: Array | None = None,
    *,
    hidden_size: int = 0,
    activations: tuple[str, ...] = RNN_ACTIVATIONS,
    activations_alpha: tuple[float, ...] = (),
    activations_beta: tuple[float, ...] = (),
    clip: float = 0.0,
) -> Array:
    """Return f(X Wᵀ + H Rᵀ + B)."""
    (f,) = activations_of_gates(activations, activations_alpha, activations_beta, 1)
    preactivation = _preactivations(X, H, W, R, B, 1, hidden_size)
    clip_in_place(preactivation, clip)
    return f(preactivation)


def _preactivations(X: Array, H: Array, W: Array, R: Array, B: Array | None, gates: int, hidden_size: int) -> Array:
    """X Wᵀ + H Rᵀ + B for all gates; where R is a vector, W is the merged tensor [W | R] and R the bias."""
    if R.ndim == 1 and B is None:
        return _merged_preactivations(X, H, W, R, gates, hidden_size)
    n = _hidden_size(X, H, W, R, gates, hidden_size)
    result: Array = np.matmul(X, W.T)
    result += np.matmul(H, R.T)
    if B is not None:
        if B.shape != (gates * n,):
            raise KernelError(f"a bias of shape {shape_text(B.shape)} does not fit a hidden state of {n}")
        result += B
    return result


def _merged_preactivations(X: Array, H: Array, WR: Array, B: Array, gates: int, hidden_size: int) -> Array:
    if X.ndim != 2 or WR.ndim != 2:
        raise KernelError(f"X of shape {shape_text(X.shape)} and [W | R] of {shape_text(WR.shape)}: both have rank 2")
    inputs = X.shape[1]
    n = _hidden_size(X, H, WR[:, :inputs], WR[:, inputs:], gates, hidden_size)
    if B.shape != (gates * n,):
        raise KernelError(f"a bias of shape {shape_text(B.shape)} does not fit a hidden state of {n}")
    result: Array = np.matmul(np.concatenate((X, H), axis=1), WR.T)
    result += B
    return result


def _hidden_size(X: Array, H: Array, W: Array, R: Array, gates: int, declared: int) -> int:
    """Return the size of the hidden state, the shapes of a cell's inputs checked; a declared 0 is none."""
    if X.ndim == 2 and H.ndim == 2:
        n: int = H.shape[1]
        fits = W.shape == (gates * n, X.shape[1]) and R.shape == (gates * n, n) and X.shape[0] == H.shape[0]
        if fits and declared in (0, n):
            return n
    shapes = ", ".join(f"{name} {shape_text(x.shape)}" for name, x in zip("XHWR", (X, H, W, R), strict=True))
    raise KernelError(f"inputs of shapes {shapes} do not fit a cell of {gates} gate(s) and hidden_size {declared}")


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
