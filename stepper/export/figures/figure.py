"""A figure as data: nodes in clusters, edges of a kind, texts. Views build it, writers read it.

Ids are stable: they follow from layer ids and iteration numbers alone. Order is the order of drawing.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Mapping
from enum import StrEnum
from functools import cached_property
from typing import Final, NamedTuple

from msgspec import field
from msgspec.structs import replace

from stepper.engine.program import legend, mark_of
from stepper.ir.model import BodyRole
from stepper.records import Record

Lines = tuple[str, ...]
"""Lines of text."""


class NodeKind(StrEnum):
    """Kind of a node or a cluster."""

    PARAMETER = "parameter"
    RESULT = "result"
    OPERATION = "operation"
    LOOP = "loop"
    BRANCH = "branch"
    CONSTANT = "constant"
    SHAPES = "shapes"
    ACCUMULATOR = "accumulator"
    GROUP = "group"
    BLOCK = "block"
    INPUT = "input"
    OUTPUT = "output"
    CONCATENATION = "concatenation"
    ELLIPSIS = "ellipsis"
    CUT_ABOVE = "cut-above"
    CUT_BELOW = "cut-below"
    END = "end"
    SIDE = "side"
    ITERATION = "iteration"


class EdgeKind(StrEnum):
    """Kind of an edge.

    DATA: a tensor inside a graph. PORT: an entry of a port map. BACK: a back edge, to the next iteration. CARRIED: a
    back edge of the unrolled trace, from one iteration shown to the next. SLICE: the part that an iteration gets.
    PIECE: what an iteration adds to a concatenated output. ENDS: what ended the loop. NO_EFFECT: a back edge
    that carries nothing.
    """

    DATA = "data"
    PORT = "port"
    BACK = "back"
    NO_EFFECT = "no-effect"
    CARRIED = "carried"
    SLICE = "slice"
    PIECE = "piece"
    ENDS = "ends"


BACKWARD = (EdgeKind.BACK, EdgeKind.NO_EFFECT)
"""Kinds of edges that lead from the end of an iteration to its beginning."""


CUTS = (NodeKind.CUT_ABOVE, NodeKind.CUT_BELOW)
"""Kinds of marks of what was cut off from a part of a figure."""


class Arrangement(StrEnum):
    """Arrangement on the page: ranks of a graph, iterations one below the other, or a port map as lists of what goes
    into and out of each body, side by side or one below the other.
    """

    LAYERED = "layered"
    ITERATIONS = "iterations"
    PORT_LISTS = "port lists"
    PORT_LIST = "port list"


class LegendSign(StrEnum):
    """Line or box that a legend explains; lines are named as the kinds of edges, in the order in which they stand."""

    VALUE = "data"
    SLICE = "slice"
    BACK = "back"
    NO_EFFECT = "no-effect"
    CARRIED = "carried"
    PIECE = "piece"
    ENDS = "ends"
    PORTS = "square"
    MERGED = "merged"
    PARAMETER = "parameter"
    RESULT = "result"
    CONDITION = "condition"
    GROUP = "group"
    ACCUMULATOR = "accumulator"
    BLOCK = "block"
    IDLE = "idle"
    OPERAND = "operand"
    STEP = "step"
    CUT = "cut"


class LegendEntry(Record):
    """Meaning of a line or a box in `words`; `look` is how it looks, for formats of text."""

    sign: LegendSign
    look: str
    words: str


class PortRole(StrEnum):
    """Role of a Parameter or Result that is drawn in a way of its own; COMPUTED: an input of a loop that is none."""

    NONE = ""
    CARRIED = "merged"
    CONDITION = "condition"
    COMPUTED = "computed"


class ValueState(StrEnum):
    """State of a value beside another run: there the two part, it differs, it is finite here alone, it is the same."""

    NONE = ""
    PARTS = "parts"
    DIFFERS = "differs"
    MENDED = "mended"
    ALIKE = "alike"


class Thumbnail(Record):
    """A tensor as a small picture: rows of shades from 0 to 1 (None: not finite); one row alone is a sparkline."""

    rows: tuple[tuple[float | None, ...], ...]

    @property
    def is_line(self) -> bool:
        """True if it is drawn as a line."""
        return len(self.rows) == 1

    @property
    def height(self) -> int:
        """Height in lines of text."""
        return 1 if self.is_line else 2


SIDES: Final[Mapping[BodyRole, str]] = {"then_body": "then", "else_body": "else", "body": "body"}


class InnerBody(NamedTuple):
    """A body inside of a graph: the loop or If by its id there, and which of its bodies."""

    layer: int
    role: BodyRole

    @property
    def runs_often(self) -> bool:
        """True for the body of a loop."""
        return self.role == "body"


BodyPath = tuple[InnerBody, ...]
"""Bodies that lead to a graph, outer first."""


class FigureSite(NamedTuple):
    """Where a box or a frame stands: the bodies that lead to its graph, outer first, and its own id among its boxes."""

    inside: BodyPath
    own: str

    @property
    def id(self) -> str:
        """Its id in the figure."""
        return f"{prefix_of(self.inside)}{self.own}"

    @property
    def within(self) -> str:
        """Its id in a figure of the outermost body alone."""
        return self._replace(inside=self.inside[1:]).id


def prefix_of(inside: BodyPath) -> str:
    """Return what all ids in a body begin with."""
    return "".join(f"{body.layer}{'' if body.runs_often else SIDES[body.role][0]}." for body in inside)


class IterationPlace(Record):
    """The iteration (its frame) that something stands in, and its id within, which all iterations share."""

    stage: str
    within: str


class BodyEnds(Record):
    """Result and Parameter of a loop's body that an edge to or from an iteration is of; None: it has none there."""

    result: int | None = None
    parameter: int | None = None


class FigureNode(Record):
    """Hold a box: its label, further lines, remarkable facts (`marks`) and its full `title`.

    `name` is the name of an operation whose label is its type or a formula: `half` for `Divide(·, 2)`. `brief` is the
    label without the operands of a formula: `Divide`. `idle`: the box stands in a side of an If that did not run.
    `computed_by` names other backends that compute its content. `role` is the role of a Parameter or Result that is
    drawn in its own way. `state` compares the box with another run. `place` is its position in an iteration of a run,
    `site` its position among bodies drawn inside each other. `joins`: its lines name the iterations of an output's
    pieces.
    """

    id: str
    kind: NodeKind
    label: str
    lines: Lines = ()
    name: str = ""
    brief: str = ""
    marks: Lines = ()
    title: str = ""
    cluster: str = ""
    highlighted: bool = False
    thumbnail: Thumbnail | None = None
    idle: bool = False
    computed_by: Lines = ()
    role: PortRole = PortRole.NONE
    state: ValueState = ValueState.NONE
    place: IterationPlace | None = None
    joins: bool = False
    site: FigureSite = FigureSite((), "")

    @property
    def texts(self) -> Lines:
        """All lines of text, marks last."""
        label = " · ".join((self.label, *dict.fromkeys(map(mark_of, self.computed_by))))
        named = (self.name,) if self.name else ()
        return (label, *named, *self.lines, *((" ".join(f"! {mark}" for mark in self.marks),) if self.marks else ()))


class FigureEdge(Record):
    """Connect a node to a node or a whole cluster; `output` distinguishes tensors of one source.

    `body` is the body of an edge to or from an iteration. `details` describe how a port slices or joins, or why a back
    edge has no effect. `enters` is the input of the frame whose rim the edge crosses to its target; `leaves` is the
    output of the frame around its source; -1: none.
    """

    source: str
    target: str
    kind: EdgeKind
    label: str = ""
    output: int = 0
    body: BodyEnds | None = None
    details: Lines = ()
    enters: int = -1
    leaves: int = -1


class FramePort(Record):
    """A port on the rim of a frame: input (or output) `index` of its layer, which leads to (from) `ends` inside.

    `words` stand beside it, the first that there is room for.
    """

    index: int
    words: Lines
    ends: Lines = ()
    is_output: bool = False


class Cluster(Record):
    """Hold a body, a side of an If or an iteration, drawn as a frame around its nodes.

    `parent` is "" at the top. `idle`: a side of an If that did not run, or a loop without an iteration. `state` is the
    state of its outputs, PARTS if two runs diverge inside it. `ports` are the ports on its rim. `level` is the number
    of frames around it. `place` is its position in an iteration of a run, `site` its position among bodies drawn inside
    each other. `shows` is the body of a loop, or the side of an If, that it frames.
    """

    id: str
    kind: NodeKind
    label: str
    parent: str = ""
    lines: Lines = ()
    highlighted: bool = False
    idle: bool = False
    ports: tuple[FramePort, ...] = ()
    level: int = 0
    place: IterationPlace | None = None
    state: ValueState = ValueState.NONE
    site: FigureSite = FigureSite((), "")
    shows: InnerBody | None = None


class Figure(Record, dict=True):
    """Everything that is drawn; `description` says in sentences what a reader sees.

    `notes` say what was left out, `equations` and `facts` are lines to stand below, `legend` explains lines and boxes.
    """

    title: str
    description: str
    nodes: tuple[FigureNode, ...]
    edges: tuple[FigureEdge, ...]
    clusters: tuple[Cluster, ...] = ()
    arrangement: Arrangement = Arrangement.LAYERED
    notes: Lines = ()
    facts: Lines = field(default=())
    equations: Lines = ()
    legend: tuple[LegendEntry, ...] = ()

    @cached_property
    def legends(self) -> Lines:
        """Legends for the marks of boxes that partners compute."""
        return tuple(map(legend, dict.fromkeys(who for node in self.nodes for who in node.computed_by)))

    @property
    def below(self) -> Lines:
        """All lines that stand below."""
        return (*self.equations, *self.facts, *self.notes, *self.legends)

    @property
    def below_in_text(self) -> Lines:
        """All lines that stand below in formats of text: the legend is one of them."""
        told = "; ".join(f"{entry.look}: {entry.words}" for entry in self.legend)
        return (*self.below, told) if told else self.below

    @property
    def items(self) -> tuple[FigureNode | Cluster, ...]:
        """All nodes, then all clusters."""
        return (*self.nodes, *self.clusters)

    @cached_property
    def by_id(self) -> Mapping[str, FigureNode]:
        """Nodes by id."""
        return {node.id: node for node in self.nodes}

    @cached_property
    def clusters_by_id(self) -> Mapping[str, Cluster]:
        """Clusters by id."""
        return {cluster.id: cluster for cluster in self.clusters}

    @cached_property
    def nodes_in(self) -> Mapping[str, tuple[FigureNode, ...]]:
        """The nodes that stand directly in each cluster ("": in none)."""
        found: dict[str, list[FigureNode]] = {"": [], **{cluster.id: [] for cluster in self.clusters}}
        for node in self.nodes:
            found[node.cluster].append(node)
        return {key: tuple(nodes) for key, nodes in found.items()}

    @cached_property
    def clusters_in(self) -> Mapping[str, tuple[Cluster, ...]]:
        """The clusters that stand directly in each cluster ("": in none)."""
        found: dict[str, list[Cluster]] = {"": [], **{cluster.id: [] for cluster in self.clusters}}
        for cluster in self.clusters:
            found[cluster.parent].append(cluster)
        return {key: tuple(clusters) for key, clusters in found.items()}

    def with_nodes(self, nodes: Iterable[FigureNode]) -> Figure:
        """Return the figure with some of its boxes, and the edges between these and frames."""
        found = tuple(nodes)
        kept = {*(node.id for node in found), *self.clusters_by_id}
        return replace(self, nodes=found, edges=tuple(one for one in self.edges if {one.source, one.target} <= kept))

    def parent(self, id: str) -> str:
        """Return the cluster that a node or a cluster stands in."""
        return self.by_id[id].cluster if id in self.by_id else self.clusters_by_id[id].parent

    def frames_around(self, id: str) -> Iterator[str]:
        """Yield the clusters around a node or a cluster, from the inside outwards."""
        parent = self.parent(id)
        while parent:
            yield parent
            parent = self.parent(parent)

    def holder(self, id: str, among: Container[str]) -> str:
        """Return which one of these a node or a cluster is, or is in: the innermost; "" where it is none."""
        return next((one for one in (id, *self.frames_around(id)) if one in among), "")

    def outermost(self, id: str) -> str:
        """Return the outermost cluster that a node or a cluster is in; itself where that is none."""
        return (id, *self.frames_around(id))[-1]

    def within(self, id: str) -> frozenset[str]:
        """Return a node, or the nodes inside of a cluster."""
        if id in self.by_id:
            return frozenset((id,))
        return frozenset(node.id for node in self.nodes if id in self.frames_around(node.id))

    def name_of(self, id: str) -> str:
        """Return what a box or a frame is called: of a formula the name below it."""
        node = self.by_id.get(id)
        return self.clusters_by_id[id].label if node is None else node.name or node.label
