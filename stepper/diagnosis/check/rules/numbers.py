"""Rules of numbers: where NaN and Inf are born, and where they come in."""

from __future__ import annotations

from typing import Final

from stepper.debug.causes.cause import Arithmetic, LinkKind, NonFinite, NonFiniteKind
from stepper.debug.overview.facts import Birth, RunState
from stepper.diagnosis.check.subject import (
    RunFindings,
    RunPlace,
    RunSubject,
    iterations_around,
    loops_around,
    moment_address,
    place_of,
    shown,
)
from stepper.diagnosis.findings import ERROR, NOTE, WARNING
from stepper.diagnosis.rule import RUN, found_by
from stepper.ir.model import LayerSite

_OF_INFINITE: Final = frozenset({
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


def _comes_of(run: RunSubject, cause: NonFinite, tick: int) -> Birth | None:
    """Return the Inf of which a NaN is made, where that was born in this run, too."""
    if cause.arithmetic not in _OF_INFINITE:
        return None
    return next((birth for birth in _born(run, NonFiniteKind.INF) if birth.tick <= tick), None)


@found_by(
    "D201",
    "nan-born",
    RUN,
    ERROR,
    says="NaN is born in {layer}: {reason_of_cause}; {operands_of_cause}",
    means="what is computed of it is NaN as well",
    do="look at the operands; keep the divisor from 0, the argument of a logarithm or a root positive, and the "
    "difference of two infinities from arising",
    source="IEEE 754",
)
def nan_born(run: RunSubject) -> RunFindings:
    """Operations that make the first NaN of numbers that are finite, or of infinities that the model has on purpose."""
    told = set[tuple[int, ...]]()
    for birth in _born(run, NonFiniteKind.NAN):
        place = _place(birth)
        key = tuple(layer.line for layer in place.path)
        if key in told or _comes_of(run, birth.cause, birth.tick) is not None:
            continue
        told.add(key)
        yield shown(place, layer=birth.cause.location.operation, cause=birth.cause)


@found_by(
    "D202",
    "inf-born",
    RUN,
    ERROR,
    says="Inf is born in {layer}: {reason_of_cause}; {operands_of_cause}{after}",
    means="Inf spreads, and Inf - Inf, Inf / Inf and 0 * Inf are NaN",
    do="keep the argument in range: subtract the maximum before Exp, keep divisors from 0, scale the values",
    source="IEEE 754",
)
def inf_born(run: RunSubject) -> RunFindings:
    """Operations that make the first Inf; a note where nothing comes of it, or where log(0) is how the model begins."""
    nan = _born(run, NonFiniteKind.NAN)
    told = set[tuple[int, ...]]()
    for birth in _born(run, NonFiniteKind.INF):
        place = _place(birth)
        key = tuple(layer.line for layer in place.path)
        if key in told:
            continue
        told.add(key)
        later = next((one for one in nan if one.tick >= birth.tick and one.cause.arithmetic in _OF_INFINITE), None)
        reaches_output = any(output.infinite or output.nan for output in run.overview.outputs)
        begins_so = birth.cause.arithmetic is Arithmetic.LOG_OF_ZERO and not any(place.iterations)
        severity = NOTE if later is None and (begins_so or not reaches_output) else ERROR
        yield shown(
            place,
            severity,
            layer=birth.cause.location.operation,
            cause=birth.cause,
            follows=None if later is None else later.cause,
        )


@found_by(
    "D203",
    "nan-came-in",
    RUN,
    ERROR,
    says="NaN is in {given} already; {layer} is the first that reads it",
    means="no operation is at fault: the values that the run was given are",
    do="look where the input or the weights come from",
    source="IEEE 754",
)
def nan_came_in(run: RunSubject) -> RunFindings:
    """NaN of inputs and Constants, where an output has it or an operation was the first to read it."""
    for birth in run.overview.births:
        cause = birth.cause
        if cause.kind is NonFiniteKind.NAN and cause.given:
            place = _place(birth)
            dirty = next((one for one in cause.operands if one.nan), None)
            origin = _first_origin(run, place) or (None if dirty is None else dirty.layer)
            yield shown(place, origin=origin, layer=cause.location.operation)
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
            yield shown(place, origin=last.location.operation, layer=location.operation)
            return


def _first_origin(run: RunSubject, place: RunPlace) -> LayerSite | None:
    chain = run.chain_of(f"`{place.layer.name}`", place.tick) if place.layer is not None else None
    return None if chain is None or not chain.links else chain.links[-1].location.operation


@found_by(
    "D204",
    "integer-overflow",
    RUN,
    NOTE,
    says="{layer} leaves the range of {type}: {exact:,} becomes {becomes:,}",
    means="the number wraps around: right for hashes and random numbers, wrong for counts, products and indices",
    do="compute in a wider type, or in f64; before a conversion, clamp",
    source="IEEE 754",
)
def integer_overflow(run: RunSubject) -> RunFindings:
    """Whole numbers beyond their type, computed or converted, the first of each operation."""
    for one in run.observed(lambda seen: seen.wholes.wraps):
        wrap = one.found
        yield one.shown(wrap.iteration, type=one.type, exact=wrap.exact, becomes=wrap.becomes)


@found_by(
    "D205",
    "integer-division-by-zero",
    RUN,
    WARNING,
    says="{layer} divides whole numbers by 0",
    means="the result is not defined: the specification leaves it open, and a runtime may stop",
    do="keep the divisor from 0, or choose another value where it is 0",
    source="specification of Divide, Mod and FloorMod",
)
def integer_division_by_zero(run: RunSubject) -> RunFindings:
    """Divisors of whole numbers with a 0, the first of each operation."""
    for one in run.observed(lambda seen: seen.wholes.by_zero):
        yield one.shown(one.found)


@found_by(
    "D206",
    "index-from-the-end",
    RUN,
    NOTE,
    says="the computed index of {layer} is {element}, counted from the end, in {often} of the iterations that were "
    "looked at, and from the start in others",
    means="right for what is meant to go round; where the index is one too small, the last element is read for one "
    "that does not exist",
    do="look at the first and the last iteration: keep the index at 0 or more, or begin one iteration later",
    source="specification of Gather-8",
)
def index_from_the_end(run: RunSubject) -> RunFindings:
    """Computed indices of Gather that are below 0 in some iterations and not in others."""
    for one in run.observed(lambda seen: seen.wholes.indices):
        found = one.found
        if found.from_end and found.from_start:
            yield one.shown(found.iteration, element=found.index, often=found.from_end)


@found_by(
    "D207",
    "index-outside",
    RUN,
    WARNING,
    says="{layer} takes element {element} along axis {axis}, which is {size} long, and gets zeros",
    means="what follows computes with zeros that stand for nothing",
    do="count from 0: look at how the index is computed, and at how often the loop runs",
    source="specification of Gather-8",
)
def index_outside(run: RunSubject) -> RunFindings:
    """Computed indices of Gather that the tensor does not have, the first of each operation."""
    for one in run.observed(lambda seen: seen.wholes.outside):
        found = one.found
        yield one.shown(found.iteration, element=found.index, axis=found.axis, size=found.size)


@found_by(
    "D208",
    "beyond-i32",
    RUN,
    WARNING,
    says="{layer} gives {exact:,}, which is beyond i32{is_otherwise_there}",
    means="OpenVINO's CPU plugin computes i64, u64 and u32 in i32: there the number overflows, and all that is "
    "computed of it may be another, a condition as well",
    do="keep whole numbers below 2^31, or compute in f64 or f32",
    source="OpenVINO 2026.4.1, measured",
)
def beyond_i32(run: RunSubject) -> RunFindings:
    """Whole numbers that a wide type holds and the plugin's i32 does not: the first in the body of each loop.

    A note where the outputs are the same all the same, as of products of which only low bits are read.
    """
    for loop in run.loops():
        seen, subject = run.probed(loop), loop.subject
        if seen is None or subject is None or seen.wholes.wraps or not seen.wholes.wide:
            continue
        key, wide = min(seen.wholes.wide.items(), key=lambda item: item[1].iteration)
        layer = subject.site(subject.inner.by_id[key])
        differs = run.differs_in_openvino
        severity = WARNING if differs else NOTE
        yield shown(
            place_of(loop, layer, wide.iteration), severity, layer=layer, exact=wide.number, is_otherwise_there=differs
        )
