"""What the names in an expression mean at a moment of a run: values of the frames on the stack."""

from __future__ import annotations

from collections.abc import Sequence

from stepper.debug import slots
from stepper.debug.addresses import Address, Target, resolve
from stepper.debug.expression_values import Value
from stepper.engine.frames import Frame
from stepper.engine.machine import Machine
from stepper.engine.program import CompiledModel, LoopPlan, Program
from stepper.errors import UsageError


class Names:
    """Addresses resolved once for each graph from which they are seen."""

    def __init__(self, compiled: CompiledModel) -> None:
        self._compiled = compiled
        self._known: dict[tuple[Address, int], Target] = {}

    def target(self, address: Address, where: Program) -> Target:
        """What the address means, seen from a graph. Raises ResolutionError."""
        key = (address, id(where))
        if key not in self._known:
            self._known[key] = resolve(address, self._compiled, where)
        return self._known[key]


def frame_of(stack: Sequence[Frame], program: Program) -> int | None:
    """The depth of the frame that runs this program; None where none does."""
    return next((depth for depth, frame in enumerate(stack) if frame.program is program), None)


def is_loop(frame: Frame) -> bool:
    """Whether this is the frame of a TensorIterator or Loop."""
    return frame.activation is not None and isinstance(frame.activation.plan, LoopPlan)


def innermost_loop(stack: Sequence[Frame]) -> int | None:
    """The depth (0: the model's own graph) of the innermost frame that is a loop's; None where there is none."""
    return next((depth for depth in reversed(range(len(stack))) if is_loop(stack[depth])), None)


def iteration_now(stack: Sequence[Frame]) -> int:
    """The iteration of the innermost loop. Raises UsageError where there is none."""
    depth = innermost_loop(stack)
    activation = None if depth is None else stack[depth].activation
    if activation is None:
        raise UsageError("there is no iteration here, outside of every loop")
    if activation.iteration < 0:
        raise UsageError("no iteration has begun")
    return activation.iteration


def output_at_end(machine: Machine, target: Target) -> Value:
    """The value of a place when the run has ended, which the model's outputs alone have. Raises UsageError."""
    main = machine.compiled.main
    outputs = machine.outputs or ()
    if target.program is main and target.slot in main.results:
        return outputs[main.results.index(target.slot)]
    names = ", ".join(f"'{layer.name}'" for layer in main.graph.results)
    raise UsageError(
        f"the run has ended: '{target.named.name}' is no longer kept, only the outputs {names} are; "
        "go back for it (reverse-step, goto)"
    )


def value_now(stack: Sequence[Frame], target: Target) -> Value:
    """The present value of a place. Raises UsageError where there is none."""
    depth = frame_of(stack, target.program)
    if depth is None:
        raise UsageError(f"'{target.named.name}' has no value here: {target.program.name} is not running")
    frame = stack[depth]
    if not slots.is_current(frame, target.slot):
        raise UsageError(f"'{target.named.name}' has no value here: {slots.why_absent(frame, target.slot)}")
    return frame.values[target.slot]
