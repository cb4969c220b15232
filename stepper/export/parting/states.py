"""Boxes of a figure of two runs: the state of each value as a look and in words, and the values of both."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from msgspec.structs import replace

from stepper.debug.moments.difference import Change
from stepper.debug.moments.texts import difference_text
from stepper.export.figures.drawn_graph import DrawnNode, value_lines
from stepper.export.figures.figure import Cluster, Figure, FigureNode, ValueState
from stepper.export.options import ValueDetail
from stepper.export.parting.run_differences import (
    DifferenceTally,
    Numbers,
    RunDifferences,
    ValueBeside,
    ValueOfGraph,
)
from stepper.ir.model import Graph, Layer
from stepper.wording import counted

LEGEND: Final = "filled: the first difference; thick rim: another value; pale: the same value; A: the other run"


def over_all(node: FigureNode, graph: Graph, drawn: DrawnNode, found: RunDifferences) -> FigureNode:
    """Return a box with how its values differ in all iterations together."""
    keys = list(_values(graph, drawn))
    tallies = [tally for key in keys if (tally := found.tallies.get(key)) is not None]
    if not tallies:
        return node
    if found.first is not None and found.first.value in keys and not _is_result(graph, drawn):
        numbers = found.first.numbers
        where = f" in iteration {' > '.join(map(str, numbers))}" if numbers else ""
        return replace(node, state=ValueState.PARTS, lines=(*node.lines, f"first difference{where}", *_often(tallies)))
    if any(tally.different for tally in tallies):
        mended = any(tally.mended for tally in tallies) and not any(tally.broken for tally in tallies)
        state = ValueState.MENDED if mended else ValueState.DIFFERS
        return replace(node, state=state, lines=(*node.lines, *_often(tallies)))
    same = "the same within the tolerance" if any(tally.within for tally in tallies) else "the same bits"
    return replace(node, state=ValueState.ALIKE, lines=(*node.lines, same))


def over_body(frame: Cluster, graph: Graph, layer: Layer, found: RunDifferences) -> Cluster:
    """Return the frame of a loop or If of a graph with how its outputs differ, and whether the runs part inside."""
    keys = ((id(graph), layer.id, output) for output in range(len(layer.outputs)))
    tallies = [tally for key in keys if (tally := found.tallies.get(key)) is not None]
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
    pairs = [pair for key in keys if (pair := found.pairs.get((numbers, key))) is not None]
    if not pairs:
        return replace(node, state=ValueState.NONE)
    other = [pair for pair in pairs if pair.difference.change is not Change.SAME and not pair.difference.is_within]
    first = found.first
    if not other:
        within = any(pair.difference.is_within for pair in pairs)
        line = "the same within the tolerance" if within else "the same bits"
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
        parts = f"they part at '{first.name}'{where}"
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
    """Yield how often a value differs, how often it is mended or broken, and by how much at most."""
    worst = max(tallies, key=lambda tally: tally.different)
    often = f"differs in {worst.different:,} of {worst.compared:,}" if worst.compared > 1 else "differs"
    kinds = ((worst.mended, "mended"), (worst.broken, "broken"))
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
