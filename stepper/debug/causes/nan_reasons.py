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
    rule = _ELEMENTWISE.get(type)
    if rule is not None and made.numbers:
        found = rule(made)
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


def _overflow(made: Made, formula: str) -> NanReason | None:
    """Return the numbers are finite, and what is made of them is not."""
    if not isinf(made.result) or not all(map(isfinite, made.numbers)):
        return None
    return NanReason(Arithmetic.OVERFLOW, f"{formula} {_beyond(made)}")


# --- the rules ------------------------------------------------------------------------------------------------------

Rule = Callable[[Made], NanReason | None]


def _binary(made: Made, sign: str) -> str:
    a, b = made.numbers[:2]
    return f"{number_text(a)} {sign} {_operand(b)}"


def _quotient(made: Made) -> NanReason | None:
    if len(made.numbers) < 2:
        return None
    a, b = made.numbers[:2]
    formula = _binary(made, "/")
    if b == 0 and (a == 0 or isnan(made.result)):
        return NanReason(Arithmetic.ZERO_BY_ZERO, formula)
    if b == 0:
        return NanReason(Arithmetic.DIVISION_BY_ZERO, formula)
    if isinf(a) and isinf(b):
        return NanReason(Arithmetic.INF_BY_INF, formula)
    return _overflow(made, formula)


def _product(made: Made) -> NanReason | None:
    if len(made.numbers) < 2:
        return None
    a, b = made.numbers[:2]
    formula = _binary(made, "*")
    if (a == 0 and isinf(b)) or (b == 0 and isinf(a)):
        return NanReason(Arithmetic.ZERO_TIMES_INF, formula)
    return _overflow(made, formula)


def _sum(sign: str) -> Rule:
    def rule(made: Made) -> NanReason | None:
        if len(made.numbers) < 2:
            return None
        a, b = made.numbers[:2]
        formula = _binary(made, sign)
        if isinf(a) and isinf(b) and isnan(made.result):
            return NanReason(Arithmetic.INF_MINUS_INF, formula)
        return _overflow(made, formula)

    return rule


def _squared_difference(made: Made) -> NanReason | None:
    if len(made.numbers) < 2:
        return None
    formula = f"({_binary(made, '-')})^2"
    if isnan(made.result):
        return NanReason(Arithmetic.INF_MINUS_INF, formula) if all(map(isinf, made.numbers[:2])) else None
    return _overflow(made, formula)


def _remainder(made: Made) -> NanReason | None:
    if len(made.numbers) < 2:
        return None
    formula = f"the remainder of {_binary(made, '/')}"
    if made.numbers[1] == 0:
        return NanReason(Arithmetic.DIVISION_BY_ZERO, formula)
    return NanReason(Arithmetic.OUT_OF_DOMAIN, formula) if isinf(made.numbers[0]) else None


def _exponential(made: Made) -> NanReason | None:
    (x,) = made.numbers[:1]
    if not isfinite(x):
        return None
    largest = float(np.log(limits(made.dtype).largest))
    name = element_types.name_of(made.dtype)
    return NanReason(Arithmetic.OVERFLOW, f"exp({number_text(x)}) > {name} maximum exp({largest:.4g})")


def _logarithm(made: Made) -> NanReason | None:
    (x,) = made.numbers[:1]
    formula = f"log({number_text(x)})"
    if x == 0:
        return NanReason(Arithmetic.LOG_OF_ZERO, formula)
    return NanReason(Arithmetic.LOG_OF_NEGATIVE, formula) if x < 0 else None


def _root(made: Made) -> NanReason | None:
    (x,) = made.numbers[:1]
    return NanReason(Arithmetic.ROOT_OF_NEGATIVE, f"sqrt({number_text(x)})") if x < 0 else None


def _power(made: Made) -> NanReason | None:
    if len(made.numbers) < 2:
        return None
    base, exponent = made.numbers[:2]
    formula = f"{_operand(base)} ^ {_operand(exponent)}"
    if base == 0 and exponent < 0:
        return NanReason(Arithmetic.DIVISION_BY_ZERO, formula)
    if base < 0 and isnan(made.result):
        return NanReason(Arithmetic.POWER_OF_NEGATIVE, formula)
    return _overflow(made, formula)


def _outside(name: str, inside: Callable[[float], bool]) -> Rule:
    def rule(made: Made) -> NanReason | None:
        (x,) = made.numbers[:1]
        formula = f"{name}({number_text(x)})"
        return _overflow(made, formula) if inside(x) else NanReason(Arithmetic.OUT_OF_DOMAIN, formula)

    return rule


def _converted(made: Made) -> NanReason | None:
    return _overflow(made, number_text(made.numbers[0]))


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


def _within_one(x: float) -> bool:
    return -1 <= x <= 1


_ELEMENTWISE: Final[Mapping[str, Rule]] = {
    "Divide": _quotient,
    "Multiply": _product,
    "Add": _sum("+"),
    "Subtract": _sum("-"),
    "SquaredDifference": _squared_difference,
    "Mod": _remainder,
    "FloorMod": _remainder,
    "Exp": _exponential,
    "Log": _logarithm,
    "Sqrt": _root,
    "Power": _power,
    "Acos": _outside("acos", _within_one),
    "Asin": _outside("asin", _within_one),
    "Atanh": _outside("atanh", lambda x: -1 < x < 1),
    "Acosh": _outside("acosh", lambda x: x >= 1),
    "Sin": _outside("sin", isfinite),
    "Cos": _outside("cos", isfinite),
    "Tan": _outside("tan", isfinite),
    "Sinh": _outside("sinh", isfinite),
    "Cosh": _outside("cosh", isfinite),
    "Convert": _converted,
    "ConvertLike": _converted,
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
