"""Where the command line comes in: open the application on a debugger."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct

from stepper.debug.debugger import Debugger
from stepper.element_types import Array
from stepper.ir.model import Model
from tui.app import StepperApp
from tui.durable import Reopen
from tui.keeper import Keeper
from tui.key_files import chosen_keys
from tui.rows import printable
from tui.theme import Look

if TYPE_CHECKING:
    from tui.inputs import Opening


class Keeping(Struct, frozen=True):
    """How the session is kept: in `file`, else by model; `fresh`: what was kept is not put back, `only_stops`: all but
    the place. `keep` False: not at all. `keys` is a preset or a file of keys."""

    file: str | None = None
    fresh: bool = False
    only_stops: bool = False
    keep: bool = True
    keys: str | None = None


def open_application(
    debugger: Debugger,
    lines: Sequence[str] = (),
    *,
    ascii: bool = False,
    light: bool = False,
    keeping: Keeping | None = None,
    reopen: Reopen | None = None,
) -> int:
    """Run until the user leaves; the exit code."""
    name = model_name(debugger.model.path)
    return _run(debugger, name, lines, ascii=ascii, light=light, keeping=keeping, reopen=reopen)


def _run(
    debugger: Debugger | Opening,
    name: str,
    lines: Sequence[str],
    *,
    ascii: bool,
    light: bool,
    keeping: Keeping | None,
    reopen: Reopen | None,
) -> int:
    keeping = Keeping() if keeping is None else keeping
    keys = chosen_keys(keeping.keys)
    look = Look.of_environment(ascii=ascii)
    file = None if keeping.file is None else Path(keeping.file)
    keeper = Keeper(file=file, fresh=keeping.fresh, only_stops=keeping.only_stops) if keeping.keep else None
    app = StepperApp(debugger, name, look, lines, light=light, keys=keys, keeper=keeper, reopen=reopen)
    try:
        return app.run() or app.return_code or 0
    finally:
        trouble = app.keep_at_end()
        if trouble:
            print(f"stepper: {trouble}", file=sys.stderr)


def open_inputs(
    model: Model,
    texts: Mapping[int, str],
    shapes: Mapping[int, tuple[int, ...]],
    make: Callable[[Mapping[int, Array]], Debugger],
    lines: Sequence[str] = (),
    *,
    ascii: bool = False,
    light: bool = False,
    keeping: Keeping | None = None,
) -> int:
    """The same, the inputs screen first: `texts` and `shapes` are what was given, by position; `make` the debugger."""
    from tui.inputs import Opening

    opening = Opening(model, texts, shapes, make)
    return _run(opening, model_name(model.path), lines, ascii=ascii, light=light, keeping=keeping, reopen=None)


def model_name(path: Path) -> str:
    """What the model is called on the screen: its file, or its folder where the file is called model."""
    resolved = path.resolve()
    return printable(resolved.parent.name if resolved.stem == "model" else resolved.stem)
