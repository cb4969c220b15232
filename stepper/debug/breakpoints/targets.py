"""Targets of breakpoints: operations by name, type, glob, expression or id; iterations; what back edges carry.

h_next, lstm*, /gate_[ifo]$/, id=12    after these operations; with @7 or @2:5 only in these iterations
MatMul, my_loop::MatMul                after all operations of a type
@7, my_loop@7, outer@3::inner@0        when that iteration has begun
a Parameter of a body                  when it has got its value
a Result of a body                     when the iteration is closed: the value goes out, and over the back edge
my_loop:1                              when the loop has been left: its output 1 is there
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from msgspec import Struct
from msgspec.structs import replace

from stepper.debug.breakpoints.checks import BEGUN, body_of, closed, is_body, iteration_in
from stepper.debug.causes.cause import PlaceEvent
from stepper.engine.frames import Frame
from stepper.engine.program import CompiledModel, Program
from stepper.errors import UsageError
from stepper.ir.model import Layer
from stepper.query.address_resolution import ResolutionError, Target, WhyAbsent, resolve, resolve_all, shape_asked
from stepper.query.address_syntax import Address, IterationRange, Name, NameKind, parse_address
from stepper.query.atlas import Atlas


class BreakpointPlace(Struct, frozen=True, eq=False):
    """Place where a run is to stop: after operation `index` of a program (see checks.Check), in these iterations only.

    `what` happened there with `layer`. `iterations` are (depth of the frame, iterations).
    """

    program: Program
    index: int
    what: PlaceEvent
    layer: Layer
    iterations: tuple[tuple[int, int | IterationRange], ...] = ()
    target: Target | None = None

    def is_now(self, stack: Sequence[Frame]) -> bool:
        """True if the iterations are those that were asked for."""
        return all(_among(iteration_in(stack[depth]), asked) for depth, asked in self.iterations)


def _among(iteration: int, asked: int | IterationRange) -> bool:
    if isinstance(asked, int):
        return iteration == asked
    return (asked.start or 0) <= iteration and (asked.stop is None or iteration < asked.stop)


def places(text: str, compiled: CompiledModel, where: Program) -> tuple[BreakpointPlace, ...]:
    """Return the places that the text names, seen from the program `where`, as a run that goes on knows them.

    Raise AddressError for what is not an address, and UsageError for what is nowhere, ambiguous, or never computed, and
    for iterations that are counted from the last.
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
    """Return the address of the value of which a text names an element, or the shape; any other as it is."""
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
