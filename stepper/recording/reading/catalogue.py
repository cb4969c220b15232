"""Names in a recording, in the form in which addresses are resolved: a compiled model that only has names.

The file knows the model's graphs, and the layers of which something was recorded. From that a `CompiledModel` is put
together that nothing can run: its slots are the ids of ports, and in the model's own graph the inputs and outputs. So
an address means in a recording what it means in the model, and no model is needed.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, Final, cast

from msgspec import Struct, field

from stepper.debug.breakpoints.conditions import everywhere
from stepper.debug.causes.cause import Enclosure, Location
from stepper.engine.program import CompiledModel, Program
from stepper.engine.rules import Rules
from stepper.errors import SessionError
from stepper.ir.model import Body, BodyRole, Graph, Layer, Model, Port, Source, layer_site
from stepper.query.address_resolution import MAIN, ResolutionError, Target, address_of, resolve
from stepper.query.address_syntax import Address, Name, NameKind, exact_name, parse_address
from stepper.recording.reading.recording import Recording
from stepper.wording import excerpt

_MOST_LEVELS: Final = 10_000
_MOST_PORTS: Final = 1_000_000
_MOST_OUTPUTS: Final = 10_000
_MOST_DEPTH: Final = 30
_ROLES: Final = ("body", "then_body", "else_body")
_TABLES: Final = ("inputs", "outputs")

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
        """Of each port the partner that computed it, in words; those of numpy are not there."""
        with recording.reading():
            self._file = str(recording.origin.model_path(recording.path.parent))
            levels = _levels(recording)
            self.positions = _add_ports(recording, levels, self.computed_by)
            """Of each port the index of its operation, -1: a Parameter."""
            self._wholes = _add_wholes(recording, levels[0])
            self.compiled = _compiled(recording, levels)
        self._all = levels
        self._levels = {id(program): level for program, level in zip(self.compiled.programs, levels, strict=True)}
        self._ports = {slot: (number, key) for number, level in enumerate(levels) for key, slot in level.slots.items()}

    @property
    def is_empty(self) -> bool:
        """True if nothing of what the bodies compute was recorded."""
        return not self.positions

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
            path.insert(0, _enclosure(program, number, self._file))
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
        if self.is_empty:
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

    def way(self, program: Program) -> tuple[int, ...]:
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


def _enclosure(program: Program, number: int | None, file: str) -> Enclosure:
    layer = program.path[-1]
    role = next(body.role for body in layer.bodies if body.graph is program.graph)
    return Enclosure(layer_site(layer, file), role, number)


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
        ids = json.loads(layers)
        is_main = number == 0
        fits = number == len(levels) and isinstance(ids, list) and all(type(one) is int for one in ids)
        if not fits or is_main is not (parent is None) or (not is_main and role not in _ROLES):
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
        level.add(layer, str(kind), str(name), output, _texts(json.loads(names)), port)
        level.results += [(int(one), str(text), Source(layer, output)) for one, text in json.loads(results)]
        positions[port] = position
        if by:
            computed_by[port] = str(by)
    return positions


def _texts(names: Any) -> tuple[str, ...]:
    if not isinstance(names, list):
        raise SessionError("is damaged (its ports)")
    return tuple(map(str, names))


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
    sources: dict[int, tuple[Source | None, ...]] = {}
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
