"""Keys that are typed faster than the screen follows mean what they would mean if it did."""

from __future__ import annotations

import pytest
from textual import events

from tests.tui.driven import Driven, drive

NAMES = {":": "colon", "\n": "enter", "[": "left_square_bracket", " ": "space", "\x1b": "escape", "=": "equals_sign"}


async def burst(driven: Driven, text: str) -> None:
    """All keys at once, as a paste into the terminal or a quick typist sends them."""
    for letter in text:
        driven.app.post_message(events.Key(NAMES.get(letter, letter), letter if letter.isprintable() else None))
    await driven.settle()


@pytest.mark.parametrize("text", [":next 3\nNN", "n:break nan\n", ":nonsense\x1bn", "n:next\nn:reverse-next\nN:next\n"])
def test_a_burst_of_keys_does_what_the_same_keys_do_one_by_one(text: str) -> None:
    found: list[tuple[int, int, str]] = []

    async def at_once(driven: Driven) -> None:
        await burst(driven, text)
        keep(driven)

    async def one_by_one(driven: Driven) -> None:
        for letter in text:
            await burst(driven, letter)
        keep(driven)

    def keep(driven: Driven) -> None:
        assert driven.state.stop is not None
        found.append((driven.state.stop.tick, len(driven.state.breaks), driven.app.front.prompt.value))

    drive("nested_loop", one_by_one)
    drive("nested_loop", at_once)
    assert found[0] == found[1] and found[0][2] == ""
