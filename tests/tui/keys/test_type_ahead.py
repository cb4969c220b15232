"""Keys that are typed faster than the screen follows mean what they would mean if it did."""

from __future__ import annotations

import pytest
from textual import events

import stepper
from stepper.debug.debugger import Debugger
from stepper.session.input_choices import Opening
from tests.debug.debugged import SAMPLES
from tests.tui.driven import Driven, drive

NAMES = {":": "colon", "\n": "enter", "[": "left_square_bracket", " ": "space", "\x1b": "escape", "=": "equals_sign",
         "]": "right_square_bracket", ",": "comma"}  # fmt: skip


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


def test_a_line_that_is_typed_quickly_is_whole_also_where_a_pane_has_lines_of_its_own() -> None:
    async def script(driven: Driven) -> None:
        await driven.type("view inputs")
        await burst(driven, ":input values [5,4,3,2,1]\n")
        assert driven.app.answered[1] != "bad", driven.app.answered
        choices = driven.app.inputs
        assert choices is not None and choices.choices[0].text == "[5,4,3,2,1]"
        await burst(driven, "\n,6\n:input values [9]\n")
        assert choices.choices[0].text == "[9]", "a line of the pane, then one of the prompt"

    model = stepper.read_model(SAMPLES / "nested_loop" / "model.xml")
    drive(Opening(model, {0: "[3,2,1]"}, {}, lambda inputs: Debugger(model, dict(inputs.items()))), script)
