"""Stops of a debugger beside a reference: every number by numpy's own arithmetic."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import stepper
from stepper.compare.stops import Standing, StopComparer, StopComparison
from stepper.debug.iterations.cell_store import Cell
from stepper.tensors.tolerances import Tolerances
from tests.compare.twins import STEPS, WEIGHTS, X, recurrence
from tests.engine.test_variables import accumulator


@pytest.fixture
def twins(tmp_path: Path) -> tuple[stepper.Debugger, Path]:
    """The healthy recurrence, and the path of its twin with another W."""
    for name, fault in (("ours", ""), ("theirs", "one weight")):
        (tmp_path / name).mkdir()
        recurrence(fault).write(tmp_path / name)
    return stepper.Debugger(tmp_path / "ours" / "model.xml", {0: X}), tmp_path / "theirs" / "model.xml"


def apart(iteration: int) -> float:
    """The largest difference of x_t W from the twin's, in 64 bits."""
    changed = WEIGHTS.astype(np.float64)
    changed[1, 2] += 1e-3
    return float(np.abs(X[iteration].astype(np.float64) @ (WEIGHTS.astype(np.float64) - changed)).max())


def index_of(debugger: stepper.Debugger, name: str) -> int:
    return next(k for k, one in enumerate(debugger.frame.program.operations) if one.layer.name == name)


def distance(debugger: stepper.Debugger, comparison: StopComparison, name: str) -> float:
    return comparison.operations[index_of(debugger, name)].distance


def test_each_operation_beside_the_reference_with_what_it_makes_itself(twins: tuple[stepper.Debugger, Path]) -> None:
    debugger, other = twins
    comparer = stepper.StopComparer(debugger, other)
    tick = debugger.run_to("y@3").tick
    found = comparer.compare()
    assert found.title == f"{other.parent.name}/{other.name}" and not found.problem
    wrong = found.operations[index_of(debugger, "xW")]
    assert wrong.standing is Standing.HERE and wrong.share_made_here == pytest.approx(1)
    assert wrong.distance == pytest.approx(apart(3), rel=1e-3) and wrong.distance > wrong.allowed > 0
    later = found.operations[index_of(debugger, "h_next")]
    assert later.standing is Standing.CARRIED and later.share_made_here == 0
    assert found.above[0] == index_of(debugger, "xW")
    assert distance(debugger, found, "row_t") == 0
    assert debugger.machine.tick == tick


def test_the_first_difference_of_the_whole_run(twins: tuple[stepper.Debugger, Path]) -> None:
    debugger, other = twins
    comparer = StopComparer(debugger, other)
    debugger.last()
    first = comparer.first_difference()
    assert first.difference is not None and first.complete
    assert (first.difference.layer.name, first.iteration) == ("xW", 0)
    assert first.difference.distance == pytest.approx(apart(0), rel=1e-3)
    assert debugger.goto_tick(first.tick).iteration == 0
    comparer.tolerances = Tolerances(relative=0.0, absolute=0.1)
    within = comparer.first_difference()
    assert within.difference is None and within.complete and 0 < within.before < 0.1
    assert comparer.compare().above == []


def test_all_operations_over_the_iterations_of_a_loop(twins: tuple[stepper.Debugger, Path]) -> None:
    debugger, other = twins
    comparer = StopComparer(debugger, other)
    tick = debugger.run_to("y@2").tick
    grid = comparer.over_iterations(0, STEPS - 1)
    index = index_of(debugger, "xW")
    for iteration in range(STEPS):
        cell = grid.at(Cell(iteration, index))
        assert cell is not None and cell.is_above and cell.distance == pytest.approx(apart(iteration), rel=1e-3)
    assert grid.at(Cell(STEPS, index)) is None
    worst = grid.worst_of([index])
    assert worst is not None and worst.distance == pytest.approx(max(map(apart, range(STEPS))), rel=1e-3)
    assert debugger.machine.tick == tick
    assert comparer.over_iterations(0, 10 * STEPS).at(Cell(STEPS, index)) is None, "the loop has no such iteration"


def test_an_edit_and_another_reference_are_compared_anew(twins: tuple[stepper.Debugger, Path], tmp_path: Path) -> None:
    debugger, other = twins
    comparer = StopComparer(debugger, other)
    debugger.run_to("h_next@2")
    index = index_of(debugger, "xW")
    assert comparer.over_iterations(0, 2).at(Cell(2, index)) is not None
    debugger.run_to("y@2")
    before = comparer.compare().operations[index].distance
    debugger.goto_tick(debugger.machine.tick - 1)
    debugger.run_to("xW@3")
    debugger.set_value("xW", np.zeros((1, 3), np.float32))
    changed = comparer.compare().operations[index].distance
    theirs = WEIGHTS.astype(np.float64)
    theirs[1, 2] += 1e-3
    assert changed == pytest.approx(float(np.abs(X[3].astype(np.float64) @ theirs).max()), rel=1e-4)
    assert comparer.first_difference().difference is not None
    assert before == pytest.approx(apart(2), rel=1e-3)
    same = tmp_path / "same"
    same.mkdir()
    healthy = StopComparer(debugger, recurrence().write(same))
    assert healthy.first_difference().difference is None
    assert comparer.first_difference().difference is None, "the reference of the debugger is the healthy one now"


def test_the_search_for_the_first_difference_begins_with_the_states_of_the_run(tmp_path: Path) -> None:
    path = accumulator().write(tmp_path)
    debugger = stepper.Debugger(path, {"x": np.float32(5)}, states={"total": np.float32(7)})
    assert StopComparer(debugger, path).first_difference().difference is None


def test_what_cannot_be_compared_is_refused(twins: tuple[stepper.Debugger, Path]) -> None:
    debugger, other = twins
    with pytest.raises(stepper.UsageError, match="there is no reference"):
        StopComparer(debugger).compare()
    with pytest.raises(stepper.UsageError, match="no such file"):
        StopComparer(debugger, "nowhere.npz.gone")
    with pytest.raises(stepper.ArgumentTypeError, match="debugger is a Debugger"):
        StopComparer(debugger.machine)  # type: ignore[arg-type]
    with pytest.raises(stepper.UsageError, match="in no iteration"):
        StopComparer(debugger, other).over_iterations()
