"""Differences in the files of two aligned models: operations, attributes, constants, connections.

Each `FileDifference` says in words what is where the reference has something else, and which of our layers it touches
first; `verdict.py` joins that with where the values first differ.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from enum import StrEnum
from typing import Any, Final

import numpy as np
from msgspec import Struct

from stepper.compare.alignment.layers import GraphPair
from stepper.compare.alignment.structure import COMMUTATIVE
from stepper.compare.files import constant_differences
from stepper.compare.files.constants import ConstantValues, same_numbers
from stepper.compare.report.words import named, numbered, quoted
from stepper.ir.model import Graph, Layer, Source
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


class FileDifference(Struct, frozen=True, eq=False):
    """One difference. `text` is a whole sentence without its full stop. `layer` is the layer of ours to blame, in the
    graph that `path` leads to (a Parameter or Result for an entry of the port map of the last layer of `path`);
    `touches` are the layers whose values it changes first; `related` further layers that have a part in it. `entry`
    says which part of a port map is meant, if any; `line` is that of our file.
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
        if layer.type in COMMUTATIVE and self._agree_exchanged(ours, theirs):
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

    def agrees(self, source: Source | None, other: Source | None) -> bool:
        """True if two inputs are fed by the same: the same constant, or layers that stand for each other."""
        if source is None or other is None:
            return source is other
        ours, theirs = self.mine.value(self.pair.ours, source), self.others.value(self.pair.theirs, other)
        if ours is not None and theirs is not None:
            return same_numbers(ours, theirs)
        # One may follow from constants where the other does not: what makes it so is told further up.
        return self.pair.layers.get(source.layer) == other.layer and source.output == other.output

    def _agree_exchanged(self, ours: Sequence[Source | None], theirs: Sequence[Source | None]) -> bool:
        return len(ours) == len(theirs) == 2 and self.agrees(ours[0], theirs[1]) and self.agrees(ours[1], theirs[0])

    def _exchanged(self, ours: Sequence[Source | None], theirs: Sequence[Source | None]) -> str | None:
        if len(ours) != len(theirs):
            return None
        wrong = [port for port in range(len(ours)) if not self.agrees(ours[port], theirs[port])]
        if len(wrong) == 2:
            first, second = wrong
            if self.agrees(ours[first], theirs[second]) and self.agrees(ours[second], theirs[first]):
                return f"{first} and {second}"
        return None

    def input(self, layer: Layer, what: str, source: Source | None, other: Source | None) -> FileDifference | None:
        """Return how an input of a layer is fed differently, None where it is not; `what` names the input."""
        if self.agrees(source, other):
            return None
        if source is None or other is None:
            which = "is not connected" if source is None else "is connected, in the reference it is not"
            return self._make(FileDifferenceKind.CONNECTION, layer, f"{what} {which}")
        ours, theirs = self.mine.value(self.pair.ours, source), self.others.value(self.pair.theirs, other)
        if ours is not None and theirs is not None:
            return self._constant(layer, source, other, ours, theirs)
        return self._connection(layer, what, source, other)

    def _constant(self, layer: Layer, source: Source, other: Source, ours: Any, theirs: Any) -> FileDifference:
        constants = self._constants_behind(source)
        fallback = constants[0] if constants else self.pair.ours.by_id[source.layer]
        guilty = next((one for one in constants if self._changed(one)), fallback)
        text = constant_differences.described(np.asarray(ours), np.asarray(theirs), consumer=layer)
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
        mine, theirs = self.pair.ours.by_id[source.layer], self.pair.theirs.by_id[other.layer]
        old = self._old_value(source, other)
        inserted = [] if old else self._between(source, other)
        if inserted:
            names = ", ".join(self._described(one) for one in inserted)
            verb = "is inserted" if len(inserted) == 1 else "are inserted"
            origin = named(self.pair.ours.by_id[self.pair.reverse[other.layer]])
            text = f"{names} {verb} between {origin} and {what}, where the reference has nothing"
            return self._make(FileDifferenceKind.INSERTED, layer, text, inserted)
        skipped = [] if old else self._between_theirs(source, other)
        if skipped:
            names = ", ".join(named(one) for one in skipped)
            verb = "is skipped (left out)" if len(skipped) == 1 else "are skipped (left out)"
            text = f"{names} {verb}: {what} is {named(mine)} directly, where the reference has {named(theirs)}"
            known = [one for one in (self.pair.origin(skip.id) for skip in skipped) if one is not None]
            return self._make(FileDifferenceKind.SKIPPED, layer, text, [*known, mine])
        where = "" if len(mine.outputs) < 2 else f" (output {source.output})"
        instead = "" if len(theirs.outputs) < 2 else f" (output {other.output})"
        text = f"{what} is {named(mine)}{where} instead of {named(theirs)}{instead}"
        origin_layer = self.pair.origin(other.layer)
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

    def _between(self, source: Source, other: Source) -> list[Layer]:
        """Return our layers without partner on the way up from our source to the partner of the reference's source."""
        goal = self.pair.reverse.get(other.layer)
        way = self._way(self.pair.ours, source.layer, goal, lambda key: key not in self.pair.layers)
        return [self.pair.ours.by_id[key] for key in way]

    def _between_theirs(self, source: Source, other: Source) -> list[Layer]:
        """Return layers of the reference on the way up from its source to the partner of ours."""
        goal = self.pair.layers.get(source.layer)
        way = self._way(self.pair.theirs, other.layer, goal, lambda _key: True, longest=3)
        return [self.pair.theirs.by_id[key] for key in way]

    def _way(self, graph: Graph, start: int, goal: int | None, through: Any, longest: int = 12) -> list[int]:
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
                    return way
                seen.add(source.layer)
                if len(way) < longest and through(source.layer):
                    waiting.append([*way, source.layer])
        return []

    def _old_value(self, source: Source, other: Source) -> str:
        """Return that ours is a carried Parameter where the reference takes its new value, or the reverse."""
        if not self.pair.path or not self.pair.path[-1].is_loop:
            return ""
        body = self.pair.path[-1].bodies[0]
        for edge in body.back_edges:
            result = self.pair.ours.sources.get(edge.from_layer, (None,))[0]
            updated = None if result is None else self.pair.layers.get(result.layer)
            if edge.to_layer == source.layer and updated == other.layer:
                return ": the old value of the previous iteration, before the update (shifted by one)"
            if (
                result is not None
                and source.layer == result.layer
                and self.pair.layers.get(edge.to_layer) == other.layer
            ):
                return ": the new value, after the update, instead of that of the previous iteration (shifted by one)"
        return ""


_INVERTED: Final = frozenset(
    frozenset(pair)
    for pair in (
        ("Less", "Greater"),
        ("Less", "GreaterEqual"),
        ("LessEqual", "Greater"),
        ("LessEqual", "GreaterEqual"),
        ("Equal", "NotEqual"),
    )
)
_NOT_COMPARED: Final = frozenset({"offset", "size", "shape", "element_type"})
_TELLING: Final = frozenset({"min", "max", "axis", "destination_type", "alpha", "beta", "mode"})


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
