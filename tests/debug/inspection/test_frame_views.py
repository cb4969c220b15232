"""What a screen shows beside a stop: frames with their values, histories by iteration, and how a NaN comes about."""

from __future__ import annotations

import numpy as np
import pytest

from stepper.debug.inspection.views import break_views, frame_views, glance
from stepper.tensors.statistics import OVER_ITERATIONS, number_of
from tests.debug.debugged import SMALL_SAMPLES, sample, stops
from tests.tables import each_row


def test_a_view_of_a_frame_stays_true_when_the_run_goes_on() -> None:
    debugger = sample("nested_loop")
    debugger.step(12)
    frame = frame_views(debugger.machine.stack)[-1]
    before = np.array(frame.held(frame.last))
    place, iteration = frame.layers[frame.last].name, frame.iteration
    debugger.step(20)
    np.testing.assert_array_equal(frame.held(frame.last), before)
    assert (frame.layers[frame.last].name, frame.iteration) == (place, iteration)


@each_row("name", SMALL_SAMPLES)
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


@each_row("statistic", OVER_ITERATIONS)
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


def test_a_glance_needs_no_stop() -> None:
    debugger = sample("for_loop")
    debugger.step(2)
    for _ in range(3):
        debugger.next_iteration()
    assert glance(debugger.machine).iterations == (None, 3)
