"""What attributes must keep to, whatever the file says."""

from __future__ import annotations

from stepper.errors import KernelError


def check_positive(**attributes: float | tuple[float, ...]) -> None:
    """KernelError for the first of the attributes that is not greater than zero, or has a number that is not."""
    for name, value in attributes.items():
        for number in value if isinstance(value, tuple) else (value,):
            if not number > 0:
                raise KernelError(f"the attribute '{name}' must be positive, it is {number}")
