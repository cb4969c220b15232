"""Text for a terminal: how wide it is, and the line of progress, with a bar where the end is known."""

from __future__ import annotations

import sys
import textwrap
import threading
from shutil import get_terminal_size
from time import monotonic
from typing import TYPE_CHECKING, Final, TextIO

from stepper.terminal import painted
from stepper.wording import duration_text, printable

if TYPE_CHECKING:
    from stepper.engine.frames import Frame
    from stepper.engine.machine import Machine


def output_width(file: TextIO | None = None) -> int:
    """Return how many columns stdout (or another stream) has: those of the terminal, or 80."""
    return get_terminal_size().columns if (file or sys.stdout).isatty() else 80


def wrapped(text: str, file: TextIO | None = None) -> list[str]:
    """Return a line as the terminal has room for it, cut between words; as it is where there is no terminal."""
    width = output_width(file)
    if not (file or sys.stdout).isatty() or len(text) <= width:
        return [text]
    indent = " " * (len(text) - len(text.lstrip()) + 4)
    lines = textwrap.wrap(text, max(width, 2 * len(indent)), subsequent_indent=indent, break_on_hyphens=False)
    return lines or [text]


_FIRST_AFTER, _EACH = 0.5, 0.2


_BAR: Final = 24


class Progress:
    """Shows a machine's place several times a second while a block runs; nothing where stderr is not a terminal.

    Where the outermost loop has a count of iterations that alone ends it, a bar shows it, and how long it will take.
    """

    def __init__(self, machine: Machine, *, wanted: bool) -> None:
        self._machine = machine
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._show, daemon=True) if wanted and sys.stderr.isatty() else None

    def __enter__(self) -> Progress:
        if self._thread is not None:
            self._thread.start()
        return self

    def __exit__(self, *_exception: object) -> None:
        self._done.set()
        if self._thread is not None:
            self._thread.join()

    def _show(self) -> None:
        wait, begun = _FIRST_AFTER, monotonic()
        shown = False
        while not self._done.wait(wait):
            # The stack is read while the run goes on: it may be a moment old, and a frame may just be leaving.
            from stepper.engine.frames import place  # few runs take so long

            machine = next(iter(self._machine.followers), self._machine)
            stack = list(machine.stack)
            text, share = (place(stack), _share(stack)) if stack else ("finishing", None)
            if share:
                text += f", {duration_text((monotonic() - begun) * (1 - share) / share)} left"
            show_progress(text, share)
            shown, wait = True, _EACH
        if shown:
            show_progress("")


def _share(stack: list[Frame]) -> float | None:
    """Return which part of the outermost loop is done, if it is known how often that runs."""
    from stepper.debug.causes.loop_ends import total

    activation = next((frame.activation for frame in stack if frame.loop is not None), None)
    count = None if activation is None else total(activation)
    return activation.iteration / count if activation is not None and count else None


def show_progress(text: str, share: float | None = None) -> None:
    """Replace the line on the terminal that says how far a command is; an empty text takes it away.

    `share`: the part that is done, for a bar.
    """
    room = get_terminal_size().columns - 1
    bar = ""
    if share is not None and room > 2 * _BAR:
        done = round(_BAR * min(max(share, 0.0), 1.0))
        bar = painted(f"{'━' * done}{'─' * (_BAR - done)} ", {"━" * done: "good"}, sys.stderr)
        room -= _BAR + 1
    sys.stderr.write(f"\r\x1b[2K{bar}{printable(text)[:room]}")
    sys.stderr.flush()
