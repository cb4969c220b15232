"""Where an edit spreads, against numpy on two plain runs: every cell, every output, and what is not compared."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import stepper
from stepper.debug.debugger import Debugger
from stepper.debug.iterations.cell_store import IterationStatistics
from stepper.debug.moments import spread as module
from stepper.debug.moments.spread import CODES, SpreadCells, SpreadView
from stepper.debug.moments.texts import output_notes, set_text, spread_sentence
from stepper.debug.overview.facts import RowKind
from stepper.engine.frames import loop_run
from stepper.tensors.difference import Change
from tests.debug.debugged import SAMPLES, opened
from tests.debug.loops_to_break import countdown
from tests.debug.moments.test_moments import Run, collected, debugger_of, edited, expected, plain
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
    assert debugger.machine.tick == tick and found.is_complete and found.cells is not None
    operations = debugger.frame.program.operations
    for index, operation in enumerate(operations):
        name = operation.layer.name
        for iteration in range(12):
            cell = found.cells.at(iteration, index)
            assert cell.change is expected(plain[name, iteration], edited[name, iteration]), (name, iteration)
            assert cell.is_edited is ((name, iteration) == ("key", 7))
            if cell.change is Change.NUMBER:
                a, b = (side[name, iteration].astype(np.float64) for side in (plain, edited))
                larger = np.maximum(np.abs(a), np.abs(b))
                with np.errstate(all="ignore"):
                    relative = np.nanmax(np.where(larger > 0, np.abs(b - a) / larger, 0))
                assert cell.relative == pytest.approx(relative, rel=1e-5)
    touched = {operations[index].layer.name for index in np.flatnonzero(found.cells.touched)}
    same = {
        name
        for name in {name for name, _ in plain}
        if all(expected(plain[name, t], edited[name, t]) is Change.SAME for t in range(12))
    }
    assert touched == {operation.layer.name for operation in operations} - same
    first = found.cells.next_different(7, 3)
    assert first is not None and (first[0], operations[first[1]].layer.name) == (7, "key_with_bonus")


def test_the_worst_of_spans_is_that_of_their_cells_one_by_one() -> None:
    rng = np.random.default_rng(5)
    shape = (23, 9)
    changes, edited = rng.choice([0, 1, 1, 2, 4, 5], shape).astype(np.uint8), rng.random(shape) < 0.05
    relative = np.where(changes == CODES[Change.NUMBER], rng.random(shape), 0.0)
    cells = SpreadCells(after_edit().frame.program, 23, 1, changes, relative, edited)
    spans = [(0, 23), (0, 1), (5, 9), (9, 9), (4, 30), (20, 23), (23, 25), (40, 41), (2, 3)]
    for operations in (None, [3], [8, 0, 4]):
        kept = list(range(9)) if operations is None else operations
        for (first, end), found in zip(spans, cells.worst_in(spans, operations), strict=True):
            ones = [cells.at(row, index) for row in range(first, min(max(end, first + 1), 23)) for index in kept]
            worst = max((0 if one.change is None else CODES[one.change] for one in ones), default=0)
            assert (0 if found.change is None else CODES[found.change]) == worst, (first, end, operations)
            assert found.relative == max((one.relative for one in ones), default=0.0)
            assert found.is_edited is any(one.is_edited for one in ones)


def test_the_worst_of_the_same_cells_is_looked_for_once_and_not_all_is_remembered() -> None:
    none = np.zeros((400, 3))
    cells = SpreadCells(after_edit().frame.program, 400, 1, none.astype(np.uint8), none, none.astype(bool))
    spans = [(0, 3), (3, 400)]
    found = cells.worst_in(spans, [2])
    assert cells.worst_in(list(spans), [2]) is found
    assert cells.worst_in(spans, [1]) is not found and cells.worst_in(spans) is not found
    for first in range(400):
        cells.worst_in([(first, 400)])
    assert cells.worst_in(spans, [2]) is not found


def test_what_became_of_the_outputs_in_facts_and_words() -> None:
    debugger = after_edit()
    found = debugger.spread()
    ours = debugger_of(RWKV)
    ours.last()
    theirs = after_edit()
    theirs.last()
    for change, a, b in zip(found.outputs, ours.machine.outputs or (), theirs.machine.outputs or (), strict=True):
        rows = [t for t in range(12) if not np.array_equal(a[t], b[t], equal_nan=True)]
        assert [row.iteration for row in change.changed] == rows and change.first == rows[0]
        assert (change.rows, change.different) == (12, len(rows))
        within = [t for t in rows if np.allclose(a[t], b[t], rtol=1e-5, atol=1e-6)]
        assert [row.iteration for row in change.within] == within, "bits and tolerance are two facts"
    count, first = len(found.outputs[0].changed), found.outputs[0].first
    assert spread_sentence(found) == f"outputs mixed and wkv changed in {count} of 12 rows, first in iteration {first}"
    is_off_by_a_digit = first == 7  # the last digit of a product differs from processor to processor
    assert output_notes(found.outputs[0]) == "4 rows mended" + ("; row 7 only by 1e-6" if is_off_by_a_digit else "")
    debugger.branch("original")
    assert debugger.pinned is not None and debugger.pinned.branch == "edit-1"
    back = debugger.spread()
    assert output_notes(back.outputs[0]).startswith("4 rows broken")


def test_beside_an_iteration_every_other_one_is_compared_with_it_and_beside_the_one_before_with_that(
    plain: Run,
) -> None:
    debugger = debugger_of(RWKV)
    debugger.goto("wkv@5")
    tick, run = debugger.machine.tick, loop_run(debugger.machine.stack)
    for called, of in (("3", lambda _t: 3), ("before", lambda t: t - 1)):
        debugger.pin(called)
        assert debugger.pinned is not None
        walk = debugger.moments.spread(debugger.pinned)
        assert walk is not None and not walk.go(lambda: False)
        found = walk.view(run)
        cells = found.cells
        assert found.is_complete and not found.is_of_runs and cells is not None and not found.outputs
        for index, operation in enumerate(debugger.frame.program.operations):
            name = operation.layer.name
            for t in range(12):
                one = cells.at(t, index)
                if of(t) < 0:
                    assert one.change is None
                    continue
                a, b = plain[name, of(t)], plain[name, t]
                assert one.change is expected(a, b), (called, name, t)
                if one.change is Change.NUMBER:
                    with np.errstate(all="ignore"):
                        gap, larger = np.abs(b.astype(float) - a), np.maximum(np.abs(a.astype(float)), np.abs(b))
                        relative = np.nanmax(np.where(larger > 0, gap / larger, 0))
                    assert one.relative == pytest.approx(relative, rel=1e-5)
        assert debugger.machine.tick == tick, "the present stays"
        with pytest.raises(stepper.UsageError, match="between two branches"):
            debugger.spread()
    debugger.set_value("wkv[0,0]", 1.0)
    debugger.pin("3")
    again = debugger.moments.spread(debugger.pinned)
    assert again is not walk, "an edit makes another run"


def test_what_the_loop_carries_and_puts_out_is_known_of_a_too(plain: Run) -> None:
    debugger = after_edit()
    cells = debugger.spread().cells
    assert cells is not None and cells.began == 7
    rows = IterationStatistics(debugger.timeline).view(1).rows
    seen = 0
    for one, theirs in zip(rows, cells.theirs, strict=True):
        if theirs is not None and one.row.producer is not None:
            name = one.row.producer.name
            for t in range(7, 12):
                np.testing.assert_array_equal(theirs.over(t, t + 1), np.ravel(plain[name, t]))
            seen += 1
    assert seen >= 4


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
    assert [row.iteration for row in change.changed] == [4, 5] and change.first == 4
    assert [row.difference.largest for row in change.changed] == [45, 45]


def test_another_number_of_iterations_is_compared_as_far_as_both_go(tmp_path: Path) -> None:
    debugger = debugger_of(SAMPLES / "for_loop")
    debugger.step(8)
    debugger.set_trip_count(3)
    found = debugger.spread()
    assert found.is_complete and found.cells is not None
    changed = [change for change in found.outputs if change.lengths[0] != change.lengths[1]]
    assert changed and all(change.lengths[1] == 3 for change in changed)
    assert "3 rows, not" in spread_sentence(found)


def test_iterations_that_a_does_not_run_are_there_and_only_now(tmp_path: Path) -> None:
    debugger = debugger_of(SAMPLES / "while_loop")
    debugger.run_to("triple_plus_one@2")
    debugger.set_value("triple_plus_one", 27)  # 27 again: 3 iterations more than the 111 of the original
    found = debugger.spread()
    assert found.is_complete and found.cells is not None and found.cells.iterations == 114
    assert found.cells.step == 1
    changes = np.asarray(found.cells.changes)
    assert (changes[111:] == CODES[Change.ADDED]).all() and not (changes[:111] == CODES[Change.ADDED]).any()
    assert found.cells.at(113, 0).change is Change.ADDED and found.cells.touched.all()
    again = debugger_of(SAMPLES / "for_loop")
    again.step(8)
    again.set_trip_count(3)  # only A runs the others
    cells = again.spread().cells
    assert cells is not None and cells.iterations <= 3 and not (cells.changes == CODES[Change.ADDED]).any()


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
        looked.append(walk.view(loop_run(debugger.machine.stack)))
    assert len(looked) >= 190 and looked[5].compared < looked[50].compared
    cells = debugger.spread().cells
    assert cells is not None and cells.step > 1 and len(cells.changes) * cells.step >= 300 and cells.changes.size <= 64
    index = next(k for k, one in enumerate(cells.program.operations) if one.layer.name == "added")
    codes = cells.changes[:, index]
    assert (codes[: 100 // cells.step] == CODES[Change.SAME]).all()
    assert (codes[-(-100 // cells.step) : 300 // cells.step] == CODES[Change.NUMBER]).all()


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


@pytest.mark.parametrize(
    ("part", "more"),
    [("", " and 7 more elements of it"), ("[0,:3]", " and 2 more elements of it"), ("[0,2]", "")],
)
def test_an_edit_of_several_elements_says_of_how_many(part: str, more: str) -> None:
    debugger = debugger_of(SAMPLES / "rwkv_overflow")
    debugger.run_to("key@3")
    before = np.array(debugger.value("key"))
    debugger.set_value(f"key{part}", 5.0)
    element = (0, 2) if part == "[0,2]" else (0, 0)
    told = set_text(debugger.spread())
    assert told == f"key[{','.join(map(str, element))}]@3 {before[element]!s} → 5.0{more} by hand"


def test_what_an_operation_gave_in_a_is_looked_up_when_it_is_asked_for_after_all_was_compared(plain: Run) -> None:
    debugger = after_edit()
    debugger.spread()
    walk = debugger.moments.spread(debugger.pinned)
    assert walk is not None and walk.is_over
    program = debugger.frame.program
    index = next(k for k, one in enumerate(program.operations) if one.layer.name.endswith("exp_key"))
    operation = program.operations[index]
    walk.follow({id(program): [(index, 0, operation.outputs[0])]})
    assert not walk.is_over
    while walk.go(lambda: True):  # an iteration at a time
        pass
    cells = walk.view(loop_run(debugger.machine.stack)).cells
    assert walk.is_over and cells is not None
    (place,) = (k for k, row in enumerate(cells.rows) if row.kind is RowKind.BIRTH)
    theirs = cells.theirs[place]
    assert theirs is not None
    for t in range(cells.began, 12):
        np.testing.assert_array_equal(theirs.over(t, t + 1), np.ravel(plain[operation.layer.name, t]))
    found = walk.view(None)
    assert [(one.program, one.outer) for one in found.runs] == [(program, ())]


@pytest.mark.parametrize("holds, iteration, length", [(False, 1, 2), (True, 2, 4)], ids=["T→F", "F→T"])
def test_a_condition_that_was_set_differs_where_the_operation_behind_it_does_not(
    tmp_path: Path, holds: bool, iteration: int, length: int
) -> None:
    debugger = opened(tmp_path, countdown(), np.array([3], np.int64))  # the body says T, T, F
    debugger.goto_iteration(iteration)
    debugger.set_condition(holds)
    found = debugger.spread()
    (cells,) = (one for one in found.runs if one.program.path)
    row = next(one for one in cells.rows if one.kind is RowKind.CONDITION)
    column, producer = cells.column_of(row), row.producer
    assert column is not None and producer is not None and cells.iterations == length
    computed = cells.column(producer.id, 0)
    assert computed is not None
    for at in range(iteration + 1):
        expected = Change.TRUTH if at == iteration else Change.SAME
        assert (cells.at(at, column).change, cells.at(at, computed).change) == (expected, Change.SAME)


@pytest.mark.parametrize("shape", [(0, 3), (2, 0), (0, 0)])
def test_an_output_without_elements_has_no_rows_that_differ(shape: tuple[int, ...]) -> None:
    a = np.zeros(shape, np.float32)
    found = module.output_change("out", a, a.copy(), module._Pieces(0, 1, is_backward=False))
    assert (found.rows, found.different, found.changed) == (shape[0], 0, ())
