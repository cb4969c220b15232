"""Rules of what a result depends on: outputs that no input reaches, slices that are never read."""

from __future__ import annotations

from collections.abc import Container
from typing import Any, Final

import numpy as np

from stepper.debug.overview.facts import RowKind
from stepper.diagnosis.check.probe import BodyValues, Probe
from stepper.diagnosis.check.subject import (
    Elsewhere,
    RunFindings,
    RunOfLoop,
    RunPlace,
    RunSubject,
    moment_address,
    place_of,
    shown,
)
from stepper.diagnosis.findings import NOTE, WARNING
from stepper.diagnosis.rule import RUN, found_by
from stepper.engine.compiler import ancestors
from stepper.engine.loops import EndReason
from stepper.engine.program import Operation
from stepper.ir.model import Layer, Source, layer_site

_LEAST_PIECES: Final = 3
_SHAPING: Final = ("ShapeOf", "Shape", "Range", "Parameter", "Constant", "Result")


@found_by(
    "D405",
    "output-ignores-inputs",
    RUN,
    WARNING,
    says="output '{output}' is the same to the last bit {whatever}{blocked}",
    means="what goes in does not reach it, though the graph leads there",
    do="look at what is multiplied by 0, selected, clamped or saturated on the way",
    source="one more run on other inputs",
)
def output_ignores_inputs(run: RunSubject) -> RunFindings:
    """Real outputs that do not change when all real inputs do; a note where they do, but not with one of these."""
    outputs = run.outputs
    if outputs is None or run.probe is None or run.elsewhere is None:
        return
    same = False
    for found in _without_effect(run, outputs, run.probe, run.elsewhere, None):
        same = True
        yield found
        if found.severity is None:
            return
    if same:
        return
    told = set[str]()
    for other in run.elsewhere_alone():
        for found in _without_effect(run, outputs, run.probe, other, other.inputs[0]):
            if str(found.details["output"]) not in told:
                told.add(str(found.details["output"]))
                yield found._replace(severity=NOTE)  # a limit may not depend on where it is approached from


def _without_effect(
    run: RunSubject, outputs: tuple[Any, ...], probe: Probe, other: Elsewhere, source: Layer | None
) -> RunFindings:
    """Yield the outputs that are the same in the other run, though they read what was another: all inputs, or one."""
    graph, results = run.model.graph, run.model.graph.results
    read = {one.id for one in other.inputs}
    site_of_input = None if source is None else layer_site(source, str(run.model.path))
    for result, ours, theirs in zip(results, outputs, other.outputs, strict=True):
        if not _is_real(ours) or not _same(ours, theirs) or read.isdisjoint(ancestors(graph, Source(result.id, 0))):
            continue
        found = _where(run, probe, other.probe)
        if found is None and (source is not None or _is_count(ours)):
            continue
        name = result.name
        if found is None:
            place = _made_at(run, result)
            yield shown(place, NOTE, output=name, operation=None, input=site_of_input)  # it may be chosen so
            continue
        loop_run, operation, iteration = found
        assert loop_run.subject is not None
        site = loop_run.subject.site(operation.layer)
        yield shown(place_of(loop_run, site, iteration), output=name, operation=site, input=site_of_input)


def _made_at(run: RunSubject, result: Layer) -> RunPlace:
    """Return the place of the operation of the model's graph that makes an output."""
    graph = run.model.graph
    source = graph.sources[result.id][0]
    maker = result if source is None else graph.by_id[source.layer]
    site = layer_site(maker, str(run.model.path))
    return RunPlace(site, (), (), moment_address(maker.name, ()), 1, site if maker.is_loop else None)


def _is_real(value: Any) -> bool:
    return isinstance(value, np.ndarray | np.generic) and value.dtype.kind == "f" and np.asarray(value).size > 0


def _is_count(value: Any) -> bool:
    """True for whole numbers, which mostly count or choose."""
    return bool((np.asarray(value) == np.floor(value)).all())


def _same(one: Any, other: Any) -> bool:
    first, second = np.asarray(one), np.asarray(other)
    return first.shape == second.shape and bool(np.array_equal(first, second, equal_nan=first.dtype.kind == "f"))


def _where(run: RunSubject, one: Probe, other: Probe) -> tuple[RunOfLoop, Operation, int] | None:
    """Return the first operation of a body that gives the same of what differs, in the last iteration seen of both."""
    for loop in run.loops():
        line = loop.facts.layer.line
        common = sorted(iteration for at, iteration in one.bodies if at == line and (at, iteration) in other.bodies)
        if not common or loop.subject is None:
            continue
        ours, theirs = one.bodies[line, common[-1]], other.bodies[line, common[-1]]
        found = _first_same(ours, theirs)
        if found is not None:
            return loop, found, common[-1]
    return None


def _first_same(ours: BodyValues, theirs: BodyValues) -> Operation | None:
    if ours.program.slots != theirs.program.slots:
        return None
    for one in ours.program.operations:
        results = [(ours.values[slot], theirs.values[slot]) for slot in one.outputs]
        if one.layer.type in _SHAPING or not all(_is_real(value) for value, _ in results):
            continue
        if not all(_same(*pair) for pair in results):
            continue
        if any(not _same(ours.values[slot], theirs.values[slot]) for slot in one.inputs):
            return one
    return None


@found_by(
    "D309",
    "slices-unread",
    RUN,
    WARNING,
    says="the loop ended after {iterations} iterations by its {limit_of}, and its input {parameter} has {slices} "
    "slices: the last {left} were never read",
    means="the loop ends before its input does: one iteration too few, if it was meant to cover it",
    do="look at what the count is computed from",
    source="specification/Loop-5, trip count",
)
def slices_unread(run: RunSubject) -> RunFindings:
    """Loops whose count, computed or compared, is one below the number of slices; a note for more."""
    for loop in run.loops():
        probe, ending, subject = run.probe, loop.activation.ending, loop.subject
        if probe is None or ending is None or ending.is_set or subject is None or subject.trip_count is not None:
            continue
        slices = probe.slice_counts.get(loop.facts.layer.line)
        row = next((row for row in loop.facts.rows if row.kind is RowKind.SLICE), None)
        left = 0 if slices is None else slices - loop.activation.iterations
        if row is None or slices is None or left != 1:
            continue
        limit = loop.activation.condition_limit
        by_count = limit is not None and limit.iterations == loop.activation.iterations
        if ending.reason is EndReason.TRIP_COUNT or by_count:
            yield shown(
                place_of(loop, row.inner, loop.activation.iterations - 1),
                iterations=loop.activation.iterations,
                by_condition=ending.reason is EndReason.CONDITION,
                parameter=row.inner,
                slices=slices,
                left=left,
            )


@found_by(
    "D310",
    "pieces-all-the-same",
    RUN,
    NOTE,
    says="all {iterations} pieces of {result} are the same: {layer} gives the same in each iteration, though "
    "{read} changes",
    means="what is joined says nothing of the iteration that it comes from",
    do="look at the other inputs of {layer}, and at what a buffer that is used again would hold",
)
def pieces_all_the_same(run: RunSubject) -> RunFindings:
    """Concatenated outputs whose pieces are computed from what changes, and never change."""
    for loop in run.loops():
        subject, probe, count = loop.subject, run.probe, loop.activation.iterations
        if subject is None or probe is None or count < _LEAST_PIECES or loop.facts.total != count:
            continue
        looked = [body for (line, _), body in sorted(probe.bodies.items()) if line == loop.facts.layer.line]
        for row, history in zip(loop.facts.rows, loop.activation.values, strict=True):
            if row.kind is not RowKind.CONCATENATED or history is None or history.unchanged_since != 0:
                continue
            found = _where_it_stops(looked, subject.ancestors(subject.given_to(row.inner.id)))
            if found is not None:
                layer, read = (subject.site(one) for one in found)
                yield shown(place_of(loop, layer, 0), iterations=count, result=row.inner, layer=layer, read=read)


def _where_it_stops(looked: list[BodyValues], around: Container[int]) -> tuple[Layer, Layer] | None:
    """Return the last of these layers that gives the same in all iterations, of what changes; and what it reads."""
    if not looked:
        return None
    program = looked[0].program
    changing = {
        slot
        for slot in range(len(looked[0].values))
        if any(not _same(looked[0].values[slot], one.values[slot]) for one in looked[1:])
    }
    stopping = [
        (one, slot)
        for one in program.operations
        if one.layer.id in around and one.layer.type not in _SHAPING and not changing.intersection(one.outputs)
        for slot in one.inputs
        if slot in changing
    ]
    if not stopping:
        return None
    operation, slot = stopping[-1]
    maker = next((one.layer for one in program.operations if slot in one.outputs), None)
    return operation.layer, maker or program.parameter(slot)
