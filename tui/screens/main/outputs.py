"""Outputs of a loop as they grow: each piece at its real place, and the room that is still free.

Places go from left to right; what is joined backwards fills from the right. A piece is a column of shades, a number, a
word. At the end of the run, the outputs of the model.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar, Final

from msgspec.structs import replace

from stepper import element_types
from stepper.debug.inspection.views import BackEdgeView, ScanView
from stepper.debug.iterations.cell_store import RowValues
from stepper.debug.overview.facts import Row as LoopRow
from stepper.debug.overview.facts import RowKind
from stepper.element_types import Array
from stepper.engine.loops import is_backward
from stepper.records import Record
from stepper.tensors.histories import ValueHistory
from stepper.tensors.known_values import KnownValues
from tui.paint.links import Destination, linked, value_destination
from tui.paint.names import carried_name, row_name
from tui.paint.pane import Host
from tui.paint.rows import Row, clip, printable
from tui.pictures.axis import Axis, mirrored, window
from tui.pictures.drawing import has_ways
from tui.pictures.heights import Want, heights
from tui.pictures.value_rows import Looks, RowColumns, ValueRow, size_wanted, value_rows
from tui.screens.main.back_edges import reach_of
from tui.screens.main.picture_pane import PicturePane
from tui.screens.moments.marks import histories_of_a, site_strip, spread_cells
from tui.theme import GLYPHS

_MOST_PIECES: Final = 200
"""Of a long output, the last pieces are drawn."""
_MOST_ELEMENTS: Final = 4096
_WIDEST: Final = 6


class Growing(Record, eq=False):
    """An output that grows: its name, its type now as text, the pieces by iteration, how many there are, may be.

    `room` None: how many there may be is not known. `is_backward`: each piece stands in front of the one before.
    `row` is the row of the loop that they are, `theirs` are the pieces of A, where that is another run.
    """

    key: object
    name: str
    type: str
    pieces: ValueHistory | None
    count: int
    room: int | None
    is_backward: bool = False
    labels: tuple[str, ...] = ()
    target: Destination = Destination()
    row: LoopRow | None = None
    theirs: ValueHistory | None = None


class ScanGrowth(PicturePane):
    """The concatenated outputs, and those that a body collects itself with a Concat."""

    follows_selection: ClassVar[bool] = False
    title = "outputs growing"
    looks_ahead: ClassVar[bool] = True
    kind: ClassVar[str] = "scans"
    help_text: ClassVar[str] = (
        "What the loop writes: one piece an iteration at its place in the output, and the room that is left.\n"
        "← fills from the last place to the first. Enter opens one.\n"
        "A click, or Left and Right, chooses a column; Enter or a second click goes to its iteration.\n"
        "v chooses mean, largest or rms where several elements share a cell, V the scale."
    )

    def __init__(self, host: Host, *, id: str | None = None) -> None:
        super().__init__(host, id=id)
        self._looks = Looks()
        self._collections: dict[int, tuple[Array, Growing]] = {}

    def heading(self, width: int) -> list[Row]:
        """At the end of the run, those of the model."""
        self.title = "outputs growing" if self.state.ending is None else "outputs"
        self.note = self.picked_note("")
        return super().heading(width)

    def rows(self, width: int) -> list[Row]:
        """Return the pictures of all outputs, below one another."""
        found = list(self._outputs())
        self.begin_pictures()
        if not found:
            outside = self.state.loop is None and self.state.ending is None
            return [[(" what a loop collects is drawn here" if outside else " none", "dim")]]
        columns = RowColumns(13 if width < 42 else 15, width - (14 if width < 42 else 16), 0)
        axes = [self._axis_of(one, columns.picture) for one in found]
        wants = []
        for one, axis in zip(found, axes, strict=True):
            size, is_picture = size_wanted(one.pieces, axis, one.labels)
            wants.append(Want(max(size, 2) if len(one.name) + len(one.type) + 2 > columns.name else size, is_picture))
        cells = spread_cells(self.state)
        extra = sum((one.theirs is not None) + (cells is not None) for one in found)
        room = max(self.size.height - 1 - extra, len(found))
        tall = heights(wants, room, tall=self.app.size.height >= 56, plain=self.look.plain).lines
        rows: list[Row] = []
        for one, axis, lines in zip(found, axes, tall, strict=True):
            glyph = "←" if one.is_backward else GLYPHS["scan"]
            row = ValueRow(
                one.key, (f" {glyph} ", "dim"), (one.name, ""), one.type, one.pieces, one.labels, made=one.count
            )
            if one.theirs is not None and one.pieces is not None:
                row = row._replace(shared=(one.theirs,))
            drawn, placed = value_rows(
                row, axis, lines, columns, self._looks, self.palette, marked=self.marked, a=self.state.iterations_of_a
            )
            self.place_picture(len(rows), len(drawn), placed, columns.name)
            if one.theirs is not None:
                drawn = [*drawn, *self._of_a(one, row, axis, lines, columns)]
            strip = [] if cells is None or one.row is None else site_strip(self, cells, one.row, axis, columns.picture)
            if strip:
                drawn = [*drawn, [(" from A".ljust(columns.name), "dim"), *strip]]
            rows += [linked(line, one.target) for line in drawn]
        return rows

    def _of_a(self, one: Growing, row: ValueRow, axis: Axis, lines: int, columns: RowColumns) -> list[Row]:
        """Return the same output in A, by the same scale."""
        assert one.theirs is not None
        both = (one.theirs,) if one.pieces is None else (one.theirs, one.pieces)
        theirs = row._replace(
            key=(one.key, "A"), glyph=("   ", ""), name=("A", "a"), shape="", values=one.theirs, shared=both[1:]
        )
        self._looks.follow(theirs.key, one.key)
        return value_rows(theirs, axis, max(lines, 1), columns, self._looks, self.palette).rows

    def _axis_of(self, one: Growing, room: int) -> Axis:
        """Return the cells of the pieces: by place, the last ones where there is no room for all."""
        axis = window(max(one.count - 1, 0), one.room, room, _WIDEST, has_entered=False)
        return mirrored(axis) if one.is_backward else axis

    @property
    def idle(self) -> tuple[str, ...]:
        """Commands that do nothing where no output has several numbers an iteration."""
        known = (one.pieces for one in self._outputs())
        return () if any(one is not None and has_ways(one) for one in known) else ("look next",)

    def look_on(self, direction: int) -> None:
        """Show the outputs by another number of several, or with another scale (-1)."""
        for one in self._outputs():
            self._looks.look_on(one.key, direction, one.pieces)
        self.changed()

    # --- what grows ----------------------------------------------------------------------------------------------

    def _outputs(self) -> Iterator[Growing]:
        loop, view = self.state.loop, self.state.view
        if view is not None and view.outputs is not None:
            for place, (name, array) in enumerate(zip(self.state.output_names, view.outputs, strict=True)):
                if array.dtype.kind in "fiub" and array.ndim:
                    output = _along(name, array, 0, clip(printable(name), 10), len(array))
                    yield replace(output, target=Destination(f"open-output {place}"))
        if loop is None:
            return
        room = reach_of(self.state)[1]
        history = self.state.loop_history
        rows = () if history is None else history.rows
        a = histories_of_a(self.state)
        ports = {one.row.port: place for place, one in enumerate(rows) if one.row.kind is RowKind.CONCATENATED}
        inner = {one.row.inner.id: place for place, one in enumerate(rows) if one.row.kind is RowKind.BACK_EDGE}
        for scan in loop.scans:
            place = ports.get(scan.output, -1)
            yield replace(self._scan(scan, rows[place] if place >= 0 else None, room), theirs=a.get(place))
        for edge in loop.back_edges:
            found = self._collected(edge, room) if edge.collects_output else None
            if found is not None:
                layer = edge.parameter.layer
                place = -1 if layer is None else inner.get(layer.id, -1)
                yield replace(found, row=rows[place].row if place >= 0 else None, theirs=a.get(place))

    def _scan(self, scan: ScanView, known: RowValues | None, room: int | None) -> Growing:
        loop = self.state.loop
        inner = next((one.inner for one in (loop.outputs if loop else ()) if one.output == scan.output), None)
        return Growing(
            key=("scan", scan.output),
            name=printable(scan.result) if known is None else row_name(known.row),
            type=_sizes(scan),
            pieces=None if known is None or known.values is None else known.values.before(scan.pieces),
            count=scan.pieces,
            room=room,
            is_backward=is_backward(scan.slicing),
            labels=() if known is None else self.state.labels_at(known.row),
            target=Destination() if inner is None else value_destination(self.state.loop_program, inner),
            row=None if known is None else known.row,
        )

    def _collected(self, edge: BackEdgeView, room: int | None) -> Growing | None:
        """Return an output that the body collects itself: what entered, or what goes out if that is there already."""
        array = edge.goes_out if edge.goes_out is not None else edge.came_in
        layer = edge.parameter.layer
        if array is None or layer is None or not array.ndim:
            return None
        axis, name = _grown_axis(edge), carried_name(layer)
        target = value_destination(self.state.loop_program, edge.parameter)
        labels = self.state.labels_of(self.state.loop_program, layer)
        kept = self._collections.get(layer.id)
        if kept is None or kept[0] is not array:
            kept = self._collections[layer.id] = array, _along(layer.id, array, axis, name, room)
        return replace(kept[1], room=room, labels=labels, target=target)


def _sizes(scan: ScanView) -> str:
    """Return the shape now, along the axis with the size to come: `1×6/16×64`."""
    if scan.shape is None:
        return "…"
    sizes = [str(size) for size in scan.shape]
    final = scan.final_shape
    if final is not None and 0 <= scan.axis < len(sizes) and final[scan.axis] > scan.shape[scan.axis]:
        sizes[scan.axis] += f"/{final[scan.axis]}"
    return "×".join(sizes)


def _along(key: object, array: Array, axis: int, name: str, room: int | None) -> Growing:
    """Return the last pieces of a tensor along an axis; none of what is too large to be drawn."""
    count = array.shape[axis]
    first = max(count - _MOST_PIECES, 0)
    known = KnownValues()
    if array.size <= _MOST_ELEMENTS * max(count, 1):
        for place in range(first, count):
            known.see(place, array.take(place, axis))
    kind = f"{element_types.name_of(array.dtype)}[{','.join(map(str, array.shape))}]"
    return Growing(key, name, kind, known.view(), count, room)


def _grown_axis(edge: BackEdgeView) -> int:
    came, goes = edge.came_in, edge.goes_out
    if came is not None and goes is not None and came.ndim == goes.ndim:
        for axis, (before, after) in enumerate(zip(came.shape, goes.shape, strict=True)):
            if before != after:
                return axis
    dims = edge.result.layer.outputs[0].dims if edge.result.layer is not None else ()
    return next((axis for axis, size in enumerate(dims) if size < 0), 0)
