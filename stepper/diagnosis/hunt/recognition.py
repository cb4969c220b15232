"""Features of a reduced model, by which known faults are recognised."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Final

from stepper.diagnosis.hunt.faults import ModelFeature, ShownFacts
from stepper.diagnosis.lint.linting import lint
from stepper.diagnosis.reduce.case import first_changing_pass
from stepper.diagnosis.reduce.conditions import FaultKind, FoundFault
from stepper.diagnosis.reduce.draft import DraftBody, DraftGraph, DraftLayer, DraftModel
from stepper.diagnosis.reduce.trial_acts import RunSettings

_VIEWS: Final = ("Reshape", "Squeeze", "Unsqueeze")
_LOOPS: Final = ("TensorIterator", "Loop")
_REDUCED: Final = {"Transpose": ModelFeature.TRANSPOSE_REDUCED, "Unsqueeze": ModelFeature.UNSQUEEZE_REDUCED}


def shown_facts(model: DraftModel, path: Path, fault: FoundFault, settings: RunSettings) -> ShownFacts:
    """Return the features of a reduced model with this fault."""
    changes = fault.kind in (FaultKind.VALUES, FaultKind.SHAPES) and fault.program == "OpenVINO"
    found = first_changing_pass(path, model.inputs, settings) if changes else None
    return ShownFacts(
        frozenset(finding.rule for finding in lint(path)),
        frozenset(layer.type for _address, layer in model.operations()),
        "" if found is None else found.name,
        frozenset(_features(model)),
    )


def _features(model: DraftModel) -> Iterator[ModelFeature]:
    for scope, graph in model.graphs():
        for layer in graph.layers.values():
            yield from _of_an_operation(graph, layer, in_a_body=bool(scope))
            for body in layer.bodies if layer.type in _LOOPS else ():
                yield from _of_a_loop(graph, layer, body)


def _of_an_operation(graph: DraftGraph, layer: DraftLayer, *, in_a_body: bool) -> Iterator[ModelFeature]:
    """Yield the features of an operation and of what it reads."""
    if in_a_body and (layer.bodies or layer.type.endswith("Cell")):
        yield ModelFeature.NESTED
    source = layer.sources[0] if layer.sources else None
    read = None if source is None else graph.layers[source.layer]
    if read is None:
        return
    if layer.type in _VIEWS:
        if in_a_body and read.type == "Constant":
            yield ModelFeature.VIEWED_CONSTANT
        if read.type == "MatMul" and layer.outputs[0].dims == ():
            yield ModelFeature.SCALAR_PRODUCT
    if layer.type.startswith("Reduce") and read.type in _REDUCED:
        yield _REDUCED[read.type]


def _of_a_loop(graph: DraftGraph, layer: DraftLayer, body: DraftBody) -> Iterator[ModelFeature]:
    cuts = [entry.slicing for entry in body.inputs if entry.slicing is not None]
    joins = [entry.slicing for entry in body.outputs if entry.slicing is not None]
    if any(abs(one.stride) != 1 or one.part_size != 1 for one in (*cuts, *joins)):
        yield ModelFeature.LONG_PARTS
    is_constant = all(source is None or graph.layers[source.layer].type == "Constant" for source in layer.sources)
    if is_constant:
        yield ModelFeature.CONSTANT_LOOP
    carried = {edge.to_layer for edge in body.back_edges}
    invariants = {entry.parameter for entry in body.inputs if entry.slicing is None and entry.input is not None}
    for inner in body.graph.layers.values():
        source = inner.sources[0] if inner.type in _VIEWS else None
        if source is not None and source.layer in invariants - carried:
            yield ModelFeature.VIEWED_INVARIANT
    for entry in body.outputs:
        made = body.graph.layers[entry.result].sources[0]
        if entry.slicing is None or made is None:
            continue
        if body.graph.layers[made.layer].outputs[made.output].dims == ():
            yield ModelFeature.SCALAR_JOINED
