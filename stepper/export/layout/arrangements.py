"""Lay out whole figures: graphs in ranks, iterations below each other, port maps as lists.

For an unrolled trace, one iteration is laid out once, repeated downwards, and joined by wires. Outer inputs stand
above, outputs below. Wires that pass iterations run in buses: slices on the left, pieces of concatenated outputs on the
right.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from msgspec import Struct

from stepper.export.figures.figure import (
    Arrangement,
    BodyEnds,
    Cluster,
    EdgeKind,
    Figure,
    FigureEdge,
    FigureNode,
    NodeKind,
)
from stepper.export.fonts import SMALL_SIZE, wrapped
from stepper.export.layout.figure_layout import (
    SIDE,
    BoxShape,
    FigureLayout,
    FrameShape,
    Polyline,
    Text,
    arranged_content,
    columns,
    room_for,
    segment,
    size_of,
)
from stepper.export.layout.layered import ChannelPath, Segment, channel

BUS_STEP = 3
ELLIPSIS_HEIGHT = 2
_ONWARD = (EdgeKind.CARRIED, EdgeKind.NO_EFFECT)
"""Kinds of edges from one iteration to the next."""


class _Net(Struct):
    """A wire of one channel: where it leaves, where it enters, and how far beyond the channel it goes at both ends."""

    kind: EdgeKind
    column: int
    begin: int
    ends: dict[int, int | None] = {}
    title: str = ""


def arrange_iterations(figure: Figure) -> FigureLayout:
    """Return the whole figure, iterations under each other."""
    return _IterationsLayout(figure).drawing


class _IterationsLayout:
    """Layout of an unrolled figure under construction: columns first, then rows from the top downwards."""

    def __init__(self, figure: Figure) -> None:
        self.figure, self.drawing = figure, FigureLayout()
        self.stages = list(figure.clusters_in[""])
        self.shown = [cluster for cluster in self.stages if cluster.kind is NodeKind.ITERATION]
        self.out: dict[str, list[FigureEdge]] = {}
        for edge in figure.edges:
            self.out.setdefault(edge.source, []).append(edge)
        self.sliced: dict[tuple[str, str], list[FigureEdge]] = {}
        for edge in figure.edges:
            if edge.kind is EdgeKind.SLICE:
                self.sliced.setdefault((edge.source, self.figure.outermost(edge.target)), []).append(edge)
        ports = (edge for edge in figure.edges if edge.kind is EdgeKind.PORT and edge.body is None)
        self.controls = [edge for edge in ports if edge.target in figure.clusters_by_id]
        self.kinds = self._kinds()
        self.items: dict[str, list[FigureNode | Cluster]] = {}
        for item in figure.items:
            if item.place is not None:
                self.items.setdefault(item.place.stage, []).append(item)
        self.template, self.positions = self._template()
        self.inputs = [node for node in figure.nodes_in[""] if node.kind is NodeKind.INPUT]
        self.outputs = [node for node in figure.nodes_in[""] if node.kind is not NodeKind.INPUT]
        self._settle_columns()
        self._draw()

    # --- columns ---------------------------------------------------------------------------------------------------

    def _template(self) -> tuple[FigureLayout, dict[str, BoxShape]]:
        """Return one iteration's layout with room for the values of all, and its boxes by their shared ids."""
        if not self.shown:
            return FigureLayout(), {}
        first, items = self.shown[0], (item for items in self.items.values() for item in items)
        least = room_for((f"{first.id}.{_within(item)}", item) for item in items)
        drawing = arranged_content(self.figure, first.id, least).drawing
        return drawing, {_within(box.node): box for box in drawing.boxes}

    def _settle_columns(self) -> None:
        """Place buses of slices on the left, the body beside its title, buses of pieces on the right."""
        sliced = [edge.source for edge in self.figure.edges if edge.kind is EdgeKind.SLICE]
        pieces = [edge.target for edge in self.figure.edges if edge.kind is EdgeKind.PIECE]
        self.left = {id: 1 + BUS_STEP * k for k, id in enumerate(dict.fromkeys(sliced))} if len(self.stages) > 1 else {}
        self.frame_x = BUS_STEP * len(self.left)
        margin = max((columns(cluster.label, bold=True) for cluster in self.shown), default=0) + 2 * SIDE
        self.body_x = self.frame_x + margin
        label = max((columns(stage.label, SMALL_SIZE) for stage in self.stages), default=0)
        self.frame_width = max(margin + self.template.width + SIDE, label + 2 * SIDE)
        begin = self.frame_x + self.frame_width + 2
        self.right = {id: begin + BUS_STEP * k for k, id in enumerate(dict.fromkeys(pieces))}
        self.enters = {tail: self.body_x + box.x + box.width // 2 for tail, box in self.positions.items()}

    def _leave_column(self, edge: FigureEdge) -> int:
        """Return the column where an edge leaves its source: one for each kind (and output)."""
        tail = self._tail(edge)
        box, wanted = self.positions.get(tail), list(self.kinds.get(tail, ()))
        if box is None or not wanted or (edge.kind is EdgeKind.ENDS and edge.source not in self.figure.by_id):
            return self.frame_x + SIDE  # from the element as a whole
        key = (edge.kind, "" if edge.kind in _ONWARD else edge.target)
        index = wanted.index(key) if key in wanted else 0
        return self.body_x + box.x + box.width * (2 * index + 1) // (2 * len(wanted))

    def _shared(self, end: str, layer: int | None) -> str:
        """Return the id, as iterations share it, of the box at the end of an edge: itself or in what is left out."""
        node = self.figure.by_id.get(end)
        return f"n{layer}" if node is None else _within(node)

    def _tail(self, edge: FigureEdge) -> str:
        return self._shared(edge.source, (edge.body or BodyEnds()).result)

    def _kinds(self) -> dict[str, dict[tuple[EdgeKind, str], None]]:
        """Return the kinds (and outputs) of the edges that leave each box, by the id that iterations share."""
        found: dict[str, dict[tuple[EdgeKind, str], None]] = {}
        for edge in self.figure.edges:
            source = self.figure.by_id.get(edge.source)
            left_out = source is None and edge.kind in (*_ONWARD, EdgeKind.PIECE)
            if left_out or (source is not None and source.cluster and edge.kind is not EdgeKind.DATA):
                target = "" if edge.kind in _ONWARD else edge.target
                found.setdefault(self._tail(edge), {})[edge.kind, target] = None
        return found

    def _enter_column(self, edge: FigureEdge) -> int:
        if edge in self.controls:
            return self.frame_x + SIDE + BUS_STEP * self.controls.index(edge)
        assert edge.body is not None or edge.target in self.figure.by_id, "controls apart, edges enter Parameters"
        tail = self._shared(edge.target, (edge.body or BodyEnds()).parameter)
        aside = max(self.positions[tail].width // 4, 2) if edge.kind is EdgeKind.NO_EFFECT else 0
        return self.enters[tail] + aside  # beside what the Parameter really gets

    # --- rows ------------------------------------------------------------------------------------------------------

    def _draw(self) -> None:
        boxes = self._row(self.inputs, self._input_wishes())
        self.drawing.boxes += boxes.values()
        top = max((box.height for box in boxes.values()), default=0)
        nets = [self._input_net(node, boxes[node.id]) for node in self.inputs]
        for index, stage in enumerate(self.stages):
            y = self._channel(nets, top)
            height = self._draw_stage(stage, y)
            top = y + height
            nets = self._nets_below(index, stage, y, height)
        self._draw_outputs(nets, top)
        self.drawing.width = max(
            [
                self.frame_x + self.frame_width,
                *(box.x + box.width for box in self.drawing.boxes),
                *(part.x1 + 2 for line in self.drawing.lines for part in line.segments),
            ],
            default=0,
        )

    def _row(self, nodes: list[FigureNode], wishes: Mapping[str, float]) -> dict[str, BoxShape]:
        """Return boxes side by side, each as near as possible to its wanted column; the caller sets y."""
        found: list[BoxShape] = []
        free = 0
        for node in sorted(nodes, key=lambda node: wishes.get(node.id, 0)):
            width, height = size_of(node)
            x = max(free, round(wishes.get(node.id, 0) - width / 2), 0)
            found.append(BoxShape(node, x, 0, width, height))
            free = x + width + 2
        limit = max(self.frame_x + self.frame_width, sum(box.width + 2 for box in found) - 2)
        for index in reversed(range(len(found))):  # back to the left, as far as they stand out at the right
            box = found[index]
            found[index] = box._replace(x=min(box.x, limit - box.width))
            limit = found[index].x - 2
        return {box.node.id: box for box in found}

    def _input_wishes(self) -> dict[str, float]:
        wishes: dict[str, float] = {}
        for node in self.inputs:
            found = [self._enter_column(edge) for edge in self.out.get(node.id, [])]
            wishes[node.id] = self.left.get(node.id, sum(found) / len(found) if found else self.body_x)
        return wishes

    def _input_net(self, node: FigureNode, box: BoxShape) -> _Net:
        """Return the wire from an outer input into the first element of the stack, and into its bus."""
        net = _Net(EdgeKind.PORT, box.x + box.width // 2, box.height - 1, title=node.label)
        for edge in self.out.get(node.id, []):
            if edge.kind is EdgeKind.SLICE:
                net.kind = EdgeKind.SLICE
            if self.figure.outermost(edge.target) == self.stages[0].id:
                depth = -1 if edge in self.controls else self._entry_depth(self.stages[0])
                net.ends[self._enter_column(edge)] = depth
        if node.id in self.left:
            net.ends[self.left[node.id]] = None
        return net

    def _entry_depth(self, stage: Cluster) -> int:
        """Return how many rows of an element wires cross to reach their targets."""
        return 1 if stage.kind is NodeKind.ITERATION else -1

    def _draw_stage(self, stage: Cluster, y: int) -> int:
        if stage.kind is NodeKind.ELLIPSIS:
            node = FigureNode(stage.id, NodeKind.ELLIPSIS, stage.label)
            self.drawing.boxes.append(BoxShape(node, self.frame_x, y, self.frame_width, ELLIPSIS_HEIGHT))
            return ELLIPSIS_HEIGHT
        height = self.template.height + 3
        self.drawing.frames.append(FrameShape(stage, self.frame_x, y, self.frame_width, height))
        own = {f"{self.shown[0].id}.{_within(item)}": item for item in self.items.get(stage.id, ())}
        self.drawing.include(self.template.renamed(own), self.body_x, y + 2)
        return height

    def _nets_below(self, index: int, stage: Cluster, y: int, height: int) -> list[_Net]:
        """Return all wires that leave an element of the stack downwards or run past it."""
        following = self.stages[index + 1] if index + 1 < len(self.stages) else None
        nets = self._passing(index, y, following)
        mine: dict[int, _Net] = {}
        for edge in self._edges_from(stage):
            column = self._leave_column(edge)
            begin = y + height - 1
            if stage.kind is not NodeKind.ELLIPSIS and edge.source != stage.id:
                box = self.positions[_within(self.figure.by_id[edge.source])]
                begin = y + 2 + box.y + box.height - 1
            net = mine.setdefault(column, _Net(edge.kind, column, begin, title=edge.label))
            if edge.kind in _ONWARD and following is not None:
                net.ends[self._enter_column(edge)] = self._entry_depth(following)
            elif edge.kind is EdgeKind.PIECE and following is not None:
                net.ends[self.right[edge.target]] = None
        if following is not None:
            return [*nets, *(net for net in mine.values() if net.ends)]
        return [*nets, *mine.values()]

    def _edges_from(self, stage: Cluster) -> Iterable[FigureEdge]:
        """Return the edges that leave an element of the stack, from its nodes or from itself."""
        sources = [stage.id, *(node.id for node in self.figure.nodes_in[stage.id])]
        leaving = (*_ONWARD, EdgeKind.PIECE, EdgeKind.PORT, EdgeKind.ENDS)
        return [
            edge
            for source in sources
            for edge in self.out.get(source, [])
            if edge.kind in leaving and self.figure.outermost(edge.target) != stage.id
        ]

    def _passing(self, index: int, row: int, following: Cluster | None) -> list[_Net]:
        """Return the buses: slices down to the last element of the stack, pieces from the first on."""
        nets = []
        if following is not None:
            for source, column in self.left.items():
                net = _Net(EdgeKind.SLICE, column, row, title=self.figure.by_id[source].label)
                for edge in self.sliced.get((source, following.id), []):
                    net.ends[self._enter_column(edge)] = self._entry_depth(following)
                if index + 2 < len(self.stages):
                    net.ends[column] = None
                nets.append(net)
        if index > 0:
            nets += [_Net(EdgeKind.PIECE, column, row, {column: None}) for column in self.right.values()]
        return nets

    def _draw_outputs(self, nets: list[_Net], top: int) -> None:
        """Draw the row of outputs below the last element, and the wires into it."""
        into: dict[str, list[_Net]] = {node.id: [] for node in self.outputs}
        columns_of = {column: id for id, column in self.right.items()}
        direct = {self._leave_column(edge): edge for edge in (self._edges_from(self.stages[-1]) if self.stages else [])}
        for net in nets:
            if net.column in columns_of and net.kind is EdgeKind.PIECE and net.ends:
                into[columns_of[net.column]].append(net)
            elif net.column in direct:
                into[direct[net.column].target].append(net)
            net.ends.clear()
        wishes = {id: sum(net.column for net in found) / len(found) for id, found in into.items() if found}
        boxes = self._row(self.outputs, wishes)
        for id, found in into.items():
            box = boxes[id]
            for k, net in enumerate(sorted(found, key=lambda net: net.column)):
                net.ends[box.x + box.width * (2 * k + 1) // (2 * len(found))] = 0
        y = self._channel([net for net in nets if net.ends], top)
        self.drawing.boxes += [box._replace(y=y) for box in boxes.values()]
        self.drawing.height = y + max((box.height for box in boxes.values()), default=0)

    # --- wires -----------------------------------------------------------------------------------------------------

    def _channel(self, nets: list[_Net], top: int) -> int:
        """Draw the wires between row `top` and what follows; the row where that begins."""
        paths, count = channel([(net.column, list(net.ends)) for net in nets], top, is_whole=True)
        bottom = top + count
        passing = {net.column for net in nets if net.ends == {net.column: None}}
        for net, path in zip(nets, paths, strict=True):
            self._draw_net(net, path, bottom, passing)
        return bottom + 1

    def _draw_net(self, net: _Net, path: ChannelPath, bottom: int, passing: set[int]) -> None:
        row = path.row
        parts = [segment(net.column, net.begin, net.column, path.begin), *path.segments]
        heads, joins = [], []
        for end, depth in net.ends.items():
            if depth is None and end in passing and end != net.column:
                joins.append((end, row))
                continue
            if depth is None:  # a bus goes on beside the next element of the stack
                parts.append(segment(end, row, end, bottom + 1))
                continue
            last = bottom + max(depth + 1, 0) if depth > 0 else bottom
            parts.append(segment(end, row, end, last))
            heads.append((end, last))
        crosses = ((path.column, row),) if net.kind is EdgeKind.NO_EFFECT else ()
        line = Polyline(net.kind, tuple(parts), tuple(heads), net.title, joins=tuple(joins), crosses=crosses)
        self.drawing.lines.append(line)


def _within(item: FigureNode | Cluster) -> str:
    """Return the id that a box or a frame has in all iterations; "" outside of them."""
    return "" if item.place is None else item.place.within


WIRE = 5
"""Cells of a wire beside its words."""
_BETWEEN = 5
_WIDEST = 150
"""Pixels of a line of words beside a wire."""


def arrange_ports(figure: Figure) -> FigureLayout:
    """Return what goes into each body and what comes out, an entry a wire; the bodies one below the other."""
    is_row = figure.arrangement is Arrangement.PORT_LISTS
    bodies = (_joined(_lists(figure, cluster), is_row=is_row) for cluster in figure.clusters)
    return _joined(bodies, is_row=False)


def _joined(parts: Iterable[FigureLayout], *, is_row: bool) -> FigureLayout:
    """Return layouts beside one another, or below one another."""
    drawing = FigureLayout()
    for part in parts:
        x = drawing.width + _BETWEEN if is_row and drawing.width else 0
        y = drawing.height + 1 if not is_row and drawing.height else 0
        drawing.include(part, x, y)
        drawing.width, drawing.height = max(drawing.width, x + part.width), max(drawing.height, y + part.height)
    return drawing


def _lists(figure: Figure, cluster: Cluster) -> Iterator[FigureLayout]:
    """Yield the lists of a body: what goes in and what comes out."""
    for inwards, way in ((True, "into"), (False, "out of")):
        found = [node for node in figure.nodes_in[cluster.id] if (node.kind is NodeKind.PARAMETER) is inwards]
        if found:
            title = f"{way} the {cluster.label}"
            drawing = FigureLayout()
            drawing.texts.append(Text(0, 0, title, "title", "start"))
            drawing.height = _entries(figure, drawing, found, 2, inwards=inwards)
            drawing.width = max(drawing.width, columns(title, bold=True))
            yield drawing


def _entries(figure: Figure, drawing: FigureLayout, nodes: list[FigureNode], y: int, *, inwards: bool) -> int:
    """Draw the boxes of one direction with their wires; the row below the last."""
    words = {node.id: list(_words(figure, node, inwards=inwards)) for node in nodes}
    wide = max(size_of(node)[0] for node in nodes)
    texts = [columns(line, SMALL_SIZE) for found in words.values() for _, lines in found for line in lines]
    beside = max(texts, default=0) + 1
    left = beside + WIRE if inwards else 0
    for node in nodes:
        taken = sum(len(lines) + 1 for _, lines in words[node.id]) - 1
        height = max(size_of(node)[1], taken)
        rows = y + max(height - taken, 0) // 2
        for edge, lines in words[node.id]:
            row = rows + len(lines) // 2
            begin = beside if inwards else wide - 1
            end = begin + WIRE - 1
            segments = (Segment(begin, row, end, row),)
            crosses = ((begin + 1, row),) if edge.kind is EdgeKind.NO_EFFECT else ()
            drawing.lines.append(Polyline(edge.kind, segments, (), edge.label, rights=((end, row),), crosses=crosses))
            for at, line in enumerate(lines):
                place = row - (len(lines) - 1) / 2 + at
                if inwards:
                    drawing.texts.append(Text(beside - 1, place, line, "small", "end"))
                else:
                    drawing.texts.append(Text(end + 2, place, line, "small", "start"))
            rows += len(lines) + 1
        drawing.boxes.append(BoxShape(node, left, y, wide, height))
        y += height + 1
    drawing.width = max(drawing.width, left + wide + (0 if inwards else WIRE + 1 + beside))
    return y


def _words(figure: Figure, node: FigureNode, *, inwards: bool) -> Iterator[tuple[FigureEdge, tuple[str, ...]]]:
    """Yield the wires of a box, each with the words for what is at its other end, and its role."""
    for edge in figure.edges:
        if (edge.target if inwards else edge.source) != node.id:
            continue
        other = figure.by_id[edge.source if inwards else edge.target]
        if edge.kind in (EdgeKind.BACK, EdgeKind.NO_EFFECT):
            yield edge, tuple(wrapped(" ".join(other.texts), _WIDEST, SMALL_SIZE))
            continue
        texts = (*other.lines, *filter(None, (edge.label,)))
        lines = wrapped(", ".join(texts), _WIDEST, SMALL_SIZE)
        if len(lines) > 1:
            lines = [line for text in texts for line in wrapped(text, _WIDEST, SMALL_SIZE)]
        yield edge, (other.label, *lines, *edge.details)


def arranged(figure: Figure) -> FigureLayout:
    """Return the figure laid out by our own layout."""
    if figure.arrangement is Arrangement.LAYERED:
        return arranged_content(figure, "", {}).drawing
    if figure.arrangement is Arrangement.ITERATIONS:
        return arrange_iterations(figure)
    return arrange_ports(figure)
