"""Rules of values that are carried or computed, and that nobody reads."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

import numpy as np

from stepper.diagnosis.findings import ERROR, NOTE, WARNING
from stepper.diagnosis.lint.subjects import PASSING, IfSubject, LayerSubject, LoopSubject, known_chain, known_value
from stepper.diagnosis.rule import IF, LAYER, LOOP, Hits, found_by, inside, outside
from stepper.ir.constants import small_constant
from stepper.ir.model import Graph, Layer, Source

_WEIGHTS: Final[Mapping[str, Mapping[int, int]]] = {
    "Multiply": {0: 1, 1: 0},
    "MatMul": {0: 1, 1: 0},
    "Convolution": {1: 0},
    "GroupConvolution": {1: 0},
    "LSTMCell": {3: 0, 4: 1},
    "GRUCell": {2: 0, 3: 1},
    "RNNCell": {2: 0, 3: 1},
    "LSTMSequence": {4: 0, 5: 1},
    "GRUSequence": {3: 0, 4: 1},
    "RNNSequence": {3: 0, 4: 1},
}
"""Products: the inputs that may be weights, and the input with which each is multiplied."""


@found_by(
    "N201",
    "state-nobody-reads",
    LOOP,
    NOTE,
    says="{parameter} is carried from iteration to iteration, and nothing in the body reads it",
    means="the back edge has no effect but for the output; a state that was meant to be used is not",
    do="let the body read it, or remove the back edge",
    source="specification/TensorIterator-1, back_edges",
)
def state_nobody_reads(loop: LoopSubject) -> Hits:
    """Carried Parameters without readers."""
    for parameter in loop.roles.merged_from:
        if not loop.is_read(parameter):
            yield inside(loop.inner.by_id[parameter], parameter=loop.name(parameter))


@found_by(
    "N202",
    "slices-nobody-reads",
    LOOP,
    NOTE,
    says="{parameter} gets a slice in each iteration, and nothing in the body reads it",
    means="the input counts for the number of iterations alone",
    do="let the body read it, or map the input without an axis",
    source="specification/TensorIterator-1, port_map",
)
def slices_nobody_reads(loop: LoopSubject) -> Hits:
    """Sliced Parameters without readers."""
    for entry in loop.roles.sliced:
        if not loop.is_read(entry.parameter):
            yield inside(entry)


@found_by(
    "N203",
    "outputs-nobody-reads",
    LOOP,
    NOTE,
    says="nothing reads any output of the loop",
    means="the loop runs for nothing, or OpenVINO leaves it out",
    do="connect an output, or remove the loop",
)
def outputs_nobody_reads(loop: LoopSubject) -> Hits:
    """Loops that give nothing to anybody."""
    if loop.layer.outputs and not loop.graph.readers.get(loop.layer.id):
        yield outside(loop.layer)


@found_by(
    "N204",
    "dead-operations",
    LOOP,
    NOTE,
    says="{layer} is computed in each iteration{more}, and no Result of the body depends on it",
    means="nothing but time; what was meant to use it reads something else",
    do="connect it, or remove it",
)
def dead_operations(loop: LoopSubject) -> Hits:
    """Operations of a body that lead to no Result; the first of them, with how many there are."""
    quiet = ("Parameter", "Constant", "Result", "Assign")
    sinks = [layer for layer in loop.inner.layers if layer.type in ("Result", "Assign")]
    alive = loop.ancestors(*(source for layer in sinks for source in loop.inner.sources[layer.id]))
    dead = [layer for layer in loop.inner.layers if layer.id not in alive and layer.type not in quiet]
    if dead:
        more = f" (with {len(dead) - 1} more)" if len(dead) > 1 else ""
        yield inside(dead[-1], more=more)


@found_by(
    "N205",
    "if-side-ignores-input",
    IF,
    NOTE,
    says="no side of the If reads input {number} ('{value}')",
    means="the input has no effect",
    do="connect it in one of the bodies, or remove it",
    source="specification/If-8",
)
def if_ignores_input(facts: IfSubject) -> Hits:
    """Inputs of an If that neither side reads."""
    for index in range(1, len(facts.layer.inputs)):
        if not any(
            entry.input == index and side.is_read(entry.parameter)
            for side in facts.sides()
            for entry in side.body.inputs
        ):
            source = facts.source(index)
            yield outside(
                facts.layer, number=index, value="" if source is None else facts.graph.by_id[source.layer].name
            )


@found_by(
    "N206",
    "runs-once",
    LOOP,
    NOTE,
    says="nothing is sliced and nothing is joined: the TensorIterator has one iteration",
    means="its back edges carry nothing, and a body that runs once needs no loop",
    do="give the input that is iterated over an axis",
)
def runs_once(loop: LoopSubject) -> Hits:
    """TensorIterators without slices and pieces."""
    if not loop.is_loop and not loop.roles.sliced and all(one.slicing is None for one in loop.body.outputs):
        yield outside(loop.layer)


def _is_zero(facts: LayerSubject) -> bool:
    """Return True for a Constant that may be 0 everywhere: of large ones that is not known yet."""
    small = small_constant(facts.layer, facts.model.weights)
    return facts.magnitude == 0 if small is None else not small.any()


@found_by(
    "N207",
    "multiplied-by-zero",
    LAYER,
    WARNING,
    "Constant",
    says="{layer} multiplies {value} by {constant}, which is 0 everywhere",
    means="nothing of the value is left, in any iteration",
    do="look whether the Constant is the one that was meant, and at its offset",
    source="specification of Multiply, MatMul, Convolution and the cells",
    suspects=_is_zero,
)
def multiplied_by_zero(facts: LayerSubject) -> Hits:
    """Products in a body, or in a sequence, with a Constant of nothing but 0."""
    graph, constant = facts.graph, facts.layer
    products = [one for one in _products(graph, constant) if facts.path or one[0].type.endswith("Sequence")]
    value = known_value(facts.model, graph, Source(constant.id, 0)) if products else None
    if value is None or not value.size or value.any():
        return
    for product, index in products:
        other = graph.sources[product.id][_WEIGHTS[product.type][index]]
        if other is not None and known_chain(graph, other) is None:
            yield outside(product, constant=constant, value=graph.by_id[other.layer])


def _products(graph: Graph, layer: Layer) -> Iterator[tuple[Layer, int]]:
    """Yield the products that read a value, or its elements in another type, shape or order; with the input's index."""
    for reader, index in graph.readers.get(layer.id, ()):
        if index in _WEIGHTS.get(reader.type, ()):
            yield reader, index
        elif (reader.type in PASSING or reader.type == "Transpose") and not index:
            yield from _products(graph, reader)


@found_by(
    "N208",
    "constant-has-nan",
    LAYER,
    ERROR,
    "Constant",
    says="{layer} has NaN in {count} of {size} elements",
    means="what is computed of them is NaN",
    do="look where the weights come from, and at the offset of the Constant",
    source="IEEE 754",
    suspects=lambda facts: bool(np.isnan(facts.magnitude)),
)
def constant_has_nan(facts: LayerSubject) -> Hits:
    """Weights that are no numbers; large ones are not looked through."""
    value = facts.own_value
    if value is not None:
        count = int(np.isnan(value.astype(np.float64)).sum())
        yield outside(facts.layer, count=count, size=value.size)
