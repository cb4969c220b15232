"""A debugger as a page of a notebook shows it, and what that may ask: plain data, no widget."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from types import FrameType
from typing import Any

import numpy as np
from msgspec.structs import asdict

from stepper.commands import Interpreter
from stepper.debug.causes.cause_texts import sentences
from stepper.debug.debugger import Debugger
from stepper.debug.inspection.views import Series
from stepper.debug.stop import Reason
from stepper.element_types import Array
from stepper.errors import StepperError, UsageError
from stepper.export.exporter import picture_of_story
from stepper.export.overview_page import scale_text, strip
from stepper.export.picture import FigureRequest
from stepper.integrations.following import Follower
from stepper.query.expression_values import described
from stepper.tensors.histories import ValueHistory, numbers_of
from stepper.tensors.number_text import numbers_text
from stepper.wording import excerpt

SECONDS = 30.0
"""How long a movement may take before it is paused: a notebook waits for it."""
_STRIP_SECONDS = 1.0
"""How long the run may be gone through for the picture of a value, which comes with each answer."""
_MOST_COLUMNS = 200
_ROOM = 300
_LONGEST = 10_000
_LONGEST_NUMBER = 18
VERBS = (
    *("step", "next", "finish", "continue", "reverse step", "reverse next", "reverse finish", "reverse continue"),
    *("first", "last"),
)
"""Words of the page; a command of the debugger has a dash between them."""


class LoopSession:
    """A debugger as a page shows it. Each request is answered with what has changed, by name.

    `turn` is held while a request is answered, and by what shows the answer: kernels hear a page in several threads
    (Jupyter's subshells), and what a page asks for while it waits has to wait, too, not to be refused.
    """

    def __init__(self, debugger: Debugger) -> None:
        self.turn = threading.RLock()
        self._debugger = debugger
        self._interpreter = Interpreter(debugger)
        self._follower = Follower(debugger)
        self._chosen = ""

    def all(self) -> dict[str, Any]:
        """Return everything that a page shows."""
        with self.turn:
            return {**self._place(), **self._overview(), "breakpoints": self._breakpoints(), "answer": "", "story": ""}

    def asked(self, request: Mapping[str, Any]) -> dict[str, Any]:
        """Carry out what a page asks for, and return what it shows from then on. What is wrong is its `answer`."""
        kind, text = str(request.get("kind", ""))[:40], str(request.get("text", ""))[:_LONGEST]
        with self.turn:
            branch = self._debugger.branches.title
            try:
                found = self._carried_out(kind, text)
            except StepperError as error:
                found = {"answer": str(error), "failed": True}
            more = self._overview() if self._debugger.branches.title != branch else {}
            more |= {"breakpoints": self._breakpoints()}
            return {"answer": "", "failed": False, **self._place(), **more, **found}

    def _carried_out(self, kind: str, text: str) -> dict[str, Any]:
        if kind in VERBS:
            return self._command(kind.replace(" ", "-"), shows=False)
        if kind == "iteration":
            if not text.isdecimal() or len(text) > _LONGEST_NUMBER:
                raise UsageError(f"'{excerpt(text)}' is no iteration")
            with self._working():
                self._debugger.goto_iteration(int(text))
        elif kind == "choose":
            self._chosen = text
        elif kind in ("goto", "break", "delete"):
            return self._command(f"{kind} {text}", shows=kind == "break")
        elif kind == "story":
            return {"story": self._story(text)}
        elif kind == "command":
            return self._command(text, shows=True)
        else:
            return {"answer": f"'{excerpt(kind)}' is nothing that a page can ask for", "failed": True}
        return {}

    def _command(self, line: str, *, shows: bool) -> dict[str, Any]:
        if line.lstrip().startswith("!"):
            return {"answer": "Python is evaluated in the cells of the notebook", "failed": True}
        with self._working():
            answer = self._interpreter.execute(" ".join(line.splitlines()))
        stopped = self._debugger.stop.reason is Reason.PAUSED
        text = "\n".join(answer.lines) if shows else "paused; type continue" if stopped else ""
        return {"answer": text}

    @contextmanager
    def _working(self, seconds: float | None = None) -> Iterator[None]:
        """Have a movement pause where the kernel is interrupted, and after `seconds` (None: SECONDS)."""
        debugger = self._debugger
        timer = threading.Timer(SECONDS if seconds is None else seconds, debugger.pause)
        timer.daemon = True

        def interrupted(_number: int, _frame: FrameType | None) -> None:
            debugger.pause()

        is_main = threading.current_thread() is threading.main_thread()
        previous = signal.signal(signal.SIGINT, interrupted) if is_main else None
        timer.start()
        try:
            with debugger.working():
                yield
        finally:
            timer.cancel()
            if is_main:
                signal.signal(signal.SIGINT, previous)

    # --- what is shown -------------------------------------------------------------------------------------------

    def _place(self) -> dict[str, Any]:
        stop, debugger = self._follower.stop(), self._debugger
        cause = debugger.stop.cause
        figure = self._follower.figure(stop.figure)
        return {
            "place": f"tick {stop.tick}, {debugger.stop.reason}: {stop.place}",
            "reasons": [] if cause is None else list(sentences(cause)),
            "figure": {"number": stop.figure, **asdict(figure)},
            "box": stop.box,
            "column": stop.column,
            "iteration": debugger.stop.iteration if debugger.stop.iteration is not None else -1,
            "iterations": self._follower.iterations(),
            "chosen": self._value(self._chosen or figure.addresses.get(stop.box, "")),
        }

    def _overview(self) -> dict[str, Any]:
        return {"overview": self._follower.overview()}

    def _breakpoints(self) -> list[dict[str, Any]]:
        return [{"number": one.number, "text": str(one.description)} for one in self._debugger.breakpoints]

    def _value(self, address: str) -> dict[str, str]:
        """Return the value at an address: itself in words, and over the iterations as a picture."""
        found = {"address": address, "text": "", "picture": "", "scale": ""}
        if not address:
            return found
        try:
            found["text"] = _text(self._debugger.value(address))
        except StepperError as error:
            found["text"] = str(error)
        try:
            with self._working(_STRIP_SECONDS):
                series = self._debugger.over_iterations(address, most=_MOST_COLUMNS)
        except StepperError:
            return found
        history = _history(series)
        if history is not None:
            until = f"up to iteration {series.iterations[-1]:,}" if series.stopped else ""
            found |= {"picture": strip(history), "scale": f"{scale_text(history)} {until}".strip()}
        return found

    def _story(self, text: str) -> str:
        """Return a figure that explains a value: the address, the selection, or the last one."""
        stop = self._follower.stop()
        address = text or self._chosen or self._follower.figure(stop.figure).addresses.get(stop.box, "")
        if not address:
            raise UsageError("nothing is selected: click on an operation of the figure first")
        with self._working():
            story = self._debugger.story("" if address == "end" else address, ends=address == "end")
        return picture_of_story(story, self._debugger.model, FigureRequest()).text("svg")


def _text(value: Array | Series) -> str:
    if isinstance(value, Series):
        return str(value)
    array = np.asarray(value)
    return f"{described(array)} {numbers_text(array, _ROOM) if array.dtype.names is None else ''}".rstrip()


def _history(series: Series) -> ValueHistory | None:
    """Return a series as a picture takes it; None where its shapes differ, and for texts."""
    first = series.values[0] if series.values else None
    if first is None or any(one.shape != first.shape for one in series.values):
        return None
    numbers = [numbers_of(one) for one in series.values]
    kept = [one for one in numbers if one is not None]
    if len(kept) != len(numbers):
        return None
    begins = np.asarray(series.iterations)
    spans = np.stack([begins, begins + series.step], axis=1)
    stacked = np.stack(kept, axis=1)
    count = int(spans[-1, 1])
    return ValueHistory(_type(first), first.shape, count, is_whole=len(stacked) == 1, spans=spans, numbers=stacked)


def _type(array: Array) -> str:
    return described(array).partition("[")[0]
