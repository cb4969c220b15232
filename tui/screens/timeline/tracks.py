"""Rows of what is drawn over the iterations of a loop: watches, what back edges hand on, outputs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final
from weakref import WeakKeyDictionary

import numpy as np

from stepper.debug.inspection.views import WatchView
from stepper.debug.iterations.cell_store import RowValues
from stepper.debug.overview.facts import Row, RowKind
from stepper.debug.stop_scope import WatchReading
from stepper.tensors.histories import ValueHistory
from stepper.tensors.known_values import KnownValues
from tui.paint.names import GROWS, expression_name, row_name
from tui.paint.rows import Cell, shape_of
from tui.pictures.drawing import brief_way, way_in
from tui.pictures.value_rows import ValueRow
from tui.state import State
from tui.theme import GLYPHS

_NO_GLYPH: Final[Cell] = (" ", "")
_HISTORIES: Final[WeakKeyDictionary[WatchReading, tuple[int, ValueHistory | None]]] = WeakKeyDictionary()
"""By the last reading of a watch: each key shows all of them again."""
_JOINED: Final[WeakKeyDictionary[ValueHistory, tuple[ValueHistory, ValueHistory]]] = WeakKeyDictionary()


def read_at_stops(watch: WatchView) -> ValueHistory | None:
    """Return what a watch was where the run stopped in an iteration; None where it is no number, or grows."""
    readings = watch.iterations
    if not readings or watch.grows:
        return None
    kept = _HISTORIES.get(readings[-1])
    if kept is None or kept[0] != len(readings):
        known = KnownValues()
        for reading in readings:
            value = reading.value
            if reading.iteration is not None and value is not None and value.dtype.names is None:
                known.see(reading.iteration, value)
        kept = _HISTORIES[readings[-1]] = len(readings), known.view()
    return kept[1]


def watched(state: State, watch: WatchView) -> ValueHistory | None:
    """Return what a watch is in all iterations that were looked through, else in those with a stop."""
    sweep = state.sweep
    tracks = () if sweep is None else (*sweep.close, *sweep.tracks)
    track = next((one for one in tracks if one.kind == "watch" and one.name == watch.text), None)
    return with_stops(None if track is None else track.values, watch)


def with_stops(values: ValueHistory | None, watch: WatchView) -> ValueHistory | None:
    """Return the values of a watch with those of stops in iterations that were not looked through, as the present."""
    stops = read_at_stops(watch)
    if values is None or stops is None:
        return values or stops
    kept = _JOINED.get(values)
    if kept is None or kept[0] is not stops:
        kept = _JOINED[values] = stops, values.filled_up(stops)
    return kept[1]


def watch_row(watch: WatchView, values: ValueHistory | None, made: int) -> ValueRow:
    """Return the row of a watch."""
    name = expression_name(watch.text) + (GROWS if watch.grows else "")
    return ValueRow(watch.text, _NO_GLYPH, (name, "dim"), _shape(values), values, made=made)


def loop_row(state: State, row: Row, values: ValueHistory | None, made: int) -> ValueRow:
    """Return the row of a value of the loop."""
    labels = state.labels_at(row)
    key = row.kind, row.inner.id, row.port
    return ValueRow(key, _NO_GLYPH, (row_name(row), "dim"), _shape(values), values, labels, made=made)


def drawn_rows(rows: Sequence[RowValues], most: int) -> list[RowValues]:
    """Return those that are worth a row, each value once: back edges, then outputs; counters only where there is room.

    What only collects pieces is an output: it is shown by these.
    """
    kinds = (RowKind.BACK_EDGE, RowKind.CONCATENATED)
    found = [one for kind in kinds for one in rows if one.row.kind is kind and not one.row.appends]
    found += [one for one in rows if one.row.kind is RowKind.BACK_EDGE and one.row.appends]
    once: list[RowValues] = []
    for one in found:
        if one.values is None or not is_shown(one.values, [other.values for other in once if other.values is not None]):
            once.append(one)
    return once if len(once) <= most else [one for one in once if not one.is_counter]


def is_shown(values: ValueHistory, others: Sequence[ValueHistory]) -> bool:
    """True if one of the others has the same numbers."""
    return any(
        one.numbers.shape == values.numbers.shape
        and np.array_equal(one.spans, values.spans)
        and np.array_equal(one.numbers, values.numbers, equal_nan=True)
        for one in others
    )


def _shape(values: ValueHistory | None) -> str:
    """Return the shape, where it has more than one element; of one that changes which number of it is drawn."""
    if values is None:
        return ""
    if values.changes_shape and not values.is_whole:
        return f"{GLYPHS['shape']}{brief_way(way_in(values, None))}"
    return "" if not np.prod(values.shape) > 1 else shape_of(values.shape)
