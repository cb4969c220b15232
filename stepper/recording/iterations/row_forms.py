"""Forms in which the iterations of a body without nested graphs are kept until they are written.

Where a body computes nothing but single numbers, an iteration is kept as their few bytes. That takes a fraction of the
time and memory of keeping the tensors. It needs to be certain that no value changes its type or shape: so it is in a
body whose operations derive these from those of their inputs alone, as soon as an iteration leaves what is carried in
the types and shapes in which it came. All that follow are then the same. Other values are kept as they are.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from operator import attrgetter
from typing import Any, Final

import numpy as np
from msgspec import Struct

from stepper.element_types import Array, is_of_numpy
from stepper.engine.frames import Frame
from stepper.engine.program import Operation, OpKind, Program

_OF_ELEMENTS: Final = frozenset((
    "Abs", "Acos", "Acosh", "Add", "Asin", "Asinh", "Atan", "Atanh", "Ceiling", "Clamp", "Convert", "Cos", "Cosh",
    "Divide", "Elu", "Equal", "Erf", "Exp", "Floor", "FloorMod", "Gelu", "Greater", "GreaterEqual", "HSigmoid",
    "HSwish", "IsFinite", "IsInf", "IsNaN", "Less", "LessEqual", "Log", "LogicalAnd", "LogicalNot", "LogicalOr",
    "LogicalXor", "Maximum", "Minimum", "Mish", "Mod", "Multiply", "Negative", "NotEqual", "Power", "Relu", "Round",
    "Select", "Sigmoid", "Sign", "Sin", "Sinh", "SoftPlus", "SoftSign", "Sqrt", "SquaredDifference", "Subtract",
    "Swish", "Tan", "Tanh",
))  # fmt: skip
"""Operations of each element alone."""
_BY_CONSTANTS: Final = frozenset(
    ["Unsqueeze", "ReduceL1", "ReduceL2", "ReduceMax", "ReduceMean", "ReduceMin", "ReduceProd", "ReduceSum"]
)
"""Operations whose output's shape follows from the first input's, where the others are constants."""

_TYPE: Final = attrgetter("dtype")
_SHAPE: Final = attrgetter("shape")


class NumberRows(Struct, frozen=True):
    """Form of the numbers of an iteration: type and shape of each."""

    types: tuple[np.dtype[Any], ...]
    shapes: tuple[tuple[int, ...], ...]

    def count(self, columns: Sequence[bytearray]) -> int:
        """Return how many iterations the bytes of all values are of."""
        return len(columns[-1]) // self.types[-1].itemsize

    def tensors(self, columns: Sequence[bytearray]) -> list[Array]:
        """Return for each value a tensor of those of all iterations."""
        count = self.count(columns)
        return [
            np.frombuffer(bytes(column), dtype, count).reshape(count, *shape)
            for column, dtype, shape in zip(columns, self.types, self.shapes, strict=True)
        ]


class ValueRows(Struct, frozen=True):
    """Form of any other values: a list of each."""

    def count(self, columns: Sequence[list[Any]]) -> int:
        """Return how many iterations all values are of."""
        return len(columns[-1])

    def values(self, columns: Sequence[list[Any]]) -> list[list[Any]]:
        """Return for each value those of all iterations."""
        count = self.count(columns)
        return [column if len(column) == count else column[:count] for column in columns]


VALUES: Final = ValueRows()


def number_rows(
    frame: Frame, take: Callable[[Sequence[Any]], tuple[Any, ...]], usual: NumberRows | None
) -> NumberRows | None:
    """Return the form of the rows of a frame that has just closed an iteration; `take` chooses values.

    It is the `usual` one again in most cases. None where the values are no single numbers, or their types or shapes may
    change. Asked only of a body for which `keeps_shapes` holds.
    """
    values = frame.values
    assert frame.activation is not None
    plan: Any = frame.activation.plan
    taken = take(values)
    try:
        for parameter, result in plan.carried:
            if values[parameter].shape != values[result].shape:
                return None
        types, shapes = tuple(map(_TYPE, taken)), tuple(map(_SHAPE, taken))
    except AttributeError:  # of None, where nothing was computed
        return None
    if usual is not None and shapes == usual.shapes and types == usual.types:
        return usual
    if not all(math.prod(shape) == 1 for shape in shapes) or not all(is_of_numpy(dtype) for dtype in types):
        return None
    return NumberRows(types, shapes)


def keeps_shapes(program: Program) -> bool:
    """Return True if types and shapes of a body's values follow from those of its Parameters alone."""
    return all(_keeps_shapes(program, operation) for operation in program.operations)


def _keeps_shapes(program: Program, operation: Operation) -> bool:
    if operation.kind is not OpKind.KERNEL:
        return False
    others_constant = all(slot >= 0 and program.template[slot] is not None for slot in operation.inputs[1:])
    by_constants = operation.settled is not None or (operation.layer.type in _BY_CONSTANTS and others_constant)
    return by_constants or operation.layer.type in _OF_ELEMENTS
