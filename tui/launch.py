"""Where the command line comes in: open the application on a debugger."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from stepper.debug.debugger import Debugger
from stepper.element_types import Array
from stepper.ir.model import Model
from tui.app import StepperApp
from tui.inputs import Opening
from tui.rows import printable
from tui.theme import Look


def open_application(debugger: Debugger, lines: Sequence[str] = (), *, ascii: bool = False, light: bool = False) -> int:
    """Run until the user leaves; the exit code."""
    look = Look.of_environment(ascii=ascii)
    app = StepperApp(debugger, model_name(debugger.model.path), look, lines, light=light)
    return app.run() or 0


def open_inputs(
    model: Model,
    texts: Mapping[int, str],
    shapes: Mapping[int, tuple[int, ...]],
    make: Callable[[Mapping[int, Array]], Debugger],
    lines: Sequence[str] = (),
    *,
    ascii: bool = False,
    light: bool = False,
) -> int:
    """The same, the inputs screen first: `texts` and `shapes` are what was given, by position; `make` the debugger."""
    opening = Opening(model, texts, shapes, make)
    app = StepperApp(opening, model_name(model.path), Look.of_environment(ascii=ascii), lines, light=light)
    return app.run() or 0


def model_name(path: Path) -> str:
    """What the model is called on the screen: its file, or its folder where the file is called model."""
    resolved = path.resolve()
    return printable(resolved.parent.name if resolved.stem == "model" else resolved.stem)
