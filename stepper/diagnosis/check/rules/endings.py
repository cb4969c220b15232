"""Rules of how a run and its loops end."""

from __future__ import annotations

from typing import Final

from stepper.debug.overview.facts import RunState
from stepper.diagnosis.check.subject import (
    RunFindings,
    RunOfLoop,
    RunPlace,
    RunSubject,
    place_of,
    repetition,
    shown,
)
from stepper.diagnosis.findings import ERROR, NOTE
from stepper.diagnosis.rule import RUN, found_by
from stepper.engine.compiler import decided_by
from stepper.engine.loops import EndReason
from stepper.ir.model import LayerSite

_COMPARISONS: Final = ("Less", "LessEqual", "Greater", "GreaterEqual", "Equal", "NotEqual")
_MANY: Final = 1_000


@found_by(
    "D101",
    "run-fails",
    RUN,
    ERROR,
    says="the run fails{in_layer}: {message}",
    means="there are no outputs",
    do="look at the operation and the values that it was given",
)
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


@found_by(
    "D301",
    "loop-does-not-end",
    RUN,
    ERROR,
    says="the loop ran {iterations:,} iterations and goes on: {goes_on}{state}{repeats}",
    means="a run never comes back, or takes much longer than was waited for",
    do="{way_out}",
    source="specification/Loop-5, execution_condition",
)
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
        deciding = (
            None
            if subject is None or result is None
            else decided_by(subject.inner, subject.roles, subject.given_to(result))
        )
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
        has_condition = loop.subject is not None and loop.subject.condition_result is not None
        read = frozenset() if subject is None or result is None else subject.ancestors(subject.given_to(result))
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
        yield shown(
            place_of(loop, layer or loop.facts.layer, first),
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
    if subject is None or subject.condition_result is None:
        return []
    around = subject.ancestors(subject.given_to(subject.condition_result))
    made = {
        one.layer
        for parameter, result in subject.roles.merged_from.items()
        if (one := subject.given_to(result)) is not None
    }
    counters = {value.row.inner.id for value in loop.carried() if value.counter is not None}
    counters |= set(subject.roles.current_iteration)
    found = []
    for key in sorted(around):
        layer = subject.inner.by_id[key]
        if layer.type not in _COMPARISONS or key in made:
            continue
        origins = [subject.origin(source) for source in subject.inner.sources[key]]
        reads = subject.ancestors(origins[0]) | (subject.ancestors(origins[1]) if len(origins) > 1 else frozenset())
        parameters = {one for one in reads if subject.inner.by_id[one].type == "Parameter"}
        if of_counters or not parameters or parameters - counters:
            found.append(subject.site(layer))
    return found


@found_by(
    "D302",
    "runs-to-its-limit",
    RUN,
    NOTE,
    says="the loop runs to its limit of {limit} iterations: what could end it earlier never becomes false: {asked}"
    "{repeats}",
    means="what should end the loop earlier does not; the limit alone does",
    do="see whether the value that is waited for can occur at all",
    source="specification/Loop-5, execution_condition",
)
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
        yield shown(
            place_of(loop, latest, None),
            limit=activation.iterations,
            conditions=tuple(asked),
            period=None if repeated is None else repeated.period,
        )


@found_by(
    "D303",
    "ends-at-once",
    RUN,
    NOTE,
    says="the loop ends after the first iteration of {at_most}: {condition} is false at once",
    means="if the loop was meant to go on, its condition is inverted, or compares with the wrong value",
    do="look at both sides of the comparison",
    source="specification/Loop-5, execution_condition",
)
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
        yield shown(place_of(loop, root.layer, 0), limit=loop.activation.limit, condition=root.layer)


@found_by(
    "D311",
    "loop-not-entered",
    RUN,
    NOTE,
    says="the loop has no iteration: {why}",
    means="outputs that are carried are the first values, concatenations are empty, and others are not defined",
    do="see whether these inputs were meant to have none; look at the trip count and at the first condition",
    source="specification/Loop-5, execution_condition",
)
def loop_not_entered(run: RunSubject) -> RunFindings:
    """Loops that were reached and never ran, on what the inputs say."""
    for loop in run.loops():
        activation = loop.activation
        ending = activation.ending
        if ending is None or ending.is_set or activation.iterations or loop.facts.total:
            continue
        yield shown(place_of(loop, loop.facts.layer, None), why=ending.reason.value)
