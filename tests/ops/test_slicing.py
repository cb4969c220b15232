"""Slices against Python's own, and bounds, masks and steps that do not fit."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from stepper.errors import KernelError
from tests.ops.bound import i64, kernel
from tests.tables import each_row

DATA = np.arange(60).reshape(5, 4, 3)
BOUNDS = (-(2**63), -6, -5, -1, 0, 2, 5, 9, 2**63 - 1)


@each_row("step", [-(2**63), -2, -1, 1, 3, 2**63 - 1])
def test_bounds_are_clamped_as_in_python(step: int) -> None:
    numbers = list(range(5))
    for start in BOUNDS:
        for stop in BOUNDS:
            expected = numbers[start:stop:step]
            arguments = [np.array(numbers), i64(start), i64(stop), i64(step)]
            assert kernel("Slice", 8)(*arguments).tolist() == expected
            assert kernel("StridedSlice", 1)(*arguments).tolist() == expected
            updated = kernel("SliceScatter", 15)(arguments[0], -1 - i64(*expected), *arguments[1:])
            assert updated.tolist() == [-1 - number if number in expected else number for number in numbers]


def test_slice_of_no_axis_is_everything() -> None:
    np.testing.assert_array_equal(kernel("Slice", 8)(DATA, i64(), i64(), i64(), i64()), DATA)


def test_strided_slice_reads_like_an_index_expression() -> None:
    masks = {
        "ellipsis_mask": "0,1,0,0",
        "new_axis_mask": "1,1,0,0",
        "shrink_axis_mask": "1,0,1,0",
        "begin_mask": "0,0,0,1",
    }
    result = kernel("StridedSlice", 1, **masks)(DATA, i64(0, 0, -1, 2), i64(1, 1, 0, 2))
    np.testing.assert_array_equal(result, DATA[None, ..., -1, :2])


@each_row(
    ("type", "version", "attributes", "inputs"),
    [
        ("Slice", 8, {}, [DATA, i64(0), i64(1), i64(0)]),
        ("Slice", 8, {}, [DATA, i64(0), i64(1), i64(1), i64(3)]),
        ("Slice", 8, {}, [DATA, i64(0, 0), i64(1), i64(1, 1)]),
        ("Slice", 8, {}, [DATA, i64(0, 0), i64(1, 1), i64(1, 1), i64(0, -3)]),
        ("Slice", 8, {}, [DATA, *[i64(1, 1, 1, 1)] * 3]),
        ("Slice", 8, {}, [DATA, np.array(0), np.array(1), np.array(1)]),
        ("SliceScatter", 15, {}, [DATA, DATA[:1], i64(0), i64(2), i64(1)]),
        ("StridedSlice", 1, {}, [DATA, i64(0), i64(1), i64(0)]),
        ("StridedSlice", 1, {}, [DATA, i64(0), i64(1, 1)]),
        ("StridedSlice", 1, {}, [DATA, *[i64(1, 1, 1, 1)] * 2]),
        ("StridedSlice", 1, {"shrink_axis_mask": "1"}, [DATA, i64(5), i64(6)]),
        ("StridedSlice", 1, {"ellipsis_mask": "1,1"}, [DATA, i64(0, 0), i64(1, 1)]),
        ("StridedSlice", 1, {"begin_mask": "1,1", "end_mask": "1"}, [DATA, i64(0, 0), i64(1, 1)]),
    ],
)
def test_slices_that_do_not_fit_are_refused(
    type: str, version: int, attributes: dict[str, str], inputs: list[Any]
) -> None:
    with pytest.raises(KernelError):
        kernel(type, version, **attributes)(*inputs)
