"""How fast the terminal application is: `python -m tests.benchmarks.terminal [--json]`.

The first paint of a sample in a real pseudo-terminal, beside a bare start of numpy. From a key to the painted frame
that shows what it did: for a sample, a body of 1,000 operations, a loop of a million iterations and one with a tensor
of 1 GB in its scope. From Esc to the pause that is painted, and what the screen costs a run that it watches.
"""

from __future__ import annotations

import asyncio
import fcntl
import gc
import os
import pty
import select
import signal
import statistics
import struct
import subprocess
import sys
import tempfile
import termios
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

os.environ["TEXTUAL_ANIMATIONS"] = "none"

from textual import events

from stepper.debug.debugger import Debugger
from tests.benchmarks import terminal_models, timing
from tests.tui.wide_models import wide_loop
from tui.app import StepperApp
from tui.state import State

SIZE: Final = (160, 48)
PAIRS: Final = (("n", "N"), ("]", "["), ("J", "K"))
"""Keys and those that take them back: an operation, an iteration, the selection, which moves nothing."""
NAMES: Final = {"]": "right_square_bracket", "[": "left_square_bracket"}
PAUSE: Final = 0.06
"""Seconds between two keys, as between those of a quick typist."""
PATIENCE: Final = 20.0


# --- a process of its own in a pseudo-terminal ----------------------------------------------------------------------


@dataclass
class Shown:
    """What a process wrote to its terminal: when the wanted text came, all until its end, and its exit code."""

    seconds: float
    output: bytes
    code: int


def shown(arguments: Sequence[str], wanted: bytes, end: bytes | signal.Signals, size: tuple[int, int] = SIZE) -> Shown:
    """Start Python with these arguments in a terminal, wait for a text, and end it by keys or a signal."""
    begin = time.perf_counter()
    child, terminal = pty.fork()
    if child == 0:
        # A home of its own: what is kept of the session goes nowhere.
        kept = tempfile.mkdtemp()
        environment = os.environ | {"TERM": "xterm-256color", "COLORTERM": "truecolor", "XDG_STATE_HOME": kept}
        os.execve(sys.executable, [sys.executable, *arguments], environment)
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", size[1], size[0], 0, 0))
    output, seconds = b"", 0.0
    try:
        while time.perf_counter() - begin < PATIENCE:
            chunk = _read(terminal)
            if chunk == b"":
                break
            output += chunk or b""
            if not seconds and wanted in output:
                seconds = time.perf_counter() - begin
                if isinstance(end, signal.Signals):
                    os.kill(child, end)
                else:
                    os.write(terminal, end)
        else:
            os.kill(child, signal.SIGKILL)
    finally:
        code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        os.close(terminal)
    assert seconds, f"{wanted!r} never came: {output[-2000:]!r}"
    return Shown(seconds, output, code)


def _read(terminal: int) -> bytes | None:
    """What there is to read; None for nothing yet, empty at the end."""
    if not select.select([terminal], [], [], 0.5)[0]:
        return None
    try:
        return os.read(terminal, 1 << 16)
    except OSError:  # the other side is closed
        return b""


def first_paint(rounds: int) -> dict[str, object]:
    """The best of several starts until the operations of the sample stand on the screen."""
    folder = terminal_models.SAMPLE
    application = ["-m", "stepper", str(folder / "model.xml"), "--inputs", str(folder / "inputs.npz")]
    numpy = [sys.executable, "-c", "import numpy"]
    best = {"python -c 'import numpy'": float("inf"), "first paint of date_normaliser": float("inf")}
    base, paint = best
    for _ in range(rounds):
        begin = time.perf_counter()
        subprocess.run(numpy, check=True)
        best[base] = min(best[base], time.perf_counter() - begin)
        best[paint] = min(best[paint], shown(application, b"operations", b"q").seconds)
    return timing.report("From the start of the process to the first paint", best, base)


# --- in this process, without a terminal ----------------------------------------------------------------------------


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

    async def press(self, key: str, holds: Callable[[State, State], bool]) -> float:
        """Seconds from a key to the first paint by which `holds(before, now)`."""
        before, begin = self.app.state, time.perf_counter()
        self._painted.clear()
        self.app.post_message(events.Key(key, key if len(key) == 1 else None))
        while not (holds(before, self.app.state) and self._when > begin):
            await asyncio.wait_for(self._painted.wait(), PATIENCE)
            self._painted.clear()
        return self._when - begin

    async def rest(self) -> None:
        """Until nothing is left to be done, histories included."""
        while not self.app.driver.is_at_rest:
            await asyncio.sleep(0.02)
        await asyncio.sleep(0.1)


def _watch(debugger: Debugger, script: Callable[[Watched], Awaitable[None]]) -> None:
    """Run a script on an application that has come to rest."""

    async def run() -> None:
        app = StepperApp(debugger, "subject")
        async with app.run_test(size=SIZE):
            watched = Watched(app)
            await asyncio.wait_for(watched.rest(), PATIENCE)
            gc.collect()
            gc.freeze()
            await script(watched)
            app.driver.close()

    asyncio.run(run())


def key_to_paint(debugger: Debugger, presses: int) -> dict[str, list[float]]:
    """For each key the seconds of all presses, sorted."""
    found: dict[str, list[float]] = {key: [] for pair in PAIRS for key in pair}

    async def script(watched: Watched) -> None:
        for pair in PAIRS:
            for key in pair * presses:
                found[key].append(await watched.press(NAMES.get(key, key), lambda before, now: now is not before))
                await asyncio.sleep(PAUSE)

    _watch(debugger, script)
    return {key: sorted(times) for key, times in found.items()}


def key_reports(subjects: dict[str, Callable[[], Debugger]], presses: int) -> list[dict[str, object]]:
    """Median and 95th percentile over all keys that go anywhere, for each subject."""
    medians, slowest = {}, {}
    for name, make in subjects.items():
        for key, times in key_to_paint(make(), presses).items():
            medians[f"{name}: {key}"] = statistics.median(times)
            slowest[f"{name}: {key}"] = times[int(0.95 * len(times))]
    base = next(iter(medians))
    return [
        timing.report("From a key to the painted frame, median (limit: 16 ms)", medians, base),
        timing.report("From a key to the painted frame, 95 % (limit: 33 ms)", slowest, base),
    ]


def escape_to_pause(debugger: Debugger, presses: int) -> list[float]:
    """Seconds from Esc, pressed in the middle of a run, to the painted pause."""
    times: list[float] = []

    async def script(watched: Watched) -> None:
        for _ in range(presses):
            watched.app.perform("continue")
            await asyncio.sleep(0.3)
            assert watched.app.driver.is_busy, "the run ended before it could be paused"
            times.append(await watched.press("escape", lambda _, now: now.running is None))
            await asyncio.sleep(PAUSE)

    _watch(debugger, script)
    return sorted(times)


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
        seconds["a key while it runs"] = await watched.press("J", lambda before, now: now.selected != before.selected)
        while watched.app.driver.is_busy:
            await asyncio.sleep(0.005)
        seconds["with the screen"] = time.perf_counter() - begin

    _watch(make(), script)
    return seconds


def main() -> None:
    """Measure and print."""
    as_json = timing.json_wanted(__doc__)
    million = 1_000_000
    subjects: dict[str, Callable[[], Debugger]] = {
        "sample": terminal_models.sample,
        "1,000 operations": lambda: terminal_models.middle_of(wide_loop(1_000, 200)),
        "1,000,000 iterations": lambda: terminal_models.long_loop(million, at=million // 2),
        "1 GB in scope": lambda: terminal_models.large_tensor(1 << 28),
    }
    reports = [first_paint(rounds=10), *key_reports(subjects, presses=20)]
    pauses = escape_to_pause(terminal_models.long_loop(10 * million, at=5), presses=5)
    limit = {"limit": 0.1, "median": statistics.median(pauses), "slowest": pauses[-1]}
    reports.append(timing.report("From Esc to the painted pause, in a run of ten million iterations", limit, "limit"))
    run = watched_run(lambda: terminal_models.long_loop(million, at=5))
    reports.append(timing.report("A million iterations with and without the screen", run, "without a screen"))
    timing.print_reports(reports, as_json=as_json)


if __name__ == "__main__":
    main()
