"""A recurrent sequence as layers: a loop for each direction, and around them what gives the ports their shapes.

    X ──────────────────────────┐
    ShapeOf ─ Gather ─ Range ───┤ positions
    sequence_lengths ─ Reshape ─┤ [batch, 1]         ┌─ Unsqueeze ─ Y
    H, C ─ Squeeze ─ Select ────┼── TensorIterator ──┤
    W, R, B ─ Squeeze ──────────┘                    └─ Unsqueeze ─ Ho, Co

Bidirectional: Split before each Squeeze, loops NAME/forward and NAME/reverse, Concat behind each Unsqueeze. The Select
makes the states of a sequence of length 0 zero, which no step will change. Floats narrower than f32 are converted
before the loop and back behind it, for a sequence rounds once, at its end.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from stepper.element_types import BOOLEAN, F32, I64, ElementType, is_floating
from stepper.engine.graph_builder import Declared, GraphBuilder, Tensor
from stepper.engine.sequence_bodies import TIME, Direction, SequenceKind, add_loop, zero_like
from stepper.ir.model import Layer

_KINDS: Final = {
    "LSTMSequence": SequenceKind("LSTMCell", 4, ("H", "C")),
    "GRUSequence": SequenceKind("GRUCell", 3, ("H",)),
    "RNNSequence": SequenceKind("RNNCell", 3, ("H",)),
}
_DIRECTIONS: Final = {"forward": ("forward",), "reverse": ("reverse",), "bidirectional": ("forward", "reverse")}
_OUTPUTS: Final = ("Y", "Ho", "Co")


def is_sequence(layer: Layer) -> bool:
    """Whether the layer can be opened: a sequence of a known definition with its direction and its ports in order."""
    kind = _KINDS.get(layer.type)
    if kind is None or layer.definition != 5 or not _directions(layer):
        return False
    return len(layer.inputs) == 5 + len(kind.states) and len(layer.outputs) <= 1 + len(kind.states)


def input_ranks(layer: Layer) -> tuple[int, ...]:
    """The rank of each input of a sequence: X, states, lengths, W, R, B."""
    return (3, *(3 for _ in _KINDS[layer.type].states), 1, 3, 3, 2)


def _directions(layer: Layer) -> tuple[str, ...]:
    return _DIRECTIONS.get(layer.attributes.get("direction", "forward").strip().lower(), ())


class SequenceOpener:
    """Adds the layers of one sequence to a builder; `outputs` are the ids of those that give what the sequence gave."""

    def __init__(self, builder: GraphBuilder, layer: Layer, inputs: Sequence[Tensor], outputs: Sequence[int]) -> None:
        self._builder, self._layer, self._ids = builder, layer, outputs
        self._kind, self._directions = _KINDS[layer.type], _directions(layer)
        states = len(self._kind.states)
        self._x, self._states, self._lengths = inputs[0], inputs[1 : 1 + states], inputs[1 + states]
        self._weights = inputs[2 + states :]
        self._computed = F32 if _is_narrow(self._x.type) else None

    def open(self) -> None:
        """Add them all."""
        positions, lengths = self._positions(), self._column_of_lengths()
        x = self._builder.converted("X_wide", self._x, self._computed)
        initial = [self._initial(name, state, lengths) for name, state in zip(self._kind.states, self._states)]
        weights = [self._by_direction(name, tensor, 0) for name, tensor in zip("WRB", self._weights)]
        outputs = [
            self._loop(name, Direction(x, positions, lengths, states, own_weights, name == "reverse"))
            for name, states, own_weights in zip(self._directions, zip(*initial), zip(*weights))
        ]
        for index, (identity, port) in enumerate(zip(self._ids, self._layer.outputs, strict=True)):
            self._give(_OUTPUTS[index], [given[index] for given in outputs], identity, port.names)

    def _positions(self) -> Tensor:
        """The numbers of the time steps."""
        add, time = self._builder.add, self._x.dims[TIME]
        shape = add("ShapeOf", 3, "X_shape", [self._x], [(I64, (3,))], {"output_type": "i64"})[0]
        indices = [self._builder.literal("time_axis", TIME), self._builder.literal("0", 0)]
        count = add("Gather", 8, "time_steps", [shape, *indices], [(I64, ())])[0]
        limits = [self._builder.literal("0", 0), count, self._builder.literal("1", 1)]
        return add("Range", 4, "positions", limits, [(I64, (time,))], {"output_type": "i64"})[0]

    def _column_of_lengths(self) -> Tensor:
        lengths = self._builder.converted("sequence_lengths_i64", self._lengths, I64)
        inputs = [lengths, self._builder.literal("column", (-1, 1))]
        return self._builder.add("Reshape", 1, "sequence_lengths", inputs, [(I64, (self._x.dims[0], 1))])[0]

    def _initial(self, name: str, state: Tensor, lengths: Tensor) -> list[Tensor]:
        """A state for each direction, zero for rows without a step."""
        builder = self._builder
        inputs = [lengths, builder.literal("0", 0)]
        has_steps = builder.add("Greater", 1, f"{name}_has_steps", inputs, [(BOOLEAN, lengths.dims)])[0]
        return [
            builder.selected(f"{name}_initial", has_steps, part, zero_like(builder, part))
            for part in self._by_direction(name, state, 1)
        ]

    def _by_direction(self, name: str, tensor: Tensor, axis: int) -> list[Tensor]:
        """The tensor of each direction, in the type in which the loop computes."""
        wide = self._builder.converted(f"{name}_wide", tensor, self._computed)
        parts: Sequence[Tensor] = [wide]
        if len(self._directions) == 2:
            dims = (*wide.dims[:axis], 1, *wide.dims[axis + 1 :])
            inputs = [wide, self._builder.literal(f"axis_{axis}_alone", axis)]
            parts = self._builder.add("Split", 1, f"{name}_split", inputs, [(wide.type, dims)] * 2, {"num_splits": "2"})
        return [self._builder.squeezed(f"{name}_squeezed", part, axis) for part in parts]
