"""Checks: questions of breakpoints at places of a program, the common form of everything that can stop a run."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple

from msgspec import Struct

from stepper.debug.causes.cause import Cause
from stepper.engine.frames import Frame
from stepper.engine.program import CompiledModel, LoopPlan, Program, host_of
from stepper.ir.model import Layer

BEGUN: Final = -1
"""The place at which an iteration (or a side of an If) has got its inputs."""

Causes = tuple[Cause, ...]
Test = Callable[[Sequence[Frame]], Causes | None]
"""Given the stack at a moment: what holds, as data, or None where nothing does."""


class ValueTest(NamedTuple):
    """Quick test of values of a body; see `ValueWatch` for what it is made of."""

    read: Callable[[tuple[Any, ...]], object]
    judged: Callable[[Any], bool]
    slots: tuple[int, ...]


class Check(Struct, frozen=True, eq=False):
    """A test at a place: after operation `index` of a program, at BEGUN, or (its operations' number) when it is closed.

    A test may be made later, at any moment until the values of the iteration are gone, so it reads nothing that is
    computed after its place; `prompt`: it is to be made at once, because it is likely to stop the run.
    `at_entry`: to be made as well where a loop is entered that runs no iteration.
    `guard` is shared by many checks and says quickly whether any of them can hold; `may_hold` says so of this one, or
    raises a StepperError, of which the test has the words; `of_values` does where no more is read than values of the
    body's own.
    """

    program: Program
    index: int
    test: Test
    prompt: bool = False
    at_entry: bool = False
    guard: Guard | None = None
    may_hold: Callable[[Sequence[Frame]], bool] | None = None
    of_values: ValueTest | None = None


class Guard(Struct, frozen=True, eq=False):
    """Quick test of whether any check among those of operations `first` to `last` can hold; False is certain."""

    may_hold: Callable[[Sequence[Frame], int, int], bool]


def closed(program: Program) -> int:
    """Return the place at which an iteration of this body has been closed."""
    return len(program.operations)


def is_body(program: Program) -> bool:
    """True if this is the body of a loop."""
    return bool(program.path) and program.path[-1].is_loop


def body_of(layer: Layer, compiled: CompiledModel) -> Program:
    """Return the program of a loop's body."""
    return next(program for program in compiled.programs if program.path and program.path[-1] is layer)


def bodies(compiled: CompiledModel) -> list[Program]:
    """Return the bodies of all loops that a Result needs."""
    needed = {id(plan.program) for outer in compiled.programs for one in outer.operations for plan in one.plans}
    return [program for program in compiled.programs if is_body(program) and id(program) in needed]


def plan_of(program: Program, compiled: CompiledModel) -> LoopPlan:
    """Return the plan of the loop whose body this is. UsageError if no Result needs it."""
    plan = host_of(compiled, program)[1]
    assert isinstance(plan, LoopPlan)
    return plan


def iteration_in(frame: Frame) -> int:
    """Return the iteration of a loop's frame."""
    assert frame.activation is not None, "a loop has one"
    return frame.activation.iteration


def named(layer: Layer) -> str:
    """Return a layer for sentences: `MatMul 'proj'`."""
    return f"{layer.type} '{layer.name}'"


def place_text(program: Program, index: int) -> str:
    """Return the place of a check for sentences: `after MatMul 'proj' in Loop 'decoder'`."""
    moments = {BEGUN: "when an iteration begins", closed(program): "when an iteration is closed"}
    what = moments.get(index) or f"after {named(program.operations[index].layer)}"
    inside = " > ".join(map(named, program.path))
    return f"{what} in {inside}" if inside else f"{what} in the model's own graph"
