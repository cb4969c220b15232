"""Places that breakpoints name, conditions on values there, and the lines of logpoints."""

from __future__ import annotations

import string
from collections.abc import Callable, Iterator, Sequence
from types import EllipsisType
from typing import Any

import numpy as np
from msgspec.structs import replace

from stepper.debug.breakpoints.breakpoint import (
    BEGUN,
    IterationWindow,
    ValueTest,
    bodies,
    body_of,
    closed,
    iteration_in,
)
from stepper.debug.causes.cause import PlaceEvent
from stepper.debug.provenance.operation_at import file_of, shown
from stepper.debug.scopes import ReferencedValue, enclosing_loop, frame_of, is_body, loop_depth
from stepper.debug.timeline import Timeline
from stepper.element_types import Shape
from stepper.engine.frames import Frame, Frames
from stepper.engine.program import CompiledModel, Program, Value
from stepper.errors import StepperError, UsageError
from stepper.ir.model import Layer, parameter_shape
from stepper.ops.operands import shape_text
from stepper.query.address_resolution import (
    Atlas,
    ResolutionError,
    Target,
    WhyAbsent,
    resolve,
    resolve_all,
    shape_asked,
)
from stepper.query.address_syntax import (
    Address,
    IterationRange,
    Name,
    NameKind,
    NotWritable,
    numpy_index,
    parse_address,
)
from stepper.query.expression_syntax import Call, Indexed, nodes, parse_tree
from stepper.query.expressions import Expression, Leaves, parse
from stepper.records import Record


class BreakpointPlace(Record, eq=False):
    """Place where a run is to stop: after operation `index` of a program (see checks.Check), in these iterations only.

    `what` happened there with `layer`. `iterations` are (depth of the frame, iterations).
    """

    program: Program
    index: int
    what: PlaceEvent
    layer: Layer
    iterations: tuple[tuple[int, int | IterationRange], ...]
    target: Target | None = None

    def is_now(self, stack: Frames) -> bool:
        """True if the iterations are those that were asked for."""
        return all(among(iteration_in(stack[depth]), asked) for depth, asked in self.iterations)


def among(iteration: int, asked: int | IterationRange) -> bool:
    """True if an iteration is the one, or one of those, that are asked for."""
    if isinstance(asked, int):
        return iteration == asked
    return (asked.start or 0) <= iteration and (asked.stop is None or iteration < asked.stop)


def places(text: str, compiled: CompiledModel, where: Program) -> tuple[BreakpointPlace, ...]:
    """Return the places that the text names, seen from the program `where`.

    A run that is under way knows these places. Raise AddressError for what is not an address, and UsageError for what
    is nowhere, ambiguous, or never computed, and for iterations that are counted from the last.
    """
    return known_ahead(named_places(text, compiled, where))


def known_ahead(found: Sequence[BreakpointPlace]) -> tuple[BreakpointPlace, ...]:
    """Return places as they are. UsageError for one whose iterations are not known before the loop has ended."""
    for _, asked in (one for place in found for one in place.iterations):
        numbers = [asked] if isinstance(asked, int) else [asked.start or 0, asked.stop or 0]
        if min(numbers) < 0:
            raise UsageError(
                f"@{asked} counts from the end, which is not known while the loop runs; `break when last` stops in the "
                "last iteration, and goto, print and why know it"
            )
    return tuple(found)


def named_places(text: str, compiled: CompiledModel, where: Program) -> tuple[BreakpointPlace, ...]:
    """Return the places that the text names, also in iterations that are counted from the last; raise as `places`."""
    address = parse_address(text)
    if address.index:
        raise UsageError(f"a breakpoint is at an operation, not at an element: break when '{text}' changes instead")
    if address.operation is None:
        return (_iteration_here(address, compiled, where),)
    if address.iterations is not None and (loop := _loop(address, compiled, where)) is not None:
        body = body_of(loop.named, compiled)
        asked = (*_asked(loop), (len(body.path), address.iterations))
        return (BreakpointPlace(body, BEGUN, PlaceEvent.BEGAN, loop.named, asked),)
    if address.operation.kind in (NameKind.GLOB, NameKind.REGEX):
        return _places(everywhere(address, compiled, where))
    if is_type(address, compiled):
        return _places(_of_type(address, compiled, where))
    return _places([resolve(address, compiled, where)])


def destinations(text: str, compiled: CompiledModel, where: Program) -> tuple[BreakpointPlace, ...]:
    """Return the places to which a movement goes: each moment once, of a loop its first iteration.

    A name that screens write for one operation means that one, even where it is a type, too. An element, or a shape, is
    where the whole value is computed. Raise as `places` does.
    """
    text = whole_value(text, compiled, where)
    address = parse_address(text)
    is_output = address.port is not None
    found: dict[tuple[int, int], BreakpointPlace] = {}
    for place in _named(address, compiled, where) or _places_inside(text, address, compiled, where):
        if place.what is PlaceEvent.RAN and place.layer.is_loop and not is_output:
            body = body_of(place.layer, compiled)
            asked = (*place.iterations, (len(body.path), 0))
            place = BreakpointPlace(body, BEGUN, PlaceEvent.BEGAN, place.layer, asked)
        found.setdefault((id(place.program), place.index), place)
    return tuple(found.values())


def whole_value(text: str, compiled: CompiledModel, where: Program) -> str:
    """Return the address of the value whose element or shape a text names.

    Any other text is returned unchanged.
    """
    asked = parse_address(text)
    address = replace(shape_asked(asked, compiled, where) or asked, index=())
    return text if address == asked else str(address)


def _places_inside(text: str, address: Address, compiled: CompiledModel, where: Program) -> tuple[BreakpointPlace, ...]:
    """Return the places that a text names; of what no run computes those of the same name in all other graphs."""
    try:
        return named_places(text, compiled, where)
    except ResolutionError:
        raise
    except UsageError:
        if address.operation is None or address.levels or address.index:
            raise
        return _places(everywhere(address, compiled, where))


def _named(address: Address, compiled: CompiledModel, where: Program) -> tuple[BreakpointPlace, ...]:
    """Return the place of the one operation that has a type of operations for a short name; empty if there is none."""
    if address.index or not is_type(address, compiled):
        return ()
    try:
        return _places([resolve(address, compiled, where)])
    except ResolutionError:
        return ()


def _places(targets: Sequence[Target]) -> tuple[BreakpointPlace, ...]:
    if len(targets) == 1:
        return (_place(targets[0]),)
    found, problem = [], None
    for target in targets:
        try:
            found.append(_place(target))
        except UsageError as error:
            problem = error
    if not found and problem is not None:
        raise problem
    return tuple(found)


def _place(target: Target) -> BreakpointPlace:
    program, layer, asked = target.program, target.named, _asked(target)
    if layer.type == "Result" and is_body(program):
        return BreakpointPlace(program, closed(program), PlaceEvent.WENT_OUT, layer, asked, target)
    if target.layer.type == "Parameter":
        if not program.path:
            raise UsageError(f"{layer} has its value from the start; break at what reads it")
        return BreakpointPlace(program, BEGUN, PlaceEvent.CAME_IN, target.layer, asked, target)
    index = program.computed_at.get(target.slot)
    if index is None:
        raise UsageError(f"{layer} is a constant, which no run computes")
    return BreakpointPlace(program, index, PlaceEvent.RAN, target.layer, asked, target)


def value_place(address: Address, compiled: CompiledModel, where: Program) -> BreakpointPlace:
    """Return the place where the value at an address is new. Raise UsageError."""
    place = _place(resolve(replace(address, index=()), compiled, where))
    if place.iterations:
        raise UsageError(f"'{address}' names an iteration; a value is watched in all of them")
    return place


def loop_body(address: Address, compiled: CompiledModel, where: Program) -> Program | None:
    """Return the body, where the address names a loop; else None."""
    loop = None if address.operation is None or address.index else _loop(address, compiled, where)
    return None if loop is None else body_of(loop.named, compiled)


def _loop(address: Address, compiled: CompiledModel, where: Program) -> Target | None:
    try:
        target = resolve(replace(address, iterations=None), compiled, where)
    except ResolutionError:
        return None
    return target if target.named.is_loop and address.port is None else None


def _iteration_here(address: Address, compiled: CompiledModel, where: Program) -> BreakpointPlace:
    depths = [depth for depth, layer in enumerate(where.path, 1) if layer.is_loop]
    if not depths or address.iterations is None:
        raise UsageError(f"there is no loop here; name one, as in my_loop{address}")
    body = Atlas(compiled).ancestor(where, depths[-1])
    return BreakpointPlace(body, BEGUN, PlaceEvent.BEGAN, body.path[-1], ((depths[-1], address.iterations),))


def _asked(target: Target) -> tuple[tuple[int, int | IterationRange], ...]:
    return tuple((depth, asked) for depth, asked in enumerate(target.iterations, 1) if asked is not None)


# --- many at once ---------------------------------------------------------------------------------------------------


def everywhere(
    address: Address, compiled: CompiledModel, where: Program, why_absent: WhyAbsent | None = None
) -> list[Target]:
    """Return what a pattern fits in all graphs, not in the nearest alone.

    Raise ResolutionError where that is nothing.
    """
    if address.levels:
        return list(resolve_all(address, compiled, where, why_absent))
    found: list[Target] = []
    problem: ResolutionError | None = None
    for program in compiled.programs:
        try:
            found += [
                target for target in resolve_all(address, compiled, program, why_absent) if target.program is program
            ]
        except ResolutionError as error:
            problem = error
    if not found and problem is not None:
        raise problem
    return found


def is_type(address: Address, compiled: CompiledModel) -> bool:
    """True if the address is the type of operations of the model, and no layer has it for a name."""
    name = address.operation
    if name is None or name.kind is not NameKind.PLAIN:
        return False
    layers = [layer for program in compiled.programs for layer in program.graph.layers]
    same_name = any(layer.name == name.text for layer in layers)
    return not same_name and any(layer.type == name.text for layer in layers)


def _of_type(address: Address, compiled: CompiledModel, where: Program) -> list[Target]:
    assert address.operation is not None
    everything = replace(address, operation=Name(NameKind.GLOB, "*"))
    targets = list(everywhere(everything, compiled, where))
    if address.levels:
        targets += _deeper(everything, targets, compiled)
    found = [target for target in targets if target.layer.type == address.operation.text]
    if not found:
        raise ResolutionError(f"there is no operation of type {address.operation.text} in '{address}'")
    return list({(id(target.program), target.slot): target for target in found}.values())


def _deeper(everything: Address, targets: list[Target], compiled: CompiledModel) -> Iterator[Target]:
    """Yield all that is in the graphs inside those of the targets."""
    atlas = Atlas(compiled)
    for program in atlas.deep_inside({id(target.program): target.program for target in targets}.values()):
        inside = replace(everything, levels=(), iterations=None)
        yield from (target for target in resolve_all(inside, compiled, program) if target.program is program)


def operations_of(text: str, compiled: CompiledModel, where: Program) -> frozenset[tuple[int, int]]:
    """Return the operations that a pattern names, as (id of the program, index). Raise UsageError."""
    return frozenset((id(place.program), place.index) for place in places(text, compiled, where))


# --- elements of a value --------------------------------------------------------------------------------------------


def ensure_elements(address: Address, target: Target, stack: Frames) -> str:
    """Raise UsageError for an index that the value does not have: by its shape now, else by what the file declares.

    What is open in the file is let through where the value is not there yet; a note that says so is returned. Else it
    is empty.
    """
    if not address.index:
        return ""
    sizes = _sizes(target, stack)
    if sizes is None:
        return _note(target, "an open shape", address)
    index = numpy_index(address.index)
    whose = f"'{address}': '{target.named.name}' of the shape {shape_text(sizes).replace('-1', '?')}"
    count = sum(not isinstance(item, EllipsisType) for item in index)
    if count > len(sizes):
        if not sizes:
            raise UsageError(f"'{address}': '{target.named.name}' is a scalar, which has no elements; leave [...] out")
        raise UsageError(f"{whose} has {len(sizes)} ax{'es' if len(sizes) > 1 else 'is'}, the index is for {count}")
    for axis, item in _placed(index, len(sizes)):
        size = sizes[axis]
        if isinstance(item, int) and size >= 0 and not -size <= item < size:
            valid = f"there are 0 to {size - 1}, or -{size} to -1 from the end" if size else "there are none"
            raise UsageError(f"{whose} has no element {item} along axis {axis}; {valid}")
        if isinstance(item, slice) and size > 0 and not range(size)[item]:
            raise UsageError(f"{whose} has none of these elements along axis {axis}; there are 0 to {size - 1}")
    if any(
        isinstance(item, int) and item not in (0, -1) and sizes[axis] < 0 for axis, item in _placed(index, len(sizes))
    ):
        return _note(target, f"the shape {shape_text(sizes).replace('-1', '?')}", address)
    return ""


def _note(target: Target, shape: str, address: Address) -> str:
    """Return that a breakpoint may have nothing to compare."""
    return f"'{target.named.name}' has {shape}; iterations in which '{address}' does not exist are passed over"


def _placed(index: Sequence[int | slice | EllipsisType], rank: int) -> list[tuple[int, int | slice]]:
    """Return each number and slice with the axis that it is for."""
    after = next((place for place, item in enumerate(index) if isinstance(item, EllipsisType)), len(index))
    behind = len(index) - after - 1
    found = []
    for place, item in enumerate(index):
        if not isinstance(item, EllipsisType):
            found.append((place if place < after else rank - behind + place - after - 1, item))
    return found


def _sizes(target: Target, stack: Frames) -> Shape | None:
    """Return the shape of a value, -1 where a size is open; None where not even its rank is known."""
    depth = frame_of(stack, target.program)
    value = None if depth is None else stack[depth].values[target.slot]
    if value is not None:
        return tuple(value.shape)
    layer = target.layer
    if layer.type != "Parameter":
        return tuple(max(size, -1) for size in layer.outputs[target.output].dims)
    dimensions = parameter_shape(layer).dimensions
    return None if dimensions is None else tuple(-1 if one.most is None else one.most for one in dimensions)


# --- conditions -----------------------------------------------------------------------------------------------------


_MEASURES = {"shape", "rank", "size", "dtype"}
_ONE = (1,)


class NotThere(UsageError):
    """A value that does not exist at a moment: of no iteration before, or of what never ran."""


class StackScope:
    """The values on a stack of frames by address. `places` says depth and slot of each; set `stack` before reading."""

    __slots__ = ("_loop", "_places", "_windows", "loops", "references", "stack", "timeline")

    loops: dict[str, int]
    references: dict[Address, ReferencedValue]
    timeline: Timeline

    def __init__(self, places: dict[Address, tuple[int, int]], loop: int, windows: dict[int, IterationWindow]) -> None:
        self.stack: Frames = ()
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
        value = super().value(address)
        return value[0] if value.shape == _ONE else value


def _holding(expression: Expression, scope: StackScope) -> Callable[[Frames], bool]:
    read, judged = expression.reading, expression.judged

    def holds(stack: Frames) -> bool:
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
    whole = _needs_shapes(expression.text)

    def operand(address: Address) -> Callable[[Frame], Value]:
        slot = targets[address].slot

        def single(frame: Frame) -> Value:
            value = frame.values[slot]
            return value[0] if value.shape == _ONE else value

        return (lambda frame: frame.values[slot]) if whole else single

    return ValueTest(expression.reading_by(Leaves(operand, iteration_in)), expression.judged)


class Condition:
    """Evaluate an expression after operation `index` of `program`, until the iteration ends.

    `windows` need the news of closed iterations. `holds` says for a stack whether the condition is true now; it is not
    true if something that the condition reads does not exist. `holds` raises StepperError where the values do not fit.
    `of_values` says so quickly of values of the body alone, if no more is read.
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
        loop = loop_depth(program)
        if expression.reads_iteration and loop is None:
            raise UsageError(f"'iter' has no meaning in {program.name}, which is in no loop")
        places = {address: (len(target.program.path), target.slot) for address, target in targets.items()}
        windows = _windows([targets[address] for address in expression.previous], timeline)
        self.windows: tuple[IterationWindow, ...] = tuple(windows.values())
        kind = StackScope if _needs_shapes(expression.text) else SingleScope
        self._scope = kind(places, loop or 0, windows)
        self._scope.timeline = timeline
        self._scope.loops = {name: enclosing_loop(program.path, name) for name in expression.loops}
        self._scope.references = {
            address: ReferencedValue(targets[address].program, targets[address].slot)
            for address in expression.references
        }
        self.holds = _holding(expression, self._scope)
        self.of_values = _value_test(expression, targets, program)

    def value(self, stack: Frames) -> Any:
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
        depth = loop_depth(where)
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
        if expression.loops and loop_depth(deepest) is not None:
            return [condition_of(text, timeline, where)]  # which says what loops there are around
        raise problem
    return list(found.values())


def _has_loops(program: Program, expression: Expression) -> bool:
    """True if a program is inside the loops whose iterations an expression asks for."""
    if expression.reads_iteration and loop_depth(program) is None:
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
        for node in nodes(parse_tree(text))
    )


# --- lines of logpoints ---------------------------------------------------------------------------------------------


class LogLineError(NotWritable):
    """A text with braces that do not fit, or with a format that no number takes."""


class LogLine:
    """The text of a logpoint at a place. Raises UsageError for what is wrong in it."""

    def __init__(self, text: str, timeline: Timeline, program: Program, index: int) -> None:
        self.parts: list[tuple[str, Condition | None, str]] = []
        try:
            parsed = list(string.Formatter().parse(text))
        except ValueError as error:
            raise LogLineError(f"the text is not right: {error}", text, len(text)) from None
        for literal, expression, form, conversion in parsed:
            if conversion:
                raise LogLineError("there is no conversion by '!' here", text, max(text.find(f"!{conversion}"), 0))
            condition = None if expression is None else condition_at(expression, timeline, program, index)
            self.parts.append((literal, condition, _checked(form or "", text)))
        self.windows: list[IterationWindow] = [
            window for _, part, _ in self.parts if part is not None for window in part.windows
        ]

    def text(self, stack: Frames) -> str:
        """Return the line at this moment."""
        return "".join(literal + _written(condition, form, stack) for literal, condition, form in self.parts)


def _checked(form: str, text: str) -> str:
    try:
        format(1.0, form)
    except ValueError:
        try:
            format(1, form)
        except ValueError:
            raise LogLineError(f"'{form}' is not a number format", text, max(text.find(form), 0)) from None
    return form


def _written(condition: Condition | None, form: str, stack: Frames) -> str:
    if condition is None:
        return ""
    try:
        value = condition.value(stack)
    except StepperError as error:
        return f"<{str(error).splitlines()[0]}>"
    if isinstance(value, np.ndarray | np.generic):
        if value.size != 1 or not form:
            return shown(value)
        value = value.item()
    try:
        return format(value, form)
    except (ValueError, TypeError):
        return str(value)
