"""The values of a model by the names that can be typed where a run stands, the nearest first: to pick from."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import TYPE_CHECKING

from stepper import element_types
from stepper.query.address_resolution import Atlas, levels_of, unique_name
from stepper.query.address_syntax import exact_name
from stepper.query.short_names import short_names_of
from stepper.records import Record

if TYPE_CHECKING:
    from stepper.engine.program import CompiledModel, Program
    from stepper.ir.model import Layer, Port

MOST = 200
"""Names that are listed at most."""


def declared_form(port: Port) -> str:
    """Return type and shape as the file declares them; empty where it does not."""
    if port.element_type is None:
        return ""
    sizes = ",".join("?" if size < 0 else str(size) for size in port.dims)
    return f"{element_types.name_of(port.element_type.dtype)}[{sizes}]"


class NamedValue(Record, eq=False):
    """An output of a layer, and the name by which screens call it.

    `distance` is 0 in the graph where the run stands, and grows from graph to graph. `is_plain`: the short name means
    nothing else from there.
    """

    short: str
    program: Program
    layer: Layer
    distance: int
    is_plain: bool

    @property
    def declared(self) -> str:
        """Type and shape as the file declares them; empty where it does not."""
        return declared_form(self.layer.outputs[0])

    @property
    def level(self) -> str:
        """The loops and branches around it, from the outside inwards; empty in the model's own graph."""
        return " > ".join(layer.name for layer in self.program.path)


class KnownNames:
    """Names of a compiled model, as they are seen from each of its graphs; looked up once for each."""

    def __init__(self, compiled: CompiledModel) -> None:
        self.compiled = compiled
        self._atlas = Atlas(compiled)
        self._seen: dict[int, tuple[NamedValue, ...]] = {}
        self._levels: dict[int, str] = {}

    def seen_from(self, where: Program) -> tuple[NamedValue, ...]:
        """Return all values with a name, the nearest first, and in each graph those that are carried or given first."""
        if id(where) not in self._seen:
            self._seen[id(where)] = tuple(self._named(where))
        return self._seen[id(where)]

    def fitting(self, word: str, where: Program, *, most: int = MOST) -> list[NamedValue]:
        """Return the values whose name begins with a word, then those that have it in their name, or in their type."""
        if "::" in word:
            sought = word.replace("`", "")
            every = ((one, self.full_address(one).replace("`", "")) for one in self.seen_from(where))
            return list(islice((one for one, address in every if address.startswith(sought)), most))
        sought = word.strip("`").casefold()
        ranked = ((rank, one) for one in self.seen_from(where) if (rank := _rank(one, sought)) is not None)
        return [one for _, one in sorted(ranked, key=lambda pair: (pair[0], pair[1].distance))[:most]]

    def typed(self, value: NamedValue) -> str:
        """Return an address that means a value: the short name, or all of it where something nearer has that name."""
        return str(exact_name(value.short)) if value.is_plain else self.full_address(value)

    def full_address(self, value: NamedValue) -> str:
        """Return the address of a value from the model's own graph inwards."""
        program = value.program
        if id(program) not in self._levels:
            self._levels[id(program)] = "::".join(map(str, levels_of(program, self._atlas)))
        return f"{self._levels[id(program)]}::{unique_name(value.layer, program)}"

    def _named(self, where: Program) -> Iterator[NamedValue]:
        taken: Counter[str] = Counter()
        for distance, ring in enumerate(self._atlas.rings(where)):
            found = [(program, layer) for program in ring for layer in _with_values(program)]
            shorts = [short_names_of(program.graph)[layer.id] for program, layer in found]
            here = Counter(shorts)
            for (program, layer), short in zip(found, shorts, strict=True):
                yield NamedValue(short, program, layer, distance, here[short] == 1 and not taken[short])
            taken += here


class Hit(Record):
    """Hold a layer that a search has found.

    `index` is the index of its operation, negative for inputs of a graph. `result` is the found name if it names an
    output of the layer or of the graph, not the layer.
    """

    program: Program
    layer: Layer
    index: int
    result: str = ""


def found_in_all_levels(compiled: CompiledModel, text: str) -> list[Hit]:
    """Return the operations, loops and values with a text in name or type, level by level from the outside inwards.

    In each level what comes in is first, then the operations in their order. `loop` finds loops of both kinds.
    """
    sought = text.casefold()
    found = []
    for program in sorted(compiled.programs, key=lambda program: len(program.path)):
        given = program.graph.parameters
        short = short_names_of(program.graph)
        layers = [*enumerate(given, start=-len(given)), *enumerate(program.layers)]
        results = _results(program, sought)
        for index, layer in layers:
            if _has(layer, short[layer.id], sought):
                found.append(Hit(program, layer, index))
            elif tensor := _tensor(layer, sought):
                found.append(Hit(program, layer, index, "" if index < 0 else tensor))
            elif layer.id in results:
                found.append(Hit(program, layer, index, results[layer.id]))
    return found


def _results(program: Program, sought: str) -> Mapping[int, str]:
    """Return the names of the outputs of a graph with a text in them, by the layer that gives them."""
    sources = program.graph.sources
    pairs = ((one, sources[one.id][0]) for one in program.graph.results if sought in one.name.casefold())
    return {source.layer: result.name for result, source in pairs if source is not None}


def _has(layer: Layer, short: str, sought: str) -> bool:
    names = (layer.name, short, layer.type)
    return any(sought in name.casefold() for name in names) or (layer.is_loop and sought in ("loop", "loops"))


def _tensor(layer: Layer, sought: str) -> str:
    """Return the first tensor name of an output of a layer with a text in it; empty if there is none."""
    names = (name for port in layer.outputs for name in port.names)
    return next((name for name in names if sought in name.casefold()), "")


def _with_values(program: Program) -> Sequence[Layer]:
    """Return the layers of a graph that have a value: Parameters, operations in their order, then what is constant."""
    given = [layer for layer in program.graph.parameters if (layer.id, 0) in program.slots]
    known = {layer.id for layer in (*given, *program.layers)}
    others = (layer for layer in program.graph.layers if layer.id not in known and layer.type != "Result")
    computed = [layer for layer in program.layers if layer.outputs]
    return [*given, *computed, *(layer for layer in others if (layer.id, 0) in program.slots)]


def _rank(value: NamedValue, sought: str) -> int | None:
    """Return how well a value fits a word, 0 the best; None if it does not."""
    short, layer = value.short.casefold(), value.layer
    if short.startswith(sought):
        return 0 if short == sought else 1
    if sought in short:
        return 2
    if sought in layer.name.casefold() or any(sought in name.casefold() for name in layer.outputs[0].names):
        return 3
    return 4 if sought in layer.type.casefold() or (layer.is_loop and sought in "loop") else None
