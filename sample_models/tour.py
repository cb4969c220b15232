"""The tour of the README: a NaN is found, understood and healed in rwkv_overflow; its pictures are those of the screen.

`python -m sample_models.tour` drives the application and writes sample_models/rwkv_overflow/tour_*.svg, and tour.svg,
which plays the tour in ten seconds.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
from textual.pilot import Pilot

import stepper
from sample_models.animation import animated
from stepper.debug.debugger import Debugger
from tui.app import StepperApp

SECONDS: Final = (2.5, 2.5, 1.5, 2.0, 1.5)
"""How long the animated picture shows each step: ten seconds in all."""

FOLDER: Final = Path(__file__).parent / "rwkv_overflow"
SIZE: Final = (120, 36)
FONT: Final = "ui-monospace, 'DejaVu Sans Mono', Menlo, Consolas, monospace"


@dataclass(frozen=True)
class Step:
    """What is typed, keys and lines that begin with a colon, and what the screen shows then."""

    name: str
    typed: tuple[str, ...]
    shows: tuple[str, ...]


STEPS: Final = (
    Step(
        "overview", (), ("Inf born in Exp exp_key@7", "NaN in Divide wkv@8", "NaN in 32 of 96", "12 iterations of 12")
    ),
    Step(
        "story",
        ("o",),
        (
            "why wkv@8[0,3] is NaN",
            "exp(89.2) > f32 maximum",
            "why 11",
            "embedded[7,6] = -20.892",
            "Inf / Inf",
            "2 back edges",
        ),
    ),
    Step("moment", ("Enter",), ("time_mixing 7 of 12", "exp_key", "+Inf", "outputs growing")),
    Step(
        "edit",
        ("N", ":set key[0,3] = 80"),
        ("A  branch original", "now branch edit-1", "the edit", "changed in 4 of 12 rows"),
    ),
    Step("end", ("0",), ("now branch edit-1", "edited*", "no NaN, no Inf", "12 iterations of 12")),
)


@dataclass(frozen=True)
class Screen:
    """The screen after a step, as text and as a picture."""

    step: Step
    text: str
    svg: str


async def screens() -> AsyncIterator[Screen]:
    """Take the tour."""
    inputs = dict(np.load(FOLDER / "inputs.npz"))
    app = StepperApp(Debugger(stepper.read_model(FOLDER / "model.xml"), inputs), FOLDER.name, runs=True)
    async with app.run_test(size=SIZE) as pilot:
        await _rest(app, pilot)
        for step in STEPS:
            for typed in step.typed:
                if typed.startswith(":"):
                    app.perform(typed[1:])
                else:
                    await pilot.press({"Enter": "enter"}.get(typed, typed))
                await _rest(app, pilot)
            lines = [strip.text.rstrip() for strip in app.screen._compositor.render_strips()]
            yield Screen(step, "\n".join(lines), compact(app.export_screenshot(title=f"stepper {FOLDER.name}")))
        app.driver.close()


async def _rest(app: StepperApp, pilot: Pilot[Any]) -> None:
    """Until everything that was asked for is done and seen, the run behind the overview as well."""
    await pilot.pause()
    for _ in range(1000):
        known = app.state.overview
        if app.driver.is_at_rest and known is not None and known.births_complete:
            break
        await pilot.pause(0.02)
    await pilot.pause(0.3)


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
        _save(f"tour_{screen.step.name}.svg", screen.svg)
    _save("tour.svg", animated([screen.svg for screen in found], SECONDS))


def _save(name: str, text: str) -> None:
    path = FOLDER / name
    path.write_text(text, encoding="utf-8", newline="\n")
    print(f"{name}: {path.stat().st_size} bytes")


if __name__ == "__main__":
    asyncio.run(_write())
