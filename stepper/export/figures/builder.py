"""From graphs of the model to nodes, clusters and edges of a figure; bodies inside of their layers, to a depth."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from functools import partial
from typing import NamedTuple

from msgspec import Struct
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
    BodyPath,
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
    Lines,
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
from stepper.export.picture import FigureContent
from stepper.ir.model import (
    Body,
    Graph,
    InputMapping,
    Layer,
    Port,
    Slicing,
    Source,
)
from stepper.operation_types import NO_OPERATIONS
from stepper.ops.operands import shape_text
from stepper.query.short_names import is_automatic, short_names_of
from stepper.wording import counted, excerpt

_LONGEST = 20


class FramePorts:
    """The ports of one layer with bodies that stands in the graph `outer`.

    `ends` is the input that ends a loop, with words: its trip count, or slices, which are used up.
    """

    def __init__(self, content: FigureContent, layer: Layer, outer: Graph) -> None:
        self._content, self._layer, self._outer = content, layer, outer
        found = Control() if content.model is None else control(content.model, outer, layer)
        self._controls: dict[int, tuple[str, ControlOrigin | None]] = {}
        self.ends = [(index, "last slice: ends") for index in found.slices_of[:1]]
        if layer.type == "Loop":
            trip_count, condition = control_inputs(layer, layer.bodies[0], outer)
            if trip_count is not None:
                self._controls[trip_count] = "trip count", found.trip_count
                if has_limit(found.trip_count):
                    self.ends = [(trip_count, "count reached: ends")]
            if condition is not None:
                self._controls[condition] = "condition", found.condition
        elif layer.type == "If":
            self._controls[0] = "condition", found.condition

    def drawn(self, inner: Callable[[Body, int], str], marks: Mapping[int, str]) -> Iterator[FramePort]:
        """Yield all ports; `inner` gives the box of a Parameter or Result, `marks` the end marks by input."""
        bodies, sources = self._layer.bodies, self._outer.sources[self._layer.id]
        for index, source in enumerate(sources):
            ends = {inner(body, one.parameter): None for body in bodies for one in body.inputs if one.input == index}
            ends |= {marks[index]: None} if index in marks else {}
            if source is not None and (ends or self._is_drawn(index)):
                yield FramePort(index, tuple(self._words(index, source)), tuple(ends))
        for index in range(len(self._layer.outputs)):
            ends = {inner(body, one.result): None for body in bodies for one in body.outputs if one.output == index}
            if ends:
                yield FramePort(index, (f"output {index}", str(index)), tuple(ends), is_output=True)

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
            yield from (f"{port} = {constant_text(model, producer, names=names)}" for names in (True, False))
        elif not written:
            yield f"{port} '{shortened(excerpt(references_of(self._outer)[producer.id]), _LONGEST)}'"
        yield from (port, str(index))


_MOST_CLOSED = 4
"""Maximum number of loops drawn as boxes for which a figure explains start and end."""


class DrawnBox(NamedTuple):
    """Graph and drawn node behind a node of the figure."""

    graph: Graph
    node: DrawnNode


class DrawnLevel(NamedTuple):
    """Hold a drawn graph, `inside` these bodies; `cluster` is its frame ("": the page).

    `opened` are the layers by id whose bodies are drawn inside a frame.
    """

    inside: BodyPath
    graph: Graph
    drawn: DrawnGraph
    cluster: str
    opened: Mapping[int, Layer]

    @property
    def prefix(self) -> str:
        """The beginning of the ids of all that is in it."""
        return prefix_of(self.inside)


class FigureBuilder(Struct):
    """Nodes, edges and clusters of a figure under construction; `drawn` maps a node's id to its drawn node.

    `levels` are the graphs that it has, outer before inner. `is_sized`: it tells sizes that only the run knows.
    """

    content: FigureContent
    nodes: list[FigureNode] = []
    edges: list[FigureEdge] = []
    clusters: list[Cluster] = []
    drawn: dict[str, DrawnBox] = {}
    levels: list[DrawnLevel] = []
    is_sized: bool = False
    _boxes: dict[BodyPath, Mapping[int, int]] = {}
    _frames: dict[str, tuple[FramePort, ...]] = {}

    def add_bodies(self, layer: Layer, outer: Graph, inside: BodyPath, parent: str, depth: int) -> str:
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
        label, kind = loop_label(layer), NodeKind.LOOP if layer.is_loop else NodeKind.BRANCH
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
            self.add_graph(body.graph, body, layer, around_body, depth, outer, (*inside, shown))
        self._add_end(layer, inside, id)
        ports = FramePorts(self.content, layer, outer)
        marks: dict[int, str] = {}
        for index, words in ports.ends:
            mark = FigureSite((*inside, InnerBody(layer.id, layer.bodies[0].role)), "count")
            marks[index] = mark.id
            self.nodes.append(FigureNode(mark.id, NodeKind.END, words, cluster=id, site=mark))
        self._frames[id] = tuple(ports.drawn(partial(self._inner, inside, layer), marks))
        self.clusters[place] = replace(self.clusters[place], ports=self._frames[id])
        return id

    def closed_facts(self) -> Lines:
        """Return what begins and ends loops that are drawn as boxes, and where the rule books differ in these boxes."""
        boxes = [(box.graph, [box.graph.by_id[key] for key in box.node.layers]) for box in self.drawn.values()]
        loops = [(graph, layer) for graph, layers in boxes for layer in layers if layer.is_loop]
        told = []
        for graph, layer in loops[:_MOST_CLOSED] if self.content.model is not None else ():
            assert self.content.model is not None
            lines = loop_course(self.content.model, graph, layer, self.content.limit_of(graph, layer))
            told.append(f"{loop_label(layer)}: {'; '.join(lines)}")
        if loops[_MOST_CLOSED:]:
            told.append(f"{counted(len(loops) - _MOST_CLOSED, 'more loop')} drawn as boxes")
        notes = (note for graph, layers in boxes for note in differences_within(graph, layers))
        return tuple(dict.fromkeys((*told, *notes)))

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

    def _add_end(self, layer: Layer, inside: BodyPath, cluster: str) -> None:
        """Add the mark at which a loop ends whose condition can become false."""
        body = layer.bodies[0]
        result = body.condition
        source = None if result is None else body.graph.source(result)
        if not layer.is_loop or result is None or source is None or body.graph.by_id[source.layer].type == "Constant":
            return
        site = FigureSite((*inside, InnerBody(layer.id, body.role)), "end")
        self.nodes.append(FigureNode(site.id, NodeKind.END, "false: ends", cluster=cluster, site=site))
        self.edges.append(FigureEdge(self._inner(inside, layer, body, result), site.id, EdgeKind.ENDS))

    def add_graph(
        self,
        graph: Graph,
        body: Body | None,
        layer: Layer | None,
        cluster: str,
        depth: int,
        outer: Graph | None = None,
        inside: BodyPath = (),
    ) -> None:
        """Add all of a graph in a cluster; `layer` is the loop or If in `outer` whose `body` it is.

        Bodies are open to a depth; `inside` are those that lead to it.
        """
        drawn = drawn_graph(graph, body, self.content.folding(graph))
        self._boxes[inside] = drawn.box_of
        ports, roles = dict[int, Lines](), dict[int, PortRole]()
        idle: dict[tuple[int, int], Lines] = {}
        if layer is not None and body is not None and outer is not None and layer.is_loop:
            ports, roles = port_lines(layer, body, outer), port_roles(layer, body)
            idle = {(one.result, one.parameter): one.told for one in edges_without_effect(layer)}
        opens = (NodeKind.LOOP, NodeKind.BRANCH) if depth > 0 else ()
        opened = {node.key: graph.by_id[node.key] for node in drawn.nodes if node.kind in opens}
        level = DrawnLevel(inside, graph, drawn, cluster, opened)
        prefix = level.prefix
        self.levels.append(level)
        for node in drawn.nodes:
            if node.key in opened:
                self.add_bodies(opened[node.key], graph, inside, cluster, depth - 1)
            else:
                made = self._node(level, node, ports.get(node.key, ()))
                self.nodes.append(replace(made, role=roles.get(node.key, PortRole.NONE)))
        self._add_edges(level)
        for edge in drawn.back_edges:
            source, target = f"{prefix}n{edge.tail}", f"{prefix}n{edge.head}"
            back = FigureEdge(source, target, EdgeKind.BACK, edge.name)
            told = idle.get((edge.result, edge.parameter))
            if told is not None:
                back = replace(back, kind=EdgeKind.NO_EFFECT, label=f"{edge.name}: no effect", details=told)
            self.edges.append(back)

    def _node(self, level: DrawnLevel, node: DrawnNode, lines: Lines) -> FigureNode:
        graph, site = level.graph, FigureSite(level.inside, f"n{node.key}")
        layer = graph.by_id[node.key]
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
            cluster=level.cluster,
            computed_by=computed_by,
            highlighted=self.content.highlights(graph, node.layers),
            site=site,
        )
        found = self.content.differences
        return made if found is None else over_all(made, graph, node, found)

    def _forms(self, graph: Graph, layer: Layer) -> Lines:
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
    def notes(self) -> Lines:
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

    def _add_edges(self, level: DrawnLevel) -> None:
        graph, drawn = level.graph, level.drawn
        for edge in drawn.edges:
            if edge.target in level.opened:
                continue
            for source, kind, label, leaves in self._sources(level, edge.source, edge.output):
                target = f"{level.prefix}n{edge.target}"
                self._add_edge(FigureEdge(source, target, kind, label, edge.output, leaves=leaves))
        folded = {constant for node in drawn.nodes for constant in node.constants}
        for layer in level.opened.values():
            for port in self._frames[f"{level.prefix}c{layer.id}"]:
                tensor = None if port.is_output else graph.sources[layer.id][port.index]
                if tensor is None or tensor.layer in folded:
                    continue
                for source, _, _, leaves in self._sources(level, drawn.box_of[tensor.layer], tensor.output):
                    for target, kind, label in self._targets(layer, port, level.inside):
                        led = FigureEdge(source, target, kind, label, tensor.output)
                        self._add_edge(replace(led, enters=port.index, leaves=leaves))

    def _add_edge(self, edge: FigureEdge) -> None:
        if edge not in self.edges[-8:]:
            self.edges.append(edge)

    def _sources(self, level: DrawnLevel, key: int, output: int) -> Iterator[tuple[str, EdgeKind, str, int]]:
        """Yield the sources of a tensor: a node, or the Results of an opened layer, with the role and the output."""
        if key not in level.opened:
            yield f"{level.prefix}n{key}", EdgeKind.DATA, "", -1
            return
        layer = level.opened[key]
        for body in layer.bodies:
            for entry in body.outputs:
                if entry.output == output:
                    role = output_role(entry) if layer.is_loop else ""
                    yield self._inner(level.inside, layer, body, entry.result), EdgeKind.PORT, role, output

    def _targets(self, layer: Layer, port: FramePort, inside: BodyPath) -> Iterator[tuple[str, EdgeKind, str]]:
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

    def _inner(self, inside: BodyPath, layer: Layer, body: Body, identity: int) -> str:
        """Return the box of a Parameter or Result of an opened layer's body."""
        within = (*inside, InnerBody(layer.id, body.role))
        return FigureSite(within, f"n{self._boxes[within][identity]}").id


def constant_lines(content: FigureContent, graph: Graph, node: DrawnNode) -> Lines:
    """Return what the Constant is that a Result reads, where it is in its box."""
    model = content.model
    if node.kind is not NodeKind.RESULT or model is None or content.constants is not ConstantStyle.INLINE:
        return ()
    return tuple(f"= {constant_text(model, graph.by_id[key])}" for key in node.constants)


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


def port_lines(layer: Layer, body: Body, outer: Graph) -> dict[int, Lines]:
    """Return for each Parameter and Result of a loop's body a line for each of its entries in the port map."""
    lines: dict[int, dict[str, None]] = {}
    for entry in body.inputs:
        source = None if entry.input is None else outer.sources[layer.id][entry.input]
        named = "" if source is None else references_of(outer)[source.layer]
        text = _port_text(input_role(layer, entry), entry.slicing)
        lines.setdefault(entry.parameter, {})[text + (f" ← {shortened(excerpt(named), 20)}" if named else "")] = None
    with suppress(RoleError):
        for parameter in roles_of(layer).current_iteration:  # also those that the port map does not mention
            lines.setdefault(parameter, {str(Role.CURRENT_ITERATION): None})
    for output in body.outputs:
        named = "" if output.output is None else output_name(outer, layer, output.output, 20)
        target = "" if output.output is None else f" → output {output.output}" + (f" '{named}'" if named else "")
        lines.setdefault(output.result, {})[_port_text(output_role(output), output.slicing) + target] = None
    for back in body.back_edges:
        lines.setdefault(back.from_layer, {"carried": None})
    return {key: tuple(texts) for key, texts in lines.items()}


def port_roles(layer: Layer, body: Body) -> dict[int, PortRole]:
    """Return the roles of Parameters and Results of a loop's body that are drawn in a way of their own."""
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


_LEGEND = """
data | line | value
slice | blue line | slice of an input
back | dashed line | back edge: the value in the next iteration
no-effect | crossed line | back edge without effect
carried | orange line | carried from iteration to iteration
piece | green line | piece of an output
ends | dotted line | what ends the loop
square | square | port of a frame
merged | orange box | carried Parameter
parameter | blue box | input, other Parameter
result | green box | Result, output
condition | white round box | goes on? true or false
group | dashed box | several operations
accumulator | orange box | grows in each iteration
block | pile | block that repeats
idle | pale box | did not run
operand | · | an operand that comes by wire, left to right
step | S[k] | piece of iteration k
cut | … | the rest was cut off
"""
_WORDS = {sign: words for sign, *words in (line.split(" | ") for line in _LEGEND.strip().split("\n"))}
"""How each sign looks, for formats of text, and what it means."""
_BOXES = {
    NodeKind(kind): LegendSign(sign)
    for sign, kinds in (
        ("parameter", "parameter input"),
        ("result", "result output concatenation"),
        ("group", "group shapes"),
        ("cut", "cut-above cut-below"),
    )
    for kind in kinds.split()
}
_ROLES = {PortRole.CARRIED: LegendSign.MERGED, PortRole.CONDITION: LegendSign.CONDITION}


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
