"""Bins over iterations: whatever the order of values, a bin is NaN before Inf before the largest magnitude."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from stepper.debug.debugger import Debugger
from stepper.debug.iterations.sweep import Sweeps, TrackView
from stepper.tensors.histories import Capacity, HistoryRecorder
from tests.tui.time_models import swinging, swinging_in_numpy


def worst_of(numbers: Sequence[float | None]) -> float | None:
    """By the definition."""
    given = [number for number in numbers if number is not None]
    if any(math.isnan(number) for number in given):
        return math.nan
    return max(given, key=abs, default=None)


@pytest.mark.parametrize("elements", [1, 3])
@pytest.mark.parametrize("seed", range(12))
def test_bins_keep_the_worst_of_their_iterations(seed: int, elements: int) -> None:
    rng = random.Random(seed)
    odd = [math.nan, math.inf, -math.inf, None, None]
    values: list[Any] = [
        rng.choice(odd) if rng.random() < 0.1 else np.array([rng.uniform(-9, 9) for _ in range(elements)])
        for _ in range(rng.randrange(1, 400))
    ]
    values = [np.full(elements, one) if isinstance(one, float) else one for one in values]
    recorder, rest = HistoryRecorder(Capacity(0, 16)), list(values)
    while rest:
        for value in rest[: (size := rng.randrange(1, 50))]:
            if value is None:
                recorder.skip(1)
            else:
                recorder.append(value)
        recorder.settle()
        del rest[:size]
    history = recorder.view()
    known = [place for place in range(0, len(values), recorder.step) if any_of(values[place : place + recorder.step])]
    assert recorder.count == len(values) and -(-len(values) // recorder.step) <= 16
    assert history is not None and history.spans[:, 0].tolist() == known
    for column, place in enumerate(known):
        part = values[place : place + recorder.step]
        for element in range(elements):
            found = history.numbers[0, column, element]
            wanted = worst_of([None if one is None else float(one[element]) for one in part])
            assert wanted is not None
            assert abs(found) == abs(wanted) or (math.isnan(found) and math.isnan(wanted))


def any_of(values: Sequence[Any]) -> bool:
    return any(value is not None for value in values)


def test_bins_are_columns_of_a_history_with_gaps_where_nothing_is_known() -> None:
    recorder = HistoryRecorder(Capacity(0, 8), np.float32(-1))
    for numbers, missing in ((range(8), 4), (range(12, 15), 0)):
        for k in numbers:
            recorder.append(np.float32(k))
        if missing:
            recorder.skip(missing)
    history = recorder.view()
    assert history is not None and history.entered is not None and history.entered.tolist() == [[-1.0]]
    assert history.spans.tolist() == [[0, 2], [2, 4], [4, 6], [6, 8], [12, 14], [14, 15]]
    assert history.numbers[0, :, 0].tolist() == [1.0, 3.0, 5.0, 7.0, 13.0, 14.0]
    assert history.over(8, 12) is None and history.over(3, 5) is not None


def test_values_that_change_their_size_are_the_three_numbers_of_all_elements() -> None:
    recorder = HistoryRecorder(Capacity(0, 16))
    for value in ([3.0, -4.0], [3.0, -4.0, 0.0]):
        recorder.append(np.array(value))
    history = recorder.view()
    assert history is not None and history.numbers[:, :, 0].tolist() == [
        [-4.0, -4.0],
        pytest.approx([-0.5, -1 / 3]),
        pytest.approx([math.sqrt(12.5), math.sqrt(25 / 3)]),
    ]


def swept(debugger: Debugger, span: tuple[int, int]) -> tuple[TrackView, ...]:
    sweeps = Sweeps(debugger)
    depth = len(debugger.machine.stack) - 1
    while sweeps.fill(depth, span, lambda: False):
        pass
    return sweeps.view(depth, span).tracks


def test_column_k_is_what_iteration_k_made_and_what_entered_stands_before() -> None:
    debugger = swinging(40)
    debugger.run_to("swing@0")
    debugger.run_to("swing@30")
    track = next(one for one in swept(debugger, (0, 40)) if one.name == "h")
    values = swinging_in_numpy(41)  # as they enter each iteration
    assert track.values is not None and track.values.entered is not None
    assert track.values.entered[0, 0] == values[0]
    made = track.values.numbers[0, :, 0]
    np.testing.assert_allclose(made[:30], values[1:31], rtol=1e-6)
    found = track.values.over(7, 8)
    assert found is not None and found[0] == pytest.approx(float(values[8]), rel=1e-6)
