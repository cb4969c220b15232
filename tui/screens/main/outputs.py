"""Outputs of a loop as they grow: pieces so far, and the room that is still free.

One line an output of rank 1; what has two axes is a picture, one row an iteration, read like a text.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar, Final

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from stepper import element_types
from stepper.debug.inspection.views import BackEdgeView, ScanView
from stepper.debug.labels import label_of
from stepper.element_types import Array
from stepper.plain_values import storable
from stepper.tensors.surveys import largest_of
from tui.paint.link_pane import LinkPane
from tui.paint.links import Destination, linked, value_destination
from tui.paint.names import carried_name, layer_name
from tui.paint.rows import Row, clip, padded, printable, spark, spread
from tui.screens.main.frames import COUNTED
from tui.theme import GLYPHS

MOST_PIECES: Final = 200
"""Of a long output, the last pieces are drawn."""
_MOST_ROWS: Final = 48
"""Of one whose pieces are more than a number, fewer."""
_MOST_ELEMENTS: Final = 4096


class Growing(Struct, frozen=True, eq=False):
    """An output that grows: its name, its type now as text, the pieces from iteration `first` on, how many there are.

    `room` is how many there may be, None where that is not known.
    """

    name: str
    type: str
    order: str
    first: int
    pieces: tuple[Array, ...]
    count: int
    room: int | None
    labels: tuple[str, ...] = ()
    target: Destination = Destination()


class ScanGrowth(LinkPane):
    """The concatenated outputs, and those that a body collects itself with a Concat."""

    follows_selection: ClassVar[bool] = False
    title = "outputs growing"
    kind: ClassVar[str] = "scans"
    help_text: ClassVar[str] = (
        "What the loop writes: one piece an iteration, and the room that is left. Enter opens one."
    )

    def heading(self, width: int) -> list[Row]:
        """At the end of the run, those of the model."""
        self.title = "outputs growing" if self.state.ending is None else "outputs"
        return super().heading(width)

    def rows(self, width: int) -> list[Row]:
        """Return all outputs, a picture for the last ones that are more than a row of numbers."""
        found = sorted(self._outputs(), key=lambda one: any(piece.size > 1 for piece in one.pieces))
        if not found:
            outside = self.state.loop is None and self.state.ending is None
            return [[(" what a loop collects is drawn here" if outside else " none", "dim")]]
        name_width = min(max(len(one.name) for one in found), 10) + 1
        room = self.size.height - 1 - len(found)
        rows: list[Row] = []
        for one in found:
            if all(piece.size <= 1 for piece in one.pieces):
                rows.append(linked(self._line(one, name_width, width), one.target))
            else:
                first, *others = self._picture(one, name_width, width, max(room, 4))
                rows += [linked(first, one.target), *others]
        return rows

    def _line(self, one: Growing, name_width: int, width: int) -> Row:
        head: Row = [(f" {GLYPHS['scan']} ", "dim"), (padded(one.name, name_width), "")]
        room = max(width - 4 - name_width - len(one.type), 4)
        values = [float(piece.reshape(-1)[0]) if piece.size else None for piece in one.pieces]
        shown = values[-room:]
        free = min(room, one.room if one.room is not None else room) - len(shown)
        words = _as_text(one, shown, room)
        text = words if words is not None else spark(shown, missing="·")
        free -= len(text) - len(shown)
        tone = "strong" if words is not None else "bar"
        return spread([*head, (text, tone), ("░" * max(free, 0), "ghost")], [(one.type, "dim")], width)

    def _picture(self, one: Growing, name_width: int, width: int, room: int) -> list[Row]:
        head: Row = [(f" {GLYPHS['scan']} ", "dim"), (padded(one.name, name_width), "")]
        words = "a row an iteration" if self.state.ending is None else ""
        if width - 4 - name_width - len(one.type) < len(words) + 1:
            words = ""
        rows = [spread([*head, (words, "dim")], [(one.type, "dim")], width)]
        begin = max(len(one.pieces) - room, 0)
        shown = one.pieces[begin:]
        numbers = [storable(piece).reshape(-1).astype(np.float64) for piece in shown]
        top = max((float(np.abs(row[np.isfinite(row)]).max(initial=0.0)) for row in numbers), default=1.0) or 1.0
        columns = max((len(row) for row in numbers), default=1)
        cells = max(1, min(columns, width - 7))
        cell = 2 if columns * 2 <= width - 7 else 1
        signed = any(bool((row < 0).any()) for row in numbers)
        for place, row in enumerate(numbers):
            binned = row.tolist() if len(row) <= cells else [largest_of(part) for part in np.array_split(row, cells)]
            tiles = [self.tile(value / top, cell, signed=signed) for value in binned]
            rows.append([(f"{one.first + begin + place:>5} ", "dim"), *tiles])
        left = max((one.room if one.room is not None else one.count) - one.count, 0)
        free = max(0, min(left, room - len(shown) - 1))
        rows += [[("    · ", "faint"), ("░" * cell * min(columns, cells), "ghost")] for _ in range(free)]
        more = left - free
        return [*rows, [("      ", ""), (f"… room for {more} more", "dim")]] if more > 0 else rows

    # --- what grows ----------------------------------------------------------------------------------------------

    def _outputs(self) -> Iterator[Growing]:
        loop, view = self.state.loop, self.state.view
        if view is not None and view.outputs is not None:
            for place, (name, array) in enumerate(zip(self.state.output_names, view.outputs, strict=True)):
                if array.dtype.kind in "fiub" and array.ndim:
                    output = _along(array, 0, clip(printable(name), 10), len(array))
                    yield replace(output, target=Destination(f"open-output {place}"))
        if loop is None:
            return
        maximum = loop.trip.total if loop.trip.total is not None else loop.trip.limit
        room = maximum if maximum is not None and maximum <= COUNTED else None
        for scan in loop.scans:
            yield self._scan(scan, room)
        for edge in loop.back_edges:
            if edge.collects_output:
                found = _collected(edge, room)
                if found is not None:
                    program = self.state.loop_program
                    labels = self.state.labels_of(program, edge.parameter.layer)
                    yield replace(found, labels=labels, target=value_destination(program, edge.parameter))

    def _scan(self, scan: ScanView, room: int | None) -> Growing:
        large = scan.pieces > 0 and scan.piece(scan.pieces - 1).size > 1
        first = max(scan.pieces - (_MOST_ROWS if large else MOST_PIECES), 0)
        pieces = tuple(scan.piece(iteration) for iteration in range(first, scan.pieces))
        kind = element_types.name_of(pieces[0].dtype) if pieces else ""
        loop = self.state.loop
        inner = next((one.inner for one in (loop.outputs if loop else ()) if one.inner.name == scan.result), None)
        program = self.state.loop_program
        labels = () if inner is None else self.state.labels_of(program, inner.layer, inner.output)
        target = Destination() if inner is None else value_destination(program, inner)
        type_ = f"{kind}[{_sizes(scan)}]"
        return Growing(self._called(scan), type_, scan.order, first, pieces, scan.pieces, room, labels, target)

    def _called(self, scan: ScanView) -> str:
        loop = self.state.loop
        assert loop is not None
        view = next((entry.inner for entry in loop.outputs if entry.inner.name == scan.result), None)
        name = printable(scan.result)
        if name.startswith("Result") and view is not None and view.layer is not None:
            name = layer_name(view.layer)
        return clip(name, 10)


def _sizes(scan: ScanView) -> str:
    """Return the shape now, along the axis with the size to come: `1,6 of 16,64`."""
    if scan.shape is None:
        return "…"
    sizes = [str(size) for size in scan.shape]
    final = scan.final_shape
    if final is not None and 0 <= scan.axis < len(sizes) and final[scan.axis] > scan.shape[scan.axis]:
        sizes[scan.axis] += f" of {final[scan.axis]}"
    return ",".join(sizes)


def _collected(edge: BackEdgeView, room: int | None) -> Growing | None:
    """Return an output that the body collects itself: what entered, or what goes out where that is there already."""
    array = edge.goes_out if edge.goes_out is not None else edge.came_in
    layer = edge.parameter.layer
    if array is None or layer is None or not array.ndim:
        return None
    return _along(array, _grown_axis(edge), clip(carried_name(layer), 10), room)


def _along(array: Array, axis: int, name: str, room: int | None) -> Growing:
    """Return the last pieces of a tensor along an axis; none of what is too large to be drawn."""
    count = array.shape[axis]
    first = max(count - (_MOST_ROWS if array.size > count else MOST_PIECES), 0)
    if array.size > _MOST_ELEMENTS * max(count, 1):
        first = count
    pieces = tuple(array.take(place, axis) for place in range(first, count))
    kind = f"{element_types.name_of(array.dtype)}[{','.join(map(str, array.shape))}]"
    return Growing(name, kind, "", first, pieces, count, room)


def _grown_axis(edge: BackEdgeView) -> int:
    came, goes = edge.came_in, edge.goes_out
    if came is not None and goes is not None and came.ndim == goes.ndim:
        for axis, (before, after) in enumerate(zip(came.shape, goes.shape, strict=True)):
            if before != after:
                return axis
    dims = edge.result.layer.outputs[0].dims if edge.result.layer is not None else ()
    return next((axis for axis, size in enumerate(dims) if size < 0), 0)


def _as_text(one: Growing, values: list[float | None], room: int) -> str | None:
    """Small whole numbers are read like a text: figures one after another, or with blanks where they fit so."""
    if not one.pieces or any(piece.dtype.kind not in "iu" for piece in one.pieces) or None in values:
        return None
    if one.labels:
        words = [printable(label_of(one.labels, value)) for value in values if value is not None]
        text = ("" if all(len(word) == 1 for word in words) else " ").join(words)
        return text if len(text) <= room else None
    figures = [str(int(value)) for value in values if value is not None]
    if all(len(figure) == 1 for figure in figures):
        return "".join(figures)
    text = " ".join(figures)
    return text if len(text) <= room else None
