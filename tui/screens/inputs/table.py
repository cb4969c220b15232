"""The inputs of the model, one row each: all ways to give a value in sight, and whether the chosen one fits."""

from __future__ import annotations

from typing import ClassVar, Final

from textual import events
from textual.message import Message

from stepper.session.input_choices import InputChoices, InputSource, Load, Near, near_files, near_literals
from tui.paint.editing import EditingPane
from tui.paint.pane import Host
from tui.paint.rows import Row, clip, clip_head, padded, printable, width_of

WIDE: Final = 140
"""Cells from which on an input has one line."""
_RADIO: Final = sum(len(source) + 6 for source in InputSource)


class InputsTable(EditingPane):
    """A row, or two where there is less room, an input."""

    DEFAULT_CSS = "InputsTable { height: auto; max-height: 60%; margin-top: 1; }"
    kind: ClassVar[str] = "inputs"
    title = "inputs"
    note = "nothing is invented: choose for each "
    help_text: ClassVar[str] = (
        "Each input of the model, and where its value comes from: a file (.npy, or .npz:KEY), a literal as in JSON,\n"
        "random numbers of a seed, zeros or ones. Right and Left choose, Enter types, F5 runs when all are ready."
    )

    class CursorMoved(Message):
        """Another input, another choice, or another text."""

    def __init__(self, host: Host, *, id: str | None = None) -> None:
        super().__init__(host, id=id)
        self.at = 0
        self.near: list[Near] = []

    @property
    def choices(self) -> InputChoices | None:
        """The choices for the inputs."""
        return self.host.inputs

    @property
    def tall(self) -> int:
        """How many lines an input has; a free one below it where there is room for all."""
        choices = self.choices
        count = len(choices.choices) if choices is not None else 0
        lines = 1 if self.is_wide else 2
        return lines + (count * (lines + 1) + 3 <= self.app.size.height * 6 // 10 - 4)

    @property
    def is_wide(self) -> bool:
        """True if an input has one line."""
        return self.size.width >= WIDE

    # --- what keys do --------------------------------------------------------------------------------------------

    def on_mount(self) -> None:
        """Look what is near."""
        self._tell()

    def turn(self, direction: str) -> None:
        """Another input, or another source for it."""
        choices = self.choices
        if choices is None or not choices.choices:
            return
        if direction in ("down", "up"):
            self.at = max(0, min(self.at + (1 if direction == "down" else -1), len(choices.choices) - 1))
        else:
            choices.turn(self.at, 1 if direction == "right" else -1)
        self._tell()

    def edit(self) -> None:
        """Type what the chosen source needs; of an input without a source, a literal or a path."""
        choices = self.choices
        if choices is None or not choices.choices:
            return
        choice = choices.choices[self.at]
        if choice.source is None:
            choice.source = InputSource.FILE
        if choice.source.is_typed:
            beside = choices.beside.get(self.at, "") if choice.source is InputSource.FILE else ""
            self.begin(choice.text or beside)
        self._tell()

    def typed(self, text: str) -> None:
        """Look what is near."""
        choices = self.choices
        if choices is None:
            return
        choice = choices.choices[self.at]
        if choice.source is InputSource.FILE:
            self.near = near_files(choice.parameter, text, choices.opening.model.path.parent)
        elif choice.source is InputSource.LITERAL:
            self.near = near_literals(choice.parameter, text)
        self._tell()

    def complete(self, text: str, by: int) -> str:
        """Return the next one of those that are near."""
        specs = [near.spec for near in self.near]
        if not specs:
            return text
        return specs[(specs.index(text) + by) % len(specs)] if text in specs else specs[0 if by > 0 else -1]

    def kept(self, text: str) -> None:
        """The text counts."""
        if self.choices is not None:
            self.choices.type(self.at, text.strip())
        self._tell()

    def left(self) -> None:
        """As it was before."""
        self._tell()

    def _tell(self) -> None:
        choices = self.choices
        if choices is not None and choices.choices and self.editor is None:
            choice, outcome = choices.choices[self.at], choices.outcome(self.at)
            self.near = []
            if choice.source in (None, InputSource.FILE) and outcome.array is None and outcome.loading is None:
                self.near = near_files(choice.parameter, choice.text, choices.opening.model.path.parent)
            elif choice.source is InputSource.LITERAL and outcome.array is None and choice.text:
                self.near = near_literals(choice.parameter, choice.text)
        self._keep_in_sight()
        self.changed()
        self.post_message(self.CursorMoved())

    def _keep_in_sight(self) -> None:
        tall = self.tall
        first, room = self.at * tall, self.size.height - len(self.heading(self.size.width))
        self.top = max(0, min(max(self.top, first + tall - room), first))

    def on_click(self, event: events.Click) -> None:
        """A click chooses the input, and the source that it hits."""
        choices, row = self.choices, self.row_at(event.y)
        if choices is None or row is None:
            return
        at, line = divmod(row, self.tall)
        if at >= len(choices.choices):
            return
        self.at, self.editor = at, None
        begin = self._radio_begins() if self.is_wide else 4
        if line == (0 if self.is_wide else 1):
            place = event.x - 1 - begin
            for source in InputSource:
                if 0 <= place < len(source) + 4:
                    choices.choices[at].source = source
                place -= len(source) + 6
        self._tell()
        if event.chain == 2:
            self.edit()

    # --- drawing -------------------------------------------------------------------------------------------------

    def heading(self, width: int) -> list[Row]:
        """Return the columns' names below the heading."""
        runs = self.host.state.view is not None
        self.note = "F5 begins another run on what is chosen " if runs else type(self).note
        rows = super().heading(width)
        if width >= WIDE:
            names = self._names()
            row: Row = [
                ("   " + padded("input", names), "dim"),
                (padded("type", 18), "dim"),
                (padded("from", _RADIO), "dim"),
            ]
            row += [(padded("value or file", self._room(width)), "dim"), (padded("shape", 14), "dim"), ("ready", "dim")]
            rows += [row, [(" " + "─" * (width - 2), "ghost")]]
        return rows

    def _names(self) -> int:
        choices = self.choices
        longest = max((len(one.parameter.name) for one in choices.choices), default=8) if choices is not None else 8
        return min(longest, 18) + 2

    def _radio_begins(self) -> int:
        return 3 + self._names() + 18

    def _room(self, width: int) -> int:
        return max(width - 3 - self._names() - 18 - _RADIO - 14 - 20, 12)

    def rows(self, width: int) -> list[Row]:
        """Return all inputs."""
        choices = self.choices
        if choices is None or not choices.choices:
            return [[("  the model has no inputs", "dim")]]
        rows: list[Row] = []
        for position in range(len(choices.choices)):
            lines = self._rows_of(choices, position, width)
            rows += [*lines, *([[]] * (self.tall - len(lines)))]
        return rows

    def _rows_of(self, choices: InputChoices, position: int, width: int) -> list[Row]:
        on = position == self.at
        under = " stripe" if on else ""
        choice, outcome = choices.choices[position], choices.outcome(position)
        names = self._names()
        head: Row = [
            ("▸" if on else " ", f"accent{under}"),
            (f"  {padded(clip(printable(choice.parameter.name), names - 1), names)}", f"strong{under}"),
            (padded(choices.type_text(position), 18), f"dim{under}"),
        ]
        shape = "–" if outcome.array is None else "×".join(map(str, outcome.array.shape)) or "[]"
        tail: Row = [(padded(shape, 14), f"{'faint' if outcome.array is None else ''}{under}".strip())]
        tail += self._ready(choices, position, under)
        if width >= WIDE:
            row = [
                *head,
                *self._radio(choice.source, under),
                *self._value(choices, position, self._room(width), under),
                *tail,
            ]
            return [_filled(row, width, under)]
        value = self._value(choices, position, max(width - 4 - _RADIO, 8), under)
        second: Row = [("    ", under.strip()), *self._radio(choice.source, under), *value]
        return [_filled([*head, *tail], width, under), _filled(second, width, under)]

    def _radio(self, chosen: InputSource | None, under: str) -> Row:
        row: Row = []
        for source in InputSource:
            on = source is chosen
            row.append((f"{'(•)' if on else '( )'} {source}  ", f"{'accent' if on else 'dim'}{under}"))
        return row

    def _value(self, choices: InputChoices, position: int, room: int, under: str) -> Row:
        choice = choices.choices[position]
        proposed = choices.proposed.get(position)
        if proposed is not None:
            return [(padded(clip_head(printable(proposed), room - 1), room), f"dim{under}")]
        if self.editor is not None and position == self.at:
            return [*self.edited(room - 1, under.strip()), (" ", under.strip())]
        if choice.source is InputSource.RANDOM:
            return [(padded(f"seed {choice.text}", room), under.strip())]
        text = printable(choice.text)
        if choice.source is None or not choice.source.is_typed or not text:
            return [(padded("–", room), f"faint{under}")]
        shown = clip_head(text, room - 1) if choice.source is InputSource.FILE else clip(text, room - 1)
        return [(padded(shown, room), under.strip())]

    def _ready(self, choices: InputChoices, position: int, under: str) -> Row:
        outcome, choice = choices.outcome(position), choices.choices[position]
        if outcome.array is not None:
            return [("✓ yes", under.strip())]
        if position in choices.proposed:
            return [("… F5 takes it", f"accent{under}")]
        if choice.source is None:
            return [("… choose", f"edit{under}")]
        if outcome.loading is not None:
            return [(f"… {loading_text(outcome.loading)}", f"edit{under}")]
        room = max(
            self.size.width - 1 - (3 + self._names() + 18 + 14) - (_RADIO + self._room(self.size.width)) * self.is_wide,
            8,
        )
        return [(clip(f"✗ {printable(outcome.problem)}", room), f"bad{under}")]


def loading_text(load: Load) -> str:
    """Return how far a value is made."""
    part = load.reading.part
    return "loading" if part is None else f"loading {part:.0%}"


def _filled(row: Row, width: int, under: str) -> Row:
    return [*row, (" " * max(width - width_of(row), 0), under.strip())]
