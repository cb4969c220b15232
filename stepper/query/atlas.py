"""Nesting of the graphs of a compiled model, and the names in them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from msgspec.structs import replace

from stepper.engine.program import CompiledModel, Program
from stepper.ir.model import Layer
from stepper.query.address_syntax import Address, Level, Name, NameKind


class Atlas:
    """Nesting of the programs of a model."""

    def __init__(self, compiled: CompiledModel) -> None:
        self.compiled = compiled
        self._by_graph = {id(program.graph): program for program in compiled.programs}
        self._around: dict[int, Program] = {}
        for program in compiled.programs:
            for inner in self.inside(program):
                self._around[id(inner)] = program

    def inside(self, program: Program) -> list[Program]:
        """Return the programs of the bodies of its layers."""
        return [program for layer in program.graph.holders for program in self.bodies(layer)]

    def bodies(self, layer: Layer) -> list[Program]:
        """Return the programs of a layer's bodies, in the order of the file."""
        return [self._by_graph[id(body.graph)] for body in layer.bodies]

    def holding(self, layer: Layer) -> Program:
        """Return the program whose graph a layer is in."""
        return next(one for one in self.compiled.programs if one.graph.by_id.get(layer.id) is layer)

    def deep_inside(self, programs: Iterable[Program]) -> list[Program]:
        """Return all programs inside these, at any depth."""
        found: list[Program] = []
        waiting = list(programs)
        while waiting:
            inner = self.inside(waiting.pop())
            found += inner
            waiting += inner
        return found

    def ancestor(self, program: Program, depth: int) -> Program:
        """Return the program around this one (or itself) whose path has this length."""
        while len(program.path) > depth:
            program = self._around[id(program)]
        return program

    def rings(self, where: Program) -> list[list[Program]]:
        """Return all programs, the nearest first."""
        around = [self.ancestor(where, depth) for depth in reversed(range(len(where.path)))]
        rings = [[where], self.deep_inside([where]), *([program] for program in around)]
        known = {id(program) for ring in rings for program in ring}
        rings.append([program for program in self.compiled.programs if id(program) not in known])
        return rings

    def rejoined(self, address: Address) -> Address:
        """Return the address with what `::` cut apart put together again where a name of the model has it
        (`aten::add`).
        """
        names = {name for program in self.compiled.programs for name in all_names(program) if "::" in name}
        if not names or not address.levels or address.operation is None:
            return address
        rest = [*address.levels, Level(address.operation)]
        joined: list[Level] = []
        while rest:
            count = next((count for count in range(len(rest), 1, -1) if _is_one_name(rest[:count], names)), 1)
            text = "::".join(level.name.text for level in rest[:count])
            kind = rest[0].name.kind
            joined.append(Level(Name(kind, text, rest[count - 1].name.is_next), rest[count - 1].iterations))
            del rest[:count]
        return replace(address, levels=tuple(joined[:-1]), operation=joined[-1].name)


def _is_one_name(levels: Sequence[Level], names: set[str]) -> bool:
    if any(level.name.kind is not NameKind.PLAIN for level in levels) or any(
        level.iterations is not None for level in levels[:-1]
    ):
        return False
    text = "::".join(level.name.text for level in levels)
    return any(name == text or name.endswith((f"/{text}", f".{text}")) for name in names)


def all_names(program: Program) -> Iterator[str]:
    """Yield the names of its layers, and the tensor names of their outputs."""
    for layer in program.graph.layers:
        yield layer.name
        for port in layer.outputs:
            yield from port.names
