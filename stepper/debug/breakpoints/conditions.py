"""Expressions bound to a place of a program: what a breakpoint's condition, a threshold or a logpoint reads there."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from operator import itemgetter
from typing import Any, Final

import numpy as np

from stepper.debug.breakpoints.checks import BEGUN, ValueTest, bodies, closed, is_body, iteration_in
from stepper.debug.breakpoints.iteration_window import IterationWindow
from stepper.debug.causes.locations import file_of
from stepper.debug.reference_values import ReferencedValue
from stepper.debug.scopes import enclosing_loop
from stepper.debug.timeline import Timeline
from stepper.engine.frames import Frame
from stepper.engine.program import CompiledModel, Program, Value
from stepper.errors import UsageError
from stepper.query.address_resolution import Target, resolve
from stepper.query.address_syntax import Address
from stepper.query.atlas import Atlas
from stepper.query.expression_compiler import Leaves
from stepper.query.expression_syntax import Call, Indexed, Node, parse_tree
from stepper.query.expressions import Expression, parse

_MEASURES: Final = {"shape", "rank", "size", "dtype"}
_ONE: Final = (1,)


class NotThere(UsageError):
    """A value that does not exist at a moment: of no iteration before, or of what never ran."""


class StackScope:
    """The values on a stack of frames by address. `places` says depth and slot of each; set `stack` before reading."""

    __slots__ = ("_loop", "_places", "_windows", "loops", "references", "stack", "timeline")

    loops: dict[str, int]
    references: dict[Address, ReferencedValue]
    timeline: Timeline

    def __init__(self, places: dict[Address, tuple[int, int]], loop: int, windows: dict[int, IterationWindow]) -> None:
        self.stack: Sequence[Frame] = ()
        self._places = places
        self._loop = loop
        self._windows = windows

    def value(self, address: Address) -> Value:
        """Return the value now."""
        depth, slot = self._places[address]
        value = self.stack[depth].values[slot]
        if value is None:
            raise NotThere(f"{address} has no value here")
        return value

    def previous(self, address: Address) -> Value:
        """Return the value one iteration before."""
        depth, slot = self._places[address]
        values = self._windows[depth].past(self.stack)
        if values is None:
            raise NotThere(f"{address} has no value before iteration 0")
        return values[slot]

    def reference(self, address: Address) -> Value:
        """Return the value in the reference run."""
        reference = self.timeline.reference
        value = None if reference is None else self.references[address].value(self.stack, reference)
        if value is None:
            raise NotThere(f"the reference has no value for {address}")
        return value

    def iteration(self) -> int:
        """Return the iteration of the innermost loop."""
        return iteration_in(self.stack[self._loop])

    def iteration_of(self, loop: str) -> int:
        """Return the iteration of the loop of a name around."""
        return iteration_in(self.stack[self.loops[loop]])


class SingleScope(StackScope):
    """Gives a tensor of shape [1] as its element, with which expressions are several times as fast."""

    __slots__ = ()

    def value(self, address: Address) -> Value:
        """Return the value now."""
        depth, slot = self._places[address]
        value = self.stack[depth].values[slot]
        if value is None:
            raise NotThere(f"{address} has no value here")
        return value[0] if value.shape == _ONE else value


class OnlyScope(StackScope):
    """The same for an expression with one address, which it need not look up."""

    __slots__ = ("_depth", "_slot")

    def __init__(self, places: dict[Address, tuple[int, int]], loop: int, windows: dict[int, IterationWindow]) -> None:
        super().__init__(places, loop, windows)
        self._depth, self._slot = next(iter(places.values()), (0, 0))

    def value(self, address: Address) -> Value:
        """Return the value now."""
        value = self.stack[self._depth].values[self._slot]
        if value is None:
            raise NotThere(f"{address} has no value here")
        return value[0] if value.shape == _ONE else value


def _holding(expression: Expression, scope: StackScope) -> Callable[[Sequence[Frame]], bool]:
    read, judged = expression.reading, expression.judged

    def holds(stack: Sequence[Frame]) -> bool:
        scope.stack = stack
        try:
            value = read(scope)
        except NotThere:
            return False
        return judged(value) if type(value) is not np.bool_ else bool(value)

    return holds


def _value_test(expression: Expression, targets: dict[Address, Target], program: Program) -> ValueTest | None:
    """Return the same of the values of a body alone; None where something else is read."""
    if expression.previous or expression.references or expression.loops or not is_body(program):
        return None
    if any(target.program is not program for target in targets.values()):
        return None
    whole, count = _needs_shapes(expression.text), len(targets)
    places = {address: place for place, address in enumerate(targets)}

    def operand(address: Address) -> Callable[[Any], Value]:
        place = places[address]

        def single(given: Any) -> Value:
            value = given[place]
            return value[0] if value.shape == _ONE else value

        return itemgetter(place) if whole else single

    read = expression.reading_by(Leaves(operand, itemgetter(count)))
    return ValueTest(read, expression.judged, tuple(target.slot for target in targets.values()))


class Condition:
    """An expression for a place: after operation `index` of `program`, and until the iteration ends.

    `windows` are to be told of closed iterations. `holds` says for a stack whether the condition is true now; it is not
    where something that it reads does not exist. It raises StepperError where the values do not fit. `of_values`
    says so quickly of values of the body alone, if no more is read.
    """

    def __init__(self, expression: Expression, timeline: Timeline, program: Program, index: int) -> None:
        self.expression = expression
        self.program = program
        self.index = index
        compiled = timeline.machine.compiled
        self.file = file_of(compiled)
        targets = {address: _visible(address, compiled, program, index) for address in expression.addresses}
        if expression.references and timeline.reference is None:
            raise UsageError("there is no reference here: ref() is for runs that are compared; name one first")
        loop = _loop_depth(program)
        if expression.reads_iteration and loop is None:
            raise UsageError(f"'iter' has no meaning in {program.name}, which is in no loop")
        places = {address: (len(target.program.path), target.slot) for address, target in targets.items()}
        windows = _windows([targets[address] for address in expression.previous], timeline)
        self.windows: tuple[IterationWindow, ...] = tuple(windows.values())
        kind = StackScope if _needs_shapes(expression.text) else SingleScope if len(places) > 1 else OnlyScope
        self._scope = kind(places, loop or 0, windows)
        self._scope.timeline = timeline
        self._scope.loops = {name: enclosing_loop(program.path, name) for name in expression.loops}
        self._scope.references = {
            address: ReferencedValue(targets[address].program, targets[address].slot)
            for address in expression.references
        }
        self.holds = _holding(expression, self._scope)
        self.of_values = _value_test(expression, targets, program)

    def value(self, stack: Sequence[Frame]) -> Any:
        """Return what the expression is now. Raise StepperError."""
        self._scope.stack = stack
        return self.expression.evaluate(self._scope)


def condition_at(text: str, timeline: Timeline, program: Program, index: int) -> Condition:
    """Return the condition that is written there, for a known place. Raise UsageError with what is wrong, and where."""
    return Condition(parse(text), timeline, program, index)


def condition_of(text: str, timeline: Timeline, where: Program) -> Condition:
    """Return the condition at the place where the last of the values that it reads is computed, seen from `where`.

    Raise UsageError with what is wrong, and for one that reads nothing that a run computes.
    """
    expression = parse(text)
    compiled = timeline.machine.compiled
    targets = [_plain(address, compiled, where) for address in expression.addresses]
    programs = [target.program for target in targets]
    if expression.reads_iteration:
        depth = _loop_depth(where)
        programs += [] if depth is None else [Atlas(compiled).ancestor(where, depth)]
    deepest = max([*programs, where], key=lambda program: len(program.path))
    programs += [Atlas(compiled).ancestor(deepest, enclosing_loop(deepest.path, name)) for name in expression.loops]
    program = max(programs, key=lambda program: len(program.path), default=where)
    computed = [program.computed_at.get(target.slot, BEGUN) for target in targets if target.program is program]
    index = max(computed, default=BEGUN)
    if index == BEGUN and not program.path:
        raise UsageError(f"nothing that '{text}' reads is computed by the run: it never becomes true")
    return Condition(expression, timeline, program, index)


def conditions_of(text: str, timeline: Timeline, where: Program) -> list[Condition]:
    """Return the same; for an expression that asks for `iter` and is seen from outside of every loop, one for each
    loop.
    """
    expression, compiled = parse(text), timeline.machine.compiled
    seen = [where, *(_plain(address, compiled, where).program for address in expression.addresses)]
    deepest = max(seen, key=lambda program: len(program.path))
    if _has_loops(deepest, expression):
        return [condition_of(text, timeline, where)]
    found: dict[tuple[int, int], Condition] = {}
    problem = UsageError(f"there is no loop in the model, so 'iter' in '{text}' has no meaning")
    for program in bodies(compiled):
        try:
            condition = condition_of(text, timeline, program)
        except UsageError as error:
            problem = error
        else:
            found[id(condition.program), condition.index] = condition
    if not found:
        if expression.loops and _loop_depth(deepest) is not None:
            return [condition_of(text, timeline, where)]  # which says what loops there are around
        raise problem
    return list(found.values())


def _has_loops(program: Program, expression: Expression) -> bool:
    """True if the loops are around a program of which an expression asks for the iteration."""
    if expression.reads_iteration and _loop_depth(program) is None:
        return False
    try:
        for name in expression.loops:
            enclosing_loop(program.path, name)
    except UsageError:
        return False
    return True


def _plain(address: Address, compiled: CompiledModel, where: Program) -> Target:
    target = resolve(address, compiled, where)
    if any(asked is not None for asked in target.iterations):
        raise UsageError(f"'{address}' names an iteration, but here every name means the present one (or prev(...))")
    return target


def _visible(address: Address, compiled: CompiledModel, program: Program, index: int) -> Target:
    """Return the target, which must have its value when operation `index` of the program has run."""
    target = _plain(address, compiled, program)
    depth = len(target.program.path)
    if depth > len(program.path) or Atlas(compiled).ancestor(program, depth) is not target.program:
        raise UsageError(f"'{address}' is in {target.program.name}, which has no values while {program.name} runs")
    limit = index
    if target.program is not program:
        inner = program.path[depth]
        limit = target.program.indices.get(inner.id, 0) - 1
    if index < closed(program) and target.program.computed_at.get(target.slot, BEGUN) > limit:
        raise UsageError(f"'{address}' is computed later than this place, so it has no value here yet")
    return target


def _loop_depth(program: Program) -> int | None:
    """Return the depth of the innermost loop's frame while this program runs."""
    depths = [depth for depth, layer in enumerate(program.path, 1) if layer.is_loop]
    return depths[-1] if depths else None


def _windows(targets: list[Target], timeline: Timeline) -> dict[int, IterationWindow]:
    """For each body the values of the iteration before, by slot."""
    slots: dict[int, set[int]] = {}
    programs: dict[int, Program] = {}
    for target in targets:
        if not is_body(target.program):
            raise UsageError(f"'{target.named.name}' is not in the body of a loop, so prev() of it has no meaning")
        depth = len(target.program.path)
        programs[depth] = target.program
        slots.setdefault(depth, set()).add(target.slot)
    return {depth: IterationWindow(timeline, programs[depth], _values_at(depth, slots[depth])) for depth in slots}


def _values_at(depth: int, slots: set[int]) -> Any:
    return lambda stack: {slot: stack[depth].values[slot] for slot in slots}


def _needs_shapes(text: str) -> bool:
    """True if an expression asks for elements or shapes, for which [1] is not the same as a scalar."""
    return any(
        isinstance(node, Indexed) or (isinstance(node, Call) and node.function in _MEASURES)
        for node in _nodes(parse_tree(text))
    )


def _nodes(part: object) -> Iterator[Node]:
    if isinstance(part, Node):
        yield part
        for name in part.__struct_fields__:
            yield from _nodes(getattr(part, name))
    elif isinstance(part, tuple):
        for item in part:
            yield from _nodes(item)
