"""`break shape [loop]`: a value of a body has another shape or type than one iteration before.

Of operations in a row only the first is reported, of which no computed input differs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

from msgspec import Struct

from stepper import element_types
from stepper.debug.breakpoints.breakpoint import Causes, Check, Guard, IterationWindow
from stepper.debug.breakpoints.data_breakpoints import Checks, DataBreakpoint, Setting, checks_of_loops, kind
from stepper.debug.causes.cause import Cause
from stepper.debug.causes.locations import location_of
from stepper.debug.causes.texts import Words, layer_text, where, words
from stepper.engine.frames import Frame
from stepper.engine.program import Program, Value
from stepper.ops.operands import shape_text

_Form = tuple[Any, Any]


class PortForm(Struct, frozen=True):
    """Type and shape of an output in the iteration before, and now."""

    output: int
    before: str
    now: str


class FormChanged(Cause, frozen=True, kw_only=True):
    """The shape or type of outputs of an operation changed from one iteration to the next."""

    kind: Literal["shape"] = "shape"
    outputs: tuple[PortForm, ...]


@kind("shape [LOOP]", "a value of a body has another shape or type than one iteration before")
def shape(wanted: DataBreakpoint, setting: Setting) -> Checks:
    """Return a check of each operation of the bodies."""
    return checks_of_loops(wanted, setting, lambda body: _checks(setting, body))


def _checks(setting: Setting, program: Program) -> Checks:
    depth, file = len(program.path), setting.file

    slots = [operation.outputs for operation in program.operations]

    def forms(stack: Sequence[Frame]) -> dict[int, _Form | None]:
        values = stack[depth].values
        return {slot: _form(values[slot]) for outputs in slots for slot in outputs}

    window = IterationWindow(setting.timeline, program, forms)

    def may_hold(stack: Sequence[Frame], first: int, last: int) -> bool:
        before, values = window.past(stack), stack[depth].values
        if before is None:
            return False
        section = slots[max(first, 0) : last + 1]
        return any(before[slot] != _form(values[slot]) for outputs in section for slot in outputs)

    guard = Guard(may_hold)

    def differs(stack: Sequence[Frame], before: Mapping[int, _Form | None], slot: int) -> bool:
        value = stack[depth].values[slot]
        return value is not None and before[slot] is not None and _form(value) != before[slot]

    def check(index: int) -> Check:
        operation = program.operations[index]
        computed = [slot for slot in operation.inputs if slot in program.computed_at]

        def test(stack: Sequence[Frame]) -> Causes | None:
            before = window.past(stack)
            if before is None or any(differs(stack, before, slot) for slot in computed):
                return None
            forms = tuple(
                PortForm(output, _form_text(before[slot]), _form_text(_form(stack[depth].values[slot])))
                for output, slot in enumerate(operation.outputs)
                if differs(stack, before, slot)
            )
            if not forms:
                return None
            location = location_of(stack[: depth + 1], file, operation.layer)
            return (FormChanged(location=location, outputs=forms),)

        return Check(program, index, test, guard=guard)

    checks = [check(index) for index, operation in enumerate(program.operations) if operation.outputs]
    return Checks(checks, [window])


def _form(value: Value | None) -> _Form | None:
    return None if value is None else (value.shape, value.dtype)


def _form_text(form: _Form | None) -> str:
    assert form is not None, "only what is there is compared"
    return f"{element_types.name_of(form[1])}{shape_text(form[0])}"


@words.register
def _form_words(cause: FormChanged, *, named: bool) -> Words:
    changed = f"the shape or type of {layer_text(cause.location.operation, named=named)} changed"
    forms = "; ".join(f"{one.before} became {one.now}" for one in cause.outputs)
    return Words(changed, where(cause.location, named=named), forms)
