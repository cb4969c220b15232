"""Rows of the sheet: sets of rows are those of the model, numbers those of the run, and frames lead in and out."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from stepper.debug.debugger import Debugger
from stepper.debug.overview.overview_facts import RowKind
from stepper.debug.story.story_facts import StoryQuestion
from stepper.debug.table.columns import SheetRequest
from stepper.debug.table.row_sets import (
    RowSet,
    RowsFound,
    SheetFrame,
    SheetQuestion,
    first_frame,
    frame_inside,
    frames_around,
    rows_of,
)
from stepper.debug.table.sheets import Sheet, look_at
from stepper.engine.program import Program
from stepper.errors import UsageError
from tests.debug.debugged import opened, sample
from tests.engine.nested_models import rows_of_rows
from tests.tables import each_row


def read(debugger: Debugger, found: RowsFound) -> Sheet:
    sheet = Sheet(debugger.timeline, found.topic)
    while sheet.read_on(1):
        pass
    return sheet


def names(found: RowsFound) -> list[str]:
    return [value.name for value in found.topic.values]


def body_called(debugger: Debugger, *path: str) -> Program:
    programs = debugger.machine.compiled.programs
    return next(one for one in programs if tuple(layer.name for layer in one.path) == path)


def test_beside_the_graph_of_the_model_no_iteration_has_a_row() -> None:
    debugger = sample("for_loop")
    debugger.pin("balance_next@1")
    found = rows_of(debugger, SheetQuestion(SheetFrame(debugger.machine.compiled.main), RowSet.ALL))
    look = look_at(debugger, read(debugger, found), SheetRequest(columns=(0, 1), rows=1))
    assert look.a is not None and "does not run here" in look.a.problem and not look.a.numbers


@each_row("name", ["nested_loop", "while_loop", "date_normaliser", "growing_tensor", "reverse"])
def test_all_operations_of_every_graph_have_the_numbers_that_their_addresses_give(name: str) -> None:
    debugger = sample(name)
    for program in debugger.machine.compiled.programs[1:]:
        frame = SheetFrame(program, (0,) * max(len(program.path) - 1, 0))
        try:
            found = rows_of(debugger, SheetQuestion(frame, RowSet.ALL))
            sheet = read(debugger, found)
        except UsageError:
            continue  # an empty graph, or one that does not run there
        shown = [one for one in program.operations if one.outputs]
        assert len(found.topic.values) == len(shown)
        last = sheet.total - 1
        for column in range(0, len(sheet.columns), 3):
            (number,) = sheet.cells(column, [last])
            value = sheet.value_at(column, last)
            if number is None or value is None or np.size(value) != 1:
                continue
            address = str(sheet.address_of(column, last + sheet.topic.begin))
            told = np.asarray(debugger.value(address)).reshape(-1)[0]
            assert np.array_equal(np.float64(number), np.float64(told), equal_nan=True), address


def test_what_is_carried_has_its_kind_and_the_name_with_a_mark_that_can_be_typed() -> None:
    debugger = sample("date_normaliser")
    found = rows_of(debugger, SheetQuestion(first_frame(debugger), RowSet.CARRIED))
    kinds = {name: mark.kind for name, mark in zip(names(found), found.marks, strict=True) if mark is not None}
    assert kinds["tok'"] is RowKind.BACK_EDGE and kinds["goes on?"] is RowKind.CONDITION
    sheet = read(debugger, found)
    at = names(found).index("tok'")
    assert sheet.cells(at, [10]) == [int(np.asarray(debugger.value("tok'@10")).item())]


def test_a_path_begins_where_the_nan_comes_from_and_lists_what_is_elsewhere() -> None:
    debugger = sample("rwkv_overflow")
    frame = first_frame(debugger)
    found = rows_of(debugger, SheetQuestion(frame, RowSet.WHY, "time_mixing::wkv@8[0,3]"))
    assert found.story is not None and found.iteration == 7 and names(found)[found.row] == "exp_key"
    elements = dict(zip(names(found), (value.index for value in found.topic.values), strict=True))
    assert elements["token"] == (0, 6) and elements["exp_key"] == elements["wkv"] == (0, 3)
    debugger.last()
    ended = rows_of(debugger, SheetQuestion(frame, RowSet.WHY, story=StoryQuestion("time_mixing", ends=True)))
    assert ended.story is not None and ended.story.end is not None
    with pytest.raises(UsageError, match="put the cursor on a value"):
        rows_of(debugger, SheetQuestion(frame, RowSet.WHY))


def test_what_an_edit_changed_is_what_differs_from_the_original() -> None:
    debugger = sample("rwkv_overflow")
    frame = first_frame(debugger)
    with pytest.raises(UsageError, match="no other run to compare"):
        rows_of(debugger, SheetQuestion(frame, RowSet.CHANGED))
    debugger.goto("key@7")
    debugger.set_value("key[0,3]", 80)
    found = rows_of(debugger, SheetQuestion(frame, RowSet.CHANGED))
    original = sample("rwkv_overflow")
    expected = []
    for operation in frame.program.operations:
        address = f"time_mixing::{operation.layer.name}@0:12"
        mine, theirs = np.asarray(debugger.value(address)), np.asarray(original.value(address))
        expected += [] if np.array_equal(mine, theirs, equal_nan=mine.dtype.kind == "f") else [operation.layer.name]
    assert names(found) == expected and "receptance" not in expected


def test_of_several_runs_of_a_loop_that_which_an_edit_changed_is_shown(tmp_path: Path) -> None:
    debugger = opened(tmp_path, rows_of_rows(), np.ones((4, 3), np.float32))
    debugger.goto("rows@1::elements@2::sum")
    debugger.set_value("sum", 5.0)
    inner = body_called(debugger, "rows", "elements")
    found = rows_of(debugger, SheetQuestion(SheetFrame(inner, (None,)), RowSet.CHANGED))
    assert found.changes is not None and found.changes.outer == (1,), "the sums of the other rows are as before"
    assert names(found) == ["sum"] and (found.row, found.iteration) == (0, 2)


def test_watched_values_of_the_loop_are_rows_and_expressions_are_none() -> None:
    debugger = sample("rwkv_overflow")
    frame = first_frame(debugger)
    for text in ("key[0,3]", "iter * 2", "wkv"):
        debugger.watch(text)
    found = rows_of(debugger, SheetQuestion(frame, RowSet.WATCHED))
    assert [value.base for value in found.topic.values] == ["key", "wkv"]


def test_frames_lead_into_loops_and_sides_of_ifs_and_out() -> None:
    debugger = sample("nested_loop")
    compiled = debugger.machine.compiled
    outer = SheetFrame(body_called(debugger, "passes"), ())
    layer = next(one.layer.id for one in outer.program.operations if one.layer.is_loop)
    inner = frame_inside(debugger, outer, layer, 1)
    assert inner.outer == (1,) and [one.name for one in inner.program.path] == ["passes", "pairs_of_neighbours"]
    assert [one.program for one in frames_around(inner, compiled)] == [compiled.main, outer.program, inner.program]
    with pytest.raises(UsageError, match="nothing inside"):
        frame_inside(debugger, outer, outer.program.operations[0].layer.id, 0)
    debugger = sample("while_loop")
    body = body_called(debugger, "until_one")
    branch = next(one for one in body.operations if one.layer.type == "If")
    odd = frame_inside(debugger, SheetFrame(body), branch.layer.id, 0)  # of 27
    even = frame_inside(debugger, SheetFrame(body), branch.layer.id, 1)  # of 82
    assert odd.program is not even.program
    assert any(one.layer.type == "Multiply" for one in odd.program.operations)


def test_the_models_own_graph_has_one_iteration_also_where_the_run_fails() -> None:
    debugger = sample("for_loop")
    found = rows_of(debugger, SheetQuestion(SheetFrame(debugger.machine.compiled.main), RowSet.CARRIED))
    sheet = read(debugger, found)
    assert sheet.total == 1 and sheet.is_complete
    assert debugger.machine.tick == 0, "the present stays"
