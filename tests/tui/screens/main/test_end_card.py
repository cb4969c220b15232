"""The end of the run: what ended each loop, how many iterations, what is not finite, what the other rules do, keys."""

from __future__ import annotations

import numpy as np
import pytest

from tests.tui.driven import DECODER, Driven, drive
from tests.tui.time_models import squaring
from tui.theme import Look
from tui.worker.event_log import LogKind

FAULTY = "`__module.n.v/aten::linear/Add`"


@pytest.mark.parametrize("size", [(80, 24), (120, 40), (200, 60)], ids=str)
def test_the_end_tells_what_ended_each_loop(size: tuple[int, int]) -> None:
    async def script(driven: Driven) -> None:
        if size[0] < 100:
            await driven.press("tab")
        text = " ".join(driven.text("end").split())
        assert "'passes': 3 iterations, condition became false" in text
        assert "entered 3 times, 2 to 4 iterations each, 9 in all; trip count reached (3×)" in text
        assert "none in the outputs" in text and "ticks" in text and "sorted f32[5] 1 2 4 5 8" in text
        assert "S back, into loops as well" in text

    drive("nested_loop", script, size=size, lines=("continue",))


@pytest.mark.parametrize("size", [(120, 40), (160, 48), (200, 60)], ids=str)
def test_the_left_column_has_the_outputs_in_figures(size: tuple[int, int]) -> None:
    async def script(driven: Driven) -> None:
        shown = driven.text("figures")
        for name, output in zip(driven.state.output_names, driven.state.view.outputs, strict=True):
            lines = shown.splitlines()
            at = next(place for place, line in enumerate(lines) if line.split()[:1] == [name])
            words = lines[at + 1].split()
            finite = output[np.isfinite(output)].astype(np.float64)
            assert words[:2] == ["NaN", str(np.isnan(output).sum())], words
            assert float(words[words.index("min") + 1]) == pytest.approx(finite.min(), abs=6e-3)
            assert float(words[words.index("max") + 1]) == pytest.approx(finite.max(), abs=6e-3)
            most = int(lines[at + 2].split()[0])
            assert len(finite) / 36 <= most <= len(finite), "the largest of the columns that follow"
        column = driven.app.screen.query_one("#left")
        assert driven.pane("figures").region.bottom == column.region.bottom
        await driven.press("S")
        assert not driven.pane("figures").display and "time_mixing" in driven.text("operations")
        await driven.type("last")
        assert driven.pane("figures").display

    drive("rwkv_overflow", script, size=size, lines=("continue",))


def test_going_back_and_on_again_counts_no_loop_twice() -> None:
    async def script(driven: Driven) -> None:
        await driven.press("S", "S", "S", "c", "g", "c")
        assert "9 in all" in driven.text("end") and "not counted" not in driven.text("end")
        await driven.press("S", "S")
        assert driven.state.loop is not None, "the key that is named leads into the loop"
        assert driven.state.ending is None and not driven.pane("end").display

    drive("nested_loop", script, size=(200, 60), lines=("continue",))


def test_another_course_forgets_what_ended_on_the_one_before() -> None:
    async def script(driven: Driven) -> None:
        assert "11 iterations" in driven.text("end")
        await driven.type(f"goto {DECODER}@4")
        await driven.type(f"run-to {FAULTY}@4")
        await driven.type(f"set {FAULTY}[0,3,0] = 1/0")
        await driven.type("continue")
        text = " ".join(driven.text("end").split())
        assert "20 iterations, condition became false" in text and "11 iterations" not in text
        assert "NaN of" in text and "first [" in text and "edited once" in text
        assert "S goes back into its loops" in driven.text("operations"), "however far the list was scrolled"

    drive("date_normaliser", script, size=(200, 60), lines=("continue",))


def test_a_branch_that_was_ended_before_says_what_is_not_known() -> None:
    async def script(driven: Driven) -> None:
        for line in (f"goto {DECODER}@4", f"run-to {FAULTY}@4", f"set {FAULTY}[0,3,0] = 1/0", "continue"):
            await driven.type(line)
        await driven.type("branch original")
        await driven.type("continue")
        text = " ".join(driven.text("end").split())
        assert "11 iterations" in text and "20 iterations" not in text

    drive("date_normaliser", script, size=(200, 60))


def test_a_branch_that_is_renamed_taken_back_and_deleted_is_followed_by_the_screen() -> None:
    async def script(driven: Driven) -> None:
        await driven.type("goto passes@0::pairs_of_neighbours@1")
        await driven.type("branch trial")
        await driven.type("set trip-count = 2")
        assert driven.state.branch == "trial" and driven.state.is_edited
        await driven.type("branch rename trial better")
        assert driven.state.branch == "better" and driven.state.is_edited
        await driven.type("undo")
        assert driven.state.branch == "better" and not driven.state.is_edited
        await driven.type("branch original")
        await driven.type("branch delete better")
        await driven.type("continue")
        assert driven.state.branch == "original" and "9 in all" in " ".join(driven.text("end").split())
        faults = [one for one in driven.app.driver.log.entries() if one.kind is LogKind.FAULT]
        edits = [one.command for one in driven.app.driver.log.entries() if one.kind is LogKind.EDITED]
        assert not faults and edits == ["branch trial", "set trip-count = 2", "undo", "branch original"]

    drive("nested_loop", script, size=(200, 60))


def test_stops_notes_and_ascii() -> None:
    async def script(driven: Driven) -> None:
        await driven.press("c", "c", "c", "c", "c")
        text = driven.text("end")
        assert "breakpoint 1 stopped 2 times" in text and text.isascii()
        assert "condition became" in text or "trip count reached" in text or "every slice" in text

    lines = ("break square@* if iter % 3 == 2",)
    drive(squaring(8), script, size=(200, 60), lines=lines, look=Look(ascii=True, plain=True))


def test_the_notes_on_the_other_rules_are_told_once_each() -> None:
    async def script(driven: Driven) -> None:
        text = " ".join(driven.text("end").split())
        assert text.count("integer division rounds down") == 1 and "(2 places)" in text

    drive("date_normaliser", script, size=(200, 60), lines=("continue",))


def test_the_outputs_are_drawn_where_they_grew() -> None:
    async def script(driven: Driven) -> None:
        lines = driven.text("scans").splitlines()
        assert lines[0].split() == ["outputs"]
        tokens = next(line for line in lines if "Result_526" in line).split()
        assert tokens[-11:] == ["2", "0", "2", "6", "10", "1", "1", "10", "2", "0", "12"]
        place = next(at for at, line in enumerate(lines) if "Result_525" in line)
        assert "f32[11,16]" in lines[place] + lines[place + 1] and "0 to 1" in "".join(lines[place : place + 4])
        assert "'prim::Loop/Loop'" in driven.text("loop") and "11 iterations" in driven.text("loop")
        await driven.press("S", "S")
        assert "outputs growing" in driven.text("scans") and "ended: condition became false" in driven.text("loop")

    drive("date_normaliser", script, size=(200, 60), lines=("continue",))


def test_where_there_are_tabs_the_end_stands_below_the_ways_back() -> None:
    async def script(driven: Driven) -> None:
        assert "end of the run" in driven.text("end")
        await driven.press("tab")
        assert driven.app.front.tab == "ops" and driven.app.focused_pane is driven.pane("end")  # type: ignore[attr-defined]

    drive("nested_loop", script, size=(80, 24), lines=("continue",))
    lines: list[str] = []

    async def wide(driven: Driven) -> None:
        lines.extend(driven.text("operations").splitlines())

    drive("nested_loop", wide, size=(120, 40), lines=("continue",))
    ways = ["N goes back into the run", "S goes back into its loops", "Enter passes@2, its last"]
    assert [line.strip() for line in lines[1:]] == ways


@pytest.mark.parametrize(
    ("name", "iteration"), [("nested_loop", 2), ("while_loop", 110), ("date_normaliser", 10), ("reverse", 7)]
)
@pytest.mark.parametrize("waits", [False, True])
def test_enter_at_the_end_goes_to_the_last_iteration_of_the_last_loop(name: str, iteration: int, waits: bool) -> None:
    """Whether or not the values of all iterations are there already."""

    async def script(driven: Driven) -> None:
        for _ in range(3 * waits):
            await driven.filled()
        await driven.press("enter")
        stop = driven.state.stop
        assert stop is not None and (stop.iteration, stop.closed) == (iteration, True)
        assert len(driven.state.frames) == 2, "not in a loop inside of it"

    drive(name, script, lines=("continue",))
