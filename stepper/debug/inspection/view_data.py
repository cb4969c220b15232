"""Views of a stop as JSON: the views of views.py with layers and tensors as in all answers."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from stepper.debug.inspection.views import (
    BackEdgeView,
    BranchView,
    InputView,
    LevelView,
    LoopView,
    OperationView,
    OutputView,
    ScanView,
    SliceView,
    StopView,
    TripView,
    ValueView,
)
from stepper.element_types import Array
from stepper.ir.model import Model, Slicing, layer_data
from stepper.plain_values import tensor_json
from stepper.records import as_data


class ViewData:
    """Writes the views of one model."""

    def __init__(self, model: Model) -> None:
        self.model = model

    def stop(self, view: StopView) -> dict[str, Any]:
        """Return everything that a stop shows."""
        return {
            "tick": view.tick,
            "place": view.place,
            "levels": levels_data(view.levels),
            "done": None if view.done is None else self.operation(view.done),
            "next": None if view.next is None else self.operation(view.next),
            "loop": None if view.loop is None else self.loop(view.loop),
            "branch": None if view.branch is None else self.branch(view.branch),
            "outputs": None if view.outputs is None else [tensor_json(output) for output in view.outputs],
        }

    def operation(self, view: OperationView) -> dict[str, Any]:
        """Return an operation with its inputs and outputs."""
        return {
            "layer": layer_data(view.layer, self.model),
            "index": view.index,
            "inputs": [self.value(value) for value in view.inputs],
            "outputs": [self.value(value) for value in view.outputs],
            "computed_by": view.computed_by,
        }

    def loop(self, view: LoopView) -> dict[str, Any]:
        """Return a loop: its count, its port map, its back edges and its concatenated outputs."""
        return {
            "layer": layer_data(view.layer, self.model),
            "trip": trip_data(view),
            "ports": self.ports(view),
            "back_edges": [self.back_edge(edge) for edge in view.back_edges],
            "scans": [scan_data(scan) for scan in view.scans],
        }

    def branch(self, view: BranchView) -> dict[str, Any]:
        """Return the side of an If that runs."""
        return {
            "layer": layer_data(view.layer, self.model),
            "side": view.side,
            "condition": view.condition.value,
            "ports": self.ports(view),
        }

    def ports(self, view: LoopView | BranchView) -> list[dict[str, Any]]:
        """Return the port map."""
        return [
            *(self._port("input", entry, entry.input, entry.slicing) for entry in view.inputs),
            *(self._port("output", entry, entry.output, None) for entry in view.outputs),
        ]

    def _port(
        self, direction: str, entry: InputView | OutputView, port: int | None, slicing: Slicing | None
    ) -> dict[str, Any]:
        cut = entry.slice if isinstance(entry, InputView) else None
        return {
            "direction": direction,
            "role": str(entry.role),
            "port": port,
            "line": entry.line,
            "inner": self.value(entry.inner),
            "outer": None if entry.outer is None else self.value(entry.outer),
            "slicing": as_data(slicing),
            "slice": None if cut is None else _slice(cut),
            "why": entry.why,
        }

    def back_edge(self, edge: BackEdgeView) -> dict[str, Any]:
        """Return a back edge with the values at both ends."""
        return {
            "result": self.value(edge.result),
            "parameter": self.value(edge.parameter),
            "line": edge.line,
            "came_in": _tensor(edge.came_in),
            "goes_out": _tensor(edge.goes_out),
            "comes_next": _tensor(edge.comes_next),
            "marks": list(edge.marks),
            "counts": edge.counts,
            "why": edge.why,
        }

    def value(self, view: ValueView) -> dict[str, Any]:
        """Return a value, with what computes it."""
        return {
            "name": view.name,
            "layer": None if view.layer is None else layer_data(view.layer, self.model),
            "output": view.output,
            "origin": str(view.origin),
            "value": _tensor(view.array),
            "absent": view.absent,
        }


def levels_data(levels: Iterable[LevelView]) -> list[dict[str, Any]]:
    """Return the frames of the stack, from the model's own graph inwards."""
    names = ("depth", "kind", "name", "iteration", "phase")
    return [{name: getattr(level, name) for name in names} for level in levels]


def trip_data(loop: LoopView) -> dict[str, Any]:
    """Return how often a loop runs, and its condition."""
    trip: TripView = loop.trip
    return {
        "maximum": trip.maximum,
        "executed": trip.executed,
        "total": trip.total,
        "origin": trip.origin,
        "ended": None if trip.ended is None else str(trip.ended),
        "sentence": trip.sentence,
        "condition": None if loop.condition is None else loop.condition.value,
    }


def _slice(cut: SliceView) -> dict[str, int]:
    return {name: getattr(cut, name) for name in ("axis", "begin", "end", "extent", "count")}


def scan_data(scan: ScanView) -> dict[str, Any]:
    """Return a concatenated output while it grows."""
    names = ("output", "line", "result", "axis", "order", "pieces", "shape", "final_shape", "declared", "why")
    return {name: getattr(scan, name) for name in names}


def _tensor(array: Array | None) -> dict[str, Any] | None:
    return None if array is None else tensor_json(array)
