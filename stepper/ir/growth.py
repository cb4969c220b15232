"""Carried values that grow: a Concat joins pieces to them in each iteration."""

from __future__ import annotations

from typing import NamedTuple

from stepper.ir.model import Graph, Source


class Growth(NamedTuple):
    """A Parameter to which a Concat joins `pieces` on their way to the Result that is carried back to it.

    `only_collects`: nothing else reads the Parameter or the Concat, so that the value takes part in nothing. Ids are
    those of layers.
    """

    parameter: int
    concat: int
    result: int
    pieces: tuple[Source, ...]
    only_collects: bool

    @property
    def piece(self) -> Source | None:
        """The one piece that an iteration adds; None where there are several."""
        return self.pieces[0] if len(self.pieces) == 1 else None

    @property
    def layers(self) -> tuple[int, ...]:
        """The three layers, Parameter first."""
        return (self.parameter, self.concat, self.result)


def growth_of(graph: Graph, result: int, parameter: int) -> Growth | None:
    """Return how the value of a back edge grows, from its Result to its Parameter; None where it does not so."""
    source = graph.sources[result][0]
    concat = None if source is None else graph.by_id[source.layer]
    if concat is None or concat.type != "Concat":
        return None
    inputs = graph.sources[concat.id]
    pieces = tuple(one for one in inputs if one is not None and one.layer != parameter)
    if not pieces or len(pieces) != len(inputs) - 1:
        return None
    only_collects = all(
        [reader.id for reader, _port in graph.readers.get(layer, ())] == [next_one]
        for layer, next_one in ((parameter, concat.id), (concat.id, result))
    )
    return Growth(parameter, concat.id, result, pieces, only_collects)
