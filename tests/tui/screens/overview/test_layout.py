"""The layout of the overview by formulas: slots cover the iterations, heights fill the room, numbers are numbers."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from rich.style import Style
from textual.color import Color

from stepper.tensors.histories import ValueHistory
from stepper.tensors.pictures import BarScale, Form, Scale, ScaleKind, scale_of
from tui.pictures.axis import ENTERED, Axis, Slot, nested, plain, ruler
from tui.pictures.drawing import (
    Cells,
    RowPicture,
    Strip,
    bar_scale_ends,
    bar_scale_text,
    bars,
    fitting_number,
    laid,
    put_rails,
    reduced,
    scale_text,
    texts,
    unit_text,
)
from tui.pictures.heights import Want, fill_up, heights
from tui.pictures.palette import Palette
from tui.theme import Look

ROOMS = (40, 60, 101, 140)


@pytest.mark.parametrize("grows", [False, True])
@pytest.mark.parametrize("room", ROOMS)
@pytest.mark.parametrize("count", [1, 2, 11, 36, 37, 38, 100, 1_000, 417_208, 10**6])
def test_slots_cover_all_iterations_once_from_left_to_right(count: int, room: int, grows: bool) -> None:
    axis = plain(count, room, 9, grows=grows)
    assert axis.slots[0].first == 0 and axis.slots[-1].last == count
    for before, after in itertools.pairwise(axis.slots):
        assert before.last == after.first and before.start + before.width <= after.start
    assert axis.slots[0].start == ENTERED + 1 and axis.reach <= room
    widths = {slot.width for slot in axis.slots}
    assert len(widths) == 1 and widths.pop() <= 9
    for iteration in (0, count // 3, count // 2, count - 1):
        slot = axis.slots[axis.index_of(iteration)]
        assert slot.first <= iteration < slot.last and axis.slot_at(slot.start) == slot


@pytest.mark.parametrize("room", ROOMS)
def test_both_ends_are_iteration_by_iteration_and_the_middle_in_even_bins(room: int) -> None:
    axis = plain(100_000, room, 9)
    bins = [slot.last - slot.first for slot in axis.slots if slot.is_bin]
    third = (room - ENTERED - 1 - 2) // 3
    assert len([slot for slot in axis.slots if not slot.is_bin]) == 2 * third
    assert max(bins) - min(bins) <= 1


def test_columns_of_a_run_under_way_move_only_when_a_power_of_two_is_passed() -> None:
    steps = set()
    for count in range(1_000, 9_000, 7):
        sizes = [slot.last - slot.first for slot in plain(count, 100, 6, grows=True).slots if slot.is_bin]
        assert len(set(sizes[:-1])) == 1 and sizes[-1] <= sizes[0]
        steps.add(sizes[0])
    assert all(step & (step - 1) == 0 for step in steps) and len(steps) <= math.log2(9) + 2


@pytest.mark.parametrize("counts", [(4, 3, 2), (1,), (5, 0, 5), (2,) * 10])
def test_an_outer_column_is_as_wide_as_the_inner_run_in_it(counts: tuple[int, ...]) -> None:
    made = nested(counts, 120, 9)
    assert made is not None
    outer, inner = made
    assert [len(axis.slots) for axis in inner] == list(counts) and outer.reach <= 120
    for slot, axis in zip(outer.slots, inner, strict=True):
        assert axis.entered == slot.start
        assert all(slot.start < one.start and one.start + one.width <= slot.start + slot.width for one in axis.slots)


def test_inner_runs_that_do_not_fit_have_no_common_axis() -> None:
    assert nested((30,) * 10, 100, 9) is None
    assert nested((), 100, 9) is None


@pytest.mark.parametrize("count", [1, 11, 25, 300, 123_456])
@pytest.mark.parametrize("room", ROOMS)
def test_numbers_of_the_ruler_do_not_touch_and_the_cursor_has_its_own(count: int, room: int) -> None:
    for cursor in (0, count // 2, count - 1):
        marks = sorted(ruler(plain(count, room, 6), cursor))
        assert [mark.text for mark in marks if mark.is_cursor] == [str(cursor)]
        for before, after in itertools.pairwise(marks):
            assert before.column + len(before.text.rstrip()) < after.column + 1


@pytest.mark.parametrize("room", range(6, 90, 7))
@pytest.mark.parametrize("plain_look", [False, True])
def test_heights_fill_the_room_and_no_more(room: int, plain_look: bool) -> None:
    wants = [Want(64), Want(64), Want(16), Want(2, is_picture=False), Want(1), Want(8, is_bad=True)]
    found = heights(wants, room, 2, plain=plain_look)
    assert sum(found.lines) + found.left + 2 * found.is_aired == room and found.left >= 0
    assert all(1 <= lines <= want.size for lines, want in zip(found.lines, wants, strict=True))
    pictures = [(2 * lines, want.size) for lines, want in zip(found.lines, wants, strict=True) if want.is_picture]
    assert found.left == 0 or all(halves >= size for halves, size in pictures)


def test_rows_of_one_size_are_equally_tall_until_there_is_a_rest() -> None:
    assert heights([Want(64), Want(64)], 16).lines == [8, 8]
    assert heights([Want(64), Want(64)], 16, tall=False).lines == [8, 8]


def test_labelled_elements_go_first_and_births_get_what_is_left() -> None:
    labelled = heights([Want(64), Want(16, is_labelled=True)], 12)
    assert labelled.lines[1] == 8
    assert heights([Want(64), Want(16, is_labelled=True)], 24).lines[1] == 16
    rows = [Want(8, is_bad=True), Want(8, is_bad=True, is_born=True), Want(8, is_bad=True, is_selected=True)]
    assert heights(rows, 16).lines == [4, 8, 4]
    assert heights(rows, 20).lines == [4, 8, 8]


def test_a_row_that_was_made_taller_has_whole_lines() -> None:
    assert heights([Want(8, taller=1)], 20).lines == [8]
    shorter = heights([Want(8, taller=-5)], 20)
    assert shorter.lines[0] <= 4 and shorter.left == 20 - shorter.lines[0]


@pytest.mark.parametrize("value", [0, 1, -1, 25259, 5.47e6, -0.0047, 0.005, 123456.0, -99999.5, 1e-30, -1e300, 3.14159])
@pytest.mark.parametrize("room", [5, 6, 8, 11])
def test_a_number_in_a_slot_is_whole_and_near(value: float, room: int) -> None:
    text = fitting_number(value, room)
    assert len(text) <= room
    if text:
        assert math.isclose(float(text), value, rel_tol=0.5)
    assert text or abs(value) >= 1e99 or abs(value) < 1e-9


def test_several_numbers_become_one_nan_first() -> None:
    column = np.array([1.0, -3.0, np.nan, 2.0, np.inf, 5.0, 4.0, 4.0])
    mean = reduced(column, 4, "mean")
    assert mean[0] == -1 and np.isnan(mean[1]) and mean[2] == np.inf and mean[3] == 4
    assert reduced(column, 4, "largest")[0] == -3 and reduced(column, 8, "rms") is not None
    assert reduced(column, 4, "rms")[0] == pytest.approx(math.sqrt(5))


def test_of_overlapping_strips_the_later_wins() -> None:
    strips: list[Strip] = [(1, "aaaa", "dim"), (3, "bb", "strong"), (9, "cc", "")]
    assert "".join(letter for letter, _ in laid(strips, 10)) == " aabb    c"


@pytest.mark.parametrize("room", [11, 15, 21])
@pytest.mark.parametrize("low", [0.0, 0.988, 11.0004])
@pytest.mark.parametrize("high", [12.0, 97.534, 72528.0, 456703.0, 3.4e38])
def test_numbers_of_a_scale_are_whole_in_any_room(low: float, high: float, room: int) -> None:
    text = bar_scale_text(BarScale(low, high, log=False), room)
    begin, end = text.replace(" to ", "–").split("–")
    assert len(text) <= room
    assert math.isclose(float(begin), low, rel_tol=0.06) and math.isclose(float(end), high, rel_tol=0.06)


@pytest.mark.parametrize("room", [9, 11, 21])
@pytest.mark.parametrize(("low", "span"), [(2e6, 60.0), (2e6, 2.1e5), (-3e7, 8.0), (0.5, 2e-7), (2123456.0, 60.0)])
def test_a_scale_far_from_zero_tells_how_far_its_ends_are_from_each_other(low: float, span: float, room: int) -> None:
    scale = BarScale(low, low + span, log=False)
    text = bar_scale_text(scale, room)
    assert len(text) <= room, text
    begin, _, rest = text.replace(" ", "").rpartition("+") if "+" in text else text.replace("to", "–").partition("–")
    far = float(rest) if "+" in text else float(rest) - float(begin)
    assert math.isclose(far, span, rel_tol=0.11) and math.isclose(float(begin), low, rel_tol=0.1)
    ends = bar_scale_ends(scale)
    assert ends[0] != ends[1] and max(map(len, ends)) <= 7


def test_a_number_as_wide_as_its_slot_leaves_the_mark_of_the_cursor_at_both_sides() -> None:
    shade, palette = Style(color="white", bgcolor="blue"), Palette(lambda _: Color(90, 120, 200), Look())
    cells: Cells = [(" ", ""), *((letter, shade) for letter in "-0.12 -0.34 ")]
    put_rails(cells, Slot(7, 6, 1, 2), palette, is_selected=True)
    assert "".join(letter for letter, _ in cells) == " -0.12▐-0.34▐"
    put_rails(cells, Slot(1, 6, 0, 1), palette, is_selected=False)
    assert "".join(letter for letter, _ in cells) == "▐-0.12▐-0.34▐"


def test_the_scale_of_one_number_is_that_number() -> None:
    assert bar_scale_text(BarScale(1.998, 1.998, log=True), 15) == "1.998"
    assert bar_scale_text(BarScale(1234567.0, 1234567.0, log=False), 5) == "1.2e6"


def test_a_scale_says_that_it_is_logarithmic_before_it_has_all_its_digits() -> None:
    signed = Scale(full=4.954e6, kind=ScaleKind.LOG, low=1.0, signed=True)
    assert scale_text(signed, 11) == "±4.95e6 log" and scale_text(signed, 10) == "±5e6 log"
    bars = BarScale(9.0, 265727.0, log=True)
    assert [bar_scale_text(bars, room) for room in (17, 13, 11)] == ["9 to 265727 log", "9–265727 log", "9–2.7e5 log"]


def test_a_label_says_of_how_many_numbers_its_range_is_and_of_none_has_no_range() -> None:
    cut = Scale(full=2.326, kind=ScaleKind.ROBUST, low=0.1, signed=True, share=0.985)
    assert [scale_text(cut, room) for room in (12, 10, 8, 5)] == ["±2.326 98 %", "±2.3 98 %", "±2 98 %", "±2.3"]
    bars = BarScale(-85.0, 130.0, log=True, unit=0.1, share=0.9999)
    assert bar_scale_text(bars, 24) == "-85 to 130 log 99 %" and bar_scale_text(bars, 14) == "-85–130 99 %"
    assert bar_scale_text(BarScale(0.0, 1.0, log=False, share=0.0), 12) == ""
    assert scale_text(scale_of(np.full(4, np.inf)), 12) == "" and scale_text(scale_of(np.zeros(4)), 12) == "0"


@pytest.mark.parametrize(("height", "room"), [(1, 40), (3, 12)])
def test_letters_stand_for_numbers_only_where_it_is_said_for_which(height: int, room: int) -> None:
    numbers = np.array([10, 2, 0, 2, 6, 10, 1, 1, 10, 2, 0, 1] * 3, float)
    spans = np.stack([np.arange(len(numbers)), np.arange(len(numbers)) + 1], axis=1)
    history = ValueHistory("i64", (1,), len(numbers), is_whole=True, spans=spans, numbers=numbers.reshape(1, -1, 1))
    drawn = RowPicture([history], plain(len(numbers), len(numbers) + 4, 1), Form.CATEGORIES)
    assert drawn.note(room).count("=") == len(set(numbers.tolist()))
    assert not drawn.is_readable(height, room)
    assert drawn.is_readable(2, 60)


@pytest.mark.parametrize(
    ("words", "width", "shown"),
    [
        (("idle", "work", "eat", "wait"), 2, ["0", "1", "0", "3"]),
        (("idle", "work", "eat", "wait"), 1, ["0", "1", "0", "3"]),
        (("idle", "work", "wait", "done"), 1, ["i", "w", "i", "d"]),
        (("idle", "work", "wait", "done"), 2, ["i", "w", "i", "d"]),
        (("i", "o", "e", "oo"), 2, ["0", "1", "0", "3"]),
        (("idle", "work", "wait", "done"), 5, ["idle", "work", "idle", "done"]),
    ],
)
def test_in_narrow_columns_all_labels_of_a_row_are_letters_or_all_are_numbers(
    words: tuple[str, ...], width: int, shown: list[str]
) -> None:
    """Letters only where those that occur begin differently; `wait` of the third example does not occur."""
    numbers = np.array([0, 1, 0, 3], float)
    spans = np.stack([np.arange(4), np.arange(4) + 1], axis=1)
    history = ValueHistory("i64", (), 4, is_whole=True, spans=spans, numbers=numbers.reshape(1, -1, 1))
    axis = Axis(tuple(Slot(k * width, width, k, k + 1) for k in range(4)), None)
    drawn = RowPicture([history], axis, Form.NUMBERS, words)
    assert [text for _, text, _ in texts(drawn.labels, history, axis)] == shown


@pytest.mark.parametrize("room", range(0, 90, 3))
def test_pictures_fill_what_room_is_left_without_an_empty_line(room: int) -> None:
    """Sixteen elements beside four, both in whole lines, and forty in buckets; no more than is there is given."""
    sizes, lines = [16, 4, 40, 0], [8, 2, 6, 1]
    found = fill_up(sizes, lines, room)
    assert sum(found) - sum(lines) <= room and found[3] == 1
    for size, height in zip(sizes[:2], found[:2], strict=True):
        assert height in (size // 2, *(size * each for each in range(1, 7)))
    assert found[2] <= 20 or found[2] % 40 == 0


def test_lower_pictures_become_as_tall_as_others_before_all_have_another_line() -> None:
    assert fill_up([16, 4], [16, 4], 12) == [16, 16]
    assert fill_up([16, 4], [16, 4], 19) == [16, 16]
    assert fill_up([16, 4], [16, 4], 20) == [32, 8]
    assert fill_up([5, 0], [5, 1], 100) == [30, 1], "six lines an element at most"


def test_a_row_that_is_to_be_taller_takes_its_lines_from_others_where_none_are_left() -> None:
    def given(*taller: int) -> list[int]:
        return heights([Want(64, taller=more) for more in taller] + [Want(8)], 16).lines

    before = given(0, 0)
    assert sum(before) == 16
    for more in range(1, 4):
        lines = given(more, 0)
        assert lines[0] == before[0] + more and sum(lines) <= 16 and min(lines) >= 2
    assert max(given(64, 0)[1:]) == 2, "the others are still to be seen"


@pytest.mark.parametrize("log", [False, True])
def test_a_bar_that_is_cut_says_so_and_one_a_little_beyond_the_scale_does_not(log: bool) -> None:
    low, high = 1.0, 100.0
    far = high * (high / low) ** 0.2 if log else high + 0.2 * (high - low)
    near = high * (high / low) ** 0.05 if log else high + 0.05 * (high - low)
    below = low / (high / low) ** 0.2 if log else low - 0.2 * (high - low)
    numbers = np.array([low, high, far, near, below, math.inf]).reshape(1, -1, 1)
    spans = np.array([[k, k + 1] for k in range(6)])
    history = ValueHistory("f64", (1,), 6, True, spans, numbers, first_infinite=5)
    axis = plain(6, 40, 3)
    lines = bars(history, axis, 4, BarScale(low, high, log=log))
    marked = [{text[0] for strips in lines for start, text, _ in strips if start == slot.start} for slot in axis.slots]
    assert ["▲" in one for one in marked] == [False, False, True, False, False, False]
    assert ["▼" in one for one in marked] == [False, False, False, False, True, False]
    constant = bars(history, axis, 4, BarScale(low, low, log=False))
    assert not any(text in "▲▼" for strips in constant for _, text, _ in strips)


@pytest.mark.parametrize("cursor", [None, *range(0, 20_000, 1733)])
@pytest.mark.parametrize("room", [80, 150])
def test_it_is_said_how_many_iterations_a_column_stands_for_beside_the_number_of_the_cursor(
    cursor: int | None, room: int
) -> None:
    axis = plain(20_000, room, 6)
    begin, end = (slot.start for slot in (*[one for one in axis.slots if one.is_bin][:1], axis.slots[-1]))
    marks = [mark for mark in ruler(axis, cursor) if "a column" in mark.text]
    middle = next(slot for slot in axis.slots if slot.is_bin)
    if room > 100 or cursor is None:
        (mark,) = marks
        assert f"{middle.last - middle.first:,} a column" in mark.text and begin <= mark.column < end
        assert cursor is not None or room < 100 or "the largest of" in mark.text


def test_one_row_is_no_rows() -> None:
    history = ValueHistory("f32", (8,), 1, True, np.array([[0, 1]]), np.zeros((1, 1, 8)))
    assert unit_text(history, 1, "mean", 20, is_plain=True) == "8 in 1 row"
    assert unit_text(history, 2, "mean", 20, is_plain=True) == "8 in 2 rows"
