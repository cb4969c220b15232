"""What is wrong with a drawing, found by looking at every cell; and graphs to draw."""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Iterator, Sequence

from stepper.export.layout.layered import Box, LayeredLayout, LayoutEdge, Segment, Wire

Sizes = dict[int, tuple[int, int]]


def faults(layout: LayeredLayout, edges: Sequence[LayoutEdge], sizes: Sizes) -> list[str]:
    """A sentence for each fault; a flawless drawing has none."""
    return [
        *_boxes(layout, sizes),
        *_wires_over_boxes(layout),
        *_shared_cells(layout),
        *_heads(layout, edges),
        *_loose_ends(layout),
    ]


def _boxes(layout: LayeredLayout, sizes: Sizes) -> Iterator[str]:
    if set(layout.boxes) != set(sizes):
        yield "not every node has a box"
    taken: dict[tuple[int, int], int] = {}
    for node, box in layout.boxes.items():
        if box.width < sizes[node][0] or box.height != sizes[node][1]:
            yield f"box {node} is {box.width}x{box.height}, asked for {sizes[node]}"
        if box.x < 0 or box.y < 0 or box.x + box.width > layout.width or box.y + box.height > layout.height:
            yield f"box {node} is outside of the drawing"
        for cell in cells_of(Segment(box.x - 1, box.y, box.x + box.width - 1, box.y + box.height - 1)):
            if taken.setdefault(cell, node) != node:
                yield f"boxes {node} and {taken[cell]} touch or overlap at {cell}"


def _wires_over_boxes(layout: LayeredLayout) -> Iterator[str]:
    inside = {cell: node for node, box in layout.boxes.items() for cell in cells_of(segment_of(box))}
    for wire in layout.wires.values():
        box = layout.boxes[wire.source]
        for segment in wire.segments:
            for x, y in cells_of(segment):
                begins = inside.get((x, y)) == wire.source and y == box.y + box.height - 1
                if (x, y) in inside and not begins:
                    yield f"wire {wire.source}:{wire.output} runs through box {inside[x, y]} at {(x, y)}"


def _shared_cells(layout: LayeredLayout) -> Iterator[str]:
    """Two wires may share a cell only where one goes straight across and the other straight down."""
    masks: dict[tuple[int, int], dict[tuple[int, int], int]] = defaultdict(lambda: defaultdict(int))
    for key, wire in layout.wires.items():
        for cell, mask in strokes(wire):
            masks[cell][key] |= mask
    for cell, wires in masks.items():
        if len(wires) > 2 or (len(wires) == 2 and sorted(wires.values()) != [UP | DOWN, LEFT | RIGHT]):
            yield f"wires {sorted(wires)} share cell {cell}"


def _heads(layout: LayeredLayout, edges: Sequence[LayoutEdge]) -> Iterator[str]:
    found = set()
    for wire in layout.wires.values():
        for x, y, target in wire.heads:
            box = layout.boxes[target]
            if not box.x <= x < box.x + box.width or y != box.y - 1:
                yield f"the head of {wire.source}:{wire.output} at {(x, y)} is not at box {target}"
            found.add(LayoutEdge(wire.source, target, wire.output))
    if found != set(edges):
        yield f"edges missing or invented: {found ^ set(edges)}"


def _loose_ends(layout: LayeredLayout) -> Iterator[str]:
    """Every wire hangs together, from its box's lowest row to all of its heads."""
    for wire in layout.wires.values():
        lines: dict[tuple[int, int], int] = defaultdict(int)
        for cell, mask in strokes(wire):
            lines[cell] |= mask
        box = layout.boxes[wire.source]
        begin = next(cell for cell in lines if cell[1] == box.y + box.height - 1)
        reached, stack = {begin}, [begin]
        while stack:
            x, y = stack.pop()
            for bit, dx, dy in ((UP, 0, -1), (RIGHT, 1, 0), (DOWN, 0, 1), (LEFT, -1, 0)):
                step = (x + dx, y + dy)
                if lines[x, y] & bit and step not in reached:
                    reached.add(step)
                    stack.append(step)
        if any((head.x, head.y) not in reached for head in wire.heads):
            yield f"wire {wire.source}:{wire.output} is broken"


UP, RIGHT, DOWN, LEFT = 1, 2, 4, 8


def strokes(wire: Wire) -> Iterator[tuple[tuple[int, int], int]]:
    """The cells of a wire, each with the sides at which the line leaves it; a head goes on down to its box."""
    for x0, y0, x1, y1 in wire.segments:
        for x in range(x0, x1 + 1):
            for y in range(y0, y1 + 1):
                up, down = UP * (y > y0), DOWN * (y < y1)
                yield (x, y), up | down | LEFT * (x > x0) | RIGHT * (x < x1)
    for head in wire.heads:
        yield (head.x, head.y), DOWN


def segment_of(box: Box) -> Segment:
    return Segment(box.x, box.y, box.x + box.width - 1, box.y + box.height - 1)


def cells_of(segment: Segment) -> Iterator[tuple[int, int]]:
    for y in range(segment.y0, segment.y1 + 1):
        for x in range(segment.x0, segment.x1 + 1):
            yield x, y


def random_dag(seed: int, count: int) -> tuple[Sizes, list[LayoutEdge]]:
    """Long edges, wide fan-outs, operations with several outputs and many inputs: the unkind case."""
    rng = random.Random(seed)
    height = rng.choice((1, 2, 3, 4))
    sizes = {node: (rng.randrange(3, 16), height) for node in range(count)}
    edges = []
    for node in range(1, count):
        inputs = rng.choice((0, 1, 1, 2, 2, 3, rng.randrange(12)))
        sources = rng.sample(range(node), min(node, inputs))
        edges += [LayoutEdge(source, node, rng.choice((0, 0, 0, 1, 2, 3))) for source in sources]
    return sizes, edges


def random_body(seed: int, count: int) -> tuple[Sizes, list[LayoutEdge]]:
    """Gated cells and blocks with residual connections, as the bodies of loops have them."""
    rng = random.Random(seed)
    edges: list[LayoutEdge] = []
    tensors: list[tuple[int, int]] = [(0, 0), (1, 0), (2, 0)]
    nodes = 3

    def operation(*inputs: tuple[int, int]) -> tuple[int, int]:
        nonlocal nodes
        edges.extend(LayoutEdge(source, nodes, output) for source, output in inputs)
        nodes += 1
        return nodes - 1, 0

    while nodes < count:
        here = tensors[-1]
        if rng.random() < 0.5:
            split = operation(operation(here, rng.choice(tensors[-12:])))[0]
            gates = [operation((split, output)) for output in range(4)]
            state = operation(operation(gates[0], rng.choice(tensors[-6:])), operation(gates[1], gates[2]))
            tensors += [state, operation(operation(state), gates[3])]
        else:
            tensors.append(operation(operation(operation(operation(here))), here))
    return {node: (rng.randrange(7, 16), 3) for node in range(nodes)}, edges
