"""Columns of a table: elements of values, buckets of them, or a statistic; and the iterations that one looks at."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from contextlib import suppress
from enum import Enum, auto
from itertools import pairwise
from typing import Any, ClassVar, NamedTuple

import numpy as np
from msgspec.structs import replace

from stepper import element_types
from stepper.debug.breakpoints.conditions import loop_body
from stepper.debug.loop_runs import (
    Outer,
    address_in_run,
    loop_around,
    outer_iterations,
)
from stepper.debug.scopes import loop_depth, target_in
from stepper.debug.timeline import Timeline
from stepper.element_types import Array, Indices, Shape, read_only
from stepper.engine.machine import Machine
from stepper.engine.program import CompiledModel, LoopPlan, Program, Value
from stepper.errors import StepperError, UsageError
from stepper.ir.model import Layer
from stepper.query.address_resolution import (
    Atlas,
    ResolutionError,
    Target,
    from_main,
    layer_address,
    moment_address,
    resolve,
    resolve_all,
)
from stepper.query.address_syntax import (
    ALL_ITERATIONS,
    Address,
    IterationRange,
    Iterations,
    NameKind,
    apart_from_iteration,
    numpy_index,
    parse_address,
)
from stepper.query.expression_values import ValueFailure, element
from stepper.query.short_names import short_names_of
from stepper.records import Brief, Record
from stepper.tensors.difference import index_of
from stepper.tensors.histories import KeptStatistic, bucket_begins, bucket_statistics, plain_numbers, strongest
from stepper.tensors.statistics import FITTING, OVER_ITERATIONS, number_of
from stepper.tensors.tensor_pictures import percentile

MOST_VALUES = 4096
"""Values of one table."""
_CALL = re.compile(r"\s*([a-z]+)\((.*)\)\s*", re.DOTALL)


class SheetValue(Record, eq=False):
    """A value whose elements are columns, or whose `statistic` is one.

    `name` is how it was asked for, `base` that without the part, `address` the full one without iterations. `index` is
    the part that is meant. `title` stands in front of a row, where part and statistic have a place of their own.
    """

    name: str
    address: Address
    target: Target
    index: tuple[Any, ...]
    statistic: str
    base: str
    title: str


class SheetColumn(Record):
    """A column: the elements [begin, end) of a value in row-major order.

    `index` is the index of a single element. `value` is the number of the value in its table, `of` its name where the
    column is of elements, `first` the index of the first one (empty for a single number). `statistic` is one of
    OVER_ITERATIONS, which stands for a whole value; a bucket is the mean of its elements.
    """

    name: str
    value: int
    begin: int
    end: int
    index: Indices | None = None
    statistic: str = ""
    of: str = ""
    first: Indices = ()

    @property
    def is_bucket(self) -> bool:
        """True if it stands for several elements."""
        return self.index is None and not self.statistic


class SheetTopic(Record, eq=False):
    """Subject of a table: values of one loop's body, in the iterations [begin, end) of one run of it."""

    body: Program
    outer: Outer
    values: tuple[SheetValue, ...]
    begin: int = 0
    end: int | None = None


def topic_of(timeline: Timeline, text: str) -> SheetTopic:
    """Return what a text asks for: values as `x, P[0]@10:20`, statistics as `rms(*)`.

    UsageError for what has no values over iterations, and for values of several loops.
    """
    found: list[tuple[SheetValue, Target]] = []
    for part in _parts(text):
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
    return SheetTopic(body, said[0], tuple(value for value, _ in found), begin, end)


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
    return parts


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
        targets = [
            one
            for one in resolve_all(seen, machine.compiled, machine.program)
            if one.slot in one.program.computed_at and one.layer.type != "Parameter"
        ]
        if not targets:
            raise UsageError(f"no operation has a name that fits '{part}'")
        depth = min(loop_around(one) for one in targets)  # of loops inside of one another the outer one
        targets = [one for one in targets if loop_around(one) == depth]
    else:
        targets = [resolve(seen, machine.compiled, machine.program)]
    index = numpy_index(address.index)
    found = []
    for target in targets:
        is_whole = not (index or statistic or is_pattern)
        target, grows = _shown(target) if is_whole else (target, False)
        full = moment_address(target, machine.compiled)
        shown, base = (str(Address((), address.operation, address.port, None, one)) for one in (address.index, ()))
        title = base
        if is_pattern:
            shown = title = short_names_of(target.program.graph).get(target.layer.id, target.layer.name)
            shown = title = f"{shown}:{target.output}" if target.output else shown
        elif statistic:
            shown = f"{statistic}({shown})"
        anywhere = replace(target, iterations=(None,) * len(target.iterations))
        sign = " +" if grows else ""  # of it the pieces are shown that it grows by
        value = SheetValue(shown + sign, full, anywhere, index, statistic, base, title + sign)
        found.append((value, target))
    return found


def _shown(target: Target) -> tuple[Target, bool]:
    """Return of a value that grows by a piece in each iteration the place of that, and True; else the place itself."""
    slot = target.program.shown_slot(target.slot)
    if slot == target.slot:
        return target, False
    return replace(target_in(target.program, slot), iterations=target.iterations), True


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


def columns_of(value: SheetValue, number: int, shape: Shape) -> tuple[SheetColumn, ...]:
    """Return the columns of a value of this shape: each element, or 64 buckets of neighbouring ones."""
    places = None
    size = math.prod(shape)
    if value.index:
        places = np.arange(size).reshape(shape)[value.index].reshape(-1)
        size = len(places)
    if value.statistic or not size:
        return (SheetColumn(value.name, number, 0, size, statistic=value.statistic or "size"),)
    begins = bucket_begins(size)
    ends = np.append(begins[1:], size)
    found = []
    for begin, end in zip(begins.tolist(), ends.tolist(), strict=True):
        index = index_of(begin if places is None else int(places[begin]), shape)
        first_index = shown_index(index, shape)
        name = f"{value.base}[{','.join(map(str, first_index))}]" if first_index else value.base
        if end - begin == 1:
            found.append(SheetColumn(name, number, begin, end, index, of=value.base, first=first_index))
        else:
            found.append(SheetColumn(f"{name}+{end - begin}", number, begin, end, of=value.base, first=first_index))
    return tuple(found)


def shown_index(index: Indices, shape: Shape) -> Indices:
    """Return an index without the last axes of one element."""
    axes = len(shape)
    while axes and shape[axes - 1] == 1:
        axes -= 1
    return index[:axes]


_COURSE = 48
_POINTS = 512


class ColumnDetail(Brief):
    """Everything of one column: numbers of all iterations, statistics of the finite ones, and of those that are shown.

    `numbers`, whether there is one (`known`) and `passes` are thinned out to `step`.
    """

    unshown: ClassVar = ("numbers", "known", "passes")

    column: int
    low: float | None
    high: float | None
    mean: float | None
    median: float | None
    deviation: float | None
    nan: int
    infinite: int
    numbers: Array
    known: Array
    passes: Array
    step: int


def with_gaps(numbers: Array, known: Array | None) -> Array:
    """Return numbers with NaN where there is none."""
    return numbers if known is None or known.all() else np.where(known, numbers.astype(np.float64), np.nan)


def course_of(numbers: Array) -> Array:
    """Return a column over the iterations in 48 parts or fewer, of each part the strongest number."""
    parts = min(len(numbers), _COURSE)
    bounds = np.arange(parts + 1) * len(numbers) // max(parts, 1)
    return np.array([strongest(numbers[begin:end]) for begin, end in pairwise(bounds.tolist())], np.float64)


def detail_of(column: int, numbers: Array, known: Array | None, rows: Array) -> ColumnDetail:
    """Return everything of a column."""
    there = np.ones(len(numbers), bool) if known is None else known
    wide = numbers[there].astype(np.float64)
    finite = wide[np.isfinite(wide)]
    passes = np.zeros(len(numbers), bool)
    passes[rows] = True
    step = max(1, -(-len(numbers) // _POINTS))

    def of_finite(statistic: Callable[[Array], Any]) -> float | None:
        return float(statistic(finite)) if finite.size else None

    with np.errstate(all="ignore"):
        return ColumnDetail(
            column=column,
            low=of_finite(np.min),
            high=of_finite(np.max),
            mean=of_finite(np.mean),
            median=of_finite(lambda part: percentile(np.sort(part), 50)),
            deviation=of_finite(np.std),
            nan=int(np.isnan(wide).sum()),
            infinite=int(np.isinf(wide).sum()),
            numbers=with_gaps(numbers, there)[::step],
            known=there[::step],
            passes=passes[::step],
            step=step,
        )


class ColumnFacts(Record):
    """Facts of a column over the iterations that were read.

    `low` and `high` are of the finite numbers (None: there is none). `is_whole`: none of them has a fraction.
    """

    low: float | None = None
    high: float | None = None
    is_whole: bool = False


class SheetForm(Record):
    """Type and shape of a value of a table, empty and None before one was read."""

    type: str
    shape: Shape | None


class UnevenValue(Exception):
    """A value has another shape than before, so its elements are no columns."""


class GatheredValue:
    """Numbers read of one value; `is_uneven`: its shape changes, so that its columns are its size and statistics."""

    def __init__(self, value: SheetValue, number: int, *, is_uneven: bool = False) -> None:
        self.value, self.number, self.is_uneven = value, number, is_uneven
        self.reduced_by = value.statistic if value.statistic != FITTING or is_uneven else ""
        self.columns: tuple[SheetColumn, ...] = ()
        if is_uneven and not self.reduced_by:
            words = ("size", "mean", "rms", "peak")
            self.columns = tuple(SheetColumn(f"{word}({value.name})", number, 0, 0, statistic=word) for word in words)
        self.dtype: np.dtype[Any] | None = None
        self.shape: Shape | None = None
        self.whole_shape: Shape = ()
        self.keeps = True
        self.is_surprised = False
        self.form = SheetForm("", None)
        self._chunks: list[Array] = []
        self._known: list[Array] = []
        self._is_patchy = False
        self._begins = np.zeros(0, np.intp)
        self._low = self._high = np.zeros(0)
        self._fractions = np.zeros(0, bool)

    @property
    def cells(self) -> int:
        """Return how many numbers are kept."""
        return sum(chunk.size for chunk in self._chunks)

    def release(self) -> None:
        """Keep no numbers any more, only what is known of the columns."""
        self.keeps = False
        self._chunks, self._known = [], []

    def take(self, values: Sequence[Value]) -> None:
        """Take in the values of the next iterations. Raise UnevenValue, UsageError for what are no numbers."""
        numbers, known = self.numbers(values)
        self._is_patchy |= not known.all()
        if numbers.size and known.any():
            self._note(numbers[known])
        if self.keeps:
            self._chunks.append(numbers)
            self._known.append(known)

    def numbers(self, values: Sequence[Value]) -> tuple[Array, Array]:
        """Return numbers [iteration, column], and in which iterations there are any."""
        skips = bool(self.value.statistic)  # of no elements there is no number
        known = np.array([value is not None and not (skips and not np.size(value)) for value in values], bool)
        present = [value for value, is_there in zip(values, known, strict=True) if value is not None and is_there]
        if present and self.shape is None:
            self._begin(present[0])
        width = max(len(self.columns), 1 if self.shape is not None else 0)
        if not present:
            return np.zeros((len(values), width)), known
        found = self._of(present)
        if len(present) == len(values):
            return found, known
        spread = np.zeros((len(values), found.shape[1]), found.dtype)
        spread[known] = found
        return spread, known

    def _begin(self, value: Value) -> None:
        part = self._part(value)
        dtype = np.asarray(part).dtype
        if dtype.names is None and dtype.kind in "SUOT":
            raise UsageError(f"'{self.value.name}' has texts; a table is of numbers")
        self.dtype, self.shape, self.whole_shape = dtype, tuple(part.shape), tuple(np.shape(value))
        self.form = SheetForm(element_types.name_of(dtype), self.shape)
        if self.value.statistic == FITTING and part.size != 1:
            self.reduced_by = FITTING
        if self.reduced_by or not self.is_uneven:
            self.columns = columns_of(replace(self.value, statistic=self.reduced_by), self.number, self.whole_shape)
            self._begins = bucket_begins(part.size)
        count = len(self.columns)
        self._low, self._high = np.full(count, np.inf), np.full(count, -np.inf)
        self._fractions = np.zeros(count, bool)
        # Iterations before the first that has a value: their rows are there, but empty.
        self._chunks = [np.zeros((len(chunk), count)) for chunk in self._chunks]

    def _part(self, value: Value) -> Any:
        if not self.value.index:
            return np.asarray(value)
        try:
            return np.asarray(element(value, self.value.index))
        except ValueFailure as error:
            raise UsageError(f"{self.value.name}: {error}") from None

    def _of(self, values: Sequence[Value]) -> Array:
        parts = [self._part(value) for value in values]
        if self.is_uneven and not self.reduced_by:
            return np.array([self._summary(part) for part in parts], np.float64)
        if self.reduced_by:
            found = [number_of(part, self.reduced_by) for part in parts]
            return np.array([[np.nan if one is None else one] for one in found], np.float64)
        if any(part.shape != self.shape or part.dtype != self.dtype for part in parts):
            self.is_surprised = True
            raise UnevenValue
        stack = np.stack(parts).reshape(len(parts), -1)
        if not stack.shape[1]:
            return np.zeros((len(parts), len(self.columns)), np.int64)
        numbers = plain_numbers(stack)
        if len(self._begins) == stack.shape[1]:
            return np.ascontiguousarray(numbers)
        with np.errstate(all="ignore"):
            return np.asarray(bucket_statistics(numbers, self._begins)[KeptStatistic.MEAN], np.float64)

    def _summary(self, part: Array) -> list[float]:
        row = [float(part.size)]
        for column in self.columns[1:]:
            number = number_of(part, column.statistic)
            row.append(np.nan if number is None else number)
        return row

    def _note(self, numbers: Array) -> None:
        finite = np.isfinite(numbers)
        self._low = np.minimum(self._low, np.where(finite, numbers, np.inf).min(axis=0))
        self._high = np.maximum(self._high, np.where(finite, numbers, -np.inf).max(axis=0))
        self._fractions |= ((numbers != np.trunc(numbers)) & finite).any(axis=0)

    # --- what is known ---------------------------------------------------------------------------------------------

    def facts(self, place: int) -> ColumnFacts:
        """Return what is known of a column."""
        if place >= len(self._low):
            return ColumnFacts()
        low, high, is_whole = float(self._low[place]), float(self._high[place]), not self._fractions[place]
        return ColumnFacts(low, high, is_whole) if low <= high else ColumnFacts(is_whole=is_whole)

    def matrix(self) -> Array | None:
        """Return all numbers [iteration, column]; None where they are not kept."""
        if not self.keeps:
            return None
        if len(self._chunks) > 1:
            self._chunks, self._known = [np.concatenate(self._chunks)], [np.concatenate(self._known)]
        return read_only(self._chunks[0]) if self._chunks else np.zeros((0, len(self.columns)))

    def known(self) -> Array | None:
        """Return in which iterations there is a value; None: in all."""
        if not self._is_patchy or not self.keeps:
            return None
        self.matrix()
        return self._known[0]


class SheetSort(Record):
    """The column by which the rows are sorted; NaN counts as the largest, and so does what is not there."""

    column: int
    descending: bool


class SheetRequest(Record):
    """Ask for a part of a table.

    `rows` rows are wanted, from the `top`-th that passes the filter on, and the columns `columns`. Of the column
    `detail` everything is wanted. `bins` are the bounds of neighbouring parts of the rows; only the least, largest and
    strongest number of each part is wanted.
    """

    top: int = 0
    rows: int = 0
    columns: Indices = ()
    sort: SheetSort | None = None
    filter: str = ""
    detail: int | None = None
    bins: Indices = ()


class ColumnBin(NamedTuple):
    """Neighbouring numbers of a column: the least and the largest finite one, and the strongest of all, if any."""

    low: float
    high: float
    strongest: float | None


def bins_of(numbers: Array, known: Array | None, bounds: Sequence[int]) -> tuple[ColumnBin | None, ...]:
    """Return the parts of a column between neighbouring bounds; None of one that is not read.

    `known`: in which iterations there is a number (None: in all).
    """
    found: list[ColumnBin | None] = []
    for begin, end in pairwise(bounds):
        part = numbers[begin:end].astype(np.float64)
        is_read, part = part.size > 0, part if known is None else part[known[begin:end]]
        finite = part[np.isfinite(part)]
        low, high = (float(finite.min()), float(finite.max())) if finite.size else (math.nan, math.nan)
        found.append(ColumnBin(low, high, float(strongest(part)) if part.size else None) if is_read else None)
    return tuple(found)


class SheetView(Brief):
    """A part of a table, as it was asked for.

    `outer` are the iterations around the run. `total` iterations are known, from `begin` on; `complete`: that is all;
    `failure` is the error that ended the run. `passed` of the `filtered` iterations that were asked so far pass the
    filter. `iterations` are the rows from `top` on; `numbers` has each wanted column of them. A number that is not
    there is None. `bins` has the parts that were asked for, where a column is at hand. `problem` says why the filter is
    none.
    """

    unshown: ClassVar = ("request", "topic", "columns", "iterations", "numbers", "courses", "bins")

    request: SheetRequest
    topic: SheetTopic
    outer: Outer
    forms: tuple[SheetForm, ...]
    columns: tuple[SheetColumn, ...]
    begin: int
    total: int
    complete: bool
    failure: str
    passed: int
    filtered: int
    top: int
    iterations: Indices
    numbers: dict[int, list[Any]]
    facts: dict[int, ColumnFacts]
    courses: dict[int, Array]
    detail: ColumnDetail | None
    bins: dict[int, tuple[ColumnBin | None, ...]]
    problem: str

    def is_truth(self, column: int) -> bool:
        """Return True if a column is a single boolean in each iteration."""
        one = self.columns[column]
        return one.index is not None and not one.statistic and self.forms[one.value].type == "boolean"


def loop_seen_from(machine: Machine, depth: int) -> Program | None:
    """Return the body of the loop that a frame in no loop is near: the last before the moment, else the first one.

    None where the frame's graph has none.
    """
    frame = machine.stack[depth] if depth < len(machine.stack) else None
    program = machine.compiled.main if frame is None else frame.program
    loops = {
        index: operation.plans[0].program
        for index, operation in enumerate(program.operations)
        if operation.plans and isinstance(operation.plans[0], LoopPlan)
    }
    now = len(program.operations) if frame is None else frame.pc
    found = max((index for index in loops if index < now), default=min(loops, default=None))
    return None if found is None else loops[found]


class Reading(Enum):
    """Kind of thing that a command takes an address for.

    VALUE: one in an iteration; COURSE: one over the iterations of a run; EDITED: one to be changed, where a Constant is
    the same in all iterations; PLACE: where to go, of a loop its iteration; GENERAL: one at any moment, unless the
    address says in which iteration.
    """

    VALUE = auto()
    COURSE = auto()
    EDITED = auto()
    PLACE = auto()
    GENERAL = auto()


class LookedAt(Record, eq=False):
    """Iterations that one looks at: of the loop with this body and of those around it, from the outside inwards."""

    compiled: CompiledModel
    body: Program
    iterations: Indices

    def meant(self, asked: Address, reading: Reading = Reading.VALUE) -> Address:
        """Return the address with the iterations looked at.

        An address that names nothing in these loops stays unchanged. Iterations that it names stay, and what is inside
        of these: `inner@0::h` is in the run of the inner loop in the iteration of the outer one that is looked at.
        """
        try:
            if reading is Reading.PLACE and (inside := loop_body(asked, self.compiled, self.body)) is not None:
                # The same of the address of a loop, or of an iteration of it
                named = resolve(replace(asked, iterations=None), self.compiled, self.body).iterations
                outer = _filled(named, self._known(inside.path[:-1]))
                return asked if outer == named else self._address_of_loop(inside.path, outer, asked.iterations)
            found = resolve(asked, self.compiled, self.body)
        except StepperError:  # the answer to the line will tell, or it is the name of a type or a pattern
            return asked
        return self._value(asked, found, reading)

    def iteration(self, number: int) -> Address | None:
        """Return the address of an iteration of this run of the loop (negative: from the last); None in no loop."""
        depth = loop_depth(self.body)
        if depth is None:
            return None
        path = self.body.path[:depth]
        return self._address_of_loop(path, self._known(path[:-1]), number)

    def _value(self, asked: Address, found: Target, reading: Reading) -> Address:
        loops = [place for place, one in enumerate(found.program.path) if one.is_loop]
        if not loops:
            return asked
        own, known = loops[-1], self._known(found.program.path)
        is_bare = all(one is None for one in found.iterations)
        if is_bare and _stays_bare(found, reading, is_outside=known[own] is None):
            return asked
        iterations = list(_filled(found.iterations, known))
        if reading is Reading.COURSE:
            iterations[own] = found.iterations[own]
        if tuple(iterations) == found.iterations:
            return asked
        full = moment_address(found, self.compiled)
        if reading is Reading.PLACE and found.named.type == "Result":  # where the iteration is closed
            full = from_main(layer_address(found.named, found.program, self.compiled))
        body = Atlas(self.compiled).ancestor(found.program, loop_around(found))
        return replace(address_in_run(full, body, iterations[:own], iterations[own]), index=asked.index)

    def _address_of_loop(
        self, path: Sequence[Layer], outer: Sequence[Iterations | None], own: Iterations | None
    ) -> Address:
        loop, atlas = path[-1], Atlas(self.compiled)
        full = from_main(layer_address(loop, atlas.holding(loop), self.compiled))
        return address_in_run(full, atlas.bodies(loop)[0], outer, own)

    def _known(self, path: Sequence[Layer]) -> tuple[int | None, ...]:
        """Return the iterations looked at of the layers of a path."""
        loops = (layer for layer in self.body.path if layer.is_loop)
        known = {id(layer): one for layer, one in zip(loops, self.iterations, strict=False)}
        return tuple(known.get(id(layer)) for layer in path)


def _stays_bare(found: Target, reading: Reading, *, is_outside: bool) -> bool:
    """True if an address without iterations stays so; `is_outside`: its loop is not one of those looked at."""
    if reading is Reading.GENERAL:
        return True
    is_constant = found.slot not in found.program.computed_at and found.layer.type != "Parameter"
    if is_constant and reading in (Reading.EDITED, Reading.PLACE):
        return True
    return is_outside and reading in (Reading.VALUE, Reading.EDITED)  # which iteration is for the user to say


def _filled(named: Sequence[Iterations | None], known: Sequence[int | None]) -> tuple[Iterations | None, ...]:
    """Return iterations that an address names, outside of the first of them those that are known."""
    first = next((place for place, one in enumerate(named) if one is not None), len(named))
    return (*known[:first], *named[first:])
