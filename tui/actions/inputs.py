"""Commands of the inputs screen: choose, type, run."""

from __future__ import annotations

from stepper.errors import UsageError
from stepper.session.input_choices import InputChoices
from tui.actions.registry import action
from tui.application import Application
from tui.screens.inputs.open_dimensions import OpenDimensions, set_size
from tui.screens.inputs.screen import InputsScreen
from tui.screens.inputs.table import InputsTable


def _screen_of(app: Application) -> InputsScreen:
    if not isinstance(app.screen, InputsScreen):
        raise UsageError("that is for the inputs screen: view inputs")
    return app.screen


def _choices(app: Application) -> InputChoices:
    choices = app.to_choose()
    if choices is None:
        raise UsageError("there is nothing to choose: the inputs are those of a session, or of a program")
    return choices


@action("choose", syntax="down|up|left|right", help="another input, or another source for its value")
def _choose(app: Application, text: str) -> None:
    screen = _screen_of(app)
    pane = app.focused_pane
    (pane if isinstance(pane, OpenDimensions) else screen.query_one(InputsTable)).turn(text)


@action("edit-input", help="type a path, a literal, a seed or a size")
def _edit(app: Application, _text: str) -> None:
    screen = _screen_of(app)
    pane = app.focused_pane
    if isinstance(pane, OpenDimensions):
        pane.edit()
        return
    table = screen.query_one(InputsTable)
    table.focus()
    table.edit()


@action("input", syntax="NAME|* SPEC", help="a value for an input of the model, or for all that have none: * rand:0")
def _input(app: Application, text: str) -> None:
    choices = _choices(app)
    name, _, spec = text.rpartition(" ") if text.count(" ") == 1 else text.partition(" ")
    if not name or not spec:
        raise UsageError("expected a name and a value, such as input h0 zeros, or input * rand:0")
    for position in choices.position_of(name):
        choices.put(position, spec)
    _shown(app)


@action("dim", syntax="LETTER|* SIZE", help="a size for an open dimension, or for all that have none")
def _dim(app: Application, text: str) -> None:
    set_size(_choices(app), text)
    _shown(app)


@action("start", help="run the model on the chosen inputs, and on those that are proposed")
def _start(app: Application, _text: str) -> None:
    choices = _choices(app)
    choices.take_proposed()
    app.chooser.begin(choices.arrays())


@action("copy-inputs", help="copy the choices as options of the command line")
def _copy(app: Application, _text: str) -> None:
    app.copy_to_clipboard(" ".join(_choices(app).command_line()))
    app.say("copied the options of the command line")


def _shown(app: Application) -> None:
    if isinstance(app.screen, InputsScreen):
        app.screen.refresh_choices()
