"""Values over iterations in constant memory: the first and the last iterations as they are, the others in bins.

Of a value of at most 64 elements each element is kept; of a larger one 64 buckets of neighbouring elements, each by its
largest magnitude, mean and root mean square; of one that changes its number of elements these three of all of them.
When the bins are full, two become one. A bin keeps of every number the one of the largest magnitude, NaN before Inf.
"""

from __future__ import annotations

import math
import zlib
from collections.abc import Callable, Sequence
from enum import IntEnum
from functools import reduce
from itertools import groupby, pairwise
from typing import TYPE_CHECKING, Any, ClassVar, Final

import numpy as np
from msgspec.structs import astuple, replace

from stepper import element_types
from stepper.element_types import Indices, Shape, is_of_numpy
from stepper.plain_values import storable
from stepper.records import Brief, Record

if TYPE_CHECKING:
    from stepper.element_types import Array

MOST_ELEMENTS: Final = 64
"""Elements of a value of which each is kept; and into how many buckets the elements of a larger one go."""
LARGEST_COMPARED: Final = 2**14
"""Elements of a value up to which it is told whether it is the same as another one."""
_MOST_SHAPES: Final = 32
_SMALL_BUCKET: Final = 32
_FEW_COLUMNS: Final = 16
"""Elements up to which the largest one is found column by column, which is faster than row by row."""
_LARGE: Final = 2**20
"""Elements that are looked at together."""
_IN_CACHE: Final = 2**17
"""Elements that are put into buckets together."""
_LARGE_SQUARE: Final = 1e18
"""Magnitudes from which on sums of squares in f32 may overflow."""
SETTLED: Final = 0.01
"""Share of its largest change below which the changes of a value that has settled stay."""
_LEAST_SETTLED: Final = 4
"""How many iterations a value must have settled for; and at least a quarter of all."""


class Capacity(Record):
    """Iterations kept as they are at each end, and bins for those between."""

    edge: int = 128
    bins: int = 256


class KeptStatistic(IntEnum):
    """Index of a statistic in the numbers of a value that is kept in buckets."""

    LARGEST = 0
    MEAN = 1
    RMS = 2


class ShapeChange(Record):
    """The first iteration in which a value has another shape than before."""

    iteration: int
    shape: Shape


class Counter(Record):
    """Whole numbers that go up or down by the same step in each iteration."""

    first: int
    step: int
    last: int


class ColumnStatistics(Record):
    """Numbers of a value in one iteration: `largest` is the element of the largest magnitude, `place` its index.

    `place` is None of values that are kept in buckets. `nan` and `infinite` count `numbers` elements or buckets; where
    there are any, `rms` and `largest` are those of the finite ones. `change` is the largest magnitude of the difference
    from the iteration before, or from what entered (None: not known).
    """

    rms: float
    largest: float
    place: Indices | None
    numbers: int
    nan: int
    infinite: int
    change: float | None


class ValueHistory(Brief, weakref=True):
    """A value over the iterations of one run of a loop, or over the runs of a branch.

    `spans[c]` is the half-open range of iterations that column c stands for (there are gaps where some are not known,
    and where a value that changes its shape has no element); `numbers[s, c, e]` are its numbers: of the elements in
    row-major order (`is_whole`, s = 0 alone), or by KeptStatistic of buckets of them. `entered[s, e]` is the same of
    the initial value that came in. `type` and `shape` are those of the last iteration. `unchanged_since` is the
    iteration from which on every value has the same bits (0: always, None: nothing is known), `counter` says that it
    counts. `first_nan` and `first_infinite` are iterations. `shapes` are the first changes of the shape, also from
    what came in to iteration 0, `shape_changes` is how many there are, and `first_shape` is what came before them
    (None: not known). `changes` has the largest magnitude of the difference of an iteration from
    the one before, where that is followed; `growth`, of a value that changes its shape, three numbers an iteration: how
    many elements it has more than before, 1 if it is the one before with a single number joined to it, and that number.
    Without any iteration (`count` 0) it has no columns, and says what entered alone.
    """

    unshown: ClassVar = ("spans", "numbers", "entered", "changes", "growth")

    type: str
    shape: Shape
    count: int
    is_whole: bool
    spans: Array
    numbers: Array
    entered: Array | None = None
    unchanged_since: int | None = None
    counter: Counter | None = None
    first_nan: int | None = None
    first_infinite: int | None = None
    shapes: tuple[ShapeChange, ...] = ()
    shape_changes: int = 0
    first_shape: Shape | None = None
    changes: ValueHistory | None = None
    growth: ValueHistory | None = None

    @property
    def elements(self) -> int:
        """Return how many numbers a column has: elements or buckets."""
        return int(self.numbers.shape[2])

    @property
    def changes_shape(self) -> bool:
        """True if some iterations have another shape than others, whatever came in."""
        return self.shape_changes > sum(not one.iteration for one in self.shapes)

    def shape_at(self, iteration: int) -> Shape | None:
        """Return the shape in an iteration; None where more changes came before it than are kept, or none are."""
        if not self.shape_changes or iteration == self.count - 1:
            return self.shape
        before = [one for one in self.shapes if one.iteration <= iteration]
        if len(before) == len(self.shapes) < self.shape_changes:
            return None
        return before[-1].shape if before else self.first_shape

    @property
    def is_constant(self) -> bool:
        """True if every iteration has the same bits."""
        return self.unchanged_since == 0

    @property
    def settled_from(self) -> int | None:
        """Return from which iteration on it changes by less than SETTLED of its largest change.

        None where that is not so for long, where it does not change at all, and where changes are not followed. The
        largest change may be a step from a mark such as -1e9 to the first number that means something: where it still
        moves by much of its own size behind so steep a step, the changes behind it are the measure.
        """
        if self.changes is None or not self.changes.count:
            return None
        numbers = self.changes.numbers[0, :, 0]
        ends = self.changes.spans[:, 1]
        while True:
            largest = float(numbers.max())
            if not 0 < largest < math.inf:
                return None
            last = int(np.flatnonzero(~(numbers < SETTLED * largest))[-1])
            found = int(ends[last])
            if self.count - found < max(_LEAST_SETTLED, self.count // 4):
                return None
            rest = numbers[last + 1 :]
            most = float(rest.max(initial=0))
            if not most or not SETTLED * self._usual_size <= most < SETTLED * float(numbers[last]):
                return found
            numbers, ends = rest, ends[last + 1 :]

    @property
    def _usual_size(self) -> float:
        """Return the magnitude of its elements in the last iteration, of which as many are smaller as are larger."""
        last = np.abs(self.numbers[0 if self.is_whole else KeptStatistic.RMS, -1].astype(np.float64))
        counts = last[np.isfinite(last) & (last > 0)]
        return float(np.median(counts)) if counts.size else 0.0

    def is_same(self, other: ValueHistory | None) -> bool:
        """True if another one says the same of the same iterations, bit for bit."""
        return self is other or (other is not None and all(map(_are_same, astuple(self), astuple(other))))

    def at(self, iteration: int) -> ColumnStatistics | None:
        """Return the numbers of an iteration; of one in a bin those of the bin. None where it has not run."""
        columns = [self.over(iteration, iteration + 1, one) for one in (KeptStatistic.LARGEST, KeptStatistic.RMS)]
        largest, squares = columns
        if largest is None or squares is None or not largest.size:
            return None
        finite = np.isfinite(largest)
        wide = np.where(finite, largest, 0).astype(np.float64)
        place = int(np.abs(wide).argmax())
        is_element = self.is_whole and math.prod(self.shape) == self.elements
        rms = np.where(np.isfinite(squares), squares, 0).astype(np.float64)
        scale = float(np.abs(rms).max()) or 1.0  # squares of large numbers overflow
        return ColumnStatistics(
            rms=scale * float(np.sqrt(np.square(rms / scale).sum() / max(int(finite.sum()), 1))),
            largest=float(wide[place]),
            place=tuple(int(one) for one in np.unravel_index(place, self.shape)) if is_element else None,
            numbers=len(largest),
            nan=int(np.isnan(largest).sum()),
            infinite=int(np.isinf(largest).sum()),
            change=self._change(iteration),
        )

    def _change(self, iteration: int) -> float | None:
        if self.changes is not None:
            known = self.changes.over(iteration, iteration + 1)
            return None if known is None else float(known[0])
        if not self.is_whole or self.changes_shape:
            return None
        index = int(np.searchsorted(self.spans[:, 0], iteration))
        is_exact = 0 < index < len(self.spans) and self.spans[index - 1].tolist() == [iteration - 1, iteration]
        now = self.over(iteration, iteration + 1)
        before = self.numbers[0, index - 1] if is_exact else self.entered[0] if self.entered is not None else None
        if now is None or before is None or before.shape != now.shape or (not is_exact and iteration):
            return None
        with np.errstate(invalid="ignore"):  # of two infinities the difference is no number
            return float(np.abs(now.astype(np.float64) - before.astype(np.float64)).max())

    def part(self, first: int, last: int) -> ValueHistory | None:
        """Return the iterations [first, last) as a history of their own; None where one of them is in a bin."""
        chosen = (self.spans[:, 0] >= first) & (self.spans[:, 1] <= last)
        if int(chosen.sum()) != last - first:
            return None
        spans = self.spans[chosen] - first
        return ValueHistory(self.type, self.shape, last - first, self.is_whole, spans, self.numbers[:, chosen])

    def filled_up(self, other: ValueHistory) -> ValueHistory:
        """Return this with the columns of another history of the same form where it knows nothing."""
        if self.numbers.shape[::2] != other.numbers.shape[::2]:
            return self
        places = np.searchsorted(self.spans[:, 1], other.spans[:, 0], side="right")
        begins = np.append(self.spans[:, 0], np.iinfo(np.int64).max)[places]
        fresh = begins >= other.spans[:, 1]
        if not fresh.any():
            return self
        spans = np.concatenate([self.spans, other.spans[fresh]])
        order = np.argsort(spans[:, 0])
        numbers = np.concatenate([self.numbers, other.numbers[:, fresh]], axis=1)[:, order]
        return replace(self, spans=spans[order], numbers=numbers, count=max(self.count, other.count))

    def before(self, iteration: int) -> ValueHistory | None:
        """Return what is known of earlier iterations; None where nothing is."""
        end = int(np.searchsorted(self.spans[:, 1], iteration, side="right"))
        if end == len(self.spans):
            return self
        if not end:
            return None
        bad = [one if one is not None and one < iteration else None for one in (self.first_nan, self.first_infinite)]
        return replace(
            self,
            spans=self.spans[:end],
            numbers=self.numbers[:, :end],
            count=iteration,
            unchanged_since=None,
            counter=None,
            first_nan=bad[0],
            first_infinite=bad[1],
        )

    def number(self, iteration: int) -> float | None:
        """Return the value of one iteration as the one number that fits its type; None where it is not known.

        A single element as itself; of floats the rms, of booleans the share that is true, of whole numbers the last,
        where only buckets of them are kept the largest magnitude of the last bucket.
        """
        is_real = self.type != "boolean" and self.type[:1] not in ("i", "u")
        part = self.over(iteration, iteration + 1, KeptStatistic.RMS if is_real else KeptStatistic.LARGEST)
        if part is None or not part.size:
            return None
        wide = part.astype(np.float64)
        if len(wide) == 1 or (not is_real and self.type != "boolean"):
            return float(wide[-1])
        with np.errstate(all="ignore"):
            return float(np.sqrt(np.square(wide).mean()) if is_real else wide.mean())

    def over(self, first: int, last: int, statistic: KeptStatistic = KeptStatistic.LARGEST) -> Array | None:
        """Return the numbers for the iterations [first, last): by element the strongest of the columns in it.

        None where no column is. `statistic` is for buckets; elements are what they are.
        """
        begin = int(np.searchsorted(self.spans[:, 1], first, side="right"))
        end = int(np.searchsorted(self.spans[:, 0], last, side="left"))
        if begin >= end:
            return None
        part: Array = self.numbers[0 if self.is_whole else statistic, begin:end]
        found: Array = part[0] if len(part) == 1 else strongest(part)
        return found

    def bin_of(self, iteration: int) -> tuple[int, int] | None:
        """Return the iterations [first, last) for which the numbers stand that are known of one of them.

        None where they are its own: where it has a column, and where all of that column have the same bits.
        """
        index = int(np.searchsorted(self.spans[:, 1], iteration, side="right"))
        if index >= len(self.spans):
            return None
        first, last = self.spans[index].tolist()
        is_same = self.unchanged_since is not None and self.unchanged_since <= first
        return None if first > iteration or last - first == 1 or is_same else (first, last)

    def is_spoilt_from(self, first: int, last: int) -> bool:
        """True if each of the iterations [first, last] is known to have a NaN or Inf."""
        chosen = (self.spans[:, 1] > first) & (self.spans[:, 0] <= last)
        spans, numbers = self.spans[chosen], self.numbers[0, chosen]
        if not len(spans) or bool(np.isfinite(numbers).all(axis=1).any()):
            return False
        is_gapless = spans[0, 0] <= first and last < spans[-1, 1] and bool((spans[:-1, 1] == spans[1:, 0]).all())
        return is_gapless and first <= last and all(self.bin_of(begin) is None for begin in spans[:, 0].tolist())

    def over_each(self, ranges: Sequence[tuple[int, int]], statistic: KeptStatistic) -> list[Array | None]:
        """Return `over` for each of many ranges."""
        firsts, lasts = np.array(ranges, np.int64).reshape(-1, 2).T
        begins = np.searchsorted(self.spans[:, 1], firsts, side="right").tolist()
        ends = np.searchsorted(self.spans[:, 0], lasts, side="left").tolist()
        numbers = self.numbers[0 if self.is_whole else statistic]
        return [
            None if begin >= end else numbers[begin] if end - begin == 1 else strongest(numbers[begin:end])
            for begin, end in zip(begins, ends, strict=True)
        ]


def _are_same(one: Any, other: Any) -> bool:
    """True if a field of two histories is the same, bit for bit."""
    if one is other or isinstance(one, ValueHistory):
        return one is other or one.is_same(other)
    if not isinstance(one, np.ndarray) or not isinstance(other, np.ndarray):
        return type(one) is type(other) and bool(one == other)
    return one.dtype == other.dtype and one.shape == other.shape and one.tobytes() == other.tobytes()


def strongest(numbers: Array, axis: int = 0) -> Array:
    """Return the number of the largest magnitude along an axis, NaN before all others, of two the positive one."""
    return _stronger(numbers.max(axis), numbers.min(axis))


def _stronger(high: Array, low: Array) -> Array:
    """Return that of two numbers which is farther from zero, of two as far the higher one; a NaN is both.

    Their sum has its sign: a choice by a mask, whose pattern no processor can guess, takes eight times as long, and
    numpy's copysign three times as long as the bits.
    """
    if high.dtype.kind == "f":
        with np.errstate(all="ignore"):
            total = np.atleast_1d(high + low)
            if not np.isnan(total).any():
                sign = np.array(-1, f"i{total.itemsize}") << 8 * total.itemsize - 1
                signed: Array = np.maximum(np.atleast_1d(high), -low)
                bits, signs = signed.view(sign.dtype), total.view(sign.dtype)
                bits &= ~sign
                signs &= sign
                bits |= signs
                return signed if high.ndim else signed.reshape(())
    chosen: Array = np.where(high >= -low, high, low)
    return chosen


def bucket_begins(size: int) -> Array:
    """Return at which elements the buckets of a value of so many begin: as even as may be, the first ones larger."""
    count = min(size, MOST_ELEMENTS)
    each, more = divmod(size, max(count, 1))
    places = np.arange(count)
    return places * each + np.minimum(places, more)


def numbers_of(value: Any) -> Array | None:
    """Return the numbers [statistic, element] that are kept of one value; None of texts and of empty ones."""
    array = np.asarray(value)
    if not array.size or array.dtype.kind in "SUOT":
        return None
    with np.errstate(all="ignore"):
        if array.size <= MOST_ELEMENTS:
            return plain_numbers(array.reshape(1, -1))
        return bucket_statistics(_row_numbers(array.reshape(1, -1)), bucket_begins(array.size))[:, 0]


def bits_of(value: Any) -> tuple[str, bytes]:
    """Return the name of the element type and the elements, by which one tells whether two values have the same bits.

    Of texts, and of more than LARGEST_COMPARED elements, there are none.
    """
    array = np.asarray(value)
    is_text = array.dtype.names is None and array.dtype.kind in "SUOT"
    is_told = not is_text and array.size <= LARGEST_COMPARED
    return element_types.name_of(array.dtype), array.tobytes() if is_told else b""


def _row_numbers(stack: Array) -> Array:
    """Return values [iteration, element] for `bucket_statistics`, which converts one large value part by part."""
    return stack if len(stack) == 1 and stack.shape[1] > _LARGE and is_of_numpy(stack.dtype) else plain_numbers(stack)


def _large_statistics(flat: Array, begins: Array) -> Array:
    """Return the statistics of one large value, looking at some elements at a time."""
    found = np.empty((3, len(begins)))
    for bucket, (begin, end) in enumerate(pairwise([*begins.tolist(), flat.size])):
        parts, sizes = [], []
        for at in range(begin, end, _LARGE):
            part = flat[at : min(at + _LARGE, end)]
            each = bucket_statistics(plain_numbers(part.reshape(1, -1)), np.zeros(1, np.intp))
            parts.append(each[:, 0, 0].astype(np.float64))
            sizes.append(len(part))
        found_parts, share = np.array(parts), np.array(sizes) / (end - begin)
        largest = float(strongest(found_parts[:, KeptStatistic.LARGEST]))
        found[:, bucket] = largest
        if math.isfinite(largest):
            found[KeptStatistic.MEAN, bucket] = found_parts[:, KeptStatistic.MEAN] @ share
            found[KeptStatistic.RMS, bucket] = math.sqrt(np.square(found_parts[:, KeptStatistic.RMS]) @ share)
    return found


@np.errstate(all="ignore")  # infinities of both signs have no mean
def summary(numbers: Array) -> Array:
    """Return the three statistics of all elements for kept numbers [statistic, iteration, element]."""
    if not numbers.shape[2]:
        return np.zeros((3, numbers.shape[1], 1), np.float64)
    if len(numbers) == 1:
        return bucket_statistics(numbers[0], np.zeros(1, np.intp)).astype(np.float64)
    means = numbers[KeptStatistic.MEAN].mean(axis=1, keepdims=True)
    rms = np.sqrt(np.square(numbers[KeptStatistic.RMS]).mean(axis=1, keepdims=True))
    return np.stack([strongest(numbers[KeptStatistic.LARGEST], 1)[:, None], means, rms])


def bucket_statistics(stack: Array, begins: Array) -> Array:
    """Return the numbers [statistic, iteration, bucket] of values [iteration, element]."""
    dtype = np.float32 if stack.dtype in (np.float16, np.float32) else np.float64
    if len(stack) == 1 and stack.shape[1] > _LARGE:
        return _large_statistics(stack[0], begins)[:, None].astype(dtype)
    if stack.dtype == np.float16:
        stack = stack.astype(np.float32)
    numbers = np.empty((3, len(stack), len(begins)), dtype)
    many = max(1, _IN_CACHE // max(stack.shape[1], 1))
    each, larger = divmod(stack.shape[1], len(begins))
    edge = larger * (each + 1)
    for begin in range(0, len(stack), many):
        rows, found = stack[begin : begin + many], numbers[:, begin : begin + many]
        if larger and each < _SMALL_BUCKET:  # two times even ones
            _fill_buckets(rows[:, :edge], begins[:larger], found[:, :, :larger])
            _fill_buckets(rows[:, edge:], begins[larger:] - edge, found[:, :, larger:])
        else:
            _fill_buckets(rows, begins, found)
    return numbers


def _fill_buckets(stack: Array, begins: Array, numbers: Array) -> None:
    sizes = (np.append(begins[1:], stack.shape[1]) - begins).astype(numbers.dtype)
    reduced = _Buckets(stack, begins)
    high, low = reduced.by(np.maximum), reduced.by(np.minimum)
    largest = numbers[KeptStatistic.LARGEST]
    np.copyto(largest, _stronger(high, low))
    extent = max(abs(float(high.max())), abs(float(low.min())))
    is_f32 = numbers.dtype == np.float32
    is_safe = is_f32 and stack.shape[1] // len(begins) <= _SMALL_BUCKET and not extent >= _LARGE_SQUARE
    if not is_safe and reduced.parts.dtype != np.float64:
        reduced.parts = reduced.parts.astype(np.float64)
    numbers[KeptStatistic.MEAN] = reduced.by(np.add) / sizes
    reduced.parts = np.square(reduced.parts)
    numbers[KeptStatistic.RMS] = np.sqrt(reduced.by(np.add) / sizes)
    if not math.isfinite(extent):
        spoilt = ~np.isfinite(largest)
        numbers[:, spoilt] = largest[spoilt]


class _Buckets:
    """Buckets of [iteration, element]; of small even ones `parts` are [element of a bucket, iteration and bucket].

    Their numbers of one element after the other are reduced several times as fast as those of each bucket.
    """

    def __init__(self, stack: Array, begins: Array) -> None:
        each, more = divmod(stack.shape[1], len(begins))
        self._shape, self._begins = (len(stack), len(begins)), begins
        self._is_turned = not more and each <= _SMALL_BUCKET
        self.parts = np.ascontiguousarray(stack.reshape(-1, each).T) if self._is_turned else stack

    def by(self, ufunc: np.ufunc) -> Array:
        """Return each bucket reduced to one number."""
        if self._is_turned:
            turned: Array = ufunc.reduce(self.parts, 0)
            return turned.reshape(self._shape)
        reduced: Array = ufunc.reduceat(self.parts, self._begins, 1)
        return reduced


def plain_numbers(array: Array) -> Array:
    """Return numbers that can be negated: bool and integers as i64, those of u64 as f64."""
    array = storable(array)
    kind = array.dtype.kind
    if kind in "bi" or (kind == "u" and array.dtype.itemsize < 8):
        return array.astype(np.int64)
    return array.astype(np.float64) if kind == "u" else array


def _stacked(values: Sequence[Any]) -> Array | None:
    """Return values of one shape and type as [iteration, element] of that type; None where they differ."""
    first = values[0]
    joined: Array
    if len(values) == 1:
        return np.asarray(first).reshape(1, -1)
    try:
        if first.ndim == 0:
            joined = np.array(values, first.dtype)
            return joined.reshape(len(values), 1)
        if first.size == 1 and first.dtype.kind in "biuf":  # three times as fast as concatenate
            joined = np.frombuffer(b"".join(values), first.dtype)
            is_same = len(joined) == len(values) and set(map(len, values)) == {len(first)}
            return joined.reshape(len(values), 1) if is_same else None
        if len(set(map(len, values))) > 1 or (first.ndim > 1 and len({value.shape for value in values}) > 1):
            return None
        joined = np.concatenate(values)
        return joined.reshape(len(values), -1)
    except (TypeError, ValueError):
        return None


class ShapeRecorder:
    """Collects the shapes of a value over iterations, of which a HistoryRecorder has the elements in another shape.

    `entered` is the shape of what came in, where that is known.
    """

    def __init__(self, entered: Indices | None = None) -> None:
        self.first = entered
        self._waiting: list[Any] = []
        self.append: Callable[[Any], object] = self._waiting.append
        self.shape: Shape = ()
        self.count = self.changes = 0
        self._first_changes: list[ShapeChange] = []

    @property
    def waiting(self) -> int:
        """Return how many values were appended and are not settled."""
        return len(self._waiting)

    def settle(self) -> None:
        """Take in what was appended."""
        for value in self._waiting:
            if value.shape != self.shape or not self.count:
                self.note(value.shape)
            self.count += 1
        self._waiting.clear()

    def note(self, shape: Shape) -> None:
        """Take in the shape from iteration `count` on."""
        before = self.shape if self.count else self.first
        if before is None:
            self.first = shape
        elif shape != before:
            self.changes += 1
            if len(self._first_changes) < _MOST_SHAPES:
                self._first_changes.append(ShapeChange(self.count, shape))
        self.shape = shape

    @property
    def is_steady(self) -> bool:
        """True if all iterations have one shape."""
        return self.changes == sum(not one.iteration for one in self._first_changes)

    @property
    def first_changes(self) -> tuple[ShapeChange, ...]:
        """Return the first changes of the shape."""
        return tuple(self._first_changes)

    def view(self, elements: ValueHistory | None) -> ValueHistory | None:
        """Return a history of the same elements in these shapes, of which nothing entered."""
        if elements is None or not elements.count:
            return None
        return replace(
            elements,
            shape=self.shape,
            shapes=self.first_changes,
            shape_changes=self.changes,
            first_shape=self.first,
            entered=None,
            changes=None,
            growth=None,
        )


class HistoryRecorder:
    """Collects a value over iterations: `append` takes the next one, `settle` puts into bins what was appended.

    All values between two calls of `settle` are held. Only numbers and booleans are kept; of texts nothing is. What
    `entered` is known of is followed in its changes.
    """

    def __init__(self, capacity: Capacity, entered: Any = None) -> None:
        self._capacity = capacity
        self._entered = None if entered is None else np.asarray(entered)
        self._changes = None if entered is None or not _is_floating(entered) else HistoryRecorder(capacity)
        self._before: Array | None = None if self._changes is None else plain_numbers(np.asarray(entered)).reshape(-1)
        self._last: Array | None = None if entered is None else np.asarray(entered)
        self._growth: HistoryRecorder | None = None
        self._present: HistoryRecorder | None = None
        self._waiting: list[Any] = []
        self._raw = bytearray()
        self._sample: Any = None
        self.append: Callable[[Any], object] = self._waiting.append
        self.checksum: int | None = 0
        """Of every bit so far; None: nobody asks for it."""
        self.noted: Callable[[object, Array], object] | None = None
        """Gets (type and shape, bits as [iteration, word]) of what is settled."""
        self.count = 0
        self._type = ""
        self._shapes = ShapeRecorder(None if self._entered is None else tuple(self._entered.shape))
        self._begins: Array | None = None
        self._is_whole = True
        self._size = -1
        self._first = self._recent = self._bins = np.zeros((1, 0, 0))
        self._binned, self._step = 0, 1
        self._previous: Array | None = None
        self._unchanged_since = 0
        self._counter: Counter | None = None
        self._may_count = True
        self._first_nan: int | None = None
        self._first_infinite: int | None = None

    @property
    def waiting(self) -> int:
        """Return how many values were appended and are not settled."""
        return len(self._waiting) + (len(self._raw) // self._sample.nbytes if self._raw else 0)

    def quicken(self, sample: Any) -> bool:
        """Take bytes from now on instead of values, if all are to be single numbers of the type and shape of a sample.

        Values that are held cost more than the copy: the next ones need other memory. `append` is another one then.
        """
        if sample.size != 1 or sample.dtype.kind not in "biuf" or not element_types.is_of_numpy(sample.dtype):
            return False
        self._sample, self.append = sample, self._raw.extend
        return True

    @property
    def first_non_finite(self) -> int | None:
        """Return the first iteration with a NaN or Inf."""
        known = [one for one in (self._first_nan, self._first_infinite) if one is not None]
        return min(known, default=None)

    @property
    def type(self) -> str:
        """Return the name of the element type."""
        return self._type

    @property
    def is_comparable(self) -> bool:
        """True if the checksum covers every bit."""
        is_covered = self.checksum is not None and math.prod(self._shapes.shape) <= LARGEST_COMPARED
        return is_covered and self.count > 0 and self._shapes.is_steady

    @property
    def bytes_each(self) -> int:
        """Return the bytes of the last value."""
        return 0 if self._previous is None else self._previous.nbytes

    @property
    def step(self) -> int:
        """Return how many iterations are in a bin."""
        return self._step

    @property
    def nbytes(self) -> int:
        """Return the memory of the numbers, in bytes."""
        return self._first.nbytes + self._recent.nbytes + self._bins.nbytes

    def replace_last(self, value: Any) -> None:
        """Put another value in the place of the one appended last, which must not be settled."""
        if self._raw:  # what was appended before bytes were taken is older
            self._raw[-self._sample.nbytes :] = np.asarray(value, self._sample.dtype).tobytes()
        else:
            self._waiting[-1] = value

    def settle(self) -> None:
        """Take in what was appended."""
        values = self._waiting.copy()
        self._waiting.clear()
        with np.errstate(all="ignore"):
            if values:
                self._take(values)
            if self._raw:
                raw = np.frombuffer(bytes(self._raw), self._sample.dtype)
                self._raw.clear()
                self._extend(raw.reshape(-1, 1), self._sample)

    def keep(self, numbers: Array) -> None:
        """Take in one number an iteration, of which nothing but the numbers is wanted."""
        self._type, self._size = "f64", 1
        self._store(numbers[None, :, None])
        self.count += len(numbers)

    def extend(self, stack: Array, sample: Array) -> None:
        """Take in values [iteration, element] that are of the shape and type of one of them."""
        self.settle()
        with np.errstate(all="ignore"):
            self._extend(stack, sample)

    def _take(self, values: Sequence[Any]) -> None:
        stack = _stacked(values)
        if stack is not None and values[0].dtype == stack.dtype:
            self._extend(stack, values[0])
            return
        for _, group in groupby(values, key=lambda value: (value.shape, value.dtype)):
            run = list(group)
            stack = _stacked(run)
            self._extend(np.stack([np.ravel(one) for one in run]) if stack is None else stack, run[0])

    def _extend(self, stack: Array, sample: Any) -> None:
        """Take in values [iteration, element] of the shape and type of one of them."""
        if sample.dtype.names is None and sample.dtype.kind in "SUOT":
            self.count += len(stack)
            self._type, self._shapes.shape = element_types.name_of(sample.dtype), tuple(sample.shape)
            return
        self._note_growth(stack, tuple(sample.shape))
        self._type = element_types.name_of(sample.dtype)
        self._shapes.count = self.count
        self._shapes.note(tuple(sample.shape))
        if self.checksum is not None and stack.shape[1] <= LARGEST_COMPARED:
            self.checksum = zlib.crc32(np.ascontiguousarray(stack).data, self.checksum)
        self._note_changes(stack, sample)
        numbers = _row_numbers(stack)
        if self._changes is not None:
            self._follow(numbers)
        if numbers.shape[1]:
            had_none = self._size < 0 < self.count
            kept = self._numbers(numbers)
            if had_none:  # columns without a number have the form of those that come
                self._first, self._recent, self._bins = (
                    np.zeros((len(kept), one.shape[1], kept.shape[2]), kept.dtype)
                    for one in (self._first, self._recent, self._bins)
                )
            self._note_numbers(numbers, kept)
            self._store(kept)
        else:
            self._store_absent(len(numbers))
        self._note_presence(len(stack), is_there=numbers.shape[1] > 0)
        self.count += len(stack)

    def skip(self, count: int) -> None:
        """Take in so many iterations of which nothing is known."""
        self.settle()
        self._store_absent(count)
        self._note_presence(count, is_there=False)
        self.count += count

    # --- what is noted -------------------------------------------------------------------------------------------

    def _note_presence(self, count: int, *, is_there: bool) -> None:
        """Note in which iterations there are numbers, from the first one on that has none."""
        if self._present is None and not is_there:
            self._present = HistoryRecorder(self._capacity)
            self._present.keep(np.ones(self.count))
        if self._present is not None:
            self._present.keep(np.full(count, float(is_there)))

    def _note_growth(self, stack: Array, shape: Shape) -> None:
        """Note what a value has more than before, from the first change of its shape on."""
        last, self._last = self._last, stack[-1].reshape(shape).copy() if stack.shape[1] <= LARGEST_COMPARED else None
        known = self._shapes.shape if self.count else None if self._entered is None else tuple(self._entered.shape)
        if known is None:
            return
        if self._growth is None:
            if known == shape:
                return
            self._growth = HistoryRecorder(self._capacity)
            if self.count:
                self._growth.extend(np.zeros((self.count, 3)), np.zeros(3))
        more = np.zeros((len(stack), 3))
        if known != shape:
            joined = _joined_number(last, stack[0].reshape(shape))
            more[0] = math.prod(shape) - math.prod(known), joined is not None, 0 if joined is None else joined
        self._growth.extend(more, more[0])

    def _follow(self, numbers: Array) -> None:
        """Note by how much it changes in each iteration."""
        assert self._changes is not None
        before = self._before
        if numbers.dtype.kind != "f" or before is None or not 0 < len(before) == numbers.shape[1] <= LARGEST_COMPARED:
            self._changes = None
            return
        found = np.empty(len(numbers), np.float64)
        found[0] = np.abs(numbers[0] - before).max()
        if len(numbers) > 1:
            step = numbers[1:] - numbers[:-1]
            np.abs(step, out=step)
            columns = [step[:, place] for place in range(step.shape[1])] if step.shape[1] <= _FEW_COLUMNS else []
            found[1:] = reduce(np.maximum, columns) if columns else step.max(axis=1)
        self._before = numbers[-1].copy()
        self._changes.keep(found)

    def _note_changes(self, stack: Array, sample: Any) -> None:
        """Look for the last iteration that has other bits than the one before."""
        bits = np.ascontiguousarray(stack).view(np.uint8).reshape(len(stack), -1)
        wide = next((width for width in (8, 4, 2) if bits.shape[1] and bits.shape[1] % width == 0), 1)
        bits = bits.view(f"u{wide}")
        if self.noted is not None:
            self.noted((sample.dtype, sample.shape), bits)
        end, many = len(bits), 1  # from the last one backwards, for most values change in each iteration
        while end > 1:
            begin = max(end - many, 1)
            changed = bits[begin:end] != bits[begin - 1 : end - 1]
            changed = changed[:, 0] if bits.shape[1] == 1 else changed.any(axis=1)
            if changed.any():
                self._unchanged_since = self.count + end - 1 - int(changed[::-1].argmax())
                break
            end, many = begin, _LARGE
        else:
            if self._previous is not None and not np.array_equal(self._previous, bits[0]):
                self._unchanged_since = self.count
        self._previous = bits[-1].copy() if len(bits) > 1 else bits[-1]

    def _note_numbers(self, numbers: Array, kept: Array) -> None:
        if numbers.dtype.kind == "f":
            self._may_count = False
            is_known = self._first_nan is not None and self._first_infinite is not None
            if not is_known and not np.isfinite(kept[KeptStatistic.LARGEST]).all():
                finite = np.isfinite(numbers)
                nan = np.isnan(numbers)
                places = [np.flatnonzero(mask.any(axis=1)) for mask in (nan, ~finite & ~nan)]
                found = [self.count + int(place[0]) if place.size else None for place in places]
                self._first_nan = found[0] if self._first_nan is None else self._first_nan
                self._first_infinite = found[1] if self._first_infinite is None else self._first_infinite
        elif self._may_count:
            self._may_count = numbers.shape[1] == 1 and self._counts(numbers[:, 0])

    def _counts(self, numbers: Array) -> bool:
        known = self._counter
        first, last = int(numbers[0]), int(numbers[-1])
        begin = first if known is None else known.last
        steps = np.diff(numbers, prepend=numbers[:0] if known is None else begin)
        if not len(steps):
            self._counter = Counter(first, 0, last)
            return True
        step = int(steps[0]) if known is None or self.count == 1 else known.step
        if not (steps == step).all():
            self._counter = None
            return False
        self._counter = Counter(first if known is None else known.first, step, last)
        return True

    # --- what is kept --------------------------------------------------------------------------------------------

    def _numbers(self, stack: Array) -> Array:
        size = stack.shape[1]
        if self._size < 0:
            self._size, self._is_whole = size, size <= MOST_ELEMENTS
            self._begins = None if self._is_whole else bucket_begins(size)
        elif size != self._size and self._size:
            self._summarise()
        if self._is_whole:
            return stack[None]
        assert self._begins is not None
        return bucket_statistics(stack, self._begins)

    def _summarise(self) -> None:
        """From now on the three numbers of all elements, since their number changes."""
        self._size, begins = 0, np.zeros(1, np.intp)
        self._first, self._recent, self._bins = (summary(kept) for kept in (self._first, self._recent, self._bins))
        self._begins, self._is_whole = begins, False

    def _store_absent(self, count: int) -> None:
        form = max((self._first, self._bins, self._recent), key=lambda one: one.shape[2])
        self._store(np.zeros((len(form), count, form.shape[2]), form.dtype))

    def _store(self, numbers: Array) -> None:
        room = self._capacity.edge - self._first.shape[1]
        if room > 0:
            self._first = _joined(self._first, numbers[:, :room])
            numbers = numbers[:, room:]
        if not numbers.shape[1]:
            return
        old = self._recent.shape[1] + numbers.shape[1] - self._capacity.edge
        if old <= 0:
            self._recent = _joined(self._recent, numbers)
            return
        oldest = min(old, self._recent.shape[1])
        if oldest:
            self._bin(self._recent[:, :oldest])
        if old > oldest:
            self._bin(numbers[:, : old - oldest])
        self._recent = _joined(self._recent[:, oldest:], numbers[:, old - oldest :])

    def _bin(self, numbers: Array) -> None:
        end = self._binned + numbers.shape[1]
        while -(-end // self._step) > self._capacity.bins:
            self._bins = _grouped(self._bins, 2)
            self._step *= 2
        room = -self._binned % self._step  # in the last bin
        if room:
            last = np.concatenate([self._bins[:, -1:], numbers[:, :room]], axis=1)
            self._bins[:, -1] = strongest(last, 1)
        if numbers.shape[1] > room:
            self._bins = _joined(self._bins, _grouped(numbers[:, room:], self._step))
        self._binned = end

    def view(self) -> ValueHistory | None:
        """Return the history as it stands; None where there is none, as of texts."""
        self.settle()
        numbers = self._numbers_kept()
        if not numbers.shape[1]:
            return self._only_entered() if not self.count else None
        edge, recent = self._first.shape[1], self._recent.shape[1]
        middle = edge + np.arange(self._bins.shape[1]) * self._step
        begins = np.concatenate([np.arange(edge), middle, edge + self._binned + np.arange(recent)])
        spans = np.stack([begins, np.append(begins[1:], self.count)], axis=1).astype(np.int64)
        if self._present is not None:
            is_there = self._present._numbers_kept()[0, :, 0] > 0
            spans, numbers = spans[is_there], numbers[:, is_there]
        counter = self._counter if self._may_count and self.count > 2 else None
        return ValueHistory(
            type=self._type,
            shape=self._shapes.shape,
            count=self.count,
            is_whole=self._is_whole,
            spans=spans,
            numbers=numbers,
            entered=self._entered_numbers(),
            unchanged_since=self._unchanged_since,
            counter=counter if counter is not None and counter.step else None,
            first_nan=self._first_nan,
            first_infinite=self._first_infinite,
            shapes=self._shapes.first_changes,
            shape_changes=self._shapes.changes,
            first_shape=self._shapes.first,
            changes=None if self._changes is None else self._changes.view(),
            growth=None if self._growth is None else self._growth.view(),
        )

    def _numbers_kept(self) -> Array:
        return _joined(_joined(self._first, self._bins), self._recent)

    def _only_entered(self) -> ValueHistory | None:
        """Return what entered a loop of which no iteration has run."""
        known = self._entered
        if known is None or not known.size or known.dtype.kind in "SUOT":
            return None
        spans = np.zeros((0, 2), np.int64)
        kept = numbers_of(known)
        assert kept is not None
        blank = np.zeros((len(kept), 0, kept.shape[1]))
        type = element_types.name_of(known.dtype)
        return ValueHistory(type, tuple(known.shape), 0, len(kept) == 1, spans, blank, kept)

    def _entered_numbers(self) -> Array | None:
        if self._entered is None or not self._entered.size:
            return None
        stack = plain_numbers(self._entered.reshape(1, -1))
        with np.errstate(all="ignore"):
            if self._is_whole and stack.shape[1] == self._size:
                return stack
            begins = self._begins if self._size == stack.shape[1] and self._begins is not None else np.zeros(1, np.intp)
            return bucket_statistics(stack, begins)[:, 0]


def _is_floating(value: Any) -> bool:
    return storable(np.asarray(value)).dtype.kind == "f"


def _joined_number(before: Array | None, now: Array) -> float | None:
    """Return the number that was joined to the end of a value; None where it is something else that changed."""
    if before is None or now.size != before.size + 1 or now.ndim != before.ndim:
        return None
    wide = plain_numbers(np.asarray(now)).reshape(-1)
    same = np.array_equal(wide[:-1], plain_numbers(before).reshape(-1), equal_nan=True)
    return float(wide[-1]) if same else None


def _grouped(numbers: Array, size: int) -> Array:
    """Return the strongest of every so many iterations; the last group may be smaller."""
    if size == 1 or not numbers.shape[1]:
        return numbers
    statistics, count, elements = numbers.shape
    whole = count // size
    parts = []
    if whole:
        groups: Array = np.moveaxis(numbers[:, : whole * size].reshape(statistics, whole, size, elements), 2, 0)
        if elements > _FEW_COLUMNS:  # copied to be reduced in long rows: several times as fast
            groups = np.ascontiguousarray(groups).reshape(size, -1)
        parts.append(strongest(groups).reshape(statistics, whole, elements))
    if count % size:
        parts.append(strongest(numbers[:, whole * size :], 1)[:, None])
    return np.concatenate(parts, axis=1)


def _joined(kept: Array, more: Array) -> Array:
    """Return both along the iterations; the first may be empty, and of another form."""
    if not kept.shape[1]:
        return more.copy()
    return np.concatenate([kept, more], axis=1) if more.shape[1] else kept
