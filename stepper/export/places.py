"""Operations that a zoom is about: where they stand in the model, and which box of a figure shows them."""

from __future__ import annotations

from collections.abc import Iterator
from enum import StrEnum
from typing import Final, NamedTuple

from msgspec.structs import replace

from stepper.engine.program import CompiledModel
from stepper.errors import UsageError
from stepper.export.figures.content import FigureContent
from stepper.export.figures.drawn_graph import drawn_graph
from stepper.export.figures.figure import FigureSite, InnerBody
from stepper.export.figures.loop_trace import LoopPath
from stepper.export.parting import PartingPlace
from stepper.ir.model import Body, Graph, Layer, Model
from stepper.query.address_resolution import resolve
from stepper.query.address_syntax import parse_address
from stepper.records import Record

USUAL_HOPS: Final = 2


class BodyStep(NamedTuple):
    """A step into a body: the loop or If, the graph in which it stands, and which of its bodies."""

    layer: Layer
    outer: Graph
    body: Body


class FigurePlace(Record, eq=False):
    """An operation that a user has named with `address`; `iteration` is that of the loop around it (None: not said)."""

    address: str
    steps: tuple[BodyStep, ...]
    graph: Graph
    layer: Layer
    iteration: int | None = None

    @property
    def loop(self) -> LoopPath | None:
        """The innermost loop around it."""
        return next((loop for loop in reversed(self.around) if loop.layer.is_loop), None)

    @property
    def around(self) -> tuple[LoopPath, ...]:
        """All loops and Ifs around it, outer before inner."""
        layers = [step.layer for step in self.steps]
        return tuple(LoopPath(tuple(layers[:at]), step.layer, step.outer) for at, step in enumerate(self.steps))

    def depth_in(self, root: LoopPath | None) -> int:
        """Return how many levels below a figure of `root` (None: of the model) it stands.

        Raise UsageError where it is not inside.
        """
        if root is None:
            return len(self.steps)
        depth = next((at for at, step in enumerate(self.steps) if step.layer is root.layer), None)
        if depth is None:
            raise UsageError(
                f"'{self.address}' is not inside of {root.title}; --loop names another one, or use --view model"
            )
        return len(self.steps) - depth - 1

    def shapes_in(self, root: LoopPath | None, content: FigureContent) -> tuple[str, str]:
        """Return the ids of its box and of its open frame in the model's figure, or in the rolled one of `root`."""
        begin = len(self.steps) - self.depth_in(root) - (root is not None)
        inside = tuple(InnerBody(step.layer.id, step.body.role) for step in self.steps[begin:])
        body = self.steps[-1].body if self.steps and self.steps[-1].layer.is_loop else None
        drawn = drawn_graph(self.graph, body, content.folding(self.graph))
        box, frame = (FigureSite(inside, own) for own in (f"n{drawn.box_of[self.layer.id]}", f"c{self.layer.id}"))
        return box.id, frame.id


def place_named(address: str, compiled: CompiledModel) -> FigurePlace:
    """Return the place that an address names. Raise UsageError for one that names none, or several."""
    target = resolve(parse_address(address), compiled)
    graph, asked = target.program.graph, target.iterations[-1] if target.iterations else None
    steps = _steps_to(compiled.main.graph, id(graph)) or ()
    return FigurePlace(address, steps, graph, target.named, asked if isinstance(asked, int) else None)


class ZoomKind(StrEnum):
    """Kind of a zoom: one operation with its neighbours, what lies between two, or the first inside of the whole."""

    AROUND = "around"
    BETWEEN = "between"
    DETAIL = "detail"


OPTIONS: Final = {
    ZoomKind.AROUND: "--around",
    ZoomKind.BETWEEN: "--from and --to",
    ZoomKind.DETAIL: "--detail",
}
"""Options of the command line by what they ask for."""


class Zoom(Record, eq=False):
    """The part of a figure that is drawn: what is round `place` within so many `hops`, or between it and `end`.

    `depth` is how many levels of bodies are drawn inside of their layers (None: as many as it takes). `differing`: of
    two runs, neighbours of which the values are the same are left out.
    """

    kind: ZoomKind
    place: FigurePlace
    end: FigurePlace | None = None
    hops: int = USUAL_HOPS
    depth: int | None = None
    differing: bool = False

    @property
    def places(self) -> tuple[FigurePlace, ...]:
        """The operations that it names."""
        return (self.place,) if self.end is None else (self.place, self.end)

    @property
    def loop(self) -> LoopPath | None:
        """The innermost loop around all of them."""
        if self.end is None:
            return self.place.loop
        shared = [loop for loop in self.place.around if any(loop.layer is one.layer for one in self.end.around)]
        return next((loop for loop in reversed(shared) if loop.layer.is_loop), None)


def zoom_around(model: Model, place: PartingPlace) -> Zoom | None:
    """Return a zoom on the operation of the first difference; None where it is not in the model."""
    graph, layer, _ = place.value
    steps = _steps_to(model.graph, graph)
    if steps is None:
        return None
    inside = steps[-1].body.graph if steps else model.graph
    found = inside.by_id.get(layer)
    return None if found is None else Zoom(ZoomKind.AROUND, FigurePlace(place.name, steps, inside, found))


def _steps_to(graph: Graph, wanted: int, before: tuple[BodyStep, ...] = ()) -> tuple[BodyStep, ...] | None:
    """Return the steps into the bodies that lead to a graph by its id; None where there are none."""
    if id(graph) == wanted:
        return before
    ways = (
        _steps_to(body.graph, wanted, (*before, BodyStep(layer, graph, body)))
        for layer in graph.layers
        for body in layer.bodies
    )
    return next((way for way in ways if way is not None), None)


def smaller_parts(zoom: Zoom, *, of_two_runs: bool) -> Iterator[Zoom]:
    """Yield zooms on the same operation with fewer and fewer neighbours; the ways between two have no fewer.

    Of two runs neighbours that are the same go before those that are nearer.
    """
    if zoom.end is not None:
        return
    for hops in reversed(range(zoom.hops + 1)):
        if hops < zoom.hops:
            yield replace(zoom, hops=hops)
        if hops and of_two_runs:
            yield replace(zoom, hops=hops, differing=True)


def zoom_named(
    compiled: CompiledModel,
    *,
    around: str | None = None,
    ways: tuple[str, str] | None = None,
    detail: str | None = None,
    hops: int = USUAL_HOPS,
    depth: int | None = None,
) -> Zoom | None:
    """Return the part of a figure that one of these addresses asks for; None for none. Raise UsageError for several."""
    asked = {ZoomKind.AROUND: (around,), ZoomKind.BETWEEN: ways or (None,), ZoomKind.DETAIL: (detail,)}
    given = {kind: addresses for kind, addresses in asked.items() if addresses[0] is not None}
    if len(given) > 1:
        names = " and ".join(OPTIONS[kind] for kind in given)
        raise UsageError(f"{names} are parts of their own; name one of them")
    for kind, addresses in given.items():
        place, *end = (place_named(address, compiled) for address in addresses if address is not None)
        return Zoom(kind, place, end[0] if end else None, hops, depth)
    return None
