"""Define `break nan` and `break inf`: stop where NaN or Inf appears first.

A NaN or Inf is in an output of an operation, and no input of the operation had one. Values that come into a body
(Parameters) were seen where they were computed. So they are reported there and not again. Only values that the run was
given, by its inputs or for NaN by a Constant, count as new where they are first read. All values of a section are
tested at once by a sum. The sum is finite only if everything in the section is. Only if the sum is not finite are the
values looked at one by one.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np

from stepper.debug.breakpoints.breakpoint import Causes, Check, Guard, Test, iteration_in
from stepper.debug.breakpoints.data_breakpoints import Checks, DataBreakpoint, Setting, kind
from stepper.debug.causes.cause import NonFinite, NonFiniteKind
from stepper.debug.causes.nan_origins import first_element, nan_origin
from stepper.debug.provenance.operation_at import file_of, operation_location
from stepper.element_types import FLOATING, Indices
from stepper.engine.frames import Frame, Frames
from stepper.engine.program import BranchPlan, CompiledModel, LoopPlan, Operation, Program, Value

_F32 = np.dtype(np.float32)
_sum = np.add.reduce
_TESTS = {NonFiniteKind.NAN: np.isnan, NonFiniteKind.INF: np.isinf}


@kind("nan", "an operation gives a NaN and had none in its inputs")
def nan(_wanted: DataBreakpoint, setting: Setting) -> Checks:
    """Return a check of each operation."""
    return Checks(non_finite_checks(NonFiniteKind.NAN, setting.compiled, setting.expected))


@kind("inf", "an operation gives an Inf and had none in its inputs")
def inf(_wanted: DataBreakpoint, setting: Setting) -> Checks:
    """Return a check of each operation."""
    return Checks(non_finite_checks(NonFiniteKind.INF, setting.compiled, setting.expected))


def non_finite_checks(
    word: NonFiniteKind,
    compiled: CompiledModel,
    exceptions: frozenset[tuple[int, int]],
    guards: dict[int, Guard] | None = None,
) -> list[Check]:
    """Return a check for each operation of the model but the exceptions, as (id of the program, index).

    `guards` are those of programs by id that checks of another word have, which then are asked once for both.
    """
    checks: list[Check] = []
    guards = {} if guards is None else guards
    for program, given in _given(compiled, word):
        guard, file = guards.setdefault(id(program), _guard(program)), file_of(compiled)
        for index, operation in enumerate(program.operations):
            # What a loop or an If gives out was computed, and seen, inside of it.
            if (id(program), index) not in exceptions and operation.outputs and not operation.plans:
                checks.append(Check(program, index, _test(word, program, operation, given, file), guard=guard))
    return checks


def holds_any(word: NonFiniteKind, value: Value | None) -> bool:
    """True if an element is NaN (or infinite); values of types that have none have none."""
    if value is None or value.dtype not in FLOATING:
        return False
    return bool(_TESTS[word](value).any())


# --- which values come from outside ---------------------------------------------------------------------------------


class Given(NamedTuple):
    """Slots of what the run is given, and of nothing computed: `always`, and in iteration 0 `at_first` as well."""

    always: frozenset[int]
    at_first: frozenset[int] = frozenset()

    def has(self, slot: int, frame: Frame) -> bool:
        """True if the value in this slot now is one."""
        return slot in self.always or (slot in self.at_first and iteration_in(frame) == 0)


def _given(compiled: CompiledModel, word: NonFiniteKind) -> list[tuple[Program, Given]]:
    """Return the given values of each program, from the outside inwards.

    A body is given what its loop is given. A NaN of a Constant counts like a NaN of an input; an Inf in a Constant is
    meant (a mask, the start of a maximum).
    """

    def constants(program: Program) -> frozenset[int]:
        return frozenset(
            slot for slot, value in enumerate(program.template) if value is not None and word is NonFiniteKind.NAN
        )

    known = {id(compiled.main): Given(constants(compiled.main).union(compiled.main.parameters))}
    for program in sorted(compiled.programs, key=lambda program: len(program.path)):
        for operation in program.operations if id(program) in known else ():  # else in a loop that no output needs
            for plan in operation.plans:
                always, at_first = _passed_on(operation, plan, known[id(program)].always)
                known[id(plan.program)] = Given(always | constants(plan.program), at_first)
    return [(program, known[id(program)]) for program in compiled.programs if id(program) in known]


def _passed_on(operation: Operation, plan: LoopPlan | BranchPlan, given: frozenset[int]) -> Given:
    def among(entries: Iterable[tuple[int, int]]) -> frozenset[int]:
        return frozenset(slot for index, slot in entries if operation.inputs[index] in given)

    if isinstance(plan, BranchPlan):
        return Given(among(plan.inputs))
    sliced = [(one.input, one.parameter) for one in plan.sliced]
    invariant = [(one.input, one.parameter) for one in plan.invariant]
    return Given(among(sliced + invariant), among((one.input, one.parameter) for one in plan.merged))


# --- the tests ------------------------------------------------------------------------------------------------------


def _guard(program: Program) -> Guard:
    depth = len(program.path)
    slots = [operation.outputs for operation in program.operations]
    made = frozenset(slot for outputs in slots for slot in outputs)
    computed = [tuple(slot for slot in operation.inputs if slot in made) for operation in program.operations]
    sections: dict[tuple[int, int], Indices] = {}

    def may_hold(stack: Frames, first: int, last: int) -> bool:
        section = sections.get((first, last))
        if section is None:
            section = sections[first, last] = tuple(
                slot for outputs in slots[max(first, 0) : last + 1] for slot in outputs
            )
        return not _all_finite(stack[depth].values, section)

    def which(stack: Frames, first: int, last: int) -> set[int]:
        section = range(max(first, 0), min(last + 1, len(slots)))
        return _new(stack[depth].values, [(index, computed[index], slots[index]) for index in section])

    return Guard(may_hold, which)


_NEITHER = False, False


def _new(values: list[Value], operations: Iterable[tuple[int, Indices, Indices]]) -> set[int]:
    """Return those with a NaN or Inf that no input has, of operations by number, computed inputs and outputs."""
    known: dict[int, tuple[bool, bool]] = {}

    def words(slot: int) -> tuple[bool, bool]:
        found = known.get(slot)
        if found is None:
            value, found = values[slot], _NEITHER
            if not _all_finite(values, (slot,)):
                found = holds_any(NonFiniteKind.NAN, value), holds_any(NonFiniteKind.INF, value)
            known[slot] = found
        return found

    found = set()
    for index, inputs, outputs in operations:
        for made in map(words, outputs):
            if True in made:
                given = [words(slot) for slot in inputs]
                if any(is_bad and not any(one[word] for one in given) for word, is_bad in enumerate(made)):
                    found.add(index)
    return found


def _all_finite(values: list[Value], slots: Sequence[int]) -> bool:
    """True if surely all of these values are finite; False may be wrong where a sum overflows."""
    total = 0.0
    for slot in slots:
        value = values[slot]
        if value is None:
            continue
        dtype = value.dtype
        if dtype is _F32 or (dtype.kind == "f" and dtype.itemsize > 2):
            total += value.item() if value.size == 1 else _sum(value, None)
        elif dtype.kind not in "biu" and dtype in FLOATING and not np.isfinite(value).all():
            return False
    return total - total == 0.0


def _test(word: NonFiniteKind, program: Program, operation: Operation, given: Given, file: str) -> Test:
    depth = len(program.path)

    def test(stack: Frames) -> Causes | None:
        frame = stack[depth]
        output = next((slot for slot in operation.outputs if holds_any(word, frame.values[slot])), None)
        if output is None:
            return None
        dirty = [slot for slot in operation.inputs if holds_any(word, frame.values[slot])]
        if not all(given.has(slot, frame) for slot in dirty):
            return None
        return (_cause(word, stack[: depth + 1], operation, output, file, given=bool(dirty)),)

    return test


def _cause(
    word: NonFiniteKind, frames: Frames, operation: Operation, slot: int, file: str, *, given: bool
) -> NonFinite:
    value = np.asarray(frames[-1].values[slot])
    mask = _TESTS[word](value)
    element = first_element(mask)
    origin = nan_origin(frames[-1], operation, operation.outputs.index(slot), element, file)
    return NonFinite(
        kind=word,
        location=operation_location(frames, file, operation, slot),
        element=element,
        count=int(mask.sum()),
        size=int(value.size),
        operands=origin.operands,
        given=given,
        arithmetic=origin.arithmetic,
        formula=origin.formula,
    )
