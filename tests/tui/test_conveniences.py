"""What makes a session convenient: Python on the values, figures of the screen, copies."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from tests.tui.driven import DECODER, Driven
from tests.tui.sessions import session


@pytest.fixture(autouse=True)
def _nobodys_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))


def test_python_is_evaluated_at_its_prompt_and_nowhere_else(tmp_path: Path) -> None:
    async def script(driven: Driven) -> None:
        await driven.type(f"run-to {DECODER}@2")
        frame = driven.state.frame
        assert frame is not None
        (parameter,) = (one.id for one in frame.graph.parameters if one.name == "h.9")
        array = frame.value(parameter).array
        assert array is not None
        await driven.type('!float(vals["h.9"].max())')
        assert float(driven.text("answer")) == float(array.max())
        await driven.press("exclamation_mark")
        driven.app.front.prompt.value += "x = it * 21"
        await driven.press("enter")
        await driven.type("! x, type(np).__name__")
        assert driven.text("answer").strip() == "(42, 'module')"
        for line, told in (('! vals["h.9"][0] = 0', "read-only"), ("! 1 / 0", "ZeroDivisionError")):
            await driven.type(line)
            assert told in driven.text("answer")
        path = tmp_path / "script"
        path.write_text("! x = 1\n")
        await driven.type(f"source {path}")
        assert "no command '!'" in driven.text("answer")

    session(script)


def test_python_without_an_end_is_ended_by_escape() -> None:
    async def script(driven: Driven) -> None:
        await driven.pilot.press("colon")
        driven.app.front.prompt.value = "! while True: pass"
        await driven.pilot.press("enter")
        while not driven.app.driver.is_pressed:
            await asyncio.sleep(0)
        while "interrupted" not in driven.text("answer"):  # until it has begun there is nothing to interrupt
            driven.app.python.interrupt()
            await asyncio.sleep(0)
        await driven.type("goto tick 0")
        await driven.type("next")
        assert driven.state.view is not None and driven.state.view.tick == 1

    session(script)


def test_what_is_on_the_screen_is_exported(tmp_path: Path) -> None:
    async def script(driven: Driven) -> None:
        await driven.press("ctrl+e")
        assert driven.app.front.prompt.value == "export-screen date_normaliser-tick0.svg"
        path = tmp_path / "screen.svg"
        driven.app.front.prompt.value = f"export-screen {path}"
        await driven.press("enter")
        assert path.read_text(encoding="utf-8").lstrip().startswith("<svg") and "carried" in path.read_text()
        await driven.type(f"run-to {DECODER}@1")
        asked = (
            ("a.svg", "rolled", "<svg"),
            ("b.md", "ports", "h.9"),
            ("c.svg", "", "<svg"),
            ("e.json", "", '"trace"'),
        )
        for name, view, part in asked:
            await driven.type(f"export-figure {tmp_path / name} {view}")
            assert "written" in driven.text("answer")
            assert part in (tmp_path / name).read_text(encoding="utf-8")
        refused = (
            (f"export-figure {tmp_path / 'd.svg'} nonsense", "no figure 'nonsense'"),
            (f"export-figure {tmp_path / 'd.xyz'}", ".xyz names no format; there are .svg, .html"),
            ("export-screen x.png", "ends in .svg"),
        )
        for line, told in refused:
            await driven.type(line)
            assert told in driven.text("answer")

    session(script)


def test_rows_and_addresses_are_copied() -> None:
    copied: list[str] = []

    async def script(driven: Driven) -> None:
        driven.app.copy_to_clipboard = copied.append  # type: ignore[method-assign, assignment]
        await driven.ran()
        await driven.type("search tok")
        await driven.filled()
        await driven.press("Y", "y")
        await driven.filled()
        address, rows = copied
        assert "@" in address and rows.splitlines()[0].startswith("@,")
        assert len(rows.splitlines()) == 12, "a line of names, and the 11 iterations"

    session(script)
