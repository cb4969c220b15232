"""The terminal as the application leaves it."""

from __future__ import annotations

from typing import Any

from textual.driver import Driver

from tests.tui.driven import Driven, drive
from tui.terminal import clearing


class _Terminal(Driver):
    """A driver that keeps what is written."""

    written: list[str]

    def __init__(self, *_arguments: Any, **_options: Any) -> None:
        self.written = []

    def write(self, data: str) -> None:
        self.written.append(data)

    def start_application_mode(self) -> None:
        """Nothing."""

    def disable_input(self) -> None:
        """Nothing."""

    def stop_application_mode(self) -> None:
        self.written.append("normal screen")


def test_what_is_painted_is_cleared_before_the_normal_screen_comes_back() -> None:
    driver: Any = clearing(_Terminal)(None)
    driver.stop_application_mode()
    assert driver.written == ["\x1b[H\x1b[2J", "normal screen"]


def test_ctrl_z_gives_the_terminal_back_also_while_one_types() -> None:
    async def script(driven: Driven) -> None:
        stopped: list[str] = []
        driven.app.action_suspend_process = lambda: stopped.append(driven.app.front.prompt.value)  # type: ignore[method-assign]
        await driven.press("ctrl+z")
        await driven.press("colon", "n")
        await driven.press("ctrl+z")
        assert stopped == ["", "n"]

    drive("nested_loop", script)
