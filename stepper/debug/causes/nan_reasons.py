"""Why an operation gives a NaN or an Inf, by its type and the numbers that go into the element: the one table of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import isfinite, isinf, isnan
from typing import Any, Final, NamedTuple

import numpy as np

from stepper import element_types
from stepper.debug.causes.cause import Arithmetic
from stepper.element_types import FLOATING, limits
from stepper.tensors.number_text import number_text


class NanReason(NamedTuple):
    """Why, and the same in numbers: `exp(89.2) > f32 maximum exp(88.72)`; `formula` is empty where nothing is known."""

    arithmetic: Arithmetic
    formula: str


class Made(NamedTuple):
    """An element and what it is made of: the operands' elements, where each can be named (else the tuple is empty).

    `result` is NaN or infinite, of the type `dtype`. `met` are the operands' tensors: is any NaN or infinite in them?
    """

    result: float
    dtype: np.dtype[Any]
    numbers: tuple[float, ...]
    has_inf: bool


def nan_reason(type: str, made: Made) -> NanReason:
    """Return why an operation of this type gives a NaN or Inf that comes from none of its operands alone."""
    if made.numbers and (type == "Exp" or type in _ELEMENTWISE):
        found = _exponential(made) if type == "Exp" else _by_element(made, *_ELEMENTWISE[type])
        if found is not None:
            return found
    elif type in _SUMS:
        return _summed(type, made)
    if isinf(made.result) and made.dtype in FLOATING and not made.has_inf:
        return NanReason(Arithmetic.OVERFLOW, f"the result {_beyond(made)}")
    return NanReason(Arithmetic.UNKNOWN, "")


# --- words ----------------------------------------------------------------------------------------------------------


def _operand(value: float) -> str:
    """Return the same behind an operator."""
    text = number_text(value)
    return f"({text})" if text.startswith("-") else text


def _beyond(made: Made) -> str:
    """`> f32 maximum 3.403e+38`, or the same of the minimum."""
    name = element_types.name_of(made.dtype)
    limit = limits(made.dtype).largest
    return f"> {name} maximum {limit:.4g}" if made.result > 0 else f"< {name} minimum {-limit:.4g}"


# --- the rules ------------------------------------------------------------------------------------------------------

Case = tuple[Arithmetic, Callable[[float, float, float], bool]]
"""A reason, and whether it holds of the (first two) operands and the result."""


def _by_element(made: Made, formula: str, cases: tuple[Case, ...]) -> NanReason | None:
    """Return the first case that holds; else an overflow, where the numbers are finite and the result is not."""
    a, b = (*made.numbers, 0.0)[:2]
    told = formula.format(a=number_text(a), x=_operand(a), y=_operand(b))
    found = next((reason for reason, holds in cases if holds(a, b, made.result)), None)
    if found is not None:
        return NanReason(found, told)
    overflows = isinf(made.result) and all(map(isfinite, made.numbers))
    return NanReason(Arithmetic.OVERFLOW, f"{told} {_beyond(made)}") if overflows else None


def _exponential(made: Made) -> NanReason | None:
    x, name = made.numbers[0], element_types.name_of(made.dtype)
    largest = float(np.log(limits(made.dtype).largest))
    formula = f"exp({number_text(x)}) > {name} maximum exp({largest:.4g})"
    return NanReason(Arithmetic.OVERFLOW, formula) if isfinite(x) else None


def _summed(type: str, made: Made) -> NanReason:
    """Of an operation that sums products, exponentials or elements, of which no single one is to blame."""
    if made.has_inf and isnan(made.result):
        if type in _NORMALISED:
            return NanReason(Arithmetic.INF_MINUS_INF, "Inf - Inf (the largest element is subtracted)")
        return NanReason(Arithmetic.INF_IN_SUM, "Inf - Inf or 0 * Inf in a sum")
    if isinf(made.result) and not made.has_inf and made.dtype in FLOATING:
        whole = "product" if type == "ReduceProd" else "sum"
        return NanReason(Arithmetic.OVERFLOW, f"the {whole} {_beyond(made)}")
    return NanReason(Arithmetic.UNKNOWN, "")


def _outside(name: str, inside: Callable[[float], bool]) -> tuple[str, tuple[Case, ...]]:
    return name + "({a})", ((Arithmetic.OUT_OF_DOMAIN, lambda a, _b, _result: not inside(a)),)


def _within_one(x: float) -> bool:
    return -1 <= x <= 1


_DIFFERENCE: Final[tuple[Case, ...]] = (
    (Arithmetic.INF_MINUS_INF, lambda a, b, result: isinf(a) and isinf(b) and isnan(result)),
)
_REMAINDER: Final[tuple[str, tuple[Case, ...]]] = (
    "the remainder of {a} / {y}",
    ((Arithmetic.DIVISION_BY_ZERO, lambda _a, b, _r: b == 0), (Arithmetic.OUT_OF_DOMAIN, lambda a, _b, _r: isinf(a))),
)
_ELEMENTWISE: Final[Mapping[str, tuple[str, tuple[Case, ...]]]] = {
    "Divide": (
        "{a} / {y}",
        (
            (Arithmetic.ZERO_BY_ZERO, lambda a, b, result: b == 0 and (a == 0 or isnan(result))),
            (Arithmetic.DIVISION_BY_ZERO, lambda _a, b, _r: b == 0),
            (Arithmetic.INF_BY_INF, lambda a, b, _r: isinf(a) and isinf(b)),
        ),
    ),
    "Multiply": (
        "{a} * {y}",
        ((Arithmetic.ZERO_TIMES_INF, lambda a, b, _r: (a == 0 and isinf(b)) or (b == 0 and isinf(a))),),
    ),
    "Add": ("{a} + {y}", _DIFFERENCE),
    "Subtract": ("{a} - {y}", _DIFFERENCE),
    "SquaredDifference": ("({a} - {y})^2", _DIFFERENCE),
    "Mod": _REMAINDER,
    "FloorMod": _REMAINDER,
    "Log": (
        "log({a})",
        ((Arithmetic.LOG_OF_ZERO, lambda a, _b, _r: a == 0), (Arithmetic.LOG_OF_NEGATIVE, lambda a, _b, _r: a < 0)),
    ),
    "Sqrt": ("sqrt({a})", ((Arithmetic.ROOT_OF_NEGATIVE, lambda a, _b, _r: a < 0),)),
    "Power": (
        "{x} ^ {y}",
        (
            (Arithmetic.DIVISION_BY_ZERO, lambda a, b, _r: a == 0 and b < 0),
            (Arithmetic.POWER_OF_NEGATIVE, lambda a, _b, result: a < 0 and isnan(result)),
        ),
    ),
    "Acos": _outside("acos", _within_one),
    "Asin": _outside("asin", _within_one),
    "Atanh": _outside("atanh", lambda x: -1 < x < 1),
    "Acosh": _outside("acosh", lambda x: x >= 1),
    **{name: _outside(name.lower(), isfinite) for name in ("Sin", "Cos", "Tan", "Sinh", "Cosh")},
    "Convert": ("{a}", ()),
    "ConvertLike": ("{a}", ()),
}
_NORMALISED: Final = frozenset({"Softmax", "LogSoftmax"})
_SUMS: Final = _NORMALISED | {
    "MatMul",
    "Einsum",
    "Convolution",
    "ConvolutionBackpropData",
    "GroupConvolution",
    "GroupConvolutionBackpropData",
    "ReduceSum",
    "ReduceMean",
    "ReduceL1",
    "ReduceL2",
    "ReduceProd",
    "CumSum",
    "ScaledDotProductAttention",
}
