"""Sentences that say what a port map does in one iteration, and which rule says so.

They put into words what engine/loops.py computes (slice walks, boundaries, reasons of the end) and decide nothing.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from stepper.debug.inspection.views import ValueView
from stepper.debug.loop_limits import (
    ConditionLimit,
    constant_condition,
    is_last,
    limit,
    may_run_out,
    total,
)
from stepper.element_types import Indices
from stepper.engine import loops
from stepper.engine.frames import Activation, Frame, Phase
from stepper.engine.loops import EndReason, SliceWalk
from stepper.engine.program import LoopPlan
from stepper.engine.rules import Rules
from stepper.engine.transitions import CONDITION, TRIP_COUNT
from stepper.ir.model import Layer, Slicing
from stepper.ops.operands import shape_text

_LISTED: Final = 4


class When(NamedTuple):
    """The iteration that is spoken of: the one under way, the one just closed, or the first that will come."""

    iteration: int
    gets: str


def when(frame: Frame) -> When | None:
    """Of which iteration a stop in this frame speaks; None where the loop has run none and will run none."""
    activation = frame.active
    if frame.phase is Phase.RUNNING:
        return When(activation.iteration, "gets")
    if activation.iteration >= 0:
        return When(activation.iteration, "got")
    return None if frame.phase is Phase.LEAVING else When(0, "will get")


def specification(layer: Layer) -> str:
    """Return the name of the layer's specification, such as TensorIterator-1."""
    return f"{layer.type}-{layer.definition}"


def no_iteration(activation: Activation) -> str:
    """Return why nothing is fed to a body that never runs."""
    return f"no iteration runs: {activation.ended}"


# --- inputs ---------------------------------------------------------------------------------------------------------


def sliced(layer: Layer, moment: When, slicing: Slicing, walk: SliceWalk, extent: int, rules: Rules) -> str:
    """Which elements the iteration gets of a sliced input."""
    rule = f"({specification(layer)}, port_map)"
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


def merged(layer: Layer, moment: When, input: int, result: str, edge_line: int) -> str:
    """Return what a Parameter gets that a back edge feeds."""
    if moment.iteration == 0:
        initial = f"iteration 0 {moment.gets} input {input}, the initial value ({specification(layer)}, port_map)"
        return f"{initial}; each later one gets what Result '{result}' was before (back edge, line {edge_line})"
    before = f"what Result '{result}' was in iteration {moment.iteration - 1} (back edge, line {edge_line})"
    return f"iteration {moment.iteration} {moment.gets} {before}; the first iteration got input {input}"


def invariant(layer: Layer, input: int) -> str:
    """Return what a Parameter gets that has neither axis nor back edge."""
    return f"every iteration gets input {input} as it is: no axis, no back edge ({specification(layer)}, port_map)"


def current_iteration(layer: Layer, moment: When, *, marked: bool) -> str:
    """Return what the Parameter of the iteration number gets."""
    rule = 'purpose="current_iteration"' if marked else "the one Parameter that is not mapped"
    return f"iteration {moment.iteration} {moment.gets} the number {moment.iteration} ({specification(layer)}, {rule})"


def unfed() -> str:
    """Return what a Parameter gets that no entry feeds."""
    return "nothing feeds it: it is zeros, where OpenVINO leaves what the memory held"


# --- outputs --------------------------------------------------------------------------------------------------------


def last_value(layer: Layer, frame: Frame, result: str, without: str) -> str:
    """Return what a last-value output is or will be; `without` says what it is after no iteration."""
    activation = frame.active
    rule = f"({specification(layer)}, port_map: no axis)"
    if activation.iteration < 0 and frame.phase is Phase.LEAVING:
        return f"{no_iteration(activation)}, so it is {without}"
    if activation.ended is not None:
        return f"what Result '{result}' was in iteration {activation.iteration}, the last one {rule}"
    return f"what Result '{result}' will be in the last iteration {rule}"


def concatenated(layer: Layer, slicing: Slicing, axis: int, pieces: int) -> str:
    """Return how the pieces of a concatenated output lie in it."""
    direction = ", the last one first" if loops.is_backward(slicing) else ""
    joined = f"the pieces of all iterations joined along axis {axis}{direction}: {order(pieces, slicing)}"
    return f"{joined} (stride {slicing.stride}; {specification(layer)}, port_map)"


def order(pieces: int, slicing: Slicing) -> str:
    """In which order the pieces lie in the output: `S[0], S[1], ..., S[24]`, or from the last to the first."""
    if not pieces:
        return "no piece yet"
    numbers = loops.in_axis_order(range(pieces), slicing)
    shown = [f"S[{number}]" for number in numbers[:_LISTED]]
    if pieces > _LISTED:
        shown = [*shown[:2], "...", f"S[{numbers[-1]}]"]
    return ", ".join(shown)


def execution_condition(layer: Layer, result: str, *, counts: bool) -> str:
    """Return what the body's condition is for."""
    if not counts:
        return f"Result '{result}' does not count: no condition is connected ({specification(layer)}, first draft)"
    ends = f"after each iteration Result '{result}' says whether there is another"
    return f'{ends} ({specification(layer)}, purpose="execution_condition")'


# --- the end --------------------------------------------------------------------------------------------------------


def ending(
    layer: Layer,
    activation: Activation,
    result: str | None,
    bound: ConditionLimit | None = None,
    verdict: str | None = None,
) -> str:
    """Return why a loop ended, or what can still end it; `result` is the name of the body's condition, `bound` its
    limit, `verdict` what made it false, in values.
    """
    executed = activation.iteration + 1
    if activation.ended is not None:
        return f"ended after {iterations(executed)}: {_reason(activation, result, verdict)}"
    plan = activation.plan
    assert isinstance(plan, LoopPlan)
    ways = [] if activation.limit is None else [f"after {iterations(activation.limit)}, {_by_count(activation, plan)}"]
    if activation.decided is False:
        ways = [f"after {iterations(executed)}, for its condition was set to false"]
    elif plan.condition_result is not None:
        ways += _by_condition(activation, result, first=not ways)
    text = f"ends {', or '.join(ways)}" if ways else "nothing ends it: no trip count, and no condition that may turn"
    if bound is not None and (activation.limit is None or bound.iterations < activation.limit):
        text += f", after {iterations(bound.iterations)} at the latest, as it needs {bound.text}"
    return text + _shortage(activation)


def _by_count(activation: Activation, plan: LoopPlan) -> str:
    if plan.is_loop or TRIP_COUNT in activation.changed:
        return "when the trip count is reached"
    return "when every slice is used" if plan.sliced else "for nothing is sliced and its outputs ask for no more"


def _by_condition(activation: Activation, result: str | None, *, first: bool) -> list[str]:
    constant = constant_condition(activation)
    if constant is not None:
        return [] if constant else [f"after 1 iteration, as Result '{result}' is always false"]
    return [f"when Result '{result}' is false" if first else f"earlier when Result '{result}' is false"]


def _reason(activation: Activation, result: str | None, verdict: str | None) -> str:
    assert activation.ended is not None
    if activation.ended is EndReason.TRIP_COUNT:
        return f"the trip count, {activation.limit}, is reached"
    if activation.ended is EndReason.CONDITION and CONDITION in activation.changed:
        return f"its condition is false after iteration {activation.iteration}"
    if activation.ended is EndReason.CONDITION:
        why = f"Result '{result}' became false" if verdict is None else verdict
        return f"{why} in iteration {activation.iteration}"
    if activation.ended is EndReason.SLICES:
        assert isinstance(activation.plan, LoopPlan)
        return str(activation.ended) if activation.plan.sliced else "nothing is sliced, and its outputs ask for no more"
    return str(activation.ended)


def _shortage(activation: Activation) -> str:
    """Return what a Loop will meet that has fewer slices than iterations; empty if it has enough."""
    if not may_run_out(activation):
        return ""
    fewest = min(taken.walk.count for taken in activation.slices)
    return f"; an error if it gets to iteration {fewest}, for there are only {fewest} slices"


def iterations(count: int) -> str:
    """`1 iteration`, `24 iterations`."""
    return f"{count} iteration{'' if count == 1 else 's'}"


def count(activation: Activation, bound: ConditionLimit | None = None) -> str:
    """Return where in the loop: `17 of at most 24`, `17 of 24` where nothing else can end it, `17, unlimited`.

    `bound` is the limit that its condition sets.
    """
    known = total(activation)
    if activation.iteration < 0:
        return "none yet" if activation.ended is None else "none"
    if known is not None:
        return f"{activation.iteration} of {known}"
    most = limit(activation, bound)
    return f"{activation.iteration}, unlimited" if most is None else f"{activation.iteration} of at most {most}"


def phase(frame: Frame) -> str:
    """Return how far a frame has come, in words."""
    activation, operations = frame.activation, len(frame.program.operations)
    progress = f"after {frame.pc} of {operations} operations"
    if activation is None or not frame.loop:
        return progress
    if frame.phase is Phase.RUNNING:
        return f"in iteration {activation.iteration}, {progress}"
    if activation.iteration < 0:
        return no_iteration(activation) if frame.phase is Phase.LEAVING else "before the first iteration"
    closed = f"iteration {activation.iteration} is closed"
    return f"{closed}, it was the last: {activation.ended}" if frame.phase is Phase.LEAVING else closed


def shape(dimensions: Indices | None) -> str:
    """Return a shape, unknown dimensions as `?`."""
    return "?" if dimensions is None else shape_text(dimensions).replace("-1", "?")


# --- conditions and back edges --------------------------------------------------------------------------------------


def condition(activation: Activation, *, running: bool, origin: str, upcoming: bool | None) -> str:
    """Return what a Loop's condition was or is, and what follows from it."""
    said = f"{'true' if activation.condition else 'false'} ({origin})"
    if running:
        after = {None: "", True: "; it is true again", False: "; it is false now"}[upcoming]
        return f"{said}, so iteration {activation.iteration} runs{after}"
    if activation.ended is None:
        return f"{said}, so iteration {activation.iteration + 1} comes"
    return f"{said}, but {activation.ended}" if activation.condition else f"{said}, so there is no further iteration"


def carried(frame: Frame, result: str, parameter: str, line: int, absent: str) -> str:
    """Return what a back edge does next."""
    activation = frame.active
    edge = f"(back edge, line {line})"
    if is_last(activation):
        return f"no further iteration gets what Result '{result}' is {edge}"
    if activation.iteration < 0:
        return f"iteration 0 will get the initial value; each later one what Result '{result}' was before {edge}"
    if absent:
        return f"Result '{result}' is {absent} {edge}"
    settled = frame.phase is Phase.BETWEEN or total(activation) is not None
    follows = "will get" if settled else "will get, if there is one,"
    value = f"what Result '{result}' is, as Parameter '{parameter}'"
    return f"iteration {activation.iteration + 1} {follows} {value} {edge}"


def branch(layer: Layer, side: str, value: ValueView, *, taken: bool) -> str:
    """Return why an If runs this side."""
    says = "true" if taken else "false"
    return f"{side} runs, for the condition, {value.source}, is {says} ({specification(layer)}, input 0)"
