"""The views that need no run: the whole model, and a body as it stands (rolled), with its back edges."""

from __future__ import annotations

from msgspec.structs import replace

from stepper.export.blocks.drawn_once import LARGE, drawn_once
from stepper.export.figures.builder import FigureBuilder, loop_label
from stepper.export.figures.content import FigureContent
from stepper.export.figures.figure import EdgeKind, Figure
from stepper.export.figures.loop_facts import loop_facts
from stepper.export.figures.loop_paths import LoopPath, loops_of
from stepper.export.options import BlockStyle
from stepper.export.views.cell import cell_figure
from stepper.ir.model import Model
from stepper.wording import counted, enumerated, excerpt


def model_figure(model: Model, content: FigureContent) -> Figure:
    """Return the model's own graph; bodies inside of their layers, to the depth asked for."""
    parts = FigureBuilder(content)
    parts.add_graph(model.graph, None, None, "")
    name = excerpt(model.name) or "the model"
    loops = [loop for loop in loops_of(model) if loop.layer.is_loop]
    description = (
        f"The graph of {name}: {len(model.graph.layers)} layers, {counted(len(loops), 'loop')}. "
        "Each box is an operation, each line a tensor; Constants are folded into what reads them."
    )
    figure = Figure(
        title=f"Model {name}",
        description=description,
        nodes=tuple(parts.nodes),
        edges=tuple(parts.edges),
        clusters=tuple(parts.clusters),
        facts=parts.closed_facts(),
        notes=parts.notes,
    )
    return _with_blocks(figure, parts, model)


def rolled_figure(model: Model, loop: LoopPath, content: FigureContent) -> Figure:
    """Return the body of one loop, its back edges leading from the end of an iteration to the beginning of the next."""
    if content.cell:
        return cell_figure(model, loop, content)
    parts = FigureBuilder(content)
    parts.add_bodies(loop.layer, loop.outer, (), "", content.depth)
    facts = loop_facts(model, loop.outer, loop.layer, content.limit_of(loop.outer, loop.layer))
    own = {node.id for node in parts.nodes if len(node.site.inside) == 1}
    backs = sum(edge.kind is EdgeKind.BACK and edge.source in own for edge in parts.edges)
    if loop.layer.is_loop:
        label = f"{loop_label(loop.layer)}, one iteration"
        parts.clusters[0] = replace(parts.clusters[0], label=label)
    parts.add_neighbours(loop.layer, loop.outer)
    figure = Figure(
        title=f"{loop.title}, rolled",
        description=f"{_bodies_told(loop, backs)}. {'; '.join(facts)}.",
        nodes=tuple(parts.nodes),
        edges=tuple(parts.edges),
        clusters=tuple(parts.clusters),
        facts=parts.closed_facts(),
        notes=parts.notes,
    )
    return _with_blocks(figure, parts, model)


def _bodies_told(loop: LoopPath, backs: int) -> str:
    """Return how large the body of a loop, or the sides of an If, are, and what dashes mean."""
    sizes = [counted(len(body.graph.layers), "layer") for body in loop.layer.bodies]
    if not loop.layer.is_loop:
        return f"The sides of {loop.title}: {enumerated(sizes)}"
    told = f"The body of {loop.title}: {sizes[0]} and {counted(backs, 'back edge')}"
    if not backs:
        return told
    dashed = "which is dashed and leads" if backs == 1 else "which are dashed and lead"
    return f"{told}, {dashed} from a Result to the Parameter that gets its value in the next iteration"


def _with_blocks(figure: Figure, parts: FigureBuilder, model: Model) -> Figure:
    """Return the figure with blocks that repeat drawn as was asked for."""
    blocks = parts.content.blocks
    if blocks is None:
        blocks = BlockStyle.ONCE if len(figure.nodes) > LARGE else BlockStyle.ALL
    return drawn_once(figure, parts, model) if blocks is BlockStyle.ONCE else figure
