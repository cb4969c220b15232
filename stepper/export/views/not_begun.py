"""The figure of a loop of which no iteration ran: an empty frame, straight through it what would have been carried."""

from __future__ import annotations

from typing import Final

from msgspec.structs import replace

from stepper.engine.loops import EndReason, roles_of
from stepper.export.figures.builder import loop_label, origin_role
from stepper.export.figures.figure import (
    Cluster,
    EdgeKind,
    Figure,
    FigureEdge,
    FigureNode,
    FramePort,
    NodeKind,
    PortRole,
)
from stepper.export.figures.labels import output_name, references_of, shortened
from stepper.export.figures.loop_trace import LoopTrace
from stepper.wording import excerpt

_AT_ONCE: Final = "after 0 iterations: does not start"
_BEFORE: Final = "does not start"


def not_begun_figure(trace: LoopTrace, facts: tuple[str, ...]) -> Figure:
    """Return the figure of a run without iterations; `facts` are what the file says of the loop."""
    made = _NotBegun(trace)
    made.add_carried()
    made.add_outputs()
    made.add_mark()
    frame = Cluster(
        made.frame,
        NodeKind.LOOP,
        loop_label(trace.loop.layer),
        lines=("0 iterations, body not run", *made.told),
        idle=True,
        is_passed=True,
        ports=(*made.inputs, *made.outputs),
    )
    ended = f"{trace.ended[:1].upper()}{trace.ended[1:]}"
    return Figure(
        title=f"{trace.loop.title}, no iteration",
        description=(
            f"A run of {trace.loop.title} without iterations. What a back edge would carry goes straight through: the "
            f"first value is the last one. Concatenated outputs have no pieces. {ended}."
        ),
        nodes=tuple(made.nodes),
        edges=tuple(made.edges),
        clusters=(frame,),
        facts=(trace.ended, *facts),
    )


class _NotBegun:
    """Nodes, edges and ports under construction."""

    def __init__(self, trace: LoopTrace) -> None:
        self.trace, self.layer, self.outer = trace, trace.loop.layer, trace.loop.outer
        self.roles, self.body = roles_of(trace.loop.layer), trace.loop.body
        self.names, self.inner = references_of(trace.loop.outer), references_of(trace.loop.body.graph)
        self.frame = f"c{self.layer.id}"
        self.nodes: list[FigureNode] = []
        self.edges: list[FigureEdge] = []
        self.told: tuple[str, ...] = ()
        self.inputs: list[FramePort] = []
        self.outputs: list[FramePort] = []

    def add_carried(self) -> None:
        """Add every carried Parameter with what it begins with."""
        for entry in self.roles.merged:
            assert entry.input is not None
            id = self._inside(entry.parameter)
            words = ("first value = last value",)
            label = excerpt(self.inner[entry.parameter])
            node = FigureNode(id, NodeKind.PARAMETER, label, words, cluster=self.frame, role=PortRole.CARRIED)
            self.nodes += [node, self._source(entry.input)]
            self.inputs.append(FramePort(entry.input, (f"input {entry.input}", str(entry.input)), (id,)))
            self.edges.append(FigureEdge(f"in{entry.input}", id, EdgeKind.CARRIED, enters=entry.input))

    def _inside(self, parameter: int) -> str:
        return f"{self.layer.id}.n{parameter}"

    def _source(self, index: int) -> FigureNode:
        source = self.outer.sources[self.layer.id][index]
        label = f"input {index}" if source is None else excerpt(self.names[source.layer])
        title = "" if source is None else str(self.outer.by_id[source.layer])
        lines, role = (self.trace.came.get(index, ""),), origin_role(self.outer, source)
        return FigureNode(f"in{index}", NodeKind.INPUT, label, lines, title=title, role=role)

    def add_outputs(self) -> None:
        """Add all outputs with what they became."""
        carried: dict[int, int] = {}
        for fed in sorted(self.roles.merged, key=lambda one: one.input or 0):  # the lowest input counts
            carried.setdefault(self.roles.merged_from[fed.parameter], fed.parameter)
        for entry in self.body.outputs:
            if entry.output is None:
                continue
            goes_through = entry.slicing is None and entry.result in carried
            ends = (self._inside(carried[entry.result]),) if goes_through else ()
            words = (f"output {entry.output}", str(entry.output))
            self.outputs.append(FramePort(entry.output, words, ends, is_output=True))
            kind = NodeKind.OUTPUT if entry.slicing is None else NodeKind.CONCATENATION
            label = output_name(self.outer, self.layer, entry.output, 24) or f"output {entry.output}"
            lines = (f"output {entry.output}: {self.trace.left.get(entry.output, '')}",)
            self.nodes.append(FigureNode(f"out{entry.output}", kind, label, lines))
            led = FigureEdge(ends[0] if ends else self.frame, f"out{entry.output}", EdgeKind.PIECE, output=entry.output)
            kind_of_edge = EdgeKind.CARRIED if goes_through else EdgeKind.PIECE
            self.edges.append(replace(led, kind=kind_of_edge, leaves=entry.output))

    def add_mark(self) -> None:
        """Add the mark before the frame, at the port of what kept the loop from beginning; else beside the frame."""
        decided = self.trace.decided
        told = (str(EndReason.INITIAL_CONDITION), decided) if decided else (shortened(self.trace.ended, 60),)
        control = next((one for one in self.trace.controls if one.value is False or one.value == 0), None)
        if control is None or any(port.index == control.input for port in self.inputs):
            self.nodes.append(FigureNode("end", NodeKind.END, _AT_ONCE, told))
            return
        id = f"in{control.input}"
        self.nodes.append(replace(self._source(control.input), lines=(control.text,)))
        self.nodes.append(FigureNode("end", NodeKind.END, _BEFORE, title=self.trace.ended, cluster=self.frame))
        self.inputs.append(FramePort(control.input, (), ("end",)))
        self.edges.append(FigureEdge(id, "end", EdgeKind.ENDS, enters=control.input))
        self.told = told[:1]
