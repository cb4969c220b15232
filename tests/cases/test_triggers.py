"""Conditions under which a call is kept, held against numbers by hand."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

from stepper.cases.case import CallTrigger, Triggers
from stepper.errors import UsageError
from tests.tables import each_row

NAN, INF = np.nan, np.inf


@each_row(
    ("when", "values", "found"),
    [
        ("nan", [1, 2], None),
        ("nan", [1, INF, -INF], None),
        ("nan", [1, NAN, INF, NAN], CallTrigger("nan", 1, "y", 2, 4, (1,))),
        ("inf", [1, NAN], None),
        ("inf", [NAN, 1, -INF], CallTrigger("inf", 1, "y", 1, 3, (2,))),
        (("nan", "inf"), [INF, NAN], CallTrigger("nan", 1, "y", 1, 2, (1,))),
        (("nan", "inf"), [INF, 1], CallTrigger("inf", 1, "y", 1, 2, (0,))),
        ("nan", [], None),
        ("any", [1], CallTrigger("any")),
        ("7", [1], CallTrigger("number")),
        (8, [1], None),
        (("nan", 7), [NAN], CallTrigger("number")),
    ],
)
@each_row("type", [np.float16, np.float32, np.float64, ml_dtypes.bfloat16])
def test_a_call_is_kept_where_a_condition_holds(when: Any, values: list[float], found: Any, type: Any) -> None:
    outputs = {"count": np.array([3], np.int64), "y": np.array(values).astype(type)}
    assert Triggers(when).of_outputs(7, {}, outputs) == found


def test_whole_numbers_and_texts_have_neither_nan_nor_inf() -> None:
    outputs = {"n": np.array([2**62]), "b": np.array([True]), "t": np.array(["nan"], np.dtypes.StringDType())}
    assert Triggers(("nan", "inf")).of_outputs(1, {}, outputs) is None


def test_a_function_gets_inputs_and_outputs_by_name() -> None:
    heard = []

    def condition(inputs: Any, outputs: Any) -> bool:
        heard.append((inputs["x"], outputs["y"]))
        return bool(outputs["y"][0] > 2)

    triggers = Triggers((condition, "error"))
    assert triggers.of_outputs(1, {"x": np.array(5)}, {"y": np.array([1.0])}) is None
    assert triggers.of_outputs(2, {"x": np.array(6)}, {"y": np.array([3.0])}) == CallTrigger("condition")
    assert [x for x, _y in heard] == [5, 6]
    assert triggers.of_error(3, "no") == CallTrigger("error", message="no")


def test_an_error_is_kept_where_it_is_asked_for() -> None:
    assert Triggers("nan").of_error(1, "no") is None
    assert Triggers(("nan", 1)).of_error(1, "no") == CallTrigger("number")
    assert Triggers("any").of_error(1, "no") == CallTrigger("any")


@each_row(
    ("when", "said"),
    [
        ("nann", "a call is kept for nan, inf, error, any or its number, not for 'nann'; near is nan"),
        (0, "calls are counted from 1; there is no call 0"),
        ("0", "calls are counted from 1; there is no call 0"),
        (-3, "there is no call -3"),
        (("nan", 1.5), "when=1.5: a call is kept for nan, inf, error, any, its number, or a function"),
        ((), "a call is kept for"),
    ],
)
def test_what_is_no_condition_is_refused(when: Any, said: str) -> None:
    with pytest.raises(UsageError) as caught:
        Triggers(when)
    assert said in str(caught.value)
