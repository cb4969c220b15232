"""Actions of the application: screens, theme, prompt, inputs, and what is kept with a session."""

from __future__ import annotations

import re
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, runtime_checkable

from stepper.errors import UsageError
from stepper.files.file_kinds import SVG
from stepper.files.output import OutputFile
from stepper.query.address_resolution import resolve
from stepper.query.address_syntax import parse_address, without_element
from stepper.session.input_choices import InputChoices
from stepper.wording import two_columns
from stepper_tui.command_line import VIEWS
from stepper_tui.paint.pane import ListPane, Pane
from stepper_tui.registry import WAYS, action, integer
from stepper_tui.screens.inputs import InputsScreen, InputsTable, OpenDimensions, set_size
from stepper_tui.screens.sheet.screen import SheetScreen
from stepper_tui.worker.python_prompt import EvaluatePython

if TYPE_CHECKING:
    from stepper_tui.app import StepperApp

# --- what only some panes can do ------------------------------------------------------------------------------------


@runtime_checkable
class HasViews(Protocol):
    """A pane with several views of the same thing."""

    def look_on(self, direction: int) -> None:
        """Show the next view (1), or the one before (-1)."""


@runtime_checkable
class Zoomable(Protocol):
    """A pane whose contents can be larger or smaller."""

    def zoom_by(self, by: int) -> None:
        """Show everything larger (1) or smaller (-1)."""


@runtime_checkable
class HasWires(Protocol):
    """A pane with boxes that are joined by wires."""

    def follow_wire(self, direction: str) -> None:
        """Select the next box up, down, left or right."""


@runtime_checkable
class Pannable(Protocol):
    """A pane that scrolls in all directions."""

    def pan_by(self, right: int, down: int) -> None:
        """Show what is so many steps to the right and below."""


@runtime_checkable
class Foldable(Protocol):
    """A pane with groups of rows that fold."""

    def fold(self) -> str:
        """Fold what is selected, or unfold it; return why it cannot be, empty where it was."""


# --- moving ---------------------------------------------------------------------------------------------------------


@action("pause", help="stop a movement where it is; else close an answer; else come out of what was gone into")
def _pause(app: StepperApp, _text: str) -> None:
    if app.driver.pause() or app.python.interrupt():
        return
    if not (app.close_card() or app.driver.hold_overview() or app.front.come_out()):
        app.close_view()


# --- selecting and looking ------------------------------------------------------------------------------------------


@action("select", syntax="+N|-N|N|now", help="select an operation of the list; now: the operation of the position")
def _select(app: StepperApp, text: str) -> None:
    state = app.state
    if text == "now":
        app.select(None)
        return
    if state.frame is None or state.cursor is None:
        raise UsageError("the run has ended; there is nothing to select")
    number = integer(text)
    wanted = state.cursor + number if text[0] in "+-" else number
    app.select(max(0, min(wanted, len(state.frame.layers) - 1)))


@action("look", syntax="next|previous", help="another view of the focused pane")
def _look(app: StepperApp, text: str) -> None:
    focused = app.focused_pane
    if focused is not None and isinstance(focused, HasViews):
        focused.look_on(1 if text != "previous" else -1)


@action("zoom", syntax="in|out", help="larger or smaller boxes of the graph; more or fewer digits")
def _zoom(app: StepperApp, text: str) -> None:
    for pane in app.screen.query(Pane):
        if isinstance(pane, Zoomable):
            pane.zoom_by(-1 if text == "out" else 1)


@action("wire", syntax="up|down|left|right", help="along the wires of the graph")
def _wire(app: StepperApp, text: str) -> None:
    for pane in app.screen.query(Pane):
        if isinstance(pane, HasWires):
            pane.follow_wire(text)


@action("scroll", syntax="N|page|-page|first|last", help="scroll the focused pane")
def _scroll(app: StepperApp, text: str) -> None:
    pane = app.focused_pane
    if pane is not None:
        page, rows = max(pane.size.height - 2, 1), pane.count(pane.size.width)
        ways = {"page": page, "-page": -page, "first": -rows, "last": rows}
        pane.scroll_rows(ways[text] if text in ways else integer(text or "1"))


@action("pan", syntax="left|right|up|down [N]", help="see what is beside, without moving")
def _pan(app: StepperApp, text: str) -> None:
    focused = app.focused_pane
    way, _, count = text.partition(" ")
    if way in WAYS and focused is not None and isinstance(focused, Pannable):
        times = integer(count or "1")
        down, across = WAYS[way]
        focused.pan_by(across * times, down * times)


@action("fold", help="fold or unfold what is selected")
def _fold(app: StepperApp, _text: str) -> None:
    reasons = [pane.fold() for pane in app.screen.query(Pane) if isinstance(pane, Foldable)]
    if reasons and all(reasons):
        raise UsageError(reasons[0])


@action("view", syntax="NAME", help="open one of the screens; without a name, which there are")
def _view(app: StepperApp, text: str) -> None:
    if text:
        app.open_view(text)
    else:
        views = ((f"view {view.name}", view.help) for view in VIEWS.values())
        app.show_card("view", tuple(two_columns(views, app.size.width - 4)))


@action("toggle-break", help="set a breakpoint on the selected operation, or take it away")
def _toggle_break(app: StepperApp, _text: str) -> None:
    cursor = app.state.cursor
    address = without_element(app.chosen_address)
    if address:
        found = resolve(parse_address(address), app.driver.compiled)
        index = found.program.indices.get(found.layer.id, -1)
        here = tuple(one for one in app.state.breaks if one.is_at(found.program, index))
    else:
        here = () if cursor is None else app.state.breaks_at(cursor)
    app.perform(f"delete {here[0].number}" if here else f"break {address or '{op}'}")


# --- the screen -----------------------------------------------------------------------------------------------------


@action("prompt", syntax="[TEXT]", help="type a command")
def _prompt(app: StepperApp, text: str) -> None:
    app.open_prompt(f"{text.rstrip()} " if text.strip() else "")


@action("focus", syntax="next|previous", help="another pane")
def _focus(app: StepperApp, text: str) -> None:
    app.move_focus(-1 if text == "previous" else 1)


@action("theme", syntax="[NAME]", help="the other theme, or one by name: dark, light")
def _theme(app: StepperApp, text: str) -> None:
    other = "stepper-light" if app.current_theme.dark else "stepper-dark"
    wanted = f"stepper-{text}" if text in ("dark", "light") else text or other
    if wanted not in app.available_themes:
        raise UsageError(f"there is no theme '{wanted}'; there are {', '.join(sorted(app.available_themes))}")
    app.theme = wanted


@action("palette", help="every action by name")
def _palette(app: StepperApp, _text: str) -> None:
    app.action_command_palette()


@action("help-keys", help="the keys of this pane, then all")
def _help_keys(app: StepperApp, _text: str) -> None:
    app.open_view("help")


@action("row", syntax="+N|-N|page|-page|first|last", help="choose another line of a list")
def _row(app: StepperApp, text: str) -> None:
    if re.fullmatch(r"[+-][0-9]{1,9}|-?page|first|last", text) is None:
        raise UsageError(f"+N, -N, page, -page, first or last is expected, not '{text}'")
    _list(app).move(text)


@action("open-row", help="take the chosen line of a list")
def _open_row(app: StepperApp, _text: str) -> None:
    _list(app).open_chosen()


def _list(app: StepperApp) -> ListPane[object]:
    pane = app.focused_pane
    if not isinstance(pane, ListPane):
        raise UsageError("no list has the focus")
    return pane


@action("back", help="close what is open; leave the first screen, after edits only when asked again")
def _back(app: StepperApp, _text: str) -> None:
    if app.close_card() or app.close_view():
        return
    _leave(app, app.session.lost_by_leaving or app.session.kept_at_leaving)


@action("suspend", help="back to the shell for a while; fg there comes back")
def _suspend(app: StepperApp, _text: str) -> None:
    app.action_suspend_process()


@action("quit", help="leave, with an edit that is not kept after a question")
def _quit(app: StepperApp, _text: str) -> None:
    _leave(app, app.session.lost_by_leaving)


def _leave(app: StepperApp, sentence: str) -> None:
    """Leave; if a message has to be shown first, only when asked again."""
    if sentence and not app.session.has_asked:
        app.say(f"{sentence}; once more leaves", "edit")
        app.session.has_asked = True
    else:
        app.leave()


@action("save-session", help="keep breakpoints, watches, marks, branches, layout and this place")
def _save_session(app: StepperApp, _text: str) -> None:
    app.session.save()


@action("rerun", help="read model and inputs again and run to this place; breakpoints and watches stay")
def _rerun(app: StepperApp, _text: str) -> None:
    app.session.rerun()


@action("export", help="write what is on the screen into a file, whose name can be changed before")
def _export(app: StepperApp, _text: str) -> None:
    pane = app.focused_pane
    if isinstance(app.front, SheetScreen) and app.front.model.story is not None:
        app.open_prompt(f"export-story {_file_name(app)}")
        return
    is_figure = pane is not None and pane.kind == "graph" and app.state.loop is not None
    app.open_prompt(f"export-{'figure' if is_figure else 'screen'} {_file_name(app)}{' rolled' if is_figure else ''}")


@action("export-screen", syntax="FILE.svg", help="write what is on the screen into an SVG file")
def _export_screen(app: StepperApp, text: str) -> None:
    if not text.endswith(".svg"):
        raise UsageError("the name of a file that ends in .svg is expected")
    picture = app.export_screenshot(title=app.state.model)
    OutputFile(Path(text), SVG, app.driver.protected).write(picture.encode())
    app.say(f"{text} written")


@action("!", syntax="PYTHON", help="Python with vals (values by name), it (the iteration), np; the only place for it")
def _python(app: StepperApp, text: str) -> None:
    if not text:
        app.open_prompt("! ")
        return
    app.driver.ask(EvaluatePython(app.python, text, app.state.depth), partial(_answer, app, text))


def _answer(app: StepperApp, text: str, lines: tuple[str, ...]) -> None:
    if len(lines) > 1:
        app.show_card(f"! {text}", lines)
    else:
        app.say(lines[0] if lines else "done", "")


def _file_name(app: StepperApp) -> str:
    view = app.state.view
    word = re.sub(r"[^A-Za-z0-9_.-]+", "_", app.state.model).strip("._") or "model"
    return f"{word}-tick{0 if view is None else view.tick}.svg"


@action(
    "export-figure", syntax="FILE [VIEW]", help="draw the loop for a document: svg, pdf, md; rolled, ports, unrolled"
)
def _export_figure(app: StepperApp, text: str) -> None:
    from stepper_tui.actions.figures import export_figure  # the writers of figures are not needed before

    export_figure(app, text)


def _screen_of(app: StepperApp) -> InputsScreen:
    if not isinstance(app.screen, InputsScreen):
        raise UsageError("this command is for the inputs screen: view inputs")
    return app.screen


def _choices(app: StepperApp) -> InputChoices:
    choices = app.to_choose()
    if choices is None:
        raise UsageError("there is nothing to choose: the inputs come from a session or a program")
    return choices


@action("choose", syntax="down|up|left|right", help="another input, or another source for its value")
def _choose(app: StepperApp, text: str) -> None:
    screen = _screen_of(app)
    pane = app.focused_pane
    (pane if isinstance(pane, OpenDimensions) else screen.query_one(InputsTable)).turn(text)


@action("edit-input", help="type a path, a literal, a seed or a size")
def _edit(app: StepperApp, _text: str) -> None:
    screen = _screen_of(app)
    pane = app.focused_pane
    if isinstance(pane, OpenDimensions):
        pane.edit()
        return
    table = screen.query_one(InputsTable)
    table.focus()
    table.edit()


@action("input", syntax="NAME|* SPEC", help="a value for an input of the model, or for all that have none: * rand:0")
def _input(app: StepperApp, text: str) -> None:
    choices = _choices(app)
    name, _, spec = text.rpartition(" ") if text.count(" ") == 1 else text.partition(" ")
    if not name or not spec:
        raise UsageError("expected a name and a value, such as input h0 zeros, or input * rand:0")
    for position in choices.position_of(name):
        choices.put(position, spec)
    _shown(app)


@action("dim", syntax="LETTER|* SIZE", help="a size for an open dimension, or for all that have none")
def _dim(app: StepperApp, text: str) -> None:
    set_size(_choices(app), text)
    _shown(app)


@action("start", help="run the model on the chosen inputs, and on those that are proposed")
def _start(app: StepperApp, _text: str) -> None:
    choices = _choices(app)
    for position, spec in choices.proposed.items():
        choices.put(position, spec)
    app.chooser.begin(choices.arrays())


@action("copy-inputs", help="copy the choices as options of the command line")
def _copy(app: StepperApp, _text: str) -> None:
    app.copy_to_clipboard(" ".join(_choices(app).command_line()))
    app.say("copied the options of the command line")


def _shown(app: StepperApp) -> None:
    if isinstance(app.screen, InputsScreen):
        app.screen.refresh_choices()
