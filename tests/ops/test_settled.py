"""Kernels with constant inputs give and refuse, for every first input, what the kernel itself does."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from stepper.element_types import Array
from stepper.errors import KernelError
from stepper.ops import registry
from tests.ops.bound import i64
from tests.tables import each_row

SHAPES = ((), (1,), (6,), (0,), (2, 3), (1, 6), (0, 4), (2, 3, 4), (1, 3, 1), (3, 1, 0))
DATA = [np.arange(np.prod(shape, dtype=int)).reshape(shape) for shape in SHAPES]
DATA += [np.float32(3), DATA[7].T, DATA[7][:, ::-2], DATA[7][:1]]
HUGE = 2**63 - 1

Constants = Sequence[Any]


def lists(*numbers: int, longest: int) -> Iterator[np.ndarray]:
    """All lists of these numbers, and one of rank 0."""
    for length in range(longest + 1):
        yield from (i64(*values) for values in itertools.product(numbers, repeat=length))
    yield np.array(numbers[0])


def slices() -> Iterator[Constants]:
    for axes in lists(0, 1, -1, -2, longest=2):
        count = np.full(axes.shape, 1)
        for start, stop, step in ((0, 2, 1), (-1, -HUGE, -2), (1, HUGE, 3), (0, 1, 0)):
            yield start * count, stop * count, step * count, axes
    yield i64(0, 1), i64(1, 2), i64(1, 1)
    yield i64(0, 1), i64(1, 2), i64(1), i64(0, 1)
    yield i64(0), i64(1), i64(1), i64(HUGE)
    yield i64(0), i64(1), i64(1), np.array([0.0])


def ranges() -> Iterator[Constants]:
    for length in range(4):
        for begin, end in ((0, 1), (-1, HUGE), (1, -1)):
            bounds = i64(*[begin] * length), i64(*[end] * length)
            yield bounds
            yield from ((*bounds, i64(*[step] * length)) for step in (1, -1, 2, 0))
    yield i64(0), i64(1, 1), i64(1)


MASKS = [dict(zip(("begin_mask", "end_mask"), pair, strict=True)) for pair in (("0", "1"), ("1,1", "0,1"))]
MASKS += [{name: mask} for name in ("new_axis_mask", "ellipsis_mask", "shrink_axis_mask") for mask in ("1", "0,1")]
MATRICES = (DATA[4], DATA[4].T, DATA[7], DATA[4].astype(np.float32), DATA[4].astype(np.float16), np.arange(3))
KEEP = {"special_zero": "true"}
CASES: list[tuple[str, int, dict[str, str], Iterator[Constants]]] = [
    ("Reshape", 1, {}, ((pattern,) for pattern in lists(-1, 0, 1, 2, 6, -2, HUGE, longest=3))),
    ("Reshape", 1, KEEP, ((pattern,) for pattern in lists(-1, 0, 3, longest=3))),
    ("Squeeze", 1, {}, ((axes,) for axes in lists(0, 1, -1, 5, HUGE, longest=2))),
    ("Squeeze", 15, {"allow_axis_skip": "true"}, ((axes,) for axes in lists(0, 2, -1, longest=2))),
    ("Unsqueeze", 1, {}, ((axes,) for axes in lists(0, 1, 2, -1, 5, HUGE, longest=2))),
    ("Unsqueeze", 1, {}, ((axes,) for axes in (i64(0, 0), i64(0, -1, 1), np.array([[0, 1]])))),
    ("Transpose", 1, {}, ((order,) for order in lists(0, 1, 2, -1, HUGE, longest=3))),
    ("Transpose", 1, {}, ((order,) for order in (np.array([0.0]), np.array([[0]]), np.array([1, 0], np.uint64)))),
    ("Slice", 8, {}, slices()),
    ("Split", 1, {"num_splits": "2"}, ((axis,) for axis in lists(0, 1, -1, -2, 5, longest=1))),
    ("VariadicSplit", 1, {}, itertools.product(lists(0, -1, longest=1), lists(1, 2, -1, longest=2))),
    ("MatMul", 1, {}, ((matrix,) for matrix in MATRICES)),
    ("MatMul", 1, {"transpose_b": "true"}, ((matrix,) for matrix in MATRICES)),
    *(("StridedSlice", 1, masks, ranges()) for masks in ({}, *MASKS)),
]


def outcome(function: Callable[..., Any], *inputs: Any) -> Any:
    """All that is to be known of the output, or the message."""
    try:
        found = function(*inputs)
    except KernelError as error:
        return str(error)
    outputs = [np.asarray(output) for output in (found if isinstance(found, tuple) else (found,))]
    return [
        (each.dtype, each.shape, _steps(each), each.tolist(), np.shares_memory(each, inputs[0])) for each in outputs
    ]


def _steps(array: Array) -> list[int]:
    """The strides along axes on which a step can be made."""
    return [stride for dim, stride in zip(array.shape, array.strides, strict=True) if dim > 1 and array.size]


@each_row(("type", "version", "attributes", "constants"), CASES)
def test_a_settled_kernel_does_what_the_kernel_does(
    type: str, version: int, attributes: dict[str, str], constants: Iterator[Constants]
) -> None:
    kernel = registry.find(type, version)
    assert kernel is not None
    settled_some = False
    for values in constants:
        settled = kernel.settle(attributes, values)
        if settled is not None:
            settled_some = True
            for data in (*DATA, *DATA[:2]):
                expected = outcome(kernel.bind(attributes), data, *values)
                assert outcome(settled, data) == expected, f"{values} of {data!r}"
    assert settled_some
