"""Where a NaN or Inf of an operation comes from: an input that has it already, or the operation itself, and why."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import isfinite, isinf, isnan
from typing import Any, NamedTuple

import numpy as np

from stepper import element_types
from stepper.debug.causes.cause import Arithmetic, Element, OperandValue, Scalar
from stepper.debug.provenance.dependence_rules import LARGEST_TRIED, dependences, whole
from stepper.debug.provenance.operation_at import OperationAt
from stepper.element_types import FLOATING, Array, limits
from stepper.engine.frames import Frame
from stepper.engine.program import Operation, Value
from stepper.ir.model import layer_site
from stepper.ops.precision import emulated_dtype
from stepper.plain_values import json_number
from stepper.records import Record
from stepper.tensors.difference import index_of
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
    """Return the reason for an operation that sums products, exponentials or elements.

    No single term is to blame.
    """
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


_DIFFERENCE: tuple[Case, ...] = (
    (Arithmetic.INF_MINUS_INF, lambda a, b, result: isinf(a) and isinf(b) and isnan(result)),
)
_REMAINDER: tuple[str, tuple[Case, ...]] = (
    "the remainder of {a} / {y}",
    ((Arithmetic.DIVISION_BY_ZERO, lambda _a, b, _r: b == 0), (Arithmetic.OUT_OF_DOMAIN, lambda a, _b, _r: isinf(a))),
)
_ELEMENTWISE: Mapping[str, tuple[str, tuple[Case, ...]]] = {
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
_NORMALISED = frozenset({"Softmax", "LogSoftmax"})
_SUMS = _NORMALISED | {
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


_MOST_RUNS = 256
"""Kernel runs of an operation without a rule for the elements that matter."""


class NanOrigin(Record):
    """Describe the origin of the NaN or Inf in an element.

    `follows` is the operand that has the NaN or Inf already, at its `element`. None: it first appears in the operation;
    `arithmetic` and `formula` give the reason. Both may be given: a NaN that first appears because of an Inf follows
    the Inf.
    """

    operands: tuple[OperandValue, ...]
    follows: int | None
    arithmetic: Arithmetic | None
    formula: str

    @property
    def element(self) -> Element | None:
        """Return the element of the operand that it follows."""
        return next((one.element for one in self.operands if one.input == self.follows), None)


def is_non_finite(value: Value | None) -> bool:
    """True if an element of the value is NaN or infinite."""
    return value is not None and value.dtype in FLOATING and not bool(np.isfinite(value).all())


def scalar_of(value: Any) -> Scalar | None:
    """Return an element as plain data; None for what is not a number."""
    item = np.asarray(value)
    if item.dtype in FLOATING:
        found: Scalar = json_number(float(item))
        return found
    return item.item() if item.dtype.kind in "biu" else None


def first_element(mask: Array) -> Element:
    """Return the index of the first element that is true."""
    return index_of(int(np.flatnonzero(mask)[0]), mask.shape)


def nan_origin(frame: Frame, operation: Operation, output: int, element: Element, file: str) -> NanOrigin:
    """Return where the NaN or Inf in an element of an operation that has run in this frame comes from.

    `output` is the index of the output, `file` names the model for the operands; of inputs with very many elements the
    first NaN or Inf counts. Loops and Ifs, whose elements come from their bodies, are none of these.
    """
    at = OperationAt.in_frame(frame, operation, operation.outputs[output])
    result = at.result
    found = _source(at, element)
    places = {index: at.aligned(index, element) for index in at.given}
    numbers = [at.value(index)[place] for index, place in places.items() if place is not None]
    is_whole = len(numbers) == len(at.given)
    if found is not None:
        places[found[0]] = found[1]
    operands = _operands(frame, at, places, file)
    arithmetic, formula = None, ""
    if found is None or (isnan(float(result[element])) and not isnan(float(at.value(found[0])[found[1]]))):
        made = Made(
            float(result[element]),
            emulated_dtype(operation.computed_by) or result.dtype,
            _floats(numbers) if is_whole else (),
            any(is_non_finite(at.value(index)) for index in at.given),
        )
        arithmetic, formula = nan_reason(operation.layer.type, made)
    return NanOrigin(operands, None if found is None else found[0], arithmetic, formula)


def operands_of(frame: Frame, operation: Operation, file: str) -> tuple[OperandValue, ...]:
    """Return the inputs of an operation, of no element in particular."""
    return _operands(frame, OperationAt.in_frame(frame, operation, operation.outputs[0]), {}, file)


def _floats(numbers: Sequence[Any]) -> tuple[float, ...]:
    try:
        return tuple(float(number) for number in numbers)
    except (TypeError, ValueError):
        return ()


def _operands(
    frame: Frame, at: OperationAt, places: Mapping[int, Element | None], file: str
) -> tuple[OperandValue, ...]:
    found = []
    for index in at.given:
        source, value, place = (
            frame.program.graph.sources[at.operation.layer.id][index],
            at.value(index),
            places.get(index),
        )
        assert source is not None, "what has a slot is connected"
        is_floating = value.dtype in FLOATING
        found.append(
            OperandValue(
                input=index,
                layer=layer_site(frame.program.graph.by_id[source.layer], file),
                output=source.output,
                type=element_types.name_of(value.dtype),
                shape=value.shape,
                nan=int(np.isnan(value).sum()) if is_floating else 0,
                inf=int(np.isinf(value).sum()) if is_floating else 0,
                element=place,
                value=None if place is None else scalar_of(value[place]),
            )
        )
    return tuple(found)


def _source(at: OperationAt, element: Element) -> tuple[int, Element] | None:
    """Return the input element that makes an element NaN or infinite; None if all are finite."""
    mask = at.mask(element)
    parts = dependences(at, mask, _MOST_RUNS).found if at.size <= LARGEST_TRIED else whole(at, at.given)
    tests = (np.isnan, np.isinf) if isnan(float(at.result[element])) else (np.isinf, np.isnan)
    for test in tests:
        for part in parts:
            value = at.value(part.input)
            if value.dtype in FLOATING and (bad := part.mask & test(value)).any():
                return part.input, first_element(bad)
    return None
