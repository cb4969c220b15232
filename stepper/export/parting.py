"""A run compared with another one, value by value in every iteration: tallies of all, details of what is shown."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from stepper.debug.moments.moment import EndedGraph, ended_graphs, values_beside
from stepper.debug.moments.moment_texts import difference_text
from stepper.debug.scopes import ReferenceValues
from stepper.element_types import Array
from stepper.engine.frames import Every
from stepper.engine.machine import Machine
from stepper.engine.program import Program
from stepper.errors import StepperError
from stepper.export.figures.drawn_graph import MOST_ELEMENTS, DrawnNode, ValueSummary, summary, value_lines
from stepper.export.figures.figure import Cluster, Figure, FigureNode, ValueState
from stepper.export.figures.loop_trace import Numbers
from stepper.export.options import ValueDetail
from stepper.ir.model import Graph, Layer
from stepper.records import Record
from stepper.tensors.difference import Change, Difference, difference
from stepper.tensors.number_text import nested_text
from stepper.tensors.tolerances import Tolerances
from stepper.wording import counted

SECONDS = 30.0
"""For how long two runs are compared."""

ValueOfGraph = tuple[int, int, int]
"""A value of a graph: the graph by its identity, the id of the layer that computes it, the index of the output."""


class ValueBeside(Record):
    """A value in both runs: how it differs, what it is in the other one, and, of few numbers, each difference."""

    difference: Difference
    theirs: ValueSummary
    gaps: str = ""


class DifferenceTally(Struct):
    """How often a value was compared, how often it was another one, and how."""

    compared: int = 0
    different: int = 0
    within: int = 0
    mended: int = 0
    broken: int = 0
    largest: float = 0.0

    def add(self, found: Difference) -> bool:
        """Add one comparison; True if the value is another one, beyond the tolerance."""
        self.compared += 1
        if found.change is Change.SAME:
            return False
        if found.is_within:
            self.within += 1
            return False
        self.different += 1
        self.mended += found.change is Change.MENDED
        self.broken += found.change is Change.BROKEN
        self.largest = max(self.largest, found.largest or 0.0)
        return True


class PartingPlace(Record):
    """The first value in the order of execution that is another one."""

    value: ValueOfGraph
    name: str
    numbers: Numbers


class RunDifferences(Struct, eq=False):
    """A run beside another one, which has a `title`. `pairs` are those of the iterations that were to be kept.

    `counts` are the iterations of each run of a loop, by its body's graph and the iterations around it.
    `ends` are the errors that ended the runs. `is_complete`: both were compared to their ends.
    """

    title: str
    tallies: dict[ValueOfGraph, DifferenceTally] = {}
    pairs: dict[tuple[Numbers, ValueOfGraph], ValueBeside] = {}
    first: PartingPlace | None = None
    counts: dict[tuple[int, Numbers], int] = {}
    ends: tuple[str, ...] = ()
    is_complete: bool = True


class _Walk(Struct):
    """A comparison under way."""

    reference: ReferenceValues
    keeps: Callable[[Numbers], bool]
    tolerances: Tolerances
    found: RunDifferences
    order: tuple[float, ...] = ()
    places: dict[int, Mapping[int, int]] = {}

    def compare(self, ended: EndedGraph, *, is_whole: bool = True) -> None:
        """Compare the values of a graph that has run, or as far as it has (not `is_whole`)."""
        frame, path, numbers = ended.frame, ended.path, ended.numbers
        if path and path[-1].iteration is not None:
            self.found.counts[id(frame.program.graph), numbers[:-1]] = numbers[-1] + 1
        around: list[float] = []
        for outer, step in zip(ended.stack, path, strict=False):
            around += [self._place(outer.program, step.layer.id), -1 if step.iteration is None else step.iteration]
        is_kept, beside = self.keeps(numbers), values_beside(self.reference, ended.stack)
        for (layer_id, output), slot in frame.program.slots.items():
            layer = frame.program.graph.by_id[layer_id]
            if layer.type in ("Constant", "Result") or not (is_whole or frame.is_current(slot)):
                continue
            ours = frame.values[slot]
            theirs = beside(layer, output)
            if theirs is None or ours is None:
                continue
            gap = difference(theirs, ours, self.tolerances.of(layer, ours))
            key = id(frame.program.graph), layer_id, output
            tally = self.found.tallies.setdefault(key, DifferenceTally())
            if tally.add(gap):
                order = (*around, self._place(frame.program, layer_id), math.inf)  # a loop behind what is in it
                if self.found.first is None or order < self.order:
                    self.found.first, self.order = PartingPlace(key, layer.name, numbers), order
            if is_kept:
                shown = summary(theirs, None, ValueDetail.FULL)
                self.found.pairs[numbers, key] = ValueBeside(gap, shown, _gaps(np.asarray(theirs), np.asarray(ours)))

    def _place(self, program: Program, layer: int) -> int:
        """Return the place of a layer in the order of execution; -1 for what is there from the beginning."""
        if id(program) not in self.places:
            self.places[id(program)] = {one.layer.id: at for at, one in enumerate(program.operations)}
        return self.places[id(program)].get(layer, -1)


def compare_runs(machine: Machine, reference: ReferenceValues, keeps: Callable[[Numbers], bool]) -> RunDifferences:
    """Run a machine and compare it with a reference; `keeps` selects iterations with details."""
    tolerances = Tolerances(exact=bool(getattr(reference, "is_exact", False)))
    found, begin = RunDifferences(reference.title), time.monotonic()
    walk = _Walk(reference, keeps, tolerances, found)
    try:
        for ended in ended_graphs(machine.run(Every.ITERATION), machine, sides=True):
            walk.compare(ended)
            if time.monotonic() - begin > SECONDS:
                found.is_complete = False
                break
    except StepperError as error:
        found.ends = (str(error).splitlines()[0],)
        try:  # what had been computed where a run failed
            for depth in range(1, len(machine.stack) + 1):
                walk.compare(EndedGraph(tuple(machine.stack[:depth])), is_whole=False)
        except StepperError as second:
            found.ends = (*found.ends, str(second).splitlines()[0])
    return found


def _gaps(theirs: Array, ours: Array) -> str:
    """Return the difference of each element of a small tensor of numbers."""
    if ours.size > MOST_ELEMENTS or ours.shape != theirs.shape or ours.dtype.kind not in "fiu":
        return ""
    with np.errstate(all="ignore"):
        if ours.dtype.kind == "f":
            return nested_text(ours.astype(np.float64) - theirs.astype(np.float64))
        gaps = np.asarray(ours.astype(object) - theirs.astype(object), object)
        is_exact = all(abs(gap) < 2**63 for gap in gaps.flat)
        return nested_text(gaps.astype(np.int64 if is_exact else np.float64))


# --- Boxes of a figure of two runs: the state of each value as a look and in words, and the values of both -----------


LEGEND = "filled: the first difference; thick rim: another value; pale: the same value; A: the other run"


def over_all(node: FigureNode, graph: Graph, drawn: DrawnNode, found: RunDifferences) -> FigureNode:
    """Return a box with how its values differ in all iterations together."""
    keys = list(_values(graph, drawn))
    tallies = [found.tallies[key] for key in keys if key in found.tallies]
    if not tallies:
        return node
    state, lines = ValueState.ALIKE, [_same(any(tally.within for tally in tallies))]
    if found.first is not None and found.first.value in keys and not _is_result(graph, drawn):
        numbers = found.first.numbers
        where = f" in iteration {' > '.join(map(str, numbers))}" if numbers else ""
        state, lines = ValueState.PARTS, [f"first difference{where}", *_often(tallies)]
    elif any(tally.different for tally in tallies):
        mended = any(tally.mended for tally in tallies) and not any(tally.broken for tally in tallies)
        state, lines = ValueState.MENDED if mended else ValueState.DIFFERS, [*_often(tallies)]
    return replace(node, state=state, lines=(*node.lines, *lines))


def _same(is_within: bool) -> str:
    return "the same within the tolerance" if is_within else "the same bits"


def over_body(frame: Cluster, graph: Graph, layer: Layer, found: RunDifferences) -> Cluster:
    """Return the frame of a loop or If of a graph with how its outputs differ, and whether the runs part inside."""
    keys = ((id(graph), layer.id, output) for output in range(len(layer.outputs)))
    tallies = [found.tallies[key] for key in keys if key in found.tallies]
    differs = any(tally.different for tally in tallies)
    often = tuple(_often(tallies)) if differs else ()
    if found.first is not None and found.first.value[0] in graphs_within(layer):
        lines = (*frame.lines, "the first difference is inside", *often)
        return replace(frame, state=ValueState.PARTS, lines=lines)
    return replace(frame, state=ValueState.DIFFERS, lines=(*frame.lines, *often)) if differs else frame


def graphs_within(layer: Layer) -> set[int]:
    """Return the identities of the graphs of a layer's bodies, those of Ifs and loops in them too."""
    found, waiting = set[int](), [body.graph for body in layer.bodies]
    while waiting:
        graph = waiting.pop()
        found.add(id(graph))
        waiting += [body.graph for one in graph.layers for body in one.bodies]
    return found


def in_iteration(
    node: FigureNode, graph: Graph, drawn: DrawnNode, found: RunDifferences, numbers: Numbers
) -> FigureNode:
    """Return a box of one iteration with the value of the other run, and the difference."""
    keys = list(_values(graph, drawn))
    pairs = [found.pairs[numbers, key] for key in keys if (numbers, key) in found.pairs]
    if not pairs:
        return replace(node, state=ValueState.NONE)
    other = [pair for pair in pairs if pair.difference.change is not Change.SAME and not pair.difference.is_within]
    first = found.first
    if not other:
        line = _same(any(pair.difference.is_within for pair in pairs))
        return replace(node, state=ValueState.ALIKE, lines=(*node.lines, line))
    state = ValueState.DIFFERS
    if first is not None and first.value in keys and first.numbers == numbers and not _is_result(graph, drawn):
        state = ValueState.PARTS
    elif all(pair.difference.change is Change.MENDED for pair in other):
        state = ValueState.MENDED
    begin = ("first difference",) if state is ValueState.PARTS else ()
    lines = _both(other[0]) if len(keys) == 1 else (f"{len(other)} of {counted(len(pairs), 'value')} differ",)
    return replace(node, state=state, lines=(*node.lines, *begin, *lines))


def compared_with(figure: Figure, found: RunDifferences) -> Figure:
    """Return the figure with what it is compared with, and where the two part."""
    first, names = found.first, f"A is {found.title}"
    if first is None:
        compared = sum(tally.compared for tally in found.tallies.values())
        parts = f"all {counted(compared, 'value')} compared are the same" if compared else "nothing could be compared"
    else:
        where = f", iteration {' > '.join(map(str, first.numbers))}" if first.numbers else ""
        parts = f"they diverge at '{first.name}'{where}"
    ends = tuple(f"a run ended: {end}" for end in found.ends)
    whole = () if found.is_complete else ("compared in part: there was no time for more",)
    facts = (f"{names}; {parts}", *ends, *whole)
    description = f"Two runs beside each other. {'. '.join(facts)}. {figure.description}"
    notes = (*figure.notes, LEGEND) if first is not None else figure.notes
    return replace(figure, description=description, facts=(*facts, *figure.facts), notes=notes)


def _values(graph: Graph, drawn: DrawnNode) -> Iterator[ValueOfGraph]:
    """Yield the values of a box; of a Result what it takes."""
    for key in drawn.layers:
        layer = graph.by_id[key]
        source = graph.sources[key][0] if layer.type == "Result" else None
        if source is not None:
            yield id(graph), source.layer, source.output
        for output in range(len(layer.outputs) if source is None else 0):
            yield id(graph), key, output


def _is_result(graph: Graph, drawn: DrawnNode) -> bool:
    return len(drawn.layers) == 1 and graph.by_id[drawn.key].type == "Result"


def _often(tallies: Sequence[DifferenceTally]) -> Iterator[str]:
    """Yield how often a value differs, how often NaN or Inf is fixed or new, and by how much."""
    worst = max(tallies, key=lambda tally: tally.different)
    often = f"differs in {worst.different:,} of {worst.compared:,}" if worst.compared > 1 else "differs"
    kinds = ((worst.mended, "fixed"), (worst.broken, "new NaN or Inf"))
    odd = ", ".join(f"{count:,} {word}" if worst.compared > 1 else word for count, word in kinds if count)
    yield f"{often}: {odd}" if odd else often
    largest = max(tally.largest for tally in tallies)
    if largest:
        yield f"largest difference {largest:.4g}"


def _both(pair: ValueBeside) -> tuple[str, ...]:
    """Return what the value is in the other run, and the difference."""
    theirs = value_lines(pair.theirs, ValueDetail.FULL)
    found = pair.difference
    if found.change is Change.NUMBER and pair.gaps:
        gap = f"difference {pair.gaps}"
    elif found.change is Change.NUMBER:
        gap = f"{found.different:,} of {found.size:,} differ, largest {found.largest:.4g}"
    else:
        gap = difference_text(found)
    return (f"A: {theirs[0]}", *theirs[1:], gap)
