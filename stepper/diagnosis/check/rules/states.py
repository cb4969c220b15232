"""Rules of what loops carry: states that never change, repeat, or grow without bound."""

from __future__ import annotations

from typing import Final

import numpy as np

from stepper.debug.overview.facts import Row, RowKind
from stepper.diagnosis.check.subject import RunFindings, RunOfLoop, RunSubject, place_of, repetition, shown
from stepper.diagnosis.findings import WARNING
from stepper.diagnosis.rule import RUN, found_by
from stepper.ir.model import LayerSite
from stepper.tensors.histories import KeptStatistic, ValueHistory

_LEAST: Final = 3
_LEAST_SHRINKING: Final = 10
_GONE: Final = 1e-12
_RATIO: Final = 1.2
_LARGE: Final = 1e3
_ADDITIONS: Final = ("Add", "Subtract")
_CHOOSING: Final = ("If", "Select", "Maximum", "Minimum", "Clamp")


@found_by(
    "D304",
    "state-repeats",
    RUN,
    WARNING,
    says="{parameter} repeats with period {period} from iteration {since} on, with all that is carried but "
    "counters: only the limit of {limit} iterations ends the loop",
    means="the loop waits for a state that never comes",
    do="look at what decides between the states; let the condition notice the repetition",
)
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
        yield shown(
            place_of(loop, found.value.row.inner, found.since),
            parameter=found.value.row.inner,
            period=found.period,
            since=found.since,
            limit=loop.activation.iterations,
        )


@found_by(
    "D305",
    "state-is-stuck",
    RUN,
    WARNING,
    says="{parameter} never changes: in all {iterations} iterations it has the same bits as at first; {why}",
    means="the loop computes a new state and keeps the old one",
    do="look at what is added to it, or at the gate that lets nothing in",
)
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
            yield shown(
                place_of(loop, value.row.inner, 0),
                parameter=value.row.inner,
                iterations=loop.activation.iterations,
                maker=found[0],
                zero=found[1],
            )


def _entered_the_same(history: ValueHistory) -> bool:
    entered, first = history.entered, history.numbers[:, :1]
    if entered is None or not first.size:  # a value without elements has no numbers
        return False
    return entered.shape == first[:, 0].shape and bool((entered == first[:, 0]).all())


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
    if maker.type in _ADDITIONS:
        for one in subject.inner.sources[maker.id]:
            origin = subject.origin(one)
            added = None if origin is None or origin.layer == parameter else subject.inner.by_id[origin.layer]
            value = None if added is None else run.value(loop, added.name, 0)
            if added is not None and value is not None and value.size and not value.any():
                return subject.site(maker), subject.site(added)
    return subject.site(maker), None


@found_by(
    "D306",
    "state-grows",
    RUN,
    WARNING,
    says="{parameter} grows by a factor of about {factor:.3g} in each iteration: {first:.3g} at first, {last:.3g} "
    "at last; it passes 1000 in iteration {passes}",
    means="a state that grows like this leaves the range of its type sooner or later",
    do="look at the largest eigenvalue of the recurrent weights, and at what should bound the state",
)
def state_grows(run: RunSubject) -> RunFindings:
    """Real states whose magnitude grows like a power of the iteration's number in the exponent."""
    for loop in run.loops():
        for value in loop.carried():
            found = _growth(value.history) if value.is_real and value.counter is None else None
            if found is None:
                continue
            factor, first, last, passes = found
            yield shown(
                place_of(loop, value.row.inner, passes),
                parameter=value.row.inner,
                factor=factor,
                first=first,
                last=last,
                passes=passes,
            )


def _growth(history: ValueHistory) -> tuple[float, float, float, int] | None:
    """Return factor, first and last magnitude, and the first iteration above 1000; None without such a growth.

    The logarithm of the magnitude must follow a straight line: an exponential, no sum that becomes large.
    """
    if history.changes_shape or history.count < 5 or not history.elements:
        return None
    numbers = history.numbers[0 if history.is_whole else KeptStatistic.RMS].astype(np.float64)
    with np.errstate(all="ignore"):
        magnitude = np.sqrt(np.square(numbers).mean(axis=1))
        largest = np.abs(history.numbers[0].astype(np.float64)).max(axis=1)
    good = np.isfinite(magnitude) & (magnitude > 0)
    if good.sum() < 5 or magnitude[good][-1] < _LARGE:
        return None
    steps = history.spans[good, 0].astype(np.float64)
    logs = np.log(magnitude[good])
    half = len(logs) // 2  # the beginning may still be of another kind
    slope, offset = np.polyfit(steps[half:], logs[half:], 1)
    left = logs[half:] - (slope * steps[half:] + offset)
    factor = float(np.exp(slope))
    if factor < _RATIO or left.std() > 0.15 * max(logs[half:].max() - logs[half:].min(), 1e-9):
        return None
    above = np.flatnonzero(largest > _LARGE)
    return factor, float(magnitude[good][0]), float(magnitude[good][-1]), int(history.spans[above[0], 0])


@found_by(
    "D307",
    "state-vanishes",
    RUN,
    WARNING,
    says="{parameter} shrinks by a factor of about {factor:.3g} in each iteration: {first:.3g} at first, "
    "{last:.3g} at last",
    means="nothing of what it held is left: what was long ago has no effect, and its gradient none",
    do="look at the largest eigenvalue of the recurrent weights, and at gates that are nearly closed",
)
def state_vanishes(run: RunSubject) -> RunFindings:
    """Real states that shrink like a power of the iteration's number in the exponent, until nothing is left."""
    for loop in run.loops():
        for value in loop.carried():
            found = _decay(value.history) if value.is_real and value.counter is None else None
            if found is None or _is_asked(loop, value.row):
                continue
            factor, first, last = found
            yield shown(
                place_of(loop, value.row.inner, loop.activation.iterations - 1),
                parameter=value.row.inner,
                factor=factor,
                first=first,
                last=last,
            )


def _is_asked(loop: RunOfLoop, row: Row) -> bool:
    """True if the condition of the loop reads a state: a remainder is to become small."""
    subject = loop.subject
    if subject is None or subject.condition_result is None:
        return False
    around = subject.ancestors(subject.given_to(subject.condition_result))
    return row.inner.id in around or (row.producer is not None and row.producer.id in around)


def _decay(history: ValueHistory) -> tuple[float, float, float] | None:
    """Return factor, first and last magnitude of a state that shrinks along a straight line of its logarithm."""
    if history.changes_shape or history.count < _LEAST_SHRINKING or not history.elements:
        return None
    numbers = history.numbers[0 if history.is_whole else KeptStatistic.RMS].astype(np.float64)
    with np.errstate(all="ignore"):
        magnitude = np.sqrt(np.square(numbers).mean(axis=1))
    good = np.isfinite(magnitude) & (magnitude > 0)
    if good.sum() < _LEAST_SHRINKING or not np.isfinite(magnitude).all():
        return None
    steps, logs = history.spans[good, 0].astype(np.float64), np.log(magnitude[good])
    slope, offset = np.polyfit(steps, logs, 1)
    spread = float(logs.max() - logs.min())
    left = logs - (slope * steps + offset)
    gone = magnitude[good][-1] < _GONE * magnitude[good].max()
    if not gone or float(np.exp(slope)) > 1 / _RATIO or left.std() > 0.1 * max(spread, 1e-9):
        return None
    return float(np.exp(slope)), float(magnitude[good][0]), float(magnitude[-1])


@found_by(
    "D308",
    "pieces-of-different-size",
    RUN,
    WARNING,
    says="the pieces of {result} change their shape: {shape} from iteration {iteration} on",
    means="OpenVINO refuses to join them: each piece must be as long along the axis as the first",
    do="give the value out as a last value, or join pieces of one size",
    source="specification/Loop-5, concatenated outputs",
)
def pieces_of_different_size(run: RunSubject) -> RunFindings:
    """Concatenated outputs of pieces that grow or shrink along the axis."""
    for loop in run.loops():
        for row, history in zip(loop.facts.rows, loop.activation.values, strict=True):
            if row.kind is not RowKind.CONCATENATED or row.appends or history is None or not history.changes_shape:
                continue
            change = history.shapes[-1] if history.shapes else None
            if change is None or len({one.shape for one in history.shapes}) < 2:
                continue
            yield shown(
                place_of(loop, row.inner, change.iteration),
                result=row.inner,
                shape=f"[{','.join(map(str, change.shape))}]",
                iteration=change.iteration,
            )
