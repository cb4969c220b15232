"""Names and sentences of the overview answer to clicks: those that lead somewhere, and those beside pictures."""

from __future__ import annotations

import re

import pytest

from tests.tui.driven import Driven, drive
from tui.screens.overview.pane import OverviewPane


async def click_on(driven: Driven, text: str, times: int) -> None:
    """Click on a text of the screen."""
    for y, strip in enumerate(driven.app.screen._compositor.render_strips()):
        line = "".join(segment.text for segment in strip)
        if text in line:
            await driven.pilot.click(offset=(line.index(text) + 1, y), times=times)
            await driven.filled()
            return
    raise AssertionError(f"nothing on the screen is '{text}'")


@pytest.mark.parametrize(
    ("model", "text", "times", "view", "told"),
    [
        ("rwkv_overflow", "mixed f32", 1, "overview", "mixed@7"),
        ("rwkv_overflow", "32 in mixed", 1, "overview", "mixed@7"),
        ("rwkv_overflow", "Inf born in", 2, "", "exp_key"),
        ("rwkv_overflow", "embedded f32", 2, "value", "embedded"),
        ("rwkv_overflow", "the trip count", 2, "sheet", "why did time_mixing end"),
        ("rwkv_overflow", "ended at 11", 2, "sheet", "why did time_mixing end"),
        ("rwkv_overflow", "Gather 'length'", 2, "", "length"),
        ("rwkv_overflow", "Loop 15", 2, "", "exp_key"),
        ("date_normaliser", "Result_525", 1, "overview", "atts@10"),
        ("date_normaliser", "src.1", 2, "value", "src"),
        ("date_normaliser", "Space opens it", 1, "overview", "opened from GRUSequence"),
        ("nested_loop", "Subtract 'pairs_left'", 2, "", "pairs_left"),
    ],
)
def test_names_and_sentences_lead_to_what_they_are_about(
    model: str, text: str, times: int, view: str, told: str
) -> None:
    async def script(driven: Driven) -> None:
        await driven.ran()
        await click_on(driven, text, times)
        assert driven.app.front.view_name in (view, "main") if not view else driven.app.front.view_name == view
        screen = "\n".join(
            "".join(part.text for part in strip) for strip in driven.app.screen._compositor.render_strips()
        )
        assert told in screen

    drive(model, script, size=(140, 40), starts_up=True, runs=True)


def test_a_click_beside_pictures_leaves_the_iteration_and_one_on_the_rows_that_are_counted_shows_them() -> None:
    async def script(driven: Driven) -> None:
        await driven.ran()
        pane = driven.pane("overview")
        assert isinstance(pane, OverviewPane)
        before = pane._at
        for text in ("the trip count", "Loop 15", "12 iterations of 12"):
            await click_on(driven, text, 1)
            assert pane._at == before and driven.app.front.view_name == "overview"
        await click_on(driven, "… 2 more slices", 1)
        assert "… 2 more" not in driven.text("overview")

    drive("rwkv_overflow", script, size=(140, 40), starts_up=True, runs=True)


@pytest.mark.parametrize(
    ("model", "size"),
    [("for_with_condition", (160, 34)), ("date_normaliser", (80, 24)), ("date_normaliser", (200, 60))],
    ids=str,
)
def test_a_click_below_a_number_of_the_ruler_chooses_that_iteration(model: str, size: tuple[int, int]) -> None:
    async def script(driven: Driven) -> None:
        await driven.ran()
        await driven.filled()
        pane = driven.pane("overview")
        assert isinstance(pane, OverviewPane)
        assert size != (160, 34) or driven.pane("loop-body").has_class("-beside"), (
            "the pane is narrower than the screen"
        )
        lines = driven.text("overview").splitlines()
        y = next(k for k, line in enumerate(lines) if line.split()[:1] == ["iteration"])
        numbers = list(re.finditer(r"\d+", lines[y].split(" at ")[0]))
        assert len(numbers) > 3
        for found in numbers:
            await driven.pilot.click("#overview", offset=(found.start() + pane.gutter.left, y + 1))
            await driven.settle()
            assert pane.at.iteration == int(found[0])

    drive(model, script, size=size, starts_up=True, runs=True)
