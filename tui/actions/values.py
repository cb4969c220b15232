"""Actions on the value of the cursor, wherever that is: changing it, copying it."""

from __future__ import annotations

from typing import Final

from msgspec.structs import replace

from stepper.element_types import Array
from stepper.errors import UsageError
from stepper.plain_values import tensor_json
from stepper.query.address_resolution import resolve
from stepper.query.address_syntax import Address, parse_address
from stepper.tensors.surveys import standing_out
from stepper.wording import excerpt
from tui.actions.registry import action
from tui.application import Application
from tui.screens.value.screen import ValueScreen
from tui.screens.value.selection import Subject, shown

_MOST_COPIED: Final = 1000


def subject_of(app: Application, text: str) -> Subject:
    """Return the value that an address names. StepperError where it names none."""
    program = app.driver.compiled.main if app.state.frame is None else app.state.frame.program
    found = resolve(parse_address(text), app.driver.compiled, program)
    if found.layer in found.program.layers:
        return Subject(found.program, found.program.layers.index(found.layer), found.output)
    return Subject(found.program, 0, 0, found.layer)


def _chosen(app: Application) -> tuple[str, Array | None, str]:
    """Return the address of the selected value, the value as far as it is known here, and why it is not."""
    frame, cursor, pane = app.state.frame, app.state.cursor, app.focused_pane
    address = "" if pane is None else pane.chosen_address
    if pane is not None and address:
        known = pane.chosen_array
        if known is not None:
            return address, known, ""
        found = shown(app.state, subject_of(app, address), app.driver.compiled)
        return address, None if found.is_old else found.array, found.why or "its numbers are not held at hand"
    if frame is None or cursor is None or not frame.layers[cursor].outputs:
        raise UsageError("nothing is selected that has a value")
    value = frame.output(cursor)
    return frame.address(cursor, app.driver.compiled), value.array, value.absent


@action("edit-value", help="type another value for the element under the cursor, or for the one that stands out")
def _edit_value(app: Application, _text: str) -> None:
    app.open_prompt(f"set {_element_to_change(app)} =")


def _element_to_change(app: Application) -> Address:
    """Return the address of the element; in its iteration where the run has not come to it. UsageError without one."""
    if isinstance(app.screen, ValueScreen):
        seen = app.screen.inspected
        if seen.array is None:
            raise UsageError("there is no element here")
        return _changed_at(app, seen.shown.address, seen.cursor, is_to_come=seen.shown.is_old)
    pane = app.focused_pane
    if pane is not None and pane.chosen_element is not None:
        return _changed_at(app, pane.chosen_address, pane.chosen_element)
    address, value, why = _chosen(app)
    if value is not None:
        return _changed_at(app, address, standing_out(value))
    found = shown(app.state, subject_of(app, address), app.driver.compiled)
    if app.state.iteration is None:
        raise UsageError(f"it has no value that could be changed: {why}")
    return _changed_at(app, address, () if found.array is None else standing_out(found.array), is_to_come=True)


def _changed_at(app: Application, address: str, element: tuple[int, ...], *, is_to_come: bool = False) -> Address:
    """Return the address of an element; `is_to_come`: the run goes on to it before it is changed."""
    if not address:
        raise UsageError("outputs of the model cannot be changed")
    named = replace(parse_address(address), index=element)
    iteration = app.state.iteration
    return replace(named, iterations=iteration) if is_to_come and named.iterations is None else named


@action("copy", syntax="value|address", help="copy the selected value, or its address")
def _copy(app: Application, text: str) -> None:
    if text == "address":
        copied = app.filled("{op}")
    else:
        _address, value, why = _chosen(app)
        if value is None or value.size > _MOST_COPIED:
            raise UsageError(
                f"there is no value: {why}" if value is None else f"{value.size} elements are too many to copy"
            )
        copied = str(tensor_json(value)["values"])
    app.copy_to_clipboard(copied)
    app.say(f"copied {excerpt(copied)}")
