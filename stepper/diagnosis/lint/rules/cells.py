"""Rules of recurrent cells and sequences: sizes, lengths, activations, and the bound of what goes into their gates."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Final, NamedTuple

from stepper.diagnosis.findings import ERROR, NOTE, WARNING
from stepper.diagnosis.lint.subjects import LayerSubject, integer_attribute
from stepper.diagnosis.rule import LAYER, Hits, found_by, outside
from stepper.errors import KernelError
from stepper.ops.recurrent import activations_of_gates

_GATES: Final[Mapping[str, int]] = {
    f"{cell}{kind}": count for cell, count in (("LSTM", 3), ("GRU", 2), ("RNN", 1)) for kind in ("Cell", "Sequence")
}
"""How many activations each has; of LSTM and GRU the first is that of the gates."""
_NOTHING_LEFT: Final = 0.1


_ROWS: Final[Mapping[str, int]] = {"LSTM": 4, "GRU": 3, "RNN": 1}
"""How many blocks of rows their weights have, one for each gate and new state."""


class _OperandSizes(NamedTuple):
    """An input of weights, biases or a state: what it is, and the sizes that it must have; None: any."""

    at: int
    what: str
    sizes: tuple[int | None, ...]


def _weights(facts: LayerSubject) -> list[_OperandSizes]:
    """Return what a cell or a sequence must be given; nothing where that cannot be told."""
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


@found_by(
    "E203",
    "cell-of-other-size",
    LAYER,
    ERROR,
    *_GATES,
    says="input {number} of {layer} is {given}, expected {what} of {wanted}",
    means="OpenVINO refuses the file, or the gates get the weights of others",
    do="look which weights belong to the cell, at hidden_size, direction and linear_before_reset",
    source="specification of the cells and sequences",
    of_kinds=True,
)
def cell_of_other_size(facts: LayerSubject) -> Hits:
    """Weights, biases and states that do not have the sizes that hidden_size and the gates say."""
    for index, what, sizes in _weights(facts):
        given = facts.tensor(index).static
        if given is None or (
            len(given) == len(sizes) and all(b in (None, a) for a, b in zip(given, sizes, strict=True))
        ):
            continue
        yield outside(facts.layer, number=index, what=what, given=_text(given), wanted=_text(sizes))


@found_by(
    "K104",
    "sequence-lengths",
    LAYER,
    ERROR,
    *(name for name in _GATES if name.endswith("Sequence")),
    says="{layer} is to go through {length} steps, and its input has {steps}",
    means="the run fails, or reads what lies behind the input",
    do="give each sequence of the batch a length from 0 to the size of axis 1",
    source="specification of LSTMSequence, sequence_lengths",
    of_kinds=True,
)
def sequence_lengths(facts: LayerSubject) -> Hits:
    """Constant lengths that no sequence of the input has."""
    lengths, steps = facts.constant(3 if facts.layer.type.startswith("LSTM") else 2), facts.tensor(0).size(1)
    if lengths is None or steps is None or not lengths.size or lengths.dtype.kind not in "iu":
        return
    wrong = lengths[(lengths < 0) | (lengths > steps)]
    if wrong.size:
        yield outside(facts.layer, length=int(wrong[0]), steps=steps)


def _names(facts: LayerSubject) -> tuple[str, ...]:
    text = facts.layer.attributes.get("activations", "")
    return tuple(name.strip().lower() for name in text.split(",")) if text.strip() else ()


@found_by(
    "K101",
    "cell-activations",
    LAYER,
    ERROR,
    *_GATES,
    says="activations of {layer}: {reason}",
    means="the run fails there; OpenVINO refuses the file",
    do="name as many functions as the cell has, of sigmoid, tanh, relu and hardsigmoid",
    source="specification of LSTMCell, GRUCell and RNNCell, activations",
    of_kinds=True,
)
def cell_activations(facts: LayerSubject) -> Hits:
    """Activations that do not exist, or are too few."""
    names = _names(facts)
    if not names:
        return
    try:
        activations_of_gates(names, (), (), _GATES[facts.layer.type])
    except KernelError as error:
        yield outside(facts.layer, reason=str(error))


@found_by(
    "K102",
    "gates-not-bounded",
    LAYER,
    WARNING,
    *(name for name, count in _GATES.items() if count > 1),
    says="{layer} has {name} for its gates, which is not held between 0 and 1",
    means="a gate no longer says which share of the state goes on: the state can grow, or change its sign (a note "
    "outside of loops)",
    do="let the first of activations be sigmoid; they stand in the order of gates, cell and output",
    source="specification of LSTMCell and GRUCell, activations",
    of_kinds=True,
)
def gates_not_bounded(facts: LayerSubject) -> Hits:
    """Gates of another function than the sigmoid."""
    names = _names(facts)
    if names and names[0] in ("tanh", "relu"):
        hit = outside(facts.layer, name=names[0])
        yield hit if facts.path else hit.graded(NOTE)  # without a loop nothing of it adds up


@found_by(
    "K103",
    "cell-clip-small",
    LAYER,
    WARNING,
    *_GATES,
    says="clip of {layer} is {clip:g}: sigmoids go from {low:.3g} to {high:.3g} alone",
    means="the gates can neither open nor close, and the state is nearly the same whatever comes in (a note "
    "from 0.1 on)",
    do="set clip as the framework's model has it; 0 or none does not clip",
    source="specification of LSTMCell, clip",
    of_kinds=True,
)
def cell_clip_small(facts: LayerSubject) -> Hits:
    """Bounds in which the functions of the gates are nearly constant."""
    text = facts.layer.attributes.get("clip", "")
    try:
        clip = float(text)
    except ValueError:
        return
    if 0 < clip < 0.5:
        high = 1 / (1 + math.exp(-clip))
        hit = outside(facts.layer, clip=clip, low=1 - high, high=high)
        yield hit if clip < _NOTHING_LEFT else hit.graded(NOTE)
