"""Inputs that OpenVINO gets without a copy: they stay as they were, and later calls have other ones."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("openvino")

from stepper.element_types import Array
from stepper.openvino import native_text
from stepper.openvino.layers import CompiledText, JudgedText
from stepper.openvino.runtime import Judgement, Runtime
from stepper.tensors.tolerances import Tolerance
from tests.models import Graph

SIZE = 600_000
"""Elements: each input is large."""


def several(folder: Path, rows: int) -> Any:
    """Operations that a runtime may compute in the memory of their input, and others; each has outputs of its own."""
    graph = Graph()
    x, y = (graph.parameter(name, "f32", (rows, SIZE // 2)) for name in "xy")
    flag = graph.parameter("flag", "boolean", (3,))
    graph.result(graph.apply("Relu", x, name="relu"), "relu")
    graph.result(graph.apply("Add", x, y, name="sum"), "sum")
    shape = graph.constant([-1], np.int64)
    graph.result(graph.apply("Reshape", y, shape, dims=(-1,), special_zero="false", name="flat"), "flat")
    graph.result(graph.apply("Concat", x, y, dims=(-1, SIZE // 2), axis="0", name="joined"), "joined")
    graph.result(graph.apply("LogicalNot", flag, type="boolean", name="no"), "no")
    return graph.read(folder)


def expected(x: Array, y: Array, flag: Array) -> list[Array]:
    return [np.maximum(x, 0), x + y, y.reshape(-1), np.concatenate([x, y]), ~flag]


def inputs(seed: int, rows: int = 2) -> list[Array]:
    random = np.random.default_rng(seed)
    # an odd number of bytes before them: they lie anywhere
    memory = np.empty(2 * rows * SIZE * 2 + 64, np.uint8)[4:]
    x, y = (part.view(np.float32).reshape(rows, SIZE // 2) for part in np.split(memory[: 2 * rows * SIZE * 2], 2))
    x[...], y[...] = random.normal(0, 1, x.shape), random.normal(0, 1, y.shape)
    return [x, y, np.array([True, False, True])]


@pytest.mark.parametrize("declared", [2, -1])
def test_later_calls_have_inputs_of_their_own_whatever_their_sizes(declared: int, tmp_path: Path) -> None:
    text = native_text.whole(several(tmp_path, declared))
    function = CompiledText(Runtime(), text)
    lent = inputs(0)
    copies = [array.copy() for array in lent]
    for number, given in enumerate([lent, inputs(1), inputs(2, 2 if declared == 2 else 3), inputs(3), lent]):
        found = [np.array(view) for view in function.views(*given, lends=True)]
        for one, other in zip(found, expected(*given), strict=True):
            np.testing.assert_array_equal(one, other, str(number))
    for array, copy in zip(lent, copies, strict=True):
        np.testing.assert_array_equal(array, copy)


def test_what_is_judged_is_judged_by_inputs_that_were_lent(tmp_path: Path) -> None:
    text = native_text.whole(several(tmp_path, 2))
    tolerances = [Judgement(place, Tolerance(1e-6, 1e-6)) for place in range(3, 8)]
    function = JudgedText(CompiledText(Runtime(), text), tolerances, 3, lends=True)
    for seed in range(3):
        given = inputs(seed)
        ours = expected(*given)
        ours[seed] = ours[seed] + 1
        agrees, *others = function(*given, *ours)
        assert agrees.tolist() == [place != seed for place in range(5)]
        np.testing.assert_array_equal(others[0], expected(*given)[seed])
