"""What a stop shows of the stack and of the operations; and that looking changes nothing."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from stepper.debug.debugger import Debugger
from stepper.debug.inspection.text import stop_lines
from stepper.debug.inspection.views import Origin
from stepper.engine.rules import Rules
from stepper.errors import StepperError, UsageError
from tests.debug.debugged import ALL_RUNS, opened, run_named, sample, state_of, stops
from tests.engine.nested_models import multiplication_table
from tests.tables import few


@ALL_RUNS
@pytest.mark.parametrize("rules", few(1, Rules))
def test_looking_at_every_stop_changes_nothing_and_says_something(name: str, rules: Rules, tmp_path: Path) -> None:
    try:
        debugger = run_named(name, tmp_path, rules=rules)
        seen = 0
        for _ in stops(debugger):
            before = state_of(debugger.timeline)
            view = debugger.view()
            assert all(stop_lines(view)) and len(view.levels) == debugger.depth
            for level in view.levels:
                if level.kind in ("TensorIterator", "Loop"):
                    assert debugger.loop(level.depth).level.name == level.name
            assert state_of(debugger.timeline) == before
            seen += 1
        assert seen > 3
    except StepperError:
        assert rules is Rules.OPENVINO, "only what the plugin refuses may fail"


def test_the_stack_names_each_level_with_its_iteration_and_phase(tmp_path: Path) -> None:
    debugger = opened(tmp_path, multiplication_table(), np.int64(3), np.int64(2))
    debugger.step(5)
    model, rows, columns = debugger.view().levels
    assert (model.kind, model.iteration, model.phase) == ("model", None, "after 0 of 1 operations, in Loop 'rows'")
    assert (rows.name, rows.count) == ("rows", "0 of 3")
    assert rows.phase == "in iteration 0, after 0 of 2 operations, in Loop 'columns'"
    assert (columns.kind, columns.name, columns.count) == ("Loop", "columns", "0 of 2")
    assert columns.phase == "in iteration 0, after 1 of 1 operations"
    assert columns.path == "model > Loop 'rows' #0 > Loop 'columns' #0"


def test_a_loop_that_a_condition_may_end_says_at_most() -> None:
    debugger = sample("for_with_condition")
    debugger.step(4)
    assert debugger.view().levels[1].count == "0 of at most 8"
    debugger = sample("while_loop")
    while debugger.stop.iteration != 17:
        debugger.step()
    assert debugger.view().levels[1].count == "17, unlimited"


def test_the_operation_just_run_and_the_next_one_show_their_inputs_and_outputs() -> None:
    debugger = sample("specification_lstm")
    debugger.step(18)
    view = debugger.view()
    assert view.done is not None and view.done.layer.name == "x" and view.done.outputs[0].array is not None
    following = view.next
    assert following is not None and following.layer.type == "LSTMCell"
    assert [value.origin for value in following.inputs] == [
        Origin.OPERATION, Origin.PARAMETER, Origin.PARAMETER, Origin.CONSTANT, Origin.CONSTANT,
    ]  # fmt: skip
    assert [value.source for value in following.inputs[:2]] == ["Reshape 'x'", "Parameter 'h'"]
    given = np.load(Path(__file__).parents[3] / "sample_models/specification_lstm/inputs.npz")
    assert following.inputs[0].array is not None
    assert np.array_equal(following.inputs[0].array, given["X"][:, 3])
    assert [value.array for value in following.outputs] == [None, None]
    assert following.outputs[1].absent == "not computed yet in iteration 3"
    debugger.step()
    done = debugger.view().done
    assert done is not None and done.layer.type == "LSTMCell"
    assert all(value.array is not None and value.array.shape == (1, 256) for value in done.outputs)


def test_between_two_iterations_there_is_neither_an_operation_done_nor_a_next_one(tmp_path: Path) -> None:
    debugger = run_named("sums", tmp_path)
    while not debugger.stop.closed:
        debugger.step()
    view = debugger.view()
    assert view.done is None and view.next is None
    assert view.levels[1].phase == "iteration 0 is closed"


def test_at_the_end_the_outputs_are_shown(tmp_path: Path) -> None:
    debugger = run_named("sums", tmp_path)
    debugger.last()
    view = debugger.view()
    assert view.outputs is not None and len(view.outputs) == 2
    assert view.levels == () and view.loop is None and view.branch is None
    assert stop_lines(view)[0].endswith("the run has ended")


def test_a_view_stays_true_when_the_run_goes_on(tmp_path: Path) -> None:
    debugger = run_named("sums", tmp_path)
    debugger.step(8)
    view = debugger.view()
    lines = stop_lines(view)
    debugger.last()
    assert stop_lines(view) == lines
    debugger.first()
    assert stop_lines(view) == lines


def test_a_level_that_is_no_loop_is_refused_by_name(tmp_path: Path) -> None:
    debugger = run_named("sums", tmp_path)
    with pytest.raises(UsageError, match="in no loop"):
        debugger.loop()
    debugger.step(3)
    with pytest.raises(UsageError, match="level 0, model, is not a loop"):
        debugger.loop(0)
    with pytest.raises(UsageError, match="there is no level 7"):
        debugger.loop(7)


def test_a_fresh_debugger_shows_its_start(tmp_path: Path) -> None:
    debugger: Debugger = run_named("sums", tmp_path)
    view = debugger.view()
    assert (view.tick, view.place, view.done) == (0, "model", None)
    assert view.next is not None and view.next.layer.name == "before"
