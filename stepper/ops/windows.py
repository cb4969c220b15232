"""Windows that slide over the spatial axes of [N, C, ...]: their counts, their padding, the elements under them.

Source: the attributes strides, dilations, pads_begin, pads_end, auto_pad and rounding_type of convolution and pooling.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Literal

import numpy as np
from msgspec import Struct

from stepper.element_types import Array
from stepper.errors import KernelError
from stepper.ops.operands import ensure_allocatable, shape_text

AutoPad = Literal["explicit", "same_upper", "same_lower", "valid"]
Rounding = Literal["floor", "ceil", "ceil_torch"]


class WindowedAxis(Struct, frozen=True):
    """One spatial axis: `count` windows of `kernel` elements over data padded by `begin` and `end`."""

    kernel: int
    stride: int
    dilation: int
    begin: int
    end: int
    count: int

    @property
    def extent(self) -> int:
        """The length of a window from its first to its last element."""
        return (self.kernel - 1) * self.dilation + 1

    def under(self, at: int) -> slice:
        """Return the elements of the padded data that lie under element `at` of each window."""
        start = at * self.dilation
        return slice(start, start + (self.count - 1) * self.stride + 1, self.stride)

    def padded_size(self, size: int) -> int:
        """Return the padded data's size: as far as the padding or the last window goes."""
        return max(self.begin + size + self.end, (self.count - 1) * self.stride + self.extent)


def windowed_axes(
    spatial: Sequence[int],
    kernel: Sequence[int],
    strides: Sequence[int],
    dilations: Sequence[int],
    pads_begin: Sequence[int],
    pads_end: Sequence[int],
    auto_pad: str,
    rounding: str = "floor",
) -> tuple[WindowedAxis, ...]:
    """Return the windows along each axis; an empty list of strides or dilations means ones, of pads zeros.

    Raises KernelError for lists of another length, numbers out of range, or a window larger than the padded data.
    """
    lists = [
        spatial,
        per_axis("kernel", kernel, spatial, least=1),
        per_axis("strides", strides, spatial, default=1, least=1),
        per_axis("dilations", dilations, spatial, default=1, least=1),
        per_axis("pads_begin", pads_begin, spatial),
        per_axis("pads_end", pads_end, spatial),
    ]
    return tuple(_windowed_axis(*numbers, auto_pad=auto_pad, rounding=rounding) for numbers in zip(*lists, strict=True))


def per_axis(
    name: str, values: Sequence[int], spatial: Sequence[int], default: int = 0, least: int = -(2**31)
) -> Sequence[int]:
    """Return a list attribute with one number for each spatial axis, the default where it is empty."""
    if not values:
        values = (default,) * len(spatial)
    if len(values) != len(spatial):
        raise KernelError(f"'{name}' has {len(values)} numbers for spatial dimensions {shape_text(spatial)}")
    if any(not least <= value < 2**31 for value in values):
        raise KernelError(f"'{name}' is {','.join(map(str, values))}, out of range")
    return values


def _windowed_axis(
    size: int, kernel: int, stride: int, dilation: int, begin: int, end: int, *, auto_pad: str, rounding: str
) -> WindowedAxis:
    extent = (kernel - 1) * dilation + 1
    if auto_pad in ("same_upper", "same_lower"):
        count = -(-size // stride)
        total = max((count - 1) * stride + extent - size, 0)
        begin, end = total // 2, total - total // 2
        if auto_pad == "same_lower":
            begin, end = end, begin
    else:
        if auto_pad == "valid":
            begin = end = 0
        room = begin + size + end - extent
        count = (room // stride if rounding == "floor" else -(-room // stride)) + 1 if room >= 0 else 0
        if rounding == "ceil_torch" and (count - 1) * stride >= size + begin:
            count -= 1
    if count < 1:
        raise KernelError(f"a window of {extent} elements does not fit {size} padded by {begin} and {end}")
    return WindowedAxis(kernel, stride, dilation, begin, end, count)


def last_axes(indices: Iterable[int | slice]) -> tuple[Any, ...]:
    """Return the index that applies `indices` to the last axes of an array."""
    return (..., *indices)


def padded(x: Array, axes: Sequence[WindowedAxis], value: Any) -> Array:
    """Return `x` with `value` around its spatial axes, as far as the windows reach; negative pads crop."""
    sizes = x.shape[-len(axes) :]
    kept = (slice(max(-axis.begin, 0), size + min(axis.end, 0)) for axis, size in zip(axes, sizes, strict=True))
    cropped: Array = x[last_axes(kept)]
    shape = x.shape[: -len(axes)] + tuple(axis.padded_size(size) for axis, size in zip(axes, sizes, strict=True))
    if cropped.shape == shape:
        return cropped
    ensure_allocatable(shape, x.dtype)
    result = np.full(shape, value, x.dtype)
    inside = zip((max(axis.begin, 0) for axis in axes), cropped.shape[-len(axes) :], strict=True)
    result[last_axes(slice(start, start + size) for start, size in inside)] = cropped
    return result


def under_windows(padded_data: Array, axes: Sequence[WindowedAxis]) -> Array:
    """Return a view [..., *kernel, *counts] of padded data [..., *spatial]."""
    rank, lead = len(axes), padded_data.ndim - len(axes)
    spatial = tuple(range(lead, lead + rank))
    windows = np.lib.stride_tricks.sliding_window_view(padded_data, [axis.extent for axis in axes], spatial)
    view: Array = windows[
        last_axes([*(axis.under(0) for axis in axes), *(slice(None, None, axis.dilation) for axis in axes)])
    ]
    order = (*range(lead), *range(lead + rank, lead + 2 * rank), *spatial)
    return view.transpose(order)
