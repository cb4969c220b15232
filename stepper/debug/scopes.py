"""Names of an expression at a moment of a run, and values of another run beside it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import suppress
from typing import NamedTuple, Protocol, runtime_checkable

from msgspec.structs import replace

from stepper.element_types import Array
from stepper.engine.frames import Frame
from stepper.engine.machine import Machine
from stepper.engine.program import CompiledModel, LoopPlan, Program
from stepper.errors import StepperError, UsageError
from stepper.ir.model import BodyRole, Layer
from stepper.query.address_resolution import Atlas, Target, means_something, resolve, shape_asked
from stepper.query.address_syntax import Address, AddressError, NameKind, exact_name, parse_address
from stepper.query.expression_values import Value


class NotRunning(UsageError):
    """A value has none now, since no frame runs its graph."""

    def __init__(self, message: str, program: Program) -> None:
        super().__init__(message)
        self.program = program


class Names:
    """Addresses resolved once for each graph from which they are seen."""

    def __init__(self, compiled: CompiledModel) -> None:
        self._compiled = compiled
        self._known: dict[tuple[Address, int], Target] = {}

    def target(self, address: Address, where: Program) -> Target:
        """Return what the address means, seen from a graph. Raise ResolutionError."""
        key = (address, id(where))
        if key not in self._known:
            self._known[key] = resolve(address, self._compiled, where)
        return self._known[key]

    def as_expression(self, text: str, where: Program) -> str:
        """Return an expression with addresses of screens and explanations in the form of expressions.

        An address alone may have a name such as `q/MatMul`, where it would not divide, and `h.shape@3[0]` is
        `shape(h@3)[0]`. ExpressionError.
        """
        if "/" not in text and ".shape" not in text:
            return text
        from stepper.query.expression_syntax import with_addresses

        def meant(address: Address) -> Address | str:
            value = shape_asked(address, self._compiled, where)
            return address if value is None else f"shape({value})"

        return with_addresses(self._quoted(text, where), meant)

    def _quoted(self, text: str, where: Program) -> str:
        """Return the text, where it is an address with a name that expressions divide in, with that in backquotes."""
        from stepper.query.expressions import parse

        try:
            asked = parse_address(text)
        except AddressError:
            return text
        name = asked.operation
        if name is None or name.kind is not NameKind.PLAIN or "/" not in name.text:
            return text
        with suppress(StepperError):
            if all(means_something(one, self._compiled, where) for one in parse(text).addresses):
                return text  # one value by another
        quoted = replace(asked, operation=exact_name(name.text))
        is_there = means_something(quoted, self._compiled, where) or shape_asked(quoted, self._compiled, where)
        return str(quoted) if is_there else text


def frame_of(stack: Sequence[Frame], program: Program) -> int | None:
    """Return the depth of the frame that runs this program; None where none does."""
    return next((depth for depth, frame in enumerate(stack) if frame.program is program), None)


def is_body(program: Program) -> bool:
    """True if this is the body of a loop."""
    return bool(program.path) and program.path[-1].is_loop


def loop_depth(program: Program) -> int | None:
    """Return the depth of the frame of the innermost loop around a program, or its own; None where there is none."""
    return next((depth for depth in range(len(program.path), 0, -1) if program.path[depth - 1].is_loop), None)


def innermost_loop(stack: Sequence[Frame]) -> int | None:
    """Return the depth (0: the model's own graph) of the innermost frame that is a loop's; None where there is none."""
    return next((depth for depth in reversed(range(len(stack))) if stack[depth].loop), None)


def enclosing_loop(path: Sequence[Layer], name: str) -> int:
    """Return the depth (1: directly in the model's own graph) of the loop of this name on a path; without one the
    innermost.

    A name may be cut to its end behind `/` or `.`, where that is unambiguous. Raise UsageError, which lists the loops.
    """
    layers = {depth: layer for depth, layer in enumerate(path, 1) if layer.is_loop}
    loops = {depth: layer.name for depth, layer in layers.items()}
    if not loops:
        raise UsageError("there is no iteration here, outside of every loop")
    if not name:
        return max(loops)
    fitting = [depth for depth, layer in layers.items() if layer.is_called(name)]
    fitting = fitting or [depth for depth, known in loops.items() if known.endswith((f"/{name}", f".{name}"))]
    if len(fitting) == 1:
        return fitting[0]
    known = ", ".join(f"'{loop}'" for loop in loops.values())
    raise UsageError(
        f"'{name}' is {'more than one' if fitting else 'no'} loop around this place; around it are {known}"
    )


def iteration_now(stack: Sequence[Frame], loop: str = "") -> int:
    """Return the iteration of the innermost loop, or of the one of the name. Raise UsageError where there is none."""
    activation = stack[enclosing_loop(stack[-1].program.path if stack else (), loop)].activation
    if activation is None or activation.iteration < 0:
        raise UsageError("no iteration has begun")
    return activation.iteration


def loop_elsewhere(stack: Sequence[Frame], program: Program) -> Layer | None:
    """Return the innermost loop around a graph, or its own, if that does not run here; else None."""
    depth = loop_depth(program)
    if depth is None or any(frame.program.path[:depth] == program.path[:depth] for frame in stack):
        return None
    return program.path[depth - 1]


def output_at_end(machine: Machine, target: Target) -> Value:
    """Return the value of a place when the run has ended, which the model's outputs alone have. Raise UsageError."""
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
    """Return the present value of a place. Raise UsageError where there is none."""
    depth = frame_of(stack, target.program)
    if depth is None:
        sentence = f"'{target.named.name}' has no value here: {target.program.name} is not running"
        raise NotRunning(sentence, target.program)
    frame = stack[depth]
    if not frame.is_current(target.slot):
        raise UsageError(f"'{target.named.name}' has no value here: {frame.why_absent(target.slot)}")
    return frame.values[target.slot]


def target_in(program: Program, slot: int) -> Target:
    """Return the place of a slot: the layer that has it, rather than a Result that hands it out."""
    layer, output = next(
        (program.graph.by_id[number], output)
        for (number, output), known in program.slots.items()
        if known == slot and program.graph.by_id[number].type != "Result"
    )
    return Target(program, layer, output, slot, layer, (None,) * len(program.path))


class PathStep(NamedTuple):
    """A step of a path: the loop or If, which of its bodies runs, and the iteration (None for a branch)."""

    layer: Layer
    role: BodyRole
    iteration: int | None


GraphPath = tuple[PathStep, ...]
"""Path from the model's own graph to a nested one, outer before inner; empty for the model's own graph."""


class ValuePlace(NamedTuple):
    """Place of a value of the debugged run: the path to its graph, the layer that computes it, its output.

    `frame` is our live state of that graph, for references that compute from our values.
    """

    path: GraphPath
    layer: Layer
    output: int
    frame: Frame | None = None


class ReferenceValues(Protocol):
    """Values of another run, at the places of ours."""

    @property
    def title(self) -> str:
        """Name in messages."""

    def value_at(self, place: ValuePlace) -> Array | None:
        """Return the value at this place; None where the other run has none. May raise StepperError."""


@runtime_checkable
class ReferenceNotes(Protocol):
    """Sentences on where the other run failed, such as by a crash; none if it did not."""

    @property
    def notes(self) -> Sequence[str]:
        """Return them in the order in which it failed."""


def path_of(stack: Sequence[Frame]) -> GraphPath:
    """Return the path to the graph that the innermost of these frames runs."""
    return tuple(step_of(frame) for frame in stack[1:])


def step_of(frame: Frame) -> PathStep:
    """Return the step from the graph around a frame into the frame."""
    activation = frame.active
    layer, plan = activation.operation.layer, activation.plan
    if isinstance(plan, LoopPlan):
        return PathStep(layer, "body", activation.iteration)
    return PathStep(layer, "then_body" if activation.operation.plans[0] is plan else "else_body", None)


def path_to(program: Program, iterations: Iterable[int | None], compiled: CompiledModel) -> GraphPath:
    """Return the path to a program's graph, in these iterations of the layers around it (None: an If, or not known)."""
    atlas, found = Atlas(compiled), list[PathStep]()
    for depth, (layer, iteration) in enumerate(zip(program.path, iterations, strict=False), 1):
        graph = atlas.ancestor(program, depth).graph
        role = next(body.role for body in layer.bodies if body.graph is graph)
        found.append(PathStep(layer, role, iteration if layer.is_loop else None))
    return tuple(found)


def loop_steps(path: GraphPath) -> GraphPath:
    """Return the steps that are loops."""
    return tuple(step for step in path if step.iteration is not None)


class ReferencedValue:
    """A value of ours that a reference is asked for at any moment."""

    def __init__(self, program: Program, slot: int) -> None:
        self.program = program
        layer_id, self.output = next(key for key, found in program.slots.items() if found == slot)
        self.layer = program.graph.by_id[layer_id]

    def value(self, stack: Sequence[Frame], reference: ReferenceValues) -> Array | None:
        """Return what it is in the reference now; None if that has none. Raise UsageError if our run is elsewhere."""
        depth = frame_of(stack, self.program)
        if depth is None:
            raise UsageError(f"{self.program.name} is not running")
        return reference.value_at(ValuePlace(path_of(stack[: depth + 1]), self.layer, self.output, stack[depth]))
