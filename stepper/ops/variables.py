"""ReadValue and Assign: variables that live from one inference to the next.

Source: the operation sets' pages of ReadValue-3, ReadValue-6, Assign-3 and Assign-6. The machine keeps the state under
the attribute `variable_id`; a variable begins as ReadValue's input, or (ReadValue-6 without one) as zeros.
"""

from __future__ import annotations

import numpy as np

from stepper.element_types import F32, Array, ElementType
from stepper.errors import KernelError
from stepper.ops.operands import ensure_allocatable
from stepper.ops.registry import kernel


@kernel("ReadValue", 3, stateful=True)
def read_value_3(state: Array | None, initial: Array, *, variable_id: str) -> tuple[Array, Array]:
    """Return the variable's value; at the first inference the initial one."""
    value = initial if state is None else state
    return value, value


@kernel("ReadValue", 6, stateful=True)
def read_value_6(
    state: Array | None,
    initial: Array | None = None,
    *,
    variable_id: str,
    variable_shape: tuple[str, ...] = (),
    variable_type: ElementType | None = None,
) -> tuple[Array, Array]:
    """Return the variable's value; at first the initial one, or zeros (unknown dimensions 0)."""
    if state is not None:
        return state, state
    if initial is None:
        if any(not size.isdecimal() and size not in ("?", "-1") for size in variable_shape):
            raise KernelError(f"the shape of variable '{variable_id}' is {','.join(variable_shape)}, no list of sizes")
        shape = [int(size) if size.isdecimal() else 0 for size in variable_shape]
        ensure_allocatable(shape, (variable_type or F32).dtype)
        initial = np.zeros(shape, (variable_type or F32).dtype)
    return initial, initial


@kernel("Assign", 3, 6, stateful=True)
def assign(state: Array | None, value: Array, *, variable_id: str) -> tuple[Array, Array]:
    """Give the variable a new value, which the next inference reads; the value passes through."""
    return value, value
