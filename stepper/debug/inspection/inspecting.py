"""Inspection of a stop: `inspect` reads the frame stack of a machine and changes nothing.

The views share the tensors of the run; tensors are compared only if `differences` are asked for.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from stepper import element_types
from stepper.debug.causes import loop_ends
from stepper.debug.causes.cause import Verdict
from stepper.debug.causes.loop_ends import Verdicts, is_end_set, verdict_text
from stepper.debug.inspection.views import (
    BackEdgeView,
    BranchView,
    ConditionView,
    InputView,
    LevelView,
    LoopView,
    OutputView,
    ScanView,
    SliceView,
    StopView,
    TripView,
    ValueView,
    input_view,
    operation_view,
    result_view,
    value_view,
)
from stepper.debug.provenance.operation_at import body_of_frame
from stepper.debug.scopes import innermost_loop
from stepper.debug.stop import iteration_of
from stepper.element_types import STRING_DTYPE, Array, Indices, Shape, read_only
from stepper.engine import loops, transitions
from stepper.engine.frames import Activation, Frame, Phase, Slices, loop_run, place
from stepper.engine.loops import (
    ConcatenatedOutput,
    EndReason,
    NoEffect,
    OutputRole,
    Role,
    Roles,
    Scan,
    SliceWalk,
    output_role,
    roles_of,
    without_effect,
)
from stepper.engine.machine import Machine
from stepper.engine.program import BranchPlan, LoopPlan
from stepper.engine.rules import Rules
from stepper.engine.transitions import CONDITION, TRIP_COUNT
from stepper.errors import KernelError, UsageError
from stepper.ir.model import BackEdge, Body, InputMapping, Layer, OutputMapping, Slicing, Source
from stepper.ops.operands import normalize_axis, shape_text
from stepper.records import Record
from stepper.tensors.difference import largest_gap

_LISTED = 4


class _When(NamedTuple):
    """The iteration that is spoken of: the one under way, the one just closed, or the first that will come."""

    iteration: int
    gets: str


def _when(frame: Frame) -> _When | None:
    """Return the iteration that a stop in this frame is about; None if the loop runs none.

    None is returned only if the loop has run no iteration and will run none.
    """
    activation = frame.active
    if frame.phase is Phase.RUNNING:
        return _When(activation.iteration, "gets")
    if activation.iteration >= 0:
        return _When(activation.iteration, "got")
    return None if frame.phase is Phase.LEAVING else _When(0, "will get")


def _specification(layer: Layer) -> str:
    """Return the name of the layer's specification, such as TensorIterator-1."""
    return f"{layer.type}-{layer.definition}"


def _no_iteration_sentence(activation: Activation) -> str:
    """Return why nothing is fed to a body that never runs."""
    return f"no iteration runs: {activation.ended}"


# --- inputs ---------------------------------------------------------------------------------------------------------


def _sliced_sentence(layer: Layer, moment: _When, slicing: Slicing, walk: SliceWalk, extent: int, rules: Rules) -> str:
    """Return which elements of a sliced input the iteration gets."""
    rule = f"({_specification(layer)}, port_map)"
    if moment.iteration >= walk.count:
        return f"iteration {moment.iteration} has no slice: there are {walk.count} {rule}"
    begin, end = walk.range(moment.iteration)
    elements = f"elements [{begin}, {end}) of {extent} along axis {walk.axis}"
    return f"iteration {moment.iteration} {moment.gets} {elements}: {_steps(layer, slicing, extent, rules)} {rule}"


def _steps(layer: Layer, slicing: Slicing, extent: int, rules: Rules) -> str:
    boundary = loops.boundary(slicing.start, extent)
    start = f"start {slicing.start}" + (f" is boundary {boundary}" if slicing.start < 0 else "")
    backward = loops.is_backward(slicing)
    backwards = ", which goes backward" if backward else ""
    if rules is Rules.OPENVINO and boundary != loops.boundary(loops.whole_axis(slicing)[0], extent):
        edge = "end" if backward else "beginning"
        counts = "looks at neither start nor end" if layer.type == "Loop" else "only counts by start and end"
        return f"OpenVINO {counts} and walks from the {edge}, stride {slicing.stride}{backwards}"
    return f"{start}, stride {slicing.stride}{backwards}"


def _merged_sentence(layer: Layer, moment: _When, input: int, result: str, edge_line: int) -> str:
    """Return what a Parameter gets that a back edge feeds."""
    if moment.iteration == 0:
        initial = f"iteration 0 {moment.gets} input {input}, the initial value ({_specification(layer)}, port_map)"
        return f"{initial}; each later one gets what Result '{result}' was before (back edge, line {edge_line})"
    before = f"what Result '{result}' was in iteration {moment.iteration - 1} (back edge, line {edge_line})"
    return f"iteration {moment.iteration} {moment.gets} {before}; the first iteration got input {input}"


# --- outputs --------------------------------------------------------------------------------------------------------


def _last_value_sentence(layer: Layer, frame: Frame, result: str, without: str) -> str:
    """Return what a last-value output is or will be; `without` says what it is after no iteration."""
    activation = frame.active
    rule = f"({_specification(layer)}, port_map: no axis)"
    if activation.iteration < 0 and frame.phase is Phase.LEAVING:
        return f"{_no_iteration_sentence(activation)}, so it is {without}"
    if activation.ended is not None:
        return f"what Result '{result}' was in iteration {activation.iteration}, the last one {rule}"
    return f"what Result '{result}' will be in the last iteration {rule}"


def _concatenated_sentence(layer: Layer, slicing: Slicing, axis: int, pieces: int) -> str:
    """Return how the pieces of a concatenated output lie in it."""
    direction = ", the last one first" if loops.is_backward(slicing) else ""
    joined = f"the pieces of all iterations joined along axis {axis}{direction}: {order_text(pieces, slicing)}"
    return f"{joined} (stride {slicing.stride}; {_specification(layer)}, port_map)"


def order_text(pieces: int, slicing: Slicing) -> str:
    """In which order the pieces lie in the output: `S[0], S[1], ..., S[24]`, or from the last to the first."""
    if not pieces:
        return "no piece yet"
    numbers = loops.in_axis_order(range(pieces), slicing)
    shown = [f"S[{number}]" for number in numbers[:_LISTED]]
    if pieces > _LISTED:
        shown = [*shown[:2], "...", f"S[{numbers[-1]}]"]
    return ", ".join(shown)


# --- the end --------------------------------------------------------------------------------------------------------


def _ending_sentence(
    layer: Layer,
    activation: Activation,
    result: str | None,
    bound: loop_ends.ConditionLimit | None,
    verdict: str | None,
) -> str:
    """Return why a loop ended, or what can still end it; `result` is the name of the body's condition, `bound` its
    limit, `verdict` what made it false, in values.
    """
    executed = activation.iteration + 1
    if activation.ended is not None:
        return f"ended after {iterations_text(executed)}: {_end_reason(activation, result, verdict)}"
    plan = activation.plan
    assert isinstance(plan, LoopPlan)
    limit = activation.limit
    ways = [] if limit is None else [f"after {iterations_text(limit)}, {_by_count(activation, plan)}"]
    if activation.decided is False:
        ways = [f"after {iterations_text(executed)}, for its condition was set to false"]
    elif plan.condition_result is not None:
        ways += _by_condition(activation, result, first=not ways)
    text = f"ends {', or '.join(ways)}" if ways else "nothing ends it: no trip count, and no condition that may turn"
    if bound is not None and (limit is None or bound.iterations < limit):
        text += f", after {iterations_text(bound.iterations)} at the latest, as it needs {bound.text}"
    return text + _shortage(activation)


def _by_count(activation: Activation, plan: LoopPlan) -> str:
    if plan.is_loop or TRIP_COUNT in activation.changed:
        return "when the trip count is reached"
    return "when every slice is used" if plan.sliced else "for nothing is sliced and its outputs ask for no more"


def _by_condition(activation: Activation, result: str | None, *, first: bool) -> list[str]:
    constant = loop_ends.constant_condition(activation)
    if constant is not None:
        return [] if constant else [f"after 1 iteration, as Result '{result}' is always false"]
    return [f"when Result '{result}' is false" if first else f"earlier when Result '{result}' is false"]


def _end_reason(activation: Activation, result: str | None, verdict: str | None) -> str:
    ended = activation.ended
    assert ended is not None
    if ended is EndReason.TRIP_COUNT:
        return f"the trip count, {activation.limit}, is reached"
    if ended is EndReason.CONDITION and CONDITION in activation.changed:
        return f"its condition is false after iteration {activation.iteration}"
    if ended is EndReason.CONDITION:
        why = f"Result '{result}' became false" if verdict is None else verdict
        return f"{why} in iteration {activation.iteration}"
    if ended is EndReason.SLICES:
        assert isinstance(activation.plan, LoopPlan)
        return str(ended) if activation.plan.sliced else "nothing is sliced, and its outputs ask for no more"
    return str(ended)


def _shortage(activation: Activation) -> str:
    """Return what a Loop will meet that has fewer slices than iterations; empty if it has enough."""
    if not loop_ends.may_run_out(activation):
        return ""
    fewest = min(taken.walk.count for taken in activation.slices)
    return f"; an error if it gets to iteration {fewest}, for there are only {fewest} slices"


def iterations_text(count: int) -> str:
    """`1 iteration`, `24 iterations`."""
    return f"{count} iteration{'' if count == 1 else 's'}"


def count_text(activation: Activation, bound: loop_ends.ConditionLimit | None) -> str:
    """Return where in the loop: `17 of at most 24`, `17 of 24` where nothing else can end it, `17, unlimited`.

    `bound` is the limit that its condition sets.
    """
    known = loop_ends.total(activation)
    if activation.iteration < 0:
        return "none yet" if activation.ended is None else "none"
    if known is not None:
        return f"{activation.iteration} of {known}"
    most = loop_ends.limit(activation, bound)
    return f"{activation.iteration}, unlimited" if most is None else f"{activation.iteration} of at most {most}"


def phase_text(frame: Frame) -> str:
    """Return how far a frame has come, in words."""
    activation, operations = frame.activation, len(frame.program.operations)
    progress = f"after {frame.pc} of {operations} operations"
    if activation is None or not frame.loop:
        return progress
    if frame.phase is Phase.RUNNING:
        return f"in iteration {activation.iteration}, {progress}"
    if activation.iteration < 0:
        return _no_iteration_sentence(activation) if frame.phase is Phase.LEAVING else "before the first iteration"
    closed = f"iteration {activation.iteration} is closed"
    return f"{closed}, it was the last: {activation.ended}" if frame.phase is Phase.LEAVING else closed


def open_shape_text(dimensions: Indices | None) -> str:
    """Return a shape, unknown dimensions as `?`."""
    return "?" if dimensions is None else shape_text(dimensions).replace("-1", "?")


# --- conditions and back edges --------------------------------------------------------------------------------------


def _condition_sentence(activation: Activation, *, running: bool, origin: str, upcoming: bool | None) -> str:
    """Return what a Loop's condition was or is, and what follows from it."""
    said = f"{'true' if activation.condition else 'false'} ({origin})"
    if running:
        after = {None: "", True: "; it is true again", False: "; it is false now"}[upcoming]
        return f"{said}, so iteration {activation.iteration} runs{after}"
    if activation.ended is None:
        return f"{said}, so iteration {activation.iteration + 1} comes"
    return f"{said}, but {activation.ended}" if activation.condition else f"{said}, so there is no further iteration"


def _carried_sentence(frame: Frame, result: str, parameter: str, line: int, absent: str) -> str:
    """Return what a back edge does next."""
    activation = frame.active
    edge = f"(back edge, line {line})"
    if loop_ends.is_last(activation):
        return f"no further iteration gets what Result '{result}' is {edge}"
    if activation.iteration < 0:
        return f"iteration 0 will get the initial value; each later one what Result '{result}' was before {edge}"
    if absent:
        return f"Result '{result}' is {absent} {edge}"
    settled = frame.phase is Phase.BETWEEN or loop_ends.total(activation) is not None
    follows = "will get" if settled else "will get, if there is one,"
    value = f"what Result '{result}' is, as Parameter '{parameter}'"
    return f"iteration {activation.iteration + 1} {follows} {value} {edge}"


# --- views of a stop -------------------------------------------------------------------------------------------------


class Inside(Record):
    """The frame of a loop or branch with the frame around it, and what belongs to the two; `file` is the model's."""

    frame: Frame
    outer: Frame
    level: LevelView
    rules: Rules
    file: str
    activation: Activation
    layer: Layer
    body: Body

    @classmethod
    def of(cls, machine: Machine, depth: int) -> Inside:
        """Return what belongs to the frame of a loop or branch at a depth of the stack, and the one around it."""
        stack, file = machine.stack, str(machine.compiled.model.path)
        frame, level, active = stack[depth], _level(stack, depth), stack[depth].active
        layer, body = active.operation.layer, body_of_frame(frame)
        return cls(frame, stack[depth - 1], level, machine.rules, file, active, layer, body)

    @property
    def plan(self) -> LoopPlan:
        """Return the loop's plan."""
        plan = self.frame.loop
        assert plan is not None
        return plan

    def inner(self, identity: int) -> ValueView:
        """Return the value of a Parameter or Result of the body, by id."""
        layer = self.body.graph.by_id[identity]
        return result_view(self.frame, layer) if layer.type == "Result" else value_view(self.frame, Source(identity, 0))

    def output(self, index: int | None) -> ValueView | None:
        """Return the value at an output of the outer layer; None for no output."""
        return None if index is None else value_view(self.outer, Source(self.layer.id, index))

    def name(self, slot: int | None) -> str | None:
        """Return the name of the Result in a slot."""
        if slot is None:
            return None
        program = self.frame.program
        return program.graph.results[program.results.index(slot)].name


# --- back edges -----------------------------------------------------------------------------------------------------


def back_edge_view(inside: Inside, roles: Roles, edge: BackEdge, *, differences: bool) -> BackEdgeView:
    """Return the back edge; `differences`: with what it changes."""
    effect = _no_effect(inside, roles, edge)
    result, parameter = (_edge_end(inside, identity) for identity in (edge.from_layer, edge.to_layer))
    began = inside.activation.iteration >= 0
    came_in = parameter.array if began else None
    goes_out = result.array if began else None
    comes_next = None
    if not effect and not loop_ends.is_last(inside.activation):
        comes_next = _carried(goes_out, came_in) if began else parameter.array
    return BackEdgeView(
        result=result,
        parameter=parameter,
        line=edge.line,
        came_in=came_in,
        goes_out=goes_out,
        comes_next=comes_next,
        change=None if not differences or came_in is None or goes_out is None else largest_gap(goes_out, came_in),
        marks=_marks(came_in, goes_out, thorough=differences),
        counts=not effect,
        why=effect or _carried_sentence(inside.frame, result.name, parameter.name, edge.line, result.absent),
    )


def _edge_end(inside: Inside, identity: int) -> ValueView:
    """Return an end of a back edge; the file may name a layer that is none, where that has no effect."""
    if identity in inside.body.graph.by_id and (identity, 0) in inside.frame.program.slots:
        return inside.inner(identity)
    return value_view(inside.frame, None, f"layer {identity}")


def _no_effect(inside: Inside, roles: Roles, edge: BackEdge) -> str:
    """Return why a back edge does not count; empty where it does."""
    reason = without_effect(inside.body, roles, edge)
    if reason is None:
        return ""
    first = next(other for other in inside.body.back_edges if other.to_layer == edge.to_layer)
    return f"has no effect: {reason}{f' (line {first.line})' if reason is NoEffect.EARLIER else ''}"


def _carried(goes_out: Array | None, came_in: Array | None) -> Array | None:
    """Return what a Result becomes as the next value of a Parameter, which keeps the type that it began with."""
    if goes_out is None or came_in is None or goes_out.dtype == came_in.dtype:
        return goes_out
    return read_only(goes_out.astype(came_in.dtype))


def _marks(came_in: Array | None, goes_out: Array | None, *, thorough: bool) -> tuple[str, ...]:
    """Return what is remarkable; `thorough`: found by looking through the tensors, too."""
    if goes_out is None or came_in is None:
        return ()
    found = []
    if goes_out.shape != came_in.shape:
        found.append("shape changed")
    if goes_out.dtype != came_in.dtype:
        found.append("type changed")
    if thorough and not found and np.array_equal(goes_out, came_in, equal_nan=_is_float(goes_out)):
        found.append("unchanged")
    if thorough and _is_float(goes_out):
        found += [name for name, test in (("NaN", np.isnan), ("Inf", np.isinf)) if bool(test(goes_out).any())]
    return tuple(found)


def _is_float(array: Array) -> bool:
    return array.dtype != STRING_DTYPE and element_types.is_floating(array.dtype)


# --- sides of an If -------------------------------------------------------------------------------------------------


def branch_view(inside: Inside) -> BranchView:
    """Return the side of an If that runs in the frame."""
    assert isinstance(inside.activation.plan, BranchPlan)
    value = input_view(inside.outer, inside.layer, 0)
    side = inside.body.role
    # Why an If runs this side
    says = "true" if inside.activation.condition else "false"
    sentence = f"{side} runs, for the condition, {value.source}, is {says} ({_specification(inside.layer)}, input 0)"
    return BranchView(
        level=inside.level,
        layer=inside.layer,
        condition=ConditionView(inside.activation.condition, f"input 0, {value.source}", None, sentence),
        side=side,
        inputs=tuple(_side_input(inside, entry) for entry in inside.body.inputs),
        outputs=tuple(_side_output(inside, entry) for entry in inside.body.outputs),
    )


def _side_output(inside: Inside, entry: OutputMapping) -> OutputView:
    inner = inside.inner(entry.result)
    why = "leads to no output" if entry.output is None else f"what Result '{inner.name}' is"
    return OutputView(OutputRole.BRANCH, entry.output, entry.line, inner, inside.output(entry.output), why)


def _side_input(inside: Inside, entry: InputMapping) -> InputView:
    outer = None if entry.input is None else input_view(inside.outer, inside.layer, entry.input)
    why = "not connected" if entry.input is None else f"gets all of input {entry.input}"
    return InputView(Role.BRANCH, entry.input, entry.line, outer, inside.inner(entry.parameter), None, None, why)


# --- concatenated outputs -------------------------------------------------------------------------------------------


def scan_views(frame: Frame, body: Body, rules: Rules) -> tuple[ScanView, ...]:
    """Return all of them, in the order of the file."""
    activation, plan = frame.active, frame.loop
    assert plan is not None
    entries = [entry for entry in body.outputs if entry.output is not None and entry.slicing is not None]
    parts = zip(entries, plan.concatenated, activation.scans, strict=True)
    return tuple(_scan_view(activation, body, entry, planned, scan.copy(), rules) for entry, planned, scan in parts)


def _scan_view(
    activation: Activation,
    body: Body,
    entry: OutputMapping,
    planned: ConcatenatedOutput,
    scan: Scan,
    rules: Rules,
) -> ScanView:
    plan = activation.plan
    assert isinstance(plan, LoopPlan)
    slicing = planned.slicing
    axis = _axis(slicing.axis, _piece_shape(plan, planned, scan))
    now = scan.shape(axis)
    return ScanView(
        output=planned.output,
        line=planned.line,
        result=body.graph.by_id[entry.result].name,
        axis=axis,
        order=order_text(scan.length, slicing),
        pieces=scan.length,
        shape=now,
        final_shape=_final_shape(activation, plan, planned, scan, axis, now),
        declared=scan.length == 0,
        why=_concatenated_sentence(activation.operation.layer, slicing, axis, scan.length),
        _scan=scan,
        _plan=plan,
        _entry=planned,
        _rules=rules,
    )


def _axis(axis: int, shape: Shape) -> int:
    try:
        return normalize_axis(axis, len(shape))
    except KernelError:
        return axis


def _piece_shape(plan: LoopPlan, planned: ConcatenatedOutput, scan: Scan) -> Shape:
    """Return the shape of the first piece; before there is one, that which the file declares.

    A scalar counts as [1].
    """
    shape = scan.piece(0).shape if scan.length else plan.program.declared(planned.result)[0]
    return shape or (1,)


def _final_shape(
    activation: Activation, plan: LoopPlan, planned: ConcatenatedOutput, scan: Scan, axis: int, now: Shape | None
) -> Shape | None:
    """Return the shape at the end, unknown dimensions negative; None where the pieces cannot be joined."""
    if activation.ended is not None and scan.length:
        return now
    piece = _piece_shape(plan, planned, scan)
    if not 0 <= axis < len(piece) or (scan.length and now is None):
        return None
    total = loop_ends.total(activation)
    if total == 0:
        shape, dtype = plan.program.declared(planned.result)
        empty: Shape = loops.empty_concatenation(planned.slicing.axis, shape, dtype).shape
        return empty
    alike = now is None or (now[axis] == scan.length * piece[axis] and scan.piece(scan.length - 1).shape == piece)
    known = total is not None and alike and piece[axis] >= 0
    return (*piece[:axis], total * piece[axis] if known and total is not None else -1, *piece[axis + 1 :])


# --- loops ----------------------------------------------------------------------------------------------------------


def loop_view(inside: Inside, *, differences: bool) -> LoopView:
    """Return the loop that runs in the frame."""
    roles = roles_of(inside.layer)
    return LoopView(
        level=inside.level,
        layer=inside.layer,
        trip=_trip(inside),
        condition=_condition(inside) if inside.plan.is_loop else None,
        inputs=tuple(_loop_inputs(inside, roles)),
        outputs=tuple(_loop_output(inside, entry) for entry in inside.body.outputs),
        back_edges=tuple(
            back_edge_view(inside, roles, edge, differences=differences) for edge in inside.body.back_edges
        ),
        scans=scan_views(inside.frame, inside.body, inside.rules),
    )


# --- count and condition --------------------------------------------------------------------------------------------


def _trip(inside: Inside) -> TripView:
    activation = inside.activation
    running = inside.frame.phase is Phase.RUNNING
    bound = loop_ends.condition_limit(inside.frame) if activation.ended is None else None
    result, verdict = inside.plan.condition_result, _verdict(inside)
    told = None if verdict is None else verdict_text(verdict)
    return TripView(
        maximum=activation.limit,
        executed=activation.iteration + (0 if running else 1),
        total=loop_ends.total(activation),
        origin=_trip_origin(inside),
        ended=activation.ended,
        sentence=_ending_sentence(inside.layer, activation, inside.name(result), bound, told),
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
    entered = f"{text}, which was {before} when the loop was entered; that it is {now} now has no effect"
    return entered if before else f"{text} = {now}"


def _limit_of(inside: Inside, value: Array) -> str:
    """Return the trip count that the loop took, where the value that it was taken from is another now."""
    limit = inside.activation.limit
    return "" if loops.trip_count(value) == limit else "negative" if limit is None else str(limit)


def _condition(inside: Inside) -> ConditionView:
    activation, plan, running = inside.activation, inside.plan, inside.frame.phase is Phase.RUNNING
    result = inside.name(plan.condition_result)
    closed = activation.iteration - 1 if running else activation.iteration
    value = None if plan.condition_result is None else inside.frame.current(plan.condition_result)
    holds = None if value is None else loops.truth(value)
    said = holds if closed >= 0 else None  # by the body, at the end of the iteration that has just been closed
    if CONDITION in activation.changed and not running and said != activation.condition:
        origin = "set by hand"
    elif closed < 0 or result is None:
        origin = _control_text(inside, plan.condition, "not connected: the first iteration runs")
    else:
        origin = f"Result '{result}' of iteration {closed}"
    upcoming = holds if running else None
    return ConditionView(
        value=activation.condition,
        origin=origin,
        upcoming=upcoming,
        sentence=_condition_sentence(activation, running=running, origin=origin, upcoming=upcoming),
        is_constant=loop_ends.constant_condition(activation) is not None,
    )


# --- port map -------------------------------------------------------------------------------------------------------


def _loop_inputs(inside: Inside, roles: Roles) -> list[InputView]:
    """Return the entries in the order of the file, then the Parameters that no entry leads to."""
    entries = inside.body.inputs
    found = [_loop_input(inside, roles, entry, roles.role_of(entry), marked=True) for entry in entries]
    mapped = {entry.parameter for entry in entries}
    for identity in (*roles.current_iteration, *(layer.id for layer in roles.unfed)):
        if identity not in mapped:
            role = Role.CURRENT_ITERATION if identity in roles.current_iteration else Role.NOT_CONNECTED
            line = inside.body.graph.by_id[identity].line
            found.append(
                _loop_input(inside, roles, InputMapping(None, identity, None, None, False, line), role, marked=False)
            )
    return found


def _loop_input(inside: Inside, roles: Roles, entry: InputMapping, role: Role, *, marked: bool) -> InputView:
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
    moment, layer = _when(inside.frame), inside.layer
    if role is Role.NOT_USED:
        return "has no effect: another entry for this Parameter comes first"
    if role is Role.NOT_CONNECTED:
        return "nothing feeds it: it is zeros, where OpenVINO leaves what the memory held"
    if role is Role.INVARIANT:
        what = f"every iteration gets all of input {entry.input or 0}: no axis, no back edge"
        return f"{what} ({_specification(layer)}, port_map)"
    if moment is None:
        return _no_iteration_sentence(inside.activation)
    if role is Role.CURRENT_ITERATION:
        rule = 'purpose="current_iteration"' if marked else "the one Parameter that is not mapped"
        number = moment.iteration
        return f"iteration {number} {moment.gets} the number {number} ({_specification(layer)}, {rule})"
    if role is Role.MERGED:
        line = next(edge.line for edge in inside.body.back_edges if edge.to_layer == entry.parameter)
        result = inside.body.graph.by_id[roles.merged_from[entry.parameter]].name
        return _merged_sentence(layer, moment, entry.input or 0, result, line)
    assert entry.slicing is not None
    taken = _taken(inside, entry)
    extent = taken.source.shape[taken.walk.axis]
    return _sliced_sentence(layer, moment, entry.slicing, taken.walk, extent, inside.rules)


def _taken(inside: Inside, entry: InputMapping) -> Slices:
    """Return the slices that the loop takes for a Parameter."""
    slot = inside.frame.program.slot(entry.parameter)
    return next(taken for taken in inside.activation.slices if taken.parameter == slot)


def _slice(inside: Inside, entry: InputMapping) -> SliceView | None:
    moment, taken = _when(inside.frame), _taken(inside, entry)
    if moment is None or moment.iteration >= taken.walk.count:
        return None
    return SliceView(moment.iteration, taken.source.shape[taken.walk.axis], taken.walk)


def _loop_output(inside: Inside, entry: OutputMapping) -> OutputView:
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
        if inside.plan.condition_result != inside.frame.program.slot(entry.result):
            return f"Result '{name}' does not count: no condition is connected ({_specification(layer)}, first draft)"
        ends = f"after each iteration Result '{name}' says whether there is another"
        return f'{ends} ({_specification(layer)}, purpose="execution_condition")'
    if entry.slicing is not None:
        scanned = [other for other in inside.body.outputs if other.output is not None and other.slicing is not None]
        scan = inside.activation.scans[scanned.index(entry)]
        return _concatenated_sentence(layer, entry.slicing, entry.slicing.axis, scan.length)
    return _last_value_sentence(layer, inside.frame, name, _without_iterations(inside, entry))


def _without_iterations(inside: Inside, entry: OutputMapping) -> str:
    """Return what a last value is if no iteration runs, in words."""
    if inside.rules is Rules.OPENVINO and transitions.ended_by_constant(inside.activation):
        return "empty in OpenVINO, for the condition is a Constant"
    value = next(value for value in inside.plan.last_values if value.output == entry.output)
    merged = next((merged for merged in inside.plan.merged if merged.parameter == value.merged), None)
    if merged is not None:
        return f"input {merged.input}, the initial value of what the back edge carries"
    if inside.frame.is_current(value.result):
        return "values that pass through the body unchanged"
    return "undefined: zeros are used"


# --- stops ----------------------------------------------------------------------------------------------------------


def inspect(machine: Machine, *, differences: bool = False) -> StopView:
    """Return everything that the present moment shows. `differences`: look through what the back edges carry, too."""
    stack = machine.stack
    done, following = _operations(stack[-1]) if stack else (None, None)
    loop = innermost_loop(stack)
    is_branch = bool(stack) and stack[-1].activation is not None and loop != len(stack) - 1
    return StopView(
        tick=machine.tick,
        place=place(stack) if stack else "model",
        levels=tuple(_level(stack, depth) for depth in range(len(stack))),
        done=None if done is None else operation_view(stack[-1], done),
        next=None if following is None else operation_view(stack[-1], following),
        loop=None if loop is None else loop_view(Inside.of(machine, loop), differences=differences),
        branch=branch_view(Inside.of(machine, len(stack) - 1)) if is_branch else None,
        outputs=machine.outputs,
    )


def inspect_loop(machine: Machine, depth: int | None = None, *, differences: bool = False) -> LoopView:
    """Return the loop whose frame is at this depth of the stack (0 is the model's own graph), by default the innermost
    one.

    Raise UsageError where there is no loop.
    """
    found = innermost_loop(machine.stack) if depth is None else depth
    if found is None:
        raise UsageError("the run is in no loop here")
    if not 0 <= found < len(machine.stack):
        raise UsageError(f"the stack has the levels 0 to {len(machine.stack) - 1}; there is no level {found}")
    if not machine.stack[found].loop:
        raise UsageError(f"level {found}, {_level(machine.stack, found).path}, is not a loop")
    return loop_view(Inside.of(machine, found), differences=differences)


def _operations(frame: Frame) -> tuple[int | None, int | None]:
    """Return the indices of the operation just executed in this frame and of the one that comes next."""
    if frame.phase is not Phase.RUNNING:
        return None, None
    return frame.pc - 1 if frame.pc else None, frame.pc if frame.pc < len(frame.program.operations) else None


def _level(stack: list[Frame], depth: int) -> LevelView:
    frame = stack[depth]
    activation = frame.activation
    layer = None if activation is None else activation.operation.layer
    running = frame.program.operations[frame.pc].layer if depth < len(stack) - 1 else None
    phase = phase_text(frame)
    if activation is not None and not frame.loop:
        phase = f"{body_of_frame(frame).role}, {phase}"
    return LevelView(
        depth=depth,
        kind="model" if layer is None else layer.type,
        name="model" if layer is None else layer.name,
        path=place(stack[: depth + 1]),
        iteration=iteration_of(frame),
        count=count_text(activation, loop_ends.condition_limit(frame)) if activation and frame.loop else "",
        phase=phase if running is None else f"{phase}, in {running.type} '{running.name}'",
        run=loop_run(stack[: depth + 1]),
        word="iteration" if layer is None else layer.iteration_word,
    )
