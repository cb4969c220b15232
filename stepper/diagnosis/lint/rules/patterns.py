"""Rules of what several operations are together: attention, normalisation, gates, and names that say what is meant."""

from __future__ import annotations

import re
from itertools import combinations
from typing import Final

from stepper.diagnosis.findings import NOTE, WARNING
from stepper.diagnosis.lint.kinds import reads
from stepper.diagnosis.lint.subjects import ELEMENTWISE, Declared, LayerSubject, LoopSubject, integer_attribute
from stepper.diagnosis.rule import LAYER, LOOP, At, Hits, found_by, inside, outside
from stepper.element_types import Array
from stepper.ir.model import Layer

_SOFTMAX: Final = ("SoftMax", "Softmax", "LogSoftmax")
_SIGMOIDS: Final = ("Sigmoid", "HardSigmoid", "HSigmoid")
_DEEPEST: Final = 8
_MOST_PAIRS: Final = 64
_MASKS: Final = 1e4
"""What is added before a softmax and is as large masks."""
_MOST_ELEMENTS: Final = 4096
_LARGE_EPSILON: Final = 0.05
"""Frameworks take 1e-12 to 1e-3 for what keeps a divisor from 0."""


def _maker(facts: LayerSubject, layer: Layer, index: int) -> Layer | None:
    """Return what computes an input of a layer."""
    sources = facts.graph.sources[layer.id]
    source = sources[index] if index < len(sources) else None
    return None if source is None else facts.graph.by_id.get(source.layer)


def _makers(facts: LayerSubject, layer: Layer) -> tuple[Layer | None, ...]:
    return tuple(_maker(facts, layer, index) for index in range(len(facts.graph.sources[layer.id])))


def _number(facts: LayerSubject, layer: Layer | None) -> float | None:
    """Return the element of the largest magnitude of a Constant of real numbers that has at most 4,096."""
    value = _constant(facts, layer)
    if value is None or not value.size or value.size > _MOST_ELEMENTS:
        return None
    return float(max(value.reshape(-1).tolist(), key=abs))


def _constant(facts: LayerSubject, layer: Layer | None) -> Array | None:
    if layer is None or layer.type != "Constant":
        return None
    return LayerSubject(facts.model, facts.path, facts.graph, layer).own_value


def _is_one(facts: LayerSubject, layer: Layer | None) -> bool:
    """Return True for a Constant of nothing but 1."""
    value = _constant(facts, layer)
    return value is not None and bool(value.size) and bool((value == 1).all())


def _is_score(facts: LayerSubject, layer: Layer | None) -> bool:
    """Return True for a product of matrices, and for one that was scaled and masked since."""
    for _ in range(_DEEPEST):
        if layer is None or layer.type == "MatMul":
            return layer is not None
        if layer.type not in ELEMENTWISE and layer.type not in ("Select", "Convert"):
            return False
        makers = [one for one in _makers(facts, layer) if one is not None]
        layer = next((one for one in makers if one.type not in ("Constant", "Parameter")), None)
    return False


@found_by(
    "M101",
    "softmax-along-another-axis",
    LAYER,
    WARNING,
    "MatMul",
    says="{softmax} goes along axis {axis} of scores of rank {rank}, and {layer} sums over axis {summed}",
    means="the weights of each sum do not add up to 1: attention is spread over the queries, not over the keys",
    do="let the softmax go along axis {summed}",
    source="specification of SoftMax and MatMul; scaled dot-product attention",
    suspects=reads(*_SOFTMAX),
)
def softmax_along_another_axis(facts: LayerSubject) -> Hits:
    """Weights of attention that are normalised along another axis than that over which they are summed."""
    softmax = _maker(facts, facts.layer, 0)
    if softmax is None or softmax.type not in _SOFTMAX or not _is_score(facts, _maker(facts, softmax, 0)):
        return
    weights = facts.tensor(0)
    rank, axis = weights.rank, integer_attribute(softmax, "axis", "1")
    if rank is None or rank < 2 or axis is None:
        return
    axis, summed = axis % rank, rank - (2 if facts.layer.is_set("transpose_a") else 1)
    if axis != summed and weights.size(summed) != 1:
        yield outside(softmax, axis=axis, summed=summed, rank=rank, softmax=softmax, layer=facts.layer)


@found_by(
    "M102",
    "mask-of-the-wrong-sign",
    LAYER,
    WARNING,
    *_SOFTMAX,
    says="{layer} adds {added:+.3g} to the scores of {softmax} where {mask} is not 0",
    means="softmax gives all weight to what was to be masked, and none to the rest",
    do="add the same number below 0",
    source="specification of SoftMax; masks of attention",
    suspects=reads("Add", "Subtract"),
)
def mask_of_the_wrong_sign(facts: LayerSubject) -> Hits:
    """Masks that softmax takes for the largest scores."""
    layer = _maker(facts, facts.layer, 0)
    if layer is None or layer.type not in ("Add", "Subtract"):
        return
    for index, mask in enumerate(_makers(facts, layer)):
        if mask is None or mask.type != "Multiply" or (layer.type == "Subtract" and not index):
            continue
        factor, shown = _factor(facts, mask)
        if layer.type == "Subtract":
            factor = -factor
        if factor >= _MASKS and shown is not None:
            yield outside(layer, added=factor, softmax=facts.layer, mask=shown)


def _factor(facts: LayerSubject, product: Layer) -> tuple[float, Layer | None]:
    """Return by which constant a product multiplies a mask, and the mask; of `y - 1` it is by the opposite of it."""
    found: tuple[float, Layer | None] = (0.0, None)
    for number, mask in (_makers(facts, product), _makers(facts, product)[::-1]):
        value = _number(facts, number)
        if value is None or mask is None or abs(value) <= abs(found[0]):
            continue
        minuend, subtrahend = _makers(facts, mask) if mask.type == "Subtract" else (None, None)
        is_negative = subtrahend is not None and _is_one(facts, subtrahend) and not _is_one(facts, minuend)
        found = (-value if is_negative else value), mask
    return found


def _mean_of_squares(facts: LayerSubject, layer: Layer | None, difference: Layer) -> Layer | None:
    """Return the mean of the squares of a difference, with or without a small number on it; None for all else."""
    if layer is not None and layer.type == "Add":
        layer = next((one for one in _makers(facts, layer) if one is not None and one.type == "ReduceMean"), None)
    square = _maker(facts, layer, 0) if layer is not None and layer.type == "ReduceMean" else None
    if square is None:
        return None
    first, second = (*_makers(facts, square), None, None)[:2]
    is_square = (
        (square.type == "Multiply" and first is difference and second is difference)
        or (square.type == "Power" and first is difference)
        or (square.type == "SquaredDifference" and set(_makers(facts, square)) == set(_makers(facts, difference)))
    )
    return layer if is_square else None


@found_by(
    "M103",
    "divided-by-variance",
    LAYER,
    WARNING,
    "Divide",
    says="{layer} divides {difference} by its variance {variance}, not by the square root of it",
    means="what comes out is not of size 1: it becomes larger as its input becomes smaller",
    do="take the square root of the variance and the small number",
    source="specification of MVN",
    suspects=reads("Subtract"),
)
def divided_by_variance(facts: LayerSubject) -> Hits:
    """Normalisations that lack the square root."""
    difference, divisor = (*_makers(facts, facts.layer), None, None)[:2]
    if difference is None or difference.type != "Subtract":
        return
    variance = _mean_of_squares(facts, divisor, difference)
    if variance is not None:
        yield outside(facts.layer, difference=difference, variance=variance)


@found_by(
    "M104",
    "epsilon-not-small",
    LAYER,
    NOTE,
    "BatchNormInference",
    "GroupNormalization",
    "MVN",
    "NormalizeL2",
    "Sqrt",
    says="{layer} adds {epsilon:g} to what it divides by",
    means="that is no small number that keeps a divisor from 0: it makes all that is normalised smaller",
    do="set it as the framework's model has it, mostly 1e-12 to 1e-3",
    source="specification of MVN, GroupNormalization and BatchNormInference",
)
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
        total = _maker(facts, layer, 0)
        makers = () if total is None or total.type != "Add" else _makers(facts, total)
        if not any(one is not None and one.type == "ReduceMean" for one in makers):
            return
        epsilon = next((number for one in makers if (number := _number(facts, one)) is not None), 0.0)
        layer = total or layer
    if epsilon >= _LARGE_EPSILON:
        yield outside(layer, epsilon=epsilon)


def _gate(facts: LayerSubject, layer: Layer | None) -> str:
    """Return what function gives a value, of those that gates and what they let in have; empty for others."""
    if layer is None:
        return ""
    if layer.type == "Subtract" and _is_one(facts, _maker(facts, layer, 0)):
        return "rest" if _gate(facts, _maker(facts, layer, 1)) == "sigmoid" else ""
    return "sigmoid" if layer.type in _SIGMOIDS else "tanh" if layer.type == "Tanh" else ""


def _products(facts: LayerSubject) -> list[tuple[Layer, Layer]]:
    """Return the factors of both operands of a sum of two products; nothing for another sum."""
    found = []
    for product in _makers(facts, facts.layer):
        makers = () if product is None or product.type != "Multiply" else _makers(facts, product)
        if len(makers) != 2 or makers[0] is None or makers[1] is None:
            return []
        found.append((makers[0], makers[1]))
    return found


def _step_to(facts: LayerSubject) -> tuple[Layer, Layer, Layer, Layer] | None:
    """Return a, g, b and c of a sum a + g * (b - c) where a is b or c, as states are moved by a gate; None for others.

    The operands of sum and product may be in either order.
    """
    for old, product in (_makers(facts, facts.layer), _makers(facts, facts.layer)[::-1]):
        if old is None or product is None or product.type != "Multiply":
            continue
        for gate, difference in (_makers(facts, product), _makers(facts, product)[::-1]):
            if gate is None or difference is None or difference.type != "Subtract":
                continue
            first, second = _makers(facts, difference)
            if first is None or second is None or "Constant" in (first.type, second.type):
                continue
            if first is not second and old in (first, second):
                return old, gate, first, second
    return None


def _step_text(facts: LayerSubject, step: tuple[Layer, Layer, Layer, Layer]) -> str:
    """Return in words what such a sum adds up."""
    old, gate, first, second = map(facts.site, step)
    return f"{old} and {gate} times the difference {first} - {second}"


@found_by(
    "M105",
    "gate-of-another-function",
    LAYER,
    WARNING,
    "Add",
    says="{layer} adds up {sum}: {what}",
    means="a gate is between 0 and 1, so that it lets through a part of a value",
    do="look which of them is the gate, and give it a Sigmoid",
    source="specification of LSTMCell and GRUCell",
    suspects=reads("Multiply"),
)
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


@found_by(
    "M106",
    "shares-are-not-one",
    LAYER,
    WARNING,
    "Add",
    says="{layer} adds up {sum}: {what}",
    means="the shares of the two do not add up to 1, and the state grows or shrinks in each iteration",
    do="let one be a gate and the other 1 minus the same gate",
    source="specification of GRUCell",
    suspects=reads("Multiply"),
)
def shares_are_not_one(facts: LayerSubject) -> Hits:
    """Updates between an old and a new value by a gate z, and by something else than 1 - z."""
    if not facts.path:
        return
    step = _step_to(facts)
    if step is not None and step[0] is step[2] and _gate(facts, step[1]) == "sigmoid":
        what = f"{facts.site(step[0])} is moved away from {facts.site(step[3])}"
        yield outside(facts.layer, sum=_step_text(facts, step), what=what)
        return
    products = _products(facts)
    if not products:
        return
    for first in products[0]:
        for second in products[1]:
            for rest, gate in ((first, second), (second, first)):
                if gate.type not in _SIGMOIDS or rest.type not in ("Add", "Subtract"):
                    continue
                makers = _makers(facts, rest)
                if not any(_is_one(facts, one) for one in makers) or gate not in makers:
                    continue
                if rest.type == "Add" or makers[0] is gate:
                    what = f"{facts.site(rest)} is {'1 plus' if rest.type == 'Add' else '1 taken from'} the same"
                    text = f"two values, one times {facts.site(gate)} and the other times {facts.site(rest)}"
                    yield outside(rest, layer=facts.layer, sum=text, what=what)


@found_by(
    "M108",
    "exponential-of-exponentials",
    LAYER,
    WARNING,
    "Exp",
    says="{layer} is taken of {sum}, a sum of exponentials",
    means="Exp of an Exp leaves f32 for arguments of 4.5; to come back from a sum of exponentials takes a Log",
    do="make {layer} a Log, if the logarithm of the sum was meant",
    source="specification of Exp and Log; logarithm of a sum of exponentials",
    suspects=reads("Add", "ReduceSum"),
)
def exponential_of_exponentials(facts: LayerSubject) -> Hits:
    """Sums of exponentials of which the exponential is taken once more."""
    total = _maker(facts, facts.layer, 0)
    if total is None or total.type not in ("Add", "ReduceSum"):
        return
    terms = _makers(facts, total)[: 1 if total.type == "ReduceSum" else 2]
    if all(one is not None and one.type == "Exp" for one in terms):
        yield outside(facts.layer, sum=total)


@found_by(
    "M109",
    "shifted-by-the-least",
    LAYER,
    WARNING,
    "Exp",
    says="{layer} is taken of {difference}: a value less the smallest of it, {least}",
    means="all arguments are 0 or more, and a difference of 89 leaves f32: the shift was to prevent that",
    do="take off the largest, so that all arguments are 0 or less",
    source="specification of Exp and SoftMax",
    suspects=reads("Subtract"),
)
def shifted_by_the_least(facts: LayerSubject) -> Hits:
    """Exponentials of what a minimum was taken off, where it should be the maximum."""
    difference = _maker(facts, facts.layer, 0)
    value, least = (*_makers(facts, difference), None, None)[:2] if difference is not None else (None, None)
    if difference is None or difference.type != "Subtract" or value is None or least is None:
        return
    if least.type not in ("Minimum", "ReduceMin"):
        return
    if value in _makers(facts, least):
        yield outside(least, layer=facts.layer, difference=difference, least=least)


@found_by(
    "M110",
    "mean-divided-by-count",
    LAYER,
    WARNING,
    "Divide",
    says="{layer} divides {mean}, a mean of what was multiplied by {mask}, by what {mask} adds up to",
    means="it is divided by the number of all elements, and by that of the chosen ones",
    do="let {mean} be a ReduceSum",
    source="specification of ReduceMean",
    suspects=reads("ReduceMean"),
)
def mean_divided_by_count(facts: LayerSubject) -> Hits:
    """Means of masked values that were divided twice."""
    mean, count = (*_makers(facts, facts.layer), None, None)[:2]
    if count is not None and count.type in ("Maximum", "Add"):
        count = next((one for one in _makers(facts, count) if one is not None and one.type == "ReduceSum"), None)
    if mean is None or mean.type != "ReduceMean" or count is None or count.type != "ReduceSum":
        return
    product, mask = _maker(facts, mean, 0), _maker(facts, count, 0)
    if product is not None and mask is not None and product.type == "Multiply" and mask in _makers(facts, product):
        yield outside(mean, layer=facts.layer, mean=mean, mask=mask)


_STEM: Final = re.compile(r"[A-Za-z]+")


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


@found_by(
    "M107",
    "names-crossed",
    LOOP,
    NOTE,
    says="{first} goes to {target}, and {second} to {other}: by their names it is the other way round",
    means="both have one type and shape, so that nothing fails: each gets the values of the other",
    do="exchange the two, if the names are right",
    source="specification/Loop-5, TensorIterator-1",
)
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
        if entry.input is not None and (outer := _maker(loop, loop.layer, entry.input)) is not None
    ]
    out: list[tuple[At, Layer, Layer, Declared]] = [
        (entry, layers[entry.result], reader, loop.of_result(entry.result))
        for entry in loop.body.outputs
        for reader, index in loop.graph.readers.get(loop.layer.id, ())
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
