"""Pair the layers of two models: by name where names hold, else by structure.

    alignment = Alignment(ours, theirs, compiled, rules)
    alignment.pair(graph).partner(layer.id)        # the reference's layer, or None

Two ways are tried for each pair of graphs. The first uses names, then the structure. The second uses the structure
alone: operations of the same type and attributes on the same inputs. The way that keeps more connections counts. The
bodies of paired loops and branches are aligned the same way. Pairs that the user gives go before everything.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from msgspec.structs import replace

from stepper.compare.observations import NARROW, SPECIALS
from stepper.element_types import STRING_DTYPE, Array, have_same_bits, is_floating, name_of
from stepper.engine.compiler import compile_model
from stepper.engine.inputs import bind_states, variables_of
from stepper.engine.machine import Machine
from stepper.engine.program import CompiledModel, Partner
from stepper.engine.rules import Rules
from stepper.errors import InputError, ModelError
from stepper.ir.constants import constant_value
from stepper.ir.model import Body, Graph, Layer, Model, Source
from stepper.operation_types import NO_OPERATIONS
from stepper.ops.operands import shape_text
from stepper.plain_values import storable
from stepper.records import Record
from stepper.tensors.difference import agree_exactly
from stepper.tensors.number_text import number_text
from stepper.wording import json_fault, reason_of, size_text

# --- Constant values of a graph: the Constants of the file, and in bodies whatever follows from them alone -----------


class ConstantValues:
    """Constant values of one model, by graph and layer. Without `compiled`, of the file's Constants alone."""

    def __init__(self, model: Model, compiled: CompiledModel | None = None) -> None:
        self._model = model
        self._programs = {id(program.graph): program for program in compiled.programs} if compiled else {}
        self._digests: dict[tuple[int, Source], str] = {}

    def value(self, graph: Graph, source: Source | None) -> Any:
        """Return the constant value of an output of a layer; None where it is computed by the run."""
        if source is None:
            return None
        layer = graph.by_id[source.layer]
        if layer.type in ("Parameter", "Result"):
            return None
        program = self._programs.get(id(graph))
        slot = None if program is None else program.slots.get(source)
        if program is not None and slot is not None:
            return program.template[slot]
        return self.of_layer(layer)

    def of_layer(self, layer: Layer) -> Any:
        """Return the value of a Constant; None for anything else, or where the .bin does not have it."""
        if layer.type != "Constant":
            return None
        try:
            return constant_value(self._model, layer)
        except ModelError:
            return None

    def digest(self, graph: Graph, source: Source) -> str | None:
        """Return a hash of type, shape and content of a constant; None where it is computed by the run."""
        key = id(graph), source
        if key not in self._digests:
            value = self.value(graph, source)
            if value is None:
                return None
            self._digests[key] = _digest(np.asarray(value))
        return self._digests[key]


def _digest(value: np.ndarray[Any, Any]) -> str:
    content = "\0".join(map(str, value.reshape(-1))).encode() if value.dtype == STRING_DTYPE else value.tobytes()
    return f"{value.dtype}{value.shape}{hashlib.blake2b(content, digest_size=12).hexdigest()}"


def same_numbers(ours: Any, theirs: Any) -> bool:
    """True if two constants are the same, bit for bit."""
    a, b = np.asarray(ours), np.asarray(theirs)
    return agree_exactly(a, b) or have_same_bits(a, b)


# ---------------------------------------------------------------------------------------------------------------------


_GATES = {
    "LSTMCell": ("f", "i", "c", "o"),
    "LSTMSequence": ("f", "i", "c", "o"),
    "GRUCell": ("z", "r", "h"),
    "GRUSequence": ("z", "r", "h"),
}
"""The order in which the specification has the blocks of W, R and B."""

_BLOCKS = (2, 3, 4)


def described(ours: Array, theirs: Array, consumer: Layer) -> str:
    """Return the difference as the end of a sentence that begins with the constant's name."""
    if ours.shape != theirs.shape:
        return f"has shape {shape_text(ours.shape)} instead of {shape_text(theirs.shape)} in the reference"
    if STRING_DTYPE in (ours.dtype, theirs.dtype):
        return "holds another text than in the reference"
    if ours.size == 1:
        a, b = ours.reshape(-1)[0], theirs.reshape(-1)[0]
        kind = "" if ours.dtype == theirs.dtype else f" ({name_of(ours.dtype)} instead of {name_of(theirs.dtype)})"
        return f"has the value {number_text(a, 7)} instead of {number_text(b, 7)} in the reference{kind}"
    if not _different(ours, theirs).any():
        if ours.dtype == theirs.dtype:
            return "has NaN of other bits than in the reference, the values are the same"
        return f"has the type {name_of(ours.dtype)} instead of {name_of(theirs.dtype)}, the values are the same"
    return _of_many(ours, theirs, consumer)


def _different(ours: Array, theirs: Array) -> Array:
    """Return for each element if the two numbers differ; NaN equals NaN."""
    a, b = storable(ours), storable(theirs)
    different: Array = (a != b) & ~((a != a) & (b != b))
    return different


def _of_many(ours: Array, theirs: Array, consumer: Layer) -> str:
    a, b = storable(ours).astype(np.float64), storable(theirs).astype(np.float64)
    different = _different(ours, theirs)
    count = int(different.sum())
    where = tuple(int(index) for index in np.argwhere(different)[0])
    special = _specials(a, b)
    if special:
        return special
    exact = object if ours.dtype.kind + theirs.dtype.kind in ("ii", "iu", "ui", "uu") else np.float64
    gap = float(np.abs(ours[different].astype(exact) - theirs[different].astype(exact)).max())
    if (ours == ours.reshape(-1)[0]).all() and (theirs == theirs.reshape(-1)[0]).all():
        values = f"{number_text(ours.reshape(-1)[0], 7)} throughout instead of {number_text(theirs.reshape(-1)[0], 7)}"
        return f"has the value {values} in the reference"
    if not a.any():
        return f"is zero throughout, in the reference its values reach {number_text(np.abs(b).max(), 7)} (dropped)"
    if count == 1:
        values = f"{number_text(ours[where], 7)} instead of {number_text(theirs[where], 7)} in the reference"
        return f"differs in one element, {list(where)}: the value is {values} (by {gap:.3g})"
    text = _rearranged(ours, theirs, consumer) or _scaled(a, b, ours) or _rounded(ours, theirs)
    if text:
        return text
    values = f"{number_text(ours[where], 7)} instead of {number_text(theirs[where], 7)}"
    spread = f"in {count} of {ours.size} values, by up to {gap:.3g}"
    return f"differs from the reference {spread}; first {list(where)}: {values}"


def _specials(a: Any, b: Any) -> str:
    for what, test in SPECIALS:
        if test(a).any() and not test(b).any():
            where = [int(index) for index in np.argwhere(test(a))[0]]
            return f"has {what} in {int(test(a).sum())} of {a.size} values, first {where}, where the reference has none"
        if test(b).any() and not test(a).any():
            return f"has finite values where the reference has {what}"
    return (
        "" if np.isfinite(a).all() and np.isfinite(b).all() else "has other values than the reference, not all finite"
    )


def _rearranged(ours: Array, theirs: Array, consumer: Layer) -> str:
    if ours.ndim == 2 and ours.shape[0] == ours.shape[1] and bool((ours == theirs.T).all()):
        return "is stored transposed (rows and columns exchanged against the reference)"
    for axis in range(ours.ndim):
        if ours.shape[axis] > 1 and bool((ours == np.flip(theirs, axis)).all()):
            return f"is the reference's in reversed order along axis {axis}"
    for axis in range(ours.ndim):
        counts = sorted({*_BLOCKS, len(_GATES.get(consumer.type, ()))} - {0}, reverse=True)
        for blocks in counts:
            text = _blocks(ours, theirs, axis, blocks, consumer)
            if text:
                return text
    for axis in range(ours.ndim):
        text = _permuted(ours, theirs, axis)
        if text:
            return text
    if ours.ndim > 1 and ours.size < 2**20 and bool((np.sort(ours, axis=None) == np.sort(theirs, axis=None)).all()):
        return "has the reference's values in another order"
    return ""


def _blocks(ours: Array, theirs: Array, axis: int, blocks: int, consumer: Layer) -> str:
    """Return that it consists of the reference's blocks (gates) in another order; empty if it does not."""
    if ours.shape[axis] % blocks or ours.shape[axis] == blocks:
        return ""
    mine, others = np.split(ours, blocks, axis), np.split(theirs, blocks, axis)
    order = []
    for block in mine:
        found = [k for k, other in enumerate(others) if k not in order and bool((block == other).all())]
        if not found:
            return ""
        order.append(found[0])
    if order == sorted(order):
        return ""
    letters = _GATES.get(consumer.type, ())
    names = letters if len(letters) == blocks else tuple(map(str, range(blocks)))
    written, expected = ",".join(names[k] for k in order), ",".join(names)
    moved = [names[k] for k in range(blocks) if order[k] != k]
    pair = f"blocks {' and '.join(moved)} exchanged (swapped): " if len(moved) == 2 else ""
    what = "gate blocks" if len(letters) == blocks else f"{blocks} blocks along axis {axis} (gates)"
    return f"has its {what} permuted, {pair}order {written} instead of {expected} in the reference"


def _permuted(ours: Array, theirs: Array, axis: int) -> str:
    size = ours.shape[axis]
    if size < 2 or size > 4096 or ours.ndim < 2:
        return ""
    mine = [np.take(ours, k, axis).tobytes() for k in range(size)]
    others = [np.take(theirs, k, axis).tobytes() for k in range(size)]
    if sorted(mine) != sorted(others):
        return ""
    moved = [k for k in range(size) if mine[k] != others[k]]
    what = {0: "rows", 1: "columns"}.get(axis, f"slices along axis {axis}")
    if len(moved) == 2:
        return f"has {what} {moved[0]} and {moved[1]} exchanged (swapped) against the reference"
    return f"has {len(moved)} of its {size} {what} in another order than the reference (permuted)"


def _scaled(a: Any, b: Any, ours: Array) -> str:
    if not is_floating(ours.dtype):
        return ""
    with np.errstate(all="ignore"):
        if bool((a == -b).all()):
            return "has the sign of every value flipped against the reference"
        nonzero = b != 0
        if not nonzero.any():
            return "has values where the reference is zero throughout"
        factor = float(np.median(a[nonzero] / b[nonzero]))
        if np.allclose(a, factor * b, rtol=1e-5, atol=0):
            return f"is {factor:.6g} times the reference's value everywhere (another scale)"
        flipped = int((a == -b).sum() - ((a == 0) & (b == 0)).sum())
        if flipped and bool(((a == -b) | (a == b)).all()):
            return f"has the sign of {flipped} of {a.size} values flipped against the reference"
        gap = float(np.median(a - b))
        if np.allclose(a - gap, b, rtol=1e-5, atol=1e-7 * float(np.abs(b).max())):
            return f"has {gap:+.6g} added to every value of the reference (offset)"
    return ""


def _rounded(ours: Array, theirs: Array) -> str:
    if not is_floating(theirs.dtype):
        return ""
    for name, narrow in NARROW:
        with np.errstate(all="ignore"):
            if bool((theirs.astype(narrow).astype(np.float64) == storable(ours).astype(np.float64)).all()):
                gap = float(np.abs(storable(ours).astype(np.float64) - storable(theirs).astype(np.float64)).max())
                long = {"f16": "float16", "bf16": "bfloat16"}[name]
                return f"is the reference's value rounded to {name} ({long}): the weights differ by up to {gap:.3g}"
    return ""


# --- Matching the layers of two graphs by what they are connected with ---------------------------------------------


COMMUTATIVE = frozenset(
    {"Add", "Multiply", "Maximum", "Minimum", "Equal", "NotEqual", "LogicalAnd", "LogicalOr", "LogicalXor"}
)
_FIXED = frozenset(NO_OPERATIONS)

Key = tuple[Any, ...]


class IndexedGraph:
    """Index a graph with its constants; `paired` maps its layers to their pairs, by ids."""

    def __init__(self, graph: Graph, constants: ConstantValues) -> None:
        self.graph, self.constants = graph, constants
        self.paired: dict[int, int] = {}

    def consumers(self, key: int) -> list[tuple[int, int]]:
        """Return the layers that read a layer, each with the index of the input."""
        return [(layer.id, port) for layer, port in self.graph.readers[key]]

    @property
    def edges(self) -> int:
        """The number of connections."""
        return sum(map(len, self.graph.readers.values()))

    def signature(self, body: Body) -> Key:
        """Return a key of a body's contents: how its port map cuts, its operations and constants, in no order."""
        cuts = sorted(map(repr, [one.slicing for one in body.inputs] + [one.slicing for one in body.outputs]))
        parts: Counter[Key] = Counter()
        for layer in body.graph.layers:
            if layer.type == "Constant":
                parts["constant", self.constants.digest(body.graph, Source(layer.id, 0))] += 1
            else:
                inner = tuple(self.signature(one) for one in layer.bodies)
                parts[layer.type, tuple(sorted(layer.attributes.items())), inner] += 1
        return tuple(cuts), frozenset(parts.items())


class Matcher:
    """A growing one-to-one mapping of our layers' ids to the reference's."""

    def __init__(
        self, ours: Graph, theirs: Graph, certain: Mapping[int, int], constants: tuple[ConstantValues, ConstantValues]
    ) -> None:
        self.ours, self.theirs = IndexedGraph(ours, constants[0]), IndexedGraph(theirs, constants[1])
        self.certain = set(certain)
        self.layers, self.reverse = self.ours.paired, self.theirs.paired
        self.add(certain)

    # --- growing -------------------------------------------------------------------------------------------------

    def add(self, found: Mapping[int, int]) -> None:
        """Take these pairs, but for layers that have a partner already."""
        for mine, other in found.items():
            self._pair(mine, other)

    def _pair(self, mine: int, other: int) -> bool:
        if mine in self.layers or other in self.reverse:
            return False
        self.layers[mine], self.reverse[other] = other, mine
        return True

    def add_names(self) -> None:
        """Pair layers of one name, which is unique on both sides; operations of another type too."""
        mine, others = _by_unique_name(self.ours.graph), _by_unique_name(self.theirs.graph)
        for name, layer in mine.items():
            other = others.get(name)
            if other is not None and _may_be(layer, other):
                self._pair(layer.id, other.id)

    def drop_doubtful(self) -> None:
        """Part pairs that share a name and not one connection, while their neighbours are paired with others."""
        for mine, other in list(self.layers.items()):
            layer = self.ours.graph.by_id[mine]
            if mine in self.certain or layer.type in ("Parameter", "Result"):
                continue
            kept, broken = self._connections(mine, other)
            if broken and not kept:
                del self.layers[mine], self.reverse[other]

    def _connections(self, mine: int, other: int) -> tuple[int, int]:
        """Return how many connections of two layers agree, and how many lead to layers that are paired otherwise."""
        kept = broken = 0
        for source, found in self._inputs(mine, other):
            if source.layer in self.layers:
                agree = self.layers[source.layer] == found.layer
                kept, broken = kept + agree, broken + (not agree)
        into = set(self.theirs.consumers(other))
        for layer, port in self.ours.consumers(mine):
            if layer in self.layers:
                agree = (self.layers[layer], port) in into
                kept, broken = kept + agree, broken + (not agree)
        return kept, broken

    def _inputs(self, mine: int, other: int) -> list[tuple[Source, Source]]:
        """Return what two layers read at the same input, where both read something."""
        pairs = zip(self.ours.graph.sources[mine], self.theirs.graph.sources[other], strict=False)
        return [(source, found) for source, found in pairs if source is not None and found is not None]

    def complete(self) -> None:
        """Add what follows from the structure, the surest first, until nothing does."""
        rounds = (
            lambda: self._forward(attributes=True, types=True),
            lambda: self._backward(types=True),
            lambda: self._forward(attributes=False, types=True),
            lambda: self._backward(types=False),
            lambda: self._forward(attributes=False, types=False),
            lambda: self._forward(attributes=True, types=True, alike=True),
        )
        step = 0
        while step < len(rounds):
            step = 0 if rounds[step]() else step + 1

    def _forward(self, *, attributes: bool, types: bool, alike: bool = False) -> bool:
        """Pair operations of equal inputs, where these are unique; True if any was.

        Types and attributes are equal, too, if asked for. `alike`: pair operations that look alike, if both sides have
        equally many of them, in the order of the files.
        """
        mine, others = (self._keyed(side, attributes=attributes, types=types) for side in (self.ours, self.theirs))
        grown = False
        for key, layers in mine.items():
            candidates = others.get(key, [])
            if len(candidates) != len(layers) or (len(layers) > 1 and not alike):
                continue
            one, other = layers[0].id, candidates[0].id
            into = set(self.theirs.consumers(other))
            if types or any((self.layers.get(layer), port) in into for layer, port in self.ours.consumers(one)):
                grown |= self._pair(one, other)
                if grown and alike:
                    return True
        return grown

    def _keyed(self, side: IndexedGraph, *, attributes: bool, types: bool) -> dict[Key, list[Layer]]:
        found: dict[Key, list[Layer]] = {}
        for layer in side.graph.layers:
            if layer.id in side.paired or layer.type in _FIXED or not side.graph.sources[layer.id]:
                continue
            inputs = [self._key(side, source) for source in side.graph.sources[layer.id]]
            if None in inputs:
                continue
            if layer.type in COMMUTATIVE and not attributes:
                inputs.sort(key=repr)
            written = (*sorted(layer.attributes.items()), *map(side.signature, layer.bodies)) if attributes else ()
            key = (layer.type if types else "", len(layer.outputs), len(layer.bodies), tuple(inputs), written)
            found.setdefault(key, []).append(layer)
        return found

    def _key(self, side: IndexedGraph, source: Source | None) -> Key | None:
        """Return what a source is on both sides: a layer of ours, or the content of a constant; None if neither."""
        if source is None:
            return ("open",)
        if source.layer in side.paired:
            layer = source.layer if side is self.ours else self.reverse[source.layer]
            return ("layer", layer, source.output)
        digest = side.constants.digest(side.graph, source)
        return None if digest is None else ("constant", digest)

    def _backward(self, *, types: bool) -> bool:
        """Pair sources of the same input of paired layers, of one type (or as many outputs); True if any was."""
        grown = False
        for mine, other in list(self.layers.items()):
            for source, found in self._inputs(mine, other):
                if source.output != found.output or source.layer in self.layers or found.layer in self.reverse:
                    continue
                layer, partner = self.ours.graph.by_id[source.layer], self.theirs.graph.by_id[found.layer]
                if layer.type == partner.type or (
                    not types and _may_be(layer, partner) and self._same_inputs(layer, partner)
                ):
                    grown |= self._pair(layer.id, partner.id)
        return grown

    def _same_inputs(self, layer: Layer, other: Layer) -> bool:
        mine, others = self.ours.graph.sources[layer.id], self.theirs.graph.sources[other.id]
        if len(mine) != len(others):  # what the operation itself brings comes after its operand
            mine, others = mine[:1], others[:1]
        keys = [self._key(self.ours, one) for one in mine]
        return bool(mine and others) and keys == [self._key(self.theirs, one) for one in others]

    # --- judging -------------------------------------------------------------------------------------------------

    @property
    def kept(self) -> int:
        """How many of our connections the reference has too."""
        count = 0
        for mine, other in self.layers.items():
            for source, found in self._inputs(mine, other):
                count += (self.layers.get(source.layer), source.output) == found
        return count


def _by_unique_name(graph: Graph) -> dict[str, Layer]:
    counts = Counter(layer.name for layer in graph.layers)
    return {layer.name: layer for layer in graph.layers if layer.name and counts[layer.name] == 1}


def _may_be(layer: Layer, other: Layer) -> bool:
    """True if one of the two may stand where the other does."""
    if layer.type != other.type and (_FIXED & {layer.type, other.type} or len(layer.outputs) != len(other.outputs)):
        return False
    return len(layer.bodies) == len(other.bodies)


# ---------------------------------------------------------------------------------------------------------------------


class GraphPair(Record, eq=False):
    """Two graphs that stand for each other; `layers` and `reverse` map ids. `path` are the layers that lead to ours."""

    ours: Graph
    theirs: Graph
    path: tuple[Layer, ...]
    layers: Mapping[int, int]
    reverse: Mapping[int, int]

    def partner(self, layer: int) -> Layer | None:
        """Return the reference's layer for one of ours, by id."""
        found = self.layers.get(layer)
        return None if found is None else self.theirs.by_id[found]

    def origin(self, layer: int) -> Layer | None:
        """Return our layer for one of the reference's, by id."""
        found = self.reverse.get(layer)
        return None if found is None else self.ours.by_id[found]


class Alignment:
    """Two models with all pairs of their graphs, outer before inner.

    `compiled` is ours, None where that cannot be; `given` are pairs of names that the user knows to stand for each
    other. ModelError where the reference cannot be run.
    """

    def __init__(
        self,
        ours: Model,
        theirs: Model,
        compiled: CompiledModel | None,
        rules: Rules,
        partner: Partner | None = None,
        given: Mapping[str, str] | None = None,
    ) -> None:
        self.constants = ConstantValues(ours, compiled), ConstantValues(theirs, compile_model(theirs, rules, partner))
        self._theirs, self._rules, self._partner = theirs, rules, partner
        pairs: list[GraphPair] = []
        anchors = _outer_anchors(ours.graph, theirs.graph)
        _descend(ours.graph, theirs.graph, (), anchors, dict(given or {}), self.constants, pairs)
        self.pairs = tuple(pairs)
        self._by_graph = {id(pair.ours): pair for pair in pairs}

    def pair(self, graph: Graph) -> GraphPair | None:
        """Return the pair of one of our graphs."""
        return self._by_graph.get(id(graph))

    @cached_property
    def _ordered(self) -> CompiledModel:
        """The reference with the layers of each graph in our order where they stand for ours, so that both runs do the
        same things in the same order. What it computes stays the same."""
        order = {id(pair.theirs): _order(pair) for pair in self.pairs}
        model = replace(self._theirs, graph=_reordered(self._theirs.graph, order), reopen=None)
        return compile_model(model, self._rules, self._partner)

    def machine(
        self,
        inputs: Sequence[Array],
        max_iterations: int | None,
        states: Mapping[str, Any] | None = None,
        given: Mapping[int, Array] | None = None,
    ) -> Machine:
        """Return a machine for the reference; `inputs` and `states` are ours, these by the same names.

        `given` are values of its own inputs, by their positions in its file. ModelError for an input of its own.
        """
        pair, ordered = self.pairs[0], self._ordered
        position = {layer.id: index for index, layer in enumerate(pair.ours.parameters)}
        own = {self._theirs.graph.parameters[place].id: value for place, value in (given or {}).items()}
        bound = []
        for parameter in ordered.main.graph.parameters:
            if parameter.id in own:
                bound.append(own[parameter.id])
            elif (origin := position.get(pair.reverse.get(parameter.id, -1))) is not None:
                bound.append(inputs[origin])
            else:
                raise ModelError(
                    f"{ordered.model.path}: its input '{parameter.name}' has no counterpart; name it with --align"
                )
        names = {variable.name for variable in variables_of(ordered.model)}
        shared = {name: value for name, value in (states or {}).items() if name in names}
        return Machine(ordered, bound, max_iterations=max_iterations, states=bind_states(ordered, shared))


def _descend(
    ours: Graph,
    theirs: Graph,
    path: tuple[Layer, ...],
    anchors: Mapping[int, int],
    given: Mapping[str, str],
    constants: tuple[ConstantValues, ConstantValues],
    pairs: list[GraphPair],
) -> None:
    certain = {} if path else _named_ports(ours, theirs)
    layers = _matched(ours, theirs, anchors, {**certain, **_given_pairs(ours, theirs, given)}, constants)
    pair = GraphPair(ours, theirs, path, layers, {b: a for a, b in layers.items()})
    pairs.append(pair)
    for layer in ours.layers:
        other = pair.partner(layer.id) if layer.bodies else None
        if other is None or len(other.bodies) != len(layer.bodies):
            continue
        for body, other_body in zip(layer.bodies, other.bodies, strict=True):
            inner = _body_anchors(body, other_body)
            _descend(body.graph, other_body.graph, (*path, layer), inner, given, constants, pairs)


def _matched(
    ours: Graph,
    theirs: Graph,
    anchors: Mapping[int, int],
    certain: Mapping[int, int],
    constants: tuple[ConstantValues, ConstantValues],
) -> dict[int, int]:
    """Return the best of three: names first, structure from the anchors, structure from the outputs alone (so that
    crossed inputs are seen); the first of those that keep as many connections."""
    by_name = Matcher(ours, theirs, certain, constants)
    by_name.add_names()
    by_name.add(anchors)
    by_name.drop_doubtful()
    by_name.complete()
    if by_name.kept == by_name.ours.edges == by_name.theirs.edges:
        return by_name.layers
    tried = [by_name]
    results = {mine: other for mine, other in anchors.items() if ours.by_id[mine].type == "Result"}
    for fixed in (anchors, results):
        matcher = Matcher(ours, theirs, certain, constants)
        matcher.add(fixed)
        matcher.complete()
        matcher.add(anchors)
        matcher.complete()
        tried.append(matcher)
    return max(tried, key=lambda matcher: matcher.kept).layers


def _given_pairs(ours: Graph, theirs: Graph, given: Mapping[str, str]) -> dict[int, int]:
    if not given:
        return {}
    names = {layer.name: layer.id for layer in theirs.layers}
    return {layer.id: names[given[layer.name]] for layer in ours.layers if given.get(layer.name) in names}


def _named_ports(ours: Graph, theirs: Graph) -> dict[int, int]:
    """Return pairs of the models' inputs and outputs by the names of their tensors, as far as these tell them apart."""
    found: dict[int, int] = {}
    for mine, others in ((ours.parameters, theirs.parameters), (ours.results, theirs.results)):
        known = {name: layer.id for layer in others for name in _tensor_names(theirs, layer)}
        for layer in mine:
            partners = {known[name] for name in _tensor_names(ours, layer) if name in known}
            if len(partners) == 1 and not partners & set(found.values()):
                found[layer.id] = partners.pop()
    return found


def _tensor_names(graph: Graph, layer: Layer) -> tuple[str, ...]:
    """Return the names of the tensor of an input or output of a model."""
    if layer.type == "Parameter":
        return layer.outputs[0].names
    source = graph.source(layer.id)
    return () if source is None else graph.layer_of(source).outputs[source.output].names


def _outer_anchors(ours: Graph, theirs: Graph) -> dict[int, int]:
    """Return pairs of the models' inputs and outputs: by the names of tensors or layers, else by position."""
    found = _named_ports(ours, theirs)
    for mine, others in ((ours.parameters, theirs.parameters), (ours.results, theirs.results)):
        rest = [layer for layer in mine if layer.id not in found]
        found |= _by_name_or_position(rest, [layer for layer in others if layer.id not in found.values()])
    return found


def _by_name_or_position(mine: Sequence[Layer], others: Sequence[Layer]) -> dict[int, int]:
    found = _named(mine, others)
    taken = set(found.values())
    if len(mine) == len(others):
        for layer, other in zip(mine, others, strict=True):
            if layer.id not in found and other.id not in taken:
                found[layer.id] = other.id
    return found


def _body_anchors(body: Body, other: Body) -> dict[int, int]:
    """Return pairs of Parameters and Results of two bodies: by name, else by what the port maps connect them with."""
    found = _named(body.graph.parameters, other.graph.parameters) | _named(body.graph.results, other.graph.results)
    ends = (
        ([((one.input, one.purpose), one.parameter) for one in side.inputs] for side in (body, other)),
        ([((one.output, one.purpose), one.result) for one in side.outputs] for side in (body, other)),
    )
    for mine, theirs in ends:
        known = dict(reversed(theirs))  # of several the first
        for key, layer in mine:
            if key in known and layer not in found and known[key] not in found.values():
                found[layer] = known[key]
    into = {edge.to_layer: edge.from_layer for edge in other.back_edges}
    for edge in body.back_edges:
        result = into.get(found.get(edge.to_layer, -1))
        if result is not None and edge.from_layer not in found and result not in found.values():
            found[edge.from_layer] = result
    return found


def _named(mine: Sequence[Layer], others: Sequence[Layer]) -> dict[int, int]:
    names = {layer.name: layer.id for layer in others if layer.name}
    return {layer.id: names[layer.name] for layer in mine if layer.name in names}


def _order(pair: GraphPair) -> dict[int, float]:
    """Return a sorting key for each of their layers: our partner's position, else just before the consumer's."""
    position = {layer.id: float(index) for index, layer in enumerate(pair.ours.layers)}
    keys = {theirs: position[ours] for ours, theirs in pair.layers.items()}
    for layer in reversed(pair.theirs.layers):
        if layer.id not in keys:
            known = [keys[one.id] for one, _port in pair.theirs.readers[layer.id] if one.id in keys]
            keys[layer.id] = (min(known) if known else float(len(position))) - 0.5
    return keys


def _reordered(graph: Graph, order: Mapping[int, Mapping[int, float]]) -> Graph:
    layers = tuple(
        layer._replace(bodies=tuple(replace(body, graph=_reordered(body.graph, order)) for body in layer.bodies))
        for layer in graph.layers
    )
    keys = order.get(id(graph))
    if keys is not None:
        layers = tuple(sorted(layers, key=lambda layer: keys[layer.id]))
    return Graph(layers, graph.edges, graph.sources, graph.line)


# --- The file that names which layers stand for each other: JSON, or lines `ours = theirs` ---------------------------


_LARGEST = 16 * 2**20


def read_pairs(path: Path) -> dict[str, str]:
    """Return pairs of layer names: those of our model, those of the reference.

    JSON is an object of names. In lines, what is behind a # at the beginning of a line or after a blank counts for
    nothing; a name with ` = ` in it needs JSON. InputError with the line for what cannot be read.
    """
    try:
        with path.open("rb") as file:
            content = file.read(_LARGEST + 1)
        text = content.decode("utf-8-sig")
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {reason_of(path, error)}") from None
    except UnicodeDecodeError:
        raise InputError(f"{path}: is not UTF-8 text") from None
    if len(content) > _LARGEST:
        raise InputError(f"{path}: is larger than {size_text(_LARGEST)}")
    return _of_json(path, text) if text.lstrip().startswith("{") else _of_lines(path, text)


def _of_json(path: Path, text: str) -> dict[str, str]:
    try:
        found = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise InputError(f"{path}: is not valid JSON: {json_fault(text, error)}") from None
    if not isinstance(found, dict) or not all(isinstance(value, str) for value in found.values()):
        raise InputError(f'{path}: expected an object of names, such as {{"our_layer": "its_layer"}}')
    return found


def _of_lines(path: Path, text: str) -> dict[str, str]:
    found: dict[str, str] = {}
    for number, line in enumerate(text.splitlines(), 1):
        written = line.split(" #")[0].strip()
        if not written or written.startswith("#"):
            continue
        ours, equals, theirs = written.partition(" = ")
        if not equals:
            ours, equals, theirs = written.partition("=")
        if not equals or not ours.strip() or not theirs.strip():
            raise InputError(f"{path}, line {number}: expected 'our layer = its layer', found '{written[:80]}'")
        found[ours.strip()] = theirs.strip()
    return found
