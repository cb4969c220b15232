"""Rows of a run of a loop over all its iterations: what was seen around the moment, and what the whole run has."""

from __future__ import annotations

from msgspec.structs import replace

from stepper.debug.iterations.statistics import HistoryView, RowValues
from stepper.debug.overview.facts import ActivationFacts, LoopFacts, Overview
from stepper.engine.frames import Frame
from stepper.tensors.histories import ValueHistory

_Pair = tuple[ValueHistory | None, ValueHistory]


class WholeRuns:
    """Fills up histories around moments from the facts of the whole run; what was joined is kept."""

    def __init__(self) -> None:
        self._joined: dict[int, tuple[_Pair, ValueHistory]] = {}

    def filled_up(self, view: HistoryView, frame: Frame, known: Overview | None) -> HistoryView:
        """Return the histories of a loop's frame with all iterations of its run, as far as they are known."""
        found = None if known is None or not view.rows else _run_of(frame, known)
        if found is None:
            return view
        loop, run = found
        rows = []
        for index, (one, row, whole) in enumerate(zip(view.rows, loop.rows, run.values, strict=False)):
            is_same = (one.row.kind, one.row.inner, one.row.port) == (row.kind, row.inner, row.port)
            values = self._join(index, one.values, whole) if is_same and whole is not None else one.values
            rows.append(RowValues(one.row, values))
        return replace(view, rows=(*rows, *view.rows[len(rows) :]))

    def _join(self, index: int, near: ValueHistory | None, whole: ValueHistory) -> ValueHistory:
        kept = self._joined.get(index)
        if kept is None or kept[0][0] is not near or kept[0][1] is not whole:
            is_alike = near is not None and near.numbers.shape[::2] == whole.numbers.shape[::2]
            joined = near.filled_up(whole) if near is not None and is_alike else whole
            kept = self._joined[index] = (near, whole), joined
        return kept[1]


def _run_of(frame: Frame, known: Overview) -> tuple[LoopFacts, ActivationFacts] | None:
    """Return what is known of the run of a loop that a frame is in; None where it is in none that is kept."""
    activation = frame.activation
    if activation is None:
        return None
    layer = activation.operation.layer
    for loop in known.loops:
        if loop.layer.id == layer.id and loop.depth == len(frame.program.path) - 1:
            run = next((one for one in loop.activations if one.tick == activation.entered), None)
            if run is not None:
                return loop, run
    return None
