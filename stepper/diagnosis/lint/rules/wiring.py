"""Rules of edges between layers: shapes that the file declares at both ends, and that operations cannot combine."""

from __future__ import annotations

from typing import Final

from stepper.diagnosis.findings import ERROR, NOTE, WARNING
from stepper.diagnosis.lint.subjects import ELEMENTWISE, LayerSubject, LoopSubject, declared, integer_attribute, of_port
from stepper.diagnosis.rule import LAYER, LOOP, Hits, found_by, outside
from stepper.ir.model import Port, Source
from stepper.ops.operands import broadcast_shape
from stepper.wording import enumerated

_OF_TWO: Final = ("Subtract", "Divide", "Less", "LessEqual", "Greater", "GreaterEqual", "SquaredDifference", "Mod")


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
    """Return True if one dimension is open where the shape is 1, as that of joined pieces, and the others agree."""
    apart = [(one, other) for one, other in zip(dims, shape, strict=True) if one != other]
    return apart == [(-1, 1)]


def _shape(shape: tuple[int, ...]) -> str:
    return f"[{','.join(map(str, shape))}]"


@found_by(
    "E201",
    "edge-between-shapes",
    LAYER,
    WARNING,
    says="input {number} of {layer}{fed} is declared as {taken}, and {source}, from which its edge comes, as {given}",
    means="the edge comes from another layer than the one for which the file was written, or one end was changed",
    do="let the edge come from the layer that gives {taken}, or declare what comes in",
    of_kinds=True,
)
def edge_between_shapes(facts: LayerSubject) -> Hits:
    """Inputs that are declared otherwise than what comes in."""
    for number, (port, source) in enumerate(zip(facts.layer.inputs, facts.sources, strict=False)):
        if source is None or not port.dims or _made(facts, source).dims == port.dims:
            continue
        taken, given = of_port(port).static, declared(facts.graph, source).static
        maker = facts.graph.by_id[source.layer]
        if given is None or taken is None or given == taken or 0 in (*given, *taken):
            continue
        yield outside(
            facts.layer,
            number=number,
            fed=_fed(facts, number),
            taken=_shape(taken),
            source=maker,
            given=_shape(given),
        )


@found_by(
    "E202",
    "operands-do-not-broadcast",
    LAYER,
    ERROR,
    *ELEMENTWISE,
    says="{layer} gets {first} and {second}, which cannot be spread over each other{why}",
    means="OpenVINO refuses the file",
    do="let one of the sizes be 1, or look where the edges come from",
    source="specification of broadcasting",
    of_kinds=True,
)
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
        names = {"first": _shape(first), "second": _shape(second)}
        why = "" if spread is None else ": auto_broadcast is none"
        yield outside(facts.layer, why=why, **names)


@found_by(
    "E204",
    "matmul-sizes",
    LAYER,
    ERROR,
    "MatMul",
    says="{layer} multiplies {first} by {second}: {rows} columns meet {columns} rows",
    means="OpenVINO refuses the file",
    do="look at transpose_a and transpose_b, and where the edges come from",
    source="specification of MatMul",
    of_kinds=True,
)
def matmul_sizes(facts: LayerSubject) -> Hits:
    """Products of matrices that do not fit."""
    first, second = facts.tensor(0), facts.tensor(1)
    if not first.rank or not second.rank or first.shape is None or second.shape is None:
        return
    inner = first.size(-2 if facts.layer.is_set("transpose_a") and first.rank > 1 else -1)
    other = second.size(-1 if facts.layer.is_set("transpose_b") and second.rank > 1 else -min(second.rank, 2))
    if inner is not None and other is not None and inner != other:
        yield outside(facts.layer, rows=inner, columns=other, first=str(first.shape), second=str(second.shape))


@found_by(
    "E205",
    "loop-output-shape",
    LOOP,
    WARNING,
    says="output {number} is declared as {outer}, and {result} gives {inner}{cut}",
    means="OpenVINO infers the shape anew; the axis, the Result, or (a note) the number of iterations was another "
    "one when the file was written",
    do="look at the axis of the entry, at the trip count and at what the Result reads",
)
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
            declared_as = _shape(port.dims).replace("-1", "?")
            result, gives = loop.name(entry.result), f"{_shape(inner)}, the last value alone"
            yield outside(loop.layer, number=entry.output, outer=declared_as, result=result, inner=gives, cut="")
        if inner is None or outer is None:
            continue
        if slicing is not None:
            inner = inner or (1,)
            if count is None or count < 0 or not -len(inner) <= slicing.axis < len(inner):
                continue
            axis = slicing.axis % len(inner)
            inner = (*inner[:axis], inner[axis] * count, *inner[axis + 1 :])
        if inner != outer and 0 not in (*inner, *outer):
            hit = outside(
                loop.layer,
                number=entry.output,
                outer=_shape(outer),
                result=loop.name(entry.result),
                inner=_shape(inner),
                cut=cut[0] if cut and slicing is not None else "",
            )
            apart = [k for k, (one, other) in enumerate(zip(inner, outer, strict=False)) if one != other]
            # Another number of iterations than once is mostly meant, but for a single piece.
            is_count = slicing is not None and len(inner) == len(outer) and apart == [slicing.axis % len(inner)]
            is_piece = slicing is not None and outer == (loop.of_result(entry.result).static or (1,))
            yield hit.graded(NOTE) if is_count and not is_piece else hit


@found_by(
    "E206",
    "index-out-of-range",
    LAYER,
    ERROR,
    "Gather",
    says="{layer} takes element {wrong} along axis {axis}, which is {size} long",
    means="the run fails, or OpenVINO gives 0",
    do="count from 0, to {last}",
    source="specification of Gather",
    of_kinds=True,
)
def index_out_of_range(facts: LayerSubject) -> Hits:
    """Constant indices that the tensor does not have."""
    if len(facts.layer.inputs) != 3:
        return
    indices, axes = facts.constant(1), facts.constant(2)
    if indices is None or axes is None or axes.size != 1 or not indices.size:
        return
    if not {indices.dtype.kind, axes.dtype.kind} <= {"i", "u"}:
        return
    axis = int(axes.reshape(-1)[0])
    size = facts.tensor(0).size(axis)
    if size is None:
        return
    wrong = [int(one) for one in indices.reshape(-1)[:100_000] if not -size <= int(one) < size]
    if wrong:
        yield outside(facts.layer, wrong=wrong[0], axis=axis, size=size, last=max(size - 1, 0))


@found_by(
    "E207",
    "softmax-of-one",
    LAYER,
    WARNING,
    "Softmax",
    "SoftMax",
    "LogSoftmax",
    says="{layer} goes along axis {axis}, which is 1 long: it always gives 1",
    means="what it was meant to weigh counts in full, whatever it is",
    do="let the axis be that of the elements that compete",
    source="specification of Softmax",
    of_kinds=True,
)
def softmax_of_one(facts: LayerSubject) -> Hits:
    """Softmax along an axis of one element."""
    axis = integer_attribute(facts.layer, "axis", "1")
    if axis is not None and facts.tensor(0).size(axis) == 1:
        yield outside(facts.layer, axis=axis)


@found_by(
    "E208",
    "operands-are-the-same",
    LAYER,
    WARNING,
    *_OF_TWO,
    says="both operands of {layer} are {operand}: it always gives the same",
    means="a difference is 0, a quotient 1, a comparison does not depend on its value",
    do="look where the two edges were meant to come from",
    source="specification of the operation",
)
def operands_are_the_same(facts: LayerSubject) -> Hits:
    """Differences, quotients and comparisons of a value and itself."""
    sources = facts.graph.sources[facts.layer.id]
    if len(sources) == 2 and sources[0] is not None and sources[0] == sources[1]:
        operand = facts.site(facts.graph.by_id[sources[0].layer])
        yield outside(facts.layer, operand=operand)


@found_by(
    "E209",
    "edge-between-types",
    LAYER,
    WARNING,
    says="input {number} of {layer}{fed} is declared as {taken}, and {source}, from which its edge comes, as {given}",
    means="the edge comes from another layer than the one for which the file was written, or one end was changed",
    do="let the edge come from the layer that gives {taken}, or convert",
    of_kinds=True,
)
def edge_between_types(facts: LayerSubject) -> Hits:
    """Inputs that are declared as another type than what comes in."""
    for number, (port, source) in enumerate(zip(facts.layer.inputs, facts.sources, strict=False)):
        taken = port.element_type
        if source is None or taken is None or taken is _made(facts, source).element_type or taken.name == "dynamic":
            continue
        given = declared(facts.graph, source).type
        maker = facts.graph.by_id[source.layer]
        if given is None or given == taken or given.name == "dynamic":
            continue
        yield outside(
            facts.layer,
            number=number,
            fed=_fed(facts, number),
            taken=taken.name,
            source=maker,
            given=given.name,
        )
