"""Views of a stop as lines of text and as JSON."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

import numpy as np

from stepper.debug.inspection import explanations
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
from stepper.engine.partners import legend
from stepper.ir.model import Model, Slicing, layer_data
from stepper.plain_values import storable, tensor_json
from stepper.query.expression_values import described
from stepper.records import as_data
from stepper.tensors.number_text import array_text

_MOST_PRINTED: Final = 200
_NARROWEST: Final = 20

WIDTH: Final = 80
"""Columns for values where there is no terminal that has others."""


def stop_lines(view: StopView) -> list[str]:
    """Return everything that a stop shows."""
    if view.outputs is not None:
        outputs = [f"  output {index}: {array_text(output)}" for index, output in enumerate(view.outputs)]
        return [f"tick {view.tick}: the run has ended", *outputs]
    lines = [f"tick {view.tick}: {view.place}", *stack_lines(view.levels)]
    lines += operation_lines("done", view.done) if view.done else []
    lines += operation_lines("next", view.next) if view.next else []
    lines += branch_lines(view.branch) if view.branch else []
    return lines + (loop_lines(view.loop) if view.loop else [])


def stack_lines(levels: Iterable[LevelView]) -> list[str]:
    """Return the frame stack, from the model's own graph inwards."""
    return [f"  {level.depth}  {_title(level)}: {level.phase}" for level in levels]


def _title(level: LevelView) -> str:
    if level.depth == 0:
        return "model"
    count = f", {level.word} {level.count}" if level.iteration is not None else ""
    return f"{level.kind} '{level.name}'{count}"


def operation_lines(word: str, operation: OperationView) -> list[str]:
    """Return an operation with its inputs and outputs; `word` says what about it: done or next."""
    lines = [f"{word}: {operation.layer.type} '{operation.layer.name}'{by_text(operation.computed_by)}"]
    lines += [f"  input {index}: {value_text(value)}" for index, value in enumerate(operation.inputs)]
    return lines + [f"  output {index}: {value_text(value)}" for index, value in enumerate(operation.outputs)]


def by_text(computed_by: str) -> str:
    """Behind an operation or a value: who else computes it, with the mark of that; empty for numpy."""
    return f"  ({legend(computed_by)})" if computed_by else ""


def value_text(value: ValueView) -> str:
    """Return a value: what computes it, type and shape, and its numbers where they are few."""
    shown = value.absent if value.array is None else array_text(value.array)
    return value.source if shown == value.source else f"{value.source}: {shown}"


def value_lines(value: Any, width: int = WIDTH, digits: int = 8) -> list[str]:
    """Return a value as `print` shows it, in lines of at most `width`: in full where it is not too large."""
    if not isinstance(value, np.ndarray | np.generic):
        return [str(value)]
    plain = storable(value)
    shown = np.array2string(
        plain, separator=", ", threshold=_MOST_PRINTED, precision=digits, max_line_width=max(width, _NARROWEST)
    )
    return [f"{described(value)} {shown}"] if np.ndim(value) == 0 else [described(value), *shown.splitlines()]


def titled_lines(title: str, lines: list[str], width: int = WIDTH) -> list[str]:
    """Return a value with a title: in one line where they fit there, else with the numbers below."""
    joined = f"{title}  {' '.join(lines)}" if title else " ".join(lines)
    if len(joined) <= width or len(lines) == 1:
        return [joined]
    return [f"{title}  {lines[0]}" if title else lines[0], *(f"  {line}" for line in lines[1:])]


def loop_lines(loop: LoopView) -> list[str]:
    """Return a loop: its count and condition, its port map, back edges and scan outputs."""
    lines = [f"loop: {loop.layer.type} '{loop.layer.name}', {loop.level.word} {loop.level.count}"]
    lines += trip_lines(loop)
    lines += port_lines(loop)
    lines += [line for edge in loop.back_edges for line in edge_lines(edge)]
    return lines + [line for scan in loop.scans for line in scan_lines(scan)]


def trip_lines(loop: LoopView) -> list[str]:
    """Return how often the loop runs, and its condition."""
    trip = loop.trip
    maximum = "unlimited" if trip.maximum is None else f"at most {explanations.iterations(trip.maximum)}"
    if trip.maximum is not None and trip.total == trip.maximum:
        maximum = explanations.iterations(trip.maximum)
    lines = [f"  trip count: {maximum} ({trip.origin}); {trip.executed} done; {trip.sentence}"]
    return lines + ([f"  condition: {loop.condition.sentence}"] if loop.condition else [])


def port_lines(loop: LoopView | BranchView) -> list[str]:
    """Return the port map, two lines an entry: what it is, and what it does in this iteration."""
    lines: list[str] = []
    for entry in loop.inputs:
        lines += _input_lines(entry)
    for output in loop.outputs:
        lines += _output_lines(output)
    return lines


def _input_lines(entry: InputView) -> list[str]:
    source = "" if entry.outer is None else f"input {entry.input}, {value_text(entry.outer)} -> "
    inner = entry.inner.absent if entry.inner.array is None else array_text(entry.inner.array)
    return [f"  {entry.role}: {source}{entry.inner.source}: {inner}  (line {entry.line})", f"    {entry.why}"]


def _output_lines(entry: OutputView) -> list[str]:
    target = "" if entry.output is None else f" -> output {entry.output}"
    inner = entry.inner.absent if entry.inner.array is None else array_text(entry.inner.array)
    return [f"  {entry.role}: Result '{entry.inner.name}': {inner}{target}  (line {entry.line})", f"    {entry.why}"]


def edge_lines(edge: BackEdgeView) -> list[str]:
    """Return a back edge with the values at both ends."""
    lines = [f"  back edge: Result '{edge.result.name}' -> Parameter '{edge.parameter.name}'  (line {edge.line})"]
    values = (("came in", edge.came_in), ("goes out", edge.goes_out), ("comes next", edge.comes_next))
    shown = [f"{word} {array_text(array)}" for word, array in values if array is not None]
    if edge.change is not None and edge.change.max_abs is not None:
        shown.append(f"largest difference {edge.change.max_abs:.6g}")
    lines += [f"    {'; '.join([*shown, *edge.marks])}"] if shown else []
    return [*lines, f"    {edge.why}"]


def scan_lines(scan: ScanView) -> list[str]:
    """Return a concatenated output as far as it has grown."""
    final = explanations.shape(scan.final_shape)
    declared = " as declared" if scan.declared else ""
    now = "no piece yet" if scan.shape is None else f"{scan.pieces} pieces, now {explanations.shape(scan.shape)}"
    if scan.pieces and scan.shape is None:
        now = f"{scan.pieces} pieces that cannot be joined"
    return [
        f"  scan: output {scan.output}, Result '{scan.result}' along axis {scan.axis}  (line {scan.line})",
        f"    {now}, at the end {final}{declared}: {scan.order}",
    ]


def branch_lines(branch: BranchView) -> list[str]:
    """Return a side of an If: why it runs, and its port map."""
    title = f"branch: {branch.layer.type} '{branch.layer.name}', {branch.side}"
    return [title, f"  {branch.condition.sentence}", *port_lines(branch)]


# --- the same as JSON -----------------------------------------------------------------------------------------------


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
            "slice": None if cut is None else _slice_data(cut),
            "why": entry.why,
        }

    def back_edge(self, edge: BackEdgeView) -> dict[str, Any]:
        """Return a back edge with the values at both ends."""
        return {
            "result": self.value(edge.result),
            "parameter": self.value(edge.parameter),
            "line": edge.line,
            "came_in": _tensor_data(edge.came_in),
            "goes_out": _tensor_data(edge.goes_out),
            "comes_next": _tensor_data(edge.comes_next),
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
            "value": _tensor_data(view.array),
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


def _slice_data(cut: SliceView) -> dict[str, int]:
    return {name: getattr(cut, name) for name in ("axis", "begin", "end", "extent", "count")}


def scan_data(scan: ScanView) -> dict[str, Any]:
    """Return a concatenated output while it grows."""
    names = ("output", "line", "result", "axis", "order", "pieces", "shape", "final_shape", "declared", "why")
    return {name: getattr(scan, name) for name in names}


def _tensor_data(array: Array | None) -> dict[str, Any] | None:
    return None if array is None else tensor_json(array)
