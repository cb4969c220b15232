"""Bins over iterations: whatever the order of numbers, a bin is NaN before Inf before the largest magnitude."""

from __future__ import annotations

import math
import random

import numpy as np
import pytest

from stepper.debug.iterations.sweep import Bins, TrackView


def worst_of(numbers: list[float | None]) -> float | None:
    """By the definition."""
    given = [number for number in numbers if number is not None]
    if any(math.isnan(number) for number in given):
        return math.nan
    return max(given, key=abs, default=None)


@pytest.mark.parametrize("seed", range(20))
def test_bins_keep_the_worst_of_their_iterations(seed: int) -> None:
    rng = random.Random(seed)
    odd = [math.nan, math.inf, -math.inf, None, None]
    numbers = [rng.choice(odd) if rng.random() < 0.1 else rng.uniform(-9, 9) for _ in range(rng.randrange(1, 400))]
    bins, rest = Bins(most=16), list(numbers)
    while rest:
        size = rng.randrange(1, 50)
        bins.extend(rest[:size])
        del rest[:size]
    assert bins.reached == len(numbers) and len(bins.numbers) <= 16
    for place, (found, count) in enumerate(zip(bins.numbers, bins.counts, strict=True)):
        part = numbers[place * bins.step : (place + 1) * bins.step]
        assert count == sum(number is not None for number in part)
        wanted = worst_of(part)
        if wanted is not None:
            assert abs(found) == abs(wanted) or (math.isnan(found) and math.isnan(wanted))


def test_a_stretch_is_spread_over_cells_finer_and_coarser_than_bins() -> None:
    bins = Bins(most=8)
    bins.extend([float(k) for k in range(16)])
    track = TrackView("carried", "h", None, 0, bins, None)
    coarse, counts = track.spread_over(0, 32, 4)
    assert coarse.tolist() == [7.0, 15.0, 0.0, 0.0] and counts.tolist() == [8, 8, 0, 0]
    fine, counts = track.spread_over(4, 8, 4)
    assert fine.tolist() == [5.0, 5.0, 7.0, 7.0] and np.all(counts == 2)
