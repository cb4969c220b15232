"""Fake quantisation where the runtime departs from the specification."""

from __future__ import annotations

import numpy as np
import pytest

from stepper.errors import KernelError
from stepper.ops.convert import fake_quantize

X = np.array([-3.0, 0.0, 1.0, 3.0], np.float32)


def ranges(*bounds: float) -> list[np.ndarray]:
    return [np.array(bound, np.float32) for bound in bounds]


def test_an_empty_input_range_tells_two_sides_apart() -> None:
    with np.errstate(all="ignore"):
        assert fake_quantize(X, *ranges(0, 0, -1, 1), levels=2).tolist() == [-1, -1, 1, 1]


def test_a_crossed_input_range_is_still_a_range() -> None:
    assert fake_quantize(X, *ranges(2, -2, 5, 9), levels=5).tolist() == [5, 7, 6, 9]


def test_half_a_step_goes_to_the_even_level() -> None:
    x = np.array([0.5, 1.5, 2.5, 3.5], np.float32)
    assert fake_quantize(x, *ranges(0, 4, 0, 4), levels=5).tolist() == [0, 2, 2, 4]


def test_fewer_than_two_levels_are_refused() -> None:
    with pytest.raises(KernelError, match="1 levels"):
        fake_quantize(X, *ranges(0, 1, 0, 1), levels=1)
