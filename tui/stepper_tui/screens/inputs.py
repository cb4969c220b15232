"""The screen of inputs: what was chosen for each, and for dimensions; changed, tried, read from files."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Final

import numpy as np
from msgspec.structs import replace
from textual import events
from textual.app import ComposeResult
from textual.message import Message

from stepper.element_types import Array
from stepper.engine.inputs import file_of
from stepper.errors import UsageError
from stepper.ops.operands import form_text
from stepper.plain_values import storable
from stepper.session.input_choices import (
    InputChoices,
    InputSource,
    Load,
    Near,
    OpenDimension,
    bounds,
    near_files,
    near_literals,
)
from stepper.tensors.number_text import fitted
from stepper.tensors.planes import is_numeric, plane_of
from stepper.tensors.statistics import finish
from stepper.tensors.surveys import CellStatistic, edges, in_cells
from stepper.tensors.tensor_pictures import scale_of, shades
from stepper_tui.paint.painter import Horizontal
from stepper_tui.paint.pane import Pane
from stepper_tui.paint.rows import Row, clip, clip_head, elements, padded, printable, width_of
from stepper_tui.screens.base import DebugScreen, TopBar
from stepper_tui.screens.value.inspected import AT_ONCE
from stepper_tui.theme import key_text

if TYPE_CHECKING:
    from stepper_tui.app import StepperApp

WIDE = 140
"""Cells from which on an input has one line."""
_RADIO = sum(len(source) + 6 for source in InputSource)


class EditingPane(Pane):
    """A subclass begins with `begin(text)`; `typed`, `complete` and `kept` are called then."""

    def __init__(self, host: StepperApp, *, id: str | None = None) -> None:
        super().__init__(host, id=id)
        self.editor: LineEditor | None = None

    @property
    def is_typing(self) -> bool:
        """True if a line is being typed."""
        return self.editor is not None

    def begin(self, text: str) -> None:
        """Type in place from now on."""
        self.editor = LineEditor(text)
        self.host.show_keys()
        self.typed(text)

    def typed(self, text: str) -> None:
        """The line has changed."""

    def complete(self, text: str, by: int) -> str:
        """Return a completion of the line; `by` is 1 or -1."""
        return text

    def kept(self, text: str) -> None:
        """The line is done."""

    def left(self) -> None:
        """The line is forgotten."""

    def on_key(self, event: events.Key) -> None:
        """Keys are for the line as long as one types."""
        editor = self.editor
        event.stop()
        event.prevent_default()
        if editor is None:  # typed before the end of the line was heeded, and so after it
            self._pass_on(event)
            return
        if event.key in ("tab", "down", "shift+tab", "up"):
            editor.put(self.complete(editor.text, 1 if event.key in ("tab", "down") else -1))
        elif event.key in ("enter", "escape"):
            self.editor = None
            self.host.show_keys()
            if event.key == "enter":
                self.kept(editor.text)
            else:
                self.left()
        elif editor.press(event):
            self.typed(editor.text)
        self.changed()

    def _pass_on(self, event: events.Key) -> None:
        """A key for the screen, or for what has got the focus by one before."""
        focused = self.screen.focused
        if focused is not None and focused is not self:
            focused.post_message(events.Key(event.key, event.character))
        else:
            self.host.heed(event)

    def on_paste(self, event: events.Paste) -> None:
        """Pasted text goes into the line."""
        if self.editor is not None:
            event.stop()
            self.editor.insert(event.text)
            self.typed(self.editor.text)
            self.changed()

    def edited(self, width: int, tone: str = "") -> Row:
        """Return the line with its cursor, the end of it where it is too long."""
        editor = self.editor
        assert editor is not None
        begin = max(editor.place - width + 2, 0)
        before, after = editor.text[begin : editor.place], editor.text[editor.place :]
        here = after[:1] or " "
        rest = after[1:][: max(width - len(before) - 1, 0)]
        blank = " " * max(width - len(before) - 1 - len(rest), 0)
        return [(before, tone), (here, "now"), (rest, tone), (blank, tone)]


MOST: int = 100_000
"""Characters of a line."""


class LineEditor:
    """A text and the place in it at which one types."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.place = len(text)

    def put(self, text: str) -> None:
        """Another text."""
        self.text, self.place = text, len(text)

    def insert(self, text: str) -> None:
        """Type or paste."""
        clean = "".join(letter for letter in text if letter.isprintable())
        self.text = (self.text[: self.place] + clean + self.text[self.place :])[:MOST]
        self.place = min(self.place + len(clean), len(self.text))

    def press(self, event: events.Key) -> bool:
        """Heed a key; True if it was one for the line."""
        key = event.key
        if key == "backspace":
            self.text = self.text[: max(self.place - 1, 0)] + self.text[self.place :]
            self.place = max(self.place - 1, 0)
        elif key == "delete":
            self.text = self.text[: self.place] + self.text[self.place + 1 :]
        elif key in ("left", "right"):
            self.place = max(0, min(self.place + (1 if key == "right" else -1), len(self.text)))
        elif key in ("home", "end"):
            self.place = 0 if key == "home" else len(self.text)
        elif key == "ctrl+u":
            self.put("")
        elif event.character and event.is_printable:
            self.insert(event.character)
        else:
            return False
        return True


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

    def __init__(self, host: StepperApp, *, id: str | None = None) -> None:
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


class OpenDimensions(EditingPane):
    """A row a letter."""

    kind: ClassVar[str] = "dimensions"
    title = "open dimensions"
    help_text: ClassVar[str] = (
        "Dimensions that the file leaves open. A file or a literal brings its size along; for random, zeros and ones\n"
        "it is to be typed: Enter, or dim LETTER SIZE at the prompt, dim * SIZE for all that have none."
    )

    def __init__(self, host: StepperApp, *, id: str | None = None) -> None:
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


_WANTED: Final[Mapping[InputSource | None, str]] = {
    InputSource.FILE: "a path to a .npy, or FILE.npz:KEY",
    InputSource.RANDOM: "a seed: a whole number",
    InputSource.LITERAL: "as in JSON: 3, [1,2], [[1],[2]]",
}
"""By source: how it is typed."""


class InputDetail(Pane, can_focus=False):
    """Help for the input at the cursor."""

    DEFAULT_CSS = "InputDetail { width: 1fr; height: 1fr; }"
    kind: ClassVar[str] = "input"

    def __init__(self, host: StepperApp, *, id: str | None = None) -> None:
        super().__init__(host, id=id)
        self.at = 0
        self.near: list[Near] = []
        self.typing: str | None = None

    def put(self, at: int, near: list[Near], typing: str | None) -> None:
        """This input; `typing` is the line under way."""
        self.at, self.near, self.typing = at, near, typing
        self.changed()

    def heading(self, width: int) -> list[Row]:
        """Return the input's name."""
        choices = self.host.inputs
        if choices is not None and choices.choices:
            self.title = clip(printable(choices.choices[self.at].parameter.name), max(width // 2, 8))
            self.note = "Tab completes " if self.typing is not None else "y copies the command line "
        return super().heading(width)

    def rows(self, width: int) -> list[Row]:
        """Value, what is near, command line."""
        choices = self.host.inputs
        if choices is None or not choices.choices:
            return []
        rows = [*self._about(choices, width), *self._near_rows(width)]
        commands = _command_rows(choices, width)
        room = self.size.height - 1 - len(rows)
        if len(commands) < room:
            return [*rows, [], *commands]
        if len(commands) > room > 1:
            commands = [*commands[: room - 1], [("  … y copies all of it", "dim")]]
        return [*rows, *commands]

    def _about(self, choices: InputChoices, width: int) -> list[Row]:
        choice, outcome = choices.choices[self.at], choices.outcome(self.at)
        if self.typing is not None:
            return [[("  ", ""), (_WANTED.get(choice.source, _WANTED[InputSource.LITERAL]), "dim")]]
        if outcome.array is not None:
            row: Row = [("  ", ""), (form_text(outcome.array), "")]
            if outcome.span is not None:
                row.append((f"   {fitted(outcome.span[0])} to {fitted(outcome.span[1])}", "dim"))
            return [row]
        if outcome.loading is not None:
            total = outcome.loading.reading.total
            size = f" of {total / 2**20:,.0f} MB" if total else ""
            return [[("  ", ""), (f"{loading_text(outcome.loading)}{size}; Esc stops", "")]]
        proposed, arrows = choices.proposed.get(self.at), key_text("→ ←", ascii=self.look.ascii)
        if proposed is not None:
            row = [("  ", ""), (Path(file_of(proposed) or proposed).name, "strong"), (" beside the model fits", "")]
            return [[*row, (f": F5 runs on it, {arrows} choose something else", "dim")]]
        if choice.source is None:
            return [[("  ", ""), (f"{arrows} choose where its value comes from, Enter types a path", "dim")]]
        problem = outcome.problem
        if outcome.is_missing:
            return [[("  ", ""), (clip_head(printable(choice.text), width // 2), "bad"), (" is not there.", "dim")]]
        return [
            [("  ", ""), (line, "bad" if not place else "")]
            for place, line in enumerate(textwrap.wrap(printable(problem), width - 4)[:3])
        ]

    def _near_rows(self, width: int) -> list[Row]:
        if not self.near:
            return []
        rows: list[Row] = [[("  near by:", "dim")]]
        room = max(min(max(len(near.spec) for near in self.near) + 2, width - 44), 12)
        for near in self.near[:6]:
            here = near.spec == self.typing
            size = "" if not near.bytes else f"{near.bytes / 1024:,.0f} KB" if near.bytes >= 1024 else f"{near.bytes} B"
            tone = "" if near.fits else "edit" if near.swapped is not None else "dim"
            rows.append(
                [
                    (" ▸ " if here else "   ", "accent"),
                    (padded(clip_head(printable(near.spec), room - 1), room), "" if near.fits else "dim"),
                    (padded(near.type, 16), "dim"),
                    (padded(size, 9, right=True), "dim"),
                    (f"  {near.verdict}", tone),
                ]
            )
        return rows


def _command_rows(choices: InputChoices, width: int) -> list[Row]:
    """Return the same on the command line, wrapped."""
    options = choices.command_line()
    if not options:
        return []
    lines: list[str] = []
    for option in options:
        if lines and len(lines[-1]) + len(option) + 3 <= width - 4:
            lines[-1] += f" {option}"
        else:
            lines.append(option)
    rows: list[Row] = [[("  the same on the command line", "dim")]]
    for place, line in enumerate(lines):
        more = " \\" if place < len(lines) - 1 else ""
        rows.append([("  ", ""), (clip(printable(line), width - 6), ""), (more, "dim")])
    return rows


class GivenInputs(Pane):
    """Names, types, elements; where there is room their colours, a cell being the mean of what it stands for."""

    DEFAULT_CSS = "GivenInputs { height: 1fr; margin-top: 1; }"
    kind: ClassVar[str] = "card"
    title = "inputs"
    note = "given when the run began "
    help_text: ClassVar[str] = "The inputs of a session, or of a program that has opened the screen, are as they are."

    def rows(self, width: int) -> list[Row]:
        """Return one an input."""
        given = self.host.driver.given
        room = min(max((len(name) for name, _ in given), default=0), 24)
        rows: list[Row] = []
        lines = min((self.size.height - 2) // max(len(given), 1) - 2, _TALLEST)
        for name, value in given:
            kind = form_text(value)
            head: Row = [(f"  {padded(clip(printable(name), room), room)}  ", "strong"), (f"{kind:<18}  ", "dim")]
            rows.append([*head, (elements(storable(value), width - width_of(head) - 1), "bar")])
            picture = self._picture(value, width - room - 6, lines)
            rows += [[(" " * (room + 4), ""), *row] for row in picture]
            rows += [[]] if picture else []
        return rows or [[("  the model has no inputs", "dim")]]

    def _picture(self, value: Array, width: int, lines: int) -> list[Row]:
        """Return the colours of a value in at most so many lines; none of a single number, or of very many."""
        array = np.asarray(value)
        if lines < 1 or not is_numeric(array.dtype) or not 1 < array.size <= AT_ONCE:
            return []
        plane = plane_of(array.shape)
        rows, columns = edges(0, plane.height, lines), edges(0, plane.width, max(width // _CELL, 1))
        tiles = finish(in_cells(partial(plane.block, array), rows, columns, CellStatistic.MEAN))
        scale = scale_of(tiles)
        is_whole = _NUMBERED * plane.width <= width and plane.height == len(tiles)
        wide = _NUMBERED if is_whole else _CELL
        pairs = zip(tiles.tolist(), shades(tiles, scale).tolist(), strict=True)
        return [
            [
                self.palette.tile([level], wide, is_signed=scale.signed, text=f"{fitted(one, 6):>7} " * is_whole)
                for one, level in zip(numbers, levels, strict=True)
            ]
            for numbers, levels in pairs
        ]


_TALLEST = 24
"""Lines of the colours of an input."""
_CELL = 2
_NUMBERED = 8
"""Cells of an element with its number."""
STARTS = "the run starts when all are"
_OFTEN = 0.1
"""Seconds from one look at what is loading to the next."""


class InputsScreen(DebugScreen):
    """All inputs above; the open dimensions and the input at the cursor below."""

    DEFAULT_CSS = """
    InputsScreen #below { height: 1fr; margin-top: 1; border-top: solid $foreground 14%; }
    InputsScreen.-ascii #below { border-top: ascii $foreground 14%; }
    InputsScreen #dimensions { width: 46; height: 100%; }
    InputsScreen #detail { border-left: solid $foreground 14%; }
    InputsScreen.-ascii #detail { border-left: ascii $foreground 14%; }
    InputsScreen.-narrow #dimensions { width: 44; }
    InputsScreen.-tiny #below { layout: vertical; margin-top: 0; }
    InputsScreen.-tiny #dimensions { width: 1fr; height: auto; max-height: 5; }
    InputsScreen.-tiny #detail { border-left: none; }
    InputsScreen #dimensions.hidden { display: none; }
    """
    view_name = "inputs"

    def body(self) -> ComposeResult:
        """Table, dimensions, detail; the values alone where nothing can be chosen."""
        if self.host.to_choose() is None:
            yield GivenInputs(self.host, id="inputs")
            return
        yield InputsTable(self.host, id="inputs")
        with Horizontal(id="below"):
            yield OpenDimensions(self.host, id="dimensions")
            yield InputDetail(self.host, id="detail")

    def on_mount(self) -> None:
        """Show what was given."""
        super().on_mount()
        choices = self.host.inputs
        if choices is not None:
            self.query_one(OpenDimensions).set_class(not choices.dimensions, "hidden")
            self.chosen()
            self.set_interval(_OFTEN, self._look)

    def put_answer(self, text: str, tone: str) -> None:
        """Where there is no other answer, how far it is."""
        super().put_answer(text or self._how_far(), tone)

    def _look(self) -> None:
        """Show how far large values are."""
        choices = self.host.inputs
        if choices is not None and choices.loads:
            self.query_one(InputsTable).changed()
            self.query_one(InputDetail).changed()

    def close_card(self) -> bool:
        """Stop the making of large values."""
        choices = self.host.inputs
        if choices is None or not choices.stop_loading():
            return super().close_card()
        self.refresh_choices()
        return True

    def refresh_choices(self) -> None:
        """Something was chosen that the table has not asked for, or has come."""
        self.query_one(InputsTable).changed()
        self.chosen()

    def on_inputs_table_cursor_moved(self) -> None:
        """Another input, or another choice for it."""
        self.chosen()

    def chosen(self) -> None:
        """Something was chosen: say how far it is."""
        table = self.query_one(InputsTable)
        typing = None if table.editor is None else table.editor.text
        self.query_one(InputDetail).put(table.at, table.near, typing)
        self.query_one(OpenDimensions).changed()
        self.show_keys()
        choices = self.host.inputs
        if choices is None:
            return
        count, ready = len(choices.choices), choices.ready
        if self.host.state.view is None:
            self.host.state = replace(self.host.state, opening=f"{ready} of {count} ready")
            self.query_one("#top", TopBar).update(self.host.state)
        self.put_answer("", "dim")

    def _how_far(self) -> str:
        choices = self.host.inputs
        if choices is None:
            return ""
        count, ready, loading = len(choices.choices), choices.ready, len(choices.loads)
        if ready + len(choices.proposed) == count and choices.proposed:
            return f"{count} input{'s' if count != 1 else ''}; F5 runs on what is proposed"
        rest = f"{loading} loading, Esc stops that" if loading else "F5 runs" if ready == count else STARTS
        return f"{count} input{'s' if count != 1 else ''}, {ready} ready; {rest}"
