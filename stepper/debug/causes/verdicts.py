"""Why a loop ended, and why a condition is what it is: the comparison behind it, and what that compares now."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final, NamedTuple

import numpy as np
from msgspec.structs import replace

from stepper.debug.causes.cause import Verdict, VerdictOperand
from stepper.debug.causes.locations import brief_of
from stepper.debug.causes.nan_origins import scalar_of
from stepper.debug.loop_limits import PASSING
from stepper.engine.frames import Activation, Frame
from stepper.engine.loops import EndReason, truth
from stepper.engine.program import BranchPlan, LoopPlan, Operation, Program, Value
from stepper.engine.transitions import CONDITION, TRIP_COUNT
from stepper.ir.model import LayerSite, layer_site
from stepper.query.short_names import last_part, without_number
from stepper.tensors.number_text import number_text
from stepper.wording import excerpt

BY_CONDITION: Final = (EndReason.CONDITION, EndReason.INITIAL_CONDITION)
_BY_COUNT: Final = (EndReason.TRIP_COUNT, EndReason.NO_ITERATIONS)
_DEEPEST: Final = 24
_LONGEST_NAME: Final = 24
_REDUCTIONS: Final = ("ReduceLogicalAnd", "ReduceLogicalOr")


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
        return self._verdict(_BoundSlot(self._frame.program, slot, None), _DEEPEST)

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
        """Follow a slot back through what leaves a single element as it is, and out of a branch."""
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
