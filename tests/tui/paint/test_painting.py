"""What is kept from one paint to the next is what would be painted anew."""

from __future__ import annotations

import pytest
from msgspec.structs import replace
from stepper_tui.paint.painter import Horizontal, Vertical
from stepper_tui.paint.pane import Pane
from stepper_tui.state import State
from stepper_tui.theme import Look
from textual.geometry import Region
from textual.widget import Widget

from tests.tui.driven import DECODER, Driven, drive

AT_SOFTMAX = (f"run-to {DECODER}@0", "iter 7", "run-to `aten::softmax/Softmax`")
WAYS = ("n", "right_square_bracket", "J", "left_square_bracket", "b", "N", "tab", "u", "d")


def whole(widget: Widget) -> Region:
    return widget.outer_size.region


def painted(widget: Widget) -> list[list[tuple[str, object]]]:
    """What is painted now, kept or not, as letters with their styles."""
    return [_letters(strip) for strip in widget.render_lines(whole(widget))]


def by_textual(widget: Widget) -> list[list[tuple[str, object]]]:
    """What Textual would have painted."""
    widget._styles_cache.clear()
    return [_letters(strip) for strip in Widget.render_lines(widget, whole(widget))]


def _letters(strip: object) -> list[tuple[str, object]]:
    segments = list(strip)  # type: ignore[call-overload]
    return [
        (letter, letter != " " and segment.style.color, segment.style.bgcolor)
        for segment in segments
        for letter in segment.text
    ]


@pytest.mark.parametrize("look", [Look(), Look(ascii=True, plain=True)], ids=["colours", "ascii"])
def test_lines_that_are_kept_are_those_that_textual_would_paint(look: Look) -> None:
    async def script(driven: Driven) -> None:
        for key in WAYS:
            await driven.press(key)
            widgets = [*driven.app.screen.query(Pane), *driven.app.screen.query(Horizontal)]
            for widget in [*widgets, *driven.app.screen.query(Vertical)]:
                if widget.is_on_screen and widget.size:
                    assert painted(widget) == by_textual(widget), (key, widget)
        driven.app.perform("theme")
        await driven.settle()
        for pane in driven.app.screen.query(Pane):
            if pane.is_on_screen and pane.size:
                assert painted(pane) == by_textual(pane), ("theme", pane)

    drive("date_normaliser", script, lines=AT_SOFTMAX, size=(120, 40), look=look)


def test_panes_that_show_nothing_of_the_selection_look_the_same_with_another() -> None:
    async def script(driven: Driven) -> None:
        spared = [pane for pane in driven.app.screen.query(Pane) if not pane.follows_selection and pane.display]
        assert {pane.id for pane in spared} >= {"answer", "keys"}
        before = {pane: painted(pane) for pane in spared}
        other = replace(driven.state, selected=3)
        for pane in spared:
            pane.update(other)
            assert painted(pane) == before[pane], pane

    drive("date_normaliser", script, lines=AT_SOFTMAX)


def test_states_that_differ_in_the_selection_alone_are_told_from_others() -> None:
    state = State(model="one")
    assert state.differs_in_selection_alone(replace(state, selected=2))
    assert not state.differs_in_selection_alone(replace(state, selected=2, furthest=7))
