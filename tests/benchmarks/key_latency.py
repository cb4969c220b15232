"""From a key to the painted frame that shows what it did, in this process; and what of that other processes took."""

from __future__ import annotations

import asyncio
import gc
import os
import statistics
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

os.environ["TEXTUAL_ANIMATIONS"] = "none"

import stepper_tui

os.environ["TEXTUAL_FPS"] = stepper_tui.FRAMES  # of tui, before Textual is there

from stepper_tui.app import StepperApp
from stepper_tui.state import State
from textual import events

from stepper.debug.debugger import Debugger
from tests.benchmarks import timing
from tests.benchmarks.pseudo_terminal import PATIENCE, SIZE

PAUSE: Final = 0.06
"""Seconds between two keys, as between those of a quick typist."""
_NAMES: Final = {
    "]": "right_square_bracket",
    "[": "left_square_bracket",
    "→": "right",
    "←": "left",
    "↓": "down",
    "↑": "up",
}


@dataclass(frozen=True)
class Press:
    """What one key took, in seconds: by the clock, and without what its threads waited for a processor.

    Linux counts how long a thread that could run had to wait because others did; elsewhere nothing is taken off.
    """

    clock: float
    own: float


@dataclass(frozen=True)
class Keys:
    """Keys and those that take them back, after lines that bring the wanted pane into focus.

    Where they move no more than a cursor of the pane (`within`), the first paint is the answer.
    """

    where: str
    lines: tuple[str, ...]
    pane: str
    pairs: tuple[tuple[str, str], ...]
    within: bool = False


SHEET: Final = Keys("", (), "sheet", (("→", "←"), ("↓", "↑")), within=True)
STEPS: Final = Keys("step ", ("rows all",), "sheet", (("n", "N"),))
BESIDE_A: Final = Keys("A | now ", ("mark A",), "sheet", (("n", "N"),))
GRAPH: Final = Keys("graph ", ("view graph",), "graph", (("↓", "↑"),), within=True)
PLACES: Final = (SHEET, STEPS, BESIDE_A, GRAPH)


class Watched:
    """An application that tells when it has painted."""

    def __init__(self, app: StepperApp) -> None:
        self.app = app
        self._painted = asyncio.Event()
        self._display: Any = app._display
        self._when = 0.0
        app._display = self._note  # type: ignore[method-assign]

    def _note(self, screen: Any, renderable: Any) -> None:
        self._display(screen, renderable)
        self._when = time.perf_counter()
        self._painted.set()

    async def press(self, key: str, holds: Callable[[State, State], bool]) -> Press:
        """From a key to the first paint by which `holds(before, now)`."""
        before, had, begin = self.app.state, timing.share(), time.perf_counter()
        self._painted.clear()
        self.app.post_message(events.Key(_NAMES.get(key, key), key if len(key) == 1 and key.isascii() else None))
        while not (holds(before, self.app.state) and self._when > begin):
            await asyncio.wait_for(self._painted.wait(), PATIENCE)
            self._painted.clear()
        clock = self._when - begin
        return Press(clock, timing.own_time(clock, had, timing.share()))

    async def rest(self) -> None:
        """Until nothing is left to be done, histories included."""
        while not self.app.driver.is_at_rest:
            await asyncio.sleep(0.02)
        await asyncio.sleep(0.1)

    async def focus(self, keys: Keys) -> None:
        """Open the view and focus the pane."""
        for line in keys.lines:
            self.app.perform(line)
            await asyncio.sleep(0.2)
            await self.rest()
        self.app.screen.query_one(f"#{keys.pane}").focus()
        await asyncio.sleep(0.1)


def watch(debugger: Debugger, script: Callable[[Watched], Awaitable[None]], *, runs: bool | None = None) -> None:
    """Run a script on an application that has come to rest; `runs`: the run of the whole model is made behind it."""

    async def run() -> None:
        app = StepperApp(debugger, "subject", runs=runs)
        async with app.run_test(size=SIZE):
            watched = Watched(app)
            await asyncio.wait_for(watched.rest(), 3 * PATIENCE)
            gc.collect()
            gc.freeze()
            await script(watched)
            app.driver.close()

    try:
        asyncio.run(run())
    finally:
        gc.unfreeze()


def key_to_paint(debugger: Debugger, presses: int, places: Sequence[Keys] = PLACES) -> dict[str, list[Press]]:
    """For each key all presses; a key that has nowhere to go in a pane of this subject is left out."""
    found: dict[str, list[Press]] = {}

    async def script(watched: Watched) -> None:
        for keys in places:
            await watched.focus(keys)
            for pair in keys.pairs:
                for key in pair * presses:
                    try:
                        press = await watched.press(
                            key, lambda before, now, keys=keys: keys.within or now is not before
                        )
                    except TimeoutError:
                        if not keys.within or f"{keys.where}{key}" in found:
                            raise
                        break
                    found.setdefault(f"{keys.where}{key}", []).append(press)
                    await asyncio.sleep(PAUSE)

    watch(debugger, script)
    return found


def middle(seconds: Sequence[float]) -> float:
    """The median."""
    return statistics.median(seconds)


def nearly_all(seconds: Sequence[float]) -> float:
    """What 95 % of them do not exceed."""
    return sorted(seconds)[int(0.95 * (len(seconds) - 1) + 0.5)]
