"""Bounds of a running loop: how many iterations at most, what its condition stays, whether anything ends it.

A condition that compares a counter with a number, `i < 24`, alone or as one of several that must all hold, is a bound.
Nothing is guessed: a counter is the current iteration, or a carried Parameter to which the body adds a constant.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Final, NamedTuple

import numpy as np

from stepper.engine.frames import Activation, Frame
from stepper.engine.loops import truth
from stepper.engine.program import BranchPlan, CompiledModel, LoopPlan, Operation, Program, Value
from stepper.engine.transitions import CONDITION, CONSTANTS

_DEEPEST: Final = 24
_COMPARISONS: Final = {"Less": "<", "LessEqual": "<=", "Greater": ">", "GreaterEqual": ">=", "NotEqual": "!="}
_MIRRORED: Final = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "!=": "!="}
PASSING: Final = ("Squeeze", "Unsqueeze", "Reshape", "Convert")
"""Operations that leave the one element of their first input as it is."""


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
            yield from _comparison(left, _COMPARISONS[kind], right)
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


def _comparison(left: _Term, sign: str, right: _Term) -> Iterator[_Comparison]:
    if left.slot is not None and right.slot is None:
        yield _Comparison(left, sign, right.constant)
    elif right.slot is not None and left.slot is None:
        yield _Comparison(right, _MIRRORED[sign], left.constant)


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
    """True if neither count nor condition can end the loop that runs, of which so many iterations are `closed`."""
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
