"""From where values first differ back to what differs in the files: the nearest cause against the flow of values."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from stepper.compare.files.graphs import FileDifference, Touched
from stepper.compare.run.observations import BranchMismatch, Finding, LoopMismatch, ValueMismatch
from stepper.debug.reference_values import GraphPath, PathStep
from stepper.engine.loops import RoleError, control_inputs, roles_of
from stepper.ir.model import Body, Graph, Layer, Model, Source
from stepper.ir.xml import EXECUTION_CONDITION

_FARTHEST = 4000
"""Layers that are looked at before the search is given up."""


class FileCauses:
    """Answers for one model of ours, given all differences of the files."""

    def __init__(self, model: Model, differences: Iterable[FileDifference]) -> None:
        self.model = model
        self.differences = tuple(differences)
        self._touched: dict[Touched, list[FileDifference]] = {}
        for difference in self.differences:
            for key in difference.touches:
                self._touched.setdefault(key, []).append(difference)
        self._around: dict[int, tuple[Graph, Layer, Body]] = {}
        for _path, graph in model.graphs():
            for layer in graph.layers:
                for body in layer.bodies:
                    self._around[id(body.graph)] = (graph, layer, body)

    def of(self, finding: Finding) -> tuple[FileDifference, ...]:
        """Return what explains a finding, nearest first; nothing where nothing upstream differs in the files."""
        graph = graph_at(self.model, finding.path)
        if finding.layer is None:
            return self.of_frame(finding.path)
        start = [(graph, finding.layer.id)]
        if isinstance(finding, LoopMismatch | BranchMismatch):
            start += list(self._what_ends(graph, finding.layer))
        elif isinstance(finding, ValueMismatch) and finding.layer.bodies:
            start += self._result_of(finding.layer, finding.output)
        return self._search(start)

    def of_frame(self, path: GraphPath) -> tuple[FileDifference, ...]:
        """Return what explains that a loop itself could not go on: its port map, then what feeds it."""
        if not path:
            return self.differences[:1]
        graph, layer = graph_at(self.model, path[:-1]), path[-1].layer
        return self._search([(graph, layer.id), *self._what_ends(graph, layer)])

    def _search(self, start: list[tuple[Graph, int]]) -> tuple[FileDifference, ...]:
        """Search breadth first, against the flow of values; return everything at the smallest distance."""
        waiting, seen = list(start), {(id(graph), key) for graph, key in start}
        while waiting and len(seen) < _FARTHEST:
            found = [one for graph, key in waiting for one in self._touched.get((id(graph), key), ())]
            if found:
                return tuple(dict.fromkeys(found))
            following: list[tuple[Graph, int]] = []
            for graph, key in waiting:
                for upper, source in self._sources(graph, key):
                    if (id(upper), source) not in seen:
                        seen.add((id(upper), source))
                        following.append((upper, source))
            waiting = following
        return ()

    def _sources(self, graph: Graph, key: int) -> Iterator[tuple[Graph, int]]:
        """Yield where the value of a layer comes from, through port maps, in and out of bodies."""
        layer = graph.by_id[key]
        for source in graph.sources[key]:
            if source is not None:
                yield graph, source.layer
        for body in layer.bodies:
            for result in body.graph.results:
                yield body.graph, result.id
        if layer.type == "Parameter" and id(graph) in self._around:
            yield from self._sources_of_parameter(graph, key)

    def _sources_of_parameter(self, graph: Graph, key: int) -> Iterator[tuple[Graph, int]]:
        outer, loop, body = self._around[id(graph)]
        for edge in body.back_edges:
            if edge.to_layer == key:
                yield graph, edge.from_layer
        for entry in body.inputs:
            if entry.parameter == key and entry.input is not None and entry.input < len(outer.sources[loop.id]):
                source = outer.sources[loop.id][entry.input]
                if source is not None:
                    yield outer, source.layer

    def _what_ends(self, graph: Graph, layer: Layer) -> Iterator[tuple[Graph, int]]:
        """Yield the trip count, condition and sliced inputs of a loop; the condition of an If."""
        sources = graph.sources[layer.id]
        if not layer.is_loop:
            if sources and sources[0] is not None:
                yield graph, sources[0].layer
            return
        body = layer.bodies[0]
        for out in body.outputs:
            if out.purpose == EXECUTION_CONDITION:
                yield body.graph, out.result
        if layer.type == "Loop":
            for index in control_inputs(layer, body, graph):
                if index is not None and index < len(sources) and (source := sources[index]) is not None:
                    yield graph, source.layer
            return
        try:
            for entry in roles_of(layer).sliced:
                yield body.graph, entry.parameter
        except RoleError:
            return

    def _result_of(self, layer: Layer, output: int) -> list[tuple[Graph, int]]:
        return [(body.graph, entry.result) for body in layer.bodies for entry in body.outputs if entry.output == output]

    def what_limits(self, difference: LoopMismatch, *, by_condition: bool) -> Layer | None:
        """Return the layer that gives a loop's condition, without what only changes its form, or its trip count."""
        graph, loop = graph_at(self.model, difference.path), difference.layer
        found: list[tuple[Graph, Layer]] = []
        for inner, key in self._what_ends(graph, loop):
            layer = inner.by_id[key]
            if (layer.type == "Result") == by_condition:
                found.append((inner, layer))
        if not found:
            return None
        inner, layer = found[0]
        while layer.type in _FORM and inner.sources[layer.id][0] is not None:
            source = inner.sources[layer.id][0]
            assert source is not None
            layer = inner.by_id[source.layer]
        return layer

    def loop_before(self, result: Layer) -> tuple[Layer, int] | None:
        """Return the nearest loop of the main graph from which an output comes, and its output; None without one."""
        graph = self.model.graph
        waiting, seen = [Source(result.id, 0)], {result.id}
        while waiting:
            layer, output = graph.by_id[waiting[0].layer], waiting.pop(0).output
            if layer.is_loop:
                return layer, output
            sources = {source for source in graph.sources[layer.id] if source is not None and source.layer not in seen}
            seen |= {source.layer for source in sources}
            waiting += sorted(sources)
        return None

    def leads_to(self, layer: Layer, result: Layer) -> bool:
        """True if a Result of the model's own graph depends on a layer there."""
        graph, waiting, seen = self.model.graph, [result.id], {result.id}
        while waiting:
            sources = {source.layer for source in graph.sources[waiting.pop()] if source is not None} - seen
            seen |= sources
            waiting += sources
        return layer.id in seen

    def is_condition(self, graph: Graph, layer: Layer) -> bool:
        """True if the execution condition of the loop around a graph is computed from this layer by logic alone."""
        if id(graph) not in self._around:
            return False
        _outer, _loop, body = self._around[id(graph)]
        waiting = [entry.result for entry in body.outputs if entry.purpose == EXECUTION_CONDITION]
        seen: set[int] = set()
        while waiting:
            key = waiting.pop()
            if key == layer.id:
                return True
            if key in seen or graph.by_id[key].type not in _LOGIC:
                continue
            seen.add(key)
            waiting += [source.layer for source in graph.sources[key] if source is not None]
        return False


_FORM = frozenset({"Result", "Convert", "Reshape", "Squeeze", "Unsqueeze"})
_LOGIC = frozenset(
    {"Result", "Convert", "Reshape", "Squeeze", "Unsqueeze", "LogicalAnd", "LogicalOr", "LogicalNot", "LogicalXor"}
    | {"ReduceLogicalAnd", "ReduceLogicalOr", "If", "Select", "Gather"}
)


def graph_at(model: Model, path: GraphPath) -> Graph:
    """Return our graph to which a path leads."""
    graph = model.graph
    for step in path:
        graph = next(body.graph for body in step.layer.bodies if body.role == step.role)
    return graph


def graph_paths(model: Model) -> Iterator[tuple[GraphPath, Graph]]:
    """Yield each graph with the path to it (of no iteration), outer before inner."""
    waiting: list[tuple[GraphPath, Graph]] = [((), model.graph)]
    while waiting:
        path, graph = waiting.pop(0)
        yield path, graph
        for layer in graph.layers:
            waiting += [((*path, PathStep(layer, body.role, None)), body.graph) for body in layer.bodies]
