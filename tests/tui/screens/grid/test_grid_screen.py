"""The grid: operations by iterations, the cursor is the moment, and NaN is seen where it begins and how it spreads."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from stepper.debug.iterations.cell_store import MOST_CELLS, Cell
from tests.tui.driven import DECODER, Driven, drive
from tests.tui.time_models import SQUARED, lengthening, squaring, squaring_in_numpy
from tests.tui.wide_models import wide_loop
from tui.paint.rows import Row
from tui.screens.grid.grid import Grid
from tui.theme import Look

SCORES = "`__module.n.v/aten::linear/Add`"
FAULTY = (
    f"run-to {DECODER}@0",
    "iter 4",
    f"run-to {SCORES}",
    "view grid",
    f"set {SCORES}[0,3,0] = 1/0",
    "next 2",
)
"""The date decoder with one +Inf put into the attention's scores of iteration 4, at the Softmax after it."""
SIZES = pytest.mark.parametrize("size", [(80, 24), (120, 40), (160, 48), (200, 60)], ids=str)


def grid_of(driven: Driven) -> Grid:
    pane = driven.pane("grid")
    assert isinstance(pane, Grid)
    return pane


def letters(driven: Driven, name: str, iterations: int) -> list[str]:
    """What an operation's row shows, a text an iteration, without shades."""
    pane = grid_of(driven)
    lines = [pane.render_line(y).text for y in range(pane.size.height)]
    line = next(line for line in lines if line[2:].startswith(f"{name} "))
    wide = pane.cell_width
    cells = [line[pane.label_width + k * wide : pane.label_width + (k + 1) * wide] for k in range(iterations)]
    return [cell.strip() for cell in cells]


@SIZES
def test_one_infinity_spreads_as_nan_over_the_operations_and_iterations(size: tuple[int, int]) -> None:
    async def script(driven: Driven) -> None:
        await driven.filled()
        driven.golden(f"grid_{size[0]}x{size[1]}", "grid", "detail")

    drive("date_normaliser", script, size=size, lines=FAULTY)


def test_nan_and_inf_are_where_numpy_has_them() -> None:
    async def script(driven: Driven) -> None:
        await driven.filled()
        expected = squaring_in_numpy(16)
        for name, wanted in zip(SQUARED, expected, strict=True):
            shown = letters(driven, name, 16)
            assert [text if text in ("N", "I") else "" for text in shown[1:]] == wanted[1:], name
        cells = driven.state.cells
        assert cells is not None
        assert cells.firsts["Inf"] == Cell(expected[0].index("I"), 0)
        assert cells.firsts["NaN"] == Cell(expected[1].index("N"), 1)

    drive(squaring(16), script, lines=("run-to squares@0", "view grid"))


def test_the_arrows_move_the_run_and_v_goes_to_the_list_and_back() -> None:
    async def script(driven: Driven) -> None:
        await driven.press("v")
        grid = grid_of(driven)
        before = grid.moment
        assert before is not None
        await driven.press("down")
        assert grid.moment == Cell(before.iteration, before.operation + 1)
        await driven.press("right", "right")
        assert grid.moment == Cell(before.iteration + 2, before.operation + 1)
        await driven.press("left", "up")
        assert grid.moment == Cell(before.iteration + 1, before.operation)
        assert driven.state.iteration == before.iteration + 1
        await driven.press("V")
        assert "mean, shade by row" in driven.text("grid")
        await driven.press("v")
        assert driven.app.focused_pane is driven.pane("operations") and driven.state.statistic == "mean"

    drive("date_normaliser", script, lines=(f"run-to {DECODER}@0", "iter 3"))


def test_a_click_selects_and_enter_or_a_double_click_goes_there() -> None:
    async def script(driven: Driven) -> None:
        await driven.filled()
        grid = grid_of(driven)
        place = grid.gutter.left + grid.label_width

        async def click(iteration: int, times: int) -> Cell:
            await driven.pilot.click("#grid", offset=(place + iteration * grid.cell_width, 4), times=times)
            await driven.settle()
            return Cell(iteration, grid.top + 2)

        tick = driven.state.view.tick
        wanted = await click(7, 1)
        assert grid.cell == wanted and driven.state.view.tick == tick and "@7" in driven.text("detail")
        await driven.press("escape")
        assert grid.cell == grid.moment
        wanted = await click(6, 1)
        await driven.press("enter")
        assert grid.moment == wanted and driven.state.iteration == 6
        wanted = await click(1, 2)
        assert grid.moment == wanted

    drive("date_normaliser", script, lines=(f"run-to {DECODER}@0", "iter 3", "next", "view grid"))


def test_x_goes_to_where_something_odd_begins() -> None:
    async def script(driven: Driven) -> None:
        await driven.filled()
        expected = squaring_in_numpy(16)
        await driven.press("x")
        assert grid_of(driven).moment == Cell(expected[0].index("I"), 0)
        await driven.press("x")
        assert grid_of(driven).moment == Cell(expected[1].index("N"), 1)
        await driven.press("X")
        assert grid_of(driven).moment == Cell(expected[0].index("I"), 0)

    drive(squaring(16), script, lines=("run-to squares@0", "view grid"))


def test_a_changed_shape_a_stop_and_an_edit_are_marked_in_their_cells() -> None:
    async def script(driven: Driven) -> None:
        await driven.filled()
        assert any("~" in line for line in driven.text("grid").splitlines())

    drive(lengthening(6), script, lines=("run-to total@3", "view grid"))

    async def marked(driven: Driven) -> None:
        await driven.press("b", "c")
        await driven.type("set nothing = 3")
        await driven.filled()
        await driven.press("right")
        await driven.filled()
        row = letters(driven, "nothing", 4)
        assert "*" in row[1] and "●" not in row[0] and "*" not in row[0]

    drive(squaring(4), marked, lines=("run-to nothing@0", "view grid"))


def test_cells_that_were_not_looked_at_are_dotted_and_filled_while_the_user_rests() -> None:
    async def script(driven: Driven) -> None:
        state, grid = driven.state, grid_of(driven)
        grid.update(replace(state, cells=None))
        assert letters(driven, "kept", 16) == ["·"] * 16
        await driven.filled()
        assert driven.state.cells is not None and driven.state.cells.number(Cell(9, 0)) is not None
        assert driven.state.view.tick == state.view.tick and driven.state.furthest == state.furthest

    drive(squaring(16), script, lines=("run-to squares@0", "view grid"))


def test_five_hundred_operations_by_a_million_iterations_stay_smooth_and_bounded(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    built: list[int] = []
    row = Grid.row

    def counted(pane: Grid, index: int, width: int) -> Row:
        built.append(index)
        return row(pane, index, width)

    monkeypatch.setattr(Grid, "row", counted)

    async def script(driven: Driven) -> None:
        await driven.filled()
        grid = grid_of(driven)
        for key in ("right", "down", "left", "down", "right"):
            built.clear()
            await driven.press(key)
            assert 0 < len(built) <= 4 * grid.size.height, "no more rows are built than are seen"
        await driven.press("L", "L", "L")
        await driven.filled()
        cells = driven.state.cells
        assert cells is not None and grid.left > 900
        assert cells.number(Cell(grid.left, len(cells.program.operations) - 1)) is not None
        shown = sum(tile.numbers.size for tile in cells.tiles.values())
        assert len(cells.program.operations) >= 500 and shown <= 2 * 64 * 1_000 and MOST_CELLS * 13 < 2**26

    drive(wide_loop(1_000, 1_000_000), script, lines=("run-to wide@0", "iter 900", "view grid"))


def test_without_symbols_and_colours_cells_have_figures() -> None:
    async def script(driven: Driven) -> None:
        await driven.filled()
        text = driven.text("grid") + driven.text("detail")
        assert text.isascii() and "?" not in text
        assert any(cell.isdigit() for cell in "".join(letters(driven, "Softmax", 4)))
        assert "I#" in driven.text("grid")

    drive("date_normaliser", script, size=(120, 40), lines=FAULTY, look=Look(ascii=True, plain=True))


def test_booleans_are_t_and_f_and_a_vector_that_is_permuted_is_not_the_same() -> None:
    async def script(driven: Driven) -> None:
        await driven.filled()
        row = next(line for line in driven.text("grid").splitlines() if line.split()[:1] == ["swapped"])
        assert row.split()[1:] == ["T", "T", "T", "F"]  # 5 1 4 2 8: three pairs of four are swapped
        changes = [line.split() for line in driven.text("history").splitlines()[2:]]
        assert [words[-2] for words in changes if words[:1] == ["▸"]] == ["0"]
        assert [words[2] for words in changes if words[0] in "23"] == ["0", "same"]

    drive("nested_loop", script, size=(200, 60), lines=("goto values_next@1", "view grid"))
