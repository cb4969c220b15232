"""Lower recurrent sequences to loops: a TensorIterator over the cell for each direction.

Further layers adapt the ports of the sequence:

    X ──────────────────────────┐
    ShapeOf ─ Gather ─ Range ───┤ positions
    sequence_lengths ─ Reshape ─┤ [batch, 1]         ┌─ Unsqueeze ─ Y;
    H, C ─ Squeeze ─ Select ────┼── TensorIterator ──┤
    W, R, B ─ Squeeze ──────────┘                    └─ Unsqueeze ─ Ho, Co.

A bidirectional sequence has a Split before each Squeeze, loops NAME/forward and NAME/reverse, and a Concat behind each
Unsqueeze. The Select makes the states of a sequence of length 0 zero, which no step will change. Floats narrower than
f32 are converted before the loop and back behind it, because a sequence rounds once, at its end.

In the loop, this step's slice of X and the step index are sliced, from the end for a reverse direction; H (and C) are
carried; lengths, W, R, B are invariant. Behind the length of its sequence a row keeps its state and outputs zeros. So a
reverse direction, which begins at the last time step, keeps the initial state of a row until it comes to that row's own
end. The results equal the results of the sequence's own kernel, which is faster. Source: the sequences' pages (category
Sequence processing).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec.structs import replace

from stepper.element_types import BOOLEAN, F32, I64, is_floating
from stepper.ir.lowering import GraphBuilder, Tensor, lowering
from stepper.ir.model import BackEdge, Body, InputMapping, Layer, OutputMapping, Slicing
from stepper.records import Record

TIME = 1
"""The axis of the time steps in X and in a direction's Y."""


class SequenceKind(Record):
    """Step of a sequence: its cell, the opset of the cell's definition, and the states that it carries."""

    cell: str
    definition: int
    states: tuple[str, ...]


class Direction(Record):
    """The inputs of one direction, without the axis of the directions; `lengths` has shape [batch, 1]."""

    x: Tensor
    positions: Tensor
    lengths: Tensor
    states: tuple[Tensor, ...]
    weights: tuple[Tensor, ...]
    reverse: bool

    @property
    def all(self) -> tuple[Tensor, ...]:
        """Every input, in the order of the loop's ports and of its body's Parameters."""
        return (self.x, self.positions, self.lengths, *self.states, *self.weights)


_KINDS = {
    "LSTMSequence": SequenceKind("LSTMCell", 4, ("H", "C")),
    "GRUSequence": SequenceKind("GRUCell", 3, ("H",)),
    "RNNSequence": SequenceKind("RNNCell", 3, ("H",)),
}
_DIRECTIONS = {"forward": ("forward",), "reverse": ("reverse",), "bidirectional": ("forward", "reverse")}
_OUTPUTS = ("Y", "Ho", "Co")


def _is_sound(layer: Layer) -> bool:
    """Return True for a sequence of a known definition with its direction and its ports in order."""
    kind = _KINDS[layer.type]
    if layer.definition != 5 or not _directions(layer):
        return False
    return len(layer.inputs) == 5 + len(kind.states) and len(layer.outputs) <= 1 + len(kind.states)


def _directions(layer: Layer) -> tuple[str, ...]:
    return _DIRECTIONS.get(layer.attributes.get("direction", "forward").strip().lower(), ())


@lowering(*_KINDS, applies=_is_sound, on_request=True)
def lower_sequence(builder: GraphBuilder, layer: Layer, inputs: Sequence[Tensor]) -> list[Tensor]:
    """Add the loops of one sequence, and what is around them."""
    return _Sequence(builder, layer, inputs).outputs()


class _Sequence:
    """Adds the layers of one sequence to a builder."""

    def __init__(self, builder: GraphBuilder, layer: Layer, inputs: Sequence[Tensor]) -> None:
        self._builder, self._layer = builder, layer
        self._kind, self._directions = _KINDS[layer.type], _directions(layer)
        states = len(self._kind.states)
        ranks = (3, *[3] * states, 1, 3, 3, 2)  # X, states, lengths, W, R, B
        inputs = [tensor.of_rank(rank) for tensor, rank in zip(inputs, ranks, strict=True)]
        self._x, self._states, self._lengths = inputs[0], inputs[1 : 1 + states], inputs[1 + states]
        self._weights = inputs[2 + states :]
        self._type = self._x.type
        self._wide_type = (
            F32
            if (self._type is not None and is_floating(self._type.dtype) and self._type.dtype.itemsize < 4)
            else None
        )

    def outputs(self) -> list[Tensor]:
        """Add them all and return what the sequence gives."""
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
        count = len(self._layer.outputs)
        return [self._given(index, [outputs[index] for outputs in given]) for index in range(count)]

    def _positions(self) -> Tensor:
        """Return the numbers of the time steps."""
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
        """Return each state for each direction, zero for rows that have no step."""
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
        """Return the tensor of each direction, in the type in which the loop computes."""
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
        """Return the loop of one direction; the first has the id of the sequence, one that is alone its name, too."""
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
        """Return Y with a known shape.

        A loop without a time step cannot infer the size of Y if the file leaves it open.
        """
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

    def _given(self, index: int, parts: Sequence[Tensor]) -> Tensor:
        """Return the output of the sequence at a port: in its type, the directions side by side on axis 1."""
        builder, name = self._builder, _OUTPUTS[index]
        inputs = [builder.converted(f"{name}_narrow", part, self._wide_type and self._type) for part in parts]
        if len(inputs) == 1:
            return builder.unsqueezed(name, inputs[0], 1)
        parts = [builder.unsqueezed(f"{name}_unsqueezed", part, 1) for part in inputs]
        dims = (parts[0].dims[0], len(parts), *parts[0].dims[2:])
        return builder.add("Concat", 1, name, parts, [(parts[0].type, dims)], {"axis": "1"})[0]


def add_loop(
    builder: GraphBuilder,
    name: str,
    kind: SequenceKind,
    attributes: Mapping[str, str],
    direction: Direction,
    *,
    identity: int | None,
    opened_from: str,
) -> tuple[Tensor, ...]:
    """Add the loop; Y of shape [batch, time, hidden], and the last states of shape [batch, hidden]."""
    body = _body(kind, attributes, direction, builder.line)
    hidden = direction.states[0]
    batch, time = direction.x.dims[:2]
    outputs = [(hidden.type, (batch, time, hidden.dims[1])), *((state.type, state.dims) for state in direction.states)]
    return builder.add(
        "TensorIterator", 1, name, direction.all, outputs, identity=identity, bodies=(body,), opened_from=opened_from
    )


def _body(kind: SequenceKind, attributes: Mapping[str, str], direction: Direction, line: int) -> Body:
    inner = GraphBuilder(line)
    names = ("X", "position", "sequence_lengths", *kind.states, "W", "R", "B")
    batch, _time, size = direction.x.dims
    outer = (
        Tensor(direction.x.source, direction.x.type, (batch, 1, size)),
        Tensor(direction.positions.source, direction.positions.type, (1,)),
    )
    parameters = [
        inner.parameter(name, tensor.type, tensor.dims)
        for name, tensor in zip(names, (*outer, *direction.all[2:]), strict=True)
    ]
    y, carried = _step(inner, kind, attributes, parameters)
    slicing = Slicing(TIME, -1, 0, -1, 1) if direction.reverse else Slicing(TIME, 0, -1, 1, 1)
    cuts = {0: slicing, 1: replace(slicing, axis=0)}
    ids = [parameter.source.layer for parameter in parameters]
    inputs = [InputMapping(k, identity, cuts.get(k), None, False, line) for k, identity in enumerate(ids)]
    outputs = [OutputMapping(0, y, slicing, None, line)]
    outputs += [OutputMapping(1 + k, result, None, None, line) for k, result in enumerate(carried)]
    back_edges = [BackEdge(result, ids[3 + k], line) for k, result in enumerate(carried)]
    return Body("body", inner.graph(), tuple(inputs), tuple(outputs), tuple(back_edges), False, line)


def _step(
    inner: GraphBuilder, kind: SequenceKind, attributes: Mapping[str, str], parameters: Sequence[Tensor]
) -> tuple[int, list[int]]:
    """Return one time step; the ids of the Results for Y and for each state."""
    x, position, lengths = parameters[:3]
    states, weights = parameters[3 : 3 + len(kind.states)], parameters[3 + len(kind.states) :]
    within = inner.add("Less", 1, "is_within_length", [position, lengths], [(BOOLEAN, lengths.dims)])[0]
    declared = [(state.type, state.dims) for state in states]
    present = inner.squeezed("X_t", x, TIME)
    new = inner.add(kind.cell, kind.definition, "cell", [present, *states, *weights], declared, attributes)
    held = [
        inner.selected(f"{name}_held", within, after, before)
        for name, after, before in zip(kind.states, new, states, strict=True)
    ]
    given = inner.selected("Y_t", within, new[0], zero_like(inner, new[0]))
    piece = inner.unsqueezed("Y_step", given, TIME)
    results = [inner.result(f"{name}_result", state) for name, state in zip(kind.states, held, strict=True)]
    return inner.result("Y_result", piece), results


def zero_like(builder: GraphBuilder, tensor: Tensor) -> Tensor:
    """Return a scalar 0 of the tensor's type, which a file may leave open."""
    zero = builder.literal("zero", 0, tensor.type or F32)
    if tensor.type is not None:
        return zero
    return builder.add("ConvertLike", 1, "zero_like", [zero, tensor], [(None, ())])[0]
