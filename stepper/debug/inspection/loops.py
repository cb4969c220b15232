"""A loop at a stop: its count, its condition, every entry of its port map, back edges and scan outputs."""

from __future__ import annotations

from collections.abc import Callable

from stepper.debug.causes.cause import Verdict
from stepper.debug.causes.overrides import is_end_set
from stepper.debug.causes.verdicts import Verdicts, verdict_text
from stepper.debug.inspection import explanations
from stepper.debug.inspection.back_edges import back_edge_view
from stepper.debug.inspection.condition_limits import condition_limit
from stepper.debug.inspection.inside import Inside
from stepper.debug.inspection.scans import scan_views
from stepper.debug.inspection.values import input_view
from stepper.debug.inspection.views import ConditionView, InputView, LoopView, OutputView, SliceView, TripView
from stepper.debug.iterations import slots
from stepper.element_types import Array
from stepper.engine import loops, transitions
from stepper.engine.frames import Phase
from stepper.engine.loops import EndReason, Role, Roles, output_role, roles_of
from stepper.engine.rules import Rules
from stepper.engine.transitions import CONDITION, TRIP_COUNT
from stepper.ir.model import Body, InputMapping, OutputMapping


def loop_view(inside: Inside, *, differences: bool) -> LoopView:
    """Return the loop that runs in the frame."""
    roles = roles_of(inside.layer)
    return LoopView(
        level=inside.level,
        layer=inside.layer,
        trip=_trip(inside),
        condition=_condition(inside) if inside.plan.is_loop else None,
        inputs=tuple(_inputs(inside, roles)),
        outputs=tuple(_output(inside, entry) for entry in inside.body.outputs),
        back_edges=tuple(
            back_edge_view(inside, roles, edge, differences=differences) for edge in inside.body.back_edges
        ),
        scans=scan_views(inside.frame, inside.body, inside.rules),
    )


# --- count and condition --------------------------------------------------------------------------------------------


def _trip(inside: Inside) -> TripView:
    activation = inside.activation
    running = inside.frame.phase is Phase.RUNNING
    bound = condition_limit(inside.frame) if activation.ended is None else None
    result, verdict = inside.plan.condition_result, _verdict(inside)
    told = None if verdict is None else verdict_text(verdict)
    return TripView(
        maximum=activation.limit,
        executed=activation.iteration + (0 if running else 1),
        total=explanations.total(activation),
        origin=_trip_origin(inside),
        ended=activation.ended,
        sentence=explanations.ending(inside.layer, activation, inside.name(result), bound, told),
        by_condition=bound,
        verdict=verdict,
    )


def _verdict(inside: Inside) -> Verdict | None:
    """Return what made the condition false where that ended the loop, and it was not set."""
    result, activation = inside.plan.condition_result, inside.activation
    if activation.ended is not EndReason.CONDITION or result is None or is_end_set(activation, inside.frame.values):
        return None
    return Verdicts(inside.frame, inside.file, {}).of(result)


def _trip_origin(inside: Inside) -> str:
    plan, slices = inside.plan, inside.activation.slices
    if TRIP_COUNT in inside.activation.changed:
        return "set in this branch"
    if plan.is_loop:
        return _control_text(inside, plan.trip_count, "not connected: unlimited", taken=_limit_of)
    if not slices:
        return "its concatenated outputs" if plan.concatenated else "nothing is sliced"
    found = [
        f"input {entry.input} has {taken.walk.count} slices" for entry, taken in zip(plan.sliced, slices, strict=True)
    ]
    return ", ".join(found)


def _control_text(
    inside: Inside, index: int | None, absent: str, taken: Callable[[Inside, Array], str] | None = None
) -> str:
    """Return where trip count or condition of a Loop come from, with the value; `taken` says what the loop took from
    it.
    """
    if index is None:
        return absent
    value = input_view(inside.outer, inside.layer, index)
    text = f"input {index}, {value.source}"
    if value.array is None or value.array.size != 1:
        return text
    before = "" if taken is None else taken(inside, value.array)
    now = value.array.reshape(-1)[0]
    return (
        f"{text}, which was {before} when the loop was entered; that it is {now} now has no effect"
        if before
        else (f"{text} = {now}")
    )


def _limit_of(inside: Inside, value: Array) -> str:
    """Return the trip count that the loop took, where the value that it was taken from is another now."""
    limit = inside.activation.limit
    return "" if loops.trip_count(value) == limit else "negative" if limit is None else str(limit)


def _condition(inside: Inside) -> ConditionView:
    activation, plan, running = inside.activation, inside.plan, inside.frame.phase is Phase.RUNNING
    result = inside.name(plan.condition_result)
    closed = activation.iteration - 1 if running else activation.iteration
    said = None  # by the body, at the end of the iteration that has just been closed
    if closed >= 0 and not running and plan.condition_result is not None:
        value = slots.current(inside.frame, plan.condition_result)
        said = None if value is None else explanations.truth(value)
    if CONDITION in activation.changed and not running and said != activation.condition:
        origin = "set by hand"
    elif closed < 0 or result is None:
        origin = _control_text(inside, plan.condition, "not connected: the first iteration runs")
    else:
        origin = f"Result '{result}' of iteration {closed}"
    upcoming = None
    if running and plan.condition_result is not None:
        value = slots.current(inside.frame, plan.condition_result)
        upcoming = None if value is None else explanations.truth(value)
    return ConditionView(
        value=activation.condition,
        origin=origin,
        upcoming=upcoming,
        sentence=explanations.condition(activation, running=running, origin=origin, upcoming=upcoming),
        is_constant=explanations.constant_condition(activation) is not None,
    )


# --- port map -------------------------------------------------------------------------------------------------------


def _inputs(inside: Inside, roles: Roles) -> list[InputView]:
    """Return the entries in the order of the file, then the Parameters that no entry leads to."""
    entries = inside.body.inputs
    found = [_input(inside, roles, entry, roles.role_of(entry), marked=True) for entry in entries]
    mapped = {entry.parameter for entry in entries}
    for identity in (*roles.current_iteration, *(layer.id for layer in roles.unfed)):
        if identity not in mapped:
            role = Role.CURRENT_ITERATION if identity in roles.current_iteration else Role.NOT_CONNECTED
            line = inside.body.graph.by_id[identity].line
            found.append(
                _input(inside, roles, InputMapping(None, identity, None, None, False, line), role, marked=False)
            )
    return found


def _input(inside: Inside, roles: Roles, entry: InputMapping, role: Role, *, marked: bool) -> InputView:
    return InputView(
        role=role,
        input=entry.input,
        line=entry.line,
        outer=None if entry.input is None else input_view(inside.outer, inside.layer, entry.input),
        inner=inside.inner(entry.parameter),
        slicing=entry.slicing,
        slice=_slice(inside, entry) if role is Role.SLICED else None,
        why=_why(inside, roles, entry, role, marked=marked),
    )


def _why(inside: Inside, roles: Roles, entry: InputMapping, role: Role, *, marked: bool) -> str:
    """Return the sentence for the present iteration."""
    moment, layer = explanations.when(inside.frame), inside.layer
    if role is Role.NOT_USED:
        return "has no effect: another entry for this Parameter comes first"
    if role is Role.NOT_CONNECTED:
        return explanations.unfed()
    if role is Role.INVARIANT:
        return explanations.invariant(layer, entry.input or 0)
    if moment is None:
        return explanations.no_iteration(inside.activation)
    if role is Role.CURRENT_ITERATION:
        return explanations.current_iteration(layer, moment, marked=marked)
    if role is Role.MERGED:
        line = next(edge.line for edge in inside.body.back_edges if edge.to_layer == entry.parameter)
        result = inside.body.graph.by_id[roles.merged_from[entry.parameter]].name
        return explanations.merged(layer, moment, entry.input or 0, result, line)
    assert entry.slicing is not None
    taken = next(taken for taken in inside.activation.slices if taken.parameter == _slot(inside, entry.parameter))
    extent = taken.source.shape[taken.walk.axis]
    return explanations.sliced(layer, moment, entry.slicing, taken.walk, extent, inside.rules)


def _slot(inside: Inside, identity: int) -> int:
    return inside.frame.program.slot(identity)


def _slice(inside: Inside, entry: InputMapping) -> SliceView | None:
    moment = explanations.when(inside.frame)
    slot = _slot(inside, entry.parameter)
    walk, source = next((taken.walk, taken.source) for taken in inside.activation.slices if taken.parameter == slot)
    if moment is None or moment.iteration >= walk.count:
        return None
    return SliceView(moment.iteration, source.shape[walk.axis], walk)


def _output(inside: Inside, entry: OutputMapping) -> OutputView:
    return OutputView(
        role=output_role(entry),
        output=entry.output,
        line=entry.line,
        inner=inside.inner(entry.result),
        outer=inside.output(entry.output),
        why=_why_output(inside, entry),
    )


def _why_output(inside: Inside, entry: OutputMapping) -> str:
    layer, name = inside.layer, inside.body.graph.by_id[entry.result].name
    if entry.output is None:
        counts = inside.plan.condition_result == _slot(inside, entry.result)
        return explanations.execution_condition(layer, name, counts=counts)
    if entry.slicing is not None:
        scan = inside.activation.scans[_scan_index(inside.body, entry)]
        return explanations.concatenated(layer, entry.slicing, entry.slicing.axis, scan.length)
    return explanations.last_value(layer, inside.frame, name, _without_iterations(inside, entry))


def _scan_index(body: Body, entry: OutputMapping) -> int:
    scanned = [other for other in body.outputs if other.output is not None and other.slicing is not None]
    return scanned.index(entry)


def _without_iterations(inside: Inside, entry: OutputMapping) -> str:
    """Return what a last value is if no iteration runs, in words."""
    if inside.rules is Rules.OPENVINO and transitions.ended_by_constant(inside.activation):
        return "empty in OpenVINO, for the condition is a Constant"
    value = next(value for value in inside.plan.last_values if value.output == entry.output)
    merged = next((merged for merged in inside.plan.merged if merged.parameter == value.merged), None)
    if merged is not None:
        return f"input {merged.input}, the initial value of what the back edge carries"
    if slots.is_current(inside.frame, value.result):
        return "what passes through the body unchanged"
    return "undefined: zeros are used"
