"""Numpy code of operations by type, and the call of the product's own kernel where a type has no shorter code.

Code of one operation: the context in which it is written, expressions, literals, names that are safe in Python.
"""

from __future__ import annotations

import builtins
import keyword
import re
import typing
from collections.abc import Callable, Iterable, Iterator
from importlib import import_module
from operator import attrgetter
from typing import Any, Final, NamedTuple

import numpy as np
from msgspec import Struct

from stepper.element_types import LARGEST_RANK, ElementType, is_floating, is_of_numpy, of_dtype
from stepper.errors import UsageError
from stepper.ir.model import Layer
from stepper.ops import registry
from stepper.ops.registry import FILE_OF, Kernel, read_attribute
from stepper.query.short_names import is_automatic, last_part
from stepper.wording import excerpt

LARGEST = 24
"""Elements of a tensor that stands in the text; larger ones go into the file of constants."""

_BOOLEAN = np.dtype(np.bool_)


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


ATOM = 20
_POWER = 14
_SIGN = 13
_COMPARISON = 5

_INFIX = {
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
    """Hold a value in the code; `expression` is a variable's name, or a formula used once.

    `value` is the value of a constant, which gets an expression only when something needs it as a tensor. `dtype` and
    `dims` are as the file declares them (dims empty: a scalar, or nothing is known).
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
    """Hold an operation whose code is wanted. `embed` and `name` write the statements before it."""

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
    """Outputs of an operation with several outputs."""

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


_LONGEST = 40
_TAKEN = frozenset({*keyword.kwlist, *keyword.softkwlist, *dir(builtins), "np", "sys", "itertools", "ml_dtypes"})


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


_Accepts = Callable[[DType], bool]


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
"""Predicates on element types, and operations with their operators or functions."""
_OF_REALS = """
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


_UNBOUNDED = 2**31 - 1


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


_SUM = 11


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


PACKAGE = "stepper.ops"


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
    """Return the kernel's number of outputs; None if the layer decides it."""
    hint = typing.get_type_hints(kernel.function)["return"]
    parts = typing.get_args(hint)
    return None if Ellipsis in parts or typing.get_origin(hint) is not tuple else len(parts)


def module_names() -> list[str]:
    """Return the names by which modules with kernels are imported; no variable may have them."""
    return sorted(set(FILE_OF.values()))
