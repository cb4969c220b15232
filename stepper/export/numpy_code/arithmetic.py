"""Element-wise operations, reductions and products as the numpy expressions that a person would write."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np

from stepper.element_types import ElementType, is_floating, is_of_numpy
from stepper.export.numpy_code.expressions import Expression, call, infix, literal, prefix
from stepper.export.numpy_code.literals import dtype_text
from stepper.export.numpy_code.sites import Made, Maker, Site
from stepper.ops.registry import read_attribute

_ONE: Final = literal("1")


def _pair(site: Site) -> tuple[Expression, Expression] | None:
    """Return both inputs of an operation that broadcasts as numpy does."""
    if site.attribute("auto_broadcast", "numpy") not in ("numpy", "none"):
        return None
    return site.factor(0, 1), site.factor(1, 0)


def _has_arithmetic(site: Site) -> bool:
    dtype = site.dtype(0)
    return dtype is not None and (is_floating(dtype) or dtype.kind in "iu") and dtype == site.dtype(1)


def _operator(symbol: str) -> Maker:
    def made(site: Site) -> Made:
        pair = _pair(site) if _has_arithmetic(site) else None
        return None if pair is None else infix(pair[0], symbol, pair[1])

    return made


def _comparison(symbol: str) -> Maker:
    def made(site: Site) -> Made:
        known = site.dtype(0) is not None and site.dtype(0) == site.dtype(1)
        pair = _pair(site) if known else None
        return None if pair is None else infix(pair[0], symbol, pair[1])

    return made


def _logic(symbol: str) -> Maker:
    def made(site: Site) -> Made:
        are_boolean = site.dtype(0) == site.dtype(1) == np.dtype(np.bool_)
        pair = _pair(site) if are_boolean else None
        return None if pair is None else infix(pair[0], symbol, pair[1])

    return made


def _bits(symbol: str) -> Maker:
    def made(site: Site) -> Made:
        dtype = site.dtype(0)
        pair = _pair(site) if dtype is not None and is_of_numpy(dtype) and dtype == site.dtype(1) else None
        return None if pair is None else infix(pair[0], symbol, pair[1])

    return made


def _not(site: Site) -> Made:
    return prefix("~", site.at(0)) if site.dtype(0) == np.dtype(np.bool_) else None


def _of_two(function: str) -> Maker:
    def made(site: Site) -> Made:
        pair = _pair(site) if _has_arithmetic(site) else None
        return None if pair is None else call(function, *pair)

    return made


def _divide(site: Site) -> Made:
    dtype = site.dtype(0)
    pair = _pair(site) if _has_arithmetic(site) else None
    if pair is None or dtype is None:
        return None
    if is_floating(dtype):
        return infix(pair[0], "/", pair[1])
    return infix(pair[0], "//", pair[1]) if site.flag("m_pythondiv", otherwise=True) else None


def _power(site: Site) -> Made:
    pair = _pair(site) if site.is_real and _has_arithmetic(site) else None
    return None if pair is None else infix(pair[0], "**", pair[1])


def _floor_mod(site: Site) -> Made:
    pair = _pair(site) if site.is_common and _has_arithmetic(site) else None
    return None if pair is None else infix(pair[0], "%", pair[1])


def _squared_difference(site: Site) -> Made:
    pair = _pair(site) if site.is_common and _has_arithmetic(site) else None
    return None if pair is None else call("np.square", infix(pair[0], "-", pair[1]))


def _select(site: Site) -> Made:
    if site.attribute("auto_broadcast", "numpy") not in ("numpy", "none") or site.dtype(1) is None:
        return None
    return call("np.where", site.at(0), site.factor(1, 2), site.factor(2, 1))


def _of_reals(function: str) -> Maker:
    return lambda site: call(function, site.at(0)) if site.is_real else None


def _of_numbers(function: str) -> Maker:
    return lambda site: call(function, site.at(0)) if site.is_common else None


def _negative(site: Site) -> Made:
    return prefix("-", site.at(0)) if site.is_common else None


def _round(site: Site) -> Made:
    return call("np.rint", site.at(0)) if site.is_real and "away" not in site.attribute("mode") else None


def _relu(site: Site) -> Made:
    return call("np.maximum", site.at(0), _ONE._replace(text="0")) if site.is_common else None


def _sigmoid(site: Site) -> Made:
    if not site.is_real:
        return None
    site.needs.add("sigmoid")
    return call("sigmoid", site.at(0))


def _softmax(site: Site) -> Made:
    if not site.is_real:
        return None
    site.needs.add("softmax")
    return call("softmax", site.at(0), axis=str(site.integer("axis", 1)))


def _swish(site: Site) -> Made:
    if not site.is_real or len(site) > 1:
        return None
    site.needs.add("sigmoid")
    x = site.named(0)
    return infix(x, "*", call("sigmoid", x))


def _clamp(site: Site) -> Made:
    low, high = float(site.attribute("min", "0")), float(site.attribute("max", "0"))
    if not site.is_real or not np.isfinite([low, high]).all() or not low <= high:
        return None
    return call("np.clip", site.at(0), repr(low), repr(high))


# --- reductions ------------------------------------------------------------------------------------------------------


def _reduction(function: str, *, types: str, widens: bool = False) -> Maker:
    """Return the emitter of a reduction; `types` are the kinds that numpy reduces as the specification does."""

    def made(site: Site) -> Made:
        axes, dtype = site.numbers(1), site.dtype(0)
        if axes is None or dtype is None or not is_of_numpy(dtype) or dtype.kind not in types or dtype == np.float16:
            return None
        if 0 in site.dims(0):
            return None  # what numpy says of nothing is not what the specification says
        keywords = {"axis": str(axes[0]) if len(axes) == 1 else str(tuple(axes))}
        if widens and dtype.kind in "iu" and dtype.itemsize < 8:
            keywords["dtype"] = dtype_text(dtype)
        if site.flag("keep_dims"):
            keywords["keepdims"] = "True"
        return call(function, site.at(0), **keywords)

    return made


def _norm(of: Callable[[Expression], Expression], *, root: bool) -> Maker:
    def made(site: Site) -> Made:
        total = _reduction("np.sum", types="f")(site)
        if total is None:
            return None
        x = site.named(0)
        total = total._replace(text=total.text.replace(x.text, of(x).text, 1))
        return call("np.sqrt", total) if root else total

    return made


def _top(site: Site) -> Made:
    """Return the largest or smallest element with its index."""
    count, index_type = site.numbers(1), site.layer.attributes.get("index_element_type", "i32")
    if count != [1] or not site.is_real or index_type not in ("i32", "i64"):
        return None
    x, axis = site.named(0), str(site.integer("axis"))
    is_least = site.attribute("mode") == "min"
    position = call("np.argmin" if is_least else "np.argmax", x, axis=axis, keepdims="True")
    if index_type == "i32":
        position = Expression(f"{position.text}.astype(np.int32)")
    site.results = [call("np.min" if is_least else "np.max", x, axis=axis, keepdims="True"), position]
    return site.results[0]


def _cumulative(site: Site) -> Made:
    axis = site.numbers(1)
    if axis is None or len(axis) != 1 or not site.is_common or site.flag("exclusive") or site.flag("reverse"):
        return None
    dtype = site.dtype(0)
    assert dtype is not None
    keywords = {"dtype": dtype_text(dtype)} if dtype.kind in "iu" and dtype.itemsize < 8 else {}
    return call("np.cumsum", site.at(0), axis=str(axis[0]), **keywords)


# --- products --------------------------------------------------------------------------------------------------------


def _matmul(site: Site) -> Made:
    if not site.is_common or not site.is_real:
        return None
    sides = [_turned(site, index, name) for index, name in enumerate(("transpose_a", "transpose_b"))]
    if sides[0] is None or sides[1] is None:
        return None
    return infix(sides[0], "@", sides[1])


def _turned(site: Site, index: int, attribute: str) -> Made:
    if not site.flag(attribute):
        return site.at(index)
    rank = site.rank(index)
    if rank is None:
        return None
    if rank == 1:
        return site.at(index)
    return Expression(f"{site.at(index).atom}{'.T' if rank == 2 else '.swapaxes(-1, -2)'}")


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


def _convert(site: Site) -> Made:
    target = _destination(site.layer.attributes.get("destination_type", ""))
    return None if target is None else converted(site, target)


def converted(site: Site, target: np.dtype[Any]) -> Made:
    """Return the first input in another type."""
    source = site.dtype(0)
    if source == target:
        return site.at(0)
    if source is None or not (converts_plainly(source, target) or target == np.dtype(np.bool_)):
        return None
    if target == np.dtype(np.bool_):
        return infix(site.at(0), "!=", literal("0")) if is_of_numpy(source) else None
    if not is_of_numpy(target):
        site.needs.add("ml_dtypes")
    return Expression(f"{site.at(0).atom}.astype({dtype_text(target)})")


def _destination(text: str) -> np.dtype[Any] | None:
    found = read_attribute("destination_type", text, ElementType | None)
    return None if found is None else found.dtype


MAKERS: Final[dict[str, Maker]] = {
    "Add": _operator("+"), "Subtract": _operator("-"), "Multiply": _operator("*"), "Divide": _divide, "Power": _power,
    "FloorMod": _floor_mod, "Mod": _of_two("np.fmod"), "Maximum": _of_two("np.maximum"),
    "Minimum": _of_two("np.minimum"), "SquaredDifference": _squared_difference, "Select": _select,
    "Equal": _comparison("=="), "NotEqual": _comparison("!="), "Less": _comparison("<"),
    "LessEqual": _comparison("<="), "Greater": _comparison(">"), "GreaterEqual": _comparison(">="),
    "LogicalAnd": _logic("&"), "LogicalOr": _logic("|"), "LogicalXor": _logic("^"), "LogicalNot": _not,
    "BitwiseAnd": _bits("&"), "BitwiseOr": _bits("|"), "BitwiseXor": _bits("^"), "BitwiseNot": _not,
    "Abs": _of_numbers("np.abs"), "Negative": _negative, "Sign": _of_numbers("np.sign"), "Floor": _of_reals("np.floor"),
    "Ceiling": _of_reals("np.ceil"), "Round": _round, "Sqrt": _of_reals("np.sqrt"), "Exp": _of_reals("np.exp"),
    "Log": _of_reals("np.log"), "Sin": _of_reals("np.sin"), "Cos": _of_reals("np.cos"), "Tan": _of_reals("np.tan"),
    "Asin": _of_reals("np.arcsin"), "Acos": _of_reals("np.arccos"), "Atan": _of_reals("np.arctan"),
    "Sinh": _of_reals("np.sinh"), "Cosh": _of_reals("np.cosh"), "Tanh": _of_reals("np.tanh"),
    "Asinh": _of_reals("np.arcsinh"), "Acosh": _of_reals("np.arccosh"), "Atanh": _of_reals("np.arctanh"),
    "IsNaN": _of_reals("np.isnan"), "IsFinite": _of_reals("np.isfinite"), "Relu": _relu, "Sigmoid": _sigmoid,
    "Softmax": _softmax, "Swish": _swish, "Clamp": _clamp,
    "ReduceSum": _reduction("np.sum", types="iuf", widens=True), "ReduceMean": _reduction("np.mean", types="f"),
    "ReduceMax": _reduction("np.max", types="iuf"), "ReduceMin": _reduction("np.min", types="iuf"),
    "ReduceProd": _reduction("np.prod", types="iuf", widens=True),
    "ReduceLogicalAnd": _reduction("np.all", types="b"), "ReduceLogicalOr": _reduction("np.any", types="b"),
    "ReduceL1": _norm(lambda x: call("np.abs", x), root=False), "TopK": _top,
    "ReduceL2": _norm(lambda x: call("np.square", x), root=True),
    "CumSum": _cumulative, "MatMul": _matmul, "Convert": _convert,
}  # fmt: skip
"""By operation type. Where a maker gives None, the operation is a call of its kernel."""
