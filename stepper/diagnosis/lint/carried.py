"""Rules of what loops carry: back edges, and values that nobody reads."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

import numpy as np

from stepper.diagnosis.lint.subjects import (
    PASSING,
    IfSubject,
    LayerSubject,
    LoopSubject,
    declared,
    known_chain,
    of_parameter,
)
from stepper.diagnosis.rule import NOTE, WARNING, Hits, found_by, found_in, inside, outside
from stepper.element_types import is_floating
from stepper.ir.constants import small_constant
from stepper.ir.model import BackEdge, Graph, Layer, Source

# Rules of back edges: those without effect, those that are missing, and what they carry.


_STATE_INPUTS = {"LSTMCell": (1, 2), "GRUCell": (1,), "RNNCell": (1,)}
"""Inputs of a cell that are its state from the iteration before."""
_MAKERS = frozenset({*_STATE_INPUTS, "Select"})
_ACCUMULATING = frozenset({"Add", "Subtract", "Concat", "Maximum", "Minimum", "Multiply", "Select"})
_NEAR = 2
"""So many operations may lie between a state and its next value."""
_NEUTRAL = {
    "Add": ("adds", 0, (0, 1)),
    "Subtract": ("subtracts", 0, (1,)),
    "Multiply": ("multiplies by", 1, (0, 1)),
    "Divide": ("divides by", 1, (1,)),
}
"""Operations that change nothing with one operand: in words, that operand, and on which side it may stand."""
_STATES = ("the hidden state", "the cell state")


@found_by
def two_back_edges_to_one_parameter(loop: LoopSubject) -> Hits:
    """Back edges to a Parameter that has one already."""
    first: dict[int, int] = {}
    for edge in loop.body.back_edges:
        before = first.setdefault(edge.to_layer, edge.from_layer)
        if before != edge.from_layer and edge.to_layer in loop.inner.by_id:
            names = {"parameter": loop.name(edge.to_layer), "first": loop.name(before)}
            left = _fitting(loop, edge.from_layer)
            instead = f"; {loop.site(left[0])} is never updated" if len(left) == 1 else ""
            yield inside(edge, second=loop.name(edge.from_layer), instead=instead, **names)


@found_by
def back_edge_to_sliced_parameter(loop: LoopSubject) -> Hits:
    """Back edges to sliced Parameters."""
    sliced = {entry.parameter for entry in loop.roles.sliced}
    for edge in loop.body.back_edges:
        if edge.to_layer in sliced:
            yield inside(edge)


@found_by
def back_edge_to_nothing(loop: LoopSubject) -> Hits:
    """Back edges to what is no Parameter of the body, or one that the loop itself writes in each iteration."""
    for edge in loop.body.back_edges:
        target = loop.inner.by_id.get(edge.to_layer)
        is_counter = edge.to_layer in loop.roles.current_iteration
        if target is None or target.type != "Parameter" or is_counter:
            what = "not in the body" if target is None else f"a {target.type}, not a Parameter"
            what = "the iteration number, which the loop itself writes" if is_counter else what
            yield inside(edge, id=edge.to_layer, what=what)


@found_by
def carried_without_start(loop: LoopSubject) -> Hits:
    """Parameters with a back edge that begin with nothing."""
    for edge in loop.body.back_edges:
        unfed = next((one for one in loop.roles.unfed if one.id == edge.to_layer), None)
        if unfed is not None and not loop.body.first_draft:
            yield inside(unfed, result=loop.name(edge.from_layer), id=unfed.id)


@found_by
def state_not_carried(loop: LoopSubject) -> Hits:
    """States of cells that are the same in each iteration, though the body gives the new one to a Result."""
    for entry in loop.roles.invariant:
        for reader, index in loop.inner.readers.get(entry.parameter, ()):
            cell = _cell_of(loop, reader, index)
            if cell is None:
                continue
            state = Source(cell[0].id, cell[1])
            given = [one.id for one in loop.inner.results if loop.origin(loop.given_to(one.id)) == state]
            if given:
                yield inside(
                    loop.inner.by_id[entry.parameter],
                    result=given[0],
                    id=entry.parameter,
                    parameter=loop.name(entry.parameter),
                    cell=cell[0],
                )


def _state_given(loop: LoopSubject, result: int) -> Source | None:
    """Return what makes the value of a Result, before its shape changed and before a mask chose it or another value."""
    origin = loop.origin(loop.given_to(result))
    for _ in range(4):
        chooser = loop.inner.layer_of(origin)
        if chooser.type != "Select":
            return origin
        chosen = {loop.origin(one) for one in loop.inner.sources[chooser.id][1:]}
        makers = [one for one in chosen if loop.inner.layer_of(one).type in _MAKERS]
        if len(makers) != 1:
            return origin
        origin = makers[0]
    return origin


def _cell_of(loop: LoopSubject, reader: Layer, index: int) -> tuple[Layer, int] | None:
    """Return the cell whose state a reader takes, directly or in another shape, and which of its outputs is the new."""
    for _ in range(4):
        if reader.type in _STATE_INPUTS:
            states = _STATE_INPUTS[reader.type]
            return (reader, states.index(index)) if index in states else None
        if reader.type not in ("Squeeze", "Unsqueeze", "Reshape") or index:
            return None
        onward = loop.inner.readers[reader.id]
        if len(onward) != 1:
            return None
        reader, index = onward[0]
    return None


@found_by
def result_without_use(loop: LoopSubject) -> Hits:
    """Results that nothing uses, where a Parameter could be what they were meant for."""
    used = {entry.result for entry in loop.body.outputs} | {edge.from_layer for edge in loop.body.back_edges}
    used |= {entry.result for entry in loop.body.ignored}
    for result in loop.inner.results:
        if result.id in used:
            continue
        before = loop.ancestors(loop.given_to(result.id))
        fitting = [one for one in _fitting(loop, result.id) if one.id in before]
        if len(fitting) == 1:
            yield inside(result, parameter=fitting[0], from_id=result.id, to_id=fitting[0].id)


def _carried(loop: LoopSubject) -> Iterator[tuple[BackEdge, Layer]]:
    """Yield the back edges that count, each with its Parameter."""
    for edge in loop.body.back_edges:
        target = loop.inner.by_id.get(edge.to_layer)
        if target is not None and loop.roles.merged_from.get(edge.to_layer) == edge.from_layer:
            yield edge, target


def accumulated(loop: LoopSubject, source: Source | None) -> frozenset[int]:
    """Return the Parameters to which an operation adds, joins or holds something: it is the next value of one of them.

    Those are its operands, in another shape, behind a mask, or scaled by a product.
    """
    found: set[int] = set()
    waiting = [(loop.origin(source), _NEAR)]
    while waiting:
        one, depth = waiting.pop()
        layer = loop.inner.layer_of(one)
        if layer.type == "Parameter":
            found.add(layer.id)
        elif depth and layer.type in _ACCUMULATING:
            operands = loop.inner.sources[layer.id]
            taken = operands[:1] if layer.type == "Subtract" else operands[1:] if layer.type == "Select" else operands
            waiting += [(loop.origin(operand), depth - 1) for operand in taken]
    return frozenset(found)


def _is_declared_as(loop: LoopSubject, layer: Layer, parameter: Layer) -> bool:
    """Return True if what a layer gives has the type and the rank of a Parameter."""
    given, taken = declared(loop.inner, Source(layer.id, 0)), of_parameter(parameter)
    return given.type == taken.type and (given.rank or 0) == taken.rank


def _could_carry(loop: LoopSubject, result: int, parameter: Layer) -> bool:
    """Return True if a Result is declared as a Parameter is: as one may be, open dimensions are so in both."""
    given, taken = loop.of_result(result), of_parameter(parameter)
    if given.type != taken.type or taken.rank is None or loop.given_to(result) is None:
        return False
    rank = 0 if given.shape is None else given.rank  # the port of a scalar has no dims
    return rank == taken.rank and all(given.size(axis) == taken.size(axis) for axis in range(taken.rank))


def _fitting(loop: LoopSubject, result: int) -> list[Layer]:
    """Return the invariant Parameters whose next value a Result could be."""
    unchanging = (loop.inner.by_id[entry.parameter] for entry in loop.roles.invariant)
    return [one for one in unchanging if _could_carry(loop, result, one)]


@found_by
def maybe_not_carried(loop: LoopSubject) -> Hits:
    """Results that go out and could be the next value of a Parameter to which nothing is carried."""
    carried = set(loop.roles.merged_from)
    sources = {edge.from_layer for edge in loop.body.back_edges}
    condition = loop.condition_result
    last = {entry.result for entry in loop.body.outputs if entry.slicing is None}
    for result in dict.fromkeys(entry.result for entry in loop.body.outputs if entry.output is not None):
        if result in sources or result == condition or result not in loop.inner.by_id:
            continue
        before = loop.ancestors(loop.given_to(result))
        if before & carried and result not in last:
            continue
        fitting = [one for one in _fitting(loop, result) if one.id in before]
        if len(fitting) > 1:
            adding = accumulated(loop, loop.given_to(result))
            fitting = [one for one in fitting if one.id in adding]
        if len(fitting) == 1:
            yield inside(loop.inner.by_id[result], parameter=fitting[0], from_id=result, to_id=fitting[0].id)


@found_by
def carried_type(loop: LoopSubject) -> Hits:
    """Back edges between different types."""
    for edge, target in _carried(loop):
        given, taken = loop.of_result(edge.from_layer).type, of_parameter(target).type
        if given is None or taken is None or (is_floating(given.dtype) and is_floating(taken.dtype)):
            continue  # the precision of the first value counts
        if given != taken:
            yield inside(
                edge,
                parameter=target,
                given=given.name,
                taken=taken.name,
            )


@found_by
def carried_rank(loop: LoopSubject) -> Hits:
    """Back edges between different ranks."""
    for edge, target in _carried(loop):
        carried, first = loop.of_result(edge.from_layer), loop.fed(edge.to_layer)
        given, taken = carried.rank, first.rank
        if given is not None and taken is not None and given != taken:
            hit = inside(edge, parameter=target, given=given, taken=taken)
            is_one = carried.may_be_one_element and first.may_be_one_element  # some releases of OpenVINO reshape it
            yield hit.graded(NOTE) if is_one else hit


@found_by
def state_never_changes(loop: LoopSubject) -> Hits:
    """Back edges from a Parameter to itself; a warning where a new value of it is computed, and goes nowhere."""
    for edge, target in _carried(loop):
        if loop.inner.layer_of(loop.origin(loop.given_to(edge.from_layer))) is target:
            new = [
                one
                for one in loop.inner.layers
                if one.type in _ACCUMULATING
                and edge.to_layer in accumulated(loop, Source(one.id, 0))
                and _is_declared_as(loop, one, target)
            ]
            instead = f", and {loop.site(new[0])}, which is computed of it, is not carried" if len(new) == 1 else ""
            hit = inside(edge, parameter=target, instead=instead)
            is_lost = len(new) == 1 and not loop.is_read(new[0].id)
            yield hit.graded(WARNING) if is_lost else hit


@found_by
def cell_states_crossed(loop: LoopSubject) -> Hits:
    """States of a cell that get what another output of it, or of another cell, gives."""
    for edge, target in _carried(loop):
        origin = _state_given(loop, edge.from_layer)
        maker = loop.inner.layer_of(origin)
        if origin is None or maker.type not in _STATE_INPUTS:
            continue
        cells = [one for pair in loop.inner.readers[target.id] if (one := _cell_of(loop, *pair)) is not None]
        if not cells or any((cell.id, state) == (maker.id, origin.output) for cell, state in cells):
            continue
        cell, state = cells[0]
        if any(reader.id == maker.id for reader, _index in loop.inner.readers[target.id]) and cell is not maker:
            continue
        given = (one for one in loop.inner.results if _state_given(loop, one.id) == Source(cell.id, state))
        right = next(map(str, map(loop.site, given)), f"a Result of output {state} of the cell")
        yield inside(
            edge,
            parameter=target,
            taken=_STATES[state],
            cell=cell,
            given=_STATES[origin.output],
            other=maker,
            expected=right,
        )


@found_by
def another_state_carried(loop: LoopSubject) -> Hits:
    """Parameters whose next value another Result computes than the one that is carried to them."""
    carried = {target.id: edge.from_layer for edge, target in _carried(loop)}
    adding = {
        one.id: accumulated(loop, given) & set(carried)
        for one in loop.inner.results
        if not _is_parameter(loop, given := loop.given_to(one.id))
    }
    at_home = {result for parameter, result in carried.items() if parameter in adding.get(result, ())}
    for edge, target in _carried(loop):
        source = loop.given_to(edge.from_layer)
        if target.id in loop.ancestors(source):
            continue
        own = [
            result
            for result, parameters in adding.items()
            if parameters == {target.id} and result not in at_home and _could_carry(loop, result, target)
        ]
        if len(own) != 1:
            continue
        other = [parameter for parameter, result in carried.items() if result == own[0]]
        where = f"to {loop.name(other[0])}" if other else "nowhere in the next iteration"
        hit = inside(edge, parameter=target, where=where, given=loop.name(edge.from_layer), own=loop.name(own[0]))
        passed = adding.get(edge.from_layer, frozenset())
        yield hit.graded(NOTE) if other and passed & set(other) else hit


@found_by
def state_carried_elsewhere(loop: LoopSubject) -> Hits:
    """Results that update one Parameter, and are carried to another."""
    carried = set(loop.roles.merged_from)
    for edge, target in _carried(loop):
        source = loop.given_to(edge.from_layer)
        adding = accumulated(loop, source)
        if target.id in loop.ancestors(source) or adding & carried or _is_parameter(loop, source):
            continue
        own = [one for one in _fitting(loop, edge.from_layer) if one.id in adding]
        if len(own) == 1:
            yield inside(edge, parameter=target, id=own[0].id, given=loop.name(edge.from_layer), own=own[0])


def _is_parameter(loop: LoopSubject, source: Source | None) -> bool:
    return loop.inner.layer_of(loop.origin(source)).type in ("", "Parameter")


@found_by
def state_computed_to_itself(loop: LoopSubject) -> Hits:
    """States to which 0 is added, or that are multiplied by 1."""
    for edge, target in _carried(loop):
        maker = loop.inner.layer_of(loop.origin(loop.given_to(edge.from_layer)))
        operands = loop.inner.sources.get(maker.id, ())
        if maker.type not in _NEUTRAL or len(operands) != 2:
            continue
        what, neutral, sides = _NEUTRAL[maker.type]
        for side in sides:
            value = loop.inner_constant(operands[side])
            kept = loop.origin(operands[1 - side])
            added = operands[side]
            if value is None or added is None or kept != Source(target.id, 0) or not value.size:
                continue
            if bool((value == neutral).all()):
                constant = loop.name(added.layer)
                site = loop.site(target)
                hit = inside(edge, parameter=site, maker=maker, what=what, constant=constant, neutral=neutral)
                yield hit.graded(NOTE) if neutral else hit  # a factor of 1 may be chosen


# Rules of values that are carried or computed, and that nobody reads.


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


@found_by
def state_nobody_reads(loop: LoopSubject) -> Hits:
    """Carried Parameters without readers."""
    for parameter in loop.roles.merged_from:
        if not loop.is_read(parameter):
            yield inside(loop.inner.by_id[parameter], parameter=loop.name(parameter))


@found_by
def slices_nobody_reads(loop: LoopSubject) -> Hits:
    """Sliced Parameters without readers."""
    for entry in loop.roles.sliced:
        if not loop.is_read(entry.parameter):
            yield inside(entry)


@found_by
def outputs_nobody_reads(loop: LoopSubject) -> Hits:
    """Loops that give nothing to anybody."""
    if loop.layer.outputs and not loop.graph.readers[loop.layer.id]:
        yield loop.hit()


@found_by
def dead_operations(loop: LoopSubject) -> Hits:
    """Operations of a body that lead to no Result; the first of them, with how many there are."""
    quiet = ("Parameter", "Constant", "Result", "Assign")
    sinks = [layer for layer in loop.inner.layers if layer.type in ("Result", "Assign")]
    alive = loop.ancestors(*(source for layer in sinks for source in loop.inner.sources[layer.id]))
    dead = [layer for layer in loop.inner.layers if layer.id not in alive and layer.type not in quiet]
    if dead:
        more = f" (with {len(dead) - 1} more)" if len(dead) > 1 else ""
        yield inside(dead[-1], more=more)


@found_in("Parameter")
def input_without_effect(facts: LayerSubject) -> Hits:
    """Inputs of the model from which no edge leads to a Result or an Assign."""
    graph, seen, waiting = facts.graph, set[int](), [facts.layer.id]
    while waiting and not facts.path:
        key = waiting.pop()
        if graph.by_id[key].type in ("Result", "Assign"):
            return
        if key not in seen:
            seen.add(key)
            waiting += [reader.id for reader, _index in graph.readers[key]]
    if not facts.path and graph.results:
        yield facts.hit()


@found_in("Assign")
def variable_keeps_itself(facts: LayerSubject) -> Hits:
    """Variables that are stored as they were read."""
    source, variable = facts.graph.maker(facts.layer), facts.layer.attributes.get("variable_id", "")
    while source.type in PASSING:
        source = facts.graph.maker(source)
    if source.type == "ReadValue" and source.attributes.get("variable_id", "") == variable:
        yield facts.hit(variable=variable)


@found_by
def if_side_ignores_input(facts: IfSubject) -> Hits:
    """Inputs of an If that neither side reads."""
    for index in range(1, len(facts.layer.inputs)):
        if not any(
            entry.input == index and side.is_read(entry.parameter)
            for side in facts.sides()
            for entry in side.body.inputs
        ):
            yield facts.hit(number=index, value=facts.graph.maker(facts.layer, index).name)


@found_by
def runs_once(loop: LoopSubject) -> Hits:
    """TensorIterators without slices and pieces."""
    if not loop.is_loop and not loop.roles.sliced and all(one.slicing is None for one in loop.body.outputs):
        yield loop.hit()


def _is_zero(facts: LayerSubject) -> bool:
    """Return True for a Constant that may be 0 everywhere: of large ones that is not known yet."""
    small = small_constant(facts.layer, facts.model.weights)
    return facts.magnitude == 0 if small is None else not small.any()


@found_in("Constant", suspects=_is_zero)
def multiplied_by_zero(facts: LayerSubject) -> Hits:
    """Products in a body, or in a sequence, with a Constant of nothing but 0."""
    graph, constant = facts.graph, facts.layer
    products = [one for one in _products(graph, constant) if facts.path or one[0].type.endswith("Sequence")]
    value = facts.value_of(constant) if products else None
    if value is None or not value.size or value.any():
        return
    for product, index in products:
        other = graph.sources[product.id][_WEIGHTS[product.type][index]]
        if other is not None and known_chain(graph, other) is None:
            found = outside(product, constant=constant, value=graph.by_id[other.layer])
            yield found.graded(NOTE) if _is_only_added(graph, product) else found


def _is_only_added(graph: Graph, product: Layer) -> bool:
    """True if a product is only added to other values, as a residual branch or an adapter that begins with 0 is."""
    waiting, is_added = [product.id], False
    for key in waiting:
        for reader, index in graph.readers.get(key, ()):
            is_sum = reader.type in ("Add", "Subtract")
            if is_sum and known_chain(graph, graph.sources[reader.id][1 - index]) is None:
                is_added = True
            elif is_sum or reader.type in (*PASSING, "Transpose", "MatMul", "Multiply"):  # a bias is no other value
                waiting.append(reader.id)
            else:
                return False
    return is_added


def _products(graph: Graph, layer: Layer) -> Iterator[tuple[Layer, int]]:
    """Yield the products that read a value, or its elements in another type, shape or order; with the input's index."""
    for reader, index in graph.readers[layer.id]:
        if index in _WEIGHTS.get(reader.type, ()):
            yield reader, index
        elif (reader.type in PASSING or reader.type == "Transpose") and not index:
            yield from _products(graph, reader)


@found_in("Constant", suspects=lambda facts: bool(np.isnan(facts.magnitude)))
def constant_has_nan(facts: LayerSubject) -> Hits:
    """Weights that are no numbers; large ones are not looked through."""
    value = facts.own_value
    if value is not None:
        count = int(np.isnan(value.astype(np.float64)).sum())
        yield facts.hit(count=count, size=value.size)
