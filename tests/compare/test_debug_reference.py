"""A reference in the debugger: `ref(x)` in expressions, `break diff>X`, forward and backward in time."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from stepper.compare.references.reference_opening import debug_reference, set_reference
from stepper.debug.debugger import Debugger
from stepper.debug.scopes import ValuePlace
from stepper.errors import UsageError
from tests.compare.test_other_references import TABLE, keyed, recorded
from tests.compare.twins import X, countdown, nested, recurrence


def debugger_with(folder: Path, kind: str, ours: Any, theirs: Any, value: Any) -> Debugger:
    (folder / "ours").mkdir()
    (folder / "theirs").mkdir()
    debugger = Debugger(ours.read(folder / "ours"), {0: value})
    if kind == "model":
        path = theirs.write(folder / "theirs")
    elif kind == "recording":
        path = recorded(folder / "recorded", theirs, value, "all")
    else:
        path = folder / "values.npz"
        np.savez(path, **keyed("trace"))
    debugger.reference = debug_reference(str(path), debugger.machine, debugger.inputs)
    return debugger


@pytest.mark.parametrize("kind", ["model", "recording", "archive"])
def test_break_diff_stops_where_the_values_part(kind: str, tmp_path: Path) -> None:
    debugger = debugger_with(tmp_path, kind, recurrence("type"), recurrence(), X)
    debugger.break_when("diff > 1e-4")
    stop = debugger.continue_()
    assert stop.done is not None and (stop.done.layer.name, stop.iteration) == ("summed", 1)
    assert "more than 0.0001" in stop.details[0]
    before = debugger.previous_iteration()
    assert before.iteration == 0
    assert debugger.continue_().tick == stop.tick, "the same place again, after going back in time"


@pytest.mark.parametrize("kind", ["model", "recording", "archive"])
def test_ref_is_the_value_of_the_reference_in_the_same_iteration(kind: str, tmp_path: Path) -> None:
    debugger = debugger_with(tmp_path, kind, recurrence("type"), recurrence(), X)
    debugger.break_when("max(abs(h_next - ref(h_next))) > 0.01")
    stop = debugger.continue_()
    assert stop.iteration == 1
    value = debugger.watch("ref(h_next)").readings[-1].value
    np.testing.assert_allclose(value, keyed("trace")["tr:cell|h_next|0"][1], rtol=1e-4)


def test_the_distance_of_one_value_alone_can_be_asked_for(tmp_path: Path) -> None:
    debugger = debugger_with(tmp_path, "model", recurrence("type"), recurrence(), X)
    debugger.break_when("diff > 1e-4 noted")
    stop = debugger.continue_()
    assert stop.done is not None and stop.done.layer.name == "noted"


def test_nested_loops_and_branches_have_their_own_values(tmp_path: Path) -> None:
    debugger = debugger_with(tmp_path, "model", nested("branch"), nested(), TABLE)
    debugger.break_when("diff > 1e-4")
    stop = debugger.continue_()
    assert stop.done is not None and stop.done.layer.name == "halved"
    assert [frame.activation.iteration for frame in debugger.machine.stack[1:3] if frame.activation] == [1, 2]


def test_without_a_reference_diff_is_the_change_since_the_iteration_before_and_ref_is_refused(tmp_path: Path) -> None:
    debugger = Debugger(recurrence().read(tmp_path), {0: X})
    debugger.break_when("diff > 1e-6 h_next")
    assert "changed by" in debugger.continue_().details[0]
    with pytest.raises(UsageError, match="no reference"):
        debugger.break_when("max(ref(h_next)) > 0")


def test_a_second_model_is_asked_again_for_iterations_that_are_long_past(tmp_path: Path) -> None:
    debugger = debugger_with(tmp_path, "model", recurrence(), recurrence(), X)
    debugger.last()
    debugger.goto_tick(0)
    debugger.break_when("diff > 1e-9")
    debugger.continue_()
    assert debugger.machine.finished, "equal models never part"


def test_the_limit_of_iterations_holds_for_a_second_model_too(tmp_path: Path) -> None:
    (tmp_path / "ours").mkdir()
    (tmp_path / "theirs").mkdir()
    debugger = Debugger(countdown().read(tmp_path / "ours"), {0: np.float32([100])}, max_iterations=50)
    set_reference(debugger, countdown("endless").write(tmp_path / "theirs"))
    assert debugger.reference is not None
    loop = next(layer for layer in debugger.machine.compiled.model.graph.layers if layer.is_loop)
    place = ValuePlace((), loop, 0)
    with pytest.raises(UsageError, match="50 iterations"):
        debugger.reference.value_at(place)
