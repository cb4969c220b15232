"""The end of a loop: how many iterations at most, whether anything ends it, and why its condition turned false.

A condition that compares a counter with a number, `i < 24`, alone or as one of several that must all hold, is a bound.
Nothing is guessed: a counter is the current iteration, or a carried Parameter to which the body adds a constant.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import NamedTuple

import numpy as np
from msgspec.structs import replace

from stepper.debug.causes.cause import Verdict, VerdictOperand
from stepper.debug.causes.nan_origins import scalar_of
from stepper.debug.provenance.operation_at import brief_of
from stepper.engine.frames import Activation, Frame
from stepper.engine.loops import EndReason, truth
from stepper.engine.program import BranchPlan, CompiledModel, LoopPlan, Operation, Program, Value
from stepper.engine.transitions import CONDITION, CONSTANTS, TRIP_COUNT
from stepper.ir.model import LayerSite, layer_site
from stepper.query.short_names import last_part, without_number
from stepper.tensors.number_text import number_text
from stepper.wording import excerpt

_DEEPEST = 24
_COMPARISONS = {"Less": "<", "LessEqual": "<=", "Greater": ">", "GreaterEqual": ">=", "NotEqual": "!="}
_MIRRORED = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "!=": "!="}
PASSING = ("Squeeze", "Unsqueeze", "Reshape", "Convert")
"""Operations that leave the one element of their first input unchanged."""


class _Term(NamedTuple):
    """A whole number: what a slot of the body's program holds (None: nothing) and a constant."""

    slot: int | None
    constant: int


class _Scope(NamedTuple):
    """A program, and what its Parameters are in the body's; None: it is the body's own."""

    program: Program
    bound: Mapping[int, _Term] | None = None


class _Comparison(NamedTuple):
    """A counter with a constant added, a sign, and a number."""

    term: _Term
    sign: str
    bound: int


def condition_limit(frame: Frame) -> ConditionLimit | None:
    """Return the tightest limit of the loop in this frame; None where its condition has none that is certain."""
    plan = frame.loop
    if plan is None or plan.condition_result is None:
        return None
    activation = frame.active
    if activation.iteration < 0 or activation.changed & {CONDITION, CONSTANTS}:
        return None
    return _tightest(frame.program, plan, activation.iteration, lambda slot: _whole(frame.values[slot]))


def condition_limits_of(compiled: CompiledModel) -> dict[tuple[int, int], ConditionLimit]:
    """Return the limits that follow from the file alone, by id() of the graph and by the loop's id in it.

    Counters then begin with Constants.
    """
    found = {}
    for program in compiled.programs:
        for operation in program.operations:
            for plan in operation.plans:
                if isinstance(plan, LoopPlan) and plan.condition_result is not None:
                    begins = {entry.parameter: program.template[operation.inputs[entry.input]] for entry in plan.merged}
                    begins |= {slot: np.int64(0) for slot, _ in plan.current_iteration}
                    limit = _tightest(plan.program, plan, 0, partial(_held, begins))
                    if limit is not None:
                        found[id(program.graph), operation.layer.id] = limit
    return found


def _held(values: Mapping[int, Value], slot: int) -> int | None:
    return _whole(values.get(slot))


def _tightest(
    program: Program, plan: LoopPlan, iteration: int, value: Callable[[int], int | None]
) -> ConditionLimit | None:
    """Return the tightest limit in an iteration, in which `value` gives what whole number a slot holds."""
    assert plan.condition_result is not None
    found = []
    for comparison in _conjuncts(_Scope(program), plan.condition_result, _DEEPEST):
        slot = comparison.term.slot
        now = None if slot is None else value(slot)
        more = None if now is None else _iterations_until_false(program, plan, comparison, now)
        if more is not None:
            found.append(ConditionLimit(iteration + more + 1, _text(program, comparison)))
    return min(found, default=None)


def _text(program: Program, comparison: _Comparison) -> str:
    term = comparison.term
    assert term.slot is not None
    added = f" {'+' if term.constant > 0 else '-'} {abs(term.constant)}" if term.constant else ""
    return f"{program.parameter(term.slot).name}{added} {comparison.sign} {comparison.bound}"


# --- what must hold -------------------------------------------------------------------------------------------------


def _conjuncts(scope: _Scope, slot: int, depth: int) -> Iterator[_Comparison]:
    """Yield the comparisons that must all hold for the value in this slot to be true."""
    operation = _operation(scope, slot)
    if operation is None or not depth:
        return
    kind = operation.layer.type
    if kind in _COMPARISONS:
        left, right = (_term(scope, one, depth - 1) for one in operation.inputs)
        if left is not None and right is not None:
            sign = _COMPARISONS[kind]
            if left.slot is not None and right.slot is None:
                yield _Comparison(left, sign, right.constant)
            elif right.slot is not None and left.slot is None:
                yield _Comparison(right, _MIRRORED[sign], left.constant)
    elif kind == "LogicalAnd":
        for one in operation.inputs:
            yield from _conjuncts(scope, one, depth - 1)
    elif kind in PASSING:
        yield from _conjuncts(scope, operation.inputs[0], depth - 1)
    elif kind == "If":
        yield from _of_branch(scope, operation, slot, depth)


def _of_branch(scope: _Scope, operation: Operation, slot: int, depth: int) -> Iterator[_Comparison]:
    """`a if b else False` is `a and b`."""
    then, other = operation.plans
    assert isinstance(then, BranchPlan) and isinstance(other, BranchPlan)
    output = operation.outputs.index(slot)
    otherwise = [other.program.template[result] for place, result in other.outputs if place == output]
    if not otherwise or otherwise[0] is None or bool(np.any(otherwise[0])):
        return
    yield from _conjuncts(scope, operation.inputs[0], depth - 1)
    terms = {parameter: _term(scope, operation.inputs[place], depth - 1) for place, parameter in then.inputs}
    inside = _Scope(then.program, {parameter: term for parameter, term in terms.items() if term is not None})
    for place, result in then.outputs:
        if place == output:
            yield from _conjuncts(inside, result, depth - 1)


def _operation(scope: _Scope, slot: int) -> Operation | None:
    index = scope.program.computed_at.get(slot)
    return None if index is None else scope.program.operations[index]


def _term(scope: _Scope, at: int, depth: int) -> _Term | None:
    """Return a slot as a Parameter of the body with a constant added; None where it is something else."""
    constant = _whole(scope.program.template[at])
    if constant is not None:
        return _Term(None, constant)
    if at in scope.program.parameters:
        return _Term(at, 0) if scope.bound is None else scope.bound.get(at)
    operation = _operation(scope, at)
    if operation is None or not depth:
        return None
    kind = operation.layer.type
    if kind in PASSING:
        return _term(scope, operation.inputs[0], depth - 1)
    if kind not in ("Add", "Subtract"):
        return None
    left, right = (_term(scope, one, depth - 1) for one in operation.inputs)
    if left is None or right is None or (right.slot is not None and (left.slot is not None or kind == "Subtract")):
        return None
    slot = right.slot if left.slot is None else left.slot
    return _Term(slot, left.constant + (right.constant if kind == "Add" else -right.constant))


def _whole(value: Value) -> int | None:
    """Return a single whole number; None for anything else."""
    if value is None:
        return None
    array = np.asarray(value)
    return int(array.item()) if array.size == 1 and array.dtype.kind in "iu" else None


# --- how long it holds ----------------------------------------------------------------------------------------------


def _iterations_until_false(program: Program, plan: LoopPlan, comparison: _Comparison, now: int) -> int | None:
    """After how many more iterations than the present one it is false; None where that is not certain."""
    slot = comparison.term.slot
    step = None if slot is None else _step(program, plan, slot)
    if step is None:
        return None
    gap = comparison.bound - now - comparison.term.constant
    if comparison.sign == "!=":
        return gap // step if step and gap % step == 0 and gap // step >= 0 else None
    if comparison.sign in (">", ">="):
        gap, step = -gap, -step
    gap += comparison.sign in ("<=", ">=")
    if gap <= 0:
        return 0
    return -(-gap // step) if step > 0 else None


def _step(program: Program, plan: LoopPlan, slot: int) -> int | None:
    """By how much a Parameter grows with every iteration."""
    if any(slot == counter for counter, _ in plan.current_iteration):
        return 1
    for parameter, result in plan.carried:
        if parameter == slot:
            term = _term(_Scope(program), result, _DEEPEST)
            return term.constant if term is not None and term.slot == slot else None
    return None


class ConditionLimit(NamedTuple):
    """After how many iterations a condition ends a loop at the latest, and by which comparison: `i < 24`."""

    iterations: int
    text: str


def total(activation: Activation) -> int | None:
    """Return how many iterations the loop runs in all, if that is settled: it ended, or only its count can end it."""
    plan = activation.plan
    assert isinstance(plan, LoopPlan)
    if activation.ended is not None or activation.decided is False:
        return activation.iteration + 1
    if activation.limit is not None and not may_run_out(activation):
        if plan.condition_result is None:
            return activation.limit
        settled = settled_condition(activation)
        if settled is not None:
            return activation.limit if settled else 1
    return None


def is_last(activation: Activation) -> bool:
    """True if it is settled that no iteration follows the one under way or just closed."""
    return total(activation) == activation.iteration + 1


def constant_condition(activation: Activation) -> bool | None:
    """Return what the body's condition always is, where that follows from constants alone, and nobody changed them."""
    plan = activation.plan
    if not isinstance(plan, LoopPlan) or activation.changed & {CONDITION, CONSTANTS}:
        return None
    value = None if plan.condition_result is None else plan.program.template[plan.condition_result]
    return None if value is None else truth(value)


def settled_condition(activation: Activation, closed: int | None = None) -> bool | None:
    """Return what the body's condition is in every iteration from now on, where that is settled.

    It follows from constants, or it went on once and nothing that it depends on can change. `closed` are the iterations
    so far (None: those before the one under way or just closed).
    """
    plan = activation.plan
    closed = activation.iteration if closed is None else closed
    if isinstance(plan, LoopPlan) and plan.fixed_condition and closed > 0 and not activation.changed:
        return activation.condition
    return constant_condition(activation)


def never_ends(activation: Activation, closed: int | None = None) -> bool:
    """True if neither count nor condition can end the loop that runs.

    `closed` is the number of iterations that are closed.
    """
    plan = activation.plan
    if not isinstance(plan, LoopPlan) or not plan.is_loop:
        return False
    if activation.limit is not None or activation.ended is not None:
        return False
    return plan.condition_result is None or settled_condition(activation, closed) is True


def may_run_out(activation: Activation) -> bool:
    """True if a Loop may want more slices than there are, which is an error."""
    return any(activation.limit is None or taken.walk.count < activation.limit for taken in activation.slices)


def limit(activation: Activation, bound: ConditionLimit | None = None) -> int | None:
    """Return how many iterations there may be at most; None where nothing bounds them."""
    limits = (activation.limit, None if bound is None else bound.iterations)
    return min((one for one in limits if one is not None), default=None)


BY_CONDITION = (EndReason.CONDITION, EndReason.INITIAL_CONDITION)
_BY_COUNT = (EndReason.TRIP_COUNT, EndReason.NO_ITERATIONS)
_DEEPEST_CONDITION = 24
_LONGEST_NAME = 24
_REDUCTIONS = ("ReduceLogicalAnd", "ReduceLogicalOr")


def is_end_set(activation: Activation, values: Sequence[Value | None] | None) -> bool:
    """Return True if a loop ended, or did not begin, for a trip count or a condition that was set.

    `values` are those of its body after the last iteration (None: there was none). A condition that was set matters
    only where the body's own would have let the loop go on.
    """
    ended, changed, plan = activation.ended, activation.changed, activation.plan
    if ended in _BY_COUNT:
        return TRIP_COUNT in changed
    if ended not in BY_CONDITION or CONDITION not in changed or not isinstance(plan, LoopPlan):
        return False
    if ended is EndReason.INITIAL_CONDITION or plan.condition_result is None or values is None:
        return True
    value = values[plan.condition_result]
    return value is None or truth(value) is not False


def set_end_text(reason: EndReason, limit: int | None) -> str:
    """Return what was set that ended a loop, or kept it from beginning; `limit` is its trip count."""
    return "the condition was set to false" if reason in BY_CONDITION else f"the trip count was set to {limit:,}"


def end_text(reason: EndReason, limit: int | None, verdict: Verdict | None = None, *, is_set: bool) -> str:
    """Return why a loop ended, or did not begin: what was set, or in values if its condition was false."""
    if is_set:
        return set_end_text(reason, limit)
    return verdict_text(verdict) if verdict is not None and reason in BY_CONDITION else str(reason)


class VerdictPart(NamedTuple):
    """A piece of the sentence of a verdict, its emphasis ("strong", "dim" or ""), and the layer that it names."""

    text: str
    emphasis: str = "dim"
    layer: LayerSite | None = None


def verdict_parts(
    verdict: Verdict,
    operand: Callable[[VerdictOperand], str],
    value: Callable[[VerdictOperand], str],
    named: Callable[[LayerSite], str],
    *,
    floats: bool = True,
    is_short: bool = False,
) -> Iterator[VerdictPart]:
    """Yield `tok' = 12, so NotEqual(tok', 12) is false`; the functions name operands, write values, name a layer.

    Without `floats`, whose last digits may differ from processor to processor, these are named alone.
    """
    root = verdict.root
    told = [one for one in root.told if floats or isinstance(one.value, int)]
    for place, one in enumerate(told):
        if place:
            yield VerdictPart(", ", "strong")
        yield VerdictPart(f"{operand(one)} = {value(one)}", "strong", one.layer)
    if told:
        yield VerdictPart(", so ")
    if root.compared:
        inside = ", ".join(value(one) if one.is_constant else operand(one) for one in root.compared)
        kind = excerpt(root.layer.type)
        yield VerdictPart(kind if is_short else f"{kind}({inside})", "", root.layer)
    else:
        if root.returned is not None:
            mark = "'" if root.returned.type == "Parameter" else ""
            yield VerdictPart(f"{_short(root.returned.name)}{mark} of ", "strong", root.returned)
        yield VerdictPart(named(root.layer), "strong", root.layer)
    yield VerdictPart(f" is {_word(root)}", "dim" if root.compared else "")
    if root.value is not verdict.value:
        yield VerdictPart(f", so the condition is {_word(verdict)}")


def verdict_text(verdict: Verdict, *, floats: bool = True) -> str:
    """Return `tok' = 12, so NotEqual(tok', 12) is false`; tok': what the back edge to `tok` will carry."""
    parts = verdict_parts(verdict, _operand_name, _operand_value, lambda layer: _short(layer.name), floats=floats)
    return "".join(part.text for part in parts)


def compared_text(verdict: Verdict) -> str:
    """Return what the comparison that decided compares, Constants left out: `tok' = 12`; empty if nothing."""
    return ", ".join(f"{_operand_name(one)} = {_operand_value(one)}" for one in verdict.root.told)


def _word(verdict: Verdict) -> str:
    return "true" if verdict.value else "false"


def _operand_name(one: VerdictOperand) -> str:
    return _short(one.layer.name) if one.carried is None else f"{_short(one.carried.name)}'"


def _operand_value(one: VerdictOperand) -> str:
    return excerpt(one.brief.text) if one.value is None else number_text(one.value)


def _short(name: str) -> str:
    return excerpt(without_number(last_part(name)), _LONGEST_NAME)


class _BoundSlot(NamedTuple):
    """A slot of a program, and the program around it where it is a branch of an If that has been left."""

    program: Program
    slot: int
    bound: Mapping[int, tuple[_BoundSlot, Value]] | None


class Verdicts:
    """The verdicts of conditions in a frame of a loop, which stands where an iteration is closed.

    `rows` are those of the loop that show a slot, by slot.
    """

    def __init__(self, frame: Frame, file: str, rows: Mapping[int, int]) -> None:
        self._frame, self._file, self._rows = frame, file, rows
        plan = frame.loop
        self._carried = {result: parameter for parameter, result in plan.carried} if plan else {}

    def of(self, slot: int) -> Verdict | None:
        """Return the verdict of a slot; None where it holds no single boolean."""
        return self._verdict(_BoundSlot(self._frame.program, slot, None), _DEEPEST_CONDITION)

    def _verdict(self, place: _BoundSlot, depth: int) -> Verdict | None:
        place = self._source(place)
        value, operation = self._value(place), self._operation(place)
        if value is None or np.size(value) != 1 or not depth:
            return None
        holds, layer = bool(np.ravel(value)[0]), self._layer(place)
        if operation is None:
            return Verdict(layer, holds)
        inputs = [place._replace(slot=slot) for slot in operation.inputs if slot >= 0]
        decided_by = tuple(self._deciding(operation, place, inputs, holds, depth))
        return replace(
            self._of_operation(operation, layer, inputs, holds, decided_by), returned=self._returned(operation, place)
        )

    def _returned(self, operation: Operation, place: _BoundSlot) -> LayerSite | None:
        """Return the Parameter, or operation, of a loop's body whose last value a slot is; None for other outputs."""
        plan = operation.plans[0] if operation.plans else None
        if not isinstance(plan, LoopPlan):
            return None
        output = operation.outputs.index(place.slot)
        found = (one for one in plan.last_values if one.output == output)
        slots = (one.result if one.merged is None else one.merged for one in found)
        return next((self._layer(_BoundSlot(plan.program, slot, None)) for slot in slots), None)

    def _of_operation(
        self,
        operation: Operation,
        layer: LayerSite,
        inputs: list[_BoundSlot],
        holds: bool,
        decided_by: tuple[Verdict, ...] = (),
    ) -> Verdict:
        told = inputs[:1] if operation.layer.type.startswith("Reduce") else inputs  # axes are no operand
        found = [self._operand(one) for one in told]
        operands = tuple(one for one in found if one is not None)
        return Verdict(layer, holds, operands, decided_by, len(operands) == len(told) and not operation.plans)

    def _deciding(
        self, operation: Operation, place: _BoundSlot, inputs: list[_BoundSlot], holds: bool, depth: int
    ) -> list[Verdict]:
        kind = operation.layer.type
        data: Value = self._value(inputs[0]) if inputs else None
        if kind == "LogicalNot" or (kind in _REDUCTIONS and data is not None and np.size(data) == 1):
            found = [self._verdict(inputs[0], depth - 1)]
        elif kind in ("LogicalAnd", "LogicalOr"):
            found = [self._verdict(one, depth - 1) for one in inputs]
            if holds is (kind == "LogicalOr"):
                found = [one for one in found if one is not None and one.value is holds]
        elif kind == "If":
            found = self._of_branch(operation, place, depth)
        else:
            return []
        return [one for one in found if one is not None]

    def _of_branch(self, operation: Operation, place: _BoundSlot, depth: int) -> list[Verdict | None]:
        """Return what decided in the side that ran; where that is a constant, it is the condition of the If."""
        condition = place._replace(slot=operation.inputs[0])
        chosen = self._value(condition)
        if chosen is None:
            return []
        plan = operation.plans[0 if bool(np.ravel(chosen)[0]) else 1]
        assert isinstance(plan, BranchPlan)
        output = operation.outputs.index(place.slot)
        result = next(slot for index, slot in plan.outputs if index == output)
        if plan.program.template[result] is not None:
            return [self._verdict(condition, depth - 1)]
        outside = {slot: place._replace(slot=operation.inputs[index]) for index, slot in plan.inputs}
        bound = {slot: (one, self._value(one)) for slot, one in outside.items()}
        inner = self._source(_BoundSlot(plan.program, result, bound))
        operation_inside = self._operation(inner)
        if operation_inside is None:
            return [self._verdict(inner, depth - 1)]
        inputs = [inner._replace(slot=slot) for slot in operation_inside.inputs if slot >= 0]
        given: Value = self._value(place)  # the frame of the branch is gone; what it gave is here
        return [self._of_operation(operation_inside, self._layer(inner), inputs, bool(np.ravel(given)[0]))]

    def _operand(self, place: _BoundSlot) -> VerdictOperand | None:
        place = self._source(place)
        value = self._value(place)
        if value is None:
            return None
        array = np.asarray(value)
        is_body = place.program is self._frame.program
        parameter = self._carried.get(place.slot) if is_body else None
        if parameter is None and is_body:
            passed = (one for one, to in self._carried.items() if self._source(place._replace(slot=one)) == place)
            parameter = next((self._carried[one] for one in passed), None)
        return VerdictOperand(
            layer=self._layer(place),
            brief=brief_of(value),
            value=scalar_of(array.reshape(())) if array.size == 1 else None,
            carried=None if parameter is None else layer_site(self._frame.program.parameter(parameter), self._file),
            is_constant=place.program.template[place.slot] is not None,
            row=self._rows.get(place.slot) if is_body else None,
        )

    # --- slots ---------------------------------------------------------------------------------------------------

    def _source(self, place: _BoundSlot) -> _BoundSlot:
        """Follow a slot back through operations that keep a single element, and out of a branch."""
        while True:
            if place.bound is not None and place.slot in place.bound:
                place = place.bound[place.slot][0]
                continue
            operation = self._operation(place)
            if operation is None or operation.layer.type not in PASSING:
                return place
            value = self._value(place)
            if value is not None and np.size(value) != 1:
                return place
            place = place._replace(slot=operation.inputs[0])

    def _value(self, place: _BoundSlot) -> Value | None:
        if place.bound is None:
            return self._frame.values[place.slot]
        constant = place.program.template[place.slot]
        return place.bound[place.slot][1] if constant is None and place.slot in place.bound else constant

    def _operation(self, place: _BoundSlot) -> Operation | None:
        index = place.program.computed_at.get(place.slot)
        return None if index is None else place.program.operations[index]

    def _layer(self, place: _BoundSlot) -> LayerSite:
        graph = place.program.graph
        found = (graph.by_id[layer] for (layer, _), slot in place.program.slots.items() if slot == place.slot)
        return layer_site(next(layer for layer in found if layer.type != "Result"), self._file)
