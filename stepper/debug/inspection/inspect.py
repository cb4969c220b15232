"""Inspection of a stop: `inspect` reads a machine's frame stack and changes nothing.

Everything is a view of what is there; tensors are neither copied nor looked through, unless differences are asked for.
"""

from __future__ import annotations

from stepper.debug.inspection import explanations
from stepper.debug.inspection.condition_limits import condition_limit
from stepper.debug.inspection.if_sides import branch_view
from stepper.debug.inspection.inside import Inside, body_of
from stepper.debug.inspection.loops import loop_view
from stepper.debug.inspection.values import operation_view
from stepper.debug.inspection.views import LevelView, LoopView, StopView
from stepper.debug.scopes import innermost_loop, is_loop
from stepper.debug.stop import iteration_of
from stepper.engine.frames import Frame, Phase, loop_run, place
from stepper.engine.machine import Machine
from stepper.errors import UsageError


def inspect(machine: Machine, *, differences: bool = False) -> StopView:
    """Return everything that the present moment shows. `differences`: look through what the back edges carry, too."""
    stack = machine.stack
    done, following = _operations(stack[-1]) if stack else (None, None)
    loop = innermost_loop(stack)
    is_branch = bool(stack) and stack[-1].activation is not None and loop != len(stack) - 1
    return StopView(
        tick=machine.tick,
        place=place(stack) if stack else "model",
        levels=tuple(_level(stack, depth) for depth in range(len(stack))),
        done=None if done is None else operation_view(stack[-1], done),
        next=None if following is None else operation_view(stack[-1], following),
        loop=None if loop is None else _loop_at(machine, loop, differences=differences),
        branch=branch_view(_inside(machine, len(stack) - 1)) if is_branch else None,
        outputs=machine.outputs,
    )


def inspect_loop(machine: Machine, depth: int | None = None, *, differences: bool = False) -> LoopView:
    """Return the loop whose frame is at this depth of the stack (0 is the model's own graph), by default the innermost
    one.

    Raise UsageError where there is no loop.
    """
    found = innermost_loop(machine.stack) if depth is None else depth
    if found is None:
        raise UsageError("the run is in no loop here")
    if not 0 <= found < len(machine.stack):
        raise UsageError(f"the stack has the levels 0 to {len(machine.stack) - 1}; there is no level {found}")
    if not is_loop(machine.stack[found]):
        raise UsageError(f"level {found}, {_level(machine.stack, found).path}, is not a loop")
    return _loop_at(machine, found, differences=differences)


def _inside(machine: Machine, depth: int) -> Inside:
    stack = machine.stack
    return Inside.of(stack[depth], stack[depth - 1], _level(stack, depth), machine)


def _loop_at(machine: Machine, depth: int, *, differences: bool) -> LoopView:
    return loop_view(_inside(machine, depth), differences=differences)


def _operations(frame: Frame) -> tuple[int | None, int | None]:
    """Return the indices of the operation just executed in this frame and of the one that comes next."""
    if frame.phase is not Phase.RUNNING:
        return None, None
    return frame.pc - 1 if frame.pc else None, frame.pc if frame.pc < len(frame.program.operations) else None


def _level(stack: list[Frame], depth: int) -> LevelView:
    frame = stack[depth]
    activation = frame.activation
    layer = None if activation is None else activation.operation.layer
    running = frame.program.operations[frame.pc].layer if depth < len(stack) - 1 else None
    phase = explanations.phase(frame)
    if activation is not None and not is_loop(frame):
        phase = f"{body_of(frame).role}, {phase}"
    return LevelView(
        depth=depth,
        kind="model" if layer is None else layer.type,
        name="model" if layer is None else layer.name,
        path=place(stack[: depth + 1]),
        iteration=iteration_of(frame),
        count=explanations.count(activation, condition_limit(frame)) if activation and is_loop(frame) else "",
        phase=phase if running is None else f"{phase}, in {running.type} '{running.name}'",
        under_way=running,
        run=loop_run(stack[: depth + 1]),
        total=explanations.total(activation) if activation and is_loop(frame) else None,
        limit=explanations.limit(activation, condition_limit(frame)) if activation and is_loop(frame) else None,
        word="iteration" if layer is None else layer.iteration_word,
    )
