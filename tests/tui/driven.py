"""The real application, driven with keys and mouse; and its panes as plain text, compared with goldens.

    def test_something() -> None:
        async def script(driven: Driven) -> None:
            await driven.do("o", ":rows all")
            assert "89.200" in driven.text("sheet")
        drive("rwkv_overflow", script, size=(160, 48), runs=True)

With STEPPER_RECORD=1 in the environment `driven.golden(...)` writes the goldens instead of comparing.
"""

from __future__ import annotations

import asyncio
import os
import unicodedata
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from time import process_time
from typing import Any

import numpy as np
from stepper_tui.app import StepperApp
from stepper_tui.paint.pane import Pane
from stepper_tui.screens.sheet.model import SheetModel
from stepper_tui.state import State
from stepper_tui.theme import Look
from textual import events, keys
from textual.css.stylesheet import Stylesheet
from textual.message_pump import MessagePump
from textual.pilot import Pilot

import stepper
from stepper.debug.debugger import Debugger
from stepper.debug.overview.overview_facts import Overview, RunState
from stepper.integrations.dap.joining import RunPort
from stepper.session.input_choices import Opening
from tests.debug.debugged import SAMPLES
from tests.last_digits import difference

os.environ["TEXTUAL_ANIMATIONS"] = "none"

GOLDENS = Path(__file__).parent / "goldens"
PAUSED = (RunState.PAUSED, RunState.OUT_OF_TIME, RunState.OUT_OF_MEMORY)
_LOOKS, _PAUSE = 2000, 0.005
"""How often at most it is seen whether something has come, and the seconds between."""
DECODER = "`prim::Loop/Loop`"
"""The loop of the date model."""


@dataclass
class Driven:
    """An application under test."""

    app: StepperApp
    pilot: Pilot[Any]

    async def settle(self) -> None:
        """Until everything that was asked for is done and seen."""
        await self._handled()
        for _ in range(_LOOKS):
            if self._has_ended:
                return
            if not self._is_busy:
                await self._handled()
                if not self._is_busy:  # what came may have made a pane ask for more
                    return
            await asyncio.sleep(_PAUSE)
        raise AssertionError("what was asked for was not done in time")

    async def until(self, holds: Callable[[], bool]) -> None:
        """Until something holds, which nothing asks for."""
        for _ in range(_LOOKS):
            await self.settle()
            if holds():
                return
            await asyncio.sleep(_PAUSE)
        raise AssertionError(f"it does not come to that; there is\n{self.screen}")

    @property
    def _is_busy(self) -> bool:
        driver = self.app.driver
        awaits_the_first_picture = driver.is_open and not driver.is_closed and self.app.state.view is None
        is_asked = driver.is_pressed or bool(driver._command)  # what gives way may go on for long
        return is_asked or self.app.chooser.begins or awaits_the_first_picture or not self._is_laid_out

    @property
    def _is_laid_out(self) -> bool:
        """True if no widget waits for its place; one that gets another size may show other things.

        A widget that is hidden may wait until it is shown.
        """
        screen = self.app.screen
        return not any(widget._layout_required and widget.display for widget in (screen, *screen.query("*")))

    async def _handled(self) -> None:
        """Until every message that was sent before is handled, and what changed by it is painted.

        Pilot.pause() sends a message to every widget, which is a third of all work of a test, and without a delay it
        waits until the process has nothing to do, which the histories prevent for long.
        """
        for _ in range(2):
            await self._quiet()
            if self._has_ended:
                return
            self.app.screen._on_timer_update()

    async def _quiet(self) -> None:
        """Until application and widgets all wait for messages, also after what others had ready for the event loop."""
        ends, looks = process_time() + 30, 0
        while looks < 2 and not self._has_ended:
            await asyncio.sleep(0)
            looks = looks + 1 if _awaits_messages(self.app) and all(map(_awaits_messages, self.app._registry)) else 0
            assert process_time() < ends, "messages were not handled in time"

    @property
    def _has_ended(self) -> bool:
        return self.app._closing or self.app._closed or self.app._exception is not None

    async def filled(self) -> None:
        """Until the histories of the last iterations are there, too."""
        await self.settle()
        for _ in range(2 * _LOOKS):
            if self.app.driver.is_at_rest:
                await self.settle()
                return
            await asyncio.sleep(_PAUSE)
            await self._handled()
        raise AssertionError("the histories were not filled in time")

    async def ran(self) -> Overview:
        """Until the run of the overview is made, as far as it is made by itself; without any key. What is known."""
        for _ in range(_LOOKS):
            known = self.app.state.overview
            if known is not None and (known.births_complete or known.state in PAUSED):
                await self.filled()
                assert not self.app._faults
                if self.app.state.overview is known:  # else another run has begun meanwhile
                    return known
            await asyncio.sleep(_PAUSE)
            await self._handled()
        raise AssertionError("the run of the overview was not made in time")

    async def press(self, *names: str) -> None:
        """One key after another, each with what it does."""
        for key in names:
            self.app.post_message(key_event(key))
            await self.settle()

    async def do(self, *steps: str) -> str:
        """Keys, and lines that begin with a colon, each until all that it asks for is there; what the screen shows."""
        for step in steps:
            if len(step) > 1 and step.startswith(":"):
                await self.type(step[1:])
            else:
                await self.press(step)
            await self.filled()
        assert not self.app._faults, self.app._faults
        return self.screen

    async def checks(self, *table: tuple[str, ...]) -> None:
        """Each line of the table: steps, and last what the screen shows after them."""
        for *steps, told in table:
            shown = await self.do(*steps)
            assert told in shown, f"{steps} does not lead to {told!r}:\n{shown}"

    async def type(self, line: str) -> None:
        """A line at the prompt, carried out."""
        await self.press("colon")
        self.app.front.prompt.value = line
        await self.press("enter")

    @property
    def state(self) -> State:
        """What is shown."""
        return self.app.state

    @property
    def sheet(self) -> SheetModel:
        """The rows of the sheet, and its cursor."""
        sheet = self.app._sheet
        assert sheet is not None
        return sheet.model

    @property
    def at(self) -> tuple[str, int | None]:
        """The name of the row of the cursor, and its iteration."""
        view, column = self.sheet.view, self.sheet.at
        assert view is not None and column is not None
        return view.topic.values[column.value].name, self.sheet.iteration

    @property
    def names(self) -> list[str]:
        """The names of the rows of the sheet."""
        view = self.sheet.view
        return [] if view is None else [value.name for value in view.topic.values]

    @property
    def rows(self) -> str:
        """Which set of rows the sheet shows."""
        return "" if self.sheet.found is None else str(self.sheet.found.question.rows)

    @property
    def iterations(self) -> list[int | None]:
        """The iterations in which the run stands, the outermost first."""
        return [frame.iteration for frame in self.state.frames[1:]]

    def row(self, name: str) -> list[str]:
        """The words of the first row of this name on the sheet, behind it."""
        lines = (one[3:] for one in self.text("sheet").splitlines())
        line = next(one for one in lines if one.startswith((f"{name} ", f"{name}[")))
        return line.removeprefix(name).split()

    @property
    def answer(self) -> str:
        """The last answer: its lines, or the one above the prompt."""
        card = self.text("card") if self.app.front.has_answer else ""
        return f"{card}\n{self.text('answer').strip()}".strip()

    @property
    def screen(self) -> str:
        """All that is painted, the lines between panes and what lies over the screen too."""
        return "\n".join(strip.text.rstrip() for strip in self.app.screen._compositor.render_strips())

    async def click(self, pane: str, text: str, times: int = 1) -> None:
        """Click on a text of a pane."""
        widget = self.pane(pane)
        lines = self.text(pane).splitlines()
        y = next((y for y, line in enumerate(lines) if text in line), -1)
        assert y >= 0, f"{text!r} is not in\n{self.text(pane)}"
        place = lines[y].index(text) + widget.gutter.left, y + widget.gutter.top
        await self.pilot.click(f"#{pane}", offset=place, times=times)
        await self.filled()

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
        check_golden(name, "\n".join(f"--- {selector}\n{self.text(selector)}" for selector in selectors) + "\n")


def _awaits_messages(pump: MessagePump) -> bool:
    """True if there is no message for it and it is handling none."""
    queue = pump._message_queue
    return pump._closing or pump._closed or bool(not queue.values and queue.ready_event._waiters)


def check_golden(name: str, text: str) -> None:
    """Raise AssertionError with the first line that is not as in the golden of this name.

    A sentence that several screens or sizes show belongs into one golden of its own, not into each of theirs.
    """
    path = GOLDENS / f"{name}.txt"
    if os.environ.get("STEPPER_RECORD"):
        path.write_text(text, encoding="utf-8")
    assert not (wrong := difference(text, path.read_text(encoding="utf-8"))), f"{path.name}, {wrong}"


def key_event(key: str) -> events.Key:
    """The event of a key by its name, or of a character."""
    if len(key) == 1:
        return events.Key(key if key.isalnum() else keys._character_to_key(key), key)
    try:
        return events.Key(key, unicodedata.lookup(keys._get_unicode_name_from_key(keys.REPLACED_KEYS.get(key, key))))
    except KeyError:
        return events.Key(key, None)


Script = Callable[[Driven], Awaitable[None]]

_parsed: dict[Any, Any] = {}
"""Rules of style sheets as Textual has parsed them, by their text and the colours of the theme."""


class ParsedRules:
    """What a style sheet keeps of what it has parsed, kept from one application to the next: an eighth of a start."""

    def __init__(self, sheet: Stylesheet) -> None:
        self._sheet = sheet
        self._colours: frozenset[tuple[str, str]] | None = None

    def _key(self, key: Any) -> Any:
        if self._colours is None:
            self._colours = frozenset(self._sheet._variables.items())
        return self._colours, key

    def __getitem__(self, key: Any) -> Any:
        return _parsed[self._key(key)]

    def __setitem__(self, key: Any, rules: Any) -> None:
        _parsed[self._key(key)] = rules

    def clear(self) -> None:
        """Look for those of other colours."""
        self._colours = None


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
    starts_up: bool = False,
    runs: bool | None = None,
    editors: RunPort | None = None,
) -> None:
    """Run a script in the application on a sample model, or what else is to open, beginning with `lines`.

    `runs`: wait first until the run behind the sheet is made.
    """

    async def run() -> None:
        opening = subject if isinstance(subject, Opening) else None
        debugger = debugger_of_sample(subject) if isinstance(subject, str) else None if opening else subject
        name = subject if isinstance(subject, str) else "subject"
        app = StepperApp(debugger, name, look, opening=opening, starts_up=starts_up, runs=runs, editors=editors)
        app.stylesheet._parse_cache = ParsedRules(app.stylesheet)  # type: ignore[assignment]  # all that is asked of it
        async with app.run_test(size=size) as pilot:
            driven = Driven(app, pilot)
            try:
                await driven.settle()
                if runs:
                    await driven.ran()
                for line in lines:
                    app.perform(line)
                    await driven.settle()
                await script(driven)
            finally:
                app.driver.close()

    asyncio.run(run())
