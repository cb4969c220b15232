"""Known faults of the runtime: each with its pass or kernel, and the signatures by which it is recognised."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from enum import StrEnum
from pathlib import Path

from msgspec import json

from stepper.compare.rerun import CATALOGUE, DescribedFault
from stepper.diagnosis.reduce.draft import DraftBody, DraftGraph, DraftLayer, DraftModel
from stepper.diagnosis.reduce.reduced_case import first_changing_pass
from stepper.diagnosis.reduce.trials import FaultKind, FoundFault, RunSettings
from stepper.element_types import Array
from stepper.ir.model import Source
from stepper.operation_types import VIEWS
from stepper.records import Record

# Features of a model by which known faults of the runtime are recognised, and which a reduction may not bring in.

_IN_PLACE = (*VIEWS, "Abs", "Add", "Clamp", "LogicalNot", "Multiply", "Negative", "Relu", "Softmax", "Tanh")
_LOOPS = ("TensorIterator", "Loop")
_BOUNDS = ("Maximum", "Minimum")
_DIVISIONS = ("Divide", "Mod", "FloorMod")


class ModelFeature(StrEnum):
    """Feature of a model that no type of an operation tells."""

    VIEWED_CONSTANT = "a body reads a Constant through Reshape, Squeeze or Unsqueeze"
    VIEWED_INVARIANT = "a body reads an input that stays the same through Reshape, Squeeze or Unsqueeze"
    INVARIANT_SOFTMAX = "a body takes the Softmax of an input that stays the same"
    CONSTANT_SOFTMAX = "a body takes the Softmax of a Constant"
    SCALAR_PRODUCT = "a MatMul, or what is computed of it and constants, is reshaped to a scalar"
    BOUNDS_WITH_AXES = "Maximum and Minimum with one element each, and one has more axes than the bounded value"
    SCALAR_JOINED = "a loop joins the scalars of its iterations"
    LONG_PARTS = "a loop cuts or joins parts that are longer than 1, or with a stride"
    PARTS_BESIDE_STRIDE = "a loop cuts a tensor with a part_size that is not its stride"
    PIECES_BESIDE_STRIDE = "a loop joins pieces whose length is not its stride"
    SLICES_UNNEEDED = "a loop cuts a tensor into parts that nothing needs"
    NESTED = "a loop, an If or a recurrent cell is in a body"
    TRANSPOSE_REDUCED = "a reduction reads a Transpose"
    UNSQUEEZE_REDUCED = "a reduction reads an Unsqueeze"
    COMPRESSED_WEIGHTS = "a MatMul reads weights of 4 or 8 bits"
    QUANTISED_PRODUCT = "a MatMul multiplies two FakeQuantizes"
    SQUARE_SHARED = "several MatMuls share a square Constant"
    CARRIED_IN_PLACE = "a back edge carries a Parameter itself, or a view of it"
    CARRIED_OTHER_TYPE = "a back edge carries another element type than its Parameter has"
    HALF_READ_RESULT = "a Result feeds several outputs of a loop, and only some are read"
    PASSED_TO_OUTPUTS = "a Result passes a Parameter on to several outputs of a loop"
    INVARIANT_CARRIED = "a back edge carries an input that stays the same"
    COUNTER_AFTER_UNNEEDED = "an unused Parameter stands before the Parameter of current_iteration"
    COUNTER_AFTER_CONSTANT = "a Parameter with a Constant stands before the Parameter of current_iteration"
    REVERSED_RANGE = "a FakeQuantize whose input_low is not below its input_high"
    OPEN_STATE_HIDDEN = "a state of open shape is no output of its loop"
    NO_ITERATION = "a loop runs no iteration, and a state that comes out of it is computed without itself"
    GATHERED_BEYOND = "a Gather reads beyond its axis"
    INTEGERS_BY_ZERO = "a division of integers by a Constant 0"


_REDUCED = {"Transpose": ModelFeature.TRANSPOSE_REDUCED, "Unsqueeze": ModelFeature.UNSQUEEZE_REDUCED}


def features_of(model: DraftModel) -> frozenset[ModelFeature]:
    """Return the features of a model."""
    return frozenset(_features(model))


def _features(model: DraftModel) -> Iterator[ModelFeature]:
    for scope, graph in model.graphs():
        yield from _of_a_graph(graph)
        for layer in graph.layers.values():
            yield from _of_an_operation(graph, layer, in_a_body=bool(scope))
            for body in layer.bodies if layer.type in _LOOPS else ():
                yield from _of_a_loop(graph, layer, body)


def _of_a_graph(graph: DraftGraph) -> Iterator[ModelFeature]:
    for layer in graph.of_type("Constant"):
        dims = layer.outputs[0].dims
        if len(dims) == 2 and dims[0] == dims[1] and dims[0] != 1:
            readers = [reader for reader, _index in graph.readers(Source(layer.id, 0)) if reader.type == "MatMul"]
            if len(readers) > 1:
                yield ModelFeature.SQUARE_SHARED


def _of_an_operation(graph: DraftGraph, layer: DraftLayer, *, in_a_body: bool) -> Iterator[ModelFeature]:
    """Yield the features of an operation and of what it reads."""
    if in_a_body and (layer.bodies or layer.type.endswith("Cell")):
        yield ModelFeature.NESTED
    read = [None if source is None else graph.layers[source.layer] for source in layer.sources]
    if not read or read[0] is None:
        return
    if in_a_body and layer.type == "Softmax" and read[0].type == "Constant":
        yield ModelFeature.CONSTANT_SOFTMAX
    if layer.type in VIEWS:
        if in_a_body and read[0].type == "Constant":
            yield ModelFeature.VIEWED_CONSTANT
        if layer.outputs[0].dims == () and _is_of_product(graph, layer.sources[0]):
            yield ModelFeature.SCALAR_PRODUCT
    if layer.type in _BOUNDS and _has_bounds_with_axes(graph, layer):
        yield ModelFeature.BOUNDS_WITH_AXES
    if layer.type.startswith("Reduce") and read[0].type in _REDUCED:
        yield _REDUCED[read[0].type]
    if layer.type == "MatMul":
        yield from _of_a_product(graph, layer, read)
    yield from _left_open(graph, layer, [None if one is None else one.value for one in read])


def _of_a_product(graph: DraftGraph, layer: DraftLayer, read: Sequence[DraftLayer | None]) -> Iterator[ModelFeature]:
    if _is_compressed(graph, layer.sources[1]):
        yield ModelFeature.COMPRESSED_WEIGHTS
    if all(one is not None and one.type == "FakeQuantize" for one in read):
        yield ModelFeature.QUANTISED_PRODUCT


def _is_of_product(graph: DraftGraph, source: Source | None) -> bool:
    """Return True if a value is a MatMul, or computed of one and constants element by element."""
    while source is not None:
        layer = graph.layers[source.layer]
        if layer.type == "MatMul":
            return True
        computed = _computed(graph, layer)
        if len(computed) != 1 or layer.bodies or layer.type.startswith("Reduce"):
            return False
        source = computed[0]
    return False


def _computed(graph: DraftGraph, layer: DraftLayer) -> list[Source]:
    """Return what a layer reads but Constants."""
    return [one for one in layer.sources if one is not None and graph.layers[one.layer].type != "Constant"]


def _is_constant(graph: DraftGraph, source: Source) -> bool:
    """Return True if a value is a Constant, or computed of Constants alone."""
    makers = [graph.layers[key] for key in graph.needed([source.layer])]
    return all(one.type == "Constant" or (any(one.sources) and not one.bodies) for one in makers)


def _has_bounds_with_axes(graph: DraftGraph, layer: DraftLayer) -> bool:
    """Return True if a Maximum of a Minimum or the other way round bounds a value of fewer axes by single elements."""
    bounded = _computed(graph, layer)
    inner = graph.layers[bounded[0].layer] if len(bounded) == 1 else None
    if inner is None or {layer.type, inner.type} != {*_BOUNDS}:
        return False
    ports = [None if one is None else graph.layers[one.layer].outputs[one.output] for one in inner.sources]
    ranks = {len(port.dims) for port in ports if port is not None}
    return all(size == 1 for size in layer.outputs[0].dims) and (
        len(ranks) > 1 or ranks != {len(layer.outputs[0].dims)}
    )


def _is_compressed(graph: DraftGraph, source: Source | None) -> bool:
    """Return True if a value is made of a Constant of few bits by conversion and scales."""
    while source is not None:
        layer = graph.layers[source.layer]
        if layer.type == "Constant":
            kind = layer.outputs[0].element_type
            return kind is not None and kind.bits in (4, 8)
        if layer.type not in ("Convert", "Multiply", "Subtract", "Reshape", "Transpose"):
            return False
        source = layer.sources[0]
    return False


def _left_open(graph: DraftGraph, layer: DraftLayer, values: list[Array | None]) -> Iterator[ModelFeature]:
    """Yield what an operation with Constants asks for that the specification leaves open."""
    if layer.type in _DIVISIONS and (by := values[1]) is not None and by.dtype.kind in "iu" and not by.all():
        yield ModelFeature.INTEGERS_BY_ZERO
    low, high = values[1:3] if layer.type == "FakeQuantize" else (None, None)
    if low is not None and high is not None and low.shape == high.shape and (low >= high).any():
        yield ModelFeature.REVERSED_RANGE
    if layer.type == "Gather" and _reads_beyond(graph, layer, values):
        yield ModelFeature.GATHERED_BEYOND


def _reads_beyond(graph: DraftGraph, layer: DraftLayer, values: list[Array | None]) -> bool:
    source, indices, axis = layer.sources[0], values[1], values[2]
    dims = None if source is None else graph.layers[source.layer].outputs[source.output].dims
    if (
        dims is None
        or indices is None
        or axis is None
        or axis.size != 1
        or not -len(dims) <= int(axis.item()) < len(dims)
    ):
        return False
    size = dims[int(axis.item())]
    return size >= 0 and bool(((indices >= size) | (indices < -size)).any())


def _of_a_loop(graph: DraftGraph, layer: DraftLayer, body: DraftBody) -> Iterator[ModelFeature]:
    cuts = [entry.slicing for entry in body.inputs if entry.slicing is not None]
    joins = [entry.slicing for entry in body.outputs if entry.slicing is not None]
    if any(abs(one.stride) != 1 or one.part_size != 1 for one in (*cuts, *joins)):
        yield ModelFeature.LONG_PARTS
    if any(one.part_size is not None and abs(one.stride) != one.part_size for one in cuts):
        yield ModelFeature.PARTS_BESIDE_STRIDE
    if layer.type == "Loop" and _runs_never(graph, layer) and any(_sets_anew(body)):
        yield ModelFeature.NO_ITERATION
    yield from _of_parameters(graph, layer, body)
    yield from _of_results(graph, layer, body)
    yield from _of_back_edges(body)


def _runs_never(graph: DraftGraph, loop: DraftLayer) -> bool:
    """Return True if the trip count is 0, or the condition false, before the first iteration."""
    given = [None if one is None else graph.layers[one.layer].value for one in loop.sources[:2]]
    return any(one is not None and one.size == 1 and not one.item() for one in given)


def _sets_anew(body: DraftBody) -> Iterator[bool]:
    """Yield of each state that is an output whether it is computed without itself."""
    given_out = {one.result for one in body.outputs if one.output is not None and one.slicing is None}
    for edge in body.back_edges:
        if edge.from_layer in given_out:
            yield edge.to_layer not in body.graph.needed([edge.from_layer])


def _of_parameters(graph: DraftGraph, layer: DraftLayer, body: DraftBody) -> Iterator[ModelFeature]:
    needed, inner = _needed(graph, layer, body), body.graph
    if any(entry.slicing is not None and entry.parameter not in needed for entry in body.inputs):
        yield ModelFeature.SLICES_UNNEEDED
    invariants = _invariants(body)
    for one in inner.layers.values():
        source = one.sources[0] if one.type in (*VIEWS, "Softmax") else None
        if source is not None and source.layer in invariants:
            yield ModelFeature.VIEWED_INVARIANT if one.type in VIEWS else ModelFeature.INVARIANT_SOFTMAX
    counter = next((one.parameter for one in body.inputs if one.purpose == "current_iteration"), None)
    if counter is None:
        return
    parameters = [one.id for one in inner.of_type("Parameter")]
    before = set(parameters[: parameters.index(counter)])
    if before - needed:
        yield ModelFeature.COUNTER_AFTER_UNNEEDED
    for entry in body.inputs:
        source = None if entry.input is None else layer.sources[entry.input]
        if source is not None and _is_constant(graph, source) and entry.parameter in before & invariants:
            yield ModelFeature.COUNTER_AFTER_CONSTANT


def _of_results(graph: DraftGraph, layer: DraftLayer, body: DraftBody) -> Iterator[ModelFeature]:
    inner, of_result = body.graph, dict[int, list[bool]]()
    for entry in body.outputs:
        made = inner.layers[entry.result].sources[0]
        if made is None or entry.output is None:
            continue
        is_read = graph.is_read(Source(layer.id, entry.output))
        of_result.setdefault(entry.result, []).append(is_read)
        if entry.slicing is not None:
            dims = inner.layers[made.layer].outputs[made.output].dims
            if dims == ():
                yield ModelFeature.SCALAR_JOINED
            elif -len(dims) <= entry.slicing.axis < len(dims):
                size = dims[entry.slicing.axis]
                if size not in (-1, abs(entry.slicing.stride)):
                    yield ModelFeature.PIECES_BESIDE_STRIDE
    for result, reads in of_result.items():
        if len(reads) > 1 and any(reads) and not all(reads):
            yield ModelFeature.HALF_READ_RESULT
        made = inner.layers[result].sources[0]
        if len(reads) > 1 and made is not None and inner.layers[made.layer].type == "Parameter":
            yield ModelFeature.PASSED_TO_OUTPUTS


def _of_back_edges(body: DraftBody) -> Iterator[ModelFeature]:
    inner, invariants = body.graph, _invariants(body)
    constant = invariants | {
        one.to_layer for one in body.back_edges if inner.layers[one.from_layer].sources[0] == Source(one.to_layer, 0)
    }
    # New slices are written first, then what is carried in the order of the inputs.
    order = {one.parameter: (one.slicing is None, one.input) for one in body.inputs if one.input is not None}
    exposed = {one.result for one in body.outputs if one.slicing is None and one.output is not None}
    for edge in body.back_edges:
        made = inner.layers[edge.from_layer].sources[0]
        if made is None:
            continue
        if made.layer in constant - {edge.to_layer}:
            yield ModelFeature.INVARIANT_CARRIED
        for parameter in _in_place_of(inner, made):
            is_written = parameter in order and edge.to_layer in order and parameter not in invariants
            if is_written and order[parameter] < order[edge.to_layer]:
                yield ModelFeature.CARRIED_IN_PLACE
        if (
            inner.layers[made.layer].outputs[made.output].element_type
            != inner.layers[edge.to_layer].outputs[0].element_type
        ):
            yield ModelFeature.CARRIED_OTHER_TYPE
        dims = inner.layers[edge.to_layer].outputs[0].dims
        if -1 in dims and edge.from_layer not in exposed:
            yield ModelFeature.OPEN_STATE_HIDDEN


def _in_place_of(graph: DraftGraph, source: Source) -> Iterator[int]:
    """Yield the Parameters whose memory a value may share.

    The value reads a Parameter directly, or through views and operations in place.
    """
    waiting, done = [(source.layer, False)], set[tuple[int, bool]]()
    while waiting:
        key, through_view = waiting.pop()
        if (key, through_view) in done:
            continue
        done.add((key, through_view))
        layer = graph.layers[key]
        if layer.type == "Parameter":
            if key == source.layer or through_view:
                yield key
        elif layer.type in _IN_PLACE:
            read = layer.sources[:1] if layer.type in VIEWS else layer.sources
            seen = through_view or layer.type in VIEWS
            waiting += [(one.layer, seen) for one in read if one is not None]


def _invariants(body: DraftBody) -> set[int]:
    carried = {edge.to_layer for edge in body.back_edges}
    return {one.parameter for one in body.inputs if one.slicing is None and one.input is not None} - carried


def _needed(graph: DraftGraph, layer: DraftLayer, body: DraftBody) -> set[int]:
    """Return the layers of a body that its condition needs, or an output that is read, in whichever iteration."""
    waiting = [
        one.result
        for one in body.outputs
        if one.purpose == "execution_condition"
        or (one.output is not None and graph.is_read(Source(layer.id, one.output)))
    ]
    needed = set[int]()
    while waiting:
        key = waiting.pop()
        if key not in needed:
            needed.add(key)
            waiting += [one.layer for one in _needed_sources(body.graph, body.graph.layers[key])]
            waiting += [edge.from_layer for edge in body.back_edges if edge.to_layer == key]
    return needed


def _needed_sources(graph: DraftGraph, layer: DraftLayer) -> Iterator[Source]:
    """Yield what a layer needs of what it reads: all, but for a loop whose body does not need an input."""
    dropped = set[int]()
    for body in layer.bodies if layer.type in _LOOPS else ():
        needed = _needed(graph, layer, body)
        mapped = [one for one in body.inputs if one.input is not None]
        kept = {one.input for one in mapped if one.parameter in needed}
        dropped |= {one.input for one in mapped if one.input is not None} - {one for one in kept if one is not None}
    if layer.type == "Loop":
        dropped -= {0, 1}
    yield from (one for index, one in enumerate(layer.sources) if one is not None and index not in dropped)


class ShownFacts(Record):
    """Features of a reduced model, types of its operations, and the first pass that changes what it computes (empty:
    none).
    """

    types: frozenset[str] = frozenset()
    changed_by: str = ""
    features: frozenset[ModelFeature] = frozenset()


class FaultSignature(Record):
    """Features of a reduced model and of the way it shows, all of a known fault; an empty one is not asked for.

    `kinds` are those of the disagreement, `what` is in its place in OpenVINO's sources, one of `says` in its message;
    `types` are operations that the model has, all of them, `one_of` some, and `feature` is a further one;
    `changed_by` is in the name of the first pass that changes what it computes.
    """

    kinds: tuple[FaultKind, ...]
    what: str = ""
    says: tuple[str, ...] = ()
    types: tuple[str, ...] = ()
    one_of: tuple[str, ...] = ()
    feature: ModelFeature | None = None
    changed_by: str = ""

    def fits(self, fault: FoundFault, shown: ShownFacts) -> bool:
        """True if a reduced model has all these features."""
        return (
            self.may_fit(fault)
            and shown.types.issuperset(self.types)
            and (not self.one_of or bool({*self.one_of} & shown.types))
            and (self.feature is None or self.feature in shown.features)
            and self.changed_by in shown.changed_by
        )

    def may_fit(self, fault: FoundFault) -> bool:
        """True if a disagreement shows in this way, whatever the model is."""
        # Where our engine fails, the runtime computes what it should have refused.
        program = "stepper" if fault.kind is FaultKind.ERROR else "OpenVINO"
        return (
            fault.kind in self.kinds
            and fault.program == program
            and self.what in fault.what
            and (not self.says or any(text in fault.message for text in self.says))
        )


class RuntimeFault(DescribedFault, kw_only=True):
    """A fault of the runtime, and how it shows."""

    signatures: tuple[FaultSignature, ...]


_UNDEFINED = (
    ModelFeature.CARRIED_OTHER_TYPE,
    ModelFeature.GATHERED_BEYOND,
    ModelFeature.INTEGERS_BY_ZERO,
    ModelFeature.OPEN_STATE_HIDDEN,
    ModelFeature.PIECES_BESIDE_STRIDE,
)
"""Behaviour that the specification leaves open, or that the runtime should refuse."""

FAULTS = json.decode(CATALOGUE.read_bytes(), type=tuple[RuntimeFault, ...])
"""The catalogue. The first whose signature fits is the name of a disagreement."""


def recognised(fault: FoundFault, shown: ShownFacts) -> RuntimeFault | None:
    """Return the known fault that a reduced model shows; None for a new one."""
    return next((known for known in FAULTS if any(one.fits(fault, shown) for one in known.signatures)), None)


def causes_of(fault: FoundFault) -> frozenset[ModelFeature]:
    """Return the features of known faults that show as a disagreement does: a model that gets one may show another."""
    signatures = [one for known in FAULTS for one in known.signatures if one.may_fit(fault)]
    return frozenset((*_UNDEFINED, *(one.feature for one in signatures if one.feature is not None)))


# Facts of a reduced model, by which known faults are recognised.


SETTINGS = RunSettings("openvino", 1000)
"""How a hunt runs its models."""


def shown_facts(model: DraftModel, path: Path, fault: FoundFault) -> ShownFacts:
    """Return what a reduced model with this fault shows."""
    changes = fault.kind in (FaultKind.VALUES, FaultKind.SHAPES) and fault.program == "OpenVINO"
    found = first_changing_pass(path, model.inputs, SETTINGS) if changes else None
    types = frozenset(layer.type for _address, layer in model.operations())
    return ShownFacts(types, "" if found is None else found.name, features_of(model))
