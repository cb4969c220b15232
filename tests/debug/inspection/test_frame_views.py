"""What a screen shows beside a stop: frames with their values, histories by iteration, and how a NaN comes about."""

from __future__ import annotations

import numpy as np
import pytest

from stepper.debug.debugger import Debugger
from stepper.debug.inspection.views import break_views, frame_views, glance, watch_views
from stepper.debug.iterations.cell_store import IterationStatistics
from stepper.errors import UsageError
from stepper.tensors.statistics import OVER_ITERATIONS, number_of
from tests.debug.debugged import SMALL_SAMPLES, sample, stops


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
        number = number_of(frame.values[stop.done.outputs[0]], "auto")
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


@pytest.mark.parametrize("statistic", OVER_ITERATIONS)
def test_statistics_agree_with_numpy_and_tell_what_is_not_finite(statistic: str) -> None:
    values = np.random.default_rng(3).normal(size=(5, 7)).astype(np.float32)
    formula = {
        "rms": np.sqrt(np.mean(np.square(values, dtype=np.float64))),
        "mean": values.mean(dtype=np.float64),
        "min": values.min(),
        "max": values.max(),
        "peak": np.abs(values).max(),
        "last": values[-1, -1],
        "auto": np.sqrt(np.mean(np.square(values, dtype=np.float64))),
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
    (watch,) = watch_views(debugger.watches, debugger.loop().level.run, debugger.machine.program)
    assert [int(reading.value) for reading in watch.iterations if reading.value is not None] == [0, 1, 2, 3]
    assert glance(debugger.machine).iterations == (None, 3)
