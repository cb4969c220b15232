"""Rules of what loops carry in a run, how they end, and what depends on the inputs."""

from __future__ import annotations

from collections.abc import Callable, Container
from typing import Any

import numpy as np

from stepper.debug.overview.overview_facts import Row, RowKind, RunState
from stepper.diagnosis.check.probe import BodyValues, Probe, place_of
from stepper.diagnosis.check.subject import (
    CarriedRow,
    Elsewhere,
    RunFindings,
    RunOfLoop,
    RunPlace,
    RunSubject,
    moment_address,
    repetition,
    shown,
)
from stepper.diagnosis.lint.subjects import COMPARISONS, PASSING
from stepper.diagnosis.rule import NOTE, found_by
from stepper.element_types import Array
from stepper.engine.compiler import ancestors, decided_by
from stepper.engine.loops import EndReason
from stepper.engine.program import Operation
from stepper.ir.model import NO_LAYER, Layer, LayerSite, Source, layer_site
from stepper.ops.operands import shape_text
from stepper.tensors.histories import KeptStatistic, ValueHistory

# Rules of what loops carry: states that never change, repeat, or grow without bound.


_LEAST = 3
_LEAST_SHRINKING = 10
_GONE = 1e-12
_RATIO = 1.2
_LARGE = 1e3
_ADDITIONS = ("Add", "Subtract")
_CHOOSING = ("If", "Select", "Maximum", "Minimum", "Clamp")


@found_by
def state_repeats(run: RunSubject) -> RunFindings:
    """Loops that go round in a circle until something else ends them."""
    for loop in run.loops():
        found = repetition(loop)
        if found is None or loop.subject is None or loop.subject.body_condition is not None:
            continue
        if loop.activation.ending is None:
            continue  # no limit has ended it
        if loop.activation.iterations - found.since < 2 * found.period + _LEAST:
            continue
        yield loop.shown(
            found.value.row.inner,
            found.since,
            period=found.period,
            since=found.since,
            limit=loop.activation.iterations,
        )


@found_by
def state_is_stuck(run: RunSubject) -> RunFindings:
    """Real values that are computed anew in each iteration, of what changes, and are always the same."""
    for loop in run.loops():
        if loop.activation.iterations < _LEAST or loop.subject is None:
            continue
        for value in loop.carried():
            history = value.history
            if not value.is_real or history.unchanged_since != 0 or not np.isfinite(history.numbers).all():
                continue
            found = _why_stuck(run, loop, value.row)
            if found is None or not _entered_the_same(history):
                continue
            yield loop.shown(
                value.row.inner,
                0,
                NOTE if found[1] is not None and _is_masked(run, loop, found[1]) else None,
                iterations=loop.activation.iterations,
                maker=found[0],
                zero=found[1],
            )


def _entered_the_same(history: ValueHistory) -> bool:
    entered, first = history.entered, history.numbers[:, :1]
    # A value without elements has no numbers.
    return entered is not None and first.size > 0 and np.array_equal(entered, first[:, 0])


def _why_stuck(run: RunSubject, loop: RunOfLoop, row: Row) -> tuple[LayerSite, LayerSite | None] | None:
    """Return what makes the new state, and what it adds if that is 0; None where it depends on nothing that changes."""
    subject, parameter = loop.subject, row.inner.id
    if subject is None or row.result is None:
        return None
    source = subject.origin(subject.given_to(row.result.id))
    if source is None or source.layer == parameter:
        return None
    around = subject.ancestors(source)
    moving = {entry.parameter for entry in subject.roles.sliced} | set(subject.roles.current_iteration)
    moving |= {value.row.inner.id for value in loop.carried() if value.history.unchanged_since != 0}
    if parameter not in around or not around & moving:
        return None
    maker = subject.inner.by_id[source.layer]
    if maker.type in _CHOOSING:
        return None  # that it keeps the old one is meant
    for one in subject.inner.sources[maker.id] if maker.type in _ADDITIONS else ():
        added = subject.inner.layer_of(subject.origin(one))
        value = None if added.id in (NO_LAYER.id, parameter) else run.value(loop, added.name, 0)
        if value is not None and value.size and not value.any():
            return subject.site(maker), subject.site(added)
    return subject.site(maker), None


def _is_masked(run: RunSubject, loop: RunOfLoop, added: LayerSite) -> bool:
    """Return True for a product with zeros that are given, or that a test gives: such a mask is meant."""
    subject = loop.subject
    assert subject is not None
    layer = subject.inner.by_id[added.id]
    for source in subject.inner.sources[layer.id] if layer.type == "Multiply" else ():
        factor = subject.inner.layer_of(source)
        value = run.value(loop, factor.name, 0)
        if value is None or value.any():
            continue
        while factor.type in PASSING:
            factor = subject.inner.maker(factor)
        if factor.type in (*COMPARISONS, *_LOGICAL):
            return True
        if factor.type == "Parameter" and factor.id not in subject.roles.merged_from:
            return True
    return False


_LOGICAL = ("LogicalAnd", "LogicalOr", "LogicalNot", "LogicalXor")


@found_by
def state_grows(run: RunSubject) -> RunFindings:
    """Real states whose magnitude grows like a power of the iteration's number in the exponent."""
    return _exponential_states(run, _growth)


def _exponential_states(
    run: RunSubject, look: Callable[[RunOfLoop, CarriedRow], tuple[int, float, Array, Any] | None]
) -> RunFindings:
    """Yield the real states in which something is found: the iteration, the factor, the magnitudes, the last one."""
    for loop in run.loops():
        for value in loop.carried():
            found = look(loop, value) if value.is_real and value.counter is None else None
            if found is not None:
                iteration, factor, magnitudes, last = found
                details: dict[str, Any] = {"factor": factor, "first": float(magnitudes[0]), "last": float(last)}
                if look is _growth:
                    details["passes"] = iteration
                yield loop.shown(value.row.inner, iteration, **details)


def _magnitudes(history: ValueHistory, least: int) -> tuple[Array, Array, Array] | None:
    """Return all magnitudes; and those that are finite and not 0, at least so many, behind their iterations."""
    if history.changes_shape or history.count < least or not history.elements:
        return None
    numbers = history.numbers[0 if history.is_whole else KeptStatistic.RMS].astype(np.float64)
    with np.errstate(all="ignore"):
        magnitude = np.sqrt(np.square(numbers).mean(axis=1))
    good = np.isfinite(magnitude) & (magnitude > 0)
    return None if good.sum() < least else (magnitude, history.spans[good, 0].astype(np.float64), magnitude[good])


def _exponential(steps: Array, magnitudes: Array) -> tuple[float, float]:
    """Return the factor of an iteration, and how far the logarithms are off a straight line, relative to their range.

    An exponential follows that line, a sum that becomes large does not.
    """
    logs = np.log(magnitudes)
    slope, offset = np.polyfit(steps, logs, 1)
    left = logs - (slope * steps + offset)
    return float(np.exp(slope)), float(left.std()) / max(float(np.ptp(logs)), 1e-9)


def _growth(_loop: RunOfLoop, value: CarriedRow) -> tuple[int, float, Array, Any] | None:
    """Return the first iteration at 1000, factor, magnitudes and the last of them; None without such a growth."""
    history = value.history
    found = _magnitudes(history, 5)
    if found is None or found[2][-1] < _LARGE:
        return None
    _all, steps, magnitudes = found
    half = len(steps) // 2  # the beginning may still be of another kind
    factor, off = _exponential(steps[half:], magnitudes[half:])
    if factor < _RATIO or off > 0.15:
        return None
    with np.errstate(all="ignore"):
        largest = np.abs(history.numbers[0].astype(np.float64)).max(axis=1)
    above = np.flatnonzero(largest >= _LARGE)
    return int(history.spans[above[0], 0]), factor, magnitudes, magnitudes[-1]


@found_by
def state_vanishes(run: RunSubject) -> RunFindings:
    """Real states that shrink like a power of the iteration's number in the exponent, until nothing is left."""
    return _exponential_states(run, _decay)


def _is_asked(loop: RunOfLoop, row: Row) -> bool:
    """True if the condition of the loop reads a state: a remainder is to become small."""
    around = frozenset() if loop.subject is None else loop.subject.decides
    return row.inner.id in around or (row.producer is not None and row.producer.id in around)


def _decay(loop: RunOfLoop, value: CarriedRow) -> tuple[int, float, Array, Any] | None:
    """Return the last iteration, factor, magnitudes and the last one of a state that shrinks to nothing."""
    found = None if _is_asked(loop, value.row) else _magnitudes(value.history, _LEAST_SHRINKING)
    if found is None or not np.isfinite(found[0]).all() or found[2][-1] >= _GONE * found[2].max():
        return None
    everything, steps, magnitudes = found
    factor, off = _exponential(steps, magnitudes)
    if factor > 1 / _RATIO or off > 0.1:
        return None
    return loop.activation.iterations - 1, factor, magnitudes, everything[-1]


@found_by
def pieces_of_different_size(run: RunSubject) -> RunFindings:
    """Concatenated outputs of pieces that grow or shrink along the axis."""
    for loop in run.loops():
        for row, history in zip(loop.facts.rows, loop.activation.values, strict=True):
            if row.kind is not RowKind.CONCATENATED or row.appends or history is None or not history.changes_shape:
                continue
            change = history.shapes[-1] if history.shapes else None
            if change is None or len({one.shape for one in history.shapes}) < 2:
                continue
            yield loop.shown(
                row.inner,
                change.iteration,
                shape=shape_text(change.shape),
                iteration=change.iteration,
            )


# Rules of how a run and its loops end.


_MANY = 1_000


@found_by
def run_fails(run: RunSubject) -> RunFindings:
    """Errors of the run."""
    failure = run.overview.failure
    if failure is None:
        return
    place = failure.place
    layer = None if place is None or place.layer is None else LayerSite(*place.layer)
    around = () if place is None else tuple(LayerSite(*one.layer) for one in place.path)
    iterations = () if place is None else tuple(one.iteration for one in place.path if one.iteration is not None)
    loop = around[-1] if around else layer if layer is not None and layer.type in ("Loop", "TensorIterator") else None
    found = RunPlace(layer, around, iterations, "", run.overview.ticks, loop)
    yield shown(found, message=failure.reason or failure.message, faulty=None if layer == loop else layer)


@found_by
def loop_does_not_end(run: RunSubject) -> RunFindings:
    """Loops that were under way, after many iterations, when the time or the memory was over."""
    if run.overview.state not in (RunState.OUT_OF_TIME, RunState.OUT_OF_MEMORY):
        return
    for loop in run.loops():
        activation = loop.activation
        if activation.ending is not None or activation.limit is not None or activation.iterations < _MANY:
            continue
        subject = loop.subject
        result = None if subject is None else subject.condition_result
        has_condition = subject is not None and result is not None
        deciding = decided_by(subject.inner, subject.roles, subject.condition) if subject and has_condition else None
        stuck, since_when, growing = list[LayerSite](), list[int](), list[LayerSite]()
        layer: LayerSite | None = None
        first: int | None = None
        for value in loop.carried():
            since = value.history.unchanged_since
            if value.row.appends:
                growing.append(value.row.inner)
                layer, first = value.row.inner, None
            elif deciding is not None and value.row.inner.id not in deciding:
                continue  # it is not to blame
            elif since is not None and activation.iterations - since > _MANY // 2 and value.counter is None:
                stuck.append(value.row.inner)
                since_when.append(since)
                if layer is None:
                    layer, first = value.row.inner, since
        read = frozenset() if subject is None else subject.decides
        made = {row.inner.id for row in loop.facts.rows if row.producer is not None and row.producer.id in read}
        counting = [
            value
            for value in loop.carried()
            if value.counter is not None and value.counter.step and value.row.inner.id in read | made
        ]
        fixed = list[LayerSite]()
        if subject is not None and result is not None and not subject.can_change(result):
            fixed = [subject.name(one.parameter) for one in subject.roles.invariant if one.parameter in read]
        conditions = _comparisons(loop) or _comparisons(loop, of_counters=True)
        yield loop.shown(
            layer or loop.facts.layer,
            first,
            iterations=activation.iterations,
            conditions=tuple(conditions[-1:]),
            fixed=tuple(fixed),
            counters=() if stuck or growing else tuple(value.row.inner for value in counting),
            steps=tuple(value.counter.step for value in counting if value.counter is not None),
            has_condition=has_condition,
            stuck=tuple(stuck),
            since=tuple(since_when),
            is_final=deciding is not None and deciding <= {one.id for one in stuck},
            growing=tuple(growing),
            period=None if (repeated := repetition(loop)) is None else repeated.period,
        )


def _comparisons(loop: RunOfLoop, *, of_counters: bool = False) -> list[LayerSite]:
    """Return the comparisons behind the condition of a loop, but for those of counters, unless these are meant too."""
    subject = loop.subject
    if subject is None:
        return []
    made = {subject.inner.layer_of(subject.given_to(result)).id for result in subject.roles.merged_from.values()}
    counters = {value.row.inner.id for value in loop.carried() if value.counter is not None}
    counters |= set(subject.roles.current_iteration)
    found = []
    for key in sorted(subject.decides):
        layer = subject.inner.by_id[key]
        if layer.type not in COMPARISONS or key in made:
            continue
        reads = subject.ancestors(*map(subject.origin, subject.inner.sources[key]))
        parameters = {one for one in reads if subject.inner.by_id[one].type == "Parameter"}
        if of_counters or not parameters or parameters - counters:
            found.append(subject.site(layer))
    return found


@found_by
def runs_to_its_limit(run: RunSubject) -> RunFindings:
    """Loops whose condition waits for something that never comes."""
    for loop in run.loops():
        activation = loop.activation
        ending = activation.ending
        if ending is None or ending.is_set or activation.iterations < 2:
            continue
        limits = [activation.limit] if ending.reason is EndReason.TRIP_COUNT else []
        if ending.reason is EndReason.CONDITION and activation.condition_limit is not None:
            limits = [activation.condition_limit.iterations]
        asked = _comparisons(loop) if activation.iterations in limits else []
        if not asked:
            continue
        repeated = repetition(loop)
        latest = asked[-1]  # the others are mostly of an If around it
        yield loop.shown(
            latest,
            None,
            limit=activation.iterations,
            conditions=tuple(asked),
            is_negated=_is_negated(loop, latest.id),
            period=None if repeated is None else repeated.period,
        )


def _is_negated(loop: RunOfLoop, comparison: int) -> bool:
    """True if the condition of a loop is the negation of a comparison: the loop ends when that becomes true."""
    subject = loop.subject
    waiting = [] if subject is None or subject.condition is None else [(subject.condition.layer, False)]
    seen = set[int]()
    while waiting and subject is not None:
        key, is_odd = waiting.pop()
        if key == comparison:
            return is_odd
        if key not in seen and key in subject.inner.by_id:
            seen.add(key)
            is_odd ^= subject.inner.by_id[key].type == "LogicalNot"
            waiting += [(one.layer, is_odd) for one in subject.inner.sources[key] if one is not None]
    return False


@found_by
def ends_at_once(run: RunSubject) -> RunFindings:
    """Loops whose computed condition is false after the first iteration."""
    for loop in run.loops():
        ending = loop.activation.ending
        if ending is None or ending.reason is not EndReason.CONDITION or loop.activation.iterations != 1:
            continue
        verdict = ending.verdict
        if verdict is None or ending.is_set or loop.activation.limit == 1 or loop.facts.total != loop.facts.runs:
            continue
        root = verdict.root
        if not root.operands or all(operand.is_constant for operand in root.operands):
            continue
        sides = [one.value for one in root.operands if one.value is not None]
        left, right = sides if len(sides) == 2 else (None, None)
        yield loop.shown(root.layer, 0, limit=loop.activation.limit, condition=root.layer, left=left, right=right)


@found_by
def loop_not_entered(run: RunSubject) -> RunFindings:
    """Loops that were reached and never ran, on what the inputs say."""
    for loop in run.loops():
        activation = loop.activation
        ending = activation.ending
        if ending is None or ending.is_set or activation.iterations or loop.facts.total:
            continue
        yield loop.shown(loop.facts.layer, None, why=ending.reason.value)


# Rules of what a result depends on: outputs that no input reaches, slices that are never read.


_LEAST_PIECES = 3
_SHAPING = ("ShapeOf", "Shape", "Range", "Parameter", "Constant", "Result")


@found_by
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
            maker = graph.maker(result)
            made = layer_site(maker, str(run.model.path))
            place = RunPlace(made, (), (), moment_address(maker.name, ()), 1, made if maker.is_loop else None)
            yield shown(place, NOTE, output=name, operation=None, input=site_of_input)  # it may be chosen so
            continue
        loop_run, operation, iteration = found
        assert loop_run.subject is not None
        site = loop_run.subject.site(operation.layer)
        yield loop_run.shown(site, iteration, output=name, operation=site, input=site_of_input)


def _is_real(value: Any) -> bool:
    return isinstance(value, np.ndarray | np.generic) and value.dtype.kind == "f" and np.asarray(value).size > 0


def _is_count(value: Any) -> bool:
    """True for whole numbers, which mostly count or choose."""
    return bool((np.asarray(value) == np.floor(value)).all())


def _same(one: Any, other: Any) -> bool:
    return np.array_equal(one, other, equal_nan=np.asarray(one).dtype.kind == "f")


def _where(run: RunSubject, one: Probe, other: Probe) -> tuple[RunOfLoop, Operation, int] | None:
    """Return the first operation of a body that gives the same of what differs, in the last iteration seen of both."""
    for loop in run.loops():
        place = place_of(loop.facts)
        common = sorted(iteration for at, iteration in one.bodies if at == place and (at, iteration) in other.bodies)
        if not common or loop.subject is None:
            continue
        ours, theirs = one.bodies[place, common[-1]], other.bodies[place, common[-1]]
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


@found_by
def slices_unread(run: RunSubject) -> RunFindings:
    """Loops whose count, computed or compared, is one below the number of slices; a note for more."""
    for loop in run.loops():
        probe, ending, subject = run.probe, loop.activation.ending, loop.subject
        if probe is None or ending is None or ending.is_set or subject is None or subject.trip_count is not None:
            continue
        slices = probe.slice_counts.get(place_of(loop.facts))
        row = next((row for row in loop.facts.rows if row.kind is RowKind.SLICE), None)
        left = 0 if slices is None else slices - loop.activation.iterations
        if row is None or slices is None or left != 1:
            continue
        limit = loop.activation.condition_limit
        by_count = limit is not None and limit.iterations == loop.activation.iterations
        if ending.reason is EndReason.TRIP_COUNT or by_count:
            yield loop.shown(
                row.inner,
                loop.activation.iterations - 1,
                iterations=loop.activation.iterations,
                by_condition=ending.reason is EndReason.CONDITION,
                slices=slices,
                left=left,
            )


@found_by
def pieces_all_the_same(run: RunSubject) -> RunFindings:
    """Concatenated outputs whose pieces are computed from what changes, and never change."""
    for loop in run.loops():
        subject, probe, count = loop.subject, run.probe, loop.activation.iterations
        if subject is None or probe is None or count < _LEAST_PIECES or loop.facts.total != count:
            continue
        looked = [body for (at, _), body in sorted(probe.bodies.items()) if at == place_of(loop.facts)]
        for row, history in zip(loop.facts.rows, loop.activation.values, strict=True):
            if row.kind is not RowKind.CONCATENATED or history is None or history.unchanged_since != 0:
                continue
            found = _where_it_stops(looked, subject.ancestors(subject.given_to(row.inner.id)))
            if found is not None:
                layer, read = (subject.site(one) for one in found)
                yield loop.shown(layer, 0, iterations=count, result=row.inner, read=read)


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
