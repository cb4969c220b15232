"""The views that need no run: the whole model, and a body as it stands (rolled), with its back edges."""

from __future__ import annotations

from typing import Final

from stepper.engine.roles import ControlOrigin, control
from stepper.export.figures.builder import FigureBuilder, kind_of, loop_label
from stepper.export.figures.content import FigureContent
from stepper.export.figures.figure import Cluster, EdgeKind, Figure, NodeKind
from stepper.export.figures.loop_paths import LoopPath, loops_of
from stepper.ir.model import Model
from stepper.wording import counted, excerpt

NO_LIMIT: Final = 2**63 - 1
"""The trip count that converters write where there is no limit."""


def model_figure(model: Model, content: FigureContent) -> Figure:
    """Return the model's own graph; bodies inside of their layers, to the depth asked for."""
    parts = FigureBuilder(content)
    parts.add_graph(model.graph, None, None, "", "")
    name = excerpt(model.name) or "the model"
    loops = [loop for loop in loops_of(model) if loop.layer.is_loop]
    description = (
        f"The graph of {name}: {len(model.graph.layers)} layers, {counted(len(loops), 'loop')}. "
        "Each box is an operation, each line a tensor; Constants are folded into what reads them."
    )
    return Figure(f"Model {name}", description, tuple(parts.nodes), tuple(parts.edges), tuple(parts.clusters))


def rolled_figure(model: Model, loop: LoopPath, content: FigureContent) -> Figure:
    """Return the body of one loop, its back edges leading from the end of an iteration to the beginning of the next."""
    parts = FigureBuilder(content)
    cluster = parts.add_bodies(loop.layer, loop.outer, "", "", content.depth)
    facts = loop_facts(model, loop)
    backs = sum(edge.kind is EdgeKind.BACK and edge.source.count(".") == 1 for edge in parts.edges)
    parts.clusters[0] = Cluster(cluster, kind_of(loop.layer), f"{loop_label(loop.layer)}, one iteration")
    if kind_of(loop.layer) is NodeKind.BRANCH:
        parts.clusters[0] = Cluster(cluster, NodeKind.BRANCH, loop_label(loop.layer))
    description = (
        f"The body of {loop.title}: {len(loop.body.graph.layers)} layers and {counted(backs, 'back edge')}, which are "
        f"dashed and lead from a Result to the Parameter that gets its value in the next iteration. {'; '.join(facts)}."
    )
    return Figure(
        title=f"{loop.title}, rolled",
        description=description,
        nodes=tuple(parts.nodes),
        edges=tuple(parts.edges),
        clusters=tuple(parts.clusters),
        facts=facts,
    )


def loop_facts(model: Model, loop: LoopPath) -> tuple[str, ...]:
    """Return what begins and ends a loop, a line each, as far as the file says."""
    found = control(model, loop.outer, loop.layer)
    if not loop.layer.is_loop:
        return () if found.condition is None else (f"then runs if {_truth(found.condition)}, otherwise else",)
    if loop.layer.type == "TensorIterator":
        ports = " and ".join(map(str, found.slices_of))
        return (
            f"as many iterations as input {ports} has slices" if ports else "as many iterations as its outputs say",
        )
    is_exact = _is_always(found.condition) and _is_always(found.goes_on)
    return _starts(found.condition), _goes_on(found.goes_on), _limit(found.trip_count, "" if is_exact else "at most ")


def _starts(condition: ControlOrigin | None) -> str:
    if condition is None or _is_always(condition):
        return "starts always"
    return f"never starts: {_named(condition)}" if condition.value is False else f"starts if {_truth(condition)}"


def _is_always(condition: ControlOrigin | None) -> bool:
    return condition is None or condition.value is True


def _goes_on(condition: ControlOrigin | None) -> str:
    if condition is None or _is_always(condition):
        return "no condition ends it"
    if condition.value is False:
        return f"ends after the first iteration: {_named(condition)}"
    return f"goes on while {_truth(condition)}"


def _limit(trip_count: ControlOrigin | None, most: str) -> str:
    count = None if trip_count is None else trip_count.value
    if trip_count is None or (count is not None and (count < 0 or count == NO_LIMIT)):
        return "no limit on iterations"
    if count is None:
        return f"{most}as many iterations as {_named(trip_count)} says"
    return f"{most}{counted(int(count), 'iteration')}"


def _truth(condition: ControlOrigin) -> str:
    return f"{_named(condition)} is true"


def _named(origin: ControlOrigin) -> str:
    """Return name and type, such as `keep_going (NotEqual)`."""
    output = "" if origin.output is None else f", output {origin.output}"
    value = "" if origin.value is None else f" = {str(origin.value).lower()}"
    return f"{excerpt(origin.layer.name)} ({origin.layer.type}{output}){value}"
