"""Checks of attributes that several operations share."""

from __future__ import annotations

import math

from stepper.errors import KernelError


def check_positive(**attributes: float | tuple[float, ...]) -> None:
    """Raise KernelError for the first of the attributes that is not, or has not only, finite numbers above zero."""
    for name, value in attributes.items():
        for number in value if isinstance(value, tuple) else (value,):
            if not 0 < number < math.inf:
                raise KernelError(f"the attribute '{name}' must be positive, it is {number}")
