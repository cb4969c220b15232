"""Keep values over iterations in constant memory: first and last iterations, bins between.

A value of at most 64 elements keeps each element. A larger value keeps 64 buckets of neighbouring elements, each by its
largest magnitude, mean and root mean square. A value that changes its number of elements keeps these three statistics
over all elements. When the bins are full, two become one. A bin keeps the number with the largest magnitude, NaN before
Inf.
"""

from __future__ import annotations

import math
import zlib
from collections.abc import Callable, Sequence
from enum import IntEnum
from functools import reduce
from itertools import groupby, pairwise
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from msgspec.structs import replace

from stepper import element_types
from stepper.element_types import Indices, Shape, is_of_numpy
from stepper.plain_values import storable
from stepper.records import Brief, Record
from stepper.tensors.tensor_pictures import percentile

if TYPE_CHECKING:
    from stepper.element_types import Array

MOST_ELEMENTS = 64
"""Largest value that keeps each element, and the number of buckets of a larger value."""
LARGEST_COMPARED = 2**14
"""Largest value, in elements, that is compared with another value for equality."""
_MOST_SHAPES = 32
_SMALL_BUCKET = 32
_FEW_COLUMNS = 16
"""Elements up to which the largest one is found column by column, which is faster than row by row."""
_LARGE = 2**20
"""Elements that are looked at together."""
_IN_CACHE = 2**17
"""Elements that are put into buckets together."""
_LARGE_SQUARE = 1e18
"""Magnitudes from which on sums of squares in f32 may overflow."""
SETTLED = 0.01
"""Share of its largest change below which the changes of a value that has settled stay."""
_LEAST_SETTLED = 4
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


class ValueHistory(Brief, weakref=True):
    """Hold a value over the iterations of one run of a loop, or over the runs of a branch.

    `spans[c]` is the half-open range of iterations of column c. There are gaps where iterations are unknown, and where
    a value that changes its shape has no element. `numbers[s, c, e]` are its numbers: of the elements in row-major
    order (`is_whole`, s = 0 alone), or by KeptStatistic of buckets of them. `entered[s, e]` are the numbers of the
    initial value. `type` and `shape` belong to the last iteration. From the iteration `unchanged_since` on, every value
    has equal bits (0: always, None: unknown). `counter` says that the value counts. `first_nan` and `first_infinite`
    are iterations. `shapes` are the first changes of the shape, also from the initial value to iteration 0.
    `shape_changes` is their total number, and `first_shape` is the shape before them (None: unknown). `changes` has the
    largest magnitude of the difference of an iteration from the iteration before, if it is tracked. Without any
    iteration (`count` 0) there are no columns, only the initial value.
    """

    unshown: ClassVar = ("spans", "numbers", "entered", "changes")

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

    @property
    def elements(self) -> int:
        """Return how many numbers a column has: elements or buckets."""
        return int(self.numbers.shape[2])

    @property
    def changes_shape(self) -> bool:
        """True if some iterations have another shape than others, whatever came in."""
        return self.shape_changes > sum(not one.iteration for one in self.shapes)

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
        """Return the median magnitude of its finite non-zero elements in the last iteration."""
        last = np.abs(self.numbers[0 if self.is_whole else KeptStatistic.RMS, -1].astype(np.float64))
        counts = last[np.isfinite(last) & (last > 0)]
        return percentile(np.sort(counts), 50) if counts.size else 0.0

    def over_each(self, ranges: Sequence[tuple[int, int]], statistic: KeptStatistic) -> list[Array | None]:
        """Return the numbers for each range [first, last): by element the strongest of the columns in it, if any.

        `statistic` is for buckets; elements are what they are.
        """
        firsts, lasts = np.array(ranges, np.int64).reshape(-1, 2).T
        begins = np.searchsorted(self.spans[:, 1], firsts, side="right").tolist()
        ends = np.searchsorted(self.spans[:, 0], lasts, side="left").tolist()
        numbers = self.numbers[0 if self.is_whole else statistic]
        return [
            None if begin >= end else numbers[begin] if end - begin == 1 else strongest(numbers[begin:end])
            for begin, end in zip(begins, ends, strict=True)
        ]


def strongest(numbers: Array, axis: int = 0) -> Array:
    """Return the number of the largest magnitude along an axis, NaN before all others, of two the positive one."""
    return _stronger(numbers.max(axis), numbers.min(axis))


def _stronger(high: Array, low: Array) -> Array:
    """Return the number farther from zero, or the higher one of two equally far; a NaN wins.

    The sum of the two has the result's sign. A choice by a mask, whose pattern no processor can guess, takes eight
    times as long, and numpy's copysign three times as long as the bits.
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
    """Collect the shapes of a value over iterations.

    A HistoryRecorder has the elements in another shape. `entered` is the shape of the initial value, if it is known.
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
        """Return a history of the same elements in these shapes, without an initial value."""
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
        )


class HistoryRecorder:
    """Collects a value over iterations: `append` takes the next one, `settle` puts into bins what was appended.

    All values between two calls of `settle` are held. Only numbers and booleans are kept; of texts nothing is. What
    `entered` is known of is followed in its changes.
    """

    def __init__(self, capacity: Capacity, entered: Any = None) -> None:
        self._capacity = capacity
        self._entered = None if entered is None else np.asarray(entered)
        self._changes = (
            None if entered is None or storable(np.asarray(entered)).dtype.kind != "f" else HistoryRecorder(capacity)
        )
        self._before: Array | None = None if self._changes is None else plain_numbers(np.asarray(entered)).reshape(-1)
        self._present: HistoryRecorder | None = None
        self._waiting: list[Any] = []
        self._raw = bytearray()
        self._sample: Any = None
        self.append: Callable[[Any], object] = self._waiting.append
        self.checksum: int | None = 0
        """Checksum of every bit so far; None if nobody asks for it."""
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
        """Add one number per iteration; only the numbers are kept."""
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

    # --- what is noted -------------------------------------------------------------------------------------------

    def _note_presence(self, count: int, *, is_there: bool) -> None:
        """Note in which iterations there are numbers, from the first one on that has none."""
        if self._present is None and not is_there:
            self._present = HistoryRecorder(self._capacity)
            self._present.keep(np.ones(self.count))
        if self._present is not None:
            self._present.keep(np.full(count, float(is_there)))

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
            self._size, begins = 0, np.zeros(1, np.intp)
            self._first, self._recent, self._bins = (summary(kept) for kept in (self._first, self._recent, self._bins))
            self._begins, self._is_whole = begins, False
        if self._is_whole:
            return stack[None]
        assert self._begins is not None
        return bucket_statistics(stack, self._begins)

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
        )

    def _numbers_kept(self) -> Array:
        return _joined(_joined(self._first, self._bins), self._recent)

    def _only_entered(self) -> ValueHistory | None:
        """Return the initial value of a loop without iterations."""
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
