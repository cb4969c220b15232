"""Every kernel computes what OpenVINO computed for the project's own recorded cases."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from stepper.element_types import is_floating
from stepper.operation_types import definition
from stepper.ops import registry
from tests.ops.recording import RECORDED, Case, cases, families
from tests.tables import each_row

ALL = [pytest.param(family, case, id=f"{family}-{case.name}") for family in families() for case in cases(family)]


@functools.cache
def recorded(family: str) -> dict[str, np.ndarray]:
    with np.load(RECORDED / f"{family}.npz", allow_pickle=False) as arrays:
        return dict(arrays)


@each_row(("family", "case"), ALL)
def test_kernel_computes_what_the_runtime_computed(family: str, case: Case) -> None:
    version = definition(case.type, case.version)
    assert version is not None
    kernel = registry.find(case.type, version)
    assert kernel is not None, f"no kernel for {case.type}-{version}"
    with np.errstate(all="ignore"):
        results = kernel.bind(case.attributes)(*case.inputs)
        check(family, case, results if kernel.several_outputs else (results,))
        if len(case.inputs) > 1 and (settled := kernel.settle(case.attributes, case.inputs[1:])) is not None:
            found = settled(case.inputs[0])
            check(family, case, found if kernel.several_outputs else (found,))


def check(family: str, case: Case, outputs: Sequence[Any]) -> None:
    for index in range(case.outputs):
        actual, expected = np.asarray(outputs[index]), recorded(family)[f"{case.name}/{index}"]
        assert actual.shape == expected.shape, f"output {index}"
        if is_floating(actual.dtype):
            close = {"rtol": case.rtol, "atol": case.atol}
            np.testing.assert_allclose(actual.astype(np.float64), expected.astype(np.float64), **close)
        else:
            np.testing.assert_array_equal(actual, expected)
            assert actual.dtype == expected.dtype
