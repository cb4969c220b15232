"""Actions of the screen itself."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Protocol, runtime_checkable

from textual.containers import Container

from stepper.commands.session_commands import two_columns
from stepper.errors import UsageError
from stepper.query.address_syntax import without_element
from stepper.tensors.statistics import OVER_ITERATIONS
from tui.actions.registry import action
from tui.actions.values import subject_of
from tui.paint.pane import Pane
from tui.registry import VIEWS
from tui.screens.value.selection import Subject
from tui.worker.requests import ShowStatistic

if TYPE_CHECKING:
    from tui.application import Application


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


@runtime_checkable
class HasCentre(Protocol):
    """A screen whose centre shows two moments, or the graph."""

    def turn_centre(self) -> bool:
        """Show the other one; False where there are no two moments."""
        ...


# --- moving ---------------------------------------------------------------------------------------------------------


@action("pause", help="stop a movement where it is; else close what is open, but the overview")
def _pause(app: Application, _text: str) -> None:
    if app.driver.pause() or app.python.interrupt():
        return
    if app.close_card() or app.front.come_out():
        return
    if app.front.view_name == "overview":
        app.driver.hold_overview()
    elif app.front.view_name:
        app.close_view()


@action("edge", syntax="first|last", help="the same place in the first or last iteration; outside of loops start, end")
def _edge(app: Application, text: str) -> None:
    state = app.state
    inside = state.loop is not None and state.loop_depth == len(state.frames) - 1 and state.iteration is not None
    app.perform(f"iter {text}" if inside else text)


@action("back-to", syntax="ADDR", help="back to where an operation ran last")
def _back_to(app: Application, text: str) -> None:
    state = app.state
    frame, cursor = state.frame, state.cursor
    selected = "" if frame is None or cursor is None else frame.address(cursor, app.driver.compiled)
    if text != selected or frame is None or cursor is None or frame.iteration is None or cursor < frame.moment:
        app.perform(f"goto {text}")
    elif frame.iteration == 0:
        raise UsageError("this is iteration 0; the operation has not run before")
    else:
        app.perform(f"goto {text}@{frame.iteration - 1}")


# --- selecting and looking ------------------------------------------------------------------------------------------


@action("select", syntax="+N|-N|N|now", help="select an operation of the list; now: that of the moment")
def _select(app: Application, text: str) -> None:
    state = app.state
    if text == "now":
        app.select(None)
        return
    if state.frame is None or state.cursor is None:
        raise UsageError("the run has ended; there is nothing to select")
    number = _integer(text)
    wanted = state.cursor + number if text[0] in "+-" else number
    app.select(max(0, min(wanted, len(state.frame.layers) - 1)))


@action("look", syntax="next|previous", help="another view of the focused pane, such as another statistic")
def _look(app: Application, text: str) -> None:
    focused = app.focused_pane
    if focused is not None and isinstance(focused, HasViews):
        focused.look_on(1 if text != "previous" else -1)
        return
    place = OVER_ITERATIONS.index(app.state.statistic) + (1 if text != "previous" else -1)
    app.perform(f"statistic {OVER_ITERATIONS[place % len(OVER_ITERATIONS)]}")


@action("centre", help="the graph in place of the two moments, or these again")
def _centre(app: Application, _text: str) -> None:
    screen = app.screen
    if not isinstance(screen, HasCentre) or not screen.turn_centre():
        _look(app, "previous")


@action("statistic", syntax="|".join(OVER_ITERATIONS), help="the number that stands for a tensor in lists")
def _statistic(app: Application, text: str) -> None:
    if text not in OVER_ITERATIONS:
        raise UsageError(f"there is no statistic '{text}'; there are {', '.join(OVER_ITERATIONS)}")
    app.driver.adjust(ShowStatistic(text))


@action("zoom", syntax="in|out", help="larger or smaller boxes of the graph; more or fewer digits")
def _zoom(app: Application, text: str) -> None:
    for pane in app.screen.query(Pane):
        if isinstance(pane, Zoomable):
            pane.zoom_by(-1 if text == "out" else 1)


@action("wire", syntax="up|down|left|right", help="along the wires of the graph")
def _wire(app: Application, text: str) -> None:
    for pane in app.screen.query(Pane):
        if isinstance(pane, HasWires):
            pane.follow_wire(text)


@action("scroll", syntax="N|page|-page|first|last", help="scroll the focused pane")
def _scroll(app: Application, text: str) -> None:
    pane = app.focused_pane
    if pane is not None:
        page, rows = max(pane.size.height - 2, 1), pane.count(pane.size.width)
        ways = {"page": page, "-page": -page, "first": -rows, "last": rows}
        pane.scroll_rows(ways[text] if text in ways else _integer(text or "1"))


_WAYS: Final = {"left": (-1, 0), "right": (1, 0), "up": (0, -1), "down": (0, 1)}


@action("pan", syntax="left|right|up|down [N]", help="see what is beside, without moving")
def _pan(app: Application, text: str) -> None:
    focused = app.focused_pane
    way, _, count = text.partition(" ")
    if way in _WAYS and focused is not None and isinstance(focused, Pannable):
        times = _integer(count or "1")
        focused.pan_by(_WAYS[way][0] * times, _WAYS[way][1] * times)


def _line_to_last_iteration(app: Application) -> str:
    """Return the line that goes to the last iteration of the last loop, at the end of the run; else empty."""
    ending = app.state.ending
    return "" if ending is None or ending.last is None else f"goto tick {ending.last.tick}"


@action("fold", help="fold or unfold what is selected")
def _fold(app: Application, _text: str) -> None:
    reasons = [pane.fold() for pane in app.screen.query(Pane) if isinstance(pane, Foldable)]
    if reasons and all(reasons):
        raise UsageError(reasons[0])


@action(
    "open",
    syntax="[ADDR]",
    help="open what is selected, or named: a value full screen; a loop that comes next, or at the end the last one",
)
def _open(app: Application, text: str) -> None:
    if text:
        app.open_value(subject_of(app, text))
        return
    frame, cursor = app.state.frame, app.state.cursor
    if app.chosen_address:
        app.perform(f"open {app.chosen_address}")
    elif line := _line_to_last_iteration(app):
        app.perform(line)
    elif frame is None or cursor is None:
        return
    elif frame.running == cursor and frame.depth < len(app.state.frames) - 1:
        app.perform("down")
    elif frame.layers[cursor].bodies and cursor == frame.last + 1:
        app.perform("step")
    else:
        app.open_view("value")


@action("open-output", syntax="N", help="the value of an output of the model, at the end of the run")
def _open_output(app: Application, text: str) -> None:
    number, count = _integer(text), len(app.state.output_names)
    if not 0 <= number < count:
        raise UsageError(f"there is no output {text}; there are {count}, counted from 0")
    app.open_value(Subject(None, 0, number))


@action("view", syntax="NAME", help="open one of the screens; without a name, which there are")
def _view(app: Application, text: str) -> None:
    if text:
        app.open_view(text)
    else:
        views = ((f"view {view.name}", view.help) for view in VIEWS.values())
        app.show_card("view", tuple(two_columns(views, app.size.width - 4)))


@action("toggle-break", help="set a breakpoint on the selected operation, or take it away")
def _toggle_break(app: Application, _text: str) -> None:
    cursor = app.state.cursor
    address = app.chosen_address or app.found
    address = address and without_element(address)
    if address:
        here = tuple(one for one in app.state.breaks if one.description.text == address)
    else:
        here = () if cursor is None else app.state.breaks_at(cursor)
    app.perform(f"delete {here[0].number}" if here else f"break {address or '{op}'}")


# --- the screen -----------------------------------------------------------------------------------------------------


@action("prompt", syntax="[TEXT]", help="type a command")
def _prompt(app: Application, text: str) -> None:
    app.open_prompt(f"{text.rstrip()} " if text.strip() else "")


@action("focus", syntax="next|previous", help="another pane")
def _focus(app: Application, text: str) -> None:
    app.move_focus(-1 if text == "previous" else 1)


@action("zoom-pane", help="the focused pane alone on the screen, and back")
def _zoom_pane(app: Application, _text: str) -> None:
    screen, pane = app.screen, app.focused_pane
    if screen.maximized is not None:
        screen.minimize()
    elif pane is not None:
        screen.maximize(pane, container=isinstance(pane.parent, Container))


@action("theme", syntax="[NAME]", help="the other theme, or one by name: dark, light")
def _theme(app: Application, text: str) -> None:
    other = "stepper-light" if app.current_theme.dark else "stepper-dark"
    wanted = f"stepper-{text}" if text in ("dark", "light") else text or other
    if wanted not in app.available_themes:
        raise UsageError(f"there is no theme '{wanted}'; there are {', '.join(sorted(app.available_themes))}")
    app.theme = wanted


@action("palette", help="every action by name")
def _palette(app: Application, _text: str) -> None:
    app.action_command_palette()


@action("help-keys", help="the keys of this pane, then all")
def _help_keys(app: Application, _text: str) -> None:
    app.open_view("help")


@action("back", help="close what is open; on the first screen leave, after edits when what becomes of them is told")
def _back(app: Application, _text: str) -> None:
    if app.close_card() or app.close_view():
        return
    _leave(app, app.session.lost_by_leaving or app.session.kept_at_leaving)


@action("suspend", help="back to the shell for a while; fg there comes back")
def _suspend(app: Application, _text: str) -> None:
    app.action_suspend_process()


@action("quit", help="leave, with an edit that is not kept after a question")
def _quit(app: Application, _text: str) -> None:
    _leave(app, app.session.lost_by_leaving)


def _leave(app: Application, sentence: str) -> None:
    """Leave; where there is something to be told before, when asked for it once more."""
    if sentence and not app.session.has_asked:
        app.say(f"{sentence}; once more leaves", "edit")
        app.session.has_asked = True
    else:
        app.leave()


def _integer(text: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise UsageError(f"a number is expected, not '{text}'") from None
