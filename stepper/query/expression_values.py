"""Operators and functions of expressions on values: numpy's rules, with three additions.

A number in the text takes the type of the tensor that it meets, also of the types that numpy lacks (0.1 equals the
bf16 nearest to 0.1). Packed codes (i4, u3, nf4 ...) count as the numbers that they stand for. A result that would be
far larger than what it is made of is refused.

A value is a tensor (an ndarray, or numpy's scalar for one of rank 0) or a plain number of Python's (from the text,
`iter`, a size). All functions raise ValueFailure with one sentence; numpy's warnings are the caller's to silence.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from typing import Any, Final

import numpy as np

from stepper import element_types
from stepper.element_types import FLOATING, STRING_DTYPE, limits
from stepper.ops.convert import convert
from stepper.ops.operands import broadcast_shape, form_text, shape_text
from stepper.tensors.summaries import NOT_RECORDED, Summary, Unknown

LARGEST_RESULT = 2**24
"""Elements of a tensor that broadcasting may make of smaller ones."""

Value = Any
Operation = Callable[[Value, Value], Value]

_CHUNK = 2**13  # so few that a BLAS wakes no threads for a dot product
_LAST_OF_NUMPY = 255
"""dtype.num of types that others than numpy registered is larger."""


class ValueFailure(Exception):
    """Values with which an operation cannot be done."""


FAILURES = (TypeError, ValueError, OverflowError, IndexError, ArithmeticError, MemoryError, AttributeError)
"""Exceptions of numpy and Python for values that do not fit an operation."""

ARITHMETIC: Final[dict[str, Operation]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": operator.truediv,
    "//": operator.floordiv,
    "%": operator.mod,
    "**": operator.pow,
}
COMPARISONS: Final[dict[str, Operation]] = {
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


def described(value: Value) -> str:
    """`f32[2,3]`, or the number itself."""
    if isinstance(value, np.ndarray | np.generic):
        return form_text(value)
    return str(value)


# --- widening -------------------------------------------------------------------------------------------------------

_CODES = {
    **{element_types.ELEMENT_TYPES[name].dtype: element_types.I32 for name in ("i4", "u1", "u2", "u3", "u4", "u6")},
    element_types.ELEMENT_TYPES["nf4"].dtype: element_types.F32,
}
NATIVE = frozenset(np.dtype(kind).num for kind in "?bBhHiIlLqQefd")
"""dtype.num of numpy's own types of numbers, for which `numeric` need not be called."""

NATIVE_SCALARS = frozenset(np.dtype(kind).type for kind in "?bBhHiIlLqQefd")
"""The same as classes of scalars."""


def numeric(value: Value) -> Value:
    """Return the tensor in a type to compute with: packed codes as numbers, others unchanged.

    Raises ValueFailure for texts, and for a tensor with statistics only.
    """
    if isinstance(value, Summary):
        raise ValueFailure(f"{value.size:,} elements would be needed, and {NOT_RECORDED}")
    if isinstance(value, str) or value.dtype == STRING_DTYPE:
        raise ValueFailure("nothing can be computed with texts")
    number_type = _CODES.get(value.dtype)
    return value if number_type is None else convert(np.asarray(value), destination_type=number_type)


def summary_or_numeric(value: Value) -> Value:
    """Return a tensor with statistics only unchanged, and every other value as `numeric` does."""
    return value if isinstance(value, Summary) else numeric(value)


def _wide(value: Value) -> Value:
    """Return a narrow float as f32, which holds it exactly; other values as they are."""
    if isinstance(value, np.ndarray | np.generic) and value.dtype in FLOATING and value.dtype.itemsize < 4:
        return value.astype(np.float32)
    return value


# --- operators ------------------------------------------------------------------------------------------------------


def on_tensors(operation: Operation) -> Operation:
    """Return the operation on two tensors, broadcast as numpy does, but not beyond LARGEST_RESULT."""

    def apply(a: Value, b: Value) -> Value:
        if a.shape != b.shape:
            ensure_broadcastable(a, b)
        try:
            return operation(a, b)
        except FAILURES as error:
            return _again_in_f32(operation, a, b, error)

    return apply


def on_tensor_and_number(operation: Operation) -> Operation:
    """Return the operation on a tensor and a plain number."""

    def apply(a: Value, b: Value) -> Value:
        try:
            if a.dtype.num > _LAST_OF_NUMPY:
                return operation(a, _rounded(b, a.dtype))
            return operation(a, b)
        except FAILURES as error:
            raise ValueFailure(_reason(a, b, error)) from None

    return apply


def on_number_and_tensor(operation: Operation) -> Operation:
    """Return the operation on a plain number and a tensor."""
    swapped = on_tensor_and_number(lambda tensor, number: operation(number, tensor))
    return lambda a, b: swapped(b, a)


def on_numbers(operation: Operation) -> Operation:
    """Return the operation on plain numbers.

    A result beyond 64 bits becomes a float, and division by zero follows floats.
    """

    def apply(a: Value, b: Value) -> Value:
        try:
            if operation is operator.pow:
                return _power(a, b)
            return _bounded(operation(a, b))
        except (ZeroDivisionError, OverflowError):
            with np.errstate(all="ignore"):
                return float(operation(np.float64(a), np.float64(b)))

    return apply


def _power(a: float, b: float) -> Value:
    if isinstance(a, int) and isinstance(b, int) and (b < 0 or a.bit_length() * b > 64):
        a = float(a)
    result = a**b
    return math.nan if isinstance(result, complex) else result


def _bounded(result: Value) -> Value:
    return float(result) if isinstance(result, int) and result.bit_length() > 64 else result


def _rounded(number: Value, dtype: np.dtype[Any]) -> Value:
    """Return a number as the nearest of a type that numpy does not know, unless that type has none near it.

    Numpy's own types round by themselves.
    """
    if dtype not in FLOATING:
        return number
    rounded = dtype.type(number)
    beyond = abs(number) > limits(dtype).largest or math.isnan(rounded) != math.isnan(number)
    return float(number) if beyond else rounded


def _again_in_f32(operation: Operation, a: Value, b: Value, error: Exception) -> Value:
    """For pairs of narrow types that have no common one."""
    wide_a, wide_b = _wide(a), _wide(b)
    if isinstance(error, TypeError) and (wide_a is not a or wide_b is not b):
        return on_tensors(operation)(wide_a, wide_b)
    raise ValueFailure(_reason(a, b, error)) from None


def _reason(a: Value, b: Value, error: Exception) -> str:
    text = f"{described(a)} and {described(b)} do not go together"
    return text if isinstance(error, TypeError | AttributeError) else f"{text}: {first_line(error)}"


def first_line(error: Exception) -> str:
    """Return the beginning of another's message."""
    return (str(error).splitlines() or [type(error).__name__])[0][:200]


def ensure_broadcastable(a: Value, b: Value) -> None:
    """Refuse shapes that do not fit, and results out of all proportion."""
    try:
        shape = broadcast_shape(a.shape, b.shape)
    except ValueError:
        raise ValueFailure(f"the shapes {shape_text(a.shape)} and {shape_text(b.shape)} do not fit") from None
    size = math.prod(shape)
    if size > LARGEST_RESULT and size > max(a.size, b.size):
        raise ValueFailure(f"the result would have {size:,} elements, the limit is {LARGEST_RESULT:,}")


def negative(value: Value) -> Value:
    """`-x`."""
    try:
        return -value
    except FAILURES as error:
        raise ValueFailure(f"there is no negative of {described(value)}: {first_line(error)}") from None


# --- truth ----------------------------------------------------------------------------------------------------------

_SCALARS = (bool, np.bool_, int, float)


def is_single(value: Value) -> bool:
    """True if a value has one element."""
    return isinstance(value, _SCALARS) or value.size == 1


def truth(value: Value) -> bool:
    """Return the truth of a value of one element: whether it is not 0 (NaN is not)."""
    return bool(value) if isinstance(value, _SCALARS) else bool(np.asarray(value).reshape(-1)[0])


def combined(operation: Operation, collected: Value | None, value: Value) -> Value:
    """Return two tensors of truth values, element by element; `collected` is None for the first of several."""
    if collected is None:
        return value if value.dtype == np.bool_ else np.not_equal(value, 0)
    return on_tensors(operation)(collected, value)


def opposite(value: Value) -> Value:
    """`not x`: of one element a truth value, else element by element."""
    return np.bool_(not truth(value)) if is_single(value) else np.logical_not(value)


# --- functions ------------------------------------------------------------------------------------------------------


def _tensor(value: Value) -> Value:
    return value if isinstance(value, np.ndarray | np.generic) else np.asarray(value)


def _mean(x: Value) -> Value:
    x = _wide(_tensor(x))
    return x.mean() if x.size else np.float64(math.nan)


def _std(x: Value) -> Value:
    x = _wide(_tensor(x))
    return x.std() if x.size else np.float64(math.nan)


def _norm(x: Value) -> Value:
    """Return the l2 norm: squares are added in f64, so those of f32 and narrower cannot overflow."""
    flat = _wide(_tensor(x)).reshape(-1)
    squares = 0.0
    for begin in range(0, flat.size, _CHUNK):
        chunk = flat[begin : begin + _CHUNK].astype(np.float64)
        squares += float(np.dot(chunk, chunk))
    root = math.sqrt(squares)
    return np.float32(root) if flat.dtype == np.float32 else np.float64(root)


FUNCTIONS: Final[dict[str, Callable[[Value], Value]]] = {
    "any": lambda x: bool(_tensor(x).any()),
    "all": lambda x: bool(_tensor(x).all()),
    "max": lambda x: _tensor(x).max(),
    "min": lambda x: _tensor(x).min(),
    "mean": _mean,
    "sum": lambda x: _wide(_tensor(x)).sum(),
    "abs": abs,
    "isnan": np.isnan,
    "isinf": np.isinf,
    "isfinite": np.isfinite,
    "norm": _norm,
    "std": _std,
    "argmax": lambda x: int(_tensor(x).argmax()),
    "argmin": lambda x: int(_tensor(x).argmin()),
}
"""Functions of one tensor. Reductions are over all elements, argmax and argmin give the flat index."""

PLAIN_RESULTS = frozenset({"any", "all", "argmax", "argmin"})
"""Functions whose result is a plain number."""


def call(name: str) -> Callable[[Value], Value]:
    """Return the function with its complaints as ValueFailure."""
    function = FUNCTIONS[name]

    def apply(x: Value) -> Value:
        if isinstance(x, Summary):
            return _known(lambda: x.reduced(name))
        try:
            return function(x)
        except FAILURES as error:
            detail = "" if isinstance(error, TypeError) else f": {first_line(error)}"
            raise ValueFailure(f"{name}() cannot be taken of {described(x)}{detail}") from None

    return apply


def call_on_each(outer: str, inner: str) -> Callable[[Value], Value]:
    """`any(isnan(x))` and the like, which statistics answer too."""
    each, together = call(inner), call(outer)

    def apply(x: Value) -> Value:
        if isinstance(x, Summary):
            return _known(lambda: x.together(outer, inner))
        return together(each(x))

    return apply


def _known(ask: Callable[[], Value]) -> Value:
    try:
        return ask()
    except Unknown as error:
        raise ValueFailure(str(error)) from None


# --- indices --------------------------------------------------------------------------------------------------------


def element(value: Value, index: tuple[Any, ...]) -> Value:
    """Return the part of a tensor."""
    try:
        return value[index]
    except IndexError as error:
        rank = len(value.shape)
        axes = f"{rank} ax{'i' if rank == 1 else 'e'}s" if rank else "a scalar has no axes"
        many = f"too many indices: {len(index)} for {axes}" if rank else f"too many indices: {axes}"
        raise ValueFailure(f"{described(value)}: {many if len(index) > rank else first_line(error)}") from None
    except FAILURES as error:
        raise ValueFailure(f"{described(value)}: {first_line(error)}") from None


def as_index(value: Value) -> Any:
    """Return a value between brackets: a whole number, or a mask of booleans."""
    if isinstance(value, np.ndarray) and value.dtype == np.bool_ and value.ndim:
        return value
    if isinstance(value, bool | np.bool_):
        raise ValueFailure("an index is a whole number or a mask, not one truth value")
    try:
        return operator.index(value.reshape(-1)[0] if isinstance(value, np.ndarray) and value.size == 1 else value)
    except (TypeError, AttributeError):
        raise ValueFailure(f"an index is a whole number or a mask of booleans, not {described(value)}") from None
