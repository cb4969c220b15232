"""The table screen by keys: the Collatz course of 27 and what overflows in the RWKV sample, read from the screen."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pytest
from msgspec.structs import replace

from stepper.debug.table.columns import SheetColumn
from tests.debug.debugged import SAMPLES, sample
from tests.tui.driven import DECODER, Driven, drive
from tests.tui.test_links import click
from tui.screens.table.pane import column_label
from tui.screens.table.screen import TableScreen
from tui.session.layout import put_layout


def collatz() -> list[int]:
    """The numbers after the start until 1, as many as the loop made."""
    number = int(np.load(SAMPLES / "while_loop" / "inputs.npz")["start"].item())
    course = []
    while number != 1:
        number = 3 * number + 1 if number % 2 else number // 2
        course.append(number)
    return course


def rows_of(driven: Driven) -> list[list[str]]:
    """The rows below the rule, as words: the iteration first."""
    lines = driven.text("table").splitlines()
    rule = max(place for place, line in enumerate(lines) if line.lstrip().startswith("───"))
    return [line.replace("▌", " ").split() for line in lines[rule + 1 :] if line.strip()]


def test_a_table_is_sorted_filtered_searched_and_leads_to_the_moment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    course = collatz()
    order = sorted(range(len(course)), key=lambda row: -course[row])

    async def script(driven: Driven) -> None:
        await driven.type("table number, steps")
        await driven.filled()
        rows = rows_of(driven)
        assert rows[0] == ["0", str(course[0]), "1"] and rows[5][:2] == ["5", str(course[5])]
        await driven.press("greater_than_sign")
        assert [int(row[1]) for row in rows_of(driven)] == [course[row] for row in order][: len(rows)]
        assert "sorted by number down" in driven.text("table") and "number ▼" in driven.text("table")
        await driven.press("less_than_sign", "less_than_sign", "ctrl+home")  # up, and as they ran
        assert [int(row[0]) for row in rows_of(driven)][:4] == [0, 1, 2, 3]
        await driven.type("filter > 1000")
        big = [row for row in range(len(course)) if course[row] > 1000]
        assert [int(row[0]) for row in rows_of(driven)][:8] == big[:8]
        assert f"{len(big)} of {len(course)} rows" in driven.text("line")
        await driven.press("vertical_line")
        assert driven.app.front.prompt.value == "filter number > 1000"
        driven.app.front.prompt.value = "filter abs > 1000"
        await driven.press("enter")
        assert [int(row[0]) for row in rows_of(driven)][:8] == big[:8]
        await driven.press("vertical_line")
        assert driven.app.front.prompt.value == "filter abs(number) > 1000"
        driven.app.front.prompt.value = "filter number > 1000 and steps > 50 and number < prev(number)"
        await driven.press("enter")
        fell = [row for row in big if row >= 50 and course[row] < course[row - 1]]
        assert [int(row[0]) for row in rows_of(driven)][:8] == fell[:8]
        await driven.type("save sheet.csv")
        await driven.type("save sheet.npy")
        lines = (tmp_path / "sheet.csv").read_text().splitlines()
        assert lines[0] == "@,number,steps"
        assert lines[1:] == [f"{row},{course[row]},{row + 1}" for row in fell]
        assert np.load(tmp_path / "sheet.npy").tolist() == [[course[row], row + 1] for row in fell]
        await driven.press("y")
        assert driven.app.clipboard.splitlines() == lines
        await driven.type("filter number >")
        assert "expected" in driven.text("answer")
        await driven.type("filter")
        await driven.press("slash")
        driven.app.front.prompt.value = "table-search > 9000"
        await driven.press("enter")
        peaks = [row for row in range(len(course)) if course[row] > 9000]
        assert f"▌{peaks[0]:>4}" in driven.text("table") and driven.text("answer").strip() == ""
        await driven.press("m", "A", "full_stop" if len(peaks) > 1 else "down", "enter")
        await driven.filled()
        there = peaks[1] if len(peaks) > 1 else peaks[0] + 1
        assert driven.state.iteration == there
        text = driven.text("table").splitlines()
        assert next(line for line in text if line.strip().startswith(f"A {peaks[0]}")).split()[2] == str(
            course[peaks[0]]
        )
        assert next(line for line in text if f"▸{there}" in line).split()[1] == str(course[there])
        gap = course[there] - course[peaks[0]]
        assert next(line for line in text if line.strip().startswith("dif")).split()[1] == f"{gap:+d}"
        await click(driven, "table", f"A {peaks[0]}", times=2)
        await driven.filled()
        assert driven.state.iteration == peaks[0] and "sorted" not in driven.text("table")

    drive(sample("while_loop"), script, size=(100, 30))


@pytest.mark.parametrize("size", [(80, 24), (160, 48)])
def test_columns_are_hidden_and_buckets_open_at_the_end_of_the_run(size: tuple[int, int]) -> None:
    async def script(driven: Driven) -> None:
        await driven.type("last")
        await driven.type("table h_next, x")
        await driven.filled()
        assert "h_next" in driven.text("table") and "25 of 25 rows" in driven.text("line")
        first = driven.text("table").splitlines()
        name = next(line for line in first if " @ " in line).split()[1]
        await driven.press("H")
        assert name not in next(line for line in driven.text("table").splitlines() if " @ " in line)
        await driven.press("space")
        assert name in driven.text("table")
        await driven.type("table x")
        await driven.filled()
        assert "x[0,0]+" in driven.text("table")
        await driven.press("enter")
        assert "x[0,1]" in driven.text("table") and "+" not in driven.text("table").split("time")[0].split("@")[1]
        await driven.press("q")
        assert "x[0,0]+" in driven.text("table")
        await driven.press("q", "q")
        assert not isinstance(driven.app.front, TableScreen)

    drive(sample("specification_lstm"), script, size=size)


def test_numbers_of_a_column_without_fractions_are_whole() -> None:
    async def script(driven: Driven) -> None:
        await driven.type("table sequence[:]")
        await driven.filled()
        heading = next(line for line in driven.text("table").splitlines() if " @ " in line).split()
        at = next(place for place, name in enumerate(heading) if name.startswith("size"))
        cells = [row[at] for row in rows_of(driven)]
        assert cells == sorted(cells, key=int) and len(set(cells)) > 1
        others = [row[at + 1] for row in rows_of(driven)]
        assert all("." in cell for cell in others), "a statistic of fractions keeps its points below one another"
        await driven.press("home", *["right"] * at)
        await driven.filled()
        if driven.app.size.width >= 160:
            numbers = driven.text("column").split()
            assert numbers[numbers.index("max") + 1] == cells[-1]
        await driven.type("A append@1")
        await driven.filled()
        apart = next(line for line in driven.text("table").splitlines() if line.split()[:1] == ["dif"]).split()
        assert apart[at] == "=" or apart[at][1:].isdecimal(), apart

    drive("growing_tensor", script, size=(160, 48), lines=("goto sum@4",))


def test_a_table_comes_back_as_it_was_kept() -> None:
    async def script(driven: Driven) -> None:
        await driven.type("table number, steps")
        await driven.filled()
        await driven.press("greater_than_sign", "right", "H")
        await driven.type("filter number > 1000")
        shown, line = driven.text("table"), driven.text("line")
        layout = driven.app.layout()
        await driven.press("q")
        put_layout(driven.app, layout)
        await driven.filled()
        assert (driven.text("table").split("\n", 1)[1], driven.text("line")) == (shown.split("\n", 1)[1], line)
        assert "steps" not in shown.splitlines()[3]
        await driven.press("q")
        put_layout(
            driven.app, {"view": "table", "shown": {"values": 5, "sort": "x", "filter": "number >", "hidden": "a,9"}}
        )
        await driven.filled()
        assert "expected" in driven.text("line") and not driven.app._faults

    drive(sample("while_loop"), script, size=(120, 30))


def test_infinite_numbers_are_found_and_the_cursor_asks_why() -> None:
    async def script(driven: Driven) -> None:
        await driven.type("table numerator")
        await driven.filled()
        await driven.press("x")
        assert "▌   7" in driven.text("table")
        await driven.type("filter inf")
        rows = rows_of(driven)
        assert [row[0] for row in rows] == ["7", "8", "9", "10", "11"] and "+Inf" in rows[0]
        await driven.type("table-search numerator[0,3]")
        assert "numerator[0,3]" in driven.text("column")
        await driven.press("o")
        await driven.filled()
        assert driven.state.iteration == 7

    drive(sample("rwkv_overflow"), script, size=(160, 48))


def test_the_table_of_a_back_edge_a_watch_and_a_value_opens() -> None:
    async def script(driven: Driven) -> None:
        driven.pane("edges").focus()
        await driven.press("number_sign")
        assert isinstance(driven.app.front, TableScreen) and "balance[1]" in driven.text("table")
        await driven.press("q")
        await driven.type("watch max(balance_next)")
        await driven.press("W", "v")
        assert isinstance(driven.app.front, TableScreen) and "balance_next[0]" in driven.text("table")
        await driven.press("q", "q")
        driven.pane("operations").focus()
        await driven.press("enter", "v", "v", "v", "v")
        assert isinstance(driven.app.front, TableScreen)

    drive(sample("for_loop"), script, size=(160, 48), lines=("goto balance_next@3",))


@pytest.mark.parametrize("size", [(120, 40), (160, 48), (200, 60)])
def test_the_column_of_the_cursor_has_the_room_below_a_table_of_few_rows(size: tuple[int, int]) -> None:
    async def script(driven: Driven) -> None:
        await driven.filled()
        await driven.type("view table")
        await driven.filled()
        table, column = driven.pane("table"), driven.pane("column")
        assert column.region.y > table.region.y and column.size.width > 100
        shown = driven.text("column")
        blank = [line for line in (driven.text("table") + "\n" + shown).splitlines() if not line.strip()]
        assert "over the iterations" in shown and len(blank) < 8
        assert ("how often" in shown) == (size[1] > 50)

    drive("date_normaliser", script, size=size, lines=(f"run-to {DECODER}@10",))


def test_a_column_is_called_by_its_element_where_the_name_of_the_value_has_no_room() -> None:
    name = "`aten::add/Add_4`"
    bucket = SheetColumn(f"{name}[0,0,16]+16", 0, 16, 32, of=name, first=(0, 0, 16))
    assert [column_label(bucket, room) for room in (30, 14, 11)] == [f"{name}[0,0,16]+", "Add_4[0,0,16]+", "[0,0,16]+"]
    element = SheetColumn("hidden_state[0,3]", 0, 3, 4, index=(0, 3), of="hidden_state", first=(0, 3))
    assert column_label(element, 12) == "hidden…[0,3]"
    numbered = [replace(element, of=name) for name in ("Parameter_98954", "Parameter_98969")]
    assert [column_label(one, 12) for one in numbered] == ["Para…54[0,3]", "Para…69[0,3]"]
    size = SheetColumn("size(`aten::softmax/Softmax`)", 0, 0, 0, statistic="size")
    assert [column_label(size, room) for room in (30, 14, 11, 6)] == [size.name, "size Softmax", "size Softm…", "size"]


def test_whole_numbers_with_labels_are_words_in_their_columns(tmp_path: Path) -> None:
    vocabulary = tmp_path / "words.json"
    vocabulary.write_text(json.dumps([f"w{number}" for number in range(12)] + ["stop"]))

    async def script(driven: Driven) -> None:
        await driven.filled()
        rows = [line.strip(" ▌").split() for line in driven.text("table").splitlines()]
        shown = {row[0]: row[1:3] for row in rows if row}
        assert shown["0"][0] == "w2", "below the cursor"
        assert shown["3"] == ["w6", "4"], "a number without labels stays one"
        assert shown["10"] == ["stop", "11"]

    drive("date_normaliser", script, size=(120, 30), lines=(f"labels tok.13 {vocabulary}", "table tok.13, i.11"))


def test_a_filter_that_cannot_be_read_leaves_the_one_before_and_off_takes_it_away() -> None:
    async def script(driven: Driven) -> None:
        await driven.type("table key")
        await driven.type("filter abs(key[0,1]) > 1")
        assert "filter abs(key[0,1]) > 1" in driven.text("table") and "3 of 12 rows" in driven.text("line")
        for wrong, told in (
            ("nonsense(", "no function 'nonsense'"),
            ("zz > 3", "nothing called 'zz'"),
        ):
            await driven.type(f"filter {wrong}")
            assert told in driven.text("answer")
            assert "filter abs(key[0,1]) > 1" in driven.text("table") and "3 of 12 rows" in driven.text("line")
        await driven.type("filter off")
        assert "12 of 12 rows" in driven.text("line") and "filter" not in driven.text("table").splitlines()[1]
        await driven.type("help filter")
        assert "filter [CONDITION|off]" in driven.text("card")

    drive("rwkv_overflow", script, size=(120, 40))


def test_the_last_line_offers_another_statistic_where_one_can_stand_for_a_column() -> None:
    async def script(driven: Driven) -> None:
        await driven.type("table wkv")  # 8 elements, each a column
        await driven.filled()
        assert "v mean, max, rms" not in driven.text("keys") and "V" not in driven.text("keys").split()
        await driven.press("v")
        assert "each column is one number" in driven.text("answer")
        await driven.press("q")
        await driven.type("table rms(key)")
        await driven.filled()
        assert "v mean, max, rms" in driven.text("keys")
        await driven.press("v")
        await driven.filled()
        assert "min(key)" in driven.text("table")

    drive("rwkv_overflow", script, size=(160, 48), lines=("run-to key@5",))


def test_the_prompt_of_a_table_proposes_its_columns_and_the_last_line_names_all_that_it_does() -> None:
    async def script(driven: Driven) -> None:
        await driven.type("table h[0,:3]")
        await driven.filled()
        columns = [f"h[0,{k}]" for k in range(3)]
        for word in ("table-search", "filter"):
            proposed = [one.word for one in driven.app.completions(f"{word} ", 100)]
            assert [one for one in proposed if one != "off"] == [*columns, "nan", "inf", "nan or inf"], word
        assert "down h[0,2]" in [one.word for one in driven.app.completions("table-sort ", 100)]
        for words in ("/ search", "H hide", "x X NaN, Inf", "y copy CSV", "P save", "Space hidden", "o why"):
            assert words in driven.text("keys"), words
        await driven.press("P")
        assert driven.app.front.prompt.value == "save "
        assert [one.word for one in driven.app.completions("save ", 2)] == ["table.csv", "table.npy"]

    drive("date_normaliser", script, size=(160, 48), runs=True)


def test_the_key_of_a_table_writes_it_as_npy(tmp_path: Path) -> None:
    path = tmp_path / "rows.npy"

    async def script(driven: Driven) -> None:
        await driven.type("table passes@0::values")
        await driven.filled()
        await driven.press("P")
        driven.app.front.prompt.value += str(path)
        await driven.press("enter")
        await driven.filled()
        rows = np.load(path)
        # what one pass of bubble sort does to 5 1 4 2 8, pair by pair
        assert rows.reshape(len(rows), -1)[-1].tolist() == [4, 2, 5], "1 and 8 stay, and are hidden"

    drive("nested_loop", script, size=(120, 40), runs=True)


def test_the_mean_of_the_rows_that_are_shown_has_another_name_than_that_of_all() -> None:
    async def script(driven: Driven) -> None:
        await driven.type("table h")
        await driven.filled()
        text = driven.text("column")
        assert sorted(re.findall(r"(their mean|mean) +-?[\d.]+", text)) == ["mean", "their mean"]

    drive("date_normaliser", script, size=(160, 48), lines=("run-to Softmax@3",))


def test_sorting_and_filtering_leave_no_answer_of_before() -> None:
    async def script(driven: Driven) -> None:
        await driven.ran()
        await driven.type("table number")
        for line in ("filter > 1000", "table-sort down"):
            await driven.type("A until_one@3")
            assert "A is iteration 3" in driven.text("answer")
            await driven.type(line)
            assert not driven.text("answer").strip()

    drive("while_loop", script, size=(120, 40), runs=True)


def test_an_answer_over_several_lines_leaves_the_rows_and_the_column_beside_them() -> None:
    async def script(driven: Driven) -> None:
        await driven.ran()
        await driven.type("table tok")
        await driven.filled()
        rows = rows_of(driven)
        assert len(rows) == 11
        await driven.type("stats tok")
        assert rows_of(driven) == rows and driven.text("column")
        await driven.press("escape")
        assert rows_of(driven) == rows and driven.text("column")

    drive("date_normaliser", script, size=(120, 40), runs=True)


@pytest.mark.parametrize("size", [(80, 24), (120, 40)], ids=str)
def test_of_a_name_that_means_several_values_each_has_a_line(size: tuple[int, int]) -> None:
    async def script(driven: Driven) -> None:
        await driven.ran()
        await driven.type("table keep_going")
        await driven.filled()
        lines = driven.text("table").splitlines()
        told = next(place for place, line in enumerate(lines) if "is ambiguous" in line)
        assert "passes::keep_going@*  (Greater)" in lines[told + 1]
        assert "passes::pairs_of_neighbours::keep_going@*" in lines[told + 2]
        assert "\N{REPLACEMENT CHARACTER}" not in driven.text("table")

    drive("nested_loop", script, size=size, runs=True)
