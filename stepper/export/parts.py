"""From a request with a zoom to the figure of the part: which view it is of, how deep, and what stays of it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence

from msgspec.structs import replace

from stepper.errors import UsageError
from stepper.export.composing import MARGIN, ROW, page_of, shapes_of
from stepper.export.figure_views import rolled_figure, unrolled_figure
from stepper.export.figures.builder import legend_of
from stepper.export.figures.drawn_graph import shortened
from stepper.export.figures.figure import (
    BACKWARD,
    Cluster,
    EdgeKind,
    Figure,
    FigureEdge,
    FigureNode,
    FigureSite,
    FramePort,
    NodeKind,
    ValueState,
)
from stepper.export.figures.loop_trace import LoopPath, find_loop, split_activation
from stepper.export.layout.arrangements import arranged
from stepper.export.layout.figure_layout import CELL, FigureLayout
from stepper.export.options import BlockStyle, FigureView, TimeDirection
from stepper.export.picture import OPTIONS, FigureContent, FigureRequest, Highlight, Picture, Zoom, ZoomKind
from stepper.export.styles import Group, PageDrawing, Path, Rectangle, Shape, TextLine
from stepper.ir.model import Model
from stepper.wording import counted, enumerated

_LINE = 16
_WIDEST = 320
_LOWEST = 260
"""Height of the overview, in pixels, beside a detail that is lower."""
_APART = 56
_LEAST = 7.0
"""Pixels of the marked region, at least."""


def inset_page(whole: Figure, part: Figure) -> PageDrawing:
    """Return the page; `part` has the title and the notes, its boxes are some of those of `whole`."""
    detail, overview = arranged(part), arranged(whole)
    width, height = (side + 2 * MARGIN for side in (detail.width * CELL, detail.height * ROW))
    wide, high = float(overview.width * CELL), float(overview.height * ROW)
    factor = min(0.5, _WIDEST / wide, max(height, _LOWEST) / high)
    wide, high = wide * factor, high * factor

    def shapes(x: float, y: float) -> Iterator[Shape]:
        left, region = x + wide + _APART, _region(overview, part.by_id, factor, x, y)
        panel = Rectangle("region", left, y, width, height, 8)
        yield from _small(overview, part, factor, x, y)
        edge, bottom = region.x + region.width, region.y + region.height
        sight = (((edge, region.y), (left, y + 4)), ((edge, bottom), (left, y + height - 4)))
        yield from (Path("sight", sight), region, replace(panel, style="panel"))
        yield from shapes_of(detail, left + MARGIN, y + MARGIN)
        count = f"{len(whole.nodes):,} boxes" if len(whole.nodes) != 1 else "one box"
        yield from (panel, TextLine("small", x, y + high + _LINE, f"the whole, {count}"))

    return page_of(part, (wide + _APART + width, max(high + _LINE + 4, height) - 2), shapes)


def _small(layout: FigureLayout, part: Figure, factor: float, dx: float, dy: float) -> Iterator[Group]:
    """Yield frames, wires and boxes without their texts; the boxes of the part are bright."""
    for shape in shapes_of(layout, 0, 0):
        if isinstance(shape, Group):
            items = (_scaled(item, factor, dx, dy) for item in shape.items if isinstance(item, Rectangle | Path))
            bright = " highlighted" if shape.id in part.by_id else ""
            yield Group(tuple(items), f"{shape.classes}{bright} far")


def _scaled(shape: Rectangle | Path, factor: float, dx: float, dy: float) -> Shape:
    if isinstance(shape, Path):
        parts = (tuple((dx + x * factor, dy + y * factor) for x, y in part) for part in shape.parts)
        return replace(shape, parts=tuple(parts))
    place = replace(shape, x=dx + shape.x * factor, y=dy + shape.y * factor, corner=shape.corner * factor)
    return replace(place, width=shape.width * factor, height=shape.height * factor)


def _region(layout: FigureLayout, kept: Collection[str], factor: float, dx: float, dy: float) -> Rectangle:
    """Return the rectangle around the boxes of the part, where the whole is small."""
    boxes = [box for box in layout.boxes if box.node.id in kept]
    left, top = min(box.x for box in boxes) * CELL, min(box.y for box in boxes) * ROW
    right, bottom = max((box.x + box.width) * CELL for box in boxes), max((box.y + box.height) * ROW for box in boxes)
    width, height = max((right - left) * factor, _LEAST) + 6, max((bottom - top) * factor, _LEAST) + 6
    middle, centre = dx + (left + right) / 2 * factor, dy + (top + bottom) / 2 * factor
    return Rectangle("region", middle - width / 2, centre - height / 2, width, height, 2)


_NO_WAY = (EdgeKind.ENDS, EdgeKind.NO_EFFECT)
"""Kinds of edges that lead no value on."""


def around(figure: Figure, centre: str, hops: int) -> Collection[str]:
    """Return the boxes within so many edges of one, back edges among them, against their direction too.

    Loops and Ifs that are open beside it count as one box, and stay whole; what is around its own graph is left out.
    """
    beside: defaultdict[str, set[str]] = defaultdict(set)
    unit = _units(figure, centre)
    for edge in figure.edges:
        source, target = unit.get(edge.source), unit.get(edge.target)
        if edge.kind not in _NO_WAY and source and target and source != target:
            beside[source].add(target)
            beside[target].add(source)
    reached, last = {centre}, {centre}
    for _ in range(hops):
        last = {other for one in last for other in beside[one]} - reached
        reached |= last
    return {node.id for node in figure.nodes if unit.get(node.id) in reached}


def _units(figure: Figure, centre: str) -> dict[str, str]:
    """Return, by id, the boxes of the centre's graph, and for what is in an open frame beside it that frame."""
    home = figure.parent(centre)
    found: dict[str, str] = {}
    for id in (*figure.by_id, *figure.clusters_by_id):
        way = [id, *figure.frames_around(id)]
        if home in ("", *way[1:]) and id != home:
            found[id] = way[-1] if home == "" else way[way.index(home) - 1]
    return found


def selected(figure: Figure, kept: Collection[str], *, marked: bool, bright: Collection[str] = ()) -> Figure:
    """Return the figure with the kept boxes alone, in their frames; with marks for what was cut off, if wanted.

    What stands in a frame that is kept as a whole stays. `bright` are the boxes and frames to be highlighted.
    """
    frames = {frame for id in kept for frame in figure.frames_around(id)}
    stays = {*kept, *frames}
    nodes = [
        replace(node, highlighted=node.highlighted or node.id in bright) for node in figure.nodes if node.id in kept
    ]
    edges = [edge for edge in figure.edges if edge.source in stays and edge.target in stays]
    if marked:
        nodes = _with_back_edges(figure, nodes)
        for mark, lost in _cuts(figure, kept, stays):
            nodes.append(mark)
            edges += lost
    return replace(
        figure,
        nodes=tuple(nodes),
        edges=tuple(edges),
        clusters=tuple(
            replace(
                frame,
                highlighted=frame.highlighted or frame.id in bright,
                ports=_ports(frame, kept, edges, all_that_stay=marked),
            )
            for frame in figure.clusters
            if frame.id in frames
        ),
    )


def _ports(
    frame: Cluster, kept: Collection[str], edges: Sequence[FigureEdge], *, all_that_stay: bool
) -> tuple[FramePort, ...]:
    """Return the ports that edges go through; all that lead to what stays, or from it, if wanted."""
    through = {(edge.source, edge.leaves, True) for edge in edges} | {
        (edge.target, edge.enters, False) for edge in edges
    }
    left = ((port, tuple(end for end in port.ends if end in kept)) for port in frame.ports)
    return tuple(
        replace(port, ends=ends)
        for port, ends in left
        if (all_that_stay and ends)
        or any((end, port.index, port.is_output) in through for end in (*ends, *(() if port.ends else (frame.id,))))
    )


def _cuts(
    figure: Figure, kept: Collection[str], stays: Collection[str]
) -> Iterator[tuple[FigureNode, list[FigureEdge]]]:
    """Yield a mark for what was cut off, with its edges; boxes that lost the same have one mark."""
    lost: dict[tuple[str, bool], dict[str, FigureEdge]] = {}
    left: set[tuple[str, bool]] = set()
    for edge in figure.edges:
        if edge.kind in (*BACKWARD, EdgeKind.ENDS):
            continue
        for mine, other, is_above in ((edge.target, edge.source, True), (edge.source, edge.target, False)):
            if mine not in kept:
                continue
            if other in stays:
                left.add((mine, is_above))
            else:
                lost.setdefault((mine, is_above), {}).setdefault(other, edge)
    alike: dict[tuple[tuple[str, ...], str, bool, bool], list[str]] = {}
    for (mine, is_above), others in lost.items():
        around = (*figure.frames_around(next(iter(others))),)
        cluster = figure.holder(mine, around)
        key = tuple(others), cluster, is_above, (mine, is_above) in left
        alike.setdefault(key, []).append(mine)
    for number, ((beyond, cluster, is_above, more), boxes) in enumerate(alike.items()):
        names = [figure.name_of(id) for id in beyond]
        word = "input" if is_above else "reader"
        told = shortened(names[0], 24) if len(names) == 1 else counted(len(names), f"more {word}" if more else word)
        box = figure.by_id[boxes[0]]
        site = FigureSite(box.site.inside if cluster == box.cluster else (), f"cut{number}")
        kind = NodeKind.CUT_ABOVE if is_above else NodeKind.CUT_BELOW
        ends = [lost[mine, is_above][beyond[0]] for mine in boxes]
        edges = [replace(edge, source=site.id) if is_above else replace(edge, target=site.id) for edge in ends]
        yield FigureNode(site.id, kind, f"… {told}", title=", ".join(names), cluster=cluster, site=site), edges


def _with_back_edges(figure: Figure, nodes: Sequence[FigureNode]) -> list[FigureNode]:
    """Return the boxes, those that lost the other end of a back edge with a line that names it."""
    kept = {node.id for node in nodes}
    lines: dict[str, list[str]] = {}
    for edge in figure.edges:
        if edge.kind in BACKWARD:
            for mine, other, word in ((edge.source, edge.target, "then"), (edge.target, edge.source, "after")):
                if mine in kept and other not in kept:
                    lines.setdefault(mine, []).append(f"… {word} {shortened(figure.name_of(other), 24)}")
    return [replace(node, lines=(*node.lines, *lines[node.id])) if node.id in lines else node for node in nodes]


_MOST_NAMED = 8
"""Boxes that a message lists."""

_Links = Mapping[str, Collection[str]]


def between(figure: Figure, begin: str, end: str) -> Collection[str]:
    """Return the boxes on all ways from one box or frame to another, both among them; from itself to itself: cycles.

    Raise UsageError, with what can be reached, where there is none.
    """
    forward, backward = _links(figure)
    first, last = figure.within(begin), figure.within(end)
    if begin != end:  # a way begins where it last leaves the one, and ends where it first comes to the other
        forward.update(dict.fromkeys(last, ()))
        backward.update(dict.fromkeys(first, ()))
    below, above = _reached(forward, first), _reached(backward, last)
    if below.keys().isdisjoint(last):
        raise UsageError(_no_way(figure, begin, end))
    return {*first, *last, *(below.keys() & above)}


def _links(figure: Figure) -> tuple[dict[str, Collection[str]], dict[str, Collection[str]]]:
    """Return what follows from each box, and from what it follows: from the condition of an If what it gives."""
    forward: dict[str, dict[str, None]] = {}
    backward: dict[str, dict[str, None]] = {}
    for edge in figure.edges:
        if edge.kind in _NO_WAY or edge.source not in figure.by_id:
            continue
        targets = [edge.target]
        if edge.target not in figure.by_id:  # the boxes in an If from which its outputs come; none of a loop
            is_if = figure.clusters_by_id[edge.target].kind is NodeKind.BRANCH
            inside = figure.within(edge.target) if is_if else ()
            targets = [one.source for one in figure.edges if one.source in inside and one.target not in inside]
        for target in targets:
            forward.setdefault(edge.source, {})[target] = None
            backward.setdefault(target, {})[edge.source] = None
    return dict(forward), dict(backward)


def _reached(links: _Links, begin: Collection[str]) -> dict[str, None]:
    """Return what can be reached over at least one edge, the nearest first."""
    found: dict[str, None] = {}
    waiting = [box for one, after in links.items() if one in begin for box in after]
    for box in waiting:
        if box not in found:
            found[box] = None
            waiting += links.get(box, ())
    return found


def _no_way(figure: Figure, begin: str, end: str) -> str:
    """Return that there is none, what there is in its place, and whether a loop's control depends on it."""
    forward, _ = _links(figure)
    first, last = figure.within(begin), figure.within(end)
    one, other = _quoted(figure, begin), _quoted(figure, end)
    below = _reached(forward, first)
    sentences = [f"there is no way from {one} to {other}"]
    if begin == end:
        sentences = [f"there is no way from {one} back to itself: no back edge carries what follows from it"]
    elif not _reached(forward, last).keys().isdisjoint(first):
        sentences.append(f"but there is one from {other} to {one}")
    controls = _controlled(figure, {*first, *below}, end)
    if controls:
        sentences.append(f"but it decides how {enumerated(controls)} runs, which is around {other}")
    names = [_quoted(figure, box) for box in below if box not in first]
    if names:
        more = f" and {len(names) - _MOST_NAMED:,} more" if len(names) > _MOST_NAMED else ""
        sentences.append(f"from {one} the ways lead to {', '.join(names[:_MOST_NAMED])}{more}")
    else:
        sentences.append(f"nothing that is drawn reads {one}")
    return "; ".join(sentences)


def _quoted(figure: Figure, id: str) -> str:
    return f"'{figure.name_of(id)}'" if id in figure.by_id else figure.name_of(id)


def _controlled(figure: Figure, sources: Collection[str], end: str) -> list[str]:
    """Return the frames around a box whose trip count or condition comes from one of these."""
    frames = set(figure.frames_around(end))
    found = (
        frame
        for edge in figure.edges
        if edge.enters >= 0 and edge.source in sources
        for frame in (edge.target if edge.kind is not EdgeKind.ENDS else figure.parent(edge.target),)
        if frame in frames
    )
    return [figure.clusters_by_id[id].label for id in dict.fromkeys(found)]


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
    content, whole, trace = picture.request.content, picture.figure, picture.trace
    if trace is not None:
        content = replace(content, fold_accumulators=False)
        whole = rolled_figure(model, trace.loop, content)
    figure = part = _part(whole, zoom, picture.loop, content)
    share = f"{len(part.by_id.keys() & whole.by_id.keys()):,} of {len(whole.nodes):,} boxes"
    if trace is not None:
        figure = unrolled_figure(trace, content, part=part)
    figure = _told(figure, picture.figure, zoom, share)
    page, request = None, picture.request
    if zoom.kind is ZoomKind.DETAIL:
        title, legend = figure.title if request.title is None else request.title, legend_of(figure)
        page = inset_page(picture.figure, replace(figure, title=title, legend=legend if request.legend else ()))
    return replace(picture, figure=figure, page=page)


def _part(figure: Figure, zoom: Zoom, root: LoopPath | None, content: FigureContent) -> Figure:
    """Return the part of a figure of the model, or of the body of `root`."""
    shapes = []
    for place in zoom.places:
        found = [one for one in place.shapes_in(root, content) if one in figure.by_id or one in figure.clusters_by_id]
        if not found:
            depth = place.depth_in(root)
            raise UsageError(f"'{place.address}' has no box in this figure; --depth {depth} opens its frame")
        shapes.append(found[0])
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
        facts=whole.facts,
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
