"""Whatever keys are pressed on whatever model: no pane fails, and the session goes on."""

from __future__ import annotations

import random

import pytest

from tests.tui.driven import Driven, drive

KEYS = (
    *"nNsSnNsSfcCtgvVeoObwxX+-yYjkhl=",
    *(
        "right_square_bracket",
        "left_square_bracket",
        "down",
        "up",
        "left",
        "right",
        "tab",
        "shift+tab",
        "enter",
        "space",
    ),
    *("escape", "2", "q", "question_mark", "pagedown", "pageup", "full_stop", "m", "a", "apostrophe"),
)
SIZES = ((80, 24), (120, 40), (160, 48), (200, 60), (60, 18))


@pytest.mark.parametrize("name", ["nested_loop", "while_loop", "growing_tensor", "reverse", "date_normaliser"])
def test_no_pane_fails(name: str) -> None:
    rng = random.Random(name)
    size = rng.choice(SIZES)

    async def script(driven: Driven) -> None:
        driven.app.leave = lambda: None  # type: ignore[method-assign]
        pressed = []
        for _ in range(30):
            key = rng.choice(KEYS)
            pressed.append(key)
            await driven.pilot.press(key)
            if rng.random() < 0.3:
                await driven.settle()
            assert not driven.app._faults, pressed
        await driven.filled()
        assert not driven.app._faults, pressed
        await driven.press("escape", "escape", "n")
        assert driven.state.view is not None and not driven.app._faults

    drive(name, script, size=size)


@pytest.mark.parametrize("size", SIZES, ids=str)
def test_any_size_shows_something_whole(size: tuple[int, int]) -> None:
    async def script(driven: Driven) -> None:
        for other in (size, (100, 30), (61, 19)):
            await driven.pilot.resize_terminal(*other)
            await driven.press("n")
            assert not driven.app._faults
            for pane in driven.app.screen.query("Pane"):
                if pane.is_on_screen and pane.size.width:
                    for y in range(pane.size.height):
                        assert pane.render_line(y).cell_length == pane.size.width, pane

    drive("nested_loop", script, size=size, lines=("step", "step", "step"))
