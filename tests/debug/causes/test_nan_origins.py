"""Where a NaN or Inf of one operation comes from: the reason in numbers, and the element that it was made of."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from stepper.debug.causes.cause import Arithmetic, Element
from stepper.debug.causes.nan_origins import NanOrigin, first_element, nan_origin
from tests.debug.debugged import opened
from tests.models import Graph, Value
from tests.tables import each_row

INF, ONE = np.array([np.inf, 1], np.float32), np.array([1, 1], np.float32)
ZERO, BIG = ONE * 0, ONE * np.float32(1e30)
LARGEST = "(the largest element is subtracted)"

CASES = [
    (
        "Softmax",
        (INF,),
        {"axis": 0},
        "opset8",
        Arithmetic.INF_MINUS_INF,
        "Inf - Inf (the largest element is subtracted)",
    ),
    ("Subtract", (INF, INF), {}, "opset1", Arithmetic.INF_MINUS_INF, "Inf - Inf"),
    ("Add", (INF, -INF), {}, "opset1", Arithmetic.INF_MINUS_INF, "Inf + (-Inf)"),
    ("Multiply", (INF, ZERO), {}, "opset1", Arithmetic.ZERO_TIMES_INF, "Inf * 0"),
    ("Divide", (INF, INF), {}, "opset1", Arithmetic.INF_BY_INF, "Inf / Inf"),
    ("Divide", (ZERO, ZERO), {}, "opset1", Arithmetic.ZERO_BY_ZERO, "0 / 0"),
    ("Divide", (-ONE, ZERO), {}, "opset1", Arithmetic.DIVISION_BY_ZERO, "-1 / 0"),
    ("Divide", (BIG, ONE / BIG), {}, "opset1", Arithmetic.OVERFLOW, "1e+30 / 1e-30 > f32 maximum 3.403e+38"),
    ("Multiply", (BIG, -BIG), {}, "opset1", Arithmetic.OVERFLOW, "1e+30 * (-1e+30) < f32 minimum -3.403e+38"),
    ("Log", (-ONE,), {}, "opset1", Arithmetic.LOG_OF_NEGATIVE, "log(-1)"),
    ("Log", (ZERO,), {}, "opset1", Arithmetic.LOG_OF_ZERO, "log(0)"),
    ("Exp", (ONE * 89,), {}, "opset1", Arithmetic.OVERFLOW, "exp(89) > f32 maximum exp(88.72)"),
    ("Sqrt", (-ONE,), {}, "opset1", Arithmetic.ROOT_OF_NEGATIVE, "sqrt(-1)"),
    ("Acos", (ONE * 2,), {}, "opset1", Arithmetic.OUT_OF_DOMAIN, "acos(2)"),
    ("Power", (-ONE, ONE / 2), {}, "opset1", Arithmetic.POWER_OF_NEGATIVE, "(-1) ^ 0.5"),
    ("Power", (ZERO, -ONE), {}, "opset1", Arithmetic.DIVISION_BY_ZERO, "0 ^ (-1)"),
    ("Mod", (ONE, ZERO), {}, "opset1", Arithmetic.DIVISION_BY_ZERO, "the remainder of 1 / 0"),
]


def asked(tmp_path: Path, net: Graph, *inputs: Any) -> tuple[Element, NanOrigin]:
    """The first element of the first operation that is NaN, or else infinite, and where it comes from."""
    debugger = opened(tmp_path, net, *inputs)
    debugger.step()
    frame = debugger.frame
    operation = frame.program.operations[0]
    value = np.asarray(frame.values[operation.outputs[0]])
    element = first_element(np.isnan(value) if np.isnan(value).any() else np.isinf(value))
    return element, nan_origin(frame, operation, 0, element, "")


@each_row(("kind", "inputs", "attributes", "version", "arithmetic", "formula"), CASES)
def test_what_a_kernel_gives_has_a_reason_in_numbers(
    kind: str,
    inputs: tuple[np.ndarray, ...],
    attributes: dict[str, object],
    version: str,
    arithmetic: Arithmetic,
    formula: str,
    tmp_path: Path,
) -> None:
    net = Graph()
    values = [net.parameter(f"x{index}", "f32", (2,)) for index in range(len(inputs))]
    net.result(net.apply(kind, *values, version=version, **attributes))
    _, origin = asked(tmp_path, net, *inputs)
    assert origin.arithmetic is arithmetic
    assert origin.formula == formula


def matmul(net: Graph, a: Value, b: Value) -> Value:
    return net.apply("MatMul", a, b, dims=(2, 2))


def test_in_a_product_of_matrices_the_row_and_column_of_the_element_matter(tmp_path: Path) -> None:
    net = Graph()
    net.result(matmul(net, net.parameter("a", dims=(2, 3)), net.parameter("b", dims=(3, 2))))
    a, b = np.ones((2, 3), np.float32), np.ones((3, 2), np.float32)
    a[1, 2], b[0, 1] = np.nan, np.inf  # [0,0] is clean, [0,1] is Inf by b[0,1], row 1 is NaN by a[1,2]
    element, origin = asked(tmp_path, net, a, b)
    assert element == (1, 0)
    assert origin.follows == 0 and origin.operands[0].element == (1, 2)
    assert origin.arithmetic is None


def test_an_overflowing_element_is_not_blamed_on_an_inf_beside_it(tmp_path: Path) -> None:
    net = Graph()
    x = net.parameter("x", "f32", (3,))
    net.result(net.apply("Multiply", x, x))
    element, origin = asked(tmp_path, net, np.array([1e30, np.inf, 1], np.float32))
    assert element == (0,) and origin.follows is None
    assert origin.arithmetic is Arithmetic.OVERFLOW


def test_movement_is_followed_by_what_it_does(tmp_path: Path) -> None:
    net = Graph()
    x = net.parameter("x", "f32", (2, 3))
    net.result(net.apply("Transpose", x, net.constant([1, 0], np.int64), dims=(3, 2)))
    x_given = np.zeros((2, 3), np.float32)
    x_given[1, 0] = np.nan
    element, origin = asked(tmp_path, net, x_given)
    assert element == (0, 1) and origin.operands[0].element == (1, 0)


def test_a_scaled_row_is_followed_through_a_broadcast(tmp_path: Path) -> None:
    net = Graph()
    net.result(net.apply("Add", net.parameter("x", "f32", (2, 3)), net.parameter("y", "f32", (1, 3))))
    element, origin = asked(tmp_path, net, np.ones((2, 3), np.float32), np.array([[0, 0, -np.inf]], np.float32))
    assert element == (0, 2)
    assert (origin.follows, origin.operands[1].element) == (1, (0, 2))
    assert origin.operands[1].value == "-Infinity" and origin.operands[0].is_finite
