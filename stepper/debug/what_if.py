"""What-if: a value of the present is replaced by another, in a branch of the run that is marked as edited.

The original is never edited. A branch keeps its past, its edits, and where it stands; the histories of all branches
share the memory budget of the run evenly.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from stepper.debug import slots
from stepper.debug.addresses import Address, Target, numpy_index, parse_address, resolve
from stepper.debug.scopes import frame_of
from stepper.debug.timeline import Edit, Timeline
from stepper.element_types import FLOATING, STRING_DTYPE, Array, name_of
from stepper.engine.frames import Frame, Phase, place
from stepper.engine.machine import Machine
from stepper.engine.program import LoopPlan
from stepper.errors import UsageError
from stepper.ir.model import Layer
from stepper.ops.axes import shape_text

ORIGINAL: Final = "original"
"""The branch with which a run begins."""


class Branch(Struct, frozen=True):
    """A course of the run: where it stands, and the ticks at which values were changed in it."""

    name: str
    tick: int
    place: str
    edited_at: tuple[int, ...]
    present: bool


class Branches:
    """The branches of one run by name. One is the run itself, the others stand still until they are asked for."""

    def __init__(self, timeline: Timeline) -> None:
        self.name = ORIGINAL
        self._timeline = timeline
        self._budget = timeline.history.budget
        self._others: dict[str, Timeline] = {}

    def __iter__(self) -> Any:
        return iter([self._described(name) for name in sorted([self.name, *self._others])])

    @property
    def is_edited(self) -> bool:
        """Whether a value was changed on the way to the present."""
        return any(tick <= self._timeline.machine.tick for tick in self._timeline.edits)

    def go(self, name: str) -> int | None:
        """Go on in the branch of this name, a new one from the present if there is none.

        Returns the tick from which on it differs from the branch left; None where it does not. Raises UsageError.
        """
        if not name.isprintable() or not name or " " in name:
            raise UsageError("the name of a branch is one word")
        if name == self.name:
            return None
        self._others[self.name] = self._timeline.branch()
        self.name = name
        other = self._others.pop(name, None)
        parting = None if other is None else self._timeline.become(other)
        self._share_budget()
        return parting

    def _share_budget(self) -> None:
        timelines = [self._timeline, *self._others.values()]
        for timeline in timelines:
            timeline.history.limit(self._budget // len(timelines))

    def edits(self, name: str) -> Mapping[int, tuple[Edit, ...]]:
        """The values that were changed in a branch, by tick."""
        return (self._timeline if name == self.name else self._others[name]).edits

    def leave_all(self) -> None:
        """Have the original alone, where it stands."""
        if self.name != ORIGINAL:
            self.go(ORIGINAL)
        self._others.clear()

    def make_room(self) -> None:
        """Before an edit: go on in a new branch where this one is the original, or would lose its later edits."""
        tick = self._timeline.machine.tick
        if self.name == ORIGINAL or any(edited > tick for edited in self._timeline.edits):
            number = 1
            while f"edit-{number}" in {self.name, *self._others}:
                number += 1
            self.go(f"edit-{number}")

    def _described(self, name: str) -> Branch:
        timeline = self._timeline if name == self.name else self._others[name]
        machine = timeline.machine
        where = place(machine.stack) if machine.stack else "the end of the run"
        return Branch(name, machine.tick, where, tuple(sorted(timeline.edits)), name == self.name)


# --- one edit -------------------------------------------------------------------------------------------------------


def edit_of(machine: Machine, address: str | Address, value: Any) -> Edit:
    """The edit that gives the value (or the part of it) at an address another content.

    A number fills what is named; a tensor must have its shape. Raises UsageError for what has no value now, what is
    about to be replaced anyway, constants, and contents that the type cannot hold.
    """
    address = parse_address(address) if isinstance(address, str) else address
    if not machine.stack:
        raise UsageError("the run has ended; go back first (reverse-step, goto, first)")
    target = resolve(replace(address, index=()), machine.compiled, machine.stack[-1].program)
    if any(asked is not None for asked in target.iterations):
        raise UsageError(f"'{address}' names an iteration; only the present can be changed, so go there first")
    frame = _frame_to_edit(machine, target)
    return Edit(target.program, target.slot, _changed(frame.values[target.slot], address, value))


def edit_again(machine: Machine, target: Target, value: Any) -> Edit:
    """An edit that was made before at this moment: the whole value, in the type and shape that it has. UsageError."""
    held = _frame_to_edit(machine, target).values[target.slot]
    same_kind = isinstance(held, np.generic) is isinstance(value, np.generic)
    if not same_kind or held.dtype != value.dtype or held.shape != value.shape or held.dtype == STRING_DTYPE:
        forms = [f"{name_of(one.dtype)}{shape_text(one.shape)}" for one in (held, value)]
        raise UsageError(f"'{target.named.name}' is {forms[0]} here and cannot become {forms[1]}")
    if isinstance(value, np.ndarray):
        value.flags.writeable = False
    return Edit(target.program, target.slot, value)


def _frame_to_edit(machine: Machine, target: Target) -> Frame:
    depth = frame_of(machine.stack, target.program)
    if depth is None:
        raise UsageError(f"'{target.named.name}' has no value here: {target.program.name} is not running")
    frame = machine.stack[depth]
    _refuse_without_effect(frame, target)
    return frame


def _refuse_without_effect(frame: Frame, target: Target) -> None:
    name, slot = target.named.name, target.slot
    if not slots.is_current(frame, slot):
        raise UsageError(f"'{name}' has no value here: {slots.why_absent(frame, slot)}")
    if frame.program.template[slot] is not None:
        raise UsageError(f"'{name}' is a constant of the model; set a value that is computed from it")
    activation = frame.activation
    if activation is None or not isinstance(activation.plan, LoopPlan) or frame.phase is not Phase.BETWEEN:
        return
    plan, program = activation.plan, frame.program
    begins = f"'{name}' is replaced when the next iteration begins"
    fresh = {entry.parameter for entry in plan.sliced} | {number for number, _ in plan.current_iteration}
    if slot in fresh:
        raise UsageError(f"{begins}; set it once that has begun (next)")
    result = dict(plan.carried).get(slot, slot)
    if activation.iteration >= 0 and result != slot:
        source = program.graph.results[program.results.index(result)].name
        raise UsageError(f"{begins}, by what '{source}' is now: set that, or set '{name}' once it has begun (next)")


def is_still_read(machine: Machine, edit: Edit) -> bool:
    """True if anything that is to come in the frame of an edit reads the slot."""
    frame = machine.stack[edit.depth - 1]
    program, activation = frame.program, frame.activation
    if edit.slot in program.results:
        return True
    if frame.phase is Phase.BETWEEN:
        return edit.slot in program.parameters
    if frame.phase is not Phase.RUNNING:
        return False
    taken = edit.depth < len(machine.stack)  # the loop or If that runs in the frame has read its inputs
    if any(edit.slot in operation.inputs for operation in program.operations[frame.pc + taken :]):
        return True
    plan = None if activation is None else activation.plan
    stays = isinstance(plan, LoopPlan) and edit.slot in {entry.parameter for entry in plan.invariant}
    return stays and any(edit.slot in operation.inputs for operation in program.operations)


class Taken(NamedTuple):
    """What a loop that runs has taken from a value when it was entered: `trip count`, `condition` or `input N`."""

    layer: Layer
    what: str


def taken_by(machine: Machine, edit: Edit) -> Taken | None:
    """What the loop that runs in the frame of an edit has taken from the slot; None where that is nothing."""
    if edit.depth >= len(machine.stack):
        return None
    activation = machine.stack[edit.depth].activation
    if activation is None or edit.slot not in activation.operation.inputs:
        return None
    index = activation.operation.inputs.index(edit.slot)
    plan = activation.plan
    named = {plan.trip_count: "trip count", plan.condition: "condition"} if isinstance(plan, LoopPlan) else {}
    return Taken(activation.operation.layer, named.get(index, f"input {index}"))


def _changed(held: Any, address: Address, value: Any) -> Any:
    """What the slot holds, with the content of the part that the address names replaced."""
    changed = np.array(held)
    if changed.dtype == STRING_DTYPE or changed.dtype.names is not None or changed.dtype.kind in "SUO":
        raise UsageError(f"'{address}' is of type {name_of(changed.dtype)}, which cannot be set")
    index: Any = numpy_index(address.index) if address.index else ...
    try:
        part = np.asarray(changed[index])
    except IndexError:
        raise UsageError(f"'{address}': there is no such element in the shape {shape_text(changed.shape)}") from None
    given = np.asarray(value)
    if given.size == 1:
        given = given.reshape(())
    if given.shape not in ((), part.shape):
        sizes = f"the shape {shape_text(part.shape)}, the value has {shape_text(given.shape)}"
        raise UsageError(f"'{address}' has {sizes}")
    changed[index] = _converted(given, changed.dtype, address)
    changed.flags.writeable = False
    return changed[()] if isinstance(held, np.generic) else changed


def _converted(given: Array, dtype: np.dtype[Any], address: Address) -> Array:
    """In the type of the slot: to floats the nearest number, to integers and booleans only without a loss."""
    if given.dtype.kind not in "biuf" and given.dtype not in FLOATING:
        raise UsageError(f"'{address}' cannot be set to what is no tensor of numbers")
    with np.errstate(all="ignore"):
        cast = given.astype(dtype)
        if dtype in FLOATING:
            fits = bool(np.array_equal(np.isfinite(cast.astype(np.float64)), np.isfinite(given.astype(np.float64))))
        else:
            fits = bool(np.array_equal(cast.astype(given.dtype), given) and np.array_equal(cast < 0, given < 0))
    if not fits:
        raise UsageError(f"'{address}' is of type {name_of(dtype)}, which cannot hold {_shown(given)}")
    return cast


def _shown(given: Array) -> str:
    return str(given.item()) if given.size == 1 else f"these {given.size} values"
