"""Figures for documents, drawn by stepper.export from what the application has open."""

from __future__ import annotations

from pathlib import Path

from stepper.debug.debugger import Debugger
from stepper.engine.machine import Machine
from stepper.errors import UsageError
from stepper.export.exporter import Format, Request, View, default_depth, picture
from stepper.export.figures.choice import Choice
from stepper.files.output import FIGURES, Target
from tui.stage import Stage


def export_figure(app: Stage, text: str) -> None:
    """Draw what `FILE [VIEW]` asks for of the loop that is shown, in the worker. UsageError."""
    name, _, word = text.partition(" ")
    path, view = Path(name), _view(app, word.strip())
    written_as = path.suffix.removeprefix(".")
    if written_as not in tuple(Format):
        raise UsageError(f"the name of a file that ends in one of {', '.join(Format)} is expected")
    loop = app.state.loop
    place = None if loop is None or view is View.MODEL else _loop_place(app)

    def drawn(debugger: Debugger) -> str:
        def machine() -> Machine:
            return Machine(debugger.machine.compiled, debugger.inputs, max_iterations=debugger.machine.max_iterations)

        target = Target(path, FIGURES[written_as], debugger.protected)
        target.check()
        request = Request(view, place, choice=Choice(depth=default_depth(view)))
        content = picture(debugger.model, machine, request).written(written_as)
        target.write(content)
        return f"{path} written"

    app.driver.ask(drawn, app.say)


def _view(app: Stage, word: str) -> View:
    if not word:
        return View.MODEL if app.state.loop is None else View.ROLLED
    if word not in tuple(View):
        raise UsageError(f"there is no figure '{word}'; there are {', '.join(View)}")
    return View(word)


def _loop_place(app: Stage) -> str:
    """The address of the loop that is shown, from the model's own graph inwards."""
    loops = [frame.layers[frame.running] for frame in app.state.frames if frame.running is not None]
    depth = app.state.loop_depth or 0
    return "::".join(layer.name for layer in loops[:depth])
