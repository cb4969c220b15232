"""Back edges: name, history, what entered, how far it is changed, what is odd."""

from __future__ import annotations

from collections.abc import Iterable
from typing import ClassVar, Final

from stepper.debug.inspection.views import BackEdgeView
from stepper.debug.iterations.statistics import CarriedHistory
from stepper.element_types import Array
from stepper.tensors.statistics import number_of
from tui.paint.link_pane import LinkPane
from tui.paint.links import linked, value_destination
from tui.paint.names import carried_name
from tui.paint.rows import Row, clip, number, padded, shape_of, spark, spread
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


class BackEdges(LinkPane):
    """One row a back edge that carries something; those that collect an output are among the outputs."""

    follows_selection: ClassVar[bool] = False
    kind: ClassVar[str] = "edges"
    title = "back edges"
    help_text: ClassVar[str] = (
        "What each back edge carries: its history, what entered this iteration, and how far it is changed.\n"
        "= stuck, ~ another shape, ^ grows without bound, N and I: NaN and Inf. Enter opens the chosen value."
    )

    def _edges(self) -> list[BackEdgeView]:
        loop = self.state.loop
        return [] if loop is None else [edge for edge in loop.back_edges if not edge.collects_output]

    def heading(self, width: int) -> list[Row]:
        """Return the columns' names at the right."""
        self.note = "entered  change" if self._edges() else ""
        return super().heading(width)

    def rows(self, width: int) -> list[Row]:
        """Return a row an edge."""
        edges = self._edges()
        if not edges:
            return [
                [
                    (
                        " none"
                        if self.state.loop is not None or self.state.ending is not None
                        else " what a loop carries on stands here",
                        "dim",
                    )
                ],
                [],
            ]
        histories = {} if self.state.loop_history is None else by_parameter(self.state.loop_history.carried)
        names = [carried_name(edge.parameter.layer) if edge.parameter.layer else "?" for edge in edges]
        room = min(max(map(len, names)), 10)
        rows = []
        for edge, name in zip(edges, names, strict=True):
            layer = edge.parameter.layer
            history = histories.get(layer.id) if layer is not None else None
            row = self._row(edge, clip(name, room), room, history, width)
            rows.append(linked(row, value_destination(self.state.loop_program, edge.parameter)))
        return [*rows, []]

    def _row(self, edge: BackEdgeView, name: str, room: int, history: CarriedHistory | None, width: int) -> Row:
        entered = edge.came_in if edge.came_in is not None else edge.parameter.array
        bars = max(width - room - 8 - 4 - 6 - 8 - 2, 0)
        line = "" if history is None else line_of(history, self.state.iteration, bars)
        shape = "" if entered is None else shape_of(entered.shape)
        value = self._number(entered, history)
        change = "" if edge.change is None or edge.change.max_abs is None else number(edge.change.max_abs)
        mark = self._mark(edge, history)
        left: Row = [
            (f" {GLYPHS['back']} ", "dim"),
            (padded(name, room + 1), ""),
            (padded(shape, 8), "dim"),
            (line.ljust(bars), "bar"),
        ]
        right: Row = [(number(value).rjust(6), ""), (change.rjust(8), "dim")]
        row = spread(left, right, width - 1)
        return [
            *row,
            (mark or " ", "dim" if mark == GLYPHS["stuck"] else "bad"),
        ]

    def _number(self, entered: Array | None, history: CarriedHistory | None) -> float | None:
        """Return what entered as one number; of a large tensor that of the worker."""
        if entered is None:
            return None
        if entered.size <= _MOST_AT_ONCE:
            return number_of(entered)
        if history is None or not len(history.iterations) or history.iterations[-1] != self.state.iteration:
            return None
        return float(history.numbers[-1])

    def _mark(self, edge: BackEdgeView, history: CarriedHistory | None) -> str:
        for word in ("NaN", "Inf", "shape changed", "type changed", "unchanged"):
            if word in edge.marks:
                return MARKS[word][0]
        return GLYPHS["grow"] if history is not None and history.explodes else ""


def by_parameter(histories: Iterable[CarriedHistory]) -> dict[int, CarriedHistory]:
    """Return histories by the id of the Parameter."""
    return {history.parameter.id: history for history in histories}


def line_of(history: CarriedHistory, last: int | None, most: int) -> str:
    """Return the last values up to an iteration as bars; a gap where one is not known."""
    if last is None or most <= 0:
        return ""
    begin = max(last - most + 1, 0)
    known = dict(zip(history.iterations.tolist(), history.numbers.tolist(), strict=True))
    return spark([known.get(iteration) for iteration in range(begin, last + 1)], missing="·")
