"""Columns of a table: elements of values, buckets of them, or one statistic of each operation."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Final

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from stepper.debug.breakpoints.breakpoint import bodies, plan_of
from stepper.debug.iterations.loop_runs import Outer, address_in_run, loop_around, outer_iterations
from stepper.debug.scopes import loop_depth, target_in
from stepper.debug.timeline import Timeline
from stepper.engine.program import CompiledModel, Program
from stepper.errors import UsageError
from stepper.query.address_resolution import ResolutionError, Target, moment_address, resolve, resolve_all
from stepper.query.address_syntax import (
    ALL_ITERATIONS,
    Address,
    IterationRange,
    NameKind,
    apart_from_iteration,
    numpy_index,
    parse_address,
)
from stepper.query.atlas import Atlas
from stepper.query.short_names import short_names_of
from stepper.tensors.histories import KeptStatistic, bucket_begins
from stepper.tensors.statistics import OVER_ITERATIONS

MOST_VALUES: Final = 4096
"""Values of one table."""
GROWS: Final = " +"
"""Behind the name of a value of which the pieces are shown that it grows by."""
_CALL: Final = re.compile(r"\s*([a-z]+)\((.*)\)\s*", re.DOTALL)


class SheetValue(Struct, frozen=True, eq=False):
    """A value whose elements are columns, or whose `statistic` is one.

    `name` is how it was asked for, `base` that without the part, `address` the full one without iterations. `index` is
    the part that is meant, and `span` the half-open range of its elements (None: all).
    """

    name: str
    address: Address
    target: Target
    index: tuple[Any, ...] = ()
    statistic: str = ""
    span: tuple[int, int] | None = None
    base: str = ""

    @property
    def is_entered(self) -> bool:
        """True if it is what an iteration begins with, not what it makes."""
        return self.target.layer.type == "Parameter"


class SheetColumn(Struct, frozen=True):
    """A column: the elements [begin, end) of a value in row-major order. `index` is that of a single element.

    `value` is the number of the value in its table, `of` its name where the column is of elements, `first` the index of
    the first one (empty of a single number). `statistic` stands for the elements where there are several:
    largest, mean or rms of a bucket, one of OVER_ITERATIONS of a whole value.
    """

    name: str
    value: int
    begin: int
    end: int
    index: tuple[int, ...] | None = None
    statistic: str = ""
    of: str = ""
    first: tuple[int, ...] = ()

    @property
    def is_bucket(self) -> bool:
        """True if it stands for several elements, and can be opened."""
        return self.index is None and not self.statistic


class SheetTopic(Struct, frozen=True, eq=False):
    """Subject of a table: values of one loop's body, in the iterations [begin, end) of one run of it."""

    text: str
    body: Program
    outer: Outer
    values: tuple[SheetValue, ...]
    begin: int = 0
    end: int | None = None


def topic_of(timeline: Timeline, text: str) -> SheetTopic:
    """Return what a text asks for: values as `x, P[0]@10:20`, statistics as `rms(*)`; without one all that is carried.

    UsageError for what has no values over iterations, and for values of several loops.
    """
    parts = _parts(text)
    if not parts:
        return _carried(timeline)
    found: list[tuple[SheetValue, Target]] = []
    for part in parts:
        found += _values(timeline, part)
        if len(found) > MOST_VALUES:
            raise UsageError(f"a table is of at most {MOST_VALUES} values; these are more")
    atlas = Atlas(timeline.machine.compiled)
    places = [(value, atlas.ancestor(target.program, loop_around(target))) for value, target in found]
    body = places[0][1]
    for value, other in places:
        if other is not body:
            raise UsageError(f"'{places[0][0].name}' is in {body.name}, but '{value.name}' in {other.name}")
    outers = dict.fromkeys(outer_iterations(target) for _, target in found)
    said = [outer for outer in outers if any(one is not None for one in outer)] or list(outers)
    if len(said) > 1:
        raise UsageError("a table is of one run of a loop; these are in several")
    begin, end = _range([target.iterations[len(body.path) - 1] for _, target in found])
    return SheetTopic(text.strip(), body, said[0], tuple(value for value, _ in found), begin, end)


def with_meant(text: str, meant: Callable[[Address], Address]) -> str:
    """Return what a table is asked for with what is meant by each of its addresses in its place. AddressError."""
    parts = []
    for part in _parts(text):
        call = _CALL.fullmatch(part)
        asked = parse_address(part if call is None else call[2].strip())
        is_pattern = asked.operation is not None and asked.operation.kind in (NameKind.GLOB, NameKind.REGEX)
        address = asked if is_pattern else meant(asked)
        if address != asked:
            part = str(address) if call is None else f"{call[1]}({address})"
        parts.append(part)
    return ", ".join(parts)


def row_named(timeline: Timeline, text: str) -> tuple[str, int | None]:
    """Return what a table of one value shows, and the iteration of its loop that the text names: `x` and 7 of `x@7`.

    `m@7::x` names that iteration where x is in the body of m itself; else it is one around the run: all of the text.
    """
    value, row = apart_from_iteration(text)
    if row is None:
        return text, None
    address, machine = parse_address(text), timeline.machine
    if address.iterations is None:
        with suppress(ResolutionError):  # what reads the text will tell
            target = resolve(address, machine.compiled, machine.program)
            depth = loop_depth(target.program)
            if depth is None or target.iterations[depth - 1] is None:
                return text, None
    return value, row


def _parts(text: str) -> list[str]:
    """Return what stands between commas that are in no brackets, parentheses or backquotes."""
    parts, depth, quoted = [""], 0, False
    for letter in text:
        quoted ^= letter == "`"
        depth += 0 if quoted else (letter in "([") - (letter in ")]")
        if letter == "," and not depth and not quoted:
            parts.append("")
        else:
            parts[-1] += letter
    parts = [part.strip() for part in parts]
    if len(parts) > 1 and not all(parts):
        raise UsageError("a value is missing beside a comma")
    return [part for part in parts if part]


def _values(timeline: Timeline, part: str) -> list[tuple[SheetValue, Target]]:
    call = _CALL.fullmatch(part)
    statistic = ""
    if call is not None:
        statistic, part = call[1], call[2].strip()
        if statistic not in OVER_ITERATIONS:
            raise UsageError(f"there is no statistic '{statistic}' for columns; there are {', '.join(OVER_ITERATIONS)}")
    address = parse_address(part)
    machine = timeline.machine
    name = address.operation
    is_pattern = name is not None and name.kind in (NameKind.GLOB, NameKind.REGEX)
    if address.iterations is None:  # a name with iterations is one in a loop
        seen = Address(address.levels, address.operation, address.port, ALL_ITERATIONS, address.index)
    else:
        seen = address
    if is_pattern:
        targets = [one for one in resolve_all(seen, machine.compiled, machine.program) if _is_computed(one)]
        if not targets:
            raise UsageError(f"no operation has a name that fits '{part}'")
        depth = min(loop_around(one) for one in targets)  # of loops inside of one another the outer one
        targets = [one for one in targets if loop_around(one) == depth]
    else:
        targets = [resolve(seen, machine.compiled, machine.program)]
    index = numpy_index(address.index)
    found = []
    for meant in targets:
        target = made_by_iteration(meant, machine.compiled)
        is_whole = not (index or statistic or is_pattern)
        target, grows = _shown(target) if is_whole else (target, False)
        full = moment_address(target, machine.compiled)
        shown = str(Address((), address.operation, address.port, None, address.index))
        if is_pattern:
            shown = short_names_of(target.program.graph).get(target.layer.id, target.layer.name)
            shown += f":{target.output}" if target.output else ""
        elif statistic:
            shown = f"{statistic}({shown})"
        anywhere = replace(target, iterations=(None,) * len(target.iterations))
        base = str(Address((), address.operation, address.port))
        shown += GROWS if grows else ""
        found.append((SheetValue(shown, full, anywhere, index, statistic, base=base), target))
    return found


def _is_computed(target: Target) -> bool:
    return target.slot in target.program.computed_at and target.layer.type != "Parameter"


def _carried(timeline: Timeline) -> SheetTopic:
    """Return what the innermost loop carries that runs here; else that of the first loop of the model."""
    machine = timeline.machine
    running = [frame.program for frame in machine.stack if frame.program.path and frame.program.path[-1].is_loop]
    inside = bodies(machine.compiled)
    if not inside:
        raise UsageError("the model has no loop, so no value has iterations")
    body = running[-1] if running else min(inside, key=lambda program: len(program.path))
    plan = plan_of(body, machine.compiled)
    names = short_names_of(body.graph)
    values = []
    for entry in plan.merged:
        target, grows = _shown(target_in(body, entry.result))
        name = names[body.parameter(entry.parameter).id]
        shown = f"{name}{GROWS if grows else ''}"
        values.append(SheetValue(shown, moment_address(target, machine.compiled), target, base=name))
    if not values:
        layer = body.path[-1]
        raise UsageError(f"{layer.type} '{layer.name}' carries nothing; name values, or rms(*) for its operations")
    return SheetTopic("", body, (None,) * (len(body.path) - 1), tuple(values))


def carried_in(body: Program, outer: Outer, compiled: CompiledModel) -> str:
    """Return what a run of the loop with this body carries, as a text for `topic_of`; empty where that is nothing."""
    places = [target_in(body, entry.parameter) for entry in plan_of(body, compiled).merged]
    return ", ".join(str(address_in_run(moment_address(one, compiled), body, outer, None)) for one in places)


def _shown(target: Target) -> tuple[Target, bool]:
    """Return of a value that grows by a piece in each iteration the place of that, and True; else the place itself."""
    slot = target.program.shown_slot(target.slot)
    if slot == target.slot:
        return target, False
    return replace(target_in(target.program, slot), iterations=target.iterations), True


def made_by_iteration(target: Target, compiled: CompiledModel) -> Target:
    """Return the place of what an iteration makes: of a Parameter that is carried, what the back edge takes on."""
    body = target.program
    if target.layer.type != "Parameter" or not (body.path and body.path[-1].is_loop):
        return target
    entry = next((one for one in plan_of(body, compiled).merged if one.parameter == target.slot), None)
    return target if entry is None else replace(target_in(body, entry.result), iterations=target.iterations)


def _range(asked: list[Any]) -> tuple[int, int | None]:
    """Return the iterations that all values ask for; those from the end cannot be asked for."""
    begin, end = 0, None
    for one in asked:
        part = one if isinstance(one, IterationRange) else IterationRange(one, one + 1) if one is not None else None
        if part is None:
            continue
        if min(part.start or 0, part.stop or 0) < 0:
            raise UsageError("the iterations of a table are counted from the first, such as x@10:20")
        begin = max(begin, part.start or 0)
        end = part.stop if end is None else end if part.stop is None else min(end, part.stop)
    return begin, end


# --- columns --------------------------------------------------------------------------------------------------------


STATISTICS: Final = {"mean": KeptStatistic.MEAN, "max": KeptStatistic.LARGEST, "rms": KeptStatistic.RMS}
"""Numbers that can stand for a bucket, by the word for it."""


def columns_of(value: SheetValue, number: int, shape: tuple[int, ...]) -> tuple[SheetColumn, ...]:
    """Return the columns of a value of this shape: each element, or 64 buckets of neighbouring ones."""
    places = None
    size = math.prod(shape)
    if value.index:
        places = np.arange(size).reshape(shape)[value.index].reshape(-1)
        size = len(places)
    first, last = (0, size) if value.span is None else value.span
    if value.statistic or first == last:
        return (SheetColumn(value.name, number, 0, size, statistic=value.statistic or "size"),)
    begins = first + bucket_begins(last - first)
    ends = np.append(begins[1:], last)
    found = []
    for begin, end in zip(begins.tolist(), ends.tolist(), strict=True):
        index = _index(begin if places is None else int(places[begin]), shape)
        name, first_index = element_name(value.base, index, shape), shown_index(index, shape)
        if end - begin == 1:
            found.append(SheetColumn(name, number, begin, end, index, of=value.base, first=first_index))
        else:
            found.append(SheetColumn(f"{name}+{end - begin}", number, begin, end, of=value.base, first=first_index))
    return tuple(found)


def uneven_columns_of(value: SheetValue, number: int) -> tuple[SheetColumn, ...]:
    """Return the columns of a value whose shape changes: how many elements it has, and statistics of all of them."""
    words = ("size", "mean", "rms", "peak")
    return tuple(SheetColumn(f"{word}({value.name})", number, 0, 0, statistic=word) for word in words)


def _index(flat: int, shape: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(int(one) for one in np.unravel_index(flat, shape)) if shape else ()


def element_name(name: str, index: tuple[int, ...], shape: tuple[int, ...]) -> str:
    """Return an element as an expression names it: `x[0,3]`; last axes of one element are left out."""
    shown = shown_index(index, shape)
    return f"{name}[{','.join(map(str, shown))}]" if shown else name


def shown_index(index: tuple[int, ...], shape: tuple[int, ...]) -> tuple[int, ...]:
    """Return an index without the last axes of one element."""
    axes = len(shape)
    while axes and shape[axes - 1] == 1:
        axes -= 1
    return index[:axes]
