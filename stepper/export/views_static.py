"""The views that need no run: the whole model, and a body as it stands (rolled), with its back edges."""

from __future__ import annotations

from stepper.engine.outline import Loop, outline
from stepper.export.choice import Choice
from stepper.export.figure import Cluster, EdgeKind, Figure, Kind
from stepper.export.graph_parts import Parts, kind_of, loop_label
from stepper.export.places import LoopPlace
from stepper.ir.excerpts import excerpt
from stepper.ir.model import Model


def model_figure(model: Model, choice: Choice) -> Figure:
    """The model's own graph; bodies inside of their layers, to the depth asked for."""
    parts = Parts(choice)
    parts.add_graph(model.graph, None, None, "", "")
    name = excerpt(model.name) or "the model"
    loops = [loop for loop in outline(model).loops if loop.type != "If"]
    description = (
        f"The graph of {name}: {len(model.graph.layers)} layers, {_count(len(loops), 'loop')}. "
        "Each box is an operation, each line a tensor; Constants are folded into what reads them."
    )
    return Figure(f"Model {name}", description, tuple(parts.nodes), tuple(parts.edges), tuple(parts.clusters))


def rolled_figure(model: Model, place: LoopPlace, choice: Choice) -> Figure:
    """The body of one loop, its back edges leading from the end of an iteration to the beginning of the next."""
    parts = Parts(choice)
    cluster = parts.add_bodies(place.layer, place.outer, "", "", choice.depth)
    facts = loop_facts(model, place)
    backs = sum(edge.kind is EdgeKind.BACK and edge.source.count(".") == 1 for edge in parts.edges)
    parts.clusters[0] = Cluster(cluster, kind_of(place.layer), f"{loop_label(place.layer)}, one iteration")
    if kind_of(place.layer) is Kind.BRANCH:
        parts.clusters[0] = Cluster(cluster, Kind.BRANCH, loop_label(place.layer))
    description = (
        f"The body of {place.title}: {len(place.body.graph.layers)} layers and {_count(backs, 'back edge')}, which are "
        f"dashed and lead from a Result to the Parameter that gets its value in the next iteration. {'; '.join(facts)}."
    )
    return Figure(
        title=f"{place.title}, rolled",
        description=description,
        nodes=tuple(parts.nodes),
        edges=tuple(parts.edges),
        clusters=tuple(parts.clusters),
        facts=tuple(facts),
    )


def loop_facts(model: Model, place: LoopPlace) -> list[str]:
    """Where the trip count and the condition of a loop come from, as far as the file says."""
    found = loop_outline(model, place)
    facts = []
    if found.trip_count is not None:
        facts.append(f"trip count: {excerpt(found.trip_count)}")
    if found.condition is not None:
        facts.append(f"condition: {excerpt(found.condition)}")
    return facts


def loop_outline(model: Model, place: LoopPlace) -> Loop:
    """What the outline of the model says of one loop."""
    layer = place.layer
    return next(
        loop for loop in outline(model).loops if (loop.id, loop.line, loop.name) == (layer.id, layer.line, layer.name)
    )


def _count(number: int, word: str) -> str:
    return f"{number} {word}{'' if number == 1 else 's'}"
