"""Why an operation gives a NaN or an Inf, by its type and the numbers that go into the element: the one table of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
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
        try:
            found = rule(made)
        except ValueError:  # it has too few operands
            found = None
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

Rule = Callable[[Made], NanReason | None]


def _first(made: Made, formula: str, *cases: tuple[object, Arithmetic]) -> NanReason | None:
    """Return the first case that holds; else an overflow, where the numbers are finite and the result is not."""
    overflows = isinf(made.result) and all(map(isfinite, made.numbers))
    found = next((reason for holds, reason in cases if holds), None)
    if found is not None:
        return NanReason(found, formula)
    return NanReason(Arithmetic.OVERFLOW, f"{formula} {_beyond(made)}") if overflows else None


def _binary(made: Made, sign: str) -> tuple[float, float, str]:
    a, b = made.numbers[:2]
    return a, b, f"{number_text(a)} {sign} {_operand(b)}"


def _quotient(made: Made) -> NanReason | None:
    a, b, formula = _binary(made, "/")
    return _first(
        made,
        formula,
        (b == 0 and (a == 0 or isnan(made.result)), Arithmetic.ZERO_BY_ZERO),
        (b == 0, Arithmetic.DIVISION_BY_ZERO),
        (isinf(a) and isinf(b), Arithmetic.INF_BY_INF),
    )


def _product(made: Made) -> NanReason | None:
    a, b, formula = _binary(made, "*")
    return _first(made, formula, ((a == 0 and isinf(b)) or (b == 0 and isinf(a)), Arithmetic.ZERO_TIMES_INF))


def _sum(made: Made, *, sign: str) -> NanReason | None:
    a, b, formula = _binary(made, sign)
    return _first(made, formula, (isinf(a) and isinf(b) and isnan(made.result), Arithmetic.INF_MINUS_INF))


def _squared_difference(made: Made) -> NanReason | None:
    a, b, formula = _binary(made, "-")
    return _first(made, f"({formula})^2", (isinf(a) and isinf(b) and isnan(made.result), Arithmetic.INF_MINUS_INF))


def _remainder(made: Made) -> NanReason | None:
    a, b, formula = _binary(made, "/")
    cases = (b == 0, Arithmetic.DIVISION_BY_ZERO), (isinf(a), Arithmetic.OUT_OF_DOMAIN)
    return _first(made, f"the remainder of {formula}", *cases)


def _exponential(made: Made) -> NanReason | None:
    x, name = made.numbers[0], element_types.name_of(made.dtype)
    largest = float(np.log(limits(made.dtype).largest))
    formula = f"exp({number_text(x)}) > {name} maximum exp({largest:.4g})"
    return NanReason(Arithmetic.OVERFLOW, formula) if isfinite(x) else None


def _logarithm(made: Made) -> NanReason | None:
    x = made.numbers[0]
    return _first(made, f"log({number_text(x)})", (x == 0, Arithmetic.LOG_OF_ZERO), (x < 0, Arithmetic.LOG_OF_NEGATIVE))


def _root(made: Made) -> NanReason | None:
    return _first(made, f"sqrt({number_text(made.numbers[0])})", (made.numbers[0] < 0, Arithmetic.ROOT_OF_NEGATIVE))


def _power(made: Made) -> NanReason | None:
    base, exponent = made.numbers[:2]
    return _first(
        made,
        f"{_operand(base)} ^ {_operand(exponent)}",
        (base == 0 and exponent < 0, Arithmetic.DIVISION_BY_ZERO),
        (base < 0 and isnan(made.result), Arithmetic.POWER_OF_NEGATIVE),
    )


def _outside(name: str, inside: Callable[[float], bool]) -> Rule:
    def rule(made: Made) -> NanReason | None:
        x = made.numbers[0]
        return _first(made, f"{name}({number_text(x)})", (not inside(x), Arithmetic.OUT_OF_DOMAIN))

    return rule


def _converted(made: Made) -> NanReason | None:
    return _first(made, number_text(made.numbers[0]))


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
    "Add": partial(_sum, sign="+"),
    "Subtract": partial(_sum, sign="-"),
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
    **{name: _outside(name.lower(), isfinite) for name in ("Sin", "Cos", "Tan", "Sinh", "Cosh")},
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
