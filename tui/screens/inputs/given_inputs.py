"""The inputs that a run began with, where nothing is to be chosen."""

from __future__ import annotations

from typing import ClassVar

from stepper import element_types
from stepper.ops.axes import shape_text
from stepper.plain_values import storable
from tui.paint.pane import Pane
from tui.paint.rows import Row, clip, elements, padded, printable, width_of


class GivenInputs(Pane):
    """Names, types, elements."""

    DEFAULT_CSS = "GivenInputs { height: 1fr; margin-top: 1; }"
    kind: ClassVar[str] = "card"
    title = "inputs"
    note = "given when the run began "
    help_text: ClassVar[str] = "The inputs of a session, or of a program that has opened the screen, are as they are."

    def rows(self, width: int) -> list[Row]:
        """One an input."""
        given = self.host.driver.given
        room = min(max((len(name) for name, _ in given), default=0), 24)
        rows: list[Row] = []
        for name, value in given:
            kind = f"{element_types.name_of(value.dtype)}{shape_text(value.shape)}"
            head: Row = [(f"  {padded(clip(printable(name), room), room)}  ", "strong"), (f"{kind:<18}  ", "dim")]
            rows.append([*head, (elements(storable(value), width - width_of(head) - 1), "bar")])
        return rows or [[("  the model has no inputs", "dim")]]
