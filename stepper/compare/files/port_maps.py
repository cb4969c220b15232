"""Differences in the port maps, back edges and control inputs of two loops (or branches) that are aligned."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from msgspec.structs import replace

from stepper.compare.alignment.layers import Alignment, GraphPair
from stepper.compare.files.constants import ConstantValues
from stepper.compare.files.graphs import FileDifference, FileDifferenceKind, GraphDifferences
from stepper.compare.report.words import named, numbered
from stepper.engine.loops import RoleError, Roles, control_inputs, is_backward, roles_of
from stepper.ir.model import Body, InputMapping, Layer, OutputMapping, Slicing, Source
from stepper.ir.xml import EXECUTION_CONDITION

_WORDS: Final = {"sliced": "the sliced input", "merged": "the initial value", "invariant": "the invariant input"}


def differences(alignment: Alignment, ours: ConstantValues, theirs: ConstantValues) -> list[FileDifference]:
    """Return everything that differs in the files of two aligned models, graph by graph."""
    found: list[FileDifference] = []
    for pair in alignment.pairs:
        around = GraphDifferences(pair, ours, theirs)
        found += around.all()
        for layer in pair.ours.layers:
            partner = pair.partner(layer.id) if layer.bodies else None
            if partner is not None and len(partner.bodies) == len(layer.bodies):
                for body, other in zip(layer.bodies, partner.bodies, strict=True):
                    inner = alignment.pair(body.graph)
                    if inner is not None:
                        found += PortMaps(around, layer, partner, body, other, inner).all()
                if layer.type == "If":
                    found += _condition_of_branch(around, layer, partner)
    return found


def _condition_of_branch(around: GraphDifferences, layer: Layer, partner: Layer) -> Iterator[FileDifference]:
    source, other = around.pair.ours.sources[layer.id][0], around.pair.theirs.sources[partner.id][0]
    found = around.input(layer, f"the condition of {numbered(layer)}", source, other)
    if found is not None:
        yield found


class PortMaps:
    """Compares one body's map with that of the reference."""

    def __init__(
        self, around: GraphDifferences, layer: Layer, partner: Layer, body: Body, other: Body, inner: GraphPair
    ) -> None:
        self.around, self.layer, self.partner = around, layer, partner
        self.body, self.other, self.inner = body, other, inner
        self.path = (*around.pair.path, layer)
        self.loop_key = (id(around.pair.ours), layer.id)

    def all(self) -> Iterator[FileDifference]:
        """Yield differences: control inputs first, then Parameters, back edges, Results."""
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
        """Yield differences in trip count and execution condition of a Loop."""
        if self.layer.type != "Loop" or self.partner.type != "Loop":
            return
        ours = control_inputs(self.layer, self.body, self.around.pair.ours)
        theirs = control_inputs(self.partner, self.other, self.around.pair.theirs)
        for what, mine, other in zip(("trip count", "execution condition"), ours, theirs, strict=True):
            sentence = f"the {what} of {numbered(self.layer)}"
            found = self.around.input(self.layer, sentence, self._mine(mine), self._theirs(other))
            if found is not None:
                kind = "initial execution condition" if what != "trip count" else what
                text = f"{found.text} ({kind} of {named(self.layer)})"
                yield replace(found, text=text, touches=frozenset({self.loop_key}), entry=what)

    def _mine(self, index: int | None) -> Source | None:
        sources = self.around.pair.ours.sources[self.layer.id]
        return None if index is None or index >= len(sources) else sources[index]

    def _theirs(self, index: int | None) -> Source | None:
        sources = self.around.pair.theirs.sources[self.partner.id]
        return None if index is None or index >= len(sources) else sources[index]

    def _parameters(self) -> Iterator[FileDifference]:
        mine, theirs = _entries(self.layer, self.body), _entries(self.partner, self.other)
        wrong: dict[int, tuple[InputMapping, InputMapping]] = {}
        for parameter in self.body.graph.parameters:
            other = self.inner.partner(parameter.id)
            if other is None:
                continue
            entry, expected = mine.get(parameter.id), theirs.get(other.id)
            if entry is None or expected is None:
                yield from self._lost(parameter, entry, expected)
                continue
            yield from self._cut(parameter, entry, expected)
            if entry.purpose != expected.purpose or (entry.input is None) != (expected.input is None):
                yield from self._lost(parameter, entry, expected)
            elif not self.around.agrees(self._mine(entry.input), self._theirs(expected.input)):
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

    def _cut(self, parameter: Layer, entry: InputMapping, expected: InputMapping) -> Iterator[FileDifference]:
        text = _slicing_text(entry.slicing, expected.slicing)
        if text:
            sentence = f"the port map's input entry of {numbered(parameter)} has {text}"
            yield self._make(parameter, sentence, entry.line, "input", loop=True)

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
        agrees = self.around.agrees
        return agrees(self._mine(a.input), self._theirs(expected_b.input)) and agrees(
            self._mine(b.input), self._theirs(expected_a.input)
        )

    def _fed_by_another(
        self, parameter: Layer, entry: InputMapping, expected: InputMapping
    ) -> Iterator[FileDifference]:
        what = f"{_role_words(self.layer, entry)} of {numbered(parameter)}"
        found = self.around.input(self.layer, what, self._mine(entry.input), self._theirs(expected.input))
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
        for parameter in self.body.graph.parameters:
            other = self.inner.partner(parameter.id)
            if other is None:
                continue
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
        wanted = self.inner.theirs.by_id[expected]
        source = self._carried_text(expected)
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

    def _carried_text(self, result: int) -> str:
        source = self.inner.theirs.sources[result][0]
        layer = self.inner.theirs.by_id[result]
        return named(layer) if source is None else f"{named(layer)} ({named(self.inner.theirs.by_id[source.layer])})"

    def _same_value(self, result: int, expected: int) -> bool:
        """True if two Results are fed by layers that stand for each other."""
        mine, theirs = self.inner.ours.sources[result][0], self.inner.theirs.sources[expected][0]
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


def _role_words(layer: Layer, entry: InputMapping) -> str:
    roles = _roles(layer)
    return _WORDS.get(str(roles.role_of(entry)), "the input") if roles is not None else "the input"


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
