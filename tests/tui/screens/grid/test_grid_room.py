"""What the grid does with room to spare: numbers in its cells, beside or below it the cell's row and the value."""

from __future__ import annotations

import numpy as np
import pytest

from stepper.tensors.number_text import fitted
from tests.tui.driven import DECODER, Driven, debugger_of_sample, drive
from tests.tui.screens.grid.test_grid_screen import grid_of, letters
from tests.tui.time_models import SQUARED, squaring
from tui.theme import Look

YEARS = ("run-to years@0", "iter 3", "view grid")
IN_NUMBERS = (*YEARS, "statistic rms")
"""With one number a cell; by itself the grid shows pictures of the values."""


def shown_beside(driven: Driven) -> bool:
    return driven.pane("history").parent.display  # type: ignore[union-attr]


def test_cells_have_their_numbers_where_all_iterations_fit() -> None:
    async def script(driven: Driven) -> None:
        await driven.filled()
        cells = driven.state.cells
        assert cells is not None and cells.ended is None
        tile = cells.window(0, 10)
        assert letters(driven, "interest", 10) == [fitted(float(value)) for value in tile.numbers[:, 1]]
        await driven.press("minus", "minus")
        assert letters(driven, "interest", 10) == [""] * 10
        await driven.press("plus", "plus", "J")
        assert letters(driven, "year", 4) == ["1", "2", "3", "4"]

    drive("for_loop", script, size=(120, 40), lines=IN_NUMBERS)


def test_the_mark_of_the_moment_stands_before_its_number() -> None:
    async def script(driven: Driven) -> None:
        await driven.press("n", "n")
        shown = letters(driven, "interest", 4)[3]
        assert shown == f"▸ {fitted(float(shown[1:]))}"

    drive("for_loop", script, size=(120, 40), lines=IN_NUMBERS)


def test_nan_and_inf_stay_letters_in_wide_cells() -> None:
    async def script(driven: Driven) -> None:
        await driven.filled()
        assert grid_of(driven).cell_width == 9
        shown = letters(driven, SQUARED[0], 12)
        assert "I" in shown and shown[0] not in ("", "I")

    drive(squaring(12), script, size=(200, 60), lines=("run-to squares@0", "view grid", "statistic rms"))


@pytest.mark.parametrize(("size", "beside", "below"), [((200, 60), True, False), ((120, 40), False, True)], ids=str)
def test_the_row_of_the_cell_stands_beside_or_below(size: tuple[int, int], *, beside: bool, below: bool) -> None:
    async def script(driven: Driven) -> None:
        await driven.filled()
        assert (driven.app.screen.has_class("-beside"), driven.app.screen.has_class("-below")) == (beside, below)
        lines = driven.text("history").splitlines()
        assert "year over iterations" in lines[0] and lines[1].split() == ["iteration", "value", "change"]
        shown = [line.strip("▸ ").split() for line in lines[2:12]]
        assert [words[:2] for words in shown] == [[str(k), str(k + 1)] for k in range(10)]
        assert {words[2] for words in shown[1:]} == {"+1"} and len(shown[9][3]) > len(shown[2][3])
        assert "year:0@3" in driven.text("value")
        await driven.press("J")
        assert "interest over iterations" in driven.text("history")

    drive("for_loop", script, size=size, lines=YEARS)


def test_where_there_is_no_room_nothing_stands_beside() -> None:
    async def script(driven: Driven) -> None:
        assert not shown_beside(driven)

    drive("date_normaliser", script, size=(120, 40), lines=(f"run-to {DECODER}@0", "iter 3", "view grid"))
    drive("for_loop", script, size=(80, 24), lines=YEARS)


def test_in_ascii_the_room_is_used_as_well() -> None:
    async def script(driven: Driven) -> None:
        text = driven.text("history") + driven.text("value")
        assert text.isascii() and "==" in text

    drive("for_loop", script, size=(200, 60), lines=YEARS, look=Look(ascii=True, plain=True))


def test_outside_of_the_loop_the_value_beside_the_grid_is_that_of_its_cell() -> None:
    async def script(driven: Driven) -> None:
        await driven.ran()
        await driven.type("view grid")
        await driven.filled()
        cell = grid_of(driven).cell
        assert cell is not None and driven.state.frame is not None and not driven.state.frame.program.path
        text = driven.text("value")
        assert text.split()[0] == "numerator_next:0@11" and "Enter opens" not in text
        await driven.press("up")
        assert driven.text("value").split()[0] == "weighted:0@11"
        whole = debugger_of_sample("rwkv_overflow")
        whole.last()
        value = np.asarray(whole.value("weighted@11"))
        assert f"min {fitted(float(value.min()))}  max {fitted(float(value.max()))} at" in driven.text("value")

    drive("rwkv_overflow", script, size=(200, 60), starts_up=True, runs=True)
