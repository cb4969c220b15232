"""Rounding allowance: how far it alone may leave two evaluations of an operation apart, beyond the tolerance.

Sums of products. In any order of additions, a computed sum of n products is off by at most gamma_n * S. Here
S = sum |x||w| and gamma_n = n u / (1 - n u), with the unit roundoff u of the sum (N. Higham, Accuracy and Stability of
Numerical Algorithms, 2nd ed., 3.1 and 3.5). The error is all but certainly no more than 6 sqrt(n) u S (N. Higham and T.
Mary, A New Approach to Probabilistic Rounding Error Analysis, SIAM J. Sci. Comput. 41(5), 2019, with lambda = 6). Two
evaluations are thus at most 2 u min(n, 6 sqrt(n)) S apart. S is the same kernel's result for the absolute values of
its inputs, n its result for ones. The result itself may be near 0: that is cancellation, no error of a kernel.

Other operations that sum (recurrent cells, attention, normalisations, transforms). A backward stable kernel gives the
exact result of inputs that are off by a few u; so the result may move as far as it does for inputs perturbed by so much
(Higham, 1.5). The largest movement counts for all elements, for each depends on many.

Quantisation. A value that lies between two levels, as near as rounding can tell, may become either level.

Results of many operations (a body's Result, an output of the model). If a sum is among the operations, the error is
relative to the largest element of the result rather than to each element. The allowance is a tenth of the relative
tolerance, of the largest element. The errors that the operations before it may leave are added (running error analysis,
Higham 3.3).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from stepper.compare.observations import ErrorOrigin
from stepper.debug.moments.moment import Values
from stepper.debug.provenance.operation_at import inputs_of
from stepper.element_types import Array, Indices, is_floating
from stepper.engine.arithmetic import outside_int32
from stepper.engine.frames import Frame
from stepper.engine.program import LoopPlan, Operation, OpKind, Program
from stepper.ir.model import Graph, Layer, Source
from stepper.ops.departures import Use, departures
from stepper.tensors.difference import Distance, agree_exactly, measure
from stepper.tensors.tolerances import Tolerance, Tolerances

SUMS: Mapping[str, Indices | None] = {
    **dict.fromkeys(
        (
            *("MatMul", "GroupedMatMul", "Einsum", "Convolution", "GroupConvolution", "ConvolutionBackpropData"),
            *("GroupConvolutionBackpropData", "ReduceSum", "ReduceMean", "AvgPool", "AdaptiveAvgPool", "CumSum"),
            *("EmbeddingBagOffsetsSum", "EmbeddingBagPackedSum", "EmbeddingBagOffsets", "EmbeddingBagPacked"),
            "EmbeddingSegmentsSum",
        )
    ),
    "DeformableConvolution": (0, 2, 3),
}
"""Types, and which of their floating inputs are factors of the products (None: all)."""

_MEANS = frozenset({"ReduceMean", "AvgPool", "AdaptiveAvgPool"})
"""Operations that give 1 for ones: the number of summed elements is counted from the sizes."""

STABLE = frozenset(
    {
        *("LSTMCell", "GRUCell", "RNNCell", "AUGRUCell", "LSTMSequence", "GRUSequence", "RNNSequence", "AUGRUSequence"),
        "ScaledDotProductAttention",
        *("MVN", "GroupNormalization", "BatchNormInference", "NormalizeL2", "GRN", "LRN", "LogSoftmax"),
        *("ReduceLogSumExp", "DFT", "IDFT", "RDFT", "IRDFT", "STFT", "ISTFT", "Interpolate", "Inverse", "GridSample"),
    }
)
_PERTURBED = 16
"""By how many units of roundoff inputs are perturbed."""

_TRIALS = 2
_WIDE = (np.dtype(np.float32), np.dtype(np.float64))
_DEVIATIONS = 6
_RESHAPED = frozenset({"Reshape", "Squeeze", "Unsqueeze"})
_FURTHEST = 12
"""How many operations are followed back from what is given out."""

_NOTHING = np.zeros(())
_TIE = 8
"""How many units of roundoff a quotient may be from a tie."""


def rounds(layer: Layer) -> bool:
    """True if more than the ordinary tolerance may be allowed for what a layer gives."""
    return layer.type in SUMS or layer.type in STABLE or layer.type in ("FakeQuantize", "Result")


def measure_output(
    operation: Operation | None,
    output: int,
    inputs: Sequence[Any],
    ours: Any,
    theirs: Any,
    tolerance: Tolerance,
    behind: Callable[[], Array] | None = None,
) -> Distance | None:
    """Return the distance of an operation's output from the reference, with rounding allowed for.

    The distance is measured as by `measure`. `inputs` are the inputs of `operation`; `operation` is None if no
    operation of this graph computes the value. `behind` gives the error that rounding may have left in inputs that the
    reference does not have (see `left_by`). It costs nothing if the ordinary tolerance is kept.
    """
    found = measure(ours, theirs, tolerance)
    if found is None or not found.differs or found.problem or not tolerance.rounds or operation is None:
        return found
    extra = allowance(operation, output, inputs)
    if extra is None and behind is not None:
        extra = behind()
    return found if extra is None else measure(ours, theirs, tolerance, _fitting(extra, ours))


def left_by(frame: Frame, operation: Operation, output: int, unknown: Sequence[Layer]) -> Array:
    """Return what rounding may leave in an output for sums among the layers before it that the reference lacks."""
    among = {operation.layer.id, *(layer.id for layer in unknown)}
    with np.errstate(all="ignore"):
        return _Errors(frame, among, {}).of(operation.outputs[output], _FURTHEST)


def _fitting(extra: Array, value: Any) -> Array:
    """Return a distance for each element, or the largest for all where the shapes are others."""
    try:
        return np.broadcast_to(extra, np.shape(value))
    except ValueError:
        return np.asarray(extra.max(initial=0.0))


Rounded = dict[tuple[int, int], float]
"""How far apart rounding has left what bodies gave: by `id()` of the program and the slot of the Result."""


def measure_whole(
    frame: Frame, slot: int, ours: Any, theirs: Any, tolerance: Tolerance, sums: Collection[int], rounded: Rounded
) -> Distance | None:
    """Return the distance of a value that a graph gives out, with rounding allowed for.

    Rounding may happen anywhere on the way to the value. `slot` holds the value. `sums` is the result of `behind_sums`
    for the frame's program. The distance that is allowed here is added to `rounded`.
    """
    found = measure(ours, theirs, tolerance)
    if found is None or not found.differs or found.problem or not tolerance.rounds:
        return found
    with np.errstate(all="ignore"):
        extra = _Errors(frame, None, rounded).of(slot, _FURTHEST)
        if slot in sums:
            largest = float(np.max(np.abs(theirs), initial=0.0, where=np.isfinite(theirs)))
            extra = np.asarray(largest * tolerance.relative / 10) + extra
    again = measure(ours, theirs, tolerance, _fitting(extra, ours))
    if again is not None and not again.differs:
        key = id(frame.program), slot
        rounded[key] = max(rounded.get(key, 0.0), again.absolute)
    return again


class _Errors:
    """Running error analysis of a frame's values (Higham 3.3): how far apart two evaluations may be for rounding alone.

    It is a bound through sums, arithmetic and activations, and 0 for what comes from anything else. `among` are the ids
    of the layers that count, None for all.
    """

    def __init__(self, frame: Frame, among: Collection[int] | None, rounded: Rounded) -> None:
        self._frame, self._among, self._rounded = frame, among, rounded
        self._found: dict[int, Array] = {}

    def of(self, slot: int, left: int) -> Array:
        """Return the error of the value in a slot, followed back over so many operations."""
        if slot not in self._found:
            found = np.asarray(self._computed(slot, left))
            self._found[slot] = np.where(np.isfinite(found), found, 0.0)
        return self._found[slot]

    def _computed(self, slot: int, left: int) -> Any:
        frame = self._frame
        index, value = frame.program.computed_at.get(slot), frame.values[slot] if slot >= 0 else None
        if index is None or left == 0 or value is None:
            return _NOTHING
        operation = frame.program.operations[index]
        kind = operation.layer.type
        if operation.plans:
            return self._given_out(operation, operation.outputs.index(slot))
        if self._among is not None and operation.layer.id not in self._among:
            return _NOTHING
        if not is_floating(np.asarray(value).dtype):
            return _NOTHING
        inputs = inputs_of(frame, operation)
        parts = [_fitting(self.of(source, left - 1), x) for source, x in zip(operation.inputs, inputs, strict=True)]
        if kind in SUMS or kind in STABLE:
            own = allowance(operation, operation.outputs.index(slot), inputs)
            return _NOTHING if own is None else own + _through(operation, slot, inputs, parts)
        if kind in _RESHAPED:
            return parts[0].reshape(np.shape(value)) if parts[0].size == np.size(value) else parts[0].max(initial=0.0)
        if kind not in _ARITHMETIC:
            return _NOTHING
        wide = [np.abs(np.asarray(x, np.float64)) for x in inputs]
        size = np.abs(np.asarray(value, np.float64))
        return _ARITHMETIC[kind](wide, parts, size) + 2 * _roundoff(np.asarray(value)) * size

    def _given_out(self, operation: Operation, output: int) -> Any:
        """Return the error of a loop's output: the largest that its body gave for it."""
        found = [0.0]
        for plan in operation.plans:
            if isinstance(plan, LoopPlan):
                results = [entry.result for entry in plan.last_values if entry.output == output]
                results += [entry.result for entry in plan.concatenated if entry.output == output]
                found += [self._rounded.get((id(plan.program), result), 0.0) for result in results]
        return max(found)


def _through(operation: Operation, slot: int, inputs: Sequence[Any], parts: Sequence[Array]) -> Any:
    """Return the error of a sum of products from the errors in its factors."""
    total: Any = _NOTHING
    factors = SUMS.get(operation.layer.type, ()) if operation.layer.type in SUMS else ()
    for index, part in enumerate(parts):
        if _is_float(inputs[index]) and part.any() and operation.function is not None:
            if factors is not None and index not in factors:
                continue
            given = [np.abs(x) if _is_float(x) else x for x in inputs]
            given[index] = np.ascontiguousarray(part, inputs[index].dtype)
            total = total + np.asarray(operation.function(*given), np.float64)
    return total


_ARITHMETIC: Mapping[str, Callable[[Sequence[Any], Sequence[Any], Any], Any]] = {
    **dict.fromkeys(("Add", "Subtract", "Maximum", "Minimum"), lambda x, e, _y: e[0] + e[1]),
    **dict.fromkeys(
        ("Relu", "Tanh", "Sigmoid", "Clamp", "Abs", "Negative", "Convert", "Elu", "HardSigmoid"), lambda x, e, _y: e[0]
    ),
    "Multiply": lambda x, e, _y: x[1] * e[0] + x[0] * e[1],
    "Divide": lambda x, e, y: (e[0] + y * e[1]) / x[1],
    "Sqrt": lambda x, e, y: e[0] / (2 * y),
    "Exp": lambda x, e, y: y * e[0],
    "SquaredDifference": lambda x, e, y: 2 * np.sqrt(y) * (e[0] + e[1]),
}
"""Errors of a result from those in the inputs, and from the magnitudes of inputs and result."""


def behind_sums(program: Program) -> frozenset[int]:
    """Return the slots of a program whose values depend on a sum of its own, or in a body of it."""
    found: set[int] = set()
    for operation in program.operations:
        if _sums(operation.layer) or any(slot in found for slot in operation.inputs):
            found.update(operation.outputs)
    return frozenset(found)


def _sums(layer: Layer) -> bool:
    inner = (one for body in layer.bodies for one in body.graph.layers)
    return layer.type in SUMS or layer.type in STABLE or any(_sums(one) for one in inner)


def allowance(operation: Operation, output: int, inputs: Sequence[Any]) -> Array | None:
    """Return how far apart two results may be for rounding alone, element by element or for all; None: no further than
    usual.

    Inputs that a kernel cannot take give None too.
    """
    kind, function = operation.layer.type, operation.function
    if function is None or operation.computed_by or not rounds(operation.layer):
        return None
    arrays = [_widened(value) for value in inputs]

    def result(values: Sequence[Any]) -> Array:
        found = function(*values)
        return np.asarray(found[output] if operation.several_outputs else found)

    try:
        with np.errstate(all="ignore"):
            if kind in SUMS:
                found = _of_sum(operation.layer, result, arrays)
            elif kind in STABLE:
                found = _of_stable(result, arrays)
            else:
                found = _of_quantisation(operation.layer, arrays)
            return np.where(np.isfinite(found), found, 0.0)
    except Exception:  # kernels check what they are given, each in its own words
        return None


def _of_sum(layer: Layer, result: Callable[[Sequence[Any]], Array], inputs: Sequence[Any]) -> Array:
    factors = SUMS[layer.type]
    chosen = [_is_float(x) and (factors is None or index in factors) for index, x in enumerate(inputs)]
    total = result([np.abs(x) if is_factor else x for x, is_factor in zip(inputs, chosen, strict=True)])
    if layer.type in _MEANS:
        terms: Any = max(1, inputs[0].size // max(1, total.size))
    else:
        terms = result([np.ones_like(x) if is_factor else x for x, is_factor in zip(inputs, chosen, strict=True)])
    growth = np.minimum(terms, _DEVIATIONS * np.sqrt(terms))
    return np.asarray(2 * _roundoff(total) * growth * total, np.float64)


def _of_stable(result: Callable[[Sequence[Any]], Array], inputs: Sequence[Any]) -> Array:
    random, usual, moved = np.random.default_rng(0), result(inputs), 0.0
    for _ in range(_TRIALS):
        perturbed = [
            x * (1 + random.choice((-1, 1), x.shape).astype(x.dtype) * x.dtype.type(_PERTURBED * _roundoff(x)))
            if _is_float(x)
            else x
            for x in inputs
        ]
        gap = np.abs(result(perturbed) - usual)
        moved = max(moved, float(np.max(gap, initial=0.0, where=np.isfinite(gap))))
    return np.asarray(moved)


def _of_quantisation(layer: Layer, inputs: Sequence[Any]) -> Array:
    x, low, high, out_low, out_high = (np.asarray(value, np.float64) for value in inputs)
    levels = int(layer.attributes["levels"])
    quotient = (np.clip(x, np.minimum(low, high), np.maximum(low, high)) - low) / (high - low) * (levels - 1)
    nearness = np.abs(np.abs(quotient - np.floor(quotient)) - 0.5)
    magnitude = np.maximum(1.0, (np.abs(x) + np.abs(low)) / np.abs(high - low) * (levels - 1))
    is_tie = nearness <= _TIE * _roundoff(inputs[0]) * magnitude
    return np.where(is_tie, np.abs(out_high - out_low) / (levels - 1), 0.0)


def _widened(value: Any) -> Any:
    """Return narrow floats in f32, in which their sums are computed."""
    if value is None:
        return None
    array = np.asarray(value)
    return array.astype(np.float32) if is_floating(array.dtype) and array.dtype not in _WIDE else array


def _is_float(value: Any) -> bool:
    return value is not None and is_floating(value.dtype)


def _roundoff(value: Array) -> float:
    return math.ldexp(1.0, -53 if value.dtype == np.float64 else -24)


# --- Error made here, told from error carried in: our operation once more, on the inputs that the reference has ------


class TracedOrigin(NamedTuple):
    """Where a difference comes from, whether the inputs agree within their tolerances, and which computed inputs the
    reference does not have.
    """

    origin: ErrorOrigin
    inputs_agree: bool
    unknown: tuple[Layer, ...]


class ReferenceInputs(NamedTuple):
    """An operation's inputs as the reference has them, ours where it has none; `moved`: any is not the same."""

    values: list[Any]
    agree: bool
    moved: bool
    unknown: tuple[Layer, ...]


def trace_origin(
    frame: Frame,
    operation: Operation,
    output: int,
    theirs: Values,
    given: Any,
    tolerances: Tolerances,
) -> TracedOrigin:
    """Return where the difference of an output from the value that is `given` comes from.

    An input that the reference does not have (a layer of ours that has no partner) counts as part of the operation.
    """
    inputs = _inputs(frame, operation, theirs, tolerances)
    if not inputs.moved:
        return TracedOrigin(ErrorOrigin.HERE, inputs.agree, inputs.unknown)
    if operation.kind is not OpKind.KERNEL or operation.function is None:
        return TracedOrigin(ErrorOrigin.HERE if inputs.agree else ErrorOrigin.UNKNOWN, inputs.agree, inputs.unknown)
    try:
        with np.errstate(all="ignore"):
            made = operation.function(*inputs.values)
    except Exception:  # the reference's inputs may be of another type or shape, which the kernel does not take
        return TracedOrigin(ErrorOrigin.UNKNOWN, inputs.agree, inputs.unknown)
    result = made[output] if operation.several_outputs else made
    tolerance = tolerances.of(operation.layer, given)
    behind = partial(left_by, frame, operation, output, inputs.unknown)
    left = measure_output(operation, output, inputs.values, result, given, tolerance, behind)
    is_here = left is not None and left.differs
    return TracedOrigin(ErrorOrigin.HERE if is_here else ErrorOrigin.CARRIED, inputs.agree, inputs.unknown)


def departure(operation: Operation, ours: Any) -> ErrorOrigin | None:
    """Return what OpenVINO is known to do otherwise: overflow of 32 bits, or what ops.departures says."""
    if outside_int32(np.asarray(ours)):
        return ErrorOrigin.OVERFLOW
    layer = operation.layer
    types = frozenset(port.element_type.name for port in (*layer.inputs[:1], *layer.outputs) if port.element_type)
    if types and types <= _FLOATS:
        return None  # rounding of floats is not that far off
    known = departures([Use(layer.type, layer.definition, layer.attributes, types)])
    return ErrorOrigin.DEPARTURE if known else None


def is_rounded_integer(value: Any) -> bool:
    """True if a tensor has integers that f32 does not hold, through which OpenVINO passes those of some operations."""
    array = np.asarray(value)
    return array.dtype.kind in "iu" and array.size > 0 and int(np.abs(array.astype(np.float64)).max()) > 2**24


_MOST_UNKNOWN = 8
_FLOATS = frozenset({"f16", "bf16", "f32", "f64"})


def _inputs(frame: Frame, operation: Operation, theirs: Values, tolerances: Tolerances) -> ReferenceInputs:
    graph = frame.program.graph
    inputs: list[Any] = []
    unknown: list[Layer] = []
    agree, moved = True, False
    for source, slot in zip(graph.sources[operation.layer.id], operation.inputs, strict=True):
        ours = frame.values[slot] if slot >= 0 else None
        other = None
        if source is not None and ours is not None and frame.program.template[slot] is None:
            other = theirs(graph.by_id[source.layer], source.output)
            if other is None:
                unknown.append(graph.by_id[source.layer])
        if other is None or source is None:
            inputs.append(ours)
            continue
        distance = measure(ours, other, tolerances.of(graph.by_id[source.layer], other))
        moved |= not agree_exactly(ours, other)
        agree &= distance is None or not distance.differs
        inputs.append(other)
    return ReferenceInputs(inputs, agree, moved, _with_what_is_behind(frame, unknown, theirs))


def unknown_inputs(frame: Frame, operation: Operation, theirs: Values | None) -> tuple[Layer, ...]:
    """Return the layers that compute an operation's inputs without a value in the reference.

    Layers behind these inputs are included.
    """
    graph = frame.program.graph
    layers = _computed_sources(frame, operation.layer.id)
    return _with_what_is_behind(
        frame, [graph.by_id[s.layer] for s in layers if theirs is None or _value(graph, s, theirs) is None], theirs
    )


def _with_what_is_behind(frame: Frame, unknown: list[Layer], theirs: Values | None) -> tuple[Layer, ...]:
    """Return these layers, and against the flow of values all others up to those that the reference knows."""
    graph, layers = frame.program.graph, dict.fromkeys(layer.id for layer in unknown)
    for identity in list(layers):
        waiting = [identity]
        while waiting and len(layers) < _MOST_UNKNOWN and theirs is not None:
            for source in _computed_sources(frame, waiting.pop(0)):
                if source.layer not in layers and _value(graph, source, theirs) is None:
                    layers[source.layer] = None
                    waiting.append(source.layer)
    return tuple(graph.by_id[identity] for identity in layers)


def _computed_sources(frame: Frame, layer: int) -> list[Source]:
    """Return the operations' outputs among the sources of a layer: neither Constants nor Parameters."""
    program = frame.program
    sources = (source for source in program.graph.sources[layer] if source is not None)
    return [s for s in sources if program.slots.get(s) in program.computed_at]


def _value(graph: Graph, source: Source, theirs: Values) -> Any:
    return theirs(graph.by_id[source.layer], source.output)
