"""The real application, driven with keys and mouse; and its panes as plain text, compared with goldens.

    def test_something() -> None:
        async def script(driven: Driven) -> None:
            await driven.press("n", "n")
            assert "Softmax" in driven.text("operations")
        drive("date_normaliser", script, size=(160, 48))

With STEPPER_RECORD=1 in the environment `driven.golden(...)` writes the goldens instead of comparing.
"""

from __future__ import annotations

import asyncio
import os
import re
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
from textual.pilot import Pilot

import stepper
from stepper.debug.debugger import Debugger
from tests.debug.debugged import SAMPLES
from tui.app import StepperApp
from tui.inputs import Opening
from tui.panes.base import Pane
from tui.state import State
from tui.theme import Look

os.environ["TEXTUAL_ANIMATIONS"] = "none"

_DECIMAL: Final = re.compile(r"-?\d+\.\d+")
GOLDENS = Path(__file__).parent / "goldens"
DECODER = "`prim::Loop/Loop`"
"""The loop of the date model."""


@dataclass
class Driven:
    """An application under test."""

    app: StepperApp
    pilot: Pilot[Any]

    async def settle(self) -> None:
        """Until everything that was asked for is done and seen."""
        for _ in range(500):
            await self.pilot.pause()
            if not self.app.driver.is_busy:
                break
            await asyncio.sleep(0.01)
        await self.pilot.pause()

    async def filled(self) -> None:
        """Until the histories of the last iterations are there, too."""
        await self.settle()
        for _ in range(300):
            await asyncio.sleep(0.02)
            await self.pilot.pause()
            if self.app.driver.is_at_rest:
                break
        await self.settle()

    async def press(self, *keys: str) -> None:
        """One key after another, each with what it does."""
        for key in keys:
            await self.pilot.press(key)
            await self.settle()

    async def type(self, line: str) -> None:
        """A line at the prompt, carried out."""
        await self.pilot.press("colon")
        self.app.front.prompt.value = line
        await self.pilot.press("enter")
        await self.settle()

    @property
    def state(self) -> State:
        """What is shown."""
        return self.app.state

    def pane(self, selector: str) -> Pane:
        """A pane of the screen in front, by its id."""
        return self.app.screen.query_one(f"#{selector}", Pane)

    def text(self, selector: str) -> str:
        """What a pane shows, as lines without blanks at their ends."""
        pane = self.pane(selector)
        lines = [pane.render_line(y).text.rstrip() for y in range(pane.size.height)]
        return "\n".join(lines).rstrip("\n")

    def golden(self, name: str, *selectors: str) -> None:
        """Panes as they were when somebody looked at them and found them right."""
        text = "\n".join(f"--- {selector}\n{self.text(selector)}" for selector in selectors) + "\n"
        path = GOLDENS / f"{name}.txt"
        if os.environ.get("STEPPER_RECORD"):
            path.write_text(text, encoding="utf-8")
        expected = path.read_text(encoding="utf-8")
        if not is_same_picture(text, expected):
            assert text == expected


def is_same_picture(text: str, expected: str) -> bool:
    """Whether two pictures are the same but for the last digit of numbers, in which processors differ."""
    lines, wanted = text.splitlines(), expected.splitlines()
    return len(lines) == len(wanted) and all(map(_is_same_line, lines, wanted))


def _is_same_line(line: str, wanted: str) -> bool:
    if line == wanted:
        return True
    words, others = line.split(), wanted.split()
    return len(words) == len(others) and all(map(_is_same_word, words, others))


def _is_same_word(word: str, other: str) -> bool:
    if word == other:
        return True
    if not (_DECIMAL.fullmatch(word) and _DECIMAL.fullmatch(other)):
        return False
    digits = min(len(one.partition(".")[2]) for one in (word, other))
    return abs(float(word) - float(other)) < 1.5 * 10.0**-digits


Script = Callable[[Driven], Awaitable[None]]


def debugger_of_sample(name: str, **options: Any) -> Debugger:
    """A debugger of a sample model on its inputs."""
    model = stepper.read_model(SAMPLES / name / "model.xml")
    return Debugger(model, dict(np.load(SAMPLES / name / "inputs.npz")), **options)


def drive(
    subject: str | Debugger | Opening,
    script: Script,
    *,
    size: tuple[int, int] = (160, 48),
    lines: Sequence[str] = (),
    look: Look | None = None,
) -> None:
    """Run a script in the application on a sample model, or what else is to open, beginning with `lines`."""

    async def run() -> None:
        debugger = debugger_of_sample(subject) if isinstance(subject, str) else subject
        app = StepperApp(debugger, subject if isinstance(subject, str) else "subject", look)
        async with app.run_test(size=size) as pilot:
            driven = Driven(app, pilot)
            await driven.settle()
            for line in lines:
                app.perform(line)
                await driven.settle()
            await script(driven)
            app.driver.close()

    asyncio.run(run())
