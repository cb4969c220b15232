"""A debugger beside a reference: every number by numpy's own arithmetic."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import stepper
from stepper.debug.moments.spread import CODES
from stepper.tensors.difference import Change
from stepper.tensors.tolerances import Tolerances
from tests.compare.twins import STEPS, WEIGHTS, X, recurrence
from tests.engine.test_variables import accumulator


@pytest.fixture
def debugger(tmp_path: Path) -> stepper.Debugger:
    """The healthy recurrence beside its twin with another W."""
    for name, fault in (("ours", ""), ("theirs", "one weight")):
        (tmp_path / name).mkdir()
        recurrence(fault).write(tmp_path / name)
    found = stepper.Debugger(tmp_path / "ours" / "model.xml", {0: X})
    assert stepper.set_reference(found, tmp_path / "theirs" / "model.xml") == "theirs/model.xml"
    return found


def changed() -> np.ndarray[tuple[int, ...], np.dtype[np.float64]]:
    theirs = WEIGHTS.astype(np.float64)
    theirs[1, 2] += 1e-3
    return theirs


def apart(iteration: int) -> float:
    """The largest difference of x_t W from the twin's, in 64 bits."""
    return float(np.abs(X[iteration].astype(np.float64) @ (WEIGHTS.astype(np.float64) - changed())).max())


def index_of(debugger: stepper.Debugger, name: str) -> int:
    return next(k for k, one in enumerate(debugger.frame.program.operations) if one.layer.name == name)


def test_each_operation_of_a_stop(debugger: stepper.Debugger) -> None:
    tick = debugger.run_to("y@3").tick
    found = debugger.difference()
    assert found.title == "theirs/model.xml" and debugger.machine.tick == tick
    assert found.operations[index_of(debugger, "xW")].largest == pytest.approx(apart(3), rel=1e-3)
    assert found.operations[index_of(debugger, "row_t")].change is Change.SAME
    assert not found.operations[index_of(debugger, "h_next")].is_within


def test_the_whole_run(debugger: stepper.Debugger) -> None:
    debugger.run_to("y@2")
    first = debugger.spread().first
    assert first is not None
    cells, iteration, operation = first
    assert (cells.program.operations[operation].layer.name, iteration) == ("xW", 0)
    index = index_of(debugger, "xW")
    assert cells.changes[:, index].tolist() == [CODES[Change.NUMBER]] * STEPS and debugger.frame.activation is not None
    debugger.moments.allow(Tolerances(relative=0.0, absolute=0.1))
    found = debugger.spread()
    assert found.first is None and found.is_complete


def test_an_edit_and_another_reference(debugger: stepper.Debugger, tmp_path: Path) -> None:
    debugger.run_to("xW@3")
    debugger.set_value("xW", np.zeros((1, 3), np.float32))
    largest = float(np.abs(X[3].astype(np.float64) @ changed()).max())
    found = debugger.difference("reference")  # A is the original by itself now
    assert found.operations[index_of(debugger, "xW")].largest == pytest.approx(largest, rel=1e-4)
    same = tmp_path / "same"
    same.mkdir()
    stepper.set_reference(debugger, recurrence().write(same))
    first = debugger.spread().first
    assert first is not None and first[1:] == (3, index_of(debugger, "xW")), "the edit alone"


def test_the_reference_begins_with_the_states_of_the_run(tmp_path: Path) -> None:
    path = accumulator().write(tmp_path)
    debugger = stepper.Debugger(path, {"x": np.float32(5)}, states={"total": np.float32(7)})
    stepper.set_reference(debugger, path)
    found = debugger.spread()
    assert found.outputs and all(one.difference.change is Change.SAME for one in found.outputs)


def test_what_cannot_be_compared_is_refused(tmp_path: Path) -> None:
    debugger = stepper.Debugger(recurrence().write(tmp_path), {0: X})
    with pytest.raises(stepper.UsageError, match="there is no reference"):
        debugger.difference("reference")
    with pytest.raises(stepper.UsageError, match="no such file"):
        stepper.set_reference(debugger, "nowhere.npz.gone")
    with pytest.raises(stepper.ArgumentTypeError, match="debugger is a Debugger"):
        stepper.set_reference(debugger.machine, "openvino")  # type: ignore[arg-type]
