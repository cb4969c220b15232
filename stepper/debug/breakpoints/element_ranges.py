"""Refusal of elements that a value does not have: by the shape that it has, or that the file declares."""

from __future__ import annotations

from collections.abc import Sequence
from types import EllipsisType

from stepper.debug.scopes import frame_of
from stepper.engine.frames import Frame
from stepper.errors import UsageError
from stepper.ir.model import parameter_shape
from stepper.ops.operands import shape_text
from stepper.query.address_resolution import Target
from stepper.query.address_syntax import Address, numpy_index


def ensure_elements(address: Address, target: Target, stack: Sequence[Frame]) -> str:
    """Raise UsageError for an index that the value does not have: by its shape now, else by what the file declares.

    What is open in the file is let through where the value is not there yet; a note that says so is returned. Else it
    is empty.
    """
    if not address.index:
        return ""
    sizes = _sizes(target, stack)
    if sizes is None:
        return _note(target, "an open shape", address)
    index = numpy_index(address.index)
    whose = f"'{address}': '{target.named.name}' of the shape {shape_text(sizes).replace('-1', '?')}"
    count = sum(not isinstance(item, EllipsisType) for item in index)
    if count > len(sizes):
        if not sizes:
            raise UsageError(f"'{address}': '{target.named.name}' is a scalar, which has no elements; leave [...] out")
        raise UsageError(f"{whose} has {len(sizes)} ax{'es' if len(sizes) > 1 else 'is'}, the index is for {count}")
    for axis, item in _placed(index, len(sizes)):
        size = sizes[axis]
        if isinstance(item, int) and size >= 0 and not -size <= item < size:
            valid = f"there are 0 to {size - 1}, or -{size} to -1 from the end" if size else "there are none"
            raise UsageError(f"{whose} has no element {item} along axis {axis}; {valid}")
        if isinstance(item, slice) and size > 0 and not range(size)[item]:
            raise UsageError(f"{whose} has none of these elements along axis {axis}; there are 0 to {size - 1}")
    if any(
        isinstance(item, int) and item not in (0, -1) and sizes[axis] < 0 for axis, item in _placed(index, len(sizes))
    ):
        return _note(target, f"the shape {shape_text(sizes).replace('-1', '?')}", address)
    return ""


def _note(target: Target, shape: str, address: Address) -> str:
    """Return that a breakpoint may have nothing to compare."""
    return f"'{target.named.name}' has {shape}; iterations in which '{address}' does not exist are passed over"


def _placed(index: Sequence[int | slice | EllipsisType], rank: int) -> list[tuple[int, int | slice]]:
    """Return each number and slice with the axis that it is for."""
    after = next((place for place, item in enumerate(index) if isinstance(item, EllipsisType)), len(index))
    behind = len(index) - after - 1
    found = []
    for place, item in enumerate(index):
        if not isinstance(item, EllipsisType):
            found.append((place if place < after else rank - behind + place - after - 1, item))
    return found


def _sizes(target: Target, stack: Sequence[Frame]) -> tuple[int, ...] | None:
    """Return the shape of a value, -1 where a size is open; None where not even its rank is known."""
    depth = frame_of(stack, target.program)
    value = None if depth is None else stack[depth].values[target.slot]
    if value is not None:
        return tuple(value.shape)
    layer = target.layer
    if layer.type != "Parameter":
        return tuple(max(size, -1) for size in layer.outputs[target.output].dims)
    dimensions = parameter_shape(layer).dimensions
    return None if dimensions is None else tuple(-1 if one.most is None else one.most for one in dimensions)
