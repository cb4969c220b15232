"""Run Python on the current values with `!` at the prompt, the only Python evaluation.

    ! vals["h"].mean()           vals: the values of the current frame, by name;
    ! x = np.sort(vals["h"])     an assigned name stays for the next line;
    ! it                         the iteration of the loop around it, None outside.

Only user input reaches the prompt: scripts, sessions and models have no access to it. FrameValues are read-only.
"""

from __future__ import annotations

import ast
import contextlib
import ctypes
import io
import threading
import traceback
from collections.abc import Iterator, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from stepper.debug.inspection.views import FrameView, frame_views
from stepper.debug.scopes import innermost_loop
from stepper.debug.stop import iteration_of
from stepper.element_types import Array
from stepper.errors import UsageError
from stepper.plain_values import storable
from stepper.records import Record

if TYPE_CHECKING:
    from stepper.debug.debugger import Debugger

MOST_LINES = 200
MOST_LETTERS = 20_000


class Interrupted(Exception):
    """The user wants the line to end."""


class FrameValues(Mapping[str, Array]):
    """The values of a frame by the names of its layers; of layers with several outputs also as NAME:1."""

    def __init__(self, frame: FrameView | None) -> None:
        self._frame = frame
        self._sources: dict[str, tuple[int, int]] = {}
        if frame is not None:
            for layer in frame.graph.layers:
                for output in range(len(layer.outputs)):
                    self._sources[layer.name if not output else f"{layer.name}:{output}"] = layer.id, output

    def __getitem__(self, name: str) -> Array:
        if self._frame is None or name not in self._sources:
            raise KeyError(name)
        view = self._frame.value(*self._sources[name])
        if view.array is None:
            raise KeyError(f"{name}: {view.absent}")
        value = storable(view.array)
        value.flags.writeable = False
        return value

    def __iter__(self) -> Iterator[str]:
        return (name for name, source in self._sources.items() if self._has(source))

    def _has(self, source: tuple[int, int]) -> bool:
        return self._frame is not None and self._frame.value(*source).array is not None

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def __repr__(self) -> str:
        return f"<the values of {', '.join(list(self)[:8]) or 'nothing'}, ...>"


class PythonPrompt:
    """The names assigned so far, and the line that is evaluated now."""

    def __init__(self) -> None:
        self._names: dict[str, Any] = {"np": np}
        self._thread: int | None = None
        self._lock = threading.Lock()

    def evaluate(self, debugger: Debugger, line: str, depth: int) -> tuple[str, ...]:
        """Evaluate a line; return what it prints, and its value. UsageError, with what Python says, where it fails."""
        stack = debugger.machine.stack
        frames = frame_views(stack)
        loop = innermost_loop(stack[: depth + 1])
        self._names["it"] = None if loop is None else iteration_of(stack[loop])
        self._names["vals"] = FrameValues(frames[min(depth, len(frames) - 1)] if frames else None)
        printed = _Bounded()
        self._names["print"] = partial(print, file=printed)
        with self._running():
            value = self._run(line)
            if value is not None:
                printed.write(repr(value))
        return tuple(printed.getvalue().splitlines()[:MOST_LINES])

    def _run(self, line: str) -> Any:
        try:
            tree = ast.parse(line.strip(), "<python>")
            last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
            exec(compile(tree, "<python>", "exec"), self._names)
            if not isinstance(last, ast.Expr):
                return None
            return eval(compile(ast.Expression(last.value), "<python>", "eval"), self._names)
        except Interrupted:
            raise UsageError("interrupted") from None
        except (Exception, SystemExit) as error:  # whatever the user's line does wrong is an answer
            raise UsageError("".join(traceback.format_exception_only(error)).strip()) from None

    # --- interrupting --------------------------------------------------------------------------------------------

    @contextlib.contextmanager
    def _running(self) -> Iterator[None]:
        with self._lock:
            self._thread = threading.get_ident()
        try:
            yield
        finally:
            with self._lock:
                self._thread = None

    def interrupt(self) -> bool:
        """Raise Interrupted in the line that is evaluated; True if there is one. From another thread."""
        with self._lock:
            if self._thread is None:
                return False
            ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(self._thread), ctypes.py_object(Interrupted))
            return True


class EvaluatePython(Record):
    """Evaluate a line on the values of the frame at a depth; the answer has its output and its value."""

    prompt: PythonPrompt
    line: str
    depth: int

    def answer(self, debugger: Debugger) -> tuple[str, ...]:
        """Return lines. UsageError, with what Python says, where it fails."""
        return self.prompt.evaluate(debugger, self.line, self.depth)


class _Bounded(io.StringIO):
    """Takes so much and no more."""

    def write(self, text: str) -> int:
        """Keep what there is room for."""
        room = MOST_LETTERS - self.tell()
        super().write(text[: max(room, 0)])
        return len(text)
