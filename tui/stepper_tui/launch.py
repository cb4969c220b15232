"""Where the command line comes in: open the application on a debugger."""

from __future__ import annotations

import contextlib
import gc
import signal
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from stepper.collector import collector_off
from stepper.files.file_kinds import CONVERTED
from stepper.records import Record
from stepper.session.autosave import Autosave
from stepper.terminal import say
from stepper_tui.app import StepperApp
from stepper_tui.keymap import chosen_keys
from stepper_tui.paint.rows import printable
from stepper_tui.theme import Look

if TYPE_CHECKING:
    from stepper.debug.debugger import Debugger
    from stepper.element_types import Array
    from stepper.integrations.dap.joining import RunPort
    from stepper.ir.model import Model
    from stepper.session.input_choices import Opening
    from stepper_tui.session import Reopen


SIGNALLED = 128
"""Exit codes above this one are those of signals."""


class SessionOptions(Record):
    """How the session is kept: in `file`, else by model, or not at all (`keep` is False).

    `fresh`: what was kept is not put back. `only_stops`: the place is not put back. `trusts`: the user agrees to the
    commands of breakpoints in `file`. `keys` is a preset or a file of keys. `starts_up`: where no session is put back,
    the user's start-up file is carried out.
    """

    file: str | None = None
    fresh: bool = False
    only_stops: bool = False
    trusts: bool = False
    keep: bool = True
    keys: str | None = None
    starts_up: bool = False


class InputOptions(Record):
    """Options for a model's inputs: `texts` and `shapes` by position; `make` makes a debugger on other inputs."""

    texts: Mapping[int, str]
    shapes: Mapping[int, tuple[int, ...]]
    make: Callable[[Mapping[int, Array]], Debugger]

    def opening(self, model: Model, values: Mapping[int, Array]) -> Opening:
        """A model whose inputs are to be chosen; those of `values` are there already."""
        from stepper.session.input_choices import Opening

        return Opening(model, self.texts, self.shapes, self.make, values)


def open_application(
    make: Callable[[], Debugger],
    model: Model,
    inputs: Mapping[int, Array],
    lines: Sequence[str] = (),
    *,
    given: InputOptions | None = None,
    ascii: bool = False,
    light: bool = False,
    keeping: SessionOptions | None = None,
    reopen: Reopen | None = None,
    runs: bool = True,
    editors: RunPort | None = None,
) -> int:
    """Run a model on inputs, by position, until the user leaves; the exit code.

    The debugger is made when the screen is there; what that raises ends the application. `given`: other inputs can be
    chosen. `runs`: the model is run at once, in the background. `editors` is where editors join the run.
    """
    choosing = None if given is None else lambda: given.opening(model, inputs)
    look = {"ascii": ascii, "light": light}
    name = model_name(model)
    return _run(
        make,
        None,
        name,
        lines,
        keeping=keeping,
        reopen=reopen,
        choosing=choosing,
        runs=runs,
        editors=editors,
        **look,
    )


def _run(
    make: Callable[[], Debugger] | None,
    opening: Opening | None,
    name: str,
    lines: Sequence[str],
    *,
    ascii: bool,
    light: bool,
    keeping: SessionOptions | None,
    reopen: Reopen | None,
    choosing: Callable[[], Opening] | None,
    runs: bool,
    editors: RunPort | None,
) -> int:
    keeping = SessionOptions() if keeping is None else keeping
    keys = chosen_keys(keeping.keys)
    look = Look.of_environment(ascii=ascii)
    file = None if keeping.file is None else Path(keeping.file)
    autosave = None
    if keeping.keep:
        autosave = Autosave(file=file, fresh=keeping.fresh, only_stops=keeping.only_stops, trusts=keeping.trusts)
    app = StepperApp(
        make,
        name,
        look,
        lines,
        light=light,
        keys=keys,
        autosave=autosave,
        opening=opening,
        reopen=reopen,
        choosing=choosing,
        starts_up=keeping.starts_up,
        runs=runs,
        editors=editors,
    )
    try:
        with collector_off():  # until the application has all that stays
            code = app.run() or app.return_code or 0
    finally:
        gc.unfreeze()
        if editors is not None and app.driver.ended() is not None:
            editors.leave_run()  # before what the editor has set is saved as if the user had
        trouble = app.session.save_at_end()
        if trouble:
            _tell(trouble)
    if app.refusal is not None:
        raise app.refusal
    if code > SIGNALLED:
        _tell(
            f"ended by {signal.Signals(code - SIGNALLED).name}"
            + ("" if trouble or autosave is None else "; the session is kept")
        )
    return code


def _tell(sentence: str) -> None:
    """Say it where the terminal is that the application has left, if that is still there."""
    with contextlib.suppress(OSError):
        say(f"stepper: {sentence}", sys.stderr)


def open_inputs(
    model: Model,
    given: InputOptions,
    lines: Sequence[str] = (),
    *,
    ascii: bool = False,
    light: bool = False,
    keeping: SessionOptions | None = None,
    runs: bool = True,
    editors: RunPort | None = None,
) -> int:
    """Return the same, the inputs screen first."""
    opening, name, look = given.opening(model, {}), model_name(model), {"ascii": ascii, "light": light}
    return _run(
        None, opening, name, lines, keeping=keeping, reopen=None, choosing=None, runs=runs, editors=editors, **look
    )


def model_name(model: Model) -> str:
    """Return the name of a model on the screen: its file, or its folder where the file is called model.

    A converted one is called as what it was converted from, and not as the copy that is kept of it.
    """
    if Path(model.name).suffix.lower() in CONVERTED:
        return printable(model.name)
    resolved = model.path.resolve()
    return printable(resolved.parent.name if resolved.stem == "model" else resolved.stem)
