"""The rows of the grid: shape arithmetic folded as in the list, and how far each is from a reference."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import stepper
from stepper.compare.stops import DifferenceGrid
from stepper.debug.debugger import Debugger
from stepper.debug.iterations.cell_store import Cell
from tests.compare.twins import STEPS, WEIGHTS, X, recurrence
from tests.tui.driven import DECODER, Driven, drive
from tests.tui.screens.grid.test_grid_screen import grid_of, letters
from tui.paint.columns import widths_of
from tui.screens.grid.columns import columns
from tui.screens.main.operations import Operations
from tui.state import State
from tui.theme import Look

NAMES = ("xW", "hU", "summed", "scaled", "shifted", "looked_up", "row_t", "noted", "h_next", "y")
BESIDE = ("reference theirs/model.xml", "run-to cell@0", "iter 3", "run-to y", "view grid")


@pytest.fixture
def twins(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Debugger:
    """The healthy recurrence, and in the working folder `theirs/model.xml` with another W."""
    for name, fault in (("ours", ""), ("theirs", "one weight")):
        (tmp_path / name).mkdir()
        recurrence(fault).write(tmp_path / name)
    monkeypatch.chdir(tmp_path)
    return Debugger(stepper.read_model(Path("ours/model.xml")), {0: X})


def row(driven: Driven, name: str) -> str:
    """What the row of an operation shows, without its name."""
    line = next(line for line in driven.text("grid").splitlines() if line[2:].split(" ")[0] == name)
    return line[sum(widths_of(columns(State()), grid_of(driven).size.width)) :]


def compared(driven: Driven) -> DifferenceGrid:
    comparison = driven.state.comparison
    assert comparison is not None and comparison.grid is not None
    return comparison.grid


# --- folded rows ----------------------------------------------------------------------------------------------------


def test_shape_arithmetic_is_one_row_and_space_opens_it_in_the_list_too() -> None:
    async def script(driven: Driven) -> None:
        await driven.press("v")
        grid = grid_of(driven)
        listing, frame = grid.listing(), grid.frame
        assert listing is not None and frame is not None
        folded = next(entry for entry in listing.entries if entry.is_folded)
        rows, hidden = len(listing.entries), len(folded.indices)
        assert sum(len(entry.indices) for entry in listing.entries) == len(frame.layers)
        assert f"▸ {folded.title} ×{hidden}" in driven.text("grid")
        await driven.type(f"select {folded.indices[0]}")
        await driven.press("space")
        assert grid.count(100) == rows + hidden - 1
        await driven.press("v")
        operations = driven.pane("operations")
        assert isinstance(operations, Operations) and operations.count(100) == rows + hidden, "and the end"
        await driven.press("v", "space")
        assert grid_of(driven).count(100) == rows

    drive("date_normaliser", script, lines=(f"run-to {DECODER}@0", "iter 3"))


def test_the_moment_inside_a_folded_row_is_marked_on_it() -> None:
    async def script(driven: Driven) -> None:
        grid = grid_of(driven)
        listing, frame = grid.listing(), grid.frame
        assert listing is not None and frame is not None
        folded = next(entry for entry in listing.entries if entry.is_folded)
        await driven.type(f"goto {frame.address(folded.indices[1], driven.app.driver.compiled)}")
        lines = [line for line in driven.text("grid").splitlines() if line.startswith("▸")]
        assert len(lines) == 1 and f"×{len(folded.indices)}" in lines[0] and lines[0].count("▸") == 3

    drive("date_normaliser", script, lines=(f"run-to {DECODER}@0", "iter 3", "view grid"))


# --- beside a reference ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [(80, 24), (160, 48)], ids=str)
def test_each_row_has_its_largest_difference(twins: Debugger, size: tuple[int, int]) -> None:
    async def script(driven: Driven) -> None:
        await driven.filled()
        driven.golden(f"grid_reference_{size[0]}x{size[1]}", "grid", "detail")

    drive(twins, script, size=size, lines=BESIDE)


def test_the_column_is_there_as_soon_as_there_is_a_reference_and_agrees_with_numpy(twins: Debugger) -> None:
    changed = WEIGHTS.astype(np.float64)
    changed[1, 2] += 1e-3
    apart = np.abs(X.astype(np.float64) @ (WEIGHTS.astype(np.float64) - changed)).max(axis=1)

    async def script(driven: Driven) -> None:
        assert "difference" not in driven.text("grid")
        await driven.type("reference theirs/model.xml")
        await driven.filled()
        assert row(driven, "xW").split()[1] == "≠!" and row(driven, "hU").split()[1] == "≠"
        assert row(driven, "row_t").split()[0] == "same"
        np.testing.assert_allclose(float(row(driven, "xW").split()[0]), apart.max(), rtol=1e-2)
        cells = compared(driven)
        found = [cells.at(Cell(iteration, 0)) for iteration in range(STEPS)]
        np.testing.assert_allclose([one.distance for one in found if one is not None], apart, rtol=1e-3)

    drive(twins, script, lines=("run-to cell@0", "iter 3", "run-to y", "view grid"))


def test_the_differences_are_a_statistic_of_the_cells(twins: Debugger) -> None:
    async def script(driven: Driven) -> None:
        await driven.filled()
        await driven.type("statistic difference")
        assert "difference, shade by power of ten" in driven.text("grid")
        cells = compared(driven)
        for index, name in enumerate(NAMES):
            found = [cells.at(Cell(iteration, index)) for iteration in range(STEPS)]
            marks = ["≠" if one is not None and one.is_above else "" for one in found]
            shown = letters(driven, name, STEPS)
            assert ["≠" if "≠" in text else "" for text in shown] == marks
            numbers = [float(text.strip("≠▸ ") or 0) for text in shown]
            np.testing.assert_allclose(numbers, [one.distance for one in found if one is not None], rtol=5e-2)
        assert letters(driven, "hU", 3)[0] == "", "what is carried is the same in the first iteration"
        await driven.press("V")
        assert "values, scale by row" in driven.text("grid") and "≠" not in "".join(letters(driven, "xW", STEPS))
        await driven.press(*"VVVVVVV")
        assert "difference, shade" in driven.text("grid")
        await driven.press("g", "N", "N", "N", "N", "N", "N", "N", "N", "x")
        assert grid_of(driven).moment == Cell(0, NAMES.index("summed"))

    drive(twins, script, lines=BESIDE)


def test_another_tolerance_takes_the_marks_away(twins: Debugger) -> None:
    async def script(driven: Driven) -> None:
        await driven.filled()
        assert "≠" in row(driven, "xW")
        await driven.type("tolerance 0 0.1")
        await driven.filled()
        assert "≠" not in "".join(row(driven, name) for name in NAMES)
        await driven.type("statistic difference")
        assert not [text for text in letters(driven, "xW", STEPS) if not float(text or 0) < 0.1]

    drive(twins, script, lines=BESIDE)


def test_beside_an_iteration_the_column_is_of_now_and_there_is_no_such_statistic(twins: Debugger) -> None:
    products = X.astype(np.float64) @ WEIGHTS.astype(np.float64)

    async def script(driven: Driven) -> None:
        await driven.type("statistic difference")
        assert "there is no statistic 'difference'" in driven.text("answer")
        await driven.press("equals_sign")
        for line, before in (("", 2), ("A 1", 1)):
            if line:
                await driven.type(line)
            await driven.filled()
            assert "difference" in driven.text("grid").splitlines()[1]
            apart = np.abs(products[3] - products[before]).max()
            text, mark = row(driven, "xW").split()[:2]
            np.testing.assert_allclose(float(text), apart, rtol=1e-2)
            assert mark == "≠" and "from A: " in driven.text("detail")
        await driven.type("A off")
        assert "difference" not in driven.text("grid")

    drive(twins, script, lines=("run-to cell@0", "iter 3", "run-to y", "view grid"))


def test_beside_another_branch_the_differences_are_a_statistic_of_all_iterations(twins: Debugger) -> None:
    was = float((X.astype(np.float64) @ WEIGHTS.astype(np.float64))[1, 0])

    async def script(driven: Driven) -> None:
        await driven.filled()
        await driven.type("statistic difference")
        assert "relative difference, shade by power of ten" in driven.text("grid")
        products = letters(driven, "xW", STEPS)
        np.testing.assert_allclose(float(products[1].strip("*▸ ")), abs(5 - was) / max(5, abs(was)), rtol=5e-2)
        assert not "".join(products[:1] + products[2:]), "nothing else of it depends on what was set"
        hidden = letters(driven, "hU", STEPS)
        assert not "".join(hidden[:2]) and all(float(text.strip("▸ ")) > 0 for text in hidden[2:]), "what is carried"
        await driven.type("A off")
        assert "values, scale by row" in driven.text("grid")

    edit = ("run-to cell@0", "iter 1", "run-to hU", "set xW[0,0] = 5", "run-to y", "A original", "view grid")
    drive(twins, script, size=(160, 48), lines=edit)


def test_without_symbols_and_colours_differences_carry_a_figure(twins: Debugger) -> None:
    async def script(driven: Driven) -> None:
        await driven.filled()
        await driven.type("statistic difference")
        text = driven.text("grid") + driven.text("detail")
        assert text.isascii() and "?" not in text
        assert all(cell[0] == "!" and float(cell[1:]) > 0 for cell in letters(driven, "summed", 3))
        await driven.press("minus", "minus", "minus")
        assert all(cell[0] == "!" and cell[1:].isdigit() for cell in letters(driven, "summed", 3))

    drive(twins, script, size=(160, 48), lines=BESIDE, look=Look(ascii=True, plain=True))
