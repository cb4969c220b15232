"""Shapes, slices and movements of data as the numpy expressions that a person would write."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from stepper.element_types import LARGEST_RANK, ElementType
from stepper.errors import UsageError
from stepper.export.numpy_code.arithmetic import converted
from stepper.export.numpy_code.emit_context import EmitContext, Emitted, Emitter
from stepper.export.numpy_code.expressions import CodeExpression, call, item, method
from stepper.export.numpy_code.identifiers import name_for
from stepper.export.numpy_code.literals import dtype_text, shape_text
from stepper.ops.registry import read_attribute

_UNBOUNDED: Final = 2**31 - 1


def _axis(axis: int, rank: int | None) -> int | None:
    """Return an axis counted from the start; None where the rank that this needs is not known."""
    position = axis if axis >= 0 else -1 if rank is None else axis + rank
    return position if 0 <= position < LARGEST_RANK else None


def along(axis: int, index: str) -> str:
    """Return the index that takes `index` along an axis: `:, 3`. Raise UsageError for an axis that no tensor has."""
    if not -LARGEST_RANK <= axis < LARGEST_RANK:
        raise UsageError(f"there is no axis {axis}: a tensor has at most {LARGEST_RANK}")
    return ":, " * axis + index if axis >= 0 else "..., " + index + ", :" * (-axis - 1)


def _reshape(context: EmitContext) -> Emitted:
    pattern = context.numbers(1)
    copies = context.flag("special_zero")
    if pattern is None:
        return None if copies else method(context.at(0), "reshape", context.at(1))
    if pattern == [-1]:
        return method(context.at(0), "ravel")
    if not (copies and 0 in pattern):
        return method(context.at(0), "reshape", *(map(str, pattern) if pattern else ["()"]))
    x = context.named(0)
    dims = [f"{x.atom}.shape[{axis}]" if dim == 0 else str(dim) for axis, dim in enumerate(pattern)]
    return method(x, "reshape", *dims)


def _squeeze(context: EmitContext) -> Emitted:
    if not context.has(1):
        return call("np.squeeze", context.at(0))
    axes, dims = context.numbers(1), context.dims(0)
    if (
        not axes
        or not dims
        or len(set(axes)) < len(axes)
        or any(not -len(dims) <= axis < len(dims) or dims[axis] != 1 for axis in axes)
    ):
        return None
    return call("np.squeeze", context.at(0), axis=_axes_text(axes))


def _unsqueeze(context: EmitContext) -> Emitted:
    axes = context.numbers(1)
    return None if not axes else call("np.expand_dims", context.at(0), _axes_text(axes))


def _axes_text(axes: list[int]) -> str:
    return str(axes[0]) if len(axes) == 1 else str(tuple(axes))


def _transpose(context: EmitContext) -> Emitted:
    order = context.numbers(1)
    if order is None:
        return None
    if order in ([1, 0], []):
        return CodeExpression(f"{context.at(0).atom}.T")
    return method(context.at(0), "transpose", *map(str, order))


def _concat(context: EmitContext) -> Emitted:
    axis = context.integer("axis")
    parts = ", ".join(context.at(index).text for index in range(len(context)))
    return call("np.concatenate", f"[{parts}]", *([f"axis={axis}"] if axis else []))


def _gather(context: EmitContext) -> Emitted:
    axis = context.numbers(2)
    if context.integer("batch_dims") or axis is None or len(axis) != 1 or _is_string(context):
        return None
    index = context.value(1)
    if index is not None and index.ndim == 0 and (position := _axis(axis[0], context.rank(0))) is not None:
        return item(context.at(0), along(position, str(int(index))))
    if axis[0] == 0 and context.rank(0) and index is None:
        return item(context.at(0), context.at(1).text)
    return call("np.take", context.at(0), context.argument(1), axis=str(axis[0]))


def _is_string(context: EmitContext) -> bool:
    dtype = context.dtype(0)
    return dtype is None or dtype.kind == "T"


def _gather_elements(context: EmitContext) -> Emitted:
    return call("np.take_along_axis", context.at(0), context.at(1), axis=str(context.integer("axis")))


def _scatter_update(context: EmitContext) -> Emitted:
    """Return a copy with some elements along an axis replaced."""
    axis = context.numbers(3)
    if axis is None or len(axis) != 1 or axis[0] < 0 or not context.rank(0):
        return None
    data, indices, updates = (context.named(index).text for index in range(3))
    copy = context.temporary(name_for(context.layer))
    context.lines += [f"{copy} = {data}.copy()", f"{copy}[{along(axis[0], indices)}] = {updates}"]
    return CodeExpression(copy)


def _split(context: EmitContext) -> Emitted:
    axis = context.numbers(1)
    count = context.integer("num_splits")
    if axis is None or len(axis) != 1 or count < 2:
        return None
    return call("np.split", context.at(0), str(count), axis=str(axis[0]))


def _variadic_split(context: EmitContext) -> Emitted:
    axis, lengths = context.numbers(1), context.numbers(2)
    if axis is None or len(axis) != 1 or lengths is None or len(lengths) < 2 or lengths.count(-1) > 1:
        return None
    rest = lengths.index(-1) if -1 in lengths else len(lengths)
    bounds = [sum(lengths[: index + 1]) for index in range(min(rest, len(lengths) - 1))]
    bounds += [-sum(lengths[index + 1 :]) for index in range(rest, len(lengths) - 1)]
    if 0 in bounds[rest:]:
        return None
    return call("np.split", context.at(0), str(bounds), axis=str(axis[0]))


def _shape_of(context: EmitContext) -> Emitted:
    output = context.layer.attributes.get("output_type")
    dtype = np.dtype(np.int64)
    if output is not None and (found := read_attribute("output_type", output, ElementType | None)) is not None:
        dtype = found.dtype
    return call("np.array", f"{context.at(0).atom}.shape", dtype_text(dtype))


def _slice(context: EmitContext) -> Emitted:
    steps, rank = context.numbers(3), context.rank(0)
    if steps is None or 0 in steps or not steps:
        return None
    axes = context.numbers(4) if context.has(4) else list(range(len(steps)))
    starts, stops = _bounds(context, 1, len(steps)), _bounds(context, 2, len(steps))
    positions = [_axis(axis, rank) for axis in axes or ()]
    if starts is None or stops is None or None in positions or not len(set(positions)) == len(axes or ()) == len(steps):
        return None
    texts = [_range_text(*bounds) for bounds in zip(starts, stops, steps, strict=True)]
    ranges = {position: text for position, text in zip(positions, texts, strict=True) if position is not None}
    return item(context.at(0), ", ".join(ranges.get(axis, ":") for axis in range(max(ranges) + 1)))


def _bounds(context: EmitContext, index: int, count: int) -> list[int | str] | None:
    """Return the constants of an input, or the one that is computed; None where that would be several."""
    numbers = context.numbers(index)
    if numbers is not None:
        return list(numbers) if len(numbers) == count else None
    return [f"{context.at(index).atom}.item()"] if count == 1 else None


def _range_text(start: int | str | None, stop: int | str | None, step: int) -> str:
    """Return a slice as short as it can be written; a bound beyond any tensor is none."""
    if isinstance(start, int) and (start == 0 if step > 0 else start >= _UNBOUNDED):
        start = None
    if isinstance(stop, int) and (stop >= _UNBOUNDED if step > 0 else stop <= -_UNBOUNDED):
        stop = None
    space = " " if isinstance(start, str) or isinstance(stop, str) else ""
    ends = f"{'' if start is None else start}{space}:{space}{'' if stop is None else stop}".strip()
    return ends if step == 1 else f"{ends}{space}:{space}{step}"


def _strided_slice(context: EmitContext) -> Emitted:
    begins, ends = context.numbers(1), context.numbers(2)
    steps = context.numbers(3) if context.has(3) else [1] * len(begins or ())
    if begins is None or ends is None or steps is None or not len(begins) == len(ends) == len(steps) or 0 in steps:
        return None
    masks = [_mask(context, name, len(begins)) for name in ("begin", "end", "shrink_axis", "new_axis", "ellipsis")]
    parts = []
    for begin, end, step, (first, last, single, new, dots) in zip(
        begins, ends, steps, zip(*masks, strict=True), strict=True
    ):
        if dots or new:
            parts.append("..." if dots else "np.newaxis")
        elif single:
            parts.append("0" if first else str(begin))
        else:
            parts.append(_range_text(None if first else begin, None if last else end, step))
    while parts and parts[-1] == ":":
        parts.pop()
    return item(context.at(0), ", ".join(parts)) if parts else context.at(0)


def _mask(context: EmitContext, name: str, length: int) -> list[bool]:
    texts = [text.strip() for text in context.attribute(f"{name}_mask").split(",") if text.strip()]
    flags = [text not in ("0", "false") for text in texts][:length]
    return flags + [False] * (length - len(flags))


def _broadcast(context: EmitContext) -> Emitted:
    mode = context.attribute("mode", "numpy" if context.layer.definition != 1 else "explicit")
    if mode != "numpy" or len(context) > 2:
        return None
    target = context.numbers(1)
    return call("np.broadcast_to", context.at(0), context.at(1) if target is None else shape_text(tuple(target)))


def _range(context: EmitContext) -> Emitted:
    text = context.layer.attributes.get("output_type")
    found = None if text is None else read_attribute("output_type", text, ElementType | None)
    dtype = context.dtype(0) if found is None else found.dtype
    types = [context.dtype(index) for index in range(3)]
    if any(context.rank(index) for index in range(3)):
        return None
    if any(type is None or type.kind not in "iu" for type in types):
        return None
    if dtype is None or dtype not in (np.dtype(np.int32), np.dtype(np.int64)):
        return None
    start, stop, step = (_number(context, index) for index in range(3))
    bounds = [stop] if (start, step) == ("0", "1") else [start, stop] if step == "1" else [start, stop, step]
    return call("np.arange", *bounds, dtype=dtype_text(dtype))


def _number(context: EmitContext, index: int) -> str:
    value: Any = context.value(index)
    return context.at(index).text if value is None or value.size != 1 else str(int(value.reshape(())))


def _tile(context: EmitContext) -> Emitted:
    repeats = context.numbers(1)
    if not repeats or min(repeats) < 0:
        return None
    return call("np.tile", context.at(0), str(tuple(repeats)))


def _pad(context: EmitContext) -> Emitted:
    before, after = context.numbers(1), context.numbers(2)
    value = context.value(3) if context.has(3) else None
    if context.attribute("pad_mode", "constant") != "constant" or before is None or after is None:
        return None
    if min([*before, *after], default=-1) < 0 or not context.is_common or (context.has(3) and value is None):
        return None
    widths = ", ".join(f"({first}, {last})" for first, last in zip(before, after, strict=True))
    keywords = {} if value is None or not value.any() else {"constant_values": str(value.reshape(()).item())}
    return call("np.pad", context.at(0), f"[{widths}]", **keywords)


def _convert_like(context: EmitContext) -> Emitted:
    target = context.dtype(1)
    return None if target is None else converted(context, target)


EMITTERS: Final[dict[str, Emitter]] = {
    "Reshape": _reshape, "Squeeze": _squeeze, "Unsqueeze": _unsqueeze, "Transpose": _transpose, "Concat": _concat,
    "Gather": _gather, "GatherElements": _gather_elements, "ScatterUpdate": _scatter_update, "Split": _split,
    "VariadicSplit": _variadic_split,
    "ShapeOf": _shape_of, "Slice": _slice, "StridedSlice": _strided_slice, "Broadcast": _broadcast, "Range": _range,
    "Tile": _tile, "Pad": _pad, "Identity": lambda context: context.at(0), "ConvertLike": _convert_like,
}  # fmt: skip
"""By operation type. Where an emitter returns None, the operation is a call of its kernel."""
