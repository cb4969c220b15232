"""A model without loops on the screens that show iterations of those that have some."""

from __future__ import annotations

import numpy as np
import pytest

from stepper.debug.iterations.cell_store import Cell
from tests.tui.driven import Driven, drive
from tests.tui.screens.overview.test_told_values import without_loops
from tui.screens.bars import Tabs
from tui.screens.grid.grid import Grid
from tui.theme import GLYPHS

SIZES = pytest.mark.parametrize("size", [(80, 24), (120, 40), (200, 60)], ids=str)


def grid_of(driven: Driven) -> Grid:
    grid = driven.pane("grid")
    assert isinstance(grid, Grid)
    return grid


@SIZES
def test_its_grid_is_the_whole_graph_from_any_moment_and_at_the_end(size: tuple[int, int]) -> None:
    async def script(driven: Driven) -> None:
        for line in ("goto tick 0", "next", "continue"):
            await driven.type(line)
            await driven.type("view grid")
            await driven.filled()
            shown, grid = driven.text("grid"), grid_of(driven)
            assert all(name in shown for name in ("exp", "minus", "log")) and "the whole run" in shown
            assert "not computed yet" not in driven.text("detail")
            cells = grid.state.cells
            assert cells is not None
            numbers = {index: cells.number(Cell(0, index)) for index in range(3)}
            assert numbers[0] == numbers[1] == np.inf and np.isnan(numbers[2] or 0)
            now = [row.split()[1] for row in shown.splitlines() if row.split()[:1] == [GLYPHS["now"]]]
            assert now == (["exp"] if line == "next" else []), "the moment is marked where it is in the graph"

    drive(without_loops(), script, size=size)


def test_enter_in_its_grid_goes_to_the_operation_of_the_cursor() -> None:
    async def script(driven: Driven) -> None:
        await driven.type("continue")
        await driven.type("view grid")
        await driven.filled()
        await driven.press("up", "enter")
        stop = driven.state.stop
        assert stop is not None and stop.tick == 2, "after the Subtract, the second operation"

    drive(without_loops(), script, size=(120, 40))


@SIZES
def test_nothing_on_the_main_screen_waits_for_a_loop(size: tuple[int, int]) -> None:
    async def script(driven: Driven) -> None:
        await driven.type("next")
        await driven.filled()
        screen = driven.app.screen
        assert [screen.query_one(f"#{name}").size.area for name in ("time", "loop", "edges", "scans")] == [0] * 4
        names = screen.query_one(Tabs).names
        assert list(names) == ["body", "ops", "value"]
        seen = set()
        for _ in range(8 if size[0] < 100 else 0):
            await driven.press("tab")
            seen.add(driven.app.front.tab)
        assert seen <= {*names} and (size[0] >= 100 or len(seen) == 3)

    drive(without_loops(), script, size=size)


def test_below_a_short_list_stands_the_value_itself() -> None:
    async def script(driven: Driven) -> None:
        await driven.type("next")
        await driven.filled()
        spare = driven.text("spare")
        assert "2.718" in spare and "7.389" in spare and "it is in no loop" not in spare

    drive(without_loops(), script, size=(80, 24))
