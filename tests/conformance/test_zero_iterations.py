"""Loops of no iteration under the rules of the CPU plugin, beside the plugin itself."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("openvino")

import stepper
from tests.conformance.runtime import infer
from tests.models import Graph, Value, carried, last

STATE = np.array([[7, 8]], np.float32)


@pytest.mark.parametrize("count", [0, 5, "n"])
@pytest.mark.parametrize("condition", [False, True, "go"])
def test_the_last_value_has_the_runtimes_shape(count: int | str, condition: bool | str, tmp_path: Path) -> None:
    net = Graph()
    x, body = net.parameter("x", dims=(1, 2)), net.body()
    state = body.parameter("state", dims=(1, 2))
    result = body.result(body.apply("Negative", state))
    inputs: list[np.ndarray] = [STATE]
    trips: int | Value = count if isinstance(count, int) else net.parameter(count, "i64", ())
    inputs += [] if isinstance(count, int) else [np.array(0)]
    starts: bool | Value = condition if isinstance(condition, bool) else net.parameter(condition, "boolean", ())
    inputs += [] if isinstance(condition, bool) else [np.array(False)]
    net.result(net.loop("never", body, trips, starts, [carried(x, state, result)], [last(result)])[0])
    path = net.write(tmp_path)
    (theirs,) = infer(path, inputs)
    (ours,) = stepper.run(stepper.read_model(path), dict(enumerate(inputs)), rules="openvino").values()
    assert ours.shape == theirs.shape == ((0, 2) if condition is False else (1, 2))
    np.testing.assert_array_equal(ours, theirs)
