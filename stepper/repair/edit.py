"""Edits of a graph as data, and the graph as the catalogue sees it: values, their types and shapes, who reads them."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Sequence
from enum import StrEnum
from functools import cached_property

import numpy as np
from msgspec.structs import replace

from stepper.diagnosis.reduce.draft import LayerAddress
from stepper.element_types import Array, DType, Shape
from stepper.ir.constants import constant_value
from stepper.ir.model import Body, Graph, Layer, LayerSite, Model, Scope, Source, layer_site
from stepper.records import Record
from stepper.repair.patch import ModelPatch
from stepper.repair.replay import KnownRun

Apply = Callable[[ModelPatch], object]
"""Makes an edit; raises LookupError or ValueError where it cannot be made."""
SolvedApply = Callable[[ModelPatch, Array], object]
"""Makes an edit that has unknown numbers."""


class EditKind(StrEnum):
    """The kind of change; its sentence is in `fix_texts`."""

    ATTRIBUTE = "attribute"
    OPERANDS_EXCHANGED = "operands exchanged"
    OPERAND = "operand"
    USES_EXCHANGED = "uses exchanged"
    OPERATION = "operation"
    REMOVED = "removed"
    REPEATED = "repeated"
    INSERTED = "inserted"
    COMBINED = "combined"
    CONSTANT = "constant"
    SOLVED = "solved"
    SOLVED_VALUE = "solved value"
    SOLVED_ELEMENT = "solved element"
    STATE = "state"
    BACK_EDGE = "back edge"
    LOOP_INPUT = "loop input"
    LOOP_OUTPUT = "loop output"
    TRIP_COUNT = "trip count"
    BRANCHES = "branches"
    TYPE = "type"
    LENGTHS = "lengths"
    FEEDBACK = "feedback"
    REWRITE = "rewrite"


class Unknowns(Record, eq=False):
    """Numbers of an edit that are solved for: where the search for them begins, and how they are put in.

    `starts` are several beginnings of equal length. `is_one`: only one of them is another
    number than at the start, and what is put is its place and its value.
    """

    starts: tuple[tuple[float, ...], ...]
    put: SolvedApply
    rounds: bool = True
    is_one: bool = False


class RepairEdit(Record, eq=False):
    """Hold an edit of the catalogue: its place, its change, and the mistake's likelihood.

    `before` and `after` are the old and the new content, `subject` the attribute, operand or entry. The lower the
    `price`, the likelier. `roots` are the layers whose values change first; they are in the graph of `address`.
    `is_part`: some differing outputs do not depend on the edit, so that it can only be one of several edits.
    """

    kind: EditKind
    address: LayerAddress
    layer: LayerSite
    price: float
    apply: Apply
    subject: str = ""
    before: str = ""
    after: str = ""
    roots: tuple[int, ...] = ()
    unknowns: Unknowns | None = None
    numbers: tuple[float, ...] = ()
    is_part: bool = False

    def solved(self, numbers: Sequence[float]) -> RepairEdit:
        """Return the edit with its unknown numbers."""
        assert self.unknowns is not None, "the edit has unknown numbers"
        put, found = self.unknowns.put, np.asarray(numbers, np.float64)
        return replace(self, apply=lambda patch: put(patch, found), unknowns=None, numbers=tuple(map(float, numbers)))

    def patch(self, model: Model) -> ModelPatch:
        """Return a model with this edit. LookupError or ValueError where it cannot be made."""
        return patched(model, (self,))


def patched(model: Model, edits: Iterable[RepairEdit]) -> ModelPatch:
    """Return a model with several edits. LookupError or ValueError where one cannot be made."""
    patch = ModelPatch(model)
    for edit in edits:
        edit.apply(patch)
    return patch


class ValueForm(Record):
    """Element type and shape of a value."""

    dtype: DType
    shape: Shape

    @property
    def is_float(self) -> bool:
        """True for floats that numpy computes with."""
        return self.dtype.kind == "f"

    @property
    def is_integer(self) -> bool:
        """True for integers."""
        return self.dtype.kind in "iu"


class GraphSite:
    """Hold a graph of a model with the values of its first run."""

    def __init__(self, model: Model, scope: Scope, graph: Graph, path: tuple[Layer, ...], run: KnownRun) -> None:
        self.model, self.scope, self.graph, self.path, self.run = model, scope, graph, path, run
        self._values: dict[Source, Array | None] = {}
        self._readers: dict[Source, list[tuple[Layer, int]]] = {}
        self.size = max(1.0, len(graph.operations) / _SMALL)
        """How many times larger the graph is than one in which everything may be tried."""

    def edit(
        self,
        kind: EditKind,
        layer: Layer,
        price: float,
        apply: Apply,
        *,
        subject: str = "",
        before: str = "",
        after: str = "",
        roots: Sequence[int] = (),
        unknowns: Unknowns | None = None,
    ) -> RepairEdit:
        """Return an edit of a layer of this graph; its own value changes first where no other root is named."""
        address, site = LayerAddress(self.scope, layer.id), layer_site(layer, str(self.model.path))
        found = tuple(roots) or (layer.id,)
        return RepairEdit(kind, address, site, price, apply, subject, before, after, found, unknowns)

    @property
    def body(self) -> Body | None:
        """The body that this graph is; None for the model's own graph."""
        if not self.scope:
            return None
        return next(body for body in self.path[-1].bodies if body.role == self.scope[-1][1])

    @property
    def operations(self) -> Iterator[Layer]:
        """The layers that compute, those that nothing reads left out."""
        for layer in self.graph.operations:
            if layer.type in _EFFECTS or self.graph.readers.get(layer.id):
                yield layer

    def sources(self, layer: Layer) -> Sequence[Source | None]:
        """Return the sources of a layer."""
        return self.graph.sources[layer.id]

    def value(self, source: Source | None) -> Array | None:
        """Return the first value of an output in the run, or the value of a Constant."""
        if source is None:
            return None
        if source not in self._values:
            layer = self.graph.by_id[source.layer]
            if layer.type == "Constant":
                self._values[source] = np.asarray(constant_value(self.model, layer))
            else:
                self._values[source] = self.run.value(self.scope, source)
        return self._values[source]

    def has_negative(self, source: Source) -> bool:
        """Return True if a value of the run has a number below 0."""
        value = self.value(source)
        return value is not None and bool((value < 0).any())

    def form(self, source: Source | None) -> ValueForm | None:
        """Return type and shape of a value: those of the run, else those that the file declares."""
        value = self.value(source)
        if value is not None:
            return ValueForm(value.dtype, value.shape)
        if source is None:
            return None
        port = self.graph.by_id[source.layer].outputs[source.output]
        if port.element_type is None or min(port.dims, default=0) < 0:
            return None
        return ValueForm(port.element_type.dtype, port.dims)

    def output_form(self, layer: Layer, output: int = 0) -> ValueForm | None:
        """Return type and shape of an output of a layer."""
        return self.form(Source(layer.id, output)) if output < len(layer.outputs) else None

    def follows(self, layer: int, other: int) -> bool:
        """True if a layer depends on another one within one iteration; reading it from there would be a circle."""
        return bool(self._sources[layer] >> self.positions[other] & 1)

    @cached_property
    def _sources(self) -> dict[int, int]:
        """The layers on which each depends, itself among them, as bits at their positions."""
        found: dict[int, int] = {}
        waiting = [layer.id for layer in reversed(self.graph.layers)]
        while waiting:
            key = waiting[-1]
            before = {one.layer for one in self.graph.sources[key] if one is not None}
            missing = [one for one in before if one not in found]
            if not missing or key in found:
                waiting.pop()
                bits = 1 << self.positions[key]
                for one in before:
                    bits |= found[one]
                found[key] = bits
            else:
                waiting += missing
        return found

    @cached_property
    def by_form(self) -> dict[ValueForm, list[Source]]:
        """The values of the graph by type and shape, in the order of the file."""
        found: dict[ValueForm, list[Source]] = {}
        for layer in self.graph.layers:
            if layer.type == "Result":
                continue
            for output in range(len(layer.outputs)):
                form = self.form(Source(layer.id, output))
                if form is not None:
                    found.setdefault(form, []).append(Source(layer.id, output))
        return found

    def near(self, form: ValueForm, position: int, count: int) -> list[Source]:
        """Return values of a type and shape, the nearest to a place of the file first, at most twice the count."""
        sources = self.by_form.get(form, [])
        middle = bisect_left(sources, position, key=lambda one: self.positions[one.layer])
        found = sources[max(0, middle - count) : middle + count]
        return sorted(found, key=lambda one: abs(self.positions[one.layer] - position))

    def most(self, count: int, least: int) -> int:
        """Return how many values an edit may choose from: fewer in a large graph."""
        return max(least, int(count / self.size))

    @cached_property
    def positions(self) -> dict[int, int]:
        """The places of the layers in the file, by id."""
        return {layer.id: index for index, layer in enumerate(self.graph.layers)}

    def name(self, source: Source) -> str:
        """Return the name of a value: its layer's name, with the output if there are several."""
        layer = self.graph.by_id[source.layer]
        return f"{layer.name}:{source.output}" if len(layer.outputs) > 1 else layer.name

    def readers(self, source: Source) -> list[tuple[Layer, int]]:
        """Return who reads an output, each with the index of its input."""
        if source not in self._readers:
            self._readers[source] = [
                (layer, index)
                for layer, index in self.graph.readers.get(source.layer, ())
                if self.graph.sources[layer.id][index] == source
            ]
        return self._readers[source]

    def reader_ids(self, source: Source) -> tuple[int, ...]:
        """Return the ids of the layers that read an output."""
        return tuple(layer.id for layer, _index in self.readers(source))


_EFFECTS = ("Assign", "Result")
_SMALL = 100
"""Operations of a graph in which every value is tried for every other."""


def sites_of(model: Model, run: KnownRun) -> list[GraphSite]:
    """Return all graphs of a model, outer before inner."""
    return [GraphSite(model, scope, graph, path, run) for scope, path, graph in model.scopes()]
