"""A recording, to be looked at: its origin, statistics, values, events; and a machine that stands where it ended.

Everything read is checked, and whatever is wrong with the file is a SessionError with its name.
"""

from __future__ import annotations

import contextlib
import json
import math
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache, partial
from pathlib import Path
from typing import Any, NamedTuple, cast

import msgspec
import numpy as np
from msgspec import Struct, field

from stepper import element_types
from stepper.debug.breakpoints.conditions import everywhere
from stepper.debug.causes.cause import Enclosure, Location
from stepper.element_types import Array, DType, Ints, Shape
from stepper.engine.compiler import compile_model
from stepper.engine.inputs import bind_inputs, bind_states, position_of
from stepper.engine.loops import EndReason
from stepper.engine.machine import Machine
from stepper.engine.program import CompiledModel, Operation, OpKind, Partner, Program
from stepper.engine.rules import Rules
from stepper.engine.run import LoopLog, LoopSummary
from stepper.errors import InputError, SessionError
from stepper.html_tables import html_table
from stepper.ir.model import Body, BodyRole, Graph, Layer, Model, Port, PortSources, Source, layer_site
from stepper.ir.reader import read
from stepper.ops.operands import form_text
from stepper.query.address_resolution import MAIN, ResolutionError, Target, address_of, resolve
from stepper.query.address_syntax import Address, IterationRange, Name, NameKind, exact_name, parse_address
from stepper.recording import file
from stepper.recording.blobs import OF_RECORDING, BlobReader, checked_shape
from stepper.recording.file import NUMBERS_OF_SERIES, RUN_LENGTH, TENSORS_OF_SERIES, as_sql
from stepper.recording.origin import RecordingOptions, RunOrigin, check_inputs, check_states
from stepper.recording.recorded_states import checksum, pieces_from, restore
from stepper.records import Record
from stepper.tensors.statistics import RECORDED, recorded_statistics
from stepper.tensors.summaries import Summary
from stepper.wording import excerpt

_MOST_ROWS = 1_000_000
_ROWS_AT_ONCE = 256
_MOST_KEPT = 10_000
_LONGEST_KEPT = 2**20
"""Characters of the JSON of one row."""
_TABLES = ("inputs", "outputs")
_OF_VIEW = re.compile(rf"\b(from|join)\W+({'|'.join(file.VIEWS)})\b", re.IGNORECASE)


class RestoredMachine(Record):
    """A machine in the state of a snapshot, and what a recorder needs to go on from there."""

    machine: Machine
    inputs: tuple[Array, ...]
    tick: int
    numbers: Ints
    """Numbers of the activations in the file."""
    iterations: int
    activations: int
    """The last numbers that were given."""


class Recording:
    """An open recording; a context manager. The file may still be written to by the run itself."""

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        self._is_checked = False
        """True if every row has been checked, not only those that a query of a table reads."""
        self._connection = file.connect(self.path, writable=False)
        try:
            with self.reading():
                self.origin = RunOrigin.read(self._connection)
        except BaseException:
            self._connection.close()
            raise

    def __repr__(self) -> str:
        return f"<Recording {excerpt(str(self.path))} of {excerpt(self.origin.model)}>"

    def _repr_html_(self) -> str:
        """Return a table of what the run was given and what it gave, for notebooks."""
        rows = [("model", self.origin.model, f"rules {self.origin.rules}")]
        for word, found in (("input", self.inputs()), ("output", self.outputs())):
            rows += [(word, name, form_text(value)) for name, value in found.items()]
        return html_table(rows, repr(self)[1:-1])

    # --- looking -------------------------------------------------------------------------------------------------

    def query(self, statement: str, parameters: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        """Return the rows of a SELECT over the tables and views that file.py describes; a million at most."""
        with self.reading():
            if not self._is_checked and _OF_VIEW.search(statement):
                file.check_all(self._connection)
                self._is_checked = True
            return self._connection.execute(statement, parameters).fetchmany(_MOST_ROWS)

    def stream(self, statement: str, parameters: Sequence[Any] = ()) -> Iterator[tuple[Any, ...]]:
        """Yield the rows of a SELECT one after the other, however many there are; they are never in memory together."""
        with self.reading():
            cursor = self._connection.execute(statement, parameters)
        while True:
            with self.reading():
                rows = cursor.fetchmany(_ROWS_AT_ONCE)
            if not rows:
                return
            yield from rows

    def tensor(self, blob: Any) -> Array:
        """Return the tensor of a blob."""
        with self.reading():
            return BlobReader(self._connection, OF_RECORDING).tensor(blob)

    def inputs(self) -> dict[str, Array]:
        """Return the model's inputs by the names of its Parameters."""
        return self._tensors("inputs")

    def bound_inputs(self, model: Model) -> tuple[Array, ...]:
        """Return the inputs in the order of a model's Parameters. Raise SessionError where they do not fit."""
        with self.reading():
            recorded = self.inputs()
            if len(recorded) != len(model.graph.parameters):
                raise SessionError("has other inputs than the model")
            try:
                return tuple(bind_inputs(model, dict(enumerate(recorded.values()))))
            except InputError as error:
                raise SessionError(f"is damaged: {error}") from None

    def states(self) -> dict[str, Array]:
        """Return the variables of an earlier run that this one began with, by name."""
        return self._tensors("inputs", "position < 0")

    def whole(self, table: str, position: int) -> Array:
        """Return one of the model's inputs or outputs, by its position."""
        with self.reading():
            for tensor in self._tensors(table, f"position = {position}").values():
                return tensor
            raise SessionError(f"has no {position}th of its {table}")

    def outputs(self) -> dict[str, Array]:
        """Return the model's outputs by name; none where the run did not come to its end."""
        return self._tensors("outputs")

    def _tensors(self, table: str, where: str = "position >= 0") -> dict[str, Array]:
        assert table in _TABLES, "names of tables cannot be bound to a statement"
        query = f"SELECT name, value FROM {table} WHERE {where} ORDER BY abs(position)"
        with self.reading():
            reader = BlobReader(self._connection, OF_RECORDING)
            rows = self._connection.execute(query).fetchall()
            return {str(name): np.asarray(reader.value(json.loads(text))) for name, text in rows}

    def kept(self, kind: str) -> list[Any]:
        """Return the rows of JSON that were kept of a kind. SessionError for too many, or too long ones."""
        query = "SELECT length(content), content FROM kept WHERE kind = ? ORDER BY position"
        with self.reading():
            rows = self._connection.execute(f"{query} LIMIT {_MOST_KEPT + 1}", (kind,)).fetchall()
            if len(rows) > _MOST_KEPT or any(length > _LONGEST_KEPT for length, _content in rows):
                raise SessionError(f"keeps more of the kind {kind} than there can be")
            return [json.loads(content) for _length, content in rows]

    def kept_value(self, reference: Any) -> Any:
        """Return the tensor that a kept row names, as a machine has it."""
        with self.reading():
            return BlobReader(self._connection, OF_RECORDING).value(reference)

    def check_run(self, machine: Machine, inputs: Sequence[Array]) -> None:
        """Raise SessionError where a machine on these inputs does another run than this; the message says which."""
        with self.reading():
            self.origin.check_run(machine)
            check_inputs(machine.compiled.model, self.inputs(), inputs)
            check_states(self.states(), machine.initial_states)

    # --- going on ------------------------------------------------------------------------------------------------

    def model_path(self, moved: str | Path | None = None) -> Path:
        """Return the path of the model, which is found to be the recorded one; `moved` where it is elsewhere now."""
        with self.reading():
            path = self.origin.model_path(self.path.parent) if moved is None else Path(moved)
            self.origin.check_model(path)
            return path

    def restored(
        self,
        model: str | Path | None = None,
        *,
        tick: int | None = None,
        inputs: Mapping[str | int, Any] | None = None,
        max_iterations: int | None = None,
        partner: Partner | None = None,
    ) -> RestoredMachine:
        """Return a machine in the state of the last snapshot (with `tick`: of the last one not after it).

        `model` is the path of the .xml where it is not found beside the recording. SessionError for another model, or
        other `inputs` than those of the recording.
        """
        with self.reading():
            compiled = self._compiled(model, partner)
            recorded = self.inputs()
            bound = self.bound_inputs(compiled.model)
            if inputs:
                parameters = compiled.model.graph.parameters
                everything: dict[str | int, Any] = dict(enumerate(recorded.values()))
                everything |= {position_of(parameters, key): value for key, value in inputs.items()}
                check_inputs(compiled.model, recorded, bind_inputs(compiled.model, everything))
            machine = Machine(
                compiled,
                bound,
                max_iterations=self.origin.max_iterations if max_iterations is None else max_iterations,
                states=bind_states(compiled, self.states()),
                keep_values=self.origin.keep_values,
            )
            return self._restore(machine, tuple(bound), 2**62 if tick is None else tick)

    def model(self, path: str | Path | None = None) -> Model:
        """Return the model as it was run, over its calls, with its sequences opened. SessionError for another model."""
        with self.reading():
            return self.origin.in_form(read(self.model_path(path)))

    def _compiled(self, path: str | Path | None, partner: Partner | None) -> CompiledModel:
        compiled = compile_model(self.model(path), Rules(self.origin.rules), partner)
        self.origin.check_engine(compiled.engine)
        return compiled

    def _restore(self, machine: Machine, inputs: tuple[Array, ...], tick: int) -> RestoredMachine:
        connection = self._connection
        query = (
            "SELECT tick, iterations, activations, state, checksum FROM snapshots WHERE tick <= ? ORDER BY tick DESC"
        )
        row = connection.execute(f"{query} LIMIT 1", (tick,)).fetchone()
        if row is None:
            raise SessionError("has no snapshot to continue from")
        found, iterations, activations, state, seal = row
        if not isinstance(state, str) or seal != checksum(found, state):
            raise SessionError("its last snapshot is damaged")
        if type(iterations) is not int or type(activations) is not int:
            raise SessionError("its last snapshot is damaged")
        numbers = restore(machine, state, connection, lambda *scan: pieces_from(connection, *scan))
        return RestoredMachine(machine, inputs, machine.tick, tuple(numbers), iterations, activations)

    def options(self) -> RecordingOptions:
        """Return which values the run records."""
        with self.reading():
            return self.origin.options()

    def loop_log(self, compiled: CompiledModel, tick: int) -> LoopLog:
        """Return the iterations and ends of loops up to a tick, as counted by a run that is never interrupted."""
        log = LoopLog()
        query = (
            "SELECT level, ended, count(*), sum(iterations), min(iterations), max(iterations), min(closed) "
            "FROM activations WHERE closed <= ? AND ended IS NOT NULL GROUP BY level, ended ORDER BY min(closed)"
        )
        for level, ended, executions, total, fewest, most, _closed in self.query(query, (tick,)):
            with self.reading():
                operation = _loop_of(compiled, level)
                layer, path = operation.layer, compiled.programs[level].name
                reasons = Counter({EndReason(ended): executions})
                log.include(
                    operation,
                    LoopSummary(
                        path,
                        layer.id,
                        layer.type,
                        layer.name,
                        layer.line,
                        executions,
                        total,
                        fewest,
                        most,
                        reasons,
                        layer.iteration_word,
                    ),
                )
        return log

    # --- the file ------------------------------------------------------------------------------------------------

    @contextlib.contextmanager
    def reading(self) -> Iterator[None]:
        """Turn every error in the block into a SessionError with the file's name; end the block after a minute."""
        with file.errors_named(self.path, self._connection), file.time_bound(self._connection):
            yield

    def close(self) -> None:
        """Let go of the file."""
        self._connection.close()

    def __enter__(self) -> Recording:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_rest: object) -> None:
        self.close()


def _loop_of(compiled: CompiledModel, level: Any) -> Operation:
    """Return the loop whose body is a level."""
    if type(level) is int and 0 < level < len(compiled.programs):
        for program in compiled.programs:
            for operation in program.operations:
                if operation.kind is OpKind.LOOP and operation.plans[0].program is compiled.programs[level]:
                    return operation
    raise SessionError("has an activation of a loop that is not in the model")


# Names in a recording, in the form in which addresses are resolved: a compiled model that only has names.
#
# The file knows the model's graphs, and the layers of which something was recorded. From that a `CompiledModel` is put
# together that nothing can run: its slots are the ids of ports, and in the model's own graph the inputs and outputs. So
# an address means in a recording what it means in the model, and no model is needed.

_MOST_LEVELS = 10_000
_MOST_PORTS = 1_000_000
_MOST_OUTPUTS = 10_000
_MOST_DEPTH = 30
_ROLES = ("body", "then_body", "else_body")

Whole = tuple[str, int]
"""A tensor of the model's own: the table that it is in (inputs, outputs), and its position there."""


class _GraphRecord(Struct):
    """A graph as the file has it: type, name and recorded outputs of its layers by id, and the slots of these."""

    number: int
    parent: int | None
    layer: int
    position: int
    type: str
    name: str
    role: str
    layers: dict[int, tuple[str, str]] = field(default_factory=dict)
    outputs: dict[int, dict[int, tuple[str, ...]]] = field(default_factory=dict)
    slots: dict[tuple[int, int], int] = field(default_factory=dict)
    results: list[tuple[int, str, Source]] = field(default_factory=list)
    bodies: dict[int, list[Body]] = field(default_factory=dict)

    def add(self, layer: int, kind: str, name: str, output: int, names: tuple[str, ...], slot: int) -> None:
        """Add a recorded output of a layer."""
        self.layers[layer] = (kind, name)
        self.outputs.setdefault(layer, {})[output] = names
        self.slots[layer, output] = slot


class Catalogue:
    """The names in a recording. SessionError for a file whose tables cannot be."""

    def __init__(self, recording: Recording) -> None:
        self._recording = recording
        self.computed_by: dict[int, str] = {}
        """The backend that computed each port, in words; ports that numpy computed are not there."""
        with recording.reading():
            self._file = str(recording.origin.model_path(recording.path.parent))
            levels = _levels(recording)
            self.positions = _add_ports(recording, levels, self.computed_by)
            """Index of the operation of each port; -1 for a Parameter."""
            self._wholes = _add_wholes(recording, levels[0])
            self.compiled = _compiled(recording, levels)
        self._all = levels
        self._levels = {id(program): level for program, level in zip(self.compiled.programs, levels, strict=True)}
        self._ports = {slot: (number, key) for number, level in enumerate(levels) for key, slot in level.slots.items()}

    # --- addresses -----------------------------------------------------------------------------------------------

    def targets(self, text: str) -> list[Target]:
        """Return what an address means; several for a pattern, and for one that says nothing but iterations.

        AddressError for what is not an address, ResolutionError for what is nothing or ambiguous, as `resolve` has it.
        """
        address = parse_address(text)
        if address.operation is None:
            address = Address(address.levels, Name(NameKind.GLOB, "*"), None, address.iterations, address.index)
        if address.operation is not None and address.operation.kind in (NameKind.GLOB, NameKind.REGEX):
            return everywhere(address, self.compiled, self.compiled.main, self._why_absent)
        return [self.target(address)]

    def target(self, address: Address) -> Target:
        """Return the one value that an address means; an input or output of the model before a layer of its name."""
        found = self._whole_called(address)
        if found is not None:
            return found
        try:
            return resolve(address, self.compiled, None, self._why_absent)
        except ResolutionError as error:
            raise ResolutionError(f"{error}{self._hint()}") from None

    def address(self, target: Target) -> str:
        """Return the full address of a value, without iterations."""
        if not target.program.path:
            return f"{MAIN}::{exact_name(target.layer.outputs[0].names[0])}"
        return str(address_of(target, self.compiled))

    def location(self, target: Target, numbers: Sequence[int | None]) -> Location:
        """Return the place of a value, in these iterations of the loops around it (None: of an If)."""
        path: list[Enclosure] = []
        program = target.program
        for number in reversed(numbers):
            layer = program.path[-1]
            role = next(body.role for body in layer.bodies if body.graph is program.graph)
            path.insert(0, Enclosure(layer_site(layer, self._file), role, number))
            parent = self._levels[id(program)].parent
            assert parent is not None, "only the model's own graph has none"
            program = self.compiled.programs[parent]
        output = target.output if len(target.layer.outputs) > 1 else None
        return Location(layer_site(target.layer, self._file), output, tuple(path))

    def _whole_called(self, address: Address) -> Target | None:
        name, levels = address.operation, [str(level) for level in address.levels]
        if name is None or levels not in ([], [MAIN]) or address.port or address.iterations is not None:
            return None
        fitting = (target for target, _ in self.wholes() if target.layer.outputs[0].names == (name.text,))
        return next(fitting, None) if name.kind in (NameKind.PLAIN, NameKind.QUOTED) else None

    def _hint(self) -> str:
        options = self._recording.options()
        if not self.positions:
            return "\nnothing of what its bodies compute was recorded; stepper run --record carried|stats|all does"
        if options.operations is not None:
            pattern = excerpt(options.operations.text)
            return f"\nonly layers with a match of '{pattern}' were recorded (--record-ops)"
        return ""

    def _why_absent(self, layer: Layer) -> str:
        if layer.bodies:
            return f"of {layer.type} '{excerpt(layer.name)}' itself nothing was recorded, only of what is inside"
        return f"of {layer} this output was not recorded"

    # --- places --------------------------------------------------------------------------------------------------

    def level(self, program: Program) -> int:
        """Return the number of a graph in the file."""
        return self._levels[id(program)].number

    def way(self, program: Program) -> Ints:
        """Return the indices of the operations that hold this graph, from the model's own graph inwards."""
        positions: list[int] = []
        level = self._levels[id(program)]
        while level.parent is not None:
            positions.append(level.position)
            level = self._all[level.parent]
        return tuple(reversed(positions))

    def whole(self, target: Target) -> Whole | None:
        """Return which of the model's inputs or outputs this is; None for what is computed in a body."""
        return self._wholes.get(target.slot) if not target.program.path else None

    def wholes(self) -> list[tuple[Target, Whole]]:
        """Return the model's inputs and outputs."""
        main = self.compiled.main
        layers = {slot: main.graph.by_id[layer] for (layer, _), slot in main.slots.items()}
        return [(Target(main, layers[slot], 0, slot, layers[slot], ()), whole) for slot, whole in self._wholes.items()]

    def port(self, number: int) -> Target:
        """Return the value that a port is of. SessionError for a number that no port has."""
        if number not in self.positions:  # the model's inputs and outputs are no ports of the file
            raise SessionError(f"{self._recording.path}: has values of a port that is missing")
        level, (layer, output) = self._ports[number]
        program = self.compiled.programs[level]
        named = program.graph.by_id[layer]
        return Target(program, named, output, number, named, (None,) * len(program.path))


def place_text(path: Sequence[Layer], numbers: Sequence[int | None]) -> str:
    """Return where something was computed: `model > Loop 'decoder' #17`."""
    parts = [
        f"{layer.type} '{layer.name}'{'' if number is None else f' #{number}'}"
        for layer, number in zip(path, numbers, strict=True)
    ]
    return " > ".join(["model", *parts])


# --- from the tables ------------------------------------------------------------------------------------------------


def _levels(recording: Recording) -> list[_GraphRecord]:
    query = f"SELECT id, layers, parent, position, type, name, role FROM levels ORDER BY id LIMIT {_MOST_LEVELS}"
    levels: list[_GraphRecord] = []
    depths: list[int] = []
    for number, layers, parent, position, kind, name, role in recording.query(query):
        ids = msgspec.json.decode(layers, type=list[int])
        is_main = number == 0
        if number != len(levels) or is_main is not (parent is None) or (not is_main and role not in _ROLES):
            raise SessionError("is damaged (its levels)")
        if not is_main and not (type(parent) is int and 0 <= parent < number and ids and type(position) is int):
            raise SessionError("is damaged (its levels)")
        depths.append(0 if is_main else depths[parent] + 1)
        if depths[-1] > _MOST_DEPTH:
            raise SessionError("has loops inside one another deeper than any model")
        layer = ids[-1] if ids else -1
        levels.append(_GraphRecord(number, parent, layer, position or 0, str(kind), str(name), str(role)))
    return levels or [_GraphRecord(0, None, -1, 0, "", "", "")]


def _add_ports(recording: Recording, levels: list[_GraphRecord], computed_by: dict[int, str]) -> dict[int, int]:
    query = "SELECT id, level, layer, name, type, output, position, names, results, computed_by FROM ports ORDER BY id"
    positions: dict[int, int] = {}
    for port, number, layer, name, kind, output, position, names, results, by in recording.query(query):
        fits = 0 < number < len(levels) and 0 <= output < _MOST_OUTPUTS and len(positions) < _MOST_PORTS
        if not fits or (layer, output) in levels[number].slots:
            raise SessionError("is damaged (its ports)")
        level = levels[number]
        level.add(layer, str(kind), str(name), output, msgspec.json.decode(names, type=tuple[str, ...]), port)
        fed = msgspec.json.decode(results, type=list[tuple[int, str]])
        level.results += [(one, text, Source(layer, output)) for one, text in fed]
        positions[port] = position
        if by:
            computed_by[port] = str(by)
    return positions


def _port(index: int, names: tuple[str, ...]) -> Port:
    return Port(index, None, (), names, 0)


def _layer(number: int, name: str, kind: str, outputs: tuple[Port, ...], bodies: tuple[Body, ...] = ()) -> Layer:
    return Layer(number, name, kind, "", None, {}, (), outputs, bodies, 0)


def _add_wholes(recording: Recording, main: _GraphRecord) -> dict[int, Whole]:
    """Return the model's inputs and outputs as layers of its own graph, with ids that no layer has."""
    wholes: dict[int, Whole] = {}
    for table in _TABLES:
        for position, name in recording.query(f"SELECT position, name FROM {table} ORDER BY position LIMIT 10000"):
            slot = len(wholes)
            kind = "Parameter" if table == "inputs" else "Output"
            # Known by the name of its tensor alone: often there is a layer that is called the same.
            main.add(-1 - slot, kind, "", 0, (str(name),), slot)
            wholes[slot] = (table, position)
    return wholes


def _compiled(recording: Recording, levels: list[_GraphRecord]) -> CompiledModel:
    if sum(max(outputs) + 1 for level in levels for outputs in level.outputs.values()) > _MOST_PORTS:
        raise SessionError("is damaged (its ports)")
    graphs: dict[int, Graph] = {}
    for level in reversed(levels):  # what is inside comes later
        graph = graphs[level.number] = _graph(level)
        if level.parent is not None:
            around = levels[level.parent]
            roles = {other.role for other in around.bodies.get(level.layer, ())}
            if level.role in roles or (level.type == "If") is (level.role == "body"):
                raise SessionError("is damaged (its levels)")
            body = Body(cast("BodyRole", level.role), graph, (), (), (), first_draft=False, line=0)
            around.bodies.setdefault(level.layer, []).insert(0, body)
            around.layers[level.layer] = (level.type, level.name)
    programs: list[Program] = []
    for level in levels:
        path: tuple[Layer, ...] = ()
        if level.parent is not None:
            outer = programs[level.parent]
            path = (*outer.path, outer.graph.by_id[level.layer])
        programs.append(_program(graphs[level.number], path, level.slots))
    model = Model(recording.path, "", 0, graphs[0], None)
    return CompiledModel(model, Rules(recording.origin.rules), programs[0], tuple(programs), ())


def _graph(level: _GraphRecord) -> Graph:
    layers: dict[int, Layer] = {}
    for number, (kind, name) in level.layers.items():
        names = level.outputs.get(number, {})
        outputs = tuple(_port(index, names.get(index, ())) for index in range(max(names, default=-1) + 1))
        layers[number] = _layer(number, name, kind, outputs, tuple(level.bodies.get(number, ())))
    sources: dict[int, PortSources] = {}
    for number, name, source in level.results:
        if number not in layers:
            layers[number] = _layer(number, name, "Result", ())
            sources[number] = (source,)
    return Graph(tuple(layers.values()), (), sources, 0)


def _program(graph: Graph, path: tuple[Layer, ...], slots: dict[tuple[int, int], int]) -> Program:
    fed = ((number, source) for number, (source,) in graph.sources.items() if source is not None)
    results = {(number, 0): slots[source.layer, source.output] for number, source in fed}
    return Program(
        graph, path, (), (), (), straight=False, template=(), slots=slots | results, parameters=(), results=(),
        dead_after=(),
    )  # fmt: skip


# The recorded values of one output over the moments of its graph, read from front to back.
#
# A value is in a stack of values, or it is one number; where it is neither, there are its statistics.

_NUMBERS = ", ".join(f"n{k}" for k in range(RUN_LENGTH))
_BEGIN = f"max(s.first, s.first + n.id * {RUN_LENGTH} - s.start)"
_END = f"min(s.first + s.count, s.first + (n.id + 1) * {RUN_LENGTH} - s.start)"
"""End of the iterations whose numbers are in a row."""


class TensorType(NamedTuple):
    """An element type and a shape."""

    dtype: DType
    shape: Shape


class Column:
    """The values of one port. Moments must be asked for in the order of their ids."""

    def __init__(self, recording: Recording, port: int) -> None:
        self._recording = recording
        self._forms = lru_cache(maxsize=1024)(partial(form_of, recording))
        stacks = "SELECT first, count, repeated, blob, form, start FROM stacks WHERE port = ?"
        self._stacks = _Runs(recording, stacks, port)
        numbers = f"SELECT {_BEGIN}, {_END} - {_BEGIN}, form, {_NUMBERS}, {_BEGIN} - s.first + s.start - n.id * "
        numbers += f"{RUN_LENGTH} FROM {NUMBERS_OF_SERIES} WHERE s.port = ?"
        self._numbers = _Runs(recording, numbers, port)
        tensors = f"SELECT s.first + t.id - s.start, 1, form, {', '.join(RECORDED)} FROM {TENSORS_OF_SERIES}"
        self._tensors = _Runs(recording, f"{tensors} WHERE s.port = ?", port)
        self._opened: tuple[Any, Array] | None = None

    def value(self, moment: int) -> Any:
        """Return the value at a moment, an ndarray or a numpy scalar; None where it was not recorded."""
        try:
            found = self._stacked(moment)
            return self._number(moment) if found is None else found
        except Exception:
            with self._recording.reading():  # entered only here: this is asked a million times
                raise

    def summary(self, moment: int) -> Summary | None:
        """Return the statistics of the value at a moment; None where it was not computed, or not recorded at all."""
        try:
            row = self._tensors.at(moment)
            if row is not None:
                form = self._forms(row[2])
                numbers = dict(zip(RECORDED, row[3:], strict=True))
                return Summary(form.dtype, form.shape, numbers)
            value = self._number(moment)
            return None if value is None else summary_of(value)
        except Exception:
            with self._recording.reading():
                raise

    def known(self, moment: int) -> Any:
        """Return the value, else its statistics, else None."""
        found = self.value(moment)
        return self.summary(moment) if found is None else found

    def _stacked(self, moment: int) -> Any:
        row = self._stacks.at(moment)
        if row is None:
            return None
        first, count, repeated, blob, form, start = row
        if self._opened is None or self._opened[0] != row:
            # Values of the same elements share a blob, whatever their shapes.
            whole = self._recording.tensor(blob)
            if not (type(start) is int and 0 <= start <= len(whole) - (1 if repeated else count)):
                raise SessionError("has values that reach beyond their blob")
            self._opened = (row, whole.reshape(len(whole), *self._forms(form).shape))
        return self._opened[1][start + (0 if repeated else moment - first)]

    def _number(self, moment: int) -> Any:
        row = self._numbers.at(moment)
        if row is None:
            return None
        form, number = self._forms(row[2]), row[3 + row[-1] + moment - row[0]]
        if math.prod(form.shape) != 1:
            raise SessionError("a number has the shape of a tensor")
        if (number is None or isinstance(number, float)) and not element_types.is_floating(form.dtype):
            if number is None:
                raise _cannot_be(form)
            return None  # an integer of 64 bits without a sign that SQLite could not take
        try:
            with np.errstate(over="raise"):
                return np.array(math.nan if number is None else number).astype(form.dtype).reshape(form.shape)[()]
        except FloatingPointError:
            raise _cannot_be(form) from None


def _cannot_be(form: TensorType) -> SessionError:
    return SessionError(f"has a number that no {element_types.of_dtype(form.dtype).name} can be")


def form_of(recording: Recording, identity: Any) -> TensorType:
    """Return the form of this id. SessionError where there is none, or one that cannot be."""
    rows = recording.query("SELECT dtype, shape FROM forms WHERE id = ?", (identity,))
    with recording.reading():
        if not rows:
            raise SessionError("refers to a form that is missing")
        element_type = element_types.by_name(str(rows[0][0]))
        if element_type is None:
            raise SessionError("has a damaged table of forms")
        return TensorType(element_type.dtype, checked_shape(json.loads(rows[0][1])))


class _Runs:
    """Rows that each hold `count` moments from `first` on, in the order of time."""

    def __init__(self, recording: Recording, query: str, port: int) -> None:
        self._recording, self._query, self._port = recording, query, port
        self._rows: Iterator[tuple[Any, ...]] | None = None
        self._row: tuple[Any, ...] | None = None

    def at(self, moment: int) -> tuple[Any, ...] | None:
        """Return the row that holds the moment, if one does."""
        if self._rows is None:
            self._rows = self._recording.stream(self._query, (self._port,))
            self._row = self._next(0)
        while self._row is not None and self._row[0] + self._row[1] <= moment:
            self._row = self._next(self._row[0])
        return None if self._row is None or self._row[0] > moment else self._row

    def _next(self, least: int) -> tuple[Any, ...] | None:
        assert self._rows is not None, "it was opened"
        row = next(self._rows, None)
        if row is not None and not (type(row[0]) is int and type(row[1]) is int and row[0] >= least):
            raise SessionError("its values are not in the order of time")
        return row


def summary_of(value: Any) -> Summary:
    """Return the statistics of a tensor, the ones that recordings have."""
    array = np.asarray(value)
    numbers = {name: as_sql(number) for name, number in recorded_statistics(array).items()}
    return Summary(array.dtype, array.shape, numbers)


# The recorded moments of one graph, in the order of time: each iteration of a loop, each run of a branch.
#
# A moment is one of the iterations of a row of the table `runs`; those of the loops around it are found by way of the
# activations. Nothing is held but the row that is looked at, however long the recording is.

_MOST_UNFINISHED = 64
_LONGEST_RUN = 2**20
"""Far more iterations than are written at once."""

Asked = int | IterationRange | None
"""Iterations of one loop that are asked for: one, several, or all."""


class RecordedMoment(NamedTuple):
    """A moment at which values were recorded; `id` counts them, and `tick` is when the iteration was closed.

    `activations` and `numbers` have for each layer of the graph's path which run of its body this is (the number of
    its activation) and, of a loop, in which iteration.
    """

    id: int
    tick: int
    activations: Ints
    numbers: tuple[int | None, ...]

    @property
    def iteration(self) -> int | None:
        """Iteration of the innermost loop; None outside of all."""
        run, number = self.innermost
        return None if run is None else number

    @property
    def innermost(self) -> tuple[int | None, int]:
        """The activation of the innermost loop, and its iteration; None outside of all."""
        pairs = zip(reversed(self.activations), reversed(self.numbers), strict=True)
        return next(((run, number) for run, number in pairs if number is not None), (None, -1))


def moments(
    recording: Recording, level: int, path: Sequence[Layer], asked: Sequence[Asked]
) -> Iterator[RecordedMoment]:
    """Return all moments of a level that were asked for. `path` are the layers that lead to it."""
    within, where = _conditions(recording, path, asked)
    query = f"{_selection(path, within)} WHERE a{len(path)}.level = ?{where} ORDER BY r.id"
    return (one for row in recording.stream(query, (level,)) for one in _run(recording, row, path))


def count(recording: Recording, level: int, path: Sequence[Layer], asked: Sequence[Asked]) -> int:
    """Return how many there are."""
    within, where = _conditions(recording, path, asked)
    query = f"SELECT sum({within.stop} - {within.start}) FROM {_tables(path)} WHERE a{len(path)}.level = ?{where}"
    return int(recording.query(query, (level,))[0][0] or 0)


def moment(recording: Recording, identity: int, path: Sequence[Layer]) -> RecordedMoment:
    """Return the moment of this id. SessionError where there is none."""
    run = "(SELECT max(id) FROM runs WHERE id <= ?)"
    for row in recording.query(f"{_selection(path, _WHOLE)} WHERE r.id = {run}", (identity,)):
        for one in _run(recording, row, path):
            if one.id == identity:
                return one
    raise SessionError(f"{recording.path}: has values of an iteration that is missing ({identity})")


def most_iterations(recording: Recording, level: int) -> int:
    """Return how many iterations the longest run of this level's loop had, as far as it was recorded."""
    finished = recording.query("SELECT max(iterations) FROM activations WHERE level = ?", (level,))[0][0]
    return max([finished or 0, *_unfinished(recording, level).values()])


# --- SQL ------------------------------------------------------------------------------------------------------------
# The activation at depth d (1: the outermost) is a{d}; the iteration of a loop on the way is what the activation inside
# it names as the one around it.


class _Within(NamedTuple):
    """Terms of SQL for the first iteration of a run that is wanted, and the one behind the last."""

    start: str
    stop: str


_FIRST = "coalesce(r.iteration, 0)"
_WHOLE = _Within(_FIRST, f"{_FIRST} + r.count")


def _tables(path: Sequence[Layer]) -> str:
    depth = len(path)
    joins = [f"CROSS JOIN activations AS a{depth} ON a{depth}.id = r.activation"]
    joins += [f"CROSS JOIN activations AS a{d} ON a{d}.id = a{d + 1}.parent" for d in reversed(range(1, depth))]
    return " ".join(["runs AS r", *joins])


def _selection(path: Sequence[Layer], within: _Within) -> str:
    columns = [f"a{depth}.id" for depth in range(1, len(path) + 1)]
    columns += [f"a{depth}.parent_iteration" for depth in range(2, len(path) + 1)]
    own = ["r.id", "r.tick", "r.step", _FIRST, within.start, within.stop]
    return f"SELECT {', '.join([*own, *columns])} FROM {_tables(path)}"


def _run(recording: Recording, row: tuple[Any, ...], path: Sequence[Layer]) -> Iterator[RecordedMoment]:
    """Yield the moments of one row."""
    identity, tick, step, first, start, stop = row[:6]
    activations, outer = row[6 : 6 + len(path)], row[6 + len(path) :]
    around = tuple(number if layer.is_loop else None for layer, number in zip(path[:-1], outer, strict=True))
    fits = all(type(one) is int for one in (*row[:6], *activations)) and 0 <= stop - first <= _LONGEST_RUN
    if not fits or any(layer.is_loop is not (type(one) is int) for layer, one in zip(path[:-1], around, strict=True)):
        raise SessionError(f"{recording.path}: its table of runs is damaged")
    is_loop = path[-1].is_loop
    for number in range(start, stop):
        offset = number - first
        numbers = (*around, number if is_loop else None)
        yield RecordedMoment(identity + offset, tick + offset * step, activations, numbers)


def _conditions(recording: Recording, path: Sequence[Layer], asked: Sequence[Asked]) -> tuple[_Within, str]:
    """Return which iterations of each run are wanted, and the condition for the runs that have any of them."""
    conditions: list[str] = []
    starts, stops = [_WHOLE.start], [_WHOLE.stop]
    unfinished: dict[int, int] | None = None
    for place, iterations in enumerate(asked):
        if iterations is None:
            continue
        for bound, is_start in zip(_bounds(iterations), (True, False), strict=True):
            if bound is None:
                continue
            term = str(bound)
            if bound < 0:
                unfinished = _unfinished(recording) if unfinished is None else unfinished
                term = f"{_count(place + 1, unfinished)} + {bound}"
            if place == len(path) - 1:
                (starts if is_start else stops).append(term)
            else:
                conditions.append(f"a{place + 2}.parent_iteration {'>=' if is_start else '<'} {term}")
    within = _Within(_of("max", starts), _of("min", stops))
    if within != _WHOLE:
        conditions.append(f"{within.start} < {within.stop}")
    return within, "".join(f" AND {condition}" for condition in conditions)


def _of(choice: str, terms: Sequence[str]) -> str:
    return f"{choice}({', '.join(terms)})" if len(terms) > 1 else terms[0]


def _bounds(iterations: int | IterationRange) -> tuple[int | None, int | None]:
    if isinstance(iterations, int):
        return iterations, None if iterations == -1 else iterations + 1
    return iterations.start, iterations.stop


def _count(depth: int, unfinished: dict[int, int]) -> str:
    """Return how many iterations an activation ran."""
    if not unfinished:
        return f"a{depth}.iterations"
    cases = " ".join(f"WHEN {activation} THEN {count}" for activation, count in unfinished.items())
    return f"CASE a{depth}.id {cases} ELSE a{depth}.iterations END"


def _unfinished(recording: Recording, level: int | None = None) -> dict[int, int]:
    """Return how many iterations the activations (of a level) have run that were under way when the recording ended."""
    query = "SELECT id FROM activations WHERE closed IS NULL AND level = coalesce(?, level)"
    rows = recording.query(f"{query} LIMIT {_MOST_UNFINISHED + 1}", (level,))
    if len(rows) > _MOST_UNFINISHED:
        raise SessionError(f"{recording.path}: its table of activations is damaged")
    counts: dict[int, int] = {}
    for (activation,) in rows:
        own = "SELECT max(iteration + count - 1) FROM runs WHERE activation = ?"
        inside = "SELECT max(parent_iteration) FROM activations WHERE parent = ?"
        last = recording.query(f"SELECT max(coalesce(({own}), -1), coalesce(({inside}), -1))", (activation,) * 2)[0][0]
        if type(last) is not int:
            raise SessionError(f"{recording.path}: its table of activations is damaged")
        counts[activation] = last + 1
    return counts
