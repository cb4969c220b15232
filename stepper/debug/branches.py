"""Replace a value of the present by another, in an edited branch of the run (what-if).

The original is never edited. A branch is marked as edited. It keeps its past, its edits, and where it stands. The
history of each branch gets an equal share of the run's memory budget.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from msgspec.structs import replace

from stepper.debug.scopes import enclosing_loop, frame_of, target_in
from stepper.debug.timeline import (
    ORIGINAL,
    ConditionEdit,
    ConstantEdit,
    Edit,
    Timeline,
    TripCountEdit,
    ValueEdit,
    same_edit,
)
from stepper.element_types import FLOATING, STRING_DTYPE, Array, Indices, is_number, name_of
from stepper.engine.frames import Activation, Frame, Phase, place
from stepper.engine.machine import Machine
from stepper.engine.program import LoopPlan, Program
from stepper.engine.transitions import executed, with_constant
from stepper.errors import KernelError, UsageError
from stepper.ir.model import Layer
from stepper.ops.operands import form_text, shape_text
from stepper.query.address_resolution import Target, resolve
from stepper.query.address_syntax import Address, address_given, numpy_index
from stepper.records import Record

if TYPE_CHECKING:
    from stepper.debug.branch_differences import BranchDifference


# --- Edits of a run: what a user asks for, checked and put into the form in which replays make it again --------------


def edit_of(machine: Machine, address: str | Address, value: Any) -> Edit:
    """Return the edit that gives the value (or the part of it) at an address, or a constant, another content.

    A number fills what is named; a tensor must have its shape. Raise UsageError for what has no value now, what is
    about to be replaced anyway, and contents that the type cannot hold.
    """
    address = address_given(address)
    _ensure_running(machine)
    target = resolve(replace(address, index=()), machine.compiled, machine.stack[-1].program)
    if any(asked is not None for asked in target.iterations):
        raise UsageError(f"'{address}' names an iteration; only the present can be changed, so go there first")
    if is_constant(target):
        return _constant_edit(machine, target, _changed(constant_now(machine, target), address, value))
    held = _frame_to_edit(machine, target).values[target.slot]
    return ValueEdit(target.program, target.slot, _changed(held, address, value), held)


def edit_again(machine: Machine, target: Target, value: Any) -> Edit:
    """Return an edit of a value or constant, made before at this moment: all of it, in its type and shape.

    UsageError.
    """
    constant = is_constant(target)
    held = constant_now(machine, target) if constant else _frame_to_edit(machine, target).values[target.slot]
    same_kind = isinstance(held, np.generic) is isinstance(value, np.generic)
    if not same_kind or held.dtype != value.dtype or held.shape != value.shape or held.dtype == STRING_DTYPE:
        forms = [form_text(one) for one in (held, value)]
        raise UsageError(f"'{target.named.name}' is {forms[0]} here and cannot become {forms[1]}")
    if isinstance(value, np.ndarray):
        value.flags.writeable = False
    return _constant_edit(machine, target, value) if constant else ValueEdit(target.program, target.slot, value, held)


def _ensure_running(machine: Machine) -> None:
    if not machine.stack:
        raise UsageError("the run has ended; go back first (reverse-step, goto, first)")


# --- constants ------------------------------------------------------------------------------------------------------


def is_constant(target: Target) -> bool:
    """True for a Constant of the model."""
    return target.layer.type == "Constant"


def constant_now(machine: Machine, target: Target) -> Any:
    """Return what a constant is in this branch."""
    changed = machine.constants.get(id(target.program))
    held = target.program.template[target.slot]
    return held if changed is None else changed.values.get(target.slot, held)


def _constant_edit(machine: Machine, target: Target, value: Any) -> ConstantEdit:
    """Return the edit, tried before it is made. UsageError where what depends on the constant cannot be computed."""
    program, slot = target.program, target.slot
    try:
        with_constant(program, machine.constants.get(id(program)), slot, value)
    except (KernelError, ValueError, TypeError, ArithmeticError) as error:
        raise UsageError(f"'{target.named.name}' cannot be changed: {error}") from None
    return ConstantEdit(program, slot, value)


# --- loops that run -------------------------------------------------------------------------------------------------


def trip_count_edit(machine: Machine, count: int, loop: str | Program) -> TripCountEdit:
    """Return the edit that lets a loop that runs have `count` iterations in all.

    `loop` is the name or the body of the loop (empty: the innermost loop). -1: no limit. Raise UsageError for a count
    below the iterations begun, and for a count that exceeds the loop's sliced inputs.
    """
    frame, activation = _loop_to_edit(machine, loop)
    name, begun = f"{activation.operation.layer.type} '{activation.operation.layer.name}'", executed(frame)
    limit = None if count < 0 else count
    if count < -1:
        raise UsageError(f"a trip count is 0 or more, or -1 for no limit, not {count}")
    if limit is not None and limit < begun:
        many = f"{begun} iteration{'' if begun == 1 else 's'}"
        raise UsageError(f"{name} has begun {many}, so its trip count cannot be {limit}; the least is {begun}")
    if limit is None and not (frame.loop and frame.loop.is_loop):
        raise UsageError(f"{name} has no condition that could end it, so it needs a trip count")
    if activation.slices and (limit is None or limit > activation.slice_count):
        taken = zip(activation.plan.sliced, activation.slices, strict=True)  # type: ignore[union-attr]  # a loop's
        entry = next(entry for entry, slices in taken if slices.walk.count == activation.slice_count)
        where = f"input {entry.input}, line {entry.line}"
        raise UsageError(f"{name} has slices for {activation.slice_count} iterations ({where}), which is the most")
    return TripCountEdit(frame.program, limit)


def condition_edit(machine: Machine, *, holds: bool, loop: str | Program) -> ConditionEdit:
    """Return the edit that lets a loop that runs end or continue.

    `loop` is the name or the body of the loop (empty: the innermost loop). In an iteration: after the iteration,
    whatever its body says. Between two: now. Raise UsageError if the loop has no condition, or if the edit would change
    nothing.
    """
    frame, activation = _loop_to_edit(machine, loop)
    name, said = f"{activation.operation.layer.type} '{activation.operation.layer.name}'", str(holds).lower()
    if not (frame.loop and frame.loop.is_loop):
        raise UsageError(f"{name} has no condition; set trip-count = {executed(frame)} ends it after this iteration")
    if frame.phase is not Phase.RUNNING and activation.condition is holds:
        raise UsageError(f"the condition of {name} is {said} already")
    if frame.phase is Phase.LEAVING and activation.limit == executed(frame):
        raise UsageError(f"{name} has run all {activation.limit} iterations; set trip-count = N lets it run more")
    if holds and executed(frame) >= activation.slice_count:
        raise UsageError(f"{name} has slices for {activation.slice_count} iterations, and no more can follow")
    return ConditionEdit(frame.program, holds)


def _loop_to_edit(machine: Machine, loop: str | Program) -> tuple[Frame, Activation]:
    _ensure_running(machine)
    if isinstance(loop, Program):
        depth = frame_of(machine.stack, loop)
    else:
        depth = enclosing_loop(machine.stack[-1].program.path, loop)
    if depth is None or not (frame := machine.stack[depth]).loop:
        raise UsageError("the loop does not run here")
    return frame, frame.active


# --- values ---------------------------------------------------------------------------------------------------------


def _frame_to_edit(machine: Machine, target: Target) -> Frame:
    depth = frame_of(machine.stack, target.program)
    if depth is None:
        raise UsageError(f"'{target.named.name}' has no value here: {target.program.name} is not running")
    frame = machine.stack[depth]
    _refuse_without_effect(frame, target)
    return frame


def _refuse_without_effect(frame: Frame, target: Target) -> None:
    name, slot = target.named.name, target.slot
    if not frame.is_current(slot):
        raise UsageError(f"'{name}' has no value here: {frame.why_absent(slot)}")
    if frame.program.template[slot] is not None:
        raise UsageError(f"'{name}' is computed from constants alone, before the run; set one of those")
    plan, program = frame.loop, frame.program
    if plan is None or frame.phase is not Phase.BETWEEN:
        return
    begins = f"'{name}' is replaced when the next iteration begins"
    fresh = {entry.parameter for entry in plan.sliced} | {number for number, _ in plan.current_iteration}
    if slot in fresh:
        raise UsageError(f"{begins}; set it once that has begun (next)")
    result = dict(plan.carried).get(slot, slot)
    if frame.active.iteration >= 0 and result != slot:
        source = program.graph.results[program.results.index(result)].name
        raise UsageError(f"{begins}, by what '{source}' is now: set that, or set '{name}' once it has begun (next)")


def is_still_read(machine: Machine, edit: ValueEdit | ConstantEdit) -> bool:
    """True if anything that is to come in the frame of an edit reads the slot, or of a constant in a later one."""
    if isinstance(edit, ConstantEdit) and edit.program.path:
        return True
    frame = edit.frame(machine)
    program, plan = frame.program, frame.loop
    if edit.slot in program.results:
        return True
    if frame.phase is Phase.BETWEEN:
        return edit.slot in program.parameters
    if frame.phase is not Phase.RUNNING:
        return False
    taken = edit.depth < len(machine.stack)  # the loop or If that runs in the frame has read its inputs
    if any(edit.slot in operation.inputs for operation in program.operations[frame.pc + taken :]):
        return True
    stays = plan is not None and edit.slot in {entry.parameter for entry in plan.invariant}
    return stays and any(edit.slot in operation.inputs for operation in program.operations)


class Taken(NamedTuple):
    """Part that a loop that runs has taken from a value when it was entered: `trip count`, `condition` or `input N`."""

    layer: Layer
    what: str


def taken_by(machine: Machine, edit: ValueEdit | ConstantEdit) -> Taken | None:
    """Return what the loop that runs in the frame of an edit has taken from the slot; None where that is nothing."""
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
    """Return what the slot holds, with the content of the part that the address names replaced."""
    changed = np.array(held)
    if changed.dtype.names is not None or changed.dtype.kind in "SUOT":
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
    if not is_number(given.dtype):
        raise UsageError(f"'{address}' can only be set to numbers")
    with np.errstate(all="ignore"):
        cast = given.astype(dtype)
        if dtype in FLOATING:
            fits = bool(np.array_equal(np.isfinite(cast.astype(np.float64)), np.isfinite(given.astype(np.float64))))
        else:
            fits = bool(np.array_equal(cast.astype(given.dtype), given) and np.array_equal(cast < 0, given < 0))
    if not fits:
        shown = given.item() if given.size == 1 else f"these {given.size} values"
        raise UsageError(f"'{address}' is of type {name_of(dtype)}, which cannot hold {shown}")
    return cast


# ---------------------------------------------------------------------------------------------------------------------


WORDS = ("rename", "delete", "diff")
"""Names that no branch can have: the commands about branches."""


class Branch(Record):
    """A course of the run: where it stands, and the ticks at which values were changed in it.

    `parent` is the branch that it left at the tick `parted`, empty for the original. `edits` are its own in words, with
    their ticks; those that it shares with its parent are left out.
    """

    name: str
    tick: int
    place: str
    edited_at: Indices
    present: bool
    parent: str
    parted: int
    edits: tuple[tuple[int, str], ...]


class Parent(NamedTuple):
    """The branch that another left, and the tick at which."""

    name: str
    tick: int


class Branches:
    """The branches of one run by name. One is the run itself, the others stand still until they are asked for."""

    def __init__(self, timeline: Timeline) -> None:
        self.name = ORIGINAL
        self._timeline = timeline
        self._budget = timeline.history.budget
        self._others: dict[str, Timeline] = {}
        self._parents: dict[str, Parent] = {}
        self._kept: tuple[Edit, ...] = ()

    def __iter__(self) -> Iterator[Branch]:
        return iter([self._described(name) for name in sorted([self.name, *self._others])])

    def __contains__(self, name: object) -> bool:
        return name == self.name or name in self._others

    @property
    def is_edited(self) -> bool:
        """True if a value was changed on the way to the present."""
        return any(tick <= self._timeline.machine.tick for tick in self._timeline.edits)

    @property
    def has_edits(self) -> bool:
        """True if any branch has edits."""
        return any(self.edits(branch.name) for branch in self)

    @property
    def has_unkept_edits(self) -> bool:
        """True if an edit of any branch is in no session that was saved or put back."""
        return any(all(edit is not kept for kept in self._kept) for edit in self._all_edits())

    def keep_edits(self) -> None:
        """Take it that all edits are in a session now."""
        self._kept = self._all_edits()

    def _all_edits(self) -> tuple[Edit, ...]:
        return tuple(edit for branch in self for edits in self.edits(branch.name).values() for edit in edits)

    @property
    def title(self) -> str:
        """Return the name of the present branch, and that it is edited; empty for the original."""
        if self.name == ORIGINAL:
            return ""
        return f"{self.name}, edited" if self.is_edited else self.name

    def go(self, name: str) -> int | None:
        """Go on in the branch of this name, a new one from the present if there is none.

        Returns the tick from which on it differs from the branch left; None where it does not. Raise UsageError.
        """
        if name == self.name:
            return None
        if name not in self._others:
            _ensure_name(name)
            self._parents[name] = Parent(self.name, self._timeline.machine.tick)
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

    def timeline(self, name: str) -> Timeline:
        """Return the timeline of a branch, which runs on if it is the present branch.

        Raise UsageError for an unknown name.
        """
        if name == self.name:
            return self._timeline
        if name not in self._others:
            raise UsageError(f"there is no branch '{name}'; there are {', '.join(sorted([self.name, *self._others]))}")
        return self._others[name]

    def edits(self, name: str) -> Mapping[int, tuple[Edit, ...]]:
        """Return what was changed in a branch, by tick."""
        return self.timeline(name).edits

    def rename(self, name: str, to: str) -> None:
        """Give a branch another name. Raise UsageError for the original, and for a name that is taken."""
        self.timeline(name)
        _ensure_name(to)
        if name == ORIGINAL:
            raise UsageError(f"'{ORIGINAL}' keeps its name: it is the run without edits")
        if to in self:
            raise UsageError(f"there is a branch '{to}' already")
        if name == self.name:
            self.name = to
        else:
            self._others[to] = self._others.pop(name)
        self._parents[to] = self._parents.pop(name)
        for child, parent in self._parents.items():
            if parent.name == name:
                self._parents[child] = Parent(to, parent.tick)

    def delete(self, name: str, *, descendants: bool = False) -> tuple[str, ...]:
        """Forget a branch; return the names of all branches that are gone.

        `descendants`: forget the branches that left it, too. Raise UsageError for the original, for the present branch,
        and for a branch that others left, unless these go, too.
        """
        self.timeline(name)
        gone = (name, *self._descendants(name))
        if name == ORIGINAL:
            raise UsageError(f"'{ORIGINAL}' cannot be deleted: it is the run without edits")
        if self.name in gone:
            whose = "" if name == self.name else f"'{self.name}' descends from '{name}', and "
            raise UsageError(f"{whose}'{self.name}' is where you are; go to another first: branch {ORIGINAL}")
        if len(gone) > 1 and not descendants:
            raise UsageError(f"{', '.join(gone[1:])} descend from '{name}'; branch delete {name} all takes them along")
        for one in gone:
            del self._others[one], self._parents[one]
        self._share_budget()
        return gone

    def _descendants(self, name: str) -> list[str]:
        found: list[str] = []
        for child, parent in sorted(self._parents.items()):
            if parent.name == name:
                found += [child, *self._descendants(child)]
        return found

    def put_back(self, name: str, parent: str, parted: int) -> None:
        """Say from which branch one descends, which was kept in a session."""
        if name != ORIGINAL:
            self._parents[name] = Parent(parent or ORIGINAL, parted)

    @property
    def last_edit(self) -> str:
        """Return the last edit of the present branch, in words; empty if there is none."""
        edits = self._timeline.edits
        return f"{edit_text(edits[max(edits)][-1])} (tick {max(edits)})" if edits else ""

    def undo(self) -> int:
        """Take back the last edit of the present branch, and stand at its moment; return the tick.

        Raise UsageError where nothing was changed.
        """
        edits = self._timeline.edits
        if not edits:
            raise UsageError(f"nothing was changed in the branch '{self.name}'")
        tick = max(edits)
        self._timeline.take_back()
        return tick

    def difference(self, a: str, b: str, *, paused: Callable[[], bool] = lambda: False) -> BranchDifference:
        """Return what differs between two branches, where first, and how far; both are run to their end. UsageError.

        `paused` is asked all the time; what was found until it says so is the answer.
        """
        from stepper.debug.branch_differences import compare_timelines  # few ask for it

        return compare_timelines(a, self.timeline(a).branch(), b, self.timeline(b).branch(), paused)

    def leave_all(self) -> None:
        """Have the original alone, where it stands."""
        if self.name != ORIGINAL:
            self.go(ORIGINAL)
        self._others.clear()
        self._parents.clear()

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
        parent = self._parents.get(name, Parent("", 0))
        shared = self.timeline(parent.name).edits if parent.name else {}
        own = [
            (tick, edit_text(edit))
            for tick, made in sorted(timeline.edits.items())
            for edit in made
            if not any(same_edit(edit, other) for other in shared.get(tick, ()))
        ]
        ticks = tuple(sorted(timeline.edits))
        return Branch(name, machine.tick, where, ticks, name == self.name, parent.name, parent.tick, tuple(own))


def _ensure_name(name: str) -> None:
    if not name.isprintable() or not name or " " in name:
        raise UsageError("the name of a branch is one word")
    if name in WORDS:
        raise UsageError(f"no branch can be called '{name}', which is a command about branches")


def edit_text(edit: Edit) -> str:
    """Return an edit in words, in the form that sets it."""
    if isinstance(edit, ValueEdit | ConstantEdit):
        what = "constant " if isinstance(edit, ConstantEdit) else ""
        value = np.asarray(edit.value)
        shown = str(value.item()) if value.size == 1 else form_text(value)
        return f"{what}{target_in(edit.program, edit.slot).named.name} = {shown}"
    loop = edit.program.path[-1].name
    if isinstance(edit, TripCountEdit):
        return f"trip-count of {loop} = {-1 if edit.count is None else edit.count}"
    assert isinstance(edit, ConditionEdit)
    return f"condition of {loop} = {str(edit.holds).lower()}"
