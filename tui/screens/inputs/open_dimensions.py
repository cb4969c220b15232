"""The dimensions that the file leaves open: a letter each, its size, and who says so. Enter types a size."""

from __future__ import annotations

from typing import ClassVar

from textual import events

from stepper.errors import UsageError
from stepper.session.input_choices import InputChoices, OpenDimension, bounds
from tui.paint.editing import EditingPane
from tui.paint.pane import Host
from tui.paint.rows import Row, clip, padded, printable


class OpenDimensions(EditingPane):
    """A row a letter."""

    kind: ClassVar[str] = "dimensions"
    title = "open dimensions"
    help_text: ClassVar[str] = (
        "Dimensions that the file leaves open. A file or a literal brings its size along; for random, zeros and ones\n"
        "it is to be typed: Enter, or dim LETTER SIZE at the prompt, dim * SIZE for all that have none."
    )

    def __init__(self, host: Host, *, id: str | None = None) -> None:
        super().__init__(host, id=id)
        self.at = 0

    @property
    def choices(self) -> InputChoices | None:
        """The choices for the inputs."""
        return self.host.inputs

    def turn(self, direction: str) -> None:
        """Another letter."""
        choices = self.choices
        if choices is not None and choices.dimensions and direction in ("down", "up"):
            self.at = max(0, min(self.at + (1 if direction == "down" else -1), len(choices.dimensions) - 1))
            self.top = max(0, min(self.top, self.at), self.at - max(self.size.height - 3, 0))
            self.changed()

    def edit(self) -> None:
        """Type a size."""
        choices = self.choices
        if choices is not None and choices.dimensions:
            size = choices.dimensions[self.at].size
            self.begin("" if size is None else str(size))
            self.changed()

    def kept(self, text: str) -> None:
        """The size counts."""
        choices = self.choices
        if choices is None:
            return
        self.post_line(f"dim {choices.dimensions[self.at].letter} {text.strip()}")

    def rows(self, width: int) -> list[Row]:
        """Return all letters."""
        choices = self.choices
        if choices is None or not choices.dimensions:
            return [[("  none: every shape is settled", "dim")]]
        self.note = "Enter types " if self.has_focus else "Tab, Enter types "
        return [self._row(choices, place, one, width) for place, one in enumerate(choices.dimensions)]

    def _row(self, choices: InputChoices, place: int, one: OpenDimension, width: int) -> Row:
        on = place == self.at and self.has_focus
        under = " stripe" if on else ""
        size, by = choices.size_of(one)
        name = printable(choices.choices[one.position].parameter.name)
        room = max(width - 27, 9)
        where = clip(
            f"{name}, axis {one.axis}" if len(name) + 8 < room else f"{clip(name, room - 4)}, {one.axis}", room
        )
        row: Row = [
            ("▸" if on else " ", f"accent{under}"),
            (f"  {one.letter:<3}", f"strong{under}"),
            (padded(where, room), f"dim{under}"),
        ]
        if on and self.editor is not None:
            return [*row, *self.edited(10)]
        shown = ("?", f"bad{under}") if size is None else (str(size), under.strip())
        return [
            *row,
            (padded(shown[0], 4 if len(shown[0]) < 5 else len(shown[0]), right=True), shown[1]),
            (f"  {by if size is not None else bounds(one)}", f"dim{under}"),
        ]

    def on_click(self, event: events.Click) -> None:
        """A click chooses, a second one types."""
        row = self.row_at(event.y)
        if row is not None and self.choices is not None and row < len(self.choices.dimensions):
            self.at = row
            self.changed()
            if event.chain == 2:
                self.edit()


def set_size(choices: InputChoices, text: str) -> None:
    """`LETTER SIZE`. UsageError for anything else."""
    letter, _, size = text.partition(" ")
    if not letter or not size.strip():
        raise UsageError("expected a letter and a size, such as dim T 8, or dim * 8 for all that have none")
    choices.set_size(letter, size.strip())
