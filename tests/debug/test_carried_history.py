"""A carried value that explodes, and one that only counts, are told from others by their numbers."""

from __future__ import annotations

import math

import numpy as np
import pytest

from stepper.debug.iterations.cell_store import RowValues
from stepper.debug.overview.facts import Row, RowKind
from stepper.ir.model import layer_site
from stepper.tensors.known_values import KnownValues
from stepper.tensors.surveys import largest_of
from tests.debug.debugged import sample


def history(*numbers: float) -> RowValues:
    known = KnownValues()
    for iteration, value in enumerate(numbers):
        known.see(iteration, np.float64(value))
    parameter = layer_site(sample("for_loop").model.graph.parameters[0], "")
    return RowValues(Row(RowKind.BACK_EDGE, parameter), known.view())


@pytest.mark.parametrize(
    ("numbers", "explodes"),
    [
        ([4.0**k for k in range(6)], True),
        ([-(4.0**k) for k in range(6)], True),
        ([1.01**k for k in range(6)], False),
        ([1, 4, 16, 8, 64, 256], False),
        ([4.0**k for k in range(5)], False),
        ([1, 10, 100, math.nan, 1000, math.inf], False),
    ],
)
def test_a_value_explodes_that_grows_each_time_and_many_times(numbers: list[float], explodes: bool) -> None:
    assert history(*numbers).explodes == explodes


@pytest.mark.parametrize(
    ("numbers", "counts"), [([0, 1, 2], True), ([3, 5, 9], True), ([0, 1, 1], False), ([0.5, 1.5], False), ([7], False)]
)
def test_a_counter_rises_in_whole_steps(numbers: list[float], counts: bool) -> None:
    assert history(*numbers).is_counter == counts


@pytest.mark.parametrize(("part", "stands"), [([1, -3, 2], -3), ([1, math.inf], math.inf), ([-math.inf, 1], -math.inf)])
def test_the_largest_magnitude_stands_for_several_elements(part: list[float], stands: float) -> None:
    assert largest_of(np.array(part, np.float64)) == stands
    assert math.isnan(largest_of(np.array([*part, math.nan])))
