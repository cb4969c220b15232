"""The value that is looked at: its numbers, colours, differences or bits; beside it the other of these."""

from __future__ import annotations

import math
from typing import ClassVar, Final

import numpy as np
from textual import events

from stepper.ops.operands import form_text
from stepper.tensors.number_text import fitted
from stepper.tensors.planes import readable
from tui.paint.links import key_words
from tui.paint.pane import Host, Pane
from tui.paint.rows import Cell, Row, padded_row, printable, spread, width_of
from tui.screens.value.heat import HeatGrid
from tui.screens.value.inspected import VIEWS, Inspected, PictureSide
from tui.screens.value.numbers import NumberGrid
from tui.theme import GLYPHS

_LEAST_NUMBERS: Final = 4
"""Rows that must be left below the colours for numbers to stand there."""
_GAP: Final = 3
"""Cells between pictures that stand beside each other."""
_UNITS: Final = ("B", "KB", "MB", "GB")


class TensorPane(Pane):
    """One of the views of a value; `grid` draws it."""

    DEFAULT_CSS = "TensorPane { height: 1fr; min-height: 3; }"
    kind: ClassVar[str] = "tensor"
    help_text: ClassVar[str] = (
        "A value: two of its axes (↓ and → in the heading) as colours or numbers, of every other axis one index.\n"
        "Colours: the ground is zero; where a cell stands for several elements, their mean, or (V) the largest\n"
        "magnitude or rms of them; a NaN or Inf always shows. Numbers: bold are those that the last movement changed.\n"
        "[0,:,3:8] with `slice`.\n"
        "The same value stays while the run moves; J and K take the operation below or above."
    )

    def __init__(self, host: Host, inspected: Inspected, *, id: str | None = None) -> None:
        super().__init__(host, id=id)
        self.inspected = inspected
        self.numbers = NumberGrid(inspected)
        self.heat = HeatGrid(inspected, self)
        self.stacked = tuple(
            HeatGrid(inspected, self, side) for side in (PictureSide.A, PictureSide.NOW, PictureSide.DIFFERENCE)
        )
        self._places: list[tuple[int, int, HeatGrid]] = []
        self._axes: list[tuple[int, int, int]] = []
        self._below = 0

    # --- what is drawn -------------------------------------------------------------------------------------------

    @property
    def grid(self) -> NumberGrid | HeatGrid:
        """The grid that draws the view; beside A that of now."""
        if self.inspected.view != "colours" or not self.inspected.is_numeric():
            return self.numbers
        return self.stacked[1] if self._has_three or self._has_row_of_three else self.heat

    def wanted(self, most: int) -> int | None:
        """Return the lines that the colours of a small value take; None of another view.

        The numbers of a long row count only as far as all of it takes at most so many.
        """
        seen = self.inspected
        if seen.view != "colours" or not seen.is_numeric():
            return None
        if self._has_row_of_three:
            return 3 + self.heat.wanted(self.heat.widest)
        lines = 2 + self.heat.wanted(self.size.width)
        return lines if lines <= most else 2 + self.heat.wanted(self.size.width, has_numbers=False)

    @property
    def _has_three(self) -> bool:
        """True if A, now and the difference stand below one another."""
        seen = self.inspected
        return seen.is_beside_a and seen.view == "colours" and seen.is_numeric()

    @property
    def _has_row_of_three(self) -> bool:
        """True if a small value stands beside that of the iteration before and the difference, with their numbers."""
        seen = self.inspected
        if seen.view != "colours" or seen.is_beside_a or not seen.is_few or not seen.is_numeric() or seen.zoom:
            return False
        if self.look.plain or 3 * (self.heat.widest + _GAP) > self.size.width:
            return False
        found = seen.before()
        return found.done and not found.problem

    def heading(self, width: int) -> list[Row]:
        """Return name and iteration, the axes, and the views; below it what it is."""
        self.count(width)  # the rows choose the format that the heading names
        seen = self.inspected
        shown = seen.shown
        mark: Cell = (GLYPHS["focus"] if self.has_focus else " ", "accent")
        iteration = "" if shown.iteration is None else f"@{shown.iteration}"
        left: Row = [mark, (printable(f"{shown.name}{iteration}"), "title-on" if self.has_focus else "title")]
        left += [("   ", ""), *self._axes_row(width_of(left) + 3)]
        right: Row = self._tabs() if width >= width_of(left) + 46 else [(self._tab_name(), ""), ("  v", "key")]
        return [spread(left, right, width), self._facts(width)]

    def _axes_row(self, begin: int) -> Row:
        """Return the shape with what is shown of each axis; where each stands is kept for the mouse."""
        plane = self.inspected.plane
        self._axes = []
        if self.inspected.shown.array is None:
            return []
        row: Row = [("[", "dim")]
        at = begin + 1
        for axis, size in enumerate(plane.shape):
            if axis in (plane.rows, plane.columns):
                arrow = "↓" if axis == plane.rows else "→"
                text = f"{arrow} {self._part(axis, size)}"
            else:
                text = str(plane.index[axis])
            picked = axis == self.inspected.axis and len(plane.shape) > 2
            row.append((text, "cursor strong" if picked else ""))
            self._axes.append((at, at + len(text), axis))
            row.append((", " if axis < len(plane.shape) - 1 else "", "dim"))
            at += len(text) + 2
        return [*row, ("]", "dim")]

    def _part(self, axis: int, size: int) -> str:
        part = self.inspected.plane.parts[axis]
        if part == slice(None):
            return str(size)
        text = ":".join("" if bound is None else str(bound) for bound in (part.start, part.stop))
        return f"{text}{'' if part.step in (None, 1) else f':{part.step}'} of {size}"

    def _tab_name(self) -> str:
        return "difference" if self.inspected.against and self.inspected.view == "numbers" else self.inspected.view

    def _tabs(self) -> Row:
        seen = self.inspected
        row: Row = []
        for name in ("colours", "numbers", "difference", "bits"):
            on = name == self._tab_name() or (name == "difference" and seen.against)
            row.append((f"{name}  ", "strong" if on else "dim"))
        return [*row, ("v", "key")]

    def _facts(self, width: int) -> Row:
        seen = self.inspected
        shown, array = seen.shown, seen.shown.array
        if array is None:
            return [(f"  {printable(shown.why)}", "dim")]
        size = float(array.nbytes)
        unit = 0
        while size >= 1024 and unit < len(_UNITS) - 1:
            size, unit = size / 1024, unit + 1
        amount = f"{size:.0f} {_UNITS[unit]}" if size >= 10 or unit == 0 else f"{size:.1f} {_UNITS[unit]}"
        text = f"{form_text(array)}   {amount}"
        left: Row = [(f"  {printable(shown.role)}   ", "dim"), (text, "")]
        if shown.others > 1:
            left += [("   i", "key"), (" inputs", "dim")]
        right: Row = []
        if shown.is_old:
            right = [(f"of the iteration before: {printable(shown.why)} ", "edit")]
        elif seen.against:
            right = [(self._against(), "accent")]
        elif self._has_three:
            right = self._of_element()
        elif isinstance(self.grid, NumberGrid) and width >= 100:
            right = [(f"{self.grid.format.note}  ", "note"), ("+ -", "key"), (" digits ", "dim")]
        return spread(left, right, width)

    def _against(self) -> str:
        found = self.inspected.before()
        if found.problem:
            return f"no difference: {found.problem} "
        return f"minus {self.inspected.other_name} "

    def _of_element(self) -> Row:
        """Return the element under the cursor in A, now, and the difference."""
        seen, found = self.inspected, self.inspected.before()
        element = seen.element()
        if found.answer is None or element is None:
            return []
        theirs = found.answer[tuple(slice(at, at + 1) for at in seen.cursor)].reshape(1)
        if element.dtype == theirs.dtype == np.bool_:
            words = ["true" if one[0] else "false" for one in (theirs, element)]
            return [(words[0], "a"), (" → ", "dim"), (words[1], "strong"), (" ", "")]
        a, now = (float(readable(one)[0]) for one in (theirs, element))
        gap = f"   {now - a:+.4g} " if math.isfinite(a) and math.isfinite(now) else " "
        return [(fitted(a), "a"), (" → ", "dim"), (fitted(now), "strong"), (gap, "")]

    def rows(self, width: int) -> list[Row]:
        """Return the visible part of the grid."""
        seen = self.inspected
        array = seen.shown.array
        if array is None:
            return self._without_value()
        if not array.size:
            return [[], [("  it has no elements", "dim")]]
        if seen.against and seen.view != "bits" and seen.before().problem:
            return [[], [(f"  {seen.before().problem}", "dim")]]
        height = max(self.size.height - 2, 1)
        if self._has_three:
            return self._three(width, height)
        if self._has_row_of_three:
            return self._row_of_three(height)
        lines = self.grid.lines(width, height)
        self._below = len(lines) + 1
        room = height - self._below
        says_numbers = self.grid is self.heat and self.heat.has_numbers
        if self.grid is self.heat and room >= _LEAST_NUMBERS and self.screen.has_class("-medium") and not says_numbers:
            lines = [*lines, [], *self.numbers.lines(width, room)]
        if self.grid is self.heat and not seen.is_few:
            columns = self.heat.columns(height - len(lines) - 1)
            lines += [[], *columns] if columns else []
        return lines

    def _without_value(self) -> list[Row]:
        """Return the key that leads to where the value is computed, if the run is still to come there."""
        seen = self.inspected
        frame, subject = seen.state.frame, seen.subject
        if frame is None or subject is None or frame.program is not subject.program or frame.is_done(subject.operation):
            return []
        words = key_words((("run-to {op}", "runs on to where it is computed"),), "value", self.host.keymap)
        return [[], *([("  ", ""), *row] for row in words)]

    def _three(self, width: int, height: int) -> list[Row]:
        """Return A, now and the difference below one another, with one cursor."""
        found = self.inspected.before()
        if found.problem:
            lines = self.stacked[1].lines(width, height - 2)
            self._places = [(0, 2, self.stacked[1])]
            return [[(f" A: {printable(found.problem)}", "dim")], [(" now", "accent")], *lines]
        self._places = []
        each = max(height // 3 - 1, 2)
        rows: list[Row] = []
        for grid, name, tone in zip(self.stacked, ("A", "now", "now − A"), ("a", "accent", "note"), strict=True):
            drawn = grid.lines(width, each)[:each]
            words = "   ".join(filter(None, (grid.reach, grid.reduction)))
            rows.append([(f" {name}", tone), (f"   {words}"[: max(width - len(name) - 2, 0)], "dim")])
            self._places.append((0, len(rows), grid))
            rows += drawn
        return rows

    def _row_of_three(self, height: int) -> list[Row]:
        """Return the value, that of the iteration before and the difference beside each other, with one cursor."""
        wide, now = self.heat.widest, self.inspected.shown.iteration or 0
        self._places, self._below = [], height
        drawn: list[list[Row]] = []
        for grid, name in ((1, f"@{now}"), (0, f"@{now - 1}, before"), (2, "difference")):
            lines = self.stacked[grid].lines(wide, height - 1)
            self._places.append((len(drawn) * (wide + _GAP), 1, self.stacked[grid]))
            drawn.append([[(f"  {name}", "accent" if grid == 1 else "dim")], *lines])
        count = max(map(len, drawn))
        return [
            [cell for lines in drawn for cell in padded_row(lines[y] if y < len(lines) else [], wide + _GAP)]
            for y in range(count)
        ]

    # --- keys and mouse ------------------------------------------------------------------------------------------

    def look_on(self, direction: int) -> None:
        """The next view, after the last the table; or (-1) another number for the elements of a cell."""
        seen = self.inspected
        if direction < 0:
            seen.choose_statistic()
            self._changed_all()
            return
        now = seen.view, seen.against and seen.view == "numbers"
        place = VIEWS.index(now) + direction
        seen.view, seen.against = VIEWS[place % len(VIEWS)]
        self._changed_all()
        if place == len(VIEWS) and seen.shown.address and seen.shown.iteration is not None:
            self.post_line(f"sheet {seen.shown.address}")

    def zoom_by(self, by: int) -> None:
        """More digits, or a part of the colours larger."""
        seen = self.inspected
        if isinstance(self.grid, HeatGrid):
            plane = seen.plane
            most = max(plane.height, plane.width).bit_length()
            seen.zoom = max(0, min(seen.zoom + by, most))
        else:
            seen.digits = max(0, min(seen.digits + by, 17))
        self._changed_all()

    def _changed_all(self) -> None:
        for pane in self.screen.query(Pane):
            pane.changed()

    def step(self) -> tuple[int, int]:
        """Return how many rows and columns an arrow goes."""
        grid = self.grid
        return grid.step() if isinstance(grid, HeatGrid) else (1, 1)

    def page(self) -> int:
        """Return how many rows are seen at once."""
        return max(1, self.numbers.page() - 1) if self.grid is self.numbers else 10 * self.step()[0]

    def scroll_rows(self, by: int) -> None:
        """The wheel; the cursor stays."""
        self.grid.scroll(by, 0)
        self._changed_all()

    def on_mouse_scroll_right(self, event: events.MouseScrollRight) -> None:
        """Sideways."""
        self.grid.scroll(0, 2)
        self._changed_all()
        event.stop()

    def on_mouse_scroll_left(self, event: events.MouseScrollLeft) -> None:
        """Sideways."""
        self.grid.scroll(0, -2)
        self._changed_all()
        event.stop()

    def wheel(self, event: events.MouseEvent, way: int) -> None:
        """Further down or up; with Shift or Ctrl further right or left; over an axis its index."""
        axis = self._axis_at(event)
        if axis is not None:
            self.inspected.axis = axis
            self.post_line(f"axis {way:+d}")
        elif event.shift or event.ctrl:
            self.grid.scroll(0, 2 * way)
            self._changed_all()
        else:
            super().wheel(event, way)

    def _axis_at(self, event: events.MouseEvent) -> int | None:
        x = event.x - self.gutter.left
        if event.y != 0:
            return None
        return next((axis for begin, end, axis in self._axes if begin <= x < end), None)

    def on_click(self, event: events.Click) -> None:
        """An element gets the cursor; an axis is picked, with a second click goes down the rows; a view is shown."""
        axis = self._axis_at(event)
        if axis is not None:
            again = axis == self.inspected.axis and event.chain == 2
            self.inspected.axis = axis
            self.post_line("axis rows" if again else f"axis {axis}")
            return
        x, y = event.x - self.gutter.left, event.y - 2
        if event.y == 0 and x > self.size.width - 38:
            self.look_on(1)
            return
        if self._has_three or self._has_row_of_three:
            places = reversed(self._places)
            left, top, grid = next((one for one in places if one[0] <= x and one[1] <= y), self._places[0])
            place = grid.place_at(x - left, y - top)
            if place is not None:
                self.inspected.point_at(*place)
                self._changed_all()
            return
        is_below = self.grid is self.heat and y >= self._below
        place = self.numbers.place_at(x, y - self._below) if is_below else self.grid.place_at(x, y)
        if place is not None:
            self.inspected.point_at(*place)
            self._changed_all()


class Companion(TensorPane, can_focus=False):
    """Numbers beside colours, colours beside numbers, of the same plane."""

    kind: ClassVar[str] = "companion"

    @property
    def grid(self) -> NumberGrid | HeatGrid:
        """The other one."""
        return self.numbers if self.inspected.view == "colours" or not self.inspected.is_numeric() else self.heat

    def heading(self, width: int) -> list[Row]:
        """Return which it is, and where the cursor stands."""
        self.count(width)  # as above
        is_numbers = self.grid is self.numbers
        element = "[" + ",".join(map(str, self.inspected.cursor)) + "]"
        note = f"{element}   {self.numbers.format.note}" if is_numbers else element
        self._axes = []
        return [spread([(" ", ""), ("numbers" if is_numbers else "colours", "title")], [(note, "note")], width)]

    def rows(self, width: int) -> list[Row]:
        """Return the visible part of the grid."""
        seen = self.inspected
        if seen.array is None or (seen.against and seen.before().problem):
            return []
        return self.grid.lines(width, max(self.size.height - 1, 1))

    def on_click(self, event: events.Click) -> None:
        """An element gets the cursor."""
        place = self.grid.place_at(event.x - self.gutter.left, event.y - 1)
        if place is not None:
            self.inspected.point_at(*place)
            self._changed_all()
