"""Element types as declared, or as OpenVINO's plugin computes them; the values are OpenVINO's where it departs."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from ml_dtypes import bfloat16

from stepper.element_types import of_dtype
from stepper.engine.rules import note_lines
from tests.engine.conftest import Run
from tests.models import Graph, Value


def binary(operation: str, type: str, **attributes: object) -> Graph:
    net = Graph()
    net.result(net.apply(operation, net.parameter("a", type, (-1,)), net.parameter("b", type, (-1,)), **attributes))
    return net


@pytest.mark.parametrize(
    ("operation", "dtype", "a", "b", "spec", "openvino"),
    [
        ("Add", np.uint8, 100, 200, 44, 255),
        ("Subtract", np.uint8, 10, 100, 166, 0),
        ("Add", np.int8, -100, -100, 56, -128),
        ("Multiply", np.int8, 100, 2, -56, 127),
        ("Divide", np.int32, -7, 2, -4, -3),
        ("Divide", np.int64, 7, -2, -4, -3),
        ("Add", np.int32, 2**31 - 1, 1, -(2**31), -(2**31)),
        ("Add", np.int16, 2**15 - 1, 1, -(2**15), -(2**15)),
        ("Add", np.int64, 2**40, 3, 2**40 + 3, 3),
        ("Multiply", np.int64, 2**20, 2**20, 2**40, 0),
        ("Add", np.float16, 2048, 1, 2048, 2048),
        ("Add", np.float64, 2.0**24, 1, 2.0**24 + 1, 2.0**24),
        ("Add", np.float32, 2.0**24, 1, 2.0**24, 2.0**24),
    ],
)
def test_integers_wrap_or_saturate_and_wide_types_keep_or_lose_bits(
    run: Run, operation: str, dtype: Any, a: float, b: float, spec: float, openvino: float
) -> None:
    net = binary(operation, of_dtype(np.dtype(dtype)).name)
    for rules, expected in (("spec", spec), ("openvino", openvino)):
        outputs = run(net, np.array([a], dtype), np.array([b], dtype), rules=rules)
        assert outputs["result"].tolist() == [expected] and outputs["result"].dtype == dtype


@pytest.mark.parametrize(
    ("operation", "dtype", "a", "b", "spec", "openvino"),
    [  # from OpenVINO 2026.4.1, CPU
        ("Divide", np.int64, 35829214, 2, 17914607, 17914608),
        ("Divide", np.int32, 5, 0, None, -(2**31)),
        ("Divide", np.int8, 117, 0, None, -128),
        ("Mod", np.int32, 2**24 + 1, 2, 1, 0),
        ("FloorMod", np.int32, 2**24 + 1, 2, 1, 0),
        ("FloorMod", np.int32, -7, 2, 1, 1),
        ("Mod", np.int32, -7, 2, -1, -1),
        ("Power", np.int32, 3, 30, None, -(2**31)),
        ("Power", np.uint8, 54, 2, None, 255),
        ("Power", np.int16, 200, 3, None, 4608),
        ("Less", np.int64, 2**24, 2**24 + 1, True, False),
        ("Equal", np.int32, 2**24, 2**24 + 1, False, True),
        ("GreaterEqual", np.int32, 16777217, 16777218, False, False),
        ("GreaterEqual", np.uint32, 16777216, 16777217, False, True),
        ("Maximum", np.int32, 2**24, 2**24 + 1, 2**24 + 1, 2**24 + 1),
    ],
)
def test_integers_are_divided_compared_and_raised_in_f32_by_openvino(
    run: Run, operation: str, dtype: Any, a: int, b: int, spec: int | None, openvino: int
) -> None:
    net = binary(operation, of_dtype(np.dtype(dtype)).name)
    for rules, expected in (("spec", spec), ("openvino", openvino)):
        if expected is not None:
            outputs = run(net, np.array([a], dtype), np.array([b], dtype), rules=rules)
            assert outputs["result"].tolist() == [expected], rules


def test_a_relu_and_an_extremum_of_integers_are_taken_in_f32_by_openvino(run: Run) -> None:
    net = Graph()
    x = net.parameter("x", "i32", (2,))
    net.result(net.apply("Relu", x), "relu")
    net.result(net.apply("ReduceMax", x, net.constant([0]), dims=(1,), keep_dims="true"), "most")
    value = np.array([1505919582, -5], np.int32)
    spec, openvino = run(net, value), run(net, value, rules="openvino")
    assert (spec["relu"].tolist(), spec["most"].tolist()) == ([1505919582, 0], [1505919582])
    assert (openvino["relu"].tolist(), openvino["most"].tolist()) == ([1505919616, 0], [1505919616])


def test_division_that_is_not_pythons_truncates_in_both_books(run: Run) -> None:
    net = binary("Divide", "i32", m_pythondiv="false")
    for rules in ("spec", "openvino"):
        outputs = run(net, np.array([-7, 7], np.int32), np.array([2, -2], np.int32), rules=rules)
        assert outputs["result"].tolist() == [-3, -3] and not outputs.notes


@pytest.mark.parametrize("dtype", [np.float16, bfloat16])
def test_half_precision_is_rounded_after_each_operation_or_at_the_boundary(run: Run, dtype: Any) -> None:
    net = Graph()
    type = of_dtype(np.dtype(dtype)).name
    x, big = net.parameter("x", type, (1,)), net.parameter("big", type, (1,))
    net.result(net.apply("Subtract", net.apply("Add", x, big), big))
    values = np.array([0.25], dtype), np.array([2048], dtype)
    spec, openvino = run(net, *values), run(net, *values, rules="openvino")
    assert (spec["result"].tolist(), openvino["result"].tolist()) == ([0], [0.25])
    assert spec["result"].dtype == openvino["result"].dtype == dtype
    for outputs in (spec, openvino):
        assert len(outputs.notes) == 2
        assert all(f"computed in {type}; OpenVINO computes in f32" in note.text for note in outputs.notes)


@pytest.mark.parametrize(
    ("net", "part"),
    [
        (binary("Add", "u8"), "what 8 bits do not hold wraps; in OpenVINO it saturates"),
        (binary("Divide", "i32"), "a negative quotient of integers is rounded down; OpenVINO rounds it towards zero"),
        (binary("Add", "f64"), "computed in f64; OpenVINO computes in f32"),
    ],
)
def test_a_run_under_either_book_names_the_operation_that_differs_once(run: Run, net: Graph, part: str) -> None:
    type = {"w": np.uint8, "a": np.int32, "c": np.float64}[part[0]]
    for rules in ("spec", "openvino"):
        (note,) = run(net, np.ones(1, type), np.ones(1, type), rules=rules).notes
        assert note.place.startswith("layer 2 '") and part in note.text


def test_notes_of_one_kind_are_a_line_with_a_count(run: Run) -> None:
    net = Graph()
    x = net.parameter("x", "f16", (2,))
    for _ in range(3):
        x = net.apply("Sin", x)
    net.result(net.apply("ReduceMax", x, net.constant(np.array([0])), dims=()))
    (line,) = note_lines(run(net, np.ones(2, np.float16)).notes)
    assert line.startswith("layer 1 '") and "' (Sin) and 2 more: computed in f16; OpenVINO" in line


def test_moving_half_precision_about_needs_no_note(run: Run) -> None:
    net = Graph()
    x = net.parameter("x", "f16", (2,))
    net.result(net.apply("Concat", x, x, dims=(4,), axis=0))
    for rules in ("spec", "openvino"):
        outputs = run(net, np.array([1, 2], np.float16), rules=rules)
        assert outputs["result"].tolist() == [1, 2, 1, 2] and not outputs.notes


@pytest.mark.parametrize("value", [2**31, -(2**31) - 1, 2**40 + 3])
def test_integers_that_openvino_cannot_hold_are_noted_under_both_books(run: Run, value: int) -> None:
    net = Graph()
    net.result(net.apply("Abs", net.parameter("x", "i64", (1,))), "magnitude")
    spec = run(net, np.array([value]))
    assert spec["magnitude"].tolist() == [abs(value)]
    openvino = run(net, np.array([value]), rules="openvino")
    wrapped = (value + 2**31) % 2**32 - 2**31
    assert openvino["magnitude"].dtype == np.int64 and abs(int(openvino["magnitude"][0])) == abs(wrapped)
    for outputs in (spec, openvino):
        (note,) = outputs.notes
        assert "has values that i32 does not hold, in which OpenVINO computes i64" in note.text


def test_wide_constants_saturate_in_openvino(run: Run) -> None:
    net = Graph()
    x = net.parameter("x", "i64", (2,))
    net.result(net.apply("Add", x, net.constant([2**40, -(2**40)])))
    assert run(net, np.zeros(2, np.int64), rules="openvino")["result"].tolist() == [2**31 - 1, -(2**31)]


def converted(value: Value, type: str, net: Graph) -> Graph:
    net.result(net.apply("Convert", value, type=type, destination_type=type))
    return net


def test_nan_is_true_or_false_as_a_boolean(run: Run) -> None:
    net = Graph()
    converted(net.parameter("x", "f32", (3,)), "boolean", net)
    x = np.array([0.3, 0, np.nan], np.float32)
    assert run(net, x)["result"].tolist() == [True, False, True]
    assert run(net, x, rules="openvino")["result"].tolist() == [True, False, False]
