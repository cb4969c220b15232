"""The sheet by keys: its rows, its cursor, which is the moment, and the findings, held against what numpy computes."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
from msgspec.structs import replace
from stepper_tui.screens.sheet.inspector import change_text
from stepper_tui.screens.sheet.pane import SheetPane, shape_of_time
from stepper_tui.session import put_layout
from stepper_tui.theme import Look
from textual import events

from stepper.debug.table.row_sets import RowSet
from stepper.debug.table.sheets import Sheet
from tests.debug.debugged import SAMPLES, opened, sample
from tests.models import Graph, Side, Value, carried, last
from tests.tables import few
from tests.tui.driven import Driven, drive, key_event
from tests.tui.time_models import collatz, counting_in_three, sorting

SIZES = pytest.mark.parametrize("size", [(80, 24), (120, 40), (200, 60)], ids=str)


# --- columns and rows -------------------------------------------------------------------------------------------------


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


def test_columns_stay_while_the_cursor_is_among_them_and_has_a_neighbour_on_both_sides() -> None:
    begin = shape_of_time(111, 50, 90)
    assert begin.end - begin.first >= 4
    for cursor in range(begin.first + 1, begin.end - 1):
        assert shape_of_time(111, cursor, 90, begin.first) == begin
    for cursor in (begin.first, begin.end - 1):
        moved = shape_of_time(111, cursor, 90, begin.first)
        assert moved == shape_of_time(111, cursor, 90) and moved.first < cursor < moved.end - 1
    first, last = shape_of_time(111, 0, 90), shape_of_time(111, 110, 90)
    assert shape_of_time(111, 0, 90, 0) == first and shape_of_time(111, 110, 90, last.first) == last, "at the ends"
    assert shape_of_time(40, 39, 90, last.first).end == 40, "fewer pass than before"


def test_a_move_among_the_columns_reads_nothing_of_the_table_anew() -> None:
    async def script(driven: Driven) -> None:
        await driven.do("home", "right", "right")
        asked: list[object] = []
        ask = driven.app.driver.ask

        def noted(question: object, *args: object, **named: object) -> None:
            asked.append(question)
            ask(question, *args, **named)  # type: ignore[arg-type]

        driven.app.driver.ask = noted  # type: ignore[assignment]
        await driven.do("right", "left")
        assert {type(one).__name__ for one in asked} == {"InspectCell"}

    drive("while_loop", script, size=(200, 60), runs=True)


@SIZES
def test_it_opens_on_what_the_loop_carries_with_the_numbers_of_the_run(size: tuple[int, int]) -> None:
    course = collatz()

    async def script(driven: Driven) -> None:
        assert driven.rows == "carried" and driven.at == ("goes on?", 110), "the end of the run"
        assert "111 iterations" in driven.text("sheet") and driven.state.view.tick == 0, (
            "and the run stands at the start"
        )
        assert driven.row("number'")[-1] == "1" and driven.row("goes on?")[-1] == "F"
        assert "±" not in driven.row("goes on?")[0], "all of those before go on"
        await driven.do("home")
        assert driven.row("number'")[:2] == [str(course[0]), str(course[1])]
        assert driven.row("steps'")[:2] == ["1", "2"] and driven.row("goes on?")[0] == "T"
        assert "±" in driven.row("goes on?")[-1], "in the last part some go on, and the last does not"

    drive("while_loop", script, size=size, runs=True)


def test_every_operation_has_a_row_in_the_order_of_execution_and_numbers_are_those_of_the_run() -> None:
    debugger = sample("rwkv_overflow")
    body = next(one for one in debugger.machine.compiled.programs if one.path)

    async def script(driven: Driven) -> None:
        await driven.do(":rows all")
        assert driven.names == [operation.layer.name for operation in body.operations]
        for name in ("key", "wkv", "mixed"):
            await driven.do(f":search {name}")
            for iteration in (0, 7, 11):
                driven.sheet.go_to(iteration)
                await driven.filled()
                value = np.asarray(debugger.value(f"time_mixing::{name}@{iteration}"), np.float64)
                found = driven.sheet.number
                assert driven.at == (name, iteration) and isinstance(found, float)
                assert np.isclose(found, np.sqrt(np.mean(np.square(value))), rtol=1e-6, equal_nan=True)

    drive("rwkv_overflow", script, size=(160, 48), runs=True)


def test_f_goes_through_the_sets_and_what_a_set_lacks_is_said() -> None:
    async def script(driven: Driven) -> None:
        seen = [driven.rows]
        for _ in range(4):  # nothing changed, nothing is watched
            await driven.do("f")
            seen.append(driven.rows)
        assert seen == ["carried", "all", "why", "elements", "carried"]
        await driven.checks(
            (":rows watched", "no value of this loop is watched"),
            (":rows changed", "there is no other run to compare with"),
            (":rows nothing", "no set of rows; there are carried, all"),
            (":watch key[0,3]", ":rows watched", "89.200"),
            (":set key@7[0,3] = 80", ":rows changed", "A  branch original"),
        )
        names = set(driven.names)
        assert {"key", "exp_key", "wkv", "mixed"} <= names and not {"receptance", "token_part"} & names
        assert re.search(r"= +8.980 ✓ +9.104", driven.text("sheet")), "wkv is the same in 7 and finite now in 8"

    drive("rwkv_overflow", script, size=(120, 40), runs=True)


def test_o_shows_the_path_from_the_input_and_plus_follows_more_of_it() -> None:
    async def script(driven: Driven) -> None:
        text = await driven.do("o")
        assert driven.at == ("exp_key", 7), "where the Inf appears first"
        for part in ("why exp_key@7[0,3] is ", "exp(89.200) = +Inf", "embedded[7,6] = -20.892"):
            assert part in text
        await driven.do(":why wkv@8[0,3]")
        text = driven.screen
        for part in (
            "why wkv@8[0,3] is NaN",
            "embedded[7,6] = -20.892",
            "↺ numerator 7 → 8",
            "↺ denominator 7 → 8",
            "Inf / Inf",
        ):
            assert part in text
        before = len(driven.names)
        for key in ("plus", "minus"):
            driven.sheet.go_to(7, driven.names.index("key"))
            await driven.do(key)
            assert (len(driven.names) > before) is (key == "plus")
        assert "trip count reached: it allows 12 iterations, for length is 12" in await driven.do("e")

    drive("rwkv_overflow", script, size=(200, 60), runs=True)


def test_x_goes_through_the_cells_where_nan_and_inf_begin() -> None:
    async def script(driven: Driven) -> None:
        seen = []
        for key in "xxxxX":
            await driven.do(key)
            seen.append(driven.at)
        assert seen[0] == ("wkv", 8) and seen[1] == ("exp_key", 7) and seen[-1] == seen[-3], seen
        assert seen[2] == seen[0] or len(set(seen)) > 2

    drive("rwkv_overflow", script, size=(120, 40), runs=True)


@pytest.mark.parametrize("size", few(1, [(80, 24), (120, 40), (160, 48), (200, 60)]), ids=str)
def test_the_sheet_at_every_size(size: tuple[int, int]) -> None:
    async def script(driven: Driven) -> None:
        await driven.do(":why wkv@8[0,3]")
        driven.golden(f"sheet_{size[0]}x{size[1]}", "sheet", "inspector")

    drive("rwkv_overflow", script, size=size, runs=True)


def test_a_value_that_grows_is_shown_by_what_each_iteration_adds_and_read_by_its_labels() -> None:
    tokens = ["2", "0", "2", "6", "10", "1", "1", "10", "2", "0", "12"]

    async def script(driven: Driven) -> None:
        await driven.do("home")
        assert driven.row("new in toks'")[:11] == tokens == driven.row("tok'")[:11]
        vocabulary = SAMPLES / "date_normaliser" / "vocab.json"
        assert "tok has 11 labels" in await driven.do(f":labels tok {vocabulary} output")
        assert driven.row("tok'")[:7] == list("2026-11")
        assert "cannot be read" in await driven.do(":labels tok nowhere.txt")

    drive("date_normaliser", script, size=(200, 60), runs=True)


def test_below_a_short_vector_each_element_has_its_line_and_below_a_long_one_each_part() -> None:
    order = np.load(SAMPLES / "nested_loop" / "inputs.npz")["values"].copy()
    passes = []
    while not passes or (order != passes[-1]).any():  # bubble sort; the last pass swaps nothing
        passes.append(order.copy())
        for at in range(len(order) - 1):
            order[at : at + 2] = np.sort(order[at : at + 2])
    numbers = [list(map(str, one)) for one in np.stack([*passes[1:], order], 1).astype(int)]

    async def script(driven: Driven) -> None:
        lines = driven.text("sheet").splitlines()
        at = next(k for k, line in enumerate(lines) if "order'" in line)
        assert [line.split() for line in lines[at + 1 : at + 6]] == [[f"[{k}]", *numbers[k]] for k in range(5)]
        await driven.pilot.resize_terminal(80, 24)
        await driven.settle()
        assert re.search(r"\[0\]…\[2\] mean +2.333 +2.333 +2.333\n +\[3\]…\[4\] mean +6.500", driven.text("sheet"))

    drive("nested_loop", script, size=(120, 40), runs=True, look=Look(plain=True))


def test_watches_have_rows_in_their_loop_and_say_elsewhere_how_much_of_them_there_is() -> None:
    async def script(driven: Driven) -> None:
        assert "a value of 'pairs_of_neighbours', which does not run here" in await driven.do(
            ":goto passes@0", ":watch swaps'"
        )
        await driven.do(":watch order[1]", ":watch order'[1]", ":rows watched")
        assert driven.row("order")[-3:] == ["1", "4", "2"], "before each pass"
        assert driven.row("order'")[-3:] == ["4", "2", "2"], "after each pass"
        await driven.do(":goto passes@0::values_next@1", ":rows watched")
        assert driven.names == ["swaps'"] and driven.row("swaps'")[-4:] == ["1", "2", "3", "3"]
        await driven.do(":goto passes@2::values_next@1", ":rows watched")
        assert driven.row("swaps'")[-2:] == ["0", "0"], "of the run in which the cursor is"

    drive("nested_loop", script, size=(120, 40), runs=True)


# --- in and out -------------------------------------------------------------------------------------------------------


def test_enter_goes_into_loops_ifs_and_tensors_and_esc_comes_out() -> None:
    course = sorting()

    async def script(driven: Driven) -> None:
        await driven.do(":rows all", ":search pairs_of_neighbours", "home", "right", "enter")
        assert "passes @1 › pairs_of_neighbours" in driven.text("top") and "3 iterations" in driven.text("sheet")
        await driven.do(":search values_next", "enter")
        numbers = [row[-3:] for row in map(str.split, driven.text("sheet").splitlines()) if "values_next" in row[:2]]
        assert [[float(one) for one in row] for row in numbers[:5]] == [
            [step[k] for step in course[1]] for k in range(5)
        ]
        for name in ("values_next", "pairs_of_neighbours", "passes"):
            await driven.do("escape")
            assert driven.at[0] == name
        assert not driven.sheet.frame.program.path  # type: ignore[union-attr]
        await driven.do("enter")
        assert "› passes" in driven.text("top") and driven.sheet.view.total == 3  # type: ignore[union-attr]
        await driven.do("t")
        picks = driven.text("picks")
        assert "3 iterations of at most 4" in picks and "4, 3, 2 iterations in 3 runs" in picks
        await driven.do("down", "down", "enter")
        assert "pairs_of_neighbours" in driven.text("top")

    drive("nested_loop", script, size=(160, 48), runs=True)


def test_the_elements_of_a_carried_value_are_named_as_its_row() -> None:
    async def script(driven: Driven) -> None:
        assert "balance'" in await driven.do("home", "enter")
        assert driven.text("top").split("   ")[0].endswith("years › balance'")
        assert driven.row("balance'")[0] == "[0]" and driven.text("inspector").startswith("balance' @0 [0]")
        assert str(driven.sheet.address()) == "years::balance_next@0[0]"
        look, told = driven.sheet.level.look, driven.app._sheet.path()  # type: ignore[union-attr]
        assert look is not None
        driven.sheet.level.look = replace(look, view=replace(look.view, columns=()))  # as right after an edit
        assert driven.app._sheet.path() == told  # type: ignore[union-attr]
        driven.sheet.level.look = look
        await driven.do(":rows carried")
        assert driven.at[0] == "balance'"
        await driven.do(":rows all", ":search balance_next", "enter")
        assert driven.row("balance_next")[0] == "[0]"

    drive("for_loop", script, size=(120, 40), runs=True)


def test_enter_on_an_if_goes_into_the_side_that_ran() -> None:
    course = [27, *collatz()]

    async def script(driven: Driven) -> None:
        await driven.do(":rows all", ":search If")
        for iteration in (0, 1):
            await driven.do("home", *["right"] * iteration, "enter")
            frame = driven.sheet.frame
            assert frame is not None
            kinds = {operation.layer.type for operation in frame.program.operations}
            assert ("Multiply" in kinds) is (course[iteration] % 2 == 1), "3 n + 1 of an odd number"
            assert driven.at[1] == iteration and "N" not in driven.row(driven.names[0])[-1], "where it did not run"
            await driven.do("escape")

    drive("while_loop", script, size=(120, 40), runs=True)


def test_an_if_in_an_if_has_a_path_and_the_loop_its_iteration(tmp_path: Path) -> None:
    def halved(graph: Graph, value: Value, depth: int) -> Value:
        """Half of a value, in so many Ifs."""
        if not depth:
            return graph.apply("Multiply", value, graph.constant([0.5]), name="half")
        sides = []
        for name in ("then", "other"):
            side = graph.body()
            inside = side.parameter(f"{name}_{depth}", dims=(1,))
            sides.append(Side(side, [(value, inside)], [side.result(halved(side, inside, depth - 1))]))
        return graph.branch(
            f"choice_{depth}", graph.apply("Less", value, graph.constant([9.0]), type="boolean"), *sides
        )[0]

    net = Graph()
    body = net.body()
    x = body.parameter("x", dims=(1,))
    out = body.result(halved(body, x, 2), "x_next")
    net.result(net.loop("halves", body, 3, True, [carried(net.parameter("x0", dims=(1,)), x, out)], [last(out)])[0])

    async def script(driven: Driven) -> None:
        await driven.do(":search half")
        assert "halves › choice_2 › choice_1" in driven.text("top") and driven.names == ["half"]
        await driven.do("escape", "escape")
        assert "choice" not in driven.text("top")

    drive(opened(tmp_path, net, np.float32([8])), script, size=(120, 40), runs=True)


def test_a_value_is_watched_as_it_is_at_the_cursor() -> None:
    async def script(driven: Driven) -> None:
        assert "4.98568e+05" in await driven.do("w")

    drive("rwkv_overflow", script, size=(120, 40), runs=True)


def test_the_value_and_the_graph_of_the_cell_open_and_close_again() -> None:
    async def script(driven: Driven) -> None:
        await driven.do(":goto key@7")
        for keys in ("v", "q"), ("space", "escape"), ("enter", "down", "enter", "q"):  # the elements, then the whole
            await driven.do(*keys[:-1])
            assert driven.app.front.view_name == "value" and "key:0@7" in driven.text("tensor"), keys
            await driven.do(keys[-1])
        await driven.do("escape", "g")
        assert driven.app.front.view_name == "graph" and "exp_key" in driven.text("graph")
        await driven.do("enter")
        assert driven.app.front.view_name == "sheet"

    drive("rwkv_overflow", script, size=(120, 40), runs=True)


def two_nests() -> Graph:
    """Two loops one after the other, of 2 and 3 iterations, in each of which another one adds 1 four times."""
    net = Graph()
    value = net.parameter("x", dims=(2,))
    for name, count in (("first", 2), ("second", 3)):
        body = net.body()
        state = body.parameter("state", dims=(2,))
        within = body.body()
        inner = within.parameter("inner", dims=(2,))
        sum_ = within.result(within.apply("Add", inner, within.constant([1.0]), name=f"{name}_add"), "inner_next")
        (made,) = body.loop(f"{name}_within", within, 4, True, [carried(state, inner, sum_)], [last(sum_)])
        out = body.result(body.apply("Relu", made, name=f"{name}_relu"), "state_next")
        (value,) = net.loop(name, body, count, True, [carried(value, state, out)], [last(out)])
    net.result(value, "y")
    return net


def test_loops_one_after_another_are_reached_by_tree_search_and_address(tmp_path: Path) -> None:
    async def script(driven: Driven) -> None:
        await driven.checks(
            ("t", "down", "down", "down", "enter", "› second"),
            ("slash", *"first_add", "enter", "1 of 1: first_add, Add"),
            ("slash", *"within", "enter", "2 of 2: second_within, Loop"),
            ("full_stop", "1 of 2: first_within, Loop"),
            ("comma", "2 of 2: second_within, Loop"),
            (":search nosuch", "nosuch"),
            (":goto second@1", "› second"),
        )
        await driven.do(":sheet second::state_next")
        assert driven.row("state_next")[-3:] == ["12", "16", "20"], "8 ones of the first loop, and 4 more each"

    drive(opened(tmp_path, two_nests(), np.zeros(2, np.float32)), script, size=(120, 40), runs=True)


# --- the cursor is the moment -----------------------------------------------------------------------------------------

MOVES = (
    # steps, the row and iteration of the cursor, the iterations in which the run stands
    ((":goto key@3",), ("key", 3), [3]),
    (("n",), ("key_with_bonus", 3), [3]),
    (("N", "N"), ("shifted", 3), [3]),
    (("3", "n"), ("exp_bonus", 3), [3]),
    (("right", "right"), ("exp_bonus", 5), [3]),  # the cursor alone
    (("n",), ("value", 5), [5]),  # goes on from there
    (("left", "b", "home", "c"), ("value", 4), [4]),
    (("b", "down", "down", "m", "a"), ("numerator_now", 4), [4]),
    (("home", "apostrophe", "a"), ("numerator_now", 4), [4]),
    ((":2",), ("token_part", 2), [2]),
    ((":iter +1",), ("token_part", 3), [3]),
    ((":last",), ("token_part", 3), []),  # what ended is looked at from where one was
)


def test_what_steps_goes_on_from_the_cursor_and_takes_it_along() -> None:
    async def script(driven: Driven) -> None:
        await driven.do(":rows all")
        for steps, at, iterations in MOVES:
            await driven.do(*steps)
            assert (driven.at, [one for one in driven.iterations if one is not None]) == (at, iterations), steps

    drive("rwkv_overflow", script, size=(120, 40), runs=True)


@pytest.mark.parametrize("line", ["finish", "f", "finis"])
def test_a_movement_by_iterations_leaves_the_cursor_in_its_row_however_it_is_typed(line: str) -> None:
    async def script(driven: Driven) -> None:
        await driven.do("home", "down", ":step", ":step", f":{line}")
        assert driven.at == ("year", 9)

    drive("for_loop", script, size=(120, 40), runs=True)


def test_breakpoints_are_marked_stop_the_run_at_the_cursor_and_go() -> None:
    async def script(driven: Driven) -> None:
        await driven.do(":goto key@2", ":break wkv if max(wkv) > 11", "c")
        stop = driven.state.stop
        assert driven.at[0] == "wkv" and stop is not None and "stopped: breakpoint 1" in driven.text("top")
        assert np.max(sample("rwkv_overflow").value(f"time_mixing::wkv@{driven.at[1]}")) > 11  # type: ignore[arg-type]
        line = next(one for one in driven.text("sheet").splitlines() if one[3:].startswith("wkv"))
        assert line[2] in "◆●"
        await driven.do("b")
        assert not driven.state.breaks, "the one that is marked in the row"
        await driven.do("b")
        assert [one.description.text for one in driven.state.breaks] == [f"time_mixing::wkv@{driven.at[1]}"]
        await driven.do(":break nan", "c")
        assert "why wkv@8[0,3] is NaN" in driven.screen, "a NaN from another iteration explains itself"

    drive("rwkv_overflow", script, size=(120, 40), runs=True)


def test_a_step_into_a_branch_or_an_inner_loop_shows_its_rows() -> None:
    async def script(driven: Driven) -> None:
        await driven.do(":goto passes@1::values_next@2")
        assert driven.iterations == [1, 2] and driven.at == ("values_next", 2)
        assert "passes @1 › pairs_of_neighbours" in driven.text("top")
        await driven.do(":finish", "n")
        assert driven.iterations[:1] == [1] and "passes › " not in driven.text("top")
        await driven.do("1", "2", "s")
        assert "passes @2 › pairs_of_neighbours" in driven.text("top")

    drive("nested_loop", script, size=(120, 40), runs=True)


# --- order, filter, search, files -------------------------------------------------------------------------------------


def test_it_is_ordered_filtered_searched_and_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    course = collatz()
    order = sorted(range(len(course)), key=lambda k: -course[k])

    async def script(driven: Driven) -> None:
        await driven.do(":sheet number', steps'", "home")
        assert driven.row("number'")[:2] == [str(course[0]), str(course[1])]
        await driven.do("greater_than_sign")
        assert "ordered by number' down" in driven.text("sheet")
        assert driven.row("number'")[:2] == [str(course[order[0]]), str(course[order[1]])]
        await driven.do("greater_than_sign", ":filter > 1000", "home")
        big = [k for k in range(len(course)) if course[k] > 1000]
        text = driven.text("sheet")
        assert f"{len(big)} of {len(course)} iterations" in text and "ordered by" not in text
        assert driven.at == ("number'", big[0])
        await driven.press("vertical_line")
        assert driven.app.front.prompt.value == "filter number' > 1000"
        driven.app.front.prompt.value = "filter number' > 1000 and steps' > 50 and number' < prev(number')"
        await driven.do("enter", ":save sheet.csv", ":save sheet.npy")
        fell = [k for k in big if k >= 50 and course[k] < course[k - 1]]
        lines = (tmp_path / "sheet.csv").read_text().splitlines()
        assert lines == ["@,number',steps'", *(f"{k},{course[k]},{k + 1}" for k in fell)]
        assert np.load(tmp_path / "sheet.npy").tolist() == [[course[k], k + 1] for k in fell]
        await driven.do("y")
        assert driven.app.clipboard.splitlines() == lines
        await driven.do("Y")
        assert driven.app.clipboard.startswith("until_one::")
        assert "expected" in await driven.do(":filter number' >")
        await driven.do(":filter off", ":search > 9000")
        assert course[driven.at[1] or 0] > 9000
        assert "nothing further" in await driven.do(":search number' > 100000")

    drive("while_loop", script, size=(120, 40))


def test_clicks_and_the_wheel_move_the_cursor_and_choose_the_rows() -> None:
    async def script(driven: Driven) -> None:
        await driven.do("home")
        await driven.click("sheet", driven.row("denominator'")[2])
        assert driven.at == ("denominator'", 1)
        await driven.click("sheet", " all ")
        assert driven.rows == RowSet.ALL
        driven.sheet.go_to(0, driven.names.index("key"))
        await driven.filled()
        await driven.click("sheet", "key   ", times=2)
        assert driven.rows == RowSet.ELEMENTS and len(driven.sheet.view.columns) == 8  # type: ignore[union-attr]
        await driven.click("keys", "Esc")
        assert driven.rows == RowSet.ALL
        pane, before = driven.pane("sheet"), driven.sheet.level.row
        pane.post_message(events.MouseScrollDown(pane, 20, 9, 0, 0, 0, False, False, False))
        await driven.filled()
        assert driven.sheet.level.row > before
        await driven.do(":filter > 1e300")
        await driven.click("sheet", " why ")
        assert driven.rows == RowSet.ALL and "there is no value here" in driven.answer

    drive("rwkv_overflow", script, size=(120, 40), runs=True)


# --- the rest ---------------------------------------------------------------------------------------------------------


def test_differences_have_their_sign_and_only_one_finite_number_is_said() -> None:
    def written(value: float, _room: int) -> str:
        return f"{value:g}"

    assert change_text(1.0, 3.0, written) == "+2" and change_text(3.0, 1.0, written) == "-2"
    assert change_text(np.nan, 1.0, written) == "fixed" and change_text(1.0, np.inf, written) == "broken"
    assert change_text(np.nan, np.nan, written) == "the same" and change_text(True, False, written) == "another"
    assert change_text(None, 1.0, written) == ""


def test_it_is_kept_with_a_session() -> None:
    async def script(driven: Driven) -> None:
        await driven.do(":rows all", ":filter nan")
        kept = driven.app.layout()
        await driven.do(":filter off", ":rows carried")
        put_layout(driven.app, kept)
        await driven.filled()
        assert (driven.rows, driven.sheet.level.filter, kept["view"]) == ("all", "nan", "sheet")

    drive("rwkv_overflow", script, size=(120, 40), runs=True)


@pytest.mark.parametrize("unread", [0, 12])
def test_keys_typed_before_the_sheet_is_there_wait_for_it(unread: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where the place of the cursor is read only after them: so many times nothing is."""
    nothing, read_on = iter([0.0] * unread), Sheet.read_on
    monkeypatch.setattr(Sheet, "read_on", lambda sheet, seconds: read_on(sheet, next(nothing, seconds)))

    async def script(driven: Driven) -> None:
        for key in ("home", "right", "n"):
            driven.app.post_message(key_event(key))
        await driven.filled()
        assert driven.iterations == [1] and driven.at[1] == 1

    drive("rwkv_overflow", script, size=(120, 40))


def test_in_ascii_the_sheet_says_the_same() -> None:
    async def script(driven: Driven) -> None:
        text = await driven.do(":why wkv@8[0,3]")
        assert text.isascii() and "embedded[7,6] = -20.892" in text and "exp(89.200) = +Inf" in text

    drive("rwkv_overflow", script, size=(120, 40), runs=True, look=Look(ascii=True, plain=True))


def test_names_of_wide_characters_leave_the_columns_where_they_are(tmp_path: Path) -> None:
    net = Graph()
    body = net.body()
    state = body.parameter("隠れ状態", dims=(1,))
    out = body.result(body.apply("Add", state, body.constant([1.0]), name="合計"), "次")
    net.result(
        net.loop("繰り返し", body, 3, True, [carried(net.parameter("x", dims=(1,)), state, out)], [last(out)])[0], "y"
    )

    async def script(driven: Driven) -> None:
        assert driven.row("隠れ状態'")[-3:] == ["1", "2", "3"] and "繰り返し" in driven.text("top")
        pane = driven.pane("sheet")
        assert isinstance(pane, SheetPane)
        assert all(pane.render_line(y).cell_length == pane.size.width for y in range(pane.size.height))

    drive(opened(tmp_path, net, [0.0]), script, size=(120, 40), runs=True)


def test_the_path_names_the_iterations_of_all_loops_around() -> None:
    async def script(driven: Driven) -> None:
        await driven.do(":goto outer@2::mid@1::deep::n_add@2")
        assert "outer @2 › mid @1 › deep" in driven.text("top")
        assert driven.row("n_add")[-4:] == ["21", "22", "23", "24"]

    drive(counting_in_three(), script, size=(120, 40), runs=True)


def test_a_debugger_that_stands_in_a_loop_is_shown_there() -> None:
    debugger = sample("nested_loop")
    debugger.goto("passes@1::values_next@2")

    async def script(driven: Driven) -> None:
        assert "passes @1 › pairs_of_neighbours" in driven.text("top") and driven.at[1] == 2

    drive(debugger, script, size=(120, 40), runs=True)
