"""Where an edit spreads, against numpy on two plain runs: every cell, every output, and what is not compared."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import stepper
from stepper.debug.debugger import Debugger
from stepper.debug.moments import spread as module
from stepper.debug.moments.moment_texts import spread_sentence
from stepper.debug.moments.spread import CODES, SpreadCells, SpreadView
from stepper.tensors.difference import Change
from tests.debug.debugged import SAMPLES, opened
from tests.debug.moments.test_moments import Run, collected, debugger_of, edited, expected, plain
from tests.engine.nested_models import rows_of_rows
from tests.models import Graph, carried, joined, sliced

__all__ = ["edited", "plain"]
RWKV = SAMPLES / "rwkv_overflow"


def after_edit() -> Debugger:
    debugger = debugger_of(RWKV)
    debugger.goto("key@7")
    debugger.set_value("key[0,3]", 80.0)
    return debugger


def test_every_cell_is_that_of_two_plain_runs(plain: Run, edited: Run) -> None:
    debugger = after_edit()
    tick = debugger.machine.tick
    found = debugger.spread()
    assert debugger.machine.tick == tick and found.is_complete
    (cells,) = found.runs
    operations = debugger.frame.program.operations
    for index, operation in enumerate(operations):
        name = operation.layer.name
        for iteration in range(12):
            (cell,) = cells.worst_in([(iteration, iteration + 1)], index)
            assert cell.change is expected(plain[name, iteration], edited[name, iteration]), (name, iteration)
            assert cell.is_edited is ((name, iteration) == ("key", 7))
    touched = {operations[index].layer.name for index in np.flatnonzero(cells.touched)}
    same = {
        name
        for name in {name for name, _ in plain}
        if all(expected(plain[name, t], edited[name, t]) is Change.SAME for t in range(12))
    }
    assert touched == {operation.layer.name for operation in operations} - same


def test_the_worst_of_spans_is_that_of_their_cells_one_by_one() -> None:
    rng = np.random.default_rng(5)
    shape = (23, 9)
    changes, edited = rng.choice([0, 1, 1, 2, 4, 5], shape).astype(np.uint8), rng.random(shape) < 0.05
    cells = SpreadCells(after_edit().frame.program, 23, 1, changes, edited)
    spans = [(0, 23), (0, 1), (5, 9), (9, 9), (4, 30), (20, 23), (23, 25), (40, 41), (2, 3)]
    for index in (3, 8, 0):
        for (first, end), found in zip(spans, cells.worst_in(spans, index), strict=True):
            rows = slice(first, max(end, first + 1))
            assert (0 if found.change is None else CODES[found.change]) == changes[rows, index].max(initial=0)
            assert found.is_edited is bool(edited[rows, index].any())


def test_the_worst_of_the_same_cells_is_looked_for_once_and_not_all_is_remembered() -> None:
    none = np.zeros((400, 3), np.uint8)
    cells = SpreadCells(after_edit().frame.program, 400, 1, none, none.astype(bool))
    spans = [(0, 3), (3, 400)]
    found = cells.worst_in(spans, 2)
    assert cells.worst_in(list(spans), 2) is found
    assert cells.worst_in(spans, 1) is not found
    for first in range(400):
        cells.worst_in([(first, 400)], 0)
    assert cells.worst_in(spans, 2) is not found


def test_what_became_of_the_outputs_in_facts_and_words() -> None:
    debugger = after_edit()
    found = debugger.spread()
    ours = debugger_of(RWKV)
    ours.last()
    theirs = after_edit()
    theirs.last()
    for change, a, b in zip(found.outputs, ours.machine.outputs or (), theirs.machine.outputs or (), strict=True):
        rows = [t for t in range(12) if not np.array_equal(a[t], b[t], equal_nan=True)]
        assert (change.rows, change.different, change.first) == (12, len(rows), rows[0])
    count, first = found.outputs[0].different, found.outputs[0].first
    assert spread_sentence(found) == f"outputs mixed and wkv changed in {count} of 12 rows, first in iteration {first}"
    debugger.branch("original")
    assert debugger.pinned is not None and debugger.pinned.branch == "edit-1"


def test_beside_an_iteration_there_is_no_other_run() -> None:
    debugger = debugger_of(RWKV)
    debugger.goto("wkv@5")
    for called in ("3", "before"):
        debugger.pin(called)
        assert debugger.pinned is not None and debugger.moments.spread(debugger.pinned) is None
        with pytest.raises(stepper.UsageError, match="between two branches"):
            debugger.spread()


def accumulating(forward: bool, steps: int = 6) -> Graph:
    """Running sums of x, joined in the order of the iterations or against it."""
    net = Graph()
    x = net.parameter("x", dims=(steps, 1))
    body = net.body()
    item, total = body.parameter("item", dims=(1, 1)), body.parameter("total", dims=(1, 1))
    added = body.apply("Add", total, item, name="added")
    result = body.result(added)
    zero = net.constant(np.zeros((1, 1), np.float32))
    joins = joined(result) if forward else joined(result, 0, start=-1, end=0, stride=-1)
    (sums,) = net.tensor_iterator("sums", body, [sliced(x, item), carried(zero, total, result)], [joins])
    net.result(sums, "sums")
    return net


@pytest.mark.parametrize("forward", [True, False], ids=["forward", "backward"])
def test_rows_of_an_output_are_those_of_the_iterations_in_either_order(tmp_path: Path, forward: bool) -> None:
    debugger = Debugger(accumulating(forward).write(tmp_path), {0: np.ones((6, 1), np.float32)})
    debugger.goto("added@4")
    debugger.set_value("added", 50.0)
    (change,) = debugger.spread().outputs
    assert (change.different, change.first) == (2, 4) and change.difference.largest == 45


def test_another_number_of_iterations_is_compared_as_far_as_both_go(tmp_path: Path) -> None:
    debugger = debugger_of(SAMPLES / "for_loop")
    debugger.step(8)
    debugger.set_trip_count(3)
    found = debugger.spread()
    assert found.is_complete
    changed = [change for change in found.outputs if change.lengths[0] != change.lengths[1]]
    assert changed and all(change.lengths[1] == 3 for change in changed)
    assert "3 rows, not" in spread_sentence(found)


def test_iterations_that_a_does_not_run_are_there_and_only_now(tmp_path: Path) -> None:
    debugger = debugger_of(SAMPLES / "while_loop")
    debugger.run_to("triple_plus_one@2")
    debugger.set_value("triple_plus_one", 27)  # 27 again: 3 iterations more than the 111 of the original
    found = debugger.spread()
    (cells,) = found.runs
    assert found.is_complete and (cells.iterations, cells.step) == (114, 1)
    changes = np.asarray(cells.changes)
    assert (changes[111:] == CODES[Change.ADDED]).all() and not (changes[:111] == CODES[Change.ADDED]).any()
    assert cells.worst_in([(113, 114)], 0)[0].change is Change.ADDED and cells.touched.all()
    again = debugger_of(SAMPLES / "for_loop")
    again.step(8)
    again.set_trip_count(3)  # only A runs the others
    (cells,) = again.spread().runs
    assert cells.iterations <= 3 and not (cells.changes == CODES[Change.ADDED]).any()


def test_many_iterations_are_bins_and_a_long_comparison_is_left_and_gone_on_with(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "MOST_CELLS", 64)
    debugger = Debugger(accumulating(forward=True, steps=300).write(tmp_path), {0: np.ones((300, 1), np.float32)})
    debugger.goto("added@100")
    debugger.set_value("added", 0.0)
    assert debugger.pinned is not None
    walk = debugger.moments.spread(debugger.pinned)
    assert walk is not None
    looked: list[SpreadView] = []
    while walk.go(lambda: True):
        looked.append(walk.view())
    assert len(looked) >= 190 and looked[5].compared < looked[50].compared
    (cells,) = debugger.spread().runs
    assert cells.step > 1 and len(cells.changes) * cells.step >= 300 and cells.changes.size <= 64
    index = next(k for k, one in enumerate(cells.program.operations) if one.layer.name == "added")
    codes = cells.changes[:, index]
    assert (codes[: 100 // cells.step] == CODES[Change.SAME]).all()
    assert (codes[-(-100 // cells.step) : 300 // cells.step] == CODES[Change.NUMBER]).all()


def test_an_outer_loop_is_compared_in_all_iterations_whatever_number_of_runs_is_inside(tmp_path: Path) -> None:
    count = module.MOST_RUNS + 36
    debugger = opened(tmp_path, rows_of_rows(), np.ones((count, 2), np.float32))
    debugger.goto("rows@1::elements@0::sum")
    debugger.set_value("sum", 5.0)
    found = debugger.spread()
    (outer,) = (cells for cells in found.runs if len(cells.program.path) == 1)
    (row,) = (k for k, one in enumerate(outer.program.operations) if one.layer.name == "elements")
    differs = np.arange(count) == 1  # the sums of the edited row alone
    np.testing.assert_array_equal(outer.changes[:, row] > CODES[Change.SAME], differs)
    assert (outer.changes[:, row] > 0).all(), "all iterations were compared"
    inner = [cells for cells in found.runs if len(cells.program.path) == 2]
    assert [cells.outer for cells in inner if cells.first] == [(1,)], "the run that differs is kept"
    assert found.first is not None and len(found.runs) <= module.MOST_RUNS


def test_between_what_is_no_branch_nothing_spreads() -> None:
    debugger = debugger_of(RWKV)
    with pytest.raises(stepper.UsageError, match="between two branches"):
        debugger.spread()
    debugger.goto("key@3")
    debugger.branch("other")
    found = debugger.spread("original")
    assert found.parted is None and spread_sentence(found) == "other and original do not differ"


def test_the_plain_runs_differ_as_the_file_says() -> None:
    """The bad element alone makes the difference: the fixture is what it is taken for."""
    assert np.isinf(collected(debugger_of(RWKV).machine)["exp_key", 7]).any()


@pytest.mark.parametrize("shape", [(0, 3), (2, 0), (0, 0)])
def test_an_output_without_elements_has_no_rows_that_differ(shape: tuple[int, ...]) -> None:
    a = np.zeros(shape, np.float32)
    found = module.output_change("out", a, a.copy(), module._Pieces(0, 1, is_backward=False))
    assert (found.rows, found.different, found.first) == (shape[0], 0, None)
