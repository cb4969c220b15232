"""What a screen shows beside a stop: frames with their values, histories by iteration, and how a NaN comes about."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from stepper.debug.debugger import Debugger
from stepper.debug.frame_views import frame_views
from stepper.debug.iteration_statistics import STATISTICS, IterationStatistics, number_of
from stepper.debug.non_finite_causes import birth_of, cause_of_inf, cause_of_nan
from stepper.debug.run_views import break_views, glance, watch_views
from stepper.errors import UsageError
from tests.debug.debugged import SMALL_SAMPLES, opened, sample, stops
from tests.models import Graph


def values_by_stepping(debugger: Debugger) -> dict[tuple[str, int, int], list[float]]:
    """The number of each operation in each iteration of each run of a graph, noted as the run goes by."""
    found: dict[tuple[str, int, int], list[float]] = {}
    for _ in stops(debugger):
        stop = debugger.stop
        if stop.done is None or not debugger.machine.stack or not stop.done.outputs:
            continue
        frame = debugger.machine.stack[-1]
        entered = 0 if frame.activation is None else frame.activation.entered
        key = (frame.program.name, entered, frame.pc - 1)
        number = number_of(frame.values[stop.done.outputs[0]])
        found.setdefault(key, []).append(np.nan if number is None else number)
    return found


@pytest.mark.parametrize("name", SMALL_SAMPLES)
def test_histories_are_what_stepping_sees_wherever_one_comes_from(name: str) -> None:
    debugger = sample(name)
    expected = values_by_stepping(debugger)
    debugger.reverse_step()
    statistics = IterationStatistics(debugger.timeline)
    while debugger.machine.tick > 1:
        statistics.see()
        for depth, frame in enumerate(debugger.machine.stack):
            statistics.fill(depth, 64, lambda: False)
            view = frame_views(debugger.machine.stack)[depth]
            entered = 0 if frame.activation is None else frame.activation.entered
            if view.iteration is None or view.last < 0 or not frame.program.operations[view.last].outputs:
                continue
            history = [value for value in statistics.view(depth).of(view.last, view.iteration, 40) if value is not None]
            known = expected[frame.program.name, entered, view.last]
            np.testing.assert_array_equal(history, known[max(view.iteration - 39, 0) : view.iteration + 1])
        debugger.goto_tick(max(debugger.machine.tick - 7, 0))


def test_a_view_of_a_frame_stays_true_when_the_run_goes_on() -> None:
    debugger = sample("nested_loop")
    debugger.step(12)
    frame = frame_views(debugger.machine.stack)[-1]
    before = np.array(frame.held(frame.last))
    place, iteration = frame.layers[frame.last].name, frame.iteration
    debugger.step(20)
    np.testing.assert_array_equal(frame.held(frame.last), before)
    assert (frame.layers[frame.last].name, frame.iteration) == (place, iteration)


@pytest.mark.parametrize("name", SMALL_SAMPLES)
def test_an_address_of_an_operation_leads_to_it(name: str) -> None:
    debugger = sample(name)
    for _ in stops(debugger):
        for frame in frame_views(debugger.machine.stack):
            for index, layer in enumerate(frame.layers):
                number = debugger.break_at(frame.address(index, debugger.machine.compiled)).number
                (view,) = break_views(debugger.breakpoints)
                assert view.is_at(frame.program, index), layer.name
                debugger.breakpoints.delete(number)
        if debugger.machine.tick > 40:
            break


@pytest.mark.parametrize("statistic", STATISTICS)
def test_statistics_agree_with_numpy_and_tell_what_is_not_finite(statistic: str) -> None:
    values = np.random.default_rng(3).normal(size=(5, 7)).astype(np.float32)
    formula = {
        "rms": np.sqrt(np.mean(np.square(values, dtype=np.float64))),
        "mean": values.mean(dtype=np.float64),
        "min": values.min(),
        "max": values.max(),
        "peak": np.abs(values).max(),
    }[statistic]
    assert number_of(values, statistic) == pytest.approx(float(formula), rel=1e-5)
    values[1, 2] = np.inf
    assert number_of(values, statistic) == np.inf
    values[0, 0] = np.nan
    assert np.isnan(number_of(values, statistic))
    assert number_of(np.full(4, 3e38, np.float32), statistic) == pytest.approx(3e38, rel=1e-5)
    assert number_of(np.zeros(0, np.float32), statistic) is None
    assert number_of(np.array(["a"], np.dtypes.StringDType()), statistic) is None
    assert number_of(np.int64(-4), statistic) == -4


def test_a_statistic_that_there_is_not_is_refused() -> None:
    with pytest.raises(UsageError, match="there is no statistic 'median'"):
        IterationStatistics(sample("for_loop").timeline).choose("median")


def test_watches_are_seen_by_iteration_and_a_glance_needs_no_stop() -> None:
    debugger = sample("for_loop")
    debugger.step(2)
    debugger.watch("iter")
    for _ in range(3):
        debugger.next_iteration()
    (watch,) = watch_views(debugger.watches, debugger.loop().level.path)
    assert [int(reading.value) for reading in watch.iterations if reading.value is not None] == [0, 1, 2, 3]
    assert glance(debugger.machine).iterations == (None, 3)


INF, ONE = np.array([np.inf, 1], np.float32), np.array([1, 1], np.float32)
CASES = [
    ("Softmax", (INF,), {"axis": 0}, "opset8"),
    ("Subtract", (INF, INF), {}, "opset1"),
    ("Multiply", (INF, ONE * 0), {}, "opset1"),
    ("Divide", (ONE * 0, ONE * 0), {}, "opset1"),
    ("Log", (-ONE,), {}, "opset1"),
    ("Sqrt", (-ONE,), {}, "opset1"),
    ("Acos", (ONE * 2,), {}, "opset1"),
    ("Power", (-ONE, ONE / 2), {}, "opset1"),
]


@pytest.mark.parametrize(("kind", "inputs", "attributes", "version"), CASES, ids=[case[0] for case in CASES])
def test_a_nan_that_a_kernel_gives_has_a_cause(
    kind: str, inputs: tuple[np.ndarray, ...], attributes: dict[str, object], version: str, tmp_path: Path
) -> None:
    net = Graph()
    values = [net.parameter(f"x{index}", "f32", (2,)) for index in range(len(inputs))]
    net.result(net.apply(kind, *values, version=version, **attributes))
    debugger = opened(tmp_path, net, *inputs)
    debugger.step()
    (frame,) = frame_views(debugger.machine.stack)
    assert np.isnan(frame.held(0)).any()
    assert cause_of_nan(frame.layers[0], inputs)
    assert not cause_of_nan(frame.layers[0], tuple(np.full(2, 0.5, np.float32) for _ in inputs))


def test_an_inf_is_followed_to_where_it_was_born(tmp_path: Path) -> None:
    net = Graph()
    x, y = net.parameter("x", "f32", (2,)), net.parameter("y", "f32", (2,))
    quotient = net.apply("Divide", x, y, name="quotient")
    net.result(net.apply("Subtract", net.apply("Abs", quotient), net.apply("Abs", quotient), name="difference"))
    debugger = opened(tmp_path, net, ONE, np.array([1, 0], np.float32))
    debugger.step(4)
    (frame,) = frame_views(debugger.machine.stack)
    birth = birth_of(frame, 3, nan=False)
    assert birth is not None and birth.index is not None
    assert (frame.layers[birth.index].name, birth.element, birth.steps) == ("quotient", (1,), 2)
    assert cause_of_inf(frame.layers[0], (ONE, np.array([1, 0], np.float32))) == "a number / 0 is infinite"
    assert birth_of(frame, 3, nan=True) is None
