"""Actions on values: copy, save, edit, watch; and those of the screen of one tensor."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from msgspec.structs import replace

from stepper.element_types import Array
from stepper.errors import UsageError
from stepper.plain_values import tensor_json
from stepper.query.address_resolution import resolve
from stepper.query.address_syntax import Address, numpy_index, parse_address
from stepper.tensors.planes import Plane, plane_of
from stepper.tensors.surveys import standing_out
from stepper.wording import excerpt
from stepper_tui.registry import WAYS, action, integer
from stepper_tui.screens.value.inspected import FindNonFinite, Inspected, Subject, shown
from stepper_tui.screens.value.screen import ValueScreen
from stepper_tui.screens.value.tensor import TensorPane, exact

if TYPE_CHECKING:
    from stepper_tui.app import StepperApp

_MOST_COPIED = 1000


def subject_of(app: StepperApp, text: str) -> Subject:
    """Return the value that an address names. StepperError where it names none."""
    program = app.driver.compiled.main if app.state.frame is None else app.state.frame.program
    found = resolve(parse_address(text), app.driver.compiled, program)
    if found.layer in found.program.layers:
        return Subject(found.program, found.program.layers.index(found.layer), found.output)
    return Subject(found.program, 0, 0, found.layer)


def _chosen(app: StepperApp) -> tuple[str, Array | None, str]:
    """Return the address of the selected value, the value if it is known here, and else the reason."""
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
def _edit_value(app: StepperApp, _text: str) -> None:
    app.open_prompt(f"set {_element_to_change(app)} =")


def _element_to_change(app: StepperApp) -> Address:
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


def _changed_at(app: StepperApp, address: str, element: tuple[int, ...], *, is_to_come: bool = False) -> Address:
    """Return the address of an element; `is_to_come`: the run continues to it before it is changed."""
    if not address:
        raise UsageError("outputs of the model cannot be changed")
    named = replace(parse_address(address), index=element)
    iteration = app.state.iteration
    return replace(named, iterations=iteration) if is_to_come and named.iterations is None else named


@action("copy", syntax="value|address", help="copy the selected value, or its address")
def _copy(app: StepperApp, text: str) -> None:
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


def _screen(app: StepperApp) -> ValueScreen:
    """Return the screen that the actions are for."""
    front = next((screen for screen in reversed(app.screen_stack) if isinstance(screen, ValueScreen)), None)
    if front is None:
        raise UsageError("no value is open: select an operation, then Enter")
    return front


def _shown(app: StepperApp) -> tuple[ValueScreen, Inspected, Array]:
    screen = _screen(app)
    array = screen.inspected.array
    if array is None:
        raise UsageError("there is no element here")
    return screen, screen.inspected, array


@action("element", syntax="up|down|left|right|home|end|first|last|page|-page [N]", help="another element of the value")
def _element(app: StepperApp, text: str) -> None:
    screen, seen, array = _shown(app)
    word, _, count = text.partition(" ")
    times = integer(count) if count else 1
    row, column = seen.place
    if word in WAYS:
        down, across = screen.query_one("#tensor", TensorPane).step()
        row += WAYS[word][0] * down * times
        column += WAYS[word][1] * across * times
    elif word in ("page", "-page"):
        row += (1 if word == "page" else -1) * screen.query_one("#tensor", TensorPane).page() * times
    elif word in ("home", "end"):
        column = 0 if word == "home" else seen.plane.width - 1
    elif word in ("first", "last"):
        seen.go_to((0,) * array.ndim if word == "first" else tuple(size - 1 for size in array.shape))
        row, column = seen.place
    else:
        raise UsageError(
            f"'{word}' is not a direction; there are {', '.join(WAYS)}, home, end, first, last, page, -page"
        )
    seen.point_at(row, column)
    screen.repaint_panes()


@action("@", syntax="0,3", help="go to an element of the value that is open")
def _go_to(app: StepperApp, text: str) -> None:
    screen, seen, _array = _shown(app)
    seen.go_to(tuple(integer(part) for part in text.strip("[] ").split(",") if part.strip()))
    screen.repaint_panes()


@action("slice", syntax="[0,:,3:8]", help="show a part of the value that is open; without one, all of it")
def _slice(app: StepperApp, text: str) -> None:
    screen, seen, array = _shown(app)
    if not text:
        seen.show_plane(plane_of(array.shape))
    else:
        index = numpy_index(parse_address(f"x[{text.strip('[]')}]").index)
        seen.show_plane(seen.plane.sliced(index))
    screen.repaint_panes()


@action("axis", syntax="next|N|+N|-N|rows|columns", help="pick an axis; change its index; show it down or across")
def _axis(app: StepperApp, text: str) -> None:
    screen, seen, array = _shown(app)
    plane, axis = seen.plane, seen.axis
    if not array.ndim:
        raise UsageError("a single element has no axes")
    if text == "next":
        seen.axis = (axis + 1) % array.ndim
    elif text in ("rows", "columns"):
        seen.show_plane(plane.with_rows(axis) if text == "rows" else plane.with_columns(axis))
    elif text.startswith(("+", "-")):
        seen.show_plane(_moved(plane, axis, integer(text), app))
    elif 0 <= integer(text) < array.ndim:
        seen.axis = integer(text)
    else:
        raise UsageError(f"there is no axis {text}; there are {array.ndim}, from 0")
    screen.repaint_panes()


def _moved(plane: Plane, axis: int, by: int, app: StepperApp) -> Plane:
    """Another index of the picked axis, or where that is shown, of the first that is not."""
    shown = (plane.rows, plane.columns)
    if axis in shown:
        others = [other for other, size in enumerate(plane.shape) if other not in shown and size > 1]
        if not others:
            raise UsageError("every axis is shown whole; r shows the picked one down, R across")
        axis = others[-1]
        _screen(app).inspected.axis = axis
    return plane.at(axis, plane.index[axis] + by)


@action("other-value", syntax="next|previous", help="another output of the operation, or one of its inputs")
def _other_value(app: StepperApp, text: str) -> None:
    screen = _screen(app)
    screen.inspected.turn(-1 if text == "previous" else 1)
    screen.repaint_panes()


@action("non-finite", syntax="next|previous", help="the next NaN or Inf of the value that is open")
def _non_finite(app: StepperApp, text: str) -> None:
    screen, seen, array = _shown(app)
    here = int(np.ravel_multi_index(seen.cursor, array.shape)) if array.ndim else 0
    backward = text == "previous"

    def keep(found: Any) -> None:
        if found is None:
            app.say(f"no NaN or Inf {'before' if backward else 'behind'} this element")
        elif seen.shown.array is not None and seen.shown.array.shape == array.shape:
            seen.go_to(tuple(int(at) for at in np.unravel_index(found, array.shape)))
            screen.repaint_panes()

    seen.inquiries.once(FindNonFinite(array, here + (not backward), backward), keep)


@action("copy-element", syntax="value|address", help="copy the element of the value that is open, or its address")
def _copy_element(app: StepperApp, text: str) -> None:
    _, seen, _array = _shown(app)
    element = seen.element()
    if text == "address":
        shown = seen.shown
        iteration = "" if shown.iteration is None else f"@{shown.iteration}"
        index = f"[{','.join(map(str, seen.cursor))}]" if seen.cursor else ""
        copied = f"{shown.address or shown.name}{iteration}{index}"
    else:
        assert element is not None
        copied = exact(element)
    app.copy_to_clipboard(copied)
    app.say(f"copied {copied}")


@action("save-value", help="write the value that is open into a .npy file")
def _save_value(app: StepperApp, _text: str) -> None:
    _, seen, _array = _shown(app)
    if not seen.shown.address:
        raise UsageError("outputs of the model are saved with `stepper run --output`, or with `save` in the run")
    app.open_prompt(f"save {seen.shown.address} value.npy")
