"""What makes a session convenient: Python on the values, search, anomalies, origins, figures of the screen."""

from __future__ import annotations

import asyncio
from pathlib import Path

import numpy as np
import pytest

from tests.tui.driven import DECODER, Driven, drive
from tests.tui.sessions import session


@pytest.fixture(autouse=True)
def _nobodys_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))


def test_python_is_evaluated_at_its_prompt_and_nowhere_else(tmp_path: Path) -> None:
    async def script(driven: Driven) -> None:
        await driven.type(f"run-to {DECODER}@2")
        expected = float(
            driven.state.frame.value(
                next(p.id for p in driven.state.frame.graph.parameters if p.name == "h.9")
            ).array.max()
        )
        await driven.type('!float(vals["h.9"].max())')
        assert float(driven.text("answer")) == expected
        await driven.press("exclamation_mark")
        driven.app.front.prompt.value += "x = it * 21"
        await driven.press("enter")
        await driven.type("! x, type(np).__name__")
        assert driven.text("answer").strip() == "(42, 'module')"
        await driven.type('! vals["h.9"][0] = 0')
        assert "read-only" in driven.text("answer")
        await driven.type("! 1 / 0")
        assert "ZeroDivisionError" in driven.text("answer")
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
        await asyncio.sleep(0.2)
        await driven.press("escape")
        assert "interrupted" in driven.text("answer")
        await driven.press("n")
        assert driven.state.view.tick == 1

    session(script)


def test_search_goes_over_all_levels() -> None:
    async def script(driven: Driven) -> None:
        await driven.type("search Softmax")
        assert "which does not run now" in driven.text("answer") and driven.app.found
        await driven.press("t")
        frame = driven.state.frame
        assert frame.depth == 1 and frame.layers[frame.moment].type == "Softmax"
        await driven.type("search Loop")
        assert driven.state.depth == 0 and driven.state.frame.layers[driven.state.cursor].type == "Loop"
        await driven.type("search no such")
        assert "nothing in the model" in driven.text("answer")
        await driven.type("search MatMul")
        seen = {driven.app.found or driven.app.filled("{op}")}
        for _ in range(40):
            await driven.press("full_stop")
            seen.add(driven.app.found or driven.app.filled("{op}"))
        matmuls = sum(
            layer.type == "MatMul" for program in driven.app.driver.compiled.programs for layer in program.layers
        )
        named = sum(
            "matmul" in layer.name.lower() or layer.type == "MatMul"
            for program in driven.app.driver.compiled.programs for layer in program.layers
        )  # fmt: skip
        assert matmuls <= len(seen) == named

    session(script)


def test_the_next_anomaly_is_where_an_inf_is_made() -> None:
    async def script(driven: Driven) -> None:
        await driven.type(f"run-to {DECODER}@1")
        await driven.type("set h.9[0,0] = inf")
        begun = driven.state.view.tick
        await driven.press("x")
        made = driven.state.frame.operation(driven.state.frame.last)
        arrays = [value.array for value in made.outputs if value.array is not None]
        assert any(not np.isfinite(array).all() for array in arrays) and driven.state.view.tick > begun
        first = driven.state.view.tick
        await driven.press("x", "X")
        assert driven.state.view.tick == first

    session(script)


def test_where_a_value_comes_from_and_goes_to() -> None:
    async def script(driven: Driven) -> None:
        await driven.press("o")
        assert driven.app.front.view_name == "sheet" and "made of" in driven.text("inspector")
        await driven.press("q", "O")
        assert "read by" in driven.text("card") + driven.text("answer")
        await driven.type("uses h.9")
        assert "read by" in driven.text("card") + driven.text("answer")

    async def begun(driven: Driven) -> None:
        await driven.type(f"run-to {DECODER}@1")
        await driven.press("5", "n")
        await script(driven)

    session(begun)


def test_what_is_on_the_screen_is_exported(tmp_path: Path) -> None:
    async def script(driven: Driven) -> None:
        await driven.press("ctrl+e")
        assert driven.app.front.prompt.value == "export-screen date_normaliser-tick0.svg"
        path = tmp_path / "screen.svg"
        driven.app.front.prompt.value = f"export-screen {path}"
        await driven.press("enter")
        assert path.read_text(encoding="utf-8").lstrip().startswith("<svg") and "operations" in path.read_text()
        await driven.type(f"run-to {DECODER}@1")
        asked = [
            ("a.svg", "rolled", "<svg"),
            ("b.md", "ports", "h.9"),
            ("c.svg", "", "<svg"),
            ("e.json", "", '"trace"'),
        ]
        for name, view, part in asked:
            await driven.type(f"export-figure {tmp_path / name} {view}")
            assert "written" in driven.text("answer")
            assert part in (tmp_path / name).read_text(encoding="utf-8")
        await driven.type(f"export-figure {tmp_path / 'd.svg'} nonsense")
        assert "no figure 'nonsense'" in driven.text("answer")
        await driven.type(f"export-figure {tmp_path / 'd.xyz'}")
        assert ".xyz names no format; there are .svg, .html" in driven.text("answer")
        await driven.type("export-screen x.png")
        assert "ends in .svg" in driven.text("answer")

    session(script)


@pytest.mark.parametrize("opening", ["view main", "view overview", "why wkv@8", "view sheet"])
def test_beside_a_pane_that_is_alone_on_the_screen_answers_are_shown_and_everything_has_its_place(
    opening: str,
) -> None:
    async def script(driven: Driven) -> None:
        await driven.ran()
        if opening in ("view main", "view sheet"):
            await driven.type("run-to key@3")
        if opening != "view overview":
            await driven.type(opening)
        await driven.press("z")
        assert driven.app.screen.maximized is not None
        await driven.type("help goto")
        lines = ["".join(cell for cell in strip.text) for strip in driven.app.screen._compositor.render_strips()]
        assert any("usage: goto N" in line for line in lines[-12:]), "\n".join(lines)
        assert driven._is_laid_out
        await driven.press("escape")
        lines = ["".join(cell for cell in strip.text) for strip in driven.app.screen._compositor.render_strips()]
        assert not any("usage: goto N" in line for line in lines)
        await driven.press("z")
        assert driven.app.screen.maximized is None and driven._is_laid_out

    drive("rwkv_overflow", script, size=(120, 40), starts_up=True, runs=True)


def test_search_begins_with_what_has_the_very_name() -> None:
    async def script(driven: Driven) -> None:
        for name in ("tok", "toks", "tok", "h"):  # h: the beginning of many
            await driven.type(f"search {name}")
            assert driven.text("answer").split(": ")[1].startswith(f"{name} "), name
        await driven.type("search tok")
        first = driven.app.found
        await driven.press("full_stop")
        assert "toks " in driven.text("answer") and driven.app.found != first
        await driven.press("full_stop")
        assert driven.app.found == first, "round and round"

    drive("date_normaliser", script, lines=(f"run-to {DECODER}@2",))
