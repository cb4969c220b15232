"""How fast the terminal application is: `python -m tests.benchmarks.terminal [--json]`.

The first paint of a sample in a real pseudo-terminal, and its whole sheet, beside a bare start of numpy and the least
application there is.
From a key to the painted frame that shows what it did: for a sample, bodies of 1,000 and 5,000 operations, a loop of a
million iterations and one with a tensor of 1 GB in its scope. From Esc to the pause that is painted, and what the
screen costs a run that it watches, and one behind the sheet. Each figure stands beside its limit; on a machine that
others use, too, the limit is held against the "own" times.
"""

from __future__ import annotations

import asyncio
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final

from stepper_tui.app import StepperApp

from stepper.debug.debugger import Debugger
from stepper.debug.overview.overview_facts import RunState
from tests.benchmarks import terminal_models, timing
from tests.benchmarks.key_latency import PATIENCE, PAUSE, SIZE, Press, Watched, key_to_paint, middle, nearly_all, watch
from tests.benchmarks.pseudo_terminal import shown
from tests.tui.wide_models import wide_loop

FIRST_PAINT: Final = 0.1
"""Seconds beyond the least application."""
COMPLETE: Final = 0.2
MEDIAN: Final = 0.016
MOST: Final = 0.033
ESCAPE: Final = 0.1


@dataclass(frozen=True)
class Figure:
    """Times of one thing in milliseconds: by the clock, without what other processes took, and the limits if any."""

    title: str
    median: float
    nearly_all: float
    own_median: float
    own_nearly_all: float
    limits: tuple[float | None, float | None]

    @property
    def is_met(self) -> bool:
        """Whether the limits hold, what other processes took not counted."""
        pairs = zip((self.own_median, self.own_nearly_all), self.limits, strict=True)
        return all(limit is None or own <= limit for own, limit in pairs)


def figure(title: str, presses: list[Press], median: float | None, most: float | None) -> Figure:
    """The presses beside their limits, in seconds."""
    clock, own = [press.clock for press in presses], [press.own for press in presses]
    numbers = (middle(clock), nearly_all(clock), middle(own), nearly_all(own))
    return Figure(title, *(round(number * 1000, 2) for number in numbers), (_milliseconds(median), _milliseconds(most)))


def _milliseconds(limit: float | None) -> float | None:
    return None if limit is None else limit * 1000


# --- what is measured ---------------------------------------------------------------------------------------------


_LEAST: Final = """
import numpy, lxml.etree
from textual.app import App
from textual.widgets import Static
class Least(App):
    BINDINGS = [("q", "quit", "quit")]
    def compose(self):
        yield Static("operations")
Least().run()
"""


def first_paint(rounds: int) -> list[Figure]:
    """Starts until the first screen of the sample is painted, and until it tells what ended the loop, for which the
    model has run; in turn with them those of numpy, and of the least application that Textual, numpy and lxml allow."""
    folder = terminal_models.SAMPLE
    application = ["-m", "stepper", str(folder / "model.xml"), "--inputs", str(folder / "inputs.npz")]
    bare = "import numpy; print('there'); input()"
    numpy, least, paint = "python -c 'import numpy'", "one word, numpy and lxml", "first paint of date_normaliser"
    complete = "its sheet, complete"
    paints: dict[str, list[Press]] = {numpy: [], least: [], paint: [], complete: []}
    with tempfile.TemporaryDirectory() as compiled:
        for warm in range(rounds + 1):
            for name, arguments, wanted, end in (
                (numpy, ["-c", bare], b"there", b"\n"),
                (least, ["-c", _LEAST], b"operations", b"q"),
                (paint, application, b"date_normaliser", b"q"),
                (complete, application, b"ended at", b"q"),
            ):
                found = shown(arguments, wanted, end, compiled=compiled)
                if warm:  # the first start compiles the modules
                    paints[name].append(Press(found.seconds, found.own))
    bare_paint = middle([press.own for press in paints[least]])
    beyond = {paint: FIRST_PAINT, complete: COMPLETE}
    limits = {name: bare_paint + more for name, more in beyond.items()}
    return [figure(name, presses, limits.get(name), None) for name, presses in paints.items()]


def keys(debugger: Debugger, presses: int) -> list[Figure]:
    """All keys, on one run."""
    return [figure(key, times, MEDIAN, MOST) for key, times in key_to_paint(debugger, presses).items()]


def escape_to_pause(debugger: Debugger, presses: int) -> list[Press]:
    """From Esc, pressed in the middle of a run, to the painted pause."""
    times: list[Press] = []

    async def script(watched: Watched) -> None:
        for _ in range(presses):
            watched.app.perform("continue")
            await asyncio.sleep(0.3)
            assert watched.app.driver.is_busy, "the run ended before it could be paused"
            times.append(await watched.press("escape", lambda _, now: now.running is None))
            await asyncio.sleep(PAUSE)

    watch(debugger, script, runs=False)
    return times


def watched_run(make: Callable[[], Debugger]) -> dict[str, float]:
    """Seconds that a run to its end takes by itself, and with the screen looking on; and a key on the way."""
    alone = make()
    begin = time.perf_counter()
    alone.continue_()
    seconds = {"without a screen": time.perf_counter() - begin}

    async def script(watched: Watched) -> None:
        begin = time.perf_counter()
        watched.app.perform("continue")
        await asyncio.sleep(0.1)
        press = await watched.press("↓", lambda _before, _now: True)
        seconds["a key while it runs"] = press.clock
        while watched.app.driver.is_moving:  # the sheet reads what has run behind that
            await asyncio.sleep(0.05)  # each look takes time from the run
        seconds["with the screen"] = time.perf_counter() - begin

    watch(make(), script, runs=False)
    return seconds


def run_behind_sheet(make: Callable[[], Debugger]) -> dict[str, float]:
    """Seconds that a run to its end takes by itself, and behind the overview of an application that has just been
    opened; and those until that application shows its end."""
    alone = make()
    begin = time.perf_counter()
    alone.continue_()
    seconds = {"without a screen": time.perf_counter() - begin}

    async def run() -> None:
        app = StepperApp(make(), "subject", runs=True)
        begin = time.perf_counter()
        async with app.run_test(size=SIZE):
            known = app.state.overview
            while known is None or known.state in (RunState.NOT_RUN, RunState.RUNNING):
                await asyncio.sleep(0.05)  # each look takes time from the run
                known = app.state.overview
            assert known.state is RunState.FINISHED, "the machine is too slow for a run that is bounded in time"
            seconds["behind the sheet"] = known.seconds
            seconds["from the start of the application"] = time.perf_counter() - begin
            app.driver.close()

    asyncio.run(asyncio.wait_for(run(), PATIENCE))
    return seconds


def best_of(rounds: int, measured: Callable[[], dict[str, float]]) -> dict[str, float]:
    """Measure in turn, so many times; of each candidate the best."""
    found = [measured() for _ in range(rounds)]
    return {name: min(one[name] for one in found) for name in found[0]}


# --- and printed --------------------------------------------------------------------------------------------------


def show(reports: timing.Reports) -> None:
    """One line a figure, milliseconds; then what has ratios."""
    for entry in reports:
        if "figures" not in entry:
            timing.print_tables([entry])
            continue
        print(f"\n{entry['title']}")
        print(f"  {'':<32} {'median':>8} {'95 %':>8} {'own median':>12} {'own 95 %':>10}   limits")
        for one in (Figure(**figure) for figure in entry["figures"]):
            clock = f"{one.median:8.1f} {one.nearly_all:8.1f}"
            own = f"{one.own_median:12.1f} {one.own_nearly_all:10.1f}"
            limits = " and ".join(f"{limit:.4g}" for limit in dict.fromkeys(one.limits) if limit is not None) or "none"
            print(f"  {one.title:<32} {clock} {own}   {limits}: {'met' if one.is_met else 'MISSED'}")


def subjects() -> dict[str, Callable[[], Debugger]]:
    """What keys are pressed on."""
    million = 1_000_000
    return {
        "sample": terminal_models.sample,
        "1,000 operations": lambda: terminal_models.middle_of(wide_loop(1_600, 200)),
        "5,000 operations": lambda: terminal_models.middle_of(wide_loop(7_900, 200)),
        "1,000,000 iterations": lambda: terminal_models.long_loop(million, at=million // 2),
        "1 GB in scope": lambda: terminal_models.large_tensor(1 << 28),
    }


def limited() -> Iterator[tuple[str, list[Figure]]]:
    """Everything that has a limit."""
    yield "From the start of the process to the first paint", first_paint(rounds=10)
    for name, make in subjects().items():
        yield f"From a key to the painted frame: {name}", keys(make(), presses=20)
    pauses = escape_to_pause(terminal_models.long_loop(10_000_000, at=5), presses=10)
    yield "From Esc to the painted pause", [figure("in ten million iterations", pauses, ESCAPE, ESCAPE)]


def reports(_folder: Path, *, quick: bool) -> timing.Reports:
    """Everything, measured."""
    iterations, rounds = (300_000, 1) if quick else (1_000_000, 3)
    titled = [("From a key to the painted frame: sample", keys(terminal_models.sample(), 1))] if quick else limited()
    found: timing.Reports = [{"title": title, "figures": [asdict(one) for one in figures]} for title, figures in titled]
    run = best_of(rounds, lambda: watched_run(lambda: terminal_models.long_loop(iterations, at=5)))
    found.append(timing.report(f"{iterations:,} iterations with and without the screen", run, "without a screen"))
    behind = best_of(rounds, lambda: run_behind_sheet(lambda: terminal_models.long_loop(iterations, at=0)))
    found.append(timing.report(f"{iterations:,} iterations behind the sheet", behind, "without a screen"))
    return found


if __name__ == "__main__":
    timing.main(__doc__, reports, show)
