"""Loops and branches inside of each other."""

from __future__ import annotations

import numpy as np
import pytest

from tests.engine.conftest import Run
from tests.engine.nested_models import alternating, loop_in_branch, multiplication_table, rows_of_rows

BOTH = pytest.mark.parametrize("rules", ["spec", "openvino"])


@BOTH
@pytest.mark.parametrize(("rows", "columns"), [(1, 1), (3, 4), (4, 1)])
def test_a_loop_in_a_loop_fills_a_multiplication_table(run: Run, rules: str, rows: int, columns: int) -> None:
    outputs = run(multiplication_table(), np.int64(rows), np.int64(columns), rules=rules)
    assert outputs["table"].tolist() == [[a * b for b in range(columns)] for a in range(rows)]
    inner, outer = outputs.loops
    assert (outer.path, outer.executions, outer.iterations) == ("model > Loop 'rows'", 1, rows)
    assert (inner.path, inner.executions, inner.iterations) == (
        "model > Loop 'rows' > Loop 'columns'",
        rows,
        rows * columns,
    )
    assert (inner.fewest, inner.most) == (columns, columns)


def test_an_inner_loop_may_run_no_iteration(run: Run) -> None:
    assert run(multiplication_table(), np.int64(3), np.int64(0))["table"].shape == (3, 0)


def test_a_tensor_iterator_in_a_tensor_iterator_walks_rows_and_their_elements(run: Run) -> None:
    x = np.arange(12, dtype=np.float32).reshape(3, 4)
    outputs = run(rows_of_rows(), x)
    np.testing.assert_array_equal(outputs["sums"], np.cumsum(x, axis=1))
    assert [loop.iterations for loop in outputs.loops] == [12, 3]


@BOTH
def test_an_if_in_a_loop_takes_its_side_anew_in_each_iteration(run: Run, rules: str) -> None:
    assert run(alternating(), np.int64(27), rules=rules)["numbers"].tolist() == collatz(27)


@BOTH
@pytest.mark.parametrize("many", [True, False])
def test_a_loop_in_an_if_runs_only_when_its_side_is_taken(run: Run, rules: str, many: bool) -> None:
    outputs = run(loop_in_branch(), np.bool_(many), np.float32(3), rules=rules)
    assert outputs["result"] == (3 * 2**5 if many else -3)
    assert [loop.iterations for loop in outputs.loops] == ([5] if many else [])


def collatz(number: int) -> list[int]:
    numbers = []
    while number != 1:
        number = number // 2 if number % 2 == 0 else 3 * number + 1
        numbers.append(number)
    return numbers
