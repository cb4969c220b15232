"""The selected operation as a node: what it reads and what reads it, where there is room for it."""

from __future__ import annotations

import asyncio

import pytest

from tests.tui.driven import DECODER, Driven, drive

AT_SOFTMAX = (f"run-to {DECODER}@0", "iter 7", "run-to `aten::softmax/Softmax`")


def test_attributes_inputs_and_readers_stand_below_the_value_of_a_large_screen() -> None:
    async def script(driven: Driven) -> None:
        lines = driven.text("node").splitlines()
        assert lines[0].split()[:3] == ["Softmax", "axis", "-1"] or "axis -1" in lines[0]
        assert lines[1].split()[:3] == ["reads", "squeeze/Squeeze", "f32[1,16]"]
        assert lines[2].split()[:3] == ["read", "by", "Unsqueeze_1"] and "not computed yet" in lines[2]
        tall = driven.pane("graph").size.height
        await driven.press("n", "n", "n")
        assert driven.pane("graph").size.height == tall, "nothing moves when something happens"
        assert driven.text("node").splitlines()[1].split()[1] == "bmm/MatMul"
        driven.pane("node").focus()
        await driven.press("enter")
        layers, cursor = driven.state.frame.layers, driven.state.cursor
        assert "bmm/MatMul" in driven.text("node") or layers[cursor].name.endswith("MatMul")
        assert driven.state.selected is not None

    drive("date_normaliser", script, lines=AT_SOFTMAX, size=(200, 60))


@pytest.mark.parametrize("size", [(120, 40), (160, 48)], ids=str)
def test_elsewhere_the_graph_has_the_room(size: tuple[int, int]) -> None:
    async def script(driven: Driven) -> None:
        assert not driven.pane("node").display

    drive("date_normaliser", script, lines=AT_SOFTMAX, size=size)


@pytest.mark.parametrize("operation", ["aten::softmax/Softmax", "aten::argmax/Squeeze"])
def test_no_tab_of_a_small_terminal_is_half_empty(operation: str) -> None:
    async def script(driven: Driven) -> None:
        for _ in range(5):
            await driven.filled()
            await driven.press("tab")
            names = [pane.id for pane in driven.app.screen.query("Pane") if pane.is_on_screen and pane.id]
            shown = [name for name in names if name not in ("top", "tabs", "answer", "colon", "keys")]
            blank = [line for name in shown for line in _lines(driven, name) if not line.strip()]
            lines = [line for name in shown for line in _lines(driven, name)]
            assert len(blank) <= 0.4 * len(lines), (driven.app.screen.tab, len(blank), len(lines))  # type: ignore[attr-defined]

    lines = (f"run-to {DECODER}@0", "iter 7", f"run-to `{operation}`")
    drive("date_normaliser", script, lines=lines, size=(80, 24))


def _lines(driven: Driven, name: str) -> list[str]:
    """All lines of a pane; shades count as something."""
    pane = driven.pane(name)
    found = []
    for y in range(pane.size.height):
        strip = pane.render_line(y)
        shaded = any(part.style and part.style.bgcolor != pane.rich_style.bgcolor for part in strip)
        found.append("shades" if shaded else strip.text)
    return found


def test_below_a_short_list_of_a_large_screen_is_the_selected_value_over_the_iterations() -> None:
    async def script(driven: Driven) -> None:
        await _until(driven, "over iterations", "[0,7]")
        assert driven.text("spare").splitlines()[0].split() == ["wkv", "over", "iterations"]
        await driven.press("K", "K")
        await _until(driven, "numerator_now over", "[0,7]")
        pane = driven.pane("spare")
        pane.title = "that of the value before"
        pane.changed()
        assert "numerator_now over" in "".join(text for text, _ in pane.visible_lines(*pane.size)[0])
        await driven.press("u")
        assert not driven.pane("spare").display or driven.pane("spare").size.height >= 7

    drive("rwkv_overflow", script, lines=("run-to wkv@5",), size=(200, 60))


async def _until(driven: Driven, *words: str) -> None:
    for _ in range(60):
        await driven.filled()
        found = driven.app.screen.query("#spare")
        if found and all(word in driven.text("spare") for word in words):
            return
        await asyncio.sleep(0.05)
    raise AssertionError(f"{words} did not come")
