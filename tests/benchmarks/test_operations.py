"""What the benchmark of operations compares does give the same numbers; how fast it is, is no matter of a test."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tests.benchmarks import operations, others
from tests.benchmarks.plain_calls import PLAIN


@pytest.mark.parametrize("shape", [operations.SMALL, operations.MEDIUM])
@pytest.mark.parametrize("plain", PLAIN, ids=lambda plain: plain.type)
def test_kernel_and_plain_call_give_the_same(plain: operations.Plain, shape: operations.Shape) -> None:
    with np.errstate(all="ignore"):
        operations.comparison(plain, shape).check()


@pytest.mark.parametrize("rows", operations.ROWS)
def test_products_of_few_rows_are_those_of_numpy(rows: int) -> None:
    operations.product_of_rows(rows).check()


@pytest.mark.skipif(not others.HAS_OPENVINO, reason="openvino is not installed")
@pytest.mark.parametrize(("data", "filters"), operations.CONVOLUTIONS[:3])
def test_convolutions_are_those_of_openvino(tmp_path: Path, data: tuple[int, ...], filters: tuple[int, ...]) -> None:
    operations.convolution(tmp_path, data, filters).check()
