"""The table of a sweep on the screen: order, filter, what is opened, and that it comes back where it was."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
from stepper_tui.sweep import SweepApp, SweepTableState
from stepper_tui.theme import Look
from textual.pilot import Pilot
from textual.widgets import DataTable, Input, Static

from stepper.cli import main
from stepper.errors import UsageError
from stepper.sweep.sweep_inputs import SeedInput, files_inputs
from stepper.sweep.sweep_results import LoopCount, StoredRow, SweepListing, SweepOutcome, SweepRow
from tests.sweep.sweeping import balances, job_of, swept, written_inputs

STOPPED = {3: 7, 5: 12, 8: 7}


def listing() -> SweepListing:
    """Ten inputs, of which three stop; each of the others runs as often as its number says."""
    rows = []
    for number in range(1, 11):
        name = f"rand:{number}"
        if number in STOPPED:
            where = (
                "nan",
                "wkv",
                "Divide",
                ("Loop 'l'",),
                (STOPPED[number],),
                f"l@{STOPPED[number]}::wkv",
                "NaN appears",
            )
            row = SweepRow(name, SweepOutcome.STOPPED, *where)
        else:
            row = SweepRow(name, SweepOutcome.NOTHING, loops=(LoopCount("model > Loop 'l'", 1, number, ("end",)),))
        rows.append(StoredRow(number, row, SeedInput(number), ""))
    return SweepListing(rows)


def numbers(rows: list[int] | SweepListing, sort: str = "", filter: str = "", *, descending: bool = False) -> list[int]:
    assert isinstance(rows, SweepListing)
    return [row.stored.number for row in rows.shown(sort, filter, descending=descending)]


def test_rows_are_sorted_and_those_without_a_value_come_last() -> None:
    assert numbers(listing(), "iteration") == [3, 8, 5, 1, 2, 4, 6, 7, 9, 10]
    assert numbers(listing(), "iteration", descending=True)[:3] == [5, 3, 8]
    assert numbers(listing(), "iterations", descending=True)[:3] == [10, 9, 7]
    with pytest.raises(UsageError, match="there is no column 'iteratoin'; near are"):
        numbers(listing(), "iteratoin")


@pytest.mark.parametrize(
    ("filter", "found"),
    [
        ("wkv", [3, 5, 8]),
        ("outcome=nothing iterations>6", [7, 9, 10]),
        ("outcome!=nothing iteration<=7", [3, 8]),
        ("operation=", [1, 2, 4, 6, 7, 9, 10]),
        ("NAN appears", [3, 5, 8]),
        ("rand:10", [10]),
        ("zzz", []),
    ],
)
def test_a_filter_is_words_and_conditions_on_columns(filter: str, found: list[int]) -> None:
    assert numbers(listing(), filter=filter) == found


@pytest.mark.parametrize(("filter", "why"), [("iter>3", "no column 'iter'"), ("iteration>x", "a number is expected")])
def test_a_filter_that_means_nothing_says_why(filter: str, why: str) -> None:
    with pytest.raises(UsageError, match=why):
        numbers(listing(), filter=filter)


def driven(
    view: SweepTableState, script: Callable[[SweepApp, Pilot[int]], Awaitable[None]], size: tuple[int, int] = (80, 24)
) -> int | None:
    """What the application returns after the script."""

    async def run() -> int | None:
        app = SweepApp("model", listing(), view, Look(ascii=True))
        async with app.run_test(size=size) as pilot:
            await pilot.pause()
            await script(app, pilot)
            await pilot.pause()
        return app.return_value

    return asyncio.run(run())


def test_sorted_and_filtered_by_key_an_input_opens_and_the_table_comes_back_as_it_was() -> None:
    view = SweepTableState()

    async def script(app: SweepApp, pilot: Pilot[int]) -> None:
        assert app.query_one(DataTable).row_count == 10
        await pilot.press("right", "right", "right", "right", "greater_than_sign")
        await pilot.press("vertical_line", *"outcome", "equals_sign", *"stopped", "enter")
        await pilot.pause()
        assert app.query_one(DataTable).row_count == 3
        assert "3 of 10 inputs, by iteration" in str(app.query_one("#head", Static).content)
        await pilot.press("g", "enter")

    assert driven(view, script) == 5
    assert (view.sort, view.descending, view.filter, view.number) == ("iteration", True, "outcome=stopped", 5)

    async def again(app: SweepApp, pilot: Pilot[int]) -> None:
        assert app.query_one(DataTable).cursor_row == 0 and app.query_one(DataTable).row_count == 3
        assert "NaN appears" in str(app.query_one("#more", Static).content)
        await pilot.press("escape")
        await pilot.pause()
        assert app.query_one(DataTable).row_count == 10
        await pilot.press("q")

    assert driven(view, again) is None


def test_a_heading_sorts_by_mouse_and_a_filter_that_means_nothing_is_told() -> None:
    view = SweepTableState()

    async def script(app: SweepApp, pilot: Pilot[int]) -> None:
        await pilot.click(DataTable, offset=(60, 0))
        await pilot.pause()
        assert view.sort == "iteration"
        app.query_one(Input).value = "iter>3"
        await pilot.pause()
        assert "there is no column 'iter'" in str(app.query_one("#answer", Static).content)
        assert app.query_one(DataTable).row_count == 10

    driven(view, script)


@pytest.mark.parametrize(("code", "tables"), [(0, 2), (129, 1)])
def test_the_table_comes_back_unless_a_signal_ended_the_debugger(
    code: int, tables: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where the terminal is gone the table would wait for its keys for ever."""
    (tmp_path / "set").mkdir()
    written_inputs(tmp_path / "set", 1)
    file = tmp_path / "s.sqlite"
    swept(job_of(balances(tmp_path), breaks=("nan",)), files_inputs([str(tmp_path / "set")]), file)
    answers: list[int | None] = [1, None]
    runs: list[SweepApp] = []
    monkeypatch.setattr(SweepApp, "run", lambda app: runs.append(app) or answers[len(runs) - 1])
    monkeypatch.setattr("stepper.cli.commands.tui.execute", lambda _options: code)
    for stream in ("stdin", "stdout"):
        monkeypatch.setattr(f"sys.{stream}.isatty", lambda: True, raising=False)
    assert (main(["sweep", str(file), "--open"]), len(runs)) == (code, tables)
