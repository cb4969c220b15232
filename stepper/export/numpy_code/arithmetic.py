"""Element-wise operations, reductions and products as the numpy expressions that a person would write."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np

from stepper.element_types import ElementType, is_floating, is_of_numpy
from stepper.export.numpy_code.emit_context import EmitContext, Emitted, Emitter
from stepper.export.numpy_code.expressions import CodeExpression, call, infix, literal, prefix
from stepper.export.numpy_code.literals import dtype_text
from stepper.ops.registry import read_attribute

_ONE: Final = literal("1")


def _pair(context: EmitContext) -> tuple[CodeExpression, CodeExpression] | None:
    """Return both inputs of an operation that broadcasts as numpy does."""
    if context.attribute("auto_broadcast", "numpy") not in ("numpy", "none"):
        return None
    return context.factor(0, 1), context.factor(1, 0)


def _binary(code: str, accepts: Callable[[EmitContext], bool]) -> Emitter:
    """Return the emitter of an operator, or of a function of numpy, for the element types that it accepts."""

    def emit(context: EmitContext) -> Emitted:
        pair = _pair(context) if accepts(context) else None
        if pair is None:
            return None
        return call(code, *pair) if code.startswith("np.") else infix(pair[0], code, pair[1])

    return emit


def _are_numbers(context: EmitContext) -> bool:
    dtype = context.dtype(0)
    return dtype is not None and (is_floating(dtype) or dtype.kind in "iu") and dtype == context.dtype(1)


def _are_alike(context: EmitContext) -> bool:
    return context.dtype(0) is not None and context.dtype(0) == context.dtype(1)


def _are_booleans(context: EmitContext) -> bool:
    return context.dtype(0) == context.dtype(1) == np.dtype(np.bool_)


def _are_of_numpy(context: EmitContext) -> bool:
    dtype = context.dtype(0)
    return dtype is not None and is_of_numpy(dtype) and dtype == context.dtype(1)


def _are_common_numbers(context: EmitContext) -> bool:
    return context.is_common and _are_numbers(context)


def _are_real_numbers(context: EmitContext) -> bool:
    return context.is_real and _are_numbers(context)


def _not(context: EmitContext) -> Emitted:
    return prefix("~", context.at(0)) if context.dtype(0) == np.dtype(np.bool_) else None


def _divide(context: EmitContext) -> Emitted:
    dtype = context.dtype(0)
    if dtype is None or not (is_floating(dtype) or context.flag("m_pythondiv", otherwise=True)):
        return None
    return _binary("/" if is_floating(dtype) else "//", _are_numbers)(context)


def _squared_difference(context: EmitContext) -> Emitted:
    difference = _binary("-", _are_common_numbers)(context)
    return None if difference is None else call("np.square", difference)


def _select(context: EmitContext) -> Emitted:
    if context.attribute("auto_broadcast", "numpy") not in ("numpy", "none") or context.dtype(1) is None:
        return None
    return call("np.where", context.at(0), context.factor(1, 2), context.factor(2, 1))


def _of_reals(function: str) -> Emitter:
    return lambda context: call(function, context.at(0)) if context.is_real else None


def _of_numbers(function: str) -> Emitter:
    return lambda context: call(function, context.at(0)) if context.is_common else None


def _negative(context: EmitContext) -> Emitted:
    return prefix("-", context.at(0)) if context.is_common else None


def _round(context: EmitContext) -> Emitted:
    return call("np.rint", context.at(0)) if context.is_real and "away" not in context.attribute("mode") else None


def _relu(context: EmitContext) -> Emitted:
    return call("np.maximum", context.at(0), _ONE._replace(text="0")) if context.is_common else None


def _sigmoid(context: EmitContext) -> Emitted:
    if not context.is_real:
        return None
    context.needs.add("sigmoid")
    return call("sigmoid", context.at(0))


def _softmax(context: EmitContext) -> Emitted:
    if not context.is_real:
        return None
    context.needs.add("softmax")
    return call("softmax", context.at(0), axis=str(context.integer("axis", 1)))


def _swish(context: EmitContext) -> Emitted:
    if not context.is_real or len(context) > 1:
        return None
    context.needs.add("sigmoid")
    x = context.named(0)
    return infix(x, "*", call("sigmoid", x))


def _clamp(context: EmitContext) -> Emitted:
    low, high = float(context.attribute("min", "0")), float(context.attribute("max", "0"))
    if not context.is_real or not np.isfinite([low, high]).all() or not low <= high:
        return None
    return call("np.clip", context.at(0), repr(low), repr(high))


# --- reductions ------------------------------------------------------------------------------------------------------


def _reduction(function: str, *, types: str, widens: bool = False) -> Emitter:
    """Return the emitter of a reduction; `types` are the kinds that numpy reduces as the specification does."""

    def emit(context: EmitContext) -> Emitted:
        axes, dtype = context.numbers(1), context.dtype(0)
        if axes is None or dtype is None or not is_of_numpy(dtype) or dtype.kind not in types or dtype == np.float16:
            return None
        if 0 in context.dims(0):
            return None  # what numpy says of nothing is not what the specification says
        keywords = {"axis": str(axes[0]) if len(axes) == 1 else str(tuple(axes))}
        if widens and dtype.kind in "iu" and dtype.itemsize < 8:
            keywords["dtype"] = dtype_text(dtype)
        if context.flag("keep_dims"):
            keywords["keepdims"] = "True"
        return call(function, context.at(0), **keywords)

    return emit


def _norm(of: Callable[[CodeExpression], CodeExpression], *, root: bool) -> Emitter:
    def emit(context: EmitContext) -> Emitted:
        total = _reduction("np.sum", types="f")(context)
        if total is None:
            return None
        x = context.named(0)
        total = total._replace(text=total.text.replace(x.text, of(x).text, 1))
        return call("np.sqrt", total) if root else total

    return emit


def _top(context: EmitContext) -> Emitted:
    """Return the largest or smallest element with its index."""
    count, index_type = context.numbers(1), context.layer.attributes.get("index_element_type", "i32")
    if count != [1] or not context.is_real or index_type not in ("i32", "i64"):
        return None
    x, axis = context.named(0), str(context.integer("axis"))
    is_least = context.attribute("mode") == "min"
    position = call("np.argmin" if is_least else "np.argmax", x, axis=axis, keepdims="True")
    if index_type == "i32":
        position = CodeExpression(f"{position.text}.astype(np.int32)")
    context.results = [call("np.min" if is_least else "np.max", x, axis=axis, keepdims="True"), position]
    return context.results[0]


def _cumulative(context: EmitContext) -> Emitted:
    axis = context.numbers(1)
    if axis is None or len(axis) != 1 or not context.is_common or context.flag("exclusive") or context.flag("reverse"):
        return None
    dtype = context.dtype(0)
    assert dtype is not None
    keywords = {"dtype": dtype_text(dtype)} if dtype.kind in "iu" and dtype.itemsize < 8 else {}
    return call("np.cumsum", context.at(0), axis=str(axis[0]), **keywords)


# --- products --------------------------------------------------------------------------------------------------------


def _matmul(context: EmitContext) -> Emitted:
    if not context.is_common or not context.is_real:
        return None
    sides = [_turned(context, index, name) for index, name in enumerate(("transpose_a", "transpose_b"))]
    if sides[0] is None or sides[1] is None:
        return None
    return infix(sides[0], "@", sides[1])


def _turned(context: EmitContext, index: int, attribute: str) -> Emitted:
    if not context.flag(attribute):
        return context.at(index)
    rank = context.rank(index)
    if rank is None:
        return None
    if rank == 1:
        return context.at(index)
    return CodeExpression(f"{context.at(index).atom}{'.T' if rank == 2 else '.swapaxes(-1, -2)'}")


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


def _convert(context: EmitContext) -> Emitted:
    target = _destination(context.layer.attributes.get("destination_type", ""))
    return None if target is None else converted(context, target)


def converted(context: EmitContext, target: np.dtype[Any]) -> Emitted:
    """Return the first input in another type."""
    source = context.dtype(0)
    if source == target:
        return context.at(0)
    if source is None or not (converts_plainly(source, target) or target == np.dtype(np.bool_)):
        return None
    if target == np.dtype(np.bool_):
        return infix(context.at(0), "!=", literal("0")) if is_of_numpy(source) else None
    if not is_of_numpy(target):
        context.needs.add("ml_dtypes")
    return CodeExpression(f"{context.at(0).atom}.astype({dtype_text(target)})")


def _destination(text: str) -> np.dtype[Any] | None:
    found = read_attribute("destination_type", text, ElementType | None)
    return None if found is None else found.dtype


_BINARY: Final = {
    _are_numbers: {
        "Add": "+", "Subtract": "-", "Multiply": "*", "Mod": "np.fmod",
        "Maximum": "np.maximum", "Minimum": "np.minimum",
    },
    _are_common_numbers: {"FloorMod": "%"},
    _are_real_numbers: {"Power": "**"},
    _are_alike: {
        "Equal": "==", "NotEqual": "!=", "Less": "<", "LessEqual": "<=", "Greater": ">", "GreaterEqual": ">=",
    },
    _are_booleans: {"LogicalAnd": "&", "LogicalOr": "|", "LogicalXor": "^"},
    _are_of_numpy: {"BitwiseAnd": "&", "BitwiseOr": "|", "BitwiseXor": "^"},
}  # fmt: skip
_OF_REALS: Final = {
    "Floor": "floor", "Ceiling": "ceil", "Sqrt": "sqrt", "Exp": "exp", "Log": "log", "Sin": "sin", "Cos": "cos",
    "Tan": "tan", "Asin": "arcsin", "Acos": "arccos", "Atan": "arctan", "Sinh": "sinh", "Cosh": "cosh", "Tanh": "tanh",
    "Asinh": "arcsinh", "Acosh": "arccosh", "Atanh": "arctanh", "IsNaN": "isnan", "IsFinite": "isfinite",
}  # fmt: skip

EMITTERS: Final[dict[str, Emitter]] = {
    **{type: _binary(code, accepts) for accepts, codes in _BINARY.items() for type, code in codes.items()},
    **{type: _of_reals(f"np.{function}") for type, function in _OF_REALS.items()},
    "Divide": _divide, "SquaredDifference": _squared_difference, "Select": _select, "LogicalNot": _not,
    "BitwiseNot": _not, "Abs": _of_numbers("np.abs"), "Negative": _negative, "Sign": _of_numbers("np.sign"),
    "Round": _round, "Relu": _relu, "Sigmoid": _sigmoid, "Softmax": _softmax, "Swish": _swish, "Clamp": _clamp,
    "ReduceSum": _reduction("np.sum", types="iuf", widens=True), "ReduceMean": _reduction("np.mean", types="f"),
    "ReduceMax": _reduction("np.max", types="iuf"), "ReduceMin": _reduction("np.min", types="iuf"),
    "ReduceProd": _reduction("np.prod", types="iuf", widens=True),
    "ReduceLogicalAnd": _reduction("np.all", types="b"), "ReduceLogicalOr": _reduction("np.any", types="b"),
    "ReduceL1": _norm(lambda x: call("np.abs", x), root=False), "TopK": _top,
    "ReduceL2": _norm(lambda x: call("np.square", x), root=True),
    "CumSum": _cumulative, "MatMul": _matmul, "Convert": _convert,
}  # fmt: skip
"""By operation type. Where an emitter returns None, the operation is a call of its kernel."""
