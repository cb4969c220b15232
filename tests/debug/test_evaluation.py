"""One value for a program that asks: `evaluate` and `value`, held against the formula of the loop."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import stepper
from stepper.debug.inspection.views import Series
from tests.debug.debugged import at_iteration, opened, sample, state_of
from tests.models import Graph, carried, last

PRINCIPAL, RATE = np.array([100, 200, 300]), np.array([0.01, 0.02, 0.03])


def balance(iteration: int) -> np.ndarray:
    """Compound interest after so many iterations of the sample for_loop, and one more."""
    return PRINCIPAL * (1 + RATE) ** (iteration + 1)


@pytest.fixture
def debugger() -> stepper.Debugger:
    debugger = stepper.Debugger(
        Path("sample_models/for_loop/model.xml"), {"principal": PRINCIPAL.astype("f4"), "rate": RATE.astype("f4")}
    )
    at_iteration(debugger, 3)
    debugger.run_to("balance_next")
    return debugger


def test_an_expression_is_an_array_or_a_number_of_python(debugger: stepper.Debugger) -> None:
    present = state_of(debugger.timeline)
    found = debugger.evaluate("balance_next")
    assert isinstance(found, np.ndarray) and not found.flags.writeable
    iteration = debugger.evaluate("iter")
    assert type(iteration) is int and np.allclose(found, balance(iteration), rtol=1e-5)
    largest = debugger.evaluate("max(balance_next)")
    assert type(largest) is float and np.isclose(largest, balance(iteration).max(), rtol=1e-5)
    assert debugger.evaluate("max(balance_next) > 1e9") is False
    assert debugger.evaluate("shape(balance_next)") == (3,) and debugger.evaluate("dtype(balance_next)") == "f32"
    assert state_of(debugger.timeline) == present


def test_an_address_names_an_array_of_several_iterations_along_a_new_first_axis(debugger: stepper.Debugger) -> None:
    present = state_of(debugger.timeline)
    several = debugger.value("balance_next@2:5")
    assert isinstance(several, np.ndarray) and several.shape == (3, 3) and not several.flags.writeable
    assert np.allclose(several, [balance(iteration) for iteration in (2, 3, 4)], rtol=1e-5)
    assert np.allclose(debugger.value("balance_next@0"), balance(0), rtol=1e-5)
    assert np.allclose(debugger.value("balance_next@-1"), balance(9), rtol=1e-5), "the loop runs 10 times"
    assert np.allclose(debugger.value("balance_next@*[1]"), [balance(k)[1] for k in range(10)], rtol=1e-5)
    assert state_of(debugger.timeline) == present


def test_values_larger_than_a_series_may_be_are_whole(tmp_path: Path) -> None:
    net = Graph()
    x = net.parameter("x", "f32", (5000,))
    body = net.body()
    h = body.parameter("h", "f32", (5000,))
    result = body.result(body.apply("Add", h, h, name="twice"))
    net.result(net.loop("l", body, 3, True, [carried(x, h, result)], [last(result)])[0])
    debugger = opened(tmp_path, net, np.ones(5000, np.float32))
    debugger.run_to("twice")
    assert np.array_equal(debugger.value("twice@*"), np.full((3, 5000), [[2], [4], [8]]))


def test_where_shapes_change_the_iterations_stay_apart() -> None:
    debugger = sample("growing_tensor")
    debugger.step(30)
    grown = next(
        name
        for name in (entry.inner.layer.name for entry in debugger.loop().inputs)
        if isinstance(debugger.value(f"`{name}`@0:3"), Series)
    )
    series = debugger.value(f"`{grown}`@0:3")
    assert isinstance(series, Series) and series.iterations == (0, 1, 2)
    assert len({value.shape for value in series.values}) == 3


@pytest.mark.parametrize("text", ["max(", "nonsense", "balance_next@99", "balance_next[7]"])
def test_what_has_no_value_is_one_error_of_ours(debugger: stepper.Debugger, text: str) -> None:
    for ask in (debugger.evaluate, debugger.value):
        with pytest.raises(stepper.UsageError):
            ask(text)


def test_iterations_that_the_run_does_not_reach_are_said(tmp_path: Path) -> None:
    net = Graph()
    x = net.parameter("x", "f32", ())
    body = net.body()
    h = body.parameter("h", "f32", ())
    result = body.result(body.apply("Add", h, h, name="twice"))
    net.result(net.loop("l", body, 9, True, [carried(x, h, result)], [last(result)])[0])
    debugger = opened(tmp_path, net, np.float32(1), max_iterations=4)
    debugger.run_to("twice")
    assert debugger.value("twice@0:4").tolist() == [2, 4, 8, 16]
    with pytest.raises(stepper.UsageError, match="the last that has one is 3"):
        debugger.value("twice@*")


def test_a_run_that_is_named_without_an_iteration_is_not_answered_with_the_run_here() -> None:
    """Of bubble sort on 5 1 4 2 8: pass 0 ends with 1 4 2 5 8, pass 1 with 1 2 4 5 8."""
    debugger = sample("nested_loop")
    debugger.goto("passes@1::values_next@1")
    assert debugger.value("passes@1::values_next").tolist() == [1, 2, 4, 5, 8]
    watch = debugger.watch("passes@0::values_next[1]")
    assert watch.now is not None and watch.now.error and "another run of 'pairs_of_neighbours'" in watch.now.text
    for ask in (debugger.value, debugger.evaluate):
        with pytest.raises(stepper.UsageError, match="another run of 'pairs_of_neighbours' than the one here"):
            ask("passes@0::values_next")
        found = ask("passes@0::values_next@-1")
        assert isinstance(found, np.ndarray) and found.tolist() == [1, 4, 2, 5, 8]
