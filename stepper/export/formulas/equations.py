"""The body of a small loop as equations, in the order in which they can be computed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from stepper.engine.loops import RoleError, output_role, roles_of
from stepper.export.figures.labels import shortened
from stepper.export.figures.operands import constant_symbol
from stepper.export.formulas.notation import Term, cases, keeps_its_numbers, number, written
from stepper.export.layout.ranking import topological_order
from stepper.ir.model import Body, Graph, Layer, Model, Source
from stepper.operation_types import NO_OPERATIONS
from stepper.query.short_names import is_automatic, last_part, short_names_of
from stepper.wording import excerpt

MOST_OPERATIONS: Final = 16
"""Operations of a body of which a formula is written; a longer one explains nothing."""
MOST_EQUATIONS: Final = 6
_LONGEST_EQUATION: Final = 110
_LONGEST_NAME: Final = 20


def equations(model: Model, layer: Layer) -> tuple[str, ...]:
    """Return the body of a loop as equations, its carried values and outputs with the iteration t as index.

    `goes on while ...` is the last one, where the condition is computed. None of a body that is too large, or that has
    names that are not told apart.
    """
    graph = layer.bodies[0].graph
    if sum(not keeps_its_numbers(one) for one in graph.operations) > MOST_OPERATIONS:
        return ()
    try:
        found = tuple(_Equations(model, layer).written())
    except _NoFormula:
        return ()
    return found if len(found) <= MOST_EQUATIONS and max(map(len, found), default=0) <= _LONGEST_EQUATION else ()


class _NoFormula(Exception):
    """A body has no formula that anyone would read."""


class _Equations:
    """Names of values and equations of one body under construction."""

    def __init__(self, model: Model, layer: Layer) -> None:
        self.model, self.layer, self.body = model, layer, layer.bodies[0]
        self.graph = self.body.graph
        self.short = short_names_of(self.graph)
        self._last_parts = frozenset(map(last_part, self.short.values()))
        self.names: dict[Source, Term] = {}
        self._parameters()
        self.results = tuple(self._results())

    def written(self) -> Iterator[str]:
        """Yield the equations; an operation of several outputs has one for all of them."""
        self._intermediates()
        if len({term.text for term in self.names.values()}) < len(self.names):
            raise _NoFormula
        named: dict[int, list[Source]] = {}
        for source in sorted(self.names):
            named.setdefault(source.layer, []).append(source)
        for key in self._order():
            owner = self.graph.by_id[key]
            if key not in named or owner.type == "Parameter":
                continue
            if owner.bodies or len(owner.outputs) == 1:
                for source in named[key]:
                    yield f"{self.names[source].text} = {self._computed(self.graph, source, {}).text}"
            elif self._outputs_read(key) > len(named[key]):
                raise _NoFormula
            else:
                left = ", ".join(self.names[source].text for source in named[key])
                yield f"{left} = {self._computed(self.graph, named[key][0], {}).text}"
        for name, source in self.results:
            if source not in self.names or self.names[source].text != name:
                yield f"{name} = {self._term(self.graph, source, {}).text}"
        yield from self._condition()

    def _parameters(self) -> None:
        """Name the Parameters by role."""
        try:
            roles = roles_of(self.layer)
        except RoleError:
            raise _NoFormula from None
        sliced = {entry.parameter for entry in roles.sliced}
        for parameter in self.graph.parameters:
            name = self._name(parameter)
            if parameter.id in roles.current_iteration:
                name = "t"
            elif parameter.id in sliced:
                name = self._at(name)
            elif parameter.id in roles.merged_from:
                name = self._at(name, "{t−1}")
            self.names[Source(parameter.id, 0)] = Term(name)

    def _results(self) -> Iterator[tuple[str, Source]]:
        """Yield what the body gives, with its name: carried values first, then outputs that are none of them."""
        roles, given = roles_of(self.layer), set[Source]()
        for parameter, result in roles.merged_from.items():
            source = self._source_of(self.graph, result)
            yield self._given(self._at(self._name(self.graph.by_id[parameter])), source, given), source
        for entry in self.body.outputs:
            source = self._source_of(self.graph, entry.result)
            if entry.output is None or source in given or output_role(entry).is_condition:
                continue
            owner = self.graph.by_id[entry.result]
            name = f"y{entry.output}" if is_automatic(owner) else self._name(owner).removesuffix("_result")
            yield self._given(self._at(name), source, given), source

    def _given(self, name: str, source: Source, given: set[Source]) -> str:
        """Return the name; the first one of a value that is computed stands for it wherever it is read."""
        given.add(source)
        if source not in self.names and self.graph.by_id[source.layer].type != "Constant":
            self.names[source] = Term(name)
        return name

    def _intermediates(self) -> None:
        """Name what several operations read, and outputs of operations that have more than one."""
        for owner in self.graph.layers:
            if owner.type in NO_OPERATIONS or keeps_its_numbers(owner):
                continue
            readers = [one for one, _ in self._real_readers(owner.id)]
            if len(readers) < 2 and len(owner.outputs) < 2:
                continue
            for index in range(len(owner.outputs)):
                source = Source(owner.id, index)
                if source not in self.names and source in self.graph.read_outputs:
                    if len(owner.outputs) > 1:
                        raise _NoFormula  # its outputs have no names of their own
                    self.names[source] = Term(self._at(self._name(owner)))

    def _real_readers(self, key: int) -> Iterator[tuple[Layer, int]]:
        """Yield what reads the numbers of a layer; Results that have the name of it are none."""
        for reader, index in self.graph.readers.get(key, ()):
            if keeps_its_numbers(reader):
                yield from self._real_readers(reader.id)
            elif reader.type != "Result":
                yield reader, index

    def _outputs_read(self, key: int) -> int:
        return sum(Source(key, index) in self.graph.read_outputs for index in range(len(self.graph.by_id[key].outputs)))

    def _condition(self) -> Iterator[str]:
        found = next((one.result for one in self.body.outputs if output_role(one).is_condition), None)
        if found is None:
            return
        source = self._source_of(self.graph, found)
        if self.graph.by_id[source.layer].type != "Constant":
            yield f"goes on while {self._term(self.graph, source, {}).text}"

    def _order(self) -> list[int]:
        sources = {one.id: self.graph.sources[one.id] for one in self.graph.layers}
        return list(topological_order({key: [one.layer for one in read if one] for key, read in sources.items()}))

    # --- terms -----------------------------------------------------------------------------------------------------

    def _term(self, graph: Graph, source: Source, bound: Mapping[Source, Term]) -> Term:
        """Return a value: its name, or what it is computed from. `bound` are Parameters of the side of an If."""
        known = bound.get(source) if graph is not self.graph else self.names.get(source)
        return known or self._computed(graph, source, bound)

    def _computed(self, graph: Graph, source: Source, bound: Mapping[Source, Term]) -> Term:
        layer = graph.by_id[source.layer]
        if layer.type == "Constant":
            return number(constant_symbol(self.model, layer))
        if layer.is_loop or layer.type == "Parameter":
            raise _NoFormula
        read = graph.sources[layer.id]
        operands = [self._term(graph, one, bound) for one in read if one is not None]
        if len(operands) != len(read):
            raise _NoFormula
        if layer.bodies:
            return self._if(layer, source.output, operands)
        return operands[0] if keeps_its_numbers(layer) else written(layer, operands)

    def _if(self, layer: Layer, output: int, operands: list[Term]) -> Term:
        then, otherwise = (self._side(body, output, operands) for body in layer.bodies)
        return cases(operands[0], then, otherwise)

    def _side(self, body: Body, output: int, operands: list[Term]) -> Term:
        """Return what a side of an If gives for an output."""
        bound = {Source(one.parameter, 0): operands[one.input] for one in body.inputs if one.input is not None}
        result = next((one.result for one in body.outputs if one.output == output), None)
        if result is None:
            raise _NoFormula
        return self._term(body.graph, self._source_of(body.graph, result), bound)

    def _source_of(self, graph: Graph, result: int) -> Source:
        found = graph.sources[result][0] if graph.sources.get(result) else None
        if found is None:
            raise _NoFormula
        return found

    def _at(self, name: str, iteration: str = "t") -> str:
        """Return a name with the iteration as index; one that it has already is that, unless another value has none."""
        stem = name.removesuffix("_t")
        return f"{stem if stem and stem not in self._last_parts else name}_{iteration}"

    def _name(self, layer: Layer) -> str:
        name = last_part(self.short[layer.id])
        if name.isdigit():  # it would be read as a number
            raise _NoFormula
        return shortened(excerpt(name).replace(" ", "_"), _LONGEST_NAME)
