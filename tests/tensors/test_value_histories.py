"""Histories of values in constant memory, against the formula applied to all values at once."""

from __future__ import annotations

from typing import Any

import numpy as np

from stepper.element_types import Array
from stepper.tensors.histories import Capacity, HistoryRecorder, KeptStatistic, ValueHistory, strongest, summary
from tests.tables import each_row

SMALL = Capacity(8, 4)


def recorded(values: list[Any], batches: list[int], capacity: Capacity = SMALL, entered: Any = None) -> ValueHistory:
    """The history of values that are settled some at a time, the numbers of `batches` in turn."""
    recorder, at, turn = HistoryRecorder(capacity, entered), 0, 0
    while at < len(values):
        for value in values[at : at + batches[turn % len(batches)]]:
            recorder.append(value)
        recorder.settle()
        at, turn = at + batches[turn % len(batches)], turn + 1
    found = recorder.view()
    assert found is not None
    return found


def strongest_by_hand(numbers: list[float]) -> float:
    """NaN before all, then the largest magnitude, of two the positive one."""
    if any(number != number for number in numbers):
        return float("nan")
    return max(numbers, key=lambda number: (abs(number), number))


def spans_by_hand(count: int, capacity: Capacity) -> list[tuple[int, int]]:
    """The first and the last iterations, and between them bins of the least power of two that is wide enough."""
    edge = capacity.edge
    middle = max(count - 2 * edge, 0)
    step = 1
    while -(-middle // step) > capacity.bins:
        step *= 2
    first = min(edge, count)
    bins = [(first + at, min(first + at + step, first + middle)) for at in range(0, middle, step)]
    singles = [(at, at + 1) for at in range(first)]
    return singles + bins + [(at, at + 1) for at in range(first + middle, count)]


@each_row("count", [1, 7, 8, 9, 16, 17, 20, 21, 33, 100, 1000, 1025])
@each_row("batches", [[1], [3, 50, 1], [10**6]])
def test_columns_are_the_strongest_of_their_iterations(count: int, batches: list[int]) -> None:
    random = np.random.default_rng(count)
    values = list(random.standard_normal((count, 2, 3)).astype(np.float32))
    for place, odd in ((count // 3, np.nan), (count // 2, -np.inf), (count // 2 + 1, np.inf)):
        if count > 20:
            values[place][0, 1] = odd
    found = recorded(values, batches)
    assert found.count == count and found.is_whole and found.type == "f32" and found.shape == (2, 3)
    assert [tuple(span) for span in found.spans.tolist()] == spans_by_hand(count, SMALL)
    for column, (begin, end) in enumerate(found.spans.tolist()):
        expected = [strongest_by_hand([float(value.flat[at]) for value in values[begin:end]]) for at in range(6)]
        assert np.array_equal(found.numbers[0, column], np.array(expected, np.float32), equal_nan=True)
    flat = np.stack(values).reshape(count, -1)
    nan, infinite = (np.flatnonzero(test(flat).any(axis=1)) for test in (np.isnan, np.isinf))
    assert found.first_nan == (int(nan[0]) if nan.size else None)
    assert found.first_infinite == (int(infinite[0]) if infinite.size else None)


@each_row("size", [65, 128, 200, 64 * 40, 5000], quick=2)
@each_row("type", [np.float32, np.float64, np.int32, np.float16])
def test_larger_values_are_buckets(size: int, type: type[np.generic]) -> None:
    random = np.random.default_rng(size)
    values = list((random.standard_normal((50, size)) * 100).astype(type))
    if np.issubdtype(type, np.floating):
        values[3][5], values[4][5], values[5][:2] = np.nan, -np.inf, (np.inf, -np.inf)  # type: ignore[call-overload]
    found = recorded(values, [7], Capacity(100, 4), entered=values[0])
    assert not found.is_whole and found.numbers.shape == (3, 50, 64)
    for iteration, value in enumerate(values):
        for bucket, part in enumerate(np.array_split(value.astype(np.float64), 64)):
            numbers = part.tolist()
            largest = strongest_by_hand(numbers)
            expected = [largest] * 3
            if np.isfinite(largest):
                expected[1:] = [float(np.mean(part)), float(np.sqrt(np.mean(part**2)))]
            got = found.numbers[:, iteration, bucket]
            assert np.allclose(got, expected, rtol=1e-5, atol=1e-4, equal_nan=True), (iteration, bucket)
            assert largest != largest or got[KeptStatistic.LARGEST] == largest
    assert found.entered is not None and np.array_equal(found.entered, found.numbers[:, 0], equal_nan=True)


@each_row("statistics", [1, 3])
def test_infinities_of_both_signs_have_no_mean_and_are_no_warning(statistics: int) -> None:
    kept = np.ones((statistics, 2, 3), np.float32)
    kept[:, 1, :2] = np.inf, -np.inf
    found = summary(kept)[KeptStatistic.MEAN].tolist()
    assert found[0] == [1] and not np.isfinite(found[1][0])


def test_values_that_change_their_size_are_summed_up_and_shapes_are_noted() -> None:
    values = [np.arange(1, length + 1, dtype=np.float32) for length in (2, 2, 3, 3, 4)]
    found = recorded(values, [2, 1])
    assert not found.is_whole and found.elements == 1 and found.shape == (4,)
    assert [(one.iteration, one.shape) for one in found.shapes] == [(2, (3,)), (4, (4,))] and found.shape_changes == 2
    assert found.numbers[KeptStatistic.LARGEST, :, 0].tolist() == [2, 2, 3, 3, 4]
    assert found.numbers[KeptStatistic.MEAN, :, 0].tolist() == [1.5, 1.5, 2, 2, 2.5]
    rms = [float(np.sqrt(np.mean(np.square(value)))) for value in values]
    assert np.allclose(found.numbers[KeptStatistic.RMS, :, 0], rms)


@each_row("batches", [[1], [2], [3, 1], [100]])
@each_row("capacity", [SMALL, Capacity(2, 2)], ids=["kept", "in bins"])
@each_row("lengths", [[2, 1, 0, 0, 3], [0, 2], [3, 0], [1, 0, 1, 0, 1, 0], [0, 0, 4, 4, 4, 4, 4, 4, 0]])
def test_an_iteration_without_elements_has_no_number(
    lengths: list[int], batches: list[int], capacity: Capacity
) -> None:
    values = [np.full(length, 7 + at, np.float32) for at, length in enumerate(lengths)]
    found = recorded(values, batches, capacity)
    assert found.count == len(lengths) and found.shape == (lengths[-1],)
    binned = {at for first, end in found.spans.tolist() if end - first > 1 for at in range(first, end)}
    for at, length in enumerate(lengths):
        (numbers,) = found.over_each([(at, at + 1)], KeptStatistic.LARGEST)
        if length == 0 and at not in binned:
            assert numbers is None
        elif length and at not in binned:
            assert numbers is not None and numbers.tolist() == [7 + at] * len(numbers)
    assert 0 not in found.numbers[0, [not (end - begin > 1) for begin, end in found.spans.tolist()]]


def test_unchanged_since_is_of_bits() -> None:
    def since(numbers: list[float]) -> int | None:
        values = [np.array([number, 1], np.float32) for number in numbers]
        return {recorded(values, batches).unchanged_since for batches in ([1], [2], [100])}.pop()

    assert since([1, 2, 3, 3, 3]) == 2
    assert since([5, 5, 5, 5]) == 0
    assert since([np.nan, np.nan, np.nan]) == 0, "the same bits"
    assert since([0.0, -0.0, -0.0]) == 1, "equal, but not the same bits"
    assert since([1, 2]) == 1


@each_row("batches", [[1], [2], [100]])
def test_counters(batches: list[int]) -> None:
    def counter(numbers: list[int], type: type[np.generic] = np.int64) -> tuple[int, int, int] | None:
        found = recorded([type(number) for number in numbers], batches).counter  # type: ignore[call-arg]
        return None if found is None else (found.first, found.step, found.last)

    assert counter([1, 2, 3, 4, 5, 6]) == (1, 1, 6)
    assert counter([10, 7, 4, 1, -2], np.int32) == (10, -3, -2)
    assert counter([1, 2, 3, 5, 6]) is None
    assert counter([5, 5, 5, 5]) is None, "a constant does not count"
    assert counter([1, 2]) is None, "two numbers are no row"
    assert counter([1, 2, 3, 4], np.float32) is None


def test_other_types() -> None:
    found = recorded([np.bool_(bit) for bit in (True, False, True)], [2])
    assert found.type == "boolean" and found.numbers[0, :, 0].tolist() == [1, 0, 1]
    found = recorded([np.array([2**63 + 5, 1], np.uint64)] * 3, [2])
    assert found.numbers[0, 0].tolist() == [float(2**63 + 5), 1]
    texts = HistoryRecorder(SMALL)
    texts.append(np.array("text", np.dtypes.StringDType()))
    assert texts.view() is None
    empty = recorded([np.zeros((0, 3), np.float32)] * 20, [3])
    assert empty.count == 20 and empty.elements == 0


def test_memory_does_not_grow() -> None:
    sizes = []
    for count in (2_000, 20_000):
        recorder = HistoryRecorder(Capacity())
        for number in range(count):
            recorder.append(np.full(64, number, np.float32))
            if recorder.waiting == 500:
                recorder.settle()
        recorder.settle()
        sizes.append(recorder.nbytes)
    assert max(sizes) <= (2 * Capacity().edge + Capacity().bins) * 64 * 4


def test_numbers_over_a_range_of_iterations() -> None:
    values: list[Array] = [np.array([number], np.float32) for number in range(100)]
    found = recorded(values, [9])
    several = found.over_each([(3, 4), (0, 100), (2, 6), (100, 200)], KeptStatistic.LARGEST)
    assert [None if one is None else float(one[0]) for one in several] == [3, 99, 5, None]
    (inside,) = found.over_each([(40, 41)], KeptStatistic.LARGEST)
    assert inside is not None and 40 <= inside[0] < 100 - SMALL.edge, "of the bin that it is in"


@each_row("batches", [[1], [3, 50, 1]])
@each_row("type", [np.float16, np.float32, np.float64])
@each_row("size", [1, 6, 200])
def test_changes_are_those_from_the_iteration_before(batches: list[int], type: type[np.generic], size: int) -> None:
    random = np.random.default_rng(size)
    first = random.standard_normal(size).astype(type)
    values = [first * np.asarray(0.5**k, type) for k in range(1, 41)]
    found = recorded(values, batches, Capacity(32, 8), first)
    expected = [float(np.abs(b - a).max()) for a, b in zip([first, *values], values, strict=False)]
    assert found.changes is not None and found.changes.numbers[0, :, 0].tolist() == expected[: found.changes.count]
    settled = next(k for k in range(40) if all(one < 0.01 * max(expected) for one in expected[k:]))
    assert found.settled_from == settled
    assert recorded(values, batches).changes is None, "nothing is known of what entered"
    moving = [first * np.asarray(k % 2, type) for k in range(40)]
    assert recorded(moving, batches, entered=first).settled_from is None
    assert recorded([first] * 40, batches, entered=first).settled_from is None


@each_row("batches", [[1], [2, 5]])
def test_shapes_are_those_that_differ_from_the_one_before(batches: list[int]) -> None:
    values = [np.arange(length) for length in (3, 3, 4, 5, 6, 8)]
    entered = values[0]
    assert [one.iteration for one in recorded(values, batches, entered=entered).shapes] == [2, 3, 4, 5]
    assert recorded(values[:2], batches, entered=entered).shapes == ()
    assert [one.iteration for one in recorded(values[2:], batches, entered=entered).shapes] == [0, 1, 2, 3]
    assert [one.iteration for one in recorded([np.zeros(2), np.ones(3)], batches).shapes] == [1]


@each_row("dtype", [np.float32, np.float64])
def test_the_strongest_of_two_has_the_sign_of_the_farther_one_also_at_the_ends_of_the_type(dtype: Any) -> None:
    most, least = np.finfo(dtype).max, np.finfo(dtype).smallest_subnormal
    odd = [0.0, -0.0, 1.0, -1.0, 2.0, -3.0, np.inf, -np.inf, np.nan, most, -most, least, -least]
    pairs = np.array([(a, b) for a in odd for b in odd], dtype)
    expected = [strongest_by_hand([float(a), float(b)]) for a, b in pairs]
    one_by_one = np.array([strongest(pair) for pair in pairs])
    assert np.array_equal(one_by_one, np.array(expected, dtype), equal_nan=True)
    assert np.array_equal(strongest(pairs, 1), one_by_one, equal_nan=True)


@each_row("marks", [1, 3])
def test_a_step_from_a_mark_is_no_yardstick_for_what_moves_on(marks: int) -> None:
    """Scores of beams: -1e9 until a beam is in use, then a sum of logarithms that goes on."""
    first = np.array([0, -1e9, -1e9], np.float32)
    steps = np.array([[-2.0, -2.1, -1.9]] * 16, np.float32)
    moving = [np.where(np.arange(3) < 3 - marks + 1 + k, steps[: k + 1].sum(0), first) for k in range(16)]
    found = recorded(moving, [1], entered=first)
    assert found.changes is not None and found.changes.numbers.max() > 9e8, "it leaves the mark"
    assert found.settled_from is None
    calm = [np.array([5.0, 7.0], np.float32) + np.float32(1e-6 * (-1) ** k) for k in range(16)]
    assert recorded(calm, [1], entered=np.array([-1e9, 0], np.float32)).settled_from == 1, "its last bits alone differ"
    stays = [np.array([5.0, 0.0], np.float32)] * 16
    assert recorded(stays, [1], entered=np.array([-1e9, 0], np.float32)).settled_from == 1
    zeros = [np.zeros(2, np.float32)] * 16
    assert recorded(zeros, [1], entered=np.array([-1e9, 0], np.float32)).settled_from == 1
    halves = [np.array([-8 + 0.5**k], np.float32) for k in range(16)]
    after = next(k for k in range(1, 16) if 0.5**k < 0.01 * 0.5)  # of the changes behind the mark
    assert recorded(halves, [1], entered=np.array([-1e9], np.float32)).settled_from == after
