"""Text for a terminal: how wide it is, and the line of progress, with a bar where the end is known.

Tensors as text, as JSON and as .npz.
"""

from __future__ import annotations

import sys
import textwrap
import threading
from argparse import Namespace
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from shutil import get_terminal_size
from time import monotonic
from typing import TYPE_CHECKING, Any, TextIO, TypeVar

import numpy as np

from stepper.element_types import Array
from stepper.errors import StepperError, UsageError
from stepper.files.file_kinds import ARRAYS
from stepper.files.output import OutputFile, ProtectedFiles
from stepper.plain_values import answer_json, json_text, storable, tensor_json, write_arrays
from stepper.tensors.number_text import number_text
from stepper.terminal import painted, say
from stepper.wording import duration_text, printable

if TYPE_CHECKING:
    from stepper.engine.frames import Frame
    from stepper.engine.machine import Machine


def output_width(file: TextIO | None = None) -> int:
    """Return how many columns stdout (or another stream) has: those of the terminal, or 80."""
    return get_terminal_size().columns if (file or sys.stdout).isatty() else 80


def wrapped(text: str, file: TextIO | None = None) -> list[str]:
    """Return a line wrapped between words to the terminal's width; unchanged without a terminal."""
    width = output_width(file)
    if not (file or sys.stdout).isatty() or len(text) <= width:
        return [text]
    indent = " " * (len(text) - len(text.lstrip()) + 4)
    lines = textwrap.wrap(text, max(width, 2 * len(indent)), subsequent_indent=indent, break_on_hyphens=False)
    return lines or [text]


_FIRST_AFTER, _EACH = 0.5, 0.2
T = TypeVar("T")


_BAR = 24


@contextmanager
def progress_line(show: Callable[[T], object], options: Namespace) -> Iterator[Callable[[T], object] | None]:
    """Give `show` to a block where the terminal has a line of progress, which goes behind it; else None."""
    if options.quiet or not sys.stderr.isatty():
        yield None
        return
    try:
        yield show
    finally:
        show_progress("")


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


_SHOWN = 8


def excerpt(value: Array) -> str:
    """Return the first few numbers, and how many there are in all."""
    flat = storable(value).reshape(-1)
    shown = " ".join(repr(item) if isinstance(item, str) else number_text(item, 6) for item in flat[:_SHOWN].tolist())
    return shown + (f" ... ({flat.size:,} in all)" if flat.size > _SHOWN else "")


def print_json(report: Mapping[str, Any], *, in_a_line: bool = False) -> None:
    """Print an answer, with the version of its shape, in characters that the encoding of stdout has."""
    plain = not (sys.stdout.encoding or "").lower().startswith("utf")
    indent = None if in_a_line else 2
    print(json_text(answer_json(report), indent, plain=plain), flush=in_a_line)


def print_answer(options: Namespace, data: Mapping[str, Any], lines: Iterable[str]) -> None:
    """Print an answer as JSON where that is asked for, else as text."""
    if options.json:
        print_json(data)
        return
    for line in lines:
        say(line)


def error_data(error: StepperError) -> dict[str, Any]:
    """Return an error as answers have it: its kind, message and exit code, and where it is, as far as that is known."""
    found = error.place
    return {
        **failure_data(error.kind, str(error), error.exit_code),
        **({} if found is None else {"file": found.file, "line": found.line or None}),
        "layer": None if found is None or found.layer is None else found.layer._asdict(),
        "candidates": [one._asdict() for one in error.candidates],
        "path": [] if found is None else [{**one._asdict(), "layer": one.layer._asdict()} for one in found.path],
    }


def failure_data(kind: str, message: str, exit_code: int) -> dict[str, Any]:
    """Return an error without a place."""
    found: dict[str, Any] = {"kind": kind, "message": message, "exit_code": exit_code}
    return {**found, "file": None, "line": None, "layer": None, "path": [], "candidates": []}


def as_json(name: str, value: Array) -> dict[str, Any]:
    """Return name, type, shape and the numbers in row-major order (null above a thousand)."""
    return {"name": name, **tensor_json(value)}


def write_npz(target: OutputFile | None, arrays: Mapping[str, Array]) -> None:
    """Write an .npz to a file, which appears whole or not at all, or to stdout for None. Raises OutputError."""
    if target is None:
        write_arrays(sys.stdout.buffer, arrays)
        return
    with target.writing() as file:
        write_arrays(file, arrays)


def states_target(options: Namespace, protected: ProtectedFiles) -> OutputFile | None:
    """Return where `--save-states` writes; None where it is not given. Raises UsageError for stdout, OutputError."""
    if options.save_states is None:
        return None
    if options.save_states == "-":
        raise UsageError("--save-states writes a file, not stdout; name one")
    target = OutputFile(Path(options.save_states), ARRAYS, protected, "--save-states")
    target.check()
    return target


def state_arrays(states: Mapping[str, Any]) -> dict[str, Array]:
    """Return the variables of a run as arrays; how far a random stream has come is a number."""
    return {name: np.asarray(value) for name, value in states.items()}
