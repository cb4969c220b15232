"""Bins over iterations: whatever the order of values, a bin is NaN before Inf before the largest magnitude."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from stepper.debug.debugger import Debugger
from stepper.debug.iterations.sweep import Bins, Sweeps, TrackView
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
    bins, rest = Bins(most=16 * elements), list(values)
    while rest:
        size = rng.randrange(1, 50)
        bins.extend(rest[:size])
        del rest[:size]
    assert bins.reached == len(values) and bins.numbers.shape[1] <= 16 * elements
    for place, count in enumerate(bins.counts.tolist()):
        part = values[place * bins.step : (place + 1) * bins.step]
        assert count == sum(one is not None for one in part)
        for element in range(elements if count else 0):
            found = bins.numbers[0, place, element]
            wanted = worst_of([None if one is None else float(one[element]) for one in part])
            assert wanted is not None
            assert abs(found) == abs(wanted) or (math.isnan(found) and math.isnan(wanted))


def test_bins_are_columns_of_a_history_with_gaps_where_nothing_is_known() -> None:
    bins = Bins(most=8)
    bins.extend([np.float32(k) for k in range(8)])
    bins.extend([None] * 4)
    bins.extend([np.float32(k) for k in range(12, 15)])
    history = bins.history(100, np.float32(14), np.float32(-1))
    assert history is not None and history.entered is not None and history.entered.tolist() == [[-1.0]]
    assert history.spans.tolist() == [[100, 102], [102, 104], [104, 106], [106, 108], [112, 114], [114, 115]]
    assert history.numbers[0, :, 0].tolist() == [1.0, 3.0, 5.0, 7.0, 13.0, 14.0]
    assert history.over(108, 112) is None and history.over(103, 105) is not None


def test_values_that_change_their_size_are_the_three_numbers_of_all_elements() -> None:
    bins = Bins()
    bins.extend([np.array([3.0, -4.0]), np.array([3.0, -4.0, 0.0])])
    assert bins.numbers[:, :, 0].tolist() == [
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
    found = track.at(7)
    assert found is not None and found[0, 0] == pytest.approx(float(values[8]), rel=1e-6)
