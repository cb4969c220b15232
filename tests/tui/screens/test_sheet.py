"""The sheet by keys: the Collatz course of 27, what overflows in the RWKV sample, loops in loops."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

import stepper
from stepper.debug.debugger import Debugger
from stepper.debug.table.row_sets import RowSet
from tests.debug.debugged import SAMPLES, sample
from tests.tui.driven import Driven, drive, key_event
from tests.tui.screens.overview.test_told_values import without_loops
from tests.tui.screens.test_whole_run import sorting, two_nests
from tests.tui.test_links import click
from tui.screens.overview.pane import OverviewPane
from tui.screens.sheet.inspector import difference_text
from tui.screens.sheet.pane import SheetPane, shape_of_time
from tui.screens.sheet.screen import SheetScreen
from tui.session.layout import put_layout
from tui.theme import Look

SIZES = pytest.mark.parametrize("size", [(80, 24), (120, 40), (200, 60)], ids=str)


def collatz() -> list[int]:
    """The numbers after the start until 1, as many as the loop made."""
    number = int(np.load(SAMPLES / "while_loop" / "inputs.npz")["start"].item())
    course = []
    while number != 1:
        number = 3 * number + 1 if number % 2 else number // 2
        course.append(number)
    return course


def sheet_of(driven: Driven) -> SheetPane:
    pane = driven.pane("sheet")
    assert isinstance(pane, SheetPane)
    return pane


def row(driven: Driven, name: str) -> list[str]:
    """The words of the first row of this name, behind it."""
    lines = (one[3:] for one in driven.text("sheet").splitlines())
    line = next(one for one in lines if one.startswith((f"{name} ", f"{name}[")))
    return line.removeprefix(name).split("│")[0].split()


def at(driven: Driven) -> tuple[str, int | None]:
    """The row and the iteration of the cursor."""
    model = sheet_of(driven).model
    assert model.view is not None and model.at is not None
    return model.view.topic.values[model.at.value].name, model.iteration


# --- layout in time ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("total", [0, 1, 5, 12, 111, 12_000_000])
@pytest.mark.parametrize("room", [9, 20, 41, 90, 140])
def test_columns_are_wide_around_the_cursor_and_each_iteration_stands_in_exactly_one(total: int, room: int) -> None:
    for cursor in {0, total // 2, max(total - 1, 0)}:
        shape = shape_of_time(total, cursor, room)
        assert shape.left[0] == 0 and shape.left[-1] == shape.first and shape.right[0] == shape.end
        assert shape.right[-1] == total and list(shape.bounds) == sorted(shape.bounds)
        assert not total or shape.first <= cursor < shape.end, "the cursor's column is wide"
        cells = 9 * (shape.end - shape.first) + len(shape.left) - 1 + len(shape.right) - 1
        assert cells <= max(room, 9) + 2


# --- rows -------------------------------------------------------------------------------------------------------------


@SIZES
def test_it_opens_on_what_the_loop_carries_with_the_numbers_of_the_run(size: tuple[int, int]) -> None:
    course = collatz()

    async def script(driven: Driven) -> None:
        await driven.ran()
        await driven.type("view sheet")
        await driven.filled()
        assert "until_one   111 iterations" in driven.text("sheet")
        assert row(driven, "number'")[:2] == [str(course[0]), str(course[1])]
        assert row(driven, "steps'")[:2] == ["1", "2"] and row(driven, "goes on?")[0] == "T"
        await driven.press("end")
        await driven.filled()
        assert at(driven) == ("goes on?", 110)
        assert row(driven, "number'")[-1] == "1" and row(driven, "goes on?")[-1] == "F"
        assert "±" not in row(driven, "goes on?")[0], "all of those before go on"
        await driven.press("home")
        await driven.filled()
        assert "±" in row(driven, "goes on?")[-1], "in the last part some go on, and the last does not"

    drive("while_loop", script, size=size, runs=True)


def test_every_operation_has_a_row_in_the_order_of_execution_and_numbers_are_those_of_the_run() -> None:
    model = stepper.read_model(SAMPLES / "rwkv_overflow" / "model.xml")
    debugger = Debugger(model, dict(np.load(SAMPLES / "rwkv_overflow/inputs.npz")))
    body = next(one for one in debugger.machine.compiled.programs if one.path)

    async def script(driven: Driven) -> None:
        await driven.ran()
        await driven.type("rows all")
        await driven.filled()
        model = sheet_of(driven).model
        assert model.view is not None
        names = [value.name for value in model.view.topic.values]
        assert names == [operation.layer.name for operation in body.operations]
        for name in ("key", "wkv", "mixed"):
            await driven.type(f"sheet-search {name}")
            await driven.filled()
            for iteration in (0, 7, 11):
                model.go_to(iteration)
                await driven.filled()
                value = np.asarray(debugger.value(f"time_mixing::{name}@{iteration}"), np.float64)
                expected = float(np.sqrt(np.mean(np.square(value))))
                assert isinstance(model.number, float)
                assert np.isclose(model.number, expected, rtol=1e-6, equal_nan=True), (name, iteration)

    drive("rwkv_overflow", script, size=(160, 48), runs=True)


def test_f_goes_through_the_sets_and_what_a_set_lacks_is_said() -> None:
    async def script(driven: Driven) -> None:
        await driven.ran()
        await driven.type("view sheet")
        seen = [sheet_of(driven).found_rows]
        await driven.press("f")
        await driven.filled()
        seen.append(sheet_of(driven).found_rows)
        assert seen == [RowSet.CARRIED, RowSet.ALL]
        for rows in (RowSet.WHY, RowSet.ELEMENTS, RowSet.CARRIED):  # nothing changed, nothing is watched
            await driven.press("f")
            await driven.filled()
            assert sheet_of(driven).found_rows is rows
        await driven.type("rows watched")
        assert "no value of this loop is watched" in driven.text("answer")
        await driven.type("rows changed")
        assert "edit a value" in driven.text("answer")
        await driven.type("rows nothing")
        assert "no set of rows; there are carried, all" in driven.text("answer")
        await driven.type("watch key[0,3]")
        await driven.type("rows watched")
        await driven.filled()
        assert "89.200" in driven.text("sheet") or "key" in driven.text("sheet")
        await driven.type("set key@7[0,3] = 80")
        await driven.filled()
        await driven.type("rows changed")
        await driven.filled()
        names = {value.name for value in sheet_of(driven).model.view.topic.values}  # type: ignore[union-attr]
        assert {"key", "exp_key", "wkv", "mixed"} <= names and not {"receptance", "token_part"} & names
        assert row(driven, "key")[1] == "=" * len(row(driven, "key")[1]), "before iteration 7 all is the same"
        assert re.search(r"= +8.980 ✓ +9.104", driven.text("sheet")), "wkv is the same in 7 and finite now in 8"

    drive("rwkv_overflow", script, size=(120, 40), runs=True)


def test_o_shows_the_path_from_the_input_and_the_back_edges_that_it_came_by() -> None:
    async def script(driven: Driven) -> None:
        await driven.ran()
        await driven.press("o")
        await driven.filled()
        text = driven.text("sheet")
        assert "why wkv@8[0,3] is NaN" in text and "exp(89.2) > f32 maximum" in text
        assert "embedded[7,6] = -20.892" in text
        assert "↺ numerator 7 → 8" in text and "↺ denominator 7 → 8" in text
        assert at(driven) == ("exp_key", 7), "where the Inf appears first"
        assert "exp(89.200) = +Inf" in driven.text("inspector")
        assert "exp overflows f32 above 88.723" in driven.text("inspector")

    drive("rwkv_overflow", script, size=(200, 60), runs=True)


def test_breakpoints_and_the_moment_are_marked_in_their_rows() -> None:
    async def script(driven: Driven) -> None:
        await driven.ran()
        await driven.press("o", "b")
        await driven.filled()
        assert [one.description.text for one in driven.state.breaks] == ["time_mixing::exp_key@7"]
        line = next(one for one in driven.text("sheet").splitlines() if one[3:].startswith("exp_key"))
        assert line[2] == "◆" or line[2] == "●"
        await driven.press("b")
        await driven.filled()
        assert not driven.state.breaks
        await driven.type("goto wkv@8")
        await driven.type("rows all")
        await driven.filled()
        assert "▸" in row(driven, "wkv") and "▸" not in row(driven, "gated") and "▸8" in driven.text("sheet")

    drive("rwkv_overflow", script, size=(120, 40), runs=True)


def test_x_goes_through_the_cells_where_nan_and_inf_begin() -> None:
    async def script(driven: Driven) -> None:
        await driven.ran()
        await driven.type("rows all")
        seen = []
        for _ in range(4):
            await driven.press("x")
            await driven.filled()
            seen.append(at(driven))
        assert seen == [("exp_key", 7), ("denominator_next", 7), ("weighted", 7), ("numerator_next", 7)]
        await driven.press("X")
        await driven.filled()
        assert at(driven) == ("weighted", 7)

    drive("rwkv_overflow", script, size=(120, 40), runs=True)


@pytest.mark.parametrize("size", [(80, 24), (120, 40), (160, 48), (200, 60)], ids=str)
def test_the_sheet_at_every_size(size: tuple[int, int]) -> None:
    async def script(driven: Driven) -> None:
        await driven.ran()
        await driven.press("o")
        await driven.filled()
        driven.golden(f"sheet_{size[0]}x{size[1]}", "sheet", "inspector")

    drive("rwkv_overflow", script, size=size, runs=True)


def test_in_ascii_the_sheet_says_the_same() -> None:
    async def script(driven: Driven) -> None:
        await driven.ran()
        await driven.press("o")
        await driven.filled()
        text = driven.text("sheet") + driven.text("inspector")
        assert text.isascii() and "embedded[7,6] = -20.892" in text and "exp(89.200) = +Inf" in text

    drive("rwkv_overflow", script, size=(120, 40), runs=True, look=Look(ascii=True, plain=True))


# --- in and out -------------------------------------------------------------------------------------------------------


def test_enter_goes_into_loops_ifs_and_tensors_and_esc_comes_out() -> None:
    course = sorting()

    async def script(driven: Driven) -> None:
        await driven.ran()
        await driven.type("rows all")
        await driven.type("sheet-search pairs_of_neighbours")
        await driven.press("right", "enter")
        await driven.filled()
        assert "model › passes @1 › pairs_of_neighbours   3 iterations" in driven.text("sheet")
        await driven.type("sheet-search values_next")
        await driven.press("enter")
        await driven.filled()
        numbers = [row[-3:] for row in map(str.split, driven.text("sheet").splitlines()) if "values_next" in row[:2]]
        assert [[float(one) for one in numbers[k]] for k in range(5)] == [
            [step[k] for step in course[1]] for k in range(5)
        ]
        await driven.press("escape")
        await driven.filled()
        assert at(driven)[0] == "values_next" and "pairs_of_neighbours   3" in driven.text("sheet")
        await driven.press("escape")
        await driven.filled()
        assert at(driven) == ("pairs_of_neighbours", 1)
        await driven.press("escape")
        await driven.filled()
        assert at(driven)[0] == "passes" and not sheet_of(driven).model.frame.program.path  # type: ignore[union-attr]
        await driven.press("enter")
        await driven.filled()
        assert "passes   3 iterations" in driven.text("sheet")
        await driven.press("q")
        assert driven.app.front.view_name == "overview"

    drive("nested_loop", script, size=(160, 48), runs=True)


def test_enter_on_an_if_goes_into_the_side_that_ran() -> None:
    course = [27, *collatz()]

    async def script(driven: Driven) -> None:
        await driven.ran()
        await driven.type("rows all")
        view = sheet_of(driven).model.view
        assert view is not None
        branch = next(k for k, value in enumerate(view.topic.values) if value.target.layer.type == "If")
        for iteration in (0, 1):
            sheet_of(driven).model.go_to(iteration, branch)
            await driven.filled()
            await driven.press("enter")
            await driven.filled()
            frame = sheet_of(driven).model.frame
            assert frame is not None
            kinds = {operation.layer.type for operation in frame.program.operations}
            assert ("Multiply" in kinds) is (course[iteration] % 2 == 1), "3 n + 1 of an odd number"
            await driven.press("escape")
            await driven.filled()

    drive("while_loop", script, size=(120, 40), runs=True)


@SIZES
def test_a_model_without_loops_has_one_column(size: tuple[int, int]) -> None:
    async def script(driven: Driven) -> None:
        await driven.ran()
        await driven.type("view sheet")
        await driven.filled()
        assert [row(driven, name)[-1] for name in ("exp", "minus", "log")] == ["+Inf", "-Inf", "NaN"] or "NaN" in row(
            driven, "log"
        )
        await driven.press("escape")
        assert driven.app.front.view_name == "overview"

    drive(without_loops(), script, size=size, runs=True)


def test_opened_from_the_overview_it_is_of_the_loop_of_the_cursor(tmp_path: Path) -> None:
    async def script(driven: Driven) -> None:
        await driven.ran()
        pane = driven.app.focused_pane
        assert isinstance(pane, OverviewPane)
        while pane.cards[pane.at.card].name != "second":
            await driven.press("tab")
        await driven.type("view sheet")
        await driven.filled()
        assert "model › second   3 iterations" in driven.text("sheet")
        assert row(driven, "state'")[-3:] == ["12", "16", "20"], "8 ones of the first loop, and 4 more each"

    drive(two_nests(tmp_path), script, size=(120, 40), runs=True)


def test_space_goes_to_the_moment_of_the_cell_and_a_step_takes_the_cursor_along() -> None:
    async def script(driven: Driven) -> None:
        await driven.type("rows all")
        await driven.filled()
        await driven.type("sheet-search key")
        sheet_of(driven).model.go_to(7)
        await driven.filled()
        await driven.press("space")
        await driven.filled()
        frame = driven.state.frame
        assert driven.state.iteration == 7 and frame is not None and frame.layers[frame.moment].name == "key"
        await driven.type("view sheet")
        await driven.filled()
        await driven.press("right_square_bracket")
        await driven.filled()
        assert driven.state.iteration == 8 and at(driven)[1] == 8

    drive("rwkv_overflow", script, size=(120, 40))


# --- order, filter, search, files -------------------------------------------------------------------------------------


def test_it_is_ordered_filtered_searched_and_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    course = collatz()
    order = sorted(range(len(course)), key=lambda k: -course[k])

    async def script(driven: Driven) -> None:
        await driven.type("sheet number, steps")
        await driven.filled()
        assert row(driven, "number")[:2] == [str(course[0]), str(course[1])]
        await driven.press("greater_than_sign")
        await driven.filled()
        assert "ordered by number down" in driven.text("sheet")
        assert row(driven, "number")[:2] == [str(course[order[0]]), str(course[order[1]])]
        await driven.press("greater_than_sign")
        await driven.filled()
        assert "ordered by" not in driven.text("sheet")
        await driven.type("filter > 1000")
        await driven.filled()
        big = [k for k in range(len(course)) if course[k] > 1000]
        assert f"{len(big)} of {len(course)} iterations" in driven.text("sheet")
        await driven.press("home")
        await driven.filled()
        assert at(driven) == ("number", big[0])
        await driven.press("vertical_line")
        assert driven.app.front.prompt.value == "filter number > 1000"
        driven.app.front.prompt.value = "filter number > 1000 and steps > 50 and number < prev(number)"
        await driven.press("enter")
        await driven.filled()
        fell = [k for k in big if k >= 50 and course[k] < course[k - 1]]
        await driven.type("save sheet.csv")
        await driven.type("save sheet.npy")
        lines = (tmp_path / "sheet.csv").read_text().splitlines()
        assert lines == ["@,number,steps", *(f"{k},{course[k]},{k + 1}" for k in fell)]
        assert np.load(tmp_path / "sheet.npy").tolist() == [[course[k], k + 1] for k in fell]
        await driven.press("y")
        assert driven.app.clipboard.splitlines() == lines
        await driven.press("Y")
        assert driven.app.clipboard.startswith("until_one::")
        await driven.type("filter number >")
        assert "expected" in driven.text("answer")
        await driven.type("filter off")
        await driven.type("sheet-search > 9000")
        await driven.filled()
        first = next(k for k, number in enumerate(course) if number > 9000 and k > fell[0])
        assert at(driven)[1] in {k for k, number in enumerate(course) if number > 9000} and first
        await driven.type("sheet-search number > 100000")
        assert "nothing further" in driven.text("answer")

    drive("while_loop", script, size=(120, 40))


def test_a_click_puts_the_cursor_and_on_a_set_shows_its_rows() -> None:
    async def script(driven: Driven) -> None:
        await driven.ran()
        await driven.type("view sheet")
        await driven.filled()
        await click(driven, "sheet", row(driven, "denominator'")[2])
        await driven.filled()
        assert at(driven) == ("denominator'", 1)
        await click(driven, "sheet", " all ")
        await driven.filled()
        assert sheet_of(driven).found_rows is RowSet.ALL

    drive("rwkv_overflow", script, size=(120, 40), runs=True)


def test_beside_a_the_inspector_says_how_far_it_is_and_the_column_of_a_is_marked() -> None:
    model = stepper.read_model(SAMPLES / "rwkv_overflow" / "model.xml")
    debugger = Debugger(model, dict(np.load(SAMPLES / "rwkv_overflow/inputs.npz")))
    key = np.asarray(debugger.value("time_mixing::key@0:12"), np.float64).reshape(12, 8)

    async def script(driven: Driven) -> None:
        await driven.ran()
        await driven.type("goto key@7")
        await driven.type("A 6")
        await driven.type("sheet key")
        await driven.type("sheet-search [0,3]")
        await driven.filled()
        assert at(driven)[1] == 7 and "A 6" in driven.text("sheet")
        line = next(one for one in driven.text("inspector").splitlines() if one.strip().startswith("A @6"))
        numbers = [float(word) for word in re.findall(r"[+-]?\d+\.\d+", line)]
        assert np.allclose(numbers, [key[6, 3], key[7, 3] - key[6, 3]], atol=0.002)

    drive("rwkv_overflow", script, size=(160, 48), runs=True)


def test_differences_have_their_sign_and_only_one_finite_number_is_said() -> None:
    def written(value: float, _room: int) -> str:
        return f"{value:g}"

    assert difference_text(1.0, 3.0, written) == "+2" and difference_text(3.0, 1.0, written) == "-2"
    assert difference_text(np.nan, 1.0, written) == "fixed" and difference_text(1.0, np.inf, written) == "broken"
    assert difference_text(np.nan, np.nan, written) == "the same" and difference_text(True, False, written) == "another"
    assert difference_text(None, 1.0, written) == ""


def test_it_is_kept_with_a_session() -> None:
    async def script(driven: Driven) -> None:
        await driven.ran()
        await driven.type("rows all")
        await driven.type("filter nan")
        await driven.filled()
        kept = driven.app.layout()
        assert kept["view"] == "sheet"
        await driven.press("q")
        put_layout(driven.app, kept)
        await driven.filled()
        assert sheet_of(driven).found_rows is RowSet.ALL and sheet_of(driven).model.level.filter == "nan"

    drive("rwkv_overflow", script, size=(120, 40), runs=True)


def test_keys_typed_before_the_sheet_is_there_wait_for_it() -> None:
    async def script(driven: Driven) -> None:
        await driven.ran()
        await driven.type("goto key@7")
        for key in ("number_sign", "down", "down", "left"):
            driven.app.post_message(key_event(key))
        await driven.filled()
        assert isinstance(driven.app.front, SheetScreen)
        model = sheet_of(driven).model
        assert model.level.row == 2 and model.iteration == 6

    drive("rwkv_overflow", script, size=(120, 40), runs=True)


def test_a_loop_that_fails_shows_what_ran_and_says_so() -> None:
    async def script(driven: Driven) -> None:
        await driven.type("sheet values_next")
        await driven.filled()
        assert not driven.app._faults

    drive(sample("nested_loop"), script, size=(120, 40))
