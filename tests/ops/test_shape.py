"""Operations on shapes where the runtime deviates from the specification or refuses, and their errors."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from stepper.errors import KernelError, TensorTooLarge
from tests.ops.bound import i64, kernel
from tests.tables import each_row

HUGE = 2**62


def range_of(start: Any, stop: Any, step: Any, output_type: str) -> list[Any]:
    return kernel("Range", 4, output_type=output_type)(*map(np.asarray, (start, stop, step))).tolist()


@each_row("output_type", ["i32", "f32", "f16", "bf16"])
def test_range_away_from_stop_is_empty(output_type: str) -> None:
    assert range_of(0, 5, -1, output_type) == range_of(5, 0, 1, output_type) == []


def test_range_converts_its_inputs_first() -> None:
    assert range_of(0.5, 5.7, 1.2, "i32") == [0, 1, 2, 3, 4]
    assert range_of(-0.5, 2.5, 1.0, "i64") == [0, 1]
    assert range_of(1.5, 0.1, -0.4, "i64") == []


def test_range_is_exact_in_64_bits() -> None:
    assert range_of(HUGE + 1, HUGE + 8, 3, "i64") == [HUGE + 1, HUGE + 4, HUGE + 7]


@each_row(("start", "stop", "step"), [(0.0, np.inf, 1.0), (np.nan, 1.0, 1.0), (0.0, 1e308, 1e-300)])
def test_range_without_a_number_of_elements_is_refused(start: float, stop: float, step: float) -> None:
    with pytest.raises(KernelError, match="no number of elements"):
        range_of(start, stop, step, "f64")


def test_scalars_keep_their_rank() -> None:
    scalar = np.float32(3)
    assert kernel("Squeeze", 1)(scalar).shape == ()
    assert kernel("Transpose", 1)(scalar, i64()).shape == ()
    assert kernel("Reshape", 1)(scalar, i64(1, 1)).shape == (1, 1)
    assert kernel("Unsqueeze", 1)(scalar, np.array(0)).shape == (1,)
    assert kernel("ShapeOf", 3, output_type="i32")(scalar).shape == (0,)


def test_unsqueeze_counts_an_axis_given_twice_once() -> None:
    assert kernel("Unsqueeze", 1)(np.ones(5), i64(0, 0)).shape == (1, 5)


@each_row("special_zero", ["true", "false"])
@each_row(
    ("shape", "pattern"),
    [((2, 3), (4, -1)), ((2, 3), (-1, -1)), ((2, 3), (-2, 3)), ((2, 3), (2, 3, 0)), ((0,), (HUGE, HUGE)), ((6,), (7,))],
)
def test_reshape_refuses_a_pattern_that_does_not_fit(
    shape: tuple[int, ...], pattern: tuple[int, ...], special_zero: str
) -> None:
    with pytest.raises(KernelError, match="cannot take the shape"):
        kernel("Reshape", 1, special_zero=special_zero)(np.ones(shape), i64(*pattern))


@each_row(
    ("type", "version", "inputs"),
    [
        ("Transpose", 1, [np.ones((2, 3)), i64(0, 0)]),
        ("Transpose", 1, [np.ones((2, 3)), i64(-1, 0)]),
        ("Squeeze", 1, [np.ones((2, 1)), i64(2)]),
        ("Unsqueeze", 1, [np.ones((2, 1)), i64(3)]),
        ("Unsqueeze", 1, [np.ones((2, 1)), np.arange(100)]),
    ],
)
def test_axes_that_do_not_fit_are_refused(type: str, version: int, inputs: list[Any]) -> None:
    with pytest.raises(KernelError):
        kernel(type, version)(*inputs)


def test_tensors_out_of_all_proportion_are_refused() -> None:
    with pytest.raises(TensorTooLarge):
        range_of(0, HUGE, 1, "i64")
    eye = kernel("Eye", 9, output_type="f32")
    for rows, columns, batch in ((HUGE, HUGE, i64()), (1, 1, i64(HUGE)), (0, HUGE, i64())):
        with pytest.raises(TensorTooLarge):
            eye(np.array(rows), np.array(columns), np.array(0), batch)
    with pytest.raises(KernelError):
        eye(np.array(-1), np.array(3), np.array(0))
    assert not eye(np.array(2), np.array(3), np.array(-HUGE)).any()
