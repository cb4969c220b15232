"""Rules of what is lost: additions that are absorbed, saturated gates, cancellation, tolerances that nothing meets."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from stepper.diagnosis.check.subject import Observed, RunFindings, RunOfLoop, RunSubject, place_of, shown
from stepper.diagnosis.findings import NOTE, WARNING
from stepper.diagnosis.lint.subjects import PASSING, LoopSubject, known_value
from stepper.diagnosis.rule import RUN, found_by
from stepper.ir.model import Layer, Source

_LEAST_LOOKS: Final = 6
_LEAST_ABSORBED: Final = 4
_LEAST_ALONE: Final = 3
_SHRUNK: Final = 0.25
"""An addend that has become smaller than this share of the first one is a step that has done its work."""
_OFTEN: Final = 0.5
_MOSTLY: Final = 0.75
_SMALLER: Final = ("Greater", "GreaterEqual", "Less", "LessEqual")
_OF_MAGNITUDE: Final = (
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
    inputs = subject.inner.sources[layer.id]
    state = subject.origin(inputs[operand]) if operand < len(inputs) else None
    if state is None or state.layer not in subject.roles.merged_from:
        return False
    made = subject.origin(subject.given_to(subject.roles.merged_from[state.layer]))
    return made is not None and made.layer == layer.id


@found_by(
    "D401",
    "addition-absorbed",
    RUN,
    WARNING,
    says="what {layer} adds to {parameter} is lost from iteration {since} on: {added:.4g} beside {total:.4g} is "
    "below the resolution of {type}",
    means="the state stays the same, though something is added to it in each iteration",
    do="accumulate in a wider type, scale the numbers, or add them up before they meet the large one",
    source="IEEE 754",
)
def addition_absorbed(run: RunSubject) -> RunFindings:
    """Sums of a state and what is too small beside it, to the end, though it is no step that becomes small."""
    for one in run.observed(lambda seen: seen.sums):
        (key, operand), found, subject = one.key, one.found, one.subject
        if found.since is None or found.times < _LEAST_ABSORBED or found.latest < _SHRUNK * found.first:
            continue
        if not _carried_sum(subject, one.layer, operand):
            continue
        state = subject.origin(subject.inner.sources[key][operand])
        assert state is not None
        yield one.shown(
            found.since,
            parameter=subject.name(state.layer),
            since=found.since,
            added=found.latest,
            total=found.of,
            type=one.type or "its type",
        )


@found_by(
    "D402",
    "gate-saturated",
    RUN,
    WARNING,
    says="{layer}{which_gate} is saturated in every iteration: all of its elements are {ends} in each of the "
    "{looked} iterations that were looked at",
    means="a gate that is always open or closed decides nothing; where it is closed, what it guards is lost",
    do="look at its weights and bias, and at the scale of what comes in",
)
def gate_saturated(run: RunSubject) -> RunFindings:
    """Sigmoids and the like, of what changes, that are at their ends for all elements all the time."""
    for one in run.observed(lambda seen: seen.gates):
        found = one.found
        if _LEAST_LOOKS <= found.looked <= found.saturated and _depends_on_time(one):
            severity = NOTE if one.layer.type == "Tanh" else None  # it is mostly no gate
            yield one.shown(0, severity, gate=one.key[1], low=found.low, high=found.high, looked=found.looked)


@found_by(
    "D407",
    "softmax-saturated",
    RUN,
    NOTE,
    says="{layer} gives all weight to one element, in {often} of the {looked} iterations that were looked at",
    means="the others do not count, and a small change of the scores changes which one does: right for a hard "
    "choice, wrong where the scores have lost their scale",
    do="look at what the scores are divided by (the root of their length), and at the weights before",
)
def softmax_saturated(run: RunSubject) -> RunFindings:
    """Softmax of what changes that leaves nothing to all elements but one, though no mask takes them away."""
    for one in run.observed(lambda seen: seen.choices):
        found = one.found
        if found.looked >= _LEAST_LOOKS and found.saturated >= _MOSTLY * found.looked and _depends_on_time(one):
            yield one.shown(0, often=found.saturated, looked=found.looked)


@found_by(
    "D408",
    "normalises-one-element",
    RUN,
    WARNING,
    says="{layer} goes along axes that are 1 long in each of the {looked} iterations that were looked at: it "
    "always gives {constant}",
    means="nothing is left of what comes in",
    do="let the axis be that of the elements that belong together",
    source="specification of Softmax and MVN",
)
def normalises_one_element(run: RunSubject) -> RunFindings:
    """Softmax and MVN of single elements, where the file leaves the shape open."""
    for one in run.observed(lambda seen: seen.alone):
        if _LEAST_ALONE <= one.found.looked == one.found.saturated:
            yield one.shown(0, looked=one.found.looked, constant=1 if one.layer.type == "Softmax" else 0)


def _depends_on_time(one: Observed[Any, Any]) -> bool:
    roles = one.subject.roles
    moving = {entry.parameter for entry in roles.sliced} | set(roles.merged_from)
    return bool(one.subject.ancestors(Source(one.layer.id, 0)) & moving)


@found_by(
    "D403",
    "cancellation",
    RUN,
    NOTE,
    says="{layer} loses nearly all digits: of operands of {operand:.4g} {left:.3g} is left",
    means="what is left is mostly the rounding error of what was computed before",
    do="compute the difference otherwise, or in a wider type",
    source="IEEE 754",
)
def cancellation(run: RunSubject) -> RunFindings:
    """Differences of nearly equal numbers in most iterations, but for those that are only compared."""
    for one in run.observed(lambda seen: seen.differences):
        found = one.found
        if found.looked >= _LEAST_LOOKS and found.often >= _OFTEN * found.looked and not _only_compared(one):
            yield one.shown(found.iteration, operand=found.operands, left=found.left)


def _only_compared(difference: Observed[int, Any]) -> bool:
    """True if a value goes nowhere but into the size of a difference that is compared."""
    waiting = [difference.key]
    seen = set[int]()
    while waiting:
        one = waiting.pop()
        if one in seen:
            continue
        seen.add(one)
        for reader, _index in difference.subject.inner.readers.get(one, ()):
            if reader.type in _OF_MAGNITUDE:
                waiting.append(reader.id)
            elif reader.type not in _SMALLER:
                return False
    return True


@found_by(
    "D404",
    "tolerance-below-resolution",
    RUN,
    WARNING,
    says="{layer} asks for a difference below {tolerance:.3g}, and the numbers that are compared are about "
    "{size:.4g}: the resolution of {type} there is {resolution:.3g}, so only equal numbers are near enough",
    means="the test for convergence succeeds by luck or never: where the last bit alternates, as it may on another "
    "machine, the limit alone ends the loop",
    do="let the tolerance be relative to the size of the numbers, or compute in a wider type",
    source="IEEE 754",
)
def tolerance_below_resolution(run: RunSubject) -> RunFindings:
    """Tests of a difference against a constant that is smaller than the step from one number to the next."""
    for loop in run.loops():
        subject, activation = loop.subject, loop.activation
        if subject is None or subject.condition_result is None or activation.iterations < _LEAST_LOOKS:
            continue
        for key in sorted(subject.ancestors(subject.given_to(subject.condition_result))):
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
            yield shown(
                place_of(loop, subject.site(layer), activation.iterations - 1),
                layer=subject.site(layer),
                tolerance=tolerance,
                size=max(known),
                type="its type" if declared is None else declared.name,
                resolution=resolution,
            )


def _asked_difference(subject: LoopSubject, layer: Layer) -> tuple[float, Layer] | None:
    """Return the constant that a comparison has, and the difference whose size it asks about."""
    sources = subject.inner.sources[layer.id]
    for index in (0, 1):
        value = known_value(subject.model, subject.inner, sources[index])
        if value is None or value.size != 1 or value.dtype.kind != "f":
            continue
        source = sources[1 - index]
        for _ in range(16):
            other = None if source is None else subject.inner.by_id.get(source.layer)
            if other is None:
                break
            if other.type == "Subtract":
                return float(np.asarray(value).reshape(-1)[0]), other
            if other.type not in _OF_MAGNITUDE or not subject.inner.sources[other.id]:
                break
            source = subject.inner.sources[other.id][0]
    return None


def _size(run: RunSubject, loop: RunOfLoop, source: Source | None) -> float | None:
    """Return the magnitude of a value in the last iteration."""
    assert loop.subject is not None
    layer = None if source is None else loop.subject.inner.by_id[source.layer]
    value = None if layer is None else run.value(loop, layer.name, loop.activation.iterations - 1)
    if value is None or not value.size or value.dtype.kind != "f":
        return None
    return float(np.abs(value).max())
