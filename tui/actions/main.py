"""Commands of the screen itself, by name: they stand beside those of the debugger at the prompt and in the palette.

    @action("theme", help="the other theme")
    def _theme(app: Stage, text: str) -> None: ...

`text` is what stands behind the word. An error for the user is a UsageError.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from importlib import import_module
from typing import Final

from msgspec import Struct
from textual.containers import Container

from stepper.debug.iterations.statistics import statistic_names
from stepper.errors import UsageError
from stepper.plain_values import tensor_json
from tui.paint.pane import Pane
from tui.stage import Stage

_MOST_COPIED: Final = 1000


class Action(Struct, frozen=True):
    """An action of the screen; `syntax` is what stands behind its name."""

    name: str
    syntax: str
    help: str
    carry_out: Callable[[Stage, str], None]


_GROUPS: Final = (
    "compare",
    "inputs",
    "lists",
    "ports",
    "searching",
    "session",
    "tensor",
)
"""The modules of further actions, imported when the first action is called for: the screen is painted before."""

_ACTIONS: Final[dict[str, Action]] = {}


@cache
def actions() -> Mapping[str, Action]:
    """All of them, by name."""
    for group in _GROUPS:
        import_module(f"tui.actions.{group}")
    return _ACTIONS


def action(
    name: str, *, help: str, syntax: str = ""
) -> Callable[[Callable[[Stage, str], None]], Callable[[Stage, str], None]]:
    """Register a function as an action."""

    def register(function: Callable[[Stage, str], None]) -> Callable[[Stage, str], None]:
        _ACTIONS[name] = Action(name, syntax, help, function)
        return function

    return register


# --- moving ---------------------------------------------------------------------------------------------------------


@action("pause", help="stop a movement where it is; else close what is open")
def _pause(app: Stage, _text: str) -> None:
    if not app.driver.pause() and not app.python.interrupt():
        app.close_card()


@action("edge", syntax="first|last", help="the same place in the first or last iteration; outside of loops start, end")
def _edge(app: Stage, text: str) -> None:
    state = app.state
    inside = state.loop is not None and state.loop_depth == len(state.frames) - 1 and state.iteration is not None
    app.perform(f"iter {text}" if inside else text)


@action("back-to", syntax="ADDR", help="back to where an operation ran last")
def _back_to(app: Stage, text: str) -> None:
    state = app.state
    frame, cursor = state.frame, state.cursor
    if frame is None or cursor is None or frame.iteration is None or cursor < frame.moment:
        app.perform(f"goto {text}")
    elif frame.iteration == 0:
        raise UsageError("this is iteration 0; the operation has not run before")
    else:
        app.perform(f"goto {text}@{frame.iteration - 1}")


# --- selecting and looking ------------------------------------------------------------------------------------------


@action("select", syntax="+N|-N|N", help="select an operation of the list")
def _select(app: Stage, text: str) -> None:
    state = app.state
    if state.frame is None or state.cursor is None:
        raise UsageError("the run has ended; there is nothing to select")
    number = _integer(text)
    wanted = state.cursor + number if text[0] in "+-" else number
    app.select(max(0, min(wanted, len(state.frame.layers) - 1)))


@action("look", syntax="next|previous", help="another view of the focused pane, such as another statistic")
def _look(app: Stage, text: str) -> None:
    focused = app.focused_pane
    looks = getattr(focused, "look_on", None)
    if looks is not None:
        looks(1 if text != "previous" else -1)
        return
    names = statistic_names()
    place = names.index(app.state.statistic) + (1 if text != "previous" else -1)
    app.perform(f"statistic {names[place % len(names)]}")


@action("statistic", syntax="|".join(statistic_names()), help="the number that stands for a tensor in lists")
def _statistic(app: Stage, text: str) -> None:
    # A pane may have one more of its own, such as the grid beside a reference.
    if any(pane.show_statistic(text) for pane in app.screen.query(Pane)):
        return
    if text not in statistic_names():
        raise UsageError(f"there is no statistic '{text}'; there are {', '.join(statistic_names())}")
    app.driver.adjust(lambda pictures: pictures.choose(text))


@action("zoom", syntax="in|out", help="larger or smaller boxes of the graph; more or fewer digits")
def _zoom(app: Stage, text: str) -> None:
    for pane in app.screen.query(Pane):
        zoom = getattr(pane, "zoom_by", None)
        if zoom is not None:
            zoom(-1 if text == "out" else 1)


@action("wire", syntax="up|down|left|right", help="along the wires of the graph")
def _wire(app: Stage, text: str) -> None:
    for pane in app.screen.query(Pane):
        follow = getattr(pane, "follow", None)
        if follow is not None:
            follow(text)


@action("scroll", syntax="N|page|-page|first|last", help="scroll the focused pane")
def _scroll(app: Stage, text: str) -> None:
    pane = app.focused_pane
    if pane is not None:
        page, rows = max(pane.size.height - 2, 1), pane.count(pane.size.width)
        ways = {"page": page, "-page": -page, "first": -rows, "last": rows}
        pane.scroll_rows(ways[text] if text in ways else _integer(text or "1"))


@action("pan", syntax="N|-N", help="see earlier or later iterations, without moving")
def _pan(app: Stage, text: str) -> None:
    pan = getattr(app.focused_pane, "pan", None)
    if pan is not None:
        pan(_integer(text or "1"))


@action(
    "anomaly", syntax="next|previous", help="to where NaN, Inf or another shape begins, in the grid or the timeline"
)
def _anomaly(app: Stage, text: str) -> None:
    seek = getattr(app.focused_pane, "seek_anomaly", None)
    if seek is None:
        raise UsageError("anomalies are sought in the grid and on the full timeline (view grid, view timeline)")
    line = seek(backward=text == "previous")
    if not line:
        raise UsageError("none is known in this direction")
    app.perform(line)


@action("go-to-cell", help="go to the operation and iteration selected in the grid; open the value of the moment")
def _go_to_cell(app: Stage, _text: str) -> None:
    go = getattr(app.focused_pane, "go_line", None)
    app.perform((go() if go is not None else "") or "open")


@action("fold", help="fold or unfold what is selected")
def _fold(app: Stage, _text: str) -> None:
    for pane in app.screen.query(Pane):
        fold = getattr(pane, "fold", None)
        if fold is not None:
            fold()


@action("open", help="open what is selected: a value full screen; a loop that comes next, or at the end the last one")
def _open(app: Stage, _text: str) -> None:
    frame, cursor, ending = app.state.frame, app.state.cursor, app.state.ending
    if ending is not None and ending.last is not None:
        app.perform(f"goto tick {ending.last.tick}")
    elif frame is None or cursor is None:
        return
    elif frame.running == cursor and frame.depth < len(app.state.frames) - 1:
        app.perform("down")
    elif frame.layers[cursor].bodies and cursor == frame.last + 1:
        app.perform("step")
    else:
        app.open_view("value")


@action("view", syntax="NAME", help="open one of the screens; without a name, which there are")
def _view(app: Stage, text: str) -> None:
    app.open_view(text)


@action("toggle-break", help="set a breakpoint on the selected operation, or take it away")
def _toggle_break(app: Stage, _text: str) -> None:
    cursor = app.state.cursor
    here = () if cursor is None else app.state.breaks_at(cursor)
    app.perform(f"delete {here[0].number}" if here else "break {op}")


# --- the screen -----------------------------------------------------------------------------------------------------


@action("prompt", syntax="[TEXT]", help="type a command")
def _prompt(app: Stage, text: str) -> None:
    app.open_prompt(f"{text.rstrip()} " if text.strip() else "")


@action("focus", syntax="next|previous", help="another pane")
def _focus(app: Stage, text: str) -> None:
    app.move_focus(-1 if text == "previous" else 1)


@action("zoom-pane", help="the focused pane alone on the screen, and back")
def _zoom_pane(app: Stage, _text: str) -> None:
    screen, pane = app.screen, app.focused_pane
    if screen.maximized is not None:
        screen.minimize()
    elif pane is not None:
        screen.maximize(pane, container=isinstance(pane.parent, Container))


@action("theme", syntax="[NAME]", help="the other theme, or one by name")
def _theme(app: Stage, text: str) -> None:
    other = "stepper-light" if app.current_theme.dark else "stepper-dark"
    wanted = text or other
    if wanted not in app.available_themes:
        raise UsageError(f"there is no theme '{wanted}'; there are {', '.join(sorted(app.available_themes))}")
    app.theme = wanted


@action("copy", syntax="value|address", help="copy the selected value, or its address")
def _copy(app: Stage, text: str) -> None:
    frame, cursor = app.state.frame, app.state.cursor
    if frame is None or cursor is None:
        raise UsageError("nothing is selected")
    if text == "address":
        copied = app.filled("{op}")
    else:
        value = frame.output(cursor).array
        if value is None or value.size > _MOST_COPIED:
            raise UsageError("there is no value" if value is None else f"{value.size} elements are too many to copy")
        copied = str(tensor_json(value)["values"])
    app.copy_to_clipboard(copied)
    app.say(f"copied {text or 'value'}")


@action("palette", help="every action by name")
def _palette(app: Stage, _text: str) -> None:
    app.action_command_palette()


@action("help-keys", help="the keys of this pane, then all")
def _help_keys(app: Stage, _text: str) -> None:
    app.open_view("help")


@action("back", help="close what is open; on the main screen, leave")
def _back(app: Stage, _text: str) -> None:
    if not app.close_card() and not app.close_view():
        app.leave()


@action("quit", help="leave")
def _quit(app: Stage, _text: str) -> None:
    app.leave()


def _integer(text: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise UsageError(f"a number is expected, not '{text}'") from None
