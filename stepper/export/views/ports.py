"""The port map of a loop: outside, body, next iteration; entries with role, axis, start, end, stride, part_size."""

from __future__ import annotations

from stepper.engine.roles import Role, output_role, roles_of
from stepper.export.figures.builder import declared_text, input_role
from stepper.export.figures.figure import Arrangement, Cluster, EdgeKind, Figure, FigureEdge, FigureNode, NodeKind
from stepper.export.figures.labels import labels_of
from stepper.export.figures.loop_paths import LoopPath
from stepper.export.views.branch_ports import branch_ports_figure
from stepper.export.views.port_nodes import PortNodes
from stepper.export.views.static import loop_facts
from stepper.ir.excerpts import excerpt
from stepper.ir.model import Layer, Model

BODY = "body"


def ports_figure(model: Model, loop: LoopPath) -> Figure:
    """Return the port map of a loop: inputs, carried values, outputs; of an If those of both sides."""
    if not loop.layer.is_loop:
        return branch_ports_figure(loop)
    made = _Ports(loop)
    made.add_inputs()
    made.add_results()
    return Figure(
        title=f"{loop.title}, port map",
        description=(
            f"What the port map of {loop.title} says: on the left what is outside, in the middle the body's "
            "Parameters and Results, on the right the loop's outputs and, dashed, the Parameters of the next iteration."
        ),
        nodes=tuple(made.nodes),
        edges=tuple(made.edges),
        clusters=(Cluster(BODY, NodeKind.LOOP, "body"),),
        arrangement=Arrangement.COLUMNS,
        facts=loop_facts(model, loop),
    )


class _Ports(PortNodes):
    """The port map of a loop on its way to a figure."""

    def __init__(self, loop: LoopPath) -> None:
        super().__init__(loop)
        self.body, self.roles, self.inner = loop.body, roles_of(loop.layer), labels_of(loop.body.graph)

    def add_inputs(self) -> None:
        """Add every input entry, then the Parameters without a source, and the operations in between."""
        entered: set[int] = set()
        for entry in self.body.inputs:
            role = input_role(self.layer, entry)
            if entry.parameter not in entered:
                self._add_parameter(self.body.graph.by_id[entry.parameter])
            entered.add(entry.parameter)
            if entry.input is None:
                continue
            text = role if entry.slicing is None else f"{role}: {entry.slicing}"
            self.add_input(entry.input)
            kind = EdgeKind.SLICE if role == Role.SLICED else EdgeKind.PORT
            text = f"{text}, initial value" if role == Role.MERGED else text
            self.edges.append(FigureEdge(f"in{entry.input}", f"n{entry.parameter}", kind, text))
        for parameter in self.body.graph.parameters:
            if parameter.id not in entered:
                self._add_parameter(parameter)
        ports = ("Parameter", "Result", "Constant")
        count = sum(layer.type not in ports for layer in self.body.graph.layers)
        self.nodes.append(
            FigureNode("operations", NodeKind.GROUP, f"{count} operation{'' if count == 1 else 's'}", cluster=BODY)
        )

    def _add_parameter(self, layer: Layer) -> None:
        lines: tuple[str, ...] = (declared_text(layer.outputs[0]),)
        if layer.id in self.roles.current_iteration:
            lines = (*lines, "current iteration")
        elif any(layer.id == unfed.id for unfed in self.roles.unfed):
            lines = (*lines, "not connected")
        self.nodes.append(
            FigureNode(f"n{layer.id}", NodeKind.PARAMETER, self._name(layer), lines, title=str(layer), cluster=BODY)
        )

    def add_results(self) -> None:
        """Add every Result with its targets: outputs of the loop, Parameters of the next iteration, the condition."""
        for result in self.body.graph.results:
            shape = declared_text(result.inputs[0])
            title = str(result)
            self.nodes.append(
                FigureNode(f"n{result.id}", NodeKind.RESULT, self._name(result), (shape,), title=title, cluster=BODY)
            )
            for entry in self.body.outputs:
                if entry.result != result.id:
                    continue
                text = str(output_role(entry))
                if entry.output is None:
                    self.nodes.append(FigureNode(f"condition{result.id}", NodeKind.END, "runs on while true"))
                    self.edges.append(FigureEdge(f"n{result.id}", f"condition{result.id}", EdgeKind.ENDS, text))
                    continue
                text = text if entry.slicing is None else f"{text}: {entry.slicing}"
                self.add_output(entry.output)
                kind = EdgeKind.PORT if entry.slicing is None else EdgeKind.PIECE
                self.edges.append(FigureEdge(f"n{result.id}", f"out{entry.output}", kind, text))
            for parameter, source in self.roles.merged_from.items():
                if source == result.id:
                    self._add_next(parameter, result)

    def _add_next(self, parameter: int, result: Layer) -> None:
        layer = self.body.graph.by_id[parameter]
        id = f"next{parameter}"
        self.nodes.append(
            FigureNode(id, NodeKind.PARAMETER, self._name(layer), ("in the next iteration",), title=str(layer))
        )
        self.edges.append(FigureEdge(f"n{result.id}", id, EdgeKind.BACK, "back edge"))

    def _name(self, layer: Layer) -> str:
        return excerpt(self.inner[layer.id])
