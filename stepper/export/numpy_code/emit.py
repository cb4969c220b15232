"""Code of one operation: the context in which it is written, expressions, literals, names that are safe in Python."""

from __future__ import annotations

import builtins
import keyword
import re
from collections.abc import Callable, Iterable
from typing import Any, Final, NamedTuple

import numpy as np
from msgspec import Struct

from stepper.element_types import ElementType, is_floating, is_of_numpy, of_dtype
from stepper.ir.model import Layer
from stepper.query.short_names import is_automatic, last_part
from stepper.wording import excerpt

LARGEST: Final = 24
"""Elements of a tensor that stands in the text; larger ones go into the file of constants."""

_BOOLEAN: Final = np.dtype(np.bool_)


def dtype_text(dtype: np.dtype[Any]) -> str:
    """Return a dtype as code: `np.float32`, `ml_dtypes.bfloat16`."""
    if dtype == _BOOLEAN:
        return "np.bool_"
    if dtype.kind == "T":
        return "np.dtypes.StringDType()"
    if dtype.names:
        return f'np.dtype([("{of_dtype(dtype).name}", np.uint8)])'
    return f"np.{dtype.name}" if is_of_numpy(dtype) else f"ml_dtypes.{dtype.name}"


def is_writable(value: Any) -> bool:
    """True if the tensor is small enough, and of a type that has literals, to stand in the text."""
    return bool(value.size <= LARGEST and value.ndim <= 4 and value.dtype.names is None) or is_uniform(value)


def is_uniform(value: Any) -> bool:
    """True if all elements are the same 0 or 1, and so many that saying so is shorter."""
    if value.dtype.kind not in "biuf" or value.size < (1 if value.ndim > 1 else 2) or value.ndim == 0:
        return False
    first = np.ravel(value)[0]
    return bool(first in (0, 1) and not np.signbit(np.float64(first)) and (value == first).all())


def plain(value: Any) -> str:
    """Return one element as Python writes it, without its type: `2.0`, `True`, `-np.inf`."""
    element = value.reshape(())[()]
    if is_floating(value.dtype):
        return _float_text(element, float(element))
    return str(bool(element)) if value.dtype == _BOOLEAN else str(int(element))


def _float_text(element: Any, number: float) -> str:
    if np.isnan(number):
        return "np.nan"
    if np.isinf(number):
        return "np.inf" if number > 0 else "-np.inf"
    shortest = str(element)  # the shortest that reads back as the same number of its type
    is_whole = shortest.lstrip("-").isdigit()  # which Python would read as an integer
    return shortest if not is_whole and element.dtype.type(float(shortest)) == element else repr(number)


def typed(value: Any) -> str:
    """Return a tensor as an expression of its type and shape: `np.float32(2.0)`, `np.zeros((2, 3), np.int64)`."""
    kind = dtype_text(value.dtype)
    if value.ndim == 0 and value.dtype.kind == "b":
        return "np.True_" if value else "np.False_"
    if value.ndim == 0 and value.dtype.kind != "T":
        return f"{kind}({plain(value)})"
    if is_uniform(value):
        filled = "ones" if np.ravel(value)[0] else "zeros"
        return f"np.{filled}({shape_argument(value.shape)}, {kind})"
    if value.size == 0:
        return f"np.zeros({shape_argument(value.shape)}, {kind})"
    return f"np.array({_nested(value)}, {kind})"


def _nested(value: Any) -> str:
    if value.ndim == 0:
        return plain(value) if value.dtype.kind != "T" else ascii(value.item())
    return f"[{', '.join(_nested(np.asarray(part, value.dtype)) for part in value)}]"


def shape_argument(shape: tuple[int, ...]) -> str:
    """Return a shape as an argument: a number where there is one dimension."""
    return str(shape[0]) if len(shape) == 1 else str(tuple(shape))


def text(value: str) -> str:
    """Return a text as a literal of ASCII, whatever it holds."""
    is_simple = value.isascii() and value.isprintable() and not set(value) & {'"', "\\"}
    return f'"{value}"' if is_simple else ascii(value)


def attribute(value: Any) -> str:
    """Return the value of an attribute as code; a text stays a text."""
    if isinstance(value, ElementType):
        return f'ELEMENT_TYPES["{value.name}"]'
    if isinstance(value, tuple):
        parts = [attribute(part) for part in value]
        return f"({', '.join(parts)}{',' if len(parts) == 1 else ''})"
    if isinstance(value, float) and not np.isfinite(value):
        return f'float("{value}")'
    return text(value) if isinstance(value, str) else ascii(value)


def is_computed_by_numpy(dtype: np.dtype[Any] | None) -> bool:
    """True if numpy itself computes with the type as with any other: f32, f64 and its integers."""
    return dtype is not None and is_of_numpy(dtype) and dtype.kind in "iuf" and dtype != np.float16


def is_real(dtype: np.dtype[Any] | None) -> bool:
    """True if it is f32 or f64, in which a formula may be written as it stands."""
    return dtype is not None and is_floating(dtype) and dtype in (np.dtype(np.float32), np.dtype(np.float64))


ATOM: Final = 20
_POWER: Final = 14
_SIGN: Final = 13
_COMPARISON: Final = 5

_INFIX: Final = {
    "**": _POWER, "@": 12, "*": 12, "/": 12, "//": 12, "%": 12, "+": 11, "-": 11, "&": 8, "^": 7, "|": 6,
    "<": _COMPARISON, "<=": _COMPARISON, ">": _COMPARISON, ">=": _COMPARISON, "==": _COMPARISON, "!=": _COMPARISON,
}  # fmt: skip


class Term(NamedTuple):
    """A text, and how strongly it holds together: an operator around it that binds more strongly needs parentheses."""

    text: str
    strength: int = ATOM

    def __str__(self) -> str:
        return self.text

    def within(self, strength: int) -> str:
        """Return the text as an operand of an operator of this precedence."""
        return self.text if self.strength >= strength else f"({self.text})"

    @property
    def atom(self) -> str:
        """As something that a dot or a bracket may follow."""
        return self.within(ATOM)


def literal(text: str) -> Term:
    """Return a number; a negative one is a sign and a number."""
    return Term(text, _SIGN if text.startswith("-") else ATOM)


def infix(a: Term, operator: str, b: Term) -> Term:
    """Return a operator b."""
    strength = _INFIX[operator]
    if operator == "**":
        return Term(f"{a.within(strength + 1)}**{b.within(ATOM)}", strength)
    left = strength + 1 if strength == _COMPARISON else strength
    return Term(f"{a.within(left)} {operator} {b.within(strength + 1)}", strength)


def prefix(operator: str, a: Term) -> Term:
    """Return the operator before a."""
    return Term(f"{operator}{a.within(_SIGN)}", _SIGN)


DType = np.dtype[Any]


class CodeValue(Struct):
    """A value of the model in the code. `expression` is a variable's name or, of one used once, a whole formula.

    `value` is that of a constant, which has an expression only once something needs it as a tensor. `dtype` and `dims`
    are as the file declares them (dims empty: a scalar, or nothing is known).
    """

    expression: Term | None = None
    value: Any = None
    dtype: DType | None = None
    dims: tuple[int, ...] = ()
    wanted_name: str = "value"
    note: str = ""
    is_deferred: bool = False
    is_unnamed: bool = False


class EmitContext(Struct):
    """One operation whose code is wanted. `embed` and `name` write what must come before it."""

    layer: Layer
    operands: list[CodeValue | None]
    embed: Callable[[CodeValue], Term]
    name: Callable[[CodeValue], Term]
    needs: set[str]
    """Modules with the kernels that the code calls."""
    temporary: Callable[[str], str]
    """A new variable's name."""
    lines: list[str] = []
    """Statements before the one that gives the outputs."""
    results: list[str] = []
    """Of an operation with several outputs each of them."""

    def __len__(self) -> int:
        return len(self.operands)

    def has(self, index: int) -> bool:
        """True if the input is there."""
        return index < len(self.operands) and self.operands[index] is not None

    def operand(self, index: int) -> CodeValue:
        """Return an input that is there."""
        found = self.operands[index]
        assert found is not None
        return found

    def at(self, index: int) -> Term:
        """Return an input as a part of a larger expression."""
        return self.embed(self.operand(index))

    def named(self, index: int) -> Term:
        """Return an input as a variable, for what mentions it more than once."""
        return self.name(self.operand(index))

    def value(self, index: int) -> Any:
        """Return an input's value where it is a constant, else None."""
        return self.operand(index).value if self.has(index) else None

    def numbers(self, index: int) -> list[int] | None:
        """Return a constant input of integers as a list; None where it is computed or something else."""
        value = self.value(index)
        if value is None or value.dtype.kind not in "iu" or value.size > 64:
            return None
        return [int(number) for number in np.ravel(value)]

    def number(self, index: int) -> int | None:
        """Return a constant input of one integer; None where it is computed or something else."""
        numbers = self.numbers(index)
        return None if numbers is None or len(numbers) != 1 else numbers[0]

    def dtype(self, index: int) -> DType | None:
        """Return the element type of an input, None where the file leaves it open."""
        return self.operand(index).dtype

    def dims(self, index: int) -> tuple[int, ...]:
        """Return the dimensions of an input as declared; empty for a scalar and where nothing is known."""
        return self.operand(index).dims

    def rank(self, index: int) -> int | None:
        """Return the rank of an input; None where it is not known, or 0."""
        operand = self.operand(index)
        if operand.value is not None:
            return int(operand.value.ndim)
        return len(operand.dims) or None

    def factor(self, index: int, beside: int) -> Term:
        """Return an input of an element-wise operation; a constant of one element as a number where that is equal.

        Beside a tensor of its own type a Python number takes that type, as long as the tensor decides about the shape.
        """
        constant, other = self.operand(index), self.operand(beside)
        value = constant.value
        if value is None or other.value is not None or value.size != 1 or value.dtype != other.dtype:
            return self.at(index)
        if value.ndim > len(other.dims) or not (is_computed_by_numpy(value.dtype) or value.dtype == np.float16):
            return self.at(index)
        return literal(plain(value))

    def argument(self, index: int) -> Term:
        """Return an input of a kernel; small constants stand in the call."""
        value = self.value(index)
        if value is not None and is_of_numpy(value.dtype) and value.size <= 4:
            return literal(typed(value))
        return self.at(index)

    @property
    def is_real(self) -> bool:
        """True if the first input is f32 or f64."""
        return is_real(self.dtype(0))

    @property
    def is_common(self) -> bool:
        """True if numpy's arithmetic serves for the first input."""
        return is_computed_by_numpy(self.dtype(0))

    def attribute(self, name: str, otherwise: str = "") -> str:
        """Return the text of an attribute, in lower case."""
        return self.layer.attributes.get(name, otherwise).strip().lower()

    def flag(self, name: str, *, otherwise: bool = False) -> bool:
        """Return an attribute that is true or false."""
        return self.attribute(name, str(otherwise)) in ("true", "1")

    def integer(self, name: str, otherwise: int = 0) -> int:
        """Return an attribute that is a number."""
        return int(self.attribute(name, str(otherwise)))


Emitted = Term | str | None
"""A text is something that a dot or a bracket may follow.

None: nothing that a person would write; a call of the kernel serves.
"""

Emitter = Callable[[EmitContext], Emitted]


_LONGEST: Final = 40
_TAKEN: Final = frozenset({*keyword.kwlist, *keyword.softkwlist, *dir(builtins), "np", "sys", "itertools", "ml_dtypes"})


def identifier(text: str, otherwise: str = "value") -> str:
    """Return the text as an ASCII identifier; `otherwise` where no character of it can stand in one."""
    found = re.sub(r"[^A-Za-z0-9]+", "_", text).strip("_")[:_LONGEST].strip("_")
    if not found or found[0].isdigit():
        found = f"{otherwise}_{found}".strip("_")
    return found


def name_for(layer: Layer) -> str:
    """Return the preferred name of a variable with this layer's value."""
    part = last_part(layer.name)
    kind = re.sub(r"(?<=[a-z])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", layer.type).lower()
    if is_automatic(layer):
        return identifier(kind)
    return identifier(part, identifier(kind))


def described(layer: Layer) -> str:
    """Return a layer for a comment, on one line whatever its name holds: `Add 'total' (id 7)`."""
    return f"{identifier(layer.type)} '{excerpt(layer.name)}' (id {layer.id})"


class Identifiers:
    """The identifiers of one file: each is given out once."""

    def __init__(self, taken: Iterable[str] = ()) -> None:
        self._taken = {*_TAKEN, *taken}

    def new(self, wanted: str) -> str:
        """Return `wanted` where it is free, else with a number after it."""
        name, number = f"{wanted}_" if keyword.iskeyword(wanted) else wanted, 1
        while name in self._taken:
            number += 1
            name = f"{wanted}_{number}"
        self._taken.add(name)
        return name
