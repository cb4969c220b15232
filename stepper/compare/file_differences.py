"""Differences in the files of two aligned models: operations, attributes, constants, connections.

Each `FileDifference` says in words what is where the reference has something else, and which of our layers it touches
first; `verdict.py` joins that with where the values first differ.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from enum import StrEnum
from typing import Any

import numpy as np
from msgspec.structs import replace

from stepper.compare.align import COMMUTATIVE, Alignment, ConstantValues, GraphPair, described, same_numbers
from stepper.compare.observations import BranchMismatch, Finding, LoopMismatch, ValueMismatch, named, numbered, quoted
from stepper.debug.scopes import GraphPath, PathStep
from stepper.engine.loops import RoleError, Roles, control_inputs, is_backward, roles_of
from stepper.ir.model import (
    EXECUTION_CONDITION,
    NO_LAYER,
    Body,
    Graph,
    InputMapping,
    Layer,
    Model,
    OutputMapping,
    Slicing,
    Source,
)
from stepper.records import Record
from stepper.tensors.number_text import number_text


class FileDifferenceKind(StrEnum):
    """Kind of a difference in the files."""

    OPERATION = "another operation"
    ATTRIBUTE = "another attribute"
    CONSTANT = "another constant"
    CONNECTION = "another connection"
    INSERTED = "inserted"
    SKIPPED = "skipped"
    PORT_MAP = "port map"
    CROSSED = "crossed"
    BACK_EDGE = "back edge"


Touched = tuple[int, int]
"""A layer of ours: `id()` of its graph, and its own id."""


class FileDifference(Record, eq=False):
    """Describe one difference between two files.

    `text` is a whole sentence without its full stop. `layer` is the layer of ours to blame, in the graph that `path`
    leads to (a Parameter or Result for an entry of the port map of the last layer of `path`). `touches` are the layers
    whose values the difference changes first; `related` are further layers that have a part in it. `entry` says which
    part of a port map is meant, if any; `line` is a line of our file.
    """

    kind: FileDifferenceKind
    path: tuple[Layer, ...]
    layer: Layer
    text: str
    touches: frozenset[Touched]
    related: tuple[Layer, ...] = ()
    line: int = 0
    entry: str = ""


class GraphDifferences:
    """Compares two graphs that stand for each other, but for their port maps."""

    def __init__(self, pair: GraphPair, ours: ConstantValues, theirs: ConstantValues) -> None:
        self.pair, self.mine, self.others = pair, ours, theirs

    def all(self) -> Iterator[FileDifference]:
        """Yield the differences layer by layer, in the order of our file."""
        for layer in self.pair.ours.layers:
            partner = self.pair.partner(layer.id)
            if partner is None or layer.type in ("Parameter", "Constant"):
                continue
            if layer.type != partner.type:
                yield self._other_type(layer, partner)
            else:
                yield from self._attributes(layer, partner)
            if not layer.bodies:  # the inputs of these are compared with their port maps
                yield from self._inputs(layer, partner)

    def _make(self, kind: FileDifferenceKind, layer: Layer, text: str, related: Sequence[Layer] = ()) -> FileDifference:
        touches = frozenset({(id(self.pair.ours), layer.id)})
        return FileDifference(kind, self.pair.path, layer, text, touches, tuple(related), line=layer.line)

    def _other_type(self, layer: Layer, partner: Layer) -> FileDifference:
        hint = " (the comparison is inverted)" if frozenset({layer.type, partner.type}) in _INVERTED else ""
        text = f"{numbered(layer)} is {article(layer.type)} where the reference has {article(partner.type)}{hint}"
        return self._make(FileDifferenceKind.OPERATION, layer, text)

    def _attributes(self, layer: Layer, partner: Layer) -> Iterator[FileDifference]:
        for name in sorted({*layer.attributes, *partner.attributes} - _NOT_COMPARED):
            ours, theirs = layer.attributes.get(name), partner.attributes.get(name)
            if _plain(ours) != _plain(theirs):
                written = f"{quoted(ours)} instead of {quoted(theirs)} in the reference"
                yield self._make(
                    FileDifferenceKind.ATTRIBUTE, layer, f"{numbered(layer)} has the attribute {name} {written}"
                )

    # --- inputs --------------------------------------------------------------------------------------------------

    def _inputs(self, layer: Layer, partner: Layer) -> Iterator[FileDifference]:
        ours, theirs = self.pair.ours.sources[layer.id], self.pair.theirs.sources[partner.id]
        if layer.type != partner.type and len(ours) != len(theirs):
            ours, theirs = ours[:1], theirs[:1]  # what the operation itself brings is told with its type
        if len(ours) != len(theirs):
            text = f"{numbered(layer)} has {len(ours)} inputs, the reference {len(theirs)}"
            yield self._make(FileDifferenceKind.CONNECTION, layer, text)
        if layer.type in COMMUTATIVE and len(ours) == len(theirs) == 2 and self._are_exchanged(ours, theirs, 0, 1):
            return
        exchanged = self._exchanged(ours, theirs)
        if exchanged is not None:
            text = f"{numbered(layer)} has its inputs {exchanged} exchanged (swapped) against the reference"
            yield self._make(FileDifferenceKind.CROSSED, layer, text)
            return
        for port, (source, other) in enumerate(zip(ours, theirs, strict=False)):
            found = self.input(layer, f"input {port} of {numbered(layer)}", source, other)
            if found is not None:
                yield found

    def _values(self, source: Source, other: Source) -> tuple[Any, Any] | None:
        """Return the values of two inputs that are both constant; else None."""
        ours, theirs = self.mine.value(self.pair.ours, source), self.others.value(self.pair.theirs, other)
        return None if ours is None or theirs is None else (ours, theirs)

    def agrees(self, source: Source | None, other: Source | None) -> bool:
        """True if two inputs are fed by the same: the same constant, or layers that stand for each other."""
        if source is None or other is None:
            return source is other
        if values := self._values(source, other):
            return same_numbers(*values)
        # One may follow from constants where the other does not: what makes it so is told further up.
        return self.pair.layers.get(source.layer) == other.layer and source.output == other.output

    def _are_exchanged(
        self, ours: Sequence[Source | None], theirs: Sequence[Source | None], first: int, second: int
    ) -> bool:
        return self.agrees(ours[first], theirs[second]) and self.agrees(ours[second], theirs[first])

    def _exchanged(self, ours: Sequence[Source | None], theirs: Sequence[Source | None]) -> str | None:
        if len(ours) != len(theirs):
            return None
        wrong = [port for port in range(len(ours)) if not self.agrees(ours[port], theirs[port])]
        is_pair = len(wrong) == 2 and self._are_exchanged(ours, theirs, *wrong)
        return f"{wrong[0]} and {wrong[1]}" if is_pair else None

    def input(self, layer: Layer, what: str, source: Source | None, other: Source | None) -> FileDifference | None:
        """Return how an input of a layer is fed differently, None where it is not; `what` names the input."""
        if self.agrees(source, other):
            return None
        if source is None or other is None:
            which = "is not connected" if source is None else "is connected, in the reference it is not"
            return self._make(FileDifferenceKind.CONNECTION, layer, f"{what} {which}")
        if values := self._values(source, other):
            return self._constant(layer, source, other, *values)
        return self._connection(layer, what, source, other)

    def _constant(self, layer: Layer, source: Source, other: Source, ours: Any, theirs: Any) -> FileDifference:
        constants = self._constants_behind(source)
        fallback = constants[0] if constants else self.pair.ours.by_id[source.layer]
        guilty = next((one for one in constants if self._changed(one)), fallback)
        text = described(np.asarray(ours), np.asarray(theirs), consumer=layer)
        stored = self._replacement(source, other, constants)
        copied = self._content_of_another(guilty, ours, theirs)
        related = [guilty, *(one for one in constants if one is not guilty)]
        return self._make(FileDifferenceKind.CONSTANT, layer, f"{numbered(guilty)} {stored}{text}{copied}", related)

    def _replacement(self, source: Source, other: Source, constants: Sequence[Layer]) -> str:
        """Return how a constant of ours came to stand for one of the reference's that has another name or type."""
        mine, theirs = self.pair.ours.by_id[source.layer], self.pair.theirs.by_id[other.layer]
        declared = theirs.outputs[other.output].element_type
        narrow = [one for one in constants if one.outputs[0].element_type not in (None, declared)]
        if mine.type != "Constant" and theirs.type == "Constant" and narrow and declared is not None:
            return (
                f"is stored as {narrow[0].outputs[0].element_type} and converted by {named(mine)}, "
                f"where the reference has {declared} ({named(theirs)}); it "
            )
        return "" if self.pair.partner(source.layer) is theirs else f"stands for {named(theirs)} of the reference and "

    def _constants_behind(self, source: Source) -> list[Layer]:
        """Return the Constants from which a constant value follows, nearest first."""
        found: list[Layer] = []
        waiting = [source.layer]
        while waiting and len(found) < 8:
            layer = self.pair.ours.by_id[waiting.pop(0)]
            if layer.type == "Constant":
                found.append(layer)
            waiting += [one.layer for one in self.pair.ours.sources[layer.id] if one is not None]
        return found

    def _changed(self, constant: Layer) -> bool:
        partner = self.pair.partner(constant.id)
        if partner is None:
            return True
        ours, theirs = self.mine.of_layer(constant), self.others.of_layer(partner)
        return ours is None or theirs is None or not same_numbers(ours, theirs)

    def _content_of_another(self, constant: Layer, ours: Any, theirs: Any) -> str:
        """Return that a changed constant holds what another one of the reference has: an offset that went astray."""
        if np.asarray(ours).size < 2 or np.asarray(ours).shape != np.asarray(theirs).shape:
            return ""
        for other in self.pair.theirs.layers:
            if other.type == "Constant" and other.name != constant.name:
                value = self.others.of_layer(other)
                if value is not None and same_numbers(value, ours):
                    return f"; it holds the numbers of Const {other.name!r} (the same bytes of the .bin)"
        return ""

    def _connection(self, layer: Layer, what: str, source: Source, other: Source) -> FileDifference:
        pair = self.pair
        mine, theirs = pair.ours.by_id[source.layer], pair.theirs.by_id[other.layer]
        old = self._old_value(source, other)
        reverse = pair.reverse.get(other.layer)
        inserted = [] if old else _way(pair.ours, source.layer, reverse, lambda key: key not in pair.layers)
        if inserted:
            names = ", ".join(self._described(one) for one in inserted)
            verb = "is inserted" if len(inserted) == 1 else "are inserted"
            origin = named(pair.ours.by_id[pair.reverse[other.layer]])
            text = f"{names} {verb} between {origin} and {what}, where the reference has nothing"
            return self._make(FileDifferenceKind.INSERTED, layer, text, inserted)
        partner = pair.layers.get(source.layer)
        skipped = [] if old else _way(pair.theirs, other.layer, partner, lambda _key: True, longest=3)
        if skipped:
            names = ", ".join(named(one) for one in skipped)
            verb = "is skipped (left out)" if len(skipped) == 1 else "are skipped (left out)"
            text = f"{names} {verb}: {what} is {named(mine)} directly, where the reference has {named(theirs)}"
            known = [one for one in (pair.origin(skip.id) for skip in skipped) if one is not None]
            return self._make(FileDifferenceKind.SKIPPED, layer, text, [*known, mine])
        where = "" if len(mine.outputs) < 2 else f" (output {source.output})"
        instead = "" if len(theirs.outputs) < 2 else f" (output {other.output})"
        text = f"{what} is {named(mine)}{where} instead of {named(theirs)}{instead}"
        origin_layer = pair.origin(other.layer)
        related = [mine] if origin_layer is None else [mine, origin_layer]
        return self._make(FileDifferenceKind.CONNECTION, layer, text + old, related)

    def _described(self, layer: Layer) -> str:
        """Return an inserted layer with what it does, where that is short."""
        numbers = [f"{name}={layer.attributes[name]}" for name in sorted(layer.attributes) if name in _TELLING]
        for source in self.pair.ours.sources[layer.id]:
            value = self.mine.value(self.pair.ours, source)
            if value is not None and np.asarray(value).size == 1:
                numbers.append(f"with {number_text(np.asarray(value).reshape(-1)[0], 7)}")
        return named(layer) + (f" ({', '.join(numbers)})" if numbers else "")

    def _old_value(self, source: Source, other: Source) -> str:
        """Return that ours is a carried Parameter where the reference takes its new value, or the reverse."""
        pair = self.pair
        if not pair.path or not pair.path[-1].is_loop:
            return ""
        body = pair.path[-1].bodies[0]
        for edge in body.back_edges:
            result = pair.ours.sources.get(edge.from_layer, (None,))[0]
            updated = None if result is None else pair.layers.get(result.layer)
            if edge.to_layer == source.layer and updated == other.layer:
                return ": the old value of the previous iteration, before the update (shifted by one)"
            if result is not None and source.layer == result.layer and pair.layers.get(edge.to_layer) == other.layer:
                return (
                    ": the new value, after the update, instead of the value of the previous iteration (shifted by one)"
                )
        return ""


def _way(graph: Graph, start: int, goal: int | None, through: Any, longest: int = 12) -> list[Layer]:
    """Return the shortest way against the edges from `start` to `goal`, without the goal; empty without one."""
    if goal is None or not through(start):
        return []
    waiting, seen = [[start]], {start}
    while waiting:
        way = waiting.pop(0)
        for source in graph.sources[way[-1]]:
            if source is None or source.layer in seen:
                continue
            if source.layer == goal:
                return [graph.by_id[key] for key in way]
            seen.add(source.layer)
            if len(way) < longest and through(source.layer):
                waiting.append([*way, source.layer])
    return []


_INVERTED = frozenset(
    frozenset(pair)
    for pair in (
        ("Less", "Greater"),
        ("Less", "GreaterEqual"),
        ("LessEqual", "Greater"),
        ("LessEqual", "GreaterEqual"),
        ("Equal", "NotEqual"),
    )
)
_NOT_COMPARED = frozenset({"offset", "size", "shape", "element_type"})
_TELLING = frozenset({"min", "max", "axis", "destination_type", "alpha", "beta", "mode"})


def result_text(graph: Graph, result: int) -> str:
    """Return a Result with the layer that it reads."""
    layer, maker = graph.by_id[result], graph.layer_of(graph.source(result))
    return named(layer) if maker is NO_LAYER else f"{named(layer)} ({named(maker)})"


def article(type_name: str) -> str:
    """Return the type of an operation with its article."""
    return f"an {type_name}" if type_name[:1] in "AEIO" or type_name.startswith(("LSTM", "NMS")) else f"a {type_name}"


def _plain(text: str | None) -> Any:
    """Return an attribute in one way of writing: numbers as numbers, lists without blanks, booleans alike."""
    if text is None:
        return None
    parts = []
    for part in text.replace(" ", "").lower().split(","):
        word = {"true": "1", "false": "0"}.get(part, part)
        try:
            parts.append(float(word))
        except ValueError:
            parts.append(word)  # type: ignore[arg-type]
    return tuple(parts)


# --- Differences in the port maps, back edges and control inputs of two loops (or branches) that are aligned ---------


_WORDS = {"sliced": "the sliced input", "merged": "the initial value", "invariant": "the invariant input"}


def file_differences(alignment: Alignment) -> list[FileDifference]:
    """Return everything that differs in the files of two aligned models, graph by graph."""
    found: list[FileDifference] = []
    for pair in alignment.pairs:
        around = GraphDifferences(pair, *alignment.constants)
        found += around.all()
        for layer in pair.ours.layers:
            partner = pair.partner(layer.id) if layer.bodies else None
            if partner is not None and len(partner.bodies) == len(layer.bodies):
                for body, other in zip(layer.bodies, partner.bodies, strict=True):
                    inner = alignment.pair(body.graph)
                    if inner is not None:
                        found += PortMaps(around, layer, partner, body, other, inner).all()
                if layer.type == "If":
                    ends = pair.ours.source(layer.id), pair.theirs.source(partner.id)
                    found += filter(None, [around.input(layer, f"the condition of {numbered(layer)}", *ends)])
    return found


class PortMaps:
    """Compares the port map of one body with the port map of the reference."""

    def __init__(
        self, around: GraphDifferences, layer: Layer, partner: Layer, body: Body, other: Body, inner: GraphPair
    ) -> None:
        self.around, self.layer, self.partner = around, layer, partner
        self.body, self.other, self.inner = body, other, inner
        self.path = (*around.pair.path, layer)
        self.loop_key = (id(around.pair.ours), layer.id)

    def all(self) -> Iterator[FileDifference]:
        """Yield file_differences: control inputs first, then Parameters, back edges, Results."""
        yield from self._control()
        yield from self._parameters()
        yield from self._back_edges()
        yield from self._results()

    def _make(
        self, inner: Layer, text: str, line: int, entry: str, *, loop: bool = False, body: bool = True
    ) -> FileDifference:
        touches = {(id(self.body.graph), inner.id)} if body else set()
        if loop:
            touches.add(self.loop_key)
        kind = FileDifferenceKind.BACK_EDGE if entry == "back edge" else FileDifferenceKind.PORT_MAP
        return FileDifference(kind, self.path, inner, text, frozenset(touches), line=line, entry=entry)

    # --- inputs --------------------------------------------------------------------------------------------------

    def _control(self) -> Iterator[FileDifference]:
        """Yield file_differences in trip count and execution condition of a Loop."""
        if self.layer.type != "Loop" or self.partner.type != "Loop":
            return
        ours = control_inputs(self.layer, self.body, self.around.pair.ours)
        theirs = control_inputs(self.partner, self.other, self.around.pair.theirs)
        for what, mine, other in zip(("trip count", "execution condition"), ours, theirs, strict=True):
            sentence = f"the {what} of {numbered(self.layer)}"
            found = self.around.input(self.layer, sentence, *self._sources(mine, other))
            if found is not None:
                kind = "initial execution condition" if what != "trip count" else what
                text = f"{found.text} ({kind} of {named(self.layer)})"
                yield replace(found, text=text, touches=frozenset({self.loop_key}), entry=what)

    def _sources(self, mine: int | None, other: int | None) -> tuple[Source | None, Source | None]:
        """Return what feeds an input of our layer, and one of the reference's."""
        pair = self.around.pair
        return pair.ours.source(self.layer.id, mine), pair.theirs.source(self.partner.id, other)

    def _agrees(self, mine: int | None, other: int | None) -> bool:
        return self.around.agrees(*self._sources(mine, other))

    def _partners(self) -> Iterator[tuple[Layer, Layer]]:
        """Yield the Parameters of the body that have a partner, with that."""
        for parameter in self.body.graph.parameters:
            if other := self.inner.partner(parameter.id):
                yield parameter, other

    def _parameters(self) -> Iterator[FileDifference]:
        mine, theirs = _entries(self.layer, self.body), _entries(self.partner, self.other)
        wrong: dict[int, tuple[InputMapping, InputMapping]] = {}
        for parameter, other in self._partners():
            entry, expected = mine.get(parameter.id), theirs.get(other.id)
            if entry is None or expected is None:
                yield from self._lost(parameter, entry, expected)
                continue
            text = _slicing_text(entry.slicing, expected.slicing)
            if text:
                sentence = f"the port map's input entry of {numbered(parameter)} has {text}"
                yield self._make(parameter, sentence, entry.line, "input", loop=True)
            if entry.purpose != expected.purpose or (entry.input is None) != (expected.input is None):
                yield from self._lost(parameter, entry, expected)
            elif not self._agrees(entry.input, expected.input):
                wrong[parameter.id] = (entry, expected)
        yield from self._fed_otherwise(wrong)

    def _lost(
        self, parameter: Layer, entry: InputMapping | None, expected: InputMapping | None
    ) -> Iterator[FileDifference]:
        """Yield a Parameter that only one side feeds, or that gets the iteration number on one side alone."""
        if entry is None and expected is None:
            return
        one = expected if entry is None else entry
        assert one is not None
        what = "the iteration number (purpose current_iteration)" if one.purpose else "an input"
        if entry is not None and expected is not None:
            text = (
                f"{numbered(parameter)} has the purpose {entry.purpose!r} in the port map, in the reference "
                f"{expected.purpose!r}"
            )
        elif entry is None:
            text = f"{numbered(parameter)} has no port map entry (is not connected), in the reference it gets {what}"
        else:
            text = f"{numbered(parameter)} gets {what} by the port map, in the reference it has no entry"
        line = entry.line if entry is not None else self.body.line
        yield self._make(parameter, text, line, "input", loop=True)

    def _fed_otherwise(self, wrong: dict[int, tuple[InputMapping, InputMapping]]) -> Iterator[FileDifference]:
        """Yield Parameters that get another outer value; two that have got each other's are one difference."""
        done: set[int] = set()
        for key, (entry, _expected) in wrong.items():
            if key in done:
                continue
            crossed = next((one for one in wrong if one not in done | {key} and self._crossed(wrong, key, one)), None)
            parameter = self.body.graph.by_id[key]
            if crossed is not None:
                done |= {key, crossed}
                other = self.body.graph.by_id[crossed]
                text = (
                    f"the inputs of {numbered(parameter)} and {numbered(other)} are crossed (exchanged) in the port "
                    "map against the reference: each gets the other's"
                )
                found = self._make(parameter, text, entry.line, "input")
                both = found.touches | {(id(self.body.graph), other.id)}
                yield replace(found, kind=FileDifferenceKind.CROSSED, touches=both, related=(other,))
                continue
            yield from self._fed_by_another(parameter, *wrong[key])

    def _crossed(self, wrong: dict[int, tuple[InputMapping, InputMapping]], first: int, second: int) -> bool:
        (a, expected_a), (b, expected_b) = wrong[first], wrong[second]
        return self._agrees(a.input, expected_b.input) and self._agrees(b.input, expected_a.input)

    def _fed_by_another(
        self, parameter: Layer, entry: InputMapping, expected: InputMapping
    ) -> Iterator[FileDifference]:
        roles = _roles(self.layer)
        role = "the input" if roles is None else _WORDS.get(str(roles.role_of(entry)), "the input")
        what = f"{role} of {numbered(parameter)}"
        found = self.around.input(self.layer, what, *self._sources(entry.input, expected.input))
        if found is None:
            return
        text = found.text if found.text.startswith(what) else f"{what}: {found.text}"
        touches = frozenset({(id(self.body.graph), parameter.id)})
        if not self.layer.is_loop:  # what a branch gets is what the If is connected with
            yield replace(found, text=text, touches=touches, related=(*found.related, parameter), line=entry.line)
            return
        yield replace(
            found, path=self.path, layer=parameter, text=text, touches=touches, line=entry.line, entry="input"
        )

    # --- back edges ----------------------------------------------------------------------------------------------

    def _back_edges(self) -> Iterator[FileDifference]:
        if not (self.layer.is_loop and self.partner.is_loop):
            return
        mine, theirs = _merged_from(self.layer), _merged_from(self.partner)
        for parameter, other in self._partners():
            result, expected = mine.get(parameter.id), theirs.get(other.id)
            text = self._back_edge_text(parameter, result, expected)
            if text:
                line = next(
                    (edge.line for edge in self.body.back_edges if edge.to_layer == parameter.id), self.body.line
                )
                yield self._make(parameter, text, line, "back edge")

    def _back_edge_text(self, parameter: Layer, result: int | None, expected: int | None) -> str:
        if expected is None:
            text = f"{numbered(parameter)} has a back edge (it is carried), in the reference it has none"
            return text if result is not None else ""
        wanted, source = self.inner.theirs.by_id[expected], result_text(self.inner.theirs, expected)
        if result is None:
            elsewhere = [
                edge.to_layer for edge in self.body.back_edges if self.inner.layers.get(edge.from_layer) == expected
            ]
            goes = ""
            if elsewhere and elsewhere[0] in self.body.graph.by_id:
                goes = f"; the back edge from {named(wanted)} goes to {self._target(elsewhere[0])}"
            return (
                f"{numbered(parameter)} has no back edge where the reference has one from {source}: it is never "
                f"updated and keeps its initial value{goes}"
            )
        if self.inner.layers.get(result) != expected and not self._same_value(result, expected):
            mine = self.body.graph.by_id[result]
            return f"the back edge to {numbered(parameter)} comes from {numbered(mine)}, in the reference from {source}"
        return ""

    def _target(self, key: int) -> str:
        """Return where a back edge ends instead: the Parameter, what it is, and whether another one ends there, too."""
        roles = _roles(self.layer)
        entry = next((one for one in self.body.inputs if one.parameter == key), None)
        role = "" if roles is None or entry is None else f"the {roles.role_of(entry)} "
        several = sum(edge.to_layer == key for edge in self.body.back_edges)
        also = f", where {several} back edges end (two or more: the second is ignored)" if several > 1 else ""
        return f"{role}{numbered(self.body.graph.by_id[key])}{also}"

    def _same_value(self, result: int, expected: int) -> bool:
        """True if two Results are fed by layers that stand for each other."""
        mine, theirs = self.inner.ours.source(result), self.inner.theirs.source(expected)
        if mine is None or theirs is None:
            return mine is theirs
        return self.inner.layers.get(mine.layer) == theirs.layer and mine.output == theirs.output

    # --- outputs -------------------------------------------------------------------------------------------------

    def _results(self) -> Iterator[FileDifference]:
        for result in self.body.graph.results:
            other = self.inner.partner(result.id)
            if other is None:
                continue
            entries = [one for one in self.body.outputs if one.result == result.id]
            expected = [one for one in self.other.outputs if one.result == other.id]
            has, should = (any(one.purpose == EXECUTION_CONDITION for one in group) for group in (entries, expected))
            if has != should:
                here, there = ("is", "is not") if has else ("is not marked as", "is")
                text = f"{numbered(result)} {here} the execution condition in the port map, in the reference it {there}"
                yield self._make(result, text, self.body.line, "output", loop=True)
            yield from self._outputs(result, entries, expected)

    def _outputs(
        self, result: Layer, entries: list[OutputMapping], expected: list[OutputMapping]
    ) -> Iterator[FileDifference]:
        mine = {one.output: one for one in entries if one.output is not None}
        theirs = {one.output: one for one in expected if one.output is not None}
        for output, entry in mine.items():
            if output in theirs:
                text = _slicing_text(entry.slicing, theirs[output].slicing)
                if text:
                    sentence = f"the port map's output entry of {numbered(result)} has {text}"
                    yield self._make(result, sentence, entry.line, "output", loop=True, body=False)
        if set(mine) != set(theirs):
            text = (
                f"{numbered(result)} is output {_list(mine)} of {named(self.layer)} by the port map, in the reference "
                f"{_list(theirs)}"
            )
            yield self._make(result, text, self.body.line, "output", loop=True, body=False)


def _list(outputs: dict[int, OutputMapping]) -> str:
    return " and ".join(map(str, sorted(outputs))) or "none"


def _entries(layer: Layer, body: Body) -> dict[int, InputMapping]:
    """Return the entry that counts for each Parameter."""
    found: dict[int, InputMapping] = {}
    for entry in body.inputs:
        if entry.input is not None or entry.purpose:
            found.setdefault(entry.parameter, entry)
    if layer.type == "Loop":
        for entry in body.inputs:
            if entry.purpose == "current_iteration":
                found[entry.parameter] = entry
    return found


def _roles(layer: Layer) -> Roles | None:
    try:
        return roles_of(layer) if layer.is_loop else None
    except RoleError:
        return None


def _merged_from(layer: Layer) -> dict[int, int]:
    roles = _roles(layer)
    return {} if roles is None else roles.merged_from


def _slicing_text(ours: Slicing | None, theirs: Slicing | None) -> str:
    """Return how an entry cuts or joins otherwise, in words; empty where it does not."""
    if ours == theirs:
        return ""
    if ours is None or theirs is None:
        return "no axis, in the reference it is cut along one" if ours is None else "an axis, in the reference none"
    parts = []
    for name in ("axis", "start", "end", "stride", "part_size"):
        mine, other = getattr(ours, name), getattr(theirs, name)
        if mine != other and not (name == "part_size" and None in (mine, other)):
            parts.append(f"{name} {mine} instead of {other}")
    if not parts:
        return ""
    reverse = " (the order is reversed)" if is_backward(ours) != is_backward(theirs) else ""
    return f"{', '.join(parts)} in the reference{reverse}"


# ---------------------------------------------------------------------------------------------------------------------
# From where values first differ back to what differs in the files: the nearest cause against the flow of values


_FARTHEST = 4000
"""Layers that are looked at before the search is given up."""


class FileCauses:
    """Answers for one model of ours, given all differences of the files."""

    def __init__(self, model: Model, differences: Iterable[FileDifference]) -> None:
        self.model = model
        self.differences = tuple(differences)
        self._touched: dict[Touched, list[FileDifference]] = {}
        for difference in self.differences:
            for key in difference.touches:
                self._touched.setdefault(key, []).append(difference)
        self._around: dict[int, tuple[Graph, Layer, Body]] = {}
        for _path, graph in model.graphs():
            for layer in graph.layers:
                for body in layer.bodies:
                    self._around[id(body.graph)] = (graph, layer, body)

    def of(self, finding: Finding) -> tuple[FileDifference, ...]:
        """Return what explains a finding, nearest first; nothing where nothing upstream differs in the files."""
        graph = graph_at(self.model, finding.path)
        if finding.layer is None:
            return self.of_frame(finding.path)
        start = [(graph, finding.layer.id)]
        if isinstance(finding, LoopMismatch | BranchMismatch):
            start += list(self._what_ends(graph, finding.layer))
        elif isinstance(finding, ValueMismatch) and finding.layer.bodies:
            start += [
                (body.graph, entry.result)
                for body in finding.layer.bodies
                for entry in body.outputs
                if entry.output == finding.output
            ]
        return self._search(start)

    def of_frame(self, path: GraphPath) -> tuple[FileDifference, ...]:
        """Return what explains that a loop itself could not go on: its port map, then what feeds it."""
        if not path:
            return self.differences[:1]
        graph, layer = graph_at(self.model, path[:-1]), path[-1].layer
        return self._search([(graph, layer.id), *self._what_ends(graph, layer)])

    def _search(self, start: list[tuple[Graph, int]]) -> tuple[FileDifference, ...]:
        """Search breadth first, against the flow of values; return everything at the smallest distance."""
        waiting, seen = list(start), {(id(graph), key) for graph, key in start}
        while waiting and len(seen) < _FARTHEST:
            found = [one for graph, key in waiting for one in self._touched.get((id(graph), key), ())]
            if found:
                return tuple(dict.fromkeys(found))
            following: list[tuple[Graph, int]] = []
            for graph, key in waiting:
                for upper, source in self._sources(graph, key):
                    if (id(upper), source) not in seen:
                        seen.add((id(upper), source))
                        following.append((upper, source))
            waiting = following
        return ()

    def _sources(self, graph: Graph, key: int) -> Iterator[tuple[Graph, int]]:
        """Yield where the value of a layer comes from, through port maps, in and out of bodies."""
        layer = graph.by_id[key]
        for source in graph.sources[key]:
            if source is not None:
                yield graph, source.layer
        for body in layer.bodies:
            for result in body.graph.results:
                yield body.graph, result.id
        if layer.type == "Parameter" and id(graph) in self._around:
            outer, loop, around = self._around[id(graph)]
            for edge in around.back_edges:
                if edge.to_layer == key:
                    yield graph, edge.from_layer
            for entry in around.inputs:
                if entry.parameter == key and (fed := outer.source(loop.id, entry.input)) is not None:
                    yield outer, fed.layer

    def _what_ends(self, graph: Graph, layer: Layer) -> Iterator[tuple[Graph, int]]:
        """Yield the trip count, condition and sliced inputs of a loop; the condition of an If."""
        body = layer.bodies[0]
        indices: tuple[int | None, ...] = (0,) if layer.type == "If" else ()
        if layer.is_loop and body.condition is not None:
            yield body.graph, body.condition
        if layer.type == "Loop":
            indices = control_inputs(layer, body, graph)
        for index in indices:
            if (source := graph.source(layer.id, index)) is not None:
                yield graph, source.layer
        if layer.type == "TensorIterator":
            for entry in roles_of(layer).sliced:
                yield body.graph, entry.parameter

    def what_limits(self, difference: LoopMismatch, *, by_condition: bool) -> Layer | None:
        """Return the layer that gives a loop's condition, without what only changes its form, or its trip count."""
        graph, loop = graph_at(self.model, difference.path), difference.layer
        for inner, key in self._what_ends(graph, loop):
            layer = inner.by_id[key]
            if (layer.type == "Result") == by_condition:
                while layer.type in _FORM and (maker := inner.maker(layer)) is not NO_LAYER:
                    layer = maker
                return layer
        return None

    def loop_before(self, result: Layer) -> tuple[Layer, int] | None:
        """Return the nearest loop of the main graph from which an output comes, and its output; None without one."""
        graph = self.model.graph
        waiting, seen = [Source(result.id, 0)], {result.id}
        while waiting:
            layer, output = graph.by_id[waiting[0].layer], waiting.pop(0).output
            if layer.is_loop:
                return layer, output
            sources = {source for source in graph.sources[layer.id] if source is not None and source.layer not in seen}
            seen |= {source.layer for source in sources}
            waiting += sorted(sources)
        return None

    def is_condition(self, graph: Graph, layer: Layer) -> bool:
        """True if the execution condition of the loop around a graph is computed from this layer by logic alone."""
        if id(graph) not in self._around:
            return False
        _outer, _loop, body = self._around[id(graph)]
        waiting, seen = [graph.by_id.get(-1 if body.condition is None else body.condition, NO_LAYER)], set[int]()
        while waiting:
            one = waiting.pop()
            if one is layer:
                return True
            if one.id not in seen and one.type in _LOGIC:
                seen.add(one.id)
                waiting += map(graph.layer_of, graph.sources[one.id])
        return False


_FORM = frozenset({"Result", "Convert", "Reshape", "Squeeze", "Unsqueeze"})
_LOGIC = frozenset(
    {"Result", "Convert", "Reshape", "Squeeze", "Unsqueeze", "LogicalAnd", "LogicalOr", "LogicalNot", "LogicalXor"}
    | {"ReduceLogicalAnd", "ReduceLogicalOr", "If", "Select", "Gather"}
)


def graph_at(model: Model, path: GraphPath) -> Graph:
    """Return our graph to which a path leads."""
    graph = model.graph
    for step in path:
        graph = next(body.graph for body in step.layer.bodies if body.role == step.role)
    return graph


def graph_paths(model: Model) -> Iterator[tuple[GraphPath, Graph]]:
    """Yield each graph with the path to it (of no iteration), outer before inner."""
    waiting: list[tuple[GraphPath, Graph]] = [((), model.graph)]
    while waiting:
        path, graph = waiting.pop(0)
        yield path, graph
        for layer in graph.layers:
            waiting += [((*path, PathStep(layer, body.role, None)), body.graph) for body in layer.bodies]
