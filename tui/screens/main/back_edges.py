"""Back edges: what each carries as a picture over the iterations, what entered, how far it is changed, what is odd."""

from __future__ import annotations

from collections.abc import Iterable
from typing import ClassVar, Final

import numpy as np

from stepper.debug.inspection.views import BackEdgeView
from stepper.debug.iterations.cell_store import RowValues
from stepper.debug.moments.texts import truth_text
from stepper.debug.overview.facts import RowKind
from stepper.element_types import Array
from stepper.tensors.difference import Change, difference
from stepper.tensors.histories import ValueHistory
from stepper.tensors.number_text import fitted
from stepper.tensors.statistics import FITTING, number_of
from tui.paint.links import linked, value_destination
from tui.paint.names import carried_name
from tui.paint.pane import Host
from tui.paint.rows import Row, shape_of
from tui.pictures.axis import window
from tui.pictures.drawing import has_ways
from tui.pictures.heights import Want, fill_up, heights
from tui.pictures.value_rows import Looks, RowColumns, ValueRow, size_wanted, value_rows
from tui.screens.main.frames import COUNTED
from tui.screens.main.picture_pane import PicturePane
from tui.screens.moments.marks import difference_strip, is_beside_run, spread_cells
from tui.screens.moments.pairs import PAIR_LABEL, carried_rows
from tui.state import State
from tui.theme import GLYPHS

MARKS: Final = {
    "unchanged": (GLYPHS["stuck"], "stuck"),
    "shape changed": (GLYPHS["shape"], "shape~"),
    "type changed": (GLYPHS["shape"], "type~"),
    "NaN": ("N", "NaN!"),
    "Inf": ("I", "Inf!"),
}
_MOST_AT_ONCE: Final = 200_000
"""Elements that are looked through while one waits."""
_AROUND: Final = 30
"""Lines of the screen that the other panes need."""
_BESIDE_TABS: Final = 19
"""The same where there are tabs."""
_WIDEST_CHANGE: Final = 8
_WIDEST: Final = 6


class BackEdges(PicturePane):
    """One row a back edge that carries something; those that collect an output are among the outputs."""

    follows_selection: ClassVar[bool] = False
    kind: ClassVar[str] = "edges"
    title = "back edges"
    looks_ahead: ClassVar[bool] = True
    help_text: ClassVar[str] = (
        "What each back edge carries: a column is what an iteration handed on, under `in` stands what entered first.\n"
        "At the right what entered this iteration, and how far it is changed (of tensors the rms).\n"
        "v chooses mean, largest or rms where several elements share a cell, V the scale.\n"
        "= stuck, ~ another shape, ^ grows without bound, N and I: NaN and Inf. Enter opens the chosen value.\n"
        "A click, or Left and Right, chooses a column; Enter or a second click goes to its iteration."
    )

    def __init__(self, host: Host, *, id: str | None = None) -> None:
        super().__init__(host, id=id)
        self._looks = Looks()
        self._taller = 0

    def _edges(self) -> list[BackEdgeView]:
        loop = self.state.loop
        return [] if loop is None else [edge for edge in loop.back_edges if not edge.collects_output]

    @property
    def _has_outputs(self) -> bool:
        """True if the loop collects outputs, which stand below."""
        loop = self.state.loop
        return loop is None or bool(loop.scans) or any(edge.collects_output for edge in loop.back_edges)

    def heading(self, width: int) -> list[Row]:
        """Return the columns' names at the right."""
        beside = is_beside_run(self.state) or (self.state.beside is not None and self.screen.has_class("-tiny"))
        self.note = "entered: A | now" if beside else f"entered, {GLYPHS['change']} change" if self._edges() else ""
        self.note = self.picked_note(self.note)
        return super().heading(width)

    def rows(self, width: int) -> list[Row]:
        """Return the rows of each edge."""
        edges = self._edges()
        self.begin_pictures()
        if not edges:
            none = self.state.loop is not None or self.state.ending is not None
            return [[(" none" if none else " what a loop carries on stands here", "dim")], []]
        if is_beside_run(self.state) or (self.state.beside is not None and self.screen.has_class("-tiny")):
            return self._beside_a(edges, width)
        known = by_parameter(self.state)
        columns = RowColumns(13 if width < 42 else 15, width - (22 if width < 42 else 24), 8)
        axis = window(*reach_of(self.state), columns.picture, _WIDEST)
        ones = [self._row(edge, known) for edge in edges]
        wants = [Want(*size_wanted(one.values, axis, one.labels)) for one in ones]
        height = self.app.size.height
        room = height - _BESIDE_TABS if self.app.size.width < 100 else (height - _AROUND) * 2 // 3
        cells = spread_cells(self.state)
        room = max(room + self._taller - (0 if cells is None else len(edges)), len(edges))
        tall = heights(wants, room, tall=self.app.size.height >= 56, plain=self.look.plain).lines
        if not self._has_outputs and not self._taller and cells is None:
            tall = fill_up([one.size if one.is_picture else 0 for one in wants], tall, room * 3 // 2 - 2 - sum(tall))
        rows: list[Row] = []
        for edge, one, lines in zip(edges, ones, tall, strict=True):
            drawn, placed = value_rows(
                one, axis, lines, columns, self._looks, self.palette, marked=self.marked, a=self.state.iterations_of_a
            )
            self.place_picture(len(rows), len(drawn), placed, columns.name)
            strip = [] if cells is None else difference_strip(self, cells, edge.result, axis, columns.picture)
            if strip:
                drawn = [*drawn, [(" from A".ljust(columns.name), "dim"), *strip]]
            target = value_destination(self.state.loop_program, edge.parameter)
            rows += [linked(row, target) for row in drawn]
        return [*rows, []]

    def _beside_a(self, edges: list[BackEdgeView], width: int) -> list[Row]:
        """Return what entered in A, now, and the difference; and below in which iterations what goes out differs."""
        cells = spread_cells(self.state)
        axis = window(*reach_of(self.state), width - PAIR_LABEL, _WIDEST, has_entered=False)
        rows: list[Row] = []
        for edge in edges:
            found = carried_rows(self, self.state, edge, width)
            strip = [] if cells is None else difference_strip(self, cells, edge.result, axis, width - PAIR_LABEL)
            if strip:
                found.append([(" goes out".ljust(PAIR_LABEL), "dim"), *strip])
            rows += [linked(row, value_destination(self.state.loop_program, edge.parameter)) for row in found]
        return [*rows, []]

    def _row(self, edge: BackEdgeView, known: dict[int, RowValues]) -> ValueRow:
        layer = edge.parameter.layer
        row = None if layer is None else known.get(layer.id)
        entered = edge.came_in if edge.came_in is not None else edge.parameter.array
        mark = self._mark(edge, row)
        glyph = mark or GLYPHS["back"]
        tone = "dim" if mark in ("", GLYPHS["stuck"]) else "bad"
        made = self.state.seen_to + (edge.goes_out is not None)
        return ValueRow(
            key=-1 if layer is None else layer.id,
            glyph=(f" {glyph} ", tone),
            name=("?" if layer is None else carried_name(layer), ""),
            shape="" if entered is None else shape_of(entered.shape),
            values=None if row is None or row.values is None else row.values.before(made),
            labels=self.state.labels_of(self.state.loop_program, layer),
            beside=(
                [(self._text(entered, row), "")],
                [(self._change(edge), "dim")],
            ),
            made=made,
        )

    def _change(self, edge: BackEdgeView) -> str:
        """Return how far what goes out differs from what came in; of booleans what they were and are."""
        before, now = edge.came_in, edge.goes_out
        if edge.change is None or before is None or now is None:
            return ""
        if before.dtype == now.dtype == np.bool_:
            found = difference(before, now)
            return "same" if found.change is Change.SAME else truth_text(found, self.look.arrow, _WIDEST_CHANGE)
        return f"{GLYPHS['change']}{fitted(edge.change)}"

    def _text(self, entered: Array | None, row: RowValues | None) -> str:
        if entered is not None and entered.size == 1 and entered.dtype == np.bool_:
            return GLYPHS["true" if entered.item() else "false"]
        return fitted(self._number(entered, row))

    def _number(self, entered: Array | None, row: RowValues | None) -> float | None:
        """Return what entered as one number; of a large tensor that of the worker."""
        if entered is None:
            return None
        if entered.size <= _MOST_AT_ONCE:
            return number_of(entered, FITTING)
        values, iteration = None if row is None else row.values, self.state.seen_to
        return None if values is None or not iteration else values.number(iteration - 1)

    def _mark(self, edge: BackEdgeView, row: RowValues | None) -> str:
        for word in ("NaN", "Inf", "shape changed", "type changed", "unchanged"):
            if word in edge.marks:
                return MARKS[word][0]
        return GLYPHS["grow"] if row is not None and row.explodes else ""

    # --- keys and mouse ------------------------------------------------------------------------------------------

    @property
    def idle(self) -> tuple[str, ...]:
        """Commands that do nothing for the selected edge: it may be one number an iteration."""
        values = self._chosen_values
        return () if values is not None and has_ways(values) else ("look next",)

    @property
    def _chosen_values(self) -> ValueHistory | None:
        """The selected edge over the iterations, as far as it is known."""
        chosen = self.chosen
        layer = None if chosen is None or chosen.value is None else chosen.value.layer
        row = None if layer is None else by_parameter(self.state).get(layer.id)
        return None if row is None else row.values

    def look_on(self, direction: int) -> None:
        """Show the selected edge by another number of several, or with another scale (-1)."""
        chosen = self.chosen
        if chosen is not None and chosen.value is not None:
            self._looks.look_on(chosen.value.layer.id, direction, self._chosen_values)
            self.changed()

    def zoom_by(self, by: int) -> None:
        """Give the pictures more lines, or fewer."""
        self._taller = max(-32, min(self._taller + 2 * by, 32))
        self.changed()


def by_parameter(state: State) -> dict[int, RowValues]:
    """Return what is known of the back edges, by the id of the Parameter."""
    rows: Iterable[RowValues] = () if state.loop_history is None else state.loop_history.rows
    return {one.row.inner.id: one for one in rows if one.row.kind is RowKind.BACK_EDGE}


def reach_of(state: State) -> tuple[int, int | None]:
    """Return the iteration of the moment, and how many there may be; None where that is not known."""
    loop = state.loop
    if loop is None:
        return 0, None
    known = loop.trip.total if loop.trip.total is not None else loop.trip.limit
    return state.seen_to, known if known is not None and known <= COUNTED else None
