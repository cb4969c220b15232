"""A value of one row uses the room: its numbers go on in the next line, and stand as columns."""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np
from stepper_tui.paint.rows import columns
from stepper_tui.screens.value.tensor import TensorPane

from stepper.debug.debugger import Debugger
from tests.models import Graph
from tests.tui.driven import Driven, drive

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
    assert columns([1.0, 0.5, 0.0, float("nan")], 2, 1) == ["█   ", "██ N"]
    assert columns([0.01, 0.25], 2, 3, gap=True) == ["      ", "▁▁ ▄▄ "], "what occurs at all is seen"
