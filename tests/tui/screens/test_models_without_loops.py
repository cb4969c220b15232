"""A model without loops on the screens that show iterations of those that have some."""

from __future__ import annotations

import pytest

from tests.tui.driven import Driven, drive
from tests.tui.screens.overview.test_told_values import without_loops
from tui.screens.bars import Tabs

SIZES = pytest.mark.parametrize("size", [(80, 24), (120, 40), (200, 60)], ids=str)


@SIZES
def test_nothing_on_the_main_screen_waits_for_a_loop(size: tuple[int, int]) -> None:
    async def script(driven: Driven) -> None:
        await driven.type("next")
        await driven.filled()
        screen = driven.app.screen
        assert [screen.query_one(f"#{name}").size.area for name in ("time", "loop", "edges", "scans")] == [0] * 4
        names = screen.query_one(Tabs).names
        assert list(names) == ["body", "ops", "value"]
        seen = set()
        for _ in range(8 if size[0] < 100 else 0):
            await driven.press("tab")
            seen.add(driven.app.front.tab)
        assert seen <= {*names} and (size[0] >= 100 or len(seen) == 3)

    drive(without_loops(), script, size=size)


def test_below_a_short_list_stands_the_value_itself() -> None:
    async def script(driven: Driven) -> None:
        await driven.type("next")
        await driven.filled()
        spare = driven.text("spare")
        assert "2.718" in spare and "7.389" in spare and "it is in no loop" not in spare

    drive(without_loops(), script, size=(80, 24))
