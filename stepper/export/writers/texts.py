"""The trace of a loop as JSON and CSV: what each iteration got, computed and carried."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator
from typing import Any

from stepper.engine.loops import output_role, roles_of
from stepper.export.figures.drawn_graph import ValueSummary
from stepper.export.figures.loop_trace import IterationTrace, LoopTrace
from stepper.export.picture import FigureContent, Picture
from stepper.ir.model import Layer, layer_site
from stepper.plain_values import answer_json, cell, json_number, json_text
from stepper.records import as_data

COLUMNS = (
    *("iteration", "id", "type", "name", "output", "element_type", "shape"),
    *("min", "max", "mean", "std", "nan", "inf", "numbers", "marks", "computed_by"),
)


def write_json(picture: Picture) -> str:
    """Return all facts of the iterations kept, as JSON with a schema number."""
    trace, content = _traced(picture), picture.request.content
    layer, roles = trace.loop.layer, roles_of(trace.loop.layer)
    report = {
        "loop": {**as_data(layer_site(layer, trace.file)), "path": trace.loop.name},
        "around": list(trace.around),
        "iterations": trace.count,
        "ended": trace.ended,
        "left_out": [[begin, end - 1] for begin, end in trace.left_out],
        "back_edges": [{"from": tail, "to": head} for head, tail in roles.merged_from.items()],
        "outputs": [_output_json(trace, index) for index in range(len(trace.loop.body.outputs))],
        "trace": [
            {
                "iteration": iteration.number,
                "condition": iteration.condition,
                "slices": [
                    {"parameter": id, "axis": cut.axis, "begin": cut.begin, "end": cut.end, "extent": cut.extent}
                    for id, cut in iteration.slices.items()
                ],
                "values": [
                    {
                        "layer": as_data(layer_site(layer, trace.file)),
                        "output": output,
                        **_value_json(value),
                        "computed_by": _computed_by(trace, layer, content) or None,
                    }
                    for layer, output, value in _traced_values(trace, iteration)
                ],
            }
            for iteration in trace.iterations
        ],
    }
    return json_text(answer_json(report), 1) + "\n"


def _output_json(trace: LoopTrace, index: int) -> dict[str, Any]:
    entry = trace.loop.body.outputs[index]
    scan = trace.scan(entry.output)
    found = {"output": entry.output, "result": entry.result, "role": output_role(entry)}
    return {**found, "slicing": as_data(entry.slicing), "order": None if scan is None else scan.order}


def _computed_by(trace: LoopTrace, layer: Layer, content: FigureContent) -> str:
    """Return the partners that computed a value."""
    return ", ".join(content.computed_by(trace.loop.body.graph, [layer.id]))


def _value_json(value: ValueSummary) -> dict[str, Any]:
    found = value.statistics
    numbers = {} if found is None else {key: getattr(found, key) for key in ("min", "max", "mean", "std", "nan")}
    return {
        "element_type": value.type,
        "shape": list(value.shape),
        **{key: json_number(number) for key, number in numbers.items()},
        "inf": None if found is None else found.infinite,
        "numbers": value.numbers or None,
        "marks": [str(mark) for mark in value.marks],
    }


def _traced_values(trace: LoopTrace, iteration: IterationTrace) -> Iterator[tuple[Layer, int, ValueSummary]]:
    """Yield the values of an iteration in the order of the file; Constants and Results have none of their own."""
    for layer in trace.loop.body.graph.layers:
        if layer.type in ("Constant", "Result"):
            continue
        for output in range(len(layer.outputs)):
            value = iteration.values.get((layer.id, output))
            if value is not None:
                yield layer, output, value


def write_csv(picture: Picture) -> str:
    """Return a row for each value of each iteration kept."""
    trace, content = _traced(picture), picture.request.content
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(COLUMNS)
    for iteration in trace.iterations:
        for layer, output, value in _traced_values(trace, iteration):
            row = {"id": layer.id, "type": layer.type, "name": layer.name, "output": output, **_value_json(value)}
            shape, marks = "x".join(map(str, value.shape)), "; ".join(map(str, value.marks))
            cells = {**row, "iteration": iteration.number, "shape": shape, "marks": marks}
            cells["computed_by"] = _computed_by(trace, layer, content)
            found = [cells.get(column) for column in COLUMNS]
            writer.writerow([cell(one) if isinstance(one, str) else one for one in found])
    return text.getvalue()


def _traced(picture: Picture) -> LoopTrace:
    assert picture.trace is not None, "a format of Subject.RUN"
    return picture.trace
