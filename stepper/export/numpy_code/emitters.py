"""Numpy code of operations by type, and the call of the product's own kernel where a type has no shorter code."""

from __future__ import annotations

import typing
from collections.abc import Callable, Iterator
from importlib import import_module
from operator import attrgetter
from typing import Any, Final

import numpy as np

from stepper.element_types import LARGEST_RANK, ElementType, is_floating, is_of_numpy
from stepper.errors import UsageError
from stepper.export.numpy_code.emit import (
    DType,
    EmitContext,
    Emitted,
    Emitter,
    Term,
    attribute,
    dtype_text,
    infix,
    is_computed_by_numpy,
    is_real,
    literal,
    name_for,
    prefix,
    shape_argument,
)
from stepper.ir.model import Layer
from stepper.ops import registry
from stepper.ops.registry import FILE_OF, Kernel, read_attribute

_Accepts = Callable[[DType], bool]
_BOOLEAN: Final = np.dtype(np.bool_)


def _broadcasts(context: EmitContext) -> bool:
    """True if an operation broadcasts as numpy does."""
    return context.attribute("auto_broadcast", "numpy") in ("numpy", "none")


def _binary(code: str, accepts: _Accepts) -> Emitter:
    """Return the emitter of an operator, or of a function of numpy, for the element types that it accepts."""

    def emit(context: EmitContext) -> Emitted:
        dtype = context.dtype(0)
        if dtype is None or dtype != context.dtype(1) or not accepts(dtype) or not _broadcasts(context):
            return None
        a, b = context.factor(0, 1), context.factor(1, 0)
        return f"{code}({a}, {b})" if code.startswith("np.") else infix(a, code, b)

    return emit


def _is_number(dtype: DType) -> bool:
    return is_floating(dtype) or dtype.kind in "iu"


def _divide(context: EmitContext) -> Emitted:
    dtype = context.dtype(0)
    if dtype is None or not (is_floating(dtype) or context.flag("m_pythondiv", otherwise=True)):
        return None
    return _binary("/" if is_floating(dtype) else "//", _is_number)(context)


def _squared_difference(context: EmitContext) -> Emitted:
    difference = _binary("-", is_computed_by_numpy)(context)
    return None if difference is None else f"np.square({difference})"


def _select(context: EmitContext) -> Emitted:
    if not _broadcasts(context) or context.dtype(1) is None:
        return None
    return f"np.where({context.at(0)}, {context.factor(1, 2)}, {context.factor(2, 1)})"


def _form(code: str, serves: Callable[[EmitContext], bool]) -> Emitter:
    """Return the emitter of a form of one input, where it serves."""
    return lambda context: code.format(context.at(0)) if serves(context) else None


_is_real, _is_common = attrgetter("is_real"), attrgetter("is_common")


def _not(context: EmitContext) -> Emitted:
    return prefix("~", context.at(0)) if context.dtype(0) == _BOOLEAN else None


def _swish(context: EmitContext) -> Emitted:
    if not context.is_real or len(context) > 1:
        return None
    x = context.named(0)
    return infix(x, "*", Term(f"sigmoid({x})"))


def _clamp(context: EmitContext) -> Emitted:
    low, high = float(context.attribute("min", "0")), float(context.attribute("max", "0"))
    if not context.is_real or not np.isfinite([low, high]).all() or not low <= high:
        return None
    return f"np.clip({context.at(0)}, {low!r}, {high!r})"


# --- reductions ------------------------------------------------------------------------------------------------------


def _reduction(code: str, types: str) -> Emitter:
    """Return the emitter of a reduction; `types` are the kinds that numpy reduces as the specification does."""

    def emit(context: EmitContext) -> Emitted:
        axes, dtype = context.numbers(1), context.dtype(0)
        if axes is None or dtype is None or not is_of_numpy(dtype) or dtype.kind not in types or dtype == np.float16:
            return None
        if 0 in context.dims(0):
            return None  # what numpy says of nothing is not what the specification says
        narrow = _narrow(dtype) if code.startswith(("np.sum", "np.prod")) else ""
        kept = ", keepdims=True" if context.flag("keep_dims") else ""
        return code.format(context.at(0), f"axis={_numbers_text(axes)}{narrow}{kept}")

    return emit


def _narrow(dtype: DType) -> str:
    """Return the argument for the type of a sum, which numpy widens where it is a narrow integer."""
    return f", dtype={dtype_text(dtype)}" if dtype.kind in "iu" and dtype.itemsize < 8 else ""


def _numbers_text(numbers: list[int]) -> str:
    return shape_argument(tuple(numbers))


def _top(context: EmitContext) -> Emitted:
    """Return the largest or smallest element with its index."""
    index_type = context.layer.attributes.get("index_element_type", "i32")
    if context.number(1) != 1 or not context.is_real or index_type not in ("i32", "i64"):
        return None
    kind = "min" if context.attribute("mode") == "min" else "max"
    arguments = f"({context.named(0)}, axis={context.integer('axis')}, keepdims=True)"
    narrowed = ".astype(np.int32)" if index_type == "i32" else ""
    context.results = [f"np.{kind}{arguments}", f"np.arg{kind}{arguments}{narrowed}"]
    return context.results[0]


def _cumulative(context: EmitContext) -> Emitted:
    axis, dtype = context.number(1), context.dtype(0)
    if axis is None or dtype is None or not context.is_common or context.flag("exclusive") or context.flag("reverse"):
        return None
    return f"np.cumsum({context.at(0)}, axis={axis}{_narrow(dtype)})"


# --- products --------------------------------------------------------------------------------------------------------


def _matmul(context: EmitContext) -> Emitted:
    if not context.is_real:
        return None
    sides = [_turned(context, index, name) for index, name in enumerate(("transpose_a", "transpose_b"))]
    return None if sides[0] is None or sides[1] is None else infix(sides[0], "@", sides[1])


def _turned(context: EmitContext, index: int, attribute: str) -> Term | None:
    rank = context.rank(index) if context.flag(attribute) else 1
    if rank is None or rank == 1:
        return None if rank is None else context.at(index)
    return Term(f"{context.at(index).atom}{'.T' if rank == 2 else '.swapaxes(-1, -2)'}")


# --- types -----------------------------------------------------------------------------------------------------------


def converts_plainly(source: np.dtype[Any] | None, target: np.dtype[Any]) -> bool:
    """True if `astype` does what Convert does: not where a float becomes a narrow integer, or a narrow float twice."""
    if source is None or not is_of_numpy(source) or source.kind not in "biuf":
        return False
    if not is_of_numpy(target):
        return is_floating(target) and target.itemsize == 2 and source == np.float32
    if target.kind == "f":
        return target.itemsize >= 4 or source.kind == "f"
    return source.kind != "f" or target in (np.dtype(np.int32), np.dtype(np.int64))


def _converted(context: EmitContext, target: DType | None) -> Emitted:
    """Return the first input in another type."""
    source = context.dtype(0)
    if target is not None and source == target:
        return context.at(0)
    if source is None or target is None or not (converts_plainly(source, target) or target == _BOOLEAN):
        return None
    if target == _BOOLEAN:
        return infix(context.at(0), "!=", literal("0")) if is_of_numpy(source) else None
    return f"{context.at(0).atom}.astype({dtype_text(target)})"


def _type_named(context: EmitContext, name: str) -> DType | None:
    """Return the element type that an attribute names."""
    text = context.layer.attributes.get(name)
    found = None if text is None else read_attribute(name, text, ElementType | None)
    return None if found is None else found.dtype


_BINARY: Final[tuple[tuple[_Accepts, str], ...]] = (
    (_is_number, "Add + Subtract - Multiply * Mod np.fmod Maximum np.maximum Minimum np.minimum"),
    (is_computed_by_numpy, "FloorMod %"),
    (is_real, "Power **"),
    (lambda _dtype: True, "Equal == NotEqual != Less < LessEqual <= Greater > GreaterEqual >="),
    (lambda dtype: dtype == _BOOLEAN, "LogicalAnd & LogicalOr | LogicalXor ^"),
    (is_of_numpy, "BitwiseAnd & BitwiseOr | BitwiseXor ^"),
)
"""Which element types an operation is of, and operations with their operators or functions."""
_OF_REALS: Final = """
    Floor floor Ceiling ceil Sqrt sqrt Exp exp Log log Sin sin Cos cos Tan tan Asin arcsin Acos arccos Atan arctan
    Sinh sinh Cosh cosh Tanh tanh Asinh arcsinh Acosh arccosh Atanh arctanh IsNaN isnan IsFinite isfinite
"""
"""Operations with functions of numpy."""


def pairs_of(words: str) -> Iterator[tuple[str, str]]:
    """Yield the words of a table, two by two."""
    found = iter(words.split())
    return zip(found, found, strict=True)


ARITHMETIC: Final[dict[str, Emitter]] = {
    **{type: _binary(code, accepts) for accepts, codes in _BINARY for type, code in pairs_of(codes)},
    **{type: _form(f"np.{function}({{}})", _is_real) for type, function in pairs_of(_OF_REALS)},
    "Divide": _divide, "SquaredDifference": _squared_difference, "Select": _select, "LogicalNot": _not,
    "BitwiseNot": _not, "Abs": _form("np.abs({})", _is_common), "Sign": _form("np.sign({})", _is_common),
    "Negative": lambda context: prefix("-", context.at(0)) if context.is_common else None,
    "Round": _form("np.rint({})", lambda context: context.is_real and "away" not in context.attribute("mode")),
    "Relu": _form("np.maximum({}, 0)", _is_common), "Sigmoid": _form("sigmoid({})", _is_real),
    "Softmax": lambda context: _form(f"softmax({{}}, axis={context.integer('axis', 1)})", _is_real)(context),
    "Swish": _swish, "Clamp": _clamp,
    "ReduceSum": _reduction("np.sum({}, {})", "iuf"), "ReduceMean": _reduction("np.mean({}, {})", "f"),
    "ReduceMax": _reduction("np.max({}, {})", "iuf"), "ReduceMin": _reduction("np.min({}, {})", "iuf"),
    "ReduceProd": _reduction("np.prod({}, {})", "iuf"),
    "ReduceLogicalAnd": _reduction("np.all({}, {})", "b"), "ReduceLogicalOr": _reduction("np.any({}, {})", "b"),
    "ReduceL1": _reduction("np.sum(np.abs({}), {})", "f"), "TopK": _top,
    "ReduceL2": _reduction("np.sqrt(np.sum(np.square({}), {}))", "f"),
    "CumSum": _cumulative, "MatMul": _matmul,
    "Convert": lambda context: _converted(context, _type_named(context, "destination_type")),
}  # fmt: skip
"""By operation type. Where an emitter returns None, the operation is a call of its kernel."""


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
        return None if copies else f"{context.at(0).atom}.reshape({context.at(1)})"
    if pattern == [-1]:
        return f"{context.at(0).atom}.ravel()"
    if not (copies and 0 in pattern):
        return f"{context.at(0).atom}.reshape({', '.join(map(str, pattern)) or '()'})"
    x = context.named(0)
    dims = (f"{x.atom}.shape[{axis}]" if dim == 0 else str(dim) for axis, dim in enumerate(pattern))
    return f"{x.atom}.reshape({', '.join(dims)})"


def _squeeze(context: EmitContext) -> Emitted:
    if not context.has(1):
        return f"np.squeeze({context.at(0)})"
    axes, dims = context.numbers(1), context.dims(0)
    if not axes or len(set(axes)) < len(axes):
        return None
    if any(not -len(dims) <= axis < len(dims) or dims[axis] != 1 for axis in axes):
        return None
    return f"np.squeeze({context.at(0)}, axis={_numbers_text(axes)})"


def _transpose(context: EmitContext) -> Emitted:
    order = context.numbers(1)
    if order is None:
        return None
    x = context.at(0).atom
    return f"{x}.T" if order in ([1, 0], []) else f"{x}.transpose({', '.join(map(str, order))})"


def _concat(context: EmitContext) -> Emitted:
    axis = context.integer("axis")
    parts = ", ".join(context.at(index).text for index in range(len(context)))
    return f"np.concatenate([{parts}]{f', axis={axis}' if axis else ''})"


def _gather(context: EmitContext) -> Emitted:
    axis, dtype = context.number(2), context.dtype(0)
    if context.integer("batch_dims") or axis is None or dtype is None or dtype.kind == "T":
        return None
    index = context.value(1)
    if index is not None and index.ndim == 0 and (position := _axis(axis, context.rank(0))) is not None:
        return f"{context.at(0).atom}[{along(position, str(int(index)))}]"
    if axis == 0 and context.rank(0) and index is None:
        return f"{context.at(0).atom}[{context.at(1)}]"
    return f"np.take({context.at(0)}, {context.argument(1)}, axis={axis})"


def _scatter_update(context: EmitContext) -> Emitted:
    """Return a copy with some elements along an axis replaced."""
    axis = context.number(3)
    if axis is None or axis < 0 or not context.rank(0):
        return None
    data, indices, updates = (context.named(index).text for index in range(3))
    copy = context.temporary(name_for(context.layer))
    context.lines += [f"{copy} = {data}.copy()", f"{copy}[{along(axis, indices)}] = {updates}"]
    return copy


def _split(context: EmitContext) -> Emitted:
    axis, count = context.number(1), context.integer("num_splits")
    return None if axis is None or count < 2 else f"np.split({context.at(0)}, {count}, axis={axis})"


def _variadic_split(context: EmitContext) -> Emitted:
    axis, lengths = context.number(1), context.numbers(2)
    if axis is None or lengths is None or len(lengths) < 2 or lengths.count(-1) > 1:
        return None
    rest = lengths.index(-1) if -1 in lengths else len(lengths)
    bounds = [
        sum(lengths[: index + 1]) if index < rest else -sum(lengths[index + 1 :]) for index in range(len(lengths) - 1)
    ]
    return None if 0 in bounds[rest:] else f"np.split({context.at(0)}, {bounds}, axis={axis})"


def _slice(context: EmitContext) -> Emitted:
    steps, rank = context.numbers(3), context.rank(0)
    if not steps or 0 in steps:
        return None
    axes = context.numbers(4) if context.has(4) else list(range(len(steps)))
    starts, stops = _bounds(context, 1, len(steps)), _bounds(context, 2, len(steps))
    positions = [_axis(axis, rank) for axis in axes or ()]
    if starts is None or stops is None or not len(set(positions)) == len(positions) == len(steps):
        return None
    texts = map(_range_text, starts, stops, steps)
    ranges = {position: text for position, text in zip(positions, texts, strict=True) if position is not None}
    if len(ranges) < len(steps):
        return None
    return f"{context.at(0).atom}[{', '.join(ranges.get(axis, ':') for axis in range(max(ranges) + 1))}]"


def _bounds(context: EmitContext, index: int, count: int) -> list[int] | list[str] | None:
    """Return the constants of an input, or the one that is computed; None where that would be several."""
    numbers = context.numbers(index)
    if numbers is not None:
        return numbers if len(numbers) == count else None
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
    x = context.at(0)
    return f"{x.atom}[{', '.join(parts)}]" if parts else x


def _mask(context: EmitContext, name: str, length: int) -> list[bool]:
    texts = [text.strip() for text in context.attribute(f"{name}_mask").split(",") if text.strip()]
    flags = [text not in ("0", "false") for text in texts][:length]
    return flags + [False] * (length - len(flags))


def _broadcast(context: EmitContext) -> Emitted:
    mode = context.attribute("mode", "numpy" if context.layer.definition != 1 else "explicit")
    if mode != "numpy" or len(context) > 2:
        return None
    x, target = context.at(0), context.numbers(1)
    return f"np.broadcast_to({x}, {context.at(1) if target is None else _numbers_text(target)})"


def _range(context: EmitContext) -> Emitted:
    dtype = _type_named(context, "output_type") or context.dtype(0)
    types = [context.dtype(index) for index in range(3)]
    if any(context.rank(index) for index in range(3)) or any(type is None or type.kind not in "iu" for type in types):
        return None
    if dtype is None or dtype not in (np.dtype(np.int32), np.dtype(np.int64)):
        return None
    start, stop, step = (_number(context, index) for index in range(3))
    bounds = [stop] if (start, step) == ("0", "1") else [start, stop] if step == "1" else [start, stop, step]
    return f"np.arange({', '.join(bounds)}, dtype={dtype_text(dtype)})"


def _number(context: EmitContext, index: int) -> str:
    value: Any = context.value(index)
    return context.at(index).text if value is None or value.size != 1 else str(int(value.reshape(())))


def _tile(context: EmitContext) -> Emitted:
    repeats = context.numbers(1)
    return None if not repeats or min(repeats) < 0 else f"np.tile({context.at(0)}, {tuple(repeats)})"


def _pad(context: EmitContext) -> Emitted:
    before, after, value = context.numbers(1), context.numbers(2), context.value(3)
    if context.attribute("pad_mode", "constant") != "constant" or before is None or after is None:
        return None
    if min([*before, *after], default=-1) < 0 or not context.is_common or (context.has(3) and value is None):
        return None
    widths = ", ".join(f"({first}, {last})" for first, last in zip(before, after, strict=True))
    filled = "" if value is None or not value.any() else f", constant_values={value.reshape(()).item()}"
    return f"np.pad({context.at(0)}, [{widths}]{filled})"


MOVEMENT: Final[dict[str, Emitter]] = {
    "Reshape": _reshape, "Squeeze": _squeeze,
    "Unsqueeze": lambda context: (
        f"np.expand_dims({context.at(0)}, {_numbers_text(axes)})" if (axes := context.numbers(1)) else None
    ),
    "ShapeOf": lambda context: (
        f"np.array({context.at(0).atom}.shape, {dtype_text(_type_named(context, 'output_type') or np.dtype(np.int64))})"
    ),
    "Transpose": _transpose, "Concat": _concat,
    "Gather": _gather, "ScatterUpdate": _scatter_update, "Split": _split, "VariadicSplit": _variadic_split,
    "GatherElements": lambda context: (
        f"np.take_along_axis({context.at(0)}, {context.at(1)}, axis={context.integer('axis')})"
    ),
    "Slice": _slice, "StridedSlice": _strided_slice, "Broadcast": _broadcast, "Range": _range,
    "Tile": _tile, "Pad": _pad, "Identity": lambda context: context.at(0),
    "ConvertLike": lambda context: _converted(context, context.dtype(1)),
}  # fmt: skip
"""By operation type. Where an emitter returns None, the operation is a call of its kernel."""


_SUM: Final = 11


def _is_plain(context: EmitContext, activations: tuple[str, ...], weights: int) -> bool:
    """True if the cell has the default activations, no clipping, and two separate matrices of weights."""
    chosen = tuple(part.strip() for part in context.attribute("activations", ",".join(activations)).split(","))
    alone = chosen in (activations, ("",)) and not float(context.attribute("clip", "0") or 0) and context.is_real
    return alone and context.has(weights + 1) and context.rank(weights) == context.rank(weights + 1) == 2


def _product(x: Term, weights: Term) -> Term:
    return infix(x, "@", Term(f"{weights.atom}.T"))


def _affine(context: EmitContext, weights: int) -> Term:
    """Return what comes of the input and of the state, each times its weights, and the bias where there is one."""
    x, h, of_x, of_h = (context.named(index) for index in (0, 1, weights, weights + 1))
    return _with_bias(context, weights + 2, infix(_product(x, of_x), "+", _product(h, of_h)))


def _with_bias(context: EmitContext, index: int, total: Term) -> Term:
    return infix(total, "+", context.named(index)) if context.has(index) else total


def _lstm(context: EmitContext) -> Emitted:
    merged = len(context) == 5 and context.is_real and context.rank(3) == 2 and context.rank(4) == 1
    is_plain = _is_plain(context, ("sigmoid", "tanh", "tanh"), 3)
    clean = not context.flag("input_forget") and not context.has(6) and not float(context.attribute("clip", "0") or 0)
    if not clean or not (is_plain or (merged and not context.attribute("activations"))):
        return None
    x, h, c = (context.named(index) for index in range(3))
    if merged:
        total = _product(Term(f"np.concatenate([{x}, {h}], axis=1)"), context.named(3))
        total = infix(total, "+", context.named(4))
    else:
        total = _affine(context, 3)
    gates, f, i, g, o, cell = (
        context.temporary(name) for name in ("gates", "forget_gate", "input_gate", "candidate", "output_gate", "cell")
    )
    context.lines += [
        f"{gates} = {total.text}",
        f"{f}, {i}, {g}, {o} = np.split({gates}, 4, axis=1)",
        f"{cell} = sigmoid({f}) * {c.text} + sigmoid({i}) * np.tanh({g})",
    ]
    context.results = [f"sigmoid({o}) * np.tanh({cell})", cell]
    return context.results[0]


def _gru(context: EmitContext) -> Emitted:
    """Emit a GRU; with linear_before_reset the reset gate comes after the recurrent product.

    That product then has a bias of its own, the last quarter of B.
    """
    resets_late = context.flag("linear_before_reset")
    if not _is_plain(context, ("sigmoid", "tanh"), 2) or (resets_late and not context.has(4)):
        return None
    x, h, weights, recurrent = (context.named(index) for index in range(4))
    z, r, g = (context.temporary(name) for name in ("update_gate", "reset_gate", "candidate"))
    x_parts = [context.temporary(f"x_{gate}") for gate in "zrh"]
    if resets_late:
        bias, last = context.temporary("B_zrh"), context.temporary("B_of_h")
        h_parts = [context.temporary(f"h_{gate}") for gate in "zrh"]
        context.lines += [
            f"{bias}, {last} = np.split({context.named(4).text}, [{weights.atom}.shape[0]])",
            f"{', '.join(x_parts)} = np.split({x.text} @ {weights.atom}.T + {bias}, 3, axis=1)",
            f"{', '.join(h_parts)} = np.split({h.text} @ {recurrent.atom}.T, 3, axis=1)",
        ]
        candidate = f"{r} * ({h_parts[2]} + {last})"
    else:
        total = _with_bias(context, 4, _product(x, weights))
        parts = [context.temporary(f"R_{gate}") for gate in "zrh"]
        context.lines += [
            f"{', '.join(x_parts)} = np.split({total.text}, 3, axis=1)",
            f"{', '.join(parts)} = np.split({recurrent.text}, 3)",
        ]
        h_parts = [f"{h.text} @ {part}.T" for part in parts]
        candidate = f"({r} * {h.text}) @ {parts[2]}.T"
    context.lines += [
        f"{z} = sigmoid({x_parts[0]} + {h_parts[0]})",
        f"{r} = sigmoid({x_parts[1]} + {h_parts[1]})",
        f"{g} = np.tanh({x_parts[2]} + {candidate})",
    ]
    return Term(f"(1 - {z}) * {g} + {z} * {h.text}", _SUM)


EMITTERS: Final[dict[str, Emitter]] = {
    **ARITHMETIC,
    **MOVEMENT,
    "LSTMCell": _lstm,
    "GRUCell": _gru,
    "RNNCell": lambda context: f"np.tanh({_affine(context, 2)})" if _is_plain(context, ("tanh",), 2) else None,
}
"""By operation type. Where an emitter returns None, the operation is a call of its kernel."""


PACKAGE: Final = "stepper.ops"


def kernel_of(layer: Layer) -> Kernel:
    """Return the kernel of a layer. UsageError where there is none."""
    found = None if layer.definition is None else registry.find(layer.type, layer.definition)
    if found is None:
        raise UsageError(
            f"{layer} has no kernel, so there is no numpy code for it; in a run a partner such as OpenVINO computes it"
        )
    return found


def kernel_call(context: EmitContext, kernel: Kernel, *state: str) -> str:
    """Return the call, the attributes that differ from their defaults as keywords; `state` goes before the inputs."""
    module = FILE_OF[context.layer.type]
    functions = vars(import_module(f"{PACKAGE}.{module}")).items()
    name = next(name for name, value in functions if value is kernel.function and not name.startswith("_"))
    context.needs.add(f"{PACKAGE}.{module}")
    arguments = [context.argument(index).text if context.has(index) else "None" for index in range(len(context))]
    while arguments and arguments[-1] == "None":
        arguments.pop()
    keywords = [f"{key}={attribute(value)}" for key, value in kernel.changed(context.layer.attributes).items()]
    return f"{module}.{name}({', '.join([*state, *arguments, *keywords])})"


def outputs_given(kernel: Kernel) -> int | None:
    """Return the number of outputs of the kernel; None where it is that of the layer."""
    hint = typing.get_type_hints(kernel.function)["return"]
    parts = typing.get_args(hint)
    return None if Ellipsis in parts or typing.get_origin(hint) is not tuple else len(parts)


def module_names() -> list[str]:
    """Return the names by which modules with kernels are imported; no variable may have them."""
    return sorted(set(FILE_OF.values()))
