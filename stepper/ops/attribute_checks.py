"""What attributes must keep to, whatever the file says."""

from __future__ import annotations

from stepper.errors import KernelError


def check_positive(**attributes: float) -> None:
    """KernelError for the first of the attributes that is not greater than zero."""
    for name, value in attributes.items():
        if not value > 0:
            raise KernelError(f"the attribute '{name}' must be positive, it is {value}")
