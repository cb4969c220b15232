"""The activation functions of recurrent cells, and the clipping before them.

Source: the attributes `activations`, `activations_alpha`, `activations_beta` and `clip` of the cells' pages.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache, partial
from typing import Final

import numpy as np

from stepper.element_types import Array
from stepper.errors import KernelError

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
