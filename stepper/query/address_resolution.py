"""Resolve an address to a place in a compiled model: graph, layer, output, slot.

The resolver tries these readings of a name in order. They are: the exact name of a layer; `id=12`; a tensor name of an
output; the end of a name (after `/` or `.`); a short name as screens show it (short_names.py); a glob; a regular
expression. The first reading that fits anywhere counts. If it fits in several graphs, the nearest graph counts: the
current graph, the graphs inside it, the graphs around it from the inside outwards, the rest.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from msgspec.structs import replace

from stepper.engine.program import CompiledModel, Program
from stepper.errors import AddressCandidate, UsageError
from stepper.ir.model import BackEdge, Graph, Layer, kept_with_graph
from stepper.name_patterns import PatternError, glob, regex
from stepper.query.address_syntax import Address, AddressError, Iterations, Level, Name, NameKind, exact_name
from stepper.query.short_names import called, short_names_of
from stepper.records import Record
from stepper.wording import excerpt, near_sentence, printable


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
        if not address.levels or address.operation is None:
            return address
        names = {name for program in self.compiled.programs for name in _joined_names(program.graph)}
        if not names:
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


@kept_with_graph
def _joined_names(graph: Graph) -> frozenset[str]:
    """Return the names that have `::` themselves."""
    return frozenset(name for name in all_names(graph) if "::" in name)


@kept_with_graph
def _having(graph: Graph) -> Mapping[str, Sequence[Layer]]:
    """Return the layers with a name of their own or of an output, by the whole name and by its last part."""
    found: dict[str, dict[int, Layer]] = {}
    for layer in graph.layers:
        for name in (layer.name, *(name for port in layer.outputs for name in port.names)):
            for key in (name, _last_part(name)):
                found.setdefault(key, {})[layer.id] = layer
    return {key: tuple(layers.values()) for key, layers in found.items()}


def _last_part(name: str) -> str:
    return name[max(name.rfind("/"), name.rfind(".")) + 1 :]


def _is_one_name(levels: Sequence[Level], names: set[str]) -> bool:
    if any(level.name.kind is not NameKind.PLAIN for level in levels) or any(
        level.iterations is not None for level in levels[:-1]
    ):
        return False
    text = "::".join(level.name.text for level in levels)
    return any(name == text or name.endswith((f"/{text}", f".{text}")) for name in names)


def all_names(graph: Graph) -> Iterator[str]:
    """Yield the names of its layers, and the tensor names of their outputs."""
    for layer in graph.layers:
        yield layer.name
        for port in layer.outputs:
            yield from port.names


MAIN = "model"
"""The level that means the model's own graph."""

_SIDES = {"then": "then_body", "else": "else_body"}
SIDE_NAMES = {role: side for side, role in _SIDES.items()}
"""By the role of a body of an If: how addresses call that side."""
_SHAPE = ".shape"
"""Behind the name of a value: its shape."""
_MOST_LISTED = 10
_MOST_COMPARED = 20_000
"""Names among which the nearest are sought; above that it would take seconds."""


class ResolutionError(UsageError):
    """An address that means nothing in this model, or more than one thing; the message lists what it may mean."""

    has_lines = True


class AmbiguousAddress(ResolutionError):
    """An address that means several things."""

    def __init__(self, text: str, candidates: Sequence[AddressCandidate], message: str) -> None:
        self.ambiguous, self.candidates = text, tuple(candidates)
        names = [printable(f"{one.address}  ({one.type})") for one in self.candidates[:_MOST_LISTED]]
        super().__init__(f"{message}; it may be\n{_listed(names, len(self.candidates))}")
        self.reason = message


class Target(Record, eq=False):
    """Meaning of an address. `layer` computes the value at its output index `output`, found in `slot` of a frame.

    `named` is the layer that the address names: the same, or a Result, which means its source. `iterations` has for
    each layer of `program.path` what the address says about its iterations (None: nothing; always so for an If).
    """

    program: Program
    layer: Layer
    output: int
    slot: int
    named: Layer
    iterations: tuple[Iterations | None, ...]


class _Hit(Record):
    """A layer that a name fits; `output` where it is one output's own name."""

    program: Program
    layer: Layer
    output: int | None = None


WhyAbsent = Callable[[Layer], str]
"""A sentence about a layer that has no value."""

Rule = Callable[[Program], Iterator[tuple[Layer, int | None]]]
"""Rule that reads a name: the layers of a graph that it fits, and the output that it names."""


def as_asked(place: Address, asked: Address) -> Address:
    """Return a place that an address may mean with the iterations and the element that it names."""
    return replace(place, iterations=asked.iterations, index=asked.index)


def resolve(
    address: Address, compiled: CompiledModel, where: Program | None = None, why_absent: WhyAbsent | None = None
) -> Target:
    """Return the one place that the address means, seen from `where` (default: the main graph).

    Raises ResolutionError for an unknown name (with the nearest), an ambiguous name (with the candidates), a port that
    does not exist, a layer that no Result needs, and iterations outside every loop. `why_absent` explains why a layer
    has no value, if the reason is not that no Result needs it.
    """
    targets = resolve_all(address, compiled, where, why_absent)
    if len(targets) == 1:
        return targets[0]
    candidates = [
        AddressCandidate(str(as_asked(address_of(one, compiled), address)), one.named.type) for one in targets
    ]
    raise AmbiguousAddress(str(address), candidates, f"'{excerpt(str(address))}' is ambiguous")


def resolve_all(
    address: Address, compiled: CompiledModel, where: Program | None = None, why_absent: WhyAbsent | None = None
) -> tuple[Target, ...]:
    """Return every place that the address may mean in the nearest graphs where it means any: for globs and expressions.

    Of an address with iterations only graphs in loops count, where one of them has the name. Raise ResolutionError as
    `resolve` does, but for ambiguity.
    """
    atlas = Atlas(compiled)
    address = atlas.rejoined(address)
    if address.operation is None:
        raise ResolutionError(f"'{excerpt(str(address))}' names no operation")
    rings, asked = _levels(address, atlas, where or compiled.main)
    rules = _rules(address.operation, address)
    hits = _search(rings, rules)
    if address.iterations is not None and not any(_is_in_loop(hit.program) for hit in hits):
        hits = _search([[one for one in ring if _is_in_loop(one)] for ring in rings], rules) or hits
    if not hits:
        raise ResolutionError(_unknown(address.operation, address, rings))
    alive = [hit for hit in hits if (hit.layer.id, 0) in hit.program.slots]
    if not alive:
        raise ResolutionError((why_absent or _no_value)(hits[0].layer))
    if address.operation.is_next:
        alive = _next_values(alive, address.operation)
    found: dict[tuple[int, int], Target] = {}
    for hit in alive:
        target = _target(hit, address, asked)
        found.setdefault((id(target.program), target.slot), target)
    return tuple(found.values())


def address_of(target: Target, compiled: CompiledModel) -> Address:
    """Return the full address of a place; as text it can be typed in again, also in an expression."""
    found = layer_address(target.layer, target.program, compiled)
    return replace(found, port=target.output) if len(target.layer.outputs) > 1 else found


def moment_address(target: Target, compiled: CompiledModel) -> Address:
    """Return the same as a movement takes it from anywhere.

    Of a loop it has the output, for `loop@7` is an iteration of the loop; an id is sought in the model's own graph,
    for each graph counts its own.
    """
    found = from_main(address_of(target, compiled))
    return replace(found, port=target.output) if target.layer.is_loop else found


def from_main(full: Address) -> Address:
    """Return a full address that means the same from every graph: an id is sought in the model's own graph."""
    is_id = full.levels[0].name.kind is NameKind.ID
    return replace(full, levels=(Level(Name(NameKind.PLAIN, MAIN)), *full.levels)) if is_id else full


def shape_asked(address: Address, compiled: CompiledModel, where: Program | None = None) -> Address | None:
    """Return the value whose shape an address means: `h@3[0]` for `h.shape@3[0]`.

    Explanations write shapes so. Returns None for any other address, and if a layer has the name.
    """
    name = address.operation
    if name is None or name.kind not in (NameKind.PLAIN, NameKind.QUOTED) or not name.text.endswith(_SHAPE):
        return None
    of_value = replace(address, operation=Name(name.kind, name.text.removesuffix(_SHAPE)))
    is_value = not means_something(address, compiled, where) and means_something(of_value, compiled, where)
    return of_value if is_value else None


def means_something(address: Address, compiled: CompiledModel, where: Program | None) -> bool:
    """True if there is at least one place that the address may mean."""
    try:
        return bool(resolve_all(address, compiled, where))
    except ResolutionError:
        return False


def layer_address(layer: Layer, program: Program, compiled: CompiledModel) -> Address:
    """Return the full address of a layer of a program, without an output."""
    return Address(levels_of(program, Atlas(compiled)), unique_name(layer, program))


def levels_of(program: Program, atlas: Atlas) -> tuple[Level, ...]:
    """Return the levels of the full address of whatever is in a program."""
    levels: list[Level] = []
    for depth, around in enumerate(program.path):
        levels.append(Level(unique_name(around, atlas.ancestor(program, depth))))
        if around.type == "If":
            inside = atlas.ancestor(program, depth + 1)
            side = next(side for side, role in _SIDES.items() if _side(around, role) is inside.graph)
            levels.append(Level(Name(NameKind.PLAIN, side)))
    return tuple(levels) or (Level(Name(NameKind.PLAIN, MAIN)),)


def unique_name(layer: Layer, program: Program) -> Name:
    """Return the name of a layer of a graph, or its id where another one has the same name."""
    same = program.graph.same_names.get(layer.name, 0)
    return Name(NameKind.ID, str(layer.id)) if same > 1 or not layer.name else exact_name(layer.name)


def _side(layer: Layer, role: str) -> object:
    return next((body.graph for body in layer.bodies if body.role == role), None)


# --- levels ---------------------------------------------------------------------------------------------------------


def _levels(
    address: Address, atlas: Atlas, where: Program
) -> tuple[list[list[Program]], list[tuple[Layer, Iterations]]]:
    """Return where to look for the operation, nearest first, and the requested iterations."""
    levels = list(address.levels)
    asked: list[tuple[Layer, Iterations]] = []
    if not levels:
        return atlas.rings(where), asked
    rings = atlas.rings(where)
    if levels[0].name == Name(NameKind.PLAIN, MAIN):
        _refuse_iterations(levels.pop(0), "the model's own graph")
        rings = [[atlas.compiled.main]]
    while levels:
        level = levels.pop(0)
        layer = _loop(level, levels, address, rings, atlas)
        programs = atlas.bodies(layer)
        if layer.is_loop:
            asked += [] if level.iterations is None else [(layer, level.iterations)]
        else:
            _refuse_iterations(level, "an If")
            if levels and levels[0].name.kind is NameKind.PLAIN and (role := _SIDES.get(levels[0].name.text)):
                _refuse_iterations(levels.pop(0), "a branch of an If")
                programs = [program for program in programs if program.graph is _side(layer, role)]
        rings = [programs, atlas.deep_inside(programs)]
    return rings, asked


def _refuse_iterations(level: Level, what: str) -> None:
    if level.iterations is not None:
        raise ResolutionError(f"'{excerpt(str(level))}' is {what}, which has no iterations")


def _loop(level: Level, inner: Sequence[Level], address: Address, rings: list[list[Program]], atlas: Atlas) -> Layer:
    """Return the loop or If that a level names, outside of the levels `inner`."""
    hits = _search(rings, _rules(level.name, address))
    if hits and not any(hit.layer.bodies for hit in hits):
        text = f"{hits[0].layer.type} '{excerpt(hits[0].layer.name)}'"
        raise ResolutionError(
            f"{text} is neither a loop nor an If, so nothing can be inside it ('{excerpt(str(address))}')"
        )
    layers = {id(hit.layer): hit for hit in hits if hit.layer.bodies}
    if not layers and address.operation is not None and _is_part_of_name(level.name, rings):
        whole = "::".join((level.name.text, *(one.name.text for one in inner), address.operation.text))
        raise ResolutionError(_unknown(Name(NameKind.PLAIN, whole), replace(address, levels=()), rings))
    if not layers:
        loops = [layer.name for ring in rings for program in ring for layer in program.graph.layers if layer.bodies]
        raise ResolutionError(
            f"there is no loop or If '{excerpt(level.name.text)}'; {_nearest(level.name.text, loops)}"
        )
    if len(layers) > 1:
        addresses = [str(layer_address(hit.layer, hit.program, atlas.compiled)) for hit in layers.values()]
        candidates = [
            AddressCandidate(one, hit.layer.type) for one, hit in zip(addresses, layers.values(), strict=True)
        ]
        raise AmbiguousAddress(str(level.name), candidates, f"the level '{excerpt(str(level))}' is ambiguous")
    return next(iter(layers.values())).layer


def _is_part_of_name(name: Name, rings: list[list[Program]]) -> bool:
    """True if a level is how names of the model begin that have `::` themselves, such as `aten` of `aten::add`."""
    begin = re.compile(rf"(?:^|[/.]){re.escape(name.text)}::")
    names = (known for ring in rings for program in ring for known in all_names(program.graph))
    return name.kind is NameKind.PLAIN and any(begin.search(known) for known in names)


# --- names ----------------------------------------------------------------------------------------------------------


def _rules(name: Name, address: Address) -> list[Rule]:
    """Return the readings of a name, the strictest first."""
    text = name.text
    match name.kind:
        case NameKind.ID:
            return [_layer_rule(lambda layer: str(layer.id) == text.lstrip("0").rjust(1, "0"))]
        case NameKind.GLOB | NameKind.REGEX:
            try:
                matches = (glob if name.kind is NameKind.GLOB else regex)(text).found_in
            except PatternError as error:
                raise AddressError(f"the pattern is not right: {error}", text, 0) from None
            exact = [_exact(text)] if name.kind is NameKind.GLOB else []
            return [*exact, _either(matches)]
    ends = (f"/{text}", f".{text}")
    written = set() if address.port is None else {f"{text}:{address.port}"}  # a tensor name such as `Identity:0`
    ending = _either(lambda candidate: candidate.endswith(ends), _last_part(text))
    return [_exact(text), _tensor_rule({text} | written), ending, _shown(text)]


def _layer_rule(fits: Callable[[Layer], bool]) -> Rule:
    return lambda program: ((layer, None) for layer in program.graph.layers if fits(layer))


def _shown(text: str) -> Rule:
    return lambda program: ((layer, None) for layer in called(program.graph, text))


def _exact(text: str) -> Rule:
    return lambda program: ((layer, None) for layer in _having(program.graph).get(text, ()) if layer.name == text)


def _tensor_rule(texts: set[str]) -> Rule:
    def rule(program: Program) -> Iterator[tuple[Layer, int]]:
        having = {layer.id: layer for text in texts for layer in _having(program.graph).get(text, ())}
        for layer in having.values() if len(texts) == 1 else program.graph.layers:
            for index, port in enumerate(layer.outputs):
                if not texts.isdisjoint(port.names):
                    yield layer, index

    return rule


def _either(matches: Callable[[str], bool], last: str | None = None) -> Rule:
    """Return the layer's name, or else the names of its outputs; `last` is the last part of those that match."""

    def rule(program: Program) -> Iterator[tuple[Layer, int | None]]:
        for layer in program.graph.layers if last is None else _having(program.graph).get(last, ()):
            if matches(layer.name):
                yield layer, None
                continue
            for index, port in enumerate(layer.outputs):
                if any(matches(name) for name in port.names):
                    yield layer, index

    return rule


def _is_in_loop(program: Program) -> bool:
    return any(layer.is_loop for layer in program.path)


def _search(rings: list[list[Program]], rules: list[Rule]) -> list[_Hit]:
    """Return what the first rule that fits anywhere finds in the nearest ring."""
    for rule in rules:
        for ring in rings:
            hits = [_Hit(program, layer, output) for program in ring for layer, output in rule(program)]
            if hits:
                return hits
    return []


# --- targets --------------------------------------------------------------------------------------------------------


def _next_values(hits: Sequence[_Hit], name: Name) -> list[_Hit]:
    """Return the Results that become these carried values in the next iteration."""
    found = []
    for hit in hits:
        results = {edge.to_layer: edge.from_layer for edge in _back_edges(hit.program)}
        if hit.layer.id in results:
            found.append(_Hit(hit.program, hit.program.graph.by_id[results[hit.layer.id]]))
    if found:
        return found
    programs = {id(hit.program): hit.program for hit in hits}.values()
    carried = [short_names_of(one.graph)[edge.to_layer] for one in programs for edge in _back_edges(one)]
    known = ", ".join(f"{excerpt(str(exact_name(text)))}'" for text in carried[:_MOST_LISTED])
    text = f"{excerpt(str(name))} names what an iteration carries to the next one, and {hits[0].layer} is not carried"
    raise ResolutionError(f"{text}; carried are {known}" if known else f"{text}; nothing is")


def _back_edges(program: Program) -> tuple[BackEdge, ...]:
    return program.path[-1].bodies[0].back_edges if program.path and program.path[-1].is_loop else ()


def _target(hit: _Hit, address: Address, asked: list[tuple[Layer, Iterations]]) -> Target:
    program, named = hit.program, hit.layer
    layer, output = named, hit.output
    if named.type == "Result":
        source = program.graph.sources[named.id][0]
        assert source is not None, "the reader has seen to it"
        layer, output = program.graph.by_id[source.layer], source.output
        if address.port not in (None, 0):
            raise ResolutionError(f"the Result '{excerpt(named.name)}' has one value, there is no port {address.port}")
    elif output is None:
        output = address.port or 0
    elif address.port not in (None, output) and named.outputs[output].names:
        text = f"'{excerpt(str(address.operation))}' is output {output} of {named}"
        raise ResolutionError(f"{text}, not output {address.port}; leave ':{address.port}' out")
    if (layer.id, output) not in program.slots:
        count = len(layer.outputs)
        has = "no output" if not count else "output 0 only" if count == 1 else f"outputs 0 to {count - 1}"
        raise ResolutionError(f"{layer} has {has}; there is no port {output}")
    return Target(
        program, layer, output, program.slots[layer.id, output], named, _asked_of(program, address, asked, named)
    )


def _asked_of(
    program: Program, address: Address, asked: list[tuple[Layer, Iterations]], named: Layer
) -> tuple[Iterations | None, ...]:
    """Return what the address says about the iterations of each layer of the program's path."""
    levels = {id(layer): iterations for layer, iterations in asked}
    found = [levels.get(id(layer)) for layer in program.path]
    if address.iterations is None:
        return tuple(found)
    loops = [place for place, layer in enumerate(program.path) if layer.is_loop]
    if not loops:
        raise ResolutionError(f"{named} is in no loop, so it has no iteration {address.iterations}")
    if found[loops[-1]] is not None:
        loop = excerpt(program.path[loops[-1]].name)
        text = f"'{excerpt(str(address))}' names an iteration of '{loop}' twice"
        raise ResolutionError(f"{text}: once at the level, once at the operation")
    found[loops[-1]] = address.iterations
    return tuple(found)


def _no_value(layer: Layer) -> str:
    if not layer.outputs:
        return f"{layer} has no output, so it has no value"
    return f"{layer} is never computed: no Result needs it"


def _unknown(name: Name, address: Address, rings: list[list[Program]]) -> str:
    text = excerpt(str(name))
    if name.kind is NameKind.ID:
        return f"there is no layer with the id {name.text}"
    if name.kind in (NameKind.GLOB, NameKind.REGEX):
        return f"nothing has a name that fits {text}"
    inside = f" in '{excerpt('::'.join(map(str, address.levels)))}'" if address.levels else ""
    programs = [program for ring in rings for program in ring]
    names = [
        known for program in programs for known in (*short_names_of(program.graph).values(), *all_names(program.graph))
    ]
    return f"there is nothing called '{text}'{inside}; {_nearest(name.text, names)}"


def _nearest(text: str, names: list[str]) -> str:
    """Return a sentence with the names that look like the text, or with all names if they are few."""
    whole = [name for name in dict.fromkeys(names) if name and len(name) <= 200][:_MOST_COMPARED]
    known = list(dict.fromkeys([*whole, *(re.split(r"[/.]", name)[-1] or name for name in whole)]))
    import difflib

    near = difflib.get_close_matches(text[:200], known, n=3, cutoff=0.5)
    having = [name for name in known if text.lower() in name.lower() and name not in near]
    having.sort(key=lambda name: not name.lower().startswith(text.lower()))
    near += having[: 3 - len(near)]
    if near:
        return near_sentence([excerpt(str(exact_name(name))) for name in near])
    if 0 < len(whole) <= _MOST_LISTED:
        return "there are " + ", ".join(excerpt(str(exact_name(name))) for name in whole)
    return f"none of {len(whole)} names looks like it" if whole else "there are none"


def _listed(texts: list[str], count: int) -> str:
    shown = [f"  {text}" for text in texts[:_MOST_LISTED]]
    more = count - len(shown)
    return "\n".join([*shown, f"  and {more} more"] if more else shown)
