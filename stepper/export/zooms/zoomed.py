"""From a request with a zoom to the figure of the part: which view it is of, how deep, and what stays of it."""

from __future__ import annotations

from msgspec.structs import replace

from stepper.errors import UsageError
from stepper.export.drawing.shapes import PageDrawing
from stepper.export.figures.content import FigureContent, Highlight
from stepper.export.figures.figure import Figure, ValueState
from stepper.export.figures.legend import legend_of
from stepper.export.figures.loop_paths import LoopPath, find_loop
from stepper.export.figures.loop_trace import split_activation
from stepper.export.options import BlockStyle, FigureView, TimeDirection
from stepper.export.picture import FigureRequest, Picture
from stepper.export.views.static import rolled_figure
from stepper.export.zooms.inset import inset_page
from stepper.export.zooms.neighbourhood import around
from stepper.export.zooms.places import OPTIONS, Zoom, ZoomKind
from stepper.export.zooms.selection import selected
from stepper.export.zooms.unrolled_part import in_iterations
from stepper.export.zooms.ways import between
from stepper.ir.model import Model
from stepper.wording import counted

_ALL_LEVELS = 1_000


def usual_view(zoom: Zoom, *, has_inputs: bool) -> FigureView:
    """Return the view that a part is of where none is named."""
    runs = has_inputs and zoom.loop is not None and zoom.kind is not ZoomKind.DETAIL
    return FigureView.UNROLLED if runs else FigureView.MODEL


def prepared(model: Model, request: FigureRequest, zoom: Zoom, view: FigureView) -> FigureRequest:
    """Return the request with what the part needs: its loop, the depth, the iteration that was named, the highlight.

    Raise UsageError for a view that has no parts.
    """
    _refuse(zoom, view, request)
    root = _root(model, request, zoom, view)
    content = request.content
    depth = max(place.depth_in(root) for place in zoom.places)
    if zoom.kind is ZoomKind.BETWEEN:
        depth = _ALL_LEVELS
    if zoom.depth is not None:
        depth = max(depth if zoom.kind is not ZoomKind.BETWEEN else 0, zoom.depth)
    highlight = content.highlight
    if highlight is None and zoom.kind is not ZoomKind.BETWEEN and content.differences is None:
        highlight = Highlight(zoom.place.graph, zoom.place.layer.id, zoom.place.iteration)
    iterations = request.iterations
    number = next((place.iteration for place in zoom.places if place.iteration is not None), None)
    if iterations is None and number is not None and view is FigureView.UNROLLED:
        iterations = f"{max(number - 1, 0)}:{number + 2}" if number >= 0 else f"{number}:"
    loop = request.loop if request.loop is not None or root is None else root.address
    content = replace(content, depth=depth, highlight=highlight, blocks=BlockStyle.ALL)
    return replace(request, view=view, loop=loop, iterations=iterations, content=content)


def zoomed(model: Model, picture: Picture, zoom: Zoom) -> Picture:
    """Return the picture with the part of its figure alone. Raise UsageError where there is no way between two."""
    content = picture.request.content
    if picture.trace is None:
        part = _part(picture.figure, zoom, picture.loop, content)
        figure = _told(part, picture.figure, zoom, _share(part, picture.figure))
        page = _inset(picture, figure) if zoom.kind is ZoomKind.DETAIL else None
        return replace(picture, figure=figure, page=page)
    assert picture.loop is not None, "a run of a loop"
    content = replace(content, fold_accumulators=False)
    body = rolled_figure(model, picture.loop, content)
    part = _part(body, zoom, picture.loop, content)
    figure = in_iterations(picture.figure, part, picture.loop.layer.id)
    return replace(picture, figure=_told(figure, picture.figure, zoom, _share(part, body)))


def _inset(picture: Picture, figure: Figure) -> PageDrawing:
    request = picture.request
    title = figure.title if request.title is None else request.title
    return inset_page(picture.figure, replace(figure, title=title, legend=legend_of(figure) if request.legend else ()))


def _share(part: Figure, whole: Figure) -> str:
    return f"{len(part.by_id.keys() & whole.by_id.keys()):,} of {len(whole.nodes):,} boxes"


def _part(figure: Figure, zoom: Zoom, root: LoopPath | None, content: FigureContent) -> Figure:
    """Return the part of a figure of the model, or of the body of `root`."""
    shapes = []
    for place in zoom.places:
        box, frame = place.shapes_in(root, content)
        if box not in figure.by_id and frame not in figure.clusters_by_id:
            depth = place.depth_in(root)
            raise UsageError(f"'{place.address}' has no box in this figure; --depth {depth} opens its frame")
        shapes.append(box if box in figure.by_id else frame)
    if zoom.kind is ZoomKind.BETWEEN:
        return selected(figure, between(figure, *shapes), marked=False, bright=shapes)
    kept = around(figure, shapes[0], zoom.hops)
    if zoom.differing:
        kept = {id for id in kept if id == shapes[0] or figure.by_id[id].state is not ValueState.ALIKE}
    return selected(figure, kept, marked=True)


def _told(figure: Figure, whole: Figure, zoom: Zoom, boxes: str) -> Figure:
    """Return the part with a title and a note of what it is a part of."""
    addresses = [place.address for place in zoom.places]
    if zoom.kind is ZoomKind.BETWEEN:
        what = f"all ways from '{addresses[0]}' to '{addresses[1]}'"
        boxes = f"{boxes}; other inputs and readers of these operations are left out"
    else:
        what = f"'{addresses[0]}' within {counted(zoom.hops, 'hop')}"
    return replace(
        figure,
        title=f"{whole.title}: {what}",
        description=f"A part of a figure, {what}: {boxes}. {whole.description}",
        notes=(*whole.notes, f"{what}: {boxes}"),
    )


def _root(model: Model, request: FigureRequest, zoom: Zoom, view: FigureView) -> LoopPath | None:
    """Return the loop whose body is drawn, None where it is the model."""
    if view is FigureView.MODEL:
        return None
    if request.loop is not None:
        return find_loop(model, split_activation(request.loop)[0])
    if zoom.loop is None:
        names = " and ".join(f"'{place.address}'" for place in zoom.places)
        are = "are in no loop together" if len(zoom.places) > 1 else "is in no loop"
        raise UsageError(f"{names} {are}, so there is no body to draw {view}; use --view model")
    return zoom.loop


def _refuse(zoom: Zoom, view: FigureView, request: FigureRequest) -> None:
    option = OPTIONS[zoom.kind]
    runs = (FigureView.UNROLLED,) if zoom.kind is not ZoomKind.DETAIL else ()
    fitting = (FigureView.MODEL, FigureView.ROLLED, *runs)
    if view not in fitting:
        raise UsageError(f"{option} draws a part of the views {', '.join(fitting)}; --view {view} has none")
    if request.direction is TimeDirection.RIGHT:
        raise UsageError(f"{option} draws iterations one below the other; leave --direction right and its presets out")
