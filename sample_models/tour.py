"""The tour of the README: a NaN is found, explained and fixed in rwkv_overflow; its pictures are those of the screen.

`python -m sample_models.tour` drives the application. It writes sample_models/rwkv_overflow/tour_*.svg, tour.svg, which
plays the tour in ten seconds, and the screens that pages show as text: a page has them between
`<!-- screen NAME -->` and `<!-- end of screen -->`.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
from stepper_tui.app import StepperApp
from textual.pilot import Pilot

import stepper
from sample_models.animation import animated
from stepper.debug.debugger import Debugger

SECONDS: Final = (2.5, 1.5, 2.5, 2.0, 1.5)
"""How long the animated picture shows each step: ten seconds in all."""

ROOT: Final = Path(__file__).parents[1]
FOLDER: Final = ROOT / "sample_models" / "rwkv_overflow"
SIZE: Final = (120, 30)
FONT: Final = "ui-monospace, 'DejaVu Sans Mono', Menlo, Consolas, monospace"
PATIENCE_S: Final = 30


@dataclass(frozen=True)
class Step:
    """What is typed, keys and lines that begin with a colon, and what the screen shows then."""

    name: str
    typed: tuple[str, ...]
    shows: tuple[str, ...]


STEPS: Final = (
    Step(
        "sheet",
        (),
        ("Divide wkv@8", "exp_key @7", "exp(89.200) = +Inf", "NaN in 32 of 96"),
    ),
    Step("nan", ("x",), ("2 of 2: NaN", "wkv @8", "+Inf / +Inf = NaN", "numerator_now[0,3] = +Inf")),
    Step(
        "why",
        ("o",),
        (
            "why wkv@8[0,3] is NaN: exp(89.2) > f32 maximum",
            "came over 2 back edges",
            "from embedded[7,6] = -20.892",
            "why 11",
        ),
    ),
    Step(
        "edit",
        (":set key[0,3] = 80",),
        ("A  branch original", "first differs from A in MatMul key@7", "changed in 4 of 12 rows", "changed 15", "✓"),
    ),
    Step("healed", ("Esc",), ("edited*", "changed in 4 of 12 rows", "carried 6", "mixed f32[12,8]  ·  wkv f32[12,8]")),
)


@dataclass(frozen=True)
class Screen:
    """The screen after a step, as text and as a picture."""

    step: Step
    text: str
    svg: str


@dataclass(frozen=True)
class TextScreen:
    """A screen that a page shows as text: the sample, the steps that lead to it, and the size of the terminal."""

    page: str
    name: str
    sample: str
    steps: tuple[Step, ...]
    size: tuple[int, int]


TEXT_SCREENS: Final = (
    TextScreen("README.md", "why", "rwkv_overflow", STEPS[:3], (110, 19)),
    TextScreen("docs/guide/application.md", "sheet", "while_loop", STEPS[:1], (110, 20)),
)
_BLOCK: Final = re.compile(r"<!-- screen (\w+) -->\n.*?<!-- end of screen -->", re.DOTALL)


async def screens() -> AsyncIterator[Screen]:
    """Take the tour."""
    async with _application(FOLDER.name, SIZE) as (app, pilot):
        for step in STEPS:
            text = await _taken(app, pilot, step)
            yield Screen(step, text, compact(app.export_screenshot(title=f"stepper {FOLDER.name}")))


async def screen_as_text(screen: TextScreen) -> str:
    """Return a screen that a page shows, as lines."""
    async with _application(screen.sample, screen.size) as (app, pilot):
        text = ""
        for step in screen.steps:
            text = await _taken(app, pilot, step, is_whole=False)
        return text


def with_screen(page: str, name: str, text: str) -> str:
    """Return a page in which the screen of this name is the text."""

    def block(found: re.Match[str]) -> str:
        shown = f"<!-- screen {name} -->\n```text\n{text}\n```\n<!-- end of screen -->"
        return shown if found[1] == name else found[0]

    return _BLOCK.sub(block, page)


@asynccontextmanager
async def _application(sample: str, size: tuple[int, int]) -> AsyncIterator[tuple[StepperApp, Pilot[Any]]]:
    folder = ROOT / "sample_models" / sample
    inputs = dict(np.load(folder / "inputs.npz"))
    app = StepperApp(Debugger(stepper.read_model(folder / "model.xml"), inputs), sample, runs=True)
    async with app.run_test(size=size) as pilot:
        yield app, pilot
        app.driver.close()


async def _taken(app: StepperApp, pilot: Pilot[Any], step: Step, *, is_whole: bool = True) -> str:
    """Type a step, and wait until the screen has what it shows; return its text. On a small screen less is shown."""
    for typed in step.typed:
        await _rest(app, pilot)
        if typed.startswith(":"):
            app.perform(typed[1:])
        else:
            await pilot.press({"Esc": "escape"}.get(typed, typed))
    text, same = "", 0
    for _ in range(PATIENCE_S * 10):
        await _rest(app, pilot)
        before, text = text, _text(app)
        same = same + 1 if text == before else 0
        if same >= (3 if is_whole else 10) and (not is_whole or all(words in text for words in step.shows)):
            break
    return text


def _text(app: StepperApp) -> str:
    return "\n".join(strip.text.rstrip() for strip in app.screen._compositor.render_strips()).strip("\n")


async def _rest(app: StepperApp, pilot: Pilot[Any]) -> None:
    """Until everything that was asked for is done and seen, the run behind the sheet as well."""
    await pilot.pause()
    for _ in range(1000):
        known = app.state.overview
        if app.driver.is_at_rest and known is not None and known.births_complete:
            break
        await pilot.pause(0.02)
    await pilot.pause(0.1)


def compact(svg: str) -> str:
    """A screenshot of Textual in a third of the bytes, with fonts that are there and none from the network."""
    identity = re.search(r"terminal-\d+-", svg)
    svg = svg.replace(identity[0] if identity else "", "")
    svg = re.sub(r"\s*<!--.*?-->|@font-face \{.*?\}|<clipPath id=\"line-\d+\">.*?</clipPath>", "", svg, flags=re.DOTALL)
    svg = re.sub(r' clip-path="url\(#line-\d+\)"| shape-rendering="crispEdges"', "", svg)
    svg = svg.replace("&#160;", "\u00a0").replace("Fira Code, monospace", FONT)
    svg = svg.replace("<style>", "<style>text { font-variant-ligatures: none } rect { shape-rendering: crispEdges }", 1)
    svg = re.sub(r'="(\d+\.\d)\d+"', r'="\1"', svg)
    svg = re.sub(r"<text [^>]*>\n?\u00a0*</text>", "", svg)
    svg = re.sub(_RECT.pattern + r"(?:" + _RECT.pattern + ")*", lambda found: _merged(found[0]), svg)
    return re.sub(r"[ \t]*\n\s*", "\n", svg).strip() + "\n"


_RECT: Final = re.compile(r'<rect fill="[^"]*" x="[^"]*" y="[^"]*" width="[^"]*" height="[^"]*"/>')
_NUMBERS: Final = re.compile(r'fill="([^"]*)" x="([^"]*)" y="([^"]*)" width="([^"]*)" height="([^"]*)"')


def _merged(rects: str) -> str:
    """Rectangles of one colour that stand side by side as one."""
    found: list[tuple[str, float, str, float, str]] = []
    for fill, x, y, width, height in _NUMBERS.findall(rects):
        left, wide = float(x), float(width)
        if found and (found[-1][0], found[-1][2]) == (fill, y) and abs(found[-1][1] + found[-1][3] - left) < 0.2:
            left, wide = found[-1][1], left + wide - found.pop()[1]
        found.append((fill, left, y, wide, height))
    return "".join(
        f'<rect fill="{fill}" x="{left:g}" y="{y}" width="{wide:.5g}" height="{height}"/>'
        for fill, left, y, wide, height in found
    )


async def _write() -> None:
    found = [screen async for screen in screens()]
    for screen in found:
        _save(FOLDER / f"tour_{screen.step.name}.svg", screen.svg)
    _save(FOLDER / "tour.svg", animated([screen.svg for screen in found], SECONDS))
    for shown in TEXT_SCREENS:
        page = ROOT / shown.page
        _save(page, with_screen(page.read_text(encoding="utf-8"), shown.name, await screen_as_text(shown)))


def _save(path: Path, text: str) -> None:
    path.write_text(text, encoding="utf-8", newline="\n")
    print(f"{path.name}: {path.stat().st_size} bytes")


if __name__ == "__main__":
    asyncio.run(_write())
