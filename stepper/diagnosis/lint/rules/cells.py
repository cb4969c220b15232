"""Rules of recurrent cells and sequences: their activations, and the bound of what goes into their gates."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Final

from stepper.diagnosis.findings import Severity
from stepper.diagnosis.lint.subjects import LayerSubject
from stepper.diagnosis.rule import Example, Rule, RuleHit, SubjectKind, found_by, outside
from stepper.errors import KernelError
from stepper.ops.recurrent import activations_of_gates

_GATES: Final[Mapping[str, int]] = {
    f"{cell}{kind}": count for cell, count in (("LSTM", 3), ("GRU", 2), ("RNN", 1)) for kind in ("Cell", "Sequence")
}
"""How many activations each has; of LSTM and GRU the first is that of the gates."""
_NOTHING_LEFT: Final = 0.1


def _names(facts: LayerSubject) -> tuple[str, ...]:
    text = facts.layer.attributes.get("activations", "")
    return tuple(name.strip().lower() for name in text.split(",")) if text.strip() else ()


@found_by(
    Rule(
        "K101",
        "cell-activations",
        SubjectKind.LAYER,
        Severity.ERROR,
        says="activations of {layer}: {reason}",
        means="the run fails there; OpenVINO refuses the file",
        do="name as many functions as the cell has, of sigmoid, tanh, relu and hardsigmoid",
        source="specification of LSTMCell, GRUCell and RNNCell, activations",
        example=Example("remembering", 'activations="sigmoid,tanh"', 'activations="sigmod,tanh"'),
    ),
    *_GATES,
)
def cell_activations(facts: LayerSubject) -> Iterator[RuleHit]:
    """Activations that do not exist, or are too few."""
    names = _names(facts)
    if not names:
        return
    try:
        activations_of_gates(names, (), (), _GATES[facts.layer.type])
    except KernelError as error:
        yield outside(facts.layer, layer=facts.site(facts.layer), reason=str(error))


@found_by(
    Rule(
        "K102",
        "gates-not-bounded",
        SubjectKind.LAYER,
        Severity.WARNING,
        says="{layer} has {name} for its gates, which is not held between 0 and 1",
        means="a gate no longer says which share of the state goes on: the state can grow, or change its sign (a note "
        "outside of loops)",
        do="let the first of activations be sigmoid; they stand in the order of gates, cell and output",
        source="specification of LSTMCell and GRUCell, activations",
        example=Example("remembering", 'activations="sigmoid,tanh"', 'activations="tanh,sigmoid"'),
    ),
    *(name for name, count in _GATES.items() if count > 1),
)
def gates_not_bounded(facts: LayerSubject) -> Iterator[RuleHit]:
    """Gates of another function than the sigmoid."""
    names = _names(facts)
    if names and names[0] in ("tanh", "relu"):
        hit = outside(facts.layer, layer=facts.site(facts.layer), name=names[0])
        yield hit if facts.path else hit.graded(Severity.NOTE)  # without a loop nothing of it adds up


@found_by(
    Rule(
        "K103",
        "cell-clip-small",
        SubjectKind.LAYER,
        Severity.WARNING,
        says="clip of {layer} is {clip:g}: sigmoids go from {low:.3g} to {high:.3g} alone",
        means="the gates can neither open nor close, and the state is nearly the same whatever comes in (a note "
        "from 0.1 on)",
        do="set clip as the framework's model has it; 0 or none does not clip",
        source="specification of LSTMCell, clip",
        example=Example("remembering", 'clip="0"', 'clip="0.001"'),
    ),
    *_GATES,
)
def cell_clip_small(facts: LayerSubject) -> Iterator[RuleHit]:
    """Bounds in which the functions of the gates are nearly constant."""
    text = facts.layer.attributes.get("clip", "")
    try:
        clip = float(text)
    except ValueError:
        return
    if 0 < clip < 0.5:
        high = 1 / (1 + math.exp(-clip))
        hit = outside(facts.layer, layer=facts.site(facts.layer), clip=clip, low=1 - high, high=high)
        yield hit if clip < _NOTHING_LEFT else hit.graded(Severity.NOTE)
