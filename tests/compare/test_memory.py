"""What is measured of large values takes no multiple of them: in parts, with the answer of the whole."""

from __future__ import annotations

import math
import tracemalloc
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from msgspec import structs

from stepper.tensors import difference as metrics
from stepper.tensors.difference import measure
from stepper.tensors.histories import Capacity, HistoryRecorder
from stepper.tensors.tolerances import Tolerance

SIZE = 2**20
TOLERANCE = Tolerance(1e-3, 1e-5)


def peak(function: Callable[[], Any]) -> int:
    """Bytes that a call held at most, beside what was there before."""
    tracemalloc.start()
    try:
        function()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def pair(size: int) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    rng = np.random.default_rng(0)
    theirs = rng.normal(size=size).astype(np.float32)
    return (theirs + rng.normal(size=size).astype(np.float32) * 1e-4).astype(np.float32), theirs


def test_a_distance_takes_no_multiple_of_large_values() -> None:
    small, large = pair(2 * SIZE), pair(8 * SIZE)
    grown = peak(lambda: measure(*large, TOLERANCE)) - peak(lambda: measure(*small, TOLERANCE))
    assert grown < (large[0].nbytes - small[0].nbytes) // 2


@pytest.mark.parametrize("dtype", [np.float32, np.int32])
def test_a_history_holds_of_a_large_value_the_value_alone(dtype: type) -> None:
    value: np.ndarray[Any, Any] = np.ones(16 * SIZE, dtype)

    def record() -> None:
        recorder = HistoryRecorder(Capacity())
        recorder.append(value)
        recorder.settle()

    assert peak(record) < value.nbytes // 2


@pytest.mark.parametrize("special", [None, math.nan, math.inf])
def test_a_distance_in_parts_is_that_of_the_whole(monkeypatch: pytest.MonkeyPatch, special: float | None) -> None:
    ours, theirs = (value.reshape(30, 50) for value in pair(1500))
    if special is not None:
        ours[3, 4] = special
    whole = measure(ours, theirs, TOLERANCE)
    monkeypatch.setattr(metrics, "_PART", 64)
    parts = measure(ours, theirs, TOLERANCE)
    assert whole is not None and parts is not None and whole.outside
    assert parts.cosine == (None if special is not None else pytest.approx(whole.cosine, rel=1e-12))
    assert repr(structs.replace(parts, cosine=None)) == repr(structs.replace(whole, cosine=None))
