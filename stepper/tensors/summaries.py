"""Describe a tensor by its recorded statistics alone, and answer questions from them."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, NoReturn

import numpy as np

from stepper import element_types
from stepper.element_types import DType, Shape
from stepper.ops.operands import form_text
from stepper.records import Record

NOT_RECORDED = "only its statistics were recorded"

REDUCTIONS = frozenset({"max", "min", "mean", "std"})
"""The functions of expressions whose results statistics have."""

COUNTS = frozenset({"isnan", "isinf", "isfinite"})
"""Functions for which statistics count the true elements."""

PAIRS = frozenset({("max", "abs"), *((outer, inner) for outer in ("any", "all") for inner in COUNTS)})
"""Functions of functions that statistics answer: `any(isnan(x))`."""


class Unknown(Exception):
    """Reason for which statistics are not known; the text is a sentence."""


class Summary(Record, eq=False):
    """The recorded statistics of a tensor by name (`statistics.RECORDED`), None where there are none, as of texts."""

    dtype: DType
    shape: Shape
    numbers: Mapping[str, int | float | None]

    @property
    def size(self) -> int:
        """The number of elements."""
        return math.prod(self.shape)

    @property
    def ndim(self) -> int:
        """Its rank."""
        return len(self.shape)

    def __str__(self) -> str:
        return f"{form_text(self)} ({NOT_RECORDED})"

    def __bool__(self) -> NoReturn:
        raise TypeError(NOT_RECORDED)

    def __getitem__(self, _index: Any) -> NoReturn:
        raise TypeError("its elements were not recorded")

    def reduced(self, name: str) -> Any:
        """max, min, mean or std of all elements, as the tensor itself would give it. Raises Unknown."""
        if self.numbers["nan"]:
            return np.float64(math.nan)
        number = self.numbers[name]
        if self.numbers["inf"]:
            raise Unknown("it has infinite elements, and of those only the number was recorded")
        if number is None or self.dtype.kind in "TSU":
            raise Unknown("it has no elements" if not self.size else NOT_RECORDED)
        if name in ("mean", "std"):
            return (
                np.float32(number)
                if element_types.is_floating(self.dtype) and self.dtype.itemsize <= 4
                else np.float64(number)
            )
        return np.array(number)[()] if self.dtype.names else np.array(number).astype(self.dtype)[()]

    def together(self, outer: str, inner: str) -> Any:
        """Return the result of one of PAIRS. Raises Unknown."""
        if inner == "abs":
            return max(abs(self.reduced("min")), abs(self.reduced("max")))
        nan, inf = self.numbers["nan"], self.numbers["inf"]
        if nan is None or inf is None:
            raise Unknown(NOT_RECORDED)
        count = {"isnan": nan, "isinf": inf, "isfinite": self.size - nan - inf}[inner]
        return count > 0 if outer == "any" else count == self.size
