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

from collections import Counter
from collections.abc import Sequence
from typing import Final

from stepper.element_types import BOOLEAN, F32, I64, ElementType, is_floating
from stepper.engine.graph_builder import GraphBuilder, Tensor
from stepper.engine.sequence_bodies import TIME, Direction, SequenceKind, add_loop, zero_like
from stepper.ir.model import Layer, Model, Port

_KINDS: Final = {
    "LSTMSequence": SequenceKind("LSTMCell", 4, ("H", "C")),
    "GRUSequence": SequenceKind("GRUCell", 3, ("H",)),
    "RNNSequence": SequenceKind("RNNCell", 3, ("H",)),
}
_DIRECTIONS: Final = {"forward": ("forward",), "reverse": ("reverse",), "bidirectional": ("forward", "reverse")}
_OUTPUTS: Final = ("Y", "Ho", "Co")


def sequences_of(model: Model) -> tuple[Layer, ...]:
    """The layers of a model that would be opened as loops."""
    return tuple(
        layer
        for _path, graph in model.graphs()
        for layer in graph.layers
        if is_sequence(layer) and None not in graph.sources[layer.id]
    )


def unopened(model: Model) -> str:
    """That a model has sequences, and what opens them; empty for one without any."""
    found = sequences_of(model)
    if not found:
        return ""
    kinds = ", ".join(f"{count} {kind}" for kind, count in sorted(Counter(layer.type for layer in found).items()))
    return f"--open-sequences opens {kinds} as {'a loop' if len(found) == 1 else 'loops'}"


def without_loops(model: Model) -> str:
    """That a model has no loop, and what would give it some; empty for one that has a loop."""
    if any(layer.is_loop for _path, graph in model.graphs() for layer in graph.layers):
        return ""
    return "; ".join(["the model has no loop", *filter(None, [unopened(model)])])


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
        self._type = self._x.type
        self._wide_type = F32 if _is_narrow(self._type) else None

    def open(self) -> None:
        """Add them all."""
        x = self._builder.converted("X_wide", self._x, self._wide_type)
        positions, lengths = self._positions(), self._column_of_lengths()
        states = self._initial_states(lengths)
        weights = [self._by_direction(name, tensor, 0) for name, tensor in zip("WRB", self._weights, strict=True)]
        given = []
        for number, name in enumerate(self._directions):
            own_states = tuple(parts[number] for parts in states)
            own_weights = tuple(parts[number] for parts in weights)
            given.append(
                self._loop(Direction(x, positions, lengths, own_states, own_weights, name == "reverse"), number)
            )
        for index, port in enumerate(self._layer.outputs):
            self._give(index, [outputs[index] for outputs in given], port)

    def _positions(self) -> Tensor:
        """The numbers of the time steps."""
        builder = self._builder
        zero, one = builder.literal("zero", 0), builder.literal("one", 1)
        axis = builder.literal("time_axis", TIME)
        count = builder.add("Gather", 8, "time_steps", [self._shape_of(self._x), axis, zero], [(I64, ())])[0]
        declared = [(I64, (self._x.dims[TIME],))]
        return builder.add("Range", 4, "positions", [zero, count, one], declared, {"output_type": "i64"})[0]

    def _column_of_lengths(self) -> Tensor:
        lengths = self._builder.converted("sequence_lengths_i64", self._lengths, I64)
        inputs = [lengths, self._builder.literal("column", (-1, 1))]
        return self._builder.add("Reshape", 1, "sequence_lengths", inputs, [(I64, (self._x.dims[0], 1))])[0]

    def _initial_states(self, lengths: Tensor) -> list[list[Tensor]]:
        """Each state for each direction, zero for rows that have no step."""
        builder = self._builder
        inputs = [lengths, builder.literal("zero", 0)]
        has_steps = builder.add("Greater", 1, "has_steps", inputs, [(BOOLEAN, lengths.dims)])[0]
        found = []
        for name, state in zip(self._kind.states, self._states, strict=True):
            parts = self._by_direction(name, state, 1)
            zero = zero_like(builder, parts[0])
            found.append([builder.selected(f"{name}_initial", has_steps, part, zero) for part in parts])
        return found

    def _by_direction(self, name: str, tensor: Tensor, axis: int) -> list[Tensor]:
        """The tensor of each direction, in the type in which the loop computes."""
        builder = self._builder
        wide = builder.converted(f"{name}_wide", tensor, self._wide_type)
        parts: Sequence[Tensor] = (wide,)
        if (count := len(self._directions)) > 1:
            dims = (*wide.dims[:axis], 1, *wide.dims[axis + 1 :])
            inputs = [wide, builder.literal(f"directions_axis_{axis}", axis)]
            declared = [(wide.type, dims)] * count
            parts = builder.add("Split", 1, f"{name}_split", inputs, declared, {"num_splits": str(count)})
        return [builder.squeezed(f"{name}_squeezed", part, axis) for part in parts]

    def _loop(self, direction: Direction, number: int) -> tuple[Tensor, ...]:
        """The loop of one direction; the first has the id of the sequence, one that is alone its name, too."""
        attributes = {name: text for name, text in self._layer.attributes.items() if name != "direction"}
        y, *last_states = add_loop(
            self._builder,
            self._directions[number] if len(self._directions) > 1 else "",
            self._kind,
            attributes,
            direction,
            identity=self._layer.id if number == 0 else None,
            opened_from=self._layer.type,
        )
        return self._of_known_shape(y, direction), *last_states

    def _of_known_shape(self, y: Tensor, direction: Direction) -> Tensor:
        """Y as it is; without a time step the loop could not say how large it is where the file does not."""
        if -1 not in (y.dims[0], y.dims[2]):
            return y
        builder = self._builder
        sizes = [self._shape_of(tensor) for tensor in (direction.x, direction.states[0])]
        both = builder.add("Concat", 1, "X_and_H_shape", sizes, [(I64, (5,))], {"axis": "0"})[0]
        inputs = [both, builder.literal("batch_time_hidden", (0, 1, 4)), builder.literal("zero", 0)]
        shape = builder.add("Gather", 8, "Y_shape", inputs, [(I64, (3,))])[0]
        return builder.add("Reshape", 1, "Y_shaped", [y, shape], [(y.type, y.dims)])[0]

    def _shape_of(self, tensor: Tensor) -> Tensor:
        declared = [(I64, (len(tensor.dims),))]
        return self._builder.add("ShapeOf", 3, "shape", [tensor], declared, {"output_type": "i64"})[0]

    def _give(self, index: int, parts: Sequence[Tensor], port: Port) -> None:
        """What the sequence gave at a port: in its type, the directions side by side on axis 1."""
        builder, name = self._builder, _OUTPUTS[index]
        inputs = [builder.converted(f"{name}_narrow", part, self._wide_type and self._type) for part in parts]
        type, attributes = "Unsqueeze", {}
        if len(parts) == 1:
            inputs.append(builder.axis(1))
        else:
            type, attributes = "Concat", {"axis": "1"}
            inputs = [builder.unsqueezed(f"{name}_unsqueezed", part, 1) for part in inputs]
        declared = [(port.element_type, port.dims)]
        identity = self._ids[index]
        builder.add(type, 1, name, inputs, declared, attributes, identity=identity, tensor_names=port.names)


def _is_narrow(element_type: ElementType | None) -> bool:
    return element_type is not None and is_floating(element_type.dtype) and element_type.dtype.itemsize < 4
