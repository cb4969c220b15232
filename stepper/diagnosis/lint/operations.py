"""Check single operations: inputs, shapes, attributes, recurrent cells, Constant values.

If everything is declared in full, the rules run the operation's own kernel on zeros. So lint and a run agree.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping
from functools import lru_cache
from itertools import pairwise
from math import prod
from typing import Final, NamedTuple

import numpy as np

from stepper.diagnosis.lint.subjects import (
    DECIDING,
    LayerSubject,
    ModelSubject,
    integer_attribute,
    known_chain,
    of_port,
    refusal,
)
from stepper.diagnosis.rule import NOTE, Hits, RuleHit, found_by, found_in, found_in_kinds
from stepper.errors import KernelError
from stepper.ir.constants import constant_shape, constant_type
from stepper.ir.model import Graph, Layer, Source
from stepper.operation_types import NEWEST_OPSET, NO_OPERATIONS
from stepper.ops.operands import shape_text
from stepper.ops.recurrent import activations_of_gates
from stepper.wording import enumerated

# Rules of single operations: what they cannot compute, shapes other than declared, attributes outside their range.


_AXES: Final[Mapping[str, int | str]] = {
    type: int(at) if at.isdecimal() else at
    for at, types in {
        "axis": "Concat LogSoftmax Softmax TopK",
        "1": (
            "CumSum MVN ReduceL1 ReduceL2 ReduceLogicalAnd ReduceLogicalOr ReduceMax ReduceMean ReduceMin "
            "ReduceProd ReduceSum Split Squeeze Transpose VariadicSplit"
        ),
        "2": "Gather",
        "3": "ScatterElementsUpdate ScatterUpdate",
    }.items()
    for type in types.split()
}
"""Operations along an axis of their first input: the attribute that is the axis, or the input that has the axes."""
_MOST_POINTS = 100_000
_MOST_WEIGHTS = 1_000_000
_LEAST: Final[Mapping[str, Mapping[str, tuple[float, bool]]]] = {
    "BatchNormInference": {"epsilon": (0, True), "eps": (0, True)},
    "FakeQuantize": {"levels": (2, True)},
    "GroupNormalization": {"epsilon": (0, False), "num_groups": (1, True)},
    "LRN": {"size": (1, True), "bias": (0, False)},
    "MVN": {"eps": (0, False)},
    "NormalizeL2": {"eps": (0, False)},
    "GRUCell": {"clip": (0, True), "hidden_size": (1, True)},
    "LSTMCell": {"clip": (0, True), "hidden_size": (1, True)},
    "RNNCell": {"clip": (0, True), "hidden_size": (1, True)},
}
"""The least value of attributes by the specification, and whether they may be it."""


def _foreign_axis(facts: LayerSubject) -> tuple[int, int] | None:
    """Return an axis that the first input does not have, and the rank of that input."""
    where, rank = _AXES.get(facts.layer.type), facts.tensor(0).rank
    if where is None or rank is None:
        return None
    if isinstance(where, int):
        value = facts.constant(where)
        axes = [] if value is None or value.dtype.kind not in "iu" else value.reshape(-1)[:64].tolist()
    else:
        axis = integer_attribute(facts.layer, where)
        axes = [] if axis is None else [axis]
    return next(((axis, rank) for axis in axes if not -max(rank, 1) <= axis < max(rank, 1)), None)


@found_in_kinds(*DECIDING)
def operation_cannot_run(facts: LayerSubject) -> Hits:
    """Operations that refuse tensors of the declared shapes, and axes that the tensor does not have."""
    if not facts.layer.inputs or None in (facts.source(index) for index in range(len(facts.layer.inputs))):
        return
    found = facts.outcome
    reason = "" if found is None else found.refusal
    if found is None and (foreign := _foreign_axis(facts)) is not None:
        reason = f"axis {foreign[0]} is out of range for a tensor of rank {foreign[1]}"
    if reason:
        shapes = [str(facts.tensor(index).shape) for index in range(len(facts.layer.inputs))]
        yield facts.hit(reason=reason, shapes=", ".join(shapes))


@found_in_kinds(*DECIDING)
def operation_shape(facts: LayerSubject) -> Hits:
    """Operations that give another shape than the file declares."""
    found = facts.outcome if facts.layer.inputs else None
    if found is None or found.refusal:
        return
    for number, (port, given) in enumerate(zip(facts.layer.outputs, found.shapes, strict=False)):
        expected = of_port(port).static
        if expected is not None and expected != given:
            yield facts.hit(
                given=shape_text(given),
                number=number,
                declared=shape_text(expected),
            )


@found_in_kinds(*_LEAST)
def attribute_outside_its_range(facts: LayerSubject) -> Hits:
    """Attributes below the least value that the specification allows."""
    for name, (least, is_allowed) in _LEAST[facts.layer.type].items():
        text = facts.layer.attributes.get(name)
        try:
            value = float(text) if text is not None else None
        except ValueError:
            continue  # that it is no number is said elsewhere
        if value is not None and not (value > least or (is_allowed and value == least)):
            bound = f"{least:g} or more" if is_allowed else f"greater than {least:g}"
            yield facts.hit(attribute=name, value=text or "", range=bound)


@found_in_kinds()
def operation_refused(facts: LayerSubject) -> Hits:
    """Attributes that are missing or unreadable, and numbers of inputs and outputs that the operation does not have."""
    layer = facts.layer
    if layer.definition is None or layer.bodies or layer.opened_from is not None or layer.type in NO_OPERATIONS:
        return
    attributes = tuple(layer.attributes.items())
    reason = refusal(layer.type, layer.definition, attributes, len(layer.inputs), len(layer.outputs))
    if reason:
        yield facts.hit(version=layer.version, reason=reason)


@found_in("Subtract")
def zero_point_outside_type(facts: LayerSubject) -> Hits:
    """Zero points that the type of the weights does not have."""
    kind = _integer_weights(facts, facts.source(0))
    point = None if kind is None else facts.constant(1)
    if kind is None or point is None or not point.size or point.size > _MOST_POINTS:
        return
    values = point.astype(np.float64).reshape(-1)
    wrong = values[~((values >= kind[1]) & (values <= kind[2]))]
    if wrong.size:
        yield facts.hit(
            point=f"{wrong[0]:g}",
            type=kind[0],
            least=kind[1],
            most=kind[2],
        )


def _integer_weights(facts: LayerSubject, source: Source | None) -> tuple[str, int, int] | None:
    """Return the integer type of weights that are converted to floating point, its least and greatest value."""
    found = known_chain(facts.graph, source)
    if found is None or not any(layer.type == "Convert" for layer in found[1]):
        return None
    kind = constant_type(found[0])
    if kind is None or kind.bits > 8 or kind.name[0] not in "iu":
        return None
    most = (1 << kind.bits) - 1
    return (kind.name, 0, most) if kind.name[0] == "u" else (kind.name, -(most + 1) // 2, most // 2)


def _may_take_integers(facts: LayerSubject) -> bool:
    """Return True for kinds that read a converted Constant, or a difference, which may be one less its zero point."""
    return any(
        facts.graph.layer_of(source).type == "Subtract" or known_chain(facts.graph, source) is not None
        for source in facts.sources
    )


@found_in("MatMul", suspects=_may_take_integers)
def weights_without_scale(facts: LayerSubject) -> Hits:
    """Products with converted whole numbers that nothing scales, neither before nor after."""
    for index in (0, 1):
        source = facts.source(index)
        maker = facts.graph.layer_of(source)
        kind = _integer_weights(facts, facts.graph.source(maker.id) if maker.type == "Subtract" else source)
        if kind is None:
            continue
        after = {reader.type for reader, _index in facts.graph.readers[facts.layer.id]}
        if not after & {"Multiply", "Divide"}:
            yield facts.hit(type=kind[0])


@found_in(
    "Constant",
    suspects=lambda facts: (kind := constant_type(facts.layer)) is not None and kind.name == "f16",
)
def cut_off_at_f16(facts: LayerSubject) -> Hits:
    """Weights of f16 at the upper end of their range; the lower end alone is a mask."""
    layer = facts.layer
    shape = constant_shape(layer)
    kind = constant_type(layer)
    if kind is None or kind.name != "f16" or shape is None or prod(shape) > _MOST_WEIGHTS or not layer.outputs:
        return
    value = facts.value_of(layer)
    count = 0 if value is None else int((value >= np.float16(65504)).sum())
    if value is not None and count:
        yield facts.hit(count=count, size=value.size)


@found_in("FakeQuantize")
def empty_quantisation_range(facts: LayerSubject) -> Hits:
    """Find constant ranges whose lower end is not below the upper end."""
    for name, first in (("input", 1), ("output", 3)):
        low, high = facts.constant(first), facts.constant(first + 1)
        if low is None or high is None or not low.size or low.shape != high.shape or low.size > _MOST_POINTS:
            continue
        wrong = np.flatnonzero(~(low < high)) if name == "input" else np.flatnonzero(low == high)
        if wrong.size:
            at = int(wrong[0])
            yield facts.hit(
                range=name,
                low=f"{low.reshape(-1)[at]:g}",
                high=f"{high.reshape(-1)[at]:g}",
            )


@found_in("ReadValue", "Assign")
def variable_without_partner(facts: LayerSubject) -> Hits:
    """Variables that are stored and never read, or read and never stored."""
    partner = "Assign" if facts.layer.type == "ReadValue" else "ReadValue"
    variable = facts.layer.attributes.get("variable_id", "")
    for _path, graph in facts.model.graphs():
        if any(one.type == partner and one.attributes.get("variable_id", "") == variable for one in graph.layers):
            return
    yield facts.hit(partner=partner, variable=variable)


@found_in_kinds()
def unknown_opset(facts: LayerSubject) -> Hits:
    """Operation sets that do not exist yet."""
    if _is_to_come(facts.layer.version):
        yield facts.hit(version=facts.layer.version, newest=NEWEST_OPSET)


@lru_cache(maxsize=256)
def _is_to_come(version: str) -> bool:
    number = version.strip().lower().removeprefix("opset")
    return number.isdecimal() and not 0 < int(number) <= NEWEST_OPSET


@found_in_kinds("Constant", "Parameter")
def constant_without_type(facts: LayerSubject) -> Hits:
    """Find Constants and Parameters whose type or shape is declared at their port alone."""
    missing = [name for name in ("element_type", "shape") if name not in facts.layer.attributes]
    if missing and "value" not in facts.layer.attributes:
        yield facts.hit(missing=" and no ".join(missing))


_DEMANDED: Final[Mapping[str, Mapping[str, str]]] = {
    "AvgPool": {"exclude-pad": "false", "pads_begin": "0", "pads_end": "0"},
    "Clamp": {"min": "0", "max": "0"},
    "Concat": {"axis": "0"},
    "Convolution": {"dilations": "1", "pads_begin": "0", "pads_end": "0", "strides": "1"},
    "Elu": {"alpha": "0"},
    "FakeQuantize": {"levels": "0"},
    "GroupConvolution": {"dilations": "1", "pads_begin": "0", "pads_end": "0", "strides": "1"},
    "GRUSequence": {"direction": "forward"},
    "LSTMSequence": {"direction": "forward"},
    "MVN": {"eps": "0", "eps_mode": "inside_sqrt", "normalize_variance": "false"},
    "NormalizeL2": {"eps": "0", "eps_mode": "add"},
    "OneHot": {"axis": "0"},
    "Pad": {"pad_mode": "constant"},
    "RNNSequence": {"direction": "forward"},
    "TopK": {"axis": "0", "mode": "max", "sort": "none"},
}
"""Attributes that the specification demands, and what OpenVINO takes where they are missing (measured)."""


@found_in_kinds(*_DEMANDED)
def attribute_missing(facts: LayerSubject) -> Hits:
    """Operations without an attribute that has no default."""
    layer = facts.layer
    for name, taken in _DEMANDED[layer.type].items():
        if name in layer.attributes or (layer.type == "MVN" and layer.definition != 6) or layer.opened_from is not None:
            continue
        if name.startswith("pads") and layer.attributes.get("auto_pad", "explicit").startswith(("same", "valid")):
            continue
        yield facts.hit(attribute=name, taken=taken)


@found_in_kinds("RandomUniform", "Multinomial")
def random_without_seed(facts: LayerSubject) -> Hits:
    """Random numbers that nobody can make again."""
    seeds = [facts.layer.attributes.get(name, "0").strip() for name in ("global_seed", "op_seed")]
    if all(not seed.strip("0") for seed in seeds):
        yield facts.hit()


# Rules of recurrent cells and sequences: sizes, lengths, activations, and the bound of what goes into their gates.


_GATES: Final[Mapping[str, int]] = {
    f"{cell}{kind}": count for cell, count in (("LSTM", 3), ("GRU", 2), ("RNN", 1)) for kind in ("Cell", "Sequence")
}
"""Number of activations per cell; the first one of LSTM and GRU belongs to the gates."""
_NOTHING_LEFT = 0.1


_ROWS: Final[Mapping[str, int]] = {"LSTM": 4, "GRU": 3, "RNN": 1}
"""How many blocks of rows their weights have, one for each gate and new state."""


class _OperandSizes(NamedTuple):
    """An input of weights, biases or a state: what it is, and the sizes that it must have; None: any."""

    at: int
    what: str
    sizes: tuple[int | None, ...]


def _weights(facts: LayerSubject) -> list[_OperandSizes]:
    """Return the operand sizes that a cell or a sequence requires; empty if they are unknown."""
    kind = facts.layer.type.removesuffix("Cell").removesuffix("Sequence")
    is_sequence, hidden = facts.layer.type.endswith("Sequence"), integer_attribute(facts.layer, "hidden_size")
    first = 2 + (kind == "LSTM") + is_sequence
    if hidden is None or len(facts.layer.inputs) != first + 3:
        return []
    rows = _ROWS[kind] * hidden
    biases = rows + hidden * (kind == "GRU" and facts.layer.is_set("linear_before_reset"))
    both = facts.layer.attributes.get("direction") == "bidirectional"
    directions: tuple[int | None, ...] = (1 + both,) if is_sequence else ()
    states = [_OperandSizes(1, "a hidden state", (None, *directions, hidden))]
    states += [_OperandSizes(2, "a cell state", (None, *directions, hidden))] if kind == "LSTM" else []
    return [
        _OperandSizes(first, "input weights", (*directions, rows, facts.tensor(0).size(-1))),
        _OperandSizes(first + 1, "recurrent weights", (*directions, rows, hidden)),
        _OperandSizes(first + 2, "biases", (*directions, biases)),
        *states,
    ]


def _text(sizes: tuple[int | None, ...]) -> str:
    return f"[{','.join('?' if one is None else str(one) for one in sizes)}]"


@found_in_kinds(*_GATES)
def cell_of_other_size(facts: LayerSubject) -> Hits:
    """Weights, biases and states that do not have the sizes that hidden_size and the gates say."""
    for index, what, sizes in _weights(facts):
        given = facts.tensor(index).static
        if given is None or (
            len(given) == len(sizes) and all(b in (None, a) for a, b in zip(given, sizes, strict=True))
        ):
            continue
        yield facts.hit(number=index, what=what, given=_text(given), wanted=_text(sizes))


@found_in_kinds(*(name for name in _GATES if name.endswith("Sequence")))
def sequence_lengths(facts: LayerSubject) -> Hits:
    """Constant lengths that no sequence of the input has."""
    lengths, steps = facts.constant(3 if facts.layer.type.startswith("LSTM") else 2), facts.tensor(0).size(1)
    if lengths is None or steps is None or not lengths.size or lengths.dtype.kind not in "iu":
        return
    wrong = lengths[(lengths < 0) | (lengths > steps)]
    if wrong.size:
        yield facts.hit(length=int(wrong[0]), steps=steps)


def _names(facts: LayerSubject) -> tuple[str, ...]:
    text = facts.layer.attributes.get("activations", "")
    return tuple(name.strip().lower() for name in text.split(",")) if text.strip() else ()


@found_in_kinds(*_GATES)
def cell_activations(facts: LayerSubject) -> Hits:
    """Activations that do not exist, or are too few."""
    names = _names(facts)
    if not names:
        return
    try:
        activations_of_gates(names, (), (), _GATES[facts.layer.type])
    except KernelError as error:
        yield facts.hit(reason=str(error))


@found_in_kinds(*(name for name, count in _GATES.items() if count > 1))
def gates_not_bounded(facts: LayerSubject) -> Hits:
    """Gates of another function than the sigmoid."""
    names = _names(facts)
    if names and names[0] in ("tanh", "relu"):
        hit = facts.hit(name=names[0])
        yield hit if facts.path else hit.graded(NOTE)  # without a loop nothing of it adds up


@found_in_kinds(*_GATES)
def cell_clip_small(facts: LayerSubject) -> Hits:
    """Bounds in which the functions of the gates are nearly constant."""
    text = facts.layer.attributes.get("clip", "")
    try:
        clip = float(text)
    except ValueError:
        return
    if 0 < clip < 0.5:
        high = 1 / (1 + math.exp(-clip))
        hit = facts.hit(clip=clip, low=1 - high, high=high)
        yield hit if clip < _NOTHING_LEFT else hit.graded(NOTE)


# Rules of the values of Constants: what no weight is, bytes that two Constants share, divisors that are 0.


_SUMMING = ("MatMul", "Convolution", "GroupConvolution", "ConvolutionBackpropData", *_GATES)
"""Operations that add up products with their weights."""
_TOO_LARGE = 1e15
_TOO_SMALL = 1e-15
"""No weights that were learnt have elements of both sizes, or of the first one in a sum of products."""

_LEAST_NORMAL = float(np.finfo(np.float32).tiny)


def _reader(facts: LayerSubject) -> Layer | None:
    """Return an operation that sums products with the elements of a Constant."""
    readers = facts.graph.readers[facts.layer.id]
    return next((reader for reader, index in readers if index and reader.type in _SUMMING), None)


@found_in("Constant", suspects=lambda facts: facts.magnitude == np.inf)
def weights_have_inf(facts: LayerSubject) -> Hits:
    """Weights of products that are infinite; elsewhere Inf is mostly a mask."""
    reader, value = _reader(facts), facts.own_value
    if reader is not None and value is not None:
        count = int(np.isinf(value).sum())
        yield facts.hit(count=count, size=value.size, reader=reader)


@found_in(
    "Constant",
    suspects=lambda facts: _TOO_LARGE < facts.magnitude < np.inf or 0 < facts.magnitude < _LEAST_NORMAL,
)
def weights_out_of_proportion(facts: LayerSubject) -> Hits:
    """Weights that are far too large for a sum of products, or spread over all that their type can hold."""
    magnitude, value = facts.magnitude, facts.own_value
    if value is None or value.size < 2:
        return
    sizes = np.abs(value[value != 0].astype(np.float64))
    smallest = float(sizes.min())
    is_spread = smallest < _TOO_SMALL and np.unique(sizes[sizes > _TOO_LARGE]).size > 1
    if is_spread or magnitude < 1 or _reader(facts) is not None:
        yield facts.hit(largest=magnitude, smallest=smallest)


@found_by
def constants_overlap(model: ModelSubject) -> Iterator[tuple[LayerSubject, RuleHit]]:
    """Constants that share a part of their bytes; the one that lies where no other begins or ends is named first."""
    ranges = sorted(
        ((*found, place) for place in model.constants() if (found := _bytes(place[2]))), key=lambda one: one[:2]
    )
    if all(this[1] <= following[0] or this[:2] == following[:2] for this, following in pairwise(ranges)):
        return  # as nearly always
    edges = Counter(edge for begin, end in {one[:2] for one in ranges} for edge in (begin, end))
    before: tuple[int, int, tuple[tuple[Layer, ...], Graph, Layer]] | None = None
    for one in ranges:
        begin, end, place = one
        if before is not None and begin < before[1] and (begin, end) != before[:2]:
            other = before
            if edges[other[0]] + edges[other[1]] < edges[begin] + edges[end]:
                one, other = other, one
            facts = LayerSubject(model.model, *one[2])
            names = {"layer": facts.layer, "other": other[2][2]}
            yield facts, facts.hit(**names, first=one[0], last=one[1] - 1, begin=other[0], end=other[1] - 1)
        if before is None or end > before[1]:
            before = (begin, end, place)


_CHANGING = ("Parameter", "ReadValue", "RandomUniform", "Multinomial")


@found_by
def output_is_constant(model: ModelSubject) -> Iterator[tuple[LayerSubject, RuleHit]]:
    """Find outputs that are the same in every run, in a model with an unread input."""
    graph = model.model.graph
    unread = [f"'{one.name}'" for one in graph.parameters if not graph.readers[one.id]]
    if not unread:
        return
    waiting = [layer for layer in graph.layers if layer.type in _CHANGING or layer.bodies]
    reached = {layer.id for layer in waiting}
    while waiting:
        later = [reader for reader, _ in graph.readers[waiting.pop().id] if reader.id not in reached]
        reached.update(layer.id for layer in later)
        waiting += later
    for result in graph.results:
        if result.id not in reached:
            facts = LayerSubject(model.model, (), graph, result)
            source = graph.source(result.id)
            names = () if source is None else graph.layer_of(source).outputs[source.output].names
            yield facts, facts.hit(inputs=enumerated(unread), output=f"'{(names or (result.name,))[0]}'")


def _bytes(constant: Layer) -> tuple[int, int] | None:
    """Return where the bytes of a Constant begin and end; None for a single one, as what is empty is written."""
    offset, size = constant.attributes.get("offset", ""), constant.attributes.get("size", "")
    if not (offset.isdecimal() and size.isdecimal()) or max(len(offset), len(size)) > 19 or int(size) < 2:
        return None
    return int(offset), int(offset) + int(size)


@found_in("Divide", "Mod", "FloorMod")
def divides_by_zero(facts: LayerSubject) -> Hits:
    """Divisors of the file that are 0."""
    value = facts.constant(1)
    if value is not None and value.size and not value.all():
        yield facts.hit(constant=facts.maker(1), count=int((value == 0).sum()), size=value.size)
