"""The operations of the body beside the reference: how far each is, what of it is made here, on a log scale."""

from __future__ import annotations

import math
import textwrap
from typing import ClassVar, Final

from textual import events

from stepper.compare.stops import ValueDifference
from stepper.tensors.number_text import fitted
from tui.paint.names import operation_names
from tui.paint.pane import Host, Pane
from tui.paint.rows import Row, clip, padded, printable
from tui.screens.lists.topic import example_rows
from tui.state import State
from tui.theme import GLYPHS

_LOWEST: Final = -8
"""The exponent of ten at the left end of the scale."""


_REFERENCES: Final = (
    (":reference other.xml", "another model, such as the same network before a transformation; .onnx, .tflite, too"),
    (":reference openvino", "what OpenVINO computes with the same inputs, where it is installed"),
    (":reference run.sqlite", "a recorded run: stepper run MODEL --trace run.sqlite"),
    (":reference values.npz", "values of another program, by name and iteration: h_next@7, h_next@*"),
    (":A before", "the iteration before, of this run, side by side; = goes round, A 4 is iteration 4"),
    (":set h = 0", "after an edit, the run as it was without it"),
    (":tolerance 1e-4 1e-6", "how far values may be from the reference, relative and absolute"),
)


class OperationDifferences(Pane):
    """A row an operation that the reference has a value of."""

    DEFAULT_CSS = "OperationDifferences { height: 1fr; width: 1fr; }"
    kind: ClassVar[str] = "differences"
    title = "op by op"
    help_text: ClassVar[str] = (
        "Each operation's largest difference from the reference. ━ is made in this operation: it stays when the\n"
        "operation runs on the reference's own inputs. ╌ is carried in. │ is the tolerance; ≠ is above it. x goes to\n"
        "the next one above, X back;\n"
        "v shows those alone that differ at all."
    )

    def __init__(self, host: Host, *, id: str | None = None) -> None:
        super().__init__(host, id=id)
        self._all_shown = True

    def look_on(self, _direction: int) -> None:
        """All operations, or those alone that differ at all."""
        self._all_shown = not self._all_shown
        self.update(self.state)

    def on_resize(self, _event: events.Resize) -> None:
        """The cursor stays in sight."""
        self.update(self.state)

    def update(self, state: State) -> None:
        """The cursor stays in sight."""
        self.state = state
        self._titles()
        shown = self._shown()
        rows = [row for row, one in enumerate(shown) if one.index == state.cursor]
        room = self.size.height - len(self.heading(self.size.width))
        if rows and room > 0 and not self.top <= rows[0] < self.top + room:
            self.top = max(0, min(rows[0] - room * 2 // 3, len(shown) - room))
        self.top = max(0, min(self.top, len(shown) - 1))
        self.changed()

    def _titles(self) -> None:
        comparison, iteration = self.state.comparison, self.state.iteration
        where = "op by op" if iteration is None or self.state.depth == 0 else f"iteration {iteration}, op by op"
        self.title = where
        if comparison is None:
            self.note = ""
            return
        count = len(comparison.operations)
        self.note = f"{len(comparison.above)} of {count} above tolerance " if count else ""

    def _shown(self) -> list[ValueDifference]:
        comparison = self.state.comparison
        found = [] if comparison is None else list(comparison.operations.values())
        return found if self._all_shown else [one for one in found if one.measure is not None]

    def heading(self, width: int) -> list[Row]:
        """Return the scale below the heading."""
        rows = super().heading(width)
        if not self._shown():
            return rows
        name, cells = _widths(width)
        low, high = self._scale()
        marks = [" "] * (cells + 6)
        for exponent in range(low, high + 1, 2):
            place = _cell(10.0**exponent, low, high, cells)
            for offset, letter in enumerate(f"1e{exponent}"):
                if place + offset < len(marks):
                    marks[place + offset] = letter
        row: Row = [("   " + padded("op", name), "dim"), ("difference".rjust(11), "dim")]
        if width >= 70:
            row.append(("made here".rjust(11), "dim"))
        return [*rows, [*row, ("   " + "".join(marks[: cells + 4]), "dim")]]

    def _scale(self) -> tuple[int, int]:
        largest = max((one.distance for one in self._shown() if math.isfinite(one.distance)), default=0.0)
        high = max(math.ceil(math.log10(largest)) if largest > 0 else -2, -2)
        return _LOWEST, high + (high - _LOWEST) % 2

    def count(self, width: int) -> int:
        """Return a row an operation, or a sentence."""
        return len(self._shown()) or len(self._nothing(width))

    def row(self, index: int, width: int) -> Row:
        """Return one operation."""
        shown = self._shown()
        return self._row(shown[index], width) if shown else self._nothing(width)[index]

    def _nothing(self, width: int) -> list[Row]:
        """Return why there is no operation, and without a reference how one is named."""
        why: list[Row] = [
            [("  ", ""), (line, "dim")] for line in textwrap.wrap(self._why_nothing(), max(width - 4, 20))
        ]
        missing = self.state.comparison is None
        return [*why, [], *example_rows("what a run can be held against", _REFERENCES, width)] if missing else why

    def _why_nothing(self) -> str:
        comparison = self.state.comparison
        if comparison is None:
            return "nothing is compared yet; type one of these, or begin with --reference"
        if comparison.problem:
            return printable(comparison.problem)
        if comparison.operations:
            return "all that has run here is the same, bit for bit"
        frame = self.state.frame
        if frame is None:
            parts = comparison.first is not None and comparison.first.difference is not None
            return "the run has ended" + ("; X goes to where it parts from the reference" if parts else "")
        if frame.moment < 0:
            return "no operation has run here yet; n runs the first"
        return "the reference has no value of what has run here yet"

    def _row(self, one: ValueDifference, width: int) -> Row:
        name_width, cells = _widths(width)
        frame = self.state.frame
        name = "" if frame is None else operation_names(frame.program)[one.index]
        at = one.index == self.state.cursor
        text = "now" if at else "" if one.is_above else "dim"
        bad = "now" if at else "bad"
        row: Row = [
            (GLYPHS["now"] if at else " ", "now" if at else "accent"),
            (f"{GLYPHS['diff']} " if one.is_above else "  ", bad),
            (padded(clip(name, name_width - 1), name_width), text),
            (_distance(one.distance).rjust(11), text),
        ]
        if width >= 70:
            row.append((("" if one.made_here is None else _distance(one.made_here)).rjust(11), text))
        line = "now" if at else "bar" if one.is_above else "faint"
        row += [("   ", text), (self._bar(one, cells), line)]
        word = "shapes differ" if one.measure is not None and one.measure.problem else str(one.standing)
        return [*row, (f"  {padded(word, 11)}", "now" if at else "bad" if one.is_born else "dim")]

    def _bar(self, one: ValueDifference, cells: int) -> str:
        low, high = self._scale()
        whole = 0 if one.distance <= 0 else max(_cell(one.distance, low, high, cells), 1)
        made = one.made_here
        own = whole if made is None else 0 if made <= 0 else min(max(_cell(made, low, high, cells), 1), whole)
        line = ["━"] * own + ["╌"] * (whole - own) + [" "] * (cells - whole)
        allowed = one.allowed
        place = _cell(allowed, low, high, cells)
        if allowed > 0 and place < cells and line[place] == " ":
            line[place] = "│"
        return "".join(line)

    def on_click(self, event: events.Click) -> None:
        """A click selects, a second one opens."""
        row, shown = self.row_at(event.y), self._shown()
        if row is not None and row < len(shown):
            self.post_line(f"select {shown[row].index}")
            if event.chain == 2:
                self.post_line("beside-reference")


def _distance(value: float) -> str:
    return "0" if value == 0 else fitted(value, 8)


def _widths(width: int) -> tuple[int, int]:
    """Return cells of the name and of the bar."""
    rest = width - 3 - 11 - (11 if width >= 70 else 0) - 3 - 13
    cells = max(min(rest * 55 // 100, 36), 8)
    return max(rest - cells, 8), cells


def _cell(value: float, low: int, high: int, cells: int) -> int:
    if value <= 0:
        return 0
    exponent = math.log10(value) if math.isfinite(value) else high
    return max(0, min(int((exponent - low) / (high - low) * cells), cells))
