"""Actions of the lists: choosing a row, opening it, switching a breakpoint on and off, values by number."""

from __future__ import annotations

import re

from stepper.debug.inspection.text import value_lines
from stepper.errors import UsageError
from tui.actions.registry import action
from tui.application import Application
from tui.paint.link_pane import LinkPane
from tui.paint.list_pane import ListPane
from tui.paint.rows import printable
from tui.screens.main.picture_pane import PicturePane


@action("row", syntax="+N|-N|page|-page|first|last", help="choose another row of a list, or another link of a pane")
def _row(app: Application, text: str) -> None:
    if re.fullmatch(r"[+-][0-9]{1,9}|-?page|first|last", text) is None:
        raise UsageError(f"+N, -N, page, -page, first or last is expected, not '{text}'")
    _list(app).move(text)


@action("open-row", help="open the chosen row of a list, or go where the chosen link leads")
def _open_row(app: Application, _text: str) -> None:
    _list(app).open_chosen()


@action("column", syntax="left|right [N]", help="choose a column of the pictures over the iterations")
def _column(app: Application, text: str) -> None:
    way, _, count = text.partition(" ")
    pane = app.focused_pane
    if not isinstance(pane, PicturePane):
        raise UsageError("no pictures have the focus")
    if way not in ("left", "right") or not (count or "1").isdecimal():
        raise UsageError(f"left or right, and how far, is expected, not '{text}'")
    pane.move_column(int(count or 1) * (1 if way == "right" else -1))


@action("toggle-enabled", syntax="N", help="switch a breakpoint off, or on again")
def _toggle_enabled(app: Application, text: str) -> None:
    found = next((one for one in app.state.breaks if str(one.number) == text), None)
    if found is None:
        raise UsageError("there is no breakpoint to switch" if not text else f"there is no breakpoint {text}")
    app.perform(f"{'disable' if found.enabled else 'enable'} {found.number}")


@action("open-value", syntax="N", help="select an operation by its place in the order, and open its value")
def _open_value(app: Application, text: str) -> None:
    app.perform(f"select {text}")
    app.open_view("value")


@action("print-variable", syntax="N", help="a variable of the model by its place in the list, in full")
def _print_variable(app: Application, text: str) -> None:
    variables = app.state.lists.variables
    if not text.isdecimal() or int(text) >= len(variables):
        raise UsageError(f"there is no variable {text}; there are {len(variables)}, counted from 0")
    variable = variables[int(text)]
    lines = ["no value yet"] if variable.value is None else value_lines(variable.value, app.size.width - 4)
    app.show_card(printable(variable.name), tuple(lines))


def _list(app: Application) -> ListPane[object] | LinkPane:
    pane = app.focused_pane
    if not isinstance(pane, ListPane | LinkPane):
        raise UsageError("no list has the focus")
    return pane
