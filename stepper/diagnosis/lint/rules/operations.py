"""Rules of single operations: what they cannot compute, shapes other than declared, attributes outside their range.

Of what is declared in full the operation's own kernel is asked, on zeros, so that lint and a run say the same.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from stepper.diagnosis.findings import Severity
from stepper.diagnosis.lint.subjects import LayerSubject, of_port
from stepper.diagnosis.lint.trials import DECIDING, refusal
from stepper.diagnosis.rule import Example, Rule, RuleHit, SubjectKind, found_by, outside
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
_GIVEN: Final = ("Parameter", "Result", "Constant")
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
        text = facts.layer.attributes.get(where, "")
        axes = [int(text)] if text.strip().lstrip("+-").isdecimal() else []
    return next(((axis, rank) for axis in axes if not -max(rank, 1) <= axis < max(rank, 1)), None)


@found_by(
    Rule(
        "O101",
        "operation-cannot-run",
        SubjectKind.LAYER,
        Severity.ERROR,
        says="{layer} cannot be computed from what is declared of its inputs: {reason}",
        means="the run fails there, in the first iteration; OpenVINO refuses the file",
        do="set the axis, the sizes or the order for {shapes}, or mend the edge that brings another tensor",
        source="specification of the operation",
        example=Example(
            "counting",
            'name="largest" type="ReduceMax" version="opset1">\n<data keep_dims="false" />\n<input>\n'
            '<port id="0" precision="FP32">\n<dim>1</dim>\n<dim>2</dim>\n</port>\n<port id="1" precision="I64">\n'
            "<dim>2</dim>\n</port>\n</input>",
            'name="largest" type="SoftMax" version="opset8"><data axis="3" /><input>'
            '<port id="0" precision="FP32"><dim>1</dim><dim>2</dim></port></input>',
            also=(('<edge from-layer="5" from-port="0" to-layer="7" to-port="1" />', ""),),
        ),
    ),
    *DECIDING,
)
def operation_cannot_run(facts: LayerSubject) -> Iterator[RuleHit]:
    """Operations that refuse tensors of the declared shapes, and axes that the tensor does not have."""
    if not facts.layer.inputs or None in (facts.source(index) for index in range(len(facts.layer.inputs))):
        return
    found = facts.outcome
    reason = "" if found is None else found.refusal
    if found is None and (foreign := _foreign_axis(facts)) is not None:
        reason = f"axis {foreign[0]} is out of range for a tensor of rank {foreign[1]}"
    if reason:
        shapes = [str(facts.tensor(index).shape) for index in range(len(facts.layer.inputs))]
        yield outside(facts.layer, layer=facts.site(facts.layer), reason=reason, shapes=", ".join(shapes))


@found_by(
    Rule(
        "O102",
        "operation-shape",
        SubjectKind.LAYER,
        Severity.WARNING,
        says="{layer} gives {given}, and its output {number} is declared as {declared}",
        means="what follows gets another shape than the one for which the file was written, and may spread or fail",
        do="undo what was changed: the axis, the order, the sizes or keep_dims; or declare what comes out",
        source="specification of the operation",
        example=Example(
            "counting",
            'name="largest" type="ReduceMax" version="opset1">\n<data keep_dims="false" />',
            'name="largest" type="ReduceMax" version="opset1"><data keep_dims="true" />',
            also=(
                (
                    '<port id="2" precision="FP32" names="largest" />',
                    '<port id="2" precision="FP32" names="largest"><dim>2</dim></port>',
                ),
            ),
        ),
    ),
    *DECIDING,
)
def operation_shape(facts: LayerSubject) -> Iterator[RuleHit]:
    """Operations that give another shape than the file declares."""
    found = facts.outcome if facts.layer.inputs else None
    if found is None or found.refusal:
        return
    for number, (port, given) in enumerate(zip(facts.layer.outputs, found.shapes, strict=False)):
        expected = of_port(port).static
        if expected is not None and expected != given:
            yield outside(
                facts.layer,
                layer=facts.site(facts.layer),
                given=shape_text(given),
                number=number,
                declared=shape_text(expected),
            )


@found_by(
    Rule(
        "O103",
        "attribute-outside-its-range",
        SubjectKind.LAYER,
        Severity.WARNING,
        says="{attribute} of {layer} is {value}, and the specification has it {range}",
        means="an eps of 0 divides by 0 where all elements are the same; OpenVINO refuses others, or computes nonsense",
        do="set {attribute} as the framework's model has it",
        source="specification of the operation",
        example=Example(
            "counting",
            'name="largest" type="ReduceMax" version="opset1">\n<data keep_dims="false" />\n<input>\n'
            '<port id="0" precision="FP32">\n<dim>1</dim>\n<dim>2</dim>\n</port>\n<port id="1" precision="I64">\n'
            "<dim>2</dim>\n</port>\n</input>",
            'name="largest" type="MVN" version="opset6"><data eps="0" normalize_variance="true" '
            'eps_mode="inside_sqrt" /><input><port id="0" precision="FP32"><dim>1</dim><dim>2</dim></port>'
            '<port id="1" precision="I64"><dim>2</dim></port></input>',
        ),
    ),
    *_LEAST,
)
def attribute_outside_its_range(facts: LayerSubject) -> Iterator[RuleHit]:
    """Attributes below the least value that the specification allows."""
    for name, (least, is_allowed) in _LEAST[facts.layer.type].items():
        text = facts.layer.attributes.get(name)
        try:
            value = float(text) if text is not None else None
        except ValueError:
            continue  # that it is no number is said elsewhere
        if value is not None and not (value > least or (is_allowed and value == least)):
            bound = f"{least:g} or more" if is_allowed else f"greater than {least:g}"
            yield outside(facts.layer, attribute=name, layer=facts.site(facts.layer), value=text or "", range=bound)


@found_by(
    Rule(
        "O104",
        "operation-refused",
        SubjectKind.LAYER,
        Severity.ERROR,
        says="{layer} is no operation of {version}: {reason}",
        means="the model cannot run",
        do="write the attribute as the specification spells it, and connect the inputs that it names",
        source="specification of the operation",
        example=Example("counting", '<data keep_dims="false" />', '<data keep_dims="maybe" />'),
    ),
)
def operation_refused(facts: LayerSubject) -> Iterator[RuleHit]:
    """Attributes that are missing or unreadable, and numbers of inputs and outputs that the operation does not have."""
    layer = facts.layer
    if layer.definition is None or layer.bodies or layer.opened_from is not None or layer.type in _GIVEN:
        return
    attributes = tuple(sorted(layer.attributes.items()))
    reason = refusal(layer.type, layer.definition, attributes, len(layer.inputs), len(layer.outputs))
    if reason:
        yield outside(layer, layer=facts.site(layer), version=layer.version, reason=reason)
