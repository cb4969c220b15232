"""Compute statistics of tensors: extremes, mean, deviation, norm, counts of odd elements.

STATISTICS is the table of all named statistics: statistics that recordings keep of each value, and statistics that
represent a tensor over iterations.

Statistics are computed in f64 over chunks that fit a cache, so that no temporary is larger than some megabytes, however
large the tensor is. Statistics of 64-bit integers are exact. Where chunks meet, means and deviations are combined after
Chan, Golub and LeVeque (Updating Formulae and a Pairwise Algorithm for Computing Sample Variances, 1979).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Generator, Iterator
from functools import lru_cache
from typing import Any, TypeVar

import numpy as np

from stepper import element_types
from stepper.element_types import ELEMENT_TYPES, F32, I32, Array, DType, Shape, is_of_numpy
from stepper.plain_values import storable
from stepper.records import Record

CHUNK = 2**13
"""Elements that are looked at together: in a cache, and too few for a BLAS to wake its threads for a dot product."""

_STEP = 32
"""Chunks between two yields."""

_CODES = {ELEMENT_TYPES[name].dtype: I32 for name in ("i4", "u1", "u2", "u3", "u4", "u6")} | {
    ELEMENT_TYPES["nf4"].dtype: F32
}
_SAFE_SQUARES = (1e-280, 1e280)
"""Sums of squares between which none of the squares was lost to the range of f64."""


class Statistics(Record):
    """Describe a tensor in numbers.

    `min`, `max`, `mean`, `std` (of the population), `norm` (l2) and the flat indices `argmin` and `argmax` (the first)
    cover the finite elements, and are None without finite elements. For integers and booleans min and max are exact
    ints. Strings have only type, shape and size. `subnormals` counts elements below the smallest normal number of the
    type, `zeros` both zeros.
    """

    type: str
    shape: Shape
    size: int
    min: int | float | None = None
    max: int | float | None = None
    mean: float | None = None
    std: float | None = None
    norm: float | None = None
    argmin: int | None = None
    argmax: int | None = None
    nan: int = 0
    positive_infinity: int = 0
    negative_infinity: int = 0
    zeros: int = 0
    subnormals: int = 0

    @property
    def infinite(self) -> int:
        """Return how many elements are infinite."""
        return self.positive_infinity + self.negative_infinity

    @property
    def finite(self) -> int:
        """Return how many elements are neither NaN nor infinite."""
        return self.size - self.nan - self.infinite


# --- the table ------------------------------------------------------------------------------------------------------


class FiniteStack(Record, eq=False):
    """Tensors of one shape, `flat[number of tensors, elements of each]`, and what several statistics are made of."""

    flat: Array
    min: Array
    max: Array
    mean: Array
    std: Array

    @classmethod
    def of(cls, flat: Array) -> FiniteStack:
        """Return the stack of a matrix of integers or floats; `std` is not finite for a row that is not."""
        with np.errstate(all="ignore"):
            wide = flat.astype(np.float64)
            mean = wide.sum(axis=1) / flat.shape[1]
            wide -= mean[:, None]
            std = np.sqrt(np.vecdot(wide, wide) / flat.shape[1])
            return cls(flat, flat.min(axis=1), flat.max(axis=1), mean, std)  # NaN spreads to both; Inf is one of them

    def none(self) -> Array:
        """Return zeros: a count of what finite elements are not."""
        return np.zeros(len(self.flat), np.int64)

    def zeros(self) -> Array:
        """Return how many elements of each tensor are zero."""
        is_zero = self.flat == 0
        return is_zero.sum(axis=1) if is_zero.any() else self.none()


def _rms(numbers: Array) -> float:
    return math.sqrt(float(numbers.dot(numbers)) / numbers.size)


class Statistic(Record):
    """A statistic with a name.

    Recordings keep it of each value, and answers show it, where it is computed `of` the statistics of one tensor and
    `of_stack` of many finite ones at once. `over_iterations` is how it stands for a tensor where many iterations are
    shown: of flat elements, as fast as numpy can.
    """

    name: str
    of: Callable[[Statistics], int | float | None] | None = None
    of_stack: Callable[[FiniteStack], Array] | None = None
    over_iterations: Callable[[Array], float] | None = None


STATISTICS = (
    Statistic("rms", over_iterations=_rms),
    Statistic("min", lambda one: one.min, lambda stack: stack.min, lambda numbers: float(numbers.min())),
    Statistic("max", lambda one: one.max, lambda stack: stack.max, lambda numbers: float(numbers.max())),
    Statistic("peak", over_iterations=lambda numbers: float(np.abs(numbers).max())),
    Statistic("mean", lambda one: one.mean, lambda stack: stack.mean, lambda numbers: float(numbers.mean())),
    Statistic("last", over_iterations=lambda numbers: float(numbers[-1])),
    Statistic("std", lambda one: one.std, lambda stack: stack.std),
    Statistic("nan", lambda one: one.nan, FiniteStack.none),
    Statistic("inf", lambda one: one.infinite, FiniteStack.none),
    Statistic("zero", lambda one: one.zeros, FiniteStack.zeros),
)
"""`peak` is the largest magnitude, `last` the last element; nan, inf and zero count elements. What is recorded has a
column in the schema of recordings (`stepper/recording/file.py`), too.
"""

_OF = {one.name: one.of for one in STATISTICS if one.of is not None}
_OF_STACK = tuple(one.of_stack for one in STATISTICS if one.of_stack is not None)
_OVER_ITERATIONS = {one.name: one.over_iterations for one in STATISTICS if one.over_iterations is not None}

RECORDED = tuple(_OF)
"""The names of the statistics that recordings have, in the order of their columns."""

FITTING = "auto"
"""The statistic that fits the kind of a tensor.

Floats take the rms, whole numbers (tokens, indices) the last element, booleans the share of true elements.
"""
OVER_ITERATIONS = tuple(dict.fromkeys((FITTING, "mean", "rms", *_OVER_ITERATIONS)))
"""The names of those that stand for a tensor over iterations, in the order in which they are offered."""

Found = TypeVar("Found")
Steps = Generator[None, None, Found]
"""A long computation, which yields after some milliseconds of work and returns what it found."""
Column = list[int | float | None]
"""A recorded statistic of many tensors."""


def recorded_statistics(value: Any) -> dict[str, int | float | None]:
    """Return the recorded statistics of one tensor of any element type, by name."""
    found = statistics(value)
    return {name: of(found) for name, of in _OF.items()}


def recorded_columns(stack: Array) -> list[Column]:
    """Return them for the tensors of a stack, `[number of tensors, ...]`, computed at once where that is exact."""
    plain = stack.view(np.uint8) if stack.dtype == np.bool_ else stack
    if plain.dtype.kind not in "iuf" or not is_of_numpy(plain.dtype) or plain.size == 0:
        return [list(column) for column in zip(*(recorded_statistics(one).values() for one in stack), strict=True)]
    found = FiniteStack.of(plain.reshape(len(plain), -1))
    with np.errstate(all="ignore"):
        is_exact = np.isfinite(found.std) & (found.min <= found.max) & ((found.std > 1e-140) | (found.min == found.max))
    columns: list[Column] = [of_stack(found).tolist() for of_stack in _OF_STACK]
    for index in np.flatnonzero(~is_exact).tolist():
        for column, number in zip(columns, recorded_statistics(stack[index]).values(), strict=True):
            column[index] = number
    return columns


# --- one number for a tensor ----------------------------------------------------------------------------------------

_REAL = (np.dtype(np.float32).char, np.dtype(np.float64).char)
_FITTING = {"f": "rms", "i": "last", "u": "last", "b": "mean"}
_HIDING = ("min", "max", "last")
"""Statistics that may be finite although an element is not."""


def number_of(value: Any, statistic: str = "rms") -> float | None:
    """Return a tensor as one number: NaN where it has one, else infinite where it has one; a single element is itself.

    `statistic` is one of OVER_ITERATIONS. None for texts and empty tensors.
    """
    with np.errstate(all="ignore"):
        return quiet_number_of(value, statistic)


def quiet_number_of(value: Any, statistic: str) -> float | None:
    """Return the same where numpy was told already to keep quiet, which takes longer than many a number."""
    array = np.asarray(value)
    kind = "f"
    if array.dtype.char not in _REAL:
        array = storable(array)
        kind = array.dtype.kind
        if kind not in "fiub":
            return None
        array = array.astype(np.float64)
    if array.size <= 1:
        return float(array.item()) if array.size else None
    numbers = array.reshape(-1)
    if statistic == FITTING:
        statistic = _FITTING[kind]
    found = _OVER_ITERATIONS[statistic](numbers)
    if math.isfinite(found) and (statistic not in _HIDING or bool(np.isfinite(numbers).all())):
        return found
    if np.isnan(numbers).any():
        return math.nan
    return math.inf if np.isinf(numbers).any() else _OVER_ITERATIONS[statistic](numbers.astype(np.float64))


# --- one tensor -----------------------------------------------------------------------------------------------------


def statistics(array: Any) -> Statistics:
    """Return the statistics of a tensor of any element type: an ndarray or a numpy scalar, of any shape."""
    return finish(statistics_in_steps(np.asarray(array)))


def finish(steps: Steps[Found]) -> Found:
    """Return all steps at once."""
    while True:
        try:
            next(steps)
        except StopIteration as end:
            found: Found = end.value
            return found


def statistics_in_steps(array: Array) -> Steps[Statistics]:
    """Return the same; yield after each some hundred thousand elements, so that one can leave off."""
    name, shape, size = element_types.name_of(array.dtype), array.shape, array.size
    if size == 0 or array.dtype.kind in "SUOT":
        return Statistics(name, shape, size)
    collected = _StatisticsSums()
    tiny = _smallest_normal(array.dtype)
    for number, chunk in enumerate(chunks(array), 1):
        with np.errstate(all="ignore"):
            if tiny:
                collected.add_floats(chunk.astype(np.float64), tiny)
            else:
                collected.add_integers(chunk)
        if number % _STEP == 0:
            yield
    if tiny and not _SAFE_SQUARES[0] < collected.squares < _SAFE_SQUARES[1]:
        with np.errstate(all="ignore"):
            collected = _rescaled(array, collected, tiny)
    return collected.statistics(name, shape, size)


def chunks(array: Array, most: int = CHUNK) -> Iterator[Array]:
    """Yield the elements in row-major order, rank 1, some at a time; packed codes as the numbers they stand for."""
    flat = array.reshape(-1) if array.flags.c_contiguous else array.flat
    code = _CODES.get(array.dtype)
    if code is not None:
        from stepper.ops.convert import convert  # the process of OpenVINO needs no kernels
    for begin in range(0, array.size, most):
        chunk = flat[begin : begin + most]
        yield chunk if code is None else convert(chunk, destination_type=code)


@lru_cache(maxsize=64)
def _smallest_normal(dtype: DType) -> float:
    """Return the smallest normal number of a type of floats; 0 for other types."""
    if not element_types.is_floating(dtype):
        return float(np.finfo(np.float32).smallest_normal) if dtype.names == ("nf4",) else 0.0
    return element_types.limits(dtype).least_normal


class _StatisticsSums:
    """The statistics of the chunks so far; `count` are their finite elements, `spread` the sum of squared deviations.

    `scale` is a power of two by which the elements were multiplied before squaring.
    """

    __slots__ = (
        "argmax", "argmin", "count", "high", "infinite", "low", "nan", "negative", "scale", "seen", "spread", "squares",
        "subnormals", "total", "zeros",
    )  # fmt: skip

    def __init__(self, scale: float = 1.0) -> None:
        self.scale = scale
        self.seen = self.count = self.nan = self.infinite = self.negative = self.zeros = self.subnormals = 0
        self.total: int | float = 0
        self.squares = self.spread = 0.0
        self.low: int | float = math.inf
        self.high: int | float = -math.inf
        self.argmin = self.argmax = -1

    def add_floats(self, chunk: Array, tiny: float) -> None:
        """Add elements in f64; `tiny` is the smallest normal number of their own type."""
        begin, size = self.seen, chunk.size
        self.seen += size
        squares = float(np.dot(chunk, chunk))
        places = None
        if not math.isfinite(squares):
            is_finite = np.isfinite(chunk)
            if not is_finite.all():
                infinite = np.isinf(chunk)
                self.nan += int(np.count_nonzero(np.isnan(chunk)))
                negative = int(np.count_nonzero(infinite & (chunk < 0)))
                self.negative += negative
                self.infinite += int(np.count_nonzero(infinite)) - negative
                places = np.flatnonzero(is_finite)
                chunk = chunk[places]
                size = chunk.size
        if size == 0:
            return
        zeros = size - int(np.count_nonzero(chunk))
        self.zeros += zeros
        self.subnormals += int(np.count_nonzero(np.abs(chunk) < tiny)) - zeros
        low, high = int(chunk.argmin()), int(chunk.argmax())
        self._extend(chunk.item(low), chunk.item(high), *(begin + _place(places, at) for at in (low, high)))
        self._add_moments(chunk * self.scale if self.scale != 1 else chunk)

    def _extend(self, low: float, high: float, argmin: int, argmax: int) -> None:
        if low < self.low:
            self.low, self.argmin = low, argmin
        if high > self.high:
            self.high, self.argmax = high, argmax

    def _add_moments(self, chunk: Array) -> None:
        size = chunk.size
        total = float(np.add.reduce(chunk))
        deviations = chunk - total / size
        self.squares += float(np.dot(chunk, chunk))
        self._combine(size, total, float(np.dot(deviations, deviations)))

    def _combine(self, size: int, total: int | float, spread: float) -> None:
        if self.count:
            distance = float(total * self.count - self.total * size) / (self.count * size)
            spread += distance * distance * (self.count * size / (self.count + size))
        self.count += size
        self.total += total
        self.spread += spread

    def add_integers(self, chunk: Array) -> None:
        """Add integers or booleans; extremes and the sum are exact."""
        if chunk.dtype == np.bool_:
            chunk = chunk.view(np.uint8)
        begin, size = self.seen, chunk.size
        self.seen += size
        low, high = int(chunk.argmin()), int(chunk.argmax())
        least = chunk.item(low)
        self.zeros += size - int(np.count_nonzero(chunk))
        self._extend(least, chunk.item(high), begin + low, begin + high)
        # Above the least element, what is left of 64 bits is exact, and so is a sum in two halves of 32.
        offsets = chunk.astype(np.uint64) - np.uint64(least % 2**64)
        halves = int(np.add.reduce(offsets >> np.uint64(32))), int(np.add.reduce(offsets & np.uint64(2**32 - 1)))
        total = halves[0] * 2**32 + halves[1]
        deviations = offsets.astype(np.float64) - total / size
        wide = chunk.astype(np.float64)
        self.squares += float(np.dot(wide, wide))
        self._combine(size, total + size * least, float(np.dot(deviations, deviations)))

    def statistics(self, name: str, shape: Shape, size: int) -> Statistics:
        """Return the result for a tensor of this type, shape and size."""
        others = (self.nan, self.infinite, self.negative, self.zeros, self.subnormals)
        if not self.count:
            return Statistics(name, shape, size, None, None, None, None, None, None, None, *others)
        scale, count = self.scale, self.count
        mean, std, norm = self.total / count / scale, math.sqrt(self.spread / count) / scale, math.sqrt(self.squares)
        return Statistics(
            name, shape, size, self.low, self.high, mean, std, norm / scale, self.argmin, self.argmax, *others
        )


def _place(places: Array | None, index: int) -> int:
    return index if places is None else int(places[index])


def _rescaled(array: Array, collected: _StatisticsSums, tiny: float) -> _StatisticsSums:
    """Once more with elements near 1, where squares would leave the range of f64."""
    largest = max(abs(collected.low), abs(collected.high)) if collected.count else 0.0
    if largest == 0 or 1e-100 < largest < 1e100:
        return collected
    again = _StatisticsSums(math.ldexp(1.0, max(-1022, min(1022, -math.frexp(largest)[1]))))
    for chunk in chunks(array):
        again.add_floats(chunk.astype(np.float64), tiny)
    return again
