"""Rules of numbers in a run: NaN and Inf, whole numbers, and what is lost."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

from stepper.debug.causes.cause import Arithmetic, LinkKind, NonFiniteKind
from stepper.debug.overview.overview_facts import Birth, RunState
from stepper.diagnosis.check.probe import (
    Absorption,
    Cancellation,
    Extent,
    Held,
    IndexWrap,
    Outside,
    Saturation,
    SoftmaxPeak,
    Wide,
    Wrap,
    ZeroDivisor,
)
from stepper.diagnosis.check.subject import (
    Observed,
    RunFindings,
    RunOfLoop,
    RunPlace,
    RunSubject,
    iterations_around,
    loops_around,
    moment_address,
    shown,
)
from stepper.diagnosis.lint.subjects import PASSING, LoopSubject, declared
from stepper.diagnosis.rule import ERROR, NOTE, WARNING, found_by
from stepper.ir.model import NO_LAYER, Layer, Source

# Rules of numbers: where NaN and Inf are born, and where they come in.


_OF_INFINITE = frozenset({
    Arithmetic.INF_BY_INF,
    Arithmetic.INF_MINUS_INF,
    Arithmetic.ZERO_TIMES_INF,
    Arithmetic.INF_IN_SUM,
})  # fmt: skip


def _place(birth: Birth) -> RunPlace:
    location = birth.cause.location
    iterations = iterations_around(location)
    name = location.operation.name if location.operation is not None else ""
    address = moment_address(name, iterations)
    return RunPlace(location.operation, loops_around(location), iterations, address, birth.tick)


def _born(run: RunSubject, kind: NonFiniteKind) -> list[Birth]:
    return [birth for birth in run.overview.births if birth.cause.kind is kind and not birth.cause.given]


def _first_in_each(births: Iterable[Birth]) -> Iterator[tuple[Birth, RunPlace]]:
    """Yield the first one of each body, with its place."""
    told = set[tuple[tuple[int, int], ...]]()
    for birth in births:
        place = _place(birth)
        key = tuple((layer.line, layer.id) for layer in place.path)
        if key not in told:
            told.add(key)
            yield birth, place


@found_by
def nan_born(run: RunSubject) -> RunFindings:
    """Operations that make the first NaN of numbers that are finite, or of infinities that the model has on purpose."""
    infinite = _born(run, NonFiniteKind.INF)  # of which a NaN may come
    made = [
        one
        for one in _born(run, NonFiniteKind.NAN)
        if one.cause.arithmetic not in _OF_INFINITE or all(birth.tick > one.tick for birth in infinite)
    ]
    is_dropped = run.ends_finite
    for birth, place in _first_in_each(made):
        yield shown(place, NOTE if is_dropped else None, cause=birth.cause, is_dropped=is_dropped)


@found_by
def inf_born(run: RunSubject) -> RunFindings:
    """Operations that make the first Inf; a note where nothing comes of it, or where log(0) is how the model begins."""
    nan = _born(run, NonFiniteKind.NAN)
    for birth, place in _first_in_each(_born(run, NonFiniteKind.INF)):
        later = next((one for one in nan if one.tick >= birth.tick and one.cause.arithmetic in _OF_INFINITE), None)
        reaches_output = any(output.infinite or output.nan for output in run.overview.outputs)
        begins_so = birth.cause.arithmetic is Arithmetic.LOG_OF_ZERO and not any(place.iterations)
        severity = NOTE if later is None and (begins_so or not reaches_output) else ERROR
        yield shown(
            place,
            severity,
            cause=birth.cause,
            follows=None if later is None else later.cause,
        )


@found_by
def nan_came_in(run: RunSubject) -> RunFindings:
    """NaN of inputs and Constants, where an output has it or an operation was the first to read it."""
    for birth in run.overview.births:
        cause = birth.cause
        if cause.kind is NonFiniteKind.NAN and cause.given:
            place = _place(birth)
            dirty = next((one for one in cause.operands if one.nan), None)
            chain = run.chain_of(f"`{place.layer.name}`", place.tick) if place.layer is not None else None
            origin = None if dirty is None else dirty.layer
            if chain is not None and chain.links:
                origin = chain.links[-1].location.operation or origin
            is_dropped = run.ends_finite
            yield shown(place, NOTE if is_dropped else None, origin=origin, is_dropped=is_dropped)
            return
    if _born(run, NonFiniteKind.NAN) or run.overview.state is not RunState.FINISHED:
        return
    for output in run.overview.outputs:
        chain = run.chain_of(output.name) if output.nan else None
        if chain is None or not chain.links:
            continue
        last = chain.links[-1]
        if last.kind in (LinkKind.CONSTANT, LinkKind.GIVEN, LinkKind.STATE) and last.location.operation is not None:
            reader = chain.links[-2] if len(chain.links) > 1 else last
            location = reader.location
            iterations = iterations_around(location)
            place = RunPlace(last.location.operation, loops_around(location), iterations, output.name)
            yield shown(place, origin=last.location.operation, layer=location.operation, is_dropped=False)
            return


@found_by
def integer_overflow(run: RunSubject) -> RunFindings:
    """Whole numbers beyond their type, computed or converted, the first of each operation."""
    for one in run.observed(Wrap):
        wrap = one.found
        yield one.shown(wrap.iteration, type=one.type, exact=wrap.exact, becomes=wrap.becomes)


@found_by
def integer_division_by_zero(run: RunSubject) -> RunFindings:
    """Divisors of whole numbers with a 0, the first of each operation."""
    for one in run.observed(ZeroDivisor):
        yield one.shown(one.found.iteration)


@found_by
def index_from_the_end(run: RunSubject) -> RunFindings:
    """Computed indices of Gather that are below 0 in some iterations and not in others."""
    for one in run.observed(IndexWrap):
        found = one.found
        if found.from_end and found.from_start:
            yield one.shown(found.iteration, element=found.index, often=found.from_end)


@found_by
def index_outside(run: RunSubject) -> RunFindings:
    """Computed indices of Gather that the tensor does not have, the first of each operation."""
    for one in run.observed(Outside):
        found = one.found
        severity = NOTE if one.layer.type == "OneHot" else None
        yield one.shown(found.iteration, severity, element=found.index, axis=found.axis, size=found.size)


@found_by
def index_held_back(run: RunSubject) -> RunFindings:
    """Indices that a bound holds at the last row of a table, from some iteration on."""
    for one in run.observed(Held):
        found, inner = one.found, one.subject.inner
        for reader, index in inner.readers[one.key]:
            rows = declared(inner, inner.source(reader.id, 0)).static if reader.type == "Gather" else None
            if index == 1 and rows and rows[0] == found.bound + 1:
                yield one.shown(found.iteration, element=found.number, size=rows[0], table=one.subject.site(reader))
                break


@found_by
def beyond_i32(run: RunSubject) -> RunFindings:
    """Find whole numbers that fit a wide type but not the plugin's i32: the first per loop body.

    The finding is a note if OpenVINO's outputs agree anyway, for example if only the low bits of a product are read.
    """
    for loop in run.loops():
        seen, subject = run.probed(loop), loop.subject
        if seen is None or subject is None or seen.of(Wrap) or not seen.of(Wide):
            continue
        key, wide = min(seen.of(Wide).items(), key=lambda item: item[1].iteration)
        layer = subject.site(subject.inner.by_id[key])
        differs = run.differs_in_openvino
        severity = WARNING if differs else NOTE
        yield loop.shown(layer, wide.iteration, severity, exact=wide.number, is_otherwise_there=differs)


# Rules of what is lost: additions that are absorbed, saturated gates, cancellation, tolerances that nothing meets.


_LEAST_LOOKS = 6
_LEAST_ABSORBED = 4
_LEAST_ALONE = 3
_SHRUNK = 0.25
"""An addend that has become smaller than this share of the first one is a step that has done its work."""
_OFTEN = 0.5
_MOSTLY = 0.75
_SMALLER = ("Greater", "GreaterEqual", "Less", "LessEqual")
_OF_MAGNITUDE = (
    "Abs",
    "ReduceMax",
    "ReduceSum",
    "ReduceMean",
    "ReduceL1",
    "ReduceL2",
    "Sqrt",
    "Multiply",
    "Power",
    *PASSING,
)


def _carried_sum(subject: LoopSubject, layer: Layer, operand: int) -> bool:
    """True if an operation adds to a carried state what makes the next one: its operand is the state."""
    state = subject.inner.layer_of(subject.origin(subject.inner.source(layer.id, operand)))
    result = subject.roles.merged_from.get(state.id)
    return result is not None and subject.inner.layer_of(subject.origin(subject.given_to(result))) is layer


@found_by
def addition_absorbed(run: RunSubject) -> RunFindings:
    """Sums of a state and what is too small beside it, to the end, though it is no step that becomes small."""
    for one in run.observed(Absorption):
        (key, operand), found, subject = one.key, one.found, one.subject
        if found.since is None or found.times < _LEAST_ABSORBED or found.latest < _SHRUNK * found.first:
            continue
        if not _carried_sum(subject, one.layer, operand):
            continue
        state = subject.inner.layer_of(subject.origin(subject.inner.source(key, operand)))
        yield one.shown(
            found.since,
            parameter=subject.site(state),
            since=found.since,
            added=found.latest,
            total=found.of,
            type=one.type or "its type",
        )


@found_by
def gate_saturated(run: RunSubject) -> RunFindings:
    """Sigmoids and the like, of what changes, that are at their ends for all elements all the time."""
    for one in run.observed(Saturation):
        found = one.found
        if _LEAST_LOOKS <= found.looked <= found.saturated and _depends_on_time(one):
            severity = NOTE if one.layer.type == "Tanh" else None  # it is mostly no gate
            yield one.shown(0, severity, gate=one.key[1], low=found.low, high=found.high, looked=found.looked)


@found_by
def softmax_saturated(run: RunSubject) -> RunFindings:
    """Softmax of what changes that leaves nothing to all elements but one, though no mask takes them away."""
    for one in run.observed(SoftmaxPeak):
        found = one.found
        if found.looked >= _LEAST_LOOKS and found.saturated >= _MOSTLY * found.looked and _depends_on_time(one):
            yield one.shown(0, often=found.saturated, looked=found.looked)


@found_by
def normalises_one_element(run: RunSubject) -> RunFindings:
    """Softmax and MVN of single elements, where the file leaves the shape open."""
    for one in run.observed(Extent):
        if _LEAST_ALONE <= one.found.looked == one.found.alone:
            yield one.shown(0, looked=one.found.looked, constant=1 if one.layer.type == "Softmax" else 0)


def _depends_on_time(one: Observed[Any]) -> bool:
    roles = one.subject.roles
    moving = {entry.parameter for entry in roles.sliced} | set(roles.merged_from)
    return bool(one.subject.ancestors(Source(one.layer.id, 0)) & moving)


@found_by
def cancellation(run: RunSubject) -> RunFindings:
    """Differences of nearly equal numbers in most iterations, but for those that are only compared."""
    for one in run.observed(Cancellation):
        found = one.found
        if found.looked >= _LEAST_LOOKS and found.often >= _OFTEN * found.looked and not _only_compared(one):
            yield one.shown(found.iteration, operand=found.operands, left=found.left)


def _only_compared(difference: Observed[Any]) -> bool:
    """True if a value goes nowhere but into the size of a difference that is compared."""
    waiting = [difference.key]
    seen = set[int]()
    while waiting:
        one = waiting.pop()
        if one in seen:
            continue
        seen.add(one)
        for reader, _index in difference.subject.inner.readers[one]:
            if reader.type in _OF_MAGNITUDE:
                waiting.append(reader.id)
            elif reader.type not in _SMALLER:
                return False
    return True


@found_by
def tolerance_below_resolution(run: RunSubject) -> RunFindings:
    """Tests of a difference against a constant that is smaller than the step from one number to the next."""
    for loop in run.loops():
        subject, activation = loop.subject, loop.activation
        if subject is None or activation.iterations < _LEAST_LOOKS:
            continue
        for key in sorted(subject.decides):
            layer = subject.inner.by_id[key]
            found = _asked_difference(subject, layer) if layer.type in _SMALLER else None
            if found is None:
                continue
            tolerance, difference = found
            sizes = [_size(run, loop, source) for source in subject.inner.sources[difference.id]]
            known = [one for one in sizes if one is not None]
            if not known:
                continue
            declared = difference.outputs[0].element_type
            resolution = float(np.spacing(np.asarray(max(known), dtype=None if declared is None else declared.dtype)))
            if not 0 < tolerance < resolution:
                continue
            yield loop.shown(
                subject.site(layer),
                activation.iterations - 1,
                tolerance=tolerance,
                size=max(known),
                type="its type" if declared is None else declared.name,
                resolution=resolution,
            )


def _asked_difference(subject: LoopSubject, layer: Layer) -> tuple[float, Layer] | None:
    """Return the constant that a comparison has, and the difference whose size it asks about."""
    for index in (0, 1):
        value = subject.inner_constant(subject.inner.source(layer.id, index))
        if value is None or value.size != 1 or value.dtype.kind != "f":
            continue
        other = subject.inner.maker(layer, 1 - index)
        for _ in range(15):
            other = subject.inner.maker(other) if other.type in _OF_MAGNITUDE else other
        if other.type == "Subtract":
            return float(value.item()), other
    return None


def _size(run: RunSubject, loop: RunOfLoop, source: Source | None) -> float | None:
    """Return the magnitude of a value in the last iteration."""
    assert loop.subject is not None
    layer = loop.subject.inner.layer_of(source)
    value = None if layer is NO_LAYER else run.value(loop, layer.name, loop.activation.iterations - 1)
    if value is None or not value.size or value.dtype.kind != "f":
        return None
    return float(np.abs(value).max())
