"""From graphs of the model to nodes, clusters and edges of a figure; bodies inside of their layers, to a depth."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Final, NamedTuple

from msgspec import Struct, field
from msgspec.structs import replace

from stepper.engine.loops import (
    Control,
    ControlOrigin,
    Role,
    RoleError,
    control,
    control_inputs,
    is_backward,
    output_role,
    roles_of,
    whole_axis,
)
from stepper.export.figures.content import FigureContent
from stepper.export.figures.drawn_graph import (
    DrawnGraph,
    DrawnNode,
    constant_text,
    drawn_graph,
    operands_text,
    output_name,
    reader_names,
    readers_of,
    references_of,
    says_type,
    shortened,
    type_and_name,
)
from stepper.export.figures.figure import (
    SIDES,
    Arrangement,
    Cluster,
    EdgeKind,
    Figure,
    FigureEdge,
    FigureNode,
    FigureSite,
    FramePort,
    InnerBody,
    LegendEntry,
    LegendSign,
    NodeKind,
    PortRole,
    prefix_of,
)
from stepper.export.figures.loop_facts import (
    differences_within,
    edges_without_effect,
    has_limit,
    loop_course,
    loop_facts,
)
from stepper.export.options import ConstantStyle, ValueDetail
from stepper.export.parting import over_all, over_body
from stepper.ir.model import Body, Graph, InputMapping, Layer, OutputMapping, Port, Slicing, Source
from stepper.ir.xml import EXECUTION_CONDITION
from stepper.operation_types import NO_OPERATIONS
from stepper.ops.operands import shape_text
from stepper.query.short_names import is_automatic, short_names_of
from stepper.wording import counted, excerpt

_LONGEST = 20


class WayToEnd(NamedTuple):
    """An input that ends a loop: its trip count, or slices, which are used up."""

    input: int
    words: str


class FramePorts:
    """The ports of one layer with bodies that stands in the graph `outer`."""

    def __init__(self, content: FigureContent, layer: Layer, outer: Graph) -> None:
        self._content, self._layer, self._outer = content, layer, outer
        self._names = references_of(outer)
        found = Control() if content.model is None else control(content.model, outer, layer)
        self._controls: dict[int, tuple[str, ControlOrigin | None]] = {}
        if layer.type == "Loop":
            trip_count, condition = control_inputs(layer, layer.bodies[0], outer)
            if trip_count is not None:
                self._controls[trip_count] = "trip count", found.trip_count
            if condition is not None:
                self._controls[condition] = "condition", found.condition
        elif layer.type == "If":
            self._controls[0] = "condition", found.condition
        self._slices = found.slices_of

    @property
    def ways_to_end(self) -> tuple[WayToEnd, ...]:
        """The inputs that end the loop."""
        for index, (word, origin) in self._controls.items():
            if word == "trip count" and has_limit(origin):
                return (WayToEnd(index, "count reached: ends"),)
        return tuple(WayToEnd(index, "last slice: ends") for index in self._slices[:1])

    def drawn(self, inner: Callable[[Body, int], str], marks: Mapping[int, tuple[str, ...]]) -> tuple[FramePort, ...]:
        """Return all ports; `inner` gives the box of a Parameter or Result, `marks` the end marks by input."""
        return (*self._inputs(inner, marks), *self._outputs(inner))

    def _inputs(self, inner: Callable[[Body, int], str], marks: Mapping[int, tuple[str, ...]]) -> Iterator[FramePort]:
        for index, source in enumerate(self._outer.sources[self._layer.id]):
            ends = [
                inner(body, entry.parameter)
                for body in self._layer.bodies
                for entry in body.inputs
                if entry.input == index
            ]
            ends += marks.get(index, ())
            if source is not None and (ends or self._is_drawn(index)):
                yield FramePort(index, tuple(self._words(index, source)), tuple(dict.fromkeys(ends)))

    def _is_drawn(self, index: int) -> bool:
        """True for a control input that is not the usual constant: no limit, or true."""
        if index not in self._controls:
            return False
        word, origin = self._controls[index]
        if word == "trip count":
            return origin is not None and origin.value is None
        return origin is None or origin.value is not True

    def _words(self, index: int, source: Source) -> Iterator[str]:
        producer = self._outer.by_id[source.layer]
        written = producer.type == "Constant" and self._content.constants is not ConstantStyle.BOX
        if index in self._controls:
            word, origin = self._controls[index]
            value = "" if not written or origin is None or origin.value is None else f" {str(origin.value).lower()}"
            yield word + value
            return
        port = f"input {index}"
        model = self._content.model
        if written and model is not None and self._content.constants is ConstantStyle.INLINE:
            yield f"{port} = {constant_text(model, producer)}"
            yield f"{port} = {constant_text(model, producer, names=False)}"
        elif not written:
            yield f"{port} '{shortened(excerpt(self._names[producer.id]), _LONGEST)}'"
        yield port
        yield str(index)

    def _outputs(self, inner: Callable[[Body, int], str]) -> Iterator[FramePort]:
        for index in range(len(self._layer.outputs)):
            ends = [
                inner(body, entry.result)
                for body in self._layer.bodies
                for entry in body.outputs
                if entry.output == index
            ]
            if ends:
                yield FramePort(index, (f"output {index}", str(index)), tuple(dict.fromkeys(ends)), is_output=True)


_MOST_CLOSED: Final = 4
"""Loops drawn as boxes of which a figure says what begins and ends them."""


class DrawnBox(NamedTuple):
    """Graph and drawn node behind a node of the figure."""

    graph: Graph
    node: DrawnNode


class DrawnLevel(NamedTuple):
    """A graph that is drawn: ids of what is in it begin with `prefix`; `cluster` is its frame ("": the page)."""

    prefix: str
    graph: Graph
    drawn: DrawnGraph
    cluster: str


class FigureBuilder(Struct):
    """Nodes, edges and clusters of a figure under construction; `drawn` maps a node's id to its drawn node.

    `levels` are the graphs that it has, outer before inner. `is_sized`: it tells sizes that only the run knows.
    """

    content: FigureContent
    nodes: list[FigureNode] = field(default_factory=list)
    edges: list[FigureEdge] = field(default_factory=list)
    clusters: list[Cluster] = field(default_factory=list)
    drawn: dict[str, DrawnBox] = field(default_factory=dict)
    levels: list[DrawnLevel] = field(default_factory=list)
    is_sized: bool = False
    _boxes: dict[tuple[InnerBody, ...], Mapping[int, int]] = field(default_factory=dict)
    _frames: dict[str, tuple[FramePort, ...]] = field(default_factory=dict)

    def add_graph(self, graph: Graph, body: Body | None, layer: Layer | None, cluster: str) -> DrawnGraph:
        """Return all of a graph; `layer` is the loop or If whose `body` it is."""
        return self._add(graph, body, layer, None, (), cluster, self.content.depth)

    def add_bodies(self, layer: Layer, outer: Graph, inside: tuple[InnerBody, ...], parent: str, depth: int) -> str:
        """Return a loop or If as a cluster with its body (or both sides) inside; the cluster's id.

        `inside` are the bodies that lead to its graph.
        """
        site = FigureSite(inside, f"c{layer.id}")
        id = site.id
        model = self.content.model
        facts = () if model is None else loop_facts(model, outer, layer, self.content.limit_of(outer, layer))
        place = len(self.clusters)
        around = next((frame.level for frame in self.clusters if frame.id == parent), 0)
        level = around + 1 if parent else 0
        idle = self.content.never_began(outer, layer)
        facts = (*facts, "did not start in this run") if idle else facts
        shows = InnerBody(layer.id, "body") if layer.is_loop else None
        label, kind = loop_label(layer), kind_of(layer)
        self.clusters.append(Cluster(id, kind, label, parent, facts, level=level, idle=idle, site=site, shows=shows))
        differences = self.content.differences
        if differences is not None and not differences.pairs:  # else it is one iteration, and this of all
            self.clusters[-1] = over_body(self.clusters[-1], outer, layer, differences)
        for body in layer.bodies:
            around_body, shown = id, InnerBody(layer.id, body.role)
            if not layer.is_loop:
                side = FigureSite(inside, f"{site.own}.{SIDES[body.role]}")
                around_body = side.id
                made = Cluster(side.id, NodeKind.SIDE, SIDES[body.role], id, level=level + 1, site=side, shows=shown)
                self.clusters.append(made)
            self._add(body.graph, body, layer, outer, (*inside, shown), around_body, depth)
        self._add_end(layer, inside, id)
        ports = FramePorts(self.content, layer, outer)
        marks: dict[int, tuple[str, ...]] = {}
        for entry in ports.ways_to_end:
            mark = FigureSite((*inside, InnerBody(layer.id, layer.bodies[0].role)), "count")
            marks[entry.input] = (mark.id,)
            self.nodes.append(FigureNode(mark.id, NodeKind.END, entry.words, cluster=id, site=mark))
        inner = partial(self._inner, inside, layer)
        self._frames[id] = ports.drawn(inner, marks)
        self.clusters[place] = replace(self.clusters[place], ports=self._frames[id])
        return id

    def closed_facts(self) -> tuple[str, ...]:
        """Return what begins and ends loops that are drawn as boxes, and where the rule books differ in these boxes."""
        boxes = [(box.graph, [box.graph.by_id[key] for key in box.node.layers]) for box in self.drawn.values()]
        loops = [(graph, layer) for graph, layers in boxes for layer in layers if layer.is_loop]
        told = [self._course(graph, layer) for graph, layer in loops[:_MOST_CLOSED]] if self.content.model else []
        if loops[_MOST_CLOSED:]:
            told.append(f"{counted(len(loops) - _MOST_CLOSED, 'more loop')} drawn as boxes")
        notes = (note for graph, layers in boxes for note in differences_within(graph, layers))
        return tuple(dict.fromkeys((*told, *notes)))

    def _course(self, outer: Graph, layer: Layer) -> str:
        """Return what begins and ends a loop in a line."""
        assert self.content.model is not None
        lines = loop_course(self.content.model, outer, layer, self.content.limit_of(outer, layer))
        return f"{loop_label(layer)}: {'; '.join(lines)}"

    def add_neighbours(self, layer: Layer, outer: Graph) -> None:
        """Add what a loop or If that was added alone gets its inputs from, and what reads its outputs."""
        names, references, sources = short_names_of(outer), references_of(outer), outer.sources[layer.id]
        known: dict[Source, str] = {}
        for port in self._frames[f"c{layer.id}"]:
            if port.is_output:
                self._add_readers(layer, port, outer)
                continue
            source = sources[port.index]
            if source is None or (
                outer.by_id[source.layer].type == "Constant" and self.content.constants is not ConstantStyle.BOX
            ):
                continue
            if source not in known:
                known[source] = f"in{port.index}"
                producer = outer.by_id[source.layer]
                kind = NodeKind.INPUT if producer.type == "Parameter" else NodeKind.OPERATION
                lines = (self._form(outer, producer.outputs[source.output], source),)
                label, name = type_and_name(producer, names[producer.id])
                if producer.type in NO_OPERATIONS:
                    label, name = excerpt(references[producer.id]), ""
                self.nodes.append(FigureNode(known[source], kind, label, lines, name=name, title=str(producer)))
            for target, edge_kind, label in self._targets(layer, port, ()):
                self.edges.append(FigureEdge(known[source], target, edge_kind, label, enters=port.index))

    def _add_readers(self, layer: Layer, port: FramePort, outer: Graph) -> None:
        readers = readers_of(outer, layer, port.index)
        if not readers:
            return
        id = f"out{port.index}"
        kind = NodeKind.OUTPUT if readers[0].type == "Result" else NodeKind.OPERATION
        named = reader_names(outer, layer, port.index)
        more = f" and {len(named) - 2} more" if len(named) > 2 else ""
        form = self._form(outer, layer.outputs[port.index], Source(layer.id, port.index))
        label, name, lines = f"{', '.join(named[:2])}{more}", "", (form,)
        if len(readers) == 1 and kind is NodeKind.OPERATION:
            label, name = type_and_name(readers[0], short_names_of(outer)[readers[0].id])
        title = "; ".join(map(str, readers[:12]))
        self.nodes.append(FigureNode(id, kind, label, lines, name=name, title=title))
        for end in port.ends:
            self.edges.append(FigureEdge(end, id, EdgeKind.PORT, output=port.index, leaves=port.index))

    def _add_end(self, layer: Layer, inside: tuple[InnerBody, ...], cluster: str) -> None:
        """Add the mark at which a loop ends whose condition can become false."""
        body = layer.bodies[0]
        result = next((entry.result for entry in body.outputs if entry.purpose == EXECUTION_CONDITION), None)
        source = None if result is None else body.graph.sources.get(result, (None,))[0]
        if not layer.is_loop or result is None or source is None or body.graph.by_id[source.layer].type == "Constant":
            return
        site = FigureSite((*inside, InnerBody(layer.id, body.role)), "end")
        self.nodes.append(FigureNode(site.id, NodeKind.END, "false: ends", cluster=cluster, site=site))
        self.edges.append(FigureEdge(self._inner(inside, layer, body, result), site.id, EdgeKind.ENDS))

    def _add(
        self,
        graph: Graph,
        body: Body | None,
        layer: Layer | None,
        outer: Graph | None,
        inside: tuple[InnerBody, ...],
        cluster: str,
        depth: int,
    ) -> DrawnGraph:
        drawn = drawn_graph(graph, body, self.content.folding(graph))
        self._boxes[inside] = drawn.box_of
        prefix = prefix_of(inside)
        ports, roles = port_lines(layer, body, outer), port_roles(layer, body)
        self.levels.append(DrawnLevel(prefix, graph, drawn, cluster))
        open_layers = {node.key: graph.by_id[node.key] for node in drawn.nodes if _opens(node, depth)}
        for node in drawn.nodes:
            if node.key in open_layers:
                self.add_bodies(open_layers[node.key], graph, inside, cluster, depth - 1)
            else:
                made = self._node(graph, node, ports.get(node.key, ()), inside, cluster)
                self.nodes.append(replace(made, role=roles.get(node.key, PortRole.NONE)))
        self._add_edges(graph, drawn, open_layers, inside)
        lost = edges_without_effect(layer) if layer is not None and layer.is_loop else ()
        idle = {(one.result, one.parameter): one.told for one in lost}
        for edge in drawn.back_edges:
            source, target = f"{prefix}n{edge.tail}", f"{prefix}n{edge.head}"
            back = FigureEdge(source, target, EdgeKind.BACK, edge.name)
            told = idle.get((edge.result, edge.parameter))
            if told is not None:
                back = replace(back, kind=EdgeKind.NO_EFFECT, label=f"{edge.name}: no effect", details=told)
            self.edges.append(back)
        return drawn

    def _node(
        self, graph: Graph, node: DrawnNode, lines: tuple[str, ...], inside: tuple[InnerBody, ...], cluster: str
    ) -> FigureNode:
        layer, site = graph.by_id[node.key], FigureSite(inside, f"n{node.key}")
        self.drawn[site.id] = DrawnBox(graph, node)
        if self.content.values is not ValueDetail.NONE and len(node.layers) == 1:
            lines = (*lines, *self._forms(graph, layer))
        lines = (*lines, *constant_lines(self.content, graph, node))
        if node.kind is NodeKind.ACCUMULATOR:
            lines = (*lines, "Parameter → Concat → Result")
        computed_by = self.content.computed_by(graph, node.layers)
        label, name, brief = self._words(graph, node)
        made = FigureNode(
            id=site.id,
            kind=node.kind,
            label=label,
            brief=brief,
            lines=lines,
            name=name,
            title=node_title(graph, node) + "".join(f"; computed by {who}" for who in computed_by),
            cluster=cluster,
            computed_by=computed_by,
            highlighted=self.content.highlights(graph, node.layers),
            site=site,
        )
        found = self.content.differences
        return made if found is None else over_all(made, graph, node, found)

    def _forms(self, graph: Graph, layer: Layer) -> tuple[str, ...]:
        """Return type and shape of each output (of a Result: of its input)."""
        if layer.type == "Result":
            read = zip(layer.inputs[:1], graph.sources[layer.id], strict=False)
            return tuple(self._form(graph, port, source) for port, source in read)
        found = (self._form(graph, port, Source(layer.id, index)) for index, port in enumerate(layer.outputs))
        return tuple(dict.fromkeys(found))

    def _form(self, graph: Graph, port: Port, source: Source | None) -> str:
        """Return type and shape as the file declares them; sizes that it leaves open as they always were in a run."""
        sizes = None if source is None else self.content.sizes.get((id(graph), *source))
        dims = port.dims
        if sizes is not None and len(sizes) == len(dims):
            dims = tuple(size if size >= 0 else seen for size, seen in zip(dims, sizes, strict=True))
        self.is_sized = self.is_sized or dims != port.dims
        return declared_text(port._replace(dims=dims))

    @property
    def notes(self) -> tuple[str, ...]:
        """The notes on the whole figure."""
        return ("sizes that the file leaves open are those of the run",) if self.is_sized else ()

    def _words(self, graph: Graph, node: DrawnNode) -> tuple[str, str, str]:
        """Return the label of a box, the name below it, and the label without operands where it has some."""
        model, layer = self.content.model, graph.by_id[node.key]
        if model is not None and self.content.constants is not ConstantStyle.HIDE and len(node.layers) == 1:
            if node.kind is NodeKind.CONSTANT:
                return constant_text(model, layer), "", ""
            folded = self.content.constants is ConstantStyle.INLINE and node.kind is NodeKind.OPERATION
            operands = operands_text(model, graph, layer) if folded else ""
            if operands:
                brief = excerpt(layer.type)
                return f"{brief}{operands}", shortened(excerpt(short_names_of(graph)[layer.id])), brief
        if node.kind is NodeKind.OPERATION and len(node.layers) == 1:
            name = short_names_of(graph)[layer.id]
            if not is_automatic(layer) or not says_type(layer, name):
                return *type_and_name(layer, name), ""
        return excerpt(node.label), "", ""

    def _add_edges(
        self, graph: Graph, drawn: DrawnGraph, opened: Mapping[int, Layer], inside: tuple[InnerBody, ...]
    ) -> None:
        prefix = prefix_of(inside)
        for edge in drawn.edges:
            if edge.target in opened:
                continue
            for source, kind, label, leaves in self._sources(edge.source, edge.output, opened, inside):
                target = f"{prefix}n{edge.target}"
                self._add_edge(FigureEdge(source, target, kind, label, edge.output, leaves=leaves))
        folded = {constant for node in drawn.nodes for constant in node.constants}
        for layer in opened.values():
            for port in self._frames[f"{prefix}c{layer.id}"]:
                tensor = None if port.is_output else graph.sources[layer.id][port.index]
                if tensor is None or tensor.layer in folded:
                    continue
                for source, _, _, leaves in self._sources(drawn.box_of[tensor.layer], tensor.output, opened, inside):
                    for target, kind, label in self._targets(layer, port, inside):
                        led = FigureEdge(source, target, kind, label, tensor.output)
                        self._add_edge(replace(led, enters=port.index, leaves=leaves))

    def _add_edge(self, edge: FigureEdge) -> None:
        if edge not in self.edges[-8:]:
            self.edges.append(edge)

    def _sources(
        self, key: int, output: int, opened: Mapping[int, Layer], inside: tuple[InnerBody, ...]
    ) -> Iterator[tuple[str, EdgeKind, str, int]]:
        """Yield the sources of a tensor: a node, or the Results of an opened layer, with the role and the output."""
        if key not in opened:
            yield FigureSite(inside, f"n{key}").id, EdgeKind.DATA, "", -1
            return
        layer = opened[key]
        for body in layer.bodies:
            for entry in body.outputs:
                if entry.output == output:
                    role = output_role(entry) if layer.is_loop else ""
                    yield self._inner(inside, layer, body, entry.result), EdgeKind.PORT, role, output

    def _targets(
        self, layer: Layer, port: FramePort, inside: tuple[InnerBody, ...]
    ) -> Iterator[tuple[str, EdgeKind, str]]:
        """Yield what an opened layer's input leads to: Parameters, an end mark, or its frame for a condition."""
        roles = {
            self._inner(inside, layer, body, entry.parameter): input_role(layer, entry)
            for body in layer.bodies
            for entry in body.inputs
            if entry.input == port.index
        }
        for end in port.ends:
            yield (end, EdgeKind.PORT, roles[end]) if end in roles else (end, EdgeKind.ENDS, "")
        if not port.ends:
            yield FigureSite(inside, f"c{layer.id}").id, EdgeKind.PORT, "condition"

    def _inner(self, inside: tuple[InnerBody, ...], layer: Layer, body: Body, identity: int) -> str:
        """Return the box of a Parameter or Result of an opened layer's body."""
        within = (*inside, InnerBody(layer.id, body.role))
        return FigureSite(within, f"n{self._boxes[within][identity]}").id


def constant_lines(content: FigureContent, graph: Graph, node: DrawnNode) -> tuple[str, ...]:
    """Return what the Constant is that a Result reads, where it is in its box."""
    model = content.model
    if node.kind is not NodeKind.RESULT or model is None or content.constants is not ConstantStyle.INLINE:
        return ()
    return tuple(f"= {constant_text(model, graph.by_id[key])}" for key in node.constants)


def _opens(node: DrawnNode, depth: int) -> bool:
    return depth > 0 and node.kind in (NodeKind.LOOP, NodeKind.BRANCH)


def kind_of(layer: Layer) -> NodeKind:
    """Return LOOP or BRANCH."""
    return NodeKind.LOOP if layer.is_loop else NodeKind.BRANCH


def loop_label(layer: Layer) -> str:
    """Return the type and the shortened name, such as `Loop 'decoder'`."""
    return f"{layer.type} '{shortened(excerpt(layer.name), 40)}'"


def input_role(layer: Layer, entry: InputMapping) -> str:
    """Return the role of an input of a port map; empty for an If, which has none."""
    if not layer.is_loop:
        return ""
    try:
        return str(roles_of(layer).role_of(entry))
    except RoleError:
        return "cannot be played"


def _iteration_numbers(layer: Layer) -> tuple[int, ...]:
    """Return the Parameters that get the iteration number, also those that the port map does not mention."""
    try:
        return roles_of(layer).current_iteration
    except RoleError:
        return ()


def port_lines(layer: Layer | None, body: Body | None, outer: Graph | None) -> dict[int, tuple[str, ...]]:
    """Return for each Parameter and Result of a loop's body a line for each of its entries in the port map."""
    lines: dict[int, tuple[str, ...]] = {}
    if layer is None or body is None or not layer.is_loop:
        return lines
    for entry in body.inputs:
        text = _port_text(input_role(layer, entry), entry.slicing) + _from(layer, entry, outer)
        lines[entry.parameter] = (*lines.get(entry.parameter, ()), text)
    for parameter in _iteration_numbers(layer):
        lines.setdefault(parameter, (str(Role.CURRENT_ITERATION),))
    for output in body.outputs:
        text = _port_text(output_role(output), output.slicing) + _to(output, layer, outer)
        lines[output.result] = (*lines.get(output.result, ()), text)
    for back in body.back_edges:
        lines.setdefault(back.from_layer, ("carried",))
    return {key: tuple(dict.fromkeys(texts)) for key, texts in lines.items()}


def port_roles(layer: Layer | None, body: Body | None) -> dict[int, PortRole]:
    """Return the roles of Parameters and Results of a loop's body that are drawn in a way of their own."""
    if layer is None or body is None or not layer.is_loop:
        return {}
    try:
        found = dict.fromkeys(roles_of(layer).merged_from, PortRole.CARRIED)
    except RoleError:
        return {}
    conditions = [output.result for output in body.outputs if output_role(output).is_condition]
    outputs = {output.result for output in body.outputs if output.output is not None}
    return found | {result: PortRole.CONDITION for result in conditions if result not in outputs}


def _port_text(role: str, slicing: Slicing | None) -> str:
    """Return the role of an entry and how it cuts or joins: `merged`, `concatenated, axis 0, reversed`."""
    return role if slicing is None else f"{role}, {axis_text(slicing)}"


def axis_text(slicing: Slicing) -> str:
    """Return the axis, the direction where it is backward, and what else is not as usual: start, end, stride, size."""
    words = [f"axis {slicing.axis}", *(["reversed"] if is_backward(slicing) else [])]
    if (slicing.start, slicing.end) != whole_axis(slicing):
        words.append(f"{slicing.start} to {slicing.end}")
    if abs(slicing.stride) != (slicing.part_size or 1) or abs(slicing.stride) != 1:
        words += [f"stride {slicing.stride}", f"part_size {1 if slicing.part_size is None else slicing.part_size}"]
    return ", ".join(words)


def _from(layer: Layer, entry: InputMapping, outer: Graph | None) -> str:
    """Return the short name of the source of an entry of a port map."""
    source = None if entry.input is None or outer is None else outer.sources[layer.id][entry.input]
    if source is None or outer is None:
        return ""
    return f" ← {shortened(excerpt(references_of(outer)[source.layer]), 20)}"


def _to(output: OutputMapping, layer: Layer, outer: Graph | None) -> str:
    """Return the output of the loop that an entry of a port map gives, and its name in short."""
    if output.output is None:
        return ""
    named = "" if outer is None else output_name(outer, layer, output.output, 20)
    return f" → output {output.output}" + (f" '{named}'" if named else "")


def origin_role(outer: Graph, source: Source | None) -> PortRole:
    """Return the role of what a loop reads from outside: COMPUTED but for a Parameter, which is an input."""
    is_input = source is None or outer.by_id[source.layer].type == "Parameter"
    return PortRole.NONE if is_input else PortRole.COMPUTED


def declared_text(port: Port) -> str:
    """Return type and shape as the file declares them, such as `f32[1,?,16]`."""
    name = port.element_type.name if port.element_type is not None else "?"
    return f"{name}{shape_text(port.dims).replace('-1', '?')}"


def node_title(graph: Graph, node: DrawnNode) -> str:
    """Return a box in full: type, name and id of its layer, or of all that it stands for."""
    shown = [str(graph.by_id[key]) for key in sorted(node.layers)[:12]]
    if len(node.layers) > 12:
        shown.append(f"and {len(node.layers) - 12} more")
    constants = [f"Constant '{excerpt(graph.by_id[key].name)}'" for key in node.constants[:6]]
    return "; ".join(shown) + (f"; reads {', '.join(constants)}" if constants else "")


_WORDS: Final = {
    LegendSign.VALUE: ("line", "value"),
    LegendSign.SLICE: ("blue line", "slice of an input"),
    LegendSign.BACK: ("dashed line", "back edge: the value in the next iteration"),
    LegendSign.NO_EFFECT: ("crossed line", "back edge without effect"),
    LegendSign.CARRIED: ("orange line", "carried from iteration to iteration"),
    LegendSign.PIECE: ("green line", "piece of an output"),
    LegendSign.ENDS: ("dotted line", "what ends the loop"),
    LegendSign.PORTS: ("square", "port of a frame"),
    LegendSign.MERGED: ("orange box", "carried Parameter"),
    LegendSign.PARAMETER: ("blue box", "input, other Parameter"),
    LegendSign.RESULT: ("green box", "Result, output"),
    LegendSign.CONDITION: ("white round box", "goes on? true or false"),
    LegendSign.GROUP: ("dashed box", "several operations"),
    LegendSign.ACCUMULATOR: ("orange box", "grows in each iteration"),
    LegendSign.BLOCK: ("pile", "block that repeats"),
    LegendSign.IDLE: ("pale box", "did not run"),
    LegendSign.OPERAND: ("·", "an operand that comes by wire, left to right"),
    LegendSign.STEP: ("S[k]", "piece of iteration k"),
    LegendSign.CUT: ("…", "the rest was cut off"),
}  # fmt: skip
"""How each sign looks, for formats of text, and what it means."""
_BOXES: Final = {
    NodeKind.PARAMETER: LegendSign.PARAMETER,
    NodeKind.INPUT: LegendSign.PARAMETER,
    NodeKind.RESULT: LegendSign.RESULT,
    NodeKind.OUTPUT: LegendSign.RESULT,
    NodeKind.CONCATENATION: LegendSign.RESULT,
    NodeKind.GROUP: LegendSign.GROUP,
    NodeKind.SHAPES: LegendSign.GROUP,
    NodeKind.CUT_ABOVE: LegendSign.CUT,
    NodeKind.CUT_BELOW: LegendSign.CUT,
}  # fmt: skip
_ROLES: Final = {PortRole.CARRIED: LegendSign.MERGED, PortRole.CONDITION: LegendSign.CONDITION}


def legend_of(figure: Figure) -> tuple[LegendEntry, ...]:
    """Return the entries for what occurs in a figure, lines first."""
    found = set(_signs(figure))
    return tuple(LegendEntry(sign, *_WORDS[sign]) for sign in LegendSign if sign in found)


def _signs(figure: Figure) -> Iterator[LegendSign]:
    yield from (
        LegendSign(EdgeKind.DATA if edge.kind is EdgeKind.PORT else edge.kind)
        for edge in figure.edges
        if edge.source != edge.target
    )  # else it is not drawn
    is_listed = figure.arrangement in (Arrangement.PORT_LISTS, Arrangement.PORT_LIST)
    for node in figure.nodes:
        if node.cluster or not is_listed:  # else words stand for it
            yield from _signs_of_node(node)
    for frame in figure.clusters:
        if frame.idle:
            yield LegendSign.IDLE
        if frame.ports:
            yield LegendSign.PORTS
        if frame.kind is NodeKind.BLOCK:
            yield LegendSign.BLOCK


def _signs_of_node(node: FigureNode) -> Iterator[LegendSign]:
    if node.kind is NodeKind.END:
        yield LegendSign.ENDS
    if node.brief:  # then the label is a formula
        yield LegendSign.OPERAND
    if node.joins and node.lines:
        yield LegendSign.STEP
    if node.idle:
        yield LegendSign.IDLE
    elif node.kind is NodeKind.ACCUMULATOR:
        yield LegendSign.ACCUMULATOR
    elif node.kind in _BOXES and node.role is not PortRole.COMPUTED:
        yield _ROLES.get(node.role, _BOXES[node.kind])
