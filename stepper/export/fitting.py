"""Figures fitted to a page: letters keep a size that can be read, and what has no room is left out and named."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from itertools import product
from typing import Any, NamedTuple

from msgspec.structs import replace

from stepper.errors import UsageError
from stepper.export.composing import MARGIN, PageForm, composed, narrowed_text, shortened_heading
from stepper.export.figures.builder import legend_of
from stepper.export.figures.drawn_graph import shortened
from stepper.export.figures.figure import (
    BACKWARD,
    CUTS,
    Arrangement,
    Cluster,
    EdgeKind,
    Figure,
    FigureEdge,
    FigureNode,
    NodeKind,
)
from stepper.export.fonts import LABEL_SIZE, SLIDE_SIZE, SMALL_SIZE, advance, wrapped
from stepper.export.layout.arrangements import arranged
from stepper.export.layout.figure_layout import FigureLayout
from stepper.export.options import FigureView, Preset
from stepper.export.picture import FigureContent, FigureRequest, Picture
from stepper.export.styles import POINTS, PageDrawing, Rectangle
from stepper.wording import counted

WHOLE_LABEL = 44
"""Letters of the label of a frame that has a page of 84 mm for itself."""
MILLIMETRE = 96 / 25.4
"""Pixels."""
PAPER_WIDTH = round(84 * MILLIMETRE)
PAPER_HEIGHT = 225 * MILLIMETRE
"""Height that a page of a paper leaves for a figure above its caption."""
DOCS_WIDTH = 820
SLIDE = (1280, 720)
LEAST_UNIT = 7 * 96 / 72 / SMALL_SIZE
"""Pixels a unit at which the smaller letters have 7 points, the least that is drawn."""
_ON_SLIDE = (18 / SMALL_SIZE, 2.2)
"""Pixels a unit on a slide, at least and at most: its letters have 18 pixels."""


Size = tuple[float, float]
"""Width and height in pixels."""


class PageRoom(NamedTuple):
    """Hold the room of a page in pixels, and how many pixels a unit may take.

    `height` is the height of a page of fixed size (None: as high as the figure). `highest` is the maximum height of a
    figure, unless every form of the figure is higher.
    """

    width: float
    height: float | None
    least: float
    most: float
    highest: float = math.inf


class _Form(NamedTuple):
    """Room for texts: pixels of a line, letters of a label, and whether operations have their own names.

    `outside`: what is around the frame of a rolled body is drawn. `below`: the lists of a port map stand one below
    the other; `entries` is how many wires a list has at most (None: all). `legend`: lines and boxes are explained;
    `facts`: what starts and ends the loop is said in words, not only by marks; `joined`: Parameters of a model that
    go to the same boxes are one box, so are Results; `cuts`: a part of a figure has torn edges where the rest was cut
    off; `dense`: the lines of a box or a frame stand in one, as far as it has room, which on a slide saves height;
    `framed`: frames have lines below their names.
    """

    line: int
    label: int
    names: bool = True
    below: bool = False
    outside: bool = True
    legend: bool = True
    facts: bool = True
    entries: int | None = None
    joined: bool = False
    cuts: bool = True
    dense: bool = False
    framed: bool = True

    @property
    def left_out(self) -> list[str]:
        """The parts that are not drawn, in words."""
        parts = {
            "names of operations": self.names,
            "operations outside the loop": self.outside,
            f"Parameters and Results but for the first {self.entries} each": self.entries is None,
            "boxes of Parameters and Results, but for one where they lead to the same": not self.joined,
            "text below the names of frames": self.framed,
            "torn edges where the rest was cut off": self.cuts,
            "the legend": self.legend,
            "when the loop starts and ends, in words": self.facts,
        }
        return [words for words, is_drawn in parts.items() if not is_drawn]


_BETWEEN = " · "
"""Between the texts of a line."""
_LEAST_OF_GROUP = len("1,000 operations")
_REASON = 150
"""Width of a line at a back edge without effect."""
_MOST_JOINED = 6
"""Names in a box of several Parameters or Results."""
_USUAL_LETTER = 0.5 * LABEL_SIZE
"""Its width."""
_INSIDE = ("bodies deeper than {} inside of their operations", "bodies inside of their operations")


_NARROWEST = _Form(58, 12, False)
_NARROW = "110x20 90x16 70x13 58x12"


def _forms(sizes: str, **options: Any) -> Iterator[_Form]:
    """Yield forms of sizes such as `170x28`: pixels of a line, letters of a label."""
    for size in sizes.split():
        line, label = size.split("x")
        yield _Form(int(line), int(label), **options)


def _forms_of_lists(*, is_cell: bool) -> Iterator[_Form]:
    yield from _forms("170x28 130x18 110x15 90x13", below=True)
    for most in (None, *range(6, 0, -1)):
        yield from _forms("130x18", legend=False, entries=most)
    for most in (None, *range(10, 2, -1)):
        yield from _forms("170x28", legend=False, below=True, entries=most)
    yield from _forms("110x15 90x13", below=True, legend=False)
    for size, below, most in product(("170x28", "90x13"), (False, True), (None, 4, 2, 1)) if is_cell else ():
        yield from _forms(size, legend=False, facts=False, below=below, entries=most)


def forms_for(picture: Picture, content: FigureContent) -> Iterator[_Form]:
    """Yield the forms of a picture, the widest first: facts are left out at last, where the body is one box."""
    request, is_slide = picture.request, picture.request.preset is Preset.SLIDE
    is_part = request.zoom is not None and request.zoom.end is None
    yield from _forms("170x28 130x24 110x20")
    if content.cell or picture.figure.arrangement is Arrangement.PORT_LISTS:
        yield from _forms_of_lists(is_cell=content.cell)
        return
    yield from _forms("110x20 90x16 70x13", names=False)
    is_rolled = request.view is FigureView.ROLLED and request.zoom is None and picture.trace is None
    if is_rolled:
        yield from _forms("130x24", outside=False)
        yield from _forms(_NARROW, names=False, outside=False)
    yield from _forms("255x28 350x28", legend=False)
    if is_part:
        yield _NARROWEST
    if is_slide and (is_part or content.differences is not None):
        for cuts, legend in product((True, False) if is_part else (True,), (True, False)):
            yield from _forms("400x28 280x28 240x28 200x28", legend=legend, cuts=cuts, dense=True)
        yield from _forms("280x28", legend=False, cuts=not is_part, dense=True, framed=False)
    if is_part:
        yield from _forms(f"170x28 {_NARROW}", names=False, cuts=False)
    if request.view is FigureView.MODEL:
        yield from _forms("170x20", names=False, joined=True)
        yield from _forms("90x16 58x12", joined=True, names=False, legend=False)
    if is_rolled:
        yield from _forms("170x28 110x20", names=False, legend=False, outside=False)


_FAR = (1.3, 2.5)
"""Widths and heights of a page that a figure has in its narrowest form where no other form of it is tried."""


def _alone(figure: Figure) -> Figure:
    """Return a rolled body without what is around its frame, which the lines of its Parameters and Results name."""
    made = figure.with_nodes(node for node in figure.nodes if node.cluster)
    if len(made.nodes) == len(figure.nodes):
        return figure
    ends = {frame.id for frame in figure.clusters if not frame.parent}  # marks on its rim have no port there
    edges = tuple(edge for edge in made.edges if edge.kind is not EdgeKind.ENDS or edge.source not in ends)
    fed = {edge.target for edge in edges}
    nodes = tuple(node for node in made.nodes if node.kind is not NodeKind.END or node.id in fed)
    clusters = tuple(frame if frame.parent else replace(frame, ports=()) for frame in figure.clusters)
    return replace(figure, nodes=nodes, edges=edges, clusters=clusters)


def _joined(figure: Figure) -> Figure:
    """Return a model in which Parameters that the same boxes read are one box with their names, and Results alike."""
    ends: defaultdict[str, set[str]] = defaultdict(set)
    for edge in figure.edges:
        ends[edge.source].add(edge.target)
        ends[edge.target].add(edge.source)
    alike: defaultdict[object, list[FigureNode]] = defaultdict(list)
    for node in figure.nodes:
        if node.kind in (NodeKind.PARAMETER, NodeKind.RESULT) and not node.cluster:
            alike[node.kind, frozenset(ends[node.id])].append(node)
    into = {node.id: nodes[0].id for nodes in alike.values() if len(nodes) > 1 for node in nodes}
    made = {nodes[0].id: _one_of(nodes) for nodes in alike.values() if nodes[0].id in into}
    kept = tuple(made.get(node.id, node) for node in figure.nodes if into.get(node.id, node.id) == node.id)
    edges: dict[object, FigureEdge] = {}
    for edge in figure.edges:
        moved = replace(edge, source=into.get(edge.source, edge.source), target=into.get(edge.target, edge.target))
        is_joined = edge.source in into or edge.target in into
        edges.setdefault((moved.source, moved.target) if is_joined else id(edge), moved)
    return replace(figure, nodes=kept, edges=tuple(edges.values()))


def _one_of(nodes: Sequence[FigureNode]) -> FigureNode:
    """Return one box for several Parameters, or several Results."""
    shown = [shortened(node.label, 20) for node in nodes[:_MOST_JOINED]]
    rest = len(nodes) - len(shown)
    label = counted(len(nodes), "input" if nodes[0].kind is NodeKind.PARAMETER else "output")
    line = ", ".join([*shown, *([f"{rest} more"] if rest else [])])
    title = "; ".join(node.title for node in nodes[:_MOST_JOINED])
    return replace(nodes[0], label=label, brief="", name="", lines=(line,), title=title)


def room_of(request: FigureRequest) -> PageRoom | None:
    """Return the room that a figure has; None for as much as it needs."""
    if request.preset is Preset.SLIDE:
        return PageRoom(*SLIDE, *_ON_SLIDE)
    if request.preset is Preset.PAPER:
        return PageRoom(request.width or PAPER_WIDTH, None, LEAST_UNIT, LEAST_UNIT, PAPER_HEIGHT)
    if request.preset is Preset.DOCS:
        return PageRoom(request.width or DOCS_WIDTH, None, 1, 1)
    return None if request.width is None else PageRoom(request.width, None, LEAST_UNIT, 1)


def fitted(make: Callable[[FigureContent], Picture], request: FigureRequest) -> Picture:
    """Return the picture of a content, with a page of its own where it has to fit one.

    Raise UsageError, with the least width, where leaving out is not enough.
    """
    room, whole = room_of(request), make(request.content)
    moves = whole.trace is not None and whole.trace.count and (request.in_steps or request.pace is not None)
    if room is None or whole.page is not None or moves:
        return whole
    narrowest = (math.inf, math.inf)
    lowest: tuple[PageDrawing, list[str]] | None = None
    for content, told in _contents(request, whole.figure):
        found = whole if content is request.content else make(content)
        forms = list(forms_for(whole, content))
        if not content.cell and _is_far(found.figure, any(not one.outside for one in forms), room, request):
            forms = []
        for form in (None, *forms):
            figure = found.figure if form is None else narrowed(found.figure, form)
            page, size = _page(figure, arranged(figure), room, request)
            if page is None:
                narrowest = min(narrowest, size)
                continue
            left_out = [*told, *([] if form is None else form.left_out)]
            if page.height * page.points <= room.highest * POINTS:
                return _fitting(whole, page, left_out, request)
            if lowest is None or page.height * page.points < lowest[0].height * lowest[0].points:
                lowest = page, left_out
    if lowest is not None:
        page, left_out = lowest
        request.warn(
            f"the figure is {page.height * page.points / POINTS / MILLIMETRE:.0f} mm high, more than a page has"
        )
        return _fitting(whole, page, left_out, request)
    raise UsageError(_too_large(room, narrowest, _less(request)))


def _fitting(whole: Picture, page: PageDrawing, left_out: Sequence[str], request: FigureRequest) -> Picture:
    """Return a picture on its page, and say what is not drawn."""
    if not left_out:
        if page.points < POINTS:
            request.warn(f"letters have {LABEL_SIZE * page.points:.1f} points, so that the figure fits")
        return replace(whole, page=page)
    words = "; ".join(left_out)
    request.warn(f"not drawn for lack of room: {words}")
    return replace(whole, page=replace(page, description=f"{page.description} Not drawn: {words}."))


def _is_far(figure: Figure, is_rolled: bool, room: PageRoom, request: FigureRequest) -> bool:
    """True if even the narrowest form of a figure is much larger than a room, so that no other form can fit."""
    if figure.arrangement is Arrangement.PORT_LISTS:
        return False
    is_model = request.view is FigureView.MODEL
    figure = narrowed(figure, _NARROWEST._replace(outside=not is_rolled, joined=is_model, cuts=request.zoom is None))
    _, (width, height) = _page(figure, arranged(figure), room, request)
    return width > _FAR[0] * room.width or (room.height is not None and height > _FAR[1] * room.height)


def _contents(request: FigureRequest, whole: Figure) -> Iterator[tuple[FigureContent, tuple[str, ...]]]:
    """Yield contents with fewer and fewer boxes, each with words for what it leaves out.

    A part of a figure is yielded unchanged. A body as one box would hide differences of two runs, so it is not drawn
    where they diverge.
    """
    content = request.content
    yield content, ()
    if request.zoom is not None or whole.arrangement is Arrangement.PORT_LISTS:
        return
    joined = "boxes for operations that one other alone reads"
    for depth in reversed(range(content.depth + 1)):
        told = () if depth == content.depth else (_INSIDE[depth == 0].format(depth),)
        if told:
            yield replace(content, depth=depth), told
        if not content.carried:
            yield replace(content, depth=depth, expressions=True), (*told, joined)
    if not content.carried:
        yield replace(content, depth=0, carried=True), ("operations, but for what goes in, is carried and comes out",)
    parts = content.differences is not None and content.differences.first is not None
    if request.view is FigureView.ROLLED and not parts:
        boxes = "boxes of operations"
        yield replace(content, cell=True), (boxes,)


def _page(
    figure: Figure, layout: FigureLayout, room: PageRoom, request: FigureRequest
) -> tuple[PageDrawing | None, Size]:
    """Return a figure as a page of a room, None where it is too large; and the size that it needs in pixels."""
    is_slide = room.height is not None
    heading = figure.title if is_slide or request.preset is None else request.title or ""
    if is_slide:
        heading = shortened_heading(heading, SLIDE_SIZE, room.width / room.least - 2 * MARGIN)
    made = composed(figure, layout, PageForm(heading, room.width / room.least, (0, 0) if is_slide else None))
    needed, unit = (made.width * room.least, made.height * room.least), _unit(made, room)
    if unit is None:
        return None, needed
    if room.height is not None:
        for size in (unit, room.least):  # where letters are larger the facts may take more lines
            unit = size
            form = PageForm(heading, room.width / unit, (room.width / unit, room.height / unit))
            made = composed(figure, layout, form)
            if made.height <= room.height / unit * 1.001:
                break
    return replace(made, points=unit * POINTS), needed


def on_page(drawing: PageDrawing, room: PageRoom) -> PageDrawing:
    """Return a drawing in a room, as large as may be. Raise UsageError where it is too large."""
    unit = _unit(drawing, room)
    if unit is None:
        raise UsageError(_too_large(room, (drawing.width * room.least, drawing.height * room.least)))
    if room.height is not None:
        width, height = room.width / unit, room.height / unit
        items = (Rectangle("page", 0, 0, width, height), *drawing.items[1:])
        drawing = replace(drawing, width=width, height=height, items=items)
    return replace(drawing, points=unit * POINTS)


def _unit(drawing: PageDrawing, room: PageRoom) -> float | None:
    """Return the pixels of a unit with which a drawing fills a room; None where there would be too few."""
    high = math.inf if room.height is None else room.height
    unit = min(room.most, room.width / drawing.width, high / drawing.height)
    return max(unit, room.least) if unit > room.least * 0.999 else None


def _less(request: FigureRequest) -> str:
    """Return what draws less than a figure that does not fit; empty for a part of one."""
    if request.zoom is not None:
        return ""
    if request.content.differences is not None:
        return "--around OP draws a part of it"
    if request.view is FigureView.UNROLLED:
        return "--direction right draws the iterations side by side, --around OP a part of them"
    if request.preset is Preset.SLIDE:
        return "Draw a part of it (--around, --only, --hide, --loop), or --preset docs"
    return "--around OP draws a part of it, --view ports a list"


def _too_large(room: PageRoom, size: Size, less: str = "") -> str:
    """Return how large a page a figure needs, and where the whole was to be drawn what draws less of it."""
    width, height = size
    if room.height is not None:
        told = f"a slide of {room.width:g} x {room.height:g} pixels; it needs {width:,.0f} x {height:,.0f}"
        return f"the figure does not fit {told}. {less or '--preset docs has room'}"
    return (
        f"the figure does not fit into {room.width:,.0f} pixels ({room.width / MILLIMETRE:.0f} mm) with readable "
        f"letters; the least width is {math.ceil(width):,} pixels ({math.ceil(width / MILLIMETRE)} mm)"
        f"{f'. {less}' if less else ''}"
    )


def narrowed(figure: Figure, form: _Form) -> Figure:
    """Return a figure with lines wrapped, labels shortened, and names left out."""
    figure = figure if form.outside else _alone(figure)
    figure = _joined(figure) if form.joined else figure
    figure = figure if form.cuts else figure.with_nodes(node for node in figure.nodes if node.kind not in CUTS)
    figure = figure if form.entries is None else _first_entries(figure, form.entries)
    is_map = figure.arrangement is Arrangement.PORT_LISTS
    nodes = tuple(_narrow_node(node, form, is_beside=is_map and not node.cluster) for node in figure.nodes)
    is_alone = sum(not frame.parent for frame in figure.clusters) == 1
    clusters = tuple(_narrow_frame(frame, form, is_alone=is_alone and not frame.parent) for frame in figure.clusters)
    facts, notes = (
        tuple(" ".join(shortened(word, 3 * form.label) for word in text.split()) for text in texts)
        for texts in (figure.facts if form.facts else (), figure.notes)
    )
    made = replace(
        figure,
        nodes=nodes,
        clusters=clusters,
        edges=tuple(_narrow_edge(edge, form) for edge in figure.edges),
        arrangement=Arrangement.PORT_LIST if form.below else figure.arrangement,
        equations=figure.equations if form.facts else (),
        facts=facts,
        notes=notes,
    )
    return replace(made, legend=legend_of(made) if figure.legend and form.legend else ())


def _first_entries(figure: Figure, most: int) -> Figure:
    """Return a port map with the first wires into and out of each body, and the Result that ends the loop."""
    ending = {edge.source for edge in figure.edges if edge.kind is EdgeKind.ENDS}
    taken: Counter[tuple[str, bool]] = Counter()
    kept = set()
    for node in sorted((node for node in figure.nodes if node.cluster), key=lambda node: node.id not in ending):
        side = (node.cluster, node.kind is NodeKind.PARAMETER)
        wires = max(1, sum(node.id == (edge.target if side[1] else edge.source) for edge in figure.edges))
        if taken[side] + wires <= most or not taken[side]:
            taken[side] += wires
            kept.add(node.id)
    return figure.with_nodes(node for node in figure.nodes if node.id in kept or not node.cluster)


def _narrow_node(node: FigureNode, form: _Form, *, is_beside: bool) -> FigureNode:
    name, texts = _within(node.name, form.label) if form.names else "", node.lines
    label = _narrow_label(node, 26 if is_beside else form.label)  # its words stand at a wire, not in a box
    if form.dense:
        name, texts = "", (_BETWEEN.join(text for text in (name, *texts) if text),)
    lines = _lines(texts, form.line)
    return replace(node, label=label, name=name, lines=lines)


def _narrow_label(node: FigureNode, letters: int) -> str:
    """Return a label that drops its operands before letters of its type.

    The label of a mark stands beside it and stays whole. A count of operations becomes as short as possible.
    """
    if node.kind is NodeKind.END:
        return node.label
    if node.kind is NodeKind.GROUP:
        letters = max(letters, _LEAST_OF_GROUP)
    options = (node.label, f"{node.brief}(…)", node.brief) if node.brief else (node.label,)
    return next((one for one in options if _within(one, letters) == one), _within(options[-1], letters))


def _within(text: str, letters: int) -> str:
    """Return a text that has so many letters, or is no wider than so many usually are; else without its middle."""
    return narrowed_text(text, letters * _USUAL_LETTER, LABEL_SIZE, least=letters)


def _narrow_frame(frame: Cluster, form: _Form, *, is_alone: bool) -> Cluster:
    """Return a frame with shortened label and lines; one that `is_alone` has the width of the page for them."""
    letters, line = 2 * form.label, 2.0 * form.line
    if is_alone and (form.label > _NARROWEST.label or (form.facts and not form.outside)):  # no wires beside the label
        letters, line = max(letters, WHOLE_LABEL), max(line, WHOLE_LABEL * SMALL_SIZE * 0.6)
    if form.dense:
        line = max(line, advance(shortened(frame.label, letters), LABEL_SIZE, bold=True))
    texts = (_BETWEEN.join(frame.lines),) if form.dense else frame.lines
    lines = _lines(texts, line) if form.framed else ()
    return replace(frame, label=shortened(frame.label, letters), lines=lines)


def _narrow_edge(edge: FigureEdge, form: _Form) -> FigureEdge:
    label = shortened(edge.label, form.label) if edge.kind in BACKWARD else edge.label
    line = max(form.line, _REASON) if edge.kind is EdgeKind.NO_EFFECT else form.line
    return replace(edge, label=label, details=_lines(edge.details, line))


def _lines(texts: Sequence[str], width: float) -> tuple[str, ...]:
    """Return texts in lines of a width; a word that is longer loses its middle."""
    lines = (line for text in texts for line in wrapped(text, width, SMALL_SIZE))
    return tuple(narrowed_text(line, width, SMALL_SIZE) for line in lines)
