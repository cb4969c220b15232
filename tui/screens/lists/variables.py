"""The variables: those of the model (ReadValue, Assign), and every value of the frame that is looked at."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar, Final

import numpy as np

from stepper.debug.inspection.views import FrameView
from stepper.ops.operands import form_text
from stepper.records import Record
from tui.paint.list_pane import ListPane
from tui.paint.names import layer_name, operation_names
from tui.paint.pane import Host
from tui.paint.rows import Row, clip, clip_end, clip_head, elements, padded, printable
from tui.screens.list_screen import ListScreen
from tui.state import State
from tui.theme import GLYPHS

_TYPE: Final = 18
_PENDING: Final = f"{GLYPHS['free']} still to come, as the iteration before left it"


class VariableRow(Record):
    """A row: a heading (`section`), a value of the frame (`index` of its operation, or `layer` of a Parameter), or a
    variable of the model (`variable`)."""

    section: str = ""
    title: str = ""
    index: int | None = None
    layer: int | None = None
    variable: int | None = None


class VariableList(ListPane[VariableRow]):
    """Sections that fold: variables of the model, what came in, what was computed in this iteration."""

    kind: ClassVar[str] = "variables"
    title = "variables"
    when_empty: ClassVar[str] = "the run has ended, and the model keeps no variables; N goes back into the run"
    help_text: ClassVar[str] = (
        "What ReadValue and Assign keep from one inference to the next; what came into the frame, and how; what was\n"
        "computed in it so far. Faint: left from the iteration before. Enter opens a value, Space folds a section."
    )

    def __init__(self, host: Host, *, id: str | None = None) -> None:
        super().__init__(host, id=id)
        self._folded: set[str] = set()
        self._built_for: tuple[Any, list[VariableRow]] | None = None

    # --- which rows ----------------------------------------------------------------------------------------------

    def entries(self) -> Sequence[VariableRow]:
        """Return the sections that have something in them."""
        frame = self.state.frame
        key = (None if frame is None else id(frame.program), len(self.state.lists.variables), frozenset(self._folded))
        if self._built_for is None or self._built_for[0] != key:
            self._built_for = key, self._built(frame)
        return self._built_for[1]

    def _built(self, frame: FrameView | None) -> list[VariableRow]:
        variables = [VariableRow(variable=place) for place in range(len(self.state.lists.variables))]
        sections = [("model", "kept from one inference to the next", variables)]
        if frame is not None:
            inputs = [VariableRow(layer=layer.id) for layer in frame.graph.parameters]
            outputs = [VariableRow(index=index) for index in range(len(frame.layers))]
            sections.append(("in", "what came in", inputs))
            sections.append(("computed", "operations", outputs))
        lines: list[VariableRow] = []
        for name, title, rows in sections:
            if rows:
                lines.append(VariableRow(section=name, title=f"{title}   {len(rows)}"))
                lines += [] if name in self._folded else rows
        return lines

    def update(self, state: State) -> None:
        """The frame that is looked at may be another one."""
        frame = state.frame
        path = (
            []
            if frame is None
            else [layer_name(one.layers[one.running]) for one in state.frames[: frame.depth] if one.running is not None]
        )
        self.note = f"{clip_head(' › '.join(path) or 'the model', 40)} "
        super().update(state)

    # --- rows ----------------------------------------------------------------------------------------------------

    def entry(self, item: VariableRow, width: int) -> Row:
        """Return a heading, or a name with role, type, shape and numbers."""
        if item.section:
            sign = GLYPHS["fold" if item.section in self._folded else "unfold"]
            row: Row = [(f"{sign} ", "dim"), (item.title, "strong")]
            frame = self.state.frame
            pending = item.section == "computed" and frame is not None and not frame.is_done(len(frame.layers) - 1)
            return [*row, (f"   {_PENDING}", "dim")] if pending else row
        if item.variable is not None:
            view = self.state.lists.variables[item.variable]
            users = ", ".join(f"{layer.type} {printable(layer.name)}" for _program, layer in view.layers)
            return self._value_row(printable(view.name), users, view.value, width)
        frame = self.state.frame
        assert frame is not None
        if item.layer is not None:
            view_in = frame.value(item.layer)
            return self._value_row(printable(view_in.name), self._role(item.layer), view_in.array, width)
        assert item.index is not None
        name, type_ = operation_names(frame.program)[item.index], frame.layers[item.index].type
        return self._value_row(name, type_, frame.held(item.index), width, pending=not frame.is_done(item.index))

    def _role(self, layer: int) -> str:
        loop = self.state.loop
        if loop is None or self.state.loop_depth != self.state.depth:
            return ""
        entry = next((one for one in loop.inputs if one.inner.layer is not None and one.inner.layer.id == layer), None)
        return "" if entry is None else entry.role

    def _value_row(self, name: str, role: str, value: Any, width: int, *, pending: bool = False) -> Row:
        tone = "dim" if pending else ""
        names = 20 if width < 90 else 30
        roles = 0 if width < 70 else 14 if width < 110 else 26
        row: Row = [(f"{GLYPHS['free'] if pending else ' '} ", "dim"), (padded(clip(name, names - 1), names), tone)]
        row += [(padded(clip_end(role, roles - 1), roles), "dim")] if roles else []
        room = width - 3 - names - roles - _TYPE
        if not isinstance(value, np.ndarray):
            absent = "no value yet" if value is None else "a stream of random numbers"
            return [*row, (absent, "dim")]
        described = form_text(value)
        return [*row, (padded(clip(described, _TYPE - 1), _TYPE), "dim"), (elements(value, room), tone)]

    # --- keys ----------------------------------------------------------------------------------------------------

    def fold(self) -> str:
        """Fold the section of the chosen row, or unfold it."""
        section = next((line for line in reversed(self.entries()[: self.cursor + 1]) if line.section), None)
        if section is None:
            return "there is nothing to fold"
        self._folded.symmetric_difference_update({section.section})
        self.choose(next(place for place, line in enumerate(self.entries()) if line.section == section.section))
        return ""

    def open_chosen(self) -> None:
        """The value on its own screen; of what came in and of a variable all numbers."""
        chosen = self.chosen
        if chosen is not None and chosen.section:
            self.fold()
        else:
            super().open_chosen()

    def line_to_open(self, item: VariableRow) -> str:
        """An operation is selected, and its value opened."""
        if item.index is not None:
            return f"open-value {item.index}"
        frame = self.state.frame
        if item.layer is None or frame is None:
            return f"print-variable {item.variable}"
        return f"print id={item.layer}"


class VariablesScreen(ListScreen):
    """The variables of the model, and the values of the frame."""

    view_name = "variables"
    pane_class = VariableList
