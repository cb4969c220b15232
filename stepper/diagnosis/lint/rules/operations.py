"""Rules of single operations: what they cannot compute, shapes other than declared, attributes outside their range.

Of what is declared in full the operation's own kernel is asked, on zeros, so that lint and a run say the same.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from math import prod
from typing import Final

import numpy as np

from stepper.diagnosis.findings import ERROR, NOTE, WARNING
from stepper.diagnosis.lint.subjects import LayerSubject, integer_attribute, known_chain, known_value, of_port
from stepper.diagnosis.lint.trials import DECIDING, refusal
from stepper.diagnosis.rule import LAYER, Hits, found_by, outside
from stepper.ir.constants import constant_shape, constant_type
from stepper.ir.model import Source
from stepper.operation_types import NEWEST_OPSET, NO_OPERATIONS
from stepper.ops.operands import shape_text

_AXES: Final[Mapping[str, int | str]] = {
    "Concat": "axis",
    "CumSum": 1,
    "Gather": 2,
    "LogSoftmax": "axis",
    "MVN": 1,
    "ReduceL1": 1,
    "ReduceL2": 1,
    "ReduceLogicalAnd": 1,
    "ReduceLogicalOr": 1,
    "ReduceMax": 1,
    "ReduceMean": 1,
    "ReduceMin": 1,
    "ReduceProd": 1,
    "ReduceSum": 1,
    "ScatterElementsUpdate": 3,
    "ScatterUpdate": 3,
    "Softmax": "axis",
    "Split": 1,
    "Squeeze": 1,
    "TopK": "axis",
    "Transpose": 1,
    "VariadicSplit": 1,
}
"""Operations along an axis of their first input: the attribute that is the axis, or the input that has the axes."""
_MOST_POINTS: Final = 100_000
_MOST_WEIGHTS: Final = 1_000_000
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


@found_by(
    "O101",
    "operation-cannot-run",
    LAYER,
    ERROR,
    *DECIDING,
    says="{layer} cannot be computed from what is declared of its inputs: {reason}",
    means="the run fails there, in the first iteration; OpenVINO refuses the file",
    do="set the axis, the sizes or the order for {shapes}, or mend the edge that brings another tensor",
    of_kinds=True,
)
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
        yield outside(facts.layer, reason=reason, shapes=", ".join(shapes))


@found_by(
    "O102",
    "operation-shape",
    LAYER,
    WARNING,
    *DECIDING,
    says="{layer} gives {given}, and its output {number} is declared as {declared}",
    means="what follows gets another shape than the one for which the file was written, and may spread or fail",
    do="undo what was changed: the axis, the order, the sizes or keep_dims; or declare what comes out",
    of_kinds=True,
)
def operation_shape(facts: LayerSubject) -> Hits:
    """Operations that give another shape than the file declares."""
    found = facts.outcome if facts.layer.inputs else None
    if found is None or found.refusal:
        return
    for number, (port, given) in enumerate(zip(facts.layer.outputs, found.shapes, strict=False)):
        expected = of_port(port).static
        if expected is not None and expected != given:
            yield outside(
                facts.layer,
                given=shape_text(given),
                number=number,
                declared=shape_text(expected),
            )


@found_by(
    "O103",
    "attribute-outside-its-range",
    LAYER,
    WARNING,
    *_LEAST,
    says="{attribute} of {layer} is {value}, and the specification has it {range}",
    means="an eps of 0 divides by 0 where all elements are the same; OpenVINO refuses others, or computes nonsense",
    do="set {attribute} as the framework's model has it",
    of_kinds=True,
)
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
            yield outside(facts.layer, attribute=name, value=text or "", range=bound)


@found_by(
    "O104",
    "operation-refused",
    LAYER,
    ERROR,
    says="{layer} is no operation of {version}: {reason}",
    means="the model cannot run",
    do="write the attribute as the specification spells it, and connect the inputs that it names",
    of_kinds=True,
)
def operation_refused(facts: LayerSubject) -> Hits:
    """Attributes that are missing or unreadable, and numbers of inputs and outputs that the operation does not have."""
    layer = facts.layer
    if layer.definition is None or layer.bodies or layer.opened_from is not None or layer.type in NO_OPERATIONS:
        return
    attributes = tuple(layer.attributes.items())
    reason = refusal(layer.type, layer.definition, attributes, len(layer.inputs), len(layer.outputs))
    if reason:
        yield outside(layer, version=layer.version, reason=reason)


@found_by(
    "O105",
    "zero-point-outside-type",
    LAYER,
    WARNING,
    "Subtract",
    says="{layer} takes the zero point {point} from weights of type {type}, which go from {least} to {most}",
    means="no weight means 0, and all of them are shifted to one side: the zero point is that of another type",
    do="take the zero point of {type}: the number by which 0 was written",
    source="specification of FakeQuantize; the form in which compressed weights are written",
)
def zero_point_outside_type(facts: LayerSubject) -> Hits:
    """Zero points that the type of the weights does not have."""
    kind = _integer_weights(facts, facts.source(0))
    point = None if kind is None else facts.constant(1)
    if kind is None or point is None or not point.size or point.size > _MOST_POINTS:
        return
    values = point.astype(np.float64).reshape(-1)
    wrong = values[~((values >= kind[1]) & (values <= kind[2]))]
    if wrong.size:
        yield outside(
            facts.layer,
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
    makers = [facts.graph.by_id[one.layer] for one in facts.sources if one is not None]
    return any(maker.type == "Subtract" for maker in makers) or any(
        known_chain(facts.graph, source) is not None for source in facts.sources
    )


@found_by(
    "O106",
    "weights-without-scale",
    LAYER,
    NOTE,
    "MatMul",
    says="{layer} multiplies by weights of type {type} that are converted and not scaled",
    means="the product is that of the whole numbers, larger than that of the weights by one over the scale",
    do="multiply the converted weights, or the product, by their scale",
    source="the form in which compressed weights are written",
    suspects=_may_take_integers,
)
def weights_without_scale(facts: LayerSubject) -> Hits:
    """Products with converted whole numbers that nothing scales, neither before nor after."""
    for index in (0, 1):
        source = facts.source(index)
        maker = None if source is None else facts.graph.by_id.get(source.layer)
        if maker is not None and maker.type == "Subtract":
            source = facts.graph.sources[maker.id][0]
        kind = _integer_weights(facts, source)
        if kind is None:
            continue
        after = {reader.type for reader, _index in facts.graph.readers.get(facts.layer.id, ())}
        if not after & {"Multiply", "Divide"}:
            yield outside(facts.layer, type=kind[0])


@found_by(
    "O107",
    "cut-off-at-f16",
    LAYER,
    NOTE,
    "Constant",
    says="{count} of {size} elements of {layer} are at or beyond 65504, the largest f16",
    means="what was larger in the framework's model has been cut off when it was saved as f16",
    do="save the model without compression to f16 (compress_to_fp16=False), or keep this Constant in f32",
    source="IEEE 754",
    suspects=lambda facts: (kind := constant_type(facts.layer)) is not None and kind.name == "f16",
)
def cut_off_at_f16(facts: LayerSubject) -> Hits:
    """Weights of f16 at the upper end of their range; the lower end alone is a mask."""
    layer = facts.layer
    shape = constant_shape(layer)
    kind = constant_type(layer)
    if kind is None or kind.name != "f16" or shape is None or prod(shape) > _MOST_WEIGHTS or not layer.outputs:
        return
    value = known_value(facts.model, facts.graph, Source(layer.id, 0))
    count = 0 if value is None else int((value >= np.float16(65504)).sum())
    if value is not None and count:
        yield outside(layer, count=count, size=value.size)


@found_by(
    "O108",
    "empty-quantisation-range",
    LAYER,
    NOTE,
    "FakeQuantize",
    says="{layer} goes from {low} to {high}: its {range} range is empty or turned around",
    means="all elements become the same, or the order of the values is turned around",
    do="let the low end be below the high one",
    source="specification of FakeQuantize",
)
def empty_quantisation_range(facts: LayerSubject) -> Hits:
    """Constant ends of ranges of which the lower one is not below the higher one."""
    for name, first in (("input", 1), ("output", 3)):
        low, high = facts.constant(first), facts.constant(first + 1)
        if low is None or high is None or not low.size or low.shape != high.shape or low.size > _MOST_POINTS:
            continue
        wrong = np.flatnonzero(~(low < high)) if name == "input" else np.flatnonzero(low == high)
        if wrong.size:
            at = int(wrong[0])
            yield outside(
                facts.layer,
                range=name,
                low=f"{low.reshape(-1)[at]:g}",
                high=f"{high.reshape(-1)[at]:g}",
            )


@found_by(
    "O109",
    "variable-without-partner",
    LAYER,
    WARNING,
    "ReadValue",
    "Assign",
    says="no {partner} of the model has the variable '{variable}' of {layer}",
    means="what a call stores is never read, or what it reads is never stored: nothing goes from call to call",
    do="give {layer} the variable_id of its {partner}",
    source="specification of ReadValue and Assign",
)
def variable_without_partner(facts: LayerSubject) -> Hits:
    """Variables that are stored and never read, or read and never stored."""
    partner = "Assign" if facts.layer.type == "ReadValue" else "ReadValue"
    variable = facts.layer.attributes.get("variable_id", "")
    for _path, graph in facts.model.graphs():
        if any(one.type == partner and one.attributes.get("variable_id", "") == variable for one in graph.layers):
            return
    yield outside(facts.layer, partner=partner, variable=variable)


@found_by(
    "O110",
    "unknown-opset",
    LAYER,
    ERROR,
    says="{layer} is of {version}, and there are opset1 to opset{newest}",
    means="OpenVINO refuses the file; here the newest definition counts",
    do="write the opset in which the operation was defined",
    source="OpenVINO IR, version 11",
    of_kinds=True,
)
def unknown_opset(facts: LayerSubject) -> Hits:
    """Operation sets that do not exist yet."""
    if _is_to_come(facts.layer.version):
        yield outside(facts.layer, version=facts.layer.version, newest=NEWEST_OPSET)


@lru_cache(maxsize=256)
def _is_to_come(version: str) -> bool:
    number = version.strip().lower().removeprefix("opset")
    return number.isdecimal() and not 0 < int(number) <= NEWEST_OPSET


@found_by(
    "O111",
    "constant-without-type",
    LAYER,
    NOTE,
    "Constant",
    "Parameter",
    says="{layer} has no {missing} among its data",
    means="OpenVINO refuses the file; here its port counts",
    do='write element_type and shape into <data>, as in <data element_type="f32" shape="1,2" ... />',
    source="OpenVINO IR, version 11",
    of_kinds=True,
)
def constant_without_type(facts: LayerSubject) -> Hits:
    """Constants and Parameters of which the type or the shape stands at their port alone."""
    missing = [name for name in ("element_type", "shape") if name not in facts.layer.attributes]
    if missing and "value" not in facts.layer.attributes:
        yield outside(facts.layer, missing=" and no ".join(missing))


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


@found_by(
    "O112",
    "attribute-missing",
    LAYER,
    WARNING,
    *_DEMANDED,
    says="{layer} has no attribute '{attribute}', which the specification demands: {taken} is taken",
    means="readers take what they like: another axis, another bound, another mode",
    do="write {attribute} as the framework's model has it",
    of_kinds=True,
)
def attribute_missing(facts: LayerSubject) -> Hits:
    """Operations without an attribute that has no default."""
    layer = facts.layer
    for name, taken in _DEMANDED[layer.type].items():
        if name in layer.attributes or (layer.type == "MVN" and layer.definition != 6) or layer.opened_from is not None:
            continue
        if name.startswith("pads") and layer.attributes.get("auto_pad", "explicit").startswith(("same", "valid")):
            continue
        yield outside(layer, attribute=name, taken=taken)


@found_by(
    "O113",
    "random-without-seed",
    LAYER,
    NOTE,
    "RandomUniform",
    "Multinomial",
    says="{layer} has no seed: its numbers are others in each run",
    means="two runs differ, also of one runtime: what depends on it cannot be compared; maybe a dropout is left",
    do="set global_seed or op_seed, or take out what was for training alone",
    source="specification of RandomUniform",
    of_kinds=True,
)
def random_without_seed(facts: LayerSubject) -> Hits:
    """Random numbers that nobody can make again."""
    seeds = [facts.layer.attributes.get(name, "0").strip() for name in ("global_seed", "op_seed")]
    if all(not seed.strip("0") for seed in seeds):
        yield outside(facts.layer)
