"""Views of a stop as lines of text and as JSON, and sentences on the facts of a run."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from enum import StrEnum
from typing import Any

import numpy as np

from stepper.debug.causes.cause_texts import word_of
from stepper.debug.inspection.inspecting import iterations_text, open_shape_text
from stepper.debug.inspection.views import (
    BackEdgeView,
    BranchView,
    ConditionView,
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
from stepper.debug.overview.overview_facts import ConstantFacts, Overview, StateRecurrence
from stepper.engine.program import legend
from stepper.ir.model import Layer, LayerSite, Model, layer_data
from stepper.plain_values import storable, tensor_json
from stepper.query.expression_values import described
from stepper.records import as_data
from stepper.tensors.number_text import array_text, number_text
from stepper.wording import enumerated

_MOST_PRINTED = 200
_NARROWEST = 20

WIDTH = 80
"""Columns for values where there is no terminal that has others."""


def stop_lines(view: StopView) -> list[str]:
    """Return everything that a stop shows."""
    if view.outputs is not None:
        outputs = [f"  output {index}: {array_text(output)}" for index, output in enumerate(view.outputs)]
        return [f"tick {view.tick}: the run has ended", *outputs]
    lines = [f"tick {view.tick}: {view.place}", *stack_lines(view.levels)]
    lines += operation_lines("done", view.done) if view.done else []
    lines += operation_lines("next", view.next) if view.next else []
    if side := view.branch:
        title = f"branch: {side.layer.type} '{side.layer.name}', {side.side}"
        lines += [title, f"  {side.condition.sentence}", *port_lines(side)]
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


def titled_lines(title: str, lines: list[str], width: int) -> list[str]:
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
    maximum = "unlimited" if trip.maximum is None else f"at most {iterations_text(trip.maximum)}"
    if trip.maximum is not None and trip.total == trip.maximum:
        maximum = iterations_text(trip.maximum)
    lines = [f"  trip count: {maximum} ({trip.origin}); {trip.executed} done; {trip.sentence}"]
    return lines + ([f"  condition: {loop.condition.sentence}"] if loop.condition else [])


def port_lines(loop: LoopView | BranchView) -> list[str]:
    """Return the port map, two lines an entry: what it is, and what it does in this iteration."""
    lines: list[str] = []
    for entry in loop.inputs:
        source = "" if entry.outer is None else f"input {entry.input}, {value_text(entry.outer)} -> "
        inner = entry.inner.absent if entry.inner.array is None else array_text(entry.inner.array)
        lines += [f"  {entry.role}: {source}{entry.inner.source}: {inner}  (line {entry.line})", f"    {entry.why}"]
    for output in loop.outputs:
        lines += _output_lines(output)
    return lines


def _output_lines(entry: OutputView) -> list[str]:
    target = "" if entry.output is None else f" -> output {entry.output}"
    inner = entry.inner.absent if entry.inner.array is None else array_text(entry.inner.array)
    return [f"  {entry.role}: Result '{entry.inner.name}': {inner}{target}  (line {entry.line})", f"    {entry.why}"]


def edge_lines(edge: BackEdgeView) -> list[str]:
    """Return a back edge with the values at both ends."""
    lines = [f"  back edge: Result '{edge.result.name}' -> Parameter '{edge.parameter.name}'  (line {edge.line})"]
    values = (("came in", edge.came_in), ("goes out", edge.goes_out), ("comes next", edge.comes_next))
    shown = [f"{word} {array_text(array)}" for word, array in values if array is not None]
    if edge.change is not None:
        shown.append(f"largest difference {number_text(edge.change, 6)}")
    lines += [f"    {'; '.join([*shown, *edge.marks])}"] if shown else []
    return [*lines, f"    {edge.why}"]


def scan_lines(scan: ScanView) -> list[str]:
    """Return a concatenated output as far as it has grown."""
    final = open_shape_text(scan.final_shape)
    declared = " as declared" if scan.declared else ""
    now = "no piece yet" if scan.shape is None else f"{scan.pieces} pieces, now {open_shape_text(scan.shape)}"
    if scan.pieces and scan.shape is None:
        now = f"{scan.pieces} pieces that cannot be joined"
    return [
        f"  scan: output {scan.output}, Result '{scan.result}' along axis {scan.axis}  (line {scan.line})",
        f"    {now}, at the end {final}{declared}: {scan.order}",
    ]


# --- the same as JSON -----------------------------------------------------------------------------------------------


_FIELDS: Mapping[type, str] = {
    StopView: "tick place levels done next loop branch outputs",
    LevelView: "depth kind name iteration phase",
    OperationView: "layer index inputs outputs computed_by",
    LoopView: "layer trip ports back_edges scans",
    BranchView: "layer side condition ports",
    TripView: "maximum executed total origin ended sentence",
    InputView: "direction role port line inner outer slicing slice why",
    OutputView: "direction role port line inner outer slicing slice why",
    SliceView: "axis begin end extent count",
    BackEdgeView: "result parameter line came_in goes_out comes_next marks counts why",
    ScanView: "output line result axis order pieces shape final_shape declared why",
    ValueView: "name layer output origin value=array absent",
}
"""The keys of each view, with the name of the attribute where that is another."""


def view_data(view: Any, model: Model) -> Any:
    """Return a view as JSON has it, with layers and tensors as in all answers."""
    if isinstance(view, Layer):
        return layer_data(view, model)
    if isinstance(view, np.ndarray | np.generic):
        return tensor_json(view)
    if isinstance(view, ConditionView):
        return view.value
    if type(view) is tuple:
        return [view_data(one, model) for one in view]
    if type(view) not in _FIELDS:
        return str(view) if isinstance(view, StrEnum) else as_data(view)
    pairs = [name.partition("=") for name in _FIELDS[type(view)].split()]
    found = {key: view_data(getattr(view, name or key), model) for key, _, name in pairs}
    return {**found, "trip": trip_data(view, model)} if isinstance(view, LoopView) else found


def trip_data(loop: LoopView, model: Model) -> dict[str, Any]:
    """Return how often a loop runs, and its condition."""
    return {**view_data(loop.trip, model), "condition": view_data(loop.condition, model)}


_MOST_NAMED = 3


def none_born(overview: Overview, named: Callable[[LayerSite], str], so_far: str = "") -> str:
    """Return that no operation makes a NaN or Inf, and which there are all the same: came in, or are in Constants.

    `named` gives the names of layers; `so_far` is said where more may be found.
    """
    given = [word_of(kind) for kind in overview.seen_non_finite]
    constants = constants_text(overview, named)
    if not given and not constants:
        return f"no NaN, no Inf {so_far}".rstrip()
    came = f"{' and '.join(given)} came in, " if given else ""
    other = "other " if any(one.output is not None for one in overview.constants or ()) else ""
    none = ", ".join(filter(None, (f"{came}no {other}operation makes NaN or Inf", so_far)))
    return "; ".join(filter(None, (none, constants)))


def constants_text(overview: Overview, named: Callable[[LayerSite], str]) -> str:
    """Return which Constants have NaN or Inf, and which operations make them of Constants alone; or nothing."""
    found = overview.constants or ()
    told = [" ".join(_constant_words(one, named)) for one in found[:_MOST_NAMED]]
    more = len(found) - len(told)
    return ", ".join([*told, *([f"{more} more"] if more else [])])


def _constant_words(one: ConstantFacts, named: Callable[[LayerSite], str]) -> Iterator[str]:
    """Yield the words on a Constant, or an operation: neutral ones, for a mask is meant to have Inf."""
    counts = " and ".join(f"{word} in {count:,}" for word, count in (("NaN", one.nan), ("Inf", one.infinite)) if count)
    yield f"{one.layer.type} {named(one.layer)}"
    yield (
        f"has {counts} of {one.size:,}" if one.output is None else f"makes {counts} of {one.size:,} of Constants alone"
    )


def recurrence_text(found: StateRecurrence, *, plural: bool = False, brief: bool = False) -> str:
    """Return how a state comes again, and from which iteration on, for a sentence that begins with what it is.

    Where that is not known, when it was noticed.
    """
    s, which = "" if plural else "s", "" if brief else "iteration "
    how = f"stay{s} the same" if found.period == 1 else f"repeat{s} every {found.period:,} iterations"
    if found.since is None:
        return f"{how}, as was noticed in {which}{found.iteration:,}"
    return f"{how} from {which}{found.since:,} on"


def state_named(found: StateRecurrence, named: Callable[[LayerSite], str]) -> str:
    """Return what comes again: the values by name, of many how many there are; `its state` where that is the whole."""
    if not found.decides:
        return "its state"
    names = [named(one) for one in found.values]
    return enumerated(names) if len(names) < 4 else f"{names[0]}, {names[1]} and {len(names) - 2} more"


def state_sentence(found: StateRecurrence, named: Callable[[LayerSite], str]) -> str:
    """Return what comes again, how, and from when on: `x and y repeat every 2 iterations from iteration 5 on`."""
    is_several = found.decides and len(found.values) > 1
    return f"{state_named(found, named)} {recurrence_text(found, plural=is_several)}"
