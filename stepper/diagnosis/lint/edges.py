"""Rules of what meets at an edge: types, shapes, and what several operations are together."""

from __future__ import annotations

import re
from collections.abc import Iterable
from itertools import combinations, pairwise, product

from stepper.diagnosis.lint.subjects import (
    ELEMENTWISE,
    PASSING,
    Declared,
    IfSubject,
    LayerSubject,
    LoopSubject,
    declared,
    different_types,
    integer_attribute,
    of_parameter,
    of_port,
    reads,
)
from stepper.diagnosis.rule import NOTE, At, Hits, RuleHit, found_by, found_in, found_in_kinds, inside, outside
from stepper.element_types import Array, by_name
from stepper.ir.constants import constant_shape, constant_type
from stepper.ir.model import NO_LAYER, Layer, Port, Source
from stepper.ops.operands import broadcast_shape, shape_text
from stepper.wording import enumerated

# Rules of types and shapes that contradict each other between the outside and the inside of a body.


_SAME_TYPE = ELEMENTWISE | {"MatMul", "Concat"}
"""Operations whose operands have one type."""


@found_by
def body_parameter_type(loop: LoopSubject) -> Hits:
    """Parameters of another type than their input."""
    for entry in loop.roles.fed:
        types = different_types(of_parameter(loop.inner.by_id[entry.parameter]), loop.outer(entry))
        if types:
            yield inside(entry, inside=types[0], outside=types[1])


@found_by
def body_parameter_shape(loop: LoopSubject) -> Hits:
    """Find Parameters whose declared shape does not fit their input."""
    for entry in loop.roles.fed:
        outer, inner = loop.outer(entry).static, of_parameter(loop.inner.by_id[entry.parameter]).shape
        if outer is None or inner is None:
            continue
        slicing = entry.slicing
        if slicing is not None:
            if not -len(outer) <= slicing.axis < len(outer) or not slicing.stride:
                continue
            axis = slicing.axis % len(outer)
            outer = (*outer[:axis], abs(slicing.stride), *outer[axis + 1 :])
        if not inner.accepts(outer):
            cut = "" if slicing is None else f" in each slice, of {abs(slicing.stride)} along axis {slicing.axis}"
            hit = inside(entry, inside=str(inner), outside=shape_text(outer), cut=cut)
            # A state without elements, as what it is added to has none, is the same in any shape.
            yield hit.graded(NOTE) if inner.static is not None and 0 in inner.static else hit


@found_by
def sides_of_different_type(facts: IfSubject) -> Hits:
    """Outputs of an If with two types."""
    then, otherwise = facts.sides()
    for entry in then.body.outputs:
        other = next((one for one in otherwise.body.outputs if one.output == entry.output), None)
        if other is None or entry.output is None:
            continue
        types = different_types(then.of_result(entry.result), otherwise.of_result(other.result))
        if types:
            yield facts.hit(number=entry.output, then=types[0], otherwise=types[1])


@found_in_kinds(*_SAME_TYPE)
def operands_of_different_type(facts: LayerSubject) -> Hits:
    """Operations on values of two types."""
    layer = facts.layer
    sources = [one for one in facts.graph.sources[layer.id] if one is not None]
    given = {id(facts.graph.by_id[one.layer].outputs[one.output].element_type) for one in sources}
    if len(given) == 1 and not any(facts.graph.by_id[one.layer].type == "Parameter" for one in sources):
        return  # most are
    found = [(declared(facts.graph, source).type, facts.graph.by_id[source.layer]) for source in sources]
    known = [(one, maker) for one, maker in found if one is not None]
    for (first, maker), (second, other) in pairwise(known):
        if first != second:
            yield facts.hit(first=first.name, second=second.name, maker=maker, other=other)
            return


@found_in("TensorIterator", "Loop", "If")
def declared_type_differs(facts: LayerSubject) -> Hits:
    """Find outputs of a loop whose declared type differs from the type of their Result."""
    for body in facts.layer.bodies:
        for entry in body.outputs:
            if entry.output is None or entry.output >= len(facts.layer.outputs):
                continue
            sources = body.graph.sources.get(entry.result, ())
            inner = declared(body.graph, sources[0] if sources else None)
            types = different_types(of_port(facts.layer.outputs[entry.output]), inner)
            if types:
                result = body.graph.by_id[entry.result]
                yield facts.hit(number=entry.output, outer=types[0], inner=types[1], result=result)
                return


@found_in_kinds("Constant", "Convert", "Parameter")
def layer_against_its_port(facts: LayerSubject) -> Hits:
    """Constants, Parameters and Converts whose data and whose port are of different types or shapes."""
    layer = facts.layer
    if len(layer.outputs) != 1:
        return
    made = layer.outputs[0]
    if layer.type == "Constant" and constant_shape(layer) == made.dims and constant_type(layer) is made.element_type:
        return  # most are
    port = of_port(made)
    if layer.type == "Convert":
        own = Declared(by_name(layer.attributes.get("destination_type", "").strip()), None)
    else:
        own = declared(facts.graph, Source(layer.id, 0))
    types = different_types(own, port)
    given, taken = ([types[0]], [types[1]]) if types and types[1] != "dynamic" else ([], [])
    if own.static is not None and 0 not in own.static and port.static is not None and own.static != port.static:
        given, taken = [*given, str(own.shape)], [*taken, str(port.shape)]
    if given:
        yield facts.hit(given=" ".join(given), declared=" ".join(taken))


@found_by
def side_parameter_differs(facts: IfSubject) -> Hits:
    """Parameters of a side that cannot take what their entry brings."""
    for side in facts.sides():
        for entry in side.body.inputs:
            parameter = side.inner.by_id.get(entry.parameter)
            if entry.input is None or parameter is None:
                continue
            inner, outer = of_parameter(parameter), facts.tensor(entry.input)
            types = different_types(inner, outer)
            shapes = inner.shape is not None and outer.static is not None and not inner.shape.accepts(outer.static)
            if types or shapes:
                words = {"inside": _typed(inner), "outside": _typed(outer)}
                role, site = side.body.role.replace("_", " "), facts.site(parameter)
                yield outside(parameter, parameter=site, role=role, number=entry.input, **words)


def _typed(one: Declared) -> str:
    return f"{'any' if one.type is None else one.type.name}{one.shape if one.shape is not None else ''}"


# Rules of edges between layers: shapes that the file declares at both ends, and that operations cannot combine.


_OF_TWO = ("Subtract", "Divide", "Less", "LessEqual", "Greater", "GreaterEqual", "SquaredDifference", "Mod")


def _made(facts: LayerSubject, source: Source) -> Port:
    """Return the port from which a value comes."""
    return facts.graph.by_id[source.layer].outputs[source.output]


def _fed(facts: LayerSubject, number: int) -> str:
    """Return which Parameters of a body an input feeds, in words."""
    fed = {
        str(facts.site(body.graph.by_id[entry.parameter]))
        for body in facts.layer.bodies
        for entry in body.inputs
        if entry.input == number
    }
    return f", which feeds {enumerated(sorted(fed))}," if fed else ""


def _is_open_once(dims: tuple[int, ...], shape: tuple[int, ...]) -> bool:
    """Return True if one dimension is open where `shape` has 1 and the others agree.

    Joined pieces have such a dimension.
    """
    apart = [(one, other) for one, other in zip(dims, shape, strict=True) if one != other]
    return apart == [(-1, 1)]


def _edge(facts: LayerSubject, number: int, source: Source, taken: str, given: str) -> RuleHit:
    """Return the hit at an input that is declared otherwise than what comes in."""
    maker, fed = facts.graph.by_id[source.layer], _fed(facts, number)
    return facts.hit(number=number, fed=fed, taken=taken, source=maker, given=given)


@found_in_kinds()
def edge_between_shapes(facts: LayerSubject) -> Hits:
    """Inputs that are declared otherwise than what comes in."""
    for number, (port, source) in enumerate(zip(facts.layer.inputs, facts.sources, strict=False)):
        if source is None or not port.dims or _made(facts, source).dims == port.dims:
            continue
        taken, given = of_port(port).static, declared(facts.graph, source).static
        if given is not None and taken is not None and given != taken and 0 not in (*given, *taken):
            yield _edge(facts, number, source, shape_text(taken), shape_text(given))


@found_in_kinds(*ELEMENTWISE)
def operands_do_not_broadcast(facts: LayerSubject) -> Hits:
    """Elementwise operations on shapes that do not fit; without auto_broadcast they must be the same."""
    broadcast = facts.layer.attributes.get("auto_broadcast", "numpy")
    if broadcast not in ("numpy", "none"):
        return
    sources = facts.graph.sources[facts.layer.id]
    if len(sources) != 2 or sources[0] is None or sources[1] is None:
        return
    if (dims := _made(facts, sources[0]).dims) and dims == _made(facts, sources[1]).dims:
        return  # most are
    first, second = facts.tensor(0).static, facts.tensor(1).static
    if first is None or second is None:
        return
    try:
        spread = broadcast_shape(first, second)
    except ValueError:
        spread = None
    if spread is None or (broadcast == "none" and first != second):
        names = {"first": shape_text(first), "second": shape_text(second)}
        why = "" if spread is None else ": auto_broadcast is none"
        yield facts.hit(why=why, **names)


_JOINING = ("ReduceMean", "ReduceSum")
_OF_ONE = ("Abs", "Power", "Multiply", "Sqrt", *PASSING)


@found_in("Subtract", "SquaredDifference")
def each_with_each(facts: LayerSubject) -> Hits:
    """Find differences of a column and a row that are then averaged or summed, as in a loss."""
    column, row = facts.tensor(0).static, facts.tensor(1).static
    if column is None or row is None:
        return
    size = max((*column, *row), default=1)
    if size < 2 or {column, row} not in ({(size, 1), (size,)}, {(size, 1), (1, size)}):
        return
    graph, waiting, seen = facts.graph, [facts.layer], set[int]()
    while waiting:
        for reader, index in graph.readers[waiting.pop().id]:
            if reader.type in _JOINING and index == 0:
                yield facts.hit(first=shape_text(column), second=shape_text(row), reduction=reader)
                return
            if reader.type in _OF_ONE and reader.id not in seen:
                seen.add(reader.id)
                waiting.append(reader)


@found_in_kinds("MatMul")
def matmul_sizes(facts: LayerSubject) -> Hits:
    """Products of matrices that do not fit."""
    first, second = facts.tensor(0), facts.tensor(1)
    if not first.rank or not second.rank or first.shape is None or second.shape is None:
        return
    inner = first.size(-2 if facts.layer.is_set("transpose_a") and first.rank > 1 else -1)
    other = second.size(-1 if facts.layer.is_set("transpose_b") and second.rank > 1 else -min(second.rank, 2))
    if inner is not None and other is not None and inner != other:
        yield facts.hit(rows=inner, columns=other, first=str(first.shape), second=str(second.shape))


@found_by
def loop_output_shape(loop: LoopSubject) -> Hits:
    """Outputs of a loop that are declared otherwise than what its body gives."""
    counts = {count for entry in loop.roles.sliced if (count := loop.slices(entry)) is not None}
    trip = loop.trip_count if loop.is_loop and loop.body_condition is True else None
    count = trip if loop.is_loop else counts.pop() if len(counts) == 1 else None
    cut = [
        f", as {loop.name(one.parameter)} is cut from {one.slicing.start} to {one.slicing.end}"
        for one in loop.roles.sliced
        if one.slicing is not None and (one.slicing.start, one.slicing.end) not in ((0, -1), (-1, 0))
    ]
    for entry in loop.body.outputs:
        if entry.output is None or entry.output >= len(loop.layer.outputs) or loop.body.unread_outputs:
            continue
        slicing, port = entry.slicing, loop.layer.outputs[entry.output]
        inner, outer = loop.of_result(entry.result).static, of_port(port).static
        if inner is not None and slicing is None and len(port.dims) == len(inner) and _is_open_once(port.dims, inner):
            declared_as = shape_text(port.dims).replace("-1", "?")
            result, gives = loop.name(entry.result), f"{shape_text(inner)}, the last value alone"
            yield loop.hit(number=entry.output, outer=declared_as, result=result, inner=gives, cut="")
        if inner is None or outer is None:
            continue
        if slicing is not None:
            inner = inner or (1,)
            if count is None or count < 0 or not -len(inner) <= slicing.axis < len(inner):
                continue
            axis = slicing.axis % len(inner)
            inner = (*inner[:axis], inner[axis] * count, *inner[axis + 1 :])
        if inner != outer and 0 not in (*inner, *outer):
            hit = loop.hit(
                number=entry.output,
                outer=shape_text(outer),
                result=loop.name(entry.result),
                inner=shape_text(inner),
                cut=cut[0] if cut and slicing is not None else "",
            )
            apart = [k for k, (one, other) in enumerate(zip(inner, outer, strict=False)) if one != other]
            # Another number of iterations than once is mostly meant, but for a single piece.
            is_count = slicing is not None and len(inner) == len(outer) and apart == [slicing.axis % len(inner)]
            is_piece = slicing is not None and outer == (loop.of_result(entry.result).static or (1,))
            yield hit.graded(NOTE) if is_count and not is_piece else hit


@found_in_kinds("Gather")
def index_out_of_range(facts: LayerSubject) -> Hits:
    """Constant indices that the tensor does not have."""
    if len(facts.layer.inputs) != 3:
        return
    indices, axes = facts.constant(1), facts.constant(2)
    if indices is None or axes is None or axes.size != 1 or not indices.size:
        return
    if not {indices.dtype.kind, axes.dtype.kind} <= {"i", "u"}:
        return
    axis = axes.item()
    size = facts.tensor(0).size(axis)
    if size is None:
        return
    wrong = [int(one) for one in indices.reshape(-1)[:100_000] if not -size <= int(one) < size]
    if wrong:
        yield facts.hit(wrong=wrong[0], axis=axis, size=size, last=max(size - 1, 0))


@found_in_kinds("Softmax", "SoftMax", "LogSoftmax")
def softmax_of_one(facts: LayerSubject) -> Hits:
    """Softmax along an axis of one element."""
    axis = integer_attribute(facts.layer, "axis", "1")
    if axis is not None and facts.tensor(0).size(axis) == 1:
        yield facts.hit(axis=axis)


@found_in(*_OF_TWO)
def operands_are_the_same(facts: LayerSubject) -> Hits:
    """Differences, quotients and comparisons of a value and itself."""
    sources = facts.graph.sources[facts.layer.id]
    if len(sources) == 2 and sources[0] is not None and sources[0] == sources[1]:
        operand = facts.site(facts.graph.by_id[sources[0].layer])
        yield facts.hit(operand=operand)


@found_in_kinds()
def edge_between_types(facts: LayerSubject) -> Hits:
    """Inputs that are declared as another type than what comes in."""
    for number, (port, source) in enumerate(zip(facts.layer.inputs, facts.sources, strict=False)):
        taken = port.element_type
        if source is None or taken is None or taken is _made(facts, source).element_type or taken.name == "dynamic":
            continue
        given = declared(facts.graph, source).type
        if given is not None and given != taken and given.name != "dynamic":
            yield _edge(facts, number, source, taken.name, given.name)


# Rules of what several operations are together: attention, normalisation, gates, and names that say what is meant.


_SOFTMAX = ("SoftMax", "Softmax", "LogSoftmax")
_SIGMOIDS = ("Sigmoid", "HardSigmoid", "HSigmoid")
_DEEPEST = 8
_MOST_PAIRS = 64
_MASKS = 1e4
"""Magnitude from which on an addend before a softmax counts as a mask."""
_MOST_ELEMENTS = 4096
_LARGE_EPSILON = 0.05
"""Frameworks take 1e-12 to 1e-3 for what keeps a divisor from 0."""


def _makers(facts: LayerSubject, layer: Layer) -> tuple[Layer, ...]:
    """Return what computes the inputs of a layer: two or more, `NO_LAYER` for one that is not there."""
    graph = facts.graph
    return tuple(graph.maker(layer, index) for index in range(max(2, len(graph.sources.get(layer.id, ())))))


def _either_way(facts: LayerSubject, layer: Layer) -> tuple[tuple[Layer, ...], tuple[Layer, ...]]:
    """Return what computes the operands of a sum or product, in both orders."""
    makers = _makers(facts, layer)
    return makers, makers[::-1]


def _constant(facts: LayerSubject, layer: Layer) -> Array | None:
    if layer.type != "Constant":
        return None
    return LayerSubject(facts.model, facts.path, facts.graph, layer).own_value


def _number(facts: LayerSubject, layer: Layer) -> float | None:
    """Return the element of the largest magnitude of a Constant of real numbers that has at most 4,096."""
    value = _constant(facts, layer)
    if value is None or not value.size or value.size > _MOST_ELEMENTS:
        return None
    return float(max(value.reshape(-1).tolist(), key=abs))


def _is_one(facts: LayerSubject, layer: Layer) -> bool:
    """Return True for a Constant of nothing but 1."""
    value = _constant(facts, layer)
    return value is not None and bool(value.size) and bool((value == 1).all())


def _is_score(facts: LayerSubject, layer: Layer) -> bool:
    """Return True for a product of matrices, and for one that was scaled and masked since."""
    for _ in range(_DEEPEST):
        if layer.type == "MatMul":
            return True
        if layer.type not in ELEMENTWISE and layer.type not in ("Select", "Convert"):
            return False
        layer = next((one for one in _makers(facts, layer) if one.type not in ("", "Constant", "Parameter")), NO_LAYER)
    return False


@found_in("MatMul", suspects=reads(*_SOFTMAX))
def softmax_along_another_axis(facts: LayerSubject) -> Hits:
    """Weights of attention that are normalised along another axis than that over which they are summed."""
    softmax = facts.graph.maker(facts.layer)
    if softmax.type not in _SOFTMAX or not _is_score(facts, facts.graph.maker(softmax)):
        return
    weights = facts.tensor(0)
    rank, axis = weights.rank, integer_attribute(softmax, "axis", "1")
    if rank is None or rank < 2 or axis is None:
        return
    axis, summed = axis % rank, rank - (2 if facts.layer.is_set("transpose_a") else 1)
    if axis != summed and weights.size(summed) != 1:
        yield outside(softmax, axis=axis, summed=summed, rank=rank, softmax=softmax, layer=facts.layer)


@found_in(*_SOFTMAX, suspects=reads("Add", "Subtract"))
def mask_of_the_wrong_sign(facts: LayerSubject) -> Hits:
    """Masks that softmax takes for the largest scores."""
    layer = facts.graph.maker(facts.layer)
    is_difference = layer.type == "Subtract"
    for mask in _makers(facts, layer)[is_difference:] if layer.type in ("Add", "Subtract") else ():
        factor, shown = _factor(facts, mask) if mask.type == "Multiply" else (0.0, NO_LAYER)
        if is_difference:
            factor = -factor
        if factor >= _MASKS:
            yield outside(layer, added=factor, softmax=facts.layer, mask=shown)


def _factor(facts: LayerSubject, product: Layer) -> tuple[float, Layer]:
    """Return by which constant a product multiplies a mask, and the mask; of `y - 1` it is by the opposite of it."""
    found = 0.0, NO_LAYER
    for number, mask in _either_way(facts, product):
        value = _number(facts, number)
        if value is None or mask is NO_LAYER or abs(value) <= abs(found[0]):
            continue
        minuend, subtrahend = _makers(facts, mask)[:2] if mask.type == "Subtract" else (NO_LAYER, NO_LAYER)
        is_negative = _is_one(facts, subtrahend) and not _is_one(facts, minuend)
        found = (-value if is_negative else value), mask
    return found


def _of_type(layers: Iterable[Layer], type: str) -> Layer:
    """Return the first layer of a type."""
    return next((one for one in layers if one.type == type), NO_LAYER)


def _mean_of_squares(facts: LayerSubject, layer: Layer, difference: Layer) -> Layer | None:
    """Return the mean of the squares of a difference, with or without a small number on it; None for all else."""
    if layer.type == "Add":
        layer = _of_type(_makers(facts, layer), "ReduceMean")
    square = facts.graph.maker(layer) if layer.type == "ReduceMean" else NO_LAYER
    first, second = _makers(facts, square)[:2]
    is_square = (
        (square.type == "Multiply" and first is difference and second is difference)
        or (square.type == "Power" and first is difference)
        or (
            square.type == "SquaredDifference"
            and {first.id, second.id} == {one.id for one in _makers(facts, difference)}
        )
    )
    return layer if is_square else None


@found_in("Divide", suspects=reads("Subtract"))
def divided_by_variance(facts: LayerSubject) -> Hits:
    """Normalisations that lack the square root."""
    difference, divisor = _makers(facts, facts.layer)[:2]
    variance = _mean_of_squares(facts, divisor, difference) if difference.type == "Subtract" else None
    if variance is not None:
        yield facts.hit(difference=difference, variance=variance)


@found_in("BatchNormInference", "GroupNormalization", "MVN", "NormalizeL2", "Sqrt")
def epsilon_not_small(facts: LayerSubject) -> Hits:
    """Numbers that are to keep from division by 0 alone, and do more."""
    layer = facts.layer
    if layer.type != "Sqrt":
        text = next((layer.attributes[one] for one in ("eps", "epsilon") if one in layer.attributes), "0")
        try:
            epsilon = float(text)
        except ValueError:
            return
    else:
        layer = facts.graph.maker(layer)
        makers = _makers(facts, layer) if layer.type == "Add" else ()
        if _of_type(makers, "ReduceMean") is NO_LAYER:
            return
        epsilon = next((number for one in makers if (number := _number(facts, one)) is not None), 0.0)
    if epsilon >= _LARGE_EPSILON:
        yield outside(layer, epsilon=epsilon)


def _gate(facts: LayerSubject, layer: Layer) -> str:
    """Return what function gives a value, of those that gates and what they let in have; empty for others."""
    if layer.type == "Subtract" and _is_one(facts, facts.graph.maker(layer)):
        return "rest" if _gate(facts, facts.graph.maker(layer, 1)) == "sigmoid" else ""
    return "sigmoid" if layer.type in _SIGMOIDS else "tanh" if layer.type == "Tanh" else ""


def _products(facts: LayerSubject) -> list[tuple[Layer, Layer]]:
    """Return the factors of both operands of a sum of two products; nothing for another sum."""
    found = []
    for term in _makers(facts, facts.layer):
        first, second = _makers(facts, term)[:2]
        if term.type != "Multiply" or NO_LAYER in (first, second):
            return []
        found.append((first, second))
    return found


def _step_to(facts: LayerSubject) -> tuple[Layer, Layer, Layer, Layer] | None:
    """Return a, g, b and c of a sum a + g * (b - c) where a is b or c, as states are moved by a gate; None for others.

    The operands of sum and product may be in either order.
    """
    for old, term in _either_way(facts, facts.layer):
        for gate, difference in _either_way(facts, term) if term.type == "Multiply" else ():
            first, second = _makers(facts, difference)[:2]
            if difference.type != "Subtract" or not {"", "Constant"}.isdisjoint((first.type, second.type)):
                continue
            if first is not second and old in (first, second) and gate is not NO_LAYER:
                return old, gate, first, second
    return None


def _step_text(facts: LayerSubject, step: tuple[Layer, Layer, Layer, Layer]) -> str:
    """Return in words what such a sum adds up."""
    old, gate, first, second = map(facts.site, step)
    return f"{old} and {gate} times the difference {first} - {second}"


@found_in("Add", suspects=reads("Multiply"))
def gate_of_another_function(facts: LayerSubject) -> Hits:
    """Cells of single operations, one of whose gates is a Tanh."""
    if not facts.path:
        return
    step = _step_to(facts)
    if step is not None and _gate(facts, step[1]) == "tanh":
        what = "how far it goes to the other is a Tanh"
        yield outside(step[1], layer=facts.layer, sum=_step_text(facts, step), what=what)
        return
    products = _products(facts)
    for (one, other), rest in zip(products, products[::-1], strict=True):
        for state, gate in ((one, other), (other, one)):
            if state.type != "Parameter" or gate.type == "Parameter":
                continue
            kinds = [_gate(facts, gate), *(_gate(facts, each) for each in rest)]
            what = ""
            if kinds[0] == "tanh" and set(kinds[1:]) & {"sigmoid", "rest", "tanh"}:
                what = f"what {facts.site(state)} is multiplied by is a Tanh"
            elif kinds[0] in ("sigmoid", "rest") and kinds[1:] == ["tanh", "tanh"]:
                what = "both of the latter are a Tanh"
            if what:
                first, second = (facts.site(each) for each in rest)
                text = f"{facts.site(state)} times {facts.site(gate)} and {first} times {second}"
                at = gate if kinds[0] == "tanh" else rest[0]
                yield outside(at, layer=facts.layer, sum=text, what=what)


@found_in("Add", suspects=reads("Multiply"))
def shares_are_not_one(facts: LayerSubject) -> Hits:
    """Updates between an old and a new value by a gate z, and by something else than 1 - z."""
    if not facts.path:
        return
    step = _step_to(facts)
    if step is not None and step[0] is step[2] and _gate(facts, step[1]) == "sigmoid":
        what = f"{facts.site(step[0])} is moved away from {facts.site(step[3])}"
        yield facts.hit(sum=_step_text(facts, step), what=what)
        return
    for pair in product(*_products(facts)):
        for rest, gate in (pair, pair[::-1]) if len(pair) == 2 else ():
            makers = _makers(facts, rest)
            if gate.type not in _SIGMOIDS or rest.type not in ("Add", "Subtract") or gate not in makers:
                continue
            if any(_is_one(facts, one) for one in makers) and (rest.type == "Add" or makers[0] is gate):
                what = f"{facts.site(rest)} is {'1 plus' if rest.type == 'Add' else '1 taken from'} the same"
                text = f"two values, one times {facts.site(gate)} and the other times {facts.site(rest)}"
                yield outside(rest, layer=facts.layer, sum=text, what=what)


@found_in("Exp", suspects=reads("Add", "ReduceSum"))
def exponential_of_exponentials(facts: LayerSubject) -> Hits:
    """Find sums of exponentials that pass through another exponential."""
    total = facts.graph.maker(facts.layer)
    count = {"ReduceSum": 1, "Add": 2}.get(total.type, 0)
    if count and all(one.type == "Exp" for one in _makers(facts, total)[:count]):
        yield facts.hit(sum=total)


@found_in("Exp", suspects=reads("Subtract"))
def shifted_by_the_least(facts: LayerSubject) -> Hits:
    """Exponentials of what a minimum was taken off, where it should be the maximum."""
    difference = facts.graph.maker(facts.layer)
    value, least = _makers(facts, difference)[:2]
    if difference.type != "Subtract" or value is NO_LAYER or least.type not in ("Minimum", "ReduceMin"):
        return
    if value in _makers(facts, least):
        yield outside(least, layer=facts.layer, difference=difference, least=least)


@found_in("Divide", suspects=reads("ReduceMean"))
def mean_divided_by_count(facts: LayerSubject) -> Hits:
    """Means of masked values that were divided twice."""
    mean, count = _makers(facts, facts.layer)[:2]
    if count.type in ("Maximum", "Add"):
        count = _of_type(_makers(facts, count), "ReduceSum")
    masked, mask = facts.graph.maker(mean), facts.graph.maker(count)
    is_masked = mask is not NO_LAYER and mask in _makers(facts, masked)
    if is_masked and (mean.type, count.type, masked.type) == ("ReduceMean", "ReduceSum", "Multiply"):
        yield outside(mean, layer=facts.layer, mean=mean, mask=mask)


_STEM = re.compile(r"[A-Za-z]+")


def _stems(name: str) -> frozenset[str]:
    """Return the words of a name."""
    return frozenset(word.lower() for word in _STEM.findall(re.sub(r"([a-z])([A-Z])", r"\1 \2", name)))


def _are_crossed(first: tuple[str, str], second: tuple[str, str]) -> bool:
    """Return True if each name of two pairs has a word of its own with the name of the other pair, and none with its
    own partner."""
    one, two = _stems(first[0]), _stems(first[1])
    three, four = _stems(second[0]), _stems(second[1])
    common = (one & three) | (two & four)
    one, two, three, four = one - common, two - common, three - common, four - common
    return bool(one & four) and bool(three & two) and not one & two and not three & four


@found_by
def names_crossed(loop: LoopSubject) -> Hits:
    """Pairs of back edges, of inputs and of outputs whose names say that they are exchanged."""
    layers = loop.inner.by_id
    back: list[tuple[At, Layer, Layer, Declared]] = [
        (edge, layers[edge.from_layer], layers[edge.to_layer], loop.of_result(edge.from_layer))
        for edge in loop.body.back_edges
        if edge.from_layer in layers and edge.to_layer in layers
    ]
    into: list[tuple[At, Layer, Layer, Declared]] = [
        (entry, outer, layers[entry.parameter], loop.tensor(entry.input))
        for entries in (loop.roles.sliced, loop.roles.merged, loop.roles.invariant)
        for entry in entries
        if entry.input is not None and (outer := loop.graph.maker(loop.layer, entry.input)) is not NO_LAYER
    ]
    out: list[tuple[At, Layer, Layer, Declared]] = [
        (entry, layers[entry.result], reader, loop.of_result(entry.result))
        for entry in loop.body.outputs
        for reader, index in loop.graph.readers[loop.layer.id]
        if (source := loop.graph.sources[reader.id][index]) is not None
        and source.output == entry.output
        and reader.type == "Result"
        and entry.result in layers
    ]
    for pairs in (back, into, out):
        for (at, first, target, one), (_at, second, other, two) in combinations(pairs[:_MOST_PAIRS], 2):
            is_alike = one.type == two.type and one.static is not None and one.static == two.static
            if is_alike and first is not second and _are_crossed((first.name, target.name), (second.name, other.name)):
                yield inside(at, first=first, target=target, second=second, other=other)
