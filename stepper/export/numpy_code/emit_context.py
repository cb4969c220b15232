"""Context in which the code of one operation is emitted: its inputs as expressions, constants, types, ranks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from msgspec import Struct, field

from stepper.element_types import is_of_numpy
from stepper.export.numpy_code.expressions import CodeExpression, literal
from stepper.export.numpy_code.literals import is_computed_by_numpy, is_real, plain, typed
from stepper.ir.model import Layer

DType = np.dtype[Any]


class CodeValue(Struct):
    """A value of the model in the code. `expression` is a variable's name or, of one used once, a whole formula.

    `value` is that of a constant, which has an expression only once something needs it as a tensor. `dtype` and `dims`
    are as the file declares them (dims empty: a scalar, or nothing is known).
    """

    expression: CodeExpression | None = None
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
    embed: Callable[[CodeValue], CodeExpression]
    name: Callable[[CodeValue], CodeExpression]
    needs: set[str]
    """Helpers and modules that the code calls: `sigmoid`, `ml_dtypes`."""
    temporary: Callable[[str], str]
    """A new variable's name."""
    lines: list[str] = field(default_factory=list)
    """Statements before the one that gives the outputs."""
    results: list[CodeExpression] = field(default_factory=list)
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

    def at(self, index: int) -> CodeExpression:
        """Return an input as a part of a larger expression."""
        return self.embed(self.operand(index))

    def named(self, index: int) -> CodeExpression:
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

    def factor(self, index: int, beside: int) -> CodeExpression:
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

    def argument(self, index: int) -> CodeExpression:
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


Emitted = CodeExpression | None
"""None: nothing that a person would write; a call of the kernel serves."""

Emitter = Callable[[EmitContext], Emitted]
