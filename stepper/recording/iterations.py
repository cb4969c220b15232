"""The iterations of one body, collected in memory and written many at a time."""

from __future__ import annotations

import itertools
import json
import math
import operator
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from operator import attrgetter, itemgetter
from typing import Any, NamedTuple

import numpy as np
from msgspec import Struct

from stepper import element_types
from stepper.element_types import Array, DType, Ints, Shape, have_same_bits, is_of_numpy
from stepper.engine.frames import Frame
from stepper.engine.program import BranchPlan, CompiledModel, LoopPlan, Operation, OpKind, Program
from stepper.ir.model import Layer
from stepper.ops.operands import shape_text
from stepper.recording.blobs import BlobWriter, with_checksum
from stepper.recording.file import RUN_LENGTH, TABLES, as_sql, columns
from stepper.recording.origin import Amount, RecordingOptions
from stepper.records import Record
from stepper.tensors.statistics import RECORDED, recorded_columns

# Levels and ports: the graphs of a compiled model, and the outputs of their layers that can be recorded.

_SIDES = {"then_body": " (then)", "else_body": " (else)"}


class RecordedPort(NamedTuple):
    """An output of a layer of a body, in its slot.

    `stored`: its values are recorded, not only their statistics. `position` is the index of its operation, -1 for a
    Parameter; `results` are the Results that it feeds. `computed_by` is the backend that computes it, in words.
    """

    id: int
    layer: Layer
    output: int
    slot: int
    stored: bool
    position: int
    results: tuple[Layer, ...]
    computed_by: str

    def row(self, level: int) -> tuple[Any, ...]:
        """Return the columns of the table ports."""
        layer = self.layer
        names = json.dumps(layer.outputs[self.output].names)
        results = json.dumps([(result.id, result.name) for result in self.results])
        where = (self.id, level, layer.id, layer.name, layer.type, self.output, self.position)
        return (*where, names, results, self.computed_by)


class GraphLevel(Record):
    """A graph of the model.

    `path` names it, branches of an If included; `ports` are chosen to be recorded. `parent` is the level in which its
    loop or If is, `position` the index of that operation. `role` says which of the bodies this is; None for the model's
    own graph.
    """

    id: int
    program: Program
    path: str
    layers: Ints
    ports: tuple[RecordedPort, ...]
    parent: int | None = None
    position: int | None = None
    role: str | None = None

    @property
    def row(self) -> tuple[Any, ...]:
        """The columns of the table levels."""
        layer = self.program.path[-1] if self.program.path else None
        what = (None, None) if layer is None else (layer.type, layer.name)
        return (self.id, self.path, json.dumps(self.layers), self.parent, self.position, *what, self.role)


def levels_of(compiled: CompiledModel, options: RecordingOptions) -> list[GraphLevel]:
    """Return the levels of a model, the same ones in the same order every time; the first is its own graph."""
    places = {
        id(plan.program): _Place(parent, position, plan)
        for parent, program in enumerate(compiled.programs)
        for position, operation in enumerate(program.operations)
        for plan in operation.plans
    }
    levels: list[GraphLevel] = []
    first = 1
    for number, program in enumerate(compiled.programs):
        layers = tuple(layer.id for layer in program.path)
        place = places.get(id(program))
        if place is None:
            levels.append(GraphLevel(number, program, program.name, layers, ()))
            continue
        ports = () if options.amount is Amount.NONE else tuple(_ports(program, place.plan, options, first))
        first += len(ports)
        role = next(body.role for body in program.path[-1].bodies if body.graph is program.graph)
        path = program.name + _SIDES.get(role, "")
        levels.append(GraphLevel(number, program, path, layers, ports, place.parent, place.position, role))
    return levels


class _Place(NamedTuple):
    """Where the operation of a body is: in which level, and which of its operations; and as what it is the body."""

    parent: int
    position: int
    plan: LoopPlan | BranchPlan


def _ports(
    program: Program, plan: LoopPlan | BranchPlan, options: RecordingOptions, first: int
) -> Iterator[RecordedPort]:
    stored = _stored_slots(plan, options.amount)
    results: dict[int, list[Layer]] = {}
    for layer, slot in zip(program.graph.results, program.results, strict=True):
        results.setdefault(slot, []).append(layer)
    number = first
    for layer, output, slot, position, by in _outputs(program):
        fed = tuple(results.get(slot, ()))
        if any(options.names(one.name) for one in (layer, *fed)):
            yield RecordedPort(number, layer, output, slot, stored is None or slot in stored, position, fed, by)
            number += 1


def _outputs(program: Program) -> Iterator[tuple[Layer, int, int, int, str]]:
    """Yield what each run of a body computes anew: no constants, and nothing that follows from them alone."""
    for layer, slot in zip(program.graph.parameters, program.parameters, strict=True):
        yield layer, 0, slot, -1, ""
    for position, operation in enumerate(program.operations):
        for output, slot in enumerate(operation.outputs):
            yield operation.layer, output, slot, position, operation.computed_by


def _stored_slots(plan: LoopPlan | BranchPlan, amount: Amount) -> set[int] | None:
    """Return the slots whose values are stored; None: all of them."""
    if amount is Amount.ALL:
        return None
    if amount is not Amount.CARRIED or not isinstance(plan, LoopPlan):
        return set()
    # As they leave an iteration: so they enter the next one.
    return {entry.result for entry in plan.merged} | {entry.result for entry in plan.concatenated}


# Forms in which the iterations of a body without nested graphs are kept until they are written.
#
# Where a body computes nothing but single numbers, an iteration is kept as their few bytes. That takes a fraction of
# the time and memory of keeping the tensors. It needs to be certain that no value changes its type or shape: so it is
# in a body whose operations derive these from those of their inputs alone, as soon as an iteration leaves what is
# carried in the types and shapes in which it came. All that follow are then the same. Other values are kept as they
# are.

_OF_ELEMENTS = frozenset((
    "Abs", "Acos", "Acosh", "Add", "Asin", "Asinh", "Atan", "Atanh", "Ceiling", "Clamp", "Convert", "Cos", "Cosh",
    "Divide", "Elu", "Equal", "Erf", "Exp", "Floor", "FloorMod", "Gelu", "Greater", "GreaterEqual", "HSigmoid",
    "HSwish", "IsFinite", "IsInf", "IsNaN", "Less", "LessEqual", "Log", "LogicalAnd", "LogicalNot", "LogicalOr",
    "LogicalXor", "Maximum", "Minimum", "Mish", "Mod", "Multiply", "Negative", "NotEqual", "Power", "Relu", "Round",
    "Select", "Sigmoid", "Sign", "Sin", "Sinh", "SoftPlus", "SoftSign", "Sqrt", "SquaredDifference", "Subtract",
    "Swish", "Tan", "Tanh",
))  # fmt: skip
"""Operations of each element alone."""
_BY_CONSTANTS = frozenset(
    ["Unsqueeze", "ReduceL1", "ReduceL2", "ReduceMax", "ReduceMean", "ReduceMin", "ReduceProd", "ReduceSum"]
)
"""Operations whose output's shape follows from the first input's, where the others are constants."""

_TYPE = attrgetter("dtype")
_SHAPE = attrgetter("shape")


class NumberRows(Record):
    """Form of the numbers of an iteration: type and shape of each."""

    types: tuple[DType, ...]
    shapes: tuple[Shape, ...]


def number_rows(
    frame: Frame, take: Callable[[Sequence[Any]], tuple[Any, ...]], usual: NumberRows | None
) -> NumberRows | None:
    """Return the form of the rows of a frame that has just closed an iteration; `take` chooses values.

    It is the `usual` one again in most cases. None where the values are no single numbers, or their types or shapes may
    change. Asked only of a body for which `keeps_shapes` holds.
    """
    values = frame.values
    plan: Any = frame.active.plan
    taken = take(values)
    try:
        for parameter, result in plan.carried:
            if values[parameter].shape != values[result].shape:
                return None
        types, shapes = tuple(map(_TYPE, taken)), tuple(map(_SHAPE, taken))
    except AttributeError:  # of None, where nothing was computed
        return None
    if usual is not None and shapes == usual.shapes and types == usual.types:
        return usual
    if not all(math.prod(shape) == 1 for shape in shapes) or not all(is_of_numpy(dtype) for dtype in types):
        return None
    return NumberRows(types, shapes)


def _keeps_shapes(program: Program, operation: Operation) -> bool:
    if operation.kind is not OpKind.KERNEL:
        return False
    others_constant = all(slot >= 0 and program.template[slot] is not None for slot in operation.inputs[1:])
    by_constants = operation.settled is not None or (operation.layer.type in _BY_CONSTANTS and others_constant)
    return by_constants or operation.layer.type in _OF_ELEMENTS


# Stacks: the values of one port in consecutive iterations as one large tensor, and their statistics.


class Stack(Record):
    """The values `first` to `first + count` of a column, along a new leading dimension.

    `repeated`: they are all the same one, which the stack holds alone.
    """

    first: int
    count: int
    tensor: Array
    repeated: bool


def stacks(column: Sequence[Any]) -> Iterator[Stack]:
    """Yield the stacks of a column of arrays and numpy scalars: one as a rule; none where there is no value (None)."""
    value = column[0]
    if value is not None and column[-1] is value and all(other is value for other in column):
        yield Stack(0, len(column), np.asarray(value)[None], len(column) > 1)
        return
    whole = _alike(column)
    if whole is not None:
        yield Stack(0, len(column), whole, False)
        return
    begin = 0
    for kind, group in itertools.groupby(column, _kind):
        values = list(group)
        if kind is not None:
            yield Stack(begin, len(values), np.stack([np.asarray(value) for value in values]), False)
        begin += len(values)


def _kind(value: Any) -> Any:
    return None if value is None else (value.shape, value.dtype)


def _alike(column: Sequence[Any]) -> Array | None:
    """Return all values joined, None unless they are of one type and shape. Few numpy calls: asked for each slot."""
    value, count = column[0], len(column)
    if isinstance(value, np.ndarray):
        if not value.ndim or value.dtype.kind == "T":
            return None
        joined = np.empty((count * len(value), *value.shape[1:]), value.dtype)
        try:
            # Refuses another type, another rank, other sizes; but not other lengths that happen to have the same sum.
            np.concatenate(column, out=joined, casting="no")
            if set(map(len, column)) != {len(value)}:
                return None
        except (TypeError, ValueError):
            return None
        return joined.reshape(count, *value.shape)
    if isinstance(value, np.generic) and set(map(type, column)) == {type(value)} and not value.dtype.names:
        return np.array(column, value.dtype)
    return None


_WORTH_IT = 2**10
"""Bytes from which on a stack is compared with others."""
_GLIMPSE = 8
"""Elements by which stacks that may be the same are found."""


class WrittenStack(Struct):
    """A stack that is in the file, `flat[iteration, element]`.

    `start` is where its rows of statistics or its numbers begin, `blob` what has its elements, once there is one.
    """

    flat: Array
    start: int
    blob: int | None = None


class WrittenStacks:
    """The columns of one batch."""

    def __init__(self) -> None:
        self._known: dict[Any, WrittenStack] = {}
        self.objects: dict[int, tuple[Sequence[Any], WrittenStack]] = {}

    def find(self, stack: Array) -> tuple[WrittenStack, int] | None:
        """Return a column with the elements of a stack, and how many iterations it is early (0 or 1).

        The shape does not matter. 1: the column has the elements of all iterations but the first, each one iteration
        earlier. The value that leaves an iteration enters the next one.
        """
        if not _is_comparable(stack):
            return None
        flat = _flat(stack)
        for shift in range(min(2, len(flat))):
            known = self._known.get(_glimpse(flat, shift))
            if known is not None and have_same_bits(known.flat[: len(flat) - shift], flat[shift:]):
                return known, shift
        return None

    def find_objects(self, values: Sequence[Any]) -> tuple[WrittenStack, int] | None:
        """Return the same as `find` where it is so for certain without a look at an element.

        The values are the same objects, or views of them in another shape.
        """
        first = values[0]
        if not isinstance(first, np.ndarray) or len(values) == 1:
            return None
        others, column = self.objects.get(id(values[1]), (values, None))
        if column is not None and all(map(operator.is_, values[1:], others)) and _kind(first) == _kind(others[0]):
            return column, 1
        others, column = self.objects.get(id(first.base), (values, None))
        if column is not None and all(map(_is_whole_view, values, others)) and len(set(map(_SHAPE, values))) == 1:
            return column, 0
        return None

    def add(self, stack: Array, start: int) -> WrittenStack:
        """Note a stack that is in the file now."""
        flat = _flat(stack)
        written = WrittenStack(flat, start)
        if _is_comparable(stack):
            self._known[_glimpse(flat, 0)] = written
        return written


def _is_whole_view(value: Any, other: Any) -> bool:
    """Return True if a value has all elements of another one that owns its memory, in the same order."""
    is_view = value.base is other and value.dtype == other.dtype and value.size == other.size
    return is_view and bool(value.flags.c_contiguous and other.flags.c_contiguous)


def _is_comparable(stack: Array) -> bool:
    return stack.nbytes >= _WORTH_IT and is_of_numpy(stack.dtype)


def _flat(stack: Array) -> Array:
    return np.ascontiguousarray(stack).reshape(len(stack), -1) if stack.size else stack


def _glimpse(flat: Array, row: int) -> Any:
    return flat.dtype, flat.shape, flat[row : row + 2, :_GLIMPSE].tobytes()


def is_constant(stack: Array) -> bool:
    """Return True if all numbers of a stack of single numbers have the same bits."""
    flat = np.ascontiguousarray(stack).reshape(-1)
    if not is_of_numpy(flat.dtype) or flat[:1].tobytes() != flat[-1:].tobytes():
        return False
    words = flat.view(f"u{flat.itemsize}")
    return bool((words == words[0]).all())


_MOST_ROWS = 1024
_MOST_ROWS_OF_NUMBERS = 4096
_MOST_CHANGES = 16
"""Most changes of a batch's form; each writes what there is, too costly again and again."""
_MOST_BYTES = 4 * 2**20
_ROWS_AT_ONCE = 32


Row = tuple[int, int | None, int, tuple[Any, ...]]
"""An iteration: its activation, its number there, its tick, and the values of the level's ports."""

Run = tuple[int, int, int | None, int]
"""Iterations that follow one another in one activation: the index of the first, their activation, its number, its tick.
"""


class Batch:
    """Hold iterations of one level that wait to be written.

    These are the values of the level's ports, their ticks, and their runs. `begin` says to which run the next `taps`
    and `ticks` belong. `is_even`: there are no ticks, but `step` of them from each iteration of a run to the next.
    """

    __slots__ = (
        "_changes",
        "_columns",
        "_keeps_shapes",
        "form",
        "full",
        "is_even",
        "level",
        "runs",
        "take",
        "taps",
        "ticks",
    )

    def __init__(self, level: GraphLevel, *, is_even: bool = False) -> None:
        self.level, self.is_even = level, is_even
        self.ticks: list[int] = []
        self.runs: list[Run] = []
        self.take = _taking([port.slot for port in level.ports])
        """Out of the values of all slots those of the level's ports."""
        self._changes = 0
        program = level.program
        self._keeps_shapes = program.straight and all(_keeps_shapes(program, one) for one in program.operations)
        self.full = 1
        """How many rows may come before `is_full` is to be asked."""
        self._columns: list[Any] = []
        self.turn_to(None)

    def form_of(self, frame: Frame) -> NumberRows | None:
        """Return the form of the numbers of a frame that has just closed an iteration; None for any other values."""
        return number_rows(frame, self.take, self.form) if self._keeps_shapes else None

    def turn_to(self, form: NumberRows | None) -> None:
        """Keep what comes next in this form: bytes of numbers, or a list of each value. There must be nothing yet."""
        self.form = form
        self._columns = [[] if form is None else bytearray() for _ in self.level.ports]
        adding = [column.append if form is None else column.extend for column in self._columns]
        self.taps: list[tuple[Callable[[Any], object], int]] = [
            (add, port.slot) for add, port in zip(adding, self.level.ports, strict=True)
        ]
        """(function, slot) pairs, to which the values are handed."""
        self._changes += 1
        self._keeps_shapes &= self._changes < _MOST_CHANGES

    def columns(self) -> Iterable[Sequence[Any] | Stack]:
        """Return for each port the values of all iterations, of numbers joined."""
        count = self.count
        if self.form is None:
            return [column[:count] for column in self._columns]
        return [
            Stack(0, count, np.frombuffer(bytes(column), dtype, count).reshape(count, *shape), False)
            for column, dtype, shape in zip(self._columns, self.form.types, self.form.shapes, strict=True)
        ]

    @property
    def count(self) -> int:
        """The number of iterations that are whole."""
        last = len(self._columns[-1])
        return last if self.form is None else last // self.form.types[-1].itemsize

    def begin(self, activation: int, iteration: int | None, tick: int) -> None:
        """Have what comes next be this iteration, and those after it."""
        following = self._next()
        if iteration is None or following is None or following[:2] != (activation, iteration):
            self.runs.append((self.count, activation, iteration, tick))

    def add(self, row: Row) -> None:
        """Add one iteration, which may follow any other."""
        activation, iteration, tick, values = row
        self.begin(activation, iteration, tick)
        self.ticks.append(tick)
        for column, value in zip(self._columns, values, strict=True):
            column.append(value)

    @property
    def step(self) -> int:
        """The ticks from one iteration to the next, in a body without nested graphs: begin, operations, close."""
        return len(self.level.program.code) + 2

    def _next(self) -> tuple[int, int | None, int] | None:
        """Return the activation and iteration that continue the last run; its tick, if all are `step` apart."""
        if not self.runs:
            return None
        first, activation, iteration, tick = self.runs[-1]
        count = self.count - first
        return activation, None if iteration is None else iteration + count, tick + count * self.step

    @property
    def room(self) -> int:
        """How many rows there may be before `is_full` is to be asked; at least one."""
        most = self.full if self.form is None else _MOST_ROWS_OF_NUMBERS
        return max(most - self.count, 1)

    def is_full(self) -> bool:
        """Return True if to write now. As values may grow, the question comes again after as many rows as there are."""
        count, most, size = self.count, _MOST_ROWS, 0
        if self.form is None:
            size = sum(column[-1].nbytes for column in self._columns if column[-1] is not None)
        else:
            most = _MOST_ROWS_OF_NUMBERS
        if count >= most or count * size >= _MOST_BYTES:
            return True
        self.full = min(2 * count, most)
        return False

    def clear(self) -> None:
        """Begin anew, in the middle of the last run."""
        following = self._next()
        self.ticks.clear()
        for column in self._columns:
            column.clear()
        self.runs = [] if following is None else [(0, *following)]
        # What the last batch took tells what this one may: a body whose values are small is not asked at every row.
        self.full = max(1, self.full // 2)


def _taking(slots: Sequence[int]) -> Callable[[Sequence[Any]], tuple[Any, ...]]:
    if len(slots) == 1:
        (slot,) = slots
        return lambda values: (values[slot],)
    return itemgetter(*slots)


class BatchWriter:
    """Writes batches into the tables runs, numbers and tensors with their series, and stacks."""

    def __init__(self, connection: sqlite3.Connection, blobs: BlobWriter, iterations: int) -> None:
        self._connection, self._blobs = connection, blobs
        self.iterations = iterations
        self._forms: dict[tuple[DType, Shape], int] = {}
        self._rows: dict[str, int] = {}
        self._same: dict[int, tuple[Array, int, int]] = {}
        """By port the value that was the same in all iterations of a batch, how many, and where its rows begin."""

    def write(self, batch: Batch) -> None:
        """Write all rows of a batch and clear it."""
        count = batch.count
        if not count:
            return
        first = self.iterations + 1
        self.iterations += count
        insert_many(self._connection, "runs", 7, map(with_checksum, _even_runs(first, batch)))
        columns = WrittenStacks()
        found = zip(batch.level.ports, batch.columns(), strict=True)
        for port, values in sorted(found, key=lambda one: one[0].position < 0):  # Parameters last: they are carried
            if isinstance(values, Stack):
                self._write(port, first, values, columns)
                continue
            known = columns.find_objects(values)
            if known is not None and (known[0].blob is not None or not port.stored):
                self._write(port, first, Stack(0, count, np.asarray(values[0])[None], False), columns, known)
                continue
            for stack in stacks(values):
                column = self._write(port, first, stack, columns)
                if column is not None and stack.count == count:
                    columns.objects[id(values[0])] = values, column
        batch.clear()

    def _write(
        self,
        port: RecordedPort,
        first: int,
        stack: Stack,
        columns: WrittenStacks,
        known: tuple[WrittenStack, int] | None = None,
    ) -> WrittenStack | None:
        """Return the column that now has the values.

        Where it is `known` already, `stack` need not have more than the first value.
        """
        begin, form = first + stack.first, self._form(stack.tensor)
        series = "number_series" if _is_number(stack.tensor) else "tensor_series"

        def refer(begin: int, count: int, start: int) -> None:
            self._connection.execute(
                f"INSERT INTO {series} VALUES (?, ?, ?, ?, ?, ?)", with_checksum((port.id, form, begin, count, start))
            )

        def keep(begin: int, count: int, blob: int) -> None:
            row = (port.id, form, begin, count, int(stack.repeated), blob, 0)
            self._connection.execute("INSERT INTO stacks VALUES (?, ?, ?, ?, ?, ?, ?, ?)", with_checksum(row))

        tensor = stack.tensor
        if stack.repeated:
            refer(begin, stack.count, self._same_rows(port, tensor, stack.count))
            if port.stored:
                keep(begin, stack.count, self._blobs.store(tensor))
            return None
        column, shift = known or columns.find(tensor) or (None, 0)
        if column is None:
            is_constant_number = _is_number(tensor) and len(tensor) > 1 and is_constant(tensor)
            start = self._same_rows(port, tensor[:1], len(tensor)) if is_constant_number else self._add_rows(tensor)
            column = columns.add(tensor, start)
        elif shift:
            refer(begin, 1, self._add_rows(tensor[:1]))
        refer(begin + shift, stack.count - shift, column.start)
        if port.stored and shift and column.blob is not None:
            keep(begin, 1, self._blobs.store(tensor[:1]))
            keep(begin + 1, stack.count - 1, column.blob)
        elif port.stored and shift:
            keep(begin, stack.count, self._blobs.store(tensor))
        elif port.stored:
            column.blob = self._blobs.store(tensor) if column.blob is None else column.blob
            keep(begin, stack.count, column.blob)
        return None if shift else column

    def _same_rows(self, port: RecordedPort, tensor: Array, count: int) -> int:
        """Return where `count` rows of one and the same value begin: those of the last batch, if it had as many."""
        known = self._same.get(port.id)
        if known is not None and count <= known[1] and is_of_numpy(tensor.dtype) and have_same_bits(known[0], tensor):
            return known[2]
        start = self._add_rows(tensor, count)
        self._same[port.id] = tensor, count, start
        return start

    def _add_rows(self, tensor: Array, times: int = 1) -> int:
        """Add what is kept of each value of a stack, of all `times` over. Return where it begins."""
        if _is_number(tensor):
            row = self._row_after("numbers")
            found = _runs(row, _numbers(tensor).repeat(times))
            self._rows["numbers"] = row + insert_many(self._connection, "numbers", 2 + RUN_LENGTH, found)
            return row * RUN_LENGTH
        row = self._row_after("tensors")
        count = len(tensor) * times
        kept = recorded_columns(tensor)
        if tensor.dtype == np.uint64:
            kept = [list(map(as_sql, column)) for column in kept]
        rows = map(with_checksum, zip(range(row, row + count), *(column * times for column in kept), strict=True))
        insert_many(self._connection, "tensors", 2 + len(RECORDED), rows)
        self._rows["tensors"] = row + count
        return row

    def _row_after(self, table: str) -> int:
        """Return the id of the next row."""
        if table not in self._rows:
            (self._rows[table],) = self._connection.execute(f"SELECT coalesce(max(id) + 1, 0) FROM {table}").fetchone()
        return self._rows[table]

    def _form(self, stack: Array) -> int:
        key = (stack.dtype, stack.shape[1:])
        form = self._forms.get(key)
        if form is None:
            row = (element_types.name_of(stack.dtype), shape_text(stack.shape[1:]))
            found = self._connection.execute("SELECT id FROM forms WHERE dtype = ? AND shape = ?", row).fetchone()
            if found is None:
                found = self._connection.execute("SELECT coalesce(max(id), 0) + 1 FROM forms").fetchone()
                self._connection.execute("INSERT INTO forms VALUES (?, ?, ?, ?)", with_checksum((*found, *row)))
            form = self._forms[key] = int(found[0])
        return form


def _even_runs(first: int, batch: Batch) -> Iterator[tuple[Any, ...]]:
    """Yield the runs of a batch as rows of the table, parted where the ticks between two iterations are others."""
    ticks = batch.ticks
    ends = [*(run[0] for run in batch.runs[1:]), batch.count]
    for (begin, activation, iteration, tick), end in zip(batch.runs, ends, strict=True):
        if batch.is_even:
            if begin < end:
                yield first + begin, end - begin, activation, iteration, tick, batch.step
            continue
        number = 0 if iteration is None else iteration - begin
        while begin < end:
            step = ticks[begin + 1] - ticks[begin] if begin + 1 < end else 0
            count = _even(ticks, begin, end, step)
            yield first + begin, count, activation, None if iteration is None else number + begin, ticks[begin], step
            begin += count


def _even(ticks: list[int], begin: int, end: int, step: int) -> int:
    """Return how many ticks, from the first on, are `step` apart."""
    if step and ticks[end - 1] - ticks[begin] == step * (end - 1 - begin):
        whole = range(ticks[begin], ticks[end - 1] + 1, step)
        if ticks[begin:end] == list(whole):
            return end - begin
    count = 1
    while begin + count < end and ticks[begin + count] - ticks[begin + count - 1] == step:
        count += 1
    return count


def _is_number(stack: Array) -> bool:
    one = math.prod(stack.shape[1:]) == 1
    return one and (stack.dtype.kind in "biuf" or element_types.is_floating(stack.dtype)) and not stack.dtype.names


def _numbers(stack: Array) -> Array:
    """Return the numbers in a type that sqlite3 takes at once (a bool it does not)."""
    flat = stack.reshape(-1)
    if not is_of_numpy(flat.dtype):
        return flat.astype(np.float32)
    return flat.view(np.uint8) if flat.dtype == np.bool_ else flat


def _runs(row: int, numbers: Array) -> Iterator[tuple[Any, ...]]:
    found = numbers.tolist()
    if numbers.dtype == np.uint64:
        found = list(map(as_sql, found))
    elif numbers.dtype.kind == "f" and np.isnan(numbers).any():
        found = [None if number != number else number for number in found]  # as SQLite keeps it
    for index, begin in enumerate(range(0, len(found), RUN_LENGTH), row):
        part = found[begin : begin + RUN_LENGTH]
        yield with_checksum((index, *part, *[None] * (RUN_LENGTH - len(part))))


def insert_many(connection: sqlite3.Connection, table: str, width: int, rows: Iterable[Sequence[Any]]) -> int:
    """Insert rows, many with each statement: half of the time of an INSERT goes into carrying it out at all.

    Return how many.
    """
    iterator, count = iter(rows), 0
    while batch := list(itertools.islice(iterator, _ROWS_AT_ONCE)):
        connection.execute(_insertion(table, width, len(batch)), list(itertools.chain.from_iterable(batch)))
        count += len(batch)
    return count


@lru_cache(maxsize=256)
def _insertion(table: str, width: int, count: int = 1) -> str:
    row = f"({', '.join('?' * width)})"
    return f"INSERT INTO {table} VALUES {', '.join([row] * count)}"


# Activations: the runs of bodies that are under way, with their numbers in the file, and how they ended.

_COLUMNS = tuple(columns(TABLES["activations"]))
CLOSE = (
    "UPDATE activations SET closed = ?1, iterations = ?2, ended = ?3, "
    f"checksum = row_checksum({', '.join(_COLUMNS[:-3])}, ?1, ?2, ?3) WHERE id = ?4"
)
"""Says how an activation ended: tick, iterations, reason, its id."""


class RecordedActivation(Struct):
    """An activation: its number, its frame while it runs, and a row of the table `activations`."""

    number: int
    frame: Frame
    level: GraphLevel
    depth: int
    parent: int | None
    parent_iteration: int | None
    entered: int | None = None
    closed: int | None = None
    iterations: int | None = None
    ended: str | None = None
    is_written: bool = False

    @property
    def row(self) -> tuple[Any, ...]:
        """The columns of the table."""
        outer = (self.number, self.level.id, self.depth, self.parent, self.parent_iteration)
        return (*outer, self.entered, self.closed, self.iterations, self.ended)


class Activations:
    """Follows the stack of a machine. `count` is the highest number given so far."""

    def __init__(self, levels: Mapping[int, GraphLevel]) -> None:
        self._levels = levels
        self.count = 0
        self.open: list[RecordedActivation] = []
        self._touched: dict[int, RecordedActivation] = {}

    def resume(self, stack: list[Frame], numbers: Sequence[int], count: int) -> None:
        """Take up activations that are in the file already, which has so many."""
        self.count = count
        for frame, number in zip(stack[1:], numbers, strict=True):
            self.open.append(RecordedActivation(number, frame, self._level(frame), 0, None, None, is_written=True))

    def follow(self, stack: list[Frame], entered: int | None = None) -> None:
        """Give numbers to the frames that are new; `entered` is the tick of the topmost, if it was just entered."""
        running = self.open
        if entered is None and running and len(running) == len(stack) - 1 and running[-1].frame is stack[-1]:
            return
        for depth, frame in enumerate(stack[1:]):
            if depth < len(running) and running[depth].frame is frame:
                continue
            del running[depth:]
            self._enter(stack, depth, frame)
        del running[len(stack) - 1 :]
        if entered is not None and running:
            running[-1].entered = entered

    def _enter(self, stack: list[Frame], depth: int, frame: Frame) -> None:
        self.count += 1
        outer = self.open[-1].number if self.open else None
        around = stack[depth].activation
        iteration = around.iteration if around is not None and isinstance(around.plan, LoopPlan) else None
        entry = RecordedActivation(self.count, frame, self._level(frame), depth + 1, outer, iteration)
        self.open.append(entry)
        self._touched[entry.number] = entry

    def _level(self, frame: Frame) -> GraphLevel:
        return self._levels[id(frame.program)]

    def close(self, tick: int) -> RecordedActivation:
        """Return the innermost activation has been left."""
        entry = self.open.pop()
        entry.closed = tick
        activation = entry.frame.activation
        if activation is not None and isinstance(activation.plan, LoopPlan):
            entry.iterations = activation.iteration + 1
            entry.ended = activation.ended
        self._touched[entry.number] = entry
        return entry

    def write(self, connection: sqlite3.Connection) -> None:
        """Write what is new since the last time."""
        new = [entry for entry in self._touched.values() if not entry.is_written]
        insert_many(connection, "activations", 10, (with_checksum(entry.row) for entry in new))
        for entry in self._touched.values():
            if entry.is_written:
                ending = (entry.closed, entry.iterations, entry.ended, entry.number)
                connection.execute(CLOSE, ending)
            entry.is_written = True
        self._touched.clear()
