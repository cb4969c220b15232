"""An element that a value does not have is refused when a breakpoint on it is set, with its shape and what there is."""

from __future__ import annotations

from pathlib import Path

import pytest

from stepper.commands.interpreter import Interpreter
from stepper.errors import UsageError
from tests.debug import loops_to_break as models
from tests.debug.debugged import opened, sample
from tests.tables import each_row


def test_an_element_of_a_scalar_is_refused_before_anything_has_run() -> None:
    debugger = sample("while_loop")
    with pytest.raises(UsageError, match="'number' is a scalar, which has no elements"):
        debugger.break_when("changes until_one::number[3]")
    assert len(debugger.breakpoints) == 0


@each_row(
    ("index", "expected"),
    [
        ("99", "of the shape [5] has no element 99 along axis 0; there are 0 to 4, or -5 to -1 from the end"),
        ("-6", "has no element -6 along axis 0"),
        ("...,5", "has no element 5 along axis 0"),
        ("0,0", "has 1 axis, the index is for 2"),
        ("7:9", "has none of these elements along axis 0; there are 0 to 4"),
    ],
)
@each_row("what", ["changes", "grow>1e3", "diff>0.5"])
def test_an_element_out_of_range_is_refused_by_the_shape_that_the_value_has_now(
    what: str, index: str, expected: str
) -> None:
    debugger = sample("nested_loop")
    debugger.run_to("passes@0::pairs_of_neighbours@0")
    with pytest.raises(UsageError) as refused:
        debugger.break_when(f"{what} values[{index}]")
    assert expected in str(refused.value)


@each_row("index", ["0", "4", "-5", "...,-1", "3:9", "..."])
def test_an_element_that_is_there_is_accepted(index: str) -> None:
    debugger = sample("nested_loop")
    debugger.run_to("passes@0::pairs_of_neighbours@0")
    debugger.break_when(f"changes values[{index}]")


def test_the_shape_that_the_file_declares_counts_where_nothing_has_run(tmp_path: Path) -> None:
    debugger = opened(tmp_path, models.recurrence("Add", 1.0, 3))
    with pytest.raises(UsageError, match=r"'following' of the shape \[1\] has no element 1 along axis 0"):
        debugger.break_when("changes loop::following[1]")


def test_a_breakpoint_that_was_possible_stays_so_when_it_is_changed_to_what_is_not(tmp_path: Path) -> None:
    debugger = opened(tmp_path, models.recurrence("Add", 1.0, 3))
    number = debugger.break_when("changes loop::following[0]").number
    from stepper.debug.breakpoints.data_breakpoints import break_description

    with pytest.raises(UsageError, match="no element 2"):
        debugger.breakpoints.change(number, break_description("changes loop::following[2]"))
    assert debugger.breakpoints[number].description.text == "changes loop::following[0]"


def test_where_the_size_is_open_in_the_file_the_answer_says_what_may_be_missing() -> None:
    debugger = sample("nested_loop")
    note = "'order' has the shape [?]; iterations in which 'order[7]' does not exist are passed over"
    answer = Interpreter(debugger).execute("break changes order[7]")
    assert answer.lines == ("breakpoint 1: when changes order[7]", f"  {note}") and answer.data["note"] == note
    assert Interpreter(debugger).execute("break changes order[0]").lines == ("breakpoint 2: when changes order[0]",)
