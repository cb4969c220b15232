"""A value of one row uses the room: its numbers go on in the next line, and stand as columns above and below zero."""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np
import pytest

from stepper.debug.debugger import Debugger
from tests.models import Graph
from tests.tui.driven import Driven, drive
from tui.screens.value.profile import profile
from tui.screens.value.tensor import TensorPane
from tui.theme import Look

ROW = np.linspace(-1.5, 3, 30, dtype=np.float32)


def doubled(row: np.ndarray) -> Debugger:
    """twice = row + row."""
    net = Graph()
    x = net.parameter("x", "f32", row.shape)
    net.result(net.apply("Add", x, x, name="twice"), "out")
    with tempfile.TemporaryDirectory() as folder:
        return Debugger(net.read(Path(folder)), {0: row})


def numbers_in(text: str) -> list[float]:
    found = []
    for word in text.replace("<", " ").split():
        try:
            found.append(float(word))
        except ValueError:
            continue
    return found


@pytest.mark.parametrize("size", [(120, 40), (160, 48), (200, 60)], ids=str)
def test_the_strip_shows_all_numbers_of_a_row_that_is_too_long_for_a_line(size: tuple[int, int]) -> None:
    row = ROW[: 12 if size[0] == 120 else 24]

    async def script(driven: Driven) -> None:
        lines = driven.text("value").splitlines()
        assert len(lines) <= 5
        shown = numbers_in("\n".join(lines[2:]))
        written = [round(float(value), 2) for value in row * 2]
        assert all(any(abs(one - value) < 0.006 for one in shown) for value in written)

    drive(doubled(row), script, size=size, lines=("step",))


@pytest.mark.parametrize("look", [Look(), Look(ascii=True, plain=True)], ids=("colours", "ascii"))
def test_a_tab_of_its_own_has_columns_below(look: Look) -> None:
    async def script(driven: Driven) -> None:
        await driven.press("tab")
        text = driven.text("value")
        assert text.splitlines()[-1].endswith("-3") and " 0" in text and "6" in text
        assert ("█" in text) is not look.ascii and text.isascii() is look.ascii

    drive(doubled(ROW), script, size=(80, 32), look=look, lines=("step",))


def test_the_numbers_of_the_value_screen_go_on_in_the_next_line_and_a_click_finds_them() -> None:
    async def script(driven: Driven) -> None:
        await driven.press("v")
        await driven.filled()
        pane = driven.pane("tensor")
        assert isinstance(pane, TensorPane)
        lines = driven.text("tensor").splitlines()[2:]
        labels = [word for line in lines[::2] for word in line.split()]
        assert labels == [str(index) for index in range(len(ROW))]
        np.testing.assert_allclose(numbers_in("\n".join(lines[1::2])), ROW * 2, atol=1e-4)
        across = len(lines[0].split())
        assert across < len(ROW) and pane.numbers.place_at(lines[2].index(labels[across]), 2) == (0, across)
        await driven.pilot.click("#tensor", offset=(lines[2].index(labels[across + 1]), 5))
        await driven.settle()
        assert pane.inspected.cursor == (across + 1,)

    drive(doubled(ROW), script, size=(80, 24), lines=("step", "view value"))


def test_a_row_longer_than_all_lines_follows_the_cursor() -> None:
    async def script(driven: Driven) -> None:
        await driven.press("v")
        await driven.filled()
        assert " 63 " not in driven.text("tensor")
        await driven.press("end")
        assert "63" in driven.text("tensor").split()
        await driven.press("home")
        assert driven.text("tensor").splitlines()[2].split()[0] == "0"

    drive(doubled(np.arange(64, dtype=np.float32)[None]), script, size=(80, 24), lines=("step", "view value"))


def test_columns_are_as_high_as_their_numbers() -> None:
    rows = profile([4.0, 2.0, -2.0, 0.0, float("nan")], 1, 0, 7)
    text = ["".join(cell for cell, _ in row) for row in rows]
    assert [line[:5] for line in text] == ["█    ", "█    ", "██   ", "██   ", "────N", "  █  ", "  █  "]
    assert text[0].endswith("4") and text[-1].endswith("-2")
    assert profile([0.0, 0.0], 1, 0, 9) == [] and profile([1.0], 1, 0, 4) == []
    wide = profile([1.5e308, -1.5e308 / 2], 2, 0, 7)
    assert len(wide) == 7
