"""Details of links: terms of sums with bars."""

from __future__ import annotations

import math
import tempfile
from pathlib import Path

import numpy as np
import pytest

from stepper.debug.debugger import Debugger
from stepper.debug.story.texts import number, short_number
from tests.models import Graph
from tui.screens.story.detail import detail_rows


def terms_of(*values: float) -> list[str]:
    """The detail of a sum of these, as lines."""
    net = Graph()
    given = net.parameter("given", "f32", (len(values),))
    axis = net.constant(np.array([0], np.int64), name="axis")
    net.result(net.apply("ReduceSum", given, axis, name="sum", keep_dims="true"))
    with tempfile.TemporaryDirectory() as folder:
        debugger = Debugger(net.read(Path(folder)), {0: np.float32(values)})
    debugger.run_to("sum")
    story = debugger.story("sum[0]")
    link = story.links[story.asked]
    return ["".join(text for text, _ in row).split("│")[-1] for row in detail_rows(story, link, 160, 20)]


@pytest.mark.parametrize(
    "values",
    [
        (math.inf, -math.inf, 2.0, 4.0),
        (math.nan, 1.0, 2.0),
        (math.inf, 3.0, 4.0),
        (math.nan, math.nan, math.inf),
        (0.0,) * 3,
    ],
)
def test_each_term_has_a_bar_also_where_not_all_are_finite(values: tuple[float, ...]) -> None:
    lines = terms_of(*values)
    assert "%" not in "".join(lines), "of a sum that is not finite, or 0, nothing is a share"
    bars = [next(line for line in lines if f"given[{k}]" in line) for k in range(len(values))]
    finite = max((abs(value) for value in values if math.isfinite(value)), default=0.0)
    longest = max(bar.count("━") for bar in bars)
    for value, bar in zip(values, bars, strict=True):
        assert bar.split()[1] == number(value)
        is_longest = math.isinf(value) or (finite > 0 and abs(value) == finite)
        assert bar.count("━") == (longest if is_longest else 1 if math.isnan(value) else bar.count("━"))
        assert bar.count("━") >= 1


def test_terms_without_bars_of_their_own_are_counted_and_not_taken_for_zero() -> None:
    lines = terms_of(math.inf, *map(float, range(1, 12)))
    assert any("7 others" in line and "0.0" not in line for line in lines)
    lines = terms_of(*map(float, range(1, 13)))
    assert any("7 others" in line and "28.000" in line for line in lines)  # 1 + … + 7


@pytest.mark.parametrize(
    ("value", "text"), [(math.inf, "+Inf"), (-math.inf, "-Inf"), (math.nan, "NaN"), (1.5, "1.500")]
)
def test_numbers_that_are_not_finite_have_their_names(value: float, text: str) -> None:
    assert number(value) == text
    assert short_number(value) == text.removeprefix("+").removesuffix("00")
