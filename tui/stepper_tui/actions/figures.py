"""Figures for documents, drawn by stepper.export from what the application has open."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from stepper.debug.debugger import Debugger
from stepper.debug.story.story_facts import Story
from stepper.engine.machine import Machine
from stepper.errors import UsageError
from stepper.export.exporter import default_depth, export, picture_of_story, save
from stepper.export.options import FigureView
from stepper.export.picture import FigureContent, FigureRequest
from stepper.files.file_kinds import FigureFormat, FormatSubject, format_of_suffix
from stepper.files.output import OutputFile
from stepper.records import Record

if TYPE_CHECKING:
    from stepper_tui.app import StepperApp


class DrawFigure(Record):
    """Write a figure of the model, or of the loop at an address, into a file; the answer is a sentence."""

    path: Path
    format: FigureFormat
    view: FigureView
    place: str | None

    def answer(self, debugger: Debugger) -> str:
        """Draw it. StepperError where it cannot be drawn or written."""

        def machine() -> Machine:
            return Machine(debugger.machine.compiled, debugger.inputs, max_iterations=debugger.machine.max_iterations)

        target = OutputFile(self.path, self.format.kind, debugger.protected)
        target.check()
        request = FigureRequest(
            self.view, self.place, content=FigureContent(depth=default_depth(self.view, debugger.model))
        )
        save(export(debugger.model, machine, request, self.format), target)
        return f"{self.path} written"


class DrawStory(Record):
    """Write an explanation into a file; the answer is a sentence."""

    path: Path
    format: FigureFormat
    story: Story

    def answer(self, debugger: Debugger) -> str:
        """Draw it. StepperError where it cannot be drawn or written."""
        target = OutputFile(self.path, self.format.kind, debugger.protected)
        target.check()
        target.write(picture_of_story(self.story, debugger.model, FigureRequest()).written(self.format.name))
        return f"{self.path} written"


def export_story(app: StepperApp, story: Story, text: str) -> None:
    """Draw an explanation into the FILE that is named, in the worker. UsageError."""
    if not text:
        raise UsageError("the name of a file is expected, such as why.svg")
    path = Path(text)
    app.driver.ask(DrawStory(path, format_of_suffix(path.suffix), story), app.say)


def export_figure(app: StepperApp, text: str) -> None:
    """Draw what `FILE [VIEW]` asks for of the loop that is shown, in the worker. UsageError."""
    name, _, word = text.partition(" ")
    path = Path(name)
    format = format_of_suffix(path.suffix)
    view = _view(app, word.strip(), format)
    loop = app.state.loop
    place = None if loop is None or view is FigureView.MODEL else _loop_place(app)
    app.driver.ask(DrawFigure(path, format, view, place), app.say)


def _view(app: StepperApp, word: str, format: FigureFormat) -> FigureView:
    if not word:
        if format.subject is FormatSubject.RUN:
            return FigureView.UNROLLED
        return FigureView.MODEL if app.state.loop is None else FigureView.ROLLED
    if word not in tuple(FigureView):
        raise UsageError(f"there is no figure '{word}'; there are {', '.join(FigureView)}")
    return FigureView(word)


def _loop_place(app: StepperApp) -> str:
    """Return the address of the loop that is shown, from the model's own graph inwards."""
    loops = [frame.layers[frame.running] for frame in app.state.frames if frame.running is not None]
    depth = app.state.loop_depth or 0
    return "::".join(layer.name for layer in loops[:depth])
