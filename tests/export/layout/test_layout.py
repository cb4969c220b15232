"""The layered layout: whatever the graph, boxes lie apart; every wire is whole, alone in its cells and at its box."""

from __future__ import annotations

import random
import time

import pytest

from stepper.export.layout.layered import LayeredLayout, LayoutEdge, back_lanes, lay_out, tracks
from tests.export.drawings import cells_of, faults, random_body, random_dag, segment_of


@pytest.mark.parametrize("count", [1, 2, 5, 12, 30, 60])
def test_a_drawing_of_any_graph_is_flawless(count: int) -> None:
    for seed in range(40):
        sizes, edges = random_dag(seed * 1000 + count, count)
        assert faults(lay_out(sizes, edges), edges, sizes) == [], f"seed {seed}"


@pytest.mark.parametrize("count", [10, 40, 150])
def test_a_drawing_of_a_gated_body_is_flawless_with_pinned_ports(count: int) -> None:
    for seed in range(15):
        sizes, edges = random_body(seed, count)
        sources = {edge.source for edge in edges}
        last = [node for node in sizes if node not in sources and node > 1]
        layout = lay_out(sizes, edges, first=[0, 1], last=last)
        assert faults(layout, edges, sizes) == [], f"seed {seed}"
        assert {0, 1} <= set(layout.ranks[0])
        assert set(last) <= set(layout.ranks[-1])


def test_wires_that_swap_their_columns_are_led_round_by_a_dogleg() -> None:
    bends, depth = tracks([(10, [20]), (20, [10])])
    assert sum(bend.dogleg is not None for bend in bends) == 1
    assert depth == 3
    split, whole = sorted(bends, key=lambda bend: bend.dogleg is None)
    assert split.dogleg is not None
    assert split.dogleg[1] < whole.track < split.track  # type: ignore[operator]
    assert split.dogleg[0] not in (10, 20)


@pytest.mark.parametrize("seed", range(30))
def test_no_two_wires_of_a_crowded_channel_share_a_cell(seed: int) -> None:
    """Permutations of few columns: nothing but circles, through which only doglegs lead."""
    rng = random.Random(seed)
    columns = rng.sample(range(24), 12)
    ends = rng.sample(columns, 12)
    pins = [(column, [end]) for column, end in zip(columns, ends, strict=True)]
    bends, depth = tracks(pins)
    strokes: dict[tuple[int, int, str], int] = {}
    for wire, ((column, (end,)), bend) in enumerate(zip(pins, bends, strict=True)):
        row = depth if bend.track is None else bend.track
        aside, upper = bend.dogleg or (column, 0)
        lines = [
            *[(column, y, "down") for y in range(upper + 1 if bend.dogleg else row + 1)],
            *[(x, upper, "across") for x in range(min(column, aside), max(column, aside) + 1) if bend.dogleg],
            *[(aside, y, "down") for y in range(upper, row + 1) if bend.dogleg],
            *[(x, row, "across") for x in range(min(aside, end), max(aside, end) + 1) if bend.track is not None],
            *[(end, y, "down") for y in range(row, depth)],
        ]
        for line in lines:
            assert strokes.setdefault(line, wire) == wire, f"wires {wire} and {strokes[line]} at {line}"


def test_outputs_of_one_operation_are_wires_of_their_own() -> None:
    sizes = dict.fromkeys(range(5), (9, 3))
    edges = [LayoutEdge(0, node, node - 1) for node in range(1, 5)]
    layout = lay_out(sizes, edges)
    assert set(layout.wires) == {(0, output) for output in range(4)}
    assert len({wire.segments[0].x0 for wire in layout.wires.values()}) == 4


def test_one_tensor_is_one_wire_however_many_read_it() -> None:
    sizes = dict.fromkeys(range(40), (9, 3))
    edges = [LayoutEdge(0, node) for node in range(1, 40)]
    layout = lay_out(sizes, edges)
    assert list(layout.wires) == [(0, 0)]
    assert len(layout.wires[0, 0].heads) == 39


def test_a_box_grows_for_the_wires_that_enter_it() -> None:
    sizes = dict.fromkeys(range(21), (3, 1))
    edges = [LayoutEdge(node, 20) for node in range(20)]
    layout = lay_out(sizes, edges)
    assert layout.boxes[20].width >= 40
    assert faults(layout, edges, sizes) == []


def test_the_same_graph_gives_the_same_layout() -> None:
    sizes, edges = random_dag(7, 40)
    assert lay_out(sizes, edges) == lay_out(dict(sizes), iter(edges))


def test_an_empty_graph_is_an_empty_drawing() -> None:
    layout = lay_out({}, [])
    assert (layout.width, layout.height, layout.boxes, layout.ranks) == (0, 0, {}, ())


@pytest.mark.parametrize(
    ("edges", "first", "last", "message"),
    [
        ([LayoutEdge(0, 1), LayoutEdge(1, 0)], [], [], "cycle"),
        ([LayoutEdge(0, 9)], [], [], "has no size"),
        ([LayoutEdge(0, 1)], [1], [], "first rank"),
        ([LayoutEdge(0, 1)], [], [0], "last rank"),
    ],
)
def test_what_cannot_be_drawn_is_refused(
    edges: list[LayoutEdge], first: list[int], last: list[int], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        lay_out({0: (5, 3), 1: (5, 3)}, edges, first, last)


def test_back_edges_run_round_the_drawing_without_touching_it_or_each_other() -> None:
    for seed in range(20):
        sizes, edges = random_body(seed, 40)
        sources = {edge.source for edge in edges}
        tails = [node for node in sizes if node not in sources and node > 2][:3]
        back = list(zip(tails, [0, 1, 2], strict=False))
        layout = lay_out(sizes, edges, first=[head for _, head in back], last=tails)
        lanes = back_lanes(layout, back)
        assert sorted(lane.index for lane in lanes) == list(range(len(back)))
        taken: dict[tuple[int, int, bool], int] = {}
        boxes = {cell: node for node, box in layout.boxes.items() for cell in cells_of(segment_of(box))}
        for lane in lanes:
            for segment in lane.segments:
                for cell in cells_of(segment):
                    assert boxes.get(cell, lane.tail) == lane.tail
                    assert taken.setdefault((*cell, segment.x0 == segment.x1), lane.index) == lane.index
                    assert -len(back) - 1 <= cell[1] < layout.height + len(back) + 1
            box = layout.boxes[lane.head]
            assert (lane.segments[-1].x1, lane.segments[-1].y1) == (box.centre, box.y - 1)


def test_two_back_edges_to_one_head_arrive_side_by_side() -> None:
    layout = lay_out(dict.fromkeys(range(4), (9, 3)), [LayoutEdge(0, 1), LayoutEdge(0, 2)], first=[0, 3], last=[1, 2])
    lanes = back_lanes(layout, [(1, 0), (2, 0)])
    columns = {lane.segments[-1].x1 for lane in lanes}
    box = layout.boxes[0]
    assert len(columns) == 2
    assert all(box.x < column < box.x + box.width for column in columns)


def test_the_cost_grows_with_the_graph_and_not_with_its_square() -> None:
    def seconds(count: int) -> float:
        sizes, edges = random_body(1, count)
        best = float("inf")
        for _ in range(3):
            began = time.process_time()
            lay_out(sizes, edges)
            best = min(best, time.process_time() - began)
        return best

    assert seconds(4000) < 4 * 4 * seconds(1000)


@pytest.mark.parametrize("room", [24, 40, 70])
@pytest.mark.parametrize("gap", [1, 2])
def test_a_drawing_in_little_room_is_flawless_and_stays_in_it(room: int, gap: int) -> None:
    narrower = 0
    for seed in range(20):
        sizes, edges = random_body(seed, 40) if seed % 2 else random_dag(seed, 40)
        layout = lay_out(sizes, edges, room=room, gap=gap)
        assert faults(layout, edges, sizes) == [], f"seed {seed}"
        needs = [_cells_of_rank(layout, rank, gap) for rank in layout.ranks]
        most = max(room, *(cells for _, cells in needs))
        assert all(box.x + box.width <= most for box in layout.boxes.values()), f"seed {seed}"
        assert layout.width <= most + 4, f"seed {seed}: a detour may go round a box at the edge"
        assert all(cells <= room for boxes, cells in needs if boxes > 1), f"seed {seed}"
        narrower += layout.width < lay_out(sizes, edges, gap=gap).width
    assert narrower > 10


def _cells_of_rank(layout: LayeredLayout, rank: tuple[int, ...], gap: int) -> tuple[int, int]:
    """How many boxes stand in a rank, and how many cells they and the wires that pass them take at least."""
    y = layout.boxes[rank[0]].y
    passing = {
        segment.x0
        for wire in layout.wires.values()
        for segment in wire.segments
        if segment.x0 == segment.x1 and segment.y0 < y <= segment.y1 and wire.source not in rank
    }
    widths = [layout.boxes[node].width for node in rank] + [1] * len(passing)
    return len(rank), sum(width + gap for width in widths) - gap


def test_ports_that_are_pinned_stay_on_their_rank_however_little_room_there_is() -> None:
    sizes, edges = random_body(3, 40)
    last = [node for node in sizes if node not in {edge.source for edge in edges} and node > 1]
    layout = lay_out(sizes, edges, first=[0, 1], last=last, room=20)
    assert faults(layout, edges, sizes) == []
    assert {0, 1} <= set(layout.ranks[0]) and set(last) <= set(layout.ranks[-1])
