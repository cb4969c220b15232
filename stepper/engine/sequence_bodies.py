"""One direction of a recurrent sequence as a TensorIterator over its cell.

    x, position   this step's slice of X, and which step it is: sliced, from the end for a reverse direction
    H (and C)     carried
    lengths, W, R, B   invariant

Behind the length of its sequence a row holds its state and gives zeros. So a reverse direction, which begins at the
last time step, leaves the initial state of a row alone until it comes to that row's own end.
Source: the sequences' pages (category Sequence processing).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from msgspec import Struct

from stepper.element_types import BOOLEAN, F32
from stepper.engine.graph_builder import GraphBuilder, Tensor
from stepper.ir.model import BackEdge, Body, InputMapping, OutputMapping, Slicing

TIME: Final = 1
"""The axis of the time steps in X and in a direction's Y."""


class SequenceKind(Struct, frozen=True):
    """What a sequence steps: its cell, the opset of the cell's definition, and the states that it carries."""

    cell: str
    definition: int
    states: tuple[str, ...]


class Direction(Struct, frozen=True):
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
    outer = (_one_step(direction.x), Tensor(direction.positions.source, direction.positions.type, (1,)))
    parameters = [
        inner.parameter(name, tensor.type, tensor.dims)
        for name, tensor in zip(names, (*outer, *direction.all[2:]), strict=True)
    ]
    y, carried = _step(inner, kind, attributes, parameters)
    slicing = Slicing(TIME, -1, 0, -1, 1) if direction.reverse else Slicing(TIME, 0, -1, 1, 1)
    cuts = {0: slicing, 1: slicing._replace(axis=0)}
    ids = [parameter.source.layer for parameter in parameters]
    inputs = [InputMapping(k, identity, cuts.get(k), None, False, line) for k, identity in enumerate(ids)]
    outputs = [OutputMapping(0, y, slicing, None, line)]
    outputs += [OutputMapping(1 + k, result, None, None, line) for k, result in enumerate(carried)]
    back_edges = [BackEdge(result, ids[3 + k], line) for k, result in enumerate(carried)]
    return Body("body", inner.graph(), tuple(inputs), tuple(outputs), tuple(back_edges), False, line)


def _one_step(x: Tensor) -> Tensor:
    batch, _time, size = x.dims
    return Tensor(x.source, x.type, (batch, 1, size))


def _step(
    inner: GraphBuilder, kind: SequenceKind, attributes: Mapping[str, str], parameters: Sequence[Tensor]
) -> tuple[int, list[int]]:
    """One time step; the ids of the Results for Y and for each state."""
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
    """A scalar 0 of the tensor's type, which a file may leave open."""
    zero = builder.literal("zero", 0, tensor.type or F32)
    if tensor.type is not None:
        return zero
    return builder.add("ConvertLike", 1, "zero_like", [zero, tensor], [(None, ())])[0]
